"""A tree whose nodes have rows of those above them: what was counted without noise, and what is louder than it."""

from __future__ import annotations

import numpy as np

from jostle.kernels.classifiers.growing import PARENT_ROWS, GrowingTree, shrunk_tree_model, tree_split, tree_start
from jostle.kernels.noisy_array import NoiseModel, with_noise
from jostle.noise_laws import Laplace

CLASSES = ["no", "yes"]
LEAVES = np.array([[90.0, 10.0], [5.0, 45.0], [200.0, 20.0], [15.0, 30.0], [50.0, 49.0], [0.0, 0.0]])
"""Of a by b: two values by three."""


def tree() -> GrowingTree:
    root = tree_start([{"name": "a", "values": [0.0, 1.0]}, {"name": "b", "values": [0.0, 1.0, 2.0]}])
    return tree_split(tree_split(root, [0]), [0, 0])


def cells() -> dict[str, np.ndarray]:
    return {"a": np.repeat([0.0, 1.0], 3), "b": np.tile([0.0, 1.0, 2.0], 2)}


def noisy(values: np.ndarray, law: Laplace, rng: np.random.Generator) -> np.ndarray:
    flat = values.ravel()
    return with_noise(flat + rng.laplace(0, law.scale, flat.shape), NoiseModel(law))


def test_without_noise_leaves_are_what_was_counted() -> None:
    model = shrunk_tree_model(CLASSES, tree(), LEAVES.ravel(), LEAVES.sum(axis=0))
    found = model.predict_counts(cells())
    wanted = []
    for three in (LEAVES[:3], LEAVES[3:]):  # each has eight rows of the node above it, and that has eight of the root
        above = three.sum(axis=0) + PARENT_ROWS * LEAVES.sum(axis=0) / LEAVES.sum()
        rows = three + PARENT_ROWS * above / above.sum()
        wanted.append(rows / rows.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(found, np.concatenate(wanted), atol=1e-9)
    assert model.places(cells()).tolist()[:5] == [0, 1, 0, 1, 0]


def test_what_is_louder_than_noise_is_heard() -> None:
    rng = np.random.default_rng(2)
    leaves, counts = noisy(40 * LEAVES, Laplace(20.0), rng), noisy(40 * LEAVES.sum(axis=0), Laplace(20.0), rng)
    assert shrunk_tree_model(CLASSES, tree(), leaves, counts).places(cells()).tolist()[:4] == [0, 1, 0, 1]


def test_a_tree_of_one_leaf_weighs_both_counts() -> None:
    """Of 300 and 100 against 100 and 120 the one that was measured with less noise decides."""
    root = tree_start([{"name": "a", "values": [0.0, 1.0]}])
    little, much = NoiseModel(Laplace(1.0)), NoiseModel(Laplace(50.0))
    for sure in (True, False):
        one = with_noise(np.array([300.0, 100.0]), little if sure else much)
        other = with_noise(np.array([100.0, 120.0]), much if sure else little)
        assert shrunk_tree_model(CLASSES, root, one, other).places({"a": np.array([0.0])})[0] == (0 if sure else 1)
