"""Formulas for the choice of `programs/valuations.jst`, judged on public tables that they were not learned from.

    python -m tests.experiments.synthesis [--epsilon 0.1] [--sizes 30,100,1000,10000]

The program's made shapes are what everything learns from. Then the programmer's own valuations, the learned tree and
the formulas predict the error of DAWA and MWEM on DPBench's five tables and on six pairs of columns, all of 16 × 16
cells, at the same numbers of rows, from features as they are measured. Prints the part of the variance of the log error
that each explains there, and the regret of choosing by it: error ÷ least error with all of ε, a geometric mean.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from jostle.choice.grow import Array
from jostle.choice.maker import ChoiceMaker
from jostle.choice.policies import (
    Candidate,
    View,
    best_on_average,
    by_database,
    candidates,
    fit_candidate,
    losses_of,
    valued,
    view_of,
)
from jostle.choice.scale import UtilityScale
from jostle.choice.synthesis.improvement import Improvement, improve
from jostle.source import Source
from jostle.tools.improvement.report import text
from jostle.tools.session import Session
from tests.experiments import dpbench
from tests.experiments.figure_1_2_choice import tables_of

PROGRAM = Path(__file__).resolve().parents[2] / "programs" / "valuations.jst"


def rehearsed(epsilon: float, sizes: list[float]) -> tuple[Any, ChoiceMaker, list[Any]]:
    """The program's interpreter, its choice, and training records of the public tables."""
    session = Session(cwd=PROGRAM.parent, simulate=1)
    tables = tables_of("dpbench") | tables_of("apart")
    lines = [PROGRAM.read_text(encoding="utf-8")]
    for i, (name, cells) in enumerate(tables.items()):
        session.bind(name, cells)
        lines.append(f'judged{i} = bound("{name}")')
        lines.append(f'judged{i} = {{name: "{name}", database: judged{i}, queries: identity(judged{i}), sizes: sizes}}')
    source = Source(str(PROGRAM), "\n".join(lines) + "\n")
    names, _, interp = session.rehearse(source, {"share": epsilon, "sizes": sizes})
    return interp, names["choose"], [names[f"judged{i}"] for i in range(len(tables))]


def scores(values: Array, scale: UtilityScale) -> Array:
    """Utilities as scores, as the search sees them."""
    return -np.log(np.maximum(-values, scale.floor))


def by_formulas(found: Improvement, candidate: Candidate, view: View, now: Array) -> Array:
    """The value of each option by its new formula, or by what it has where that stays."""
    columns = {name: view.x[:, k] for k, name in enumerate(candidate.columns)}
    values = [-np.exp(one.proposed.formula.values(columns)) if one.kept else now[:, k]
              for k, one in enumerate(found.options)]  # fmt: skip
    return np.column_stack(values)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epsilon", type=float, default=0.1)
    parser.add_argument("--sizes", default="30,100,1000,10000")
    asked = parser.parse_args()
    if not dpbench.DATA.is_dir():
        print("the public tables are not here: there is nothing to run on")
        return
    interp, choice, judged = rehearsed(asked.epsilon, [float(size) for size in asked.sizes.split(",")])
    table, predicts = choice.training(interp, "epsilon", asked.epsilon)
    found = improve(table, choice.model, predicts)
    print(f"learned from the made shapes, epsilon {asked.epsilon:g}: {text(found)}")
    there, _ = choice.retrained(interp, judged).training(interp, "epsilon", asked.epsilon)
    scale, none = table.scale, tuple(None for _ in table.options)
    candidate = next(one for one in candidates(there, predicts) if one.name == found.policy)
    learned, view = view_of(table, candidate, scale), view_of(there, candidate, scale)
    tree = fit_candidate(candidate, learned, choice.model, none, scale)
    now = valued(candidate, tree, view, predicts)
    ways = {
        "own `predict`": now,
        "learned tree": valued(candidate, tree, view, none),
        "formulas": by_formulas(found, candidate, view, now),
    }
    unpaid = view_of(there, Candidate("", 0.0, 0, ()), scale)
    single = best_on_average(view_of(table, Candidate("", 0.0, 0, ()), scale), scale)
    regrets = {name: by_database(view, losses_of(view, values)) for name, values in ways.items()}
    regrets["single best"] = by_database(unpaid, losses_of(unpaid, single.rows(unpaid.x)))
    heads = [f"on {len(judged)} tables", *(f"explained {name}" for name in table.options), "regret"]
    print(*(f"{head:>16}" for head in heads))
    for name, losses in regrets.items():
        shares = []
        for k in range(len(table.options)) if name in ways else ():
            wrong = ((scores(ways[name][:, k], scale) - view.y[:, k]) ** 2).mean() / view.y[:, k].var()
            shares.append(f"{1 - wrong:>16.2f}" if wrong < 10 else f"{'< -9':>16}")
        error = losses.std(ddof=1) / np.sqrt(len(losses))
        columns = shares or [" " * 16] * len(table.options)
        print(f"{name:>16}", *columns, f"{np.exp(losses.mean()):>8.3f} ± {error:.3f}")
    for other in ("own `predict`", "learned tree", "single best"):
        gap = regrets[other] - regrets["formulas"]
        print(f"{other} − formulas: {gap.mean():.3f} ± {gap.std(ddof=1) / np.sqrt(len(gap)):.3f} (logarithms, paired)")


if __name__ == "__main__":
    main()
