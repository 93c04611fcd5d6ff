"""Whether choosing node by node pays in the tree of Figure 4.5: a copy of it in NumPy, on synthetic tables.

    python -m tests.experiments.figure_4_5_nodes [--tables 41]

Every fixed way (3 rules to stop × 4 splits) and 60 rules that change their way at a node by what is known there: the
rows expected in it times epsilon, for each class, above or below a threshold. Each is run twice on every table, at five
epsilons and two numbers of rows. For each of these the best fixed way and the best rule are found on the other tables
and judged on the one left out. Printed: the accuracy in %, the gain of the rule in points with its 95 % interval over
tables, the same in sample, which flatters it, and the deviation of one run from the next. The last lines: the gain of
rules over all, and that of taking the fixed way by epsilon and rows over taking one always.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
EPSILONS, ROWS, HELD_OUT = (0.05, 0.1, 0.5, 1.0, 4.0), (500, 5000), 2000
STOPS, SPLITS = ("thin below", "never soon", "too small"), ("max", "gini", "entropy", "chance")
THRESHOLDS, DEEPEST, FEWEST = (3, 10, 30, 100, 300), 4, 20
Way = tuple[str, str]
Rule = Callable[[float], Way]
"""From the signal at a node, rows expected there × epsilon left / classes, to when to stop and how to split."""


@dataclass
class Table:
    """Rows to learn from and rows to be judged on: `x` (n, k) places of values, `y` (n,) classes."""

    x: Array
    y: Array
    test_x: Array
    test_y: Array
    values: Array
    classes: int


def made(kind: str, r: np.random.Generator) -> Table:
    """A table of 4 to 8 attributes: classes by a tree, by weights of all attributes, or by patterns in a part of it."""
    k, n = int(r.integers(4, 9)), max(ROWS) + HELD_OUT
    values, classes = r.integers(2, 6, k), int(r.integers(2, 5))
    x = np.stack([r.choice(d, n, p=r.dirichlet(np.full(d, 2.0))) for d in values], 1)
    y = np.zeros(n, int)
    if kind == "tree":
        _label(x, y, np.arange(n), int(r.integers(1, 5)), frozenset(), values, classes, r)
    elif kind == "weights":
        s = np.zeros((n, classes))
        for a in range(k):
            if r.random() < 0.7:
                s += r.normal(0, 1, (values[a], classes))[x[:, a]]
        s = s * r.uniform(0.7, 2)
        p = np.exp(s - s.max(1, keepdims=True))
        p /= p.sum(1, keepdims=True)
        y = (p.cumsum(1) > r.random(n)[:, None]).argmax(1)
    else:
        root = int(r.integers(k))
        for v in range(values[root]):
            m = x[:, root] == v
            if r.random() < 0.5:
                y[m] = r.choice(classes, m.sum(), p=r.dirichlet(np.full(classes, 0.2)))
                continue
            a = r.choice([i for i in range(k) if i != root])
            b = r.choice([i for i in range(k) if i not in (root, a)])
            q = r.integers(0, classes, (values[a], values[b]))[x[m, a], x[m, b]]
            flip = r.random(m.sum()) < 0.15
            q[flip] = r.integers(0, classes, flip.sum())
            y[m] = q
    cut = max(ROWS)
    return Table(x[:cut], y[:cut], x[cut:], y[cut:], values, classes)


def _label(x: Array, y: Array, rows: Array, depth: int, used: frozenset[int], values: Array, classes: int,
           r: np.random.Generator) -> None:  # fmt: skip
    if depth == 0 or len(used) == x.shape[1]:
        y[rows] = r.choice(classes, len(rows), p=r.dirichlet(np.full(classes, 0.3)))
        return
    a = int(r.choice([i for i in range(x.shape[1]) if i not in used]))
    for v in range(values[a]):
        _label(x, y, rows[x[rows, a] == v], depth - 1, used | {a}, values, classes, r)


def utility(split: str, counts: Array, n: float) -> tuple[float, float]:
    """A split's score and its sensitivity; `counts` (values, classes)."""
    if split == "max":
        return float(counts.max(1).sum()), 1.0
    whole = counts.sum(1)
    if split == "gini":
        return float(np.where(whole > 0, (counts**2).sum(1) / np.maximum(whole, 1), 0).sum()), 2.0
    return float((_xlogx(counts).sum(1) - _xlogx(whole)).sum()), float(np.log2(max(2, n)) + 1 / np.log(2))


def _xlogx(x: Array) -> Array:
    x = np.maximum(x, 1e-12)
    return np.asarray(x * np.log2(x))


@dataclass
class Growth:
    """One run of the algorithm: what does not change from node to node."""

    table: Table
    rule: Rule
    share: float
    n: float
    r: np.random.Generator

    def node(self, x: Array, y: Array, atts: list[int], depth: int, left: float, support: float) -> Any:
        """A leaf, the noisy counts of its classes, or a pair of an attribute and nodes."""
        t, r, share = self.table, self.r, self.share
        if depth == 0 or not atts or support < FEWEST:
            return self.leaf(y, left)
        stop, split = self.rule(support * left / t.classes)
        may = atts
        if stop == "now":
            return self.leaf(y, left)
        if stop == "thin below":
            may = [a for a in atts if support / t.values[a] > np.sqrt(2) * t.classes / left]
            if not may:
                return self.leaf(y, left)
        elif stop == "too small":
            size = len(y) + r.laplace(0, 2 / share)
            if size / (max(t.values[a] for a in atts) * t.classes) < np.sqrt(2) / share:
                return self.leaf(y, left - share / 2)
            share, left = share / 2, left - share / 2
        if split == "chance":
            a, cost = may[r.integers(len(may))], 0.0
        else:
            scores = []
            for b in may:
                of_b = np.bincount(x[:, b] * t.classes + y, minlength=t.values[b] * t.classes)
                score, sensitivity = utility(split, of_b.reshape(t.values[b], t.classes), self.n)
                scores.append(share * score / sensitivity)
            a, cost = may[int(np.argmax(np.array(scores) + r.gumbel(size=len(scores))))], share
        rest, below = [b for b in atts if b != a], support / t.values[a]
        parts = [x[:, a] == v for v in range(t.values[a])]
        return a, [self.node(x[m], y[m], rest, depth - 1, left - cost, below) for m in parts]

    def leaf(self, y: Array, left: float) -> Array:
        """All that is left on its path."""
        many = self.table.classes
        return np.asarray(np.bincount(y, minlength=many) + self.r.laplace(0, 1 / left, many))


def accuracy(table: Table, n: int, epsilon: float, rule: Rule, r: np.random.Generator) -> float:
    """Of a tree learned from the first `n` rows, on rows that it has not seen."""
    many = max(2.0, n + r.laplace(0, 50 / epsilon))
    rest, levels = epsilon * 0.98, min(DEEPEST, len(table.values))
    growth = Growth(table, rule, rest / (3 * levels), many, r)
    tree = growth.node(table.x[:n], table.y[:n], list(range(len(table.values))), levels, rest, many)
    said = np.zeros(len(table.test_y), int)
    _say(tree, table.test_x, np.arange(len(said)), None, 1.5 / rest, said)
    return float((said == table.test_y).mean())


def _counts(tree: Any) -> Array:
    return np.asarray(sum(_counts(part) for part in tree[1])) if isinstance(tree, tuple) else tree


def _say(tree: Any, x: Array, rows: Array, before: int | None, noise: float, said: Array) -> None:
    """The last node on a row's path whose two most frequent classes are further apart than the noise answers."""
    counts = _counts(tree)
    first, second = np.sort(counts)[-1:-3:-1]
    answer = int(counts.argmax()) if before is None or first - second > noise else before
    if not isinstance(tree, tuple):
        said[rows] = answer
        return
    for v, part in enumerate(tree[1]):
        _say(part, x, rows[x[rows, tree[0]] == v], answer, noise, said)


def rules() -> dict[str, Rule]:
    """The fixed ways, then the rules."""
    every: dict[str, Rule] = {f"{stop}, {split}": _always((stop, split)) for stop in STOPS for split in SPLITS}
    for stop in STOPS[:2]:
        for above in ("max", "gini"):
            for below in ("chance", "stop", "max", "gini"):
                for t in THRESHOLDS if below != above else ():
                    other = ("now", "") if below == "stop" else (stop, below)
                    every[f"{stop}, {above} above {t}, else {below}"] = _by((stop, above), other, t)
    return every


def _always(way: Way) -> Rule:
    return lambda signal: way


def _by(above: Way, below: Way, threshold: float) -> Rule:
    return lambda signal: above if signal > threshold else below


def report(names: list[str], cells: list[tuple[float, int]], scores: dict[tuple[float, int], Array]) -> str:
    """`scores` (tables, 2, rules) for each epsilon and number of rows."""
    fixed = len(STOPS) * len(SPLITS)
    lines, gains = [], []
    means = {cell: scores[cell].mean(axis=1) for cell in cells}
    for cell in cells:
        m = means[cell]
        here, plain = [], []
        for t in range(len(m)):
            others = np.delete(m, t, 0).mean(0)
            best, rule = int(others[:fixed].argmax()), fixed + int(others[fixed:].argmax())
            here.append(m[t, rule] - m[t, best])
            plain.append(m[t, best])
        gains.append(here)
        whole = m.mean(0)
        best, rule = int(whole[:fixed].argmax()), fixed + int(whole[fixed:].argmax())
        noise = scores[cell].std(axis=1, ddof=1).mean()
        lines.append(
            f"{cell[0]:5g} {cell[1]:5d} rows: {names[best]} {100 * np.mean(plain):.1f}; {names[rule]} "
            f"{_interval(here)}, in sample {100 * (whole[rule] - whole[best]):+.2f}; run to run {100 * noise:.1f}"
        )
    by_cell = []
    for t in range(len(gains[0])):
        others = [np.delete(means[cell], t, 0).mean(0)[:fixed] for cell in cells]
        one = int(np.sum(others, axis=0).argmax())
        rows = [means[cell][t] for cell in cells]
        by_cell.append(np.mean([row[o.argmax()] - row[one] for row, o in zip(rows, others, strict=True)]))
    lines.append(f"node by node over all: {_interval(np.mean(gains, axis=0))}")
    lines.append(f"a fixed way by epsilon and rows, less one always: {_interval(by_cell)}")
    return "\n".join(lines)


def _interval(gain: Any) -> str:
    points = 100 * np.asarray(gain)
    return f"{points.mean():+.2f} ± {1.96 * points.std(ddof=1) / np.sqrt(len(points)):.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=41)
    tables = parser.parse_args().tables
    r, every, cells = np.random.default_rng(1), rules(), [(e, n) for e in EPSILONS for n in ROWS]
    scores: dict[tuple[float, int], list[Any]] = {cell: [] for cell in cells}
    for t in range(tables):
        table = made(("tree", "weights", "part")[t % 3], r)
        for e, n in cells:
            scores[e, n].append([[accuracy(table, n, e, rule, r) for rule in every.values()] for _ in range(2)])
    print(report(list(every), cells, {cell: np.array(s) for cell, s in scores.items()}))


if __name__ == "__main__":
    main()
