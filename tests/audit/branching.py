"""Runs of a program that adapts to what it selected: once for every outcome of its selections, not once a run.

A selection and the partition walk have few outcomes on tiny data. The program is run with their outcomes prescribed, to
where it asks for the next one; this is drawn many times, the runs part, and each part goes on. What is added in the
end is drawn for all runs of a part at once, as in `batched`. So the exact values, the scores, the scales and the
shares of epsilon are the program's own, from its text; only the order of drawing is ours. Programs that go on from an
additive draw (a noisy number of rows, say) see 0 in its place in every run: what is audited is then the program along
that path, with all its charges and scales, and the draw itself.

The statistic of a run is its whole log-likelihood ratio: of the additive draws exactly, of each outcome by the
frequencies of a separate simulation, which is close enough: any statistic gives a valid bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import numpy as np
from batched import BUDGETS

from jostle.privacy.kernel import exposures
from jostle.privacy.mechanisms import least_cost
from jostle.simulate import SeededNoise
from jostle.source import Source
from jostle.tools.session import Session

MANY = 200_000
"""Outcomes drawn at most to find how likely each is."""

Outcome = Any
Script = tuple[Outcome, ...]


class Asked(BaseException):
    """The program asks for an outcome that was not prescribed; what it is drawn from."""

    def __init__(self, kind: str, *what: Any) -> None:
        self.kind, self.what = kind, what

    def draw(self, runs: int, seed: int) -> list[Outcome]:
        if self.kind == "walk":
            return _walks(*self.what, runs, seed)
        scores, scale = self.what
        rng, found = np.random.default_rng(seed), []
        for start in range(0, runs, 20_000):
            shape = (min(20_000, runs - start), scores.size)
            found.extend(np.argmax(scores + rng.exponential(scale, shape), axis=1).tolist())
        return found


@dataclass
class Scripted:
    """Noise with prescribed selections; keeps what is added to, and adds nothing."""

    script: Script
    at: int = 0
    exact: list[np.ndarray] = field(default_factory=list)
    scales: list[float] = field(default_factory=list)

    def next(self, kind: str, *what: Any) -> Outcome:
        if self.at == len(self.script):
            raise Asked(kind, *what)
        self.at += 1
        return self.script[self.at - 1]

    def laplace(self, values: np.ndarray, scale: float) -> np.ndarray:
        self.exact.append(values.ravel().astype(float))
        self.scales.append(scale)
        return np.zeros_like(values)

    def noisy_max(self, scores: np.ndarray, scale: float) -> int:
        return self.next("selection", scores.ravel().astype(float), scale)

    def walk(self, counts: np.ndarray, epsilon: float, draw: Any, **tuning: Any) -> np.ndarray:
        return np.array(self.next("walk", counts, epsilon, tuning)).reshape(counts.shape)


def _walks(counts: np.ndarray, epsilon: float, tuning: dict[str, Any], runs: int, seed: int) -> list[Outcome]:
    """Walks over many copies of a line at once: public splits come down to one copy, then each walks by itself."""
    copies, noise = 1 << (runs - 1).bit_length(), SeededNoise(seed)
    own = tuning.pop("public_splits", None)
    splits = copies.bit_length() - 1 + (3 if own is None else own)
    found = least_cost.walk(
        np.tile(counts, copies), epsilon, lambda scale, size: noise.laplace(np.zeros(size, dtype=np.int64), scale),
        public_splits=splits, **tuning,
    ).reshape(copies, -1)[:runs]  # fmt: skip
    return [tuple(row) for row in (found - found[:, :1]).tolist()]


Database = Sequence[int] | Sequence[tuple[int, ...]]
"""Counts, or rows of columns a, b, … of 0 and 1."""


def _declared(session: Session, database: Database) -> str:
    """Binds a database as `c`, and the declaration that makes it private."""
    protecting = f"protecting rows budget {BUDGETS['epsilon']}\n"
    array = np.array(database)
    if array.ndim == 1:
        session.bind("c", array)
        return f'private c = bound("c") {protecting}'
    names = "abcdefgh"[: array.shape[1]]
    session.bind("c", {name: np.ascontiguousarray(array[:, i]) for i, name in enumerate(names)})
    columns = ", ".join(f"{name}: 0..1" for name in names)
    return f'private c = bound("c") described by {{{columns}}} {protecting}'


def _reached(program: str, database: Database, script: Script) -> Scripted | Asked:
    noise = Scripted(script)
    with (
        mock.patch.object(exposures, "SecureNoise", lambda: noise),
        mock.patch.object(least_cost, "walk", noise.walk),
    ):
        session = Session()
        declared = _declared(session, database)
        try:
            session.execute(Source("audit.jst", declared + program))
        except Asked as asked:
            return asked
    return noise


def branching(program: str, x: Database, y: Database, runs: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The log-likelihood ratio of `runs` runs on x, and of as many on y."""
    rng = np.random.default_rng(seed)
    found: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
    waiting: list[tuple[Script, tuple[int, int], float]] = [((), (runs, runs), 0.0)]
    while waiting:
        script, many, ratio = waiting.pop()
        ends = [_reached(program, database, script) for database in (x, y)]
        if isinstance(ends[0], Asked) and isinstance(ends[1], Asked):
            seeds = [int(s) for s in rng.integers(2**31, size=4)]
            likely = [_counted(end.draw(min(MANY, 4 * runs), s)) for end, s in zip(ends, seeds, strict=False)]
            drawn = [_counted(end.draw(n, s)) if n else {} for end, n, s in zip(ends, many, seeds[2:], strict=True)]
            for outcome in drawn[0] | drawn[1]:
                parts = (drawn[0].get(outcome, 0), drawn[1].get(outcome, 0))
                more = np.log((likely[0].get(outcome, 0) + 1) / (likely[1].get(outcome, 0) + 1))
                waiting.append(((*script, outcome), parts, ratio + float(more)))
            continue
        if isinstance(ends[0], Asked) or isinstance(ends[1], Asked):
            raise RuntimeError("what a program does next depends on the data other than by its draws")
        noise = SeededNoise(int(rng.integers(2**31)))
        for side, n in enumerate(many):
            total = np.full(n, ratio)
            for a, b, scale in zip(ends[0].exact, ends[1].exact, ends[0].scales, strict=True):
                shown = noise.laplace(np.tile((a, b)[side].astype(np.int64), (n, 1)), scale)
                total += (np.abs(shown - b) - np.abs(shown - a)).sum(axis=1) / scale
            found[side].append(np.round(total, 6))
    # in no order, for the audit chooses its event on the first half
    return rng.permutation(np.concatenate(found[0])), rng.permutation(np.concatenate(found[1]))


def _counted(outcomes: list[Outcome]) -> dict[Outcome, int]:
    counted: dict[Outcome, int] = {}
    for outcome in outcomes:
        counted[outcome] = counted.get(outcome, 0) + 1
    return counted
