"""What can be wrong with a `private` declaration, and with a file that is read both as private and as public."""

from __future__ import annotations

import posixpath

from jostle.check.arguments import other_name
from jostle.check.report import Report
from jostle.check.warnings import of_categories
from jostle.diagnostics import Note
from jostle.language.builtins import BUILTINS, REMOTE, SOURCES
from jostle.language.described import DOMAINS_ARE
from jostle.syntax import nodes as n
from jostle.syntax.walk import every_of

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
    known = [param.name for param in BUILTINS[name].parameters[1:]]
    for keyword in call.keywords:
        if keyword.name in known:
            continue
        help = other_name(keyword, name, known, call) or (
            f"it takes {', '.join(f'`{word} = …`' for word in known)}" if known else "write its path alone"
        )
        if keyword.name in ("epsilon", "rho", "budget"):
            help = f"a budget is a clause: `budget epsilon {keyword.value.span.text}` at the end"
        report.add("TypeError", f"`{name}` has no argument `{keyword.name}`", keyword.span, help=help)


def check_domains(described: n.RecordOf, report: Report) -> None:
    """Columns whose domain is evidently none, or not the one that is meant."""
    for name, domain in described.items:
        message, help = f"`{name}` needs a domain, and this is {_kind(domain)}", DOMAINS_ARE
        match domain:
            case n.Binary(op="-", left=n.Number() as low, right=n.Number() as high):
                help = f"a range has two dots: `{name}: {low.value:g}..{high.value:g}`"
            case n.Number() | n.String():
                pass
            case n.Range(low=n.Number(value=low), high=n.Number(value=high)) if low > high:
                message = f"`{name}` has no values between {low:g} and {high:g}"
                help = f"the lower end comes first: `{name}: {high:g}..{low:g}`"
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
        first = owners.setdefault(path, private)
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
