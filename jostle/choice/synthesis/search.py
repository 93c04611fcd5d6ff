"""The best formula of each complexity: symbolic regression by enumeration, on vectors.

The first term is the expression of the pool that explains most, of each size; the next ones are those that explain
most of what is left, exactly, since all of the pool is made orthogonal to the terms before. Nothing is drawn: the same
rows give the same formulas.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from jostle.choice.grow import Array
from jostle.choice.synthesis import USUAL
from jostle.choice.synthesis.expressions import Bounds
from jostle.choice.synthesis.formulas import Formula, complexity_of, fitted
from jostle.choice.synthesis.pool import Pool

TERMS = 3
"""The most terms of a formula."""

DEPENDENT = 1e-8
"""A term of which less than this part of the variance is left beside the terms before adds nothing but rounding."""

SEVERAL = 4
"""So many first terms of each size with numbers are fitted, since they were enumerated with others."""

EXACT = 1e-10
"""A formula that leaves less than this part of the variance is exact, to the digits of its numbers."""

Rows = npt.NDArray[np.bool_]
Kind = tuple[int, int]
"""A complexity, and a rank: 0 for the best sum, from 1 for the best ones with a number in the last term."""
Ranges = Mapping[str, Bounds]


def front(
    pool: Pool, columns: Mapping[str, Array], target: Array, rows: Rows, ranges: Ranges, most: int = USUAL
) -> dict[int, Formula]:
    """For each complexity up to `most` the formula that fits the target best on these rows and beats all simpler ones.

    Complexity 0 is the mean. `columns` and `target` are of all rows, as those of the pool are.
    """
    here = {name: values[rows] for name, values in columns.items()}
    wanted, found, least = target[rows], {0: fitted((), here, target[rows], ranges)}, np.inf
    best = _terms(pool, pool.values[:, rows], wanted, most)
    for complexity, terms in sorted(dict.fromkeys((kind[0], terms) for kind, terms in best.items())):
        formula = fitted(tuple(pool.expressions[k] for k in terms), here, wanted, ranges)
        error = float(((wanted - formula.values(here)) ** 2).mean())
        if error < least * (1 - 1e-9) and least > EXACT * wanted.var():
            found[complexity], least = formula, error
    return found


def _terms(pool: Pool, values: Array, target: Array, most: int) -> dict[Kind, tuple[int, ...]]:
    """The terms that explain most for each complexity, as places in the pool.

    Beside them some that explain most among sums with a number in the last term, and may be better once that is fitted.
    """
    sizes = pool.complexities
    numbered = np.array([any(True for _ in expression.numbers()) for expression in pool.expressions])
    best: dict[Kind, tuple[float, tuple[int, ...]]] = {}
    centred, whole = values - values.mean(axis=1, keepdims=True), target - target.mean()
    starts: list[tuple[tuple[int, ...], Array, Array]] = [((), centred, whole)]
    again = True
    while starts:
        grown: dict[Kind, tuple[float, tuple[int, ...]]] = {}
        for terms, left, wanted in starts:
            explained = _explained(left, centred, wanted)
            already = float((whole**2).sum() - (wanted**2).sum())
            for size in np.unique(sizes):
                complexity = complexity_of([*(int(sizes[k]) for k in terms), int(size)])
                gains = np.where(sizes == size, explained, -1.0)
                places = [int(np.argmax(gains)), *_largest(np.where(numbered, gains, -1.0), 1 if terms else SEVERAL)]
                for rank, place in enumerate(places):
                    gain, kind = already + float(gains[place]), (complexity, rank)
                    if gains[place] > 0 and complexity <= most:
                        _improve(grown, kind, gain, (*terms, place))
        for kind, (gain, terms) in grown.items():
            _improve(best, kind, gain, terms)
        new = list(dict.fromkeys(t for (_, rank), (_, t) in grown.items() if rank < 2 and len(t) < TERMS))
        if again and new and len(new[0]) == 2:  # the first was found alone: another may be better beside the second
            new, again = [*new, *dict.fromkeys((second,) for _, second in new)], False
        starts = [_beside(terms, centred, target) for terms in new]
    return {kind: terms for kind, (_, terms) in best.items()}


def _improve(best: dict[Kind, tuple[float, tuple[int, ...]]], kind: Kind, gain: float, terms: tuple[int, ...]) -> None:
    """Puts terms in the place of the best of their kind, where they explain more."""
    if gain > best.get(kind, (0.0,))[0]:
        best[kind] = gain, terms


def _largest(gains: Array, many: int) -> list[int]:
    """The places of the largest gains, the largest first, and of equal ones the first."""
    places: list[int] = np.argsort(-gains, kind="stable")[:many].tolist()
    return places


def _explained(left: Array, whole: Array, wanted: Array) -> Array:
    """The squared error that each expression takes away beside the terms before, of which it is what is `left`."""
    norms = (left**2).sum(axis=1)
    usable = norms > DEPENDENT * np.maximum((whole**2).sum(axis=1), 1e-300)
    with np.errstate(all="ignore"):
        gains: Array = np.where(usable, (left @ wanted) ** 2 / norms, 0.0)
    return gains


def _beside(terms: tuple[int, ...], centred: Array, target: Array) -> tuple[tuple[int, ...], Array, Array]:
    """What is left of all expressions and of the target once these terms are fitted to them."""
    basis = np.linalg.qr(centred[list(terms)].T)[0]
    wanted = target - target.mean()
    return terms, centred - (centred @ basis) @ basis.T, wanted - basis @ (basis.T @ wanted)
