"""CPU time of starting up: `python tests/bench/startup.py` prints a table, and exits with 1 where a goal is missed.

Counts user and system time of the child process alone, in the median of seven runs after one that warms the caches,
so that what else the machine does weighs little.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GOALS = [
    (["--version"], 80),
    (["check", "programs/figure_1_2.jst"], 300),
    (["run", "programs/first.jst"], 900),
]  # fmt: skip


def cpu(command: list[str], environment: dict[str, str]) -> tuple[float, int]:
    """Milliseconds of CPU that one run took with all its children, and its exit status."""
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment
    ) as child:
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    return 1000 * (used.ru_utime + used.ru_stime), child.returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=7)
    runs = parser.parse_args().runs
    script = Path(sys.executable).parent / "jostle"
    own = str(script) if script.exists() else shutil.which("jostle")
    jostle = [own] if own else [sys.executable, "-m", "jostle"]
    missed = False
    print(f"{'jostle …':36}{'median ms':>10}{'least':>8}{'most':>8}{'goal':>7}")
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "JOSTLE_CACHE": cache}
        for words, goal in GOALS:
            name = " ".join(words)
            _, status = cpu([*jostle, *words], environment)
            if status != 0:
                print(f"{name:36} failed with exit status {status}")
                missed = True
                continue
            times = [cpu([*jostle, *words], environment)[0] for _ in range(runs)]
            middle = statistics.median(times)
            missed = missed or middle > goal
            print(
                f"{name:36}{middle:10.0f}{min(times):8.0f}{max(times):8.0f}{goal:7}{'  over' if middle > goal else ''}"
            )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
