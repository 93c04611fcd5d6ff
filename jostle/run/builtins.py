"""Built-in functions on public values.

Built-ins on handles are in `measured` (measurements, scores) and `forms` (row expressions).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from datetime import date

from jostle.accounting import composition as accounting
from jostle.accounting.amounts import as_float
from jostle.accounting.definitions import pure_epsilon
from jostle.diagnostics import Refusal, refuse
from jostle.doubles import no_value, total
from jostle.formulas import Noised, calculated
from jostle.language import row_functions
from jostle.language.row_functions import ROW_FUNCTIONS
from jostle.language.row_mistakes import no_categories
from jostle.lazy import np
from jostle.plan import plan as plans
from jostle.plan.plan import Domain, Integer, Real
from jostle.privacy.kernel.exposures import Handle
from jostle.privacy.kernel.handles import ColumnHandle, Table
from jostle.run import values as val
from jostle.run.arguments import left_of_allotment
from jostle.run.declare import public_array
from jostle.run.evaluator import At, Value, builtin, implement
from jostle.run.expressions import index
from jostle.run.faults import private_value, refuse_private
from jostle.run.operators import apply, elements, need_number, of_all
from jostle.run.origins import need_files
from jostle.run.publictables import records
from jostle.run.sequences import NumberColumn, Period, element_by_element

# Public functions ----------------------------------------------------------------------------------


def numbers(value: Value, what: str) -> list[float]:
    """The numbers of a list, vector, range, set, or grouped result with one aggregate. `none` is skipped."""
    if isinstance(value, val.Grouped):
        value = value.only()
    if val.is_vector(value):
        return [float(v) for v in value.ravel()]
    if not (val.is_sequence(value) or isinstance(value, (val.JSet, val.Interval))):
        raise refuse("TypeError", f"`{what}` takes a list of numbers, not {val.kind_name(value)}")
    if isinstance(value, val.Interval):
        val.need_room(value.count)
    return [need_number(v, f"`{what}`") for v in value if v is not None]


def nothing(what: str) -> Refusal:
    help = f"test first: `{what}(xs) if len(xs) > 0 else 0`"
    return refuse("ValueError", f"`{what}` of nothing has no value", help=help)


def _some(value: object, what: str) -> list[float]:
    pool = numbers(value, what)
    if not pool:
        raise nothing(what)
    return pool


def _moments(value: Value) -> list[date]:
    """The items of a list if they are all dates or all times, else an empty list. `none` is skipped."""
    if not (val.is_sequence(value) or isinstance(value, val.JSet)):
        return []
    dates = [item for item in value if item is not None]
    alike = all(isinstance(item, date) for item in dates) and len(set(map(type, dates))) == 1
    return dates if alike else []


def _elementwise(name: str, function: Callable[..., float]) -> Callable[[object], Value]:
    def of_one(value: object) -> float:
        number = need_number(value, f"`{name}`")
        return calculated(_defined(name, function, number), name, (number,))

    return lambda value: _of_each(of_one, value)


def _of_each(function: Callable[[object], float], value: object) -> Value:
    """Applies a function of a number, or to every element of a column, vector or list."""
    if isinstance(value, NumberColumn):
        return element_by_element(function, value)
    if val.is_vector(value) or isinstance(value, list):
        if val.is_vector(value) and value.ndim > 1:
            return np.array([function(v) for v in value.ravel()]).reshape(value.shape)
        return np.array([function(v) for v in value])
    return function(value)


def _defined(name: str, function: Callable[..., float], value: float) -> float:
    try:
        return float(function(value))
    except (ValueError, OverflowError):
        if name == "exp":
            return math.inf
        raise no_value(f"`{name}` has no value at {value:g}") from None


def _best(name: str, choose: Callable[[list[Value]], Value]) -> Callable[..., Value]:
    def body(*values: Value) -> Value:
        if moments := _moments(values[0] if len(values) == 1 else values):
            return choose(moments)
        pool = numbers(values[0], name) if len(values) == 1 else [need_number(v, f"`{name}`") for v in values]
        if not pool:
            raise nothing(name)
        return of_all(name, choose(pool), values[0] if len(values) == 1 else values, pool)

    return body


def _summary(name: str, function: Callable[[list[float]], float]) -> Callable[[object], float]:
    def body(values: object) -> float:
        pool = numbers(values, name)
        return of_all(name, function(pool), values, pool)

    return body


def _mean(pool: list[float]) -> float:
    if not pool:
        raise nothing("avg")
    return total(pool) / len(pool)


@builtin
def _median(values: object) -> float:
    return _quantile(values, 0.5)


def _variance(pool: list[float], what: str) -> float:
    if not all(map(math.isfinite, pool)):
        return math.nan
    if len(pool) < 2:
        raise refuse("ValueError", f"`{what}` takes at least two numbers")
    mean = math.fsum(pool) / len(pool)
    return math.fsum((v - mean) ** 2 for v in pool) / (len(pool) - 1)


@builtin
def _quantile(values: object, q: float) -> float:
    share = need_number(q, "`quantile`")
    if not 0 <= share <= 1:
        raise refuse("ValueError", "a quantile lies between 0 and 1", help="write `quantile(xs, 0.25)`")
    pool = _some(values, "quantile")
    with np.errstate(all="ignore"):
        result = float(np.quantile(pool, share))
    return calculated(result, "quantile", (share, *pool)) if Noised in set(map(type, pool)) else result


@builtin
def _round(value: object, digits: float = 0) -> object:
    places = need_number(digits, "`round`")
    if not places.is_integer() or abs(places) > 400:
        raise refuse("ValueError", "`round` takes a whole number of digits", help="`round(x, 2)`")
    return _of_each(lambda x: _rounded(need_number(x, "`round`"), places), value)


def _rounded(number: float, places: float) -> float:
    rounded = float(round(number, int(places))) if math.isfinite(number) else number
    return calculated(rounded, "round", (number, places, 0.0 if rounded == number else rounded - float(number)))


@builtin
def _clamp(value: object, low: object, high: object) -> object:
    if _moments([value, low, high]):
        return apply("clamp", (value, low, high))
    least, most = need_number(low, "`clamp`"), need_number(high, "`clamp`")
    return _of_each(lambda x: _clamped(need_number(x, "`clamp`"), least, most), value)


def _clamped(number: float, least: float, most: float) -> float:
    return calculated(max(least, min(most, number)), "clamp", (number, least, most))


@builtin
def _append(items: Value, item: Value) -> list[Value]:
    if not val.is_sequence(items):
        help = "a list of one text is `[x]`" if isinstance(items, str) else ""
        raise refuse("TypeError", f"`append` takes a list, not {val.kind_name(items)}", help=help)
    val.need_room(len(items) + 1)
    return [*items, item]


def _index_of_best(name: str, choose: Callable[..., Value]) -> Callable[[object], float]:
    def body(value: object) -> float:
        pool = _some(value, name)
        return float(choose(range(len(pool)), key=pool.__getitem__))

    return body


@builtin
def _sorted(values: Value, by: Value = None, *, at: At) -> list[Value]:
    """The items in order. `by` is the sort key: `sorted(rows, lambda row: row.n)` or `sorted(rows, "n")`."""
    interp, _ = at
    is_list = isinstance(values, (val.JSet, val.Grouped)) or val.is_sequence(values)
    items = (
        list(values) if is_list and not (isinstance(values, val.Grouped) and by is None) else numbers(values, "sorted")
    )
    each = (lambda item: index(item, by)) if isinstance(by, str) else lambda item: interp.call(by, [item])
    keys = items if by is None else list(map(each, items))
    places = [i for i, key in enumerate(keys) if key is not None]  # `none` is last, as in `order by`
    some = [keys[i] for i in places]
    if not (
        all(map(val.is_number, some)) or all(isinstance(key, str) for key in some) or len(_moments(some)) == len(some)
    ):
        raise refuse(
            "TypeError", "`sorted` takes all numbers or all texts, or all dates",
            help="say what counts: `sorted(…, lambda x: x[0])`",
        )  # fmt: skip
    order = sorted(places, key=keys.__getitem__) + [i for i, key in enumerate(keys) if key is None]
    return [items[i] for i in order]


@builtin
def _list(value: object, *, at: At) -> list[Value]:
    return _rows_or_items(value, at)


def _rows_or_items(value: Value, at: At) -> list[Value]:
    """The rows of a public table, or the items of a container."""
    interp, span = at
    return list(records(interp, value, span)) if isinstance(value, Table) else listed(value)


def listed(value: object) -> list[Value]:
    """The items of a public container."""
    if isinstance(value, Handle) or not isinstance(value, Iterable) or isinstance(value, str):
        raise refuse("TypeError", f"{val.kind_name(value)} has no items")
    if isinstance(value, val.Interval | Period):
        val.need_room(value.count)
    return elements(value) if val.is_vector(value) else list(value)


@builtin
def _set(value: object) -> val.JSet:
    return val.JSet(listed(value))


@builtin
def _reversed(value: object, *, at: At) -> list[object]:
    return _rows_or_items(value, at)[::-1]


@builtin
def _enumerate(value: object, *, at: At) -> list[object]:
    return [[float(i), item] for i, item in enumerate(_rows_or_items(value, at))]


@builtin
def _values(value: object) -> list[Value]:
    return list(value.values()) if isinstance(value, dict) else listed(value)


@builtin
def _number(value: object) -> float:
    if val.is_number(value):
        return need_number(value, "`number`")
    spelled = row_functions.number(value) if isinstance(value, str) else None
    if spelled is not None:
        return spelled
    raise refuse("TypeError", f"{val.kind_name(value)} is not written as a number")


@builtin
def _zip(*columns: object, at: At) -> list[list[object]]:
    return [list(row) for row in zip(*[_rows_or_items(c, at) for c in columns], strict=False)]


@builtin
def _keys(value: object) -> list[str]:
    if not isinstance(value, dict):
        raise refuse("TypeError", f"`keys` takes a record, not {val.kind_name(value)}")
    return list(value)


@builtin
def _record(pairs: object) -> val.Record:
    """A record of [name, value] pairs."""
    fields = val.Record()
    for pair in listed(pairs):
        if not val.is_sequence(pair) or len(pair) != 2 or not isinstance(pair[0], str):
            raise refuse("TypeError", "`record` takes pairs of a name and a value", help='`record([["a", 1]])`')
        fields[pair[0]] = pair[1]
    return fields


@builtin
def _rmse(a: object, b: object) -> float:
    """Root mean square error between two vectors of one length."""
    x, y = [v if val.is_vector(v) else np.array(numbers(v, "rmse")) for v in (a, b)]
    if x.size != y.size or not x.size:
        raise refuse("ValueError", f"`rmse` takes vectors of one length, not {x.size} and {y.size}")
    with np.errstate(all="ignore"):
        return float(np.sqrt(np.mean((x.ravel() - y.ravel()) ** 2)))


@builtin
def _scaled_error(answers: object, truth: object, total: float) -> float:
    """DPBench's error: ‖answers − truth‖₂ / (number of queries · total)."""
    x, y = [v if val.is_vector(v) else np.array(numbers(v, "scaled_error")) for v in (answers, truth)]
    if x.size != y.size or not x.size or not need_number(total, "`scaled_error`") > 0:
        raise refuse("ValueError", "`scaled_error` takes two vectors of one length and a positive total")
    return float(np.linalg.norm(x.ravel() - y.ravel()) / (x.size * total))


@builtin
def _vectors_in(folder: str, *, at: At) -> list[Value]:
    """The arrays of all `.npy` files in a folder, by name. Each is read as public, and refused if it is private."""
    from pathlib import Path

    if not isinstance(folder, str):
        raise refuse("TypeError", f"`vectors_in` takes the path of a folder, not {val.kind_name(folder)}")
    interp, span = at
    need_files(interp, span, [folder])  # before any access, since analysts must not learn what exists
    paths = sorted(Path(folder).glob("*.npy")) if "\0" not in folder else []
    if not paths:
        raise refuse("DataError", f"there are no `.npy` files in `{folder}`")
    return [public_array(interp, str(path), span) for path in paths]


MOST_TIMES = 10**6
"""The largest number of measurements in `accounting`."""


@builtin
def _accounting(
    *, epsilon: object = None, sigma: object = None, times: object = 1.0, delta: object = 1e-6
) -> val.Record:
    """The total loss of `times` equal measurements, as the least ε at `delta` by each rule of composition."""
    if (epsilon is None) == (sigma is None):
        raise refuse(
            "TypeError", "`accounting` takes either `epsilon` or `sigma` of one measurement",
            help="`accounting(sigma = 5, times = 100, delta = 1e-6)`",
        )  # fmt: skip
    runs, chance = int(need_number(times, "`times`")), need_number(delta, "`delta`")
    if runs > MOST_TIMES:
        raise refuse("ValueError", f"{runs:,} measurements are too many to add up", help=f"at most {MOST_TIMES:,}")
    if sigma is not None:
        return val.Record(accounting.of_gaussian(need_number(sigma, "`sigma`"), runs, chance))
    return val.Record(accounting.of_pure(need_number(epsilon, "`epsilon`"), runs, chance))


# Functions that may meet handles inside containers, or need the session -----------------------------


@builtin
def _print(*values: Value, at: At) -> None:
    interp, _ = at
    if not interp.quiet:
        texts = [val.show(value) for value in values]
        interp.out(("\n" if any("\n" in text for text in texts) else " ").join(texts))  # tables have several lines


def _many_listed(domain: Domain) -> int | None:
    """The number of listed values of a domain, without listing them."""
    if isinstance(domain, Integer):
        return domain.high - domain.low + 1
    finite = plans.listed(domain)
    return None if finite is None else len(finite)


@builtin
def _len(value: Value, *, at: At) -> float:
    if isinstance(value, Table) and not value.private:
        return float(at[0].data.size(value))
    if isinstance(value, ColumnHandle):
        many = _many_listed(value.domain)
        if many is None:
            raise Refusal(no_categories(value.name, real=isinstance(value.domain, Real)))
        return float(many)
    if isinstance(value, Handle):
        if value.private:
            raise private_value(value, "cannot be passed to `len`")
        help = "its number of rows is measured: `laplace(size(c))`"
        raise refuse("TypeError", f"{val.kind_name(value)} has no length", help=help)
    if isinstance(value, val.Interval):
        return value.count
    if isinstance(value, Period):
        return float(len(listed(value)))
    size = getattr(value, "size", None) if not val.is_vector(value) else len(value)
    if isinstance(value, (str, dict, val.JSet, val.Grouped)) or val.is_sequence(value):
        return float(len(value))
    if isinstance(size, int):
        return float(size)
    raise refuse("TypeError", f"{val.kind_name(value)} has no length")


@builtin
def _str(value: object) -> str:
    refuse_private(value, "cannot be passed to `str`")
    return val.show(value)


@builtin
def _spent(value: object) -> Value:
    exposure = _source_of(value, "spent")
    source = exposure.source
    amounts = source.measure.spent(source.meter.spent)
    return val.Record(amounts) if len(amounts) > 1 else next(iter(amounts.values()))


@builtin
def _left(value: Value, *, at: At) -> Value:
    interp, _ = at
    exposure = _source_of(value, "left")
    left, delta = map(as_float, interp.kernel.left_of(exposure))
    return val.Record(epsilon=left, delta=delta) if exposure.source.measure.has_delta else left


@builtin
def _as_epsilon(share: float = 1.0, *, at: At) -> float:
    """A share of the open amount as ε, for public tuning parameters such as the number of rounds."""
    interp, _ = at
    inner = interp.kernel.allotment
    left: float = left_of_allotment(interp, (), inner.unit if inner is not None and inner.unit else "epsilon")
    left *= need_number(share, "`as_epsilon`")
    return pure_epsilon(left) if inner is not None and inner.unit == "rho" else left


@builtin
def _has_delta(*, at: At) -> bool:
    """Whether the open allotment has a delta, for Gaussian noise and secret samples."""
    inner = at[0].kernel.allotment
    return inner is not None and inner.amount is not None and inner.amount.delta > 0


def _source_of(value: object, what: str) -> Value:
    if isinstance(value, Handle) and len(value.exposures) == 1:
        return value.exposures[0]
    raise refuse("TypeError", f"`{what}` takes a private source, not {val.kind_name(value)}")


@builtin
def _explain(value: object) -> str:
    explained = getattr(value, "jostle_explain", None)
    if explained is None:
        raise refuse("TypeError", f"`explain` takes a ChoiceMaker, not {val.kind_name(value)}")
    return str(explained())


for _operation in ROW_FUNCTIONS.values():
    if _operation.each and _operation.number is not None:
        implement(_operation.name, _elementwise(_operation.name, _operation.number))
for _name, _function in (
    ("sum", total), ("avg", _mean), ("var", lambda pool: _variance(pool, "var")),
    ("stddev", lambda pool: math.sqrt(_variance(pool, "stddev"))),
):  # fmt: skip
    implement(_name, _summary(_name, _function))
for _name, _choose in (("min", min), ("max", max)):
    implement(_name, _best(_name, _choose))
    implement(f"idx{_name}", _index_of_best(f"idx{_name}", _choose))
