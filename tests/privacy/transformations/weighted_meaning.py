"""What weighted records are, in plain Python: dictionaries of records and whole numbers, and no engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from jostle.engine.records import share
from jostle.plan.kinds import domain_kind
from jostle.plan.plan import RowExpr
from jostle.plan.records import (
    Combined,
    Joined,
    Kept,
    Mapped,
    Records,
    Reduced,
    Rows,
    Shaved,
    Sized,
    bits_of,
    record_schema,
)
from jostle.run.positions import evaluate

Weighed = dict[tuple[Any, ...], int]
TYPES = {"number": float, "text": object, "boolean": bool}


def meant(plan: Records, rows: Callable[[Rows], Weighed]) -> Weighed:
    """The records of a plan with their weights in its units; `rows` are those of a table, as it is described."""
    found: Weighed = {}

    def add(row: tuple[Any, ...], weight: int) -> None:
        if weight:
            found[row] = found.get(row, 0) + weight

    match plan:
        case Rows():
            return rows(plan)
        case Kept() | Mapped():
            inner = meant(plan.source, rows)
            if isinstance(plan, Kept):
                holds = column(plan.condition, plan.source, list(inner))
                return {row: weight for (row, weight), true in zip(inner.items(), holds, strict=True) if true}
            columns = [column(expr, plan.source, list(inner)) for _, expr in plan.columns]
            for row, weight in zip(zip(*columns, strict=True), inner.values(), strict=True):
                if None not in row:
                    add(row, weight)
        case Shaved():
            step = plan.step << (bits_of(plan) - plan.bits)
            for row, weight in finer(plan.source, bits_of(plan), rows).items():
                for i in range(min(plan.most, -(-weight // step))):
                    add((*row, float(i)), min(step, weight - i * step))
        case Sized() | Reduced():
            names = [name for name, _ in record_schema(plan.source)]
            groups: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
            inner = meant(plan.source, rows)
            for row in inner:
                groups.setdefault(tuple(row[names.index(name)] for name in plan.by), []).append(row)
            for key, some in groups.items():
                for height in sorted({inner[row] for row in some}):  # the records of at least this weight, and below it
                    lower = max((inner[row] for row in some if inner[row] < height), default=0)
                    several = [row for row in some if inner[row] >= height]
                    if isinstance(plan, Sized):
                        value = float(min(len(several), plan.most))
                    else:
                        numbers = [row[names.index(plan.of)] for row in several]
                        total = float(min(max(sum(map(int, numbers)), plan.low), plan.high))
                        value = {"max": max(numbers), "min": min(numbers), "sum": total}[plan.reducer]
                    add((*key, value), height - lower)
        case Joined():
            height = max(bits_of(plan.left), bits_of(plan.right))
            sides = [finer(side, height, rows) for side in (plan.left, plan.right)]
            mine, theirs = ([name for name, _ in record_schema(side)] for side in (plan.left, plan.right))
            keys = [[tuple(row[names.index(name)] for name in plan.on) for row in side]
                    for names, side in zip((mine, theirs), sides, strict=True)]  # fmt: skip
            totals: Weighed = {}
            for side, of in zip(sides, keys, strict=True):
                for key, weight in zip(of, side.values(), strict=True):
                    totals[key] = totals.get(key, 0) + weight
            for (a, v), k in zip(sides[0].items(), keys[0], strict=True):
                for (b, w), other in zip(sides[1].items(), keys[1], strict=True):
                    if k == other:
                        rest = tuple(x for x, name in zip(b, theirs, strict=True) if name not in plan.on)
                        add((*a, *rest), v * w * share(totals[k], height + plan.most))
        case Combined():
            left = finer(plan.left, bits_of(plan), rows)
            places = {name: i for i, (name, _) in enumerate(record_schema(plan.right))}
            order = [places[name] for name, _ in record_schema(plan.left)]
            right = {tuple(row[i] for i in order): w for row, w in finer(plan.right, bits_of(plan), rows).items()}
            hows = {"union": max, "intersect": min, "concat": int.__add__, "without": lambda a, b: max(a - b, 0)}
            for row in {**left, **right}:
                add(row, hows[plan.how](left.get(row, 0), right.get(row, 0)))
    return found


def finer(plan: Records, bits: int, rows: Callable[[Rows], Weighed]) -> Weighed:
    return {row: weight << (bits - bits_of(plan)) for row, weight in meant(plan, rows).items()}


def column(expr: RowExpr, plan: Records, records: Sequence[tuple[Any, ...]]) -> list[Any]:
    """The value of an expression for each record, by the plain meaning of its operations; None where it has none."""
    arrays: Mapping[str, Any] = {
        name: np.array([row[i] for row in records], dtype=TYPES[domain_kind(domain)])
        for i, (name, domain) in enumerate(record_schema(plan))
    }
    if not records:
        return []
    values, valid = evaluate(expr, arrays)
    return [(v + 0.0 if type(v) is float else v) if known else None
            for v, known in zip(values.tolist(), valid.tolist(), strict=True)]  # fmt: skip
