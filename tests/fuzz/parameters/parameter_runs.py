"""Sets of parameters by their seeds, and the worlds they are tried on."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from dataclasses import dataclass

from parameter_calls import call
from parameter_cores import Data, core
from parameter_oracle import Fault, judge
from parameter_values import Values
from parameter_worlds import CUBES, recorded, world

WORLD = 1000
"""So many seeds in a row share a world."""


@dataclass(frozen=True)
class Run:
    seed: int
    family: str
    text: str
    values: dict[str, object]
    went: str
    faults: list[Fault]


def runs(first: int, many: int, only: str | None = None, worlds: int = WORLD) -> Iterator[Run]:
    """The sets of parameters with these seeds, one after the other."""
    with recorded() as noise:
        place = None
        for seed in range(first, first + many):
            if place is None or seed % worlds == 0:
                place = None
                gc.collect()  # sessions are circles, and each holds an engine
                place = world(seed // worlds, noise)
            v = Values(seed)
            v.strange = v.choice((0.0, 0.4, 0.6))
            made = call(v, place, only)
            went, faults = judge(place, noise, made, v.randrange(6), v.choice((1, 2, 3, 5)), seed % 40 == 0)
            yield Run(seed, made.family, made.text, made.values, went, faults)


def cores(first: int, many: int, only: str | None = None) -> Iterator[Run]:
    """The same of the exact parts alone."""
    with recorded() as noise:
        place = next(w for seed in range(99) if (w := world(seed, noise)).vectors)  # where cubes are counts of rows
        names = place.sessions["first"].names()
        cubes = {name: names[name] for name in CUBES}
        data = Data(first, cubes)
        for seed in range(first, first + many):
            if seed % 100 == 0:
                data = Data(seed, cubes)
            v = Values(seed)
            v.strange = v.choice((0.0, 0.4, 0.6))
            name, faults = core(v, data, only)
            yield Run(seed, name, name, {}, "tried", faults)


def describe(seed: int, only: str | None = None) -> str:
    (one,) = runs(seed, 1, only)
    with recorded() as noise:
        place = world(seed // WORLD, noise)
    told = [
        f"{one.family}: {one.went}",
        f"protecting {place.unit}",
        one.text,
        *(f"   {k} = {v!r}" for k, v in one.values.items()),
    ]
    told += [f"{fault.kind}\n   {fault.detail}" for fault in one.faults]
    told += [f"{name}: {rows}" for name, rows in place.rows.items()]
    return "\n".join(told)
