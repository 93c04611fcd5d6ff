"""One side of `tests.bench.peers`: a question asked of a Parquet table by one library, in a process of its own.

    python peer_sides.py SIDE JSON

It runs in any interpreter that has the library. The JSON has `path question rows persons runs limit`; what comes back
is JSON too, a line after the first answer and one after the last: CPU seconds (user and system, with all threads) up to
the first answer and of one more, the peak of memory in MB at the first, and the answers in the order of the keys, null
where a library left a key out. Every answer is bought anew for ε = 1 in all: what a library spends beside (a count to
choose keys by, of a mean a count) is taken from it.
"""

from __future__ import annotations

import itertools
import json
import resource
import statistics
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

KEYS = {"k": list(range(50)), "city": [f"city {letter}" for letter in "ABCDEFGHIJKLMNOPQRST"]}
QUESTIONS = {
    "count": ("count", "k"), "text": ("count", "city"), "sum": ("sum", "k"), "mean": ("mean", "k"),
    "median": ("median", ""), "persons": ("count", "k"),
}  # fmt: skip
TOP, UP_TO, DELTA = 1000.0, 4, 1e-6
Answer = Callable[[], Sequence[Any]]


def in_order(key: str, values: dict[Any, Any]) -> list[Any]:
    """The values of all keys, None where one is missing."""
    return [values.get(one) for one in KEYS[key]]


def jostle(asked: dict[str, Any]) -> Answer:
    from jostle.source import Source
    from jostle.tools.session import Session

    function, key = QUESTIONS[asked["question"]]
    unit = f"who up to {UP_TO} rows" if asked["question"] == "persons" else "rows"
    listed = ", ".join(f'"{city}"' for city in KEYS["city"])
    session = Session()
    session.execute(Source("peers.jst", f"""
private t = table("{asked["path"]}")
    described by {{who: 0..{asked["persons"] - 1}, k: 0..49, city: {{{listed}}}, v: 0.0..{TOP}}}
    protecting {unit} budget epsilon {asked["runs"]}
"""))  # fmt: skip
    aggregate = "count(*)" if function == "count" else {"mean": "avg"}.get(function, function) + "(v)"
    grouped = f" groupby {key}" if key else ""
    query = f"{{{{ select {aggregate} as x from t{grouped} with epsilon 1 }}}}" + (".x" if key else "") + "\n"

    def answer() -> Sequence[Any]:
        value = session.execute(Source("peers.jst", query))
        return [float(one) for one in value] if key else [float(value)]

    return answer


def opendp(asked: dict[str, Any]) -> Answer:
    import opendp.prelude as dp
    import polars as pl

    warnings.simplefilter("ignore")
    dp.enable_features("contrib")
    function, key = QUESTIONS[asked["question"]]
    persons = asked["question"] == "persons"
    number = pl.col("v").fill_nan(0.0).fill_null(0.0)
    aggregate = {
        "count": lambda: dp.len(signed=True), "sum": lambda: number.dp.sum((0.0, TOP)),
        "mean": lambda: number.dp.mean((0.0, TOP)),
        "median": lambda: number.dp.median([TOP * i / 4096 for i in range(4097)]),
    }[function]  # fmt: skip
    keys = pl.LazyFrame({key: KEYS[key]}, schema={key: pl.Int32 if key == "k" else pl.String}) if key else None

    def answer() -> Sequence[Any]:
        context = dp.Context.compositor(
            data=pl.scan_parquet(asked["path"]),
            privacy_unit=dp.unit_of(contributions=1, **({"identifier": "who"} if persons else {})),
            privacy_loss=dp.loss_of(epsilon=1.0),
            split_evenly_over=1,
            margins=[dp.polars.Margin(max_length=asked["rows"])],
        )
        query = context.query()
        query = query.truncate_per_group(UP_TO) if persons else query
        if keys is None:
            return query.select(aggregate()).release().collect().row(0)
        frame = query.group_by(key).agg(aggregate()).with_keys(keys).release().collect()
        return in_order(key, dict(frame.select(key, pl.exclude(key)).iter_rows()))

    return answer


def pipeline_dp(asked: dict[str, Any]) -> Answer:
    import pipeline_dp as p
    import pyarrow.parquet as pq

    function, key = QUESTIONS[asked["question"]]
    persons = asked["question"] == "persons"
    read = [*([key] if key else []), *(["v"] if function != "count" else []), *(["who"] if persons else [])]
    table = pq.read_table(asked["path"], columns=read)
    columns = {name: table.column(name).to_pylist() for name in read}
    none = [0] * table.num_rows
    rows = list(zip(*(columns.get(name, none) for name in ("who", key, "v")), strict=True))
    metric = {"count": p.Metrics.COUNT, "sum": p.Metrics.SUM, "mean": p.Metrics.MEAN}.get(function)
    one = {"max_partitions_contributed": 1, "max_contributions_per_partition": 1}
    bounds = {} if function == "count" else {"min_value": 0.0, "max_value": TOP}
    parameters = p.AggregateParams(
        metrics=[metric or p.Metrics.PERCENTILE(50)], noise_kind=p.NoiseKind.LAPLACE, **bounds,
        **({"max_contributions": UP_TO} if persons else {**one, "contribution_bounds_already_enforced": True}),
    )  # fmt: skip
    extractors = p.DataExtractors(
        privacy_id_extractor=(lambda row: row[0]) if persons else None,
        partition_extractor=lambda row: row[1],
        value_extractor=lambda row: row[2],
    )

    def answer() -> Sequence[Any]:
        accountant = p.NaiveBudgetAccountant(total_epsilon=1, total_delta=0)
        engine = p.DPEngine(accountant, p.LocalBackend())
        result = engine.aggregate(rows, parameters, extractors, public_partitions=KEYS[key] if key else [0])
        accountant.compute_budgets()
        values = {one: metrics[0] for one, metrics in result}
        return in_order(key, values) if key else [values[0]]

    return answer


def smartnoise(asked: dict[str, Any]) -> Answer:
    import pandas as pd
    import snsql

    function, key = QUESTIONS[asked["question"]]
    if function == "median":
        raise NotImplementedError("its SQL has no median")
    persons = asked["question"] == "persons"
    columns = {
        "who": {"type": "int", "lower": 0, "upper": asked["persons"], "private_id": persons},
        "k": {"type": "int", "lower": 0, "upper": 49},
        "city": {"type": "string"},
        "v": {"type": "float", "lower": 0.0, "upper": TOP},
    }
    read = [key, *(["v"] if function != "count" else []), *(["who"] if persons else [])]
    frame = pd.read_parquet(asked["path"], columns=read)
    described = {"row_privacy": not persons, "max_ids": UP_TO if persons else 1, "rows": asked["rows"], **columns}
    metadata = {"": {"d": {"t": {name: value for name, value in described.items() if name not in columns}
                            | {name: columns[name] for name in read}}}}  # fmt: skip
    aggregate = "COUNT(*)" if function == "count" else {"mean": "AVG"}.get(function, "SUM") + "(v)"
    query = f"SELECT {key}, {aggregate} AS x FROM d.t GROUP BY {key}"
    reader = snsql.from_connection(frame, privacy=snsql.Privacy(epsilon=1.0, delta=DELTA), metadata=metadata)
    cost, _ = reader.get_privacy_cost(query)  # ε is given by the column: the columns it adds itself cost as much
    reader.privacy.epsilon = 1.0 / float(cost)
    if abs(reader.get_privacy_cost(query)[0] - 1) > 1e-9:
        raise RuntimeError("the price is not 1")
    del frame
    return lambda: in_order(key, dict(reader.execute(query)[1:]))


def diffprivlib(asked: dict[str, Any]) -> Answer:
    """It has no groups: counts by key are a histogram, and a sum or a mean is asked of the rows of each key."""
    import diffprivlib.tools as tools
    import numpy as np
    import polars as pl

    function, key = QUESTIONS[asked["question"]]
    if asked["question"] == "persons":
        raise NotImplementedError("it bounds no persons")
    words = {"epsilon": 1.0, "bounds": (0.0, TOP)}

    def answer() -> Sequence[Any]:
        frame = pl.read_parquet(
            asked["path"], columns=[*([key] if key else []), *(["v"] if function != "count" else [])]
        )
        if not key:
            return [float(tools.median(frame["v"].to_numpy(), **words))]
        places = np.searchsorted(KEYS[key], frame[key].to_numpy())
        if function == "count":
            return [*map(float, tools.histogram(places, epsilon=1.0, bins=50, range=(0, 50))[0])]
        order = np.argsort(places, kind="stable")
        parts = np.split(frame["v"].to_numpy()[order], np.searchsorted(places[order], range(1, len(KEYS[key]))))
        return [float(getattr(tools, function)(part, **words)) for part in parts]

    return answer


def polars(asked: dict[str, Any]) -> Answer:
    """The exact answers, without protection."""
    import polars as pl

    function, key = QUESTIONS[asked["question"]]
    if asked["question"] == "persons":
        raise NotImplementedError("it protects nobody")
    aggregate = pl.len() if function == "count" else getattr(pl.col("v"), function)()

    def answer() -> Sequence[Any]:
        rows = pl.scan_parquet(asked["path"])
        if not key:
            return rows.select(aggregate).collect().row(0)
        return in_order(key, dict(rows.group_by(key).agg(aggregate.alias("x")).collect().iter_rows()))

    return answer


ASK: dict[str, Callable[[dict[str, Any]], Answer]] = {
    "jostle": jostle, "opendp": opendp, "pipeline_dp": pipeline_dp, "smartnoise": smartnoise,
    "diffprivlib": diffprivlib, "polars": polars,
}  # fmt: skip


def cpu() -> float:
    """Seconds of this process and of those that it waited for, user and system."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def peak() -> float:
    """The most memory that this process had at a time, in MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


def main() -> None:
    side, asked = sys.argv[1], json.loads(sys.argv[2])
    resource.setrlimit(resource.RLIMIT_CPU, (asked["limit"], asked["limit"] + 5))
    try:
        answer = ASK[side](asked)
    except NotImplementedError as reason:
        print(json.dumps({"reason": str(reason)}))
        return
    answers = [list(answer())]
    marks = [cpu()]
    told: dict[str, Any] = {"first": marks[0], "again": None, "peak": peak()}
    print(json.dumps({**told, "answers": answers}), flush=True)
    for _ in range(asked["runs"] - 1):
        answers.append(list(answer()))
        marks.append(cpu())
        more = [after - before for before, after in itertools.pairwise(marks)]
        told["again"] = statistics.median(more)
    print(json.dumps({**told, "answers": answers}))


if __name__ == "__main__":
    main()
