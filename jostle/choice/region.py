"""The region that a policy was trained in, and what becomes of a call outside of it.

A policy that ships was trained on data that nobody chose for the call at hand. What its training saw of each feature,
and of epsilon, are public ranges in its table; a call beyond them gets the single best option, and is told so.
"""

from __future__ import annotations

from collections.abc import Mapping

from jostle.choice.policy import SINGLE_BEST, Policy
from jostle.choice.table import EPSILON, RunTable
from jostle.records import replace


def within(policy: Policy, values: Mapping[str, float], epsilon: float | None, unit: str = EPSILON) -> Policy:
    """`policy` where it was trained for a call with these `values` of features and this amount, else `single_best`.

    `epsilon`: the amount for a row, None on public data. What decides is public or was released.
    """
    why = _outside(policy.table, values, epsilon, unit)
    return policy if not why else single_best(policy, f"outside of what it was trained on: {why}")


def single_best(policy: Policy, why: str) -> Policy:
    """The policy that takes the option with the best mean over all training data, for the reason `why`."""
    from jostle.choice.policies import Candidate, best_on_average, view_of

    scale = policy.table.scale
    predictor = best_on_average(view_of(policy.table, Candidate(SINGLE_BEST, 0.0, 0, ()), scale), scale)
    return replace(policy, name=SINGLE_BEST, model=SINGLE_BEST, needs=(), columns=(), predictor=predictor, why=why)


def rounded(value: float) -> float:
    """Five digits, which a policy that ships has of each number: more than six runs of an option tell."""
    return float(f"{value:.5g}")


def _outside(table: RunTable, values: Mapping[str, float], epsilon: float | None, unit: str) -> str:
    if epsilon is None:
        return "public data have no noise"
    if unit != EPSILON:
        return f"it knows amounts in epsilon, and this one is in {unit}"
    if len(table.epsilons) > 1 and not min(table.epsilons) <= epsilon <= max(table.epsilons):
        return f"epsilon is {epsilon:.4g} for a row, and was {min(table.epsilons):g} to {max(table.epsilons):g}"
    for name, value in values.items():
        place = table.features.index(name)
        seen = [draw[place] for run in table.runs for draw in run.features[0]]
        if not min(seen) <= rounded(value) <= max(seen):
            return f"{name} is {value:.4g}, and was {min(seen):.4g} to {max(seen):.4g}"
    return ""
