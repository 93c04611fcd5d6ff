"""What the functions of a module take, found from what they do.

A parameter that is passed on as it is, on every way through the function, takes what it is passed on to takes. So the
signatures of the library follow from those of the built-ins, and cannot be wrong while these are right. A parameter
whose name the function gives another value is not followed, nor what stands in a branch or a loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from jostle.check.abstract.kinds import COLUMNS, TAKEN
from jostle.check.abstract.values import Signature
from jostle.check.scopes import bound_in
from jostle.language.builtins import BUILTINS
from jostle.language.facts import Effect, Parameter
from jostle.syntax import nodes as n
from jostle.syntax.walk import children

OF_KERNELS = {"shape": "shape", "workload": "queries", "matrix": "items", "seed": "number", "ridge": "number"}
"""What a kernel of the library takes, by the names that the parameters of all kernels have."""


OF_COLUMNS = {
    "_number_column": "number column", "_number_columns": "number column", "_values": "column of values",
    "_column": "column", "_columns": "column",
}  # fmt: skip
"""What helpers of the library take in their second place: names of columns of the table in the first."""


_PERHAPS = (n.Conditional, n.Logic, n.Lambda, n.Comprehension, n.Over, n.Part, n.Query, n.Select)
"""What may leave a call in it out, or make it of rows."""


def passed_on(function: n.Def, known: Mapping[str, Signature]) -> dict[str, str]:
    """What each parameter of a function takes; `known`: the functions that stand before it."""
    mine = {param.name for param in function.params} - set(bound_in(function.body.body, lambda use: ()))
    takes: dict[str, list[str]] = {}
    for call in _calls(function.body.body):
        if not isinstance(call.function, n.Name) or call.function.id in mine:
            continue
        for arg, param in _given(call, _parameters(call.function.id, known)):
            named = arg.items if isinstance(arg, n.ListOf) and param.takes in COLUMNS else [arg]
            for part in named if param.takes else ():
                if isinstance(part, n.Name) and part.id in mine:
                    takes.setdefault(part.id, []).append(_taken(call, param))
    if function.name in OF_COLUMNS:
        takes[function.params[1].name] = [OF_COLUMNS[function.name]]
    order = [*TAKEN]
    return {name: min(words, key=lambda word: (len(TAKEN[word]), order.index(word))) for name, words in takes.items()}


def _parameters(name: str, known: Mapping[str, Signature]) -> Sequence[Parameter]:
    if name in known:
        return known[name].params
    return BUILTINS[name].parameters if name in BUILTINS else ()


def _taken(call: n.Call, param: Parameter) -> str:
    """With a strategy, noise is on the cells of a cube."""
    row = BUILTINS.get(call.function.id) if isinstance(call.function, n.Name) else None
    by_strategy = row is not None and row.effect is Effect.MEASURES and len(call.args) > 1
    return "cube" if by_strategy and param.takes == "measured" else param.takes


def _given(call: n.Call, params: Sequence[Parameter]) -> Iterator[tuple[n.Expr, Parameter]]:
    yield from zip(call.args, (param for param in params if param.kind == ""), strict=False)
    named = {param.name: param for param in params}
    yield from ((keyword.value, named[keyword.name]) for keyword in call.keywords if keyword.name in named)


def _calls(body: Sequence[n.Stmt]) -> Iterator[n.Call]:
    """The calls that are made on every way through a body."""
    for statement in body:
        if isinstance(statement, n.If):
            return  # it may return
        waiting = [] if isinstance(statement, n.For | n.Run | n.Def) else [*children(statement)]
        while waiting:
            node = waiting.pop()
            if isinstance(node, n.Call):
                yield node
            if isinstance(node, n.Block):
                yield from _calls(node.body)
            elif isinstance(node, n.Comprehension):
                waiting.append(node.source)
            elif not isinstance(node, _PERHAPS):
                waiting += children(node)
        if isinstance(statement, n.Return):
            return
