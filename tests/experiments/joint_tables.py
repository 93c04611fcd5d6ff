"""Tables of one joint measurement beside tables that are measured apart: the marginals of Adult, and a survey.

    python -m tests.experiments.joint_tables

All marginals of one and two of 14 attributes with the sizes of Adult: total squared error over the least (in closed
form, Xiao et al. 2023), over the least where no table is worse off than alone (by its dual), and under equal parts; and
`for the least total`, where tables may be.
"""

from __future__ import annotations

import sys
import time
from itertools import combinations
from math import prod
from pathlib import Path

import numpy as np

from jostle.kernels.workloads.joint_axes import Axis, Factor
from jostle.kernels.workloads.joint_strategy import Query, _Workload, strategy_for

SIZES = [85, 9, 100, 16, 7, 15, 6, 5, 2, 100, 100, 99, 42, 2]
SETS = [*combinations(range(14), 1), *combinations(range(14), 2)]
CELLS = np.array([prod(SIZES[i] for i in one) for one in SETS], dtype=float)


def queries(alone: float) -> tuple[list[Axis], list[Query]]:
    axes = [Axis([np.arange(n)]) for n in SIZES]
    factors = [Factor(axis, np.arange(n), n) for axis, n in zip(axes, SIZES, strict=True)]
    return axes, [Query(0, {i: factors[i] for i in one}, alone) for one in SETS]


def least_kept(axes: list[Axis], asked: list[Query]) -> tuple[float, float]:
    """The least total, and a bound on it where no table may be worse off than alone."""
    places: dict[tuple[int, tuple[tuple[int, int], ...]], int] = {}
    for query in asked:
        for residual in query.residuals:
            places.setdefault((0, residual), len(places))
    workload, many = _Workload(asked, places), len(asked)
    costs = np.array([prod(axes[axis].costs[level] for axis, level in one) for _, one in places])
    weights, bounds = np.ones(many), []
    for _ in range(3000):
        roots = np.sqrt(workload.errors(weights / many) * costs)
        bounds.append(float(roots.sum()) ** 2 - float(((weights - 1) * CELLS).sum()))
        weights = np.maximum(1, weights * workload.worst(costs * roots.sum() / roots))
    return bounds[0] * many, max(bounds) * many


def main() -> int:
    many = len(SETS)
    axes, asked = queries(float(many))
    least, kept = least_kept(axes, asked)
    for name, gaussian in (("rho", True), ("epsilon", False)):
        alone = float(many if gaussian else many**2)
        axes, asked = queries(alone)
        start = time.process_time()
        strategy = strategy_for(axes, asked, gaussian)
        took = time.process_time() - start
        total = sum(float(strategy.variances(query).sum()) for query in asked)
        worst = max(float(strategy.variances(query).max()) for query in asked) / alone
        print(f"{name}: equal parts have {alone * CELLS.sum() / total:.3f} times its total, worst table {worst:.4f} of "
              f"alone, planned in {took:.2f} s of CPU")  # fmt: skip
        if gaussian:
            print(f"rho: {total / least:.4f} of the least total, {kept / least:.4f} with the promise; equal parts "
                  f"{alone * CELLS.sum() / least:.3f}")  # fmt: skip
    for name, gaussian in (("rho", True), ("epsilon", False)):
        alone = float(many if gaussian else many**2)
        axes, asked = queries(alone)
        start = time.process_time()
        free = strategy_for(axes, asked, gaussian, fair=False)
        took = time.process_time() - start
        total = sum(float(free.variances(query).sum()) for query in asked)
        worse = [float(free.variances(query).max()) / alone for query in asked]
        of_least = f"{total / least:.6f} of the least, " if gaussian else ""
        print(f"{name}, for the least total: {of_least}equal parts {alone * CELLS.sum() / total:.3f} times it; "
              f"{sum(one > 1 for one in worse)} of {many} tables worse off than alone, one {max(worse):.1f} times in "
              f"variance, planned in {took:.2f} s of CPU")  # fmt: skip
    return survey()


def survey() -> int:
    """The twelve tables of `programs/survey.jst`."""
    from jostle.source import Source
    from jostle.tools.session import Session

    path = Path(__file__).resolve().parents[2] / "programs" / "survey.jst"
    session = Session(simulate=1)
    start = time.process_time()
    session.rehearse(Source(str(path), path.read_text(encoding="utf-8")), {})
    (told,) = [event.fields for event in session.events if "of_alone" in event.fields]
    ratios = told["of_alone"]
    print(f"survey: mean error {ratios['mean']:.3f} of that alone, largest {ratios['largest']:.3f}; "
          f"{time.process_time() - start:.2f} s of CPU with the run on simulated rows")  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
