"""Counts of joins without a bound, with noise as wide as the data need it: those of the language, and wrong ones."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from unittest import mock

import numpy as np
from batched import BatchedNoise, Drawn, likelihood_ratio
from harness import Case, Pair

from jostle.accounting.amounts import Amount
from jostle.accounting.composition import quanta
from jostle.accounting.definitions import Measure
from jostle.privacy.kernel import exposures
from jostle.privacy.measurements.smooth import Smooth, peak
from jostle.source import Source
from jostle.tools.session import Session

Rows = Sequence[tuple[str, int]]
DECLARED = """
private a = table("a.csv") described by {{k: text, v: 0..1}} protecting rows budget epsilon 1000, delta 0.9 {0}
private b = table("b.csv") described by {{k: text, w: 0..1}} protecting rows budget epsilon 1000, delta 0.9 {0}
"""


def _drawn(program: str, a: Rows, b: Rows, noise: BatchedNoise, counted: str) -> list[Drawn]:
    with tempfile.TemporaryDirectory() as folder:
        for name, header, rows in (("a", "k,v", a), ("b", "k,w", b)):
            (Path(folder) / f"{name}.csv").write_text("\n".join([header, *(f"{k},{v}" for k, v in rows)]) + "\n")
        with mock.patch.object(exposures, "SecureNoise", lambda: noise):
            result = Session(cwd=Path(folder)).attempt(Source("audit.jst", DECLARED.format(counted) + program))
    if not result.ok:
        raise RuntimeError(result.diagnostics)
    return noise.drawn


def _both(one: list[Drawn], other: list[Drawn]) -> Pair:
    return likelihood_ratio(one, one, other), likelihood_ratio(other, one, other)


def _case(
    name: str, epsilon: float, delta: float, joined: str, one: tuple[Rows, Rows], other: tuple[Rows, Rows],
    runs: int = 400_000, *, secure: bool = False, counted: str = "counted by basic",
) -> Case:  # fmt: skip
    """The scale as it is told and the noisy counts together, over two tables of which one has a row more."""
    program = f"n = {{{{ select count(*) as n from {joined} with epsilon {epsilon:g} delta {delta:g} via smooth }}}}"

    def draw(runs: int, rng: np.random.Generator) -> Pair:
        seeds = [int(rng.integers(2**31)) for _ in range(2)]
        found = [
            _drawn(program, *tables, BatchedNoise(runs, seed, secure), counted)
            for tables, seed in zip((one, other), seeds, strict=True)
        ]
        return _both(*found)

    def at(price: float) -> Case:
        return _case(name, price, delta, joined, one, other, runs, secure=secure, counted=counted)

    return Case(name, epsilon, draw, runs, delta, at=at if epsilon == 1 and not secure else None)


def _rows(many: int, v: int = 0) -> list[tuple[str, int]]:
    return [("x", v)] * many


def elastic() -> list[Case]:
    """Near 1/β rows of a key the scale moves as fast as it may, and the count by as much as the scale is made for."""
    plain, itself = "a join b on k", "a as c join a as d on c.k = d.k"
    near = (_rows(20), _rows(20)), (_rows(21), _rows(20))
    few = (_rows(9), _rows(9)), (_rows(10), _rows(9))
    return [
        _case("via smooth, two tables", 1, 0.001, plain, *near),
        _case("via smooth, counted in zCDP", 1, 0.001, plain, *near, counted=""),
        _case("via smooth, a key that nobody had", 1, 0.001, plain, ([], _rows(1)), (_rows(1), _rows(1))),
        _case("via smooth, secure noise", 1, 0.001, plain, *near, 100_000, secure=True),
        _case("via smooth, a table with itself", 1, 0.001, itself, (_rows(20), []), (_rows(21), [])),
        _case("via smooth, in groups", 1, 0.01, f"{plain} groupby v", *near),
        _case("via smooth, three tables", 1, 0.01, f"{plain} join a as c on k", *few),
    ]  # fmt: skip


# Broken ones -----------------------------------------------------------------------------------------

Wrong = Callable[[float, int], tuple[int, float]]
"""Of β and how many rows of a key are there: the count, and what is taken for S."""


def _broken(
    name: str, epsilon: float, delta: float, wrong: Wrong, rows: int, told: bool = True, runs: int = 400_000
) -> Case:
    """The noise of the kernel for what is wrongly taken for S; without `told` the scale is not."""
    amount = Amount("epsilon", quanta(epsilon, "epsilon"), quanta(delta, "delta"))
    how = Smooth.within(amount, [Measure("basic", amount)], 1)

    def drawn(many: int, runs: int, seed: int) -> list[Drawn]:
        noise = BatchedNoise(runs, seed, False)
        count, smooth = wrong(how.beta, many)
        how.draw(noise, np.array([count]), smooth)  # type: ignore[arg-type]
        return noise.drawn if told else noise.drawn[1:]

    def draw(runs: int, rng: np.random.Generator) -> Pair:
        return _both(*(drawn(many, runs, int(rng.integers(2**31))) for many in (rows, rows + 1)))

    return Case(name, epsilon, draw, runs, delta, broken=True)


def unsmoothed(beta: float, many: int) -> tuple[int, float]:
    """The elastic sensitivity of these data itself."""
    return many, max(1, many)


def half_as_smooth(beta: float, many: int) -> tuple[int, float]:
    """Smooth for 2β; the other table has as many rows of the key as this one had before."""
    return many * HALF_AS_SMOOTH, max(peak([(many, 1)], 2 * beta), peak([(HALF_AS_SMOOTH, 1)], 2 * beta))


HALF_AS_SMOOTH = 6


def filtered_once(beta: float, many: int) -> tuple[int, float]:
    """A table with its part, of no row and of one, where 200 others have the key; frequencies are those of the part."""
    return 200 * many + many, 2 * peak([(many, 1)], beta) + 1


def as_two_tables(beta: float, many: int) -> tuple[int, float]:
    """A table with itself, for which the larger frequency of the two sides is taken."""
    return many**2, peak([(many, 1)], beta)


def broken_elastic() -> list[Case]:
    return [
        _broken("elastic sensitivity that is not smooth", 1, 0.001, unsmoothed, 1, told=False),
        _broken("smooth noise with twice its beta", 1, 0.01, half_as_smooth, HALF_AS_SMOOTH, runs=3_000_000),
        _broken("frequencies after a filter of one side", 1, 0.001, filtered_once, 0),
        _broken("a table with itself, counted as two", 4, 0.001, as_two_tables, 12, runs=1_000_000),
    ]
