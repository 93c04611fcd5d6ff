"""The fast part of the audit: options of one measurement, and some that select. The whole is
`python -m tests.stdlib.audit_options`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
from audit_options import at_once, by_selections
from harness import Case, audit


@pytest.mark.slow(only=["option privtree(c, q)"])
@pytest.mark.parametrize("case", [*at_once(), *by_selections()[::2]], ids=lambda c: c.name)
def test_no_option_shows_more_than_it_charges(case: Case) -> None:
    finding = audit(case, share=0.05)
    assert finding.bound <= case.epsilon, finding


def test_the_audit_sees_these_options() -> None:
    """A bound of nothing would pass as well: an option charged half of what it spends is convicted."""
    case = at_once()[1]
    assert audit(Case(case.name, 0.5, case.draw, case.runs, broken=True), share=0.05).convicted
