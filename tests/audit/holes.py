"""Specimens of holes that were found in this package or looked for: each the old behaviour in a few lines.

The first ten stand alone: what one row did to a batch, a file, a process or an account. The last three are the package
itself, broken where it stands: a bound that lets through what it does not know, a door that reads before it charges,
and shares that are ignored.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from typing import Any
from unittest.mock import patch

import numpy as np
from batched import BatchedNoise, batched, batched_table, likelihood_ratio
from harness import Case, Pair
from mechanisms import keys_in_rounds, largest

from jostle.accounting.amounts import QUANTA
from jostle.noise_laws import Gaussian
from jostle.privacy.kernel.handles import Table
from jostle.privacy.kernel.kernel import Kernel
from jostle.privacy.kernel.measurement import common_noise
from jostle.privacy.measurements.choices import NoisyScore
from jostle.privacy.measurements.joint import Block, JointBlocks, KeyAxis
from jostle.privacy.mechanisms.additive import Additive, Linear
from jostle.privacy.mechanisms.stability import WEIGHT_BITS, KeyLook, LargestKeys
from jostle.records import replace

Sampler = Callable[[np.ndarray, int, np.random.Generator], np.ndarray]
Rows = np.ndarray
LEAST = 1e-12
"""The smallest amount that can be charged."""


def noisy(exact: float, runs: int, rng: np.random.Generator) -> np.ndarray:
    return np.round(exact + rng.laplace(0, 1.0, runs), 3)


def one_value_short(rows: Rows, runs: int, rng: np.random.Generator) -> np.ndarray:
    """A model's table has no entry for the last value: the query fails where a row has it."""
    table = np.array([0.0, 1.0])
    try:
        return noisy(table[rows.astype(int)].sum(), runs, rng) > 0
    except IndexError:
        return np.full(runs, 2.0)


def tried_on_two_rows(rows: Rows, runs: int, rng: np.random.Generator) -> np.ndarray:
    """Parameters were tried on two rows, and are put beside any number of them."""
    try:
        return noisy((rows + np.array([0.0, 1.0])).sum(), runs, rng) > 0
    except ValueError:
        return np.full(runs, 2.0)


def unsorted_edges(rows: Rows, runs: int, rng: np.random.Generator) -> np.ndarray:
    """Rows of a shell are counted by a search that goes on from the row before, as NumPy's did before 2.5, among edges
    that do not rise."""
    edges = [3.0, 5.0, 1.0, 7.0, 6.0, 4.0, 2.0]
    places, low, high, last = [], 0, len(edges), rows[0]
    for row in rows:
        low, high = (low, len(edges)) if last < row else (0, min(high + 1, len(edges)))
        last = row
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if edges[middle] < row else (low, middle)
        places.append(low)
    return noisy(places.count(3), runs, rng)


def beyond_doubles(rows: Rows, runs: int, rng: np.random.Generator) -> np.ndarray:
    """Partial sums outgrow 2^53, and are rounded to a grid that goes by the number of rows."""
    units = 2.0**52
    grid = 2.0 ** np.ceil(np.log2(len(rows) * units)) / 2**7
    return noisy((np.rint(rows * units / grid) * grid).sum() / units, runs, rng)


def a_read_that_throws(rows: Rows, runs: int, rng: np.random.Generator) -> np.ndarray:
    """A cell that does not fit its type (here −1) makes the read fail, after the charge."""
    return np.full(runs, 2.0) if (rows < 0).any() else noisy(len(rows), runs, rng) > 0


def a_file_that_turns(rows: Rows, runs: int, rng: np.random.Generator) -> np.ndarray:
    """A cell that is no text (here −1) turns another column of the whole file into none."""
    return noisy(0 if (rows < 0).any() else len(rows), runs, rng)


def forked_purse(rows: Rows, runs: int, rng: np.random.Generator) -> np.ndarray:
    """Eight processes each have what was paid for once."""
    return np.round(len(rows) + rng.laplace(0, 1.0, (runs, 8)).mean(axis=1), 3)


def a_file_that_moves(rows: Rows, runs: int, rng: np.random.Generator) -> np.ndarray:
    """A person has one row in the file that was looked at, and a hundred in the one that is read."""
    return noisy(100 * len(rows), runs, rng)


def mixed_handles(rows: Rows, runs: int, rng: np.random.Generator) -> np.ndarray:
    """Two handles of one source, one of which a row raises and the other it lowers, priced as for one."""
    scores = np.array([len(rows), 10 - len(rows)])
    return np.argmax(scores + rng.exponential(1.0, (runs, 2)), axis=1)


def rho_for_delta(rows: Rows, runs: int, rng: np.random.Generator) -> np.ndarray:
    """All of δ turns ρ into ε, and finds open keys besides: Gaussian noise that has (1, 0.02), and a lone key shown."""
    from scipy.optimize import brentq
    from scipy.stats import norm

    mu = brentq(lambda m: norm.cdf(m / 2 - 1 / m) - np.e * norm.cdf(-m / 2 - 1 / m) - 0.02, 0.05, 5)
    answers = rng.normal(0, 1, runs) + mu * len(rows)
    keys = (rng.random(runs) < 0.02) & (len(rows) > 0)
    return (keys | (answers > mu / 2 + 1 / mu)).astype(float)  # where Gaussian noise alone loses more than 1


def _case(name: str, epsilon: float, sample: Sampler, x: list[float], y: list[float], delta: float = 0.0) -> Case:
    def draw(runs: int, rng: np.random.Generator) -> Pair:
        return sample(np.array(x), runs, rng).astype(float), sample(np.array(y), runs, rng).astype(float)

    return Case(name, epsilon, draw, 400_000, delta, broken=True)


# Of the package itself -------------------------------------------------------------------------------

PROGRAM = "n = laplace(size(c)) with epsilon 0.4"


def certified(program: str) -> float:
    """The ε that the static bound certifies for a program over counts `c`, if it takes `laplace` for harmless."""
    from jostle.language.builtins import BUILTINS, Effect
    from jostle.source import Source
    from jostle.tools.session import Session

    declared = 'private c = bound("c") protecting rows budget epsilon 1\n'
    with patch.dict(BUILTINS, laplace=replace(BUILTINS["laplace"], effect=Effect.PURE)):
        (cost,) = Session().costs(Source("audit.jst", declared + program))
    return float(cost.bound) / QUANTA


def open_bound() -> Case:
    """A program is run because a static bound says that it loses nothing: one that ignores what it does not know."""

    def draw(runs: int, rng: np.random.Generator) -> Pair:
        one, other = (batched(PROGRAM, counts, BatchedNoise(runs, 1, False)) for counts in ([3, 1], [3, 2]))
        return likelihood_ratio(one, one, other), likelihood_ratio(other, one, other)

    return Case("a static bound that ignores what it does not know", certified(PROGRAM), draw, 400_000, broken=True)


def keys_that_weigh_one() -> Case:
    """Keys in rounds, of persons who give 1 to each of 64 groups, and not to all of them together."""

    def draw(runs: int, rng: np.random.Generator) -> Pair:
        with patch.object(KeyLook, "weight", lambda round, groups: 1 << WEIGHT_BITS):
            return keys_in_rounds(1, Gaussian, 64, 12, 0.02).draw(runs, rng)

    return Case("keys whose weights are 1 each", 1, draw, 8_000, 0.02, broken=True)


def keys_likely_by_exact_weights() -> Case:
    """Keys in rounds, where those count whose bucket has an exact weight above a level: of ten persons, not of nine."""

    def scores(look: KeyLook, tally: tuple[Any, Any], noise: Any) -> np.ndarray:
        return np.array(list(look.weights(tally).values())) / 2**WEIGHT_BITS / look.linear.law.scale

    def draw(runs: int, rng: np.random.Generator) -> Pair:
        with patch.object(KeyLook, "scores", scores):
            return keys_in_rounds(1, Gaussian, 3, 9, 0.02).draw(runs, rng)

    return Case("keys that are likely by exact weights", 1, draw, 8_000, 0.02, broken=True)


def keys_above_an_exact_threshold() -> Case:
    """The largest keys, chosen with noise from those whose own rows are above a threshold that has none."""

    def select(how: LargestKeys, tally: tuple[np.ndarray, np.ndarray], noise: Any) -> list[Any]:
        keys, scores = tally[0][tally[1] > how.threshold], tally[1][tally[1] > how.threshold]
        return [] if not keys.size else [keys[noise.gumbel_max(scores, how.width)]]

    def draw(runs: int, rng: np.random.Generator) -> Pair:
        with patch.object(LargestKeys, "select", select):
            return largest("", [0, 0, 0], [1, 0, 0], 1, 0.01).draw(runs, rng)

    return Case("the largest keys, above an exact threshold", 1, draw, 8_000, 0.01, broken=True)


def reads_first(kernel: Any, measurement: Any, span: Any = None) -> Any:
    """`Kernel.measure` in another order: what reading says is told before anything is charged."""
    exact = measurement.read(kernel._reader)
    kernel._pay(measurement, span)
    return measurement.finish(measurement.release(exact, common_noise(measurement.exposures)).value)


_read = NoisyScore.read


def fails_on_a_row(measurement: Any, reader: Any) -> Any:
    """A reading that fails where a row is, as one did whose cell did not fit its type."""
    exact = _read(measurement, reader)
    if exact[0].any():
        raise OverflowError("a cell does not fit")
    return exact


def door_that_reads_first() -> Case:
    """Whether a program was answered, of a reading that fails on a row, behind a door that reads before it charges."""

    def answers(counts: list[int], runs: int) -> np.ndarray:
        with patch.object(NoisyScore, "read", fails_on_a_row), patch.object(Kernel, "measure", reads_first):
            try:
                (drawn,) = batched(PROGRAM, counts, BatchedNoise(runs, 1, False))
            except RuntimeError:  # refused, with a message
                return np.full(runs, -1.0)
        return np.asarray(drawn.outcomes[:, 0] > 2, dtype=float)

    def draw(runs: int, rng: np.random.Generator) -> Pair:
        return answers([0, 0], runs), answers([0, 1], runs)

    return Case("a door that reads before it charges", 0.4, draw, 400_000, broken=True)


def shares_that_are_ignored() -> Case:
    """A joint block whose every part has noise as if the whole amount were its own."""
    program = "jointly with epsilon 1 { a = {{ select count(*) from t where v > 2 groupby v }}\n"
    program += "b = {{ select sum(v) from t }} }"

    vector = JointBlocks.vector

    def of_all(table: Table, axes: Sequence[KeyAxis], block: Block, how: Additive, share: float) -> Linear:
        return vector(table, axes, block, how, 1.0)

    def draw(runs: int, rng: np.random.Generator) -> Pair:
        with tempfile.TemporaryDirectory() as folder, patch.object(JointBlocks, "vector", of_all):
            one, other = (
                batched_table(program, rows, BatchedNoise(runs, seed, False), folder)
                for seed, rows in enumerate((["A,3"], ["A,3", "B,7"]))
            )
        return likelihood_ratio(one, one, other), likelihood_ratio(other, one, other)

    return Case("a joint block that ignores its shares", 1, draw, 400_000, broken=True)


def holes() -> list[Case]:
    people = [0.0] * 20
    return [
        _case("a table one value short", LEAST, one_value_short, [0, 1, 1], [0, 1, 1, 2]),
        _case("parameters tried on two rows", LEAST, tried_on_two_rows, [0, 1], [0, 1, 1]),
        _case("a search among unsorted edges", 1, unsorted_edges, [4.5] * 50, [6.5, *[4.5] * 50]),
        _case("a product beyond doubles", 1, beyond_doubles, [0.3] * 64, [0.3] * 65),
        _case("a read that a row makes fail", LEAST, a_read_that_throws, people, [*people, -1]),
        _case("a file that one row turns", 1, a_file_that_turns, people, [*people, -1]),
        _case("a prepaid amount in eight processes", 1, forked_purse, people, [*people, 0]),
        _case("a file that moves between two looks", 1, a_file_that_moves, people, [*people, 0]),
        _case("two handles in one selection", 1, mixed_handles, [0.0] * 5, [0.0] * 6),
        _case("ρ and δ traded for each other", 1, rho_for_delta, [], [0], 0.02),
        open_bound(),
        keys_that_weigh_one(),
        keys_likely_by_exact_weights(),
        keys_above_an_exact_threshold(),
        door_that_reads_first(),
        shares_that_are_ignored(),
    ]
