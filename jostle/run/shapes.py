"""Tables made of other tables and of values: `union(a, b)`, `explode(t, item = [a, b, c])`."""

from __future__ import annotations

from typing import Any

from jostle.diagnostics import Refusal, refuse
from jostle.plan.plan import Constant, RowExpr
from jostle.privacy.kernel.handles import Table
from jostle.privacy.transformations.flatmap import explode
from jostle.privacy.transformations.records import WeightedRecords
from jostle.privacy.transformations.union import union
from jostle.run.evaluator import Evaluator
from jostle.run.records import larger_weights
from jostle.run.registry import builtin
from jostle.run.rows import RowCompiler
from jostle.run.scope import Scope
from jostle.run.values import is_number, is_sequence, kind_name
from jostle.run.workloads import union_of_workloads
from jostle.syntax import nodes as n


@builtin
def _union(*parts: Any, weights: object = None) -> Any:
    """`union(a, b)`: all rows of the tables. `union([v, w], [2, 1])`: the answers of the workloads."""
    listed = list(parts[0]) if parts and is_sequence(parts[0]) else list(parts)
    if any(isinstance(part, WeightedRecords) for part in listed):
        return larger_weights(listed, weights)
    if not any(isinstance(part, Table) for part in listed):
        if len(parts) > 2 or (len(parts) == 2 and weights is not None):
            raise refuse("TypeError", "`union` takes tables, or a list of workloads and perhaps their weights",
                         help="`union(a, b)`; `union([prefixes(c), marginals(c, 1)], [1, 2])`")  # fmt: skip
        return union_of_workloads(parts[0] if parts else None, parts[1] if len(parts) == 2 else weights)
    if weights is not None or (len(parts) > 1 and is_sequence(parts[0])):
        raise refuse("TypeError", "a union of tables has no weights", help="`union(a, b)`, or `union([a, b])`")
    for part in listed:
        if not isinstance(part, Table):
            raise refuse("TypeError", f"a union is of tables, and this is {kind_name(part)}")
    return union(listed)


@builtin
def _explode(interp: Evaluator, node: n.Call, scope: Scope) -> Table:
    """`explode(t, item = [a, b, c])`: a row for each item that is not none."""
    usage = "`explode(t, item = [first, second, third])`"
    if len(node.args) != 1 or not node.keywords:
        raise refuse("TypeError", "`explode` takes a table and named lists", node.span, help=usage)
    table = interp.eval(node.args[0], scope)
    if not isinstance(table, Table):
        raise refuse("TypeError", f"`explode` takes a table, not {kind_name(table)}", node.args[0].span)
    columns = [(k.name, _row_items(interp, k.value, table, scope)) for k in node.keywords]
    try:
        return explode(table, columns)
    except Refusal as refusal:
        raise refusal.at(node.span) from None


def _row_items(interp: Evaluator, node: n.Expr, table: Table, scope: Scope) -> list[RowExpr]:
    """The items of a list, each an expression on rows; a comprehension walks through something public."""
    if isinstance(node, n.ListOf):
        compiler = RowCompiler(table.domains, interp, scope)
        return [compiler.expression(item) for item in node.items]
    if isinstance(node, n.Comprehension) and node.kind == "list" and not node.flat:
        return [compiler.expression(node.item) for compiler in item_compilers(interp, node, table, scope)]
    named = isinstance(node, n.Name) and node.id not in table.domains
    listed: Any = interp.eval(node, scope) if named else None
    if is_sequence(listed) and all(v is None or isinstance(v, (str, bool)) or is_number(v) for v in listed):
        return [Constant(float(v) if is_number(v) else v) for v in listed]
    raise refuse("TypeError", "`explode` takes lists that are written out, or of public values", node.span,
                 help="`explode(t, item = [a, b, c])`, or `[part(tags, \";\", i) for i in 1..3]`")  # fmt: skip


def item_compilers(interp: Evaluator, node: n.Comprehension, table: Table, scope: Scope) -> list[RowCompiler]:
    """For each item of a comprehension over something public, what compiles it as an expression on rows."""
    compilers = []
    for value in interp.walk(interp.eval(node.source, scope), node.source.span):
        inner = Scope(scope)
        interp.bind(node.names, value, inner, node.source.span)
        if node.condition is None or interp.truth(interp.eval(node.condition, inner), node.condition):
            compilers.append(RowCompiler(table.domains, interp, inner))
    return compilers
