"""The scale on which utilities are compared: errors relative to each other, other utilities as they are.

Where every utility is at most 0 it is taken for a negative error, and what is modelled is minus its logarithm, so
that a large data set weighs no more than a small one. Elsewhere the utility itself is modelled. Either way a larger
score is better and the difference of two scores is a regret.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from jostle.records import as_dict

LIMIT = 1e300


class UtilityScale(Struct, frozen=True):
    """`name` is `log error` or `utility`; an error below `floor` counts as `floor`."""

    name: str
    floor: float = 0.0

    @property
    def logarithmic(self) -> bool:
        return self.name == "log error"

    def score(self, utility: float) -> float:
        return -math.log(max(-utility, self.floor)) if self.logarithmic else utility

    def utility(self, score: float) -> float:
        return -math.exp(min(-score, 690.0)) if self.logarithmic else score

    def width(self, utility: float, spread: float) -> float:
        """A standard deviation of scores as one of utilities near `utility` (to first order)."""
        return abs(utility) * spread if self.logarithmic else spread

    def as_json(self) -> dict[str, Any]:
        return as_dict(self)

    @staticmethod
    def from_json(data: dict[str, Any]) -> UtilityScale:
        return UtilityScale(data["name"], data["floor"])


def scale_of(utilities: Iterable[float]) -> UtilityScale:
    """The scale that fits these utilities (finite numbers).

    The floor of errors is a tenth of the smallest that is not 0, and at least a billionth of the median: one run that
    fails by far must not make all others count as the same.
    """
    values = list(utilities)
    errors = [-u for u in values if u < 0]
    if not errors or any(u > 0 for u in values):
        return UtilityScale("utility")
    return UtilityScale("log error", max(min(errors) / 10, statistics.median(errors) * 1e-9))


def finite(value: float) -> float:
    """A feature as models see it: overflow becomes ±1e300, and what is no number the lowest of all."""
    return -LIMIT if math.isnan(value) else min(max(float(value), -LIMIT), LIMIT)
