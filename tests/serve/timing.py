"""A timing attack on a row, which is a load too: `python -m tests.serve.timing --analysts N --programs M`.

Analysts hand the slowest plans that fit into the seconds in, over data with a row and without it, in random order, and
compare three clocks of somebody outside: how late answers leave, how long another request takes while a run goes on,
and whether runs are stopped. How late an answer leaves is its latency beyond the padding.
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
)  # fmt: skip
SLOWEST = "select count(*) as n, avg(age) as a, var(age) as v from t groupby age with epsilon {e}"
"""Of 74 groups: it takes three times as long, and is one program of ten."""


def program(k: int, name: str) -> str:
    select = (SLOW[k % len(SLOW)] if k % 10 else SLOWEST).format(e=f"{0.001 + k * 1e-7:.7f}")
    return f'private t = dataset("{name}")\nn = {{{{ {select} }}}}\nrelease n\n'


def attack(
    folder: Path, analysts: int, programs: int, flight: int, seconds: float, seed: int, said: float = 60.0
) -> dict[str, Any]:
    """What the clocks say of so many analysts, each with so many programs, `flight` at a time. Every `said` seconds
    what they say so far stands on standard error."""
    herd, rng = Herd(folder, analysts, seconds, flight, neighbour=True), random.Random(seed)
    late: dict[str, list[float]] = {"people": [], "people2": []}
    beside: dict[str, list[float]] = {"people": [], "people2": []}
    stops, refused, lock = dict.fromkeys(late, 0), [0], threading.Lock()
    places, ends = threading.Semaphore(flight), threading.Event()

    def hand_in(who: str, text: str) -> dict[str, Any]:
        while True:
            status, _, body = herd.request(who, "POST", "/api/runs", {"program": text})
            if status == 200:
                return dict(json.loads(body))
            with lock:
                refused[0] += 1
            time.sleep(0.05)

    def analyst(who: str, mine: int) -> None:
        for k in range(mine * programs, (mine + 1) * programs):
            with lock:
                side = rng.choice(sorted(late))
            with places:
                run, polls = hand_in(who, program(k, side)), []
                for _ in range(3):  # another request, again and again, while the process goes on
                    began = time.perf_counter()
                    herd.request(who, "GET", "/api/me")
                    polls.append(time.perf_counter() - began)
                    time.sleep(seconds / 10)
                answer = json.loads(herd.request(who, "GET", f"/api/runs/{run['id']}?wait=1")[2])
                after = time.time() - run["answer_at"]
            with lock:
                late[side].append(after)
                beside[side].append(statistics.fmean(polls))
                stops[side] += not answer["answer"]["ok"]

    def facts(times: int) -> dict[str, Any]:
        with lock:
            return clocks(late, beside, dict(stops), seed, times)

    def tell() -> None:
        while not ends.wait(said):
            print(json.dumps(facts(200)), file=sys.stderr, flush=True)

    try:
        herd.start()
        before, began = herd.memory(), time.monotonic()
        threads = [threading.Thread(target=analyst, args=(f"a{k}", k)) for k in range(analysts)]
        threading.Thread(target=tell, daemon=True).start()
        for one in threads:
            one.start()
        time.sleep(2 * seconds)
        during = herd.memory()
        for one in threads:
            one.join()
        took, cpu = time.monotonic() - began, [one["cpu ms"] for one in herd.ended() if one["run"]]
        if (herd.folder / "faults").exists():
            raise RuntimeError((herd.folder / "faults").read_text()[-2000:])
    finally:
        ends.set()
        herd.close()
    load = {
        "analysts": analysts, "at once": flight, "took s": round(took), "asked again": refused[0],
        "server MB": [round(before, 1), round(during, 1)],
        "CPU a run, ms": round(statistics.median(cpu)),
        "a waiting session KB": round(1024 * (during - before) / flight, 1),
    }  # fmt: skip
    return {**load, **facts(2000)}


def clocks(late: Any, beside: Any, stops: dict[str, int], seed: int, times: int) -> dict[str, Any]:
    """What each clock says of the row, with the p of a test of ranks that are drawn by lot."""
    n, m = (len(late[name]) for name in sorted(late))
    facts: dict[str, Any] = {"runs": n + m, "stopped": stops}
    if min(n, m) < 2:
        return facts
    for what, sides in (("late", late), ("beside", beside)):
        one, other = (np.array(sides[name]) for name in sorted(sides))
        both = np.concatenate([one, other])
        facts[what] = {
            "p": round(permuted(one, other, seed, times), 4),
            "ms": [round(1000 * float(np.median(x)), 2) for x in (one, other)],
            "seen, ms": seen(both, n, seed),
            "of all, ms": {q: round(1000 * float(np.quantile(both, q)), 1) for q in (0, 0.5, 0.95, 0.99, 1)},
        }  # fmt: skip
    a, b = (stops[name] for name in sorted(stops))
    share = (a + b) / (n + m)
    spread = math.sqrt(share * (1 - share) * (1 / n + 1 / m)) or 1.0
    return {**facts, "stopped p": round(math.erfc(abs(a / n - b / m) / spread / math.sqrt(2)), 4)}


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


def seen(both: Any, n: int, seed: int, tries: int = 40) -> float | None:
    """The least delay in ms of one side that the same test finds at 95 % in four of five, of sides that are drawn by
    lot from all clocks and differ in nothing else."""
    rng = np.random.default_rng(seed + 1)
    for ms in (0.2, 0.5, 1, 2, 3, 5, 8, 12, 20, 30, 50, 80, 120, 200):
        sides = [rng.permutation(both) for _ in range(tries)]
        hits = sum(permuted(one[:n] + ms / 1000, one[n:], seed, 99) <= 0.05 for one in sides)
        if hits >= 0.8 * tries:
            return ms
    return None


def main(words: list[str]) -> int:
    options = argparse.ArgumentParser(prog="python -m tests.serve.timing", description=__doc__)
    options.add_argument("--analysts", type=int, default=8)
    options.add_argument("--programs", type=int, default=25, help="of each")
    options.add_argument("--flight", type=int, default=8, help="runs at once")
    options.add_argument("--seconds", type=float, default=3.0, help="when answers leave")
    options.add_argument("--seed", type=int, default=1)
    given = options.parse_args(words)
    with tempfile.TemporaryDirectory() as folder:
        herd = Path(folder) / "herd"
        print(
            json.dumps(attack(herd, given.analysts, given.programs, given.flight, given.seconds, given.seed), indent=1)
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
