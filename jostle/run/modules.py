"""Modules: the standard library's files, and `.jst` files beside the program.

A module runs once a session, in a scope of its own on top of the builtins. One of the standard library may name
external kernels, and has the built-ins that the language keeps for it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle import resources
from jostle.diagnostics import did_you_mean, refuse
from jostle.language.builtins import brought
from jostle.run.evaluator import Evaluator
from jostle.source import Source, Span
from jostle.syntax import nodes as n
from jostle.syntax import parse

if TYPE_CHECKING:
    from jostle.run.values import Module


@cache
def _shipped() -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in resources.folder("stdlib").glob("*.jst")))


class Modules:
    """The modules of one session, each parsed once and run once; `translate` is for those beside a program."""

    def __init__(self, translate: Callable[[n.Program], n.Program] = lambda tree: tree) -> None:
        self._translate = translate
        self._trees: dict[str, n.Program | None] = {}
        self._loaded: dict[str, Module] = {}
        self._loading: set[str] = set()

    def afresh(self) -> Modules:
        """The same modules, parsed already and to be run anew."""
        other = Modules(self._translate)
        other._trees = self._trees
        return other

    def library(self) -> list[str]:
        """The names of the modules that ship, in order."""
        return list(_shipped())

    def tree(self, path: tuple[str, ...], folders: list[Any]) -> n.Program | None:
        """The parsed module, or None where there is none."""
        name = ".".join(path)
        if name not in self._trees:
            tree = self._trees[name] = self._parse(path, folders)
            if tree is not None and name not in self.library():
                self._trees[name] = self._translate(tree)
        return self._trees[name]

    def _parse(self, path: tuple[str, ...], folders: list[Any]) -> n.Program | None:
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
        from jostle.run.scope import Scope
        from jostle.run.values import Module

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
        self._loaded[name] = Module(name, of_language | public, name in self.library())
        return self._loaded[name]


def _text_of(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise refuse("ImportError", f"the module `{path}` is not UTF-8 text", help="save it as UTF-8") from None
    except OSError as fault:
        reason = (fault.strerror or "the system refused").lower()
        raise refuse("ImportError", f"the module `{path}` cannot be read: {reason}") from None
