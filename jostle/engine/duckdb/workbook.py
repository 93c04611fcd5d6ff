"""A sheet of an Excel workbook (`.xlsx`) as a table of texts: its first row is the header, each other row a record.

A formula is what it was when the file was saved, a date a date, an empty cell and an error none; a row without any cell
is no record, as an empty line of CSV is none. What a cell holds fails nothing: each becomes a text by itself. A file
that is no workbook is refused as a whole, when it is opened and before anything is charged.
"""

from __future__ import annotations

import datetime
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from xml.etree.ElementTree import ParseError

from jostle.diagnostics import did_you_mean, refuse
from jostle.engine.files import OpenFile

if TYPE_CHECKING:
    import pyarrow as pa

_FAULTS = (
    OSError, ValueError, KeyError, TypeError, IndexError, AttributeError, EOFError, zipfile.BadZipFile, ParseError,
    NotImplementedError, RuntimeError,
)  # fmt: skip
"""What the reader raises for a file that is no workbook, or is damaged."""


def header(file: OpenFile, label: str, sheet: str | int | None) -> tuple[str, ...]:
    """The names in the first row of a sheet, which are public. Raises `Refusal(DataError)` where it is no header."""
    with _sheet(file, label, sheet) as rows:
        return _names(next(rows, ()), label)


def sheet_table(file: OpenFile, label: str, sheet: str | int | None) -> pa.Table:
    """The rows below the header, each cell a text or none; cells beyond the header's are dropped."""
    import pyarrow as pa

    with _sheet(file, label, sheet) as rows:
        names = _names(next(rows, ()), label)
        columns: list[list[str | None]] = [[] for _ in names]
        for row in rows:
            if any(cell is not None for cell in row):
                cells = [_text(cell) for cell in row[: len(names)]]
                for column, cell in zip(columns, cells + [None] * (len(names) - len(cells)), strict=True):
                    column.append(cell)
    file.check()
    return pa.table({name: pa.array(column, pa.string()) for name, column in zip(names, columns, strict=True)})


@contextmanager
def _sheet(file: OpenFile, label: str, sheet: str | int | None) -> Iterator[Iterator[tuple[Any, ...]]]:
    """The rows of a sheet, as values."""
    import openpyxl

    try:
        with file.reader() as source, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they may quote a cell
            book = openpyxl.load_workbook(source, read_only=True, data_only=True, keep_links=False)
            try:
                found = book[_chosen(label, sheet, [one.title for one in book.worksheets])]
                found.reset_dimensions()  # what the file says of its extent may be wrong
                yield found.iter_rows(values_only=True)
            finally:
                book.close()
    except _FAULTS:
        help = "open it and save it again as an Excel workbook (.xlsx) without a password"
        raise refuse("DataError", f"{label} cannot be read as a workbook", help=help) from None


def _chosen(label: str, sheet: str | int | None, names: list[str]) -> str:
    """The sheet that is meant: by its name, in any case, or its number from 1; the only one where none is said."""
    listed = f"it has {', '.join(names[:12])}" if names else "it has none"
    if sheet is None and len(names) == 1:
        return names[0]
    if sheet is None:
        asked = f'say which one, `table("{label[1:-1]}", sheet = "NAME")` or `--sheet NAME`; {listed}'
        raise refuse("DataError", f"{label} has {len(names)} sheets", help=asked if names else listed)
    if isinstance(sheet, int):
        if 1 <= sheet <= len(names):
            return names[sheet - 1]
        raise refuse("DataError", f"{label} has no sheet {sheet}: it has {len(names)}", help=listed)
    named = next((name for name in names if name.casefold() == sheet.casefold()), None)
    if named is None:
        raise refuse("DataError", f"{label} has no sheet `{sheet}`", help=did_you_mean(sheet, names) or listed)
    return named


def _names(row: tuple[Any, ...], label: str) -> tuple[str, ...]:
    """The header: texts that differ, without a gap; what stands beyond the last one has no name."""
    cells = [(_text(cell) or "").strip() for cell in row]
    while cells and not cells[-1]:
        cells.pop()
    help = "the first row of the sheet holds the names, one in each cell: split merged cells, remove titles above"
    if not cells:
        raise refuse("DataError", f"{label} has no names in the first row of its sheet", help=help)
    gap = next((place for place, cell in enumerate(cells, 1) if not cell), None)
    if gap is not None:
        raise refuse("DataError", f"{label} has no name above column {gap} of its sheet", help=help)
    if len(set(cells)) < len(cells):
        raise refuse("DataError", f"{label} has two columns of one name", help="rename one of them")
    return tuple(cells)


def _text(cell: object) -> str | None:
    """A cell as a text: days without a time as days, numbers without a fraction as whole ones."""
    from jostle.engine.duckdb.frames import text_of

    if isinstance(cell, datetime.datetime) and cell.time() == datetime.time():
        cell = cell.date()
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 1e15:
        cell = int(cell)
    if isinstance(cell, str) and (cell in _ERRORS or not cell):
        return None
    return text_of(cell)


_ERRORS = frozenset({"#DIV/0!", "#N/A", "#NAME?", "#NULL!", "#NUM!", "#REF!", "#VALUE!", "#GETTING_DATA"})
