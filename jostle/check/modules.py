"""What `use` brings: the top-level names of a module, found once a path."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from jostle.check.abstract.kinds import COLUMNS, TAKEN
from jostle.check.abstract.values import Signature
from jostle.check.report import Report
from jostle.check.scopes import bound_in
from jostle.diagnostics import Refusal, did_you_mean
from jostle.language.builtins import BUILTINS, EVERYWHERE, brought
from jostle.language.facts import Effect, Parameter
from jostle.syntax import nodes as n
from jostle.syntax.walk import children

LoadModule = Callable[[tuple[str, ...]], n.Program | None]

_LANGUAGE = object()  # the home of what is built in


class Modules:
    """Names by module path; `failed` is true once a module could not be read, so that its names are unknown."""

    def __init__(self, load: LoadModule, paths: Collection[str], report: Report) -> None:
        self._load, self._paths, self._report = load, paths, report
        self._names: dict[tuple[str, ...], frozenset[str]] = {}
        self.failed = False

    def names(self, use: n.Use) -> Collection[str]:
        """The names that a `use` binds: those of the module, and the module itself."""
        path = use.path
        if path not in self._names:
            self._names[path] = frozenset()  # for modules that use each other
            self._names[path] = frozenset(self._top_level(use)) | {path[0], path[-1]}
        return self._names[path]

    def clashes(self, uses: Iterable[n.Use]) -> dict[str, tuple[str, ...]]:
        """The names that two modules define, or a module and the language (an empty text), with these modules."""
        homes: dict[str, dict[object, str]] = {}
        for use in uses:
            for name, home in self._homes(use).items():
                own = name in EVERYWHERE and ".".join(use.path) not in self._paths
                homes.setdefault(name, {"": ""} if own else {}).setdefault(home, use.path[-1])
        return {name: tuple(found.values()) for name, found in homes.items() if len(found) > 1}

    def built_in(self, use: n.Use) -> Collection[str]:
        """The built-ins that a `use` brings: those of the module, and of modules that it uses itself."""
        return [name for name, home in self._homes(use).items() if home == _LANGUAGE]

    def signatures(self, use: n.Use, around: tuple[tuple[str, ...], ...] = ()) -> dict[str, Signature]:
        """The functions of a module, and of those that it uses, with their parameters."""
        program = self._load(use.path) if not self.failed and use.path not in around else None
        found: dict[str, Signature] = {}
        for stmt in program.body if program is not None else ():
            if isinstance(stmt, n.Use):
                found = self.signatures(stmt, (*around, use.path)) | found
        for stmt in program.body if program is not None else ():
            if isinstance(stmt, n.Def | n.External):
                takes = passed_on(stmt, found) if isinstance(stmt, n.Def) else OF_KERNELS
                params = tuple(
                    Parameter(p.name, None if p.default is None else "", takes=takes.get(p.name, ""))
                    for p in stmt.params
                )
                found[stmt.name] = Signature(stmt.name, params)
            elif isinstance(stmt, n.Assign):
                found.pop(stmt.name, None)
        return found

    def _homes(self, use: n.Use, around: tuple[n.Use, ...] = ()) -> dict[str, object]:
        """Where each name of a module is defined: in itself, in one that it uses, as a kernel, or in the language."""
        program = self._load(use.path) if not self.failed and use not in around else None
        if program is None:
            return {}
        homes: dict[str, object] = dict.fromkeys(brought(use.path), _LANGUAGE)
        for stmt in program.body:
            if isinstance(stmt, n.Use):
                homes = self._homes(stmt, (*around, use)) | homes
        for stmt in program.body:
            if isinstance(stmt, n.External):
                homes[stmt.name] = f"kernel {stmt.name}"
            elif not isinstance(stmt, n.Use):
                homes |= dict.fromkeys(bound_in([stmt], self.names), ".".join(use.path))
        return {name: home for name, home in homes.items() if not name.startswith("_")}

    def _top_level(self, use: n.Use) -> set[str]:
        path_text = ".".join(use.path)
        try:
            program = self._load(use.path)
        except Refusal as refusal:
            self.failed = True
            self._report.extend(refusal.diagnostics)
            return set()
        if program is None:
            self.failed = True
            help = did_you_mean(path_text, self._paths) or _list(self._paths)
            self._report.add("ImportError", f"there is no module `{path_text}`", use.span, label="unknown", help=help)
            return set()
        return {*bound_in(program.body, self.names), *brought(use.path)}


def _list(paths: Collection[str]) -> str:
    return "there are " + ", ".join(f"`{name}`" for name in sorted(paths)) if paths else ""


# What the functions of a module take, by what they pass on ---------------------------------------

OF_KERNELS = {"shape": "shape", "workload": "queries", "matrix": "items", "seed": "number", "ridge": "number"}
"""What a kernel of the library takes, by the names that the parameters of all kernels have."""


OF_COLUMNS = {
    "_number_column": "number column", "_number_columns": "number column", "_values": "column of values",
    "_column": "column", "_columns": "column",
}  # fmt: skip
"""What helpers of the library take in their second place: names of columns of the table in the first."""


_PERHAPS = (n.Conditional, n.Logic, n.Lambda, n.Comprehension, n.Over, n.Part, n.Query, n.Select)
"""What may leave a call in it out, or make it of rows."""


def passed_on(function: n.Def, known: Mapping[str, Signature]) -> dict[str, str]:
    """What each parameter of a function takes; `known`: the functions that stand before it."""
    mine = {param.name for param in function.params} - set(bound_in(function.body.body, lambda use: ()))
    takes: dict[str, list[str]] = {}
    for call in _calls(function.body.body):
        if not isinstance(call.function, n.Name) or call.function.id in mine:
            continue
        for arg, param in _given(call, _parameters(call.function.id, known)):
            named = arg.items if isinstance(arg, n.ListOf) and param.takes in COLUMNS else [arg]
            for part in named if param.takes else ():
                if isinstance(part, n.Name) and part.id in mine:
                    takes.setdefault(part.id, []).append(_taken(call, param))
    if function.name in OF_COLUMNS:
        takes[function.params[1].name] = [OF_COLUMNS[function.name]]
    order = [*TAKEN]
    return {name: min(words, key=lambda word: (len(TAKEN[word]), order.index(word))) for name, words in takes.items()}


def _parameters(name: str, known: Mapping[str, Signature]) -> Sequence[Parameter]:
    if name in known:
        return known[name].params
    return BUILTINS[name].parameters if name in BUILTINS else ()


def _taken(call: n.Call, param: Parameter) -> str:
    """With a strategy, noise is on the cells of a cube."""
    row = BUILTINS.get(call.function.id) if isinstance(call.function, n.Name) else None
    by_strategy = row is not None and row.effect is Effect.MEASURES and len(call.args) > 1
    return "cube" if by_strategy and param.takes == "measured" else param.takes


def _given(call: n.Call, params: Sequence[Parameter]) -> Iterator[tuple[n.Expr, Parameter]]:
    yield from zip(call.args, (param for param in params if param.kind == ""), strict=False)
    named = {param.name: param for param in params}
    yield from ((keyword.value, named[keyword.name]) for keyword in call.keywords if keyword.name in named)


def _calls(body: Sequence[n.Stmt]) -> Iterator[n.Call]:
    """The calls that are made on every way through a body."""
    for statement in body:
        if isinstance(statement, n.If):
            return  # it may return
        waiting = [] if isinstance(statement, n.For | n.Run | n.Def) else children(statement)
        while waiting:
            node = waiting.pop()
            if isinstance(node, n.Call):
                yield node
            if isinstance(node, n.Block):
                yield from _calls(node.body)
            elif isinstance(node, n.Comprehension):
                waiting.append(node.source)
            elif not isinstance(node, _PERHAPS):
                waiting += children(node)
        if isinstance(statement, n.Return):
            return
