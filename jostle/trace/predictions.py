"""What a choice predicted of its options, in words: errors where its utilities are errors, and the margin.

Where every utility is a negative error the choice compares them by their ratios, and a person reads errors. Elsewhere
a larger utility is better. Pure functions of a `choice` event's fields.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from jostle.trace.forest import mapping
from jostle.trace.text import number


def heading(fields: Mapping[str, Any]) -> str:
    """What the figures are."""
    return "predicted error" if fields.get("errors") else "predicted, larger is better"


def figures(fields: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """The figure of each option, and its spread over the training runs it is learned from (empty where unknown)."""
    sign, spread = (-1 if fields.get("errors") else 1), mapping(fields.get("spread"))
    return {
        option: (number(sign * score), f"± {number(spread[option], 2)}" if option in spread else "")
        for option, score in mapping(fields.get("predictions")).items()
    }


def margin(fields: Mapping[str, Any]) -> str | None:
    """How far the next option is behind, and whether single runs differ by more than that; none without another."""
    predictions, chosen = mapping(fields.get("predictions")), str(fields.get("chosen"))
    others = {option: float(score) for option, score in predictions.items() if option != chosen}
    if chosen not in predictions or not others:
        return None
    second = max(others, key=lambda option: others[option])
    mine, next_best, spread = float(predictions[chosen]), others[second], mapping(fields.get("spread"))
    widths = [float(spread[o]) for o in (chosen, second)] if {chosen, second} <= spread.keys() else [0.0, 0.0]
    if mine < next_best and not fields.get("errors"):
        return f"{number(next_best - mine)} less than {second}, which is not enough to leave {chosen}"
    if fields.get("errors") and mine < 0 and next_best < 0:
        times = number(next_best / mine, 3)
        text = f"the error of {second} is " + (f"{times} times as large" if times != "1" else "about as large")
        gap, widths = math.log(next_best / mine), [w / -u for w, u in zip(widths, (mine, next_best), strict=True)]
    else:
        text, gap = f"{number(mine - next_best)} more than {second}", mine - next_best
    return text + (", though single runs differ by more" if gap < math.hypot(*widths) else "")
