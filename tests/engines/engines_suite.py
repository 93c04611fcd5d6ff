"""The conformance suite of engines: each is asked what DuckDB is asked, and what plain Python knows by itself.

To give it another engine, add a line to `ENGINES`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import engines_meaning as meaning
from engines_plans import Draw
from engines_postgres import Loaded
from engines_spark import apache, sail
from engines_table import table

from jostle.diagnostics import Refusal
from jostle.engine.base import Engine
from jostle.engine.duckdb.engine import DUCKDB
from jostle.engine.records import blocks, columns_of, sums_of
from jostle.language.moments import number_of
from jostle.language.patterns import READERS
from jostle.plan.facts import schema_of
from jostle.plan.kinds import domain_kind
from jostle.plan.plan import Bound, Column, Exact, Key, Plan, RowExpr, Scan, Term, names_in
from jostle.plan.records import Combined, Mapped, Rows, Sized, Weights
from jostle.readers.duckdb import LocalDuckDb
from jostle.records import replace


class Composed(LocalDuckDb):
    """DuckDB with as few words of its own as can be: what the primitives compose means what its own functions mean,
    and a template may say its operands as often as it likes."""

    dialect = replace(
        DUCKDB, **READERS, name="Composed", operations={}, fence=" OFFSET 0", digits="CAST('{0}' AS DOUBLE)",
        add="CASE WHEN {0} IS NOT NULL AND {1} IS NOT NULL THEN {0} + {1} END",
        multiply="CASE WHEN {0} = {0} AND {1} = {1} THEN {0} * {1} END", divide="CASE WHEN {1} <> 0 THEN {0} / {1} END",
        place="CASE WHEN {0} IN ({1}) THEN list_position([{1}], {0}) ELSE 0 END",
        shared="WITH {0} AS ({1}) {2}", character="\\x{{{0:06X}}}", start="^", end="$",
        tiny="SMALLINT", wide="DECIMAL(38, 0)",
    )  # fmt: skip


class Plain(LocalDuckDb):
    """DuckDB asked as the trusted rooms would: without what `speed.quicksql` knows of bounds, raw cells and unions."""

    dialect = replace(DUCKDB, **READERS)


ENGINES: dict[str, Callable[[], Engine]] = {
    "duckdb": LocalDuckDb, "composed": Composed, "plain": Plain, "postgres": Loaded, "sail": sail, "spark": apache,
}  # fmt: skip
"""What makes an engine, by its name."""


@dataclass
class Outcome:
    """How many plans were asked and meant something to plain Python; what differed, what was refused by name, and what
    did not end in the time that it had."""

    plans: int = 0
    meant: int = 0
    differences: list[str] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)
    unended: list[str] = field(default_factory=list)

    def add(self, other: Outcome) -> None:
        self.plans += other.plans
        self.meant += other.meant
        self.differences += other.differences
        self.refused += other.refused
        self.unended += other.unended


@dataclass(frozen=True)
class Case:
    """A plan and what is asked of it."""

    plan: Plan
    keys: tuple[Key, ...]
    terms: tuple[Term, ...]
    expr: RowExpr
    number: RowExpr
    question: str


QUESTIONS = ("tally", "tuples", "codes", "vectors", "exact", "records", "rows")


def case(key: str, seed: int, *, shallow: bool = False) -> Case:
    draw = Draw(key, seed, shallow=shallow)
    plan = draw.plan()
    schema = schema_of(plan)
    parts = draw.keys(schema), draw.terms(schema), draw.of(draw.any(), schema, 2), draw.of("number", schema, 2)
    question = draw.random.choice(QUESTIONS)
    return Case(plan, *parts, "weights" if seed % 4 == 0 else question)


def run(name: str, seeds: Iterable[int]) -> Outcome:
    """Asks an engine, DuckDB and plain Python the same."""
    total = Outcome()
    for one in outcomes([name], seeds):
        total.add(one)
    return total


def outcomes(
    names: Sequence[str], seeds: Iterable[int], *, shallow: bool = False,
    asks: Callable[[int, str], None] = lambda *_: None,
) -> Iterator[Outcome]:  # fmt: skip
    """What each plan came to, asked of all named engines; `asks` is told the seed, and who is asked next."""
    reference, engines = LocalDuckDb(), {name: ENGINES[name]() for name in names}
    try:
        key = reference.open(table(), public=True).key
        theirs = {name: engine.open(table(), public=True).key for name, engine in engines.items()}
        scans = _Scans(reference)
        for seed in seeds:
            one = Outcome(plans=1)
            known = case(key, seed, shallow=shallow)
            asks(seed, "DuckDB")
            expected = answers(reference, known)
            plain = _plain(known, scans)
            one.meant = int(plain is not None)
            if plain is not None and plain != expected:
                one.differences.append(f"seed {seed}: DuckDB and plain Python: {expected} {plain}")
            for name, engine in engines.items():
                asks(seed, name)
                try:
                    said = answers(engine, case(theirs[name], seed, shallow=shallow))
                except Refusal as refusal:
                    if " cannot " in refusal.first.message:
                        one.refused[refusal.first.message] += 1
                    else:
                        one.differences.append(f"seed {seed}: {name}: {refusal.first.message}")
                else:
                    if said != expected:
                        one.differences.append(f"seed {seed}: {name} and DuckDB: {said} {expected}")
            yield one
    finally:
        for engine in (*engines.values(), reference):
            engine.close()


def answers(engine: Engine, asked: Case) -> tuple[Any, Any]:
    """The cells of a group, and the answer to one more question; what has no order as a multiset."""
    cells = [array.reshape(-1).tolist() for array in engine.group(asked.plan, asked.keys, asked.terms)]
    return [list(map(int, some)) for some in cells], _answer(engine, asked)


def _answer(engine: Engine, asked: Case) -> Any:
    plan = asked.plan
    match asked.question:
        case "tally":
            values, counts = engine.tally(plan, asked.expr)
            return {_cell(v): int(n) for v, n in zip(values.tolist(), counts.tolist(), strict=True)}
        case "tuples":
            rows, counts = engine.tuples(plan, (asked.expr, asked.number))
            return {tuple(map(_cell, row)): int(n) for row, n in zip(rows, counts.tolist(), strict=True)}
        case "codes":
            return Counter(zip(*(array.tolist() for array in engine.codes(plan, asked.keys)), strict=True))
        case "vectors":
            blocks = engine.vectors(plan, (asked.number,), 50)
            return Counter(cell + 0.0 for block in blocks for cell in block[:, 0].tolist())
        case "exact":
            terms = (Exact("count", asked.expr), Exact("count_distinct", asked.expr), Exact("mode", asked.expr),
                     Exact("min", asked.number), Exact("max", asked.number))  # fmt: skip
            columns, found = engine.exact(plan, asked.keys[:1], terms)
            return [[_cell(cell) for cell in column] for column in (*columns, *found)]
        case "records":
            return Counter(tuple(map(_cell, row)) for row in engine.records(plan))
        case "weights":
            return _weights(engine, asked)
    return engine.rows(plan)


def _weights(engine: Engine, asked: Case) -> Any:
    """Weighted records of a plan, with a column that is calculated of the rows and of records that are held, and how
    many of them share the first column."""
    kinds = {name: domain_kind(domain) for name, domain in schema_of(asked.plan).items()}
    columns = tuple((n, d) for n, d in schema_of(asked.plan).items() if kinds[n] in ("number", "text", "boolean"))[:3]
    if not columns:
        return None
    exprs: list[tuple[str, RowExpr]] = [(name, Column(name)) for name, _ in columns]
    if names_in([asked.number]) <= dict(columns).keys():
        exprs.append(("z", asked.number))
    rows = Rows(asked.plan, columns)
    read, held = (Mapped(source, tuple(exprs)) for source in (rows, Combined("union", rows, rows)))
    found = []
    for plan in (read, held):
        weights: Counter[tuple[Any, ...]] = Counter()
        for block in blocks(engine, plan):
            for *row, weight in zip(*(block.columns[n].tolist() for n in columns_of(plan)), block.weights, strict=True):
                weights[tuple(map(_cell, row))] += weight
        sized = Weights(Sized(plan, (columns[0][0],), "many", 5), (Key(Column("many"), range(1, 6)),))
        found.append((weights, sums_of(engine, sized).tolist()))
    assert found[0] == found[1]
    return found[0]


def _cell(cell: Any) -> Any:
    """−0 is 0; dates and times are the numbers that stand for them."""
    if isinstance(cell, date):
        return float(number_of(cell))
    return cell + 0.0 if isinstance(cell, float) else cell


class _Scans:
    """The rows of scans, cleaned, as DuckDB has them."""

    def __init__(self, engine: LocalDuckDb) -> None:
        self._engine = engine

    def __call__(self, scan: Scan | Bound) -> list[meaning.Row]:
        if isinstance(scan, Bound):  # which rows of a person stay
            raise meaning.Unknown
        names = [name for name, _ in scan.columns]
        return [dict(zip(names, row, strict=True)) for row in self._engine.records(scan)]


def _plain(asked: Case, scans: _Scans) -> tuple[Any, Any] | None:
    """The same answers by what they mean; None where plain Python does not know."""
    try:
        rows = meaning.rows(asked.plan, scans)
        return meaning.group(rows, asked.keys, asked.terms), _meant(asked, rows)
    except meaning.Unknown:
        return None


def _meant(asked: Case, rows: list[meaning.Row]) -> Any:
    match asked.question:
        case "tally":
            return {_cell(value): n for value, n in meaning.tally(rows, asked.expr).items()}
        case "tuples":
            pairs = ((meaning.value(asked.expr, row), meaning.value(asked.number, row)) for row in rows)
            return dict(Counter(tuple(map(_cell, pair)) for pair in pairs if None not in pair))
        case "codes":
            every = Counter(tuple(meaning.code(key, row) for key in asked.keys) for row in rows)
            return every if asked.keys else Counter()
        case "vectors":
            return Counter(cell for row in rows if (cell := meaning.value(asked.number, row)) is not None)
        case "records":
            return Counter(tuple(_cell(row[name]) for name in schema_of(asked.plan)) for row in rows)
        case "rows":
            return len(rows)
    raise meaning.Unknown
