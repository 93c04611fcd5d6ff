"""The trees under the audit: `python -m tests.stdlib.audit_trees`.

Every option is run whole, thousands of times, on a small domain at depth 2, with one row more or less; it is judged by
what its model shows: which attribute its root asks, and the counts at the leaf where the row is.

Options: `--share 0.1` for fewer runs, `--only WORDS`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "audit"))

import numpy as np
from harness import Case, Pair, audit

from jostle.privacy.kernel import exposures
from jostle.simulate import SeededNoise
from jostle.source import Source
from jostle.tools.session import Session

Rows = Sequence[tuple[str, str, str]]

DECLARED = """
use trees
private t = bound("t") described by {c: {"x", "y"}, a: {"p", "q"}, b: {"r", "s"}}
    protecting rows, at most 50 rows budget epsilon 1000000
"""
HERE: Rows = [("x", "p", "r"), ("y", "q", "r")] * 8
MORE: Rows = [*HERE, ("y", "p", "s")]
OPTIONS = {
    "A1 (max)": 'friedman_schuster(t, "c", 2)', "A1 (gini)": 'friedman_schuster(t, "c", 2, gini)',
    "A1 (entropy)": 'friedman_schuster(t, "c", 2, by_entropy(50))', "A2": 'mohammed(t, "c", 2)',
    "A3": 'jagannathan(t, "c", 2)', "A4": 'patil_singh(t, "c", 2, 2)', "A5": 'fletcher_islam(t, "c", 2)',
    "t_plus": 't_plus(t, "c", 2)', "SuLQ's C4.5": 'sulq_c45(t, "c", 2)', "disjoint": 'disjoint_forest(t, "c", 2, 2)',
    "shrunk": 'shrunk_tree(t, "c", 2)', "drawn": 'drawn_tree(t, "c")',
}  # fmt: skip
SHOWN = """
def leaf_of(r) { return r if len(r.children) == 0 else leaf_of(r.children[0 if r.attribute == "a" else 1]) }
def shown(m) {
    said = sum([leaf_of(r).counts[1] - leaf_of(r).counts[0] for r in m.roots])
    return said + (1000 if m.roots[0].attribute == "a" else 2000 if m.roots[0].attribute == "b" else 0)
}
"""


def _runs(rows: Rows, call: str, epsilon: float, runs: int, seed: int) -> np.ndarray:
    session = Session()
    session.bind("t", {name: np.array([row[i] for row in rows]) for i, name in enumerate("cab")})
    with mock.patch.object(exposures, "SecureNoise", lambda: SeededNoise(seed)):
        session.execute(Source("audit.jst", DECLARED + SHOWN))
        loop = Source("audit.jst", f"found = [shown({call} with epsilon {epsilon}) for i in 1..200]\n")
        found: list[float] = []
        while len(found) < runs:
            session.execute(loop)
            found.extend(session.names()["found"])
            session.events.clear()
    return np.round(np.array(found[:runs]), 6)


def cases(epsilon: float = 3, runs: int = 10_000) -> list[Case]:
    def case(name: str, call: str) -> Case:
        def draw(runs: int, rng: np.random.Generator) -> Pair:
            one, other = (_runs(rows, call, epsilon, runs, int(rng.integers(2**31))) for rows in (HERE, MORE))
            return one, other

        return Case(f"tree {name}", epsilon, draw, runs)

    return [case(name, call) for name, call in OPTIONS.items()]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.stdlib.audit_trees")
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--only", default="")
    asked, wrong = parser.parse_args(), 0
    for case in cases():
        if asked.only in case.name:
            finding = audit(case, asked.share)
            wrong += not finding.right
            said = f"shown {finding.bound:.3f}  {finding.runs} runs  {finding.event}"
            print(f"{case.name:>20}  ε {case.epsilon:g}  {said}", flush=True)
    return wrong


if __name__ == "__main__":
    raise SystemExit(main())
