"""Every measurement in a trace says how wide its noise is: mechanism, sensitivity, scale, and what it was given."""

from __future__ import annotations

import numpy as np
import pytest

from jostle.source import Source
from jostle.tools.session import Session

PROGRAM = """\
use histograms
private c = bound("c") protecting rows budget epsilon 1000
private t = bound("t") described by {v: 0..9, k: {"a", "b"}, w: text} protecting rows budget epsilon 1000, delta 0.01
q = ranges(c, 10)
a1 = {{ select sum(values) from c groupby x / 2 with epsilon 1 }}
a2 = laplace(c) with epsilon 1
a3 = laplace(size(c)) with epsilon 1
a4 = noisy_max([size(c), largest_cell(c)]) with epsilon 1
a5 = least_cost_partition(c) with epsilon 1
a6 = hdmm(c, q) with epsilon 1
a7 = mwem(c, q, rounds = 3) with epsilon 1
b1 = {{ select count(*) as n, sum(v) as s from t groupby k with epsilon 1 }}
b2 = {{ select avg(v), stddev(v) from t with epsilon 1 }}
b3 = {{ select median(v) from t with epsilon 1 }}
b4 = {{ select mode(v) from t with epsilon 1 }}
b5 = {{ select count(*) from t groupby w with epsilon 1 delta 0.001 }}
b6 = {{ select count(*) from t with epsilon 1 delta 0.001 via gaussian }}
"""


@pytest.fixture(scope="module")
def measured() -> list[dict[str, object]]:
    import pandas

    session = Session()
    session.bind("c", np.arange(16))
    session.bind("t", pandas.DataFrame({"v": [1, 2, 3] * 40, "k": ["a", "b", "b"] * 40, "w": ["x"] * 120}))
    result = session.run(Source("p.jst", PROGRAM))
    return [{"name": e.name, **e.fields} for e in result.trace if e.kind == "measure"]


def test_every_measurement_says_its_scale(measured: list[dict[str, object]]) -> None:
    assert {"sum", "vector", "size", "selection", "partition", "count", "median", "mode"} <= {
        str(m["name"]) for m in measured
    }
    for one in measured:
        assert isinstance(one["scale"], float) and 0 < one["scale"] < np.inf, one
        assert isinstance(one["sensitivity"], (int, float)) and one["sensitivity"] > 0, one
        assert one["mechanism"] and one["sources"] and one["stability"] == 1, one
        assert one["epsilon"] > 0, one  # type: ignore[operator]


def test_laplace_scales_are_sensitivity_over_epsilon(measured: list[dict[str, object]]) -> None:
    plain = [m for m in measured if m["mechanism"] == "laplace" and m["name"] in ("sum", "vector", "size", "count")]
    assert len(plain) > 5
    for one in plain:
        if one["sources"] == ["c"]:
            assert one["scale"] == pytest.approx(one["sensitivity"] / one["epsilon"], rel=1e-6)  # type: ignore[operator]
