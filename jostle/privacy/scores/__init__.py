"""Scores, and how they are read: a rule computes exact whole numbers, and argues how far one row can move them.

A score is a private number, or a vector of them, that the kernel makes itself; so it knows the sensitivity, which a
program cannot state. Each rule stands in a file with its argument, and with the function by which programs make it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jostle.diagnostics import refuse
from jostle.integers import fixed_width
from jostle.lazy import Ints
from jostle.privacy.kernel.exposures import Handle
from jostle.privacy.kernel.handles import UNWEIGHTED, Cube, Table
from jostle.privacy.reading.vault import Reader


@dataclass(frozen=True, eq=False)
class Rule:
    """`weighted`: as Lipschitz in sums of weights as in counts, in ℓ₁, so that both are measured. A rule has
    `exact`, or `exact_each` where its scores are read together."""

    name: str
    weighted: bool

    @property
    def digest_facts(self) -> str:
        """What a history knows it by."""
        return self.name

    def exact(self, reader: Reader, score: Score) -> list[int]:
        """The numbers of one score, in units of 2^-bits; total on any rows."""
        return self.exact_each(reader, [score])[0]

    def exact_each(self, reader: Reader, scores: Sequence[Score]) -> list[list[int]]:
        """The same of several scores of this rule."""
        return [self.exact(reader, score) for score in scores]


@dataclass(frozen=True, slots=True, eq=False)
class Score(Handle):
    """A private scalar of the kernel: its `rule` reads it, `sensitivity` is per changed row, in units of 2^-bits.

    A `monotone` one moves one way when rows are added: up, or down where it `falls`.
    """

    rule: Rule
    base: Handle
    sensitivity: int
    monotone: bool
    bits: int = 0
    arguments: tuple[Any, ...] = ()
    falls: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Scores(Score):
    """A private vector of `length` scores, each of the same sensitivity.

    `groups`: how many of them stand in each of several groups, of which one row can move one only.
    """

    length: int = 1
    groups: tuple[int, ...] = ()


def values_of(reader: Reader, scores: Sequence[Score]) -> Ints:
    """The exact numbers of all scores, on the common grid of the finest; within ±2^62."""

    bits = max(s.bits for s in scores)
    numbers: dict[int, list[int]] = {}
    for rule in dict.fromkeys(s.rule for s in scores):
        places = [i for i, s in enumerate(scores) if s.rule is rule]
        numbers.update(zip(places, rule.exact_each(reader, [scores[i] for i in places]), strict=True))
    fine = [value << (bits - one.bits) for i, one in enumerate(scores) for value in numbers[i]]
    return fixed_width(fine)


def check_weights(scores: Sequence[Score]) -> None:
    """Refuses scores that are made of counts of rows where rows have weights: before anything is charged."""
    for one in scores:
        if isinstance(one.base, Cube) and one.base.bits and not one.rule.weighted:
            raise refuse(
                "TypeError", f"`{one.rule.name}` is made of counts of rows, and these have weights", help=UNWEIGHTED
            )


def stability_of_score(one: Score) -> int:
    """How many rows of a protected unit, or how much weight, a score can be moved by."""
    by_weight = one.rule.weighted and isinstance(one.base, Table | Cube)  # vectors are rows, whatever they weigh
    return max(e.weighted_stability if by_weight else e.stability for e in one.exposures)
