"""Noisy sums over private rows as vectors: moments under the weights of a row kernel, and clipped contributions.

*Sensitivity.* One row more or less, a vector x with ‖x‖₂ ≤ r (in units of the ball; r = 1, or √d where only the
largest coordinate is bounded), moves the exact sums by its own terms and no others (`mechanisms.rows`):

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
more step. Contributions have a norm of at most the public bound, whatever the kernel gives.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jostle.amounts import as_float
from jostle.diagnostics import did_you_mean, refuse
from jostle.kernels import rowkernels
from jostle.kernels.rowparameters import fitted
from jostle.kernels.slopes import SLOPES
from jostle.kernels.threads import on_one_thread
from jostle.privacy.failures import exact_or_empty
from jostle.privacy.handles import Scores, Vectors
from jostle.privacy.kernel import Kernel
from jostle.privacy.mechanisms import crossed
from jostle.privacy.mechanisms.rows import BITS, Contributions, Moments, whole_frames, whole_weights
from jostle.privacy.prepaid import Prepaid
from jostle.privacy.query import noise_and_stability
from jostle.privacy.rowstore import store_of
from jostle.source import Span

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

MOST_COMPONENTS = 64
MOST_SUMS = 2**22
MOST_VIEWS = 2**14  # components times columns: so many numbers are held for each row of a batch
MOST_NUMBERS = 2**24  # that contributions of some rows are at once
UNIT = 2.0**BITS


@dataclass(frozen=True, slots=True)
class Kernelled:
    """A row kernel with its public parameters, checked; `size` is how many weights or numbers it gives a row."""

    name: str
    parameters: Mapping[str, Any]
    size: int
    framed: bool = False


def weights_of(rows: Vectors, name: str, parameters: Mapping[str, Any]) -> Kernelled:
    """A kernel that gives weights."""
    made = _checked(rows, name, parameters, rowkernels.WEIGHTS)
    if made.size > MOST_COMPONENTS:
        raise refuse("ValueError", f"{made.size} components are too many", help=f"at most {MOST_COMPONENTS}")
    return made


def contributions_of(rows: Vectors, name: str, parameters: Mapping[str, Any]) -> Kernelled:
    """A kernel that gives contributions."""
    return _checked(rows, name, parameters, rowkernels.CONTRIBUTIONS)


def _checked(rows: Vectors, name: str, parameters: Mapping[str, Any], known: Mapping[str, Any]) -> Kernelled:
    """The kernel with its parameters as arrays of exact shapes: nothing is left that could fail on a row."""
    if name not in known:
        hint = did_you_mean(name, known) or f"the kernels are {', '.join(known)}"
        raise refuse("NameError", f"there is no row kernel `{name}` here", help=hint)
    d = len(rows.names)
    try:
        arrays, size = fitted(name, d, parameters)
    except ValueError as error:
        raise refuse(
            "ValueError", f"`{name}` cannot work with these parameters on {d} columns", help=str(error)
        ) from None  # fmt: skip
    if size > MOST_SUMS:
        raise refuse("ValueError", f"`{name}` gives {size} numbers a row, which are too many", help="use fewer columns")
    return Kernelled(name, arrays, size, name in rowkernels.FRAMED)


# Moments -------------------------------------------------------------------------------------------


def check_moments(rows: Vectors, weights: Kernelled, blocks: int) -> None:
    """Refuses more sums than there is room for; before anything is charged."""
    d, count = len(rows.names), weights.size
    if count * d ** (blocks - 1) > MOST_SUMS or count * d > MOST_VIEWS:
        raise refuse("ValueError", f"{count} components of {d} columns are too many to sum", help="use fewer columns")


def noisy_moments(
    kernel: Kernel, rows: Vectors, weights: Kernelled, shares: Sequence[float], paid: Prepaid | None, part: float,
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
        lambda: Moments(count, d, len(shares) - 1).sums(),
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
def _moments(kernel: Kernel, rows: Vectors, weights: Kernelled, degree: int) -> list[Ints]:
    import numpy as np

    kernel.need_open(rows.exposures)
    sums = Moments(weights.size, len(rows.names), degree)
    with np.errstate(all="ignore"):
        for units in store_of(kernel.engine).batches(rows):
            given, frames = rowkernels.weigh(weights.name, units, weights.parameters)
            whole = whole_weights(given)
            sums.add(units if frames is None else whole_frames(frames, whole), whole)
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
    kernel: Kernel, rows: Vectors, given: Kernelled, bound: float, norm: str, paid: Prepaid | None, part: float,
    span: Span | None,
) -> tuple[NDArray[np.float64], float]:  # fmt: skip
    """The sum of a kernel's contributions, each clipped to a norm of `bound`, and the deviation of its noise."""
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
        rows.private, lambda: _sums(kernel, rows, given, bound, norm), lambda: Contributions(norm).sums(given.size)
    )
    made = exact.astype(float) if paid is None else _released(rows, exact, scale, paid, False)
    deviation = scale / UNIT * bound * (1 if paid is None or paid.gaussian else math.sqrt(2))
    if paid is not None:
        _tell(kernel, rows, given.name, paid, {"noise": deviation}, span)
    return made * (bound / UNIT), deviation


def scored(rows: Vectors, name: str, parameters: Mapping[str, Any]) -> Kernelled | crossed.Crossing:
    """What `coordinate_scores` may sum: a kernel that gives contributions, or slopes on columns of a few values."""
    if name in SLOPES:
        return crossed.crossing(len(rows.names), name, parameters)
    return _checked(rows, name, parameters, {**SLOPES, **rowkernels.CONTRIBUTIONS})


def coordinate_scores(rows: Vectors, given: Kernelled | crossed.Crossing, bound: float) -> Scores:
    """The coordinates of a sum as scores, each contribution within ±bound, and then their negatives: to be chosen from.

    One row moves each score by at most the bound; not monotone.
    """
    check_bound(bound, "sup")
    if isinstance(given, crossed.Crossing) and (rows.norm != "sup" or rows.radius != 1):
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
    return sum(units.shape[1] for units in store_of(kernel.engine).batches(rows))


def exact_scores(kernel: Kernel, one: Scores) -> list[int]:
    """What `scores.values_of` asks for, after the charge: whole numbers in units of 2^-BITS of the bound."""
    import numpy as np

    rows: Any = one.base
    given, bound = one.arguments
    kernel.need_open(rows.exposures)
    if isinstance(given, crossed.Crossing):
        with np.errstate(all="ignore"):
            exact = crossed.crossed(store_of(kernel.engine).coded(rows, given.values), given, bound)
    else:
        exact = _sums(kernel, rows, given, bound, "sup")
    found = [int(v) for v in exact]
    return [*found, *(-v for v in found)]


def _sums(kernel: Kernel, rows: Any, given: Kernelled, bound: float, norm: str) -> Ints:
    import numpy as np

    kernel.need_open(rows.exposures)
    total = Contributions(norm)
    most = max(1, MOST_NUMBERS // given.size)  # rows at a time: memory goes by public facts, and not by their number
    with np.errstate(all="ignore"):
        for units, times in store_of(kernel.engine).tallied(rows):
            for start in range(0, len(times), most):
                part = slice(start, start + most)
                made = rowkernels.contribute(given.name, np.ascontiguousarray(units[:, part]), given.parameters)
                total.add(made / bound, times[part])
    return total.sums(given.size)


def check_bound(bound: float, norm: str) -> None:
    if not (math.isfinite(bound) and bound > 0):
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


__all__ = [
    "Kernelled", "check_bound", "check_moments", "contributions_of", "coordinate_scores", "exact_scores",
    "exact_size", "noisy_moments", "noisy_sum", "public_rows", "scored", "weights_of",
]  # fmt: skip
