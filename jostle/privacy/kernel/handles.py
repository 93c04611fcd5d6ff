"""Handles: what a program holds in place of data.

A handle is a plan over sources, with what is publicly known of it (schema, shape, names) and its `exposures`: for
each private source, the path in that source's budget tree on which a measurement of this handle is charged, and
its stability, that is, how many rows of it can change when one protected unit changes. A public handle has no
exposures and is measured exactly, for nothing. No handle holds a row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from jostle.accounting.budget_tree import Path
from jostle.accounting.definitions import Measure
from jostle.accounting.units import ANY_ROWS, BOUNDS, Unit
from jostle.diagnostics import refuse
from jostle.plan.domains import Domain, Integer
from jostle.plan.plan import WEIGHT_BITS, Key, Plan, RowExpr, Summands
from jostle.plan.records import CELL_BITS, Weights
from jostle.plan.schemas import check_steps

if TYPE_CHECKING:
    from jostle.privacy.kernel.kernel import Allotment
    from jostle.privacy.kernel.sources import Source
    from jostle.source import Span


VALUES = "values"  # what a program calls the cells of a cube


@dataclass(frozen=True, slots=True)
class Exposure:
    """`agents` are smaller budgets of their own that a charge must fit too (PINQ's agents).

    `rows` is how many rows of the handle can change when one protected unit changes, always; None where that has no
    bound, and nothing can be measured. Where rows have weights, `weight` is how much weight they can have in all, and
    what counts weights may go by it. Of the groups of one select `each` bounds the rows that a person has in one.
    """

    source: Source
    path: Path = ()
    rows: int | None = 1
    agents: tuple[Allotment, ...] = ()
    weight: int | None = None
    each: int | None = None
    declared: Unit | None = None

    @classmethod
    def of(cls, source: Source, unit: Unit) -> Exposure:
        """That of a table of a source as it was declared."""
        return cls(source, (), unit.distance, weight=1 if unit.weighted else None, declared=unit)

    @property
    def unit(self) -> Unit:
        return self.declared or self.source.unit

    @property
    def stability(self) -> int:
        """The rows that can change, at least one so that noise has a scale; refused where they are not bounded."""
        return self.bounded()

    def bounded(self, span: Span | None = None) -> int:
        if self.rows is None or self.rows > 2**53:  # which no double tells from one more
            raise refuse("UnboundedSum", ANY_ROWS.format("here"), span, help=BOUNDS)
        return max(1, self.rows)

    @property
    def digest_facts(self) -> tuple[str, int]:
        """What of it decides an answer, beside the plan: for `plan.digest`."""
        return ("Exposure", self.rows or 0)

    @property
    def weighted_stability(self) -> int:
        """For measurements that count each row by its weight (1 where rows have none)."""
        return self.stability if self.weight is None else self.weight


Exposures = tuple[Exposure, ...]


def join_exposures(sides: Iterable[Exposures], factors: Iterable[int]) -> Exposures:
    """Of something made from several handles: one exposure a source, at the common prefix, stabilities summed."""
    joined: dict[int, Exposure] = {}
    for side, factor in zip(sides, factors, strict=True):
        for new in side:
            old = joined.get(id(new.source))
            path = new.path if old is None else common_prefix(old.path, new.path)
            rows = None if new.rows is None else new.rows * factor
            if rows is not None and old is not None:
                rows = None if old.rows is None else rows + old.rows
            agents = dict.fromkeys((*(old.agents if old is not None else ()), *new.agents))
            weight = None if new.weight is None else new.weight * factor
            if weight is not None and old is not None:
                weight = None if old.weight is None else weight + old.weight
            joined[id(new.source)] = Exposure(new.source, path, rows, tuple(agents), weight, declared=new.declared)
    return tuple(joined.values())


def common_prefix(a: Path, b: Path) -> Path:
    shared = len(a) if a == b else 0
    while shared < min(len(a), len(b)) and a[shared] == b[shared]:
        shared += 1
    return a[:shared]


def extended(exposures: Exposures, partition: object, part: object) -> Exposures:
    return tuple(replace(e, path=(*e.path, (partition, part))) for e in exposures)


@dataclass(frozen=True, slots=True, eq=False)
class Handle:
    exposures: Exposures

    @property
    def private(self) -> bool:
        return bool(self.exposures)

    @property
    def measures(self) -> list[Measure]:
        """How each source that it reads is counted."""
        return [e.source.measure for e in self.exposures]

    @property
    def weighted(self) -> bool:
        """Whether its rows have weights."""
        return any(e.weight is not None for e in self.exposures)


class Origin:
    """A declaration, equal to another of the same facts. Hashed once: it stands in the path of every charge."""

    __slots__ = ("_facts", "_hash")

    def __init__(self, *facts: object) -> None:
        self._facts, self._hash = facts, hash(facts)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Origin) and self._facts == other._facts)

    def __hash__(self) -> int:
        return self._hash


@dataclass(frozen=True, eq=False)
class Table(Handle):
    """Rows. `origin` is the declaration while the table was only filtered since it, else `None`."""

    plan: Plan
    schema: tuple[tuple[str, Domain], ...]
    origin: object | None = None

    def __post_init__(self) -> None:
        check_steps(self.plan)

    @cached_property
    def domains(self) -> Mapping[str, Domain]:
        return dict(self.schema)


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Counted:
    """Cells from a counted array, which the vault holds under this very object for as long as it lives."""


@dataclass(frozen=True, slots=True)
class Tallied:
    """Cells by counting the rows of a table under public keys."""

    plan: Plan
    keys: tuple[Key, ...]


@dataclass(frozen=True, slots=True)
class Restricted:
    """The cells of `base` where a condition on the dimensions holds; the others are 0."""

    base: Cells
    condition: RowExpr


Cells = Counted | Tallied | Weights | Restricted


@dataclass(frozen=True, slots=True, eq=False)
class Cube(Handle):
    """Counts over public dimensions `names` (x, y, z or the histogram's own) of the given shape."""

    cells: Cells
    names: tuple[str, ...]
    shape: tuple[int, ...]
    origin: object | None = None

    @property
    def schema(self) -> tuple[tuple[str, Domain], ...]:
        return tuple((n, Integer(0, size - 1)) for n, size in zip(self.names, self.shape, strict=True))

    @property
    def bits(self) -> int:
        """Cells are whole multiples of 2^-bits: sums of weights, where rows have them."""
        cells = self.cells
        while isinstance(cells, Restricted):
            cells = cells.base
        return CELL_BITS if isinstance(cells, Weights) else WEIGHT_BITS if self.weighted else 0

    @property
    def size(self) -> int:
        total = 1
        for side in self.shape:
            total *= side
        return total


@dataclass(frozen=True, slots=True, eq=False)
class ColumnHandle(Handle):
    """A column of a table: its name and domain are public, its cells are not."""

    table: Table
    name: str

    @property
    def domain(self) -> Domain:
        return self.table.domains[self.name]


@dataclass(frozen=True, slots=True, eq=False)
class Vectors(Handle, Summands):
    """Rows as real vectors within a ball of a public `radius` in the norm `l2` or `sup` (`privacy.rows.norms`).

    A coordinate is (column − centre) / scale, computed by `exprs`; means and scales are public.
    """

    plan: Plan
    exprs: tuple[RowExpr, ...]
    names: tuple[str, ...]
    centres: tuple[float, ...]
    scales: tuple[float, ...]
    radius: float
    norm: str = "l2"

    @property
    def place(self) -> tuple[Plan, tuple[RowExpr, ...], float, str]:
        """What decides the rows' whole numbers."""
        return (self.plan, self.exprs, self.radius, self.norm)


def handles_in(value: object) -> list[Handle]:
    """Every private handle inside public containers, for labels and for the paths of a call's arguments.

    At any depth, and each container once, however often it is shared.
    """
    if isinstance(value, Handle):
        return [value] if value.private else []
    handles: list[Handle] = []
    waiting: list[object] = [value]
    passed: set[int] = set()
    while waiting:
        here = waiting.pop()
        if isinstance(here, Handle):
            if here.private:
                handles.append(here)
        elif (isinstance(here, (dict, list, tuple)) or getattr(here, "is_container", False)) and id(here) not in passed:
            passed.add(id(here))
            waiting.extend(reversed(list(here.values() if isinstance(here, dict) else here)))  # type: ignore[call-overload]
    return handles
