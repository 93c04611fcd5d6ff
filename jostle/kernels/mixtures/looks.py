"""k-means of many columns: what a look says of all rows, and centres that are drawn to their mean.

Of many columns a grid has too few places, and a noisy covariance too many numbers: places drawn from one lie where its
noise says. A look has the sum of all rows, their number and how far from their mean they are. Places stand about that
mean, all as far, only as many as could be moved by more than noise. The mean of the rows about each is drawn to the
mean of all as far as noise explains that it differs (James and Stein). Where nothing else shows, that mean is what is
left, which is the best that one centre can be.
"""

from __future__ import annotations

from typing import TypedDict

import numpy as np

from jostle.kernels.arrays import Floats, Moments, Rows, Sums
from jostle.kernels.mixtures import gaussians as gauss
from jostle.kernels.mixtures.centres import Centres, Map, centres_of_map, map_begun, map_counted

ROOM = 2**14  # numbers of places that a release takes
FAR = 1.5  # times the rows' root mean square distance from the mean: where they are seen from
OUT = 0.7  # times the same: where places stand
SAID = 5.0  # times √d σ², above the d σ² of noise: a shorter squared length says nothing of a mean
LOUDEST = 0.2  # of the ball's squared radius: where noise has more, a mean says nothing


class Look(TypedDict):
    """A noisy sum (d,) and number of all rows in units of the ball, and the deviations of their noise.

    `reach` is the largest coordinate of a row, `mean` (d,) what the sum says of their mean, `spread` the mean squared
    distance of rows from there.
    """

    total: Floats
    noise: float
    rows: float
    rows_noise: float
    reach: float
    spread: float
    mean: Floats


def look_bound(rows: Rows) -> float:
    """The largest coordinate that a row can have."""
    return min(1.0, gauss.Space.of(rows).reach)


def look_begun(rows: Rows, count: Moments, total: Sums) -> Look:
    """What a noisy count and a noisy sum of all rows say, of which the spread is not known yet."""
    n, numbers = float(np.asarray(count["count"]).sum()), np.asarray(total["sum"], dtype=float)
    return _look(numbers, float(total["noise"]), n, float(count["count_noise"]), look_bound(rows), 1.0)


def spread_view(look: Look) -> dict[str, object]:
    """The parameters of the row kernel `log_density` that make it 1 less a row's squared distance from the mean."""
    d = len(look["mean"])
    low = -1.0 - d / 2 * np.log(2 * np.pi)
    factors = np.sqrt(2.0) * np.eye(d)[None]
    return {"means": look["mean"][None], "factors": factors, "offsets": [0.0], "low": low, "high": low + 1.0}


def look_spread(look: Look, near: Sums) -> Look:
    """The look with the spread that the sum of these says, and its noise more: where too few rows are seen whole, the
    mean of the others is of no use."""
    far = _number(look) - float(np.asarray(near["sum"]).sum()) + float(near["noise"])
    return {**look, "spread": float(np.clip(far / _number(look), 1e-3, 1.0))}


def look_view(look: Look) -> dict[str, object]:
    """The parameters of the row kernel `nearest_from`: the mean, and how far from it a row is seen."""
    return {"centres": look["mean"][None], "radius": _radius(look)}


def look_again(look: Look, sums: Moments) -> Look:
    """Number and sum by precision with those of rows that were seen from the mean; the spread as far as that moved."""
    radius, n = _radius(look), np.asarray(sums["count"], dtype=float).sum()
    rows, rows_noise = _joined(np.asarray(look["rows"]), look["rows_noise"], n, float(sums["count_noise"]))
    from_mean = np.asarray(sums["first"], dtype=float)[0] * radius
    total, noise = _joined(
        look["total"], look["noise"], rows * look["mean"] + from_mean, float(sums["first_noise"]) * radius
    )
    again = _look(total, noise, float(rows), rows_noise, look["reach"], look["spread"])
    moved, unsure = again["mean"] - look["mean"], 2 * len(from_mean) * (noise / _number(again)) ** 2
    nearer = look["spread"] - float(moved @ moved) + unsure
    return {**again, "spread": float(np.clip(nearer, 1e-4, look["spread"]))}


def look_places(look: Look, noise: float, mechanism: str) -> int:
    """How many places there are rows to move, by about a third of the amount; `noise` is that of all of it."""
    d = len(look["mean"])
    length = noise * d if mechanism == "laplace" else noise * np.sqrt(d)
    return int(min(0.35 * _number(look) / max(FAR * length, 1e-9), 64, ROOM // d))


def places_about(look: Look, places: int, seed: int = 0) -> dict[str, object]:
    """The parameters of the row kernel `nearest_from`: so many places about the mean, all as far from it."""
    away = gauss.dispersed_points(places, len(look["mean"]), seed)
    away *= OUT * np.sqrt(look["spread"]) / np.maximum(np.linalg.norm(away, axis=1, keepdims=True), 1e-12)
    return {"centres": gauss.inside_ball(look["mean"] + away), "radius": _radius(look)}


def means_about(look: Look, view: dict[str, object], sums: Moments) -> Map:
    """A map of the means of the rows nearest to each place, drawn to the mean of all as far as they are noise."""
    where, radius = np.asarray(view["centres"], dtype=float), _radius(look)
    n = np.maximum(np.nan_to_num(np.asarray(sums["count"])), 2 * float(sums["count_noise"]) + 1.0)[:, None]
    steps = where + np.nan_to_num(np.asarray(sums["first"])) * radius / n - look["mean"]
    d, noise = where.shape[1], float(sums["first_noise"]) * radius / n
    squared = np.maximum((steps * steps).sum(axis=1, keepdims=True), 1e-300)
    signal = np.maximum(0.0, 1 - (d + 2 * np.sqrt(d)) * noise**2 / squared)
    map: Map = {**map_begun(where), "places": gauss.inside_ball(look["mean"] + signal * steps)}
    map["widths"] = np.full(len(where), np.sqrt(look["spread"]))
    return map_counted(map, sums)


def centres_about(rows: Rows, look: Look, map: Map | None, clusters: int, seed: int = 0) -> Centres:
    """k-means on a map, or all at the mean of all rows where it shows none."""
    if map is None or not (np.asarray(map["counts"]) > float(map["noise"] or 0.0)).any():
        return Centres(gauss.Space.of(rows), look["mean"][None])
    return centres_of_map(rows, map, clusters, seed)


def centres_beside(look: Look, centres: Centres, clusters: int) -> Centres:
    """So many centres: these, and the others at the mean of all rows."""
    rest = np.repeat(look["mean"][None], clusters - centres.size, axis=0)
    return Centres(centres.space, np.concatenate([centres.centres, rest]))


def _look(total: Floats, noise: float, rows: float, rows_noise: float, reach: float, spread: float) -> Look:
    look: Look = {
        "total": total, "noise": noise, "rows": rows, "rows_noise": rows_noise, "reach": reach, "spread": spread,
        "mean": total,
    }  # fmt: skip
    mean, deviation, d = total / _number(look), noise / _number(look), len(total)
    squared = float(mean @ mean)
    says = d * deviation**2 < LOUDEST and squared > (d + SAID * np.sqrt(d)) * deviation**2
    mean = mean * (1 - d * deviation**2 / squared) if says else np.zeros(d)
    return {**look, "mean": np.clip(gauss.inside_ball(mean[None])[0], -reach, reach)}


def _number(look: Look) -> float:
    return max(look["rows"], look["rows_noise"], 1.0)


def _radius(look: Look) -> float:
    return float(min(2.0, FAR * np.sqrt(look["spread"])))


def _joined(one: Floats, noise: float, other: Floats, other_noise: float) -> tuple[Floats, float]:
    """Two noisy numbers by their precision, and the noise of that."""
    share = noise**2 / max(noise**2 + other_noise**2, 1e-300)
    return one + share * (other - one), float(np.sqrt(share) * other_noise)
