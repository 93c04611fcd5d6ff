"""Means of many strata from noisy totals, drawn towards a model that is smooth in what the strata are made of."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jostle.kernels.arrays import Floats


@dataclass(frozen=True, eq=False)
class Seen:
    """Noisy totals and numbers of rows of strata (S,). `noise`: the variance of the noise of totals − mean · rows;
    `spread`: that of a row; `unsure`: the deviation of the noise of rows."""

    totals: Floats
    rows: Floats
    noise: float
    spread: float
    unsure: float


@dataclass(frozen=True, eq=False)
class Smoothed:
    """The estimated `mean` of each stratum (S,), and the `covariance` left in them (S, S).

    `departure` (S,): how far the stratum's own mean is from the model, over `held` rows, with noise and sampling of
    the variance `doubt`; the share 1 − `drawn` of it is kept. `most`: at most about the variance of departures. `line`
    (S,): the variance that the model leaves in the mean. `reach` (S,): by how much a mean moves with its own total.
    """

    mean: Floats
    covariance: Floats
    departure: Floats
    held: Floats
    doubt: Floats
    drawn: Floats
    most: float
    line: Floats
    reach: Floats


def smoothed(seen: Seen, design: Floats, apart: float, alone: Any = False) -> Smoothed:
    """The mean of each stratum, totals / rows (S,), drawn towards a linear model of its `design` (S, d), but for those
    that stand `alone`.

    The model's coefficients are normal beforehand, so that a stratum's mean has the variance `apart`: what noise hides
    is drawn to the mean of all, and left in doubt by as much. Its equations are linear in what was measured, so that
    noise does not bend it. A stratum departs from it by as much as the squares of departures show beyond what noise and
    rows explain.
    """
    of_all = 2 * seen.unsure * math.sqrt(len(design))
    centre = float(np.clip(seen.totals.sum() / max(float(seen.rows.sum()), of_all, 1.0), 0, 1))
    rows = np.maximum(seen.rows, 0.0)
    unexplained = np.maximum(seen.noise + seen.unsure**2 * apart + seen.spread * rows, 1e-9)
    said = (design.T * seen.rows) @ design
    doubt_said = (design.T * unexplained) @ design
    solve = apart * said @ np.linalg.pinv(apart * said @ said + doubt_said, hermitian=True)
    to_line = design @ solve @ design.T
    line = centre + to_line @ (seen.totals - centre * seen.rows)
    rest = np.eye(design.shape[1]) - solve @ said
    of_line = design @ (apart * rest @ rest.T + solve @ doubt_said @ solve.T) @ design.T
    held = np.maximum(seen.rows, max(2 * seen.unsure, 1.0))
    departure = (seen.totals - line * seen.rows) / held
    doubt = unexplained / held**2
    precision = float((1 / doubt**2).sum())
    own = max(float((departure**2 / doubt**2 - 1 / doubt).sum()) / precision, 0.0)
    kept = np.where(alone, 1.0, own / (doubt + own))
    most = max(min(own + math.sqrt(2 / precision), apart), 1e-12)
    drawn = 1 - kept * np.clip(seen.rows / held, 0.0, 1.0)
    covariance = np.outer(drawn, drawn) * of_line + np.diag(drawn**2 * most + kept**2 * doubt)
    reach = drawn * np.diag(to_line) + kept / held
    left = drawn**2 * np.diag(of_line)
    return Smoothed(line + kept * departure, covariance, departure, held, doubt, drawn, most, left, reach)


def values_of(sizes: Sequence[int]) -> Floats:
    """A design of strata, (S, Σ size): an indicator of each value of each covariate, of which there are so many, over
    the root of the number of covariates. The first covariate changes slowest."""
    places = np.indices(sizes).reshape(len(sizes), -1) if sizes else np.zeros((0, 1), dtype=int)
    columns = [(place == v).astype(float) for place, size in zip(places, sizes, strict=True) for v in range(size)]
    return np.stack(columns, axis=1) / math.sqrt(len(sizes)) if columns else np.zeros((1, 0))
