"""Functions of the library in Python; and what a kernel says to the person who called it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar


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
