"""A select, from names to numbers: `prepare` finds all that is wrong from public facts, `run` charges and measures.

Each aggregate of a private table becomes exact integers asked of the engine in one pass and noised here, or a
selection among public candidates. A public table is asked the exact aggregates, for nothing. Sensitivities are for
one row more or less and are multiplied by the exposure's stability; the table in `docs/privacy/aggregates.md`
argues each line.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any

from jostle.accounting.amounts import Amount, as_float
from jostle.accounting.definitions import ChargePurpose, Price, stability_price
from jostle.diagnostics import refuse
from jostle.plan.bounds import bounds_of, is_integral
from jostle.plan.keys import key_of
from jostle.plan.kinds import kind_of
from jostle.plan.plan import (
    WEIGHT_BITS,
    Apply,
    Bound,
    Column,
    Constant,
    Count,
    Exact,
    Filter,
    FixedSum,
    Key,
    RowExpr,
    Scan,
    Term,
)  # fmt: skip
from jostle.privacy.handles import Table
from jostle.privacy.kernel import Kernel
from jostle.privacy.mechanisms.additive import Additive, share, sum_prices
from jostle.privacy.mechanisms.quantile import candidates_of, choose_mode, choose_quantile
from jostle.privacy.mechanisms.selection import Selection
from jostle.privacy.mechanisms.stability import select_keys
from jostle.privacy.released import Noised
from jostle.source import Span

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ADDITIVE = {"count": 1, "count_distinct": 1, "sum": 1, "avg": 2, "var": 3, "stddev": 3}  # parts an amount is split in
SELECTED = ("median", "quantile", "min", "max", "mode")
FUNCTIONS = (*ADDITIVE, *SELECTED)
MOST_KEYS = 2**20
MOST_SELECTED = 1000  # groups of a selection: each is chosen by itself
MOST_BOUND = 2.0**60  # of a summand: its square is still added exactly


@dataclass(frozen=True, slots=True)
class Want:
    """One aggregate: its function, its row expression (none for `count(*)`), and a quantile's q."""

    function: str
    expr: RowExpr | None = None
    argument: float | None = None


@dataclass(frozen=True, slots=True)
class KeyWish:
    """A group key as the program wrote it; `over` are its public values where it gives them."""

    name: str
    expr: RowExpr
    over: tuple[Any, ...] | range | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """Key columns and value columns, each a list over groups; without keys, lists of one value."""

    keys: list[list[Any]]
    values: list[list[Any]]


@dataclass(frozen=True, slots=True)
class Request:
    """A prepared select on a table."""

    table: Table
    keys: tuple[Key, ...]
    open_key: RowExpr | None
    wishes: tuple[KeyWish, ...]
    wants: tuple[Want, ...]

    # Public ----------------------------------------------------------------------------------------

    def exact(self, kernel: Kernel) -> Answer:
        terms = tuple(Exact(w.function, w.expr, w.argument) for w in self.wants)
        keys = tuple(self._public_key(wish) for wish in self.wishes)
        columns, values = kernel.engine.exact(self.table.plan, keys, terms)
        return Answer(columns, values)

    def _public_key(self, wish: KeyWish) -> Key | RowExpr:
        return key_of(wish.expr, wish.over, self.table.domains, MOST_KEYS) or wish.expr

    @property
    def free(self) -> bool:
        """Whether this is the undivided count of a source whose size is public: all that such a source gives away."""
        whole = isinstance(self.table.plan, Scan) and not self.wishes and self.wants == (Want("count"),)
        return whole and self.table.private and all(e.source.unit.public_size for e in self.table.exposures)

    def size(self, kernel: Kernel) -> Answer:
        kernel.need_open(self.table.exposures)
        return Answer([], [[float(kernel.engine.rows(self.table.plan))]])

    # Private ---------------------------------------------------------------------------------------

    def run(self, kernel: Kernel, amount: Amount, via: str | None, span: Span | None) -> Answer:
        """Charges `amount` to every source met, reads, and adds noise."""
        if self.open_key is not None:
            return self._run_open(kernel, amount, via, span)
        noises = [self._noise_for(want, share(amount, len(self.wants)), via) for want in self.wants]
        price, how = sum_prices(amount, [p for p, _ in noises]), self._asked([how for _, how in noises])
        kernel.charge(self.table.exposures, price, self._title(), span, how)
        return self._measure(kernel, [how for _, how in noises], self.keys, span)

    def _measure(
        self, kernel: Kernel, hows: list[Additive | Selection], keys: tuple[Key, ...], span: Span | None
    ) -> Answer:
        terms: list[Term] = []
        at: dict[int, int] = {}
        for i, want in enumerate(self.wants):
            at[i] = len(terms)
            terms.extend(self._terms(want))
        exact = kernel.vault.group(self.table.plan, keys, tuple(terms)) if terms else []
        columns: list[list[Any]] = []
        for i, (want, how) in enumerate(zip(self.wants, hows, strict=True)):
            if isinstance(how, Additive):
                numbers = self._additive(kernel, want, how, exact[at[i] : at[i] + ADDITIVE[want.function]], span)
            else:
                numbers = self._selected(kernel, want, how, keys, span)
            columns.append(numbers)
        return Answer(key_columns([list(k.values) for k in keys]), columns)

    def _noise_for(self, want: Want, amount: Amount, via: str | None) -> tuple[Price, Additive | Selection]:
        if want.function in SELECTED:
            if via is not None:
                raise refuse("TypeError", f"`{want.function}` is a selection, and takes no `via`")
            how = Selection.of(amount, self.table.exposures)
            return how.price, how
        parts = ADDITIVE[want.function]
        each = Additive.fitted(share(amount, parts), via, self.table.exposures)
        return sum_prices(amount, [each.price] * parts), each

    def _terms(self, want: Want) -> list[Term]:
        if want.function == "count":
            return [Count(want.expr, weighted=self.table.weighted)]
        if want.function == "count_distinct":
            return [Count(want.expr, distinct=True)]
        if want.function not in ADDITIVE:
            return []
        fixed = self._fixed(want)
        if want.function == "sum":
            return [fixed]
        count = Count(want.expr, weighted=fixed.weighted)
        if want.function == "avg":
            return [fixed, count]
        bits = _bits(max(abs(fixed.low), abs(fixed.high)) ** 2)
        return [fixed, count, replace(fixed, bits=bits, square=True)]

    def _fixed(self, want: Want) -> FixedSum:
        """The bounded summand: E itself for a sum, E − middle for averages, where it halves the sensitivity."""
        expr, (low, high) = _need(want.expr), self._bounds(want)
        if want.function == "sum":
            whole = is_integral(expr, self.table.domains) and not self.table.weighted
            bits = 0 if whole else _bits(max(abs(low), abs(high)))
            return FixedSum(expr, low, high, bits, weighted=self.table.weighted)
        middle = self._middle(want)
        half = max(high - middle, middle - low)
        return FixedSum(Apply("-", (expr, Constant(middle))), -half, half, _bits(half), weighted=self.table.weighted)

    def _middle(self, want: Want) -> float:
        low, high = self._bounds(want)
        return low + (high - low) / 2

    def _bounds(self, want: Want) -> tuple[float, float]:
        found = bounds_of(_need(want.expr), self.table.domains)
        if found is None or not all(math.isfinite(b) for b in found):
            raise refuse(
                "UnboundedSum", f"the terms of this {want.function} have no known bound",
                help="describe the column with a range, or bound them: `clamp(E, low, high)`",
            )  # fmt: skip
        if max(abs(b) for b in found) >= MOST_BOUND:
            raise refuse("ValueError", "the bounds of this sum are too wide to add exactly", help="clamp(x, low, high)")
        return found

    def _additive(
        self, kernel: Kernel, want: Want, how: Additive, exact: Sequence[NDArray[np.int64]], span: Span | None
    ) -> list[Any]:
        import numpy as np

        noise, _ = noise_and_stability(self.table)
        noised, scales = [], []
        for term, numbers in zip(self._terms(want), exact, strict=True):
            sensitivity, stability = self._sensitivity(term), self._stability(term)
            bits = _grid(term)
            reach = sensitivity * stability
            drawn = how.draw(noise, np.asarray(numbers), reach, reach) if sensitivity else np.asarray(numbers)
            noised.append(np.ldexp(drawn.astype(float).ravel(), -bits))
            scales.append(math.ldexp(how.scale(reach, reach), -bits))
            emit_measure(kernel, self.table, want.function, how, sensitivity / 2.0**bits, scales[-1], span, stability)
        if want.function in ("count", "count_distinct", "sum"):
            return [Noised(v, how.mechanism, scales[0]) for v in noised[0]]
        return self._moments(want, noised)

    def _sensitivity(self, term: Term) -> int:
        """For one row more or less, or for rows whose weights are 1 in all; in units of the term's grid."""
        if isinstance(term, Count):
            return 1 << _grid(term)
        most = max(abs(term.low), abs(term.high))
        whole = math.ceil(math.ldexp(most * most if term.square else most, term.bits))
        if not (term.weighted and whole):
            return whole
        # each of a person's rows is rounded by itself, and the product with its weight has rounded before
        rows = max(-(-e.stability // e.reach) for e in self.table.exposures)
        return whole + 1 + -(-rows // 2)

    def _stability(self, term: Term) -> int:
        """How many rows of a protected unit, or how much weight, a term can be moved by."""
        if term.weighted:
            return max(e.reach for e in self.table.exposures)
        if isinstance(term, Count) and term.distinct and self._counts_persons(term.expr):
            return 1
        return max(e.stability for e in self.table.exposures)

    def _counts_persons(self, expr: RowExpr | None) -> bool:
        """Whether the values of `expr` are those of the one protected column, undivided.

        All rows of a person have the same value, so that the person is one value more or less. In groups or parts
        their rows might be in each, and the losses would add up to more than the largest.
        """
        plan = self.table.plan
        while isinstance(plan, Filter):
            plan = plan.source
        undivided = not self.keys and self.open_key is None and all(not e.path for e in self.table.exposures)
        return undivided and isinstance(plan, Bound) and isinstance(expr, Column) and plan.by == (expr.name,)

    def _moments(self, want: Want, noised: list[NDArray[np.float64]]) -> list[Any]:
        """Averages and variances from noisy sums and counts, kept within what the bounds allow."""
        import numpy as np

        low, high = self._bounds(want)
        middle = self._middle(want)
        total, count = noised[0], np.maximum(noised[1], 1.0)
        mean = np.clip(total / count, low - middle, high - middle)
        if want.function == "avg":
            return [float(v) for v in mean + middle]
        counted = np.maximum(count, 2.0)
        variance = (noised[2] - counted * mean**2) / (counted - 1)
        variance = np.clip(variance, 0.0, (high - low) ** 2 / 2)
        return [float(v) for v in (np.sqrt(variance) if want.function == "stddev" else variance)]

    def _selected(
        self, kernel: Kernel, want: Want, how: Selection, keys: tuple[Key, ...], span: Span | None
    ) -> list[Any]:
        noise, stability = noise_and_reach(self.table)
        answers, scale = [], 0.0
        for combination in zip(*key_columns([list(k.values) for k in keys]), strict=True) if keys else [()]:
            plan = self.table.plan
            for key, value in zip(keys, combination, strict=True):
                plan = Filter(plan, holds(key, value))
            if want.function == "mode":
                chosen, scale = choose_mode(kernel, self.table, plan, _need(want.expr), how, noise, stability)
            else:
                q = {"median": 0.5, "min": 0.0, "max": 1.0}.get(want.function, want.argument)
                chosen, scale = choose_quantile(
                    kernel, self.table, plan, _need(want.expr), float(q or 0.0), how, noise, stability
                )
            answers.append(chosen)
        emit_measure(kernel, self.table, want.function, how, 1, scale, span, stability)
        return answers

    def _run_open(self, kernel: Kernel, amount: Amount, via: str | None, span: Span | None) -> Answer:
        expr = _need(self.open_key)
        if not amount.delta:
            raise open_keys(self.wishes[0].name)
        # keys are found by rows, of which a person has k; where rows have weights, their count is another number
        alone = len(self.wants) == 1 and self.wants[0] == Want("count") and not self.table.weighted
        mine = amount if alone else Amount(amount.unit, amount.value // 2, amount.delta // 2)
        rest = share(Amount(amount.unit, amount.value - mine.value, 0), max(1, len(self.wants)))
        hows = [] if alone else [self._noise_for(want, rest, via) for want in self.wants]
        price = sum_prices(amount, [stability_price(mine), *(p for p, _ in hows)])
        finding = Additive(mine, "laplace")
        asked = self._asked([finding, *(how for _, how in hows)])
        kernel.charge(self.table.exposures, price, self._title(), span, asked)
        noise, stability = noise_and_stability(self.table)
        found, counts, scale = select_keys(kernel, self.table.plan, expr, mine, noise, stability)
        emit_measure(kernel, self.table, "keys", finding, 1, scale, span)
        if alone:
            return Answer([found], [counts])
        key = Key(expr, tuple(found))
        return (
            self._measure(kernel, [how for _, how in hows], (key,), span) if found else Answer([[]], [[] for _ in hows])
        )

    def _asked(self, hows: Sequence[Additive | Selection]) -> ChargePurpose:
        return ChargePurpose(", ".join(dict.fromkeys(how.mechanism for how in hows)), self)

    def _title(self) -> str:
        return ", ".join(w.function for w in self.wants)


def prepare(table: Table, wishes: Sequence[KeyWish], wants: Sequence[Want]) -> Request:
    """Types, keys and bounds of a select, in that order; refuses before any amount is looked at."""
    domains = table.domains
    for want in wants:
        if want.expr is None:
            continue
        kind = kind_of(want.expr, domains)
        ordered = kind == "text" and want.function in ("min", "max") and not table.private
        if want.function not in ("count", "count_distinct", "mode") and kind != "number" and not ordered:
            raise refuse("TypeError", f"`{want.function}` takes a number, and this is a {kind}")
        if want.function == "quantile" and not (want.argument is not None and 0 <= want.argument <= 1):
            raise refuse("ValueError", "a quantile lies between 0 and 1", help="write `quantile(age, 0.25)`")
    if not table.private:
        return Request(table, (), None, tuple(wishes), tuple(wants))
    keys, unlisted = [], None
    for wish in wishes:
        key = key_of(wish.expr, wish.over, domains, MOST_KEYS)
        if key is None:
            if len(wishes) > 1 or not any(e.source.measure.width > 1 for e in table.exposures):
                raise open_keys(wish.name)
            unlisted = wish.expr
            continue
        if not isinstance(key.values, range):
            for value in key.values:
                need_unicode(value)
        keys.append(key)
    request = Request(table, tuple(keys), unlisted, tuple(wishes), tuple(wants))
    groups = math.prod(len(key.values) for key in keys)
    if groups > MOST_KEYS:
        raise refuse("DataError", f"{groups:,} groups are too many", help=f"at most {MOST_KEYS:,}: group more coarsely")
    for want in wants:
        if want.function in SELECTED and groups > MOST_SELECTED:
            raise refuse(
                "DataError", f"a {want.function} in each of {groups:,} groups is too much to choose",
                help=f"at most {MOST_SELECTED:,} groups: group more coarsely",
            )  # fmt: skip
        if want.function in ("sum", "avg", "var", "stddev"):
            request._bounds(want)
        elif want.function in SELECTED:
            candidates_of(table, _need(want.expr), want.function)
    return request


def need_unicode(value: Any) -> None:
    """Refuses a text key that the engine could not tell from another: half a surrogate pair has no encoding, and
    stands in SQL for the same replacement character as every other half, so that parts by them would not be disjoint.
    """
    if isinstance(value, str):
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            raise refuse("ValueError", "a key has a character that no text can have") from None


def holds(key: Key, value: Any) -> RowExpr:
    """The condition of one group: numeric keys are taken down to integers first."""
    need_unicode(value)
    numeric = isinstance(value, (int, float)) and not isinstance(value, bool)
    whole = isinstance(key.values, range) or all(float(v).is_integer() for v in key.values) if numeric else False
    left = Apply("floor", (key.expr,)) if whole else key.expr
    return Apply("==", (left, Constant(float(value) if numeric else value)))


def open_keys(name: str) -> Exception:
    return refuse(
        "OpenKeys", f"the values that the key `{name}` can have are not public",
        help="describe its column with a range or categories; a select may also list them, `groupby E over {…}`, "
        "or be given a delta",
    )  # fmt: skip


def noise_and_stability(handle: Any) -> tuple[Any, int]:
    """The noise to draw from, and the largest stability: the noise is scaled for the source that needs most."""
    exposures = handle.exposures
    if len({e.source.simulated for e in exposures}) != 1:
        raise refuse("PrivateValue", "simulated and private data cannot be measured together")
    return exposures[0].source.noise, max(e.stability for e in exposures)


def noise_and_reach(handle: Any) -> tuple[Any, int]:
    """The same for a measurement that counts rows by their weights; where they have none, by 1 each."""
    return noise_and_stability(handle)[0], max(e.reach for e in handle.exposures)


def emit_measure(
    kernel: Kernel, handle: Any, what: str, how: Additive | Selection, sensitivity: float, scale: float,
    span: Span | None, stability: int | None = None,
) -> None:  # fmt: skip
    """Tells of a measurement; `stability` where it is not that of the rows."""
    because = {"because": how.because} if isinstance(how, Additive) and how.because else {}
    kernel.events.emit(
        "measure", what, span, mechanism=how.mechanism, **because, **{how.amount.unit: as_float(how.amount.value)},
        sources=[e.source.name for e in handle.exposures], sensitivity=sensitivity,
        stability=stability or max(e.stability for e in handle.exposures), scale=scale,
    )  # fmt: skip


def _grid(term: Term) -> int:
    """A term is an integer in units of 2^-this."""
    if isinstance(term, FixedSum):
        return term.bits
    return WEIGHT_BITS if term.weighted else 0


def _bits(most: float) -> int:
    """The grid for values up to `most`: about 2^30 steps, so that a sum over 2^32 rows fits in 2^62."""
    return 30 - math.frexp(most)[1] if most > 0 else 0


def _need(expr: RowExpr | None) -> RowExpr:
    if expr is None:
        raise refuse("TypeError", "this aggregate takes an expression", help="`count(*)` is the only one without")
    return expr


def key_columns(columns: list[list[Any]]) -> list[list[Any]]:
    """Key columns of the full cross product, the last key moving fastest."""
    if not columns:
        return []
    total = reduce(lambda a, b: a * len(b), columns, 1)
    out, inner = [], total
    for column in columns:
        inner //= max(1, len(column))
        repeated = [v for v in column for _ in range(inner)]
        out.append(repeated * (total // max(1, len(repeated))) if repeated else [])
    return out
