"""k-means from noisy counts and sums: starts, steps, and the centres as a public value."""

from __future__ import annotations

from typing import TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jostle.kernels import KernelError, members
from jostle.kernels.arrays import Floats, Moments, Rows
from jostle.kernels.mixtures import gaussians as gauss


class Map(TypedDict):
    """Few places (M, d) that stand for rows, and how far each reaches; noisy counts of the rows nearest to each."""

    places: Floats
    widths: Floats
    counts: Floats | None
    noise: float | None


class Centres(gauss.OfVectors):
    """Centres of clusters that were paid for: a public value with scikit-learn's face.

    `cluster_centers_` (K, d) are in the units of the data; `predict`, `transform`, `score` take rows (n, d).
    """

    def __init__(self, space: gauss.Space, centres: Floats) -> None:
        """Brought within the columns' bounds, where each lies no farther from any row."""
        self.space, self.centres = space, np.clip(centres, -space.reach, space.reach)

    @property
    def cluster_centers_(self) -> Floats:
        return self.space.outside(self.centres)

    def transform(self, rows: gauss.VectorRows) -> Floats:
        """The distances to the centres, in the units of the data, (n, K)."""
        x = self.space.numbers(rows)
        squared = (x * x).sum(axis=1)[:, None] - 2 * x @ self.cluster_centers_.T
        squared += (self.cluster_centers_**2).sum(axis=1)
        return np.sqrt(np.maximum(squared, 0.0))  # type: ignore[no-any-return]

    def predict(self, rows: gauss.VectorRows) -> NDArray[np.int64]:
        return np.asarray(np.argmin(self.transform(rows), axis=1))

    def score(self, rows: gauss.VectorRows, y: object = None) -> float:
        """Minus the sum of squared distances to the nearest centre."""
        return -float((self.transform(rows).min(axis=1) ** 2).sum())

    def nicv(self, rows: gauss.VectorRows) -> float:
        """The normalised intra-cluster variance: the mean squared distance to the nearest centre."""
        return float((self.transform(rows).min(axis=1) ** 2).mean())

    jostle_kind = "centres of clusters"
    jostle_members = members("size columns nicv", centres="cluster_centers_", predict="nearest")

    @property
    def size(self) -> int:
        return len(self.centres)

    def nearest(self, rows: gauss.VectorRows) -> Floats:
        """The nearest centre of each row, as numbers of the language."""
        return self.predict(rows).astype(float)

    def as_json(self) -> dict[str, object]:
        columns, centres = list(self.space.columns), self.cluster_centers_.tolist()
        return {"kind": "centres", "columns": columns, "centres": centres}

    def __str__(self) -> str:
        lines = [f"{len(self.centres)} centres over {', '.join(self.space.columns[:8])}"]
        lines += ["  " + ", ".join(f"{v:.6g}" for v in centre[:8]) for centre in self.cluster_centers_[:20]]
        return "\n".join(lines)


def centres_start(rows: Rows | gauss.GaussianMixture, clusters: int, seed: int = 0) -> Centres:
    """Centres spread evenly over the ball's middle, or as a released Gaussian says: nothing else is looked at."""
    if not 1 <= clusters <= 64:
        raise KernelError("there are 1 to 64 clusters")
    if isinstance(rows, gauss.GaussianMixture):
        space, d = rows.space, rows.space.size
        lower, middle = np.linalg.cholesky(rows.covariances[0]), rows.means[0]
    else:
        space = gauss.Space.of(rows)
        d = space.size
        lower, middle = np.eye(d) * 0.5 / np.sqrt(d), np.zeros(d)
    return Centres(space, gauss.inside_ball(middle + gauss.dispersed_points(clusters, d, seed) @ lower.T))


def centres_view(model: Centres, pooled: gauss.GaussianMixture | None = None) -> dict[str, object]:
    """The parameters of the row kernel `nearest_from`: how far from its centre a row is seen.

    Twice the root mean square distance that `clusters` even parts of the pooled Gaussian would have.
    """
    radius = 2.0
    if pooled is not None:
        spread = float(np.sqrt(np.trace(pooled.covariances[0])))
        radius = min(2.0, 2 * spread * len(model.centres) ** (-1 / model.space.size))
    return {"centres": model.centres, "radius": radius}


def centres_moved(model: Centres, sums: Moments, radius: float) -> Centres:
    """Each centre moved by the noisy mean of what lies around it, by the part of the step that exceeds its noise."""
    return Centres(model.space, gauss.inside_ball(model.centres + _steps(model.space.size, sums, radius)))


def _steps(d: int, sums: Moments, radius: float) -> Floats:
    """The noisy means of rows about places, by the part that exceeds their noise (James and Stein), (K, d)."""
    n = np.maximum(np.nan_to_num(np.asarray(sums["count"])), 2 * float(sums["count_noise"]) + 1.0)
    step = np.nan_to_num(np.asarray(sums["first"])) * radius / n[:, None]
    noise = float(sums["first_noise"]) * radius / n
    shrinkage = np.maximum(0.0, 1 - d * noise**2 / np.maximum((step * step).sum(axis=1), 1e-300))
    return np.asarray(step * shrinkage[:, None])


def round_mixture(model: Centres, sums: Moments, radius: float, pooled: gauss.GaussianMixture) -> gauss.GaussianMixture:
    """Round Gaussians about the centres: of each the mean square distance of its rows, which sums over columns."""
    d = model.space.size
    n = np.maximum(np.nan_to_num(np.asarray(sums["count"])), max(2 * float(sums["count_noise"]), d + 1.0))
    update = centres_moved(model, sums, radius)
    step = update.centres - model.centres
    traces = np.einsum("kii->k", np.nan_to_num(np.asarray(sums["second"]))) * radius**2 / n
    noise = float(sums["second_noise"]) * np.sqrt(d) * radius**2 / n
    widest = float(np.trace(pooled.covariances[0]))
    variance = np.clip(traces - (step * step).sum(axis=1), np.minimum(noise / 2, widest), widest) / d
    covariances = np.maximum(variance, 2.0**-26)[:, None, None] * np.eye(d)
    return gauss.GaussianMixture(model.space, n / n.sum(), update.centres, covariances)


def centres_of_sums(model: Centres, sums: Moments) -> Centres:
    """Lloyd's step from noisy sums about the origin, as DPLloyd has it (Blum, Dwork, McSherry, Nissim 2005).

    A cluster whose noisy count is below 1 keeps its centre.
    """
    n = np.asarray(sums["count"], dtype=float)
    means = np.asarray(sums["first"]) / np.maximum(n, 1.0)[:, None]
    return Centres(model.space, np.clip(np.where((n >= 1.0)[:, None], means, model.centres), -1.0, 1.0))


def cells_like(shape: tuple[int, ...], cells: ArrayLike) -> Floats:
    """Flattened cells in the shape of their cube."""
    return np.asarray(cells, dtype=float).reshape(shape)


def centres_of_cells(rows: Rows, cells: ArrayLike, clusters: int, threshold: float = 0.0, seed: int = 0) -> Centres:
    """k-means on noisy counts of an even grid over the bounds of the columns (EUGkM: Su, Cao, Li, Bertino, Jin 2016).

    Counts below the threshold are taken for none: of many empty cells the noise would be many rows.
    """
    counts = np.nan_to_num(np.asarray(cells, dtype=float))
    counts = np.where(counts > threshold, counts, 0.0)
    space = gauss.Space.of(rows)
    if counts.ndim != space.size:
        raise KernelError(f"a grid of {counts.ndim} dimensions for {space.size} columns")
    axes = [(np.arange(side) + 0.5) / side * 2 - 1 for side in counts.shape]
    points = np.stack([a.ravel() for a in np.meshgrid(*axes, indexing="ij")], axis=1)
    weights = counts.ravel()
    points, weights = points[weights > 0], weights[weights > 0]
    return _centres_of_points(rows, points / float(rows["radius"]), weights, clusters, seed)


def map_places(start: Rows | gauss.GaussianMixture, places: int = 64, seed: int = 0) -> Floats:
    """At most `places` places to count rows about, in units of the ball, (M, d).

    An even grid over the bounds of the columns; for a released Gaussian of up to three columns a grid over where it
    lies; of more columns, for which a grid would have too few places an axis, draws from it, a little wider.
    """
    if not isinstance(start, gauss.GaussianMixture):
        return _grid(places, gauss.Space.of(start).size) / float(start["radius"])
    d, middle, lower = start.space.size, start.means[0], np.linalg.cholesky(start.covariances[0])
    if d > 3:
        return gauss.inside_ball(middle + 1.2 * gauss.generator(seed).standard_normal((places, d)) @ lower.T)
    return gauss.inside_ball(middle + 2.5 * _grid(places, d) @ lower.T)


def _grid(places: int, d: int) -> Floats:
    """The middles of an even grid of at most so many cells (of 2 along each axis, if these are more), (M, d)."""
    side = max(2, int(places ** (1 / d) + 1e-9))
    axis = (np.arange(side) + 0.5) / side * 2 - 1
    return np.stack([a.ravel() for a in np.meshgrid(*[axis] * d, indexing="ij")], axis=1)


def centres_of_places(rows: Rows, places: ArrayLike, counts: ArrayLike, clusters: int, seed: int = 0) -> Centres:
    """k-means on noisy counts (M,) of the rows about places (M, d)."""
    weights = np.nan_to_num(np.asarray(counts, dtype=float))
    some = weights > 0.0
    return _centres_of_points(rows, np.asarray(places, dtype=float)[some], weights[some], clusters, seed)


# Maps --------------------------------------------------------------------------------------------
#
# A map stands for rows by few places (M, d), in units of the ball, with noisy `counts` of the rows nearest to each and
# their `noise` (none before they were counted), and `widths` (M,), how far a place reaches.


def map_begun(places: ArrayLike) -> Map:
    """A map of places that are not counted yet. One reaches as far as the next one, and no less than is usual."""
    where = np.asarray(places, dtype=float)
    apart = ((where[:, None] - where[None]) ** 2).sum(axis=2)
    np.fill_diagonal(apart, np.inf)
    nearest = np.sqrt(np.minimum(apart.min(axis=1), 4.0))
    return _map(where, np.maximum(nearest, np.median(nearest)))


def map_counted(map: Map, seen: Moments) -> Map:
    """The map with noisy counts of the rows about its places; with those that it had, by their precision."""
    counts, noise = np.nan_to_num(np.asarray(seen["count"], dtype=float)), max(float(seen["count_noise"]), 1e-9)
    if map["noise"] is not None:
        weights = np.array([float(map["noise"]), noise]) ** -2.0
        counts = (weights[0] * np.asarray(map["counts"]) + weights[1] * counts) / weights.sum()
        noise = float(weights.sum() ** -0.5)
    return _map(np.asarray(map["places"]), np.asarray(map["widths"]), counts, noise)


def map_refined(map: Map, places: int = 64, seed: int = 0) -> Map:
    """A map of at most so many places where a counted one says that rows lie.

    A place whose count is above its noise becomes several, spread over its reach: as many as an even error of rows by
    their nearest place asks for (in d columns the power d/(d + 2) of rows times reach), one at least.
    """
    where, widths, weights = np.asarray(map["places"]), np.asarray(map["widths"]), _weights(map)
    if not weights.any():
        return map_begun(where)
    d = where.shape[1]
    densities = (weights * widths) ** (d / (d + 2))
    many = np.where(weights > 0, np.maximum(np.floor(places * densities / densities.sum()), 1), 0).astype(int)
    while many.sum() > places and many.max() > 1:
        many[many.argmax()] -= 1
    rng, parts, reaches = gauss.generator(seed), [], []
    for place, width, count in zip(where, widths, many.tolist(), strict=True):
        if count:
            few = count <= 12  # of more, draws are spread well by themselves
            spread = (
                gauss.dispersed_points(count, d, int(rng.integers(2**30))) if few else rng.standard_normal((count, d))
            )
            step = (0.0 if count == 1 else 0.35 * width / np.sqrt(max(d / 3, 1.0))) * np.clip(spread, -2, 2)
            parts.append(place + step)
            reaches.append(np.full(count, width * count ** (-1 / d)))
    return _map(gauss.inside_ball(np.concatenate(parts)), np.concatenate(reaches))


def map_view(map: Map) -> dict[str, object]:
    """The parameters of the row kernel `nearest_from`: the places, and how far from its place a row is seen."""
    where = np.asarray(map["places"])
    far = 1.5 if where.shape[1] < 3 else 1.8
    return {"centres": where, "radius": min(2.0, far * float(np.median(map["widths"])))}


def map_moved(map: Map, sums: Moments, radius: float) -> Map:
    """The map counted, each place where the rows about it lie in the mean, as far as that is more than noise."""
    where, widths = np.asarray(map["places"]), np.asarray(map["widths"])
    step = _steps(where.shape[1], sums, radius)
    step *= np.minimum(1.0, radius / np.maximum(np.linalg.norm(step, axis=1, keepdims=True), 1e-12))
    return map_counted(_map(gauss.inside_ball(where + step), widths), sums)


def map_strength(map: Map, clusters: int) -> float:
    """The rows for each cluster, over the noise of a count."""
    return max(float(np.sum(np.asarray(map["counts"]))), 0.0) / (float(map["noise"] or 0.0) * clusters)


def centres_of_map(rows: Rows, map: Map, clusters: int, seed: int = 0) -> Centres:
    """k-means on the places whose counts are above their noise."""
    return centres_of_places(rows, map["places"], _weights(map), clusters, seed)


def centres_seen(model: Centres, map: Map) -> dict[str, object]:
    """The parameters of the row kernel `nearest_from`: twice as far as rows are from their centre, by a map."""
    weights, where = _weights(map), np.asarray(map["places"])
    if not weights.any():
        return {"centres": model.centres, "radius": 1.0}
    off = ((where[:, None] - model.centres[None]) ** 2).sum(axis=2).min(axis=1)
    within = float(np.median(np.asarray(map["widths"])[weights > 0]))
    far = 2 * np.sqrt(float(weights @ off) / float(weights.sum()) + within**2 / 4)
    return {"centres": model.centres, "radius": float(np.clip(far, 1e-3, 2.0))}


def _map(places: Floats, widths: Floats, counts: Floats | None = None, noise: float | None = None) -> Map:
    return {"places": places, "widths": widths, "counts": counts, "noise": noise}


def _weights(map: Map) -> Floats:
    counts = np.asarray(map["counts"], dtype=float)
    return np.where(counts > float(map["noise"] or 0.0), counts, 0.0)


def _centres_of_points(rows: Rows, points: Floats, weights: Floats, clusters: int, seed: int) -> Centres:
    """Of eight starts of k-means on weighted points, in units of the ball, that whose points lie closest."""
    if not len(points):
        return centres_start(rows, clusters, seed)
    rng = gauss.generator(seed)
    best, optimum = np.inf, points[:1]
    for _ in range(8):
        centres = _weighted_lloyd(points, weights, clusters, rng)
        loss = ((points[:, None] - centres[None]) ** 2).sum(axis=2).min(axis=1) @ weights
        if loss < best:
            best, optimum = float(loss), centres
    return Centres(gauss.Space.of(rows), gauss.inside_ball(optimum))


def _weighted_lloyd(points: Floats, weights: Floats, clusters: int, rng: gauss.Rng) -> Floats:
    """Lloyd's iterations on weighted points, from a start by k-means++."""
    centres = points[[rng.choice(len(points), p=weights / weights.sum())]]
    while len(centres) < clusters:
        distances = ((points[:, None] - centres[None]) ** 2).sum(axis=2).min(axis=1) * weights
        chances = distances / distances.sum() if distances.sum() > 0 else weights / weights.sum()
        centres = np.concatenate([centres, points[[rng.choice(len(points), p=chances)]]])
    for _ in range(50):
        nearest = ((points[:, None] - centres[None]) ** 2).sum(axis=2).argmin(axis=1)
        n = np.bincount(nearest, weights, clusters)
        sums = np.stack([np.bincount(nearest, weights * column, clusters) for column in points.T], axis=1)
        centres = np.where((n > 0)[:, None], sums / np.maximum(n, 1e-300)[:, None], centres)
    return centres
