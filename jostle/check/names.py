"""Unknown names, in all of a program, also in functions that are never called.

One walk with static scopes. Where rows are read a name may be a column, and what the columns are depends on values:
there an unknown name is let through (`queries` looks at it once the table is known).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from functools import cache
from typing import Any

from jostle.check.modules import Modules
from jostle.check.warnings import Report
from jostle.diagnostics import did_you_mean
from jostle.language.aggregates import AGGREGATES
from jostle.language.builtins import BUILTINS, DOMAINS
from jostle.language.forms import ambiguity, is_condition
from jostle.language.methods import forms, home, of_call, way
from jostle.language.moments import PERIOD
from jostle.language.row_functions import ROW_FUNCTIONS
from jostle.resources import folder
from jostle.source import Span
from jostle.syntax import nodes as n
from jostle.syntax.walk import Scope, blocks, bound_in, every, every_of, expressions

ALWAYS = frozenset({"epsilon", "rho"})
"""Names of what is left of an allotment."""
_VALUES = ALWAYS | {"none", "true", "false", "pi"}
"""Built-in names that are no functions."""


class Names:
    """The walk; `ready` holds the top-level names that may be bound so far, or None inside a function."""

    def __init__(
        self, report: Report, modules: Modules, names: Collection[str], predefined: Collection[str] = ()
    ) -> None:
        self._report, self._modules = report, modules
        self._always = Scope(ALWAYS.union(names, predefined))
        self._ready: set[str] | None = set()
        self._unknown: list[tuple[str, Span, str]] = []
        self._mine: Collection[str] = ()
        self._clashes: dict[str, tuple[str, ...]] = {}
        self._used: dict[str, Collection[str]] = {}  # the names of each module that is used, by the module's own
        self._library: Collection[str] = ()  # all of those
        self._built_in: dict[str, Collection[str]] = {}  # the built-ins that each module brings, by the module's name
        self._columns: dict[str, str] = {}  # the tables of the columns that private sources describe
        self._derived: set[str] = set()  # columns that are calculated

    def program(self, program: n.Program) -> None:
        names = frozenset(bound_in(program.body, self._modules.names))
        self._mine = names
        own = set(bound_in(program.body, lambda _: ()))
        used = every_of(program, n.Use)[::-1]
        self._used = {name: self._modules.names(use) for use in used for name in use.path if name not in own}
        self._built_in = {use.path[-1]: self._modules.built_in(use) for use in used if use.path[-1] not in own}
        self._library = names - own
        self._clashes = {name: modules for name, modules in self._modules.clashes(used).items() if name not in own}
        self._block(program.body, Scope(names, self._always))
        if self._modules.failed:  # an unknown name may be one of the missing module
            return
        first = {name: (span, help) for name, span, help in reversed(self._unknown)}  # the others follow from it
        for name, (span, help) in first.items():
            self._report.add("NameError", f"`{name}` is not defined", span, label="unknown name", help=help)

    # Statements --------------------------------------------------------------------------------

    def _block(self, body: tuple[n.Stmt, ...], scope: Scope) -> None:
        for stmt in body:
            self._stmt(stmt, scope)

    def _stmt(self, stmt: n.Stmt, scope: Scope) -> None:
        match stmt:
            case n.Def(name=name, params=params, body=body):
                self._make_ready([name])
                self._visit_function(params, body, scope)
                return
            case n.Release(name=name, value=None):
                self._look_up(name, stmt.span, scope)
            case n.For(names=names, source=source, body=body):
                self._expr(source, scope)
                self._make_ready(names)
                self._make_ready(bound_in(body.body, self._modules.names))  # a later turn sees what an earlier binds
                self._block(body.body, scope)
            case n.Run(spend=spend, data=data, done=done, body=body):
                self._expr(data, scope)
                self._make_ready(bound_in(body.body, self._modules.names))  # a later round sees what an earlier binds
                self._spend(spend, scope)
                self._block(body.body, scope)
                if done is not None:
                    self._expr(done, scope)
            case n.With(spend=spend, body=body):
                self._spend(spend, scope)
                self._block(body.body, scope)
            case n.Private():
                self._visit_private(stmt, scope)
            case n.External(params=params):
                self._defaults(params, scope)
            case _:
                for child in expressions(stmt):
                    self._expr(child, scope)
                for block in blocks(stmt):
                    self._block(block.body, scope)
        self._make_ready(bound_in([stmt], self._modules.names))

    def _visit_private(self, stmt: n.Private, scope: Scope) -> None:
        self._expr(stmt.source, scope)
        if isinstance(stmt.described, n.RecordOf):
            self._columns |= {name: stmt.name for name, _ in stmt.described.items}
        if stmt.described is not None:
            self._description(stmt.described, scope)
        if stmt.protecting is not None:
            if stmt.protecting.linked:
                self._look_up(stmt.protecting.linked, stmt.protecting.span, scope)
            for bound in (stmt.protecting.at_most, stmt.protecting.up_to):
                if bound is not None:
                    self._expr(bound, scope)
        if stmt.budget is not None:
            self._visit_amount(stmt.budget.amount, scope)
            if stmt.budget.for_ever is not None:
                self._visit_amount(stmt.budget.for_ever, scope)
            self._columns |= {PERIOD: stmt.name} if " of " in stmt.budget.each else {}

    def _make_ready(self, names: Collection[str] | object) -> None:
        if self._ready is not None:
            self._ready.update(names)  # type: ignore[arg-type]

    def _defaults(self, params: tuple[n.Param, ...], scope: Scope) -> None:
        for param in params:
            if param.default is not None:
                self._expr(param.default, scope)

    def _visit_function(self, params: tuple[n.Param, ...], body: n.Block, scope: Scope) -> None:
        self._defaults(params, scope)
        names = {param.name for param in params} | set(bound_in(body.body, self._modules.names))
        ready, self._ready = self._ready, None
        self._block(body.body, Scope(names, scope))
        self._ready = ready

    # Expressions -------------------------------------------------------------------------------

    def _expr(self, expr: n.Expr, scope: Scope, *, rows: bool = False, domains: bool = False) -> None:
        """`rows`: names may be columns. `domains`: the words of a description are known."""
        form = _FORMS.get(type(expr))
        if form is not None:
            form(self, expr, scope, rows, domains)
            return
        for child in () if isinstance(expr, _LEAVES) else expressions(expr):
            self._expr(child, scope, rows=rows, domains=domains)

    def _name(self, expr: n.Name, scope: Scope, rows: bool, domains: bool) -> None:
        if domains and expr.id in forms("domain") and scope.home(expr.id) in (None, self._always):
            self._unknown.append((expr.id, expr.span, f"write `{forms('domain')[expr.id]}`"))
        elif domains and expr.id not in DOMAINS and not scope.binds(expr.id):
            self._unknown.append((expr.id, expr.span, did_you_mean(expr.id, DOMAINS) or _DOMAINS))
        elif not (rows or (domains and expr.id in DOMAINS)):
            self._look_up(expr.id, expr.span, scope)

    def _set(self, expr: n.SetOf, scope: Scope, rows: bool, domains: bool) -> None:
        bare = [item for item in expr.items if domains and isinstance(item, n.Name) and not scope.binds(item.id)]
        for item in expr.items:
            if item not in bare:
                self._expr(item, scope, rows=rows)
            elif item is bare[0]:
                texts = ", ".join(f'"{one.span.text}"' if one in bare else one.span.text for one in expr.items)
                self._unknown.append((bare[0].id, item.span, f"categories are texts: `{{{texts}}}`"))

    def _variable(self, expr: n.Variable, scope: Scope, rows: bool, domains: bool) -> None:
        if not rows:
            message, help = f"`@{expr.id}` stands only where rows are read", f"write `{expr.id}`"
            self._report.add("NameError", message, expr.span, help=help)
        self._look_up(expr.id, expr.span, scope)

    def _lambda(self, expr: n.Lambda, scope: Scope, rows: bool, domains: bool) -> None:
        ready, self._ready = self._ready, None
        self._expr(expr.body, Scope(expr.params, scope), rows=rows)
        self._ready = ready

    def _visit_comprehension(self, expr: n.Comprehension, scope: Scope, rows: bool, domains: bool) -> None:
        self._expr(expr.source, scope, rows=rows)
        inner = Scope(expr.names, scope)
        self._expr(expr.item, inner, rows=rows)
        if expr.condition is not None:
            self._expr(expr.condition, inner, rows=rows)

    def _over(self, expr: n.Over, scope: Scope, rows: bool, domains: bool) -> None:
        self._expr(expr.source, scope, rows=rows)
        self._expr(expr.body, Scope((expr.name,), scope), rows=rows)

    def _part(self, expr: n.Part, scope: Scope, rows: bool, domains: bool) -> None:
        self._visit_function(expr.params, expr.body, scope)
        if expr.predict is not None and expr.predict_params is not None:
            self._visit_function(expr.predict_params, expr.predict, scope)

    def _dotted(self, expr: n.Attribute, scope: Scope, rows: bool, domains: bool) -> None:
        of = expr.value.id if isinstance(expr.value, n.Name) else ""
        bound = self._ready is None or of in self._ready or self._always.binds(of)
        if of and expr.name in forms("ending") and not bound:
            message, help = "a path is a text", f'write `"{expr.span.text}"`'
            self._report.add("NameError", message, expr.span, label="no quotes", help=help)
        elif self._is_of_python(expr, scope):
            self._of_python(expr)
        else:
            self._expr(expr.value, scope, rows=rows, domains=domains)

    def _indexed(self, expr: n.Index, scope: Scope, rows: bool, domains: bool) -> None:
        self._expr(expr.value, scope, rows=rows)
        for arg in expr.args:
            self._expr(arg, scope, rows=rows or is_condition(arg))
        for keyword in expr.keywords:
            self._expr(keyword.value, scope, rows=rows)

    def _spending(self, expr: n.Spending, scope: Scope, rows: bool, domains: bool) -> None:
        self._expr(expr.value, scope, rows=rows)
        self._spend(expr.spend, scope)

    def _described(self, expr: n.Described, scope: Scope, rows: bool, domains: bool) -> None:
        self._expr(expr.source, scope)
        self._description(expr.domains, scope)

    def _description(self, described: n.Expr, scope: Scope) -> None:
        """What stands after `described by`: there alone columns are `never missing`."""
        if isinstance(described, n.RecordOf) and _WRITTEN_OUT.issuperset(map(type, every(described)[1:])):
            return
        columns = [part for part in every(described) if isinstance(part, n.Name | n.String)]
        listed = isinstance(described, n.SetOf | n.ListOf) and len(columns) == len(every(described)) - 1
        if columns and (listed or (described is columns[0] and not scope.binds(described.span.text))):
            first = columns[0].value if isinstance(columns[0], n.String) else columns[0].id
            message, help = "a description says what each column may hold", _DESCRIBED.format(first)
            self._report.add("SyntaxError", message, described.span, help=help)
            return
        for part in (value for _, value in described.items) if isinstance(described, n.RecordOf) else (described,):
            self._expr(part, scope, domains=True)

    def _record(self, expr: n.RecordOf, scope: Scope, rows: bool, domains: bool) -> None:
        for name, value in expr.items:
            if name in expr.filled:
                help = "write the description there, `described by {" + name + ": … never missing}`"
                message = f"`{name}` is `never missing` in the columns of a source alone"
                self._report.add("SyntaxError", message, value.span, help=help)
            self._expr(value, scope, rows=rows, domains=domains)

    def _is_of_python(self, node: n.Attribute, scope: Scope) -> bool:
        """`np.mean` and `t.test`, where the program has no `np` and no `t` of its own."""
        root = node.value
        while isinstance(root, n.Attribute):
            root = root.value
        if not isinstance(root, n.Name) or scope.binds(root.id):
            return False
        return root.id in forms("module") or bool(home(node.span.text))

    def _of_python(self, node: n.Attribute, call: n.Call | None = None) -> None:
        args = call.args if call is not None else ()
        here = f"write `{node.name}`" if node.name in BUILTINS else "functions have no module before them"
        of_r = isinstance(node.value, n.Name) and (node.value.id == "is" or node.value.id not in forms("module"))
        help = of_call(node.name, call, self._columns) or way(node.name, args)
        help = help or home(node.span.text if of_r else node.name, args) or here
        message = f"`{node.span.text}` is of {'R, whose functions' if of_r else 'Python, whose modules'} are not here"
        self._report.add("NameError", message, node.span, label="unknown name", help=help)

    def _visit_call(self, call: n.Call, scope: Scope, rows: bool, domains: bool) -> None:
        row = BUILTINS.get(self._built_in_function(call.function, scope))
        on_rows = row is not None and row.over_rows
        if isinstance(call.function, n.Name):
            name = call.function.id
            if not (rows and (name in AGGREGATES or name in ROW_FUNCTIONS or name == "column")):
                more = (*AGGREGATES, *ROW_FUNCTIONS) if rows else ()
                self._look_up(name, call.function.span, scope, more, call)
        elif isinstance(call.function, n.Attribute) and self._is_of_python(call.function, scope):
            self._of_python(call.function, call)
        else:
            self._expr(call.function, scope, rows=rows)
        if self._is_told(call.function, scope):
            return
        for place, arg in enumerate(call.args):
            self._argument(arg, call.function, scope, rows or (on_rows and place > 0))
        function = self._function_of_language(call.function, scope)
        if function == "derive":
            self._derived |= {keyword.name for keyword in call.keywords}
        for keyword in call.keywords:
            self._argument(keyword.value, call.function, scope, rows or on_rows)

    def _argument(self, arg: n.Expr, function: n.Expr, scope: Scope, rows: bool) -> None:
        if isinstance(arg, n.ListOf):
            for item in arg.items:
                self._argument(item, function, scope, rows)
        elif not self._is_bare_column(arg, function, scope, rows):
            self._expr(arg, scope, rows=rows)

    def _is_bare_column(self, arg: n.Expr, function: n.Expr, scope: Scope, rows: bool) -> bool:
        """Whether a column is given to a function of the library by its bare name, which is reported."""
        of_library = isinstance(function, n.Name) and function.id in self._library and function.id not in BUILTINS
        if not (of_library and isinstance(arg, n.Name)) or scope.binds(arg.id):
            return False
        if arg.id not in self._columns and arg.id not in self._derived:
            return False
        help = f'a column is named by a text: write `"{arg.id}"`'
        if rows and isinstance(function, n.Name):
            help = f'`{function.id}` takes a table, outside of a query: `{function.id}(t, "{arg.id}", …)`'
        self._unknown.append((arg.id, arg.span, help))
        return True

    def _is_told(self, function: n.Expr, scope: Scope) -> bool:
        """Whether what is called is reported, and is not one letter away from a name, so that its arguments may mean
        anything; or has a way out that replaces them too: `exists (…)`, `t.filter(…)`."""
        if isinstance(function, n.Name):
            reported = self._unknown[-1:] and self._unknown[-1][1] is function.span
            return bool(reported) and not re.match("did you mean|.*which has it$", self._unknown[-1][2])
        while isinstance(function, n.Attribute | n.Call | n.Index):
            before, function = function, function.function if isinstance(function, n.Call) else function.value
            if isinstance(before, n.Attribute) and isinstance(function, n.Name):
                return before.name in forms("table") and function.id in self._columns.values()
        return False

    def _built_in_function(self, function: n.Expr, scope: Scope) -> str:
        """The built-in that is called, or an empty text."""
        match function:
            case n.Name(id=name):
                if scope.home(name) in (None, self._always):
                    return name
                brought = any(name in names for names in self._built_in.values())
                return name if brought and name in self._library else ""
            case n.Attribute(value=n.Name(id=module), name=name) if name in self._built_in.get(module, ()):
                return name
        return ""

    def _function_of_language(self, function: n.Expr, scope: Scope) -> str:
        """The name of the built-in or of the library's function that is called, or an empty text."""
        match function:
            case n.Name(id=name):
                place = scope.home(name)
                of_library = name in self._library and place is _top(scope, self._always)
                return name if place in (None, self._always) or of_library else ""
            case n.Attribute(value=n.Name(id=module), name=name) if module in self._used:
                return name
        return ""

    def _query(self, body: n.Expr, scope: Scope, rows: bool = False, domains: bool = False) -> None:
        """An expression over selects: the aggregates are known in it, other names must be variables."""
        body = body.body if isinstance(body, n.Query) else body
        if isinstance(body, n.Call) and isinstance(body.function, n.Name) and body.function.id in AGGREGATES:
            for child in (*body.args, *(keyword.value for keyword in body.keywords)):
                self._query(child, scope)
        elif isinstance(body, n.Binary | n.Unary | n.Logic | n.Conditional):
            for part in expressions(body):
                self._query(part, scope)
        else:
            self._expr(body, scope)

    def _visit_select(self, select: n.Select, scope: Scope, rows: bool = False, domains: bool = False) -> None:
        self._query(select.table, scope)
        tables = _table_names(select.table, select.alias)
        for join in select.joins:
            self._owners(join, tables)
            tables += _table_names(join.table, join.alias)
            self._expr(join.table, scope)
            if join.up_to is not None:
                self._expr(join.up_to, scope)
        for column in select.columns:
            self._expr(column.value, scope, rows=True)
        if select.where is not None:
            self._expr(select.where, scope, rows=True)
        for released in (select.having, *(rank.value for rank in select.ranking)):
            if released is not None:
                self._expr(released, scope, rows=True)
        if select.first is not None:
            self._expr(select.first, scope)
        for key in (*(select.per or ()), *select.keys):
            self._expr(key.value, scope, rows=True)
            if key.over is not None:
                self._expr(key.over, scope)
        if select.limit is not None:
            for number in (select.limit.groups, select.limit.rows):
                if number is not None:
                    self._expr(number, scope)
            if select.limit.order is not None:
                self._expr(select.limit.order, scope, rows=True)
        if select.spend is not None:
            self._spend(select.spend, scope)

    def _owners(self, join: n.Join, tables: list[str]) -> None:
        """`on a.x = b.y` names a table that is read before."""
        for match in join.on:
            if match.owner is not None and match.owner not in tables:
                available = "before it are " + ", ".join(f"`{name}`" for name in tables) if tables else ""
                message, help = f"no table before the join is called `{match.owner}`", did_you_mean(match.owner, tables)
                self._report.add("NameError", message, match.span, label="unknown table", help=help or available)

    def _spend(self, spend: n.Spend, scope: Scope) -> None:
        self._visit_amount(spend.amount, scope)
        if isinstance(spend.via, n.Call):  # the mechanism's own name is settled where it is used
            for arg in (*spend.via.args, *(keyword.value for keyword in spend.via.keywords)):
                self._expr(arg, scope)

    def _visit_amount(self, amount: n.Amount, scope: Scope) -> None:
        self._expr(amount.value, scope)
        if amount.delta is not None:
            self._expr(amount.delta, scope)

    def _of_column(self, name: str) -> str:
        """The way out of a column outside of a query, or an empty text."""
        table = self._columns.get(name)
        query = f"`{{{{ select avg({name}) from {table} with epsilon 0.1 }}}}`"
        return f"`{name}` is a column of `{table}`, which is read in a query: {query}" if table else ""

    def _way_out(self, name: str, names: Collection[str], call: n.Call | None, of_rows: bool) -> str:
        """What to write in place of a name that nothing has, where these do."""
        if call is None:
            of_runs = home(name) if name == "released" else ""
            names = {one for one in names if one in _VALUES or not self._always.binds(one)}  # no function is meant
            return self._of_column(name) or way(name) or of_runs or _way_out(name, names)
        of = call.args[0].span.text if call.args else "-"
        measured = rf"(?m)^(?:release )?{re.escape(of)} *= .*\bwith (?:epsilon|rho) "
        if re.match(r"`\w+\(t, ", home(name)) and re.search(measured, call.span.source.text):
            return f"`{of}` is measured: `print({of})` shows what there is of it, and fields are `{of}.name`"
        here = of_call(name, call, self._columns) or way(name, call.args) or (not of_rows and _of_module(name))
        return here or home(name, call.args, rows=of_rows) or _way_out(name, names, called=True, of_rows=of_rows)

    def _look_up(
        self, name: str, span: Span, scope: Scope, more: Collection[str] = (), call: n.Call | None = None
    ) -> None:
        """Says so where no name is such in a scope, nor among `more`; `call`: where it is called."""
        if not scope.binds(name):
            names = {*scope.visible(), *more}
            help = _inside(name, span) or self._way_out(name, names, call, bool(more))
            self._unknown.append((name, span, help))
            return
        if name in self._clashes and scope.home(name) is _top(scope, self._always):
            message, help = ambiguity(name, self._clashes[name])
            self._report.add("NameError", message, span, label="which one is meant?", help=help)
        early = self._ready is not None and name in self._mine and name not in self._ready
        if early and not self._always.binds(name) and scope.home(name) is _top(scope, self._always):
            self._unknown.append((name, span, "it is given a value further down; move that line up"))


def _inside(name: str, span: Span) -> str:
    """What is said of a name that has its value in a function of the program alone."""
    of = re.search(rf"(?m)^def (\w+)\(.*\n(?:[ \t]+.*\n|\n)*?[ \t]+{re.escape(name)} *=(?!=)", span.source.text)
    return f"`{name}` is a name inside of `{of[1]}`: end that with `return {name}`, and use what it gives" if of else ""


def _way_out(name: str, names: Collection[str], *, called: bool = False, of_rows: bool = False) -> str:
    alike = [one for one in names if name[:1] == one[:1] or (name[:1] == one[1:2] and one[:1] != "_")]
    help = (not of_rows and _of_module(name)) or did_you_mean(name, alike, 0.8 if called else 0.7)
    return help or (
        f"`jostle find {name}` looks for what does so" if called else f"give it a value first, `{name} = …`"
    )


@cache
def names_in(module: str) -> frozenset[str]:
    """The names that a module of the standard library defines, by its text; none of what is no such module."""
    path = folder("stdlib") / f"{module}.jst"
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    return frozenset(re.findall(r"(?m)^(?:def )?(\w+) *[(=](?!=)", text))


def _of_module(name: str) -> str:
    """That a module of the standard library defines a name, or an empty text."""
    modules = sorted(path.stem for path in folder("stdlib").glob("*.jst"))
    return next((f"write `use {one}` above, which has it" for one in modules if name in names_in(one)), "")


def _top(scope: Scope, names: Scope) -> Scope:
    here = scope
    while here.parent is not None and here.parent is not names:
        here = here.parent
    return here


def _table_names(table: n.Expr, alias: str | None) -> list[str]:
    """What the table of a select is called in it: an expression of tables by any of their names."""
    return [alias] if alias else [part.id for part in every(table) if isinstance(part, n.Name)]


_DOMAINS = (
    'a column is described by what you know of it: `0..99`, `{"a", "b"}`, `date`, `time`; else by `text` or `real`'
)
_DESCRIBED = (
    'such as `described by {{{}: 0..100, city: {{"Ames", "Cork"}}}}`: a range, a list of texts, `text`, `date`, `time`'
)
_LEAVES = (n.Number, n.String, n.Constant, n.Star)
_WRITTEN_OUT = {n.Number, n.String, n.Constant, n.Range, n.SetOf, n.ListOf, n.Unary}
_FORMS: Mapping[type, Callable[[Names, Any, Scope, bool, bool], None]] = {
    n.Name: Names._name, n.Variable: Names._variable, n.Lambda: Names._lambda, n.SetOf: Names._set,
    n.RecordOf: Names._record,
    n.Comprehension: Names._visit_comprehension, n.Over: Names._over, n.Part: Names._part, n.Call: Names._visit_call,
    n.Attribute: Names._dotted, n.Index: Names._indexed, n.Spending: Names._spending, n.Described: Names._described,
    n.Query: Names._query, n.Select: Names._visit_select,
}  # fmt: skip
"""The expressions in which a name may mean something else than around them."""
