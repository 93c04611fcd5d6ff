"""Classifiers of tables of many attributes, of which most tell nothing."""

from __future__ import annotations

from unittest import mock

import numpy as np

from jostle.privacy.kernel import exposures
from jostle.simulate import SeededNoise
from jostle.source import Source
from jostle.tools.session import Session


def test_an_attribute_that_changes_no_majority_is_selected_among_many() -> None:
    """Most rows are of one class at both of its values: the rows that an attribute gets right are the same for all."""
    rng = np.random.default_rng(5)
    half = rng.integers(0, 2, 2000)
    ill = rng.random(2000) < np.where(half, 0.5, 0.04)
    data = {f"a{i}": rng.integers(0, 10, 2000) for i in range(30)}
    domains = ", ".join(f"a{i}: 0..9" for i in range(30))
    session = Session()
    session.bind("t", data | {"b": half, "c": np.where(ill, "ill", "well")})
    with mock.patch.object(exposures, "SecureNoise", lambda: SeededNoise(5)):
        session.execute(Source("p.jst", (
            f'use classify\nprivate t = bound("t") described by {{{domains}, b: 0..1, c: {{"ill", "well"}}}} '
            'protecting rows budget epsilon 9\nm = [adaptive_classifier(t, "c", true) with epsilon 1 for i in 1..2]\n'
        )))  # fmt: skip
    for model in session.names()["m"]:
        by_attributes, shares = model.parts
        assert "b" in by_attributes.attributes and len(by_attributes.attributes) == 3 and not shares.attributes
