"""Noisy sums of vectors: exact arithmetic, sensitivities by brute force, clips that hold, and one charge for many."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from jostle.accounting.composition import exact_gaussian, of_gaussian
from jostle.diagnostics import Refusal
from jostle.kernels.rowprograms import CONTRIBUTIONS, WEIGHTS
from jostle.privacy.kernel.prepaid import mu_of
from jostle.privacy.measurements.vectors import sensitivities
from jostle.privacy.rows.factored import MomentSums, moments_of
from jostle.privacy.rows.norms import BITS, GRID, clipped, whole_frames, whole_weights, within_ball
from jostle.privacy.scores import vectorsums
from jostle.source import Source
from jostle.speed import rowstore
from jostle.tools.session import Result, Session

UNIT = 2.0**BITS
PARAMETERS: dict[str, dict[str, Any]] = {
    "one": {},
    "responsibilities": {
        "means": [[0.1, 0.2], [-0.5, 0.1]], "factors": [[[3.0, 0.0], [1.0, 2.0]], [[1.0, 0.5], [0.0, 4.0]]],
        "offsets": [0.1, -0.4],
    },
    "nearest": {"centres": [[0.3, 0.1], [-0.2, 0.4], [0.0, 0.0]]},
    "nearest_from": {"centres": [[0.3, 0.1], [-0.2, 0.4], [0.0, 0.0]], "radius": 0.5},
    "within": {"radii": [0.2, 0.5, 1.0]},
    "logistic_curvature": {"target": 1, "weights": [2.0, -0.5]},
}  # fmt: skip
PARAMETERS["framed"] = PARAMETERS["responsibilities"] | {"radius": 1.5}


def moments(units: np.ndarray, name: str, parameters: dict[str, Any]) -> list[np.ndarray]:
    """The exact sums over one batch, as the floor makes them."""
    function = WEIGHTS[name](len(units), **parameters)
    weights, *frames = function.program(units)
    sums = MomentSums(function.size, len(units), 2)
    sums.add(whole_frames(frames[0], frames[1], function.radius) if frames else units, whole_weights(weights))
    return moments_of(sums.whole())


def some_rows(n: int, d: int = 2, seed: int = 0, wide: float = 0.6) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, wide, (n, d))


# Rows in a ball ------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 2, 7, 40])
def test_rows_lie_within_the_ball_in_whole_numbers(d: int) -> None:
    rng = np.random.default_rng(d)
    rows = np.concatenate([
        rng.normal(0, 2, (3000, d)), rng.normal(0, 1, (500, d)) * 1e200, np.full((1, d), 1 / math.sqrt(d)),
        np.eye(d), -np.eye(d) * 1e308, np.zeros((1, d)), np.full((1, d), 1e-320),
    ])  # fmt: skip
    units = within_ball(rows, 1.0, "l2").astype(np.int64)
    assert units.shape == (d, len(rows))
    assert ((units * units).sum(axis=0) <= GRID * GRID).all()
    assert (np.abs(within_ball(rows, 0.5, "sup").astype(int)) <= GRID).all()


def test_rows_within_the_ball_stay_and_others_keep_their_direction() -> None:
    units = within_ball(np.array([[0.3, -0.4], [3.0, 4.0]]), 1.0, "l2") / GRID
    assert units[:, 0] == pytest.approx([0.3, -0.4], abs=2 / GRID)
    assert units[:, 1] == pytest.approx([0.6, 0.8], abs=3 / GRID)


def test_rows_with_what_is_no_number_are_left_out() -> None:
    rows = np.array([[0.1, math.nan], [math.inf, 0.0], [0.2, 0.3]])
    assert within_ball(rows, 1.0, "l2").shape == (2, 1)


# A row is a function of itself ---------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(PARAMETERS))
def test_what_a_kernel_gives_a_row_does_not_depend_on_its_place(name: str) -> None:
    units = within_ball(some_rows(301), 1.0, "l2").astype(float)
    run = WEIGHTS[name](2, **PARAMETERS[name]).program
    whole = run(units)
    shuffle = np.random.default_rng(1).permutation(units.shape[1])
    for columns in (shuffle, shuffle[:3], shuffle[:1], np.r_[7, shuffle], np.arange(1, 301)):
        there = run(units[:, columns])
        for one, other in zip(whole, there, strict=True):
            assert np.array_equal(one[..., columns], other)


def test_what_a_contribution_gives_a_row_does_not_depend_on_its_place() -> None:
    units = within_ball(some_rows(301, 5), 1.0, "l2").astype(float)
    parameters = {"target": 2, "weights": [0.3, -1.0, 0.1, 2.0, 0.7]}
    run = CONTRIBUTIONS["logistic_gradient"](5, **parameters).program
    (whole,) = run(units)
    for columns in (np.arange(300, -1, -1), np.arange(17, 18), np.r_[5, np.arange(301)]):
        (there,) = run(units[:, columns])
        assert np.array_equal(whole[:, columns], there)


def test_the_kernels_compute_what_they_say() -> None:
    rows = some_rows(200, seed=3, wide=0.3)
    units = within_ball(rows, 1.0, "l2").astype(float)
    x = (units / GRID).T
    means, factors, offsets = (np.array(PARAMETERS["responsibilities"][k]) for k in ("means", "factors", "offsets"))
    y = np.einsum("nkj,kjl->nkl", x[:, None] - means, factors)
    logs = offsets - 0.5 * (y**2).sum(axis=2)
    wanted = np.exp(logs) / np.exp(logs).sum(axis=1, keepdims=True)
    framed = WEIGHTS["framed"](2, **PARAMETERS["framed"])
    weights, frames, squared = framed.program(units)
    assert pytest.approx(wanted, abs=1e-3) == weights.T / GRID
    assert frames.transpose(2, 0, 1) / framed.radius * 1.5 == pytest.approx(y, abs=1e-5)
    assert np.array_equal(squared, (frames * frames).sum(axis=1))
    w = np.array([0.3, -1.0])
    gradients = CONTRIBUTIONS["logistic_gradient"](2, target=1, weights=w)
    gradient = gradients.program(units)[0] * 2.0**-gradients.bits
    label, features = np.where(x[:, 1] >= 0, 1.0, -1.0), np.stack([x[:, 0], np.ones(200)], axis=1)
    wanted = -(label / (1 + np.exp(label * (features @ w))))[:, None] * features
    assert pytest.approx(wanted, abs=1e-3) == gradient.T


def test_the_gradient_of_several_classes_is_theirs() -> None:
    """Also of rows without a class, and of weights beyond all tables; in any order of the rows."""
    rng = np.random.default_rng(2)
    rows = np.concatenate([rng.uniform(-0.5, 0.5, (200, 2)), 0.01 * np.eye(4)[rng.integers(0, 4, 200)][:, :3]], axis=1)
    units = within_ball(rows, 1.0, "l2").astype(float)
    x, own = np.append(units[:2] / GRID, np.ones((1, 200)), axis=0), units[2:] > 0
    for size in (0.0, 1.0, 9.0, 1e9):
        w = size * np.array([[0.3, -1.0, 0.1], [2.0, 0.7, -0.2], [-1.0, 0.0, 0.5]])
        gradient = CONTRIBUTIONS["softmax_gradient"](5, weights=w.tolist())
        (there,) = gradient.program(units)
        odds = w @ x
        shares = np.exp(odds - odds.max(axis=0))
        wanted = ((shares / shares.sum(axis=0) - own)[:, None, :] * x).reshape(9, 200)
        assert there * 2.0**-gradient.bits == pytest.approx(wanted, abs=2e-3)
        assert np.array_equal(gradient.program(units[:, 7:3:-1])[0], there[:, 7:3:-1])


# Sensitivities by brute force ----------------------------------------------------------------------


def norms(difference: list[np.ndarray]) -> list[tuple[float, float]]:
    """ℓ₁ of what is released and ℓ₂ (Frobenius) of each block."""
    out = []
    for degree, made in enumerate(difference):
        made = made.astype(float)
        upper = np.triu(made) if degree == 2 else made
        out.append((float(np.abs(upper).sum()), float(np.sqrt((made**2).sum()))))
    return out


@pytest.mark.parametrize("name", sorted(PARAMETERS))
def test_one_row_moves_all_components_together_by_no_more_than_is_said(name: str) -> None:
    corners = [[1.0, 0.0], [0.6, 0.8], [-1.0, 0.0], [0.0, 0.0], [0.707, 0.707], [5.0, -9.0], [0.01, 0.02]]
    base = within_ball(some_rows(40, seed=5), 1.0, "l2").astype(float)
    handle = vectors_of("radius = 1", "rows")
    function = WEIGHTS[name](2, **PARAMETERS[name])
    steps = sensitivities(handle, function, 3)
    replaced = vectors_of("radius = 1", "rows, public size")
    wider = sensitivities(replaced, function, 3)
    before = moments(base, name, PARAMETERS[name])
    grown = []
    for corner in corners:
        one = within_ball(np.array([corner]), 1.0, "l2").astype(float)
        after = moments(np.concatenate([base[:, :3], one, base[:, 3:]], axis=1), name, PARAMETERS[name])
        grown.append(after)
        found = norms([a - b for a, b in zip(after, before, strict=True)])
        for (l1, l2), (most1, most2) in zip(found, steps, strict=True):
            assert l1 <= most1 and l2 <= most2
    for one, other in itertools.combinations(grown, 2):
        for (l1, l2), (most1, most2) in zip(
            norms([a - b for a, b in zip(one, other, strict=True)]), wider, strict=True
        ):
            assert l1 <= most1 and l2 <= most2


def test_the_bounds_are_met() -> None:
    """A row on the sphere that one component takes whole moves every block by what is said, and not by less."""
    handle = vectors_of("radius = 1", "rows")
    steps = sensitivities(handle, WEIGHTS["one"](2), 3)
    found = norms(moments(np.array([[float(GRID)], [0.0]]), "one", {}))
    for (_, l2), (_, most) in zip(found, steps, strict=True):
        assert l2 == pytest.approx(most, rel=1e-6)


def test_persons_with_several_rows_cost_as_many() -> None:
    one, three = (vectors_of("radius = 1", unit) for unit in ("who up to 1 rows", "who up to 3 rows"))
    framed = WEIGHTS["framed"](2, **PARAMETERS["framed"])
    for (a1, a2), (b1, b2) in zip(sensitivities(one, framed, 3), sensitivities(three, framed, 3), strict=True):
        assert b1 == pytest.approx(3 * a1, rel=1e-6) and b2 == pytest.approx(3 * a2, rel=1e-6)


@pytest.mark.parametrize("norm", ["l1", "l2", "sup"])
def test_contributions_are_clipped_whatever_a_kernel_gives(norm: str) -> None:
    rng = np.random.default_rng(2)
    hostile = np.concatenate([
        rng.normal(0, 3, (6, 500)), np.full((6, 1), math.inf), np.full((6, 1), math.nan), np.full((6, 1), -1e308),
        np.full((6, 1), 1 / math.sqrt(6)), np.eye(6), np.full((6, 1), 1 / 6),
    ], axis=1)  # fmt: skip
    units = clipped(hostile, norm).astype(object)
    length = {"l1": np.abs(units).sum(axis=0), "l2": (units**2).sum(axis=0), "sup": np.abs(units).max(axis=0)}[norm]
    assert (length <= (2 ** (2 * BITS) if norm == "l2" else 2**BITS)).all()
    assert (clipped(np.array([[0.25], [0.5]]), norm) / UNIT).ravel() == pytest.approx([0.25, 0.5])


def test_weights_are_clipped_whatever_a_program_gives() -> None:
    weights = np.array([[0.0, GRID, 2**40, GRID / 2, 0.9 * GRID], [GRID / 2, 1.0, 0.0, GRID / 2, 0.9 * GRID]])
    whole = whole_weights(np.floor(weights))
    assert (whole >= 0).all() and (whole.sum(axis=0) <= GRID).all()
    assert whole[:, 3].tolist() == [GRID / 2, GRID / 2] and not whole[:, [1, 2, 4]].any()


# Sums ----------------------------------------------------------------------------------------------


DATA = {f"x{i}": some_rows(5000, 1, seed=i)[:, 0] for i in range(2)} | {"who": np.arange(5000) % 900}


def vectors_of(tail: str, unit: str) -> Any:
    session, text = declared(f"v = vectors(t, x0, x1, {tail})\n", unit)
    session.execute(Source("t.jst", text))
    return session.names()["v"]


def declared(program: str, unit: str = "rows") -> tuple[Session, str]:
    session = Session()
    session.bind("t", DATA)
    described = "described by {x0: -1.0..1.0, x1: -1.0..1.0, who: 0..899}"
    budget = "budget epsilon 1000, delta 0.5 counted by basic"
    return session, f'use mixtures\nprivate t = bound("t") {described} protecting {unit} {budget}\n{program}'


def ran(program: str, unit: str = "rows") -> Result:
    session, text = declared(program, unit)
    return session.run(Source("t.jst", text))


PUBLIC = "rows = [[0.1, 0.2], [-0.3, 0.9], [2.0, 0.0]]\n"


def test_public_rows_are_summed_exactly_and_for_nothing() -> None:
    result = Session().run(Source("t.jst", PUBLIC + "release m = noisy_moments(vectors(rows))"))
    found = result.values["m"]
    x = np.array([[0.1, 0.2], [-0.3, 0.9], [1.0, 0.0]]) / math.sqrt(2)  # 2.0 lies outside the described bounds
    assert found["count"] == pytest.approx([3.0], abs=1e-9)
    assert found["first"][0] == pytest.approx(x.sum(axis=0), abs=1e-3)
    assert found["second"][0] == pytest.approx(x.T @ x, abs=1e-3)
    assert found["count_noise"] == 0


def test_sums_do_not_depend_on_the_order_of_rows_or_on_what_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    backwards = {name: column[::-1].copy() for name, column in DATA.items()}
    sums = []
    for data, limit in ((DATA, 2**29), (backwards, 2**29), (DATA, 0)):
        monkeypatch.setattr(rowstore, "LIMIT", limit)
        session = Session()
        session.bind("t", data)
        session.execute(Source("t.jst", 't = bound("t")\nv = vectors(t, x0, x1, radius = 1, scaled = false)\n'))
        interp, handle = session._interp, session.names()["v"]
        function = WEIGHTS["framed"](2, **PARAMETERS["framed"])
        sums.append(vectorsums.moments(interp.kernel._reader, handle, function, 2))
        again = vectorsums.moments(interp.kernel._reader, handle, function, 2)
        assert all(np.array_equal(a, b) for a, b in zip(sums[-1], again, strict=True))
    for other in sums[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(sums[0], other, strict=True))


def test_rows_that_are_all_different_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    reads = []

    class Engine:
        def vectors(self, plan: Any, exprs: Any, size: int) -> Any:
            reads.append(plan)
            yield from np.random.default_rng(4).uniform(-1, 1, (3, 5_000, 2))

    store = rowstore.RowStore(Engine())  # type: ignore[arg-type]
    rows: Any = ("plan", (), 1.0, "sup")
    first, again = (np.hstack([units for units, _ in rowstore.StoredRows(store, rows).tallied()]) for _ in range(2))
    assert len(reads) == 1 and first.shape == (2, 15_000) and np.array_equal(first, again)
    monkeypatch.setattr(rowstore, "LIMIT", 0)  # of rows that are not kept no more than a block is read in vain
    store = rowstore.RowStore(Engine())  # type: ignore[arg-type]
    again = np.hstack([units for units, _ in rowstore.StoredRows(store, rows).tallied()])
    assert len(reads) == 3 and np.array_equal(first, again)


@pytest.mark.slow
def test_noise_has_the_deviation_that_is_told() -> None:
    result = ran("""
v = vectors(t, x0, x1)
paid = prepaid(v, epsilon = 1, delta = 0.0001)
one = noisy_moments(v, paid = paid, part = 0.001)
release noise = one.second_noise
release m = [noisy_moments(v, paid = paid, part = 0.001).second[0][0] for i in 1..400]
""")
    found, noise = np.array(result["m"]), float(result["noise"])
    for place, wanted in ((0, noise), (1, noise / math.sqrt(2))):
        assert 0.75 < found[:, place].std() / wanted < 1.3  # outside by chance once in 10⁹


# One charge for many -------------------------------------------------------------------------------


def test_many_rounds_are_charged_once() -> None:
    result = ran("v = vectors(t, x0, x1)\nrelease m = mixture(v, 3) with epsilon 1 delta 0.0001")
    assert result.budget["t"]["epsilon"]["spent"] == "1"
    assert result.budget["t"]["delta"]["spent"] == "0.0001"


@pytest.mark.parametrize(
    ("program", "kind"),
    [
        ("a = noisy_moments(v, paid = p, part = 0.7)\nb = noisy_moments(v, paid = p, part = 0.4)", "BudgetExceeded"),
        ("a = noisy_moments(w, paid = p, part = 0.5)", "TypeError"),
        ("a = noisy_moments(v, paid = p, part = 0)", "ValueError"),
        ("a = noisy_moments(v, paid = p, epsilon = 1)", "TypeError"),
        ("a = noisy_moments(v, paid = prepaid(vectors([[1, 2]])))", "TypeError"),
        ('a = noisy_moments(v, "none of these", epsilon = 1)', "NameError"),
        ('a = noisy_moments(v, "nearest", {centres: [[1, 2, 3]]}, epsilon = 1)', "ValueError"),
        ('a = noisy_moments(v, "nearest", {centres: v}, epsilon = 1)', "PrivateValue"),
        ("a = noisy_moments(v, shares = [1, 0 - 1], epsilon = 1)", "ValueError"),
        ("a = noisy_moments(v)", "NoEpsilon"),
        ("a = vectors(t, x0, radius = 0)", "ValueError"),
        ("a = vectors(t, x0, radius = 0 - 1)", "ValueError"),
        ('a = vectors(t, x0, norm = "l3")', "TypeError"),
        ("a = noisy_moments(t, epsilon = 1)", "TypeError"),
        ('a = noisy_sum(v, "coordinates", bound = 0, epsilon = 1)', "ValueError"),
        ("print(v)", "PrivateValue"),
        ("a = mixture(v, 65) with epsilon 1 delta 0.0001", "ValueError"),
    ],
)
def test_what_does_not_fit_is_refused(program: str, kind: str) -> None:
    start = "v = vectors(t, x0, x1)\nw = vectors(u, x0, x1)\np = prepaid(v, epsilon = 1, delta = 0.0001)\n"
    second = 'private u = bound("u") described by {x0: -1.0..1.0, x1: -1.0..1.0} protecting rows budget epsilon 1\n'
    session = Session()
    session.bind("t", DATA)
    session.bind("u", {name: column.copy() for name, column in DATA.items()})
    described = "described by {x0: -1.0..1.0, x1: -1.0..1.0, who: 0..899}"
    text = f'use mixtures\nprivate t = bound("t") {described} protecting rows budget epsilon 1000, delta 0.5\n{second}'
    with pytest.raises(Refusal) as refused:
        session.run(Source("t.jst", text + start + program))
    assert refused.value.diagnostics[0].kind == kind


def test_weighted_rows_are_refused() -> None:
    with pytest.raises(Refusal) as refused:
        ran("v = vectors(t, x0, x1)", unit="who up to 3 rows weighted")
    assert refused.value.diagnostics[0].kind == "TypeError"


def test_parts_pay_for_parts_of_the_same_rows() -> None:
    """What was paid for a table may be spent on a part of it, and not the other way round."""
    program = (
        "v = vectors(t, x0)\nw = vectors(t[who = 3], x0)\np = prepaid(v, epsilon = 1)\nq = prepaid(w, epsilon = 1)\n"
    )
    ran(program + "a = noisy_moments(w, paid = p)")
    with pytest.raises(Refusal):
        ran(program + "a = noisy_moments(v, paid = q)")


def test_coordinates_are_chosen_by_score() -> None:
    result = ran("""
v = vectors(t, x0, x1)
release i = noisy_max(coordinate_scores(v, "logistic_gradient", {target: 0, weights: [9, 0]}), epsilon = 50)
""")
    x = np.clip(np.stack([DATA["x0"], DATA["x1"]], axis=1), -1, 1)
    length = np.maximum(1, np.linalg.norm(x, axis=1) / math.sqrt(2))
    y = np.where(x[:, 0] >= 0, 1.0, -1.0)
    slope = -y / (1 + np.exp(y * 9.0))
    sums = np.array([slope.sum(), (slope * x[:, 1] / length / math.sqrt(2)).sum()])
    assert result["i"] == int(np.argmax([*sums, *-sums]))


def densities(rows: np.ndarray, low: float, high: float) -> np.ndarray:
    """What each row of two scaled columns adds to the likelihood of a mixture, in multiples of high − low."""
    view, units = PARAMETERS["responsibilities"], rows / np.maximum(1.0, np.linalg.norm(rows, axis=1))[:, None]
    logs = []
    for mean, factor, offset in zip(view["means"], view["factors"], view["offsets"], strict=True):
        whitened = (units - np.array(mean)) @ np.array(factor)
        logs.append(offset - (whitened**2).sum(axis=1) / 2 - math.log(2 * math.pi))
    return np.asarray((np.clip(np.max(logs, axis=0), low, high) - low) / (high - low))


@pytest.mark.slow
def test_the_likelihood_of_rows_as_a_score() -> None:
    """Its value, and how a row moves it: by what the row adds, which is from 0 to 1."""
    low, high = -6.0, -2.0
    ends = "{means: [[0.1, 0.2], [-0.5, 0.1]], factors: [[[3, 0], [1, 2]], [[1, 0.5], [0, 4]]], offsets: [0.1, -0.4], "
    score = f'row_score(vectors(t, x0, x1, radius = 1), "log_density", {ends}low: -6, high: -2}}, bound = 4)'
    x = np.clip(np.stack([DATA["x0"], DATA["x1"]], axis=1), -1, 1)
    each = densities(x, low, high)
    assert ran(f"release n = laplace({score}) with epsilon 1000")["n"] == pytest.approx(each.sum(), abs=0.3)
    assert each.min() == 0 and each.max() == 1  # both ends are met
    rows = np.array([[0.1, 0.2], [-1.0, -1.0], [0.3, -0.2], [0.0, 0.0], [-0.5, 0.1], [1.0, 0.0]])
    values = []
    for some in itertools.chain(itertools.combinations(range(6), 2), itertools.combinations(range(6), 3)):
        session = Session()
        session.bind("t", {"x0": rows[list(some), 0], "x1": rows[list(some), 1]})
        text = 'use mixtures\nt = bound("t") described by {x0: -1.0..1.0, x1: -1.0..1.0}\n' + f"release n = {score}"
        values.append((set(some), session.run(Source("t.jst", text))["n"]))
    pairs = [(a, b) for (one, a), (more, b) in itertools.permutations(values, 2) if one < more]
    assert len(pairs) == 60 and all(0 <= b - a <= 1 for a, b in pairs)
    assert max(b - a for a, b in pairs) > 0.9


# Accounting ----------------------------------------------------------------------------------------


TABLE = {
    0.1: {"linear": 3662, "advanced": 2205, "rdp": 669, "zcdp": 232, "exact": 205},
    1.0: {"linear": 366, "rdp": 36.9, "zcdp": 29.3, "exact": 26.7},
    4.0: {"linear": 91.5, "rdp": 9.9, "zcdp": 8.7, "exact": 8.0},
}  # fmt: skip


def multiplier(way: str, epsilon: float, times: int, delta: float = 1e-4) -> float:
    low, high = 0.1, 1e5
    for _ in range(80):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if of_gaussian(middle, times, delta)[way] <= epsilon else (middle, high)
    return high


@pytest.mark.parametrize("epsilon", sorted(TABLE))
def test_exact_multipliers_are_those_of_the_closed_form(epsilon: float) -> None:
    assert multiplier("exact", epsilon, 70) == pytest.approx(TABLE[epsilon]["exact"], rel=0.01)
    assert multiplier("zcdp", epsilon, 70) == pytest.approx(TABLE[epsilon]["zcdp"], rel=0.01)
    assert math.sqrt(10) / mu_of(epsilon, 1e-4) == pytest.approx(multiplier("exact", epsilon, 10), rel=1e-6)


def closed_form(mu: float, epsilon: float) -> float:
    from scipy.stats import norm

    return float(norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu))


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 4.0, 10.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-6, 1e-4, 0.01])
def test_the_exact_curve_is_the_closed_form(epsilon: float, delta: float) -> None:
    mu = mu_of(epsilon, delta)
    assert closed_form(mu, epsilon) == pytest.approx(delta, rel=1e-6)
    assert exact_gaussian(mu, delta) == pytest.approx(epsilon, rel=1e-6)
