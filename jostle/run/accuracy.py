"""How accurate released numbers are: `error(x)`, `standard_error(x)`, `band(x)`.

All of it is public: mechanism and scale of the noise, and for vectors the strategy, do not depend on data. A number
straight from a measurement carries its noise (`mechanisms.released`), and so do noisy cells, estimates by least squares
over a strategy, and a workload's answers on them (`kernels.noisy_array`). Estimates are then projected, which
does not increase the squared error over the whole workload; what is said here is the error before that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jostle.accounting.amounts import as_float
from jostle.diagnostics import refuse
from jostle.noise_laws import LEVEL, AdditiveLaw, Gaussian, Laplace
from jostle.privacy.mechanisms.released import Noised
from jostle.run.operators import need_number
from jostle.run.registry import builtin
from jostle.run.values import Record, is_sequence, is_vector, kind_name

if TYPE_CHECKING:
    from jostle.accounting.amounts import Amount

_SAY = "`error` takes numbers straight from a measurement, or the answers of an option that measures a fixed strategy"


def with_noise(values: Any, amount: Amount | None, law: Laplace | Gaussian | None, strategy: Any = None) -> Any:
    """Noisy answers that carry the law of their noise; cells, the strategy that measures each of them too."""
    from jostle.kernels import noisy_array

    spent, shape = 0.0 if amount is None else as_float(amount.value), () if strategy is None else tuple(values.shape)
    return noisy_array.with_noise(values, noisy_array.NoiseModel(law or Laplace(0.0), strategy, shape, spent))


@builtin
def _error(value: Any) -> Any:
    """The 95 % half-width of a number, or of every element of a vector."""
    return _half_width(value, LEVEL)


def _half_width(value: Any, level: float) -> Any:
    if not is_sequence(value):
        return _law(value).half_width(level)
    deviations, law = _deviations(value)
    return law.sum_quantile(level) * deviations


def _law(value: Any) -> Any:
    """The law of a noised number; refuses anything else."""
    if not isinstance(value, Noised):
        raise refuse(
            "TypeError", "`error` takes a number straight from one measurement",
            help="call it on the name that the query was assigned to, before any arithmetic",
        )  # fmt: skip
    return value.law


@builtin
def _standard_error(value: Any) -> Any:
    """The standard deviation of the noise in a number, or in every element of a vector."""
    return _deviation(value) if not is_sequence(value) else _deviations(value)[0]


@builtin
def _band(value: Any, level: Any = LEVEL) -> Record:
    """`low` and `high`, between which the true values lie with probability `level`, each by itself."""
    import numpy as np

    probability = need_number(level, "`band`")
    if not 0 < probability < 1:
        raise refuse("ValueError", "the level of a band lies between 0 and 1", help="`band(answers, level = 0.9)`")
    wide = _half_width(value, probability)
    middle = np.asarray(value, dtype=float) if is_sequence(value) else float(value)
    return Record(low=middle - wide, high=middle + wide)


def _deviation(value: Any) -> float:
    law = _law(value)
    if not isinstance(law, AdditiveLaw):
        raise refuse("TypeError", "a selection's error is one in ranks: `error` tells its bound")
    return law.deviation


def _deviations(value: Any) -> tuple[Any, type[AdditiveLaw]]:
    """The standard error of every element, and the law whose noise it is."""
    import numpy as np

    if is_vector(value):
        from jostle.kernels.accuracy import standard_errors
        from jostle.kernels.noisy_array import noise_of

        noise = noise_of(value)
        if noise is None:
            raise refuse("TypeError", _SAY, help="for other options, `bootstrap(option, cells, queries, epsilon = e)`")
        try:
            return standard_errors(value), type(noise.law)
        except OverflowError as fault:
            raise refuse("ValueError", str(fault), help="ask it of fewer queries: `answer(few, cells)`") from None
    if value and all(isinstance(v, Noised) for v in value):
        all_gaussian = all(isinstance(v.law, Gaussian) for v in value)
        return np.array([_deviation(v) for v in value]), Gaussian if all_gaussian else Laplace
    raise refuse("TypeError", f"{_SAY}, not {kind_name(value)}")
