"""The options of `hierarchies`, `grids` and `clusters` under the audit: `python -m tests.stdlib.audit_options`.

Those that measure once are audited by the likelihood ratio of all they draw; those whose later steps depend on
earlier ones are run whole, thousands of times, and judged by two of their answers.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "audit"))

from harness import Case, audit
from mechanisms import ONE, ZEROS, adaptive, on_counts

SETTING = "use hierarchies\nuse grids\nuse clusters\nq = prefixes(c)\n"
AT_ONCE = ("privelet", "greedy_h", "quadtree")
BY_STEPS = ("ugrid(c, q)", "agrid(c, q)", "mwem_star(c, q, 2)", "ahp(c, q)", "dpcube(c, q)")


def at_once(epsilon: float = 1) -> list[Case]:
    """Options of one measurement, on no rows against one."""
    return [
        on_counts(f"option {name}", epsilon, f"{SETTING}n = {name}(c, q) with epsilon {epsilon}", ZEROS, ONE)
        for name in AT_ONCE
    ]


def by_steps(epsilon: float = 1, runs: int = 12_000) -> list[Case]:
    """Options of several; told by what they say of the cell that one database has a row in."""
    value = "(lambda a: a[1] - a[0])({} with epsilon {})"
    return [
        adaptive(f"option {name}", epsilon, SETTING, value.format(name, epsilon), ZEROS, ONE, runs) for name in BY_STEPS
    ]


def main() -> int:
    wrong = 0
    for case in [*at_once(), *by_steps()]:
        finding = audit(case)
        wrong += not finding.right
        print(f"{case.name:>28}  ε {case.epsilon:g}  bound {finding.bound:.3f}  {finding.runs} runs  {finding.event}")
    return wrong


if __name__ == "__main__":
    raise SystemExit(main())
