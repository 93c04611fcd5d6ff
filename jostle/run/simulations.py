"""Public made-up data to train choices on: tables with a class, with a number to predict, and studies of a treatment.

Each is drawn by a seed, with as many rows as a range says, evenly on the log scale.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jostle.diagnostics import refuse
from jostle.run import declare
from jostle.run.registry import builtin
from jostle.run.values import Interval, JSet, Record, is_number

MOST = 1000
"""Of tables or studies in one call."""

TESTED = 2000
"""Rows of a test."""


@builtin
def _simulated_tables(
    count: object, seed: object = 1.0, *, rows: object = None, wide: object = False, at: object
) -> list[Record]:  # fmt: skip
    """`simulated_tables(40)`: public made-up tables, each a record {database, test, class}.

    `rows`: from how many to how many a database has (`500..20000`); a test has 2,000. `wide`: every third table has
    16 to 60 attributes, of which few speak of the class.
    """
    import numpy as np

    from jostle.kernels.classifiers.synthetic_tables import synthetic_table

    def table(number: int, drawn: int, least: int, most: int) -> Record:
        synthetic = synthetic_table(number, drawn, least, most, TESTED, bool(wide))
        classes = [f"class {c + 1}" for c in range(synthetic.classes)]
        columns: dict[str, Any] = {f"a{i + 1}": synthetic.cells[:, i] for i in range(len(synthetic.sizes))}
        columns["class"] = np.array(classes)[synthetic.labels]
        domains = Record({f"a{i + 1}": Interval(0.0, float(v - 1)) for i, v in enumerate(synthetic.sizes)})
        domains["class"] = JSet(classes)
        return Record({**_parts(columns, domains, at), "class": "class"})

    return _simulated("simulated_tables", count, seed, rows, Interval(500.0, 20_000.0), table)


@builtin
def _simulated_regressions(count: object, seed: object = 1.0, *, rows: object = None, at: object) -> list[Record]:
    """`simulated_regressions(40)`: public made-up tables, each a record {database, test, target}.

    `rows`: from how many to how many a database has (`300..30000`); a test has 2,000.
    """
    from jostle.kernels.regressions.simulated import TARGET, regression_table

    def table(number: int, drawn: int, least: int, most: int) -> Record:
        simulated = regression_table(number, drawn, least, most, TESTED)
        domains = Record(
            (name, JSet(list(known)) if isinstance(known[0], str) else Interval(known[0], known[1], not known[2]))
            for name, known in simulated.domains.items()
        )
        return Record({**_parts(simulated.columns, domains, at), "target": TARGET})

    return _simulated("simulated_regressions", count, seed, rows, Interval(300.0, 30_000.0), table)


@builtin
def _simulated_studies(count: Any, seed: Any = 1.0, *, rows: Any = None, at: Any) -> list[Record]:
    """`simulated_studies(40)`: public made-up studies, each a record {database, treatment, outcome, by, effect}.

    `rows`: from how many to how many a database has (`500..100000`). `effect` is the mean effect in the population that
    the rows are a sample of.
    """
    from jostle.kernels.statistics.simulated import simulated_study

    interp, span = at

    def study(number: int, drawn: int, least: int, most: int) -> Record:
        simulated = simulated_study(number, drawn, least, most)
        by = [f"x{i + 1}" for i in range(len(simulated.sizes))]
        domains = {name: Interval(0.0, size - 1.0) for name, size in zip(by, simulated.sizes, strict=True)}
        domains |= {"treated": Interval(0.0, 1.0), "outcome": Interval(0.0, 1.0, not simulated.binary)}
        database = declare.open_public(interp, simulated.drawn(drawn, number), Record(domains), span)
        known = {"treatment": "treated", "outcome": "outcome", "by": by, "effect": simulated.truth}
        return Record({"database": database, **known})

    return _simulated("simulated_studies", count, seed, rows, Interval(500.0, 100_000.0), study)


def _simulated(
    name: str, count: Any, seed: Any, rows: Any, usual: Interval, one: Callable[[int, int, int, int], Record]
) -> list[Record]:
    """So many of what `one` makes of a number, the seed, and the fewest and the most rows; what a program asked for is
    checked first."""
    for value, low, high in ((count, 1, MOST), (seed, 0, 2**31)):
        if not is_number(value) or not float(value).is_integer() or not low <= value <= high:
            raise refuse("ValueError", f"`{name}` takes whole numbers from {low} to {high}")
    range_ = usual if rows is None else rows
    if not isinstance(range_, Interval) or not 5 <= range_.low <= range_.high <= 10**6:
        raise refuse("ValueError", f"the rows of `{name}` are a range within 5..1000000")
    return [one(number, int(seed), int(range_.low), int(range_.high)) for number in range(int(count))]


def _parts(columns: dict[str, Any], domains: Record, at: Any) -> dict[str, Any]:
    """The last `TESTED` rows as a public test, the others as a public database."""
    interp, span = at
    parts = {"database": slice(None, -TESTED), "test": slice(-TESTED, None)}
    return {
        name: declare.open_public(interp, {n: column[part] for n, column in columns.items()}, domains, span)
        for name, part in parts.items()
    }
