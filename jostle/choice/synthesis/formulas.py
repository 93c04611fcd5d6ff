"""Formulas: a number, and expressions with a weight each, fitted by least squares.

A formula reads features within the ranges that it was learned in, as a tree does: it extrapolates nothing, and has a
value for every measured feature, however noisy. It says the logarithm of an error, where utilities are errors, or the
utility itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from msgspec import Struct

from jostle.choice.grow import Array
from jostle.choice.synthesis.expressions import NUMBER, Bounds, Expression
from jostle.choice.synthesis.pool import DIGITS
from jostle.records import replace

STEPS = 25
"""The most steps by which the numbers inside terms come nearer to the least squared error."""


class Formula(Struct, frozen=True):
    """`intercept` + Σ `weights` · `terms`; `ranges` of the features that it reads."""

    intercept: float
    weights: tuple[float, ...]
    terms: tuple[Expression, ...]
    ranges: Mapping[str, Bounds]

    @property
    def complexity(self) -> int:
        """The complexities of the terms, and a plus between them."""
        return complexity_of([term.complexity for term in self.terms])

    @property
    def features(self) -> list[str]:
        """The features that it reads, by name."""
        return sorted({name for term in self.terms for name in term.features})

    def values(self, columns: Mapping[str, Array]) -> Array:
        """What it says for each row of features: shape (n,)."""
        inside = {name: np.clip(columns[name], *self.ranges[name]) for name in self.features}
        many = len(next(iter(columns.values())))
        total = np.full(many, self.intercept)
        for weight, term in zip(self.weights, self.terms, strict=True):
            total = total + weight * term.values(inside)
        return total

    def text(self, sign: float = 1.0) -> str:
        """`sign` times the formula in the language."""
        parts = [f"{sign * self.intercept:.{DIGITS}g}"]
        for weight, term in zip(self.weights, self.terms, strict=True):
            parts.append("-" if sign * weight < 0 else "+")
            parts.append(f"{abs(weight):.{DIGITS}g} * {term.text(3 if term.op in '/*' else 2)}")
        return " ".join(parts)


def range_of(values: Array) -> Bounds:
    """The range of a feature, with as many digits as its text shows."""
    return _rounded(float(values.min())), _rounded(float(values.max()))


def complexity_of(sizes: Sequence[int]) -> int:
    """The complexity of a sum of terms of these complexities."""
    return sum(sizes) + max(0, len(sizes) - 1)


def fitted(
    terms: tuple[Expression, ...], columns: Mapping[str, Array], target: Array, ranges: Mapping[str, Bounds]
) -> Formula:
    """The formula of these terms with the least squared error; the numbers inside the terms are fitted as well.

    All numbers have as many digits as the text shows.
    """
    inside = {name: np.clip(columns[name], *ranges[name]) for name in columns}
    terms = _with_fitted_numbers(terms, inside, target, ranges)
    solution = _weights(terms, inside, target)
    intercept, *weights = (_rounded(float(value)) for value in solution)
    # What rounding the weights moves on the whole is given to the intercept, which then is rounded alone.
    formula = Formula(intercept, tuple(weights), terms, {n: ranges[n] for t in terms for n in sorted(t.features)})
    whole = intercept + float((target - formula.values(columns)).mean())
    return replace(formula, intercept=_rounded(whole) if abs(whole) > 1e-12 * np.abs(target).max() else 0.0)


def _design(terms: Sequence[Expression], columns: Mapping[str, Array], many: int) -> Array:
    return np.column_stack([np.ones(many), *(term.values(columns) for term in terms)])


def _weights(terms: Sequence[Expression], columns: Mapping[str, Array], target: Array) -> Array:
    design = _design(terms, columns, len(target))
    scale = np.abs(design).max(axis=0)
    scale[scale == 0] = 1.0
    solution: Array = np.linalg.lstsq(design / scale, target, rcond=None)[0] / scale
    return solution


def _with_fitted_numbers(
    terms: tuple[Expression, ...], columns: Mapping[str, Array], target: Array, ranges: Mapping[str, Bounds]
) -> tuple[Expression, ...]:
    """The terms with the numbers inside them moved where the error is least; as they are where that gains nothing."""
    start = [number for term in terms for number in term.numbers()]
    if not start:
        return terms

    def moved(numbers: Array) -> tuple[Expression, ...]:
        left = iter([_rounded(float(number)) for number in numbers.tolist()])
        return tuple(_plain(term.with_numbers(left)) for term in terms)

    def usable(those: Sequence[Expression]) -> bool:
        return all(term.bounds(ranges) is not None for term in those)

    def residuals(numbers: Array, exactly: bool = False) -> Array:
        left = iter(numbers.tolist())
        those = moved(numbers) if exactly else tuple(term.with_numbers(left) for term in terms)
        if not usable(those):
            return np.full(len(target), 1e3 * (np.abs(target).max() + 1))
        wrong: Array = target - _design(those, columns, len(target)) @ _weights(those, columns, target)
        return wrong

    origin = np.array(start)
    best = _nearest(residuals, origin)
    gained = (residuals(best, exactly=True) ** 2).sum() < (residuals(origin) ** 2).sum()
    return moved(best) if gained else terms


def _nearest(residuals: Callable[[Array], Array], start: Array) -> Array:
    """The numbers with the least squared residuals near `start`, by the steps of Levenberg and Marquardt."""
    at, here, damping = start, residuals(start), 1e-3
    for _ in range(STEPS):
        each = np.diag(1e-6 * np.maximum(np.abs(at), 1e-3))
        slopes = np.column_stack([(residuals(at + move) - here) / move.sum() for move in each])
        curve = slopes.T @ slopes
        before = float(here @ here)
        while damping < 1e9:
            square = curve + np.diag(damping * curve.diagonal() + 1e-300)
            new = at - np.linalg.lstsq(square, slopes.T @ here, rcond=None)[0]
            there = residuals(new)
            if there @ there < before:
                at, here, damping = new, there, damping / 10
                break
            damping *= 10
        if float(here @ here) > before * (1 - 1e-9):
            break
    return at


def _plain(term: Expression) -> Expression:
    """The term with 1 for a number that is divided, which its weight makes up for."""
    if term.op == "/" and term.args[0].op == NUMBER:
        return replace(term, args=(replace(term.args[0], number=1.0), term.args[1]))
    return term


def _rounded(number: float) -> float:
    return float(f"{number:.{DIGITS}g}")
