"""What trees ask of tables: `entropy`, `gini`, `max_class` of a split, disjoint parts by hash, and public bins."""

from __future__ import annotations

from typing import Any

from jostle.diagnostics import refuse
from jostle.plan.plan import Apply, Column, Constant, RowExpr
from jostle.privacy.kernel.handles import ColumnHandle, Handle, Table, handles_in
from jostle.privacy.measurements.choices import NoisyScore
from jostle.privacy.scores import splits
from jostle.privacy.transformations import disjoint, transform
from jostle.run.faults import private_value
from jostle.run.qualifiers import Qualifiers
from jostle.run.registry import builtin, implement
from jostle.run.rows import RowCompiler
from jostle.run.scope import Scope
from jostle.run.values import Interval, is_number, is_sequence, is_vector, kind_name
from jostle.syntax import nodes as n

MOST_EDGES = 100


def _score(name: str) -> Any:
    def body(interp: Any, node: n.Call, scope: Scope) -> Any:
        allowed = {"most"} if name == "entropy" else set()
        if len(node.args) != 3 or any(k.name not in allowed for k in node.keywords):
            raise refuse(
                "TypeError", f"`{name}` takes a table, the column to split by and that of the classes", node.span,
                help=f"`{name}(people, age / 10, sex)`",
            )  # fmt: skip
        table = interp.eval(node.args[0], scope)
        if not isinstance(table, Table):
            raise refuse("TypeError", f"`{name}` takes a table, not {kind_name(table)}", node.args[0].span)
        compiler = RowCompiler(table.domains, interp.eval, scope, Qualifiers.of(node.args[0], table.domains))
        by, label = (_column(compiler, table, arg) for arg in node.args[1:])
        most = None
        for keyword in node.keywords:
            most = _bound(interp.eval(keyword.value, scope))
        score = splits.split_score(interp.kernel, name, table, by, label, most)
        return score if score.private else interp.kernel.measure(NoisyScore.of(score, None, None), node.span)

    return body


def _column(compiler: RowCompiler, table: Table, node: n.Expr) -> tuple[str, RowExpr]:
    """A column by its name, its handle or a text, or an expression on rows."""
    expr, name = compiler.column_position(node)
    return (name or (expr.name if isinstance(expr, Column) else "this split")), expr


def _bound(value: Any) -> int:
    for handle in handles_in(value):
        raise private_value(handle, "cannot be a bound on rows")
    if not is_number(value) or not value >= 1:
        raise refuse("ValueError", "a bound on rows is a number, at least 1")
    return int(min(value, splits.MOST))


@builtin
def _split_rows(table: Any, parts: Any, seed: Any = 0.0, *, at: Any) -> list[Handle]:
    """`split_rows(D, 10)`: disjoint parts by a hash of the protected unit, of which none looks at another's rows."""
    interp, _ = at
    if not isinstance(table, Table):
        raise refuse("TypeError", f"`split_rows` takes a table, not {kind_name(table)}")
    for value in (parts, seed):
        if not is_number(value) or not float(value).is_integer() or not 0 <= value < 2**53:
            raise refuse("ValueError", "`split_rows` takes a whole number of parts", help="`split_rows(people, 10)`")
    return disjoint.split_rows(interp.kernel, table, int(parts), int(seed))


@builtin
def _binned(table: Any, column: Any, edges: Any, *, at: Any) -> Table:
    """`binned(D, a, [20, 40])`: the table with a numeric column as its bin, the number of edges that it reaches."""
    if not isinstance(table, Table):
        raise refuse("TypeError", f"`binned` takes a table, not {kind_name(table)}")
    name = column.name if isinstance(column, ColumnHandle) else column
    if not isinstance(name, str):
        raise refuse("TypeError", f"`binned` takes a column or its name, not {kind_name(column)}")
    for handle in handles_in(edges):
        raise private_value(handle, "cannot be the edge of a bin")
    listed = isinstance(edges, Interval) or is_sequence(edges) or is_vector(edges)
    places = sorted({float(e) for e in edges if is_number(e) or type(e).__module__ == "numpy"}) if listed else []
    if not places or len(places) > MOST_EDGES:
        raise refuse("ValueError", f"the edges of bins are a list of 1 to {MOST_EDGES} numbers")
    transform.need_column(table, name)
    total: RowExpr = Apply("if", (Apply("missing", (Column(name),)), Constant(None), Constant(0.0)))
    for edge in places:
        reached = Apply("if", (Apply(">=", (Column(name), Constant(edge))), Constant(1.0), Constant(0.0)))
        total = Apply("+", (total, reached))
    return transform.derive(table, [(name, total)])


for _split in splits.SPLITS:
    implement(_split, _score(_split))
