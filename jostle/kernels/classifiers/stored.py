"""Classifiers from JSON, as `as_json` of each wrote it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from jostle.kernels.classifiers.codes import Cuts
from jostle.kernels.classifiers.models import AdditiveClassifier, Binned, Branched
from jostle.kernels.classifiers.shrink import blended_from_json
from jostle.kernels.classifiers.treemodel import Trees
from jostle.kernels.errors import KernelError


def classifier_from_json(data: Mapping[str, Any]) -> Any:
    """The classifier that `as_json` wrote; `ValueError` where this is none."""
    from_json = _READERS.get(str(data.get("model")))
    if from_json is None:
        raise KernelError(f"`{data.get('model')}` is no classifier")
    return from_json(data)


def _additive(data: Mapping[str, Any]) -> AdditiveClassifier:
    weights = {str(w["attribute"]): (tuple(w["values"]), np.array(w["weights"], dtype=float)) for w in data["weights"]}
    return AdditiveClassifier(
        data["kind"], tuple(data["classes"]), np.array(data["base"], dtype=float), weights, data["link"],
        bins=_bins(data),
    )  # fmt: skip


def _branched(data: Mapping[str, Any]) -> Branched:
    branches = tuple(classifier_from_json(b) for b in data["branches"])
    return Branched(data["attribute"], tuple(data["values"]), branches, _bins(data))


def _bins(data: Mapping[str, Any]) -> dict[str, Cuts]:
    return {name: Cuts(tuple(map(float, edges))) for name, edges in data.get("bins", {}).items()}


def _binned(data: Mapping[str, Any]) -> Binned:
    cuts = {name: Cuts(tuple(map(float, edges))) for name, edges in data["cuts"].items()}
    return Binned(classifier_from_json(data["inner"]), cuts)


def _blended(data: Mapping[str, Any]) -> object:
    return blended_from_json(data, classifier_from_json)


_READERS: dict[str, Any] = {
    "additive": _additive, "blended": _blended, "branched": _branched, "binned": _binned, "trees": Trees.from_json,
}  # fmt: skip
