"""DP-EM (Park, Foulds, Chaudhuri, Welling 2017): starts and M-steps of mixtures from noisy sums, made sound.

The E-step is a row program under a clip (`kernels.rowprograms.mixtures`); here is only arithmetic on released numbers.
Sums are perturbed, never quotients. Each component sees rows in a frame of its own, centred at its mean and whitened by
its covariance (as in CoinPress: Biswas, Dong, Kamath, Ullman 2020), so that what noise does to a component does not
depend on how small it is; where the sums say nothing, the component stays what it was, or goes to the pool.

*Empirical Bayes*, as far as noise explains that they are not simpler: a covariance is drawn to round; those of
components to one that all share, up to size, and that one to the pooled Gaussian's shape; shares of components to even.
What is left of a model where noise is all that was seen is one Gaussian.
"""

from __future__ import annotations

from typing import TypedDict

import numpy as np
from numpy.typing import ArrayLike

from jostle.kernels import KernelError
from jostle.kernels.arrays import Floats, Moments, Rows
from jostle.kernels.mixtures.centres import centres_of_places
from jostle.kernels.mixtures.gaussians import GaussianMixture, Space, dispersed_points, generator, inside_ball

MOST_COLUMNS, MOST_COMPONENTS = 256, 64
"""Of a mixture that is synthetic."""

REACH = 1.5  # of a frame: √d + REACH deviations of a component are seen, what lies farther is drawn in
SMALLEST = 2.0**-26  # of a variance, in units of the ball: the square of half a step of its grid
WIDEST = 4.0  # times the pooled covariance that a component may be in any direction


class Frames(TypedDict):
    """Rows as a component sees them, whitened and centred, within so many deviations."""

    radius: float


def mixture_prior(facts: Rows) -> GaussianMixture:
    """One Gaussian that takes the whole ball for granted: where a fit starts from, without looking."""
    space = Space.of(facts)
    d = space.size
    return GaussianMixture(space, np.ones(1), np.zeros((1, d)), np.eye(d)[None])


def mixture_start(pooled: GaussianMixture, components: int, seed: int = 0) -> GaussianMixture:
    """`components` Gaussians of half the pooled covariance, their means spread as the pooled one says."""
    if not 1 <= components <= 64:
        raise KernelError("a mixture has 1 to 64 components")
    if components == 1:
        return pooled
    d = pooled.space.size
    lower = np.linalg.cholesky(pooled.covariances[0])
    places = 0.8 * dispersed_points(components, d, seed)
    means = pooled.means[0] + places @ lower.T
    return GaussianMixture(
        pooled.space, np.full(components, 1 / components), means, np.repeat(pooled.covariances / 2, components, axis=0)
    )


def mixture_frames(model: GaussianMixture, radius: float | None = None) -> dict[str, object]:
    """The parameters of the row kernel `framed`; without a radius, √d + REACH deviations of each component."""
    reach = float(np.sqrt(model.space.size)) + REACH if radius is None else float(radius)
    with np.errstate(divide="ignore"):
        offsets = np.log(model.weights) + np.log(np.abs(np.linalg.det(model.factors)))
    return {"means": model.means, "factors": model.factors, "offsets": offsets, "radius": reach}


def mixture_step(
    model: GaussianMixture, sums: Moments, frames: Frames, pooled: GaussianMixture,
    prior_rows: float = 0.0,
) -> GaussianMixture:  # fmt: skip
    """The M-step: a new mixture from noisy sums in the frames of the old one.

    Counts are floored at twice their noise. A mean moves by what exceeds its noise; a covariance is shrunk to round
    (in its frame) by the share of noise in it. Its eigenvalues are floored by half the edge of the noise's spectrum,
    and kept between the grid and WIDEST times the pooled covariance. `prior_rows` (MAP, a normal-inverse-Wishart
    prior): so many rows shaped like the pooled Gaussian are added to each component.
    """
    n, steps, squares, step_noise, square_noise = _in_frames(model, sums, float(frames["radius"]))
    whiten = np.linalg.inv(np.linalg.cholesky(pooled.covariances[0]))
    means, covariances = np.empty_like(model.means), np.empty_like(model.covariances)
    for k in range(len(n)):
        lower = np.linalg.inv(model.factors[k]).T  # of the old covariance: L Lᵀ
        spread = _shrink_to_round(squares[k] - np.outer(steps[k], steps[k]), square_noise[k])
        means[k] = model.means[k] + lower @ james_stein(steps[k], step_noise[k])
        covariances[k] = lower @ spread @ lower.T
        if prior_rows > 0:
            means[k], covariances[k] = _with_prior(means[k], covariances[k], n[k], pooled, prior_rows)
        covariances[k] = _bounded_covariance(covariances[k], whiten)
    return GaussianMixture(model.space, n / n.sum(), inside_ball(means), covariances)


def _in_frames(
    model: GaussianMixture, sums: Moments, reach: float
) -> tuple[Floats, Floats, Floats, Floats, Floats]:  # fmt: skip
    """What noisy sums say of each component, in frames of radius `reach`: rows (K,), at least twice their noise, means
    (K, d), mean squares (K, d, d), and the deviations of the noise in both."""
    count, first, second = (np.nan_to_num(np.asarray(sums[n], dtype=float)) for n in ("count", "first", "second"))
    n = np.maximum(count, max(2 * float(sums["count_noise"]), model.space.size + 1.0))
    noises = sums.get("first_noise", 0.0) * reach / n, float(sums["second_noise"]) * reach**2 / n
    return n, first * reach / n[:, None], second * reach**2 / n[:, None, None], *noises


def james_stein(step: Floats, deviation: float) -> Floats:
    """James and Stein's estimate of a step that was seen with noise."""
    squared = float(step @ step)
    return step * max(0.0, 1 - len(step) * deviation**2 / squared) if squared > 0 else step


def _shrink_to_round(covariance: Floats, deviation: float) -> Floats:
    """A covariance seen with symmetric noise, of `deviation` on its diagonal: shrunk to round, and floored."""
    d, edge = len(covariance), _edge(deviation, len(covariance))
    target = max(float(np.trace(covariance)) / d, min(edge, 1.0), 1e-3) * np.eye(d)
    return _within(drawn_to(covariance, target, deviation), min(max(edge / 2, 0.02), 1.0), 1e3)


def _with_prior(
    mean: Floats, covariance: Floats, n: float, pooled: GaussianMixture, rows: float
) -> tuple[Floats, Floats]:
    share = rows / (n + rows)
    away = mean - pooled.means[0]
    mixed = (1 - share) * covariance + share * pooled.covariances[0] + share * (1 - share) * np.outer(away, away)
    return mean - share * away, mixed


def _bounded_covariance(covariance: Floats, whiten: Floats) -> Floats:
    """Positive definite for certain: between SMALLEST and WIDEST times the pooled covariance."""
    lower = np.linalg.inv(whiten)
    return _within(lower @ _within(whiten @ covariance @ whiten.T, 1e-6, WIDEST) @ lower.T, SMALLEST, 4.0)


def symmetric(matrix: Floats) -> Floats:
    return (matrix + matrix.T) / 2


def with_background(model: GaussianMixture, pooled: GaussianMixture, share: float) -> GaussianMixture:
    """The mixture with a share of the pooled Gaussian beside it, so that no row is as good as impossible."""
    if not 0 < share < 1:
        raise KernelError("the share of the background is between 0 and 1")
    weights = np.append(model.weights * (1 - share), share)
    means = np.concatenate([model.means, pooled.means])
    return GaussianMixture(model.space, weights, means, np.concatenate([model.covariances, pooled.covariances]))


def likelihood_view(model: GaussianMixture, rows: Rows, most: float = 3.0) -> dict[str, object]:
    """The parameters of the row kernel `log_density`: from what an even spread over the described box has, to `most`
    nats a column above it."""
    if not isinstance(model, GaussianMixture):
        raise KernelError("`likelihood` takes rows as vectors, and a mixture of Gaussians")
    space = Space.of(rows)
    same = space.columns == model.space.columns and np.allclose(space.centres, model.space.centres)
    if not same or not np.allclose(space.scales, model.space.scales):
        raise KernelError("the mixture is of other vectors than these")
    if not 0 < most <= 20:
        raise KernelError("`most` is a number of nats a column, above 0 and at most 20")
    low = -space.size * float(np.log(2 / float(rows["radius"])))  # the box has sides of 2 / radius
    view = plain_frames(model)
    return {**view, "low": low, "high": low + most * space.size}


def plain_frames(model: GaussianMixture) -> dict[str, object]:
    """The parameters of the row kernel `responsibilities`: moments about the middle of the ball, as in the paper."""
    frames = mixture_frames(model, 1.0)
    del frames["radius"]
    return frames


def plain_start(rows: Rows, components: int, seed: int = 0) -> GaussianMixture:
    """Components spread over the middle of the ball, without a look at the data."""
    prior = mixture_prior(rows)
    d = prior.space.size
    wide = GaussianMixture(prior.space, prior.weights, prior.means, prior.covariances / (4 * d))
    return mixture_start(wide, components, seed)


def plain_step(model: GaussianMixture, sums: Moments) -> GaussianMixture:
    """The paper's M-step from noisy sums about the middle of the ball: quotients, and eigenvalues that stay positive.

    Counts are floored at twice their noise, covariances shrunk to the pooled one by the share of noise in them, and
    eigenvalues floored by half the edge of its spectrum.
    """
    d = model.space.size
    n, means, squares, _, deviations = _in_frames(model, sums, 1.0)
    shares = n / n.sum()
    middle = shares @ means
    pooled = np.einsum("k,kij->ij", shares, squares) - np.outer(middle, middle)
    means = inside_ball(means)
    covariances = np.empty_like(model.covariances)
    for k, deviation in enumerate(deviations):
        covariance = drawn_to(squares[k] - np.outer(means[k], means[k]), pooled, deviation)
        covariances[k] = _within(covariance, min(max(_edge(deviation, d) / 2, SMALLEST), 1.0), 4.0)
    return GaussianMixture(model.space, shares, means, covariances)


def gaussian_step(model: GaussianMixture, sums: Moments, frames: Frames) -> GaussianMixture:
    """The M-step of a single Gaussian, whose pooled one is itself."""
    _, (step,), (squares,), (noise,), (deviation,) = _in_frames(model, sums, float(frames["radius"]))
    return _in_own_frame(model, james_stein(step, noise), _above_noise(squares - np.outer(step, step), deviation))


def _above_noise(spread: Floats, deviation: float) -> Floats:
    """A covariance, no eigenvalue below half the edge of the noise's spectrum."""
    return _within(spread, min(max(_edge(deviation, len(spread)) / 2, 1e-6), 1.0), 1e3)


def _in_own_frame(model: GaussianMixture, step: Floats, spread: Floats) -> GaussianMixture:
    """A single Gaussian, moved by a step and with a covariance that are said in its own frame."""
    lower = np.linalg.inv(model.factors[0]).T
    mean, covariance = model.means[0] + lower @ step, _within(lower @ spread @ lower.T, SMALLEST, 4.0)
    return GaussianMixture(model.space, np.ones(1), inside_ball(mean[None]), covariance[None])


def synthetic_mixture(columns: int, components: int, apart: float = 2.0, seed: int = 0) -> GaussianMixture:
    """A mixture made up for training: `components` of random shapes in [−1, 1] in each column.

    `apart`: how far their means lie from each other, in typical deviations of a component.
    """
    if not (1 <= columns <= MOST_COLUMNS and 1 <= components <= MOST_COMPONENTS):
        raise KernelError(f"a mixture has 1 to {MOST_COLUMNS} columns and 1 to {MOST_COMPONENTS} components")
    rng = generator(seed)
    space = Space(tuple(f"x{i + 1}" for i in range(columns)), np.zeros(columns), np.ones(columns))
    means = rng.standard_normal((components, columns)) * apart
    shapes = []
    for _ in range(components):
        rotation = np.linalg.qr(rng.standard_normal((columns, columns)))[0]
        shapes.append((rotation * np.exp(rng.normal(0, 0.8, columns))) @ rotation.T)
    covariances = np.array(shapes)
    wide = np.abs(means).max() + 3 * np.sqrt(np.einsum("kii->ki", covariances).max())
    weights = rng.dirichlet(np.full(components, 3.0))
    return GaussianMixture(space, weights, means / wide, covariances / wide**2)


def round_step(model: GaussianMixture, sums: Moments, frames: Frames) -> GaussianMixture:
    """A round Gaussian from noisy sums: the mean, and the mean variance of a column, which much noise still shows."""
    d = model.space.size
    _, (step,), (squares,), (noise,), (deviation,) = _in_frames(model, sums, float(frames["radius"]))
    mean = james_stein(step, noise)
    spread = max(float(np.trace(squares) - mean @ mean), deviation * np.sqrt(d), d * SMALLEST)
    return _in_own_frame(model, mean, min(spread, 1.0) / d * np.eye(d))


TAILS = ((0.0784, 0.1), (0.245, 0.3), (0.343, 0.7), (0.196, 1.4), (0.098, 3.0), (0.0196, 8.0))
"""Shares and sizes, in covariances, of what stands for a Gaussian whose tails and middle may be other than normal."""
ANYWHERE = 0.02  # the share of a Gaussian as wide as the bounds, beside which no row is as good as impossible
STRIDE = 1.5  # of a round of EM for shares, which are slow to move where components lie upon each other
RAREST = 0.05  # of its share before a round, which a component keeps in any case
NARROWEST = 0.02  # of a component, in pooled covariances


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


def with_shares(model: GaussianMixture, seen: Moments) -> GaussianMixture:
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


def shrunk_gaussian_step(model: GaussianMixture, sums: Moments, frames: Frames) -> GaussianMixture:
    """The M-step of a single Gaussian, its covariance drawn to round in its frame; eigenvalues as `gaussian_step`'s."""
    _, (mean,), (squares,), (noise,), (deviation,) = _in_frames(model, sums, float(frames["radius"]))
    step = james_stein(mean, noise)
    spread = squares - np.outer(step, step)
    target = max(float(np.trace(spread)) / len(step), 1e-6) * np.eye(len(step))
    return _in_own_frame(model, step, _above_noise(drawn_to(spread, target, deviation), deviation))


def shrunk_mixture_step(
    model: GaussianMixture, sums: Moments, frames: Frames, pooled: GaussianMixture
) -> GaussianMixture:
    """The M-step of a mixture whose components share a shape as far as noise lets them, in frames of the old one."""
    n, steps, squares, step_noise, square_noise = _in_frames(model, sums, float(frames["radius"]))
    whiten = np.linalg.inv(np.linalg.cholesky(pooled.covariances[0]))
    means, shapes, deviations = np.empty_like(model.means), np.empty_like(model.covariances), np.empty(len(n))
    for k in range(len(n)):
        lower = np.linalg.inv(model.factors[k]).T  # of the old covariance: L Lᵀ
        step, turn = james_stein(steps[k], step_noise[k]), whiten @ lower
        means[k] = model.means[k] + lower @ step
        shapes[k] = turn @ (squares[k] - np.outer(step, step)) @ turn.T
        deviations[k] = square_noise[k] * float((turn**2).sum()) / len(step)
    parts, old = n / n.sum(), np.einsum("ij,kjl,ml->kim", whiten, model.covariances, whiten)
    shared, noisy = np.einsum("k,kij->ij", parts, shapes), float(np.sqrt(((parts * deviations) ** 2).sum()))
    shared = _of_all(shared, np.einsum("k,kij->ij", parts, old), noisy)
    back = np.linalg.inv(whiten)
    covariances = np.array([
        _within(back @ _of_one(shape, shared, deviation) @ back.T, SMALLEST, 4.0)
        for shape, deviation in zip(shapes, deviations, strict=True)
    ])  # fmt: skip
    return GaussianMixture(model.space, _shares(n, float(sums["count_noise"])), inside_ball(means), covariances)


def map_start(
    rows: Rows, places: ArrayLike, seen: Moments, pooled: GaussianMixture, components: int,
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
    centres = centres_of_places(rows, points, counts, components, seed).centres
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
