"""What a row of the table of operations says. Everything that any pass needs stands in the row."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

from msgspec import Struct

from jostle.language.intervals import Interval

NUMBER, TEXT, BOOLEAN, DATE, TIME, ANY = "number", "text", "boolean", "date", "time", "any"
"""The kinds of values in a row; `ANY` is any of them."""


class Whole(Enum):
    """When a result is a whole number."""

    ALWAYS = "always"
    FROM_WHOLE = "where all operands are"
    NEVER = "not known to be"


class Operation(Struct, frozen=True, eq=False):
    """An operation on the values of a row.

    `takes`: the kinds of its operands, numbers where nothing is said; `gives`: the kind of what it gives. The last
    `constants` operands are public constants, which `check` may refuse before anything runs. What it is: for numbers
    `columns`, on columns of doubles, given NumPy first, and in a program `number`, which may raise ValueError or
    OverflowError; for other kinds `value`, on values that are not missing, where None is missing. `bounds`: of numbers
    that it gives for operands within bounds; None where there are none. `rises`: it grows with each operand. `about` is
    for people, and only functions have it: what a program calls by name.
    """

    name: str
    arity: int
    bounds: Callable[..., Interval | None]
    columns: Callable[..., Any] | None = None
    whole: Whole = Whole.NEVER
    number: Callable[..., float] | None = None
    rises: bool = False
    about: str = ""
    signature: str = "value"
    each: bool = False  # a program may apply it to each number of a list
    many: bool = False  # a program may apply it to several numbers, or to a list
    takes: tuple[str, ...] = ()
    gives: str = NUMBER
    constants: int = 0
    optional: int = 0  # further operands that a program may give, which make it another operation
    check: Callable[..., None] | None = None  # raises ValueError with what is wrong
    value: Callable[..., Any] | None = None

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of its operands."""
        return self.takes or (NUMBER,) * self.arity


def unbounded(*_: object) -> None:
    """No bounds, whatever the operands are."""
