"""Nodes of queries, and the places of all nodes: what `builder` builds the rest of a tree on.

An Option as a class, `class DAWA(Option):` with a method `answer` and, if it values itself, `predict`, means `DAWA =
Option (data) { … } predict (F) { … }`. A parameter of `answer` that does not stand alone is a field of the data.
Of declarations: columns that a description says how to read, which become texts and a `derive`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar, cast

from lark import Token, Transformer, v_args

from jostle.diagnostics import refuse
from jostle.records import replace
from jostle.source import Source, Span
from jostle.syntax import nodes as n
from jostle.syntax.messages import entries
from jostle.syntax.walk import every, own_name, rebuilt

Children = Sequence[object]
E = TypeVar("E", bound=n.Expression)
inline: Any = v_args(inline=True)

_ON_KEYS = "every join says on what: write `join b on k`, or `left join b on k`"
_JOINS = dict.fromkeys(("natural", "cross", "asof", "positional", "lateral", "any", "all", "global"), _ON_KEYS) | {
    "anti": "write `from a where k not in (select k from b)`",
    "semi": "write `from a where k in (select k from b)`",
}
"""What stands before `join` in other dialects, where it would be read as a name of the table."""


class _Place(NamedTuple):
    """A column in a join, with the name of its table where the program gives it."""

    owner: str | None
    column: str
    span: Span


class _Places(NamedTuple):
    """The two columns that a join compares, or one that both sides have."""

    left: _Place
    sign: Token | None
    right: _Place | None


@inline
class QueryBuilder(Transformer):  # type: ignore[type-arg]
    """Builds the nodes of queries of one source at a time; set `source` before parsing."""

    source: Source = Source("", "")

    # Places ------------------------------------------------------------------------------------

    def _span(self, *children: object) -> Span:
        """From the first child that is there to the last."""
        first = last = None
        for child in children:
            if child is not None:
                first, last = child if first is None else first, child
        start = first if isinstance(first, Token) else cast("n.Node", first).span
        end = last if isinstance(last, Token) else cast("n.Node", last).span
        return Span(
            self.source, start.line or 1, start.column or 1,
            end.end_line or end.line or 1, end.end_column or end.column or 1,
        )  # fmt: skip

    def of_groups(self, *clauses: object) -> tuple[object, ...]:
        """Keys, limit, `having`, `order by` and `limit`, None where they are missing."""
        keys, limit, having, ranking, first = (None,) * (5 - len(clauses)) + clauses
        return keys, limit, having or (None,), ranking or (None,), first or (None,)

    def query(self, open: Token, tables: dict[str, n.Select] | None, body: n.Expr, close: Token) -> n.Query:
        return n.Query(with_tables(body, tables or {}), span=self._span(open, close))

    def tables(self, _with: Token, *tables: object) -> dict[str, n.Select]:
        """SQL's `with big as (select …), …`: a later one may read those before it."""
        named: dict[str, n.Select] = {}
        for name, select in only(tuple, tables):
            amounts = [node for node in every(select) if isinstance(node, n.Spend)]
            if amounts:
                help = f"measure it before, `{name} = {{{{ {select.span.text} }}}}`, and select from `{name}`"
                message = "a table that `with` names has no amount, for it may be read twice"
                raise refuse("SyntaxError", message, amounts[0].span, help=help)
            named[name] = with_tables(select, named)
        return named

    def table(self, name: Token, _as: Token, _open: Token, select: n.Select, _close: Token) -> tuple[str, n.Select]:
        return str(name), select

    def select(self, word: Token, *rest: Any) -> n.Select:
        columns, joins = only(n.Column, rest), only(n.Join, rest)
        (table,) = only(n.Expression, rest)[:1]
        at = list(map(id, rest)).index(id(table))
        alias, table = rest[at + 1], _rows_of(table)
        if joins and alias is not None and str(alias).lower() in _JOINS:
            message = f"there is no `{alias} join`: `{alias}` would be another name of the table before it"
            raise refuse("SyntaxError", message, self._span(alias), help=_JOINS[str(alias).lower()])
        where, per, of_groups, spend = rest[-4:]
        where, partners = _without_partners(where)
        keys, limit, (having, *a), (ranking, *b), (first, *c) = of_groups or (None, None, (None,), (None,), (None,))
        limit = self._one_limit([limit, *a, *b, *c])
        released = having or (ranking[-1] if ranking else None) or first
        if released is not None and (not keys or per is not None):
            message = "`having`, `order by` and `limit` are of groups that are released, and this select has none"
            help = "leave it out, since an answer without groups is one row; or add `groupby …` before it"
            if having is not None and not any(isinstance(node, n.Call) for node in every(having)):
                help = f"write `where {having.span.text}`, which is of rows"
            raise refuse("SyntaxError", message, released.span, help=help)
        ranking = tuple([_ranked(rank, columns) for rank in ranking]) if ranking else ()
        columns, keys = _without_keys(columns, keys or ())
        placed = [one for one in rest[: at + 1 + len(joins)] if not isinstance(one, tuple)]
        return n.Select(
            columns, table, joins + partners, where, keys, spend, per, limit,
            str(alias) if alias is not None else None, having, ranking, first,
            span=self._span(word, *placed, where, *(per or ())[-1:], *keys[-1:], limit, having, *ranking[-1:],
                            first, spend),
        )  # fmt: skip

    def _one_limit(self, limits: Sequence[n.Limit | None]) -> n.Limit | None:
        """What each person gives: it may stand after `order by` and `limit` too, but not twice."""
        there = list(filter(None, limits))
        if len(there) > 1:
            raise refuse("SyntaxError", "a select says once what each person gives", there[1].span)
        return next(iter(there), None)

    def column(self, value: n.Expr | Token, name: Token | None = None) -> n.Column:
        if isinstance(value, Token):
            return n.Column(n.Star(span=self._span(value)), None, span=self._span(value))
        return n.Column(value, str(name) if name is not None else None, span=self._span(value, name))

    def join(
        self, side: Token | None, outer: Token | None, word: Token, table: n.Expr, alias: Token | None,
        _on: Token, *rest: object,
    ) -> n.Join:  # fmt: skip
        kind = str(side).lower() if side is not None else "inner"
        if outer is not None and kind == "inner":
            span = self._span(side, word)
            raise refuse("SyntaxError", "an inner join keeps no rows without a partner", span, help="write `join`")
        name = str(alias) if alias is not None else None
        joined = name or (table.id if isinstance(table, n.Name) else None)
        places = [_Places(place, None, None) for place in only(_Place, rest)]  # SQL's `using (k)`
        on = tuple(self._match(match, joined) for match in (*only(_Places, rest), *places))
        most = next(iter(only(n.Expression, rest)), None)
        return n.Join(_rows_of(table), on, most, kind, name, span=self._span(side, word, table, *on, most))

    def place(self, first: Token, _dot: Token | None, second: Token | None) -> _Place:
        if second is None:
            return _Place(None, str(first), self._span(first))
        return _Place(str(first), str(second), self._span(first, second))

    def match(self, left: _Place, sign: Token | None, right: _Place | None) -> _Places:
        return _Places(left, sign, right)

    def _match(self, places: _Places, joined: str | None) -> n.Match:
        """Of `a.x = b.y` the side of the joined table is known by its name; of `x = y` it is the second."""
        left, sign, right = places
        if right is None:
            owner = None if left.owner == joined else left.owner
            return n.Match(left.column, left.column, owner, span=left.span)
        span = self._span(left, right)
        if sign is not None and str(sign) not in ("=", "=="):
            raise refuse("SyntaxError", f"a join is on columns that are equal, not `{sign}`", span, help="`on x = y`")
        if left.owner is not None and left.owner == joined != right.owner:
            left, right = right, left
        if right.owner not in (None, joined) or (left.owner is not None and left.owner == joined):
            raise refuse(
                "SyntaxError", "a join compares a column of the joined table with one of the tables before", span,
                help="write `from a join b on a.x = b.y`",
            )  # fmt: skip
        return n.Match(left.column, right.column, left.owner, span=span)

    def alias(self, word: Token | None, name: Token) -> Token:
        """Without `as`, a word of SQL is no name: `from a left join b` is no join of `a as left`."""
        entry = entries()["word"].get(name.lower()) if word is None else None
        if entry is not None:
            raise refuse("SyntaxError", entry["message"], self._span(name), help=entry["help"])
        return name

    def where(self, _where: Token, condition: n.Expr) -> n.Expr:
        return condition

    def having(self, _word: Token, value: n.Expr, limit: n.Limit | None) -> tuple[n.Expr, n.Limit | None]:
        """Also `limit`: what stands after the word, and what each person gives."""
        return value, limit

    first = having

    def ranking(self, *children: object) -> tuple[object, ...]:
        """The ranks, and what each person gives where that is said after them."""
        return only(n.Rank, children), *only(n.Limit, children)

    def rank(self, value: n.Expr, direction: Token | None) -> n.Rank:
        descending = direction is not None and direction.lower() == "desc"
        return n.Rank(value, descending, span=self._span(value, direction))

    def groupby(self, *children: object) -> tuple[n.GroupKey, ...]:
        return only(n.GroupKey, children)

    per = groupby

    def limit_groups(self, word: Token, groups: n.Expr, *more: object) -> n.Limit:
        return self._limit(word, groups, next(iter(only(n.Expression, more)), None), True, groups, *more)

    def limit_rows(self, word: Token, rows: n.Expr, *more: object) -> n.Limit:
        each = any(isinstance(child, Token) and child.type == "_EACH" for child in more)
        return self._limit(word, None, rows, each, rows, *more)

    def _limit(self, word: Token, groups: n.Expr | None, rows: n.Expr | None, each: bool, *children: object) -> n.Limit:
        value, descending = next(iter(only(tuple, children)), (None, False))
        ends = [child for child in children if not isinstance(child, tuple)]
        return n.Limit(groups, rows, each, value, descending, span=self._span(word, *ends, value))

    def order(self, _by: Token, value: n.Expr, direction: Token | None) -> tuple[n.Expr, bool]:
        return value, str(direction).lower() == "desc"

    def key(
        self, value: n.Expr, _as: Token | None, name: Token | None, _over: Token | None, over: n.Expr | None
    ) -> n.GroupKey:
        span, until = self._span(value, name, over), None
        running = isinstance(value, n.Call) and isinstance(value.function, n.Name) and value.function.id == RUNNING
        if running:
            value, until = _running(value)  # type: ignore[arg-type]
        return n.GroupKey(value, str(name) if name is not None else None, over, running, until, span=span)


def _running(call: n.Call) -> tuple[n.Expr, n.Expr | None]:
    """Of `running(day, until = today)` the key and the last of its values that is answered."""
    (value, *more), keywords = call.args or (None,), {word.name: word.value for word in call.keywords}
    if value is None or more or len(call.keywords) > 1 or keywords.keys() - {"until"}:
        help = "write `running(day)`, or `running(day, until = today)`"
        raise refuse("SyntaxError", "`running` takes a key, and how far it is answered", call.span, help=help)
    return value, keywords.get("until")


def _without_keys(
    columns: tuple[n.Column, ...], keys: tuple[n.GroupKey, ...]
) -> tuple[tuple[n.Column, ...], tuple[n.GroupKey, ...]]:
    """`select sex as s, count(*) … groupby sex`: a column that is a key stands in the result anyhow, and names it."""
    if not keys:
        return columns, keys
    keys = tuple(_at_place(key, columns) for key in keys)
    names: dict[int, str | None] = {}
    left = []
    for column in columns:
        at = next((i for i, key in enumerate(keys) if _is_key(column, key) and i not in names), None)
        if at is None:
            left.append(column)
        else:
            names[at] = column.name
    if not left:
        return columns, keys
    named_keys = (replace(key, name=key.name or names.get(i)) for i, key in enumerate(keys))
    return tuple(left), tuple(named_keys)


def _at_place(key: n.GroupKey, columns: tuple[n.Column, ...]) -> n.GroupKey:
    """SQL's `group by 1`: by the first column."""
    column = _column_at(key.value, columns)
    return key if column is None else replace(key, value=column.value, name=key.name or column.name)


def _column_at(place: n.Expr, columns: tuple[n.Column, ...]) -> n.Column | None:
    if not isinstance(place, n.Number):
        return None
    if not (place.value.is_integer() and 1 <= place.value <= len(columns)):
        raise refuse("SyntaxError", f"the select has {len(columns)} columns, and this is the place of none", place.span,
                     help="write what the groups are by, such as `group by age`")  # fmt: skip
    return columns[int(place.value) - 1]


def _ranked(rank: n.Rank, columns: tuple[n.Column, ...]) -> n.Rank:
    """SQL's `order by 2`: by the second column."""
    column = _column_at(rank.value, columns)
    if column is None:
        return rank
    name = column.name or own_name(column.value) or "value"
    return replace(rank, value=n.Name(name, span=rank.value.span))


def _is_key(column: n.Column, key: n.GroupKey) -> bool:
    by_name = isinstance(column.value, n.Name) and column.value.id == key.name
    return by_name or (column.value == key.value and (column.name is None or key.name in (None, column.name)))


_READS = {"date", "time", "number", "lower", "upper", "trim", "replace", "substring", "part"}
"""Functions of texts: a column that is described by one of itself is read by it."""


def read_columns(described: n.Expr) -> tuple[n.Expr, tuple[n.Keyword, ...]]:
    """A description in which columns that it says how to read, as in `day: date("%d.%m.%Y")` or
    `price: number(replace(price, ",", "."))`, are texts, and what `derive` makes of them."""
    readings = {}
    for name, value in described.items if isinstance(described, n.RecordOf) else ():
        if not isinstance(value, n.Call | n.Binary | n.Conditional):
            continue
        read = rebuilt(value, partial(_with_column, name))
        functions = [part.function for part in every(read) if isinstance(part, n.Call)]
        names = [part for part in every(read) if isinstance(part, n.Name) and not any(part is one for one in functions)]
        reads = any(isinstance(one, n.Name) and one.id in _READS for one in functions)
        if reads and name in [part.id for part in names]:
            readings[name] = n.Keyword(name, read, span=value.span)
    if not isinstance(described, n.RecordOf) or not readings:
        return described, ()
    for name in described.filled:
        if name in readings:
            message = f"`{name}` is read from texts, of which any may be unreadable"
            raise refuse("SyntaxError", message, readings[name].span, help="leave `never missing` out")
    texts = {name: n.Name("text", span=one.span) for name, one in readings.items()}
    items = tuple([(name, texts.get(name, value)) for name, value in described.items])
    return replace(described, items=items), tuple(readings.values())


def _with_column(name: str, node: n.Node) -> n.Node:
    """`date("%d.%m.%Y")` of a column's description, of the column."""
    match node:
        case n.Call(n.Name("date" | "time"), (n.String(value=form) as written,), ()) if "%" in form:
            return replace(node, args=(n.Name(name, span=written.span), written))
    return node


def domain_read(read: n.Expr) -> tuple[n.Expr, str]:
    """The domain of what a column is read as, and the format that it is read by; of other readings text, and none."""
    match read:
        case n.Call(n.Name("date" | "time") as kind, (n.Name(), n.String(value=form)), ()):
            return kind, form
        case n.Call(n.Name("clamp"), (inner, low, high), ()) if form := domain_read(inner)[1]:
            return n.Range(low, high, span=read.span), form
    return n.Name("text", span=read.span), ""


def one_declaration(tree: n.Program, formats: bool) -> tuple[n.Private, tuple[tuple[str, str], ...]]:
    """The declaration that a text is, and with `formats` the columns that are read by one, with the domain of what they
    are read as. Refused where it says anything else."""
    match tree.body:
        case [n.Private() as node]:
            return node, ()
        case [n.Private(described=n.RecordOf() as texts) as node, n.Assign(name=name, value=n.Call(keywords=readings))]:
            if name == node.name:
                read = {column.name: domain_read(column.value) for column in readings}
                for column in readings:
                    if not formats or not read[column.name][1]:
                        message = f"`{column.name}` is described by how it is read, which a program alone may do"
                        help = f"write `{column.name}: text`; a program reads it by `derive`"
                        raise refuse("SyntaxError", message, column.span, help=help)
                items = tuple([(name, read[name][0] if name in read else of) for name, of in texts.items])
                forms = tuple([(name, form) for name, (_, form) in read.items()])
                return replace(node, described=replace(texts, items=items)), forms
    raise refuse("SyntaxError", "a dataset is described by one clause of each kind, and nothing else")


def derived(table: n.Expr, readings: tuple[n.Keyword, ...]) -> n.Expr:
    """A table with the columns that its description says how to read."""
    return n.Call(n.Name("derive", span=table.span), (table,), readings, span=table.span) if readings else table


def with_readings(statement: n.Stmt) -> tuple[n.Stmt, ...]:
    """A statement; after a declaration that says how to read columns, the one that does."""
    if not isinstance(statement, n.Private) or statement.described is None:
        return (statement,)
    texts, readings = read_columns(statement.described)
    if not readings:
        return (statement,)
    table = derived(n.Name(statement.name, span=statement.span), readings)
    return replace(statement, described=texts), n.Assign(statement.name, table, span=statement.span)


def only(kind: type[object], children: Children) -> tuple[Any, ...]:
    return tuple([child for child in children if isinstance(child, kind)])


def with_tables(tree: E, tables: Mapping[str, n.Select]) -> E:
    """A tree in which these names, after `from` and `join`, are what they stand for, and are still called so."""

    def meant(node: n.Node) -> n.Node:
        if not isinstance(node, n.Select | n.Join) or not isinstance(node.table, n.Name) or node.table.id not in tables:
            return node
        name = node.table.id
        return replace(node, table=_rows_of(tables[name]), alias=node.alias or name)

    return rebuilt(tree, meant) if tables else tree


def _rows_of(table: n.Expr) -> n.Expr:
    """What stands after `from` or `join`: a select that says no amount gives rows, one for each of its keys, as `per`
    does; without keys, those that it reads."""
    if not isinstance(table, n.Select) or table.spend is not None:
        return table
    if table.ranking or table.first is not None:
        raise refuse(
            "SyntaxError", "the rows of a table have no order", table.span,
            help="`up to 1 row by date desc` reads one of each person; `order by` and `limit` are of what is released",
        )  # fmt: skip
    return replace(table, per=(*(table.per or ()), *table.keys), keys=())


IN_LIST = "`where` takes `k in (select k from u)`, alone or beside `and`; of a public u, `k in [row.k for row in u]`"


def _without_partners(where: n.Expr | None) -> tuple[n.Expr | None, tuple[n.Join, ...]]:
    """A condition without `k in (select k from u)`, alone or beside `and`, and the joins with a row for each `k` of `u`
    that this means. Of `not in` the rows stay that have a `k`, and no partner."""
    if where is None:
        return None, ()
    conditions: list[n.Expr] = []
    joins: list[n.Join] = []
    parts: tuple[n.Expr, ...] = where.operands if isinstance(where, n.Logic) and where.op == "and" else (where,)
    for part in parts:
        match part:
            case n.Binary(left=n.Name(id=column) as left, op="in" | "not in", right=n.Select(spend=None) as select):
                table = left
            case n.Binary(left=n.Attribute(value=n.Name() as table, name=column), op="in" | "not in",
                          right=n.Select(spend=None) as select):  # fmt: skip
                pass
            case _:
                conditions.append(part)
                continue
        number = f"in`{select.span.line}.{select.span.column}"  # a name that no program can write
        owner = table.id if table is not part.left else None
        joins.append(_partners(n.Match(column, f"{number} key", owner, span=part.span), select, number))
        if part.op == "not in":
            none = n.Constant(None, span=part.span)
            conditions.append(n.Binary("!=", part.left, none, span=part.span))
            conditions.append(n.Binary("==", n.Name(number, span=part.span), none, span=part.span))
            joins[-1] = replace(joins[-1], kind="left")
    rest = n.Logic("and", tuple(conditions), span=where.span) if len(conditions) > 1 else next(iter(conditions), None)
    return rest, tuple(joins)


def _partners(match: n.Match, select: n.Select, number: str) -> n.Join:
    """The join with the values that a select gives, each once with the `number` of its rows."""
    span, key = select.span, _looked_up(select)
    count = n.Call(n.Name("count", span=span), (n.Star(span=span),), span=span)
    keys = (n.GroupKey(key, match.theirs, None, span=key.span),)
    rows = replace(select, columns=(n.Column(count, number, span=span),), per=keys, keys=())
    return n.Join(rows, (match,), None, "inner", f"partners{number}", span=match.span)


def _looked_up(select: n.Select) -> n.Name:
    """The column whose values a select gives: `select k`, `select distinct k`, `select k … groupby k having …`."""
    match select:
        case n.Select(columns=[n.Column(value=n.Name() as key, name=name)], keys=keys, per=None) if (
            all(one.value == key for one in keys)
        ):  # fmt: skip
            return replace(key, id=name) if name is not None and key.id.lower() == "distinct" else key
    help = "write `k in (select k from u where …)`"
    raise refuse("SyntaxError", "what a value is looked up in is one column", select.span, help=help)


RUNNING = "running"  # what a key is called with whose groups hold all rows up to it
_METHODS = {"answer": "runs", "predict": "values the Option from its features"}
_FIELDS = {"db": "database"}
_DATA = "data"


def option_of_class(name: str, kind: str, body: n.Block, span: Span) -> n.Assign:
    """The assignment that the class stands for."""
    if kind != "Option":
        help = f"write `{name} = {kind} (data) {{ … }}`"
        raise refuse("SyntaxError", f"only an Option is written as a class, not a {kind}", span, help=help)
    methods: dict[str, n.Def] = {}
    for statement in body.body:
        if not isinstance(statement, n.Def) or statement.name not in _METHODS:
            help = "write `def answer(db, queries): …`, and `def predict(F): …` where it values itself"
            raise refuse("SyntaxError", "a class of an Option has the methods `answer` and `predict`",
                         statement.span, help=help)  # fmt: skip
        if statement.name in methods:
            message = f"the method `{statement.name}` is written twice"
            raise refuse("SyntaxError", message, statement.span, help="keep one of them")
        methods[statement.name] = statement
    answer, predict = methods.get("answer"), methods.get("predict")
    if answer is None:
        raise refuse("SyntaxError", f"`{name}` has no method `answer`", span, help="add `def answer(db, queries): …`")
    params, steps = _parameters(answer)
    block = n.Block((*steps, *answer.body.body), span=answer.body.span)
    part = n.Part(
        kind, params, block, predict.params if predict else None, predict.body if predict else None, span=span
    )
    return n.Assign(name, part, span=span)


def _parameters(answer: n.Def) -> tuple[tuple[n.Param, ...], tuple[n.Assign, ...]]:
    """The Option's one parameter, and the statements that give fields of the data the names of the method's."""
    if len(answer.params) == 1 and answer.params[0].name not in _FIELDS:
        return answer.params, ()
    at = answer.span
    steps = []
    for param in answer.params:
        if param.name == _DATA:
            help = "call it after a field of the data, such as `queries`"
            raise refuse("SyntaxError", f"`{_DATA}` stands alone, or not at all", param.span, help=help)
        data = n.Name(_DATA, span=param.span)
        field = n.Attribute(data, _FIELDS.get(param.name, param.name), span=param.span)
        steps.append(n.Assign(param.name, field, span=param.span))
    return (n.Param(_DATA, None, span=at),), tuple(steps)
