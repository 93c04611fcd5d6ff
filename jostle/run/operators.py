"""Operators on public values: doubles that overflow to infinity, text, lists, sets, and vectors with their origin.

Operations of rows stand here too: what is missing in a row is a refusal in a program.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import date
from functools import partial
from itertools import repeat
from typing import Any

from jostle.diagnostics import Refusal, refuse
from jostle.doubles import NoValue, arithmetic, folded, no_value, ordered
from jostle.formulas import MOST_STEPS, Formula, Noised, OfElements, Vector, calculated, cuts_of
from jostle.kernels import KernelError
from jostle.language import patterns
from jostle.language.builtins import BUILTINS
from jostle.language.facts import Parameter
from jostle.language.moments import number_of
from jostle.language.operations import COMPARISONS
from jostle.language.row_functions import OPERATIONS, OVERLOADS
from jostle.language.row_mistakes import arity_error, misfit
from jostle.lazy import np
from jostle.plan.kinds import WORDS, Schema, kind_of, value_kind
from jostle.plan.plan import Apply, Constant, RowExpr
from jostle.run import values as val
from jostle.run.faults import refuse_private
from jostle.run.sequences import NumberColumn, Period, element_by_element, period


def origin_of_vector(value: object) -> Formula | None:
    """What a vector was calculated from; None where that is not known."""
    if not hasattr(type(value), "jostle_vector"):
        return None
    from jostle.kernels.noisy_array import origin_of

    return origin_of(value)


def element(value: Any, place: int) -> object:
    """One element of a vector: a number, or a row of a matrix."""
    if value.ndim > 1:
        from jostle.kernels.noisy_array import row_of

        return row_of(value, place)
    one = value[place]
    origin = origin_of_vector(value)
    if origin is None:
        return float(one)
    at = place % len(value)
    if isinstance(origin, Vector):
        return Noised.of(float(one), origin.element(at), cuts_of(value))
    return Noised.of(float(one), Formula("element", (origin, float(at)), origin.steps + 1), cuts_of(value))


def elements(value: Any) -> list[object]:
    """All elements of a vector, or all rows of a matrix."""
    if value.ndim == 1 and origin_of_vector(value) is None:
        return [float(v) for v in value]
    return [element(value, place) for place in range(len(value))]


def of_all(name: str, result: float, value: object, numbers: Sequence[float]) -> float:
    """The result of a function of a list of numbers; where these are noised, it remembers from what it comes."""
    if not val.is_vector(value):
        return calculated(result, name, numbers) if Noised in set(map(type, numbers)) else result
    origin = origin_of_vector(value)
    if origin is None:
        return result
    if isinstance(origin, Vector):
        return Noised.of(result, OfElements(name, origin), cuts_of(value))
    return Noised.of(result, Formula(f"{name} of elements", (origin,), origin.steps + 1), cuts_of(value))


def calculated_vector(result: Any, op: str, left: Any, right: Any) -> object:
    """A vector that was calculated of two sides, which remembers from what."""
    one, other = _side(left), _side(right)
    if result.ndim != 1 or one is None or other is None:
        return result
    steps = max(getattr(one, "steps", -1), getattr(other, "steps", -1)) + 1
    if not 0 < steps <= MOST_STEPS:
        return result
    from jostle.kernels.noisy_array import with_origin

    return with_origin(result, Formula(op, (one, other), steps), cuts_of(left, right))


def _side(value: Any) -> object:
    """What a side comes from, or the constant that it is, with a row for each element; None where it is neither."""
    if type(value) is Noised:
        return value.origin
    if isinstance(value, list):
        value = None if Noised in set(map(type, value)) else np.asarray(value, dtype=float)
    origin = origin_of_vector(value)
    if origin is not None or getattr(value, "noise", None) is not None:
        return origin
    return value[:, None] if getattr(value, "ndim", 0) == 1 else value


_FORMATS = {"date of text": "%d/%m/%Y", "time of text": "%I:%M %p"}
"""How a text may be written that is no date or time as ISO writes them."""
_LETTERS_AS = {"yyyy": "%Y", "yy": "%y", "mm": "%m", "dd": "%d", "hh": "%H", "ss": "%S"}
_LETTERS = re.compile("|".join(_LETTERS_AS), re.IGNORECASE)
"""How Excel and SQL say the same."""


_OVERLOADED = frozenset(spelling[0] for spelling in OVERLOADS)
_MIXED = frozenset(
    {*COMPARISONS, "in", "if", "coalesce", "-", "days_between", "seconds_between", "clamp", "min", "max"}
)
_TAKES_MOMENTS = frozenset(op.name for op in OPERATIONS.values() if {"date", "time"} & {*op.kinds})


def applied(op: str, args: tuple[RowExpr, ...], schema: Schema) -> Apply:
    """An operation as a program spells it: the one of that name for operands of these kinds.

    Where a time meets a date, the date is its beginning; where a date is needed, a time is its date.
    """
    if op in ("date", "time") and len(args) == 2:  # a text, and the format in which it is written
        return Apply(f"{op} of text", (_readable(f"{op} by format", args),))
    if (op, len(args)) in _FURTHER:
        return _FURTHER[op, len(args)](*args)
    if op not in _OVERLOADED | _MIXED | _TAKES_MOMENTS:
        return _readable(op, args)
    kinds = list(map(_safe_kind, args, repeat(schema)))
    if not {"date", "time"} & {*kinds}:
        return Apply(OVERLOADS.get((op, *kinds), op), args)
    if op == "-" and kinds[1:] == ["number"]:
        many = args[1]
        value = many.value if isinstance(many, Constant) else None
        back = Constant(-value) if isinstance(value, float | int) else Apply("neg", (many,))
        op, args = "+", (args[0], back)
    if op in _MIXED and {"date", "time"} <= {*kinds}:
        args = tuple(as_moment(arg, kind, "time") for arg, kind in zip(args, kinds, strict=True))
        kinds = ["time" if kind == "date" else kind for kind in kinds]
    op = OVERLOADS.get((op, *kinds), op)
    needed = OPERATIONS[op].kinds if op in _TAKES_MOMENTS else ()
    if len(needed) == len(args):
        args = tuple(as_moment(*three) for three in zip(args, kinds, needed, strict=True))
    return Apply(op, args)


def _readable(op: str, args: tuple[RowExpr, ...]) -> Apply:
    """An operation whose last operand is a text that the language reads, a pattern or a format."""
    text = args[-1].value if op in _READ and isinstance(args[-1], Constant) else None
    if isinstance(text, str):
        try:
            _READ[op](text)
        except ValueError as error:
            raise refuse("ValueError", str(error)) from None
    return Apply(op, args)


_READ = {name: check for name in ("matches", "date by format", "time by format") if (check := OPERATIONS[name].check)}


def _to_digits(expr: RowExpr, digits: RowExpr) -> Apply:
    """A number rounded to a public number of digits: to the nearest multiple of a power of ten."""
    many = digits.value if isinstance(digits, Constant) else None
    if isinstance(many, bool | str | date) or many is None or not (abs(many) <= 15 and float(many).is_integer()):
        raise refuse("ValueError", "`round` takes a public number of digits, up to 15", help="`round(x, 2)`")
    step, (down, up) = Constant(10.0 ** abs(many)), ("*/" if many >= 0 else "/*")
    return Apply(up, (Apply("round", (Apply(down, (expr, step)),)), step))


_FURTHER: dict[tuple[str, int], Callable[..., Apply]] = {
    ("round", 2): _to_digits, ("substring", 3): lambda *args: Apply("substring of count", args),
}  # fmt: skip


def as_moment(expr: RowExpr, kind: str | None, needed: str) -> RowExpr:
    """A date as the time of its beginning, a time as its date; anything else as it is."""
    if {kind, needed} != {"date", "time"} or kind == needed:
        return expr
    if isinstance(expr, Constant) and isinstance(expr.value, date):
        value = OPERATIONS[needed].value
        return Constant(value(expr.value)) if value is not None else expr
    return Apply(needed, (expr,))


def _safe_kind(expr: RowExpr, schema: Schema) -> str | None:
    """The kind of an expression, None where it has none; what is wrong in it is refused where it is used."""
    try:
        return kind_of(expr, schema)
    except Refusal:
        return None


def as_pattern(pattern: str) -> str:
    """The pattern for SQL's `like`: `%` is any text, `_` any character, the rest stands for itself; the whole text."""
    parts = {"%": "(.|\\n)*", "_": "(.|\\n)"}
    inner = "".join(parts.get(c) or (c if c.isalnum() or ord(c) > 127 else "\\" + c) for c in pattern)
    return f"^{inner}$"


def as_test(pattern: str) -> tuple[str, str]:
    """The operation on a text, and its other text, that a pattern of `like` is: of those the first that does."""
    operation = {(False, False): "==", (False, True): "starts_with", (True, False): "ends_with"}
    plain = pattern.strip("%")
    if set(plain) & {"%", "_"}:
        return "matches", as_pattern(pattern)
    return operation.get((pattern[:1] == "%", pattern[-1:] == "%"), "contains"), plain


def like(value: RowExpr, pattern: str, schema: Schema) -> RowExpr:
    """Whether a text is like a pattern of SQL."""
    operation, text = as_test(pattern)
    return applied(operation, (value, Constant(text)), schema)


def apply(name: str, values: Sequence[Any]) -> Any:
    """What the operation of that name for values of these kinds gives; a `Refusal` where it has no value."""
    for value in values:
        if not (value is None or val.is_number(value) or isinstance(value, bool | str | date)):
            help = f"a function is called: `{value.name}(x)`" if isinstance(value, val.Builtin) else ""
            raise refuse("TypeError", f"`{name}` does not take {val.kind_name(value)}", help=help)
    constants = tuple(Constant(float(value) if val.is_number(value) else value) for value in values)
    return _constant_value(name, applied(name, constants, {}))


def _constant_value(name: str, expr: Apply) -> Any:
    """What an operation on constants gives; `name` is what the program calls it."""
    arguments = [_constant_value(name, arg) if isinstance(arg, Apply) else arg.value
             for arg in expr.args if isinstance(arg, Apply | Constant)]  # fmt: skip
    entry = OPERATIONS[expr.op]
    if len(arguments) != entry.arity and "*" not in entry.signature:
        raise refuse("TypeError", f"`{name}({entry.signature})` takes {entry.arity}, and {len(arguments)} were given")
    for value, kind in zip(arguments, entry.kinds, strict=False):
        if kind != "any" and (value is None or value_kind(value) != kind):
            raise refuse("TypeError", f"`{name}` takes {WORDS[kind]}, and this is {val.kind_name(value)}")
    if entry.check is not None:
        try:
            entry.check(*arguments[len(arguments) - len(entry.constants) :])
        except ValueError as error:
            raise refuse("ValueError", str(error)) from None
    result = entry.value(*arguments) if entry.value is not None else None
    if result is None and "any" not in entry.kinds:
        form = _FORMATS.get(expr.op)
        help = f'texts are read as ISO writes them; else a format says how, `{name}(x, "{form}")`' if form else ""
        signs = _LETTERS.sub(lambda word: _LETTERS_AS[word[0].lower()], str(arguments[0]))
        if form and "%" in signs and not re.search(r"(?<!%)[A-Za-z]", signs):
            help = f'a format has signs of its own: write `{name}("{signs}")`'
        raise no_value(f"`{name}` has no value here", help)
    return result


def need_number(value: object, what: str) -> float:
    if not val.is_number(value):
        refuse_private(value, f"cannot be a number of {what}")
        raise refuse("TypeError", f"{what} takes numbers, not {val.kind_name(value)}")
    return value if isinstance(value, float) else float(value)


def unary(op: str, value: object) -> object:
    if isinstance(value, NumberColumn):
        return element_by_element(lambda x: unary(op, x), value)
    if val.is_vector(value):
        return _vectors("-", 0.0, value) if op == "-" else value
    number = need_number(value, f"`{op}`")
    return calculated(-number, "-", (0.0, number)) if op == "-" else number


NUMBERS = frozenset({float, Noised})
ATOMS = NUMBERS | {str}
_ARITHMETIC = frozenset("+-*/%^")
_ORDERS = frozenset({"<", "<=", ">", ">="})


def is_numeric(value: object) -> bool:
    """Whether it is a number or a vector, in which no handle can be."""
    return type(value) in NUMBERS or val.is_vector(value)


def is_atom(value: object) -> bool:
    """The same, or a text."""
    return type(value) is str or is_numeric(value)


def binary(op: str, left: Any, right: Any) -> Any:
    if type(left) in NUMBERS and type(right) in NUMBERS:  # nearly always
        if op in _ARITHMETIC:
            return _calculated(op, left, right)
        if op in _ORDERS:
            return ordered(op, left, right)
    if op in _TESTS:
        return _TESTS[op](op, left, right)
    if isinstance(left, date) and (isinstance(right, date) or val.is_number(right)):
        return apply(op, (left, right))
    if isinstance(left, val.JSet) and op in "+-":
        return _sets(op, left, right)
    if isinstance(left, NumberColumn) or isinstance(right, NumberColumn):
        return _columns(op, left, right)
    if isinstance(left, (str, list, tuple)) and op in "+-" and (joined := _joined(op, left, right)) is not None:
        return joined
    if val.is_vector(left) or val.is_vector(right):
        return _vectors(op, left, right)
    return _numbers(op, left, right)


def _joined(op: str, left: Any, right: Any) -> Any:
    """Two texts or lists as one, or a list without the items of another; None where the sides are no such pair."""
    if isinstance(left, str):
        if op == "-" or not isinstance(right, str):
            return None
        val.need_room(len(left) + len(right), "a text")
        return left + right
    if op == "+" and isinstance(right, (list, tuple)):
        val.need_room(len(left) + len(right))
        return [*left, *right]
    if op == "-" and isinstance(right, (val.JSet, list, tuple)):
        gone = right if isinstance(right, val.JSet) else val.JSet(right)
        return [item for item in left if item not in gone]
    return None


def _equality(op: str, left: object, right: object) -> bool:
    if type(left) is str and type(right) is str:
        return (left == right) == (op == "==")
    val.need_room(val.weight(left), "a value")
    return val.same(left, right) == (op == "==")


def _membership(op: str, left: object, right: object) -> bool:
    return contains(right, left) == (op == "in")


def _pattern(op: str, left: object, right: object) -> bool:
    if not (isinstance(left, str) and isinstance(right, str)):
        raise _refused(op, left, right)
    return patterns.matches(left, as_pattern(right)) == (op == "like")


def _range(op: str, left: Any, right: Any) -> bool:
    return (_compare(">=", left, right[0]) and _compare("<=", left, right[1])) == (op == "between")


def _numbers(op: str, left: object, right: object) -> float:
    refuse_private([left, right], "cannot be calculated with")
    if not (val.is_number(left) and val.is_number(right)):
        raise _refused(op, left, right)
    return _calculated(op, left, right)


def _calculated(op: str, left: float, right: float) -> float:
    if type(left) is Noised or type(right) is Noised:
        return calculated(arithmetic(op, float(left), float(right)), op, (left, right))
    return arithmetic(op, left, right)


def _refused(op: str, left: object, right: object) -> Refusal:
    return Refusal(misfit(op, val.kind_name(left), val.kind_name(right)))


def _compare(op: str, left: object, right: object) -> bool:
    if isinstance(left, date) and isinstance(right, date):
        return ordered(op, *(number_of(end) for end in (period(left, right).low, period(left, right).high)))
    texts = isinstance(left, str) and isinstance(right, str)
    if not texts and not (val.is_number(left) and val.is_number(right)):
        raise _refused(op, left, right)
    return ordered(op, left, right)


def contains(container: Any, item: Any) -> bool:
    if isinstance(container, val.JSet):
        return item in container
    if isinstance(container, dict):
        return isinstance(item, str) and item in container
    if isinstance(container, str) and isinstance(item, str):
        return item in container
    if isinstance(container, Period):
        return container.covers(item)
    if isinstance(container, val.Interval):
        return val.is_number(item) and container.low <= item <= container.high
    if val.is_sequence(container):
        return any(val.same(x, item) for x in container)
    raise _refused("in", item, container)


def _sets(op: str, left: val.JSet, right: Any) -> val.JSet:
    if not (isinstance(right, val.JSet) or val.is_sequence(right)):
        raise refuse("TypeError", f"`{op}` of a set takes a set, not {val.kind_name(right)}")
    return left.minus(right) if op == "-" else val.JSet([*left, *right])


def _vectors(op: str, left: object, right: object) -> object:
    if not (is_numeric(left) and is_numeric(right)):
        refuse_private([left, right], "cannot be calculated with")
    for side in (left, right):
        if not (val.is_vector(side) or val.is_number(side) or isinstance(side, list)):
            raise refuse("TypeError", f"`{op}` of a vector takes numbers, not {val.kind_name(side)}")
    try:
        a, b = np.asarray(left, dtype=float), np.asarray(right, dtype=float)
        with np.errstate(all="ignore"):
            result = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "%": np.mod, "^": np.power}[op](
                a, b
            )
    except (ValueError, TypeError):
        raise refuse("ValueError", f"{_sized(left)} and {_sized(right)} do not fit together") from None
    if op == "/" and not bool(np.all(b)):
        raise refuse("ValueError", "division by zero")
    return calculated_vector(result, op, left, right)


def _columns(op: str, left: object, right: object) -> NumberColumn:
    """Of columns of a grouped result, with numbers, and with lists and vectors of their length."""
    sides = [elements(value) if val.is_vector(value) and value.ndim == 1 else value for value in (left, right)]
    try:
        return element_by_element(partial(_number_or_none, op), *sides)
    except ValueError:
        raise refuse("ValueError", f"{_sized(left)} and {_sized(right)} do not fit together") from None


def _number_or_none(op: str, a: float, b: float) -> object:
    try:
        return _numbers(op, a, b)
    except NoValue:
        return None


def _sized(value: Any) -> str:
    if val.is_number(value):
        return "a number"
    if isinstance(value, NumberColumn):
        return f"a column of {len(value)}"
    numbers = val.is_vector(value) or all(val.is_number(v) for v in value)
    return f"a vector of {len(value)}" if numbers else "a list that is not of numbers"


def fold(name: str, items: Sequence[Any], values: Sequence[Any]) -> Any:
    """`max over`, `min over`, `sum over`, `argmax over`, `argmin over`; the first of equals wins."""
    for value in values:
        need_number(value, f"`{name} over`")
    if not values and name != "sum":
        raise refuse("ValueError", f"`{name} over` nothing has no value", help="test first that there is something")
    result = folded(name, items, values)
    return result if name.startswith("arg") else of_all(name, result, values, values)


def bound(
    name: str, params: Sequence[tuple[str, Any]], args: Sequence[object], keywords: dict[str, object]
) -> dict[str, Any]:
    """The value of each parameter, of (name, default or `REQUIRED`), in a call of a function of the language."""
    values = dict(zip([param for param, _ in params], args, strict=False))
    result = {**dict(params), **values, **keywords}
    fits = len(args) <= len(params) == len(result) and values.keys().isdisjoint(keywords)
    if not fits or any(value is val.REQUIRED for value in result.values()):
        raise refuse("TypeError", arity_error(name, parameters(params), len(args), list(keywords)))
    return result


def parameters(params: Sequence[tuple[str, Any]]) -> list[Parameter]:
    """Those of a function of the language."""
    return [Parameter(name, None if default is val.REQUIRED else "") for name, default in params]


def guarded(
    name: str, body: Callable[..., object], args: Sequence[object], keywords: dict[str, object], *, quote: bool = True
) -> object:
    """Calls a Python body; what it raises on wrong values becomes a diagnostic, quoted only where all is public."""
    try:
        return body(*args, **keywords)
    except Refusal:
        raise
    except TypeError as error:
        text = str(error)
        if "argument" in text or "positional" in text:
            usage = f"write `{BUILTINS[name].usage}`" if name in BUILTINS else ""
            raise refuse("TypeError", f"`{name}` does not take these arguments", help=usage) from error
        raise refuse("TypeError", f"`{name}` cannot work with these values") from error
    except MemoryError:
        raise refuse("ValueError", f"`{name}` needs more memory here than there is") from None
    except (ValueError, ArithmeticError, IndexError, KeyError, AttributeError) as error:
        has_text = quote and isinstance(error, KernelError)
        raise refuse("ValueError", str(error) if has_text else f"`{name}` has no value here") from error


_TESTS: dict[str, Callable[[str, object, object], object]] = {
    "==": _equality, "!=": _equality, "in": _membership, "not in": _membership, "like": _pattern, "not like": _pattern,
    "between": _range, "not between": _range, **dict.fromkeys(_ORDERS, _compare),
}  # fmt: skip
"""Operators that give true or false, of any two values."""
