"""`softmax_regression`, `fit` and `network_classifier` beside a plain DP-SGD in NumPy, and beside Opacus.

    python -m tests.experiments.dpsgd_reference TABLES [--runs 5] [--tables adult …] [--network] [--fit]
    python -m venv PEERS && PEERS/bin/pip install opacus torch pandas scikit-learn
    PEERS/bin/python tests/experiments/dpsgd_reference.py TABLES --opacus

TABLES is a folder of UCI tables as CSV files; `digits` is scikit-learn's. A third of the rows is held out. The
reference takes Poisson samples, clips each row's gradient and adds Gaussian noise, with the steps, rate, clip and
noise of ours; it steps by each of `PACES` times the mean gradient, with momentum 0 and 0.9, and is shown at the pair
that is best on the rows held out, which no private run can know. Opacus has the same model at the same pairs, and
less noise: what its own accountant (PRV) allows for the (ε, δ).
"""

from __future__ import annotations

import argparse
import math
import re
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

EPSILONS, DELTA, STEPS, CLIP = (0.2, 1.0, 4.0), 1e-6, {"softmax": 200, "network": 300}, {"softmax": 2.0, "network": 4.0}
PACES = [(rate, keeps) for keeps in (0.0, 0.9) for rate in np.array([0.03, 0.1, 0.3, 1, 3, 10]) * (1 - keeps)]
TABLES, HIDDEN = ("adult", "letters", "nursery", "mushroom", "digits"), 8
ADULT = ["age", "education_num", "hours_per_week", "marital_status", "sex", "occupation", "income"]


def table(folder: Path, name: str) -> tuple[Any, str]:
    if name == "digits":
        from sklearn.datasets import load_digits

        pixels, y = load_digits(return_X_y=True)
        frame = pd.DataFrame(pixels, columns=[f"p{i}" for i in range(64)]).assign(digit=[f"d{v}" for v in y])
    else:
        frame = pd.read_csv(folder / f"{name}.csv", skipinitialspace=True)
        frame = frame[ADULT] if name == "adult" else frame
    frame.columns = [re.sub(r"\W", "_", n) for n in frame.columns]
    frame = frame.loc[:, [c for c in frame.columns if frame[c].nunique() > 1]].dropna()
    return frame, frame.columns[-1]


def is_text(cells: Any) -> bool:
    return cells.dtype.kind not in "if"


def described(frame: Any) -> str:
    def one(cells: Any) -> str:
        values = "{" + ", ".join(f'"{v}"' for v in sorted(cells.unique())) + "}"
        return values if is_text(cells) else f"{cells.min():g}..{cells.max():g}"

    return "{" + ", ".join(f"{n}: {one(frame[n])}" for n in frame.columns) + "}"


def inputs(frame: Any, whole: Any, target: str) -> tuple[Any, Any]:
    """Cells within ±1 and a last one of 1, and the places of the classes."""
    columns = []
    for name in whole.columns.drop(target):
        cells, every = frame[name], whole[name]
        if is_text(every):
            columns += [(cells == v).to_numpy(float) for v in sorted(every.unique())]
        else:
            middle, half = (every.max() + every.min()) / 2, (every.max() - every.min()) / 2
            columns.append(((cells - middle) / half).to_numpy())
    x = np.column_stack([*columns, np.ones(len(frame))])
    return x, frame[target].map({v: i for i, v in enumerate(sorted(whole[target].unique()))}).to_numpy()


def halves(frame: Any, seed: int) -> tuple[Any, Any]:
    order = np.random.default_rng(seed).permutation(len(frame))
    return frame.iloc[order[len(frame) // 3 :]], frame.iloc[order[: len(frame) // 3]]


def outputs(weights: list[Any], x: Any) -> Any:
    if len(weights) == 1:
        return x @ weights[0].T
    return np.column_stack([np.tanh(x @ weights[0].T), np.ones(len(x))]) @ weights[1].T


def start(model: str, wide: int, classes: int, draw: Any) -> list[Any]:
    if model == "softmax":
        return [np.zeros((classes, wide))]
    return [draw.normal(size=(HIDDEN, wide)) / math.sqrt(wide), 0.1 * draw.normal(size=(classes, HIDDEN + 1))]


def reference(
    model: str, x: Any, y: Any, classes: int, rate: float, sigma: float, pace: float, keeps: float, draw: Any
) -> list[Any]:  # fmt: skip
    """The last weights of a plain DP-SGD."""
    clip, weights = CLIP[model], start(model, x.shape[1], classes, draw)
    moves = [np.zeros_like(w) for w in weights]
    for _ in range(STEPS[model]):
        kept = draw.random(len(x)) < rate
        own, truth = x[kept], np.eye(classes)[y[kept]]
        z = outputs(weights, own)
        shares = np.exp(z - z.max(axis=1, keepdims=True))
        off = shares / shares.sum(axis=1, keepdims=True) - truth
        sides = [(off, own)]
        if model == "network":
            units = np.tanh(own @ weights[0].T)
            before = (off @ weights[1][:, :-1]) * (1 - units**2)
            sides = [(before, own), (off, np.column_stack([units, np.ones(len(own))]))]
        norms = np.sqrt(sum((a**2).sum(axis=1) * (b**2).sum(axis=1) for a, b in sides))
        shorter = np.minimum(1, clip / np.maximum(norms, 1e-12))[:, None]
        for i, (a, b) in enumerate(sides):
            noisy = (a * shorter).T @ b + draw.normal(size=weights[i].shape) * sigma * clip
            moves[i] = keeps * moves[i] - pace * noisy / (rate * len(x))
            weights[i] = weights[i] + moves[i]
    return weights


def opacus(
    model: str, x: Any, y: Any, classes: int, rate: float, sigma: float, pace: float, keeps: float, seed: int
) -> Any:  # fmt: skip
    import torch
    from opacus import PrivacyEngine

    torch.manual_seed(seed)
    torch.set_num_threads(1)
    net: Any = torch.nn.Linear(x.shape[1] - 1, classes)
    if model == "softmax":
        torch.nn.init.zeros_(net.weight), torch.nn.init.zeros_(net.bias)
    else:
        net = torch.nn.Sequential(
            torch.nn.Linear(x.shape[1] - 1, HIDDEN), torch.nn.Tanh(), torch.nn.Linear(HIDDEN, classes)
        )
    rows = torch.utils.data.TensorDataset(torch.tensor(x[:, :-1]).float(), torch.tensor(y))
    loader = torch.utils.data.DataLoader(rows, batch_size=max(1, round(rate * len(x))))
    down = torch.optim.SGD(net.parameters(), lr=pace, momentum=keeps)
    net, down, loader = PrivacyEngine().make_private(
        module=net, optimizer=down, data_loader=loader, noise_multiplier=sigma, max_grad_norm=CLIP[model]
    )
    done = 0
    while done < STEPS[model]:
        for own, truth in loader:
            down.zero_grad()
            torch.nn.functional.cross_entropy(net(own), truth).backward()
            down.step()
            done += 1
            if done == STEPS[model]:
                break
    return lambda test: net(torch.tensor(test[:, :-1]).float()).detach().numpy()


def ours(call: str, frame: Any, target: str, unit: str, test: Any) -> Any:
    """Accuracy of a program on the rows held out."""
    import jostle

    session, xs = jostle.Session(), [c for c in frame.columns if c != target]
    session.bind("t", frame)
    head = f'private t = bound("t") described by {described(pd.concat([frame, test]))}'
    head += " protecting rows budget epsilon 9, delta 1e-5\n"
    x, y = inputs(test, pd.concat([frame, test]), target)
    classes = sorted(pd.concat([frame, test])[target].unique())
    calls = {
        "softmax": f'softmax_regression(t, "{target}", {json_list(xs)})',
        "network": f'network_classifier(t, "{target}")',
        "fit": "fit(t, off, {" + ", ".join(f"k{i}: {[0] * x.shape[1]}" for i in range(len(classes))) + "})",
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "p.jst"
        program.write_text(
            f"use statistics\nuse learning\n{head}{loss(frame, test, target, classes) if call == 'fit' else ''}"
            f"release fitted = {calls[call]} with {unit}\n"
        )
        fitted = session.run(str(program))["fitted"]
    if call == "network":
        return outputs([np.array(fitted["weights"]["first"]), np.array(fitted["weights"]["last"])], x).argmax(1) == y
    if call == "fit":
        return (x @ np.array([fitted["weights"][f"k{i}"] for i in range(len(classes))]).T).argmax(1) == y
    z = np.zeros((len(test), len(classes)))
    for line in fitted.rows:
        k = classes.index(str(line["class"]))
        cells = 1.0 if line["column"] == "intercept" else test[line["column"]]
        z[:, k] += line["value"] * ((cells == line["of"]) if line["of"] != "" else cells)
    return z.argmax(1) == y


def json_list(names: list[str]) -> str:
    return "[" + ", ".join(f'"{n}"' for n in names) + "]"


def loss(frame: Any, test: Any, target: str, classes: list[str]) -> str:
    """Softmax regression, written in the language."""
    cells = []
    for name in frame.columns.drop(target):
        every = pd.concat([frame[name], test[name]])
        cells += [f'row["{name}"]["{v}"]' for v in sorted(every.unique())] if is_text(every) else [f'row["{name}"]']
    odds = ", ".join(f"sum([w.k{i}[j] * c[j] for j in 0..len(c) - 1])" for i in range(len(classes)))
    own = ", ".join(f'row["{target}"]["{k}"]' for k in classes)
    return (
        f"def off(w, row):\n    c = [{', '.join(cells)}, 1]\n    z = [{odds}]\n    own = [{own}]\n"
        "    return log(sum([exp(one) for one in z])) - sum([z[k] * own[k] for k in 0..len(z) - 1])\n"
    )


def shown(name: str, values: Any) -> str:
    values = 100 * np.asarray(values)
    return f"{name} {values.mean():.2f} ± {values.std(ddof=1) / math.sqrt(len(values)):.2f}"


def main() -> None:
    warnings.filterwarnings("ignore")
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--tables", nargs="*", default=TABLES)
    parser.add_argument("--epsilons", nargs="*", type=float, default=EPSILONS)
    parser.add_argument("--network", action="store_true")
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--opacus", action="store_true")
    parser.add_argument("--rates", nargs="*", type=int, help="which of PACES")
    arguments = parser.parse_args()
    model = "network" if arguments.network else "softmax"
    for name in arguments.tables:
        frame, target = table(arguments.folder, name)
        for epsilon in arguments.epsilons:
            line = one_line(model, frame, target, epsilon, arguments)
            print(f"{name:9} ε {epsilon:<4g} {line}", flush=True)


RATES = {"softmax": {0.2: 2**-5, 1.0: 2**-4, 4.0: 2**-3}, "network": {0.2: 2**-6, 1.0: 2**-5, 4.0: 2**-3}}
"""What `rate_for` chooses, for Opacus' environment."""


def one_line(model: str, frame: Any, target: str, epsilon: float, arguments: Any) -> str:
    classes, rate = frame[target].nunique(), RATES[model][epsilon]
    paces = [PACES[i] for i in arguments.rates] if arguments.rates else PACES
    if arguments.opacus:
        from opacus.accountants.utils import get_noise_multiplier

        sigma = get_noise_multiplier(
            target_epsilon=epsilon, target_delta=DELTA, sample_rate=rate, steps=STEPS[model], accountant="prv"
        )
    else:
        from jostle.accounting.composition import rate_for
        from jostle.accounting.subsampled_gaussian import noise_for

        assert rate == rate_for(0.95 * epsilon, 0.95 * DELTA, STEPS[model])
        sigma = noise_for(0.95 * epsilon, 0.95 * DELTA, rate, STEPS[model])
    right: dict[tuple[float, float], list[float]] = {pace: [] for pace in paces}
    own: dict[str, list[float]] = {call: [] for call in ([model] + ["fit"] * arguments.fit) * (not arguments.opacus)}
    for seed in range(arguments.runs):
        train, test = halves(frame, seed)
        (x, y), (test_x, test_y) = inputs(train, frame, target), inputs(test, frame, target)
        for pace in paces:
            if arguments.opacus:
                z = opacus(model, x, y, classes, rate, sigma, *pace, seed)(test_x)
            else:
                draw = np.random.default_rng(1000 + seed)
                z = outputs(reference(model, x, y, classes, rate, sigma, *pace, draw), test_x)
            right[pace].append(float((z.argmax(1) == test_y).mean()))
        for call in own:
            own[call].append(float(ours(call, train, target, f"epsilon {epsilon} delta {DELTA}", test).mean()))
    best = max(right, key=lambda pace: np.mean(right[pace]))
    peer = "Opacus" if arguments.opacus else "reference"
    parts = [shown(call, values) for call, values in own.items()] + [shown(peer, right[best])]
    return f"{'; '.join(parts)} (pace {best[0]:.3g}, momentum {best[1]}; rate {rate}, noise {sigma:.4f})"


if __name__ == "__main__":
    sys.exit(main())
