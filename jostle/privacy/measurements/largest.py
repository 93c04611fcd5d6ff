"""The largest of several scores in one measurement, and how far each leads the next: docs/privacy/selection.md.

With exponential noise all scores get it once, at k times the scale of a single selection, and the leads cost nothing
more. Where sources are counted in zCDP and no leads are asked, Gumbel noise costs less: then one after the other is
chosen by the exponential mechanism, which is the same law as one draw of Gumbel noise for all (Durfee & Rogers 2019).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from msgspec import Struct

from jostle.accounting.amounts import Amount
from jostle.diagnostics import refuse
from jostle.noise_laws import Selected
from jostle.privacy.kernel.measurement import Measurement, Release, needed
from jostle.privacy.measurements.choices import OfJoinedScores, joined, measured_by, separation
from jostle.privacy.mechanisms.noise import Noise
from jostle.privacy.mechanisms.one_sided import CLAMP, check_scale, geometric, ranked
from jostle.privacy.mechanisms.selection import Selection
from jostle.privacy.scores.rule import Score, Scores

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]


class Ranking(Struct, frozen=True):
    """The places of the largest scores, the largest first; `leads`: by how much each exceeds the next, where asked.

    The last one's lead is over the best of all that are left out. With 95 % every lead is within `within` of that of
    the scores themselves: no lead is off by more than the largest noise and one step of the grid.
    """

    places: list[int]
    leads: list[float]
    within: float


@dataclass(frozen=True, eq=False)
class LargestScores(OfJoinedScores, Measurement["Ints", Ranking]):
    """The `count` largest of the scores, in order, with their `leads` or without."""

    count: int
    leads: bool
    how: Selection | None
    title = "selection"

    @classmethod
    def of(cls, scores: Sequence[Score], count: int, leads: bool, amount: Amount | None) -> LargestScores:
        many = sum(s.length if isinstance(s, Scores) else 1 for s in scores)
        if not 1 <= count <= many:
            raise refuse("ValueError", f"of {many} scores the largest {count} were asked", help=f"1 to {many}")
        exposures = joined(scores, grouped=False)
        if not exposures:
            return cls(tuple(scores), (), count, leads, None)
        how = Selection.of(needed(amount), [e.source.measure for e in exposures], count, leads)
        if not how.gumbel:
            check_scale(how.scale(separation(scores, exposures), True))
        return cls(tuple(scores), exposures, count, leads, how)

    def release(self, exact: Ints, noise: Noise | None) -> Release[Ranking]:
        import numpy as np

        bits = max(s.bits for s in self.scores)
        values = np.clip(exact, -CLAMP, CLAMP)
        if noise is None or self.how is None:
            places, leads = ranked(values, self.count)
            return Release(Ranking(places, [lead / 2.0**bits for lead in leads], 0.0))
        scale = self.how.scale(separation(self.scores, self.joined), True)
        law = Selected(scale / 2.0**bits, values.size, "score")
        told = (measured_by(self.scores, law.name, law, self.how),)
        if self.how.gumbel:
            return Release(Ranking(self._one_by_one(self.how, values, noise, scale), [], 0.0), told)
        places, leads = ranked(values + geometric(noise, values.size, scale), self.count)
        asked = [lead / 2.0**bits for lead in leads] if self.leads else []
        return Release(Ranking(places, asked, law.half_width() + 2.0**-bits if self.leads else 0.0), told)

    def _one_by_one(self, how: Selection, values: Ints, noise: Noise, scale: float) -> list[int]:
        import numpy as np

        left, places = np.arange(values.size), []
        for _ in range(self.count):
            at = how.choose(noise, values[left], scale) if left.size > 1 else 0
            places.append(int(left[at]))
            left = np.delete(left, at)
        return places
