"""What the checker knows of a value before the run: little, and never more than is certain.

`UNKNOWN` is every value it cannot follow; such a value is always let through. Joining two possibilities keeps only
what holds for both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import zip_longest

from jostle.diagnostics import Note
from jostle.source import Span
from jostle.syntax import nodes as n

MOST_NOTES = 6
LARGEST = 400  # parts of a container that is followed piece by piece


@dataclass(frozen=True, eq=False)
class Unknown:
    """Any value at all."""


UNKNOWN = Unknown()


@dataclass(frozen=True, eq=False)
class Table:
    """A table or cube. `declared` is its private source, None for a public one; `columns` is None when not known."""

    declared: n.Private | None
    columns: Mapping[str, n.Expr] | None = None
    trail: tuple[Note, ...] = ()

    @property
    def private(self) -> bool:
        return self.declared is not None

    @property
    def has_delta(self) -> bool:
        """Whether the budget holds a delta, or may (a registered source)."""
        budget = self.declared.budget if self.declared is not None else None
        return budget is None or budget.amount.delta is not None

    def passed(self, span: Span, text: str) -> Table:
        """The same table after it took another name at `span`."""
        if not self.private:
            return self
        before = self.trail
        if before and before[-1].span.source is span.source and before[-1].span.line == span.line and len(before) > 1:
            before = before[:-1]  # one line, one note: the name that it got says more than the call that made it
        return replace(self, trail=(*before, Note(span, text))[:MOST_NOTES])


@dataclass(frozen=True, eq=False)
class Parts:
    """What `partition` gives: keys and parts, which may be iterated."""

    part: Table


@dataclass(frozen=True, eq=False)
class Many:
    """A list or a set; `uniform` where `items` is one example of all (a comprehension). Made by `many`."""

    items: tuple[Value, ...]
    uniform: bool = False
    holds: Table | None = None
    size: int = 1


@dataclass(frozen=True, eq=False)
class Record:
    """Made by `record`."""

    fields: Mapping[str, Value]
    holds: Table | None = None
    size: int = 1


def many(items: tuple[Value, ...], uniform: bool = False) -> Many:
    """A list or a set; of one that is too large only a private table that it holds is kept."""
    size = 1 + sum(map(_size, items))
    return Many(items if size < LARGEST else (), uniform or size >= LARGEST, _first(items), size)


def record(fields: Mapping[str, Value]) -> Record:
    """A record; of one that is too large only a private table that it holds is kept."""
    size = 1 + sum(map(_size, fields.values()))
    return Record(fields if size < LARGEST else {}, _first(fields.values()), size)


def _size(value: Value) -> int:
    return value.size if isinstance(value, Many | Record) else 1


def _first(values: Iterable[Value]) -> Table | None:
    return next(filter(None, map(private_table, values)), None)


@dataclass(frozen=True, eq=False)
class Function:
    """A `def`, a `lambda` or a Part of the program, and where it was made."""

    node: n.Def | n.Lambda | n.Part
    env: Env
    name: str


@dataclass(frozen=True, eq=False)
class Chooser:
    """What MkChoiceMaker makes."""


@dataclass(frozen=True, eq=False)
class Builtin:
    name: str


Value = Unknown | Table | Parts | Many | Record | Function | Chooser | Builtin


@dataclass(eq=False)
class Env:
    """The values of one scope while it is walked; `times` is how often each of its names is bound in all."""

    parent: Env | None = None
    values: dict[str, Value] = field(default_factory=dict)
    times: Counter[str] = field(default_factory=Counter)

    def find(self, name: str) -> tuple[Env, Value] | None:
        env: Env | None = self
        while env is not None:
            if name in env.values:
                return env, env.values[name]
            env = env.parent
        return None


def private_table(value: Value) -> Table | None:
    """A private table in `value`, itself or in a container."""
    match value:
        case Table() if value.private:
            return value
        case Parts(part=part):
            return private_table(part)
        case Many(holds=table) | Record(holds=table):
            return table
    return None


def join(left: Value, right: Value) -> Value:
    """What is certain of a value that is one of two."""
    if left is right:
        return left
    match left, right:
        case Table(), Table():
            if left.private and right.private:
                same = left.columns is right.columns
                return left if same else replace(left, columns=None)
        case Parts(part=mine), Parts(part=other):
            part = join(mine, other)
            return Parts(part) if isinstance(part, Table) else UNKNOWN
        case Many(items=mine), Many(items=others) if len(mine) == len(others):
            return many(tuple(map(join, mine, others)), left.uniform or right.uniform)
        case Record(fields=mine), Record(fields=others) if mine.keys() == others.keys():
            return record({name: join(value, others[name]) for name, value in mine.items()})
        case Function(), Function() if left.node is right.node and left.env is right.env:
            return left
        case Chooser(), Chooser():
            return left
    return UNKNOWN


def element(items: tuple[Value, ...]) -> Value:
    """What is certain of any one of `items`."""
    if not items:
        return UNKNOWN
    result = items[0]
    for item in items[1:]:
        result = join(result, item)
    return result


def after_branches(before: dict[str, Value], one: dict[str, Value], other: dict[str, Value]) -> dict[str, Value]:
    """The names after an `if`; one that only one branch binds has that branch's value."""
    merged = dict(before)
    for name in {*one, *other}:
        if name in one and name in other:
            merged[name] = join(one[name], other[name])
        else:
            merged[name] = one.get(name) or other[name]
    return merged


def arity_error(function: Function, call: n.Call) -> str:
    """Why the arguments of `call` cannot fit `function`, or an empty string."""
    node = function.node
    params = (
        tuple(n.Param(name, None, span=node.span) for name in node.params)
        if isinstance(node, n.Lambda)
        else node.params
    )
    takes = _takes(function.name, params)
    if len(call.args) > len(params):
        return f"{takes}, but {len(call.args)} are given"
    bound = {param.name for param in params[: len(call.args)]}
    for keyword in call.keywords:
        if keyword.name not in {param.name for param in params}:
            return f"`{function.name}` has no parameter `{keyword.name}`"
        if keyword.name in bound:
            return f"the argument `{keyword.name}` of `{function.name}` is given twice"
        bound.add(keyword.name)
    missing = [param.name for param in params if param.default is None and param.name not in bound]
    return f"{takes}: `{missing[0]}` is missing" if missing else ""


def bound_arguments(function: Function, call: n.Call, args: list[Value], keywords: list[Value]) -> dict[str, Value]:
    """The parameters that a fitting call gives a value to."""
    node = function.node
    names = node.params if isinstance(node, n.Lambda) else tuple(param.name for param in node.params)
    result = {name: value for name, value in zip_longest(names, args) if name is not None and value is not None}
    result.update({keyword.name: value for keyword, value in zip(call.keywords, keywords, strict=True)})
    return result


def _takes(name: str, params: tuple[n.Param, ...]) -> str:
    least = sum(param.default is None for param in params)
    most = len(params)
    count = "no arguments" if most == 0 else f"{most} argument" + ("s" if most > 1 else "")
    return f"`{name}` takes {count if least == most else f'{least} to {most} arguments'}"
