"""Functions of answers that are refined step by step: `refinable`, `refine`, and `sum_of`, a sum as a score."""

from __future__ import annotations

from typing import Any

from jostle.diagnostics import Refusal, refuse
from jostle.formulas import Noised, Refinements
from jostle.plan.kinds import as_number
from jostle.privacy.kernel.handles import Cube, Table, Vectors
from jostle.privacy.measurements.choices import NoisyScore
from jostle.privacy.measurements.gradual import Refinable, Refinement
from jostle.privacy.measurements.sums import sum_of
from jostle.privacy.mechanisms.linear import every_cell
from jostle.privacy.scores.cells import size
from jostle.privacy.scores.rule import Score
from jostle.run.accuracy import with_noise
from jostle.run.arguments import amount_for
from jostle.run.cuts import cut_of
from jostle.run.evaluator import Evaluator
from jostle.run.qualifiers import Qualifiers
from jostle.run.registry import builtin, implement
from jostle.run.rows import RowCompiler
from jostle.run.scope import Scope
from jostle.run.values import is_number, kind_name
from jostle.syntax import nodes as n


def _sum_of(interp: Evaluator, node: n.Call, scope: Scope) -> Any:
    """`sum_of(people, income)`: a score; of a public table, the sum."""
    if len(node.args) != 2 or node.keywords:
        help = "`sum_of(people, income)`"
        raise refuse("TypeError", "`sum_of` takes a table and what is added of each row", node.span, help=help)
    table = interp.eval(node.args[0], scope)
    if not isinstance(table, Table):
        raise refuse("TypeError", f"`sum_of` takes a table, not {kind_name(table)}", node.args[0].span)
    compiler = RowCompiler(table.domains, interp, scope, Qualifiers.of(node.args[0], table.domains))
    expr, _ = compiler.column_position(node.args[1])
    try:
        score = sum_of(table, as_number(expr, table.domains))
    except Refusal as refusal:
        raise refusal.at(node.args[1].span) from None
    return score if score.private else interp.kernel.measure(NoisyScore.of(score, None, None), node.span)


implement("sum_of", _sum_of)


@builtin
def _refinable(value: object) -> Any:
    """A score, the number of rows, or the cells of a cube, to be asked for step by step; a public number is itself."""
    base = size(value) if isinstance(value, Table | Vectors) else value
    if is_number(base):
        return base
    if not isinstance(base, Score | Cube):
        help = "`refinable(people)` for a count, `refinable(histogram(people, x = city))` for counts"
        raise refuse("TypeError", f"a score, a table or a cube can be refined, not {kind_name(value)}", help=help)
    return Refinable.of(base, Refinements().append)


@builtin
def _refine(value: Any, *, epsilon: Any = None, at: Any) -> Any:
    """The answer with the noise of all that was paid for it; of public data the exact one."""
    interp, span = at
    if is_number(value):
        return value
    if not isinstance(value, Refinable):
        help = "`n = refinable(people)` first: then `refine(n) with epsilon 0.01`, and again"
        raise refuse("TypeError", f"`refine` takes what is refinable, not {kind_name(value)}", help=help)
    with amount_for(interp, value, span, epsilon) as amount:
        step = interp.kernel.measure(Refinement.of(value, amount), span)
    misfits = interp.looks.cut_of(value, value.exposures)
    if isinstance(value.base, Score):
        (number,) = step.values.tolist()
        return number if step.origin is None else Noised.of(number, step.origin.element(0), misfits)
    cells = with_noise(step.values, step.paid, step.law, every_cell(value.base.size), (*cut_of(value.base), *misfits))
    cells.origin = step.origin
    return cells
