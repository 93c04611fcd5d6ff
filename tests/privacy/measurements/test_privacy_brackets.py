"""Intervals of quantiles: what they lose whatever was chosen, what they cost, and how often they hold the quantile."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from recording import Bench, Recorder, worst_losses

from jostle.accounting.amounts import QUANTA, Amount
from jostle.error_laws import facts_of, law_named, quantiles
from jostle.noise_laws import Bracketed, Laplace
from jostle.plan.plan import Column, Count
from jostle.privacy.measurements.aggregates.quantile import Quantile, _places
from jostle.simulate import SeededNoise
from jostle.source import Source
from jostle.tools.session import Result, Session

PROGRAM = """private t = table("t.csv") described by {{who: text, v: 0..7, c: {{"x", "y"}}}} protecting {}
    budget {} 1000
a = {{{{ select quantile(v, 0.3) as q, count(*) as n from t with {} via interval }}}}
b = {{{{ select median(v) as m, max(v) as t from t groupby c with {} via interval }}}}
"""
OTHERS = [("Ann", "3", "x"), ("Ann", "5", "y"), ("Bob", "3", "x")]
MINE = [[("Cem", v, c)] for v in ("0", "4", "7", "") for c in "xy"] + [[("Cem", "1", "x"), ("Cem", "6", "y")]]


@pytest.mark.slow(but=["rows, public size-epsilon 1-3"])
@pytest.mark.parametrize(
    ("unit", "amount", "chosen"),
    [
        ("who up to 2 rows", "epsilon 1", 3), ("who up to 2 rows", "rho 0.1", 7), ("who up to 2 rows", "epsilon 1", 0),
        ("who up to 2 rows weighted", "epsilon 1", 7), ("rows, public size", "epsilon 1", 3),
    ],
)  # fmt: skip
def test_whatever_was_chosen_the_counts_lose_no_more_than_their_half(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, unit: str, amount: str, chosen: int
) -> None:
    """Rows of a person more or less, or of another in their place; counts are around one answer, and then another."""
    for name, kind in (("noisy_max", "selection"), ("gumbel_max", "gumbel")):
        monkeypatch.setattr(Recorder, name, chooser(kind, chosen))
    program = PROGRAM.format(unit, amount.split()[0], amount, amount)
    pairs = [(OTHERS, OTHERS + mine) for mine in MINE]
    if "public size" in unit:
        pairs = [(OTHERS + one, OTHERS + other) for one, other in itertools.combinations(MINE[:-1], 2)][::5]
    worst = 0.0
    for pair in pairs:
        records = []
        for rows in pair:
            bench.table(rows, ("who", "v", "c"))
            records.append(bench.run(program))
        for _, lost, charged in worst_losses(*records):
            assert lost <= charged * (1 + 1e-9)
            worst = max(worst, lost / charged)
    assert worst > 0.3


def chooser(kind: str, chosen: int) -> Callable[[Recorder, np.ndarray, float], int]:
    def choose(recorder: Recorder, scores: np.ndarray, scale: float) -> int:
        recorder._keep(kind, scores, scale)
        return min(chosen, len(scores) - 1)

    return choose


def run(values: np.ndarray, described: str, text: str, seed: int = 1, budget: str = "epsilon 1e9") -> Result:
    session = Session(simulate=seed)
    session.bind("t", pd.DataFrame({"x": values}))
    program = f'private t = bound("t") described by {{x: {described}}} protecting rows budget {budget}\n' + text
    return session.attempt(Source("p", program))


RNG = np.random.default_rng(4)
DATA = {
    "two heaps": (np.concatenate([RNG.normal(20, 2, 1000), RNG.normal(80, 2, 1000)]), "0.0..100.0"),
    "thousands": (np.round(RNG.lognormal(10, 0.6, 2000), -3).clip(0, 200_000), "0.0..200000.0"),
    "whole": (RNG.normal(40, 14, 2000).round().clip(16, 79), "16..79"),
    "few": (np.array([3.0, 4.0, 5.0, 8.0, 9.0]), "0.0..10.0"),
    "all equal": (np.full(500, 7.0), "0.0..100.0"),
    "clamped": (RNG.normal(50, 60, 2000).clip(0, 100), "0.0..100.0"),
    "half are 0": (np.where(RNG.random(2000) < 0.5, 0, RNG.lognormal(3, 1, 2000)).clip(0, 1000), "0.0..1000.0"),
}


@pytest.mark.slow(but=["0.5-interval-half are 0", "0.9-None-thousands"])
@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize(
    ("q", "via"), [(0.0, "interval"), (0.5, "interval"), (0.9, "interval"), (1.0, "interval"), (0.5, None), (0.9, None)]
)
def test_an_interval_holds_the_quantile_of_any_data(name: str, q: float, via: str | None) -> None:
    """And its own answer. Heaps, gaps and ends, where a guess between two places would fail; 400 seeded draws."""
    values, described = DATA[name]
    session = Session()
    session.bind("t", pd.DataFrame({"x": values}))
    text = f'private t = bound("t") described by {{x: {described}}} protecting rows budget epsilon 1\n'
    session.execute(Source("p", text))
    table = session.names()["t"]
    aggregate = Quantile((Column("x"),), (q,))
    mechanism, noise = aggregate.mechanism(Amount("epsilon", QUANTA // 5), via, table), SeededNoise(6)
    (exact,) = session._interp.data._engine.group(table.plan, (aggregate.places(table),), (Count(),))
    inside = 0
    truth = np.quantile(values, q, method="inverted_cdf")
    for _ in range(400):
        ((answer, law),), _ = aggregate.release(mechanism, [exact], noise, table, True)
        low, high = quantiles(law, np.array([0.025, 0.975]))
        inside += low <= truth <= high
        assert low <= answer <= high
    assert inside >= 0.95 * 400


def test_what_is_charged_is_what_is_drawn_for() -> None:
    values, described = DATA["whole"]
    for unit, amount in (("epsilon", 1.0), ("rho", 0.25)):
        text = f"release m = {{{{ select median(x) from t with {unit} {amount} via interval }}}}\ne = error(m)\n"
        result = run(values, described, text, budget=f"{unit} 1")
        parts = [event.fields[unit] for event in result.events if event.kind == "measure"]
        assert parts == [amount / 2] * 2 and result.budget["t"][unit]["spent"] == f"{amount:g}"
        told = result.margins()["m"]
        assert told["low"] <= told["value"] <= told["high"] and told["error"] <= 2 and float(told["low"]).is_integer()


@pytest.mark.parametrize(
    ("select", "reason"),
    [("count(*)", "for quantiles"), ("mode(x)", "for quantiles")],
)
def test_only_quantiles_have_an_interval(select: str, reason: str) -> None:
    values, described = DATA["whole"]
    result = run(values, described, f"n = {{{{ select {select} from t with epsilon 1 via interval }}}}\n")
    assert not result.ok and reason in result.diagnostics[0].message


def test_beside_a_quantile_other_aggregates_are_as_ever() -> None:
    values, described = DATA["whole"]
    query = "{{ select count(*) as n, median(x) as m from t with epsilon 2 via interval }}"
    result = run(values, described, f"release r = {query}\n")
    assert result.margins()["r"]["n"]["error"] == 3 and "error" in result.margins()["r"]["m"]


def test_a_law_is_the_same_again_from_json() -> None:
    law = Bracketed(0.0, 9.0, (1.0, 4.5), (-3.0, 8.0), Laplace.name, False)
    assert law_named(*json.loads(json.dumps(facts_of(law)))) == law
    assert law_named(*facts_of(Laplace(2.0, 1.0))) == Laplace(2.0, 1.0)
    levels = np.array([0.001, 0.025, 0.5, 0.975, 1 - 1e-9])
    assert quantiles(law, levels).tolist() == [0.0, 1.0, 4.5, 4.5, 9.0]


def test_places_stand_around_what_was_chosen() -> None:
    assert _places(0, 8) == [1, 2, 3, 5] and _places(7, 8) == [3, 5, 6, 7]
    assert _places(100, 4096)[:3] == [36, 68, 84] and len(_places(2000, 4096)) == 25
