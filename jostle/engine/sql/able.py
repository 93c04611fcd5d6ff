"""What a database cannot do as the others do, found in a question before anything is charged or asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from jostle.diagnostics import refuse
from jostle.engine.sql.dialect import Dialect, doubled_quotes
from jostle.language.operations.texts import LONGEST
from jostle.plan.domains import Categories
from jostle.plan.plan import Apply, Bound, Constant, Key, Listed, Sample, Scan, Summands
from jostle.records import field_names


def check(
    question: object, dialect: Dialect, check_source: Callable[[Scan | Bound], None],
    check_rows: Callable[[Summands | Sample], None],
) -> None:  # fmt: skip
    """Refuses an operation, a text or a data set that is not done alike, and rows that cannot be summed where they are,
    anywhere in a question: in what it is made of, plans, expressions, keys and descriptions, all of which are public.
    Names of columns are no texts of a query.
    """
    if not dialect.refused and dialect.spelled and dialect.quoted is doubled_quotes:
        return
    waiting, seen = [question], {id(question)}
    while waiting:
        part = waiting.pop()
        for text in _texts(part):
            if len(text) > LONGEST:
                message = f"a text of more than {LONGEST:,} characters is not sent to {dialect.name}"
                raise refuse("DataError", message, help="leave it out: no cell is so long")
            dialect.literal(text)
        if isinstance(part, Apply):
            need(part.op, dialect)
            if part.op == "matches" and isinstance(part.args[1], Constant):
                dialect.pattern(str(part.args[1].value))
        elif isinstance(part, Scan | Bound):
            check_source(part)
        elif isinstance(part, Summands | Sample):
            check_rows(part)
        inner: list[object] = []
        if isinstance(part, tuple | list):
            inner = [*part]
        else:
            inner = [getattr(part, name) for name in field_names(type(part)) if name != "exposures"]
        waiting += [one for one in inner if id(one) not in seen]
        seen |= {id(one) for one in inner}


def _texts(part: object) -> Iterable[str]:
    """The texts of a part of a question that stand in its SQL."""
    values: Iterable[object] = ()
    if isinstance(part, Constant):
        values = (part.value,)
    elif isinstance(part, Categories | Key):
        values = () if isinstance(part.values, range) else part.values
    elif isinstance(part, Listed):
        values = (cell for row in part.rows for cell in row)
    return (value for value in values if isinstance(value, str))


def need(operation: str, dialect: Dialect) -> None:
    """Refuses an operation that the database cannot do as the others do."""
    if operation in dialect.refused:
        message = f"{dialect.name} cannot do `{operation}` as the other engines do"
        raise refuse("DataError", message, help="calculate it in the data before, or use another engine")
