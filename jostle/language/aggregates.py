"""The aggregates of a select: what a check before the run must know of each."""

from __future__ import annotations

_ROWS = (
    # name, what it is, whether its terms need known bounds
    ("count", "how many rows, values, or distinct values there are", False),
    ("sum", "the sum", True),
    ("avg", "the mean", True),
    ("var", "the sample variance", True),
    ("stddev", "the sample standard deviation", True),
    ("median", "the median", False),
    ("quantile", "a quantile", False),
    ("min", "the smallest value", False),
    ("max", "the largest value", False),
    ("mode", "the most frequent value", False),
)

AGGREGATES = {name: about for name, about, _ in _ROWS}
BOUNDED = frozenset(name for name, _, bounded in _ROWS if bounded)
