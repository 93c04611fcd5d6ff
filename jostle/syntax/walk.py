"""Walking a tree without knowing its forms: the children of a node, and how deep a tree is.

For whoever needs all nodes of a kind. At the end: which names a piece of program binds, and scopes as Python has them.
A scope is the top level, a function's body, or the inside of a comprehension; blocks of `if`, `for` and `with` open
none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cache
from operator import is_
from typing import TypeVar, cast

from msgspec import Struct

from jostle.records import field_names, replace
from jostle.syntax import nodes as n

N = TypeVar("N", bound=n.Node)
T = TypeVar("T")


@cache
def _parts(kind: object) -> tuple[str, ...]:
    return tuple(name for name in field_names(kind) if name != "span")


def children(node: n.Node, deep: bool = False) -> list[n.Node]:
    """The nodes right below `node`, in source order of its fields; if `deep`, each with all nodes below it."""
    nodes: list[n.Node] = []
    waiting = [node]
    while waiting:
        here = waiting.pop()
        if here is not node:
            nodes.append(here)
        kind: object = type(here)
        below: list[object] = []
        for name in _parts(kind) if deep or here is node else ():
            value = getattr(here, name)
            if isinstance(value, n.Node):
                below.append(value)
            elif isinstance(value, tuple):
                for item in value:
                    below += item if isinstance(item, tuple) else (item,)  # the pairs of a record
        for part in reversed(below):
            if isinstance(part, n.Node):
                waiting.append(part)
    return nodes


def expressions(node: n.Node) -> list[n.Expr]:
    """The expressions right below `node`."""
    return [cast(n.Expr, child) for child in children(node) if isinstance(child, n.Expression)]


def every(node: n.Node) -> Sequence[n.Node]:
    """`node` and all nodes below it, each before those below it and these in source order.

    Those of a program, a statement, a query and a record are gathered once.
    """
    memo = getattr(node, "__dict__", {})
    if "every" in memo:
        return cast(Sequence[n.Node], memo["every"])
    nodes = [node]
    if isinstance(node, n.Program):
        for statement in node.body:
            nodes += every(statement)
    else:
        nodes += children(node, deep=True)
    memo["every"] = nodes
    return nodes


def every_of(program: n.Program, kind: type[N]) -> Sequence[N]:
    """The nodes of one kind in a program, in source order."""
    if "kinds" not in (memo := vars(program)):
        kinds: dict[type, list[n.Node]] = {}
        for node in every(program):
            kinds.setdefault(type(node), []).append(node)
        memo["kinds"] = kinds
    return cast(Sequence[N], memo["kinds"].get(kind, ()))


def rebuilt(tree: T, change: Callable[[n.Node], n.Node]) -> T:
    """A tree, or a tuple of trees, with `change` of each node, the lower ones first; what stays is the same object."""
    if isinstance(tree, tuple):
        items = tuple([rebuilt(item, change) for item in tree])
        return tree if all(map(is_, items, tree)) else cast(T, items)
    if not isinstance(tree, n.Node):
        return tree
    parts = {name: getattr(tree, name) for name in _parts(type(tree))}
    changed = {name: part for name, old in parts.items() if (part := rebuilt(old, change)) is not old}
    return cast(T, change(replace(tree, **changed) if changed else tree))


def links(node: n.Binary) -> tuple[n.Expr, list[n.Binary]]:
    """The first operand of a chain of operations, which leans to the left, and each one's node in order: a long chain
    that is walked by a loop needs no depth."""
    chain: list[n.Binary] = []
    at: n.Expr = node
    while isinstance(at, n.Binary):
        chain.append(at)
        at = at.left
    return at, chain[::-1]


def around(program: n.Node, node: n.Node) -> list[n.Node]:
    """What a node of a program stands in, the innermost first; empty where it is of another program."""
    parents: dict[int, n.Node] = {}
    waiting = [program]
    while waiting and id(node) not in parents:
        here = waiting.pop()
        below = list(children(here))
        parents |= {id(child): here for child in below}
        waiting += below
    path, at = [], parents.get(id(node))
    while at is not None:
        path.append(at)
        at = parents.get(id(at))
    return path


def too_deep(program: n.Program, most: int) -> n.Node | None:
    """A node that has `most` nodes above it, or None where the tree is nowhere so deep."""
    level: list[n.Node] = [statement for statement in program.body if len(every(statement)) >= most]
    depth = 1
    while level and depth < most:
        level = [child for parent in level for child in children(parent)]
        depth += 1
    return level[0] if level else None


def own_name(value: n.Expr) -> str | None:
    """What a column of a select is called where the program gives it no name: as its column, or as its function."""
    match value:
        case n.Name(id=name) | n.Call(function=n.Name(id=name)):
            return name
    return None


def key_names(keys: Sequence[tuple[n.Expr, str | None]], columns: Sequence[n.Column]) -> list[str]:
    """What keys are called that stand with the names a program gives: `month` for `month(day)`, or `key2`.

    The name of another key, or of a result that is no column, is not given again.
    """
    names = [column.name or own_name(column.value) for column in columns if not isinstance(column.value, n.Name)]
    result: list[str] = []
    for at, (value, name) in enumerate(keys):
        own = value.name if isinstance(value, n.Attribute) else own_name(value)
        free = own is not None and own not in result and (isinstance(value, n.Name) or own not in names)
        result.append(name or (own if own is not None and free else f"key{at + 1}"))
    return result


# Scopes -------------------------------------------------------------------------------------------

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
