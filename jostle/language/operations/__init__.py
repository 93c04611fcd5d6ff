"""The operations on the values of a row, one row of a table each: numbers, texts, dates and times.

The operations are total on rows: what has no value is missing there, and a refusal in a program. They are the same on
every engine: what one is stands in its row as plain Python, against which the SQL of `jostle/engine/sql` is tested.
"""

from __future__ import annotations

from jostle.language.operations.operation import (
    ABSENCE,
    DATE,
    MOMENTS,
    NUMBER,
    NUMBERS,
    TEXT,
    TEXTS,
    TIME,
    Operation,
    Whole,
)

__all__ = [
    "COMPARISONS", "FOLDS", "LOGIC", "OPERATIONS", "OVERLOADS", "PARTS", "ROW_FUNCTIONS",
    "Operation", "Whole",
]  # fmt: skip

COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">="})
LOGIC = frozenset({"and", "or", "not"})
FOLDS = ("max", "min", "sum", "argmax", "argmin")
"""What may stand before `over`."""

OPERATIONS = {operation.name: operation for operation in (*NUMBERS, *TEXTS, *MOMENTS, *ABSENCE)}
ROW_FUNCTIONS = {name: operation for name, operation in OPERATIONS.items() if operation.about}
"""Those that a program calls by name."""
PARTS = frozenset(op.name for op in MOMENTS if op.gives == NUMBER and len(op.kinds) == 1 and "year" not in op.name[-4:])
"""Parts of dates and times that have few values, whatever the date is."""
OVERLOADS: dict[tuple[str | None, ...], str] = {
    ("+", TEXT, TEXT): "concat",
    ("+", DATE, NUMBER): "shift",
    ("+", TIME, NUMBER): "shift time",
    ("-", DATE, DATE): "apart",
    ("-", TIME, TIME): "time apart",
    ("trunc", TIME, TEXT): "trunc time",
    ("date", TEXT): "date of text",
    ("time", TEXT): "time of text",
    **{
        (name, *(kind,) * many): f"{name} {kind}"
        for name, many in (("clamp", 3), ("min", 2), ("max", 2))
        for kind in (DATE, TIME)
    },
}
"""Operations that a program spells with the name of another one, by the kinds of their operands."""
