"""Selects `via smooth`, which are of joins of private tables without a bound: what a run and a check say of others."""

from __future__ import annotations

from collections.abc import Sequence

from jostle.diagnostics import Diagnostic
from jostle.noise_laws import SmoothLaplace
from jostle.syntax import nodes as n


def is_smooth(node: n.Select) -> bool:
    via = node.spend.via if node.spend is not None else None
    return isinstance(via, n.Name) and via.id == SmoothLaplace.name


def joins_freely(joins: Sequence[n.Join], private: Sequence[bool]) -> bool:
    """Whether two private tables meet without a bound, of a table and those that it is joined with."""
    met, *others = private
    for joined, own in zip(joins, others, strict=True):
        if own and met and joined.up_to is None:
            return True
        met = met or own
    return False


def no_free_join(node: n.Select) -> Diagnostic:
    """Of a select whose joins have bounds, or that has none."""
    if any(joined.up_to is not None for joined in node.joins):
        help = "leave the `up to` of the join of two private tables out, or `via smooth`"
    else:
        help = "leave it out: here the noise is the same for all data"
    span = node.spend.span if node.spend is not None else node.span
    return Diagnostic("TypeError", "`via smooth` is for joins of private tables without `up to`", span, help=help)
