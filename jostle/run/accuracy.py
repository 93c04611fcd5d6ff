"""How accurate released numbers are: `error(x)`, `standard_error(x)`, `band(x)`.

All of it is public: mechanism and scale of the noise, and for vectors the strategy, do not depend on data. A number
that was measured, or calculated from such numbers, carries what it comes from (`formulas`), and noisy cells, estimates
by least squares over a strategy, and a workload's answers on them carry their noise (`kernels.noisy_array`). Estimates
are then projected, which does not increase the squared error over the whole workload; what is said here is the error
before that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from jostle.accounting.amounts import as_float
from jostle.diagnostics import refuse
from jostle.formulas import Noised
from jostle.noise_laws import LEVEL, Gaussian, Laplace, Selected
from jostle.run.columns import NumberColumn
from jostle.run.elements import origin_of_vector
from jostle.run.operators import need_number
from jostle.run.propagation import Uncertainty, uncertainties, vector_uncertainties
from jostle.run.registry import builtin
from jostle.run.values import Grouped, Record, is_sequence, is_vector, kind_name

if TYPE_CHECKING:
    from jostle.accounting.amounts import Amount

_SAY = "`error` takes measured numbers and what is calculated from them, or the answers of a fixed strategy"


def with_noise(values: Any, amount: Amount | None, law: Laplace | Gaussian | None, strategy: Any = None) -> Any:
    """Noisy answers that carry the law of their noise; cells, the strategy that measures each of them too."""
    from jostle.kernels import noisy_array

    spent, shape = 0.0 if amount is None else as_float(amount.value), () if strategy is None else tuple(values.shape)
    return noisy_array.with_noise(values, noisy_array.NoiseModel(law or Laplace(0.0), strategy, shape, spent))


@builtin
def _error(value: Any) -> Any:
    """The 95 % half-width of a number, or of every element of a vector, a list, a record or a grouped result."""
    if isinstance(value, Noised) and isinstance(value.law, Selected):
        return value.law.half_width()
    return _told(value, LEVEL, lambda one: one.error, lambda _, wide, __: wide)


@builtin
def _standard_error(value: Any) -> Any:
    """The standard deviation of the noise in a number, or in every element of what holds several."""
    return _told(value, LEVEL, lambda one: one.deviation, lambda _, __, deviations: deviations)


@builtin
def _band(value: Any, level: Any = LEVEL) -> Record:
    """`low` and `high`, between which the true values lie with probability `level`, each by itself."""
    import numpy as np

    probability = need_number(level, "`band`")
    if not 0 < probability < 1:
        raise refuse("ValueError", "the level of a band lies between 0 and 1", help="`band(answers, level = 0.9)`")

    def of_vector(vector: Any, wide: Any, _: Any) -> tuple[Any, Any]:
        middle = np.asarray(vector, dtype=float)
        return middle - wide, middle + wide

    ends = _told(value, probability, lambda one: (one.low, one.high), of_vector)
    return Record(low=_end(ends, 0), high=_end(ends, 1))


def _end(ends: Any, which: int) -> Any:
    """The lower or the upper ends, of pairs of both."""
    if isinstance(ends, tuple):
        return ends[which]
    if isinstance(ends, Grouped):
        keys = list(ends.columns)[: ends.keys]
        return Grouped({k: v if k in keys else _end(v, which) for k, v in ends.columns.items()}, ends.keys)
    if isinstance(ends, Record):
        return Record((name, _end(item, which)) for name, item in ends.items())
    return NumberColumn([None if pair is None else pair[which] for pair in ends])


def _told(
    value: Any, level: float, of_number: Callable[[Uncertainty], Any], of_vector: Callable[[Any, Any, Any], Any]
) -> Any:
    """What is known of a number, or of every number in a value, in its form; keys of groups are left as they are.

    `of_vector` is given a vector, and the half-widths and the standard errors of its elements.
    """
    if isinstance(value, Noised):
        return of_number(uncertainties([value], level)[0])
    if isinstance(value, Grouped):
        keys = list(value.columns)[: value.keys]
        columns = {k: v if k in keys else _told(v, level, of_number, of_vector) for k, v in value.columns.items()}
        return Grouped(columns, value.keys)
    if isinstance(value, Record):
        return Record((name, _told(item, level, of_number, of_vector)) for name, item in value.items())
    if is_vector(value):
        return of_vector(value, *_of_vector(value, level))
    if isinstance(value, list) and value and all(v is None or isinstance(v, Noised) for v in value):
        told = iter(uncertainties([v for v in value if v is not None], level))
        numbers = [None if v is None else of_number(next(told)) for v in value]
        return NumberColumn(numbers)
    if is_sequence(value):
        what = "a list with numbers that were not measured" if value else "an empty list"
        raise refuse("TypeError", f"{_SAY}, not {what}")
    what = "a number that was not measured" if isinstance(value, float) else kind_name(value)
    raise refuse(
        "TypeError", f"{_SAY}, not {what}",
        help="of a model's or an option's answers, `bootstrap(option, cells, queries, epsilon = e)` tells",
    )  # fmt: skip


def _of_vector(value: Any, level: float) -> tuple[Any, Any]:
    """The half-width and the standard error of every element."""
    import numpy as np

    from jostle.kernels.accuracy import standard_errors
    from jostle.kernels.noisy_array import noise_of

    noise = noise_of(value)
    origin = origin_of_vector(value) if noise is None else None
    if origin is not None:
        told = vector_uncertainties(np.asarray(value), origin, level)
        return np.array([one.error for one in told]), np.array([one.deviation for one in told])
    if noise is None:
        raise refuse(
            "TypeError", f"{_SAY}, and of this vector nothing is known",
            help="for other options, `bootstrap(option, cells, queries, epsilon = e)`",
        )  # fmt: skip
    try:
        deviations = standard_errors(value)
    except OverflowError as fault:
        raise refuse("ValueError", str(fault), help="ask it of fewer queries: `answer(few, cells)`") from None
    return type(noise.law).sum_quantile(level) * deviations, deviations


