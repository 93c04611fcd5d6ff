"""Released classifiers as scikit-learn classifiers.

    model = session.run("classify.jst")["model"]
    classifier = PrivateClassifier(model)
    classifier.score(X_test, y_test)

The classifier is fitted already and stays so: `fit` learns nothing, as in `sklearn.frozen.FrozenEstimator`, since a
model that has been paid for is a public value and data that it is shown later must not change it. Predicting costs no
budget.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin  # type: ignore[import-untyped]

from jostle.kernels.classifiers.shrink import classifier_from_json


class PrivateClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A fitted classifier: `classes_`, `predict`, `predict_proba`, `predict_log_proba`, `score`.

    model : what a program released, such as `naive_bayes(…)` or a tree.
    features : the names of an array's columns, in order; left out, the attributes that the model reads, in its order.
        A data frame is read by its column names, whatever their order and however many more it has.

    A cell that the model does not know, or that is missing, is no error: it says nothing.
    """

    def __init__(self, model: Any, features: Sequence[str] | None = None) -> None:
        self.model = model
        self.features = features

    def fit(self, X: object, y: object = None) -> PrivateClassifier:
        """Nothing is learned; `self`."""
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_clone__(self) -> PrivateClassifier:
        return self

    def __sklearn_tags__(self) -> object:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.requires_fit = False
        return tags

    @property
    def classes_(self) -> NDArray[Any]:
        return self._classes()[0]

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        names = self.features if self.features is not None else list(self.model.attributes)
        return np.array(list(names), dtype=object)

    @property
    def n_features_in_(self) -> int:
        return len(self.feature_names_in_)

    def predict_proba(self, X: object) -> NDArray[np.float64]:
        """Shape (rows, classes), in the order of `classes_`. Raises `ValueError` for columns that are not there."""
        columns, rows = self._columns(X)
        probabilities: NDArray[np.float64] = self.model.probabilities(columns or {"no attribute": [None] * rows})
        return probabilities[:, self._classes()[1]]

    def predict_log_proba(self, X: object) -> NDArray[np.float64]:
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict(self, X: object) -> NDArray[Any]:
        labels: NDArray[Any] = self.classes_[np.argmax(self.predict_proba(X), axis=1)]
        return labels

    def to_json(self) -> str:
        return json.dumps({"features": self.features and list(self.features), "model": self.model.as_json()})

    @classmethod
    def from_json(cls, text: str) -> PrivateClassifier:
        """The classifier that `to_json` wrote, or around a model that a program released as JSON; else `ValueError`."""
        data = json.loads(text)
        if not isinstance(data, Mapping) or not isinstance(data.get("model"), Mapping):
            return cls(classifier_from_json(data))
        return cls(classifier_from_json(data["model"]), data.get("features"))

    def _classes(self) -> tuple[NDArray[Any], list[int]]:
        """The classes in order, whole numbers as such, and where each stands in the model."""
        values = [int(c) if isinstance(c, float) and c.is_integer() else c for c in self.model.classes]
        order = sorted(range(len(values)), key=lambda i: (isinstance(values[i], str), values[i]))
        return np.array([values[i] for i in order]), order

    def _columns(self, X: Any) -> tuple[dict[str, Any], int]:
        names = [n for n in self.feature_names_in_ if n in self.model.attributes]
        if hasattr(X, "columns") and hasattr(X, "__getitem__"):
            missing = [n for n in names if n not in X.columns]
            if missing:
                raise ValueError(f"the data have no column {missing[0]!r}, which this classifier reads")
            return {n: np.asarray(X[n], dtype=object) for n in names}, len(X)
        if hasattr(X, "toarray"):
            raise TypeError("sparse data are not supported: convert them with .toarray()")
        array = np.asarray(X)
        if array.dtype.kind == "c":
            raise ValueError("Complex data not supported")
        if array.ndim != 2:
            raise ValueError(f"Expected 2D array, got {array.ndim}D array instead. Reshape your data.")
        if array.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {array.shape[1]} features, but PrivateClassifier is expecting {self.n_features_in_} "
                "features as input"
            )
        places = {name: i for i, name in enumerate(self.feature_names_in_)}
        return {name: array[:, places[name]] for name in names}, len(array)
