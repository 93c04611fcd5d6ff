"""How a choice does by validation and by margin on the training runs, beside what it does by features.

Each is run whole on every training instance, as a call would be: all Options with their parts of the amount, and the
selection, with seeded noise. The mean utility of the answers is compared with that of the table of runs.
"""

from __future__ import annotations

from jostle.accounting.amounts import Amount, quanta
from jostle.choice.program import ProgramBench
from jostle.choice.table import RunTable
from jostle.choice.training import REPEATS, seed
from jostle.choice.workers import run_all
from jostle.syntax.nodes import MARGIN, VALIDATION
from jostle.threads import on_one_thread

Utilities = dict[str, list[float]]
"""For each way the mean utility of its answers in each of a table's runs."""


def utilities_by_score(
    bench: ProgramBench, table: RunTable, unit: str, delta: object, share: float | None, workers: int | None
) -> Utilities:
    """Those of each way that can be: none where the Utility gives no scores, by margin only with a `delta`."""
    if not table.runs or table.exact or not bench.scores(bench.instance(0, 1.0, 0)):
        return {}
    room = quanta(delta, "delta") if delta is not None else 0

    @on_one_thread
    def piece(number: int) -> list[float]:
        run = table.runs[number]
        place = (table.key, run.database, table.databases[run.database], repr(run.scale))
        instance = bench.instance(run.database, run.scale, seed(*place, "instance"))
        means = []
        for way in ways:
            amount = Amount(unit, quanta(run.epsilon, unit), room if way == MARGIN else 0)
            answers = (
                bench.validated(way, share, instance, amount, seed(*place, repr(run.epsilon), way, k))
                for k in range(REPEATS)
            )
            means.append(sum(bench.utility(instance, one) for one in answers) / REPEATS)
        return means

    ways = [VALIDATION, MARGIN] if room else [VALIDATION]
    rows = run_all(piece, len(table.runs), None, workers)
    return {way: [row[k] for row in rows] for k, way in enumerate(ways)}
