"""Gaussians and mixtures drawn by empirical Bayes towards simpler ones, as far as noise explains that they are not.

A covariance is drawn to round; those of components to one that all share, up to size, and that one to the pooled
Gaussian's shape; shares of components to even. What is left of a model where noise is all that was seen is one
Gaussian. Sums are perturbed, never quotients; all of this is arithmetic on released numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from jostle.kernels.arrays import Floats
from jostle.kernels.errors import KernelError
from jostle.kernels.mixtures.centres import centres_of_places
from jostle.kernels.mixtures.em import SMALLEST, james_stein, mixture_start, symmetric
from jostle.kernels.mixtures.gaussians import GaussianMixture

TAILS = ((0.0784, 0.1), (0.245, 0.3), (0.343, 0.7), (0.196, 1.4), (0.098, 3.0), (0.0196, 8.0))
"""Shares and sizes, in covariances, of what stands for a Gaussian whose tails and middle may be other than normal."""
ANYWHERE = 0.02  # the share of a Gaussian as wide as the bounds, beside which no row is as good as impossible
STRIDE = 1.5  # of a round of EM for shares, which are slow to move where components lie upon each other
RAREST = 0.05  # of its share before a round, which a component keeps in any case
NARROWEST, WIDEST = 0.02, 4.0  # of a component, in pooled covariances


def with_tails(model: GaussianMixture, pooled: GaussianMixture, share: float = 1.0) -> GaussianMixture:
    """The mixture, beside a share of the pooled Gaussian with a narrow middle, wide tails and rows anywhere."""
    if not 0 < share <= 1:
        raise KernelError("the share of what stands beside a mixture is above 0 and at most 1")
    d = pooled.space.size
    weights = [part * share for part, _ in TAILS] + [ANYWHERE * share]
    means = np.concatenate([np.repeat(pooled.means, len(TAILS), axis=0), np.zeros((1, d))])
    covariances = np.concatenate([*(size * pooled.covariances for _, size in TAILS), np.eye(d)[None] / (3 * d)])
    if share == 1:
        return GaussianMixture(pooled.space, np.array(weights), means, covariances)
    return GaussianMixture(
        pooled.space, np.concatenate([model.weights * (1 - share), weights]), np.concatenate([model.means, means]),
        np.concatenate([model.covariances, covariances]),
    )  # fmt: skip


def with_shares(model: GaussianMixture, seen: Mapping[str, Any]) -> GaussianMixture:
    """The mixture, its shares moved towards noisy sums of responsibilities as far as noise does not explain them.

    A round of EM for the shares alone, longer than usual (`STRIDE`). No component loses all of its share.
    """
    count, noise, before = np.asarray(seen["count"], dtype=float), float(seen["count_noise"]), model.weights
    if count.shape != before.shape:
        raise KernelError("the counts are of other components than the mixture's")
    rows = max(float(count.sum()), 2 * noise * np.sqrt(len(count)), 1.0)
    step = count / rows - before
    gap = float((step**2).sum())
    signal = max(0.0, 1 - len(count) * (noise / rows) ** 2 / gap) if gap > 0 else 0.0
    after = before * np.maximum(1 + signal * step / before, RAREST) ** STRIDE
    return GaussianMixture(model.space, after / after.sum(), model.means, model.covariances)


def shrunk_gaussian_step(
    model: GaussianMixture, sums: Mapping[str, Any], frames: Mapping[str, Any]
) -> GaussianMixture:  # fmt: skip
    """The M-step of a single Gaussian, its covariance drawn to round in its frame; eigenvalues as `gaussian_step`'s."""
    d, reach = model.space.size, float(frames["radius"])
    n = max(float(np.asarray(sums["count"])[0]), 2 * float(sums["count_noise"]), d + 1.0)
    lower = np.linalg.inv(model.factors[0]).T
    step = james_stein(np.asarray(sums["first"])[0] * reach / n, float(sums["first_noise"]) * reach / n)
    spread = np.asarray(sums["second"])[0] * reach**2 / n - np.outer(step, step)
    deviation = float(sums["second_noise"]) * reach**2 / n
    spread = drawn_to(spread, max(float(np.trace(spread)) / d, 1e-6) * np.eye(d), deviation)
    spread = _within(spread, min(max(_edge(deviation, d) / 2, 1e-6), 1.0), 1e3)
    mean = model.means[0] + lower @ step
    covariance = _within(lower @ spread @ lower.T, SMALLEST, 4.0)
    return GaussianMixture(model.space, np.ones(1), _inside(mean[None]), covariance[None])


def shrunk_mixture_step(
    model: GaussianMixture, sums: Mapping[str, Any], frames: Mapping[str, Any], pooled: GaussianMixture
) -> GaussianMixture:
    """The M-step of a mixture whose components share a shape as far as noise lets them, in frames of the old one."""
    d, reach = model.space.size, float(frames["radius"])
    count = np.asarray(sums["count"], dtype=float)
    noise = {name: float(sums[f"{name}_noise"]) for name in ("count", "first", "second")}
    n = np.maximum(count, max(2 * noise["count"], d + 1.0))
    whiten = np.linalg.inv(np.linalg.cholesky(pooled.covariances[0]))
    means, shapes, deviations = np.empty_like(model.means), np.empty_like(model.covariances), np.empty(len(n))
    for k in range(len(n)):
        lower = np.linalg.inv(model.factors[k]).T  # of the old covariance: L Lᵀ
        step = james_stein(np.asarray(sums["first"])[k] * reach / n[k], noise["first"] * reach / n[k])
        means[k] = model.means[k] + lower @ step
        turn = whiten @ lower
        shapes[k] = turn @ (np.asarray(sums["second"])[k] * reach**2 / n[k] - np.outer(step, step)) @ turn.T
        deviations[k] = noise["second"] * reach**2 / n[k] * float((turn**2).sum()) / d
    parts, old = n / n.sum(), np.einsum("ij,kjl,ml->kim", whiten, model.covariances, whiten)
    shared, noisy = np.einsum("k,kij->ij", parts, shapes), float(np.sqrt(((parts * deviations) ** 2).sum()))
    shared = _of_all(shared, np.einsum("k,kij->ij", parts, old), noisy)
    back = np.linalg.inv(whiten)
    covariances = np.array([
        _within(back @ _of_one(shape, shared, deviation) @ back.T, SMALLEST, 4.0)
        for shape, deviation in zip(shapes, deviations, strict=True)
    ])  # fmt: skip
    return GaussianMixture(model.space, _shares(n, noise["count"]), _inside(means), covariances)


def map_start(
    rows: Mapping[str, Any], places: ArrayLike, seen: Mapping[str, Any], pooled: GaussianMixture, components: int,
    seed: int = 0,
) -> GaussianMixture:  # fmt: skip
    """Components about the centres of k-means on noisy counts of the rows about places, (M, d).

    All have the covariance that the pooled one leaves within them. Where counts show fewer than two places above
    twice their noise, components are spread as the pooled one says.
    """
    threshold = 2 * float(seen["count_noise"])
    counts, points = np.asarray(seen["count"], dtype=float), np.asarray(places, dtype=float)
    counts = np.where(counts > threshold, counts, 0.0)
    if (counts > 0).sum() < 2:
        return mixture_start(pooled, components, seed)
    centres = centres_of_places(rows, points, counts, components, 0.0, seed).centres
    nearest = ((points[:, None] - centres[None]) ** 2).sum(axis=2).argmin(axis=1)
    weights = np.bincount(nearest, counts, len(centres))
    weights = 0.9 * weights / weights.sum() + 0.1 / len(centres)
    lower = np.linalg.cholesky(pooled.covariances[0])
    away = np.linalg.solve(lower, (centres - weights @ centres).T).T
    within = _within(np.eye(len(lower)) - np.einsum("k,ki,kj->ij", weights, away, away), 0.1, 1.0)
    covariance = symmetric(lower @ within @ lower.T)
    return GaussianMixture(pooled.space, weights, centres, np.repeat(covariance[None], len(centres), axis=0))


def drawn_to(noisy: Floats, target: Floats, deviation: float) -> Floats:
    """A symmetric matrix seen with noise, of `deviation` on its diagonal, drawn to a target by the share of noise in
    what is between them."""
    d, gap = len(noisy), float(((noisy - target) ** 2).sum())
    share = min(1.0, deviation**2 * d * (d + 1) / 2 / gap) if gap > 0 else 1.0
    return (1 - share) * noisy + share * target


def _of_all(noisy: Floats, old: Floats, deviation: float) -> Floats:
    """The shape that components share, drawn to that of the old ones, and its size to theirs."""
    d, before = len(noisy), float(np.trace(old)) / len(old)
    size = before * _scale(float(np.trace(noisy)) / d / before, deviation / before / np.sqrt(d))
    shape = drawn_to(noisy, size / before * old, deviation)
    return _within(shape, min(max(_edge(deviation, d) / 2, NARROWEST), before), 2.0)


def _of_one(noisy: Floats, shared: Floats, deviation: float) -> Floats:
    """A component's covariance in pooled ones, drawn to the shared shape, and its size to the shared one's."""
    d, usual = len(noisy), float(np.trace(shared)) / len(noisy)
    size = _scale(float(np.trace(noisy)) / d / usual, deviation / usual / np.sqrt(d))
    size = min(max(size, NARROWEST), WIDEST)
    return _within(
        drawn_to(noisy, size * shared, deviation), min(max(_edge(deviation, d) / 2, 1e-4), size * usual), WIDEST
    )


def _scale(noisy: float, deviation: float) -> float:
    """A factor near 1 seen with noise, drawn to 1."""
    gap = (noisy - 1) ** 2
    return 1 + (noisy - 1) * max(0.0, 1 - deviation**2 / gap) if gap > 0 else 1.0


def _shares(counts: Floats, noise: float) -> Floats:
    """The components' shares, drawn to even, none below a twentieth of that."""
    even, parts = 1 / len(counts), counts / counts.sum()
    gap = float(((parts - even) ** 2).sum())
    signal = max(0.0, 1 - (len(counts) - 1) * (noise / counts.sum()) ** 2 / gap) if gap > 0 else 0.0
    parts = np.maximum(even + signal * (parts - even), even / 20)
    return parts / parts.sum()  # type: ignore[no-any-return]


def _edge(deviation: float, d: int) -> float:
    """Of the spectrum of the noise."""
    return float(np.sqrt(2 * d)) * deviation


def _within(matrix: Floats, low: float, high: float) -> Floats:
    """A symmetric matrix, its eigenvalues brought between two numbers."""
    values, vectors = np.linalg.eigh(symmetric(matrix))
    return symmetric((vectors * np.clip(values, low, high)) @ vectors.T)


def _inside(means: Floats) -> Floats:
    """No mean of rows in a ball lies out of it."""
    return means / np.maximum(1.0, np.linalg.norm(means, axis=1, keepdims=True))  # type: ignore[no-any-return]
