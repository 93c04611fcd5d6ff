"""`python -m jostle.train`: trains the advisors of the library, and writes their policies where they ship.

    python -m jostle.train [NAME …] [--check] [--workers N]

Training data are simulated by the library itself. Every draw is seeded from the key of the policy, so that the
files come out the same to the byte, whatever the number of processes. `--check` writes nothing and says which would
differ.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from jostle.choice.advisors import Advisor
from jostle.source import Source
from jostle.tools.session import Session

MODULE = "best"


def advisors(session: Session) -> dict[str, Advisor]:
    """The advisors of the library by name, known in this session."""
    session.execute(Source("train", f"use {MODULE}\n"))
    return {name: value for name, value in session.names().items() if isinstance(value, Advisor)}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m jostle.train", description="Trains the advisors of the library.")
    parser.add_argument("names", nargs="*", help="advisors; left out, all of them")
    parser.add_argument("--check", action="store_true", help="write nothing; say what would differ")
    parser.add_argument("--workers", type=int, help="processes; left out, as many as there are cores")
    options = parser.parse_args(arguments)
    session = Session()
    by_name = advisors(session)
    unknown = [name for name in options.names if name not in by_name]
    if unknown:
        parser.error(f"there is no advisor {unknown[0]}; there are {', '.join(by_name)}")
    return max(_train(by_name[name], session, options.check, options.workers) for name in options.names or by_name)


def _train(advisor: Advisor, session: Session, check: bool, workers: int | None) -> int:
    """Trains one; 1 where `check` finds another policy than the one that ships."""
    start = time.process_time()
    policy = advisor.train(session._interp, workers, _progress(advisor.name))
    took = f"{len(policy.table.runs)} instances, {time.process_time() - start:.0f} s of CPU in this process"
    with tempfile.TemporaryDirectory() as folder:
        fresh = advisor.write(policy, Path(folder) / advisor.path.name)
        text = fresh.read_bytes() if fresh is not None else b""
    ships = advisor.path.read_bytes() if advisor.path.is_file() else b""
    same = "as it ships" if text == ships else "another one than ships" if ships else "new"
    print(f"{advisor.name}: {policy.name} by {policy.model}, {same}; {took}, {len(text) / 1000:.0f} kB", flush=True)
    if not check and text != ships:
        advisor.path.parent.mkdir(exist_ok=True)
        advisor.path.write_bytes(text)
    return int(check and text != ships)


def _progress(name: str) -> Callable[[int, int], None]:
    def tell(done: int, total: int) -> None:
        if sys.stderr.isatty() or done % 50 == 0:
            print(f"\r{name}: {done} of {total}", end="\n" if done == total else "", file=sys.stderr, flush=True)

    return tell


if __name__ == "__main__":
    sys.exit(main())
