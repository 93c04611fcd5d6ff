"""`python -m tests.crosses`: programs of crossed features on neighbouring tables, for as long as one likes.

    python -m tests.crosses [--first SEED] [--programs N] [--seconds S] [--show PROGRAM-SEED] [--pairs]

Prints what broke, each kind once with its seed, and how many programs ran by feature and by pair of features.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter as Tally
from itertools import combinations
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / name) for name in ("crosses", "adversary", ".")]

from cross_oracle import Run, opened  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.crosses", description="Crosses features of programs.")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so long")
    parser.add_argument("--show", type=int, help="print the program of one seed, and what breaks")
    parser.add_argument("--pairs", action="store_true", help="list every pair of features")
    asked = parser.parse_args()
    if asked.show is not None:
        with opened() as crosses:
            return _shown(crosses.run(asked.show))
    how: Tally[str] = Tally()
    ran: Tally[str] = Tally()
    pairs: Tally[tuple[str, str]] = Tally()
    broken: dict[str, tuple[int, int]] = {}
    start = time.monotonic()
    with opened() as crosses:
        for seed in range(asked.first, asked.first + asked.programs):
            if time.monotonic() - start > asked.seconds:
                break
            run = crosses.run(seed)
            how[run.how] += 1
            for one in run.breaks:
                if one.what not in broken:
                    print(f"seed {seed}: {one.what}: {one.detail}", flush=True)
                first, many = broken.get(one.what, (seed, 0))
                broken[one.what] = first, many + 1
            if run.how == "ran":
                ran.update(run.program.features)
                pairs.update(combinations(sorted(run.program.features), 2))
    print(f"{sum(how.values())} programs from seed {asked.first} in {time.monotonic() - start:.0f} s: {dict(how)}")
    print(f"{len(ran)} features and {len(pairs)} pairs of them ran, {sum(n >= 10 for n in pairs.values())} ten times")
    for feature, many in sorted(ran.items()):
        print(f"  {many:6} {feature}")
    for pair, many in sorted(pairs.items()) if asked.pairs else ():
        print(f"  {many:6} {' × '.join(pair)}")
    for what, (seed, many) in broken.items():
        print(f"BROKEN {many} times, first at seed {seed}: {what}")
    return int(bool(broken))


def _shown(run: Run) -> int:
    print(run.program.text)
    print(run.how, *(f"{one.what}: {one.detail}" for one in run.breaks), sep="\n")
    return int(bool(run.breaks))


if __name__ == "__main__":
    sys.exit(main())
