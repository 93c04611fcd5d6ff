"""What kind of thing a public value certainly is, in the words of a message, and what a run refuses of each kind.

Follows `run.operators`, `run.expressions` and `run.builtins`. Where a kind is not known nothing is said: a value that
may be one of two kinds is of none here, `none` is of none, since a program tests for it, and a list may stand for
the vector that it is calculated with.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from jostle.check.abstract.values import (
    ANY_NUMBER,
    PUBLIC,
    Builtin,
    Closure,
    Domain,
    External,
    Handle,
    Items,
    Kind,
    NumberInterval,
    Range,
    Set,
    Signature,
)  # fmt: skip
from jostle.diagnostics import Diagnostic, did_you_mean
from jostle.language.aggregates import AGGREGATES
from jostle.language.row_mistakes import (  # fmt: skip
    READ,
    misfit,
    no_call,
    no_condition,
    no_elements,
    no_field,
    no_place,
    no_walk,
    outside,
)
from jostle.records import replace
from jostle.source import Span
from jostle.syntax import nodes as n
from jostle.syntax.walk import own_name

NUMBER, TEXT, BOOLEAN = "a number", "a text", "a boolean"
LIST, SET, RECORD, RANGE, FUNCTION, GROUPED = (
    "a list", "a set", "a record", "a range", "a function", "a grouped result"
)  # fmt: skip


def fault(message: str, help: str = "", kind: str = "TypeError") -> Diagnostic:
    """What a run would say, without a place."""
    return Diagnostic(kind, message, help=help)


def kind_of(value: object) -> str | None:
    """The kind of a value; None where it is not known, and of what is private."""
    match value:
        case Kind(name=name):
            return name if name != WORKLOAD else None
        case bool():
            return BOOLEAN
        case float() | NumberInterval():
            return NUMBER
        case str():
            return TEXT
        case list():
            return LIST
        case dict():
            return RECORD
        case Set():
            return SET
        case Range():
            return RANGE
        case Closure() | Builtin() | External() | Signature():
            return FUNCTION
    return None


def of_select(node: n.Select, columns: Collection[str]) -> object:
    """What a select over `columns` gives; `having` and `order by` only calculate with it."""
    if node.keys:
        all_named = all(key.name or (isinstance(key.value, n.Name) and key.value.id in columns) for key in node.keys)
        parts: list[n.GroupKey | n.Column] = [*node.keys, *node.columns]
        names = (part.name or own_name(part.value) or "" for part in parts)
        return Kind(GROUPED, tuple(names) if all_named else ())
    fields: dict[str, Any] = {}
    for column in node.columns:
        called = _called(column.value)
        row, name = AGGREGATES.get(called), column.name or called
        if row is None or name in fields:
            return PUBLIC
        fields[name] = ANY_NUMBER if row.gives_number else PUBLIC
    return fields if len(fields) > 1 else next(iter(fields.values()))


def _called(value: n.Expr) -> str:
    """The function that an output calls; empty where it is none alone."""
    return value.function.id if isinstance(value, n.Call) and isinstance(value.function, n.Name) else ""


def of_operator(node: n.Binary, left: object, right: object) -> Diagnostic | None:
    """Why a run would refuse `left op right`."""
    op, one, two = node.op, kind_of(left), kind_of(right)
    if one is None or two is None or op in ("==", "!=", "between", "not between"):
        return None
    if op in ("+", "-", "*", "/", "%", "^") and any(isinstance(v, Kind) and v.name == LIST for v in (left, right)):
        return None  # a column of a result is calculated with as a vector is
    texts, numbers = one == two == TEXT, one == two == NUMBER
    if op in ("in", "not in"):
        fits = texts or two in (LIST, SET, RECORD, RANGE, GROUPED)
    elif op in ("like", "not like"):
        fits = texts
    elif op in ("<", "<=", ">", ">="):
        fits = texts or numbers
    else:
        fits = numbers or (texts and op == "+") or (one in (LIST, SET) and op in "+-" and two in (LIST, SET))
    return None if fits else misfit(op, one, two, (node.left.span.text, node.right.span.text))


def of_sign(op: str, value: object) -> Diagnostic | None:
    """Why a run would refuse `-value`."""
    kind = kind_of(value)
    return None if kind in (None, NUMBER) else fault(f"`{op}` takes numbers, not {kind}", READ)


def of_condition(value: object, span: Span) -> Diagnostic | None:
    """Why a value cannot decide a condition."""
    kind = kind_of(value)
    return None if kind in (None, BOOLEAN) else no_condition(kind, span.text)


def of_walk(value: object, span: Span) -> Diagnostic | None:
    """Why a run cannot walk through a value."""
    kind = kind_of(value)
    return no_walk(kind, span.text) if kind in (NUMBER, TEXT, BOOLEAN, FUNCTION) and kind is not None else None


def of_index(value: Any, at: Any, it: Span) -> Diagnostic | None:
    """Why a value, which stands at `it`, has no elements, or none at this place."""
    kind, place = kind_of(value), kind_of(at)
    if kind in (LIST, TEXT) and place in (TEXT, BOOLEAN, LIST, RECORD) and place is not None:
        return no_place(place)
    whole = isinstance(at, float) and at.is_integer()
    if isinstance(value, list) and whole and not -len(value) <= at < len(value):
        return outside(f"{at:g}", len(value))
    if isinstance(value, Kind) and isinstance(at, str) and value.fields and at not in value.fields:
        fault = no_field(value.name, at, value.fields)
        group = f'one group is `[r for r in {it.text} if r.{value.fields[0]} == "{at}"][0]`'
        return fault if fault.help.startswith("did") else replace(fault, help=group)
    return no_elements(kind) if kind in (NUMBER, BOOLEAN, SET, RANGE, FUNCTION) and kind is not None else None


def of_call(value: object) -> Diagnostic | None:
    """Why a value cannot be called."""
    kind = kind_of(value)
    return None if kind in (None, FUNCTION) else no_call(kind)


# Arguments ---------------------------------------------------------------------------------------

_MANY = frozenset({LIST, SET, RANGE, GROUPED})
TABLE, RECORDS, CUBE, VECTORS, COLUMN, SCORE, WORKLOAD = (
    "a table", "weighted records", "a cube of counts", "vectors", "a column", "a score", "a workload"
)  # fmt: skip
_HANDLES = {"table": TABLE, "records": RECORDS, "cube": CUBE, "vectors": VECTORS, "column": COLUMN, "score": SCORE}
A_WORKLOAD = Kind(WORKLOAD)


def shape_of(value: object) -> str | None:
    """The kind of a value, of handles and workloads too."""
    if isinstance(value, Handle):
        return _HANDLES[value.kind]
    return value.name if isinstance(value, Kind) else kind_of(value)


TAKEN = {
    "table": frozenset({TABLE}),
    "tabular": frozenset({TABLE, RECORDS}),
    "filtered": frozenset({TABLE, RECORDS, CUBE, VECTORS}),
    "records": frozenset({RECORDS}),
    "cube": frozenset({CUBE}),
    "rows": frozenset({TABLE, CUBE, VECTORS}),
    "queries": frozenset({WORKLOAD}),
    "shape": frozenset({CUBE, LIST}),
    "points": frozenset({TABLE, LIST}),
    "strategy": frozenset({LIST}),
    "number": frozenset({NUMBER}),
    "text": frozenset({TEXT}),
    "numbers": _MANY,
    "each": _MANY | {NUMBER},
    "items": _MANY | {RECORD},
    "sized": _MANY | {RECORD, TEXT},
    "measured": frozenset({NUMBER, LIST, SET, CUBE, SCORE}),
    "number column": frozenset({TEXT, LIST}),
    "column of values": frozenset({TEXT, LIST}),
    "column": frozenset({TEXT, LIST}),
}
"""The kinds that a word of a signature allows, as far as they are known before a run."""
WORDS = {
    "number": "a number", "text": "a text", "numbers": "a list of numbers", "each": "a number or a list of numbers",
    "items": "a list", "sized": "a list or a text", "measured": "private counts or scores",
    "table": "a table", "cube": "a cube of counts", "rows": "a table or a cube",
    "tabular": "a table", "filtered": "a table or a cube", "records": "weighted records",
    "points": "a table, or a list of points", "queries": "a workload",
    "shape": "a cube of counts", "strategy": "a strategy of the library",
    **dict.fromkeys(("number column", "column of values", "column"), "the name of a column"),
}  # fmt: skip
COLUMNS = ("number column", "column of values", "column")
"""The words for the name of a column of the table that stands first, or a list of such names; the narrowest first."""


OF_DATA = frozenset({
    "table", "tabular", "filtered", "records", "cube", "rows", "points", "queries", "shape", "strategy", "measured"
})  # fmt: skip
"""The words of a signature that tell tables, cubes and workloads apart."""


def of_argument(name: str, takes: str, value: object, span: Span) -> Diagnostic | None:
    """Why a function of that name does not take a value that stands at `span`; `takes`: a word of its signature."""
    kind = shape_of(value) if takes in OF_DATA else kind_of(value)
    if not takes or kind is None:
        return None
    if kind not in TAKEN[takes]:
        it = span.text
        of_groups = f"those groups: `[r for r in {it} if r.n > 10]`, or `having n > 10` in the query"
        ways = {
            ("text", NUMBER): f"write `{name}(str({it}))`",
            ("text", LIST): f"write `len({it})`" if name == "length" else f"write `[{name}(x) for x in {it}]`",
            ("numbers", NUMBER): f"write `{name}([{it}])`", ("sized", NUMBER): f"its digits are `{name}(str({it}))`",
            ("records", TABLE): f"make them of a table: `weighted({it})`",
            ("table", RECORDS): f"that is for tables: `histogram({it}, x = a)` adds up weights",
            ("cube", TABLE): f"write `histogram({it}, x = age)` of one of its columns",
            ("measured", TABLE): f"write `size({it})` for all rows, `histogram({it}, x = age)` for those of each value",
            ("strategy", NUMBER): f"the amount comes after the call: `{name}(…) with epsilon {it}`",
            ("queries", CUBE): f"write `prefixes({it})`", ("shape", TABLE): f"write `histogram({it}, x = age)`",
            ("queries", TABLE): "write `prefixes(cells)` of a histogram `cells`",
            **dict.fromkeys((("rows", GROUPED), ("filtered", GROUPED)), of_groups),
            ("each", TEXT): f"write `{name}(number({it}))`", ("number", TEXT): f"write `number({it})`",
        }  # fmt: skip
        return fault(f"`{name}` takes {WORDS[takes]}, not {kind}", ways.get((takes, kind), ""))
    items = value if isinstance(value, list) else value.items if isinstance(value, Set) else []
    inside = list(map(kind_of, items))
    if takes == "measured" and inside and all(item == NUMBER for item in inside):
        message = f"`{name}` takes {WORDS[takes]}, and these are public numbers"
        return fault(message, "`laplace(histogram(t, x = age))` has noise for private counts")
    wrong = [item for item in inside if item in (TEXT, BOOLEAN, RECORD, FUNCTION)]
    if takes in ("numbers", "each") and wrong:
        return fault(f"`{name}` takes {WORDS[takes]}, and this list holds {wrong[0]}")
    return None


def of_column(function: str, takes: str, name: str, schema: Mapping[str, Any]) -> Diagnostic | None:
    """Why a function of the library does not take a column of this name of a table with these columns."""
    domain = schema.get(name, PUBLIC)
    if name not in schema:
        available = "the columns are " + ", ".join(schema)
        return fault(f"there is no column `{name}`", did_you_mean(name, schema) or available, "NameError")
    if isinstance(domain, Domain):
        message = f"`{function}` needs the values or the range of `{name}`, which the description leaves open"
        help = f'describe them: `{name}: {{"a", "b"}}`, or `{name}: 0..99`'
        return fault(message, help, "OpenKeys")
    if takes == "number column" and isinstance(domain, Set | list):
        help = "`top_k` and `crosstab` are for listed values; `logistic_regression` is for two of them"
        return fault(f"`{function}` takes a column of numbers, and `{name}` has listed values", help)
    if takes == "column of values" and isinstance(domain, Range) and domain.real:
        help = f"make it whole: `derive(t, whole = floor({name}))`"
        return fault(f"`{function}` takes a column of listed values or whole numbers, and `{name}` is real", help)
    return None


def unordered_items(span: Span) -> Diagnostic:
    """Why items have no order of their own."""
    help = f"say what counts: `sorted({span.text}, lambda x: x[0])`"
    return fault("`sorted` takes all numbers or all texts", help)


def unordered(items: object) -> bool:
    """Whether items certainly are neither all numbers nor all texts, so that they have no order of their own."""
    inside = items if isinstance(items, list) else [items.item] if isinstance(items, Items) and items.least else []
    kinds = {kind_of(item) for item in inside}
    return None not in kinds and bool(kinds) and kinds not in ({NUMBER}, {TEXT})
