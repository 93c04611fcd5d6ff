"""The values of the language: doubles, booleans, strings, none, lists, sets, records, ranges, functions, handles, and
answers of measurements.

Numbers are Python floats, strings Python strings, and vectors NumPy arrays; the other types are here. Containers are
public, also if they contain handles.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, TypeGuard, cast

from msgspec import Struct, field

from jostle.diagnostics import refuse
from jostle.formulas import BY_NOISE, DOUBT, DOUBTFUL, Marked, cut_text, cuts_of, show_number
from jostle.plan.plan import Open
from jostle.privacy.kernel.exposures import Handle
from jostle.privacy.kernel.handles import ColumnHandle, Cube, Table, Vectors
from jostle.privacy.scores import Score
from jostle.privacy.transformations.records import WeightedRecords
from jostle.run.sequences import MOST_WITH_ERRORS, LongColumn, NumberColumn, Period, column_of
from jostle.syntax.nodes import Block, Expr

if TYPE_CHECKING:
    from jostle.lazy import Array
    from jostle.run.scope import Scope


def handles_in(value: object) -> list[Handle]:
    """All private handles in public containers, at any depth. A shared container is visited once."""
    if isinstance(value, Handle):
        return [value] if value.private else []
    handles: list[Handle] = []
    waiting: list[object] = [value]
    passed: set[int] = set()
    while waiting:
        here = waiting.pop()
        if isinstance(here, Handle):
            if here.private:
                handles.append(here)
        elif (isinstance(here, (dict, list, tuple)) or getattr(here, "is_container", False)) and id(here) not in passed:
            passed.add(id(here))
            waiting.extend(reversed(list(here.values() if isinstance(here, dict) else here)))  # type: ignore[call-overload]
    return handles


@dataclass(frozen=True, slots=True, eq=False)
class Pending(Handle):
    """An answer of a `jointly` block before it is measured, as private as its table."""


class Record(dict[str, Any]):
    """A record; its keys are names."""

    is_container = True


class JSet:
    """A set in the order of insertion. Values are compared by `==`, handles by identity."""

    is_container = True
    __slots__ = ("_members", "items")

    def __init__(self, items: Iterable[Any] = ()) -> None:
        members: dict[Any, Any] = {}
        for item in items:
            members.setdefault(identity(item), item)
        self._fill(members)

    def _fill(self, members: dict[object, object]) -> None:
        """`members` by their identities, which are expensive to compute."""
        self._members = members
        self.items: list[Any] = list(members.values())

    def __contains__(self, item: object) -> bool:
        return identity(item) in self._members

    def __iter__(self) -> Iterator[Any]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def minus(self, other: Iterable[object]) -> JSet:
        gone = other._members if isinstance(other, JSet) else {identity(item) for item in other}
        left = JSet()
        left._fill({key: item for key, item in self._members.items() if key not in gone})
        return left


class Interval(Struct, frozen=True):
    """`a..b`, both ends included. `real` if it was written with a decimal point."""

    low: float
    high: float
    real: bool = False

    def __iter__(self) -> Iterator[float]:
        self._need_whole("cannot be walked through")
        return map(float, range(int(self.low), int(self.high) + 1))

    @property
    def count(self) -> float:
        """The number of its integers, a double, since that of `1..1e300` exceeds Python's `len`."""
        self._need_whole("has no length")
        return float(max(0, int(self.high) - int(self.low) + 1))

    def _need_whole(self, cannot: str) -> None:
        if self.real or not (self.low.is_integer() and self.high.is_integer()):
            raise refuse("TypeError", f"a range of reals {cannot}", help="write whole numbers: `1..10`")


class Grouped(Struct, eq=False):
    """The answer of a grouped select: key columns, then value columns, with one entry per group."""

    parts: dict[str, Any]  # columns; long ones are computed on demand
    keys: int

    def __post_init__(self) -> None:
        self.parts = {name: values if isinstance(values, LongColumn) else self._listed(name, values)
                      for name, values in self.parts.items()}  # fmt: skip

    def _listed(self, name: str, values: Sequence[object]) -> list[object]:
        return column_of(values, of_numbers=name not in list(self.parts)[: self.keys])

    @property
    def columns(self) -> dict[str, list[Any]]:
        """All columns as lists."""
        return {name: self.column(name) for name in self.parts}

    def column(self, name: str) -> list[Any]:
        """One column as a list; for more than a million groups numbers without their errors."""
        values = self.parts[name]
        if isinstance(values, LongColumn):
            if values.numbers is not None and len(values) > MOST_WITH_ERRORS:
                return NumberColumn(values.numbers.tolist())
            self.parts[name] = values = self._listed(name, values)
        return cast("list[Any]", values)

    def __len__(self) -> int:
        return len(next(iter(self.parts.values()), []))

    def __iter__(self) -> Iterator[Record]:
        names = list(self.parts)
        for row in zip(*self.parts.values(), strict=True):
            yield Record(zip(names, row, strict=True))

    def hidden(self, most: int) -> list[bool]:
        """For each of the first groups whether noise hides its number of rows (`formulas.Noised`)."""
        measured = [values[:most] for values in list(self.parts.values())[self.keys :]]
        return [any(getattr(value, "hidden", False) for value in row) for row in zip(*measured, strict=True)]

    def only(self) -> list[Any]:
        """The only value column, for `stddev(select … groupby …)`."""
        values = list(self.columns)[self.keys :]
        if len(values) != 1:
            raise refuse("TypeError", "this takes a select of one aggregate", help=f"pick one of {', '.join(values)}")
        return self.columns[values[0]]


class Function(Struct, eq=False):
    """A `def` or `lambda` with its defining scope."""

    name: str
    params: tuple[tuple[str, Any], ...]  # (name, default or REQUIRED)
    body: Block | Expr
    scope: Scope


class Part(Struct, eq=False):
    """A Feature, Option or Utility. Its name is that of the variable that it is first assigned to."""

    kind: str
    run: Any  # a Function or built-in
    predict: object | None = None
    name: str = ""


class Builtin(Struct, eq=False):
    """A built-in function. `sees_handles`: it accepts private values; `wants_call`: it receives (interpreter, span)."""

    name: str
    body: Callable[..., Any]
    sees_handles: bool = False
    wants_call: bool = False


class RowForm(Struct, eq=False):
    """A function whose later arguments are row expressions: `histogram`, `partition`, `where`, `derive`."""

    name: str
    body: Callable[..., Any]


class Module(Struct, eq=False):
    """A `use`d module: its top-level names."""

    name: str
    names: dict[str, Any] = field(default_factory=dict)
    of_library: bool = False


class Required:
    """The default of a parameter that has none."""


REQUIRED = Required()


MOST_ITEMS = 10**7
"""The largest number of items of a list, set or text in a program, tested before memory is allocated."""


def need_room(items: float, what: str = "a list") -> None:
    """Refuses a container of more than `MOST_ITEMS` items."""
    if items > MOST_ITEMS:
        many = f"{int(items):,}" if items < 1e15 else f"{items:.3g}"
        raise refuse(
            "ValueError", f"{what} of {many} items is too large to hold",
            help=f"at most {MOST_ITEMS:,}: walk through the range itself, `for i in 1..n`",
        )  # fmt: skip


MOST_NESTED = 500


def weight(value: object) -> float:
    """The number of values in a value, where shared ones count repeatedly.

    Each container is visited once, so this ends even if a walk over the value would not. Refuses too deep nesting.
    """
    weights: dict[int, float] = {}

    def weigh(one: object, depth: int) -> float:
        parts = _parts_of(one)
        if parts is None:
            if isinstance(one, Interval):
                return 1.0 if one.real else one.count
            return float(one.size) if is_vector(one) else float(len(one)) if isinstance(one, LongColumn) else 1.0
        if depth > MOST_NESTED:
            raise refuse(
                "RecursionLimit", f"values are nested more than {MOST_NESTED} deep", help="keep them in one list"
            )
        if id(one) not in weights:
            weights[id(one)] = 1.0 + sum([weigh(part, depth + 1) for part in parts])
        return weights[id(one)]

    return weigh(value, 0)


def _parts_of(value: object) -> Iterable[object] | None:
    if isinstance(value, dict):
        return value.values()
    if isinstance(value, Grouped):
        return value.parts.values()
    return value if isinstance(value, (list, tuple, JSet)) else None


def identity(value: object) -> Any:
    """A key that is equal for two values if and only if they are the `same`."""
    if _parts_of(value) is not None:
        need_room(weight(value))
    return _key(value)


def _key(value: object) -> object:
    if isinstance(value, bool) or value is None or isinstance(value, (str, date, Period, Interval)):
        return ("truth" if isinstance(value, bool) else "plain", value)
    if isinstance(value, (int, float)):
        return float(value) if value == value else object()
    if is_vector(value):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return ("list", *[_key(item) for item in value])
    if isinstance(value, dict):
        return ("record", frozenset([(name, _key(item)) for name, item in value.items()]))
    if isinstance(value, JSet):
        return ("set", frozenset([_key(item) for item in value]))
    return ("one", id(value))


_PLAIN = (str, type(None), date, Period, Interval)


def same(a: Any, b: Any) -> bool:
    """The `==` of the language: deep, by value; booleans differ from numbers; handles and functions by identity."""
    if isinstance(a, Handle) or isinstance(b, Handle):
        return a is b
    if isinstance(a, bool) or isinstance(b, bool):
        return isinstance(a, bool) and isinstance(b, bool) and a == b
    for kind in ((int, float), JSet, dict):
        if isinstance(a, kind) and isinstance(b, kind):
            return _same_of(a, b)
    if is_sequence(a) and is_sequence(b):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, _PLAIN) and isinstance(b, _PLAIN):
        return bool(a == b)
    return a is b


def is_sequence(value: object) -> bool:
    return isinstance(value, (list, tuple)) or is_vector(value)


def is_vector(value: object) -> TypeGuard[Array]:
    kind = type(value)
    return (kind.__module__ == "numpy" and kind.__name__ == "ndarray") or hasattr(kind, "jostle_vector")


def is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _same_of(a: Any, b: Any) -> bool:
    """Two numbers, two sets, or two records."""
    if isinstance(a, JSet):
        return len(a) == len(b) and all(x in b for x in a)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(v, b[k]) for k, v in a.items())
    return float(a) == float(b)


_MAY_BE_PRIVATE = (Table, Cube, WeightedRecords, Vectors, Score)
_KINDS: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (type(None), "none"), (bool, "a boolean"), ((int, float), "a number"), (str, "a text"), (Table, "a table"),
    (Cube, "a cube of counts"), (ColumnHandle, "a column"), (WeightedRecords, "weighted records"),
    (Vectors, "vectors"), (Score, "a score"), (JSet, "a set"), (dict, "a record"), ((Interval, Period), "a range"),
    (datetime, "a time"), (date, "a date"), (Grouped, "a grouped result"), ((Function, Builtin, RowForm), "a function"),
    (Open, "a domain"), (Module, "a module"),
)  # fmt: skip
"""The names of kinds in messages; the first match counts."""


def kind_name(value: Any) -> str:
    """The name of a value's kind in messages. For a private value it only tells that it is private."""
    for kinds, name in _KINDS:
        if isinstance(value, kinds):
            private = isinstance(value, _MAY_BE_PRIVATE) and value.private
            article = "a " if name.startswith("a ") else ""
            return f"{article}private {name.removeprefix(article)}" if private else name
    if isinstance(value, Part):
        return f"a {value.kind}"
    if is_sequence(value):
        return "a list"
    if hasattr(value, "jostle_call"):
        return "a ChoiceMaker"
    if is_model(value):
        return str(value.jostle_kind)
    return "a workload" if is_workload(value) else "a value of another kind"


def is_model(value: object) -> bool:
    """Whether a value is a model of a kernel: a classifier, a graphical model, a mixture.

    Its class has `jostle_kind` ("a decision tree"), `jostle_fields` (the values of `model.name`; functions are methods
    of the language), `as_json()` (the form of a release) and `__str__` (the output of `print`).
    """
    return hasattr(type(value), "jostle_kind")


def is_workload(value: object) -> bool:
    return hasattr(value, "bounds") and hasattr(value, "answers")


IN_A_LINE = str.maketrans("\n\r", "␊␍")  # line ends in cells of a table
SHOWN = 20  # the number of displayed items of a list or set
ROWS = 40  # the number of displayed rows of a table


def show(value: object, depth: int = 4) -> str:
    """The output of `print` for a public value: short numbers, and texts without quotes at the top level."""
    cuts = cut_text(cuts_of(*value.values())) if isinstance(value, dict) else []
    return value if isinstance(value, str) else "\n".join([_show(value, depth), *cuts])


def _show(value: object, depth: int, error: float = 0.0) -> str:
    text = _show_single(value, error)
    if text is None and depth == 0:
        return "…"
    text = text or _show_container(value, depth) or _show_handle(value)
    if text is None:
        name = getattr(value, "name", "")
        text = f"<{kind_name(value).removeprefix('a ')}{' ' + name if name else ''}>"
    return text


def _show_single(value: Any, error: float) -> str | None:
    """The text of a string, number, boolean or none."""
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
    if value is None or isinstance(value, bool):
        return {None: "none", True: "true", False: "false"}[value]
    if is_number(value):
        return show_number(float(value), error) + (BY_NOISE if type(value) is Marked else "")
    is_scalar = type(value).__module__ == "numpy" and not is_vector(value)
    return show_number(float(value)) if is_scalar else None


def _show_container(value: object, depth: int) -> str | None:
    if isinstance(value, dict):
        return _show_record(value, depth)
    if isinstance(value, JSet):
        return "{" + _items(value.items, depth) + "}"
    if isinstance(value, Grouped):
        return _show_table(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Period):
        return f"{value.low.isoformat()}..{value.high.isoformat()}"
    if isinstance(value, Interval):
        return f"{show_number(value.low)}..{show_number(value.high)}"
    return "[" + _items(value, depth) + "]" if is_sequence(value) else None


def _show_handle(value: Any) -> str | None:
    """A handle by its public facts, or a model or workload."""
    if isinstance(value, (Table, WeightedRecords)):
        return f"{'table' if isinstance(value, Table) else 'weighted'}({', '.join(value.domains)})"
    if isinstance(value, Cube):
        return "counts(" + " × ".join(str(s) for s in value.shape) + ")"
    if isinstance(value, ColumnHandle):
        return f"column {value.name}"
    if is_model(value):
        return str(value)
    return f"{value.kind}({value.size} queries)" if is_workload(value) else None


def _items(value: Any, depth: int) -> str:
    text = ", ".join([_show(v, depth - 1) for v in value[:SHOWN]])
    return text + (f", … {len(value)} in all" if len(value) > SHOWN else "")


def _show_record(value: dict[object, object], depth: int) -> str:
    from jostle.run.propagation import errors_beside

    parts = zip(value.items(), *errors_beside([*value.values()]), strict=True)
    items = [f"{k}: {_show(item, depth - 1, error)}{beside and f' ± {beside}'}" for (k, item), beside, error in parts]
    if any("\n" in item for item in items):  # a table, which starts on a line of its own
        return "\n".join(item.replace(": ", ":\n", 1) if "\n" in item else item for item in items)
    return "{" + ", ".join(items) + "}"


def _show_table(value: Grouped) -> str:
    from jostle.run.propagation import errors_beside

    columns: list[list[str]] = []
    hidden = value.hidden(ROWS)
    for place, (name, items) in enumerate(value.parts.items()):
        head = items[:ROWS]
        besides, errors = errors_beside(head)
        texts = [v if isinstance(v, str) else _show(v, 1, error) for v, error in zip(head, errors, strict=True)]
        if place >= value.keys and any(hidden):
            pairs = zip(head, texts, hidden, strict=True)
            texts = [text + DOUBTFUL * (doubt and not is_number(item)) for item, text, doubt in pairs]
        columns.append([name, *texts])
        columns += [["±", *besides]] if any(besides) else []
    widths = [max(map(len, column)) for column in columns]
    rows = zip(*columns, strict=True)
    texts = ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows]
    lines = [text.translate(IN_A_LINE) for text in texts] + ["no rows"] * (not len(value))
    if any(hidden) or any(cell.endswith(DOUBTFUL) for column in columns if column[0] == "±" for cell in column):
        lines.append(DOUBT)
    lines += cut_text(cuts_of(*(item for items in value.parts.values() for item in items[:ROWS])))
    if len(value) > ROWS:
        lines.append(f"… {len(value)} rows in all")
    return "\n".join(lines)


def plain(value: object) -> Any:
    """The JSON form of a public value for releases. Refused if it is too large."""
    if not isinstance(value, (float, int, str)):  # single values
        need_room(weight(value), "a value")
    return _plain(value)


def _plain(value: Any) -> object:
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, date):
        return value.isoformat()
    if is_number(value):
        number = float(value)
        if not math.isfinite(number):
            return None
        return int(number) if number.is_integer() and abs(number) < 2**53 else number
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, Grouped):
        return [{k: _plain(v) for k, v in row.items()} for row in value]
    if isinstance(value, JSet) or is_sequence(value) or (isinstance(value, Interval) and not value.real):
        return [_plain(v) for v in value]
    return value.as_json() if is_model(value) else show(value)
