"""The tree of a program: frozen nodes, each with the span it was written at.

One class a form. `span` is left out of comparison, so that two spellings of one program have equal trees.
Optional parts are `None`; sequences are tuples.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from jostle.source import Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    span: Span = field(compare=False, repr=False)


class Expr(Node):
    __slots__ = ()


class Stmt(Node):
    __slots__ = ()


# Atoms -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Name(Expr):
    id: str


@dataclass(frozen=True, slots=True)
class Number(Expr):
    value: float  # always a double; `1e400` is infinite
    real: bool = field(default=False, compare=False)  # written with a point or an exponent: `0.0..1.0` is real


@dataclass(frozen=True, slots=True)
class String(Expr):
    value: str


@dataclass(frozen=True, slots=True)
class Constant(Expr):
    value: bool | None  # true, false, none


@dataclass(frozen=True, slots=True)
class ListOf(Expr):
    items: tuple[Expr, ...]  # `[a, b]` and `(a, b)`


@dataclass(frozen=True, slots=True)
class SetOf(Expr):
    items: tuple[Expr, ...]  # `{a, b}`; the empty braces `{}` are a SetOf without items


@dataclass(frozen=True, slots=True)
class RecordOf(Expr):
    items: tuple[tuple[str, Expr], ...]


@dataclass(frozen=True, slots=True)
class Comprehension(Expr):
    kind: str  # "list" | "set" | "generator" (a call's only argument)
    item: Expr
    names: tuple[str, ...]
    source: Expr
    condition: Expr | None
    flat: bool = False  # `item` is the comprehension of a further `for`, laid end to end


@dataclass(frozen=True, slots=True)
class Range(Expr):
    low: Expr
    high: Expr


# Operators ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Unary(Expr):
    op: str  # "-" | "+" | "not"
    operand: Expr


@dataclass(frozen=True, slots=True)
class Binary(Expr):
    op: str  # + - * / % ^ == != < <= > >= in "not in"
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class Logic(Expr):
    op: str  # "and" | "or"
    operands: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Conditional(Expr):
    test: Expr
    then: Expr
    other: Expr


@dataclass(frozen=True, slots=True)
class Over(Expr):
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
class Lambda(Expr):
    params: tuple[str, ...]
    body: Expr


@dataclass(frozen=True, slots=True)
class Part(Expr):
    """`Feature (data) {…}`, `Option (data) {…} predict (F) {…}`, `Utility (data, answers) {…}`."""

    kind: str  # "Feature" | "Option" | "Utility"
    params: tuple[Param, ...]
    body: Block
    predict_params: tuple[Param, ...] | None = None
    predict: Block | None = None


@dataclass(frozen=True, slots=True)
class Choice(Expr):
    among: Expr
    informed: Expr
    trained: Expr
    using: Expr | None
    spending: Expr | None
    wrt: Expr


@dataclass(frozen=True, slots=True)
class Keyword(Node):
    name: str
    value: Expr


@dataclass(frozen=True, slots=True)
class Star(Expr):
    """The `*` of `count(*)`."""


@dataclass(frozen=True, slots=True)
class Distinct(Expr):
    """The `distinct E` of `count(distinct E)`."""

    value: Expr


@dataclass(frozen=True, slots=True)
class Call(Expr):
    function: Expr
    args: tuple[Expr, ...]
    keywords: tuple[Keyword, ...] = ()


@dataclass(frozen=True, slots=True)
class Attribute(Expr):
    value: Expr
    name: str


@dataclass(frozen=True, slots=True)
class Index(Expr):
    """`xs[0]`, `D[class = c, other = d]`, `D[E, ]`."""

    value: Expr
    args: tuple[Expr, ...]
    keywords: tuple[Keyword, ...] = ()
    trailing_comma: bool = False


# Spending ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Amount(Node):
    unit: str  # "epsilon" | "rho"
    value: Expr
    delta: Expr | None = None


@dataclass(frozen=True, slots=True)
class Spend(Node):
    """`with epsilon e [delta d] [via MECHANISM]`."""

    amount: Amount
    via: Expr | None = None


@dataclass(frozen=True, slots=True)
class Spending(Expr):
    """`f(x) with epsilon e`."""

    value: Expr
    spend: Spend


# Queries -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Column(Node):
    value: Expr
    name: str | None


@dataclass(frozen=True, slots=True)
class Join(Node):
    table: Expr
    on: tuple[str, ...]
    up_to: Expr | None


@dataclass(frozen=True, slots=True)
class GroupKey(Node):
    value: Expr
    name: str | None
    over: Expr | None


@dataclass(frozen=True, slots=True)
class Select(Expr):
    columns: tuple[Column, ...]
    table: Expr
    joins: tuple[Join, ...] = ()
    where: Expr | None = None
    keys: tuple[GroupKey, ...] = ()
    spend: Spend | None = None


@dataclass(frozen=True, slots=True)
class Query(Expr):
    body: Expr  # an expression with at least one Select in it


@dataclass(frozen=True, slots=True)
class Described(Expr):
    """A public source with a schema: `table("x.csv") described by {…}`."""

    source: Expr
    domains: Expr


# Statements --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Assign(Stmt):
    name: str
    value: Expr


@dataclass(frozen=True, slots=True)
class Bare(Stmt):
    """An expression as a statement: a call."""

    value: Expr


@dataclass(frozen=True, slots=True)
class Return(Stmt):
    value: Expr | None


@dataclass(frozen=True, slots=True)
class Use(Stmt):
    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ParamDecl(Stmt):
    name: str
    default: Expr


@dataclass(frozen=True, slots=True)
class Release(Stmt):
    name: str
    value: Expr | None


@dataclass(frozen=True, slots=True)
class Assert(Stmt):
    value: Expr
    message: Expr | None


@dataclass(frozen=True, slots=True)
class Def(Stmt):
    name: str
    params: tuple[Param, ...]
    body: Block


@dataclass(frozen=True, slots=True)
class External(Stmt):
    """`external NAME(params)`: a kernel that a module of the standard library rests on."""

    name: str
    params: tuple[Param, ...]


@dataclass(frozen=True, slots=True)
class If(Stmt):
    test: Expr
    then: Block
    other: Block | None  # `else if` is a Block of one If


@dataclass(frozen=True, slots=True)
class For(Stmt):
    names: tuple[str, ...]
    source: Expr
    body: Block


@dataclass(frozen=True, slots=True)
class With(Stmt):
    spend: Spend
    body: Block


@dataclass(frozen=True, slots=True)
class Protecting(Node):
    """`rows`, `rows, at most N rows`, `rows, public size`, `COL[, COL] up to k rows [weighted]`."""

    rows: bool
    public_size: bool = False
    at_most: Expr | None = None
    columns: tuple[str, ...] = ()
    up_to: Expr | None = None
    weighted: bool = False


@dataclass(frozen=True, slots=True)
class Budget(Node):
    amount: Amount
    counted_by: str | None = None


@dataclass(frozen=True, slots=True)
class Private(Stmt):
    name: str
    source: Expr
    described: Expr | None
    protecting: Protecting | None
    budget: Budget | None


@dataclass(frozen=True, slots=True)
class Program(Node):
    body: tuple[Stmt, ...]
