"""Tables made of other tables and of values: `union(a, b)`."""

from __future__ import annotations

from typing import Any

from jostle.diagnostics import refuse
from jostle.privacy.kernel.handles import Table
from jostle.privacy.transformations.union import union
from jostle.run.registry import builtin
from jostle.run.values import is_sequence, kind_name
from jostle.run.workloads import union_of_workloads


@builtin
def _union(*parts: Any, weights: Any = None) -> Any:
    """`union(a, b)`: all rows of the tables. `union([v, w], [2, 1])`: the answers of the workloads."""
    listed = list(parts[0]) if parts and is_sequence(parts[0]) else list(parts)
    if not any(isinstance(part, Table) for part in listed):
        if len(parts) > 2 or (len(parts) == 2 and weights is not None):
            raise refuse("TypeError", "`union` takes tables, or a list of workloads and perhaps their weights",
                         help="`union(a, b)`; `union([prefixes(c), marginals(c, 1)], [1, 2])`")  # fmt: skip
        return union_of_workloads(parts[0] if parts else None, parts[1] if len(parts) == 2 else weights)
    if weights is not None or (len(parts) > 1 and is_sequence(parts[0])):
        raise refuse("TypeError", "a union of tables has no weights", help="`union(a, b)`, or `union([a, b])`")
    for part in listed:
        if not isinstance(part, Table):
            raise refuse("TypeError", f"a union is of tables, and this is {kind_name(part)}")
    return union(listed)
