"""Which names a piece of program binds, and scopes as Python has them.

A scope is the top level, a function's body, or the inside of a comprehension; blocks of `if`, `for` and `with` open
none. What a name means is for others.

Where the checker's errors and warnings are gathered: each place says a kind of thing once, all in source order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator

from msgspec import Struct

from jostle.diagnostics import Diagnostic, Note
from jostle.source import Span
from jostle.syntax import nodes as n

UseNames = Callable[[n.Use], Collection[str]]


class Scope(Struct, frozen=True):
    """Names bound somewhere in a scope, and the scope around it."""

    names: Collection[str]
    parent: Scope | None = None

    def home(self, name: str) -> Scope | None:
        """The scope that binds a name: this one, or the nearest around it."""
        scope: Scope | None = self
        while scope is not None and name not in scope.names:
            scope = scope.parent
        return scope

    def binds(self, name: str) -> bool:
        return self.home(name) is not None

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
        for block in () if isinstance(stmt, n.Assign | n.Def) else blocks(stmt):
            bound += bound_in(block.body, use_names)
    return bound


def times_bound(body: Iterable[n.Stmt], use_names: UseNames) -> Counter[str]:
    """How often each name is bound by a run of statements."""
    return Counter(bound_in(body, use_names))


def returns_inside(stmt: n.Stmt) -> bool:
    """Whether a `return` stands in `stmt`, functions inside it left out."""
    return isinstance(stmt, n.Return) or (
        not isinstance(stmt, n.Assign) and any(returns_inside(inner) for block in blocks(stmt) for inner in block.body)
    )


class Report:
    """Findings of one program."""

    def __init__(self) -> None:
        self._diagnostics: dict[tuple[str, Span | None], Diagnostic] = {}

    def __len__(self) -> int:
        """The number of errors."""
        return sum(not one.is_warning for one in self._diagnostics.values())

    def has(self, kind: str) -> bool:
        """Whether something of this kind was reported, anywhere."""
        return any(other == kind for other, _ in self._diagnostics)

    def add(
        self, kind: str, message: str, span: Span, *, label: str = "", help: str = "", notes: tuple[Note, ...] = ()
    ) -> None:
        self._diagnostics.setdefault((kind, span), Diagnostic(kind, message, span, label, help, notes))

    def extend(self, diagnostics: Iterable[Diagnostic]) -> None:
        for diagnostic in diagnostics:
            self._diagnostics.setdefault((diagnostic.kind, diagnostic.span), diagnostic)

    def in_order(self) -> list[Diagnostic]:
        """All findings by place, those without one first."""
        return sorted(self._diagnostics.values(), key=_position)


def _position(diagnostic: Diagnostic) -> tuple[int, int]:
    return (diagnostic.span.line, diagnostic.span.column) if diagnostic.span is not None else (0, 0)
