"""Predicts what a choice would achieve at any epsilon, before anything is spent (`jostle plan`).

The Options run on the program's own training data, which are public, at amounts around the one that the program gives,
with seeded noise; the Utility says how good the answers are. The choice itself is the trained policy, with its features
measured and paid for at each amount. Where an Option measures a fixed strategy, its error on the private data's own
shape and queries is known in closed form, whatever the data are. Nothing private is opened.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from jostle.accounting.amounts import Amount
from jostle.accounting.composition import quanta
from jostle.choice.policy import AGAIN, Policy
from jostle.choice.program import ProgramBench, map_handles, public_only, simulated_private
from jostle.choice.training import run_all, seed
from jostle.lazy import Floats, np
from jostle.privacy.kernel.exposures import Handle
from jostle.privacy.kernel.handles import Cube
from jostle.privacy.reading.minting import exposed, public_cube
from jostle.run.evaluator import Evaluator
from jostle.run.values import Record
from jostle.simulate import counts_of
from jostle.syntax.nodes import FEATURES

if TYPE_CHECKING:
    from jostle.choice.maker import ChoiceMaker

STEPS = (-2, -1, 0, 1, 2)
"""The amounts that are tried, in half decades around the program's."""

REPEATS = 2
CHOICE = "the choice"


class Curve(Struct, frozen=True):
    """The error of one option at each amount, an entry a training data set; decreasing, as a rule.

    `exact` is its root mean square error at each amount on the program's own queries, where that has a closed form.
    """

    name: str
    errors: tuple[tuple[float, ...], ...]
    exact: tuple[float, ...] | None = None

    def typical(self) -> list[float]:
        """The mean over data sets, at each amount."""
        return [sum(at) / len(at) for at in self.errors]


class ChoicePlan(Struct, frozen=True):
    """One ChoiceMaker, called with `asked` of `unit`, whose utilities are negative errors."""

    name: str
    unit: str
    amount: float
    amounts: tuple[float, ...]
    curves: tuple[Curve, ...]
    policy: str
    """Where it chooses by features; else empty."""
    way: str = FEATURES

    def error(self, curve: Curve, amount: float) -> float:
        """The typical error at an amount within those tried; on a line through them in logarithms."""
        return _between(self.amounts, curve.typical(), amount)

    def needed(self, errors: Sequence[float], error: float) -> float:
        """The least amount with an error of at most `wanted` > 0: 0 below those tried, infinite beyond them."""
        if errors[0] <= error:
            return 0.0
        for i in range(1, len(errors)):
            if errors[i] <= error:
                two = slice(i, i - 2 if i > 1 else None, -1)  # errors have to rise for `interp`
                return float(np.exp(np.interp(math.log(error), _logs(errors)[two], np.log(self.amounts)[two])))
        return math.inf


def amounts_around(amount: float) -> tuple[float, ...]:
    """Half decades around an amount, on the grid of amounts."""
    return tuple(float(f"{amount * 10 ** (k / 2):.6g}") for k in STEPS)


def study(
    interp: Evaluator, maker: ChoiceMaker, data: object, unit: str, amount: float, centre: float,
    progress: Callable[[int, int], None] | None = None,
) -> ChoicePlan | None:  # fmt: skip
    """The plan of one call of a ChoiceMaker; None where its utilities are no errors, or there are no training data."""
    policy: Policy | None = None
    if maker.way == FEATURES:
        bench, policy = maker.bench(interp, unit), maker.policy(interp, unit, 1, amount)
        errors = policy.table.scale.logarithmic or not policy.table.runs
    else:
        bench = maker.bench(interp, unit)
        errors = bool(bench.database_names) and _are_errors(bench)
    if not errors:
        return None
    amounts = amounts_around(centre)

    def piece(database: int) -> list[list[float]]:
        instance = bench.instance(database, 1.0, 0)

        def error(answers: Callable[[int], object]) -> float:
            """The mean of a few runs, by their seeds."""
            return sum(max(0.0, -bench.utility(instance, answers(k))) for k in range(REPEATS)) / REPEATS

        def run(option: int, amount: float) -> Callable[[int], object]:
            return lambda k: bench.answer(option, instance, amount, seed("plan", database, option, amount, k))

        def choose(amount: float) -> Callable[[int], object]:
            whole = Amount(unit, quanta(amount, unit))
            return lambda k: bench.validated(
                maker.way, maker.share, instance, whole, seed("plan", database, maker.way, amount, k)
            )

        options = [[error(run(option, amount)) for amount in amounts] for option in range(len(bench.option_names))]
        if policy is None:
            return [*options, [error(choose(amount)) for amount in amounts]]
        return [*options, _choice_curve(bench, policy, instance, database, amounts, options)]

    tables = run_all(piece, len(bench.database_names), progress, maker.workers)
    names = (*bench.option_names, CHOICE)
    curves = []
    for k, name in enumerate(names):
        by_amount = tuple(tuple(tables[d][k][i] for d in range(len(tables))) for i in range(len(amounts)))
        exact = _closed(interp, maker, k, data, unit, amounts) if name != CHOICE else None
        curves.append(Curve(name, by_amount, exact))
    name = policy.name if policy else ""
    return ChoicePlan(maker.name or "choice", unit, amount, amounts, tuple(curves), name, maker.way)


def _are_errors(bench: ProgramBench) -> bool:
    """Whether the utility of exact answers is not above 0."""
    first = bench.instance(0, 1.0, 0)
    return bench.utility(first, bench.answer(0, first, None, 0)) <= 0


def _choice_curve(
    bench: ProgramBench, policy: Policy, instance: object, database: int, amounts: Sequence[float],
    options: list[list[float]],
) -> list[float]:  # fmt: skip
    """The error of what the policy picks, which gets what the features leave."""

    def features_at(policy: Policy, amount: float) -> dict[str, float]:
        part = amount * policy.share if policy.share else amount
        return bench.features(instance, part, seed("plan", database, "features", amount), policy.needs)

    errors = []
    for amount in amounts:
        decision, left = policy.choose(features_at(policy, amount), amount), 1 - policy.share
        if policy.further is not None and decision.chosen == AGAIN:
            further = policy.further
            decision, left = further.choose(features_at(further, amount), amount), left - further.share
        errors.append(_between(amounts, options[decision.index], amount * left))
    return errors


def _closed(
    interp: Evaluator, maker: ChoiceMaker, option: int, data: object, unit: str, amounts: Sequence[float]
) -> tuple[float, ...] | None:
    """The root mean square error of an option that measures a fixed strategy, on the shapes of the call's data."""
    from jostle.kernels.accuracy import root_mean_square
    from jostle.kernels.noisy_array import noise_of

    synthetic = synthetic_data(interp, data)
    if synthetic is None:
        return None
    amount = Amount(unit, quanta(amounts[-1], unit))
    view, source = simulated_private(synthetic, amount, 1, 0)
    with public_only(interp), interp.kernel.allot(amount, None, exposed(source)):
        answers = interp.call(maker.parts.options[option], [view])
    noise = noise_of(answers)
    if noise is None or noise.strategy is None or noise.workload is None:
        return None
    least = root_mean_square(noise.strategy, noise.workload, noise.law.smooth.deviation)
    power = 1.0 if unit == "epsilon" else 0.5
    return tuple(least * (amounts[-1] / a) ** power for a in amounts)


def synthetic_data(interp: Evaluator, data: object) -> object:
    """Replaces the cubes of a record by synthetic public cubes of the same shapes; None where it holds tables."""

    if not isinstance(data, dict) or any(isinstance(v, Handle) and not isinstance(v, Cube) for v in data.values()):
        return None
    record = Record()
    for name, value in data.items():
        if isinstance(value, Cube):
            record[name] = public_cube(interp.data, counts_of(value.shape, 10 * value.size, 0), value.names)
        else:
            record[name] = map_handles(value, lambda handle: handle)
    return record


def _between(amounts: Sequence[float], errors: Sequence[float], amount: float) -> float:
    """On the line through the points in logarithms; beyond them the nearest."""
    return float(np.exp(np.interp(math.log(amount), np.log(amounts), _logs(errors))))


def _logs(errors: Sequence[float]) -> Floats:
    """Logarithms of errors, of which some may be 0: they count as a billionth of the largest."""
    return np.log(np.maximum(errors, max(1e-9 * max(errors), 1e-300)))
