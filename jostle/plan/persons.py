"""Whose the rows of a plan are: known where each row is one person's, and lost where rows of several meet."""

from __future__ import annotations

from jostle.plan.plan import Bound, Column, Derive, Filter, GroupRows, Join, Known, Listed, Plan, Scan, Truncate, Union


def has_persons(plan: Plan) -> bool:
    """Whether each row of a plan is known to be one person's, so that an engine can tell whose.

    A join of two such sides keeps this only where it is of each person's own rows, and one that keeps some rows a key
    does not: there a row of one person takes the place of another's. Nor does one that keeps rows of the other
    side that have no partner.
    """
    while isinstance(plan, Filter | Derive | Truncate):
        plan = plan.source
    match plan:
        case Bound():
            return True
        case Join():
            left, right = has_persons(plan.left), has_persons(plan.right)
            one_side = left != right and plan.kind in ("inner", "left" if left else "right")
            return plan.person or (plan.most is None and one_side)
        case GroupRows():
            return plan.person
        case Union(sources=sources):
            return all(map(has_persons, sources))
        case Scan() | Known() | Listed():
            return False
    return False


def person_columns(plan: Plan) -> frozenset[str]:
    """The columns of a plan that hold the one protected column as it was described, under whatever name.

    Those of an exploded table too: all its rows are of the rows of one table, in which a person has one value of them.
    Where a union is of several tables, each may describe its column in its own way.
    """
    match plan:
        case Filter() | Truncate():
            return person_columns(plan.source)
        case Derive():
            inner = person_columns(plan.source)
            return frozenset(name for name, expr in plan.columns if isinstance(expr, Column) and expr.name in inner)
        case Bound():
            return frozenset(plan.by) & {name for name, _ in plan.scan.columns} if len(plan.by) == 1 else frozenset()
        case Join() if has_persons(plan):
            sides = [side for side in (plan.left, plan.right) if has_persons(side)]
            return frozenset().union(*map(person_columns, sides[:1]))
        case Union(sources=sources) if len({_below(source) for source in sources}) == 1:
            return frozenset.intersection(*map(person_columns, sources))
    return frozenset()


def _below(plan: Plan) -> Plan:
    """What a plan calculates its columns from, row by row."""
    while isinstance(plan, Filter | Truncate | Derive):
        plan = plan.source
    return plan
