"""A formula as the block of a `predict`, in the language."""

from __future__ import annotations

from jostle.choice.synthesis.formulas import Formula

FUNCTIONS = ("clamp", "exp", "log", "sqrt", "min", "max")
"""The built-in functions that such a block may call."""


def block(formula: Formula, logarithmic: bool, parameter: str = "F", indent: str = "") -> str:
    """A block with braces that gives the utility; `indent` is that of the line on which it begins.

    Where utilities are errors the formula says the logarithm of the error, and the block its negative exponential.
    Features stay within the ranges that they had in training, so that the block has a value whatever they are.
    """
    lines = [f"{name} = clamp({parameter}.{name}, {low:.6g}, {high:.6g})"
             for name, (low, high) in ((name, formula.ranges[name]) for name in formula.features)]  # fmt: skip
    lines.append(f"return -exp({formula.text()})" if logarithmic else f"return {formula.text()}")
    return "{\n" + "".join(f"{indent}    {line}\n" for line in lines) + indent + "}"
