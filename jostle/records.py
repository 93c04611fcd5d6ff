"""Values with named fields, of either kind: structs (`msgspec`), which most are, and data classes.

A class of the one kind is created in a fiftieth of the time of the other, and a value of it in an eighth; data classes
remain where a class needs abstract methods or properties that are calculated once.
"""

from __future__ import annotations

import dataclasses
from typing import TypeVar

from msgspec import Struct, structs

T = TypeVar("T")


def replace(value: T, /, **changes: object) -> T:
    """A copy of `value` with some fields changed. Raises `TypeError` for a name that is no field."""
    if isinstance(value, Struct):
        return structs.replace(value, **changes)
    return dataclasses.replace(value, **changes)  # type: ignore[type-var]


def is_record(value: object) -> bool:
    """Whether it is a value with named fields, and no class of such."""
    return isinstance(value, Struct) or (dataclasses.is_dataclass(value) and not isinstance(value, type))


def as_dict(value: object) -> dict[str, object]:
    """The fields of a record by name; records in it, also in lists, tuples and mappings, likewise."""
    return {name: _plain(getattr(value, name)) for name in field_names(type(value))}


def _plain(value: object) -> object:
    if is_record(value):
        return as_dict(value)
    if isinstance(value, list | tuple):
        return type(value)(map(_plain, value))
    return {key: _plain(item) for key, item in value.items()} if isinstance(value, dict) else value


def field_names(kind: object) -> tuple[str, ...]:
    """The names of the fields that a class of records is called with, in order; none of any other class."""
    names: tuple[str, ...] | None = getattr(kind, "__struct_fields__", None)
    if names is not None:
        return names
    return (
        tuple(field.name for field in dataclasses.fields(kind) if field.init) if dataclasses.is_dataclass(kind) else ()
    )
