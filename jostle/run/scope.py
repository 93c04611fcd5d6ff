"""Scopes of names: a function has one inside the enclosing scope; blocks of `if`, `for` and `with` have none.

Also the names of tables in row expressions of a select: `o.cost` is the column `cost` of `orders as o`.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from jostle.diagnostics import did_you_mean, refuse
from jostle.language.forms import ambiguity
from jostle.source import Span
from jostle.syntax import nodes as n


class Scope:
    """One scope. `modules` has for each name from `use` the modules that define it; `groups` has the names of a
    select's results. `released` are names from `release x = E`, which yield to columns and any other meaning.
    """

    __slots__ = ("groups", "modules", "names", "parent", "released")

    def __init__(self, parent: Scope | None = None, names: dict[str, object] | None = None) -> None:
        self.parent = parent
        self.names: dict[str, Any] = {} if names is None else names
        self.groups = False
        self.modules: dict[str, tuple[str, ...]] | None = None
        self.released: frozenset[str] = frozenset()

    def home(self, name: str) -> Scope | None:
        """The nearest scope that has a name."""
        scope: Scope | None = self
        while scope is not None and name not in scope.names:
            scope = scope.parent
        return scope

    def find(self, name: str) -> object:
        """The value of a name, or `MISSING`. Refuses a name that several modules define."""
        scope: Scope | None = self
        while scope is not None and name not in scope.names:
            scope = scope.parent
        if scope is None:
            return MISSING
        if scope.modules is not None and len(scope.modules.get(name, ())) > 1:
            raise several(name, scope.modules[name])
        return scope.names[name]

    def holds(self, name: str) -> bool:
        """Whether the name is defined."""
        return self.home(name) is not None

    def gives(self, names: Collection[str]) -> bool:
        """Whether the program or a module defines one of these names; built-ins do not count."""
        scope = self
        while scope.parent is not None:
            for name in names:
                if name in scope.names:
                    return True
            scope = scope.parent
        return False

    def variable(self, name: str) -> object:
        """The value of a name that the program itself defines, or `MISSING`."""
        scope: Scope | None = self
        while scope is not None and name not in scope.names:
            scope = scope.parent
        if scope is None or scope.parent is None or (scope.modules is not None and name in scope.modules):
            return MISSING
        if name in scope.released:
            return MISSING
        return scope.names.get(name)

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
        """Defines a released name, unless it has another meaning."""
        if name in self.released or self.find(name) is MISSING:
            self.names[name] = value
            self.released |= {name}

    def bring(self, name: str, value: object, module: str, *, built_in: bool) -> None:
        """Defines a name of a module, unless the program does. A name of two modules is refused when used."""
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
    """The refusal of a name that several modules define."""
    message, help = ambiguity(name, modules)
    return refuse("NameError", message, help=help)


class Missing:
    """The type of `MISSING`, the result of `find` for an undefined name."""


MISSING = Missing()


def full_name(table: str, column: str) -> str:
    """The name of the copy of a hidden column. Programs cannot write it."""
    return f"{table}`.`{column}"


class Qualifiers:
    """The columns by the names of tables. If two tables have a column of one name, it belongs to the first."""

    def __init__(self, node: n.Expr | None = None, columns: Collection[str] = (), alias: str | None = None) -> None:
        self._columns: dict[str, Collection[str]] = {}
        self._hidden: set[tuple[str, str]] = set()
        self._copies: set[tuple[str, str]] = set()
        if node is not None:
            self.add(node, columns, alias)

    def add(
        self, node: n.Expr, columns: Collection[str], alias: str | None, on: Collection[str] = (), kind: str = "inner"
    ) -> str:  # fmt: skip
        """Adds a table, which shares the columns it is joined `on`. If unmatched rows of the other side are kept, these
        columns have the other's keys and are not its own: `b.k is missing` would never be true."""
        name = alias or (node.id if isinstance(node, n.Name) else None)
        if name is None:
            name = f"table {len(self._columns) + 1}"  # programs cannot write it
        if self._columns:
            before = {column for names in self._columns.values() for column in names}
            if kind in ("right", "full"):
                self._hidden |= {(other, column) for other in self._columns for column in on}
            own = () if kind in ("left", "full") else on
            self._hidden |= {(name, column) for column in columns if column in before and column not in own}
        self._columns[name] = columns
        return name

    def apart(self, used: Collection[tuple[str, str]]) -> dict[str, list[str]]:
        """Hidden columns that a select uses, such as `y.k` in `x left join y on k`, by table. They are copied under
        their full names before the join."""
        copies = sorted(one for one in self._hidden.intersection(used) - self._copies if self.has(*one))
        self._copies |= set(copies)
        return {table: [column for of, column in copies if of == table] for table in dict(copies)}

    def column(self, table: str, column: str) -> str:
        """The name of a table's column in the joined rows."""
        return full_name(table, column) if (table, column) in self._copies else column

    def has(self, table: str, column: str) -> bool:
        return column in self._columns.get(table, ())

    def lacks(self, table: str, scope: Scope) -> bool:
        """Whether a name is only the name of a table, so that it must be followed by a column."""
        return table in self._columns and scope.find(table) is MISSING

    def need_visible(self, table: str, column: str, span: Span) -> None:
        if (table, column) in self._hidden - self._copies:
            other = self.owner(column)
            raise refuse(
                "NameError", f"`{column}` of `{table}` is hidden by that of another table", span,
                help=f"give it a name of its own first: `derive({table}, its_{column} = {column})`"
                + (f"; `{other}.{column}` is the other" if other else ""),
            )  # fmt: skip

    def owner(self, column: str) -> str | None:
        """The name of a column's table; None without one."""
        for name, columns in self._columns.items():
            if column in columns and (name, column) not in self._hidden:
                return name if " " not in name else None
        return None
