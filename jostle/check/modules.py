"""What `use` brings: the top-level names of a module, found once a path.

What can be wrong with a `private` declaration, and with a file that is read both as private and as public.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Collection, Iterable

from jostle.check.warnings import Report, of_categories
from jostle.diagnostics import Note, Refusal, did_you_mean
from jostle.language.builtins import BUILTINS, DOMAINS, EVERYWHERE, REMOTE, SOURCES, brought
from jostle.language.facts import DOMAINS_ARE, NO_FILLING, NO_LINE, is_header_line
from jostle.language.row_mistakes import other_name
from jostle.syntax import nodes as n
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


EXAMPLE = {
    "described by": "described by {age: 0..99}",
    "protecting": "protecting rows",
    "budget": "budget epsilon 1",
}


def check_sources(program: n.Program, report: Report) -> None:
    """All declarations of a program."""
    top = {id(stmt) for stmt in program.body}
    declared: dict[str, n.Private] = {}
    for private in _privates(program):
        if id(private) not in top:
            report.add("TypeError", "`private` stands at top level only", private.span, help="move it out of the block")
        elif private.name in declared:
            first = Note(declared[private.name].span, "declared here before")
            message = f"`{private.name}` is declared private twice"
            report.add("TypeError", message, private.span, help="give it another name", notes=(first,))
        declared.setdefault(private.name, private)
        _complete(private, report)
    for node in every_of(program, n.Described):
        if isinstance(node.domains, n.RecordOf):
            check_domains(node.domains, report)
    for call in every_of(program, n.Call):
        if isinstance(call.function, n.Name) and call.function.id in SOURCES:
            _arguments(call, call.function.id, report)
    _files(program, report)


def _arguments(call: n.Call, name: str, report: Report) -> None:
    """An argument that a source has not, such as its budget."""
    names = [param.name for param in BUILTINS[name].parameters[1:]]
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


def check_domains(described: n.RecordOf, report: Report) -> None:
    """Columns whose domain is evidently none, or not the one that is meant."""
    before: set[str] = set()
    for name, domain in described.items:
        if name in before:
            help = "leave one of them out: a column has one domain"
            report.add("DataError", f"`{name}` is described twice", domain.span, label="again", help=help)
        before.add(name)
        message, help = f"`{name}` needs a domain, and this is {_kind(domain)}", DOMAINS_ARE
        match domain:
            case n.Binary(op="-", left=n.Number() as low, right=n.Number() as high):
                help = f"a range has two dots: `{name}: {low.value:g}..{high.value:g}`"
            case n.String(value=form) if "%" in form:
                help = f'a format is of a date or a time: write `{name}: date("{form}")`'
            case n.Number() | n.String():
                pass
            case n.ListOf(items=(n.Range(low=n.Number(value=low), high=n.Number(value=high)),)):
                message = f"`{name}` needs a domain, and this is a list with one"
                help = f"a range stands alone: `{name}: {low:g}..{high:g}`"
            case n.Call(function=n.Name(id="integer" | "real"), args=(n.Number(value=low), n.Number(value=high))):
                help = f"a range says that its numbers are whole, or real: `{name}: {low:g}..{high:g}`"
                message = f"`{name}` needs a domain, and this is a call"
            case n.Range(low=n.Number(value=low), high=n.Number(value=high)) if low > high:
                message = f"`{name}` has no values between {low:g} and {high:g}"
                help = f"the lower end comes first: `{name}: {high:g}..{low:g}`"
            case n.Name(id=word) if name in described.filled and word in DOMAINS:
                message, help = NO_FILLING[0].format(name=name), NO_FILLING[1]
            case n.SetOf():
                of_categories(name, domain, report)
                continue
            case n.ListOf(items=(n.Number(value=low), n.Number(value=high))) if high > low + 1:
                message = f"`{name}` is described by two numbers alone, {low:g} and {high:g}"
                help = f"write `{name}: {low:g}..{high:g}` for the range, `{{{low:g}, {high:g}}}` for the two"
            case _:
                continue
        report.add("DataError", message, domain.span, label="no domain", help=help)


def _kind(node: n.Expr) -> str:
    return "a text" if isinstance(node, n.String) else "a number"


def _privates(program: n.Program) -> list[n.Private]:
    return sorted(every_of(program, n.Private), key=lambda private: (private.span.line, private.span.column))


def _complete(private: n.Private, report: Report) -> None:
    source = private.source
    if isinstance(private.described, n.RecordOf):
        check_domains(private.described, report)
    if not (isinstance(source, n.Call) and isinstance(source.function, n.Name)):
        return
    there = {"described by": private.described, "protecting": private.protecting, "budget": private.budget}
    if source.function.id == "dataset":
        for what, clause in there.items():
            if clause is not None:
                message = f"a dataset is registered, and its owner has said what `{what}` says"
                report.add("DataError", message, clause.span, help="leave the clauses out")
        return
    if source.function.id == "counts" and private.protecting is not None and private.protecting.columns:
        report.add(
            "DataError", "counts have no columns to protect", private.protecting.span, help="write `protecting rows`"
        )
    if source.function.id not in SOURCES:
        return
    if private.protecting is not None and private.protecting.linked:
        if private.budget is not None:
            message = f"`{private.name}` has the budget of `{private.protecting.linked}`, whose persons it is of"
            report.add("DataError", message, private.budget.span, help="leave the `budget` clause out")
        del there["budget"]
    described = source.function.id in ("table", *REMOTE)
    needs = there if described else [clause for clause in there if clause != "described by"]
    missing = [clause for clause in needs if there[clause] is None]
    if missing:
        message = f"the private source `{private.name}` has no " + " and no ".join(f"`{clause}`" for clause in missing)
        help = "add " + ", ".join(f"`{EXAMPLE[clause]}`" for clause in missing)
        report.add("DataError", message, private.span, help=help)


def _files(program: n.Program, report: Report) -> None:
    """One file has one `protecting` clause and one measure, and is not also public."""
    owners: dict[str, n.Private] = {}
    for private in _privates(program):
        path = _path(private.source)
        if path is None:
            continue
        if (first := owners.setdefault(path, private)) is private:
            continue
        same_unit = _unit(first) == _unit(private)
        if first.protecting != private.protecting or not same_unit:
            what = "`protecting` clause" if same_unit else "unit of budget"
            message = f"`{private.name}` and `{first.name}` are one file and need the same {what}"
            notes = (Note(first.span, f"`{first.name}` is declared here"),)
            report.add("DataError", message, private.span, help="repeat the clause of the first one", notes=notes)
    opened = {id(node.source) for node in every_of(program, n.Private)}
    for call in every_of(program, n.Call):
        path = _path(call)
        if path in owners and id(call) not in opened:
            owner = owners[path]
            report.add(
                "PrivateValue",
                f"this file is private as `{owner.name}` and cannot be read as public too",
                call.span,
                label=f"private since line {owner.span.line}",
                help=f"use `{owner.name}`",
                notes=(Note(owner.span, f"`{owner.name}` is declared private here"),),
            )


def _path(source: n.Expr) -> str | None:
    match source:
        case n.Call(function=n.Name(id="table"), args=(n.String(value=path),)):
            return posixpath.normpath(path)
    return None


def _unit(private: n.Private) -> str:
    return private.budget.amount.unit if private.budget is not None else ""
