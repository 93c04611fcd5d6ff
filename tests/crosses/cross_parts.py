"""What a crossed program is made of: what is done to a table, and what is measured after it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from cross_worlds import KINDS

MODULES = ("features", "gradual", "histograms", "row_vectors", "selection", "sequences", "statistics", "weighted",
           "workloads")  # fmt: skip


@dataclass(frozen=True)
class Chain:
    """What is done to a table `t` before it is measured: lines, and the name that they give the table at their end."""

    lines: tuple[str, ...] = ()
    table: str = "t"
    join: str = ""
    """What follows the table in a select that reads it."""
    columns: Mapping[str, str] = field(default_factory=lambda: KINDS)
    limit: str = ""
    features: tuple[str, ...] = ()


@dataclass(frozen=True)
class Measurement:
    """Lines that measure a table `x`, and the columns that they may read, with their kinds."""

    lines: tuple[str, ...]
    needs: Mapping[str, str]
    limit: str
    features: tuple[str, ...]
    keys_are_open: bool

    def fits(self, chain: Chain) -> bool:
        selects = self.features[0] in ("aggregates",) or not chain.join
        return selects and self.limit == chain.limit and self.needs.items() <= chain.columns.items()


@dataclass(frozen=True)
class Program:
    """A chain and what is measured after it."""

    chain: Chain
    measurements: tuple[Measurement, ...]
    file: str
    unit: str
    budget: str

    @property
    def text(self) -> str:
        return "\n".join([*self.chain.lines, f"x = {self.chain.table}", self.measuring])

    @property
    def measuring(self) -> str:
        lines = [line for one in self.measurements for line in one.lines]
        rows = self.chain.join if self.chain.join.startswith("(") else f"x{self.chain.join}"
        return "".join(f"{line.replace('from x', f'from {rows}')}\n" for line in lines)

    @property
    def features(self) -> tuple[str, ...]:
        own = [f"file {self.file}", f"unit {self.unit}", f"budget {self.budget}"]
        return tuple(dict.fromkeys([*self.chain.features, *(f for m in self.measurements for f in m.features), *own]))

    @property
    def keys_are_open(self) -> bool:
        """Whether how many keys there are may follow from rows: also of a column that is calculated anew."""
        anew = self.budget in ("delta", "basic") and any(
            re.search(r"derive\(.+, [cnb] = ", line) for line in self.chain.lines
        )
        return anew or any(one.keys_are_open for one in self.measurements)


def modules() -> list[str]:
    """The lines that bring what programs call."""
    return [f"use {name}" for name in MODULES]
