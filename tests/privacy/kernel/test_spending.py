"""What a charge is counted for: parts of persons under δ, selections over several tables, and what the trace tells."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from portable_hash import row_hash

from jostle.accounting.amounts import Amount
from jostle.accounting.definitions import Measure
from jostle.noise_laws import Gaussian, Laplace
from jostle.plan.plan import Apply, Column, Constant
from jostle.privacy.kernel import exposures
from jostle.privacy.measurements.choices import NoisyArgmax
from jostle.privacy.mechanisms.additive import Additive
from jostle.privacy.scores import cells
from jostle.privacy.transformations import joins, transform
from jostle.source import Source
from jostle.tools.session import Result, Session
from jostle.trace.costs import Costs, Forest


def run(program: str, **tables: Any) -> Result:
    session = Session()
    for name, table in tables.items():
        session.bind(name, table)
    return session.attempt(Source("p.jst", program))


# Parts under a delta -------------------------------------------------------------------------------


def sampled_delta(epsilon: float, rate: float, shift: float, sigma: float, parts: int) -> float:
    """The exact δ(ε) of `parts` subsampled Gaussians, each of which a row moves by `shift`, added rows against none."""
    step = sigma / 100
    x = np.arange(-10 * sigma, shift + 10 * sigma, step)

    def law(at: float) -> np.ndarray:
        return np.asarray(np.exp(-((x - at) ** 2) / (2 * sigma * sigma)) * step / (sigma * math.sqrt(2 * math.pi)))

    plain, mixed = law(0.0), (1 - rate) * law(0.0) + rate * law(shift)
    if parts == 2:
        plain, mixed = np.outer(plain, plain).ravel(), np.outer(mixed, mixed).ravel()
    return float(np.maximum(mixed - math.exp(epsilon) * plain, 0).sum())


def test_samples_of_two_parts_lose_more_than_the_larger() -> None:
    """Two rows of a person in one part, calibrated exactly, against one row in each of two parts."""
    one = sampled_delta(2.0, 0.05, 8.0, 1.0, 1)
    each = sampled_delta(2.0, 0.05, 4.0, 1.0, 2)
    assert one == pytest.approx(0.05, abs=2e-4) and each == pytest.approx(0.0684, abs=1e-2) and each > 1.2 * one


PARTS = """
private t = bound("t") described by {{who: text, v: 0..2, s: {{"F", "M"}}}}\
    protecting {unit} budget epsilon 20, delta 0.01{counted}
for key, part in partition(t, s):
    {spend}
release spent = spent(t)
"""
SAMPLES = "x = noisy_samples([histogram(part, v)], 0.1, 4) with epsilon 1 delta 0.001"
KEYS = "g = {{ select count(*) as n from part groupby who with epsilon 1 delta 0.001 }}"
NOISE = "n = {{ select count(*) from part with epsilon 1 delta 0.001 }}"
GAUSSIAN = NOISE.replace(" }}", " via gaussian }}")


@pytest.mark.parametrize("spend", [SAMPLES, KEYS, NOISE, GAUSSIAN])
@pytest.mark.parametrize("counted", ["", " counted by basic"])
def test_parts_of_persons_add_up_where_a_delta_is_spent(spend: str, counted: str) -> None:
    n = np.arange(300)
    table = {"who": [f"p{i // 2}" for i in n], "v": n % 3, "s": np.where(n % 2, "F", "M")}
    spent = {}
    for unit in ("rows", "who up to 2 rows"):
        result = run(PARTS.format(unit=unit, counted=counted, spend=spend), t=table)
        assert result.ok, result.diagnostics
        spent[unit] = result["spent"]
    rows, persons = spent["rows"], spent["who up to 2 rows"]
    if spend is NOISE:  # of Laplace noise the loss is linear in rows, and no δ is spent; in ρ it is quadratic
        assert persons == rows and rows["delta"] == 0
    elif counted:
        assert (rows["epsilon"], rows["delta"]) == (1, 0.001) and (persons["epsilon"], persons["delta"]) == (2, 0.002)
    elif spend is GAUSSIAN:
        assert persons == rows
    else:
        assert persons["epsilon"] > 1.2 * rows["epsilon"]


RECORDS = """use weighted
use workloads
use selection
private t = bound("t") described by {v: 0..3} protecting rows budget epsilon 1, delta 0.001 counted by basic
cells = histogram(shave(weighted(t), 0.5, 2), place, v)
for p in partition(cells, place + 0):
    x = margin_max(misfit(p[1], marginals(p[1], 1), [0, 0, 0, 0, 0, 0, 0, 0])) with epsilon 0.4 delta 0.0004
release spent = spent(t)
"""


def test_parts_of_one_rows_weight_add_up_where_a_delta_is_spent() -> None:
    """A row is a record of weight 1, and half of it is in each part, whose δ is no less for that."""
    result = run(RECORDS, t={"v": np.arange(300) % 4})
    assert result.ok, result.diagnostics
    assert (result["spent"]["epsilon"], result["spent"]["delta"]) == (0.8, 0.0008)
    (cost,) = Session().costs(Source("p.jst", RECORDS))
    assert cost.bound >= 8 * 10**11, str(cost)


@pytest.mark.parametrize("spend", [SAMPLES, KEYS, NOISE, GAUSSIAN])
@pytest.mark.parametrize("counted", ["", " counted by basic"])
def test_the_check_adds_parts_of_persons_too(spend: str, counted: str) -> None:
    for unit, total in (("rows", 1), ("who up to 2 rows", 2)):
        program = PARTS.format(unit=unit, counted=counted, spend=spend)
        (cost,) = Session().costs(Source("p.jst", program))
        adds = total if spend is not NOISE else 1
        assert cost.bound >= adds * 10**12, str(cost)
        assert cost.bound == 10**12 or spend is not NOISE


def test_gaussian_noise_is_not_chosen_where_parts_would_add_up() -> None:
    amount = Amount("epsilon", 10**12, 10**6)
    for in_parts, kind in ((False, Gaussian), (True, Laplace)):
        measures = [Measure("basic", amount, in_parts=in_parts)]
        assert Additive.fitted(amount, None, measures, 60, math.sqrt(60)).kind is kind
        assert Additive.fitted(amount, "gaussian", measures, 60, math.sqrt(60)).kind is Gaussian


@pytest.mark.parametrize("body", [
    "for k, part in partition(t, s) { n = {{ select count(*) from part with epsilon 1 delta 1e-6 }} }",
    "with epsilon 1 delta 1e-6 { for k, part in partition(t, s) { "
    "h = {{ select count(*) from part groupby v with epsilon 1 delta 1e-6 }} } }",
    "x = compare(t, 'v', by = 's') with epsilon 1 delta 1e-6",
    "x = anova(t, 'v', by = 's') with epsilon 1 delta 1e-6",
    "x = quantiles(t, 'v', [0.25, 0.5, 0.75]) with epsilon 1 delta 1e-6",
])  # fmt: skip
@pytest.mark.parametrize("unit", ["rows", "rows, public size", "who up to 2 rows"])
def test_all_parts_are_paid_by_one_amount(body: str, unit: str) -> None:
    """Where a δ was given and nobody spends it, the first part took the whole amount, and the second was refused."""
    n = np.arange(300)
    table = {"who": [f"p{i // 2}" for i in n], "v": n % 3, "s": np.where(n % 2, "F", "M")}
    head = f"""use statistics
private t = bound("t") described by {{who: text, v: 0..9, s: {{"F", "M"}}}} protecting {unit}
    budget epsilon 1, delta 1e-6 counted by basic
"""
    result = run(head + body, t=table)
    assert result.ok, result.diagnostics


# Selections ----------------------------------------------------------------------------------------


class Recorder:
    """A noise that writes down what it is given, and chooses the first."""

    def noisy_max(self, values: np.ndarray, scale: float) -> int:
        self.seen = (values.tolist(), scale)
        return 0


def test_two_joins_of_one_source_part_by_the_sum(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that comes raises one score by 12 and pushes a row out of the other, which falls by 6."""
    old = [("k", "no", f"old{i}") for i in range(6)]
    new = next(r for i in range(1000) for r in [("k", "x", f"new{i}")] if row_hash(r) < max(map(row_hash, old)))
    recorder = Recorder()
    monkeypatch.setattr(exposures, "SecureNoise", lambda: recorder)
    seen = []
    for rows in (old, [*old, new]):
        session = Session(cwd=tmp_path)
        (tmp_path / "people.csv").write_text("a,b,tag\n" + "".join(",".join(r) + "\n" for r in rows))
        (tmp_path / "p.csv").write_text("b,c\n" + "".join(f"x,{i}\n" for i in range(12)))
        (tmp_path / "q.csv").write_text("a,d\n" + "".join(f"k,{i}\n" for i in range(6)))
        session.execute(Source("x", (
            'private people = table("people.csv") described by {a: text, b: text, tag: text} protecting rows '
            'budget epsilon 10\np = table("p.csv")\nq = table("q.csv")\n'
        )))  # fmt: skip
        names, kernel, data = session.names(), session._interp.kernel, session._interp.data
        one = joins.join(data, names["people"], names["p"], [("b", "b")], None)
        two = joins.join(data, names["people"], names["q"], [("a", "a")], 6)
        two = transform.where(two, Apply("in", (Column("tag"), *(Constant(r[2]) for r in old))))
        pair = [cells.size(one), cells.size(two)]
        kernel.measure(NoisyArgmax.of(pair, Amount("epsilon", 10**12)))
        seen.append(recorder.seen)
        if rows is old:  # parts of one join move the same way, and stay at half the noise
            parts = [transform.where(two, Apply("==", (Column("tag"), Constant(r[2])))) for r in old]
            alike = [cells.size(part) for part in parts]
            kernel.measure(NoisyArgmax.of(alike, Amount("epsilon", 10**12)))
            assert recorder.seen[1] == 12
    moved = [b - a for a, b in zip(seen[0][0], seen[1][0], strict=True)]
    assert moved == [12, -6]
    assert (max(moved) - min(moved)) / seen[0][1] <= 1
    assert seen[0][1] == 24


# The trace -----------------------------------------------------------------------------------------

VECTORS = """
private t = bound("t") described by {v: 0..9, w: 0..9} protecting rows budget epsilon 1
rows = vectors(t, v, w)
"""


@pytest.mark.parametrize(
    "spend",
    [
        "m = noisy_moments(rows, epsilon = 0.4)",
        'm = noisy_sum(rows, "coordinates", {}, epsilon = 0.4)',
        "p = prepaid(rows) with epsilon 0.4\na = noisy_moments(rows, paid = p, part = 0.5)\n"
        'b = noisy_sum(rows, "coordinates", {}, paid = p, part = 0.25)',
    ],
)
def test_the_trace_tells_what_vectors_cost(spend: str) -> None:
    n = np.arange(50)
    result = run(
        f"{VECTORS}{spend}\nc = {{{{ select count(*) from t with epsilon 0.1 }}}}", t={"v": n % 10, "w": n % 7}
    )
    assert result.ok, result.diagnostics
    forest = Forest.of(result.events)
    costs = Costs.of(forest)
    (root,) = forest.roots
    assert float(sum(costs.spent[e.id].get("t", 0) for e in forest.children(root))) == pytest.approx(0.5)
    assert float(result.budget["t"]["epsilon"]["spent"]) == 0.5


def test_a_selection_over_two_sources_is_told_of_both() -> None:
    program = """
private a = counts([5, 6, 7]) protecting rows budget epsilon 1
private b = counts([1, 2]) protecting rows budget epsilon 1
x = noisy_max([size(a), size(b)], epsilon = 0.5)
"""
    result = run(program)
    assert result.ok, result.diagnostics
    (event,) = [e for e in result.events if e.kind == "measure"]
    assert event.fields["sources"] == ["a", "b"] and event.fields["epsilon"] == 0.5
