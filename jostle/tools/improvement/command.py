"""`jostle improve FILE` and `jostle.improve`: better formulas for how good a program's Options are.

The program runs on made-up rows, as for `jostle evaluate`; nothing private is opened and nothing is spent. From the
runs that each choice was trained on, `choice.synthesis` finds formulas; those that cross-validation prefers to what
values the Options now are shown as text of the language, and put into the program where that is asked for.
"""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from jostle.choice.synthesis import LARGEST, USUAL
from jostle.diagnostics import refuse
from jostle.source import Source
from jostle.syntax.nodes import FEATURES
from jostle.tools.bound import beside
from jostle.tools.evaluation import choices_of
from jostle.tools.files import read_program
from jostle.tools.render import clean

if TYPE_CHECKING:
    from jostle.choice.synthesis.improvement import Improvement
    from jostle.tools.improvement.rewriting import Edit


class ChoiceImprovement(Struct, frozen=True):
    """One choice of a program, at the amount it is called with: what was found, and the new text of its Options.

    `texts`: each Option that gets a new `predict`, by name. `absent`: those of them that the program does not hold, of
    which the text is the `predict` alone.
    """

    name: str
    unit: str
    amount: float
    found: Improvement
    texts: Mapping[str, str]
    absent: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        from jostle.tools.improvement.report import as_json

        return {"choice": self.name, "unit": self.unit, "amount": self.amount, **as_json(self.found),
                "texts": dict(self.texts)}  # fmt: skip

    def text(self) -> str:
        from jostle.tools.improvement.report import text

        lines = [f"{self.name}, {self.unit} {self.amount:g}: {text(self.found)}"]
        lines += [f"{text}\n" for text in self.texts.values()]
        return "\n".join(lines)


class ProgramImprovement(Struct, frozen=True):
    """All choices of a program, and its whole text with the new formulas; the old text where there are none."""

    choices: tuple[ChoiceImprovement, ...]
    program: str

    def text(self) -> str:
        return "\n".join(one.text() for one in self.choices)


def improve(
    program: str | Path | Source,
    /,
    *,
    choice: str | None = None,
    epsilon: float | None = None,
    most: int = USUAL,
    progress: Callable[[str, int, int], None] | None = None,
    bound: Mapping[str, Any] | None = None,
    **params: Any,
) -> ProgramImprovement:
    """Formulas for every choice of a program (or the one named), at the first amount it is called with, or `epsilon`.

    `most`: the largest complexity of a formula, from 1 to 30. `bound`: public stand-ins for `bound("NAME")`; `params`:
    the program's own. Raises `Refusal`: what the program raises, `NameError` for a choice that is not there, and
    `ValueError` for one that ships trained, looks at no feature, or has fewer than two training data sets.
    """
    if not 1 <= most <= LARGEST:
        raise refuse("ValueError", f"the complexity of a formula is a number from 1 to {LARGEST}, not {most}")
    source = program if isinstance(program, Source) else read_program(Path(program))
    found: list[ChoiceImprovement] = []
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
        found.append(one)
        edits = changes | edits
    if not found:
        help = "one is made by `MkChoiceMaker among …`"
        raise refuse("ValueError", "the program makes no choice of its own", help=help)
    from jostle.tools.improvement.rewriting import edited

    return ProgramImprovement(tuple(found), edited(source.text, edits))


def _improved(
    source: Source, name: str, maker: Any, interp: Any, unit: str, amount: float, most: int,
    progress: Callable[[str, int, int], None] | None,
) -> tuple[ChoiceImprovement, dict[int, Edit]]:  # fmt: skip
    """What was found for one choice, and the edits that write it, by their place."""
    from jostle.choice.synthesis.improvement import improve as improved
    from jostle.choice.synthesis.texts import block
    from jostle.syntax.parser import parse
    from jostle.tools.improvement.rewriting import edit, shown, written

    table, predicts = maker.training(interp, unit, amount)
    tell = None if progress is None else lambda done, total: progress(f"improving {name}", done, total)
    found = improved(table, maker.model, predicts, tell, most)
    program, texts, absent = parse(source), dict[str, str](), list[str]()
    edits: dict[int, Edit] = {}
    for option, one in zip(maker.options, found.options, strict=True):
        if not one.kept:
            continue
        formula, part = one.proposed.formula, written(program, source, option)
        _refuse_own_functions(option, interp)
        if part is None:
            absent.append(one.option)
            texts[one.option] = f"# {one.option}\npredict (F) {block(formula, found.logarithmic)}"
        else:
            change = edit(part, formula, found.logarithmic)
            edits[change.start], texts[one.option] = change, shown(part, change)
    return ChoiceImprovement(name, unit, amount, found, texts, tuple(absent)), edits


def _refuse_own_functions(option: Any, interp: Any) -> None:
    """Refuses where the text of a formula would mean something else than the formula."""
    from jostle.choice.synthesis.texts import FUNCTIONS

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


def command(options: Namespace) -> int:
    """`jostle improve FILE [--choice NAME] [--epsilon e] [--most N] [--write] [--format json]`."""
    from jostle.tools.fmt import rewrite
    from jostle.tools.progress import progress_on

    with progress_on(sys.stderr) as bar:
        found = improve(
            options.file, choice=options.choice, epsilon=options.epsilon, most=options.most, progress=bar,
            bound={name: beside(options.file, path) for name, path in options.bind}, **dict(options.set),
        )  # fmt: skip
    many = sum(len(one.texts) for one in found.choices)
    if options.write and many:
        _refuse_absent(found.choices)
        rewrite(Path(options.file), found.program)
    if options.format == "json":
        told = {"choices": [one.as_json() for one in found.choices], "written": bool(options.write and many)}
        print(json.dumps(told, ensure_ascii=False, allow_nan=False))
        return 0
    said = f"{options.file}: {many} `predict` written\n" if options.write and many else ""
    print(clean(found.text() + "\n" + said), end="")
    return 0
