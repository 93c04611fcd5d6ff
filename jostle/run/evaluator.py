"""The interface of the interpreter to the modules of a run: expressions, calls, and the state of the session.

It is implemented by `Interpreter` and by the walk before a run (`check.dry`). Python functions become built-ins of the
language here, each by its row of `language.builtins`. A function without a row raises `ImportError` when its module is
loaded, and a row without a function does when a session starts (`base_scope`).
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
"""A value of the language: a number, a text, a list, a handle, a function, …, whose kind is tested at run time."""


class Returned:
    """The result of a block that a `return` ended."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value


class PlacedAt:
    """A context in which refusals without a place get this one."""

    def __init__(self, span: Span | None) -> None:
        self._span = span

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, fault: BaseException | None, trace: object) -> None:
        if isinstance(fault, Refusal):
            raise fault.at(self._span) from None


class JointSelects(Protocol):
    """A `jointly` block that is being evaluated."""

    def answer(
        self, request: object, node: n.Select, wish: float | None, given: tuple[float, ...] | None = None
    ) -> Value:  # fmt: skip
        """The answers of a select, or a pending value in the first evaluation of the block."""


MADE_UP_ROWS = 1000  # rows of each source in a simulation


class Evaluator(ABC):
    """Evaluates programs in a session, and holds its state."""

    names: type[dict[str, Value]] = dict  # the type of a function's names

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
        self.display: Callable[[object], str] = str  # a value as shown at a prompt
        self.settings = settings or {}
        self.ledger: Ledger | None = None  # the ledger of registered datasets
        self.released: dict[str, Value] = {}
        self.bound: dict[str, Value] = {}
        self.folders: list[Path] = []
        self.depth = 0
        self.simulate: int | None = None
        self.made_up_rows = MADE_UP_ROWS
        self.walks = False  # True in the walk before a run, which reads nothing private
        self.planned: list[object] | None = None  # calls of ChoiceMakers, if they are planned
        self.progress: Callable[[str, int, int], None] | None = None  # called by the outermost loop
        self.trying = False  # True while results are tried before payment: all operands and branches are evaluated
        self.looping = False
        self.quiet = 0  # above 0, print and release are silent (in training)
        self.bare_left = 0  # selects without an amount that are still to come in this query
        self.joint: JointSelects | None = None  # the open `jointly` block
        self.looks = Looks()  # the looks at how cells of measured columns fit
        self.aggregates: dict[int, Value] = {}  # measured aggregates of a select, by node
        self.top: Scope | None = None  # the program's scope, whose names outlive a stop
        self.holds = False  # whether a stop waits for a paid answer
        self.stop: Callable[[], object] | None = None
        self.left: list[tuple[Function, Scope]] = []  # functions of the program that a failure ended, innermost first

    @abstractmethod
    def block(self, body: Sequence[n.Stmt], scope: Scope) -> Returned | None: ...

    @abstractmethod
    def eval(self, node: n.Expr, scope: Scope) -> Value: ...

    def public_answers(self, node: n.Expr, scope: Scope, many: int) -> object:
        """The given answers of a select in a `jointly` block, for `many` groups."""
        return self.eval(node, scope)

    @abstractmethod
    def argument(self, node: n.Expr, scope: Scope) -> Value:
        """An argument of a call."""

    @abstractmethod
    def operand(self, node: n.Expr, scope: Scope) -> Value:
        """A public operand of a row expression."""

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
        """Called when a select, a form or an index reads rows; the walk before a run warns."""

    @abstractmethod
    def expect(
        self, node: n.Select, request: object, keys: Sequence[str], answer: Answer,
        columns: Callable[[Answer], Mapping[str, Sequence[object]]],
    ) -> None:  # fmt: skip
        """Called before a request, with an example of its answer for one group; `columns` computes its results."""

    def deliver_stop(self) -> None:
        """Delivers a stop that waited until a paid answer had its name."""
        self.kernel.owes, stop, self.stop = False, self.stop, None
        if stop is not None:
            stop()

    def at_least(self, amount: float) -> float:
        """The rest of an allotment; in the walk before a run a bound on it."""
        return amount

    def truth(self, value: object, node: n.Expr) -> bool:
        if isinstance(value, bool):
            return value
        refuse_private(value, "cannot be a condition", node.span)
        raise Refusal(no_condition(kind_name(value), node.span.text)).at(node.span)

    def counted(self, items: Iterable[Any], span: Span) -> Iterable[Any]:
        """The items; reports progress for the outermost loop."""
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
    """Decorator of `_name`, which implements the built-in `name`. Its `at` receives the interpreter and the span."""
    implement(body.__name__.removeprefix("_"), body)
    return body


def implement(name: str, body: Callable[..., object]) -> None:
    """Registers `body` as the built-in `name`."""
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
    """A new scope of all built-ins, below the scope of a program. Loads their modules."""
    return Scope(None, dict(_all_names(len(_IMPLEMENTED), len(BUILTINS))))


@cache
def _all_names(*_: int) -> dict[str, object]:
    """The built-ins by name, cached for the numbers of functions and rows."""
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
"""The caller of a built-in and the place in the program, received by its parameter `at`."""
