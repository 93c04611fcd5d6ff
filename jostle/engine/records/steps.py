"""Conditions, calculated columns and keys of records that are held here: by the SQL that rows of tables are read by.

Expressions over private rows have one evaluator, `sql.rows`, which is total. Records that were joined or grouped lie in
memory; while they are asked about, DuckDB knows them as a table, whatever engine their rows came from. What columns
there are, and of what types, follows from the plan: no value decides it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from jostle.engine.duckdb.dialect import DUCKDB
from jostle.engine.records.columns import Block, typed
from jostle.engine.sql import relations
from jostle.engine.sql.dialect import subquery
from jostle.engine.sql.narrow import narrowed
from jostle.engine.sql.rows import Physical
from jostle.integers import fixed_width
from jostle.plan.plan import Column, Key, Plan, RowExpr, Scan, inputs
from jostle.plan.records import Kept, Mapped, Schema, on_rows

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from jostle.engine.base import Here

    Ints = NDArray[np.int64]
    Steps = tuple[Kept | Mapped, ...]

CHARACTERS = 2**24
"""Of the texts of records that are handed over at once: equal ones are one object here, and several there."""
_NAME = "records"


def stepped(here: Here, schema: Schema, block: Block, steps: Steps, to: Schema) -> Iterator[Block]:
    """The records, of the columns `to`, that conditions and calculated columns make of those of a block."""
    origins: dict[str, str | None] = {name: name for name, _ in schema}  # of each column the one that it is, if it is
    calculated = False
    for step in steps:
        if isinstance(step, Mapped):
            origins = {name: origins[e.name] if isinstance(e, Column) else None for name, e in step.columns}
        calculated |= isinstance(step, Kept) or None in origins.values()
    bare = {name: block.columns[origin] for name, origin in origins.items() if origin is not None}
    if not calculated:
        yield Block(bare, block.weights)
        return
    others = [name for name in origins if name not in bare]
    needed, relation = _relation(schema, block.size, steps, map(Column, others))
    shown = ", ".join(["n", *(relation.columns[name].alias for name in others)])
    for rows, *values in _asked(here, f"SELECT {shown} FROM {subquery(relation.sql)}", block, needed):
        found = {name: column[rows] for name, column in bare.items()} | dict(zip(others, values, strict=True))
        yield typed(to, [found[name] for name, _ in to], block.weights[rows])


def coded(
    here: Here, schema: Schema, block: Block, steps: Steps, keys: tuple[Key, ...]
) -> Iterator[tuple[list[Ints], NDArray[Any]]]:
    """For each key where the records that the steps make stand among its values, −1 where it is none of them; and what
    they weigh."""
    needed, relation = _relation(schema, block.size, steps, (key.expr for key in keys))
    for rows, *places in _asked(here, relations.codes(relation, keys), block, needed):
        yield places, block.weights[rows]


def _relation(
    schema: Schema, size: int, steps: Steps, asked: Iterable[RowExpr]
) -> tuple[tuple[str, ...], relations.Relation]:
    """What the steps make of records, as a SELECT from a table of these columns of theirs and of a number `n` each."""
    plan = narrowed(on_rows(Scan(_NAME, schema), steps), asked)
    source: Plan = plan
    while not isinstance(source, Scan):
        (source,) = inputs(source)
    columns = {name: Physical(f"c{place}") for place, (name, _) in enumerate(source.columns)}
    query = f"SELECT {', '.join([*(column.alias for column in columns.values()), 'n'])} FROM {_NAME}"
    records = relations.Relation(query, columns, dict(source.columns), size, DUCKDB, numbered=True)
    return tuple(columns), relations.relation(plan, lambda scan: records, DUCKDB)


def _asked(here: Here, query: str, block: Block, names: tuple[str, ...]) -> Iterator[list[Any]]:
    """The columns of a query about a block: of a part of it at a time, where its texts are long."""
    import numpy as np
    import pyarrow as pa

    columns = [block.columns[name] for name in names]
    sizes = np.zeros(block.size, dtype=np.int64)
    for column in columns:
        if column.dtype == object:
            sizes += fixed_width([len(text) for text in column])
    parts = np.cumsum(sizes) // CHARACTERS
    starts = [*np.flatnonzero(np.diff(parts, prepend=-1)).tolist(), block.size]
    for start, end in itertools.pairwise(starts):
        cells = [_arrow(column) for column in (*(c[start:end] for c in columns), np.arange(start, end))]
        rows = pa.Table.from_arrays(cells, names=[*(f"c{place}" for place in range(len(columns))), "n"])
        with here.registered(rows, _NAME):
            yield [np.ma.getdata(column) for column in here.columns(query)]


def _arrow(column: NDArray[Any]) -> Any:
    """A column as Arrow has it, of buffers: where values are handed over, Arrow loads pandas to look at them."""
    import numpy as np
    import pyarrow as pa

    if column.dtype == object:
        texts = [text.encode("utf-8", "replace") for text in column.tolist()]
        ends = np.cumsum([0, *map(len, texts)], dtype=np.int64)
        buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(texts))]
        return pa.Array.from_buffers(pa.large_string(), len(texts), buffers)
    bits = np.packbits(column, bitorder="little") if column.dtype == bool else np.ascontiguousarray(column)
    kind = pa.from_numpy_dtype(column.dtype)
    return pa.Array.from_buffers(kind, len(column), [None, pa.py_buffer(bits)])
