"""The search for tables of two and three columns that a model lacks: what is measured next, and the model of it all.

After AIM (McKenna, Mullins, Sheldon, Miklau, *AIM: an adaptive and iterative mechanism for differentially private
synthetic data*, VLDB 2022): of the tables that the model so far is worst at, less what noise would do to them, some
are measured; where they say little beyond their noise, the next ones get more. Here they are chosen and measured
several at a time, and drawn by empirical Bayes towards what the model expected before, so that a table that noise
explains changes nothing. All of it is calculated of released numbers; the language selects among candidates privately.
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
from jostle.kernels import KernelError
from jostle.kernels.graphical.domain import Clique, Domain
from jostle.kernels.graphical.junction import PairTables, cells_needed
from jostle.kernels.graphical.learn import rows_in
from jostle.kernels.graphical.model import GraphicalModel
from jostle.kernels.graphical.shrunken import Table, columns_of, shrunken_model
from jostle.kernels.noisy_array import law_of
from jostle.noise_laws import Gaussian, Laplace

NO_PAIRS, ALL_PAIRS = (60.0, 8.0), (200.0, 25.0)
"""Rows in units of a column's noise: up to which no pair is worth its price, and from which a whole tree is.

Where noise grows with the tables, and where it grows with their root. There four times as many are needed beside a
column to predict: where pairs are few, all of them are with it, and what is spent is better spent on fewer.
"""
OF_ROWS = 1 / 50
"""The share that counts the rows."""
OF_COLUMNS = (0.15, 0.25)
"""The share of single columns where pairs are worth theirs: noise that grows with the tables, and with their root."""
OF_CHOOSING = 0.1
MOST_ROUNDS = 24
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


def search_plan(strength: float, model: GraphicalModel, power: float, predict: str | None = None) -> dict[str, object]:
    """What `search_begun` takes: `columns`, the share of them, and `unit`, that of each table to begin with.

    `measured`: the places of the columns to measure in one. Where noise falls with the root of a share, a column of
    many values is there several times, in proportion: the noise of all its cells together counts.
    `strength`: the rows in units of a column's noise. `power`: noise falls with the share to that power. Settled on
    public tables (docs/experiments/synthesis.md).
    """
    sizes = model.domain.sizes
    columns = len(sizes)
    s = max(float(strength), 1.0) if math.isfinite(strength) else 1e12
    falls = float(np.clip(power, 0.5, 1.0)) if math.isfinite(power) else 1.0
    more = 4.0 if predict is not None and falls < 0.9 else 1.0
    least, most = more * NO_PAIRS[falls < 0.9], more * ALL_PAIRS[falls < 0.9]
    worth = float(np.clip(math.log(s / least) / math.log(most / least), 0.0, 1.0)) if columns > 1 else 0.0
    share = (1 - OF_ROWS) * (1 - (1 - OF_COLUMNS[falls < 0.9]) * worth)
    left = 1 - OF_ROWS - share
    some = round(worth * (columns - 1)) if worth < 1 else columns / float(np.clip(4 / math.sqrt(s), 1 / 8, 1 / 3))
    if some < 1:
        share, left = 1 - OF_ROWS, 0.0
    most_times = MOST_REPEATED if falls < 0.9 else 1
    times = [int(np.clip(round(size / max(min(sizes), 2)), 1, most_times)) for size in sizes]
    return {
        "columns": share, "unit": left / max(some, 1.0), "left": left, "rounds": MOST_ROUNDS,
        "power": falls, "measured": [v for v, many in enumerate(times) for _ in range(many)],
    }  # fmt: skip


@dataclass(frozen=True, eq=False)
class TableSearch:
    """A model, the tables it was learned from, and which could be measured next. Public.

    `many` of `candidates` are to be chosen and measured with `share`, one tenth of it for choosing.
    """

    jostle_kind = "a search for tables"

    model: GraphicalModel
    pairs: PairTables
    tables: tuple[Table, ...]
    plan: Mapping[str, Any]
    most: float
    left: float
    unit: float
    round: int = 1
    predict: int = -1
    """The place of a column whose tables come first; −1: of none."""
    prior: GraphicalModel | None = None
    """A model of public rows: what is expected before anything is measured."""
    gain: float = math.inf
    """What the last tables of several columns moved, squared and over all pairs, for each part of the amount."""

    @property
    def jostle_fields(self) -> dict[str, object]:
        many, share = self.next_batch
        return {
            "model": self.model, "many": float(many), "share": share, "of_choosing": self.of_choosing,
            "candidates": self.candidates if many and not self.again else [], "left": self.left, "again": self.again,
        }  # fmt: skip

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
        if columns < 2 or self.left <= 1e-6 or self.unit <= 0 or self.round > MOST_ROUNDS:
            return 0, 0.0
        late = self._of_predicted_alone or self.left < self.plan["left"] / 2
        some = columns if late else max(2, math.ceil(columns / SOME))
        some *= 1 if self.plan["scale"] else OF_EXACT
        many = min(some, max(1, int(self.left / self.unit + 1e-6)), len(self.cliques))
        if len(self.cliques) <= columns and not self._of_predicted_alone:
            many = len(self.cliques)
        share = min(self.left, many * self.unit)
        all_there_are = len(self.cliques) <= many and not self._of_predicted_alone
        last = self.round == MOST_ROUNDS or self.left - share < share / 2 or all_there_are
        return many, self.left if last else share

    def measuring(self, count: int) -> float:
        """The part of the batch's share that measures so many tables of it."""
        many, share = self.next_batch
        all_of_it = self.again or self.round == MOST_ROUNDS or (share == self.left and count >= MOST_FIT * many)
        return (1 - self.of_choosing) * (1.0 if all_of_it else count / many)

    @property
    def of_choosing(self) -> float:
        return 0.0 if self.again else OF_CHOOSING

    @cached_property
    def again(self) -> bool:
        """Whether the next share measures all single columns once more: their noise is on every pair's table."""
        if not self.next_batch[0]:
            return False
        share, law = self.next_batch[1], type(self.tables[0].law)(self.plan["scale"])
        _, precision = columns_of(self.model.domain, self.tables, self.rows, self.prior)
        more = (share / self.plan["columns"]) ** (2 * self.plan["power"]) / max(laplace_scale(law), 1e-9) ** 2
        gain, times = 0.0, np.bincount(self.plan["measured"])
        for v, p in enumerate(precision):
            counts = self.rows * self.pairs.table((v,))
            noise = [2 / math.sqrt(math.pi * q) for q in (p, p + times[v] * more)]
            now, then = ((counts * loud / (counts + loud)).sum() / (2 * self.rows) for loud in noise)
            gain += (len(precision) - 1) * (now**2 - then**2) / share
        return bool(gain > WORTH * self.gain)

    @property
    def _of_predicted_alone(self) -> bool:
        """Whether this round is for pairs of the column to predict, of which there are others to follow."""
        return self.predict >= 0 and self.round == 1 and len(self.model.domain.names) > 2

    def noise(self, many: int, share: float) -> float:
        """The mean size of the noise on a cell, where so many tables are measured together with this share."""
        law, parts = type(self.tables[0].law), many / len(self.plan["measured"])
        less = math.pow(parts, 0.5 if law is Gaussian else 1.0) * (self.plan["columns"] / share) ** self.plan["power"]
        return float(mean_size(law(self.plan["scale"])) * less)

    @property
    def narrow_pairs(self) -> list[Clique]:
        sizes = self.model.domain.sizes
        return [c for c in combinations(range(len(sizes)), 2) if sizes[c[0]] * sizes[c[1]] <= LARGEST]

    @cached_property
    def cliques(self) -> list[Clique]:
        """Pairs that exact inference can hold beside what it has, and triples that it holds already."""
        sizes, present, pairs = self.model.domain.sizes, self.model.structure.cliques, self.narrow_pairs
        if self._of_predicted_alone:
            pairs = [c for c in pairs if self.predict in c] or pairs
        bags = [set(bag.variables) for bag in self.model.structure.plan.bags]
        limit = self.limit
        fitting = [c for c in pairs if any(set(c) <= bag for bag in bags) or self._fits(c, limit)]
        triples: set[Clique] = set()
        for bag in bags if len(present) > len(sizes) else ():
            for c in combinations(sorted(bag), 3):
                if math.prod(sizes[v] for v in c) <= LARGEST_TRIPLE:
                    triples.add(c)
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

    @cached_property
    def candidates(self) -> list[dict[str, object]]:
        """For each clique its `names`, the counts `expected` of it, and what noise takes of it."""
        loud = self.noise(self.next_batch[0], self.next_batch[1] * (1 - OF_CHOOSING))
        entries = []
        for clique in self.cliques:
            expected = self.rows * self.pairs.table(clique)
            names = self.model.domain.names_of(clique)
            more = OF_TRIPLES if len(clique) > 2 and self.predict not in clique else 1.0
            penalty = OF_NOISE * loud * expected.size * more
            entries.append({"names": names, "expected": expected, "penalty": penalty})
        return entries


def search_begun(
    model: GraphicalModel, tables: Sequence[Any], plan: Mapping[str, Any], most: float, predict: str | None = None,
    prior: GraphicalModel | None = None,
) -> TableSearch:  # fmt: skip
    """The search after noisy tables of the columns that the plan lists as `measured`, or of each once.

    `predict`: a column whose tables come first. `prior`: a model of public rows with the same columns and values.
    """
    if prior is not None and prior.domain != model.domain:
        raise KernelError("a prior has the columns and the values of the table, described alike and in the same order")
    places = [int(v) for v in plan.get("measured", range(len(tables)))]
    plan = {name: float(share) for name, share in plan.items() if name != "measured"} | {"measured": places}
    plan["scale"] = float(law_of(tables[0]).scale)
    measured = _by_precision(Table((v,), t, law_of(t)) for v, t in zip(places, tables, strict=True))
    fitted = shrunken_model(model.domain, measured, rows_in([t.noisy for t in measured]), prior=prior)
    place = -1 if predict is None else model.domain.place(predict)
    left, unit, pairs = plan["left"], plan["unit"], PairTables(fitted.calibrated)
    return TableSearch(fitted, pairs, measured, plan, float(most), left, unit, predict=place, prior=prior)


def _by_precision(tables: Iterable[Table]) -> tuple[Table, ...]:
    """One table a clique, of all that were measured of it."""
    by_clique: dict[Clique, Table] = {}
    for table in tables:
        before = by_clique.get(table.clique)
        by_clique[table.clique] = table if before is None else before.with_more(table)
    return tuple(by_clique.values())


def chosen_cliques(search: TableSearch, places: object) -> dict[str, object]:
    """The candidates at these places, in order, but for those that do not fit beside those before.

    `cliques`: their names; `share`: the part of the batch's share that measures them. Where some do not fit, theirs is
    left for later, unless there is no later.
    """
    domain = search.model.domain
    cliques = search.model.structure.cliques
    picks: list[list[str]] = [[domain.names[v]] for v in search.plan["measured"]] if search.again else []
    for place in np.atleast_1d(np.asarray(places, dtype=float)).astype(int):
        clique = search.cliques[place]
        wider = cliques if clique in cliques else (*cliques, clique)
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
    fitted = shrunken_model(domain, measured, rows, search.model, search.prior)
    after = replace(
        search, model=fitted, pairs=PairTables(fitted.calibrated), tables=measured,
        left=max(0.0, search.left - share), round=search.round + 1,
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
    names: Sequence[str], chosen: Sequence[Sequence[str]], pairs: Sequence[Sequence[str]]
) -> list[float]:
    """The places of those `pairs` that join two parts of the forest that `chosen` pairs make so far, in order."""
    part = {name: i for i, name in enumerate(names)}
    for a, b in chosen:
        old, new = part[a], part[b]
        part = {name: new if at == old else at for name, at in part.items()}
    return [float(place) for place, (a, b) in enumerate(pairs) if part[a] != part[b]]


def expected_counts(model: GraphicalModel, names: object, rows: float) -> object:
    """The table that a model expects of `rows` rows."""
    return max(float(rows), 0.0) * model.marginal(names)
