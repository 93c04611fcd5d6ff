"""`python -m tests.bench.trees`: a tree of depth 8 on a million rows with 20 attributes, from a Parquet file.

The time and the memory of the whole program, from its text to the model, and how often the engine was asked.
Options: `--rows`, `--attributes`, `--depth`, `--epsilon`, `--option` (a call of `trees`).
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path
from unittest import mock

import numpy as np

from jostle.readers.duckdb import LocalDuckDb
from jostle.source import Source
from jostle.tools.session import Session

PROGRAM = """
use trees
private t = table("{path}") described by {{{columns}, c: {{"no", "yes"}}}}
    protecting rows, at most {rows} rows budget epsilon {epsilon}
model = {option} with epsilon {epsilon}
"""


def write(path: Path, rows: int, attributes: int) -> list[int]:
    """Texts of 2 to 5 categories; the class follows a sum of the first ones. The number of each column's values."""
    import pyarrow as pa
    from pyarrow import parquet

    rng = np.random.default_rng(0)
    sizes = [2 + i % 4 for i in range(attributes)]
    codes = [rng.integers(0, size, rows) for size in sizes]
    score = sum(code / (size - 1) / (1 + i) for i, (code, size) in enumerate(zip(codes, sizes, strict=True)))
    label = score + rng.normal(0, 0.3, rows) > np.median(score)
    named = [pa.array([f"value {k}" for k in range(size)]) for size in sizes]
    columns = {f"a{i}": name.take(pa.array(code)) for i, (name, code) in enumerate(zip(named, codes, strict=True))}
    columns["c"] = pa.array(["no", "yes"]).take(pa.array(label.astype(int)))
    parquet.write_table(pa.table(columns), path)
    return sizes


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.trees")
    parser.add_argument("--rows", type=int, default=10**6)
    parser.add_argument("--attributes", type=int, default=20)
    parser.add_argument("--depth", type=int, default=8)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--option", default='friedman_schuster(t, "c", {depth}, gini)')
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.parquet"
        sizes = write(path, asked.rows, asked.attributes)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        domains = ["{" + ", ".join(f'"value {k}"' for k in range(size)) + "}" for size in sizes]
        listed = ", ".join(f"a{i}: {domain}" for i, domain in enumerate(domains))
        program = PROGRAM.format(
            path=path, columns=listed, rows=asked.rows, epsilon=asked.epsilon,
            option=asked.option.format(depth=asked.depth),
        )  # fmt: skip
        queries = 0
        fetch = LocalDuckDb._run

        def counted(self: LocalDuckDb, *rest: object) -> object:
            nonlocal queries
            queries += 1
            return fetch(self, *rest)  # type: ignore[arg-type]

        began, cpu = time.perf_counter(), time.process_time()
        with mock.patch.object(LocalDuckDb, "_run", counted):
            session = Session()
            session.execute(Source("bench.jst", program))
        model = session.names()["model"]
        took, used = time.perf_counter() - began, time.process_time() - cpu
    fields = model.jostle_fields
    print(f"{asked.rows:,} rows, {asked.attributes} attributes, {asked.option.format(depth=asked.depth)}")
    print(f"{fields['nodes']:,} nodes after pruning, depth {fields['depth']}; {queries} queries of the engine")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"{took:.1f} s ({used:.1f} s of CPU); memory {peak / 2**20:.2f} GB, {before / 2**20:.2f} GB before")


if __name__ == "__main__":
    main()
