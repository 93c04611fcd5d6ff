"""Losses that a program writes as a function of weights and of a row: `loss_points` and `loss_of`, for `learning`.

The function is called as any other, on numbers that remember what is calculated of them, at six points. What they come
to is one formula, or it is no loss.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jostle.diagnostics import refuse
from jostle.lazy import np
from jostle.run.evaluator import Value, builtin
from jostle.run.values import Record, is_number, is_sequence, kind_name

PAIRS = 3
MOST_WEIGHTS = 2_000


@builtin
def _loss_points(start: Value, terms: Value) -> list[Record]:
    """Records of `weights`, shaped as `start`, and of a `row` of cells, one a term; of listed values a record."""
    from jostle.kernels.rowprograms.derivatives import symbol

    near, points = _flat(start), []
    for at in range(PAIRS):
        random = np.random.default_rng(at)
        aside, cells = random.normal(size=len(near)) / 10, random.uniform(-0.9, 0.9, size=len(terms))
        for side in (1, -1):  # whatever branches on one number has both
            weights = iter([symbol(near[i] + side * aside[i], "weight", i) for i in range(len(near))])
            row = Record()
            for place, (term, cell) in enumerate(zip(terms, side * cells, strict=True)):
                if term["value"] == "":
                    row[term["name"]] = symbol(cell, "cell", place)
                else:
                    row.setdefault(term["name"], Record())[str(term["value"])] = symbol(cell > 0, "cell", place)
            points.append(Record({"weights": _shaped(start, weights), "row": row}))
    return points


@builtin
def _loss_of(values: Value, start: Value, terms: Value) -> object:
    """The loss that gave these values at the points."""
    from jostle.kernels.rowprograms.losses import loss_of

    for value in values:
        if not is_number(value):
            raise refuse("TypeError", f"a loss is a number, and this one gave {kind_name(value)}",
                         help="`def loss(w, row) = (row.income - w.base - w.slope * row.age)^2`")  # fmt: skip
    return loss_of(values, _flat(start), terms)


@builtin
def _in_shape(start: Value, weights: Value) -> object:
    """Numbers, in the lists and records of `start`."""
    return _shaped(start, iter([float(weight) for weight in weights]))


def _flat(start: object) -> list[float]:
    numbers = list(_numbers(start))
    if not 1 <= len(numbers) <= MOST_WEIGHTS:
        raise refuse("ValueError", f"a loss has 1 to {MOST_WEIGHTS:,} weights", help="`{slope: 0, base: 0}`")
    return numbers


def _numbers(start: Any) -> Iterator[float]:
    if is_number(start):
        yield float(start)
    elif isinstance(start, dict):
        for value in start.values():
            yield from _numbers(value)
    elif is_sequence(start):
        for value in start:
            yield from _numbers(value)
    else:
        raise refuse("TypeError", f"weights start as numbers, or lists or records of them, not {kind_name(start)}",
                     help="`{slope: 0, base: 0}`")  # fmt: skip


def _shaped(start: Any, weights: Iterator[Any]) -> Any:
    """The next of these in place of each number."""
    if is_number(start):
        return next(weights)
    if isinstance(start, dict):
        return Record((name, _shaped(value, weights)) for name, value in start.items())
    return [_shaped(value, weights) for value in start]
