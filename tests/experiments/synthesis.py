"""Formulas for the choice of `programs/valuations.jst`, judged on public tables that they were not learned from.

    python -m tests.experiments.synthesis [--epsilon 0.1] [--sizes 30,100,1000,10000] [--repeats 5]

The program's made shapes are what everything learns from. Then the programmer's own valuations, the learned tree and
the formulas predict the error of DAWA and MWEM on public tables of 16 × 16 cells, at the same numbers of rows, from
features as they are measured. Prints the part of the variance of the log error that each explains there, and the regret
of choosing by it: error ÷ least error with all of ε, a geometric mean. Everything is drawn anew in each repeat.

The tables are DPBench's five and six pairs of columns, and apart from them pairs of columns of data sets that packages
bring (`tests/experiments/histogram_data.py`).
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jostle.choice.improvement import Improvement, improve
from jostle.choice.maker import ChoiceMaker
from jostle.choice.models import Array
from jostle.choice.policies import (
    Candidate,
    Learner,
    best_on_average,
    by_database,
    candidates,
    losses_of,
    view_of,
)
from jostle.choice.policy import SINGLE_BEST
from jostle.choice.table import RunTable
from jostle.choice.training import train
from jostle.source import Source
from jostle.tools.session import Session
from tests.experiments import dpbench
from tests.experiments.figure_1_2_choice import tables_of
from tests.experiments.histogram_data import further, packaged

PROGRAM = Path(__file__).resolve().parents[2] / "programs" / "valuations.jst"
CELLS = 16
WAYS = ("own `predict`", "learned tree", "formulas", SINGLE_BEST)


def coarse(cells: NDArray[np.int64]) -> NDArray[np.int64]:
    """The table summed to 16 × 16 cells; its sides are multiples of that."""
    x, y = (side // CELLS for side in cells.shape)
    return cells.reshape(CELLS, x, CELLS, y).sum(axis=(1, 3))


def groups() -> dict[str, dict[str, NDArray[np.int64]]]:
    """The tables by name, in two groups."""
    planes = {n: x for n, x in (packaged() | further()).items() if x.ndim == 2 and x.shape[0] % CELLS == 0}
    return {
        "DPBench and pairs of columns": tables_of("dpbench") | tables_of("apart"),
        "of packages": {name: coarse(cells) for name, cells in planes.items()},
    }


def rehearsed(tables: dict[str, NDArray[np.int64]], epsilon: float, sizes: list[float]) -> tuple[Any, Any, list[Any]]:
    """The program's interpreter, its choice, and training records of the tables."""
    session = Session(cwd=PROGRAM.parent, simulate=1)
    lines = [PROGRAM.read_text(encoding="utf-8")]
    for i, (name, cells) in enumerate(tables.items()):
        session.bind(name, cells)
        lines.append(f'judged{i} = bound("{name}")')
        lines.append(f'judged{i} = {{name: "{name}", database: judged{i}, queries: identity(judged{i}), sizes: sizes}}')
    source = Source(str(PROGRAM), "\n".join(lines) + "\n")
    names, _, interp = session.rehearse(source, {"share": epsilon, "sizes": sizes})
    return interp, names["choose"], [names[f"judged{i}"] for i in range(len(tables))]


@dataclass
class Judged:
    """What was measured of each way to value the options, over repeats: squared errors and variance, and regrets."""

    wrong: dict[str, list[Array]] = field(default_factory=dict)
    variance: list[Array] = field(default_factory=list)
    regrets: dict[str, list[Array]] = field(default_factory=dict)

    def add(self, choice: ChoiceMaker, predicts: Any, table: RunTable, there: RunTable, found: Improvement) -> None:
        """Judges what was learned from `table` on the runs of other tables."""
        scale, none = table.scale, tuple(None for _ in table.options)
        look = next(one for one in candidates(there, predicts) if one.name == found.policy)
        view = view_of(there, look, scale)
        tree, _ = Learner(choice.model, none, scale).fit(look, view_of(table, look, scale))
        own, learned = (Learner(choice.model, those, scale).valued(look, tree, view) for those in (predicts, none))
        columns = {name: view.x[:, k] for k, name in enumerate(look.columns)}
        new = [-np.exp(one.proposed.formula.values(columns)) if one.kept else own[:, k]
               for k, one in enumerate(found.options)]  # fmt: skip
        self.variance.append(view.y.var(axis=0))
        for way, values in zip(WAYS, (own, learned, np.column_stack(new)), strict=False):
            scores = -np.log(np.maximum(-values, scale.floor))
            self.wrong.setdefault(way, []).append(((scores - view.y) ** 2).mean(axis=0))
            self.regrets.setdefault(way, []).append(by_database(view, losses_of(view, values)))
        nothing = Candidate(SINGLE_BEST, 0.0, 0, ())
        unpaid, single = view_of(there, nothing, scale), best_on_average(view_of(table, nothing, scale), scale)
        self.regrets.setdefault(SINGLE_BEST, []).append(by_database(unpaid, losses_of(unpaid, single.rows(unpaid.x))))

    def show(self, title: str, options: tuple[str, ...]) -> None:
        """Prints a line for each way, and the formulas' regret beside the others', paired over tables."""
        heads = [*(f"explained {name}" for name in options), "regret"]
        print(f"{title:>30}", *(f"{head:>16}" for head in heads))
        means = {way: np.mean(losses, axis=0) for way, losses in self.regrets.items()}
        for way, losses in means.items():
            parts = 1 - np.mean(self.wrong[way], axis=0) / np.mean(self.variance, axis=0) if way in self.wrong else ()
            shown = [f"{part:>16.2f}" if part > -9 else f"{'< -9':>16}" for part in parts] or [" " * 16] * len(options)
            print(f"{way:>30}", *shown, f"{np.exp(losses.mean()):>8.3f} ± {_error(losses):.3f}")
        for way in (way for way in WAYS if way != "formulas"):
            gap = means[way] - means["formulas"]
            print(f"{way:>30} − formulas: {gap.mean():.3f} ± {_error(gap):.3f}, paired over {len(gap)} tables")


def _error(values: Array) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epsilon", type=float, default=0.1)
    parser.add_argument("--sizes", default="30,100,1000,10000")
    parser.add_argument("--repeats", type=int, default=5)
    asked = parser.parse_args()
    if not dpbench.DATA.is_dir():
        print("the public tables are not here: there is nothing to run on")
        return
    sizes = [float(size) for size in asked.sizes.split(",")]
    sets, judged = groups(), {title: Judged() for title in groups()}
    interp, choice, records = rehearsed({n: x for one in sets.values() for n, x in one.items()}, asked.epsilon, sizes)
    bench = choice.bench(interp)
    for repeat in range(asked.repeats):
        table = train(bench, asked.epsilon, choice.share, key=f"learned {repeat}")
        found = improve(table, choice.model, bench.predicts)
        regrets = found.regrets
        means = (f"{np.exp(x):.3f}" for x in (regrets.before, regrets.after, regrets.model))
        print(f"repeat {repeat + 1}, regret on shapes left out before, after, by the tree:", *means)
        for one in found.options:
            kept = "kept" if one.kept else "not kept"
            print(f"  {one.option}: {one.proposed.explained:.2f} explained, the tree {one.model:.2f}; {kept}")
            print(f"    {one.proposed.formula.text()}", flush=True)
        start = 0
        for title, tables in sets.items():
            other = choice.retrained(interp, records[start : start + len(tables)]).bench(interp)
            there = train(other, asked.epsilon, choice.share, key=f"judged {repeat}")
            judged[title].add(choice, bench.predicts, table, there, found)
            start += len(tables)
    for title, one in judged.items():
        one.show(title, bench.option_names)


if __name__ == "__main__":
    main()
