"""A graphical model as a value: `model(domain, cliques)` is uniform; learning gives others over the same cliques.

>>> m = graphical_model({"a": 2, "b": 3}, [["a", "b"]])
>>> float(m.probability({"a": 0.0})), round(m.log_partition, 4)
(0.5, 1.7918)

Its synthetic rows are drawn by randomised rounding, bag by bag from the root of the junction tree: rows that agree on
what is known are spread over the values to come in the proportions of the conditional table. They are taken in
turn along its cumulative sum from a random start. So every table of a bag given its parent has each of its counts
within 1 of what is expected. Where rows are few, what is within 1 in each adds up: values are then moved from row to
row while that brings the tables of all pairs of columns nearer.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import cached_property, reduce
from itertools import combinations, pairwise
from operator import getitem
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jostle.kernels import KernelError, Model, members
from jostle.kernels.arrays import Floats, Ints
from jostle.kernels.graphical.domain import Domain, Structure, TiedStructure, tie_cliques
from jostle.kernels.graphical.junction import Calibrated, PairTables, calibrate, plan
from jostle.kernels.noisy_array import NoiseModel, noise_of, with_noise


class SyntheticRows(Model):
    """Rows drawn from a model. `rows.column("age")`, `rows.size`; in Python `frame()` and `codes`."""

    jostle_kind = "synthetic rows"
    jostle_members = members("size columns column table")

    def __init__(self, domain: Domain, codes: Ints) -> None:
        self.domain, self.codes = domain, codes

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def size(self) -> int:
        return len(self.codes)

    @property
    def columns(self) -> tuple[str, ...]:
        return self.domain.names

    def column(self, name: str) -> list[Any]:
        place = self.domain.place(name)
        values = self.domain.values[place]
        return [values[code] for code in self.codes[:, place]]

    def table(self, *names: object) -> NDArray[np.float64]:
        """Counts over some variables, or a list of them, in their order."""
        members = names[0] if len(names) == 1 and not isinstance(names[0], str) else names
        clique = self.domain.clique(members)
        shape = tuple(self.domain.sizes[v] for v in clique)
        place = np.ravel_multi_index(tuple(self.codes[:, v] for v in clique), shape)
        return np.bincount(place, minlength=int(np.prod(shape))).reshape(shape).astype(float)

    def frame(self) -> object:
        """A pandas frame: whole numbers as integers, texts as categories in the order of their domain."""
        import pandas

        columns: dict[str, Any] = {}
        for place, (name, values) in enumerate(zip(self.domain.names, self.domain.values, strict=True)):
            codes = self.codes[:, place]
            if all(isinstance(v, float) for v in values):
                whole = all(v.is_integer() for v in values)
                columns[name] = np.array(values)[codes].astype(np.int64 if whole else np.float64)
            else:
                columns[name] = pandas.Categorical.from_codes(codes, categories=list(values))
        return pandas.DataFrame(columns)

    def jostle_records(self) -> list[dict[str, object]]:
        """A record of each row, as `table(rows)` takes them."""
        columns = list(zip(self.domain.names, self.domain.values, strict=True))
        return [{name: values[code] for (name, values), code in zip(columns, row, strict=True)} for row in self.codes]

    def as_json(self) -> list[dict[str, object]]:
        columns = [[_plain(v) for v in values] for values in self.domain.values]
        return [dict(zip(self.domain.names, map(getitem, columns, row), strict=True)) for row in self.codes.tolist()]

    def __str__(self) -> str:
        return f"{len(self):,} synthetic rows of {', '.join(self.domain.names)}"


def _plain(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


WORK, MOST_PAIRED = 2e8, 100
"""Cells that are looked up, and columns, up to which a sample is brought nearer to the model's pairs."""
TURNS, MOVED_AT_ONCE, SETTLED = 40, 60, 1e-4
"""Of columns; the part of rows that may move in one; the part of values of which fewer moved in the last turn."""
IMPOSSIBLE = 1e9


def paired_sample(calibrated: Calibrated, rows: int, seed: int) -> Ints:
    """A stratified sample, whose values are moved while tables of pairs come nearer to the expected, in squares."""
    rng, sizes = np.random.default_rng(seed), calibrated.plan.sizes
    codes: Ints = sample(calibrated, rows, rng, stratified=True)[rng.permutation(rows)]
    columns = len(sizes)
    turns = min(TURNS, int(WORK / (rows * columns * sum(sizes))))
    if not 1 < columns <= MOST_PAIRED or turns < 1:
        return codes
    pairs, excess = PairTables(calibrated), {}
    for u, v in combinations(range(columns), 2):
        shape, expected = (sizes[u], sizes[v]), rows * pairs.table((u, v))
        counts = np.bincount(codes[:, u] * sizes[v] + codes[:, v], minlength=sizes[u] * sizes[v]).reshape(shape)
        excess[u, v] = np.where(expected > 0, counts - expected, IMPOSSIBLE)
        excess[v, u] = excess[u, v].T
    rng = np.random.default_rng([seed, 1])
    for _ in range(turns):
        if sum(_moved(codes, excess, int(v)) for v in rng.permutation(columns)) < SETTLED * codes.size:
            break
    return codes


def _moved(codes: Ints, excess: Mapping[tuple[int, int], Floats], v: int) -> int:
    """How many values of column v were moved: those by which most is gained, fewer where together they overshoot."""
    others, column = [u for u in range(codes.shape[1]) if u != v], codes[:, v]
    each, size = np.arange(len(codes)), excess[others[0], v].shape[1]
    crowded = np.zeros((len(codes), size))
    for u in others:
        crowded += excess[u, v][codes[:, u]]
    best = crowded.argmin(axis=1)
    gain = crowded[each, column] - crowded[each, best] - len(others)
    places = np.argsort(-gain, kind="stable")[: max(1, len(codes) // MOVED_AT_ONCE)]
    places = places[gain[places] > 1e-9]
    while len(places):
        changes = {}
        for u in others:
            line, many = codes[places, u] * size, excess[u, v].size
            to, off = (np.bincount(line + values[places], minlength=many) for values in (best, column))
            changes[u] = (to - off).reshape(excess[u, v].shape)
        less = -sum(float((c * (2 * excess[u, v] + c)).sum()) for u, c in changes.items())
        if less > gain[places].sum():  # half of what the moves would bring one by one
            for u, change in changes.items():
                excess[u, v][...] += change
            codes[places, v] = best[places]
            return len(places)
        places = places[: len(places) // 2]
    return 0


def sample(calibrated: Calibrated, rows: int, rng: np.random.Generator, *, stratified: bool) -> Ints:
    """(rows, variables) positions of values, each row independently of the others if they are not stratified."""
    plan = calibrated.plan
    positions = np.zeros((rows, len(plan.sizes)), dtype=np.int64)
    for bag, conditional in zip(reversed(plan.bags), reversed(calibrated.conditionals), strict=True):
        own, shared = bag.variables[: bag.own], bag.variables[bag.own :]
        state = np.zeros(rows, dtype=np.int64)
        if shared:
            state = np.ravel_multi_index(tuple(positions[:, v] for v in shared), bag.shape[bag.own :])
        states = _spread(conditional.T, state, rng, stratified)
        for v, values in zip(own, np.unravel_index(states, bag.shape[: bag.own]), strict=True):
            positions[:, v] = values
    return positions


def _spread(conditional: NDArray[np.float64], state: Ints, rng: np.random.Generator, stratified: bool) -> Ints:
    """A column for every row, in the proportions of the row's line of `conditional`, stratified within each line."""
    order = rng.permutation(len(state))
    order = order[np.argsort(state[order], kind="stable")]
    lines, first, many = np.unique(state[order], return_index=True, return_counts=True)
    within = np.arange(len(state)) - np.repeat(first, many)
    starts = np.repeat(rng.random(len(lines)), many)
    point = (within + starts) / np.repeat(many, many) if stratified else rng.random(len(state))
    sums = np.cumsum(conditional[lines], axis=1)
    sums /= sums[:, -1:]
    flat = (sums + np.arange(len(lines))[:, None]).ravel()
    at = np.repeat(np.arange(len(lines)), many)
    column = np.searchsorted(flat, at + point, side="right") - at * conditional.shape[1]
    columns = np.empty(len(state), dtype=np.int64)
    columns[order] = np.clip(column, 0, conditional.shape[1] - 1)
    return columns


MOST_ROWS = 10**7
LONGEST = 1000


NOTES = "learned rows noise warning ridge steps measured"
"""What the notes of a model may say of how it was learned; what they do not is none."""


class GraphicalModel(Model):
    """p(x) = exp(Σ_C θ_C(x_C) − A(θ)). `theta`: the flat log-potentials. Public; nothing here meets data."""

    jostle_kind = "a graphical model"
    jostle_members = members(
        "variables cliques log_partition potentials joined marginal probability conditional sample kl log_likelihood "
        f"inference treewidth cells {NOTES}", marginals="tables",
    )  # fmt: skip

    def __init__(
        self, structure: Structure, theta: Floats | None = None, notes: Mapping[str, Any] | None = None,
        ties: TiedStructure | None = None,
    ):  # fmt: skip
        self.structure, self.ties = structure, ties
        self.theta = np.zeros(sum(structure.lengths)) if theta is None else np.asarray(theta, dtype=np.float64)
        self.notes = dict(notes or {})

    @property
    def learning(self) -> Structure | TiedStructure:
        """The structure that learning sees: the cliques, or groups of them that share a potential."""
        return self.structure if self.ties is None else self.ties

    def with_potentials(self, theta: Floats, notes: Mapping[str, object] | None = None) -> GraphicalModel:
        """The model of these potentials of `learning`."""
        return GraphicalModel(self.structure, self.learning.potentials(theta), notes, self.ties)

    @property
    def domain(self) -> Domain:
        return self.structure.domain

    def __getattr__(self, name: str) -> object:
        """A note, as a program reads it."""
        if name not in NOTES.split():
            raise AttributeError(name)
        return self.notes.get(name, "" if name in ("learned", "warning") else None)

    @property
    def variables(self) -> tuple[str, ...]:
        return self.domain.names

    @property
    def cliques(self) -> list[list[str]]:
        return [self.domain.names_of(c) for c in self.structure.cliques]

    @property
    def potentials(self) -> list[Floats]:
        return self.structure.split(self.theta)

    @property
    def joined(self) -> Floats:
        """The marginal tables of all cliques, end to end."""
        return self._inferred[1]

    @property
    def inference(self) -> str:
        return self.structure.inference

    @property
    def treewidth(self) -> float | None:
        """That of the junction tree; none where inference is not exact."""
        return float(self.structure.plan.treewidth) if self.inference == "exact" else None

    @property
    def cells(self) -> float | None:
        """Those of the junction tree; none where inference is not exact."""
        return float(self.structure.plan.cells) if self.inference == "exact" else None

    @cached_property
    def calibrated(self) -> Calibrated:
        """The junction tree's tables; exact, also for a model that is learned by loopy inference."""
        return calibrate(plan(self.domain.sizes, self.structure.cliques), self.structure.split(self.theta))

    @property
    def log_partition(self) -> float:
        return self._inferred[0]

    @property
    def tables(self) -> list[Floats]:
        """The marginal table of every clique; each sums to 1."""
        return self.structure.split(self._inferred[1])

    def marginal(self, *names: object) -> Floats:
        """The probability table over any variables, in their order."""
        members = names[0] if len(names) == 1 and not isinstance(names[0], str) else names
        clique = self.domain.clique(members)
        return self._over(clique)

    def probability(self, event: object, given: object = None) -> float:
        """P(event | given), records of variables with a value or a set of values: `{age: 3, sex: "Female"}`."""
        evidence = self._masks(given or {})
        both = self._masks(event)
        for v, mask in evidence.items():
            both[v] = both[v] & mask if v in both else mask
        condition = self._log_mass(evidence)
        if condition == -math.inf:
            raise KernelError("what is given has probability 0")
        return math.exp(self._log_mass(both) - condition)

    def conditional(self, names: object, given: object) -> Floats:
        """The table over some variables, given values (or sets of values) of others; it sums to 1."""
        clique = self.domain.clique(names)
        evidence = self._masks(given)
        if self._log_mass(evidence) == -math.inf:
            raise KernelError("what is given has probability 0")
        return self._with(evidence, clique).marginals()[len(self.structure.cliques)]

    def sample(self, rows: float, seed: float = 0) -> SyntheticRows:
        """`rows` synthetic rows, with the model's pairs of columns as nearly as they are looked for; seeded."""
        if not float(rows).is_integer() or not 1 <= rows <= MOST_ROWS:
            raise KernelError(f"a sample has a whole number of rows from 1 to {MOST_ROWS:,}, not {rows}")
        return SyntheticRows(self.domain, paired_sample(self.calibrated, int(rows), int(seed)))

    def kl(self, other: GraphicalModel) -> float:
        """D(this ‖ other) in nats, for another model over the same variables and values."""
        if not isinstance(other, GraphicalModel) or other.domain != self.domain:
            raise KernelError("two models are compared over the same variables and values")
        if other.structure.cliques == self.structure.cliques:
            mu = self._inferred[1]
            own, others = float(self.theta @ mu), float(other.theta @ mu)
        else:
            own = float(self.theta @ self._inferred[1])
            pairs = zip(other.structure.cliques, other.structure.split(other.theta), strict=True)
            others = sum(float((self._over(c) * potential).sum()) for c, potential in pairs)
        return max(0.0, own - self.log_partition - others + other.log_partition)

    def log_likelihood(self, data: Any) -> float:
        """The mean log-probability of public rows: synthetic rows, a frame, or tables of counts, one a clique.

        Where cliques are tied, one table a group will do: the mean of its cliques' tables.
        """
        if isinstance(data, SyntheticRows):
            tables = [data.table(*self.domain.names_of(c)) for c in self.structure.cliques]
        elif hasattr(data, "columns") and hasattr(data, "itertuples"):
            return self.log_likelihood(encode_frame(self.domain, data))
        else:
            tables = list(data)
        if self.ties is not None and len(tables) == len(self.ties.groups) < len(self.structure.cliques):
            tables = self.ties.spread(tables)
        counts = self.structure.joined(tables)
        first = counts[: self.structure.lengths[0]].sum() if counts.size else 0.0
        if not first > 0:
            raise KernelError("the likelihood of no rows has no value")
        return float(self.theta @ counts) / float(first) - self.log_partition

    def frame(self, rows: int, seed: int = 0) -> object:
        """Synthetic rows as a pandas frame."""
        return self.sample(rows, seed).frame()

    def as_json(self) -> dict[str, object]:
        return {
            "kind": "graphical model",
            "domain": {n: list(v) for n, v in zip(self.domain.names, self.domain.values, strict=True)},
            "cliques": [self.domain.names_of(c) for c in self.structure.cliques],
            "potentials": [t.tolist() for t in self.structure.split(self.theta)],
            **({"notes": self.notes} if self.notes else {}),
        }  # fmt: skip

    def __str__(self) -> str:
        many = len(self.structure.cliques)
        return f"graphical model of {len(self.domain.names)} variables and {many} clique{'s' * (many != 1)}"

    @cached_property
    def _inferred(self) -> tuple[float, Floats]:
        return self.structure.infer(self.theta)

    def _masks(self, event: object) -> dict[int, NDArray[np.bool_]]:
        if not isinstance(event, Mapping):
            raise KernelError("an event is a record of variables with values, such as {age: 3}")
        masks = {}
        for name, values in event.items():
            v = self.domain.place(name)
            several = not isinstance(values, (str, bool, int, float)) and isinstance(values, Iterable)
            mask = np.zeros(self.domain.sizes[v], dtype=bool)
            mask[[self.domain.code(v, value) for value in (values if several else [values])]] = True
            masks[v] = mask
        return masks

    def _with(self, masks: Mapping[int, NDArray[np.bool_]], clique: tuple[int, ...] | None = None) -> Calibrated:
        """Calibrated with evidence, over one more clique where one is given."""
        extra = [clique] if clique is not None else []
        potentials = [*self.structure.split(self.theta)]
        if clique is not None:
            potentials.append(np.zeros([self.domain.sizes[v] for v in clique]))
        with np.errstate(divide="ignore"):
            potentials += [np.log(mask.astype(float)) for mask in masks.values()]
        cliques = (*self.structure.cliques, *extra, *((v,) for v in masks))
        return calibrate(plan(self.domain.sizes, cliques), potentials)

    def _log_mass(self, masks: Mapping[int, NDArray[np.bool_]]) -> float:
        return self._with(masks).log_partition if masks else self.calibrated.log_partition

    def _over(self, clique: tuple[int, ...]) -> Floats:
        if clique in self.structure.cliques:
            return self.tables[self.structure.cliques.index(clique)]
        parts = [self.parts[v] for v in clique]
        if len(clique) > 1 and len(set(parts)) == len(clique):  # no two of them are connected
            return np.asarray(reduce(np.multiply.outer, [self._over((v,)) for v in clique]))
        return self._with({}, clique).marginals()[-1]

    @cached_property
    def parts(self) -> dict[int, int]:
        """For each variable, a number that it shares with those it is connected with by cliques."""
        part = {v: v for v in range(len(self.domain.names))}
        for clique in self.structure.cliques:
            joined = {part[v] for v in clique}
            part = {v: min(joined) if at in joined else at for v, at in part.items()}
        return part


def encode_frame(domain: Domain, frame: Any) -> SyntheticRows:
    """A pandas frame's rows as positions of the domain's values; ValueError on a value outside it."""
    codes = np.empty((len(frame), len(domain.names)), dtype=np.int64)
    for place, name in enumerate(domain.names):
        positions = {value: i for i, value in enumerate(domain.values[place])}
        try:
            codes[:, place] = [positions[v if isinstance(v, str) else float(v)] for v in frame[name]]
        except KeyError as missing:
            raise KernelError(f"`{name}` has no value {missing}") from None
    return SyntheticRows(domain, codes)


def graphical_model(domain: object, cliques: object, inference: str = "exact", groups: object = None) -> GraphicalModel:
    """The uniform model over a domain and its cliques; ValueError where exact inference cannot fit.

    `groups`: lists of places of cliques, those of one list to share one potential.
    """
    described = Domain.of(domain)
    structure = Structure(described, described.cliques(cliques), inference)
    return GraphicalModel(structure, ties=None if groups is None else tie_cliques(structure, groups))


def steady_chain(values: object, length: float) -> GraphicalModel:
    """The uniform chain of `length` places in time: a potential for the first, one for all steps between neighbours."""
    many = int(length)
    if not 2 <= many <= LONGEST:
        raise KernelError(f"a chain has 2 to {LONGEST} places in time, not {length}")
    names = [f"t{i}" for i in range(1, many + 1)]
    cliques = [names[:1], *([a, b] for a, b in pairwise(names))]
    return graphical_model(dict.fromkeys(names, values), cliques, "exact", [[0], list(range(1, many))])


def steady_tables(steps: Any) -> list[Floats]:
    """The table of first places and that of steps, for `steady_chain`, of noisy or public steps (from, to) alone.

    In a chain that is the same at all times a place is as likely first as at any step's start. The margin's noise is
    that of a row of cells; it is no new measurement.
    """
    table = np.asarray(steps, dtype=float)
    if table.ndim != 2 or table.shape[0] != table.shape[1]:
        raise KernelError("steps are a square table, from and to")
    starts, noise = table.sum(axis=1), noise_of(steps)
    if noise is None:
        return [starts, table]
    return [with_noise(starts, NoiseModel(type(noise.law)(noise.law.scale * math.sqrt(len(table))))), steps]
