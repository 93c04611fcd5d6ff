"""Words of the language that are no built-ins and that the checker must know."""

from __future__ import annotations

FOLDS = ("max", "min", "sum", "argmax", "argmin")
ALWAYS = frozenset({"epsilon", "rho"})  # names of what is left of an allotment
COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">="})
QUANTUM = 1e-12  # no amount may be smaller
