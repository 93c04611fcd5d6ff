"""How a choice does by validation on the training runs, beside what it does by features.

It is run whole on every training instance, as a call would be: all Options with their parts of the amount, and the
selection, with seeded noise. The mean utility of the answers is compared with that of the table of runs.
"""

from __future__ import annotations

from jostle.accounting.amounts import Amount, quanta
from jostle.choice.program import ProgramBench
from jostle.choice.table import RunTable
from jostle.choice.training import REPEATS, seed
from jostle.choice.workers import run_all
from jostle.syntax.nodes import VALIDATION
from jostle.threads import on_one_thread

Utilities = dict[str, list[float]]
"""For each way the mean utility of its answers in each of a table's runs."""


def utilities_by_score(
    bench: ProgramBench, table: RunTable, unit: str, share: float | None, workers: int | None
) -> Utilities:
    """Those by validation; none where the Utility gives no scores."""
    if not table.runs or table.exact or not bench.scores(bench.instance(0, 1.0, 0)):
        return {}

    @on_one_thread
    def piece(number: int) -> list[float]:
        run = table.runs[number]
        place = (table.key, run.database, table.databases[run.database], repr(run.scale))
        instance = bench.instance(run.database, run.scale, seed(*place, "instance"))
        amount = Amount(unit, quanta(run.epsilon, unit))
        seeds = [seed(*place, repr(run.epsilon), VALIDATION, k) for k in range(REPEATS)]
        answers = (bench.validated(VALIDATION, share, instance, amount, one) for one in seeds)
        return [bench.utility(instance, one) for one in answers]

    return {VALIDATION: [sum(runs) / REPEATS for runs in run_all(piece, len(table.runs), None, workers)]}
