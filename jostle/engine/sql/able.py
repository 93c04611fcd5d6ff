"""What a database cannot do as the others do, found in a question before anything is charged or asked."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from jostle.diagnostics import refuse
from jostle.engine.sql.dialect import Dialect, doubled_quotes
from jostle.plan.plan import Apply, Bound, Sample, Scan, Summands


def check(
    question: object, dialect: Dialect, check_source: Callable[[Scan | Bound], None],
    check_rows: Callable[[Summands | Sample], None],
) -> None:  # fmt: skip
    """Refuses an operation, a text or a data set that is not done alike, and rows that cannot be summed where they are,
    anywhere in a question: in what it is made of, plans, expressions, keys and descriptions, all of which are public.
    """
    if not dialect.refused and dialect.spelled and dialect.quoted is doubled_quotes:
        return
    waiting, seen = [question], {id(question)}
    while waiting:
        part = waiting.pop()
        if isinstance(part, str):
            dialect.literal(part)
        elif isinstance(part, Apply):
            need(part.op, dialect)
        elif isinstance(part, Scan | Bound):
            check_source(part)
        elif isinstance(part, Summands | Sample):
            check_rows(part)
        inner: list[object] = []
        if isinstance(part, tuple | list):
            inner = [*part]
        elif dataclasses.is_dataclass(part):
            inner = [getattr(part, field.name) for field in dataclasses.fields(part) if field.name != "exposures"]
        waiting += [one for one in inner if id(one) not in seen]
        seen |= {id(one) for one in inner}


def need(operation: str, dialect: Dialect) -> None:
    """Refuses an operation that the database cannot do as the others do."""
    if operation in dialect.refused:
        message = f"{dialect.name} cannot do `{operation}` as the other engines do"
        raise refuse("DataError", message, help="calculate it in the data before, or use another engine")
