"""Names in scope: a function sees its own, then those around it; blocks of `if`, `for` and `with` add none."""

from __future__ import annotations

from typing import Any

from jostle.diagnostics import did_you_mean, refuse


class Scope:
    __slots__ = ("names", "parent")

    def __init__(self, parent: Scope | None = None, names: dict[str, Any] | None = None) -> None:
        self.parent = parent
        self.names: dict[str, Any] = {} if names is None else names

    def find(self, name: str) -> Any:
        """The value, or `MISSING`."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.parent
        return MISSING

    def get(self, name: str) -> Any:
        value = self.find(name)
        if value is MISSING:
            raise refuse("NameError", f"unknown name `{name}`", help=did_you_mean(name, self.visible()))
        return value

    def set(self, name: str, value: Any) -> None:
        self.names[name] = value

    def visible(self) -> list[str]:
        scope: Scope | None = self
        out: list[str] = []
        while scope is not None:
            out.extend(scope.names)
            scope = scope.parent
        return out


class Missing:
    """What `find` gives for a name that is nowhere."""


MISSING = Missing()
