"""An engine that reads the rows of a plan once, and calculates with them in plain Python.

A question of a dozen rows costs a database some four milliseconds, most of it for reading the question. Here DuckDB is
asked for the rows of scans, of persons and of what plain Python has no meaning for; the rest is calculated as
`engines_meaning` says. While `checks` is set DuckDB is asked every question too, and what it says otherwise is kept in
`differences`.
"""

from __future__ import annotations

from typing import Any

import engines_meaning as meaning
import numpy as np

from jostle.engine import base
from jostle.engine.sql.dialect import subquery
from jostle.lazy import Array
from jostle.plan.kinds import domain_kind
from jostle.plan.plan import FixedSum, Key, Plan, Term
from jostle.readers.duckdb import LocalDuckDb
from jostle.readers.public_sql import _cells

MANY = 5000  # values of keys: of more the database is asked
FITS = 2.0**50  # sums of terms below this, of a few thousand rows, are in 64 bits


class OneThread(LocalDuckDb):
    def _begin(self, **settings: int) -> None:
        self._beside = lambda work, interrupt: work()  # no thread for each question
        super()._begin(threads=1, **settings)


class PlainRows(OneThread):
    """Rows in this process; what was asked before is answered again."""

    checks = False

    def __init__(self) -> None:
        super().__init__()
        self._plain: dict[Plan, list[meaning.Row]] = {}
        self._said: dict[tuple[Any, ...], list[list[int]] | None] = {}
        self._checked: set[tuple[Any, ...]] = set()
        self.differences: list[str] = []

    def group(self, plan: Plan, keys: tuple[Key, ...], terms: tuple[Term, ...]) -> list[Array]:
        question = plan, keys, terms
        if question not in self._said:
            self._said[question] = self._meant(*question)
        cells = self._said[question]
        if cells is None:
            return super().group(*question)
        if self.checks and question not in self._checked:
            self._checked.add(question)
            said = super().group(*question)
            if [list(map(int, array.ravel().tolist())) for array in said] != cells:
                self.differences.append(f"{question} {cells} {said}")
            return said
        wide = map(_is_wide, terms)
        shape = base.shape(keys)
        return [
            np.array(some, dtype=object if of_any_size else np.int64).reshape(shape)
            for some, of_any_size in zip(cells, wide, strict=True)
        ]

    def _meant(self, plan: Plan, keys: tuple[Key, ...], terms: tuple[Term, ...]) -> list[list[int]] | None:
        if sum(base.shape(keys)) > MANY:
            return None
        try:
            return meaning.group(self._rows(plan), keys, terms)
        except meaning.Unknown:
            return None

    def _rows(self, plan: Plan) -> list[meaning.Row]:
        if plan not in self._plain:
            try:
                self._plain[plan] = meaning.made_of(plan, self._rows)
            except meaning.Unknown:
                self._plain[plan] = self._read(plan)
        return self._plain[plan]

    def _read(self, plan: Plan) -> list[meaning.Row]:
        """The rows of a plan as DuckDB makes them, with their weights where they have some."""
        relation = self.relation(plan)
        items = [column.alias for column in relation.columns.values()]
        items += ["w"] * relation.weighted + ["p"] * relation.personal
        rows = self.fetch(f"SELECT {', '.join(items) or '1'} FROM {subquery(relation.sql)}")
        if not items or not rows:
            return [{} for _ in rows]
        kinds = [domain_kind(domain) for domain in relation.schema.values()]
        columns = [list(cells) for cells in zip(*rows, strict=True)]
        for i, kind in enumerate(kinds):
            columns[i] = _cells(list(map(base.plain, columns[i])), kind)
        names = [*relation.schema, *[meaning.WEIGHT] * relation.weighted, *[meaning.PERSON] * relation.personal]
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _is_wide(term: Term) -> bool:
    """Whether the sums of a term may leave 64 bits, by its ends alone."""
    if not isinstance(term, FixedSum):
        return False
    most = max(abs(term.low), abs(term.high))
    return (most * most if term.square else most) * 2.0**term.bits >= FITS
