"""Where the checker's errors and warnings are gathered: each place says a kind of thing once, all in source order."""

from __future__ import annotations

from collections.abc import Iterable

from jostle.diagnostics import Diagnostic, Note
from jostle.source import Span


class Report:
    """Findings of one program."""

    def __init__(self) -> None:
        self._diagnostics: dict[tuple[str, Span | None], Diagnostic] = {}

    def __len__(self) -> int:
        """The number of errors."""
        return sum(not one.is_warning for one in self._diagnostics.values())

    def has(self, kind: str) -> bool:
        """Whether something of this kind was reported, anywhere."""
        return any(known == kind for known, _ in self._diagnostics)

    def add(
        self, kind: str, message: str, span: Span, *, label: str = "", help: str = "", notes: tuple[Note, ...] = ()
    ) -> None:
        self._diagnostics.setdefault((kind, span), Diagnostic(kind, message, span, label, help, notes))

    def extend(self, diagnostics: Iterable[Diagnostic]) -> None:
        for diagnostic in diagnostics:
            self._diagnostics.setdefault((diagnostic.kind, diagnostic.span), diagnostic)

    def in_order(self) -> list[Diagnostic]:
        """All findings by place, those without one first."""
        return sorted(self._diagnostics.values(), key=_position)


def _position(diagnostic: Diagnostic) -> tuple[int, int]:
    return (diagnostic.span.line, diagnostic.span.column) if diagnostic.span is not None else (0, 0)
