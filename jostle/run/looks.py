"""Looks: the first charge on a column pays a fiftieth of its amount for a count of the cells that do not fit. So does
a later one that buys a much smaller error (`docs/decisions/looks.md`).

A look is an ordinary select on the source, through the one door, inside the amount that is written. Who looks follows
from public facts, the columns that a measurement reads of tables which the program itself describes, and from what
earlier looks have shown. That is a released number: it warns, and marks the answers that read the column.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache, lru_cache
from itertools import repeat
from typing import TypeVar, cast

from msgspec import Struct, field

from jostle.accounting.amounts import Amount, Path, as_float
from jostle.diagnostics import Diagnostic, Refusal
from jostle.plan import plan as p
from jostle.plan.cuts import expression
from jostle.plan.facts import schema_of
from jostle.plan.kinds import domain_kind
from jostle.plan.records import Rows
from jostle.privacy.kernel.exposures import Exposure, Exposures
from jostle.privacy.kernel.handles import Table
from jostle.privacy.kernel.kernel import Kernel
from jostle.privacy.measurements.aggregates.sums import Count as CountRows
from jostle.privacy.measurements.selects import GroupKey, prepare
from jostle.privacy.transformations.persons import truncate
from jostle.records import field_names, replace
from jostle.run import answers
from jostle.run import misfits as mf
from jostle.source import Source, Span
from jostle.syntax import nodes as n

A = TypeVar("A", bound="Amount | None")

PART = 50  # a look costs one part in so many of the amount
MOST = 8  # a look takes a fiftieth of a call's amount, and one part in so many of a charge at most
UNSEEN = 10  # percent of the rows that count at columns before, from which on one that shows nothing is not looked at
AGAIN = {"epsilon": 4, "rho": 16}  # times the amount of the last look on a column
Of = tuple[int, str | tuple[tuple[str, p.Domain], ...]]
CONVERSIONS = frozenset({"number", "date of text", "time of text"})  # what reads a text as something else


class Looked(Struct, frozen=True):
    """A described table, what its columns are described by, and of each column that was looked at the shares of what
    does not fit."""

    table: Table
    data: str
    schema: Mapping[str, p.Domain]
    places: Mapping[str, Span]
    misfits: dict[str, dict[str, str]]
    last: dict[str, Amount]
    """Of which amount each column was looked at last."""
    filled: Mapping[str, p.Constant] = field(default_factory=dict)
    """What stands for the missing cells of columns that are never missing."""
    alone: set[str] = field(default_factory=set)
    """Columns of which few rows have a cell that does not fit, as many as if it were most of theirs: to be looked at by
    themselves, as shares of the cells that they have."""
    read: dict[str, p.Domain] = field(default_factory=dict)
    """What looks read the columns as, once one was asked for."""
    conversions: dict[str, p.Apply] = field(default_factory=dict)
    """How programs read columns of texts as something else, such as `number(x)`: looked at as columns are."""

    def kind(self, name: str) -> str:
        """What the cells of a column, or the texts of a conversion, are read as."""
        return domain_kind(self.schema[name]) if name in self.schema else name.partition("(")[0]

    def column(self, name: str) -> str:
        """A column's own name, or that of the column whose texts a conversion reads."""
        return _column_of(self.conversions[name]).name if name in self.conversions else name

    def is_due(self, name: str, part: Amount) -> bool:
        """Whether a charge of which this is a fiftieth looks at a column."""
        before = self.last.get(name)
        return before is None or (part.unit == before.unit and part.value >= AGAIN[part.unit] * before.value)

    def look(self, name: str, check: Callable[[object], None]) -> tuple[Table, p.RowExpr] | None:
        """The columns as texts, and what a cell is there, as `_state` says it; None for what always fits.

        A file's own number that an engine cannot write as a text is read as a number: one that is not finite is none
        either way. None too where what a cell is cannot be asked.
        """
        column = p.Column(name) if name in self.schema else _column_of(self.conversions[name])
        read = self.read
        for each in () if read else self.schema:
            read[each] = p.Open("real")
            with suppress(Refusal):
                check(p.Scan(self.data, ((each, p.Open("text")),)))
                read[each] = p.Open("text")
        if name in self.schema:
            state = mf.cell_state(column, self.schema[name], read, "empty" if name in self.filled else None)
        else:
            unread = mf.either(mf.is_word(column, {}), None, p.Constant("unreadable"), {})
            unread = mf.either(p.Apply("missing", (_text_of(self.conversions[name]),)), None, unread, {})
            state = mf.either(p.Apply("not", (p.Apply("missing", (self.conversions[name],)),)), mf.FITS, unread, {})
        if state is None or (read[column.name] == p.Open("real") and self.kind(name) != "number"):
            return None
        with suppress(Refusal):
            check(state)
            return _read_as(self.table, p.Scan(self.data, tuple(read.items()))), state
        return None

    def readings(self, read: Collection[str | p.Apply]) -> list[str]:
        """Of what is read the columns, and the conversions of columns of texts."""
        for one in read:
            if isinstance(one, p.Apply) and self.schema.get(_column_of(one).name) == p.Open("text"):
                self.conversions[expression(one)] = one
        converted = sorted([name for name, one in self.conversions.items() if one in read]) if self.conversions else ()
        return [*filter(read.__contains__, self.schema), *converted]


class Planned(Struct, frozen=True):
    """A look that a charge at `span` pays for: at these columns of a source, for the amount."""

    span: Span | None
    source: str
    columns: tuple[str, ...]
    amount: Amount


class Looks(Struct):
    """The looks of a session: `warn` is called with the program and what one finds; without it nothing is looked at."""

    warn: Callable[[Source, Sequence[Diagnostic]], None] | None = None
    check: Callable[[object], None] = lambda _: None
    """Refuses what the engine cannot be asked."""
    tables: dict[Of, Looked] = field(default_factory=dict)
    cost: Counter[tuple[int, Path, Hashable]] = field(default_factory=Counter)
    """Of each partition of a source, in quanta, what looks have cost that charges on its parts paid."""
    payments: Counter[tuple[int, Path]] = field(default_factory=Counter)
    """By paths of its budget, what the charges there gave up."""
    planned: list[Planned] = field(default_factory=list)
    cuts: list[str] = field(default_factory=list)
    """The misfits of all that was measured, one after the other."""

    def described(self, table: Table, described: n.Expr | None) -> Table:
        """A table that a program describes, at which looks are taken: of a column that is described anew, anew."""
        if self.warn is None or table.exposures[0].unit.each:
            return table
        (exposure,), plan, schema = table.exposures, p.unfilled(table.plan), dict(table.schema)
        scan = plan.scan if isinstance(plan, p.Bound) else plan
        if not isinstance(scan, p.Scan):
            return table
        key = _of(exposure, scan)
        derived = table.plan.columns if isinstance(table.plan, p.Derive) else ()
        fillings = ((name, expr.args[-1]) for name, expr in derived if isinstance(expr, p.Apply))
        filled = {name: value for name, value in fillings if isinstance(value, p.Constant)}
        misfits: dict[str, dict[str, str]] = {}
        last: dict[str, Amount] = {}
        if (old := self.tables.get(key)) is not None:
            now = {name: (domain, filled.get(name)) for name, domain in schema.items()}
            anew = {name for name in schema if now.get(name) != (old.schema.get(name), old.filled.get(name))}
            misfits = {name: some for name, some in old.misfits.items() if name not in anew}
            last = {name: amount for name, amount in old.last.items() if name not in anew}
        places = {name: one.span for name, one in described.items} if isinstance(described, n.RecordOf) else {}
        self.tables[key] = Looked(replace(table, plan=plan), scan.data, schema, places, misfits, last, filled)
        return table

    @contextmanager
    def looking(self, kernel: Kernel, what: object, exposures: Exposures, amount: A, span: Span | None) -> Iterator[A]:
        """Around a measurement of `what`: gives what is left of an amount for it, and looks once it is made."""
        if amount is None or not self.tables:
            yield amount
            return
        part = amount.value // PART
        due, owed = self._due(what, exposures, Amount(amount.unit, part))
        many = Counter([id(exposure.source) for exposure, _, looks in due for _ in looks])
        if due:
            part = max(part, min(_of_the_call(kernel, amount.unit, span, exposures), amount.value // MOST))
        cost = part - owed  # of looks; what is owed for earlier ones comes first
        due = due if cost >= max(many.values(), default=0) else []
        paid = owed + max([cost // some * some for some in many.values()]) if due else owed
        if due:
            with kernel.allot(Amount(amount.unit, amount.value - owed, amount.delta), span, exposures):
                pass  # or refused, as the whole of it would be
        for exposure, looked, looks in due:
            share = Amount(amount.unit, cost // many[id(exposure.source)] * len(looks))
            columns = tuple(expression(p.Column(looked.column(name))) for name in looks)
            self.planned.append(Planned(span, exposure.source.name, columns, share))
            looked.last.update(dict.fromkeys(looks, Amount(amount.unit, part)))
        try:
            yield cast("A", Amount(amount.unit, amount.value - paid, amount.delta))
        except Refusal:
            for _, looked, looks in due:
                for name in looks:
                    looked.last.pop(name, None)
            raise
        for exposure in exposures:
            self.payments[id(exposure.source), exposure.path] += paid
        for exposure, looked, looks in due:
            share = Amount(amount.unit, cost // many[id(exposure.source)] * len(looks))
            with suppress(Refusal):  # where the amounts of several charges are not simply added up
                self._look(kernel, exposure, looked, looks, share, span)
        self.cuts += self.cut_of(what, exposures)

    def _due(
        self, what: object, exposures: Exposures, part: Amount
    ) -> tuple[list[tuple[Exposure, Looked, dict[str, tuple[Table, p.RowExpr]]]], int]:
        """The columns to look at, as what their cells are; what is owed for earlier looks, `part` at most."""
        due, owed = [], 0
        for exposure, looked, names in self._read(what, exposures):
            looks = {name: looked.look(name, self.check) for name in names if looked.is_due(name, part)}
            some = {name: look for name, look in looks.items() if look is not None}
            if looked.alone & some.keys():  # after the others, one by one
                some = {name: some[name] for name in [n for n in some if n not in looked.alone] or [*some][:1]}
            due += [(exposure, looked, some)] if some else []
            owed = max(owed, min(part.value, self._owed(exposure))) if exposure.path else owed
        return due, owed

    def cut_of(self, what: object, exposures: Exposures) -> tuple[str, ...]:
        """What the errors of an answer do not cover, since cells that it reads do not fit."""
        if not any(map(any, [looked.misfits.values() for looked in self.tables.values()])):
            return ()
        return tuple(
            mf.CUTS[kind].format(name=looked.column(name), share=share)
            for _, looked, names in self._read(what, exposures)
            for name in names
            for kind, share in looked.misfits.get(name, {}).items()
        )

    def _read(self, what: object, exposures: Exposures) -> list[tuple[Exposure, Looked, list[str]]]:
        """The described columns that a measurement reads, by the tables that they are in."""
        read: dict[Of, set[str | p.Apply]] = {}
        for scan, names in scans_of(what):
            for exposure in exposures:
                if (key := _of(exposure, scan)) in self.tables:
                    read.setdefault(key, set()).update(names)
        return [
            (exposure, self.tables[key], self.tables[key].readings(columns))
            for exposure in exposures for key, columns in read.items() if key[0] == id(exposure.source)
        ]  # fmt: skip

    def _owed(self, exposure: Exposure) -> int:
        """What charges on the path of a part have yet to give up for looks that other parts of its partition paid."""
        source, path, owed = id(exposure.source), exposure.path, 0
        for at, (partition, _) in enumerate(path):
            paid = sum(self.payments[source, path[:end]] for end in range(at + 1, len(path) + 1))
            owed = max(owed, self.cost[source, path[:at], partition] - paid)
        return owed

    def _look(
        self, kernel: Kernel, exposure: Exposure, looked: Looked, looks: Mapping[str, tuple[Table, p.RowExpr]],
        amount: Amount, span: Span | None,
    ) -> None:  # fmt: skip
        """Counts the cells that do not fit, and warns of those that noise does not hide.

        A row counts once, at its first cell that does not fit: one count is paid for, however many columns there are.
        Of a column of which nothing is seen while many rows count at others the next charge asks again; and of one
        whose cells are few in all rows, by itself.
        """
        ((table, _), *_), names = looks.values(), list(looks)
        table = replace(table, exposures=tuple(replace(e, agents=exposure.agents) for e in table.exposures))
        state, keys = mf.state_of_row({name: state for name, (_, state) in looks.items()})
        request = prepare(table, [GroupKey("state", state, tuple(keys))], [CountRows()])
        with kernel.events.within("query", f"look at {', '.join(map(looked.column, names))}", span) as event:
            (counts,) = answers.run(kernel, request, amount, None, span)[0].values
            for at, (partition, _) in enumerate(exposure.path):
                self.cost[id(exposure.source), exposure.path[:at], partition] += amount.value
            by_state = dict(zip(keys.values(), counts, strict=True))
            shares = mf.misfit_shares(by_state)
            says = {" ".join(of[len(names) == 1 :]): mf.in_percent(share) for of, share in shares.items()}
            event.update({amount.unit: as_float(amount.value), "look": says})
        before, least = 0, "at least " if len(names) > 1 else ""
        looked.alone.difference_update(names)
        if len(names) > 1:
            looked.alone.update({name for name, _ in mf.misfit_shares(by_state, 0.0)} - {name for name, _ in shares})
        for name in names:
            if name in looked.alone:
                looked.last.pop(name, None)
            own = {what: share for (of, what), share in shares.items() if of == name}
            if not own and before > UNSEEN:
                looked.last.pop(name, None)
                continue  # what an earlier look has shown of it stands
            self._warn(looked, name, {what: least + mf.in_percent(share) for what, share in own.items()}, span)
            before += sum(share for share, _ in own.values())

    def _warn(self, looked: Looked, name: str, shares: dict[str, str], span: Span | None) -> None:
        """Marks what reads a column whose cells do not fit, and warns of what is new."""
        before, place, kind = looked.misfits.get(name, {}), looked.places.get(name, span), looked.kind(name)
        looked.misfits[name] = shares
        for what, share in shares.items():
            example = mf.example_cell(kind) if what == "unreadable" else ""
            says, help = mf.STATES[what].format(share=share, kind=example), mf.WAYS_OUT[kind if example else what]
            if name in looked.filled:
                says = says.replace("`none`", expression(looked.filled[name]))
            if name in looked.conversions:
                says = f"{share} of texts are not read by it, and count as `none`"
                help = mf.WAYS_OUT[f"conversion to {kind}"]
            if self.warn is not None and what not in before:
                warning = Diagnostic("unfit-cells", f"`{name}`: {says}", place, help=help)
                self.warn(place.source if place is not None else Source("", ""), [warning])


def _of(exposure: Exposure, scan: p.Scan) -> Of:
    """A table of a source; before a run, when no data set is open, the one of this description."""
    return id(exposure.source), scan.data or scan.columns


def _of_the_call(kernel: Kernel, unit: str, span: Span | None, exposures: Exposures) -> int:
    """A fiftieth of what the call was given in which a statement of another file, such as the library's, is run."""
    around = [one for one, at in kernel.amounts() if at is not None and span is not None and at.source != span.source]
    whole = not any(exposure.path for exposure in exposures)
    return around[-1].value // PART if whole and around and around[-1].unit == unit else 0


def _read_as(table: Table, scan: p.Scan) -> Table:
    """A declared table with its columns read as a scan says, of which a row is one row: of persons without a bound the
    one that a bound leaves, which is by raw cells and the same on every engine."""
    plan = replace(table.plan, scan=scan, most=table.plan.most or 1) if isinstance(table.plan, p.Bound) else scan
    read = replace(table, plan=plan, schema=scan.columns)
    return read if table.exposures[0].rows is not None else truncate(read, (), None, 1)


_APART = frozenset({"exposures", "schema", "origin", "names", "values", "state", "over"})
"""Fields of handles and requests that no expression stands in."""


def scans_of(what: object) -> list[tuple[p.Scan, frozenset[str | p.Apply]]]:
    """The scans below handles, requests or plans, each with the columns of which cells are read, and how texts are."""
    scans: list[tuple[p.Scan, frozenset[str | p.Apply]]] = []
    names, plans = _parts(what)
    followed: set[tuple[int, frozenset[str | p.Apply]]] = set()
    for plan in plans:
        _add_below(plan, frozenset(names), scans, followed)
    return scans


def _add_below(
    plan: p.Plan, names: frozenset[str | p.Apply], scans: list[tuple[p.Scan, frozenset[str | p.Apply]]],
    followed: set[tuple[int, frozenset[str | p.Apply]]],
) -> None:  # fmt: skip
    """Adds the scans below a plan of which these are read, where they were not `followed` before."""
    while isinstance(plan, p.Filter):
        names, plan = names | _parts(plan.condition)[0], plan.source
    if (id(plan), names) in followed:  # many scores read parts of one table
        return
    followed.add((id(plan), names))
    if isinstance(plan, p.Scan):
        scans.append((plan, names))
        return
    read: object = ()
    match plan:
        case p.Derive(columns=columns):
            read = [expr for name, expr in columns if name in names]
            converted = [one for one in names if isinstance(one, p.Apply)]
            unchanged = {expr for name, expr in columns if expr == p.Column(name)} if converted else ()
            names = frozenset(one for one in converted if _column_of(one) in unchanged)
        case p.GroupRows(keys=keys, terms=terms):
            read = [*(expr for _, expr in keys), *(term for name, term in terms if name in names)]
            names = frozenset()
        case p.Truncate(keys=keys, order=order):
            read = (keys, order)
        case p.Join(left=left, right=right):
            _add_below(left, names | {one for one, _ in plan.keys}, scans, followed)
            _add_below(right, (names - set(schema_of(left))) | {other for _, other in plan.keys}, scans, followed)
            return
    names |= _parts(read)[0]
    for source in p.inputs(plan):
        _add_below(source, names, scans, followed)


@cache
def _column_of(conversion: p.Apply) -> p.Column:
    """The one column whose texts are read, as they are or with something replaced; no column, if it is not one."""
    names = {name for name in _parts(conversion.args)[0] if isinstance(name, str)}
    return p.Column(names.pop() if len(names) == 1 else "")


def _text_of(conversion: p.Apply) -> p.RowExpr:
    """The text that is read."""
    (text,) = conversion.args
    return text.args[0] if isinstance(text, p.Apply) and text.op.endswith(" by format") else text


@cache
def _fields(kind: type) -> tuple[str, ...]:
    """The fields of a class of records that expressions may stand in."""
    return tuple([name for name in field_names(kind) if name not in _APART])


def _parts(what: object) -> tuple[set[str | p.Apply], list[p.Plan]]:
    """The names of the columns in a value, how texts are read there, and the plans."""
    names: set[str | p.Apply] = set()
    plans: list[p.Plan] = []
    waiting: list[object] = [what]
    while waiting:
        part = waiting.pop()
        if isinstance(part, p.Plan):
            plans.append(part)
        elif isinstance(part, p.Column):
            names.add(part.name)
        elif isinstance(part, list | tuple):
            waiting += part
        elif isinstance(part, p.Apply):
            names |= _read_by(part)
        elif fields := _fields(type(part)):  # type: ignore[arg-type]
            waiting += map(getattr, repeat(part), fields)
            if isinstance(part, Rows):
                names.update(name for name, _ in part.columns)
    return names, plans


@lru_cache(maxsize=2**14)
def _read_by(whole: p.Apply) -> frozenset[str | p.Apply]:
    """The same of an expression, which many measurements read."""
    names, waiting = set[str | p.Apply](), list[p.RowExpr]([whole])
    for part in waiting:
        if isinstance(part, p.Column):
            names.add(part.name)
        elif isinstance(part, p.Apply):
            if part.op in CONVERSIONS:
                names.add(part)
            by_itself = part.op in ("missing", "coalesce")  # the program handles what is not read
            for arg in part.args:
                waiting += arg.args if by_itself and isinstance(arg, p.Apply) and arg.op in CONVERSIONS else (arg,)
    return frozenset(names)
