"""Choices by validation beside the best of many runs at the same price: `python -m tests.experiments.validation`.

Programs on histograms of public data (DPBench, 256 cells, 200 ranges) with 2, 4, 8 and 16 Options. *By validation* each
Option and the selection have 1/(m + 1) of ε. `best_run` has three runs' worth: a run draws an Option, which has so much
of a third of ε, and scores it with the rest. What is released is held against the answers without noise; *single* is
the Option that is best in the mean of all data, with all of ε, and *own* the best one of each data set.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from jostle.source import Source
from jostle.tools.session import Session

OPTIONS = (
    "flat(d, q)", "uniform(d, q)", "hb(d, q)", "dawa(d, q)", "shrinkage(d, q)", "tree_shrinkage(d, q)",
    "dawa_shrinkage(d, q)", "mwem(d, q, 8)", "hdmm(d, q)", "adaptive(d, q)", "mwem(d, q, 3)", "mwem(d, q, 4)",
    "mwem(d, q, 5)", "mwem(d, q, 12)", "mwem(d, q, 16)", "mwem(d, q, 24)",
)  # fmt: skip
CELLS, RANGES = 256, 200
Ways = list[tuple[str, float, int]]
"""Names, of `best_run` the share of a run's amount that is its Option's, and how many runs there are in the mean."""


def table(path: Path, rows: int, rng: np.random.Generator) -> np.ndarray:
    """So many rows, drawn by the cells of a file, in 256 of them."""
    cells = np.load(path).astype(float).ravel()
    coarse = np.add.reduceat(cells, np.linspace(0, len(cells), CELLS, endpoint=False).astype(int))
    return rng.multinomial(rows, coarse / coarse.sum())


def program(cells: np.ndarray, m: int, epsilon: float, runs: int, ways: Ways) -> str:
    lines = ["use histograms", "use workloads", "use selection"]
    lines += [f"O{i} = Option (data) {{ d = data.database\n    q = data.queries\n    return {of} }}"
              for i, of in enumerate(OPTIONS[:m])]  # fmt: skip
    lines += [f"def f{i}(d, q): return {of}" for i, of in enumerate(OPTIONS[:m])]
    lines += ["near = Utility (data, answers) { return closeness(data.database, data.queries, answers) }"]
    lines += [f"choose = MkChoiceMaker among {{{', '.join(f'O{i}' for i in range(m))}}} by validation wrt near"]
    lines += [f"private d = counts({cells.tolist()}) protecting rows budget epsilon 1e9", f"q = ranges(d, {RANGES})"]
    for name, share, many in ways:
        if name == "best_run":
            lines.append(f"def option{many}(d, k, share):")
            lines += [f"    if k == {i}: return f{i}(d, q) with (share)" for i in range(m)]
            lines.append(f"def tried{many}(d, k):")
            lines.append(f"    answers = option{many}(d, k, {share})")
            lines.append("    return {score: laplace(closeness(d, q, answers)), answers: answers}")
            lines.append(f"release r{many} = [best_run(d, tried{many}, 0..{m - 1}, {many}) with epsilon {epsilon} "
                         f"for i in 1..{runs}]")  # fmt: skip
        else:
            lines.append(f"release v = [choose({{database: d, queries: q}}) with epsilon {epsilon} for i in 1..{runs}]")
    lines += [f"release o{i} = [f{i}(d, q) with epsilon {epsilon} for i in 1..{runs}]" for i in range(m)]
    lines.append("release exactly = hb(d, q) with epsilon 1e7")
    return "\n".join(lines)


def errors(
    cells: np.ndarray, m: int, epsilon: float, runs: int, ways: list[tuple[str, float, int]]
) -> dict[str, float]:
    """The mean root mean square errors of what is released; where that is nothing, of zeros."""
    result = Session().attempt(Source("v.jst", program(cells, m, epsilon, runs, ways)))
    if not result.ok:
        raise RuntimeError(str(result.diagnostics[0]))
    exactly = np.array(result["exactly"], dtype=float)

    def error(answers: object) -> float:
        given = np.zeros(len(exactly)) if answers is None else np.array(answers, dtype=float)
        return float(np.sqrt(np.mean((given - exactly) ** 2)))

    told = {f"o{i}": np.mean([error(one) for one in result[f"o{i}"]]) for i in range(m)}
    for name, _, many in ways:
        if name == "best_run":
            told[f"best_run {many}"] = np.mean([error(one and one["answers"]) for one in result[f"r{many}"]])
        else:
            told["by validation"] = np.mean([error(one) for one in result["v"]])
    return told


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="with the .npy files of one-dimensional counts")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--options", default="2,4,8,16")
    parser.add_argument("--epsilons", default="0.1,1")
    parser.add_argument("--share", type=float, default=0.75, help="of a run's amount, for its Option")
    chosen = parser.parse_args()
    for m in map(int, chosen.options.split(",")):
        for epsilon in map(float, chosen.epsilons.split(",")):
            searches = [("best_run", chosen.share, many * m) for many in ((1, 3, 8) if m < 8 else (1, 3))]
            ways = [("validation", 0.0, 0), *searches]
            rng, told = np.random.default_rng(1), []
            for path in sorted(chosen.folder.glob("*.npy")):
                for rows in (1000, 10_000, 100_000):
                    told.append(errors(table(path, rows, rng), m, epsilon, chosen.runs, ways))
            own = np.array([min(v for k, v in one.items() if k.startswith("o")) for one in told])
            alone = np.array([[one[f"o{i}"] for i in range(m)] for one in told]) / own[:, None]
            named = {k: np.array([one[k] for one in told]) / own for k in told[0] if not k.startswith("o")}
            named["single"] = alone[:, np.exp(np.log(alone).mean(axis=0)).argmin()]
            shown = " | ".join(f"{k}: {np.exp(np.log(v).mean()):.2f}" for k, v in named.items())
            print(f"| {m} | {epsilon:g} | {shown} |", flush=True)


if __name__ == "__main__":
    main()
