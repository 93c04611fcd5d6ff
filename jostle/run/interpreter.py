"""The interpreter: walks the tree, holds names, and asks the privacy kernel for everything that touches data.

It decides nothing about privacy. It gives every refusal the innermost place in the program, keeps the depth of
calls bounded, and turns a refusal inside the standard library into one at the line of the program that called it.

Modules: the standard library's files, and `.jst` files beside the program.

A module runs once a session, in a scope of its own on top of the builtins. One of the standard library may name
external kernels, and has the built-ins that the language keeps for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jostle import resources
from jostle.diagnostics import Refusal, did_you_mean, refuse
from jostle.language.builtins import brought
from jostle.language.row_mistakes import no_condition, no_walk
from jostle.privacy.kernel.exposures import Exposures, Handle
from jostle.privacy.kernel.handles import Table
from jostle.privacy.kernel.kernel import Kernel
from jostle.privacy.ledger.ledger import Ledger
from jostle.privacy.reading.public_data import PublicData
from jostle.run import arguments, calls
from jostle.run.evaluator import Evaluator, JointSelects, Returned
from jostle.run.expressions import EXPRESSIONS
from jostle.run.faults import no_rows, refuse_private
from jostle.run.looks import Looks
from jostle.run.operators import elements
from jostle.run.publictables import records
from jostle.run.scope import Scope
from jostle.run.sequences import Period
from jostle.run.statements import STATEMENTS
from jostle.run.values import (
    REQUIRED,
    Function,
    Grouped,
    Interval,
    JSet,
    Module,
    is_sequence,
    kind_name,
    need_room,
)
from jostle.source import Source, Span
from jostle.syntax import nodes as n
from jostle.syntax import parse

MADE_UP_ROWS = 1000  # of each source in a simulation
_EXPRESSIONS: Mapping[type, Callable[..., object]] = {**EXPRESSIONS, **calls.CALLS}


class Interpreter:
    """Runs programs in one session."""

    names: type[dict[str, object]] = dict  # the names of a function's scope

    def __init__(
        self,
        kernel: Kernel,
        data: PublicData,
        base: Scope,
        *,
        load_module: Callable[[tuple[str, ...], Span], Module],
        choose: Callable[[Interpreter, n.Choice, Scope], object],
        out: Callable[[str], None],
        settings: dict[str, object] | None = None,
    ) -> None:
        self.kernel, self.data = kernel, data
        self.base = base
        self.load_module = load_module
        self.choose = choose
        self.out = out
        self.settings = settings or {}
        self.ledger: Ledger | None = None  # of registered datasets
        self.released: dict[str, object] = {}
        self.bound: dict[str, object] = {}
        self.folders: list[Path] = []
        self.depth = 0
        self.simulate: int | None = None
        self.made_up_rows = MADE_UP_ROWS
        self.walks = False  # before a run, and reads nothing that is private
        self.planned: list[object] | None = None  # calls of ChoiceMakers, where a plan is made of them
        self.progress: Callable[[str, int, int], None] | None = None  # told of the outermost loop
        self.looping = False
        self.quiet = 0  # print and release are silent in training
        self.trying = False  # results before they are paid for: all operands and branches are looked at
        self.bare_left = 0  # bare selects still to come in the query at hand
        self.joint: JointSelects | None = None  # the `jointly` block that is being walked
        self.looks = Looks()  # at how the cells of columns fit that are measured
        self.aggregates: dict[int, object] = {}  # aggregates of a select that are already measured, by node
        self.left: list[tuple[Function, Scope]] = []  # functions of the program that a failure ended, innermost first

    # Running -------------------------------------------------------------------------------------

    def at_least(self, amount: float) -> float:
        return amount

    def block(self, body: Sequence[n.Stmt], scope: Scope) -> Returned | None:
        for statement in body:
            ended = self.statement(statement, scope)
            if ended is not None:
                return ended
        return None

    def statement(self, node: n.Stmt, scope: Scope) -> Returned | None:
        try:
            return STATEMENTS[type(node)](self, node, scope)
        except Refusal as refusal:
            raise refusal.at(node.span) from None

    def eval(self, node: n.Expr, scope: Scope) -> object:
        try:
            return _EXPRESSIONS[type(node)](self, node, scope)
        except Refusal as refusal:
            raise refusal.at(node.span) from None

    def argument(self, node: n.Expr, scope: Scope) -> object:
        """An argument of a call."""
        return self.eval(node, scope)

    def reads_rows(self, handle: object, node: n.Expr, scope: Scope) -> None:
        """A select, a form or an index reads rows, of which the walk before a run warns."""

    operand = eval  # of a row: a public value beside a column

    def call(
        self,
        function: object,
        args: Sequence[object],
        keywords: dict[str, object] | None = None,
        span: Span | None = None,
    ) -> Any:
        """Calls any callable value."""
        return calls.call(self, function, args, keywords, span)

    # Helpers -------------------------------------------------------------------------------------

    def truth(self, value: object, node: n.Expr) -> bool:
        if isinstance(value, bool):
            return value
        refuse_private(value, "cannot be a condition", node.span)
        raise Refusal(no_condition(kind_name(value), node.span.text)).at(node.span)

    def walk(self, value: Any, span: Span | None) -> Iterable[Any]:
        """The items of a public container."""
        if isinstance(value, Handle) and value.private:
            raise no_rows(value).at(span)
        if isinstance(value, Table):
            return records(self, value, span)
        if isinstance(value, dict):
            return list(value)
        if isinstance(value, (JSet, Interval, Grouped)):
            return value
        if isinstance(value, Period):
            need_room(value.count)
            return list(value)
        if is_sequence(value):
            return elements(value) if not isinstance(value, (list, tuple)) and value.ndim == 1 else list(value)
        raise Refusal(no_walk(kind_name(value), span.text if span is not None else "it")).at(span)

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

    def params_of(self, params: tuple[n.Param, ...], scope: Scope) -> tuple[tuple[str, object], ...]:
        return tuple((p.name, self.eval(p.default, scope) if p.default is not None else REQUIRED) for p in params)

    def allotted(self, amount: Any, span: Span, exposures: Exposures) -> Any:
        try:
            return arguments.Allotted(self.kernel, amount, span, exposures)
        except Refusal as refusal:
            raise refusal.at(span) from None


@cache
def _shipped() -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in resources.folder("stdlib").glob("*.jst")))


class Modules:
    """The modules of one session, each parsed once and run once."""

    def __init__(self) -> None:
        self._trees: dict[str, n.Program | None] = {}
        self._loaded: dict[str, Module] = {}
        self._loading: set[str] = set()

    def afresh(self) -> Modules:
        """The same modules, parsed already and to be run anew."""
        other = Modules()
        other._trees = self._trees
        return other

    def library(self) -> list[str]:
        """The names of the modules that ship, in order."""
        return list(_shipped())

    def tree(self, path: tuple[str, ...], folders: Sequence[Path]) -> n.Program | None:
        """The parsed module, or None where there is none."""
        name = ".".join(path)
        if name not in self._trees:
            self._trees[name] = self._parse(path, folders)
        return self._trees[name]

    def _parse(self, path: tuple[str, ...], folders: Sequence[Path]) -> n.Program | None:
        relative = Path(*path).with_suffix(".jst")
        shipped = resources.folder("stdlib") / relative
        if shipped.is_file():
            return parse(Source(f"stdlib/{relative.as_posix()}", shipped.read_text(encoding="utf-8")))
        for folder in folders:
            file = Path(folder) / relative
            if file.is_file():
                tree = parse(Source(str(file), _text_of(file)))
                self._no_externals(tree)
                return tree
        return None

    def _no_externals(self, tree: n.Program) -> None:
        for statement in tree.body:
            if isinstance(statement, n.External):
                raise refuse("TypeError", "`external` is for the standard library", statement.span)

    def load(self, interp: Evaluator, path: tuple[str, ...], span: Span) -> Module:
        name = ".".join(path)
        if name in self._loaded:
            return self._loaded[name]
        tree = self.tree(path, interp.folders)
        if tree is None:
            raise refuse(
                "ImportError", f"there is no module `{name}`", span,
                help=did_you_mean(name, self.library()) or f"the standard library has {', '.join(self.library())}",
            )  # fmt: skip
        if name in self._loading:
            raise refuse("ImportError", f"`{name}` uses itself", span)
        self._loading.add(name)
        scope = Scope(interp.base)
        try:
            interp.block(tree.body, scope)
        finally:
            self._loading.discard(name)
        homes = scope.modules or {}
        public = {
            k: v for k, v in scope.names.items()
            if not k.startswith("_") and not isinstance(v, Module) and len(homes.get(k, ())) < 2
        }  # fmt: skip
        of_language = {k: interp.base.names[k] for k in brought(path)}
        module = Module(name, of_language | public, name in self.library())
        if module.of_library or not interp.kernel.in_a_run:  # else what it prints at its next use would tell of the run
            self._loaded[name] = module
        return module


def _text_of(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise refuse("ImportError", f"the module `{path}` is not UTF-8 text", help="save it as UTF-8") from None
    except OSError as fault:
        reason = (fault.strerror or "the system refused").lower()
        raise refuse("ImportError", f"the module `{path}` cannot be read: {reason}") from None
