"""The engine of a session on PostgreSQL: plans run on the server, and whole numbers come back.

Nothing is written there, not even a temporary table, so that a user who may only read can use it. Whatever a plan asks
is one statement, in one state of the tables (`connection`): rows of persons are bounded in the statement that asks for
them, and a public table of this process stands in it as constants.

Tables of a PostgreSQL database as a program names them: which one is meant, what it is known by, what it holds.

Only tables that the server stores are read. A view or a foreign table may run anything on a row, and a policy of row
level security too. A materialized view is a copy of rows whose budget is another one's. A partitioned table and its
parts, a table and those that inherit from it, are known by one another. All that is asked here is in the catalog.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

from jostle.backends.postgres.connection import Connection
from jostle.backends.postgres.dialect import POSTGRES, bare
from jostle.backends.remote import RemoteData
from jostle.backends.server import ServerEngine, Stored
from jostle.diagnostics import Refusal, did_you_mean, refuse
from jostle.engine.base import Capabilities
from jostle.engine.sql.cells import NONE
from jostle.engine.sql.dialect import subquery
from jostle.language.operations import LONGEST
from jostle.lazy import Array, np, pa
from jostle.plan.plan import Bound, Scan

MOST_ROWS = 2**47  # of a table: a server's tables are smaller

_MEANT = """SELECT c.oid::bigint, n.nspname, c.relname, c.relkind::text, row_security_active(c.oid), c.relhassubclass
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname || '.' || c.relname = %s AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
AND n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\\_%%'"""
_NAMES = """SELECT n.nspname || '.' || c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND n.nspname <> 'information_schema'
AND n.nspname NOT LIKE 'pg\\_%' AND has_any_column_privilege(c.oid, 'SELECT') ORDER BY 1 LIMIT 1000"""
_NAMED = """SELECT n.nspname || '.' || c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.oid = %s AND c.relkind IN ('r', 'p')"""
_KIN = """WITH RECURSIVE
up AS (SELECT %s::oid AS id UNION SELECT i.inhparent FROM pg_inherits i JOIN up ON inhrelid = id),
down AS (SELECT id FROM up UNION SELECT i.inhrelid FROM pg_inherits i JOIN down ON inhparent = id)
SELECT c.oid::bigint, c.relkind::text, n.nspname, c.relname
FROM pg_class c JOIN down ON id = c.oid JOIN pg_namespace n ON n.oid = c.relnamespace"""
_COLUMNS = """WITH RECURSIVE of AS (
SELECT attnum, attname, atttypid AS type, attgenerated = 'v' AS made FROM pg_attribute
WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped AND has_column_privilege(attrelid, attnum, 'SELECT')
UNION ALL SELECT attnum, attname, typbasetype, made FROM of JOIN pg_type ON oid = type WHERE typtype = 'd')
SELECT attname, CASE WHEN typtype = 'e' THEN 'enum' WHEN typnamespace = 'pg_catalog'::regnamespace
OR (typtype = 'b' AND typname = 'citext') THEN typname END, made, format_type(t.oid, NULL), attnum
FROM of JOIN pg_type t ON t.oid = type WHERE typtype <> 'd'
ORDER BY attnum"""
"""Types that users make may have any name, also of one that is read: of theirs only enums are."""
_DEFINED = """SELECT a.attname, CASE typtype WHEN 'e' THEN 'ENUM(' || (SELECT string_agg(quote_literal(enumlabel), ', '
ORDER BY enumsortorder) FROM pg_enum WHERE enumtypid = t.oid) || ')' WHEN 'd' THEN format_type(typbasetype, typtypmod)
ELSE format_type(t.oid, atttypmod) END, col_description(attrelid, attnum) FROM pg_attribute a JOIN pg_type t
ON t.oid = atttypid WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped
AND has_column_privilege(attrelid, attnum, 'SELECT') ORDER BY attnum"""
_CHECKS = """SELECT pg_get_constraintdef(oid) FROM pg_constraint
WHERE conrelid = %s AND contype = 'c' AND convalidated ORDER BY conname"""
_KINDS = {"v": "a view", "m": "a materialized view", "f": "a foreign table"}
_MICROS = "CAST(extract(epoch FROM {0}) * 1000000 AS BIGINT)"
_STAMP = "CASE WHEN {0} BETWEEN '0001-01-01' AND '9999-12-31 23:59:59.999999' THEN " + _MICROS + " END"
_SHORT = (  # whether a text is no longer than texts are; of what is stored apart the size is known without reading it
    f"CASE WHEN octet_length({{0}}) <= {LONGEST} THEN TRUE "
    f"WHEN octet_length({{0}}) <= {4 * LONGEST} THEN length({{0}}) <= {LONGEST} END"
)
_TEXT = (
    f"CASE WHEN octet_length(CAST({{0}} AS TEXT)) <= {LONGEST} THEN CAST({{0}} AS TEXT) "
    f"WHEN {_SHORT.format('CAST({0} AS TEXT)')} THEN CAST({{0}} AS TEXT) END"
)
_NUMERIC = f"CASE WHEN abs({{0}}) < 1e1000 OR {_SHORT.format('CAST({0} AS TEXT)')} THEN CAST({{0}} AS TEXT) END"
_READ = {
    "bool": ("BOOLEAN", "{0}"), "int2": ("SMALLINT", "{0}"), "int4": ("INTEGER", "{0}"), "int8": ("BIGINT", "{0}"),
    "float4": ("FLOAT", "{0}"), "float8": ("DOUBLE", "{0}"),
    "numeric": ("VARCHAR", _NUMERIC.replace("{0}", "trim_scale({0})")),
    **dict.fromkeys(("text", "varchar", "bpchar", "name", "citext", "uuid"), ("VARCHAR", _TEXT)),
    "enum": ("VARCHAR", "nullif(concat({0}), '')"),  # as the server writes it: a cast may be a function of the owner's
    "date": ("DATE", "{0}"), "time": ("TIME us", _MICROS),
    "timestamp": ("TIMESTAMP us", _STAMP), "timestamptz": ("TIMESTAMP us UTC", _STAMP),
}  # fmt: skip
_DECIMAL = (  # a cast raises beyond the doubles, and of what is nearer to 0 than to the smallest
    "CASE WHEN abs({0}) <= 2.4703282292062328e-324 THEN 0 WHEN abs({0}) < 1.7976931348623158e308 "
    "THEN CAST({0} AS float8) END"
)


def _cells(
    columns: list[tuple[str, str, str]],
) -> tuple[list[str], list[tuple[str, str]], dict[str, tuple[str, str]], list[tuple[str, str]]]:
    """Of columns by name and type: what is asked for, the cells' names and kinds, decimals, and what is not read."""
    items: list[str] = []
    cells: list[tuple[str, str]] = []
    numbers: dict[str, tuple[str, str]] = {}
    unread: list[tuple[str, str]] = []
    for i, (column, type_name, full_type) in enumerate(columns):
        if type_name not in _READ:
            unread.append((column, full_type))
        kind, value = _READ.get(type_name, (NONE, "NULL::text"))
        collated = ' COLLATE "C"' if kind == "VARCHAR" else ""
        items.append(f"{value.format(_quoted(column))}{collated} AS r{i}")
        cells.append((f"r{i}", kind))
        if type_name == "numeric":
            items.append(f"{_DECIMAL.format(_quoted(column))} AS n{i}")
            numbers[column] = f"n{i}", "DOUBLE"
    return items, cells, numbers, unread


def stored_table(connection: Connection, name: str) -> tuple[Stored, Hashable]:
    """The table that a program calls `name`, `schema.table`, or of the schema `public`, and what it is known by.

    Its cells have names of ours, `r0`, …, and where they are decimals also `n0`, …: a user may be let read some columns
    only, so they are all that is asked for. Refuses with `DataError`.
    """
    label = f"`{name}`"
    full = name if "." in name else f"public.{name}"
    meant = connection.catalog(_MEANT, label, (full,))
    if len(meant) != 1:
        raise _unknown(connection, full) if not meant else refuse("DataError", f"{label} may be two tables")
    ((number, schema, table, kind, policies, inherited),) = meant
    if kind in _KINDS:
        help = 'name the table that its rows are stored in, `postgres("schema.table")`'
        raise refuse("DataError", f"{label} is {_KINDS[kind]}, and only tables are read", help=help)
    if policies:
        message = f"{label} has policies that hide rows from this user"
        raise refuse("DataError", message, help="connect as a user whom they do not concern")
    kin = connection.catalog(_KIN, label, (number,))
    if any(row[1] == "f" for row in kin):
        raise refuse("DataError", f"{label} has parts on another server")
    described = connection.catalog(_COLUMNS, label, (number,))
    columns = [(column, name or "", full) for column, name, auto, full, _ in described if not auto]
    if not columns:
        raise refuse("DataError", f"this user may read no column of {label}")
    only = "ONLY " if kind == "r" and not inherited else ""  # no lock keeps others from inheriting from it
    parts = None if only else frozenset(row[2:] for row in kin)
    items, cells, numbers, unread = _cells(columns)
    place = f"{_quoted(schema)}.{_quoted(table)}"
    connection.uses(place, number, parts, [row[0] for row in kin], [row[4] for row in described])
    rows = subquery(f"SELECT {', '.join(items)} FROM {only}{place}")
    names, auto = tuple(column for column, *_ in columns), frozenset(row[0] for row in described if row[2])
    marks = {row[0]: ("postgres", *connection.server, row[0]) for row in kin}
    own = frozenset({marks[number]})
    return Stored(rows, label, names, tuple(cells), MOST_ROWS, numbers, auto, tuple(unread), own), frozenset(
        marks.values()
    )


def renamed(connection: Connection, name: str, own: frozenset[Hashable]) -> str:
    """The name that a table has now which was called `name` when it had the mark `own`. Refused with `LedgerError`
    where it is no more, or where its name is another's."""
    label, (mark,) = f"`{name}`", own
    if not isinstance(mark, tuple) or mark[1:3] != connection.server:
        raise refuse("LedgerError", f"{label} was registered in another database than this session works on")
    rows = [row[0] for row in connection.catalog(_MEANT, label, (name if "." in name else f"public.{name}",))]
    if rows == [mark[3]]:
        return name
    if rows:
        raise refuse("LedgerError", f"the name {label} is that of another table than was registered")
    now = connection.catalog(_NAMED, label, (mark[3],))
    if not now:
        raise refuse("LedgerError", f"the table {label} that was registered is no more")
    return str(now[0][0])


def _unknown(connection: Connection, name: str) -> Refusal:
    names = [row[0] for row in connection.catalog(_NAMES, "the catalog")]
    available = f"it has {', '.join(names[:12])}" if names else "there is none that this user may read"
    return refuse("DataError", f"the database has no table `{name}`", help=did_you_mean(name, names) or available)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


_LARGEST = 2**20  # bytes of a public table that stands in a statement
_TYPES = {"int64": "BIGINT", "double": "FLOAT8", "bool": "BOOLEAN", "date32[day]": "DATE"}
_WHOLE_TYPES = frozenset({20, 21, 23})  # the numbers of types: BIGINT, SMALLINT, INTEGER
_DOUBLE_TYPES = frozenset({700, 701})


class Postgres(ServerEngine):
    """A database of a server, of version 15 or later, by its URL."""

    capabilities = Capabilities()
    dialect = POSTGRES
    remote = "postgres"

    def __init__(self, url: str) -> None:
        super().__init__()
        self.connection = Connection(url)

    def close(self) -> None:
        """Ends the connection."""
        self.connection.close()
        super().close()

    def located(self, data: RemoteData) -> tuple[Stored, Hashable]:
        if len(data.names) != 1:
            raise refuse("DataError", "one table has one name", help='`postgres("schema.table")`')
        name = renamed(self.connection, data.names[0], data.own) if data.own else data.names[0]
        return stored_table(self.connection, name)

    def definition(self, data: RemoteData) -> tuple[str, dict[str, str]]:
        self.open(data, public=False)  # refused as it is in a program
        (name,), connection = data.names, self.connection
        ((number, *_),) = connection.catalog(_MEANT, f"`{name}`", (name if "." in name else f"public.{name}",))
        columns = connection.catalog(_DEFINED, f"`{name}`", (number,))
        parts = [f"{_quoted(column)} {kind}" for column, kind, _ in columns]
        parts += [str(check) for (check,) in connection.catalog(_CHECKS, f"`{name}`", (number,))]
        comments = {column: comment for column, _, comment in columns if comment}
        return f"CREATE TABLE t ({', '.join(parts)})", comments

    def rest(self) -> None:
        self.connection.rest()

    def check_source(self, plan: Scan | Bound) -> None:
        scan = plan.scan if isinstance(plan, Bound) else plan
        super().check_source(plan)
        self.connection.need(self.stored(scan.data).table)

    def send(self, table: pa.Table) -> str:
        """The rows of an Arrow table as a table of constants."""
        if table.nbytes > _LARGEST:
            message = f"a public table of more than {_LARGEST >> 20} MB is not sent to a database"
            raise refuse("DataError", message, help='load it into the database, and name it `postgres("…")`')
        arrays = []
        for field, column in zip(table.schema, table.columns, strict=True):
            elements = ",".join(map(_element, column.to_pylist()))
            arrays.append(f"{bare('{' + elements + '}')}::{_TYPES.get(str(field.type), 'TEXT')}[]")
        return f"unnest({', '.join(arrays)}) AS s({', '.join(table.column_names)})"

    def keep(self, query: str) -> str:
        return subquery(query)

    def count(self, table: str) -> int:
        return MOST_ROWS

    # Queries -----------------------------------------------------------------------------------------

    def fetch(self, query: str) -> list[tuple[object, ...]]:
        return self.connection.read(query, "the data", lambda cursor: list(cursor.fetchall()))

    def columns(self, query: str) -> list[Array]:
        def take(cursor: Any) -> list[Array]:
            return [_array(column, values) for column, values in _by_column(cursor.description, cursor.fetchall())]

        return self.connection.read(query, "the data", take)

    def batches(self, query: str, size: int) -> Iterator[list[Array]]:
        for described, rows in self.connection.blocks(query, "the data", size):
            yield [np.ma.getdata(_array(column, values)) for column, values in _by_column(described, rows)]


def _element(value: object) -> str:
    """A cell in the text of an array."""
    if value is None:
        return "NULL"
    return '"' + str(value).replace("\\", "\\\\").replace('"', '\\"') + '"'


def _by_column(described: list[object], rows: list[tuple[object, ...]]) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    yield from zip(described, zip(*rows, strict=True) if rows else ((),) * len(described), strict=True)


def _array(column: Any, values: tuple[object, ...]) -> Array:
    """The cells of a column, masked where they are NULL."""
    kind = np.int64 if column.type_code in _WHOLE_TYPES else np.float64 if column.type_code in _DOUBLE_TYPES else object
    missing = [value is None for value in values]
    if not any(missing):
        return np.ma.MaskedArray(np.array(values, dtype=kind), mask=False)
    plain = values if kind is object else [0 if value is None else value for value in values]
    return np.ma.MaskedArray(np.array(plain, dtype=kind), mask=missing)
