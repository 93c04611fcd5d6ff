"""What `use` brings: the top-level names of a module, found once a path.

What can be wrong with sources, as far as a run does not say it before it opens them.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Collection, Iterable
from functools import lru_cache

from jostle.check.warnings import Report, of_categories
from jostle.diagnostics import Note, Refusal, did_you_mean
from jostle.language.builtins import BUILTINS, EVERYWHERE, SOURCES, brought
from jostle.language.facts import NO_LINE, is_header_line
from jostle.language.row_mistakes import other_name
from jostle.source import Source
from jostle.syntax import nodes as n
from jostle.syntax import parse
from jostle.syntax.walk import bound_in, every_of

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
        return {name: tuple(modules.values()) for name, modules in homes.items() if len(modules) > 1}

    def built_in(self, use: n.Use) -> Collection[str]:
        """The built-ins that a `use` brings: those of the module, and of modules that it uses itself."""
        return [name for name, home in self._homes(use).items() if home == _LANGUAGE]

    def _homes(self, use: n.Use, around: tuple[n.Use, ...] = ()) -> dict[str, object]:
        """Where each name of a module is defined: in itself, in one that it uses, as a kernel, or in the language."""
        program = self._load(use.path) if not self.failed and use not in around else None
        if program is None:
            return {}
        homes: dict[str, object] = dict.fromkeys(brought(use.path), _LANGUAGE)
        for stmt in program.body:
            if isinstance(stmt, n.Use):
                homes = self._homes(stmt, (*around, use)) | homes
        homes |= dict.fromkeys(_module_names(program.span.source)[0], ".".join(use.path))
        homes |= {stmt.name: f"kernel {stmt.name}" for stmt in program.body if isinstance(stmt, n.External)}
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
        own, uses = _module_names(program.span.source)
        return {*own, *brought(use.path)}.union(*map(self.names, uses))


@lru_cache(maxsize=64)
def _module_names(source: Source) -> tuple[frozenset[str], tuple[n.Use, ...]]:
    """The names that a module binds itself, and what else it uses."""
    uses: list[n.Use] = []

    def aside(use: n.Use) -> tuple[str, ...]:
        uses.append(use)
        return ()

    return frozenset(bound_in(parse(source).body, aside)), tuple(uses)


def _list(paths: Collection[str]) -> str:
    return "there are " + ", ".join(f"`{name}`" for name in sorted(paths)) if paths else ""


def check_sources(program: n.Program, report: Report) -> None:
    """What a run does not say of declarations: inner ones, two of one name, listed texts, and arguments of sources."""
    declared: dict[str, n.Private] = {}
    top = {id(stmt) for stmt in program.body}
    for private in every_of(program, n.Private):
        first = declared.setdefault(private.name, private)
        if id(private) not in top:
            report.add("TypeError", "`private` stands at top level only", private.span, help="move it out of the block")
        elif first is not private:
            message, notes = f"`{private.name}` is declared private twice", (Note(first.span, "declared here before"),)
            report.add("TypeError", message, private.span, help="give it another name", notes=notes)
    for private in every_of(program, n.Private):
        _needs_rows(private, report)
    described = [private.described for private in every_of(program, n.Private)]
    for domains in (*described, *(node.domains for node in every_of(program, n.Described))):
        for name, domain in domains.items if isinstance(domains, n.RecordOf) else ():
            if isinstance(domain, n.SetOf):
                of_categories(name, domain, report)
    for call in every_of(program, n.Call):
        if isinstance(call.function, n.Name) and call.function.id in SOURCES:
            _arguments(call, call.function.id, report)
    _files(program, report)


def _needs_rows(private: n.Private, report: Report) -> None:
    """A column that nothing describes and that is nearly called `rows`."""
    columns = private.protecting.columns if private.protecting is not None else ()
    described = [name for name, _ in private.described.items] if isinstance(private.described, n.RecordOf) else []
    if len(columns) == 1 and columns[0] not in described and did_you_mean(columns[0].lower(), ["rows"], 0.75):
        message = f"`{columns[0]}` is no column that is described"
        help = "write `protecting rows` where each row is of another person"
        report.add("NameError", message, private.protecting.span if private.protecting else private.span, help=help)


def _arguments(call: n.Call, name: str, report: Report) -> None:
    """An argument that a source has not, such as its budget."""
    names = [param.name for param in BUILTINS[name].parameters[1:]]
    unknown = any(keyword.name not in names for keyword in call.keywords)
    match call.args:
        case () if not unknown:
            report.add("TypeError", f"`{name}` opens something", call.span, help=f'write `{name}("people.csv")`')
        case (n.Number() | n.Constant() as path, *_):
            message, help = f"what `{name}` opens has a name in quotes", f'write `{name}("people.csv")`'
            report.add("TypeError", message, path.span, help=help)
        case (_, n.Number() | n.Constant() | n.ListOf() as part, *_) if name != "counts":
            message = f"a part of what `{name}` opens is named by a text"
            report.add("TypeError", message, part.span, help=f"write `{name}({call.args[0].span.text})`")
    for keyword in call.keywords:
        if keyword.name in names:
            match keyword.value:
                case n.Number(value=value) | n.String(value=value) if keyword.name == "header" and not is_header_line(
                    value
                ):
                    report.add("TypeError", NO_LINE[0], keyword.span, help=NO_LINE[1])
            continue
        help = other_name(keyword, name, names, call) or (
            f"it takes {', '.join(f'`{word} = …`' for word in names)}" if names else "write its path alone"
        )
        if keyword.name in ("epsilon", "rho", "budget"):
            help = f"a budget is a clause: `budget epsilon {keyword.value.span.text}` at the end"
        report.add("TypeError", f"`{name}` has no argument `{keyword.name}`", keyword.span, help=help)


def _files(program: n.Program, report: Report) -> None:
    """One file has one `protecting` clause and one measure, and is not also public."""
    owners: dict[str, n.Private] = {}
    for private in every_of(program, n.Private):
        path = _path(private.source)
        first = private if path is None else owners.setdefault(path, private)
        one, other = (owner.budget.amount.unit if owner.budget is not None else "" for owner in (first, private))
        if first.protecting != private.protecting or one != other:
            what = "`protecting` clause" if one == other else "unit of budget"
            message = f"`{private.name}` and `{first.name}` are one file and need the same {what}"
            notes = (Note(first.span, f"`{first.name}` is declared here"),)
            report.add("DataError", message, private.span, help="repeat the clause of the first one", notes=notes)
    opened = {id(node.source) for node in every_of(program, n.Private)}
    for call in every_of(program, n.Call):
        path = _path(call)
        if path in owners and id(call) not in opened:
            owner = owners[path]
            message = f"this file is private as `{owner.name}` and cannot be read as public too"
            label, note = f"private since line {owner.span.line}", f"`{owner.name}` is declared private here"
            report.add("PrivateValue", message, call.span, label=label, help=f"use `{owner.name}`, or another file",
                       notes=(Note(owner.span, note),))  # fmt: skip


def _path(source: n.Expr) -> str | None:
    match source:
        case n.Call(function=n.Name(id="table"), args=(n.String(value=path),)):
            return posixpath.normpath(path)
    return None
