"""Answers of selects from their noisy numbers, which is post-processing; and repeated requests.

An answer about a registered table (a select, a block or a noisy vector) is returned again at no cost if plan,
aggregates, keys, amount, mechanism and data version are the same. Within one run the k-th request of its kind gets the
k-th stored answer. So a program that asks twice gets two independent draws and pays for two, and a program that is run
again pays nothing. Allotments are charged as for a new request.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import date
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from jostle.accounting.amounts import Amount
from jostle.diagnostics import Refusal, refuse
from jostle.error_laws import LaplaceSum, NoiseLaw, facts_of, law_named, sum_of_two, sum_quantile
from jostle.formulas import Formula, Joint, Noised, OfTwo, Source, Vector, calculated
from jostle.language.moments import kind_of_moment, moment_of, number_of
from jostle.lazy import Floats, np
from jostle.noise_laws import ADDITIVE, Gaussian, Laplace, Selected, SmoothLaplace
from jostle.plan.digest import digest, plan_digest
from jostle.plan.plan import Term
from jostle.plan.schemas import MOST_KEYS
from jostle.privacy.kernel.exposures import Handle
from jostle.privacy.kernel.handles import Cube, Table
from jostle.privacy.kernel.kernel import Kernel
from jostle.privacy.kernel.measurement import Measurement
from jostle.privacy.ledger.ledger import Account
from jostle.privacy.measurements.aggregates import aggregate as agg
from jostle.privacy.measurements.aggregates.quantile import Intervals, Quantile
from jostle.privacy.measurements.aggregates.sums import CentredSum
from jostle.privacy.measurements.answers import Answers, StrategyAnswers
from jostle.privacy.measurements.open_selects import OpenSelect
from jostle.privacy.measurements.selects import Answer, Layout, Numbers, Request, key_columns, select
from jostle.privacy.measurements.smooth import SmoothCount
from jostle.privacy.mechanisms.linear import Block
from jostle.run.sequences import as_array, of_places
from jostle.source import Span

if TYPE_CHECKING:
    from jostle.privacy.measurements.joint import JointBlocks
    from jostle.privacy.measurements.running import Roots, RunningNumbers, Tree
    from jostle.privacy.reading.public_data import PublicData


MOST_STORED = 2**14  # the largest number of values of a stored vector


def run(kernel: Kernel, request: Any, amount: Amount, via: str | None, span: Span | None) -> tuple[Answer, bool]:
    """The answer to a private select, and whether it is a stored one."""
    table = request.table if isinstance(request, Request) else None
    if isinstance(request, Request) and request.running:
        return _running(kernel, request, amount, via, span)
    stored_request = _StoredRequest.of(kernel, table, request, amount, via)
    measurement: Measurement[Any, Any]
    if not isinstance(request, Request):
        measurement = request.measurement(amount, via)
    elif via == SmoothLaplace.name:
        measurement = SmoothCount.of(request, amount)
    else:
        measurement = OpenSelect.of(request, amount, via) if request.open_keys else select(request, amount, via)
    if stored_request is None:
        return answered(kernel.measure(measurement, span)), False
    stored = stored_request.again(kernel, measurement, span)
    if stored is not None:
        return _from_json(stored, request), True
    answer = answered(kernel.measure(measurement, span))
    stored_request.remember(_document(answer))
    return answer, False


def exactly(kernel: Kernel, data: PublicData, request: Any) -> Answer:
    """The exact answer on public data; for a running key, the sums up to each of its steps."""
    answer: Answer = request.exact(kernel, data)
    if not isinstance(request, Request) or not request.running:
        return answer
    from jostle.privacy.measurements.running import need_sums, steps_until

    for aggregate in request.aggregates:
        need_sums(aggregate)
    (at,) = [i for i, key in enumerate(request.group_keys) if key.running is not None]
    key = request.group_keys[at]
    listed = request.table.key_of(key.expr, key.over, MOST_KEYS)
    steps = sorted({*answer.keys[at]}) if listed is None else [*listed.values]
    steps = steps[: steps_until(key.running, steps, key.name)]
    places = [i for i, step in enumerate(answer.keys[at]) if step in set(steps)]
    columns: list[list[float]] = []
    for column in answer.values:
        totals: dict[tuple[Any, ...], float] = {}
        columns.append([])
        for i in places:
            group = tuple(key[i] for j, key in enumerate(answer.keys) if j != at)
            totals[group] = totals.get(group, 0.0) + (column[i] or 0.0)
            columns[-1].append(totals[group])
    return Answer([[key[i] for i in places] for key in answer.keys], columns)


def _running(
    kernel: Kernel, request: Request, amount: Amount, via: str | None, span: Span | None
) -> tuple[Answer, bool]:
    """The answers of a stream up to a step, and whether all of them were released before."""
    from jostle.privacy.measurements.running import RunningSelect

    if kernel.in_a_run:
        raise refuse("TypeError", "a run of `best_run` begins no stream", span)
    measurement = RunningSelect.of(request, amount, via).going_on()
    again = measurement.released >= measurement.steps.until
    if again:
        kernel.charge_again(measurement.exposures, measurement.price, measurement.title, span)
    released = measurement.again() if again else kernel.measure(measurement, span)
    keys, values = [list(key.values) for key in request.keys], []
    keys[released.steps.place] = keys[released.steps.place][: released.steps.until]
    for places in released.layout.places:
        ((term, _),) = places
        values.append(_running_sums(released, *released.measured[term]))
    return Answer(request.key_columns(key_columns(keys)), values), again


def _running_sums(released: RunningNumbers, numbers: Floats, law: Laplace | Gaussian) -> Sequence[Noised]:
    """The sums up to each step, in the order of the groups, with the noise that they are computed from."""
    steps, matrix = released.steps, released.matrix
    vectors = [Vector(column, law) for column in numbers.T]
    sums, laws = np.empty((steps.until, steps.groups)), list[Laplace | Gaussian]()
    for at in range(steps.until):
        weights = running_weights(matrix, at + 1)
        sums[at] = weights @ numbers[: len(weights)]
        error = law.smooth.deviation * math.sqrt(float(weights @ weights))
        wide = sum_quantile(Laplace) * error
        laws.append(Gaussian(error) if isinstance(law, Gaussian) else LaplaceSum(error / math.sqrt(2), wide=wide))
    shape = (steps.until, *steps.others)
    places = np.moveaxis(np.arange(sums.size).reshape(shape), 0, steps.place).ravel()
    values = sums.ravel()[places]

    def answer(place: int) -> Noised:
        at, group = divmod(int(places[place]), steps.groups)
        return Noised.of(
            float(values[place]),
            Joint(laws[at], at, lambda step: [(vectors[group], running_weights(matrix, step + 1))]),
        )

    return of_places(len(values), answer, values)


def running_weights(matrix: Roots | Tree, step: int) -> Floats:
    """The weights of the released numbers in the running sum of the first `step` steps."""
    from jostle.privacy.measurements.running import STEP_BITS, Tree

    if isinstance(matrix, Tree):  # disjoint intervals that cover the steps, the longest first
        weights, left = np.zeros(matrix.rows_up_to(step)), step
        while left:
            weights[matrix.rows_up_to(left) - 1] = 1.0
            left &= left - 1
        return weights
    # running sums are those of D⁻¹C⁻¹y: the weight of y at i is Σ_k back[k] / d[i + k], as far as step
    scales, size = 2.0**STEP_BITS / matrix.scales[:step], 1 << (2 * step).bit_length()
    product = np.fft.rfft(scales, size) * np.conj(np.fft.rfft(inverse(matrix)[:step], size))
    weights = np.fft.irfft(product, size)[:step]
    return np.asarray(weights)


@lru_cache(maxsize=2**4)
def inverse(matrix: Roots) -> Floats:
    """The coefficients of the inverse of the rounded series."""
    lags = matrix.lags / matrix.lags[0]
    back = np.zeros(matrix.steps)
    back[0] = 1.0
    for at in range(1, matrix.steps):
        back[at] = -np.dot(lags[1 : at + 1], back[:at][::-1])
    return back


# What is calculated of noisy numbers --------------------------------------------------------------


def answered(released: Answer | Numbers) -> Answer:
    """The answers as numbers with their noise."""
    if isinstance(released, Answer):
        if released.law is None:
            return released
        law = law_named(*facts_of(released.law))
        return Answer(released.keys, [noised(column, law) for column in released.values])
    layout, table = released.layout, released.table
    measured = zip(layout.bought, released.measured, strict=True)
    terms = {
        i: numbers_of(one, table, [noised(row, law) for row in numbers])
        for i, (one, (numbers, law)) in enumerate(measured)
    }
    values: list[Sequence[Any]] = []
    for i, (aggregate, chosen) in enumerate(zip(layout.aggregates, released.chosen, strict=True)):
        if isinstance(aggregate, agg.AdditiveAggregate):
            values.append(of_terms(aggregate, table, _terms(layout, i, terms)))
        else:
            numbers = numbers_of_intervals(aggregate.intervals(table)) if isinstance(aggregate, Quantile) else {}
            values.append(
                [_noised(numbers.get(value, value) if numbers else value, law) for value, law in chosen or ()]
            )
    return Answer(released.keys, values)


def noised(column: Sequence[float] | Floats, law: NoiseLaw) -> Sequence[Noised]:
    """Numbers with their noise, all of one law."""
    numbers = column if isinstance(column, list) else column.tolist()  # type: ignore[union-attr]
    return of_places(len(numbers), lambda at: Noised(numbers[at], law), None if numbers is column else column)  # type: ignore[arg-type]


def _noised(value: object, law: NoiseLaw) -> object:
    """A selected answer with its law; it may not be a number."""
    return Noised(value, law) if isinstance(value, int | float) and not isinstance(value, bool) else value


def apart(aggregate: object, table: Table | Cube, column: Sequence[object]) -> tuple[str, ...]:
    """The cuts of a selected number: ranks do not count values in the same interval."""
    chosen = len(column) and isinstance(getattr(column[0], "law", None), Selected)
    if not (chosen and isinstance(aggregate, Quantile) and isinstance(table, Table)):
        return ()
    exponent = aggregate.intervals(table).exponent
    return () if exponent is None else (f"values less than {math.ldexp(1, exponent):g} apart",)


@lru_cache(64)
def numbers_of_intervals(cut: Intervals) -> dict[float, float]:
    """The number that represents each of a quantile's intervals, by its start."""
    if cut.exponent is None:
        return {}
    starts = cut.starts
    with np.errstate(over="ignore"):  # near the largest doubles
        numbers = shortest(starts, np.append(starts[1:], np.nextafter(cut.high, np.inf)))
    return dict(zip(starts.tolist(), numbers.tolist(), strict=True))


def shortest(starts: Floats, ends: Floats) -> Floats:
    """The number with the fewest decimal digits in each interval; of several the one that ends in 5, or else the one
    nearest to the middle.

    Intervals contain their start but not their end. If no shorter number is a double, it is the start.
    """
    middles = starts / 2 + ends / 2
    numbers = np.where((starts <= 0) & (ends > 0), 0.0, starts)
    left = numbers != 0
    largest, narrowest = float(np.abs(ends).max()), float((ends - starts).min())
    for place in range(_place(largest), _place(narrowest) - 2, -1):
        step = 10.0 ** abs(place)
        for digit, (at, whole) in itertools.product((5, 1), ((middles, np.round), (starts, np.ceil))):
            number = whole((at / step if place >= 0 else at * step) / digit) * digit
            number = number * step if place >= 0 else number / step
            fits = left & (starts <= number) & (number < ends)
            numbers[fits] = number[fits]
            left &= ~fits
    return numbers


def _place(value: float) -> int:
    """The decimal exponent of a number, 0 for 1 … 9, limited to powers of ten that are doubles."""
    return math.floor(math.log10(min(max(value, 1e-290), 1e300)))


def _terms(layout: Layout, aggregate: int, numbers: Mapping[int, Sequence[Sequence[Noised]]]) -> list[Sequence[Noised]]:
    """The noisy terms of an aggregate, one column each, from the `numbers_of` its purchases."""
    return [numbers[i][j] for i, j in layout.places[aggregate]]


def of_terms(aggregate: agg.Aggregate, table: Table, columns: Sequence[Sequence[float]]) -> Sequence[Any]:
    """The answers of all groups from the noisy terms, one column each: the only term, or an estimate."""
    if not isinstance(aggregate, agg.Estimate):
        return columns[0]
    estimator, many = aggregate.estimator(table), len(columns[0])
    if isinstance(aggregate, CentredSum):  # a sum of noisy numbers with known noise
        middle = float(estimator.answers(0.0, 1.0))

        def shifted(at: int) -> float:
            total, count = columns[0][at], columns[1][at]
            more = calculated(middle * count, "*", (middle, count))
            return calculated(total + more, "+", (total, more))

        return of_places(many, shifted)
    beyond = estimator.answers(*map(as_array, columns))
    values = np.clip(beyond, estimator.low, estimator.high)
    draws = partial(_of_draws, estimator)

    def estimate(at: int) -> float:
        return calculated(values[at], draws, [*(column[at] for column in columns), float(values[at] - beyond[at])])

    return of_places(many, estimate, values)


def _of_draws(estimator: agg.Estimator, *inputs: Any) -> Any:
    """The answers for draws of the terms, alternating `low` and `high` for draws with too few rows.

    The last input is the distance by which the answer was moved into the bounds. Draws are moved by it too: the exact
    answer is within the bounds, and so no further from the moved answer, and no interval is empty.

    If five draws in a hundred have too few rows, the middle 95 % covers all possible answers, as Fieller's interval
    does: a quotient is as uncertain as that, whatever the noise of its numerator.
    """
    *terms, moved = inputs
    shape = np.broadcast_shapes(*map(np.shape, terms))
    few = np.broadcast_to(np.asarray(terms[estimator.count]) < estimator.least, shape)
    either = np.where(np.cumsum(few) % 2, estimator.low, estimator.high).reshape(few.shape)
    return np.where(few, either, np.clip(estimator.answers(*terms) + moved, estimator.low, estimator.high))


def numbers_of(pair: Term | agg.Pair, table: Table, measured: Sequence[Sequence[Noised]]) -> Sequence[Sequence[Noised]]:
    """The noisy terms of all groups: as measured, or the sums and counts from a pair's A and B. Counts of rows are
    rounded to the nearest integer."""
    if not isinstance(pair, agg.Pair):
        return measured
    if not measured[0]:
        return [[], []]
    counted, law = 2.0 ** (pair.total.bits - agg.grid_of(pair.count)) / (2 * pair.step(table)), _law(measured)
    a, b = map(as_array, measured)
    total, count = (a - b) / 2, (a + b) * counted
    return [
        _sums(measured, total, sum_of_two(law, 0.5), (0.5, -0.5)),
        _sums(measured, count if pair.weighted else np.rint(count),
              sum_of_two(law, counted, rounded=not pair.weighted), (counted, counted)),
    ]  # fmt: skip


def _law(measured: Any) -> Any:
    """The law of the noise in a pair's A and B, which were measured together."""
    return measured[0][0].law


def _sums(
    measured: Sequence[Sequence[Noised]], numbers: Floats, law: NoiseLaw, weights: tuple[float, float]
) -> Sequence[Noised]:
    """Weighted sums of two noisy numbers each."""

    def of_pair(at: int) -> Noised:
        pairs = [(one[at].origin, weight) for one, weight in zip(measured, weights, strict=True)]
        return Noised.of(float(numbers[at]), OfTwo(float(numbers[at]), law, pairs))

    return of_places(len(numbers), of_pair, numbers)


def vector(
    kernel: Kernel, cube: Cube, blocks: Sequence[Block], amount: Amount | None, via: str | None, span: Span | None
) -> tuple[Answers, bool]:
    """The answers of a strategy, and whether they are stored ones."""
    request = _StoredRequest.of(kernel, cube, (cube, blocks), amount, via) if amount is not None else None
    measurement = StrategyAnswers.of(cube, blocks, amount, via)
    if request is None:
        return kernel.measure(measurement, span), False
    stored = request.again(kernel, measurement, span)
    if stored is not None:
        numbers = [np.array(part, dtype=float) for part in stored["parts"]]
        return (numbers, ADDITIVE[stored["mechanism"]](stored["scale"], stored.get("step", 0.0))), True
    parts, law = kernel.measure(measurement, span)
    if sum(part.size for part in parts) <= MOST_STORED and law is not None:
        facts = {"mechanism": law.name, "scale": law.scale, "step": law.step}
        request.remember({"parts": [part.tolist() for part in parts], **facts})
    return (parts, law), False


def joint(kernel: Kernel, measurement: JointBlocks, via: str | None, span: Span | None) -> tuple[list[Floats], bool]:
    """The numbers of all blocks, and whether they are stored ones of the same blocks."""
    what = (measurement.table, measurement.axes, measurement.blocks)
    request = _StoredRequest.of(kernel, measurement.table, what, measurement.how.amount, via)
    if request is None:
        return kernel.measure(measurement, span), False
    stored = request.again(kernel, measurement, span)
    if stored is not None:
        shapes = measurement.shapes
        pairs = zip(stored["parts"], shapes, strict=True)
        return [np.array(part, dtype=float).reshape(shape) for part, shape in pairs], True
    parts = kernel.measure(measurement, span)
    if sum(part.size for part in parts) <= MOST_STORED:
        request.remember({"parts": [part.ravel().tolist() for part in parts]})
    return parts, False


class _StoredRequest(Struct, frozen=True):
    """An identifiable request: the k-th of its kind in this run."""

    account: Account
    digest: str

    @classmethod
    def of(
        cls, kernel: Kernel, handle: Handle | None, plan: object, amount: Amount, via: str | None
    ) -> _StoredRequest | None:
        """None unless the request is of one registered dataset and determined by a digest.

        Also None in a run of `best_run`, whose answers and number of requests must not be stored.
        """
        if handle is None or len(handle.exposures) != 1 or kernel.in_a_run:
            return None
        account = handle.exposures[0].source.account
        if not isinstance(account, Account):
            return None
        digested = plan_digest(plan, {account.data: account.name})
        if not digested.closed:
            return None
        facts = [digested.digest, str(amount), via or "", account.version]
        same = digest(facts)
        account.requests[same] = account.requests.get(same, 0) + 1
        return cls(account, digest([*facts, account.requests[same]]))

    def again(self, kernel: Kernel, measurement: Measurement[Any, Any], span: Span | None) -> Any | None:
        """The stored answer, or None. Allotments are charged as for the measurement, and the receipt is recorded."""
        answer = self.account.ledger.answer(self.account.name, self.digest)
        if answer is None:
            return None
        stored, receipt = answer
        kernel.charge_again(measurement.exposures, measurement.price, measurement.title, span)
        self.account.receipts.append(receipt)
        return stored

    def remember(self, answer: object) -> None:
        """Stores the answer. If that fails, the answer is valid, but cannot be returned again."""
        with suppress(Refusal):
            self.account.ledger.remember(self.account.receipts[-1], self.digest, answer)


# Answers as JSON: a noised number keeps its law --------------------------------------------------


def _document(answer: Answer) -> object:
    """The JSON of an answer. Measured numbers are in `sources`, once each, so that shared ones are shared again."""
    places: dict[Source, int] = {}
    values = [[_cell(value, places) for value in column] for column in answer.values]
    keys = [[_cell(key, places) for key in column] for column in answer.keys]
    sources = [[source.value, *facts_of(source.law)] for source in places]
    return {"keys": keys, "values": values, "sources": sources, "pairs": True}


def _cell(value: object, places: dict[Source, int]) -> object:
    if isinstance(value, date):
        return {kind_of_moment(value): number_of(value)}
    if not isinstance(value, Noised):
        return value
    terms = [places.setdefault(source, len(places)) for source in dict.fromkeys(_sources(value.origin))]
    return {"terms": terms} if isinstance(value.origin, Formula) else {"source": terms[0]}


def _sources(origin: object) -> list[Source]:
    """The measured numbers of a calculation, from left to right."""
    if isinstance(origin, Source):
        return [origin]
    return [source for part in getattr(origin, "inputs", ()) for source in _sources(part)]


def _from_json(data: Any, request: Any) -> Answer:
    sources = [Noised(cell[0], law_named(*cell[1:])) for cell in data.get("sources", ())]
    keys = [[_value(key, sources) for key in keys] for keys in data["keys"]]
    layout = Layout.of(request.aggregates, request.table, "pairs" in data)  # earlier versions measured single terms
    return Answer(keys, [_column(cells, place, layout, request, sources) for place, cells in enumerate(data["values"])])


def _column(cells: Sequence[Any], place: int, layout: Layout, request: Any, sources: Sequence[Noised]) -> list[Any]:
    """A column of answers. Values of several measured numbers are computed again."""
    several = [isinstance(cell, dict) and "terms" in cell for cell in cells]
    groups = [
        [sources[term] if isinstance(term, int) else _value(term, sources) for term in cell["terms"]]
        for cell, of in zip(cells, several, strict=True) if of
    ]  # fmt: skip
    again = iter(_aggregate_column(groups, place, layout, request.table) if groups else ())
    return [next(again) if of else _value(cell, sources) for cell, of in zip(cells, several, strict=True)]


def _aggregate_column(groups: Sequence[Sequence[Noised]], place: int, layout: Layout, table: Any) -> Sequence[Any]:
    """The answers of an aggregate in all groups, from the measured numbers of each."""
    numbers = iter(zip(*groups, strict=True))
    bought = {i: layout.bought[i] for i, _ in layout.places[place]}
    terms = {i: numbers_of(one, table, [next(numbers) for _ in agg.terms_of(one)]) for i, one in bought.items()}
    aggregate: Any = layout.aggregates[place]
    return of_terms(aggregate, table, _terms(layout, place, terms))


def _value(cell: object, sources: Sequence[Noised]) -> Any:
    if isinstance(cell, dict) and len(cell) == 1:
        (kind,) = cell
        return sources[cell[kind]] if kind == "source" else moment_of(kind, cell[kind])
    return Noised(cell[0], law_named(*cell[1:])) if isinstance(cell, list) else cell
