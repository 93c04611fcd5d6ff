"""The evaluation of expressions, one function per form. Calls are in `calls`, queries in `selects`.

Also fields and elements of public values, and the public facts of handles.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from functools import lru_cache
from typing import Any

from jostle.diagnostics import Diagnostic, Refusal, refuse
from jostle.doubles import place
from jostle.formulas import show_number
from jostle.language import row_mistakes
from jostle.language.forms import bare_selects, is_real
from jostle.language.methods import of_field_of_table, of_method
from jostle.language.moments import moment_of
from jostle.language.operations import COMPARISONS
from jostle.plan.plan import Domain, Integer, Moments, Real, listed
from jostle.privacy.kernel.exposures import Handle
from jostle.privacy.kernel.handles import ColumnHandle, Cube, Table, Vectors
from jostle.privacy.scores import Score
from jostle.records import replace
from jostle.run import declare, operators, selects
from jostle.run import values as val
from jostle.run.arguments import left_of_allotment
from jostle.run.evaluator import Evaluator
from jostle.run.externals import of_kernel, to_jostle, vectors_facts
from jostle.run.faults import PrivateValue, private_value, refuse_private
from jostle.run.forms import edges_of, rows_of
from jostle.run.operators import element as element_of
from jostle.run.publictables import records
from jostle.run.scope import MISSING, Scope
from jostle.run.sequences import Period, period
from jostle.syntax import nodes as n
from jostle.syntax import parse
from jostle.syntax.walk import around, every_of, links


def attribute(value: object, name: str) -> object:
    """`value.name`. A cube in place of an Option's record is its `database`, and its cells are the `queries`."""
    if type(value) is val.Record and name in value:  # nearly always
        return value[name]
    if isinstance(value, ColumnHandle):
        return _column_field(value, name)
    if isinstance(value, Cube) and name == "database":
        return value
    if isinstance(value, Cube) and name == "queries":
        from jostle.kernels.workloads.boxes import identity

        return identity(value.shape)
    if isinstance(value, val.Grouped) and name in value.parts:
        return value.column(name)
    at = getattr(type(value), "jostle_members", {}).get(name)
    if at is not None:
        return _member(value, name, getattr(value, at))
    fields = fields_of(value)
    if fields is None:
        raise Refusal(row_mistakes.no_fields(val.kind_name(value), name))
    if name not in fields:
        raise Refusal(row_mistakes.no_field(val.kind_name(value), name, fields))
    return _member(value, name, fields[name])


def _member(value: object, name: str, element: object) -> object:
    """A field as a value of the language. A function of a model is a method."""
    if not val.is_model(value):
        return element
    return of_kernel(name, element) if callable(element) else to_jostle(element)


def _column_field(column: ColumnHandle, name: str) -> object:
    """A field of a column. Categories are listed on demand."""
    if name in ("name", "edges"):
        return column.name if name == "name" else edges_of(column)
    finite = _finite_values(column.domain) if name == "categories" and not isinstance(column.domain, Real) else None
    if finite is not None:
        return list(finite)
    fields = {"name": column.name} | _facts(column) if name in ("kind", "low", "high") else fields_of(column) or {}
    if name == "categories" and name not in fields:
        raise Refusal(row_mistakes.no_categories(column.name, real=isinstance(column.domain, Real)))
    if name not in fields:
        raise Refusal(row_mistakes.no_field(val.kind_name(column), name, fields))
    return fields[name]


def fields_of(value: Any) -> Mapping[str, object] | None:
    """The fields of a value by name, for handles their public facts; None if it has none."""
    if isinstance(value, val.Record):
        return value
    if isinstance(value, val.Module):
        return value.names
    if isinstance(value, val.Grouped):
        return value.columns
    if isinstance(value, Cube):
        sides = {f"{n}_range": float(s) for n, s in zip(value.names, value.shape, strict=True)}
        return {**sides, "domain_size": float(value.size), "dimensions": list(value.names)}
    if isinstance(value, Table):
        from jostle.privacy.scores.splits import promised_rows

        promised = promised_rows(value)
        return {"columns": list(value.domains), "at_most": None if promised is None else float(promised)}
    if isinstance(value, Vectors):
        return vectors_facts(value)
    if isinstance(value, ColumnHandle):
        finite = _finite_values(value.domain)
        facts = {"name": value.name, "edges": edges_of(value)} | _facts(value)
        return facts | ({"categories": list(finite)} if finite is not None else {})
    if isinstance(value, val.Interval | Period):
        return {"low": value.low, "high": value.high}
    if val.is_workload(value):
        return {"kind": value.kind, "size": float(value.size), "mean_length": float(value.mean_length)}
    return getattr(value, "jostle_fields", None)


def _finite_values(domain: Domain) -> tuple[object, ...] | None:
    """The public values of a column, None if they are not finite. Refused if they are too many."""
    if isinstance(domain, Integer):
        val.need_room(domain.high - domain.low + 1)
        if domain.high - domain.low < FEW:
            return _few(domain)
    return listed(domain)


FEW = 2**10
_few = lru_cache(maxsize=2**10)(listed)
"""The listed values of domains with few of them, cached."""


def _facts(column: ColumnHandle) -> dict[str, object]:
    """A column's `kind` (integer, real, listed, open) and, of a bounded number, its public `low` and `high`."""
    domain = column.domain
    if isinstance(domain, Integer | Real):
        kind = "integer" if isinstance(domain, Integer) else "real"
        return {"kind": kind, "low": float(domain.low), "high": float(domain.high)}
    if isinstance(domain, Moments):
        low, high = (moment_of(domain.kind, end) for end in (domain.low, domain.high))
        return {"kind": domain.kind, "low": low, "high": high}
    return {"kind": "open" if listed(domain) is None else "listed"}


def index(value: Any, at: Any) -> Any:
    """`value[at]`: an element of a list or vector, a field of a record, or the row of a key in a grouped result."""
    if isinstance(value, dict):
        if not isinstance(at, str):
            help = f"it has {', '.join(f'`{name}`' for name in [*value][:9])}" if value else ""
            raise refuse("TypeError", f"a record is indexed by a name, not {val.kind_name(at)}", help=help)
        return attribute(value, at)
    if isinstance(value, val.Grouped) and isinstance(at, str) and at in value.parts:
        return value.column(at)
    if isinstance(value, val.Grouped):
        row = _place(at, len(value)) if val.is_number(at) or val.handles_in(at) else _row_of_keys(value, at)
        return val.Record((name, values[row]) for name, values in value.parts.items())
    if isinstance(value, str):
        return value[_place(at, len(value))]
    if val.is_vector(value):
        return element_of(value, _place(at, len(value)))
    if val.is_sequence(value):
        return value[_place(at, len(value))]
    raise Refusal(row_mistakes.no_elements(val.kind_name(value)))


def _row_of_keys(groups: val.Grouped, at: Any) -> int:
    """The index of a group by the value of its key, or a list of values for several keys."""
    names, wanted = list(groups.parts)[: groups.keys], list(at) if val.is_sequence(at) else [at]
    for row, keys in enumerate(zip(*map(groups.column, names), strict=True)):
        if len(keys) == len(wanted) and all(map(_same, keys, wanted)):
            return row
    texts = [key for key in groups.column(names[0]) if isinstance(key, str)] if len(names) == 1 else []
    raise Refusal(row_mistakes.no_key(val.show(wanted)[1:-1], len(wanted), names, texts))


def _same(key: object, value: object) -> bool:
    return isinstance(key, bool) == isinstance(value, bool) and key == value


def _place(at: object, length: int) -> int:
    if val.handles_in(at):
        raise private_value(val.handles_in(at)[0], "cannot be an index")
    if not val.is_number(at) or not float(at).is_integer():
        raise Refusal(row_mistakes.no_place(val.kind_name(at) if not val.is_number(at) else show_number(at)))
    here = place(at, length)
    if here is None:
        raise Refusal(row_mistakes.outside(show_number(float(at)), length))
    return here


def _name(interp: Evaluator, node: n.Name, scope: Scope) -> object:
    value = scope.find(node.id)
    if value is not MISSING:
        return value
    if node.id in ("epsilon", "rho"):
        return left_of_allotment(interp, (), node.id)
    return scope.get(node.id)


def _comprehension(interp: Evaluator, node: n.Comprehension, scope: Scope) -> object:
    out: list[Any] = []
    inner = Scope(scope)
    source = interp.eval(node.source, scope)
    if isinstance(source, val.Interval) and not source.real:
        val.need_room(source.count)
    names, condition, result, flat = node.names, node.condition, node.item, node.flat
    for item in interp.counted(interp.walk(source, node.source.span), node.span):
        if len(names) == 1:  # nearly always
            inner.names[names[0]] = item
        else:
            interp.bind(names, item, inner, node.source.span)
        if condition is None or interp.truth(interp.eval(condition, inner), condition):
            value = interp.eval(result, Scope(inner))
            if flat:
                out.extend(value)
            else:
                out.append(value)
            if len(out) > val.MOST_ITEMS:
                val.need_room(len(out))
    return val.JSet(out) if node.kind == "set" else out


def _range(interp: Evaluator, node: n.Range, scope: Scope) -> val.Interval | Period:
    low, high = interp.eval(node.low, scope), interp.eval(node.high, scope)
    if isinstance(low, date) or isinstance(high, date) or node.unit:
        return period(low, high, node.unit)
    if isinstance(low, str) and isinstance(high, str):
        form = f"{low}..{high}" if low[:4].isdigit() and high[:4].isdigit() else "2024-01-01..2024-12-31"
        help = f"dates stand without quotes, the year first: `{form}`"
        raise refuse("TypeError", "a range is of numbers or dates, not of texts", node.span, help=help)
    for value in (low, high):
        operators.need_number(value, "a range")
    real = is_real(node.low) or is_real(node.high)
    return val.Interval(float(low), float(high), real or not (float(low).is_integer() and float(high).is_integer()))


def _unary(interp: Evaluator, node: n.Unary, scope: Scope) -> object:
    value = interp.eval(node.operand, scope)
    return not interp.truth(value, node.operand) if node.op == "not" else operators.unary(node.op, value)


def _binary(interp: Evaluator, node: n.Binary, scope: Scope) -> object:
    if type(node.left) is not n.Binary:  # nearly always
        return linked(interp, node, interp.eval(node.left, scope), scope)
    first, chain = links(node)
    value = interp.eval(first, scope)
    for link in chain:
        value = linked(interp, link, value, scope)
    return value


COMPARED = COMPARISONS | {"in", "not in", "between", "not between", "like", "not like"}


def linked(interp: Evaluator, node: n.Binary, left: object, scope: Scope) -> Any:
    """The result of one binary node with a known left side."""
    right = interp.eval(node.right, scope)
    try:
        if type(left) in operators.ATOMS and type(right) in operators.ATOMS:  # nearly always
            return operators.binary(node.op, left, right)
        public = operators.is_atom(left) and operators.is_atom(right)
        by_identity = node.op in ("-", "+") or (node.op in ("in", "not in") and not isinstance(left, Score))
        for handle in () if public or by_identity else val.handles_in([left, right]):
            raise private_value(handle, f"cannot be {'compared' if node.op in COMPARED else 'calculated with'}")
        return operators.binary(node.op, left, right)
    except PrivateValue as refusal:
        is_left = any(handle is refusal.handle for handle in val.handles_in(left))
        raise refusal.of(*((node.left.span, left) if is_left else (node.right.span, right))) from None
    except Refusal as refusal:
        fault = row_mistakes.misfit(
            node.op, val.kind_name(left), val.kind_name(right), (node.left.span.text, node.right.span.text)
        )
        if node.right.span.text in ("epsilon", "rho") and refusal.first.kind == "ValueError":
            fault = replace(refusal.first, help="what is left here is 0: name it before it is spent, `e = epsilon`")
        raise (Refusal(fault) if fault.message == refusal.first.message else refusal).at(node.span) from None


def _logic(interp: Evaluator, node: n.Logic, scope: Scope) -> bool:
    decided = node.op == "or"
    for operand in node.operands:
        if interp.truth(interp.eval(operand, scope), operand) == decided and not interp.trying:
            return decided
    return not decided


def _branch(interp: Evaluator, node: n.Conditional, scope: Scope) -> object:
    holds = interp.truth(interp.eval(node.test, scope), node.test)
    if interp.trying:
        interp.eval(node.other if holds else node.then, scope)
    return interp.eval(node.then if holds else node.other, scope)


def _over(interp: Evaluator, node: n.Over, scope: Scope) -> object:
    inner = Scope(scope)
    items, values = [], []
    source = interp.eval(node.source, scope)
    if isinstance(source, val.Interval) and not source.real:
        val.need_room(source.count)
    for item in interp.walk(source, node.source.span):
        inner.set(node.name, item)
        items.append(item)
        val.need_room(len(items))
        values.append(interp.eval(node.body, Scope(inner)))
    refuse_private(values, f"cannot be compared by `{node.fold} over`")
    return operators.fold(node.fold, items, values)


def _part(interp: Evaluator, node: n.Part, scope: Scope) -> val.Part:
    run = val.Function(node.kind, interp.params_of(node.params, scope), node.body, scope)
    predict = None
    if node.predict is not None and node.predict_params is not None:
        predict = val.Function("predict", interp.params_of(node.predict_params, scope), node.predict, scope)
    return val.Part(node.kind, run, predict)


def _attribute(interp: Evaluator, node: n.Attribute, scope: Scope) -> object:
    value = interp.eval(node.value, scope)
    try:
        return attribute(value, node.name)
    except Refusal as refusal:
        raise Refusal(_of_other_languages(value, node, refusal.first)) from None


def _of_other_languages(value: object, node: n.Attribute | n.Index, fault: Diagnostic | None = None) -> Any:
    """The refusal of a field or element that other languages have, with the line to write; None if it may be right."""
    tree = parse(node.span.source, interactive=True)
    stands_in = around(tree, next((one for one in every_of(tree, type(node)) if one.span == node.span), node))
    if isinstance(value, Table):
        kinds = {k: "numbers" if isinstance(v, Integer | Real | Moments) else "listed" if listed(v) else ""
                 for k, v in value.domains.items()}  # fmt: skip
        return of_field_of_table(kinds, node, stands_in)
    if fault is None or not isinstance(node, n.Attribute):
        return fault
    help = of_method(val.kind_name(value), node, stands_in, list(fields_of(value) or ()))
    return replace(fault, help=help or fault.help)


def _index(interp: Evaluator, node: n.Index, scope: Scope) -> Any:
    value = interp.eval(node.value, scope)
    if isinstance(value, Table) and not value.private and len(node.args) == 1 and isinstance(node.args[0], n.Number):
        return index(records(interp, value, node.span), interp.eval(node.args[0], scope))
    if isinstance(value, Table) and value.private and (fault := _of_other_languages(value, node)) is not None:
        raise Refusal(fault)
    if isinstance(value, Handle):
        return rows_of(interp, value, node, scope)
    if node.keywords or (len(node.args) != 1 and not (isinstance(value, val.Grouped) and node.args)):
        keys = ", ".join(keyword.value.span.text for keyword in node.keywords)
        help = f"write `{node.value.span.text}[{keys}]`" if keys else ""
        raise refuse("TypeError", f"{val.kind_name(value)} takes one index", node.span, help=help)
    at = [interp.eval(arg, scope) for arg in node.args]
    return index(value, at if len(at) > 1 else at[0])


def _query(interp: Evaluator, node: n.Query, scope: Scope) -> object:
    outer, interp.bare_left = interp.bare_left, bare_selects(node)
    try:
        return interp.eval(node.body, scope)
    finally:
        interp.bare_left = outer


def _star(interp: Evaluator, node: n.Expr, scope: Scope) -> object:
    message = "`*` and `distinct` stand only in the count of a select"
    raise refuse("TypeError", message, node.span, help="write `count(*)`, or `count(distinct x)`")


EXPRESSIONS: dict[type, Callable[..., object]] = {
    **dict.fromkeys((n.Number, n.String, n.Constant), lambda interp, node, scope: node.value),
    n.Variable: lambda interp, node, scope: scope.outside_rows().get(node.id),
    n.ListOf: lambda interp, node, scope: [interp.eval(item, scope) for item in node.items],
    n.SetOf: lambda interp, node, scope: (
        val.JSet([interp.eval(item, scope) for item in node.items]) if node.items else val.Record()
    ),
    n.RecordOf: lambda interp, node, scope: val.Record([(name, interp.eval(item, scope)) for name, item in node.items]),
    n.Lambda: lambda interp, node, scope: val.Function(
        "this lambda", tuple((p, val.REQUIRED) for p in node.params), node.body, scope
    ),
    n.Choice: lambda interp, node, scope: interp.choose(interp, node, scope),
    n.Described: lambda interp, node, scope: declare.public(interp, node.source, node.domains, scope),
    n.Name: _name, n.Comprehension: _comprehension, n.Range: _range, n.Unary: _unary, n.Binary: _binary,
    n.Logic: _logic, n.Conditional: _branch, n.Over: _over, n.Part: _part, n.Attribute: _attribute,
    n.Index: _index, n.Query: _query, n.Select: selects.select, n.Star: _star, n.Distinct: _star,
}  # fmt: skip
