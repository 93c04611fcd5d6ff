"""What the parts of a run ask of the interpreter: values of expressions, calls, and the state of the session.

`Interpreter` is one, and so is the walk before a run (`tools.foresight`).

Where functions of Python become built-ins of the language, each by its row of `language.builtins`.

The row says whether a function takes handles and whether its arguments are evaluated. A function without a row is an
`ImportError` when its module is loaded, and a row without a function one when a session begins (`base_scope`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path
from typing import Any, Protocol, TypeVar

from jostle.accounting.amounts import Amount
from jostle.diagnostics import Refusal
from jostle.language.builtins import BUILTINS
from jostle.language.facts import Gives, Reads
from jostle.plan.plan import Open
from jostle.privacy.kernel.exposures import Allotment, Exposures
from jostle.privacy.kernel.kernel import Kernel
from jostle.privacy.ledger.ledger import Ledger
from jostle.privacy.reading.public_data import PublicData
from jostle.run.looks import Looks
from jostle.run.scope import Scope
from jostle.run.values import Builtin, Function, Module, RowForm
from jostle.source import Span
from jostle.syntax import nodes as n

Value = Any
"""A value of the language: a number, a text, a list, a handle, a function, …; what kind it is, is asked at run time."""


class Returned:
    """What a block gives back when a `return` ended it."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value


class PlacedAt:
    """Within it, a refusal that has no place yet gets this one."""

    def __init__(self, span: Span | None) -> None:
        self._span = span

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, fault: BaseException | None, trace: object) -> None:
        if isinstance(fault, Refusal):
            raise fault.at(self._span) from None


class JointSelects(Protocol):
    """A `jointly` block that is being walked."""

    def answer(
        self, request: object, node: n.Select, wish: float | None, given: tuple[float, ...] | None = None
    ) -> Value:  # fmt: skip
        """The answers of a select, or a pending value the first time that the block is walked."""


class Evaluator(Protocol):
    """Evaluates a program in a session."""

    kernel: Kernel
    data: PublicData
    ledger: Ledger | None
    base: Scope
    load_module: Callable[[tuple[str, ...], Span], Module]
    out: Callable[[str], None]
    settings: dict[str, Value]
    released: dict[str, Value]
    bound: dict[str, Value]
    folders: list[Path]
    depth: int
    simulate: int | None
    made_up_rows: int
    planned: list[object] | None
    progress: Callable[[str, int, int], None] | None
    walks: bool
    quiet: int
    trying: bool
    bare_left: int
    joint: JointSelects | None
    looks: Looks
    aggregates: dict[int, Value]
    left: list[tuple[Function, Scope]]

    @property
    def names(self) -> type[dict[str, Value]]: ...

    @property
    def choose(self) -> Callable[[Any, n.Choice, Scope], Value]: ...

    def block(self, body: Sequence[n.Stmt], scope: Scope) -> Returned | None: ...

    def eval(self, node: n.Expr, scope: Scope) -> Value: ...

    def argument(self, node: n.Expr, scope: Scope) -> Value: ...

    def reads_rows(self, handle: object, node: n.Expr, scope: Scope) -> None:
        """A select, a form or an index reads rows, of which the walk before a run warns."""

    def operand(self, node: n.Expr, scope: Scope) -> Value:
        """A public value that is calculated with in each row."""

    def call(
        self, function: Value, args: Sequence[Value], keywords: dict[str, Value] | None = None, span: Span | None = None
    ) -> Value: ...

    def truth(self, value: Value, node: n.Expr) -> bool: ...

    def at_least(self, amount: float) -> float:
        """What is left of an allotment, of which the walk before a run knows a bound."""

    def walk(self, value: Value, span: Span | None) -> Iterable[Value]: ...

    def counted(self, items: Iterable[Value], span: Span) -> Iterable[Value]: ...

    def bind(self, names: tuple[str, ...], item: Value, scope: Scope, span: Span) -> None: ...

    def params_of(self, params: tuple[n.Param, ...], scope: Scope) -> tuple[tuple[str, Value], ...]: ...

    def allotted(
        self, amount: Amount | None, span: Span, exposures: Exposures
    ) -> AbstractContextManager[Allotment]: ...


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
    sees_handles = row.reads not in (Reads.PUBLIC, Reads.PRINTS, Reads.DRAWS)
    _IMPLEMENTED[name] = Builtin(name, body, sees_handles=sees_handles, wants_call=wants_call)


def base_scope() -> Scope:
    """A fresh scope of all built-ins, whose modules have been loaded; programs stand on top of it."""
    return Scope(None, dict(_all_names(len(_IMPLEMENTED), len(BUILTINS))))


@cache
def _all_names(*_: int) -> dict[str, object]:
    """What each built-in is, while there are as many functions and rows."""
    names: dict[str, object] = dict(_IMPLEMENTED)
    for row in BUILTINS.values():
        if row.gives is Gives.DOMAIN:
            names[row.name] = Open(row.name)
        elif row.gives is Gives.CONSTANT:
            names[row.name] = getattr(math, row.name)
    missing = sorted(BUILTINS.keys() - names.keys())
    if missing:
        raise ImportError(f"no function implements {', '.join(missing)}")
    return names


At = tuple[Evaluator, Span | None]
"""Who calls a built-in, and where in the program: what its parameter `at` receives."""
