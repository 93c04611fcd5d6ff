"""A select, from names to numbers: `prepare` finds all that is wrong from public facts.

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

from jostle.accounting.amounts import Amount
from jostle.accounting.definitions import ChargePurpose, Price
from jostle.diagnostics import refuse
from jostle.plan.bounds import bounds_of, is_integral
from jostle.plan.keys import MOST_KEYS, key_of, need_unicode, open_keys
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
)
from jostle.privacy.kernel.handles import Table
from jostle.privacy.kernel.kernel import Kernel
from jostle.privacy.mechanisms.additive import Additive, share, sum_prices
from jostle.privacy.mechanisms.quantile import candidates_of
from jostle.privacy.mechanisms.selection import Selection

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


ADDITIVE = {"count": 1, "count_distinct": 1, "sum": 1, "avg": 2, "var": 3, "stddev": 3}  # parts an amount is split in
SELECTED = ("median", "quantile", "min", "max", "mode")
FUNCTIONS = (*ADDITIVE, *SELECTED)
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

    def how_for(self, want: Want, amount: Amount, via: str | None) -> Additive | Selection:
        if want.function in SELECTED:
            if via is not None:
                raise refuse("TypeError", f"`{want.function}` is a selection, and takes no `via`")
            return Selection.of(amount, self.table.exposures)
        return Additive.fitted(share(amount, ADDITIVE[want.function]), via, self.table.exposures)

    def price_of(self, how: Additive | Selection, want: Want) -> Price:
        parts = 1 if isinstance(how, Selection) else ADDITIVE[want.function]
        return sum_prices(how.amount, [how.price] * parts)

    def terms(self, want: Want) -> list[Term]:
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
        expr, (low, high) = need_expr(want.expr), self._bounds(want)
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
        found = bounds_of(need_expr(want.expr), self.table.domains)
        if found is None or not all(math.isfinite(b) for b in found):
            raise refuse(
                "UnboundedSum", f"the terms of this {want.function} have no known bound",
                help="describe the column with a range, or bound them: `clamp(E, low, high)`",
            )  # fmt: skip
        if max(abs(b) for b in found) >= MOST_BOUND:
            raise refuse("ValueError", "the bounds of this sum are too wide to add exactly", help="clamp(x, low, high)")
        return found

    def sensitivity(self, term: Term) -> int:
        """For one row more or less, or for rows whose weights are 1 in all; in units of the term's grid."""
        if isinstance(term, Count):
            return 1 << grid_of(term)
        most = max(abs(term.low), abs(term.high))
        whole = math.ceil(math.ldexp(most * most if term.square else most, term.bits))
        if not (term.weighted and whole):
            return whole
        # each of a person's rows is rounded by itself, and the product with its weight has rounded before
        rows = max(-(-e.stability // e.reach) for e in self.table.exposures)
        return whole + 1 + -(-rows // 2)

    def stability(self, term: Term) -> int:
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

    def moments(self, want: Want, noised: list[NDArray[np.float64]]) -> list[Any]:
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

    @property
    def title(self) -> str:
        return ", ".join(w.function for w in self.wants)

    def asked(self, hows: Sequence[Additive | Selection]) -> ChargePurpose:
        return ChargePurpose(", ".join(dict.fromkeys(how.mechanism for how in hows)), self)


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
            candidates_of(table, need_expr(want.expr), want.function)
    return request


def grid_of(term: Term) -> int:
    """A term is an integer in units of 2^-this."""
    if isinstance(term, FixedSum):
        return term.bits
    return WEIGHT_BITS if term.weighted else 0


def _bits(most: float) -> int:
    """The grid for values up to `most`: about 2^30 steps, so that a sum over 2^32 rows fits in 2^62."""
    return 30 - math.frexp(most)[1] if most > 0 else 0


def need_expr(expr: RowExpr | None) -> RowExpr:
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
