"""Public tables with a class column, chosen from a directory of CSV files by a rule that nobody applies by hand.

The directory holds PACKAGE/NAME.csv, as the collection Rdatasets has them (https://vincentarelbundock.github.io/Rdatasets).
By the first hexadecimal digit of the MD5 sum of PACKAGE/NAME a table is for development (0 to 7) or for judging. Of
files with the same name, the same columns or as many lines, which may be one table, the first by PACKAGE/NAME counts.

**The rule.** A table has 300 to 50,000 rows. Columns of which more than a fifth is missing, texts of more than 30
values and what is constant are left out, then rows with a missing cell. The class is the last column of 2 to 10 values
(texts, or whole numbers) of which none has more than nine in ten rows. A column that alone names the class of 98 in a
hundred rows says it in other words, and is left out. There are at least 4 other columns, of which the first 60 count.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from real_tables import half_of

ROWS = (300, 50_000)
MISSING = 0.2
TEXTS = 30
CLASSES = 10
LARGEST = 0.9
SAME = 0.98
ATTRIBUTES = (4, 60)


@dataclass(frozen=True)
class ClassTable:
    """The columns of a table, texts or numbers, and the name of its class column."""

    name: str
    rows: pd.DataFrame
    label: str


def class_tables(directory: Path, half: str) -> Iterator[ClassTable]:
    """The tables of one half, `development` or `judged`, in the order of their names."""
    marks = set[object]()
    for path in sorted(directory.glob("*/*.csv"), key=lambda p: (p.parent.name, p.stem)):
        with path.open("rb") as text:
            head, lines = text.readline().strip().lower().partition(b",")[2], sum(1 for _ in text)
        mine = {path.stem.lower(), head, lines}
        seen = not mine.isdisjoint(marks)
        marks |= mine
        if seen or not ROWS[0] <= lines <= ROWS[1] or half_of(f"{path.parent.name}/{path.stem}") != half:
            continue
        found = class_table(path)
        if found is not None:
            yield found


def class_table(path: Path) -> ClassTable | None:
    """The table of a file, if it is one by the rule."""
    rows = pd.read_csv(path, low_memory=False, encoding_errors="replace")
    rows = rows.drop(columns=rows.columns[:1])  # the row names
    rows = rows.loc[:, rows.isna().mean() <= MISSING].dropna()
    rows = rows.loc[:, [_kept(rows[c]) for c in rows.columns]]
    listed = [str(c) for c in rows.columns if _is_class(rows[c])]
    if len(rows) < ROWS[0] or not listed:
        return None
    label = listed[-1]
    others = [c for c in rows.columns if c != label and _alone(rows[c], rows[label]) < SAME][: ATTRIBUTES[1]]
    if len(others) < ATTRIBUTES[0]:
        return None
    return ClassTable(f"{path.parent.name}/{path.stem}", rows[[*others, label]].reset_index(drop=True), label)


def _kept(column: pd.Series) -> bool:
    many = column.nunique()
    return many > 1 and (many <= TEXTS or pd.api.types.is_numeric_dtype(column))


def _is_class(column: pd.Series) -> bool:
    if not 2 <= column.nunique() <= CLASSES or column.value_counts(normalize=True).iloc[0] > LARGEST:
        return False
    return not pd.api.types.is_float_dtype(column) or bool((column == np.rint(column)).all())


def _alone(column: pd.Series, label: pd.Series) -> float:
    """The share of rows whose class the values of a column name, where they have no more than a tenth of the rows."""
    if column.nunique() > len(column) / 10:
        return 0.0
    return float(pd.crosstab(column, label).max(axis=1).sum() / len(label))
