"""The closed relational plan: all that an engine can be asked, and whose the rows of a plan are.

A plan is built by `privacy` and `run` from checked trees and public values; no text of a user reaches an engine other
than as a constant, which is always quoted or bound. The row language is total: arithmetic on doubles, comparison, logic
with nulls, `if`, `clamp`; division by zero, NaN and infinities are null (`none`). A domain is what is publicly known of
the values of a column.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date
from typing import assert_never

from msgspec import Struct

from jostle.language.moments import moment_of


class Integer(Struct, frozen=True, cache_hash=True):
    """A bounded integer, both ends included; values are floored, then clamped."""

    low: int
    high: int


class Real(Struct, frozen=True, cache_hash=True):
    """A bounded real, both ends included; values are clamped."""

    low: float
    high: float


class Categories(Struct, frozen=True, cache_hash=True):
    """A finite set of public values, all text or all numbers; anything else becomes null."""

    values: tuple[str, ...] | tuple[float, ...]


class Moments(Struct, frozen=True, cache_hash=True):
    """Dates or times between two, both included, as whole days or microseconds since 1 January 1970.

    Values are clamped, then taken down to the first one of their `unit`: a day for dates and nothing for times where
    it is empty. Both ends are such first ones.
    """

    kind: str  # `date` or `time`
    low: int
    high: int
    unit: str = ""


class Open(Struct, frozen=True, cache_hash=True):
    """No public bound: `text`, `integer`, `real`, `date` or `time`; or `boolean`, true and false, which are public.

    Of a date or time the `unit` whose first days or moments alone it can be; empty where it can be any.
    """

    kind: str
    unit: str = ""

    @property
    def digest_facts(self) -> tuple[str, ...]:
        """As plans were written down before there were units."""
        return ("Open", self.kind, self.unit) if self.unit else ("Open", self.kind)


Domain = Integer | Real | Categories | Moments | Open


def listed(domain: Domain) -> tuple[str | float | bool, ...] | None:
    """The public values of a column, where there are finitely many: numbers as doubles."""
    if domain == Open("boolean"):
        return (False, True)
    if isinstance(domain, Categories):
        return tuple(domain.values)
    if isinstance(domain, Integer):
        return tuple(float(value) for value in range(domain.low, domain.high + 1))
    return None


def filling(domain: Domain) -> Constant | None:
    """What stands for a missing cell of a column that is never missing: the low end of its range, the first value that
    is listed, or false. None where no value is public."""
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
    """A public value; a `datetime` is a time. True is not 1 here, as it is to Python: equal plans mean the same."""

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
    matches what is missing; `min`, `max` (of two); `bucket` (n, salt, value, …): a hash of the values, 0 … n − 1,
    which has no spelling of its own in the language. A null operand gives null, but for a test of `if`, which
    then does not hold; `and`/`or` are three-valued as in SQL; a `where` keeps a row only when its condition is
    true. Whatever is not finite is null.
    """

    op: str
    args: tuple[RowExpr, ...]


RowExpr = Column | Constant | Apply


def names_in(exprs: Iterable[RowExpr]) -> set[str]:
    """The columns that expressions are made of."""
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
    """A data set known to the engine, through a schema: only described columns exist, each cleaned to its domain."""

    data: str  # the engine's key of an opened data set
    columns: tuple[tuple[str, Domain], ...]


class Bound(Struct, frozen=True, cache_hash=True):
    """The rows of persons: those of one value of the raw, unclamped `by` columns are one person's.

    At most `most` rows of each, chosen by a portable row hash; all of them where it is None. Rows where any `by`
    column is null are dropped. Computed once for each scan and kept. With `weighted`, the rows
    kept of one value also have weights: whole multiples of 2^-WEIGHT_BITS that add up to exactly 1, as equal as that
    allows. (The j-th of m, in the order of the hash, has ⌊jG/m⌋ − ⌊(j−1)G/m⌋ of G = 2^WEIGHT_BITS). Where hashes
    are equal the cells decide, so that it does not matter which of two rows that tie comes first.

    With `owners`, and without `by`, a row is of the persons who are found there: once of each of them, and where there
    is none it is dropped.
    """

    scan: Scan
    by: tuple[str | tuple[str, str], ...]  # columns, and units of a date or time: `("day", "week")`
    most: int | None
    weighted: bool = False
    owners: Owners | None = None


class Owners(Struct, frozen=True, cache_hash=True):
    """Whose a row is by a look-up: the persons of the rows of `table` (all of them, whatever its bound) whose raw cell
    `key` is the row's own raw cell `on`, as the same whole number or the same text."""

    table: Bound
    key: str
    on: str


class Filter(Struct, frozen=True, cache_hash=True):
    source: Plan
    condition: RowExpr


class Derive(Struct, frozen=True, cache_hash=True):
    """The columns named, computed from those of `source` (which are gone unless named again)."""

    source: Plan
    columns: tuple[tuple[str, RowExpr], ...]


class Join(Struct, frozen=True, cache_hash=True):
    """Pairs of rows that are equal in the key columns; a key that is null equals none.

    `on` names the key columns of the left side, `theirs` those of the right one where they have other names. `kind`
    says which rows without a partner are kept beside the pairs, null in the columns of the other side: none (`inner`),
    those of the `left` or of the `right` side, or both (`full`). With `most`, each side first keeps at most that many
    rows a key, by hash, and on a side whose rows are kept all that have no key.

    Columns of the right side that the left has too are dropped; a key of one name on both sides is one column. With
    `person`, rows of the two sides meet only where they are one person's (`plan.plan`), and `on` may be empty.
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
    """Of each person at most `groups` values of the keys, and of each of these at most `rows` rows; None: all.

    Rows are in the order of `order` (none last, the largest first where `descending`), else of a portable hash, which
    also decides where the order ties; groups are in the order of their first rows, or of a hash of the keys. Rows that
    tie in all of this are equal. What stays of a person is a function of that person's rows.
    """

    source: Plan
    keys: tuple[RowExpr, ...]
    groups: int | None
    rows: int | None
    order: RowExpr | None = None
    descending: bool = False


class GroupRows(Struct, frozen=True, cache_hash=True):
    """A row for each group of rows: its keys, then its exact terms as doubles.

    Groups are by the values of the keys (rows without a key left out), and with `person` by person too: a row of the
    result is then that person's. A group has at most `most` rows, where that is publicly known.
    """

    source: Plan
    person: bool
    keys: tuple[tuple[str, RowExpr], ...]
    terms: tuple[tuple[str, GroupTerm], ...]
    most: int | None = None


class Union(Struct, frozen=True, cache_hash=True):
    """All rows of each of `sources`, one after the other, equal ones too. Columns go together by their names, in the
    order of the first source; all have the same names, each of one kind throughout."""

    sources: tuple[Plan, ...]


class Listed(Struct, frozen=True, cache_hash=True):
    """Public rows that stand in the plan itself: each cell a finite number, a text, a truth, a date, a time or none."""

    columns: tuple[tuple[str, Domain], ...]
    rows: tuple[tuple[float | str | bool | date | None, ...], ...]


class Known(Struct, frozen=True, cache_hash=True):
    """The rows of a public source, of whose columns more is known than it says: facts that were read from its rows."""

    source: Plan
    columns: tuple[tuple[str, Domain], ...]


Plan = Scan | Bound | Filter | Derive | Join | Truncate | GroupRows | Union | Known | Listed


def filled(plan: Plan, columns: Sequence[tuple[str, Domain]], names: Sequence[str]) -> Plan:
    """The rows with a public value in each missing cell of these columns, which are listed or bounded."""
    read: list[tuple[str, RowExpr]] = []
    for name, domain in columns:
        value = filling(domain) if name in names else None
        read.append((name, Column(name) if value is None else Apply("coalesce", (Column(name), value))))
    return Derive(plan, tuple(read)) if names else plan


def unfilled(plan: Plan) -> Plan:
    """The rows of a source as they are read, below what `filled` puts in."""
    if isinstance(plan, Derive) and all(_of_itself(name, expr) for name, expr in plan.columns):
        return plan.source
    return plan


def _of_itself(name: str, expr: RowExpr) -> bool:
    match expr:
        case Apply("coalesce", (value, Constant())):
            return value == Column(name)
    return expr == Column(name)


def inputs(plan: Plan) -> tuple[Plan, ...]:
    """The plans that a plan is made from; none of a data set."""
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
    """Rows; with `expr`, rows where it is not null; `distinct`, different non-null values of it.

    `weighted`: the sum of their weights, in units of 2^-WEIGHT_BITS.
    """

    expr: RowExpr | None = None
    distinct: bool = False
    weighted: bool = False


class FixedSum(Struct, frozen=True, cache_hash=True):
    """The exact integer sum of round(clamp(expr, low, high) · 2^bits); rows where it is null are skipped.

    `square` sums round(v² · 2^bits) of the clamped value instead; `weighted`, round(weight · v · 2^bits).
    """

    expr: RowExpr
    low: float
    high: float
    bits: int
    square: bool = False
    weighted: bool = False


Term = Count | FixedSum


class Extreme(Struct, frozen=True, cache_hash=True):
    """The smallest, or the largest, number of an expression; none where it is none in all rows."""

    expr: RowExpr
    largest: bool


class Beside(Struct, frozen=True, cache_hash=True):
    """What stands beside a group of a person in the order of the last key, among those with the same other keys: the
    smallest number in the group just before (`previous`) or after it (`next`), the `largest` or the `smallest` in all
    before; without `expr` the group's place, from 1."""

    expr: RowExpr | None
    where: str = "place"


GroupTerm = Count | FixedSum | Extreme | Beside
"""What a group of rows can be summed up in; `weighted` is for none of these."""


STATISTICS = ("count", "count_distinct", "sum", "avg", "var", "quantile", "min", "max", "mode")


class Exact(Struct, frozen=True, cache_hash=True):
    """An exact statistic of a public relation, one of `STATISTICS`."""

    function: str
    expr: RowExpr | None = None
    argument: float | None = None  # the q of a quantile


class Summands:
    """What row programs sum over rows: an engine whose rows are elsewhere has to run these where they are."""

    __slots__ = ()


class Sample:
    """Rows that are drawn one by one in this process: an engine whose rows are elsewhere refuses it."""

    __slots__ = ()


def has_persons(plan: Plan) -> bool:
    """Whether each row of a plan is known to be one person's, so that an engine can tell whose.

    A join of two such sides keeps this only where it is of each person's own rows, and one that keeps some rows a key
    does not: there a row of one person takes the place of another's. Nor does one that keeps rows of the other side
    that have no partner, or whose other side is made of persons' rows too, as groups of several are.
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
    """What a plan is made of by filters and derived columns, or `through` others: each of its rows is of one there."""
    return chain(plan, through)[-1]


def chain(plan: Plan, through: Steps = (Filter, Derive)) -> list[Plan]:
    """A plan and all that it is made of so."""
    plans = [plan]
    while isinstance(plan, through):
        plans.append(plan := plan.source)
    return plans
