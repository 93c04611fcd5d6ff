"""What the parts of a run ask of the interpreter: values of expressions, calls, and the state of the session.

`Interpreter` is one, and so is the walk before a run (`check.dry`). Functions of Python become built-ins of the
language here, each by its row of `language.builtins`. A function without a row is an `ImportError` when its module is
loaded, and a row without a function one when a session begins (`base_scope`).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from jostle.accounting.amounts import Amount
from jostle.diagnostics import Refusal, refuse
from jostle.language.builtins import BUILTINS
from jostle.language.facts import Gives, Reads
from jostle.language.row_mistakes import no_condition
from jostle.plan.plan import Open
from jostle.privacy.kernel.exposures import Allotment, Exposures
from jostle.privacy.kernel.kernel import Kernel
from jostle.privacy.ledger.ledger import Ledger
from jostle.privacy.reading.public_data import PublicData
from jostle.run.faults import refuse_private
from jostle.run.looks import Looks
from jostle.run.scope import Scope
from jostle.run.values import (
    REQUIRED,
    Builtin,
    Function,
    Grouped,
    Interval,
    JSet,
    Module,
    RowForm,
    is_sequence,
    kind_name,
)
from jostle.source import Span
from jostle.syntax import nodes as n

if TYPE_CHECKING:
    from jostle.privacy.measurements.selects import Answer

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


MADE_UP_ROWS = 1000  # of each source in a simulation


class Evaluator(ABC):
    """Evaluates a program in a session, whose state it holds."""

    names: type[dict[str, Value]] = dict  # the names of a function's scope

    def __init__(
        self,
        kernel: Kernel,
        data: PublicData,
        base: Scope,
        *,
        load_module: Callable[[tuple[str, ...], Span], Module],
        choose: Callable[[Any, n.Choice, Scope], Value],
        out: Callable[[str], None],
        settings: dict[str, Value] | None = None,
    ) -> None:
        self.kernel, self.data = kernel, data
        self.base = base
        self.load_module = load_module
        self.choose = choose
        self.out = out
        self.display: Callable[[object], str] = str  # a value as the prompt shows it
        self.settings = settings or {}
        self.ledger: Ledger | None = None  # of registered datasets
        self.released: dict[str, Value] = {}
        self.bound: dict[str, Value] = {}
        self.folders: list[Path] = []
        self.depth = 0
        self.simulate: int | None = None
        self.made_up_rows = MADE_UP_ROWS
        self.walks = False  # before a run, and reads nothing that is private
        self.planned: list[object] | None = None  # calls of ChoiceMakers, where a plan is made of them
        self.progress: Callable[[str, int, int], None] | None = None  # told of the outermost loop
        self.trying = False  # results before they are paid for: all operands and branches are looked at
        self.looping = False
        self.quiet = 0  # print and release are silent in training
        self.bare_left = 0  # bare selects still to come in the query at hand
        self.joint: JointSelects | None = None  # the `jointly` block that is being walked
        self.looks = Looks()  # at how the cells of columns fit that are measured
        self.aggregates: dict[int, Value] = {}  # aggregates of a select that are already measured, by node
        self.top: Scope | None = None  # of the program: its names outlive a stop
        self.holds = False  # whether a stop waits for an answer that is paid for, and which one does
        self.stop: Callable[[], object] | None = None
        self.left: list[tuple[Function, Scope]] = []  # functions of the program that a failure ended, innermost first

    @abstractmethod
    def block(self, body: Sequence[n.Stmt], scope: Scope) -> Returned | None: ...

    @abstractmethod
    def eval(self, node: n.Expr, scope: Scope) -> Value: ...

    def public_answers(self, node: n.Expr, scope: Scope, many: int) -> object:
        """What a select of a `jointly` block is given, of so many groups."""
        return self.eval(node, scope)

    @abstractmethod
    def argument(self, node: n.Expr, scope: Scope) -> Value:
        """An argument of a call."""

    @abstractmethod
    def operand(self, node: n.Expr, scope: Scope) -> Value:
        """A public value that is calculated with in each row."""

    @abstractmethod
    def call(
        self, function: Value, args: Sequence[Value], keywords: dict[str, Value] | None = None, span: Span | None = None
    ) -> Value:
        """Calls any callable value."""

    @abstractmethod
    def walk(self, value: Value, span: Span | None) -> Iterable[Value]:
        """The items of a public container."""

    @abstractmethod
    def allotted(
        self, amount: Amount | None, span: Span, exposures: Exposures
    ) -> AbstractContextManager[Allotment]: ...

    @abstractmethod
    def reads_rows(self, handle: object, node: n.Expr, scope: Scope) -> None:
        """A select, a form or an index reads rows, of which the walk before a run warns."""

    @abstractmethod
    def expect(
        self, node: n.Select, request: object, keys: Sequence[str], answer: Answer,
        columns: Callable[[Answer], Mapping[str, Sequence[object]]],
    ) -> None:  # fmt: skip
        """A request is asked next whose answer is like this one, of one group; `columns` calculates its results."""

    def deliver_stop(self) -> None:
        """What was paid for has its name: a stop that waited for it comes now."""
        self.kernel.owes, stop, self.stop = False, self.stop, None
        if stop is not None:
            stop()

    def at_least(self, amount: float) -> float:
        """What is left of an allotment, of which the walk before a run knows a bound."""
        return amount

    def truth(self, value: object, node: n.Expr) -> bool:
        if isinstance(value, bool):
            return value
        refuse_private(value, "cannot be a condition", node.span)
        raise Refusal(no_condition(kind_name(value), node.span.text)).at(node.span)

    def counted(self, items: Iterable[Any], span: Span) -> Iterable[Any]:
        """The items; of the outermost loop, reports progress."""
        tell = self.progress
        if tell is None or self.quiet or self.looping or not isinstance(items, (list, Interval, Grouped, JSet)):
            return items
        return self._with_progress(items, span, tell)

    def _with_progress(self, items: Any, span: Span, tell: Callable[[str, int, int], None]) -> Iterator[Any]:
        many = int(items.count) if isinstance(items, Interval) else len(items)
        label = f"line {span.line}"
        self.looping = True
        try:
            for done, item in enumerate(items):
                tell(label, done, many)
                yield item
        finally:
            self.looping = False
            tell(label, many, many)

    def bind(self, names: tuple[str, ...], item: Any, scope: Scope, span: Span) -> None:
        if len(names) == 1:
            scope.set(names[0], item)
            return
        if not is_sequence(item) or len(item) != len(names):
            raise refuse("TypeError", f"{kind_name(item)} does not unpack into {len(names)} names", span)
        for name, value in zip(names, item, strict=True):
            scope.set(name, value)

    def params_of(self, params: tuple[n.Param, ...], scope: Scope) -> tuple[tuple[str, Value], ...]:
        return tuple((p.name, self.eval(p.default, scope) if p.default is not None else REQUIRED) for p in params)


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
