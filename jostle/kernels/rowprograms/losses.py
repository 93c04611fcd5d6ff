"""Gradients of a loss that a program writes: row programs that follow from its formula (`derivatives`).

Numbers for the weights make the gradient a row program in fixed point: whole multiples of 2^-18 within ±256, at which
every step stops. So it is total, and as any builder's program it needs no trust.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from jostle.kernels import KernelError, Model, members
from jostle.kernels.arrays import Column, Floats
from jostle.kernels.rowprograms.derivatives import Graph, Node, is_number, order_of, symbol
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
"""Of points at which a function is called, to see that it is one formula."""

ROWS, TURNS, NEARBY = 64, 6, 1e-4
"""Public rows, rounds and steps by which the curvature of a loss is taken."""


Weights = float | list["Weights"] | dict[str, "Weights"]
"""Of a loss: a number, or lists and records of numbers."""


def random_weights(many: int, seed: int) -> Floats:
    """So many public numbers of mean 0 and deviation 1."""
    return np.random.default_rng(seed).normal(size=many)


def loss_points(start: Weights, terms: Sequence[Column]) -> list[dict[str, object]]:
    """Symbols to call a loss with, at pairs of points: `weights`, shaped as `start`, and a `row` of a cell a term."""
    near, points = flat(start), list[dict[str, object]]()
    for at in range(PAIRS):
        aside = np.tanh(random_weights(len(near) + len(terms), at))
        for side in (aside, -aside):  # a branch by one number is seen from both sides
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
    """The gradient of a loss, a step for each of its weights, which begin at `start`; `terms` are the cells of a row
    that it reads, `places` which ones these are."""

    gradient: tuple[Node, ...]
    places: tuple[int, ...]
    terms: Sequence[Column]
    start: Sequence[float]

    jostle_kind: ClassVar[str] = "a loss"
    jostle_members: ClassVar[dict[str, str]] = members("terms start curvature")

    @property
    def curvature(self) -> float:
        """How fast the gradient of a row may turn as the weights move from `start`: the largest eigenvalue of a row's
        second derivatives, of all but a twentieth of public rows at the ends of their ranges."""
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
    """The loss that a function calculated of symbols, at several points.

    Raises `KernelError` where the points show different formulas, as of a function that branches, or where a weight or
    the row is in none of it.
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
    """The gradient of a loss in its weights, for rows of the cells that it reads. Shape (weights, n)."""
    if not isinstance(loss, Loss) or d != len(loss.places):
        raise KernelError("`loss` is a loss of as many columns as the vectors have")
    values = numbers(weights, (len(loss.gradient),), "weights")
    units = row(d)
    cells = {place: xp.shift(xp.part(units, [i]), GRID_BITS - BITS) for i, place in enumerate(loss.places)}
    fixed = _Fixed(values, cells)
    parts = [fixed.of(step) for step in loss.gradient]
    return Contributions("loss_gradient", program([units], xp.concatenate(parts)), BITS)


class _Fixed:
    """Steps in fixed point, each once, for numbers of the weights: doubles of what is public, else expressions."""

    def __init__(self, weights: Floats, cells: dict[int, xp.Expression]) -> None:
        self._weights, self._cells = weights, cells
        self._public: dict[Node, float] = {}
        self._expressions: dict[Node, xp.Expression] = {}
        self._shares: dict[tuple[Node, ...], xp.Expression] = {}

    def of(self, root: Node) -> xp.Expression:
        """The step of shape (1,), in units of 2^-BITS."""
        waiting = [root]
        while waiting:
            node = waiting[-1]
            if node in self._expressions:
                waiting.pop()
                continue
            needed = [one for one in self._needed(node) if one not in self._expressions]
            waiting += needed
            if not needed:
                self._expressions[node] = self._fixed(self.number(node)) if node.public else self._step(node)
        return self._expressions[root]

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
        if node.operation in ("+", "*"):
            return [term for _, term in self._terms(node)[0]] if self._is_sum(node) else node.operands
        return node.operands

    def _is_sum(self, node: Node) -> bool:
        return node.operation == "+" or node.operands[0].public

    def _terms(self, root: Node) -> tuple[list[tuple[float, Node]], float]:
        """A sum as public multiples of steps that are none, and a public number."""
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
        if node.operation in ("+", "*") and self._is_sum(node):
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


LARGEST = 2.0**30
"""Of a public number within a gradient."""


def doubles(roots: Sequence[Node], weights: Floats, cells: Sequence[Floats]) -> Floats:
    """Steps in doubles, (steps, n), for weights (m, n) and cells of shape (n,)."""
    values: dict[Node, Floats] = {}
    with np.errstate(all="ignore"):
        for node in order_of(roots):
            value = _double(node, [values[operand] for operand in node.operands], weights, cells)
            values[node] = np.clip(np.where(np.isnan(value), 0.0, value), -LARGEST, LARGEST)
    return np.stack([np.broadcast_to(values[root], weights.shape[1:]) for root in roots])


def _double(node: Node, operands: list[Floats], weights: Floats, cells: Sequence[Floats]) -> Floats:
    match node.operation, operands:
        case "number", _:
            return np.array(node.value)
        case "weight", _:
            return np.asarray(weights[int(node.value)])
        case "cell", _:
            return cells[int(node.value)]
        case "+", (a, b):
            return a + b
        case "*", (a, b):
            return a * b
        case "if less", (a, b, one, other):
            return np.where(a < b, one, other)
        case "exp", (a,):
            return np.exp(a)
        case "log", (a,):
            return np.log(np.maximum(a, 1 / LARGEST))
        case "power", (a,):
            return np.asarray(np.float_power(a, node.value))
    logs = np.stack(np.broadcast_arrays(*operands))
    most = logs.max(axis=0)
    powers = np.exp(logs - most)
    together = powers.sum(axis=0)
    return np.asarray(powers[int(node.value)] / together if node.operation == "share" else most + np.log(together))


FINE = 9
"""exp of a step of 2^-FINE is taken to the first order."""


def _exponential(a: xp.Expression) -> xp.Expression:
    low, high = -13 * 2**FINE, math.floor(math.log(REACH / 2**BITS) * 2**FINE)
    inside = xp.clamp(a, low << (BITS - FINE), high << (BITS - FINE))
    coarse = xp.shift(inside, BITS - FINE)
    table = np.rint(np.ldexp(np.exp(np.arange(low, high + 1) / 2**FINE), BITS))
    value = xp.lookup(table, coarse - low)
    rest = inside - xp.shift(coarse, FINE - BITS)
    return rounded(value + rounded(value * rest, BITS, 0, REACH), 0, 0, REACH)


def _parts(a: xp.Expression) -> tuple[xp.Expression, xp.Expression]:
    """The power of two below a positive number, and its first twelve binary digits after the first, as places."""
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
