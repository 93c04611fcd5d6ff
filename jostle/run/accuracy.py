"""How accurate released numbers are: `error(x)`, `standard_error(x)`, `band(x)`.

All of it is public: mechanism and scale of the noise, and for vectors the strategy, do not depend on data. A number
that was measured, or calculated from such numbers, carries what it comes from (`formulas`), and noisy cells, estimates
by least squares over a strategy, and a workload's answers on them carry their noise (`kernels.noisy_array`). Estimates
are then projected, which does not increase the squared error over the whole workload; what is said here is the error
before that.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import TYPE_CHECKING, Any

from jostle.accounting.amounts import as_float
from jostle.diagnostics import Refusal, refuse
from jostle.formulas import Marked, Noised
from jostle.noise_laws import LEVEL, Gaussian, Laplace
from jostle.run.columns import NumberColumn
from jostle.run.operators import need_number
from jostle.run.propagation import Uncertainties, Uncertainty, uncertainties, vector_uncertainties
from jostle.run.registry import builtin
from jostle.run.values import Grouped, Record, is_sequence, is_vector, kind_name

if TYPE_CHECKING:
    from jostle.accounting.amounts import Amount

_SAY = "`error` takes measured numbers and what is calculated from them, or the answers of a fixed strategy"


def with_noise(
    values: Any, amount: Amount | None, law: Laplace | Gaussian | None, strategy: Any = None, cut: tuple[str, ...] = ()
) -> Any:
    """Noisy answers that carry the law of their noise; cells, the strategy that measures each of them too."""
    from jostle.kernels import noisy_array

    spent, shape = 0.0 if amount is None else as_float(amount.value), () if strategy is None else tuple(values.shape)
    return noisy_array.with_noise(values, noisy_array.NoiseModel(law or Laplace(0.0), strategy, shape, spent, cut=cut))


@builtin
def _error(value: object) -> Any:
    """The 95 % half-width of a number, or of every element of a vector, a list, a record or a grouped result.

    Of a number that was chosen, the ranks (of a mode the rows) that it is off at most.
    """
    return _told(value, LEVEL, lambda one: one.error, in_ranks=True)


@builtin
def _standard_error(value: object) -> Any:
    """The standard deviation of the noise in a number, or in every element of what holds several."""
    return _told(value, LEVEL, lambda one: one.deviation)


@builtin
def _band(value: object, level: object = LEVEL) -> Record:
    """`low` and `high`, between which the true values lie with probability `level`, each by itself."""
    probability = need_number(level, "`band`")
    if not 0 < probability < 1:
        raise refuse("ValueError", "the level of a band lies between 0 and 1", help="`band(answers, level = 0.9)`")
    ends = _told(value, probability, lambda one: (one.low, one.high))
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
    value: object, level: float, part: Callable[[Uncertainty | Uncertainties], Any], in_ranks: bool = False
) -> Any:
    """This part of what is known of a number, or of every number in a value, in its form; keys are left as they are."""
    if in_ranks and isinstance(value, Noised) and value.ranks is not None:
        return Marked.of(value.ranks[0], value.cut)
    if isinstance(value, Noised):
        return _marked(part(uncertainties([value], level)[0]), value)
    if isinstance(value, Grouped):
        keys = list(value.columns)[: value.keys]
        errors = {k: _told(v, level, part, in_ranks) for k, v in value.columns.items() if k not in keys}
        return Grouped({**value.columns, **errors}, value.keys)
    if isinstance(value, Record):
        return Record((name, _told(item, level, part, in_ranks)) for name, item in value.items())
    if is_vector(value):
        return part(_of_vector(value, level))
    if not isinstance(value, list) or not value or set(map(type, value)) - {Noised, type(None)}:
        raise _not_measured(value)
    known = [v for v in value if v is not None]
    if in_ranks and any(v.ranks is not None for v in known):
        parts = [_told(v, level, part, in_ranks) for v in known]
    else:
        parts = list(map(_marked, map(part, uncertainties(known, level)), known))
    told = iter(parts)
    return NumberColumn([None if v is None else next(told) for v in value])


def _not_measured(value: object) -> Refusal:
    """Of a value that has no error: a choice, an exact number, or another kind."""
    if isinstance(value, str | date) or (isinstance(value, list) and value and isinstance(value[0], str | date)):
        return refuse(
            "TypeError", "what was chosen among texts, dates or times has no error in numbers",
            help="with 95 %, a mode has at most ln(values / 0.05) / epsilon rows fewer than the most frequent one (of "
            "public size twice that), as `jostle trace` says; a count of each value, `groupby`, tells how clear it is",
        )  # fmt: skip
    if is_sequence(value):
        what = "a list with numbers that were not measured" if value else "an empty list"
        return refuse("TypeError", f"{_SAY}, not {what}")
    what = "a number that was not measured" if isinstance(value, float) else kind_name(value)
    return refuse(
        "TypeError", f"{_SAY}, not {what}",
        help="of a model's or an option's answers, `bootstrap(cells, option, queries, epsilon = e)` tells; how near "
        "the best score one is that `noisy_max`, `exp_mech` or a library function chose, `jostle trace`",
    )  # fmt: skip


def _marked(result: Any, value: Noised) -> Any:
    """What is said of a number, marked where it is of the noise alone."""
    if isinstance(result, tuple):
        return tuple(Marked.of(end, value.cut) for end in result)
    return Marked.of(result, value.cut)


def _of_vector(value: object, level: float) -> Uncertainties:
    try:
        vector = vector_uncertainties(value, level)
    except OverflowError as fault:
        raise refuse("ValueError", str(fault), help="ask it of fewer queries: `answer(few, cells)`") from None
    if vector is None:
        raise refuse(
            "TypeError", f"{_SAY}, and of this vector nothing is known",
            help="for other options, `bootstrap(cells, option, queries, epsilon = e)`",
        )  # fmt: skip
    return vector


def no_error(option: str) -> Refusal:
    """The refusal of `error` of what an option answers that looks at the data before it decides what to measure."""
    return refuse(
        "TypeError", f"{_SAY}, and the error of `{option}` depends on the data",
        help=f"`cells = {option}_cells(cube, queries)`, and `bootstrap(cells, {option}, queries, epsilon = e).error`",
    )  # fmt: skip
