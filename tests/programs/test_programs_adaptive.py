"""Loops that stop by what they have released: within their allotment whatever happens, and no dearer than they went."""

from __future__ import annotations

from pathlib import Path

import pytest

from jostle.source import Source
from jostle.tools.session import Result, Session

PROGRAMS = Path(__file__).resolve().parents[2] / "programs"
KMEANS, DESCENT = "adaptive_kmeans.jst", "adaptive_descent.jst"


def spent(result: Result) -> float:
    assert result.ok, result.diagnostics
    return float(result.budget["people"]["epsilon"]["spent"])


def changed(name: str, old: str, new: str) -> Result:
    """The program with one expression replaced."""
    text = (PROGRAMS / name).read_text(encoding="utf-8")
    assert text.count(old) == 1
    return Session(cwd=PROGRAMS).attempt(Source(name, text.replace(old, new)))


def test_kmeans_pays_for_the_rounds_that_it_went() -> None:
    result = Session(cwd=PROGRAMS).run(PROGRAMS / KMEANS)
    rounds = int(result.output[0].split()[0])
    assert 1 <= rounds <= 15 and spent(result) == pytest.approx(0.1 * rounds + 0.5)
    assert len(result["found"]) == 3


@pytest.mark.parametrize(("settles", "rounds"), [("< 0", 15), ("< 99", 1)])
def test_kmeans_stops_at_the_end_of_its_allotment_or_at_once(settles: str, rounds: int) -> None:
    result = changed(KMEANS, "< 0.15", settles)
    assert result.output[0].startswith(f"{rounds} rounds") and spent(result) == pytest.approx(0.1 * rounds + 0.5)


def test_descent_stops_after_three_turns_without_progress_or_at_the_end_of_its_allotment() -> None:
    result = Session(cwd=PROGRAMS).run(PROGRAMS / DESCENT)
    turns = int(result.output[0].split()[0])
    assert 3 <= turns <= 7 and spent(result) == pytest.approx(0.2 * turns)
    assert spent(changed(DESCENT, "now < fewest - error(now)", "now < 1e9")) == pytest.approx(0.2 * 7)


def test_descent_finds_the_least_loss_where_noise_is_small() -> None:
    """A million times every amount, where no count is off: logistic regression without noise has 0.525 and −0.066."""
    text = (PROGRAMS / DESCENT).read_text(encoding="utf-8")
    for amount in ("with epsilon 0.05", "with epsilon 1.5", "with epsilon 0.2", "budget epsilon 2"):
        assert amount in text
        number = amount.split()[-1]
        text = text.replace(amount, amount.replace(number, str(1_000_000 * float(number))))
    result = Session(cwd=PROGRAMS).attempt(Source(DESCENT, text))
    assert result.ok, result.diagnostics
    assert list(result["w"]) == pytest.approx([0.525, -0.066], abs=0.07)
