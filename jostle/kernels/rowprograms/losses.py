"""Gradients of a loss that a program writes, by its own formula: a row program that follows from another.

A loss is a formula of weights and of the cells of one row, as the language remembers what a number was calculated from
(`jostle.formulas`). It is differentiated once, backwards (Linnainmaa 1970). Numbers for the weights then make the
gradient a row program in fixed point: whole multiples of 2^-18 within ±256, at which every step stops. So it is total,
and as any builder's program it needs no trust.

Logarithms of sums of exponentials, and shares of such a sum, are steps of their own, which no large number leaves.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from jostle.formulas import Formula, Noised, Origin, Source
from jostle.kernels import KernelError, Model, members
from jostle.kernels.rowprograms.mixtures import normalised
from jostle.kernels.rowprograms.scales import FAR, affine, exponentials, numbers, rounded, row
from jostle.noise_laws import Laplace
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

MOST_NODES = 6_000
"""Of a loss and its gradient."""


class Node:
    """A step of a formula: an operation on other steps, a number, a weight or a cell of the row."""

    __slots__ = ("operands", "operation", "public", "value")

    def __init__(self, operation: str, operands: tuple[Node, ...], value: float) -> None:
        self.operation, self.operands, self.value = operation, operands, value
        self.public = operation != "cell" and all(operand.public for operand in operands)


class Input(Source):
    """A number of which a loss is followed: a weight, or a cell of the row, by its place."""

    __slots__ = ("operation", "place")

    def __init__(self, value: float, operation: str, place: int) -> None:
        super().__init__(value, Laplace(1.0))
        self.operation, self.place = operation, place


def symbol(value: float, operation: str, place: int) -> Noised:
    """A number that remembers what is calculated of it."""
    return Noised.of(value, Input(value, operation, place))


class Graph:
    """Steps, each once: two that calculate the same are one."""

    def __init__(self) -> None:
        self._nodes: dict[tuple[object, ...], Node] = {}

    def node(self, operation: str, *operands: Node, value: float = 0.0) -> Node:
        key = (operation, value, *map(id, operands))
        if key not in self._nodes:
            if len(self._nodes) >= MOST_NODES:
                raise KernelError(f"a loss and its gradient take at most {MOST_NODES:,} steps")
            self._nodes[key] = Node(operation, operands, value)
        return self._nodes[key]

    def number(self, value: float) -> Node:
        return self.node("number", value=float(value))

    # What is calculated ------------------------------------------------------------------------------

    def add(self, a: Node, b: Node) -> Node:
        if _is(a, 0) or _is(b, 0):
            return b if _is(a, 0) else a
        if a.operation == b.operation == "number":
            return self.number(a.value + b.value)
        return self.node("+", a, b)

    def subtract(self, a: Node, b: Node) -> Node:
        if _is(a, 1) and b.operation == "share" and len(b.operands) == 2:
            return self.node("share", *b.operands, value=1 - b.value)
        return self.add(a, self.multiply(self.number(-1), b))

    def multiply(self, a: Node, b: Node) -> Node:
        if _is(a, 0) or _is(b, 1):
            return a
        if _is(b, 0) or _is(a, 1):
            return b
        if a.operation == b.operation == "number":
            return self.number(a.value * b.value)
        if a.operation == b.operation == "exp":
            return self.exp(self.add(a.operands[0], b.operands[0]))
        if b.operation == "number" or (b.public and not a.public):
            a, b = b, a
        if a.operation == "number" and b.operation == "*" and b.operands[0].operation == "number":
            return self.multiply(self.number(a.value * b.operands[0].value), b.operands[1])
        return self.node("*", a, b)

    def divide(self, a: Node, b: Node) -> Node:
        logs = self._logs(b)
        if logs is None:
            return self.multiply(a, self.power(b, -1))
        own = a.operands[0] if a.operation == "exp" else self._log_of_number(a)
        if own is not None and own in logs:
            return self.node("share", *logs, value=logs.index(own))
        return self.multiply(a, self.exp(self.multiply(self.number(-1), self.node("log sum", *logs))))

    def exp(self, a: Node) -> Node:
        return self.number(math.exp(min(a.value, 700))) if a.operation == "number" else self.node("exp", a)

    def log(self, a: Node) -> Node:
        if a.operation == "share":
            own = a.operands[int(a.value)]
            return self.subtract(own, self.node("log sum", *a.operands))
        logs = self._logs(a)
        return self.node("log", a) if logs is None else self.node("log sum", *logs)

    def power(self, a: Node, exponent: float) -> Node:
        if exponent in (0, 1):
            return a if exponent else self.number(1)
        if a.operation == "exp":
            return self.exp(self.multiply(self.number(exponent), a.operands[0]))
        if exponent in (-1, 0.5) or a.public:
            return self.node("power", a, value=exponent)
        if exponent < 0:
            return self.node("power", self.power(a, -exponent), value=-1.0)
        if float(exponent).is_integer() and exponent <= 16:
            half = self.power(a, exponent // 2)
            return self.multiply(self.multiply(half, half), a) if exponent % 2 else self.multiply(half, half)
        return self.exp(self.multiply(self.number(exponent), self.log(a)))

    def if_less(self, a: Node, b: Node, one: Node, other: Node) -> Node:
        return one if one is other else self.node("if less", a, b, one, other)

    def larger(self, a: Node, b: Node) -> Node:
        return self.if_less(a, b, b, a)

    def smaller(self, a: Node, b: Node) -> Node:
        return self.if_less(a, b, a, b)

    def _logs(self, a: Node) -> list[Node] | None:
        """The logarithms of what a sum of exponentials is a sum of; None of any other step."""
        waiting, logs = [a], list[Node]()
        while waiting:
            one = waiting.pop()
            if one.operation == "+":
                waiting += one.operands[::-1]
                continue
            own = one.operands[0] if one.operation == "exp" else self._log_of_number(one)
            if own is None:
                return None
            logs.append(own)
        return logs if len(logs) > 1 else None

    def _log_of_number(self, a: Node) -> Node | None:
        return self.number(math.log(a.value)) if a.operation == "number" and a.value > 0 else None

    # Formulas ----------------------------------------------------------------------------------------

    def of(self, value: float) -> Node:
        """The steps of a number that was calculated of symbols."""
        if type(value) is not Noised:
            return self.number(value)
        steps: dict[int, Node] = {}
        waiting: list[Origin] = [value.origin]
        while waiting:
            origin = waiting[-1]
            if isinstance(origin, Input):
                steps[id(origin)] = self.node(origin.operation, value=origin.place)
            elif not isinstance(origin, Formula):
                raise KernelError("a loss is of its weights and of one row, and this one has a measured number in it")
            if id(origin) in steps:
                waiting.pop()
                continue
            missing = [one for one in origin.inputs if not isinstance(one, float | int) and id(one) not in steps]
            waiting += missing
            if not missing:
                operands = [steps[id(one)] if id(one) in steps else self.number(one) for one in origin.inputs]
                steps[id(origin)] = self._step(origin.function, operands)
        return steps[id(value.origin)]

    def _step(self, function: object, operands: list[Node]) -> Node:
        first, last = operands[0], operands[-1]
        match function:
            case "+":
                return self.add(first, last)
            case "-":
                return self.subtract(first, last)
            case "*":
                return self.multiply(first, last)
            case "/":
                return self.divide(first, last)
            case "^" if last.operation == "number":
                return self.power(first, last.value)
            case "^":
                return self.exp(self.multiply(last, self.log(first)))
            case "exp":
                return self.exp(first)
            case "log":
                return self.log(first)
            case "sqrt":
                return self.power(first, 0.5)
            case "abs":
                return self.larger(first, self.multiply(self.number(-1), first))
            case "clamp":
                return self.larger(operands[1], self.smaller(operands[2], first))
            case "sum" | "avg" | "max" | "min":
                by = {"max": self.larger, "min": self.smaller}.get(str(function), self.add)
                result = first
                for operand in operands[1:]:
                    result = by(result, operand)
                return self.multiply(self.number(1 / len(operands)), result) if function == "avg" else result
        raise KernelError(f"a loss has no `{function}`: it is made of + - * / ^, exp log sqrt abs clamp min max sum avg")

    # Derivatives -------------------------------------------------------------------------------------

    def gradient(self, loss: Node, weights: int) -> list[Node]:
        """The derivatives in all weights."""
        slopes: dict[Node, Node] = {loss: self.number(1)}
        for node in reversed(order_of([loss])):
            if node in slopes and not _leaf(node):
                for operand, slope in self._pulls(node, slopes[node]):
                    before = slopes.get(operand)
                    slopes[operand] = slope if before is None else self.add(before, slope)
        return [slopes.get(self.node("weight", value=place), self.number(0)) for place in range(weights)]

    def _pulls(self, node: Node, slope: Node) -> Iterable[tuple[Node, Node]]:
        """What each operand of a step adds to the slope of it."""
        match node.operation, node.operands:
            case "+", (a, b):
                return [(a, slope), (b, slope)]
            case "*", (a, b):
                return [(a, self.multiply(b, slope)), (b, self.multiply(a, slope))]
            case "exp", (a,):
                return [(a, self.multiply(node, slope))]
            case "log", (a,):
                return [(a, self.divide(slope, a))]
            case "power", (a,):
                inner = self.multiply(self.number(node.value), self.power(a, node.value - 1))
                return [(a, self.multiply(inner, slope))]
            case "if less", (a, b, one, other):
                none = self.number(0)
                return [(one, self.if_less(a, b, slope, none)), (other, self.if_less(a, b, none, slope))]
            case "log sum", logs:
                shares = [self.node("share", *logs, value=i) for i in range(len(logs))]
                return [(a, self.multiply(share, slope)) for a, share in zip(logs, shares, strict=True)]
            case "share", logs:
                own = self.multiply(node, slope)
                shares = [self.node("share", *logs, value=i) for i in range(len(logs))]
                pulls = [(a, self.multiply(self.multiply(self.number(-1), s), own)) for a, s in zip(logs, shares, strict=True)]
                return [*pulls, (logs[int(node.value)], own)]
        raise AssertionError(node.operation)


def _is(node: Node, value: float) -> bool:
    return node.operation == "number" and node.value == value


def _leaf(node: Node) -> bool:
    return node.operation in ("number", "weight", "cell")


def order_of(roots: Iterable[Node]) -> list[Node]:
    """All steps that these are calculated of, and they, operands first."""
    order: dict[Node, None] = {}
    waiting = [(root, False) for root in roots]
    while waiting:
        node, ready = waiting.pop()
        if ready:
            order[node] = None
        elif node not in order:
            waiting.append((node, True))
            waiting += [(operand, False) for operand in node.operands if operand not in order]
    return list(order)


@dataclass(frozen=True, eq=False)
class Loss(Model):
    """The gradient of a loss, a step for each of its weights, which are to `start` so; `terms` are the cells of a row
    that it reads."""

    gradient: tuple[Node, ...]
    places: tuple[int, ...]
    terms: Sequence[Any]
    start: Sequence[float]

    jostle_kind: ClassVar[str] = "a loss"
    jostle_members: ClassVar[dict[str, str]] = members("terms start size")

    @property
    def size(self) -> int:
        return len(self.gradient)

    def as_json(self) -> object:
        return str(self)

    def __str__(self) -> str:
        return f"a loss of {self.size} weights and {len(self.places)} columns"


def loss_of(values: Sequence[float], start: Sequence[float], terms: Sequence[Any]) -> Loss:
    """The loss that a function calculated of symbols, at several points.

    Raises `KernelError` where the points show different formulas, as of a function that branches, or a weight or the row
    is in none of it.
    """
    graph = Graph()
    losses = {graph.of(value) for value in values}
    if len(losses) != 1:
        raise KernelError("a loss is one formula: it branches, rounds or has something else that no formula tells")
    (loss,) = losses
    read = {int(node.value) for node in order_of([loss]) if node.operation == "cell"}
    gradient = graph.gradient(loss, len(start))
    if not read or loss.public:
        raise KernelError("the loss reads nothing of the row")
    if unread := [place for place, slope in enumerate(gradient) if _is(slope, 0)]:
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
    """Steps in fixed point, each once, for numbers of the weights: doubles of what is public, expressions of the rest."""

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
            needed = [] if node.public else [operand for operand in self._needed(node) if operand not in self._expressions]
            waiting += needed
            if not needed:
                self._expressions[node] = self._fixed(self.number(node)) if node.public else self._step(node)
        return self._expressions[root]

    def number(self, root: Node) -> float:
        """The value of a public step, as a double within ±LARGEST."""
        for node in order_of([root]):
            if node not in self._public:
                value = _double(node, [self._public[operand] for operand in node.operands], self._weights)
                self._public[node] = min(max(value, -LARGEST), LARGEST) if value == value else 0.0
        return self._public[root]

    def _fixed(self, value: float) -> Expression:
        return constant([min(max(round(value * 2**BITS), -REACH), REACH)])

    def _needed(self, node: Node) -> Iterable[Node]:
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


def _double(node: Node, operands: list[float], weights: list[float]) -> float:
    """A public step, in doubles."""
    try:
        match node.operation, operands:
            case "number", _:
                return node.value
            case "weight", _:
                return weights[int(node.value)]
            case "+", (a, b):
                return a + b
            case "*", (a, b):
                return a * b
            case "if less", (a, b, one, other):
                return one if a < b else other
            case "exp", (a,):
                return math.exp(min(a, 50.0))
            case "log", (a,):
                return math.log(max(a, 1 / LARGEST))
            case "power", (a,):
                return float(a**node.value) if a > 0 or float(node.value).is_integer() else 0.0
            case _, logs:
                most = max(logs)
                powers = [math.exp(one - most) for one in logs]
                share = powers[int(node.value)] / sum(powers)
                return share if node.operation == "share" else most + math.log(sum(powers))
    except (ZeroDivisionError, OverflowError):
        return LARGEST
    raise AssertionError(node.operation)


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
