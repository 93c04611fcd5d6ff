"""The tree of a program: frozen nodes, each with the span it was written at.

One class a form. `span` is left out of comparison, so that two spellings of one program have equal trees.
Optional parts are `None`; sequences are tuples.
"""

from __future__ import annotations

from datetime import date
from typing import ClassVar

from msgspec import Struct

from jostle.source import Span


class Node(Struct, frozen=True, kw_only=True, eq=False):
    span: Span
    spelling: ClassVar[tuple[str, ...]] = ("span",)
    """The fields that say how it was written, not what it is."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and _facts(self) == _facts(other)

    def __ne__(self, other: object) -> bool:  # which a struct has of its own
        return not self == other

    def __hash__(self) -> int:
        return hash((type(self), *_facts(self)))

    def __repr__(self) -> str:
        names = (name for name in self.__struct_fields__ if name != "span")
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"


def _facts(node: Node) -> list[object]:
    return [getattr(node, name) for name in node.__struct_fields__ if name not in node.spelling]


class Expression(Node, frozen=True):
    pass


class Statement(Node, frozen=True, dict=True):  # of which something is kept (`walk.every`)
    """`binds`: the fields that say which names it binds in its own scope, besides those of its blocks."""

    binds: ClassVar[tuple[str, ...]] = ()


# Atoms -------------------------------------------------------------------------------------------


class Name(Expression, frozen=True):
    id: str


class Variable(Expression, frozen=True):
    """`@x`: the program's variable, where a column may have its name."""

    id: str


class Number(Expression, frozen=True):
    value: float  # always a double; `1e400` is infinite
    real: bool = False  # written with a point or an exponent: `0.0..1.0` is real
    spelling: ClassVar[tuple[str, ...]] = ("span", "real")


class String(Expression, frozen=True):
    value: str


class Constant(Expression, frozen=True):
    value: bool | date | None  # true, false, none, a date, or a time of a date


class ListOf(Expression, frozen=True):
    items: tuple[Expr, ...]  # `[a, b]` and `(a, b)`


class SetOf(Expression, frozen=True):
    items: tuple[Expr, ...]  # `{a, b}`; the empty braces `{}` are a SetOf without items


class RecordOf(Expression, frozen=True, dict=True):
    items: tuple[tuple[str, Expr], ...]
    filled: tuple[str, ...] = ()  # of a description the columns that are `never missing`


class Comprehension(Expression, frozen=True):
    kind: str  # "list" | "set" | "generator" (a call's only argument)
    item: Expr
    names: tuple[str, ...]
    source: Expr
    condition: Expr | None
    flat: bool = False  # `item` is the comprehension of a further `for`, laid end to end


class Range(Expression, frozen=True):
    """`low..high`, or `from low to high by unit`."""

    low: Expr
    high: Expr
    unit: str = ""


# Operators ---------------------------------------------------------------------------------------


class Unary(Expression, frozen=True):
    op: str  # "-" | "+" | "not"
    operand: Expr


class Binary(Expression, frozen=True):
    op: str  # + - * / % ^ == != < <= > >= in "not in" between "not between" (of a ListOf of both ends)
    # like "not like"
    left: Expr
    right: Expr


class Logic(Expression, frozen=True):
    op: str  # "and" | "or"
    operands: tuple[Expr, ...]


class Conditional(Expression, frozen=True):
    test: Expr
    then: Expr
    other: Expr


class Over(Expression, frozen=True):
    fold: str  # max min sum argmax argmin (checked, not parsed)
    name: str
    source: Expr
    body: Expr


# Functions and calls -----------------------------------------------------------------------------


class Param(Node, frozen=True):
    name: str
    default: Expr | None


class Block(Node, frozen=True):
    body: tuple[Stmt, ...]


class Lambda(Expression, frozen=True):
    params: tuple[str, ...]
    body: Expr


class Part(Expression, frozen=True):
    """`Feature (data) {…}`, `Option (data) {…} predict (F) {…}`, `Utility (data, answers) {…}`."""

    kind: str  # "Feature" | "Option" | "Utility"
    params: tuple[Param, ...]
    body: Block
    predict_params: tuple[Param, ...] | None = None
    predict: Block | None = None


FEATURES, VALIDATION, MARGIN = WAYS = ("features", "validation", "margin")
"""What a choice may be made by."""


class Choice(Expression, frozen=True):
    """`way`: what it chooses by; by features, as where the program says nothing, it has `informed` and `trained`."""

    among: Expr
    way: str
    informed: Expr | None
    trained: Expr | None
    using: Expr | None
    spending: Expr | None
    wrt: Expr


class Keyword(Node, frozen=True):
    name: str
    value: Expr


class Star(Expression, frozen=True):
    """The `*` of `count(*)`."""


class Distinct(Expression, frozen=True):
    """The `distinct E` of `count(distinct E)`."""

    value: Expr


class Call(Expression, frozen=True):
    function: Expr
    args: tuple[Expr, ...]
    keywords: tuple[Keyword, ...] = ()


class Attribute(Expression, frozen=True):
    value: Expr
    name: str


class Index(Expression, frozen=True):
    """`xs[0]`, `D[class = c, other = d]`."""

    value: Expr
    args: tuple[Expr, ...]
    keywords: tuple[Keyword, ...] = ()


# Spending ----------------------------------------------------------------------------------------


class Amount(Node, frozen=True):
    """`epsilon e [delta d]`, `rho r`, or a share of what is around it, which has no unit.

    Of a `jointly` block also `error e [delta d]`: the least amount with no larger error; of the selects in it `error e`
    and `weight w`, and of one whose answers are public `given v`.
    """

    unit: str  # "epsilon" | "rho" | "share" | "error" | "weight" | "given"
    value: Expr
    delta: Expr | None = None

    @property
    def is_wish(self) -> bool:
        """Whether it says what an answer is to be, and not what is spent."""
        return self.unit in ("error", "weight", "given")


class Spend(Node, frozen=True):
    """`with epsilon e [delta d] [via MECHANISM]`, `with 1/4 [via MECHANISM]`."""

    amount: Amount
    via: Expr | None = None


class Spending(Expression, frozen=True):
    """`f(x) with epsilon e`."""

    value: Expr
    spend: Spend

    @property
    def call(self) -> Call | None:
        """The call whose arguments come before the amount. Of `f(x).g()` there is none: the amount is for both."""
        value = self.value if isinstance(self.value, Call) else None
        method = value.function if value is not None and self.spend.via is None else None
        return None if isinstance(method, Attribute) and isinstance(method.value, Call) else value


# Queries -----------------------------------------------------------------------------------------


class Column(Node, frozen=True):
    value: Expr
    name: str | None


class Match(Node, frozen=True):
    """A column of the tables before and one of the joined table; `owner` is what the program calls the former's."""

    column: str
    theirs: str
    owner: str | None = None


class Join(Node, frozen=True):
    """`kind` says whose rows without a partner are kept: `inner`, `left`, `right` or `full`."""

    table: Expr
    on: tuple[Match, ...]
    up_to: Expr | None
    kind: str = "inner"
    alias: str | None = None


class GroupKey(Node, frozen=True):
    """With `running` a group has all rows up to its value; up to `until` alone, where that is given."""

    value: Expr
    name: str | None
    over: Expr | None
    running: bool = False
    until: Expr | None = None


class Limit(Node, frozen=True):
    """`up to 5 groups, 2 rows each by date desc`: what is read of each person."""

    groups: Expr | None
    rows: Expr | None
    each: bool = False
    order: Expr | None = None
    descending: bool = False


class Rank(Node, frozen=True):
    """One of the things that groups are put in order by."""

    value: Expr
    descending: bool = False


class Select(Expression, frozen=True, dict=True):
    """With `per` its rows are those of a table that is as private: one for each person or group; without any, its own.

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


class Query(Expression, frozen=True, dict=True):
    body: Expr  # an expression with at least one Select in it


class Described(Expression, frozen=True):
    """A public source with a schema: `table("x.csv") described by {…}`."""

    source: Expr
    domains: Expr


# Statements --------------------------------------------------------------------------------------


class Assign(Statement, frozen=True):
    binds = ("name",)
    name: str
    value: Expr


class Bare(Statement, frozen=True):
    """An expression as a statement: a call."""

    value: Expr


class Return(Statement, frozen=True):
    value: Expr | None


class Use(Statement, frozen=True):
    path: tuple[str, ...]


class ParamDecl(Statement, frozen=True):
    binds = ("name",)
    name: str
    default: Expr


class Release(Statement, frozen=True):
    """`release x`, or with a value `release x = E`, which gives x that value too."""

    name: str
    value: Expr | None


class Assert(Statement, frozen=True):
    value: Expr
    message: Expr | None


class Def(Statement, frozen=True):
    binds = ("name",)
    name: str
    params: tuple[Param, ...]
    body: Block


class External(Statement, frozen=True):
    """`external NAME(params)`: a kernel that a module of the standard library rests on."""

    binds = ("name",)
    name: str
    params: tuple[Param, ...]


class If(Statement, frozen=True):
    test: Expr
    then: Block
    other: Block | None  # `else if` is a Block of one If


class For(Statement, frozen=True):
    binds = ("names",)
    names: tuple[str, ...]
    source: Expr
    body: Block


class With(Statement, frozen=True):
    """`jointly`: all selects of the block together; `total`: with the least error of all; `nonnegative`: from 0 on;
    `whole`: counts are integers."""

    spend: Spend
    body: Block
    jointly: bool = False
    total: bool = False
    nonnegative: bool = False
    whole: bool = False


class Run(Statement, frozen=True):
    """`run with epsilon e until budget of DATA [or C]`: rounds of the block, each in an allotment of its own."""

    spend: Spend
    data: Expr
    done: Expr | None
    body: Block


class Protecting(Node, frozen=True):
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


class Budget(Node, frozen=True):
    """`epsilon e [, delta d] [counted by basic] [each week of COL [, epsilon e for ever]]`.

    `each` is a column, or periods of one as they are written: `7 days of day`.
    """

    amount: Amount
    counted_by: str | None = None
    each: str = ""
    for_ever: Amount | None = None


class Private(Statement, frozen=True):
    binds = ("name",)
    name: str
    source: Expr
    described: Expr | None
    protecting: Protecting | None
    budget: Budget | None


class Program(Node, frozen=True, dict=True):
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
