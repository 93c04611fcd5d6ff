"""`jostle evaluate FILE` and `jostle.evaluate`: how good a program's choices are on data that they were not trained on.

The program runs on made-up rows (as with `run --simulate`), so that its ChoiceMakers and the amounts they are called
with are known; nothing private is opened and nothing is spent. Then each is judged by leaving out one training data set
at a time (`choice.evaluation`): features are paid for, and regret is against the best option with all of epsilon.
"""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from jostle.diagnostics import did_you_mean, refuse
from jostle.source import Source
from jostle.tools.arguments import read_program
from jostle.tools.render import clean
from jostle.tools.turns import beside

if TYPE_CHECKING:
    from jostle.choice.evaluation import ChoiceReport
    from jostle.choice.maker import ChoiceMaker
    from jostle.run.interpreter import Interpreter

MOST = 1e6
DEFAULT = 1.0
"""The epsilon of a choice that the program never calls on private data, where none is named."""


class ChoiceEvaluation(Struct, frozen=True):
    """One ChoiceMaker of a program, at an amount it is called with."""

    name: str
    unit: str
    amount: float
    report: ChoiceReport

    def as_json(self) -> dict[str, Any]:
        return {"choice": self.name, "unit": self.unit, "amount": self.amount, **self.report.as_json()}

    def text(self) -> str:
        return f"{self.name}, {self.unit} {self.amount:g}: {self.report.text()}"


def evaluate(
    program: str | Path | Source,
    /,
    *,
    choice: str | None = None,
    epsilon: float | None = None,
    only: Sequence[str] = (),
    progress: Callable[[str, int, int], None] | None = None,
    bound: Mapping[str, Any] | None = None,
    **params: Any,
) -> list[ChoiceEvaluation]:
    """Every choice of a program (or the one named), judged at each amount it is called with, or at `epsilon`.

    `only`: names of training data sets (their field `name`) that are left out in turn; the others are always trained
    on. `bound`: public stand-ins for `bound("NAME")`; `params`: the program's own. Raises `Refusal`: what the program
    raises, `NameError` for a choice that is not there, `ValueError` with fewer than two training data sets.
    """
    source = program if isinstance(program, Source) else read_program(Path(program))
    return [
        ChoiceEvaluation(name, unit, amount, maker.report(interp, unit, amount, only))
        for name, maker, interp, amounts in choices_of(source, choice, epsilon, progress, bound, params)
        for unit, amount in amounts
    ]


def choices_of(
    source: Source, choice: str | None, epsilon: float | None, progress: Callable[[str, int, int], None] | None,
    bound: Mapping[str, Any] | None, params: Mapping[str, Any],
) -> list[tuple[str, ChoiceMaker, Interpreter, list[tuple[str, float]]]]:  # fmt: skip
    """Runs a program on made-up rows: each choice (or the one named) by its name, what ran it, and its amounts.

    Those are the units and amounts of its calls, each once, or `epsilon`. Raises as `evaluate` does.
    """
    from jostle.choice.maker import ChoiceMaker
    from jostle.tools.session import Session

    session = Session(simulate=1, progress=progress)
    for name, value in (bound or {}).items():
        session.bind(name, value)
    names, calls, interp = session.rehearse(source, params)
    makers = {value.name or name: value for name, value in names.items() if isinstance(value, ChoiceMaker)}
    makers |= {maker.name or "choice": maker for maker, *_ in calls}
    if not makers:
        raise refuse("ValueError", "the program makes no choice", help="one is made by `MkChoiceMaker among …`")
    if choice is not None and choice not in makers:
        hint = did_you_mean(choice, makers) or f"there are: {', '.join(makers)}"
        raise refuse("NameError", f"the program has no choice named `{choice}`", help=hint)
    choices = {name: maker for name, maker in makers.items() if choice in (None, name)}
    return [(name, maker, interp, _amounts(maker, calls, epsilon)) for name, maker in choices.items()]


def _amounts(maker: Any, calls: Sequence[Any], epsilon: float | None) -> list[tuple[str, float]]:
    """The unit and amount of each call of a maker, each once; of one that ships, which knows all amounts, the first."""
    amounts = [(unit, amount) for called, _, (unit, amount), _ in calls if called is maker and amount is not None]
    if epsilon is not None:
        if not 0 < epsilon <= MOST:
            raise refuse("BadAmount", f"an amount is a number above 0, at most {MOST:,.0f}, not {epsilon:g}",
                         help="such as `--epsilon 0.1`")  # fmt: skip
        return [(amounts[0][0] if amounts else "epsilon", epsilon)]
    each = list(dict.fromkeys(amounts)) or [("epsilon", DEFAULT)]
    return each if maker.shipped() is None else each[:1]


def command(options: Namespace) -> int:
    """`jostle evaluate FILE [--choice NAME] [--epsilon e] [--data NAME] [--format json]`."""
    from jostle.tools.progress import progress_on

    with progress_on(sys.stderr) as bar:
        results = evaluate(
            options.file, choice=options.choice, epsilon=options.epsilon, only=options.data, progress=bar,
            bound={name: beside(options.file, path) for name, path in options.bind}, **dict(options.set),
        )  # fmt: skip
    if options.format == "json":
        print(json.dumps({"choices": [one.as_json() for one in results]}, ensure_ascii=False, allow_nan=False))
    else:
        print(clean("\n".join(one.text() for one in results)), end="")
    return 0
