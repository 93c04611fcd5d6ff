"""Jostle: a small language for differential privacy whose runtime chooses the algorithm."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from jostle.version import __version__

__all__ = ["PrivateClassifier", "Refusal", "Session", "__version__", "connect", "describe", "evaluate", "improve"]

if TYPE_CHECKING:
    from jostle.diagnostics import Refusal
    from jostle.tools.draft import describe
    from jostle.tools.estimators import PrivateClassifier
    from jostle.tools.evaluation import evaluate, improve
    from jostle.tools.remote import connect
    from jostle.tools.session import Session


_HOME = {
    "PrivateClassifier": "tools.estimators", "Refusal": "diagnostics", "Session": "tools.session",
    "connect": "tools.remote", "describe": "tools.draft", "evaluate": "tools.evaluation",
    "improve": "tools.evaluation",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    """Loads the heavy parts when they are first used, so that `import jostle` costs nothing."""
    if name not in _HOME:
        raise AttributeError(f"module 'jostle' has no attribute {name!r}", name=name, obj=sys.modules[__name__])
    from importlib import import_module

    return getattr(import_module(f"jostle.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return [*__all__, *(name for name in globals() if name.startswith("__"))]


def load_ipython_extension(shell: object) -> None:
    """`%load_ext jostle`: cells that begin with `%%jostle` are Jostle."""
    from jostle.tools.editors.notebook import load

    load(shell)
