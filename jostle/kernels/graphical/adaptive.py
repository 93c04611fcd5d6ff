"""The search for tables of two and three columns that a model lacks: what is measured next, and the model of it all.

After AIM (McKenna, Mullins, Sheldon, Miklau, *AIM: an adaptive and iterative mechanism for differentially private
synthetic data*, VLDB 2022): of the tables that the model so far is worst at, less what noise would do to them, some
are measured; where they say little beyond their noise, the next ones get more. Here they are chosen and measured
several at a time, and the model moves from what it was to one near to all of them, by their precision. All of it is
calculated of released numbers; the language selects among candidates privately.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from jostle.error_laws import laplace_scale
from jostle.kernels import KernelError, Model, members
from jostle.kernels.graphical.domain import Clique, Domain
from jostle.kernels.graphical.junction import PairTables, cells_needed
from jostle.kernels.graphical.learn import rows_in
from jostle.kernels.graphical.model import GraphicalModel
from jostle.kernels.graphical.shrunken import UNMEASURED, Table, columns_measured, expected_of_columns, shrunken_model
from jostle.kernels.noisy_array import law_of
from jostle.noise_laws import Gaussian, Laplace

NO_PAIRS, ALL_PAIRS = 8.0, 25.0
"""Rows in units of a column's noise: up to which no pair is worth its price, and from which a whole tree is.

Where noise grows with the root of how many tables there are; else see `_of_pure`.
"""
NO_PURE_PAIRS, FEW_PAIRS, MORE_PAIRS, MANY_BESIDE = 2.0, 5.0, 15.0, 15.0
"""There: up to which there is no pair, up to which they are fewer, from which they are more, twice as many at twice of
it, and from which there are more beside those with a column to predict. What a few pairs take from columns is two to
seven hundredths of their distance, and without them nothing can be predicted."""
OF_ROWS = 1 / 50
"""The share that counts the rows."""
OF_COLUMNS = 0.25
"""The share of single columns where pairs are worth theirs."""
OF_CHOOSING = 0.1
"""The part of a batch's share that chooses its tables, where noise grows with their root."""
TO_CHOOSE = 1.1
"""Else what chooses, to what measures, times the root of the cells of a pair: see `of_choosing`."""
MOST_ROUNDS = 24
LEAST_LEFT = 1e-6
"""Of the amount: what is less ends a search."""
SOME = 3
"""A batch is so small a part of the columns until half of the share for tables is spent."""
OF_EXACT = 6
"""Times as many are taken at once of public rows, whose tables are exact."""
WORTH = 0.7
"""Columns are measured again where that is expected to bring this part of what the last tables brought."""
MOST_FIT = 0.7
"""The part of a last batch that fits from which on it is the last."""
LARGEST = 1e5
"""The most cells of a pair: the noise of more would drown what they tell."""
LARGEST_TRIPLE, MOST_TRIPLES = 20_000, 1500
OF_NOISE = 0.5
"""What a table has to say more than this part of its noise: the rest goes where it is drawn to what was expected."""
OF_TRIPLES = 3.0
"""What a triple has to say, in units of what a pair has to, beyond its noise."""
TRIED = 30
"""Columns up to which every pair's junction tree is made; of more, a pair is tried by a bound on its cells."""


MOST_REPEATED = 8
"""How often a column is measured at once, at most."""
MOST_CLASSES = 8
"""Values of a column to predict up to which columns are measured beside it alone."""


def search_plan(strength: float, model: GraphicalModel, power: float, predict: str | None = None) -> dict[str, object]:
    """What `search_begun` takes: `columns`, the share of them, and `unit`, that of each table to begin with.

    `cliques`, `measured`: what to measure in one, and places in it. Where noise falls with the root of a share, a
    column of many values is there several times, in proportion: the noise of all its cells together counts. Beside a
    column to `predict` of k values it is the pairs with it, from which columns follow with √k times the noise.
    `strength`: the rows in units of a column's noise. `power`: noise falls with the share to that power. Settled on
    public tables (docs/experiments/synthesis.md).
    """
    sizes = model.domain.sizes
    columns = len(sizes)
    s = max(float(strength), 1.0) if math.isfinite(strength) else 1e12
    falls = float(np.clip(power, 0.5, 1.0)) if math.isfinite(power) else 1.0
    if falls < 0.9:
        worth = float(np.clip(math.log(s / NO_PAIRS) / math.log(ALL_PAIRS / NO_PAIRS), 0.0, 1.0))
        share = 1 - (1 - OF_COLUMNS) * worth
        some = round(worth * (columns - 1)) if worth < 1 else columns / float(np.clip(4 / math.sqrt(s), 1 / 8, 1 / 3))
    else:
        share, some = _of_pure(s / (sum(sizes) / columns), columns, predict is not None)
    share, left = (1 - OF_ROWS) * share, (1 - OF_ROWS) * (1 - share)
    if some < 1 or columns < 2:
        share, left = 1 - OF_ROWS, 0.0
    first = _first(sizes, falls, -1 if predict is None else model.domain.place(predict))
    cliques = list(dict.fromkeys(first))
    return {
        "columns": share, "unit": left / max(some, 1.0), "left": left, "rounds": MOST_ROUNDS, "power": falls,
        "cliques": [model.domain.names_of(c) for c in cliques], "measured": [cliques.index(c) for c in first],
    }  # fmt: skip


def _of_pure(strength: float, columns: int, beside: bool) -> tuple[float, float]:
    """(the share of single columns, how many tables to begin with), where noise grows with the tables.

    `strength`: the rows in units of the noise of a whole column, as an even one's cells share them. Below FEW_PAIRS of
    it there are the fewer pairs the less it is, at least two, and beside a column to predict none.
    """
    if strength < (MANY_BESIDE if beside else NO_PURE_PAIRS):
        return 1.0, 0.0
    few, more = min(1.0, strength / FEW_PAIRS), 1.0 if beside else min(max(strength / MORE_PAIRS, 1.0), 2.0)
    share = max(OF_COLUMNS, 1 / (1 + max(strength, FEW_PAIRS) / 20))
    return share, max(2.0, few * few * columns * min(8.0, 0.4 * more + strength / 150))


def _copies(sizes: Sequence[int], falls: float) -> list[int]:
    """The places of columns, each as often as it is measured in one."""
    most, least = MOST_REPEATED if falls < 0.9 else 1, max(min(sizes), 2)
    return [v for v, size in enumerate(sizes) for _ in range(int(np.clip(round(size / least), 1, most)))]


def _first(sizes: Sequence[int], falls: float, predict: int) -> list[Clique]:
    """The columns, or their pairs with the one to predict, and columns that these do not hold, or only noisily."""
    copies, most = _copies(sizes, falls), LARGEST_TRIPLE / sizes[predict]
    pairs = [(min(v, predict), max(v, predict)) for v in copies if predict not in (-1, v) and sizes[v] <= most]
    within = {v for pair in pairs for v in pair if sizes[predict] <= MOST_CLASSES}
    return [*((v,) for v in copies if v not in within), *pairs]


@dataclass(frozen=True, eq=False)
class TableSearch(Model):
    """A model, the tables it was learned from, and which could be measured next. Public.

    `many` of `candidates` are to be chosen and measured with `share`, the part `of_choosing` of it for choosing.
    """

    jostle_kind = "a search for tables"
    jostle_members = members("model many share of_choosing left again candidates")

    model: GraphicalModel
    pairs: PairTables
    tables: tuple[Table, ...]
    plan: Mapping[str, Any]
    most: float
    left: float
    unit: float
    round: int = 1
    prior: GraphicalModel | None = None
    """A model of public rows: what is expected before anything is measured."""
    gain: float = math.inf
    """What the last tables of several columns moved, squared and over all pairs, for each part of the amount."""

    @property
    def many(self) -> int:
        return self.next_batch[0]

    @property
    def share(self) -> float:
        return self.next_batch[1]

    def as_json(self) -> dict[str, object]:
        return {"model": self.model.as_json(), "left": self.left}

    def __str__(self) -> str:
        return f"a search after {len(self.tables)} tables, {self.left:.0%} left"

    @property
    def rows(self) -> float:
        return float(self.model.notes["rows"])

    @cached_property
    def next_batch(self) -> tuple[int, float]:
        """(how many tables to choose and measure, their share)."""
        columns = len(self.model.domain.names)
        if columns < 2 or self.left <= LEAST_LEFT or self.unit <= 0 or self.round > MOST_ROUNDS:
            return 0, 0.0
        some = columns if self.left < self.plan["left"] / 2 else max(2, math.ceil(columns / SOME))
        some *= 1 if self.plan["scale"] else OF_EXACT
        many = min(some, max(1, int(self.left / self.unit + 1e-6)), len(self.cliques))
        many = len(self.cliques) if len(self.cliques) <= columns else many
        share = min(self.left, many * self.unit)
        last = self.round == MOST_ROUNDS or self.left - share < share / 2 or len(self.cliques) <= many
        return many, self.left if last else share

    def measuring(self, count: int) -> float:
        """The part of the batch's share that measures so many tables of it."""
        many, share = self.next_batch
        all_of_it = self.again or self.round == MOST_ROUNDS or (share == self.left and count >= MOST_FIT * many)
        return (1 - self.of_choosing) * (1.0 if all_of_it else count / many)

    @property
    def of_choosing(self) -> float:
        """The part of the share that chooses: the less, the more cells a pair has.

        Noise of a choice is on a score once, and that of a measured table on each of its k cells. Where both go by the
        inverse of their shares, their sum is the least where the first is as the second's over the root of k.
        """
        if self.again or self.plan["power"] < 0.9:
            return 0.0 if self.again else OF_CHOOSING
        sizes, pairs = self.model.domain.sizes, self.narrow_pairs
        cells = sum(sizes[a] * sizes[b] for a, b in pairs) / max(len(pairs), 1)
        return TO_CHOOSE / (TO_CHOOSE + math.sqrt(cells))

    @cached_property
    def again(self) -> bool:
        """Whether the next share measures all single columns once more: their noise is on every pair's table."""
        if not self.next_batch[0]:
            return False
        share, copies = self.next_batch[1], _copies(self.model.domain.sizes, self.plan["power"])
        _, precision = columns_measured(self.model.domain, self.tables)
        more = max(laplace_scale(self._law(len(copies), share)), 1e-9) ** -2
        gain, times = 0.0, np.bincount(copies)
        for v, p in enumerate(precision):
            counts = self.rows * self.pairs.table((v,))
            noise = [2 / math.sqrt(math.pi * q) for q in (p, p + times[v] * more)]
            now, then = ((counts * loud / (counts + loud)).sum() / (2 * self.rows) for loud in noise)
            gain += (len(precision) - 1) * (now**2 - then**2) / share
        return bool(gain > WORTH * self.gain)

    def _law(self, many: int, share: float) -> Laplace | Gaussian:
        """The noise where so many tables are measured together with this share."""
        law, parts = type(self.tables[0].law), many / self.plan["first"]
        less = math.pow(parts, 0.5 if law is Gaussian else 1.0) * (self.plan["columns"] / share) ** self.plan["power"]
        return law(self.plan["scale"] * less)

    @property
    def narrow_pairs(self) -> list[Clique]:
        sizes = self.model.domain.sizes
        return [c for c in combinations(range(len(sizes)), 2) if sizes[c[0]] * sizes[c[1]] <= LARGEST]

    @cached_property
    def cliques(self) -> list[Clique]:
        """Pairs that exact inference can hold beside what it has, and triples that it holds already.

        Where the last tables said little, it is all triples of such pairs: there may be what no pair shows.
        """
        sizes, present, pairs = self.model.domain.sizes, self.model.structure.cliques, self.narrow_pairs
        bags = [set(bag.variables) for bag in self.model.structure.plan.bags]
        limit = self.limit
        within = {c for bag in bags for c in combinations(sorted(bag), 2)}
        fitting = [c for c in pairs if c in within or self._fits(c, limit)]
        triples: set[Clique] = set()
        for bag in bags if len(present) > len(sizes) else ():
            for c in combinations(sorted(bag), 3):
                if math.prod(sizes[v] for v in c) <= LARGEST_TRIPLE:
                    triples.add(c)
        if self.unit > self.plan["unit"] and len(sizes) <= TRIED:
            narrow = (c for c in combinations(range(len(sizes)), 3) if math.prod(sizes[v] for v in c) <= LARGEST_TRIPLE)
            triples |= {c for c in narrow if set(fitting).issuperset(combinations(c, 2))}
        smallest = sorted(triples, key=lambda c: (math.prod(sizes[v] for v in c), c))[:MOST_TRIPLES]
        return fitting + sorted(smallest)

    @property
    def limit(self) -> float:
        """The most cells of the model: as large a part of `most` as will be spent after this round."""
        return self.most * min(1.0, max(0.1, 1 - self.left + self.unit * len(self.model.domain.names)))

    def _fits(self, pair: Clique, limit: float) -> bool:
        model = self.model
        part, sizes = model.parts, model.domain.sizes
        if part[pair[0]] != part[pair[1]]:
            return model.structure.plan.cells + sizes[pair[0]] * sizes[pair[1]] <= limit
        if len(sizes) > TRIED:
            return self._bound(pair) <= limit
        return cells_needed(sizes, (*model.structure.cliques, pair)) <= limit

    def _bound(self, pair: Clique) -> float:
        """Cells enough for the pair: its first column added to every bag on the way to the second's."""
        plan, sizes = self.model.structure.plan, self.model.domain.sizes
        above = [bag.above.bag if bag.above is not None else -1 for bag in plan.bags]
        ways = []
        for v in pair:
            at = max(i for i, bag in enumerate(plan.bags) if v in bag.variables)
            way = [at]
            while above[way[-1]] >= 0:
                way.append(above[way[-1]])
            ways.append(way)
        common = set(ways[0]) & set(ways[1])
        path = [i for way in ways for i in way if i not in common] + [min(common)]
        wider = min(sizes[v] for v in pair)
        return plan.cells + sum(math.prod(plan.bags[i].shape) * (wider - 1) for i in path)

    @property
    def candidates(self) -> dict[str, Sequence[object]]:
        """The columns of each clique, `names`, the counts `expected` over them, and `penalties`, what noise takes."""
        cliques = self.cliques if self.many and not self.again else []
        loud = OF_NOISE * mean_size(self._law(self.next_batch[0], self.next_batch[1] * (1 - self.of_choosing)))
        expected = [self.rows * self.pairs.table(clique) for clique in cliques]
        return {
            "names": list(map(self.model.domain.names_of, cliques)), "expected": expected,
            "penalties": [loud * e.size * (OF_TRIPLES if e.ndim > 2 else 1.0) for e in expected],
        }  # fmt: skip


def search_begun(
    model: GraphicalModel, tables: Sequence[Any], plan: Mapping[str, Any], most: float,
    prior: GraphicalModel | None = None,
) -> TableSearch:  # fmt: skip
    """The search after noisy tables of the plan's `cliques` at its places `measured`, or of each column once.

    `prior`: a model of public rows with the same columns and values.
    """
    domain = model.domain
    if prior is not None and prior.domain != domain:
        raise KernelError("a prior has the columns and the values of the table, described alike and in the same order")
    cliques = [domain.clique(names) for names in plan.get("cliques", [[name] for name in domain.names])]
    places = [int(v) for v in plan.get("measured", range(len(tables)))]
    law, first = law_of(tables[0]), [Table(cliques[v], t, law_of(t)) for v, t in zip(places, tables, strict=True)]
    plan = {name: float(share) for name, share in plan.items() if name not in ("measured", "cliques")}
    plan |= {"scale": float(law.scale), "first": float(len(places))}
    silent = {(v,) for v in range(len(domain.sizes))} - {t.clique for t in first}
    first += [Table(c, np.zeros(domain.sizes[c[0]]), type(law)(UNMEASURED)) for c in silent]
    measured = sorted(_by_precision(first), key=lambda t: (len(t.clique), t.clique))
    rows = rows_in([t.noisy for t in measured])
    measured = expected_of_columns(domain, measured, rows, prior)
    fitted = shrunken_model(domain, measured, rows, prior=prior)
    pairs, tables = PairTables(fitted.calibrated), tuple(measured)
    return TableSearch(fitted, pairs, tables, plan, float(most), plan["left"], plan["unit"], prior=prior)


def _by_precision(tables: Iterable[Table]) -> tuple[Table, ...]:
    """One table a clique, of all that were measured of it."""
    by_clique: dict[Clique, Table] = {}
    for table in tables:
        before = by_clique.get(table.clique)
        by_clique[table.clique] = table if before is None else before.with_more(table)
    return tuple(by_clique.values())


def chosen_cliques(search: TableSearch, places: object) -> dict[str, object]:
    """The candidates at these places, in order, but for those that do not fit beside those before.

    Where noise grows with the tables, also but for those whose columns the ones before connect: when these are known,
    they may say little. `cliques`: names; `share`: the part of the batch's share that measures them. What the others
    would have had is left for later, unless there is no later.
    """
    domain = search.model.domain
    cliques = search.model.structure.cliques
    forest = search.plan["power"] > 0.9 and search.plan["scale"] > 0
    picks = [[domain.names[v]] for v in _copies(domain.sizes, search.plan["power"])] if search.again else []
    for place in np.atleast_1d(np.asarray(places, dtype=float)).astype(int):
        clique = search.cliques[place]
        wider = cliques if clique in cliques else (*cliques, clique)
        if forest and not joining_places(domain.names, picks, [domain.names_of(clique)]):
            continue
        if not picks or wider is cliques or cells_needed(domain.sizes, wider) <= search.limit:
            cliques = wider
            picks.append(domain.names_of(clique))
    return {"cliques": picks, "share": search.measuring(len(picks))}


def search_continued(search: TableSearch, cliques: Sequence[Any], tables: Sequence[Any]) -> TableSearch:
    """The search after the tables of `chosen_cliques`, measured with `share`."""
    domain: Domain = search.model.domain
    share = search.next_batch[1] * (search.of_choosing + search.measuring(len(cliques)))
    places = [domain.clique(names) for names in cliques]
    new = (Table(c, t, law_of(t), search.rows * search.pairs.table(c)) for c, t in zip(places, tables, strict=True))
    measured = _by_precision((*search.tables, *new))
    rows = rows_in([t.noisy for t in measured])
    left = max(0.0, search.left - share)
    last = left <= LEAST_LEFT or search.round == MOST_ROUNDS
    fitted = shrunken_model(domain, measured, rows, search.model, search.prior, last)
    after = replace(
        search, model=fitted, pairs=PairTables(fitted.calibrated), tables=measured, left=left, round=search.round + 1
    )  # fmt: skip
    if search.again:
        return after
    moved = (np.abs(after.pairs.table(c) - search.pairs.table(c)).sum() / 2 for c in search.narrow_pairs)
    shifts = (np.abs(rows * after.pairs.table(c) - search.rows * search.pairs.table(c)).sum() for c in places)
    informative = sum(s > mean_size(law_of(t)) * np.size(t) for s, t in zip(shifts, tables, strict=True))
    more = 2.0 if 2 * informative < len(places) else 1.0
    return replace(after, unit=search.unit * more, gain=sum(m**2 for m in moved) / share)


def mean_size(law: Laplace | Gaussian) -> float:
    return law.scale * (math.sqrt(2 / math.pi) if isinstance(law, Gaussian) else 1.0)


def joining_places(
    names: Sequence[str], chosen: Sequence[Sequence[str]], cliques: Sequence[Sequence[str]]
) -> list[float]:
    """The places of those `cliques` that join two or more parts of what `chosen` ones connect so far, in order."""
    part = {name: i for i, name in enumerate(names)}
    for clique in chosen:
        joined = {part[name] for name in clique}
        part = {name: min(joined) if at in joined else at for name, at in part.items()}
    return [float(place) for place, clique in enumerate(cliques) if len({part[name] for name in clique}) > 1]


def expected_counts(model: GraphicalModel, names: object, rows: float) -> object:
    """The table that a model expects of `rows` rows."""
    return max(float(rows), 0.0) * model.marginal(names)
