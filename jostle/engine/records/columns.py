"""Weighted records as columns: arrays of values, and an array of Python's integers, which no weight is too large
for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from jostle.integers import fixed_width
from jostle.plan.kinds import domain_kind
from jostle.plan.records import Schema

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Column = NDArray[Any]  # float64, bool or object of str, by the kind of the column; none of them missing, (rows,)
    Ints = NDArray[np.int64]

_TYPES = {"number": "float64", "boolean": "bool", "text": "object"}


class Block(Struct, frozen=True):
    """Some records, of which several may be equal: their weights add up."""

    columns: Mapping[str, Column]
    weights: NDArray[Any]  # object: whole numbers of at least 0, (rows,)

    @property
    def size(self) -> int:
        return len(self.weights)

    def at(self, rows: NDArray[Any]) -> Block:
        """The records at these places, or those for which a mask is true."""
        return Block({name: column[rows] for name, column in self.columns.items()}, self.weights[rows])


def typed(schema: Schema, columns: Sequence[Any], weights: Any) -> Block:
    """Columns in the types of their kinds, which are public: of no rows too."""
    import numpy as np

    block = {
        name: np.array(column, dtype=_TYPES[domain_kind(domain)])
        for (name, domain), column in zip(schema, columns, strict=True)
    }
    return Block({name: c + 0.0 if c.dtype == float else c for name, c in block.items()}, np.asarray(weights, object))


def of_tuples(schema: Schema, rows: Sequence[tuple[Any, ...]], counts: Ints) -> Block:
    """Different combinations of values, each as heavy as it is often there."""
    return typed(schema, list(zip(*rows, strict=True)) or [()] * len(schema), counts)


def merged(schema: Schema, blocks: Sequence[Block]) -> Block:
    """The records of all blocks, each once, with what it weighs in all; none of weight 0."""
    import numpy as np

    blocks = [typed(schema, [()] * len(schema), []), *blocks]
    columns = {name: np.concatenate([block.columns[name] for block in blocks]) for name, _ in schema}
    weights = np.concatenate([block.weights for block in blocks])
    firsts, totals = sums(codes_of([*columns.values()], len(weights)), weights)
    there = totals > 0
    return Block({name: column[firsts[there]] for name, column in columns.items()}, totals[there])


def codes_of(columns: Sequence[Column], size: int) -> Ints:
    """A whole number for each row, equal for two that are equal in all columns; from 0 up without a gap."""
    import numpy as np

    codes, many = np.zeros(size, dtype=np.int64), 1
    for column in columns:
        values, inverse = np.unique(column, return_inverse=True)
        if many * len(values) >= 2**62:
            found, codes = np.unique(codes, return_inverse=True)
            many, codes = len(found), codes.reshape(-1)
        codes, many = codes * len(values) + inverse.reshape(-1), many * len(values)
    _, codes = np.unique(codes, return_inverse=True)
    return fixed_width(codes.reshape(-1))


def sums(codes: Ints, weights: NDArray[Any]) -> tuple[Ints, NDArray[Any]]:
    """For each code, in order, the place where it stands first, and the sum of its weights."""
    import numpy as np

    if not len(codes):
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=object)
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    return order[starts], np.add.reduceat(weights[order], starts)
