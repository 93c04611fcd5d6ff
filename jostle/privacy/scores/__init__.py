"""Scores and their rules. A rule computes exact integers and argues their sensitivity to one row.

A score is a private number, or a vector of numbers, that only this package creates. So its sensitivity is known, and
programs cannot state it. Each rule is in a file with its argument and with the function that creates its scores.
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
    """`weighted`: the rule has the same ℓ₁ Lipschitz constant for sums of weights as for counts, so both can be
    measured. A rule implements `exact`, or `exact_each` if its scores are read together."""

    name: str
    weighted: bool

    @property
    def digest_facts(self) -> str:
        """What identifies the rule in the ledger."""
        return self.name

    def exact(self, reader: Reader, score: Score) -> list[int]:
        """The integers of one score, in units of 2^-bits. Total on any rows."""
        return self.exact_each(reader, [score])[0]

    def exact_each(self, reader: Reader, scores: Sequence[Score]) -> list[list[int]]:
        """The integers of several scores of this rule."""
        return [self.exact(reader, score) for score in scores]


@dataclass(frozen=True, slots=True, eq=False)
class Score(Handle):
    """A private number that its `rule` reads. `sensitivity` is per changed row, in units of 2^-bits.

    A `monotone` score only rises when rows are added, or only falls if it `falls`.
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
    """A private vector of `length` scores with the same sensitivity.

    `groups` are the sizes of consecutive groups of scores, of which one row affects only one.
    """

    length: int = 1
    groups: tuple[int, ...] = ()


def values_of(reader: Reader, scores: Sequence[Score]) -> Ints:
    """The exact integers of all scores on the finest of their grids, clamped to ±2^62."""

    bits = max(s.bits for s in scores)
    numbers: dict[int, list[int]] = {}
    for rule in dict.fromkeys(s.rule for s in scores):
        places = [i for i, s in enumerate(scores) if s.rule is rule]
        numbers.update(zip(places, rule.exact_each(reader, [scores[i] for i in places]), strict=True))
    fine = [value << (bits - one.bits) for i, one in enumerate(scores) for value in numbers[i]]
    return fixed_width(fine)


def check_weights(scores: Sequence[Score]) -> None:
    """Refuses scores that need counts of rows if rows have weights, before anything is charged."""
    for one in scores:
        if isinstance(one.base, Cube) and one.base.bits and not one.rule.weighted:
            raise refuse(
                "TypeError", f"`{one.rule.name}` is made of counts of rows, and these have weights", help=UNWEIGHTED
            )


def stability_of_score(one: Score) -> int:
    """The number of rows, or the weight, of a protected unit that can change a score."""
    by_weight = one.rule.weighted and isinstance(one.base, Table | Cube)  # vectors are rows, whatever their weights
    return max(e.weighted_stability if by_weight else e.stability for e in one.exposures)
