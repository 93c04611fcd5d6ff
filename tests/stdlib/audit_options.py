"""Options under the audit, `shrinkage` and those of `hierarchies`, `grids`, `clusters`, `cuts`:
`python -m tests.stdlib.audit_options`.

Those that measure once are audited by the likelihood ratio of all they draw, and so are those whose later steps depend
on what they selected, once for each outcome; those that go on from noisy numbers are run whole, thousands of times,
and judged by two of their answers.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "audit"))

from harness import Case, audit
from mechanisms import ONE, ZEROS, adaptive, by_outcomes, on_counts

SETTING = "use hierarchies\nuse grids\nuse clusters\nuse cuts\nq = prefixes(c)\n"
AT_ONCE = ("privelet", "greedy_h", "quadtree", "shrinkage", "tree_shrinkage")
SUMS = ("tree_shrinkage(c, q)", "tree_shrinkage(c, q, signal = 1)")
"""Of 64 cells, since a strategy for four has no sums."""
BY_SELECTIONS = ("privtree(c, q)", "mwem_star(c, q, 2)", "dawa_shrinkage(c, q)")
BY_STEPS = ("ugrid(c, q)", "agrid(c, q)", "ahp(c, q)", "dpcube(c, q)", "dawa_boxes(c, q)", "adaptive(c, q)")


def at_once(epsilon: float = 1) -> list[Case]:
    """Options of one measurement, on no rows against one."""
    return [
        on_counts(f"option {name}", epsilon, f"{SETTING}n = {name}(c, q) with epsilon {epsilon}", ZEROS, ONE)
        for name in AT_ONCE
    ] + [
        on_counts(f"{name}, 64 cells", epsilon, f"{SETTING}n = {name} with epsilon {epsilon}", [0] * 64, [1] + [0] * 63)
        for name in SUMS
    ]


def by_selections(epsilon: float = 1) -> list[Case]:
    """Options that select first, on no rows against one, and on rows in two places against one more."""
    return [
        by_outcomes(f"option {name}{more}", epsilon, f"{SETTING}n = {name} with epsilon {epsilon}\n", x, y)
        for name in BY_SELECTIONS
        for x, y, more in ((ZEROS, ONE, ""), ([9, 0, 9, 0], [9, 1, 9, 0], ", some rows"))
    ]


def by_steps(epsilon: float = 1, runs: int = 12_000) -> list[Case]:
    """Options of several; told by what they say of the cell that one database has a row in."""
    value = "(lambda a: a[1] - a[0])({} with epsilon {})"
    return [
        adaptive(f"option {name}", epsilon, SETTING, value.format(name, epsilon), ZEROS, ONE, runs) for name in BY_STEPS
    ]


def main() -> int:
    wrong = 0
    for case in [*at_once(), *by_selections(), *by_steps()]:
        finding = audit(case)
        wrong += not finding.right
        print(f"{case.name:>28}  ε {case.epsilon:g}  bound {finding.bound:.3f}  {finding.runs} runs  {finding.event}")
    return wrong


if __name__ == "__main__":
    raise SystemExit(main())
