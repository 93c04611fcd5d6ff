"""The process of one run, and the process that checks programs: `python -m jostle.serve.worker run | check`.

A run reads its job from standard input, confines itself, runs the program for its analyst and leaves the answer in its
folder: whole, on disk, or not at all. It says nothing to the server, which looks into the folder at the moment that
was declared before. So the answer of a run outlives the server, and nothing of a run comes out but the answer.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec import json as coded

from jostle import resources
from jostle.diagnostics import Diagnostic, Refusal
from jostle.language.builtins import OPENERS
from jostle.privacy.ledger.ledger import Ledger
from jostle.privacy.ledger.postgres import SCHEMES
from jostle.resources import replacing
from jostle.serve.confine import GIGABYTE, confine, ends_after
from jostle.source import Source
from jostle.syntax import nodes as n
from jostle.syntax.walk import every_of
from jostle.tools.result import Result
from jostle.tools.session import Session

ANSWER, TRACE = "answer.json", "trace.jsonl"
MOST_ANSWER = 8 * 2**20  # bytes
MOST_LINE = 2**20  # bytes of a request to the process that checks


class Job(Struct, frozen=True):
    """One run: `folder` is its own, `ends_at` when its process ends itself (seconds since 1970), `memory` in bytes.
    `began` is what histories say of when its charges were made: a time of now would tell how long it took before.
    With `facts` it is a simulation, of what is published of data by their names: no data are opened."""

    program: str
    settings: dict[str, str]
    analyst: str
    ledger: str
    folder: str
    ends_at: float
    memory: int = 8 * GIGABYTE
    began: str = ""
    facts: dict[str, str] | None = None

    @property
    def on_server(self) -> bool:
        return self.ledger.startswith(SCHEMES)


def source_of(program: str) -> Source:
    return Source("program.jst", program)


def unregistered(source: Source) -> tuple[Diagnostic, ...]:
    """Refuses every source of a program but `dataset` and the counts that it writes itself, before files are looked
    for. What it does not understand it refuses: also a parameter that has the name of a source."""
    from jostle.syntax import parse

    try:
        tree = parse(source)
    except Refusal:
        return ()  # the session says what is wrong, and opens nothing either
    literal = {
        id(call.function) for call in every_of(tree, n.Call)
        if isinstance(call.function, n.Name) and call.function.id == "counts"
        and len(call.args) == 1 and isinstance(call.args[0], n.ListOf) and not call.keywords
    }  # fmt: skip
    wrong = [
        name for name in every_of(tree, n.Name)
        if name.id in OPENERS and name.id not in ("dataset", "vectors_in") and id(name) not in literal
    ]  # fmt: skip
    shipped = resources.folder("stdlib")
    absent = [one for one in every_of(tree, n.Use) if not shipped.joinpath(*one.path).with_suffix(".jst").is_file()]
    if absent:
        help = "`jostle find` lists what there is"
        return (Diagnostic("ImportError", "the library has no such module", absent[0].span, "", help),)
    help = 'a dataset that you have a grant on: `private people = dataset("people")`'
    return tuple(Diagnostic("DataError", f"`{w.id}` opens no data on a server", w.span, "", help) for w in wrong[:5])


def answer(job: Job) -> dict[str, Any]:
    """Runs a program; gives the document that `jostle run --format json` prints and where its charges stand."""
    from jostle.trace.jsonl import Writer

    folder, source = Path(job.folder), source_of(job.program)
    (folder / "empty").mkdir(parents=True, exist_ok=True)
    if job.facts is not None:
        return _rehearsed(job, folder)
    writer, ledger = Writer(folder / TRACE), Ledger(job.ledger, grantee=job.analyst, began=job.began)
    with Session(listeners=[writer], ledger=ledger, cwd=folder / "empty") as session:
        if faults := unregistered(source):
            result = Result(False, {}, {}, faults, [], [])
        else:
            result = session.attempt(source, job.settings)
    writer.close()
    runs = [event.fields.get("ledger", {}) for event in result.events if event.kind == "run"]
    return {"document": result.document(), "charges": {name: links for run in runs for name, links in run.items()}}


def _rehearsed(job: Job, folder: Path) -> dict[str, Any]:
    from jostle.serve import editing
    from jostle.trace.jsonl import Writer

    writer = Writer(folder / TRACE, simulated=1)
    program = editing.with_facts(job.program, job.facts or {})
    result = editing.simulated(program, job.settings, folder / "empty", writer)
    writer.close()
    return {"document": editing.document(result), "charges": {}}


def leave(folder: Path, document: Mapping[str, Any]) -> None:
    """Writes an answer, whole and on disk."""
    text = json.dumps(document)
    if len(text) > MOST_ANSWER:
        error = {"kind": "DataError", "message": "the answer is too large", "help": "release less"}
        text = json.dumps({"document": json.dumps({"ok": False, "error": error}), "charges": document["charges"]})
    with replacing(folder / ANSWER) as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def check(request: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """What is wrong with a program, else what it can cost each source: functions of its text and of the `facts` that
    are published of its data alone. With `ask`, what an editor shows (`serve.editing`)."""
    from jostle.serve import editing

    if "ask" in request:
        return editing.edited(request, folder)
    text, settings = str(request["program"]), dict(request.get("settings") or {})
    if faults := list(unregistered(source_of(text))):
        return {"ok": False, "errors": [fault.as_json() for fault in faults], "cost": []}
    stated = source_of(editing.with_facts(text, dict(request.get("facts") or {})))
    with editing.session(folder) as session:
        faults, costs = session.checked(stated, settings)
        # What is answered again is free: whether a grant is enough, its meter says.
        faults = [fault for fault in faults if fault.kind != "BudgetExceeded" or "dataset(" not in text]
        warnings = [] if faults else [fault.as_json() for fault in session.warnings]
    cost = [one.as_json() for one in costs]
    return {"ok": not faults, "errors": [fault.as_json() for fault in faults], "cost": cost, "warnings": warnings}


def _run() -> int:
    job = coded.decode(sys.stdin.buffer.read(), type=Job)
    if (left := job.ends_at - time.time()) <= 0:
        return 1  # it begins too late to be answered: nothing is opened
    ends_after(left)
    folder = Path(job.folder)
    rehearses = job.facts is not None
    readable = [] if job.on_server or rehearses else _data(job)
    ledger = [] if job.on_server or rehearses else [Path(job.ledger).parent]
    writable = [folder, *ledger, Path(os.environ["XDG_CACHE_HOME"])]
    network = job.on_server and not rehearses
    confine(readable, writable, max(0.001, job.ends_at - time.time()), job.memory, network=network)
    leave(folder, answer(job))
    return 0


def _data(job: Job) -> list[Path]:
    """The files that the analyst has grants on."""
    datasets = {dataset.terms.name: dataset.terms for dataset in Ledger(job.ledger).datasets()}
    within = [terms.within for name, terms in datasets.items() if name.endswith(f"@{job.analyst}") and terms.within]
    return [Path(datasets[name].path) for name in within if datasets[name].path]


def _checks() -> int:
    """Answers requests, a line each, until there are no more. Its limits are for all of them together."""
    folder = Path.cwd()
    confine([Path(os.environ["XDG_CACHE_HOME"])], [folder], 24 * 3600, 4 * GIGABYTE)
    for line in sys.stdin.buffer:
        if len(line) <= MOST_LINE:
            print(json.dumps(check(json.loads(line), folder)), flush=True)
    return 0


def main(words: list[str]) -> int:
    """The status of the process: what goes wrong is said by no text of its own."""
    import gc
    import warnings

    from jostle.tools.faults import guarded

    if words == ["run"]:
        gc.set_threshold(1_000_000)  # modules and grammars hold no garbage: until a program's first statement
    warnings.simplefilter("ignore")
    return guarded(_run if words == ["run"] else _checks)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
