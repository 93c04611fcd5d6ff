"""What an aggregate of a select is. The docstring of each is its argument.

An aggregate is computed from noisy sums (`AdditiveAggregate`, or `Estimate` where there are several), or from counts
of the rows of each group at public places (`GroupAggregate`), such as where it is chosen among them
(`SelectionAggregate`). An additive one only names its terms: how far rows move them is computed in `terms`, and what
it does with noisy numbers is post-processing. Of a public table it is computed exactly, from statistics that every
engine knows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from msgspec import Struct

from jostle.accounting.amounts import Amount
from jostle.accounting.definitions import Price
from jostle.diagnostics import refuse
from jostle.language.aggregates import AggregateRow, Kinds, of_no_numbers
from jostle.lazy import Floats, Ints
from jostle.noise_laws import Selected
from jostle.plan.kinds import check_depth, kind_of
from jostle.plan.plan import Exact, Key, RowExpr, Term
from jostle.privacy.kernel.handles import Table
from jostle.privacy.kernel.measurement import Measured, weighted_stability_of
from jostle.privacy.measurements.aggregates.terms import Pair, reach_of, terms_of
from jostle.privacy.mechanisms.additive import Additive, share
from jostle.privacy.mechanisms.noise import Noise
from jostle.privacy.mechanisms.selection import Selection

Mechanism = Additive | Selection
Chosen = tuple[Any, Any]
"""An answer and the law of its noise."""


@dataclass(frozen=True)
class Aggregate(ABC):
    """An aggregate with its expressions on rows and its public numbers."""

    expressions: tuple[RowExpr, ...] = ()
    numbers: tuple[float, ...] = ()

    row: ClassVar[AggregateRow]
    name: ClassVar[str]

    def __init_subclass__(cls) -> None:
        cls.name = cls.row.name if hasattr(cls, "row") else ""

    @property
    def expr(self) -> RowExpr:
        """The first of its expressions."""
        return self.expressions[0]

    def of_cells(self, cells: Ints, group: Ints, groups: int) -> Ints | None:
        """Of a cube: an answer a group, from cells and the group of each; None for what cells do not have.

        Where cells move by k in ℓ₁, the answers move by at most k.
        """
        return None

    # Public tables -----------------------------------------------------------------------------------

    def statistics(self) -> tuple[Exact, ...]:
        """What an engine is asked of a public table: the statistic of the same name, unless an aggregate has others."""
        return (Exact(self.name, next(iter(self.expressions), None), next(iter(self.numbers), None)),)

    def of_statistics(self, values: Sequence[Any]) -> Any:
        """The exact answer of one group, from these statistics; they are None where they have no value."""
        return values[0]

    # Private tables ----------------------------------------------------------------------------------

    def check(self, table: Table) -> None:
        """Refuses expressions of kinds that it does not take, and numbers out of range."""
        for expr in self.expressions:
            kind = kind_of(expr, table.domains)
            ordered = self.row.kinds is Kinds.ORDERED and kind == "text" and not table.private
            if kind != "number" and self.row.kinds is not Kinds.ANY and not ordered:
                raise of_no_numbers(self.name, kind)

    @abstractmethod
    def check_private(self, table: Table) -> None:
        """Refuses expressions that are measured in no way: without public bounds, or without candidates."""

    def terms(self, table: Table) -> tuple[Term, ...]:
        """What an engine adds up in every group, in one pass for all aggregates of a select."""
        return ()


class AdditiveAggregate(Aggregate):
    """An exact sum or count with noise, in every group. Of k rows, k may change, each in its own group."""

    direct: ClassVar[bool] = True

    @abstractmethod
    def measured(self, table: Table) -> tuple[Term | Pair, ...]:
        """Its terms in their order as they get noise: each by itself, or two of them as a pair."""

    def terms(self, table: Table) -> tuple[Term, ...]:
        return tuple([term for one in self.measured(table) for term in terms_of(one)])

    def check_private(self, table: Table) -> None:
        for term in self.terms(table) if self.expressions else ():
            if term.expr is not None:
                kind_of(term.expr, table.domains)

    def shares(self, amount: Amount, table: Table) -> list[tuple[Term | Pair, Amount]]:
        """What gets noise, with its part of an amount: an equal one of every term."""
        measured = self.measured(table)
        sizes = list(map(len, map(terms_of, measured)))
        one = share(amount, sum(sizes))
        parts = [Amount(one.unit, one.value * size, one.delta * size) for size in sizes]
        return list(zip(measured, parts, strict=True))

    def mechanisms(self, amount: Amount, via: str | None, table: Table) -> list[tuple[Term | Pair, Additive]]:
        """What gets noise with the law of that, within an amount."""
        shares, (l1, l2) = self.shares(amount, table), (1, 1.0)
        if via is None and (amount.unit == "rho" or amount.delta):  # only the ratio counts, in groups or not the same
            l1, l2 = max([reach_of(term, table, undivided=False) for term, _ in shares], default=(1, 1))
        measures = table.measures
        return [(term, Additive.fitted(part, via, measures, l1, l2)) for term, part in shares]


class Estimator(Struct, frozen=True, eq=False):
    """What an estimate is of its noisy terms: arrays over groups, or over draws of their noise.

    `answers` is the function, within what the bounds of a column allow, `low` to `high`. Fewer than `least` rows have
    no such answer; `count` is the place of their number among the terms.
    """

    answers: Callable[..., Floats]
    count: int
    least: float
    low: float
    high: float


class Estimate(AdditiveAggregate):
    """An estimate from several noisy sums, each of an equal part of the amount (`purchases`: and once for all)."""

    direct = False

    @abstractmethod
    def estimator(self, table: Table) -> Estimator:
        """How the answers come of the noisy terms."""


class GroupAggregate(Aggregate):
    """What is answered of every group by itself, from how many of its rows are at each of several public places.

    A row touches one group, and one place there. For k rows the losses in the groups that they fall into add to at most
    that of k in one.
    """

    @abstractmethod
    def candidates(self, table: Table) -> object:
        """The public candidates, or the bounds that they lie between; refused where there are none."""

    @abstractmethod
    def places(self, table: Table) -> Key:
        """The place of a row, as a group key: an engine counts the rows of all groups at all places in one pass."""

    @abstractmethod
    def mechanism(self, amount: Amount, via: str | None, table: Table) -> Mechanism:
        """The law of its noise, within an amount."""

    @abstractmethod
    def price(self, mechanism: Any, table: Table) -> Price:
        """What all that it draws by this law costs."""

    @abstractmethod
    def release(
        self, mechanism: Any, exact: Sequence[Any], noise: Noise, table: Table, undivided: bool
    ) -> tuple[list[Chosen], list[Measured]]:
        """The answers of all groups, each with the law of its noise, where it is a number that has one; `exact` holds
        the counts at the places in each group."""

    def check_private(self, table: Table) -> None:
        check_depth(self.places(table).expr)


class SelectionAggregate(GroupAggregate):
    """A public candidate of a nearly best score, chosen in every group for itself (`mechanisms.selection`)."""

    @abstractmethod
    def choose(self, mechanism: Selection, exact: Ints, noise: Noise, table: Table) -> tuple[Any, Selected]:
        """The candidate, and the law of its choice, in rows."""

    def mechanism(self, amount: Amount, via: str | None, table: Table) -> Selection:
        if via is not None:
            raise refuse("TypeError", f"`{self.name}` is a selection, and takes no `via {via}`")
        return Selection.of(amount, table.measures)

    def price(self, mechanism: Selection, table: Table) -> Price:
        return mechanism.price

    def release(
        self, mechanism: Selection, exact: Sequence[Ints], noise: Noise, table: Table, undivided: bool
    ) -> tuple[list[Chosen], list[Measured]]:
        answers: list[Chosen] = [self.choose(mechanism, numbers, noise, table) for numbers in exact]
        law = answers[-1][1] if answers else Selected(0.0)
        return answers, [Measured(self.name, law, mechanism, 1, weighted_stability_of(table))]
