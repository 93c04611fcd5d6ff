"""Public tables of many packages of R, to settle and to judge models of tables and of points by.

`folder` holds `PACKAGE/NAME.csv` (github.com/vincentarelbundock/Rdatasets, its directory `csv`). The first digit of
md5 of `PACKAGE/NAME` splits them: below 8 *development*, which may settle options and constants, else *judged*. Files
of the same columns are variants of one table, for all of which the first by name counts; of each package the first
table, by md5, that the rule below takes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

FEWEST, MOST = 300, 10_000
"""Rows of a table without gaps; of more, so many are drawn."""
COLUMNS = (4, 16)
"""The fewest and the most columns; of more, the first."""
LISTED, BINS = 20, 16
"""Values of a text, or of a number, that are listed, and equal bins of a number of more values."""
GAPS = 0.1
"""A column that lacks more of its values than this is left out."""

Codes = NDArray[np.int64]


def half_of(name: str) -> str:
    """`development` or `judged`, by the first digit of the md5 of `PACKAGE/NAME`."""
    return "development" if hashlib.md5(name.encode()).hexdigest()[0] < "8" else "judged"


def files(folder: Path, half: str) -> Iterator[tuple[str, Path]]:
    """(`PACKAGE/NAME`, file) of one half, in the order of md5, the variants of a table once."""
    named = sorted((f"{path.parent.name}/{path.stem}", path) for path in folder.glob("*/*.csv"))
    first: dict[str, str] = {}
    for name, path in named:
        with path.open(encoding="utf-8", errors="replace") as lines:
            first.setdefault(lines.readline().strip().lower(), name)
    of_name = dict(named)
    for name in sorted(first.values(), key=lambda name: hashlib.md5(name.encode()).hexdigest()):
        if half_of(name) == half:
            yield name, of_name[name]


def tables(folder: Path, half: str, many: int) -> dict[str, tuple[Codes, list[int]]]:
    """Tables as positions of values (rows, columns) with the number of values of each column, the first `many`."""
    return _of_packages(folder, half, many, _coded)


def points(folder: Path, half: str, many: int) -> dict[str, NDArray[np.float64]]:
    """Numeric columns of tables (rows, columns), with more than ten values each: 2 to 12 of them."""
    return _of_packages(folder, half, many, _numeric)


def columns(folder: Path, cells: int, most: int) -> dict[str, NDArray[np.int64]]:
    """Histograms of numeric columns, of `cells` equal bins from the least to the greatest value: (cells,) each.

    `folder` holds `PACKAGE/…/NAME.csv`, also compressed: wheels of PyPI, unpacked. One column of a table, the first by
    md5 with a dozen values or more; `most` of a package, its tables in the order of their names.
    """
    import pandas as pd

    histograms: dict[str, NDArray[np.int64]] = {}
    for path in sorted(path for path in folder.rglob("*.csv*") if path.is_file()):
        package = path.relative_to(folder).parts[0]
        if sum(name.startswith(f"{package}/") for name in histograms) == most:
            continue
        try:
            frame = pd.read_csv(path, low_memory=False, encoding="latin-1").select_dtypes("number")
        except (ValueError, OSError):
            continue
        named = {f"{package}/{path.name}/{column}": frame[column].dropna() for column in frame.columns}
        fit = [name for name, v in named.items() if len(v) >= FEWEST and v.nunique() >= 12 and not _numbers_rows(v)]
        if fit:
            name = min(fit, key=lambda name: hashlib.md5(name.encode()).hexdigest())
            values = named[name][np.isfinite(named[name])]
            counted = np.histogram(values, bins=cells)[0]
            if not any(np.array_equal(counted, other) for other in histograms.values()):
                histograms[name] = counted
    return histograms


def _of_packages(folder: Path, half: str, many: int, read: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, path in files(folder, half):
        package = name.split("/")[0]
        if package in {other.split("/")[0] for other in found}:
            continue
        table = read(path)
        if table is not None:
            found[name] = table
        if len(found) == many:
            break
    return found


def _frame(path: Path) -> Any:
    """The columns of a file that vary, have few gaps and do not number its rows; None for few rows."""
    import pandas as pd

    try:
        frame = pd.read_csv(path, low_memory=False)
    except (ValueError, UnicodeDecodeError):
        return None
    frame = frame.drop(columns=[c for c in frame.columns if c == "rownames"])
    frame = frame.loc[:, (frame.isna().mean() <= GAPS) & (frame.nunique() > 1)]
    frame = frame[[c for c in frame.columns if not _numbers_rows(frame[c])]]
    return frame if len(frame) >= FEWEST else None


def _thinned(frame: Any) -> Any:
    frame = frame.dropna()
    if len(frame) < FEWEST:
        return None
    return frame.sample(MOST, random_state=1) if len(frame) > MOST else frame


def _is_number(column: Any) -> bool:
    import pandas as pd

    return bool(pd.api.types.is_numeric_dtype(column)) and not pd.api.types.is_bool_dtype(column)


def _numbers_rows(column: Any) -> bool:
    """Whole numbers of which every row has another."""
    return _is_number(column) and column.nunique() == len(column) and bool((column == np.rint(column)).all())


def _coded(path: Path) -> tuple[Codes, list[int]] | None:
    import pandas as pd

    frame = _frame(path)
    if frame is None:
        return None
    kept = [c for c in frame.columns if _is_number(frame[c]) or frame[c].nunique() <= LISTED]
    frame = None if len(kept) < COLUMNS[0] else _thinned(frame[kept[: COLUMNS[1]]])
    if frame is None:
        return None
    codes, sizes = [], []
    for name in frame.columns:
        column = frame[name]
        if column.nunique() <= LISTED:
            values, code = np.unique(column.astype(str).to_numpy(), return_inverse=True)
            if pd.api.types.is_numeric_dtype(column):
                values, code = np.unique(column.to_numpy().astype(float), return_inverse=True)
            size = len(values)
        else:
            cells = column.to_numpy(dtype=float)
            low, high = cells.min(), cells.max()
            code, size = np.minimum((cells - low) / (high - low) * BINS, BINS - 1).astype(np.int64), BINS
        if size > 1:
            codes.append(code.astype(np.int64))
            sizes.append(size)
    return (np.stack(codes, axis=1), sizes) if len(codes) >= COLUMNS[0] else None


def _numeric(path: Path) -> NDArray[np.float64] | None:
    frame = _frame(path)
    if frame is None:
        return None
    kept = [c for c in frame.columns if _is_number(frame[c]) and frame[c].nunique() > 10]
    frame = None if len(kept) < 2 else _thinned(frame[kept[:12]])
    return None if frame is None else frame.to_numpy(dtype=float)
