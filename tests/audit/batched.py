"""Runs a program of the language once and draws all its noise many times over.

The exact values and scales come from the program's own path, from text to the noise; only the drawing is repeated,
by the seeded noise of the same laws or by the secure one. That is enough for programs whose draws do not depend on
earlier ones. Programs that adapt to what they measured are run again and again instead, in `repeated`.
"""

from __future__ import annotations

from dataclasses import dataclass
from unittest import mock

import numpy as np

from jostle.privacy.kernel import exposures
from jostle.privacy.mechanisms.noise import SecureNoise
from jostle.simulate import SeededNoise
from jostle.source import Source
from jostle.tools.session import Session

BUDGETS = {"epsilon": "epsilon 1000000", "delta": "epsilon 1000, delta 0.9", "rho": "rho 1000000"}


@dataclass
class Drawn:
    kind: str
    exact: np.ndarray
    scale: float
    outcomes: np.ndarray  # (runs, values) of an additive draw, (runs,) of a selection


class BatchedNoise:
    """Each draw is made `runs` times and kept; the program goes on with the first."""

    def __init__(self, runs: int, seed: int, secure: bool) -> None:
        self._noise = SecureNoise() if secure else SeededNoise(seed)
        self._rng = np.random.default_rng(seed + 1)
        self._runs, self._secure = runs, secure
        self.drawn: list[Drawn] = []

    def laplace(self, values: np.ndarray, scale: float) -> np.ndarray:
        return self._additive("laplace", values, scale)

    def gaussian(self, values: np.ndarray, sigma: float) -> np.ndarray:
        return self._additive("gaussian", values, sigma)

    def cube(self, values: np.ndarray, scale: float) -> np.ndarray:
        outcomes = np.array([self._noise.cube(values.ravel(), scale) for _ in range(self._runs)])
        self.drawn.append(Drawn("cube", values.ravel().astype(float), scale, outcomes))
        return outcomes[0].reshape(values.shape)

    def _additive(self, kind: str, values: np.ndarray, scale: float) -> np.ndarray:
        many = np.tile(values.ravel(), (self._runs, 1))
        outcomes = getattr(self._noise, kind)(many, scale)
        self.drawn.append(Drawn(kind, values.ravel().astype(float), scale, outcomes))
        return outcomes[0].reshape(values.shape)

    def noisy_max(self, scores: np.ndarray, scale: float) -> int:
        return self._select(scores, scale, "noisy_max")

    def gumbel_max(self, scores: np.ndarray, scale: float) -> int:
        return self._select(scores, scale, "gumbel_max")

    def _select(self, scores: np.ndarray, scale: float, law: str) -> int:
        flat = scores.ravel()
        if self._secure:
            outcomes = np.array([getattr(self._noise, law)(flat, scale) for _ in range(self._runs)])
        else:
            outcomes = np.empty(self._runs, dtype=np.int64)
            for start in range(0, self._runs, 10_000):
                shape = (min(10_000, self._runs - start), flat.size)
                exponential = law == "noisy_max"
                noise = self._rng.exponential(scale, shape) if exponential else self._rng.gumbel(0, scale, shape)
                outcomes[start : start + 10_000] = np.argmax(flat + noise, axis=1)
        self.drawn.append(Drawn("selection", flat.astype(float), scale, outcomes))
        return int(outcomes[0])


def batched(program: str, counts: list[int], noise: BatchedNoise, measure: str = "epsilon") -> list[Drawn]:
    """The draws of a program over `c`, private counts."""
    with mock.patch.object(exposures, "SecureNoise", lambda: noise):
        session = Session()
        session.bind("c", np.array(counts))
        declared = f'use histograms\nprivate c = bound("c") protecting rows budget {BUDGETS[measure]}\n'
        result = session.attempt(Source("audit.jst", declared + program))
    if not result.ok:
        raise RuntimeError(result.diagnostics)
    return noise.drawn


def batched_table(
    program: str, rows: list[str], noise: BatchedNoise, folder: str, clause: str = "rows", budget: str = "epsilon 1000",
    *, look: bool = False,
) -> list[Drawn]:  # fmt: skip
    """The draws of a program over `t`, a private table of `v` in 0..7 and `who`; with the looks at cells, if `look`.

    Where the budget is one of periods, `who` is the day."""
    from pathlib import Path

    (Path(folder) / "t.csv").write_text("\n".join(["who,v", *rows]) + "\n")
    who = "date" if " each " in budget else "text"
    declared = f'private t = table("t.csv") described by {{who: {who}, v: 0..7}} protecting {clause} budget {budget}\n'
    with mock.patch.object(exposures, "SecureNoise", lambda: noise):
        result = Session(cwd=Path(folder), look=look).attempt(Source("audit.jst", declared + program))
    if not result.ok:
        raise RuntimeError(result.diagnostics)
    return noise.drawn


def likelihood_ratio(drawn: list[Drawn], one: list[Drawn], other: list[Drawn]) -> np.ndarray:
    """The log-likelihood ratio of all outcomes, the most telling statistic there is; a selection must stand alone."""
    total: np.ndarray | float = 0.0
    for d, a, b in zip(drawn, one, other, strict=True):
        if d.kind == "selection":
            if len(drawn) > 1:
                raise ValueError("a selection beside other draws has no simple likelihood")
            return d.outcomes.astype(float)
        x = d.outcomes.astype(float)
        if d.kind == "laplace":
            moved = np.abs(x - b.exact).sum(axis=1) / b.scale - np.abs(x - a.exact).sum(axis=1) / a.scale
            total = total + moved + a.exact.size * np.log(np.tanh(0.5 / a.scale) / np.tanh(0.5 / b.scale))
        elif d.kind == "cube":
            total = total + (np.abs(x - b.exact).max(axis=1) - np.abs(x - a.exact).max(axis=1)) / d.scale
        else:
            total = total + ((x - b.exact) ** 2 - (x - a.exact) ** 2).sum(axis=1) / (2 * d.scale**2)
    return np.round(np.asarray(total), 9)  # so that equal sums are equal


def repeated(setting: str, expression: str, counts: list[int], runs: int, seed: int) -> np.ndarray:
    """`expression` (a number) evaluated anew in the language for every run, with seeded noise."""
    with mock.patch.object(exposures, "SecureNoise", lambda: SeededNoise(seed)):
        session = Session()
        session.bind("c", np.array(counts))
        declared = f'use histograms\nprivate c = bound("c") protecting rows budget {BUDGETS["epsilon"]}\n'
        session.execute(Source("audit.jst", declared + setting))
        found: list[float] = []
        loop = Source("audit.jst", f"found = [{expression} for i in 1..500]\n")
        while len(found) < runs:
            session.execute(loop)
            found.extend(session.names()["found"])
            session.events.clear()  # the trace of a million steps is not wanted
    return np.array(found[:runs])
