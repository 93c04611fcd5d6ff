"""A measurement that rests on more code than `privacy` and `engine`: output perturbation, for programs that ask for it.

It is loaded when a program first calls it, and named in `docs/privacy/guarantee.md` with what it rests on. A graphical
model's potentials are learned from exact tables, with noise on the potentials.

With S the joined exact tables of E cliques, each cell clamped to at most n, a public number of rows, what is
minimised is f(θ) = A(θ) − θ·S/n + λ‖θ‖². Chaudhuri, Monteleoni & Sarwate (JMLR 2011, Lemma 7) bound how far the
minimum of such a strongly convex f moves, if it is found exactly. No optimiser finds it exactly, so what is bounded
here is what the optimiser *returns*: a public number of gradient steps from θ = 0, whatever the data are.

*Sensitivity.* The slope of A is the marginals, and its curvature, Cov T, is at most L = E/2: a sum of E terms u_C(x_C),
each of variance at most ‖u_C‖²/2. So a step θ − η∇f(θ) with η = 1/(L + 2λ) brings two points nearer by 1 − 2λη. For
a neighbour, with ‖S − S′‖ ≤ w√E (a row is in one cell of each clique; w its weight, or how many there are), the
iterates part by at most η·w√E/n more: after any number of steps ‖θ − θ′‖ ≤ w√E/(2λn), that of the exact minimum
(Hardt, Recht & Singer 2016; Wu et al. 2017). Slopes in doubles are within ERROR of the true ones in ℓ₂ (log-space sums
of public depth; |θ| ≤ √d/2λ, as S/n ≤ 1), which adds 2·ERROR/2λ, and potentials are rounded to 2^-BITS, which adds √d
of these. Noise is discrete, scaled to that, in ℓ₂ (Gaussian) or √d times it in ℓ₁ (Laplace).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from msgspec import Struct

from jostle.accounting.amounts import Amount
from jostle.diagnostics import refuse
from jostle.kernels.graphical.domain import Structure
from jostle.lazy import Floats, Ints, np
from jostle.privacy.kernel.exposures import Handle
from jostle.privacy.kernel.handles import Cube
from jostle.privacy.kernel.measurement import Measured, Measurement, Release, needed, weighted_stability_of
from jostle.privacy.mechanisms.additive import Additive, Linear
from jostle.privacy.mechanisms.noise import Noise
from jostle.privacy.reading.vault import Reader
from jostle.privacy.transformations.joins import join_exposures

BITS = 24
ERROR = 2.0**-28
MOST_STEPS, LEAST_RIDGE = 3000, 1e-4


class Perturbed(Struct, frozen=True):
    """`theta`: noisy potentials, flat; `noise`: the deviation of each; `ridge`: λ."""

    theta: Floats
    noise: float
    ridge: float


@dataclass(frozen=True, eq=False)
class PerturbedOptimum(Measurement["list[Ints]", Perturbed]):
    """The minimum of f for these tables, one a clique, with noise; of public tables without. `rows` is n, public."""

    cubes: tuple[Cube, ...]
    structure: Structure
    rows: float
    ridge: float
    together: Handle

    @classmethod
    def of(
        cls, cubes: Sequence[Cube], structure: Structure, rows: float, ridge: float | None, amount: Amount | None,
        via: str | None,
    ) -> PerturbedOptimum:  # fmt: skip
        _check(cubes, structure, rows, ridge)
        together = Handle(join_exposures([c.exposures for c in cubes[:1]], [1]))
        if any(c.exposures != cubes[0].exposures for c in cubes):
            raise refuse("TypeError", "these tables are not all of one table's rows")
        how, public = None, LEAST_RIDGE if ridge is None else ridge
        if together.private:
            how = Additive.of(needed(amount), via, together.measures)
            public = ridge_for(how, structure, rows, weighted_stability_of(together)) if ridge is None else ridge
        facts = (tuple(cubes), structure, rows, public, together)
        return cls(together.exposures, "potentials", how, *facts, subject=(facts[0], rows, public))

    def read(self, reader: Reader) -> list[Ints]:
        return reader.all_units(self.cubes)

    def release(self, exact: list[Ints], noise: Noise | None) -> Release[Perturbed]:
        tables = [np.ldexp(e.astype(float), -c.bits).ravel() for e, c in zip(exact, self.cubes, strict=True)]
        theta = descended(self.structure, np.concatenate(tables), self.rows, self.ridge)
        if noise is None or self.how is None:
            return Release(Perturbed(theta, 0.0, self.ridge))
        weight = weighted_stability_of(self.together)
        l1, l2 = sensitivities(self.structure, self.rows, self.ridge, weight)
        linear = Linear.of(self.how, l1, l2, BITS)
        law, noisy = linear.law, linear.release(np.rint(np.ldexp(theta, BITS)), noise)
        potentials = Perturbed(noisy, law.deviation, self.ridge)
        measured = Measured(self.title, law, self.how, math.ldexp(l2, -BITS) / weight, weight)
        return Release(potentials, (measured,))


def sensitivities(structure: Structure, rows: float, ridge: float, weight: float = 1.0) -> tuple[float, float]:
    """(ℓ₁, ℓ₂) of the potentials that `descended` returns, in units of 2^-BITS, rounded up."""
    cells = sum(structure.lengths)
    shift = (weight * math.sqrt(len(structure.lengths)) / rows + 2 * ERROR) / (2 * ridge)
    l2 = math.ldexp(shift * (1 + 2.0**-40), BITS) + math.sqrt(cells)
    return math.ceil(l2 * math.sqrt(cells)), math.ceil(l2)


def ridge_for(how: Additive, structure: Structure, rows: float, weight: float) -> float:
    """λ where none is named, from public facts.

    With noise of deviation σ a table's mean cell is known to within r = σ·cells/n of itself. λ = σ/2ns makes noise of
    s on each potential, and pulls a cell by r/s of itself: alike for s = √r. From r = ¼ on s falls instead, towards
    uniform.
    """
    cells = sum(structure.lengths)
    side = math.sqrt(len(structure.lengths)) * weight
    sigma = how.law(side * math.sqrt(cells), side).smooth.deviation
    ratio = sigma / rows * cells / len(structure.lengths)
    return max(LEAST_RIDGE, sigma / (2 * rows * min(math.sqrt(ratio), 0.125 / ratio)))


def descended(structure: Structure, exact: Floats, rows: float, ridge: float) -> Floats:
    """So many gradient steps as public facts say: enough for the ridge, at most MOST_STEPS."""
    smooth = len(structure.lengths) / 2 + 2 * ridge
    steps = min(MOST_STEPS, math.ceil(4 * smooth / (2 * ridge)))
    target = np.clip(exact, 0.0, rows) / rows
    theta = np.zeros_like(target)
    for _ in range(steps):
        theta = theta - (structure.infer(theta)[1] - target + 2 * ridge * theta) / smooth
    return theta


def _check(cubes: Sequence[Cube], structure: Structure, rows: float, ridge: float | None) -> None:
    if not 1 <= rows <= 2**40:
        raise refuse(
            "ValueError", "output perturbation needs a public number of rows", help="`rows = 10000`: as a guess"
        )
    if ridge is not None and not LEAST_RIDGE <= ridge < 1e6:
        raise refuse("ValueError", f"this ridge is at least {LEAST_RIDGE:g}", help="leave it out")
    if structure.inference != "exact":
        raise refuse("ValueError", "how far a minimum moves is known of exact inference only", help="use fewer cliques")
    if [c.size for c in cubes] != list(structure.lengths):
        raise refuse("ValueError", "output perturbation takes one table for each clique of the model")
