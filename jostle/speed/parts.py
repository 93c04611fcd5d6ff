"""The rows of a part, found by splitting its parent's rows once: what recursive programs count by.

A table that was only filtered since its base (a source, or columns derived from one) is a list of row numbers of that
base. The columns that are counted by are read from the engine once, as codes of their public values, and stand side
by side; a part by `E == v` is one piece of its parent's row numbers, put in order of E's code. So a tree asks the
engine once a column and never again, and a count costs what its own rows cost. Of more rows than MOST_ROWS codes and
splits stand on the disk (`disk`).

It answers exactly what `Engine.group` would, since the codes and the conditions are the engine's own. They stand in the
order of the row numbers, whatever order the database returns rows in; and `None` where it does not apply. Exact
numbers of rows: for `privacy` alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from msgspec import Struct, field

from jostle.diagnostics import Refusal, refuse
from jostle.engine.base import CELLS, Engine, LruCache, Work
from jostle.integers import fixed_width
from jostle.lazy import Array, Ints, NDArray, np
from jostle.plan import plan as p
from jostle.plan.facts import key_values, schema_of
from jostle.plan.kinds import Schema, is_integral, kind_of
from jostle.speed.bounding import let_go, on_disk

CODES, SPLITS, SUMS = 512 * 2**20, 256 * 2**20, 128 * 2**20  # bytes of codes, split rows and sums that are kept
MOST_TOGETHER = 2**20  # groups of all parts that are read at once
MANY_TOGETHER = 2**16  # of them are read as soon as the parts that were asked about before
DISK = 2**5  # times as much of them is kept on the disk
MOST_ROWS = 2**23  # whose codes are in memory, of larger bases on the disk
MOST_ONCE = 2**22  # of a base that is coded for tables that may be asked once
MOST_NUMBERED = 2**31 - 1  # rows of a base that is coded; larger ones are the engine's
MOST_CODED, MOST_LISTED = 2**24, 2**12  # whole values of a key, and others, which are looked up one by one
BLOCK, SPAN = 2**16, 2**20  # rows that are counted at a time, for many nodes and for many tables


class Base(Struct, eq=False):
    """A plan that row numbers are of, with its schema; `size` is known when a first column is read."""

    plan: p.Plan
    schema: Schema
    size: int | None = None
    _pieces: LruCache[tuple[tuple[p.Key, int] | None]] = field(default_factory=lambda: LruCache(0))

    def by_value(self, condition: p.RowExpr) -> tuple[p.Key, int] | None:
        """`_by_value` of a condition on its rows, worked out once."""
        entry = self._pieces.get(condition)
        if entry is None:
            entry = self._pieces.put(condition, (_by_value(condition, self.schema),))
        return entry[0]

    def step(self, condition: p.RowExpr) -> tuple[p.Key, int]:
        """A filter as the piece of a split: by the value of an expression, else by the condition's own truth."""
        return self.by_value(condition) or (p.Key(condition, (False, True)), 1)


class Split(Struct, frozen=True):
    """Row numbers of a parent in order of a key's codes: those of `codes[i]` from `ends[i]` to `ends[i + 1]`."""

    parent: p.Plan
    rows: NDArray[np.int32]
    codes: Array
    ends: Ints

    def piece(self, place: int) -> NDArray[np.int32]:
        """The rows of one code, in order; none where `place` is none."""
        at = int(self.codes.searchsorted(place))
        if place < 0 or at == len(self.codes) or self.codes[at] != place:
            return self.rows[:0]
        return self.rows[self.ends[at] : self.ends[at + 1]]


class Parts:
    """Bases and splits met in a session. A plan is known by the object that it is, which entries keep alive."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._bases: dict[p.Plan, Base] = {}
        self._seen: LruCache[tuple[p.Plan, Base]] = LruCache(0)
        self._codes: LruCache[Array] = LruCache(CODES)
        self._splits: LruCache[Split] = LruCache(SPLITS)
        self._together: LruCache[tuple[p.Plan, int, list[Array]]] = LruCache(SUMS)
        self._asked: LruCache[p.Plan] = LruCache(0)

    def group(self, plan: p.Plan, keys: tuple[p.Key, ...], terms: tuple[p.Term, ...]) -> list[Array]:
        """What the engine's `group` gives. A part by an expression is asked about alone, until a part by it is asked
        about again: then the engine is asked for all of them in one statement."""
        if not isinstance(plan, p.Filter):
            return self._engine.group(plan, keys, terms)
        base = self._base(plan)  # whose schema is that of the plan
        split = _by_value(plan.condition, schema_of(plan.source)) if base is None else base.by_value(plan.condition)
        if split is None:
            return self._engine.group(plan, keys, terms)
        (by, place), parent = split, self._known(plan.source)
        groups = len(by.values) * math.prod(len(key.values) for key in keys)
        if place < 0 or groups > MOST_TOGETHER:
            return self._engine.group(plan, keys, terms)
        request = (id(parent), by, keys, terms)
        entry = self._together.get(request)
        before, sums = (0, []) if entry is None or entry[0] is not parent else entry[1:]
        if not sums and before <= groups // MANY_TOGETHER:
            self._together.put(request, (parent, before + 1, sums))
            return self._engine.group(plan, keys, terms)
        if not sums:
            sums = self._engine.group(parent, (by, *keys), terms)
            self._together.put(request, (parent, before, sums), sum(array.nbytes for array in sums))
        return [array[place, ...] for array in sums]

    def counts(self, plan: p.Plan, keys: Sequence[p.Key]) -> Ints | None:
        """Rows of a part under public keys, in the shape of the keys (() without any), or None."""
        base = self._base(plan)
        if base is None or not self._worth(plan, base, keys):
            return None
        tables = self._tables(base, plan, [keys])
        return None if tables is None else tables[0]

    def several(self, plan: p.Plan, tables: Sequence[Sequence[p.Key]]) -> list[Ints] | None:
        """Counts of one plan under several lists of keys, whose columns are read together; or None."""
        base = self._base(plan)
        if base is None or (
            self._size(base) > MOST_ONCE and not self._coded(base, [k for keys in tables for k in keys])
        ):
            return None  # to code many rows for tables that are asked once costs more than it saves
        return self._tables(base, plan, tables)

    def _tables(self, base: Base, plan: p.Plan, tables: Sequence[Sequence[p.Key]]) -> list[Ints] | None:
        """Counts under several lists of keys, in one pass over the rows."""
        shapes = [tuple(len(key.values) for key in keys) for keys in tables]
        every = {key: place for place, key in enumerate(dict.fromkeys(key for keys in tables for key in keys))}
        read = self._read(plan, base, [*every]) if max(map(math.prod, shapes)) <= CELLS else None
        if read is None:
            return None
        codes, rows = read
        many = (base.size or 0) if rows is None else len(rows)
        if many * len(tables) <= SPAN and all(len(keys) == 2 and keys[0] == tables[0][0] for keys in tables):
            return _crossed(codes[0], [codes[every[keys[1]]] for keys in tables], shapes, rows)
        return _tallied([[every[key] for key in keys] for keys in tables], shapes, codes, rows, many)

    def codes(self, plan: p.Plan, keys: Sequence[p.Key]) -> list[Array] | None:
        """For every key the codes of a plan's rows, in order, −1 for none of its values; or None."""
        base = self._base(plan)
        read = None if base is None else self._read(plan, base, keys)
        if read is None:
            return None
        columns, rows = read
        return columns if rows is None else [column[rows] for column in columns]

    def folded(self, plan: p.Plan, keys: Sequence[p.Key], work: Work) -> list[Any] | None:
        """What `work` makes of the codes of a plan's rows, of which a block at a time is in memory; or None."""
        base = self._base(plan)
        read = None if base is None or not keys else self._read(plan, base, keys)
        return None if read is None else work(_blocks(*read))

    # Bases and columns -------------------------------------------------------------------------------

    def _base(self, plan: p.Plan) -> Base | None:
        """What a plan's rows are numbered in; None where it was made by a join."""
        at = p.rows_below(plan, (p.Filter,))
        entry = self._seen.get(id(at))
        if entry is not None and entry[0] is at:
            return entry[1]
        if not self._engine.capabilities.numbered_rows:
            return None
        if not isinstance(p.rows_below(at), p.Scan | p.Bound):
            return None
        base = self._bases.get(at)
        if base is None:
            base = self._bases[at] = Base(at, schema_of(at))
        self._seen.put(id(at), (at, base))
        return base

    def _read(
        self, plan: p.Plan, base: Base, keys: Sequence[p.Key]
    ) -> tuple[list[Array], NDArray[np.int32] | None] | None:
        """The codes of a base, and which of its rows a plan has (None: all); None where they cannot be coded."""
        columns = self._columns(base, keys)
        rows = self._rows(plan, base) if columns is not None and isinstance(plan, p.Filter) else None
        if columns is None or (rows is None and isinstance(plan, p.Filter)):
            return None
        return columns, rows

    def _columns(self, base: Base, keys: Sequence[p.Key]) -> list[Array] | None:
        """The codes of every row of a base, a column a key; those that are missing are read in one go."""
        if not all(map(_can_be_coded, keys)):
            return None
        large = self._size(base) > MOST_ROWS
        columns: dict[p.Key, Array | None] = {key: self._codes.get((id(base), key)) for key in keys}
        missing = tuple(key for key, column in columns.items() if column is None)
        codes = self._codes_on_disk(base, missing) if large and missing else self._engine.codes(base.plan, missing)
        if codes is None:
            return None
        for key, read in zip(missing, codes, strict=True):
            if len(read) != base.size:
                raise _changed()
            columns[key] = self._codes.put((id(base), key), read, _weight(read))
        return [column for key in keys if (column := columns[key]) is not None]

    def _size(self, base: Base) -> int:
        if base.size is None:
            base.size = self._engine.rows(base.plan)
        return base.size

    def _coded(self, base: Base, keys: Iterable[p.Key]) -> bool:
        """Whether the columns were read already."""
        return base.size is not None and all(self._codes.get((id(base), key)) is not None for key in keys)

    def _codes_on_disk(self, base: Base, keys: tuple[p.Key, ...]) -> list[Array] | None:
        """Codes that are written as they come; None where there is no room, or rows do not come in their order."""
        size, at, last = self._size(base), 0, -1
        arrays: list[Array] = []
        for numbers, *codes in self._engine.code_blocks(base.plan, keys, SPAN) if size <= MOST_NUMBERED else ():
            if numbers[0] <= last or (numbers[1:] <= numbers[:-1]).any():
                return None
            if at + len(numbers) > size:
                raise _changed()
            if not arrays:
                room = [on_disk(size, column.dtype) for column in codes]
                arrays = [array for array in room if array is not None]
                if len(arrays) < len(keys):
                    return None
            for array, column in zip(arrays, codes, strict=True):
                array[at : at + len(column)] = column
                let_go(array)
            at, last = at + len(numbers), numbers[-1]
        if arrays and at != size:
            raise _changed()
        return arrays or None

    # Rows --------------------------------------------------------------------------------------------

    def _rows(self, plan: p.Filter, base: Base) -> NDArray[np.int32] | None:
        """The row numbers of a filtered plan, in order; of every plan above it, by one split each."""
        waiting: list[tuple[p.Filter, p.Key, int]] = []
        at: p.Plan = plan
        rows: NDArray[np.int32] | None = None
        while isinstance(at, p.Filter):
            key, place = base.step(at.condition)
            source = self._known(at.source)
            split = self._splits.get((id(source), key))
            if split is not None and split.parent is source:
                rows = split.piece(place)
                break
            waiting.append((at, key, place))
            at = at.source
        for one, key, place in reversed(waiting):
            split = self._split(self._known(one.source), base, key, rows)
            if split is None:
                return None
            rows = split.piece(place)
        return rows

    def _split(self, parent: p.Plan, base: Base, key: p.Key, rows: NDArray[np.int32] | None) -> Split | None:
        columns = self._columns(base, (key,))
        if columns is None:
            return None
        many = self._size(base) if rows is None else len(rows)

        def numbers(at: int, end: int) -> NDArray[np.int32]:
            return np.arange(at, end, dtype=np.int32) if rows is None else rows[at:end]

        if many <= MOST_ROWS:
            split = Split(parent, *_by_code(numbers(0, many), columns[0]))
        else:
            split = Split(parent, *_by_code_on_disk(numbers, many, columns[0]))
        if many > MOST_ROWS // 16:
            for array in (rows, split.rows, *columns):
                let_go(array)
        return self._splits.put((id(parent), key), split, _weight(split.rows) + split.codes.nbytes + split.ends.nbytes)

    def _worth(self, plan: p.Plan, base: Base, keys: Sequence[p.Key]) -> bool:
        """Whether codes pay: where they are there, of a part of a part, and where a part is asked about again of which
        a bare `where` leaves some rows. One part alone is the business of `group`, as a bare `where` and a base are."""
        needed, parts, at = [*keys], [], plan
        while isinstance(at, p.Filter):
            piece = base.by_value(at.condition)
            needed.append(p.Key(at.condition, (False, True)) if piece is None else piece[0])
            parts += [(at, needed[-1])] if piece is not None else []
            at = at.source
        if self._coded(base, needed) and (parts or at is plan):
            return True
        if len(parts) != 1 or parts[0][0] is plan:
            return len(parts) > 1
        parent = self._known(parts[0][0].source)
        asked = (id(parent), parts[0][1])
        if self._asked.get(asked) is parent:
            return True
        self._asked.put(asked, parent)
        return False

    def _known(self, plan: p.Plan) -> p.Plan:
        """The plan that stands for all that are equal to it, of a base; a filtered one is that itself."""
        base = None if isinstance(plan, p.Filter) else self._base(plan)
        return plan if base is None else base.plan


def _crossed(
    by: Array, columns: list[Array], shapes: Sequence[tuple[int, ...]], rows: NDArray[np.int32] | None
) -> list[Ints]:
    """The counts of one column's codes by each of several others', all in one array: for few rows."""
    first, others = (by, np.stack(columns)) if rows is None else (by[rows], np.stack([c[rows] for c in columns]))
    sizes = np.array([math.prod(shape) for shape in shapes])
    starts, wide = np.cumsum(sizes) - sizes, np.array([shape[1] for shape in shapes])
    place = fixed_width(first) * wide[:, None] + others + starts[:, None]
    inside = (others >= 0) & (first >= 0)
    counts = np.bincount(place[inside], minlength=int(sizes.sum()))
    return [part.reshape(shape) for part, shape in zip(np.split(counts, starts[1:]), shapes, strict=True)]


def _blocks(columns: list[Array], rows: NDArray[np.int32] | None) -> Iterator[Array]:
    """Codes as rows (at most BLOCK, len(columns)); what was read of the disk is let go."""
    many = len(columns[0]) if rows is None else len(rows)
    for at in range(0, many, BLOCK):
        some = slice(at, at + BLOCK) if rows is None else rows[at : at + BLOCK]
        yield np.stack([column[some] for column in columns], axis=1)
        for array in (rows, *columns) if at % SPAN == 0 else ():
            let_go(array)


def _by_code(rows: NDArray[np.int32], column: Array) -> tuple[NDArray[np.int32], Array, Ints]:
    """Row numbers in order of their codes, and within a code as they were; the codes; and where each begins."""
    mine = column[rows]
    order = np.argsort(mine, kind="stable")  # by radix where codes are short
    codes = mine[order]
    first = np.flatnonzero(codes[1:] != codes[:-1]) + 1
    ends = np.concatenate([[0], first, [len(codes)]]) if len(codes) else np.zeros(1, dtype=np.int64)
    return rows[order], codes[ends[:-1]], ends


def _by_code_on_disk(
    numbers: Callable[[int, int], NDArray[np.int32]], many: int, column: Array
) -> tuple[NDArray[np.int32], Array, Ints]:
    """The same of many rows, block by block; on the disk, if there is room. `numbers` gives the rows of a block."""
    size = max(1, MOST_ROWS // 8)
    blocks = [(at, min(at + size, many)) for at in range(0, many, size)]
    tallies = [np.unique(column[numbers(*block)], return_counts=True) for block in blocks]
    codes = np.unique(np.concatenate([some for some, _ in tallies]))
    ends = np.zeros(len(codes) + 1, dtype=np.int64)
    for some, times in tallies:
        ends[1 + codes.searchsorted(some)] += times
    np.cumsum(ends, out=ends)
    room = on_disk(many, np.int32)
    ordered = np.empty(many, dtype=np.int32) if room is None else room
    free = ends[:-1].copy()
    for block in blocks:
        rows, some, bounds = _by_code(numbers(*block), column)
        places, times = codes.searchsorted(some), np.diff(bounds)
        ordered[np.repeat(free[places] - bounds[:-1], times) + np.arange(len(rows))] = rows
        free[places] += times
    return ordered, codes, ends


def _by_value(condition: p.RowExpr, schema: Schema) -> tuple[p.Key, int] | None:
    """`E == v` where E has listed or whole values: its key, and v's place (−1 where v is none of them)."""
    if not (isinstance(condition, p.Apply) and condition.op == "==" and isinstance(condition.args[1], p.Constant)):
        return None
    expr, value = condition.args[0], condition.args[1].value
    key = coded_key(expr, schema)
    if key is None or isinstance(value, bool) or value is None:
        return None
    if isinstance(key.values, range):
        if isinstance(value, int | float) and float(value).is_integer() and int(value) in key.values:
            return key, key.values.index(int(value))
        return key, -1
    return key, key.values.index(value) if value in key.values else -1


def coded_key(expr: p.RowExpr, schema: Schema) -> p.Key | None:
    """The key whose codes tell the values of an expression apart; None where it has too many, or unlisted ones."""
    if isinstance(expr, p.Constant) or kind_of(expr, schema) == "boolean":
        return None
    if isinstance(expr, p.Apply) and _is_floor(expr) and _is_whole(expr.args[0], schema):
        expr = expr.args[0]  # which is its floor, and whose codes may be known
    bounded, is_number = isinstance(expr, p.Column) or _is_floor(expr), kind_of(expr, schema) == "number"
    if not bounded or (is_number and not is_integral(expr, schema)):
        return None
    try:
        values = key_values(expr, schema, MOST_CODED if is_number else MOST_LISTED)
    except Refusal:  # there are more
        return None
    key = None if values is None else p.Key(expr, values)
    return key if key is not None and _can_be_coded(key) else None


def _is_floor(expr: p.RowExpr) -> bool:
    return isinstance(expr, p.Apply) and expr.op == "floor"


def _is_whole(expr: p.RowExpr, schema: Schema) -> bool:
    return isinstance(expr, p.Column) and isinstance(schema.get(expr.name), p.Integer)


def _changed() -> Refusal:
    return refuse("DataError", "the data changed while they were read")


def _weight(array: Array) -> int:
    """The bytes of memory that an array counts as: of the disk there is more."""
    return array.nbytes // DISK if isinstance(array, np.memmap) else array.nbytes


def _can_be_coded(key: p.Key) -> bool:
    return len(key.values) <= (MOST_CODED if isinstance(key.values, range) else MOST_LISTED)


def _tallied(
    tables: Sequence[Sequence[int]], shapes: Sequence[tuple[int, ...]], codes: Sequence[Array],
    rows: NDArray[np.int32] | None, many: int,
) -> list[Ints]:  # fmt: skip
    """How many of `many` rows stand in each cell of tables, of which the places of their columns are given.

    What has no code stands before the others. Each table has the same room for where rows stand: arrays of its own take
    longer than the counting.
    """
    totals = [np.zeros([size + 1 for size in shape], dtype=np.int64) for shape in shapes]
    block = max(BLOCK, *(total.size for total in totals))
    room = np.empty(min(many, block), dtype=np.int64)
    for at in range(0, many, block):
        some = slice(at, at + block) if rows is None else rows[at : at + block]
        columns, places = [column[some] for column in codes], room[: many - at]
        for of, total in zip(tables, totals, strict=True):
            places.fill(0)
            first = 0  # the place of rows that have the first value of each
            for column, size in zip(of, total.shape, strict=True):
                if first:
                    places *= size
                places += columns[column]
                first = first * size + 1
            places += first
            total += np.bincount(places, minlength=total.size).reshape(total.shape)
    return [np.array(total[(slice(1, None),) * total.ndim], order="C") for total in totals]
