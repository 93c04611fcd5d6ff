"""Handles: what a program holds in place of data.

A handle is a plan over sources, with what is publicly known of it (schema, shape, names) and its `exposures`. No handle
holds a row.
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

VALUES = "values"  # what a program calls the cells of a cube
UNWEIGHTED = "declare the source without `weighted`, or use a measurement that adds up weights"


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
    """Rows. `origin` is the declaration while the table was only filtered since it, else `None`; `facts` tell what else
    is publicly known of its columns."""

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
        """The ends between which an expression is known to lie: finite numbers, the lower one first."""
        ends = self.facts.bounds(expr, self.domains)
        return ends if ends is not None and -math.inf < ends[0] <= ends[1] < math.inf else None

    def key_of(self, expr: RowExpr, over: Values | None, limit: int) -> Key | None:
        """A group key over listed values, or those that the expression is known to have; None where there are none."""
        return key_of(expr, over, self.domains, limit, self.facts)


class Counted(Struct, frozen=True, eq=False, weakref=True):
    """Cells from a counted array, which the vault holds under this very object for as long as it lives."""


class Tallied(Struct, frozen=True):
    """Cells by counting the rows of a table under public keys."""

    plan: Plan
    keys: tuple[Key, ...]


class Restricted(Struct, frozen=True, eq=False):
    """The cells of `base` where a public `mask` says so, which broadcasts to their shape; the others are 0.

    Histories know it by the condition on the dimensions that it was made of.
    """

    base: Cells
    condition: RowExpr
    mask: Bools

    @property
    def digest_facts(self) -> tuple[str, Cells, RowExpr]:
        return "Restricted", self.base, self.condition


class Summed(Struct, frozen=True):
    """Cells that ask an engine for their sums themselves, exact integers in units of 2^-`bits`."""

    bits: ClassVar[int]

    def sums(self, answers: Answers) -> NDArray[np.object_]:
        raise NotImplementedError


Cells = Counted | Tallied | Summed | Restricted


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
        return cells.bits if isinstance(cells, Summed) else WEIGHT_BITS if self.weighted else 0

    @property
    def size(self) -> int:
        return math.prod(self.shape)


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


def need_counts(cube: Cube) -> None:
    """Refuses cells that are sums of weights."""
    if cube.bits:
        raise refuse("TypeError", "this is measured of counts of rows, and these have weights", help=UNWEIGHTED)


def partition_label(handle: Table | Cube, expr: RowExpr, *, exact: bool) -> object:
    """The partition that a part belongs to: parts under one label must be disjoint, whoever made them.

    `exact` parts are where the column equals the key, the others where its floor does. The two agree where every
    value of the column is whole or a text; elsewhere 1.5 would be both in part 1 and in part 1.5, so they differ.
    """
    if handle.origin is None or not isinstance(expr, Column):
        return object()
    domain = dict(handle.schema)[expr.name]
    agree = isinstance(domain, Integer) or (
        isinstance(domain, Categories) and all(isinstance(v, str) or float(v).is_integer() for v in domain.values)
    )
    return (handle.origin, expr.name, "exact" if exact and not agree else "floor")
