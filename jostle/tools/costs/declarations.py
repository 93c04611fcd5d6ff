"""Declarations before the run: private sources with their limits, public ones, and what lies outside a program.

Nothing is opened. Two declarations are of one source where the world, asked for the identity of a file, says so.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from jostle.language.forms import DIMENSIONS, source_kind
from jostle.run.scope import Scope
from jostle.syntax import nodes as n
from jostle.tools.costs.values import (
    PUBLIC,
    TOP,
    Exposure,
    Handle,
    Range,
    Set,
    SourceFact,
    quanta,
)  # fmt: skip
from jostle.tools.costs.walk import Walk


def _may_be_one(identity: Hashable, other: Hashable) -> bool:
    """Whether two sources may have data in common; files of one table are a set of names."""
    if isinstance(identity, frozenset) and isinstance(other, frozenset):
        return not identity.isdisjoint(other)
    return identity is None or other in (identity, None)


# Sources -----------------------------------------------------------------------------------------


def declared_source(w: Walk, node: n.Private, scope: Scope) -> object:
    """The handle of a private source; of one declared twice, both names share what is spent."""
    call = node.source
    kind = source_kind(call)
    args = [w.eval(arg, scope) for arg in call.args] if isinstance(call, n.Call) else []
    schema = _schema(w.eval(node.described, scope)) if node.described is not None else None
    unit, limit, delta = _budget(w, node, scope)
    identity = w.identity(kind, args)
    if node.protecting is not None and node.protecting.linked:
        return _linked(w, node, schema, identity, scope)
    source = next((old for old, other in w.identities if _may_be_one(identity, other)), None)
    public_size = node.protecting is not None and node.protecting.public_size
    if source is None:
        source = SourceFact(
            node, [], unit, limit, delta, public_size, node.budget.counted_by or "" if node.budget is not None else "",
            single=node.protecting is not None and not node.protecting.columns and not public_size,
        )  # fmt: skip
        w.sources.append(source)
        w.identities.append((source, identity))  # where an identity is not known, the two may be one
    else:
        source.inexact, source.single = True, False
        source.public_size = source.public_size and public_size
    source.names += [node.name] if node.name not in source.names else []
    if kind == "dataset":  # its owner says the rest, and what was answered before is free
        source.inexact = True
    elif kind == "counts" or schema is None:
        return Handle("cube", (Exposure(source),), _dimensions(args), object(), True)
    return Handle("table", (Exposure(source),), schema, object(), True)


def _budget(w: Walk, node: n.Private, scope: Scope) -> tuple[str, int | None, int | None]:
    """The unit, the limit and the delta of a budget, in quanta."""
    if node.budget is None:
        return "", None, None
    spend = node.budget.amount
    amount = w.eval(spend.value, scope)
    delta = (_one(w.eval(spend.delta, scope)) or 0) if spend.delta is not None else None
    return spend.unit, _one(amount), delta


def _linked(w: Walk, node: n.Private, schema: dict[str, object] | None, identity: Hashable, scope: Scope) -> object:
    """Another table of the persons of a source, under its budget."""
    owner = w.look_up(scope, node.protecting.linked) if node.protecting is not None else None
    if not (isinstance(owner, Handle) and len(owner.exposures) == 1):
        return TOP
    source = owner.exposures[0].source
    w.identities.append((source, identity))
    source.single = False
    source.names += [node.name] if node.name not in source.names else []
    return Handle("table", (Exposure(source),), schema, object(), True)


def _dimensions(args: list[object]) -> dict[str, object] | None:
    """The dimensions of counts that the program lists; None where they are not known."""
    sides = _sides(args[0]) if len(args) == 1 else 0
    return dict.fromkeys(DIMENSIONS[:sides], PUBLIC) if 1 <= sides <= 3 else None


def _sides(value: object) -> int:
    """How many dimensions a list of lists has; 0 where it is none or not known."""
    if not isinstance(value, list):
        return 0
    if not value or not isinstance(value[0], list):
        return 1 if all(isinstance(v, float) for v in value) else 0
    inner = _sides(value[0])
    return inner + 1 if inner else 0


def _one(value: object) -> int | None:
    return quanta(value) if isinstance(value, float) else None


def _schema(value: object) -> dict[str, object] | None:
    return dict(value) if isinstance(value, dict) else None


def public(w: Walk, node: n.Described, scope: Scope) -> object:
    if isinstance(node.source, n.Call):
        for arg in node.source.args:
            w.eval(arg, scope)
    return Handle("table", (), _schema(w.eval(node.domains, scope)))


# Domains -----------------------------------------------------------------------------------------


def keys_of(domain: object) -> Sequence[float | str] | None:
    """The public values of a described column, or None where they are open or not known."""
    if isinstance(domain, Range):
        low, high = domain.low, domain.high
        if domain.real or not (isinstance(low, float) and isinstance(high, float)):
            return None
        whole = low.is_integer() and high.is_integer() and high - low < 100_000
        return [float(i) for i in range(int(low), int(high) + 1)] if whole else None
    values = domain.items if isinstance(domain, Set) else domain
    keys = [v for v in values if isinstance(v, (float, str))] if isinstance(values, list) else []
    return list(dict.fromkeys(keys)) if keys and keys == values else None


def identifiable(domain: object) -> bool:
    """Whether a value and its integer part may be two keys of a column, so that two kinds of parts overlap."""
    if domain is PUBLIC:
        return True
    if isinstance(domain, Range):
        ends = (domain.low, domain.high)
        return domain.real or not all(isinstance(end, float) and end.is_integer() for end in ends)
    keys = keys_of(domain)
    return keys is None or not all(isinstance(k, str) or k.is_integer() for k in keys)
