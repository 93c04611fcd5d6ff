"""The fast part of the audit: fewer runs, the same failure probability. The full one is `python -m tests.audit`."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from harness import Case, audit, lower, upper
from mechanisms import cases
from specimens import specimens

from jostle.privacy.kernel.exposures import Counter

FITS = ("Ising model by Frank and Wolfe, a step a node", "pairwise field by Frank and Wolfe, a step a node")
WATCHES = ("above_threshold, one answer above", "above_threshold, two answers above", "the two largest, with leads")
MARGINS = ("margin_max, a score at the threshold",)
RUNS = ("best_run, a geometric number", "best_run, a logarithmic number", "best_run, to a good one")
SLOW = (
    "option dawa",
    "option mwem",
    *FITS,
    *WATCHES,
    *MARGINS,
    *RUNS,
)  # run whole, many times over: only in the full audit


@pytest.mark.slow(
    only=["a choice with a paid feature, 1", "a joint block, 1", "sparse logistic regression, two steps, 1"]
)
@pytest.mark.parametrize("case", [c for c in cases() if c.name not in SLOW], ids=lambda c: f"{c.name}, {c.epsilon:g}")
def test_no_mechanism_shows_more_than_it_charges(case: Case) -> None:
    finding = audit(case, share=0.05)
    assert finding.bound <= case.epsilon, finding


@pytest.mark.parametrize("case", specimens(), ids=lambda c: c.name)
def test_every_specimen_is_convicted(case: Case) -> None:
    finding = audit(case, share=0.5)
    assert finding.convicted, finding


def test_the_bounds_are_those_of_clopper_and_pearson() -> None:
    assert lower(0, 100, 0.025) == 0 and upper(100, 100, 0.025) == 1
    assert lower(10, 100, 0.025) == pytest.approx(0.0490, abs=1e-4)  # the textbook's 95 % interval of 10 in 100
    assert upper(10, 100, 0.025) == pytest.approx(0.1762, abs=1e-4)


def test_a_mechanism_that_ignores_its_input_shows_nothing() -> None:
    case = Case("noise alone", 0.01, lambda runs, rng: (rng.laplace(size=runs), rng.laplace(size=runs)), 100_000)
    for seed in range(5):
        assert audit(case, seed=seed).bound == 0


def test_the_audit_comes_close_to_the_truth() -> None:
    case = Case("laplace", 1, lambda runs, rng: (rng.laplace(0, 1, runs), rng.laplace(1, 1, runs)), 400_000)
    assert 0.9 < audit(case).bound < 1
    assert np.isclose(audit(case).bound, audit(case).bound)


@pytest.mark.plants_faults
def test_a_fault_after_a_charge_ends_an_audit() -> None:
    """In a case whose program is refused by it, as elsewhere; the counter alone says so."""

    def failing(runs: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        Counter.faults += 1
        return np.zeros(runs), np.zeros(runs)

    with pytest.raises(AssertionError, match="1 faults after a charge"):
        audit(Case("a fault", 1, failing, 2000))
