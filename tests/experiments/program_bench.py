"""The options of `stdlib/` for histograms on DPBench's data, run by the interpreter as training runs them.

Options, features and the utility are written in the language; the data are public, given to the options as if
private, with a budget of the amount at hand and seeded noise of the same law. Nothing here may tell an option a true
total or a true feature.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from jostle.choice.program import ProgramBench
from jostle.choice.table import ChoiceParts
from jostle.kernels.histograms import strategies
from jostle.source import Source
from jostle.tools.session import Session
from tests.experiments import dpbench

OPTIONS = ("flat", "uniform", "hb", "hdmm", "dawa", "mwem")
MORE = ("privelet", "greedy_h", "quadtree", "ugrid", "agrid", "mwem_star", "ahp", "dpcube")
"""Those of `hierarchies`, `grids` and `clusters`; `--options more` measures them."""
CUTS = ("privtree", "dawa_boxes")
"""Those of `cuts`."""

PROGRAM = """\
use histograms
use hierarchies
use grids
use clusters
use cuts
use features

error = Utility (data, answers) {
    return -1e6 * scaled_error(answers, exact(data.queries, data.database), size(data.database))
}
# The features of Figure 1.2, each from one measurement, as shares of a noisy number of rows where they are shares.
uniformity = Feature (data) {
    away = laplace(l1_to_uniform(data.database)) with epsilon epsilon / 2
    n = laplace(size(data.database))
    return clamp(away / max(1, n), 0, 1)
}
sparsity = Feature (data) { return laplace(nonzero(data.database)) / data.database.domain_size }
"""


# A strategy that is fitted to the workload alone is public, and the same for all runs here: it is made once.
strategies.hdmm_strategy = lru_cache(maxsize=8)(strategies.hdmm_strategy)


class ScaledBench(ProgramBench):
    """A program's bench whose data sets are taken at DPBench's scales, a number of rows each."""

    rows: tuple[float, ...] = (1e3, 1e4, 1e5, 1e6)
    sizes: tuple[float, ...] = ()

    def scales(self, database: int) -> tuple[float, ...]:
        return tuple(rows / self.sizes[database] for rows in self.rows)

    def rows_at(self, database: int, scale: float) -> float:
        return float(f"{scale * self.sizes[database]:.6g}")


def bench(
    dimension: int,
    options: Sequence[str] = OPTIONS,
    features: Sequence[str] = (),
    data: Sequence[str] | None = None,
    rows: Sequence[float] = ScaledBench.rows,
    program: str = PROGRAM,
    shape: tuple[int, ...] | None = None,
    workload: str = "",
    made_up: Mapping[str, Any] | None = None,
) -> ScaledBench:
    """The named functions of `histograms`, with named Features, over DPBench's sets of one or two dimensions.

    `made_up`: more data sets by name, arrays of counts, after those.
    """
    arrays = {name: dpbench.coarse(name, dimension, shape) for name in data or dpbench.names(dimension)}
    arrays |= dict(made_up or {})
    data = tuple(arrays)
    session = Session()
    text = [program]
    for name in options:
        text.append(f"option_{name} = Option (data) {{ return {name}(data.database, data.queries) }}")
    for i, name in enumerate(data):
        session.bind(name, arrays[name])
        text.append(f'cube{i} = bound("{name}")')
    text.append(f"queries = {workload or ('ranges' if dimension == 1 else 'rectangles')}(cube0)")
    text += [f"d{i} = {{database: cube{i}, queries: queries}}" for i in range(len(data))]
    session.execute(Source("experiment", "\n".join(text) + "\n"))
    known: dict[str, Any] = session.names()
    parts = ChoiceParts(
        options=tuple(known[f"option_{name}"] for name in options),
        option_names=tuple(options),
        features=tuple(known[name] for name in features),
        feature_names=tuple(features),
        utility=known["error"],
        databases=tuple(known[f"d{i}"] for i in range(len(data))),
    )
    made = ScaledBench(session._interp, parts)
    made.rows, made.sizes = tuple(rows), tuple(float(x.sum()) for x in arrays.values())
    made.database_names = tuple(data)
    return made
