"""The closed relational plan: all questions that an engine answers, and which persons rows belong to.

Plans are built by `privacy` and `run` from checked trees and public values. User text reaches an engine only as a
constant, which is always quoted or bound. The row language is total: arithmetic on doubles, comparison, logic with
nulls, `if`, `clamp`; division by zero, NaN and infinities are null (`none`). A domain is the public knowledge about the
values of a column.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date
from typing import assert_never

from msgspec import Struct

from jostle.language.moments import moment_of


class Integer(Struct, frozen=True, cache_hash=True):
    """A bounded integer, both ends included. Values are floored, then clamped."""

    low: int
    high: int


class Real(Struct, frozen=True, cache_hash=True):
    """A bounded real, both ends included; values are clamped."""

    low: float
    high: float


class Categories(Struct, frozen=True, cache_hash=True):
    """A finite set of public values, all texts or all numbers. Other values become null."""

    values: tuple[str, ...] | tuple[float, ...]


class Moments(Struct, frozen=True, cache_hash=True):
    """Dates or times within a range, both ends included, as whole days or microseconds since 1 January 1970.

    Values are clamped, then rounded down to the start of their `unit`; if it is empty, dates to days and times not at
    all. Both ends are starts of a unit.
    """

    kind: str  # `date` or `time`
    low: int
    high: int
    unit: str = ""


class Open(Struct, frozen=True, cache_hash=True):
    """Values without a public bound: `text`, `integer`, `real`, `date` or `time`; or `boolean`, with public values.

    Dates or times with a `unit` are starts of that unit; with an empty one they can be any.
    """

    kind: str
    unit: str = ""

    @property
    def digest_facts(self) -> tuple[str, ...]:
        """The fields in older digests, from before units."""
        return ("Open", self.kind, self.unit) if self.unit else ("Open", self.kind)


Domain = Integer | Real | Categories | Moments | Open


def listed(domain: Domain) -> tuple[str | float | bool, ...] | None:
    """The public values of a column, numbers as doubles; None if they are not listed."""
    if domain == Open("boolean"):
        return (False, True)
    if isinstance(domain, Categories):
        return tuple(domain.values)
    if isinstance(domain, Integer):
        return tuple(float(value) for value in range(domain.low, domain.high + 1))
    return None


def filling(domain: Domain) -> Constant | None:
    """The replacement of missing cells in a column that is declared never missing: the low end of its range, the first
    listed value, or false. None if no value is public."""
    if isinstance(domain, Moments):
        return Constant(moment_of(domain.kind, domain.low))
    if isinstance(domain, Integer | Real):
        return Constant(float(domain.low))
    values = listed(domain)
    return Constant(values[0]) if values else None


# Rows ----------------------------------------------------------------------------------------------


class Column(Struct, frozen=True, cache_hash=True):
    name: str


class Constant(Struct, frozen=True, cache_hash=True):
    """A public value; a `datetime` is a time. Unlike in Python, true does not equal 1, so equal plans mean the same."""

    value: float | str | bool | date | None

    __hash__, __ne__ = Struct.__hash__, object.__ne__

    def __eq__(self, other: object) -> bool:
        mine, theirs = self.value, getattr(other, "value", None)
        return type(other) is Constant and mine == theirs and isinstance(mine, bool) == isinstance(theirs, bool)


class Apply(Struct, frozen=True, cache_hash=True):
    """An operation on rows.

    Arithmetic `+ - * / % ^ neg` and `abs floor ceil sqrt log exp round`; comparison `== != < <= > >=` (numbers
    with numbers, text with text); logic `and or not`; `if` (test, then, other); `clamp` (x, low, high);
    `missing` (one of any kind), which is true or false; `in` (x, constant, …), where a `none` among the constants
    matches missing values; `min`, `max` (of two); `bucket` (n, salt, value, …): a hash of the values, 0 … n − 1,
    which programs cannot write. A null operand gives null, except as the test of `if`, which is then false.
    `and` and `or` are three-valued as in SQL. A `where` keeps a row only if its condition is true. Results that are
    not finite are null.
    """

    op: str
    args: tuple[RowExpr, ...]


RowExpr = Column | Constant | Apply


def names_in(exprs: Iterable[RowExpr]) -> set[str]:
    """The names of the columns in expressions."""
    waiting, names = list(exprs), set[str]()
    while waiting:
        expr = waiting.pop()
        if isinstance(expr, Column):
            names.add(expr.name)
        elif isinstance(expr, Apply):
            waiting += expr.args
    return names


# Relations -----------------------------------------------------------------------------------------


class Scan(Struct, frozen=True, cache_hash=True):
    """A data set of the engine with a schema. Only described columns exist, each cleaned to its domain."""

    data: str  # the engine's key of an opened data set
    columns: tuple[tuple[str, Domain], ...]


class Bound(Struct, frozen=True, cache_hash=True):
    """The rows of persons. Rows with the same raw, unclamped values in the `by` columns belong to one person.

    At most `most` rows of each person are kept, by a portable row hash; all if it is None. Rows with a null in a `by`
    column are dropped. The result is computed once per scan and stored. With `weighted`, the kept rows of a person have
    weights: integer multiples of 2^-WEIGHT_BITS that add up to exactly 1, as equal as possible. (The j-th of m, in the
    order of the hash, has ⌊jG/m⌋ − ⌊(j−1)G/m⌋ of G = 2^WEIGHT_BITS.) Cells decide between equal hashes, so that rows
    that tie are equal.

    With `owners`, and without `by`, a row belongs to each of the persons found there, once, and is dropped if there is
    none.
    """

    scan: Scan
    by: tuple[str | tuple[str, str], ...]  # columns, and units of a date or time: `("day", "week")`
    most: int | None
    weighted: bool = False
    owners: Owners | None = None


class Owners(Struct, frozen=True, cache_hash=True):
    """The persons of a row by a look-up: those of the rows of `table` (before its bound) whose raw cell `key` equals
    the row's raw cell `on`, as an integer or as a text."""

    table: Bound
    key: str
    on: str


class Filter(Struct, frozen=True, cache_hash=True):
    source: Plan
    condition: RowExpr


class Derive(Struct, frozen=True, cache_hash=True):
    """The named columns, computed from those of `source`. Other columns of the source are dropped."""

    source: Plan
    columns: tuple[tuple[str, RowExpr], ...]


class Join(Struct, frozen=True, cache_hash=True):
    """Pairs of rows with equal key columns. A null key matches nothing.

    `on` names the key columns of the left side, and `theirs` those of the right side if they differ. `kind` tells which
    unmatched rows are kept, with nulls in the columns of the other side: none (`inner`), those of the `left` or `right`
    side, or both (`full`). With `most`, each side first keeps at most that many rows per key, by hash, and a side whose
    unmatched rows are kept also all rows without a key.

    Columns of the right side with the name of a left one are dropped; a key of one name on both sides is one column.
    With `person`, only rows of the same person are paired, and `on` may be empty.
    """

    left: Plan
    right: Plan
    on: tuple[str, ...]
    most: int | None = None
    person: bool = False
    theirs: tuple[str, ...] = ()
    kind: str = "inner"

    @property
    def keys(self) -> tuple[tuple[str, str], ...]:
        """The key columns, of the left and of the right side."""
        return tuple(zip(self.on, self.theirs or self.on, strict=True))


class Truncate(Struct, frozen=True, cache_hash=True):
    """At most `groups` values of the keys of each person, and at most `rows` rows of each of these; None means all.

    Rows are in the order of `order` (none last; the largest first if `descending`) or of a portable hash, which also
    breaks ties. Groups are in the order of their first rows, or of a hash of the keys. Rows that still tie are equal.
    The kept rows of a person are a function of that person's rows.
    """

    source: Plan
    keys: tuple[RowExpr, ...]
    groups: int | None
    rows: int | None
    order: RowExpr | None = None
    descending: bool = False


class GroupRows(Struct, frozen=True, cache_hash=True):
    """One row for each group of rows: its keys, then its exact terms as doubles.

    Groups are by the values of the keys (rows without a key are dropped), and with `person` also by person; a row of
    the result then belongs to that person. `most` is a public bound on the rows of a group, or None.
    """

    source: Plan
    person: bool
    keys: tuple[tuple[str, RowExpr], ...]
    terms: tuple[tuple[str, GroupTerm], ...]
    most: int | None = None


class Union(Struct, frozen=True, cache_hash=True):
    """All rows of each of `sources`, including duplicates. Columns are matched by name, in the order of the first
    source; all sources have the same names with the same kinds."""

    sources: tuple[Plan, ...]


class Listed(Struct, frozen=True, cache_hash=True):
    """Public rows in the plan itself. A cell is a finite number, a text, a boolean, a date, a time or none."""

    columns: tuple[tuple[str, Domain], ...]
    rows: tuple[tuple[float | str | bool | date | None, ...], ...]


class Known(Struct, frozen=True, cache_hash=True):
    """The rows of a public source with a narrower schema, from facts that were read from its rows."""

    source: Plan
    columns: tuple[tuple[str, Domain], ...]


Plan = Scan | Bound | Filter | Derive | Join | Truncate | GroupRows | Union | Known | Listed


def filled(plan: Plan, columns: Sequence[tuple[str, Domain]], names: Sequence[str]) -> Plan:
    """The rows with missing cells of the columns `names` replaced by a public value. They are listed or bounded."""
    read: list[tuple[str, RowExpr]] = []
    for name, domain in columns:
        value = filling(domain) if name in names else None
        read.append((name, Column(name) if value is None else Apply("coalesce", (Column(name), value))))
    return Derive(plan, tuple(read)) if names else plan


def unfilled(plan: Plan) -> Plan:
    """The plan below the replacement of missing cells by `filled`."""
    if isinstance(plan, Derive) and all(_of_itself(name, expr) for name, expr in plan.columns):
        return plan.source
    return plan


def _of_itself(name: str, expr: RowExpr) -> bool:
    match expr:
        case Apply("coalesce", (value, Constant())):
            return value == Column(name)
    return expr == Column(name)


def inputs(plan: Plan) -> tuple[Plan, ...]:
    """The direct inputs of a plan; empty for a data set."""
    match plan:
        case Scan() | Listed():
            return ()
        case Bound(scan=scan, owners=owners):
            return (scan,) if owners is None else (scan, owners.table)
        case Filter() | Derive() | Truncate() | GroupRows() | Known():
            return (plan.source,)
        case Join(left=left, right=right):
            return (left, right)
        case Union(sources=sources):
            return sources
    assert_never(plan)


WEIGHT_BITS = 16


# What is asked of a relation -----------------------------------------------------------------------


class Key(Struct, frozen=True, cache_hash=True):
    """A group key with its public values: consecutive integers (the expression is floored) or listed values."""

    expr: RowExpr
    values: range | tuple[str | float | bool | date, ...]


class Count(Struct, frozen=True, cache_hash=True):
    """The number of rows; with `expr`, of rows where it is not null; with `distinct`, of its distinct non-null values.

    With `weighted`, the sum of their weights in units of 2^-WEIGHT_BITS.
    """

    expr: RowExpr | None = None
    distinct: bool = False
    weighted: bool = False


class FixedSum(Struct, frozen=True, cache_hash=True):
    """The exact integer sum of round(clamp(expr, low, high) · 2^bits). Rows where it is null are skipped.

    With `square` the sum of round(v² · 2^bits) of the clamped value, with `weighted` of round(weight · v · 2^bits).
    """

    expr: RowExpr
    low: float
    high: float
    bits: int
    square: bool = False
    weighted: bool = False


Term = Count | FixedSum


class Extreme(Struct, frozen=True, cache_hash=True):
    """The smallest or the largest value of a number expression; none if it is none in all rows."""

    expr: RowExpr
    largest: bool


class Beside(Struct, frozen=True, cache_hash=True):
    """A value of a person's other groups with the same other keys, in the order of the last key: the smallest number in
    the group before (`previous`) or after (`next`), or the `largest` or `smallest` in all groups before; without `expr`
    the group's index, from 1."""

    expr: RowExpr | None
    where: str = "place"


GroupTerm = Count | FixedSum | Extreme | Beside
"""The terms of a group of rows, without `weighted`."""


STATISTICS = ("count", "count_distinct", "sum", "avg", "var", "quantile", "min", "max", "mode")


class Exact(Struct, frozen=True, cache_hash=True):
    """An exact statistic of a public relation, one of `STATISTICS`."""

    function: str
    expr: RowExpr | None = None
    argument: float | None = None  # q of a quantile


class Summands:
    """Marks sums of row programs, which an engine with remote rows must compute where the rows are."""

    __slots__ = ()


class Sample:
    """Marks samples of rows that are drawn in this process, which an engine with remote rows refuses."""

    __slots__ = ()


def has_persons(plan: Plan) -> bool:
    """Whether each row of a plan belongs to one known person.

    A join of two such sides keeps this only if it pairs each person's own rows. A join with a bound per key does not,
    since a row of one person may displace another's. Nor does a join that keeps unmatched rows of the other side, or
    whose other side is computed from persons' rows too, such as groups of several persons.
    """
    plan = rows_below(plan, (Filter, Derive, Truncate))
    match plan:
        case Bound():
            return True
        case Join():
            left, right = has_persons(plan.left), has_persons(plan.right)
            one_side = left != right and plan.kind in ("inner", "left" if left else "right")
            return plan.person or (plan.most is None and one_side and not _reads_persons((plan.left, plan.right)[left]))
        case GroupRows():
            return plan.person
        case Union(sources=sources):
            return all(map(has_persons, sources))
    return False


def _reads_persons(plan: Plan) -> bool:
    return isinstance(plan, Bound) or any(map(_reads_persons, inputs(plan)))


Steps = tuple[type[Filter | Derive | Truncate | GroupRows], ...]


def rows_below(plan: Plan, through: Steps = (Filter, Derive)) -> Plan:
    """The plan below filters and derived columns, or other steps `through`. Each row comes from one row there."""
    return chain(plan, through)[-1]


def chain(plan: Plan, through: Steps = (Filter, Derive)) -> list[Plan]:
    """A plan and all plans below it through these steps."""
    plans = [plan]
    while isinstance(plan, through):
        plans.append(plan := plan.source)
    return plans
