"""What a person is told of an operator between values that it does not take, by their kinds in words.

A check says it of kinds that it knows before the run, and a run of the values themselves.
"""

from __future__ import annotations

from jostle.diagnostics import Diagnostic

READ = "`number(s)` reads a number from a text"
_INSTEAD = {
    "a boolean": "write `1 if b else 0` for the boolean",
    "a list": "calculate with each element: `[x {op} 2 for x in xs]`",
    "a record": "calculate with one of its fields, `r.n`",
    "a grouped result": "calculate with one of its columns, `g.n`",
    "none": "test for `none` first: `x if x != none else 0`",
}


def misfit(op: str, left: str, right: str) -> Diagnostic:
    """Why `left op right` is refused, of these kinds; without a place."""
    kinds = {left, right}
    message = f"`{op}` takes numbers, and these are {left} and {right}"
    help = next((way.format(op=op) for kind, way in _INSTEAD.items() if kind in kinds), "")
    if op.endswith("in"):
        message, help = f"`in` takes a list, a set, a range or a record, not {right}", "write `x in [1, 2]`"
    elif op.endswith("like"):
        message, help = f"`like` takes texts, not {left} and {right}", "write `str(x)` of a number"
    elif op[0] in "<>":
        message = f"`{op}` compares numbers or texts, not {left} and {right}"
        if not kinds & {"none", "a date", "a time"}:
            help = READ if kinds == {"a number", "a text"} else "compare one of its numbers"
    elif "a text" in kinds:
        help = 'join texts with `"a" + str(n)`' if op == "+" else READ
    return Diagnostic("TypeError", message, help=help)
