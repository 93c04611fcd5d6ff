"""The means, or shares, of two groups compared: the difference, its intervals, and how likely chance would give it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jostle.kernels.statistics.moments import CLEAR, SAMPLING, quantile_of
from jostle.kernels.statistics.report import Report


def group_difference(
    names: Sequence[Any], seen: Sequence[Mapping[str, Any]], middle: float, half: float, what: str
) -> Report:
    """The second group's mean less the first's, from the noisy shares (`mean_of`) of each group.

    x is middle + half · z. Sampling takes the groups as independent rows of two larger ones (Welch). The chance
    of so large a difference, where there is none, counts the noise as one Laplace noise of its size where it is not
    Gaussian, which has the longest tail that it can have.
    """
    mechanism = seen[0]["mechanism"]
    quantile = quantile_of(mechanism)
    groups = [mean_of(moments) for moments in seen]
    hidden = any(g.hidden for g in groups)
    rows = [
        _line(str(name), g.rows, middle + half * g.mean, math.inf if g.hidden else quantile * half * g.noise,
              half * g.deviation / math.sqrt(g.rows))
        for name, g in zip(names, groups, strict=True)
    ]  # fmt: skip
    value = half * (groups[1].mean - groups[0].mean)
    noise = half * math.hypot(*(g.noise for g in groups))
    sampling = half * math.hypot(*(g.deviation / math.sqrt(g.rows) for g in groups))
    rows.append(_line("difference", None, value, math.inf if hidden else quantile * noise, sampling))
    chance = 1.0 if hidden else chance_of(abs(value), noise, sampling, mechanism != "gaussian")
    notes = [
        "the noise hides how many rows a group has: the intervals are infinite; spend more" if hidden else
        f"if the groups did not differ, a difference of this size would come by chance {_percent(chance)} of the time"
    ]  # fmt: skip
    facts = {k: rows[-1][k] for k in ("error", "low", "high")}
    return Report(f"{what}, {names[1]} less {names[0]}", rows, notes, {"difference": value, "chance": chance, **facts})


@dataclass(frozen=True, slots=True)
class NoisyMean:
    """Mean and standard deviation of one coordinate within [−1, 1], the noise in each, and whether noise hides both."""

    rows: float
    mean: float
    noise: float
    deviation: float
    deviation_noise: float
    hidden: bool


def mean_of(seen: Mapping[str, Any]) -> NoisyMean:
    """Of the noisy sums of u², 2u(1 − u) and (1 − u)² of u = (z + 1)/2, or of u and 1 − u where z is −1 or 1."""
    sums, noise = np.asarray(seen["sum"], dtype=float), float(seen["noise"])
    value, square = (np.array(v) for v in (((1, 0, -1), (1, -1, 1)) if len(sums) == 3 else ((1, -1), (1, 1))))
    n = float(sums.sum())
    hidden = n <= max(CLEAR * noise * math.sqrt(len(sums)), 1.0)
    n = max(n, 1.0)
    away = min(max(float(value @ sums) / n, -1.0), 1.0)
    squares = float(square @ sums) / n
    variance = min(max(squares - away**2, 0.0), 1.0)
    wobble = noise * float(np.linalg.norm(square - squares - 2 * away * (value - away))) / n
    deviation = math.sqrt(variance)
    return NoisyMean(
        n, away, noise * float(np.linalg.norm(value - away)) / n, deviation,
        wobble / (2 * max(deviation, math.sqrt(wobble / 2), 1e-300)), hidden,
    )  # fmt: skip


def _line(name: str, rows: float | None, value: float, error: float, sampling: float) -> dict[str, Any]:
    wide = math.hypot(error, SAMPLING * sampling)
    return {"group": name, "rows": None if rows is None else float(round(rows)), "value": value, "error": error,
            "low": value - wide, "high": value + wide}  # fmt: skip


def chance_of(distance: float, noise: float, sampling: float, laplace: bool) -> float:
    """P(|X| ≥ distance) for X a normal of deviation `sampling`, and Laplace or Gaussian noise of deviation `noise`."""
    if not laplace or noise <= 1e-3 * sampling:
        both = math.hypot(noise, sampling)
        return math.erfc(distance / both / math.sqrt(2)) if both > 0 else float(distance == 0)
    scale = noise / math.sqrt(2)
    if sampling < 1e-3 * noise:
        return math.exp(-distance / scale)
    # a normal beyond d, and what the exponential tails on either side carry over or take away
    near, ratio = distance / sampling, sampling / scale
    out = 0.5 * math.erfc(near / math.sqrt(2))
    carried = _scaled_tail(ratio - near, ratio**2 / 2 - distance / scale)
    taken = _scaled_tail(ratio + near, ratio**2 / 2 + distance / scale)
    return min(max(2 * (out + 0.5 * (carried - taken)), 0.0), 1.0)


def _scaled_tail(at: float, logs: float) -> float:
    """exp(logs) · P(Z ≥ at) for a standard normal Z, without overflow."""
    if at > 25:
        tail = -(at**2) / 2 - math.log(at * math.sqrt(2 * math.pi))
        return math.exp(min(tail + logs, 0.0))
    return math.exp(math.log(max(0.5 * math.erfc(at / math.sqrt(2)), 1e-300)) + logs)


def _percent(chance: float) -> str:
    return f"{100 * chance:.2g} %" if chance >= 1e-4 else "less than 0.01 %"
