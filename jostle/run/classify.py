"""What programs need around classifiers and regressions: how right one is on rows."""

from __future__ import annotations

import math
from typing import Any

from jostle.diagnostics import refuse
from jostle.plan.domains import Integer, Real
from jostle.privacy.kernel.exposures import handles_in
from jostle.privacy.kernel.handles import ColumnHandle, Table
from jostle.privacy.measurements.choices import NoisyScore
from jostle.privacy.scores import rowcounts
from jostle.privacy.transformations import transform
from jostle.run.bins import bin_number
from jostle.run.faults import private_value
from jostle.run.registry import builtin
from jostle.run.values import is_model, kind_name


@builtin
def _accuracy(table: Any, model: Any, label: Any, *, at: Any) -> float:
    """`accuracy(test, model, class)`: the share of the rows of a public table whose class the model names."""
    interp, _ = at
    table, model = _in_order(table, model)
    name = _class_of("accuracy", model, table, label)
    from jostle.kernels.classifiers.codes import coded, positions

    columns, counts = interp.data.rows(table, coded)
    truth = positions(columns[name], model.classes)
    counted = counts * (columns[name].codes >= 0)
    if not counted.sum():
        raise refuse("ValueError", "the table has no rows to be right on")
    read = {n: columns[n] for n in model.attributes if n != name} or {name: columns[name]}
    return float((counted * (model.predict(read) == truth)).sum() / counted.sum())


@builtin
def _correct_count(table: Any, model: Any, label: Any, *, at: Any) -> Any:
    """`correct_count(D, model, class)`: how many rows of a table a public classifier gets right, a score."""
    from jostle.kernels.rowprograms.decisions import right_count

    interp, span = at
    table, model = _in_order(table, model)
    name = _class_of("correct_count", model, table, label)
    table, model = _in_bins(table, model, name)
    read = tuple(n for n in model.attributes if n != name)
    try:
        score = rowcounts.row_count(
            table, (*read, name), lambda values: right_count(model.scores, model.classes, values, name)
        )
    except ValueError as error:
        raise refuse("ValueError", "`correct_count` cannot work with this classifier", help=str(error)) from None
    return score if score.private else interp.kernel.measure(NoisyScore.of(score, None, None), span)


def _in_bins(table: Table, model: object, label: str) -> tuple[Table, Any]:
    """The table with its numbers in the bins of a classifier of raw columns, and the classifier of these bins.

    A wide or real column has more numbers than can be listed, and few bins.
    """
    from jostle.kernels.classifiers.models import Binned

    while isinstance(model, Binned):
        cuts = {n: c for n, c in model.cuts.items() if n in model.inner.attributes and n != label}
        if not all(isinstance(table.domains[n], Integer | Real) for n in cuts):
            break
        table = transform.derive(table, [(n, bin_number(n, c.edges)) for n, c in cuts.items()])
        model = model.inner
    return table, model


def _in_order(table: object, model: object) -> tuple[Any, Any]:
    """What is read first; in the version before the model stood before it."""
    return (model, table) if is_model(table) or isinstance(model, Table) else (table, model)


def _class_of(what: str, model: Any, table: Any, label: Any) -> str:
    """The class column's name, where a classifier and a table fit together."""
    for handle in handles_in(model):
        raise private_value(handle, "is no classifier")
    if not is_model(model) or not hasattr(model, "scores") or not hasattr(model, "classes"):
        raise refuse("TypeError", f"`{what}` takes a classifier, not {kind_name(model)}")
    if not isinstance(table, Table):
        raise refuse("TypeError", f"`{what}` takes a table, not {kind_name(table)}")
    name = label.name if isinstance(label, ColumnHandle) else label
    if not isinstance(name, str) or name not in table.domains:
        raise refuse("NameError", f"`{what}` takes the class as a column of the table", help="or as its name")
    missing = [n for n in model.attributes if n != name and n not in table.domains]
    if missing:
        raise refuse("NameError", f"the table has no column `{missing[0]}`, which the classifier reads")
    return name


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
