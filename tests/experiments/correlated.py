"""Correlated against independent noise over the steps of softmax regression, by program text, at the same ρ and steps.

`python -m tests.experiments.correlated [runs]` prints, for adult and letters of the shared data, the accuracy and the
log loss on a third of the rows that no fit saw: with noise correlated over the steps, with independent noise on the
same batches (each batch pays for its own steps), and with independent noise on all rows in each step.
"""

from __future__ import annotations

import math
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd

from jostle.source import Source
from jostle.tools.session import Session

TABLES = Path(__file__).resolve().parents[3] / "shared" / "data" / "tables"
STEPS = 200
LOOP = """
def classed(part): return vectors(part, [%(numbers)s], [%(levels)s], [%(classes)s], scaled = false, radius = %(radius)s)
parts = split_rows(t, %(batches)d)
rows = [classed(part) for part in parts]
%(paid)s
many = {{ select count(*) from t with rho %(twentieth)g }}
state = descent_start([[0 for j in %(k)d..rows[0].size] for kind in 1..%(k)d])
for i in 1..%(steps)d:
    at = (i - 1) %% len(parts)
    gradient = noisy_sum(%(of)s, "softmax_gradient", {weights: state.weights}, %(with_)s)
    state = descent_step(state, gradient, many / len(parts), 6, (i - 1) / %(steps)d)
release weights = state.weights
"""
"""What `softmax_regression` did until 29 November 2026, with the noise as given."""
WAYS = {
    "correlated": (20, "paid = prepaid(rows, steps = %(steps)d) with rho %(rest)g", "rows", "paid = paid"),
    "independent, the same batches": (
        20, "paid = [prepaid(one) with rho %(rest)g for one in rows]", "rows[at]",
        "paid = paid[at], part = len(rows) / %(steps)d",
    ),
    "independent, all rows in each step": (
        1, "paid = prepaid(rows[0]) with rho %(rest)g", "rows[0]", "paid = paid, part = 1 / %(steps)d",
    ),
}  # fmt: skip


def adult() -> tuple[pd.DataFrame, str]:
    frame = pd.read_csv(TABLES / "adult.csv", skipinitialspace=True)
    frame = frame[["age", "education_num", "hours_per_week", "marital_status", "sex", "occupation", "income"]]
    return frame, "income"


def letters() -> tuple[pd.DataFrame, str]:
    frame = pd.read_csv(TABLES / "letters.csv")
    frame.columns = [name.replace(".", "_") for name in frame.columns]
    return frame, "lettr"


def program(frame: pd.DataFrame, target: str, way: str, rho: float, steps: int) -> tuple[str, list[object]]:
    """The text, and how its coordinates are made of a row."""
    columns, numbers, levels = [], [], []
    coordinates: list[object] = []
    for name in frame.columns:
        values = frame[name]
        if values.dtype.kind in "if":
            low, high = float(values.min()), float(values.max())
            columns.append(f"{name}: {low:g}..{high:g}")
            numbers.append(f"({name} - {(low + high) / 2}) / {(high - low) / 2}")
            coordinates.append((name, (low + high) / 2, (high - low) / 2))
        else:
            kinds = sorted(values.unique())
            columns.append(f"{name}: {{{', '.join(repr(k).replace(chr(39), chr(34)) for k in kinds)}}}")
            if name != target:
                levels += [f'1 if {name} == "{k}" else 0' for k in kinds[1:]]
                coordinates += [(name, k) for k in kinds[1:]]
    classes = sorted(frame[target].unique())
    batches, paid, of, with_ = WAYS[way]
    fields = {"steps": steps, "rest": rho * 0.95, "twentieth": rho * 0.05, "batches": batches, "k": len(classes)}
    fields |= {
        "numbers": ", ".join(numbers), "levels": ", ".join(levels), "of": of, "with_": with_ % fields,
        "classes": ", ".join(f'0.01 if {target} == "{c}" else 0' for c in classes), "paid": paid % fields,
        "radius": f"{math.sqrt(len(frame.columns) - 1 + 0.0001):.9f}",
    }  # fmt: skip
    head = f'use row_vectors\nuse trees\nprivate t = bound("t") described by {{{", ".join(columns)}}}'
    return f"{head} protecting rows budget rho {rho}\n{LOOP % fields}", coordinates


def judged(frame: pd.DataFrame, target: str, way: str, rho: float, seed: int, steps: int = STEPS) -> list[float]:
    """Accuracy, log loss and seconds of CPU."""
    held = np.random.default_rng(seed).random(len(frame)) < 1 / 3
    session = Session()
    session.bind("t", frame[~held])
    text, coordinates = program(frame, target, way, rho, steps)
    began = time.process_time()
    result = session.attempt(Source("c.jst", text))
    assert result.ok, result.diagnostics
    took = time.process_time() - began
    weights, rest = np.array(result.released_json()["weights"]), frame[held]
    x = np.column_stack([
        (rest[one[0]] - one[1]) / one[2] if len(one) == 3 else (rest[one[0]] == one[1]).astype(float)  # type: ignore[arg-type, index, operator]
        for one in coordinates
    ])  # fmt: skip
    x /= math.sqrt(len(frame.columns) - 1)
    odds = x @ weights[:, :-1].T + weights[:, -1]
    odds -= odds.max(axis=1, keepdims=True)
    shares = np.exp(odds) / np.exp(odds).sum(axis=1, keepdims=True)
    truth = np.searchsorted(sorted(frame[target].unique()), rest[target].to_numpy())
    right = float((shares.argmax(axis=1) == truth).mean())
    return [100 * right, float(-np.log(np.maximum(shares[np.arange(len(truth)), truth], 1e-12)).mean()), took]


def main(runs: int) -> None:
    print("| table | ρ | noise | accuracy, % | log loss | CPU, s |\n|---|---|---|---|---|---|")
    for name, (frame, target) in (("adult", adult()), ("letters", letters())):
        for rho in (0.01, 0.1, 1.0):
            for way in WAYS:
                found = np.array([judged(frame, target, way, rho, seed) for seed in range(runs)])
                mean, spread = found.mean(axis=0), found.std(axis=0, ddof=1) / math.sqrt(runs)
                told = [f"{m:.{d}f} ± {s:.{d}f}" for m, s, d in zip(mean[:2], spread, (1, 3), strict=False)]
                print(f"| {name} | {rho} | {way} | {told[0]} | {told[1]} | {mean[2]:.1f} |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
