"""The interpreter: evaluates the tree, holds names, and calls the privacy kernel for everything that touches data.

It decides nothing about privacy. It gives every refusal the innermost place in the program, and bounds the depth of
calls. A refusal inside the standard library is reported at the line of the program that called it. A module, of the
standard library or a `.jst` file beside the program, runs once per session, in its own scope on top of the built-ins.
Modules of the library may declare external kernels, and use built-ins that are reserved for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle import resources
from jostle.diagnostics import Refusal, did_you_mean, refuse
from jostle.language.builtins import brought
from jostle.language.row_mistakes import no_walk
from jostle.privacy.kernel.exposures import Exposures, Handle
from jostle.privacy.kernel.handles import Table
from jostle.run import arguments, calls, values
from jostle.run.evaluator import Evaluator, Returned
from jostle.run.expressions import EXPRESSIONS
from jostle.run.faults import no_rows
from jostle.run.operators import elements
from jostle.run.publictables import records
from jostle.run.scope import Scope
from jostle.run.sequences import Period
from jostle.run.statements import STATEMENTS
from jostle.source import Source, Span
from jostle.syntax import nodes as n
from jostle.syntax import parse, parse_module

if TYPE_CHECKING:
    from jostle.privacy.measurements.selects import Answer

_EXPRESSIONS: Mapping[type, Callable[..., object]] = {**EXPRESSIONS, **calls.CALLS}


class Interpreter(Evaluator):
    def block(self, body: Sequence[n.Stmt], scope: Scope) -> Returned | None:
        for statement in body:
            ended = self.statement(statement, scope)
            if ended is not None:
                return ended
            if self.kernel.owes and scope is self.top:
                self.deliver_stop()
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
        return self.eval(node, scope)

    def reads_rows(self, handle: object, node: n.Expr, scope: Scope) -> None: ...

    def expect(
        self, node: n.Select, request: object, keys: Sequence[str], answer: Answer,
        columns: Callable[[Answer], Mapping[str, Sequence[object]]],
    ) -> None: ...  # fmt: skip

    operand = eval  # a public value beside a column

    def call(
        self,
        function: object,
        args: Sequence[object],
        keywords: dict[str, object] | None = None,
        span: Span | None = None,
    ) -> Any:
        return calls.call(self, function, args, keywords, span)

    def walk(self, value: Any, span: Span | None) -> Iterable[Any]:
        if isinstance(value, Handle) and value.private:
            raise no_rows(value).at(span)
        if isinstance(value, Table):
            return records(self, value, span)
        if isinstance(value, dict):
            return list(value)
        if isinstance(value, (values.JSet, values.Interval, values.Grouped)):
            return value
        if isinstance(value, Period):
            values.need_room(value.count)
            return list(value)
        if values.is_sequence(value):
            return list(value) if isinstance(value, (list, tuple)) else elements(value)
        raise Refusal(no_walk(values.kind_name(value), span.text if span is not None else "it")).at(span)

    def allotted(self, amount: Any, span: Span, exposures: Exposures) -> Any:
        try:
            return arguments.Allotted(self.kernel, amount, span, exposures)
        except Refusal as refusal:
            raise refusal.at(span) from None


class Modules:
    """The modules of one session, each parsed and run once."""

    def __init__(self) -> None:
        self._trees: dict[str, n.Program | None] = {}
        self._loaded: dict[str, values.Module] = {}
        self._loading: set[str] = set()

    def afresh(self) -> Modules:
        """The same parsed modules, to be run again."""
        other = Modules()
        other._trees = self._trees
        return other

    def library(self) -> list[str]:
        """The names of the modules that ship, in order."""
        return list(resources.library())

    def tree(self, path: tuple[str, ...], folders: Sequence[Path]) -> n.Program | None:
        """The parsed module, or None if there is none."""
        name = ".".join(path)
        if name not in self._trees:
            self._trees[name] = self._parse(path, folders)
        return self._trees[name]

    def _parse(self, path: tuple[str, ...], folders: Sequence[Path]) -> n.Program | None:
        relative = Path(*path).with_suffix(".jst")
        shipped = resources.folder("stdlib") / relative
        if shipped.is_file():
            return parse_module(Source(f"stdlib/{relative.as_posix()}", shipped.read_text(encoding="utf-8")))
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

    def load(self, interp: Evaluator, path: tuple[str, ...], span: Span) -> values.Module:
        name = ".".join(path)
        if name in self._loaded:
            return self._loaded[name]
        unseen = interp.kernel.in_a_run and name not in self._trees  # the text that was read would depend on the run
        tree = self._parse(path, interp.folders) if unseen else self.tree(path, interp.folders)
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
            if not k.startswith("_") and not isinstance(v, values.Module) and len(homes.get(k, ())) < 2
        }  # fmt: skip
        of_language = {k: interp.base.names[k] for k in brought(path)}
        module = values.Module(name, of_language | public, name in self.library())
        if not interp.kernel.in_a_run:  # otherwise its output, or its state at the next use, would depend on the run
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
