"""Disjoint parts of a table by a hash: what each tree of a forest may have for its own.

Which part a row goes to is decided by the row alone, by its protected unit: the values of the protected columns,
or under `protecting rows` all the values it has. So the parts are disjoint under public keys, other rows never
decide where one goes, and what is spent on the parts counts as their maximum (docs/privacy/transformations.md). All
rows of a person go to one part. Rows that are equal in all values go together too, which costs nothing but evenness;
parts by position, or of equal size, would not do: there one row more moves others.

The hash is SHA-256, so that parts are as even as the values are many, and the same on every machine.
"""

from __future__ import annotations

from jostle.diagnostics import refuse
from jostle.plan.plan import Apply, Column, Constant, RowExpr
from jostle.privacy.kernel.exposures import Handle
from jostle.privacy.kernel.handles import Table
from jostle.privacy.reading.public_data import PublicData
from jostle.privacy.transformations.transform import partition

MOST_PARTS = 1000


def split_rows(data: PublicData, table: Table, parts: int, salt: int = 0) -> list[Handle]:
    """`parts` disjoint parts of a table, by a hash of the protected unit and of the salt. Stability is the table's."""
    if not 1 <= parts <= MOST_PARTS:
        raise refuse("ValueError", f"rows are split into 1 to {MOST_PARTS:,} parts")
    domains = table.domains
    columns = list(dict.fromkeys(c for e in table.exposures for c in e.unit.columns))
    for name in columns:
        if name not in domains:
            raise refuse(
                "NameError", f"rows are split by what is protected, and `{name}` is no column of this table",
                help=f"describe it: `described by {{{name}: text, …}}`",
            )  # fmt: skip
    numbers: tuple[RowExpr, ...] = (Constant(float(parts)), Constant(float(salt)))
    hashed = (*numbers, *(Column(name) for name in columns or domains))
    return [part for _, part in partition(data, table, Apply("bucket", hashed), "the hash", range(parts))]
