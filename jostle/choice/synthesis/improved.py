"""`improved(choice, epsilon = 0.1)`: a choice whose Options are valued by formulas from its training runs."""

from __future__ import annotations

from typing import Any

from jostle.choice.maker import ChoiceMaker
from jostle.diagnostics import refuse
from jostle.run.evaluator import Evaluator
from jostle.run.registry import builtin
from jostle.run.scope import Scope
from jostle.run.values import Function, Part, is_number, kind_name
from jostle.source import Source
from jostle.syntax import nodes as n
from jostle.syntax.parser import parse


@builtin
def _improved(choice: Any, *, epsilon: Any = None, at: Any) -> ChoiceMaker:
    """The choice itself where its Options are valued well as they are. All is from public training data, and free."""
    interp, _ = at
    if not isinstance(choice, ChoiceMaker):
        raise refuse("TypeError", f"`improved` takes a ChoiceMaker, not {kind_name(choice)}")
    if choice.way != n.FEATURES:
        raise refuse("ValueError", f"a choice by {choice.way} predicts nothing by features")
    if not is_number(epsilon) or not 0 < epsilon <= 1e6:
        raise refuse("BadAmount", "an amount is a positive number", help="such as `improved(choice, epsilon = 0.1)`")
    from jostle.choice.synthesis.improvement import block, improve

    table, predicts = choice.training(interp, "epsilon", float(epsilon))
    improvement = improve(table, choice.model, predicts)
    options: list[Any] = []
    for option, one in zip(choice.options, improvement.options, strict=True):
        run = option.run if isinstance(option, Part) else option
        text = block(one.proposed.formula, improvement.logarithmic)
        options.append(Part("Option", run, _predict(interp, text), one.option) if one.better else option)
    return choice.valued_by(interp, options) if not improvement.stays else choice


def _predict(interp: Evaluator, text: str) -> Function:
    """The `predict` of a block, which knows the built-in functions and nothing of the program."""
    (statement,) = parse(Source("a formula", f"made = Option (data) {{ return data }}\npredict (F) {text}\n")).body
    if not isinstance(statement, n.Assign):
        raise TypeError("the text of a formula is one assignment")
    function: Function = interp.eval(statement.value, Scope(interp.base)).predict
    return function
