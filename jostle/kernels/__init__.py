"""Functions of the library in Python; and what a kernel says to the person who called it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Annotated, ClassVar


class KernelError(ValueError):
    """Wrong arguments, in words that a message of the language may quote: of public values, and of nothing private."""


class Model:
    """A public value with a face of its own: a classifier, a graphical model, a mixture, a report.

    `jostle_kind` is what a person calls it, `jostle_members` what a program can ask of it, by name, and the attribute
    here that has it, whose annotation says of what kind it is; a method there is a method of the language. A release is
    written as `as_json()`, and printed as `str` has it.
    """

    __slots__ = ()
    jostle_kind: ClassVar[str]
    jostle_members: ClassVar[Mapping[str, str]]

    @property
    def jostle_fields(self) -> Mapping[str, object]:
        return {name: getattr(self, at) for name, at in self.jostle_members.items()}


def members(names: str, **others: str) -> dict[str, str]:
    """Members of a model: `names` are those that are called as their attributes, `others` are not."""
    return {name: name for name in names.split()} | others


def need_row(row: object) -> None:
    """Refuses what is no row of a model that predicts; also before anything is paid for it."""
    if not isinstance(row, Mapping):
        several = "of several public ones, [m.predict(row) for row in rows]"
        raise KernelError(f"a row is a record of its cells, such as {{age: 40}}; {several}")


Row = Annotated[Mapping[str, object], need_row]


def columns_of_row(row: Row, attributes: Collection[str]) -> dict[str, list[object]]:
    """The cells of a row as columns of one cell; refuses a row that has nothing that a model with attributes reads."""
    need_row(row)
    if attributes and not any(name in row for name in attributes):
        raise KernelError(f"the row has none of the model's attributes, {', '.join(sorted(attributes))}")
    return {name: [cell] for name, cell in row.items()}
