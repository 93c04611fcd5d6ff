"""Handles: what a program holds in place of data.

A handle is a plan over sources, with what is publicly known of it (schema, shape, names) and its `exposures`: for
each private source, the path in that source's budget tree on which a measurement of this handle is charged, and
its stability, that is, how many rows of it can change when one protected unit changes. A public handle has no
exposures and is measured exactly, for nothing. No handle holds a row.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from jostle.engine.plan import Categories, Domain, Integer, Key, Plan, RowExpr
from jostle.privacy.budget import Path

if TYPE_CHECKING:
    from jostle.privacy.kernel import Allotment
    from jostle.privacy.sources import Source


@dataclass(frozen=True, slots=True)
class Exposure:
    """`agents` are smaller budgets of their own that a charge must fit too (PINQ's agents)."""

    source: Source
    path: Path = ()
    stability: int = 1
    agents: tuple[Allotment, ...] = ()


Exposures = tuple[Exposure, ...]


def join_exposures(sides: Iterable[Exposures], factors: Iterable[int]) -> Exposures:
    """Of something made from several handles: one exposure a source, at the common prefix, stabilities summed."""
    met: dict[int, Exposure] = {}
    for side, factor in zip(sides, factors, strict=True):
        for new in side:
            old = met.get(id(new.source))
            path = new.path if old is None else common_prefix(old.path, new.path)
            stability = new.stability * factor + (old.stability if old is not None else 0)
            agents = dict.fromkeys((*(old.agents if old is not None else ()), *new.agents))
            met[id(new.source)] = Exposure(new.source, path, stability, tuple(agents))
    return tuple(met.values())


def common_prefix(a: Path, b: Path) -> Path:
    shared = 0
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


@dataclass(frozen=True, slots=True, eq=False)
class Table(Handle):
    """Rows. `origin` is the declaration while the table was only filtered since it, else `None`."""

    plan: Plan
    schema: tuple[tuple[str, Domain], ...]
    origin: object | None = None

    @property
    def domains(self) -> dict[str, Domain]:
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


Cells = Counted | Tallied | Restricted


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

    @property
    def categories(self) -> tuple[str | float, ...] | None:
        """The public values, where there are finitely many."""
        if isinstance(self.domain, Categories):
            return tuple(self.domain.values)
        if isinstance(self.domain, Integer):
            return tuple(float(v) for v in range(self.domain.low, self.domain.high + 1))
        return None


@dataclass(frozen=True, slots=True, eq=False)
class Score(Handle):
    """A private scalar of the kernel: `of` names it, `sensitivity` is per changed row, in units of 2^-bits."""

    of: str
    base: Handle
    sensitivity: int
    monotone: bool
    bits: int = 0
    arguments: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Scores(Score):
    """A private vector of `length` scores, each of the same sensitivity."""

    length: int = 1


def handles_in(value: object) -> list[Handle]:
    """Every private handle inside public containers, for labels and for the paths of a call's arguments.

    At any depth, and each container once, however often it is shared.
    """
    if isinstance(value, Handle):
        return [value] if value.private else []
    found: list[Handle] = []
    waiting: list[object] = [value]
    seen: set[int] = set()
    while waiting:
        here = waiting.pop()
        if isinstance(here, Handle):
            if here.private:
                found.append(here)
        elif (isinstance(here, (dict, list, tuple)) or getattr(here, "is_container", False)) and id(here) not in seen:
            seen.add(id(here))
            waiting.extend(reversed(list(here.values() if isinstance(here, dict) else here)))  # type: ignore[call-overload]
    return found
