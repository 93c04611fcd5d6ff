"""`python -m tests.bench.against CHECKOUT`: CPU of every family here and in another checkout, in turns, and the ratio.

Each checkout runs the same program texts in a process of its own; the two take turns, call by call, so that what else
the machine does falls on both. Printed are the median of the calls of each, after one that loads what is imported late,
the median of the ratios of two calls that stand side by side, and the ratio of the least of each, on which other work
weighs least. Noise is that of releases. `--only WORDS` for the families whose names have them.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

ROWS, PEOPLE, CELLS = 300_000, 40_000, 4096
ADULT = {"age": 74, "work": 8, "study": 16, "marital": 7, "job": 14, "race": 5, "sex": 2, "hours": 99}
"""A table of the sizes of the Adult data: columns of so many whole numbers, of which the class is the last."""


def on_vectors() -> tuple[str, dict[str, Any]]:
    """300,000 rows of ten reals, and of twenty binary columns with a class."""
    rng = np.random.default_rng(0)
    codes = {f"x{i}": rng.integers(0, 2, ROWS) for i in range(20)}
    bound = {"t": {f"x{i}": rng.normal(0, 0.4, ROWS) for i in range(10)},
             "b": {**codes, "c": np.array(["no", "yes"])[rng.integers(0, 2, ROWS)]}}  # fmt: skip
    reals = ", ".join(f"x{i}: -1.0..1.0" for i in range(10))
    listed = ", ".join(f"{name}: 0..1" for name in codes)
    return (
        f"""
use mixtures
use classifiers
private t = bound("t") described by {{{reals}}} protecting rows budget epsilon 100000, delta 0.5 counted by basic
private b = bound("b") described by {{{listed}, c: {{"no", "yes"}}}} protecting rows budget epsilon 100000
v = vectors(t, radius = 1)
w = vectors(b, {", ".join(codes)}, norm = "sup")
paid = prepaid(v, epsilon = 1000, delta = 0.0001)
attributes = [{{name: "x" + str(i), values: [0, 1]}} for i in 0..2]
model = naive_bayes_model(["no", "yes"], attributes, [[[5, 4], [3, 6]] for i in 0..2], 1)
means = [[0.1 * k / 8 for i in 1..10] for k in 1..8]
frames = {{means: means, factors: [[[3.0 if i == j else 0.0 for j in 1..10] for i in 1..10] for k in 1..8],
    offsets: [0.0 for k in 1..8], radius: 3.0}}
ones = [0.1 for i in 1..10]
twenty = [0.1 for i in 1..20]
""",
        bound,
    )


def on_cells() -> tuple[str, dict[str, Any]]:
    """A line of 4,096 counts: three modes, a hundred spikes, and much that is empty; and a square of 64 by 64."""
    rng = np.random.default_rng(5)
    place = np.arange(CELLS) / CELLS
    shape = sum(w * np.exp(-(((place - at) / width) ** 2)) for w, at, width in ((1, 0.2, 0.05), (2, 0.5, 0.1)))
    shape[rng.integers(0, CELLS, 100)] += rng.exponential(3, 100)
    line = rng.multinomial(100_000, shape / shape.sum())
    square = np.histogram2d(*rng.normal(32, 8, (2, 100_000)), bins=64, range=[[0, 64]] * 2)[0].astype(np.int64)
    modules = "".join(f"use {name}\n" for name in ("histograms", "cuts", "hierarchies", "grids", "clusters"))
    return (
        modules
        + """
private line = bound("line") protecting rows budget epsilon 100000
private square = bound("square") protecting rows budget epsilon 100000
queries = ranges(line)
boxes = rectangles(square)
""",
        {"line": line, "square": square},
    )


def on_people() -> tuple[str, dict[str, Any]]:
    """A table like the Adult data, and one of rows in eight binary columns for models of several columns."""
    rng = np.random.default_rng(1)
    hidden = rng.normal(size=PEOPLE)
    people = {name: np.clip(np.round((hidden + rng.normal(0, 2, PEOPLE) + 3) * size / 6), 0, size - 1).astype(int)
              for name, size in ADULT.items()}  # fmt: skip
    people["rich"] = np.array(["no", "yes"])[(hidden + rng.normal(0, 1, PEOPLE) > 0.7).astype(int)]
    binary = {f"y{i}": (hidden + rng.normal(0, 1, PEOPLE) > 0).astype(int) for i in range(8)}
    domains = ", ".join(f"{name}: 0..{size - 1}" for name, size in ADULT.items())
    binaries = ", ".join(f"{name}: 0..1" for name in binary)
    chain = ", ".join(f'["y{i}", "y{i + 1}"]' for i in range(7))
    return (
        f"""
use classifiers
use trees
use mixtures
use ising
use graphical
private p = bound("p") described by {{{domains}, rich: {{"no", "yes"}}}}
    protecting rows, at most {PEOPLE} rows budget epsilon 100000
private q = bound("q") described by {{{binaries}}} protecting rows budget epsilon 100000, delta 0.5
r = vectors(p, age, study, hours, radius = 1)
y = vectors(q, {", ".join(binary)}, norm = "sup")
chain = graphical.model(domain_of(q), [{chain}])
def binned_people() {{
    return in_bins(p, equal_cuts(p, "rich"))
}}
""",
        {"p": people, "q": binary},
    )


SETTINGS: Mapping[str, Callable[[], tuple[str, dict[str, Any]]]] = {
    "rows": on_vectors, "options": on_cells, "people": on_people,
}  # fmt: skip
OPTIONS = (
    "flat", "uniform", "hb", "hdmm", "dawa", "mwem", "privelet", "greedy_h", "privtree", "mwem_star", "ahp",
)  # fmt: skip
PLANES = ("hdmm", "dawa_boxes", "quadtree", "ugrid", "agrid", "dpcube", "privtree")
FAMILIES: Mapping[str, Mapping[str, str]] = {
    "options": {
        **{f"option {name}, 4,096 cells": f"{name}(line, queries) with epsilon 0.1" for name in OPTIONS},
        **{f"option {name}, 64 × 64": f"{name}(square, boxes) with epsilon 0.1" for name in PLANES},
    },
    "rows": {
        "E-step of 8 Gaussians": 'noisy_moments(v, "framed", frames, paid = paid, part = 0.001)',
        "k-means step": 'noisy_moments(v, "nearest", {centres: means}, shares = [1, 1], paid = paid, part = 0.001)',
        "logistic gradient": 'noisy_sum(v, "logistic_gradient", {target: 0, weights: ones}, paid = paid, part = 0.001)',
        "correct rows of a model": 'laplace(correct_count(b, model, "c"), epsilon = 1)',
        "Frank and Wolfe step": 'noisy_max(coordinate_scores(w, "ising_gradient", {target: 0, weights: twenty}), '
        "epsilon = 1)",
        "tables of pairs": 'noisy_sum(w, "indicators", {values: [2 for i in 1..20]}, bound = 15, epsilon = 1)',
        "group by": "{{ select count(*) as n, avg(x1) as a from b groupby x0, x2 with epsilon 0.1 }}",
        "count": "{{ select count(*) from b where x3 == 1 with epsilon 0.1 }}",
    },
    "people": {
        "mixture, 5 components, 8 rounds": "mixture(r) with epsilon 1",
        "k-means, 5 clusters, 6 rounds": "kmeans(r) with epsilon 1",
        "tree of depth 8 by Gini": 'friedman_schuster(binned_people(), "rich", 8, gini) with epsilon 1',
        "naive Bayes": 'naive_bayes(binned_people(), "rich") with epsilon 1',
        "shrunk Bayes": 'shrunk_bayes(binned_people(), "rich") with epsilon 1',
        "one attribute": 'selected_bayes(binned_people(), "rich", 1) with epsilon 1',
        "tree with Bayes leaves": 'bayes_tree(binned_people(), "rich", 2) with epsilon 1',
        "linear classifier": 'linear(binned_people(), "rich") with epsilon 1',
        "Ising model by moments": "ising_moments(y) with epsilon 1 delta 0.000001",
        "graphical model, naive": "naive_mle(q, chain) with epsilon 1 delta 0.000001",
        "graphical model, collective": "cgm(q, chain) with epsilon 1 delta 0.000001",
    },
}
COMMANDS = {
    "start: --version": ["--version"], "start: check of a page": ["check", "programs/figure_1_2.jst"],
    "start: run of a first program": ["run", "programs/first.jst"],
}  # fmt: skip
PAGES = ("first", "figure_1_2", "classify", "figure_4_5", "choose_model")


class Checkout:
    """A process that runs programs of a checkout when it is told to."""

    def __init__(self, place: Path, cache: str) -> None:
        self.place = place
        self.environment = {**os.environ, "PYTHONPATH": str(place), "OMP_NUM_THREADS": "1", "JOSTLE_CACHE": cache}
        command = [sys.executable, __file__, "--serve", str(place)]
        self._process = subprocess.Popen(
            command, env=self.environment, cwd=place, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def took(self, group: str, text: str) -> float:
        """Milliseconds of CPU of one call."""
        if group == "commands":
            return self._command(COMMANDS[text])
        assert self._process.stdin and self._process.stdout
        print(json.dumps([group, text]), file=self._process.stdin, flush=True)
        return float(self._process.stdout.readline())

    def _command(self, words: list[str]) -> float:
        with subprocess.Popen([sys.executable, "-m", "jostle", *words], cwd=self.place, env=self.environment,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:  # fmt: skip
            _, status, used = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            raise RuntimeError(f"{words} failed in {self.place}")
        return 1e3 * (used.ru_utime + used.ru_stime)

    def close(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()


def serve(place: Path) -> None:
    """Runs what standard input names, each in the session of its group; writes how long it took."""
    from jostle.source import Source
    from jostle.tools.session import Session

    sessions: dict[str, Any] = {}

    def execute(group: str, text: str) -> None:
        if group == "pages":
            page = place / "programs" / f"{text}.jst"
            source, session = Source(str(page), page.read_text()), Session()
            if session.check(source):
                raise RuntimeError(text)
            session.costs(source)
            return
        if group not in sessions:
            program, bound = SETTINGS[group]()
            sessions[group] = Session()
            for name, data in bound.items():
                sessions[group].bind(name, data)
            sessions[group].execute(Source("setting.jst", program))
        sessions[group].execute(Source("call.jst", f"z = {text}\n"))

    for line in sys.stdin:
        group, text = json.loads(line)
        began = time.process_time()
        execute(group, text)
        print(1e3 * (time.process_time() - began), flush=True)


def main() -> None:
    options = argparse.ArgumentParser(prog="python -m tests.bench.against", description=__doc__)
    options.add_argument("checkout", type=Path)
    options.add_argument("--calls", type=int, default=7)
    options.add_argument("--only", default="")
    options.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.serve:
        serve(given.checkout)
        return
    here = Path(__file__).resolve().parents[2]
    rows = [(name, "commands", name) for name in COMMANDS]
    rows += [(f"check of {name}.jst", "pages", name) for name in PAGES]
    rows += [(name, group, text) for group, calls in FAMILIES.items() for name, text in calls.items()]
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        both = [Checkout(here, one), Checkout(given.checkout.resolve(), other)]
        print("| family | here, ms | there, ms | ratio | of the least |\n|---|---|---|---|---|")
        for name, group, text in rows:
            if given.only not in name:
                continue
            pairs = []
            for turn in range(given.calls + 1):
                order = both if turn % 2 else both[::-1]
                times = {checkout: checkout.took(group, text) for checkout in order}
                if turn:
                    pairs.append((times[both[0]], times[both[1]]))
            middle = [statistics.median(side) for side in zip(*pairs, strict=True)]
            ratio = statistics.median(a / b for a, b in pairs)
            least = min(a for a, _ in pairs) / min(b for _, b in pairs)
            print(f"| {name} | {middle[0]:.1f} | {middle[1]:.1f} | {ratio:.2f} | {least:.2f} |", flush=True)
        for checkout in both:
            checkout.close()


if __name__ == "__main__":
    main()
