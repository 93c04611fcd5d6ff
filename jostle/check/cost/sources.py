"""Declarations before the run: private sources with their limits, public ones, and modules.

Nothing is opened. Two declarations are of one source where the world, asked for the identity of a file, says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jostle.check.cost.tree import quanta
from jostle.check.cost.values import MISSING, PUBLIC, Exposure, Handle, Module, Range, Scope, Set, SourceFact
from jostle.language.forms import DIMENSIONS, source_kind
from jostle.syntax import nodes as n

if TYPE_CHECKING:
    from jostle.check.cost.walk import Walker


def private(w: Walker, node: n.Private, scope: Scope) -> Any:
    """The handle of a private source; of one declared twice, both names share what is spent."""
    call = node.source
    kind = source_kind(call)
    args = [w.eval(arg, scope) for arg in call.args] if isinstance(call, n.Call) else []
    schema = _schema(w.eval(node.described, scope)) if node.described is not None else None
    limit = delta = None
    if node.budget is not None:
        limit = _one(w.eval(node.budget.amount.value, scope))
        if node.budget.amount.delta is not None:
            delta = _one(w.eval(node.budget.amount.delta, scope)) or 0
    unit = node.budget.amount.unit if node.budget is not None else ""
    counted = (node.budget.counted_by or "") if node.budget is not None else ""
    public_size = node.protecting is not None and node.protecting.public_size
    source = _declared_before(w, kind, args, node)
    if source is None:
        rows = node.protecting is not None and not node.protecting.columns and not public_size
        source = SourceFact(node.name, [], unit, limit, delta, public_size, counted, single=rows)
        w.sources.append(source)
        w.identities.append((source, w.world.identity(kind, args)))
    else:
        source.inexact, source.single = True, False
        source.public_size = source.public_size and public_size
    if node.name not in source.names:
        source.names.append(node.name)
    if kind == "dataset":  # its owner says the rest, and what was answered before is free
        source.inexact = True
    elif kind == "counts" or schema is None:
        sides = _sides(args[0]) if len(args) == 1 else 0
        dimensions = dict.fromkeys(DIMENSIONS[:sides], PUBLIC) if 1 <= sides <= 3 else None
        return Handle("cube", (Exposure(source),), dimensions, object(), True)
    return Handle("table", (Exposure(source),), schema, object(), True)


def _declared_before(w: Walker, kind: str, args: list[Any], node: n.Private) -> SourceFact | None:
    identity = w.world.identity(kind, args)
    for source, other in w.identities:
        if identity == other or (identity is None or other is None):
            return source  # where an identity is not known, the two may be one
    return None


def _sides(value: Any) -> int:
    """How many dimensions a list of lists has; 0 where it is none or not known."""
    if not isinstance(value, list):
        return 0
    if not value or not isinstance(value[0], list):
        return 1 if all(isinstance(v, float) for v in value) else 0
    inner = _sides(value[0])
    return inner + 1 if inner else 0


def _one(value: Any) -> int | None:
    return quanta(value) if isinstance(value, float) else None


def _schema(value: Any) -> dict[str, Any] | None:
    return dict(value) if isinstance(value, dict) else None


def public(w: Walker, node: n.Described, scope: Scope) -> Any:
    if isinstance(node.source, n.Call):
        for arg in node.source.args:
            w.eval(arg, scope)
    return Handle("table", (), _schema(w.eval(node.domains, scope)))


def use(w: Walker, node: n.Use, scope: Scope) -> None:
    """A module is followed once, in a scope of its own."""
    before, sources = dict(w.ledger.tallies), len(w.sources)
    if node.path not in w.modules:
        w.modules[node.path] = Module({})
        tree = w.world.module(node.path)
        if tree is not None:
            inner = Scope(w.base)
            w.block(tree.body, inner)
            names = {k: v for k, v in inner.names.items() if not k.startswith("_") and not isinstance(v, Module)}
            w.modules[node.path] = Module(names)
    module = w.modules[node.path]
    if w.ledger.tallies != before or len(w.sources) != sources:
        del w.modules[node.path]  # it spends: on another way it would spend again
    scope.names[node.path[-1]] = module
    for name, value in module.names.items():
        if name not in scope.names or isinstance(scope.names[name], Module):
            scope.names[name] = value


# Domains -----------------------------------------------------------------------------------------


def keys_of(domain: Any) -> list[Any] | None:
    """The public values of a described column, or None where they are open or not known."""
    if isinstance(domain, Range):
        low, high = domain.low, domain.high
        if domain.real or not (isinstance(low, float) and isinstance(high, float)):
            return None
        whole = low.is_integer() and high.is_integer() and high - low < 100_000
        return [float(i) for i in range(int(low), int(high) + 1)] if whole else None
    values = domain.items if isinstance(domain, Set) else domain
    if isinstance(values, list) and values and all(isinstance(v, (float, str)) for v in values):
        return list(dict.fromkeys(values))
    return None


def identifiable(domain: Any) -> bool:
    """Whether a value and its integer part may be two keys of a column, so that two kinds of parts overlap."""
    if domain is PUBLIC or domain is MISSING:
        return True
    if isinstance(domain, Range):
        ends = (domain.low, domain.high)
        return domain.real or not all(isinstance(end, float) and end.is_integer() for end in ends)
    keys = keys_of(domain)
    return keys is None or not all(isinstance(k, str) or k.is_integer() for k in keys)
