"""Names in scope: a function sees its own, then those around it; blocks of `if`, `for` and `with` add none."""

from __future__ import annotations

from typing import Any

from jostle.diagnostics import did_you_mean, refuse
from jostle.language.forms import ambiguity


class Scope:
    """`modules`: of the names that came by `use`, the modules that have them. `groups`: names of a select's results.

    `released`: names that came by `release x = E`, which stand back behind columns and whatever else has them.
    """

    __slots__ = ("groups", "modules", "names", "parent", "released")

    def __init__(self, parent: Scope | None = None, names: dict[str, Any] | None = None) -> None:
        self.parent = parent
        self.names: dict[str, Any] = {} if names is None else names
        self.groups = False
        self.modules: dict[str, tuple[str, ...]] | None = None
        self.released: frozenset[str] = frozenset()

    def find(self, name: str) -> Any:
        """The value, or `MISSING`. Refuses a name that several modules have."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                if scope.modules is not None and len(scope.modules.get(name, ())) > 1:
                    raise several(name, scope.modules[name])
                return scope.names[name]
            scope = scope.parent
        return MISSING

    def holds(self, name: str) -> bool:
        """Whether the name means anything, whatever its value is."""
        scope: Scope | None = self
        while scope is not None and name not in scope.names:
            scope = scope.parent
        return scope is not None

    def variable(self, name: str) -> Any:
        """The same of what the program itself gave a value: not built in, and no module's."""
        scope: Scope | None = self
        while scope is not None and name not in scope.names:
            scope = scope.parent
        if scope is None or scope.parent is None or (scope.modules is not None and name in scope.modules):
            return MISSING
        if name in scope.released:
            return MISSING
        return scope.names[name]

    def outside_rows(self) -> Scope:
        """This scope without the names of the groups of a select."""
        scope = self
        while scope.groups and scope.parent is not None:
            scope = scope.parent
        return scope

    def get(self, name: str) -> Any:
        value = self.find(name)
        if value is MISSING:
            raise refuse("NameError", f"unknown name `{name}`", help=did_you_mean(name, self.visible()))
        return value

    def set(self, name: str, value: object) -> None:
        self.names[name] = value
        if self.released:
            self.released -= {name}
        if self.modules is not None:
            self.modules.pop(name, None)

    def release(self, name: str, value: object) -> None:
        """Gives a name to what is released under it, unless the name means something else already."""
        if name in self.released or self.find(name) is MISSING:
            self.names[name] = value
            self.released |= {name}

    def bring(self, name: str, value: object, module: str, *, built_in: bool) -> None:
        """Gives a name of a module, unless the program has one; what two bring is refused where it is used."""
        if self.modules is None:
            self.modules = {}
        if name in self.names and name not in self.modules:
            return
        before = self.modules.get(name, ("",) if built_in else ())
        same = self.names.get(name) is value
        self.modules[name] = (module,) if same and len(before) < 2 else tuple(dict.fromkeys((*before, module)))
        self.names[name] = value

    def visible(self) -> list[str]:
        scope: Scope | None = self
        out: list[str] = []
        while scope is not None:
            out.extend(scope.names)
            scope = scope.parent
        return out


def several(name: str, modules: tuple[str, ...]) -> Exception:
    """The refusal of a name that several modules have."""
    message, help = ambiguity(name, modules)
    return refuse("NameError", message, help=help)


class Missing:
    """What `find` gives for a name that is nowhere."""


MISSING = Missing()
