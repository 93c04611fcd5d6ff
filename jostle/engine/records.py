"""Sums of the weights of weighted records by public keys, in exact integers.

Records are columns: arrays of values, and an array of Python integers for weights of any size. They are processed in
blocks, so that the pairs of a join are never all in memory. Steps that need the total weight of a record (shaving,
prefixes, the sides of a join) hold the distinct records of their inputs.

Prefixes of a group, and the share G(s) of a key of a join (`share`), are argued in docs/privacy/weighted.md.
Expressions have one evaluator, `sql.rows`: joined or grouped records are in memory, and are registered as a table in
DuckDB while they are evaluated, whatever engine their rows came from. Columns and their types follow from the plan.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, assert_never

from msgspec import Struct

from jostle.engine.duckdb.engine import DUCKDB, in_unicode, table_of
from jostle.engine.sql import relations
from jostle.engine.sql.dialect import subquery
from jostle.engine.sql.persons import narrowed
from jostle.engine.sql.rows import Physical
from jostle.integers import fixed_width
from jostle.lazy import Array, Ints, np
from jostle.plan.kinds import domain_kind
from jostle.plan.plan import Column, Count, Key, Plan, RowExpr, Scan, inputs
from jostle.plan.records import (
    CELL_BITS,
    Combined,
    Joined,
    Kept,
    Mapped,
    Records,
    Reduced,
    Rows,
    Schema,
    Shaved,
    Sized,
    Weights,
    bits_of,
    last_steps,
    on_rows,
    record_schema,
    share_bits,
    whole,
)
from jostle.records import replace

if TYPE_CHECKING:
    Values = Array
    from jostle.engine.base import Answers, Here

    Steps = tuple[Kept | Mapped, ...]


_TYPES = {"number": "float64", "boolean": "bool", "text": "object"}


class Block(Struct, frozen=True):
    """Records, possibly with duplicates, whose weights add up."""

    columns: Mapping[str, Values]
    weights: Array  # Python integers of at least 0, (rows,)

    @property
    def size(self) -> int:
        return len(self.weights)

    def at(self, rows: Array) -> Block:
        """The records at these indices, or those for which a mask is true."""
        return Block({name: column[rows] for name, column in self.columns.items()}, self.weights[rows])


def typed(schema: Schema, columns: Sequence[Any], weights: Any) -> Block:
    """Columns with the types of their kinds, which are public, also without rows."""
    block = {
        name: np.array(column, dtype=_TYPES[domain_kind(domain)])
        for (name, domain), column in zip(schema, columns, strict=True)
    }
    return Block({name: c + 0.0 if c.dtype == float else c for name, c in block.items()}, np.asarray(weights, object))


def merged(schema: Schema, blocks: Sequence[Block]) -> Block:
    """The distinct records of all blocks with their total weights, without those of weight 0."""
    blocks = [typed(schema, [()] * len(schema), []), *blocks]
    columns = {name: np.concatenate([block.columns[name] for block in blocks]) for name, _ in schema}
    weights = np.concatenate([block.weights for block in blocks])
    firsts, totals = sums(codes_of([*columns.values()], len(weights)), weights)
    there = totals > 0
    return Block({name: column[firsts[there]] for name, column in columns.items()}, totals[there])


def codes_of(columns: Sequence[Values], size: int) -> Ints:
    """An integer for each row, equal for rows that are equal in all columns; consecutive from 0."""
    codes, many = np.zeros(size, dtype=np.int64), 1
    for column in columns:
        values, inverse = np.unique(column, return_inverse=True)
        if many * len(values) >= 2**62:
            distinct, codes = np.unique(codes, return_inverse=True)
            many, codes = len(distinct), codes.reshape(-1)
        codes, many = codes * len(values) + inverse.reshape(-1), many * len(values)
    _, codes = np.unique(codes, return_inverse=True)
    return fixed_width(codes.reshape(-1))


def sums(codes: Ints, weights: Array) -> tuple[Ints, Array]:
    """For each code, in order, the index of its first occurrence, and the sum of its weights."""
    if not len(codes):
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=object)
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    return order[starts], np.add.reduceat(weights[order], starts)


def sized(block: Block, plan: Sized) -> Block:
    """The size of each prefix, at most `most`, with its weight in halves of a unit."""
    ranked, _, starts, weights = _ranked(block, plan.by)
    sizes = np.arange(ranked.size) - starts + 1
    return _block(ranked, plan, np.minimum(sizes, plan.most).astype(float), weights)


def reduced(block: Block, plan: Reduced) -> Block:
    """The maximum, minimum or sum of the numbers of each prefix, with its weight in halves of a unit."""
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


def _ranked(block: Block, by: tuple[str, ...]) -> tuple[Block, Ints, Ints, Array]:
    """The records by group and falling weight, the group of each and its start, and the weight of the prefix that ends
    with each record, which is its excess over the next one."""
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


def _block(ranked: Block, plan: Sized | Reduced, values: Array, weights: Array) -> Block:
    """The prefixes with a weight above 0."""
    block = Block({**{name: ranked.columns[name] for name in plan.by}, plan.name: values}, weights)
    return block.at(weights > 0) if ranked.size else block


def share(total: int, height: int) -> int:
    """G(`total`) for keys up to 2^`height` units, in units of 2^-`share_bits(height)`."""
    bits = share_bits(height)
    if total <= 0 or total >> height >= 2:
        return 0
    if total <= 1 << height:
        return (1 << bits) // total
    return ((2 << height) - total) << (bits - 2 * height)


CHARACTERS = 2**24
"""The largest number of characters of texts that are passed at once. Equal texts are one object here, but not there."""
_NAME = "records"


def stepped(here: Here, schema: Schema, block: Block, steps: Steps, to: Schema) -> Iterator[Block]:
    """The records of a block after conditions and computed columns, with the columns `to`."""
    origins: dict[str, str | None] = {name: name for name, _ in schema}  # the column that each one copies, or None
    calculated = False
    for step in steps:
        if isinstance(step, Mapped):
            origins = {name: origins[e.name] if isinstance(e, Column) else None for name, e in step.columns}
        calculated |= isinstance(step, Kept) or None in origins.values()
    bare = {name: block.columns[origin] for name, origin in origins.items() if origin is not None}
    if not calculated:
        yield Block(bare, block.weights)
        return
    others = [name for name in origins if name not in bare]
    needed, relation = _relation(here, schema, block.size, steps, map(Column, others))
    items = ", ".join(["n", *(relation.columns[name].alias for name in others)])
    for rows, *values in _chunks(here, f"SELECT {items} FROM {subquery(relation.sql)}", block, needed):
        cells = {name: column[rows] for name, column in bare.items()} | dict(zip(others, values, strict=True))
        yield typed(to, [cells[name] for name, _ in to], block.weights[rows])


def coded(
    here: Here, schema: Schema, block: Block, steps: Steps, keys: tuple[Key, ...]
) -> Iterator[tuple[list[Ints], Array]]:
    """For each key the indices of the records' values after the steps, −1 for none of them; and the weights."""
    needed, relation = _relation(here, schema, block.size, steps, (key.expr for key in keys))
    for rows, *places in _chunks(here, relations.codes(relation, keys), block, needed):
        yield places, block.weights[rows]


def _relation(
    here: Here, schema: Schema, size: int, steps: Steps, requested: Iterable[RowExpr]
) -> tuple[tuple[str, ...], relations.Relation]:
    """The columns of records that are needed, and the steps as a SELECT from a table of these and a number `n`."""
    plan = narrowed(on_rows(Scan(_NAME, schema), steps), requested)
    source: Plan = plan
    while not isinstance(source, Scan):
        (source,) = inputs(source)
    columns = {name: Physical(f"c{place}") for place, (name, _) in enumerate(source.columns)}
    query = f"SELECT {', '.join([*(column.alias for column in columns.values()), 'n'])} FROM {_NAME}"
    dialect = replace(DUCKDB, pattern=here.dialect.pattern, format=here.dialect.format)
    records = relations.Relation(query, columns, dict(source.columns), size, dialect, numbered=True)
    return tuple(columns), relations.relation(plan, lambda scan: records, dialect)


def _chunks(here: Here, query: str, block: Block, names: tuple[str, ...]) -> Iterator[list[Any]]:
    """The columns of a query about a block, in parts if its texts are long."""

    columns = [block.columns[name] for name in names]
    sizes = np.zeros(block.size, dtype=np.int64)
    for column in columns:
        if column.dtype == object:
            sizes += fixed_width([len(text) for text in column])
    parts = np.cumsum(sizes) // CHARACTERS
    starts = [*np.flatnonzero(np.diff(parts, prepend=-1)).tolist(), block.size]
    for start, end in itertools.pairwise(starts):
        cells = [in_unicode(c[start:end]) if c.dtype == object else c[start:end] for c in columns]
        rows = {f"c{place}": column for place, column in enumerate(cells)} | {"n": np.arange(start, end)}
        with here.registered(table_of(rows), _NAME):
            yield [np.ma.getdata(column) for column in here.columns(query)]


PAIRS = 2**18
"""The number of pairs in a block of a join; one left record may have more."""
HELD = 2**21
"""The number of records that are collected before duplicates are merged."""


def sums_of(engine: Answers, request: Weights) -> Array:
    """The sum of weights for every combination of the keys' values, in units of 2^-CELL_BITS, as Python integers.

    If weights are finer than these units, a sum W of m cells becomes ⌊W·(1 − m·2^-CELL_BITS)⌋: the factor reduces the
    cells by at least what m cells can gain by rounding, at most one unit each.
    """
    plan, keys = request.records, request.keys
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
    """The rows of a table without missing cells."""
    return whole(plan.table, [name for name, _ in plan.columns])


def columns_of(plan: Records) -> tuple[str, ...]:
    """The names of a plan's columns, in order."""
    return tuple(name for name, _ in record_schema(plan))


def blocks(engine: Answers, plan: Records) -> Iterator[Block]:
    """The records of a plan, which may have duplicates in one block and in several."""
    return _Reading(engine).blocks(plan)


class _Reading:
    """The records for one answer. Each table is read once, however often its records are used."""

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
                yield _shaved(_finer(self.block(plan.source), bits_of(plan) - bits_of(plan.source)), plan)
            case Sized():
                yield sized(self.block(plan.source), plan)
            case Reduced():
                yield reduced(self.block(plan.source), plan)
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
            columns = tuple(Column(name) for name, _ in schema)
            rows, counts = self._engine.tuples(on_rows(_table(base), steps), columns)
            self._rows[plan] = typed(schema, list(zip(*rows, strict=True)) or [()] * len(schema), counts)
        return self._rows[plan]

    def block(self, plan: Records) -> Block:
        """All distinct records of a plan, with their weights."""
        schema, waiting, size = record_schema(plan), [], 0
        for block in self.blocks(plan):
            waiting.append(block)
            size += block.size
            if size > HELD:
                waiting = [merged(schema, waiting)]
                size = 2 * waiting[0].size if waiting[0].size > HELD // 2 else waiting[0].size
        return merged(schema, waiting)

    def _sides(self, plan: Joined | Combined) -> tuple[Block, Block]:
        """Both sides, with weights in the units of the finer one."""
        mine, theirs = bits_of(plan.left), bits_of(plan.right)
        bits = max(mine, theirs)
        left = self.block(plan.left)
        right = left if plan.right == plan.left else self.block(plan.right)
        return _finer(left, bits - mine), _finer(right, bits - theirs)


def _finer(block: Block, bits: int) -> Block:
    return Block(block.columns, block.weights * (1 << bits)) if bits else block


def _shaved(block: Block, plan: Shaved) -> Block:
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
