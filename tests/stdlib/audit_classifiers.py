"""The classifiers under the audit: `python -m tests.stdlib.audit_classifiers`.

Those that measure once are audited by the likelihood ratio of all they draw; those whose later steps depend on a
selection are run whole, thousands of times, and judged by a number that their model shows.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "audit"))

import numpy as np
from batched import BatchedNoise, likelihood_ratio
from harness import Case, Pair, Runs, audit

from jostle.accounting.definitions import epsilon_of
from jostle.privacy.kernel import exposures
from jostle.simulate import SeededNoise
from jostle.source import Source
from jostle.tools.session import Session

Rows = Sequence[tuple[str, str, str]]

DECLARED = """
use classify
private t = bound("t") described by {{c: {{{}}}, a: {{"p", "q"}}, b: {{"r", "s"}}}}
    protecting rows budget {} 1000000
"""
HERE: Rows = [("x", "p", "r"), ("y", "q", "r")]
MORE: Rows = [*HERE, ("y", "p", "s")]
SEVEN = "tuvwxyz"
MANY: Rows = [(SEVEN[i % 7], "pq"[i % 2], "rs"[i // 2 % 2]) for i in range(80)]
"""As many as `adaptive_classifier` has several models of in rho, where classes are seven."""
LOUD: Rows = [(SEVEN[i % 3], "pq"[i % 2], "rs"[i // 2 % 2]) for i in range(900)]
"""As many as it has a softmax regression of in rho, where classes are three."""
AT_ONCE = ("majority", "naive_bayes", "shrunk_bayes", "linear")
BY_STEPS = {
    "selected_bayes": 'selected_bayes(derive(t, d = a), "c", 1)',
    "bayes_tree": 'bayes_tree(t, "c", 1)',
    "class_means": 'class_means(t, "c")',
    "adaptive_classifier": 'adaptive_classifier(t, "c")',
}
ASKED = '.probabilities({a: "p", b: "s"})[1]'


def _session(rows: Rows, noise: object, unit: str = "epsilon", classes: str = "xy") -> Session:
    session = Session()
    listed = ", ".join(f'"{name}"' for name in classes)
    session.bind("t", {name: np.array([row[i] for row in rows]) for i, name in enumerate("cab")})
    with mock.patch.object(exposures, "SecureNoise", lambda: noise):
        session.execute(Source("audit.jst", DECLARED.format(listed, unit)))
    return session


def at_once(names: Sequence[str] = AT_ONCE, epsilon: float = 1, runs: int = 400_000) -> list[Case]:
    """One measurement each, on two rows against three."""

    def case(name: str) -> Case:
        def draw(runs: int, rng: np.random.Generator) -> Pair:
            noises = [BatchedNoise(runs, int(rng.integers(2**31)), False) for _ in range(2)]
            for noise, rows in zip(noises, (HERE, MORE), strict=True):
                _session(rows, noise).execute(Source("audit.jst", f'm = {name}(t, "c") with epsilon {epsilon}\n'))
            one, other = (noise.drawn for noise in noises)
            return likelihood_ratio(one, one, other), likelihood_ratio(other, one, other)

        return Case(f"classifier {name}", epsilon, draw, runs)

    return [case(name) for name in names]


def _whole(
    expression: str, here: Rows, more: Rows, unit: str, amount: float, classes: str = "xy", each: int = 200
) -> Runs:
    """A program run many times on `here` and on `more`: the number that its model shows."""

    def outcomes(rows: Rows, runs: int, seed: int) -> np.ndarray:
        session = _session(rows, SeededNoise(seed), unit, classes)
        found: list[float] = []
        loop = f"found = [({expression} with {unit} {amount}){ASKED} for i in 1..{each}]\n"
        while len(found) < runs:
            session.execute(Source("audit.jst", loop))
            found.extend(session.names()["found"])
            session.events.clear()
        return np.round(np.array(found[:runs]), 6)

    def draw(runs: int, rng: np.random.Generator) -> Pair:
        return outcomes(here, runs, int(rng.integers(2**31))), outcomes(more, runs, int(rng.integers(2**31)))

    return draw


def by_steps(epsilon: float = 1, runs: int = 8_000) -> list[Case]:
    return [Case(f"classifier {name}", epsilon, _whole(expression, HERE, MORE, "epsilon", epsilon), runs)
            for name, expression in BY_STEPS.items()]  # fmt: skip


def in_rho(rho: float = 0.5, delta: float = 0.01, runs: int = 2_000) -> list[Case]:
    """The ways of seven classes, and of three with many rows, by the epsilon that rho is with delta."""

    def case(name: str, rows: Rows, classes: str) -> Case:
        draw = _whole('adaptive_classifier(t, "c")', rows, [*rows, ("u", "p", "s")], "rho", rho, classes)
        return Case(name, epsilon_of(rho, delta), draw, runs, delta)

    return [case("several classifiers in rho", MANY, SEVEN), case("softmax regression in rho", LOUD, SEVEN[:3])]


def main() -> int:
    wrong = 0
    for case in [*at_once(), *by_steps(), *in_rho()]:
        finding = audit(case)
        wrong += not finding.right
        print(f"{case.name:>28}  ε {case.epsilon:g}  bound {finding.bound:.3f}  {finding.runs} runs  {finding.event}")
    return wrong


if __name__ == "__main__":
    raise SystemExit(main())
