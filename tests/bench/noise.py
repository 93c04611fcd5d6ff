"""CPU of a vector of discrete Laplace noise, and of a selection among many: our samplers and OpenDP's, in one run.

python -m tests.bench.noise
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np

from jostle.privacy.mechanisms import noise

SCALE = 26.7


def median_cpu(run: Callable[[], object], times: int = 7) -> float:
    run()
    taken = []
    for _ in range(times):
        start = time.process_time()
        run()
        taken.append(time.process_time() - start)
    return statistics.median(taken)


def main() -> None:
    print("values   sampler ms   OpenDP ms   ratio")
    for size in (64, 1024, 4096, 65536):
        zeros = np.zeros(size, dtype=np.int64)
        ours = median_cpu(lambda size=size: noise.discrete_laplace(size, SCALE))
        theirs = median_cpu(lambda zeros=zeros: noise._apply(noise._laplace(SCALE), zeros))
        print(f"{size:6d}   {1e3 * ours:10.2f}   {1e3 * theirs:9.2f}   {ours / theirs:5.2f}")
    print("candidates, of ranks up to")
    for size, ranks in ((256, 1000), (6000, 1000), (6000, 200_000), (6000, 10**7)):
        scores = -np.abs(np.linspace(-ranks, ranks, size)).astype(np.int64)
        ours = median_cpu(lambda scores=scores: noise.permute_and_flip(scores, SCALE))
        theirs = median_cpu(lambda scores=scores: noise._selection(SCALE, "exponential")(scores.tolist()))
        print(f"{size:6d} {ranks:9d}   {1e3 * ours:10.2f}   {1e3 * theirs:9.2f}   {ours / theirs:5.2f}")


if __name__ == "__main__":
    main()
