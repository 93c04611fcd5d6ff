"""Conversion of arguments of built-ins, and the amounts, errors and weights of `with` clauses.

A reader converts a value of the language to a Python value, or refuses it. `READERS` has them by the annotations of the
functions in `privacy` (`library`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from jostle.accounting.amounts import QUANTA, Amount, as_float
from jostle.accounting.composition import part_of, quanta
from jostle.diagnostics import Note, Refusal, refuse
from jostle.privacy.kernel.exposures import Allotment, Exposures, Handle
from jostle.privacy.kernel.handles import ColumnHandle, Cube, Table
from jostle.privacy.kernel.kernel import Kernel, check_unit
from jostle.run import values as val
from jostle.run.evaluator import Evaluator
from jostle.run.faults import LIBRARY, exposures_of, private_value, refuse_private
from jostle.run.scope import MISSING, Scope
from jostle.run.values import Grouped, JSet, handles_in, is_number, is_sequence, is_vector, kind_name
from jostle.source import Span
from jostle.syntax import nodes as n

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from jostle.privacy.scores import Score


@contextmanager
def amount_for(
    interp: Evaluator, of: Handle | Sequence[Handle], span: Span | None, epsilon: object, delta: object = None
) -> Iterator[Amount | None]:
    """A context with the amount of a measurement: the given one, or all that is left, without the part for `looks`. It
    is validated also for public data."""
    exposures = of.exposures if isinstance(of, Handle) else exposures_of(of)
    with interp.looks.looking(interp.kernel, of, exposures, _amount(interp, exposures, epsilon, delta), span) as amount:
        yield amount


def _amount(interp: Evaluator, exposures: Exposures, epsilon: object, delta: object) -> Amount | None:
    for handle in handles_in([epsilon, delta]):
        raise private_amount(handle)
    amount: Amount | None = None
    if epsilon is not None and not (isinstance(epsilon, float) and epsilon == float("inf") and not exposures):
        amount = Amount("epsilon", quanta(epsilon))
    elif exposures:
        amount = bare_amount(interp.kernel, exposures)
    if amount is None or not exposures:
        return None
    return amount if delta is None else Amount(amount.unit, amount.value, quanta(delta, "delta"))


def score_or_number(interp: Evaluator, score: Score, span: Span | None) -> Score | float | list[float]:
    """A private score, or the exact number of a public one."""
    if score.private:
        return score
    from jostle.privacy.measurements.choices import NoisyScore

    return interp.kernel.measure(NoisyScore.of(score, None, None), span)


# Handles -------------------------------------------------------------------------------------------


def need_cube(value: object, what: str) -> Cube:
    if isinstance(value, Table):
        raise refuse("TypeError", f"`{what}` takes a cube of counts, not a table", help="`histogram(people, x = age)`")
    if not isinstance(value, Cube):
        raise refuse("TypeError", f"`{what}` takes a cube of counts, not {kind_name(value)}")
    return value


def need_table(value: object, what: str, span: Span | None = None) -> Table:
    if not isinstance(value, Table):
        raise refuse("TypeError", f"`{what}` takes a table, not {kind_name(value)}", span)
    return value


def class_column(table: Table, label: object, what: str) -> str:
    """The name of the class column of `what`, given as a described column of the table or as its name."""
    name = label.name if isinstance(label, ColumnHandle) else label
    if not isinstance(name, str) or name not in table.domains:
        raise refuse("NameError", f"`{what}` takes the class as a column of the table", help="or as its name")
    return name


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
    """A value without private handles in it. Refuses others."""
    refuse_private(value, "cannot be part of what is public of a score")
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
    """The items of a list, a set, a range or a table of one column."""
    if isinstance(value, Grouped):
        value = value.only()
    if isinstance(value, val.Interval):
        val.need_room(value.count)
    elif not (isinstance(value, JSet) or is_sequence(value)):
        raise refuse("TypeError", f"utilities are a list, not {kind_name(value)}")
    return list(value)


def numbers(value: object) -> list[float]:
    return [number(v) for v in (value.ravel().tolist() if is_vector(value) else items(value))]


def array(value: object) -> NDArray[np.float64]:
    import numpy as np

    return np.asarray(public(value), dtype=float)


def number_or_pair(value: object) -> object:
    """A number, an int for integers; or a sequence of public values, such as the order and levels of a tree."""
    if is_sequence(value):
        return public(value)
    exact = number(value)
    return int(exact) if exact.is_integer() else exact


def handle(value: object, what: str) -> Handle:
    if not isinstance(value, Handle):
        raise refuse("TypeError", f"`{what}` takes a cube of counts, not {kind_name(value)}")
    return value


READERS: dict[str, Callable[[object, str, Handle | None], object]] = {
    "Handle": lambda value, what, _: handle(value, what),
    "Cube": lambda value, what, _: need_cube(value, what),
    "Table": lambda value, what, _: need_table(value, what),
    "Sums": lambda value, _, cube: need_workload(value, cube).sums(),
    "float": lambda value, _, __: number(value),
    "int": lambda value, _, __: whole(value),
    "Sequence[float]": lambda value, _, __: numbers(value),
    "Sequence[Sequence[float]]": lambda value, _, __: [numbers(v) for v in items(value)],
    "Floats": lambda value, _, __: array(value),
    "Tuning": lambda value, _, __: number_or_pair(value),
}
"""Readers by annotation, functions of a value, the name of the built-in, and the handle of the call."""


class Allotted:
    """`kernel.allot` as a context whose refusals are placed at its `with`."""

    def __init__(self, kernel: Kernel, amount: Amount | None, span: Span, exposures: Exposures) -> None:
        self._kernel, self._amount, self._span, self._exposures = kernel, amount, span, exposures

    def __enter__(self) -> Allotment:
        amount = self._amount
        price = {amount.unit: as_float(amount.value)} if amount is not None else {}
        self._event = self._kernel.events.within("allotment", str(amount or "without limit"), self._span, **price)
        self._opened = self._kernel.allot(self._amount, self._span, self._exposures)
        try:
            self._allotment = self._opened.__enter__()
        except Refusal as refusal:
            raise refusal.at(self._span) from None
        self._fields = self._event.__enter__()
        return self._allotment

    def __exit__(self, *error: object) -> None:
        meters = self._allotment.meters.values()
        self._fields["spent"] = {source.name: as_float(meter.spent[0]) for source, meter in meters}
        self._event.__exit__(None, None, None)
        self._opened.__exit__(None, None, None)


def amount_of(interp: Evaluator, node: n.Amount, scope: Scope, exposures: Exposures) -> Amount | None:
    """The written amount, in which `epsilon` is what is left on the paths of `exposures`.

    In a choice on public data ε is infinite, and so is a part of it: None.
    """
    if node.unit == "share":
        return _share_of(interp, node, scope, exposures)
    if isinstance(node.value, n.Number) and node.delta is None:
        amount = exact_amount(node, node.value.value, None)
    else:
        inner, opened = Scope(scope), interp.kernel.allotment
        if opened is not None and scope.find(node.unit) is MISSING and opened.unit in (None, node.unit):
            inner.set(node.unit, left_of_allotment(interp, exposures, node.unit))
        value = interp.eval(node.value, inner)
        for handle in handles_in(value):
            raise private_amount(handle).at(node.value.span)
        if opened is not None and opened.amount is None and not exposures and value == math.inf:
            return None
        delta = interp.eval(node.delta, inner) if node.delta is not None else None
        amount = exact_amount(node, value, delta)
    for exposure in exposures:
        check_unit(amount, exposure.source, node.span, node.delta.span if node.delta is not None else None)
    return amount


def exact_amount(node: n.Amount, value: object, delta: object) -> Amount:
    """The amount of these numbers. Refusals are placed at the number."""
    span = node.value.span
    try:
        exact = quanta(value, node.unit)
        span = node.delta.span if node.delta is not None else span
        return Amount(node.unit, exact, quanta(delta, "delta") if delta is not None else 0)
    except Refusal as refusal:
        raise refusal.at(span) from None


def _share_of(interp: Evaluator, node: n.Amount, scope: Scope, exposures: Exposures) -> Amount | None:
    """A share of the innermost allotment, or outside any of the budget of the measured data.

    Functions of the library only have the allotment of their caller, and without one their shares are refused.
    """
    inner = interp.kernel.allotment
    if inner is None and node.span.source.name.startswith(LIBRARY):
        bare_amount(interp.kernel, exposures)
    share = interp.eval(node.value, scope)
    for handle in handles_in(share):
        raise private_amount(handle).at(node.value.span)
    try:
        whole = _whole_amount(interp, exposures)
        part = _part_of_amount(
            whole if whole is not None else Amount("epsilon", QUANTA), share
        )  # also checked on public data
    except Refusal as refusal:
        raise refusal.at(node.span) from None
    if whole is None or inner is None or inner.amount is None:
        return part if whole is not None else None
    left = _quanta_left(inner, inner.amount, exposures)  # a share is a double, whose last bit may be many quanta
    return Amount(part.unit, left, part.delta) if 0 < part.value - left <= part.value >> 50 else part


def _part_of_amount(whole: Amount, share: object) -> Amount:
    """A share of an amount and of its delta, rounded down, so that shares with a sum of at most 1 fit into the whole.

    Raises `BadAmount` unless it is a number above 0 and at most 1, and at least one quantum.
    """
    number = isinstance(share, (int, float)) and not isinstance(share, bool)
    if not number or not 0 < share <= 1:  # type: ignore[operator]
        raise refuse(
            "BadAmount", f"a share lies above 0 and up to 1, and this is {f'{share:g}' if number else 'no number'}",
            label="no share", help=f"write `with 1/4`, or an amount with its unit: `with {whole.unit} 0.1`",
        )  # fmt: skip
    value, delta = part_of(whole.value, share), part_of(whole.delta, share)  # type: ignore[arg-type]
    if value == 0:
        raise refuse("BadAmount", f"this share of {whole} is below the smallest amount, 1e-12", help="ask for more")
    return Amount(whole.unit, value, delta)


def _whole_amount(interp: Evaluator, exposures: Exposures) -> Amount | None:
    """The whole that shares refer to: the rest of the innermost allotment at its first share.

    Outside any allotment it is the budget of the measured data. None (no limit) in a call on public data.
    """
    inner = interp.kernel.allotment
    if inner is not None:
        if inner.amount is not None and inner.shared_out is None:
            value = _quanta_left(inner, inner.amount, exposures)
            if value == 0:
                message = f"nothing is left of the allotment of {inner.amount} to share"
                raise refuse("BudgetExceeded", message, help="give what was measured before a share too, `with 1/2`")
            deltas = [inner.amount.delta - meter.spent[1] for _, meter in inner.meters.values()]
            inner.shared_out = Amount(inner.amount.unit, value, max(0, min(deltas, default=inner.amount.delta)))
        return inner.shared_out
    if not exposures:
        raise refuse(
            "NoEpsilon", "a share without a unit stands outside any allotment",
            help="name a unit, `with epsilon 0.5`, or put it in a `with epsilon … { }` block",
        )  # fmt: skip
    limits = [e.source.measure.limit for e in exposures]
    limits += [agent.amount for e in exposures for agent in e.agents if agent.amount is not None]
    for exposure in exposures:
        check_unit(Amount(limits[0].unit, limits[0].value), exposure.source)
    deltas = [limit.delta for limit in limits if limit.delta]
    return Amount(limits[0].unit, min(limit.value for limit in limits), min(deltas, default=0))


def left_of_allotment(interp: Evaluator, exposures: Exposures, what: str = "epsilon") -> float:
    """The value of the name `epsilon`: the rest of the innermost allotment for these exposures, or for the whole."""
    inner = interp.kernel.allotment
    if inner is None:
        raise refuse("NoEpsilon", f"`{what}` stands outside any allotment", help="open one: `with epsilon 0.1 { … }`")
    if inner.amount is None:
        return interp.at_least(math.inf)
    if inner.amount.unit != what:
        raise refuse("TypeError", f"this allotment is in {inner.amount.unit}, not in {what}")
    return interp.at_least(as_float(_quanta_left(inner, inner.amount, exposures)))


def _quanta_left(inner: Allotment, amount: Amount, exposures: Exposures) -> int:
    paths = [(e.source, e.path) for e in exposures or inner.opened_for]
    if not paths:
        paths = [(source, ()) for source, _ in inner.meters.values()]
    return max(0, min((inner.left(*at) for at in paths), default=amount.value))


def bare_amount(kernel: Kernel, exposures: Exposures, shares: int = 1) -> Amount | None:
    """The amount of a query that states none: an equal share of the rest on its paths."""
    if not exposures:
        return None
    inner, source = kernel.allotment, exposures[0].source
    if inner is None:
        raise refuse(
            "NoEpsilon", f"this reads `{source.name}`, which is private, and nothing pays for it", label="unpaid",
            help="write `with epsilon 0.1` at its end, or put it in `with epsilon 0.1 { … }`", notes=source.notes,
        )  # fmt: skip
    if inner.amount is None:
        raise refuse("NoEpsilon", "a private source was met in a call on public data")
    left = min(inner.left(e.source, e.path) for e in exposures)
    if left // shares <= 0:
        raise refuse(
            "BudgetExceeded", f"nothing is left of the allotment of {inner.amount}",
            notes=(Note(inner.span, "the allotment"),) if inner.span else (),
            help="allot more, or give what stands before it a part: `with 1/4`",
        )  # fmt: skip
    delta = max(0, min(inner.left(e.source, () if e.in_parts else e.path, 1) for e in exposures))
    return Amount(inner.amount.unit, left // shares, delta // shares)


def private_amount(handle: Handle) -> Refusal:
    return private_value(handle, "cannot be an amount", "amounts are public numbers")


def mechanism_of(interp: Evaluator, spend: n.Spend) -> str | None:
    if spend.via is None:
        return None
    if isinstance(spend.via, n.Name):
        return spend.via.id
    raise refuse("TypeError", "`via` takes the name of a mechanism", spend.via.span, help="write `via gaussian`")


def wish_of(interp: Evaluator, node: n.Amount, scope: Scope) -> float:
    """The written error or weight, a public number above 0."""
    value = interp.eval(node.value, scope)
    refuse_private(value, f"cannot be the {node.unit} of an answer", node.value.span)
    if not is_number(value) or not 0 < value < math.inf:
        raise refuse("BadAmount", f"{node.unit} is a number above 0", node.value.span, help=f"write `{node.unit} 4`")
    return float(value)


def no_error(node: n.Select) -> Refusal:
    """The refusal of a weight, or of given answers, outside of a `jointly` block."""
    span = node.spend.span if node.spend is not None else node.span
    if node.spend is not None and node.spend.amount.unit == "given":
        help = "put it into a `jointly` block beside the selects that are to agree with it"
        return refuse("TypeError", "answers are given to a select in a `jointly` block", span, help=help)
    return refuse(
        "TypeError", "a weight is no amount that is spent", span,
        help="write `with epsilon 0.1` or `with error 30`, or put the select into a `jointly` block",
    )  # fmt: skip
