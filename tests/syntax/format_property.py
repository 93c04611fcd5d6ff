"""`python -m tests.syntax.format_property --programs 10000`: generated programs keep their trees when formatted.

Each that parses is formatted (which compares the trees), and formatted again, which must change nothing.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "fuzz"))
from fuzz_programs import program

from jostle.diagnostics import Refusal
from jostle.source import Source
from jostle.syntax.format import format_source
from jostle.syntax.parser import parse


def tried(seed: int) -> str:
    """`kept`, `no program` where the text does not parse, or what was wrong."""
    source = Source("generated", program(seed))
    try:
        parse(source, interactive=True)
    except Refusal:
        return "no program"
    try:
        text = format_source(source)
        return "kept" if format_source(Source("again", text)) == text else f"seed {seed}: twice is not once"
    except Refusal as refusal:
        return f"seed {seed}: {refusal.diagnostics[0].message}"


def main() -> int:
    words = argparse.ArgumentParser()
    words.add_argument("--programs", type=int, default=10_000)
    words.add_argument("--first", type=int, default=0)
    asked = words.parse_args()
    found = Counter(tried(seed) for seed in range(asked.first, asked.first + asked.programs))
    for what, times in found.most_common():
        print(f"{times:7,}  {what}")
    return 0 if set(found) <= {"kept", "no program"} else 1


if __name__ == "__main__":
    raise SystemExit(main())
