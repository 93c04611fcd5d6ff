"""Whose turn it is in a session: its programs run one after the other, whatever threads they come from.

A program has the interpreter, the kernel's open allotments and the engine's connection for itself, until its end. What
may be handed over to `bound("name")` is asked when it is, by public facts: that a file is there, of what type an object
is.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache, wraps
from inspect import signature, unwrap
from numbers import Integral, Real
from pathlib import Path
from types import FunctionType, SimpleNamespace, UnionType
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    ParamSpec,
    Protocol,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from jostle.diagnostics import Diagnostic, Refusal, did_you_mean, refuse
from jostle.engine.files import identities
from jostle.events import Event
from jostle.syntax import nodes as n
from jostle.tools.arguments import misspelt

if TYPE_CHECKING:
    from jostle.privacy.ledger.ledger import Ledger
    from jostle.run.interpreter import Interpreter
    from jostle.run.scope import Scope

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

PATIENCE = 1.0
"""Seconds after which it is said that somebody waits."""


def loaded() -> None:
    """Ends the time in which a command loads what it needs, and Python searches for no cycles (`entry`)."""
    if gc.get_threshold()[0] >= 1_000_000:
        gc.freeze()
        gc.set_threshold(700, 10, 10)


class Turns:
    """The lock of one session. A thread that has the turn may take it again, but for no program within a program."""

    def __init__(self, waits: Callable[[], None], rests: Callable[[], None] = lambda: None) -> None:
        """`waits` is called, in a thread of its own, where a turn does not come within `PATIENCE`; `rests` at the end
        of a turn that is within no other."""
        self.closed = False
        self._waits, self._rests = waits, rests
        self._lock, self._process = threading.RLock(), os.getpid()
        self._holder: int | None = None
        self._in_program = False

    @contextmanager
    def turn(self, *, program: bool = False) -> Iterator[None]:
        """Waits for the turn, has it, and gives it back whatever happens."""
        self._check_process()
        notice = None
        if self._holder not in (None, threading.get_ident()):
            notice = threading.Timer(PATIENCE, self._waits)
            notice.daemon = True
            notice.start()
        try:
            with self._lock:
                if notice is not None:
                    notice.cancel()
                if self.closed:
                    raise refuse("ValueError", "this session is closed", help="begin another one: `jostle.Session()`")
                if program and self._in_program:
                    help = "what listens to a program runs others in a session of its own"
                    raise refuse("ValueError", "a program of this session is running: no other begins in it", help=help)
                before = self._holder, self._in_program
                self._holder, self._in_program = threading.get_ident(), self._in_program or program
                try:
                    yield
                finally:
                    self._holder, self._in_program = before
                    if before[0] is None:
                        self._rests()
        finally:
            if notice is not None:
                notice.cancel()

    def _check_process(self) -> None:
        """A fork has the lock as it was: one of a thread that did not come along is never given back."""
        if os.getpid() == self._process:
            return
        if not self._lock.acquire(blocking=False):
            message = "this session was forked while another thread ran a program in it"
            raise refuse("ValueError", message, help="a session of its own: `jostle.Session()`")
        self._lock.release()


class TakesTurns(Protocol):
    turns: Turns


S = TypeVar("S", bound=TakesTurns)


def exclusive(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """A method of a session that has the turn while it works."""

    @wraps(method)
    def run(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self.turns.turn():
            return method(self, *args, **kwargs)

    return run


def of_its_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """A function that refuses arguments and types of them that it does not take, as a program is refused."""

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        if (fault := _wrong_arguments(function, args, kwargs)) is not None:
            raise fault
        return function(*args, **kwargs)

    return run


def arguments_fit(home: type[T]) -> type[T]:
    """A class whose public methods are `of_its_arguments`."""
    for name, method in list(vars(home).items()):
        if isinstance(method, FunctionType) and (name == "__init__" or not name.startswith("_")):
            setattr(home, name, of_its_arguments(method))
    return home


def _wrong_arguments(
    function: Callable[..., object], args: Sequence[object], kwargs: Mapping[str, object]
) -> Refusal | None:
    call = signature(function)
    names = [name for name in call.parameters if name != "self"]
    what = function.__qualname__.removesuffix(".__init__")
    try:
        values = call.bind(*args, **kwargs).arguments
    except TypeError as error:
        help = f"it takes {', '.join(f'`{name}`' for name in names)}"
        word = next((one for one in kwargs if one not in names), None)
        if what == "Session.bind":
            help = f'write `session.bind("{word or "people"}", frame)`; what describes the data is in the program'
        if any(one.kind is one.VAR_KEYWORD for one in call.parameters.values()):
            own = next((one for one in args if isinstance(one, dict)), {"share": 0.5}).items()
            pairs = ", ".join(f"{name}={value!r}" for name, value in own)
            help = f"settings are given by their names: `session.{function.__name__}({args[1]!r}, {pairs})`"
        if word is None:
            return refuse("TypeError", f"`{what}`: {error}".replace("'", "`"), help=help)
        return refuse("TypeError", f"`{what}` has no argument `{word}`", help=did_you_mean(word, names, 0.7) or help)
    for name, (kind, words) in _kinds(function).items():
        if name in values and not _fits(value := values[name], kind):
            mine = repr(value)[:40] if isinstance(value, str | int | float) else type(value).__name__
            help = f"`help(jostle.{what})` says what each argument is"
            if what == "Session.bind":
                help = 'such as `session.bind("people", frame)`: programs read it by `bound("people")`'
            return refuse("TypeError", f"`{what}` takes `{words}` as `{name}`, not `{mine}`", help=help)
    return None


@cache
def _kinds(function: Callable[..., object]) -> dict[str, tuple[Any, str]]:
    """The types of a function's arguments, and how they are written; not of settings, nor of types known to a type
    checker alone."""
    kinds = {}
    for name, words in function.__annotations__.items():
        with suppress(NameError):
            if name in signature(function).parameters and name != "params":
                alone = SimpleNamespace(__annotations__={name: words})
                kind = get_type_hints(alone, unwrap(function).__globals__)[name]
                kinds[name] = kind, words.replace("Values", "Mapping[str, object]")
    return kinds


def _fits(value: object, kind: Any) -> bool:
    """Whether a value is of a type as an annotation has it: a text is no collection, a truth no number, whole numbers
    are from 0 to 2^40, and paths are those that the system takes for one."""
    inner, kind = get_args(kind), get_origin(kind) or kind
    if kind is object or isinstance(kind, TypeVar):
        return True
    if getattr(kind, "_is_protocol", False):
        return all(hasattr(value, name) for name in kind.__annotations__)
    if kind in (Union, UnionType):
        return any(_fits(value, one) for one in inner) and (Path not in inner or _may_be_path(value))
    if kind in (int, float):
        number = isinstance(value, Integral if kind is int else Real) and not isinstance(value, bool)
        return number and (kind is float or 0 <= value < 2**40)  # type: ignore[operator]
    if not isinstance(value, kind) or (isinstance(value, str | bytes) and kind in (Sequence, Collection)):
        return False
    return kind not in (Sequence, Collection, Mapping) or all(_fits(one, inner[0]) for one in value)


def _may_be_path(value: object) -> bool:
    try:
        return not isinstance(value, str | Path) or b"\0" not in os.fsencode(value)
    except UnicodeEncodeError:
        return False


def hearing(events: list[Event]) -> Callable[[Event], None]:
    """A listener that keeps events, and prints a line where a program waits for another one of its session."""

    def hear(event: Event) -> None:
        if event.kind == "wait":
            sys.stderr.write("jostle: this waits until another program of the session has ended\n")
        else:
            events.append(event)

    return hear


def need_data(name: str, value: Any, folders: Sequence[Path]) -> None:
    """Refuses with `DataError` what is neither a path at which a file lies, a table, nor an array of counts."""
    from jostle.readers.frames import need_table
    from jostle.run.origins import is_array, is_paths

    try:
        if is_paths(value):
            for text in [value] if isinstance(value, str) else value:
                _need_files(text, folders)
        elif not is_array(value):
            need_table(value)
    except Refusal as refusal:
        first = refusal.first
        raise refuse(first.kind, f"`{name}` cannot be bound: {first.message}", help=first.help) from None


def beside(program: str, path: str) -> Path:
    """A path as a run of the program finds it: in the program's own folder, else in the working directory."""
    from jostle.readers.filesets import paths

    own = Path(program).parent
    try:
        return own / path if paths(path, [own]) != [path] else Path(path)
    except Refusal:  # a pattern that matches nothing there
        return Path(path)


def identity(
    bound: Mapping[str, object], folders: Sequence[Path], ledger: Callable[[], Ledger | None], kind: str,
    args: list[object],
) -> Hashable:  # fmt: skip
    """Names of one file or one bound object have parts in common, and linked datasets are one, by their persons; None
    is not known. Looks up names only."""
    from jostle.check.costs import literal_identity
    from jostle.language.builtins import REMOTE

    target: Any = args[0] if args else None
    if kind == "dataset":
        return _of_dataset(ledger(), args)
    if kind in REMOTE or (kind == "bound" and target not in list(bound)):
        return literal_identity(kind, args)
    if kind == "bound":
        target = bound[target]
    texts = [target] if isinstance(target, str) else target
    if not (isinstance(texts, list | tuple) and texts and all(isinstance(text, str) for text in texts)):
        return literal_identity(kind, args) if kind != "bound" else ("object", id(target))
    part = tuple([one for one in args[1:] if isinstance(one, Hashable)])  # others are refused later
    return _of_files(texts, folders, part) or literal_identity(kind, args)


def _of_files(texts: Sequence[str], folders: Sequence[Path], part: tuple[object, ...]) -> Hashable:
    """Of each file its names with the part of it that is meant; None where one is not there."""
    from jostle.readers.filesets import paths

    try:
        places = [place for text in texts for place in paths(text, folders)]
    except Refusal:
        return None
    names = [name for place in places for name in identities(place) or [("path", str(Path(place).resolve()))]]
    return frozenset((*name, *part) for name in names)


def _of_dataset(ledger: Ledger | None, args: list[object]) -> Hashable:
    """The dataset whose budget pays for one; itself where it is not registered, as is reported where it is opened."""
    from jostle.check.costs import literal_identity

    name = args[0] if args else None
    if ledger is None or not isinstance(name, str):
        return literal_identity("dataset", args)
    with suppress(Refusal):
        while persons := ledger.dataset(name).terms.persons:
            name = persons
    return ("dataset", name)


def _need_files(text: str, folders: Sequence[Path]) -> None:
    from jostle.readers.filesets import paths

    if paths(text, folders) != [text]:
        return
    help = misspelt(text, folders) or "give its whole path"
    raise refuse("DataError", f"there is no file `{text}`", help=help)


KIND = "first-budget"
"""The kind of this hint, which stops nothing."""


def first_budget(interp: Interpreter, statement: n.Private, scope: Scope) -> list[Diagnostic]:
    """The hint for a declaration, just carried out, that asks for another budget than its data have."""
    from jostle.run.clauses import measure_of

    source = interp.kernel.register.names[statement.name]
    if statement.budget is None or source.span is statement.span:
        return []
    limit, new_limit = source.measure.limit, measure_of(interp, statement.budget, scope).limit
    if new_limit == limit:
        return []
    return [Diagnostic(
        KIND, f"these data were declared before, with a budget of {limit}: it stands, and {new_limit} is not added",
        statement.budget.span, help="a file has one budget in a session; a new session begins with a new one",
    )]  # fmt: skip


def built_ins() -> Scope:
    """A fresh scope of the names that every program knows, with the modules loaded that implement them."""
    import jostle.choice.advisors
    import jostle.choice.evaluation
    import jostle.choice.improvement
    import jostle.run.library  # noqa: F401 (they implement built-ins)
    from jostle.run.evaluator import base_scope

    return base_scope()
