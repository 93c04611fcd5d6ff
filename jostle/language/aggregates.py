"""The aggregates of a select: what each needs to be said about its argument before anything runs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One aggregate. `bounded`: its terms need known bounds."""

    name: str
    about: str
    bounded: bool = False


AGGREGATES: dict[str, Aggregate] = {
    aggregate.name: aggregate
    for aggregate in (
        Aggregate("count", "how many rows, values, or distinct values there are"),
        Aggregate("sum", "the sum", bounded=True),
        Aggregate("avg", "the mean", bounded=True),
        Aggregate("var", "the sample variance", bounded=True),
        Aggregate("stddev", "the sample standard deviation", bounded=True),
        Aggregate("median", "the median"),
        Aggregate("quantile", "a quantile"),
        Aggregate("min", "the smallest value"),
        Aggregate("max", "the largest value"),
        Aggregate("mode", "the most frequent value"),
    )
}
