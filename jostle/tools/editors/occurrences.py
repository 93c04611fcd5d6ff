"""Where each name of a program stands: where it is bound, where it is used, and which of them mean the same.

Scopes are those of the checker: the top level, a function, a lambda, a Feature, Option or Utility, a comprehension. In
rows, a name that is a described column means the column.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

from msgspec import Struct

from jostle.language.builtins import BUILTINS
from jostle.source import Span
from jostle.syntax import nodes as n
from jostle.syntax.walk import bound_in, children

ScopeId = tuple[int, int]
_OUTSIDE: ScopeId = (-1, -1)
_TOP: ScopeId = (0, 0)
_COLUMNS: ScopeId = (-2, -2)


class Occurrence(Struct, frozen=True):
    """A name at a place. Those of one name and one scope mean the same."""

    name: str
    span: Span
    scope: ScopeId
    binds: bool = False

    @property
    def is_column(self) -> bool:
        return self.scope == _COLUMNS

    @property
    def is_own(self) -> bool:
        """Whether the program itself gives the name its meaning."""
        return self.scope not in (_OUTSIDE, _COLUMNS)

    @property
    def is_local(self) -> bool:
        return self.is_own and self.scope != _TOP

    def same(self, other: Occurrence) -> bool:
        return (self.name, self.scope) == (other.name, other.scope)


def occurrences(tree: n.Program, columns: Collection[str]) -> list[Occurrence]:
    """All names of a program, in the order of its text; `columns` are the described ones."""
    places = [*_Walk(tree, columns).block(tree.body, [(_TOP, _bound(tree.body))])]
    once = {(one.span, one.name): one for one in reversed(places)}  # the first, as in `xs.append(x)` what binds
    return sorted(once.values(), key=lambda one: (one.span.line, one.span.column, not one.binds))


_Scopes = list[tuple[ScopeId, Collection[str]]]


class _Walk:
    def __init__(self, tree: n.Program, columns: Collection[str]) -> None:
        self._columns = columns
        self._functions = {s.name: _id(s) for s in tree.body if isinstance(s, n.Def)}

    def block(self, body: Iterable[n.Stmt], scopes: _Scopes) -> Iterator[Occurrence]:
        for statement in body:
            yield from self.walk(statement, scopes, False)

    def walk(self, node: n.Node, scopes: _Scopes, rows: bool) -> Iterator[Occurrence]:
        match node:
            case n.Name(id=name):
                if node.span.text.strip("`") != name:
                    return  # the program writes what it stands for in another way
                column = rows and name in self._columns
                yield Occurrence(name, node.span, _COLUMNS if column else _meaning(name, scopes))
                return
            case n.Variable(id=name):
                at = _place(node.span, name)
                yield from [Occurrence(name, at, _meaning(name, scopes))] if at else []
                return
            case n.Def(name=name, params=params, body=block):
                yield from self._binds((name,), node, scopes)
                yield from self._function(node, params, block, scopes, rows)
                return
            case n.Part(params=params, body=block):
                yield from self._function(node, params, block, scopes, rows)
                if node.predict is not None:
                    yield from self._function(node, node.predict_params or (), node.predict, scopes, rows)
                return
            case n.Lambda(params=names) | n.Comprehension(names=names):
                scopes = [*scopes, (_id(node), names)]
                yield from self._binds(names, node, scopes)
            case n.Over(name=name):
                scopes = [*scopes, (_id(node), (name,))]
                yield from self._binds((name,), node, scopes)
            case n.For(names=names):
                yield from self._binds(names, node, scopes)
            case n.Assign(name=name) | n.Private(name=name) | n.ParamDecl(name=name):
                yield from self._binds((name,), node, scopes)
            case n.Release(name=name, value=value):
                yield from self._binds((name,), node, scopes, binds=value is not None)
            case n.Select():
                yield from self._select(node, scopes)
                return
            case n.Call(function=n.Name(id=name)):
                yield from self._call(name, node, scopes, rows)
                return
            case _:
                pass
        for child in children(node):
            yield from self.walk(child, scopes, rows)

    def _select(self, node: n.Select, scopes: _Scopes) -> Iterator[Occurrence]:
        for one in (node.table, *(join.table for join in node.joins)):
            yield from self.walk(one, scopes, False)
        for child in children(node):
            if child is not node.table and not isinstance(child, n.Join):
                yield from self.walk(child, scopes, True)

    def _call(self, name: str, node: n.Call, scopes: _Scopes, rows: bool) -> Iterator[Occurrence]:
        yield from self.walk(node.function, scopes, False)
        over_rows = name in BUILTINS and BUILTINS[name].over_rows
        for place, argument in enumerate((*node.args, *node.keywords)):
            yield from self.walk(argument, scopes, rows or (over_rows and place > 0))
        if name in self._functions and _meaning(name, scopes) == _TOP:
            for keyword in node.keywords:
                at = _place(keyword.span, keyword.name)
                yield from [Occurrence(keyword.name, at, self._functions[name])] if at else []

    def _function(
        self, node: n.Node, params: tuple[n.Param, ...], block: n.Block, scopes: _Scopes, rows: bool
    ) -> Iterator[Occurrence]:
        names = {param.name for param in params}
        inner = [*scopes, (_id(node), names | _bound(block.body))]
        for param in params:
            at = _place(param.span, param.name)
            yield from [Occurrence(param.name, at, _id(node), True)] if at else []
            yield from self.walk(param.default, scopes, rows) if param.default is not None else ()
        for statement in block.body:
            yield from self.walk(statement, inner, rows)

    def _binds(self, names: Iterable[str], node: n.Node, scopes: _Scopes, binds: bool = True) -> Iterator[Occurrence]:
        for name in names:
            at = _binding(node, name)
            if at is not None:
                yield Occurrence(name, at, _meaning(name, scopes), binds)


def described(node: n.RecordOf) -> Iterator[tuple[str, Span]]:
    """The columns of a description, with their places."""
    source = node.span.source
    for name, value in node.items:
        before = source.line(value.span.line)[: value.span.column - 1]
        key = re.search(rf"[`\"]?{re.escape(name)}[`\"]?(?=\s*:\s*$)", before)
        if key is not None:
            line = value.span.line
            yield name, Span(source, line, key.start() + 1, line, key.end() + 1)


def _id(node: n.Node) -> ScopeId:
    return node.span.line, node.span.column


def _bound(body: Iterable[n.Stmt]) -> set[str]:
    return set(bound_in(body, lambda use: ()))


def _meaning(name: str, scopes: _Scopes) -> ScopeId:
    return next((scope for scope, names in reversed(scopes) if name in names), _OUTSIDE)


def _binding(node: n.Node, name: str) -> Span | None:
    """Where a form binds a name: after the `for` of a comprehension or `over`, else the first time that it is said."""
    if isinstance(node, n.Comprehension | n.Over):
        word = "over" if isinstance(node, n.Over) else "for"
        return _place(node.span, name, rf"\b{word}\s+(?:\w+\s*,\s*)*")
    return _place(node.span, name)


def _place(span: Span, name: str, after: str = "") -> Span | None:
    """The first place of a name in a stretch of text."""
    pattern = re.compile(rf"{after}(`{re.escape(name)}`|(?<!\w){re.escape(name)}(?!\w))")
    for line in range(span.line, span.end_line + 1):
        text = span.source.line(line)
        start = span.column - 1 if line == span.line else 0
        end = span.end_column - 1 if line == span.end_line else len(text)
        if match := pattern.search(text, start, end):
            return Span(span.source, line, match.start(1) + 1, line, match.end(1) + 1)
    return None
