"""Gradients of a loss that a program writes, as row programs derived from its formula (`derivatives`).

With numbers for the weights, the gradient is a row program in fixed point: integer multiples of 2^-18, clamped to ±256
at every step. So it is total and, like every program of a builder, need not be trusted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from jostle.kernels import KernelError, Model, members
from jostle.kernels.arrays import Column, Floats
from jostle.kernels.rowprograms.derivatives import Graph, Node, is_number, order_of, ordered, symbol
from jostle.kernels.rowprograms.mixtures import normalised
from jostle.kernels.rowprograms.scales import FAR, affine, exponentials, numbers, rounded, row
from jostle.privacy.rows import expressions as xp
from jostle.privacy.rows.norms import GRID_BITS, Contributions
from jostle.privacy.rows.program import program

BITS = 18
REACH = 2**26
"""±256 in units of 2^-BITS: products of two numbers within it are exact."""

MOST_WEIGHTS = 2_000
PAIRS = 3
"""The pairs of points at which a loss is evaluated, to verify that it is one formula."""

ROWS, TURNS, NEARBY = 64, 6, 1e-4
"""The public rows, rounds and step size for estimating the curvature of a loss."""


Weights = float | list["Weights"] | dict[str, "Weights"]
"""The weights of a loss: a number, or lists and records of numbers."""


def random_weights(many: int, seed: int) -> Floats:
    """`many` public random numbers of mean 0 and deviation 1."""
    return np.random.default_rng(seed).normal(size=many)


def loss_points(start: Weights, terms: Sequence[Column]) -> list[dict[str, object]]:
    """Symbolic arguments of a loss at pairs of points: `weights` in the shape of `start`, and a `row` of terms."""
    near, points = flat(start), list[dict[str, object]]()
    for at in range(PAIRS):
        aside = np.tanh(random_weights(len(near) + len(terms), at))
        for side in (aside, -aside):  # to detect a branch by a number
            weights = [symbol(value + side[i] / 10, "weight", i) for i, value in enumerate(near)]
            row: dict[str, object] = {}
            for place, (term, cell) in enumerate(zip(terms, side[len(near) :], strict=True)):
                if term["value"] == "":
                    row[term["name"]] = symbol(cell, "cell", place)
                else:
                    listed = row.setdefault(term["name"], {})
                    listed |= {term["text"]: symbol(cell > 0, "cell", place)}  # type: ignore[operator]
            points.append({"weights": in_shape(start, weights), "row": row})
    return points


def flat(start: Weights) -> list[float]:
    """All numbers of lists and records, in order."""
    if isinstance(start, int | float) and not isinstance(start, bool):
        return [float(start)]
    if not isinstance(start, Mapping | list | np.ndarray):
        raise KernelError("weights start as numbers, or as lists or records of numbers: `{slope: 0, base: 0}`")
    numbers = [one for value in (start.values() if isinstance(start, Mapping) else start) for one in flat(value)]
    if not 1 <= len(numbers) <= MOST_WEIGHTS:
        raise KernelError(f"a loss has 1 to {MOST_WEIGHTS:,} weights")
    return numbers


def in_shape(start: Weights, weights: Sequence[float]) -> Weights:
    """Numbers in the lists and records of `start`."""
    left = iter(weights)

    def like(start: Weights) -> Weights:
        if isinstance(start, Mapping):
            return {name: like(value) for name, value in start.items()}
        return [like(value) for value in start] if isinstance(start, list | np.ndarray) else next(left)

    return like(start)


@dataclass(frozen=True, eq=False)
class Loss(Model):
    """The gradient of a loss, one step for each of its weights, which start at `start`. `terms` are the cells of a row
    that it reads, and `places` their indices."""

    gradient: tuple[Node, ...]
    places: tuple[int, ...]
    terms: Sequence[Column]
    start: Sequence[float]

    jostle_kind: ClassVar[str] = "a loss"
    jostle_members: ClassVar[dict[str, str]] = members("terms start curvature")

    @property
    def curvature(self) -> float:
        """The curvature of the loss at `start`: the largest eigenvalue of a row's second derivatives, the 95 % quantile
        over public random rows at the ends of their ranges."""
        cells: dict[int, Floats] = {}
        listed: dict[str, list[int]] = {}
        for place, term in zip(self.places, self.terms, strict=True):
            cells[place] = np.sign(random_weights(ROWS, place))
            if term["value"] != "":
                listed.setdefault(term["name"], []).append(place)
        for places in listed.values():  # one of the values
            own = np.stack([random_weights(ROWS, place) for place in places])
            cells |= dict(zip(places, (own == own.max(axis=0)) * 1.0, strict=True))
        every = [cells.get(place, np.zeros(ROWS)) for place in range(self.places[-1] + 1)]
        start = np.repeat(np.array(self.start)[:, None], ROWS, axis=1)
        before, along = doubles(self.gradient, start, every), random_weights(start.size, 0).reshape(start.shape)
        for _ in range(TURNS):
            along /= np.maximum(np.linalg.norm(along, axis=0), 1e-9)
            along = (doubles(self.gradient, start + NEARBY * along, every) - before) / NEARBY
        return float(np.quantile(np.linalg.norm(along, axis=0), 0.95))

    def as_json(self) -> object:
        return str(self)

    def __str__(self) -> str:
        weights, columns = len(self.gradient), len({term["name"] for term in self.terms})
        return f"a loss of {weights} weight{'s' * (weights > 1)} and {columns} column{'s' * (columns > 1)}"


def loss_of(values: Sequence[float], start: Weights, terms: Sequence[Column]) -> Loss:
    """The loss from symbolic values at several points.

    Raises `KernelError` if the points give different formulas, for instance if the function branches, or if it does not
    depend on a weight or on the row.
    """
    graph, weights = Graph(), flat(start)
    losses = {graph.of(value) for value in values}
    if len(losses) != 1:
        raise KernelError("a loss is one formula for all rows: for a branch write `max`, `min`, `abs` or `clamp`")
    (loss,) = losses
    places = tuple(sorted({int(node.value) for node in order_of([loss]) if node.operation == "cell"}))
    gradient = tuple(graph.gradient(loss, len(weights)))
    if not places:
        raise KernelError("the loss reads nothing of the row")
    if unread := sum(is_number(slope, 0) for slope in gradient):
        raise KernelError(f"the loss does not depend on {unread} of its {len(weights)} weights")
    return Loss(gradient, places, [terms[place] for place in places], weights)


# Fixed point ---------------------------------------------------------------------------------------


def loss_gradient(d: int, *, loss: object, weights: object) -> Contributions:
    """The gradient of a loss in its weights, of shape (weights, n), for rows of the cells that it reads."""
    if not isinstance(loss, Loss) or d != len(loss.places):
        raise KernelError("`loss` is a loss of as many columns as the vectors have")
    values = numbers(weights, (len(loss.gradient),), "weights")
    units = row(d)
    cells = {place: xp.shift(xp.part(units, [i]), GRID_BITS - BITS) for i, place in enumerate(loss.places)}
    parts = _Fixed(values, cells).of(loss.gradient)
    return Contributions("loss_gradient", program([units], xp.concatenate(parts)), BITS)


class _Fixed:
    """Converts steps to fixed point, each once, for given weights: public ones to doubles, others to expressions."""

    def __init__(self, weights: Floats, cells: dict[int, xp.Expression]) -> None:
        self._weights, self._cells = weights, cells
        self._public: dict[Node, float] = {}
        self._expressions: dict[Node, xp.Expression] = {}
        self._shares: dict[tuple[Node, ...], xp.Expression] = {}

    def of(self, roots: Sequence[Node]) -> list[xp.Expression]:
        """The expressions of steps, of shape (1,) each, in units of 2^-BITS."""
        for node in ordered(roots, self._needed):
            self._expressions[node] = self._fixed(self.number(node)) if node.public else self._step(node)
        return [self._expressions[root] for root in roots]

    def number(self, root: Node) -> float:
        """The value of a public step."""
        if root not in self._public:
            self._public[root] = float(doubles([root], self._weights[:, None], ())[0, 0])
        return self._public[root]

    def _fixed(self, value: float) -> xp.Expression:
        return xp.constant([min(max(round(value * 2**BITS), -REACH), REACH)])

    def _needed(self, node: Node) -> Iterable[Node]:
        if node.public:
            return ()
        return [term for _, term in self._terms(node)[0]] if _is_sum(node) else node.operands

    def _terms(self, root: Node) -> tuple[list[tuple[float, Node]], float]:
        """A sum as public multiples of steps that are not sums, and a public number."""
        terms: dict[Node, float] = {}
        offset, waiting = 0.0, [(1.0, root)]
        while waiting:
            times, node = waiting.pop()
            if node.public:
                offset += times * self.number(node)
            elif node.operation == "+":
                waiting += [(times, operand) for operand in node.operands]
            elif node.operation == "*" and node.operands[0].public:
                waiting.append((times * self.number(node.operands[0]), node.operands[1]))
            else:
                terms[node] = terms.get(node, 0.0) + times
        return [(min(max(times, -LARGEST), LARGEST), node) for node, times in terms.items()], offset

    def _step(self, node: Node) -> xp.Expression:
        if node.operation == "cell":
            return self._cells[int(node.value)]
        if _is_sum(node):
            terms, offset = self._terms(node)
            argument = xp.concatenate([self._expressions[term] for _, term in terms])
            matrix = np.array([[times for times, _ in terms]])
            sums, bits = affine(matrix, np.array([min(max(offset, -LARGEST), LARGEST) * 2**BITS]), argument, 50, 40)
            return rounded(sums, bits, -REACH, REACH)
        operands = [self._expressions[operand] for operand in node.operands]
        match node.operation, operands:
            case "*", (a, b):
                return rounded(a * b, BITS, -REACH, REACH)
            case "if less", (a, b, one, other):
                return xp.select(xp.comparison(a, "<", b), one, other)
            case "exp", (a,):
                return _exponential(a)
            case "log", (a,):
                return _logarithm(a)
            case "log sum", logs:
                return _log_sum(xp.concatenate(logs))
            case "share", logs:
                if node.operands not in self._shares:
                    shares = normalised(xp.concatenate(logs), BITS, BITS + 2, 2**BITS)
                    self._shares[node.operands] = xp.clamp(shares, 0, 2**BITS)
                return xp.part(self._shares[node.operands], [int(node.value)])
            case "power", (a,):
                return _root(a) if node.value == 0.5 else _reciprocal(a)
        raise AssertionError(node.operation)


def _is_sum(node: Node) -> bool:
    return node.operation == "+" or (node.operation == "*" and node.operands[0].public)


LARGEST = 2.0**30
"""The largest public number in a gradient."""


_DOUBLES: dict[str, Callable[..., Floats]] = {
    "+": np.add, "*": np.multiply, "exp": np.exp, "log": lambda a: np.log(np.maximum(a, 1 / LARGEST)),
    "if less": lambda a, b, one, other: np.asarray(np.where(a < b, one, other)),
}  # fmt: skip


def doubles(roots: Sequence[Node], weights: Floats, cells: Sequence[Floats]) -> Floats:
    """The values of steps in doubles, (steps, n), for weights (m, n) and cells of shape (n,)."""
    values: dict[Node, Floats] = {}
    with np.errstate(all="ignore"):
        for node in order_of(roots):
            value = _double(node, [values[operand] for operand in node.operands], weights, cells)
            values[node] = np.clip(np.where(np.isnan(value), 0.0, value), -LARGEST, LARGEST)
    return np.stack([np.broadcast_to(values[root], weights.shape[1:]) for root in roots])


def _double(node: Node, operands: list[Floats], weights: Floats, cells: Sequence[Floats]) -> Floats:
    if node.operation in _DOUBLES:
        return np.asarray(_DOUBLES[node.operation](*operands))
    if node.operation == "number":
        return np.array(node.value)
    if not operands:
        return np.asarray(weights[int(node.value)] if node.operation == "weight" else cells[int(node.value)])
    if node.operation == "power":
        return np.asarray(np.float_power(operands[0], node.value))
    logs = np.stack(np.broadcast_arrays(*operands))
    most = logs.max(axis=0)
    powers = np.exp(logs - most)
    together = powers.sum(axis=0)
    return np.asarray(powers[int(node.value)] / together if node.operation == "share" else most + np.log(together))


FINE = 9
"""exp is linear within a step of 2^-FINE."""


def _exponential(a: xp.Expression) -> xp.Expression:
    low, high = -13 * 2**FINE, math.floor(math.log(REACH / 2**BITS) * 2**FINE)
    inside = xp.clamp(a, low << (BITS - FINE), high << (BITS - FINE))
    coarse = xp.shift(inside, BITS - FINE)
    table = np.rint(np.ldexp(np.exp(np.arange(low, high + 1) / 2**FINE), BITS))
    value = xp.lookup(table, coarse - low)
    rest = inside - xp.shift(coarse, FINE - BITS)
    return rounded(value + rounded(value * rest, BITS, 0, REACH), 0, 0, REACH)


def _parts(a: xp.Expression) -> tuple[xp.Expression, xp.Expression]:
    """The exponent of a positive number, and its first twelve binary digits after the leading one, as indices."""
    inside = xp.clamp(a, 1, REACH)
    powers = [2**k for k in range(1, 27)]
    power = xp.reshape(xp.total(xp.comparison(xp.constant(powers), "<=", inside)), (1,))
    places = xp.shift(inside * xp.lookup([2 ** (26 - k) for k in range(27)], power), 14) - 2**12
    return power, xp.clamp(places, 0, 2**12 - 1)


def _logarithm(a: xp.Expression) -> xp.Expression:
    power, digits = _parts(a)
    whole = np.rint(np.ldexp((np.arange(27) - BITS) * math.log(2), BITS))
    rest = np.rint(np.ldexp(np.log1p((np.arange(2**12) + 0.5) / 2**12), BITS))
    return xp.lookup(whole, power) + xp.lookup(rest, digits)


def _root(a: xp.Expression) -> xp.Expression:
    power, digits = _parts(a)
    whole = np.rint(np.ldexp(2.0 ** ((np.arange(27) - BITS) / 2), BITS))
    rest = np.rint(np.ldexp(np.sqrt(1 + (np.arange(2**12) + 0.5) / 2**12), BITS))
    return rounded(xp.lookup(whole, power) * xp.lookup(rest, digits), BITS, 0, REACH)


def _reciprocal(a: xp.Expression) -> xp.Expression:
    negative = xp.comparison(a, "<", 0)
    size = xp.clamp(xp.select(negative, xp.constant([0]) - a, a), 2 ** (2 * BITS) // REACH, REACH)
    inverse = xp.constant([2 ** (2 * BITS)]) // size
    return xp.select(negative, xp.constant([0]) - inverse, inverse)


def _log_sum(logs: xp.Expression) -> xp.Expression:
    most = xp.reshape(xp.largest(logs), (1,))
    behind = rounded(most - logs, BITS - 10, 0, FAR * 2**10)
    together = xp.reshape(xp.total(xp.lookup(exponentials(BITS), behind)), (1,))
    return rounded(most + _logarithm(together), 0, -REACH, REACH)
