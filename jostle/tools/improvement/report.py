"""What `jostle improve` found, as a table for people and as plain data."""

from __future__ import annotations

import math
from typing import Any

from jostle.choice.synthesis.improvement import Improvement, OptionImprovement, Regrets

_ELSEWHERE = -1.0
"""Less explained variance than this says that values are on another scale than utilities, and nothing else."""

_REGRETS = {"before": "before", "after": "after", "model": "the model for all", "single": "the single best option"}


def text(found: Improvement) -> str:
    """A block of lines for each option, then the regrets."""
    said = "log error" if found.logarithmic else "utility"
    lines = [f"{found.databases} data sets left out in turn, {found.policy}"]
    for one in found.options:
        lines += ["", _head(one), *_table(one, said), f"  {_verdict(one, not found.stays)}"]
    lines += ["", *_regrets(found.regrets)]
    if found.stays:
        lines.append(f"nothing changes: {found.stays}")
    return "\n".join(lines) + "\n"


def as_json(found: Improvement) -> dict[str, Any]:
    """The same as plain data; regrets of errors as error ÷ least error."""
    return {
        "policy": found.policy, "databases": found.databases, "log_error": found.logarithmic, "stays": found.stays,
        "options": [
            {
                "option": one.option, "before": one.before, "explained": one.explained, "shape": one.shape,
                "model": one.model,
                "formulas": [
                    {"complexity": j.formula.complexity, "formula": j.formula.text(), "explained": j.explained,
                     "error": j.error}
                    for j in one.formulas
                ],
                "proposed": one.proposed.formula.text(), "gain": one.gain, "gain_error": one.error, "kept": one.kept,
            }
            for one in found.options
        ],
        "regret": {name: _readable(getattr(found.regrets, name), found.regrets) for name in _REGRETS}
        | {"gain": found.regrets.gain, "gain_error": found.regrets.error},
    }  # fmt: skip


def _head(one: OptionImprovement) -> str:
    if one.before != "predict":
        return f"{one.option}: `{one.before}` explains {one.model:.2f} of the variance"
    own = f"explains {one.explained:.2f} of the variance" if one.explained > _ELSEWHERE else "is on another scale"
    return f"{one.option}: `predict` {own}, {one.shape:.2f} on its best line; the model explains {one.model:.2f}"


def _table(one: OptionImprovement, said: str) -> list[str]:
    rows = [("complexity", "explained", "±", said)]
    for judged in one.formulas:
        mark = "* " if judged is one.proposed else ""
        rows.append((f"{mark}{judged.formula.complexity}", f"{judged.explained:.2f}", f"{judged.error:.2f}",
                     judged.formula.text()))  # fmt: skip
    widths = [max(len(row[k]) for row in rows) for k in range(3)]
    return ["  " + "  ".join([*(c.rjust(w) for c, w in zip(row, widths, strict=False)), row[3]]) for row in rows]


def _verdict(one: OptionImprovement, chosen: bool) -> str:
    """What becomes of the option; `chosen`: whether each option goes by its own explained variance."""
    gain = f"* explains {one.gain:.2f} ± {one.error:.2f} more than `{one.before}`"
    if one.kept:
        return f"{gain}, and takes its place" if one.explained > _ELSEWHERE else "* takes the place of `predict`"
    if one.gain < 0:
        return f"`{one.before}` stays: * explains less"
    return f"`{one.before}` stays: {gain}" + (", which is within chance" if chosen else "")


def _regrets(regrets: Regrets) -> list[str]:
    what = "error ÷ least error" if regrets.relative else "best − utility"
    values = ", ".join(f"{_readable(getattr(regrets, key), regrets):.3f} {name}" for key, name in _REGRETS.items())
    sure = f"± {regrets.error:.3f}" + (" of its logarithm" if regrets.relative else "")
    return [f"regret ({what}): {values}", f"  before − after: {regrets.gain:.3f} {sure}, paired over data sets"]


def _readable(regret: float, regrets: Regrets) -> float:
    return math.exp(regret) if regrets.relative else regret
