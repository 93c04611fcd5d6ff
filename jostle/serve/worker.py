"""The process of one run, of one check or of one drawing: forks of `python -m jostle.serve.worker`.

A run reads its job from standard input, confines itself, runs the program for its analyst and leaves the answer in its
folder: whole, on disk, or not at all. It says nothing to the server, which looks into the folder at the moment that
was declared before. So the answer of a run outlives the server, and nothing of a run comes out but the answer.

They are forks of one process that has loaded what they need. It reads no job, opens no data and draws no noise. So what
a run's memory has of others is the package, where it lies, and the seed by which Python hashes texts.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec import json as coded

from jostle import resources
from jostle.backends.postgres.ledger import SCHEMES
from jostle.diagnostics import Diagnostic, Refusal
from jostle.events import Event
from jostle.language.builtins import OPENERS
from jostle.privacy.ledger.ledger import Ledger
from jostle.privacy.ledger.store import Dataset
from jostle.resources import Json, replacing
from jostle.serve.confine import GIGABYTE, confine, ends_after
from jostle.source import Source, Span
from jostle.syntax import nodes as n
from jostle.syntax import parse
from jostle.syntax.walk import every_of
from jostle.tools.outlet import guarded
from jostle.tools.result import Result
from jostle.tools.session import Session
from jostle.trace.text import HIDDEN

ANSWER, WHOLE, TRACE, PAGE, PICTURES = "answer.json", "whole.json", "trace.jsonl", "page.html", "pictures.json"
MOST_PICTURES = 50
MOST_ANSWER = 8 * 2**20  # bytes
DRAWS_WITHIN = 30.0  # seconds
OF_QUESTION = 3 * GIGABYTE // 2  # bytes of address space: some 0.6 are the package
QUICK = 1.0
"""Seconds after which a question gives way to others, so that nobody waits for a text that takes long."""


class Question(Struct, frozen=True, tag="question"):
    """What somebody waits for, in an empty `folder`: `check` of a `request`, which is JSON, or, with the folder of a
    `trace`, that its `name` is drawn."""

    folder: str
    cache: str
    seconds: float
    request: str = ""
    trace: str = ""
    name: str = ""


class Job(Struct, frozen=True, tag="run"):
    """One run: `folder` is its own, `ends_at` when its process ends itself (seconds since 1970), `memory` in bytes.
    `began` is what histories say of when its charges were made: a time of now would tell how long it took before.
    With `facts` it is a simulation, of what is published of data by their names: no data are opened.
    With `public`, a folder, it opens what lies there and counts nowhere: that of a playground.
    `granted` are the datasets that it may open: those that its analyst had grants on when it was accepted.
    `engine` is the URL of the server that has its data, empty where these are files; `login` is what the driver of
    PostgreSQL takes from its environment, of a run that speaks to one.
    """

    program: str
    settings: dict[str, str]
    analyst: str
    ledger: str
    folder: str
    ends_at: float
    memory: int = 8 * GIGABYTE
    began: str = ""
    facts: dict[str, str] | None = None
    public: str = ""
    cache: str = ""
    engine: str = ""
    login: dict[str, str] = {}
    granted: tuple[str, ...] = ()

    @property
    def on_server(self) -> bool:
        return self.ledger.startswith(SCHEMES)


def source_of(program: str) -> Source:
    return Source("program.jst", program)


def unregistered(source: Source, public: str = "") -> tuple[Diagnostic, ...]:
    """Refuses every source of a program but `dataset`, the counts that it writes itself and, with a `public` folder,
    the files in it, before files are looked for. What it does not understand it refuses: also a parameter that has the
    name of a source. A path that is calculated is refused where it is opened (`run/origins.py`). Refused too is what
    lets a reviewer read another program than the one that runs."""
    if hidden := HIDDEN.search(source.text):
        before, code = source.text[: hidden.start()], f"{ord(hidden[0]):04X}"
        line, column = before.count("\n") + 1, hidden.start() - before.rfind("\n")
        help = "leave it out" + (f"; within a text it is written `\\u{code.lower()}`" if len(code) == 4 else "")
        what = f"a program does not hold U+{code}, which can hide how it is read"
        return (Diagnostic("SyntaxError", what, Span(source, line, column, line, column + 1), "", help),)
    try:
        tree = parse(source)
    except Refusal:
        return ()  # the session says what is wrong, and opens nothing either
    calls = [(one.function, one) for one in every_of(tree, n.Call) if isinstance(one.function, n.Name)]
    literal = {
        id(name) for name, one in calls
        if name.id == "counts" and len(one.args) == 1 and isinstance(one.args[0], n.ListOf) and not one.keywords
    }  # fmt: skip
    may = ("dataset", "vectors_in", *(("table", "counts") if public else ()))
    names = every_of(tree, n.Name)
    wrong = [one for one in names if one.id in OPENERS and one.id not in may and id(one) not in literal]
    shipped = resources.folder("stdlib")
    absent = [one for one in every_of(tree, n.Use) if not shipped.joinpath(*one.path).with_suffix(".jst").is_file()]
    if absent:
        help = "`jostle find` lists what there is"
        return (Diagnostic("ImportError", "the library has no such module", absent[0].span, "", help),)
    help = 'a dataset that you have a grant on: `private people = dataset("people")`'
    help = 'a file that is there: `table("data/people.csv")`' if public else help
    what = "`{}` opens no data on a server" if not public else "this needs `{}`, and a server opens no such data"
    faults = [Diagnostic("DataError", what.format(w.id), w.span, "", help) for w in wrong[:5]]
    if not public:
        return tuple(faults)
    return tuple([*faults, *_absent(public, [one for name, one in calls if name.id in ("table", "counts")])][:1])


def _absent(public: str, calls: Sequence[n.Call]) -> list[Diagnostic]:
    """The paths that a program writes and that are no files of the public folder."""
    texts = [one.args[0] for one in calls if one.args]
    help = "`jostle run` opens your own files; the public ones are those that other examples name"
    return [
        Diagnostic("DataError", f"this needs `{text.value}`, which is not here", text.span, "", help)
        for text in texts if isinstance(text, n.String) and not _is_public(public, text.value)
    ]  # fmt: skip


def _is_public(folder: str, name: str) -> bool:
    """Whether a path, or each of a pattern, is a file of a folder."""
    if "\0" in name or Path(name).is_absolute():
        return False
    places = sorted(Path(folder).glob(name)) if "*" in name else [Path(folder, name)]
    return bool(places) and all(one.resolve().is_relative_to(folder) and one.is_file() for one in places)


def answer(job: Job) -> dict[str, Json]:
    """Runs a program; gives the document that `jostle run --format json` prints and the last of its charges on each
    dataset, whose hash holds those before it, however many they are."""
    from jostle.trace.jsonl import Writer

    folder, source = Path(job.folder), source_of(job.program)
    (folder / "empty").mkdir(parents=True, exist_ok=True)
    if job.facts is not None:
        return _rehearsed(job, folder)
    writer = Writer(folder / TRACE)
    ledger = Ledger(job.ledger, grantee=job.analyst, began=job.began, granted=job.granted)
    if job.public:
        ledger = Ledger(folder / "none", within=job.public)
    where = Path(job.public or folder / "empty")
    with Session(listeners=[writer], ledger=ledger, cwd=where, engine=job.engine) as session:
        if faults := unregistered(source, job.public):
            result = Result(False, {}, {}, faults, [], [])
        else:
            result = session.attempt(source, job.settings)
    writer.close()
    if (folder / TRACE).stat().st_size > MOST_ANSWER:
        (folder / TRACE).unlink()  # too large to show
    runs = [event.fields.get("ledger", {}) for event in result.events if event.kind == "run"]
    document = result.document() if job.public else _document(result, folder / WHOLE)
    charges = {name: [max(links)] for run in runs for name, links in run.items() if links}
    return {"document": document, "charges": charges}


def _document(result: Result, place: Path) -> str:
    """A run as one JSON object. What was paid for and is too large to be shown stays in a file of its own, whole and on
    disk, and the document says so."""
    with place.open("w", encoding="utf-8", errors="backslashreplace") as file:
        file.writelines(result.document_parts())
        file.flush()
        os.fsync(file.fileno())
    size = place.stat().st_size
    text = place.read_text(encoding="utf-8") if size <= MOST_ANSWER else ""
    if text and len(json.dumps(text)) <= MOST_ANSWER * 0.99:  # beside it stands where its charges are
        place.unlink()
        return text
    with place.open("rb") as whole:
        hash = hashlib.file_digest(whole, "sha256").hexdigest()
    note = f"This answer has {size / 2**20:.0f} MB, too many to be shown. For seven days all of it is in `answer.json`."
    wrong = [one.as_json() for one in result.diagnostics[:1]]
    return json.dumps({"ok": result.ok, **({"error": wrong[0]} if wrong else {}), "released": {}, "margins": {},
                       "budget": result.budget, "output": [note], "warnings": [], "whole": hash})  # fmt: skip


def _rehearsed(job: Job, folder: Path) -> dict[str, object]:
    from jostle.trace.jsonl import Writer

    writer = Writer(folder / TRACE, simulated=1)
    program = with_facts(job.program, job.facts or {})
    result = simulated(program, job.settings, folder / "empty", writer)
    writer.close()
    return {"document": json.dumps({**json.loads(result.document(1)), "rows": MADE_UP}), "charges": {}}


def leave(folder: Path, document: Mapping[str, object]) -> None:
    """Writes an answer, whole and on disk."""
    text = json.dumps(document)
    if len(text) > MOST_ANSWER:
        error = {"kind": "DataError", "message": "the answer is too large", "help": "release less"}
        text = json.dumps({"document": json.dumps({"ok": False, "error": error}), "charges": document["charges"]})
    with replacing(folder / ANSWER) as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def draw(folder: Path, name: str) -> None:
    """Writes what a trace shows into its folder: the `PAGE`, or the `PICTURES`, a list of SVG."""
    from jostle.trace.html import page
    from jostle.trace.jsonl import read
    from jostle.trace.pictures import pictures

    events = read(folder / TRACE)
    text = page(events) if name == PAGE else json.dumps([one.svg() for one in pictures(events)[:MOST_PICTURES]])
    with replacing(folder / name) as file:
        file.write(text.encode(errors="replace").decode())


def check(request: Mapping[str, Json], folder: Path) -> dict[str, Json]:
    """What is wrong with a program, else what it can cost each source: functions of its text and of the `facts` that
    are published of its data alone. With `ask`, what an editor shows (`edited`)."""
    if "ask" in request:
        return edited(request, folder)
    text, settings = str(request["program"]), dict(request.get("settings") or {})
    public = str(request.get("public") or "")
    if faults := list(unregistered(source_of(text), public)):
        return {"ok": False, "errors": [fault.as_json() for fault in faults], "cost": []}
    stated = source_of(with_facts(text, dict(request.get("facts") or {})))
    with _session(folder, public) as session:
        faults, costs = session.checked(stated, settings)
        # What is answered again is free: whether a grant is enough, its meter says.
        faults = [fault for fault in faults if public or fault.kind != "BudgetExceeded"]
        warnings = [] if faults else [fault.as_json() for fault in session.warnings]
    cost = [one.as_json() for one in costs]
    return {"ok": not faults, "errors": [fault.as_json() for fault in faults], "cost": cost, "warnings": warnings}


# What an editor asks, and programs on simulated rows: functions of texts and public facts alone ----------
#
# A program names `dataset("people")`, of which nothing is known on its own. Where its analyst has a grant, what its
# owner published is known: columns, domains, the protected unit and the grant's limit. The name is replaced by a
# declaration that says these facts, on the same line; it is checked, completed and simulated, and never run on rows.

_DECLARED = re.compile(
    r'^(private\s+[A-Za-z_]\w*\s*=\s*)dataset\(\s*"([A-Za-z_]\w*)"\s*\)(?=[ \t\r]*(?:#.*)?$)', re.MULTILINE
)
MOST_CLAUSES = 20_000  # characters; of longer descriptions an editor knows nothing
MADE_UP = 2000
"""Rows of each table of a simulation."""
_CANDIDATES = 60
Facts = Mapping[str, str]
"""By a dataset's name, the clauses that its owner has published."""


def clauses(dataset: Dataset, grant: Dataset) -> str:
    """What is published of a dataset, as a declaration says it, under the limit of a grant, which a linked table has
    not; empty of counts, whose shape is not published."""
    from jostle.tools.draft.columns import domain_text, name_of

    terms, measure = dataset.terms, grant.terms.measure
    if not terms.schema:
        return ""
    never = [" never missing" * (name in terms.filled) for name, _ in terms.schema]
    columns = (
        f"{name_of(name)}: {domain_text(domain, whole=True)}{end}"
        for (name, domain), end in zip(terms.schema, never, strict=True)
    )
    budget = f" budget {measure.limit}{' counted by basic' * (measure.kind == 'basic')}" * (not terms.persons)
    text = f"described by {{{', '.join(columns)}}} protecting {terms.unit}{budget}"
    return text if len(text) <= MOST_CLAUSES else ""


def with_facts(program: str, facts: Facts) -> str:
    """A program whose datasets are declared by what is published of them; lines stay where they are. Nothing is known
    of a linked table whose persons are not declared above it."""
    names: dict[str, str] = {}  # by the name of a dataset, that of the program

    def declared(match: re.Match[str]) -> str:
        clauses_ = facts.get(match[2], "")
        head, _, unit = clauses_.rpartition(" protecting ")
        persons, linked, rest = unit.partition(".")
        if linked and " budget " not in unit:
            clauses_ = f"{head} protecting {names[persons]}.{rest}" if persons in names else ""
        if clauses_:
            names[match[2]] = match[1].split()[1].rstrip("=")
        return f'{match[1]}table("{match[2]}") {clauses_}' if clauses_ else match[0]

    return _DECLARED.sub(declared, program)


def _session(folder: Path, public: str = "", **options: Any) -> Session:
    """A session that opens nothing of the server, but for files of a `public` folder."""
    ledger = Ledger(folder / "none", grantee="" if public else "-", within=public)
    return Session(cwd=Path(public or folder), ledger=ledger, look=bool(public), **options)


def edited(request: Mapping[str, Json], folder: Path) -> dict[str, object]:
    """What the language says at a place (`line`, `column`, from 0): a hover, or what can be written there."""
    from jostle.tools.editors.document import Document

    text, line, column = str(request["program"]), int(request["line"]), int(request["column"])
    public = str(request.get("public") or "")
    with _session(folder, public) as opened:
        if request["ask"] == "format":
            return {"text": Document("program.jst", text).format() or text}
        document = Document("program.jst", _session=opened)
        whole = with_facts(text, dict(request.get("facts") or {}))
        for part in _readable(whole, line):  # what cannot be read yet is known by what can
            document.change(part)
        if request["ask"] == "completions":
            typed, candidates = document.completions(line, column)
            fit = [c for c in candidates if c.kind != "path" or (public and _is_public(public, c.word))]
            return {"typed": typed, "words": [{"word": c.word, "kind": c.kind} for c in fit[:_CANDIDATES]]}
        signature = document.signature(line, column)
        usage = "" if signature is None else f"{signature.usage}: {signature.about}"
        return {"hover": document.hover(line, column), "signature": usage}


def _readable(text: str, line: int) -> tuple[str, ...]:
    """A text's declarations alone, the text without the line that is being written, and the text."""
    lines = text.split("\n")
    declared = [one if one.startswith("private ") else "" for one in lines]
    return "\n".join(declared), "\n".join([*lines[:line], "", *lines[line + 1 :]]), text


def simulated(program: str, settings: Mapping[str, str], folder: Path, listener: Callable[[Event], None]) -> Result:
    """A run on simulated rows, drawn evenly from what is published: nothing private is opened, nothing is charged."""
    with _session(folder, simulate=1, rows=MADE_UP, listeners=[listener]) as rehearsal:
        return rehearsal.attempt(Source("program.jst", program), settings)


def own_environment(folder: Path, cache: str) -> dict[str, str]:
    """Where a process has its home, so that it finds nobody else's."""
    scratch = str(folder / "scratch")
    return {"HOME": str(folder), "XDG_CACHE_HOME": cache, "TMPDIR": scratch, "JOSTLE_LEDGER": "/dev/null/none"}


def _forks() -> int:
    """Forks the process of a run for each socket that it is handed, until whoever hands them has gone. What is handed
    over is read by the fork."""
    import socket

    control = socket.socket(fileno=os.dup(0))
    _load()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        _, places, *_ = socket.recv_fds(control, 1, 1)
        if not places:
            return 0
        with suppress(OSError):  # of a process that does not begin there is no answer, and no charge
            if os.fork() == 0:
                control.close()
                os.dup2(places[0], 0)
                os.close(places[0])
                os._exit(_forked())
        os.close(places[0])


def _forked() -> int:
    import tempfile

    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    tempfile.tempdir = None  # asked for anew
    return guarded(_run)


def _load() -> None:
    """Imports what a fork that runs a program over synthetic rows has imported, and reads the grammar."""
    import gc
    import tempfile
    from importlib import import_module

    here, there = os.pipe()
    if os.fork() == 0:
        with suppress(BaseException), tempfile.TemporaryDirectory(dir=".") as name:
            folder = Path(name).resolve()
            (folder / "t.csv").write_text("a\n1\n")
            answer(Job(_WARM, {}, "", "", str(folder), 0.0, public=str(folder)))
            with open(there, "w") as file:
                file.write("\n".join(sys.modules))
        os._exit(0)
    os.close(there)
    with open(here) as file:
        names = file.read().split()
    os.wait()
    for name in {*names, "sqlite3"} - {"__main__"}:
        with suppress(Exception):
            import_module(name)
    of_package = {"program": _WARM.replace('table("t.csv")', 'dataset("t")'), "facts": {"t": _WARM_FACTS}}
    for ask in ({}, {"ask": "completions", "line": 0, "column": 0}):  # what these read is kept
        check({**of_package, **ask}, Path.cwd())
    gc.collect()
    gc.freeze()


_WARM_FACTS = "described by {a: 0..9} protecting rows budget epsilon 9"
_WARM = (
    'private t = table("t.csv") described by {a: 0..9} protecting rows budget epsilon 9\n'
    "release n = {{ select count(*) as n, median(a) as m, avg(a) as v from t groupby a with epsilon 1 }}\n"
)


def _run() -> int:
    job = coded.decode(sys.stdin.buffer.read(), type=Job | Question)
    if isinstance(job, Question):
        return _answer(job)
    if (left := job.ends_at - time.time()) <= 0:
        return 1  # it begins too late to be answered: nothing is opened
    ends_after(left)
    folder = Path(job.folder)
    os.environ.update(own_environment(folder, job.cache) | job.login)
    os.chdir(folder / "empty")
    rehearses = job.facts is not None
    readable = [] if rehearses else [Path(job.public)] if job.public else [] if job.engine else _data(job)
    readable += [Path(value) for value in job.login.values() if value.startswith("/")]  # certificates, passwords
    ledger = [] if job.on_server or rehearses else [Path(job.ledger).parent]
    writable = [folder, *ledger, Path(job.cache)]
    network = (job.on_server or bool(job.engine)) and not rehearses
    confine(readable, writable, max(0.001, job.ends_at - time.time()), job.memory, network=network)
    threading.Thread(target=_ended_at, args=(job.ends_at,), daemon=True).start()
    leave(folder, answer(job))
    return 0


def _ended_at(moment: float) -> None:
    """Ends this process at a moment of the machine's clock: where that is set, or the machine slept, the server goes by
    it, and the timer of the process does not."""
    while time.time() < moment:
        time.sleep(0.1)
    os.kill(os.getpid(), signal.SIGKILL)


def _data(job: Job) -> list[Path]:
    """The files that it may open."""
    datasets = (dataset.terms for dataset in Ledger(job.ledger).datasets())
    return [Path(terms.path) for terms in datasets if terms.name in job.granted and terms.path]


def _answer(question: Question) -> int:
    """Answers a text's questions, or draws of a trace that any program may have written."""
    import socket

    folder = Path(question.folder)
    os.environ.update({**own_environment(folder, question.cache), "TMPDIR": question.folder})
    os.chdir(folder)
    later = threading.Timer(QUICK, os.setpriority, (os.PRIO_PROCESS, os.getpid(), os.nice(0) + 10))
    later.daemon = True
    later.start()
    writable = [folder, *([Path(question.trace)] if question.trace else [])]
    confine([Path(question.cache)], writable, question.seconds, OF_QUESTION, private=False)
    if question.trace:
        draw(Path(question.trace), question.name)
        return 0
    with socket.socket(fileno=os.dup(0)) as place:
        place.sendall(json.dumps(check(json.loads(question.request), folder)).encode())
    return 0


def main() -> int:
    """The status of the process: what goes wrong is said by no text of its own."""
    import gc
    import warnings

    gc.set_threshold(1_000_000)  # modules and grammars hold no garbage: until a program's first statement
    warnings.simplefilter("ignore")
    return guarded(_forks)


if __name__ == "__main__":
    sys.exit(main())
