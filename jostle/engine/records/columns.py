"""Weighted records as columns: arrays of values, and an array of Python's integers, which no weight is too large
for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jostle.engine.dense import evaluate
from jostle.plan.plan import RowExpr

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Column = NDArray[Any]  # float64, bool or object of str, none of them missing, (rows,)
    Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Block:
    """Some records, of which several may be equal: their weights add up."""

    columns: Mapping[str, Column]
    weights: NDArray[Any]  # object: whole numbers of at least 0, (rows,)

    @property
    def size(self) -> int:
        return len(self.weights)

    def at(self, rows: NDArray[Any]) -> Block:
        """The records at these places, or those for which a mask is true."""
        return Block({name: column[rows] for name, column in self.columns.items()}, self.weights[rows])


def of_tuples(names: Sequence[str], rows: Sequence[tuple[Any, ...]], counts: Ints) -> Block:
    """Different combinations of values, each as heavy as it is often there."""
    import numpy as np

    listed = list(zip(*rows, strict=True)) or [()] * len(names)
    return Block({name: _column(list(c)) for name, c in zip(names, listed, strict=True)}, np.asarray(counts, object))


def _column(values: list[Any]) -> Column:
    import numpy as np

    if values and isinstance(values[0], str):
        return np.array(values, dtype=object)
    if values and isinstance(values[0], bool):
        return np.array(values, dtype=bool)
    return np.array(values, dtype=np.float64) + 0.0


def where(block: Block, condition: RowExpr) -> Block:
    """The records for which a condition is true."""
    holds, known = evaluate(condition, block.columns)
    return block.at(holds.astype(bool) & known)


def mapped(block: Block, columns: Sequence[tuple[str, RowExpr]]) -> Block:
    """The records that are calculated, without those of which a column has no value."""
    import numpy as np

    made, whole = {}, np.ones(block.size, dtype=bool)
    for name, expr in columns:
        values, known = evaluate(expr, block.columns)
        made[name] = np.array(values) if values.dtype.kind in "bO" else values + 0.0
        whole &= known
    return Block(made, block.weights).at(whole)


def merged(blocks: Iterable[Block], names: Sequence[str]) -> Block:
    """The records of all blocks, each once, with what it weighs in all; none of weight 0."""
    import numpy as np

    some = [block for block in blocks if block.size]
    if not some:
        return Block({name: np.zeros(0) for name in names}, np.zeros(0, dtype=object))
    columns = {name: np.concatenate([block.columns[name] for block in some]) for name in names}
    weights = np.concatenate([block.weights for block in some])
    codes = codes_of([columns[name] for name in names], len(weights))
    firsts, totals = sums(codes, weights)
    there = totals > 0
    return Block({name: column[firsts[there]] for name, column in columns.items()}, totals[there])


def codes_of(columns: Sequence[Column], size: int) -> Ints:
    """A whole number for each row, equal for two that are equal in all columns; from 0 up without a gap."""
    import numpy as np

    codes = np.zeros(size, dtype=np.int64)
    for column in columns:
        values, inverse = np.unique(column, return_inverse=True)
        _, codes = np.unique(codes * max(1, len(values)) + inverse.reshape(-1), return_inverse=True)
    return np.asarray(codes.reshape(-1), dtype=np.int64)


def sums(codes: Ints, weights: NDArray[Any]) -> tuple[Ints, NDArray[Any]]:
    """For each code, in order, the place where it stands first, and the sum of its weights."""
    import numpy as np

    if not len(codes):
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=object)
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    return order[starts], np.add.reduceat(weights[order], starts)
