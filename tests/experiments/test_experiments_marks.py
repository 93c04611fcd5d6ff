"""The options stay as good as they were measured to be: DPBench's marks, with seeded data and noise."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.experiments import dpbench
from tests.experiments.program_bench import bench

pytestmark = pytest.mark.skipif(not dpbench.DATA.is_dir(), reason="DPBench's vectors are not beside the repository")


def error(option: str, rows: float, trials: int = 3) -> float:
    """The geometric mean over the six sets of the mean scaled error × 1e6, at ε = 0.1."""
    made = bench(1, [option], data=dpbench.SIX, rows=[rows])
    means = []
    for d in range(len(dpbench.SIX)):
        (scale,) = made.scales(d)
        runs = [(made.instance(d, scale, 10 * trial + d), trial) for trial in range(trials)]
        means.append(np.mean([-made.utility(x, made.answer(0, x, 0.1, 100 * trial + d)) for x, trial in runs]))
    return dpbench.geometric_mean(means)


@pytest.mark.slow(but=["dawa-100000.0-19"])
@pytest.mark.parametrize(("option", "rows", "most"), [
    ("dawa", 1e3, 1200), ("dawa", 1e5, 19), ("hdmm", 1e5, 21), ("hb", 1e5, 30), ("mwem", 1e3, 2700), ("mwem", 1e5, 105),
])  # fmt: skip
def test_an_option_is_within_its_mark(option: str, rows: float, most: float) -> None:
    assert error(option, rows) < most


def test_mwem_takes_more_rounds_where_they_pay() -> None:
    made = bench(1, ["mwem"], data=["HEPTH"], rows=[1e6])
    (scale,) = made.scales(0)
    x = made.instance(0, scale, 3)
    assert -made.utility(x, made.answer(0, x, 0.1, 5)) < 0.7 * -made.utility(x, made.answer(0, x, 0.01, 5))
