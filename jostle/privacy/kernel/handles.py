"""Handles: the values that stand for data in a program.

A handle is a plan over sources, with its public facts (schema, shape, names) and its `exposures`. No handle holds a
row.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from msgspec import Struct

from jostle.diagnostics import refuse
from jostle.engine.base import Answers
from jostle.lazy import Bools, NDArray, np
from jostle.plan.plan import WEIGHT_BITS, Categories, Column, Domain, Integer, Key, Plan, RowExpr, Summands
from jostle.plan.schemas import BY_KINDS, Facts, Values, check_steps, key_of
from jostle.privacy.kernel.exposures import Handle

VALUES = "values"  # the name of a cube's cells in programs
UNWEIGHTED = "declare the source without `weighted`, or use a measurement that adds up weights"


class Origin:
    """A declaration, equal to others with the same facts. The hash is stored, since every charge uses it."""

    __slots__ = ("_facts", "_hash")

    def __init__(self, *facts: object) -> None:
        self._facts, self._hash = facts, hash(facts)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Origin) and self._facts == other._facts)

    def __hash__(self) -> int:
        return self._hash


@dataclass(frozen=True, eq=False)
class Table(Handle):
    """A table of rows. `origin` is the declaration if the table was only filtered since, else None. `facts` has further
    public facts about its columns."""

    plan: Plan
    schema: tuple[tuple[str, Domain], ...]
    origin: object | None = None
    facts: Facts = BY_KINDS

    def __post_init__(self) -> None:
        check_steps(self.plan)

    @cached_property
    def domains(self) -> Mapping[str, Domain]:
        return dict(self.schema)

    def bounds_of(self, expr: RowExpr) -> tuple[float, float] | None:
        """The known bounds of an expression, finite, the lower one first; None without any."""
        ends = self.facts.bounds(expr, self.domains)
        return ends if ends is not None and -math.inf < ends[0] <= ends[1] < math.inf else None

    def key_of(self, expr: RowExpr, over: Values | None, limit: int) -> Key | None:
        """A group key over `over`, or over the known values of the expression; None if these are not known."""
        return key_of(expr, over, self.domains, limit, self.facts)


class Counted(Struct, frozen=True, eq=False, weakref=True):
    """Cells of an array of counts, which the vault stores under this object for as long as it lives."""


class Tallied(Struct, frozen=True):
    """Cells that count the rows of a table by public keys."""

    plan: Plan
    keys: tuple[Key, ...]


class Restricted(Struct, frozen=True, eq=False):
    """The cells of `base` where a public `mask` is true (broadcast to their shape); the others are 0.

    `condition`, on the dimensions, is what the mask was computed from, and identifies it in the ledger.
    """

    base: Cells
    condition: RowExpr
    mask: Bools

    @property
    def digest_facts(self) -> tuple[str, Cells, RowExpr]:
        return "Restricted", self.base, self.condition


class Summed(Struct, frozen=True):
    """Cells that are exact sums computed by an engine, in units of 2^-`bits`."""

    bits: ClassVar[int]

    def sums(self, answers: Answers) -> NDArray[np.object_]:
        raise NotImplementedError


Cells = Counted | Tallied | Summed | Restricted


@dataclass(frozen=True, slots=True, eq=False)
class Cube(Handle):
    """Counts over public dimensions `names` (x, y, z or the histogram's own) with the given shape."""

    cells: Cells
    names: tuple[str, ...]
    shape: tuple[int, ...]
    origin: object | None = None

    @property
    def schema(self) -> tuple[tuple[str, Domain], ...]:
        return tuple((n, Integer(0, size - 1)) for n, size in zip(self.names, self.shape, strict=True))

    @property
    def bits(self) -> int:
        """Cells are whole multiples of 2^-bits; 0 for counts, more for sums of weights."""
        cells = self.cells
        while isinstance(cells, Restricted):
            cells = cells.base
        return cells.bits if isinstance(cells, Summed) else WEIGHT_BITS if self.weighted else 0

    @property
    def size(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True, slots=True, eq=False)
class ColumnHandle(Handle):
    """A column of a table. Its name and domain are public; its cells are not."""

    table: Table
    name: str

    @property
    def domain(self) -> Domain:
        return self.table.domains[self.name]


@dataclass(frozen=True, slots=True, eq=False)
class Vectors(Handle, Summands):
    """Rows as real vectors within a ball of public `radius` in the norm `l2` or `sup` (`privacy.rows.norms`).

    A coordinate is (column − centre) / scale, computed by `exprs`. Centres and scales are public.
    """

    plan: Plan
    exprs: tuple[RowExpr, ...]
    names: tuple[str, ...]
    centres: tuple[float, ...]
    scales: tuple[float, ...]
    radius: float
    norm: str = "l2"


def need_counts(cube: Cube) -> None:
    """Refuses a cube whose cells are sums of weights."""
    if cube.bits:
        raise refuse("TypeError", "this is measured of counts of rows, and these have weights", help=UNWEIGHTED)


def partition_label(handle: Table | Cube, expr: RowExpr, *, exact: bool) -> object:
    """The label of the partition that a part belongs to. Parts under one label must be disjoint.

    An `exact` part has the rows whose column equals the key, other parts those whose floor does. Both agree if every
    value of the column is whole or a text. Otherwise 1.5 would be in part 1 and in part 1.5, so the labels differ.
    """
    if handle.origin is None or not isinstance(expr, Column):
        return object()
    domain = dict(handle.schema)[expr.name]
    agree = isinstance(domain, Integer) or (
        isinstance(domain, Categories) and all(isinstance(v, str) or float(v).is_integer() for v in domain.values)
    )
    return (handle.origin, expr.name, "exact" if exact and not agree else "floor")
