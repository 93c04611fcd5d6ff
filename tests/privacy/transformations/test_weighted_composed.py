"""Weighted records of any cells, composed at random: no cell makes an operator fail, what is weighed is what plain
Python says, and a row moves it by no more than is claimed.

Tables have hostile cells, neighbours may have no row at all, and expressions are of every operation of the language.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Sequence
from datetime import date, datetime
from typing import Any

import numpy as np
import pytest
from changed_rows import Row, Tables
from weighted_meaning import Weighed, meant

from jostle.diagnostics import Refusal
from jostle.engine.records import blocks, columns_of
from jostle.language.operations import BOOLEAN, COMPARISONS, DATE, NUMBER, TEXT, TIME
from jostle.language.row_functions import OPERATIONS
from jostle.plan.facts import FACTS
from jostle.plan.kinds import domain_kind, kind_of
from jostle.plan.plan import Apply, Categories, Column, Constant, Domain, Integer, Open, Real, RowExpr, Scan
from jostle.plan.records import CELL_BITS, Records, Rows, bits_of, record_schema, size_of
from jostle.privacy.kernel.exposures import Exposure
from jostle.privacy.kernel.handles import Table
from jostle.privacy.transformations import records as of
from jostle.privacy.transformations import transform
from jostle.privacy.transformations.records import MOST_STEPS, MOST_TABLE_STEPS, WeightedRecords

NAN, INF = math.nan, math.inf
TEXTS = [
    "a", "b", "A", "", " a ", "a,b", "ß", "İ", "Σ", "e\u0301", "\0", "a\0b", "{0}", "'", "%", "x" * 70_000, "日" * 300,
    "1", "-0", "1e400", " 2.5 ", "nan", "9007199254740993", "2020-02-29", "2020-02-30", "0001-01-01", "9999-12-31",
    "9999-12-31 23:59:59.999999", "0001-01-01 00:00+14:00", "2020-03-29 02:30", "31/12/2014", "12:30 PM", "\U0010ffff",
    "\ud800", None,
]  # fmt: skip
REALS = [0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -7.25, 1e9, 2.0**53, 1e300, -1e300, 5e-324, 719_163.0, -719_162.0, 3e6, NAN,
         INF, -INF]  # fmt: skip
SCHEMA: tuple[tuple[str, Domain], ...] = (
    ("t", Open("text")), ("u", Open("text")), ("x", Open("real")), ("y", Open("real")), ("b", Open("boolean")),
)  # fmt: skip
TYPES = {"number": "f", "text": "O", "boolean": "b"}
CONSTANTS: dict[str, tuple[float | str, ...]] = {
    "date by format": ("%d/%m/%Y",), "time by format": ("%I:%M %p",), "in_zone": ("Europe/Berlin",),
    "trunc": ("month",), "trunc time": ("hour",), "substring": (2.0,), "substring of count": (1.0, 2.0),
    "part": (",", 2.0), "matches": ("(a|b)+[0-9]*$",),
}  # fmt: skip


def opened(tables: Tables, rows: Sequence[Row], schema: Sequence[tuple[str, Domain]], name: str = "s") -> Table:
    """A private table with these cells, numbers and truths in arrays of their own type."""
    columns = {}
    for i, (column, domain) in enumerate(schema):
        kind = {"number": float, "boolean": bool}.get(domain_kind(domain), object)
        columns[column] = np.array([row[i] for row in rows], dtype=kind)
    source = tables.source(name)
    plan = Scan(tables.engine.open(columns, public=False).key, tuple(schema))
    return Table((Exposure.of(source, source.unit),), plan, tuple(schema), facts=FACTS)


def weighed(tables: Tables, plan: Records) -> Weighed:
    """What the engine makes of a plan; the types of columns are those of their kinds, whatever is in them."""
    found: Weighed = {}
    kinds = {name: TYPES[domain_kind(domain)] for name, domain in record_schema(plan)}
    for block in blocks(tables.engine, plan):
        assert {name: array.dtype.kind for name, array in block.columns.items()} == kinds
        for *row, weight in zip(*(block.columns[n].tolist() for n in columns_of(plan)), block.weights, strict=True):
            assert isinstance(weight, int) and weight >= 0
            assert all(math.copysign(1, cell) > 0 for cell in row if cell == 0)
            found[tuple(row)] = found.get(tuple(row), 0) + weight
    return {row: weight for row, weight in found.items() if weight}


def cleaned(tables: Tables) -> Callable[[Rows], Weighed]:
    """The rows of a table as an engine reads them, and how often each is there."""

    def rows(plan: Rows) -> Weighed:
        exprs = tuple(Column(name) for name, _ in plan.columns)
        return {row: int(n) for row, n in zip(*tables.engine.tuples(plan.table, exprs), strict=True)}

    return rows


def of_kind(kind: str, i: int) -> RowExpr:
    """An operand of a kind, made of the columns."""
    text, number = Column("tu"[i % 2]), Column("xy"[i % 2])
    made: dict[str, RowExpr] = {
        TEXT: text, NUMBER: number, BOOLEAN: Column("b"), "any": text,
        DATE: Apply("date of text", (text,)), TIME: Apply("time of text", (text,)),
    }  # fmt: skip
    return made[kind]


def shown(expr: RowExpr, gives: str) -> RowExpr:
    """A number for a date or time, which records cannot have."""
    first = {DATE: date(1970, 1, 1), TIME: datetime(1970, 1, 1)}.get(gives)
    between = {DATE: "days_between", TIME: "seconds_between"}.get(gives, "")
    return expr if first is None else Apply(between, (Constant(first), expr))


def applied(name: str) -> RowExpr:
    """An operation on columns, as the value of a record."""
    if name in (*COMPARISONS, "in"):
        return Apply(name, (Column("t"), Column("u")))
    if name in ("and", "or"):
        return Apply(name, (Column("b"), Apply("<", (Column("x"), Column("y")))))
    if name == "not":
        return Apply(name, (Apply("starts_with", (Column("t"), Column("u"))),))
    if name == "if":
        return Apply(name, (Apply("<", (Column("x"), Column("y"))), Column("t"), Column("u")))
    operation, constants = OPERATIONS[name], CONSTANTS.get(name, ())
    kinds = operation.kinds[: len(operation.kinds) - len(constants)]
    args = tuple(of_kind(kind, i) for i, kind in enumerate(kinds))
    return shown(Apply(name, (*args, *map(Constant, constants))), TEXT if name == "coalesce" else operation.gives)


def pairs() -> list[Row]:
    """Every text with every few others, beside numbers of all sorts."""
    rng = random.Random(7)
    some = [(t, u) for t in TEXTS for u in rng.sample(TEXTS, 5)] + [(t, t) for t in TEXTS]
    numbers = itertools.cycle(itertools.product(REALS, REALS))
    return [(t, u, *next(numbers), i % 3 == 0) for i, (t, u) in enumerate(some)] + [("a", "b", x, y, True) for x, y in
            itertools.product(REALS, REALS)]  # fmt: skip


EVERY = [*OPERATIONS, *sorted(COMPARISONS), "in", "and", "or", "not", "if"]
NEARLY = {"log", "exp", "^"}  # of which libraries differ in the last bits


@pytest.mark.parametrize("name", EVERY)
def test_every_operation_on_records_is_that_of_rows(tables: Tables, name: str) -> None:
    """On records read from a table and on records that are held; and where there is none."""
    assert set(CONSTANTS) == {operation.name for operation in OPERATIONS.values() if operation.constants}
    expr = applied(name)
    for rows in (pairs(), []):
        read = of.weighted(opened(tables, rows, SCHEMA))
        held = of.combined("union", read, read)
        here, there = (weighed(tables, of.mapped(r, {"z": expr}).plan) for r in (read, held))
        assert here == there
        if name not in NEARLY | {"pair"}:  # a pair is told apart by another text there
            assert here == meant(of.mapped(read, {"z": expr}).plan, cleaned(tables))
        if rows and kind_of(expr, dict(SCHEMA)) == "boolean":
            assert weighed(tables, of.where(read, expr).plan) == weighed(tables, of.where(held, expr).plan)
        assert here or not rows


# Compositions ----------------------------------------------------------------------------------------

DOMAINS: tuple[tuple[str, Domain], ...] = (
    ("k", Integer(0, 3)), ("t", Open("text")), ("c", Categories(("a", "b", "1"))), ("r", Real(-2.0, 2.5)),
    ("n", Categories((0.0, 0.5, 2.0))), ("b", Open("boolean")),
)  # fmt: skip
CELLS: dict[str, list[Any]] = {
    "k": [0.0, 1.0, 2.5, 3.0, 9.0, -0.0, NAN],
    "t": ["a", "b", "A", " a", "1", "-0", "2020-02-29", "x" * 70_000, "\0", None],
    "c": ["a", "b", "1", "z", None], "r": [0.0, -0.0, 0.5, 2.5, -2.0, 1e300, NAN, INF], "n": [0.0, -0.0, 0.5, 2.0, 7.0],
    "b": [True, False],
}  # fmt: skip


class Composer:
    """Records made of two private tables by operators and expressions drawn at random, the same for one seed."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        names = self.rng.sample([name for name, _ in DOMAINS], self.rng.randint(2, 4))
        self.schema = [(name, dict(DOMAINS)[name]) for name in names]
        self.ops = [op for op in OPERATIONS.values() if op.name not in NEARLY | {"pair"}]

    def row(self) -> Row:
        """Cells of which most are among the first ones, so that records meet."""
        return tuple(self.rng.choice(CELLS[n] if self.rng.random() < 0.3 else CELLS[n][:2]) for n, _ in self.schema)

    def expr(self, kind: str, records: WeightedRecords, depth: int = 2) -> RowExpr:
        """An expression of a kind: of a column, a constant, or an operation on others."""
        columns = [Column(n) for n, d in records.schema if domain_kind(d) == kind]
        if columns and (depth == 0 or self.rng.random() < 0.3):
            return self.rng.choice(columns)
        if depth == 0 or self.rng.random() < 0.1:
            constants: dict[str, list[Any]] = {
                TEXT: ["a", "", "1", None], NUMBER: [0.0, -1.0, 2.0, 0.5, None], BOOLEAN: [True, False],
                DATE: [date(1, 1, 1), date(9999, 12, 31), date(2020, 2, 29)], TIME: [datetime(2020, 1, 1, 12)],
            }  # fmt: skip
            return Constant(self.rng.choice(constants[kind]))
        if kind == BOOLEAN and self.rng.random() < 0.6:
            of_what = self.rng.choice([TEXT, NUMBER, DATE])
            sides = (self.expr(of_what, records, depth - 1), self.expr(of_what, records, depth - 1))
            return Apply(self.rng.choice(sorted(COMPARISONS)), sides)
        if self.rng.random() < 0.2:
            test, *values = self.expr(BOOLEAN, records, depth - 1), *(self.expr(kind, records, depth - 1) for _ in "ab")
            return Apply("if", (test, *values)) if self.rng.random() < 0.5 else Apply("coalesce", tuple(values))
        op = self.rng.choice([op for op in self.ops if op.gives == kind])
        constants_of = CONSTANTS.get(op.name, ())
        kinds = [
            k if k != "any" else self.rng.choice([TEXT, NUMBER]) for k in op.kinds[: len(op.kinds) - len(constants_of)]
        ]
        args = [self.expr(k, records, depth - 1) for k in kinds]
        return Apply(op.name, (*args, *map(Constant, constants_of)))

    def records(self, tables: dict[str, WeightedRecords], depth: int) -> WeightedRecords:
        """Records made by at most so many operators, one after the other."""
        if depth == 0:
            return tables[self.rng.choice("AB")]
        source = self.records(tables, depth - 1)
        names = list(source.domains)
        how = self.rng.choice(["where", "pick", "derive", "shave", "grouped", "joined", "combined", "combined"])
        if how == "where":
            test = self.expr(BOOLEAN, source)
            return of.where(source, Apply("coalesce", (test, Constant(True))) if self.rng.random() < 0.5 else test)
        if how == "pick":
            return of.picked(source, self.rng.sample(names, self.rng.randint(1, len(names))))
        if how == "derive":
            name = self.rng.choice([*names, f"z{depth}"])
            kind, filler = self.rng.choice([(TEXT, "a"), (NUMBER, 0.0), (BOOLEAN, True)])
            expr = self.expr(kind, source)
            full = Apply("coalesce", (expr, Constant(filler)))
            return of.derived(source, [(name, full if self.rng.random() < 0.7 else expr)])
        if how == "shave":
            return of.shaved(source, self.rng.choice([1.0, 0.75, 2.0]), self.rng.randint(1, 4), f"i{depth}")
        if how == "grouped":
            of_what = [n for n, d in source.schema if isinstance(d, Integer)]
            ranges = [n for n, d in source.schema if isinstance(d, Integer | Real)]
            reducer = self.rng.choice(["count", *["min", "max"] * bool(ranges), *["sum"] * bool(of_what)])
            column = None if reducer == "count" else self.rng.choice(of_what if reducer == "sum" else ranges)
            by = self.rng.sample(names, self.rng.randint(1, min(2, len(names))))
            return of.grouped(source, by, f"g{depth}", self.rng.randint(1, 5), reducer, column)
        other = self.records(tables, self.rng.randint(0, depth - 1))
        if how == "joined":
            shared = [n for n in names if n in other.domains and self._alike(source, other, n)]
            if not shared:
                return source
            on = self.rng.sample(shared, self.rng.randint(1, len(shared)))
            rest = {f"o{depth}{n}": Column(n) for n in other.domains if n not in on}
            return of.joined(
                source, of.mapped(other, {**{n: Column(n) for n in on}, **rest}), on, self.rng.choice([2, 8, 2**20])
            )
        common = [n for n in names if n in other.domains and self._alike(source, other, n)]
        if not common:
            return source
        order = self.rng.sample(common, len(common))
        return of.combined(
            self.rng.choice(["union", "intersect", "concat", "without"]),
            of.picked(source, common),
            of.picked(other, order),
        )

    @staticmethod
    def _alike(one: WeightedRecords, other: WeightedRecords, name: str) -> bool:
        return domain_kind(one.domains[name]) == domain_kind(other.domains[name])

    def dims(self, records: WeightedRecords) -> list[tuple[str, RowExpr, Any]]:
        """One or two keys of a histogram, with listed values where they have none."""
        listed: dict[str, Any] = {
            TEXT: ("a", "b", "1", ""),
            NUMBER: self.rng.choice([range(-1, 4), (0.0, 0.5, 2.0)]),
            BOOLEAN: None,
        }
        chosen = self.rng.sample(list(records.domains), self.rng.randint(1, min(2, len(records.domains))))
        return [(n, Column(n), listed[domain_kind(records.domains[n])]) for n in chosen]


def composed(tables: Tables, seed: int) -> int:
    """One program: two tables, or none of their rows, and one row more. How many operators it had in all."""
    draw = Composer(seed)
    contents = {name: [draw.row() for _ in range(draw.rng.choice([0, 1, 4, 9]))] for name in "AB"}
    contents["B"] += draw.rng.sample(contents["A"], len(contents["A"]) // 2) if draw.rng.random() < 0.7 else []
    more = {**contents, "A": [*contents["A"], draw.row()]}
    state, cubes = draw.rng.getstate(), []
    for rows in (contents, more):
        draw.rng.setstate(state)
        handles = {name: of.weighted(opened(tables, some, draw.schema, name)) for name, some in rows.items()}
        records = draw.records(handles, draw.rng.randint(1, 6))
        cubes.append((records, of.weight_histogram(records, draw.dims(records))))
    sums = []
    for records, cube in cubes:
        exact = weighed(tables, records.plan)
        assert exact == meant(records.plan, cleaned(tables)), seed
        found = cube.cells.sums(tables.engine)
        assert [type(total) for total in found] == [int] * len(found)
        sums.append(found)
        bits = bits_of(records.plan)
        for place, key in enumerate(itertools.product(*(key.values for key in cube.cells.weights.keys))):
            names = [key.expr.name for key in cube.cells.weights.keys]
            at = [list(records.domains).index(name) for name in names]
            values = [key.values for key in cube.cells.weights.keys]
            total = sum(
                w for row, w in exact.items() if all(_in(row[i], k, v) for i, k, v in zip(at, key, values, strict=True))
            )
            room = total * len(found) / 2**bits + 1 if bits > CELL_BITS else 0
            assert 0 <= total * 2**CELL_BITS / 2**bits - found[place] <= room * 1.0001, seed
    claimed = sum(e.weight or 0 for e in cubes[0][0].exposures if e.source.name == "A")
    assert sum(abs(int(a) - int(b)) for a, b in zip(*sums, strict=True)) <= claimed << CELL_BITS, seed
    return size_of(cubes[0][0].plan)[0]


def _in(value: Any, key: Any, values: Any) -> bool:
    whole = isinstance(value, float) and (isinstance(values, range) or all(float(v).is_integer() for v in values))
    return bool((math.floor(value) if whole else value) == key)


@pytest.mark.parametrize("seed", range(20))
def test_compositions(tables: Tables, seed: int) -> None:
    for i in range(2):
        composed(tables, 1000 * seed + i)


def test_steps_are_limited_before_anything_is_read(tables: Tables) -> None:
    """As many operators one after the other as there may be, of each sort, on rows and on records that are held."""
    table = opened(tables, [("a", "b", 1.0, 2.0, True)], SCHEMA)
    longer: dict[str, Callable[[WeightedRecords], WeightedRecords]] = {
        "derive": lambda r: of.derived(r, [("x", Apply("+", (Column("x"), Constant(1.0))))]),
        "where": lambda r: of.where(r, Apply(">", (Column("x"), Constant(0.0)))),
        "both": lambda r: of.derived(of.where(r, Column("b")), [("t", Apply("concat", (Column("t"), Column("u"))))]),
        "union": lambda r: of.combined("union", r, of.weighted(table)),
        "pick": lambda r: of.picked(r, ["x", "u", "t", "b", "y"]),
    }
    for make in longer.values():
        for start in (of.weighted(table), of.combined("union", of.weighted(table), of.weighted(table))):
            records = start
            with pytest.raises(Refusal, match="more than 64 steps"):
                for _ in range(MOST_STEPS + 1):
                    records = make(records)
            assert MOST_STEPS - 1 <= size_of(records.plan)[0] <= MOST_STEPS
            assert len(weighed(tables, records.plan)) == 1
            cube = of.weight_histogram(records, [("b", Column("b"), None)])
            assert cube.cells.sums(tables.engine).tolist()[0] == 0


def test_a_table_of_many_steps_has_no_records(tables: Tables) -> None:
    """With the steps of records on top it is still what an engine reads."""
    made = opened(tables, [(1.0,)], [("x", Open("real"))])
    more = Apply("+", (Column("x"), Constant(1.0)))
    for _ in range(MOST_TABLE_STEPS - 1):
        made = transform.derive(made, [("x", more)])
    records = of.weighted(made)
    for _ in range((MOST_STEPS - 1) // 2):
        records = of.derived(of.where(records, Apply(">", (Column("x"), Constant(0.0)))), [("x", more)])
    (row,) = weighed(tables, records.plan)
    assert row == (1.0 + MOST_TABLE_STEPS - 1 + (MOST_STEPS - 1) // 2,)
    with pytest.raises(Refusal, match="more than 70 steps"):
        of.weighted(transform.derive(made, [("x", more)]))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20, 220))
def test_more_compositions(tables: Tables, seed: int) -> None:
    for i in range(10):
        composed(tables, 1000 * seed + i)
