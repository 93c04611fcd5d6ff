"""`jostle evaluate FILE` and `jostle improve FILE`: how good a program's choices are, and better formulas for its
Options.

The program runs on simulated rows (as with `run --simulate`), so that its ChoiceMakers and the amounts they are called
with are known; nothing private is opened and nothing is spent. Each choice is judged by leaving out one training data
set at a time (`choice.evaluation`). From the runs that each was trained on, `choice.improvement` finds formulas; those
that cross-validation prefers are shown as text of the language, and put into the program where that is asked for.
"""

from __future__ import annotations

import json
import math
import sys
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from jostle.choice import LARGEST, USUAL
from jostle.choice.formula_fits import Formula
from jostle.choice.improvement import FUNCTIONS, Improvement, OptionImprovement, Regrets, block
from jostle.choice.improvement import improve as improved
from jostle.choice.maker import ChoiceMaker
from jostle.diagnostics import did_you_mean, refuse
from jostle.run.values import Function, Part
from jostle.source import Source, Span
from jostle.syntax import nodes as n
from jostle.syntax.nodes import FEATURES
from jostle.syntax.parser import parse
from jostle.syntax.walk import every
from jostle.tools.arguments import read_program
from jostle.tools.render import progress_on
from jostle.tools.turns import beside, of_its_arguments
from jostle.trace.text import clean

if TYPE_CHECKING:
    from jostle.choice.evaluation import ChoiceReport
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

    def as_json(self) -> dict[str, object]:
        return {"choice": self.name, "unit": self.unit, "amount": self.amount, **self.report.as_json()}

    def text(self) -> str:
        return f"{self.name}, {self.unit} {self.amount:g}: {self.report.text()}"


@of_its_arguments
def evaluate(
    program: str | Path | Source,
    /,
    *,
    choice: str | None = None,
    epsilon: float | None = None,
    only: Sequence[str] = (),
    progress: Callable[[str, int, int], None] | None = None,
    bound: Mapping[str, object] | None = None,
    **params: object,
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
    bound: Mapping[str, object] | None, params: Mapping[str, object],
) -> list[tuple[str, ChoiceMaker, Interpreter, list[tuple[str, float]]]]:  # fmt: skip
    """Runs a program on simulated rows: each choice (or the one named) by its name, what ran it, and its amounts.

    Those are the units and amounts of its calls, each once, or `epsilon`. Raises as `evaluate` does.
    """
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


def _amounts(maker: ChoiceMaker, calls: Sequence[Any], epsilon: float | None) -> list[tuple[str, float]]:
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


_ELSEWHERE = -1.0
"""Less explained variance than this says that values are on another scale than utilities, and nothing else."""

_REGRETS = {"before": "before", "after": "after", "model": "the model for all", "single": "the single best option"}


def improvement_text(improvement: Improvement) -> str:
    """A block of lines for each option, then the regrets."""
    label = "log error" if improvement.logarithmic else "utility"
    lines = [f"{improvement.databases} data sets left out in turn, {improvement.policy}"]
    for one in improvement.options:
        lines += ["", _head(one), *_table(one, label), f"  {_verdict(one, not improvement.stays)}"]
    lines += ["", *_regrets(improvement.regrets)]
    if improvement.stays:
        lines.append(f"nothing changes: {improvement.stays}")
    return "\n".join(lines) + "\n"


def improvement_json(result: Improvement) -> dict[str, object]:
    """The same as plain data; regrets of errors as error ÷ least error."""
    return {
        "policy": result.policy, "databases": result.databases, "log_error": result.logarithmic, "stays": result.stays,
        "options": [
            {
                "option": one.option, "before": one.before, "explained": one.explained, "shape": one.shape,
                "model": one.model,
                "formulas": [
                    {"complexity": j.formula.complexity, "formula": j.formula.text(), "explained": j.explained,
                     "error": j.error}
                    for j in one.formulas
                ],
                "proposed": one.proposed.formula.text(), "gain": one.gain, "gain_error": one.error, "kept": one.better,
            }
            for one in result.options
        ],
        "regret": {name: _readable(getattr(result.regrets, name), result.regrets) for name in _REGRETS}
        | {"gain": result.regrets.gain, "gain_error": result.regrets.error},
    }  # fmt: skip


def _head(one: OptionImprovement) -> str:
    if one.before != "predict":
        return f"{one.option}: `{one.before}` explains {one.model:.2f} of the variance"
    own = f"explains {one.explained:.2f} of the variance" if one.explained > _ELSEWHERE else "is on another scale"
    return f"{one.option}: `predict` {own}, {one.shape:.2f} on its best line; the model explains {one.model:.2f}"


def _table(one: OptionImprovement, label: str) -> list[str]:
    rows = [("complexity", "explained", "±", label)]
    for judged in one.formulas:
        mark = "* " if judged is one.proposed else ""
        rows.append((f"{mark}{judged.formula.complexity}", f"{judged.explained:.2f}", f"{judged.error:.2f}",
                     judged.formula.text()))  # fmt: skip
    widths = [max(len(row[k]) for row in rows) for k in range(3)]
    return ["  " + "  ".join([*(c.rjust(w) for c, w in zip(row, widths, strict=False)), row[3]]) for row in rows]


def _verdict(one: OptionImprovement, own: bool) -> str:
    """What becomes of the option; `own`: whether each option goes by its own explained variance."""
    gain = f"* explains {one.gain:.2f} ± {one.error:.2f} more than `{one.before}`"
    if one.better:
        return f"{gain}, and takes its place" if one.explained > _ELSEWHERE else "* takes the place of `predict`"
    if one.gain < 0:
        return f"`{one.before}` stays: * explains less"
    return f"`{one.before}` stays: {gain}" + (", which is within chance" if own else "")


def _regrets(regrets: Regrets) -> list[str]:
    what = "error ÷ least error" if regrets.relative else "best − utility"
    values = ", ".join(f"{_readable(getattr(regrets, key), regrets):.3f} {name}" for key, name in _REGRETS.items())
    sure = f"± {regrets.error:.3f}" + (" of its logarithm" if regrets.relative else "")
    return [f"regret ({what}): {values}", f"  before − after: {regrets.gain:.3f} {sure}, paired over data sets"]


def _readable(regret: float, regrets: Regrets) -> float:
    return math.exp(regret) if regrets.relative else regret


class Edit(Struct, frozen=True):
    """`text` for what stands from `start` to `end`, as places in the source's text."""

    start: int
    end: int
    text: str


def option_part(program: n.Program, source: Source, option: object) -> n.Part | None:
    """The expression of the program that made this Option; None where it was made elsewhere, as in a module."""
    run = option.run if isinstance(option, Part) else option
    if not isinstance(run, Function) or run.body.span is None or run.body.span.source != source:
        return None
    parts = (node for node in every(program) if isinstance(node, n.Part) and node.kind == "Option")
    return next((part for part in parts if part.body.span == run.body.span), None)


def edit(part: n.Part, formula: Formula, logarithmic: bool) -> Edit:
    """The edit that gives an Option this formula for its `predict`, in the place of one that it has."""
    old, body = part.predict, part.body
    if old is not None:
        parameter = part.predict_params[0].name if part.predict_params else "F"
        start, end = _place(old.span, False), _place(old.span, True)
        space = "" if part.span.source.text[start - 1] == " " else " "
        return Edit(start, end, space + block(formula, logarithmic, parameter, _indent(old.span)))
    parameter = next(name for name in ("F", "features") if name not in formula.features)
    indent, place = _indent(body.span), _place(body.span, True)
    word = "def predict" if part.span.text.startswith("class ") else "predict"
    return Edit(place, place, f"\n{indent}{word} ({parameter}) {block(formula, logarithmic, parameter, indent)}")


def edited(text: str, edits: Mapping[int, Edit]) -> str:
    """The text after all edits, none of which overlap."""
    for one in sorted(edits.values(), key=lambda e: e.start, reverse=True):
        text = text[: one.start] + one.text + text[one.end :]
    return text


def part_text(part: n.Part, change: Edit) -> str:
    """The Option's new text, from the beginning of its line."""
    text, start, end = part.span.source.text, _place(part.span, False), _place(part.span, True)
    return text[text.rfind("\n", 0, start) + 1 : change.start] + change.text + text[change.end : end]


def _indent(span: Span) -> str:
    """The indentation of the line on which something begins."""
    line = span.source.line(span.line)
    return line[: len(line) - len(line.lstrip())]


def _place(span: Span, end: bool) -> int:
    """The place in the source's text at which a span begins or ends."""
    line, column = (span.end_line, span.end_column) if end else (span.line, span.column)
    lines = span.source.text.split("\n")
    return sum(len(one) + 1 for one in lines[: line - 1]) + column - 1


class ChoiceImprovement(Struct, frozen=True):
    """One choice of a program, at the amount it is called with: what was found, and the new text of its Options.

    `texts`: each Option that gets a new `predict`, by name. `absent`: those of them that the program does not hold, of
    which the text is the `predict` alone.
    """

    name: str
    unit: str
    amount: float
    improvement: Improvement
    texts: Mapping[str, str]
    absent: tuple[str, ...]

    def as_json(self) -> dict[str, object]:
        return {"choice": self.name, "unit": self.unit, "amount": self.amount, **improvement_json(self.improvement),
                "texts": dict(self.texts)}  # fmt: skip

    def text(self) -> str:
        lines = [f"{self.name}, {self.unit} {self.amount:g}: {improvement_text(self.improvement)}"]
        lines += [f"{text}\n" for text in self.texts.values()]
        return "\n".join(lines)


class ProgramImprovement(Struct, frozen=True):
    """All choices of a program, and its whole text with the new formulas; the old text where there are none."""

    choices: tuple[ChoiceImprovement, ...]
    program: str

    def text(self) -> str:
        return "\n".join(one.text() for one in self.choices)


@of_its_arguments
def improve(
    program: str | Path | Source,
    /,
    *,
    choice: str | None = None,
    epsilon: float | None = None,
    most: int = USUAL,
    progress: Callable[[str, int, int], None] | None = None,
    bound: Mapping[str, object] | None = None,
    **params: object,
) -> ProgramImprovement:
    """Formulas for every choice of a program (or the one named), at the first amount it is called with, or `epsilon`.

    `most`: the largest complexity of a formula, from 1 to 30. `bound`: public stand-ins for `bound("NAME")`; `params`:
    the program's own. Raises `Refusal`: what the program raises, `NameError` for a choice that is not there; and
    `ValueError` for one that ships trained, looks at no feature, or has fewer than two training data sets.
    """
    if not 1 <= most <= LARGEST:
        raise refuse("ValueError", f"the complexity of a formula is a number from 1 to {LARGEST}, not {most}")
    source = program if isinstance(program, Source) else read_program(Path(program))
    results: list[ChoiceImprovement] = []
    edits: dict[int, Edit] = {}
    for name, maker, interp, amounts in choices_of(source, choice, epsilon, progress, bound, params):
        shipped = maker.shipped() is not None
        if shipped or maker.way != FEATURES:
            if choice is None:
                continue
            why = "ships trained, and its Options are not the program's" if shipped else f"is by {maker.way}"
            raise refuse("ValueError", f"`{name}` {why}: it predicts nothing by features of this program")
        unit, amount = amounts[0]
        one, changes = _improved(source, name, maker, interp, unit, amount, most, progress)
        results.append(one)
        edits = changes | edits
    if not results:
        help = "one is made by `MkChoiceMaker among …`"
        raise refuse("ValueError", "the program makes no choice of its own", help=help)

    return ProgramImprovement(tuple(results), edited(source.text, edits))


def _improved(
    source: Source, name: str, maker: Any, interp: Any, unit: str, amount: float, most: int,
    progress: Callable[[str, int, int], None] | None,
) -> tuple[ChoiceImprovement, dict[int, Edit]]:  # fmt: skip
    """What was found for one choice, and the edits that write it, by their place."""
    table, predicts = maker.table(interp, unit, amount), maker.bench(interp, unit).predicts
    tell = None if progress is None else lambda done, total: progress(f"improving {name}", done, total)
    improvement = improved(table, maker.model, predicts, tell, most)
    program, texts, absent = parse(source), dict[str, str](), list[str]()
    edits: dict[int, Edit] = {}
    for option, one in zip(maker.parts.options, improvement.options, strict=True):
        if not one.better:
            continue
        formula, part = one.proposed.formula, option_part(program, source, option)
        _refuse_own_functions(option, interp)
        if part is None:
            absent.append(one.option)
            texts[one.option] = f"# {one.option}\npredict (F) {block(formula, improvement.logarithmic)}"
        else:
            change = edit(part, formula, improvement.logarithmic)
            edits[change.start], texts[one.option] = change, part_text(part, change)
    return ChoiceImprovement(name, unit, amount, improvement, texts, tuple(absent)), edits


def _refuse_own_functions(option: Part, interp: Interpreter) -> None:
    """Refuses where the text of a formula would mean something else than the formula."""
    scope = getattr(getattr(option, "run", option), "scope", interp.base)
    own = [name for name in FUNCTIONS if scope.find(name) is not interp.base.find(name)]
    if own:
        raise refuse("NameError", f"the program has a `{own[0]}` of its own, and formulas call the built-in one",
                     help="give it another name")  # fmt: skip


def _refuse_absent(choices: tuple[ChoiceImprovement, ...]) -> None:
    absent = [f"`{option}`" for one in choices for option in one.absent]
    if absent:
        raise refuse("ValueError", f"{' and '.join(absent)} cannot be written: not an Option of this file",
                     help="without `--write` the formulas are shown, to be put where the Option is made")  # fmt: skip


def improve_command(options: Namespace) -> int:
    """`jostle improve FILE [--choice NAME] [--epsilon e] [--most N] [--write] [--format json]`."""
    from jostle.tools.export import rewrite

    with progress_on(sys.stderr) as bar:
        result = improve(
            options.file, choice=options.choice, epsilon=options.epsilon, most=options.most, progress=bar,
            bound={name: beside(options.file, path) for name, path in options.bind}, **dict(options.set),
        )  # fmt: skip
    many = sum(len(one.texts) for one in result.choices)
    if options.write and many:
        _refuse_absent(result.choices)
        rewrite(Path(options.file), result.program)
    if options.format == "json":
        document = {"choices": [one.as_json() for one in result.choices], "written": bool(options.write and many)}
        print(json.dumps(document, ensure_ascii=False, allow_nan=False))
        return 0
    note = f"{options.file}: {many} `predict` written\n" if options.write and many else ""
    print(clean(result.text() + "\n" + note), end="")
    return 0
