"""A table without rows answers what a table with rows answers: types of columns come from what is declared."""

from __future__ import annotations

import datetime
import decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from jostle.source import Source
from jostle.tools.session import Session

DAY = datetime.date(2020, 2, 29)
TYPES: dict[str, tuple[Any, str, Any]] = {
    **{str(t): (t, "0..9", 1) for t in (pa.int8(), pa.uint8(), pa.int16(), pa.int32(), pa.int64(), pa.uint64())},
    **{str(t): (t, "0.0..9.0", 1.5) for t in (pa.float32(), pa.float64())},
    "decimal": (pa.decimal128(9, 2), "0.0..9.0", decimal.Decimal("1.50")),
    **{str(t): (t, '{"a", "b"}', "a") for t in (pa.string(), pa.large_string(), pa.string_view())},
    "dictionary": (pa.dictionary(pa.int32(), pa.string()), '{"a", "b"}', "a"),
    "coded times": (pa.dictionary(pa.int32(), pa.timestamp("us")), "time", datetime.datetime(2020, 2, 29, 12)),
    "bool": (pa.bool_(), "{true, false}", True),
    "date32": (pa.date32(), "date", DAY), "date64": (pa.date64(), "date", DAY),
    "timestamp": (pa.timestamp("us"), "time", datetime.datetime(2020, 2, 29, 12)),
    "zoned": (pa.timestamp("ns", tz="UTC"), "time", datetime.datetime(2020, 2, 29, 12)),
}  # fmt: skip
PROGRAM = """
private t = SOURCE described by {c: DOMAIN} protecting rows budget epsilon 100
a = {{ select count(*) as n, count(c) as m, count(distinct c) as d from t with epsilon 1 }}
b = {{ select count(*) as n from t where c == c or c != c with epsilon 1 }}
"""


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("held", ["file", "memory", "filtered"])
def test_a_table_without_rows_is_read_like_any_other(tmp_path: Path, name: str, held: str) -> None:
    kind, domain, cell = TYPES[name]
    cells = pa.array([cell], type=getattr(kind, "value_type", kind))
    whole = pa.table({"c": cells.dictionary_encode() if pa.types.is_dictionary(kind) else cells})
    for table in (whole, whole.schema.empty_table(), pa.table({"c": pa.chunked_array([], type=kind)}), whole.slice(1)):
        session = Session(cwd=tmp_path)
        if held == "file":
            with pa.ipc.new_file(str(tmp_path / "t.arrow"), table.schema) as writer:
                writer.write_table(table)
        else:
            session.bind("t", table.slice(0) if held == "filtered" else table)
        source = 'table("t.arrow")' if held == "file" else 'bound("t")'
        result = session.attempt(Source("p.jst", PROGRAM.replace("SOURCE", source).replace("DOMAIN", domain)))
        assert result.ok, [d.message for d in result.diagnostics]


@pytest.mark.parametrize("key", ['part(c, ",", 2) as k', 'part(c, ",", 2) as k, n'])
@pytest.mark.parametrize(("budget", "amount"), [
    ("epsilon 9", "epsilon 0.2"), ("epsilon 9, delta 0.001", "epsilon 0.2 delta 1e-6"), ("rho 9", "rho 0.1"),
])  # fmt: skip
def test_a_key_of_which_no_listed_value_is_left_has_no_groups(
    key: str, budget: str, amount: str, tmp_path: Path
) -> None:
    """Of any aggregate: minima and medians by one such key failed after the charge (crossed programs, 900034011)."""
    (tmp_path / "t.csv").write_text("n,c,r\n1,Ames,2\n2,Cork,3\n")
    asked = ("min(n)", "max(r)", "median(n)", "quantile(r, 0.3)", "mode(c)", "count(distinct c)", "avg(r)", "count(*)")
    text = (
        'private t = table("t.csv") described by {n: 0..9, r: 0.0..8.0, c: {"Ames", "Cork"}} protecting rows '
        f"budget {budget}\n"
        + "".join(
            f"release a{i} = {{{{ select {one} from t groupby {key} with {amount} }}}}\n" for i, one in enumerate(asked)
        )
    )
    result = Session(cwd=tmp_path).attempt(Source("p.jst", text))
    assert result.ok and all(len(result[f"a{i}"]) == 0 for i in range(len(asked)))
