"""How wide the noise of an answer is: the half-width that holds 95 % of a weighted sum of noises.

Of Gaussian noises the sum is Gaussian. Of Laplace noises it lies between one of them and a Gaussian; its distribution
follows from its characteristic function Π 1/(1 + bᵢ²t²), whose Fourier series on a period of 24 deviations gives
P(|sum| ≤ h) to 1e-6: what wraps around has a probability below e⁻¹⁶, and of the series the first 400 terms are taken.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from jostle.error_laws import sum_quantile
from jostle.kernels.arrays import Floats
from jostle.noise_laws import LEVEL, Gaussian, Laplace

PERIOD, TERMS = 24.0, 400
SAFE = 1 + 1e-5
"""What half-widths are calculated to."""


def laplace_half_width(deviations: Floats) -> float:
    """h with P(|Σ noise| ≤ h) = 95 %, of independent Laplace noises with these deviations, of shape (noises,)."""
    whole = math.sqrt(float(deviations @ deviations))
    if not whole:
        return 0.0
    parts, many = np.unique((deviations / whole).round(9), return_counts=True)
    frequencies, sums, places = _series()
    logs = np.log1p(np.multiply.outer(frequencies**2, parts**2 / 2)) @ many
    inside = 2 * places / PERIOD + sums @ np.exp(-logs)
    return whole * float(np.interp(LEVEL, inside, places))


@lru_cache(maxsize=1)
def _series() -> tuple[Floats, Floats, Floats]:
    """The frequencies, what each adds to P(|sum| ≤ h) at some places h, and these places, all in deviations."""
    k = np.arange(1, TERMS + 1)
    frequencies = 2 * np.pi * k / PERIOD
    places = np.linspace(sum_quantile(Gaussian) - 0.01, sum_quantile(Laplace) + 0.01, 60)
    sums: Floats = np.asarray(2 / (np.pi * k) * np.sin(np.multiply.outer(places, frequencies)), dtype=float)
    return np.asarray(frequencies, dtype=float), sums, places


def grid_step(weights: Floats) -> float:
    """The largest number of which all weights are whole multiples, 0 where it is below a thousandth of the largest."""
    values = np.unique(np.abs(weights[weights != 0]).round(12))
    if not values.size or len(values) > 100:
        return 0.0
    least, step = float(values[-1]) / 1000, float(values[0])
    for value in values[1:].tolist():
        while value > least * 1e-3:
            step, value = value, step % value
            if value > step * (1 - 1e-6):
                value = 0.0
        if step < least:
            return 0.0
    return step


def whole_width(wanted: float, step: float) -> float:
    """A half-width of continuous noise that suffices for `wanted` of noise on a grid.

    With h the last place of the grid up to `wanted`, discrete noise is in −h … h with a probability no smaller than
    that with which its continuous sister lies within h and half a step.
    """
    return (math.floor(wanted / step * (1 + 1e-12)) + 0.5) * step if step else wanted
