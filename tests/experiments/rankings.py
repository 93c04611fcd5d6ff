"""`python -m tests.experiments.rankings`: what the k largest of fifty counts lose, by three noises at the same ε.

The loss is how many rows fewer the chosen counts have than the k largest, in the mean of 20,000 runs.
"""

from __future__ import annotations

import numpy as np

SHAPES = {
    "1000/i": 1000 / np.arange(1, 51),
    "ten of 100, else 0": np.r_[np.full(10, 100.0), np.zeros(40)],
    "10·i": np.arange(50) * 10.0,
}
AMOUNTS = ((2, 0.1), (5, 0.1), (5, 0.5), (10, 0.5))
RUNS = 20_000


def losses(counts: np.ndarray, k: int, epsilon: float, rng: np.random.Generator) -> list[float]:
    """The mean loss with one draw of exponential noise for all, of k selections with it, and with Gumbel noise."""
    shape, scale, rows = (RUNS, len(counts)), k / epsilon, np.arange(RUNS)
    gone, chosen = np.zeros(shape), []
    for _ in range(k):
        chosen.append((counts + rng.exponential(scale, shape) + gone).argmax(axis=1))
        gone[rows, chosen[-1]] = -np.inf
    at_once = [np.argsort(-(counts + noise), axis=1)[:, :k] for noise in
               (rng.exponential(scale, shape), rng.gumbel(0, scale, shape))]  # fmt: skip
    best = np.sort(counts)[::-1][:k].sum()
    return [float(best - counts[places].sum(axis=1).mean()) for places in (at_once[0], np.array(chosen).T, at_once[1])]


def main() -> None:
    rng = np.random.default_rng(3)
    print("| counts | k | ε | `largest` | k selections | Gumbel noise |\n|---|---|---|---|---|---|")
    for name, counts in SHAPES.items():
        for k, epsilon in AMOUNTS:
            cells = " | ".join(f"{loss:.1f}" for loss in losses(counts, k, epsilon, rng))
            print(f"| {name} | {k} | {epsilon} | {cells} |")


if __name__ == "__main__":
    main()
