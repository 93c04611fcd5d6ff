"""What a person is told of a value that does not fit its place, by its kind in words.

A check says it of kinds that it knows before the run, and a run of the values themselves. `it` is the value as it
stands in the program, where that is known.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from jostle.diagnostics import Diagnostic, did_you_mean

READ = "`number(s)` reads a number from a text"
_INSTEAD = {
    "a boolean": "write `1 if b else 0` for the boolean",
    "a list": "calculate with each element: `[x {op} {other} for x in {it}]`",
    "a record": "calculate with one of its fields, `r.n`",
    "a grouped result": "calculate with one of its columns, `g.n`",
    "none": "test for `none` first: `x if x != none else 0`",
}
_FUNCTIONS = {
    "a text": "functions take a text, `upper(s)`, `length(s)`",
    "a list": "functions take a list, `append(xs, x)`, `len(xs)`",
}


def misfit(op: str, left: str, right: str, written: tuple[str, str] = ("", "")) -> Diagnostic:
    """Why `left op right` is refused, of these kinds, as they are `written`; without a place."""
    kinds = {left, right}
    message = f"`{op}` takes numbers, and these are {left} and {right}"
    one, two = written[0] or "xs", written[1] or "2"
    other, it = (one, two) if right in _INSTEAD and left not in _INSTEAD else (two, one)
    help = next((way.format(op=op, it=it, other=other) for kind, way in _INSTEAD.items() if kind in kinds), "")
    if op == "*" and left == "a list" and right == "a number":
        help += f"; `[0 for i in 1..{two}]` is a list of so many"
    if op.endswith("in"):
        message, help = f"`in` takes a list, a set, a range or a record, not {right}", f"write `{one} in [{two}]`"
    elif op.endswith("like"):
        message, help = f"`like` takes texts, not {left} and {right}", "write `str(x)` of a number"
    elif op[0] in "<>":
        message = f"`{op}` compares numbers or texts, not {left} and {right}"
        if not kinds & {"none", "a date", "a time"}:
            help = _read(left, written) if kinds == {"a number", "a text"} else _of_each(op, one, two)
    elif "a text" in kinds:
        joins = op == "+" or (op == "%" and left == "a text")
        help = _joined(left, written) if joins else _read(left, written)
        message = "`%` is the remainder of numbers, and fills no text" if op == "%" and joins else message
    return Diagnostic("TypeError", message, help=help)


def _of_each(op: str, one: str, two: str) -> str:
    """The way out of a list, or a column of a result, that is compared: the items, or the groups, that are meant."""
    column = re.fullmatch(r"(\w+)\.(\w+)", one)
    if column is None:
        return f"compare each: `[x for x in {one} if x {op} {two}]`"
    return f"compare each: `[r for r in {column[1]} if r.{column[2]} {op} {two}]`"


def _joined(left: str, written: tuple[str, str]) -> str:
    """The way out of a text and something else that are to be one text."""
    one, two = (side or word for side, word in zip(written, ('"a"', "n"), strict=True))
    one = re.sub(r"%[dsif]|\{\}", "", one)
    return f"join texts with `{one} + str({two})`" if left == "a text" else f"join texts with `str({one}) + {two}`"


def _read(left: str, written: tuple[str, str]) -> str:
    """The way out of a text that stands for a number."""
    text = written[left != "a text"]
    return f"write `number({text})` where the text holds a number" if text else READ


def no_condition(kind: str, it: str = "") -> Diagnostic:
    """A value that cannot decide a condition."""
    help = f"compare it, as in `{it or 'n'} > 0`" if kind == "a number" else 'compare it, as in `x == "a"`'
    return Diagnostic("TypeError", f"a condition is true or false, and this is {kind}", help=help)


def no_walk(kind: str, it: str = "") -> Diagnostic:
    """A value that cannot be walked through."""
    ways = {"a number": f"walk through the range, `1..{it or 'n'}`", "a text": "a list of one text is `[x]`"}
    help = ways.get(kind, "")
    return Diagnostic("TypeError", f"{kind} cannot be walked through", help=help)


def no_fields(kind: str, name: str) -> Diagnostic:
    """A value without fields, of which one was asked."""
    help = _FUNCTIONS.get(kind, "it is the value itself")
    return Diagnostic("TypeError", f"{kind} has no fields, and `{name}` was asked", help=help)


def no_field(kind: str, name: str, fields: Iterable[str]) -> Diagnostic:
    """A field that is not among those of a value."""
    names = list(fields)
    listed = "it has " + ", ".join(f"`{field}`" for field in names[:8]) if names else ""
    return Diagnostic("NameError", f"{kind} has no `{name}`", help=did_you_mean(name, names) or listed)


def no_categories(column: str, *, real: bool) -> Diagnostic:
    """A column whose values, which are asked, nothing lists."""
    if real:
        cut = f"cut it: `in_bins(t, {{{column}: [10, 20]}})` of `classifiers`, or `derive(t, whole = floor({column}))`"
        return Diagnostic("TypeError", f"`{column}` is real, and has no list of values", help=cut)
    help = f'describe it, `{column}: {{"a", "b"}}` or `{column}: 0..99`, or leave it out: `pick(t, …)` of the others'
    return Diagnostic("OpenKeys", f"the values of `{column}` are not public", help=help)


def no_elements(kind: str) -> Diagnostic:
    """A value that cannot be indexed."""
    ways = {"a set": "`list(s)[0]` is an element", "a range": "`list(s)[0]` is an element"}
    help = ways.get(kind, "only lists, texts and records have elements")
    return Diagnostic("TypeError", f"{kind} cannot be indexed", help=help)


def no_place(what: str) -> Diagnostic:
    """Something that is no index."""
    help = "places are counted from 0: `xs[0]` is the first"
    return Diagnostic("TypeError", f"an index is a whole number, not {what}", help=help)


def outside(at: str, length: int) -> Diagnostic:
    """An index that no element has."""
    help = f"places are 0 to {length - 1}, or -1 to -{length} from the end" if length else "it is empty"
    return Diagnostic("ValueError", f"index {at} is outside a list of {length}", help=help)


def no_call(kind: str) -> Diagnostic:
    """A value that is no function."""
    help = "is a function of this name given another value above?"
    if kind == "a text":
        help = "a function that is passed stands without quotes: `gini`"
    return Diagnostic("TypeError", f"{kind} cannot be called", help=help)
