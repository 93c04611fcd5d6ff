"""Errors of the methods that were published, on the tables of the ports: by formula, or by their algorithms in NumPy.

    PEERS/bin/python tests/experiments/ports_reference.py

prints the figures of diffprivlib, where PEERS is an environment with diffprivlib and pandas. Its two answers that
`ports.py` quotes are of ten draws each.
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

Tables = dict[str, Any]


def opendp_theil_sen(t: Tables) -> str:
    """OpenDP's, at ε 1 with a thousand candidates: the root mean square of ten fits' distances to the true line."""
    import opendp.prelude as dp
    from opendp.extras.sklearn.linear_model import LinearRegression

    dp.enable_features("contrib", "floating-point", "honest-but-curious", "idealized-numerics")
    points = t["points"]

    def fitted(scale: float) -> Any:
        return LinearRegression(
            dp.max_divergence(), x_bounds=[(0, 10)], y_bounds=(-20, 60), scale=scale, candidates_count=1000
        )

    scale = fitted(1.0).measurement.map(1)
    lines = [fitted(scale).fit(points[["x"]].to_numpy(), points["y"].to_numpy()) for _ in range(10)]
    slope, intercept = (np.sqrt(np.mean([(value - true) ** 2 for value in values])) for values, true in (
        ([line.coef_[0] for line in lines], 3), ([line.intercept_ for line in lines], 2)
    ))  # fmt: skip
    return f"OpenDP 0.16, ten fits: {slope:.2g} and {intercept:.2g} root mean square from slope 3 and intercept 2"


def best_bound(t: Tables) -> str:
    """Of sums of at most k rows of a person at ε 1, the least root mean square error of any k."""
    orders = t["orders"]
    place = orders.groupby("customer").cumcount()
    errors = [math.hypot(orders["amount"][place >= k].sum(), math.sqrt(2) * 200 * k) for k in range(1, 41)]
    return f"± {1.96 * min(errors):,.0f}: the best bound that the rows themselves tell (PipelineDP tunes on them)"


def k_marginal(made: Any, true: Any) -> float:
    """NIST's score: 1,000 less 500 times the mean distance of all tables of three columns."""
    gaps = [
        made.value_counts(list(names), normalize=True).sub(true.value_counts(list(names), normalize=True), fill_value=0)
        for names in combinations(true.columns, 3)
    ]
    return float(1000 * (1 - np.mean([gap.abs().sum() for gap in gaps]) / 2))


def apart(t: Tables) -> str:
    survey, draw = t["survey"], np.random.default_rng(0)
    shuffled = pd.DataFrame({name: draw.permutation(survey[name]) for name in survey})
    again = survey.sample(len(survey), replace=True, random_state=0)
    both = k_marginal(shuffled, survey), k_marginal(again, survey)
    return "columns apart, without noise: {:.0f}; a sample of the rows themselves: {:.0f}".format(*both)


def by_policy(_: Tables) -> str:
    from tests.experiments import keys

    many = keys.by_policy(keys.pairs(np.random.default_rng(1)), 8, np.random.default_rng(0))
    return f"{many} words: policy Gaussian (Gopi and others 2020), each of its two parts with all of δ"


def greenwood(t: Tables) -> str:
    """The half-width of the sampling alone, beyond month 1."""
    drug = t["patients"].query("arm == 'drug'")
    dies = ((drug["months"] == 1) & (drug["died"] == "yes")).mean()
    return f"± {1.96 * math.sqrt(dies * (1 - dies) / len(drug)):.2g} by sampling alone beyond month 1 (Greenwood)"


def explained(t: Tables, vectors: Any) -> float:
    """Share of the variance of the best two components that these two have."""
    second = t["body"].T.to_numpy() @ t["body"].to_numpy()
    return float(np.trace(vectors[:2] @ second @ vectors[:2].T) / np.linalg.eigvalsh(second)[-2:].sum())


def analyze_gauss(t: Tables) -> str:
    """Symmetric Gaussian noise of the classical deviation on the sum of products of rows in a ball."""
    radius, draw, shares = 0.7 * 4, np.random.default_rng(0), []
    body = t["body"].to_numpy()
    body = body * np.minimum(1, radius / np.linalg.norm(body, axis=1))[:, None]
    for _ in range(20):
        noise = np.triu(draw.normal(0, radius**2 * math.sqrt(2 * math.log(1.25 / 1e-6)), (6, 6)))
        shares.append(explained(t, np.linalg.eigh(body.T @ body + noise + np.triu(noise, 1).T)[1][:, ::-1].T))
    return f"{1 - np.mean(shares):.1g} lost by Analyze Gauss (20 draws), 0.003 by diffprivlib's (ε alone, 10 draws)"


def honaker(_: Tables) -> str:
    """Running counts of 182 days by a tree of nodes with equal noise, each answer by least squares of what is over."""
    nodes = [np.arange(step, step + wide) for wide in 2 ** np.arange(8) for step in range(0, 256, wide)]
    variances = []
    for day in range(1, 183):
        over = np.array([np.isin(np.arange(day), node) for node in nodes if node[-1] < day], dtype=float)
        variances.append(np.linalg.inv(over.T @ over).sum() * 8)  # eight levels, σ² = 8/(2ρ)
    alone = 1.96 * math.sqrt(182)
    return f"± {1.96 * math.sqrt(np.mean(variances)):.2g}: Honaker's tree; ± {alone:.2g}: each day anew"


def lasting(drug: Any) -> list[float]:
    """The shares that last beyond each month."""
    shares, left = [], 1.0
    for month in range(1, 25):
        dies = ((drug["months"] == month) & (drug["died"] == "yes")).sum()
        left *= 1 - dies / (drug["months"] >= month).sum()
        shares.append(left)
    return shares


def mantel(patients: Any) -> tuple[float, float]:
    """Expected deaths of the drug's arm, and the log of the hazard ratio by Newton's method (ties as Breslow's)."""
    drug, beta, expected = (patients["arm"] == "drug").to_numpy(), 0.0, 0.0
    months, died = patients["months"].to_numpy(), (patients["died"] == "yes").to_numpy()
    for _ in range(10):
        slope = bend = expected = 0.0
        for month in range(1, 25):
            ours, everybody = ((months >= month) & drug).sum(), (months >= month).sum()
            events = ((months == month) & died).sum()
            share = ours * math.exp(beta) / (everybody + ours * (math.exp(beta) - 1))
            slope += ((months == month) & died & drug).sum() - events * share
            bend += events * share * (1 - share)
            expected += events * ours / everybody
        beta += slope / bend
    return expected, beta


def log_odds(loans: Any) -> Any:
    """Logistic regression by Newton's method, without noise: intercept, income, debt."""
    x = np.column_stack([np.ones(len(loans)), loans["income"], loans["debt"]])
    y, weights = (loans["fails"] == "yes").to_numpy(float), np.zeros(3)
    for _ in range(20):
        chance = 1 / (1 + np.exp(-x @ weights))
        weights += np.linalg.solve((x.T * (chance * (1 - chance))) @ x, x.T @ (y - chance))
    return weights


def main() -> None:
    import warnings

    import ports_data  # beside this file, from which it is run
    from diffprivlib.models import PCA, LogisticRegression

    warnings.simplefilter("ignore")
    loans, body = ports_data.logistic()["loans"], ports_data.pca()["body"].to_numpy()
    x, y, true = loans[["income", "debt"]].to_numpy(), loans["fails"] == "yes", log_odds(loans)
    off = []
    for _ in range(10):
        fit = LogisticRegression(epsilon=1, data_norm=math.sqrt(18), C=1e6, max_iter=1000).fit(x, y)
        off.append(np.array([fit.intercept_[0], *fit.coef_[0]]) - true)
    print("logistic, root mean square of intercept and slopes", np.sqrt(np.mean(np.square(off), axis=0)))
    lost = [
        1
        - explained(
            {"body": pd.DataFrame(body)}, PCA(2, epsilon=1, bounds=(-4, 4), data_norm=2.8).fit(body).components_
        )
        for _ in range(10)
    ]
    print("PCA, lost", np.mean(lost))


if __name__ == "__main__":
    main()
