"""The warnings of a session: each once, without those that are switched off by name."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from jostle.diagnostics import Diagnostic
from jostle.source import Source


class Warned(list[Diagnostic]):
    """A list of warnings; those of the names in `allowed` do not come into it."""

    def __init__(self, allowed: Collection[str] = ()) -> None:
        super().__init__()
        self._allowed = frozenset(allowed)

    def add(self, source: Source, warnings: Sequence[Diagnostic]) -> None:
        """Takes those of a program's warnings that its comments do not switch off."""
        from jostle.check.warnings import unallowed

        for one in unallowed(source, warnings, self._allowed):
            if one not in self:
                self.append(one)
