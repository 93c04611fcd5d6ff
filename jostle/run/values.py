"""What a Jostle expression can be: doubles, booleans, strings, none, lists, sets, records, ranges, functions,
handles, and the answers of measurements.

Numbers are Python floats, strings Python strings, vectors NumPy arrays; the rest is here. Containers are public,
also when they hold handles.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from jostle.diagnostics import refuse
from jostle.engine.plan import Open
from jostle.privacy.handles import ColumnHandle, Cube, Handle, Score, Table
from jostle.syntax.nodes import Block, Expr

if TYPE_CHECKING:
    from jostle.run.scope import Scope


class Record(dict[str, Any]):
    """A record; its keys are names."""

    is_container = True


class JSet:
    """A set that keeps the order of insertion; values are equal as `==` says, handles by identity."""

    is_container = True
    __slots__ = ("items",)

    def __init__(self, items: Iterable[Any] = ()) -> None:
        self.items: list[Any] = []
        for item in items:
            if item not in self:
                self.items.append(item)

    def __contains__(self, wanted: object) -> bool:
        return any(same(item, wanted) for item in self.items)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def minus(self, other: Iterable[Any]) -> JSet:
        gone = list(other)
        return JSet(item for item in self.items if not any(same(item, g) for g in gone))


@dataclass(frozen=True, slots=True)
class Interval:
    """`a..b`, both ends included; `real` when it was written with a decimal point."""

    low: float
    high: float
    real: bool = False

    def __iter__(self) -> Iterator[float]:
        if self.real or not (self.low.is_integer() and self.high.is_integer()):
            raise refuse("TypeError", "a range of reals cannot be walked through", help="write whole numbers: `1..10`")
        return (float(i) for i in range(int(self.low), int(self.high) + 1))

    def __len__(self) -> int:
        return max(0, int(self.high) - int(self.low) + 1)


@dataclass(slots=True, eq=False)
class Grouped:
    """The answer of a grouped select: key columns, then value columns, one entry a group."""

    columns: dict[str, list[Any]]
    keys: int

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), []))

    def __iter__(self) -> Iterator[Record]:
        names = list(self.columns)
        for row in zip(*self.columns.values(), strict=True):
            yield Record(zip(names, row, strict=True))

    def only(self) -> list[Any]:
        """The single value column, for `stddev(select … groupby …)`."""
        values = list(self.columns)[self.keys :]
        if len(values) != 1:
            raise refuse("TypeError", "this takes a select of one aggregate", help=f"pick one of {', '.join(values)}")
        return self.columns[values[0]]


@dataclass(slots=True, eq=False)
class Function:
    """A `def` or `lambda` with the scope it was made in."""

    name: str
    params: tuple[tuple[str, Any], ...]  # (name, default or REQUIRED)
    body: Block | Expr
    scope: Scope
    uses_handles: bool = False


@dataclass(slots=True, eq=False)
class Part:
    """A Feature, Option or Utility. It takes the name of the variable that it is first assigned to."""

    kind: str
    run: Any  # Function or a builtin
    predict: Any | None = None
    name: str = ""


@dataclass(slots=True, eq=False)
class Builtin:
    """A function of the runtime. `sees_handles`: takes private values too; `wants_call`: gets (interpreter, span)."""

    name: str
    body: Callable[..., Any]
    sees_handles: bool = False
    wants_call: bool = False


@dataclass(slots=True, eq=False)
class RowForm:
    """A function whose later arguments are row expressions: `histogram`, `partition`, `where`, `derive`."""

    name: str
    body: Callable[..., Any]


@dataclass(slots=True, eq=False)
class Module:
    """A `use`d module: its top-level names."""

    name: str
    names: dict[str, Any] = field(default_factory=dict)


class Required:
    """The default of a parameter that has none."""


REQUIRED = Required()


def same(a: Any, b: Any) -> bool:
    """`==`: by value, deep; a boolean is no number; handles and functions by identity."""
    if isinstance(a, Handle) or isinstance(b, Handle):
        return a is b
    if isinstance(a, bool) or isinstance(b, bool):
        return isinstance(a, bool) and isinstance(b, bool) and a == b
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        return float(a) == float(b)
    if isinstance(a, JSet) and isinstance(b, JSet):
        return len(a) == len(b) and all(x in b for x in a)
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(v, b[k]) for k, v in a.items())
    if is_sequence(a) and is_sequence(b):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, (str, type(None), Interval)) or isinstance(b, (str, type(None), Interval)):
        return type(a) is type(b) and bool(a == b)
    return a is b


def is_sequence(value: Any) -> bool:
    return isinstance(value, (list, tuple)) or is_vector(value)


def is_vector(value: Any) -> bool:
    return type(value).__module__ == "numpy" and type(value).__name__ == "ndarray"


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def kind_name(value: Any) -> str:
    """What a person calls this value in a message; says nothing of a private value but that it is one."""
    match value:
        case None:
            return "none"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a text"
        case Table():
            return "a private table" if value.private else "a table"
        case Cube():
            return "a private cube of counts" if value.private else "a cube of counts"
        case ColumnHandle():
            return "a column"
        case Score():
            return "a private score" if value.private else "a score"
        case JSet():
            return "a set"
        case dict():
            return "a record"
        case Interval():
            return "a range"
        case Grouped():
            return "a grouped result"
        case Function() | Builtin() | RowForm():
            return "a function"
        case Part():
            return f"a {value.kind}"
        case Open():
            return "a domain"
    return "a list" if is_sequence(value) else f"a {type(value).__name__.lower()}"


def show(value: Any, depth: int = 4) -> str:
    """How `print` shows a public value: numbers shortly, text bare at the top."""
    return value if isinstance(value, str) else _show(value, depth)


def _show(value: Any, depth: int) -> str:
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if value is None or isinstance(value, bool):
        return {None: "none", True: "true", False: "false"}[value]
    if is_number(value):
        return show_number(float(value))
    if depth == 0:
        return "…"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}: {_show(v, depth - 1)}" for k, v in value.items()) + "}"
    if isinstance(value, JSet):
        return "{" + ", ".join(_show(v, depth - 1) for v in value) + "}"
    if isinstance(value, Grouped):
        return _show_table(value)
    if isinstance(value, Interval):
        return f"{show_number(value.low)}..{show_number(value.high)}"
    if is_sequence(value):
        items = [_show(v, depth - 1) for v in value[:20]]
        return "[" + ", ".join(items) + (f", … {len(value)} in all" if len(value) > 20 else "") + "]"
    if isinstance(value, Table):
        return "table(" + ", ".join(value.domains) + ")"
    if isinstance(value, Cube):
        return "counts(" + " × ".join(str(s) for s in value.shape) + ")"
    if isinstance(value, ColumnHandle):
        return f"column {value.name}"
    name = getattr(value, "name", "")
    return f"<{kind_name(value)[2:]}{' ' + name if name else ''}>"


def show_number(value: float) -> str:
    if not math.isfinite(value):
        return {math.inf: "inf", -math.inf: "-inf"}.get(value, "nan")
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else f"{value:.6g}"


def _show_table(value: Grouped) -> str:
    rows = [[_show(v, 1) if not isinstance(v, str) else v for v in row.values()] for row in list(value)[:40]]
    head = list(value.columns)
    widths = [max(len(r[i]) for r in [head, *rows]) for i in range(len(head))]
    lines = ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in [head, *rows]]
    if len(value) > 40:
        lines.append(f"… {len(value)} rows in all")
    return "\n".join(lines)


def plain(value: Any) -> Any:
    """The JSON-ready form of a public value: what a release is written as."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if is_number(value):
        number = float(value)
        if not math.isfinite(number):
            return None
        return int(number) if number.is_integer() and abs(number) < 2**53 else number
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, Grouped):
        return [{k: plain(v) for k, v in row.items()} for row in value]
    if isinstance(value, (JSet, Interval)) or is_sequence(value):
        return [plain(v) for v in value]
    return show(value)
