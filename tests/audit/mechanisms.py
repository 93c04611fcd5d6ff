"""What is audited: every mechanism of the kernel, and whole options of the standard library, on neighbouring inputs."""

from __future__ import annotations

import re
import tempfile
from unittest.mock import patch

import numpy as np
from batched import BatchedNoise, Drawn, batched, batched_table, likelihood_ratio, repeated
from branching import Database, branching
from elastic import elastic
from harness import Case, Pair
from refinements import refinements
from sparse import selections

from jostle.accounting.amounts import Amount
from jostle.accounting.composition import quanta
from jostle.noise_laws import Gaussian, Laplace
from jostle.privacy.mechanisms.additive import Additive
from jostle.privacy.mechanisms.least_cost import walk
from jostle.privacy.mechanisms.stability import (
    CANDIDATES,
    LEVELS,
    LOOK,
    SHARES,
    KeyLook,
    KeyRound,
    LargestKeys,
    select_keys,
)
from jostle.simulate import SeededNoise


def _seeds(rng: np.random.Generator) -> tuple[int, int]:
    return int(rng.integers(2**31)), int(rng.integers(2**31))


def _both(one: list[Drawn], other: list[Drawn]) -> Pair:
    return likelihood_ratio(one, one, other), likelihood_ratio(other, one, other)


def priced(program: str, epsilon: float) -> str:
    """A program that spends ε = 1, at another price."""
    found, many = re.subn(r"\bepsilon( =)? 1\b", rf"epsilon\1 {epsilon:g}", program)
    assert many, program
    return found


def on_counts(
    name: str, epsilon: float, program: str, x: list[int], y: list[int], runs: int = 400_000, *,
    measure: str = "epsilon", delta: float = 0.0, secure: bool = False,
) -> Case:  # fmt: skip
    """A program that does not adapt, over two neighbouring count vectors."""

    def draw(runs: int, rng: np.random.Generator) -> Pair:
        found = [
            batched(program, counts, BatchedNoise(runs, seed, secure), measure)
            for counts, seed in zip((x, y), _seeds(rng), strict=True)
        ]
        return _both(*found)

    def at(other: float) -> Case:
        return on_counts(name, other, priced(program, other), x, y, runs, measure=measure, delta=delta, secure=secure)

    return Case(name, epsilon, draw, runs, delta, at=at if epsilon == 1 and not secure else None)


def on_rows(
    name: str, epsilon: float, program: str, x: list[str], y: list[str], clause: str = "rows",
    budget: str = "epsilon 1000", delta: float = 0.0, look: bool = False,
) -> Case:  # fmt: skip
    def draw(runs: int, rng: np.random.Generator) -> Pair:
        with tempfile.TemporaryDirectory() as folder:
            found = [
                batched_table(program, rows, BatchedNoise(runs, seed, False), folder, clause, budget, look=look)
                for rows, seed in zip((x, y), _seeds(rng), strict=True)
            ]
        return _both(*found)

    def at(other: float) -> Case:
        return on_rows(name, other, priced(program, other), x, y, clause, budget, delta, look)

    return Case(name, epsilon, draw, 400_000, delta, at=at if epsilon == 1 else None)


def adaptive(name: str, epsilon: float, setting: str, expression: str, x: list[int], y: list[int], runs: int) -> Case:
    """A program whose later draws depend on earlier ones: run whole, again and again."""

    def draw(runs: int, rng: np.random.Generator) -> Pair:
        a, b = (repeated(setting, expression, c, runs, s) for c, s in zip((x, y), _seeds(rng), strict=True))
        return np.round(a, 6), np.round(b, 6)

    return Case(name, epsilon, draw, runs)


def by_outcomes(name: str, epsilon: float, program: str, x: Database, y: Database, runs: int = 400_000) -> Case:
    """A program whose later draws depend on what it selected: once for each outcome of its selections."""

    def draw(runs: int, rng: np.random.Generator) -> Pair:
        return branching(program, x, y, runs, _seeds(rng)[0])

    return Case(name, epsilon, draw, runs)


def partition(epsilon: float, x: list[int], y: list[int]) -> Case:
    """Walks over many copies of the cells at once: public splits come down to one copy, then each walks by itself."""

    def labels(counts: list[int], runs: int, seed: int) -> np.ndarray:
        copies = 1 << (runs - 1).bit_length()
        noise = SeededNoise(seed)
        found = walk(
            np.tile(np.array(counts), copies), epsilon,
            lambda scale, size: noise.laplace(np.zeros(size, dtype=np.int64), scale),
            public_splits=copies.bit_length() - 1,
        ).reshape(copies, -1)[:runs]  # fmt: skip
        cuts = np.diff(found, axis=1) != 0
        return (cuts * (1 << np.arange(cuts.shape[1]))).sum(axis=1)

    def draw(runs: int, rng: np.random.Generator) -> Pair:
        a, b = _seeds(rng)
        return labels(x, runs, a), labels(y, runs, b)

    return Case(f"least_cost_partition {x} | {y}", epsilon, draw, 400_000)


def stability(epsilon: float, delta: float, kind: type[Laplace | Gaussian] = Laplace, rows: int = 1) -> Case:
    """A key that one person alone has, of as many as there are rows, over many copies of it: shown with probability at
    most δ over these."""

    def draw(runs: int, rng: np.random.Generator) -> Pair:
        tally = np.arange(runs), np.ones(runs, dtype=np.int64)
        how = Additive(Amount("epsilon", quanta(epsilon)), kind, delta=delta)
        shown, _, _ = select_keys(tally, how, SeededNoise(_seeds(rng)[0]), rows, 1)
        one = np.zeros(runs)
        one[np.array(shown, dtype=int)] = 1
        return one, np.zeros(runs)

    return Case(f"stability selection of a lone key of {rows}, {kind.name}", epsilon, draw, 1_000_000, delta / rows)


def found_in_rounds(persons: int, several: int, how: Additive, runs: int, seed: int) -> np.ndarray:
    """How many of their own keys some persons show, in rounds, and a hundredth for each key that is likely; run by
    run, over copies of the keys in one release."""
    known: list[set[tuple[int, int]]] = [set() for _ in range(runs)]
    noise, pairs = SeededNoise(seed), [(run, key) for run in range(runs) for key in range(several)]
    with patch("jostle.privacy.mechanisms.stability.BUCKETS", len(pairs)):
        tally = [(float(at), several) for at in range(len(pairs) * (persons > 0))]
        scores = KeyLook(how, LOOK).scores((tally, np.full(len(tally), persons)), noise)
    likely = (scores > LEVELS[-1]).reshape(runs, several)
    for share in SHARES:
        left = [[key for key in np.flatnonzero(likely[run]) if (run, key) not in known[run]] for run in range(runs)]
        tally = [(run, key, len(keys)) for run, keys in enumerate(left) for key in keys] if persons else []
        one = KeyRound(how, share, several, LEVELS[-1])
        for run, key in one.select((tally, np.full(len(tally), persons)), noise, ()):
            known[run].add((run, key))
    return np.array([float(len(keys)) for keys in known]) + likely.sum(axis=1) / 100


def keys_in_rounds(epsilon: float, kind: type[Laplace | Gaussian], several: int, persons: int, delta: float) -> Case:
    """One person more or less, of some with the same groups. `delta`: all that is asked for."""
    how = Additive(Amount("epsilon", quanta(epsilon)), kind, delta=delta / (2 if kind is Gaussian else 1))

    def draw(runs: int, rng: np.random.Generator) -> Pair:
        one, other = _seeds(rng)
        return (
            found_in_rounds(persons, several, how, runs, one),
            found_in_rounds(persons + 1, several, how, runs, other),
        )

    return Case(f"keys in rounds, {persons} persons of {several}, {kind.name}", epsilon, draw, 40_000, delta)


def chosen_keys(tally: tuple[np.ndarray, np.ndarray], how: LargestKeys, runs: int, seed: int) -> np.ndarray:
    """Which of the first keys were chosen, in their order, as a number, and of others only that there were some."""
    noise = SeededNoise(seed)
    chosen = ((min(int(key), 3) + 1 for key in how.select(tally, noise)) for _ in range(runs))
    return np.array([float(sum(5**place * key for place, key in enumerate(keys))) for keys in chosen])


def largest(name: str, above: list[int], more: list[int], count: int, delta: float) -> Case:
    """The keys with the most rows, so many each above the threshold, and where a person more has some of them. Without
    any, of keys that this person has alone."""
    how = LargestKeys(Amount("epsilon", quanta(1.0)), True, count, 1, delta)

    def draw(runs: int, rng: np.random.Generator) -> Pair:
        there = np.array(above) + how.threshold if above else np.zeros(len(more), dtype=np.int64)
        tallies = [(np.flatnonzero(n), n[n > 0]) for n in (there, there + np.array(more))]
        one, other = (chosen_keys(t, how, runs, seed) for t, seed in zip(tallies, _seeds(rng), strict=True))
        return one, other

    return Case(f"the largest keys, {name}", 1, draw, 60_000, delta)


def largest_of_all() -> list[Case]:
    return [
        largest("one of three", [2, 2, 0], [1, 0, 0], 1, 0.01),
        largest("two of three, of which a person has two", [2, 2, 1], [0, 1, 1], 2, 0.01),
        largest("of one person alone", [], [1] * CANDIDATES, 1, 0.05),
    ]


CHOICE = """
peek = Feature (data) { return {{ select sum(values) from data.database }} }
Low = Option (data) { return sum(laplace(data.database)) }
High = Option (data) { return 100 + sum(laplace(data.database)) }
fits = Utility (data, answers) {
    big = {{ select sum(values) from data.database }} > 4
    return 1 if (answers > 50) == big else 0
}
shapes = { {database: counts([n, n])} for n in [0, 1, 1, 2, 2, 3, 3, 5, 6, 8] }
choose = MkChoiceMaker among {Low, High} informed by {peek} trained on shapes
    using tree(depth = 2) spending 0.5 wrt fits
warm = (choose({database: c}) with epsilon 1)
"""

ZEROS, ONE = [0, 0, 0, 0], [0, 1, 0, 0]
SPREAD, MORE = [3, 1, 0, 2], [3, 1, 1, 2]
QUERIES = "q = prefixes(c)\n"
TOTAL = "n = {{ select sum(values) from c with epsilon 1 }}"
GAUSSIAN = "n = {{ select sum(values) from c with epsilon 1 delta 0.001 }}"
GAUSSIANS = "n = {{ select sum(values) from c groupby x with epsilon 1 delta 0.001 }}"
WEIGHTED = """
n = laplace(c, [{kind: "boxes", lows: [[0], [1]], highs: [[2], [3]], weight: 0.3},
                {kind: "groups", labels: [0, 0, 1, 1], size: 2, weight: 1.7}]) with epsilon 1
"""


WEIGHTS = "who up to 2 rows weighted"


BY_WHO = 'n = {{ select count(v) from t groupby who over ["A", "B"] with epsilon 1 }}'

JOINT = """jointly with epsilon 1 {
    a = {{ select count(*) from t groupby v }}
    b = {{ select sum(v) from t where v > 2 groupby v / 4 as half }}
}"""
RESIDUALS, WITH_DELTA = JOINT.replace("epsilon 1", "epsilon 1 delta 1e-3"), "epsilon 1000, delta 1e-3"


RUNNING = "n = {{ select count(*) from t groupby running(v) with epsilon 1 }}"
RUNNING_SUMS = "n = {{ select sum(7 - v) from t groupby running(v) with epsilon 1 }}"
RUNNING_ROOTS = RUNNING.replace("epsilon 1", "epsilon 1 delta 1e-3")
PERIODS = "\n".join(
    f"n{day} = {{{{ select count(*) from t[period = 2026-01-{day}] with epsilon 1 }}}}" for day in ("05", "12")
)
A_WEEK = ["2026-01-06,3", "2026-01-07,3", "2026-01-11,3"]
WITH_ROOM = ("epsilon 1000, delta 0.9 counted by basic", 1e-3)


def select(aggregate: str, via: str = "") -> str:
    return f"n = {{{{ select {aggregate} from t with epsilon 1{via and f' via {via}'} }}}}"


E_STEP = """
rows = vectors(t, v)
view = {means: [[0.2], [0 - 0.3]], factors: [[[3]], [[2]]], offsets: [0, 0], radius: 1.5}
"""


def rounds_of_em() -> list[Case]:
    """One round on neighbouring rows, in each kind of noise; several rounds out of one purse; a clipped gradient."""
    once = 'n = noisy_moments(rows, "framed", view, shares = [1, 3, 9]) with epsilon 1'
    basic = "epsilon 1000, delta 0.9 counted by basic"
    purse = """
paid = prepaid(rows, epsilon = 1, delta = 0.001)
a = noisy_moments(rows, "framed", view, shares = [1, 3, 9], paid = paid, part = 0.25)
b = noisy_moments(rows, "one", paid = paid, part = 0.5)
c = noisy_sum(rows, "coordinates", bound = 0.5, paid = paid, part = 0.25)
"""
    gradient = 'n = noisy_sum(rows, "logistic_gradient", {target: 0, weights: [2]}, bound = 0.5) with epsilon 1'
    score = 'n = noisy_max(coordinate_scores(rows, "coordinates"), epsilon = 1)'
    fit = 'n = laplace(row_score(rows, "log_density", {means: [[0]], factors: [[[2]]], offsets: [0], low: 0 - 3, '
    fit += "high: 0 - 0.9}, bound = 2)) with epsilon 1"
    shares = """
paid = prepaid(rows, epsilon = 1)
upon = {means: [[0.2], [0.2], [0.2], [0]], factors: [[[9]], [[3]], [[1]], [[1]]], offsets: [0, 1, 0, 0 - 2]}
a = noisy_moments(rows, "responsibilities", upon, shares = [1], paid = paid, part = 0.5)
b = noisy_moments(rows, "responsibilities", upon, shares = [1], paid = paid, part = 0.5)
"""
    turns = """
batches = [vectors(part, v / 7, scaled = false, radius = 1) for part in split_rows(t, 2)]
paid = prepaid(batches, steps = 5, epsilon = 1, delta = 0.001)
n = [noisy_sum(batches, "coordinates", bound = 0.5, paid = paid) for i in 1..5]
"""
    few, more = ["A,3"], ["A,3", "B,7"]
    curve = once + " delta 0.001"
    return [
        on_rows("moments of an E-step, Laplace", 1, E_STEP + once, few, more),
        on_rows("moments of an E-step, exact Gaussian", 1, E_STEP + curve, few, more, budget=basic, delta=0.001),
        on_rows("the same, public size", 1, E_STEP + curve, ["A,0"], ["A,7"], "rows, public size", basic, 0.001),
        on_rows("three rounds out of one purse", 1, E_STEP + purse, few, more, budget=basic, delta=0.001),
        on_rows("five steps of two batches, correlated", 1, turns, few, more, budget=basic, delta=0.001),
        on_rows("shares of Gaussians upon each other, twice", 1, E_STEP + shares, few, more),
        on_rows("a clipped gradient, Laplace", 1, E_STEP + gradient, few, more),
        on_rows("noisy max over coordinates", 1, E_STEP + score, ["A,4"], ["A,4", "B,0"]),
        on_rows("the likelihood of a mixture", 1, E_STEP + fit, ["A,0"], ["A,0", "B,5"]),
    ]  # fmt: skip


# Two columns of 0 and 1: v is 7 for (1, 1), 4 for (1, 0), 0 for (0, 0).
FIELD = 'rows = vectors(t, floor(v / 4), clamp(floor(v / 2) - 2 * floor(v / 4), 0, 1), norm = "sup")\n'
SETTLED = ["A,7"] * 60
"""Rows that the weights below are nearly right about, each with a slope of 0.05: a row that they are wrong about moves
all scores by 0.95, most of them against what the others say."""
FITS = 'use ising\nrows = vectors(c, norm = "sup")\n'


def fields() -> list[Case]:
    """What Ising models and pairwise fields measure: joint sums of pairs, steps of Frank and Wolfe, and whole fits."""
    sums = 'n = noisy_sum(rows, "pair_products", norm = "sup") with epsilon 1'
    tables = 'n = noisy_sum(rows, "indicators", {values: [2, 2]}, bound = 2, norm = "l2") with epsilon 1'
    step = 'n = noisy_max(coordinate_scores(rows, "{}", {})) with epsilon 1'
    weights = "{target: 1, weights: [1.5, 1.5]}"
    any_rows, binary = step.format("logistic_gradient", weights), step.format("ising_gradient", weights)
    pulls = "[[[0, 0], [0, 0]], [[0, 3], [0, 0]]]"
    products = 'n = noisy_sum(rows, "products", bound = 6, norm = "l1") with epsilon 1'
    tests = "{columns: [0], at: [0.5], same: [0]}, bound = 0.5"  # of rows within ±1
    stage = "steps: [[0, 0.5, 0, 0.5]], scale: [-1, -1, 1, 0.001]"
    left = "{columns: [0], at: [0.5], same: [0], " + stage + "}, bound = 0.5"
    signs = step.format("sign_gradient", "{target: 1, values: [2, 2], weights: " + pulls + "}")
    few, more, basic = ["A,7"], ["A,7", "B,4"], "epsilon 1000, delta 0.9 counted by basic"
    wrong = [*SETTLED, "B,4"]
    fits = [
        ("sparse logistic regression, two steps", 'sparse_logistic(rows, "b", 2, rounds = 2, in_all = 1 / 16)'),
        ("Ising model by Frank and Wolfe, a step a node", "ising_fw(rows, 1, rounds = 1, in_all = 1 / 16)"),
        ("pairwise field by Frank and Wolfe, a step a node", "pairwise_fw(rows, 1, rounds = 1, in_all = 1 / 16)"),
    ]  # of two selections each, at sqrt(8 / 16 / 2) = 0.5
    return [
        on_rows("sums of an Ising model, in a cube", 1, FIELD + sums, few, more),
        on_rows("sums of an Ising model, Gaussian", 1, FIELD + sums + " delta 0.001", few, more, "rows", basic, 0.001),
        on_rows("tables of pairs, Laplace", 1, FIELD + tables, few, more),
        on_rows("tables of pairs, Gaussian", 1, FIELD + tables + " delta 0.001", few, more, "rows", basic, 0.001),
        on_rows("sums of products, Laplace", 1, FIELD + products, few, more),
        on_rows("tests that tell a number apart", 1, FIELD + step.format("told_apart", tests), few, more),
        on_rows("tests that tell apart what is left of it", 1, FIELD + step.format("rest_apart", left), few, more),
        on_rows("a step of sparse logistic regression", 1, FIELD + any_rows, SETTLED, wrong),
        on_rows("a step of Frank and Wolfe", 1, FIELD + binary, SETTLED, wrong),
        on_rows("the same, public size", 1, FIELD + binary, [*SETTLED, "B,7"], wrong, "rows, public size"),
        on_rows("a step towards a sign pattern", 1, FIELD + signs, SETTLED, wrong),
        *[by_outcomes(name, 1, f"{FITS}n = {fit}\n", [(1, 1)] * 6, [*[(1, 1)] * 6, (1, 0)]) for name, fit in fits],
    ]  # fmt: skip


def cases() -> list[Case]:
    from graphs import graphs
    from weights import weights

    found = [
        on_counts("laplace, sum(values)", 1, TOTAL, ZEROS, ONE),
        on_counts("laplace, sum(values), secure noise", 1, TOTAL, ZEROS, ONE, 100_000, secure=True),
        on_counts("laplace, a vector", 1, "n = laplace(c) with epsilon 1", SPREAD, MORE),
        on_counts("laplace, weighted strategy", 1, WEIGHTED, SPREAD, MORE),
        on_counts("gaussian, grouped sums", 1, GAUSSIANS, ZEROS, ONE, measure="delta", delta=0.001),
        on_counts(
            "gaussian, secure noise", 1, GAUSSIAN, ZEROS, ONE, 100_000, measure="delta", delta=0.001, secure=True
        ),
        on_counts("max(values)", 1, "n = {{ select max(values) from c with epsilon 1 }}", [2, 2, 1, 0], [2, 3, 1, 0]),
        on_counts("noisy max, monotone", 1, "n = noisy_max([size(c), nonzero(c)]) with epsilon 1", ONE, [0, 2, 0, 0]),
        on_counts(
            "noisy max, not monotone",
            1,
            "n = noisy_max(misfit(c, prefixes(c), [2, -2, 0, 0])) with epsilon 1",
            [1, 0, 0, 0],
            [2, 0, 0, 0],
        ),
        on_counts(
            "noisy max, predicates",
            1,
            "n = noisy_max(misfit(c, predicates(c, x > 0, x != 1, x in {0, 3}), [2, -2, 0, 0])) with epsilon 1",
            [1, 0, 0, 0],
            [1, 0, 0, 1],
        ),
        on_counts(
            "noisy max, secure noise",
            1,
            "n = noisy_max(misfit(c, prefixes(c), [2, -2, 0, 0])) with epsilon 1",
            [1, 0, 0, 0],
            [2, 0, 0, 0],
            100_000,
            secure=True,
        ),
        on_counts(
            "exponential mechanism (Gumbel), ε under δ",
            1,
            "n = noisy_max(misfit(c, prefixes(c), [2, -2, 0, 0])) with epsilon 1",
            [1, 0, 0, 0],
            [2, 0, 0, 0],
            measure="delta",
        ),
        on_counts(
            "score, l1_to_uniform", 1, "n = laplace(l1_to_uniform(c)) with epsilon 1", [8, 0, 0, 0], [9, 0, 0, 0]
        ),
        on_counts("score, total_variation", 1, "n = laplace(total_variation(c)) with epsilon 1", ZEROS, ONE),
        on_counts("score, largest_marginal", 1, "n = laplace(largest_marginal(c)) with epsilon 1", ZEROS, ONE),
        on_counts("score, l2", 1, "n = laplace(l2(c)) with epsilon 1", ZEROS, ONE),
        on_rows("laplace, sum(v)", 1, select("sum(v)"), ["A,3"], ["A,3", "B,7"]),
        on_rows("laplace, sum(v), after a look at its cells", 1, select("sum(v)"), ["A,3"], ["A,3", "B,99"], look=True),
        on_rows("count by who, after looks at two columns", 1, BY_WHO, ["A,3"], ["A,3", "A,99"], look=True),
        on_rows("avg(v)", 1, select("avg(v)"), ["A,3"], ["A,3", "B,7"]),
        on_rows("running counts, by a tree", 1, RUNNING, ["A,3"], ["A,3", "B,0"]),
        on_rows(
            "running sums, of two rows of a person", 1, RUNNING_SUMS, ["A,3"], ["A,3", "B,0", "B,2"], "who up to 2 rows"
        ),
        on_rows("running counts, by square roots", 1, RUNNING_ROOTS, ["A,3"], ["A,3", "B,0"], "rows", *WITH_ROOM),
        on_rows(
            "counts of two weeks, of two rows of a person in one",
            1,
            PERIODS,
            ["2026-01-12,3"],
            ["2026-01-12,3", *A_WEEK],
            "v up to 2 rows",
            "epsilon 1000 each week of who",
        ),
        on_rows("stddev(v)", 1, select("stddev(v)"), ["A,3"], ["A,3", "B,7"]),
        on_rows(
            "count, sum, avg, var, stddev of v, of one purchase",
            1,
            select("count(v), sum(v), avg(v), var(v), stddev(v)"),
            ["A,3"],
            ["A,3", "B,7"],
        ),
        on_rows("covariance(v, 9 - v)", 1, select("covariance(v, 9 - v)"), ["A,3"], ["A,3", "B,7"]),
        on_rows("quantile, median(v)", 1, select("median(v)", "selection"), ["A,0"] * 3, ["A,0"] * 4),
        on_rows("quantile, q = 0.9", 1, select("quantile(v, 0.9)", "selection"), ["A,0"], ["A,0", "B,7"]),
        by_outcomes(
            "quantile with its error",
            1,
            "n = {{ select median(7 * a) from c with epsilon 1 }}",
            [(0,)] * 3,
            [(0,)] * 4,
        ),
        by_outcomes(
            "quantile with an interval",
            1,
            "n = {{ select median(7 * a) from c with epsilon 1 via interval }}",
            [(0,)] * 3,
            [(0,)] * 4,
        ),
        on_rows("bounds(v)", 1, select("bounds(v)"), ["A,3"], ["A,3", "B,7"]),
        on_rows("bounds, two rows of weight 1 in all", 1, select("bounds(v)"), ["A,3"], ["A,3", "B,7", "B,0"], WEIGHTS),
        on_rows("mode(v)", 1, select("mode(v)"), ["A,5"] * 2, ["A,5", "A,5", "B,3"]),
        on_rows(
            "count by person, two rows",
            1,
            select("count(*)"),
            ["A,3"],
            ["A,3", "B,3", "B,3", "B,5"],
            "who up to 2 rows",
        ),
        on_rows("sum(v), two rows of weight 1 in all", 1, select("sum(v)"), ["A,3"], ["A,3", "B,7", "B,7"], WEIGHTS),
        on_rows(
            "a vector, two rows of weight 1 in all",
            1,
            "n = laplace(histogram(t, x = v)) with epsilon 1",
            ["A,3"],
            ["A,3", "B,3", "B,5"],
            WEIGHTS,
        ),
        on_rows("a joint block", 1, JOINT, ["A,3"], ["A,3", "B,7"]),
        on_rows("a joint block of residuals", 1, RESIDUALS, ["A,3"], ["A,3", "B,7"], budget=WITH_DELTA, delta=1e-3),
        on_rows("mode(v), two rows of weight 1 in all", 1, select("mode(v)"), ["A,5"], ["A,5", "B,3", "B,3"], WEIGHTS),
        on_rows("mode, public size", 1, select("mode(v)"), ["A,3"], ["A,5"], "rows, public size"),
        on_rows(
            "self-join, up to 1",
            1,
            "n = {{ select count(*) from t join t on v up to 1 with epsilon 1 }}",
            ["A,3"],
            ["A,3", "B,5"],
        ),
        *elastic(),
        *selections(),
        *refinements(),
        *weights(),
        *rounds_of_em(),
        *fields(),
        *graphs(),
        partition(0.5, ZEROS, ONE),
        partition(1, ZEROS, ONE),
        partition(2, ZEROS, ONE),
        partition(1, [0, 4, 0, 0], [0, 5, 0, 0]),
        partition(1, [0, 0, 6, 6, 0, 0, 1, 0], [0, 0, 6, 7, 0, 0, 1, 0]),
        stability(1, 0.01),
        stability(1, 0.01, Gaussian, 4),
        *largest_of_all(),
        keys_in_rounds(1, Laplace, 1, 6, 0.02),
        keys_in_rounds(1, Gaussian, 3, 6, 0.02),
        keys_in_rounds(1, Gaussian, 4, 0, 0.02),
    ]
    for epsilon in (0.5, 1, 2):
        for option in ("flat", "uniform", "hb", "hdmm"):
            program = QUERIES + f"n = {option}(c, q) with epsilon {epsilon}"
            found.append(on_counts(f"option {option}", epsilon, program, ZEROS, ONE))
        for option, cells, other in (("dawa(c, q)", ZEROS * 4, [*ONE, *ZEROS * 3]), ("mwem(c, q, 2)", ZEROS, ONE)):
            program = f"use histograms\n{QUERIES}n = {option} with epsilon {epsilon}\n"
            found.append(by_outcomes(f"option {option[:4]}", epsilon, program, cells, other))
    value = "(choose({database: c}) with epsilon 1)"
    found.append(adaptive("a choice with a paid feature", 1, CHOICE, value, [1, 1], [2, 1], 30_000))
    return found
