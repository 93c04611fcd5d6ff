"""Programs over a row: expressions in an order of evaluation, and their evaluator.

A program is data, and can be sent to where rows are. The evaluator computes it for a batch of rows at a time, in
doubles that hold integers (`expressions`). It keeps no state between batches, and a batch may be empty.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from jostle.lazy import Array, Floats, np
from jostle.privacy.rows.expressions import Expression, RowProgramError, Shape

LONGEST = 2**14
"""The largest number of expressions in a program."""


@dataclass(frozen=True, eq=False)
class RowProgram:
    """`outputs` as functions of `inputs`, for each row independently."""

    inputs: tuple[Expression, ...]
    outputs: tuple[Expression, ...]

    def __post_init__(self) -> None:
        own = {id(one) for one in self.inputs}
        if any((e.operation == "columns") is not (id(e) in own) for e in self.order):
            raise RowProgramError("columns that are no input of the program, or an input that is no column")

    def __reduce__(self) -> tuple[type[RowProgram], tuple[object, ...]]:
        return RowProgram, (self.inputs, self.outputs)  # cached properties are keyed by identity and not pickled

    @cached_property
    def order(self) -> tuple[Expression, ...]:
        """Every expression once, operands first."""
        order: dict[int, Expression] = {}
        waiting: list[tuple[Expression, bool]] = [(output, False) for output in reversed(self.outputs)]
        while waiting:
            expression, ready = waiting.pop()
            if id(expression) in order:
                continue
            if ready:
                order[id(expression)] = expression
                continue
            waiting.append((expression, True))
            waiting.extend((operand, False) for operand in reversed(expression.operands))
            if len(order) > LONGEST:
                raise RowProgramError(f"a program has at most {LONGEST:,} expressions")
        return tuple(order.values())

    @cached_property
    def places(self) -> dict[int, int]:
        return {id(expression): place for place, expression in enumerate(self.order)}

    def _expiring(self, sources: list[list[int]]) -> dict[int, list[int]]:
        """For each step the operands that no later step and no output needs."""
        last = list(range(len(sources)))
        for place, operands in enumerate(sources):
            for operand in operands:
                last[operand] = place
        outputs = {self.places[id(output)] for output in self.outputs}
        expiring: dict[int, list[int]] = {}
        for place, end in enumerate(last):
            if place not in outputs:
                expiring.setdefault(end, []).append(place)
        return expiring

    def __call__(self, *batches: Array) -> list[Floats]:
        """The outputs (*shape, n) for a batch of n rows. `batches[i]` has the shape (*inputs[i].shape, n)."""
        rows = batches[0].shape[-1] if batches else 1
        values: list[Floats | None] = [None] * len(self.order)
        for column, batch in zip(self.inputs, batches, strict=True):
            if id(column) in self.places:
                values[self.places[id(column)]] = np.asarray(batch, dtype=np.float64)
        for place, apply, sources, reusable, shape, expiring in self._steps:
            out = next((v for s in reusable if (v := values[s]) is not None and v.shape == (*shape, rows)), None)
            values[place] = apply([values[source] for source in sources], out)
            for ended in expiring:
                values[ended] = None
        results = (values[self.places[id(output)]] for output in self.outputs)
        return [np.broadcast_to(v, (*v.shape[:-1], rows)) for v in results if v is not None]

    @cached_property
    def _steps(self) -> list[tuple[int, Callable[..., Floats], list[int], list[int], Shape, list[int]]]:
        """The evaluation steps in order: index, operation, indices of operands, operands that may be overwritten since
        this is their last use, shape, and operands with their last use here."""
        steps, places, owned = [], self.places, self._owned
        sources = [[places[id(operand)] for operand in expression.operands] for expression in self.order]
        expiring = self._expiring(sources)
        for place, expression in enumerate(self.order):
            if expression.operation != "columns":
                ending = expiring.get(place, [])
                reusable = [s for s in sources[place] if s in ending and s in owned]
                steps.append((place, expression.apply, sources[place], reusable, expression.shape, ending))
        return steps

    @cached_property
    def _owned(self) -> set[int]:
        """Expressions whose arrays are neither inputs nor constants, and share memory with no other array."""
        views = [e for e in self.order if e.operation == "reshape"]
        shared = {self.places[id(e)] for view in views for e in (view, *view.operands)}
        return {p for p, e in enumerate(self.order) if p not in shared and e.operation not in ("columns", "constant")}


def program(inputs: Sequence[Expression], *outputs: Expression) -> RowProgram:
    return RowProgram(tuple(inputs), outputs)
