"""Bounds that are paid for: the bins, the answers, and that no data make them fail."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from jostle.plan.plan import Apply, Column, RowExpr
from jostle.privacy.kernel import exposures
from jostle.privacy.measurements.aggregates.places import bins, outermost
from jostle.simulate import SeededNoise
from jostle.source import Source
from jostle.tools.session import Result, Session

PUBLIC = [
    (None, None),
    (0.0, 100.0),
    (-3.0, 2000.0),
    (17.0, 17.0),
    (-90.0, -2.0),
    (0.5, 0.75),
    (0.0, 0.0),
    (1e19, 2e19),
]


def value(expr: RowExpr, x: float | None) -> Any:
    """Of a row where the column is x."""
    if isinstance(expr, Column):
        return x
    if not isinstance(expr, Apply):
        return expr.value
    if expr.op == "if":
        return value(expr.args[1 if value(expr.args[0], x) else 2], x)
    a, b = (value(arg, x) for arg in expr.args)
    return None if a is None or b is None else {"==": a == b, ">": a > b, ">=": a >= b}[expr.op]


@pytest.mark.parametrize("integral", [False, True])
@pytest.mark.parametrize(("low", "high"), PUBLIC)
def test_a_value_lies_within_the_ends_of_its_bin(low: float | None, high: float | None, integral: bool) -> None:
    listed = bins(low, high, integral)
    place = listed.place(Column("x"))
    ends = listed.ends
    assert len(ends) == len(listed.cuts) + 2 and all(a <= b for a, b in itertools.pairwise(ends))
    least, most = ends[0], ends[-1]
    tried = {
        x for e in ends for x in (e, math.nextafter(e, -math.inf), math.nextafter(e, math.inf), e + 1, e - 1, e / 3)
    }
    for x in sorted(x for x in tried if least <= x <= most and (not integral or x.is_integer())):
        at = value(place, x)
        assert ends[int(at)] <= x <= ends[int(at) + 1], (x, at)
    assert value(place, least - 1) == 0 and value(place, most + abs(most)) == len(listed.cuts)
    assert value(place, None) is None


def test_bins_end_at_round_numbers_within_what_is_public() -> None:
    assert bins(0.0, 100.0, True).ends == (0, 0, 1, 2, 5, 10, 20, 50, 100)
    assert bins(-7.0, 3.0, True).ends == (-7, -5, -2, -1, 0, 0, 1, 2, 3)
    assert bins(0.0, 0.003, False).ends[-3:] == (0.001, 0.002, 0.003) and bins(0.0, 0.003, False).ends[:2] == (0, 1e-9)
    assert bins(None, None, True).ends[0] == -1e18 and len(bins(None, None, False).cuts) < 200


def test_the_outermost_bins() -> None:
    counts = np.array([0.0, 3, 0, 12, 50, 4, 30, 6, 1, 20, 0])
    assert outermost(counts, 10, 5) == (3, 9)
    assert outermost(counts, 25, 5) == (3, 7)  # on from 4 to 3 and from 6 to 7, not beyond 8
    assert outermost(counts, 25, 13) == (4, 6)
    assert outermost(counts, 100, 100) == (4, 4)  # the largest, where none stands out
    assert outermost(np.zeros(3), 10, 5) == (0, 0) and outermost(np.array([-2.0]), 1, 1) == (0, 0)


def run(monkeypatch: pytest.MonkeyPatch, frame: pd.DataFrame, program: str, described: str, budget: str) -> Result:
    monkeypatch.setattr(exposures, "SecureNoise", lambda: SeededNoise(11))
    session = Session()
    session.bind("t", frame)
    text = f'private t = bound("t") described by {{{described}}} protecting rows budget {budget}\n{program}\n'
    return session.attempt(Source("b.jst", text))


@pytest.mark.parametrize(
    ("budget", "amount"), [("epsilon 1", "epsilon 0.5"), ("rho 1", "rho 0.1"), ("epsilon 1, delta 1e-6", "epsilon 0.5")]
)
def test_an_open_column_is_summed_between_them(monkeypatch: pytest.MonkeyPatch, budget: str, amount: str) -> None:
    pay = np.concatenate([np.linspace(1_000, 90_000, 3_000), [np.nan] * 50])
    program = f"""
b = {{{{ select bounds(pay) from t with {amount} }}}}
s = {{{{ select sum(clamp(pay, b.low, b.high)) from t with {amount} }}}}
release b
release s
"""
    result = run(monkeypatch, pd.DataFrame({"pay": pay}), program, "pay: real", budget)
    assert result.ok and result.released["b"]["high"] == 100_000 and result.released["b"]["low"] in (500, 1_000)
    assert result.released["s"] == pytest.approx(np.nansum(pay), rel=0.05)
    (event,) = [e for e in result.events if e.kind == "measure" and e.name == "bounds"]
    assert event.fields["sensitivity"] == 1


@pytest.mark.parametrize("values", [[], [np.nan], [np.inf, -np.inf], [1e300], [5e-324, -5e-324], [-0.0], [2.0**62] * 9])
def test_no_data_make_it_fail(monkeypatch: pytest.MonkeyPatch, values: list[float]) -> None:
    frame = pd.DataFrame({"x": np.array(values, dtype=float), "c": ["a"] * len(values)})
    for described, x in itertools.product(("x: real, c: {'a', 'b'}", "x: integer, c: {'a', 'b'}"), ("x", "x * x", "1")):
        program = f"b = {{{{ select bounds({x}) as y from t groupby c with epsilon 1 }}}}\nrelease b"
        result = run(monkeypatch, frame, program, described.replace("'", '"'), "epsilon 1")
        assert result.ok, result.diagnostics
        assert all(y["low"] <= y["high"] for y in result.released["b"]["y"])


def test_of_public_rows_they_are_exact() -> None:
    session = Session()
    session.bind("t", pd.DataFrame({"x": [3.0, 17.5, -2.0]}))
    result = session.attempt(Source("b.jst", 't = bound("t")\nb = {{ select bounds(x) from t }}\nrelease b\n'))
    assert result.released["b"] == {"low": -2.0, "high": 17.5}
