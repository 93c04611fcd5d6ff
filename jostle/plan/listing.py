"""Every value that an expression can have, where the schema lists those of its columns.

What an operation gives for listed operands is worked out by its plain meaning, never on rows.
"""

from __future__ import annotations

import itertools
import math
from datetime import date

from jostle.language.operations import OPERATIONS
from jostle.plan.domains import Categories, Integer
from jostle.plan.kinds import Schema, domain_of
from jostle.plan.plan import Column, Constant, RowExpr

MOST_COMBINATIONS = 2**17
"""Combinations of operands that are worked out, and whole numbers of a range that are listed, at most."""

Value = float | str | bool | date


def listed_values(expr: RowExpr, schema: Schema) -> tuple[Value, ...] | None:
    """The values that are not missing, each once, in the order in which they are listed; None where they are open."""
    if isinstance(expr, Constant):
        value = expr.value
        if value is None or (isinstance(value, float | int) and not math.isfinite(value)):
            return ()
        return (value,)
    if isinstance(expr, Column):
        domain = domain_of(expr.name, schema)
        if isinstance(domain, Categories):
            return tuple(dict.fromkeys(domain.values))
        if isinstance(domain, Integer) and domain.high - domain.low < MOST_COMBINATIONS:
            return tuple(float(value) for value in range(domain.low, domain.high + 1))
        return None
    operands = expr.args[1:] if expr.op == "if" else expr.args
    parts = [part for operand in operands if (part := listed_values(operand, schema)) is not None]
    if len(parts) < len(operands):
        return None
    if expr.op in ("if", "coalesce"):
        return tuple(dict.fromkeys(itertools.chain(*parts)))
    operation = OPERATIONS.get(expr.op)
    if operation is None or operation.value is None or expr.op == "missing":
        return None
    if math.prod(map(len, parts)) > MOST_COMBINATIONS:
        return None
    values = [operation.value(*operands) for operands in itertools.product(*parts)]
    return tuple(dict.fromkeys(value for value in values if value is not None))
