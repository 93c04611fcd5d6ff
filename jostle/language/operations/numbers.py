"""The operations on numbers. They are total on rows: what has no value is missing there, a refusal in a program.

What a row may ask of a value that is missing. All other operations pass it on.
"""

from __future__ import annotations

import math
from typing import Any

from jostle.language import intervals
from jostle.language.operations.operation import ANY, BOOLEAN, Operation, Whole, unbounded

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


def _remainder(np: Any, x: Any, y: Any) -> Any:
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
