"""What a program says of its files, held against their headers, which are public; no row is read.

Looked at are the CSV files that lie where a run would look for them, under a path that is written in the program. Of a
private file no name is told: one without a header has a row in its first line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from jostle.diagnostics import Diagnostic, Refusal
from jostle.syntax import nodes as n
from jostle.syntax.walk import every
from jostle.tools.files import misspelt


def misfits(program: n.Program, folders: Sequence[Path]) -> list[Diagnostic]:
    """The described columns that a file's header lacks, and the misspelt names of files, in source order."""
    return [fault for call, described in _tables(program) for fault in _misfits(call, described, folders)]


def _tables(program: n.Program) -> Iterator[tuple[n.String, n.Expr | None]]:
    """The paths of tables, with the descriptions of the columns of private ones."""
    nodes = list(every(program))
    described = {id(node.source): node.described for node in nodes if isinstance(node, n.Private)}
    for node in nodes:
        match node:
            case n.Call(function=n.Name(id="table"), args=(n.String() as path,), keywords=()):
                yield path, described.get(id(node))


def _misfits(path: n.String, described: n.Expr | None, folders: Sequence[Path]) -> Iterator[Diagnostic]:
    from jostle.engine.duckdb.csvfile import header
    from jostle.engine.files import open_file

    name = path.value
    if set("*?[") & set(name) or not name.endswith(".csv"):
        return
    there = next((folder / name for folder in folders if (folder / name).exists()), None)
    if there is None:
        close = misspelt(name, folders, "*.csv")
        if close:
            yield Diagnostic("DataError", f"there is no file `{name}`", path.span, help=close)
        return
    if not isinstance(described, n.RecordOf):
        return
    try:
        names = header(open_file(there), f"`{name}`").names
    except Refusal as refusal:
        yield from refusal.at(path.span).diagnostics
        return
    for column, domain in described.items:
        if column not in names:
            help = "names are as in the file's header: its first line, and in its case"
            yield Diagnostic("DataError", f"there is no column `{column}`", domain.span, "not in the file", help)
