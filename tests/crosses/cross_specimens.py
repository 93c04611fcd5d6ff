"""Breaks that were there once, put back by a patch of a few lines: a run must find each of them.

Most are roots of programs that read one person's secret: a failure that is answered, two notions of who is the same,
something over private rows that is not total, a type or a number that is only as wide as the rows that happen to be
there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import engines_meaning as meaning
import numpy as np
import pytest
from cross_engine import PlainRows

from jostle.engine import records
from jostle.engine.duckdb.engine import DUCKDB
from jostle.engine.sql import functions as sql_functions
from jostle.engine.sql import persons
from jostle.engine.sql.cells import FLOATS
from jostle.plan.plan import Beside, Bound, Count, GroupRows, Scan, inputs
from jostle.privacy.kernel.kernel import Kernel
from jostle.privacy.mechanisms.additive import Linear
from jostle.privacy.mechanisms.margin import Stopping
from jostle.privacy.transformations import persons as transformed
from jostle.readers import arrays, frames
from jostle.records import replace

Patch = pytest.MonkeyPatch


def half_of_the_noise(patch: Patch) -> None:
    """Noise for half of what a row can move."""
    scale = Linear.scale
    patch.setattr(Linear, "scale", property(lambda self: scale.__get__(self) / 2))


def types_of_rows(patch: Patch) -> None:
    """Columns without rows are texts, whatever they are described as."""
    import pyarrow as pa

    whole = arrays.cells

    def of_rows(column: Any) -> Any:
        return whole(column) if len(column) else pa.chunked_array([pa.nulls(0, pa.string())])

    for reader in (arrays, frames):  # which has it by name, whenever it is loaded
        patch.setattr(reader, "cells", of_rows)


def a_row_that_fails(patch: Patch) -> None:
    """An engine that cannot add up more than a few rows."""
    group = PlainRows.group

    def failing(self: PlainRows, *arguments: Any) -> Any:
        numbers = group(self, *arguments)
        if any(abs(int(n)) > 6 for array in numbers for n in array.ravel().tolist()):
            raise ValueError("too many")
        return numbers

    patch.setattr(PlainRows, "group", failing)


def a_failure_answered_as_of_no_rows(patch: Patch) -> None:
    """An engine that fails on tables of an odd number of rows; what fails is answered as if the table were empty."""
    group = PlainRows.group

    def swallowing(self: PlainRows, plan: Any, *arguments: Any) -> Any:
        numbers, base = group(self, plan, *arguments), plan
        while not isinstance(base, Scan | Bound):
            base = inputs(base)[0]
        fails = int(group(self, base, (), (Count(),))[0]) % 2
        return [np.zeros_like(array) for array in numbers] if fails else numbers

    patch.setattr(PlainRows, "group", swallowing)


def sums_of_few_bits(patch: Patch) -> None:
    """Exact sums that begin again from below where they leave 33 bits."""
    group = PlainRows.group
    patch.setattr(PlainRows, "group", lambda *given: [(array + 2**32) % 2**33 - 2**32 for array in group(*given)])


def two_zeros(patch: Patch) -> None:
    """0.0 and −0.0 are two persons, whose rows are bounded one by one."""
    text = persons.text
    patch.setattr(persons, "text", lambda d, cell, kind: d.as_text(cell) if kind in FLOATS else text(d, cell, kind))


def records_that_fail(patch: Patch) -> None:
    """What is calculated of weighted records is a function that fails on a cell, the number 5."""
    asked = records._chunks

    def failing(here: Any, query: str, block: Any, names: tuple[str, ...]) -> Any:
        if any(5 in block.columns[name].tolist() for name in names):
            raise ValueError("five")
        return asked(here, query, block, names)

    patch.setattr(records, "_chunks", failing)


def _fails_on_long_texts(patch: Patch, operation: str, most: int) -> None:
    template = sql_functions.template

    def failing(dialect: Any, name: str, constants: tuple[Any, ...]) -> str:
        sql = template(dialect, name, constants)
        if name != operation or dialect.name != DUCKDB.name:
            return sql
        return f"CASE WHEN length({{0}}) > {most} THEN error('too long') ELSE {sql} END"

    patch.setattr(sql_functions, "template", failing)


def patterns_that_recurse(patch: Patch) -> None:
    """A pattern is searched with a stack that a text of 1,500 characters fills."""
    _fails_on_long_texts(patch, "matches", 1500)


def no_room_for_long_texts(patch: Patch) -> None:
    """A function of texts wants more memory than there is for those of 50,000 characters."""
    _fails_on_long_texts(patch, "upper", 50_000)


def runs_at_the_whole_amount(patch: Patch) -> None:
    """Each run of many may spend all that is paid for them."""
    patch.setattr(Stopping, "parts", 1)


def runs_that_forget(patch: Patch) -> None:
    """What a run spent before it spends again."""
    charged = Kernel._charge_allotments

    def forgetting(self: Kernel, *arguments: Any) -> None:
        if not self.in_a_run:
            charged(self, *arguments)

    patch.setattr(Kernel, "_charge_allotments", forgetting)


def an_order_of_all_persons(patch: Patch) -> None:
    """What stands before and after a row is looked for among the rows of all persons: who comes moves others' rows."""
    term, beside = persons._term, meaning._beside

    def of_all(rows: Any, one: Any, name: str, most: int, keys: list[str]) -> Any:
        return term(rows, one, name, most, ["0", *keys[1:-1], f"{keys[-1]}, p"] if isinstance(one, Beside) else keys)

    def among_all(one: Beside, group: tuple[Any, ...], groups: dict[tuple[Any, ...], Any]) -> float | None:
        as_anybodys = {each: ("", *each[1:-1], (each[-1], each[0])) for each in groups}
        return beside(one, as_anybodys[group], {as_anybodys[each]: rows for each, rows in groups.items()})

    patch.setattr(persons, "_term", of_all)
    patch.setattr(meaning, "_beside", among_all)


def an_order_that_keeps_all_rows(patch: Patch) -> None:
    """Of a person's moments as many are priced as a program asks for, and all are kept."""
    truncate = transformed.truncate

    def priced_alone(table: Any, *most: Any, **more: Any) -> Any:
        few = truncate(table, *most, **more)
        return replace(few, plan=table.plan) if isinstance(table.plan, GroupRows) and len(most) == 3 else few

    patch.setattr(transformed, "truncate", priced_alone)


MOVED = "more is lost than is charged, or scores part further than noise is for"


def shows(what: str, broken: str) -> bool:
    """Whether a break is what it was put back for, of which there may be several."""
    return any(one in broken for one in what.split(", or "))


SPECIMENS: tuple[tuple[Callable[[Patch], None], str, int], ...] = (
    (half_of_the_noise, "more is lost than is charged", 2500007),
    (types_of_rows, "neighbours look different", 2500001),
    (a_row_that_fails, "a fault after a charge", 2500001),
    (a_failure_answered_as_of_no_rows, "more is lost than is charged", 2500508),
    (sums_of_few_bits, "more is lost than is charged", 2501596),
    (two_zeros, "more is lost than is charged", 2505653),
    (records_that_fail, "a fault after a charge", 2503051),
    (patterns_that_recurse, "neighbours look different", 2508523),
    (no_room_for_long_texts, "neighbours look different", 2558610),
    (runs_at_the_whole_amount, "more is lost than is charged", 3000000000007),
    (an_order_of_all_persons, MOVED, 4000000001018),
    (an_order_that_keeps_all_rows, MOVED, 4000000005000),
    (runs_that_forget, "a run loses more than its part", 3000000000011),
)
"""With what each is, and the seed of a program that convicts it."""
