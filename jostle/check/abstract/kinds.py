"""What kind of thing a public value certainly is, in the words of a message, and what a run refuses of each kind.

Follows `run.operators`, `run.attributes` and `run.builtins`. Where a kind is not known nothing is said: a value that
may be one of two kinds is of none here, `none` is of none, since a program tests for it, and a list may stand for
the vector that it is calculated with.
"""

from __future__ import annotations

from typing import Any

from jostle.check.abstract.values import (
    ANY_NUMBER,
    PUBLIC,
    Builtin,
    Closure,
    External,
    Items,
    Kind,
    NumberInterval,
    Range,
    Set,
    Signature,
)  # fmt: skip
from jostle.diagnostics import Diagnostic, did_you_mean
from jostle.language.aggregates import AGGREGATES
from jostle.language.misfits import READ, misfit
from jostle.syntax import nodes as n

NUMBER, TEXT, BOOLEAN = "a number", "a text", "a boolean"
LIST, SET, RECORD, RANGE, FUNCTION, GROUPED = (
    "a list", "a set", "a record", "a range", "a function", "a grouped result"
)  # fmt: skip


def fault(message: str, help: str = "", kind: str = "TypeError") -> Diagnostic:
    """What a run would say, without a place."""
    return Diagnostic(kind, message, help=help)


def kind_of(value: Any) -> str | None:
    """The kind of a value; None where it is not known, and of what is private."""
    match value:
        case Kind(name=name):
            return name
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


def of_select(node: n.Select) -> Any:
    """What a select gives; `having` and `order by` only calculate with it."""
    if node.keys:
        return Kind(GROUPED)
    called = [_called(column.value) for column in node.columns]
    rows = [AGGREGATES.get(name) for name in called]
    names = [column.name or name for column, name in zip(node.columns, called, strict=True)]
    if None in rows or len(set(names)) < len(names):
        return PUBLIC
    fields = [ANY_NUMBER if row is not None and row.gives_number else PUBLIC for row in rows]
    return fields[0] if len(fields) == 1 else dict(zip(names, fields, strict=True))


def _called(value: n.Expr) -> str:
    """The function that an output calls; empty where it is none alone."""
    return value.function.id if isinstance(value, n.Call) and isinstance(value.function, n.Name) else ""


def of_operator(op: str, left: Any, right: Any) -> Diagnostic | None:
    """Why a run would refuse `left op right`."""
    one, two = kind_of(left), kind_of(right)
    if one is None or two is None or op in ("==", "!=", "between", "not between"):
        return None
    texts, numbers = one == two == TEXT, one == two == NUMBER
    if op in ("in", "not in"):
        fits = texts or two in (LIST, SET, RECORD, RANGE, GROUPED)
    elif op in ("like", "not like"):
        fits = texts
    elif op in ("<", "<=", ">", ">="):
        fits = texts or numbers
    else:
        fits = numbers or (texts and op == "+") or (one in (LIST, SET) and op in "+-" and two in (LIST, SET))
    return None if fits else misfit(op, one, two)


def of_sign(op: str, value: Any) -> Diagnostic | None:
    """Why a run would refuse `-value`."""
    kind = kind_of(value)
    return None if kind in (None, NUMBER) else fault(f"`{op}` takes numbers, not {kind}", READ)


def of_condition(value: Any) -> Diagnostic | None:
    """Why a value cannot decide a condition."""
    kind = kind_of(value)
    if kind in (None, BOOLEAN):
        return None
    return fault(f"a condition is true or false, and this is {kind}", "compare it, as in `n > 0`")


def of_walk(value: Any) -> Diagnostic | None:
    """Why a run cannot walk through a value."""
    kind = kind_of(value)
    if kind not in (NUMBER, TEXT, BOOLEAN, FUNCTION):
        return None
    help = {NUMBER: "walk through the range, `for i in 1..n`"}.get(kind, "")
    return fault(f"{kind} cannot be walked through", help)


def of_field(value: Any, name: str) -> Diagnostic | None:
    """Why a value has no field of a name."""
    kind = kind_of(value)
    if isinstance(value, dict):
        if name in value:
            return None
        help = did_you_mean(name, value) or (f"it has {', '.join(list(value)[:8])}" if value else "")
        return fault(f"{kind} has no `{name}`", help, "NameError")
    if kind in (None, RECORD, GROUPED, RANGE):
        return None
    ways = {
        TEXT: "functions take a text, `upper(s)`, `length(s)`",
        LIST: "functions take a list, `append(xs, x)`, `len(xs)`",
    }
    return fault(f"{kind} has no fields, and `{name}` was asked", ways.get(kind, "it is the value itself"))


def of_index(value: Any) -> Diagnostic | None:
    """Why a value has no elements."""
    kind = kind_of(value)
    if kind not in (NUMBER, BOOLEAN, SET, RANGE, FUNCTION):
        return None
    help = "`list(s)[0]` is an element" if kind in (SET, RANGE) else "only lists, texts and records have elements"
    return fault(f"{kind} cannot be indexed", help)


def of_call(value: Any) -> Diagnostic | None:
    """Why a value cannot be called."""
    kind = kind_of(value)
    if kind in (None, FUNCTION):
        return None
    return fault(f"{kind} cannot be called", "is a function of this name given another value above?")


# Arguments ---------------------------------------------------------------------------------------

_MANY = frozenset({LIST, SET, RANGE, GROUPED})
TAKEN = {
    "number": frozenset({NUMBER}),
    "text": frozenset({TEXT}),
    "numbers": _MANY,
    "each": _MANY | {NUMBER},
    "items": _MANY | {RECORD},
    "sized": _MANY | {RECORD, TEXT},
    "measured": frozenset({NUMBER, LIST, SET}),
}
"""The kinds that a word of a signature allows, as far as they are known before a run."""
WORDS = {
    "number": "a number", "text": "a text", "numbers": "a list of numbers", "each": "a number or a list of numbers",
    "items": "a list", "sized": "a list or a text", "measured": "private counts or scores",
}  # fmt: skip


def of_argument(name: str, takes: str, value: Any) -> Diagnostic | None:
    """Why a built-in of that name does not take a value where it `takes` what a word of its signature says."""
    kind = kind_of(value)
    if not takes or kind is None:
        return None
    if kind not in TAKEN[takes]:
        ways = {
            ("text", NUMBER): "`str(x)` is the text of a number", ("text", LIST): f"`[{name}(x) for x in xs]`",
            ("numbers", NUMBER): f"write `{name}([1, 2])`", ("sized", NUMBER): f"write `{name}([1, 2])`",
            ("each", TEXT): READ, ("number", TEXT): READ,
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


UNORDERED = fault("`sorted` takes all numbers or all texts", "say what counts: `sorted(rows, lambda row: row.n)`")


def unordered(items: Any) -> bool:
    """Whether items certainly are neither all numbers nor all texts, so that they have no order of their own."""
    inside = items if isinstance(items, list) else [items.item] if isinstance(items, Items) and items.least else []
    kinds = {kind_of(item) for item in inside}
    return None not in kinds and bool(kinds) and kinds not in ({NUMBER}, {TEXT})
