"""Answers that are refined: those of the language, all of their steps together, and ways to do it wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness import Case, Pair
from sparse import caught

from jostle.privacy.measurements.gradual import Memory, Refinable, Sealed
from jostle.privacy.mechanisms.noise import SecureNoise
from jostle.records import replace
from jostle.simulate import SeededNoise

# Of the language -------------------------------------------------------------------------------------

STEPS = "use gradual\nn = refinable(where(c, x <= 1))\n"


def steps(program: str, count: int) -> list[Any]:
    """The steps that a program takes for a count, with nothing paid yet: each can release many counts at once."""
    found = caught(STEPS + program, [count, 0, 5, 5])
    ((base, exact),) = {(m.refinable.base, int(read.exact[0])) for m, read in found}
    if exact != count:
        raise ValueError("the program counts something else")
    refinable = Refinable.of(base, lambda values, law: None)
    return [replace(m, refinable=refinable) for m, _ in found]


def bins(values: np.ndarray, most: int) -> np.ndarray:
    return np.clip(np.round(values), -most, most) + most


def all_answers(program: str, count: int, runs: int, noise: Any) -> np.ndarray:
    """A label for the three answers of each run."""
    label, kept = np.zeros(runs), Memory(np.full(runs, count))
    for step, most in zip(steps(program, count), (1, 1, 3), strict=True):
        label = label * (2 * most + 1) + bins(step.release(kept, noise).value.values, most)
    return label


def amounts_by_answers(program: str, count: int, runs: int, noise: Any) -> np.ndarray:
    """A first answer; where it is low, one more at the price of the third step, and where it is high of the second."""
    first, small, large = steps(program, count)
    kept, answer = Memory(np.full(runs, count)), np.zeros(runs)
    low = first.release(kept, noise).value.values <= 0
    sealed = kept.sealed
    for some, step in ((low, large), (~low, small)):
        part = Sealed(sealed.exact[some], sealed.first[some], sealed.second[some], sealed.paid)
        answer[some] = step.release(Memory(part.exact, part), noise).value.values
    return low * 16 + bins(answer, 4)


def _case(name: str, epsilon: float, label: Any, amounts: str, runs: int = 400_000, secure: bool = False) -> Case:
    program = f"a = [refine(n, epsilon = e) for e in {amounts}]"

    def draw(runs: int, rng: np.random.Generator) -> Pair:
        noises = [SecureNoise() if secure else SeededNoise(int(rng.integers(2**31))) for _ in range(2)]
        one, other = (label(program, count, runs, noise) for count, noise in zip((0, 1), noises, strict=True))
        return one, other

    return Case(name, epsilon, draw, runs)


def refinements() -> list[Case]:
    """Programs that spend ε = 1 in three steps, or in two of which the first answer says what the second costs."""
    return [
        _case("refine, three steps", 1, all_answers, "[0.2, 0.3, 0.5]"),
        _case("refine, three steps, secure noise", 1, all_answers, "[0.2, 0.3, 0.5]", 100_000, secure=True),
        _case("refine, the second amount by the first answer", 1, amounts_by_answers, "[0.4, 0.1, 0.6]"),
    ]


# Broken ones -----------------------------------------------------------------------------------------


def fresh(x: np.ndarray, runs: int, rng: np.random.Generator) -> np.ndarray:
    """Answers at ε = ¼, ½, ¾ and 1 with noise of their own, each charged what it is more than the one before."""
    amounts = np.array([0.25, 0.5, 0.75, 1.0])
    answers = x[0] + rng.laplace(0, 1 / amounts, (runs, 4))
    return np.round(((np.abs(answers - 1) - np.abs(answers)) * amounts).sum(axis=1), 1)


def averaged(x: np.ndarray, runs: int, rng: np.random.Generator) -> np.ndarray:
    """Three answers at ε = 1 with noise of their own, of which the mean is shown and the last one charged."""
    return np.round(x[0] + rng.laplace(0, 1, (runs, 3)).mean(axis=1), 1)


def without_atom(x: np.ndarray, runs: int, rng: np.random.Generator) -> np.ndarray:
    """A coarse answer for ε = 1: a fine one at √2 with Laplace noise of the variance that is missing, never 0."""
    fine, lost = np.sqrt(0.5), np.sqrt(1 - 0.5)
    return np.round(x[0] + rng.laplace(0, fine, runs) + rng.laplace(0, lost, runs), 1)


def broken_refinements() -> list[Case]:
    def case(name: str, sample: Any, runs: int) -> Case:
        def draw(runs: int, rng: np.random.Generator) -> Pair:
            return sample(np.array([0.0]), runs, rng), sample(np.array([1.0]), runs, rng)

        return Case(name, 1, draw, runs, broken=True)

    return [
        case("refine with fresh noise, charged the difference", fresh, 400_000),
        case("refine that averages, charged the last step", averaged, 400_000),
        case("refine whose lost noise is never 0", without_atom, 3_000_000),
    ]
