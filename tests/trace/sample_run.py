"""A made-up run in the shape that the interpreter leaves: a paid query, a partition, a choice, and an error."""

from __future__ import annotations

from jostle.events import Event, Stream
from jostle.source import Source, Span

_SOURCE = Source("figure_1_2.jst", "")


def at(line: int, column: int) -> Span:
    return Span(_SOURCE, line, column, line, column + 5)


def events() -> list[Event]:
    """The whole run."""
    heard: list[Event] = []
    stream = Stream(listeners=[heard.append])
    with stream.within("run", "figure_1_2.jst") as run:
        stream.emit("source", "grid", at(3, 1), unit="rows", budget={"epsilon": "1"}, schema={"x": "0..63"})
        stream.emit("source", "shapes", at(4, 1), unit=None, budget=None)
        with stream.within("query", "total", at(5, 9), aggregates=["count(*)"], epsilon=0.1):
            measure(stream, "count", 5, 0.1, scale=10.0)
        with stream.within("allotment", "sizes", at(7, 1), epsilon=0.2) as sizes:
            for _ in range(4):
                measure(stream, "count", 8, 0.05, scale=20.0)
            sizes["spent"] = 0.05
        with stream.within("allotment", "noisyHistChoice(data)", at(41, 1), epsilon=0.5) as given:
            choice(stream)
            given["spent"] = 0.5
        stream.emit("release", "total", at(50, 1), value=1203.0)
        stream.emit("release", "cdf", at(51, 1), value=[float(k) for k in range(74)])
        stream.emit("error", "BudgetExceeded", at(52, 5), message="0.5 was asked for and 0.35 is left")
        run["budget"] = {"grid": {"epsilon": {"total": "1", "spent": "0.65"}}}
    return heard


def measure(
    stream: Stream, what: str, line: int, epsilon: float, mechanism: str = "laplace", scale: float = 1.0
) -> None:
    stream.emit(
        "measure", what, at(line, 9), mechanism=mechanism, epsilon=epsilon, sources=["grid"], sensitivity=1, scale=scale
    )


def choice(stream: Stream) -> None:
    """A choice between two options by two paid features and a free one."""
    with stream.within("choice", "noisyHistChoice", at(41, 7)) as fields:
        for name in ("uniformity", "sparsity"):
            with stream.within("feature", name, at(12, 3)):
                measure(stream, "stddev", 12, 0.025, scale=40.0)
        with stream.within("option", "DAWA", at(20, 3)):
            measure(stream, "buckets", 21, 0.1125, "least_cost_partition", 8.5)
            for _ in range(10):
                measure(stream, "vector", 22, 0.03375, scale=29.63)
        fields |= {
            "features": [
                {"name": "uniformity", "value": 12.375, "epsilon": 0.025},
                {"name": "sparsity", "value": 0.3125, "epsilon": 0.025},
                {"name": "cells", "value": 4096, "epsilon": 0},
            ],
            "predictions": {"DAWA": -0.42, "MWEM": -1.31},
            "spread": {"DAWA": 0.1, "MWEM": 0.22},
            "chosen": "DAWA",
            "path": [
                {"feature": "uniformity", "threshold": 3.2, "value": 12.375, "went": "right"},
                {"feature": "sparsity", "threshold": 0.5, "value": 0.3125, "went": "left"},
            ],
            "model": "regret_tree(depth=3)",
            "policy": "paid features, share 0.1",
            "epsilon": 0.5,
            "margin": 0.89,
            "spent": 0.5,
        }  # fmt: skip
