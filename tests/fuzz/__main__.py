"""`python -m tests.fuzz --programs 100000`: runs programs, keeps count, prints each distinct fault with its seed.

What was done is kept in a folder (`--state`), so that a stopped run goes on where it was. Batches run in a process of
their own: one that dies (a fault of the C stack) is a fault like another.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

BATCH = 500
MEMORY = 4 * 2**30
LOADING = 300.0  # seconds for a process to load what it needs, on a busy machine
PATIENCE = 30.0  # seconds for one program, beyond the alarm, before its process is ended


def text_of(seed: int) -> str | list[str]:
    """In turn a program, a conversation, and soup."""
    from fuzz_programs import conversation, program
    from fuzz_soup import soup

    return soup(seed) if seed % 3 == 2 else conversation(seed) if seed % 3 == 1 else program(seed)


def read_batch(first: int, count: int, folder: Path, slow: float, send: Any) -> None:
    """Texts that are only read and checked."""
    import resource

    from fuzz_oracle import inspect
    from fuzz_soup import noise

    from jostle.source import Source
    from jostle.tools.session import Session

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    session = Session(cwd=folder)
    session.check(Source("p.jst", "x = 1\n"))  # loads, and where need be makes, the grammar's tables before any alarm
    for seed in range(first, first + count):
        send.send((seed, None, None))
        faults, said = inspect(noise(seed), session, slow)
        send.send((seed, said[0].kind if said else "read", [(f.signature, f.detail) for f in faults]))


def batch(first: int, count: int, folder: Path, slow: float, send: Any) -> None:
    import resource

    import pytest
    from fuzz_oracle import databases, examine, watched

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    os.environ["JOSTLE_CACHE"] = str(folder / "cache")
    folders = databases(folder)
    with pytest.MonkeyPatch.context() as patch:
        watch = watched(patch)
        for seed in range(first, first + count):
            send.send((seed, None, None))
            faults, result = examine(text_of(seed), folders, watch, slow, checked=seed % 2 == 0)
            outcome = "nothing" if result is None else "ran" if result.ok else result.diagnostics[0].kind
            send.send((seed, outcome, [(f.signature, f.detail) for f in faults]))


def run_batch(
    work: Any, first: int, count: int, folder: Path, slow: float
) -> list[tuple[int, str, list[tuple[str, str]]]]:
    """(seed, outcome, faults) of each program; a process that dies or hangs is followed by another one."""
    done: list[tuple[int, str, list[tuple[str, str]]]] = []
    context = multiprocessing.get_context("fork")
    while len(done) < count:
        ours, theirs = context.Pipe(duplex=False)
        start = first + len(done)
        process = context.Process(target=work, args=(start, count - len(done), folder, slow, theirs))
        process.start()
        theirs.close()
        at = start - 1  # nothing was begun yet
        try:
            while ours.poll(LOADING if at == start - 1 else PATIENCE):
                seed, outcome, faults = ours.recv()
                at = seed
                if outcome is not None:
                    done.append((seed, outcome, faults))
                if len(done) == count:
                    raise EOFError
            done.append((max(at, start), "hung", [("hung", "no answer to the alarm")]))
        except EOFError:
            if len(done) < count:
                done.append((max(at, start), "died", [("died", "its process ended")]))
        process.kill()
        process.join()
    return done


def main() -> int:
    options = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    options.add_argument("--programs", type=int, default=10_000)
    options.add_argument("--first", type=int, default=0, help="the first seed")
    options.add_argument("--read", action="store_true", help="only reads and checks texts that are no programs")
    options.add_argument("--slow", type=float, default=2.0, help="seconds of CPU from which on a program is a fault")
    options.add_argument("--state", type=Path, default=Path(tempfile.gettempdir()) / "jostle-fuzz")
    options.add_argument("--show", type=int, help="print the program of this seed and run it alone")
    chosen = options.parse_args()
    chosen.state.mkdir(parents=True, exist_ok=True)
    if chosen.show is not None:
        return show(chosen.show, chosen.state, chosen.slow)
    kept = chosen.state / f"{'read' if chosen.read else 'run'}-from-{chosen.first}.json"
    work = read_batch if chosen.read else batch
    state: dict[str, Any] = json.loads(kept.read_text()) if kept.exists() else {"done": 0, "outcomes": {}, "faults": {}}
    outcomes: Counter[str] = Counter(state["outcomes"])
    start = time.time()
    while state["done"] < chosen.programs:
        first = chosen.first + state["done"]
        count = min(BATCH, chosen.programs - state["done"])
        for seed, outcome, faults in run_batch(work, first, count, chosen.state, chosen.slow):
            outcomes[outcome] += 1
            for signature, detail in faults:
                entry = state["faults"].setdefault(signature, {"seed": seed, "count": 0, "detail": detail[-3000:]})
                entry["count"] += 1
                if entry["count"] == 1:
                    print(f"\n{signature}   (seed {seed})\n{detail[-1500:]}")
        state |= {"done": state["done"] + count, "outcomes": dict(outcomes)}
        kept.write_text(json.dumps(state))
        print(
            f"\r{state['done']} of {chosen.programs}, {len(state['faults'])} faults, {time.time() - start:.0f} s",
            end="",
            flush=True,
        )
    print("\n" + ", ".join(f"{name} {many}" for name, many in outcomes.most_common()))
    for signature, entry in sorted(state["faults"].items(), key=lambda item: -item[1]["count"]):
        print(f"{entry['count']:6}  {signature}   (seed {entry['seed']})")
    return 1 if state["faults"] else 0


def show(seed: int, folder: Path, slow: float) -> int:
    import pytest
    from fuzz_oracle import databases, examine, watched

    text = text_of(seed)
    listing = text if isinstance(text, str) else "".join(text)
    print("\n".join(f"{number:3} {line}" for number, line in enumerate(listing.split("\n"), 1)))
    os.environ["JOSTLE_CACHE"] = str(folder / "cache")
    with pytest.MonkeyPatch.context() as patch:
        watch = watched(patch)
        faults, result = examine(text, databases(folder), watch, slow, checked=seed % 2 == 0)
    if result is not None:
        print(*result.output, *(f"{d.kind} {d.span}: {d.message} ({d.help})" for d in result.diagnostics), sep="\n")
    for fault in faults:
        print(f"{fault.signature}\n{fault.detail}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
