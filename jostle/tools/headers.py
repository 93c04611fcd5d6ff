"""What a program says of its files, held against their headers, which are public; no row is read.

Looked at are the CSV and Parquet files that lie where a run would look for them, under a path that is written in the
program. Of a private file no name is reported: one without a header has a row in its first line. A public CSV file
without a description is described by its header, so that a column that it lacks is found as any other is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from jostle.diagnostics import Diagnostic, Refusal
from jostle.engine.files import open_file
from jostle.language.facts import LAST_HEADER
from jostle.readers.filesets import Reading, exists
from jostle.records import replace
from jostle.syntax import nodes as n
from jostle.syntax.walk import every, every_of, rebuilt
from jostle.tools.arguments import misspelt

if TYPE_CHECKING:
    from jostle.engine.base import Opened
    from jostle.privacy.ledger.ledger import Ledger
    from jostle.readers.csvfile import Header


def header_misfits(program: n.Program, folders: Sequence[Path], ledger: Ledger | None) -> list[Diagnostic]:
    """The described columns that a file's header lacks, the misspelt names of files, and the files that a ledger has,
    which are read through their datasets alone, in source order."""
    return [
        fault for call, path, reading, private in _tables(program)
        for fault in (*_registered(call, path.value, folders, ledger), *_misfits(path, reading, private, folders))
    ]  # fmt: skip


def _registered(call: n.Call, path: str, folders: Sequence[Path], ledger: Ledger | None) -> Iterator[Diagnostic]:
    from jostle.engine.files import open_file
    from jostle.run.origins import registered

    there = next((folder / path for folder in folders if (folder / path).is_file()), None)
    if there is not None and ledger is not None and ledger.store.exists():
        with suppress(Refusal):  # which its run says
            if (name := ledger.named(open_file(there))) is not None:
                yield registered(name, call.span).first


def doubts(program: n.Program, folders: Sequence[Path]) -> list[Diagnostic]:
    """Warnings of described files whose header separates cells as files with decimal commas do, where the program says
    of neither how it is; and of texts that are read as numbers with a point beside a file that has commas."""
    result = []
    commas = [path.value for _, path, reading, _ in _tables(program) if reading.decimal == ","]
    for read in every_of(program, n.Call) if commas else ():
        match read:
            case n.Call(function=n.Name(id="number"), args=(n.Name() | n.Call() as of,)):
                if not any(isinstance(part, n.String) and part.value == "," for part in every(of)):
                    message = f"`number` reads a decimal point, and the numbers of `{commas[0]}` have commas"
                    help = 'write `number(replace(replace(x, ".", ""), ",", "."))` if these texts have commas too'
                    result.append(Diagnostic("csv-decimal", message, read.span, "12,5 would be unreadable", help))
    for _, path, reading, private in _tables(program):
        described = private.described if private is not None else None
        there = _there(path.value, folders) if isinstance(described, n.RecordOf) and reading == Reading() else None
        separator = separator_of(there) if there is not None else ""
        numbers = isinstance(described, n.RecordOf) and any(_is_number(domain) for _, domain in described.items)
        if separator in GERMAN and numbers:
            mark, literal = GERMAN[separator]
            message = f"the header of `{path.value}` separates cells by {mark}, as files with decimal commas do"
            call = f'table("{path.value}", separator = "{literal}"'
            help = f'write `{call}, decimal = ",")` if its numbers are like 12,5, `{call})` if they are like 12.5'
            result.append(Diagnostic("csv-decimal", message, path.span, "12,5 would be unreadable", help))
    return result


GERMAN = {";": ("a semicolon", ";"), "\t": ("a tab", "\\t")}


def _is_number(domain: n.Expr) -> bool:
    match domain:
        case n.Range(low=n.Number() | n.Unary()) | n.Name(id="real" | "integer"):
            return True
        case n.SetOf(items=(n.Number(), *_)):
            return True
    return False


def separator_of(path: Path) -> str:
    """What separates the cells of a CSV file by its header; the empty text of what is no such file."""
    from jostle.readers.formats import format_of

    try:
        return _head(path, "", Reading()).separator if format_of(open_file(path)) == "csv" else ""
    except Refusal:
        return ""


def _head(path: Path, label: str, reading: Reading) -> Header:
    """The header of a CSV file that is read so. Raises `Refusal` where it has none, or cannot be read so."""
    from jostle.readers.csvfile import header
    from jostle.readers.formats import check_reading

    check_reading("csv", label, reading)
    return header(open_file(path), label, reading)


def _tables(program: n.Program) -> Iterator[tuple[n.Call, n.String, Reading, n.Private | None]]:
    """The calls that name tables, their paths and how these are read, with the declarations of private ones."""
    private = {id(node.source): node for node in every_of(program, n.Private)}
    for node in every_of(program, n.Call):
        match node:
            case n.Call(function=n.Name(id="table"), args=(n.String() as path,)):
                reading = _reading(node)
                if reading is not None:
                    yield node, path, reading, private.get(id(node))


def _reading(call: n.Call) -> Reading | None:
    """How a file is read, where all that is said of it is written out, and right."""
    keywords = {keyword.name: keyword.value for keyword in call.keywords}
    line = keywords.pop("header", None)
    texts = {name: value.value for name, value in keywords.items() if isinstance(value, n.String)}
    if texts.keys() != keywords.keys() or not texts.keys() <= {"separator", "encoding", "decimal"}:
        return None
    header = int(line.value) if isinstance(line, n.Number) and 1 <= line.value <= LAST_HEADER else None
    if line is not None and (header is None or not isinstance(line, n.Number) or header != line.value):
        return None
    return Reading(
        header=header, separator=texts.get("separator"), encoding=texts.get("encoding"), decimal=texts.get("decimal")
    )


def on_other_lines(faults: Sequence[Diagnostic], others: Sequence[Diagnostic]) -> list[Diagnostic]:
    """Faults, and those others that are of lines on which nothing was found; of amounts, which come last, nothing is
    said where there is another."""
    before = {one.span.line for one in others if one.span is not None and one.kind != "BadAmount"}
    faults = [one for one in faults if one.kind != "BadAmount" or one.span is None or one.span.line not in before]
    lines = {fault.span.line for fault in faults if fault.span is not None}
    files = {one.span.source.name for one in (*faults, *others) if one.span is not None}
    kinds = ("ImportError", "SyntaxError") if len(files) > 1 else ("ImportError",)
    if any(one.kind in kinds for one in faults):  # an unknown name may be one of that module
        others = [one for one in others if one.kind != "NameError"]
    both = [*faults, *(one for one in others if one.span is not None and one.span.line not in lines)]
    return sorted(both, key=lambda one: (one.span.line, one.span.column) if one.span is not None else (0, 0))


def lacking(
    program: n.Program, folders: Sequence[Path], check: Callable[[n.Program], list[Diagnostic]]
) -> list[Diagnostic]:
    """The columns of public files that their headers lack, found by the `check` of a program that has nothing else."""
    described = with_headers(program, folders)
    faults = [] if described is program else [fault for fault in check(described) if fault.label == "no such column"]
    return [replace(f, message=f.message.partition(":")[0], help=f.help.partition("; others")[0]) for f in faults]


def with_headers(program: n.Program, folders: Sequence[Path]) -> n.Program:
    """The program with public files described by their headers, of domains that are not known; itself where none is."""
    described = {id(node.source) for node in every_of(program, n.Described)}
    columns: dict[int, tuple[str, ...]] = {}
    for call, path, reading, private in _tables(program):
        there = _there(path.value, folders) if private is None and id(call) not in described else None
        if there is not None:
            with suppress(Refusal):  # which its run says
                columns[id(call)] = _head(there, "", reading).readable

    def with_header(node: n.Node) -> n.Node:
        if not isinstance(node, n.Call) or not columns.get(id(node)):
            return node
        domains = tuple((name, n.Constant(None, span=node.span)) for name in columns[id(node)])
        return n.Described(node, n.RecordOf(domains, span=node.span), span=node.span)

    return rebuilt(program, with_header) if any(columns.values()) else program


def _is_of(ending: str, name: str) -> bool:
    return not set("*?[") & set(name) and name.endswith(ending)


def _there(name: str, folders: Sequence[Path], ending: str = ".csv") -> Path | None:
    """The file of a name that stands in a program, where it has this ending and lies in one of the folders."""
    there = (folder / name for folder in folders if _is_of(ending, name) and exists(folder / name))
    return next(there, None)


def _public(there: Path, label: str, reading: Reading) -> Opened | None:
    """What is public of a CSV or Parquet file: its columns, and those that are not read. None of a damaged one, which
    its run says."""
    from jostle.engine.base import Opened

    if there.suffix == ".csv":
        head = _head(there, label, reading)
        return Opened("", head.names, None, head.unread, reading.header)
    import duckdb

    from jostle.readers.formats import ParquetFile, check_reading

    check_reading("parquet", label, reading)
    with duckdb.connect() as database, suppress(duckdb.Error):
        file = ParquetFile(
            open_file(there), "t", label, lambda query, _: database.execute(query).fetchall(), database.register
        )
        return Opened("", file.columns, None, file.unread, 0)
    return None


def _misfits(
    path: n.String, reading: Reading, private: n.Private | None, folders: Sequence[Path]
) -> Iterator[Diagnostic]:
    from jostle.run.origins import check_private_columns

    name = path.value
    there = _there(name, folders) or _there(name, folders, ".parquet")
    if there is None:
        if _is_of(".csv", name) and (close := misspelt(name, folders, "*.csv")):
            yield Diagnostic("DataError", f"there is no file `{name}`", path.span, help=close)
        return
    if private is None or not isinstance(private.described, n.RecordOf):
        return
    try:
        data = _public(there, f"`{name}`", reading)
    except Refusal as refusal:
        yield from refusal.at(path.span).diagnostics
        return
    unit = private.protecting
    if data is None:
        return
    places = [((column,), domain.span) for column, domain in private.described.items]
    for columns, span in places + ([(unit.columns, unit.span)] if unit is not None else []):
        try:
            check_private_columns(columns, data, span)
        except Refusal as refusal:
            yield replace(refusal.first, label="not in the file")
