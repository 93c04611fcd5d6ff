"""A timing attack on a row, and a load: `python -m tests.serve.timing --runs N` and `--load ANALYSTS PROGRAMS`.

The attack hands the slowest plans that fit into the seconds in, over data with a row and without it, in random order,
and compares three clocks of somebody outside: how late answers leave, how late another request is answered while a run
goes on, and whether runs are stopped. `row` makes the row as slow as an adversary can: it is the longest text.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from tests.serve.herd import Herd

SLOW = (
    'select median(age) as m, count(distinct age) as d from t groupby sex with epsilon {e}',
    'select quantile(age, 0.1) as a, quantile(age, 0.9) as b, mode(age) as c from t with epsilon {e}',
    'select count(*) as n, avg(age) as a, var(age) as v from t groupby age with epsilon {e}',
)  # fmt: skip


def program(k: int, name: str) -> str:
    select = SLOW[k % len(SLOW)].format(e=f"{0.001 + k * 1e-7:.7f}")
    return f'private t = dataset("{name}")\nn = {{{{ {select} }}}}\nrelease n\n'


def attack(folder: Path, runs: int, flight: int, seconds: float, seed: int) -> dict[str, Any]:
    """What the clocks say of `runs` runs, `flight` at a time."""
    herd, rng = Herd(folder, flight, seconds, flight, neighbour=True), random.Random(seed)
    late: dict[str, list[float]] = {"people": [], "people2": []}
    beside: dict[str, list[float]] = {"people": [], "people2": []}
    stops = dict.fromkeys(late, 0)
    lock, turn = threading.Lock(), iter(range(runs))

    def analyst(who: str) -> None:
        while True:
            with lock:
                k = next(turn, None)
                side = rng.choice(sorted(late))
            if k is None:
                return
            status, _, body = herd.request(who, "POST", "/api/runs", {"program": program(k, side)})
            if status != 200:
                time.sleep(0.01)
                continue
            run, polls = json.loads(body), []
            for _ in range(8):  # another request, again and again, while the process goes on
                began = time.perf_counter()
                herd.request(who, "GET", "/api/me")
                polls.append(time.perf_counter() - began)
                time.sleep(seconds / 20)
            answer = json.loads(herd.request(who, "GET", f"/api/runs/{run['id']}?wait=1")[2])
            after = time.time() - run["answer_at"]
            with lock:
                late[side].append(after)
                beside[side].append(statistics.fmean(polls))
                stops[side] += not answer["answer"]["ok"]

    try:
        herd.start()
        threads = [threading.Thread(target=analyst, args=(f"a{k}",)) for k in range(flight)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
    finally:
        herd.close()
    facts = {"runs": sum(map(len, late.values())), "stopped": stops}
    for what, sides in (("late", late), ("beside", beside)):
        one, other = (np.array(sides[name]) for name in sorted(sides))
        facts[what] = {
            "p": round(permuted(one, other, seed), 4),
            "ms": [round(1000 * float(np.median(x)), 2) for x in (one, other)],
            "p95 ms": [round(1000 * float(np.quantile(x, 0.95)), 1) for x in (one, other)],
            "earliest ms": round(1000 * float(min(one.min(), other.min())), 3),
        }  # fmt: skip
    n, m = (len(late[name]) for name in sorted(late))
    a, b = (stops[name] for name in sorted(stops))
    share = (a + b) / (n + m)
    spread = math.sqrt(share * (1 - share) * (1 / n + 1 / m)) or 1.0
    facts["stopped p"] = round(math.erfc(abs(a / n - b / m) / spread / math.sqrt(2)), 4)
    return facts


def permuted(one: Any, other: Any, seed: int, times: int = 2000) -> float:
    """How often sides that are drawn by lot lie as far apart, in mean rank or in the spread of ranks, as these do."""
    values = np.concatenate([one, other])
    ranks = values.argsort().argsort() / (len(values) - 1) - 0.5
    scores, n, rng = np.stack([ranks, np.abs(ranks)]), len(one), np.random.default_rng(seed)
    scores = (scores - scores.mean(axis=1, keepdims=True)) / scores.std(axis=1, keepdims=True)

    def apart(order: Any) -> float:
        return float(np.abs(scores[:, order[:n]].mean(axis=1) - scores[:, order[n:]].mean(axis=1)).max())

    here = apart(np.arange(len(values)))
    return (1 + sum(apart(rng.permutation(len(values))) >= here for _ in range(times))) / (times + 1)


def load(folder: Path, analysts: int, programs: int, flight: int, seconds: float) -> dict[str, Any]:
    """Latency beyond the padding, and what a session that waits takes, with so many analysts at once."""
    herd = Herd(folder, analysts, seconds, flight)
    late, refused, failed, lock = list[float](), [0], [0], threading.Lock()

    def analyst(who: str, mine: int) -> None:
        for k in range(programs):
            while True:
                body = {"program": program(mine * programs + k, "people")}
                status, _, text = herd.request(who, "POST", "/api/runs", body)
                if status == 200:
                    break
                with lock:
                    refused[0] += 1
                time.sleep(random.random() * seconds / 2)
            run = json.loads(text)
            answer = json.loads(herd.request(who, "GET", f"/api/runs/{run['id']}?wait=1")[2])
            with lock:
                late.append(time.time() - run["answer_at"])
                failed[0] += not answer["answer"]["ok"]

    try:
        herd.start()
        before = herd.memory()
        threads = [threading.Thread(target=analyst, args=(f"a{k}", k)) for k in range(analysts)]
        began = time.monotonic()
        for one in threads:
            one.start()
        time.sleep(2 * seconds)
        during = herd.memory()
        for one in threads:
            one.join()
        took = time.monotonic() - began
    finally:
        herd.close()
    return {
        "analysts": analysts, "programs": len(late), "at once": flight, "seconds": round(took),
        "beyond the padding ms": {q: round(1000 * float(np.quantile(late, q)), 1) for q in (0.5, 0.95, 0.99, 1.0)},
        "places taken": refused[0], "stopped": failed[0], "memory MB": [round(before, 1), round(during, 1)],
        "a waiting session KB": round(1024 * (during - before) / flight, 1),
    }  # fmt: skip


def main(words: list[str]) -> int:
    options = argparse.ArgumentParser(prog="python -m tests.serve.timing", description=__doc__)
    options.add_argument("--runs", type=int, default=200)
    options.add_argument("--flight", type=int, default=8)
    options.add_argument("--seconds", type=float, default=2.0, help="when answers leave")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--load", nargs=2, type=int, metavar=("ANALYSTS", "PROGRAMS"))
    given = options.parse_args(words)
    with tempfile.TemporaryDirectory() as folder:
        if given.load:
            facts = load(Path(folder) / "herd", *given.load, given.flight, given.seconds)
        else:
            facts = attack(Path(folder) / "herd", given.runs, given.flight, given.seconds, given.seed)
    print(json.dumps(facts, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
