"""Loads every module of `run` that implements built-ins; those of choices are in `choice`.

The functions of rows are built-ins too: a program calls them by the same names, and they mean the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jostle.language.builtins import BUILTINS
from jostle.language.facts import Gives
from jostle.language.operations import ROW_FUNCTIONS, Operation
from jostle.run import (  # noqa: F401 (they enter what they implement)
    builtins,
    declared,
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
from jostle.run.declared import signature_of
from jostle.run.operators import apply
from jostle.run.registry import implement


def on_values(operation: Operation) -> Callable[..., object]:
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
