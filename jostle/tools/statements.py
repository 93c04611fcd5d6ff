"""`jostle run FILE --explain`: of each statement the plan, what it costs, and the form of the SQL that is sent.

What is sent itself depends on rows, so it is never shown. Simple statements are rehearsed on simulated rows, as by
`--dry`, in an engine that notes what it is asked; `backends.server` makes SQL of these plans that knows no more than
the program and its descriptions. A plan is shown a line a step, from the answer down to the sources.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, assert_never

from msgspec import Struct, field

from jostle.backends.remote import POSTGRES, SERVERS, SPARK, VARIABLE
from jostle.diagnostics import Refusal, refuse
from jostle.engine.sql.dialect import Dialect
from jostle.language.patterns import READERS
from jostle.plan import plan as p
from jostle.plan.cuts import constant, expression
from jostle.records import replace
from jostle.source import Source, Span
from jostle.syntax import nodes as n
from jostle.syntax import parse
from jostle.tools.draft.columns import domain_text
from jostle.trace.text import UNITS, number

if TYPE_CHECKING:
    from jostle.backends.server import Form, Question, Stored
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

    def as_json(self) -> dict[str, object]:
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
        return _LIST.sub(r"\1…, \2", "\n\n".join(map("\n".join, parts)))

    def as_json(self) -> dict[str, object]:
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


def explained(
    source: Source, settings: Mapping[str, object], url: str | None, ledger: str | None = None
) -> Explanation:
    """The statements of a program that the check passes, for the engine at a URL, which is not connected to. What is
    registered in the `ledger` is read by none of them."""
    from jostle.backends.server import Form, QuestionLog
    from jostle.tools.expected_errors import simple
    from jostle.tools.session import Session

    dialect, rehearsed = _dialect(url), QuestionLog()
    pairs: list[tuple[Event, Sequence[Question]]] = []

    def measured(event: Event) -> None:
        if event.kind == "measure":
            pairs.append((event, tuple(rehearsed.questions)))
            rehearsed.questions.clear()

    rehearsal = Session(simulate=1, engine=rehearsed, listeners=[measured], ledger=ledger)
    names, *_ = rehearsal.rehearse(source, settings, only=simple)
    private = {_key(names.get(node.name)) for node in parse(source).body if isinstance(node, n.Private)}
    tables: dict[str, str] = {}
    for name, value in names.items():  # of several names of a table the first
        if (key := _key(value)) is not None:
            tables.setdefault(key, name)
    form = Form((q for _, questions in pairs for q in questions if _reads(q, private)), dialect, tables)
    statements: list[Statement] = []
    for event, questions in pairs:
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
        from jostle.engine.duckdb.engine import DUCKDB

        dialect = replace(DUCKDB, **READERS)
    return dialect


def _key(handle: object) -> str | None:
    """The engine's key of a declared table; None for cubes, which are counted already."""
    plan = getattr(handle, "plan", None)
    scan = plan.scan if isinstance(plan, p.Bound) else plan
    return scan.data if isinstance(scan, p.Scan) else None


def _reads(question: Question, private: set[str | None]) -> bool:
    """Whether a question is of one of the tables that are private: others are free, and part of no measurement."""

    def keys(plan: p.Plan) -> set[str]:
        own = {plan.data} if isinstance(plan, p.Scan) else set()
        return own.union(*map(keys, p.inputs(plan)))

    return not keys(question.plan).isdisjoint(private)


def _query(question: Question, form: Form, names: Mapping[str, str]) -> Query:
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


_LIST = re.compile(r"((?:\(*-?[\d.e+]+\)*, ){8})(?:\(*-?[\d.e+]+\)*, ){8,}(\(*-?[\d.e+]+)")  # numbers: some are enough
_FEW = 3  # listed values that are written out
_CUT = 160  # characters of a line


def steps(plan: p.Plan, names: Mapping[str, str], depth: int = 0) -> list[str]:
    """The lines of a plan; `names` has what its data sets are called."""
    line, sources = _step(plan, names)
    lines = [f"{'  ' * depth}{_cut(line)}"]
    for source in sources:
        lines += steps(source, names, depth + 1)
    return lines


def key_text(key: p.Key) -> str:
    """A group key with its public values."""
    if isinstance(key.values, range):
        return f"{expression(key.expr)} from {key.values[0]} to {key.values[-1]}" if key.values else "no key"
    values = ", ".join(map(constant, key.values[:_FEW]))
    more = f", … {len(key.values)} in all" if len(key.values) > _FEW else ""
    return f"{expression(key.expr)} of {{{values}{more}}}"


def term_text(term: p.GroupTerm) -> str:
    """What is summed up of a group."""
    if isinstance(term, p.Beside):
        of = f"{term.where} {expression(term.expr)}" if term.expr is not None else "place"
        return f"the {of}, in the order of the last of these"
    if isinstance(term, p.Extreme):
        return f"the {'largest' if term.largest else 'smallest'} {expression(term.expr)}"
    weights = ", by weights" if term.weighted else ""
    if isinstance(term, p.Count):
        what = "rows" if term.expr is None else expression(term.expr)
        return f"number of {'different ' if term.distinct else ''}{what}{weights}"
    square = "squares of " if term.square else ""
    steps = f"steps of 2^-{term.bits}" if term.bits else "whole steps"
    bounds = f"clamped to {constant(term.low)}..{constant(term.high)}, in {steps}"
    return f"sum of {square}{expression(term.expr)} {bounds}{weights}"


def question_text(question: Question) -> str:
    """What is asked of the rows of a plan."""
    if question.terms:
        by = f" by {', '.join(map(key_text, question.keys))}" if question.keys else ""
        return _cut(f"{'; '.join(map(term_text, question.terms))}{by}")
    values = ", ".join(map(expression, question.exprs))
    if not question.tallied:
        return _cut(f"{values} of every row")
    return _cut(f"number of rows of each value of {values}")


def _step(plan: p.Plan, names: Mapping[str, str]) -> tuple[str, tuple[p.Plan, ...]]:
    """The line of one step, and what it is made of."""
    match plan:
        case p.Scan():
            cleaned = ", ".join(f"{name}: {domain_text(domain)}" for name, domain in plan.columns)
            return f"rows of {names.get(plan.data, 'a public table')}, cleaned to {{{cleaned}}}", ()
        case p.Bound():
            return _persons(plan, names), (plan.scan,)
        case p.Filter():
            return f"where {expression(plan.condition)}", (plan.source,)
        case p.Derive():
            columns = (name if of == p.Column(name) else f"{name} = {expression(of)}" for name, of in plan.columns)
            return f"columns {', '.join(columns)}", (plan.source,)
        case p.Join():
            on = [left if left == right else f"{left} = {right}" for left, right in plan.keys]
            on += ["person"] * plan.person
            most = f", at most {plan.most} rows of each side a key, by a hash" if plan.most is not None else ""
            return f"{plan.kind} join on {' and '.join(on)}{most}", (plan.left, plan.right)
        case p.Truncate():
            return _truncated(plan), (plan.source,)
        case p.GroupRows():
            by = ["person"] * plan.person + [f"{name} = {expression(expr)}" for name, expr in plan.keys]
            terms = [f"{name} = {term_text(term)}" for name, term in plan.terms]
            return f"a row for each {', '.join(by)}: {'; '.join(terms) or 'no columns'}", (plan.source,)
        case p.Union():
            return f"all rows of {len(plan.sources)} tables", plan.sources
        case p.Listed():
            return f"{len(plan.rows)} public rows", ()
        case p.Known():
            return _step(plan.source, names)
    assert_never(plan)


def _persons(plan: p.Bound, names: Mapping[str, str]) -> str:
    if plan.owners is None:
        each = (one if isinstance(one, str) else f"the {one[1]} of {one[0]}" for one in plan.by)
        rule = f"identified by {', '.join(each)}"
    else:
        table = names.get(plan.owners.table.scan.data, "another table")
        rule = f"who have {plan.owners.on} as {plan.owners.key} in {table}"
    most = "all rows" if plan.most is None else f"at most {plan.most} rows of each, by a hash of the row"
    return f"of persons {rule}: {most}{', which weigh 1 together' if plan.weighted else ''}"


def _truncated(plan: p.Truncate) -> str:
    order = ", by a hash"
    if plan.order is not None:
        order = f", by {expression(plan.order)}{' desc' if plan.descending else ''}"
    amounts = [f"{plan.groups} groups of {', '.join(map(expression, plan.keys))}"] if plan.groups is not None else []
    if plan.rows is not None:
        each = f" in each of {', '.join(map(expression, plan.keys))}" if plan.keys else ""
        amounts.append(f"{plan.rows} rows{each}")
    return f"of each person at most {', and '.join(amounts) or 'all rows'}{order}"


def _cut(line: str) -> str:
    return line if len(line) <= _CUT else f"{line[: _CUT - 1].rstrip()}…"
