"""Rows over bins spread over their bins: within the bounds, evenly, and back in the bin that they came from."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from jostle.kernels.graphical.domain import Domain
from jostle.kernels.graphical.model import SyntheticRows, graphical_model
from jostle.kernels.graphical.synthetic import model_of_means, random_model, unbinned_rows


def binned(bins: int, many: int = 6000) -> SyntheticRows:
    codes = np.stack([np.arange(many) % bins, np.arange(many) % 2], axis=1)
    return SyntheticRows(Domain.of({"v": bins, "s": ["F", "M"]}), codes)


@pytest.mark.parametrize(("edges", "low", "high", "whole"), [
    ([3.2, 5, 9.9], 0, 20, True), ([10.5], 10, 11, True), ([0.25, 0.5], -1.0, 1.0, False),
    ([1000, 2_000_000], 0, 5_000_000, True),
])  # fmt: skip
def test_a_number_is_in_its_bin(edges: list[float], low: float, high: float, whole: bool) -> None:
    rows = binned(len(edges) + 1)
    made = unbinned_rows(rows, {"v": edges}, {"v": [low, high, whole]}, 1)
    values = np.array(made.column("v"))
    assert (np.searchsorted(edges, values, side="right") == rows.codes[:, 0]).all()
    assert values.min() >= low and values.max() <= high and (not whole or (values == np.floor(values)).all())
    assert made.column("s") == rows.column("s") and made.domain.names == rows.domain.names
    again = unbinned_rows(rows, {"v": edges}, {"v": [low, high, whole]}, 1)
    assert again.column("v") == made.column("v")


def test_values_of_a_bin_are_as_likely_as_each_other() -> None:
    made = unbinned_rows(binned(2, 40_000), {"v": [4]}, {"v": [0, 9, True]}, 3)
    table = made.table("v")
    # 20,000 over 4 values and over 6; six deviations of a binomial
    assert np.abs(table[:4] - 5000).max() < 6 * np.sqrt(5000) and np.abs(table[4:] - 20_000 / 6).max() < 6 * 58
    assert len(table) == 10 and table.sum() == 40_000


def test_a_bin_that_holds_nothing_is_the_nearest_there_is() -> None:
    """Noise can put simulated rows where no row can be."""
    made = unbinned_rows(binned(4), {"v": [-5, 2.2, 2.7]}, {"v": [0, 9, True]}, 1)
    by_bin = [{v for v, c in zip(made.column("v"), binned(4).codes[:, 0], strict=True) if c == b} for b in range(4)]
    assert by_bin == [{0.0}, {0.0, 1.0, 2.0}, {3.0}, set(map(float, range(3, 10)))]


@pytest.mark.parametrize(("low", "high", "whole"), [(0.0, 10.0, False), (0, 10, True), (0, 5_000_000, True)])
@pytest.mark.parametrize("share", [0.02, 0.3, 0.5, 0.93, 1.0])
def test_a_bin_has_the_mean_that_it_is_given(low: float, high: float, whole: bool, share: float) -> None:
    edge = (low + high) / 2
    mean = edge + share * (high - edge)
    means = {"v": {"bins": [low, mean]}}
    made = unbinned_rows(binned(2, 40_000), {"v": [edge]}, {"v": [low, high, whole]}, 5, means)
    values = np.array(made.column("v"))
    below, above = values[0::2], values[1::2]
    assert low <= below.min() and below.mean() <= low + (edge - low) / 100
    # 20,000 draws of a bin as wide as high − edge: six deviations; a mean within a 500th of an end is that end
    assert abs(above.mean() - mean) < 6 * (high - edge) / np.sqrt(20_000) + (high - edge) / 400
    assert above.min() >= edge and above.max() <= high


def test_a_model_has_the_means_that_it_is_given() -> None:
    """Both columns at once, though they lean on each other; what is known of one given the other stays."""
    truth = random_model(graphical_model({"a": 6, "b": 5}, [["a"], ["b"], ["a", "b"]]), 2)
    means = {"a": {"mean": 1.2, "bins": [0, 1, 2, 3, 4, 5]}, "b": {"mean": 3.5, "bins": [0, 1, 2, 3, 4]}}
    tilted = model_of_means(truth, means)
    assert tilted.marginal("a") @ np.arange(6) == pytest.approx(1.2, abs=1e-3)
    assert tilted.marginal("b") @ np.arange(5) == pytest.approx(3.5, abs=1e-3)
    odds = [np.log(m.marginal("a", "b")) for m in (truth, tilted)]
    crossed = [o[1:, 1:] - o[:1, 1:] - o[1:, :1] + o[:1, :1] for o in odds]
    np.testing.assert_allclose(crossed[0], crossed[1], atol=1e-8)
    with pytest.raises(ValueError, match="no clique of the model by itself"):
        model_of_means(graphical_model({"a": 6, "b": 5}, [["a", "b"]]), means)


@pytest.mark.parametrize(("rows", "cuts", "columns", "said"), [
    ([[1.0]], {"v": [1]}, {"v": [0, 1, True]}, "synthetic rows"),
    (binned(2), {"w": [1]}, {"v": [0, 1, True]}, "no numeric column `w`"),
])  # fmt: skip
def test_what_cannot_be_spread(rows: Any, cuts: Any, columns: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        unbinned_rows(rows, cuts, columns)
