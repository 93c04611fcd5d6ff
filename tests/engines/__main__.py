"""`python -m tests.engines --engine NAME --plans 2000 --seed S` asks an engine many plans, and says what differs."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from engines_suite import ENGINES, run


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=sorted(ENGINES), default="composed")
    parser.add_argument("--plans", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    outcome = run(chosen.engine, range(chosen.seed, chosen.seed + chosen.plans))
    for difference in outcome.differences:
        print(difference)
    for message, many in outcome.refused.most_common():
        print(f"refused {many} times: {message}")
    many = f"{len(outcome.differences)} differences, {outcome.refused.total()} refused by name"
    print(f"{chosen.engine}: {outcome.plans} plans, {outcome.meant} known to plain Python, {many}")
    return bool(outcome.differences)


if __name__ == "__main__":
    sys.exit(main())
