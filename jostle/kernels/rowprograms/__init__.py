"""Builders of row programs: what noisy sums, scores and models calculate of a private row.

They turn public parameters into programs of the closed operations of `jostle.privacy.rows`, which are total, exact and
of one row each. So nothing here is trusted: a wrong formula costs accuracy, and parameters that do not fit are refused
when the program is built, before anything is charged. All raise `ValueError` for them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from jostle.kernels.rowprograms import contributions, decisions, losses, mixtures
from jostle.privacy.rows.factored import FactoredGradient
from jostle.privacy.rows.norms import Contributions, Weights

WEIGHTS: Mapping[str, Callable[..., Weights]] = {
    "one": mixtures.one, "responsibilities": mixtures.responsibilities, "framed": mixtures.framed,
    "nearest": mixtures.nearest, "nearest_from": mixtures.nearest_from, "within": mixtures.within,
    "logistic_curvature": contributions.logistic_curvature,
}  # fmt: skip
CONTRIBUTIONS: Mapping[str, Callable[..., Contributions]] = {
    "coordinates": contributions.coordinates, "indicators": contributions.indicators,
    "logistic_gradient": contributions.logistic_gradient, "pair_products": contributions.pair_products,
    "products": contributions.products, "told_apart": contributions.told_apart,
    "softmax_gradient": contributions.softmax_gradient, "squared_products": contributions.squared_products,
    "log_density": mixtures.log_density, "cell_shares": mixtures.cell_shares, "score_shares": mixtures.score_shares,
    "rest_apart": decisions.rest_apart, "rest_shares": decisions.rest_shares,
    "loss_gradient": losses.loss_gradient,
}  # fmt: skip
GRADIENTS: Mapping[str, Callable[..., FactoredGradient]] = {
    "ising_gradient": contributions.ising_gradient, "sign_gradient": contributions.sign_gradient,
}  # fmt: skip
"""By the name that a program of the language gives: functions of the number of columns and of its parameters."""
