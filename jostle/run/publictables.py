"""Public tables as values, from records, released results and other tables; weighted records, `weighted(t)`."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from datetime import date
from functools import reduce

from jostle.diagnostics import refuse
from jostle.language.moments import number_of
from jostle.plan import plan as p
from jostle.plan.facts import FACTS, text_values
from jostle.plan.kinds import kind_of, value_kind
from jostle.privacy.kernel.handles import ColumnHandle, Cube, Table
from jostle.privacy.reading.minting import known_table, listed_table
from jostle.privacy.reading.public_data import PublicData
from jostle.privacy.transformations import records as of_records
from jostle.privacy.transformations.joins import union
from jostle.privacy.transformations.records import WeightedRecords
from jostle.privacy.transformations.transform import derive, where
from jostle.run.arguments import need_table
from jostle.run.evaluator import At, Evaluator, PlacedAt, Value, builtin
from jostle.run.faults import no_rows
from jostle.run.operators import need_number
from jostle.run.rows import RowCompiler
from jostle.run.scope import Scope
from jostle.run.values import Grouped, JSet, Record, is_number, is_sequence, kind_name, need_room
from jostle.run.workloads import union_of_workloads
from jostle.source import Span
from jostle.syntax import nodes as n


def is_rows(value: Value) -> bool:
    """Whether a table can be made of a value: of a list of records, of a released result, or of synthetic rows."""
    of_records = is_sequence(value) and all(isinstance(item, Record) for item in value)
    return isinstance(value, Grouped) or of_records or hasattr(type(value), "jostle_records")


def table_of_rows(value: Value, span: Span | None) -> Table:
    """`table([{a: 1, b: "x"}, …])`, `table(g)` of a released result, and of synthetic rows: a public table."""
    rows = value.jostle_records() if hasattr(type(value), "jostle_records") else list(value)
    if not rows or not rows[0]:
        raise refuse("DataError", "a table of no rows has no columns", span, help='`table([{city: "Ames", size: 10}])`')
    names = list(rows[0])
    for at, row in enumerate(rows):
        if list(row) != names and set(row) != set(names):
            other = next(iter(set(row) ^ set(names)))
            raise refuse("DataError", f"record {at + 1} and the first differ in `{other}`", span,
                         help="give all records the same fields; `none` is a missing value")  # fmt: skip
    with PlacedAt(span):
        return literal_table(names, [[_cell(row[name], name) for row in rows] for name in names])


def _cell(value: object, name: str) -> object:
    if value is None or isinstance(value, (str, bool, date)):
        return value
    if not is_number(value):
        raise refuse("TypeError", f"a cell is a number, a text, a date or a truth, and `{name}` has {kind_name(value)}")
    return float(value) if math.isfinite(value) else None


def records(interp: Evaluator, table: Table, span: Span | None) -> list[Record]:
    """The rows of a public table as records, in their order."""
    if table.private:
        raise no_rows(table).at(span)
    need_room(interp.data.size(table), "the rows of a table")
    names = list(table.domains)
    return [Record(zip(names, row, strict=True)) for row in interp.data.records(table)]


@builtin
def _sample(items: Value, count: object, seed: object = 0.0, *, at: At) -> list[object]:
    """`sample(t, 100)`: so many different items of a list or rows of a public table, in their order.

    Which these are is decided by a hash of the seed and the place: public, and the same on every machine.
    """
    interp, span = at
    if isinstance(items, Table):
        items = records(interp, items, span)
    if not (is_sequence(items) or isinstance(items, (JSet, Grouped))):
        raise refuse("TypeError", f"`sample` takes a list or a public table, not {kind_name(items)}")
    pool = list(items)
    if not is_number(count) or not float(count).is_integer() or not 0 <= count <= len(pool):
        raise refuse("ValueError", f"a sample of these has 0 to {len(pool):,} items")
    if not is_number(seed):
        raise refuse("TypeError", "a seed is a number")
    ranks = [hashlib.sha256(f"{float(seed)!r}:{place}".encode()).digest() for place in range(len(pool))]
    picks = sorted(sorted(range(len(pool)), key=ranks.__getitem__)[: int(count)])
    return [pool[place] for place in picks]


@builtin
def _weighted(table: object) -> WeightedRecords:
    return of_records.weighted(need_table(table, "weighted"))


@builtin
def _shave(records: object, step: object, most: object = 100.0, *, name: object = "place") -> WeightedRecords:
    of = _need(records, "shave")
    return of_records.shaved(of, need_number(step, "`shave`"), _whole(most, "shave"), _text(name, "shave"))


@builtin
def _grouped(
    records: object,
    by: object,
    name: object = "size",
    most: object = 1000.0,
    *,
    reducer: object = "count",
    of: object = None,
) -> WeightedRecords:
    source, keys, new = _need(records, "grouped"), _column_names(by, "grouped"), _text(name, "grouped")
    if not isinstance(reducer, str):
        raise refuse("TypeError", f"the reducer of `grouped` is a text, not {kind_name(reducer)}", help='`"max"`')
    column = None if of is None else _column_names(of, "grouped")
    if column is not None and len(column) != 1:
        raise refuse("TypeError", "`grouped` reduces one column", help='`of = "hours"`')
    return of_records.grouped(source, keys, new, _whole(most, "grouped"), reducer, column[0] if column else None)


@builtin
def _joined(left: object, right: object, on: object, most: object = 1048576.0) -> WeightedRecords:
    sides = _need(left, "joined"), _need(right, "joined")
    return of_records.joined(*sides, _column_names(on, "joined"), need_number(most, "`joined`"))


@builtin
def _intersect(left: object, right: object) -> WeightedRecords:
    return of_records.combined("intersect", _need(left, "intersect"), _need(right, "intersect"))


@builtin
def _concat(left: object, right: object) -> WeightedRecords:
    return of_records.combined("concat", _need(left, "concat"), _need(right, "concat"))


@builtin
def _without(left: object, right: object) -> WeightedRecords:
    return of_records.combined("without", _need(left, "without"), _need(right, "without"))


def larger_weights(parts: Sequence[object], weights: object) -> WeightedRecords:
    """`union` of weighted records."""
    if weights is not None:
        raise refuse("TypeError", "a union of records takes the larger weight of each", help="`union(a, b)`")
    return reduce(lambda a, b: of_records.combined("union", a, b), [_need(part, "union") for part in parts])


def _need(value: object, what: str) -> WeightedRecords:
    if isinstance(value, WeightedRecords):
        return value
    help = "make them of a table: `weighted(t)`" if isinstance(value, Table) else ""
    if isinstance(value, Cube):
        help = "take its sums last: `histogram(records, x = a)`"
    raise refuse("TypeError", f"`{what}` takes weighted records, not {kind_name(value)}", help=help)


def _column_names(value: Value, what: str) -> list[str]:
    """The names of columns: one, or a list of them; columns stand for their names."""
    entries = list(value) if is_sequence(value) else [value]
    names = [item.name if isinstance(item, ColumnHandle) else item for item in entries]
    if not names or not all(isinstance(name, str) for name in names):
        raise refuse(
            "TypeError", f"`{what}` takes the names of columns, not {kind_name(value)}", help=f'`{what}(…, "a")`'
        )
    return names


def _text(value: object, what: str) -> str:
    if not isinstance(value, str) or not value.isidentifier():
        raise refuse("TypeError", f"`{what}` names a new column by a text", help='`"degree"`')
    return value


def _whole(value: object, what: str) -> int:
    number = need_number(value, f"`{what}`")
    if not number.is_integer():
        raise refuse("ValueError", f"the `most` of `{what}` is a whole number")
    return int(number)


@builtin
def _union(*parts: Value, weights: object = None) -> object:
    """`union(a, b)`: all rows of the tables. `union([v, w], [2, 1])`: the answers of the workloads."""
    tables = list(parts[0]) if parts and is_sequence(parts[0]) else list(parts)
    if any(isinstance(part, WeightedRecords) for part in tables):
        return larger_weights(tables, weights)
    if not any(isinstance(part, Table) for part in tables):
        if len(parts) > 2 or (len(parts) == 2 and weights is not None):
            raise refuse("TypeError", "`union` takes tables, or a list of workloads and perhaps their weights",
                         help="`union(a, b)`; `union([prefixes(c), marginals(c, 1)], [1, 2])`")  # fmt: skip
        return union_of_workloads(parts[0] if parts else None, parts[1] if len(parts) == 2 else weights)
    if weights is not None or (len(parts) > 1 and is_sequence(parts[0])):
        raise refuse("TypeError", "a union of tables has no weights", help="`union(a, b)`, or `union([a, b])`")
    for part in tables:
        if not isinstance(part, Table):
            raise refuse("TypeError", f"a union is of tables, and this is {kind_name(part)}")
    return union(tables)


@builtin
def _explode(interp: Evaluator, node: n.Call, scope: Scope) -> Table:
    """`explode(t, item = [a, b, c])`: a row for each item that is not none."""
    usage = (
        '`explode(t, item = [first, second, third])`, of a text with separators `[part(tags, ";", i) for i in 1..5]`'
    )
    if len(node.args) != 1 or not node.keywords:
        raise refuse("TypeError", "`explode` takes a table and named lists", node.span, help=usage)
    table = need_table(interp.eval(node.args[0], scope), "explode", node.args[0].span)
    columns = [(k.name, _row_items(interp, k.value, table, scope)) for k in node.keywords]
    with PlacedAt(node.span):
        return explode(table, columns)


MOST_ITEMS = 1000


def explode(table: Table, columns: Sequence[tuple[str, Sequence[p.RowExpr]]]) -> Table:
    """A row for each place of lists of one length, with the items there as columns, where none of them is missing.

    A text without a character other than blanks is missing too, as the parts of `a;;b; ` are: what is left out is
    decided row by row, and a row of the table still gives at most one for each place.
    """
    lengths = {len(items) for _, items in columns}
    if len(lengths) != 1 or not 1 <= max(lengths) <= MOST_ITEMS:
        raise refuse(
            "ValueError", f"`explode` takes lists of one length, 1 to {MOST_ITEMS:,} items",
            help="`explode(t, item = [first, second, third])`",
        )  # fmt: skip
    for name, items in columns:
        kinds = {kind_of(item, table.domains) for item in items if item != p.Constant(None)}
        if "text" in kinds and len(kinds) > 1:
            raise refuse("TypeError", f"the items of `{name}` are numbers and texts", help="give all of one kind")
    parts = []
    for i in range(max(lengths)):
        part: Table = derive(table, [(name, items[i]) for name, items in columns])
        for name, _ in columns:
            for condition in _there(name, part):
                left = where(part, condition)
                part = left if isinstance(left, Table) else part
        parts.append(part)
    return union(parts)


def _there(name: str, table: Table) -> list[p.RowExpr]:
    """Whether there is an item: no missing one, and no text that is empty or blank, where one can be."""
    item = p.Column(name)
    conditions: list[p.RowExpr] = [p.Apply("not", (p.Apply("missing", (item,)),))]
    if kind_of(item, table.domains) == "text":
        values = text_values(item, table.domains)
        if values is None or not all(map(str.strip, values)):
            conditions.append(p.Apply("!=", (p.Apply("trim", (item,)), p.Constant(""))))
    return conditions


def _row_items(interp: Evaluator, node: n.Expr, table: Table, scope: Scope) -> list[p.RowExpr]:
    """The items of a list, each an expression on rows; a comprehension walks through something public."""
    if isinstance(node, n.ListOf):
        compiler = RowCompiler(table.domains, interp, scope)
        return [compiler.expression(item) for item in node.items]
    if isinstance(node, n.Comprehension) and node.kind == "list" and not node.flat:
        return [compiler.expression(node.item) for compiler in item_compilers(interp, node, table, scope)]
    is_variable = isinstance(node, n.Name) and node.id not in table.domains
    values: Value = interp.eval(node, scope) if is_variable else None
    if is_sequence(values) and all(v is None or isinstance(v, (str, bool)) or is_number(v) for v in values):
        return [p.Constant(float(v) if is_number(v) else v) for v in values]
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


# Domains of what is public ----------------------------------------------------------------------


MOST_ROWS = 2**16
"""Rows that a program gives; more are a file, or what Python binds."""
MOST_LISTED = 4096


def literal_table(names: Sequence[str], columns: Sequence[Sequence[object]]) -> Table:
    """A public table of columns of one kind each, some cells missing; what is known of them are their values."""
    if columns and len(columns[0]) > MOST_ROWS:
        raise refuse(
            "DataError", f"a table of {len(columns[0]):,} rows is too long to be written out",
            help=f"at most {MOST_ROWS:,}: put them into a file, or bind a frame from Python",
        )  # fmt: skip
    schema = tuple((name, _stated_domain(name, column)) for name, column in zip(names, columns, strict=True))
    return listed_table(schema, list(zip(*columns, strict=True)), FACTS)


def _plural(kind: str) -> str:
    return "truths" if kind == "boolean" else f"{kind}s"


def _stated_domain(name: str, column: Sequence[Value]) -> p.Domain:
    cells = [cell for cell in column if cell is not None]
    kinds = list(dict.fromkeys(map(value_kind, cells)))
    if len(kinds) > 1:
        raise refuse(
            "TypeError", f"the column `{name}` has {_plural(kinds[0])} and {_plural(kinds[1])}",
            help="`str(x)` makes a text of a number",
        )  # fmt: skip
    if kinds == ["text"]:
        different = tuple(dict.fromkeys(cells))
        return p.Categories(different) if len(different) <= MOST_LISTED else p.Open("text")
    if kinds in (["date"], ["time"]):
        numbers = list(map(number_of, cells))
        return p.Moments(kinds[0], min(numbers), max(numbers))
    if kinds != ["number"]:
        return p.Open("boolean" if kinds else "real")
    whole = all(float(cell).is_integer() for cell in cells)
    return p.Integer(int(min(cells)), int(max(cells))) if whole else p.Real(float(min(cells)), float(max(cells)))


MOST_TEXTS = 4096
"""Different texts of a public column that are listed as its values; one with more stays open."""
MOST_WHOLE = 2**20
"""The widest range of whole numbers that a public column is said to have; a wider one is listed, where it has few."""


def known_sides(data: PublicData, left: Table, right: Table) -> tuple[Table, Table]:
    """The sides of a join with a private one: of the other, which is public, the values of open columns are known."""
    if not (left.private or right.private):
        return left, right
    return _with_known_domains(data, left), _with_known_domains(data, right)


def _with_known_domains(data: PublicData, table: Table) -> Table:
    """A public table of whose open columns the values are known: listed texts, and the range of numbers.

    A private one comes back as it is. Kept, as tables are joined often.
    """
    if table.private or not any(isinstance(domain, p.Open) for _, domain in table.schema):
        return table
    schema = data.remembered(
        table,
        lambda: tuple((name, _known_domain(data, table, name, domain)) for name, domain in table.schema),
        64 * MOST_TEXTS,
    )
    return known_table(table, schema)


def _known_domain(data: PublicData, table: Table, name: str, domain: p.Domain) -> p.Domain:
    if not isinstance(domain, p.Open) or domain.kind == "boolean":
        return domain
    column = p.Column(name)
    if domain.kind == "text":
        texts = _values(data, table, column)
        return p.Categories(texts) if texts else domain
    if domain.kind in ("date", "time"):
        (low,), (high,) = data.exact(table, (), (p.Exact("min", column), p.Exact("max", column)))[1]
        return domain if low is None else p.Moments(domain.kind, number_of(low), number_of(high))
    whole = p.Apply("if", (p.Apply("==", (column, p.Apply("floor", (column,)))), column, p.Constant(None)))
    statistics = (p.Exact("min", column), p.Exact("max", column), p.Exact("count", column), p.Exact("count", whole))
    (low,), (high,), (many,), (integral,) = data.exact(table, (), statistics)[1]
    if low is None:
        return domain
    if many > integral:
        return p.Real(float(low), float(high))
    if high - low >= MOST_WHOLE and (numbers := _values(data, table, column)) is not None:
        return p.Categories(numbers)
    return p.Integer(int(low), int(high))


def _values(data: PublicData, table: Table, column: p.Column) -> tuple[Value, ...] | None:
    """The different values of a column of whole numbers or texts, in order; None where there are very many."""
    (many,) = data.exact(table, (), (p.Exact("count_distinct", column),))[1][0]
    return tuple(data.exact(table, (column,), (p.Exact("count"),))[0][0]) if many <= MOST_TEXTS else None
