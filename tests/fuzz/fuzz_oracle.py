"""What must hold of every run, whatever the program.

Each program runs twice, over two private databases that share nothing but their public facts (header, number of rows,
shapes). Noise is made up here and does not look at what it is given, so all that a person may see of the two runs must
be the same, to the letter: whatever differs was released unpaid, or decided by data. Beside that: nothing but a
`Refusal` is raised, each diagnostic has a kind of the closed list, a place and words that are no Python internals, each
measurement charges before it draws, and no budget is exceeded.
"""

from __future__ import annotations

import contextlib
import json
import random
import re
import signal
import traceback
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jostle import syntax
from jostle.diagnostics import Diagnostic, Refusal
from jostle.documentation import KINDS
from jostle.privacy.kernel import exposures
from jostle.privacy.kernel.kernel import Kernel
from jostle.privacy.measurements import choices, open_selects
from jostle.privacy.mechanisms.stability import KeyRound
from jostle.readers import duckdb as duckdb_engine
from jostle.source import Source
from jostle.tools.session import Result, Session

SLOW = 2.0
INTERNALS = re.compile(
    r"\bNone\b|\bTrue\b|\bFalse\b|<class|object at 0x|Error:|Traceback|\bfloat\b|\bstr\b|\bint\b|\bdict\b|\btuple\b"
    r"|numpy|ndarray|jostle\.|NoneType|np\.|dtype|Noised|JSet|Interval\(|builtin|RowForm|Handle|__\w+__|lambda>|broadcast"
)
CANARIES = ("CANARYAB", "CANARYCD", "48271.39", "73919.17")


class TooSlow(BaseException):
    """Raised by the alarm; not an Exception, so that nothing on the way takes it for its own."""


class Unpaid(BaseException):
    """Noise was drawn inside a measurement that had charged nothing."""


@dataclass(frozen=True)
class Fault:
    """Something that must not happen: a signature that equal faults share, and what was seen."""

    signature: str
    detail: str


class MadeUp:
    """Noise that looks at nothing but shapes and scales."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def laplace(self, values: Any, scale: float) -> Any:
        self._watch.draws(scale)
        return self._like(values, scale)

    def gaussian(self, values: Any, sigma: float) -> Any:
        self._watch.draws(sigma)
        return self._like(values, sigma)

    def noisy_max(self, scores: Any, scale: float) -> int:
        self._watch.draws(scale)
        return self._watch.random.randrange(max(1, len(np.ravel(scores))))

    gumbel_max = noisy_max

    def _like(self, values: Any, scale: float) -> Any:
        flat = [self._watch.random.randrange(-5, 60) for _ in range(min(values.size, 1000))]
        spread = int(min(max(1.0, scale), 2**40))
        return np.resize(np.array(flat or [0], dtype=np.int64) * spread, values.shape)


class Watch:
    """Follows charges and draws: inside a measurement, nothing is drawn before something was charged."""

    def __init__(self) -> None:
        self.random = random.Random(0)
        self.begun = 0
        self.open: list[bool] = []
        self.charged = 0
        self.keys_found = False  # open keys were released, which are those that rows have
        self.keyless = False  # none passes its threshold
        self.engines = Engines()

    def reset(self) -> None:
        self.begun, self.open, self.charged, self.keys_found = 0, [], 0, False
        self.anew()

    def anew(self) -> None:
        """Begins other random numbers. How many a measurement draws may depend on rows, as of open keys, of which none
        may pass, or of a walk through a tree: those after it must not."""
        self.begun += 1
        self.random = random.Random(self.begun)

    def draws(self, scale: float) -> None:
        if not self.open or not self.open[-1]:
            raise Unpaid(f"noise of scale {scale} before any charge")
        if not scale > 0:
            raise Unpaid(f"noise of scale {scale}")

    def charges(self) -> None:
        self.charged += 1
        self.open[-1:] = [True]

    @contextlib.contextmanager
    def measurement(self) -> Iterator[None]:
        self.open.append(False)
        self.anew()
        try:
            yield
        finally:
            self.open.pop()
            self.anew()


class Engines:
    """One engine for each folder and a fresh one after every fault: to open a database takes longer than most programs.

    What an engine keeps between programs are the cells of files that never change here.
    """

    def __init__(self) -> None:
        self._make = duckdb_engine.LocalDuckDb
        self._made: dict[Path, duckdb_engine.LocalDuckDb] = {}
        self.folder = Path()

    def __call__(self, memory: str | None = None) -> duckdb_engine.LocalDuckDb:
        if self.folder not in self._made:
            self._made[self.folder] = self._make()
        return self._made[self.folder]

    def forget(self) -> None:
        for engine in self._made.values():
            engine.close()
        self._made.clear()


def remembered(parse: Any) -> Any:
    """A text is parsed once, and run on both databases."""
    trees: dict[tuple[str, str, bool], Any] = {}

    def call(source: Source, *, interactive: bool = False) -> Any:
        name = (source.name, source.text, interactive)
        if name not in trees:
            if len(trees) > 200:
                trees.clear()
            try:
                trees[name] = parse(source, interactive=interactive)
            except Refusal as refusal:
                trees[name] = refusal
        if isinstance(trees[name], Refusal):
            raise Refusal(*trees[name].diagnostics)
        return trees[name]

    return call


def watched(patch: pytest.MonkeyPatch) -> Watch:
    """Puts synthetic noise and the watch into the kernel for as long as the patch holds."""
    watch = Watch()
    Session().attempt(
        Source("p.jst", "use histograms\nx = counts([1, 2])\n")
    )  # loads grammar and engine before any alarm
    patch.setattr(exposures, "SecureNoise", lambda: MadeUp(watch))
    patch.setattr(duckdb_engine, "LocalDuckDb", watch.engines)
    patch.setattr(syntax, "parse", remembered(syntax.parse))

    class Free(MadeUp):
        """For a choice among public utilities, which costs nothing."""

        def noisy_max(self, scores: Any, scale: float) -> int:
            return watch.random.randrange(max(1, len(np.ravel(scores))))

    patch.setattr(choices, "SecureNoise", lambda: Free(watch))
    charge = Kernel._charge

    def charged(kernel: Kernel, *args: Any, **keywords: Any) -> None:
        charge(kernel, *args, **keywords)
        watch.charges()

    patch.setattr(Kernel, "_charge", charged)
    select_keys = open_selects.select_keys

    def selected(*args: Any) -> tuple[list[Any], list[Any], Any]:
        found, counts, law = select_keys(*args)
        watch.keys_found = watch.keys_found or bool(found)
        return ([], [], law) if watch.keyless else (found, counts, law)

    patch.setattr(open_selects, "select_keys", selected)
    of_round = KeyRound.select

    def selected_in_round(*args: Any) -> list[Any]:
        found = of_round(*args)
        watch.keys_found = watch.keys_found or bool(found)
        return [] if watch.keyless else found

    patch.setattr(KeyRound, "select", selected_in_round)

    measure = Kernel.measure

    def measured(kernel: Kernel, measurement: Any, span: Any = None) -> Any:
        with watch.measurement() if measurement.exposures else contextlib.nullcontext():
            return measure(kernel, measurement, span)

    patch.setattr(Kernel, "measure", measured)
    return watch


# Two databases ---------------------------------------------------------------------------------------


def databases(folder: Path) -> tuple[Path, Path]:
    """Two folders whose private files differ in every row, and whose public files are the same."""
    a, b = folder / "a", folder / "b"
    for place, seed in ((a, 11), (b, 22)):
        place.mkdir(parents=True, exist_ok=True)
        rng = random.Random(seed)
        tag, money = (CANARIES[0], 48271.390625) if place is a else (CANARIES[1], 73919.171875)
        lines = ["age,sex,gain,hours,note,free"]
        for i in range(40):
            if place is a:
                lines.append(
                    f"{rng.randrange(20, 50)},Female,{money + i * 0.5},{rng.randrange(0, 9)},{tag}{i % 7},{money}"
                )
            else:
                sex = ("Male", "Female", "", "other")[i % 4]
                lines.append(
                    f"{rng.choice((0, 99, 140, -3))},{sex},{money - i},{rng.randrange(30, 60)},{tag}{i % 3},nan"
                )
        for copy in ("", *range(4)):
            (place / f"rows{copy}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
        public = random.Random(5)
        rows = []
        for _ in range(30):
            sex, money = public.choice(("Female", "Male")), public.random() * 1e5
            rows.append(f"{public.randrange(0, 99)},{sex},{money:.3f},{public.randrange(60)}")
        (place / "public.csv").write_text("\n".join(["age,sex,gain,hours", *rows]) + "\n", encoding="utf-8")
        draw = np.random.default_rng(seed)
        for copy in range(4):
            np.save(place / f"cells{copy}.npy", draw.integers(0, 900 if place is a else 3, 16))
            np.save(place / f"square{copy}.npy", draw.integers(0, 900 if place is a else 3, (4, 4)))
    return a, b


class Unchecked(Session):
    """A session without the checker: the kernel and the interpreter are the authority, and are asked alone."""

    def _check(self, *_: Any) -> list[Diagnostic]:
        return []


# One program -----------------------------------------------------------------------------------------


@contextlib.contextmanager
def alarm(seconds: float) -> Iterator[None]:
    """Raises `TooSlow` in the middle of whatever takes more CPU; where there are no alarms, it waits.

    CPU and not the clock, since other processes share the machine. What hangs without working is for the caller.
    """
    if not hasattr(signal, "setitimer"):
        yield
        return

    def ring(*_: Any) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, seconds, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def examine(
    text: str | list[str], folders: tuple[Path, Path], watch: Watch, slow: float = SLOW, *, checked: bool = True
) -> tuple[list[Fault], Result | None]:
    """Every fault of a program, or of the entries of a conversation, and the result of its first run.

    Open keys that pass their threshold are an answer that was paid for and that noise cannot make up: where they were
    found and the runs differ, both are run again with a threshold that nothing passes.
    """
    faults, first, found = _examine(text, folders, watch, slow, checked)
    if found and faults and faults[0].signature.startswith("differs"):
        watch.keyless = True
        try:
            faults, _, _ = _examine(text, folders, watch, slow, checked)
        finally:
            watch.keyless = False
    return faults, first


def _examine(
    text: str | list[str], folders: tuple[Path, Path], watch: Watch, slow: float, checked: bool
) -> tuple[list[Fault], Result | None, bool]:
    seen, found = [], False
    first: Result | None = None
    for folder in folders:
        watch.reset()
        watch.engines.folder = folder
        try:
            session = (Session if checked else Unchecked)(cwd=folder)
            with alarm(slow):
                # `p.jst` is beside no file: what it opens is looked for in `folder`
                result = session.attempt(Source("p.jst", text)) if isinstance(text, str) else converse(session, text)
                first = first or result
                faults = _wrong(result)
                visible = _visible(result, folder)
        except TooSlow as late:
            watch.engines.forget()
            return [Fault(f"slow in {_where(late)}", f"took over {slow} s")], first, found
        except Unpaid as unpaid:
            watch.engines.forget()
            return [Fault(f"unpaid: {_where(unpaid)}", str(unpaid))], first, found
        except Exception as error:
            watch.engines.forget()
            said = "".join(traceback.format_exception(error)[-12:])
            return [Fault(f"{type(error).__name__} in {_where(error)}", said)], first, found
        found = found or watch.keys_found
        if faults:
            return faults, first, found
        seen.append(visible)
    if seen[0] != seen[1]:
        return [Fault(f"differs with the data: {_difference(*seen)}", "\n".join(_lines(*seen)))], first, found
    return [], first, found


def inspect(text: str, session: Session, slow: float = SLOW) -> tuple[list[Fault], list[Diagnostic]]:
    """Every fault of reading and checking a text, which runs nothing, and what was said of it."""
    try:
        with alarm(slow):
            said = session.check(Source("p.jst", text))
    except TooSlow as late:
        return [Fault(f"slow in {_where(late)}", f"took over {slow} s")], []
    except Exception as error:
        return [Fault(f"{type(error).__name__} in {_where(error)}", traceback.format_exc()[-3000:])], []
    return _ill_said(said), said


def converse(session: Session, entries: list[str]) -> Result:
    """Hands a session one entry after another, as a REPL does: it goes on after what is refused."""
    diagnostics: list[Diagnostic] = []
    output: list[str] = []
    values: dict[str, Any] = {}
    for number, entry in enumerate(entries):
        try:
            value = session.execute(Source(f"entry {number}", entry))
            output.append(session.show(value))
            values |= session._interp.released
        except Refusal as refusal:
            diagnostics.extend(refusal.diagnostics)
    output.extend(session._output)
    return Result(not diagnostics, values, session.budget(), tuple(diagnostics), session.events, output)


def _ill_said(diagnostics: Iterable[Diagnostic]) -> list[Fault]:
    found: list[Fault] = []
    for said in diagnostics:
        words = " | ".join([said.message, said.label, said.help, *(note.text for note in said.notes)])
        if said.message.endswith("failed after the charge, and there is no answer"):
            found.append(Fault("fault after a charge", words))
        if said.kind not in KINDS:
            found.append(Fault(f"kind {said.kind}", words))
        if said.span is None:
            found.append(Fault(f"no place: {_shape(said)}", words))
        quoted = re.sub(r"`[^`]*`", "``", words)
        if INTERNALS.search(quoted):
            found.append(Fault(f"internals: {_shape(said)}", words))
    return found


def _wrong(result: Result) -> list[Fault]:
    found = _ill_said(result.diagnostics)
    if not result.ok and not result.diagnostics:
        found.append(Fault("refused without a word", ""))
    for name, lines in result.budget.items():
        for unit, line in lines.items():
            if float(line["spent"]) > float(line["total"]) * (1 + 1e-12):
                found.append(Fault("overspent", f"{name}: {line['spent']} of {line['total']} {unit}"))
    visible = json.dumps(_visible(result, Path("nowhere")), ensure_ascii=False, default=str)
    for canary in CANARIES:
        if canary in visible:
            found.append(Fault(f"canary {canary}", visible[:2000]))
    for line in result.output:
        if re.search(r"object at 0x|<class|jostle\.|None\b|JSet|dtype", line):
            found.append(Fault("internals printed", line[:500]))
    return found


def _visible(result: Result, folder: Path) -> list[Any]:
    """All that a person can see of a run, without the folder's name."""
    events = []
    for event in result.events:
        made = event.as_json()
        made.pop("seconds", None)
        events.append(made)
    told = [d.as_json() for d in result.diagnostics]
    out = [result.ok, result.released_json(), result.output, told, result.budget, events]
    text = json.dumps(out, ensure_ascii=False, default=str)
    here: list[Any] = json.loads(text.replace(str(folder), "."))
    return here


def _difference(a: list[Any], b: list[Any]) -> str:
    names = ("outcome", "released", "output", "diagnostics", "budget", "events")
    return ", ".join(name for name, x, y in zip(names, a, b, strict=True) if x != y)


def _lines(a: list[Any], b: list[Any]) -> Iterator[str]:
    for x, y in zip(a, b, strict=True):
        if x != y:
            yield f"A: {str(x)[:1500]}"
            yield f"B: {str(y)[:1500]}"


def _where(error: BaseException) -> str:
    frames = [
        f for f in traceback.extract_tb(error.__traceback__) if "jostle" in f.filename and "fuzz" not in f.filename
    ]
    last = frames[-1] if frames else None
    return f"{Path(last.filename).name}:{last.name}" if last is not None else "nowhere"


def _shape(said: Diagnostic) -> str:
    return said.kind + ": " + re.sub(r"`[^`]*`|[\d.e+-]+", "…", said.message)[:90]
