"""Declarations before the run: private sources with their limits, public ones, and what lies outside a program.

Nothing is opened. Two declarations are of one source where the world, asked for the identity of a file, says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from jostle.check.abstract.values import (
    PUBLIC,
    TOP,
    Builtin,
    Domain,
    Exposure,
    Handle,
    Range,
    Scope,
    Set,
    SourceFact,
    quanta,
)  # fmt: skip
from jostle.check.scopes import bound_in
from jostle.language.builtins import BUILTINS, brought
from jostle.language.facts import Gives
from jostle.language.forms import DIMENSIONS, source_kind
from jostle.source import Span
from jostle.syntax import nodes as n

if TYPE_CHECKING:
    from jostle.check.abstract.interpreter import Interpreter

Identity = Callable[[str, list[Any]], Hashable]


def literal_identity(kind: str, args: list[Any]) -> Hashable:
    """The identity of a source as it is written: None where it is not known."""
    if len(args) == 1 and isinstance(args[0], str):
        return (kind, args[0])
    rows = args and isinstance(args[0], list) and not any(isinstance(item, str) for item in args[0])
    return object() if rows else None


def _may_be_one(identity: Hashable, other: Hashable) -> bool:
    """Whether two sources may have data in common; files of one table are a set of names."""
    if isinstance(identity, frozenset) and isinstance(other, frozenset):
        return not identity.isdisjoint(other)
    return identity is None or other in (identity, None)


@dataclass(slots=True)
class World:
    """What lies outside a program: modules, files by identity, settings. It opens no data."""

    load_module: Callable[[tuple[str, ...]], n.Program | None]
    identity: Identity = literal_identity
    settings: Mapping[str, Any] = field(default_factory=dict)
    planned: Mapping[Span, int] = field(default_factory=dict)
    """What wanted errors of `jointly` blocks take, in quanta, by where they are written; as far as it is known."""
    _names: dict[tuple[str, ...], set[str]] = field(default_factory=dict)

    def names(self, use: n.Use) -> Collection[str]:
        """The names that a `use` binds."""
        if use.path not in self._names:
            self._names[use.path] = {use.path[-1], *brought(use.path)}  # for modules that use each other
            tree = self.load_module(use.path)
            if tree is not None:
                self._names[use.path] |= set(bound_in(tree.body, self.names))
        return self._names[use.path]

    def parameter(self, name: str, default: Any) -> Any:
        """The value of a `param`."""
        value = self.settings.get(name)
        if value is None or (isinstance(value, str) and isinstance(default, str)):
            return default if value is None else value
        if isinstance(value, str) and isinstance(default, bool):
            return value == "true"
        try:
            return float(value) if isinstance(value, (str, int, float)) and not isinstance(value, bool) else PUBLIC
        except ValueError:
            return PUBLIC


def universe(builtins: Collection[str]) -> Scope:
    """The names that every program knows; one that the table does not have may do anything."""
    return Scope(None, {name: _meaning(name) for name in builtins})


def _meaning(name: str) -> Any:
    row = BUILTINS.get(name)
    if row is None:
        return TOP
    if row.gives is Gives.CONSTANT:
        return float(getattr(math, name))
    return Domain(name) if row.gives is Gives.DOMAIN else Builtin(row)


# Sources -----------------------------------------------------------------------------------------


def declared_source(w: Interpreter, node: n.Private, scope: Scope) -> Any:
    """The handle of a private source; of one declared twice, both names share what is spent."""
    call = node.source
    kind = source_kind(call)
    args = [w.eval(arg, scope) for arg in call.args] if isinstance(call, n.Call) else []
    if not kind and w.labels.sure:
        w.labels.source(node, w.eval(call, scope))
    schema = _schema(w.eval(node.described, scope)) if node.described is not None else None
    limit = delta = None
    if node.budget is not None:
        amount = w.eval(node.budget.amount.value, scope)
        limit = _one(amount)
        if node.budget.amount.delta is not None:
            delta = _one(w.eval(node.budget.amount.delta, scope)) or 0
        w.labels.amount(node.budget.amount, amount, PUBLIC)
    unit = node.budget.amount.unit if node.budget is not None else ""
    counted = (node.budget.counted_by or "") if node.budget is not None else ""
    public_size = node.protecting is not None and node.protecting.public_size
    identity = w.world.identity(kind, args)
    if node.protecting is not None and node.protecting.linked:
        return _linked(w, node, schema, identity, scope)
    source = next((old for old, other in w.identities if _may_be_one(identity, other)), None)
    if source is None:
        rows = node.protecting is not None and not node.protecting.columns and not public_size
        source = SourceFact(node, [], unit, limit, delta, public_size, counted, single=rows)
        w.sources.append(source)
        w.identities.append((source, identity))  # where an identity is not known, the two may be one
    else:
        source.inexact, source.single = True, False
        source.public_size = source.public_size and public_size
    if node.name not in source.names:
        source.names.append(node.name)
    trail = w.labels.trail(node)
    if kind == "dataset":  # its owner says the rest, and what was answered before is free
        source.inexact = True
    elif kind == "counts" or schema is None:
        sides = _sides(args[0]) if len(args) == 1 else 0
        dimensions = dict.fromkeys(DIMENSIONS[:sides], PUBLIC) if 1 <= sides <= 3 else None
        return Handle("cube", (Exposure(source),), dimensions, object(), True, trail=trail)
    return Handle("table", (_exposure(source, node),), schema, object(), True, trail=trail)


def _linked(w: Interpreter, node: n.Private, schema: dict[str, Any] | None, identity: Hashable, scope: Scope) -> Any:
    """Another table of the persons of a source, under its budget."""
    owner = w.look_up(scope, node.protecting.linked) if node.protecting is not None else None
    if not (isinstance(owner, Handle) and len(owner.exposures) == 1):
        return TOP
    source = owner.exposures[0].source
    w.identities.append((source, identity))
    source.single = False
    source.names += [node.name] if node.name not in source.names else []
    return Handle("table", (_exposure(source, node),), schema, object(), True, trail=w.labels.trail(node))


def _exposure(source: SourceFact, node: n.Private) -> Exposure:
    persons = node.protecting is not None and bool(node.protecting.columns)
    return Exposure(source, unbounded=persons and node.protecting is not None and node.protecting.up_to is None)


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


def public(w: Interpreter, node: n.Described, scope: Scope) -> Any:
    if isinstance(node.source, n.Call):
        for arg in node.source.args:
            w.eval(arg, scope)
    return Handle("table", (), _schema(w.eval(node.domains, scope)))


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
    if domain is PUBLIC:
        return True
    if isinstance(domain, Range):
        ends = (domain.low, domain.high)
        return domain.real or not all(isinstance(end, float) and end.is_integer() for end in ends)
    keys = keys_of(domain)
    return keys is None or not all(isinstance(k, str) or k.is_integer() for k in keys)
