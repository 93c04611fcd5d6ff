"""`python -m tests.crosses`: programs of crossed features on neighbouring tables, for as long as one likes.

    python -m tests.crosses [--first SEED] [--programs N] [--seconds S] [--counts FILE] [--show SEED] [--engine NAME…]
    python -m tests.crosses --specimen NAME… [--first SEED] [--seconds S]

Prints what broke, each kind once with its seed, and how many programs ran by feature and by pair of features, with the
share of those that were refused: where all are, nothing was seen. From seed 10^12 on tables are made of tables, from
2·10^12 on row programs, trees, models and workloads measure them, from 3·10^12 on the best of many runs and rounds
until a budget or an answer, and from 4·10^12 on rows of persons are in an order. With `--counts` a run goes on where
the one before ended that wrote the file, and adds to it after every batch. With `--engine` programs on Parquet and
Arrow files run on these servers too, and must give the same exact integers. With `--specimen` breaks that were there
once are put back, one after the other, and it prints after how many programs and seconds each is convicted.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter as Tally
from itertools import combinations
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / name) for name in ("crosses", "adversary", "engines", ".")]

import pytest  # noqa: E402
from cross_oracle import ORDERED, RETRIED, SIZE, Crosses, Run, opened  # noqa: E402
from cross_specimens import SPECIMENS, shows  # noqa: E402
from engines_suite import ENGINES  # noqa: E402

NAMED = {specimen.__name__: (specimen, what, seed) for specimen, what, seed in SPECIMENS}
LONGEST = 600.0  # within these seconds of CPU a break that is put back is to be convicted


def convicted(name: str, first: int, seconds: float) -> bool:
    """Runs programs from a seed on with a break put back, until it shows as what it is; of one that the list has by a
    program of many runs, or of an order, such programs alone."""
    specimen, what, known = NAMED[name]
    seed = begun = first + max(start for start in (0, RETRIED, ORDERED) if known >= start)
    start, cpu, shown = time.monotonic(), time.process_time(), False
    while not shown and time.process_time() - cpu < seconds:
        with pytest.MonkeyPatch.context() as patch:
            specimen(patch)
            with opened() as crosses:
                while True:
                    shown = any(shows(what, one.what) for one in crosses.run(seed).breaks)
                    seed += 1
                    if shown or seed % SIZE == 0 or time.process_time() - cpu >= seconds:
                        break
    ran, used = time.monotonic() - start, time.process_time() - cpu
    how = "convicted" if shown else "NOT convicted"
    print(f"{name}: {how} after {seed - begun:,} programs, {ran:.0f} s, {used:.0f} s of CPU ({what})", flush=True)
    return shown


class Counts:
    """What came of all programs so far; kept in a file where one is given."""

    def __init__(self, first: int, path: Path | None) -> None:
        self._path = path
        before: dict[str, Any] = json.loads(path.read_text()) if path is not None and path.exists() else {}
        self.seed: int = before.get("next", first)
        self.cpu: float = before.get("cpu", 0.0)
        self.how: Tally[str] = Tally(before.get("how", {}))
        self.features: Tally[str] = Tally(before.get("features", {}))
        self.asked: Tally[str] = Tally(before.get("asked", {}))
        self.pairs: Tally[str] = Tally(before.get("pairs", {}))
        self.broken: dict[str, list[Any]] = before.get("broken", {})  # the first seed, how many, and a detail

    def add(self, run: Run) -> None:
        self.how.update([run.how, *(f"in {other} too" for other in run.elsewhere)])
        self.asked.update(run.program.features)
        if run.how == "ran":
            features = sorted(run.program.features)
            self.features.update(features)
            self.pairs.update(map(" × ".join, combinations(features, 2)))
        for one in run.breaks:
            if one.what not in self.broken:
                print(f"seed {one.seed}: {one.what}: {one.detail}", flush=True)
            first, many, detail = self.broken.get(one.what, (one.seed, 0, one.detail))
            self.broken[one.what] = [first, many + 1, detail]

    def keep(self) -> None:
        if self._path is not None:
            fresh = self._path.with_suffix(".new")
            kept = {"next": self.seed, "cpu": self.cpu, "how": self.how, "features": self.features,
                    "asked": self.asked, "pairs": self.pairs, "broken": self.broken}  # fmt: skip
            fresh.write_text(json.dumps(kept, ensure_ascii=False, indent=0))
            fresh.replace(self._path)

    def __str__(self) -> str:
        often = sum(n >= 10 for n in self.pairs.values())
        lines = [
            f"before seed {self.seed}, {self.cpu:.0f} s of CPU: {dict(self.how)}",
            f"{len(self.features)} features and {len(self.pairs)} pairs of them ran, {often} of these ten times",
            *(
                f"  {self.features[name]:7} {name}, {1 - self.features[name] / many:.0%} refused"
                for name, many in sorted(self.asked.items())
            ),
            *(f"BROKEN {many} times, first at seed {seed}: {what}" for what, (seed, many, _) in self.broken.items()),
        ]
        return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.crosses", description="Crosses features of programs.")
    parser.add_argument("--first", type=int, default=0, help="the first seed, where no counts go on")
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so long")
    parser.add_argument("--counts", type=Path, help="a file of counts, which is added to")
    parser.add_argument("--show", type=int, help="print the program of one seed, and what breaks")
    parser.add_argument("--engine", nargs="+", default=[], choices=sorted(ENGINES), help="servers to compare with")
    parser.add_argument("--specimen", nargs="+", default=[], choices=[*NAMED, "all"], help="put a break back")
    asked = parser.parse_args()
    if asked.specimen:
        chosen = NAMED if "all" in asked.specimen else asked.specimen
        return sum(not convicted(name, asked.first, min(asked.seconds, LONGEST)) for name in chosen)
    with opened({name: ENGINES[name] for name in asked.engine}) as crosses:
        if asked.show is not None:
            return _shown(crosses, asked.show)
        counts, start = Counts(asked.first, asked.counts), time.monotonic()
        last = counts.seed + asked.programs
        while counts.seed < last and time.monotonic() - start < asked.seconds:
            cpu = time.process_time()
            for _ in range(min(SIZE - counts.seed % SIZE, last - counts.seed)):
                counts.add(crosses.run(counts.seed))
                counts.seed += 1
                if time.monotonic() - start >= asked.seconds:
                    break
            counts.cpu += time.process_time() - cpu
            counts.keep()
    print(counts)
    return int(bool(counts.broken))


def _shown(crosses: Crosses, seed: int) -> int:
    """A program by itself; where nothing breaks, after those before it in its batch."""
    run = crosses.run(seed)
    if not run.breaks:
        *_, run = [crosses.run(each) for each in range(seed - seed % SIZE, seed + 1)]
    print(crosses.whole(run.program))
    print(run.how, *(f"{one.what}: {one.detail}" for one in run.breaks), sep="\n")
    return int(bool(run.breaks))


if __name__ == "__main__":
    sys.exit(main())
