"""The rows of a part, found by splitting its parent's rows once: what recursive programs count by.

A table that was only filtered since its base (a source, or columns derived from one) is a list of row numbers of that
base. The columns that are counted by are read from the engine once, as codes of their public values, and stand side
by side; a part by `E == v` is one piece of its parent's row numbers, put in order of E's code. So a tree asks the
engine once a column and never again, and a count costs what its own rows cost.

It answers exactly what `Engine.group` would, since the codes and the conditions are the engine's own, and stand in the
order of the row numbers, whatever order the database returns rows in; and `None` where it does not apply. Exact
numbers of rows: for `privacy` alone.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jostle.diagnostics import refuse
from jostle.engine.groups import CELLS
from jostle.engine.lru import LruCache
from jostle.plan.bounds import is_integral
from jostle.plan.keys import key_values
from jostle.plan.kinds import Schema, kind_of
from jostle.plan.plan import (
    Apply,
    Bound,
    Column,
    Constant,
    Derive,
    Filter,
    Key,
    Plan,
    RowExpr,
    Scan,
)  # fmt: skip
from jostle.plan.schemas import schema_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from jostle.engine.base import Engine

CODES, SPLITS = 512 * 2**20, 256 * 2**20  # bytes of coded columns and of split rows that are kept
MOST_ROWS = 2**25  # of a base that is coded; larger ones are the engine's
MOST_LISTED = 2**12  # values of a key that are looked up one by one
BLOCK = 2**16  # rows that are counted at a time


@dataclass(slots=True, eq=False)
class Base:
    """A plan that row numbers are of, with its schema; `size` is known when a first column is read."""

    plan: Plan
    schema: Schema
    size: int | None = None


@dataclass(frozen=True, slots=True)
class Split:
    """Row numbers of a parent in order of a key's codes, which stand beside them."""

    parent: Plan
    rows: NDArray[np.int32]
    codes: NDArray[Any]

    def piece(self, place: int) -> NDArray[np.int32]:
        """The rows of one code, in order; none where `place` is none."""
        if place < 0:
            return self.rows[:0]
        code = self.codes.dtype.type(place)
        first, end = (int(self.codes.searchsorted(code, side)) for side in ("left", "right"))
        return self.rows[first:end]


class Parts:
    """Bases and splits met in a session. A plan is known by the object that it is, which entries keep alive."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._bases: dict[Plan, Base] = {}
        self._seen: LruCache[tuple[Plan, Base]] = LruCache(0)
        self._codes: LruCache[NDArray[Any]] = LruCache(CODES)
        self._splits: LruCache[Split] = LruCache(SPLITS)

    def counts(self, plan: Plan, keys: Sequence[Key]) -> NDArray[np.int64] | None:
        """Rows of a part under public keys, in the shape of the keys (() without any), or None."""
        import numpy as np

        base = self._base(plan)
        if base is None or not self._worth(plan, base, keys):
            return None
        shape = tuple(len(key.values) for key in keys)
        columns = self._columns(base, keys) if math.prod(shape) <= CELLS else None
        if columns is None:
            return None
        rows = self._rows(plan, base) if isinstance(plan, Filter) else None
        many = (base.size or 0) if rows is None else len(rows)
        if not keys:
            return np.array(many, dtype=np.int64)
        place, inside = np.zeros(many, dtype=np.int64), np.ones(many, dtype=bool)
        for key, column in zip(keys, columns, strict=True):
            code = column if rows is None else column[rows]
            inside &= code >= 0
            place = place * len(key.values) + code
        return np.bincount(place[inside], minlength=math.prod(shape)).reshape(shape)

    def several(self, plan: Plan, tables: Sequence[Sequence[Key]]) -> list[NDArray[np.int64]] | None:
        """Counts of one plan under several lists of keys, whose columns are read together; or None."""
        import numpy as np

        base = self._base(plan)
        every = tuple(dict.fromkeys(key for keys in tables for key in keys))
        if base is None or any(math.prod(len(key.values) for key in keys) > CELLS for keys in tables):
            return None
        codes = self._columns(base, every)
        if codes is None:
            return None
        rows = self._rows(plan, base) if isinstance(plan, Filter) else slice(None)
        columns = {key: column[rows] for key, column in zip(every, codes, strict=True)}
        size = len(next(iter(columns.values()), ()))
        counts = []
        for keys in tables:
            place, inside = np.zeros(size, dtype=np.int64), np.ones(size, dtype=bool)
            for key in keys:
                inside &= columns[key] >= 0
                place = place * len(key.values) + columns[key]
            shape = tuple(len(key.values) for key in keys)
            counts.append(np.bincount(place[inside], minlength=math.prod(shape)).reshape(shape))
        return counts

    def codes(self, plan: Plan, keys: Sequence[Key]) -> list[NDArray[Any]] | None:
        """For every key the codes of a plan's rows, in order, −1 for none of its values; or None."""
        base = self._base(plan)
        columns = self._columns(base, keys) if base is not None else None
        if base is None or columns is None or not isinstance(plan, Filter):
            return columns
        rows = self._rows(plan, base)
        return [column[rows] for column in columns]

    def crossed(self, plan: Plan, keys: Sequence[Key], by: Key) -> list[NDArray[np.int64]] | None:
        """For every key a table of counts, its values by the values of `by`, in one pass over the rows; or None."""
        import numpy as np

        base = self._base(plan)
        coded = self._columns(base, (*keys, by)) if base is not None else None
        if base is None or coded is None:
            return None
        *columns, classes = coded
        wide = len(by.values) + 1  # a place of its own for what has no code
        starts = np.cumsum([0, *((len(key.values) + 1) * wide for key in keys)])
        rows = self._rows(plan, base) if isinstance(plan, Filter) else None
        tally = np.zeros(starts[-1], dtype=np.int64)
        for at in range(0, len(classes) if rows is None else len(rows), BLOCK):
            some = slice(at, at + BLOCK) if rows is None else rows[at : at + BLOCK]
            second = classes[some].astype(np.int64) + 1
            block = np.empty((len(keys), len(second)), dtype=np.int64)
            for i, column in enumerate(columns):
                np.multiply(column[some], wide, out=block[i], dtype=np.int64)
            block += second
            block += (starts[:-1] + wide)[:, None]
            tally += np.bincount(block.ravel(), minlength=starts[-1])
        return [tally[a:b].reshape(-1, wide)[1:, 1:] for a, b in itertools.pairwise(starts)]

    # Bases and columns -------------------------------------------------------------------------------

    def _base(self, plan: Plan) -> Base | None:
        """What a plan's rows are numbered in; None where it was made by a join."""
        at = plan
        while isinstance(at, Filter):
            at = at.source
        entry = self._seen.get(id(at))
        if entry is not None and entry[0] is at:
            return entry[1]
        if not self._engine.capabilities.numbered_rows:
            return None
        below: Plan = at
        while isinstance(below, Derive | Filter):
            below = below.source
        if not isinstance(below, Scan | Bound):
            return None
        base = self._bases.get(at)
        if base is None:
            base = self._bases[at] = Base(at, schema_of(at))
        self._seen.put(id(at), (at, base))
        return base

    def _columns(self, base: Base, keys: Sequence[Key]) -> list[NDArray[Any]] | None:
        """The codes of every row of a base, a column a key; those that are missing are read in one go."""
        if not all(map(_coded, keys)):
            return None
        if base.size is None:
            base.size = self._engine.rows(base.plan)
        if base.size > MOST_ROWS:
            return None
        columns: dict[Key, NDArray[Any] | None] = {key: self._codes.get((id(base), key)) for key in keys}
        missing = tuple(key for key, column in columns.items() if column is None)
        for key, read in zip(missing, self._engine.codes(base.plan, missing), strict=True):
            if len(read) != base.size:
                raise refuse("DataError", "the data changed while they were read")
            columns[key] = self._codes.put((id(base), key), read, read.nbytes)
        return [column for key in keys if (column := columns[key]) is not None]

    # Rows --------------------------------------------------------------------------------------------

    def _rows(self, plan: Filter, base: Base) -> NDArray[np.int32]:
        """The row numbers of a filtered plan, in order; of every plan above it, by one split each."""
        import numpy as np

        waiting: list[tuple[Filter, Key, int]] = []
        at: Plan = plan
        rows: NDArray[np.int32] | None = None
        while isinstance(at, Filter):
            key, place = _step(at.condition, base.schema)
            split = self._splits.get((id(at.source), key))
            if split is not None and split.parent is at.source:
                rows = split.piece(place)
                break
            waiting.append((at, key, place))
            at = at.source
        for one, key, place in reversed(waiting):
            rows = self._split(one.source, base, key, rows).piece(place)
        return np.empty(0, dtype=np.int32) if rows is None else rows

    def _split(self, parent: Plan, base: Base, key: Key, rows: NDArray[np.int32] | None) -> Split:
        import numpy as np

        columns = self._columns(base, (key,))
        if columns is None:  # a condition or a value has always a code, and the base was found small enough
            raise refuse("DataError", "the data changed while they were read")
        if rows is None:
            rows = np.arange(base.size or 0, dtype=np.int32)
        mine = columns[0][rows]
        order = np.argsort(mine, kind="stable")  # by radix where codes are short; rows stay in order within a piece
        split = Split(parent, rows[order], mine[order])
        return self._splits.put((id(parent), key), split, split.rows.nbytes + split.codes.nbytes)

    def _worth(self, plan: Plan, base: Base, keys: Sequence[Key]) -> bool:
        """Whether one of the filters is a part by a value; a bare `where` is the engine's business, and so is a base
        whose columns were not read yet."""
        if not isinstance(plan, Filter):
            return base.size is not None and all(self._codes.get((id(base), key)) is not None for key in keys)
        at: Plan = plan
        while isinstance(at, Filter):
            if _by_value(at.condition, base.schema) is not None:
                return True
            at = at.source
        return False


def _step(condition: RowExpr, schema: Schema) -> tuple[Key, int]:
    """A filter as the piece of a split: by the value of an expression, else by the condition's own truth."""
    return _by_value(condition, schema) or (Key(condition, (False, True)), 1)


def _by_value(condition: RowExpr, schema: Schema) -> tuple[Key, int] | None:
    """`E == v` where E has listed or whole values: its key, and v's place (−1 where v is none of them)."""
    if not (isinstance(condition, Apply) and condition.op == "==" and isinstance(condition.args[1], Constant)):
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


def coded_key(expr: RowExpr, schema: Schema) -> Key | None:
    """The key whose codes tell the values of an expression apart; None where it has too many, or unlisted ones."""
    if isinstance(expr, Constant) or kind_of(expr, schema) == "boolean":
        return None
    bounded = isinstance(expr, Column) or _is_floor(expr)
    if not bounded or (kind_of(expr, schema) == "number" and not is_integral(expr, schema)):
        return None
    values = key_values(expr, schema, 2**62)
    key = None if values is None else Key(expr, values)
    return key if key is not None and _coded(key) else None


def _is_floor(expr: RowExpr) -> bool:
    return isinstance(expr, Apply) and expr.op == "floor"


def _coded(key: Key) -> bool:
    return len(key.values) <= (2**24 if isinstance(key.values, range) else MOST_LISTED)
