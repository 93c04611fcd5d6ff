"""Exact noise for private releases from the operating system's generator: single values, vectors and selections.

Single values, and scales outside the range of this module, are drawn by OpenDP's integer mechanisms, which saturate at
64 bits (post-processing). Vectors of noise, and selections among many candidates, are drawn here in a ninth to a
fortieth of the time (docs/decisions/vector_noise.md). Scales are rounded up, so that noise is never too small for its
charge. `SeededNoise` in `jostle.simulate` has the same methods for public data.

*Law.* P(k) ∝ exp(−|k|·s/t), by Canonne, Kamath & Steinke 2020 (Algorithms 1 and 2) on all elements at once, in 64-bit
integers. No floating point is used after the scale is rounded up to a fraction t/s. Uniform integers below m come from
64-bit words by rejection. Bernoulli(exp(−n/d)), n ≤ d, draws Bernoulli(n/(d·K)) for K = 1, 2, … until one fails, and
returns whether K is odd. With t < 2^33 no product reaches 2^63 unless K exceeds 2^30, which has probability below
1/(2^30)!. Bernoulli(1/e) trials are counted by comparing the first bits of one uniform number with the binary digits
of e^−k.

*Gaussian noise.* P(i) ∝ exp(−i²/2σ²), by Karney 2016 (Algorithm D) with a fraction σ = t/s. For i ≥ 0 let k be the
integer part of i/σ and x = r/t the rest: i²/2σ² = (k + x)²/2 = k²/2 + k·x + x²/2. k is drawn with P(k) ∝ exp(−k²/2):
since k² = 2k − 1 + (k − 1)², by a count of Bernoulli(1/e) that is accepted with probability exp(−(k − 1)²/2). i is
uniform among ⌈σ⌉ integers from kσ on, if it is below (k + 1)σ, and accepted with probability exp(−x)^k·exp(−x²/2). For
the last factor, Bernoulli(n/(d·K)) is Bernoulli(x) and Bernoulli(x/2K). Half of the numbers become −i, and −0 is drawn
again. k is at most 2^20 (e^(−2^39) is negligible).

*Selections.* A candidate whose score is g below the best is accepted with probability exp(−g/scale), independently. A
uniform choice among the accepted ones is permute-and-flip, which has the law of noisy max with exponential noise
(McKenna & Sheldon 2020; Ding et al. 2021). Drawing candidates uniformly until one is accepted is the exponential
mechanism, P(i) ∝ exp(−g/scale). Gaps are limited to 2^20 scales: e^(−2^20) is negligible.

*In a cube.* P(z) ∝ exp(−max |zᵢ|/b) for d integers z. z is uniform among the (2r + 1)^d points of a cube, with P(r) ∝
(2r + 1)^d·exp(−r/b), since Σ exp(−r/b) over r ≥ max |zᵢ| is proportional to exp(−max |zᵢ|/b). A sum of d + 1 numbers
with P(k) ∝ exp(−k/b) is r with probability ∝ C(r + d, d)·exp(−r/b). It is accepted with Π (2r + 1)/(2r + 2i) over
i = 1 … d, (2r + 1)^d/(2^d·d!·C(r + d, d)). Scales are at most 2^44: products stay below 2^63 unless K exceeds 2^19.

No random words are stored, so a forked process never shares noise with its parent. `tests/privacy/mechanisms` compares
both samplers with each other and with the closed forms.
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

SMALLEST, LARGEST = 2.0**-16, 2.0**32  # scales of this module's samplers; OpenDP draws others
SHARES = 2**16  # a Poisson sample keeps each unit with a probability that is a whole number of these


def fits(scale: float) -> bool:
    return SMALLEST <= scale <= LARGEST


def fraction(scale: float) -> tuple[int, int]:
    """(t, s) with t/s ≥ scale and t < 2^33. If the scale is at least 1, t/s is within a relative 2^-30 of it."""
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
    """`size` numbers with random signs. `attempts(n)` returns the places and numbers (≥ 0) of successful attempts."""
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
    """The places of those of `size` attempts that gave an integer k, P(k) ∝ exp(−k/scale), and these integers."""
    t, s = fraction(scale)
    rest = _below(size, t)
    accepted = np.flatnonzero(_bernoulli_exp(rest, t))
    return accepted, (same_bits(rest[accepted]) + t * _geometric(accepted.size)) // s


def in_cube(size: int, scale: float) -> Ints:
    """`size` integers z, P(z) ∝ exp(−max |zᵢ|/scale). The scale is at most 2^44 and the size at most 2^12."""
    while True:
        parts: Ints = np.empty(0, dtype=np.int64)
        while parts.size <= size:
            parts = np.concatenate([parts, _magnitudes(size + 1 - parts.size, scale)[1]])
        side = int(parts.sum())
        if all(int(_below(1, 2 * (side + i)).item()) <= 2 * side for i in range(1, size + 1)):
            return same_bits(_below(size, 2 * side + 1)) - side


def permute_and_flip(scores: Ints, scale: float) -> int:
    """The index selected by noisy max with exponential noise. Scores are clamped to ±2^62."""
    through = np.flatnonzero(_let_through(_gaps(scores), scale))
    return int(through[_below(1, len(through))[0]])


def exponential_mechanism(scores: Ints, scale: float) -> int:
    """The index selected by the exponential mechanism, P(i) ∝ exp(score/scale). Scores are clamped to ±2^62."""
    gaps = _gaps(scores)
    while True:
        at = _below(gaps.size, gaps.size)
        through = np.flatnonzero(_let_through(gaps[at], scale))
        if through.size:
            return int(at[through[0]])


def _gaps(scores: Ints) -> NDArray[np.uint64]:
    """The gap of each score to the largest, below 2^63, also if the difference does not fit int64."""
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
    """`size` uniform integers in 0 … bound − 1. Words from the incomplete interval are drawn again."""
    if bound == 1:
        return np.zeros(size, dtype=np.uint64)
    words, short = _words(size), 2**64 % bound
    # the incomplete interval, moved to the front
    bad = np.flatnonzero(words < short)
    if bad.size:
        words = words.copy()
        while bad.size:
            words[bad] = _words(bad.size)
            bad = bad[words[bad] < short]
    return words % np.uint64(bound)


def _bernoulli_exp(numerators: NDArray[np.uint64], denominator: int, squared: bool = False) -> Bools:
    """True with probability exp(−n/d) for each n ≤ d; if `squared`, with exp(−(n/d)²/2)."""
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
    """The successes of Bernoulli(1/e) before the first failure: the powers e^−k, k ≥ 1, above a uniform number."""
    words, powers = _words((size + 1) // 2).view(np.uint32)[:size], _powers()
    place = powers.searchsorted(words)
    above = same_bits(MOST - place)
    for at in np.flatnonzero(powers.take(place, mode="clip") == words):  # the first bits equal those of a power
        above[at] -= not _is_less(int(above[at]))
    rest = np.flatnonzero(above == MOST)  # uniform below e^−MOST
    if rest.size:
        above[rest] += _geometric(rest.size)
    return above


MOST, FIRST = 16, 32  # how many powers a uniform number is compared with, and by how many bits


@lru_cache(maxsize=1)
def _powers() -> NDArray[np.uint32]:
    """The first FIRST binary digits of e^−k, k = MOST … 1. They are distinct."""
    return np.array([_digits(k, FIRST) for k in range(MOST, 0, -1)], dtype=np.uint32)


def _digits(k: int, bits: int) -> int:
    """⌊2^bits·e^−k⌋ by partial sums of the series. From the k-th on, e^−k lies between consecutive ones."""
    place, power, total, whole, before = 0, 1, 1, 1, -1
    while place <= k or (total << bits) // whole != before:
        before = (total << bits) // whole
        place, power = place + 1, -k * power
        total, whole = total * place + power, whole * place
    return before


def _is_less(k: int) -> bool:
    """Whether a uniform number with the same FIRST bits as e^−k is below it. Draws more bits until one differs."""
    bits = FIRST
    while True:
        bits += 64
        word, digits = int(_words(1).item()), _digits(k, bits) % 2**64
        if word != digits:
            return word < digits


class Noise(Protocol):
    """The random draws of mechanisms, on int64 arrays, element by element."""

    def laplace(self, values: Ints, scale: float) -> Ints: ...
    def gaussian(self, values: Ints, sigma: float) -> Ints: ...
    def cube(self, values: Ints, scale: float) -> Ints: ...
    def noisy_max(self, scores: Ints, scale: float) -> int: ...
    def gumbel_max(self, scores: Ints, scale: float) -> int: ...
    def sample(self, size: int, share: int) -> Bools: ...


def needed_noise(noise: Noise | None) -> Noise:
    """`noise`; refused if it is None, for measurements of private data only."""
    if noise is None:
        raise refuse("TypeError", "this is measured of private data only")
    return noise


VECTOR, MANY = 64, 256  # the least number of values, and of candidates, for the samplers of this module


class SecureNoise:
    """Noise from OpenDP for single values, and from this module for vectors and selections among many candidates."""

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
        """Adds noise of `in_cube`; ε = sensitivity / scale in the largest coordinate."""
        return values + in_cube(values.size, _up(scale)).reshape(values.shape)

    def noisy_max(self, scores: Ints, scale: float) -> int:
        """Report noisy max with exponential noise; ε = 2·sensitivity / scale, or half of it if monotone."""
        if scores.size >= MANY and fits(scale):
            return permute_and_flip(scores, _up(scale))
        return int(_selection(_up(scale), "exponential")(scores.ravel().tolist()))

    def gumbel_max(self, scores: Ints, scale: float) -> int:
        """The exponential mechanism, P(i) ∝ exp(score/scale); ε as above, and bounded range (ε²/8-zCDP)."""
        if scores.size >= MANY and fits(scale):
            return exponential_mechanism(scores, _up(scale))
        return int(_selection(_up(scale), "gumbel")(scores.ravel().tolist()))

    def sample(self, size: int, share: int) -> Bools:
        """A secret Poisson sample: each of `size` units with probability `share`/2^16."""
        return np.frombuffer(os.urandom(2 * size), dtype=np.uint16) < share


def _up(scale: float) -> float:
    return math.nextafter(scale * (1 + 2**-50), math.inf)


def _apply(mechanism: Any, values: Ints) -> Ints:
    return fixed_width(mechanism(values.ravel().tolist())).reshape(values.shape) if values.size else values


class _Asyncio(ModuleType):
    """A stand-in for `asyncio` that imports it on first use."""

    def __getattr__(self, name: str) -> object:
        if sys.modules.get("asyncio") is self:
            del sys.modules["asyncio"]
        import asyncio

        return getattr(asyncio, name)


# `opendp.prelude` would import scikit-learn, so the parts are imported one by one. `wrapt`, which marks deprecated
# functions, imports `asyncio`, which takes longer to load than OpenDP and is not used.


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
