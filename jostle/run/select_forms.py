"""What the text of a select says, whatever its tables hold: its results, their aggregates and the names of its keys.

It is found once for each select and the columns that it reads, however often a program comes by.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import cast

from jostle.diagnostics import Refusal, refuse
from jostle.language.forms import PERSON, aggregates, keys_by_alias, lone_column, persons_by_column
from jostle.language.freejoins import is_smooth
from jostle.language.other_languages import way
from jostle.privacy.kernel.handles import Cube, Table
from jostle.run import persons
from jostle.run.evaluator import Evaluator
from jostle.syntax import nodes as n
from jostle.syntax.walk import key_names


@dataclass(frozen=True)
class Output:
    """A column of the result: its name, its expression, and the aggregates in it."""

    name: str
    value: n.Expr
    calls: tuple[n.Call, ...]

    @staticmethod
    def of(column: n.Column) -> Output:
        name, value = column.name, column.value
        if name is None and isinstance(value, n.Call) and isinstance(value.function, n.Name):
            name = value.function.id
        return Output(name or "value", value, tuple(aggregates(value)))


@dataclass(frozen=True)
class SelectForm:
    """`node` has its keys and persons written out: `group by decade` by what `decade` stands for."""

    node: n.Select
    outputs: tuple[Output, ...]

    @staticmethod
    def of(interp: Evaluator, node: n.Select, table: Table | Cube) -> SelectForm:
        """The form of a select that reads this table, or joins that give it."""
        columns, protected = tuple(name for name, _ in table.schema), tuple(persons.protected(table))
        key = (id(node), columns, protected)
        if key not in interp.select_forms:
            meant = persons_by_column(keys_by_alias(node, columns), columns, protected)
            form = SelectForm(meant, tuple(map(Output.of, meant.columns)))
            interp.select_forms[key] = (node, form)  # which holds the node, so that no other has its id
        return cast("SelectForm", interp.select_forms[key][1])

    @cached_property
    def calls(self) -> tuple[n.Call, ...]:
        """The aggregates of all results."""
        return tuple(call for output in self.outputs for call in output.calls)

    @cached_property
    def key_names(self) -> tuple[str, ...]:
        return tuple(key_names([(key.value, key.name) for key in self.node.keys], self.node.columns))

    @cached_property
    def is_smooth(self) -> bool:
        return is_smooth(self.node)

    def place(self, refusal: Refusal) -> Refusal:
        """A refusal of the request at the part of the select that it is about."""
        if refusal.first.span is not None:
            return refusal
        if refusal.first.kind == "OpenKeys" and self.node.keys:
            return refusal.at(self.node.keys[0].value.span)
        return refusal.at(self.calls[0].span if len(self.calls) == 1 else self.node.span)

    def need_aggregates(self, table: Table | Cube) -> None:
        """Refuses a result that would hand out rows."""
        for output in self.outputs:
            if output.calls:
                continue
            span = output.value.span
            if isinstance(output.value, n.Name) and self.calls:
                message, help = lone_column(output.value, self.node.keys)
                raise refuse("TypeError", message, span, help=help)
            if table.private:
                name = table.exposures[0].source.name
                raise refuse(
                    "PrivateValue", f"a select gives aggregates, and this would give rows of `{name}`", span,
                    help=way(span.text) or "count, sum, or average it: `select avg(age) from …`",
                )  # fmt: skip
            raise refuse("TypeError", "a select gives aggregates, not rows", span, help="such as `count(*)`")

    def need_distinct_names(self, keys: list[str]) -> None:
        """Refuses two columns of one name among the keys and the results."""
        names = [*keys, *(output.name for output in self.outputs)]
        for at, name in enumerate(names):
            if name in names[:at]:
                message = f"two columns of this select are named `{name}`"
                raise refuse("NameError", message, self.node.span, help="name one: `… as n`")

    def counts_persons(self, table: Table | Cube) -> n.Call | None:
        """`count(distinct person)` among the aggregates, which stands alone where it is written by that word."""
        counted = [call for call in self.calls if isinstance(table, Table) and _is_of_persons(call, table)]
        if counted and len(self.calls) > 1 and names_person(counted[0]):
            raise refuse(
                "TypeError", "persons are counted apart from rows, by which they weigh differently", counted[0].span,
                help="give `count(distinct person)` a select of its own",
            )  # fmt: skip
        return counted[0] if len(self.calls) == 1 and counted else None


def _is_of_persons(call: n.Call, table: Table) -> bool:
    if not (isinstance(call.function, n.Name) and call.function.id == "count" and len(call.args) == 1):
        return False
    (arg,) = call.args
    return table.private and isinstance(arg, n.Distinct) and persons.is_person(arg.value, table)


def names_person(call: n.Call) -> bool:
    """Whether it counts what is written as `person`."""
    arg = call.args[0]
    return isinstance(arg, n.Distinct) and isinstance(arg.value, n.Name) and arg.value.id == PERSON
