"""The root mean square error of `hdmm` without its projection, against the expectation of its strategy.

    python -m tests.experiments.plain_hdmm [--trials 100]

DPBench's scaled error × 1e6 at ε = 0.1, 1024 cells, 2000 random ranges; the noise is that of the language's own
`laplace` on a simulated private source. Unbiased, so the data do not matter: the cells are empty.
"""

from __future__ import annotations

import argparse

import numpy as np

from jostle.kernels.accuracy import root_mean_square
from jostle.kernels.histograms import strategies
from jostle.kernels.workloads import boxes as workloads
from jostle.source import Source
from jostle.tools.session import Session

PROGRAM = """\
use histograms
private db = bound("cells") protecting rows budget epsilon 1000
queries = ranges(db)
strategy = hdmm_strategy(queries)
"""
ONCE = "cells = estimate(strategy, laplace(db, strategy, epsilon = 0.1).answers, queries, false)\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=100)
    chosen = parser.parse_args()
    session = Session()
    session.bind("cells", np.zeros(1024, dtype=int))
    session.execute(Source("plain", PROGRAM))
    queries, squares = workloads.ranges(1024), []
    for _ in range(chosen.trials):
        session.execute(Source("plain", ONCE))
        squares.append(np.mean(queries.answers(np.asarray(session.names()["cells"])) ** 2))
    expected = root_mean_square(strategies.hdmm_strategy(queries), queries, 10 * 2**0.5)
    print(f"{'scale':>8}{'measured':>12}{'expected':>12}{'page':>8}")
    for rows, page in ((1e3, 2598), (1e5, 26.0), (1e6, 2.60)):
        unit = 1e6 / (rows * np.sqrt(queries.size))
        print(f"{rows:8.0e}{np.sqrt(np.mean(squares)) * unit:12.4g}{expected * unit:12.4g}{page:8g}")


if __name__ == "__main__":
    main()
