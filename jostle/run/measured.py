"""Functions that measure: noisy vectors, scores, selections, and the partition of DAWA.

Each takes its amount from `… with epsilon e` or `epsilon = e`, or spends all that is left of the allotment it stands
in, as a bare query does. On public handles each is exact and free. Also here: `noisy_samples` and `perturbed_optimum`
of graphical models, and answers that are refined step by step, `refinable` and `refine`.
"""

from __future__ import annotations

import math
from types import ModuleType
from typing import TYPE_CHECKING

from jostle.accounting.amounts import Amount, as_float
from jostle.accounting.composition import quanta, rate_for
from jostle.diagnostics import refuse
from jostle.formulas import Exact, Noised, Refinements
from jostle.lazy import Floats, np
from jostle.noise_laws import AdditiveLaw, Gaussian
from jostle.plan.kinds import as_number
from jostle.privacy.kernel.handles import Cube, Table, Vectors
from jostle.privacy.measurements.answers import Answers, JointCells
from jostle.privacy.mechanisms.linear import every_cell
from jostle.privacy.scores import Score, Scores
from jostle.privacy.transformations import transform
from jostle.run import answers
from jostle.run.arguments import amount_for, items, need_cube, need_table, need_workload, score_or_number, shape_text
from jostle.run.evaluator import At, Evaluator, PlacedAt, Value, builtin, implement
from jostle.run.faults import private_value, refuse_private
from jostle.run.margins import cut_of, marked, with_noise
from jostle.run.rows import RowCompiler
from jostle.run.scope import Qualifiers, Scope
from jostle.run.values import JSet, Record, handles_in, is_number, kind_name
from jostle.run.workloads import MOST_QUERIES
from jostle.source import Span
from jostle.syntax import nodes as n

if TYPE_CHECKING:
    from jostle.privacy.measurements.choices import NoisyScore


@builtin
def _laplace(
    value: object, strategy: object = None, *, epsilon: object = None, via: str | None = None, at: At
) -> object:  # fmt: skip
    """`laplace(cube)`, `laplace(cube, strategy)`, `laplace([cube, …])`, `laplace(score)`."""
    interp, span = at
    if isinstance(value, (list, JSet)) and strategy is None:
        return _together(value, epsilon, via, at)
    if isinstance(value, Score):
        from jostle.privacy.measurements.choices import NoisyScore

        with amount_for(interp, value, span, epsilon) as amount:
            answer = _noisy_score(interp, NoisyScore.of(value, amount, via), span)
        several = answer if isinstance(answer, list) else [answer]
        several = list(marked(several, _cut(interp, value), ()))
        return several if isinstance(answer, list) else several[0]
    if is_number(value) and strategy is None:
        return Exact(value)  # a public score: exact and free
    if not isinstance(value, Cube):
        raise refuse("TypeError", f"this measures a cube or a score, not {kind_name(value)}")
    if strategy is None:
        cells = every_cell(value.size)
        (noisy,), law, amount = _answers(interp, value, cells, epsilon, via, span)
        return with_noise(noisy.reshape(value.shape), amount, law, cells, _cut(interp, value))
    blocks = strategy["blocks"] if isinstance(strategy, dict) and "blocks" in strategy else strategy
    if not isinstance(blocks, (list, tuple)) or not all(isinstance(b, dict) for b in blocks):
        raise refuse("TypeError", f"a strategy comes from a kernel, not from {kind_name(strategy)}")
    parts, law, amount = _answers(interp, value, blocks, epsilon, via, span)
    cut = _cut(interp, value)
    return Record(answers=[with_noise(a, amount, law, cut=cut) for a in parts], scale=laplace_scale(law))


def laplace_scale(law: AdditiveLaw | None) -> float:
    """The scale of Laplace noise that is as wide: what kernels take. 0 of exact answers."""
    return 0.0 if law is None else law.scale / math.sqrt(2) if law.name == Gaussian.name else law.scale


def _noisy_score(interp: Evaluator, noisy: NoisyScore, span: Span | None) -> object:
    """A score, or a list of them, with noise; exact of public data."""
    numbers, law = interp.kernel.measure(noisy, span), noisy.linear[0].law
    if not noisy.score.private:
        return numbers
    return answers.noised(numbers, law) if isinstance(numbers, list) else Noised(numbers, law)


def _cut(interp: Evaluator, value: Score | Cube) -> tuple[str, ...]:
    """What the errors of a noisy score, or of a cube's noisy cells, leave out."""
    return (*cut_of(value), *interp.looks.cut_of(value, value.exposures))


def _answers(
    interp: Evaluator, cube: Cube, blocks: Value, epsilon: Value, via: str | None, span: Span | None
) -> tuple[*Answers, Amount | None]:
    """The answers of a strategy, measured or given again, and the amount that they have."""
    with amount_for(interp, cube, span, epsilon) as amount:
        released, again = answers.vector(interp.kernel, cube, blocks, amount, via, span)
    if again and amount is not None:
        interp.kernel.events.emit("query", "vector", span, replayed=True, **{amount.unit: as_float(amount.value)})
    return (*released, amount)


def _together(value: Value, epsilon: object, via: str | None, at: At) -> list[object]:
    """Several cubes in one measurement: a list of their noisy cells."""
    interp, span = at
    cubes = list(value)
    if not cubes or not all(isinstance(c, Cube) for c in cubes):
        raise refuse("TypeError", "what is measured together is a list of cubes", help="`[histogram(t, a), …]`")
    with amount_for(interp, cubes, span, epsilon) as amount:
        noisy, law = interp.kernel.measure(JointCells.of(cubes, amount, via), span)
    return [with_noise(cells, amount, law, cut=_cut(interp, cube)) for cube, cells in zip(cubes, noisy, strict=True)]


@builtin
def _gaussian(
    value: object, strategy: object = None, *, epsilon: object = None, via: str | None = None, at: At
) -> object:
    return _laplace(value, strategy, epsilon=epsilon, via=via or Gaussian.name, at=at)


@builtin
def _exp_mech(domain: Value, utilities: object, epsilon: object = None, *, at: At) -> object:
    """The element of `domain` with (nearly) the largest utility; public utilities cost nothing."""
    interp, span = at
    options = items(domain)
    if isinstance(utilities, Scores) and utilities.groups:
        raise refuse("TypeError", "scores in groups have several winners", help="use `noisy_max`")
    return options[_choose(interp, utilities, len(options), epsilon, span)[0]]


@builtin
def _noisy_max(utilities: object, epsilon: object = None, *, at: At) -> object:
    """The index of the largest score; of scores in groups, a list with one for each; of subtrees, the tree drawn."""
    interp, span = at
    if isinstance(utilities, Scores) and utilities.rule.name == "subtrees":
        from jostle.privacy.measurements.choices import DrawnTree

        with amount_for(interp, utilities, span, epsilon) as amount:
            drawn: list[int] = interp.kernel.measure(DrawnTree.of(utilities, amount), span)
        return [float(i) for i in drawn]
    length = utilities.length if isinstance(utilities, Scores) else len(items(utilities))
    places = [float(i) for i in _choose(interp, utilities, length, epsilon, span)]
    return places if isinstance(utilities, Scores) and utilities.groups else places[0]


def _choose(interp: Evaluator, utilities: object, length: int, epsilon: object, span: Span | None) -> list[int]:
    if isinstance(utilities, Scores):
        if utilities.length != length:
            raise refuse("ValueError", f"{utilities.length} scores for {length} elements")
        return _argmax(interp, [utilities], epsilon, span)
    scores = items(utilities)
    if len(scores) != length:
        raise refuse("ValueError", f"{len(scores)} utilities for {length} elements")
    if all(is_number(u) for u in scores):
        public = None
        if epsilon is not None:
            public = as_float(quanta(epsilon)) if epsilon != float("inf") else None
        from jostle.privacy.measurements.choices import choose_publicly

        return [choose_publicly([float(u) for u in scores], public)]
    if not all(isinstance(u, Score) for u in scores):
        raise refuse("TypeError", "utilities are all public numbers or all scores")
    return _argmax(interp, scores, epsilon, span)


def _argmax(interp: Evaluator, utilities: list[Value], epsilon: object, span: Span | None) -> list[int]:
    from jostle.privacy.measurements.choices import NoisyArgmax

    with amount_for(interp, utilities, span, epsilon) as amount:
        places: list[int] = interp.kernel.measure(NoisyArgmax.of(utilities, amount), span)
    return places


@builtin
def _exact(queries: Value, cube: Value, *, at: At) -> Floats:
    """The exact answers of a workload on public counts."""
    interp, _ = at
    need_cube(cube, "exact")
    if cube.private:
        help = "noisy ones are `flat(<it>, queries)` of `use histograms`, cells `laplace(<it>)`; a score of answers is "
        raise private_value(cube, "has no exact answers", f"{help}`closeness(<it>, queries, answers)`")
    result: Floats = need_workload(queries, cube).answers(interp.data.cells(cube).astype(float))
    return result


@builtin
def _answer(queries: Value, cells: Value, *, at: At) -> Floats:
    """The answers of a workload on estimated cells, which are public."""
    from jostle.kernels.accuracy import answers_with_noise

    for handle in handles_in(cells):
        raise refuse(
            "PrivateValue", f"`answer` takes released cells, and these are of `{handle.exposures[0].source.name}`"
        )
    need_workload(queries, None)
    values, shape = np.asanyarray(cells, dtype=float), tuple(queries.shape)
    if values.size != np.prod(shape, dtype=float):
        help = "make the workload from the same cube: `prefixes(ages)`"
        message = f"these queries are for {shape_text(shape)}, and here are {values.size:,}"
        raise refuse("ValueError", message, help=help)
    return answers_with_noise(queries, values)


@builtin
def _same_cells(cube: object, queries: object) -> None:
    """Refuses a workload of other cells than the cube's: the first line of an option, before it measures."""
    need_workload(queries, need_cube(cube, "same_cells"))


@builtin
def _identity(cube: object, count: object = 2000.0, seed: object = 0.0) -> object:
    return _boxes().identity(_shape_of(cube, "identity"))


@builtin
def _prefixes(cube: object, count: object = 2000.0, seed: object = 0.0) -> object:
    return _boxes().prefixes(_shape_of(cube, "prefixes"))


@builtin
def _ranges(cube: object, count: object = 2000.0, seed: object = 0.0) -> object:
    return _boxes().ranges(_shape_of(cube, "ranges"), *_random(count, seed, "ranges"))


@builtin
def _rectangles(cube: object, count: object = 2000.0, seed: object = 0.0) -> object:
    return _boxes().rectangles(_shape_of(cube, "rectangles"), *_random(count, seed, "rectangles"))


def _random(count: Value, seed: Value, what: str) -> tuple[int, int]:
    """How many queries a random workload has, and its seed."""
    for value, least, most in ((count, 1, MOST_QUERIES), (seed, 0, 2**53)):
        if not is_number(value) or not float(value).is_integer() or not least <= value <= most:
            message = f"`{what}` takes a whole number of queries, 1 to {MOST_QUERIES:,}, and a whole seed from 0"
            raise refuse("ValueError", message, help=f"`{what}(cube, 2000)`")
    return int(count), int(seed)


def _boxes() -> ModuleType:
    from jostle.kernels.workloads import boxes

    return boxes


def _shape_of(cube: Value, what: str) -> tuple[int, ...]:
    need_cube(cube, what)
    return tuple(cube.shape)


@builtin
def _limited(handle: object, amount: object, *, at: At) -> object:
    """The same handle under a smaller budget of its own, in the unit of its source."""
    if not isinstance(handle, (Table, Cube)):
        raise refuse("TypeError", f"an agent is made of a table or a cube, not of {kind_name(handle)}")
    refuse_private(amount, "cannot be an amount")
    unit = handle.exposures[0].source.measure.unit if handle.private else "epsilon"
    return transform.limited(handle, Amount(unit, quanta(amount, unit)))


@builtin
def _cells(cube: Value, *, at: At) -> Value:
    """The counts of a public cube, in its shape; of public vectors their rows, in the units of the data."""
    interp, _ = at
    if isinstance(cube, Vectors):
        return interp.data.vectors(cube)
    need_cube(cube, "cells")
    if cube.private:
        raise private_value(cube, "cannot be read")
    return interp.data.cells(cube).astype(float)


@builtin
def _noisy_samples(
    cubes: Value, rate: Value = None, steps: Value = 200.0, *, epsilon: Value = None, delta: Value = None, at: At
) -> Record:
    """Noisy counts of fresh secret samples of the rows, `steps` times over, at one price in epsilon and delta.

    `cubes`: a list of histograms of one table. Each step keeps every protected unit with probability `rate` (left out:
    one that costs next to nothing of what all rows would tell). A record of `sums`, a vector of all cells for each
    step, `rate`, and `noise`, the deviation of each number.
    """
    interp, span = at
    measures = list(cubes) if isinstance(cubes, (list, JSet)) else [cubes]
    if not measures or not all(isinstance(c, Cube) for c in measures):
        raise refuse("TypeError", "samples are of a list of cubes", help="`noisy_samples([histogram(t, a), …])`")
    refuse_private([rate, steps, delta], "cannot say how to sample")
    if not (rate is None or is_number(rate)) or not is_number(steps) or not float(steps).is_integer():
        raise refuse("TypeError", f"`rate` is a number and `steps` a whole one, not {kind_name(steps)}")
    from jostle.privacy.measurements.subsampled_batches import batches

    part = rate_for if rate is None else float(rate)
    with amount_for(interp, measures, span, epsilon, delta) as amount:
        drawn = batches(interp.kernel, measures, part, int(steps), amount, span)
    return Record(sums=drawn.sums, rate=drawn.rate, noise=drawn.noise)


@builtin
def _perturbed_optimum(
    cubes: Value, model: Value, rows: Value, ridge: Value = None, *, epsilon: Value = None, delta: Value = None,
    via: str | None = None, at: At,
) -> Record:  # fmt: skip
    """A model's potentials as exact tables have them, each with noise: output perturbation.

    `cubes`: one histogram of a table for each clique of `model`. `rows`: a public number of rows. A record of
    `potentials`, flat, `noise`, the deviation of each, and `ridge`.
    """
    from jostle.kernels.graphical.model import GraphicalModel
    from jostle.optional import PerturbedOptimum

    interp, span = at
    all_cubes = list(cubes) if isinstance(cubes, (list, JSet)) else [cubes]
    if not all_cubes or not all(isinstance(c, Cube) for c in all_cubes) or not isinstance(model, GraphicalModel):
        raise refuse("TypeError", "this takes a list of cubes and a graphical model", help="`clique_tables(t, m)`, `m`")
    refuse_private([rows, ridge, delta], "cannot say how to learn")
    if not is_number(rows) or not (ridge is None or is_number(ridge)):
        raise refuse("TypeError", f"`rows` and `ridge` are numbers, not {kind_name(rows)}")
    if model.ties is not None:
        raise refuse("ValueError", "output perturbation is of models whose cliques share no potential")
    public = None if ridge is None else float(ridge)
    with amount_for(interp, all_cubes, span, epsilon, delta) as amount:
        optimum = PerturbedOptimum.of(all_cubes, model.structure, float(rows), public, amount, via)
        noisy = interp.kernel.measure(optimum, span)
    return Record(potentials=noisy.theta, noise=noisy.noise, ridge=noisy.ridge)


def _sum_of(interp: Evaluator, node: n.Call, scope: Scope) -> object:
    """`sum_of(people, income)`: a score; of a public table, the sum."""
    from jostle.privacy.measurements.choices import sum_of

    if len(node.args) != 2 or node.keywords:
        help = "`sum_of(people, income)`"
        raise refuse("TypeError", "`sum_of` takes a table and what is added of each row", node.span, help=help)
    table = need_table(interp.eval(node.args[0], scope), "sum_of", node.args[0].span)
    compiler = RowCompiler(table.domains, interp, scope, Qualifiers(node.args[0], table.domains))
    expr, _ = compiler.column_position(node.args[1])
    with PlacedAt(node.args[1].span):
        score = sum_of(table, as_number(expr, table.domains))
    return score_or_number(interp, score, node.span)


implement("sum_of", _sum_of)


@builtin
def _refinable(value: object) -> object:
    """A score, the number of rows, or the cells of a cube, to be asked for step by step; a public number is itself."""
    from jostle.privacy.measurements.gradual import Refinable
    from jostle.privacy.scores.cells import size

    base = size(value) if isinstance(value, Table | Vectors) else value
    if is_number(base):
        return base
    if not isinstance(base, Score | Cube):
        help = "`refinable(people)` for a count, `refinable(histogram(people, x = city))` for counts"
        raise refuse("TypeError", f"a score, a table or a cube can be refined, not {kind_name(value)}", help=help)
    return Refinable.of(base, Refinements().append)


@builtin
def _refine(value: Value, *, epsilon: Value = None, at: At) -> Value:
    """The answer with the noise of all that was paid for it; of public data the exact one."""
    from jostle.privacy.measurements.gradual import Refinable, Refinement

    interp, span = at
    if is_number(value):
        return Exact(value)
    if not isinstance(value, Refinable):
        help = "`n = refinable(people)` first: then `refine(n) with epsilon 0.01`, and again"
        raise refuse("TypeError", f"`refine` takes what is refinable, not {kind_name(value)}", help=help)
    with amount_for(interp, value, span, epsilon) as amount:
        step = interp.kernel.measure(Refinement.of(value, amount), span)
    cut = _cut(interp, value.base)
    if isinstance(value.base, Score):
        (number,) = step.values.tolist()
        return Exact(number) if step.origin is None else Noised.of(number, step.origin.element(0), cut)
    cells = with_noise(step.values, step.paid, step.law, every_cell(value.base.size), cut)
    cells.origin = step.origin
    return cells
