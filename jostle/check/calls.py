"""What happens at a call and at MkChoiceMaker, as far as it is certain before the run.

Calls of the program's own functions are walked with what is known of the arguments; of the builtins only those are
known that take or refuse handles (`words`). The other half of `Flow`, apart for size.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from jostle.check import amounts, queries
from jostle.check.labels import Labels
from jostle.check.report import Report
from jostle.check.scopes import UseNames, always_returns, times_bound
from jostle.check.values import (
    UNKNOWN,
    Builtin,
    Chooser,
    Env,
    Function,
    Many,
    Parts,
    Record,
    Table,
    Value,
    arity_error,
    bound_arguments,
    element,
    many,
    private_table,
)  # fmt: skip
from jostle.language.builtins import BUILTINS, over_rows
from jostle.language.facts import Gives, Reads
from jostle.syntax import nodes as n

MOST_CALLS = 30  # calls inside each other that are followed


class Calls:
    """Mixed into `Flow`."""

    report: Report
    labels: Labels
    builtins: Collection[str]
    use_names: UseNames
    calls: list[n.Node]
    paid: int
    defining: bool
    waiting: list[Function]
    registered: set[int]
    returned: list[Value]

    def value(self, expr: n.Expr, env: Env) -> Value:
        """Of `Flow`."""
        return UNKNOWN

    def block(self, body: tuple[n.Stmt, ...], env: Env) -> None:
        """Of `Flow`."""

    def is_variable(self, env: Env) -> Callable[[str], bool]:
        """Of `Flow`."""
        return lambda name: True

    def register(self, function: Function) -> Function:
        """A function came to be; it is walked with unknown arguments at the end."""
        if not self.calls and id(function.node) not in self.registered:
            self.registered.add(id(function.node))
            self.waiting.append(function)
        return function

    def uncalled(self, function: Function) -> None:
        """Walks a function with unknown arguments."""
        node = function.node
        env = self.inside(function)
        names = node.params if isinstance(node, n.Lambda) else tuple(param.name for param in node.params)
        env.values.update(dict.fromkeys(names, UNKNOWN))
        if isinstance(node, n.Lambda):
            self.value(node.body, env)
            return
        self.block(node.body.body, env)
        if isinstance(node, n.Part) and node.predict is not None and node.predict_params is not None:
            predict = Env(function.env, times=times_bound(node.predict.body, self.use_names))
            predict.values.update({param.name: UNKNOWN for param in node.predict_params})
            self.block(node.predict.body, predict)

    def inside(self, function: Function) -> Env:
        body = () if isinstance(function.node, n.Lambda) else function.node.body.body
        return Env(function.env, times=times_bound(body, self.use_names))

    def call(self, call: n.Call, env: Env) -> Value:
        function = self.value(call.function, env)
        on_rows = isinstance(function, Builtin) and over_rows(function.name)
        args = [UNKNOWN if on_rows and place else self.value(arg, env) for place, arg in enumerate(call.args)]
        keywords = [UNKNOWN if on_rows else self.value(keyword.value, env) for keyword in call.keywords]
        match function:
            case Builtin(name=name):
                table = args[0] if args else UNKNOWN
                if on_rows and isinstance(table, Table) and table.columns is not None:
                    rows = [*call.args[1:], *(keyword.value for keyword in call.keywords)]
                    queries.check_rows(rows, table.columns, self.is_variable(env), self.report)
                return self.builtin(name, call, args, keywords)
            case Function():
                return self.apply(function, call, args, keywords)
            case Chooser():
                self.chosen(call, [*args, *keywords])
        return UNKNOWN

    def builtin(self, name: str, call: n.Call, args: list[Value], keywords: list[Value]) -> Value:
        first = args[0] if args else UNKNOWN
        bound = [*zip(call.args, args, strict=True)]
        bound += [(keyword.value, value) for keyword, value in zip(call.keywords, keywords, strict=True)]
        row = BUILTINS.get(name)
        if row is None:
            return UNKNOWN
        for expr, value in bound:
            if row.reads in (Reads.PRINTS, Reads.DRAWS):
                self.labels.shown_to_people(value, expr, expr.span, row.reads.value)
            elif row.reads in (Reads.PUBLIC, Reads.CONTAINERS):
                self.labels.computed(value, expr, name)
        match row.gives:
            case Gives.CUBE | Gives.FILTERED | Gives.DERIVED | Gives.PICKED | Gives.BINNED | Gives.VECTORS:
                if isinstance(first, Table):
                    columns = first.columns if row.gives is Gives.FILTERED else None
                    result = Table(first.declared, columns, first.trail)
                    return result.passed(call.span, f"`{name}` of it is private too")
            case Gives.PARTS:
                if isinstance(first, Table):
                    return Parts(first.passed(call.span, "its parts are private too"))
            case Gives.APPENDED:
                if isinstance(first, Many) and len(args) == 2:
                    return many((*first.items, args[1]), first.uniform)
            case Gives.CHOICE:
                for expr, value in bound:
                    if isinstance(value, Many | Record):
                        self.labels.trained(value, expr)
                return Chooser()
        return Table(None) if name == "table" else UNKNOWN

    def apply(self, function: Function, call: n.Call, args: list[Value], keywords: list[Value]) -> Value:
        """A call of one of the program's own functions."""
        node = function.node
        wrong = arity_error(function, call)
        if wrong:
            if self.labels.sure:
                self.report.add("TypeError", wrong, call.span, label="does not fit")
            return UNKNOWN
        if isinstance(node, n.Part) and node.kind == "Utility":
            for expr, value in zip(call.args, args, strict=True):
                self.labels.judged(value, expr, _source_text(call))
        if any(node is active for active in self.calls) or len(self.calls) >= MOST_CALLS:
            return UNKNOWN
        env = self.inside(function)
        bound = bound_arguments(function, call, args, keywords)
        for name, value in bound.items():
            passed = f"passed on as `{name}` of `{_source_text(call)}`"
            env.values[name] = value.passed(call.span, passed) if isinstance(value, Table) else value
        if not isinstance(node, n.Lambda):
            for param in node.params:
                if param.default is not None and param.name not in bound:
                    env.values[param.name] = self.value(param.default, function.env)
        was, self.returned = self.returned, []
        self.calls.append(node)
        if isinstance(node, n.Lambda):
            result = self.value(node.body, env)
        else:
            self.block(node.body.body, env)
            result = element(tuple(self.returned)) if always_returns(node.body.body) else UNKNOWN
        self.calls.pop()
        self.returned = was
        return result

    def chosen(self, call: n.Call, bound: list[Value]) -> None:
        """A call of a ChoiceMaker: on private data it needs an allotment, whatever it has learnt."""
        table = next(filter(None, map(private_table, bound)), None)
        if table is None or self.paid or self.calls or self.defining or table.declared is None:
            return
        message = f"this choice reads `{table.declared.name}`, which is private, and nothing pays for it"
        help = f"write `{_source_text(call)}(…) with epsilon 0.5`"
        self.report.add("NoEpsilon", message, call.span, label="no epsilon", help=help, notes=table.trail)

    # MkChoiceMaker -------------------------------------------------------------------------------

    def check_choice(self, choice: n.Choice, env: Env) -> None:
        among, informed = self.value(choice.among, env), self.value(choice.informed, env)
        trained, wrt = self.value(choice.trained, env), self.value(choice.wrt, env)
        if isinstance(choice.among, n.ListOf | n.SetOf) and not choice.among.items:
            help = "name at least one Option"
            self.report.add("ValueError", "a choice among nothing", choice.among.span, label="no Option", help=help)
        self._parts(among, choice.among, "Option")
        self._parts(informed, choice.informed, "Feature")
        self._kind(wrt, choice.wrt, "Utility")
        self.labels.trained(trained, choice.trained)
        if choice.using is not None:
            self.value(choice.using, env)
            if isinstance(choice.using, n.Number | n.String | n.Constant | n.RecordOf | n.Range | n.Part):
                help = "write `using tree(depth = 3)`, `using regret_tree()` or `using forest()`"
                self.report.add("TypeError", "`using` takes a model", choice.using.span, label="no model", help=help)
        if choice.spending is not None and not self.labels.spent(self.value(choice.spending, env), choice.spending):
            amounts.check_share(choice.spending, self.report)

    def _parts(self, value: Value, expr: n.Expr, kind: str) -> None:
        if isinstance(value, Many) and isinstance(expr, n.ListOf | n.SetOf) and len(value.items) == len(expr.items):
            for item, written in zip(value.items, expr.items, strict=True):
                self._kind(item, written, kind)

    def _kind(self, value: Value, expr: n.Expr, kind: str) -> None:
        """What is evidently no `kind`: a literal, or a Part of another kind."""
        literal = isinstance(expr, n.Number | n.String | n.Constant | n.ListOf | n.SetOf | n.RecordOf | n.Range)
        other = value.node.kind if isinstance(value, Function) and isinstance(value.node, n.Part) else kind
        if literal or other != kind:
            article = {"Option": "an", "Utility": "a", "Feature": "a"}
            result = f"{article[other]} {other}" if other != kind else "this value"
            message = f"{result} stands where {article[kind]} {kind} belongs"
            self.report.add("TypeError", message, expr.span, label=f"no {kind}")


def _source_text(call: n.Call) -> str:
    match call.function:
        case n.Name(id=name) | n.Attribute(name=name):
            return name
    return "f"
