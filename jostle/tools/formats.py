"""What `--save` can write: a table of public values as CSV, TSV, JSON, JSON lines, Parquet, Arrow or an Excel workbook.

None, and what is no finite number, is an empty cell, or `null`. Dates and times are so in Parquet, Arrow
and Excel, and ISO texts elsewhere.
"""

from __future__ import annotations

import csv
import errno
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from msgspec import Struct

_MOST_ROWS, _LONGEST = 1_048_576, 32_767  # of a sheet of Excel, and the characters of a cell
_UNWRITABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")


class Sheet(Struct, frozen=True):
    """Columns of public values, by name and of equal length."""

    columns: Mapping[str, Sequence[Any]]

    @property
    def rows(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    @property
    def size(self) -> str:
        """How large it is, for a person."""
        rows, columns = self.rows, len(self.columns)
        return f"{rows:,} row{'s' * (rows != 1)}, {columns} column{'s' * (columns != 1)}"

    def lines(self) -> Iterator[list[str]]:
        """The header, then the rows as texts."""
        yield list(self.columns)
        for row in self.records():
            yield [_text(cell) for cell in row.values()]

    def records(self) -> Iterator[dict[str, Any]]:
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
    if cell is None:
        return ""
    return str(cell).lower() if isinstance(cell, bool) else str(cell)


def _csv(sheet: Sheet, path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(sheet.lines())


def _tsv(sheet: Sheet, path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter="\t", lineterminator="\n").writerows(sheet.lines())


def _json(sheet: Sheet, path: Path) -> None:
    path.write_text(json.dumps(list(sheet.records()), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def _json_lines(sheet: Sheet, path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        file.writelines(json.dumps(record, ensure_ascii=False) + "\n" for record in sheet.records())


def _parquet(sheet: Sheet, path: Path) -> None:
    import pyarrow.parquet as pq

    pq.write_table(_arrow(sheet), path)


def _feather(sheet: Sheet, path: Path) -> None:
    import pyarrow as pa

    table = _arrow(sheet)
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


def _arrow(sheet: Sheet) -> Any:
    import pyarrow as pa

    return pa.table({name: _column(values) for name, values in sheet.columns.items()})


def _column(values: Sequence[Any]) -> Any:
    """Numbers, truths, dates and times as such, where all cells of a column are; texts otherwise."""
    import pyarrow as pa

    values = list(values)
    if any(isinstance(value, date) for value in values) and all(isinstance(v, date | None) for v in values):
        return pa.array(values)
    cells = [_cell(value) for value in values]
    known = [cell for cell in cells if cell is not None]
    for kind, type_ in ((bool, pa.bool_()), (int, pa.int64()), (int | float, pa.float64())):
        if known and all(isinstance(cell, kind) and isinstance(cell, bool) == (kind is bool) for cell in known):
            return pa.array(cells, type_)
    return pa.array([None if cell is None else _text(cell) for cell in cells], pa.string())


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


def _excel_cell(value: object) -> Any:
    """Numbers, truths, dates and times as such; a text without the signs that a sheet cannot hold."""
    if isinstance(value, date):
        return value
    cell = _cell(value)
    return _UNWRITABLE.sub("", cell)[:_LONGEST] if isinstance(cell, str) else cell


WRITERS: dict[str, Callable[[Sheet, Path], None]] = {
    ".csv": _csv, ".tsv": _tsv, ".json": _json, ".jsonl": _json_lines, ".ndjson": _json_lines,
    ".parquet": _parquet, ".arrow": _feather, ".feather": _feather, ".xlsx": _excel,
}  # fmt: skip
"""How a table is written, by the ending of the file's name. Each raises OSError where the file cannot be written."""
