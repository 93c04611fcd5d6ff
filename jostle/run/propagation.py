"""How far off a released number may be: its noise, drawn again through all that was calculated.

Let x be what was measured, x = θ + Z with noise Z of a known, symmetric law, and g what is calculated of it. Then
x − Z′ with Z′ drawn anew is to x what θ is: the middle 95 % of g(x − Z′) are an interval for g(θ), the exact answer on
the data, and their scatter is its standard error. For numbers straight from a mechanism, and sums and differences of
them, the interval holds θ with a probability of exactly 95 %; for a ratio it is Fieller's as long as the divisor is
away from 0. Where it is not, the interval is as wide as what the calculation can give. The answer of an aggregate is
calculated within what the description allows, and so are its draws.

Draws are stratified (a Latin hypercube): every source takes its own quantiles, in an order of its own. They follow from
released numbers and a fixed seed, so that the same question has the same answer.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from functools import lru_cache, reduce
from operator import add
from typing import Any

from msgspec import Struct

from jostle import formulas
from jostle.diagnostics import Refusal, refuse
from jostle.error_laws import DRAWS, half_width, place_of, quantiles_of, sum_quantile, toward_mean
from jostle.lazy import Floats, Ints, np
from jostle.noise_laws import LEVEL, AdditiveLaw, Bracketed, Selected
from jostle.records import replace
from jostle.simulate import random_orders

FEWEST = 200  # draws
BLOCK = 2**10  # groups whose draws are held at a time
MOST_CELLS = 2**23  # draws that are held at a time
MANY = 500  # estimates of groups from which they are drawn together


class Uncertainty(Struct, frozen=True):
    """What is known of the noise in one number: `low` and `high` hold the exact answer with probability `level`.

    The number less and plus `error` hold both. `deviation` is the standard error.
    """

    low: float
    high: float
    error: float
    deviation: float
    level: float = LEVEL


class Uncertainties(Struct, frozen=True):
    """The same of every element of a vector: arrays of its shape."""

    low: Floats
    high: Floats
    error: Floats
    deviation: Floats


def uncertainties(values: Sequence[formulas.Noised], level: float = LEVEL) -> list[Uncertainty]:
    """Of each number by itself; those that share sources are drawn together. Refuses what is known in ranks only."""
    alike = _of_estimates(values, level) if len(values) >= MANY else {}
    sums = [alike.get(at) or _projected(one, level) or _noises(one.origin) for at, one in enumerate(values)]
    drawn = [value.origin for value, noises in zip(values, sums, strict=True) if noises is None]
    outcomes, spreads = _outcomes(drawn), _spreads(drawn, level)
    return [
        noises if isinstance(noises, Uncertainty)
        else _of_drawn(value, next(outcomes), next(spreads), level) if noises is None
        else _of_sum(float(value), *noises, level)
        for value, noises in zip(values, sums, strict=True)
    ]  # fmt: skip


def _projected(value: formulas.Noised, level: float) -> Uncertainty | None:
    """Of an answer from `low` on: the interval of the measured one, moved there where that is below, from there on.

    The exact answer is not below `low`, so it is no further from the moved one than from the measured one. Of one that
    was widened: from the low end of the one to the high end of the other, of which each fails half as often.
    """
    origin = value.origin
    if isinstance(origin, formulas.Widened):
        least, most = uncertainties([origin.low, origin.high], level)
        return Uncertainty(least.low, most.high, max(most.high - value, value - least.low), most.deviation, level)
    if not isinstance(origin, formulas.Projected) or not isinstance(origin.law, AdditiveLaw):
        return None
    measured, wide = max(origin.low, origin.measured), origin.law.half_width(level)
    low, high = origin.ends(max(origin.low, measured - wide), measured + wide)
    error = max(high - float(value), float(value) - low)
    return Uncertainty(low, high, error, math.hypot(origin.law.deviation, float(value) - origin.measured), level)


def of_numbers(values: Sequence[object]) -> list[Uncertainty | None]:
    """Of each item that is a number with known error, its uncertainty; of each other, None."""
    numbers = [value for value in values if type(value) is formulas.Noised]
    if not numbers:
        return [None] * len(values)
    try:
        results = iter(uncertainties(numbers))
    except Refusal:  # one of them is known in ranks, or calculated from such
        return [_of_one(value) if type(value) is formulas.Noised else None for value in values]
    return [next(results) if type(value) is formulas.Noised else None for value in values]


def _of_one(value: formulas.Noised) -> Uncertainty | None:
    try:
        return uncertainties([value])[0]
    except Refusal:
        return None


def errors_beside(values: Sequence[object]) -> tuple[list[str], list[float]]:
    """What stands beside each of these values in a table, empty where no error is known; and their errors, else 0."""
    errors = of_numbers(values)
    return list(map(_beside, values, errors)), [one.error if one is not None else 0.0 for one in errors]


def _beside(value: Any, one: Uncertainty | None) -> str:
    if formulas.rests_on_misfits(formulas.cuts_of(value)):
        return formulas.UNKNOWN
    mark, hidden = formulas.NOISE_ONLY if formulas.cuts_of(value) else "", getattr(value, "hidden", False) is True
    if one is not None:
        return formulas.error_text(value, one.error, mark, hidden)
    if (ranks := getattr(value, "ranks", None)) is not None:
        return formulas.ranks_text(*ranks) + mark + (formulas.DOUBTFUL if hidden else "")
    return formulas.DOUBTFUL.strip() if hidden else ""


def additive(value: formulas.Noised) -> bool:
    """Whether its noise is a sum of independent noises, so that its error is the same for all data."""
    return _noises(value.origin) is not None


# Sums of noise -----------------------------------------------------------------------------------


def _of_sum(value: float, noises: Sequence[AdditiveLaw], rounding: float, level: float) -> Uncertainty:
    """Of a value that `rounding` has moved away from the sum of what was measured: the interval is around that."""
    deviation = math.sqrt(math.fsum(law.deviation**2 for law in noises))
    wide = noises[0].half_width(level) if len(noises) == 1 else half_width(noises, level, random_orders(DRAWS, seed=1))
    middle = value - rounding
    return Uncertainty(middle - wide, middle + wide, wide + abs(rounding), math.hypot(deviation, rounding), level)


def _noises(root: formulas.Origin) -> tuple[list[AdditiveLaw], float] | None:
    """The independent noises that a number's own is the sum of, and how far roundings moved it; None where it was
    calculated in another way. The law of a count that was rounded itself knows that."""
    if isinstance(root, formulas.Joint) and isinstance(root.law, AdditiveLaw):
        return [root.law], 0.0
    weights: dict[formulas.Origin, float] = {root: 1.0}
    noises: list[AdditiveLaw] = []
    rounding = 0.0
    for node in _in_order([root]):
        weight = weights.pop(node)
        if isinstance(node, formulas.Source):
            if isinstance(node.law, Selected):
                raise _in_ranks()
            if isinstance(node.law, Bracketed):
                return None
            noises += [node.law.times(abs(weight))] if weight else []
            continue
        slopes = _slopes(node)
        if slopes is None:
            return None
        moved = node.inputs[2] if node.function == "round" else getattr(node, "rounding", 0.0)
        rounding += weight * moved
        for part, slope in zip(node.inputs, slopes, strict=True):
            if isinstance(part, formulas.Source | formulas.Formula):
                weights[part] = weights.get(part, 0.0) + weight * slope
    return noises, rounding


def _slopes(node: formulas.Formula) -> Sequence[float] | None:
    """How fast a sum, a difference, a multiple or a mean moves with each input; None of what is none of these."""
    if isinstance(node, formulas.Joint | formulas.Widened):
        return node.weights
    match node.function, node.inputs:
        case "+", _:
            return 1.0, 1.0
        case "-", _:
            return 1.0, -1.0
        case "*", (float(factor), _):
            return 0.0, factor
        case "*", (_, float(factor)):
            return factor, 0.0
        case "/", (_, float(divisor)):
            return 1.0 / divisor, 0.0
        case "round", _:
            return 1.0, 0.0, 0.0
        case ("sum" | "avg") as name, inputs:
            return [1.0 if name == "sum" else 1.0 / len(inputs)] * len(inputs)
    return None


def _in_order(roots: Sequence[formulas.Origin], done: Container[formulas.Origin] = ()) -> list[formulas.Origin]:
    """Every node once, and before all that it was calculated from; what was drawn, and what that is of, is left out."""
    order: list[formulas.Origin] = []
    state: dict[formulas.Origin, bool] = {}  # whether all that it was calculated from stands in the order
    waiting = list(roots)
    while waiting:
        node = waiting[-1]
        if node in state:
            waiting.pop()
            if not state[node]:
                state[node] = True
                order.append(node)
            continue
        state[node] = False
        for part in node.inputs if isinstance(node, formulas.Formula) else ():
            if isinstance(part, formulas.Source | formulas.Formula) and part not in state and part not in done:
                waiting.append(part)
    order.reverse()
    return order


# Other calculations ------------------------------------------------------------------------------


def vector_uncertainties(value: Any, level: float = LEVEL) -> Uncertainties | None:
    """Of each element of a vector; None where nothing is known of its noise.

    Raises `OverflowError` where the strategy of the vector is too large for the error of every element.
    """
    from jostle.kernels.accuracy import standard_errors
    from jostle.kernels.noisy_array import is_direct, noise_of, origin_of

    values, noise = np.asarray(value, dtype=float), noise_of(value)
    if noise is not None:
        deviations = standard_errors(value)
        smooth = noise.law.smooth.deviation / noise.law.deviation if noise.law.deviation else 1.0
        wide = sum_quantile(type(noise.law), level) * smooth * deviations
        if is_direct(noise, values.size):
            wide = np.full(values.shape, noise.law.half_width(level))
        return Uncertainties(values - wide, values + wide, wide, deviations)
    origin = origin_of(value)
    if origin is None:
        return None
    (outcomes,) = _outcomes([origin])
    rows = outcomes if outcomes.ndim == 2 else np.broadcast_to(outcomes, (len(values), len(outcomes)))
    each = _of_rows(values.tolist(), rows, level)
    columns = np.array([(one.low, one.high, one.error, one.deviation) for one in each]).reshape(-1, 4).T
    return Uncertainties(*columns)


def _of_rows(values: Sequence[float], outcomes: Floats, level: float) -> list[Uncertainty]:
    """Of numbers, from a row of draws for each."""
    if not len(values) or np.isnan(outcomes).any():
        return [_of_draws(value, row, level) for value, row in zip(values, outcomes, strict=True)]
    places = [place_of(outcomes.shape[1], q) for q in ((1 - level) / 2, (1 + level) / 2)]
    low, high = np.partition(outcomes, places, axis=1)[:, places].T
    at = np.array(values, dtype=float)
    error = np.maximum(np.maximum(high - at, at - low), 0.0)
    with np.errstate(all="ignore"):
        deviation = np.sqrt(np.mean((outcomes - at[:, None]) ** 2, axis=1))
    columns = [column.tolist() for column in (low, high, error, deviation)]
    return [Uncertainty(a, b, off, wide, level) for a, b, off, wide in zip(*columns, strict=True)]


def _of_drawn(value: formulas.Noised, outcomes: Floats, spread: float, level: float) -> Uncertainty:
    """Of one number with an interval, and of what is calculated from it alone, each end may fail with 1 − `level`.

    The exact number is on one side of the answer, which does not depend on the noise of the counts around it, and an
    interval has its own answer: so only the end on that side can fail. `spread`: the least error, of `_spreads`.
    """
    sources = [node for node in _in_order([value.origin]) if isinstance(node, formulas.Source)]
    alone = len(sources) == 1 and isinstance(sources[0].law, Bracketed)
    own = _of_draws(value, outcomes, max(2 * level - 1, level / 2) if alone else level)
    if spread <= own.error:
        return replace(own, level=level)
    low, high = min(own.low, float(value) - spread), max(own.high, float(value) + spread)
    return Uncertainty(low, high, spread, own.deviation, level)


def _spreads(roots: Sequence[formulas.Origin], level: float) -> Iterator[float]:
    """The least error of each root that extremes or deviations of several numbers are in; 0 of others.

    Noise spreads numbers that are alike, and noise that is drawn again spreads them more: a difference of extremes is
    then too large itself, and its draws are not around 0. So noise is drawn, too, around numbers of the same law that
    are brought together by as much of their spread as it may explain (after James and Stein).
    """
    whole = [_in_order([root]) for root in roots]
    many = sum(isinstance(node, formulas.Source) for nodes in whole for node in nodes)
    for root, nodes in zip(roots, whole, strict=True):
        error = 0.0
        if any(map(_is_of_spread, nodes)):
            (drawn,) = _outcomes([root], _centres(nodes), many)
            off = np.sort(np.abs(drawn[:-1] - drawn[-1]))
            error = float(off[place_of(len(off), level)])
        yield error if math.isfinite(error) else 0.0


def _is_of_spread(node: formulas.Origin) -> bool:
    """Whether this is an order or a spread of several numbers of which each has noise."""
    if not isinstance(node, formulas.Formula):
        return False
    name, _, of_elements = str(node.function).partition(" of ")
    noised = sum(isinstance(part, formulas.Source | formulas.Formula) for part in node.inputs)
    return hasattr(_OfSpread, name) and (noised > 1 or bool(of_elements))


def _centres(nodes: Sequence[formulas.Origin]) -> Mapping[formulas.Source, float]:
    """Of each measured number, its place between the mean of those with the same law and itself."""
    alike: dict[AdditiveLaw, list[formulas.Source]] = {}
    for node in nodes:
        if isinstance(node, formulas.Source) and isinstance(node.law, AdditiveLaw):
            alike.setdefault(node.law, []).append(node)
    places: dict[formulas.Source, float] = {}
    for law, sources in alike.items():
        places |= zip(sources, toward_mean([source.value for source in sources], law), strict=True)
    return places


def _of_draws(value: float, outcomes: Floats, level: float) -> Uncertainty:
    finite = outcomes[~np.isnan(outcomes)]
    if not finite.size:
        return Uncertainty(-np.inf, np.inf, np.inf, np.inf, level)
    return _of_rows([value], finite[None, :], level)[0]


def _in_ranks() -> Refusal:
    return refuse(
        "TypeError", "the error of a selection is known in ranks or rows, not in values",
        help="`error` of the number itself is known; a quantile without `via selection` has an interval in values",
    )  # fmt: skip


_Terms = tuple[Callable[..., Floats], tuple[AdditiveLaw, ...], tuple[tuple[tuple[int, float], ...], ...]]


def _of_estimates(values: Sequence[formulas.Noised], level: float) -> dict[int, Uncertainty]:
    """Of numbers that one function estimates from the terms of each group of a select, by their places: blocks of
    groups are drawn at once, with the same noise for each. Those of few groups, and all others, are left out."""
    alike: dict[_Terms, list[tuple[int, list[float], list[float]]]] = {}
    for at, value in enumerate(values):
        if (terms := _terms(value.origin)) is not None:
            alike.setdefault(terms[0], []).append((at, *terms[1:]))
    results: dict[int, Uncertainty] = {}
    for (function, laws, weights), members in alike.items():
        draws = max(FEWEST, min(DRAWS, MOST_CELLS // (len(members) * max(1, len(laws)))))
        noises = [
            quantiles_of(law, draws)[order] for law, order in zip(laws, random_orders(draws, seed=1), strict=False)
        ]
        for start in range(0, len(members) if len(members) >= MANY else 0, BLOCK):
            places, measured, constants = zip(*members[start : start + BLOCK], strict=True)
            samples = [column[:, None] - noise for column, noise in zip(np.array(measured).T, noises, strict=True)]
            inputs = [sum((weight * samples[i] for i, weight in term), start=constant[:, None])
                      for term, constant in zip(weights, np.array(constants).T, strict=True)]  # fmt: skip
            with np.errstate(all="ignore"):
                outcomes = np.broadcast_to(function(*inputs), (len(places), draws))
            results |= zip(places, _of_rows([values[at] for at in places], outcomes, level), strict=True)
    return results


def _terms(root: formulas.Origin) -> tuple[_Terms, list[float], list[float]] | None:
    """What a function is applied to, of an estimate: the function, the laws of the measured numbers, and by term their
    places with weights; the measured numbers; and the constant of each term."""
    if type(root) is not formulas.Formula or not callable(root.function):
        return None
    places: dict[formulas.Source, int] = {}
    weights, constants = [], []
    for part in root.inputs:
        joint = isinstance(part, formulas.Joint)
        pairs = part.pairs if joint else [(part, 1.0)] if isinstance(part, formulas.Source) else []
        constants.append(part.constant if joint else 0.0 if pairs else part)
        weights.append(tuple([(places.setdefault(source, len(places)), weight) for source, weight in pairs]))
    laws = tuple([one.law for one in places if type(one) is formulas.Source and isinstance(one.law, AdditiveLaw)])
    if len(laws) < len(places) or not all(isinstance(constant, float) for constant in constants):
        return None
    return (root.function, laws, tuple(weights)), [source.value for source in places], constants


# Drawing again -----------------------------------------------------------------------------------


def _outcomes(
    roots: Sequence[formulas.Origin], places: Mapping[formulas.Source, float] | None = None, many: int = 0
) -> Iterator[Floats]:
    """For each root its values with the noise of all its sources drawn again, one array after the other.

    What is drawn for a node is held until its last use. With `places`, noise is drawn around these, and without noise
    at the end. `many`: the sources of all that is asked, where these roots are a part of it.
    """
    whole = _in_order(roots)
    uses = Counter(roots)
    for node in whole:
        uses.update(
            part for part in getattr(node, "inputs", ()) if isinstance(part, formulas.Source | formulas.Formula)
        )
    many = max(1, many, sum(isinstance(node, formulas.Source) for node in whole))
    draws = max(FEWEST, min(DRAWS, MOST_CELLS // many))
    orders = random_orders(draws, seed=1)
    arrays: dict[formulas.Origin, Any] = {}

    def take(node: object) -> Any:
        if not isinstance(node, formulas.Source | formulas.Formula):
            return node
        array = arrays[node]
        uses[node] -= 1
        if not uses[node]:
            del arrays[node]
        return array

    for root in roots:
        for node in reversed(_in_order([root], arrays)) if root not in arrays else ():
            if isinstance(node, formulas.Source):
                arrays[node] = _drawn_again(node, next(orders), places)
            else:
                with np.errstate(all="ignore"):
                    arrays[node] = _array_function(node.function)(*map(take, node.inputs))
        outcomes = take(root)
        yield outcomes if np.ndim(outcomes) == 2 else np.broadcast_to(outcomes, draws + (places is not None))


def _drawn_again(source: formulas.Source, order: Ints, places: Mapping[formulas.Source, float] | None) -> Floats:
    law = source.law
    if isinstance(law, Selected):
        raise _in_ranks()
    noise = quantiles_of(law, len(order))[order]
    if places is None:
        return noise if isinstance(law, Bracketed) else source.value - noise
    if isinstance(law, Bracketed):
        return np.append(noise, np.median(noise))
    return places[source] - np.append(noise, 0.0)


def _array_function(function: str | Callable[..., object]) -> Callable[..., object]:
    """What an operator or a function of the language is on arrays of draws: here, or NumPy's of the same name."""
    if callable(function):
        return function
    name, _, of_elements = function.partition(" of ")
    if of_elements:
        return lambda vector: _array_function(name)(*vector)
    on_arrays: Callable[..., Any] = _operators().get(name) or getattr(_OnDraws, name, None) or getattr(np, name)
    return on_arrays


@lru_cache(maxsize=1)
def _operators() -> Mapping[str, Callable[..., object]]:
    return {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "%": np.mod, "^": np.power}


def _stacked(values: Sequence[Any]) -> Any:
    return np.stack(np.broadcast_arrays(*values))


class _OfSpread:
    """Functions of an order or a spread of several numbers, on arrays of draws."""

    @staticmethod
    def min(*values: object) -> Any:
        return _stacked(values).min(axis=0)

    @staticmethod
    def max(*values: object) -> Any:
        return _stacked(values).max(axis=0)

    @staticmethod
    def median(*values: object) -> Any:
        return np.median(_stacked(values), axis=0)

    @staticmethod
    def quantile(q: float, *values: object) -> Any:
        return np.quantile(_stacked(values), q, axis=0)

    @staticmethod
    def var(*values: object) -> Any:
        return _stacked(values).var(axis=0, ddof=1)

    @staticmethod
    def stddev(*values: object) -> Any:
        return _stacked(values).std(axis=0, ddof=1)


class _OnDraws(_OfSpread):
    """Functions of the language that NumPy has under other names, or for one array alone."""

    @staticmethod
    def round(value: object, digits: object, moved: object) -> object:
        """Rounded for show: its error is that of the number, and what moved it."""
        return value

    @staticmethod
    def clamp(value: Any, low: Any, high: Any) -> Any:
        return np.clip(value, low, high)

    @staticmethod
    def vector(*values: object) -> object:
        return _stacked(values)

    @staticmethod
    def element(vector: Any, place: Any) -> Any:
        return vector[int(place)]

    @staticmethod
    def sum(*values: object) -> Any:
        return reduce(add, values)

    @staticmethod
    def avg(*values: Any) -> Any:
        return reduce(add, values) / len(values)
