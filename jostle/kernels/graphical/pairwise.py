"""Pairwise fields over small alphabets, as public values: p(x) ∝ exp(Σ_{i<j} W_ij(x_i, x_j) + Σ_i θ_i(x_i)).

Tables are reported with rows and columns that sum to zero, which makes them unique: what is taken out goes into θ. From
noisy tables of all pairs log Z(W, θ) − Σ W·m − Σ θ·m + (ridge/2)‖(W, θ)‖² is minimised, convex, by L-BFGS over all
listed states: its slope is the model's tables of one and two variables less the noisy ones. The ridge is that of
`ising`.

Frank–Wolfe over an ℓ₁ ball ends in a sparse logistic model. A step goes to a vertex ±R·e_j of {w: ‖w‖₁ ≤ R}; which one
is chosen outside, with noise, from the sum of gradients over private rows. What is here knows the chosen vertices only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from jostle.kernels import KernelError, Model, members
from jostle.kernels.arrays import Floats, Rows
from jostle.kernels.graphical.ising import PRIOR, Field, log_shares, random_signs, ring_pairs, sample_states
from jostle.kernels.rowprograms.contributions import sign_patterns

MOST_STATES = 2**20


@dataclass(frozen=True)
class PairwiseModel(Field):
    """`tables` (p, p, k, k), centred, tables[j, i] the transpose of tables[i, j]; `fields` (p, k).

    k is the largest alphabet, `values` (p,) how many values each variable has: 0, 1, … above its least.
    """

    values: tuple[int, ...]
    tables: Floats
    fields: Floats
    method: str = "made up"

    jostle_kind = "a pairwise field"

    jostle_members = Field.jostle_members | members("values table fields method")

    @property
    def pulls(self) -> Floats:
        return self.tables

    @property
    def widths(self) -> Floats:
        """max_a Σ_j max_b |W_ij(a, b)| + |θ_i(a)| for each i."""
        return np.asarray((np.abs(self.tables).max(axis=3).sum(axis=1) + np.abs(self.fields)).max(axis=1))

    def table(self, one: str, other: str) -> list[list[float]]:
        """W of two variables, by name: a row for each value of the first."""
        for name in (one, other):
            if name not in self.names:
                raise KernelError(f"there is no variable `{name}`")
        i, j = self.names.index(one), self.names.index(other)
        return self.tables[i, j, : self.values[i], : self.values[j]].tolist()  # type: ignore[no-any-return]

    def sample_array(self, rows: int, seed: int = 0) -> Floats:
        """(rows, p) of values 0, 1, …, exactly: for at most MOST_STATES states."""
        states = sample_states(np.exp(self._logs).ravel(), rows, seed)
        return np.stack(np.unravel_index(states, self.values), axis=1).astype(float)

    def log_likelihood(self, rows: object) -> float:
        """The mean log-probability of public rows of values 0, 1, …; for at most MOST_STATES states."""
        x = np.asarray(rows, dtype=float)
        if x.ndim != 2 or x.shape[1] != len(self.values) or (x != np.rint(x)).any():
            raise KernelError(f"rows are lists of {len(self.values)} whole numbers")
        if (x < 0).any() or (x >= np.array(self.values)).any():
            raise KernelError("rows hold values from 0 to one less than there are")
        return float(self._logs[tuple(x.T.astype(np.int64))].mean())

    @cached_property
    def _logs(self) -> Floats:
        """The log-probability of every state."""
        require_listable(self.values)
        energy = energies(self.values, self.tables, self.fields)
        most = energy.max()
        return np.asarray(energy - (most + np.log(np.exp(energy - most).sum())))

    def as_json(self) -> dict[str, object]:
        return {
            "kind": "pairwise", "names": list(self.names), "values": list(self.values),
            "tables": self.tables.tolist(), "fields": self.fields.tolist(), "method": self.method,
        }  # fmt: skip

    def __str__(self) -> str:
        head = f"pairwise field of {len(self.names)} variables, width {self.width:.2f} ({self.method})"
        return self.summary(head, "the largest entry of the table of each pair")


def require_listable(values: Sequence[int]) -> None:
    """Refuses more states than can be listed."""
    states = float(np.prod([float(v) for v in values]))
    if states > MOST_STATES:
        raise KernelError(f"{states:.6g} states are too many to list; at most {MOST_STATES:,}")


def energies(values: Sequence[int], tables: Floats, fields: Floats) -> Floats:
    """Σ W_ij(x_i, x_j) + Σ θ_i(x_i) for every state, an array of the shape `values`."""
    p = len(values)
    shape = np.array(values)
    energy = np.zeros(tuple(values))
    for i in range(p):
        one = np.arange(p) == i
        energy += fields[i, : values[i]].reshape(np.where(one, shape, 1))
        for j in range(i + 1, p):
            two = one | (np.arange(p) == j)
            energy += tables[i, j, : values[i], : values[j]].reshape(np.where(two, shape, 1))
    return energy


def pairwise_ring(variables: int, values: int, strength: float = 0.25, seed: int = 0) -> PairwiseModel:
    """A synthetic truth: a ring with chords, each table of random signs, centred, its largest entry ±`strength`."""
    p, k = int(variables), int(values)
    if p < 3 or k < 2:
        raise KernelError("a ring has at least three variables, of at least two values")
    tables = np.zeros((p, p, k, k))
    for number, (i, j) in enumerate(ring_pairs(p)):
        table, attempt = np.zeros((k, k)), 0
        while not table.any():  # constant rows or columns leave nothing
            table = centre_table(random_signs(k * k, 1000 * int(seed) + 100_000 * attempt + number).reshape(k, k), k, k)
            attempt += 1
        tables[i, j] = table * float(strength) / np.abs(table).max()
        tables[j, i] = tables[i, j].T
    return PairwiseModel(tuple(f"x{i + 1}" for i in range(p)), (k,) * p, tables, np.zeros((p, k)))


def centre_table(table: Floats, many: int, others: int) -> Floats:
    """A table whose used part (many, others) has rows and columns that sum to zero, and zeros around it."""
    used = table[:many, :others]
    result = np.zeros_like(table)
    result[:many, :others] = used - used.mean(axis=0) - used.mean(axis=1, keepdims=True) + used.mean()
    return result


def alphabets(rows: Rows) -> list[int]:
    """The number of values of each column, from its public bounds; `ValueError` unless it is whole and small."""
    if rows["norm"] != "sup" or rows["radius"] != 1:
        raise KernelError('rows are `vectors(…, norm = "sup")` here, each column of whole numbers')
    sizes = [2 * float(s) + 1 for s in rows["scales"]]
    if any(not v.is_integer() or not 2 <= v <= 64 for v in sizes):
        raise KernelError("each column holds whole numbers from its lower bound to its upper, at most 64 of them")
    return [int(v) for v in sizes]


def node_shape(values: Any, target: int) -> tuple[int, int, int]:
    """The shape of a node's weights: values of the target, variables, the largest alphabet."""
    sizes = [int(v) for v in values]
    return sizes[int(target)], len(sizes), max(sizes)


def node_start(values: object, target: int) -> Floats:
    """Zero weights of that shape."""
    return np.zeros(node_shape(values, target))


def node_step(weights: object, vertex: int, radius: float, step: int) -> Floats:
    """w ← (1 − μ)w ∓ μR·s⊗r at variable j, μ = 2/(t + 2): `chosen` counts what `sign_gradient` gives."""
    w = np.array(weights, dtype=float)
    outer, inner = sign_patterns(w.shape[0])[1:], sign_patterns(w.shape[2])
    shape = (2, len(outer), w.shape[1], len(inner))
    negative, s, j, r = (int(v) for v in np.unravel_index(int(vertex), shape))
    mu = 2.0 / (int(step) + 2)
    w *= 1.0 - mu
    w[:, j] += mu * float(radius) * (1.0 if negative else -1.0) * np.outer(outer[s], inner[r])
    return w


def pairwise_of_nodes(rows: Rows, nodes: Sequence[object]) -> PairwiseModel:
    """The model of p node regressions w_i (k_i, p, K): tables centred, each averaged with its transpose.

    The constant of node i stands where its own first value would: w_i[:, i, 0].
    """
    values = alphabets(rows)
    p, k = len(values), max(values)
    tables, fields = np.zeros((p, p, k, k)), np.zeros((p, k))
    for i, node in enumerate(nodes):
        w = np.zeros((k, p, k))
        w[: values[i]] = np.asarray(node, dtype=float)
        own = w[: values[i], i, 0].copy()
        for j in range(p):
            if j != i:
                tables[i, j] = centre_table(w[:, j], values[i], values[j])
                own += w[: values[i], j, : values[j]].mean(axis=1)
        fields[i, : values[i]] = own - own.mean()
    tables = (tables + tables.transpose(1, 0, 3, 2)) / 2
    return PairwiseModel(tuple(rows["columns"]), tuple(values), tables, fields, "Frank–Wolfe")


def pairwise_room(rows: Rows) -> list[int]:
    """The number of values of each column. Raises `ValueError` where the joint states are too many to list."""
    values = alphabets(rows)
    require_listable(values)
    return values


def pairwise_fit(rows: Rows, sums: object, noise: float) -> PairwiseModel:
    """The model of noisy sums of `indicators` with pairs, and the deviation of their noise; exact inference."""
    from scipy.optimize import minimize

    values = pairwise_room(rows)
    totals = np.asarray(sums, dtype=float)
    n = max(float(totals[0]), 1.0)
    moments = totals[1:] / n
    ridge = ((float(noise) / n) ** 2 + 1.0 / (n * max(values) ** 2)) / PRIOR**2

    def objective(parameters: Floats) -> tuple[float, Floats]:
        energy = energies(values, *parameter_arrays(parameters, values))
        most = float(energy.max())
        weights = np.exp(energy - most)
        total = float(weights.sum())
        slope = marginals(weights / total) - moments + ridge * parameters
        value = most + float(np.log(total)) - float(parameters @ moments)
        return value + 0.5 * ridge * float(parameters @ parameters), slope

    optimum = minimize(
        objective, np.zeros(len(moments)), jac=True, method="L-BFGS-B",
        options={"maxiter": 500, "gtol": 1e-7, "ftol": 1e-12},
    )  # fmt: skip
    tables, fields = identifiable(*parameter_arrays(optimum.x, values), values)
    return PairwiseModel(tuple(rows["columns"]), tuple(values), tables, fields, "moments")


def pairwise_independent_fit(rows: Rows, sums: object, noise: float) -> PairwiseModel:
    """No tables: the fields of noisy counts of each variable's values."""
    values = alphabets(rows)
    p, k = len(values), max(values)
    fields = np.zeros((p, k))
    for i, logs in enumerate(log_shares(sums, values, noise)):
        fields[i, : values[i]] = logs
    return PairwiseModel(tuple(rows["columns"]), tuple(values), np.zeros((p, p, k, k)), fields, "variables apart")


def marginals(probabilities: Floats) -> Floats:
    """The tables of one variable, then those of two i < j, of an array of probabilities: flat, as of `indicators`."""
    p = probabilities.ndim
    axes = set(range(p))
    tables = [probabilities.sum(axis=tuple(axes - {i})) for i in range(p)]
    for i in range(p):
        # all variables but i and those after it are summed out once for all pairs of i
        rest = probabilities.sum(axis=tuple(range(i)))
        tables += [rest.sum(axis=tuple(set(range(1, p - i)) - {j - i})).ravel() for j in range(i + 1, p)]
    return np.concatenate(tables)


def parameter_arrays(parameters: Floats, values: Sequence[int]) -> tuple[Floats, Floats]:
    """Tables (p, p, k, k), those of i < j alone, and fields (p, k)."""
    p, k = len(values), max(values)
    tables, fields, at = np.zeros((p, p, k, k)), np.zeros((p, k)), 0
    for i, many in enumerate(values):
        fields[i, :many] = parameters[at : at + many]
        at += many
    for i in range(p):
        for j in range(i + 1, p):
            size = values[i] * values[j]
            tables[i, j, : values[i], : values[j]] = parameters[at : at + size].reshape(values[i], values[j])
            at += size
    return tables, fields


def identifiable(tables: Floats, fields: Floats, values: Sequence[int]) -> tuple[Floats, Floats]:
    """Makes parameters identifiable: tables are centred and symmetric, and their margins move into the fields."""
    result, own = np.zeros_like(tables), fields.copy()
    p = len(values)
    for i in range(p):
        for j in range(i + 1, p):
            used = tables[i, j, : values[i], : values[j]]
            result[i, j] = centre_table(tables[i, j], values[i], values[j])
            result[j, i] = result[i, j].T
            own[i, : values[i]] += used.mean(axis=1)
            own[j, : values[j]] += used.mean(axis=0)
    for i, many in enumerate(values):
        own[i, :many] -= own[i, :many].mean()
    return result, own


PACE = 0.5
"""The factor of (R·n·√ρ/2)^(2/3) steps, at which the errors of optimisation and of noise are of one order. The theory
leaves it open; a half was best on rings with chords (docs/experiments/ising.md)."""
LEAST = 8


def fw_start(size: int) -> Floats:
    """Zero: no vertex has been seen."""
    return np.zeros(int(size))


def fw_rounds(rows: float, radius: float, rho: float, most: int) -> int:
    """The number of steps for about `rows` rows at `rho`, between LEAST and `most`; all of it is public.

    `rho` is infinite for rows that are public, which gives `most`.
    """
    if not (radius > 0 and rho > 0):
        raise KernelError("a radius and an amount are positive")
    steps = PACE * (max(float(rows), 1.0) * float(radius) / 2 * float(np.sqrt(rho))) ** (2 / 3)
    return round(min(max(float(LEAST), float(steps)), float(most)))


def fw_step(weights: object, vertex: int, radius: float, step: int) -> Floats:
    """w ← (1 − μ)w + μs with μ = 2/(t + 2), t = 0, 1, …: the first step forgets the start.

    `chosen` is the largest of the gradient's coordinates, then of their negatives: the vertex lies against it.
    """
    w = np.array(weights, dtype=float)
    mu = 2.0 / (int(step) + 2)
    place, sign = (int(vertex), -1.0) if vertex < w.size else (int(vertex) - w.size, 1.0)
    w *= 1.0 - mu
    w.flat[place] += mu * sign * float(radius)
    return w


def column_place(rows: Rows, column: object) -> int:
    """The position of a column, given by its name or its position; refused where rows are not bounded one by one."""
    if rows["norm"] != "sup" or rows["radius"] != 1:
        raise KernelError('rows are `vectors(…, norm = "sup")` here, each coordinate within −1 and 1')
    names = list(rows["columns"])
    if column in names:
        return names.index(column)
    if isinstance(column, int | float) and 0 <= int(column) < len(names):
        return int(column)
    raise KernelError(f"there is no column `{column}` among {', '.join(names)}")


@dataclass(frozen=True)
class LogisticModel(Model):
    """P(y = 1 | x) = σ(w·x + c), y the sign of column `target` and x the others, scaled by their public bounds."""

    names: tuple[str, ...]
    target: str
    weights: Floats
    constant: float
    centres: Floats
    scales: Floats

    jostle_kind = "a logistic model"

    jostle_members = members("names target weights constant probability loss")

    def probability(self, row: Mapping[str, float]) -> float:
        """That the target is positive: its upper half, for a row of the other columns, in the units of the data."""
        x = np.array([[float(row[name]) for name in self.names]])
        return float(1 / (1 + np.exp(-self._margins(x)[0])))

    def loss(self, rows: object) -> float:
        """The mean logistic loss over public rows of all columns but the target, then the target as −1 or 1."""
        table = np.asarray(rows, dtype=float)
        return float(np.logaddexp(0, -table[:, -1] * self._margins(table[:, :-1])).mean())

    def _margins(self, x: Floats) -> Floats:
        scaled = np.clip((x - self.centres) / self.scales, -1.0, 1.0)
        return np.asarray(scaled @ self.weights + self.constant)

    def as_json(self) -> dict[str, object]:
        return {
            "kind": "logistic", "names": list(self.names), "target": self.target, "weights": self.weights.tolist(),
            "constant": self.constant, "centres": self.centres.tolist(), "scales": self.scales.tolist(),
        }  # fmt: skip

    def __str__(self) -> str:
        terms = [f"{w:+.3g} {name}" for name, w in zip(self.names, self.weights, strict=True) if w]
        return f"logistic model of {self.target}: {self.constant:.3g} {' '.join(terms)}"


def logistic_model(rows: Rows, place: int, weights: object) -> LogisticModel:
    """The logistic model of node regression `weights`, whose constant stands in the target's place."""
    w = np.asarray(weights, dtype=float)
    others = [i for i in range(w.size) if i != int(place)]
    names = list(rows["columns"])
    return LogisticModel(
        tuple(names[i] for i in others), names[int(place)], w[others], float(w[int(place)]),
        np.array([rows["centres"][i] for i in others]), np.array([rows["scales"][i] for i in others]),
    )  # fmt: skip
