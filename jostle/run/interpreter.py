"""The interpreter: walks the tree, holds names, and asks the privacy kernel for everything that touches data.

It decides nothing about privacy. It gives every refusal the innermost place in the program, keeps the depth of
calls bounded, and turns a refusal inside the standard library into one at the line of the program that called it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from jostle.diagnostics import Diagnostic, Note, Refusal, did_you_mean, refuse
from jostle.privacy.handles import ColumnHandle, Exposures, Handle, Table, handles_in, join_exposures
from jostle.privacy.kernel import Kernel
from jostle.run import declare, operators, selects
from jostle.run.attributes import attribute, index
from jostle.run.scope import MISSING, Scope
from jostle.run.values import (
    REQUIRED,
    Builtin,
    Function,
    Grouped,
    Interval,
    JSet,
    Module,
    Part,
    Record,
    RowForm,
    is_sequence,
    kind_name,
    need_room,
    show,
)  # fmt: skip
from jostle.source import Span
from jostle.syntax import nodes as n

MOST_CALLS = 1000
LIBRARY = "stdlib/"  # sources of the standard library are named by this


class Returned:
    """What a block gives back when a `return` ended it."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class Interpreter:
    """Runs programs in one session."""

    def __init__(
        self,
        kernel: Kernel,
        base: Scope,
        *,
        load_module: Callable[[tuple[str, ...], Span], Module],
        choose: Callable[[Interpreter, n.Choice, Scope], Any],
        out: Callable[[str], None],
        settings: dict[str, Any] | None = None,
    ) -> None:
        self.kernel = kernel
        self.base = base
        self.load_module = load_module
        self.choose = choose
        self.out = out
        self.settings = settings or {}
        self.params: set[str] = set()
        self.released: dict[str, Any] = {}
        self.bound: dict[str, Any] = {}
        self.folders: list[Any] = []
        self.depth = 0
        self.simulate: int | None = None
        self.quiet = 0  # print and release are silent in training
        self.bare_left = 0  # bare selects still to come in the query at hand
        self.given: dict[int, Any] = {}  # aggregates of a select that are already measured, by node
        self._statements: dict[type, Callable[[Any, Scope], Returned | None]] = {
            n.Assign: self._assign, n.Bare: self._bare, n.Return: self._return, n.Use: self._use,
            n.ParamDecl: self._param, n.Release: self._release, n.Assert: self._assert, n.Def: self._def,
            n.If: self._if, n.For: self._for, n.With: self._with, n.Private: self._private, n.External: self._external,
        }  # fmt: skip
        self._expressions: dict[type, Callable[[Any, Scope], Any]] = {
            n.Name: lambda e, s: self._name(e, s), n.Number: lambda e, s: e.value, n.String: lambda e, s: e.value,
            n.Constant: lambda e, s: e.value, n.ListOf: self._list, n.SetOf: self._set, n.RecordOf: self._record,
            n.Comprehension: self._comprehension, n.Range: self._range, n.Unary: self._unary, n.Binary: self._binary,
            n.Logic: self._logic, n.Conditional: self._conditional, n.Over: self._over, n.Lambda: self._lambda,
            n.Part: self._part, n.Choice: self._choice, n.Call: self._call, n.Attribute: self._attribute,
            n.Index: self._index, n.Spending: self._spending, n.Query: self._query, n.Select: self._select,
            n.Described: self._described, n.Star: self._star, n.Distinct: self._star,
        }  # fmt: skip

    # Running -------------------------------------------------------------------------------------

    def block(self, body: Sequence[n.Stmt], scope: Scope) -> Returned | None:
        for statement in body:
            ended = self.statement(statement, scope)
            if ended is not None:
                return ended
        return None

    def statement(self, node: n.Stmt, scope: Scope) -> Returned | None:
        try:
            return self._statements[type(node)](node, scope)
        except Refusal as refusal:
            raise refusal.at(node.span) from None

    def eval(self, node: n.Expr, scope: Scope) -> Any:
        try:
            return self._expressions[type(node)](node, scope)
        except Refusal as refusal:
            raise refusal.at(node.span) from None

    def call(
        self, function: Any, args: Sequence[Any], keywords: dict[str, Any] | None = None, span: Span | None = None
    ) -> Any:
        """Calls any callable value."""
        keywords = keywords or {}
        if isinstance(function, Function):
            return self._call_function(function, args, keywords)
        if isinstance(function, Builtin):
            if not function.sees_handles:
                for handle in handles_in([*args, *keywords.values()]):
                    raise private_value(handle, f"cannot be passed to `{function.name}`")
            extra = {"at": (self, span)} if function.wants_call else {}
            return operators.guarded(
                function.name, function.body, args, {**keywords, **extra}, quote=not function.sees_handles
            )
        if isinstance(function, Part):
            if function.kind == "Utility" and handles_in(list(args)):
                raise private_value(handles_in(list(args))[0], "cannot be valued: a Utility is for public data")
            return self.call(function.run, args, keywords, span)
        called = getattr(function, "jostle_call", None)
        if called is not None:
            return called(self, args, span)
        raise refuse("TypeError", f"{kind_name(function)} cannot be called")

    def _call_function(self, function: Function, args: Sequence[Any], keywords: dict[str, Any]) -> Any:
        names = [name for name, _ in function.params]
        if len(args) > len(names):
            raise refuse("TypeError", f"`{function.name}` takes {_count(len(names))}, and {len(args)} were given")
        local = dict(zip(names, args, strict=False))
        for name, value in keywords.items():
            if name not in names:
                raise refuse("TypeError", f"`{function.name}` has no argument `{name}`", help=did_you_mean(name, names))
            if name in local:
                raise refuse("TypeError", f"`{function.name}` got `{name}` twice")
            local[name] = value
        for name, default in function.params:
            if name not in local:
                if default is REQUIRED:
                    raise refuse("TypeError", f"`{function.name}` needs `{name}`", help=f"it takes {', '.join(names)}")
                local[name] = default
        if self.depth >= MOST_CALLS:
            raise refuse(
                "RecursionLimit", f"more than {MOST_CALLS:,} calls are open", help="does the recursion come to an end?"
            )
        self.depth += 1
        try:
            scope = Scope(function.scope, local)
            if isinstance(function.body, n.Block):
                ended = self.block(function.body.body, scope)
                return ended.value if ended is not None else None
            return self.eval(function.body, scope)
        finally:
            self.depth -= 1

    # Statements ----------------------------------------------------------------------------------

    def _assign(self, node: n.Assign, scope: Scope) -> None:
        value = self.eval(node.value, scope)
        if hasattr(value, "name") and value.name == "" and not isinstance(value, Handle):
            value.name = node.name
        scope.set(node.name, value)

    def _bare(self, node: n.Bare, scope: Scope) -> None:
        self.eval(node.value, scope)

    def _return(self, node: n.Return, scope: Scope) -> Returned:
        return Returned(self.eval(node.value, scope) if node.value is not None else None)

    def _use(self, node: n.Use, scope: Scope) -> None:
        module = self.load_module(node.path, node.span)
        scope.set(node.path[-1], module)
        for name, value in module.names.items():
            if name not in scope.names or isinstance(scope.names[name], Module):
                scope.set(name, value)

    def _param(self, node: n.ParamDecl, scope: Scope) -> None:
        default = self.eval(node.default, scope)
        self.params.add(node.name)
        scope.set(node.name, declare.setting(self.settings.get(node.name), default, node.name))

    def _release(self, node: n.Release, scope: Scope) -> None:
        value = self.eval(node.value, scope) if node.value is not None else scope.get(node.name)
        for handle in handles_in(value):
            raise private_value(handle, "cannot be released")
        if self.quiet:
            return
        shown = _event_value(value)
        self.released[node.name] = value
        self.kernel.events.emit("release", node.name, node.span, value=shown)

    def _assert(self, node: n.Assert, scope: Scope) -> None:
        if not self.truth(self.eval(node.value, scope), node.value):
            said = show(self.eval(node.message, scope)) if node.message is not None else "this does not hold"
            raise refuse("AssertionFailed", said, node.value.span)

    def _def(self, node: n.Def, scope: Scope) -> None:
        scope.set(node.name, Function(node.name, self._params(node.params, scope), node.body, scope))

    def _if(self, node: n.If, scope: Scope) -> Returned | None:
        if self.truth(self.eval(node.test, scope), node.test):
            return self.block(node.then.body, scope)
        return self.block(node.other.body, scope) if node.other is not None else None

    def _for(self, node: n.For, scope: Scope) -> Returned | None:
        for item in self.walk(self.eval(node.source, scope), node.source.span):
            self._bind(node.names, item, scope, node.source.span)
            ended = self.block(node.body.body, scope)
            if ended is not None:
                return ended
        return None

    def _with(self, node: n.With, scope: Scope) -> Returned | None:
        amount = selects.amount_of(self, node.spend.amount, scope, ())
        with self._allotted(amount, node.spend.span, ()):
            return self.block(node.body.body, scope)

    def _private(self, node: n.Private, scope: Scope) -> None:
        if scope.parent is not self.base:
            raise refuse("TypeError", "`private` stands at the top level of a program", node.span)
        scope.set(node.name, declare.private(self, node, scope))

    def _external(self, node: n.External, scope: Scope) -> None:
        from jostle.run.externals import external

        scope.set(node.name, external(node.name))

    # Expressions ---------------------------------------------------------------------------------

    def _name(self, node: n.Name, scope: Scope) -> Any:
        found = scope.find(node.id)
        if found is not MISSING:
            return found
        if node.id in ("epsilon", "rho"):
            return self.kernel.left_of_allotment((), node.id)
        return scope.get(node.id)

    def _list(self, node: n.ListOf, scope: Scope) -> list[Any]:
        return [self.eval(item, scope) for item in node.items]

    def _set(self, node: n.SetOf, scope: Scope) -> Any:
        return JSet([self.eval(item, scope) for item in node.items]) if node.items else Record()

    def _record(self, node: n.RecordOf, scope: Scope) -> Record:
        return Record((name, self.eval(item, scope)) for name, item in node.items)

    def _comprehension(self, node: n.Comprehension, scope: Scope) -> Any:
        out: list[Any] = []
        inner = Scope(scope)
        source = self.eval(node.source, scope)
        if isinstance(source, Interval) and not source.real and node.condition is None and not node.flat:
            need_room(source.count)
        for item in self.walk(source, node.source.span):
            self._bind(node.names, item, inner, node.source.span)
            if node.condition is None or self.truth(self.eval(node.condition, inner), node.condition):
                made = self.eval(node.item, Scope(inner))
                out.extend(made if node.flat else [made])
                need_room(len(out))
        return JSet(out) if node.kind == "set" else out

    def _range(self, node: n.Range, scope: Scope) -> Interval:
        low, high = self.eval(node.low, scope), self.eval(node.high, scope)
        for value in (low, high):
            operators.need_number(value, "a range")
        real = _written_real(node.low) or _written_real(node.high)
        return Interval(float(low), float(high), real or not (float(low).is_integer() and float(high).is_integer()))

    def _unary(self, node: n.Unary, scope: Scope) -> Any:
        value = self.eval(node.operand, scope)
        return not self.truth(value, node.operand) if node.op == "not" else operators.unary(node.op, value)

    def _binary(self, node: n.Binary, scope: Scope) -> Any:
        # A long chain of sums leans to the left: walked by a loop, it needs no depth.
        chain: list[n.Binary] = []
        at: n.Expr = node
        while isinstance(at, n.Binary):
            chain.append(at)
            at = at.left
        value = self.eval(at, scope)
        for link in reversed(chain):
            right = self.eval(link.right, scope)
            for handle in handles_in([value, right]) if link.op not in ("-", "+", "in", "not in") else ():
                raise private_value(handle, "cannot be compared or calculated with").at(link.span)
            try:
                value = operators.binary(link.op, value, right)
            except Refusal as refusal:
                raise refusal.at(link.span) from None
        return value

    def _logic(self, node: n.Logic, scope: Scope) -> bool:
        decided = node.op == "or"
        for operand in node.operands:
            if self.truth(self.eval(operand, scope), operand) == decided:
                return decided
        return not decided

    def _conditional(self, node: n.Conditional, scope: Scope) -> Any:
        return self.eval(node.then if self.truth(self.eval(node.test, scope), node.test) else node.other, scope)

    def _over(self, node: n.Over, scope: Scope) -> Any:
        inner = Scope(scope)
        items, values = [], []
        source = self.eval(node.source, scope)
        if isinstance(source, Interval) and not source.real:
            need_room(source.count)
        for item in self.walk(source, node.source.span):
            inner.set(node.name, item)
            items.append(item)
            need_room(len(items))
            values.append(self.eval(node.body, Scope(inner)))
        for handle in handles_in(values):
            raise private_value(handle, f"cannot be compared by `{node.fold} over`")
        return operators.fold(node.fold, items, values)

    def _lambda(self, node: n.Lambda, scope: Scope) -> Function:
        return Function("this lambda", tuple((p, REQUIRED) for p in node.params), node.body, scope)

    def _part(self, node: n.Part, scope: Scope) -> Part:
        run = Function(node.kind, self._params(node.params, scope), node.body, scope)
        predict = None
        if node.predict is not None and node.predict_params is not None:
            predict = Function("predict", self._params(node.predict_params, scope), node.predict, scope)
        return Part(node.kind, run, predict)

    def _choice(self, node: n.Choice, scope: Scope) -> Any:
        return self.choose(self, node, scope)

    def _call(self, node: n.Call, scope: Scope) -> Any:
        if id(node) in self.given:
            return self.given[id(node)]
        function, args, keywords = self._prepare_call(node, scope)
        return self._finish_call(node, function, args, keywords, scope)

    def _prepare_call(self, node: n.Call, scope: Scope) -> tuple[Any, list[Any], dict[str, Any]]:
        function = self.eval(node.function, scope)
        if isinstance(function, RowForm):
            return function, [], {}
        args = [self.eval(a, scope) for a in node.args]
        keywords: dict[str, Any] = {}
        for keyword in node.keywords:
            if keyword.name in keywords:
                raise refuse("TypeError", f"`{keyword.name}` is given twice", keyword.span)
            keywords[keyword.name] = self.eval(keyword.value, scope)
        return function, args, keywords

    def _finish_call(self, node: n.Call, function: Any, args: list[Any], keywords: dict[str, Any], scope: Scope) -> Any:
        if isinstance(function, RowForm):
            return function.body(self, node, scope)
        try:
            return self.call(function, args, keywords, node.span)
        except Refusal as refusal:
            at = refusal.first.span
            if at is not None and at.source.name.startswith(LIBRARY) and not node.span.source.name.startswith(LIBRARY):
                name = getattr(function, "name", "this call")
                raise Refusal(
                    _moved(refusal.first, node.span, f"in `{name}`, {at}"), *refusal.diagnostics[1:]
                ) from None
            raise

    def _attribute(self, node: n.Attribute, scope: Scope) -> Any:
        return attribute(self.eval(node.value, scope), node.name)

    def _index(self, node: n.Index, scope: Scope) -> Any:
        value = self.eval(node.value, scope)
        if isinstance(value, Handle):
            return selects.rows_of(self, value, node, scope)
        if node.keywords or len(node.args) != 1:
            raise refuse("TypeError", f"{kind_name(value)} takes one index", node.span)
        return index(value, self.eval(node.args[0], scope))

    def _spending(self, node: n.Spending, scope: Scope) -> Any:
        """`f(x) with epsilon e`: callee, arguments and amount are evaluated before the allotment opens."""
        if not isinstance(node.value, n.Call):
            amount = selects.amount_of(self, node.spend.amount, scope, ())
            with self._allotted(amount, node.spend.span, ()):
                return self.eval(node.value, scope)
        call = node.value
        function, args, keywords = self._prepare_call(call, scope)
        met = exposures_of([*args, *keywords.values()])
        amount = selects.amount_of(self, node.spend.amount, scope, met)
        if node.spend.via is not None:
            keywords["via"] = selects.mechanism_of(self, node.spend)
        with self._allotted(amount, node.spend.span, met):
            try:
                return self._finish_call(call, function, args, keywords, scope)
            except Refusal as refusal:
                raise refusal.at(call.span) from None

    def _query(self, node: n.Query, scope: Scope) -> Any:
        outer, self.bare_left = self.bare_left, selects.count_bare(node.body)
        try:
            return self.eval(node.body, scope)
        finally:
            self.bare_left = outer

    def _select(self, node: n.Select, scope: Scope) -> Any:
        return selects.select(self, node, scope)

    def _described(self, node: n.Described, scope: Scope) -> Any:
        return declare.public(self, node.source, node.domains, scope)

    def _star(self, node: n.Expr, scope: Scope) -> Any:
        raise refuse("TypeError", "`*` and `distinct` stand only in the count of a select", node.span)

    # Helpers -------------------------------------------------------------------------------------

    def truth(self, value: Any, node: n.Expr) -> bool:
        if isinstance(value, bool):
            return value
        for handle in handles_in(value):
            raise private_value(handle, "cannot decide a condition").at(node.span)
        raise refuse("TypeError", f"a condition is true or false, and this is {kind_name(value)}", node.span,
                     help="compare it, as in `n > 0`")  # fmt: skip

    def walk(self, value: Any, span: Span) -> Iterable[Any]:
        """The items of a public container."""
        if isinstance(value, Handle) and value.private:
            raise private_value(value, "cannot be walked through row by row").at(span)
        if isinstance(value, dict):
            return list(value)
        if isinstance(value, (JSet, Interval, Grouped)):
            return value
        if is_sequence(value):
            return (
                [float(v) for v in value] if not isinstance(value, (list, tuple)) and value.ndim == 1 else list(value)
            )
        raise refuse("TypeError", f"{kind_name(value)} cannot be walked through", span)

    def _bind(self, names: tuple[str, ...], item: Any, scope: Scope, span: Span) -> None:
        if len(names) == 1:
            scope.set(names[0], item)
            return
        if not is_sequence(item) or len(item) != len(names):
            raise refuse("TypeError", f"{kind_name(item)} does not unpack into {len(names)} names", span)
        for name, value in zip(names, item, strict=True):
            scope.set(name, value)

    def _params(self, params: tuple[n.Param, ...], scope: Scope) -> tuple[tuple[str, Any], ...]:
        return tuple((p.name, self.eval(p.default, scope) if p.default is not None else REQUIRED) for p in params)

    def _allotted(self, amount: Any, span: Span, met: Exposures) -> Any:
        try:
            return selects.Allotted(self.kernel, amount, span, met)
        except Refusal as refusal:
            raise refusal.at(span) from None


def exposures_of(values: Sequence[Any]) -> Exposures:
    """One exposure a source over all private handles in these values."""
    found = handles_in(list(values))
    return join_exposures([h.exposures for h in found], [1] * len(found))


def private_value(handle: Handle, cannot: str) -> Refusal:
    """The refusal of a private value where only a public one may stand; tells where it became private."""
    source = handle.exposures[0].source
    what = {"Table": "rows", "Cube": "counts", "ColumnHandle": "a column", "Score": "a score"}.get(
        type(handle).__name__
    )
    notes = (Note(source.span, f"`{source.name}` is private since here"),) if source.span is not None else ()
    measured = "count(*)" if isinstance(handle, (Table, ColumnHandle)) else "sum(values)"
    return refuse(
        "PrivateValue", f"{what or 'this'} of `{source.name}` {cannot}", notes=notes,
        help=f"measure it: `{{{{ select {measured} from … with epsilon 0.1 }}}}`",
    )  # fmt: skip


def _moved(first: Diagnostic, span: Span, where: str) -> Diagnostic:
    notes = (*first.notes, Note(first.span, where)) if first.span is not None else first.notes
    return Diagnostic(first.kind, first.message, span, first.label, first.help, notes)


def _written_real(node: n.Expr) -> bool:
    while isinstance(node, n.Unary):
        node = node.operand
    return isinstance(node, n.Number) and node.real


def _count(many: int) -> str:
    return "no arguments" if many == 0 else f"{many} argument{'s' if many > 1 else ''}"


def _event_value(value: Any) -> Any:
    from jostle.run.values import plain

    made = plain(value)
    return made[:2000] if isinstance(made, list) else made
