"""`python -m tests.durations [--workers N]`: runs every test, and writes those that the quick suite leaves out.

Measures the CPU of each case, with that of the processes that it starts, on an otherwise idle machine. The cases that
take the most of each folder stand in `tests/slow.txt`, each with its seconds, so many that the others fit into
`WANTED` seconds; each folder keeps the same share of its own.
Walls, conformance, documented examples and what `check` says of each program are always in the quick suite, and of each
function with several cases the cheapest. Cases that are not in the list, such as new ones, are quick unless they are
marked `slow`.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

WANTED = 340.0  # seconds of CPU: with collecting, workers and servers some five and a half minutes on two cores
MOST = 3.0  # seconds of a case that stays because it is the cheapest of its function
ALWAYS = (
    "tests/walls/", "_conformance.py", "test_programs_docs.py", "test_the_checker_is_content",
    "test_what_a_closed_terminal",
)  # fmt: skip
LIST = Path(__file__).with_name("slow.txt")
_PLACE = "JOSTLE_TESTS_DURATIONS"


def slow() -> set[str]:
    """The cases that the quick suite leaves out, as pytest names them; none while they are measured."""
    if _PLACE in os.environ:
        return set()
    return {line.split(" ", 1)[1] for line in LIST.read_text(encoding="utf-8").splitlines()}


def chosen(seconds: dict[str, float]) -> dict[str, float]:
    """Those to leave out."""
    cheapest = {case.partition("[")[0]: case for case in sorted(seconds, key=lambda case: -seconds[case])}
    kept = {case for case in cheapest.values() if "[" in case and seconds[case] <= MOST}
    kept |= {case for case in seconds if any(name in case for name in ALWAYS)}
    total = sum(seconds.values())
    out: dict[str, float] = {}
    left: Counter[str] = Counter()
    for case, took in seconds.items():
        left[_folder(case)] += took
    most = {folder: took * WANTED / total for folder, took in left.items()}
    for case in sorted(seconds.keys() - kept, key=lambda case: (-seconds[case], case)):
        if left[folder := _folder(case)] > most[folder]:
            out[case] = seconds[case]
            left[folder] -= seconds[case]
    total -= sum(out.values())
    print(f"{len(seconds)} cases, {sum(seconds.values()):.0f} s; {len(out)} are slow; {total:.0f} s are left")
    return out


def _folder(case: str) -> str:
    return case.split("/")[1]


def _used() -> float:
    both = [resource.getrusage(of) for of in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in both)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    before = _used()
    yield
    if item.get_closest_marker("slow") is not None:  # by hand
        return
    with open(os.environ[_PLACE], "a", encoding="utf-8") as file:  # one line is one write
        file.write(f"{_used() - before:.2f} {item.nodeid}\n")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.durations")
    parser.add_argument("--workers", default="2")
    parser.add_argument("--measured", type=Path, help="a file of an earlier run, in place of one")
    options = parser.parse_args()
    status, place = 0, options.measured or Path(tempfile.mkdtemp()) / "durations"
    if options.measured is None:
        words = [sys.executable, "-m", "pytest", "-n", options.workers, "-m", "", "-p", "tests.durations"]
        status = subprocess.run(words, env={**os.environ, _PLACE: str(place)}, check=False).returncode
        print(f"measured: {place}")
    lines = (line.split(" ", 1) for line in place.read_text(encoding="utf-8").splitlines())
    out = chosen({case: float(seconds) for seconds, case in lines})
    LIST.write_text("".join(f"{seconds:.1f} {case}\n" for case, seconds in sorted(out.items())), encoding="utf-8")
    return status


if __name__ == "__main__":
    raise SystemExit(main())
