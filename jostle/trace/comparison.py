"""What two runs released, number by number, and whether noise explains how far apart they are.

The noise of two runs is independent. So the interval of a difference is made of the distances from both values to the
ends of their intervals that face each other (Zou and Donner, "Construction of confidence limits about effect
measures", 2008): at 95 % one in 20 differs by more than that, though nothing but the noise is another.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct

from jostle.events import Event
from jostle.trace.released import Columns, Figure, columns, is_number
from jostle.trace.text import number, plural


class Pair(Struct, frozen=True):
    """One place of a released value in two runs; None in the one that does not have it."""

    mine: Figure | None
    theirs: Figure | None

    @property
    def same(self) -> bool:
        return self.mine is not None and self.theirs is not None and self.mine.value == self.theirs.value

    @property
    def difference(self) -> float | None:
        """The other's number less this run's."""
        if self.mine is None or self.theirs is None:
            return None
        if not (is_number(self.mine.value) and is_number(self.theirs.value)):
            return None
        return float(self.theirs.value) - float(self.mine.value)

    @property
    def noise(self) -> float | None:
        """How far apart noise alone takes the two at 95 %; None where that of one is not known."""
        apart = self.difference
        if apart is None or self.mine is None or self.theirs is None:
            return None
        here, there = self.mine.ends(), self.theirs.ends()
        if here is None or there is None:
            return None
        if apart > 0:
            return math.hypot(here[1] - self.mine.value, self.theirs.value - there[0])
        return math.hypot(self.mine.value - here[0], there[1] - self.theirs.value)

    @property
    def beyond(self) -> bool:
        """Whether the two differ by more than noise explains."""
        apart, noise = self.difference, self.noise
        return apart is not None and noise is not None and abs(apart) > noise

    def words(self) -> tuple[str, str, str, str]:
        """Both values, the difference with its noise, and what that means."""
        apart, noise = self.difference, self.noise
        told = "" if apart is None else ("+" if apart > 0 else "") + number(apart, 4)
        if noise is not None:
            told += f" ± {number(float(f'{noise:.2g}'))}"
        ends = [str(figure) if figure is not None else "not released" for figure in (self.mine, self.theirs)]
        return ends[0], ends[1], told, "more than noise" if self.beyond else ""


class Compared(Struct, frozen=True):
    """A released value of two runs: its pairs by column and label. `whole`: the figures of both."""

    name: str
    pairs: dict[str, dict[str, Pair]]
    whole: tuple[Columns, Columns]

    @property
    def of_both(self) -> bool:
        """Whether both runs released it."""
        return all(self.whole)

    @property
    def differences(self) -> list[Pair]:
        return [pair for column in self.pairs.values() for pair in column.values() if not pair.same]

    def most(self, column: str, many: int) -> dict[str, Pair]:
        """The `many` labels of a column that differ most, measured by their noise, in their own order."""
        differing = {label: pair for label, pair in self.pairs[column].items() if not pair.same}
        first = sorted(differing, key=lambda label: -_size(differing[label]))[:many]
        return {label: differing[label] for label in differing if label in set(first)}


def _size(pair: Pair) -> float:
    apart, noise = pair.difference, pair.noise
    return math.inf if apart is None else abs(apart) / (noise or 1.0)


def compared(one: Sequence[Event], other: Sequence[Event]) -> list[Compared]:
    """What both runs released, or one of them, in the order of their releases; what is the same in both is left out."""
    mine, theirs = ({e.name: columns(e) for e in events if e.kind == "release"} for events in (one, other))
    out = []
    for name in dict.fromkeys([*mine, *theirs]):
        here, there = mine.get(name, {}), theirs.get(name, {})
        pairs = {
            column: {
                label: Pair(here.get(column, {}).get(label), there.get(column, {}).get(label))
                for label in dict.fromkeys([*here.get(column, {}), *there.get(column, {})])
            }
            for column in dict.fromkeys([*here, *there])
        }
        value = Compared(name, pairs, (here, there))
        if value.differences:
            out.append(value)
    return out


def verdict(values: Sequence[Compared]) -> str:
    """How many numbers differ by more than noise explains, in a sentence; empty where no noise is known."""
    pairs = [pair for value in values for column in value.pairs.values() for pair in column.values()]
    known = [pair for pair in pairs if pair.noise is not None]
    if not known:
        return ""
    beyond = sum(pair.beyond for pair in known)
    chance = "" if not beyond else "; at 95 % one in 20 does by chance"
    many = "none" if not beyond else str(beyond)
    return f"{many} of {plural(len(known), 'number')} differ{'s' * (beyond == 1)} by more than noise explains{chance}"
