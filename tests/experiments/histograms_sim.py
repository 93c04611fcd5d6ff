"""A simulation of the histogram options over DPBench's public vectors, with DPBench's protocol.

    python tests/experiments/histograms_sim.py [--trials 20] [--scales 1e3 1e5] [--two]

Shape p = x/Σx, m rows drawn from it, cells summed to 1024 (64×64 with `--two`); 2000 random ranges; ε = 0.1, all of
it paid for: the walk, MWEM's total. Printed: the scaled error ‖Wx − Wx̂‖₂/(|W|·‖x‖₁)·10⁶, averaged over trials, then
the geometric mean over data sets. Noise is seeded NumPy noise, which is enough for public data and only for that.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "kernels")]

from dense_core import discrete_laplace, measure  # noqa: E402

from jostle.kernels.histograms import estimates, grids  # noqa: E402
from jostle.kernels.histograms import strategies as kernels  # noqa: E402
from jostle.kernels.workloads import boxes as workloads  # noqa: E402
from jostle.privacy.mechanisms.least_cost import walk  # noqa: E402

DATA = ROOT.parent / "shared" / "data" / "dpbench"
SETS_1D = ("ADULT", "HEPTH", "INCOME", "MEDCOST", "NETTRACE", "MDSALARY")
SETS_2D = ("GOWALLA", "ADULT-2D", "SF-CABS-E", "LOAN-FUNDED-INCOME", "MDSALARY-OVERT")


def counts(name, scale, shape, seed):
    """A vector of the shape of a data set, of `scale` rows on a coarser domain."""
    x = np.load(DATA / f"{len(shape)}d" / f"{name}.npy").astype(float)
    y = np.random.default_rng(seed).multinomial(int(scale), (x / x.sum()).ravel()).reshape(x.shape)
    for axis, cells in enumerate(shape):
        y = y.reshape(*y.shape[:axis], cells, -1, *y.shape[axis + 1 :]).sum(axis=axis + 1)
    return y


def scaled_error(workload, x, found):
    return float(np.linalg.norm(workload.answers(x) - workload.answers(found)) / (workload.size * x.sum()) * 1e6)


def flat(x, workload, epsilon, rng):
    blocks = grids.identity_strategy(x.shape)
    return measure(blocks, x, epsilon, rng)[0].reshape(x.shape)


def uniform(x, workload, epsilon, rng):
    total = x.sum() + rng.laplace(0, 1 / epsilon)
    return estimates.uniform_estimate(x.shape, total)


def hb(x, workload, epsilon, rng):
    blocks = grids.hb_strategy(x.shape)
    return kernels.estimate(blocks, measure(blocks, x, epsilon, rng), workload, nonnegative=False)


_KEPT: dict[int, list] = {}


def hdmm(x, workload, epsilon, rng, nonnegative=True):
    blocks = _KEPT.setdefault(id(workload), []) or kernels.hdmm_strategy(workload)
    _KEPT[id(workload)] = blocks
    return kernels.estimate(blocks, measure(blocks, x, epsilon, rng), workload, nonnegative)


def hdmm_plain(x, workload, epsilon, rng):
    return hdmm(x, workload, epsilon, rng, nonnegative=False)


def dawa(x, workload, epsilon, rng):
    labels = walk(x, epsilon / 4, discrete_laplace(rng))
    blocks = kernels.bucket_strategy(labels, workload)
    return kernels.estimate(blocks, measure(blocks, x, epsilon * 3 / 4, rng), workload)


def mwem_rounds(x, workload, epsilon, rng, rounds=10):
    """MWEM with a total that is measured with a twentieth of ε; the rounds share the rest equally."""
    total = float(x.sum() + rng.laplace(0, 20 / epsilon))
    each = epsilon * 0.95 / (2 * rounds)
    found, (lows, highs), true = estimates.uniform_estimate(x.shape, total), workload.bounds(), workload.answers(x)
    chosen: list[int] = []
    answers: list[float] = []
    for _ in range(rounds):
        gap = np.abs(true - workload.answers(found))
        chosen.append(int(np.argmax(gap * each / 2 + rng.gumbel(size=len(gap)))))
        answers.append(true[chosen[-1]] + rng.laplace(0, 1 / each))
        found = estimates.mwem_update(found, lows[chosen], highs[chosen], np.array(answers), total)
    return found


OPTIONS = {
    "flat": flat, "uniform": uniform, "hb": hb, "hdmm, no projection": hdmm_plain, "hdmm": hdmm, "dawa": dawa,
    "mwem": mwem_rounds,
}  # fmt: skip


def geometric_mean(option, workload, names, scale, trials, epsilon=0.1):
    means = []
    for number, name in enumerate(names):
        errors = []
        for trial in range(trials):
            x = counts(name, scale, workload.shape, [trial, number])
            errors.append(
                scaled_error(workload, x, option(x, workload, epsilon, np.random.default_rng([trial, number, 7])))
            )
        means.append(np.mean(errors))
    return float(np.exp(np.mean(np.log(means))))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--scales", type=float, nargs="+", default=[1e3, 1e4, 1e5, 1e6])
    parser.add_argument("--two", action="store_true", help="64×64 cells and random rectangles")
    parser.add_argument("--options", nargs="+", default=list(OPTIONS))
    chosen = parser.parse_args()
    if not DATA.is_dir():
        print("the public vectors are not here: nothing to simulate")
        return
    workload = workloads.rectangles((64, 64)) if chosen.two else workloads.ranges(1024)
    names = SETS_2D if chosen.two else SETS_1D
    print(f"{'option':>20}", *(f"{scale:>10.0e}" for scale in chosen.scales), "   CPU s each")
    for name in chosen.options:
        began = time.process_time()
        row = [geometric_mean(OPTIONS[name], workload, names, scale, chosen.trials) for scale in chosen.scales]
        each = (time.process_time() - began) / (len(row) * len(names) * chosen.trials)
        print(f"{name:>20}", *(f"{value:>10.4g}" for value in row), f"{each:>12.4f}", flush=True)


if __name__ == "__main__":
    main()
