"""`rows_right`: how many rows of a table a public classifier gets right, a score.

A row is right where the class that the model decides on, from the row's described cells, is the row's own. That is a
function of the row alone (`kernels.classifiers.rules`: whole numbers, looked up, added and compared), and it is 0 or 1.
So one row more raises the score by 0 or 1, whatever the model is: sensitivity 1, monotone. The model is a public value:
what it was fitted on has been paid for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jostle.diagnostics import refuse
from jostle.engine.plan import Column
from jostle.privacy.handles import Score, Table
from jostle.privacy.splits import column_key

if TYPE_CHECKING:
    from jostle.kernels.classifiers.models import Classifier
    from jostle.privacy.kernel import Kernel

RIGHT = "rows_right"
BLOCK = 2**15  # rows that are decided on at a time


def right_score(table: Table, model: Classifier, label: str) -> Score:
    """The rows of `table` whose class in the column `label` the model names; larger is better."""
    from jostle.kernels.classifiers.rules import checked

    read = [name for name in model.attributes if name != label]
    keys = tuple(column_key(Column(name), table) for name in (*read, label))
    rule, classes = model.rule(), tuple(model.classes)
    try:
        checked(rule, len(classes))
    except ValueError as error:
        raise refuse("ValueError", f"`{RIGHT}` cannot work with this classifier", help=str(error)) from None
    return Score(table.exposures, RIGHT, table, 1, True, 0, (rule, classes, keys))


def exact_right(kernel: Kernel, one: Score) -> int:
    """The exact number, for mechanisms only."""
    import numpy as np

    from jostle.kernels.classifiers.codes import Coded, plain, positions
    from jostle.kernels.classifiers.rules import decided

    if not isinstance(one.base, Table):
        raise refuse("TypeError", f"`{RIGHT}` takes a table")
    rule, classes, keys = one.arguments
    codes = kernel.vault.parts.codes(one.base.plan, keys)
    if codes is None:
        codes = kernel.engine.codes(one.base.plan, keys)
    total, named = 0, [str(key.expr.name) for key in keys]
    values = [(*map(plain, key.values), None) for key in keys]  # place −1, the last: none of them
    for start in range(0, len(codes[0]), BLOCK):
        block = [np.asarray(column[start : start + BLOCK], dtype=np.int64) for column in codes]
        columns = {n: Coded(v, c % len(v)) for n, v, c in zip(named, values, block, strict=True)}
        truth = positions(columns.pop(named[-1]), classes)
        total += int(((truth >= 0) & (decided(rule, columns, len(truth)) == truth)).sum())
    return total
