"""What a plan of weighted records is asked: sums of weights by public keys, in exact whole numbers.

Records pass through in blocks. What calculates or filters records, adds two collections or joins them gives blocks as
it is given them; so pairs that are counted at once are never all held, and a join needs memory for its two sides and
for a block of pairs. What must see the whole weight of a record (shaving, sizes of prefixes, the sides of a join,
maxima and minima) holds the different records of what it is made from.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, assert_never

from jostle.engine.records.columns import Block, codes_of, merged, of_tuples, sums
from jostle.engine.records.prefixes import reduced, sized
from jostle.engine.records.shares import share
from jostle.engine.records.steps import coded, stepped
from jostle.integers import fixed_width
from jostle.plan.plan import Column, Count, Plan
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
    known,
    last_steps,
    on_rows,
    record_schema,
)  # fmt: skip

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from jostle.engine.base import Answers

    Ints = NDArray[np.int64]

PAIRS = 2**18
"""Of a block of a join; one record of its left side has as many as it has partners."""
HELD = 2**21
"""Records that are gathered before equal ones are put together."""


def sums_of(engine: Answers, asked: Weights) -> NDArray[Any]:
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
    base, steps = last_steps(plan)
    if isinstance(base, Rows):
        (counts,) = engine.group(on_rows(_table(base), steps), keys, (Count(),))
        totals += counts.reshape(-1)
    else:
        for block in blocks(engine, base):
            for places, weights in coded(engine.here, record_schema(base), block, steps, keys):
                cells, inside = np.zeros(len(weights), dtype=np.int64), np.ones(len(weights), dtype=bool)
                for key, place in zip(keys, places, strict=True):
                    cells, inside = cells * len(key.values) + place, inside & (place >= 0)
                firsts, added = sums(cells[inside], weights[inside])
                totals[cells[inside][firsts]] += added
    if bits <= CELL_BITS:
        return totals * (1 << (CELL_BITS - bits))
    return np.array([int(total) * ((1 << CELL_BITS) - size) >> bits for total in totals], dtype=object)


def _table(plan: Rows) -> Plan:
    """The rows of a table of which no cell is missing."""
    return known(plan.table, [name for name, _ in plan.columns])


def columns_of(plan: Records) -> tuple[str, ...]:
    """The names of a plan's columns, in order."""
    return tuple(name for name, _ in record_schema(plan))


def blocks(engine: Answers, plan: Records) -> Iterator[Block]:
    """The records of a plan; a record may be in several blocks, and stand several times in one."""
    return _Reading(engine).blocks(plan)


class _Reading:
    """Records that are read for one answer: what is made of a table is asked of it once, however often it is used."""

    def __init__(self, engine: Answers) -> None:
        self._engine = engine
        self._rows: dict[Records, Block] = {}

    def blocks(self, plan: Records) -> Iterator[Block]:
        match plan:
            case Rows() | Kept() | Mapped():
                base, steps = last_steps(plan)
                if isinstance(base, Rows):
                    yield self._of_table(plan, base, steps)
                    return
                for block in self.blocks(base):
                    yield from stepped(self._engine.here, record_schema(base), block, steps, record_schema(plan))
            case Shaved():
                yield _shaved(_finer(self.held(plan.source), bits_of(plan) - bits_of(plan.source)), plan)
            case Sized():
                yield sized(self.held(plan.source), plan)
            case Reduced():
                yield reduced(self.held(plan.source), plan)
            case Joined():
                yield from _joined(*self._sides(plan), plan)
            case Combined(how="concat"):
                for side in (plan.left, plan.right):
                    finer = bits_of(plan) - bits_of(side)
                    yield from (_finer(block, finer) for block in self.blocks(side))
            case Combined():
                yield _combined(*self._sides(plan), plan)
            case _:
                assert_never(plan)

    def _of_table(self, plan: Records, base: Rows, steps: tuple[Kept | Mapped, ...]) -> Block:
        if plan not in self._rows:
            schema = record_schema(plan)
            asked = on_rows(_table(base), steps), tuple(Column(name) for name, _ in schema)
            self._rows[plan] = of_tuples(schema, *self._engine.tuples(*asked))
        return self._rows[plan]

    def held(self, plan: Records) -> Block:
        """All different records of a plan, with their weights."""
        schema, waiting, size = record_schema(plan), [], 0
        for block in self.blocks(plan):
            waiting.append(block)
            size += block.size
            if size > HELD:
                waiting = [merged(schema, waiting)]
                size = 2 * waiting[0].size if waiting[0].size > HELD // 2 else waiting[0].size
        return merged(schema, waiting)

    def _sides(self, plan: Joined | Combined) -> tuple[Block, Block]:
        """Both sides, their weights in the finer one's units."""
        mine, theirs = bits_of(plan.left), bits_of(plan.right)
        bits = max(mine, theirs)
        left = self.held(plan.left)
        right = left if plan.right == plan.left else self.held(plan.right)
        return _finer(left, bits - mine), _finer(right, bits - theirs)


def _finer(block: Block, bits: int) -> Block:
    return Block(block.columns, block.weights * (1 << bits)) if bits else block


def _shaved(block: Block, plan: Shaved) -> Block:
    import numpy as np

    step = plan.step << (bits_of(plan) - plan.bits)
    full = block.weights // step
    rests = block.weights - full * step
    parts = fixed_width(np.minimum(full + (rests > 0), plan.most))
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
    if not left.size and not right.size:
        return left
    columns = {name: np.concatenate([side.columns[name] for side in (left, right)]) for name in names}
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
