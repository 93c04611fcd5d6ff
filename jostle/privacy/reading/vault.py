"""The reader of exact private numbers, and the store of exact cells.

Arrays of counts are stored, and counts of rows by plans are cached in up to `LIMIT` bytes, the oldest dropped first.
The kernel holds the reader and passes it to `Measurement.read` and to nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar
from weakref import WeakKeyDictionary

from jostle.engine.base import Answers, Engine, LruCache
from jostle.events import Stream
from jostle.integers import fixed_width
from jostle.lazy import Ints, np
from jostle.plan.plan import Count
from jostle.privacy.kernel.exposures import Exposures, Register
from jostle.privacy.kernel.handles import Cells, Counted, Cube, Restricted, Summed, Tallied, need_counts
from jostle.privacy.kernel.kernel import Kernel
from jostle.privacy.reading.public_data import PublicData

LIMIT = 512 * 2**20


class Reader:
    """Reads from `answers`, an engine or `speed.fast`, which returns the same. `need_open` is a `Register`'s."""

    def __init__(self, answers: Answers, need_open: Callable[[Exposures], None] = lambda exposures: None) -> None:
        self.answers, self._need_open = answers, need_open
        self.split_scores: LruCache[int] = LruCache(0)  # exact scores of `scores.splits`, by node
        self._arrays: WeakKeyDictionary[Counted, Ints] = WeakKeyDictionary()
        self._kept: LruCache[Ints] = LruCache(LIMIT)
        self.steps: WeakKeyDictionary[object, object] = WeakKeyDictionary()  # exact sums and noise of running answers

    def check(self, question: object) -> None:
        """Refuses a question that this engine cannot answer as the others do, before anything is charged."""
        self.answers.check(question)

    def keep(self, array: Ints) -> Counted:
        """Stores an array of counts for as long as the returned key lives."""
        key = Counted()
        self._arrays[key] = array
        return key

    def cells(self, cube: Cube) -> Ints:
        """The exact counts of a cube, int64, in its shape, not to be modified. Refused for sums of weights."""
        need_counts(cube)
        return self.units(cube)

    def units(self, cube: Cube) -> Ints:
        """The exact cells of a cube in units of 2^-`cube.bits`, in its shape, not to be modified: int64, or Python
        integers for weights whose sums may exceed 64 bits."""
        self._need_open(cube.exposures)
        cells = self._cells(cube.cells, cube)
        wide = cube.bits and float(np.abs(cells).sum(dtype=float)) >= 2.0**62
        return np.asarray(cells, dtype=object) if wide else cells

    def all_units(self, cubes: Sequence[Cube]) -> list[Ints]:
        """The cells of several cubes, in one pass over the rows if they are of the same table."""
        for cube in cubes:
            self._need_open(cube.exposures)
        histograms = [c.cells for c in cubes if isinstance(c.cells, Tallied) and not c.weighted]
        missing = [cells for cells in histograms if self._kept.get(cells) is None]
        if len(missing) > 1 and all(cells.plan is missing[0].plan for cells in missing):
            tables = self.answers.counts(missing[0].plan, [cells.keys for cells in missing])
            for cells, counts in zip(missing, tables, strict=True):
                self._kept.put(cells, counts, counts.nbytes)
        return [self._cells(cube.cells, cube) for cube in cubes]

    def _cells(self, cells: Cells, cube: Cube) -> Ints:
        if isinstance(cells, Counted):
            return self._arrays[cells]
        if isinstance(cells, Restricted):
            return np.where(cells.mask, self._cells(cells.base, cube), 0)
        counts = self._kept.get(cells)
        if counts is None:
            if isinstance(cells, Summed):
                sums = cells.sums(self.answers)
            else:
                (sums,) = self.answers.group(cells.plan, cells.keys, (Count(weighted=cube.weighted),))
            shaped = fixed_width(sums).reshape(cube.shape)
            shaped.flags.writeable = False  # later measurements read it too
            counts = self._kept.put(cells, shaped, shaped.nbytes)
        return counts


K = TypeVar("K", bound=Kernel)


def kernel_over(engine: Engine, events: Stream, answers: Answers | None = None) -> tuple[Kernel, PublicData]:
    """A session's `Kernel` and its access to public data."""
    return assembled(engine, events, Kernel, answers)


def assembled(engine: Engine, events: Stream, kind: type[K], answers: Answers | None = None) -> tuple[K, PublicData]:
    """A kernel, whose `measure` alone reads private rows of `engine`, and the access to its public data.

    `answers` returns what the engine would, faster. A reference to the engine gives access to the rows, so a session
    creates its engine and passes it to nothing but this function.
    """
    register = Register()
    reader = Reader(engine if answers is None else answers, register.need_open)
    return kind(register, reader, events), PublicData(engine, reader.keep, reader.cells, register)
