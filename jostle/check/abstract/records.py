"""Weighted records before the run: on which paths they lie, and which columns they have, as `run.records` makes
them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jostle.check.abstract.values import (
    PUBLIC,
    TOP,
    Handle,
    OneOf,
    joined_exposures,
    reached_sources,
)  # fmt: skip
from jostle.records import replace


def of_call(function: str, args: Sequence[Any], name: Any) -> Any:
    """What a built-in makes of its arguments, records or a table; `name` is the column that it is told to add."""
    handles = [arg for arg in args if isinstance(arg, Handle)]
    reached = reached_sources(*args)
    if reached.open:
        return TOP
    if not handles or not reached.certain:
        result = Handle("records", reached.exposures)
        return result if reached.certain else OneOf((result, PUBLIC))
    exposures = joined_exposures(handles)
    if len(handles) > 1:
        exposures = tuple(replace(e, joined=True) for e in exposures)
    trail = next((handle.trail for handle in handles if handle.trail), ())
    return Handle("records", exposures, _schema(function, handles, args, name), trail=trail)


def _schema(function: str, handles: Sequence[Handle], args: Sequence[Any], name: Any) -> dict[str, Any] | None:
    """The columns, where all are known."""
    first = handles[0].schema
    if first is None:
        return None
    match function:
        case "weighted":
            return dict(first)
        case "joined":
            other = handles[1].schema if len(handles) > 1 else None
            return None if other is None else {**other, **first}
        case "shave" | "grouped":
            added = name if name is not None else "place" if function == "shave" else "size"
            if not isinstance(added, str):
                return None
            by = args[1] if len(args) > 1 else None
            kept: list[Any] = list(first) if function == "shave" else by if isinstance(by, list) else [by]
            if not all(isinstance(column, str) and column in first for column in kept):
                return None
            return {**{column: first[column] for column in kept}, added: PUBLIC}
    return dict.fromkeys(first, PUBLIC)
