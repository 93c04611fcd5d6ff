"""Dates in conditions and keys of a cube and of a joint block: what is counted is what plain Python counts."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from typing import Any

import pytest

from jostle.tools.session import Result

ROWS = [(i % 10, ("2020-01-01", "2020-02-03")[i % 3 == 0]) for i in range(60)]
TABLE = "a,c\n" + "".join(f"{a},{c}\n" for a, c in ROWS)
DAYS = {a: date(2020, 1, 28) + timedelta(a) for a in range(10)}
SOURCE = 't = table("t.csv") described by {a: 0..9, c: {"2020-01-01", "2020-02-03"}}'
PRIVATE = f"private {SOURCE} protecting rows budget epsilon 1e9\n"


@pytest.mark.parametrize(("declared", "amount"), [(SOURCE + "\n", ""), (PRIVATE, " with epsilon 1e6")])
def test_of_a_cube(attempt: Callable[..., Result], declared: str, amount: str) -> None:
    result = attempt(f"""{declared}
h = histogram(t, a)
release n = {{{{ select sum(values) as s from h where day(2020-01-28 + a) > 3{amount} }}}}
release m = {{{{ select sum(values) as s from h groupby trunc(2020-01-28 + a, "month"){amount} }}}}.s
release k = laplace(where(h, 2020-01-28 + a < 2020-02-02 or contains(text(a), "7"))){amount}
""", t=TABLE)  # fmt: skip
    assert result.ok, result.diagnostics
    late = [a for a, _ in ROWS if DAYS[a].day > 3]
    months = [sum(DAYS[a].month == month for a, _ in ROWS) for month in (1, 2)]
    assert round(result.values["n"]) == len(late) and [round(x) for x in result.values["m"]] == months
    kept = [sum(a == b for b, _ in ROWS) * (DAYS[a] < date(2020, 2, 2) or a == 7) for a in range(10)]
    assert [round(float(x)) for x in result.values["k"]] == kept


def test_of_a_joint_block(attempt: Callable[..., Result]) -> None:
    result = attempt(f"""{PRIVATE}
jointly with epsilon 1e6:
    x = {{{{ select count(*) as n from t groupby month(date(c)) over [1, 2] }}}}
    y = {{{{ select count(*) as n from t where date(c) > 2020-01-15 }}}}
    z = {{{{ select count(*) as n from t groupby date(c) over [2020-01-01, 2020-02-03] }}}}
release x = x.n
release y = y
release z = z.n
""", t=TABLE)  # fmt: skip
    assert result.ok, result.diagnostics
    early, late = (sum(c == day for _, c in ROWS) for day in ("2020-01-01", "2020-02-03"))

    def rounded(values: Any) -> list[int]:
        return [round(float(value)) for value in values]

    assert rounded(result.values["x"]) == rounded(result.values["z"]) == [early, late]
    assert rounded([result.values["y"]]) == [late]
