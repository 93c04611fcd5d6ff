"""What a plan of weighted records is asked: sums of weights by public keys, in exact whole numbers.

Records pass through in blocks. What calculates or filters records, adds two collections or joins them gives blocks as
it is given them; so pairs that are counted at once are never all held, and a join needs memory for its two sides and
for a block of pairs. What must see the whole weight of a record (shaving, sizes of prefixes, the sides of a join,
maxima and minima) holds the different records of what it is made from.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, assert_never

from jostle.engine.dense import evaluate
from jostle.engine.records.columns import Block, codes_of, mapped, merged, of_tuples, sums, where
from jostle.engine.records.prefixes import reduced, sized
from jostle.engine.records.shares import share
from jostle.engine.sql.keys import floors
from jostle.plan.plan import Column, Key
from jostle.plan.records import (
    CELL_BITS,
    Combined,
    Joined,
    Kept,
    Mapped,
    Records,
    Reduced,
    Rows,
    Shaved,
    Sized,
    Weights,
    bits_of,
)  # fmt: skip

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from jostle.engine.base import Engine

    Ints = NDArray[np.int64]

PAIRS = 2**18
"""Of a block of a join; one record of its left side has as many as it has partners."""
HELD = 2**21
"""Records that are gathered before equal ones are put together."""


def sums_of(engine: Engine, asked: Weights) -> NDArray[Any]:
    """The sum of weights for every combination of the keys' values, in units of 2^-CELL_BITS, as Python's integers.

    Where weights are finer than these units, a sum W of m cells is taken down to ⌊W·(1 − m·2^-CELL_BITS)⌋: what m cells
    can gain by rounding, at most a unit each, is what they lose by that factor first.
    """
    import numpy as np

    plan, keys = asked.records, asked.keys
    size, bits = 1, bits_of(plan)
    for key in keys:
        size *= len(key.values)
    totals = np.zeros(size, dtype=object)
    for block in blocks(engine, plan):
        places = np.zeros(block.size, dtype=np.int64)
        there = np.ones(block.size, dtype=bool)
        for key in keys:
            place = _places(block, key)
            there &= place >= 0
            places = places * len(key.values) + place
        firsts, weights = sums(places[there], block.weights[there])
        totals[places[there][firsts]] += weights
    if bits <= CELL_BITS:
        return totals * (1 << (CELL_BITS - bits))
    return np.array([int(total) * ((1 << CELL_BITS) - size) >> bits for total in totals], dtype=object)


def _places(block: Block, key: Key) -> Ints:
    """Where each record stands among a key's values, −1 where it is none of them."""
    import numpy as np

    values, known = evaluate(key.expr, block.columns)
    numeric = values.dtype.kind == "f"
    values = np.floor(values) if numeric and floors(key) else values
    if isinstance(key.values, range):
        first, last = (key.values[0], key.values[-1]) if key.values else (0, -1)
        inside = known & (values >= first) & (values <= last)
        return np.where(inside, np.where(inside, values, first) - first, -1).astype(np.int64)
    order = {float(v) if numeric else v: i for i, v in enumerate(key.values)}  # type: ignore[arg-type]
    found = [order.get(v, -1) for v in values.tolist()]
    return np.where(known, np.array(found, dtype=np.int64), -1)


def held(engine: Engine, plan: Records) -> Block:
    """All different records of a plan, with their weights."""
    names, waiting, size = columns_of(plan), [], 0
    for block in blocks(engine, plan):
        waiting.append(block)
        size += block.size
        if size > HELD:
            waiting = [merged(waiting, names)]
            size = 2 * waiting[0].size if waiting[0].size > HELD // 2 else waiting[0].size
    return merged(waiting, names)


def columns_of(plan: Records) -> tuple[str, ...]:
    """The names of a plan's columns, in order."""
    match plan:
        case Rows() | Mapped():
            return tuple(name for name, _ in plan.columns)
        case Kept():
            return columns_of(plan.source)
        case Shaved():
            return (*columns_of(plan.source), plan.name)
        case Sized() | Reduced():
            return (*plan.by, plan.name)
        case Joined():
            mine = columns_of(plan.left)
            return (*mine, *(name for name in columns_of(plan.right) if name not in plan.on))
        case Combined():
            return columns_of(plan.left)
    assert_never(plan)


def blocks(engine: Engine, plan: Records) -> Iterator[Block]:
    """The records of a plan; a record may be in several blocks, and stand several times in one."""
    match plan:
        case Rows():
            names = columns_of(plan)
            yield of_tuples(names, *engine.tuples(plan.table, tuple(map(Column, names))))
        case Kept():
            yield from (where(block, plan.condition) for block in blocks(engine, plan.source) if block.size)
        case Mapped():
            yield from (mapped(block, plan.columns) for block in blocks(engine, plan.source) if block.size)
        case Shaved():
            yield _shaved(_finer(held(engine, plan.source), bits_of(plan) - bits_of(plan.source)), plan)
        case Sized():
            yield sized(held(engine, plan.source), plan)
        case Reduced():
            yield reduced(held(engine, plan.source), plan)
        case Joined():
            yield from _joined(*_sides(engine, plan), plan)
        case Combined(how="concat"):
            for side in (plan.left, plan.right):
                finer = bits_of(plan) - bits_of(side)
                yield from (_finer(block, finer) for block in blocks(engine, side))
        case Combined():
            yield _combined(*_sides(engine, plan), plan)
        case _:
            assert_never(plan)


def _finer(block: Block, bits: int) -> Block:
    return Block(block.columns, block.weights * (1 << bits)) if bits else block


def _sides(engine: Engine, plan: Joined | Combined) -> tuple[Block, Block]:
    """Both sides, their weights in the finer one's units."""
    mine, theirs = bits_of(plan.left), bits_of(plan.right)
    bits = max(mine, theirs)
    left = held(engine, plan.left)
    right = left if plan.right == plan.left else held(engine, plan.right)
    return _finer(left, bits - mine), _finer(right, bits - theirs)


def _shaved(block: Block, plan: Shaved) -> Block:
    import numpy as np

    step = plan.step << (bits_of(plan) - plan.bits)
    full = block.weights // step
    rests = block.weights - full * step
    parts = np.minimum(full + (rests > 0), plan.most).astype(np.int64)
    rows = np.repeat(np.arange(block.size), parts)
    places = np.arange(len(rows)) - np.repeat(np.cumsum(parts) - parts, parts)
    some = block.at(rows)
    weights = np.where(places < full[rows], step, rests[rows])
    return Block({**some.columns, plan.name: places.astype(float)}, weights)


def _joined(left: Block, right: Block, plan: Joined) -> Iterator[Block]:
    import numpy as np

    if not left.size or not right.size:
        return
    both = [np.concatenate([left.columns[name], right.columns[name]]) for name in plan.on]
    codes = codes_of(both, left.size + right.size)
    _, totals = sums(codes, np.concatenate([left.weights, right.weights]))
    height = max(bits_of(plan.left), bits_of(plan.right)) + plan.most
    shares = np.array([share(int(total), height) for total in totals], dtype=object)
    mine, theirs = codes[: left.size], codes[left.size :]
    order = np.argsort(theirs, kind="stable")
    partners = np.bincount(theirs, minlength=len(shares))
    starts = np.cumsum(partners) - partners
    many = np.where((shares > 0)[mine], partners[mine], 0)
    scaled, ends = left.weights * shares[mine], np.cumsum(many)
    others = [name for name in columns_of(plan.right) if name not in plan.on]
    at = 0
    while at < left.size:
        done = int(ends[at - 1]) if at else 0
        to = max(at + 1, int(np.searchsorted(ends, done + PAIRS, side="right")))
        rows = np.repeat(np.arange(at, to), many[at:to])
        nth = np.arange(len(rows)) - (ends[rows] - many[rows] - done)
        partner = order[starts[mine[rows]] + nth]
        columns = {name: column[rows] for name, column in left.columns.items()}
        columns |= {name: right.columns[name][partner] for name in others}
        yield Block(columns, scaled[rows] * right.weights[partner])
        at = to


def _combined(left: Block, right: Block, plan: Combined) -> Block:
    import numpy as np

    names = columns_of(plan)
    some = [side for side in (left, right) if side.size]
    if not some:
        return left
    columns = {name: np.concatenate([side.columns[name] for side in some]) for name in names}
    codes = codes_of(list(columns.values()), left.size + right.size)
    size = int(codes.max()) + 1
    firsts = np.zeros(size, dtype=np.int64)
    firsts[codes] = np.arange(len(codes))
    mine, theirs = np.zeros(size, dtype=object), np.zeros(size, dtype=object)
    mine[codes[: left.size]] = left.weights
    theirs[codes[left.size :]] = right.weights
    match plan.how:
        case "union":
            weights = np.maximum(mine, theirs)
        case "intersect":
            weights = np.minimum(mine, theirs)
        case _:
            weights = np.maximum(mine - theirs, 0)
    there = weights > 0
    return Block({name: column[firsts[there]] for name, column in columns.items()}, weights[there])
