"""Noisy sums over private rows as vectors: moments under the weights of a row program, and clipped contributions.

*Sensitivity.* One row more or less, a vector x with ‖x‖₂ ≤ r (in units of the ball; r = 1, or √d where only the
largest coordinate is bounded), moves the exact sums by its own terms and no others (`privacy.rows`):

    Σ γ_k        by γ,        ‖γ‖₂ ≤ ‖γ‖₁ ≤ 1
    Σ γ_k x      by γ ⊗ x,    ‖·‖₂ = ‖γ‖₂‖x‖₂ ≤ r,    ‖·‖₁ ≤ √d·r
    Σ γ_k xxᵀ    by γ ⊗ xxᵀ,  ‖·‖_F ≤ r²; of the upper triangle ‖·‖₁ ≤ (‖x‖₁² + ‖x‖₂²)/2 ≤ (d + 1)·r²/2

for **all components together**, since the weights of a row sum to at most one. Replacing a row (`public size`, k = 2)
moves them by √2, 2r and √2·r², as γ ⊗ xxᵀ and γ' ⊗ x'x'ᵀ have a scalar product of at least 0; k rows by k times the
above. A symmetric matrix is released by its upper triangle; in its Frobenius norm an entry off the diagonal
counts twice, so its deviation is that of the diagonal over √2.

*One joint release.* Block b gets a share s_b, Σ s_b = 1: Gaussian noise of deviation Δ_b/(μ√s_b) in each. What a row
can lose is Σ_b Δ_b²/σ_b² = μ² in all (weights w_b of a joint vector are s_b = w_b²/Σw²). For Laplace noise ε·s_b.

Second moments are kept to 2^-42 and taken down to 2^-30, which moves each of the m released numbers by less than one
more step. Contributions have a norm of at most the public bound, whatever the program gives.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from jostle.accounting.amounts import as_float
from jostle.diagnostics import refuse
from jostle.privacy.failures import exact_or_empty
from jostle.privacy.handles import Scores, Vectors
from jostle.privacy.kernel import Kernel
from jostle.privacy.prepaid import Prepaid
from jostle.privacy.query import noise_and_stability
from jostle.privacy.rows.factored import FactoredGradient, gradient_sums
from jostle.privacy.rows.functions import Contributions, Weights
from jostle.privacy.rows.norms import BITS, whole_frames, whole_weights
from jostle.privacy.rows.sums import BATCH, ContributionSums, MomentSums
from jostle.source import Span
from jostle.threads import on_one_thread

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

MOST_SUMS = 2**22
MOST_VIEWS = 2**14  # components times columns: so many numbers are held for each row of a batch
MOST_NUMBERS = 2**24  # that contributions of some rows are at once
UNIT = 2.0**BITS


# Moments -------------------------------------------------------------------------------------------


def check_moments(rows: Vectors, weights: Weights, blocks: int) -> None:
    """Refuses more sums than there is room for; before anything is charged."""
    d, count = len(rows.names), weights.size
    if count * d ** (blocks - 1) > MOST_SUMS or count * d > MOST_VIEWS:
        raise refuse("ValueError", f"{count} components of {d} columns are too many to sum", help="use fewer columns")


def noisy_moments(
    kernel: Kernel, rows: Vectors, weights: Weights, shares: Sequence[float], paid: Prepaid | None, part: float,
    span: Span | None,
) -> dict[str, Any]:  # fmt: skip
    """Σγ, Σγx, Σγxxᵀ (as many as there are shares), in units of the ball, and the deviation of each block's noise.

    `paid` is None for public rows, which are summed exactly.
    """
    check_moments(rows, weights, len(shares))
    d, count = len(rows.names), weights.size
    steps = _steps(rows, count, len(shares), weights.framed)
    _need_paid(rows, paid)
    strength, room = paid.part(part) if paid is not None else 0.0, 0.0
    whole = math.fsum(shares)
    sizes = [count, count * d, count * d * (d + 1) // 2]
    scales = []
    for share, (l1, l2), size in zip(shares, steps, sizes, strict=False):
        if paid is None or not share:
            scales.append(0.0)
        elif paid.gaussian:
            scales.append(l2 / (strength * math.sqrt(share / whole)))
            room += paid.room(scales[-1] / math.sqrt(2), size)
        else:
            scales.append(l1 / (strength * share / whole))
    if paid is not None:
        paid.spend(kernel, rows, part, room, span)
    exact = exact_or_empty(
        rows.private, lambda: _moments(kernel, rows, weights, len(shares) - 1),
        lambda: MomentSums(count, d, len(shares) - 1).sums(),
    )  # fmt: skip
    out: dict[str, Any] = {}
    for name, total, scale, share in zip(("count", "first", "second"), exact, scales, shares, strict=False):
        if not share:
            continue
        out[name] = _released(rows, total, scale, paid, name == "second") / UNIT
        deviation = scale / UNIT * (1 if paid is None or paid.gaussian else math.sqrt(2))
        out[f"{name}_noise"] = deviation
    if paid is not None:
        _tell(kernel, rows, weights.name, paid, out, span)
    return out


def _need_paid(rows: Vectors, paid: Prepaid | None) -> None:
    """Exact sums are of public rows only."""
    if rows.private and paid is None:
        raise refuse("NoEpsilon", "this reads private data and says no epsilon", help="add `with epsilon 0.1`")


def _steps(rows: Vectors, count: int, blocks: int, framed: bool) -> list[tuple[float, float]]:
    """ℓ₁ and ℓ₂ sensitivities of each block, in steps of 2^-BITS, for the stability of `rows`."""
    if not rows.private:
        return [(0.0, 0.0)] * blocks
    d = len(rows.names)
    _, k = noise_and_stability(rows)
    replaced = k == 2 and all(e.source.unit.public_size and e.stability == 2 for e in rows.exposures)
    r = 1.0 if rows.norm == "l2" or framed else math.sqrt(d)
    many = (math.sqrt(2), 2.0, math.sqrt(2)) if replaced else (float(k),) * 3
    upper = count * d * (d + 1) // 2
    found = [
        (k * UNIT, many[0] * UNIT),
        (k * math.sqrt(d) * r * UNIT, many[1] * r * UNIT),
        (k * (d + 1) / 2 * r * r * UNIT + upper, many[2] * r * r * UNIT + d * math.sqrt(count)),
    ]
    return [(math.ceil(l1), l2 * (1 + 2.0**-40)) for l1, l2 in found[:blocks]]


@on_one_thread
def _moments(kernel: Kernel, rows: Vectors, weights: Weights, degree: int) -> list[Ints]:
    kernel.need_open(rows.exposures)
    sums = MomentSums(weights.size, len(rows.names), degree)
    for units in kernel.vault.rows.batches(rows):
        gamma, *frames = weights.program(units)
        views = whole_frames(frames[0], frames[1], weights.radius) if frames else units
        sums.add(views, whole_weights(gamma))
    return sums.sums()


def _released(rows: Vectors, exact: Ints, scale: float, paid: Prepaid | None, matrices: bool) -> NDArray[np.float64]:
    """The exact sums with noise; of symmetric matrices the upper triangle is drawn, and mirrored."""
    import numpy as np

    if paid is None:
        return exact.astype(float)
    noise, _ = noise_and_stability(rows)
    draw = noise.gaussian if paid.gaussian else noise.laplace
    if not matrices:
        return np.asarray(draw(exact, scale), dtype=float)
    made = exact.astype(float)
    d = exact.shape[1]
    inside = np.arange(d)
    above, beyond = np.triu_indices(d, 1)
    made[:, inside, inside] = draw(np.ascontiguousarray(exact[:, inside, inside]), scale)
    if d > 1:
        sideways = scale / math.sqrt(2) * (1 + 2.0**-40) if paid.gaussian else scale
        made[:, above, beyond] = draw(np.ascontiguousarray(exact[:, above, beyond]), sideways)
        made[:, beyond, above] = made[:, above, beyond]
    return made


# Contributions -------------------------------------------------------------------------------------


def noisy_sum(
    kernel: Kernel, rows: Vectors, given: Contributions, bound: float, norm: str, paid: Prepaid | None, part: float,
    span: Span | None,
) -> tuple[NDArray[np.float64], float]:  # fmt: skip
    """The sum of a program's contributions, each clipped to a norm of `bound`, and the deviation of its noise."""
    check_bound(bound, norm)
    _need_paid(rows, paid)
    scale = 0.0
    if paid is not None:
        strength = paid.part(part)
        _, k = noise_and_stability(rows)
        l1, l2 = {
            "l1": (1.0, 1.0), "l2": (math.sqrt(given.size), 1.0), "sup": (given.size, math.sqrt(given.size)),
        }[norm]  # fmt: skip
        reach = math.ceil((l2 if paid.gaussian else l1) * k * UNIT)
        scale = reach * (1 + 2.0**-40) / strength
        paid.spend(kernel, rows, part, paid.room(scale, given.size), span)
    exact = exact_or_empty(
        rows.private, lambda: _sums(kernel, rows, given, bound, norm), lambda: ContributionSums(given.size, norm).sums()
    )
    made = exact.astype(float) if paid is None else _released(rows, exact, scale, paid, False)
    deviation = scale / UNIT * bound * (1 if paid is None or paid.gaussian else math.sqrt(2))
    if paid is not None:
        _tell(kernel, rows, given.name, paid, {"noise": deviation}, span)
    return made * (bound / UNIT), deviation


def coordinate_scores(rows: Vectors, given: Contributions | FactoredGradient, bound: float) -> Scores:
    """The coordinates of a sum as scores, each contribution within ±bound, and then their negatives: to be chosen from.

    One row moves each score by at most the bound; not monotone.
    """
    check_bound(bound, "sup")
    if isinstance(given, FactoredGradient) and (rows.norm != "sup" or rows.radius != 1):
        raise refuse(
            "ValueError", f"`{given.name}` goes by columns of a few values each",
            help='`vectors(people, age, sex, norm = "sup")`',
        )  # fmt: skip
    arguments = (given, bound)
    return Scores(rows.exposures, "coordinates", rows, 2**BITS, False, BITS, arguments, length=2 * given.size)


def public_rows(kernel: Kernel, rows: Vectors) -> NDArray[np.float64]:
    """The rows of public vectors (n, d), as the columns have them; of private ones nothing but a refusal."""
    import numpy as np

    if rows.private:
        name = rows.exposures[0].source.name
        raise refuse("PrivateValue", f"rows of `{name}` are private and cannot be read", help="sum them with noise")
    read = list(kernel.engine.vectors(rows.plan, rows.exprs, 2**16))
    made = np.concatenate(read) if read else np.zeros((0, len(rows.names)))
    return np.asarray(made * np.array(rows.scales) + np.array(rows.centres))


def exact_size(kernel: Kernel, rows: Vectors) -> int:
    """How many rows there are whose values are all known; after the charge, as `exact_scores`."""
    kernel.need_open(rows.exposures)
    return sum(units.shape[1] for units in kernel.vault.rows.batches(rows))


def exact_scores(kernel: Kernel, one: Scores) -> list[int]:
    """What `scores.values_of` asks for, after the charge: whole numbers in units of 2^-BITS of the bound."""
    rows: Any = one.base
    given, bound = one.arguments
    kernel.need_open(rows.exposures)
    if isinstance(given, FactoredGradient):
        exact = gradient_sums(kernel.vault.rows.coded(rows, given.values), given, bound)
    else:
        exact = _sums(kernel, rows, given, bound, "sup")
    coordinates = [int(v) for v in exact]
    return [*coordinates, *(-v for v in coordinates)]


def _sums(kernel: Kernel, rows: Any, given: Contributions, bound: float, norm: str) -> Ints:
    kernel.need_open(rows.exposures)
    total = ContributionSums(given.size, norm)
    most = max(1, min(BATCH, MOST_NUMBERS // given.size))  # memory goes by public facts
    scale = 2.0**-given.bits / bound
    for units, times in kernel.vault.rows.tallied(rows):
        for start in range(0, len(times), most):
            part = slice(start, start + most)
            (numbers,) = given.program(units[:, part])
            total.add(numbers * scale, times[part])
    return total.sums()


def check_bound(bound: float, norm: str) -> None:
    if not 1e-100 < bound < 1e100:
        raise refuse("ValueError", "a bound is a positive number", help="`bound = 1`")
    if norm not in ("l1", "l2", "sup"):
        raise refuse("NameError", f"there is no norm `{norm}`", help="`l1`, `l2` or `sup`")


def _tell(kernel: Kernel, rows: Vectors, what: str, paid: Prepaid, out: Mapping[str, Any], span: Span | None) -> None:
    """The amount is that of a measurement that was paid for alone; else the event of `prepaid` has it."""
    kernel.events.emit(
        "measure", what, span, mechanism=paid.how.mechanism,
        **{paid.how.amount.unit: as_float(paid.how.amount.value) if paid.single else 0.0},
        sources=[e.source.name for e in rows.exposures], sensitivity=1.0,
        stability=max(e.stability for e in rows.exposures),
        scale=min(float(v) for k, v in out.items() if k.endswith("noise")),
    )  # fmt: skip
