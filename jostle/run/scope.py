"""Names in scope: a function sees its own, then those around it; blocks of `if`, `for` and `with` add none.

What the tables of a select are called in its row expressions: `o.cost` is the column `cost` of `orders as o`.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from jostle.diagnostics import did_you_mean, refuse
from jostle.language.forms import ambiguity
from jostle.source import Span
from jostle.syntax import nodes as n


class Scope:
    """`modules`: of the names that came by `use`, the modules that have them. `groups`: names of a select's results.

    `released`: names that came by `release x = E`, which stand back behind columns and whatever else has them.
    """

    __slots__ = ("groups", "modules", "names", "parent", "released")

    def __init__(self, parent: Scope | None = None, names: dict[str, object] | None = None) -> None:
        self.parent = parent
        self.names: dict[str, Any] = {} if names is None else names
        self.groups = False
        self.modules: dict[str, tuple[str, ...]] | None = None
        self.released: frozenset[str] = frozenset()

    def home(self, name: str) -> Scope | None:
        """The scope that has a name: this one, or the nearest around it."""
        scope: Scope | None = self
        while scope is not None and name not in scope.names:
            scope = scope.parent
        return scope

    def find(self, name: str) -> object:
        """The value, or `MISSING`. Refuses a name that several modules have."""
        scope: Scope | None = self
        while scope is not None and name not in scope.names:
            scope = scope.parent
        if scope is None:
            return MISSING
        if scope.modules is not None and len(scope.modules.get(name, ())) > 1:
            raise several(name, scope.modules[name])
        return scope.names[name]

    def holds(self, name: str) -> bool:
        """Whether the name means anything, whatever its value is."""
        return self.home(name) is not None

    def gives(self, names: Collection[str]) -> bool:
        """Whether the program or a module gave one of these names a meaning; what is built in does not count."""
        scope = self
        while scope.parent is not None:
            for name in names:
                if name in scope.names:
                    return True
            scope = scope.parent
        return False

    def variable(self, name: str) -> object:
        """The same of what the program itself gave a value: not built in, and no module's."""
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


def full_name(table: str, column: str) -> str:
    """The name of a copy of a column that another table's hides: no program can write it, and none can give it."""
    return f"{table}`.`{column}"


class Qualifiers:
    """The columns that each name may stand before; of two tables with a column of one name, the first has it."""

    def __init__(self, node: n.Expr | None = None, columns: Collection[str] = (), alias: str | None = None) -> None:
        self._columns: dict[str, Collection[str]] = {}
        self._hidden: set[tuple[str, str]] = set()
        self._copies: set[tuple[str, str]] = set()
        if node is not None:
            self.add(node, columns, alias)

    def add(
        self, node: n.Expr, columns: Collection[str], alias: str | None, on: Collection[str] = (), kind: str = "inner"
    ) -> str:  # fmt: skip
        """A further table; it shares the columns it is joined `on`. Where rows of the other side are kept without a
        partner, these hold the other's keys, and are none of its own: `b.k is missing` would never be true."""
        name = alias or (node.id if isinstance(node, n.Name) else None)
        if name is None:
            name = f"table {len(self._columns) + 1}"  # no program can write it
        if self._columns:
            before = {column for names in self._columns.values() for column in names}
            if kind in ("right", "full"):
                self._hidden |= {(other, column) for other in self._columns for column in on}
            own = () if kind in ("left", "full") else on
            self._hidden |= {(name, column) for column in columns if column in before and column not in own}
        self._columns[name] = columns
        return name

    def apart(self, used: Collection[tuple[str, str]]) -> dict[str, list[str]]:
        """Columns that are hidden and used by a select, as `y.k` in `x left join y on k`, by table: each is to be
        copied under its full name before the join."""
        copies = sorted(one for one in self._hidden.intersection(used) - self._copies if self.has(*one))
        self._copies |= set(copies)
        return {table: [column for of, column in copies if of == table] for table in dict(copies)}

    def column(self, table: str, column: str) -> str:
        """What a column of a table is called in the rows that are joined."""
        return full_name(table, column) if (table, column) in self._copies else column

    def has(self, table: str, column: str) -> bool:
        return column in self._columns.get(table, ())

    def lacks(self, table: str, scope: Scope) -> bool:
        """Whether a name is of a table and of nothing else, so that what stands after it must be a column."""
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
        """The name of the table that a column belongs to, where it has one."""
        for name, columns in self._columns.items():
            if column in columns and (name, column) not in self._hidden:
                return name if " " not in name else None
        return None
