"""`bootstrap(cells, option, queries, epsilon = e)` estimates how accurate an option is on data like its own estimate.

For options whose error is not known in closed form (`dawa`, `mwem`, …): the released cells are taken for the data, and
the option runs on them again and again with the noise it had (Efron's parametric bootstrap). The cells are public, the
noise is seeded and simulated as in training, and no private source can be charged meanwhile: it costs nothing. What it
says holds for data like the estimate; what the estimate has smoothed away it cannot know.
"""

from __future__ import annotations

from typing import Any

from jostle.accounting.amounts import Amount, quanta
from jostle.choice.program import public_only, simulated_private
from jostle.diagnostics import refuse
from jostle.language.forms import DIMENSIONS
from jostle.lazy import np
from jostle.privacy.reading.minting import exposed, public_cube
from jostle.run.faults import private_value
from jostle.run.registry import builtin
from jostle.run.values import Part, Record, handles_in, is_number, is_sequence, is_workload, kind_name

MOST_RUNS = 10_000


@builtin
def _bootstrap(
    cells: Any, option: Any, queries: Any, *, epsilon: Any = None, rho: Any = None, runs: Any = 100.0, seed: Any = 0.0,
    at: Any,
) -> Record:  # fmt: skip
    """`standard_error` (root mean square of the error, with its bias), `error` (its 95 % quantile) and `bias`.

    Each has an element a query. `option(db, queries)` is called under an allotment of `epsilon` (or `rho`) in all.
    """
    interp, _ = at
    if is_sequence(option) or hasattr(option, "shape"):  # the order of the version before
        cells, option = option, cells
    for handle in handles_in([cells, queries, epsilon, rho]):
        raise private_value(handle, "cannot be rehearsed on: `bootstrap` takes released cells")
    if not is_workload(queries):
        raise refuse("TypeError", f"queries are a workload, not {kind_name(queries)}", help="such as `prefixes(ages)`")
    if (epsilon is None) == (rho is None):
        raise refuse("NoEpsilon", "`bootstrap` takes the amount that the option had", help="`epsilon = 0.5`")
    if not (is_number(runs) and 2 <= runs <= MOST_RUNS and is_number(seed)):
        raise refuse("ValueError", f"`bootstrap` makes 2 to {MOST_RUNS:,} runs")
    unit = "epsilon" if rho is None else "rho"
    amount = Amount(unit, quanta(epsilon if rho is None else rho, unit))
    counts = _counts(np.asarray(cells, dtype=float), tuple(queries.shape))
    names = tuple(DIMENSIONS[i] if i < 3 else f"d{i + 1}" for i in range(counts.ndim))
    cube = public_cube(interp.data, counts, names)
    truth = queries.answers(counts.astype(float))
    errors = np.empty((int(runs), len(truth)))
    with public_only(interp):
        for i in range(int(runs)):
            view, source = simulated_private(cube, amount, 1, int(seed) * MOST_RUNS + i)
            arguments = [Record(database=view, queries=queries)] if isinstance(option, Part) else [view, queries]
            with interp.kernel.allot(amount, None, exposed(source)):
                answers = np.asarray(interp.call(option, arguments), dtype=float).ravel()
            if answers.shape != truth.shape:
                raise refuse("ValueError", "`bootstrap` takes an option that returns an answer for each query")
            errors[i] = answers - truth
    return Record(
        standard_error=np.sqrt((errors**2).mean(axis=0)),
        error=np.quantile(np.abs(errors), 0.95, axis=0),
        bias=errors.mean(axis=0),
    )


def _counts(cells: Any, shape: tuple[int, ...]) -> Any:
    """Whole counts like the cells: every sum of cells in a row is within one of theirs."""
    if cells.size != int(np.prod(shape)) or not np.isfinite(cells).all():
        raise refuse("ValueError", f"these cells do not fit queries for shape {shape}")
    if cells.sum(where=cells > 0) > 1e15:
        raise refuse("ValueError", "these cells count more than can be counted")
    rising = np.rint(np.cumsum(np.maximum(cells.ravel(), 0.0)))
    return np.diff(rising, prepend=0.0).astype(np.int64).reshape(shape)
