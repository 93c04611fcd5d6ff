"""Declarations, expressions on rows and transformations before the run: on which path a handle lies.

Follows `run.rows`, `run.forms` and `privacy.transformations`. A part by a column or a key that is not known is
counted as one that overlaps with all others. So what is spent on it adds to what is spent on them.

Two declarations are of one source where the world, asked for the identity of a file, says so. Nothing is opened.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence

from jostle.check.costs import values as val
from jostle.check.costs.walk import Walk
from jostle.check.warnings import listed_items
from jostle.diagnostics import Refusal
from jostle.language import facts
from jostle.language.facts import Effect, Gives
from jostle.language.forms import PERSON, source_kind
from jostle.records import replace
from jostle.run.expressions import index
from jostle.run.groups import public_keys
from jostle.run.scope import MISSING, Scope
from jostle.run.values import Interval, JSet
from jostle.source import Span
from jostle.syntax import nodes as n
from jostle.syntax.walk import expressions

MOST_PARTS = 400  # of one partition that are distinguished


def _may_be_one(identity: Hashable, other: Hashable) -> bool:
    """Whether two sources may have data in common; files of one table are a set of names."""
    if isinstance(identity, frozenset) and isinstance(other, frozenset):
        return not identity.isdisjoint(other)
    return identity is None or other in (identity, None)


# Sources -----------------------------------------------------------------------------------------


def declared_source(w: Walk, node: n.Private, scope: Scope) -> object:
    """The handle of a private source; of one declared twice, both names share what is spent."""
    call = node.source
    kind = source_kind(call)
    args = [w.eval(arg, scope) for arg in call.args] if isinstance(call, n.Call) else []
    schema = _schema(w.eval(node.described, scope)) if node.described is not None else None
    unit, limit, delta = _budget(w, node, scope)
    identity = w.identity(kind, args)
    if node.protecting is not None and node.protecting.linked:
        return _linked(w, node, schema, identity, scope)
    source = next((old for old, other in w.identities if _may_be_one(identity, other)), None)
    public_size = node.protecting is not None and node.protecting.public_size
    if source is None:
        source = val.SourceFact(
            node, [], unit, limit, delta, public_size, node.budget.counted_by or "" if node.budget is not None else "",
            single=node.protecting is not None and not node.protecting.columns and not public_size,
            persons=(PERSON,) if node.protecting is None else node.protecting.columns,  # or its owner says whom
        )  # fmt: skip
        w.sources.append(source)
        w.identities.append((source, identity))  # where an identity is not known, the two may be one
    else:
        source.inexact, source.single = True, False
        source.public_size = source.public_size and public_size
    source.names += [node.name] if node.name not in source.names else []
    if kind == "dataset":  # its owner says the rest, and what was answered before is free
        source.inexact = True
    elif kind == "counts" or schema is None:
        return val.Handle("cube", (val.Exposure(source),), None, object(), True)
    return val.Handle("table", (val.Exposure(source),), schema, object(), True)


def _budget(w: Walk, node: n.Private, scope: Scope) -> tuple[str, int | None, int | None]:
    """The unit, the limit and the delta of a budget, in quanta."""
    if node.budget is None:
        return "", None, None
    spend = node.budget.amount
    amount = w.eval(spend.value, scope)
    delta = (_one(w.eval(spend.delta, scope)) or 0) if spend.delta is not None else None
    return spend.unit, _one(amount), delta


def _linked(w: Walk, node: n.Private, schema: dict[str, object] | None, identity: Hashable, scope: Scope) -> object:
    """Another table of the persons of a source, under its budget."""
    owner = w.look_up(scope, node.protecting.linked) if node.protecting is not None else None
    if not (isinstance(owner, val.Handle) and len(owner.exposures) == 1):
        return val.TOP
    source = owner.exposures[0].source
    w.identities.append((source, identity))
    source.single = False
    source.persons += node.protecting.columns if node.protecting is not None else ()
    source.names += [node.name] if node.name not in source.names else []
    return val.Handle("table", (val.Exposure(source),), schema, object(), True)


def _one(value: object) -> int | None:
    return val.quanta(value) if isinstance(value, float) else None


def _schema(value: object) -> dict[str, object] | None:
    return dict(value) if isinstance(value, dict) else None


def public_table(w: Walk, node: n.Described, scope: Scope) -> object:
    if isinstance(node.source, n.Call):
        for arg in node.source.args:
            w.eval(arg, scope)
    return val.Handle("table", (), _schema(w.eval(node.domains, scope)))


# Domains -----------------------------------------------------------------------------------------


def keys_of(domain: object) -> Sequence[float | str] | None:
    """The public values of a described column, or None where they are open or not known."""
    if isinstance(domain, Interval):
        return list(domain) if not domain.real and domain.count < 100_000 else None
    values = domain.items if isinstance(domain, JSet) else domain
    keys = [v for v in values if isinstance(v, (float, str))] if isinstance(values, list) else []
    return list(dict.fromkeys(keys)) if keys and keys == values else None


def identifiable(domain: object) -> bool:
    """Whether a value and its integer part may be two keys of a column, so that two kinds of parts overlap."""
    if domain is val.PUBLIC:
        return True
    if isinstance(domain, Interval):
        return domain.real
    keys = keys_of(domain)
    return keys is None or not all(isinstance(k, str) or k.is_integer() for k in keys)


# Expressions on rows -----------------------------------------------------------------------------


def columns_of(table: object) -> dict[str, object] | None:
    """The names that stand for columns where the rows of a table are read; None where they are not known."""
    return table.schema if isinstance(table, val.Handle) else None


def of_rows(w: Walk, node: n.Expr, schema: dict[str, object] | None, scope: Scope) -> None:
    """An expression on rows, or a list of them, or a comprehension that gives some."""
    if isinstance(node, n.ListOf):
        for item in node.items:
            of_rows(w, item, schema, scope)
    elif isinstance(node, n.Comprehension):
        inner = Scope(scope)

        def each(item: object) -> bool:
            w.bind_items(node.names, item, inner)
            for part in (node.item, *([node.condition] if node.condition is not None else [])):
                of_rows(w, part, schema, inner)
            return True

        w.loop(inner, node.span, w.eval(node.source, scope), set(node.names), each)
    elif isinstance(node, n.Distinct):
        of_rows(w, node.value, schema, scope)
    elif schema is None:
        w.optionally(lambda: row_parts(w, node, None, scope))
    else:
        row_parts(w, node, schema, scope)


def row_parts(w: Walk, node: n.Expr, schema: dict[str, object] | None, scope: Scope) -> None:
    """Evaluates the parts of an expression on rows that name no column, as a run does, once each."""
    if isinstance(node, n.Name):
        w.look_up(scope, node.id)
    elif isinstance(node, n.Number | n.String) or not _names_column(w, node, schema, scope):
        w.eval(node, scope)
    elif isinstance(node, n.Binary) and node.op in ("in", "not in"):
        row_parts(w, node.left, schema, scope)
        w.eval(node.right, scope)
    else:
        for part in _operands(node):
            row_parts(w, part, schema, scope)


def _names_column(w: Walk, node: n.Expr, schema: dict[str, object] | None, scope: Scope) -> bool:
    if isinstance(node, n.Name):
        return node.id in schema if schema is not None else w.look_up(scope, node.id) is MISSING
    if isinstance(node, n.Binary) and node.op in ("in", "not in"):
        return _names_column(w, node.left, schema, scope)
    return any(_names_column(w, part, schema, scope) for part in _operands(node))


def _operands(node: n.Expr) -> list[n.Expr]:
    if isinstance(node, n.Call):
        return [*node.args, *(k.value for k in node.keywords)]
    return expressions(node) if isinstance(node, n.Unary | n.Binary | n.Logic | n.Conditional) else []


def _column_name(w: Walk, node: n.Expr, handle: val.Handle, scope: Scope) -> str | None:
    """The column that an expression names, or None where it is none or not known."""
    match node:
        case n.Name(id=name):
            return _column_of_name(w, name, handle, scope)
        case n.Variable(id=name) if handle.schema is not None:
            return _known_column(w.look_up(scope, name), handle)
        case n.String(value=name):
            return _known_column(name, handle)
    return None


def _known_column(value: object, handle: val.Handle) -> str | None:
    name = value.name if isinstance(value, val.Handle) and value.kind == "column" else value
    return name if isinstance(name, str) and name in (handle.schema or {}) else None


# Forms -------------------------------------------------------------------------------------------


def row_form(w: Walk, row: facts.Builtin, node: n.Call, scope: Scope) -> object:
    """A built-in whose arguments after the first are expressions on rows."""
    table = w.eval(node.args[0], scope) if node.args else val.PUBLIC
    over: object = MISSING
    schema, form = columns_of(table), _FORMS.get(row.gives)
    for arg in node.args[1:]:
        of_rows(w, arg, schema, scope)
    for keyword in node.keywords:
        if keyword.name == "over":
            over = w.eval(keyword.value, scope)
        else:
            of_rows(w, keyword.value, schema, scope)
    if row.effect is Effect.PURE:
        return val.PUBLIC
    return val.each_way(
        table, lambda one: val.TOP if form is None else form(w, row, one, node, over, scope)
    )  # not followed


def _columns(w: Walk, row: facts.Builtin, table: val.Handle, node: n.Call, over: object, scope: Scope) -> object:
    if table.schema is None:
        return val.Items(val.Handle("column", table.exposures, None, None, False, ""))
    return [val.Handle("column", table.exposures, table.schema, None, False, column) for column in table.schema]


def _scored(w: Walk, row: facts.Builtin, table: val.Handle, node: n.Call, over: object, scope: Scope) -> object:
    kind = "score" if row.gives is Gives.SCORE else "vectors"
    return val.Handle(kind, table.exposures) if table.exposures else val.PUBLIC


def _derived(w: Walk, row: facts.Builtin, table: val.Handle, node: n.Call, over: object, scope: Scope) -> object:
    added = dict.fromkeys((keyword.name for keyword in node.keywords), val.PUBLIC)
    return val.Handle(table.kind, table.exposures, {**table.schema, **added} if table.schema is not None else None)


def _picked(w: Walk, row: facts.Builtin, table: val.Handle, node: n.Call, over: object, scope: Scope) -> object:
    picked, schema = [_column_name(w, arg, table, scope) for arg in listed_items(node.args[1:])], table.schema
    certain = [column for column in picked if column is not None]
    columns = {c: schema[c] for c in certain} if schema is not None and len(certain) == len(picked) else None
    return val.Handle(table.kind, table.exposures, columns)


def _filtered(table: val.Handle) -> val.Handle:
    return val.Handle(table.kind, table.exposures, table.schema, table.origin)


def _partition_parts(
    w: Walk, row: facts.Builtin, table: val.Handle, node: n.Call, over: object, scope: Scope
) -> object:
    column = _column_name(w, node.args[1], table, scope) if len(node.args) > 1 else None
    keys = _listed_keys(over, node.span) if over is not MISSING else None
    if over is MISSING and column is not None and table.schema is not None:
        keys = keys_of(table.schema[column])
    certain = keys is not None and len(keys) <= MOST_PARTS
    label = _label(table, column, "floor") if certain else None
    if label is None:
        label = object()
    if keys is None or not certain:
        expr = node.args[1] if len(node.args) > 1 else None
        if isinstance(expr, n.Name) and table.origin is not None:  # other parts may belong to the same partition
            _mark_inexact(table)
        some = int(isinstance(expr, n.Binary) and over is MISSING)  # numbers between two bounds: at least one key
        least, most = (len(keys), len(keys)) if keys is not None else (some, None)
        return val.Items([val.PUBLIC, extended(table, label, val.EACH)], least, most, part_of=label)
    return [[key, extended(table, label, key)] for key in keys]


_FORMS: Mapping[Gives, Callable[[Walk, facts.Builtin, val.Handle, n.Call, object, Scope], object]] = {
    Gives.PARTS: _partition_parts, Gives.FILTERED: lambda w, row, table, node, over, scope: _filtered(table),
    Gives.COLUMNS: _columns, Gives.SCORE: _scored, Gives.VECTORS: _scored,
    Gives.CUBE: lambda w, row, table, node, over, scope: val.Handle("cube", table.exposures),
    Gives.DERIVED: _derived, Gives.EXPLODED: _derived, Gives.PICKED: _picked,
}  # fmt: skip
"""What a built-in of rows gives of a table."""


def _listed_keys(value: object, span: Span) -> Sequence[object] | None:
    """Keys that a program lists, as a run takes them; None where they are not known."""
    items = val.walked(value)
    if not isinstance(items, list) or not all(isinstance(v, (float, str, bool)) for v in items):
        return None
    try:
        return list(public_keys(items, span))
    except Refusal:
        return None


def _label(table: val.Handle, column: str | None, how: str) -> Hashable | None:
    """The partition that a part by a bare column of an unaltered table belongs to."""
    if table.origin is None or column is None or table.schema is None:
        return None
    if identifiable(table.schema[column]):
        _mark_inexact(table)
        return (table.origin, column, how)
    return (table.origin, column)


def extended(table: val.Handle, label: Hashable, part: Hashable) -> val.Handle:
    exposures = tuple(replace(e, path=(*e.path, (label, part))) for e in table.exposures)
    return replace(table, exposures=exposures, whole=False, name="")


def _mark_inexact(table: val.Handle) -> None:
    for exposure in table.exposures:
        exposure.source.inexact = True


# Indexing ----------------------------------------------------------------------------------------


def transfer_index(w: Walk, node: n.Index, scope: Scope) -> object:
    value = w.eval(node.value, scope)
    if isinstance(value, val.Handle) or (isinstance(value, val.OneOf) and not val.cannot_charge(value)):
        if isinstance(next(iter(node.args), None), n.String | n.ListOf):
            return val.PUBLIC  # a run refuses it
        return _rows_where(w, value, node, scope)
    at = [w.eval(arg, scope) for arg in node.args]
    for keyword in node.keywords:
        w.eval(keyword.value, scope)
    return _element_of(value, at[0] if len(at) == 1 else val.PUBLIC)


def _element_of(value: object, at: object) -> object:
    if val.is_known(at) and val.is_definite(value):
        try:
            return index(value, at)
        except Refusal:
            return val.PUBLIC
    items = val.items_in(value)
    return val.join_all(list(items)) if items and isinstance(value, (dict, list, val.Items)) else val.widened(value)


def _rows_where(w: Walk, value: val.Handle | val.OneOf, node: n.Index, scope: Scope) -> object:
    """`D[a = v, b = w]` and `D[E, ]`."""
    schema = columns_of(value)
    for condition in node.args:
        of_rows(w, condition, schema, scope)
    conditions = [(keyword.name, w.eval(keyword.value, scope)) for keyword in node.keywords]
    if isinstance(value, val.OneOf):
        # A list among the ways would be indexed by value; any of its items then.
        return val.join_all([
            _parts_where(w, one, conditions, scope)
            if isinstance(one, val.Handle) else _element_of(one, val.PUBLIC)
            for one in value.values
        ])  # fmt: skip
    return _parts_where(w, value, conditions, scope)


def _parts_where(w: Walk, table: val.Handle, conditions: list[tuple[str, object]], scope: Scope) -> val.Handle:
    result = _filtered(table)
    for name, value in conditions:
        column = _column_of_name(w, name, table, scope)
        certain = column is not None and isinstance(value, (float, str, bool))
        label = _label(result, column, "exact") if certain else None
        if label is not None:
            result = extended(result, label, value)
        else:  # a part that is not known: counted as if it overlapped with all others
            _mark_inexact(result)
            result = extended(result, object(), val.EACH)
    return result


def _column_of_name(w: Walk, name: str, table: val.Handle, scope: Scope) -> str | None:
    if table.schema is None or name in table.schema:
        return name if table.schema is not None else None
    return _known_column(w.look_up(scope, name), table)
