"""Gradients of a loss that a program writes: row programs that follow from its formula (`derivatives`).

Numbers for the weights make the gradient a row program in fixed point: whole multiples of 2^-18 within ±256, at which
every step stops. So it is total, and as any builder's program it needs no trust.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from jostle.kernels import KernelError, Model, members
from jostle.kernels.arrays import Floats
from jostle.kernels.rowprograms.derivatives import Graph, Node, is_number, order_of
from jostle.kernels.rowprograms.mixtures import normalised
from jostle.kernels.rowprograms.scales import FAR, affine, exponentials, numbers, rounded, row
from jostle.privacy.rows.expressions import (
    Expression,
    clamp,
    comparison,
    concatenate,
    constant,
    largest,
    lookup,
    part,
    reshape,
    select,
    shift,
    total,
)
from jostle.privacy.rows.norms import GRID_BITS, Contributions
from jostle.privacy.rows.program import program

BITS = 18
REACH = 2**26
"""±256 in units of 2^-BITS: products of two numbers within it are exact."""

ROWS, TURNS, NEARBY = 64, 6, 1e-4
"""Public rows, rounds and steps by which the curvature of a loss is taken."""


@dataclass(frozen=True, eq=False)
class Loss(Model):
    """The gradient of a loss, a step for each of its weights, which are to `start` so; `terms` are the cells of a row
    that it reads."""

    gradient: tuple[Node, ...]
    places: tuple[int, ...]
    terms: Sequence[Any]
    start: Sequence[float]

    jostle_kind: ClassVar[str] = "a loss"
    jostle_members: ClassVar[dict[str, str]] = members("terms start size curvature")

    @property
    def size(self) -> int:
        return len(self.gradient)

    @property
    def curvature(self) -> float:
        """How fast the gradient of a row may turn as the weights move from `start`: the largest eigenvalue of a row's
        second derivatives, the median of the upper tenth of public rows at the ends of their ranges."""
        random = np.random.default_rng(0)
        cells, chosen = dict[int, Floats](), dict[object, Floats]()
        for place, term in zip(self.places, self.terms, strict=True):
            if term["value"] == "":
                cells[place] = np.sign(random.normal(size=ROWS))
            else:  # one of the values of a column at most
                own = chosen.setdefault(term["name"], random.uniform(0, self._values(term["name"]), ROWS) // 1)
                cells[place] = (own == 0) * 1.0
                chosen[term["name"]] = own - 1
        start = np.repeat(np.array(self.start)[:, None], ROWS, axis=1)
        before, along = np.array(self._slopes(start, cells)), random.normal(size=start.shape)
        for _ in range(TURNS):
            along /= np.maximum(np.linalg.norm(along, axis=0), 1e-9)
            along = (np.array(self._slopes(start + NEARBY * along, cells)) - before) / NEARBY
        return float(np.quantile(np.linalg.norm(along, axis=0), 0.95))

    def _values(self, name: object) -> int:
        return sum(term["name"] == name for term in self.terms)

    def _slopes(self, weights: Floats, cells: Mapping[int, Floats]) -> list[Any]:
        every = [cells.get(place) for place in range(max(self.places) + 1)]
        return [np.broadcast_to(one, weights.shape[1:]) for one in doubles(self.gradient, list(weights), every)]

    def as_json(self) -> object:
        return str(self)

    def __str__(self) -> str:
        return f"a loss of {self.size} weights and {len(self.places)} columns"


def loss_of(values: Sequence[float], start: Sequence[float], terms: Sequence[Any]) -> Loss:
    """The loss that a function calculated of symbols, at several points.

    Raises `KernelError` where the points show different formulas, as of a function that branches, or where a weight or
    the row is in none of it.
    """
    graph = Graph()
    losses = {graph.of(value) for value in values}
    if len(losses) != 1:
        raise KernelError("a loss is one formula for all rows: for a branch write `max`, `min`, `abs` or `clamp`")
    (loss,) = losses
    read = {int(node.value) for node in order_of([loss]) if node.operation == "cell"}
    gradient = graph.gradient(loss, len(start))
    if not read or loss.public:
        raise KernelError("the loss reads nothing of the row")
    if unread := [place for place, slope in enumerate(gradient) if is_number(slope, 0)]:
        raise KernelError(f"the loss does not depend on {len(unread)} of its {len(start)} weights")
    places = tuple(sorted(read))
    return Loss(tuple(gradient), places, [terms[place] for place in places], list(start))


# Fixed point ---------------------------------------------------------------------------------------


def loss_gradient(d: int, *, loss: object, weights: object) -> Contributions:
    """The gradient of a loss in its weights, for rows of the cells that it reads. Shape (weights, n)."""
    if not isinstance(loss, Loss) or d != len(loss.places):
        raise KernelError("`loss` is a loss of as many columns as the vectors have")
    given = numbers(weights, (loss.size,), "weights")
    units = row(d)
    cells = {place: shift(part(units, [i]), GRID_BITS - BITS) for i, place in enumerate(loss.places)}
    fixed = _Fixed(given.tolist(), cells)
    parts = [fixed.of(step) for step in loss.gradient]
    return Contributions("loss_gradient", program([units], concatenate(parts)), BITS)


class _Fixed:
    """Steps in fixed point, each once, for numbers of the weights: doubles of what is public, else expressions."""

    def __init__(self, weights: list[float], cells: dict[int, Expression]) -> None:
        self._weights, self._cells = weights, cells
        self._public: dict[Node, float] = {}
        self._expressions: dict[Node, Expression] = {}
        self._shares: dict[tuple[Node, ...], Expression] = {}

    def of(self, root: Node) -> Expression:
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
            self._public[root] = float(doubles([root], self._weights, ())[0])
        return self._public[root]

    def _fixed(self, value: float) -> Expression:
        return constant([min(max(round(value * 2**BITS), -REACH), REACH)])

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

    def _step(self, node: Node) -> Expression:
        if node.operation == "cell":
            return self._cells[int(node.value)]
        if node.operation in ("+", "*") and self._is_sum(node):
            terms, offset = self._terms(node)
            argument = concatenate([self._expressions[term] for _, term in terms])
            matrix = np.array([[times for times, _ in terms]])
            sums, bits = affine(matrix, np.array([min(max(offset, -LARGEST), LARGEST) * 2**BITS]), argument, 50, 40)
            return rounded(sums, bits, -REACH, REACH)
        operands = [self._expressions[operand] for operand in node.operands]
        match node.operation, operands:
            case "*", (a, b):
                return rounded(a * b, BITS, -REACH, REACH)
            case "if less", (a, b, one, other):
                return select(comparison(a, "<", b), one, other)
            case "exp", (a,):
                return _exponential(a)
            case "log", (a,):
                return _logarithm(a)
            case "log sum", logs:
                return _log_sum(concatenate(logs))
            case "share", logs:
                if node.operands not in self._shares:
                    shares = normalised(concatenate(logs), BITS, BITS + 2, 2**BITS)
                    self._shares[node.operands] = clamp(shares, 0, 2**BITS)
                return part(self._shares[node.operands], [int(node.value)])
            case "power", (a,):
                return _root(a) if node.value == 0.5 else _reciprocal(a)
        raise AssertionError(node.operation)


LARGEST = 2.0**30
"""Of a public number within a gradient."""


def doubles(roots: Sequence[Node], weights: Sequence[Any], cells: Sequence[Any]) -> list[Any]:
    """Steps in doubles, or in arrays of them where weights and cells are arrays."""
    values: dict[Node, Any] = {}
    with np.errstate(all="ignore"):
        for node in order_of(roots):
            value = _double(node, [values[operand] for operand in node.operands], weights, cells)
            values[node] = np.clip(np.where(np.isnan(value), 0.0, value), -LARGEST, LARGEST)
    return [values[root] for root in roots]


def _double(node: Node, operands: list[Any], weights: Sequence[Any], cells: Sequence[Any]) -> Any:
    match node.operation, operands:
        case "number", _:
            return node.value
        case "weight", _:
            return weights[int(node.value)]
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
            return np.float_power(a, node.value)
    most = np.max(np.stack(np.broadcast_arrays(*operands)), axis=0)
    powers = [np.exp(one - most) for one in operands]
    return powers[int(node.value)] / sum(powers) if node.operation == "share" else most + np.log(sum(powers))


FINE = 9
"""exp of a step of 2^-FINE is taken to the first order."""


def _exponential(a: Expression) -> Expression:
    low, high = -13 * 2**FINE, math.floor(math.log(REACH / 2**BITS) * 2**FINE)
    inside = clamp(a, low << (BITS - FINE), high << (BITS - FINE))
    coarse = shift(inside, BITS - FINE)
    table = np.rint(np.ldexp(np.exp(np.arange(low, high + 1) / 2**FINE), BITS))
    value = lookup(table, coarse - low)
    rest = inside - shift(coarse, FINE - BITS)
    return rounded(value + rounded(value * rest, BITS, 0, REACH), 0, 0, REACH)


def _parts(a: Expression) -> tuple[Expression, Expression]:
    """The power of two below a positive number, and its first twelve binary digits after the first, as places."""
    inside = clamp(a, 1, REACH)
    powers = [2**k for k in range(1, 27)]
    power = reshape(total(comparison(constant(powers), "<=", inside)), (1,))
    places = shift(inside * lookup([2 ** (26 - k) for k in range(27)], power), 14) - 2**12
    return power, clamp(places, 0, 2**12 - 1)


def _logarithm(a: Expression) -> Expression:
    power, digits = _parts(a)
    whole = np.rint(np.ldexp((np.arange(27) - BITS) * math.log(2), BITS))
    rest = np.rint(np.ldexp(np.log1p((np.arange(2**12) + 0.5) / 2**12), BITS))
    return lookup(whole, power) + lookup(rest, digits)


def _root(a: Expression) -> Expression:
    power, digits = _parts(a)
    whole = np.rint(np.ldexp(2.0 ** ((np.arange(27) - BITS) / 2), BITS))
    rest = np.rint(np.ldexp(np.sqrt(1 + (np.arange(2**12) + 0.5) / 2**12), BITS))
    return rounded(lookup(whole, power) * lookup(rest, digits), BITS, 0, REACH)


def _reciprocal(a: Expression) -> Expression:
    negative = comparison(a, "<", 0)
    size = clamp(select(negative, constant([0]) - a, a), 2 ** (2 * BITS) // REACH, REACH)
    inverse = constant([2 ** (2 * BITS)]) // size
    return select(negative, constant([0]) - inverse, inverse)


def _log_sum(logs: Expression) -> Expression:
    most = reshape(largest(logs), (1,))
    behind = rounded(most - logs, BITS - 10, 0, FAR * 2**10)
    together = reshape(total(lookup(exponentials(BITS), behind)), (1,))
    return rounded(most + _logarithm(together), 0, -REACH, REACH)
