"""A portable hash of a row's cells in whole numbers, of which every database has the arithmetic.

It decides which rows of a person stay, where any choice would do that looks at no other person's row; it keeps no
secret. 62 bits, in two halves of 31 so that no product leaves 64 bits: a Feistel network, one round a cell and three at
the end. A cell that is written as a whole number of 64 bits counts as that number, whether a file stores it as a text
or not; other texts count by 48 bits of their SHA-256, and doubles by their own bits, of which −0 has those of 0.
Different rows may have the same hash: whoever chooses by it lets the cells themselves decide where it ties.
"""

from __future__ import annotations

from jostle.engine.sql.dialect import Dialect, subquery
from jostle.engine.sql.rows import Physical

BITS = 62
HALF = 2**31 - 1
START = (0x2545F491, 0x1B873593)
_FACTORS = (0x5BD1E995, 0x6C8E9CF5, 0x27D4EB2F, 0x165667B1, 0x2C1B3C6D)
ROUNDS = 3
MISSING = 0x3C6EF372FE94F82B


def hashed(source: str, cells: list[Physical], dialect: Dialect) -> str:
    """The rows of `source` with a BIGINT `h` from 0 to 2^62 − 1; a cell is a whole number or a text, or NULL."""
    xor, right = dialect.xor.format, dialect.right.format
    query = f"SELECT *, {', '.join(f'{counted_as(cell, dialect)} AS x{i}' for i, cell in enumerate(cells)) or '0 AS x'}"
    query += f" FROM {subquery(source)}{dialect.fence}"
    low, high = (f"CAST({start} AS BIGINT)" for start in START)
    for i in range(len(cells) + ROUNDS):
        if i < len(cells):
            low = xor(low, f"(x{i} & {HALF})")
            high = xor(high, f"({right(f'x{i}', 31)} & {HALF})")
        query = f"SELECT *, ({low}) * {factor(i)} AS u{i}, {high} AS v{i} FROM {subquery(query)}{dialect.fence}"
        low, high = xor(f"v{i}", right(f"u{i}", 31)), f"(u{i} & {HALF})"
    return f"SELECT *, {xor(f'({low}) * {HALF + 1}', high)} AS h FROM {subquery(query)}{dialect.fence}"


def counted_as(cell: Physical, dialect: Dialect) -> str:
    """The whole number, of 64 bits, that a cell counts as."""
    if cell.whole:
        return f"coalesce(CAST({cell.alias} AS BIGINT), {MISSING})"
    text, whole = cell.alias, dialect.whole_of.format(cell.alias)
    cases = f"WHEN {dialect.as_text(whole)} = {text} THEN {whole}"
    return f"CASE {cases} WHEN {text} IS NULL THEN {MISSING} ELSE {dialect.digest.format(text)} END"


def factor(turn: int) -> int:
    return _FACTORS[turn % len(_FACTORS)] & HALF | 1
