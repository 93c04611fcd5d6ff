"""What each statement of a program can cost a source, and what the budget has left after it.

A statement stands in a recorder of its own. What it adds to a source is no more than what was charged in it, and no
more than the whole after it less the least before it: parts of a partition that was measured before may add nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct

from jostle.accounting.amounts import as_text
from jostle.check.abstract.values import Most, SourceFact
from jostle.check.cost.ledger import SOURCE, Ledger, Opened
from jostle.source import Span


def looks_text(looked: int, columns: Sequence[str]) -> str:
    """`, 0.02 of it counts cells of x, y that do not fit`; nothing, where no charge looks."""
    return f", {as_text(looked)} of it counts cells of {', '.join(columns)} that do not fit" if looked else ""


class Charge(Struct, frozen=True):
    """At most `most` quanta of one source's budget (infinite: no bound but the budget); `exact`: just that.

    `left` quanta at least stay of the budget after it, exactly so many where `left_exact`; None where only the owner
    of a registered dataset knows the budget. Of a budget with a delta, amounts are plain sums.
    """

    span: Span
    source: str
    unit: str
    most: Most
    exact: bool
    left: int | None
    left_exact: bool
    looked: int = 0
    """What of the amount counts cells of `columns` that do not fit, in quanta, as far as it is known."""
    columns: tuple[str, ...] = ()


class Step(Struct, frozen=True):
    """A statement, the recorder around it, and the ledger at its end; without them, it was not followed."""

    span: Span
    recorder: Opened | None = None
    after: Ledger | None = None

    def charge(self, source: SourceFact, name: str) -> Charge | None:
        """What it can cost a source; None where that is nothing."""
        if self.recorder is None or self.after is None:
            return Charge(self.span, name, source.unit, math.inf, False, None if source.limit is None else 0, False)
        inside = self.after.tally(self.recorder.key, source)
        least_inside, most = inside.total
        if not most:
            return None
        before = self.recorder.before or Ledger()
        least_before, most_before = before.tally(SOURCE, source).total
        least_after, most_after = self.after.tally(SOURCE, source).total
        least = least_after - most_before
        if not any(place.path or place.agents for tree in inside.trees for place in tree):
            least = max(least, least_inside)  # charged to the whole, it adds just that
        if not source.inexact and most_after < math.inf:
            most = min(most, max(0, most_after - least_before))
        exact, left_exact = least == most, least_after == most_after
        left = None if source.limit is None else int(max(0, source.limit - most_after))
        sure = not source.inexact
        return Charge(self.span, name, source.unit, most, sure and exact, left, sure and left_exact) if most else None
