"""Groups of weighted records: prefixes by falling weight, and what their sizes or numbers come to.

A prefix stands for a set, of which the order is none: where records weigh as much, only the whole of them ends a prefix
of a weight above 0, so that what is made of a prefix is a function of a set of records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jostle.engine.records.columns import Block, codes_of
from jostle.plan.records import Reduced, Sized

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]


def sized(block: Block, plan: Sized) -> Block:
    """The size of each prefix, at most `most`, with what it weighs in halves of a unit."""
    import numpy as np

    ranked, _, starts, weights = _ranked(block, plan.by)
    sizes = np.arange(ranked.size) - starts + 1
    return _named(ranked, plan, np.minimum(sizes, plan.most).astype(float), weights)


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
    return _named(ranked, plan, np.asarray(values, dtype=float) + 0.0, weights)


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


def _named(ranked: Block, plan: Sized | Reduced, values: NDArray[Any], weights: NDArray[Any]) -> Block:
    """The prefixes of a weight above 0."""
    kept = Block({**{name: ranked.columns[name] for name in plan.by}, plan.name: values}, weights)
    return kept.at(weights > 0) if ranked.size else kept
