"""The errors of released values as plain data, and of what a program asks: `error(x)`, `standard_error(x)`, `band(x)`.

A margin is what JSON has of a number: `value`, its `error` at 95 %, and `low` and `high`. Those of a value have its
form, with `None` where nothing is known. Of a number that was chosen it is its `value`, and its error in `ranks`, or of
a mode in `rows`. Where the error is of the noise alone, `cut` lists what it does not cover (`plan.cuts`); where cells
did not fit, so that no error is known, it is None. `hidden` is true in all columns of a group whose count of rows is no
larger than its error.

All of it is public. A number that was measured, or calculated from such numbers, carries what it comes from
(`formulas`). Noisy cells, estimates by least squares over a strategy, and a workload's answers on them carry their
noise (`kernels.noisy_array`). Estimates are then projected, which does not increase the squared error over the whole
workload; what is said here is the error before that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import date, datetime
from functools import partial
from operator import attrgetter
from typing import Any

from jostle.accounting.amounts import Amount, as_float
from jostle.diagnostics import Refusal, refuse
from jostle.formulas import (
    Exact,
    Formula,
    Marked,
    Noised,
    NoisyDate,
    NoisyTime,
    Widened,
    calculated,
    cuts_of,
    rests_on_misfits,
)
from jostle.noise_laws import LEVEL, AdditiveLaw, Gaussian, Laplace, Selected
from jostle.plan.cuts import BEYOND, cuts
from jostle.plan.kinds import kind_of, value_kind
from jostle.plan.plan import FixedSum, Plan, RowExpr
from jostle.plan.records import Records, Rows, sources_of
from jostle.privacy.kernel.exposures import Handle
from jostle.privacy.kernel.handles import Cube, Restricted, Table, Tallied, Vectors
from jostle.privacy.measurements.aggregates.aggregate import Aggregate, Estimate, SelectionAggregate
from jostle.privacy.measurements.aggregates.places import Bounds
from jostle.privacy.measurements.aggregates.quantile import Quantile
from jostle.privacy.measurements.cubes import CubeRequest
from jostle.privacy.measurements.selects import Answer, Request
from jostle.privacy.scores import Score
from jostle.privacy.transformations.records import RecordCells
from jostle.run.evaluator import builtin
from jostle.run.operators import elements, need_number
from jostle.run.persons import Counted
from jostle.run.propagation import Uncertainties, Uncertainty, of_numbers, uncertainties, vector_uncertainties
from jostle.run.sequences import LongColumn, NumberColumn, of_places
from jostle.run.values import Grouped, JSet, Record, is_sequence, is_vector, kind_name

MOST_SHOWN = 2000
"""Elements and rows whose margins go into traces and listings; files and frames have all of them."""


def bars(values: Any) -> tuple[list[float | None], list[float | None]] | None:
    """The lower and the upper ends of the numbers of a column; None where no error is known."""
    if is_vector(values):
        vector = None if rests_on_misfits(cuts_of(values)) else _of_vector(values)
        return None if vector is None else ([*vector.low.ravel().tolist()], [*vector.high.ravel().tolist()])
    laws = [None if rests_on_misfits(cuts_of(v)) else one for v, one in zip(values, of_numbers(values), strict=True)]
    if not any(laws):
        return None
    return [one.low if one else None for one in laws], [one.high if one else None for one in laws]


def with_ends(columns: dict[str, Sequence[object]], whole: object = None) -> dict[str, Sequence[object]]:
    """Columns of a table, of noisy numbers each followed by `NAME_low` and `NAME_high`, of chosen ones `NAME_ranks`.

    `NAME_cut` says what an error does not cover, where it does not cover all. `whole`: the matrix that has the columns.
    """
    out: dict[str, Sequence[object]] = {}
    ends = bars(whole) if is_vector(whole) and whole.ndim == 2 else None
    for place, (name, values) in enumerate(columns.items()):
        out[name] = values
        bounds = bars(values) if ends is None else (ends[0][place :: len(columns)], ends[1][place :: len(columns)])
        names = [f"{name}_low", f"{name}_high"]
        if bounds is None:
            extra = {f"{name}_{of}": column for of, column in _chosen(values).items()}
            out.update({other: column for other, column in extra.items() if other not in columns})
        elif not any(other in columns for other in names):
            out.update(zip(names, bounds, strict=True))
        if cuts_of(values, *values) and f"{name}_cut" not in columns:
            out[f"{name}_cut"] = ["; ".join(cuts_of(values, value)) for value in values]
    return out


def _chosen(values: Sequence[object]) -> dict[str, list[float | None]]:
    """The ranks or rows that the numbers of a column are off at most, where they were chosen."""
    ranks = [getattr(value, "ranks", None) for value in values]
    kinds = {one[1] for one in ranks if one is not None}
    return {of: [one[0] if one is not None and one[1] == of else None for one in ranks] for of in sorted(kinds)}


def _margins_of_groups(value: Grouped) -> list[dict[str, object]] | None:
    """For each group that is shown, the margins by column."""
    hidden = value.hidden(MOST_SHOWN)
    columns = {name: _margins_of(values, hidden) for name, values in list(value.parts.items())[value.keys :]}
    lists = {name: column for name, column in columns.items() if column is not None}
    many = min(len(value), MOST_SHOWN)
    return [{name: column[row] for name, column in lists.items()} for row in range(many)] if lists else None


def margins(value: Any) -> Any:
    """The margins of a value in its form; None where there are none."""
    if type(value) in _NOISY:
        return _margin(value, of_numbers([value])[0])
    if isinstance(value, Grouped):
        return _margins_of_groups(value)
    if isinstance(value, dict):
        fields = {name: margins(item) for name, item in value.items()}
        return {name: item for name, item in fields.items() if item is not None} or None
    if is_vector(value):
        if value.ndim < 2:
            return _margins_of_vector(value)
        value = elements(value)[: max(1, MOST_SHOWN * len(value) // max(1, value.size))]
    if isinstance(value, JSet) or is_sequence(value):
        items = list(value)[:MOST_SHOWN]
        if any(type(item) in _NOISY for item in items):
            return _margins_of(items)
        inner = [margins(item) for item in items if not isinstance(item, (float, str))]
        return inner if any(item is not None for item in inner) and len(inner) == len(items) else None
    return None


def _margins_of(values: Sequence[object], hidden: Sequence[bool] = ()) -> list[Any] | None:
    """The margins of a column; where noise hides the rows of a group, of what is no number too."""
    head = values[:MOST_SHOWN]
    entries = [_margin(value, one) for value, one in zip(head, of_numbers(head), strict=True)]
    for row, doubt in enumerate(hidden):
        entries[row] = {**(entries[row] or {}), "hidden": True} if doubt else entries[row]
    return entries if any(entries) else None


def _margins_of_vector(value: Any) -> list[object] | None:
    uncertainty = _of_vector(value) if value.ndim == 1 and len(value) else None
    if uncertainty is None:
        return None
    columns = (value, uncertainty.error, uncertainty.low, uncertainty.high)
    rows = zip(*(column[:MOST_SHOWN].tolist() for column in columns), strict=True)
    return [_finite(*row) | _cut(value) for row in rows]


def _of_vector(value: object) -> Uncertainties | None:
    """What is known of a vector; None of what is exact, and of what only a smaller question would tell."""
    from jostle.kernels.noisy_array import law_of, noise_of

    if noise_of(value) is not None and not law_of(value).scale:
        return None
    try:
        return vector_uncertainties(value)
    except (OverflowError, ValueError):
        return None


def _margin(value: Any, one: Uncertainty | None) -> dict[str, object] | None:
    if one is not None:
        return _finite(float(value), one.error, one.low, one.high) | _cut(value)
    ranks = getattr(value, "ranks", None)
    if ranks is not None:
        return {"value": value.isoformat() if isinstance(value, date) else float(value), ranks[1]: ranks[0]} | _cut(
            value
        )
    return {"value": float(value)} | _cut(value) if type(value) is Marked else None


def _cut(value: object) -> dict[str, object]:
    cut, hidden = cuts_of(value), getattr(value, "hidden", False)
    unknown = dict.fromkeys(("error", "low", "high")) if rests_on_misfits(cut) else {}
    return unknown | ({"cut": list(cut)} if cut else {}) | ({"hidden": True} if hidden else {})


def _finite(*numbers: float) -> dict[str, object]:
    names = ("value", "error", "low", "high")
    return {name: end if math.isfinite(end) else None for name, end in zip(names, numbers, strict=True)}


_SAY = "`error` takes measured numbers and what is calculated from them, or the answers of a fixed strategy"


def with_noise(
    values: Any, amount: Amount | None, law: Laplace | Gaussian | None, strategy: Any = None, cut: tuple[str, ...] = ()
) -> Any:
    """Noisy answers that carry the law of their noise; cells, the strategy that measures each of them too."""
    from jostle.kernels import noisy_array

    spent, shape = 0.0 if amount is None else as_float(amount.value), () if strategy is None else tuple(values.shape)
    return noisy_array.with_noise(values, noisy_array.NoiseModel(law or Laplace(0.0), strategy, shape, spent, cut=cut))


@builtin
def _error(value: object) -> object:
    """The 95 % half-width of a number, or of every element of a vector, a list, a record or a grouped result.

    Of a number that was chosen, the ranks (of a mode the rows) that it is off at most.
    """
    return _part_of(value, LEVEL, lambda one: one.error, in_ranks=True)


@builtin
def _standard_error(value: object) -> object:
    """The standard deviation of the noise in a number, or in every element of what holds several."""
    return _part_of(value, LEVEL, lambda one: one.deviation)


@builtin
def _band(value: object, level: object = LEVEL) -> Record:
    """`low` and `high`, between which the true values lie with probability `level`, each by itself."""
    probability = need_number(level, "`band`")
    if not 0 < probability < 1:
        raise refuse("ValueError", "the level of a band lies between 0 and 1", help="`band(answers, level = 0.9)`")
    ends = _part_of(value, probability, lambda one: (one.low, one.high))
    return Record(low=_end(ends, 0), high=_end(ends, 1))


@builtin
def _with_left_out(value: object, lost: object, low: object = 0.0, high: object = 1.0) -> object:
    """Counts or sums within `up to k rows`, each with an error that covers what this leaves out: at most `lost` rows, a
    number that was measured, of which each adds from `low` to `high`."""
    if isinstance(value, Sequence) and is_sequence(value):
        return [_with_left_out(one, lost, low, high) for one in value]
    if not isinstance(value, Noised) or not isinstance(lost, float):
        raise _not_measured(lost if isinstance(value, Noised) else value)
    ends: list[float] = []
    for of in (min(need_number(low, "`low`"), 0.0), max(need_number(high, "`high`"), 0.0)):
        more = calculated(of * lost, "*", (of, lost))
        ends.append(calculated(value + more, "+", (value, more)) if of else value)
    cut = (*(one for one in value.cut if not one.startswith(BEYOND)), *cuts_of(lost))
    return Noised.of(value, Widened(value, (ends[0], ends[1])), tuple(dict.fromkeys(cut)), value.hidden)


def _end(ends: Any, which: int) -> object:
    """The lower or the upper ends, of pairs of both."""
    if isinstance(ends, tuple):
        return ends[which]
    if isinstance(ends, Grouped):
        keys = list(ends.columns)[: ends.keys]
        return Grouped({k: v if k in keys else _end(v, which) for k, v in ends.columns.items()}, ends.keys)
    if isinstance(ends, Record):
        return Record((name, _end(item, which)) for name, item in ends.items())
    if not isinstance(ends, NumberColumn):  # of a list of containers
        return [_end(item, which) for item in ends]
    return NumberColumn([None if pair is None else pair[which] for pair in ends])


_NOISY = (Noised, Marked, NoisyDate, NoisyTime)
Part = Callable[[Uncertainty | Uncertainties], Any]


def _part_of(value: object, level: float, part: Part, in_ranks: bool = False) -> object:
    """This part of what is known of a number, or of every number in a value, in its form; keys are left as they are."""
    if in_ranks and (ranks := getattr(value, "ranks", None)) is not None:
        return Marked.of(ranks[0], cuts_of(value))
    if isinstance(value, Exact):
        return part(Uncertainty(value, value, 0.0, 0.0, level))
    if isinstance(value, Noised):
        return _marked(part(uncertainties([value], level)[0]), value)
    if isinstance(value, Grouped):
        keys = list(value.columns)[: value.keys]
        errors = {k: _part_of(v, level, part, in_ranks) for k, v in value.columns.items() if k not in keys}
        return Grouped({**value.columns, **errors}, value.keys)
    if isinstance(value, Record):
        items = (
            (name, None if item is None else _part_of(item, level, part, in_ranks)) for name, item in value.items()
        )
        return Record(items)
    if is_vector(value):
        return part(_accuracy_of_vector(value, level))
    if isinstance(value, list) and value and all(is_vector(v) or isinstance(v, list | dict | Grouped) for v in value):
        return [_part_of(v, level, part, in_ranks) for v in value]
    if isinstance(value, list) and value:
        return _part_of_column(value, level, part, in_ranks)
    raise _not_measured(value)


def _part_of_column(value: list[Noised | None], level: float, part: Part, in_ranks: bool) -> NumberColumn:
    """This part of each number of a column that was measured, or is exact."""
    kinds, numbers = set(map(type, value)) - {type(None)}, [v for v in value if v is not None]
    if not any(kinds <= {one} for one in (Noised, Exact, NoisyDate, NoisyTime)):
        raise _not_measured(value)
    if kinds != {Noised} or (in_ranks and any(v.ranks is not None for v in numbers)):
        parts = [_part_of(v, level, part, in_ranks) for v in numbers]
    else:
        parts = list(map(_marked, map(part, uncertainties(numbers, level)), numbers))
    results = iter(parts)
    return NumberColumn([None if v is None else next(results) for v in value])


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


def _accuracy_of_vector(value: object, level: float) -> Uncertainties:
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


def exact(answer: Answer) -> Answer:
    """An answer whose numbers have an error of 0: of public data, and what is public of private ones."""
    return Answer(answer.keys, [[Exact(v) if type(v) is float else v for v in column] for column in answer.values])


EXAMPLES = {value_kind(cell): cell for cell in (1.0, "a", True, date(2000, 1, 1), datetime(2000, 1, 1))}
"""A cell of each kind."""


def _example(aggregate: Aggregate, table: Table | Cube, via: str | None, moment: Counted | None) -> object:
    """An answer of an aggregate: of the kind that it has whatever the rows are, and a number with its kind of error."""
    if moment is not None:
        return moment.moment(_example(aggregate, table, via, None))
    if isinstance(aggregate, Bounds):
        return Record(low=1.0, high=1.0)
    choice = isinstance(table, Table) and isinstance(aggregate, SelectionAggregate)
    domains = table.domains if isinstance(table, Table) else {}
    one = EXAMPLES[kind_of(aggregate.expressions[0], domains)] if choice else 1.0
    if type(one) is not float or not table.private:
        return Exact(one) if type(one) is float else one
    in_values = not choice or (isinstance(aggregate, Quantile) and via != Selected.name and not _is_end(aggregate, via))
    return Noised(one, Laplace(1.0) if in_values else Selected(1.0))


def _is_end(aggregate: Quantile, via: str | None) -> bool:
    """Whether it is a smallest or largest value, which has an error in values only where that is asked for."""
    return via is None and aggregate.rank() in (0, 1)


def expected_answer(
    request: Request | CubeRequest, aggregates: Sequence[Aggregate], moments: Sequence[Counted | None], via: str | None
) -> Answer | None:
    """An answer of one group, of the kinds that the request's own has whatever the rows are; None of no group."""
    table, keys = request.table if isinstance(request, Request) else request.cube, list[list[Any]]()
    if isinstance(request, Request) and request.group_keys and not request.keys:
        for key in request.group_keys:
            keys.append([EXAMPLES[kind_of(key.expr, request.table.domains)]] if key.over is None else [*key.over[:1]])
    elif request.keys:
        keys = [[*key.values[:1]] for key in request.keys]
    if not all(keys):
        return None
    values = [[_example(one, table, via, moment)] for one, moment in zip(aggregates, moments, strict=True)]
    return Answer(request.key_columns(keys) if keys and isinstance(request, Request) else keys, values)


def cut_of(handle: Handle, aggregate: Aggregate | None = None) -> tuple[str, ...]:
    """What is cut from the cells of a cube, a score, or an aggregate of a table; nothing of public data."""
    if not handle.private:
        return ()
    values: Sequence[RowExpr] = ()  # clamped values count all the same
    if aggregate is not None and not aggregate.name.startswith("count"):
        values = aggregate.expressions
    while isinstance(handle, Score):
        values = [one.expr for one in handle.arguments if isinstance(one, FixedSum)]
        handle = handle.base
    stated = all(map(attrgetter("unit.at_most"), handle.exposures))
    return tuple(dict.fromkeys(cut for plan in _plans_of(handle) for cut in cuts(plan, values, stated)))


def _plans_of(handle: Handle) -> list[Plan]:
    """The rows that a handle is made of."""
    if isinstance(handle, Table | Vectors):
        return [handle.plan]
    cells = handle.cells if isinstance(handle, Cube) else None
    while isinstance(cells, Restricted):
        cells = cells.base
    if not isinstance(cells, RecordCells):
        return [cells.plan] if isinstance(cells, Tallied) else []
    waiting: list[Records] = [cells.weights.records]
    for records in waiting:
        waiting += sources_of(records)
    return [records.table for records in waiting if isinstance(records, Rows)]


def marked(column: Sequence[object], cut: tuple[str, ...], hidden: Sequence[bool]) -> Sequence[object]:
    """The answers of all groups, whose errors do not cover what was cut, and those marked whose rows are hidden."""
    if not cut and (not hidden or not (isinstance(hidden, LongColumn) or any(hidden))):
        return column

    def value(at: int) -> Any:
        answer = column[at]
        return answer.without(cut, bool(hidden) and hidden[at]) if type(answer) is Noised else answer

    return of_places(len(column), value, column.numbers if isinstance(column, LongColumn) else None)


def hidden_groups(
    table: Table | Cube, aggregates: Sequence[Aggregate], columns: Sequence[Sequence[object]]
) -> list[Sequence[bool]]:
    """For each aggregate the groups whose count of rows, as the select measured it, is no larger than its error."""
    if isinstance(table, Cube) or not table.private:
        return [[]] * len(aggregates)
    counted: dict[tuple[object, ...], Sequence[bool]] = {}
    widths: dict[object, float] = {}

    def hides(count: object) -> bool:
        law, number = getattr(count, "law", None), getattr(count, "value", count)
        if not isinstance(law, AdditiveLaw) or not isinstance(number, float):
            return False
        if law not in widths:
            widths[law] = law.half_width()
        return widths[law] >= abs(number)

    for aggregate, column in zip(aggregates, columns, strict=True):
        place = aggregate.estimator(table).count if isinstance(aggregate, Estimate) else None
        if aggregate.name == "count" or place is not None:
            hidden = partial(_hides, hides, column, place)
            counted[aggregate.expressions] = _either(counted.get(aggregate.expressions, ()), len(column), hidden)
    of_all = counted.get((), ())
    each = [counted.get(aggregate.expressions, ()) for aggregate in aggregates]
    return [own if own is of_all else _either(of_all, len(own), own.__getitem__) if own else of_all for own in each]


def _hides(hides: Callable[[object], bool], column: Sequence[object], place: int | None, at: int) -> bool:
    """Whether an answer hides how many rows there are: a count, or what is estimated of the count at a place."""
    if place is None:
        return hides(column[at])
    origin = getattr(column[at], "origin", None)
    return isinstance(origin, Formula) and hides(origin.inputs[place])


def _either(one: Sequence[bool], size: int, other: Callable[[int], bool]) -> Sequence[bool]:
    return of_places(size, (lambda at: one[at] or other(at)) if one else other)
