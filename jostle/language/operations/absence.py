"""What a row may ask of a value that is missing. All other operations pass it on."""

from __future__ import annotations

from typing import Any

from jostle.language.operations.operation import ANY, BOOLEAN, Operation, unbounded


def first(*values: Any) -> Any:
    """The first of several values that is not missing."""
    return next((value for value in values if value is not None), None)


ABSENCE = (
    Operation("missing", 1, unbounded, takes=(ANY,), gives=BOOLEAN,
              value=lambda value: value is None),
    Operation("coalesce", 1, unbounded, takes=(ANY,), gives=ANY, value=first, signature="value, *others",
              about="The first of several values that is not none."),
)  # fmt: skip
