"""Naive Bayes whose noisy tables are shrunk towards independence by empirical Bayes.

Plain naive Bayes takes noisy counts for counts. Here cell (c, v) of an attribute's table is N_c·p_v + d, what class
counts and value counts alone would give and a difference d ~ N(0, τ²·N_c·p_v·n/(C·V)), measured with noise of a
known law. How strongly an attribute speaks, τ, is one of `SPREADS`, in shares that the attributes of the table
at hand find by expectation and maximisation (empirical Bayes). The weights are those of the posterior means of d.

Laplace noise makes the posterior mean of a cell level off: far from what is expected it says no more than near by.
So an attribute without a voice is nearly silent, and where all is noise the most frequent class answers.

All of it is post-processing of released tables. Shapes: C classes, V values of an attribute, G = `len(SPREADS)`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jostle.kernels.arrays import Floats
from jostle.kernels.classifiers.codes import Value, value_tuple
from jostle.kernels.classifiers.fits import Attribute, bins_of, values_of
from jostle.kernels.classifiers.models import AdditiveClassifier
from jostle.kernels.noisy_array import law_of
from jostle.noise_laws import Gaussian, Laplace

SPREADS = np.array([0.0, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6])
SHARES = np.array([0.05, 0.05, 0.1, 0.2, 0.3, 0.25, 0.05])
"""The prior shares of attributes of each strength: those of public tables are mostly between 0.1 and 1."""
STRENGTH = 10.0
"""The weight of the prior `SHARES`, in attributes."""
ROUNDS = 30
SMALLEST = 1e-9
"""The least variance, for an attribute without influence."""
NONE = 0.01
"""Noise below this scale counts as none."""
HALF = 0.5
"""The power by which a class's weights are made to be shares of it. In full, a class keeps nothing of what all its
tables say of its size; not at all, the tables' noise speaks for or against the whole class."""


def shrunk_bayes_model(
    classes: Sequence[Value], attributes: Sequence[Attribute], tables: Sequence[Floats]
) -> AdditiveClassifier:
    """The model from tables (C, V), one an attribute, of one measurement, whose noise they carry (none: exact)."""
    noise = law_of(tables[0])
    plain = [np.asarray(t, dtype=float) for t in tables]
    class_sizes = prior_counts(plain, noise.deviation)
    expected = [class_sizes[:, None] * value_shares(t, float(class_sizes.sum()), noise.deviation) for t in plain]
    gaps = differences([t - e for t, e in zip(plain, expected, strict=True)], expected, noise)
    weights = {}
    for attribute, e, d in zip(attributes, expected, gaps, strict=True):
        cells = np.maximum(e + d, 0) + 1
        own = np.log(cells.sum(axis=1, keepdims=True) / (e + 1).sum(axis=1, keepdims=True))
        weights[str(attribute["name"])] = (values_of(attribute), np.log(cells / (e + 1)) - HALF * own)
    return AdditiveClassifier(
        "shrunk naive Bayes", value_tuple(classes), np.log(class_sizes), weights, bins=bins_of(attributes)
    )


def prior_counts(tables: Sequence[Floats], deviation: float) -> Floats:
    """Class counts (C,), drawn towards even ones as far as they differ no more than noise does (James and Stein).

    A table's row sums carry the noise of V cells, so each table weighs 1/V. None is below half of a deviation.
    """
    classes = tables[0].shape[0]
    each = np.array([1 / table.shape[1] for table in tables])
    counts = (each[:, None] * np.array([table.sum(axis=1) for table in tables])).sum(axis=0) / each.sum()
    variance = deviation**2 / each.sum()
    size = max(float(counts.sum()), float(classes))
    even = counts.mean()
    spread = float(((counts - even) ** 2).sum()) / max(1, classes - 1)
    shrunken = np.maximum(even + max(0.0, 1 - variance / max(spread, 1e-9)) * (counts - even), 1.0)
    result: Floats = np.maximum(shrunken * size / shrunken.sum(), 1 + 0.5 * np.sqrt(variance))
    return result


def value_shares(table: Floats, size: float, deviation: float) -> Floats:
    """Shares of an attribute's values (V,), drawn towards even ones as far as noise accounts for their differences."""
    classes, values = table.shape
    counts, even = table.sum(axis=0), size / values
    variance = classes * deviation**2
    spread = max(float(((counts - even) ** 2).mean()) - variance * (values - 1) / values, 0.0)
    shrinkage = spread / (spread + variance) if spread + variance > 0 else 0.0
    cells = np.maximum(even + shrinkage * (counts - even), 0) + 1
    shares: Floats = cells / cells.sum()
    return shares


def differences(gaps: Sequence[Floats], expected: Sequence[Floats], law: Laplace | Gaussian) -> list[Floats]:
    """The posterior means of what cells differ by, from what they were measured to (each (C, V))."""
    if law.scale < NONE:
        return list(gaps)
    sizes = [e.size for e in expected]
    level = np.repeat([e.sum() / e.size for e in expected], sizes)  # of all attributes side by side, as all below
    variances = np.maximum(SPREADS[:, None] ** 2 * _flat(expected) * level, SMALLEST)
    logs, means = _POSTERIORS[type(law)](_flat(gaps), variances, law.scale)
    ends = np.cumsum(sizes)[:-1]
    evidence = np.array([
        ((c - 1) * (v - 1) / (c * v) if v > 1 else 1.0) * part.sum(axis=1)
        for (c, v), part in zip((e.shape for e in expected), np.split(logs, ends, axis=1), strict=True)
    ])  # fmt: skip
    whole = (np.repeat(_beliefs(evidence).T, sizes, axis=1) * means).sum(axis=0)
    return [part.reshape(e.shape) for part, e in zip(np.split(whole, ends), expected, strict=True)]


def _flat(tables: Sequence[Floats]) -> Floats:
    return np.concatenate([table.ravel() for table in tables])


def _beliefs(evidence: Floats) -> Floats:
    """For each attribute the probabilities of `SPREADS`, whose shares among the attributes are found with them."""
    shares = SHARES
    for _ in range(ROUNDS):
        logs = np.log(shares) + evidence
        belief: Floats = np.exp(logs - np.maximum.reduce(logs, axis=1, keepdims=True))  # thrice as quick as `max`
        belief /= np.add.reduce(belief, axis=1, keepdims=True)
        shares = np.add.reduce(belief, axis=0) + STRENGTH * SHARES
        shares = shares / np.add.reduce(shares)
    return belief


def laplace_posterior(y: Floats, variance: Floats, scale: float) -> tuple[Floats, Floats]:
    """The log density of y = d + noise, and the mean of d given y, for d ~ N(0, variance) and Laplace noise.

    Below y the exponent of the noise tilts the normal density by variance/scale upwards, above it by as much
    downwards: the posterior is two pieces of normal densities, and its mean that of theirs.
    """
    from scipy.special import log_ndtr

    deviation, tilt = np.sqrt(variance), variance / scale
    below, above = (y - tilt) / deviation, (-y - tilt) / deviation
    log_below, log_above = log_ndtr(below), log_ndtr(above)
    low, high = -y / scale + log_below, y / scale + log_above
    log = np.logaddexp(low, high)
    share = np.exp(low - log)
    down, up = _hazard(below, log_below), _hazard(above, log_above)
    mean = share * (tilt - deviation * down) + (1 - share) * (deviation * up - tilt)
    return log + tilt / (2 * scale) - np.log(2 * scale), mean


def gaussian_posterior(y: Floats, variance: Floats, scale: float) -> tuple[Floats, Floats]:
    """The log density and posterior mean under Gaussian noise of deviation `scale`, as in `laplace_posterior`."""
    whole = variance + scale**2
    return -(y**2) / (2 * whole) - np.log(2 * np.pi * whole) / 2, variance / whole * y


_POSTERIORS = {Laplace: laplace_posterior, Gaussian: gaussian_posterior}


def _hazard(z: Floats, log: Floats) -> Floats:
    """φ(z)/Φ(z), which far below 0 is −z − 1/z; `log` is that of Φ(z)."""
    near, far, beyond = np.maximum(z, -50.0), np.minimum(z, -50.0), z < -50
    exact = np.exp(-near * near / 2 - 0.5 * np.log(2 * np.pi) - np.where(beyond, 0.0, log))
    ratio: Floats = np.where(beyond, -far - 1 / far, exact)
    return ratio
