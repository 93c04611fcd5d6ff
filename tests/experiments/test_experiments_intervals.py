"""Intervals hold the exact answer as often as they say; the whole table is made by `tests.experiments.intervals`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.experiments import intervals, joint_errors, select_coverage

RUNS = 60


@pytest.mark.slow(but=[r"\u03b5 0.1"])
@pytest.mark.parametrize("setting", intervals.SETTINGS[1:3], ids=lambda setting: setting.title)
def test_intervals_hold_the_exact_answer(setting: intervals.Setting) -> None:
    """At a true coverage of 94 % one of them would fail with a probability below 1e-6."""
    from scipy.stats import binom

    shares = intervals.coverage(setting, RUNS)
    least = binom.ppf(1e-6 / (2 * len(shares)), RUNS, 0.94) / RUNS
    assert least > 0.7 and {name: share for name, share in shares.items() if share < least} == {}


def test_intervals_hold_a_quantile() -> None:
    """Each holds at least 95 %: the chance that all but 44 of 60 do is below 1e-6."""
    from scipy.stats import binom

    assert binom.cdf(44, RUNS, 0.95) < 1e-6
    assert intervals.bracketed(intervals.QUANTILES[1], RUNS)["inside"] * RUNS > 44


@pytest.mark.parametrize(("part", "page"), [
    ("errors", joint_errors.PAGE), ("nonnegative", joint_errors.PAGE), ("selects", select_coverage.PAGE),
    ("quantiles", select_coverage.PAGE), ("cuts", select_coverage.PAGE),
])  # fmt: skip
def test_what_is_written_into_a_page_leaves_the_rest(part: str, page: Path, tmp_path: Path) -> None:
    text = page.read_text(encoding="utf-8")
    before, after = text.split(f"<!-- {part} -->\n")[0], text.split(f"<!-- end of {part} -->")[1]
    (tmp_path / "page.md").write_text(text, encoding="utf-8")
    joint_errors.write(part, "| a |", tmp_path / "page.md")
    written = f"{before}<!-- {part} -->\n| a |\n<!-- end of {part} -->{after}"
    assert (tmp_path / "page.md").read_text(encoding="utf-8") == written
