"""Variables by themselves: what noisy counts of single values say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def log_shares(sums: Any, values: Sequence[int], noise: float) -> list[Array]:
    """Centred log-probabilities of each variable's values, from sums of `indicators` without pairs.

    Counts are kept from below half a row or the noise's deviation, whichever is more: less cannot be told from none.
    """
    given = np.asarray(sums, dtype=float)
    found, at = [], 1
    for many in values:
        logs = np.log(np.maximum(given[at : at + many], max(0.5, float(noise))))
        found.append(logs - logs.mean())
        at += many
    return found
