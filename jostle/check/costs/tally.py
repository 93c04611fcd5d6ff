"""What can have been spent, as trees of lower and upper bounds: the static side of `accounting.amounts`.

A tally holds a few alternative trees, of which a run has one at most (branches not known before the run); a tree
says for each path how little and how much was spent right there. Totals add along a path and take the largest part
of each partition: the meter of a run counts both bounds, and is monotone in what a place has, so that bounds of places
give bounds of totals. Amounts are whole quanta; without a bound they are infinite, and a `Why` says which place is to
blame. Tallies never change: an operation gives a new one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cached_property, reduce
from operator import sub

from msgspec import Struct

from jostle.accounting.amounts import Cost, Meter, Path
from jostle.check.costs.values import EACH, Generic, Most
from jostle.privacy.transformations.joins import common_prefix
from jostle.source import Span

MOST_TREES = 4
BOUNDLESS = 10**60  # quanta, for an amount without a bound: more than all amounts with one come to


class Why(Struct, frozen=True):
    """Why there is no bound: a reason and its place."""

    reason: str
    span: Span | None


class Own(Struct, frozen=True):
    """What was spent at one place: at least `least`, at most `most`."""

    least: int
    most: Most
    why: Why | None = None

    def plus(self, other: Own) -> Own:
        return Own(self.least + other.least, self.most + other.most, self.why or other.why)

    def times(self, least: int, most: Most, why: Why | None) -> Own:
        grown = 0 if not self.most else self.most * most
        return Own(self.least * least, grown, self.why or (why if grown == math.inf else None))

    def join(self, other: Own) -> Own:
        return Own(min(self.least, other.least), max(self.most, other.most), self.why or other.why)


NOTHING = Own(0, 0)


class Place(Struct, frozen=True):
    """Where spending is written down: a path, and the agents it went through, which hold it to `cap` together."""

    path: Path = ()
    agents: tuple[int, ...] = ()
    cap: Most = math.inf


Tree = dict[Place, Own]


class Tally(Struct, frozen=True, dict=True):
    """The trees that a meter can have."""

    trees: tuple[Tree, ...] = ({},)

    def plus(self, place: Place, own: Own) -> Tally:
        return Tally(tuple([{**tree, place: tree.get(place, NOTHING).plus(own)} for tree in self.trees]))

    def plus_tree(self, added: Tree) -> Tally:
        result = self
        for place, own in added.items():
            result = result.plus(place, own)
        return result

    def join(self, other: Tally) -> Tally:
        """Of two ways to get here, either."""
        if other.trees == self.trees:
            return self
        trees: list[Tree] = list(self.trees)
        for tree in other.trees:
            _add_tree(trees, tree)
        while len(trees) > MOST_TREES:
            trees[-2:] = [joined_trees(trees[-2:])]
        return Tally(tuple(trees))

    @cached_property
    def total(self) -> tuple[int, Most]:
        """What the meter's root can have in all."""
        return _bounds([_total_cost(tree) for tree in self.trees])

    def load_at(self, path: Path) -> tuple[int, Most]:
        """What a charge at `path` adds to before the root grows: an amount less this is left there."""
        meters, path = list(map(_meter, self.trees)), _generic(path)
        return _bounds([tuple(map(sub, meter.spent, meter.slack(path))) for meter in meters])

    def common_prefix(self) -> Path:
        paths = [place.path for tree in self.trees for place, own in tree.items() if own.most]
        return reduce(common_prefix, paths) if paths else ()

    @property
    def why(self) -> Why | None:
        whys = [own.why for tree in self.trees for own in tree.values() if own.why is not None]
        return whys[0] if whys else None


def joined_trees(trees: Iterable[Tree]) -> Tree:
    """One tree that bounds all of these."""
    alternatives = list(trees)
    result: Tree = {}
    for place in dict.fromkeys(place for tree in alternatives for place in tree):
        owns = [tree.get(place, NOTHING) for tree in alternatives]
        result[place] = owns[0]
        for own in owns[1:]:
            result[place] = result[place].join(own)
    return result


def _add_tree(trees: list[Tree], new: Tree) -> None:
    """A tree that another one covers is taken into it."""
    for i, old in enumerate(trees):
        if _covers(old, new) or _covers(new, old):
            trees[i] = joined_trees([old, new])
            return
    trees.append(new)


def _covers(a: Tree, b: Tree) -> bool:
    return all(place in a and a[place].most >= own.most for place, own in b.items())


def _meter(tree: Tree) -> Meter:
    """What a run's meter counts: the least at each place, and the most."""
    meter = Meter(2, lambda cost: True)
    for place, own in tree.items():
        most = min(own.most, place.cap)
        meter.add(_generic(place.path), (own.least, BOUNDLESS if most == math.inf else int(most)))
    return meter


def _total_cost(tree: Tree) -> Cost:
    """What a meter's root has: where nothing was spent below it, the sums."""
    least, most = 0, 0
    for place, own in tree.items():
        if place.path:
            return _meter(tree).spent
        high = min(own.most, place.cap)
        least, most = least + own.least, most + (BOUNDLESS if high == math.inf else int(high))
    return least, most


def _generic(path: Path) -> Path:
    return tuple((label, EACH if isinstance(part, Generic) else part) for label, part in path)


def _bounds(costs: Sequence[Cost]) -> tuple[int, Most]:
    lows, highs = zip(*costs, strict=True)
    return min(lows), max(highs) if max(highs) < BOUNDLESS else math.inf
