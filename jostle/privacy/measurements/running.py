"""Running counts and sums: `select count(*) from visits groupby running(day, until = today), page`.

Each group has all rows up to its step. The steps are released one by one, in one run or in several, for one amount that
is charged with the first. The release is M·x + noise for a public matrix M of integers, where x is the term by steps
and other groups. Nothing is released twice with new noise: the ledger stores the releases. k rows change the whole by
at most kΔ times a column of M, whatever happens to them between runs (docs/privacy/streams.md, after Denisov, McMahan,
Rush, Smith, Thakurta 2022).

* `Roots`, for Gaussian noise: one row per step, M[t, s] = c[t − s]·d[s], where c are the coefficients of (1 − x)^(−½)
  (Fichtenberger, Henzinger, Upadhyay 2023), and d[s] gives all columns the same norm. Both are rounded to a grid, and
  decoded as rounded. The root mean squared error is within 1.02 of the least of any matrix.
* `Tree`, for Laplace noise: one row for each interval of 2^l steps that ends at a multiple of 2^l (Dwork, Naor,
  Pitassi, Rothblum 2010; Chan, Shi, Song 2011).

The entries of a column are at least 0, do not grow with t after the first, and do not fall with s. `norms` are the
largest ℓ₁ norm and ℓ₂ norm of a column of the integers themselves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from jostle.accounting.amounts import Amount
from jostle.diagnostics import Refusal, refuse
from jostle.integers import LIMIT, fixed_width
from jostle.lazy import Floats, Ints, np
from jostle.noise_laws import Gaussian, Laplace
from jostle.plan import plan as p
from jostle.plan.digest import plan_digest
from jostle.plan.schemas import schema_of
from jostle.privacy.kernel.measurement import LinearMeasurement, Measured, stability_of
from jostle.privacy.ledger.ledger import Account
from jostle.privacy.measurements.aggregates.aggregate import (
    AdditiveAggregate,
    Aggregate,
    grid_of,
    reach_of,
    sensitivity_of,
)
from jostle.privacy.measurements.aggregates.sums import Count, Sum
from jostle.privacy.measurements.selects import Layout, Request
from jostle.privacy.mechanisms.additive import Additive, Linear
from jostle.records import replace

if TYPE_CHECKING:
    from jostle.privacy.reading.vault import Reader


MOST_NUMBERS = 2**14
"""The largest number of values at one step, which the ledger stores together."""
SUM_BITS = 18
"""The largest number of bits of a sum's grid, which leaves room for the bits of the matrix."""
FINER = 5
"""The rounding of all steps' sums together is at most 2^-FINER of the noise."""


class Steps(Struct, frozen=True):
    """The steps of a stream: the index of the running key among the keys (`place`), the number of its `steps`, and the
    number that is answered, `until`."""

    place: int
    steps: int
    until: int
    others: tuple[int, ...]
    """The sizes of the other keys, in order."""

    @property
    def groups(self) -> int:
        return math.prod(self.others)


class RunningNumbers(Struct, frozen=True):
    """The releases up to `steps.until`: for each term an array, with one row per row of the matrix, and the law of its
    noise."""

    request: Request
    steps: Steps
    layout: Layout
    matrix: Roots | Tree
    measured: list[tuple[Floats, Laplace | Gaussian]]


@dataclass(frozen=True, eq=False)
class RunningSelect(LinearMeasurement[RunningNumbers]):
    """The steps of a stream after `released`. Earlier ones are read from the ledger, where the key is `stream`."""

    request: Request
    steps: Steps
    layout: Layout
    terms: tuple[p.Term, ...]
    matrix: Roots | Tree
    stream: str
    released: int

    @classmethod
    def of(cls, request: Request, amount: Amount, via: str | None) -> RunningSelect:
        steps, table = steps_of(request), request.table
        account = table.exposures[0].source.account
        if len(table.exposures) > 1:
            raise refuse("TypeError", "running answers are of one private source", help="leave the join out")
        if account is not None:
            need_stable(table.plan, request.keys[steps.place], table.exposures[0].unit.columns)
        layout = Layout.of(request.aggregates, table, False)
        how = Additive.of(amount, via, table.measures)
        matrix = matrix_of(steps.steps, how.kind is Gaussian)
        numbers = steps.groups * len(layout.bought) * matrix.most_rows
        if numbers > MOST_NUMBERS:
            message = f"{numbers:,} numbers at each step are too many"
            raise refuse("ValueError", message, help=f"at most {MOST_NUMBERS:,}: group more coarsely")

        def noisy(term: p.Term) -> Linear:
            (l1, l2), (reach, _) = matrix.norms, reach_of(term, table, False)
            one = Linear.of(how, reach * l1, reach * l2, grid_of(term) + matrix.bits)
            return one.part((1 - 2.0**-40) / len(layout.bought))

        terms: tuple[p.Term, ...] = layout.bought  # type: ignore[assignment]
        if matrix.bits:
            terms = tuple(_coarser(term, noisy(term).law.smooth.deviation / steps.steps) for term in terms)
        stream, exposures = "", table.exposures
        if isinstance(account, Account):
            facts = (table, request.keys, steps.place, terms, str(amount), how.mechanism, matrix.bits)
            digested = plan_digest(facts, {account.data: account.name})
            if not digested.closed:
                message = "running answers of a registered dataset go on in later runs, and are of it alone"
                raise refuse("TypeError", message, help="leave the join with other data out")
            stream, each = digested.digest, account.dataset.terms.each  # rows do not leave these parts between runs
            exposures = tuple(replace(e, path=account.counted(e.path) if each else ()) for e in exposures)
        measured = (request, steps, layout, terms, matrix, stream, 0)
        return cls(exposures, _title(request, steps, 0), how, tuple(map(noisy, terms)), *measured, subject=request)

    @property
    def account(self) -> Account | None:
        """The ledger account of a stream that continues in later runs; None if it is measured once."""
        account = self.exposures[0].source.account
        return account if isinstance(account, Account) and self.stream else None

    def going_on(self) -> RunningSelect:
        """The measurement of the steps that the ledger does not have yet."""
        parts = self.account.released_steps(self.stream) if self.account is not None else []
        released = parts[-1]["until"] if parts else 0
        return replace(self, released=released, title=_title(self.request, self.steps, released))

    def was_paid(self) -> bool:
        return self.released > 0

    def read(self, reader: Reader) -> list[Ints]:
        place, until = self.steps.place, self.steps.until
        keys = list(self.request.keys)
        keys[place] = p.Key(keys[place].expr, keys[place].values[:until])
        pairs = zip(self.terms, self.layout.bought, strict=True)
        fine = tuple(coarse if coarse.weighted else term for coarse, term in pairs)  # of rows; a step's sum is rounded
        exact = reader.answers.group(self.request.table.plan, tuple(keys), fine)  # type: ignore[arg-type]
        rows = self.matrix.matrix(self.released, until)
        widest = int(rows.sum(axis=1).max(initial=1))
        vectors = []
        for numbers, term, one in zip(exact, self.terms, fine, strict=True):
            shape = [len(key.values) for key in keys]
            cells = np.moveaxis(np.asarray(numbers).reshape(shape), place, 0).reshape(until, -1)
            narrow = _rounded(fixed_width(cells, LIMIT), grid_of(one) - grid_of(term))
            if int(np.abs(narrow).max(initial=0)) <= LIMIT // widest:
                vectors.append(rows @ narrow)
            else:  # in Python integers, which Linear clamps to 64 bits
                vectors.append(rows.astype(object) @ narrow.astype(object))
        return vectors

    def measured(self) -> tuple[Measured, ...]:
        stability, table = stability_of(self.request.table), self.request.table
        return tuple(
            Measured(name, one.law, self.how, math.ldexp(sensitivity_of(term, table), -grid_of(term)), stability)
            for name, one, term in zip(self._names, self.linear, self.terms, strict=True)
        )

    @property
    def _names(self) -> list[str]:
        """The name of each term: its first aggregate."""
        pairs = zip(self.layout.aggregates, self.layout.places, strict=True)
        of = {places[0][0]: aggregate.name for aggregate, places in reversed(list(pairs))}
        return [f"running {of[term]}" for term in range(len(self.terms))]

    def finish(self, released: list[Floats]) -> RunningNumbers:
        """All releases so far. What the ledger does not store is not returned, since it would be drawn again."""
        if self.account is None:
            return self.numbers(released)
        parts = [part.reshape(-1, self.steps.groups) for part in released]
        numbers = self.steps.groups * len(parts) * self.matrix.most_rows
        first, each = self.released, 2 * MOST_NUMBERS // numbers
        while first < self.steps.until:
            until = min(self.steps.until, first + each)
            low, high = (self.matrix.rows_up_to(at) - self.matrix.rows_up_to(self.released) for at in (first, until))
            self.account.keep_steps(self.stream, first, until, [part[low:high].tolist() for part in parts])
            first = until
        return self.again()

    def again(self) -> RunningNumbers:
        """The steps up to `until` from the ledger, which are the same for every session."""
        account = self.account
        parts = account.released_steps(self.stream) if account is not None else []
        if not parts or parts[-1]["until"] < self.steps.until:
            raise refuse("LedgerError", "the ledger does not hold the steps of a stream", help="run it again")
        rows = self.matrix.rows_up_to(self.steps.until)
        columns = zip(*(part["numbers"] for part in parts), strict=True)
        return self.numbers(
            [np.concatenate([np.array(one, dtype=float) for one in column])[:rows] for column in columns]
        )

    def numbers(self, parts: Sequence[Floats]) -> RunningNumbers:
        measured = [
            (part.reshape(-1, self.steps.groups), one.law) for part, one in zip(parts, self.linear, strict=True)
        ]
        return RunningNumbers(self.request, self.steps, self.layout, self.matrix, measured)


def _title(request: Request, steps: Steps, released: int) -> str:
    before = ", paid before" if released else ""
    return f"running {request.title}, steps {released + 1} to {steps.until}{before}"


def steps_of(request: Request) -> Steps:
    """The steps of a request with a running key. Refuses requests that cannot have one."""
    places = [at for at, key in enumerate(request.group_keys) if key.running is not None]
    if len(places) > 1 or any(key.names for key in request.group_keys) or request.open_keys:
        message = "running answers have one running key, and other keys with listed values"
        raise refuse("TypeError", message, help="write `groupby running(day), page`, each with public values")
    (place,) = places
    for aggregate in request.aggregates:
        need_sums(aggregate)
    if request.table.weighted:
        raise refuse("TypeError", "running answers are of whole rows, and these have weights")
    values = request.keys[place].values
    if not 0 < len(values) <= MOST_STEPS:
        raise refuse(
            "ValueError", f"{len(values):,} steps are too many", help=f"at most {MOST_STEPS:,}: use larger ones"
        )
    until = steps_until(request.group_keys[place].running, values, request.group_keys[place].name)
    others = tuple(len(key.values) for at, key in enumerate(request.keys) if at != place)
    return Steps(place, len(values), until, others)


def need_sums(aggregate: Aggregate) -> None:
    if type(aggregate) not in (Count, Sum) or not isinstance(aggregate, AdditiveAggregate):
        help = "a mean of x is `sum(x) / count(x)`"
        raise refuse("TypeError", f"running answers are counts and sums, and this is `{aggregate.name}`", help=help)


def steps_until(until: Any, values: Sequence[Any], name: str) -> int:
    """The number of steps to answer, by default all."""
    if until is ...:
        return len(values)
    if isinstance(until, float) and until.is_integer():
        until = int(until)
    if until not in values:
        help = f"it is one of the steps from {values[0]} to {values[-1]}"
        raise refuse("ValueError", f"`until` is no value of `{name}`", help=help)
    return values.index(until) + 1


# What rows may do between runs --------------------------------------------------------------------


def need_stable(plan: p.Plan, key: p.Key, unit: Sequence[str]) -> None:
    """Refuses tables in which an added row may change what others contribute at another step. Uses the plan alone.

    If the step follows from the columns of the protected unit, all rows of a unit are at one step, and it does not
    matter which are kept. Otherwise a bound on a person's rows must keep those of the first steps, in the order of the
    listed steps.
    """
    step, own, rising = key.expr, p.names_in([key.expr]), [*key.values] == sorted(key.values)
    waiting = [(plan, True)]
    while waiting:
        here, same = waiting.pop()  # `same`: whether the step is the same expression here
        one_step = same and own <= {*unit} & {*schema_of(here)}
        if isinstance(here, p.Truncate):
            first = same and (here.order, here.descending, here.keys) == (step, False, ())
            if not (one_step or (first and rising)):
                raise _not_stable(step, first)
        elif isinstance(here, p.Bound):
            if here.owners is not None:
                raise _of_several()
            if here.most is not None and not one_step:
                raise _not_stable(step)
        elif isinstance(here, p.Derive):
            columns = dict(here.columns)
            same = same and all(columns.get(name) == p.Column(name) for name in own)
        elif not (isinstance(here, p.Filter | p.Scan | p.Known | p.Listed | p.Union) or _of_all_pairs(here)):
            raise _of_several()
        waiting += [(one, same and not own & _hidden(here, one)) for one in p.inputs(here)]


def _hidden(plan: p.Plan, part: p.Plan) -> frozenset[str]:
    """The columns of a plan that do not come from `part`: columns of both sides of a join come from the left."""
    return frozenset(schema_of(plan.left)) if isinstance(plan, p.Join) and part is plan.right else frozenset()


def _of_all_pairs(plan: p.Plan) -> bool:
    """Whether a plan is a join with public rows that keeps all pairs, so that rows do not affect each other."""
    return isinstance(plan, p.Join) and plan.most is None and not plan.person and plan.kind == "inner"


def _of_several() -> Refusal:
    return refuse(
        "TypeError", "running answers are of rows as they come, and here several rows make one",
        help="leave the join, or the rows of persons, out",
    )  # fmt: skip


def _not_stable(step: p.RowExpr, first: bool = False) -> Refusal:
    name = step.name if isinstance(step, p.Column) else "the step"
    way = "list the steps in order, smaller ones first" if first else f"read the first ones, `up to 3 rows by {name}`"
    return refuse(
        "TypeError", "which rows of a person are read may change from run to run",
        help=f"{way}; or register the data protecting a person at a step",
    )  # fmt: skip


def _coarser(term: p.Term, noise: float) -> p.Term:
    """The term on the grid of a step's sums, to which noise of this deviation is added.

    Sums are rounded, not rows, since the rounding of many rows would add up.
    """
    most = max(abs(term.low), abs(term.high)) if isinstance(term, p.FixedSum) else 0.0
    if not most or not isinstance(term, p.FixedSum):
        return term
    enough = term.bits if term.weighted else FINER - math.floor(math.log2(noise))
    return replace(term, bits=min(term.bits, enough, SUM_BITS - math.frexp(most)[1] if term.bits > 0 else 0))


def _rounded(sums: Ints, bits: int) -> Ints:
    """Sums in units that are 2^`bits` times as large. A change of a sum by d becomes at most ⌈d/2^bits⌉."""
    return (sums + (1 << bits - 1)) >> bits if bits else sums


# Running sums --------------------------------------------------------------------------------------


MOST_STEPS = 2**13
LAG_BITS, STEP_BITS = 14, 9


class Tree:
    """Intervals of 1, 2, 4, … steps, each measured at its last step."""

    bits = 0

    def __init__(self, steps: int) -> None:
        self.steps, self.most_rows = steps, steps.bit_length()

    def rows_up_to(self, step: int) -> int:
        """How many numbers are measured in the first so many steps."""
        return 2 * step - step.bit_count()

    def matrix(self, after: int, until: int) -> Ints:
        """The rows of the steps after `after`, up to `until`: a column for each of the first `until` steps."""
        rows = np.zeros((self.rows_up_to(until) - self.rows_up_to(after), until), dtype=np.int64)
        ends = [(end, level) for end in range(after + 1, until + 1) for level in range((end & -end).bit_length())]
        for row, (end, level) in zip(rows, ends, strict=True):
            row[end - (1 << level) : end] = 1
        return rows

    @cached_property
    def norms(self) -> tuple[int, float]:
        """The norms of the first column: a step is in at most one interval of each length, and the first in all."""
        levels = self.steps.bit_length()
        return levels, math.sqrt(levels) * (1 + 2.0**-40)


class Roots:
    """The square root of the matrix of running sums, with columns of equal norm. With a `band`, entries further than so
    many steps from the diagonal are 0."""

    bits = LAG_BITS + STEP_BITS
    most_rows = 1

    def __init__(self, steps: int, band: int | None = None) -> None:
        self.steps, lags = steps, np.arange(1, steps)
        root = np.concatenate([[1.0], np.cumprod((2 * lags - 1) / (2 * lags))])
        root[steps if band is None else band :] = 0.0
        length = np.cumsum(root**2)
        self.lags: Ints = fixed_width(root * 2**LAG_BITS)
        self.scales: Ints = fixed_width(np.sqrt(length[-1] / length[::-1]) * 2**STEP_BITS)

    def rows_up_to(self, step: int) -> int:
        """How many numbers are measured in the first so many steps."""
        return step

    def matrix(self, after: int, until: int) -> Ints:
        """The rows of the steps after `after`, up to `until`: a column for each of the first `until` steps."""
        lag = np.arange(after, until)[:, None] - np.arange(until)
        return np.where(lag >= 0, self.lags[lag] * self.scales[:until], 0)

    @cached_property
    def norms(self) -> tuple[int, float]:
        l1 = np.cumsum(self.lags)[::-1] * self.scales
        return int(l1.max()), math.sqrt(float(self.squares.max())) * (1 + 2.0**-40)

    @property
    def squares(self) -> Ints:
        """The squared norm of each column."""
        squares: Ints = np.cumsum(self.lags**2)[::-1] * self.scales**2
        return squares


@lru_cache(maxsize=2**4)
def matrix_of(steps: int, gaussian: bool) -> Roots | Tree:
    """The matrix for a stream of `steps` steps."""
    return Roots(steps) if gaussian else Tree(steps)
