"""`jostle run FILE --save NAME=PATH` writes what a program releases as a file, of the format that its name ends in.

A saved file is whole or not there: rows go to a file beside it, which takes its name at the end. Whether that can be is
found out before anything is spent: that the program releases such a name, that the file's folder takes files, and that
nothing is overwritten which nobody said could be. None, and what is no finite number, is an empty cell, or `null`.
Dates and times are so in Parquet, Arrow and Excel, and ISO texts elsewhere. Also here: `jostle fmt`.
"""

from __future__ import annotations

import csv
import errno
import json
import os
import re
import shutil
import sys
import tempfile
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from jostle.diagnostics import Diagnostic, Refusal, did_you_mean, need_package, refuse, unwritable
from jostle.lazy import pa
from jostle.resources import replacing

if TYPE_CHECKING:
    from jostle.syntax import nodes as n

_MOST_ROWS, _LONGEST = 1_048_576, 32_767  # of a sheet of Excel, and the characters of a cell
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_UNWRITABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")


class Sheet(Struct, frozen=True):
    """Columns of public values, by name and of equal length."""

    columns: Mapping[str, Sequence[object]]

    @property
    def rows(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    @property
    def size(self) -> str:
        """How large it is, for a person."""
        rows, columns = self.rows, len(self.columns)
        return f"{rows:,} row{'s' * (rows != 1)}, {columns} column{'s' * (columns != 1)}"

    def lines(self) -> Iterator[list[str]]:
        """The header, then the rows as texts that no spreadsheet runs."""
        yield [_text(name) for name in self.columns]
        for row in self.records():
            yield [_text(cell) for cell in row.values()]

    def records(self) -> Iterator[dict[str, object]]:
        """The rows, their cells as JSON has them."""
        for row in zip(*self.columns.values(), strict=True):
            yield {name: _cell(value) for name, value in zip(self.columns, row, strict=True)}


def scalar(value: object) -> bool:
    """Whether this is one number or truth of NumPy."""
    return type(value).__module__ == "numpy" and not getattr(value, "shape", (1,))


def _cell(value: Any) -> Any:
    from jostle.run.values import plain

    return plain(value.item() if scalar(value) else value)


def _text(cell: object) -> str:
    """A cell of CSV. A text that begins as a formula does is given a `'` before it, as spreadsheets write such texts:
    a category may be any text, and some of them would open a file or an address where somebody looks at the numbers."""
    if cell is None:
        return ""
    if isinstance(cell, str) and cell.startswith(_FORMULA):
        return f"'{cell}"
    return str(cell).lower() if isinstance(cell, bool) else str(cell)


def _csv(sheet: Sheet, path: Path, delimiter: str = ",") -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=delimiter, lineterminator="\n").writerows(sheet.lines())


def _json(sheet: Sheet, path: Path) -> None:
    path.write_text(json.dumps(list(sheet.records()), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def _json_lines(sheet: Sheet, path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        file.writelines(json.dumps(record, ensure_ascii=False) + "\n" for record in sheet.records())


def _parquet(sheet: Sheet, path: Path) -> None:
    import pyarrow.parquet as pq

    pq.write_table(arrow(sheet), path)


def _feather(sheet: Sheet, path: Path) -> None:
    table = arrow(sheet)
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


def arrow(sheet: Sheet) -> Any:
    """The rows as a table of Arrow."""
    columns = {name: _column(values) for name, values in sheet.columns.items()}
    types = {"bool": pa.bool_(), "int64": pa.int64(), "float64": pa.float64(), "str": pa.string()}
    return pa.table({name: pa.array(cells, types.get(kind)) for name, (kind, cells) in columns.items()})


def pandas_frame(sheet: Sheet) -> object:
    """The rows as a frame of pandas. Whole numbers of which some are none are doubles there, and truths objects."""
    import pandas

    columns = {}
    for name, values in sheet.columns.items():
        kind, cells = _column(values)
        if None in cells:
            kind = {"int64": "float64", "bool": "object"}.get(kind, kind)
        columns[name] = pandas.Series(cells, dtype=None if kind == "str" else kind)
    return pandas.DataFrame(columns)


def _column(values: Sequence[object]) -> tuple[str, list[object]]:
    """Numbers, truths, dates and times as such, where all cells of a column are; texts otherwise. With the type of
    NumPy that holds them."""
    values = list(values)
    if any(isinstance(value, date) for value in values) and all(isinstance(v, date | None) for v in values):
        return f"datetime64[{'us' if any(isinstance(value, datetime) for value in values) else 'ms'}]", values
    cells = [_cell(value) for value in values]
    present = [cell for cell in cells if cell is not None]
    for kind, type_ in ((bool, "bool"), (int, "int64"), (int | float, "float64")):
        if present and all(isinstance(cell, kind) and isinstance(cell, bool) == (kind is bool) for cell in present):
            return type_, cells
    return "str", [None if cell is None else _text(cell) for cell in cells]


def _excel(sheet: Sheet, path: Path) -> None:
    """One sheet with a header; a text that begins as a formula does stays a text."""
    import openpyxl

    if sheet.rows >= _MOST_ROWS:
        raise OSError(errno.EFBIG, f"a sheet has at most {_MOST_ROWS:,} rows")
    book = openpyxl.Workbook(write_only=True)
    page = book.create_sheet("released")
    page.freeze_panes = "A2"
    for row in ([*sheet.columns], *zip(*sheet.columns.values(), strict=True)):
        cells = [openpyxl.cell.WriteOnlyCell(page, _excel_cell(value)) for value in row]
        for cell in cells:
            if cell.data_type == "f":
                cell.data_type = "s"
        page.append(cells)
    with path.open("wb") as file:
        book.save(file)


def _excel_cell(value: object) -> object:
    """Numbers, truths, dates and times as such; a text without the signs that a sheet cannot hold."""
    if isinstance(value, date):
        return value
    cell = _cell(value)
    return _UNWRITABLE.sub("", cell)[:_LONGEST] if isinstance(cell, str) else cell


WRITERS: dict[str, Callable[[Sheet, Path], None]] = {
    ".csv": _csv, ".tsv": partial(_csv, delimiter="\t"), ".json": _json, ".jsonl": _json_lines, ".ndjson": _json_lines,
    ".parquet": _parquet, ".arrow": _feather, ".feather": _feather, ".xlsx": _excel,
}  # fmt: skip
"""How a table is written, by the ending of the file's name. Each raises OSError where the file cannot be written."""


_FOLDER = "name a file in a folder that takes files"


class Export:
    """Writes released values. It is made before a run, `save`d after it, and `close`d in any case."""

    def __init__(self, targets: Sequence[tuple[str, str]], released: Sequence[str] | None, *, overwrite: bool) -> None:
        """`targets`: pairs of a name and a path; `released`: the names that the program can release, or None
        where that is not known.

        Raises `Refusal` (`NameError`, `DataError`) for what cannot be, and then leaves no file behind.
        """
        self._places: dict[str, Path] = {}
        self._parts: dict[str, Path] = {}
        self._overwrite = overwrite
        try:
            for name, path in targets:
                self._prepare(name, Path(path), released)
        except Refusal:
            self.close()
            raise

    def _prepare(self, name: str, path: Path, released: Sequence[str] | None) -> None:
        if name in self._places:
            raise refuse("NameError", f"`{name}` is to be saved twice", help="one `--save` for each name")
        if released is not None and name not in released:
            hint = did_you_mean(name, released) or (f"it releases {', '.join(released)}" if released else "")
            raise refuse("NameError", f"the program never releases `{name}`", help=hint or f"write `release {name}`")
        if path.suffix.lower() not in WRITERS:
            raise refuse(
                "DataError", f"`{path}` does not say of what format it is to be", help=f"end it in {', '.join(WRITERS)}"
            )
        if path.resolve() in [place.resolve() for place in self._places.values()]:
            raise refuse("DataError", f"`{path}` cannot hold two releases", help="give each a file of its own")
        if path.suffix.lower() == ".xlsx":
            need_package("openpyxl", "excel", "workbooks are written by")
        if WRITERS[path.suffix.lower()] in (_parquet, _feather):
            need_package("pyarrow", "arrow", "Parquet and Arrow files are written by")
        self._places[name] = path
        self._look(path)
        try:
            handle, part = tempfile.mkstemp(prefix=f".{path.stem}-", suffix=".part", dir=path.parent)
        except OSError as fault:
            raise unwritable(f"`{path}`", fault, _FOLDER) from fault
        os.close(handle)
        self._parts[name] = Path(part)

    def _look(self, path: Path) -> None:
        if path.is_dir():
            raise refuse("DataError", f"`{path}` is a folder", help="name a file in it")
        if path.exists() and not self._overwrite:
            raise refuse("DataError", f"`{path}` is there already", help="name another file, or add --overwrite")

    def save(
        self, values: Mapping[str, object], *, ok: bool, simulated: bool = False
    ) -> tuple[list[str], list[Diagnostic]]:
        """Writes what was released; says so, a line a file, and what could not be.

        `ok`: whether the run came to its end, so that a name which is missing is worth a word. A simulation saves
        nothing: the file would not say that its numbers are synthetic.
        """
        notes: list[str] = []
        wrong: list[Diagnostic] = []
        for name, path in self._places.items():
            try:
                if name in values:
                    table = sheet(name, values[name])
                    if simulated:
                        notes.append(f"a simulation saves nothing: {path} would have {table.size}")
                    else:
                        self._write(name, table)
                        notes.append(f"saved  {path}  ({table.size})")
                elif ok:
                    raise refuse("DataError", f"this run did not release `{name}`: `{path}` was not written")
            except Refusal as refusal:
                wrong += refusal.diagnostics
        return notes, wrong

    def _write(self, name: str, table: Sheet) -> None:
        path, part = self._places[name], self._parts[name]
        self._look(path)  # again: a run can be long
        try:
            WRITERS[path.suffix.lower()](table, part)
            part.chmod(0o666 & ~_umask())
            part.replace(path)
        except OSError as fault:
            raise unwritable(f"`{path}`", fault, _FOLDER) from fault

    def close(self) -> None:
        """Leaves no unfinished file behind."""
        for part in self._parts.values():
            part.unlink(missing_ok=True)


# A released value as columns -------------------------------------------------------------------------


def sheet(name: str, value: object) -> Sheet:
    """A released value as columns: rows of a model, a grouped result, a list of records, a record of lists, a list; of
    one number, text or date, and of a record of these, one row.

    Raises `Refusal(DataError)` where it is no table.
    """
    from jostle.run.margins import with_ends
    from jostle.run.values import is_vector

    columns = _columns(name, value)
    if columns is not None and len(columns) == 1 and is_vector(value):
        columns = {name: value}  # type: ignore[dict-item]
    if columns is None or len({len(column) for column in columns.values()}) != 1:
        from jostle.run.values import kind_name

        raise refuse(
            "DataError", f"`{name}` is {kind_name(value)} and no table: it cannot be saved",
            help="rows, groups, a list, a record of cells or of lists of equal length can; --format json prints all",
        )  # fmt: skip
    return Sheet(with_ends(columns, value))


def _columns(name: str, value: Any) -> dict[str, Sequence[Any]] | None:
    from jostle.run.values import Grouped, JSet, is_model, is_sequence

    if isinstance(value, Grouped):
        return dict(value.columns)
    if is_model(value):
        fields = value.jostle_fields
        if not ("columns" in fields and callable(fields.get("column"))):
            return None
        return {column: fields["column"](column) for column in fields["columns"]}
    if isinstance(value, dict):
        lists: dict[str, Sequence[object]] = {
            key: list(items) for key, items in value.items() if is_sequence(items) or isinstance(items, JSet)
        }
        if lists or not value:
            return lists if len(lists) == len(value) and all(_simple(v) for v in lists.values()) else None
    if is_sequence(value) or isinstance(value, JSet):
        return _columns_of_rows(name, list(value))
    return None if value is None else _columns_of_rows(name, [value])


def _columns_of_rows(name: str, rows: list[Any]) -> dict[str, Sequence[Any]] | None:
    """Of records or lists alike, a column for each field or place; of plain values one; None where they are neither."""
    from jostle.run.values import is_sequence

    if rows and all(isinstance(row, dict) for row in rows):
        keys = list(rows[0])
        if any(list(row) != keys for row in rows) or not all(_simple(row.values()) for row in rows):
            return None
        return {key: [row[key] for row in rows] for key in keys}
    if rows and all(is_sequence(row) and len(row) == len(rows[0]) and _simple(row) for row in rows):
        return {f"{name}_{i + 1}": column for i, column in enumerate(zip(*rows, strict=True))}
    return {name: rows} if _simple(rows) else None


def _simple(values: Any) -> bool:
    """Whether each is one cell: a number, a text, a date, a boolean or none."""
    return all(v is None or isinstance(v, (bool, int, float, str, date)) or scalar(v) for v in values)


def _umask() -> int:
    """The umask of this process; temporary files are made for their owner alone."""
    now = os.umask(0)
    os.umask(now)
    return now


def released_names(tree: n.Program, load_module: Callable[[tuple[str, ...]], n.Program | None]) -> list[str]:
    """The names that a program and its modules release somewhere."""
    from jostle.syntax import nodes as n
    from jostle.syntax.walk import every

    names: dict[str, None] = {}
    visited: set[tuple[str, ...]] = set()
    waiting = [tree]
    while waiting:
        nodes = every(waiting.pop())
        names.update(dict.fromkeys(node.name for node in nodes if isinstance(node, n.Release)))
        for node in nodes:
            if isinstance(node, n.Use) and node.path not in visited:
                visited.add(node.path)
                used = load_module(node.path)
                waiting += [] if used is None else [used]
    return list(names)


# Programs, formatted -------------------------------------------------------------------------------

_PLACES = 8  # of a file, that are reported


def format_command(options: Namespace) -> int:
    """`jostle fmt`: formats files, the programs in folders, or standard input (`-`); `check` says what would change."""
    from jostle.source import Source
    from jostle.syntax.format import format_source
    from jostle.tools.arguments import read_program
    from jostle.trace.text import clean

    if options.files == ["-"]:
        sys.stdout.write(format_source(Source("-", sys.stdin.read())))
        return 0
    changed, faults = 0, list[Diagnostic]()
    for path in _programs(options.files):
        try:
            source = read_program(path)
            text = format_source(source)
            if text == source.text:
                continue
            changed += 1
            if not options.check:
                rewrite(path, text)
        except Refusal as refusal:
            faults += refusal.diagnostics
            continue
        status = f"would be formatted, {_lines(source.text, text)}" if options.check else "formatted"
        print(clean(f"{path}: {status}"))
    if faults:
        raise Refusal(*faults)
    return int(bool(options.check and changed))


def _lines(before: str, after: str) -> str:
    """The lines that would change, as they are numbered now: `lines 3, 7 to 9`."""
    from difflib import SequenceMatcher

    matcher = SequenceMatcher(None, before.splitlines(), after.splitlines(), autojunk=False)
    places = [(start + 1, max(start + 1, end)) for tag, start, end, *_ in matcher.get_opcodes() if tag != "equal"]
    ranges = [f"{first} to {last}" if last > first else str(first) for first, last in places] or ["the last"]
    more = f" and {len(ranges) - _PLACES} more places" if len(ranges) > _PLACES else ""
    return ("line " if len(places) == 1 and " " not in ranges[0] else "lines ") + ", ".join(ranges[:_PLACES]) + more


def _programs(names: list[str]) -> Iterator[Path]:
    for name in names:
        path = Path(name)
        if path.is_dir():
            yield from sorted(path.rglob("*.jst"))
        else:
            yield path


def rewrite(path: Path, text: str) -> None:
    """All of the new text or all of the old one, whatever happens."""
    try:
        with replacing(path.resolve(), encoding="utf-8", newline="\n") as file:
            file.write(text)
            shutil.copymode(path, file.name)
    except OSError as fault:
        raise unwritable(f"`{path}`", fault, "nothing of it was changed") from fault
