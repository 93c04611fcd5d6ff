"""Spark's dialect: templates that raise nothing on a row, on Apache Spark in its ANSI mode and on Sail alike.

ANSI mode is Spark's default and belongs to the cluster, so nothing here rests on it: casts, `floor` to 64 bits and
divisions have their operand tested inside them. Where the two servers answer otherwise (`rint`, `isnan`, `weekday`,
casts of large doubles, parts of dates) the template takes a way on which they agree; `tests/engines` holds them to the
plain meaning in Python. The session's time zone is UTC, which the connection sets.

A text is written in the bytes of its UTF-8 unless it is made of letters, digits and blanks: what a backslash or a
doubled quote means in a literal is a setting of the cluster.

Folds on a cluster: one a partition of the rows, by `mapInArrow`, and what they give added up here.

What runs there is this package itself, of this very version: it is sent along, as the session's own, where a server
takes it. Python's version has to be that of this process, and NumPy and PyArrow have to be there. Whether that is so is
asked once, of rows that the question brings along; a cluster that lacks it is refused by name, and no row comes here
instead. A partition gives back whole numbers as decimals, nothing else.
"""

from __future__ import annotations

import contextlib
import json
import re
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from jostle.backends.spark.patterns import spelling
from jostle.diagnostics import Refusal, refuse
from jostle.engine.base import Work
from jostle.engine.sql.dialect import Dialect
from jostle.language.moments import FIRST_DAY, LAST_DAY
from jostle.language.row_functions import upper
from jostle.lazy import Floats, np, pa
from jostle.speed.quicksql import QUICK
from jostle.version import __version__

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.connect.session import SparkSession

    from jostle.backends.spark.connection import Connection

    Map = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

_PLAIN = re.compile(r"[A-Za-z0-9 .,:_-]*")
_LARGEST = "1.7976931348623157e308D"
_SMALLEST = "2.2250738585072014e-308D"  # of the doubles with 53 bits
_WHOLE = f"CASE WHEN abs({{0}}) < {2**52}e0D THEN {{0}} END"  # what is larger has no fraction
_NEAREST = f"(({{0}} + {1.5 * 2**52!r}e0D) - {1.5 * 2**52!r}e0D)"  # added to so large a double, none keeps a fraction
_LONG = f"CASE WHEN {{0}} >= -{2**63}e0D AND {{0}} < {2**63}e0D THEN {{0}} END"
_WIDE = f"CASE WHEN abs({{0}}) < {2**81}e0D THEN {{0}} END"
_HIGH = f"floor({_WIDE} / {2**40}e0D)"
_LOW = f"({_WIDE} - CAST({_HIGH} AS DOUBLE) * {2**40}e0D)"


def quoted(text: str) -> str:
    return f"'{text}'" if _PLAIN.fullmatch(text) else f"CAST(X'{text.encode().hex().upper()}' AS STRING)"


def _bits() -> str:
    """The 64 bits of a double. As a function of its size they are the lowest of the lines through the pieces on which
    the exponent does not change. So of two exponents near the logarithm the smaller line is right, whatever the last
    digits of the logarithm are. Dividing by a power of two is exact."""
    exponent = "floor(greatest(log2(abs({0})), -1022e0D) + 0.5e0D)"
    size = f"(abs({{0}}) / pow(2e0D, CAST({exponent} - 52 AS DOUBLE)))"
    line = f"least({size}, CASE WHEN abs({{0}}) >= {_SMALLEST} THEN 2e0D * {size} - {2**52}e0D END)"
    sign = f"CASE WHEN {{0}} < 0e0D THEN CAST('-{2**63}' AS BIGINT) ELSE CAST(0 AS BIGINT) END"
    return f"(({exponent} + 1022) * {2**52} + CAST({line} AS BIGINT) + {sign})"


def _upper() -> str:
    """Letters whose capital is several by Unicode's full mapping pass the function as private-use characters."""
    ranges: Iterable[int] = (0xDF, 0x149, 0x1F0, 0x390, 0x3B0, 0x587, *range(0x1E96, 0x1E9B), *range(0x1F50, 0x1FFD),
                             *range(0xFB00, 0xFB18))  # fmt: skip
    letters = [chr(code) for code in ranges if len(chr(code).upper()) > 1]
    signs = "".join(chr(0x10FE00 + place) for place in range(len(letters)))
    marked = f"translate({{0}}, {quoted(''.join(letters))}, {quoted(signs)})"
    return f"translate(upper({marked}), {quoted(signs)}, {quoted(''.join(map(upper, letters)))})"


_DAYS = f"CASE WHEN {{0}} BETWEEN {FIRST_DAY} AND {LAST_DAY} THEN {{0}} END"
_DAY = f"date_from_unix_date(CAST({_DAYS} AS INT))"
_ISO = f"(pmod(CAST({_DAYS} AS INT) + 3, 7) + 1)"  # 1 January 1970 was a Thursday
_THURSDAY = f"date_from_unix_date(CAST({_DAYS} AS INT) + 4 - {_ISO})"

SPARK = Dialect(
    **(QUICK | {"pattern": spelling}),
    name="Spark",
    double="DOUBLE", text="STRING", wide="DECIMAL(38,0)", tiny="TINYINT",
    digits="({0}D)", quoted=quoted,
    finite=f"(abs({{0}}) <= {_LARGEST})", known_finite="NOT isnan({0} - {0})",
    whole=f"CAST({_LONG} AS BIGINT)",
    whole_wide=f"(CAST({_HIGH} AS DECIMAL(38,0)) * {2**40} + CAST(CAST({_LOW} AS BIGINT) AS DECIMAL(38,0)))",
    floor=f"coalesce(CAST(floor({_WHOLE}) AS DOUBLE), {{0}})",
    even="bround({0}, 0)", nearest="CAST(bround({0}, 0) AS BIGINT)",
    grid="(({0} + {1}) - {1})", near_nearest=f"CAST({_NEAREST} AS BIGINT)",
    near_floor="CAST(floor({0}) AS DOUBLE)", near_whole="CAST({0} AS BIGINT)",
    remainder="({0} % {1})", unsigned="({0} + 0e0D)", bits=_bits(),
    quotient="(({0}) div ({1}))", xor="(({0}) ^ ({1}))", right="shiftright({0}, {1})",
    total="coalesce(CAST(sum(CAST({0} AS DECIMAL(38,0))) AS STRING), '0')",
    double_of="try_cast(btrim({0}, ' \t') AS DOUBLE)", whole_of="try_cast({0} AS BIGINT)",
    digest="CAST(conv(CAST(left(sha2({0}, 256), 12) AS STRING), 16, 10) AS BIGINT)", size="octet_length({0})",
    place="array_position(array({1}), {0})",
    matches="rlike({0}, {1})", part="regexp_extract({0}, {1}, {2})",
    day=_DAY, days="unix_date({0})",
    first_day="make_date(year({0}), CASE '{1}' WHEN 'year' THEN 1 WHEN 'quarter' THEN 3 * quarter({0}) - 2 "
              "ELSE month({0}) END, 1)",
    stamp="CAST(timestamp_micros({0}) AS TIMESTAMP_NTZ)",
    micros="unix_micros(try_cast({0} AS TIMESTAMP))",
    shared="WITH {0} AS ({1}) {2}",
    once="CASE WHEN rand() + 1 > 0 THEN {0} END",  # what is random is calculated where it stands; `rand() >= 0` is not
    lists=True, orders=False,  # Sail looks up nothing in a CASE, and plans no order of some unions
    quantile="percentile({0}, {1})",
    operations={
        "contains": "contains({0}, {1})", "starts_with": "startswith({0}, {1})", "ends_with": "endswith({0}, {1})",
        "position": "CAST(instr({0}, {1}) AS DOUBLE)",
        "lower": f"lower(translate({{0}}, {quoted('İΣ')}, {quoted('iσ')}))", "upper": _upper(),
        "weekday": f"CAST({_ISO} AS DOUBLE)",
        "week": f"CAST((dayofyear({_THURSDAY}) - 1) div 7 + 1 AS DOUBLE)",
        "week_year": f"CAST(year({_THURSDAY}) AS DOUBLE)",
        "day_of_year": f"CAST(dayofyear({_DAY}) AS DOUBLE)",
    },
)  # fmt: skip


_SUMS = "sums string"


class Partition:
    """What a partition of rows is mapped by: record batches of doubles in, one batch with one text out."""

    def __init__(self, work: Work) -> None:
        self.work = work

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        def rows() -> Iterator[Floats]:
            for batch in batches:
                yield np.stack([np.asarray(column, dtype=np.float64) for column in batch.columns], axis=1)

        arrays = [np.asarray(array) for array in self.work(rows())]
        yield _batch(json.dumps([[array.shape, [int(value) for value in array.ravel()]] for array in arrays]))


def versions(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What a worker has, of a batch that says nothing."""
    for _ in batches:
        yield _batch(json.dumps([__version__, np.__version__]))


def _batch(text: str) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"sums": pa.array([text])})


def folded(connection: Connection, query: str, work: Work) -> list[object]:
    """The arrays of whole numbers, of Python's, that a fold gives of all rows of a query."""
    parts = [json.loads(text) for text in mapped(connection, lambda session: session.sql(query), Partition(work))]
    arrays = [[np.array(values, dtype=object).reshape(shape) for shape, values in part] for part in parts]
    return [sum(several[1:], several[0]) for several in zip(*(arrays or [work(iter(()))]), strict=True)]


def mapped(connection: Connection, rows: Callable[[SparkSession], DataFrame], work: Map) -> list[str]:
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
