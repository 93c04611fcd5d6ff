"""What is known of a public table's columns from its rows: every value of it is public.

The rows stay as they are. Of a private table nothing is read.
"""

from __future__ import annotations

from typing import Any

from jostle.language.moments import number_of
from jostle.plan.plan import Apply, Categories, Column, Constant, Domain, Exact, Integer, Known, Moments, Open, Real
from jostle.privacy.kernel.handles import Table
from jostle.privacy.reading.public_data import PublicData
from jostle.records import replace

MOST_TEXTS = 4096
"""Different texts of a public column that are listed as its values; one with more stays open."""
MOST_WHOLE = 2**20
"""The widest range of whole numbers that a public column is said to have; a wider one is listed, where it has few."""


def with_known_domains(data: PublicData, table: Table) -> Table:
    """A public table of whose open columns the values are known: listed texts, and the range of numbers.

    A private one comes back as it is. Kept, as tables are joined often.
    """
    if table.private or not any(isinstance(domain, Open) for _, domain in table.schema):
        return table
    schema = data.remembered(
        table,
        lambda: tuple((name, _known_domain(data, table, name, domain)) for name, domain in table.schema),
        64 * MOST_TEXTS,
    )
    return replace(table, plan=Known(table.plan, schema), schema=schema, origin=None)


def _known_domain(data: PublicData, table: Table, name: str, domain: Domain) -> Domain:
    if not isinstance(domain, Open) or domain.kind == "boolean":
        return domain
    column = Column(name)
    if domain.kind == "text":
        texts = _values(data, table, column)
        return Categories(texts) if texts else domain
    if domain.kind in ("date", "time"):
        (low,), (high,) = data.exact(table, (), (Exact("min", column), Exact("max", column)))[1]
        return domain if low is None else Moments(domain.kind, number_of(low), number_of(high))
    whole = Apply("if", (Apply("==", (column, Apply("floor", (column,)))), column, Constant(None)))
    statistics = (Exact("min", column), Exact("max", column), Exact("count", column), Exact("count", whole))
    (low,), (high,), (many,), (integral,) = data.exact(table, (), statistics)[1]
    if low is None:
        return domain
    if many > integral:
        return Real(float(low), float(high))
    if high - low >= MOST_WHOLE and (numbers := _values(data, table, column)) is not None:
        return Categories(numbers)
    return Integer(int(low), int(high))


def _values(data: PublicData, table: Table, column: Column) -> tuple[Any, ...] | None:
    """The different values of a column of whole numbers or texts, in order; None where there are very many."""
    (many,) = data.exact(table, (), (Exact("count_distinct", column),))[1][0]
    return tuple(data.exact(table, (column,), (Exact("count"),))[0][0]) if many <= MOST_TEXTS else None
