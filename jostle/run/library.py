"""Built-ins that stand elsewhere: loads every module that implements some, and enters those of `privacy` and of rows.

A row of `language.builtins` may name a function of `privacy`; its annotations say what a program gives it. It takes a
handle and public values. It returns a measurement, which the door measures here, or scores. One score of public data is
a number at once; of a vector of them only the largest is asked. The functions of rows are built-ins too: they mean the
same in a program. Built-ins of choices are in `choice`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from inspect import Parameter, Signature, signature
from typing import Any

from jostle.language.builtins import BUILTINS
from jostle.language.facts import Builtin, Gives
from jostle.language.row_functions import ROW_FUNCTIONS, Function
from jostle.privacy.kernel.exposures import Handle
from jostle.privacy.kernel.measurement import Measurement
from jostle.privacy.scores import Score, Scores
from jostle.run import (  # noqa: F401 (they enter what they implement)
    builtins,
    forms,
    margins,
    measured,
    pictures,
    publictables,
    rowsums,
    selection,
    simulations,
    workloads,
)
from jostle.run.arguments import READERS, amount_for, score_or_number
from jostle.run.evaluator import At, implement
from jostle.run.operators import apply

AMOUNTS = ("epsilon", "delta")


def function_of(row: Builtin) -> Callable[..., Any]:
    """The function that a row names, `module:name` under `jostle.privacy`."""
    module, _, name = row.function.partition(":")
    function: Callable[..., Any] = getattr(import_module(f"jostle.privacy.{module}"), name)
    return function


@cache
def readers_of(row: Builtin) -> dict[str, Callable[..., object]]:
    """For each parameter of a row how its values are read; a `KeyError` where its annotation has no reader."""
    kinds = {name: parameter.annotation for name, parameter in signature(function_of(row)).parameters.items()}
    return {p.name: READERS[kinds[p.name]] for p in row.parameters if p.name not in AMOUNTS}


@cache
def signature_of(row: Builtin) -> Signature:
    """The parameters of a row as Python binds them."""
    kinds = {
        "": Parameter.POSITIONAL_OR_KEYWORD, "name": Parameter.KEYWORD_ONLY,
        "*": Parameter.VAR_POSITIONAL, "**": Parameter.VAR_KEYWORD,
    }  # fmt: skip
    return Signature([
        Parameter(p.name, kinds[p.kind], default=Parameter.empty if p.default is None else None)
        for p in row.parameters
    ])  # fmt: skip


def _body(row: Builtin) -> Callable[..., object]:
    def body(*args: Any, at: At, **keywords: Any) -> Any:
        interp, span = at
        arguments = signature_of(row).bind(*args, **keywords).arguments
        amount = {name: arguments.pop(name, None) for name in AMOUNTS}
        tuning = next((p.name for p in row.parameters if p.kind == "**"), "")
        more = arguments.pop(tuning, {})
        arguments_by_name = {**arguments, **more}
        readers = readers_of(row)
        about: Handle | None = None
        for name, value in arguments_by_name.items():
            arguments_by_name[name] = (readers.get(name) or readers[tuning])(value, row.name, about)
            about = value if about is None and isinstance(value, Handle) else about
        function = function_of(row)
        if about is not None and any(p.name in AMOUNTS for p in row.parameters):
            with amount_for(interp, about, span, **amount) as arguments_by_name["amount"]:
                return interp.kernel.measure(function(**arguments_by_name), span)
        result = function(**arguments_by_name)
        if isinstance(result, Measurement):
            return interp.kernel.measure(result, span)
        return (
            score_or_number(interp, result, span)
            if isinstance(result, Score) and not isinstance(result, Scores)
            else result
        )

    body.__signature__ = signature_of(row)  # type: ignore[attr-defined]
    return body


for _row_named in BUILTINS.values():
    if _row_named.function:
        implement(_row_named.name, _body(_row_named))


def on_values(operation: Function) -> Callable[..., object]:
    """The function of a program that a row of the table says."""
    signature = signature_of(BUILTINS[operation.name])

    def body(*args: object, **keywords: object) -> Any:
        return apply(operation.name, signature.bind(*args, **keywords).args)

    body.__signature__ = signature  # type: ignore[attr-defined]
    return body


for _operation in ROW_FUNCTIONS.values():
    _row = BUILTINS[_operation.name]
    if _operation.value is not None and _row.gives is not Gives.DOMAIN and _row.name != "number":
        implement(_operation.name, on_values(_operation))
