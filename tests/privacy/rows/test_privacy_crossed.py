"""Slopes times features over rows of codes: exact, the same as the definition, and moved by a row by at most one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from jostle.integers import fixed_width
from jostle.kernels.rowprograms import CONTRIBUTIONS, GRADIENTS
from jostle.privacy.rows import factored as mechanism
from jostle.privacy.rows.expressions import RowProgramError, columns, reshape
from jostle.privacy.rows.factored import CodedRows, FactoredGradient, coded, gradient_scores, grouped, patterns
from jostle.privacy.rows.norms import GRID, whole_slopes
from jostle.privacy.rows.program import program


def _sums(rows: CodedRows, gradient: FactoredGradient, bound: float) -> Any:
    return fixed_width(gradient_scores(rows, gradient, bound))


UNIT = 2**30


def units(codes: np.ndarray, values: tuple[int, ...]) -> np.ndarray:
    """Codes (n, d) as the vault has rows: within ±1, rounded toward zero."""
    return np.trunc((2 * codes / (np.array(values) - 1) - 1) * GRID).T.astype(float)


def rows_of(values: tuple[int, ...], many: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.stack([rng.integers(0, v, many) for v in values], axis=1)


def field(values: tuple[int, ...], target: int, seed: int = 0, size: float = 0.5) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    weights = rng.normal(0, size, (values[target], len(values), max(values)))
    return {"target": target, "values": values, "weights": weights}


@pytest.mark.parametrize("values", [(2, 2), (3, 2, 4, 2), (2,) * 25, (4,) * 8, (64, 2, 2), (5, 3) * 40])
def test_rows_are_kept_once_with_how_many_there_are(values: tuple[int, ...]) -> None:
    codes = rows_of(values, 300)
    codes = np.concatenate([codes, codes[:100], codes[:7]])
    found = coded([units(codes[:130], values), units(codes[130:], values)], values)
    assert found.times.sum() == len(codes)
    made = np.repeat(found.columns.T, found.times, axis=0)
    assert sorted(map(tuple, made.tolist())) == sorted(map(tuple, codes.tolist()))
    for (first, last), group, listed in zip(grouped(values), found.groups, patterns(values), strict=True):
        assert np.array_equal(listed[:, group], found.columns[first:last])
        assert listed.shape[1] <= max(mechanism.PATTERNS, values[first])
    few = int(np.prod([float(v) for v in values])) < 2**62
    assert not few or len(np.unique(found.columns, axis=1).T) == found.columns.shape[1]


def test_no_rows_are_no_scores() -> None:
    values = (2, 2, 2)
    for batches in ([], [np.zeros((3, 0))]):
        none = coded(batches, values)
        assert not _sums(none, GRADIENTS["ising_gradient"](3, target=0, weights=[0, 1, 0]), 1.0).any()


@pytest.mark.parametrize("target", [0, 11, 12])
def test_ising_gradients_are_the_logistic_ones(target: int) -> None:
    """Thirteen columns, in two groups: the kernel for any rows says the same, up to its grid."""
    values = (2,) * 13
    codes, rng = rows_of(values, 500, 3), np.random.default_rng(1)
    weights = rng.normal(0, 0.4, 13)
    given = GRADIENTS["ising_gradient"](13, target=target, weights=weights)
    found = _sums(coded([units(codes, values)], values), given, 1.0)
    plain = CONTRIBUTIONS["logistic_gradient"](13, target=target, weights=weights)
    wanted = plain.program(units(codes, values))[0].sum(axis=1) * 2.0**-plain.bits
    assert given.size == 13 and np.abs(found / UNIT - wanted).max() < 0.01  # a margin at the edge of a table's step


@pytest.mark.parametrize("name", ["ising_gradient", "sign_gradient"])
@pytest.mark.parametrize("large", [0.5, 1e6, 1e12])
def test_one_row_moves_every_score_by_at_most_one(name: str, large: float) -> None:
    """Each row alone, also for weights that make no sense; and some come near to it."""
    values = (2,) * 4 if name == "ising_gradient" else (3, 2, 4, 2)
    parameters = {"target": 2, "weights": [large, -1, 2, 1]} if name == "ising_gradient" else field(values, 2, 4)
    if name == "sign_gradient":
        parameters["weights"][1, 1] = large
    given = GRADIENTS[name](4, **parameters)
    most = 0
    for row in np.stack(np.unravel_index(np.arange(np.prod(values)), values), axis=1):
        alone = _sums(coded([units(row[None], values)], values), given, 1.0)
        assert np.abs(alone).max() <= UNIT
        most = max(most, int(np.abs(alone).max()))
    assert most > 0.6 * UNIT
    # and a row adds the same, whatever stands beside it and however often
    codes = rows_of(values, 40, 2)
    beside = coded([units(codes, values)], values)
    more = coded([units(np.concatenate([codes, codes[3:4]]), values)], values)
    alone = _sums(coded([units(codes[3:4], values)], values), given, 1.0)
    assert np.array_equal(_sums(more, given, 1.0) - _sums(beside, given, 1.0), alone)


def test_slopes_depend_on_their_row_alone() -> None:
    values = (3, 2, 4, 2)
    codes = rows_of(values, 200, 5)
    for gradient in (
        GRADIENTS["sign_gradient"](4, **field(values, 1)),
        GRADIENTS["ising_gradient"](4, target=1, weights=[1, 2, 3, 4]),
    ):
        sums, run = gradient.program.inputs[0], gradient.program
        added = np.random.default_rng(0).integers(sums.low, sums.high, (*sums.shape, 200)).astype(float)
        own = np.minimum(codes[:, 1], gradient.values[1] - 1)
        (whole,) = run(added, own)
        for order in (np.arange(199, -1, -1), np.arange(7, 8), np.r_[3, np.arange(200)]):
            assert np.array_equal(whole[:, order], run(added[:, order], own[order])[0])


@pytest.mark.parametrize("k", [1, 3])
def test_whatever_a_kernel_gives_is_brought_within_one(k: int) -> None:
    rng = np.random.default_rng(k)
    given = rng.normal(0, 1, (k, 500)) * 10.0 ** rng.integers(-9, 9, 500)
    given[:, :4] = [[0.0, np.inf, -np.inf, 1e308]]
    given[0, 5:9] = [1, -1, 1 - 2**-31, 2**-31]
    found = whole_slopes(given)
    assert np.array_equal(found, np.trunc(found)) and (np.abs(found).sum(axis=0) <= UNIT).all()
    small = np.abs(given).max(axis=0) <= 1 / k
    assert np.abs(found[:, small] - given[:, small] * UNIT).max() <= 5  # 2^-28 smaller, and rounded


def test_many_equal_rows_are_added_exactly() -> None:
    """More than doubles hold, and more than 64 bits do."""
    given = GRADIENTS["ising_gradient"](2, target=0, weights=[0.3, -0.7])
    one = CodedRows(np.array([[1], [0]], dtype=np.uint8), np.array([[2]], dtype=np.int32), np.array([1]))
    alone = _sums(one, given, 1.0)
    assert alone.any()
    for times in (255, 256, 10**6 + 1, 2**31 + 7):
        found = _sums(CodedRows(one.columns, one.groups, np.array([times])), given, 1.0)
        assert np.array_equal(found, alone * times)
    clamped = _sums(CodedRows(one.columns, one.groups, np.array([2**40])), given, 1.0)
    assert np.array_equal(clamped, np.sign(alone) * 2**62)


def test_chunks_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    values = (4, 3, 4, 2, 4)
    rows = coded([units(rows_of(values, 700), values)], values)
    given = GRADIENTS["sign_gradient"](5, **field(values, 2))
    whole = _sums(rows, given, 1.0)
    monkeypatch.setattr(mechanism, "CHUNK", 37)
    assert np.array_equal(_sums(rows, given, 1.0), whole)


def test_a_bound_scales_what_is_clipped() -> None:
    values = (2, 2, 2)
    rows = coded([units(rows_of(values, 50), values)], values)
    given = GRADIENTS["ising_gradient"](3, target=0, weights=[0, 0, 0])  # slopes of ½
    assert np.array_equal(_sums(rows, given, 0.5), 2 * _sums(rows, given, 1.0))
    assert np.array_equal(_sums(rows, given, 0.25), _sums(rows, given, 0.5))


@pytest.mark.parametrize(("name", "parameters"), [
    ("ising_gradient", {"target": 0, "weights": [1, 2]}), ("ising_gradient", {"target": 3, "weights": [1, 2, 3]}),
    ("ising_gradient", {"target": -1, "weights": [1, 2, 3]}), ("ising_gradient", {"weights": [1, 2, 3]}),
    ("sign_gradient", field((3, 2), 0)), ("sign_gradient", field((2, 2, 2), 0) | {"values": (2, 2, 3)}),
    ("sign_gradient", field((2, 2, 2), 0) | {"weights": "no"}),
    ("sign_gradient", {"target": 0, "values": (65, 2, 2), "weights": np.zeros((65, 3, 65))}),
])  # fmt: skip
def test_parameters_that_do_not_fit_are_refused(name: str, parameters: dict[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError)):
        GRADIENTS[name](3, **parameters)


def test_features_that_are_no_signs_are_refused() -> None:
    """Features, combinations and tables of a builder are trusted no more than its slopes."""
    sums, own = columns((1,), -9, 9), columns((), 0, 1)
    signs, tables = (np.ones((2, 4), dtype=np.int64),), (np.full((1, 4), 9.0),)
    one = np.ones((1, 1), dtype=np.int64)
    facts = {"name": "wild", "values": (2, 2), "target": 0, "program": program([sums, own], sums), "bits": 0}
    sound = {"combinations": one, "features": signs, "tables": tables}
    rows = coded([units(np.array([[0, 1]]), (2, 2))], (2, 2))
    assert _sums(rows, FactoredGradient(**facts, **sound), 1.0).tolist() == [UNIT, UNIT]  # 9 is cut down to 1
    twice = program([sums, own], reshape(sums, (1, 1)))
    for wrong in (
        {"combinations": 9 * one}, {"features": (-7 * signs[0],)}, {"tables": (np.full((1, 4), 10.0),)},
        {"features": (signs[0][:, :3],)}, {"target": 2}, {"values": (2, 65)}, {"program": twice},
    ):  # fmt: skip
        with pytest.raises((RowProgramError, ValueError)):
            FactoredGradient(**{**facts, **sound, **wrong})
