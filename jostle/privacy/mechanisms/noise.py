"""Noise for private releases: OpenDP's low-level mechanisms on integers, and for vectors our own exact sampler.

The mechanisms add exact discrete noise drawn from the operating system's generator and saturate at 64 bits, which
is post-processing. OpenDP takes about 6 µs a value; `mechanisms.sampler` draws the same laws for a whole vector in a
ninth of that (docs/decisions/vector_noise.md). Scales are rounded up here, so that noise never under-covers a charge.
`SeededNoise` in `jostle.simulate` has the same verbs for public data.
"""

from __future__ import annotations

import math
import sys
from functools import lru_cache
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol

from jostle.diagnostics import refuse
from jostle.integers import fixed_width
from jostle.privacy.mechanisms import sampler

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Noise(Protocol):
    """The draws that mechanisms are made of; all on int64 arrays, element by element."""

    def laplace(self, values: NDArray[np.int64], scale: float) -> NDArray[np.int64]: ...
    def gaussian(self, values: NDArray[np.int64], sigma: float) -> NDArray[np.int64]: ...
    def noisy_max(self, scores: NDArray[np.int64], scale: float) -> int: ...
    def gumbel_max(self, scores: NDArray[np.int64], scale: float) -> int: ...
    def sample(self, size: int, share: int) -> NDArray[np.bool_]: ...


def needed_noise(noise: Noise | None) -> Noise:
    """The noise of what is never measured of public data."""
    if noise is None:
        raise refuse("TypeError", "this is measured of private data only")
    return noise


VECTOR, MANY = 64, 256  # from this many values on, and candidates, the samplers for vectors


class SecureNoise:
    """Draws single values through OpenDP; vectors of Laplace noise, and selections among many, through
    `privacy.mechanisms.sampler`."""

    def laplace(self, values: NDArray[np.int64], scale: float) -> NDArray[np.int64]:
        """Adds discrete Laplace noise; ε = sensitivity / scale in ℓ₁. Values lie within ±2^62."""
        if values.size >= VECTOR and sampler.fits(scale):
            return values + sampler.discrete_laplace(values.size, _up(scale)).reshape(values.shape)
        if values.size == 1:
            return _like(values, [_laplace_of_one(_up(scale))(int(values.item()))])
        return _apply(_laplace(_up(scale)), values)

    def gaussian(self, values: NDArray[np.int64], sigma: float) -> NDArray[np.int64]:
        """Adds discrete Gaussian noise; ρ = (sensitivity / σ)² / 2 in ℓ₂."""
        return _apply(_gaussian(_up(sigma)), values)

    def noisy_max(self, scores: NDArray[np.int64], scale: float) -> int:
        """Selects by report noisy max with exponential noise; ε = 2·sensitivity / scale, or half when monotone."""
        if scores.size >= MANY and sampler.fits(scale):
            return sampler.permute_and_flip(scores, _up(scale))
        return int(_selection(_up(scale), "exponential")(scores.ravel().tolist()))

    def gumbel_max(self, scores: NDArray[np.int64], scale: float) -> int:
        """The exponential mechanism, P(i) ∝ exp(score/scale): ε as above, and a range of it (ε²/8-zCDP)."""
        if scores.size >= MANY and sampler.fits(scale):
            return sampler.exponential_mechanism(scores, _up(scale))
        return int(_selection(_up(scale), "gumbel")(scores.ravel().tolist()))

    def sample(self, size: int, share: int) -> NDArray[np.bool_]:
        """A secret Poisson sample: each of `size` with probability kept/2^16 (`sampler.SHARES`)."""
        return sampler.poisson_sample(size, share)


def _up(scale: float) -> float:
    return math.nextafter(scale * (1 + 2**-50), math.inf)


def _apply(mechanism: Any, values: NDArray[np.int64]) -> NDArray[np.int64]:
    return _like(values, mechanism(values.ravel().tolist())) if values.size else values


def _like(values: NDArray[np.int64], samples: list[int]) -> NDArray[np.int64]:
    return fixed_width(samples).reshape(values.shape)


class _Asyncio(ModuleType):
    """Stands for `asyncio` until something of it is asked for."""

    def __getattr__(self, name: str) -> Any:
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
def _laplace_of_one(scale: float) -> Any:
    make, domains, metrics, _ = _parts()
    return make.make_laplace(domains.atom_domain(T="i64"), metrics.absolute_distance(T="i64"), scale)


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
