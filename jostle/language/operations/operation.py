"""What a row of the table of operations says, and the operations on numbers and on missing values.

Everything that any pass needs stands in the row. Operations are total on rows: what has no value is missing there, and
a refusal in a program. All but those on missing values pass them on.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import Enum
from typing import Any

from msgspec import Struct

from jostle.language import intervals
from jostle.language.intervals import Interval

NUMBER, TEXT, BOOLEAN, DATE, TIME, ANY = "number", "text", "boolean", "date", "time", "any"
"""The kinds of values in a row; `ANY` is any of them."""


class Whole(Enum):
    """When a result is a whole number."""

    ALWAYS = "always"
    FROM_WHOLE = "where all operands are"
    NEVER = "not known to be"


class Operation(Struct, frozen=True, eq=False):
    """An operation on the values of a row.

    `takes`: the kinds of its operands, numbers where nothing is said; `gives`: the kind of what it gives. The last
    `constants` operands are public constants, which `check` may refuse before anything runs. What it is: for numbers
    `columns`, on columns of doubles, given NumPy first, and in a program `number`, which may raise ValueError or
    OverflowError; for other kinds `value`, on values that are not missing, where None is missing. `bounds`: of numbers
    that it gives for operands within bounds; None where there are none. `rises`: it grows with each operand. `about` is
    for people, and only functions have it: what a program calls by name.
    """

    name: str
    arity: int
    bounds: Callable[..., Interval | None]
    columns: Callable[..., Any] | None = None
    whole: Whole = Whole.NEVER
    number: Callable[..., float] | None = None
    rises: bool = False
    about: str = ""
    signature: str = "value"
    each: bool = False  # a program may apply it to each number of a list
    many: bool = False  # a program may apply it to several numbers, or to a list
    takes: tuple[str, ...] = ()
    gives: str = NUMBER
    constants: int = 0
    optional: int = 0  # further operands that a program may give, which make it another operation
    check: Callable[..., None] | None = None  # raises ValueError with what is wrong
    value: Callable[..., Any] | None = None

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of its operands."""
        return self.takes or (NUMBER,) * self.arity


def unbounded(*_: object) -> None:
    """No bounds, whatever the operands are."""


NUMBERS = (
    Operation("+", 2, intervals.add, lambda np, x, y: np.add(x, y), whole=Whole.FROM_WHOLE),
    Operation("-", 2, intervals.subtract, lambda np, x, y: np.subtract(x, y), whole=Whole.FROM_WHOLE),
    Operation("*", 2, intervals.multiply, lambda np, x, y: np.multiply(x, y), whole=Whole.FROM_WHOLE),
    Operation("/", 2, intervals.divide, lambda np, x, y: np.divide(x, y)),
    Operation("%", 2, intervals.remainder, lambda np, x, y: _remainder(np, x, y), whole=Whole.FROM_WHOLE),
    Operation("^", 2, intervals.power, lambda np, x, y: np.float_power(x, y)),
    Operation("neg", 1, intervals.negative, lambda np, x: np.negative(x), whole=Whole.FROM_WHOLE),
    Operation("abs", 1, intervals.absolute, lambda np, x: np.abs(x), whole=Whole.FROM_WHOLE, number=abs,
              about="The absolute value, also of each of a list.", each=True),
    Operation("floor", 1, intervals.rounded(math.floor), lambda np, x: np.floor(x), whole=Whole.ALWAYS,
              number=math.floor, rises=True, about="The largest whole number below, also of each of a list.",
              each=True),
    Operation("ceil", 1, intervals.rounded(math.ceil), lambda np, x: np.ceil(x), whole=Whole.ALWAYS,
              number=math.ceil, rises=True, about="The smallest whole number above, also of each of a list.",
              each=True),
    Operation("sqrt", 1, intervals.root, lambda np, x: np.sqrt(x), number=math.sqrt, rises=True,
              about="The square root, also of each of a list.", each=True),
    Operation("log", 1, intervals.logarithm, lambda np, x: np.log(x), number=math.log, rises=True,
              about="The natural logarithm, also of each of a list.", each=True),
    Operation("exp", 1, intervals.exponential, lambda np, x: np.exp(x), number=math.exp, rises=True,
              about="The exponential, also of each of a list.", each=True),
    Operation("round", 1, intervals.rounded(round), lambda np, x: np.rint(x),
              whole=Whole.ALWAYS, number=lambda x, digits=0.0: float(round(x, int(digits))), rises=True,
              about="Rounded to so many digits.", signature="value, digits = 0"),
    Operation("clamp", 3, intervals.clamped, lambda np, x, low, high: np.maximum(low, np.minimum(high, x)),
              Whole.FROM_WHOLE, number=lambda x, low, high: max(low, min(high, x)), rises=True,
              about="The nearest number between `low` and `high`.", signature="value, low, high"),
    Operation("min", 2, intervals.smaller, lambda np, x, y: np.minimum(x, y), Whole.FROM_WHOLE,
              number=lambda *numbers: min(numbers), rises=True,
              about="The smallest of a list, or of several numbers.", signature="*values", many=True),
    Operation("max", 2, intervals.larger, lambda np, x, y: np.maximum(x, y), Whole.FROM_WHOLE,
              number=lambda *numbers: max(numbers), rises=True,
              about="The largest of a list, or of several numbers.", signature="*values", many=True),
)  # fmt: skip


def _remainder(np: Any, x: Any, y: Any) -> object:
    """With the sign of the divisor."""
    rest = np.fmod(x, y)
    return np.where((rest != 0) & ((rest < 0) != (y < 0)), rest + y, rest)


def first(*values: object) -> object:
    """The first of several values that is not missing."""
    return next((value for value in values if value is not None), None)


ABSENCE = (
    Operation("missing", 1, unbounded, takes=(ANY,), gives=BOOLEAN,
              value=lambda value: value is None),
    Operation("coalesce", 1, unbounded, takes=(ANY,), gives=ANY, value=first, signature="value, *others",
              about="The first of several values that is not none."),
)  # fmt: skip
