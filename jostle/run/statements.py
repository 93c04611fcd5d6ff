"""Statements, one function a form: what each does to the names in scope and to the session."""

from __future__ import annotations

from collections.abc import Callable

from jostle.diagnostics import refuse
from jostle.language.builtins import EVERYWHERE
from jostle.privacy.kernel.exposures import Handle
from jostle.run import arguments, declare
from jostle.run.evaluator import Evaluator, Returned
from jostle.run.faults import PrivateValue, private_value
from jostle.run.margins import margins
from jostle.run.rounds import run
from jostle.run.scope import Scope
from jostle.run.values import Function, Grouped, Module, handles_in, plain, show
from jostle.syntax import nodes as n


def _assign(interp: Evaluator, node: n.Assign, scope: Scope) -> None:
    value = interp.eval(node.value, scope)
    if hasattr(value, "name") and value.name == "" and not isinstance(value, Handle) and not interp.kernel.in_a_run:
        value.name = node.name
    scope.set(node.name, value)


def _bare(interp: Evaluator, node: n.Bare, scope: Scope) -> None:
    interp.eval(node.value, scope)


def _return(interp: Evaluator, node: n.Return, scope: Scope) -> Returned:
    return Returned(interp.eval(node.value, scope) if node.value is not None else None)


def _use(interp: Evaluator, node: n.Use, scope: Scope) -> None:
    module = interp.load_module(node.path, node.span)
    scope.set(node.path[-1], module)
    built_in = not module.of_library  # the library's own names are the language's, and may stand for others of its
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
        for handle in handles_in(value):
            raise private_value(handle, "cannot be shown").at(node.message.span if node.message is not None else None)
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
        raise refuse("TypeError", "`private` stands at the top level of a program", node.span)
    scope.set(node.name, declare.private(interp, node, scope))


def _external(interp: Evaluator, node: n.External, scope: Scope) -> None:
    from jostle.run.externals import external

    scope.set(node.name, external(node))


def _event_value(value: object) -> object:
    public = plain(value)
    return public[:2000] if isinstance(public, list) else public


STATEMENTS: dict[type, Callable[..., Returned | None]] = {
    n.Assign: _assign, n.Bare: _bare, n.Return: _return, n.Use: _use, n.ParamDecl: _param, n.Release: _release,
    n.Assert: _assert, n.Def: _def, n.If: _if, n.For: _for, n.With: _with, n.Run: run, n.Private: _private,
    n.External: _external,
}  # fmt: skip
