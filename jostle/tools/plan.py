"""`jostle plan FILE`: what to expect of a program at any epsilon, or what a wanted error costs, before it spends any.

The program runs on simulated rows (as with `run --simulate`); nothing private is opened. What is known of numbers is in
`expected_errors`; options of a choice are tried on the program's own training data (`choice.plan`).
"""

from __future__ import annotations

import json
import math
import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from jostle.accounting.amounts import as_text
from jostle.check.costs import Charge, Cost, near_text
from jostle.check.costs.ledger import looks_text
from jostle.diagnostics import refuse
from jostle.events import Event
from jostle.formulas import NOISE_ONLY, cut_text, cuts_of
from jostle.records import as_dict, replace
from jostle.tools.arguments import read_program
from jostle.tools.expected_errors import (
    Calculated,
    Direct,
    Ranged,
    calculated_errors,
    direct_errors,
    one_by_one,
    ranged,
    read_ranges,
)
from jostle.tools.render import progress_on
from jostle.tools.turns import beside
from jostle.trace.costs import joint_table, joint_text
from jostle.trace.text import UNITS, align, clean, number

if TYPE_CHECKING:
    from jostle.choice.plan import ChoicePlan, Curve


_NOTE = (
    "error: of numbers the 95 % half-width, of variables the root mean square",
    "over cells or queries, before cells are made nowhere negative",
)
_WIDER = "these looks make the errors of their lines 2 % wider than they are above (`jostle run --no-look`: none)"
_NOTES = {
    "rows": "/ rows: over the rows that it is of; near the ends of the bounds up to 1.4 times that, of variances 2.5",
    "stddev": "/ rows / stddev: over the rows, and over the deviation itself",
    "rows fewer": "rows fewer: than the most frequent value, at most",
    "ranks": "ranks: of a number that is chosen, how many rows it may be off; `via interval` buys an error in values",
}


class Advice(Struct, frozen=True):
    """A call of a choice that ships trained: the option that it would run, "" where what it measures decides."""

    name: str
    unit: str
    amount: float | None
    chosen: str
    policy: str
    why: str


class ErrorPlan(Struct, frozen=True):
    """Everything that is known of a program's errors."""

    direct: tuple[Direct, ...]
    calculated: tuple[Calculated, ...]
    choices: tuple[ChoicePlan, ...]
    left_out: tuple[str, ...]
    advised: tuple[Advice, ...] = ()
    joint: tuple[dict[str, object], ...] = ()  # of each `jointly` block its line and the fields of its event
    data: str = ""  # what stood for private rows, where errors depend on them
    rows: int = 0  # how many there are, where that was said
    looks: tuple[Charge, ...] = ()  # the charges of statements that look at cells
    ranges: tuple[Ranged, ...] = ()
    read: tuple[tuple[int, str, str], ...] = ()  # calls of functions, by line, with the ranges that they read


def command(options: Namespace) -> int:
    """`jostle plan FILE [--error E] [--epsilon e] [--rows N] [--bounds] [--pictures FOLDER] [--format json]`."""
    for name, value in (("--error", options.error), ("--epsilon", options.epsilon), ("--rows", options.rows)):
        if value is not None and not 0 < value < (2**40 if name == "--rows" else math.inf):
            raise refuse("ValueError", f"`{name}` takes a positive number" + ", below 2^40" * (name == "--rows"))
    with progress_on(sys.stderr) as bar:
        errors = plan(options.file, dict(options.set), dict(options.bind), options.epsilon, bar, options.rows)
    if options.format == "json":
        print(json.dumps(as_json(errors, options.error, options.epsilon), ensure_ascii=False, allow_nan=False))
    else:
        print(clean(text(errors, options.error, options.epsilon)))
        if options.bounds:
            print("\n" + clean(bounds_text(errors)))
    if options.pictures is not None:
        draw(errors, Path(options.pictures))
    return 0


def plan(
    file: str, settings: dict[str, object], bound: dict[str, str], epsilon: float | None = None, progress: Any = None,
    rows: int | None = None,
) -> ErrorPlan:  # fmt: skip
    """The plan of a program; choices are tried around `epsilon`, or around what the program gives them.

    Where a number's error depends on the data, it is reported for so many synthetic `rows` in each source, or of
    stand-ins.
    """
    from jostle.choice.plan import study
    from jostle.tools.session import Session

    session = Session(simulate=1, rows=rows, progress=progress)
    source = read_program(file)
    for name, path in bound.items():
        session.bind(name, beside(file, path))
    names, planned, interp = session.rehearse(source, settings)
    choices: list[ChoicePlan] = []
    left_out: list[str] = []
    visited: set[object] = set()
    for maker, args, (unit, whole), _ in planned:
        if maker.shipped() is not None or whole is None or not math.isfinite(whole) or (id(maker), whole) in visited:
            continue
        visited.add((id(maker), whole))
        report = None if progress is None else (lambda done, total: progress("trying options", done, total))
        choice_plan = study(interp, maker, args[0], unit, whole, epsilon or whole, report)
        if choice_plan is None:
            left_out.append(maker.name or "choice")
        else:
            choices.append(choice_plan)
    direct = direct_errors(session.events, source, names)
    data = f"{rows:,} simulated rows" if rows else "public stand-ins" if bound else ""
    calculated = calculated_errors(source, names, bool(data))
    joint = tuple(
        {"line": event.span.line if event.span else 0, **event.fields}
        for event in session.events if event.kind == "query" and "of_alone" in event.fields
    )  # fmt: skip
    ships = {maker.name for maker, *_ in planned if maker.shipped() is not None}
    advised = [_advice(event) for event in session.events if event.kind == "choice" and event.name in ships]
    ranges = tuple(ranged(direct, source, names))
    parts = (tuple(calculated), tuple(choices), tuple(left_out), tuple(advised), joint, data, rows or 0)
    looks = _looks(Session(rehearse=False).checked(source, settings)[1])
    return ErrorPlan(one_by_one(direct, ranges), *parts, looks, ranges, tuple(read_ranges(source, names)))


def _looks(costs: Sequence[Cost]) -> tuple[Charge, ...]:
    return tuple(charge for cost in costs for charge in cost.charges if charge.looked)


def _advice(event: Event) -> Advice:
    fields = event.fields
    unit = "rho" if "rho" in fields else "epsilon"
    option = fields["chosen"] if not fields["share"] else ""
    return Advice(event.name, unit, fields[unit], option, fields["policy"], fields["why"])


# Rendering ----------------------------------------------------------------------------------------


def text(errors: ErrorPlan, error: float | None, epsilon: float | None) -> str:
    parts = []
    if errors.direct:
        parts.append(_direct_text(errors, error, epsilon))
    if errors.calculated:
        parts.append(_calculated_text(errors))
    parts += [f"line {one['line']}: {joint_text(one)}\n{joint_table(one)}" for one in errors.joint]
    parts += [_choice_text(choice, error) for choice in errors.choices]
    parts += [_advice_text(advice) for advice in errors.advised]
    parts += [
        f"{name}: without training data whose utilities are errors (negative numbers) it is not planned"
        for name in errors.left_out
    ]
    if not parts:
        return "this program measures nothing whose error is known before it runs"
    return "\n\n".join([*parts, *(["\n".join([*map(_look_text, errors.looks), _WIDER])] if errors.looks else [])])


def _direct_text(errors: ErrorPlan, error: float | None, epsilon: float | None) -> str:
    heads = ["measured", "line", "amount", f"± on {errors.rows:,} rows" if errors.rows else "error"]
    heads += ([f"at {number(epsilon)}"] if epsilon else []) + ([f"for error {number(error)}"] if error else [])
    rows = [heads]
    for d in errors.direct:
        there = replace(d, error=d.at(epsilon)) if epsilon else d
        extra = [there.plain(errors.rows) if errors.rows else d.text(there.error)] if epsilon else []
        extra += [_needs(d, error, errors.rows)] if error else []
        here = d.plain(errors.rows) if errors.rows else d.text(d.error)
        rows.append([d.name, str(d.line), _amount(d.unit, d.amount), here, *extra])
    right = [False] + [True] * (len(heads) - 1)
    notes = [note for of, note in _NOTES.items() if any(d.of == of for d in errors.direct) and not errors.rows]
    if errors.rows and any(d.groups > 1 for d in errors.direct):
        notes.append("of a select with groups: each has as many of the rows as any other")
    notes += cut_text(cuts_of(*errors.direct))
    return "\n".join([*align(rows, right), *_NOTE, *notes, *_narrower(errors, error)])


def _look_text(charge: Charge) -> str:
    looks = looks_text(charge.looked, charge.columns)
    return f"line {charge.span.line}: {UNITS[charge.unit]} {near_text(int(charge.most))}{looks}"


def _calculated_text(errors: ErrorPlan) -> str:
    heads = ["calculated", "line", "error", *(["of"] if errors.data else [])]
    rows = [heads]
    for one in errors.calculated:
        error = "by the data" if one.error is None else number(one.error) + (NOISE_ONLY if one.cut else "")
        value = [] if not errors.data else ["any" if one.value is None else number(one.value)]
        rows.append([one.name, str(one.line), error, *value])
    notes = []
    if errors.data:
        notes = [f"of: the value on {errors.data}, whose error it is; `any`: the error is the same on all data"]
    elif any(one.error is None for one in errors.calculated):
        notes = ["by the data: it depends on the rows and their values; `--rows N` says it of N simulated rows"]
    notes += cut_text(cuts_of(*errors.calculated))
    return "\n".join([*align(rows, [False] + [True] * (len(heads) - 1)), *notes])


def _narrower(errors: ErrorPlan, target: float | None) -> Iterator[str]:
    """What narrower ranges would gain, of sums and means whose error is larger than it is wanted, or than a twentieth
    of the range: that costs nothing, so it is said before anything that does."""
    for d in errors.direct:
        if not d.width or (d.of and not errors.rows) or d.name.startswith(("var", "stddev")):
            continue
        there = d.on(errors.rows)
        where = f"{d.name} on line {d.line}: its range is {number(d.width)} wide"
        if target and there > target:
            gain = there / target
            yield f"{where}; one {number(d.width / gain)} wide has this error at the same price: a factor of {gain:.2g}"
        elif not target and there > d.width / 20 and d.of:
            yield f"{where}, its ± {number(100 * there / d.width, 2)} % of that; half the range has half the error"


_SEEN = {"epsilon": (14, 1.0), "rho": (3.4, 0.5)}
"""How many rows of one order of magnitude `bounds` sees at an amount of 1, and with which power of it that falls."""


def bounds_text(errors: ErrorPlan) -> str:
    """What the ranges of columns cost in error, and what a private look at them costs and gives."""
    says = "errors of these functions go with the ranges that they read, or with their squares:"
    read = [says] * bool(errors.read) + [f"line {line}, {function}: {ends}" for line, function, ends in errors.read]
    if any(d.of == "ranks" for d in errors.direct):
        read.append("quantiles: a range half as wide is a few ranks less off; what is beyond it is cut")
    if not errors.ranges:
        return "\n".join(read) or "no described range decides the error of a number on a line of this program"
    n = errors.rows
    rows = [["range of", "line", "described", f"± on {n:,} rows" if n else "error", "half of it"]]
    for one in errors.ranges:
        d = one.of
        half = "–" if one.half is None else f"{number(one.half[0])}..{number(one.half[1])}"
        error = d.plain(n) if n else d.text(d.error)
        rows.append([one.answer, str(one.line), f"{number(one.low)}..{number(one.high)}", error, half])
    half_of_it = (
        "half of it: a range with half the error at the same price; to know a range and describe it costs nothing"
    )
    lines = [*align(rows, [False] + [True] * 4), half_of_it]
    bought = {(one.source, one.column): one for one in reversed(errors.ranges)}
    looks = [["to buy it, for `clamp(x, b.low, b.high)`", "sees", "paid by line", "gains below"]]
    looks += [_look_at_bounds(*column, one) for column, one in reversed(bought.items())]
    lines += ["", *align(looks, [False] + [True] * 3), "sees: an order of magnitude that so many rows have"]
    for one in {one.source: one for one in errors.ranges if one.rows > 1}.values():
        less, amount = number(1 / one.rows, 2), number(_tenth(one))
        lines += ["", f"{one.rows} rows of a person are in these errors, with 1 {less} of them. To buy how many",
                  "leave out no more than 5 % of all rows (`use sequences`), for `up to seen.rows rows`:",
                  f"seen = rows_to_read({one.source}, 0.05, {one.rows}) with {one.of.unit} {amount}"]  # fmt: skip
    return "\n".join([*lines, *[""] * bool(read), *read])


def _tenth(one: Ranged) -> float:
    return float(f"{one.amount / 10:.1g}")


def _look_at_bounds(source: str, column: str, one: Ranged) -> list[str]:
    """The statement that buys a range for a tenth of what its line spends, and what it gives."""
    amount, (rows, power) = _tenth(one), _SEEN[one.of.unit]
    statement = f"b = {{{{ select bounds({column}) from {source} with {one.of.unit} {number(amount)} }}}}"
    sees = f"{number(math.ceil(one.rows * rows / amount**power))} rows"
    return [statement, sees, str(one.line), f"{number((1 - amount / one.amount) ** one.of.power, 2)} of it"]


def _needs(direct: Direct, error: float, rows: int) -> str:
    """What an error takes: an amount, or of a mean so many rows at its amount."""
    if direct.of == "rows" and rows:
        finer = direct.on(rows) / error
        return _amount(direct.unit, direct.amount * finer ** (1 / direct.power))
    if direct.of == "rows":
        return f"{number(math.ceil(direct.error / error))} rows"
    return _amount(direct.unit, direct.needed(error)) if not direct.of else "–"


def _choice_text(choice: ChoicePlan, error: float | None) -> str:
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
            row.append(number(curve.exact[choice.amounts.index(middle)]) if curve.exact else "–")
        rows.append(row)
    notes = [f"the choice: its policy is {choice.policy}, with the features it pays for"]
    if not choice.policy:
        notes = [f"the choice: by {choice.way}, with all the options that it runs and the selection"]
    if heads[-1] == "closed form here":
        notes.append(f"closed form here: root mean square error at {unit} {number(middle)} on this program's own "
                     "queries,\nwhatever the data, before cells are made nowhere negative")  # fmt: skip
    return "\n".join([title, *align(rows, [False] + [True] * (len(heads) - 1)), *notes])


def _advice_text(advice: Advice) -> str:
    basis = "public data" if advice.amount is None else f"{UNITS[advice.unit]} {number(advice.amount)}"
    takes = f"runs {advice.chosen}" if advice.chosen else "pays for a look, which says what runs"
    return f"{advice.name}, given {basis}: {takes}\n{advice.policy}: {advice.why}"


def _needed(choice: ChoicePlan, errors: Sequence[float], target: float) -> str:
    amount = choice.needed(errors, target)
    if amount == 0:
        return f"< {number(choice.amounts[0])}"
    return f"> {number(choice.amounts[-1])}" if math.isinf(amount) else number(amount, 3)


def _amount(unit: str, value: float) -> str:
    return f"{UNITS[unit]} {number(value, 3)}"


def as_json(errors: ErrorPlan, error: float | None, epsilon: float | None) -> dict[str, object]:
    """Returns the plan as plain data. `needs` is null outside the amounts tried (`beyond` says on which side).

    Of what is calculated, `error` is null where it depends on the data, and there are none; `value` is that of `data`.
    """
    direct = [
        {"name": d.name, "line": d.line, "unit": d.unit, "amount": d.amount, "error": d.error}
        | ({"of": d.of} if d.of else {}) | ({"cut": list(d.cut)} if d.cut else {})
        | ({"on_rows": d.on(errors.rows)} if errors.rows and d.of == "rows" else {})
        | ({"error_at": d.at(epsilon)} if epsilon else {})
        | ({"needs": d.needed(error)} if error and not d.of else {})
        | ({"needs_rows": math.ceil(d.error / error)} if error and d.of == "rows" else {})
        for d in errors.direct
    ]  # fmt: skip
    choices = [
        {"name": choice.name, "unit": choice.unit, "asked": choice.amount,
         "amounts": list(choice.amounts), "policy": choice.policy,
         "options": [_option_as_json(choice, curve, error, epsilon) for curve in choice.curves]}
        for choice in errors.choices
    ]  # fmt: skip
    calculated = [{"name": one.name, "line": one.line, "error": _finite(one.error), "value": one.value}
                 | ({"cut": list(one.cut)} if one.cut else {})
                  for one in errors.calculated]  # fmt: skip
    fields = ("line", "selects", "strategy", "of_alone", "apart", "wanted")
    joint = [{key: one.get(key) for key in fields} for one in errors.joint]
    return {"measured": direct, "joint": joint, "calculated": calculated, "data": errors.data or None,
            "choices": choices, "advised": [as_dict(one) for one in errors.advised],
            "left_out": list(errors.left_out),
            "ranges": list(map(_range_as_json, errors.ranges)),
            "read": list(map(_read_as_json, errors.read)),
            "looks": [{"line": one.span.line, "source": one.source, "unit": one.unit, "amount": as_text(one.looked),
                       "columns": list(one.columns)} for one in errors.looks]}  # fmt: skip


def _range_as_json(one: Ranged) -> dict[str, object]:
    of = {"of": one.of.of} if one.of.of else {}
    return {"answer": one.answer, "line": one.line, "low": one.low, "high": one.high, "half": one.half,
            "error": one.of.error, **of}  # fmt: skip


def _read_as_json(one: tuple[int, str, str]) -> dict[str, object]:
    return dict(zip(("line", "function", "ranges"), one, strict=True))


def _option_as_json(choice: ChoicePlan, curve: Curve, error: float | None, epsilon: float | None) -> dict[str, object]:
    option: dict[str, object] = {
        "name": curve.name, "errors": curve.typical(), "least": [min(e) for e in curve.errors],
        "most": [max(e) for e in curve.errors], "exact": list(curve.exact) if curve.exact else None,
    }  # fmt: skip
    if epsilon:
        option["error_at"] = choice.error(curve, epsilon)
    if error:
        amount = choice.needed(curve.typical(), error)
        option["needs"] = amount if 0 < amount < math.inf else None
        option["beyond"] = "below" if amount == 0 else "above" if math.isinf(amount) else None
    return option


def _finite(error: float | None) -> float | None:
    return error if error is not None and math.isfinite(error) else None


def draw(errors: ErrorPlan, folder: Path) -> None:
    """One picture a choice: error against the amount, a line for each option, the choice's with its range."""
    from jostle.trace.pictures import Picture, Plot, file_names

    images = []
    for choice in errors.choices:
        last = choice.curves[-1]
        fields: Plot = {
            "shape": "line", "x": list(choice.amounts), "series": {c.name: c.typical() for c in choice.curves},
            "x_label": choice.unit, "y_label": "error", "log_x": True, "log_y": True,
            "low": {last.name: [min(e) for e in last.errors]}, "high": {last.name: [max(e) for e in last.errors]},
        }  # fmt: skip
        images.append(Picture(f"plan of {choice.name}", fields))
    for picture, name in zip(images, file_names(images), strict=True):
        picture.save(folder / name)
