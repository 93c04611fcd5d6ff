"""The aggregates of a select: one row a name, which every pass reads.

A row says how a call is written, what kinds of expressions it takes, whether these need public bounds, and one line for
people. What an aggregate measures, with its argument, is for `privacy` to say.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Kinds(Enum):
    """The kinds of expressions that an aggregate takes."""

    NUMBERS = "numbers"
    ORDERED = "numbers, and of public tables texts"
    ANY = "any values"


@dataclass(frozen=True, eq=False, slots=True)
class AggregateRow:
    """A row of the table. In `signature`, capitals are expressions on rows, and small letters are public numbers."""

    name: str
    signature: str
    about: str
    kinds: Kinds = Kinds.NUMBERS
    bounded: bool = False  # sums of its expressions are measured, so that they need bounds

    @property
    def usage(self) -> str:
        return f"{self.name}({self.signature})"

    @property
    def expressions(self) -> int:
        """How many expressions on rows it takes; those come first."""
        return sum(not parameter.islower() for parameter in self.signature.split(", "))

    @property
    def numbers(self) -> int:
        """How many public numbers it takes, after the expressions."""
        return len(self.signature.split(", ")) - self.expressions


_ROWS = (
    AggregateRow("count", "*", "How many rows there are, or how many where an expression is not none.", Kinds.ANY),
    AggregateRow("sum", "E", "The sum.", bounded=True),
    AggregateRow("avg", "E", "The mean.", bounded=True),
    AggregateRow("var", "E", "The sample variance.", bounded=True),
    AggregateRow("stddev", "E", "The sample standard deviation.", bounded=True),
    AggregateRow("median", "E", "The median."),
    AggregateRow("quantile", "E, q", "The quantile at q, between 0 and 1."),
    AggregateRow("min", "E", "The smallest value.", Kinds.ORDERED),
    AggregateRow("max", "E", "The largest value.", Kinds.ORDERED),
    AggregateRow("mode", "E", "The most frequent value.", Kinds.ANY),
)  # fmt: skip

AGGREGATES = {row.name: row for row in _ROWS}
BOUNDED = frozenset(row.name for row in _ROWS if row.bounded)

DISTINCT = {"count": AggregateRow("count_distinct", "E", "How many different values there are.", Kinds.ANY)}
"""What `distinct` before the expression makes of an aggregate."""
