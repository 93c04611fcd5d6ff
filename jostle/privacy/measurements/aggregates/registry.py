"""The aggregates by name: each row of `language.aggregates` has a module of its name here, with one class.

A row without a module, a module without a class, and a class with a part missing are import errors.
"""

from __future__ import annotations

from importlib import import_module
from inspect import isabstract

from jostle.language import aggregates as language
from jostle.plan.plan import STATISTICS
from jostle.privacy.measurements.aggregates.aggregate import Aggregate


def _class_of(row: language.AggregateRow) -> type[Aggregate]:
    module = import_module(f"jostle.privacy.measurements.aggregates.{row.name}")
    classes = [
        value for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Aggregate) and value.__module__ == module.__name__
    ]  # fmt: skip
    if len(classes) != 1 or isabstract(classes[0]) or classes[0].row is not row:
        raise ImportError(f"the module of `{row.name}` has no class that is complete and has its row")
    if classes[0].statistics is Aggregate.statistics and row.name not in STATISTICS:
        raise ImportError(f"`{row.name}` does not say which statistics it is of a public table")
    return classes[0]


AGGREGATES = {row.name: _class_of(row) for row in (*language.AGGREGATES.values(), *language.DISTINCT.values())}
