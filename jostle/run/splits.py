"""What trees ask of tables: `entropy`, `gini`, `max_class` of a split, disjoint parts by hash, and public bins."""

from __future__ import annotations

from typing import Any

from jostle.diagnostics import refuse
from jostle.plan.plan import Column, RowExpr
from jostle.privacy.kernel.exposures import Handle, handles_in
from jostle.privacy.kernel.handles import ColumnHandle, Table
from jostle.privacy.measurements.choices import NoisyScore
from jostle.privacy.rows.leaves import PublicTree
from jostle.privacy.scores import leaves, splits
from jostle.privacy.transformations import disjoint, transform
from jostle.run.bins import bin_number
from jostle.run.evaluator import Evaluator
from jostle.run.faults import private_value
from jostle.run.qualifiers import Qualifiers
from jostle.run.registry import builtin, implement
from jostle.run.rows import RowCompiler
from jostle.run.scope import Scope
from jostle.run.values import Interval, is_number, is_sequence, is_vector, kind_name
from jostle.syntax import nodes as n

MOST_EDGES = 100


def _score(name: str) -> Any:
    def body(interp: Evaluator, node: n.Call, scope: Scope) -> Any:
        allowed = {"prices", "most"} if name == "entropy" else {"prices"}
        if len(node.args) != 3 or any(k.name not in allowed for k in node.keywords):
            raise refuse(
                "TypeError", f"`{name}` takes a table, the column to split by and that of the classes", node.span,
                help=f"`{name}(people, age / 10, sex)`",
            )  # fmt: skip
        table = interp.eval(node.args[0], scope)
        if not isinstance(table, Table):
            raise refuse("TypeError", f"`{name}` takes a table, not {kind_name(table)}", node.args[0].span)
        compiler = RowCompiler(table.domains, interp, scope, Qualifiers.of(node.args[0], table.domains))
        given = {k.name: interp.eval(k.value, scope) for k in node.keywords}
        most = _bound(given["most"]) if "most" in given else None
        label, tree = _column(compiler, table, node.args[2]), _tree(table, node.args[1], scope)
        if tree is not None:
            prices = _prices(given["prices"]) if "prices" in given else None
            return leaves.level_splits(interp.data, name, table, tree, splits.split_key(*label, table), most, prices)
        if "prices" in given:
            raise refuse("TypeError", "splits by a column have no prices", node.span, help="a tree's next splits have")
        score = splits.split_score(interp.data, name, table, _column(compiler, table, node.args[1]), label, most)
        return score if score.private else interp.kernel.measure(NoisyScore.of(score, None, None), node.span)

    return body


def _column(compiler: RowCompiler, table: Table, node: n.Expr) -> tuple[str, RowExpr]:
    """A column by its name, its handle or a text, or an expression on rows."""
    expr, name = compiler.column_position(node)
    return (name or (expr.name if isinstance(expr, Column) else "this split")), expr


def _tree(table: Table, node: n.Expr, scope: Scope) -> PublicTree | None:
    """The growing tree that a variable holds, which stands where a column does for all that may be asked next."""
    if not isinstance(node, n.Name | n.Variable) or (isinstance(node, n.Name) and node.id in table.domains):
        return None
    tree = getattr(scope.find(node.id), "tree", None)
    return tree if isinstance(tree, PublicTree) else None


def _prices(value: Any) -> Any:
    """Public numbers, a list of them for each leaf of the level, one after the other."""
    import numpy as np

    for handle in handles_in(value):
        raise private_value(handle, "cannot be a price")
    listed = is_sequence(value) and all(is_sequence(some) and all(map(is_number, some)) for some in value)
    if not listed:
        raise refuse("TypeError", "prices are a list for each leaf of the level, of a number for each of its splits")
    return [np.array(list(some), dtype=float) for some in value]


def _growing(what: str, table: Any, tree: Any) -> tuple[Table, PublicTree]:
    for handle in handles_in(tree):
        raise private_value(handle, "is no tree")
    if not isinstance(table, Table) or not isinstance(getattr(tree, "tree", None), PublicTree):
        kinds = f"{kind_name(table)} and {kind_name(tree)}"
        raise refuse("TypeError", f"`{what}` takes a table and a tree that grows, not {kinds}", help="`tree_start(…)`")
    return table, tree.tree


@builtin
def _level_sizes(table: object, tree: object) -> Handle:
    """`level_sizes(D, tree)`: how many rows are at each leaf that a growing tree may split."""
    return leaves.level_sizes(*_growing("level_sizes", table, tree))


@builtin
def _leaf_counts(table: object, tree: object, label: object) -> Handle:
    """`leaf_counts(D, tree, class)`: how many rows of each class are at each leaf of a growing tree."""
    name = label.name if isinstance(label, ColumnHandle) else label
    table, public = _growing("leaf_counts", table, tree)
    if not isinstance(name, str) or name not in table.domains:
        raise refuse("NameError", "`leaf_counts` takes the class as a column of the table", help="or as its name")
    return leaves.leaf_counts(table, public, name)


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
    return disjoint.split_rows(interp.data, table, int(parts), int(seed))


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
    return transform.derive(table, [(name, bin_number(name, places))])


for _split in splits.SPLITS:
    implement(_split, _score(_split))
