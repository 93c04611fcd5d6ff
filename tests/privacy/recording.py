"""Runs a program with noise that adds nothing and writes down what it was given.

From two such records, of neighbouring databases, follows what each charge really loses (`recorded_noise`). Nothing
here reads a sensitivity that the program under test states.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from recorded_noise import Draw, lost_by

from jostle.privacy.kernel import exposures
from jostle.privacy.kernel.kernel import Kernel
from jostle.source import Source
from jostle.tools.session import Result, Session


@dataclass
class Charge:
    title: str
    value: float
    draws: list[Draw] = field(default_factory=list)


class Recorder:
    """Stands in for `SecureNoise`; also sees every charge, so that a draw belongs to the charge before it."""

    def __init__(self) -> None:
        self.charges: list[Charge] = []

    def laplace(self, values: np.ndarray, scale: float) -> np.ndarray:
        return self._keep("laplace", values, scale)

    def gaussian(self, values: np.ndarray, sigma: float) -> np.ndarray:
        return self._keep("gaussian", values, sigma)

    def cube(self, values: np.ndarray, scale: float) -> np.ndarray:
        return self._keep("cube", values, scale)

    def noisy_max(self, scores: np.ndarray, scale: float) -> int:
        self._keep("selection", scores, scale)
        return 0  # a fixed choice: what follows a selection must not depend on the data through it

    def gumbel_max(self, scores: np.ndarray, scale: float) -> int:
        self._keep("gumbel", scores, scale)
        return 0

    def _keep(self, kind: str, values: np.ndarray, scale: float) -> np.ndarray:
        assert self.charges, "noise was drawn before anything was charged"
        assert scale > 0
        self.charges[-1].draws.append(Draw(kind, values.copy(), scale))
        # Zeros, not the values: a program that goes on with what it measured then goes on in the same way.
        return np.zeros_like(values)


@dataclass
class Record:
    result: Result
    charges: list[Charge]
    spent: float


class Bench:
    """Runs programs on small tables in a folder, recording."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self._recorder = Recorder()
        patch.setattr(exposures, "SecureNoise", lambda: self._recorder)
        charge = Kernel._charge

        def recorded(kernel: Kernel, measurement: Any, *rest: Any) -> None:
            charge(kernel, measurement, *rest)
            self._recorder.charges.append(Charge(measurement.title, measurement.price.amount.value / 1e12))

        patch.setattr(Kernel, "_charge", recorded)

    def table(self, rows: Iterable[Sequence[object]], header: Sequence[str]) -> None:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)
        (self.folder / "t.csv").write_text(text.getvalue())

    def attempt(self, program: str) -> Result:
        return Session(cwd=self.folder).attempt(Source("p.jst", program))

    def run(self, program: str) -> Record:
        self._recorder.charges = []
        result = self.attempt(program)
        assert result.ok, result.diagnostics
        (budget,) = (b for name, b in result.budget.items() if name == "t")
        (unit,) = (u for u in budget if u != "delta")
        return Record(result, self._recorder.charges, float(budget[unit]["spent"]))


def worst_losses(a: Record, b: Record) -> list[tuple[str, float, float]]:
    """(title, what was lost, what was charged) of every charge, for two neighbours."""
    assert [(c.title, c.value) for c in a.charges] == [(c.title, c.value) for c in b.charges]
    found = []
    for one, other in zip(a.charges, b.charges, strict=True):
        found.append((one.title, lost_by(one.draws, other.draws), one.value))
    return found
