"""DuckDB's dialect. Its arithmetic raises nothing on doubles, and TRY_CAST nothing on texts."""

from __future__ import annotations

from jostle.engine.sql.dialect import Dialect
from jostle.language.operations.texts import LONGEST

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
    place="list_position([{1}], {0})", listed="list_extract([{1}], {0})",
    matches="regexp_matches({0}, {1})", part="regexp_extract({0}, {1}, {2})",
    day="(DATE '1970-01-01' + TRY_CAST({0} AS INTEGER))", days="({0} - DATE '1970-01-01')",
    first_day="CAST(date_trunc('{1}', {0}) AS DATE)",
    stamp="make_timestamp({0})", nanoseconds="make_timestamp_ns({0})",
    bare_moments=True,
    micros="epoch_us(TRY_CAST({0} AS TIMESTAMP))",
    quantile="quantile_cont({0}, {1})",
    operations={
        "-": "({0} - {1})", "ceil": "ceil({0})",
        "contains": "contains({0}, {1})", "starts_with": "starts_with({0}, {1})", "ends_with": "suffix({0}, {1})",
    },
)  # fmt: skip
