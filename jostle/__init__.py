"""Jostle: a small language for differential privacy whose runtime chooses the algorithm."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["Refusal", "Session", "__version__"]

if TYPE_CHECKING:
    from jostle.diagnostics import Refusal
    from jostle.tools.session import Session


def __getattr__(name: str) -> Any:
    """Loads the heavy parts when they are first used, so that `import jostle` costs nothing."""
    if name == "Session":
        from jostle.tools.session import Session

        return Session
    if name == "Refusal":
        from jostle.diagnostics import Refusal

        return Refusal
    raise AttributeError(f"module 'jostle' has no attribute {name!r}")
