"""`python -m tests.fuzz.parameters --sets 1000000`: tries sets of public parameters, prints each fault with its seed.

A seed is one set of parameters on one world of small tables (`parameter_worlds`); as many seeds share a world as
WORLD. `--show SEED` runs one of them alone. What was done is kept in `--state`, so that a stopped run goes on.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from parameter_runs import WORLD, cores, describe, runs

MEMORY = 12 * 2**30


def main() -> int:
    options = argparse.ArgumentParser(prog="python -m tests.fuzz.parameters", description=__doc__)
    options.add_argument("--sets", type=int, default=10_000)
    options.add_argument("--first", type=int, default=0, help="the first seed")
    options.add_argument("--cores", action="store_true", help="the exact parts alone, without the language")
    options.add_argument("--only", help="one family of calls")
    options.add_argument("--state", type=Path, default=Path(tempfile.gettempdir()) / "jostle-parameters.json")
    options.add_argument("--show", type=int, help="run this seed alone and tell about it")
    chosen = options.parse_args()
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    if chosen.show is not None:
        print(describe(chosen.show, chosen.only))
        return 0
    state = json.loads(chosen.state.read_text()) if chosen.state.exists() else {"done": 0, "went": {}, "faults": {}}
    went: Counter[str] = Counter(state["went"])
    start = time.time()
    while state["done"] < chosen.sets:
        first = chosen.first + state["done"]
        many = min(20 * WORLD if chosen.cores else WORLD, chosen.sets - state["done"])
        for one in (cores if chosen.cores else runs)(first, many, chosen.only):
            went[f"{one.family}: {one.went}"] += 1
            for fault in one.faults:
                key = f"{fault.kind} · {one.family}"
                entry = state["faults"].setdefault(
                    key, {"seed": one.seed, "count": 0, "text": one.text, "detail": fault.detail}
                )
                entry["count"] += 1
                if entry["count"] == 1:
                    print(f"\n{key} (seed {one.seed})\n   {one.text}\n   {fault.detail[:600]}", flush=True)
        state |= {"done": state["done"] + many, "went": dict(went)}
        chosen.state.write_text(json.dumps(state))
        if state["done"] % (20 * WORLD) == 0:
            print(
                f"{state['done']} of {chosen.sets}, {len(state['faults'])} faults, {time.time() - start:.0f} s",
                flush=True,
            )
    for name, count in sorted(went.items()):
        print(f"{count:8}  {name}")
    print(f"{state['done']} sets, {len(state['faults'])} kinds of faults")
    for key, entry in state["faults"].items():
        print(f"{entry['count']:6}  {key} (seed {entry['seed']}): {entry['text']}")
    return 1 if state["faults"] else 0


if __name__ == "__main__":
    sys.exit(main())
