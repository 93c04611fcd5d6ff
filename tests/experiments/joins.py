"""`python -m tests.experiments.joins`: how far off counts of joins are, `via smooth` and `up to m`.

Keys and how often each is there are made up, but for the shop's (`programs/data`); answers are drawn by the mechanisms
themselves. Of `up to m` the best m is told too, as only somebody knows who has seen the data.
"""

from __future__ import annotations

import csv
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from jostle.accounting.amounts import Amount
from jostle.accounting.composition import quanta
from jostle.accounting.definitions import Measure
from jostle.error_laws import SmoothLaplaceErrors
from jostle.privacy.measurements.smooth import Smooth, smoothed
from jostle.privacy.transformations.joins import Product
from jostle.simulate import SeededNoise

DATA = Path(__file__).resolve().parents[2] / "programs" / "data"
DELTA, RUNS, SEED = 1e-6, 10_000, 5
BOUNDS = (1, 2, 3, 5, 8, 10, 15, 20, 30, 50, 100, 200, 500, 1000, 2000)


@dataclass(frozen=True)
class Join:
    """Tables by how many rows they have of each key; of a chain, the count and its frequencies are told apart."""

    name: str
    left: np.ndarray
    right: np.ndarray

    @property
    def count(self) -> int:
        return int((self.left * self.right).sum())

    @property
    def frequencies(self) -> tuple[int, int]:
        return int(self.left.max()), int(self.right.max())

    def smooth(self, beta: float) -> float:
        """S of two tables of two sources."""
        return smoothed([[Product(1, (1,))], [Product(1, (0,))]], self.frequencies, [(1, 0), (0, 1)], beta)

    def cut(self, most: int) -> int:
        return int((np.minimum(self.left, most) * np.minimum(self.right, most)).sum())


def joins() -> list[Join]:
    rng = np.random.default_rng(SEED)
    ones, many = np.ones(1_000, dtype=np.int64), 1 / np.arange(1, 1_001)
    some = np.where(rng.permutation(150_000) < 100_000, rng.poisson(15, 150_000), 0)
    return [
        Join("even: 1,000 keys once, with 8 rows each in the mean", ones, rng.poisson(8, 1_000)),
        Join("skewed: the same, by 1/i", ones, rng.multinomial(8_000, many / many.sum())),
        Join("both sides: 1,000 keys, 5 rows each on either", rng.poisson(5, 1_000), rng.poisson(5, 1_000)),
        shop(),
        Join("TPC-H's shape: 150,000 customers, 1.5 million orders", np.ones(150_000, dtype=np.int64), some),
    ]


def shop() -> Join:
    with (DATA / "customers.csv").open(encoding="utf-8") as file:
        known = Counter(row["id"] for row in csv.DictReader(file))
    with (DATA / "orders.csv").open(encoding="utf-8") as file:
        orders = Counter(row["customer"] for row in csv.DictReader(file))
    keys = sorted(known | orders)
    left, right = (np.array([of[key] for key in keys]) for of in (known, orders))
    return Join("the shop of `programs/data`", left, right)


def median_error(count: int, answers: np.ndarray) -> float:
    return float(np.median(np.abs(answers - count))) / count


def line(join: Join, epsilon: float, noise: SeededNoise) -> list[str]:
    amount = Amount("epsilon", quanta(epsilon, "epsilon"), quanta(DELTA, "delta"))
    how = Smooth.within(amount, [Measure("basic", amount)], 1)
    drawn = [how.draw(noise, np.array([join.count]), join.smooth(how.beta)) for _ in range(RUNS)]
    answers, told = np.array([noisy[0] for noisy, _ in drawn]), np.array([scale for _, scale in drawn])
    wide = SmoothLaplaceErrors(1.0).half_width() * told
    held = float((np.abs(answers - join.count) <= wide).mean())
    cut = {
        m: median_error(join.count, noise.laplace(np.full(RUNS, join.cut(m)), 2 * m / epsilon))
        for m in (*BOUNDS, max(join.frequencies))
    }
    best = min(cut, key=lambda m: cut[m])
    least, most = (cut[min(BOUNDS, key=lambda m: abs(m - best * by))] for by in (0.3, 3))
    shown = [median_error(join.count, answers), float(np.median(wide)) / join.count]
    of_cuts = [cut[best], least, most, cut[max(join.frequencies)]]
    return [f"{epsilon:g}", *map(per_cent, shown), f"{100 * held:.1f} %", f"{best}", *map(per_cent, of_cuts)]


def per_cent(share: float) -> str:
    return f"{float(f'{100 * share:.2g}'):g} %"


def chain(epsilon: float, noise: SeededNoise) -> list[str]:
    """Customers, orders and items of TPC-H's shape, each of a source of its own: the paper's S beside ours."""
    amount = Amount("epsilon", quanta(epsilon, "epsilon"), quanta(DELTA, "delta"))
    how = Smooth.within(amount, [Measure("basic", amount)], 1)
    count, orders, items = 6_000_000, 35, 7
    grows = [(1, 0, 0), (0, 1, 0), (0, 1, 0), (0, 0, 1)]  # customers by id, orders by customer and by number, items
    moves = [[Product(1, (1, 3))], [Product(1, (0, 3))], [Product(1, (2, 0))]]
    ours = smoothed(moves, [1, orders, 1, items], grows, how.beta)
    together = smoothed(moves, [1, orders, 1, items], [(1, 1, 1)] * 4, how.beta)
    rows = []
    for smooth in (ours, together):
        answers = np.array([how.draw(noise, np.array([count]), smooth)[0][0] for _ in range(RUNS)])
        rows += [f"{smooth:,.0f}", per_cent(median_error(count, answers))]
    return [f"{epsilon:g}", *rows]


def main() -> None:
    noise = SeededNoise(SEED)
    for join in joins():
        frequencies = " and ".join(map(str, join.frequencies))
        print(f"\n## {join.name}: {join.count:,} pairs; most rows of a key {frequencies}\n")
        print(
            "| ε | `via smooth` | its ± | ± holds | best m | `up to` it | a third of it | thrice | the most there are |"
        )
        print("|---|---|---|---|---|---|---|---|---|")
        for epsilon in (0.1, 1.0, 4.0):
            print("| " + " | ".join(line(join, epsilon, noise)) + " |", flush=True)
    print("\n## A chain of three tables\n\n| ε | S | error | S, one n for all | error |\n|---|---|---|---|---|")
    for epsilon in (0.1, 1.0, 4.0):
        print("| " + " | ".join(chain(epsilon, noise)) + " |", flush=True)


if __name__ == "__main__":
    main()
