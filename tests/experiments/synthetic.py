"""Synthetic rows of Adult: mean total variation over all 2-way marginals, and what a classifier learns from them.

    python -m tests.experiments.synthetic [--trials 3] [--epsilon 1] [--delta 1e-9] [--with tree,pairs,tree-eps]
        [--out FILE]
    python -m tests.experiments.synthetic --with mst,aim [--model-size 80] [--rounds 56]  # where mbi is

14 columns of UCI Adult (`fnlwgt` left out), binned; three quarters of the rows are private, a quarter is held out.
`tree` and `pairs` run `learn_tree` and `learn_pairs` of `stdlib/graphical.jst` under ρ-zCDP, ρ the most that (ε, δ)
allows; `-eps` under pure ε; `pairs28` takes 28 rounds. `mst` and `aim` are those of github.com/ryan112358/mbi at the
same (ε, δ). The classifier is gradient boosting, trained on as many synthetic rows as there are private ones and tested
on real ones held out. With `--out` each run is a line of JSON in a file as it ends, and runs that are there already are
not made again.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.int64]
ADULT = Path(__file__).resolve().parents[3] / "shared" / "data" / "tables" / "adult.csv"
BINS = {
    "age": "floor(age / 5)", "education_num": "education_num", "hours_per_week": "floor(hours_per_week / 5)",
    "capital_gain": "floor(log(1 + capital_gain))", "capital_loss": "floor(log(1 + capital_loss))",
}  # fmt: skip
RANGES = {
    "age": (17, 90), "education_num": (1, 16), "hours_per_week": (1, 99), "capital_gain": (0, 99999),
    "capital_loss": (0, 4999),
}  # fmt: skip


def adult() -> Any:
    import pandas as pd

    return pd.read_csv(ADULT, skipinitialspace=True).drop(columns="fnlwgt")


def binned(frame: Any) -> tuple[Codes, list[str], list[int]]:
    """The binned codes from 0, the names, and how many values each column has by its public description."""
    columns, sizes = [], []
    for name in frame.columns:
        if name in BINS:
            cut = {"age": lambda v: v // 5, "hours_per_week": lambda v: v // 5, "education_num": lambda v: v}.get(
                name, lambda v: np.floor(np.log1p(v)).astype(int)
            )
            low, high = (int(cut(np.array([end]))[0]) for end in RANGES[name])
            columns.append(np.clip(cut(frame[name].to_numpy()), low, high) - low)
            sizes.append(high - low + 1)
        else:
            values = sorted(frame[name].unique())
            columns.append(frame[name].map({v: i for i, v in enumerate(values)}).to_numpy())
            sizes.append(len(values))
    return np.stack(columns, axis=1).astype(np.int64), list(frame.columns), sizes


def ours(frame: Any, whole: Any, how: str, epsilon: float, delta: float, seed: int) -> Codes:
    """Rows of a model that the standard library learns from `frame`, as codes."""
    from jostle.accounting.conversions import rho_of
    from jostle.source import Source
    from jostle.tools.session import Session

    session = Session()
    session.bind("adult", frame)
    described = []
    for name in frame.columns:
        if name in RANGES:
            described.append(f"{name}: {RANGES[name][0]}..{RANGES[name][1]}")
        else:
            described.append(f"{name}: {{" + ", ".join(f'"{v}"' for v in sorted(whole[name].unique())) + "}")
    pure = how.endswith("-eps")
    rounds = re.sub(r"\D", "", how)
    budget = f"epsilon {epsilon}" if pure else f"rho {rho_of(epsilon, delta):.12f}"
    derived = ", ".join(f"{name} = {formula}" for name, formula in BINS.items())
    given = "rows" + (f", rounds = {rounds}" if rounds else "")
    program = f"""
use graphical
private adult = bound("adult") described by {{{", ".join(described)}}} protecting rows budget {budget}
rows = derive(adult, {derived})
learned = learn_{how.split("-")[0].rstrip("0123456789")}({given}) with {budget}
release learned
print(learned.cliques)
"""
    result = session.attempt(Source("synthetic.jst", program))
    if not result.ok:
        raise RuntimeError(result.diagnostics)
    model = result["learned"]
    return np.asarray(model.sample(len(frame), seed).codes)


def of_mbi(
    codes: Codes, names: list[str], sizes: list[int], how: str, epsilon: float, delta: float, model_size: float,
    rounds: int | None,
) -> Codes:  # fmt: skip
    import mbi
    import pandas as pd

    folder = Path(mbi.__file__).resolve().parents[2] / "mechanisms"
    sys.path.insert(0, str(folder))
    domain = mbi.Domain(tuple(names), tuple(sizes))
    data = mbi.Dataset({n: codes[:, i] for i, n in enumerate(names)}, domain)
    if how == "mst":
        from mst import MST

        synthetic = MST(data, epsilon, delta)
    else:
        from aim import AIM

        workload = [(pair, 1.0) for pair in combinations(names, 2)]
        out = AIM(epsilon, delta, max_model_size=model_size, rounds=rounds).run(data, workload)
        synthetic = out[1] if isinstance(out, tuple) else out
    table = pd.DataFrame(synthetic.to_dict() if hasattr(synthetic, "to_dict") else synthetic.df)
    return table[names].to_numpy(dtype=np.int64)


def mean_tv(a: Codes, b: Codes, sizes: list[int]) -> float:
    """Mean total variation distance over all 2-way marginals."""
    found = []
    for i, j in combinations(range(len(sizes)), 2):
        p, q = (np.bincount(x[:, i] * sizes[j] + x[:, j], minlength=sizes[i] * sizes[j]) / len(x) for x in (a, b))
        found.append(0.5 * np.abs(p - q).sum())
    return float(np.mean(found))


def accuracy(train: Codes, test: Codes) -> float:
    from sklearn.ensemble import HistGradientBoostingClassifier

    made = HistGradientBoostingClassifier(max_iter=100, random_state=0).fit(train[:, :-1], train[:, -1])
    return float(made.score(test[:, :-1], test[:, -1]))


def one(asked: argparse.Namespace, frame: Any, how: str, seed: int) -> dict[str, Any]:
    """One way on one split: its error, what a classifier learns from it, and the processor's seconds it took."""
    codes, names, sizes = binned(frame)
    order = np.random.default_rng(seed).permutation(len(frame))
    held, kept = order[: len(order) // 4], order[len(order) // 4 :]
    start = time.process_time()
    if how == "real":
        made = codes[kept]
    elif how == "independent":
        rng = np.random.default_rng(seed)
        made = np.stack([rng.permutation(codes[kept, i]) for i in range(len(names))], axis=1)
    elif how in ("mst", "aim"):
        made = of_mbi(codes[kept], names, sizes, how, asked.epsilon, asked.delta, asked.model_size, asked.rounds)
    else:
        made = ours(frame.iloc[kept], frame, how, asked.epsilon, asked.delta, seed)
    seconds = time.process_time() - start
    return {"tv": mean_tv(codes[kept], made, sizes), "accuracy": accuracy(made, codes[held]), "seconds": seconds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--delta", type=float, default=1e-9)
    parser.add_argument("--model-size", type=float, default=80, help="of AIM, in MB")
    parser.add_argument("--rounds", type=int, help="of AIM; left out, 16 for each column")
    parser.add_argument("--with", dest="ways", default="real,independent,tree,pairs")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    if not ADULT.exists():
        print(f"{ADULT.name} is not here: nothing is measured")
        return
    frame = adult()
    lines = asked.out.read_text().splitlines() if asked.out is not None and asked.out.exists() else []
    kept = [json.loads(line) for line in lines]
    for how in asked.ways.split(","):
        runs = []
        for seed in range(asked.trials):
            facts = {"how": how, "seed": seed, "epsilon": asked.epsilon, "delta": asked.delta}
            if how == "aim":
                facts |= {"model_size": asked.model_size, "rounds": asked.rounds}
            found = next((run for run in kept if facts.items() <= run.items()), None)
            if found is None:
                found = facts | one(asked, frame, how, seed)
                if asked.out is not None:
                    with asked.out.open("a") as file:
                        file.write(json.dumps(found) + "\n")
            runs.append([found["tv"], found["accuracy"], found["seconds"]])
        tv, score, seconds = np.mean(runs, axis=0)
        error = np.std(runs, axis=0, ddof=1) / np.sqrt(len(runs)) if len(runs) > 1 else [np.nan] * 3
        print(
            f"{how:>12}  mean 2-way TV {tv:.4f} ± {error[0]:.4f}  accuracy {score:.4f} ± {error[1]:.4f}  "
            f"{seconds:.0f} s of the processor",
            flush=True,
        )


if __name__ == "__main__":
    main()
