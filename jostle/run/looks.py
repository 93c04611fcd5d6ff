"""Looks: the first select that reads a column pays a fiftieth of its amount for a count of the cells that do not fit.

A description that does not fit is silent otherwise: dates in another form are all none, shares in percent are all cut,
and the answer has a narrow ±. A look is an ordinary select on the source, through the one door: how many cells of a
column fit, are unreadable, lie outside the described range, have fractions where integers are described, or are not
listed. It is taken out of the amount of the select that triggers it, so that a program pays what it wrote. Which select
that is follows from public facts: the first on a column in a session, of one table that the program itself describes,
on the whole of its source. What it finds is a released number: it warns, and marks the answers that read the column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from jostle.accounting.amounts import Amount, as_float
from jostle.diagnostics import Diagnostic
from jostle.language.moments import DAY, moment_of
from jostle.plan.domains import Categories, Domain, Integer, Moments, Open, Real
from jostle.plan.kinds import applied, domain_kind
from jostle.plan.plan import (
    Apply,
    Column,
    Constant,
    Derive,
    Filter,
    GroupRows,
    Key,
    Known,
    Plan,
    RowExpr,
    Scan,
    Truncate,
    inputs,
)  # fmt: skip
from jostle.privacy.kernel.handles import Table
from jostle.privacy.measurements.aggregates import registry
from jostle.privacy.measurements.query import GroupKey, Request, prepare
from jostle.run import answers
from jostle.run.propagation import of_numbers
from jostle.source import Source, Span

if TYPE_CHECKING:
    from jostle.privacy.kernel.kernel import Kernel

PART = 50
"""A look costs one part in so many of the amount."""
LEAST = 0.01
"""The share of cells from which on a misfit is said."""
CERTAIN = 3
"""How many times its error at 95 % a count must be above 0: noise alone is that large once in 8,000 times."""
MOST_LISTED = 500
FITS = "fits"
STATES = {
    "unreadable": "{share} of its cells are no {kind}, and count as `none`",
    "outside": "{share} of its cells lie outside of its range, and count as the nearest end",
    "fraction": "{share} of its cells have fractions, and are taken down to integers",
    "unlisted": "{share} of its cells are not among the listed values, and count as `none`",
}
_CUT = {
    "unreadable": "the cells of `{name}` that are unreadable ({share})",
    "outside": "the cells of `{name}` outside of its range ({share})",
    "fraction": "the fractions of `{name}` ({share})",
    "unlisted": "the cells of `{name}` that are not listed ({share})",
}
_WAYS_OUT = {
    "outside": "describe the range that the cells have, such as 0.0..100.0 for percent",
    "fraction": "write the ends of its range with a point to keep them",
    "unlisted": "list values as the cells have them, with their case and blanks",
    "number": 'numbers like 12,5 are read by `table(…, decimal = ",")`',
    "date": 'describe dates in another form as `text`, and read them by `date(x, "%d.%m.%Y")`',
    "time": 'describe times in another form as `text`, and read them by `time(x, "%d.%m.%Y %H:%M")`',
}
"""The way out by what does not fit; of unreadable cells by their kind."""


class Looked(Struct, frozen=True):
    """A source: its table with all columns as texts, its description, and for each column that was looked at the shares
    of what does not fit."""

    table: Table
    schema: Mapping[str, Domain]
    places: Mapping[str, Span]
    misfits: dict[str, dict[str, str]]


class Looks(Struct):
    """The looks of a session; `warn` is called with the program and what one finds."""

    warn: Callable[[Source, Sequence[Diagnostic]], None]
    sources: dict[str, Looked] = field(default_factory=dict)

    def declare(self, key: str, table: Table, schema: Mapping[str, Domain], places: Mapping[str, Span]) -> None:
        """Takes a source that a program describes, column by column at `places`; `table` has them as texts."""
        known = self.sources[key].misfits if key in self.sources else {}
        self.sources[key] = Looked(table, schema, places, known)

    def before(self, kernel: Kernel, request: Any, amount: Amount, span: Span | None) -> Amount:
        """Looks at the columns that a request is the first to read; what is left of the amount for the request."""
        source = self._source(request)
        if source is None:
            return amount
        texts = dict(source.table.schema)
        states = {
            name: _state(Column(name), source.schema[name], texts)
            for name in _columns_of(request) if name in source.schema and name not in source.misfits
        }  # fmt: skip
        looked = {name: state for name, state in states.items() if state is not None}
        each = amount.value // PART // max(1, len(looked))
        if not looked or each == 0:
            return amount
        for name, state in looked.items():
            misfits = _look(kernel, source.table, name, state, Amount(amount.unit, each), span)
            source.misfits[name] = misfits
            for what, share in misfits.items():
                kind = domain_kind(source.schema[name])
                example = _example(kind) if what == "unreadable" else ""
                text = f"`{name}`: {STATES[what].format(share=share, kind=example)}"
                place = source.places.get(name, span)
                warning = Diagnostic("unfit-cells", text, place, help=_WAYS_OUT[kind if what == "unreadable" else what])
                self.warn(place.source if place is not None else Source("", ""), [warning])
        return Amount(amount.unit, amount.value - each * len(looked), amount.delta)

    def cut_of(self, request: Any) -> tuple[str, ...]:
        """What the errors of an answer do not cover, since cells that it reads do not fit."""
        source = self._source(request)
        if source is None or not any(source.misfits.values()):
            return ()
        return tuple(
            _CUT[what].format(name=name, share=share)
            for name in _columns_of(request) for what, share in source.misfits.get(name, {}).items()
        )  # fmt: skip

    def _source(self, request: object) -> Looked | None:
        """The one source of a request, which reads its rows as a whole; None where it has another form."""
        if not isinstance(request, Request) or len(request.table.exposures) != 1:
            return None
        (exposure,) = request.table.exposures
        *_, last = _chain(request.table.plan)
        if exposure.path or exposure.agents or exposure.source.simulated or not isinstance(last, Scan):
            return None
        source = self.sources.get(last.data)
        bounded = source is not None and all(e.rows is not None for e in source.table.exposures)
        return source if bounded else None


def _look(kernel: Kernel, table: Table, name: str, state: RowExpr, amount: Amount, span: Span | None) -> dict[str, str]:
    """The shares of the cells of a column that do not fit, where noise does not hide them."""
    states = (FITS, *STATES)
    request = prepare(table, [GroupKey("state", state, states)], [registry.AGGREGATES["count"]()])
    with kernel.events.within("query", f"look at {name}", span) as event:
        answer, _ = answers.run(kernel, request, amount, None, span)
        (counts,) = answer.values
        error = max((one.error for one in of_numbers(counts) if one is not None), default=0.0)
        total = sum(max(0.0, float(count)) for count in counts)
        shares = {
            what: _share(float(count) / total, error / total)
            for what, count in zip(states, counts, strict=True)
            if what != FITS and count > CERTAIN * error and count > LEAST * total
        }
        event.update({amount.unit: as_float(amount.value), "look": shares})
    return shares


def _example(kind: str) -> str:
    """A kind with how a cell of it is written: `date as 2024-12-31`."""
    if kind == "number":
        return kind
    return f"{kind} as {moment_of(kind, _DAYS if kind == 'date' else _DAYS * DAY).isoformat()}"


_DAYS = 20_088  # until 31 December 2024


def _share(share: float, error: float) -> str:
    """`100 % ± 2`."""
    points = max(1, round(100 * error)) if error >= 0.005 else 1
    return f"{min(100, round(100 * share))} % ± {points}"


def _chain(plan: Plan) -> Iterator[Plan]:
    """A plan and those under it, as long as each is made of one."""
    yield plan
    under = inputs(plan)
    if len(under) == 1 and not isinstance(plan, Known):
        yield from _chain(under[0])


def _columns_of(request: Request) -> list[str]:
    """The names of the columns in a request and in the plans under it, each once."""
    names: dict[str, None] = {}
    waiting: list[Any] = [expr for aggregate in request.aggregates for expr in aggregate.expressions]
    waiting += [*(key.expr for key in request.keys), *request.open_keys]
    for plan in _chain(request.table.plan):
        match plan:
            case Filter(condition=condition):
                waiting.append(condition)
            case Derive(columns=columns):
                waiting += [expr for _, expr in columns]
            case GroupRows(keys=keys, terms=terms):
                waiting += [*(expr for _, expr in keys), *(term.expr for _, term in terms if term.expr is not None)]
            case Truncate(keys=listed):
                waiting += [key.expr if isinstance(key, Key) else key for key in listed]
    while waiting:
        part = waiting.pop(0)
        if isinstance(part, Column):
            names.setdefault(part.name)
        elif isinstance(part, Apply):
            waiting += part.args
    return list(names)


def _state(text: Column, domain: Domain, schema: dict[str, Domain]) -> RowExpr | None:
    """What a cell is, read as a text: one of `STATES`, or `FITS`; none if it is empty. None for what always fits."""
    kind = domain_kind(domain)
    if kind == "boolean" or (kind == "text" and not isinstance(domain, Categories)):
        return None
    value: RowExpr = text if kind == "text" else applied(kind, (text,), schema)
    state: RowExpr = Constant(FITS)
    if domain == Open("integer") or isinstance(domain, Integer):
        state = _either(applied("!=", (applied("floor", (value,), schema), value), schema), "fraction", state, schema)
    if isinstance(domain, Integer | Real | Moments):
        low, high = (_constant(domain, end) for end in (domain.low, domain.high))
        # an integer is taken down before it is compared, so that 99.5 is within 0..99
        compared = applied("floor", (value,), schema) if isinstance(domain, Integer) else value
        beyond = Apply("or", (applied("<", (compared, low), schema), applied(">", (compared, high), schema)))
        state = _either(beyond, "outside", state, schema)
    if isinstance(domain, Categories):
        if not 0 < len(domain.values) <= MOST_LISTED:
            return None
        listed = applied("in", (value, *map(Constant, domain.values)), schema)
        state = _either(Apply("not", (listed,)), "unlisted", state, schema)
    if kind != "text":
        state = _either(Apply("missing", (value,)), "unreadable", state, schema)
    return _either(Apply("missing", (text,)), None, state, schema)


def _either(test: RowExpr, state: str | None, other: RowExpr, schema: dict[str, Domain]) -> RowExpr:
    return applied("if", (test, Constant(state), other), schema)


def _constant(domain: Integer | Real | Moments, end: float) -> Constant:
    return Constant(moment_of(domain.kind, int(end)) if isinstance(domain, Moments) else float(end))
