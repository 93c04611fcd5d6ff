"""Weighted records as columns: arrays of values, and an array of Python's integers, which no weight is too large
for.

Groups of weighted records: prefixes by falling weight, and what their sizes or numbers come to.

A prefix stands for a set, of which the order is none: where records weigh as much, only the whole of them ends a prefix
of a weight above 0, so that what is made of a prefix is a function of a set of records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from jostle.integers import fixed_width
from jostle.plan.kinds import domain_kind
from jostle.plan.records import Reduced, Schema, Sized

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Column = NDArray[Any]
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
            distinct, codes = np.unique(codes, return_inverse=True)
            many, codes = len(distinct), codes.reshape(-1)
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


def sized(block: Block, plan: Sized) -> Block:
    """The size of each prefix, at most `most`, with what it weighs in halves of a unit."""
    import numpy as np

    ranked, _, starts, weights = _ranked(block, plan.by)
    sizes = np.arange(ranked.size) - starts + 1
    return _block(ranked, plan, np.minimum(sizes, plan.most).astype(float), weights)


def reduced(block: Block, plan: Reduced) -> Block:
    """The largest, the smallest or the sum of the numbers of each prefix, in the same way."""
    import numpy as np

    ranked, groups, starts, weights = _ranked(block, plan.by)
    numbers = ranked.columns[plan.of]
    if plan.reducer == "sum":
        totals = np.cumsum(np.array([int(x) for x in numbers.tolist()], dtype=object))
        before = np.concatenate([np.zeros(1, dtype=object), totals])[starts]
        values = np.array([float(min(max(t, plan.low), plan.high)) for t in totals - before], dtype=float)
    else:
        every, places = np.unique(numbers, return_inverse=True)
        order = places.reshape(-1) if plan.reducer == "max" else len(every) - 1 - places.reshape(-1)
        so_far = np.maximum.accumulate(groups * max(1, len(every)) + order) % max(1, len(every))
        values = every[so_far if plan.reducer == "max" else len(every) - 1 - so_far]
    return _block(ranked, plan, np.asarray(values, dtype=float) + 0.0, weights)


def _ranked(block: Block, by: tuple[str, ...]) -> tuple[Block, Ints, Ints, NDArray[Any]]:
    """The records by group and falling weight, the group of each, where it starts, and the weight of the prefix that
    each one ends: what it weighs more than the next."""
    import numpy as np

    if not block.size:
        none = np.zeros(0, dtype=np.int64)
        return block, none, none, block.weights
    groups = codes_of([block.columns[name] for name in by], block.size)
    _, heights = np.unique(block.weights, return_inverse=True)
    order = np.lexsort((-heights.reshape(-1), groups))
    groups, weights = groups[order], block.weights[order]
    begins = np.diff(groups, prepend=-1) != 0
    later = np.append(np.where(begins[1:], 0, weights[1:]), 0)
    return block.at(order), groups, np.flatnonzero(begins)[groups], weights - later


def _block(ranked: Block, plan: Sized | Reduced, values: NDArray[Any], weights: NDArray[Any]) -> Block:
    """The prefixes of a weight above 0."""
    block = Block({**{name: ranked.columns[name] for name in plan.by}, plan.name: values}, weights)
    return block.at(weights > 0) if ranked.size else block
