"""`jostle plan FILE`: what to expect of a program at any epsilon, or what a wanted error costs, before it spends any.

The program runs on made-up rows (as with `run --simulate`); nothing private is opened. Noise is public, so the error of
what is measured directly is known as soon as the program says its amounts. Options of a choice are tried on the
program's own training data (`choice.plan`).
"""

from __future__ import annotations

import json
import math
import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.diagnostics import refuse
from jostle.formulas import Noised
from jostle.noise_laws import ADDITIVE, Gaussian, Laplace, Selected
from jostle.run.values import Grouped
from jostle.tools.bound import beside
from jostle.tools.files import read_program
from jostle.tools.render import clean
from jostle.trace.text import UNITS, align, number

if TYPE_CHECKING:
    from jostle.choice.plan import ChoicePlan, Curve
    from jostle.events import Event


_NOTE = (
    "error: of numbers the 95 % half-width, of variables the root mean square",
    "over cells or queries, before cells are made nowhere negative",
)
_NOTES = {
    "rows": "/ rows: of a mean, over the rows that it is of; up to 1.4 times that near the ends of its bounds",
    "ranks": "ranks: of a number that is chosen, how many rows it may be off; `via interval` buys an error in values",
}


@dataclass(frozen=True, slots=True)
class Direct:
    """One released number or vector: `error` at `amount` of `unit`, which goes with amount^-`power`.

    The error of a number is its 95 % half-width; of a workload's answers, the root mean square of their standard
    errors. `of` says what it is in: the number itself where empty; `rows`, that it is to be divided by how many rows
    there are; `ranks`.
    """

    name: str
    line: int | None
    unit: str
    amount: float
    error: float
    power: float
    of: str = ""

    def said(self, error: float) -> str:
        """An error of it, in words."""
        return number(error) + {"": "", "rows": " / rows", "ranks": " ranks"}[self.of]

    def at(self, amount: float) -> float:
        return float(self.error * (self.amount / amount) ** self.power)

    def needed(self, error: float) -> float:
        return float(self.amount * (self.error / error) ** (1 / self.power))


@dataclass(frozen=True, slots=True)
class ErrorPlan:
    """Everything that is known of a program's errors."""

    direct: tuple[Direct, ...]
    choices: tuple[ChoicePlan, ...]
    left_out: tuple[str, ...]


def command(options: Namespace) -> int:
    """`jostle plan FILE [--error E] [--epsilon e] [--pictures FOLDER] [--format json]`."""
    from jostle.tools.progress import progress_on

    for name, value in (("--error", options.error), ("--epsilon", options.epsilon)):
        if value is not None and not (math.isfinite(value) and value > 0):
            raise refuse("ValueError", f"`{name}` takes a positive number")
    with progress_on(sys.stderr) as bar:
        errors = plan(options.file, dict(options.set), dict(options.bind), options.epsilon, bar)
    if options.format == "json":
        print(json.dumps(as_json(errors, options.error, options.epsilon), ensure_ascii=False, allow_nan=False))
    else:
        print(clean(text(errors, options.error, options.epsilon)))
    if options.pictures is not None:
        draw(errors, Path(options.pictures))
    return 0


def plan(
    file: str, settings: dict[str, Any], bound: dict[str, str], epsilon: float | None = None, progress: Any = None
) -> ErrorPlan:
    """The plan of a program; choices are tried around `epsilon`, or around what the program gives them."""
    from jostle.choice.plan import study
    from jostle.tools.session import Session

    session = Session(simulate=1, progress=progress)
    for name, path in bound.items():
        session.bind(name, beside(file, path))
    names, planned, interp = session.rehearse(read_program(file), settings)
    choices: list[ChoicePlan] = []
    left_out: list[str] = []
    visited: set[Any] = set()
    for maker, args, (unit, whole), _ in planned:
        if whole is None or not math.isfinite(whole) or (id(maker), whole) in visited:
            continue
        visited.add((id(maker), whole))
        report = None if progress is None else (lambda done, total: progress("trying options", done, total))
        choice_plan = study(interp, maker, args[0], unit, whole, epsilon or whole, report)
        if choice_plan is None:
            left_out.append(maker.name or "choice")
        else:
            choices.append(choice_plan)
    return ErrorPlan((*_numbers(session.events, file, names), *_vectors(names)), tuple(choices), tuple(left_out))


def _numbers(events: Sequence[Event], file: str, names: dict[str, Any]) -> list[Direct]:
    """Measured numbers of the program's own lines, each line once: as they are, means, and what was selected."""
    measured: dict[tuple[int, str], Direct] = {}
    ranks = dict(_ranks(list(names.values())))
    for event in events:
        fields = event.fields
        if event.kind != "measure" or event.span is None or event.span.source.name != str(file):
            continue
        unit = next((u for u in ("epsilon", "rho") if u in fields), None)
        of = "" if fields.get("direct") else {"avg": "rows"}.get(event.name)
        if unit is not None and fields["mechanism"] == Selected.name and fields["scale"] in ranks:
            error, of = ranks[fields["scale"]], "ranks"
        elif unit is None or of is None or (fields["mechanism"] == Gaussian.name and unit == "epsilon"):
            continue  # a Gaussian's σ is no power of epsilon
        else:
            error = ADDITIVE[fields["mechanism"]](fields["scale"]).half_width()
        amount = fields[unit] * (2 if of == "rows" else 1)  # half of it is for the number of rows
        direct = Direct(event.name, event.span.line, unit, amount, error, 0.5 if unit == "rho" else 1.0, of)
        measured.setdefault((event.span.line, event.name), direct)
    return list(measured.values())


def _ranks(value: Any) -> Iterator[tuple[float, float]]:
    """The scale of the noise of each selected number in a value, and how many ranks that may be off."""
    if isinstance(value, Noised) and isinstance(value.law, Selected):
        yield value.law.scale, value.law.half_width()
    elif isinstance(value, Grouped | dict | list):
        columns = value.columns if isinstance(value, Grouped) else value
        for item in columns.values() if isinstance(columns, dict) else columns:
            yield from _ranks(item)


def _vectors(names: dict[str, Any]) -> list[Direct]:
    """The program's variables that hold noisy cells, or a workload's answers, by a strategy whose error is known."""
    from jostle.kernels.accuracy import root_mean_square
    from jostle.kernels.noisy_array import noise_of
    from jostle.kernels.workloads.boxes import identity

    vectors = []
    for name, value in names.items():
        noise = noise_of(value)
        if noise is None or noise.strategy is None or noise.epsilon <= 0:
            continue
        if not isinstance(noise.law, Laplace):
            continue
        workload = noise.workload if noise.workload is not None else identity(noise.shape)
        error = root_mean_square(noise.strategy, workload, noise.law.deviation)
        vectors.append(Direct(name, None, "epsilon", noise.epsilon, error, 1.0))
    return vectors


# Rendering ----------------------------------------------------------------------------------------


def text(errors: ErrorPlan, error: float | None, epsilon: float | None) -> str:
    """The plan as tables."""
    parts = []
    if errors.direct:
        heads = ["measured", "line", "amount", "error"]
        heads += ([f"at {number(epsilon)}"] if epsilon else []) + ([f"for error {number(error)}"] if error else [])
        rows = [heads]
        for d in errors.direct:
            line = "" if d.line is None else str(d.line)
            extra = ([d.said(d.at(epsilon))] if epsilon else []) + ([_needs(d, error)] if error else [])
            rows.append([d.name, line, _amount(d.unit, d.amount), d.said(d.error), *extra])
        right = [False] + [True] * (len(heads) - 1)
        notes = [note for of, note in _NOTES.items() if any(d.of == of for d in errors.direct)]
        parts.append("\n".join([*align(rows, right), *_NOTE, *notes]))
    parts += [_choice_text(choice, error, epsilon) for choice in errors.choices]
    parts += [
        f"{name}: its utilities are no errors (negative numbers), and are not planned" for name in errors.left_out
    ]
    return "\n\n".join(parts) if parts else "this program measures nothing whose error is known before it runs"


def _needs(direct: Direct, error: float) -> str:
    """What an error takes: an amount, or of a mean so many rows at its amount."""
    if direct.of == "rows":
        return f"{number(math.ceil(direct.error / error))} rows"
    return _amount(direct.unit, direct.needed(error)) if not direct.of else "–"


def _choice_text(choice: ChoicePlan, error: float | None, epsilon: float | None) -> str:
    unit = UNITS[choice.unit]
    title = f"{choice.name}, given {unit} {number(choice.amount)}: typical error on its training data"
    heads = ["option", *(f"{unit} {number(a)}" for a in choice.amounts)]
    heads += [f"for error {number(error)}", "on the hardest"] if error else []
    heads += ["closed form here"] if any(c.exact for c in choice.curves) else []
    rows = [heads]
    middle = choice.amounts[len(choice.amounts) // 2]
    for curve in choice.curves:
        row = [curve.name, *(number(e) for e in curve.typical())]
        if error:
            row += [_needed(choice, curve.typical(), error), _needed(choice, [max(e) for e in curve.errors], error)]
        if heads[-1] == "closed form here":
            row.append(f"{number(_exact_at(choice, curve, middle))}" if curve.exact else "–")
        rows.append(row)
    notes = [f"the choice: its policy is {choice.policy}, with the features it pays for"]
    if heads[-1] == "closed form here":
        notes.append(f"closed form here: root mean square error at {unit} {number(middle)} on this program's own "
                     "queries,\nwhatever the data, before cells are made nowhere negative")  # fmt: skip
    return "\n".join([title, *align(rows, [False] + [True] * (len(heads) - 1)), *notes])


def _exact_at(choice: ChoicePlan, curve: Curve, amount: float) -> float:
    return (curve.exact or ())[choice.amounts.index(amount)]


def _needed(choice: ChoicePlan, errors: Sequence[float], target: float) -> str:
    amount = choice.needed(errors, target)
    if amount == 0:
        return f"< {number(choice.amounts[0])}"
    return f"> {number(choice.amounts[-1])}" if math.isinf(amount) else number(amount, 3)


def _amount(unit: str, value: float) -> str:
    return f"{UNITS[unit]} {number(value, 3)}"


def as_json(errors: ErrorPlan, error: float | None, epsilon: float | None) -> dict[str, Any]:
    """Returns the plan as plain data. `needs` is null outside the amounts tried (`beyond` says on which side)."""
    direct = [
        {"name": d.name, "line": d.line, "unit": d.unit, "amount": d.amount, "error": d.error}
        | ({"of": d.of} if d.of else {}) | ({"error_at": d.at(epsilon)} if epsilon else {})
        | ({"needs": d.needed(error)} if error and not d.of else {})
        | ({"needs_rows": math.ceil(d.error / error)} if error and d.of == "rows" else {})
        for d in errors.direct
    ]  # fmt: skip
    choices = []
    for choice in errors.choices:
        options = []
        for curve in choice.curves:
            one: dict[str, Any] = {
                "name": curve.name, "errors": curve.typical(), "least": [min(e) for e in curve.errors],
                "most": [max(e) for e in curve.errors], "exact": list(curve.exact) if curve.exact else None,
            }  # fmt: skip
            if epsilon:
                one["error_at"] = choice.error(curve, epsilon)
            if error:
                amount = choice.needed(curve.typical(), error)
                one["needs"] = amount if 0 < amount < math.inf else None
                one["beyond"] = "below" if amount == 0 else "above" if math.isinf(amount) else None
            options.append(one)
        choices.append({"name": choice.name, "unit": choice.unit, "asked": choice.amount,
                        "amounts": list(choice.amounts), "policy": choice.policy, "options": options})  # fmt: skip
    return {"measured": direct, "choices": choices, "left_out": list(errors.left_out)}


def draw(errors: ErrorPlan, folder: Path) -> None:
    """One picture a choice: error against the amount, a line for each option, the choice's with its range."""
    from jostle.trace.pictures import Picture, file_names

    images = []
    for choice in errors.choices:
        last = choice.curves[-1]
        fields = {
            "shape": "line", "x": list(choice.amounts), "series": {c.name: c.typical() for c in choice.curves},
            "x_label": choice.unit, "y_label": "error", "log_x": True, "log_y": True,
            "low": {last.name: [min(e) for e in last.errors]}, "high": {last.name: [max(e) for e in last.errors]},
        }  # fmt: skip
        images.append(Picture(f"plan of {choice.name}", fields))
    for picture, name in zip(images, file_names(images), strict=True):
        picture.save(folder / name)
