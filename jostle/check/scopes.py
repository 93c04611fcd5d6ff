"""Which names a piece of program binds, and scopes as Python has them.

A scope is the top level, a function's body, or the inside of a comprehension; blocks of `if`, `for` and `with` open
none. What a name means is for others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import assert_never

from jostle.syntax import nodes as n

UseNames = Callable[[n.Use], Collection[str]]


@dataclass(frozen=True)
class Scope:
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


def bound_by(stmt: n.Stmt, use_names: UseNames) -> Iterator[str]:
    """The names that `stmt` binds in its own scope, once for each place, those of its blocks included."""
    match stmt:
        case n.Assign(name=name) | n.ParamDecl(name=name) | n.Private(name=name) | n.Def(name=name):
            yield name
        case n.External(name=name):
            yield name
        case n.Use():
            yield from use_names(stmt)
        case n.If(then=then, other=other):
            yield from bound_in(then.body, use_names)
            if other is not None:
                yield from bound_in(other.body, use_names)
        case n.For(names=names, body=body):
            yield from names
            yield from bound_in(body.body, use_names)
        case n.With(body=body):
            yield from bound_in(body.body, use_names)
        case n.Bare() | n.Return() | n.Release() | n.Assert():
            return
        case unknown:
            assert_never(unknown)


def bound_in(body: Iterable[n.Stmt], use_names: UseNames) -> Iterator[str]:
    """The names that a run of statements binds."""
    for stmt in body:
        yield from bound_by(stmt, use_names)


def times_bound(body: Iterable[n.Stmt], use_names: UseNames) -> Counter[str]:
    """How often each name is bound by a run of statements."""
    return Counter(bound_in(body, use_names))


def returns_inside(stmt: n.Stmt) -> bool:
    """Whether a `return` stands in `stmt`, functions inside it left out."""
    match stmt:
        case n.Return():
            return True
        case n.If(then=then, other=other):
            return any(map(returns_inside, then.body)) or (other is not None and any(map(returns_inside, other.body)))
        case n.For(body=body) | n.With(body=body):
            return any(map(returns_inside, body.body))
        case (
            n.Assign() | n.Bare() | n.Use() | n.ParamDecl() | n.Release() | n.Assert() | n.Def() | n.External()
            | n.Private()
        ):  # fmt: skip
            return False
        case unknown:
            assert_never(unknown)


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
