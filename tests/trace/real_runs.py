"""Real runs to render: the programs of `programs/`, run by the interpreter and the kernel.

Noise and training come from seeds, so that a run is the same each time; what is left that differs from place to place
(digests of a ledger, lines of the library, the last digits of numbers) is taken out by `normal`.

    python tests/trace/real_runs.py --write

writes what the renderings say to `tests/golden/trace`.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from functools import cache
from inspect import unwrap
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from jostle.choice import learning
from jostle.choice.program import ProgramBench
from jostle.events import Event
from jostle.privacy.kernel import exposures
from jostle.simulate import SeededNoise
from jostle.source import Source
from jostle.tools.entry import main
from jostle.tools.session import Session
from jostle.trace import budget, tree
from jostle.trace.html import page
from jostle.trace.jsonl import otlp, plain

PROGRAMS = Path(__file__).parent / "programs"
GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "trace"
SCHEMA = '{age: 0..63, sex: {"F", "M"}, city: text}'


def tables() -> dict[str, pd.DataFrame]:
    """People, some of them again, and visits: formulas, no draws."""
    n = np.arange(500)
    cities = np.where(n % 2, "Ames", np.where(n % 3, "Bergen", "Cork"))
    ages = np.where(n % 5 < 3, 20 + n % 4, n % 64)
    people = pd.DataFrame({"age": ages, "sex": np.where(n % 3, "F", "M"), "city": cities})
    visits = pd.DataFrame({"hour": n * n % 24})
    parts = {"examples": people[:12], "clients": people[["age"]][:200]}
    own = {name: pd.DataFrame(part.to_dict("list")) for name, part in parts.items()}  # they share no memory
    return {"people": people, **own, "visits": visits}


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Noise, and the draws of training, that are the same each time, whatever code they are made by."""
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setenv("JOSTLE_CACHE", folder)
        patch.setattr(exposures, "SecureNoise", lambda: SeededNoise(seed))
        patch.setattr(ProgramBench, "_key", lambda bench: "|".join([*bench.option_names, *bench.feature_names]))
        patch.setattr(learning, "__version__", "a version")
        yield


@cache
def events(name: str = "survey", seed: int = 1) -> tuple[Event, ...]:
    """The events of a program; of `again`, those of the second run of `registered`."""
    with seeded(seed):
        if name in ("registered", "again"):
            return _registered(2 if name == "again" else 1)
        session = Session(rehearse=False)  # its last charge is refused
        for table, frame in tables().items():
            session.bind(table, frame)
        return tuple(session.attempt(_source(name)).events)


def _source(name: str) -> Source:
    return Source(f"{name}.jst", (PROGRAMS / f"{name}.jst").read_text(encoding="utf-8"))


def _registered(times: int) -> tuple[Event, ...]:
    """The last of several runs, each in a session of its own, of a program on a registered dataset."""
    with tempfile.TemporaryDirectory() as folder, redirect_stdout(StringIO()):
        file, ledger = Path(folder) / "people.csv", Path(folder) / "ledger"
        tables()["people"].to_csv(file, index=False)
        terms = ["--schema", SCHEMA, "--protecting", "rows", "--budget", "epsilon 3", "--ledger", str(ledger)]
        assert main(["data", "register", "people", str(file), *terms]) == 0
        for _ in range(times):
            result = Session(ledger=ledger).attempt(_source("registered"))
    return tuple(result.events)


# What the renderings say ---------------------------------------------------------------------------


def normal(value: Any) -> Any:
    """Plain data: numbers to six digits, no digest, and a program's text by its number of lines."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        lasting = {k: v for k, v in value.items() if k not in ("date", "version")}
        return {k: normal(len(v.splitlines()) if k in ("text", "jostle.text") else v) for k, v in lasting.items()}
    if isinstance(value, list):
        in_library = len(value) == 5 and str(value[0]).startswith("stdlib/")
        return [normal(v) for v in (value[:1] if in_library else value)]
    return re.sub(r"\b[0-9a-f]{32,64}\b", "…", value) if isinstance(value, str) else value


def _jsonl(name: str) -> str:
    return "".join(json.dumps(normal(plain(e.as_json())), ensure_ascii=False) + "\n" for e in events(name))


def _placed(text: str) -> str:
    """A text without places in the library's files."""
    return re.sub(r"(?<=stdlib/)(\w+\.jst)[:\d]+|\b(histograms\.jst):[:\d]+", r"\1\2", text)


def _html(name: str) -> str:
    """The page without its style and its figures, an element a line."""
    text = re.sub(r"<(style|script|svg)\b.*?</\1>", r"<\1/>", page(events(name)), flags=re.DOTALL)
    text = re.sub(r"; [-\d]{10}, Jostle [\d.]+", "", text)
    return re.sub(r"(?<=>)(?=<(section|h[1-6]|tr|p|div|details|table|ul|li|nav|main)\b)", "\n", _placed(text))


def _otlp(name: str) -> str:
    spans = json.loads(otlp(events(name)))["resourceSpans"][0]["scopeSpans"][0]["spans"]
    for span in spans:
        span["attributes"] = [a for a in span["attributes"] if a["key"] not in ("jostle.date", "jostle.version")]
    return "".join(json.dumps(normal(span), ensure_ascii=False) + "\n" for span in spans)


def _text(name: str) -> str:
    return _placed(budget.page(events(name)) + "\n" + tree.decisions_text(events(name)) + "\n")


RENDERINGS: dict[str, Callable[[str], str]] = {"txt": _text, "jsonl": _jsonl, "html": _html, "otlp.jsonl": _otlp}
GOLDENS = {
    "survey": ("txt", "jsonl", "html"),
    "noise": ("txt", "jsonl", "html", "otlp.jsonl"),
    "nodes": ("txt", "jsonl", "html"),
    "registered": ("txt", "jsonl"),
    "again": ("txt", "jsonl", "html", "otlp.jsonl"),
}


if __name__ == "__main__":
    unwrap(Session.__init__).__kwdefaults__["look"] = False  # as in the tests (`conftest.as_asked`)
    for run, endings in GOLDENS.items():
        for ending in endings:
            if "--write" in sys.argv:
                (GOLDEN / f"{run}.{ending}").write_text(RENDERINGS[ending](run), encoding="utf-8")
