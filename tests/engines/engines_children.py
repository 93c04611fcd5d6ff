"""Many plans, asked in child processes: none is waited for longer than a limit, and memory is freed with each child."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import engines_postgres
import engines_spark
from engines_suite import Outcome, outcomes

SERVERS = {
    "postgres": (engines_postgres.RUNNING, engines_postgres.server),
    "spark": (engines_spark.RUNNING, engines_spark.apache_url),
}
"""Servers that outlive the children, and by which name of the environment these find them."""
_CHILD = 200  # plans that one child is asked
_MARK = "jostle plan "
_START = 60.0  # seconds that a child has to start, beside the limit


def watched(names: list[str], seeds: range, limit: float, *, shallow: bool) -> Iterator[Outcome]:
    """What each plan came to. Who does not answer one in `limit` seconds is stopped, and the next plan is asked."""
    environment = dict(os.environ)
    for variable, start in (SERVERS[name] for name in names if name in SERVERS):
        environment[variable] = start()
    while seeds:
        some, answered = seeds[:_CHILD], 0
        for one in _child(names, some, limit, environment, shallow=shallow):
            answered += 1
            yield one
        seeds = seeds[answered:]


def _child(
    names: list[str], seeds: range, limit: float, environment: dict[str, str], *, shallow: bool
) -> Iterator[Outcome]:
    """What a child says of plans, up to the first that does not end."""
    command = [sys.executable, "-m", "tests.engines", "--child", "--engine", *names]
    command += ["--seed", str(seeds[0]), "--plans", str(len(seeds)), *["--shallow"] * shallow]
    folder = Path(__file__).parents[2]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, cwd=folder)
    said: queue.Queue[list[Any] | None] = queue.Queue()
    threading.Thread(target=_read, args=(process, said), daemon=True).start()
    seed, asked, many = seeds[0], "nobody", 0
    try:
        while many < len(seeds):
            try:
                line = said.get(timeout=limit if asked != "nobody" else limit + _START)
            except queue.Empty:
                yield Outcome(plans=1, unended=[f"seed {seed}: {asked} after {limit:g} s"])
                return
            if line is None:
                yield Outcome(plans=1, differences=[f"seed {seed}: the process ended when {asked} was asked"])
                return
            if line[0] == "asks":
                seed, asked = line[1:]
            else:
                many += 1
                yield Outcome(**line[1] | {"refused": Counter(line[1]["refused"])})
    finally:
        process.kill()
        process.wait()


def _read(process: subprocess.Popen[str], said: queue.Queue[list[Any] | None]) -> None:
    for line in process.stdout or ():
        if line.startswith(_MARK):
            said.put(json.loads(line.removeprefix(_MARK)))
    said.put(None)


def child(names: list[str], seeds: range, *, shallow: bool) -> None:
    """What the child does."""

    def say(*line: Any) -> None:
        print(_MARK + json.dumps(line), flush=True)

    for one in outcomes(names, seeds, shallow=shallow, asks=lambda seed, who: say("asks", seed, who)):
        say("outcome", vars(one))
