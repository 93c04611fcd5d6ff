"""Where functions of Python become built-ins of the language, each by its row of `language.builtins`.

The row says whether a function takes handles and whether its arguments are evaluated. A function without a row is an
`ImportError` when its module is loaded, and a row without a function one when a session begins (`base_scope`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

from jostle.language.builtins import BUILTINS
from jostle.language.facts import Gives, Reads
from jostle.plan.plan import Open
from jostle.run.scope import Scope
from jostle.run.values import Builtin, RowForm

Body = TypeVar("Body", bound=Callable[..., Any])
_IMPLEMENTED: dict[str, Builtin | RowForm] = {}


def builtin(body: Body) -> Body:
    """Decorates `_name`, which implements the built-in `name`; its `at` is given the interpreter and the span."""
    implement(body.__name__.removeprefix("_"), body)
    return body


def implement(name: str, body: Callable[..., object]) -> None:
    """Makes `body` the built-in `name`."""
    row = BUILTINS.get(name)
    if row is None or row.reads is Reads.NOTHING:
        raise ImportError(f"the built-in `{name}` has no row in `jostle.language.builtins`")
    if name in _IMPLEMENTED:
        raise ImportError(f"the built-in `{name}` is implemented twice")
    if row.reads in (Reads.ROWS, Reads.SOURCE):
        _IMPLEMENTED[name] = RowForm(name, body)
        return
    code = body.__code__
    wants_call = "at" in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    _IMPLEMENTED[name] = Builtin(name, body, sees_handles=row.reads is not Reads.PUBLIC, wants_call=wants_call)


def base_scope() -> Scope:
    """A fresh scope of all built-ins, whose modules have been loaded; programs stand on top of it."""
    names: dict[str, object] = dict(_IMPLEMENTED)
    for row in BUILTINS.values():
        if row.gives is Gives.DOMAIN:
            names[row.name] = Open(row.name)
        elif row.gives is Gives.CONSTANT:
            names[row.name] = getattr(math, row.name)
    missing = sorted(BUILTINS.keys() - names.keys())
    if missing:
        raise ImportError(f"no function implements {', '.join(missing)}")
    return Scope(None, names)
