"""Rows as vectors, and sums over them: `vectors`, `prepaid`, `noisy_moments`, `noisy_sum`, and scores.

What is summed is a row program, named from the list of `kernels.rowprograms`, with public parameters. A measurement
takes its amount as others do, or a part of what `prepaid(rows)` paid for at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from operator import is_not
from typing import TYPE_CHECKING, Any, TypeVar

from jostle.accounting.amounts import Amount
from jostle.diagnostics import did_you_mean, refuse
from jostle.kernels import Model, members
from jostle.kernels.linear_algebra import on_one_thread
from jostle.lazy import Floats, np
from jostle.plan.facts import bounds_of
from jostle.plan.kinds import as_number, domain_kind, kind_of
from jostle.plan.plan import Apply, Column, Constant, RowExpr
from jostle.privacy.kernel.handles import Table, Vectors
from jostle.privacy.kernel.kernel import Kernel
from jostle.privacy.mechanisms.additive import Additive
from jostle.privacy.reading.minting import row_vectors
from jostle.privacy.scores import Score
from jostle.run.arguments import amount_for, need_table, score_or_number
from jostle.run.evaluator import At, Evaluator, Value, builtin
from jostle.run.externals import records_of
from jostle.run.faults import refuse_private
from jostle.run.publictables import item_compilers
from jostle.run.rows import RowCompiler
from jostle.run.scope import Qualifiers, Scope
from jostle.run.values import Interval, Record, handles_in, is_number, is_sequence, is_vector, kind_name
from jostle.source import Span
from jostle.syntax import nodes as n

if TYPE_CHECKING:
    from jostle.kernels.arrays import Column as Term
    from jostle.kernels.rowprograms.losses import Weights as Weighted
    from jostle.privacy.kernel.prepaid import Prepaid
    from jostle.privacy.rows.norms import Weights

MOST_COLUMNS = 2**11

F = TypeVar("F")


@builtin
def _vectors(interp: Evaluator, node: n.Call, scope: Scope) -> Vectors:
    """`vectors(people, age, hours, radius = 1)`: numeric columns of a table as the coordinates of a vector.

    A column is scaled by its described bounds to [−1, 1], or taken as it is with `scaled = false`. Rows are clipped to
    `radius` in the Euclidean norm, or with `norm = "sup"` in the largest coordinate; left out, the radius is what the
    scaled columns can reach. Rows with a value that is none are left out. Without columns: all numeric ones.
    `vectors(rows, low = -1, high = 1)` makes public vectors of public rows of numbers.
    """
    if not node.args:
        raise refuse("TypeError", "`vectors` takes a table first", node.span)
    table = interp.eval(node.args[0], scope)
    options = {k.name: interp.eval(k.value, scope) for k in node.keywords}
    if options.keys() - {"radius", "scaled", "norm", "low", "high"} or handles_in(list(options.values())):
        raise refuse("TypeError", "`vectors` takes `radius`, `scaled` and `norm`, all public", node.span)
    if is_vector(table) or isinstance(table, list):
        table = _listed(interp, table, options, node)
    table = need_table(table, "vectors", node.args[0].span)
    if table.weighted:
        raise refuse("TypeError", "vectors of a weighted source cannot be summed", node.span, help="`up to k rows`")
    tables = Qualifiers(node.args[0], table.domains)
    compiler = RowCompiler(table.domains, interp, scope, tables)
    pairs = _named_columns(interp, node, table, compiler, scope)
    scaled, norm = options.get("scaled", True), options.get("norm", "l2")
    if norm not in ("l2", "sup") or not isinstance(scaled, bool):
        raise refuse("TypeError", '`norm` is "l2" or "sup", and `scaled` is true or false', node.span)
    places = [_place(table, expr, name, scaled) for expr, name in pairs]
    longest = math.sqrt(len(pairs)) if norm == "l2" else 1.0
    radius = _radius(options.get("radius", longest if scaled else None), node)
    coordinates = [
        (name, _scaled(expr, centre, scale), centre, scale)
        for (expr, name), (centre, scale) in zip(pairs, places, strict=True)
    ]
    return row_vectors(table, coordinates, min(radius, longest) if scaled else radius, norm)


def _named_columns(
    interp: Evaluator, node: n.Call, table: Table, compiler: RowCompiler, scope: Scope
) -> list[tuple[RowExpr, str]]:
    """The columns that are written, or all numeric ones, with their names."""
    pairs = [pair for arg in node.args[1:] for pair in _columns_at(interp, arg, table, scope, compiler)]
    named = [(as_number(expr, table.domains), name or f"column {i + 1}") for i, (expr, name) in enumerate(pairs)]
    if not named:
        named = [(Column(name), name) for name, domain in table.schema if domain_kind(domain) == "number"]
    if not 1 <= len(named) <= MOST_COLUMNS:
        raise refuse("ValueError", f"vectors have 1 to {MOST_COLUMNS} coordinates", node.span)
    return named


def _radius(value: object, node: n.Call) -> float:
    radius = float(value) if value is not None and is_number(value) else math.nan
    if not 1e-100 < radius < 1e100:
        raise refuse("ValueError", "a radius is a positive number", node.span, help="`radius = 1`: in scaled units")
    return radius


def _columns_at(interp: Evaluator, node: n.Expr, table: Table, scope: Scope, compiler: RowCompiler) -> list[Value]:
    """Columns, or expressions on rows; a comprehension gives one for each of its items."""
    if isinstance(node, n.Comprehension) and node.kind == "list" and not node.flat:
        inner = item_compilers(interp, node, table, scope)
        return [pair for each in inner for pair in each.columns_at(node.item)]
    return compiler.columns_at(node)


def _listed(interp: Evaluator, rows: object, options: dict[str, object], node: n.Call) -> object:
    """Rows of public numbers as a public table of columns x1, x2, … within `low` and `high`."""
    from jostle.run.declare import open_public

    low, high = options.get("low", -1.0), options.get("high", 1.0)
    try:
        array = np.asarray(rows, dtype=float)
    except (TypeError, ValueError):
        array = np.empty(0)
    if array.ndim != 2 or not array.size or not (is_number(low) and is_number(high) and low < high):
        raise refuse("TypeError", "public rows are lists of numbers of one length, within `low` and `high`", node.span)
    columns = {f"x{i + 1}": np.ascontiguousarray(array[:, i]) for i in range(array.shape[1])}
    domains = Record((name, Interval(float(low), float(high), True)) for name in columns)
    return open_public(interp, columns, domains, node.span)


def _place(table: Table, expr: RowExpr, name: str, scaled: bool) -> tuple[float, float]:
    """Centre and half-width of a column, from its public bounds."""
    if kind_of(expr, table.domains) != "number":
        raise refuse("TypeError", f"`{name}` is no number, and a vector is made of numbers")
    if not scaled:
        return 0.0, 1.0
    bounds = bounds_of(expr, table.domains)
    if bounds is None:
        raise refuse(
            "UnboundedSum", f"the bounds of `{name}` are not known",
            help="describe it with a range, clamp it, or say `scaled = false`",
        )  # fmt: skip
    low, high = bounds
    return (low + high) / 2, (high - low) / 2 or 1.0


def _scaled(expr: RowExpr, centre: float, scale: float) -> RowExpr:
    if (centre, scale) == (0.0, 1.0):
        return expr
    centred = Apply("-", (expr, Constant(centre))) if centre else expr
    return Apply("/", (centred, Constant(scale)))


# Measuring -----------------------------------------------------------------------------------------


@builtin
def _prepaid(
    rows: Value, *, steps: Value = None, rate: Value = None, epsilon: Value = None, delta: Value = None,
    via: str | None = None, at: At,
) -> object:  # fmt: skip
    """Pays at once for several measurements of `rows`, each of which takes a `part`; all that is left, unless said.

    With `steps`, for so many noisy sums of secret samples, each of which keeps a row with probability `rate`. Of a list
    of batches, parts of one table, for so many noisy sums of one after the other, round and round; their noise is
    correlated, so that sums over many steps are near.
    """
    interp, span = at
    if is_sequence(rows):
        return _prepaid_steps(at, rows, steps, rate, epsilon, delta, via)
    _need(rows, "prepaid")
    if steps is None and rate is None:
        with amount_for(interp, rows, span, epsilon, delta) as amount:
            return PrepaidBudget(interp.kernel, _bought(interp, rows, amount, via, span))
    whole = is_number(steps) and float(steps).is_integer()
    if not whole or not (rate is None or is_number(rate)) or via is not None:
        raise refuse("TypeError", "samples take a whole number of `steps` and a `rate`, and have Gaussian noise")
    from jostle.accounting.composition import rate_for
    from jostle.privacy.measurements.subsampled_batches import PrepaidSamples

    with amount_for(interp, rows, span, epsilon, delta) as amount:
        if not rows.private:
            return PrepaidBudget(interp.kernel, None)
        purchase = PrepaidSamples.sampled(rows, rate_for if rate is None else float(rate), int(steps), amount)
        return PrepaidBudget(interp.kernel, interp.kernel.measure(purchase, span))


def _prepaid_steps(
    at: At, items: Sequence[object], steps: object, rate: object, epsilon: object, delta: object, via: str | None
) -> object:
    from jostle.privacy.measurements.vectors import MOST_STEPS, PrepaidSteps

    interp, span = at
    for rows in items:
        _need(rows, "prepaid")
    batches = tuple(rows for rows in items if isinstance(rows, Vectors))
    private = {rows.private for rows in batches}
    if len(private) != 1:
        raise refuse("TypeError", "batches are rows of one table", help="make them by `split_rows(people, 10)`")
    if not is_number(steps) or not 1 <= steps <= MOST_STEPS or not float(steps).is_integer():
        raise refuse("ValueError", f"batches take a number of `steps`, 1 to {MOST_STEPS:,}", help="`steps = 200`")
    if rate is not None or via not in (None, "gaussian"):
        raise refuse("TypeError", "batches take no `rate`, and have Gaussian noise", help="leave it out")
    if private == {False}:
        return PrepaidBudget(interp.kernel, None, batches, int(steps))
    with amount_for(interp, batches, span, epsilon, delta) as amount:
        purchase = PrepaidSteps.by_turns(batches, int(steps), amount)
        return PrepaidBudget(interp.kernel, interp.kernel.measure(purchase, span), batches, int(steps))


class PrepaidBudget(Model):
    """What a program holds of a `Prepaid`, whose balance the kernel keeps; of public rows there is nothing to pay."""

    jostle_kind = "what was paid for at once"
    jostle_members = members("noise mechanism left rate")

    def __init__(self, kernel: Kernel, paid: Prepaid | None, batches: tuple[Vectors, ...] = (), steps: int = 0) -> None:
        self._kernel, self.paid, self.batches = kernel, paid, batches
        self._turn, self._size = 0, 0
        self._estimates = Estimates(steps, len(batches)) if batches and paid is not None else None

    def batch(self, rows: Sequence[object], size: int) -> Vectors:
        """The batch whose turn it is, if these are the batches that were paid for."""
        of_run = self.paid is None and self._kernel.in_a_run  # whose turn it is next would tell of the run
        if of_run or not self.batches or len(rows) != len(self.batches) or any(map(is_not, rows, self.batches)):
            raise refuse("TypeError", "these are not the batches that were paid for", help="`prepaid(batches, …)`")
        if self._turn and size != self._size:
            raise refuse("TypeError", f"each step has as many numbers as the first, {self._size}, and this has {size}")
        return self.batches[self._turn % len(self.batches)]

    def estimate(self, total: Floats, noise: float, bound: float) -> dict[str, object]:
        """The sum of one step, of what was released up to it."""
        self._turn, self._size = self._turn + 1, len(total)
        if self._estimates is not None:
            numbers, wider = self._estimates.next(total / bound)
            total, noise = numbers * bound, noise * wider
        return {"sum": total, "noise": noise}

    @property
    def noise(self) -> float:
        """The deviation of a release of sensitivity 1 that takes all that was paid for, or one step of samples."""
        return 0.0 if self.paid is None else self.paid.how.kind(1 / self.paid.strength).deviation

    @property
    def mechanism(self) -> str:
        return "none" if self.paid is None else self.paid.how.mechanism

    @property
    def left(self) -> float:
        """The share of what was paid for that is left."""
        return 1.0 if self.paid is None else self._kernel.share_left(self.paid)

    @property
    def rate(self) -> float:
        """The share of the rows that a sample keeps."""
        return float(getattr(self.paid, "rate", 1.0))

    def as_json(self) -> object:
        return self.jostle_fields

    def __str__(self) -> str:
        return f"paid for at once: {self.paid.how.amount}" if self.paid is not None else "nothing to pay"


class Estimates:
    """The sums of the steps, M⁻¹y, one after the other: M is L·D, L the same along each diagonal."""

    def __init__(self, steps: int, batches: int) -> None:
        from jostle.privacy.measurements.running import Roots
        from jostle.run.answers import inverse

        matrix = Roots(steps, batches)
        self._lags = matrix.lags[:batches] / matrix.lags[0]
        self._units = np.ldexp(matrix.scales * float(matrix.lags[0]), -matrix.bits)
        self._wider = np.sqrt(np.cumsum(inverse(matrix) ** 2)) / self._units
        self._last: list[Floats] = []
        self._step = 0

    def next(self, y: Floats) -> tuple[Floats, float]:
        """The estimate of the next step's sum, and how much larger its noise is than that of `y`."""
        step, sums = self._step, y.astype(float)
        for lag in range(1, min(step, len(self._lags) - 1) + 1):
            sums = sums - self._lags[lag] * self._last[-lag]
        self._step, self._last = step + 1, [*self._last, sums][-len(self._lags) :]
        return sums / self._units[step], float(self._wider[step])


def _bought(
    interp: Evaluator, rows: Vectors, amount: Amount | None, via: str | None, span: Span | None,
    single: tuple[float, float] | None = None,
) -> Prepaid | None:  # fmt: skip
    if amount is None:
        return None
    from jostle.privacy.kernel.prepaid import Prepayment

    purchase = Prepayment.of(rows, amount, via)
    if single is not None:  # the smaller noise of one measurement with these sensitivities
        purchase = Prepayment.by(rows, Additive.fitted(amount, via, rows.measures, *single), True)
    prepaid: Prepaid = interp.kernel.measure(purchase, span)
    return prepaid


def _payment(
    at: At, rows: Vectors, paid: object, epsilon: object, delta: object, via: str | None, single: tuple[float, float]
) -> Prepaid | None:
    """`single`: the sensitivities of a measurement that pays for itself, by which its noise is chosen."""
    interp, span = at
    if paid is None:
        with amount_for(interp, rows, span, epsilon, delta) as amount:
            return _bought(interp, rows, amount, via, span, single)
    if not isinstance(paid, PrepaidBudget) or epsilon is not None:
        raise refuse("TypeError", "`paid` is what `prepaid(rows)` gave, and takes the place of an amount")
    if rows.private and paid.paid is None:
        raise refuse("TypeError", "this was paid for public data", help="`prepaid(rows)` of the same rows")
    return paid.paid if rows.private else None


def _reach_of_all(rows: Vectors, weights: Weights, shares: Sequence[float]) -> tuple[float, float]:
    """ℓ₁ and ℓ₂ sensitivities by which one noise is chosen for all blocks: geometric means of those of each alone."""
    from jostle.privacy.measurements.vectors import sensitivities

    if not rows.private:
        return 1.0, 1.0
    blocks = zip(shares, sensitivities(rows, weights, len(shares)), strict=True)
    parts = [(share / math.fsum(shares), l1, l2) for share, (l1, l2) in blocks if share]
    logs = [(math.log(l1 / share), math.log(l2) - math.log(share) / 2) for share, l1, l2 in parts]
    first, second = (math.exp(math.fsum(column) / len(logs)) for column in zip(*logs, strict=True))
    return first, second


@builtin
def _noisy_moments(
    rows: Value, weights: Value = "one", parameters: Value = None, *, shares: Value = (1.0, 1.0, 9.0),
    paid: Value = None, part: object = 1.0, epsilon: Value = None, delta: Value = None, via: str | None = None, at: At,
) -> Record:  # fmt: skip
    """Noisy Σγ_k, Σγ_k x and Σγ_k xxᵀ over rows, γ the weights of a row kernel, in units of the radius.

    `shares`, one for each that is wanted (0: not this one), say how the noise is shared out. A record of `count` (K),
    `first` (K, d), `second` (K, d, d), of the deviations of the noise: `count_noise`, `first_noise`, `second_noise` (on
    the diagonal; off it of Gaussian noise over √2), and of its `mechanism`: the smaller noise of an (ε, δ) or ρ.
    """
    from jostle.kernels.rowprograms import WEIGHTS
    from jostle.privacy.measurements.vectors import Moments, check_moments

    _need(rows, "noisy_moments")
    interp, span = at
    split = [float(s) for s in shares] if is_sequence(shares) and all(is_number(s) for s in shares) else []
    if not 1 <= len(split) <= 3 or not all(0 <= s < 1e9 for s in split) or not sum(split) > 0:
        raise refuse("ValueError", "`shares` are one to three numbers from 0 on", help="`shares = [1, 1, 9]`")
    if any(0 < s < 1e-9 for s in split):
        raise refuse("ValueError", "a share is 0, or at least 1e-9", help="`shares = [1, 1, 9]`")
    function = _row_function(rows, weights, parameters, WEIGHTS)
    check_moments(rows, function, len(split))
    share = _part(part)
    paying = _payment(at, rows, paid, epsilon, delta, via, _reach_of_all(rows, function, split))
    measure = on_one_thread(interp.kernel.measure)  # many small products
    released = measure(Moments.of(rows, function, split, paying, share), span)
    return Record(released)


@builtin
def _noisy_sum(
    rows: Value, given: Value, parameters: Value = None, *, bound: object = 1.0, norm: Value = "l2", paid: Value = None,
    part: object = 1.0, epsilon: Value = None, delta: Value = None, via: str | None = None, at: At,
) -> Record:  # fmt: skip
    """The noisy sum of what a row kernel gives for each row, clipped to a norm (`l1`, `l2`, `sup`) of `bound`.

    A record of `sum`, `noise`, the deviation of each coordinate's noise, and its `mechanism`.
    """
    from jostle.kernels.rowprograms import CONTRIBUTIONS
    from jostle.privacy.measurements.vectors import VectorSum, reaches

    interp, span = at
    batches = rows if is_sequence(rows) else None
    if batches is not None:
        rows = _first_batch(batches, paid)
    _need(rows, "noisy_sum")
    function = _row_function(rows, given, parameters, CONTRIBUTIONS)
    if not isinstance(norm, str):
        raise refuse("TypeError", f"`norm` is a text, not {kind_name(norm)}", help='`"l1"`, `"l2"` or `"sup"`')
    share, most = _part(part), _bound(bound, norm)
    if batches is not None:
        rows = paid.batch(batches, function.size)
    elif isinstance(paid, PrepaidBudget) and paid.batches:
        raise refuse("TypeError", "this was paid for batches in turn", help="`noisy_sum(batches, …, paid = paid)`")
    paying = _payment(at, rows, paid, epsilon, delta, via, reaches(function.size, norm))
    released = interp.kernel.measure(VectorSum.of(rows, function, most, norm, paying, share), span)
    own = {} if batches is None else paid.estimate(released["sum"], released["noise"], most)
    return Record(released | own)


def _first_batch(batches: Sequence[object], paid: object) -> object:
    if not isinstance(paid, PrepaidBudget):
        raise refuse("TypeError", "a sum of batches in turn is one of several steps", help="`prepaid(batches, …)`")
    return batches[0] if batches else None


@builtin
def _coordinate_scores(rows: Value, given: Value, parameters: Value = None, *, bound: Value = 1.0, at: At) -> object:
    """The coordinates of such a sum as scores, then their negatives: for `noisy_max` and `exp_mech`."""
    from jostle.kernels.rowprograms import CONTRIBUTIONS, GRADIENTS
    from jostle.privacy.scores import vectorsums

    _need(rows, "coordinate_scores")
    builders: dict[str, Callable[..., Any]] = {**GRADIENTS, **CONTRIBUTIONS}
    function = _row_function(rows, given, parameters, builders)
    return vectorsums.coordinate_scores(rows, function, _bound(bound))


@builtin
def _row_score(
    rows: Value, given: Value, parameters: Value = None, *, bound: Value = 1.0, at: At
) -> Score | float | list[float]:
    """The sum of the one number that a row kernel gives, in multiples of `bound`: a score; of public rows, a number."""
    from jostle.kernels.rowprograms import CONTRIBUTIONS
    from jostle.privacy.scores import vectorsums

    _need(rows, "row_score")
    interp, span = at
    score = vectorsums.row_total(rows, _row_function(rows, given, parameters, CONTRIBUTIONS), _bound(bound))
    return score_or_number(interp, score, span)


@builtin
def _loss_points(start: Weighted, terms: Sequence[Term]) -> object:
    """Records of `weights` and a `row`, numbers that remember what is calculated of them, to call a loss with."""
    from jostle.kernels.rowprograms.losses import loss_points

    return records_of(loss_points(start, terms))


@builtin
def _in_shape(start: Weighted, weights: Sequence[float]) -> object:
    """Numbers in the lists and records of `start`."""
    from jostle.kernels.rowprograms.losses import in_shape

    return records_of(in_shape(start, weights))


@builtin
def _loss_of(values: Sequence[float], start: Weighted, terms: Sequence[Term]) -> object:
    """The loss that a program's function gave at the points of `loss_points`, as these numbers remember it."""
    from jostle.kernels.rowprograms.losses import loss_of

    for value in values:
        if not is_number(value):
            help = "`def loss(w, row) = (row.income - w.base - w.slope * row.age)^2`"
            raise refuse("TypeError", f"a loss is a number, and this one gave {kind_name(value)}", help=help)
    return loss_of(values, start, terms)


def _need(rows: object, what: str) -> None:
    if not isinstance(rows, Vectors):
        raise refuse(
            "TypeError", f"`{what}` takes rows as vectors, not {kind_name(rows)}",
            help="make them: `vectors(people, age, hours)`",
        )  # fmt: skip


def _row_function(rows: Vectors, name: object, parameters: object, builders: Mapping[str, Callable[..., F]]) -> F:
    """What a builder makes of public parameters for rows of so many columns; refused where they do not fit."""
    if not isinstance(name, str):
        raise refuse("TypeError", f"a row kernel is named by a text, not by {kind_name(name)}")
    public, d = _parameters(parameters), len(rows.names)
    if name not in builders:
        hint = did_you_mean(name, builders) or f"the kernels are {', '.join(builders)}"
        raise refuse("NameError", f"there is no row kernel `{name}` here", help=hint)
    try:
        return builders[name](d, **public)
    except (ValueError, TypeError, OverflowError) as error:
        help = str(error) if isinstance(error, ValueError) else ""
        raise refuse("ValueError", f"`{name}` cannot work with these parameters on {d} columns", help=help) from None


def _parameters(value: object) -> dict[str, object]:
    refuse_private(value, "cannot be a parameter")
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise refuse("TypeError", f"parameters are a record, not {kind_name(value)}")
    return dict(value)


def _part(value: object) -> float:
    if not is_number(value):
        raise refuse("TypeError", f"`part` is a number, not {kind_name(value)}")
    if not 0 < value <= 1:
        raise refuse("ValueError", "a share of what was paid for is above 0 and at most 1")
    return float(value)


def _bound(value: object, norm: str = "sup") -> float:
    if not is_number(value):
        raise refuse("TypeError", f"`bound` is a number, not {kind_name(value)}")
    from jostle.privacy.scores.vectorsums import check_bound

    check_bound(float(value), norm)
    return float(value)
