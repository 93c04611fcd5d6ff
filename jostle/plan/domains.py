"""Domains: what is publicly known of the values of a column."""

from __future__ import annotations

from msgspec import Struct


class Integer(Struct, frozen=True, cache_hash=True):
    """A bounded integer, both ends included; values are floored, then clamped."""

    low: int
    high: int


class Real(Struct, frozen=True, cache_hash=True):
    """A bounded real, both ends included; values are clamped."""

    low: float
    high: float


class Categories(Struct, frozen=True, cache_hash=True):
    """A finite set of public values, all text or all numbers; anything else becomes null."""

    values: tuple[str, ...] | tuple[float, ...]


class Moments(Struct, frozen=True, cache_hash=True):
    """Dates or times between two, both included, as whole days or microseconds since 1 January 1970.

    Values are clamped, then taken down to the first one of their `unit`: a day for dates and nothing for times where
    it is empty. Both ends are such first ones.
    """

    kind: str  # `date` or `time`
    low: int
    high: int
    unit: str = ""


class Open(Struct, frozen=True, cache_hash=True):
    """No public bound: `text`, `integer`, `real`, `date` or `time`; or `boolean`, true and false, which are public."""

    kind: str


Domain = Integer | Real | Categories | Moments | Open


def listed(domain: Domain) -> tuple[str | float | bool, ...] | None:
    """The public values of a column, where there are finitely many: numbers as doubles."""
    if domain == Open("boolean"):
        return (False, True)
    if isinstance(domain, Categories):
        return tuple(domain.values)
    if isinstance(domain, Integer):
        return tuple(float(value) for value in range(domain.low, domain.high + 1))
    return None


def many_listed(domain: Domain) -> int | None:
    """How many values it lists, without listing them."""
    if isinstance(domain, Integer):
        return domain.high - domain.low + 1
    finite = listed(domain)
    return None if finite is None else len(finite)
