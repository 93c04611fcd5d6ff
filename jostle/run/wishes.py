"""`with error e` and `with weight w` of a select: what its answers are to be."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from jostle.diagnostics import Refusal, refuse
from jostle.privacy.kernel.handles import handles_in
from jostle.run.faults import private_value
from jostle.run.values import is_number
from jostle.syntax import nodes as n

if TYPE_CHECKING:
    from jostle.run.interpreter import Interpreter
    from jostle.run.scope import Scope


def wish_of(interp: Interpreter, node: n.Amount, scope: Scope) -> float:
    """The error or the weight that is written: a public number above 0."""
    value = interp.eval(node.value, scope)
    for handle in handles_in(value):
        raise private_value(handle, f"cannot be the {node.unit} of an answer").at(node.value.span)
    if not is_number(value) or not 0 < value < math.inf:
        raise refuse("BadAmount", f"{node.unit} is a number above 0", node.value.span, help=f"write `{node.unit} 4`")
    return float(value)


def no_error(node: n.Select) -> Refusal:
    """Of a select outside of such a block that has a weight."""
    span = node.spend.span if node.spend is not None else node.span
    return refuse(
        "TypeError", "a weight is no amount that is spent", span,
        help="write `with epsilon 0.1` or `with error 30`, or put the select into a `jointly` block",
    )  # fmt: skip
