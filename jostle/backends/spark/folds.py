"""Folds on a cluster: one a partition of the rows, by `mapInArrow`, and what they give added up here.

What runs there is this package itself, of this very version: it is sent along, as the session's own, where a server
takes it. Python's version has to be that of this process, and NumPy and PyArrow have to be there. Whether that is so is
asked once, of rows that the question brings along; a cluster that lacks it is refused by name, and no row comes here
instead. A partition gives back whole numbers as decimals, nothing else.
"""

from __future__ import annotations

import contextlib
import json
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from jostle.backends.spark.connection import Connection
from jostle.diagnostics import Refusal, refuse
from jostle.engine.base import Work
from jostle.version import __version__

_SUMS = "sums string"


class Partition:
    """What a partition of rows is mapped by: record batches of doubles in, one batch with one text out."""

    def __init__(self, work: Work) -> None:
        self.work = work

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        import numpy as np

        def rows() -> Iterator[Any]:
            for batch in batches:
                yield np.stack([np.asarray(column, dtype=np.float64) for column in batch.columns], axis=1)

        arrays = [np.asarray(array) for array in self.work(rows())]
        yield _batch(json.dumps([[array.shape, [int(value) for value in array.ravel()]] for array in arrays]))


def versions(batches: Iterator[Any]) -> Iterator[Any]:
    """What a worker has, of a batch that says nothing."""
    import numpy as np

    for _ in batches:
        yield _batch(json.dumps([__version__, np.__version__]))


def _batch(text: str) -> Any:
    import pyarrow as pa

    return pa.RecordBatch.from_pydict({"sums": pa.array([text])})


def folded(connection: Connection, query: str, work: Work) -> list[Any]:
    """The arrays of whole numbers, of Python's, that a fold gives of all rows of a query."""
    import numpy as np

    parts = [json.loads(text) for text in mapped(connection, lambda session: session.sql(query), Partition(work))]
    arrays = [[np.array(values, dtype=object).reshape(shape) for shape, values in part] for part in parts]
    return [sum(several[1:], several[0]) for several in zip(*(arrays or [work(iter(()))]), strict=True)]


def mapped(connection: Connection, rows: Callable[[Any], Any], work: Callable[[Any], Any]) -> list[str]:
    """The texts that `work` gives of the partitions of rows."""
    table = connection.ask(lambda session: rows(session).mapInArrow(work, _SUMS).toArrow())
    return [str(text) for text in table["sums"].to_pylist()]


def prepare(connection: Connection) -> None:
    """Sends this package to the workers, and refuses a cluster that cannot run it."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, f"jostle_{__version__}.zip")
        _pack(file)
        with contextlib.suppress(Refusal):  # a server that takes no files may have the package
            connection.ask(lambda session: session.addArtifacts(str(file), pyfile=True))
        try:
            answers = mapped(connection, lambda session: session.range(1), versions)
        except Refusal:
            answers = []
    if not answers or any(json.loads(answer)[0] != __version__ for answer in answers):
        import platform

        version = ".".join(platform.python_version_tuple()[:2])
        message = "the workers of this cluster cannot run row programs, and their rows are not brought here"
        help = f"they need Python {version} with numpy, pandas and pyarrow, and jostle {__version__} where none is sent"
        raise refuse("DataError", message, help=help)


def _pack(file: Path) -> None:
    package = Path(__file__).parents[2]
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
        for path in sorted(package.rglob("*.py")):
            packed.write(path, Path(package.name, path.relative_to(package)))
