"""What the tables of a select are called in its row expressions: `o.cost` is the column `cost` of `orders as o`."""

from __future__ import annotations

from collections.abc import Collection

from jostle.diagnostics import refuse
from jostle.run.scope import MISSING, Scope
from jostle.source import Span
from jostle.syntax import nodes as n


class Qualifiers:
    """The columns that each name may stand before; of two tables with a column of one name, the first has it."""

    def __init__(self) -> None:
        self._columns: dict[str, Collection[str]] = {}
        self._hidden: set[tuple[str, str]] = set()

    @staticmethod
    def of(node: n.Expr, columns: Collection[str], alias: str | None = None) -> Qualifiers:
        tables = Qualifiers()
        tables.add(node, columns, alias)
        return tables

    def add(self, node: n.Expr, columns: Collection[str], alias: str | None, on: Collection[str] = ()) -> None:
        """A further table; it shares the columns it is joined `on`."""
        name = alias or (node.id if isinstance(node, n.Name) else None)
        if name is None:
            name = f"table {len(self._columns) + 1}"  # no program can write it
        if self._columns:
            before = {column for listed in self._columns.values() for column in listed}
            self._hidden |= {(name, column) for column in columns if column in before and column not in on}
        self._columns[name] = columns

    def has(self, table: str, column: str) -> bool:
        return column in self._columns.get(table, ())

    def lacks(self, table: str, scope: Scope) -> bool:
        """Whether a name is of a table and of nothing else, so that what stands after it must be a column."""
        return table in self._columns and scope.find(table) is MISSING

    def need_visible(self, table: str, column: str, span: Span) -> None:
        if (table, column) in self._hidden:
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
