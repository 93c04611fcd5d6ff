"""The execution of statements, one function per form.

`run with epsilon e until budget of DATA or C { … }` repeats a block while a further round is sure to be paid. Each
round has its own allotment. Before anything in a round is read, its whole allotment must fit the enclosing allotment,
the budget of the data and its agents; otherwise the round does not start. So the block stays within the budget whatever
it releases, and however the next amount follows from that. A round that spends nothing counts as if it had spent its
amount, so rounds end, also on public data.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

from jostle.accounting.amounts import Amount, Cost, Path
from jostle.accounting.definitions import gaussian_price, pure_price, used_delta
from jostle.diagnostics import refuse
from jostle.language.builtins import EVERYWHERE
from jostle.privacy.kernel.exposures import Allotment, Exposure, Exposures, Handle
from jostle.privacy.kernel.kernel import check_unit
from jostle.records import replace
from jostle.run import arguments, declare
from jostle.run.arguments import amount_of
from jostle.run.evaluator import Evaluator, Returned
from jostle.run.externals import external
from jostle.run.faults import LIBRARY, PrivateValue, exposures_of, private_value, refuse_private
from jostle.run.margins import MOST_SHOWN, margins
from jostle.run.scope import Scope
from jostle.run.values import Function, Grouped, Module, handles_in, kind_name, plain, show
from jostle.syntax import nodes as n


def run(interp: Evaluator, node: n.Run, scope: Scope) -> Returned | None:
    """Executes rounds, and returns the result of a `return` in one."""
    if interp.joint is not None:
        raise refuse(
            "TypeError", "a `jointly` block measures once, and a run measures in rounds", node.span,
            help="put the `jointly` block into the run, or the run before or after it",
        )  # fmt: skip
    exposures, around = _budgets(interp, node, scope)
    idle = 0  # the number of rounds that spent nothing
    while True:
        amount = amount_of(interp, node.spend.amount, scope, exposures)
        if amount is None or not _affordable(amount, idle, exposures, around):
            return None
        with interp.allotted(amount, node.spend.span, exposures) as allotment:
            ended = interp.block(node.body.body, scope)
        idle += 0 if any(any(meter.spent) for _, meter in allotment.meters.values()) else amount.value
        if ended is not None or (node.done is not None and interp.truth(interp.eval(node.done, scope), node.done)):
            return ended


def _budgets(interp: Evaluator, node: n.Run, scope: Scope) -> tuple[Exposures, Allotment | None]:
    """The limits of a run: the budgets of the data that it names, and the enclosing allotment."""
    data = interp.eval(node.data, scope)
    exposures, around = exposures_of([data]), interp.kernel.allotment
    if not any(isinstance(one, Handle) for one in (data if isinstance(data, list) else [data])):
        raise refuse(
            "TypeError", f"a run spends the budget of data, and this is {kind_name(data)}", node.data.span,
            help="name a table, or a list of tables: `until budget of people`",
        )  # fmt: skip
    if not exposures and (around is None or around.amount is None):
        raise refuse(
            "NoEpsilon", "these data are public, and no allotment says when this run ends", node.data.span,
            help="put it into a `with epsilon … { }` block: a round on public data counts for its whole amount",
        )  # fmt: skip
    return exposures, around


def _affordable(amount: Amount, idle: int, exposures: Exposures, around: Allotment | None) -> bool:
    """Whether a round that may spend an amount is sure to be paid, counting `idle` rounds as spent."""
    whole = replace(amount, value=amount.value + idle)
    for exposure in exposures:
        check_unit(amount, exposure.source)
        for holder in (around, *exposure.agents):
            if holder is not None and holder.amount is not None:
                plain = (whole.value, amount.delta)
                if not holder.meter(exposure.source).admits(exposure.path, plain):
                    return False
        path, cost = _most(whole, exposure)
        if not exposure.source.meter.admits(path, cost):
            return False
    return around is None or around.amount is None or whole.value <= around.amount.value


def _most(amount: Amount, exposure: Exposure) -> tuple[Path, Cost]:
    """The largest cost that measurements within an amount can add to the total of a source, and its path.

    For a budget with a delta it is, in every place, the maximum over pure noise, Gaussian noise and open keys: each
    costs at least as much as several of them that add up to the amount. If a person has rows in several parts, charges
    with a delta are on the whole, and Gaussian noise is in no plain sum.
    """
    measure, path = exposure.source.measure, exposure.path
    if not measure.has_delta:
        return path, (amount.value,) * measure.width
    if measure.kind != "approximate":
        return (() if amount.delta and exposure.in_parts else path), (amount.value, amount.delta)
    rho, plain = pure_price(amount).rho, amount.value
    if amount.delta:
        rho = max(rho, gaussian_price(amount, used_delta(amount, [measure])).rho)
        if path and exposure.in_parts:
            path, plain = (), measure.limit.value + 1
    return path, (rho, amount.delta, plain, amount.delta)


def _assign(interp: Evaluator, node: n.Assign, scope: Scope) -> None:
    value = interp.eval(node.value, scope)
    if hasattr(value, "name") and value.name == "" and not isinstance(value, Handle) and not interp.kernel.in_a_run:
        value.name = node.name
    scope.set(node.name, value)


def _alone(interp: Evaluator, node: n.Bare, scope: Scope) -> None:
    """Shows the answer of a query that is a statement, so that what was paid is not lost; at a prompt also of calls."""
    value = interp.eval(node.value, scope)
    if value is None or interp.quiet or node.span.source.name.startswith(LIBRARY):
        return
    if scope is interp.top or isinstance(node.value, n.Query):
        interp.out(interp.display(value))


def _return(interp: Evaluator, node: n.Return, scope: Scope) -> Returned:
    return Returned(interp.eval(node.value, scope) if node.value is not None else None)


def _use(interp: Evaluator, node: n.Use, scope: Scope) -> None:
    module = interp.load_module(node.path, node.span)
    scope.set(node.path[-1], module)
    built_in = not module.of_library  # names of the library belong to the language
    for name, value in module.names.items():
        if isinstance(scope.names.get(name), Module):
            scope.set(name, value)
        else:
            scope.bring(name, value, node.path[-1], built_in=built_in and name in EVERYWHERE)


def _param(interp: Evaluator, node: n.ParamDecl, scope: Scope) -> None:
    default = interp.eval(node.default, scope)
    value = declare.setting(interp.settings.get(node.name), default, node.name)
    scope.set(node.name, value)
    if isinstance(value, bool | float | int | str) and not interp.quiet:
        interp.kernel.events.emit("param", node.name, node.span, value=plain(value))


def _release(interp: Evaluator, node: n.Release, scope: Scope) -> None:
    value = interp.eval(node.value, scope) if node.value is not None else scope.get(node.name)
    for handle in handles_in(value):
        refusal = private_value(handle, "cannot be released")
        raise refusal.of(node.span, value, node.name) if isinstance(refusal, PrivateValue) else refusal
    if node.value is not None:
        scope.release(node.name, value)
    if interp.quiet:
        return
    public, margin = _event_value(value), margins(value)
    interp.released[node.name] = value
    fields = {} if margin is None else {"margins": margin}
    if isinstance(value, Grouped) and value.keys:
        fields["keys"] = list(value.parts)[: value.keys]
    interp.kernel.events.emit("release", node.name, node.span, value=public, **fields)


def _assert(interp: Evaluator, node: n.Assert, scope: Scope) -> None:
    if not interp.truth(interp.eval(node.value, scope), node.value):
        value = interp.eval(node.message, scope) if node.message is not None else "this does not hold"
        refuse_private(value, "cannot be shown", node.message.span if node.message is not None else None)
        text = show(value)
        raise refuse("AssertionFailed", text, node.value.span)


def _def(interp: Evaluator, node: n.Def, scope: Scope) -> None:
    scope.set(node.name, Function(node.name, interp.params_of(node.params, scope), node.body, scope))


def _if(interp: Evaluator, node: n.If, scope: Scope) -> Returned | None:
    if interp.truth(interp.eval(node.test, scope), node.test):
        return interp.block(node.then.body, scope)
    return interp.block(node.other.body, scope) if node.other is not None else None


def _for(interp: Evaluator, node: n.For, scope: Scope) -> Returned | None:
    for item in interp.counted(interp.walk(interp.eval(node.source, scope), node.source.span), node.span):
        interp.bind(node.names, item, scope, node.source.span)
        ended = interp.block(node.body.body, scope)
        if ended is not None:
            return ended
    return None


def _with(interp: Evaluator, node: n.With, scope: Scope) -> Returned | None:
    if node.jointly:
        from jostle.run.joint import jointly

        return jointly(interp, node, scope)  # type: ignore[no-any-return]
    amount = arguments.amount_of(interp, node.spend.amount, scope, ())
    with interp.allotted(amount, node.spend.span, ()):
        return interp.block(node.body.body, scope)


def _private(interp: Evaluator, node: n.Private, scope: Scope) -> None:
    if scope.parent is not interp.base:
        raise refuse("TypeError", "`private` stands at top level only", node.span, help="move it out of the block")
    scope.set(node.name, declare.private(interp, node, scope))


def _external(interp: Evaluator, node: n.External, scope: Scope) -> None:
    scope.set(node.name, external(node))


def _event_value(value: object) -> object:
    public = plain(list(islice(value, MOST_SHOWN)) if isinstance(value, Grouped) else value)
    return public[:MOST_SHOWN] if isinstance(public, list) else public


STATEMENTS: dict[type, Callable[..., Returned | None]] = {
    n.Assign: _assign, n.Bare: _alone, n.Return: _return, n.Use: _use, n.ParamDecl: _param, n.Release: _release,
    n.Assert: _assert, n.Def: _def, n.If: _if, n.For: _for, n.With: _with, n.Run: run, n.Private: _private,
    n.External: _external,
}  # fmt: skip
