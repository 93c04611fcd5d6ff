"""A data set's raw cells, as the database can be asked for them: what is common to files and frames.

DuckDB's dialect. Its arithmetic raises nothing on doubles, and TRY_CAST nothing on texts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass, field

from jostle.engine.sql.dialect import Dialect
from jostle.language.operations import LONGEST


@dataclass(slots=True)
class Raw(ABC):
    """Columns by their names, each of a kind that `clean` reads; `label` is what messages call the data set."""

    columns: tuple[str, ...]
    kinds: tuple[str, ...]
    label: str
    size: int | None = field(default=None, init=False)  # rows, when they were counted
    unread: tuple[tuple[str, str], ...] = field(default=(), init=False)  # columns of no kind, with their types

    def cell(self, name: str) -> tuple[str, str]:
        """The column `cN` that a name stands for, and its kind."""
        at = self.columns.index(name)
        return f"c{at}", self.kinds[at]

    @abstractmethod
    def table(self, needed: Collection[int]) -> str:
        """A table or view that has the columns `cN` of these numbers, and `n`, which numbers its rows in every query
        alike, where they are `numbered`. What others it has is none of anybody's."""

    @property
    def numbered(self) -> bool:
        """Whether `table` has `n`; else its rows are copied, and numbered so."""
        return True


_BLANKS = " AND ".join(f"NOT contains({{0}}, chr({blank}))" for blank in (10, 11, 12, 13))
_DECIMAL = f"({{0}} >= '-' AND {{0}} < ':' AND NOT contains({{0}}, '_') AND {_BLANKS})"

DUCKDB = Dialect(
    name="DuckDB",
    double="DOUBLE", text="VARCHAR", wide="HUGEINT", tiny="TINYINT",
    digits="({0})",
    finite="isfinite({0})", known_finite="isfinite({0})",
    between="({0} >= {1}) = ({0} <= {2})",  # columns of truths are made quicker than rows are chosen
    whole="TRY_CAST({0} AS BIGINT)", whole_wide="TRY_CAST({0} AS HUGEINT)",
    floor="floor({0})", even="round_even({0}, 0)", nearest="CAST({0} AS BIGINT)",
    grid="(({0} + {1}) - {1})",
    remainder="({0} % {1})",
    bits="CAST(CAST({0} + 0e0 AS BIT) AS BIGINT)", spelled="CAST({0} AS VARCHAR)",
    quotient="(({0}) // {1})", xor="xor({0}, {1})", right="({0} >> {1})",
    total="CAST(coalesce(sum({0}), 0) AS VARCHAR)",
    # which reads what is written otherwise where that has `_`, `+-` or other blanks in it, and nothing else
    double_of="TRY_CAST({0} AS DOUBLE)", decimal=_DECIMAL, whole_of="TRY_CAST({0} AS BIGINT)",
    digest="CAST('0x' || left(sha256({0}), 12) AS BIGINT)", size="strlen({0})",
    short=f"(strlen({{0}}) <= {LONGEST} OR length({{0}}) <= {LONGEST})",
    place="list_position([{1}], {0})", among_texts="list_contains([{1}], {0})",
    split={"number": "unnest(CAST(string_split({0}, {1}) AS DOUBLE[]))", "text": "unnest(string_split({0}, {1}))"},
    matches="regexp_matches({0}, {1})", part="regexp_extract({0}, {1}, {2})",
    day="(DATE '1970-01-01' + TRY_CAST({0} AS INTEGER))", days="({0} - DATE '1970-01-01')",
    first_day="CAST(date_trunc('{1}', {0}) AS DATE)",
    stamp="make_timestamp({0})", nanoseconds="make_timestamp_ns({0})",
    micros="epoch_us(TRY_CAST({0} AS TIMESTAMP))",
    quantile="quantile_cont({0}, {1})",
    operations={
        "-": "({0} - {1})", "ceil": "ceil({0})",
        "contains": "contains({0}, {1})", "starts_with": "starts_with({0}, {1})", "ends_with": "suffix({0}, {1})",
    },
)  # fmt: skip
