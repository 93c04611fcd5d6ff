"""Functions that graphical models are measured by: `noisy_samples` and `perturbed_optimum`.

Like the others of `measured` they take their amount from `… with epsilon e delta d` or from the allotment they stand
in.
"""

from __future__ import annotations

from typing import Any

from jostle.diagnostics import refuse
from jostle.privacy.kernel.exposures import handles_in
from jostle.privacy.kernel.handles import Cube
from jostle.privacy.measurements import subsampled_batches as samples
from jostle.run.arguments import amount_for
from jostle.run.faults import private_value
from jostle.run.registry import builtin
from jostle.run.values import JSet, Record, is_number, kind_name


@builtin
def _noisy_samples(
    cubes: Any, rate: Any = None, steps: Any = 200.0, *, epsilon: Any = None, delta: Any = None, at: Any
) -> Record:
    """Noisy counts of fresh secret samples of the rows, `steps` times over, at one price in epsilon and delta.

    `cubes`: a list of histograms of one table. Each step keeps every protected unit with probability `rate` (left out:
    one that costs next to nothing of what all rows would tell). A record of `sums`, a vector of all cells for each
    step, `rate`, and `noise`, the deviation of each number.
    """
    interp, span = at
    listed = list(cubes) if isinstance(cubes, (list, JSet)) else [cubes]
    if not listed or not all(isinstance(c, Cube) for c in listed):
        raise refuse("TypeError", "samples are of a list of cubes", help="`noisy_samples([histogram(t, a), …])`")
    for handle in handles_in([rate, steps, delta]):
        raise private_value(handle, "cannot say how to sample")
    if not (rate is None or is_number(rate)) or not is_number(steps) or not float(steps).is_integer():
        raise refuse("TypeError", f"`rate` is a number and `steps` a whole one, not {kind_name(steps)}")
    part = None if rate is None else float(rate)
    with amount_for(interp, listed, span, epsilon, delta) as amount:
        batches = samples.batches(interp.kernel, listed, part, int(steps), amount, span)
    return Record(sums=batches.sums, rate=batches.rate, noise=batches.noise)


@builtin
def _perturbed_optimum(
    cubes: Any, model: Any, rows: Any, ridge: Any = None, *, epsilon: Any = None, delta: Any = None,
    via: str | None = None, at: Any,
) -> Record:  # fmt: skip
    """A model's potentials as exact tables have them, each with noise: output perturbation.

    `cubes`: one histogram of a table for each clique of `model`. `rows`: a public number of rows. A record of
    `potentials`, flat, `noise`, the deviation of each, and `ridge`.
    """
    from jostle.kernels.graphical.model import GraphicalModel
    from jostle.optional.output_perturbation import PerturbedOptimum

    interp, span = at
    listed = list(cubes) if isinstance(cubes, (list, JSet)) else [cubes]
    if not listed or not all(isinstance(c, Cube) for c in listed) or not isinstance(model, GraphicalModel):
        raise refuse("TypeError", "this takes a list of cubes and a graphical model", help="`clique_tables(t, m)`, `m`")
    for handle in handles_in([rows, ridge, delta]):
        raise private_value(handle, "cannot say how to learn")
    if not is_number(rows) or not (ridge is None or is_number(ridge)):
        raise refuse("TypeError", f"`rows` and `ridge` are numbers, not {kind_name(rows)}")
    if model.ties is not None:
        raise refuse("ValueError", "output perturbation is of models whose cliques share no potential")
    public = None if ridge is None else float(ridge)
    with amount_for(interp, listed, span, epsilon, delta) as amount:
        optimum = PerturbedOptimum.of(listed, model.structure, float(rows), public, amount, via)
        noisy = interp.kernel.measure(optimum, span)
    return Record(potentials=noisy.theta, noise=noisy.noise, ridge=noisy.ridge)
