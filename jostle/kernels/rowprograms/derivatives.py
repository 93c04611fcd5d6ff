"""Formulas of losses, from the origins that the language records for numbers, and their derivatives.

A loss is a formula of weights and of the cells of one row. It is differentiated once, in reverse mode (Linnainmaa
1970). Logarithms of sums of exponentials, and shares of such a sum, are single steps, which do not overflow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TypeVar

from jostle.formulas import Formula, Noised, Origin, Source
from jostle.kernels import KernelError
from jostle.noise_laws import Laplace

MOST_NODES = 12_000
"""The largest number of steps of a loss and its gradient."""


class Node:
    """A step of a formula: an operation on other steps, a number, a weight or a cell of the row."""

    __slots__ = ("operands", "operation", "public", "value")
    public: bool

    def __init__(self, operation: str, operands: tuple[Node, ...], value: float) -> None:
        self.operation, self.operands, self.value = operation, operands, value
        self.public = operation != "cell" and all(operand.public for operand in operands)


class Input(Source):
    """A symbolic input of a loss: a weight, or a cell of the row, by its index."""

    __slots__ = ("operation", "place")

    def __init__(self, value: float, operation: str, place: int) -> None:
        super().__init__(value, Laplace(1.0))
        self.operation, self.place = operation, place


def symbol(value: float, operation: str, place: int) -> Noised:
    """A number whose calculations are recorded."""
    return Noised.of(float(value), Input(float(value), operation, place))


class Graph:
    """The distinct steps of a formula: equal ones are shared."""

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
        if is_number(a, 0) or is_number(b, 0):
            return b if is_number(a, 0) else a
        if a.operation == b.operation == "number":
            return self.number(a.value + b.value)
        return self.node("+", a, b)

    def subtract(self, a: Node, b: Node) -> Node:
        if is_number(a, 1) and b.operation == "share" and len(b.operands) == 2:
            return self.node("share", *b.operands, value=1 - b.value)
        return self.add(a, self.multiply(self.number(-1), b))

    def multiply(self, a: Node, b: Node) -> Node:
        if is_number(a, 0) or is_number(b, 1):
            return a
        if is_number(b, 0) or is_number(a, 1):
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
        """The logarithms of the terms of a sum of exponentials; None for other steps."""
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
        """The steps of a number that was computed from symbols."""
        if type(value) is not Noised:
            return self.number(value)
        steps: dict[Origin, Node] = {}
        for origin in ordered([value.origin], _inputs):
            if isinstance(origin, Input):
                steps[origin] = self.node(origin.operation, value=origin.place)
            elif isinstance(origin, Formula):
                operands = [self.number(one) if isinstance(one, float | int) else steps[one] for one in origin.inputs]
                steps[origin] = self._step(origin.function, operands)
            else:
                raise KernelError("a loss is of its weights and of one row, and this one has a measured number in it")
        return steps[value.origin]

    def _step(self, function: object, operands: list[Node]) -> Node:
        first, last = operands[0], operands[-1]
        of_two = {"+": self.add, "-": self.subtract, "*": self.multiply, "/": self.divide}
        if function in of_two:
            return of_two[str(function)](first, last)
        match function:
            case "^":
                is_known = last.operation == "number"
                return self.power(first, last.value) if is_known else self.exp(self.multiply(last, self.log(first)))
            case "exp" | "log":
                return self.exp(first) if function == "exp" else self.log(first)
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
        raise KernelError(f"a loss has no `{function}`: it is of + - * / ^, exp log sqrt abs clamp min max sum avg")

    # Derivatives -------------------------------------------------------------------------------------

    def gradient(self, loss: Node, weights: int) -> list[Node]:
        """The derivatives with respect to all weights."""
        slopes: dict[Node, Node] = {loss: self.number(1)}
        for node in reversed(order_of([loss])):
            if node in slopes and not _leaf(node):
                for operand, slope in self._pulls(node, slopes[node]):
                    before = slopes.get(operand)
                    slopes[operand] = slope if before is None else self.add(before, slope)
        return [slopes.get(self.node("weight", value=place), self.number(0)) for place in range(weights)]

    def _pulls(self, node: Node, slope: Node) -> Iterable[tuple[Node, Node]]:
        """The operands of a step, each with its contribution to the operand's derivative."""
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
                less = self.multiply(self.number(-1), own)
                shares = [self.node("share", *logs, value=i) for i in range(len(logs))]
                pulls = [(a, self.multiply(share, less)) for a, share in zip(logs, shares, strict=True)]
                return [*pulls, (logs[int(node.value)], own)]
        raise AssertionError(node.operation)


def is_number(node: Node, value: float) -> bool:
    return node.operation == "number" and node.value == value


def _leaf(node: Node) -> bool:
    return node.operation in ("number", "weight", "cell")


def order_of(roots: Iterable[Node]) -> list[Node]:
    """All steps below `roots` and these, operands first."""
    return ordered(roots, lambda node: node.operands)


def _inputs(origin: Origin) -> Iterable[Origin]:
    """The inputs of a formula that are no plain numbers."""
    return [one for one in getattr(origin, "inputs", ()) if not isinstance(one, float | int)]


Step = TypeVar("Step")


def ordered(roots: Iterable[Step], operands: Callable[[Step], Iterable[Step]]) -> list[Step]:
    """All steps below `roots` and these, in an order in which operands come first."""
    order: dict[Step, None] = {}
    waiting = [(root, False) for root in roots]
    while waiting:
        node, ready = waiting.pop()
        if ready:
            order[node] = None
        elif node not in order:
            waiting.append((node, True))
            waiting += [(operand, False) for operand in operands(node) if operand not in order]
    return list(order)
