"""Weighted records: handles whose stability is a weight, which joins do not increase.

A handle's `weight` bounds the total change of its weights when one protected unit changes: Σ|A(x) − A'(x)| in units of
a row. `weighted` gives every row of a table the weight 1, so that it is the number of rows that can change. A
transformation of one collection does not change it, and one of two collections adds theirs up. The arguments, for the
integers that the engine works with (`plan.records`), are in docs/privacy/weighted.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from jostle.diagnostics import did_you_mean, refuse
from jostle.engine.base import Answers
from jostle.engine.records import sums_of
from jostle.lazy import NDArray, np
from jostle.plan import records as rec
from jostle.plan.kinds import domain_kind, kind_of
from jostle.plan.plan import Column, Domain, Integer, Real, RowExpr
from jostle.plan.schemas import BY_KINDS, Facts, check_steps, dimensions, united_schema
from jostle.privacy.kernel.exposures import Exposures, Handle
from jostle.privacy.kernel.handles import Cube, Summed, Table
from jostle.privacy.transformations.joins import join_exposures
from jostle.privacy.transformations.transform import need_column
from jostle.records import replace

MOST_BITS = 4096
MOST_CELLS = 2**18
MOST_PARTS = 10_000
MOST_HEIGHT = 40
MOST_STEPS, MOST_IN_ALL = 64, 2**11
MOST_TABLE_STEPS = 70
"""Together with `MOST_STEPS`, conditions and columns stay within the depth that engines accept (`plan.kinds.DEPTH`)."""
KINDS = ("number", "text", "boolean")
REDUCERS = ("count", "sum", "min", "max")


@dataclass(frozen=True, eq=False)
class WeightedRecords(Handle):
    """Records with weights, given by a plan, which determines the public facts about their columns."""

    plan: rec.Records
    facts: Facts = BY_KINDS

    @property
    def schema(self) -> tuple[tuple[str, Domain], ...]:
        return rec.record_schema(self.plan, self.facts)

    @cached_property
    def domains(self) -> Mapping[str, Domain]:
        return dict(self.schema)


def weighted(table: Table) -> WeightedRecords:
    """The rows of a table, each with weight 1. Of k rows that can change, k is the weight, in any number of parts."""
    if table.weighted:
        raise refuse(
            "TypeError", "rows that have weights cannot be given new ones", help="declare the source without `weighted`"
        )
    if not table.schema:
        raise refuse("TypeError", "a table without columns has no records")
    for name, domain in table.schema:
        if domain_kind(domain) not in KINDS:
            raise refuse(
                "TypeError", f"records have numbers, texts and truths, and `{name}` is a {domain_kind(domain)}",
                help=f"leave it out with `pick`, or take a number of it: `derive(t, {name} = year({name}))`",
            )  # fmt: skip
    exposures = tuple(replace(e, weight=e.rows, each=None) for e in table.exposures)
    check_steps(table.plan, MOST_TABLE_STEPS)
    return WeightedRecords(exposures, rec.Rows(table.plan, table.schema), table.facts)


def where(records: WeightedRecords, condition: RowExpr) -> WeightedRecords:
    """The records for which the condition is true."""
    if kind_of(condition, records.domains) != "boolean":
        raise refuse("TypeError", "a condition must be true or false", help="compare: `where age > 40`")
    return _weighted(records, records.exposures, rec.Kept(records.plan, condition))


def derived(records: WeightedRecords, columns: Sequence[tuple[str, RowExpr]]) -> WeightedRecords:
    """Records with columns added or redefined. Records with a missing value are dropped."""
    exprs: dict[str, RowExpr] = {name: Column(name) for name in records.domains}
    return mapped(records, {**exprs, **dict(columns)})


def picked(records: WeightedRecords, names: Sequence[str]) -> WeightedRecords:
    """Only the named columns. The weights of records that become equal add up."""
    for name in names:
        need_column(records.domains, name, "the columns")
    return mapped(records, {name: Column(name) for name in names})


def mapped(records: WeightedRecords, columns: Mapping[str, RowExpr]) -> WeightedRecords:
    for name, expr in columns.items():
        kind = kind_of(expr, records.domains)
        if kind not in KINDS:
            raise refuse("TypeError", f"records have numbers, texts and truths, and `{name}` would be a {kind}")
    return _weighted(records, records.exposures, rec.Mapped(records.plan, tuple(columns.items())))


def shaved(records: WeightedRecords, step: float, most: int, name: str) -> WeightedRecords:
    """Divides each record into several of weight `step`, numbered 0 … `most` − 1 in the column `name`."""
    if not 2.0**-60 <= step <= 2.0**40:
        raise refuse("ValueError", "a record is shaved by a weight above 0", help="`shave(records, 0.5)`")
    if not 1 <= most <= MOST_PARTS:
        raise refuse("ValueError", f"a record is shaved into 1 to {MOST_PARTS:,} parts", help="`most = 100`")
    units, whole = step.as_integer_ratio()
    plan = rec.Shaved(records.plan, _new(records, name), units, whole.bit_length() - 1, most)
    return _weighted(records, records.exposures, plan)


def grouped(
    records: WeightedRecords, by: Sequence[str], name: str, most: int, reducer: str = "count", of: str | None = None
) -> WeightedRecords:
    """For each group of records the sizes of its heaviest ones: for n records of weight 1 it is n, with weight ½.

    With `sum`, `min` or `max`, that of the column `of` in place of the size, which is a function of a set of records
    and so as stable. Others are refused; a mean is a `sum` over a `count`.
    """
    for column in by:
        need_column(records.domains, column, "the columns")
    if not by or len(set(by)) < len(by) or name in by:
        raise refuse("NameError", "the columns of groups and their size have names of their own",
                     help='`grouped(edges, "a", "degree")`')  # fmt: skip
    if not 1 <= most <= 2**31:
        raise refuse("ValueError", "the largest size of a group is 1 or more", help="`most = 100`")
    if reducer == "count" and of is None:
        return _weighted(records, records.exposures, rec.Sized(records.plan, tuple(by), name, most))
    low, high = _reduced(records, reducer, of, most)
    return _weighted(
        records, records.exposures, rec.Reduced(records.plan, tuple(by), name, reducer, str(of), low, high)
    )


def _reduced(records: WeightedRecords, reducer: str, of: str | None, most: int) -> tuple[float, float]:
    """The public range of a reducer's result."""
    if reducer not in REDUCERS:
        raise refuse(
            "ValueError", f"groups are reduced by {', '.join(REDUCERS)}, not by {reducer!r}",
            help=did_you_mean(reducer, REDUCERS) or 'a mean is a sum by a count: `reducer = "sum", of = "hours"`',
        )  # fmt: skip
    if of is None or reducer == "count":
        raise refuse(
            "TypeError", f"`{reducer}` counts records, of whatever column" if of is not None
            else f"`{reducer}` is of a column", help="leave `of` out" if of is not None else '`of = "hours"`',
        )  # fmt: skip
    need_column(records.domains, of, "the columns")
    domain = records.domains[of]
    if not isinstance(domain, Integer if reducer == "sum" else Integer | Real):
        raise refuse(
            "TypeError", f"`{reducer}` takes a column of {'whole ' if reducer == 'sum' else ''}numbers within bounds",
            help=f"make one of it: `derive(r, {of} = clamp(floor({of}), 0, 10))`",
        )  # fmt: skip
    if reducer != "sum":
        return domain.low, domain.high
    return (-most if domain.low < 0 else 0), (most if domain.high > 0 else 0)


def joined(left: WeightedRecords, right: WeightedRecords, on: Sequence[str], most: float) -> WeightedRecords:
    """Pairs that are equal in the columns `on`, with weights divided by the total weight of the key's records."""
    for column in on:
        need_column(left.domains, column, "the columns")
        need_column(right.domains, column, "the columns")
        kinds = [domain_kind(side.domains[column]) for side in (left, right)]
        if kinds[0] != kinds[1]:
            raise refuse("TypeError", f"`{column}` is a {kinds[0]} on one side and a {kinds[1]} on the other")
    if not on or len(set(on)) < len(on):
        raise refuse("NameError", "a join names the columns that both sides have", help='`joined(a, b, "key")`')
    twice = [name for name in right.domains if name in left.domains and name not in on]
    if twice:
        raise refuse(
            "NameError", f"both sides have a column `{twice[0]}`, which is not joined on",
            help=f"give it another name on one side: `pick(derive(t, other = {twice[0]}), …, other)`",
        )  # fmt: skip
    if not 2 <= most <= 2**MOST_HEIGHT:
        raise refuse("ValueError", f"`most` is a weight from 2 to 2^{MOST_HEIGHT}", help="`most = 1000`")
    height = (int(-(-most // 1)) - 1).bit_length()
    return _weighted(left, _both(left, right), rec.Joined(left.plan, right.plan, tuple(on), height))


def combined(how: str, left: WeightedRecords, right: WeightedRecords) -> WeightedRecords:
    """`union`, `intersect`, `concat` or `without` of two collections with the same columns."""
    schema = united_schema([left.domains, right.domains], left.facts)
    other = right if tuple(right.domains) == tuple(schema) else picked(right, list(schema))
    return _weighted(left, _both(left, right), rec.Combined(how, left.plan, other.plan))


def weight_histogram(records: WeightedRecords, dims: Sequence[tuple[str, RowExpr, Any]]) -> Cube:
    """The total weight for each combination of public keys, as the cells of a cube."""
    keys, names, shape = dimensions(dims, records.domains, MOST_CELLS, records.facts)
    for name, expr, _ in dims:
        if kind_of(expr, records.domains) not in KINDS:
            raise refuse("TypeError", f"weights are added up by numbers, texts and truths, not by `{name}`")
    cells = math.prod(shape)
    if cells > MOST_CELLS:
        raise refuse(
            "ValueError", f"{cells:,} sums of weights are too many", help=f"at most {MOST_CELLS:,}: group more coarsely"
        )
    return Cube(records.exposures, RecordCells(rec.Weights(records.plan, keys)), names, shape)


class RecordCells(Summed, frozen=True, cache_hash=True):
    """Cells that are sums of weights (`engine.records`)."""

    weights: rec.Weights
    bits = rec.CELL_BITS

    def sums(self, answers: Answers) -> NDArray[np.object_]:
        return sums_of(answers, self.weights)

    @property
    def digest_facts(self) -> rec.Weights:
        """What identifies them in the ledger."""
        return self.weights


def _new(records: WeightedRecords, name: str) -> str:
    if name in records.domains:
        raise refuse("NameError", f"there is a column `{name}` already", help='name the new one: `"place"`')
    return name


def _both(left: WeightedRecords, right: WeightedRecords) -> Exposures:
    return join_exposures([left.exposures, right.exposures], [1, 1])


def _weighted(like: WeightedRecords, exposures: Exposures, plan: rec.Records) -> WeightedRecords:
    if rec.bits_of(plan) > MOST_BITS:
        raise refuse(
            "ValueError", f"these weights would need more than {MOST_BITS:,} bits each",
            help="join fewer times one after the other, or give the joins a smaller `most`",
        )  # fmt: skip
    steps, parts = rec.size_of(plan)
    if steps > MOST_STEPS or parts > MOST_IN_ALL:
        many = f"{MOST_STEPS} steps, one after the other" if steps > MOST_STEPS else f"{MOST_IN_ALL:,} steps in all"
        raise refuse(
            "RecursionLimit", f"records made in more than {many}",
            help="make them in fewer: one `derive` has several columns, and one `where` several conditions",
        )  # fmt: skip
    return WeightedRecords(exposures, plan, like.facts)
