"""What `--simulate` puts in place of a private source: a public stand-in given with `--bind`, or made-up rows."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

from jostle.accounting.definitions import Measure
from jostle.accounting.units import Unit
from jostle.diagnostics import refuse
from jostle.language.builtins import OPENERS
from jostle.language.forms import DIMENSIONS
from jostle.language.moments import number_of
from jostle.plan.domains import Categories, Domain, Integer, Moments, Open, Real
from jostle.privacy.kernel.exposures import Handle
from jostle.privacy.reading.minting import private_cube, private_table
from jostle.run.clauses import described_schema
from jostle.run.evaluator import Evaluator
from jostle.run.origins import (
    announce,
    array_of,
    check_columns,
    files_of,
    is_array,
    is_paths,
    open_origin,
)
from jostle.run.scope import Scope
from jostle.syntax import nodes as n
from jostle.syntax.walk import every

_MADE_UP_DAYS: dict[str, tuple[date, date]] = {
    "date": (date(2020, 1, 1), date(2024, 12, 31)),
    "time": (datetime(2020, 1, 1), datetime(2024, 12, 31, 23, 59, 59)),
}
Schema = tuple[tuple[str, Domain], ...]


def simulated(interp: Evaluator, node: n.Private, kind: str, measure: Measure, unit: Unit, scope: Scope) -> Handle:
    """The handle of a source that stands in for a private one, which is not opened. Noise is seeded."""
    from jostle.simulate import SeededNoise, counts_of

    seed = (interp.simulate or 0) + len(interp.kernel.register.names)
    source = interp.kernel.register.declare(
        node.name, ("simulated", node.name), measure, unit, node.span, SeededNoise(seed)
    )
    public = interp.bound.get(node.name)
    public = files_of(interp, public, node.source.span) if is_paths(public) else public
    if kind == "counts" or is_array(public):
        stand_in = public if public is not None else _program_counts(interp, node, scope)
        array, _ = array_of(interp, stand_in, node.source.span, private=True)
        cells = array if public is not None else counts_of(array.shape, interp.made_up_rows, seed)
        announce(interp, source, node, list(DIMENSIONS[: array.ndim]))
        return private_cube(interp.data, source, cells, DIMENSIONS[: cells.ndim], source)
    if node.described is None:
        raise refuse("DataError", f"`{node.name}` is not described", node.span, help="add `described by {…}`")
    schema = described_schema(interp, node.described, scope)
    told: dict[str, Domain] = dict.fromkeys(unit.columns, Open("text"))  # what is protected need not be described
    key = simulated_rows(interp, node, schema, told, seed)
    announce(interp, source, node, [name for name, _ in schema])
    return interp.looks.described(private_table(source, key, schema), node.described)


def simulated_rows(interp: Evaluator, node: n.Private, schema: Schema, told: dict[str, Domain], seed: int) -> str:
    """The engine's key of rows that stand in for those of a private table: what is bound to its name, or made up.

    `told` are the columns that tell whose a row is. Where no rows are to be made up none are opened, and none can be
    read.
    """
    from jostle.simulate import rows_of

    if not interp.made_up_rows:
        return ""
    public = interp.bound.get(node.name)
    rows = files_of(interp, public, node.source.span) if is_paths(public) else public
    if rows is None:
        rows = rows_of({name: _wish(d) for name, d in (told | dict(schema)).items()}, interp.made_up_rows, seed)
    names = (*(name for name, _ in schema), *told)
    opened = open_origin(interp, rows, node.source.span, public=False, names=names)
    check_columns(schema, opened, node.described.span if node.described is not None else None)
    return str(opened.key)


def _program_counts(interp: Evaluator, node: n.Private, scope: Scope) -> Any:
    """The counts that the program itself makes, which only their shape is taken of; refused where it takes a file."""
    source = node.source
    value = None
    if isinstance(source, n.Call) and len(source.args) == 1 and not _opens(source.args[0]):
        value = interp.eval(source.args[0], scope)
    if value is None or isinstance(value, str | Handle):
        raise refuse(
            "DataError", f"the shape of `{node.name}` is in a file that is not opened in a simulation", node.span,
            help=f"give a public stand-in: `--bind {node.name}=FILE`",
        )  # fmt: skip
    return value


def _opens(expression: n.Node) -> bool:
    """Whether an expression calls what opens files."""
    calls = (part.function for part in every(expression) if isinstance(part, n.Call))
    return any(isinstance(function, n.Name) and function.id in OPENERS for function in calls)


def _wish(domain: Domain) -> tuple[str, Any, Any]:
    if isinstance(domain, Integer):
        return ("integer", domain.low, domain.high)
    if isinstance(domain, Real):
        return ("real", domain.low, domain.high)
    if isinstance(domain, Categories):
        return ("listed", list(domain.values), None)
    if isinstance(domain, Moments):
        return (domain.kind, domain.low, domain.high)
    if domain.kind == "boolean":
        return ("listed", [False, True], None)
    if domain.kind in ("date", "time"):
        first, last = _MADE_UP_DAYS[domain.kind]
        return (domain.kind, number_of(first), number_of(last))
    return {"integer": ("integer", 0, 99), "real": ("real", 0.0, 1.0)}.get(
        domain.kind, ("listed", [f"made up {i}" for i in range(20)], None)
    )
