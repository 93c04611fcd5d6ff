"""The aggregates by name: each row of `language.aggregates` has a class here that has its name.

A row without a class, and a class with a part missing, are import errors.
"""

from __future__ import annotations

from importlib import import_module
from inspect import isabstract
from pkgutil import iter_modules

from jostle.language import aggregates as language
from jostle.plan.plan import STATISTICS
from jostle.privacy.measurements import aggregates
from jostle.privacy.measurements.aggregates.aggregate import Aggregate

_MODULES = [name for _, name, _ in iter_modules(aggregates.__path__) if name != "registry"]
_CLASSES = {
    name: value for module in _MODULES
    for name, value in vars(import_module(f"jostle.privacy.measurements.aggregates.{module}")).items()
    if isinstance(value, type) and issubclass(value, Aggregate)
}  # fmt: skip


def _class_of(row: language.AggregateRow) -> type[Aggregate]:
    kind = _CLASSES.get(row.name.title().replace("_", ""))
    if kind is None or isabstract(kind) or kind.row is not row:
        raise ImportError(f"`{row.name}` has no class that is complete and has its row")
    if kind.statistics is Aggregate.statistics and row.name not in STATISTICS:
        raise ImportError(f"`{row.name}` does not say which statistics it is of a public table")
    return kind


AGGREGATES = {row.name: _class_of(row) for row in (*language.AGGREGATES.values(), *language.DISTINCT.values())}
