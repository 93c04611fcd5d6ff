"""What programs need around regressions: how far one is off on public rows."""

from __future__ import annotations

import math
from typing import Any

from jostle.diagnostics import refuse
from jostle.privacy.kernel.exposures import handles_in
from jostle.privacy.kernel.handles import Table
from jostle.run.faults import private_value
from jostle.run.registry import builtin
from jostle.run.values import is_model, kind_name


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

    columns, counts = interp.data.rows(table, coded)
    target = columns[model.target]
    values = [v if isinstance(v, float) else math.nan for v in target.values] or [math.nan]
    truth = np.array(values)[target.codes]
    off = model.predict(columns, len(counts)) - truth
    known = ~np.isnan(off)
    if not known.any():
        raise refuse("ValueError", f"the table has no rows with a `{model.target}`")
    return float(math.sqrt((counts[known] * off[known] ** 2).sum() / counts[known].sum()))
