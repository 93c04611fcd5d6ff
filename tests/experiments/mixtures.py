"""The experiments of DP-EM (Park, Foulds, Chaudhuri, Welling 2017) again, and what the page of the design asks.

    python -m tests.experiments.mixtures life | published | kmeans | factors | speed | memory

Prints what stands in docs/experiments/mixtures.md. Life Science is read from the shared folder beside the repository.
"""

from __future__ import annotations

import math
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from jostle.accounting.definitions import rho_of
from jostle.accounting.subsampled_gaussian import mu_of
from jostle.source import Source
from jostle.tools.session import Session

ROOT = Path(__file__).resolve().parents[2]
LIFE = ROOT.parent / "shared" / "data" / "lifesci.csv"
EPSILONS = (0.1, 0.5, 1.0, 4.0)
DELTA = 1e-4
SPLITS = 10


def life() -> tuple[np.ndarray, float]:
    """The ten columns, and the largest norm of a row: declared as a public constant, as the paper's figures need."""
    rows = np.loadtxt(LIFE, delimiter=",")[:, :10]
    return rows, float(np.linalg.norm(rows, axis=1).max())


def split(rows: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    order = np.random.default_rng(seed).permutation(len(rows))
    cut = int(0.9 * len(rows))
    return rows[order[:cut]], rows[order[cut:]]


def columns(rows: np.ndarray) -> dict[str, np.ndarray]:
    return {f"x{i + 1}": np.ascontiguousarray(rows[:, i]) for i in range(rows.shape[1])}


def declared(radius: float, d: int, budget: str) -> str:
    described = ", ".join(f"x{i + 1}: -{radius!r}..{radius!r}" for i in range(d))
    return (
        f'private points = bound("points") described by {{{described}}} protecting rows budget {budget}\n'
        "rows = vectors(points, radius = 1)\n"
    )


def fitted(rows: np.ndarray, radius: float, call: str, budget: str, head: str = "use mixtures\n") -> Any:
    session = Session()
    session.bind("points", columns(rows))
    text = head + declared(radius, rows.shape[1], budget) + f"release model = {call}\n"
    return session.run(Source("experiment.jst", text))["model"]


def row(name: str, values: list[float], digits: int = 2) -> None:
    print(f"| {name} | " + " | ".join(f"{v:.{digits}f}" for v in values) + " |", flush=True)


# Life Science --------------------------------------------------------------------------------------


def chooser() -> str:
    """The choice of programs/choose_mixture.jst, trained on ten columns."""
    text = (ROOT / "programs" / "choose_mixture.jst").read_text(encoding="utf-8")
    text = text[: text.index("private points")]
    return text.replace("param columns = 4", "param columns = 10").replace("param quick = true", "param quick = false")


def life_science(splits: int = SPLITS) -> None:
    rows, radius = life()
    shift = 10 * math.log(radius)  # in units of the largest norm, as in the paper
    ways = {
        "one Gaussian": "single_gaussian(rows)",
        "mixture, K = 3, 8 rounds": "mixture(rows, 3, 8)",
        "mixture, K = 12, 5 rounds": "mixture(rows, 12, 5)",
        "mixture, K = 24, 8 rounds": "mixture(rows, 24, 8)",
        "GGG, sums about the middle, K = 3, 10 rounds": "dpem(rows, 3, 10)",
        "LLG, the same": "dpem_llg(rows, 3, 10)",
    }
    print("| | " + " | ".join(f"ε = {e:g}" for e in EPSILONS) + " |\n|---|" + "---|" * len(EPSILONS))
    for name, call in ways.items():
        found = []
        for epsilon in EPSILONS:
            budget = f"epsilon {epsilon}, delta {DELTA} counted by basic"
            scores = []
            for seed in range(splits):
                train, test = split(rows, seed)
                model = fitted(train, radius, f"{call} with epsilon {epsilon} delta {DELTA}", budget)
                scores.append(model.score(test) + shift)
            found.append(float(np.mean(scores)))
        row(name, found)


def life_choice(splits: int = SPLITS) -> None:
    rows, radius = life()
    shift = 10 * math.log(radius)
    found, picked = [], []
    for epsilon in EPSILONS:
        rho = rho_of(epsilon, DELTA)
        scores, sizes = [], []
        for seed in range(splits):
            train, test = split(rows, seed)
            model = fitted(
                train, radius, f"fit({{rows: rows, test: none}}) with rho {rho!r}", f"rho {rho!r}", chooser()
            )
            scores.append(model.score(test) + shift)
            sizes.append(model.n_components)
        found.append(float(np.mean(scores)))
        picked.append(sorted(set(sizes)))
        print(epsilon, rho, scores, sizes, flush=True)
    row("**the choice** (counted in zCDP)", found)
    print("components picked:", picked)


# The algorithm as it is printed: quotients, and noise for a sensitivity of 2/N_k ----------------------


def multipliers(epsilon: float, rounds: int, components: int) -> dict[str, float]:
    """The noise multiplier of each of rounds·(2K + 1) releases under each way of adding up, as the paper has them."""
    times = rounds * (2 * components + 1)
    each = epsilon / times
    classic = math.sqrt(2 * math.log(1.25 * times / DELTA)) / each

    def smallest(fits: Any) -> float:
        low, high = 1e-3, 1e6
        for _ in range(100):
            middle = math.sqrt(low * high)
            low, high = (low, middle) if fits(middle) else (middle, high)
        return high

    def advanced(sigma: float) -> bool:
        small = DELTA / (2 * times)
        one = math.sqrt(2 * math.log(1.25 / small)) / sigma
        whole = one * math.sqrt(2 * times * math.log(2 / DELTA)) + times * one * math.expm1(min(one, 700))
        return whole <= epsilon

    def moments(sigma: float) -> bool:
        logs = [times * a * (a + 1) / (2 * sigma * sigma) - a * epsilon for a in range(1, 201)]
        return min(logs) <= math.log(DELTA)

    def zcdp(sigma: float) -> bool:
        rho = times / (2 * sigma * sigma)
        return rho + 2 * math.sqrt(rho * math.log(1 / DELTA)) <= epsilon

    return {
        "linear": classic, "advanced": smallest(advanced), "moments accountant": smallest(moments),
        "zCDP": smallest(zcdp), "exact": math.sqrt(times) / mu_of(epsilon, DELTA),
    }  # fmt: skip


def as_printed(rows: np.ndarray, components: int, rounds: int, noise: float, rng: np.random.Generator) -> Any:
    """GGG: π, each mean and each covariance perturbed after dividing, by the paper's sensitivities 2/N and 2/N_k."""
    from sklearn.mixture import GaussianMixture

    n, d = rows.shape
    weights = np.full(components, 1 / components)
    means = rows[rng.choice(n, components)]
    covariances = np.repeat(np.cov(rows.T)[None], components, axis=0)
    for _ in range(rounds):
        model = GaussianMixture(components)
        model.weights_, model.means_, model.covariances_ = weights, means, covariances
        model.precisions_cholesky_ = np.linalg.inv(np.linalg.cholesky(covariances)).transpose(0, 2, 1)
        shares = model.predict_proba(rows)
        counts = np.maximum(shares.sum(axis=0), 1.0)
        weights = np.maximum(counts / n + rng.normal(0, noise * 2 / n, components), 1e-3)
        weights = weights / weights.sum()
        exact = (shares.T @ rows) / counts[:, None]
        means = exact + rng.normal(0, 1, exact.shape) * (noise * 2 / counts)[:, None]
        for k in range(components):
            centred = rows - means[k]
            seen = (shares[:, k, None] * centred).T @ centred / counts[k]
            extra = np.triu(rng.normal(0, noise * 2 / counts[k], (d, d)))
            values, vectors = np.linalg.eigh(seen + extra + np.triu(extra, 1).T)
            covariances[k] = (vectors * np.maximum(values, 1e-3)) @ vectors.T
    model.weights_, model.means_, model.covariances_ = weights, means, covariances
    model.precisions_cholesky_ = np.linalg.inv(np.linalg.cholesky(covariances)).transpose(0, 2, 1)
    return model


def published(splits: int = SPLITS) -> None:
    rows, radius = life()
    rows = rows / radius
    found: dict[str, list[float]] = {}
    for epsilon in EPSILONS:
        for way, noise in multipliers(epsilon, 10, 3).items():
            scores = []
            for seed in range(splits):
                train, test = split(rows, seed)
                scores.append(as_printed(train, 3, 10, noise, np.random.default_rng(seed)).score(test))
            found.setdefault(way, []).append(float(np.mean(scores)))
    for way, values in found.items():
        row(f"as printed (not private), GGG, {way}", values)


# k-means -------------------------------------------------------------------------------------------


def check_ins(many: int, seed: int = 0) -> np.ndarray:
    """Synthetic check-ins in degrees: towns whose sizes fall off as 1/rank, each a round crowd."""
    rng = np.random.default_rng(seed)
    towns = np.stack([rng.uniform(-160, 160, 60), rng.uniform(-55, 70, 60)], axis=1)
    sizes = 1 / (1 + np.arange(60.0))
    at = rng.choice(60, many, p=sizes / sizes.sum())
    wide = rng.uniform(0.5, 6, 60)
    made = towns[at] + rng.normal(0, 1, (many, 2)) * wide[at, None] * np.array([1.0, 0.6])
    return np.clip(made, [-180, -90], [180, 90])


def kmeans(runs: int = 10, many: int = 1_260_000, clusters: int = 10) -> None:
    rows = check_ins(many)
    head = "use mixtures\n"
    source = (
        'private p = bound("p") described by {x: -180.0..180.0, y: -90.0..90.0} protecting rows\n'
        "    budget epsilon 1000, delta 0.9 counted by basic\n"
        'inside = vectors(p, norm = "sup")\nball = vectors(p, radius = 1)\n'
        "grid = derive(p, gx = min(63, floor((x + 180) / 360 * 64)), gy = min(63, floor((y + 90) / 180 * 64)))\n"
        "cube = histogram(grid, x = gx, y = gy)\n"
    )
    calls = {
        "DPLloyd, linear": "dplloyd(inside, K, 5, seed = S) with epsilon 0.01",
        "DPLloyd, zCDP": 'dplloyd(inside, K, 5, each = pure_share("zcdp", 0.01, 5, 0.0001), seed = S)',
        "ours": "kmeans(ball, K, 6, seed = S) with epsilon 0.01 delta 0.0001",
        "one histogram, 64 × 64 (pure ε)": "grid_kmeans(ball, cube, K, seed = S) with epsilon 0.01",
    }
    found: dict[str, list[float]] = {name: [] for name in calls}
    train, test = split(rows, 0)
    session = Session()
    session.bind("p", {"x": np.ascontiguousarray(train[:, 0]), "y": np.ascontiguousarray(train[:, 1])})
    session.execute(Source("experiment.jst", head + source))
    for seed in range(runs):
        for name, call in calls.items():
            text = call.replace("K", str(clusters)).replace("S", str(seed))
            session.execute(Source("experiment.jst", f"model = {text}\n"))
            found[name].append(session.names()["model"].nicv(test))
    for name, values in found.items():
        print(f"| {name} | {np.mean(values):.1f} | {np.min(values):.1f} | {np.max(values):.1f} |", flush=True)
    from sklearn.cluster import KMeans

    best = KMeans(clusters, n_init=3, random_state=0).fit(train[:100_000])
    print(f"| without privacy (100,000 of the rows) | {-best.score(test) / len(test):.1f} | | |", flush=True)
    try:
        from diffprivlib.models import KMeans as Peer  # type: ignore[import-not-found]
    except ImportError:
        print("diffprivlib is not installed here")
        return
    values = []
    for seed in range(runs):
        made = Peer(n_clusters=clusters, epsilon=0.01, bounds=([-180, -90], [180, 90]), random_state=seed).fit(train)
        near = ((test[:, None] - made.cluster_centers_[None]) ** 2).sum(axis=2).min(axis=1)
        values.append(float(near.mean()))
    print(f"| diffprivlib's KMeans, ε = 0.01 | {np.mean(values):.1f} | {np.min(values):.1f} | {np.max(values):.1f} |")


# Factor analysis -----------------------------------------------------------------------------------


def factors(runs: int = 10) -> None:
    from sklearn.datasets import load_digits
    from sklearn.decomposition import FactorAnalysis

    digits = load_digits().data
    reference = FactorAnalysis(10, tol=1e-6, max_iter=2000).fit(digits).components_
    described = ", ".join(f"x{i + 1}: 0.0..16.0" for i in range(64))
    print("| ε | 0.3 | 1 | 3 | 10 | 30 | 100 | 1000 |\n|---|" + "---|" * 7)
    table: dict[str, list[float]] = {"largest of ten angles": [], "median of ten angles": [], "first direction": []}
    for epsilon in (0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 1000.0):
        angles = []
        for _ in range(runs):
            session = Session()
            session.bind("p", {f"x{i + 1}": np.ascontiguousarray(digits[:, i]) for i in range(64)})
            text = (
                f'use mixtures\nprivate p = bound("p") described by {{{described}}} protecting rows '
                f"budget epsilon 10000, delta 0.01 counted by basic\n"
                f"release model = factor_analysis(vectors(p, radius = 8), 10) with epsilon {epsilon} delta 0.0001\n"
            )
            model = session.run(Source("experiment.jst", text))["model"]
            mine, theirs = np.linalg.qr(model.components_.T)[0], np.linalg.qr(reference.T)[0]
            cosines = np.clip(np.linalg.svd(mine.T @ theirs, compute_uv=False), -1, 1)
            angles.append(np.degrees(np.arccos(cosines)))
        mean = np.mean(angles, axis=0)
        for name, value in zip(table, (mean.max(), np.median(mean), mean.min()), strict=True):
            table[name].append(float(value))
    for name, values in table.items():
        row(name, values, 1)


# Speed and memory ----------------------------------------------------------------------------------


def speed(many: int = 1_000_000, d: int = 10, components: int = 5, rounds: int = 5) -> None:
    """Processor seconds of an iteration beside scikit-learn's on the same rows, by the difference of two runs of each.

    Set OMP_NUM_THREADS=1, so that both have one thread.
    """
    import warnings

    from sklearn.mixture import GaussianMixture

    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    middles = rng.normal(0, 2, (components, d))
    rows = middles[rng.integers(0, components, many)] + rng.normal(0, 1, (many, d))
    session = Session()
    session.bind("points", columns(np.clip(rows, -10, 10)))
    head = "use mixtures\n" + declared(10.0, d, "epsilon 1000, delta 0.9 counted by basic")
    session.execute(Source("experiment.jst", head + "m = single_gaussian(rows) with epsilon 1 delta 0.0001\n"))

    def ours(rounds: int) -> float:
        start = time.process_time()
        session.execute(
            Source("experiment.jst", f"m = mixture(rows, {components}, {rounds}) with epsilon 1 delta 0.0001\n")
        )
        return time.process_time() - start

    def theirs(rounds: int) -> float:
        model = GaussianMixture(components, max_iter=rounds, tol=0, init_params="random_from_data", random_state=0)
        start = time.process_time()
        model.fit(rows)
        return time.process_time() - start

    for _ in range(2):
        one, two = (ours(rounds + 1) - ours(1)) / rounds, (theirs(rounds + 1) - theirs(1)) / rounds
        print(f"an iteration over {many:,} × {d}, K = {components}: {one:.2f} s, scikit-learn {two:.2f} s", flush=True)


def memory(many: int = 10_000_000, d: int = 10) -> None:
    """The most memory that a fit over a Parquet file takes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "points.parquet"
        schema = pa.schema([(f"x{i + 1}", pa.float64()) for i in range(d)])
        rng = np.random.default_rng(0)
        with pq.ParquetWriter(path, schema) as writer:
            for _ in range(many // 250_000):
                rows = np.clip(rng.normal(0, 2, (250_000, d)), -10, 10)
                writer.write_table(pa.table(columns(rows)))
        text = declared(10.0, d, "epsilon 1, delta 0.0001 counted by basic").replace(
            'bound("points")', f'table("{path}")'
        )
        text = "use mixtures\n" + text + "release m = mixture(rows, 5, 2) with epsilon 1 delta 0.0001\n"
        start = time.time()
        Session().run(Source("experiment.jst", text))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(f"{many:,} rows × {d} from Parquet: {time.time() - start:.0f} s, {peak:.2f} GB at most")


COMMANDS = {
    "life": life_science, "choice": life_choice, "published": published, "kmeans": kmeans, "factors": factors,
    "speed": speed, "memory": memory,
}  # fmt: skip

if __name__ == "__main__":
    for word in sys.argv[1:] or ["life"]:
        COMMANDS[word]()
