"""Row counts: the sum of a whole number of each row, as a score.

A row program gives each row of a table a whole number within a public interval, from the row's described cells
(`privacy.rows`). One row more or less moves the sum by at most the largest absolute value in that interval, and by
nothing else: a program is a function of the row alone and cannot fail. Where no number is negative the score is
monotone. `correct_count` is such a count: how many rows of a table a public classifier gets right.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jostle.plan.plan import Column, Key, Summands
from jostle.privacy.kernel.handles import Table
from jostle.privacy.rows.folds import CountFold
from jostle.privacy.rows.norms import RowCount
from jostle.privacy.scores.rule import Rule, Score
from jostle.privacy.scores.splits import key_of_column, table_of

if TYPE_CHECKING:
    from jostle.privacy.reading.vault import Reader


@dataclass(frozen=True, eq=False)
class RowCountRule(Rule, Summands):
    def exact(self, reader: Reader, score: Score) -> list[int]:
        return self.exact_each(reader, [score])[0]

    def exact_each(self, reader: Reader, scores: Sequence[Score]) -> list[list[int]]:
        """Counts of the same columns of one table are made in one pass over its rows."""
        totals: dict[int, int] = {}
        together: dict[tuple[int, tuple[Key, ...]], list[int]] = {}
        for i, one in enumerate(scores):
            together.setdefault((id(one.base), one.arguments[1]), []).append(i)
        for (_, keys), places in together.items():
            fold = CountFold(tuple(scores[i].arguments[0] for i in places))
            sums = reader.coded(table_of(scores[places[0]]).plan, keys, fold)
            totals.update(zip(places, map(int, sums), strict=True))
        return [[totals[i]] for i in range(len(scores))]


ROWS_RIGHT = RowCountRule("correct_count", False)


def row_count(table: Table, names: tuple[str, ...], build: Callable[[Mapping[str, Any]], RowCount]) -> Score:
    """The sum over the rows of `table` of what a program gives for the columns `names`, each of public values.

    `build` makes the program for these columns' values: its inputs are the places among them, −1 for none.
    """
    keys = tuple(key_of_column(Column(name), table) for name in names)
    count = build({name: key.values for name, key in zip(names, keys, strict=True)})
    intervals = [(i.low, i.high) for i in count.program.inputs]
    if intervals != [(-1, len(key.values) - 1) for key in keys]:
        raise ValueError("a program's inputs are the places of its columns' values")
    (number,) = count.program.outputs
    return Score(table.exposures, ROWS_RIGHT, table, max(1, count.sensitivity), number.low >= 0, 0, (count, keys))
