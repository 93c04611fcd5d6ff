"""Which names a piece of program binds, and scopes as Python has them.

A scope is the top level, a function's body, or the inside of a comprehension; blocks of `if`, `for` and `with` open
none. What a name means is for others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator

from msgspec import Struct

from jostle.syntax import nodes as n

UseNames = Callable[[n.Use], Collection[str]]


class Scope(Struct, frozen=True):
    """Names bound somewhere in a scope, and the scope around it."""

    names: Collection[str]
    parent: Scope | None = None

    def holds(self, name: str) -> bool:
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return True
            scope = scope.parent
        return False

    def visible(self) -> Iterator[str]:
        scope: Scope | None = self
        while scope is not None:
            yield from scope.names
            scope = scope.parent


def blocks(stmt: n.Stmt) -> list[n.Block]:
    """The blocks of a statement that are in the scope it stands in: those of a function are not."""
    names = () if isinstance(stmt, n.Assign | n.Def) else stmt.__struct_fields__
    return [block for name in names if isinstance(block := getattr(stmt, name), n.Block)] if names else []


def bound_in(body: Iterable[n.Stmt], use_names: UseNames) -> list[str]:
    """The names that a run of statements binds in its scope, once for each place, those of their blocks included."""
    bound: list[str] = []
    for stmt in body:
        if isinstance(stmt, n.Use):
            bound += use_names(stmt)
        if isinstance(stmt, n.Release) and stmt.value is not None:
            bound.append(stmt.name)
        for field in stmt.binds:
            names = getattr(stmt, field)
            bound += (names,) if isinstance(names, str) else names
        for block in blocks(stmt):
            bound += bound_in(block.body, use_names)
    return bound


def times_bound(body: Iterable[n.Stmt], use_names: UseNames) -> Counter[str]:
    """How often each name is bound by a run of statements."""
    return Counter(bound_in(body, use_names))


def returns_inside(stmt: n.Stmt) -> bool:
    """Whether a `return` stands in `stmt`, functions inside it left out."""
    return isinstance(stmt, n.Return) or any(returns_inside(inner) for block in blocks(stmt) for inner in block.body)


def always_returns(body: tuple[n.Stmt, ...]) -> bool:
    """Whether a run of statements cannot reach its end."""
    for stmt in body:
        match stmt:
            case n.Return():
                return True
            case n.If(then=then, other=other) if other is not None:
                if always_returns(then.body) and always_returns(other.body):
                    return True
            case n.With(body=inner):
                if always_returns(inner.body):
                    return True
    return False
