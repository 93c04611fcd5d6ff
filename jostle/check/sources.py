"""What can be wrong with a `private` declaration, and with a file that is read both as private and as public."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from jostle.check.report import Report
from jostle.diagnostics import Note
from jostle.language.builtins import SOURCES
from jostle.syntax import nodes as n
from jostle.syntax.walk import children, every

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
    _files(program, report)


def _privates(program: n.Program) -> list[n.Private]:
    declarations = [node for node in every(program) if isinstance(node, n.Private)]
    return sorted(declarations, key=lambda private: (private.span.line, private.span.column))


def _complete(private: n.Private, report: Report) -> None:
    source = private.source
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
    needs = there if source.function.id == "table" else [clause for clause in there if clause != "described by"]
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
    for call in _public_calls(program):
        path = _path(call)
        if path in owners:
            owner = owners[path]
            report.add(
                "PrivateValue",
                f"this file is private as `{owner.name}` and cannot be read as public too",
                call.span,
                label=f"private since line {owner.span.line}",
                help=f"use `{owner.name}`",
                notes=(Note(owner.span, f"`{owner.name}` is declared private here"),),
            )


def _public_calls(program: n.Program) -> Iterator[n.Call]:
    private = {id(node.source) for node in every(program) if isinstance(node, n.Private)}
    waiting: list[n.Node] = [program]
    while waiting:
        node = waiting.pop()
        if isinstance(node, n.Call) and id(node) not in private:
            yield node
        waiting.extend(children(node))


def _path(source: n.Expr) -> str | None:
    match source:
        case n.Call(function=n.Name(id="table"), args=(n.String(value=path),)):
            return posixpath.normpath(path)
    return None


def _unit(private: n.Private) -> str:
    return private.budget.amount.unit if private.budget is not None else ""
