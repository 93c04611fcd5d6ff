"""Jostle beside OpenDP (Polars), PipelineDP, SmartNoise and diffprivlib: the same questions of the same tables, ε = 1.

    python -m tests.bench.peers [--opendp PYTHON] [--pipeline-dp PYTHON] [--smartnoise PYTHON]
        [--diffprivlib PYTHON] [--polars PYTHON]
        [--sizes 1e3,1e5,1e6,1e7] [--error-rows 1e5] [--runs 20] [--seed 0.25] [--limit 300] [--memory 8]
        [--questions count,…]

Each PYTHON is an interpreter that has `opendp[polars]`, `pipeline-dp` and `pyarrow`, `smartnoise-sql` and `pyarrow`, or
`diffprivlib` and `polars`; that of `--polars`, which protects nobody, polars alone. A side without one, or whose
interpreter lacks the library, is left out by name. Each cell is a fresh process
(`peer_sides.py`): CPU up to its first answer, CPU of one more, peak of memory; the smallest size tells the start. A
cell that takes more CPU seconds than the limit, or more GB, is stopped, and says so. The error is the root mean square
over keys and runs beside the exact answers, at one size; of persons, beside the count that a random choice of four
rows of each has in the mean.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.bench.peer_sides import KEYS, QUESTIONS, UP_TO

SIDES = {
    "jostle": "jostle", "opendp": "opendp", "pipeline_dp": "pipeline_dp", "smartnoise": "snsql",
    "diffprivlib": "diffprivlib", "polars": "polars",
}  # fmt: skip
"""The name of a side, and what it imports."""

HERE = Path(__file__).resolve()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.peers")
    for side in SIDES:
        if side != "jostle":
            parser.add_argument(f"--{side.replace('_', '-')}", dest=side, metavar="PYTHON")
    parser.add_argument("--sizes", default="1e3,1e5,1e6,1e7")
    parser.add_argument("--error-rows", default="1e5")
    parser.add_argument("--runs", type=int, default=20, help="answers of which the error is told")
    parser.add_argument("--seed", type=float, default=0.25, help="of the tables, between 0 and 1")
    parser.add_argument("--limit", type=int, default=300, help="CPU seconds of a cell")
    parser.add_argument("--memory", type=float, default=8, help="GB of a cell")
    parser.add_argument("--questions", default=",".join(QUESTIONS))
    asked = parser.parse_args()
    sizes = [int(float(size)) for size in asked.sizes.split(",")]
    error_rows = int(float(asked.error_rows))
    questions = asked.questions.split(",")
    pythons = {side: vars(asked).get(side) for side in SIDES} | {"jostle": sys.executable}
    present = {side: python for side, python in pythons.items() if python and importable(python, SIDES[side])}
    for side in SIDES:
        if side not in present:
            print(f"{side}: left out, {SIDES[side]} cannot be imported in {pythons[side] or 'any interpreter given'}")
    with tempfile.TemporaryDirectory(prefix="jostle-bench-") as folder:
        files = {rows: write(Path(folder), rows, asked.seed) for rows in {*sizes, error_rows}}
        print(f"\n| question | side |{'|'.join(f' {rows:,} rows ' for rows in sizes)}| RMSE at {error_rows:,} |")
        print("|---" * (len(sizes) + 3) + "|")
        for question in questions:
            right = exact(files[error_rows], question)
            for side, python in present.items():
                cells = []
                for rows in sizes:
                    told = measured(side, python, files[rows], question, rows, 2, asked.limit, asked.memory)
                    cells.append(shown(told))
                told = measured(side, python, files[error_rows], question, error_rows, asked.runs, 10**6, asked.memory)
                print(f"| {question} | {side} | {' | '.join(cells)} | {off(told, right)} |", flush=True)


def importable(python: str, module: str) -> bool:
    """Whether an interpreter has a module."""
    words = [python, "-c", f"import importlib.util as u, sys; sys.exit(u.find_spec({module!r}) is None)"]
    try:
        return subprocess.run(words, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def write(folder: Path, rows: int, seed: float = 0.25) -> Path:
    """A table of persons with ten rows in the mean, 50 whole numbers, 20 texts and a number with three decimals."""
    import duckdb

    path = folder / f"{rows}.parquet"
    columns = ", ".join((
        f"CAST(floor(random() * {persons(rows)}) AS INTEGER) AS who", "CAST(floor(random() * 50) AS INTEGER) AS k",
        "'city ' || chr(65 + CAST(floor(random() * 20) AS INTEGER)) AS city",
        "floor(random() * 1000000) / 1000 AS v",
    ))  # fmt: skip
    with duckdb.connect(config={"threads": "1", "memory_limit": "2GB"}) as connection:
        connection.execute("SELECT setseed(?)", [seed])
        connection.execute(f"COPY (SELECT {columns} FROM range({rows})) TO '{path}' (FORMAT parquet)")
    return path


def persons(rows: int) -> int:
    return max(1, rows // 10)


def exact(path: Path, question: str) -> list[float]:
    """The answers without noise, in the order of the keys."""
    import duckdb

    function, key = QUESTIONS[question]
    table = f"read_parquet('{path}')"
    if question == "persons":
        table = f"(SELECT k, least(1, {UP_TO} / count(*) OVER (PARTITION BY who)) AS w FROM {table})"
    answer = {"count": "count(*)", "sum": "sum(v)", "mean": "avg(v)", "median": "median(v)"}[function]
    answer = "sum(w)" if question == "persons" else answer
    with duckdb.connect(config={"memory_limit": "2GB"}) as connection:
        if not key:
            return [float(connection.execute(f"SELECT {answer} FROM {table}").fetchall()[0][0])]
        values = dict(connection.execute(f"SELECT {key}, {answer} FROM {table} GROUP BY {key}").fetchall())
    return [float(values.get(one, 0)) for one in KEYS[key]]


def measured(
    side: str, python: str, path: Path, question: str, rows: int, runs: int, limit: int, memory: float
) -> dict[str, Any]:
    """What a process of its own says of a question; with a `reason` where it was stopped or cannot do it."""
    asked = {"path": str(path), "question": question, "rows": rows, "persons": persons(rows), "runs": runs}
    words = [python, str(HERE.parent / "peer_sides.py"), side, json.dumps(asked | {"limit": limit})]
    environment = {"OMP_NUM_THREADS": "1", "PYTHONSAFEPATH": "1", "PATH": "/usr/bin:/bin"}
    environment |= {"PYTHONPATH": str(HERE.parents[2])} if side == "jostle" else {}
    reason = f"more than {limit} s"
    with tempfile.TemporaryFile("w+") as said, tempfile.TemporaryFile("w+") as trouble:
        process = subprocess.Popen(words, stdout=said, stderr=trouble, env=environment)
        while process.poll() is None:
            time.sleep(0.05)
            if held(process.pid) > memory:
                reason = f"more than {memory:g} GB"
                process.kill()
                process.wait()
        said.seek(0)
        lines = said.read().splitlines()
        trouble.seek(0)
        if process.returncode > 0:
            raise RuntimeError(f"{side}, {question}: {trouble.read()[-2000:]}")
    return json.loads(lines[-1]) if lines else {"reason": reason}


def held(process: int) -> float:
    """GB that a process holds now."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 2**20 for line in lines if line.startswith("VmRSS")), 0.0)


def shown(told: dict[str, Any]) -> str:
    """`1.20 + 0.01 s, 130 MB`: up to the first answer, one more, the peak at the first."""
    if "reason" in told:
        return str(told["reason"])
    more = "–" if told["again"] is None else f"{told['again']:.2f}"
    return f"{told['first']:.2f} + {more} s, {told['peak']:,.0f} MB"


def off(told: dict[str, Any], right: list[float]) -> str:
    """The root mean square error, and how many answers are missing."""
    if "reason" in told:
        return "–"
    pairs = [(one, true) for answer in told["answers"] for one, true in zip(answer, right, strict=True)]
    squares = [(one - true) ** 2 for one, true in pairs if one is not None]
    missing = len(pairs) - len(squares)
    said = f"{math.sqrt(math.fsum(squares) / len(squares)):.3g}" if squares else "–"
    return said + (f", {missing} missing" if missing else "")


if __name__ == "__main__":
    main()
