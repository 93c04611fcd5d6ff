"""Measurements that are not selects: noisy vectors, selections, the partition of DAWA.

Each prices itself, charges, reads, and draws, in that order. On public handles each is exact and free: the vector
itself, the best candidate, every cell a bucket of its own where no noise would hide it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from jostle.accounting.amounts import Amount, as_float
from jostle.accounting.definitions import ChargePurpose, pure_price
from jostle.diagnostics import refuse
from jostle.plan.plan import Derive, Filter, Join
from jostle.privacy.handles import Cube, Handle, Restricted, Score, Scores, Tallied, join_exposures
from jostle.privacy.kernel import Kernel
from jostle.privacy.mechanisms.additive import Additive
from jostle.privacy.mechanisms.linear import Block, Strategy
from jostle.privacy.mechanisms.selection import Selection
from jostle.privacy.noise import SecureNoise
from jostle.privacy.query import emit_measure, noise_and_reach, noise_and_stability
from jostle.privacy.released import Noised
from jostle.privacy.scores import check_weights, reach_of, values_of
from jostle.source import Span

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def noisy_answers(
    kernel: Kernel, cube: Cube, blocks: Sequence[Block], amount: Amount | None, via: str | None, span: Span | None
) -> tuple[list[NDArray[np.float64]], float]:
    """The answers of a strategy on a cube, a float array a block, and the scale of their noise (0 when public)."""
    import numpy as np

    strategy = Strategy(blocks, cube.shape, cube.bits)
    if not cube.private:
        parts = zip(strategy.answers(kernel.vault.cells(cube)), strategy.ratios(), strict=True)
        return [np.ldexp(part.astype(float), -strategy.bits) * ratio for part, ratio in parts], 0.0
    l1, l2 = strategy.norms()
    if not l1:
        raise refuse("ValueError", "a strategy that counts no cell measures nothing")
    how = Additive.fitted(need(amount), via, cube.exposures, l1, l2)
    kernel.charge(cube.exposures, how.price, "vector", span, ChargePurpose(how.mechanism, (cube, blocks)))
    noise, stability = noise_and_reach(cube)
    exact = strategy.answers(kernel.vault.units(cube))
    bits, reach = strategy.bits + cube.bits, stability << cube.bits
    drawn = how.draw(noise, np.concatenate(exact), l1 * reach, l2 * reach)
    scale = math.ldexp(how.scale(l1 * reach, l2 * reach), -bits)
    emit_measure(kernel, cube, "vector", how, l1 * 2.0**-strategy.bits, scale, span, stability)
    ends = np.cumsum([len(a) for a in exact])[:-1]
    parts = zip(np.split(drawn, ends), strategy.ratios(), strict=True)
    return [np.ldexp(part.astype(float), -bits) * ratio for part, ratio in parts], how.told(scale)


def noisy_cubes(
    kernel: Kernel, cubes: Sequence[Cube], amount: Amount | None, via: str | None, span: Span | None
) -> tuple[list[NDArray[np.float64]], float]:
    """The cells of several cubes in one measurement, a float array each, in its shape, and the scale of their noise.

    *Argument.* The cubes are one vector. A row moves cube i by at most sᵢ in the ℓ₁ norm, sᵢ its stability (one cell
    by one, sᵢ times), so the vector by Σsᵢ in ℓ₁ and, since the cubes are different coordinates, by √Σsᵢ² in ℓ₂; and
    `join_exposures` charges the common prefix of their paths, on which each of them is exposed.
    """
    import numpy as np

    private = [c for c in cubes if c.private]
    if not private:
        kernel.vault.gather(cubes)
        return [kernel.vault.cells(c).astype(float) for c in cubes], 0.0
    if len(private) < len(cubes):
        raise refuse("TypeError", "private and public cubes are not measured together")
    together = Handle(join_exposures([c.exposures for c in cubes], [1] * len(cubes)))
    bits = max(c.bits for c in cubes)
    l1 = max(e.reach for e in together.exposures) << bits
    sides = [[e.reach for c in cubes for e in c.exposures if e.source is one.source] for one in together.exposures]
    l2 = math.ldexp(max(math.nextafter(math.hypot(*side), math.inf) for side in sides), bits)
    how = Additive.fitted(need(amount), via, together.exposures, l1, l2)
    kernel.charge(together.exposures, how.price, "vector", span, ChargePurpose(how.mechanism, tuple(cubes)))
    noise, _ = noise_and_stability(together)
    kernel.vault.gather(cubes)
    exact = [kernel.vault.units(c) << (bits - c.bits) for c in cubes]
    drawn = how.draw(noise, np.concatenate([e.ravel() for e in exact]), l1, l2)
    scale = math.ldexp(how.scale(l1, l2), -bits)
    emit_measure(kernel, together, "vector", how, 1, scale, span, max(e.reach for e in together.exposures))
    ends = np.cumsum([e.size for e in exact])[:-1]
    parts = [np.ldexp(part.astype(float), -bits) for part in np.split(drawn, ends)]
    return [part.reshape(e.shape) for part, e in zip(parts, exact, strict=True)], how.told(scale)


def noisy_score(kernel: Kernel, one: Score, amount: Amount | None, via: str | None, span: Span | None) -> float:
    """A score with additive noise."""
    import numpy as np

    if isinstance(one, Scores):
        raise refuse("TypeError", "a vector of scores can only be selected from", help="use `noisy_max`")
    if not one.private:
        return float(values_of(kernel, [one])[0]) / 2.0**one.bits
    how = Additive.fitted(need(amount), via, one.exposures)
    check_weights([one])
    kernel.charge(one.exposures, how.price, one.of, span, ChargePurpose(how.mechanism, one))
    noise, stability = noise_and_stability(one)[0], reach_of(one)
    reach = one.sensitivity * stability
    drawn = how.draw(noise, values_of(kernel, [one]), reach, reach)
    scale = how.scale(reach, reach) / 2.0**one.bits
    emit_measure(kernel, one, one.of, how, one.sensitivity / 2.0**one.bits, scale, span, stability)
    return Noised(float(np.ldexp(float(drawn[0]), -one.bits)), how.mechanism, scale)


def noisy_argmax(kernel: Kernel, scores: Sequence[Score], amount: Amount | None, span: Span | None) -> list[int]:
    """The index of the largest score (`mechanisms.selection`); of every group of `Scores` that come in groups.

    Monotone scores need half the noise, where neighbours only add or only remove rows (`_range`). A row moves the
    scores of one group only, so that k rows cost each group what of them is in it, and all groups together no more than
    one that has them all.
    """
    if not scores:
        raise refuse("ValueError", "there is nothing to choose from")
    exposures = join_exposures([s.exposures for s in scores], [1] * len(scores))
    if not exposures:
        return [int(group.argmax()) for group in _groups(scores, values_of(kernel, scores))]
    check_weights(scores)
    simulated = {e.source.simulated for e in exposures}
    if len(simulated) != 1:
        raise refuse("PrivateValue", "simulated and private data cannot be measured together")
    bits = max(s.bits for s in scores)
    stability = max(map(reach_of, scores))
    moved = [(s.sensitivity << (bits - s.bits)) * reach_of(s) for s in scores]
    one_way = all(s.monotone for s in scores) and len({s.falls for s in scores}) == 1
    if any(e.source.unit.public_size for e in exposures):
        one_way = False
    how = Selection.of(need(amount), exposures)
    kernel.charge(exposures, how.price, "selection", span, ChargePurpose("noisy max", tuple(scores)))
    scale = how.scale(_range(scores, moved) if one_way else max(moved), one_way)
    noise = exposures[0].source.noise
    chosen = [
        how.choose(noise, group, scale) if group.size > 1 else 0 for group in _groups(scores, values_of(kernel, scores))
    ]
    sensitivity = max(moved) / stability / 2.0**bits
    emit_measure(kernel, Handle(exposures), "selection", how, sensitivity, scale / 2.0**bits, span, stability)
    return chosen


def _range(scores: Sequence[Score], moved: Sequence[int]) -> int:
    """How far apart one unit can move any two monotone scores, each of which it moves by at most `moved`.

    Of one table, k changed rows are a added and r removed ones, a + r ≤ k, so that every score moves by −rΔ to aΔ: two
    of them part by kΔ. A filter or a derived column changes nothing of that, but a join `up to m` does: a row may come
    to one join and push a row out of another. So two scores of different tables, of which one has such a join, part by
    the sum of what each can move.
    """
    tables = [_undivided(s.base) for s in scores]
    if len(set(tables)) == 1 or not any(_pushes_out(table) for table in tables):
        return max(moved)
    largest: dict[Any, int] = {}
    for table, most in zip(tables, moved, strict=True):
        largest[table] = max(largest.get(table, 0), most)
    return sum(sorted(largest.values())[-2:])


def _undivided(base: Handle) -> Any:
    """What the rows of a handle come from: its plan without filters and derived columns, or its counted cells."""
    at: Any = base.cells if isinstance(base, Cube) else getattr(base, "plan", base)
    while isinstance(at, (Restricted, Tallied, Filter, Derive)):
        at = at.base if isinstance(at, Restricted) else at.plan if isinstance(at, Tallied) else at.source
    return at


def _pushes_out(plan: Any) -> bool:
    if isinstance(plan, Join):
        return plan.most is not None or _pushes_out(plan.left) or _pushes_out(plan.right)
    return isinstance(plan, (Filter, Derive)) and _pushes_out(plan.source)


def _groups(scores: Sequence[Score], values: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """The scores that are chosen among together: all, unless one vector of them says otherwise."""
    import numpy as np

    if len(scores) == 1 and isinstance(scores[0], Scores) and scores[0].groups:
        return np.split(values, np.cumsum(scores[0].groups)[:-1])
    return [values]


def choose_publicly(utilities: Sequence[float], epsilon: float | None) -> int:
    """The exponential mechanism over public utilities: it costs nothing, but still mixes among the nearly best."""
    import numpy as np

    if not utilities:
        raise refuse("ValueError", "there is nothing to choose from")
    scaled = np.array([max(-4e15, min(4e15, u)) for u in utilities]) * 2**10
    scale = 2 * 2**10 / epsilon if epsilon else 1e-3
    return SecureNoise().noisy_max(np.rint(scaled).astype(np.int64), scale)


def partition_cells(
    kernel: Kernel, cube: Cube, amount: Amount | None, span: Span | None, by: str = "deviation", **tuning: Any
) -> NDArray[np.int64]:
    """The walk of `mechanisms.least_cost`, for DAWA's first stage or (`by = "count"`) PrivTree: a label a cell.

    `along` walks over the sums along one axis, whose places then get the labels; `tree` walks down a public tree, an
    order of the cells and their levels (`mechanisms.along_axes`), in place of the one that halves the axes.
    """
    import numpy as np

    from jostle.privacy.mechanisms import along_axes
    from jostle.privacy.mechanisms.least_cost import DECAY, GRID, constants, walk

    axis, given = tuning.pop("along", None), tuning.pop("tree", None)
    if axis is not None and not (isinstance(axis, int) and 0 <= axis < len(cube.shape)):
        raise refuse("ValueError", f"`along` is an axis of the cube, from 0 to {len(cube.shape) - 1}")
    if given is not None and (tuning or axis is not None or by != "deviation" or len(given) != 2):
        raise refuse("TypeError", "`tree` is an order and levels, for a partition that is not tuned otherwise")
    tree = None if given is None else along_axes.public_tree(given[0], given[1], cube.size)
    if not cube.private:
        return np.arange(cube.size if axis is None else cube.shape[axis], dtype=np.int64)
    asked = need(amount)
    if asked.unit != "epsilon":
        raise refuse("TypeError", "this partition is an ε-DP mechanism", help="give it epsilon")
    _check_tuning(tuning)
    plain = Amount(asked.unit, asked.value)
    kernel.vault.need_counts(cube)
    noise, distance = noise_and_stability(cube)
    epsilon = as_float(plain.value) / distance
    scale = constants(epsilon, float(tuning.get("decay", DECAY))).scale * GRID
    plan = (cube, by, tuning) if axis is None and tree is None else (cube, by, tuning, axis, tree)
    kernel.charge(cube.exposures, pure_price(plain), "partition", span, ChargePurpose("laplace", plan))

    def draw(scale: float, size: int) -> NDArray[np.int64]:
        drawn: NDArray[np.int64] = noise.laplace(np.zeros(size, dtype=np.int64), scale)
        return drawn

    counts = kernel.vault.cells(cube)
    if tree is not None:
        labels = along_axes.walk_tree(counts, epsilon, draw, *tree)
    else:
        labels = walk(counts if axis is None else along_axes.along(counts, axis), epsilon, draw, by=by, **tuning)
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
