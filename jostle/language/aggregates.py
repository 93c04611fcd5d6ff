"""The aggregates of a select: one row a name, which every pass reads.

A row says how a call is written, what kinds of expressions it takes, whether these need public bounds, and one line for
people. What an aggregate measures, with its argument, is the class of the same name in
`privacy.measurements.aggregates`: a row without one is an import error.
"""

from __future__ import annotations

from enum import Enum

from msgspec import Struct

from jostle.diagnostics import Refusal, refuse


class Kinds(Enum):
    """The kinds of expressions that an aggregate takes."""

    NUMBERS = "numbers"
    PLACED = "numbers, dates and times"
    ORDERED = "numbers, dates and times, and of public tables texts"
    ANY = "any values"


class AggregateRow(Struct, frozen=True, eq=False):
    """A row of the table. In `usage`, capitals are expressions on rows, and small letters after them public numbers."""

    name: str
    usage: str
    about: str
    kinds: Kinds = Kinds.NUMBERS
    bounded: bool = False  # sums of its expressions are measured: they need bounds, and true and false are 1 and 0
    instead: str = ""  # what to write where a call of it is written otherwise

    @property
    def gives_moments(self) -> bool:
        """Whether it gives a date of dates and a time of times, worked out of their days and seconds."""
        return self.kinds in (Kinds.PLACED, Kinds.ORDERED)

    @property
    def expressions(self) -> int:
        """How many expressions on rows it takes."""
        return sum(not parameter.islower() for parameter in self._parameters)

    @property
    def numbers(self) -> int:
        """How many public numbers it takes."""
        return len(self._parameters) - self.expressions

    @property
    def _parameters(self) -> list[str]:
        return self.usage[self.usage.rindex("(") + 1 : -1].split(", ")


_ROWS = (
    AggregateRow("count", "count(*), count(E)", "How many rows there are, or rows where E is not none.", Kinds.ANY),
    AggregateRow("sum", "sum(E)", "The sum.", bounded=True),
    AggregateRow("avg", "avg(E)", "The mean.", Kinds.PLACED, bounded=True),
    AggregateRow("var", "var(E)", "The sample variance.", bounded=True),
    AggregateRow("stddev", "stddev(E)", "The sample standard deviation.", bounded=True),
    AggregateRow("covariance", "covariance(X, Y)", "The sample covariance.", bounded=True),
    AggregateRow("median", "median(E)", "The median.", Kinds.PLACED),
    AggregateRow(
        "quantile",
        "quantile(E, q)",
        "The quantile at q, between 0 and 1.",
        Kinds.PLACED,
        instead="write `quantile(x, 0.25) as low, quantile(x, 0.75) as high`, which share the amount; "
        "`describe_numeric` of `statistics` reads all quantiles off one measurement",
    ),
    AggregateRow("min", "min(E)", "The smallest value.", Kinds.ORDERED),
    AggregateRow("max", "max(E)", "The largest value.", Kinds.ORDERED),
    AggregateRow("bounds", "bounds(E)", "Round numbers, `low` and `high`, between which nearly all values lie."),
    AggregateRow("mode", "mode(E)", "The most frequent value.", Kinds.ANY),
)

AGGREGATES = {row.name: row for row in _ROWS}

DISTINCT = {
    "count": AggregateRow("count_distinct", "count(distinct E)", "How many different values; of several, combinations.",
                          Kinds.ANY)
}  # fmt: skip
"""What `distinct` before the expression makes of an aggregate."""


def of_no_numbers(name: str, kind: str, it: str = "") -> Refusal:
    """The refusal of an expression that is no number, with what to write; `it` is the expression in the program."""
    way = f"`{name}(days_between(2024-01-01, d))` is of days"
    if kind == "boolean":
        way = f"`{name}(1 if {it or 'c'} else 0)` is of ones and zeros"
    elif kind == "text":
        way = f"`{name}(number({it or 'x'}))` is of the numbers that texts spell, `groupby {it or 'x'}` counts each"
    return refuse("TypeError", f"`{name}` takes a number, and this is a {kind}", help=way)
