"""Nodes from the parser's reductions: one method for each rule or alias of the grammar.

Lark calls these bottom-up while it parses, so no tree is ever walked by recursion here. All tokens are kept, hence
the parameters of a method read as the right-hand side of its rule; a span runs from the first child to the last.
What the grammar lets through but no program may say (keywords before positions, `protecting` of something that is
no row) is refused here. It looks up no names and knows no values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import date, datetime
from typing import cast

from lark import Token

from jostle.diagnostics import refuse
from jostle.records import replace
from jostle.source import Span
from jostle.syntax import nodes as n
from jostle.syntax.querybuilder import QueryBuilder, derived, inline, only, option_of_class, read_columns, with_readings

ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
PARTS = {
    **{name: name for name in ("year", "quarter", "month", "day", "hour", "minute")},
    "isoweek": "week", "isodow": "weekday", "doy": "day_of_year", "dayofyear": "day_of_year", "isoyear": "week_year",
}  # fmt: skip
"""What SQL extracts from a date or a time, and the function of rows that gives it."""
Params = tuple[tuple[n.Param, ...], Span]
Arguments = tuple[tuple[n.Expr, ...], tuple[n.Keyword, ...]]
"""By position, by name, and whether a comma stands at the end."""
Round = tuple[tuple[str, ...], n.Expr, n.Expr | None, Span]
"""One `for` of a comprehension: its names, what it walks through, its condition."""
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", '"': '"', "'": "'", "0": "\0"}


def _node(form: type[n.Node], *places: int) -> Callable[..., n.Node]:
    """The method of a rule whose node has the children at these places as its fields, tokens as texts."""

    def build(self: Builder, *children: object) -> n.Node:
        fields = []
        for at in places:
            fields.append(str(children[at]) if isinstance(children[at], Token) else children[at])
        return form(*fields, span=self._span(*children))

    return build


@inline
class Builder(QueryBuilder):
    """Builds the nodes of one source at a time; set `source` before parsing."""

    assign = _node(n.Assign, 0, 2)
    return_ = _node(n.Return, 1)
    param = _node(n.ParamDecl, 1, 3)
    release = _node(n.Release, 1, 3)
    for_ = _node(n.For, 1, 3, 4)
    param_ = _node(n.Param, 0, 2)
    spend = _node(n.Spend, 1, 3)
    over = _node(n.Over, 0, 2, 4, 6)
    conditional = _node(n.Conditional, 2, 0, 4)
    between = _node(n.Range, 0, 2)
    period = _node(n.Range, 1, 3, 5)
    attribute = _node(n.Attribute, 0, 2)
    keyword = _node(n.Keyword, 0, 2)
    variable = _node(n.Variable, 1)

    # Statements --------------------------------------------------------------------------------

    def start(self, *body: object) -> n.Program:
        lines = self.source.text.split("\n")
        whole = Span(self.source, 1, 1, len(lines), len(lines[-1]) + 1)
        statements = [one for statement in only(n.Statement, body) for one in with_readings(statement)]
        return n.Program(tuple(statements), span=whole)

    def bare(self, value: n.Expr) -> n.Bare | n.Assign:
        match value:  # `xs.append(x)`: lists do not change, so the name is given a longer one
            case n.Call(n.Attribute(n.Name(name) as xs, "append"), (_,) as items, ()):
                longer = n.Call(n.Name("append", span=value.function.span), (xs, *items), span=value.span)
                return n.Assign(name, longer, span=value.span)
        return n.Bare(value, span=value.span)

    def use(self, word: Token, *path: Token) -> n.Use:
        return n.Use(tuple(str(t) for t in path if t.type == "NAME"), span=self._span(word, *path))

    def external(self, word: Token, name: Token, params: Params) -> n.External:
        return n.External(str(name), params[0], span=self._span(word).to(params[1]))

    def assert_(
        self, word: Token, value: n.Expr, _comma: Token | None = None, message: n.Expr | None = None
    ) -> n.Assert:
        return n.Assert(value, message, span=self._span(word, value, message))

    def def_(self, word: Token, name: Token, params: Params, body: n.Block) -> n.Def:
        return n.Def(str(name), params[0], body, span=self._span(word, body))

    def def_expression(self, word: Token, name: Token, params: Params, _equal: Token, value: n.Expr) -> n.Def:
        body = n.Block((n.Return(value, span=value.span),), span=value.span)
        return n.Def(str(name), params[0], body, span=self._span(word, value))

    def class_(self, word: Token, name: Token, _open: Token, kind: Token, _close: Token, body: n.Block) -> n.Assign:
        return option_of_class(str(name), str(kind), body, self._span(word, body))

    def if_(self, word: Token, test: n.Expr, then: n.Block, _else: Token | None, other: n.Block | n.If | None) -> n.If:
        if isinstance(other, n.If):
            other = n.Block((other,), span=other.span)
        return n.If(test, then, other, span=self._span(word, then, other))

    def with_(self, spend: n.Spend, body: n.Block) -> n.With:
        _no_wish(spend)
        return n.With(spend, body, span=self._span(spend, body))

    def jointly(self, word: Token, spend: n.Spend, body: n.Block) -> n.With:
        if spend.amount.unit == "weight":
            _no_wish(spend)
        total = "total" in word
        if total and spend.amount.is_wish:
            raise refuse(
                "SyntaxError", "errors are wanted of each answer here, and a least total of all", spend.amount.span,
                help="write an amount, `jointly for the least total with epsilon 1`, or `jointly with error 25`",
            )  # fmt: skip
        nonnegative, whole = "nonnegative" in word, "whole" in word
        if (nonnegative or whole) and spend.amount.is_wish:
            kind, form = ("not negative", "nonnegative") if nonnegative else ("integers", "whole")
            raise refuse(
                "SyntaxError", f"the error of answers that are {kind} depends on them, and cannot be asked for",
                spend.amount.span,
                help=f"write an amount, `jointly {form} with epsilon 1`, and read `error` of the answers",
            )  # fmt: skip
        return n.With(spend, body, True, total, nonnegative, whole, span=self._span(word, body))

    def run(
        self, word: Token, spend: n.Spend, _until: Token, _budget: Token, _of: Token, data: n.Expr,
        _or: Token | None, done: n.Expr | None, body: n.Block,
    ) -> n.Run:  # fmt: skip
        _no_wish(spend)
        return n.Run(spend, data, done, body, span=self._span(word, body))

    def line(self, colon: Token, stmt: n.Stmt) -> n.Block:
        return n.Block((stmt,), span=self._span(colon, stmt))

    def block(self, opened: Token, *children: object) -> n.Block:
        body = only(n.Statement, children)
        return n.Block(body, span=self._span(opened, children[-1] if opened.type == "LBRACE" else body[-1]))

    def names(self, *children: Token) -> tuple[str, ...]:
        return tuple(str(t) for t in children if t.type == "NAME")

    def params(self, *children: object) -> Params:
        params = only(n.Param, children)
        names_so_far: set[str] = set()
        for before, param in zip((None, *params), params, strict=False):
            if param.name in names_so_far:
                message = f"the parameter `{param.name}` is named twice"
                raise refuse("SyntaxError", message, param.span, help="give each a name of its own")
            if before is not None and before.default is not None and param.default is None:
                message = f"the parameter `{param.name}` has no default, but one before it has"
                raise refuse("SyntaxError", message, param.span, help="put parameters with defaults last")
            names_so_far.add(param.name)
        return params, self._span(children[0], children[-1])

    # Private sources ---------------------------------------------------------------------------

    def private(self, word: Token, name: Token, _equal: Token, source: n.Expr, *clauses: object) -> n.Private:
        kinds = {"described by": n.Expression, "protecting": n.Protecting, "budget": n.Budget}
        parts = {kind: only(form, clauses) for kind, form in kinds.items()}
        for kind, same in parts.items():
            if len(same) > 1:
                raise refuse("SyntaxError", f"a second `{kind}` for `{name}`", same[1].span, help="keep one of them")
        described, protecting, budget = (next(iter(same), None) for same in parts.values())
        return n.Private(str(name), source, described, protecting, budget, span=self._span(word, source, *clauses))

    def described(self, _described: Token, _by: Token, domains: n.Expr) -> n.Expr:
        return domains

    def protecting_rows(self, word: Token, what: Token, *more: object) -> n.Protecting:
        span, most = self._span(word, what, *more), next(iter(only(n.Expression, more)), None)
        if what == "rows":
            return n.Protecting(True, public_size=bool(more) and most is None, at_most=most, span=span)
        if more and most is None:
            help = f"write `protecting rows`, or `protecting {what} up to 5 rows`"
            raise refuse("SyntaxError", f"`protecting {what}` is followed by a number of rows", span, help=help)
        # of an owner who states `at most`, the rows beyond are left out all the same
        return n.Protecting(False, columns=(str(what),), up_to=most, at_most=most, span=span)

    def protecting_groups(self, word: Token, what: Token, *children: object) -> n.Protecting:
        groups = tuple(str(t) for t in children if isinstance(t, Token) and t.type == "NAME")
        span = self._span(word, *children)
        if what != "rows":
            help = "sizes are public where single rows are protected: `protecting rows, public size by state`"
            raise refuse("SyntaxError", f"`protecting {what}` is followed by a number of rows", span, help=help)
        return n.Protecting(True, public_size=True, groups=groups, span=span)

    def protecting_columns(self, word: Token, *children: object) -> n.Protecting:
        columns = tuple(str(t) for t in children if isinstance(t, Token) and t.type == "NAME")
        up_to = next(iter(only(n.Expression, children)), None)
        weighted = any(isinstance(t, Token) and t.type == "_WEIGHTED" for t in children)
        return n.Protecting(False, columns=columns, up_to=up_to, weighted=weighted, span=self._span(word, *children))

    def protecting_linked(self, word: Token, source: Token, _dot: Token, key: Token, *more: object) -> n.Protecting:
        own, up_to = more[1], next(iter(only(n.Expression, more)), None)
        return n.Protecting(
            False, columns=(str(own or key),), up_to=up_to, linked=str(source), key=str(key),
            span=self._span(word, source, key, *more),
        )  # fmt: skip

    def budget(
        self, word: Token, amount: n.Amount, _counted: object, _by: object, by: Token | None, *more: Token | n.Amount
    ) -> n.Budget:
        each = " ".join(str(t) for t in more if isinstance(t, Token) and t.type in ("NAME", "NUMBER", "_OF"))
        for_ever = next(iter(only(n.Amount, more)), None)
        counted_by, last = str(by) if by is not None else None, [t for t in more if t is not None]
        return n.Budget(amount, counted_by, each, for_ever, span=self._span(word, amount, by, *last))

    def amount(self, unit: Token, value: n.Expr, *delta: object) -> n.Amount:
        last = next(iter(only(n.Expression, delta)), None)
        return n.Amount(str(unit).lower(), value, last, span=self._span(unit, value, last))

    share = amount

    def portion(self, value: n.Expr) -> n.Amount:
        return n.Amount("share", value, span=value.span)

    def given(self, word: Token, value: n.Expr) -> n.Spend:
        return n.Spend(n.Amount("given", value, span=value.span), span=self._span(word, value))

    # The four things a choice is made of ---------------------------------------------------------

    def function(
        self, kind: Token, params: Params, body: n.Block, _predict: object, features: Params | None,
        predict: n.Block | None,
    ) -> n.Part:  # fmt: skip
        span = self._span(kind, body, predict)
        if predict is not None and kind != "Option":
            message = f"only an Option has a `predict`, not a {kind}"
            raise refuse("SyntaxError", message, predict.span, help="leave it out")
        return n.Part(str(kind), params[0], body, features[0] if features else None, predict, span=span)

    def choice(
        self, word: Token, _among: object, among: n.Expr, _by_way: object, way: Token | None, _informed: object,
        _by: object, informed: n.Expr, _trained: object, _on: object, trained: n.Expr, _using: object,
        using: n.Expr | None, _spending: object, spending: n.Expr | None, _wrt: object, wrt: n.Expr,
    ) -> n.Choice:  # fmt: skip
        how = self._way(way) if way is not None else n.FEATURES
        return n.Choice(among, how, informed, trained, using, spending, wrt, span=self._span(word, wrt))

    def choice_by_score(
        self, word: Token, _among: object, among: n.Expr, _by: object, way: Token, _trained: object, _on: object,
        trained: n.Expr | None, _spending: object, spending: n.Expr | None, _wrt: object, wrt: n.Expr,
    ) -> n.Choice:  # fmt: skip
        how = self._way(way)
        if how == n.FEATURES:
            help = "say which, and what they are learned from: `informed by {…} trained on {…}`"
            raise refuse("SyntaxError", "a choice by features names them", self._span(way), help=help)
        return n.Choice(among, how, None, trained, None, spending, wrt, span=self._span(word, wrt))

    def _way(self, way: Token) -> str:
        if way not in n.WAYS:
            message = f"a choice is made by {', '.join(n.WAYS[:-1])} or {n.WAYS[-1]}, not by {way}"
            raise refuse("SyntaxError", message, self._span(way), help="such as `among {A, B} by validation`")
        return str(way)

    def spending(self, value: n.Expr, spend: n.Spend) -> n.Spending:
        _no_wish(spend)
        return n.Spending(value, spend, span=self._span(value, spend))

    def described_source(self, source: n.Expr, _described: Token, _by: Token, domains: n.Expr) -> n.Expr:
        texts, readings = read_columns(domains)
        return derived(n.Described(source, texts, span=self._span(source, domains)), readings)

    def lambda_(self, word: Token, params: tuple[str, ...] | None, _colon: Token, body: n.Expr) -> n.Lambda:
        return n.Lambda(params or (), body, span=self._span(word, body))

    # Operators ---------------------------------------------------------------------------------

    def logic(self, *children: object) -> n.Logic:
        return n.Logic(str(children[1]).lower(), only(n.Expression, children), span=self._span(*children))

    def unary(self, op: Token, operand: n.Expr) -> n.Unary:
        return n.Unary(str(op).lower(), operand, span=self._span(op, operand))

    def binary(self, left: n.Expr, op: Token, right: n.Expr) -> n.Binary:
        spelled = {"=": "==", "<>": "!="}.get(str(op), str(op).lower())
        return n.Binary(spelled, left, right, span=self._span(left, right))

    def joined(self, left: n.Expr, _sign: Token, right: n.Expr) -> n.Binary:
        """SQL's `a || b`, which joins texts."""
        if any(isinstance(side, n.Number | n.Logic) or getattr(side, "value", None) in (True, False)
               for side in (left, right)):  # fmt: skip
            help = "write `or` between conditions, `text(x)` for a number"
            raise refuse("SyntaxError", "`||` joins texts, and is no `or`", self._span(_sign), help=help)
        return n.Binary("+", left, right, span=self._span(left, right))

    def not_member(self, left: n.Expr, _not: Token, _in: Token, right: n.Expr) -> n.Binary:
        return n.Binary("not in", left, right, span=self._span(left, right))

    def missing_test(self, left: n.Expr, _is: Token, negated: Token | None, word: Token) -> n.Binary:
        span = self._span(left, word)
        if word.type == "CONST" and word.lower() != "none":
            message = "`is` only tests for a missing value"
            raise refuse("SyntaxError", message, self._span(word), help="compare with `==`")
        missing = n.Constant(None, span=self._span(word))
        return n.Binary("!=" if negated is not None else "==", left, missing, span=span)

    def like_test(self, value: n.Expr, negated: Token | None, _like: Token, pattern: n.Expr) -> n.Binary:
        return n.Binary("not like" if negated is not None else "like", value, pattern, span=self._span(value, pattern))

    def between_test(
        self, value: n.Expr, negated: Token | None, _between: Token, low: n.Expr, _and: Token, high: n.Expr
    ) -> n.Binary:
        ends = n.ListOf((low, high), span=self._span(low, high))
        return n.Binary("not between" if negated is not None else "between", value, ends, span=self._span(value, high))

    def case(self, word: Token, value: n.Expr | None, *rest: object) -> n.Expr:
        """A chain of `a if c else b`; without an `else` it ends in `none`."""
        whole, nothing = self._span(word, rest[-1]), n.Constant(None, span=self._span(rest[-1]))
        other: n.Expr = next(iter(only(n.Expression, rest)), nothing)
        for test, then in reversed(only(tuple, rest)):
            holds = test if value is None else n.Binary("==", value, test, span=test.span)
            other = n.Conditional(holds, then, other, span=whole)
        return other

    def when(self, _when: Token, test: n.Expr, _then: Token, then: n.Expr) -> tuple[n.Expr, n.Expr]:
        return test, then

    # Calls -------------------------------------------------------------------------------------

    def call(self, function: n.Expr, _open: Token, args: Arguments | None, close: Token) -> n.Call:
        positions, keywords = args or ((), ())
        if isinstance(function, n.Name) and function.id == "position":
            match positions:
                case (n.Binary("in", inside, text),):  # SQL's `position("a" in x)`
                    positions = (text, inside)
        return n.Call(function, positions, keywords, span=self._span(function, close))

    def call_select(self, function: n.Expr, _open: Token, select: n.Expr, close: Token) -> n.Call:
        return n.Call(function, (select,), span=self._span(function, close))

    call_generator = call_select

    def call_star(self, function: n.Expr, _open: Token, star: Token, close: Token) -> n.Call:
        return n.Call(function, (n.Star(span=self._span(star)),), span=self._span(function, close))

    def call_distinct(self, function: n.Expr, _open: Token, word: Token, *rest: object) -> n.Call:
        values = only(n.Expression, rest)
        value = values[0] if len(values) == 1 else n.ListOf(values, span=self._span(*values))
        distinct = n.Distinct(value, span=self._span(word, value))
        return n.Call(function, (distinct,), span=self._span(function, rest[-1]))

    def call_extract(
        self, function: n.Expr, _open: Token, part: Token, _from: Token, value: n.Expr, close: Token
    ) -> n.Call:
        """SQL's `extract(year from d)`, which is `year(d)`."""
        name = PARTS.get(str(part).lower())
        if not (isinstance(function, n.Name) and function.id.lower() == "extract") or name is None:
            raise refuse(
                "SyntaxError", f"`extract` takes no part `{part}`", self._span(part),
                help="write `week(d)` for ISO's weeks, `weekday(d)` from 1 for Monday, `second(t)` for whole seconds",
            )  # fmt: skip
        return n.Call(n.Name(name, span=self._span(part)), (value,), span=self._span(function, close))

    def call_filter(
        self, call: n.Expr, word: Token, _open: Token, _where: Token, condition: n.Expr, close: Token
    ) -> n.Call:
        """SQL's `sum(x) filter (where c)`: of the rows where c does not hold the value is missing."""
        span = self._span(call, close)
        if not (isinstance(call, n.Call) and call.args and not call.keywords):
            raise refuse("SyntaxError", "`filter` stands after an aggregate", self._span(word), help="write `where`")
        first, *others = call.args
        distinct = isinstance(first, n.Distinct)
        if isinstance(first, n.Distinct):
            first = first.value
        if isinstance(first, n.ListOf):
            raise refuse(
                "SyntaxError", "a `filter` of several values that are counted together", span,
                help="write `where` in a select of its own",
            )  # fmt: skip
        value = n.Number(1.0, span=first.span) if isinstance(first, n.Star) else first
        operand: n.Expr = n.Conditional(condition, value, n.Constant(None, span=span), span=span)
        operand = n.Distinct(operand, span=span) if distinct else operand
        return n.Call(call.function, (operand, *others), span=span)

    def index(self, value: n.Expr, _open: Token, args: Arguments, close: Token) -> n.Index:
        return n.Index(value, *args, span=self._span(value, close))

    def args(self, *children: object) -> Arguments:
        names_so_far: set[str] = set()
        for child in children:
            if isinstance(child, n.Keyword):
                if child.name in names_so_far:
                    message = f"the argument `{child.name}` is given twice"
                    raise refuse("SyntaxError", message, child.span, help="keep one of them")
                names_so_far.add(child.name)
            elif isinstance(child, n.Expression) and names_so_far:
                help = "put the arguments without a name first"
                raise refuse("SyntaxError", "an argument without a name after one with a name", child.span, help=help)
        return only(n.Expression, children), only(n.Keyword, children)

    def generator(self, item: n.Expr, *rest: Round) -> n.Comprehension:
        return self._comprehension("generator", item, rest, self._span(item).to(rest[-1][-1]))

    # Atoms -------------------------------------------------------------------------------------

    def name(self, token: Token) -> n.Name:
        return n.Name(str(token), span=self._span(token))

    def number(self, token: Token) -> n.Number:
        return n.Number(float(token), "." in token, span=self._span(token))

    def date(self, token: Token) -> n.Constant:
        try:
            moment = datetime.fromisoformat(token) if "T" in token else date.fromisoformat(token)
        except ValueError:
            message = f"there is no day or time `{token}`"
            help = "write a day of the calendar, `2024-03-01`; a subtraction has blanks or no zeros"
            raise refuse("SyntaxError", message, self._span(token), help=help) from None
        return n.Constant(moment, span=self._span(token))

    def string(self, token: Token) -> n.String:
        return n.String(ESCAPE.sub(_escaped, token[1:-1]), span=self._span(token))

    def constant(self, token: Token) -> n.Constant:
        value = {"true": True, "false": False, "none": None}[token.lower()]
        return n.Constant(value, span=self._span(token))

    def group(self, open: Token, value: n.Expr, close: Token) -> n.Expr:
        return replace(value, span=self._span(open, close))

    def list_literal(self, open: Token, *rest: object) -> n.ListOf:
        return n.ListOf(only(n.Expression, rest), span=self._span(open, rest[-1]))

    def list_of(self, open: Token, item: n.Expr, *rest: object) -> n.Comprehension:
        return self._comprehension("list", item, only(tuple, rest), self._span(open, rest[-1]))

    def set_literal(self, open: Token, *rest: object) -> n.SetOf:
        return n.SetOf(only(n.Expression, rest), span=self._span(open, rest[-1]))

    def set_of(self, open: Token, item: n.Expr, *rest: object) -> n.Comprehension:
        return self._comprehension("set", item, only(tuple, rest), self._span(open, rest[-1]))

    def record(self, open: Token, *rest: object) -> n.RecordOf:
        pairs = tuple(child for child in rest if isinstance(child, tuple))
        filled = tuple(name for name, _, never_missing in pairs if never_missing)
        return n.RecordOf(tuple((name, value) for name, value, _ in pairs), filled, span=self._span(open, rest[-1]))

    def pair(
        self, key: Token, _colon: Token, value: n.Expr, never: Token | None, _missing: Token | None
    ) -> tuple[str, n.Expr, bool]:
        return (self.string(key).value if key.type == "STRING" else str(key)), value, never is not None

    def comprehension(
        self, _for: Token, names: tuple[str, ...], _in: Token, source: n.Expr, _if: object, condition: n.Expr | None
    ) -> Round:
        return names, source, condition, (condition or source).span

    def _comprehension(self, kind: str, item: n.Expr, rounds: Sequence[Round], span: Span) -> n.Comprehension:
        """`item for a in A for b in B` is `[item for b in B] for a in A`, with the inner lists laid end to end."""
        expression = item
        for place, (names, source, condition, _) in reversed(list(enumerate(rounds))):
            flat = place < len(rounds) - 1
            expression = n.Comprehension(
                kind if place == 0 else "list", expression, names, source, condition, flat, span=span
            )
        return cast(n.Comprehension, expression)


def _no_wish(spend: n.Spend) -> None:
    """Refuses an error or a weight where it is no `jointly` block, nor a select in one, that has it."""
    if spend.amount.is_wish:
        raise refuse(
            "SyntaxError", f"{spend.amount.unit} is no amount that is spent", spend.amount.span,
            help=f"a select in a `jointly` block takes `with {spend.amount.unit} …`; here write `with epsilon 0.1`",
        )  # fmt: skip


def _escaped(match: re.Match[str]) -> str:
    word = match.group(1)
    if len(word) == 5:
        return chr(int(word[1:], 16))
    return ESCAPES.get(word, match.group(0))
