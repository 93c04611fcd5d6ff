"""A hierarchy of counts by `jointly`, beside weighted least squares from the top down and at once.

    python -m tests.experiments.hierarchy_reference [--runs 5] [--rho 0.5]

3,000 simulated rows in 5 states, 20 counties and 200 blocks by 10 cells, crowded as places are. The reference in
NumPy measures each level with a third of rho by Gaussian noise. *Top down*, as the Census Bureau's algorithm without
integers and without bounds, each level is fitted to its own noisy counts so that they add up to the level above,
which stays. *At once* is least squares of all levels. Shown is the mean squared error of a count by level, and of all
levels in all, the sum over levels of the sum of squares.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from jostle.tools.session import Session

STATES, COUNTIES, BLOCKS, CELLS, ROWS = 5, 20, 200, 10, 3_000
LEVELS = (STATES, COUNTIES, BLOCKS)
PROGRAM = f"""private people = bound("people")
    described by {{block: 0..{BLOCKS - 1} never missing, cell: 0..{CELLS - 1} never missing}}
    protecting rows budget rho 9
jointly%s with rho %s:
    states = {{{{ select count(*) as n from people groupby floor(block / {BLOCKS // STATES}) as state, cell }}}}
    counties = {{{{ select count(*) as n from people groupby floor(block / {BLOCKS // COUNTIES}) as county, cell }}}}
    blocks = {{{{ select count(*) as n from people groupby block, cell }}}}
release states
release counties
release blocks
"""


def rows(draw: Any) -> Any:
    blocks = draw.choice(BLOCKS, ROWS, p=draw.dirichlet(np.full(BLOCKS, 0.5)))
    cells = draw.choice(CELLS, ROWS, p=draw.dirichlet(np.full(CELLS, 0.3)))
    return pd.DataFrame({"block": blocks, "cell": cells})


def up(cells: Any, to: int) -> Any:
    return cells.reshape(to, -1, CELLS).sum(axis=1)


def top_down(noisy: list[Any]) -> list[Any]:
    levels = [noisy[0]]
    for seen in noisy[1:]:
        gap = (levels[-1] - up(seen, len(levels[-1]))) * len(levels[-1]) / len(seen)
        levels.append(seen + np.repeat(gap, len(seen) // len(levels[-1]), axis=0))
    return levels


def at_once(noisy: list[Any]) -> list[Any]:
    """Least squares of a tree: estimates from the leaves up, then what they lack from the top down."""
    best, spread = [noisy[-1]], 1.0  # variances in units of a level's noise
    for seen in reversed(noisy[:-1]):
        below = spread * len(best[0]) / len(seen)
        best.insert(0, (below * seen + up(best[0], len(seen))) / (1 + below))
        spread = below / (1 + below)
    return top_down(best)


def of_program(frame: Any, rho: float, kind: str) -> list[Any]:
    session = Session()
    session.bind("people", frame)
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "p.jst"
        program.write_text(PROGRAM % (kind, rho))
        result = session.run(str(program))
    return [np.asarray(result[name]["n"]).reshape(-1, CELLS) for name in ("states", "counties", "blocks")]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--rho", type=float, default=0.5)
    arguments = parser.parse_args()
    errors: dict[str, list[list[float]]] = {}
    for seed in range(arguments.runs):
        draw = np.random.default_rng(seed)
        frame = rows(draw)
        exact = np.bincount(frame.block * CELLS + frame.cell, minlength=BLOCKS * CELLS).reshape(BLOCKS, CELLS)
        truth = [up(exact, many) for many in LEVELS]
        deviation = math.sqrt(3 / (2 * arguments.rho))
        noisy = [level + draw.normal(size=level.shape) * deviation for level in truth]
        ways = {"noisy": noisy, "top down": top_down(noisy), "at once": at_once(noisy)}
        for kind in ("", " for the least total", " nonnegative", " nonnegative whole"):
            ways["jointly" + kind] = of_program(frame, arguments.rho, kind)
        for way, levels in ways.items():
            squares = [float(((a - b) ** 2).sum()) for a, b in zip(levels, truth, strict=True)]
            means = [square / level.size for square, level in zip(squares, truth, strict=True)]
            errors.setdefault(way, []).append([*means, sum(squares)])
    for way, values in errors.items():
        mean, error = np.mean(values, axis=0), np.std(values, axis=0, ddof=1) / math.sqrt(len(values))
        print(f"{way:28} " + "  ".join(f"{m:.4g} ± {e:.2g}" for m, e in zip(mean, error, strict=True)), flush=True)


if __name__ == "__main__":
    main()
