"""Fields and elements of public values, and the public facts of handles."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from jostle.diagnostics import Refusal, refuse
from jostle.doubles import place
from jostle.language.misfits import no_categories, no_elements, no_field, no_fields, no_place, outside
from jostle.language.moments import moment_of
from jostle.plan.domains import Domain, Integer, Moments, Real, listed
from jostle.privacy.kernel.exposures import handles_in
from jostle.privacy.kernel.handles import ColumnHandle, Cube, Table, Vectors
from jostle.privacy.scores.splits import promised_rows
from jostle.run.bins import edges_of
from jostle.run.elements import element as element_of
from jostle.run.externals import of_kernel, to_jostle, vectors_facts
from jostle.run.faults import private_value
from jostle.run.periods import Period
from jostle.run.values import (
    Grouped,
    Interval,
    Module,
    Record,
    is_model,
    is_number,
    is_sequence,
    is_vector,
    is_workload,
    kind_name,
    need_room,
    show_number,
)  # fmt: skip


def attribute(value: object, name: str) -> Any:
    """`value.name`. A bare cube, where an Option takes a record, is its `database`, and its cells are the `queries`."""
    if type(value) is Record and name in value:  # nearly always
        return value[name]
    if isinstance(value, ColumnHandle):
        return _of_column(value, name)
    if isinstance(value, Cube) and name == "database":
        return value
    if isinstance(value, Cube) and name == "queries":
        from jostle.kernels.workloads.boxes import identity

        return identity(value.shape)
    fields = fields_of(value)
    if fields is None:
        raise Refusal(no_fields(kind_name(value), name))
    if name not in fields:
        raise Refusal(no_field(kind_name(value), name, fields))
    element = fields[name]
    if is_model(value):
        return of_kernel(name, element) if callable(element) else to_jostle(element)
    return element


def _of_column(column: ColumnHandle, name: str) -> Any:
    """A field of a column; its categories are listed only where they are asked for."""
    if name in ("name", "edges"):
        return column.name if name == "name" else edges_of(column)
    finite = _listed(column.domain) if name == "categories" and not isinstance(column.domain, Real) else None
    if finite is not None:
        return list(finite)
    fields = {"name": column.name} | _bounds(column) if name in ("kind", "low", "high") else fields_of(column) or {}
    if name == "categories" and name not in fields:
        raise Refusal(no_categories(column.name, real=isinstance(column.domain, Real)))
    if name not in fields:
        raise Refusal(no_field(kind_name(column), name, fields))
    return fields[name]


def fields_of(value: Any) -> Mapping[str, Any] | None:
    """The fields of a value by name, public facts of a handle among them; None for what has none."""
    if isinstance(value, Record):
        return value
    if isinstance(value, Module):
        return value.names
    if isinstance(value, Grouped):
        return value.columns
    if isinstance(value, Cube):
        sides = {f"{n}_range": float(s) for n, s in zip(value.names, value.shape, strict=True)}
        return {**sides, "domain_size": float(value.size), "dimensions": list(value.names)}
    if isinstance(value, Table):
        promised = promised_rows(value)
        return {"columns": list(value.domains), "at_most": None if promised is None else float(promised)}
    if isinstance(value, Vectors):
        return vectors_facts(value)
    if isinstance(value, ColumnHandle):
        finite = _listed(value.domain)
        facts = {"name": value.name, "edges": edges_of(value)} | _bounds(value)
        return facts | ({"categories": list(finite)} if finite is not None else {})
    if isinstance(value, Interval | Period):
        return {"low": value.low, "high": value.high}
    if is_workload(value):
        return {"kind": value.kind, "size": float(value.size), "mean_length": float(value.mean_length)}
    return getattr(value, "jostle_fields", None)


def _listed(domain: Domain) -> tuple[Any, ...] | None:
    """The public values of a column, where there are finitely many; refused where these are too many to hold."""
    if isinstance(domain, Integer):
        need_room(domain.high - domain.low + 1)
        if domain.high - domain.low < FEW:
            return _few(domain)
    return listed(domain)


FEW = 2**10
_few = lru_cache(maxsize=2**10)(listed)
"""What domains of few values list, which is asked again and again."""


def _bounds(column: ColumnHandle) -> dict[str, Any]:
    """A column's `kind` (integer, real, listed, open) and, of a bounded number, its public `low` and `high`."""
    domain = column.domain
    if isinstance(domain, Integer | Real):
        kind = "integer" if isinstance(domain, Integer) else "real"
        return {"kind": kind, "low": float(domain.low), "high": float(domain.high)}
    if isinstance(domain, Moments):
        low, high = (moment_of(domain.kind, end) for end in (domain.low, domain.high))
        return {"kind": domain.kind, "low": low, "high": high}
    return {"kind": "open" if listed(domain) is None else "listed"}


def index(value: Any, at: Any) -> Any:
    """`value[at]`: an element of a list or vector, a field of a record."""
    if isinstance(value, dict):
        if not isinstance(at, str):
            raise refuse("TypeError", f"a record is indexed by a name, not {kind_name(at)}")
        return attribute(value, at)
    if isinstance(value, Grouped) and isinstance(at, str):
        return attribute(value, at)
    if isinstance(value, Grouped):
        rows = list(value)
        return rows[_place(at, len(rows))]
    if isinstance(value, str):
        return value[_place(at, len(value))]
    if is_vector(value):
        return element_of(value, _place(at, len(value)))
    if is_sequence(value):
        return value[_place(at, len(value))]
    raise Refusal(no_elements(kind_name(value)))


def _place(at: Any, length: int) -> int:
    if handles_in(at):
        raise private_value(handles_in(at)[0], "cannot be an index")
    if not is_number(at) or not float(at).is_integer():
        raise Refusal(no_place(kind_name(at) if not is_number(at) else show_number(at)))
    here = place(at, length)
    if here is None:
        raise Refusal(outside(show_number(float(at)), length))
    return here
