"""`from … to … by unit` in a description: cells are taken down to the first day or moment of their unit."""

from __future__ import annotations

from datetime import date, datetime
from pathlib import Path

import pytest

from jostle.source import Source
from jostle.tools.session import Session

DECLARED = 'private t = table("{}") described by {{day: {}}} protecting rows budget epsilon 1e9\n'
BY = "by = {{ select count(*) as n from t groupby day with epsilon 1e7 }}\n"


@pytest.mark.parametrize(("domain", "keys", "counts"), [
    ("from 2024-01-15 to 2024-03-31 by month", [date(2024, month, 1) for month in (1, 2, 3)], [2, 1, 2]),
    ("from 2023-06-01 to 2024-12-31 by year", [date(2023, 1, 1), date(2024, 1, 1)], [1, 4]),
    ("from 2024-02-28 to 2024-02-29 by hour", [datetime(2024, 2, 28 + d, h) for d in (0, 1) for h in range(24)],
     [2, *[0] * 29, 1, *[0] * 16, 2]),
])  # fmt: skip
def test_keys_and_cells(domain: str, keys: list[date], counts: list[int], tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("day\n1999-01-01\n2024-01-31\n2024-02-29T06:59\n2024-03-01\n2025-01-01\n2024-13-01\n")
    session = Session()
    session.execute(Source("p.jst", DECLARED.format(path, domain) + BY))
    by = session.names()["by"].columns
    assert by["day"] == keys and by["n"] == counts


@pytest.mark.parametrize(("domain", "kind"), [
    ("from 1 to 5 by month", "TypeError"), ("from 2024-01-01 to 2024-03-01 by fortnight", "ValueError"),
    ("from 2024-03-01 to 2024-01-01 by month", "DataError"), ("from 2024-01-01 to 2024-03-01", "SyntaxError"),
])  # fmt: skip
def test_what_is_no_period_is_refused(domain: str, kind: str) -> None:
    session, source = Session(simulate=1), Source("p.jst", DECLARED.format("t.csv", domain))
    assert [d.kind for d in session.attempt(source, {}).diagnostics] == [kind]


def test_times_go_down_to_listed_dates(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("at\n2024-01-31T23:59\n2024-02-01T00:00\n2024-02-29T06:59\n2024-03-01T12:00\n\n")
    session = Session()
    session.execute(Source("p.jst", f"""
private t = table("{path}") described by {{at: time}} protecting rows budget rho 99999
days = {{{{ select count(*) as n from t groupby at over [2024-02-01, 2024-02-29] with rho 9999 }}}}
months = {{{{ select count(*) as n from t groupby trunc(at, "month") over [2024-01-01, 2024-02-01] with rho 9999 }}}}
so_far = {{{{ select count(*) as n from t groupby running(at) over [2024-02-01, 2024-02-29] with rho 9999 }}}}
pairs = {{{{ select count(*) as n from t groupby (at, hour(at)) over [(2024-02-29, 6)] with rho 9999 }}}}
parts = [{{{{ select count(*) from part with rho 9999 }}}} for day, part in partition(t, at, over = [2024-03-01])]
"""))  # fmt: skip
    names = session.names()
    assert names["days"].columns["at"] == [date(2024, 2, 1), date(2024, 2, 29)]
    got = [[round(n) for n in names[name].columns["n"]] for name in ("days", "months", "so_far", "pairs")]
    assert got == [[1, 1], [1, 2], [1, 2], [1]] and [round(n) for n in names["parts"]] == [1]


def test_persons_are_not_counted_by_a_running_key(tmp_path: Path) -> None:
    """Who is there on two days is one person, and no two, in all the rows up to the second."""
    (tmp_path / "t.csv").write_text("id,day,page\n" + "".join(f"{i},{day},a\n" for i in range(9) for day in (1, 2)))
    program = """private t = table("t.csv") described by {day: 1..3, page: {"a", "b"}} protecting id up to 2 rows
    budget rho 1e7
release n = {{ select count(%s) as n from %s groupby %srunning(day) with rho 1000 }}
"""
    for counted in ("distinct person", "distinct id"):
        result = Session(cwd=tmp_path).attempt(Source("p.jst", program % (counted, "t", "page, ")))
        (refused,) = result.diagnostics
        assert refused.kind == "TypeError" and refused.span is not None and refused.span.text == f"count({counted})"
        assert "select min(day) as day from" in refused.help
    result = Session(cwd=tmp_path).attempt(
        Source("p.jst", program % ("*", "(select min(day) as day from t per person)", ""))
    )
    assert [round(n) for n in result.values["n"].columns["n"]] == [9, 9, 9]


@pytest.mark.parametrize("keys", ["running(day, until = 2), city", "city, running(day, until = 2)"])
def test_what_is_public_runs_to_its_last_step_and_no_further(keys: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("city,day\nA,1\nA,3\nB,2\nB,2\n")
    session = Session(cwd=tmp_path)
    session.execute(Source("p.jst", f'g = {{{{ select count(*) as n from table("t.csv") groupby {keys} }}}}\n'))
    columns = session.names()["g"].columns
    assert [*zip(columns["city"], columns["day"], columns["n"], strict=True)] == [("A", 1, 1), ("B", 2, 2)]
