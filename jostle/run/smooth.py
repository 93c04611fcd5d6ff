"""Selects `via smooth`: counts of joins of private tables without a bound, and what they are not."""

from __future__ import annotations

from collections.abc import Sequence

from jostle.diagnostics import Refusal, refuse
from jostle.syntax import nodes as n


def need_inner(joined: n.Join, bounded: bool) -> None:
    """Refuses what is not a plain join beside, or after, one without a bound."""
    if joined.kind != "inner":
        raise refuse(
            "TypeError", f"a {joined.kind} join of private tables needs `up to`", joined.span,
            help="`via smooth` counts the pairs of a `join`",
        )  # fmt: skip
    if bounded:
        raise refuse(
            "TypeError", "after a join without a bound stands one that has one", joined.span,
            help="put the joins `up to …` and `on person` first",
        )  # fmt: skip


def placed(refusal: Refusal, node: n.Select, calls: Sequence[n.Call]) -> Refusal:
    """A refusal of such a select at the part of it that it is about."""
    if refusal.first.kind == "BadAmount" and node.spend is not None:
        return refusal.at(node.spend.span)
    if refusal.first.kind == "OpenKeys" and node.keys:
        return refusal.at(node.keys[0].span)
    return refusal.at(calls[-1].span if calls else node.span)


def smooth_wish(spend: n.Spend) -> Refusal:
    """Of one that says an error or a weight, or stands in a `jointly` block."""
    return refuse(
        "TypeError", "the noise of `via smooth` depends on the data: its error cannot be asked for, nor shared",
        spend.span, help="give the select an amount of its own, `with epsilon 1 delta 1e-6 via smooth`",
    )  # fmt: skip
