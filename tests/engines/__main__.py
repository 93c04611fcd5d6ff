"""`python -m tests.engines --engine NAME… --plans 2000 --seed S` asks engines many plans, and says what differs.

DuckDB and plain Python are asked each plan once, however many engines are named. A plan that does not end in time is
said so and counted. With `--shallow` plans have a level less of relations and of expressions.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from engines_children import child, watched
from engines_suite import ENGINES, Outcome


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", nargs="+", choices=sorted(ENGINES), default=["composed"])
    parser.add_argument("--plans", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=float, default=120, help="seconds that an engine has for a plan")
    parser.add_argument("--shallow", action="store_true")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    seeds = range(chosen.seed, chosen.seed + chosen.plans)
    if chosen.child:
        child(chosen.engine, seeds, shallow=chosen.shallow)
        return 0
    outcome = Outcome()
    for one in watched(chosen.engine, seeds, chosen.limit, shallow=chosen.shallow):
        outcome.add(one)
        for line in one.differences + [f"not ended: {what}" for what in one.unended]:
            print(line, flush=True)
        if outcome.plans % 100 == 0:
            print(f"… {outcome.plans} plans", file=sys.stderr, flush=True)
    for message, many in outcome.refused.most_common():
        print(f"refused {many} times: {message}")
    many = f"{len(outcome.differences)} differences, {outcome.refused.total()} refused by name"
    many += f", {len(outcome.unended)} not ended"
    print(f"{', '.join(chosen.engine)}: {outcome.plans} plans, {outcome.meant} known to plain Python, {many}")
    return bool(outcome.differences)


if __name__ == "__main__":
    sys.exit(main())
