"""What a kernel says to the person who called it.

What functions of the library ask of a public number before they measure anything.
"""

from __future__ import annotations


class KernelError(ValueError):
    """Wrong arguments, in words that a message of the language may quote: of public values, and of nothing private."""


def whole_number(value: object, least: int, most: int, what: str) -> None:
    """Refuses what is no whole number from `least` to `most`; `what` names what is counted, in the plural."""
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        text = f'"{value}"' if isinstance(value, str) else f"{value:g}" if isinstance(value, float) else str(value)
        raise KernelError(f"{what} are a whole number from {least:,} to {most:,}, not {text}")
