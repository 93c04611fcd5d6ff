"""What a run and a check must see alike in how a program is written: aggregates of a select, sources, real ends.

Selects `via smooth`, which are of joins of private tables without a bound: what a run and a check say of others.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from jostle.diagnostics import Diagnostic
from jostle.language.aggregates import AGGREGATES
from jostle.language.builtins import SOURCES
from jostle.language.operations import COMPARISONS
from jostle.language.row_functions import OPERATIONS
from jostle.noise_laws import SmoothLaplace
from jostle.records import replace
from jostle.syntax import nodes as n
from jostle.syntax.walk import children, every, rebuilt

DIMENSIONS = ("x", "y", "z")
"""The names of a cube's dimensions where a program gives none."""


def qualified_names(select: n.Select) -> frozenset[tuple[str, str]]:
    """The columns that it names with their table, as `t.age`."""
    names = [part for part in every(select) if isinstance(part, n.Attribute)]
    return frozenset((part.value.id, part.name) for part in names if isinstance(part.value, n.Name))


def aggregates(node: n.Node) -> list[n.Call]:
    """The calls of aggregates in an output of a select, in source order; those of a sub-select are its own."""
    calls: list[n.Call] = []
    waiting = [node]
    while waiting:
        here = waiting.pop()
        if isinstance(here, n.Call) and isinstance(here.function, n.Name) and here.function.id in AGGREGATES:
            operation = OPERATIONS.get(here.function.id)  # `max(a, b)` is a function of a row, `max(a)` an aggregate
            if operation is None or len(here.args) != operation.arity:
                calls.append(here)
                continue
        if not isinstance(here, n.Select):
            waiting += children(here)[::-1]
    return calls


def outside_aggregates(values: Sequence[n.Expr]) -> list[n.Node]:
    """The parts of these that are not within aggregates, nor these themselves."""
    inside = {id(part) for value in values for call in aggregates(value) for part in every(call)}
    return [part for value in values for part in every(value) if id(part) not in inside]


def keys_by_alias(select: n.Select, columns: Collection[str]) -> n.Select:
    """`select floor(age / 10) as decade, count(*) … group by decade`: the key is what the name stands for, as in SQL.

    A column of the table by that name comes first, as it does there. `columns` are those of the table. A select whose
    columns are all keys, `select city … groupby city`, has none beside them. One of rows, without keys, aggregates and
    an amount, is the table of its columns that it is after `from`.
    """
    if not select.keys and not select.per:
        return _as_table(select, columns)
    if _is_of_keys(select):
        return replace(select, columns=(), keys=tuple([_with_name(key, select.columns) for key in select.keys]))
    plain = [column for column in select.columns if not aggregates(column.value)]
    by_alias = {column.name: column.value for column in plain if column.name is not None}
    used: set[str] = set()

    def meant(key: n.GroupKey) -> n.GroupKey:
        name = key.value.id if isinstance(key.value, n.Name) else None
        if name is None or name in columns or name not in by_alias:
            return key
        used.add(name)
        return replace(key, value=by_alias[name], name=key.name or name)

    keys, per = tuple(map(meant, select.keys)), tuple(map(meant, select.per or ()))
    left = tuple(column for column in select.columns if column.name not in used)
    if not used or (select.per and not left):
        return select
    return replace(select, columns=left, keys=keys, per=None if select.per is None else per)


def _is_of_keys(select: n.Select) -> bool:
    """Whether all columns of a select are keys."""
    return not select.per and all(any(_is_key(column.value, key) for key in select.keys) for column in select.columns)


def _as_table(select: n.Select, columns: Collection[str]) -> n.Select:
    """A select of rows, as the table that it gives; any other as it is. An aggregate without brackets is a slip."""
    if not select.columns or select.ranking or (select.spend, select.per, select.having, select.first) != (None,) * 4:
        return select
    names = {column.value.id.lower() for column in select.columns if isinstance(column.value, n.Name)}
    slips = any(name in AGGREGATES for name in names - {*columns})
    return select if slips or any(aggregates(column.value) for column in select.columns) else replace(select, per=())


def _is_key(value: n.Expr, key: n.GroupKey) -> bool:
    return value == key.value or (isinstance(value, n.Name) and value.id == key.name)


def _with_name(key: n.GroupKey, columns: Sequence[n.Column]) -> n.GroupKey:
    return replace(key, name=key.name or next((c.name for c in columns if c.name and _is_key(c.value, key)), None))


def persons_by_column(select: n.Select, columns: Collection[str], protected: Collection[str]) -> n.Select:
    """`count(distinct id)` and `per id`, where `id` tells persons apart and is not described, are of `person`.

    `columns` are those of the table, and `protected` those that its declarations name, alone, after `protecting`.
    """
    names = () if PERSON in columns or not protected else {name for name in protected if name not in columns}
    where = select.where
    if protected and PERSON not in columns and isinstance(where, n.Logic) and where.op == "and":
        at, none = where.span, n.Constant(None, span=where.span)  # each row is somebody's
        present = [n.Binary("!=", n.Name(name, span=at), none, span=at) for name in (PERSON, *names)]
        rest = tuple(part for part in where.operands if part not in present)
        select = replace(select, where=replace(where, operands=rest) if rest[1:] else next(iter(rest), None))

    def meant(node: n.Node) -> n.Node:
        column = node.value if isinstance(node, n.Distinct) else None
        is_person = isinstance(column, n.Name) and column.id in names
        return replace(node, value=replace(column, id=PERSON)) if is_person else node

    if not names:
        return select
    per = [_of_person(key, names) for key in select.per or ()]
    return replace(select, columns=rebuilt(select.columns, meant), per=tuple(per) if per else select.per)


def _of_person(key: n.GroupKey, names: Collection[str]) -> n.GroupKey:
    if not isinstance(key.value, n.Name) or key.value.id not in names:
        return key
    return replace(key, value=replace(key.value, id=PERSON), name=None)


def bare_selects(query: n.Query) -> int:
    """How many selects of a query say no amount of their own: they share what is left."""
    if "bare" not in (memo := vars(query)):
        selects = [node for node in every(query) if isinstance(node, n.Select)]
        memo["bare"] = len([select for select in selects if select.spend is None and select.per is None])
    return int(memo["bare"])


def is_real(node: n.Expr) -> bool:
    """Whether an end of a range is written with a point or an exponent."""
    while isinstance(node, n.Unary):
        node = node.operand
    return isinstance(node, n.Number) and node.real


def is_condition(node: n.Expr) -> bool:
    """Whether `t[node]` can only mean the rows for which `node` is true."""
    match node:
        case n.Binary(op=op):
            return op in COMPARISONS or op in ("in", "not in", "between", "not between", "like", "not like")
        case n.Logic() | n.Unary(op="not"):
            return True
    return False


PERSON = "person"
"""What a select calls the one whose rows they are, where no column has this name."""


def ambiguity(name: str, modules: Sequence[str]) -> tuple[str, str]:
    """The message and the way out for a name that several modules have; an empty one stands for the language itself."""
    of_modules = [module for module in modules if module]
    homes = " and ".join(f"`{module}`" for module in of_modules)
    ways = " or ".join(f"`{module}.{name}`" for module in of_modules)
    if len(of_modules) < len(modules):
        help = f"write {ways}; `own = {name}` before the `use` gives the built-in one another name"
        return f"`{name}` is built in, and {homes} has one too", help
    return f"`{name}` is in {homes}", f"write {ways}"


def source_kind(node: n.Expr) -> str:
    """`table`, `counts`, `dataset` or `bound` for what is written as a source, and nothing for what is not."""
    if isinstance(node, n.Call) and isinstance(node.function, n.Name) and node.function.id in SOURCES:
        return node.function.id
    return ""


def lone_column(column: n.Name, keys: Sequence[n.GroupKey]) -> tuple[str, str]:
    """What to say of a bare column beside aggregates, by which the groups are not: a message and a way out."""
    message = f"`{column.id}` is no aggregate, and the groups are not by it"
    for key in keys:
        expr = key.value
        if isinstance(expr, n.Binary) and expr.op == "in" and expr.left == column:
            return message, f"`in` asks whether it is one of them; list keys by `groupby {column.id} over {{…}}`"
    names = [*(key.value.id for key in keys if isinstance(key.value, n.Name)), column.id]
    return message, f"add it to the keys: `groupby {', '.join(names)}`"


def is_smooth(node: n.Select) -> bool:
    via = node.spend.via if node.spend is not None else None
    return isinstance(via, n.Name) and via.id == SmoothLaplace.name


def joins_freely(joins: Sequence[n.Join], private: Sequence[bool]) -> bool:
    """Whether two private tables meet without a bound, of a table and those that it is joined with."""
    any_private, *others = private
    for joined, own in zip(joins, others, strict=True):
        if own and any_private and joined.up_to is None:
            return True
        any_private = any_private or own
    return False


def no_free_join(node: n.Select) -> Diagnostic:
    """Of a select whose joins have bounds, or that has none."""
    if any(joined.up_to is not None for joined in node.joins):
        help = "leave the `up to` of the join of two private tables out, or `via smooth`"
    else:
        help = "leave it out: here the noise is the same for all data"
    span = node.spend.span if node.spend is not None else node.span
    return Diagnostic("TypeError", "`via smooth` is for joins of private tables without `up to`", span, help=help)
