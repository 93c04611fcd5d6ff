"""Formulas: a number, and expressions of features with a weight each, fitted by least squares.

A formula reads features within the ranges that it was learned in, as a tree does, and has a value for every measured
feature, however noisy. It says the logarithm of an error, where utilities are errors, or the utility itself.

The pool has all expressions up to a size, without those that have the values of a simpler one on the training rows. The
best formula of each complexity is found by enumeration: each term explains most of what those before leave, exactly,
since the pool is made orthogonal to them. Nothing is drawn: the same rows give the same formulas.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import Struct, field

from jostle.choice import USUAL
from jostle.choice.models import Array
from jostle.language.row_functions import OPERATIONS
from jostle.lazy import Bools, NDArray, np
from jostle.records import replace

FEATURE, NUMBER, ABOVE = "feature", "number", "above"
UNARY = ("log", "sqrt")
BINARY = ("+", "-", "*", "/", "min", "max")

LARGE = 1e100
"""Bounds beyond this are no bounds: a product of two such numbers would overflow."""

Bounds = tuple[float, float]

_COST = {FEATURE: 1, NUMBER: 1, ABOVE: 2}
_LEVEL = {"+": 1, "-": 1, "*": 2, "/": 2}


class Expression(Struct, frozen=True):
    """`op` is one of `UNARY` and `BINARY`, or `FEATURE` (`name`), `NUMBER` (`number`), `ABOVE` (its argument is above
    `number`)."""

    op: str
    args: tuple[Expression, ...] = ()
    number: float = 0.0
    name: str = ""

    @property
    def complexity(self) -> int:
        """The number of features, numbers and operators; a threshold counts for two."""
        return _COST.get(self.op, 1) + sum(arg.complexity for arg in self.args)

    @property
    def features(self) -> set[str]:
        return {self.name} if self.op == FEATURE else {name for arg in self.args for name in arg.features}

    def values(self, columns: Mapping[str, Array]) -> Array:
        """Its value for each row of the columns: shape (n,), or a number where it reads no feature."""
        if self.op == FEATURE:
            return columns[self.name]
        if self.op == NUMBER:
            return np.float64(self.number)  # type: ignore[return-value]
        if self.op == ABOVE:
            return (self.args[0].values(columns) > self.number).astype(np.float64)
        return applied(self.op, *(arg.values(columns) for arg in self.args))

    def bounds(self, ranges: Mapping[str, Bounds]) -> Bounds | None:
        """The least and the largest value while each feature stays in its range; None where it may have none."""
        if self.op == FEATURE:
            return ranges[self.name]
        if self.op == NUMBER:
            return self.number, self.number
        inside = [arg.bounds(ranges) for arg in self.args]
        parts = [bounds for bounds in inside if bounds is not None]
        if len(parts) < len(inside):
            return None
        return (0.0, 1.0) if self.op == ABOVE else bounded(self.op, *parts)

    def numbers(self) -> Iterator[float]:
        """The numbers in it, from left to right, thresholds left out."""
        if self.op == NUMBER:
            yield self.number
        for arg in self.args:
            yield from arg.numbers()

    def with_numbers(self, numbers: Iterator[float]) -> Expression:
        """The same with other numbers, in the order of `numbers()`."""
        if self.op == NUMBER:
            return replace(self, number=next(numbers))
        return replace(self, args=tuple(arg.with_numbers(numbers) for arg in self.args))

    def text(self, level: int = 0) -> str:
        """Its text in the language, in parentheses where what stands around it binds as tightly as `level`."""
        if self.op == FEATURE:
            return self.name
        if self.op == NUMBER:
            return f"({self.number:.6g})" if self.number < 0 and level else f"{self.number:.6g}"
        if self.op == ABOVE:
            text = f"1 if {self.args[0].text()} > {self.number:.6g} else 0"
            return f"({text})" if level else text
        if self.op not in _LEVEL:
            return f"{self.op}({', '.join(arg.text() for arg in self.args)})"
        own = _LEVEL[self.op]
        left, right = self.args
        text = f"{left.text(own)} {self.op} {right.text(own + (self.op in '-/'))}"
        return f"({text})" if own < level else text


def applied(op: str, *args: Array) -> Array:
    """The value of an operator, element by element."""
    columns = OPERATIONS[op].columns
    if columns is None:
        raise TypeError(f"`{op}` is no operator on numbers")
    with np.errstate(all="ignore"):
        value: Array = columns(np, *args)
    return value


def bounded(op: str, *parts: Bounds) -> Bounds | None:
    """Bounds of an operator's value from those of its arguments; None where it may have no value, or one too large.
    Denominators and arguments of logarithms stay away from 0 by a billionth of their largest size."""
    low, high = parts[-1]
    away = 1e-9 * max(abs(low), abs(high))
    if (op == "/" and low <= away and high >= -away) or (op == "log" and low <= away) or (op == "sqrt" and low < 0):
        return None
    result = OPERATIONS[op].bounds(*parts)
    return result if result is not None and max(map(abs, result)) < LARGE else None


CUTS = 7
"""Thresholds that are tried for each feature: between equal parts of its values."""

NUMBERS = 1e7
"""The most numbers that the values of all expressions may be together (80 MB); what would come after is left out."""

DIGITS = 6
"""The significant digits of a number in a formula, which is what its text shows."""

_COMMUTE = frozenset("+*") | {"min", "max"}


class Pool(Struct, frozen=True):
    """`values` (m, n) of `expressions` (m) on the training rows, simplest first."""

    expressions: tuple[Expression, ...]
    values: Array

    @property
    def complexities(self) -> NDArray[np.intp]:
        return np.array([expression.complexity for expression in self.expressions], dtype=np.intp)


def pool_of(columns: Mapping[str, Array], ranges: Mapping[str, Bounds], most: int) -> Pool:
    """The expressions of at most the size `most` over these columns, all of the shape (n,) and within their ranges.

    Leaves are the features, 1, and the size that each feature usually has. Constant expressions are left out, and of
    those that are the same up to a factor and a summand, which a formula fits, all but the simplest.
    """
    growth = _Growth(columns, ranges, int(NUMBERS // max(len(next(iter(columns.values()))), 1)))
    for size in range(1, most + 1):
        growth.grow(size)
    expressions, values = growth.expressions, np.array(growth.values)
    centred = values - values.mean(axis=1, keepdims=True)
    spread = np.sqrt((centred**2).mean(axis=1))
    usable = np.flatnonzero(spread > 1e-9 * np.abs(values).max(axis=1))
    standard = centred[usable] / spread[usable, None]
    lead = np.argmax(np.abs(standard) > 0.5, axis=1)  # a value of unit variance is somewhere that large
    standard *= np.sign(standard[np.arange(len(usable)), lead])[:, None]
    first = usable[_distinct(standard)]
    return Pool(tuple(expressions[k] for k in first), values[first])


class _Growth(Struct):
    """The expressions so far, each with its values, its bounds and the size it was made at."""

    columns: Mapping[str, Array]
    ranges: Mapping[str, Bounds]
    room: int
    expressions: list[Expression] = field(default_factory=list)
    values: list[Array] = field(default_factory=list)
    bounds: list[Bounds] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    keys: set[bytes] = field(default_factory=set)

    def grow(self, size: int) -> None:
        """Adds the expressions of this size that are new by their values, as far as there is room."""
        for expression, bounds, values in self._candidates(size):
            key = _key(values)
            if key not in self.keys and len(self.values) < self.room:
                self.keys.add(key)
                self.expressions.append(expression)
                self.values.append(values)
                self.bounds.append(bounds)
                self.sizes.append(size)

    def _candidates(self, size: int) -> Iterator[tuple[Expression, Bounds, Array]]:
        if size == 1:
            yield from self._leaves()
            return
        by_size = {s: [k for k, own in enumerate(self.sizes) if own == s] for s in range(1, size)}
        if size == 3:
            yield from self._thresholds()
        for op in UNARY:
            yield from self._combinations(op, [(k,) for k in by_size[size - 1]])
        for left in range(1, size - 1):
            right = size - 1 - left
            pairs: list[tuple[int, ...]] = [(a, b) for a in by_size[left] for b in by_size[right]]
            rising = [pair for pair in pairs if pair[0] <= pair[1]]
            for op in BINARY:
                yield from self._combinations(op, rising if op in _COMMUTE else pairs)

    def _leaves(self) -> Iterator[tuple[Expression, Bounds, Array]]:
        many = len(next(iter(self.columns.values())))
        for name, values in self.columns.items():
            yield Expression(FEATURE, name=name), self.ranges[name], values
        usual = [float(f"{np.median(np.abs(values)):.3g}") for values in self.columns.values()]
        for number in dict.fromkeys([1.0, *usual]):
            if number > 0:
                yield Expression(NUMBER, number=number), (number, number), np.full(many, number)

    def _thresholds(self) -> Iterator[tuple[Expression, Bounds, Array]]:
        for name, values in self.columns.items():
            places = np.unique(values)
            for part in range(1, CUTS + 1):
                at = part * (len(places) - 1) // (CUTS + 1)
                if at + 1 < len(places):
                    cut = float(f"{(places[at] + places[at + 1]) / 2:.{DIGITS}g}")
                    step = Expression(ABOVE, (Expression(FEATURE, name=name),), cut)
                    yield step, (0.0, 1.0), step.values(self.columns)

    def _combinations(self, op: str, places: list[tuple[int, ...]]) -> Iterator[tuple[Expression, Bounds, Array]]:
        """An operator applied to earlier expressions wherever that has a bounded value."""
        places = [place for place in places if any(self.expressions[k].features for k in place)]
        bounds = [bounded(op, *(self.bounds[k] for k in place)) for place in places]
        good = [(place, limits) for place, limits in zip(places, bounds, strict=True) if limits is not None]
        for start in range(0, len(good), 1000):
            block = good[start : start + 1000]
            args = [np.array([self.values[place[i]] for place, _ in block]) for i in range(len(block[0][0]))]
            for (place, limits), values in zip(block, applied(op, *args), strict=True):
                yield Expression(op, tuple(self.expressions[k] for k in place)), limits, values


def _key(values: Array) -> bytes:
    """Equal for equal values, to nine digits; what rounding alone makes different is kept twice, which does no harm."""
    scale = float(np.abs(values).max())
    return np.rint(values * (1e9 / scale)).tobytes() + f"{scale:.9g}".encode() if scale else b"0"


def _distinct(values: Array) -> NDArray[np.intp]:
    """The first of each group of equal rows, in order."""
    firsts: dict[bytes, int] = {}
    for place, row in enumerate(values):
        firsts.setdefault(np.rint(row * 1e7).tobytes(), place)
    return np.array(list(firsts.values()), dtype=np.intp)


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


TERMS = 3
"""The most terms of a formula."""

DEPENDENT = 1e-8
"""A term of which less than this part of the variance is left beside the terms before adds nothing but rounding."""

SEVERAL = 4
"""So many first terms of each size with numbers are fitted, since they were enumerated with others."""

EXACT = 1e-10
"""A formula that leaves less than this part of the variance is exact, to the digits of its numbers."""

Rows = Bools
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
    targets, formulas, least = target[rows], {0: fitted((), here, target[rows], ranges)}, np.inf
    best = _terms(pool, pool.values[:, rows], targets, most)
    for complexity, terms in sorted(dict.fromkeys((kind[0], terms) for kind, terms in best.items())):
        formula = fitted(tuple(pool.expressions[k] for k in terms), here, targets, ranges)
        error = float(((targets - formula.values(here)) ** 2).mean())
        if error < least * (1 - 1e-9) and least > EXACT * targets.var():
            formulas[complexity], least = formula, error
    return formulas


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
        for terms, left, residual in starts:
            explained = _explained(left, centred, residual)
            already = float((whole**2).sum() - (residual**2).sum())
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


def _explained(left: Array, whole: Array, residual: Array) -> Array:
    """The squared error that each expression takes away beside the terms before, of which it is what is `left`."""
    norms = (left**2).sum(axis=1)
    usable = norms > DEPENDENT * np.maximum((whole**2).sum(axis=1), 1e-300)
    with np.errstate(all="ignore"):
        gains: Array = np.where(usable, (left @ residual) ** 2 / norms, 0.0)
    return gains


def _beside(terms: tuple[int, ...], centred: Array, target: Array) -> tuple[tuple[int, ...], Array, Array]:
    """What is left of all expressions and of the target once these terms are fitted to them."""
    basis = np.linalg.qr(centred[list(terms)].T)[0]
    residual = target - target.mean()
    return terms, centred - (centred @ basis) @ basis.T, residual - basis @ (basis.T @ residual)
