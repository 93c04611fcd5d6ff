"""The hash by which rows of a person stay, in plain Python: what `jostle/engine/sql/persons.py` says in SQL."""

from __future__ import annotations

import hashlib

HALF = 2**31 - 1
FACTORS = (0x5BD1E995, 0x6C8E9CF5, 0x27D4EB2F, 0x165667B1, 0x2C1B3C6D)


def row_hash(cells: tuple[str | None, ...]) -> int:
    """Of the raw texts of the described columns, by the order of their names."""
    low, high = 0x2545F491, 0x1B873593
    for i in range(len(cells) + 3):
        if i < len(cells):
            x = _number(cells[i])
            low, high = low ^ (x & HALF), high ^ ((x >> 31) & HALF)
        product = low * (FACTORS[i % 5] & HALF | 1)
        low, high = high ^ (product >> 31), product & HALF
    return low * 2**31 + high


def _number(cell: str | None) -> int:
    if not cell:
        return 0x3C6EF372FE94F82B
    digits = cell.removeprefix("-")
    if digits.isascii() and digits.isdigit() and str(int(cell)) == cell and -(2**63) <= int(cell) < 2**63:
        return int(cell)
    return int(hashlib.sha256(cell.encode()).hexdigest()[:12], 16)
