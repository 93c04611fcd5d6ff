"""Functions of the library in Python; and what a kernel says to the person who called it."""

from __future__ import annotations


class KernelError(ValueError):
    """Wrong arguments, in words that a message of the language may quote: of public values, and of nothing private."""
