"""`python -m tests.bench.editor`: CPU of what a person waits for while typing, and of the page of a run.

A program of 500 lines is completed in and checked; a synthetic run of 10,000 events becomes a page; the prompt of the
REPL is timed as a whole process, over a pipe. Medians of several runs.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "trace"))

RUNS = 7
PIECE = """
def size_{k}(t, share = 0.01):
    n = {{{{ select count(*) from t where age > {k} % 50 with epsilon share }}}}
    if n > 100: return "large"
    else: return "small"
share_{k} = [i / (i + {k} + 1) for i in 1..20]
best_{k} = max over x in share_{k} of x * (1 - x)
"""


def program(lines: int = 500) -> str:
    """A program of about `lines` lines without faults."""
    head = 'private people = table("people.csv") described by {age: 0..99} protecting rows budget epsilon 100\n\n\n'
    return head + "".join(PIECE.format(k=k) for k in range((lines - 3) // 7))


def median_of(function: Callable[[], object], runs: int = RUNS) -> float:
    """Milliseconds of CPU, the first call apart."""
    function()
    spent = []
    for _ in range(runs):
        began = time.process_time()
        function()
        spent.append(1e3 * (time.process_time() - began))
    return statistics.median(spent)


def prompt() -> float:
    """Milliseconds of CPU of a session that is opened and closed."""
    spent = []
    for _ in range(RUNS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-m", "jostle", "repl"], input=b":quit\n", check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(1e3 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime))
    return statistics.median(spent)


def main() -> int:
    from test_trace_html import many_events

    from jostle.tools.editors.document import Document
    from jostle.trace.html import page

    text = program()
    document = Document("program.jst")
    document.change(text)
    typed = text + "x = {{ select count(*) from people wh"
    document.text = typed
    last = typed.count("\n")
    events = many_events(10_000)
    rows = [
        ("prompt ready", prompt(), 500.0),
        ("a keystroke's completion, 500 lines", median_of(lambda: document.completions(last, 10_000)), 30.0),
        ("faults of a text, 500 lines", median_of(lambda: document.change(text)), 200.0),
        ("page of 10,000 events", median_of(lambda: page(events), 3), 2000.0),
    ]
    print(f"{text.count(chr(10))} lines, {len(events)} events, page of {len(page(events).encode()) / 1e6:.2f} MB")
    for name, took, asked in rows:
        print(f"{name:40} {took:8.1f} ms, asked {asked:g}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
