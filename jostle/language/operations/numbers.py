"""The operations on numbers. They are total on rows: what has no value is missing there, a refusal in a program."""

from __future__ import annotations

import math
from typing import Any

from jostle.language import intervals
from jostle.language.operations.operation import Finite, Operands, Operation, Whole

_AT_LEAST_ZERO = "CASE WHEN {0} >= 0 THEN {0} END"
NUMBERS = (
    Operation("+", 2, intervals.add, "({0} + {1})", lambda np, x, y: np.add(x, y), finite=Finite.NO,
              whole=Whole.FROM_WHOLE),
    Operation("-", 2, intervals.subtract, "({0} - {1})", lambda np, x, y: np.subtract(x, y), finite=Finite.NO,
              whole=Whole.FROM_WHOLE),
    Operation("*", 2, intervals.multiply, "({0} * {1})", lambda np, x, y: np.multiply(x, y), finite=Finite.NO,
              whole=Whole.FROM_WHOLE),
    Operation("/", 2, intervals.divide, "", lambda np, x, y: np.divide(x, y), finite=Finite.NO),
    Operation("%", 2, intervals.remainder, "", lambda np, x, y: _remainder(np, x, y), Operands.FINITE, Finite.NO,
              whole=Whole.FROM_WHOLE),
    Operation("^", 2, intervals.power, "", lambda np, x, y: np.float_power(x, y), Operands.FINITE, Finite.NO),
    Operation("neg", 1, intervals.negative, "(-{0})", lambda np, x: np.negative(x), whole=Whole.FROM_WHOLE),
    Operation("abs", 1, intervals.absolute, "abs({0})", lambda np, x: np.abs(x), whole=Whole.FROM_WHOLE, number=abs,
              about="The absolute value, also of each of a list.", each=True),
    Operation("floor", 1, intervals.rounded(math.floor), "floor({0})", lambda np, x: np.floor(x), whole=Whole.ALWAYS,
              number=math.floor, rises=True, about="The largest whole number below, also of each of a list.",
              each=True),
    Operation("ceil", 1, intervals.rounded(math.ceil), "ceil({0})", lambda np, x: np.ceil(x), whole=Whole.ALWAYS,
              number=math.ceil, rises=True, about="The smallest whole number above, also of each of a list.",
              each=True),
    Operation("sqrt", 1, intervals.root, f"sqrt({_AT_LEAST_ZERO})", lambda np, x: np.sqrt(x), Operands.NAMED,
              number=math.sqrt, rises=True, about="The square root, also of each of a list.", each=True),
    Operation("log", 1, intervals.logarithm, "ln(CASE WHEN {0} > 0 THEN {0} END)", lambda np, x: np.log(x),
              Operands.NAMED, number=math.log, rises=True, about="The natural logarithm, also of each of a list.",
              each=True),
    Operation("exp", 1, intervals.exponential, "exp(CASE WHEN {0} < 710 THEN {0} END)", lambda np, x: np.exp(x),
              Operands.FINITE, Finite.NO, number=math.exp, rises=True,
              about="The exponential, also of each of a list.", each=True),
    Operation("round", 1, intervals.rounded(round), "round_even({0}, 0)", lambda np, x: np.rint(x),
              whole=Whole.ALWAYS, number=lambda x, digits=0.0: float(round(x, int(digits))), rises=True,
              about="Rounded to so many digits.", signature="value, digits = 0"),
    Operation("clamp", 3, intervals.clamped,
              "CASE WHEN {0} IS NULL OR {1} IS NULL OR {2} IS NULL THEN NULL WHEN {0} < {1} OR {2} < {1} THEN {1} "
              "WHEN {0} > {2} THEN {2} ELSE {0} END",
              lambda np, x, low, high: np.maximum(low, np.minimum(high, x)), Operands.FINITE, Finite.ALWAYS,
              Whole.FROM_WHOLE, number=lambda x, low, high: max(low, min(high, x)), rises=True,
              about="The nearest number between `low` and `high`.", signature="value, low, high"),
    Operation("min", 2, intervals.smaller, "CASE WHEN {0} <= {1} THEN {0} WHEN {1} < {0} THEN {1} END",
              lambda np, x, y: np.minimum(x, y), Operands.FINITE, Finite.ALWAYS, Whole.FROM_WHOLE,
              number=lambda *numbers: min(numbers), rises=True,
              about="The smallest of a list, or of several numbers.", signature="*values", many=True),
    Operation("max", 2, intervals.larger, "CASE WHEN {0} >= {1} THEN {0} WHEN {1} > {0} THEN {1} END",
              lambda np, x, y: np.maximum(x, y), Operands.FINITE, Finite.ALWAYS, Whole.FROM_WHOLE,
              number=lambda *numbers: max(numbers), rises=True,
              about="The largest of a list, or of several numbers.", signature="*values", many=True),
)  # fmt: skip


def _remainder(np: Any, x: Any, y: Any) -> Any:
    """With the sign of the divisor."""
    rest = np.fmod(x, y)
    return np.where((rest != 0) & ((rest < 0) != (y < 0)), rest + y, rest)
