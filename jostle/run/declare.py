"""Sources: `private NAME = SOURCE …`, public tables, settings of the command line.

A file is opened by the engine; what is read of it here is only what an owner publishes about it: that it exists
and its header.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from jostle.amounts import quanta
from jostle.diagnostics import Refusal, did_you_mean, refuse
from jostle.engine.counts import file_identity
from jostle.engine.plan import Bound, Categories, Domain, Integer, Open, Plan, Real, Scan
from jostle.privacy.handles import Cube, Exposure, Handle, Table, handles_in
from jostle.privacy.measures import Amount, Measure
from jostle.privacy.registered import Clauses
from jostle.privacy.sources import Source, Unit
from jostle.run.scope import Scope
from jostle.run.values import Interval, JSet, Record, is_number, is_sequence, kind_name
from jostle.source import Span
from jostle.syntax import nodes as n

SOURCES = ("table", "counts", "dataset", "bound")
DIMENSIONS = ("x", "y", "z")


def private(interp: Any, node: n.Private, scope: Scope) -> Handle:
    """Declares a private source and gives its handle."""
    call = node.source
    if not (isinstance(call, n.Call) and isinstance(call.function, n.Name) and call.function.id in SOURCES):
        raise refuse(
            "TypeError", "a private source is `table(…)`, `counts(…)`, `dataset(…)` or `bound(…)`", call.span,
            help="a table made from another one has that one's budget, and needs no declaration",
        )  # fmt: skip
    kind = call.function.id
    if kind == "dataset":
        return registered(interp, node, call, scope)
    if node.protecting is None or node.budget is None:
        missing = "protecting" if node.protecting is None else "budget"
        wanted = "protecting rows" if node.protecting is None else "budget epsilon 1.0"
        raise refuse("DataError", f"`{node.name}` has no `{missing}` clause", node.span, help=f"add `{wanted}`")
    if kind == "table" and node.described is None:
        raise refuse(
            "DataError", f"`{node.name}` is not described", node.span,
            help="add `described by {age: 0..99, sex: {\"Female\", \"Male\"}}`: only described columns exist",
        )  # fmt: skip
    measure, unit = _measure(interp, node.budget, scope), _unit(interp, node.protecting, scope)
    if interp.simulate is not None:
        return simulated(interp, node, kind, measure, unit, scope)
    origin = _origin(interp, call, scope)
    if kind == "counts" or _is_array(origin):
        return _private_counts(interp, node, origin, measure, unit)
    if node.described is None:
        raise refuse("DataError", f"`{node.name}` is not described", node.span, help="add `described by {…}`")
    schema = schema_of(interp.eval(node.described, scope), node.described.span)
    opened = _open(interp, origin, call.span, public=False)
    _check_columns(schema, opened.columns, node.described.span, private=True)
    source = interp.kernel.register.declare(node.name, opened.identity, measure, unit, node.span)
    scan = Scan(opened.key, schema)
    plan: Plan = scan
    if unit.columns:
        _check_columns([(column, None) for column in unit.columns], opened.columns, node.protecting.span, private=True)
        plan = Bound(scan, unit.columns, unit.rows)
    _announce(interp, source, node, [name for name, _ in schema])
    return Table((Exposure(source, (), unit.distance),), plan, schema, origin=(opened.key, schema, unit))


def _private_counts(interp: Any, node: n.Private, origin: Any, measure: Measure, unit: Unit) -> Cube:
    if unit.columns:
        raise refuse("DataError", "counts have no columns to protect", node.span, help="write `protecting rows`")
    array, identity = _array(interp, origin, node.source.span, private=True)
    source = interp.kernel.register.declare(node.name, identity, measure, unit, node.span)
    _announce(interp, source, node, list(DIMENSIONS[: array.ndim]))
    cells = interp.kernel.vault.keep(array)
    return Cube((Exposure(source, (), unit.distance),), cells, DIMENSIONS[: array.ndim], array.shape, origin=identity)


def registered(interp: Any, node: n.Private, call: n.Call, scope: Scope) -> Handle:
    """`dataset("name")`: schema, unit, budget and file are the owner's, from the ledger; a program adds nothing."""
    from jostle.privacy.account import Account

    if interp.simulate is not None:
        raise refuse(
            "LedgerError", "a registered dataset is not opened in a simulation", call.span,
            help="its schema is in the ledger: declare a `table` with clauses of its own to simulate on",
        )  # fmt: skip
    name = _origin(interp, call, scope)
    if not isinstance(name, str):
        raise refuse("TypeError", f"`dataset` takes a name, not {kind_name(name)}", call.span)
    try:
        dataset = interp.kernel.ledger.open(name)
    except Refusal as refusal:
        raise refusal.at(call.span) from None
    for what, clause in (("described by", node.described), ("protecting", node.protecting), ("budget", node.budget)):
        if clause is not None:
            raise refuse(
                "DataError", f"`{name}` is registered, and its owner has said what `{what}` says", clause.span,
                help=f'leave the clauses out: `private {node.name} = dataset("{name}")`',
            )  # fmt: skip
    terms = dataset.terms
    made: Handle
    if terms.kind == "counts":
        array, identity, data = *_counted(interp, terms.path, call.span), ""
    else:
        opened = _opened(interp, terms.path, call.span, public=False)
        identity, data = opened.identity, opened.key
        _check_columns(terms.schema, opened.columns, call.span, private=True)
    source = interp.kernel.register.declare(node.name, identity, terms.measure, terms.unit, node.span)
    source.join(Account(interp.kernel.ledger, dataset, data), call.span)
    exposures = (Exposure(source, (), terms.unit.distance),)
    if terms.kind == "counts":
        names = DIMENSIONS[: array.ndim]
        made = Cube(exposures, interp.kernel.vault.keep(array), names, array.shape, origin=identity)
    else:
        plan: Plan = Scan(data, terms.schema)
        if terms.unit.columns:
            plan = Bound(Scan(data, terms.schema), terms.unit.columns, terms.unit.rows)
        names = tuple(column for column, _ in terms.schema)
        made = Table(exposures, plan, terms.schema, origin=(data, terms.schema, terms.unit))
    _announce(interp, source, node, list(names), dataset=name)
    return made


def clauses(interp: Any, node: n.Private, scope: Scope) -> Clauses:
    """What a declaration's clauses say, for an owner who registers a dataset with them."""
    if node.protecting is None or node.budget is None:
        raise refuse("DataError", "a dataset needs `protecting` and `budget`", node.span)
    function = node.source.function if isinstance(node.source, n.Call) else None
    is_counts = isinstance(function, n.Name) and function.id == "counts"
    measure, unit = _measure(interp, node.budget, scope), _unit(interp, node.protecting, scope)
    if is_counts != (node.described is None):
        raise refuse(
            "DataError", "tables are described, and counts are not", node.span, help="add --schema, or leave it"
        )
    if node.described is None:
        if unit.columns:
            raise refuse("DataError", "counts have no columns to protect", node.span, help="write `protecting rows`")
        return Clauses((), unit, measure)
    return Clauses(schema_of(interp.eval(node.described, scope), node.described.span), unit, measure)


MADE_UP_ROWS = 1000


def simulated(interp: Any, node: n.Private, kind: str, measure: Measure, unit: Unit, scope: Scope) -> Handle:
    """What `--simulate` puts in place of a private source: a public stand-in given with `--bind`, or made-up rows.

    The private source itself is not opened. Noise is seeded.
    """
    from jostle.simulate import SeededNoise, counts_of, rows_of

    seed = interp.simulate + len(interp.kernel.register.names)
    source = interp.kernel.register.declare(
        node.name, ("simulated", node.name), measure, unit, node.span, SeededNoise(seed)
    )
    exposures = (Exposure(source, (), unit.distance),)
    given = interp.bound.get(node.name)
    if kind == "counts" or _is_array(given):
        if given is None and not (isinstance(node.source, n.Call) and isinstance(node.source.args[0], n.ListOf)):
            raise refuse(
                "DataError", f"the shape of `{node.name}` is in a file that is not opened in a simulation", node.span,
                help=f"give a public stand-in: `--bind {node.name}=FILE`",
            )  # fmt: skip
        stand_in = given if given is not None else interp.eval(node.source.args[0], scope)  # type: ignore[attr-defined]
        array, _ = _array(interp, stand_in, node.source.span, private=True)
        cells = array if given is not None else counts_of(array.shape, MADE_UP_ROWS, seed)
        _announce(interp, source, node, list(DIMENSIONS[: array.ndim]))
        return Cube(exposures, interp.kernel.vault.keep(cells), DIMENSIONS[: array.ndim], array.shape, origin=source)
    if node.described is None:
        raise refuse("DataError", f"`{node.name}` is not described", node.span, help="add `described by {…}`")
    schema = schema_of(interp.eval(node.described, scope), node.described.span)
    rows = given if given is not None else rows_of({name: _wish(d) for name, d in schema}, MADE_UP_ROWS, seed)
    opened = _open(interp, rows, node.source.span, public=False)
    _check_columns(schema, opened.columns, node.described.span)
    scan = Scan(opened.key, schema)
    _announce(interp, source, node, [name for name, _ in schema])
    plan: Plan = Bound(scan, unit.columns, unit.rows) if unit.columns else scan
    return Table(exposures, plan, schema, origin=(opened.key, schema, unit))


def _wish(domain: Domain) -> tuple[str, Any, Any]:
    if isinstance(domain, Integer):
        return ("integer", domain.low, domain.high)
    if isinstance(domain, Real):
        return ("real", domain.low, domain.high)
    if isinstance(domain, Categories):
        return ("listed", list(domain.values), None)
    return {"integer": ("integer", 0, 99), "real": ("real", 0.0, 1.0)}.get(
        domain.kind, ("listed", [f"made up {i}" for i in range(20)], None)
    )


def _announce(interp: Any, source: Source, node: n.Private, columns: list[str], **more: Any) -> None:
    interp.kernel.events.emit(
        "source", node.name, node.span, unit=str(source.unit), budget=str(source.measure.limit), schema=columns, **more
    )


def public(interp: Any, source: n.Expr, described: n.Expr | None, scope: Scope) -> Handle:
    """A public table, with a schema where one is given: `table("x.csv") described by {…}`."""
    if not (isinstance(source, n.Call) and isinstance(source.function, n.Name) and source.function.id in SOURCES):
        raise refuse("TypeError", "only a source is described", source.span, help='`table("x.csv") described by {…}`')
    if source.function.id == "dataset":
        raise refuse(
            "PrivateValue", "a registered dataset is private", source.span,
            help='declare it: `private people = dataset("people")`',
        )  # fmt: skip
    domains = interp.eval(described, scope) if described is not None else None
    span = described.span if described is not None else source.span
    origin = _origin(interp, source, scope)
    if source.function.id == "counts":
        return public_counts(interp, origin, source.span)
    return open_public(interp, origin, domains, source.span, span)


def open_public(interp: Any, origin: Any, domains: Any, span: Span | None, domains_span: Span | None = None) -> Handle:
    """Opens a public table or cube; its identity may not be private in this session."""
    if _is_array(origin):
        return public_counts(interp, origin, span)
    _refuse_private(interp, origin, span)
    opened = _open(interp, origin, span, public=True)
    interp.kernel.register.read_publicly(opened.identity, span)
    if domains is None:
        schema = interp.kernel.engine.guess(opened.key)
    else:
        schema = schema_of(domains, domains_span)
        _check_columns(schema, opened.columns, domains_span)
    return Table((), Scan(opened.key, schema), schema, origin=(opened.key, schema))


def public_array(interp: Any, path: str, span: Span | None) -> Any:
    """The public counts in a file, as an array; its identity may not be private in this session."""
    _refuse_private(interp, path, span)
    array, identity = _array(interp, path, span)
    interp.kernel.register.read_publicly(identity, span)
    return array


def public_counts(interp: Any, origin: Any, span: Span | None) -> Cube:
    _refuse_private(interp, origin, span)
    array, identity = _array(interp, origin, span)
    interp.kernel.register.read_publicly(identity, span)
    return Cube((), interp.kernel.vault.keep(array), DIMENSIONS[: array.ndim], array.shape, origin=identity)


def schema_of(value: Any, span: Span | None) -> tuple[tuple[str, Domain], ...]:
    """The schema that a record of domains says."""
    if not isinstance(value, dict) or not value:
        raise refuse("DataError", "a description is a record of columns", span, help="`described by {age: 0..99}`")
    return tuple((name, _domain(name, wish, span)) for name, wish in value.items())


def _domain(name: str, wish: Any, span: Span | None) -> Domain:
    if isinstance(wish, Open):
        return wish
    if isinstance(wish, Interval):
        import math

        if not (math.isfinite(wish.low) and math.isfinite(wish.high)) or wish.low > wish.high:
            raise refuse("DataError", f"`{name}` has no values between {wish.low:g} and {wish.high:g}", span)
        return Real(wish.low, wish.high) if wish.real else Integer(int(wish.low), int(wish.high))
    if isinstance(wish, JSet) or is_sequence(wish):
        values = list(wish)
        if values and all(isinstance(v, str) for v in values):
            return Categories(tuple(values))
        if values and all(is_number(v) for v in values):
            return Categories(tuple(float(v) for v in values))
    raise refuse(
        "DataError", f"`{name}` needs a domain, and this is {kind_name(wish)}", span,
        help="a range `0..99`, categories `{\"a\", \"b\"}`, or `text`, `integer`, `real`",
    )  # fmt: skip


def setting(given: str | None, default: Any, name: str) -> Any:
    """A parameter's value: what the command line gave, read as its default's kind, else the default."""
    if given is None or not isinstance(given, str):
        return default if given is None else given
    if isinstance(default, bool) and given in ("true", "false"):
        return given == "true"
    if isinstance(default, str):
        return given
    if is_number(default):
        try:
            return float(given)
        except ValueError:
            raise refuse("TypeError", f"`{name}` is a number, and `{given}` was given") from None
    raise refuse(
        "TypeError", f"`{name}` cannot be set from the command line", help="only numbers, texts and booleans can"
    )


def _measure(interp: Any, budget: n.Budget, scope: Scope) -> Measure:
    node = budget.amount
    value = interp.eval(node.value, scope)
    delta = interp.eval(node.delta, scope) if node.delta is not None else None
    for handle in handles_in([value, delta]):
        raise refuse("PrivateValue", f"a budget is public, and this is {kind_name(handle)}", node.span)
    try:
        limit = Amount(node.unit, quanta(value, node.unit), quanta(delta, "delta") if delta is not None else 0)
    except Refusal as refusal:
        raise refusal.at(node.span) from None
    if limit.delta >= 10**12:
        raise refuse("BadAmount", "delta must be less than 1", node.span, help="something like `delta 1e-6`")
    if budget.counted_by not in (None, "basic", "zcdp"):
        raise refuse(
            "NameError", f"budgets are not counted by `{budget.counted_by}`", budget.span, help="`basic` or `zcdp`"
        )
    if node.unit == "rho":
        return Measure("zcdp", limit)
    if not limit.delta:
        return Measure("pure", limit)
    return Measure("basic" if budget.counted_by == "basic" else "approximate", limit)


def _unit(interp: Any, node: n.Protecting, scope: Scope) -> Unit:
    if node.weighted:
        raise refuse("TypeError", "`weighted` units are not available yet", node.span, help="leave `weighted` out")
    rows = _whole(interp, node.up_to, scope) if node.up_to is not None else 1
    most = _whole(interp, node.at_most, scope) if node.at_most is not None else None
    return Unit(node.columns, rows, node.public_size, most)


def _whole(interp: Any, node: n.Expr, scope: Scope) -> int:
    value = interp.eval(node, scope)
    if not is_number(value) or value < 1 or value != int(value):
        raise refuse("ValueError", "a number of rows is a whole number, at least 1", node.span)
    return int(value)


def _origin(interp: Any, call: n.Call, scope: Scope) -> Any:
    if len(call.args) != 1 or call.keywords:
        raise refuse("TypeError", "a source takes one argument", call.span, help='`table("people.csv")`')
    value = interp.eval(call.args[0], scope)
    name = call.function.id if isinstance(call.function, n.Name) else ""
    if handles_in(value) or isinstance(value, Handle):
        raise refuse("TypeError", "a source is a file or public data, not a table of this program", call.span)
    if name == "bound":
        if value not in interp.bound:
            raise refuse(
                "NameError", f"nothing is bound to `{value}`", call.span, help=did_you_mean(str(value), interp.bound)
            )
        return interp.bound[value]
    if name == "table" and not isinstance(value, str):
        raise refuse("TypeError", f"`table` takes the path of a file, not {kind_name(value)}", call.span)
    return _path(interp, value) if isinstance(value, str) and name != "dataset" else value


def _path(interp: Any, text: str) -> Any:
    """Paths are relative to the program's folder, else to the working directory."""
    for folder in interp.folders:
        if (Path(folder) / text).exists():
            return str(Path(folder) / text)
    return text


def _open(interp: Any, origin: Any, span: Span | None, *, public: bool) -> Any:
    _not_registered(interp, origin, span)
    return _opened(interp, origin, span, public=public)


def _opened(interp: Any, origin: Any, span: Span | None, *, public: bool) -> Any:
    try:
        return interp.kernel.engine.open(origin, public=public)
    except Refusal as refusal:
        raise refusal.at(span) from None


def _not_registered(interp: Any, origin: Any, span: Span | None) -> None:
    """A file that an owner has registered is read through its dataset only, by whatever path it is named."""
    if not isinstance(origin, str) or interp.kernel.ledger is None:
        return
    try:
        name = interp.kernel.ledger.named(origin)
    except Refusal as refusal:
        raise refusal.at(span) from None
    if name is not None:
        raise refuse(
            "PrivateValue", f"this file is registered as the dataset `{name}`", span,
            help=f'read it as that: `private {name} = dataset("{name}")`',
        )  # fmt: skip


def _refuse_private(interp: Any, origin: Any, span: Span | None) -> None:
    """Before a public source is read: what is wrong in its cells is told, and of private data would be a leak."""
    _not_registered(interp, origin, span)
    if isinstance(origin, str) and os.path.isfile(origin):
        interp.kernel.register.read_publicly(file_identity(origin), span)
    elif _is_array(origin):
        interp.kernel.register.read_publicly(("array", id(origin)), span)


def _counted(interp: Any, path: str, span: Span | None) -> tuple[Any, Any]:
    """The registered counts in a file, and its identity."""
    from jostle.engine.counts import load_counts

    try:
        return load_counts(path, private=True), file_identity(path)
    except Refusal as refusal:
        raise refusal.at(span) from None


def _is_array(origin: Any) -> bool:
    return type(origin).__module__ == "numpy" and getattr(origin.dtype, "names", None) is None


def _array(interp: Any, origin: Any, span: Span | None, *, private: bool = False) -> tuple[Any, Any]:
    """Counts as an int64 array of one to three dimensions, and the identity of where they come from.

    The cells of a private array decide nothing: what is no count is made one, cell by cell.
    """
    import numpy as np

    from jostle.engine.counts import as_counts, load_counts

    _not_registered(interp, origin, span)
    try:
        if isinstance(origin, str):
            return load_counts(origin, private=private), file_identity(origin)
        if isinstance(origin, Record) or not (is_sequence(origin) or _is_array(origin)):
            raise refuse("TypeError", f"`counts` takes a list of counts or a file, not {kind_name(origin)}")
        identity = ("array", id(origin)) if _is_array(origin) else ("literal", object())
        return as_counts(np.asarray(origin), "this array", private=private), identity
    except Refusal as refusal:
        raise refusal.at(span) from None
    except (ValueError, TypeError):
        raise refuse("DataError", "counts are numbers in rows of one length", span) from None


def _check_columns(schema: Any, known: Any, span: Span | None, *, private: bool = False) -> None:
    """Of a private file nothing is listed: without a header, its first line would be a row."""
    for name, _ in schema:
        if name not in known:
            listed = "" if private else did_you_mean(name, known) or f"the columns are {', '.join(list(known)[:12])}"
            hint = "names are as in the file's header: its first line, cells separated by commas"
            raise refuse("DataError", f"there is no column `{name}`", span, help=listed or hint)
