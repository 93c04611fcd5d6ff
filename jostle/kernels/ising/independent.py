"""Independent variables: log-probabilities of single values from noisy counts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jostle.kernels.arrays import Floats


def log_shares(sums: object, values: Sequence[int], noise: float) -> list[Floats]:
    """Centred log-probabilities of each variable's values, from sums of `indicators` without pairs.

    Counts are kept from below half a row or the noise's deviation, whichever is more: less cannot be told from none.
    """
    counts = np.asarray(sums, dtype=float)
    shares, at = [], 1
    for many in values:
        logs = np.log(np.maximum(counts[at : at + many], max(0.5, float(noise))))
        shares.append(logs - logs.mean())
        at += many
    return shares
