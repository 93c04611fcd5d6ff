"""What programs need around regressions: how far one is off on public rows, and made-up tables to train choices on."""

from __future__ import annotations

import math
from typing import Any

from jostle.diagnostics import refuse
from jostle.privacy.kernel.handles import Table, handles_in
from jostle.privacy.kernel.public_rows import public_rows
from jostle.run import declare
from jostle.run.faults import private_value
from jostle.run.registry import builtin
from jostle.run.values import Interval, JSet, Record, is_model, is_number, kind_name

MOST_TABLES = 1000
TESTED = 2000


@builtin
def _prediction_error(table: Any, model: Any, *, at: Any) -> float:
    """`prediction_error(test, model)`: √(mean (y − ŷ)²) over the rows of a public table, y the model's target.

    Rows without a target are left out.
    """
    interp, _ = at
    for handle in handles_in(model):
        raise private_value(handle, "is no regression")
    if not is_model(model) or not hasattr(model, "target"):
        raise refuse("TypeError", f"`prediction_error` takes a regression, not {kind_name(model)}")
    if not isinstance(table, Table):
        raise refuse("TypeError", f"`prediction_error` takes a table, not {kind_name(table)}")
    missing = [name for name in (model.target, *model.attributes) if name not in table.domains]
    if missing:
        raise refuse("NameError", f"the table has no column `{missing[0]}`, which the regression reads")
    import numpy as np

    from jostle.kernels.classifiers.codes import coded

    columns, counts = public_rows(interp.kernel, table, coded)
    target = columns[model.target]
    values = [v if isinstance(v, float) else math.nan for v in target.values] or [math.nan]
    truth = np.array(values)[target.codes]
    off = model.predict(columns, len(counts)) - truth
    known = ~np.isnan(off)
    if not known.any():
        raise refuse("ValueError", f"the table has no rows with a `{model.target}`")
    return float(math.sqrt((counts[known] * off[known] ** 2).sum() / counts[known].sum()))


@builtin
def _simulated_regressions(count: Any, seed: Any = 1.0, *, rows: Any = None, at: Any) -> list[Record]:
    """`simulated_regressions(40)`: public made-up tables, each a record {database, test, target}.

    `rows`: from how many to how many a database has (`300..30000`, evenly on the log scale); a test has 2,000.
    """
    interp, span = at
    for value, low, high in ((count, 1, MOST_TABLES), (seed, 0, 2**31)):
        if not is_number(value) or not float(value).is_integer() or not low <= value <= high:
            raise refuse("ValueError", f"`simulated_regressions` takes whole numbers from {low} to {high}")
    range_ = rows if rows is not None else Interval(300.0, 30000.0)
    if not isinstance(range_, Interval) or not 5 <= range_.low <= range_.high <= 10**6:
        raise refuse("ValueError", "the rows of simulated tables are a range within 5..1000000")
    return [_opened(interp, i, int(seed), int(range_.low), int(range_.high), span) for i in range(int(count))]


def _opened(interp: Any, number: int, seed: int, least: int, most: int, span: Any) -> Record:
    from jostle.kernels.regressions.simulated import TARGET, regression_table

    table = regression_table(number, seed, least, most, TESTED)
    domains = Record(
        (name, JSet(list(known)) if isinstance(known[0], str) else Interval(known[0], known[1], not known[2]))
        for name, known in table.domains.items()
    )
    train, test = (
        declare.open_public(interp, {name: column[part] for name, column in table.columns.items()}, domains, span)
        for part in (slice(None, -TESTED), slice(-TESTED, None))
    )
    return Record({"database": train, "test": test, "target": TARGET})
