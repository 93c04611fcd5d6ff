"""Where the groups of a query stand in its dense result.

Plain bookkeeping between the rows that the database returns, in any order and only for groups that occur, and the
public keys, in theirs.
"""

from __future__ import annotations

import math
from datetime import date
from typing import Any

from jostle.diagnostics import refuse
from jostle.integers import fixed_width
from jostle.language.moments import number_of
from jostle.plan.plan import Key

CELLS = 2**26  # that a grouped result may have


def shape(keys: tuple[Key, ...]) -> tuple[int, ...]:
    sizes = [key.values[-1] - key.values[0] + 1 if isinstance(key.values, range) and key.values else len(key.values)
             for key in keys]  # fmt: skip
    if math.prod(sizes) > CELLS:
        message = f"the group keys have {' × '.join(f'{size:,}' for size in sizes)} combinations; {CELLS:,} can be held"
        raise refuse("DataError", message, help="group by something coarser, such as `x / 1000`")
    return tuple(sizes)


def positions(keys: tuple[Key, ...], columns: list[Any], shape: tuple[int, ...]) -> tuple[Any, Any]:
    """Where each group found stands in the flattened result, and which of those found have a place there."""
    import numpy as np

    if not keys:
        return np.zeros(1, dtype=np.int64), slice(None)
    inside = np.ones(len(columns[0]), dtype=bool)
    codes = []
    for key, column in zip(keys, columns, strict=True):
        if hasattr(column, "mask"):  # `numpy.ma` takes long to load, and few columns need it
            inside &= ~np.ma.getmaskarray(column)
            column = column.data
        if isinstance(key.values, range):
            code = fixed_width(column) - (key.values[0] if key.values else 0)
        else:
            place = {plain(value): i for i, value in reversed(list(enumerate(key.values)))}
            cells = np.asarray(column).tolist()
            code = fixed_width([place.get(value, -1) for value in cells])
        inside &= (code >= 0) & (code < len(key.values))
        codes.append(code)
    return np.ravel_multi_index([code[inside] for code in codes], shape), inside


def plain(value: Any) -> Any:
    """A double (also for dates and times), a text, a truth value, or None for what is missing or not finite."""
    if value is None or isinstance(value, (str, bool)):
        return value
    if type(value) is int:  # nearly always
        return float(value)
    number = float(number_of(value) if isinstance(value, date) else value)
    return number + 0.0 if math.isfinite(number) else None
