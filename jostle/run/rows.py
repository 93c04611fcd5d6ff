"""The compiler from expressions of a program to row expressions.

A name of a column is the column. If it is also a variable, it is refused as ambiguous: `t.sex` is the column and `@sex`
the variable. A part without columns is evaluated once, outside, and becomes a constant. Every name is resolved, also in
branches that no row takes. The row language is total and closed: functions of the program are inlined (`inlined`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import date
from functools import reduce
from itertools import islice
from typing import Any

from jostle.diagnostics import Refusal, did_you_mean, refuse
from jostle.language import facts, row_mistakes
from jostle.language.operations import COMPARISONS
from jostle.language.row_functions import ROW_FUNCTIONS
from jostle.plan.kinds import kind_of
from jostle.plan.plan import Apply, Categories, Column, Constant, Domain, Integer, Real, RowExpr
from jostle.privacy.kernel.exposures import Handle
from jostle.privacy.kernel.handles import ColumnHandle, Table
from jostle.records import replace
from jostle.run import values as val
from jostle.run.calls import Body, inlined
from jostle.run.evaluator import Evaluator
from jostle.run.faults import LIBRARY
from jostle.run.operators import applied, like
from jostle.run.scope import MISSING, Qualifiers, Scope
from jostle.run.sequences import Period
from jostle.syntax import nodes as n
from jostle.syntax.walk import every

MOST_ITEMS = 1_000  # the largest number of items of `sum over` on rows
_NO_TABLES = Qualifiers()
CALLED = (val.Function, val.Builtin, val.RowForm, val.Part, val.Module)


class RowCompiler:
    """Compiles expressions over the columns of one table or the dimensions of one cube.

    `tables` are the names of the table in the query, and `body` is a function that is being inlined. `aggregates` are
    the values of aggregate nodes over groups of rows, by id. `results` are the names of a select's results.
    """

    def __init__(
        self, schema: Mapping[str, Domain], interp: Evaluator, scope: Scope, tables: Qualifiers | None = None,
        body: Body | None = None, aggregates: Mapping[int, RowExpr] | None = None, results: Collection[str] = (),
    ) -> None:  # fmt: skip
        self.schema = schema
        self._interp, self._evaluate = interp, interp.eval
        self._scope = scope
        self._tables = tables or _NO_TABLES
        self._body = body
        self._given = aggregates or {}
        self._results = results
        self._test = ""  # the text of the current condition

    def expression(self, node: n.Expr) -> RowExpr:
        return self.part(node) or self._outside(node)

    def condition(self, node: n.Expr) -> RowExpr:
        """A condition. Refused if it reads no column, since it would hold for all rows or for none."""
        self._test = node.span.text
        expr = self.part(node)
        if expr is not None:
            return expr
        if isinstance(node, (n.Binary, n.Logic, n.String, n.Number, n.Unary)):
            raise self._reads_nothing(node, "this condition")
        return self._outside(node)

    def column_position(self, node: n.Expr, *, constant: bool = False) -> tuple[RowExpr, str | None]:
        """The expression of an argument that is a column, which may be named by a text or a variable; and its name.

        Other expressions must read a column, unless a `constant` is allowed.
        """
        if isinstance(node, n.Name) and self._is_column(node):
            other = self._named(self._variable(node.id))
            if other is not None and other != node.id and other in self.schema:
                raise self._two_meanings(node)
            return self._column(node.id), node.id
        if isinstance(node, n.Name) and not self._scope.holds(node.id):
            raise self._no_column(node.id, node)
        if isinstance(node, n.String) and (not constant or node.value in self.schema):
            self._need(node.value, node)
            return self._column(node.value), node.value
        expr = self.part(node)
        if isinstance(expr, Column) and isinstance(node, n.Attribute | n.Call):
            return expr, node.name if isinstance(node, n.Attribute) else expr.name
        if expr is not None:
            return expr, None
        value = self._evaluate(node, self._scope)
        name = self._named(value)
        if name is not None and (not constant or name in self.schema):
            self._need(name, node)
            return self._column(name), name
        expr = self._constant(value, node)
        if not constant:
            raise self._reads_nothing(node, "this")
        return expr, None

    def counted_position(self, node: n.Expr) -> RowExpr:
        """The expression that `count(distinct …)` counts: a column, or a text for each combination of several."""
        items = node.items if isinstance(node, n.ListOf) else (node,)
        exprs = [self.column_position(item)[0] for item in items]
        if len(exprs) > 1:  # 0 and -0 are one number, but two texts
            exprs = [Apply("+", (e, Constant(0.0))) if kind_of(e, self.schema) == "number" else e for e in exprs]
        return reduce(lambda left, right: Apply("pair", (left, right)), exprs)

    def columns_at(self, node: n.Expr) -> list[tuple[RowExpr, str | None]]:
        """The expressions and names of a list of columns."""
        if isinstance(node, n.ListOf):
            return [pair for item in node.items for pair in self.columns_at(item)]
        if isinstance(node, n.Name) and self._is_column(node):
            return [self.column_position(node)]
        if type(node) is n.Variable and self._body is None and id(node) not in self._given:  # `@the_attribute`
            name = self._named(self._evaluate(node, self._scope))
            if name is not None:
                self._need(name, node)
                return [(Column(name), name)]
        if isinstance(node, n.Comprehension) or (
            isinstance(node, n.Name | n.Variable | n.Attribute | n.Index | n.Call) and self._compile_known(node) is None
        ):
            value = self._evaluate(node, self._scope)
            if val.is_sequence(value) or isinstance(value, val.JSet):
                names = [self._named(item) for item in value]
                if None in names:
                    raise refuse("TypeError", "a list of columns holds their names, or columns", node.span)
                for name in names:
                    self._need(str(name), node)
                return [(self._column(str(name)), name) for name in names]
        return [self.column_position(node)]

    def _compile_known(self, node: n.Expr) -> RowExpr | None:
        if isinstance(node, n.Name) and self._scope.find(node.id) is MISSING:
            raise self._no_column(node.id, node)
        return self.part(node)

    # Names ---------------------------------------------------------------------------------------

    def _is_column(self, node: n.Name | n.Variable) -> bool:
        own = node.span.source.name.startswith(LIBRARY) and self._variable(node.id) is not MISSING  # of no table
        return (node.id in self.schema and not own) if self._body is None else node.id in self._body.bound

    def _column(self, name: str) -> RowExpr:
        return Column(name) if self._body is None else self._body.bound[name]

    def _variable(self, name: str) -> Any:
        """The value of a program's variable that could be meant instead of a column, or `MISSING`."""
        value = self._scope.variable(name) if self._body is None else MISSING
        called = isinstance(value, CALLED) or hasattr(value, "jostle_call")
        return MISSING if called or (isinstance(value, Handle) and not isinstance(value, ColumnHandle)) else value

    @staticmethod
    def _named(value: object) -> str | None:
        return value.name if isinstance(value, ColumnHandle) else value if isinstance(value, str) else None

    def _two_meanings(self, node: n.Name) -> Exception:
        help, message = facts.ways(node.id, self._tables.owner(node.id)), f"`{node.id}` is a column and a variable"
        return refuse("NameError", message, node.span, label="which one is meant?", help=help)

    def _need(self, name: str, node: n.Expr) -> None:
        if name not in self.schema:
            raise self._no_column(name, node)

    def _no_column(self, name: str, node: n.Expr) -> Refusal:
        values = {column: domain.values for column, domain in self.schema.items() if isinstance(domain, Categories)}
        moment = next((one for one in self.schema if kind_of(Column(one), self.schema) in ("date", "time")), "")
        return Refusal(row_mistakes.no_column(name, self.schema, values, node.span, self._results, self._test, moment))

    def _no_such(self, table: str, name: str, node: n.Expr) -> Refusal:
        help = did_you_mean(name, self.schema) or row_mistakes.listed(self.schema)
        return refuse("NameError", f"`{table}` has no column `{name}`", node.span, help=help)

    def _reads_nothing(self, node: n.Expr, what: str) -> Refusal:
        numbers = [name for name, domain in self.schema.items() if isinstance(domain, Integer | Real)]
        named = next((x.id for x in _names(node) if self._named(self._scope.find(x.id)) in self.schema), "")
        return Refusal(row_mistakes.reads_nothing(node, what, self.schema, named, self._results, numbers))

    # Expressions ---------------------------------------------------------------------------------

    def part(self, node: n.Expr) -> RowExpr | None:
        """A compiled part of an expression; None for a part without columns, which is public."""
        if id(node) in self._given:
            return self._given[id(node)]
        form = _FORMS.get(type(node))
        if form is not None:
            return form(self, node)
        if isinstance(node, n.Over) and any(one.id == "column" or self._is_column(one) for one in _names(node.body)):
            return self._fold(node)
        if any(self.part(item) is not None for item in _children(node)):
            raise refuse("TypeError", "columns cannot stand in a list or range", node.span)
        if self._body is not None:
            self._body.need_quiet(node)
        return None

    def _unary(self, node: n.Unary) -> RowExpr | None:
        operand = self.part(node.operand)
        if operand is None or node.op == "+":
            return operand
        return Apply("neg" if node.op == "-" else "not", (operand,))

    def _binary(self, node: n.Binary) -> RowExpr | None:
        form = _OPERATORS.get(node.op)
        return form(self, node) if form is not None else self._apply(node.op, (node.left, node.right))

    def _logic(self, node: n.Logic) -> RowExpr | None:
        parts = [self.part(o) for o in node.operands]
        if all(p is None for p in parts):
            return None
        filled = [p or self._operand(o) for p, o in zip(parts, node.operands, strict=True)]
        return reduce(lambda left, right: Apply(node.op, (left, right)), filled)

    def _conditional(self, node: n.Conditional) -> RowExpr | None:
        return self._apply("if", (node.test, node.then, node.other))

    def _attribute(self, node: n.Attribute | n.Index) -> RowExpr | None:
        """`t.age` if `t` names a table of the query; else a field or element of a public value."""
        match node:
            case n.Attribute(value=n.Name(id=table), name=name) if self._tables.has(table, name):
                self._tables.need_visible(table, name, node.span)
                return Column(self._tables.column(table, name))
            case n.Attribute(value=n.Name(id=table), name=name) if self._tables.lacks(table, self._scope):
                raise self._no_such(table, name, node)
        if self.part(node.value) is not None:
            name = node.value.id if isinstance(node.value, n.Name) and node.value.id not in ROW_FUNCTIONS else ""
            help = f"write `@{name}` for the variable" if self._scope.find(name) is not MISSING else ""
            if isinstance(node, n.Attribute) and node.name in ROW_FUNCTIONS:
                help = f"write `{node.name}({node.value.span.text})`"
            raise refuse("TypeError", "a column has no fields or elements in a query", node.span, help=help)
        return None

    def _name(self, node: n.Name) -> RowExpr | None:
        if self._is_column(node):
            if self._variable(node.id) is not MISSING:
                raise self._two_meanings(node)
            return self._column(node.id)
        if not self._scope.holds(node.id):
            raise self._no_column(node.id, node)
        if node.id == "values" and isinstance(self._scope.find(node.id), val.Builtin):
            raise refuse(
                "TypeError", "`values` cannot be grouped by or calculated with", node.span,
                help="counts are summed, `sum(values)`, counted, `count(values) where values > 5`, or measured",
            )  # fmt: skip
        return None

    def _apply(self, op: str, nodes: tuple[n.Expr, ...]) -> RowExpr | None:
        parts = list(map(self.part, nodes))
        if parts.count(None) == len(parts):
            return None
        return applied(op, tuple([p or self._operand(o) for p, o in zip(parts, nodes, strict=True)]), self.schema)

    def _comparison(self, node: n.Binary) -> RowExpr | None:
        compared = self._apply(node.op, (node.left, node.right))
        if compared is None:
            self._need_no_column_meant(node)
            return None
        self._need_described(node)
        if node.op in ("==", "!=") and isinstance(compared, Apply):
            columns = [arg for arg in compared.args if not (isinstance(arg, Constant) and arg.value is None)]
            if len(columns) == 1:  # comparing with `none` tests for missing values
                missing = Apply("missing", (columns[0],))
                return missing if node.op == "==" else Apply("not", (missing,))
        return compared

    def _between(self, node: n.Binary) -> RowExpr | None:
        low, high = _children(node.right)
        parts = [self.part(part) for part in (node.left, low, high)]
        if all(part is None for part in parts):
            return None
        value, least, most = (p or self._operand(o) for p, o in zip(parts, (node.left, low, high), strict=True))
        self._need_described(node)
        inside = self._inside(value, least, most)
        return Apply("not", (inside,)) if node.op.startswith("not") else inside

    def _inside(self, value: RowExpr, low: RowExpr, high: RowExpr) -> Apply:
        """The condition between two ends, both included."""
        return Apply("and", tuple(applied(op, (value, end), self.schema) for op, end in ((">=", low), ("<=", high))))

    def _like(self, node: n.Binary) -> RowExpr | None:
        if (value := self.part(node.left)) is None:
            return None
        pattern = self._evaluate_public(node.right)
        if not isinstance(pattern, str):
            raise refuse("TypeError", f"`like` takes a text, not {val.kind_name(pattern)}", node.right.span)
        test = like(value, pattern, self.schema)
        return Apply("not", (test,)) if node.op == "not like" else test

    def _member(self, node: n.Binary) -> RowExpr | None:
        left = self.part(node.left)
        if left is None:
            return None
        self._need_described(node)
        value = self._evaluate_public(node.right)
        if isinstance(value, (str, float, int)) and _in_brackets(node.right):
            value = [value]  # SQL's `in ("a")`
        if isinstance(value, val.Interval | Period):
            inside = self._inside(left, Constant(value.low), Constant(value.high))
        elif isinstance(value, val.JSet) or val.is_sequence(value):
            operands = (left, *(self._constant(v, node.right) for v in value))
            inside = applied("in", operands, self.schema)
        else:
            raise refuse(
                "TypeError", f"`in` takes a set, a list or a range, not {val.kind_name(value)}", node.right.span
            )
        return Apply("not", (inside,)) if node.op == "not in" else inside

    def _fold(self, node: n.Over) -> RowExpr:
        """`sum over i in 1..3 of …`, expanded for each public item."""
        if node.fold not in ("sum", "min", "max"):
            raise refuse("TypeError", f"`{node.fold} over` cannot be calculated of a row", node.span)
        source = self._evaluate_public(node.source)
        walked = isinstance(source, val.JSet | Period) or val.is_sequence(source) or (
            isinstance(source, val.Interval) and not source.real
        )  # fmt: skip
        if not walked:
            message = f"`{node.fold} over` walks through a list, a set or a range, not {val.kind_name(source)}"
            raise refuse("TypeError", message, node.source.span)
        items = list(islice(source, MOST_ITEMS + 1))
        if not items or len(items) > MOST_ITEMS:
            message = f"`{node.fold} over` on rows walks through 1 to {MOST_ITEMS:,} items"
            raise refuse("ValueError", message, node.source.span)
        parts = [self._with_variable(node.name, item).expression(node.body) for item in items]
        while len(parts) > 1:  # in pairs, so that nesting is logarithmic
            pairs = [tuple(parts[i : i + 2]) for i in range(0, len(parts), 2)]
            op = "+" if node.fold == "sum" else node.fold
            parts = [applied(op, pair, self.schema) if len(pair) == 2 else pair[0] for pair in pairs]
        return parts[0]

    def _with_variable(self, name: str, value: object) -> RowCompiler:
        """The same compiler with a further variable in scope."""
        scope, body = Scope(self._scope, {name: value}), self._body
        if body is not None:
            body = replace(body, bound={key: expr for key, expr in body.bound.items() if key != name}, scope=scope)
        return RowCompiler(self.schema, self._interp, scope, self._tables, body, self._given)

    def _call(self, node: n.Call) -> RowExpr | None:
        name = node.function.id if isinstance(node.function, n.Name) else ""
        value = self._scope.find(name)
        if name == "column" and not isinstance(value, val.Function):
            return self._named_column(node)
        if isinstance(node.function, n.Attribute) and self.part(node.function.value) is not None:
            raise Refusal(row_mistakes.no_method(node.function))
        args = [self.part(arg) for arg in (*node.args, *(keyword.value for keyword in node.keywords))]
        if all(a is None for a in args):
            if self._body is not None:
                self._body.need_quiet(node)
            return None
        by_value = isinstance(node.function, n.Lambda | n.Attribute)  # other callees might measure
        function = self._evaluate(node.function, self._scope) if by_value else value
        if isinstance(function, val.Function):
            return self._inlined(function, node, args)
        own = val.kind_name(function) == "a function" and not isinstance(function, val.Builtin)
        if name not in ROW_FUNCTIONS or own:
            raise Refusal(row_mistakes.no_row_function(name, node))
        _need_arguments(name, node)
        filled = tuple(p or self._outside(o) for p, o in zip(args, node.args, strict=True))
        return applied(name, filled, self.schema)

    def _named_column(self, node: n.Call) -> RowExpr:
        """`column(c)`: the column with the name c."""
        if len(node.args) != 1 or node.keywords:
            raise refuse("TypeError", "`column` takes the name of a column", node.span, help="`column(c) == 1`")
        value = self._evaluate_public(node.args[0])
        name = self._named(value)
        if name is None:
            raise refuse(
                "TypeError", f"`column` takes the name of a column, not {val.kind_name(value)}", node.args[0].span
            )
        self._need(name, node.args[0])
        return Column(name)

    def _inlined(self, function: val.Function, node: n.Call, args: list[RowExpr | None]) -> RowExpr:
        """A call of a program's function, inlined with its arguments."""
        values = [*node.args, *(k.value for k in node.keywords)]
        arguments = [
            expr if expr is not None else self._evaluate_public(value) for expr, value in zip(args, values, strict=True)
        ]
        keywords = {k.name: arguments[len(node.args) + i] for i, k in enumerate(node.keywords)}
        body, scope = inlined(function, arguments[: len(node.args)], keywords, node, self._body)
        inner = RowCompiler(self.schema, self._interp, scope, None, body)
        return inner.expression(body.value)

    # Constants -----------------------------------------------------------------------------------

    def _outside(self, node: n.Expr) -> RowExpr:
        return self._constant(self._evaluate_public(node), node)

    def _operand(self, node: n.Expr) -> RowExpr:
        """A public operand beside a column."""
        if isinstance(node, n.Number | n.String):
            return Constant(node.value)
        if self._body is not None:
            self._body.need_quiet(node)
        return self._constant(self._interp.operand(node, self._scope), node)

    def _evaluate_public(self, node: n.Expr) -> Any:
        if self._body is not None:
            self._body.need_quiet(node)
        return self._evaluate(node, self._scope)

    def _constant(self, value: object, node: n.Expr) -> RowExpr:
        if isinstance(value, ColumnHandle):
            self._need(value.name, node)
            return Column(value.name)
        if val.handles_in(value):
            help = "rows are counted by `count(*)`, and columns stand by their names"
            help = help if isinstance(value, Table) else facts.MEASURED_FIRST
            raise refuse("PrivateValue", "a private value cannot stand in a condition or a key", node.span, help=help)
        if value is None or isinstance(value, (bool, str, date)):
            return Constant(value)
        if val.is_number(value):
            return Constant(float(value))
        fault = self._no_column(node.id, node) if isinstance(node, n.Name) and self.schema else None
        message = f"{val.kind_name(value)} cannot stand in an expression on rows"
        help = "bins are calculated, `x = floor(age / 10)`, and `in` asks for several" * val.is_sequence(value)
        if isinstance(node, n.Lambda):
            help = f"write `{node.body.span.text.replace(f'{node.params[0]}.', '')}`"
        raise fault or refuse("TypeError", message, node.span, help=help)

    # What cannot be meant ------------------------------------------------------------------------

    def _need_described(self, node: n.Binary) -> None:
        """Refuses a literal or a setting that the description of a column excludes."""
        if self._body is not None:
            return
        for side, op, place, value in facts.compared(node, self._setting if self._interp.settings else facts.literal):
            expr = Column(side.id) if isinstance(side, n.Name) and side.id in self.schema else self.part(side)
            domain = known_of(self.schema[expr.name]) if isinstance(expr, Column) else None
            fault = facts.ruled_out(expr.name, op, value, domain) if isinstance(expr, Column) and domain else None
            if fault:
                label = "holds for no row" if op != "!=" else "holds for every row"
                set_to = f"`{place.id}` is set to it: " if isinstance(place, n.Name | n.Variable) else ""
                raise refuse("ValueError", fault[0], place.span, label=label, help=set_to + fault[1])

    def _setting(self, node: n.Expr) -> str | float | None:
        """The literal there, or the text of a parameter that was set from outside; else None."""
        name = node.id if isinstance(node, n.Name | n.Variable) else ""
        value = self._variable(name) if name in self._interp.settings else None
        return value if isinstance(value, str) else facts.literal(node)

    def need_described(self, column: str, node: n.Expr) -> None:
        """Refuses such a constant in `D[a = v]`."""
        self._need_described(n.Binary("==", n.Name(column, span=node.span), node, span=node.span))

    def _need_no_column_meant(self, node: n.Binary) -> None:
        """Refuses `c == 1` if the variable c holds the name of a column."""
        for side, other in ((node.left, node.right), (node.right, node.left)):
            value = facts.literal(other)
            if not isinstance(side, n.Name | n.Variable) or self._body is not None:
                continue
            if value is not None and value not in self.schema and self._named(self._scope.find(side.id)) in self.schema:
                raise self._reads_nothing(node, "this comparison")


def known_of(domain: Domain) -> facts.Listed | facts.Bounded | None:
    """The listed values or the bounds of a domain."""
    if isinstance(domain, Integer | Real):
        return facts.Bounded(domain.low, domain.high, isinstance(domain, Integer))
    return facts.Listed(domain.values) if isinstance(domain, Categories) else None


def _need_arguments(name: str, node: n.Call) -> None:
    """Refuses a call of a row function with too many or too few arguments."""
    row = ROW_FUNCTIONS[name]
    several = row.name == "coalesce" and bool(node.args)
    fits = row.arity <= len(node.args) <= row.arity + row.optional
    if not (fits or several) or node.keywords:
        many = f"{row.arity} argument{'s' if row.arity > 1 else ''}"
        form = ", ".join(row.signature.split(", ")[: row.arity + row.optional] or [row.signature])
        raise refuse("TypeError", f"`{name}` takes {many} here", node.span, help=f"{name}({form})")


def _in_brackets(node: n.Expr) -> bool:
    return node.span.source.line(node.span.line)[node.span.column - 1 : node.span.column] == "("


def _names(node: n.Expr) -> list[n.Name | n.Variable]:
    return [part for part in every(node) if isinstance(part, n.Name | n.Variable)]


def _children(node: n.Expr) -> tuple[n.Expr, ...]:
    if isinstance(node, n.Range):
        return (node.low, node.high)
    return node.items if isinstance(node, (n.ListOf, n.SetOf)) else ()


_FORMS: Mapping[type, Callable[[RowCompiler, Any], RowExpr | None]] = {
    n.Name: RowCompiler._name, n.Unary: RowCompiler._unary, n.Binary: RowCompiler._binary, n.Logic: RowCompiler._logic,
    n.Conditional: RowCompiler._conditional, n.Call: RowCompiler._call, n.Attribute: RowCompiler._attribute,
    n.Index: RowCompiler._attribute, **dict.fromkeys((n.Number, n.String), lambda compiler, node: None),
}  # fmt: skip
_OPERATORS: Mapping[str, Callable[[RowCompiler, n.Binary], RowExpr | None]] = {
    **dict.fromkeys(COMPARISONS, RowCompiler._comparison),
    "in": RowCompiler._member, "not in": RowCompiler._member, "between": RowCompiler._between,
    "not between": RowCompiler._between, "like": RowCompiler._like, "not like": RowCompiler._like,
}  # fmt: skip
