"""Small tables in memory, counted from their arrays: a statement for each costs a database more than its rows do.

Training reads hundreds of them. Columns of whole numbers, described as such, and of texts that are described by a list
are read here as the database reads them (`sql.cells`), which a suite compares; what else there is stays the database's.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from typing import Any

from jostle.engine.sql.cells import WHOLE
from jostle.integers import fixed_width, same_bits
from jostle.lazy import Array, Ints, NDArray, np
from jostle.plan.plan import Categories, Column, Domain, Integer, Key, Plan, Scan

MOST_ROWS = 2**20
_EXACT = 2**53
_LONG = 2**30  # bytes of texts that are one dictionary
_CELLS = 2**62  # combinations of values that a number of 64 bits tells apart


class Arrays:
    """The columns of a table in memory, `stored` as Arrow has them or as plain arrays, of these names and kinds."""

    def __init__(self, names: Sequence[str], kinds: Sequence[str], stored: Sequence[Any], size: int) -> None:
        self.size = size
        self._stored = dict(zip(names, zip(kinds, stored, strict=True), strict=True))
        self._read: dict[str, tuple[Array, tuple[str, ...] | None] | None] = {}

    def codes(self, plan: Plan, keys: Sequence[Key]) -> list[Array] | None:
        """What the engine's `codes` gives of a scan; None where it is not to be had of the arrays."""
        domains = _described(plan)
        arrays = [self._codes(key, domains) for key in keys]
        return None if any(codes is None for codes in arrays) else [codes for codes in arrays if codes is not None]

    def counts(self, plan: Plan, keys: Sequence[Key], shape: tuple[int, ...]) -> Ints | None:
        """How many rows there are of each combination of the keys' values, in their shape; or None."""
        if not keys:
            return np.array(self.size) if self._stored.keys() >= _described(plan).keys() else None
        codes = self.codes(plan, keys)
        if codes is None:
            return None
        place, inside = np.zeros(self.size, dtype=np.int64), np.ones(self.size, dtype=bool)
        for column, many in zip(codes, shape, strict=True):
            inside &= column >= 0
            place = place * many + column
        return np.bincount(place[inside], minlength=math.prod(shape)).reshape(shape)

    def different(self, plan: Plan, names: Sequence[str]) -> tuple[list[list[object]], list[float]] | None:
        """The different rows of these columns, in order, a list a column, and how often each occurs; or None."""
        domains = _described(plan)
        columns = [self._values(name, domains) for name in names]
        pairs = [column for column in columns if column is not None]
        if len(pairs) < len(columns) or not pairs or any((codes < 0).any() for codes, _ in pairs):
            return None
        sizes = [len(values) for _, values in pairs]
        if math.prod(sizes) > _CELLS:
            return None
        places = np.zeros(self.size, dtype=np.int64)
        for codes, values in pairs:
            places = places * len(values) + codes
        different, counts = np.unique(places, return_counts=True)
        at = np.unravel_index(different, sizes)
        lists = [_listed(values, codes) for (_, values), codes in zip(pairs, at, strict=True)]
        return lists, counts.astype(np.float64).tolist()

    def stamp(self) -> str | None:
        """A text that changes when the cells do, whatever the order of rows; or None."""
        mixed = np.zeros(self.size, dtype=np.uint64)
        for name in self._stored:
            column = self._column(name)
            if column is None:
                return None
            cells, texts = column
            if texts is not None:
                numbers = [int.from_bytes(hashlib.blake2b(t.encode(), digest_size=8).digest(), "big") for t in texts]
                cells = np.array([*numbers, 0], dtype=np.uint64)[cells]
            mixed = _mixed(mixed * np.uint64(31) + cells.astype(np.uint64))
        return f"{self.size}:{int(mixed.sum(dtype=np.uint64)):x}:{int((mixed ^ (mixed >> np.uint64(7))).sum()):x}"

    # Inside ----------------------------------------------------------------------------------------

    def _codes(self, key: Key, domains: dict[str, Domain]) -> Array | None:
        if not isinstance(key.expr, Column):
            return None
        pair = self._values(key.expr.name, domains)
        if pair is None:
            return None
        codes, values = pair
        size = len(key.values)
        width = np.int8 if size < 2**7 else np.int16 if size < 2**15 else np.int32
        if isinstance(values, range) and isinstance(key.values, range):
            first = key.values.start
            place = codes if first == values.start else codes + (values.start - first)
            outside = (place < 0) | (place >= size)
            return np.where(outside, -1, place).astype(width)
        if isinstance(values, range) or isinstance(key.values, range):
            return None
        where = {value: at for at, value in reversed([*enumerate(key.values)])}
        return np.array([*(where.get(value, -1) for value in values), -1], dtype=width)[codes]

    def _values(self, name: str, domains: dict[str, Domain]) -> tuple[Ints, range | tuple[str, ...]] | None:
        """For each row the place of its cleaned cell among the values of its domain, in order; −1 for none."""
        domain, column = domains.get(name), self._column(name)
        if column is None:
            return None
        cells, texts = column
        if isinstance(domain, Integer) and texts is None and max(abs(domain.low), abs(domain.high)) <= _EXACT:
            return np.clip(cells, domain.low, domain.high) - domain.low, range(domain.low, domain.high + 1)
        if isinstance(domain, Categories) and texts is not None:
            values = sorted({value for value in domain.values if isinstance(value, str) and value})
            if len(values) < len(domain.values):
                return None
            where = {value: at for at, value in enumerate(values)}
            places = fixed_width([*(where.get(text, -1) for text in texts), -1])
            return places[cells], tuple(values)
        return None

    def _column(self, name: str) -> tuple[Array, tuple[str, ...] | None] | None:
        """Whole numbers; or for each row the place of its text among the different ones, −1 for none."""
        if name not in self._read:
            self._read[name] = self._decoded(name)
        return self._read[name]

    def _decoded(self, name: str) -> tuple[Array, tuple[str, ...] | None] | None:
        kind, column = self._stored.get(name, ("", None))
        if column is None or self.size > MOST_ROWS:
            return None
        if isinstance(column, np.ndarray):
            if kind in WHOLE:
                return same_bits(column), None
            return _texts(column) if kind == "VARCHAR" else None
        if kind in WHOLE and not column.null_count:
            return same_bits(column.to_numpy()), None
        if kind != "VARCHAR" or not self.size or column.nbytes > _LONG:
            return None
        coded = column.dictionary_encode().chunks  # of one dictionary
        places = [chunk.indices.fill_null(-1).to_numpy(zero_copy_only=False) for chunk in coded]
        return np.concatenate(places), tuple(coded[-1].dictionary.to_pylist())


def _texts(column: NDArray[np.str_]) -> tuple[Ints, tuple[str, ...]] | None:
    """For each row the place of its text among the different ones; None where one is not as Arrow would have it."""

    places: dict[str, int] = {}
    codes = fixed_width([places.setdefault(text, len(places)) for text in column.tolist()])
    try:
        "".join(places).encode()
    except UnicodeEncodeError:
        return None
    return codes, tuple(places)


def _described(plan: Plan) -> dict[str, Domain]:
    return dict(plan.columns) if isinstance(plan, Scan) else {}


def _listed(values: range | tuple[str, ...], codes: NDArray[np.intp]) -> list[object]:
    if isinstance(values, range):
        numbers: list[object] = (codes + values.start).astype(float).tolist()
        return numbers
    return [values[at] for at in codes.tolist()]


def _mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Scatters numbers of 64 bits, one to one (splitmix64)."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))
