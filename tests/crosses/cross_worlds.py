"""Where crossed programs run: one table of hostile rows in several file types, and its neighbours."""

from __future__ import annotations

import datetime
import io
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from jostle.language.moments import number_of
from jostle.language.patterns import truncated

KINDS = {"id": "text", "n": "number", "r": "number", "c": "text", "b": "boolean", "d": "date", "m": "time", "s": "text",
         "w": "number"}  # fmt: skip
DESCRIPTION = (
    '{id: text, n: 0..9, r: 0.0..80.0, c: {"Ames", "Cork", "Delft"}, b: {true, false}, d: date, m: time, s: text, '
    "w: -1000000000000000.0..1000000000000000.0}"
)
"""Of the columns that are listed or bounded, some are never missing in some batches (`described`)."""
READINGS = {"s: text": "s: trim(s)", "d: date": 'd: date("%Y-%m-%d")', "m: time": 'm: time("%Y-%m-%d %H:%M:%S")'}
Row = tuple[Any, ...]
CELLS: dict[str, tuple[Any, ...]] = {
    "n": (0, 1, 5, 9, 10, -3, None), "r": (0.0, -0.0, 0.5, 80.0, 81.5, -1e308, 5e-324, None),
    "c": ("Ames", "Cork", "Delft", "ames", "", None), "b": (True, False, None),
    "d": (datetime.date(2020, 2, 29), datetime.date(1, 1, 1), datetime.date(9999, 12, 31), None),
    "m": (datetime.datetime(2020, 2, 29, 23, 59, 59), datetime.datetime(1970, 1, 1), None),
    "s": ("", " ", "Ames", "a,b e", "é", "e\u0301", "'); --", "-0", "1e308", "x" * 70, "ab" * 900, "z" * 60_000,
          "y" * 70_000, "😀", None),
    "w": (1e15, -1e15, 2e15, 0.0, -0.0, 3.5, None),
}  # fmt: skip


@dataclass(frozen=True)
class World:
    """Rows, and those of one protected unit that two neighbours have; where their number is public, one row each.

    `more` has rows and units of a second table of the same persons, where there are persons. `numbers`: persons are
    told by numbers, which files of texts spell otherwise than tables. The one that neighbours differ in is 0.0 and
    -0.0.
    """

    rows: tuple[Row, ...]
    units: tuple[tuple[Row, ...], tuple[Row, ...]]
    numbers: bool
    more: World | None = None

    @property
    def same_in_every_file(self) -> bool:
        """Files of texts have no empty text, and those of JSON no columns without a row."""
        return not self.numbers and bool(self.rows) and not any(cell == "" for row in self.rows for cell in row)

    @property
    def has_long_texts(self) -> bool:
        rows = (*self.rows, *self.units[0], *self.units[1])
        return any(isinstance(cell, str) and len(cell) > 1000 for row in rows for cell in row)

    def table(self, which: int) -> Any:
        """The rows of a neighbour as an Arrow table."""
        return _arrow(self.rows + self.units[which])

    def content(self, file: str, which: int) -> bytes:
        nobody = ((None,) * len(KINDS),) if file == "jsonl" and not self.rows else ()  # without a row no columns
        return WRITERS[file](nobody + self.rows + self.units[which])


def described(rng: random.Random, each: str = "", persons: bool = False) -> str:
    """The description, in every third batch with columns that are never missing, and in every fourth with columns that
    it says how to read. A column of periods has any dates or times, or a range, to which others are moved; of persons
    by months only where each is in one period."""
    text = _described(rng)
    if not each:
        return text
    period, _, column = each.partition(" of ")
    kind, units = {"d": ("date", ("day", "month")), "m": ("time", ("hour", "minute"))}[column]
    unit = rng.choice(units)
    unit = "day" if persons and unit == "month" and period in ("week", "10 days", "3660 days") else unit
    wish = rng.choice((kind, f"from 2005-01-05 to 2035-01-05 by {unit}"))
    return re.sub(rf'(?<=\b{column}: ){kind}(\("[^"]*"\))?', wish, text)


def _described(rng: random.Random) -> str:
    never, read = not rng.randrange(3), not rng.randrange(4)
    description = DESCRIPTION
    for column, reading in READINGS.items() if read else ():
        description = description.replace(f", {column}", f", {reading}")
    if not never:
        return description
    parts = re.split(r", (?=\w:)", description[1:-1])
    filled = [part + " never missing" * (part[-1] in "}0123456789" and rng.random() < 0.5) for part in parts]
    return "{" + ", ".join(filled) + "}"


PERIODS = ("week of d", "month of m", "10 days of d", "day of m", "3660 days of d", "year of d", "quarter of m")
"""By which budgets are there anew, in some batches."""


def first_day(moment: datetime.date, unit: str) -> datetime.date:
    day = moment.date() if isinstance(moment, datetime.datetime) else moment
    return datetime.date(1970, 1, 1) + datetime.timedelta(truncated("date", number_of(day), unit))


def periods(each: str) -> list[str]:
    """First days of periods that rows are in."""
    unit, _, column = each.partition(" of ")
    days = [cell for cell in CELLS[column] if cell is not None] + [datetime.date(year, 1, 5) for year in (2005, 2035)]
    return sorted({f'date("{first_day(day, unit).isoformat()}")' for day in days})


def _in_periods(rng: random.Random, world: World, each: str) -> World:
    """The rows of a unit all in one period; those of the same person elsewhere are rows that both neighbours have."""
    unit, _, column = each.partition(" of ")
    at = list(KINDS).index(column)
    cells = [cell for cell in CELLS[column] if cell is not None]
    cell = rng.choice(cells)
    near = cell if cell.year in (1, 9999) else cell - datetime.timedelta(1)
    near = near if first_day(near, unit) == first_day(cell, unit) else cell

    def on(row: Row, day: Any) -> Row:
        return (*row[:at], day, *row[at + 1 :])

    mine = tuple(on(row, rng.choice((cell, near))) for row in world.units[1])
    others = [other for other in (*cells, None) if other is None or abs(other.year - cell.year) > 20]
    apart = tuple(on(row, rng.choice(others)) for row in (*world.units[1], *world.rows[:3]) if rng.random() < 0.6)
    apart = tuple((mine[0][0], *row[1:]) for row in apart)
    return World(world.rows + apart, ((), mine), world.numbers)


def drawn(rng: random.Random, unit: str, each: str = "") -> World:
    """Up to a dozen rows of hostile cells, of a few persons; none at all now and then."""
    return _in_periods(rng, _drawn_anyhow(rng, unit), each) if each else _drawn_anyhow(rng, unit)


def _drawn_anyhow(rng: random.Random, unit: str) -> World:
    world, empty = _drawn(rng, unit), frozenset(rng.sample(list(KINDS)[1:], 3)) if rng.random() < 0.2 else frozenset()
    return _sparse(rng, world, empty)


def _sparse(rng: random.Random, world: World, empty: frozenset[str]) -> World:
    """The same rows, of which some columns are nearly always missing."""
    if not empty:
        return world

    def of(row: Row) -> Row:
        return tuple(
            None if name in empty and rng.random() < 0.95 else cell for name, cell in zip(KINDS, row, strict=True)
        )

    one, other = (tuple(map(of, unit)) for unit in world.units)
    more = world.more and _sparse(rng, world.more, empty)
    return World(tuple(map(of, world.rows)), (one, other), world.numbers, more)


def _drawn(rng: random.Random, unit: str) -> World:
    many = 0 if rng.random() < 0.1 else rng.randrange(1, 13)
    numbers = rng.random() < 0.3
    rows = tuple(_row(rng, OTHERS[numbers]) for _ in range(many))
    mine: tuple[Any, ...] = (0.0, -0.0) if numbers else ("p9",)
    if unit == "rows, public size":
        return World(rows, ((_row(rng, OTHERS[numbers]),), (_row(rng, mine),)), numbers)
    own = 1 if unit == "rows" else rng.randrange(1, 5)
    world = World(rows, ((), tuple(_row(rng, mine[k % len(mine) :][:1]) for k in range(own))), numbers)
    if unit == "rows":
        return world
    others = tuple(_row(rng, OTHERS[numbers]) for _ in range(rng.randrange(8)))
    more = World(others, ((), tuple(_row(rng, mine) for _ in range(rng.randrange(4)))), numbers)
    return replace(world, more=more)


OTHERS: tuple[tuple[Any, ...], ...] = (("p1", "p2", "p3", "p4", "p5"), (1.0, 2.5, -3.0, 1e300, 5e-324))


def _row(rng: random.Random, persons: tuple[Any, ...]) -> Row:
    return (rng.choice(persons), *(rng.choice(CELLS[name]) for name in list(KINDS)[1:]))


def _person(cell: Any) -> str:
    """The text of a person in a file of texts, where 0.0 and -0.0 are two texts, and so would be two persons."""
    return _text(cell + 0.0 if isinstance(cell, float) else cell)


def _text(cell: Any) -> str:
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, datetime.datetime):
        return cell.isoformat(" ")
    return repr(cell) if isinstance(cell, float) else str(cell)


def _csv(rows: tuple[Row, ...]) -> bytes:
    import csv

    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(KINDS)
    writer.writerows([[_person(row[0]), *map(_text, row[1:])] for row in rows])
    return out.getvalue().encode()


def _jsonl(rows: tuple[Row, ...]) -> bytes:
    import json

    def plain(cell: Any) -> Any:
        return _text(cell) if isinstance(cell, datetime.date) else cell

    names = list(KINDS)
    cells = [(_person(row[0]), *map(plain, row[1:])) for row in rows]
    lines = [json.dumps(dict(zip(names, row, strict=True))) for row in cells]
    return "".join(line + "\n" for line in lines).encode()


def _arrow(rows: tuple[Row, ...]) -> Any:
    import pyarrow as pa

    numbers = bool(rows) and not isinstance(rows[0][0], str)
    types = {"id": pa.float64() if numbers else pa.string(), "n": pa.int64(), "r": pa.float64(), "c": pa.string(),
             "b": pa.bool_(), "d": pa.date32(), "m": pa.timestamp("us"), "s": pa.string(),
             "w": pa.float64()}  # fmt: skip
    columns = list(zip(*rows, strict=True)) or [()] * len(types)
    return pa.table({n: pa.array(c, type=t) for (n, t), c in zip(types.items(), columns, strict=True)})


def _parquet(rows: tuple[Row, ...]) -> bytes:
    import pyarrow.parquet as pq

    out = io.BytesIO()
    pq.write_table(_arrow(rows), out, compression="none")
    return out.getvalue()


def _ipc(rows: tuple[Row, ...]) -> bytes:
    import pyarrow as pa

    out = io.BytesIO()
    table = _arrow(rows)
    with pa.ipc.new_file(out, table.schema) as writer:
        writer.write_table(table)
    return out.getvalue()


WRITERS: dict[str, Callable[[tuple[Row, ...]], bytes]] = {
    "csv": _csv, "parquet": _parquet, "jsonl": _jsonl, "arrow": _ipc,
}  # fmt: skip
UNITS = (
    "rows", "rows, public size", "id up to 1 row", "id up to 3 rows", "id up to 3 rows weighted", "id",
)  # fmt: skip
OFTEN = (12, 8, 8, 8, 8, 5)
BUDGETS = {"epsilon": "epsilon 1000", "rho": "rho 1000", "delta": "epsilon 1000, delta 0.001",
           "basic": "epsilon 1000, delta 0.001 counted by basic"}  # fmt: skip
"""Of each program; with δ in zCDP, or by plain sums."""


def has_order(unit: str) -> bool:
    """Whether rows are those of persons, each in an order."""
    return unit.startswith("id") and "weighted" not in unit


TRANSFORMATIONS = (
    "filtered", "filtered", "empty_side", "derived", "derived", "picked", "united", "exploded", "part_of_a_partition",
    "share_of_rows", "smaller_budget", "joined_to_public_rows", "joined_to_itself", "joined_by_person",
    "rows_of_persons", "linked", "in_order",
)  # fmt: skip
MEASUREMENTS = dict.fromkeys(
    ("histogram", "cells_of_a_cube", "score", "selection", "watch", "vectors", "weighted_records", "steps", "parts",
     "given_before", "joint_block", "public_facts", "streams", "best_of_runs", "statistics", "keys_alone",
     "calculated"), 1.0,
) | {"aggregates": 10, "joint_block": 0.1, "public_facts": 0.15, "statistics": 0.6, "best_of_runs": 0.3,
       "weighted_records": 2.0}  # fmt: skip
"""The features of programs, by the functions that add them, and how often each measurement is asked."""
