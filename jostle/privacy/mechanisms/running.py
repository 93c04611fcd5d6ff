"""What is measured of a stream so that its running sums come out well: a public matrix of integers, step by step.

Step t of n (from 1) measures a few rows of the matrix M, which weigh steps up to t alone. So what is released at a
step is a function of the stream up to there, and a running sum is a fixed combination of what was released
(`run.answers.running_weights`).

* `Roots`, for Gaussian noise: one row a step, M[t, s] = c[t − s]·d[s], with c the coefficients of (1 − x)^(−½), of
  which the matrix of all running sums is the square (Fichtenberger, Henzinger, Upadhyay 2023), and d[s] such that all
  columns have one norm: the last steps, which later rows see no more, are measured with less noise. Both are rounded to
  a grid, and decoded as rounded. The root of the mean squared error is within 1.02 of the least of any matrix
  (docs/privacy/streams.md).
* `Tree`, for Laplace noise: a row for each stretch of 2^l steps that ends at a step which 2^l divides (Dwork, Naor,
  Pitassi, Rothblum 2010; Chan, Shi, Song 2011).

*Argument.* The entries of a column are at least 0, do not grow with t once they have begun, and do not fall with s.
`norms` are the largest ℓ₁ and ℓ₂ norms of a column, calculated of the integers themselves, as in `linear`.
"""

from __future__ import annotations

import math
from functools import cached_property, lru_cache

from jostle.integers import fixed_width
from jostle.lazy import Ints, np

MOST_STEPS = 2**13
LAG_BITS, STEP_BITS = 14, 9


class Tree:
    """Stretches of 1, 2, 4, … steps, each as soon as its last step is over: one a step, and more where t is even."""

    bits = 0

    def __init__(self, steps: int) -> None:
        self.steps, self.most_rows = steps, steps.bit_length()

    def rows_up_to(self, step: int) -> int:
        """How many numbers are measured in the first so many steps."""
        return 2 * step - step.bit_count()

    def matrix(self, after: int, until: int) -> Ints:
        """The rows of the steps after `after`, up to `until`: a column for each of the first `until` steps."""
        rows = np.zeros((self.rows_up_to(until) - self.rows_up_to(after), until), dtype=np.int64)
        ends = [(end, level) for end in range(after + 1, until + 1) for level in range(_divisions(end) + 1)]
        for row, (end, level) in zip(rows, ends, strict=True):
            row[end - (1 << level) : end] = 1
        return rows

    @cached_property
    def norms(self) -> tuple[int, float]:
        """A step is in one stretch of each length that fits: the first one is in all of them."""
        levels = self.steps.bit_length()
        return levels, math.sqrt(levels) * (1 + 2.0**-40)


class Roots:
    """The square root of running sums, its columns as long as each other."""

    bits = LAG_BITS + STEP_BITS
    most_rows = 1

    def __init__(self, steps: int) -> None:
        self.steps, lags = steps, np.arange(1, steps)
        root = np.concatenate([[1.0], np.cumprod((2 * lags - 1) / (2 * lags))])
        length = np.cumsum(root**2)
        self.lags: Ints = fixed_width(root * 2**LAG_BITS)
        self.scales: Ints = fixed_width(np.sqrt(length[-1] / length[::-1]) * 2**STEP_BITS)

    def rows_up_to(self, step: int) -> int:
        """How many numbers are measured in the first so many steps."""
        return step

    def matrix(self, after: int, until: int) -> Ints:
        """The rows of the steps after `after`, up to `until`: a column for each of the first `until` steps."""
        lag = np.arange(after, until)[:, None] - np.arange(until)
        return np.where(lag >= 0, self.lags[lag] * self.scales[:until], 0)

    @cached_property
    def norms(self) -> tuple[int, float]:
        l1 = np.cumsum(self.lags)[::-1] * self.scales
        l2 = np.cumsum(self.lags**2)[::-1] * self.scales**2
        return int(l1.max()), math.sqrt(float(l2.max())) * (1 + 2.0**-40)


def _divisions(number: int) -> int:
    """How often a number can be halved."""
    return (number & -number).bit_length() - 1


@lru_cache(maxsize=2**4)
def matrix_of(steps: int, gaussian: bool) -> Roots | Tree:
    """What is measured of a stream of so many steps."""
    return Roots(steps) if gaussian else Tree(steps)
