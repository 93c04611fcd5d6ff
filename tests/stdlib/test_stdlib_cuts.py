"""The options of `cuts`: what they spend and find, their shapes and refusals; and strategies that are stored."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jostle.kernels.histograms import strategies
from jostle.kernels.workloads import boxes as workloads
from jostle.run import externals
from jostle.source import Source
from jostle.tools.session import Session

USES = "use cuts\n"
LINES, CUBES = [(1,), (2,), (7,), (100,)], [(1, 1), (1, 9), (5, 9), (16, 16)]
OPTIONS = ("privtree", "dawa_boxes")
CASES = [(name, shape) for shape in LINES + CUBES for name in OPTIONS]


@cache
def ran(shape: tuple[int, ...]) -> tuple[np.ndarray, dict[str, Any]]:
    """All options at an epsilon that leaves no noise to speak of, on one source."""
    x = np.random.default_rng(0).integers(0, 50, shape)
    session = Session()
    session.bind("c", x)
    text = [USES, 'private c = bound("c") protecting rows budget epsilon 1000000', "q = ranges(c, 50)"]
    for name in OPTIONS:
        text += [
            f"before = spent(c)\n{name}_answers = {name}(c, q) with epsilon 10000\n{name}_spent = spent(c) - before",
            f"{name}_found = {name}_cells(c, q) with epsilon 100000",
        ]
    session.execute(Source("options", "\n".join(text) + "\n"))
    return x, session.names()


@pytest.mark.parametrize(("name", "shape"), CASES)
def test_an_option_spends_its_allotment_and_finds_the_truth(name: str, shape: tuple[int, ...]) -> None:
    x, known = ran(shape)
    assert known[f"{name}_spent"] == pytest.approx(10000, abs=1e-6)
    assert known[f"{name}_spent"] <= 10000
    cells = np.asarray(known[f"{name}_found"])
    assert cells.shape == shape and cells.min() >= 0
    np.testing.assert_allclose(cells, x, atol=0.1)
    np.testing.assert_allclose(known[f"{name}_answers"], known["q"].answers(x), atol=1, rtol=0.01)


@pytest.mark.parametrize("name", OPTIONS)
def test_an_option_works_under_noise_and_on_public_data(name: str) -> None:
    session = Session()
    session.bind("c", np.random.default_rng(1).integers(0, 5, 42))
    session.bind("d", np.random.default_rng(1).integers(0, 5, 42))
    session.execute(
        Source(
            "options",
            f'{USES}private c = bound("c") protecting rows budget epsilon 1\nd = bound("d")\nq = ranges(c, 20)\n'
            f"noisy = {name}_cells(c, q) with epsilon 0.01\npublic = {name}_cells(d, q) with epsilon 1\n",
        )
    )
    for found in ("noisy", "public"):
        cells = np.asarray(session.names()[found])
        assert cells.shape == (42,) and np.isfinite(cells).all() and cells.min() >= 0


def test_strategies_are_kept_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOSTLE_CACHE", str(tmp_path))
    monkeypatch.setattr(externals, "AT_HAND", 1)
    made = []

    def kernel(queries: Any, times: int = 3) -> Any:
        made.append(times)
        return [{"kind": "groups", "labels": np.arange(4), "size": 4, "weight": float(times)}]

    def call(*args: Any) -> Any:
        return externals.stored("kernel", kernel, args, {})

    first, again = call(workloads.ranges(4, 5)), call(workloads.ranges(4, 5))
    assert len(made) == 1 and again[0]["weight"] == 3 and again[0]["labels"].tolist() == first[0]["labels"].tolist()
    call(workloads.ranges(4, 6)), call(workloads.prefixes(4)), call(workloads.ranges(4, 5), 7)
    assert made == [3, 3, 3, 7]
    for path in (tmp_path / "strategies").iterdir():  # damaged files are made anew
        path.write_bytes(path.read_bytes()[:50])
    assert call(workloads.ranges(4, 5))[0]["size"] == 4 and len(made) == 5
    monkeypatch.setattr(externals, "LIMIT", 3000)
    call(workloads.ranges(4, 9))
    assert sum(path.stat().st_size for path in (tmp_path / "strategies").iterdir()) <= 3000
    monkeypatch.setenv("JOSTLE_CACHE", "/dev/null/no")
    assert call(workloads.ranges(4, 5))[0]["size"] == 4  # a folder that cannot be


def test_a_stored_strategy_is_the_one_that_was_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOSTLE_CACHE", str(tmp_path))
    one = externals.stored("hdmm_strategy", strategies.hdmm_strategy, (workloads.ranges(64),), {})
    externals._LATEST.clear()
    other = externals.stored("hdmm_strategy", strategies.hdmm_strategy, (workloads.ranges(64),), {})
    assert len(list((tmp_path / "strategies").iterdir())) == 1
    for a, b in zip(one, other, strict=True):
        assert a.keys() == b.keys()
        np.testing.assert_array_equal(
            a["weight" if "weight" in a else "matrix"], b["weight" if "weight" in b else "matrix"]
        )


def test_a_table_may_have_more_numbers_to_cut_than_steps() -> None:
    names, rng = [f"x{i}" for i in range(230)], np.random.default_rng(1)
    session = Session()
    session.bind("t", {"c": rng.choice(["no", "yes"], 50)} | {name: rng.uniform(0, 10, 50) for name in names})
    ranges = ", ".join(f"{name}: 0.0..10.0" for name in names)
    program = f"""use classifiers
private t = bound("t") described by {{c: {{"no", "yes"}}, {ranges}}} protecting rows budget epsilon 1
D = in_bins(t, equal_cuts(t, "c"))
release n = laplace(histogram(D, x229, c)) with epsilon 1
"""
    result = session.attempt(Source("p.jst", program))
    assert result.ok and result["n"].shape == (10, 2), result.diagnostics
