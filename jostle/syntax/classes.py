"""An Option as a class: `class DAWA(Option):` with a method `answer` and, if it values itself, `predict`.

It means `DAWA = Option (data) { … } predict (F) { … }`. A parameter of `answer` that does not stand alone is a field of
the data by its name; `db` is the field `database`.
"""

from __future__ import annotations

from jostle.diagnostics import refuse
from jostle.source import Span
from jostle.syntax import nodes as n

_METHODS = {"answer": "runs", "predict": "values the Option from its features"}
_FIELDS = {"db": "database"}
_DATA = "data"


def option_of_class(name: str, kind: str, body: n.Block, span: Span) -> n.Assign:
    """The assignment that the class stands for."""
    if kind != "Option":
        help = f"write `{name} = {kind} (data) {{ … }}`"
        raise refuse("SyntaxError", f"only an Option is written as a class, not a {kind}", span, help=help)
    methods: dict[str, n.Def] = {}
    for statement in body.body:
        if not isinstance(statement, n.Def) or statement.name not in _METHODS:
            help = "write `def answer(db, queries): …`, and `def predict(F): …` where it values itself"
            raise refuse("SyntaxError", "a class of an Option has the methods `answer` and `predict`",
                         statement.span, help=help)  # fmt: skip
        if statement.name in methods:
            message = f"the method `{statement.name}` is written twice"
            raise refuse("SyntaxError", message, statement.span, help="keep one of them")
        methods[statement.name] = statement
    answer, predict = methods.get("answer"), methods.get("predict")
    if answer is None:
        raise refuse("SyntaxError", f"`{name}` has no method `answer`", span, help="add `def answer(db, queries): …`")
    params, steps = _parameters(answer)
    block = n.Block((*steps, *answer.body.body), span=answer.body.span)
    part = n.Part(
        kind, params, block, predict.params if predict else None, predict.body if predict else None, span=span
    )
    return n.Assign(name, part, span=span)


def _parameters(answer: n.Def) -> tuple[tuple[n.Param, ...], tuple[n.Assign, ...]]:
    """The Option's one parameter, and the statements that give fields of the data the names of the method's."""
    if len(answer.params) == 1 and answer.params[0].name not in _FIELDS:
        return answer.params, ()
    at = answer.span
    steps = []
    for param in answer.params:
        if param.name == _DATA:
            help = "call it after a field of the data, such as `queries`"
            raise refuse("SyntaxError", f"`{_DATA}` stands alone, or not at all", param.span, help=help)
        data = n.Name(_DATA, span=param.span)
        field = n.Attribute(data, _FIELDS.get(param.name, param.name), span=param.span)
        steps.append(n.Assign(param.name, field, span=param.span))
    return (n.Param(_DATA, None, span=at),), tuple(steps)
