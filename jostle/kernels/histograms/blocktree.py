"""Posterior counts of the blocks of a binary tree, of which some were measured under noise.

The rows of a block part between its halves by the laws that follow, from the whole down to the blocks, and every
measurement has Laplace's law. What is known of a count given all measurements below and above it is passed up and
down the tree as its values on a grid. This is Pearl's belief propagation, exact but for the grids. So the means, and
how sure they are, take time linear in the blocks. A block that is even, or whose rows lie in one cell, stays so further
down: these are two more kinds of message. Post-processing of released numbers.

Before, a share of one half follows a mixture of Beta(a, a) laws, from all on one side to nearly even; or the block is
even from here on; or all of it lies in one cell. The weights were learned by expectation and maximisation from public
histograms and stand here as numbers (`docs/experiments/best_histogram.md`). Coarse halves are rougher than fine ones.

Sums over several blocks fit no grid. With them, normal laws of the same variances take the place of these
(`normal_posterior`), each gap of halves and each noise having one of many variances: a variational approximation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from jostle.kernels.arrays import Floats, Ints
from jostle.kernels.noisy_array import log_likelihood

SHAPES = np.array([0.06, 0.25, 1.0, 4.0, 16.0, 64.0, 256.0, 1024.0, 8192.0])  # a of each Beta(a, a) law

_COARSE = np.array([
    [0.002, 0.561, 0.205, 0.060, 0.051, 0.002, 0.002, 0.002, 0.114],
    [0.096, 0.235, 0.568, 0.002, 0.002, 0.026, 0.002, 0.002, 0.065],
    [0.106, 0.124, 0.385, 0.242, 0.003, 0.047, 0.027, 0.007, 0.059],
    [0.137, 0.002, 0.179, 0.454, 0.020, 0.082, 0.013, 0.014, 0.100],
])  # fmt: skip
_FINE = np.array([0.271, 0.002, 0.009, 0.278, 0.171, 0.099, 0.064, 0.057, 0.050])
_EVEN = np.array([0.07, 0.03, 0.015])
"""The chance that a block is even from here on, of blocks of 2, of 3 or 4 and of 5 to 8 cells; else 0.01."""

POINT = 0.03
"""The chance that all of a block lies in one of its cells."""


def laws(depths: Floats) -> Floats:
    """The weights of `SHAPES`, (k, 9), for blocks at so many halvings from the whole, (k,)."""
    table = np.concatenate([_COARSE, _FINE[None]])
    table /= table.sum(axis=1, keepdims=True)
    return np.asarray(table[np.minimum(np.rint(depths).astype(np.int64), len(_COARSE))])


def chance_of_even(cells: Floats) -> Floats:
    """The chance, (k,), that a block of so many cells, (k,), at least 2, is even."""
    height = np.ceil(np.log2(np.maximum(cells, 2))).astype(np.int64) - 1
    return np.where(height < len(_EVEN), _EVEN[np.minimum(height, len(_EVEN) - 1)], 0.01)


def unevenness(depths: Floats, cells: Floats) -> Floats:
    """The expected square of half the difference of the halves, (k,), as a share of the square of the count."""
    beta = laws(depths) @ (1 / (4 * (2 * SHAPES + 1)))
    return np.asarray((1 - chance_of_even(cells) - POINT) * beta + POINT / 4)


REACH, FINENESS = 25.0, 60
"""The table of distribution functions: from −25 to 25 on the logistic scale, in steps of 1/60."""


def masses(edges: Floats, tilt: Floats) -> Floats:
    """What each law of `SHAPES` has between neighbouring `edges`, (k, e) from 0 to 1; (k, e − 1, 9).

    `tilt`, (k,): the logit of the share of an even block, to which laws are moved.
    """
    table = _table()
    inside = np.clip(edges, 1e-14, 1 - 1e-14)
    place = (np.log(inside) - np.log1p(-inside) - tilt[:, None] + REACH) * FINENESS
    place = np.where(edges <= 0, 0.0, np.where(edges >= 1, len(table) - 1.0, np.clip(place, 0, len(table) - 1.0)))
    low = np.minimum(place.astype(np.int64), len(table) - 2)
    part = (place - low)[..., None]
    return np.asarray(np.diff(table[low] * (1 - part) + table[low + 1] * part, axis=1))


@cache
def _table() -> Floats:
    """The distribution functions at the places of the table, (t, 9)."""
    from scipy.special import betainc

    at = 1 / (1 + np.exp(-np.arange(-REACH * FINENESS, REACH * FINENESS + 1) / FINENESS))
    table = np.stack([betainc(a, a, at) for a in SHAPES], axis=1)
    table[0], table[-1] = 0.0, 1.0
    return np.asarray(table)


POINTS, SHARES = 32, 22  # counts of a grid, and intervals of the share of one half
WIDTH = 7.0  # a grid reaches so many deviations of the least-squares count to both sides
TINY, FLOOR = 1e-300, -600.0


@dataclass(frozen=True)
class Level:
    """Nodes that are halved at one depth: themselves, their halves, and how many halvings they are from the whole."""

    nodes: Ints
    left: Ints
    right: Ints
    depth: int


@dataclass(frozen=True)
class Tree:
    """A binary tree over blocks in order: node i has the blocks `low`[i] to `high`[i] − 1; node 0 all of them."""

    low: Ints
    high: Ints
    cells: Floats
    levels: list[Level]

    def node_of(self, low: Ints, high: Ints) -> Ints:
        """The nodes that have just these blocks, (k,); −1 where there is none."""
        many = int(self.high[0]) + 1
        codes = self.low * many + self.high
        order = np.argsort(codes)
        place = np.minimum(np.searchsorted(codes[order], low * many + high), len(order) - 1)
        return np.where(codes[order][place] == low * many + high, order[place], -1)


@dataclass(frozen=True)
class Seen:
    """Noisy counts of `nodes`: `values`, whose noise has the scales `scales`."""

    nodes: Ints
    values: Floats
    scales: Floats
    gaussian: bool = False  # noise is Gaussian, of as wide a deviation as Laplace noise of these scales has


@dataclass(frozen=True)
class Posterior:
    """Of every node the mean and variance of its count; of its halves the mean square and the mean of their `gap`.

    The gap is half the difference of the halves, 0 for a block that has none.
    """

    mean: Floats
    variance: Floats
    square: Floats
    gap: Floats


@dataclass(frozen=True)
class Sums:
    """Noisy `values`, (p,), of weighted sums of the blocks, by `matrix`, (p, b); their noise has `scale`."""

    matrix: Floats
    values: Floats
    scale: float
    gaussian: bool = False


def tree_over(places: Ints, cells: Floats, bits: int) -> Tree:
    """The tree over blocks of so many `cells`, whose first cells stand at `places` of 0 … 2^bits − 1, rising."""
    low, high, levels = [0], [len(places)], []
    waiting = np.zeros(1, dtype=np.int64)
    for depth in range(bits):
        first = np.append(0, np.cumsum((places >> (bits - depth - 1) & 1) == 0))
        start, stop = np.array(low)[waiting], np.array(high)[waiting]
        middle = start + first[stop] - first[start]
        halved = (start < middle) & (middle < stop)
        nodes, children = waiting[halved], len(low) + np.arange(2 * int(halved.sum()))
        low += np.stack([start[halved], middle[halved]], axis=1).ravel().tolist()
        high += np.stack([middle[halved], stop[halved]], axis=1).ravel().tolist()
        if len(nodes):
            levels.append(Level(nodes, children[::2], children[1::2], depth))
        waiting = np.concatenate([waiting[~halved], children])
        waiting = waiting[np.array(high)[waiting] - np.array(low)[waiting] > 1]
    sums = np.append(0.0, np.cumsum(cells))
    lows, highs = np.array(low, dtype=np.int64), np.array(high, dtype=np.int64)
    return Tree(lows, highs, sums[highs] - sums[lows], levels)


def leaves_of(tree: Tree) -> Ints:
    """The node of each block."""
    return np.argsort(np.where(tree.high - tree.low == 1, tree.low, len(tree.low)))[: int(tree.high[0])]


def least_squares(tree: Tree, measurements: Sequence[Seen]) -> tuple[Floats, Floats]:
    """The counts of every node and their variances; what nothing was seen of has a very large one."""
    weight, total = np.zeros((2, len(tree.low)))
    for one in measurements:
        np.add.at(weight, one.nodes, 1 / (2 * one.scales**2))
        np.add.at(total, one.nodes, one.values / (2 * one.scales**2))
    value, precision = total / np.maximum(weight, TINY), weight + 1e-18
    for level in reversed(tree.levels):
        below = 1 / (1 / precision[level.left] + 1 / precision[level.right])
        counted = value[level.left] + value[level.right]
        own = precision[level.nodes]
        value[level.nodes] = (own * value[level.nodes] + below * counted) / (own + below)
        precision[level.nodes] = own + below
    variance = 1 / precision
    for level in tree.levels:
        gap = value[level.nodes] - value[level.left] - value[level.right]
        both = variance[level.left] + variance[level.right]
        for half in (level.left, level.right):
            share = variance[half] / both
            value[half] += share * gap
            variance[half] = variance[half] * (1 - share) + share**2 * variance[level.nodes]
    return value, variance


NORMAL_ROUNDS = 4
"""Rounds of `normal_posterior`: with more, laws are learned too surely where counts are mostly noise."""

SHOWS, EMPTY = 8.0, 0.05
"""A block tells an empty half if its count is so many deviations of the half's; the chance of one before."""


def normal_posterior(tree: Tree, measurements: Sequence[Seen], unit: float, sums: Sums | None = None) -> Posterior:
    """The posterior of every node's count under normal laws, from counts and sums. `unit`: a scale of the noise.

    How far the halves of a block differ is normal, with the variance of one of the `laws` for the count of the block;
    Laplace noise is normal with a variance that is exponential. Which variance each has is learned by turns with
    what the counts are (variational Bayes; Jordan, Ghahramani, Jaakkola, Saul 1999), and which halves are empty.
    Linear in blocks × sums.
    """
    order, leaves = np.concatenate([level.nodes for level in tree.levels]), leaves_of(tree)
    depth = np.concatenate([np.full(len(level.nodes), level.depth, dtype=np.float64) for level in tree.levels])
    even = tree.cells[np.concatenate([level.left for level in tree.levels])] / tree.cells[order]
    stays = chance_of_even(tree.cells[order])[:, None]
    weights = np.concatenate([laws(depth) * (1 - stays - POINT), stays, np.full_like(stays, POINT)], axis=1)
    rate = np.concatenate([1 / (4 * (2 * SHAPES + 1)), [0.0, 0.25]])
    extra = sums or Sums(np.zeros((0, len(leaves))), np.zeros(0), unit)
    nodes, values, scales = (
        np.concatenate([getattr(one, name) for one in measurements]) for name in ("nodes", "values", "scales")
    )
    normal = np.concatenate([np.full(len(one.nodes), one.gaussian) for one in measurements])
    precision, sum_precision = 1 / (2 * scales**2), np.full(len(extra.values), 1 / (2 * extra.scale**2))
    count, square, none = least_squares(tree, measurements)[0][order], np.zeros(len(order)), np.zeros(len(tree.low))
    for turn in range(NORMAL_ROUNDS):
        count = np.maximum(count, unit / 2)[:, None]
        wide = (count**2 * rate + count / 4 + 1e-6 * unit**2) * (4 * even * (1 - even))[:, None]
        log = -0.5 * np.log(wide) - square[:, None] / (2 * wide)
        likely = weights * np.exp(np.maximum(log - log.max(axis=1, keepdims=True), FLOOR)) if turn else weights
        prior = np.zeros(len(tree.low))
        prior[order] = 1 / (likely * wide).sum(axis=1) if not turn else (likely / wide).sum(axis=1) / likely.sum(axis=1)
        evidence = np.zeros((len(tree.low), 1 + len(extra.values)))
        evidence[:, 0] = np.bincount(nodes, precision * values, len(tree.low))
        evidence[leaves, 1:] = extra.matrix.T
        whole = np.asarray(np.bincount(nodes, precision, len(tree.low)) + none, dtype=np.float64)
        means, variance, gaps, apart = _normal(tree, whole, evidence, prior)
        cross = extra.matrix @ means[leaves, 1:]
        inner = np.linalg.inv(np.diag(1 / sum_precision) + cross)
        pull = inner @ (extra.values - extra.matrix @ means[leaves, 0])
        mean, gap = (part[:, 0] + part[:, 1:] @ pull for part in (means, gaps))
        variance, apart = (
            np.maximum(one - ((part[:, 1:] @ inner) * part[:, 1:]).sum(axis=1), 0.0)
            for one, part in ((variance, means), (apart, gaps))
        )
        rest = (values - mean[nodes]) ** 2 + variance[nodes]
        precision = np.where(normal, precision, 1 / (scales * np.sqrt(np.maximum(rest, 1e-8 * scales**2))))
        rest = (extra.values - extra.matrix @ mean[leaves]) ** 2 + np.diag(cross - cross @ inner @ cross)
        if not extra.gaussian:
            sum_precision = 1 / (extra.scale * np.sqrt(np.maximum(rest, 1e-8 * extra.scale**2)))
        count, square = mean[order], gap[order] ** 2 + apart[order]
        if turn:
            none = _empties(tree, mean, variance, none, unit)
    squares = np.zeros(len(tree.low))
    squares[order] = square
    return Posterior(mean, variance, squares, gap)


def _empties(tree: Tree, mean: Floats, variance: Floats, before: Floats, unit: float) -> Floats:
    """How precisely each node is known to be empty, (n,).

    A half that is not empty has any count up to that of its block. What is known of a half is normal, without what was
    said here `before`: expectation propagation (Minka 2001), of precisions about 0 alone, so that it settles.
    """
    from scipy.special import log_ndtr

    precise = np.zeros(len(mean))
    for level in tree.levels:
        halves, block = np.stack([level.left, level.right]), np.maximum(mean[level.nodes], unit)
        spread = np.maximum(variance[halves], 1e-9 * unit**2 + 1e-14 * block**2)
        wide = 1 / np.maximum(1 / spread - before[halves], 1e-3 / spread)
        away = mean[halves] / spread * np.sqrt(wide)
        odds = np.log(EMPTY / (1 - EMPTY) * block / np.sqrt(2 * np.pi * wide)) - away**2 / 2 - log_ndtr(away)
        precise[halves] = np.where(block > SHOWS * np.sqrt(wide), np.exp(np.clip(odds, -50, 12)) / wide, 0.0)
    return precise


def _normal(tree: Tree, precision: Floats, evidence: Floats, prior: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Of every node the means for each column of `evidence`, (n, k), and the variance; of its halves' gap the same.

    `precision`, (n,): how precisely a node's own count was measured, and `evidence` that times what was seen. `prior`,
    (n,): how precisely the gap of its halves, of mean 0, is known before.
    """
    precision, evidence = precision.copy(), evidence.copy()
    slope, total, apart = np.zeros(len(precision)), np.ones(len(precision)), np.zeros_like(evidence)
    for level in reversed(tree.levels):
        at, left, right = level.nodes, level.left, level.right
        even = tree.cells[left] / tree.cells[at]
        total[at] = precision[left] + precision[right] + prior[at]
        pull = precision[right] * (1 - even) - precision[left] * even
        slope[at] = pull / total[at]
        apart[at] = (evidence[left] - evidence[right]) / total[at][:, None]
        both = precision[left] * even**2 + precision[right] * (1 - even) ** 2
        precision[at] += (precision[left] * precision[right] + prior[at] * both) / total[at]
        evidence[at] += (
            evidence[left] * even[:, None] + evidence[right] * (1 - even)[:, None] + pull[:, None] * apart[at]
        )
    means, variance, spread = np.zeros_like(evidence), np.zeros(len(precision)), np.zeros(len(precision))
    means[0], variance[0] = evidence[0] / (precision[0] + TINY), 1 / (precision[0] + TINY)
    for level in tree.levels:
        at, even, own = level.nodes, tree.cells[level.left] / tree.cells[level.nodes], 1 / total[level.nodes]
        apart[at] += slope[at][:, None] * means[at]
        spread[at] = own + slope[at] ** 2 * variance[at]
        for half, share, sign in ((level.left, even, 1), (level.right, 1 - even, -1)):
            means[half] = share[:, None] * means[at] + sign * apart[at]
            variance[half] = (share + sign * slope[at]) ** 2 * variance[at] + own
    return means, variance, apart, spread


class _Grids:
    """The counts at which every node's messages are held, and reading and writing between them."""

    def __init__(self, tree: Tree, measurements: Sequence[Seen], unit: float) -> None:
        self.unit = unit
        value, variance = least_squares(tree, measurements)
        deviation = np.sqrt(np.minimum(variance, 1e12 * unit**2))
        low = np.maximum(value - WIDTH * deviation, 0.0)
        high = np.maximum(np.maximum(value + WIDTH * deviation, low + deviation), 3 * unit)
        for level in tree.levels:
            for half in (level.left, level.right):
                high[half] = np.minimum(high[half], high[level.nodes])
        self.low = np.maximum(np.minimum(low, high - 3 * unit), 0.0)
        self.span = np.maximum(high - self.low, 1e-9 * unit)
        self.bend = np.where(self.low > 0, 1.0, 2.0)[:, None]  # grids from 0 on are finer there
        self.counts = self.low[:, None] + self.span[:, None] * (np.arange(POINTS) / (POINTS - 1)) ** self.bend

    def _at(self, nodes: Ints, counts: Floats) -> tuple[Floats, Ints, Floats]:
        """Of these nodes' `counts`, (k, m), the places in the grid, the point before each and the part up to the next.

        Points are numbered through all k grids. Beyond a grid it is an end of it.
        """
        place = np.maximum((counts - self.low[nodes, None]) / self.span[nodes, None], -1 / POINTS)
        place = np.where((place < 0) | (self.bend[nodes] == 1), place, np.sqrt(np.abs(place))) * (POINTS - 1)
        index = np.clip(place.astype(np.int64), 0, POINTS - 2) + np.arange(len(nodes))[:, None] * POINTS
        before, after = (self.counts[nodes].ravel()[more:][index] for more in (0, 1))
        return place, index, np.clip((counts - before) / (after - before), 0.0, 1.0)

    def read(self, nodes: Ints, table: Floats, counts: Floats) -> Floats:
        """`table`, of these nodes, at `counts`, (k, …), between its values; next to nothing beyond the grid."""
        flat = counts.reshape(len(nodes), -1)
        place, index, part = self._at(nodes, flat)
        value = table.ravel()[index] * (1 - part) + table.ravel()[1:][index] * part
        value[(place < -0.5) | (place > POINTS - 0.5)] *= 1e-12
        return np.asarray(value.reshape(counts.shape))

    def write(self, nodes: Ints, counts: Floats, weights: Floats) -> Floats:
        """A table, (k, POINTS), of the weights that fall on each count of the grid."""
        flat, weight = counts.reshape(len(nodes), -1), weights.reshape(len(nodes), -1)
        place, index, part = self._at(nodes, flat)
        weight = np.where((place >= -0.5) & (place <= POINTS - 0.5), weight, 0.0)
        size = len(nodes) * POINTS
        table = np.bincount(index.ravel(), (weight * (1 - part)).ravel(), minlength=size)
        table[1:] += np.bincount(index.ravel(), (weight * part).ravel(), minlength=size)[:-1]
        return np.asarray(table.reshape(len(nodes), POINTS))


def posterior(tree: Tree, measurements: Sequence[Seen], unit: float) -> Posterior:
    """The posterior of every node's count. `unit`: the scale of noise in whose terms grids are laid."""
    grids = _Grids(tree, measurements, unit)
    own, none = _likelihoods(grids.counts, measurements)
    top = own.max(axis=1)
    own = np.exp(np.maximum(own - top[:, None], FLOOR))
    return _Passes(tree, grids, own, np.exp(np.clip(none - top, FLOOR, 50.0))).run()


def _likelihoods(counts: Floats, measurements: Sequence[Seen]) -> tuple[Floats, Floats]:
    """Log-likelihoods of what was seen of each node itself, at its grid and at 0."""
    own, none = np.zeros(counts.shape), np.zeros(len(counts))
    for one in measurements:
        away = (one.values[:, None] - counts[one.nodes]) / one.scales[:, None]
        np.add.at(own, one.nodes, log_likelihood(away, one.gaussian))
        np.add.at(none, one.nodes, log_likelihood(one.values / one.scales, one.gaussian))
    return own, none


class _Passes:
    """Messages up and down. Of every node: `any` (whatever it is), `flat` (even from here on), `point` (in one cell)
    and `zero` (nothing in it) are the likelihoods of all that was seen in it, in units of the largest of `any`."""

    def __init__(self, tree: Tree, grids: _Grids, own: Floats, none: Floats) -> None:
        self.tree, self.grids, self.own, self.none = tree, grids, own, none
        self.any, self.flat, self.point, self.zero = own.copy(), own.copy(), own.copy(), none.copy()
        self.halves: list[tuple[Floats, ...]] = []  # of each level on the way up, for the way down

    def run(self) -> Posterior:
        for level in reversed(self.tree.levels):
            self._up(level)
        return self._down()

    def _laws(self, level: Level) -> tuple[Floats, Floats, Floats, Floats]:
        """Shares of the left half and their prior chances, (k, SHARES); of an even block; the chance of that."""
        counts, left, right = self.grids.counts, level.left, level.right
        low, high = np.maximum(counts[level.nodes, 0], 1e-9), np.maximum(counts[level.nodes, -1], 1e-9)
        first = np.maximum(counts[left, 0] / high, 1 - counts[right, -1] / low).clip(0, 1)
        last = np.minimum(counts[left, -1] / low, 1 - counts[right, 0] / high).clip(0, 1)
        middle, half = (first + last) / 2, np.maximum((last - first) / 2, 1e-12)
        first, last = np.maximum(middle - half, 0.0), np.minimum(middle + half, 1.0)
        bends = (1 - np.cos(np.pi * np.linspace(0, 1, SHARES + 1))) / 2
        edges = first[:, None] + (last - first)[:, None] * bends
        shares = (edges[:, 1:] + edges[:, :-1]) / 2
        shares[:, 0] = np.where(first <= 0, 0.0, shares[:, 0])
        shares[:, -1] = np.where(last >= 1, 1.0, shares[:, -1])
        cells = self.tree.cells
        even = cells[left] / cells[level.nodes]
        mixed = masses(edges, np.log(even) - np.log1p(-even)) @ laws(np.array([level.depth]))[0]
        return shares, mixed, even[:, None], chance_of_even(cells[level.nodes])[:, None]

    def _counts(self, level: Level, shares: Floats) -> tuple[Floats, Floats]:
        """Counts of both halves for each count and share, (k, POINTS, SHARES)."""
        counts = self.grids.counts[level.nodes]
        mine = counts[:, :, None] * shares[:, None, :]
        return mine, counts[:, :, None] - mine

    def _flats(self, level: Level, even: Floats) -> tuple[Floats, Floats]:
        counts, read = self.grids.counts[level.nodes], self.grids.read
        return (read(level.left, self.flat[level.left], counts * even),
                read(level.right, self.flat[level.right], counts * (1 - even)))  # fmt: skip

    def _points(self, level: Level) -> tuple[Floats, Floats]:
        """The likelihoods of all the rows in a cell of the left half, and of the right, the other one being empty."""
        counts, read = self.grids.counts[level.nodes], self.grids.read
        left = read(level.left, self.point[level.left], counts) * self.zero[level.right][:, None] / 2
        return left, read(level.right, self.point[level.right], counts) * self.zero[level.left][:, None] / 2

    def _up(self, level: Level) -> None:
        shares, mixed, even, stays = self._laws(level)
        parts = zip((level.left, level.right), self._counts(level, shares), strict=True)
        mine, rest = (self.grids.read(half, self.any[half], part) for half, part in parts)
        self.halves.append((shares, mixed, even, stays, mine, rest))
        flat, point = np.prod(self._flats(level, even), axis=0), np.sum(self._points(level), axis=0)
        halved = np.einsum("kps,kps,ks->kp", mine, rest, mixed)
        own, point_chance = self.own[level.nodes], POINT
        whole = own * (stays * flat + point_chance * point + (1 - stays - point_chance) * halved)
        top = np.maximum(whole.max(axis=1, keepdims=True), TINY)
        self.any[level.nodes] = whole / top
        self.flat[level.nodes], self.point[level.nodes] = own * flat / top, own * point / top
        both = self.zero[level.left] * self.zero[level.right]
        self.zero[level.nodes] = self.none[level.nodes] * both / top[:, 0]

    def _down(self) -> Posterior:
        nodes = len(self.own)
        mean, variance, square, gap = np.zeros((4, nodes))
        counts = self.grids.counts
        above = np.zeros((3, nodes, POINTS))  # of what is known from outside: any, flat, point
        empty = np.zeros(nodes)
        above[0, 0] = np.gradient(counts[0]) / (counts[0] + self.grids.unit)  # as likely at any order of magnitude
        chance = above[0, 0] * self.any[0] / (above[0, 0] @ self.any[0])
        mean[0] = chance @ counts[0]
        variance[0] = chance @ counts[0] ** 2 - mean[0] ** 2
        for level in self.tree.levels:
            at, count = level.nodes, counts[level.nodes]
            shares, mixed, even, stays, left, right = self.halves.pop()
            mine, rest = self._counts(level, shares)
            own, point = self.own[at], POINT
            split = above[0, at] * own * (1 - stays - point)
            flat = (above[0, at] * stays + above[1, at]) * own
            spot = (above[0, at] * point + above[2, at]) * own
            flats, points = self._flats(level, even), self._points(level)
            joint = split[:, :, None] * left * right * mixed[:, None, :]
            evenly = flat * flats[0] * flats[1]
            first, second = spot * points[0], spot * points[1]
            nothing = empty[at] * self.zero[at]
            total = np.maximum(joint.sum((1, 2)) + (evenly + first + second).sum(1) + nothing, TINY)
            for half, part, rate, here in ((level.left, mine, even, first), (level.right, rest, 1 - even, second)):
                sure = count * rate
                mean[half] = ((joint * part).sum((1, 2)) + (evenly * sure + here * count).sum(1)) / total
                squares = (joint * part**2).sum((1, 2)) + (evenly * sure**2 + here * count**2).sum(1)
                variance[half] = np.maximum(squares / total - mean[half] ** 2, 0.0)
            away = (evenly * (count * (even - 0.5)) ** 2 + (first + second) * count**2 / 4).sum(1)
            square[at] = ((joint * (mine - rest) ** 2).sum((1, 2)) / 4 + away) / total
            gap[at] = (mean[level.left] - mean[level.right]) / 2
            nothing = empty[at] * self.none[at]
            top = np.maximum(np.max([split, flat, spot], axis=(0, 2)), np.maximum(nothing, TINY))[:, None]
            split, flat, spot, nothing = split / top, flat / top, spot / top, nothing / top[:, 0]
            for half, other, part, theirs, rate, away, outside in (
                (level.left, level.right, mine, right, even, flats[1], points[1]),
                (level.right, level.left, rest, left, 1 - even, flats[0], points[0]),
            ):
                weights = split[:, :, None] * mixed[:, None, :] * theirs
                zero = self.zero[other]
                write = self.grids.write
                messages = [write(half, part, weights), write(half, count * rate, flat * away)]
                messages.append(write(half, count, spot * zero[:, None] / 2))
                # all the rows lie in the other half
                lost = (spot * outside).sum(1) / np.maximum(self.zero[half], TINY) + nothing * zero
                most = np.maximum(np.maximum(np.max(messages, axis=(0, 2)), lost), TINY)
                above[:, half] = np.array(messages) / most[:, None]
                empty[half] = lost / most
        return Posterior(mean, variance, square, gap)
