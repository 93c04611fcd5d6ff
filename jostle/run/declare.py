"""Sources: `private NAME = SOURCE …`, public tables, settings of the command line, and the data of `--simulate`.

A table may have the persons of another one, under its budget: `protecting people.id on customer`. If the named column
identifies persons there, it does so here. If it is another column, as in `protecting orders.number on order`, the
persons of a row are looked up: those of the orders with that number.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from contextlib import suppress
from datetime import date, datetime, timedelta
from numbers import Real as RealNumber
from typing import Any

from jostle.accounting.amounts import Unit
from jostle.accounting.definitions import Measure
from jostle.diagnostics import Diagnostic, Refusal, refuse
from jostle.language.builtins import OPENERS
from jostle.language.forms import DIMENSIONS, source_kind
from jostle.language.moments import number_of
from jostle.lazy import np
from jostle.plan.facts import FACTS
from jostle.plan.plan import Bound, Categories, Column, Derive, Domain, Integer, Moments, Open, Owners, Real, rows_below
from jostle.privacy.kernel.exposures import Handle
from jostle.privacy.kernel.handles import Cube, Table, partition_label
from jostle.privacy.ledger.ledger import Account, seen
from jostle.privacy.reading.minting import private_cube, private_table, public_cube, public_table
from jostle.readers.filesets import FileSet, Reading
from jostle.records import replace
from jostle.run import clauses, origins
from jostle.run.evaluator import Evaluator, PlacedAt
from jostle.run.publictables import is_rows, table_of_rows
from jostle.run.scope import Scope
from jostle.run.values import is_number, is_sequence, kind_name
from jostle.simulate import SeededNoise, counts_of, rows_of
from jostle.source import Span
from jostle.syntax import nodes as n
from jostle.syntax.walk import every

_TEXTS = 20  # the number of simulated texts of a column
_MADE_UP_DAYS: dict[str, tuple[date, date]] = {
    "date": (date(2020, 1, 1), date(2024, 12, 31)),
    "time": (datetime(2020, 1, 1), datetime(2024, 12, 31, 23, 59, 59)),
}
Schema = tuple[tuple[str, Domain], ...]


def simulated(interp: Evaluator, node: n.Private, kind: str, measure: Measure, unit: Unit, scope: Scope) -> Handle:
    """The handle of simulated data in place of a private source, which is not opened. Noise is seeded."""
    seed = (interp.simulate or 0) + len(interp.kernel.register.names)
    source = interp.kernel.register.declare(
        node.name, _identity(interp, node, kind, scope), measure, unit, node.span, SeededNoise(seed)
    )
    public = interp.bound.get(node.name)
    public = origins.files_of(interp, public, node.source.span) if origins.is_paths(public) else public
    if kind == "counts" or origins.is_array(public):
        stand_in = public if public is not None else _program_counts(interp, node, scope)
        array, _ = origins.array_of(interp, stand_in, node.source.span, private=True)
        cells = array if public is not None else counts_of(array.shape, interp.made_up_rows, seed)
        origins.announce(interp, source, node, list(DIMENSIONS[: array.ndim]))
        return private_cube(interp.data, source, cells, DIMENSIONS[: cells.ndim])
    if node.described is None:
        raise clauses.lacking(node, ["described by"])
    schema = clauses.described_schema(interp, node.described, scope)
    clauses.need_parts(node.budget, dict(schema), unit)
    keys: dict[str, Domain] = dict.fromkeys(unit.columns, Open("text"))  # protected columns need no description
    key = simulated_rows(interp, node, schema, keys, seed)
    origins.announce(interp, source, node, [name for name, _ in schema])
    table = private_table(source, key, schema, clauses.never_missing(node.described, schema), facts=FACTS)
    return interp.looks.described(table, node.described)


def _identity(interp: Evaluator, node: n.Private, kind: str, scope: Scope) -> Hashable:
    """The identity of simulated data: the files of the source, if they exist, which cannot be read as public then; or
    its name."""
    if kind == "table" and isinstance(node.source, n.Call) and interp.made_up_rows:
        with suppress(Refusal):
            origin = origins.origin_of(interp, node.source, scope)
            return origin.identity if isinstance(origin, FileSet) else ("simulated", node.name)
    return "simulated", node.name


def simulated_rows(interp: Evaluator, node: n.Private, schema: Schema, keys: dict[str, Domain], seed: int) -> str:
    """The engine's key of the rows in place of a private table: those bound to its name, or simulated ones.

    `keys` are the columns that identify persons. If no rows are drawn, nothing is opened and nothing can be read.
    """
    if not interp.made_up_rows:
        return ""
    public = interp.bound.get(node.name)
    rows = origins.files_of(interp, public, node.source.span) if origins.is_paths(public) else public
    if rows is None:
        items = node.described.items if isinstance(node.described, n.RecordOf) else ()
        texts = {name: Categories(_texts(one.span.text)) for name, one in items if one.span.text != "text"}
        domains = {name: texts.get(name, d) if d == Open("text") else d for name, d in (keys | dict(schema)).items()}
        rows = rows_of({name: _wish(d) for name, d in domains.items()}, interp.made_up_rows, seed)
    names = (*(name for name, _ in schema), *keys)
    there = bool(interp.data.remote)  # public rows are sent to a server
    opened = origins.open_origin(interp, rows, node.source.span, public=there, names=names)
    origins.check_columns(schema, opened, node.described.span if node.described is not None else None)
    return str(opened.key)


def _program_counts(interp: Evaluator, node: n.Private, scope: Scope) -> object:
    """The counts that the program computes, of which only the shape is used. Refused if a file is needed."""
    source = node.source
    value = None
    if isinstance(source, n.Call) and len(source.args) == 1 and not _opens(source.args[0]):
        value = interp.eval(source.args[0], scope)
    if value is None or isinstance(value, str | Handle):
        raise refuse(
            "DataError", f"the shape of `{node.name}` is in a file that is not opened in a simulation", node.span,
            help=f"give a public stand-in: `--bind {node.name}=FILE`",
        )  # fmt: skip
    return value


def _opens(expression: n.Node) -> bool:
    """Whether an expression calls what opens files."""
    calls = (part.function for part in every(expression) if isinstance(part, n.Call))
    return any(isinstance(function, n.Name) and function.id in OPENERS for function in calls)


def _texts(reading: str = "") -> tuple[str, ...]:
    """Simulated texts of a column, in its format, if it has one."""
    form = re.search(r'(?:date|time)\("([^"]*%[^"]*)"\)', reading)
    if form is not None:
        ends = re.findall(r"\d{4}-\d\d-\d\d", reading) or ["2024-01-01", "2024-12-31"]
        begin, end = map(datetime.fromisoformat, ends)
        moments = [begin + (end - begin) / _TEXTS * i + timedelta(minutes=61 * i) for i in range(_TEXTS)]
        return tuple([moment.strftime(form[1]) for moment in moments])
    if "number(" in reading:
        low, high = map(float, (re.findall(r", (-?[\d.]+), (-?[\d.]+)\)$", reading) or [("0", "99")])[0])
        return tuple([f"{low + (high - low) * i / _TEXTS:.0f}" for i in range(_TEXTS)])
    return tuple([f"made up {i}" for i in range(_TEXTS)])


def _wish(domain: Domain) -> tuple[str, object, object]:
    if isinstance(domain, Integer):
        return ("integer", domain.low, domain.high)
    if isinstance(domain, Real):
        return ("real", domain.low, domain.high)
    if isinstance(domain, Categories):
        return ("listed", list(domain.values), None)
    if isinstance(domain, Moments):
        return (domain.kind, domain.low, domain.high)
    if domain.kind == "boolean":
        return ("listed", [False, True], None)
    if domain.kind in ("date", "time"):
        first, last = _MADE_UP_DAYS[domain.kind]
        return (domain.kind, number_of(first), number_of(last))
    made_up = {"integer": ("integer", 0, 99), "text": ("listed", list(_texts()), None)}
    return made_up.get(domain.kind, ("real", 0.0, 1.0))


def linked(
    interp: Evaluator, node: n.Private, call: n.Call, kind: str, protecting: n.Protecting, scope: Scope
) -> Table:
    """Declares a table with the persons of another one, which was declared before."""
    owner = scope.find(protecting.linked)
    own = isinstance(owner, Table) and (owner.origin is not None or isinstance(rows_below(owner.plan), Bound))
    if not (isinstance(owner, Table) and own and len(owner.exposures) == 1):
        raise refuse(
            "NameError", f"`{protecting.linked}` is no private table that was declared above", protecting.span,
            help=f"declare it first: `private {protecting.linked} = table(…) … protecting {protecting.key}`",
        )  # fmt: skip
    if owner.exposures[0].unit.each:
        message = f"the persons of `{protecting.linked}` have periods, which rows of other tables have not"
        raise refuse("DataError", message, protecting.span, help="protect rows of this table by itself")
    source, unit = owner.exposures[0].source, clauses.unit_of(interp, protecting, scope)
    owners = owners_by(owner, protecting.key, unit.columns[0], protecting.span)
    if node.described is None or kind == "counts":
        raise clauses.lacking(node, ["described by"])
    schema = clauses.described_schema(interp, node.described, scope)
    if interp.simulate is not None:
        keys = {unit.columns[0]: owner.domains.get(protecting.key, Open("text"))}
        key = simulated_rows(interp, node, schema, keys, interp.simulate + len(interp.kernel.register.names))
        interp.kernel.register.link(node.name, _identity(interp, node, kind, scope), source, unit, node.span)
    else:
        origin = origins.origin_of(interp, call, scope)
        if origins.is_array(origin):
            raise refuse("DataError", "counts have no columns to protect", node.span, help="link a table")
        names = (*(name for name, _ in schema), *unit.columns)
        data = origins.open_origin(interp, origin, node.source.span, public=False, names=names)
        origins.check_columns(schema, data, node.described.span, private=True)
        origins.check_columns([(unit.columns[0], None)], data, protecting.span, private=True)
        interp.kernel.register.link(node.name, data.identity, source, unit, node.span)
        key = data.key
    origins.announce(interp, source, node, [name for name, _ in schema], unit=str(unit))
    table = private_table(source, key, schema, clauses.never_missing(node.described, schema), unit, owners, FACTS)
    return interp.looks.described(table, node.described)


def owners_by(owner: Any, key: str, on: str, span: Span | None) -> Owners | None:
    """The look-up of the persons of rows by their column `on`, which has values of the column `key` of `owner`.

    None if that column itself identifies persons. Refused if a table has no persons, or no such column.
    """
    plan = rows_below(owner.plan) if isinstance(owner, Table) else None
    if isinstance(plan, Bound) and plan.by == (key,):
        return None
    whole = isinstance(owner, Table) and rows_below(owner.plan, (Derive,)) is plan
    if not isinstance(plan, Bound) or not whole or key not in dict(plan.scan.columns):
        name, unit = owner.exposures[0].source.name, owner.exposures[0].unit
        raise refuse(
            "DataError", f"whose a row is cannot be known by `{key}`, which is no column of persons of `{name}`", span,
            help=f"it is declared `protecting {unit}`; another column that rows refer to has to be described there",
        )  # fmt: skip
    return Owners(replace(plan, most=None, weighted=False), key, on)


def private(interp: Evaluator, node: n.Private, scope: Scope) -> Handle:
    interp.kernel.register.need_opening(node.span)  # a new name of opened data is shown in the budget too
    call = node.source
    kind = source_kind(call)
    if not (isinstance(call, n.Call) and kind):
        message = f"the source of `{node.name}` is a value of the program"
        help = "a private source is `table(…)`, `counts(…)`, `dataset(…)` or `bound(…)`"
        raise Refusal(Diagnostic("TypeError", message, call.span, "no source", help))
    clauses.need_clauses(node, kind)
    if kind == "dataset":
        return registered(interp, node, call, scope)
    if node.protecting is not None and node.protecting.linked:
        return linked(interp, node, call, kind, node.protecting, scope)
    if node.protecting is None or node.budget is None:
        raise clauses.lacking(node, ["protecting", "budget"])
    measure = clauses.measure_of(interp, node.budget, scope)
    unit = clauses.unit_of(interp, node.protecting, scope, node.budget)
    if interp.simulate is not None:
        return simulated(interp, node, kind, measure, unit, scope)
    origin = origins.origin_of(interp, call, scope)
    if kind == "table" and is_rows(origin):
        raise refuse("DataError", "rows that a program gives are public", call.span, help="declare a file as private")
    if kind == "counts" or origins.is_array(origin):
        return _private_counts(interp, node, origin, measure, unit)
    return _private_table(interp, node, origin, measure, unit, scope)


def _private_table(
    interp: Evaluator, node: n.Private, origin: object, measure: Measure, unit: Unit, scope: Scope
) -> Table:
    """A table of the described columns of files, of a server's table or of bound data."""
    if node.described is None or node.protecting is None:
        raise clauses.lacking(node, ["described by"])
    schema = clauses.described_schema(interp, node.described, scope)
    clauses.need_parts(node.budget, dict(schema), unit)
    never = clauses.never_missing(node.described, schema)
    names = (*(name for name, _ in schema), *unit.columns)
    data = origins.open_origin(interp, origin, node.source.span, public=False, names=names)
    origins.check_columns(schema, data, node.described.span, private=True)
    for column in unit.groups:
        if column not in dict(schema):
            raise refuse("DataError", f"`{column}` is not described, and its groups have no public sizes",
                         node.protecting.span, help=f"describe it: `{column}: {{…}}`")  # fmt: skip
    source = interp.kernel.register.declare(node.name, data.identity, measure, unit, node.span)
    if unit.columns:
        origins.check_private_columns(unit.columns, data, node.protecting.span)
    origins.announce(interp, source, node, [name for name, _ in schema])
    return interp.looks.described(private_table(source, data.key, schema, never, facts=FACTS), node.described)


def _private_counts(interp: Evaluator, node: n.Private, origin: object, measure: Measure, unit: Unit) -> Cube:
    if unit.columns or (node.budget is not None and node.budget.each):
        raise refuse("DataError", "counts have no columns to protect", node.span, help="write `protecting rows`")
    array, identity = origins.array_of(interp, origin, node.source.span, private=True)
    source = interp.kernel.register.declare(node.name, identity, measure, unit, node.span)
    origins.announce(interp, source, node, list(DIMENSIONS[: array.ndim]))
    return private_cube(interp.data, source, array, DIMENSIONS[: array.ndim])


def registered(interp: Evaluator, node: n.Private, call: n.Call, scope: Scope) -> Handle:
    """`dataset("name")`: schema, unit, budget and file are the owner's, from the ledger; a program adds nothing."""
    name = origins.origin_of(interp, call, scope)
    if not isinstance(name, str):
        raise refuse("TypeError", f"`dataset` takes a name, not {kind_name(name)}", call.span)
    opening = _open_dataset if interp.simulate is None else _simulated_dataset
    handle = opening(interp, name, node, call.span)
    origins.announce(interp, handle.exposures[0].source, node, [column for column, _ in handle.schema], dataset=name)
    return handle


def _open_dataset(interp: Evaluator, name: str, node: n.Private, span: Span) -> Table | Cube:
    """The handle of a registered dataset, under the name that a program gives it.

    If its persons belong to another dataset, that is opened too, and its source is charged.
    """
    from jostle.readers.databases import load_counts

    ledger = interp.ledger
    if ledger is None:
        raise refuse("LedgerError", "this session has no ledger", span)
    with PlacedAt(span):
        dataset, file = ledger.open(name)
    terms, register = dataset.terms, interp.kernel.register
    if terms.kind == "counts" and file is not None:
        array = load_counts(file, private=True)
        source = register.declare(node.name, file.identity, terms.measure, terms.unit, node.span)
        source.join(Account(ledger, dataset), span)
        return private_cube(interp.data, source, array, DIMENSIONS[: array.ndim])
    clauses.need_whole_periods(dict(terms.schema), terms.unit, span)  # older versions accepted others
    names = (*(name for name, _ in terms.schema), *terms.unit.columns)
    if file is None:
        data = origins.registered_table(interp, dataset, names, span)
        dataset = seen(dataset, data.identity)
    else:
        origins.need_here(interp, name, span)
        reading = Reading(sheet=terms.sheet, header=terms.header, encoding=terms.encoding, decimal=terms.decimal)
        files = FileSet.of([file], reading)
        data = origins.opened(interp, files, span, public=False, names=names)
    origins.check_columns(terms.schema, data, span, private=True)
    if not terms.unit.linked:
        source = register.declare(node.name, data.identity, terms.measure, terms.unit, node.span)
        handle = private_table(source, data.key, terms.schema, terms.filled, facts=FACTS)
        label = source.periods or (partition_label(handle, Column(terms.each), exact=True) if terms.each else None)
        source.join(Account(ledger, dataset, data.key, label=label), span)
        return handle
    table, _, key = terms.unit.linked.partition(".")
    owner = _open_dataset(interp, table, node, span)
    owners = owners_by(owner, key, terms.unit.columns[0], span)
    source = register.link(node.name, data.identity, owner.exposures[0].source, terms.unit, node.span)
    if isinstance(source.account, Account):
        source.account.linked[name] = dataset
    return private_table(source, data.key, terms.schema, terms.filled, terms.unit, owners, FACTS)


def _simulated_dataset(interp: Evaluator, name: str, node: n.Private, span: Span) -> Table:
    """A table with the terms of a registered dataset, which is not opened, and simulated rows."""
    ledger, register = interp.ledger, interp.kernel.register
    if ledger is None:
        raise refuse("LedgerError", "this session has no ledger", span)
    with PlacedAt(span):
        terms = ledger.stated(name).terms
    if terms.kind == "counts":
        raise refuse("DataError", f"the shape of `{name}` is in a file that is not opened in a simulation", span)
    seed, identity = (interp.simulate or 0) + len(register.names), ("simulated", name)
    table, _, key = terms.unit.linked.partition(".")
    owner = _simulated_dataset(interp, table, node, span) if table else None
    persons = Open("text") if owner is None else owner.domains.get(key, Open("text"))
    rows = simulated_rows(interp, node, terms.schema, dict.fromkeys(terms.unit.columns, persons), seed)
    if owner is None:
        source = register.declare(node.name, identity, terms.measure, terms.unit, node.span, SeededNoise(seed))
        return private_table(source, rows, terms.schema, terms.filled, facts=FACTS)
    owners = owners_by(owner, key, terms.unit.columns[0], span)
    source = register.link(node.name, identity, owner.exposures[0].source, terms.unit, node.span)
    return private_table(source, rows, terms.schema, terms.filled, terms.unit, owners, FACTS)


def public(interp: Evaluator, source: n.Expr, described: n.Expr | None, scope: Scope) -> Handle:
    """A public table, with a schema if one is given: `table("x.csv") described by {…}`."""
    if not (isinstance(source, n.Call) and source_kind(source)):
        raise refuse("TypeError", "only a source is described", source.span, help='`table("x.csv") described by {…}`')
    if source_kind(source) == "dataset":
        raise refuse(
            "PrivateValue", "a registered dataset is private", source.span,
            help='declare it: `private people = dataset("people")`',
        )  # fmt: skip
    domains = clauses.domains_in(interp, described, scope) if described is not None else None
    span = described.span if described is not None else source.span
    origin = origins.origin_of(interp, source, scope)
    if source_kind(source) == "counts":
        return public_counts(interp, origin, source.span)
    return open_public(interp, origin, domains, source.span, span, described)


def open_public(
    interp: Evaluator, origin: object, domains: object, span: Span | None, domains_span: Span | None = None,
    described: n.Expr | None = None,
) -> Handle:  # fmt: skip
    """Opens a public table or cube. Its identity must not be private in this session."""
    if origins.is_array(origin):
        return public_counts(interp, origin, span)
    if is_rows(origin):
        if domains is not None:
            raise refuse("TypeError", "rows that a program gives are described by their values", domains_span,
                         help="leave `described by` out")  # fmt: skip
        return table_of_rows(origin, span)
    origins.refuse_private(interp, origin, span)
    schema = clauses.schema_of(domains, domains_span, described) if domains is not None else ()
    data = origins.open_origin(interp, origin, span, public=True, names=[name for name, _ in schema])
    interp.kernel.register.read_publicly(data.identity, span)  # before anything of it is read
    if domains is None:
        schema = interp.data.guess(data, span)
    else:
        origins.check_columns(schema, data, domains_span)
    never = clauses.never_missing(described, schema)
    return public_table(interp.data, data.key, schema, data.identity, span, never, FACTS)


def public_array(interp: Evaluator, path: str, span: Span | None) -> object:
    """The public counts in a file, as an array. Its identity must not be private in this session."""
    file = origins.files_of(interp, path, span)
    origins.refuse_private(interp, file, span)
    return origins.array_of(interp, file, span)[0]


def public_counts(interp: Evaluator, origin: object, span: Span | None) -> Cube:
    origins.refuse_private(interp, origin, span)
    array, identity = origins.array_of(interp, origin, span)
    return public_cube(interp.data, array, DIMENSIONS[: array.ndim], identity, span)


def setting(value: object, default: object, name: str) -> object:
    """The value of a parameter: the setting of the command line or Python, of the default's kind, or the default."""
    if value is None:
        return default
    value = str.__str__(value) if isinstance(value, str) else value
    read = _as_kind_of(default, value)
    if read is not None:
        return read
    kind, help = kind_name(default), "the command line can set numbers, texts and booleans"
    if isinstance(default, bool):
        kind, help = "true or false", f"write `--set {name}=true`, or `false`"
    elif is_number(default):
        help = f"write `--set {name}={default:g}`, or another number"
    given = f"`{value}`" if isinstance(value, str) else f"Python's `{type(value).__name__}`"
    raise refuse("TypeError", f"`{name}` is {kind}, and {given} was given", help=help)


def _as_kind_of(default: object, value: object) -> object:
    """A Python value, or a text of the command line, as a value of the kind of `default`; None if it is not one."""
    if isinstance(default, bool):
        truth = bool(value) if isinstance(value, bool | np.bool_) else None
        return {"true": True, "false": False}.get(value) if isinstance(value, str) else truth
    if isinstance(default, str):
        return value if isinstance(value, str) else None
    if is_number(default):
        with suppress(ValueError, OverflowError, TypeError):  # 10^400, and number types of NumPy
            return float(value) if isinstance(value, str | RealNumber) and not isinstance(value, bool) else None
        return None
    if isinstance(default, date):
        return value if isinstance(value, date) else None
    several = value.tolist() if isinstance(value, np.ndarray) else value
    if not (is_sequence(default) and isinstance(several, list | tuple)):
        return None
    items = [_as_kind_of(item, item) for item in several]
    return None if None in items else items
