"""The kinds of facts that a row of `builtins` states, and constants that the description of a column rules out.

A comparison with such a constant, which no row can equal or exceed, is answered by noise about nothing, so it is
reported before anything runs. Only constants that stand in the program's text are looked at.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from msgspec import Struct

from jostle.diagnostics import did_you_mean
from jostle.language.operations import COMPARISONS
from jostle.syntax import nodes as n

MISSING_WORDS = (
    "NA", "N/A", "#N/A", "n/a", "N.A.", "n.a.", "nan", "NaN", "NULL", "null", "None", "none", "-", "--", "–", ".", "?",
    "unknown", "Unknown", "missing", "unbekannt", "keine Angabe", "k.A.", "k. A.",
)  # fmt: skip
"""Words for what is missing in files. Where they are no listed text they are none, as all that is not read, but fit."""


class Effect(Enum):
    """What a call does to private data that it is given."""

    PURE = "pure"  # computes on public values, and charges nothing
    MEASURES = "measures"  # charges the sources of its `@` parameter, and gives what was released
    TRANSFORMS = "transforms"  # gives handles that are as private as what they are made from
    SCORES = "scores"  # gives a private number, or a vector of them, of known sensitivity
    DECLARES = "declares"  # opens a source


class Reads(Enum):
    """How a call reads its arguments."""

    PUBLIC = "public"  # values; a handle, also inside a container, is refused
    HANDLES = "handles"  # values, handles among them
    CONTAINERS = "containers"  # values; a handle is refused, and a container that holds one is not
    PRINTS = "printed"  # values that a person will see; a handle anywhere is refused
    DRAWS = "drawn"  # the same, in a picture
    ROWS = "rows"  # the first is a handle, the others are expressions on its rows
    SOURCE = "source"  # it stands in declarations too, which look at how it is written
    NOTHING = "nothing"  # it is no function


class Gives(Enum):
    """What a call gives, as far as a check before the run follows it."""

    RELEASED = "a public value"
    NUMBER = "a number that follows from numbers"
    CONSTANT = "a constant"
    DOMAIN = "a domain of columns"
    BALANCE = "an amount of at most the budget"
    WORKLOAD = "a workload"
    LENGTH = "how many items there are"
    ITEMS = "the items as a list"
    FIELDS = "the values of a record, or the items, as a list"
    REVERSED = "the items as a list, the last one first"
    DISTINCT = "the items as a set"
    NUMBERED = "pairs of a place and an item"
    ZIPPED = "lists of one item of each"
    APPENDED = "the items and one more"
    SORTED = "the items in order"
    RECORD = "a record of pairs"
    ITEM = "one of the items of the first argument"
    SCORE = "a score"
    CUBE = "a cube of counts"
    VECTORS = "rows as vectors"
    FILTERED = "a table with the same columns"
    DERIVED = "a table with more columns"
    PICKED = "a table with some of the columns"
    BINNED = "a table in which one column is binned"
    EXPLODED = "a table with more columns, and a row for each of their items"
    MOMENTS = "a table of the moments of persons"
    UNION = "a table of all rows of several, or a workload"
    RECORDS = "weighted records"
    LIMITED = "the same table under a smaller budget"
    PARTS = "pairs of a key and a part of a table"
    SHARES = "disjoint parts of a table"
    COLUMNS = "the columns of a table"
    CHOICE = "a ChoiceMaker"
    ADVISOR = "a ChoiceMaker that is called like a function"
    OPTION = "an Option"
    UTILITY = "a Utility"
    FEATURES = "a list of Features"


class Parameter(Struct, frozen=True, eq=False):
    """A parameter. `kind` is "" for one by place or name, "name" for one by name alone, "*" and "**" for the rest."""

    name: str
    default: str | None = None
    kind: str = ""
    exposed: bool = False  # what it is given is measured, scored or transformed
    takes: str = ""  # a word for what it is given, such as number, text, table, cube; empty where anything goes


@dataclass(frozen=True, eq=False, repr=False)
class Builtin:
    """A row of the table. `signature` is None for what is no function."""

    name: str
    signature: str | None
    effect: Effect
    reads: Reads
    gives: Gives
    about: str
    function: str = ""  # where in `privacy` it stands, `module:name`; empty where `run` implements it
    module: str = ""  # of the library, whose `use` brings it; empty where every program knows it

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        return tuple(_parameters(self.signature or ""))

    @cached_property
    def exposed(self) -> Parameter | None:
        """The parameter whose handles the effect is on."""
        return next((parameter for parameter in self.parameters if parameter.exposed), None)

    @property
    def cannot_charge(self) -> bool:
        """Whether a call charges nothing and gives nothing that could, whatever its arguments are made of."""
        if self.effect not in (Effect.PURE, Effect.DECLARES) or self.reads is Reads.ROWS:
            return False
        return self.gives not in (Gives.CHOICE, Gives.ADVISOR, Gives.OPTION, Gives.UTILITY, Gives.FEATURES)

    @property
    def over_rows(self) -> bool:
        """Whether the arguments after the first are expressions on the rows of the first."""
        return self.reads is Reads.ROWS

    @property
    def usage(self) -> str:
        """The name with its parameters, as a person reads it."""
        if self.signature is None:
            return self.name
        return f"{self.name}({re.sub(r'@|: [a-z]+', '', self.signature)})"

    def place(self, name: str) -> int | None:
        """Where a parameter stands among those by place, or None."""
        placed = [parameter.name for parameter in self.parameters if parameter.kind == ""]
        return placed.index(name) if name in placed else None


_SAY_IT = ("table", "cube", "queries", "strategy")
"""The names of parameters that are the word for what they take."""


def _parameters(signature: str) -> Iterator[Parameter]:
    by_name = False
    for text in filter(None, re.split(r", (?![^\[]*\])", signature)):
        name, _, default = text.partition(" = ")
        if name == "*":
            by_name = True
            continue
        name, _, takes = name.partition(": ")
        bare = name.lstrip("*@")
        stars = name[: name.count("*")]
        takes = "" if takes == "any" else takes or (bare if bare in _SAY_IT else "")
        yield Parameter(bare, default or None, stars or ("name" if by_name else ""), "@" in name, takes)
        by_name = by_name or stars == "*"


MOST_LISTED = 8
DOMAINS_ARE = 'a range `0..99`, categories `{"a", "b"}`, `{true, false}`, or `text integer real date time`'
NO_FILLING = ("`{name}` is never missing, and has no value for a cell that is", "give its range, or list its values")
FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


class Listed(Struct, frozen=True):
    """A description by values, all texts or all numbers."""

    values: Sequence[str | float]


class Bounded(Struct, frozen=True):
    """A description by two ends; `whole`: of whole numbers alone."""

    low: float
    high: float
    whole: bool


def literal(node: n.Expr) -> str | float | None:
    """The text or number that is written here, or None."""
    if isinstance(node, n.Unary) and node.op == "-" and isinstance(node.operand, n.Number):
        return -node.operand.value
    return node.value if isinstance(node, (n.Number, n.String)) else None


Read = Callable[[n.Expr], str | float | None]


def literals(node: n.Expr, read: Read = literal) -> list[tuple[n.Expr, str | float]]:
    """Those of a list or set, each with its place."""
    items = node.items if isinstance(node, (n.ListOf, n.SetOf)) else (node,)
    pairs = ((item, read(item)) for item in items)
    return [(item, value) for item, value in pairs if value is not None]


def compared(node: n.Binary, read: Read = literal) -> list[tuple[n.Expr, str, n.Expr, str | float]]:
    """(expression, operator, constant's place, constant) of a comparison with constants that are written there."""
    if node.op in ("in", "not in"):
        if isinstance(node.right, n.Range):
            return []
        return [(node.left, "==", item, value) for item, value in literals(node.right, read)]
    if node.op == "between" and isinstance(node.right, n.ListOf):
        return [
            (node.left, op, end, value)
            for op, end in zip((">=", "<="), node.right.items, strict=True)
            if (value := read(end)) is not None
        ]
    if node.op not in COMPARISONS:
        return []
    left, right = read(node.left), read(node.right)
    pairs: list[tuple[n.Expr, str, n.Expr, str | float]] = []
    if right is not None and left is None:
        pairs.append((node.left, node.op, node.right, right))
    if left is not None and right is None:
        pairs.append((node.right, FLIPPED.get(node.op, node.op), node.left, left))
    return pairs


def ruled_out(name: str, op: str, value: str | float, domain: Listed | Bounded) -> tuple[str, str] | None:
    """Why `name OP value` can hold for no row (or for all, of `!=`), and the way out; None where it may."""
    if isinstance(domain, Listed):
        if op not in ("==", "!=") or not domain.values or isinstance(value, str) != isinstance(domain.values[0], str):
            return None
        if value in domain.values:
            return None
        examples = ", ".join(map(quote, domain.values[:MOST_LISTED]))
        more = ", …" if len(domain.values) > MOST_LISTED else ""
        return f"`{name}` is never {quote(value)}: its description does not list it", _close(value, domain.values) or (
            f"it is one of {examples}{more}"
        )
    if isinstance(value, str):
        return None
    side = _side(op, value, domain)
    if side:
        is_it = f"is never {quote(value)}" if op in ("==", "!=") else f"is never {side} {quote(value)}"
        return f"`{name}` {is_it}", f"it is described as {quote(domain.low)}..{quote(domain.high)}"
    if domain.whole and op in ("==", "!=") and not float(value).is_integer():
        return f"`{name}` is never {quote(value)}", "its description has whole numbers alone"
    return None


def _side(op: str, value: float, domain: Bounded) -> str:
    """On which side of a range a constant lies with which a comparison holds for no row; empty where it may hold."""
    if (op == ">" and value >= domain.high) or (value > domain.high and op in ("==", "!=", ">=")):
        return "above"
    return "below" if (op == "<" and value <= domain.low) or (value < domain.low and op in ("==", "!=", "<=")) else ""


def ways(name: str, table: str | None) -> str:
    """How to say which is meant of a column and a variable of one name; `table`: what the column's is called."""
    column = f"`{table}.{name}`" if table else f"`t.{name}` after `from … as t`"
    return f"write {column} for the column, `@{name}` for the variable"


def quote(value: str | float) -> str:
    return f'"{value}"' if isinstance(value, str) else f"{value:.12g}"


def _close(value: str | float, values: Sequence[str | float]) -> str:
    if not isinstance(value, str):
        return ""
    texts = [text for text in values if isinstance(text, str)]
    same = [text for text in texts if text.strip().casefold() == value.strip().casefold()]
    hint = f"did you mean `{same[0]}`?" if same else did_you_mean(value, texts)
    return hint.replace("`", '"')


LAST_HEADER = 100
MEASURED_FIRST = "measure it first, with an amount of its own, and use the number"
NO_LINE = ("`header` is the number of a line, from 1 to 100",
           "the line that names the columns, as an editor counts lines: `header = 3`")  # fmt: skip


def is_header_line(value: object) -> bool:
    """Whether a value can say which line of a file names its columns."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and float(value).is_integer() and 0 < value <= LAST_HEADER  # type: ignore[arg-type, operator]


TRUTHS = {"true": ("yes", "y", "true", "t", "1", "ja", "oui"), "false": ("no", "n", "false", "f", "0", "nein", "non")}
"""Texts that stand for true and false in files."""


def text_meant(text: n.Expr, op: str, node: n.Binary, values: Collection[object]) -> str:
    """What a text is compared with in place of a number or a truth: the value that spells it, if there is one."""
    it, other = text.span.text, (node.right if text is node.left else node.left).span.text
    meant = next((value for value in values if str(value).lower() in TRUTHS.get(other, (other.lower(),))), None)
    if meant is not None:
        return f'`{it}` is a text: write `{it} {op} "{meant}"`'
    return f"`{it}` is a text, such as " + " or ".join(f'`"{value}"`' for value in list(values)[:4])
