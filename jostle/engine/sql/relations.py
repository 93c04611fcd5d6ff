"""Plans as SQL: relations, grouped integer aggregates, tallies, and exact aggregates of public relations.

SQL is generated here and in `rows` only. A relation is a SELECT with generated column names; names of users never
appear. Nothing is read here: the engine provides the SQL of a scan and runs the result.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter

from msgspec import Struct

from jostle.diagnostics import refuse
from jostle.engine.sql import persons
from jostle.engine.sql.dialect import PLACES, Dialect, subquery
from jostle.engine.sql.rows import Physical, RowSql, aggregate, check_number, counted, fixed_term, key_test, key_value
from jostle.plan import plan as p
from jostle.plan.kinds import Schema, domain_kind, kind_of
from jostle.plan.schemas import check_plan_depth, derived_domain, group_rows_schema, join_schema, united_schema
from jostle.records import replace


class Relation(Struct, frozen=True):
    """A SELECT with its columns by their names in the plan, their schema, and a bound on its rows.

    `weighted`: it also has a column `w`, the weights of its rows; `numbered`: a column `n`, unique row numbers that are
    the same in every query; `personal`: a column `p`, a text that identifies the person of a row.
    """

    sql: str
    columns: dict[str, Physical]
    schema: Schema
    most_rows: int
    dialect: Dialect
    weighted: bool = False
    numbered: bool = False
    personal: bool = False

    def rows(self) -> RowSql:
        """The emitter of expressions on its columns."""
        emitter = self.dialect.emitter or RowSql
        rows: RowSql = emitter(self.columns, self.schema, self.dialect)
        return rows


Base = Callable[[p.Scan | p.Bound], Relation]
_ALIAS = attrgetter("alias")
_KeyColumns = tuple[list[str], list[str], dict[str, str]]


def relation(plan: p.Plan, base: Base, dialect: Dialect, depth: int = 0) -> Relation:
    check_plan_depth(depth)
    if isinstance(plan, p.Scan | p.Bound):
        return base(plan)
    if isinstance(plan, p.Filter):
        return _filter(plan, base, dialect, depth)
    if isinstance(plan, p.Listed):
        return _literal_rows(plan, dialect)
    if isinstance(plan, p.Derive | p.Truncate | p.GroupRows | p.Known):
        inner = relation(plan.source, base, dialect, depth + 1)
        if isinstance(plan, p.Known):
            return replace(inner, schema=dict(plan.columns))
        if isinstance(plan, p.Derive):
            return _derive(plan, inner)
        return _truncate(plan, inner) if isinstance(plan, p.Truncate) else _group_rows(plan, inner)
    if isinstance(plan, p.Union):
        united = dialect.united(plan, base, dialect, depth) if dialect.united is not None else None
        sides = (relation(source, base, dialect, depth + 1) for source in plan.sources)
        return rows_of_all(list(sides)) if united is None else united
    return _join(plan, relation(plan.left, base, dialect, depth + 1), relation(plan.right, base, dialect, depth + 1))


def _literal_rows(plan: p.Listed, dialect: Dialect) -> Relation:
    """Rows as literals, numbered in their order."""
    kinds = [domain_kind(domain) for _, domain in plan.columns]
    names = [f"c{i}" for i in range(len(kinds))]
    rows = [
        ", ".join([*(dialect.constant(cell, kind) for cell, kind in zip(row, kinds, strict=True)), f"{n}"])
        for n, row in enumerate(plan.rows or ((None,) * len(kinds),))
    ]  # fmt: skip
    sql = f"SELECT * FROM (VALUES ({'), ('.join(rows)})) AS v({', '.join([*names, 'n'])})"
    columns = {name: Physical(f"c{i}") for i, (name, _) in enumerate(plan.columns)}
    sql += "" if plan.rows else " WHERE FALSE"
    return Relation(sql, columns, dict(plan.columns), len(plan.rows), dialect, numbered=True)


def _filter(plan: p.Filter, base: Base, dialect: Dialect, depth: int) -> Relation:
    conditions: list[p.RowExpr] = []
    source: p.Plan = plan
    while isinstance(source, p.Filter):
        conditions.append(source.condition)
        source = source.source
    inner = relation(source, base, dialect, depth + 1)
    rows = inner.rows()
    tests = [rows.condition(one) for one in reversed(conditions)]
    names = ", ".join([*map(_ALIAS, inner.columns.values()), *_raws(inner.columns), *_hidden(inner)])
    sql = f"SELECT {names or '1 AS unused'} FROM {subquery(rows.over(inner.sql))} WHERE {' AND '.join(tests)}"
    return replace(inner, sql=sql)


def _hidden(relation: Relation) -> list[str]:
    return [*_carried(relation), *(["n"] if relation.numbered else [])]


def _raws(columns: dict[str, Physical]) -> list[str]:
    """The raw cells of columns, if the relation has them."""
    return sorted({physical.raw.alias for physical in columns.values() if physical.raw is not None})


def _without_raws(columns: dict[str, Physical]) -> dict[str, Physical]:
    return {name: replace(physical, raw=None) for name, physical in columns.items()}


def _carried(relation: Relation, of: str = "") -> list[str]:
    """The hidden columns that a join keeps."""
    return [f"{of}w"] * relation.weighted + [f"{of}p"] * relation.personal


def _derive(plan: p.Derive, inner: Relation) -> Relation:
    rows, schema, columns, items = inner.rows(), {}, {}, []
    for i, (name, expr) in enumerate(plan.columns):
        alias = rows.whole_column(expr)
        schema[name] = derived_domain(expr, inner.schema, inner.dialect.facts)
        column = inner.columns[expr.name] if isinstance(expr, p.Column) else Physical("")
        columns[name] = replace(column, alias=f"c{i}", whole=alias is not None)
        items.append(f"{alias or rows.value(expr)} AS c{i}")
    items += [*_raws(columns), *_hidden(inner)]
    sql = f"SELECT {', '.join(items) or '1 AS unused'} FROM {subquery(rows.over(inner.sql))}"
    return replace(inner, sql=sql, columns=columns, schema=schema)


def _join(plan: p.Join, left: Relation, right: Relation) -> Relation:
    schema = join_schema(plan, left.schema, right.schema, left.dialect.facts)
    outer, weighted = (plan.kind in ("left", "full"), plan.kind in ("right", "full")), left.weighted or right.weighted
    if (left.weighted and right.weighted) or (plan.most is not None and weighted):
        raise refuse("TypeError", "rows that have weights are joined with one public table at a time")
    if (outer[0] and right.weighted) or (outer[1] and left.weighted):
        raise refuse("TypeError", "a row that has no partner has no weight")
    if plan.most is not None:
        left = _few(left, plan.on, plan.most, whole=outer[0])
        right = _few(right, tuple(theirs for _, theirs in plan.keys), plan.most, whole=outer[1])
    columns, items = _paired(plan, left, right, schema)
    tests = [f"a.{left.columns[name].alias} = b.{right.columns[theirs].alias}" for name, theirs in plan.keys]
    tests += ["a.p = b.p"] * plan.person
    if left.personal and right.personal:  # only a join of own rows has known persons
        left, right = replace(left, personal=plan.person), replace(right, personal=False)
    left = replace(left, personal=left.personal and not outer[1])
    right = replace(right, personal=right.personal and not outer[0])
    items += _carried(left, "a.") + _carried(right, "b.")
    word = {"inner": "JOIN", "left": "LEFT JOIN", "right": "RIGHT JOIN", "full": "FULL JOIN"}[plan.kind]
    sql = f"SELECT {', '.join(items)} FROM ({left.sql}) a {word} ({right.sql}) b ON {' AND '.join(tests)}"
    most = left.most_rows * right.most_rows + outer[0] * left.most_rows + outer[1] * right.most_rows
    return Relation(sql, columns, schema, most, left.dialect, weighted, personal=left.personal or right.personal)


def _paired(plan: p.Join, left: Relation, right: Relation, schema: Schema) -> tuple[dict[str, Physical], list[str]]:
    """The columns of a join, each from the first side that has it, and their SQL."""
    shared = {name for name, theirs in plan.keys if name == theirs and plan.kind in ("right", "full")}
    columns, items = {}, []
    for i, name in enumerate(schema):
        sides = [(of, side.columns[name]) for of, side in (("a", left), ("b", right)) if name in side.columns]
        sides = sides if name in shared else sides[:1]
        whole = all(physical.whole for _, physical in sides)
        values = [
            f"{of}.{one.alias}" if one.whole == whole else left.dialect.as_double(f"{of}.{one.alias}")
            for of, one in sides
        ]
        columns[name] = Physical(f"c{i}", whole)
        items.append(f"{values[0] if len(values) == 1 else f'coalesce({values[0]}, {values[1]})'} AS c{i}")
    return columns, items


def _truncate(plan: p.Truncate, inner: Relation) -> Relation:
    if inner.weighted or not inner.personal:
        raise refuse("TypeError", "these rows are of no persons, or have weights")
    sql = persons.truncated(plan, inner.rows(), inner.sql, _hidden(inner))
    return replace(inner, sql=sql, columns=_without_raws(inner.columns))


def _group_rows(plan: p.GroupRows, inner: Relation) -> Relation:
    if inner.weighted or (plan.person and not inner.personal):
        raise refuse("TypeError", "these rows are of no persons, or have weights")
    sql, whole = persons.grouped(plan, inner.rows(), inner.sql, inner.most_rows)
    columns = {name: Physical(f"c{i}", whole[i]) for i, (name, _) in enumerate((*plan.keys, *plan.terms))}
    schema = group_rows_schema(plan, inner.schema, inner.dialect.facts)
    return Relation(sql, columns, schema, inner.most_rows, inner.dialect, personal=plan.person)


def rows_of_all(sides: list[Relation]) -> Relation:
    """The union of relations. If some have weights, rows without one have weight 1."""
    schema = united_schema([side.schema for side in sides], sides[0].dialect.facts)
    weighted, personal = any(side.weighted for side in sides), all(side.personal for side in sides)
    whole = {name: all(side.columns[name].whole for side in sides) for name in schema}
    parts = []
    for side in sides:
        items = []
        for i, name in enumerate(schema):
            physical = side.columns[name]
            double = physical.whole and not whole[name]
            items.append(f"{side.dialect.as_double(physical.alias) if double else physical.alias} AS c{i}")
        if weighted and not side.weighted:
            items.append(f"{2**p.WEIGHT_BITS} AS w")
        items += _carried(replace(side, personal=personal))
        parts.append(f"SELECT {', '.join(items) or '1 AS unused'} FROM {subquery(side.sql)}")
    columns = {name: Physical(f"c{i}", whole[name]) for i, name in enumerate(schema)}
    most = sum(side.most_rows for side in sides)
    return Relation(" UNION ALL ".join(parts), columns, schema, most, sides[0].dialect, weighted, personal=personal)


def _few(side: Relation, on: tuple[str, ...], most: int, *, whole: bool) -> Relation:
    """At most `most` rows per key, by the hash of all columns of the side; rows that tie are equal in all of them.

    With `whole` also all rows without a key.
    """
    aliases = [physical.alias for physical in side.columns.values()]
    keys = [side.columns[name].alias for name in on]
    doubles = [not side.columns[name].whole and domain_kind(side.schema[name]) == "number" for name in on]
    pairs = zip(keys, doubles, strict=True)  # −0 equals 0
    groups = [side.dialect.unsigned.format(key) if double else key for key, double in pairs]
    cells = persons.cells_of(side.rows())
    sql = persons.rows_per_key(", ".join(aliases), side.sql, groups, cells, most, dialect=side.dialect)
    if whole:
        without = " OR ".join(f"{key} IS NULL" for key in keys)
        sql = f"{sql} UNION ALL SELECT {', '.join(aliases)} FROM {subquery(side.sql)} WHERE {without}"
    return replace(side, sql=sql, columns=_without_raws(side.columns), weighted=False, numbered=False, personal=False)


# Groups --------------------------------------------------------------------------------------------


class Grouped(Struct, frozen=True):
    """A query for groups: key columns, then one column per term. `as_text[i]`: term i is a text and not a BIGINT."""

    sql: str
    as_text: tuple[bool, ...]


def group(source: Relation, keys: tuple[p.Key, ...], terms: tuple[p.Term, ...]) -> Grouped:
    rows, d = source.rows(), source.dialect
    parts = addends(source, rows, terms)
    values = [f"{one.value} AS v{i}" for i, one in enumerate(parts) if one.value]
    outer = [f"{one.total(d, f'v{i}') if one.part[:3] == 'sum' else one.part} AS a{i}" for i, one in enumerate(parts)]
    names = [f"k{i}" for i in range(len(keys))] if keys else []
    items, tests, inside = _key_columns(source, rows, names, keys) if keys else ([], [], {})
    query, items = rows.over(source.sql), [*items, *values]
    distinct = d.fence and any(isinstance(term, p.Count) and term.distinct for term in terms)  # sorted separately
    if inside or distinct:  # a WHERE would compute a key again: other rows are in a group of NULL instead
        query = f"SELECT {', '.join(items)} FROM {subquery(query)}{d.fence}"
        outputs = [*names, *(f"v{i}" for i, one in enumerate(parts) if one.value)]
        items = [inside.get(name, name) for name in outputs]
    return Grouped(aggregate(names, outer, items, tests, query), tuple([one.wide for one in parts]))


def _key_columns(source: Relation, rows: RowSql, names: list[str], keys: tuple[p.Key, ...]) -> _KeyColumns:
    """The columns of keys, conditions for a WHERE, and keys that are tested later."""
    items, tests, inside = [], [], {}
    for name, key in zip(names, keys, strict=True):
        items.append(f"{key_value(rows, key, source.schema)} AS {name}")
        test = key_test(rows, name, key, source.schema)
        if test and _calculated(source, key):
            inside[name] = f"CASE WHEN {test} THEN {name} END AS {name}"
        elif test:
            tests.append(test)
    return items, tests, inside


def _calculated(source: Relation, key: p.Key) -> bool:
    """Whether a key is computed from other columns, possibly in several steps. A database that tests it while reading
    expands all of them, as often as each is used in the next."""
    return not isinstance(key.expr, p.Column) or source.columns[key.expr.name].raw is None


class Addend(Struct, frozen=True):
    """A term in SQL: the value of a row, empty if none is needed; the aggregate of the named values; whether the sum
    may exceed 64 bits; and the power of two that makes the sum an integer."""

    value: str
    part: str
    wide: bool = False
    unit: float = 1.0

    def total(self, dialect: Dialect, column: str) -> str:
        """The sum of a column of values, or of partial aggregates."""
        if self.wide:
            return dialect.total.format(column)
        unit = f" * {dialect.number(self.unit)}" if self.unit != 1 else ""
        return f"CAST(coalesce(sum({column}), 0){unit} AS BIGINT)"


def addends(source: Relation, rows: RowSql, terms: tuple[p.Term, ...]) -> list[Addend]:
    """The terms in SQL. The value of term i is named `v<i>`."""
    summed = rows.counted_by(terms)
    return [_term(source, rows, term, f"v{i}", summed) for i, term in enumerate(terms)]


def _term(source: Relation, rows: RowSql, term: p.Term, name: str, summed: dict[str, int]) -> Addend:
    if term.weighted and not source.weighted:
        raise refuse("TypeError", "these rows have no weights")
    if isinstance(term, p.FixedSum):
        value, largest, unit = fixed_term(rows, term, source.schema, source.most_rows)
        return Addend(value, f"sum({name})", largest * source.most_rows >= 2**63, unit)
    if term.weighted:
        value, wide = _weight_where(rows, term, source.schema), source.most_rows >= 2 ** (63 - p.WEIGHT_BITS)
        return Addend(value, f"sum({name})", wide)
    if isinstance(term.expr, p.Column) and term.expr.name in summed and not term.distinct:
        return Addend("", f"count(v{summed[term.expr.name]})")
    return Addend(*counted(rows, term, name))


def codes(source: Relation, keys: tuple[p.Key, ...]) -> str:
    """One column per key with the index of each row's value, from 0, −1 if it is none or not listed.

    Row numbers come first, if there are any.
    """
    rows = source.rows()
    whole = "INTEGER" if source.most_rows < 2**31 else "BIGINT"
    items, lists = [f"CAST(n AS {whole}) AS n"] if source.numbered else [], ""
    for i, key in enumerate(keys):
        value, size = key_value(rows, key, source.schema), len(key.values)
        if isinstance(key.values, range):
            first, last = (key.values[0], key.values[-1]) if key.values else (0, -1)
            place = f"CASE WHEN {value} BETWEEN {first} AND {last} THEN CAST({value} AS BIGINT) - ({first}) END"
        else:
            kind = kind_of(key.expr, source.schema)
            places = {v: at for at, v in reversed([*enumerate(key.values)])}  # the first index of a duplicate
            constants = ", ".join(source.dialect.constant(v, kind) for v in key.values)
            place = f"nullif({source.dialect.place.format(value, constants)}, 0) - 1" if constants else "NULL"
            if len(places) > PLACES:
                table = ", ".join(f"({source.dialect.constant(v, kind)}, {at})" for v, at in places.items())
                lists += f" LEFT JOIN (VALUES {table}) AS l{i}(v, place) ON {value} = l{i}.v"
                place = f"l{i}.place"
        whole = source.dialect.tiny if size < 2**7 else "SMALLINT" if size < 2**15 else "INTEGER"
        items.append(f"CAST(coalesce({place}, -1) AS {whole}) AS k{i}")
    return f"SELECT {', '.join(items)} FROM {subquery(rows.over(source.sql))}{lists}"


def _weight_where(rows: RowSql, term: p.Count, schema: Schema) -> str:
    """The weight of a counted row."""
    if term.distinct:
        raise refuse("TypeError", "different values have no weights")
    return "w" if term.expr is None else f"CASE WHEN {rows.value(term.expr)} IS NOT NULL THEN w END"


def vectors(source: Relation, exprs: tuple[p.RowExpr, ...]) -> str:
    """One column of doubles per expression, without rows with a missing value."""
    rows = source.rows()
    for expr in exprs:
        check_number("a vector", expr, source.schema)
    inner = [f"{rows.value(expr)} AS v{i}" for i, expr in enumerate(exprs)]
    tests = " AND ".join(f"v{i} IS NOT NULL" for i in range(len(exprs)))
    values = subquery(f"SELECT {', '.join(inner)} FROM {subquery(rows.over(source.sql))}")
    return f"SELECT * FROM {values} WHERE {tests}"


def tuples(source: Relation, exprs: tuple[p.RowExpr, ...]) -> str:
    """The distinct combinations of values, also missing ones, and their numbers of rows, in order."""
    rows = source.rows()
    names = [f"v{i}" for i in range(len(exprs))]
    inner = [f"{rows.value(expr)} AS {name}" for expr, name in zip(exprs, names, strict=True)]
    counted = aggregate(names, ["count(*) AS n"], inner, [], rows.over(source.sql))
    return f"{counted} ORDER BY {', '.join(names)}"


def tally(source: Relation, expr: p.RowExpr) -> str:
    """The distinct values, without missing ones, in order, and their numbers of rows."""
    rows = source.rows()
    inner = f"SELECT {rows.value(expr)} AS v FROM {subquery(rows.over(source.sql))}"
    return f"SELECT v, count(v) AS n FROM {subquery(inner)} GROUP BY v ORDER BY v"
