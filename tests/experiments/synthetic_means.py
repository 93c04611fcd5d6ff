"""Means of synthetic columns that are skewed: drawn evenly from bins, and with the means that `bin_means` measures.

    python -m tests.experiments.synthetic_means [--runs 10] [--figure means.png]

Two columns: `affairs` of statsmodels' fair (6,366 rows, described 0..60), with marriage's rating, age, years and
children; and Adult's `capital_gain` (48,842 rows, 0..99999) with age, education and hours. ε = 1 in all: a tree of
pairs with all of it, or with three quarters and `bin_means` of the skewed column with a quarter. Bins are of equal
width, or `log_cuts` in the skewed column.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from jostle.source import Source
from jostle.tools.session import Session
from tests.experiments.synthetic import adult

FAIR = "affairs: 0.0..60.0, rate_marriage: 1..5, age: 17.0..45.0, yrs_married: 0.0..25.0, children: 0.0..6.0"
ADULT = "capital_gain: 0..99999, age: 17..90, education_num: 1..16, hours_per_week: 1..99"
PROGRAM = """use synthetic
private t = bound("t") described by {{{schema}}} protecting rows budget epsilon 1
equal = equal_cuts(t, none, 16)
cuts = record([[k, {cut}(t, ["{skewed}"])[k] if k == "{skewed}" else equal[k]] for k in keys(equal)])
learned = learn_tree(in_bins(t, cuts)) with epsilon {epsilon}
"""
EVEN = "release rows = spread_over_bins(learned.sample({n}, {seed}), t, cuts, {seed})"
KEPT = """means = bin_means(t, {{{skewed}: cuts.{skewed}}}) with epsilon 0.25
release rows = spread_over_bins(keep_means(learned, means).sample({n}, {seed}), t, cuts, {seed}, means)"""


def fair() -> Any:
    import statsmodels.api

    return statsmodels.api.datasets.fair.load_pandas().data


def made_up(frame: Any, schema: str, skewed: str, cut: str, kept: bool, seed: int) -> Any:
    session = Session()
    session.bind("t", frame)
    given = {"skewed": skewed, "n": len(frame), "seed": seed}
    cutting = f"(lambda t, names: {cut}(t, none, 16))" if cut == "equal_cuts" else cut
    text = PROGRAM.format(schema=schema, cut=cutting, epsilon=0.75 if kept else 1, **given)
    result = session.attempt(Source("means.jst", text + (KEPT if kept else EVEN).format(**given)))
    if not result.ok:
        raise RuntimeError(str(result.diagnostics[0]))
    return result["rows"].frame()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--figure", default="")
    options = parser.parse_args()
    drawn = []
    for frame, schema, skewed, other in (
        (fair(), FAIR, "affairs", "rate_marriage"), (adult(), ADULT, "capital_gain", "education_num"),
    ):  # fmt: skip
        truth = frame[[skewed, other]]
        drawn.append((skewed, "private", truth[skewed]))
        print(f"{skewed}: mean {truth[skewed].mean():.4g}, deviation {truth[skewed].std():.4g}, "
              f"correlation with {other} {truth.corr().iloc[0, 1]:.3f}")  # fmt: skip
        for cut in ("equal_cuts", "log_cuts"):
            for kept in (False, True):
                frames = [made_up(frame, schema, skewed, cut, kept, seed) for seed in range(options.runs)]
                means = [f[skewed].mean() for f in frames]
                correlations = [f[[skewed, other]].corr().iloc[0, 1] for f in frames]
                how = f"{cut} {'with means' if kept else 'evenly'}"
                deviation = np.mean([f[skewed].std() for f in frames])
                print(f"  {how:22} mean {np.mean(means):.4g} ± {np.std(means):.2g}, deviation {deviation:.4g}, "
                      f"correlation {np.mean(correlations):.3f} ± {np.std(correlations):.2g}", flush=True)  # fmt: skip
                drawn.append((skewed, how, frames[0][skewed]))
    if options.figure:
        draw(drawn, options.figure)


def draw(columns: list[tuple[str, str, Any]], path: str) -> None:
    """The share of rows above each number, for each way to draw; on logarithmic axes."""
    import matplotlib.pyplot as plt

    names = list(dict.fromkeys(name for name, _, _ in columns))
    figure, axes = plt.subplots(1, len(names), figsize=(5 * len(names), 4))
    for name, at in zip(names, np.atleast_1d(axes), strict=True):
        for _, how, values in (c for c in columns if c[0] == name):
            rising = np.sort(values)
            at.plot(rising, 1 - np.arange(len(rising)) / len(rising), label=f"{how} (mean {values.mean():.3g})")
        at.set(title=name, xlabel=name, ylabel="share of rows above", yscale="log")
        at.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main()
