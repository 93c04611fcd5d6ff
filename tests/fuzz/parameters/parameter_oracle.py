"""What must hold of one set of parameters on neighbouring tables, bit by bit and before noise.

* What is shown (a value under blind noise, or a refusal with its help) is the same on all of them: it depends on public
  facts only.
* A refusal comes before a charge, and nothing is drawn.
* Rows in another order and in other batches give the same whole numbers.
* A row more moves what noise is given by no more than what was charged pays for: by Laplace noise ‖x − x′‖₁ over the
  scale, by Gaussian noise ‖x − x′‖₂² over 2σ², by a selection the range of the differences (`recorded_noise`).
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from parameter_worlds import Recorder, World, batches_of, evaluate
from recorded_noise import Draw

from jostle.diagnostics import Refusal
from jostle.privacy.kernel.exposures import Handle
from jostle.tools.session import Session

LEFT = re.compile(r"[\d.]+ is left")  # of the budget: sessions of one world are not asked equally often


@dataclass(frozen=True)
class Call:
    """An expression of the language with names for its parameters, and what is special about it.

    `walk`: what it shows may depend on rows through noise that comes in many draws. `late`: it pays before it asks, or
    calculates with what it measured, so that it may be refused after a charge. `sampled`: drawn over secret samples, at
    a price of its own.
    `of_cells`: works on counts, which know no order of rows.
    """

    text: str
    values: dict[str, Any]
    family: str
    walk: bool = False
    late: bool = False
    sampled: bool = False
    of_cells: bool = False


@dataclass
class Sight:
    """What one run showed, drew and was charged."""

    shown: str
    refused: bool
    crashed: bool
    charged: int
    draws: list[Draw] = field(default_factory=list)


@dataclass(frozen=True)
class Fault:
    kind: str
    detail: str


def look(session: Session, noise: Recorder, call: Call) -> Sight:
    """Runs the call in one session."""
    noise.draws = []
    before = _spent(session)
    refused = crashed = False
    try:
        shown = fingerprint(evaluate(session, call.text, call.values))
    except Refusal as refusal:
        refused = True
        shown = "\n".join(f"{d.kind}: {LEFT.sub('', d.message)} ({d.help})" for d in refusal.diagnostics)
    except Exception as error:  # whatever it is, it is a fault: a user would see a traceback
        refused = crashed = True
        shown = f"{type(error).__name__}: {error}"
    return Sight(shown, refused, crashed, _spent(session) - before, noise.draws)


def _spent(session: Session) -> int:
    """What the world's source has lost, in quanta of its unit."""
    source = session._interp.kernel.register.names["t"]
    return int(source.meter.spent[0])


def judge(
    world: World, noise: Recorder, call: Call, pair: int, batch: int, real: bool = False
) -> tuple[str, list[Fault]]:
    """How it went on the table itself, and the faults on the neighbours number `pair` and in batches of `batch` rows.

    With `real` the noise is drawn, too: nor may that fail where blind noise did not.
    """
    one, other = world.near[pair % len(world.near)]
    same, mixed = world.equal[0]
    orders = not call.of_cells or batch == 1
    sights = {
        name: look(world.sessions[name], noise, call)
        for name in dict.fromkeys((one, other, *([same] if orders else [])))
    }
    if orders:
        with batches_of(batch):
            sights[mixed] = look(world.sessions[mixed], noise, call)
    faults = [fault for sight in sights.values() for fault in _alone(call, sight)]
    if not faults:
        faults = _between(world, call, sights[one], sights[other], "neighbours")
    if not faults and orders:
        faults = _between(world, call, sights[same], sights[mixed], "orders")
    if not faults and real and not sights[one].refused and not call.walk:
        noise.real = True
        drawn = look(world.sessions[one], noise, call)
        noise.real = False
        if drawn.refused and not call.late:
            faults = [Fault("noise cannot be drawn", drawn.shown)]
    went = "refused" if sights[one].refused else "ran" if sights[one].draws else "ran without noise"
    return went, faults


def _alone(call: Call, sight: Sight) -> list[Fault]:
    if sight.crashed:
        return [Fault("a crash", sight.shown)]
    if sight.refused and not call.late and (sight.draws or sight.charged):
        return [Fault("a refusal after a charge", sight.shown)]
    return []


def _between(world: World, call: Call, one: Sight, other: Sight, what: str) -> list[Fault]:
    if one.refused != other.refused or (one.shown != other.shown and (one.refused or not call.walk)):
        return [Fault(f"{what} are shown other things", f"{one.shown[:300]}\n   and   {other.shown[:300]}")]
    if one.charged != other.charged and not call.walk:
        return [Fault(f"{what} are charged otherwise", f"{one.charged} and {other.charged}")]
    if call.walk:
        return []
    if [(d.kind, d.scale, d.values.shape) for d in one.draws] != [
        (d.kind, d.scale, d.values.shape) for d in other.draws
    ]:
        return [Fault(f"{what} draw otherwise", "")]
    if what == "orders":
        for a, b in zip(one.draws, other.draws, strict=True):
            if not np.array_equal(a.values, b.values):
                return [Fault("orders or batches give other numbers", f"{a.values} and {b.values}")]
        return []
    return _lost(world, call, one, other)


def _lost(world: World, call: Call, one: Sight, other: Sight) -> list[Fault]:
    pure = rho = 0.0
    for a, b in zip(one.draws, other.draws, strict=True):
        if call.sampled:
            moved = np.abs(a.values.astype(float) - b.values.astype(float)).sum()
            most = (2 if "up to 2" in world.unit else 1) * int(call.values.get("cubes", 1))
            if moved > most:
                return [Fault("a sample moves by more than its rows", f"{moved} > {most}")]
        elif a.kind in ("laplace", "selection", "cube"):
            pure += a.loss(b)
        else:
            rho += a.loss(b)
    if call.sampled:
        return []
    in_rho = "rho" in world.amount
    # the price of an ε-DP mechanism in zCDP is ε·tanh(ε/2), whatever the mechanism is
    lost = rho + pure * math.tanh(pure / 2) if in_rho else pure
    if "delta" in world.amount:
        return []  # zCDP within ε and δ: what ρ is spent stands in no budget; the other units are compared exactly
    if not in_rho and rho:
        return [Fault("Gaussian noise for pure epsilon", call.text)]
    paid = one.charged * 1e-12
    if lost > paid * (1 + 1e-9):
        return [Fault("more is lost than paid", f"{lost} > {paid}")]
    return []


def fingerprint(value: Any) -> str:
    """All bits of a public value; of a handle its kind."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{value.shape}{np.ascontiguousarray(value).tobytes().hex()}"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}: {fingerprint(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(fingerprint, value)) + "]"
    if value is None or isinstance(value, (bool, int, float, str)):
        return f"{type(value).__name__} {value!r}"
    if isinstance(value, Handle):
        return type(value).__name__
    columns = getattr(value, "columns", None)
    return f"{type(value).__name__} {fingerprint(columns) if isinstance(columns, dict) else ''}"
