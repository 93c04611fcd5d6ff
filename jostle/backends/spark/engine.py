"""An engine on a Spark cluster, through Spark Connect: Apache Spark 4, services that speak its protocol, Sail.

A data set is a view of the session's, with columns named by us; rows of persons are kept by the cluster. Spark promises
no order of rows, so nothing here rests on one. A table that is written to while a program runs is refused when its
files are others than before: parts of a partition share a charge because no row is in two of them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

from jostle.backends.remote import RemoteData
from jostle.backends.server import ServerEngine
from jostle.backends.spark.connection import Connection, client
from jostle.backends.spark.dialect import SPARK
from jostle.backends.spark.folds import folded, prepare
from jostle.backends.spark.tables import Frame, cell, check_statistics, exact, hidden, listed, located
from jostle.backends.stored import Stored
from jostle.diagnostics import refuse
from jostle.engine.base import Capabilities, Work
from jostle.engine.sql import relations
from jostle.engine.sql.cells import NONE
from jostle.plan.plan import Key, Plan, RowExpr, Sample, Summands

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
        made, identity = located(self.connection, data.names)
        frame = self.connection.ask(made)
        fields = self.connection.ask(lambda _: [(f.name, f.dataType.simpleString()) for f in frame.schema.fields])
        more = len(data.names) - 1
        label = f"`{data.names[0]}`" + (f" and {more} other path{'s' * (more > 1)}" if more else "")
        twice = [name for name, _ in fields if sum(name == other for other, _ in fields) > 1]
        if twice:
            raise refuse("DataError", f"{label} has two columns `{twice[0]}`")
        named = frame.toDF(*(f"c{i}" for i in range(len(fields))))
        shown = (f"{hidden(f'c{i}', kind)} AS c{i}" for i, (_, kind) in enumerate(fields))
        view = self._view(named.selectExpr(*shown))
        check_statistics(self.connection, view)
        self._watched[view] = [(made, listed(self.connection, made))]
        cells = tuple(cell(f"c{i}", kind) for i, (_, kind) in enumerate(fields))
        numbers = {name: other for i, (name, kind) in enumerate(fields) if (other := exact(f"c{i}", kind)) is not None}
        unread = tuple(field for field, (_, kind) in zip(fields, cells, strict=True) if kind == NONE)
        return Stored(view, label, tuple(name for name, _ in fields), cells, numbers=numbers, unread=unread), identity

    def send(self, table: Any) -> str:
        client()
        from pyspark.sql.connect.dataframe import DataFrame
        from pyspark.sql.connect.plan import LocalRelation

        if table.nbytes > _LARGEST:
            message = f"a public table of more than {_LARGEST >> 20} MB is not sent to a cluster"
            raise refuse("DataError", message, help='put it where the cluster reads it, and name it `spark("…")`')
        return self._view(self.connection.ask(lambda session: DataFrame(LocalRelation(table), session)))

    def keep(self, query: str) -> str:
        kept = self._view(self.connection.kept(query))
        self._watched[kept] = [read for view, reads in self._watched.items() if view in query for read in reads]
        return kept

    def _view(self, frame: Any) -> str:
        name = f"jostle{next(self._numbers)}_"
        self.connection.ask(lambda _: frame.createOrReplaceTempView(name))
        return name

    def fetch(self, query: str) -> list[tuple[Any, ...]]:
        table = self._asked(query)
        return list(zip(*(column.to_pylist() for column in table.columns), strict=True))

    def columns(self, query: str) -> list[Any]:
        return [_array(column) for column in self._asked(query).columns]

    def batches(self, query: str, size: int) -> Iterator[Any]:
        for batch in self.connection.batches(query):
            for start in range(0, len(batch), size):
                yield batch.slice(start, size)
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

    def fold(self, plan: Plan, exprs: tuple[RowExpr, ...], work: Work) -> list[Any]:
        """What `work` makes of the rows, in the partitions of the cluster."""
        return self._folded(relations.vectors(self.relation(plan, exprs), exprs), work)

    def fold_codes(self, plan: Plan, keys: tuple[Key, ...], work: Work) -> list[Any]:
        source = self.relation(plan, (key.expr for key in keys))
        return self._folded(relations.codes(source, keys), work)

    def _folded(self, query: str, work: Work) -> list[Any]:
        self._prepare()
        result = folded(self.connection, query, work)
        self._check_files(query)
        return result

    def _asked(self, query: str) -> Any:
        table = self.connection.table(query)
        self._check_files(query)
        return table

    def _check_files(self, query: str) -> None:
        """Refuses what was read of a table whose files are others than when it was opened."""
        reads = [read for view, reads in self._watched.items() if view in query for read in reads]
        for frame, files in reads:
            if listed(self.connection, frame) != files:
                raise refuse("DataError", "a table of the cluster changed while this program ran",
                             help="run it again when nobody writes to the table")  # fmt: skip


def _array(column: Any) -> Any:
    """An Arrow column as an array of NumPy's, masked where cells are NULL."""
    import numpy as np
    import pyarrow as pa

    missing = column.is_null()
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        values = np.array(column.to_pylist(), dtype=object)
    else:
        filled = column.fill_null(False if pa.types.is_boolean(column.type) else 0) if column.null_count else column
        values = filled.to_numpy()
    return np.ma.array(values, mask=missing.to_numpy()) if column.null_count else values
