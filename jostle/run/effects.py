"""Made-up studies of a treatment, whose effect is known, to train choices among estimators on."""

from __future__ import annotations

from typing import Any

from jostle.diagnostics import refuse
from jostle.run import declare
from jostle.run.registry import builtin
from jostle.run.values import Interval, Record, is_number

MOST_STUDIES = 1000


@builtin
def _simulated_studies(count: Any, seed: Any = 1.0, *, rows: Any = None, at: Any) -> list[Record]:
    """`simulated_studies(40)`: public made-up studies, each a record {database, treatment, outcome, by, effect}.

    `rows`: from how many to how many a database has (`500..100000`, evenly on the log scale). `effect` is the mean
    effect in the population that the rows are a sample of.
    """
    interp, span = at
    for value, low, high in ((count, 1, MOST_STUDIES), (seed, 0, 2**31)):
        if not is_number(value) or not float(value).is_integer() or not low <= value <= high:
            raise refuse("ValueError", f"`simulated_studies` takes whole numbers from {low} to {high}")
    range_ = rows if rows is not None else Interval(500.0, 100000.0)
    if not isinstance(range_, Interval) or not 5 <= range_.low <= range_.high <= 10**6:
        raise refuse("ValueError", "the rows of simulated studies are a range within 5..1000000")
    return [_opened(interp, i, int(seed), int(range_.low), int(range_.high), span) for i in range(int(count))]


def _opened(interp: Any, number: int, seed: int, least: int, most: int, span: Any) -> Record:
    from jostle.kernels.statistics.simulated import simulated_study

    study = simulated_study(number, seed, least, most)
    columns = study.drawn(seed, number)
    domains = Record({f"x{i + 1}": Interval(0.0, size - 1.0) for i, size in enumerate(study.sizes)})
    domains |= {"treated": Interval(0.0, 1.0), "outcome": Interval(0.0, 1.0, not study.binary)}
    database = declare.open_public(interp, columns, Record(domains), span)
    by = [f"x{i + 1}" for i in range(len(study.sizes))]
    known = {"treatment": "treated", "outcome": "outcome", "by": by, "effect": study.truth}
    return Record({"database": database, **known})
