"""`use economics`: the figures are those of the model, and studies at the least epsilon fail as seldom as they may."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from jostle.source import Source
from jostle.tools.session import Session

ROOT = Path(__file__).resolve().parents[2]


def test_the_feasible_region_is_that_of_the_model(tmp_path: Path) -> None:
    result = Session(cwd=tmp_path).run(ROOT / "programs" / "economics.jst")
    study = result["study"]
    loss, budget, within = 20.0, 30_000.0, 0.05
    for line in study["lines"]:
        n = line["rows"]
        assert line["most"] == pytest.approx(math.log(1 + budget / (n * loss)))
        left = 0.05 - 2 * math.exp(-n * within**2 / 2)
        if left <= 0:
            assert line["least"] is None and line["feasible"] is False
            continue
        assert line["least"] == pytest.approx(-2 * math.log(left) / (n * within))
        assert line["feasible"] is (n * loss * math.expm1(line["least"]) <= budget)
    assert study["rows"] == min(line["rows"] for line in study["lines"] if line["feasible"])
    assert study["cost"] == pytest.approx(study["rows"] * loss * math.expm1(study["epsilon"]))
    assert float(result.budget["people"]["epsilon"]["spent"]) == pytest.approx(study["epsilon"])


def test_a_study_at_the_least_epsilon_fails_no_more_often() -> None:
    """Hoeffding's bound is loose: 20,000 seeded studies of 3,162 people fail less often than 5 %, and the noise alone
    as often as it says."""
    n, within, rng = 3162, 0.05, np.random.default_rng(3)
    sampling = 2 * math.exp(-n * within**2 / 2)
    epsilon = -2 * math.log(0.05 - sampling) / (n * within)
    noise = rng.laplace(0, 1 / epsilon, 20_000) / n
    off = rng.binomial(n, 0.3, 20_000) / n - 0.3 + noise
    assert (np.abs(off) > within).mean() < 0.05
    assert (np.abs(noise) > within / 2).mean() == pytest.approx(0.05 - sampling, rel=0.25)


def test_any_chance_of_a_wrong_answer_will_do_and_none_is_said() -> None:
    text = """use economics
small = economics(10, 1, 5, [100, 1000], failure = lambda epsilon, n: exp(-5 * epsilon))
large = economics(10, 10000, 5, [100, 1000], failure = lambda epsilon, n: exp(-5 * epsilon))
never = least_epsilon(lambda epsilon: 0.5)
assert small.rows == none and small.epsilon == none and small.cost == none and never == none
assert large.rows == 100 and abs(large.epsilon - log(20) / 5) < 0.000001
assert abs(cost_of_taking_part(most_epsilon(100, 10, 10000), 10) - 100) < 0.000001
bad = economics(0, 1, 5, [100])
"""
    result = Session().attempt(Source("e.jst", text))
    assert result.diagnostics[0].kind == "AssertionFailed" and "larger than 0" in result.diagnostics[0].message
