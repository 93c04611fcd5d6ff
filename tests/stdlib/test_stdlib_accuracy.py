"""Bands of released answers hold the truth as often as they say; measured on simulated, seeded runs."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from jostle.diagnostics import Refusal
from jostle.source import Source
from jostle.tools.session import Session

RUNS = 150
LINE = np.random.default_rng(1).integers(40, 90, 32)
SPARSE = np.where(np.arange(32) % 5 == 0, LINE, 0)
PLANE = np.random.default_rng(2).integers(40, 90, (4, 3, 4))
USES = "use histograms\nuse hierarchies\nuse grids\n"
SHARED = """\
private c = bound("c") protecting rows budget epsilon 1000000
private s = bound("s") protecting rows budget epsilon 1000000
private d = bound("d") protecting rows budget epsilon 1000000
r = ranges(c, 40)
p = predicates(c, x > 3, [x % 4 == v for v in 0..3], x in {1, 5, 9})
m = marginals(d, 2)
u = union([marginals(d, [["x"], ["z"]]), predicates(d, x + y > 3)], [1, 2])
"""


def session() -> Session:
    made = Session(simulate=11)
    for name, counts in (("c", LINE), ("s", SPARSE), ("d", PLANE)):
        made.bind(name, counts)
    made.execute(Source("accuracy", USES + SHARED))
    return made


@lru_cache(maxsize=20)
def coverage(option: str, cube: str, queries: str, epsilon: float = 0.5) -> tuple[float, float]:
    """The share of answers inside their 95 % band, and the mean square of error over standard error."""
    made, counts = session(), {"c": LINE, "s": SPARSE, "d": PLANE}[cube]
    text = f"a = {option}({cube}, {queries}) with epsilon {epsilon}\nb = band(a)\ne = standard_error(a)\n"
    program = Source("accuracy", text)
    truth = made.names()[queries].answers(counts)
    inside, squares = [], []
    for _ in range(RUNS):
        made.execute(program)
        known = made.names()
        inside.append((known["b"]["low"] <= truth) & (truth <= known["b"]["high"]))
        squares.append(((known["a"] - truth) / known["e"]) ** 2)
    return float(np.mean(inside)), float(np.mean(squares))


UNBIASED = [("flat", "c", "r"), ("hb", "c", "r"), ("hdmm", "c", "r"), ("greedy_h", "c", "r"),
            ("quadtree", "c", "r"), ("privelet", "c", "r"), ("hb", "c", "p"), ("hdmm", "c", "p"), ("hdmm", "d", "m"),
            ("flat", "d", "u"), ("hdmm", "d", "u")]  # fmt: skip


@pytest.mark.slow(only=["greedy_h-c-r", "quadtree-c-r", "privelet-c-r", "hdmm-c-p", "hdmm-d-u"])
@pytest.mark.parametrize(("option", "cube", "queries"), UNBIASED, ids=str)
def test_a_band_covers_and_a_standard_error_is_one(option: str, cube: str, queries: str) -> None:
    """Counts are far from 0, so that nothing is cut off. The seed is fixed: 150 runs of dependent answers."""
    inside, square = coverage(option, cube, queries)
    assert 0.93 <= inside <= 0.985
    assert 0.85 <= square <= 1.15


def test_a_band_covers_where_noise_is_a_billionth_of_the_rows() -> None:
    """The seed is fixed. Sums were rounded after they were fitted: 5 % of such answers were inside."""
    made = Session(simulate=9)
    counts = np.random.default_rng(9).integers(0, 2 * 10**6, 1024)
    made.bind("c", counts)
    made.execute(Source("many", f'{USES}private c = bound("c") protecting rows budget epsilon 10\n'
                        "q = ranges(c, 500)\na = hdmm(c, q) with epsilon 10\nb = band(a)\n"))  # fmt: skip
    known = made.names()
    truth = known["q"].answers(counts)
    assert np.mean((known["b"]["low"] <= truth) & (truth <= known["b"]["high"])) >= 0.85


@pytest.mark.parametrize("option", ["hb", "hdmm"])
def test_where_cells_are_cut_at_zero_the_squared_error_is_smaller(option: str) -> None:
    inside, square = coverage(option, "s", "r", 0.1)
    assert inside >= 0.93 and square < 0.95


@pytest.fixture(scope="module")
def one() -> Session:
    return session()


def value(one: Session, text: str) -> Any:
    one.execute(Source("accuracy", f"it = {text}\n"))
    return one.names()["it"]


def test_the_surface(one: Session) -> None:
    one.execute(
        Source("accuracy", "a = flat(c, identity(c)) with epsilon 0.5\nn = laplace(size(c)) with epsilon 0.5\n")
    )
    whole = math.sqrt(2 * math.exp(-0.5)) / (1 - math.exp(-0.5))  # of discrete Laplace noise of scale 2
    np.testing.assert_allclose(value(one, "standard_error(a)"), whole)
    np.testing.assert_allclose(value(one, "error(a)"), 2 * math.log(20))
    assert value(one, "error(n)") == 6  # the noise of a count is whole
    assert value(one, "standard_error(n)") == pytest.approx(whole)
    assert value(one, "band(n).high - n") == 6
    assert list(value(one, "error([n, n])")) == [6, 6]
    np.testing.assert_allclose(value(one, "band(a, level = 0.5).high - a"), 0.6744897501960817 * 2 * math.sqrt(2))
    cells = value(one, "standard_error(hb_cells(c, r) with epsilon 0.5)")
    assert cells.shape == (32,) and (cells > whole).all()
    assert value(one, "standard_error(laplace(c, hb_strategy(c), epsilon = 2).answers[0])").max() == pytest.approx(
        math.sqrt(2) / 2
    )


def test_public_answers_have_no_error() -> None:
    made = Session()
    made.bind("c", LINE)
    made.execute(Source("accuracy", 'use histograms\nc = bound("c")\ne = error(hb(c, prefixes(c)))\n'))
    assert made.names()["e"].max() == 0


@pytest.mark.parametrize(
    "asked",
    [
        "error(dawa(c, r) with epsilon 1)",
        "error(mwem(c, r, rounds = 2) with epsilon 1)",
        "error(2 * (hb(c, r) with epsilon 1))",
        "standard_error([1, 2])",
        "band(3)",
        "error([])",
        "error(answer(marginals(d, 3), (hdmm_cells(d, marginals(d, 1)) with epsilon 1)))",
    ],
)
def test_what_has_no_known_error_is_refused(one: Session, asked: str) -> None:
    with pytest.raises(Refusal) as refused:
        one.execute(Source("accuracy", f"it = {asked}\n"))
    assert refused.value.diagnostics[0].kind == "TypeError"


def test_a_band_has_a_level_between_0_and_1(one: Session) -> None:
    with pytest.raises(Refusal) as refused:
        one.execute(Source("accuracy", "it = band(laplace(size(c), epsilon = 1), level = 95)\n"))
    assert refused.value.diagnostics[0].kind == "ValueError"


def test_a_rehearsal_cannot_charge_a_private_source() -> None:
    made = Session()
    made.bind("c", LINE)
    made.execute(
        Source("accuracy", USES + 'private c = bound("c") protecting rows budget epsilon 9\nr = ranges(c, 4)\n')
    )
    with pytest.raises(Refusal) as refused:
        value(made, "bootstrap([1 for i in 1..32], lambda db, queries: hb(c, queries), r, epsilon = 1)")
    assert refused.value.diagnostics[0].kind == "PrivateValue"
    assert value(made, "spent(c)") == 0


# bootstrap ----------------------------------------------------------------------------------------


def test_the_bootstrap_of_an_unbiased_option_is_its_standard_error(one: Session) -> None:
    one.execute(Source("accuracy", "x = hdmm_cells(c, r) with epsilon 0.5\ne = standard_error(answer(r, x))\n"))
    spent = value(one, "spent(c)")
    made = value(one, "bootstrap(x, hdmm, r, epsilon = 0.5, runs = 300)")
    assert value(one, "spent(c)") == spent
    assert np.mean(made["standard_error"] ** 2) == pytest.approx(np.mean(one.names()["e"] ** 2), rel=0.2)
    assert np.abs(made["bias"]).max() < 1.5
    again = value(one, "bootstrap(x, hdmm, r, epsilon = 0.5, runs = 300)")
    np.testing.assert_array_equal(made["error"], again["error"])


def test_the_bootstrap_knows_what_an_option_smooths_away(one: Session) -> None:
    """`uniform` on a spike: the error is the bias."""
    made = value(one, "bootstrap([0 for i in 1..31] + [320], uniform, identity(c), epsilon = 100, runs = 5)")
    np.testing.assert_allclose(made["bias"], [10.0] * 31 + [-310.0], atol=0.5)
    np.testing.assert_allclose(made["standard_error"], np.abs(made["bias"]), atol=0.5)
    one.execute(Source("accuracy", "Even = Option (data) { return uniform(data.database, data.queries) }\n"))
    text = "bootstrap([0 for i in 1..32], Even, identity(c), epsilon = 1, runs = 2)"
    assert value(one, text)["bias"].shape == (32,)


@pytest.mark.parametrize(
    ("asked", "kind"),
    [
        ("bootstrap(c, hb, r, epsilon = 1)", "PrivateValue"),
        ("bootstrap([1, 2], hb, r, epsilon = 1)", "ValueError"),
        ("bootstrap([1 for i in 1..32], hb, 3, epsilon = 1)", "TypeError"),
        ("bootstrap([1 for i in 1..32], hb, r)", "NoEpsilon"),
        ("bootstrap([1 for i in 1..32], hb, r, epsilon = -1)", "BadAmount"),
        ("bootstrap([1 for i in 1..32], lambda db, queries: [1], r, epsilon = 1)", "ValueError"),
        ("bootstrap([1e300 for i in 1..32], hb, r, epsilon = 1)", "ValueError"),
    ],
)
def test_what_cannot_be_rehearsed(one: Session, asked: str, kind: str) -> None:
    with pytest.raises(Refusal) as refused:
        one.execute(Source("accuracy", f"it = {asked}\n"))
    assert refused.value.diagnostics[0].kind == kind


@pytest.mark.parametrize(("full", "marked"), [(56, False), (6, True)])
def test_errors_are_marked_where_full_cells_give_to_empty_ones(full: int, marked: bool) -> None:
    made = Session(simulate=3)
    made.bind("c", np.where(np.arange(64) < full, 100, 0))
    program = """private c = bound("c") protecting rows budget epsilon 9
x = hdmm_cells(c, identity(c)) with epsilon 0.3
e = error(x[2])
public = error(hdmm_cells(counts([9, 0, 0]), identity(counts([9, 0, 0]))))
"""
    made.execute(Source("accuracy", USES + program))
    known = made.names()
    assert (np.asarray(known["x"]) == 0).mean() > 0.5 if marked else np.asarray(known["x"])[:40].min() > 0
    assert bool(known["x"].cut) is marked and (type(known["e"]).__name__ == "Marked") is marked
    assert not known["public"].max() and type(known["public"]).__name__ == "ndarray"
