"""Public values of a program as Python users expect them: numbers, arrays, lists, dicts and frames."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any


def to_python(value: object) -> Any:
    """A public value of a program as Python users expect it."""
    from jostle.run.values import Grouped, Interval, JSet, is_number, is_sequence

    if isinstance(value, Grouped):
        import pandas

        from jostle.run.margins import with_ends

        columns = with_ends(dict(value.columns))
        return pandas.DataFrame({name: _column(list(values)) for name, values in columns.items()})
    if isinstance(value, dict):
        return {name: to_python(item) for name, item in value.items()}
    if isinstance(value, (JSet, Interval)) or (is_sequence(value) and isinstance(value, (list, tuple))):
        items = list(value)
        if items and all(is_number(item) for item in items):
            import numpy as np

            return np.array(items, dtype=float)
        return [to_python(item) for item in items]
    return value


def _column(values: list[Any]) -> Any:
    """A column of a frame: ints where all of its numbers are whole, as counts are, other numbers as they are; dates and
    times as NumPy has them, of any year."""
    if values and all(isinstance(value, date) for value in values):
        import numpy as np

        return np.array(values, dtype=f"datetime64[{'us' if isinstance(values[0], datetime) else 's'}]")
    whole = all(isinstance(value, float) and value.is_integer() and abs(value) < 2**53 for value in values)
    return [int(value) for value in values] if whole else values
