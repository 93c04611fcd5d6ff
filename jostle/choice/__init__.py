"""Choosing an algorithm: features, training, models, policies, their store and their evaluation.

Everything here works on numbers, for training data that are public; the interpreter is behind `bench.Bench`. It
may touch no private source and draws no noise. Parts are loaded when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = [
    "Bench", "Decision", "Policy", "Store", "UserModel",
    "epsilon_grid", "evaluate", "forest", "learn", "regret_tree", "train", "train_event", "tree",
]  # fmt: skip

if TYPE_CHECKING:
    from jostle.choice.bench import Bench
    from jostle.choice.evaluation import evaluate
    from jostle.choice.learning import learn
    from jostle.choice.models import UserModel, forest, regret_tree, tree
    from jostle.choice.policy import Decision, Policy
    from jostle.choice.store import Store
    from jostle.choice.table import train_event
    from jostle.choice.training import epsilon_grid, train

_HOME = {
    "Bench": "bench", "Decision": "policy", "Policy": "policy", "Store": "store", "UserModel": "models",
    "epsilon_grid": "training", "evaluate": "evaluation", "forest": "models", "learn": "learning",
    "regret_tree": "models", "train": "training", "train_event": "table", "tree": "models",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    """A public name, from the module that holds it."""
    import importlib

    if name not in _HOME:
        raise AttributeError(f"module 'jostle.choice' has no attribute {name!r}")
    return getattr(importlib.import_module(f"jostle.choice.{_HOME[name]}"), name)
