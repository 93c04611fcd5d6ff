"""What a program may give a built-in for each kind of parameter, and the amount that a measurement spends.

A reader turns a value of the language into one of Python, or refuses it. `READERS` names them by the annotations of
the functions that stand in `privacy` (`declared`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from jostle.accounting.amounts import Amount, quanta
from jostle.diagnostics import refuse
from jostle.privacy.kernel.exposures import Exposures, Handle, handles_in
from jostle.privacy.kernel.handles import Cube, Table
from jostle.run.evaluator import Evaluator
from jostle.run.faults import exposures_of, private_value
from jostle.run.values import Grouped, JSet, is_number, is_sequence, is_vector, kind_name
from jostle.source import Span

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@contextmanager
def amount_for(
    interp: Evaluator, of: Handle | Sequence[Handle], span: Span | None, epsilon: object, delta: object = None
) -> Iterator[Amount | None]:
    """In the block, the amount of a measurement: given, or all that is left, without what `looks` take; validated also
    where the data are public."""
    exposures = of.exposures if isinstance(of, Handle) else exposures_of(of)
    with interp.looks.looking(interp.kernel, of, exposures, _amount(interp, exposures, epsilon, delta), span) as amount:
        yield amount


def _amount(interp: Evaluator, exposures: Exposures, epsilon: object, delta: object) -> Amount | None:
    for handle in handles_in([epsilon, delta]):
        raise refuse("PrivateValue", f"an amount is public, and this comes from `{handle.exposures[0].source.name}`")
    amount: Amount | None = None
    if epsilon is not None and not (isinstance(epsilon, float) and epsilon == float("inf") and not exposures):
        amount = Amount("epsilon", quanta(epsilon))
    elif exposures:
        amount = interp.kernel.bare_amount(exposures)
    if amount is None or not exposures:
        return None
    return amount if delta is None else Amount(amount.unit, amount.value, quanta(delta, "delta"))


# Handles -------------------------------------------------------------------------------------------


def need_cube(value: object, what: str) -> Cube:
    if isinstance(value, Table):
        raise refuse("TypeError", f"`{what}` takes a cube of counts, not a table", help="`histogram(people, x = age)`")
    if not isinstance(value, Cube):
        raise refuse("TypeError", f"`{what}` takes a cube of counts, not {kind_name(value)}")
    return value


def need_table(value: object, what: str) -> Table:
    if not isinstance(value, Table):
        raise refuse("TypeError", f"`{what}` takes a table, not {kind_name(value)}")
    return value


def need_workload(queries: Any, cube: Handle | None) -> Any:
    if not hasattr(queries, "answers") or not hasattr(queries, "bounds"):
        raise refuse("TypeError", f"queries are a workload, not {kind_name(queries)}", help="such as `prefixes(ages)`")
    if isinstance(cube, Cube) and tuple(queries.shape) != tuple(cube.shape):
        message = f"these queries are for {shape_text(queries.shape)}, and the cube has {shape_text(cube.shape)}"
        raise refuse("ValueError", message, help="make the workload from the same cube: `prefixes(ages)`")
    return queries


def shape_text(shape: Any) -> str:
    return f"{' × '.join(f'{side:,}' for side in shape)} cells"


# Public values ---------------------------------------------------------------------------------------


def public(value: object) -> Any:
    """A value that no private handle is a part of."""
    for handle in handles_in(value):
        raise private_value(handle, "cannot be part of what is public of a score")
    return value


def number(value: Any) -> float:
    if not is_number(public(value)):
        raise refuse("TypeError", f"places and costs are numbers, not {kind_name(value)}")
    return float(value)


def whole(value: object) -> int:
    exact = number(value)
    if not exact.is_integer() or abs(exact) > 2**53:
        raise refuse("ValueError", f"{exact:g} is no whole number")
    return int(exact)


def items(value: Any) -> list[Any]:
    """The items of a list, a set or a table of one column."""
    if isinstance(value, Grouped):
        value = value.only()
    if isinstance(value, JSet) or is_sequence(value):
        return list(value)
    raise refuse("TypeError", f"utilities are a list, not {kind_name(value)}")


def numbers(value: Any) -> list[float]:
    return [number(v) for v in (value.ravel().tolist() if is_vector(value) else items(value))]


def lists_of_numbers(value: object) -> list[list[float]]:
    return [numbers(v) for v in items(value)]


def array(value: object) -> NDArray[np.float64]:
    import numpy as np

    return np.asarray(public(value), dtype=float)


def number_or_pair(value: object) -> Any:
    """A number, whole where it is whole; or a sequence of public values, such as the order and levels of a tree."""
    if is_sequence(value):
        return public(value)
    exact = number(value)
    return int(exact) if exact.is_integer() else exact


def handle(value: object, what: str) -> Handle:
    if not isinstance(value, Handle):
        raise refuse("TypeError", f"`{what}` takes a cube of counts, not {kind_name(value)}")
    return value


READERS: dict[str, Callable[[Any, str, Handle | None], Any]] = {
    "Handle": lambda value, what, _: handle(value, what),
    "Cube": lambda value, what, _: need_cube(value, what),
    "Table": lambda value, what, _: need_table(value, what),
    "Sums": lambda value, _, cube: need_workload(value, cube).sums(),
    "float": lambda value, _, __: number(value),
    "int": lambda value, _, __: whole(value),
    "Sequence[float]": lambda value, _, __: numbers(value),
    "Sequence[Sequence[float]]": lambda value, _, __: lists_of_numbers(value),
    "Floats": lambda value, _, __: array(value),
    "Tuning": lambda value, _, __: number_or_pair(value),
}
"""By annotation: of a value, the built-in's name and the handle that it is about."""
