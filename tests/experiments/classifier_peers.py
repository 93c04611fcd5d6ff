"""The peers on the same splits as `classifiers`, in an environment of their own:

    python -m venv PEERS && PEERS/bin/pip install diffprivlib==0.6.6 "scikit-learn<1.8" interpret-core pandas
    PEERS/bin/python tests/experiments/classifier_peers.py --out peers.json [--repeats 10] [--tables …]
    python -m tests.experiments.classifier_peers --beside ours.json --out peers.json

diffprivlib's random forest, Gaussian naive Bayes and logistic regression, pure ε, bounds and classes given; and
interpret's DP-EBM (δ = 1e-5), privacy bounds given. Categories are whole numbers for the first three's trees and Gauss,
indicators for the logistic regression (‖x‖₂ = √attributes). Nothing of Jostle is imported.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))  # `tests` may be another package over there
from classification_data import EPSILONS, NAMES, load, split

warnings.filterwarnings("ignore")
PEERS = ("forest", "gaussian naive Bayes", "logistic regression", "DP-EBM")


def coded(rows: dict[str, Any], domains: dict[str, list[str]], label: str) -> tuple[Any, Any]:
    places = {c: {v: i for i, v in enumerate(values)} for c, values in domains.items()}
    columns = [np.array([places[c][v] for v in rows[c]]) for c in rows if c != label]
    return np.stack(columns, axis=1), np.array([places[label][v] for v in rows[label]])


def indicators(cells: Any, sizes: list[int]) -> Any:
    return np.hstack([np.eye(size)[cells[:, i]] for i, size in enumerate(sizes)])


def fitted(peer: str, epsilon: float, x: Any, y: Any, sizes: list[int], classes: int, seed: int) -> Any:
    if peer == "DP-EBM":
        from interpret.privacy import DPExplainableBoostingClassifier

        if classes > 2:
            return None  # it has two classes only
        names = [f"a{i}" for i in range(len(sizes))]
        model = DPExplainableBoostingClassifier(
            epsilon=epsilon, delta=1e-5, random_state=seed, feature_names=names, feature_types=["nominal"] * len(sizes),
            n_jobs=1,
        )  # fmt: skip
        return model.fit(x.astype(str), y)
    from diffprivlib.models import GaussianNB, LogisticRegression, RandomForestClassifier

    bounds = (np.zeros(len(sizes)), np.array(sizes) - 1.0)
    if peer == "forest":
        model = RandomForestClassifier(
            n_estimators=10,
            max_depth=5,
            epsilon=epsilon,
            bounds=bounds,
            classes=list(range(classes)),
            random_state=seed,
        )
        return model.fit(x.astype(float), y)
    if peer == "gaussian naive Bayes":
        return GaussianNB(epsilon=epsilon, bounds=bounds, random_state=seed).fit(x.astype(float), y)
    return LogisticRegression(epsilon=epsilon, data_norm=len(sizes) ** 0.5, random_state=seed).fit(
        indicators(x, sizes), y
    )


def measure(name: str, repeats: int) -> tuple[dict[str, Any], dict[str, float]]:
    columns, domains, label = load(name)
    sizes = [len(v) for c, v in domains.items() if c != label]
    found: dict[str, Any] = {p: np.full((len(EPSILONS), repeats), np.nan) for p in PEERS}
    seconds = dict.fromkeys(PEERS, 0.0)
    for r in range(repeats):
        (x, y), (test_x, test_y) = (coded(part, domains, label) for part in split(columns, r))
        for i, epsilon in enumerate(EPSILONS):
            for peer in PEERS:
                start = time.process_time()
                model = fitted(peer, epsilon, x, y, sizes, len(domains[label]), 7919 * r + i)
                seconds[peer] = max(seconds[peer], time.process_time() - start)
                if model is None:
                    continue
                cells = indicators(test_x, sizes) if peer == "logistic regression" else test_x.astype(float)
                cells = test_x.astype(str) if peer == "DP-EBM" else cells
                found[peer][i, r] = 100 * np.mean(model.predict(cells) == test_y)
    return {p: each.tolist() for p, each in found.items()}, seconds


def beside(ours: dict[str, Any], peers: dict[str, Any]) -> None:
    """Cells (table × ε × peer) in which the best of ours is at least as good, within 0.5 points."""
    cells = good = 0
    for name, each in peers.items():
        best = np.max([np.mean(a, axis=1) for a in ours[name].values()], axis=0)
        for peer, accuracies in each.items():
            theirs = np.mean(accuracies, axis=1)
            if np.isnan(theirs).any():
                continue
            shown, own = (" ".join(f"{a:5.1f}" for a in means) for means in (theirs, best))
            print(f"{name:12} {peer:22} {shown}   ours {own}")
            cells, good = cells + len(theirs), good + int((best >= theirs - 0.5).sum())
    print(f"at least as good within 0.5 points in {good} of {cells} cells ({good / cells:.0%})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", default=",".join(NAMES))
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--beside", type=Path, default=None)
    chosen = parser.parse_args()
    kept = json.loads(chosen.out.read_text()) if chosen.out.exists() else {}
    if chosen.beside is not None:
        beside(json.loads(chosen.beside.read_text()), kept)
        return
    for name in chosen.tables.split(","):
        kept[name], seconds = measure(name, chosen.repeats)
        chosen.out.write_text(json.dumps(kept))
        for peer, each in kept[name].items():
            shown = " ".join(f"{a:5.1f}" for a in np.mean(each, axis=1))
            print(f"{name:12} {peer:22} {shown}   {seconds[peer]:.2f} s at most", flush=True)


if __name__ == "__main__":
    main()
