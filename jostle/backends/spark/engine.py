"""An engine on a Spark cluster, through Spark Connect: Apache Spark 4, services that speak its protocol, Sail.

A data set is a view of the session's, with columns named by us; rows of persons are kept by the cluster. Spark promises
no order of rows, so nothing here rests on one. A table that is written to while a program runs is refused when its
files are others than before: parts of a partition share a charge because no row is in two of them.

What a program names of a Spark cluster: a table of its catalog, or Parquet files at paths that it reads.

The same data have one budget under all names: they are known by their name in the catalog, by where it says that they
lie, and by the files that Spark reads. A view is refused, since what it reads may change, and so is a table that is not
made of files which Spark lists: nothing would tell that two names mean the same rows.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from jostle.backends.remote import RemoteData
from jostle.backends.server import ServerEngine, Stored
from jostle.backends.spark.connection import Connection, client
from jostle.backends.spark.dialect import SPARK, folded, prepare
from jostle.diagnostics import Refusal, refuse
from jostle.engine.base import Capabilities, Work
from jostle.engine.files import identities
from jostle.engine.sql import relations
from jostle.engine.sql.cells import NONE
from jostle.language.operations import LONGEST
from jostle.lazy import Array, np, pa
from jostle.plan.plan import Key, Plan, RowExpr, Sample, Summands

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.connect.session import SparkSession

_NAME = re.compile(r"[A-Za-z0-9_$-]+")
_LISTED = ("parquet", "delta", "orc")
_TABLES = ("managed", "external")
_PLAIN_PLACES = 6


Frame = Callable[["SparkSession"], "DataFrame"]
"""A new data frame of a session: one that is held is answered from what the server found out before."""


def located(connection: Connection, names: tuple[str, ...]) -> tuple[Frame, frozenset[Hashable]]:
    """What is named, and what it is known by."""
    if all("/" in name for name in names):
        place = ""
        marks: set[Hashable] = set()
    elif len(names) == 1:
        place, marks = _catalogued(connection, names[0])
    else:
        raise refuse("DataError", "`spark` takes one table of the catalog, or paths of Parquet files",
                     help='`spark("sales.orders")`, `spark("s3://bucket/orders/*.parquet")`')  # fmt: skip

    def frame(session: SparkSession) -> DataFrame:
        return session.table(place) if place else session.read.parquet(*names)

    files = files_of(connection, frame)
    if not files and not marks:
        raise refuse("DataError", f"the cluster reads no Parquet file at `{names[0]}`")
    marks |= {("spark file", file) for file in files}
    for file in files:
        marks |= set(_here(file))
    return frame, frozenset(marks)


def files_of(connection: Connection, frame: Frame) -> frozenset[str]:
    """The files that a data frame is read from, as they are now."""
    help = "are they Parquet files, and can the cluster read them?"
    return frozenset(connection.ask(lambda session: frame(session).inputFiles(), help=help))


def _here(file: str) -> list[tuple[object, ...]]:
    """What a file is known by in this process, where the cluster is this machine."""
    parts = urlsplit(file)
    return identities(unquote(parts.path)) if parts.scheme == "file" else []


def _names(file: str) -> list[str]:
    """The columns of a file as its footer has them, where it is one of this machine: of two of one name Sail shows the
    first alone."""
    from pyarrow import ArrowException, parquet

    try:
        return list(parquet.read_schema(unquote(urlsplit(file).path)).names) if _here(file) else []
    except (ArrowException, OSError):  # the server says what is wrong with it, or reads what is none of ours
        return []


def _catalogued(connection: Connection, name: str) -> tuple[str, set[Hashable]]:
    """A table's name in quotes, and what the catalog knows it by."""
    words = name.split(".")
    if len(words) > 3 or not all(map(_NAME.fullmatch, words)):
        raise refuse("DataError", f"`{name}` is no name of a table: letters, digits and `_`, with points between",
                     help='`spark("catalog.schema.table")`; paths have a `/`')  # fmt: skip
    place = ".".join(f"`{word}`" for word in words)
    try:
        rows = connection.ask(lambda session: session.sql(f"DESCRIBE TABLE EXTENDED {place}").toArrow().to_pylist())
    except Refusal:
        raise refuse("DataError", f"the cluster has no table `{name}`, or does not show it") from None
    facts = {str(row["col_name"]).lower(): str(row["data_type"]) for row in rows[_details(rows) :]}
    if facts.get("type", "").lower() not in _TABLES:
        raise refuse("DataError", f"`{name}` is a view, and what it reads is not known",
                     help="name the table that it is made of")  # fmt: skip
    if facts.get("provider", "").lower() not in _LISTED:
        help = f"tables are read that are kept as {', '.join(_LISTED)}, and paths of Parquet files"
        raise refuse("DataError", f"the files of the table `{name}` are not known", help=help)
    default = connection.ask(lambda session: (session.catalog.currentCatalog(), session.catalog.currentDatabase()))
    full = [*default[: 3 - len(words)], *words] if len(words) < 3 else words
    marks: set[Hashable] = {("spark table", ".".join(full).lower())}
    if facts.get("location"):
        marks.add(("spark place", facts["location"]))
    return place, marks


def _details(rows: list[dict[str, object]]) -> int:
    """Where the facts of a table begin, below its columns."""
    return next((i for i, row in enumerate(rows) if str(row["col_name"]).startswith("# Detailed")), len(rows))


def hidden(column: str, kind: str) -> str:
    """The same cells of a column of a type of Spark's, as an expression that no server compares with what a file's
    footer says, or a table's log.

    These statistics pass over NaN and may be wrong, and a server that goes by them leaves out whole parts of a file: a
    row would be there or not, as the others are. No cell is what stands behind ELSE, which is NULL where it is asked;
    but a server that does not know that cannot take the comparison into the branches. It costs nothing that could be
    measured: an ELSE of no row is not worked out. A CASE of truths is taken apart, so these go through numbers, and
    doubles have `+ 0e0D` (`cell`).
    """
    if kind == "boolean":
        return f"((CAST({column} AS INT) ^ 0) = 1)"
    other = next((template for begins, template in _OTHERS.items() if kind.startswith(begins)), None)
    return f"CASE WHEN {column} IS NOT NULL THEN {column} ELSE {other.format(column)} END" if other else column


_OTHERS = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), "~{0}"), "decimal": "-{0}",
    **dict.fromkeys(("string", "char", "varchar"), "reverse({0})"), "date": "date_add({0}, 1)",
    **dict.fromkeys(("timestamp", "timestamp_ntz"), "NULL"),
}  # fmt: skip
"""Something else of the type of a column, by how its type's name begins."""


def check_statistics(connection: Connection, view: str) -> None:
    """Refuses a Sail that goes by the statistics of files when it plans: it reads a column as a constant whose least
    number is the largest, also where NaN stands among its cells. Such a one counts rows without reading a file."""
    plan = connection.table(f"EXPLAIN SELECT count(*) AS a0 FROM {view}")
    if any("PlaceholderRowExec" in str(text) for text in plan.columns[0].to_pylist()):
        message = "this Sail takes numbers from what the footers of files say, which pass over NaN and may be wrong"
        raise refuse("DataError", message, help="start it with SAIL_EXECUTION__COLLECT_STATISTICS=false")


def cell(column: str, kind: str) -> tuple[str, str]:
    """The raw cell of a column of a type of Spark's, and its kind (`sql.cells`)."""
    if kind in ("tinyint", "smallint", "int", "bigint"):
        return f"try_cast({column} AS BIGINT)", "BIGINT"
    if kind in ("float", "double"):
        return f"(CAST({column} AS DOUBLE) + 0e0D)", "DOUBLE"  # no −0, which Sail tells from 0 in windows
    if kind == "boolean":
        return column, "BOOLEAN"
    if kind.startswith(("string", "char", "varchar")):
        text = f"collate({column}, 'UTF8_BINARY')" if kind.startswith("string collate") else column
        return f"CASE WHEN length({column}) <= {LONGEST} THEN try_validate_utf8({text}) END", "VARCHAR"
    if kind.startswith("decimal"):
        return _decimal(column, int(kind.rstrip(")").rpartition(",")[2]))
    if kind == "date":
        return column, "DATE"
    if kind == "timestamp":
        return f"unix_micros({column})", "TIMESTAMP us UTC"
    if kind == "timestamp_ntz":
        return f"unix_micros(CAST({column} AS TIMESTAMP))", "TIMESTAMP us"
    return "CAST(NULL AS STRING)", NONE


def _decimal(column: str, places: int) -> tuple[str, str]:
    """A decimal as a text without zeros at its end; Apache Spark may write one of more than six places as `1E-7`."""
    text = f"CAST({column} AS STRING)"
    if places > _PLAIN_PLACES:
        return f"CAST({column} AS DOUBLE)", "DOUBLE"
    return f"trim(TRAILING '.' FROM trim(TRAILING '0' FROM {text}))" if places else text, "VARCHAR"


def exact(column: str, kind: str) -> tuple[str, str] | None:
    """The cell of a column that is read in another way as a number: a cast of a decimal may be rounded twice."""
    return (f"CAST({column} AS STRING)", "VARCHAR") if kind.startswith("decimal") else None


_LARGEST = 64 * 2**20  # bytes of a public table that is sent


class Spark(ServerEngine):
    """Plans run on one session of a Spark Connect server."""

    capabilities = Capabilities(folds=True)
    remote = "spark"
    dialect = SPARK

    def __init__(self, url: str) -> None:
        super().__init__()
        self.connection = Connection(url)
        self._watched: dict[str, list[tuple[Frame, frozenset[str]]]] = {}  # by views: what they read, and its files
        self._prepared = False  # whether the workers were seen to run row programs

    def close(self) -> None:
        self.connection.close()
        super().close()

    def located(self, data: RemoteData) -> tuple[Stored, Hashable]:
        relation, identity = located(self.connection, data.names)
        own = frozenset(part for part in identity if isinstance(part, tuple) and part[0] != "file")
        if data.own and data.own != own:
            message = f"`{data.names[0]}` has another location, or other files, than when it was registered"
            raise refuse("LedgerError", message)
        frame = self.connection.ask(relation)
        fields = self.connection.ask(lambda _: [(f.name, f.dataType.simpleString()) for f in frame.schema.fields])
        more = len(data.names) - 1
        label = f"`{data.names[0]}`" + (f" and {more} other path{'s' * (more > 1)}" if more else "")
        files = files_of(self.connection, relation)
        every = ([name for name, _ in fields], *map(_names, sorted(files)))
        twice = [name for names in every for name, many in Counter(names).items() if many > 1]
        if twice:
            raise refuse("DataError", f"{label} has two columns `{twice[0]}`")
        positional = frame.toDF(*(f"c{i}" for i in range(len(fields))))
        columns = (f"{hidden(f'c{i}', kind)} AS c{i}" for i, (_, kind) in enumerate(fields))
        view = self._view(positional.selectExpr(*columns))
        check_statistics(self.connection, view)
        self._watched[view] = [(relation, files)]
        cells = tuple(cell(f"c{i}", kind) for i, (_, kind) in enumerate(fields))
        numbers = {name: other for i, (name, kind) in enumerate(fields) if (other := exact(f"c{i}", kind)) is not None}
        unread = tuple(field for field, (_, kind) in zip(fields, cells, strict=True) if kind == NONE)
        names = tuple(name for name, _ in fields)
        return Stored(view, label, names, cells, numbers=numbers, unread=unread, own=own), identity

    def definition(self, data: RemoteData) -> tuple[str, dict[str, str]]:
        frame = self.connection.ask(located(self.connection, data.names)[0])
        fields = self.connection.ask(lambda _: frame.schema.fields)
        told = {field.name: str(field.metadata["comment"]) for field in fields if field.metadata.get("comment")}
        kinds = ((field.name.replace("`", "``"), field.dataType.simpleString()) for field in fields)
        return f"CREATE TABLE t ({', '.join(f'`{name}` {kind}' for name, kind in kinds)})", told

    def send(self, table: pa.Table) -> str:
        client()
        from pyspark.sql.connect.dataframe import DataFrame
        from pyspark.sql.connect.plan import LocalRelation

        if table.nbytes > _LARGEST:
            message = f"a public table of more than {_LARGEST >> 20} MB is not sent to a cluster"
            raise refuse("DataError", message, help='put it where the cluster reads it, and name it `spark("…")`')
        return self._view(self.connection.ask(lambda session: DataFrame(LocalRelation(table), session)))

    def keep(self, query: str) -> str:
        cached_view = self._view(self.connection.cache(query))
        self._watched[cached_view] = [read for view, reads in self._watched.items() if view in query for read in reads]
        return cached_view

    def _view(self, frame: DataFrame) -> str:
        name = f"jostle{next(self._numbers)}_"
        self.connection.ask(lambda _: frame.createOrReplaceTempView(name))
        return name

    def fetch(self, query: str) -> list[tuple[object, ...]]:
        table = self._result(query)
        return list(zip(*(column.to_pylist() for column in table.columns), strict=True))

    def columns(self, query: str) -> list[Array]:
        return [_array(column) for column in self._result(query).columns]

    def batches(self, query: str, size: int) -> Iterator[list[Array]]:
        for batch in self.connection.batches(query):
            for start in range(0, len(batch), size):
                yield [*map(np.asarray, batch.slice(start, size).columns)]
        self._check_files(query)

    def check_rows(self, rows: Summands | Sample) -> None:
        if isinstance(rows, Sample):
            message = "rows of a cluster are not sampled one by one, since they are not brought here"
            raise refuse("DataError", message, help="measure all of them: `naive_mle` or `cgm` in place of `psgd`")
        self._prepare()

    def _prepare(self) -> None:
        if not self._prepared:
            prepare(self.connection)
            self._prepared = True

    def fold(self, plan: Plan, exprs: tuple[RowExpr, ...], work: Work) -> list[object]:
        """What `work` makes of the rows, in the partitions of the cluster."""
        return self._folded(relations.vectors(self.relation(plan, exprs), exprs), work)

    def fold_codes(self, plan: Plan, keys: tuple[Key, ...], work: Work) -> list[object]:
        source = self.relation(plan, (key.expr for key in keys))
        return self._folded(relations.codes(source, keys), work)

    def _folded(self, query: str, work: Work) -> list[object]:
        self._prepare()
        result = folded(self.connection, query, work)
        self._check_files(query)
        return result

    def _result(self, query: str) -> pa.Table:
        table = self.connection.table(query)
        self._check_files(query)
        return table

    def _check_files(self, query: str) -> None:
        """Refuses what was read of a table whose files are others than when it was opened."""
        reads = [read for view, reads in self._watched.items() if view in query for read in reads]
        for frame, files in reads:
            if files_of(self.connection, frame) != files:
                raise refuse("DataError", "a table of the cluster changed while this program ran",
                             help="run it again when nobody writes to the table")  # fmt: skip


def _array(column: pa.ChunkedArray) -> Array:
    """An Arrow column as an array of NumPy's, masked where cells are NULL."""

    missing = column.is_null()
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        values = np.array(column.to_pylist(), dtype=object)
    else:
        filled = column.fill_null(False if pa.types.is_boolean(column.type) else 0) if column.null_count else column
        values = filled.to_numpy()
    return np.ma.array(values, mask=missing.to_numpy()) if column.null_count else values
