"""Released classifiers as scikit-learn classifiers: what its tools ask of one that is fitted."""

from __future__ import annotations

import json
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import VotingClassifier
from sklearn.inspection import permutation_importance
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import estimator_checks
from sklearn.utils.validation import check_is_fitted

import jostle
from jostle import PrivateClassifier
from jostle.source import Source
from jostle.tools.session import Session

PROGRAM = """
use classifiers
use trees
private t = bound("t") described by {y: 0..2, a: -3.0..3.0, b: -3.0..3.0} protecting rows budget epsilon 100
cuts = equal_cuts(t, "y", 6)
D = in_bins(t, cuts)
with epsilon 5 { bayes = on_raw(naive_bayes(D, "y"), cuts) }
with epsilon 5 { shallow = on_raw(bayes_tree(D, "y"), cuts) }
with epsilon 5 { grown = on_raw(t_plus(D, "y"), cuts) }
flat = majority(D, "y") with epsilon 1
release bayes
release shallow
release grown
release flat
"""


def blobs(many: int, seed: int) -> tuple[pd.DataFrame, np.ndarray[Any, Any]]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, many)
    centres = np.array([[-1.5, 0.0], [1.5, 0.0], [0.0, 2.0]])
    x = np.clip(centres[y] + rng.normal(0, 0.6, (many, 2)), -3, 3)
    return pd.DataFrame(x, columns=["a", "b"]), y


@pytest.fixture(scope="module")
def models() -> dict[str, Any]:
    session = Session()
    x, y = blobs(3000, 1)
    session.bind("t", x.assign(y=y))
    result = session.attempt(Source("p.jst", PROGRAM))
    assert result.ok, result.diagnostics
    return result.released


@pytest.mark.parametrize("name", ["bayes", "shallow", "grown"])
def test_predict_score_and_order_of_classes(models: dict[str, Any], name: str) -> None:
    classifier = PrivateClassifier(models[name])
    x, y = blobs(500, 2)
    assert is_classifier(classifier)
    check_is_fitted(classifier)
    assert list(classifier.classes_) == [0, 1, 2] and set(classifier.feature_names_in_) == {"a", "b"}
    proba = classifier.predict_proba(x)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    np.testing.assert_array_equal(classifier.predict(x), proba.argmax(axis=1))
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(classifier.predict_log_proba(x), np.log(proba))
    assert classifier.score(x, y) > 0.75
    assert roc_auc_score(y, proba, multi_class="ovr") > 0.85


def test_frames_by_name_and_arrays_by_place(models: dict[str, Any]) -> None:
    x, _ = blobs(200, 3)
    classifier = PrivateClassifier(models["bayes"], features=["b", "other", "a"])
    expected = PrivateClassifier(models["bayes"]).predict_proba(x)
    np.testing.assert_array_equal(classifier.predict_proba(x.assign(z="?")[["z", "b", "a"]]), expected)
    np.testing.assert_array_equal(classifier.predict_proba(np.column_stack([x.b, x.a * 0, x.a])), expected)
    with pytest.raises(ValueError, match="no column 'b'"):
        classifier.predict(x[["a"]])
    with pytest.raises(ValueError, match="2 features, but PrivateClassifier is expecting 3"):
        classifier.predict(x.to_numpy())


def test_missing_cells_say_nothing(models: dict[str, Any]) -> None:
    classifier = PrivateClassifier(models["bayes"])
    found = classifier.predict_proba(np.array([[np.nan, np.nan], [np.nan, np.nan]]))
    np.testing.assert_array_equal(found[0], found[1])
    assert abs(found[0] - 1 / 3).max() < 0.1
    flat = PrivateClassifier(models["flat"], features=["a", "b"])
    assert len(set(flat.predict(blobs(20, 1)[0]))) == 1


@pytest.mark.parametrize("name", ["bayes", "shallow", "grown", "flat"])
def test_json_that_somebody_edited_is_a_value_error(models: dict[str, Any], name: str) -> None:
    """A part that is gone, or is of another type, in the model and one level below it."""
    whole = json.loads(PrivateClassifier(models[name]).to_json())["model"]
    edits: list[Any] = [[], 1, None, {"model": {}}]
    for key in whole:
        edits.append({k: v for k, v in whole.items() if k != key})
        if isinstance(whole[key], list) and whole[key] and isinstance(whole[key][0], dict):
            edits += [whole | {key: [{k: v for k, v in whole[key][0].items() if k != one}]} for one in whole[key][0]]
        edits += [whole | {key: 3}] if isinstance(whole[key], list | dict) else []
    refused = 0
    for edited in edits:
        try:
            PrivateClassifier.from_json(json.dumps(edited))
        except ValueError:
            refused += 1
    assert refused > len(edits) // 2


@pytest.mark.parametrize("name", ["bayes", "shallow", "grown", "flat"])
def test_json_pickle_and_clone(models: dict[str, Any], name: str) -> None:
    x, _ = blobs(100, 4)
    classifier = PrivateClassifier(models[name], features=["a", "b"])
    expected = classifier.predict_proba(x)
    for again in (
        PrivateClassifier.from_json(classifier.to_json()),
        pickle.loads(pickle.dumps(classifier)),
        clone(classifier),
    ):
        np.testing.assert_allclose(again.predict_proba(x), expected, atol=1e-5)
    assert classifier.get_params()["features"] == ["a", "b"]
    assert jostle.PrivateClassifier is PrivateClassifier


def test_fitting_learns_nothing(models: dict[str, Any]) -> None:
    classifier = PrivateClassifier(models["bayes"])
    x, y = blobs(100, 5)
    before = classifier.to_json()
    assert classifier.fit(x, (y + 1) % 3) is classifier
    assert classifier.to_json() == before


def test_inside_scikit_learns_own_tools(models: dict[str, Any]) -> None:
    classifier = PrivateClassifier(models["bayes"])
    x, y = blobs(300, 6)
    assert cross_val_score(classifier, x, y, cv=3).mean() > 0.75
    assert make_pipeline(FunctionTransformer(), classifier).fit(x, y).score(x, y) > 0.75
    assert permutation_importance(classifier, x, y, n_repeats=2, random_state=0).importances_mean.min() > 0
    assert CalibratedClassifierCV(classifier, cv=3).fit(x, y).score(x, y) > 0.75
    assert VotingClassifier([("one", classifier), ("two", classifier)], voting="soft").fit(x, y).score(x, y) > 0.75


APPLY = (
    "check_estimator_repr", "check_estimator_tags_renamed", "check_valid_tag_types", "check_get_params_invariance",
    "check_set_params", "check_no_attributes_set_in_init", "check_mixin_order",
    "check_do_not_raise_errors_in_init_or_set_param",
    "check_estimator_cloneable", "check_dict_unchanged", "check_estimators_overwrite_params", "check_estimators_pickle",
)  # fmt: skip


@pytest.mark.parametrize("check", APPLY)
def test_estimator_checks_that_a_fitted_classifier_can_pass(models: dict[str, Any], check: str) -> None:
    """Those that do not ask it to learn from data of another shape."""
    known = getattr(estimator_checks, check, None)
    if known is None:
        pytest.skip("this version of scikit-learn has no such check")
    known("PrivateClassifier", PrivateClassifier(models["bayes"], features=["a", "b", "c"]))  # their data have three
