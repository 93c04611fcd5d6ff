"""Measurements that are not selects: noisy vectors, selections, the partition of DAWA.

Each prices itself, charges, reads, and draws, in that order. On public handles each is exact and free: the vector
itself, the best candidate, every cell a bucket of its own where no noise would hide it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from jostle.amounts import as_float
from jostle.diagnostics import refuse
from jostle.privacy.handles import Cube, Score, Scores, join_exposures
from jostle.privacy.kernel import Kernel
from jostle.privacy.measures import Amount, Asked, pure_price
from jostle.privacy.mechanisms.additive import Additive
from jostle.privacy.mechanisms.linear import Block, Strategy
from jostle.privacy.mechanisms.selection import Selection
from jostle.privacy.noise import SecureNoise
from jostle.privacy.query import emit_measure, noise_and_stability
from jostle.privacy.released import Noised
from jostle.privacy.scores import values_of
from jostle.source import Span

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def noisy_answers(
    kernel: Kernel, cube: Cube, blocks: Sequence[Block], amount: Amount | None, via: str | None, span: Span | None
) -> tuple[list[NDArray[np.float64]], float]:
    """The answers of a strategy on a cube, a float array a block, and the scale of their noise (0 when public)."""
    import numpy as np

    strategy = Strategy(blocks, cube.shape)
    if not cube.private:
        return [np.ldexp(a.astype(float), -strategy.bits) for a in strategy.answers(kernel.vault.cells(cube))], 0.0
    how = Additive.of(need(amount), via)
    l1, l2 = strategy.norms()
    kernel.charge(cube.exposures, how.price, "vector", span, Asked(how.mechanism, (cube, blocks)))
    noise, stability = noise_and_stability(cube)
    exact = strategy.answers(kernel.vault.cells(cube))
    drawn = how.draw(noise, np.concatenate(exact), l1 * stability, l2 * stability)
    scale = how.scale(l1 * stability, l2 * stability) * 2.0**-strategy.bits
    emit_measure(kernel, cube, "vector", how, l1 * 2.0**-strategy.bits, scale, span)
    ends = np.cumsum([len(a) for a in exact])[:-1]
    return [np.ldexp(part.astype(float), -strategy.bits) for part in np.split(drawn, ends)], scale


def noisy_score(kernel: Kernel, one: Score, amount: Amount | None, via: str | None, span: Span | None) -> float:
    """A score with additive noise."""
    import numpy as np

    if isinstance(one, Scores):
        raise refuse("TypeError", "a vector of scores can only be selected from", help="use `noisy_max`")
    if not one.private:
        return float(values_of(kernel, [one])[0]) / 2.0**one.bits
    how = Additive.of(need(amount), via)
    kernel.charge(one.exposures, how.price, one.of, span, Asked(how.mechanism, one))
    noise, stability = noise_and_stability(one)
    reach = one.sensitivity * stability
    drawn = how.draw(noise, values_of(kernel, [one]), reach, reach)
    scale = how.scale(reach, reach) / 2.0**one.bits
    emit_measure(kernel, one, one.of, how, one.sensitivity / 2.0**one.bits, scale, span)
    return Noised(float(np.ldexp(float(drawn[0]), -one.bits)), how.mechanism, scale)


def noisy_argmax(kernel: Kernel, scores: Sequence[Score], amount: Amount | None, span: Span | None) -> int:
    """The index of the largest score (`mechanisms.selection`).

    Monotone scores need half the noise, where neighbours only add or only remove rows.
    """
    if not scores:
        raise refuse("ValueError", "there is nothing to choose from")
    exposures = join_exposures([s.exposures for s in scores], [1] * len(scores))
    if not exposures:
        import numpy as np

        return int(np.argmax(values_of(kernel, scores)))
    # Several scores of one source do not add up here: each is moved by the same rows, so the largest counts.
    stability = max(e.stability for s in scores for e in s.exposures)
    simulated = {e.source.simulated for e in exposures}
    if len(simulated) != 1:
        raise refuse("PrivateValue", "simulated and private data cannot be measured together")
    bits = max(s.bits for s in scores)
    sensitivity = max(s.sensitivity << (bits - s.bits) for s in scores)
    monotone = all(s.monotone for s in scores) and not any(e.source.unit.public_size for e in exposures)
    how = Selection.of(need(amount), exposures)
    kernel.charge(exposures, how.price, "selection", span, Asked("noisy max", tuple(scores)))
    scale = how.scale(sensitivity * stability, monotone)
    chosen = how.choose(exposures[0].source.noise, values_of(kernel, scores), scale)
    emit_measure(kernel, scores[0], "selection", how, sensitivity / 2.0**bits, scale / 2.0**bits, span)
    return chosen


def choose_publicly(utilities: Sequence[float], epsilon: float | None) -> int:
    """The exponential mechanism over public utilities: it costs nothing, but still mixes among the nearly best."""
    import numpy as np

    if not utilities:
        raise refuse("ValueError", "there is nothing to choose from")
    scaled = np.array([max(-4e15, min(4e15, u)) for u in utilities]) * 2**10
    scale = 2 * 2**10 / epsilon if epsilon else 1e-3
    return SecureNoise().noisy_max(np.rint(scaled).astype(np.int64), scale)


def partition_cells(
    kernel: Kernel, cube: Cube, amount: Amount | None, span: Span | None, **tuning: Any
) -> NDArray[np.int64]:
    """DAWA's first stage, the sound walk of `mechanisms.least_cost`: a bucket label for every flattened cell."""
    import numpy as np

    from jostle.privacy.mechanisms.least_cost import DECAY, GRID, constants, walk

    if not cube.private:
        return np.arange(cube.size, dtype=np.int64)
    asked = need(amount)
    if asked.unit != "epsilon":
        raise refuse("TypeError", "this partition is an ε-DP mechanism", help="give it epsilon")
    _check_tuning(tuning)
    plain = Amount(asked.unit, asked.value)
    noise, distance = noise_and_stability(cube)
    epsilon = as_float(plain.value) / distance
    scale = constants(epsilon, float(tuning.get("decay", DECAY))).scale * GRID
    kernel.charge(cube.exposures, pure_price(plain), "partition", span, Asked("laplace", (cube, tuning)))

    def draw(scale: float, size: int) -> NDArray[np.int64]:
        drawn: NDArray[np.int64] = noise.laplace(np.zeros(size, dtype=np.int64), scale)
        return drawn

    labels: NDArray[np.int64] = walk(kernel.vault.cells(cube), epsilon, draw, **tuning)
    emit_measure(kernel, cube, "partition", Additive(plain, "laplace"), 1, scale, span)
    return labels


def _check_tuning(tuning: Mapping[str, Any]) -> None:
    """The walk counts levels in whole numbers: a half one would bring doubles, which round, into its decisions."""
    splits, theta, decay = (tuning.get(name) for name in ("public_splits", "theta", "decay"))
    if set(tuning) - {"public_splits", "theta", "decay"}:
        raise refuse("TypeError", "a partition is tuned by `theta`, `public_splits` and `decay`")
    if splits is not None and not (float(splits).is_integer() and 0 <= splits <= 64):
        raise refuse("ValueError", "`public_splits` is a whole number from 0 to 64")
    if theta is not None and not -1e3 <= theta <= 1e3:
        raise refuse("ValueError", "`theta` is between -1000 and 1000")
    if decay is not None and not 0.1 <= decay <= 10:
        raise refuse("ValueError", "`decay` is between 0.1 and 10")


def public_cells(kernel: Kernel, cube: Cube) -> NDArray[np.int64]:
    """The exact counts of a public cube, in its shape; of a private one nothing but a refusal."""
    if cube.private:
        name = cube.exposures[0].source.name
        raise refuse("PrivateValue", f"counts of `{name}` are private and cannot be read", help="measure them")
    return kernel.vault.cells(cube)


def need(amount: Amount | None) -> Amount:
    if amount is None:
        raise refuse("NoEpsilon", "this reads private data and says no epsilon", help="add `with epsilon 0.1`")
    return amount
