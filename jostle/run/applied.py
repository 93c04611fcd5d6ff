"""Operations of rows on public values: what is missing in a row is a refusal here."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any

from jostle.diagnostics import refuse
from jostle.language.operations import OPERATIONS
from jostle.plan.kinds import WORDS, applied, value_kind
from jostle.plan.plan import Apply, Constant
from jostle.run.values import is_number, kind_name

_FORMATS = {"date of text": "%d/%m/%Y", "time of text": "%I:%M %p"}
"""How a text may be written that is no date or time as ISO writes them."""


def apply(name: str, values: Sequence[Any]) -> Any:
    """What the operation of that name for values of these kinds gives; a `Refusal` where it has no value."""
    for value in values:
        if not (value is None or is_number(value) or isinstance(value, bool | str | date)):
            raise refuse("TypeError", f"`{name}` does not take {kind_name(value)}")
    constants = tuple(Constant(float(value) if is_number(value) else value) for value in values)
    return _value(name, applied(name, constants, {}))


def _value(name: str, expr: Apply) -> Any:
    """What an operation on constants gives; `name` is what the program calls it."""
    given = [_value(name, arg) if isinstance(arg, Apply) else arg.value
             for arg in expr.args if isinstance(arg, Apply | Constant)]  # fmt: skip
    chosen = OPERATIONS[expr.op]
    if len(given) != chosen.arity and "*" not in chosen.signature:
        raise refuse("TypeError", f"`{name}({chosen.signature})` takes {chosen.arity}, and {len(given)} were given")
    for value, kind in zip(given, chosen.kinds, strict=False):
        if kind != "any" and (value is None or value_kind(value) != kind):
            raise refuse("TypeError", f"`{name}` takes {WORDS[kind]}, and this is {kind_name(value)}")
    if chosen.check is not None:
        try:
            chosen.check(*given[len(given) - chosen.constants :])
        except ValueError as error:
            raise refuse("ValueError", str(error)) from None
    result = chosen.value(*given) if chosen.value is not None else None
    if result is None and "any" not in chosen.kinds:
        written = _FORMATS.get(expr.op)
        help = f'texts are read as ISO writes them; else a format says how, `{name}(x, "{written}")`' if written else ""
        raise refuse("ValueError", f"`{name}` has no value here", help=help)
    return result
