"""`jostle run FILE --explain`: of each statement the plan, what it costs, and the form of the SQL that is sent.

What is sent itself depends on rows: on how many there are, of which types the cells of a text file are, on what was
counted before. So it is never shown. Simple statements are rehearsed on made-up rows, as by `--dry`, in an engine that
notes what it is asked; these questions are plans, made of the program and its descriptions, and `backends.form` makes
SQL of them that knows no more.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from jostle.backends.remote import POSTGRES, SERVERS, SPARK, VARIABLE
from jostle.diagnostics import Refusal, refuse
from jostle.source import Source, Span
from jostle.trace.text import UNITS, number

if TYPE_CHECKING:
    from jostle.backends.form import Form
    from jostle.backends.questions import Question
    from jostle.backends.stored import Stored
    from jostle.engine.sql.dialect import Dialect
    from jostle.events import Event

HEAD = (
    "nothing is run and nothing private is opened",
    "the SQL is the form of what is sent: made of the program and its descriptions, for as many rows as there can be",
)
_AGAIN = "nothing is read for it: what it needs was counted before"


class Query(Struct, frozen=True):
    """A question in words, `steps`, and its form, `sql`; where the dialect cannot do it, `refused` says why."""

    steps: tuple[str, ...]
    sql: str
    refused: str = ""

    def lines(self) -> list[str]:
        form = f"refused: {self.refused}" if self.refused else self.sql
        return ["  plan", *(f"    {step}" for step in self.steps), "  form of the statement", f"    {form}"]

    def as_json(self) -> dict[str, Any]:
        return {"plan": list(self.steps)} | ({"refused": self.refused} if self.refused else {"form": self.sql})


class Statement(Struct):
    """What the statement at `place` measures, a line an answer, and what it asks."""

    place: Span
    measured: list[str] = field(default_factory=list)
    queries: list[Query] = field(default_factory=list)


class Explanation(Struct, frozen=True):
    """The statements of a program in their order, for a dialect. `str` of it is for a person.

    `tables` are those that are read, with the raw cells by their names in the SQL; `views` are queries by the name that
    stands for their rows.
    """

    source: Source
    dialect: str
    statements: tuple[Statement, ...]
    tables: tuple[Stored, ...]
    views: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        if not self.statements:
            return "\n".join([*HEAD, "", "no statement is known before it runs"])
        parts = [[*HEAD, f"it is for {self.dialect}"]]
        parts[0] += [f"of {table.table}, {cells}" for table in self.tables if (cells := ", ".join(_cells(table)))]
        parts += [[f"{name} stands for the rows of", f"  {sql}"] for name, sql in self.views]
        for one in self.statements:
            parts.append([f"line {one.place.line}: {self.source.line(one.place.line).strip()}"])
            parts[-1] += [f"  {line}" for line in one.measured]
            parts[-1] += [line for query in one.queries for line in query.lines()] or [f"  {_AGAIN}"]
        return "\n\n".join(map("\n".join, parts))

    def as_json(self) -> dict[str, Any]:
        statements = [
            {"line": one.place.line, "measured": one.measured, "queries": [query.as_json() for query in one.queries]}
            for one in self.statements
        ]
        tables = {table.table: _cells(table) for table in self.tables}
        return {"dialect": self.dialect, "tables": tables, "views": dict(self.views), "statements": statements}


def _cells(table: Stored) -> list[str]:
    """`r0 is city (VARCHAR)`."""
    pairs = zip(table.columns, table.cells, strict=True)
    return [f"{cell} is {name} ({kind})" for name, (cell, kind) in pairs]


def explained(source: Source, settings: Mapping[str, Any], url: str | None) -> Explanation:
    """The statements of a program that the check passes, for the engine at a URL, which is not connected to."""
    from jostle.backends.form import Form
    from jostle.backends.questions import QuestionLog
    from jostle.syntax import nodes as n
    from jostle.syntax import parse
    from jostle.tools.dry_run import simple
    from jostle.tools.session import Session

    dialect, rehearsed = _dialect(url), QuestionLog()
    told: list[tuple[Event, Sequence[Question]]] = []

    def measured(event: Event) -> None:
        if event.kind == "measure":
            told.append((event, tuple(rehearsed.questions)))
            rehearsed.questions.clear()

    rehearsal = Session(simulate=1, engine=rehearsed, listeners=[measured])
    names, *_ = rehearsal.rehearse(source, settings, only=simple)
    private = {_key(names.get(node.name)) for node in parse(source).body if isinstance(node, n.Private)}
    tables: dict[str, str] = {}
    for name, value in names.items():  # of several names of a table the first
        if (key := _key(value)) is not None:
            tables.setdefault(key, name)
    form = Form((q for _, questions in told for q in questions if _reads(q, private)), dialect, tables)
    statements: list[Statement] = []
    for event, questions in told:
        if event.span is None:
            continue
        if not statements or statements[-1].place != event.span:
            statements.append(Statement(event.span))
        statements[-1].measured.append(_price(event))
        statements[-1].queries += [_query(q, form, tables) for q in questions if _reads(q, private)]
    views = tuple((name, query) for query, name in form.views.items())
    return Explanation(source, dialect.name, tuple(statements), tuple(form.tables), views)


def _dialect(url: str | None) -> Dialect:
    """That of the engine at a URL, else of `$JOSTLE_ENGINE`, else of this process."""
    url = os.environ.get(VARIABLE) if url is None else url
    schemes = {scheme: server for server in SERVERS for scheme in server.schemes}
    server = schemes.get(url.partition("://")[0]) if url else None
    if server == POSTGRES:
        from jostle.backends.postgres.dialect import POSTGRES as dialect
    elif server == SPARK:
        from jostle.backends.spark.dialect import SPARK as dialect
    elif url:
        raise refuse("DataError", "the URL of the engine is of no kind that is known")
    else:
        from jostle.engine.duckdb.dialect import DUCKDB as dialect
    return dialect


def _key(handle: object) -> str | None:
    """The engine's key of a declared table; None for cubes, which are counted already."""
    from jostle.plan.plan import Bound, Scan

    plan = getattr(handle, "plan", None)
    scan = plan.scan if isinstance(plan, Bound) else plan
    return scan.data if isinstance(scan, Scan) else None


def _reads(question: Question, private: set[str | None]) -> bool:
    """Whether a question is of one of the tables that are private: others are free, and part of no measurement."""
    from jostle.plan.plan import Plan, Scan, inputs

    def keys(plan: Plan) -> set[str]:
        own = {plan.data} if isinstance(plan, Scan) else set()
        return own.union(*map(keys, inputs(plan)))

    return not keys(question.plan).isdisjoint(private)


def _query(question: Question, form: Form, names: Mapping[str, str]) -> Query:
    from jostle.tools.plantext import question_text, steps

    lines = (question_text(question), *steps(question.plan, names, 1))
    try:
        return Query(lines, form.sql(question))
    except Refusal as refusal:
        return Query(lines, "", refusal.diagnostics[0].message)


def _price(event: Event) -> str:
    """`count: ε 0.5 of people, laplace, noise of scale 6`."""
    fields = event.fields
    amounts = [f"{UNITS[unit]} {number(fields[unit])}" for unit in UNITS if fields.get(unit)]
    scale = f", noise of scale {number(fields['scale'])}" if fields.get("scale") else ""
    sources = ", ".join(fields.get("sources", ()))
    return f"{event.name}: {' '.join(amounts)} of {sources}, {fields.get('mechanism', 'no mechanism')}{scale}"
