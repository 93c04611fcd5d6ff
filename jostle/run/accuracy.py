"""How accurate released numbers are: `error(x)`, `standard_error(x)`, `band(x)`.

All of it is public: mechanism and scale of the noise, and for vectors the strategy, do not depend on data. A number
straight from a measurement carries its noise (`mechanisms.released`), and so do noisy cells, estimates by least squares
over a strategy, and a workload's answers on them (`kernels.noisy_array`). Estimates are then projected, which
does not increase the squared error over the whole workload; what is said here is the error before that.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from jostle.accounting.amounts import as_float
from jostle.diagnostics import refuse
from jostle.privacy.mechanisms.released import Noised, half_width
from jostle.run.operators import need_number
from jostle.run.registry import builtin
from jostle.run.values import Record, is_sequence, is_vector, kind_name

if TYPE_CHECKING:
    from jostle.accounting.amounts import Amount

LEVEL = 0.95
_SAY = "`error` takes numbers straight from a measurement, or the answers of an option that measures a fixed strategy"


def with_noise(values: Any, amount: Amount | None, via: str | None, scale: float) -> Any:
    """Noisy answers, carrying what their noise is."""
    from jostle.kernels.noisy_array import NoiseModel, with_noise

    return with_noise(values, NoiseModel(_mechanism(amount, via, scale), float(scale), epsilon=_spent(amount)))


def cells_with_noise(cells: Any, amount: Amount | None, via: str | None, scale: float, strategy: Any) -> Any:
    """Noisy cells: an estimate by the strategy that measures each of them."""
    from jostle.kernels.noisy_array import NoiseModel, with_noise

    noise = NoiseModel(_mechanism(amount, via, scale), float(scale), strategy, tuple(cells.shape), _spent(amount))
    return with_noise(cells, noise)


def _spent(amount: Amount | None) -> float:
    return 0.0 if amount is None else as_float(amount.value)


def _mechanism(amount: Amount | None, via: str | None, scale: float) -> str:
    """What was drawn, which the scale of a measurement knows."""
    from jostle.privacy.mechanisms.additive import Additive, Scale

    if isinstance(scale, Scale):
        return scale.mechanism
    return "laplace" if amount is None else Additive.of(amount, via).mechanism


@builtin
def _error(value: Any) -> Any:
    """The 95 % half-width of a number, or of every element of a vector."""
    return _half_width(value, LEVEL)


def _half_width(value: Any, level: float) -> Any:
    if isinstance(value, Noised):
        return half_width(value) if level == LEVEL else _factor(value.mechanism, level) * _deviation(value)
    if not is_sequence(value):
        return half_width(value)
    deviations, mechanism = _deviations(value)
    return _factor(mechanism, level) * deviations


@builtin
def _standard_error(value: Any) -> Any:
    """The standard deviation of the noise in a number, or in every element of a vector."""
    return _deviation(value) if not is_sequence(value) else _deviations(value)[0]


@builtin
def _band(value: Any, level: Any = LEVEL) -> Record:
    """`low` and `high`, between which the true values lie with probability `level`, each by itself."""
    import numpy as np

    wanted = need_number(level, "`band`")
    if not 0 < wanted < 1:
        raise refuse("ValueError", "the level of a band lies between 0 and 1", help="`band(answers, level = 0.9)`")
    wide = _half_width(value, wanted)
    middle = np.asarray(value, dtype=float) if is_sequence(value) else float(value)
    return Record(low=middle - wide, high=middle + wide)


def _deviation(value: Any) -> float:
    if not isinstance(value, Noised) or value.mechanism not in ("laplace", "gaussian"):
        half_width(value)  # refuses what is no measured number
        if isinstance(value, Noised) and value.mechanism == "selection":
            raise refuse("TypeError", "a selection's error is one in ranks: `error` tells its bound")
        return 0.0
    return value.scale * (math.sqrt(2) if value.mechanism == "laplace" else 1.0)


def _deviations(value: Any) -> tuple[Any, str]:
    """The standard error of every element, and the mechanism whose noise it is."""
    import numpy as np

    if is_vector(value):
        from jostle.kernels.accuracy import standard_errors
        from jostle.kernels.noisy_array import noise_of

        noise = noise_of(value)
        if noise is None:
            raise refuse("TypeError", _SAY, help="for other options, `bootstrap(option, cells, queries, epsilon = e)`")
        try:
            return standard_errors(value), noise.mechanism
        except OverflowError as fault:
            raise refuse("ValueError", str(fault), help="ask it of fewer queries: `answer(few, cells)`") from None
    if value and all(isinstance(v, Noised) for v in value):
        mechanisms = {v.mechanism for v in value}
        return np.array([_deviation(v) for v in value]), "laplace" if "laplace" in mechanisms else "gaussian"
    raise refuse("TypeError", f"{_SAY}, not {kind_name(value)}")


def _factor(mechanism: str, level: float) -> float:
    """How many standard deviations hold `level` of the noise.

    A sum of Laplace noises lies between one of them and a Gaussian: the larger quantile of the two is taken.
    """
    from statistics import NormalDist

    normal = NormalDist().inv_cdf((1 + level) / 2)
    return normal if mechanism == "gaussian" else max(normal, -math.log1p(-level) / math.sqrt(2))
