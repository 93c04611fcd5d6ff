"""Noise for private releases, exact and from the operating system's generator: single values, vectors and selections.

Single values, and scales beyond those that fit here, are drawn by OpenDP's integer mechanisms, which saturate at 64
bits (post-processing). Vectors of noise, and selections among many candidates, are drawn here in a ninth to a fortieth
of the time (docs/decisions/vector_noise.md). Scales are rounded up, so that noise never under-covers a charge.
`SeededNoise` in `jostle.simulate` has the same verbs for public data.

*Law.* P(k) ∝ exp(−|k|·s/t), by Canonne, Kamath & Steinke 2020 (Algorithms 1 and 2) on all elements at once, in 64-bit
integers: no floating point enters after the scale has been rounded up to a fraction t/s. Uniform integers below m come
from 64-bit words by rejection. Bernoulli(exp(−n/d)), n ≤ d, asks for Bernoulli(n/(d·K)) with K = 1, 2, … until one
fails, and answers whether K is odd; with t < 2^33 no product reaches 2^63 unless K exceeds 2^30, which has probability
below 1/(2^30)!. Bernoulli(1/e) trials are counted by the first bits of one uniform number, which is compared with
binary digits of e^−k.

*Gaussian noise.* P(i) ∝ exp(−i²/2σ²), by Karney 2016 (Algorithm D) with a fraction σ = t/s. For i ≥ 0 let k be the
whole part of i/σ and x = r/t the rest: i²/2σ² = (k + x)²/2 = k²/2 + k·x + x²/2. k is drawn with P(k) ∝ exp(−k²/2): as
k² = 2k − 1 + (k − 1)², by a count of Bernoulli(1/e) that stays with probability exp(−(k − 1)²/2). i is even among ⌈σ⌉
whole numbers from kσ on, if it is below (k + 1)σ, and stays with probability exp(−x)^k·exp(−x²/2); for the last,
Bernoulli(n/(d·K)) is Bernoulli(x) and Bernoulli(x/2K). Half of the numbers become −i, and −0 is drawn again. k is at
most 2^20 (e^(−2^39) is none).

*Selections.* A candidate that lacks g to the best score is let through with probability exp(−g/scale), each by itself.
An even choice among those let through is permute-and-flip, whose law is that of noisy max with exponential noise
(McKenna & Sheldon 2020; Ding et al. 2021). Where candidates are drawn evenly until one is let through it is the
exponential mechanism's, P(i) ∝ exp(−g/scale). A gap beyond 2^20 scales counts as so many: e^(−2^20) is none.

*In a cube.* P(z) ∝ exp(−max |zᵢ|/b) for d whole numbers z: z is even among the (2r + 1)^d points of a cube, with P(r) ∝
(2r + 1)^d·exp(−r/b), since Σ exp(−r/b) over r ≥ max |zᵢ| is in proportion to exp(−max |zᵢ|/b). A sum of d + 1 numbers
with P(k) ∝ exp(−k/b) is r with C(r + d, d)·exp(−r/b), and is kept with Π (2r + 1)/(2r + 2i) over i = 1 … d, which
is (2r + 1)^d over 2^d·d!·C(r + d, d). Scales are up to 2^44 here: products stay below 2^63 unless K exceeds 2^19.

No word is kept, so that a process that forks never shares noise with its child. `tests/privacy/mechanisms` holds both
samplers and the closed forms against each other.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable
from functools import lru_cache
from types import ModuleType
from typing import Any, Protocol

from jostle.diagnostics import refuse
from jostle.integers import fixed_width, same_bits
from jostle.lazy import Bools, Ints, NDArray, np

SMALLEST, LARGEST = 2.0**-16, 2.0**32  # of the scales that fit; others are OpenDP's
SHARES = 2**16  # a Poisson sample keeps each unit with a probability that is a whole number of these


def fits(scale: float) -> bool:
    return SMALLEST <= scale <= LARGEST


def fraction(scale: float) -> tuple[int, int]:
    """(t, s) with t/s ≥ scale, t < 2^33, and t/s within a relative 2^-30 where the scale is at least 1."""
    s = 1 << max(0, 31 - max(0, math.frexp(scale)[1]))
    return math.ceil(math.ldexp(scale, s.bit_length() - 1)), s


def discrete_laplace(size: int, scale: float) -> Ints:
    """`size` independent draws of P(k) ∝ exp(−|k|/scale), the scale rounded up to a fraction."""
    return _signed(size, lambda many: _magnitudes(many, scale))


def discrete_gaussian(size: int, sigma: float) -> Ints:
    """`size` independent draws of P(i) ∝ exp(−i²/2σ²), the deviation rounded up to a fraction."""
    t, s = fraction(sigma)

    def attempts(many: int) -> tuple[Ints, Ints]:
        k = np.minimum(_geometric(many), 2**20)
        tried = np.flatnonzero(_bernoulli_halves((k - 1) ** 2))
        k = k[tried]
        i = -(-k * t // s) + same_bits(_below(k.size, -(-t // s)))
        rest = (i * s - k * t).view(np.uint64)
        good = rest < t
        for count in range(int(k.max(initial=0))):
            more = np.flatnonzero(good & (k > count))
            good[more] = _bernoulli_exp(rest[more], t)
        good[good] = _bernoulli_exp(rest[good], t, squared=True)
        return tried[good], i[good]

    return _signed(size, attempts)


def _signed(size: int, attempts: Callable[[int], tuple[Ints, Ints]]) -> Ints:
    """`size` numbers with signs, from attempts of which some give a number from 0 on: their places, and the numbers."""
    out, todo = np.empty(size, dtype=np.int64), np.arange(size)
    while todo.size:
        at, numbers = attempts(todo.size)
        negative = np.frombuffer(os.urandom(at.size), dtype=np.uint8) < 2**7
        good = ~(negative & (numbers == 0))
        out[todo[at[good]]] = np.where(negative, -numbers, numbers)[good]
        todo = np.delete(todo, at[good])
    return out


def _bernoulli_halves(numbers: Ints) -> Bools:
    """True with probability exp(−n/2) for each whole n."""
    through, some = np.ones(numbers.size, dtype=bool), np.flatnonzero(numbers > 1)
    through[some] = _geometric(some.size) >= numbers[some] // 2
    odd = np.flatnonzero(through & (numbers % 2 == 1))
    through[odd] = _bernoulli_exp(np.ones(odd.size, dtype=np.uint64), 2)
    return through


def _magnitudes(size: int, scale: float) -> tuple[Ints, Ints]:
    """Which of `size` attempts gave a whole number k with P(k) ∝ exp(−k/scale), and these numbers."""
    t, s = fraction(scale)
    rest = _below(size, t)
    accepted = np.flatnonzero(_bernoulli_exp(rest, t))
    return accepted, (same_bits(rest[accepted]) + t * _geometric(accepted.size)) // s


def in_cube(size: int, scale: float) -> Ints:
    """`size` whole numbers z, P(z) ∝ exp(−max |zᵢ|/scale), of a scale of at most 2^44 and at most 2^12 numbers."""
    while True:
        parts: Ints = np.empty(0, dtype=np.int64)
        while parts.size <= size:
            parts = np.concatenate([parts, _magnitudes(size + 1 - parts.size, scale)[1]])
        side = int(parts.sum())
        if all(int(_below(1, 2 * (side + i)).item()) <= 2 * side for i in range(1, size + 1)):
            return same_bits(_below(size, 2 * side + 1)) - side


def permute_and_flip(scores: Ints, scale: float) -> int:
    """The place of a score that is nearly the largest, by noisy max with exponential noise; ±2^62 at most."""
    through = np.flatnonzero(_let_through(_gaps(scores), scale))
    return int(through[_below(1, len(through))[0]])


def exponential_mechanism(scores: Ints, scale: float) -> int:
    """The place of a score that is nearly the largest, P(i) ∝ exp(score/scale); ±2^62 at most."""
    gaps = _gaps(scores)
    while True:
        at = _below(gaps.size, gaps.size)
        through = np.flatnonzero(_let_through(gaps[at], scale))
        if through.size:
            return int(at[through[0]])


def _gaps(scores: Ints) -> NDArray[np.uint64]:
    """What each score lacks to the largest: below 2^63, also where their difference is no int64."""
    flat = fixed_width(scores.ravel())
    gaps: NDArray[np.uint64] = (flat.max() - flat).view(np.uint64)
    return gaps


def _let_through(gaps: NDArray[np.uint64], scale: float) -> Bools:
    """True with probability exp(−g/scale) for each gap g, the scale rounded up to a fraction."""
    t, s = fraction(scale)
    scaled = np.minimum(gaps, np.uint64((t << 20) // s + 1)) * np.uint64(s)
    times, rest = np.divmod(scaled, np.uint64(t))
    through = _geometric(len(gaps)) >= same_bits(times)
    through[through] = _bernoulli_exp(rest[through], t)
    return through


def _words(size: int) -> NDArray[np.uint64]:
    return np.frombuffer(os.urandom(8 * size), dtype=np.uint64)


def _below(size: int, bound: int) -> NDArray[np.uint64]:
    """So many uniform integers in 0 … bound − 1: words at or above the last multiple of the bound are drawn again."""
    if bound == 1:
        return np.zeros(size, dtype=np.uint64)
    words, short = _words(size), 2**64 % bound
    # the incomplete stretch, moved to the front
    bad = np.flatnonzero(words < short)
    if bad.size:
        words = words.copy()
        while bad.size:
            words[bad] = _words(bad.size)
            bad = bad[words[bad] < short]
    return words % np.uint64(bound)


def _bernoulli_exp(numerators: NDArray[np.uint64], denominator: int, squared: bool = False) -> Bools:
    """True with probability exp(−n/d) for each n ≤ d; `squared`: with exp(−(n/d)²/2)."""
    odd = np.ones(len(numerators), dtype=bool)
    alive = np.arange(len(numerators))
    k = 1
    while alive.size:
        hit = _below(alive.size, denominator * k * (1 + squared)) < numerators[alive]
        if squared:
            hit[hit] = _below(int(hit.sum()), denominator) < numerators[alive[hit]]
        alive = alive[hit]
        odd[alive] = ~odd[alive]
        k += 1
    return odd


def _geometric(size: int) -> Ints:
    """How often Bernoulli(1/e) succeeds before it fails: the number of powers e^−k, k ≥ 1, above a uniform number."""
    words, powers = _words((size + 1) // 2).view(np.uint32)[:size], _powers()
    place = powers.searchsorted(words)
    above = same_bits(MOST - place)
    for at in np.flatnonzero(powers.take(place, mode="clip") == words):  # its first bits are those of one of them
        above[at] -= not _is_less(int(above[at]))
    rest = np.flatnonzero(above == MOST)  # evenly anywhere below e^−MOST
    if rest.size:
        above[rest] += _geometric(rest.size)
    return above


MOST, FIRST = 16, 32  # powers that a uniform number is compared with, by so many bits


@lru_cache(maxsize=1)
def _powers() -> NDArray[np.uint32]:
    """The first FIRST binary digits of e^−k, k = MOST … 1, all of which differ."""
    return np.array([_digits(k, FIRST) for k in range(MOST, 0, -1)], dtype=np.uint32)


def _digits(k: int, bits: int) -> int:
    """⌊2^bits·e^−k⌋, by partial sums of the series: from the k-th on, e^−k lies between each and the next."""
    place, power, total, whole, before = 0, 1, 1, 1, -1
    while place <= k or (total << bits) // whole != before:
        before = (total << bits) // whole
        place, power = place + 1, -k * power
        total, whole = total * place + power, whole * place
    return before


def _is_less(k: int) -> bool:
    """Whether a uniform number is below e^−k that has the same FIRST bits: more bits are drawn until one differs."""
    bits = FIRST
    while True:
        bits += 64
        word, digits = int(_words(1).item()), _digits(k, bits) % 2**64
        if word != digits:
            return word < digits


class Noise(Protocol):
    """The draws that mechanisms are made of; all on int64 arrays, element by element."""

    def laplace(self, values: Ints, scale: float) -> Ints: ...
    def gaussian(self, values: Ints, sigma: float) -> Ints: ...
    def cube(self, values: Ints, scale: float) -> Ints: ...
    def noisy_max(self, scores: Ints, scale: float) -> int: ...
    def gumbel_max(self, scores: Ints, scale: float) -> int: ...
    def sample(self, size: int, share: int) -> Bools: ...


def needed_noise(noise: Noise | None) -> Noise:
    """The noise of what is never measured of public data."""
    if noise is None:
        raise refuse("TypeError", "this is measured of private data only")
    return noise


VECTOR, MANY = 64, 256  # from this many values on, and candidates, the samplers for vectors


class SecureNoise:
    """Draws single values through OpenDP; vectors, and selections among many, by the samplers of this module."""

    def laplace(self, values: Ints, scale: float) -> Ints:
        """Adds discrete Laplace noise; ε = sensitivity / scale in ℓ₁. Values lie within ±2^62."""
        if values.size >= VECTOR and fits(scale):
            return values + discrete_laplace(values.size, _up(scale)).reshape(values.shape)
        return _apply(_laplace(_up(scale)), values)

    def gaussian(self, values: Ints, sigma: float) -> Ints:
        """Adds discrete Gaussian noise; ρ = (sensitivity / σ)² / 2 in ℓ₂."""
        if values.size >= VECTOR and fits(sigma):
            return values + discrete_gaussian(values.size, _up(sigma)).reshape(values.shape)
        return _apply(_gaussian(_up(sigma)), values)

    def cube(self, values: Ints, scale: float) -> Ints:
        """Adds noise that lies evenly in a cube (`in_cube`); ε = sensitivity / scale in the largest coordinate."""
        return values + in_cube(values.size, _up(scale)).reshape(values.shape)

    def noisy_max(self, scores: Ints, scale: float) -> int:
        """Selects by report noisy max with exponential noise; ε = 2·sensitivity / scale, or half when monotone."""
        if scores.size >= MANY and fits(scale):
            return permute_and_flip(scores, _up(scale))
        return int(_selection(_up(scale), "exponential")(scores.ravel().tolist()))

    def gumbel_max(self, scores: Ints, scale: float) -> int:
        """The exponential mechanism, P(i) ∝ exp(score/scale): ε as above, and a range of it (ε²/8-zCDP)."""
        if scores.size >= MANY and fits(scale):
            return exponential_mechanism(scores, _up(scale))
        return int(_selection(_up(scale), "gumbel")(scores.ravel().tolist()))

    def sample(self, size: int, share: int) -> Bools:
        """A secret Poisson sample: each of `size` with probability kept/2^16 (`sampler.SHARES`)."""
        return np.frombuffer(os.urandom(2 * size), dtype=np.uint16) < share


def _up(scale: float) -> float:
    return math.nextafter(scale * (1 + 2**-50), math.inf)


def _apply(mechanism: Any, values: Ints) -> Ints:
    return fixed_width(mechanism(values.ravel().tolist())).reshape(values.shape) if values.size else values


class _Asyncio(ModuleType):
    """Stands for `asyncio` until something of it is asked for."""

    def __getattr__(self, name: str) -> object:
        if sys.modules.get("asyncio") is self:
            del sys.modules["asyncio"]
        import asyncio

        return getattr(asyncio, name)


# `opendp.prelude` would import scikit-learn; the parts are named one by one. What marks deprecated functions (`wrapt`)
# imports `asyncio`, which takes longer to load than OpenDP and is not used.


@lru_cache(maxsize=1)
def _parts() -> tuple[Any, Any, Any, Any]:
    later = sys.modules.setdefault("asyncio", _Asyncio("asyncio"))
    from opendp import domains, measurements, measures, metrics
    from opendp.mod import enable_features

    enable_features("contrib")
    if isinstance(later, _Asyncio) and sys.modules.get("asyncio") is later:
        del sys.modules["asyncio"]
    return measurements, domains, metrics, measures


@lru_cache(maxsize=256)
def _laplace(scale: float) -> Any:
    make, domains, metrics, _ = _parts()
    return make.make_laplace(domains.vector_domain(domains.atom_domain(T="i64")), metrics.l1_distance(T="i64"), scale)


@lru_cache(maxsize=256)
def _gaussian(sigma: float) -> Any:
    make, domains, metrics, _ = _parts()
    space = domains.vector_domain(domains.atom_domain(T="i64"))
    return make.make_gaussian(space, metrics.l2_distance(T="f64"), sigma)


@lru_cache(maxsize=256)
def _selection(scale: float, law: str) -> Any:
    make, domains, metrics, measures = _parts()
    space = domains.vector_domain(domains.atom_domain(T="i64"))
    measure = measures.max_divergence() if law == "exponential" else measures.zero_concentrated_divergence()
    return make.make_noisy_max(space, metrics.linf_distance(T="i64"), measure, scale)
