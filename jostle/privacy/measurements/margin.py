"""A selection by margin: the index of the (nearly) largest score, among as few as stand clear of the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from msgspec import Struct

from jostle.accounting.amounts import Amount
from jostle.noise_laws import Selected
from jostle.privacy.kernel.measurement import Measurement, Release, needed
from jostle.privacy.measurements.choices import OfJoinedScores, joined, measured_by, separation
from jostle.privacy.mechanisms.margin import LargeMargin, clear
from jostle.privacy.mechanisms.noise import Noise
from jostle.privacy.mechanisms.one_sided import CLAMP, check_scale
from jostle.privacy.scores.rule import Score

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]


class Picked(Struct, frozen=True):
    """The place of the score, and `among` how many it was selected: those that stand clear of all others, or all."""

    place: int
    among: int


@dataclass(frozen=True, eq=False)
class MarginMax(OfJoinedScores, Measurement["Ints", Picked]):
    """One of the scores, by `mechanisms.margin`."""

    how: LargeMargin | None
    title = "selection by margin"

    @classmethod
    def of(cls, scores: Sequence[Score], amount: Amount | None) -> MarginMax:
        exposures = joined(scores, grouped=False)
        if not exposures:
            return cls(tuple(scores), (), None)
        how = LargeMargin.within(needed(amount), [e.source.measure for e in exposures])
        check_scale(how.scales(separation(scores, exposures)).widest)
        return cls(tuple(scores), exposures, how)

    def release(self, exact: Ints, noise: Noise | None) -> Release[Picked]:
        import numpy as np

        values = np.clip(exact, -CLAMP, CLAMP)
        if noise is None or self.how is None:
            return Release(Picked(int(values.argmax()), 1))
        scales = self.how.scales(separation(self.scores, self.joined))
        among = clear(values, scales, noise) if values.size > 1 else np.zeros(1, dtype=np.int64)
        at = noise.gumbel_max(values[among], scales.selection) if among.size > 1 else 0
        law = Selected(scales.selection / 2.0 ** max(s.bits for s in self.scores), int(among.size), "score")
        told = measured_by(self.scores, "margin", law, self.how)
        return Release(Picked(int(among[at]), int(among.size)), (told,))
