"""Tables of the persons of another one, under its budget: `protecting people.id on customer`.

Where the column named is the one that tells whose a row is there, it does so here. Where it is another column, as in
`protecting orders.number on order`, the persons of a row are looked up: they are those of the orders of that number.
"""

from __future__ import annotations

from typing import Any

from jostle.diagnostics import refuse
from jostle.plan.domains import Open
from jostle.plan.plan import Bound, Filter, Owners
from jostle.privacy.kernel.handles import Table
from jostle.privacy.reading.minting import private_table
from jostle.records import replace
from jostle.run.clauses import described_schema, unit_of
from jostle.run.evaluator import Evaluator
from jostle.run.origins import announce, check_columns, is_array, open_origin, origin_of
from jostle.run.scope import Scope
from jostle.run.simulated import simulated_rows
from jostle.source import Span
from jostle.syntax import nodes as n


def linked(
    interp: Evaluator, node: n.Private, call: n.Call, kind: str, protecting: n.Protecting, scope: Scope
) -> Table:
    """Declares a table of the persons of another one that was declared above."""
    owner = scope.find(protecting.linked)
    if not (isinstance(owner, Table) and len(owner.exposures) == 1 and owner.origin is not None):
        raise refuse(
            "NameError", f"`{protecting.linked}` is no private table that was declared above", protecting.span,
            help=f"declare it first: `private {protecting.linked} = table(…) … protecting {protecting.key}`",
        )  # fmt: skip
    source, unit = owner.exposures[0].source, unit_of(interp, protecting, scope)
    owners = owners_by(owner, protecting.key, unit.columns[0], protecting.span)
    if node.budget is not None:
        raise refuse(
            "DataError", f"`{node.name}` has the budget of `{source.name}`, whose persons it is of", node.budget.span,
            help="leave the `budget` clause out",
        )  # fmt: skip
    if node.described is None or kind == "counts":
        raise refuse("DataError", f"`{node.name}` is not described", node.span, help="add `described by {…}`")
    schema = described_schema(interp, node.described, scope)
    if interp.simulate is not None:
        told = {unit.columns[0]: owner.domains.get(protecting.key, Open("text"))}
        key = simulated_rows(interp, node, schema, told, interp.simulate + len(interp.kernel.register.names))
        interp.kernel.register.link(node.name, ("simulated", node.name), source, unit, node.span)
    else:
        origin = origin_of(interp, call, scope)
        if is_array(origin):
            raise refuse("DataError", "counts have no columns to protect", node.span, help="link a table")
        names = (*(name for name, _ in schema), *unit.columns)
        data = open_origin(interp, origin, node.source.span, public=False, names=names)
        check_columns(schema, data, node.described.span, private=True)
        check_columns([(unit.columns[0], None)], data, protecting.span, private=True)
        interp.kernel.register.link(node.name, data.identity, source, unit, node.span)
        key = data.key
    announce(interp, source, node, [name for name, _ in schema], unit=str(unit))
    return interp.looks.described(private_table(source, key, schema, unit, owners), node.described)


def owners_by(owner: Any, key: str, on: str, span: Span | None) -> Owners | None:
    """How the persons of rows are found by their column `on`, which has values of the column `key` of `owner`.

    None where that column itself tells whose a row is. Refused where a table has no persons, or no such column.
    """
    plan = owner.plan if isinstance(owner, Table) else None
    while isinstance(plan, Filter):
        plan = plan.source
    if isinstance(plan, Bound) and plan.by == (key,):
        return None
    if not isinstance(plan, Bound) or plan is not owner.plan or key not in owner.domains:
        name, unit = owner.exposures[0].source.name, owner.exposures[0].unit
        raise refuse(
            "DataError", f"whose a row is cannot be told by `{key}`, which is no column of persons of `{name}`", span,
            help=f"it is declared `protecting {unit}`; another column that rows refer to has to be described there",
        )  # fmt: skip
    return Owners(replace(plan, most=None, weighted=False), key, on)
