"""The functions of rows on public values: a program calls them by the same names, and they mean the same.

What is missing in a row is a refusal here. Functions of numbers alone stand with the other built-ins.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jostle.diagnostics import refuse
from jostle.language.builtins import BUILTINS
from jostle.language.facts import Gives
from jostle.language.operations import ROW_FUNCTIONS, Operation
from jostle.plan.kinds import WORDS, value_kind
from jostle.run.declared import signature_of
from jostle.run.registry import implement
from jostle.run.values import is_number, kind_name


def on_values(operation: Operation) -> Callable[..., Any]:
    """The function of a program that a row of the table says."""
    meaning = operation.value or _nothing
    signature = signature_of(BUILTINS[operation.name])

    def body(*args: Any, **keywords: Any) -> Any:
        values = signature.bind(*args, **keywords).args
        given = [float(value) if is_number(value) else value for value in values]
        for value, kind in zip(given, operation.kinds, strict=False):
            if kind != "any" and (_kind(value) != kind):
                raise refuse("TypeError", f"`{operation.name}` takes {WORDS[kind]}, and this is {kind_name(value)}")
        if operation.check is not None:
            try:
                operation.check(*given[len(given) - operation.constants :])
            except ValueError as error:
                raise refuse("ValueError", str(error)) from None
        result = meaning(*given)
        if result is None and "any" not in operation.kinds:
            raise refuse("ValueError", f"`{operation.name}` has no value here")
        return result

    body.__signature__ = signature  # type: ignore[attr-defined]
    return body


def _kind(value: Any) -> str | None:
    return value_kind(value) if isinstance(value, bool | str | float) else None


def _nothing(*_: Any) -> None:
    return None


for _operation in ROW_FUNCTIONS.values():
    _row = BUILTINS[_operation.name]
    if _operation.value is not None and _row.gives is not Gives.DOMAIN and _row.name != "number":
        implement(_operation.name, on_values(_operation))
