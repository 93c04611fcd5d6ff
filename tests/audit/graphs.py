"""What graphical models are learned from: tables together, selection by distance, secret samples, noisy potentials."""

from __future__ import annotations

import tempfile
from pathlib import Path
from unittest import mock

import numpy as np
from harness import Case, Pair
from mechanisms import on_rows

from jostle.accounting.subsampled_gaussian import noise_for
from jostle.kernels.rowprograms import CONTRIBUTIONS
from jostle.privacy.kernel import exposures
from jostle.privacy.measurements.subsampled_batches import Rows, released
from jostle.privacy.rows.folds import BallRows, ContributionFold, SampledFold
from jostle.privacy.rows.norms import BITS, GRID
from jostle.simulate import SeededNoise
from jostle.source import Source
from jostle.tools.session import Session

MODEL = 'use graphical\nm = model({v: 0..7}, [["v"]])\n'
SMALL = 'use graphical\nm = model({x: 0..1, v: 0..7}, [["v"], ["x", "v"]])\nd = derive(t, x = v > 3)\n'
NAIVE = MODEL + "n = naive_mle(t, m) with epsilon 1\n"
COLLECTIVE = MODEL + "n = cgm(t, m) with epsilon 1 delta 0.001\n"
TOGETHER = "n = laplace([histogram(t, v), histogram(t, x = v / 2), histogram(t, x = v > 3)]) with epsilon 1\n"
PERTURBED = MODEL + "n = output_perturbation(t, m, 3, 0.05) with epsilon 1\n"
FAR = """
n = noisy_max([distance(histogram(t, v), [0, 0, 0, 3, 0, 0, 0, 0]),
               distance(histogram(t, v), [0, 0, 0, 0, 0, 0, 0, 1])]) with epsilon 1
"""
BASIC = "epsilon 1000, delta 0.9 counted by basic"
STEPS, RATE, DELTA = 4, 0.25, 0.001
SAMPLES = (
    f"n = noisy_samples([histogram(t, v), histogram(t, x = v > 3)], {RATE}, {STEPS}) with epsilon 1 delta {DELTA}\n"
)
SUMS = f"""use row_vectors
rows = vectors(t, v / 3, scaled = false, radius = 1)
paid = prepaid(rows, steps = {STEPS}, rate = {RATE}) with epsilon 1 delta {DELTA}
n = [noisy_sum(rows, "coordinates", paid = paid) for i in 1..{STEPS}]
"""


def graphs() -> list[Case]:
    few, more = ["A,3"], ["A,3", "B,7"]
    return [
        on_rows("option naive_mle", 1, NAIVE, [], few),
        on_rows("option cgm, Gaussian", 1, COLLECTIVE, [], few, "rows", BASIC, DELTA),
        on_rows("three tables together", 1, TOGETHER, few, more),
        on_rows("selection by distance", 1, FAR, few, more),
        on_rows("output perturbation", 1, PERTURBED, few, more),
        Case(f"psgd: {STEPS} secret samples, q = {RATE}", 1, samples, 200_000, DELTA),
        Case(f"sums of {STEPS} secret samples, q = {RATE}", 1, sums_of_samples, 40_000, DELTA),
    ]


class Noted:
    """Notes what noise and which samples a program asks for, and gives back what it was given."""

    def gaussian(self, values: np.ndarray, sigma: float) -> np.ndarray:
        self.sigma = sigma
        return values

    def laplace(self, values: np.ndarray, scale: float) -> np.ndarray:
        return values  # of a look at the cells

    def sample(self, size: int, kept: int) -> np.ndarray:
        self.kept = kept
        return np.ones(size, dtype=bool)


def priced(program: str = SAMPLES) -> Noted:
    """The deviation and the rate of the steps, from the program's text and its price."""
    noted = Noted()
    with tempfile.TemporaryDirectory() as folder, mock.patch.object(exposures, "SecureNoise", lambda: noted):
        (Path(folder) / "t.csv").write_text("who,v\nA,3\n")
        declared = f'private t = table("t.csv") described by {{v: 0..7}} protecting rows budget {BASIC}\n'
        result = Session(cwd=Path(folder)).attempt(Source("audit.jst", declared + program))
    if not result.ok:
        raise RuntimeError(result.diagnostics)
    return noted


def samples(runs: int, rng: np.random.Generator) -> Pair:
    """No row against one, in a cell of each of two tables; the log-likelihood ratio of all steps of a run."""
    noted = priced()

    def drawn(rows: Rows) -> np.ndarray:
        seen = released(SeededNoise(int(rng.integers(2**31))), rows, noted.kept, runs * STEPS, noted.sigma)
        told = (seen.sum(axis=1) - 1) / noted.sigma**2  # v is (1, 1): x·v − ‖v‖²/2
        return np.log1p(RATE * np.expm1(told)).reshape(runs, STEPS).sum(axis=1).round(9)

    return drawn(Rows(np.zeros((0, 2), dtype=np.int32), 2, 0)), drawn(Rows(np.array([[0, 1]], dtype=np.int32), 2, 1))


def sums_of_samples(runs: int, rng: np.random.Generator) -> Pair:
    """No row against one, whose number is the bound; the log-likelihood ratio of all steps of a run."""
    noted, noise, one = priced(SUMS), SeededNoise(int(rng.integers(2**31))), 1 << BITS
    contribution = CONTRIBUTIONS["coordinates"](1)
    fold = SampledFold(ContributionFold(contribution, 1.0, "l2"), noise, noted.kept)
    rows = BallRows(lambda: iter([np.array([[GRID]], dtype=np.int16)]))
    kept = np.array([int(fold.over(rows)[0][0]) for _ in range(runs * STEPS)])

    def drawn(exact: np.ndarray) -> np.ndarray:
        seen = noise.gaussian(exact, noted.sigma).astype(float)
        ratios = (seen * one - one * one / 2) / noted.sigma**2
        return np.log1p(RATE * np.expm1(ratios)).reshape(runs, STEPS).sum(axis=1).round(9)

    return drawn(np.zeros_like(kept)), drawn(kept)


def one_sample_for_all(x: np.ndarray, runs: int, rng: np.random.Generator) -> np.ndarray:
    """Twenty noisy counts of one sample of a tenth of the rows, with the noise for twenty fresh samples."""
    kept = rng.random(runs) < 0.1
    sigma = noise_for(1.0, DELTA, 0.1, 20)
    return np.round((x.sum() * kept)[:, None] + rng.normal(0, sigma, (runs, 20)), 3).sum(axis=1).round(3)
