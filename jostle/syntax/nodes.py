"""The tree of a program: frozen nodes, each with the span it was written at.

One class a form. `span` is left out of comparison, so that two spellings of one program have equal trees.
Optional parts are `None`; sequences are tuples.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from typing import ClassVar

from jostle.source import Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    span: Span = field(compare=False, repr=False)


class Expression(Node):
    __slots__ = ()


class Statement(Node):
    """`binds`: the fields that say which names it binds in its own scope, besides those of its blocks."""

    __slots__ = ()
    binds: ClassVar[tuple[str, ...]] = ()


# Atoms -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Name(Expression):
    id: str


@dataclass(frozen=True, slots=True)
class Variable(Expression):
    """`@x`: the program's variable, where a column may have its name."""

    id: str


@dataclass(frozen=True, slots=True)
class Number(Expression):
    value: float  # always a double; `1e400` is infinite
    real: bool = field(default=False, compare=False)  # written with a point or an exponent: `0.0..1.0` is real


@dataclass(frozen=True, slots=True)
class String(Expression):
    value: str


@dataclass(frozen=True, slots=True)
class Constant(Expression):
    value: bool | date | None  # true, false, none, a date, or a time of a date


@dataclass(frozen=True, slots=True)
class ListOf(Expression):
    items: tuple[Expr, ...]  # `[a, b]` and `(a, b)`


@dataclass(frozen=True, slots=True)
class SetOf(Expression):
    items: tuple[Expr, ...]  # `{a, b}`; the empty braces `{}` are a SetOf without items


@dataclass(frozen=True, slots=True)
class RecordOf(Expression):
    items: tuple[tuple[str, Expr], ...]


@dataclass(frozen=True, slots=True)
class Comprehension(Expression):
    kind: str  # "list" | "set" | "generator" (a call's only argument)
    item: Expr
    names: tuple[str, ...]
    source: Expr
    condition: Expr | None
    flat: bool = False  # `item` is the comprehension of a further `for`, laid end to end


@dataclass(frozen=True, slots=True)
class Range(Expression):
    """`low..high`, or `from low to high by unit`."""

    low: Expr
    high: Expr
    unit: str = ""


# Operators ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Unary(Expression):
    op: str  # "-" | "+" | "not"
    operand: Expr


@dataclass(frozen=True, slots=True)
class Binary(Expression):
    op: str  # + - * / % ^ == != < <= > >= in "not in" between "not between" (of a ListOf of both ends)
    # like "not like"
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class Logic(Expression):
    op: str  # "and" | "or"
    operands: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Conditional(Expression):
    test: Expr
    then: Expr
    other: Expr


@dataclass(frozen=True, slots=True)
class Over(Expression):
    fold: str  # max min sum argmax argmin (checked, not parsed)
    name: str
    source: Expr
    body: Expr


# Functions and calls -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Param(Node):
    name: str
    default: Expr | None


@dataclass(frozen=True, slots=True)
class Block(Node):
    body: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class Lambda(Expression):
    params: tuple[str, ...]
    body: Expr


@dataclass(frozen=True, slots=True)
class Part(Expression):
    """`Feature (data) {…}`, `Option (data) {…} predict (F) {…}`, `Utility (data, answers) {…}`."""

    kind: str  # "Feature" | "Option" | "Utility"
    params: tuple[Param, ...]
    body: Block
    predict_params: tuple[Param, ...] | None = None
    predict: Block | None = None


FEATURES, VALIDATION, MARGIN = WAYS = ("features", "validation", "margin")
"""What a choice may be made by."""


@dataclass(frozen=True, slots=True)
class Choice(Expression):
    """`way`: what it chooses by; by features, as where the program says nothing, it has `informed` and `trained`."""

    among: Expr
    way: str
    informed: Expr | None
    trained: Expr | None
    using: Expr | None
    spending: Expr | None
    wrt: Expr


@dataclass(frozen=True, slots=True)
class Keyword(Node):
    name: str
    value: Expr


@dataclass(frozen=True, slots=True)
class Star(Expression):
    """The `*` of `count(*)`."""


@dataclass(frozen=True, slots=True)
class Distinct(Expression):
    """The `distinct E` of `count(distinct E)`."""

    value: Expr


@dataclass(frozen=True, slots=True)
class Call(Expression):
    function: Expr
    args: tuple[Expr, ...]
    keywords: tuple[Keyword, ...] = ()


@dataclass(frozen=True, slots=True)
class Attribute(Expression):
    value: Expr
    name: str


@dataclass(frozen=True, slots=True)
class Index(Expression):
    """`xs[0]`, `D[class = c, other = d]`, `D[E, ]`."""

    value: Expr
    args: tuple[Expr, ...]
    keywords: tuple[Keyword, ...] = ()
    trailing_comma: bool = False


# Spending ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Amount(Node):
    """`epsilon e [delta d]`, `rho r`, or a share of what is around it, which has no unit.

    Of a `jointly` block also `error e [delta d]`: the least amount with no larger error; of the selects in it `error e`
    and `weight w`.
    """

    unit: str  # "epsilon" | "rho" | "share" | "error" | "weight"
    value: Expr
    delta: Expr | None = None

    @property
    def is_wish(self) -> bool:
        """Whether it says what an answer is to be, and not what is spent."""
        return self.unit in ("error", "weight")


@dataclass(frozen=True, slots=True)
class Spend(Node):
    """`with epsilon e [delta d] [via MECHANISM]`, `with 1/4 [via MECHANISM]`."""

    amount: Amount
    via: Expr | None = None


@dataclass(frozen=True, slots=True)
class Spending(Expression):
    """`f(x) with epsilon e`."""

    value: Expr
    spend: Spend


# Queries -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Column(Node):
    value: Expr
    name: str | None


@dataclass(frozen=True, slots=True)
class Match(Node):
    """A column of the tables before and one of the joined table; `owner` is what the program calls the former's."""

    column: str
    theirs: str
    owner: str | None = None


@dataclass(frozen=True, slots=True)
class Join(Node):
    """`kind` says whose rows without a partner are kept: `inner`, `left`, `right` or `full`."""

    table: Expr
    on: tuple[Match, ...]
    up_to: Expr | None
    kind: str = "inner"
    alias: str | None = None


@dataclass(frozen=True, slots=True)
class GroupKey(Node):
    value: Expr
    name: str | None
    over: Expr | None


@dataclass(frozen=True, slots=True)
class Limit(Node):
    """`up to 5 groups, 2 rows each by date desc`: what is read of each person."""

    groups: Expr | None
    rows: Expr | None
    each: bool = False
    order: Expr | None = None
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Rank(Node):
    """One of the things that groups are put in order by."""

    value: Expr
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Select(Expression):
    """With `per` its rows are those of a table that is as private: one for each person or group.

    `alias` names the table in its own row expressions; `having`, `ranking` and `first` are of the released groups.
    """

    columns: tuple[Column, ...]
    table: Expr
    joins: tuple[Join, ...] = ()
    where: Expr | None = None
    keys: tuple[GroupKey, ...] = ()
    spend: Spend | None = None
    per: tuple[GroupKey, ...] | None = None
    limit: Limit | None = None
    alias: str | None = None
    having: Expr | None = None
    ranking: tuple[Rank, ...] = ()
    first: Expr | None = None


@dataclass(frozen=True, slots=True)
class Query(Expression):
    body: Expr  # an expression with at least one Select in it


@dataclass(frozen=True, slots=True)
class Described(Expression):
    """A public source with a schema: `table("x.csv") described by {…}`."""

    source: Expr
    domains: Expr


# Statements --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Assign(Statement):
    binds = ("name",)
    name: str
    value: Expr


@dataclass(frozen=True, slots=True)
class Bare(Statement):
    """An expression as a statement: a call."""

    value: Expr


@dataclass(frozen=True, slots=True)
class Return(Statement):
    value: Expr | None


@dataclass(frozen=True, slots=True)
class Use(Statement):
    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ParamDecl(Statement):
    binds = ("name",)
    name: str
    default: Expr


@dataclass(frozen=True, slots=True)
class Release(Statement):
    """`release x`, or with a value `release x = E`, which gives x that value too."""

    name: str
    value: Expr | None


@dataclass(frozen=True, slots=True)
class Assert(Statement):
    value: Expr
    message: Expr | None


@dataclass(frozen=True, slots=True)
class Def(Statement):
    binds = ("name",)
    name: str
    params: tuple[Param, ...]
    body: Block


@dataclass(frozen=True, slots=True)
class External(Statement):
    """`external NAME(params)`: a kernel that a module of the standard library rests on."""

    binds = ("name",)
    name: str
    params: tuple[Param, ...]


@dataclass(frozen=True, slots=True)
class If(Statement):
    test: Expr
    then: Block
    other: Block | None  # `else if` is a Block of one If


@dataclass(frozen=True, slots=True)
class For(Statement):
    binds = ("names",)
    names: tuple[str, ...]
    source: Expr
    body: Block


@dataclass(frozen=True, slots=True)
class With(Statement):
    """`jointly`: all selects of the block together; `total`: with the least error of all; `nonnegative`: from 0 on."""

    spend: Spend
    body: Block
    jointly: bool = False
    total: bool = False
    nonnegative: bool = False


@dataclass(frozen=True, slots=True)
class Run(Statement):
    """`run with epsilon e until budget of DATA [or C]`: rounds of the block, each in an allotment of its own."""

    spend: Spend
    data: Expr
    done: Expr | None
    body: Block


@dataclass(frozen=True, slots=True)
class Protecting(Node):
    """`rows[, at most N rows]`, `rows, public size [by COL, …]`, `COL[, COL] [up to k rows [weighted]]`,
    `COL, at most k rows` (which is `up to`, and a statement that nobody has more), `people.COL [on COL]`.

    `linked` is the name of the source whose persons these are, and `key` its protected column.
    """

    rows: bool
    public_size: bool = False
    groups: tuple[str, ...] = ()
    at_most: Expr | None = None
    columns: tuple[str, ...] = ()
    up_to: Expr | None = None
    weighted: bool = False
    linked: str = ""
    key: str = ""


@dataclass(frozen=True, slots=True)
class Budget(Node):
    amount: Amount
    counted_by: str | None = None


@dataclass(frozen=True, slots=True)
class Private(Statement):
    binds = ("name",)
    name: str
    source: Expr
    described: Expr | None
    protecting: Protecting | None
    budget: Budget | None


@dataclass(frozen=True, slots=True)
class Program(Node):
    body: tuple[Stmt, ...]


# All of them, so that a type checker names each place that does not handle a new one ------------------

Expr = (
    Name | Variable | Number | String | Constant | ListOf | SetOf | RecordOf | Comprehension | Range | Unary | Binary
    | Logic | Conditional | Over | Lambda | Part | Choice | Star | Distinct | Call | Attribute | Index | Spending
    | Select | Query | Described
)  # fmt: skip
Stmt = (
    Assign | Bare | Return | Use | ParamDecl | Release | Assert | Def | External | If | For | With | Run | Private
)  # fmt: skip
