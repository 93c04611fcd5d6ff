"""What must hold of every crossed program, on neighbouring tables.

Noise answers without looking at what it is given, so all that can be seen of both runs must be equal, byte for byte;
what the noise was given tells what the draws really lost, which is at most what was charged. Nothing fails after a
charge, and nothing but a refusal is raised. The same rows in another file type, or on a server that is named, give the
same exact integers.

Programs run in batches: two sessions declare two neighbouring tables in every file type, once, and hundreds of programs
follow as entries of a shell, each on a scope and a meter of its own. A program is read and checked once, and both
sessions run the same tree. What a batch finds is found again by its seed.
"""

from __future__ import annotations

import gc
import io
import random
import shutil
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from math import sqrt, tanh
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from arena import Arena
from cross_engine import PlainRows
from cross_parts import Asked, Chain, Program, Retried, Scored, modules
from cross_programs import Maker
from cross_worlds import BUDGETS, KINDS, OFTEN, PERIODS, UNITS, WRITERS, World, described, drawn, has_order
from engines_postgres import Loaded
from recorded_noise import Draw

from jostle.accounting.amounts import as_float
from jostle.diagnostics import Diagnostic, Refusal
from jostle.documentation import KINDS as REFUSALS
from jostle.engine.base import Engine
from jostle.language.row_functions import ROW_FUNCTIONS
from jostle.privacy.kernel.exposures import Counter
from jostle.privacy.measurements.choices import LargestScores, MarginMax, separation
from jostle.privacy.measurements.watch import BestRun
from jostle.run import propagation
from jostle.run.faults import deep
from jostle.source import Source
from jostle.syntax import parse
from jostle.tools.session import Session
from jostle.trace.jsonl import plain

SIZE, CHAINS, MEASUREMENTS = 500, 30, 60  # programs of a batch, and what they are crossed of
NESTED = 10**12  # from this seed on tables are made of tables, several deep
SCORED = 2 * 10**12  # and from this one on row programs, trees, models and workloads measure them
IN_PERIODS = 4  # of every eight batches: its budget is there anew for each period
CITIES = b"c,region,id\nAmes,north,p1\nCork,south,p2\nAmes,west,p3\n"
# Noise of these is added by the mechanism itself to what it compares: what they answer is no function of blind noise.
ADDED_LATER = {"largest", "margin max", "watch", "steps", "top_k()"}
LOOKED_ANEW = 0.05  # the share of programs that look at cells as if nobody had
ELSEWHERE = 0.1  # the share of programs that run on another file type too
CHECKED = 0.05  # the share of programs whose questions DuckDB is asked too, beside plain Python
OF_LONG_TEXTS = 0.5  # the same, of programs with functions of texts where a cell has more than 1,000 characters
TEXT_FUNCTIONS = {"like()", *(f"{name}()" for name, of in ROW_FUNCTIONS.items() if "text" in of.kinds)}
PURE = {"laplace", "selection", "cube", "runs"}  # noise that has an ε by itself
TYPED = {"parquet", "arrow"}  # the file types whose cells are those of a server's tables

RETRIED = 3 * 10**12  # and from this one on runs of which one is shown, and rounds until a budget or an answer
ORDERED = 4 * 10**12  # and from this one on each table has what stands before and after in a person's rows

Servers = Mapping[str, Callable[[], Engine]]
"""What makes an engine that writes a table to its server when it is opened, by name."""


@dataclass(frozen=True)
class Break:
    """Something that must not happen: what it is, the program, and its seed."""

    what: str
    detail: str
    program: Program
    seed: int


@dataclass(frozen=True)
class Run:
    """A program of a seed: whether it ran to its end, was refused before it paid or after, or by the check; and what
    broke. `elsewhere`: the file types and servers with which its integers were compared, or which refused it."""

    program: Program
    how: str
    breaks: tuple[Break, ...] = ()
    elsewhere: tuple[str, ...] = ()


@dataclass
class Seen:
    """All that can be seen of a run, what noise was given, and what was charged, in quanta."""

    visible: dict[str, Any]
    faults: tuple[Diagnostic, ...]
    draws: list[Draw]
    spent: tuple[int, ...]
    names: dict[str, Any]


class Side:
    """A session on one of two neighbouring tables, in this process or on a server."""

    def __init__(
        self, folder: Path, start: str, arena: Arena, engine: Engine, tables: Mapping[str, Any] = MappingProxyType({})
    ) -> None:
        self.session, self._noise, self._folder = Session(cwd=folder, engine=engine), arena.noise, f"{folder}/"
        for name, rows in tables.items():
            self.session.bind(name, rows)
        if isinstance(engine, Loaded):
            engine.write(tables.values())
        self.session.execute(Source("start.jst", start))
        self._interp, self._scope, self.engine = self.session._interp, self.session._scope, engine
        self._names = dict(self._scope.names)
        self._chains: dict[tuple[str, tuple[str, ...]], Seen] = {}

    def chain(self, tree: Any, file: str, chain: Chain) -> Seen:
        """What a chain gives, once."""
        if (file, chain.lines) not in self._chains:
            self._chains[file, chain.lines] = self.see(tree, file)
        return self._chains[file, chain.lines]

    def forget_chain(self, file: str, chain: Chain) -> None:
        """As if a chain had not been asked of a file: what it hands out is there anew."""
        self._chains.pop((file, chain.lines), None)

    def see(self, tree: Any, file: str, table: Any = None) -> Seen:
        """Runs a tree where only what was declared is known, the table is `t` and what was made of it `x`."""
        session, noise = self.session, self._noise
        faults: tuple[Diagnostic, ...] = ()
        self._scope.names.clear()
        linked = self._names.get(f"u_{file}")
        self._scope.names.update(self._names, t=self._names[f"t_{file}"], x=table, **{"u": linked} if linked else {})
        charged = self._interp.kernel.register.names[f"t_{file}"]
        charged.__post_init__()  # a meter of its own
        charged.charges.clear()
        events, output, warned = len(session.events), len(session._output), len(session.warnings)
        noise.draws, session._stream._next = [], 1
        written = io.StringIO()
        with redirect_stdout(written), redirect_stderr(written), warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            try:
                with deep():
                    self._interp.block(tree.body, self._scope)
            except Refusal as refusal:
                faults = refusal.diagnostics
        visible = {
            "diagnostics": [str(fault.as_json()).replace(self._folder, "") for fault in faults],
            "printed": session._output[output:], "written": written.getvalue(), "scales": noise.scales,
            "events": [plain(event.as_json()) for event in session.events[events:]],
            "warned": [str(one) for one in session.warnings[warned:]], "spent": charged.meter.spent,
            "heard": [str(one.message) for one in heard if "jostle" in one.filename or "numpy" in one.filename],
        }  # fmt: skip
        return Seen(visible, faults, noise.draws, charged.meter.spent, dict(self._scope.names))

    def forget_looks(self) -> None:
        """As if no column had been looked at: where one was by a program before, less noise is drawn."""
        looks = self._interp.looks
        for table in looks.tables.values():
            table.misfits.clear()
            table.last.clear()
        looks.cost.clear()
        looks.payments.clear()

    def close(self) -> None:
        self.session.close()
        self.engine.close()


class Batch:
    """Programs on one pair of neighbours: some chains of transformations, crossed with some measurements."""

    def __init__(self, arena: Arena, number: int, servers: Servers) -> None:
        self._arena, rng = arena, random.Random(f"batch {number}")
        self._servers, self._which = servers, number % 2  # and whose rows these have
        ordered = number * SIZE >= ORDERED
        units = {one: often for one, often in zip(UNITS, OFTEN, strict=True) if not ordered or has_order(one)}
        self.unit, self.budget = rng.choices([*units], [*units.values()])[0], rng.choice(list(BUDGETS))
        self.each = random.Random(f"periods of {number}").choice(PERIODS) if number % 8 == IN_PERIODS else ""
        if self.each and self.unit == "rows, public size":
            self.unit = "rows"
        self.world: World = drawn(rng, self.unit, self.each)
        self.description = described(random.Random(f"description of {number}"), self.each, self.unit[:2] == "id")
        maker, nested = Maker(rng, self.unit, self.budget, self.each), NESTED <= number * SIZE < ORDERED
        if nested and rng.random() < 0.3:
            self.description = self.description.replace("id: text, ", "")
        described_id = "id: text" in self.description
        self._chains = [maker.nested(described_id) if nested else maker.chain(ordered) for _ in range(CHAINS)]
        self._often = [0.1 if " up to " in chain.join else 1.0 for chain in self._chains]  # whose SQL is long
        whole = [chain for chain in self._chains if not chain.join and KINDS.items() <= chain.columns.items()]
        often = [*self._chains, *whole, *whole]
        self._measurements = [maker.measurement(rng.choice(often)) for _ in range(MEASUREMENTS)]
        scored = SCORED <= number * SIZE < ORDERED
        if scored or (nested and number % 3 == 0):
            of = (random.Random(f"asked of {number}"), self.unit, self.budget, maker.amount)
            asked = Retried(*of) if number * SIZE >= RETRIED else Scored(*of) if scored else Asked(*of)
            self._measurements = [asked.measurement(maker.limit) for _ in range(MEASUREMENTS)]
        self._trees: dict[str, Any] = {}
        self._sides: list[Side] = []
        self._there: dict[str, Side] = {}

    def linked(self, file: str, of: str, data: str) -> list[str]:
        """A second table of the same persons, where there are persons."""
        if self.world.more is None:
            return []
        up_to = self.unit.removeprefix("id").removesuffix(" weighted").replace("up to 1 ", "up to 3 ")
        return [f"private {file} = {data} described by {self.description}\n    protecting {of}.id{up_to}"]

    def declared(self, name: str, data: str) -> str:
        return (f"private {name} = {data} described by {self.description}\n    protecting {self.unit} "
                f"budget {BUDGETS[self.budget]}{f' each {self.each}' * bool(self.each)}")  # fmt: skip

    def program(self, rng: random.Random) -> Program:
        """A chain, mostly one measurement that fits it, and a file type."""
        while True:
            chain = rng.choices(self._chains, self._often)[0]
            fitting = [one for one in self._measurements if one.fits(chain)]
            if fitting:
                some = rng.choices(fitting, k=rng.choices((1, 2), (9, 1))[0])
                return Program(chain, tuple(some), rng.choice(list(WRITERS)), self.unit, self.budget)

    def _open(self) -> None:
        """Two sessions, where there are none, or what was before broke."""
        if self._sides:
            return
        declared = [self.declared(f"t_{file}", f'table("t.{file}")') for file in WRITERS]
        declared += [each for f in WRITERS for each in self.linked(f"u_{f}", f"t_{f}", f'table("u.{f}")')]
        start = self._start(*declared)
        for which in (0, 1):
            folder = self._arena.folder / str(which)
            folder.mkdir(exist_ok=True)
            for file in WRITERS:
                (folder / f"t.{file}").write_bytes(self.world.content(file, which))
                if self.world.more is not None:
                    (folder / f"u.{file}").write_bytes(self.world.more.content(file, which))
            (folder / "cities.csv").write_bytes(CITIES)
            self._sides.append(Side(folder, start, self._arena, PlainRows()))

    def _start(self, *declared: str) -> str:
        return "\n".join([*modules(), *declared, 'cities = table("cities.csv")', ""])

    def _at(self, server: str) -> Side:
        """The session on a server, to which the rows of one neighbour are written once."""
        if server not in self._there:
            start = self._start(self.declared(f"t_{server}", 'bound("t")'),
                                *self.linked(f"u_{server}", f"t_{server}", 'bound("u")'))  # fmt: skip
            tables, folder = {"t": self.world.table(self._which)}, self._arena.folder / "0"
            if self.world.more is not None:
                tables["u"] = self.world.more.table(self._which)
            self._there[server] = Side(folder, start, self._arena, self._servers[server](), tables)
        return self._there[server]

    def close(self) -> None:
        for side in (*self._sides, *self._there.values()):
            side.close()
        self._sides, self._there = [], {}

    def run(self, seed: int) -> Run:
        """The program of a seed on the two neighbours, and now and then on the first of them in another file type."""
        rng = random.Random(seed)
        program = self.program(rng)
        self._open()
        faults = Counter.faults
        breaks: list[tuple[str, str]] = []
        others: list[str] = []
        if self.unit == "rows" and self.world.same_in_every_file and rng.random() < ELSEWHERE:
            others.append(rng.choice([name for name in WRITERS if name != program.file]))
        others += [name for name in self._servers if program.file in TYPED]
        if others or rng.random() < LOOKED_ANEW:
            self._forget_looks()
        of_long = self.world.has_long_texts and not TEXT_FUNCTIONS.isdisjoint(program.features)
        how, checks = "ran", rng.random() < max(CHECKED, OF_LONG_TEXTS * of_long)
        engines = [side.engine for side in self._sides]
        for engine in engines:
            engine.checks, engine.differences = checks, []
        try:
            seen = [self._seen(side, program, program.file) for side in self._sides]
            breaks += _compared(program, *seen)
            if seen[0].faults:
                how, others = "refused after it paid" if any(seen[0].spent) else "refused", []
            elsewhere = [] if breaks else [self._elsewhere(program, seen, other) for other in others]
            breaks += [each for _, each in elsewhere if each]
        except Exception as fault:
            if self._is_refused_before(program):
                return Run(program, "refused by the check")
            last = traceback.extract_tb(fault.__traceback__)[-1]
            what = f"raised {type(fault).__name__} at {Path(last.filename).name}:{last.lineno}"
            self.close()
            return Run(program, "raised", (Break(what, str(fault)[:300], program, seed),))
        breaks += [("DuckDB says otherwise than plain Python", each[:1500]) for e in engines for each in e.differences]
        said = [d for one in seen for d in one.faults]
        if Counter.faults != faults:
            breaks.append(("a fault after a charge", str([d.message for d in said])))
        breaks += [(d.message, "no refusal of the closed list") for d in said if d.kind not in REFUSALS]
        if breaks:
            self.close()
        return Run(program, how, tuple(Break(*each, program, seed) for each in breaks), tuple(o for o, _ in elsewhere))

    def _forget_looks(self) -> None:
        for side in (*self._sides, *self._there.values()):
            side.forget_looks()

    def _seen(self, side: Side, program: Program, file: str) -> Seen:
        """What a side shows of a program, whose chain is asked once and may be refused."""
        chain = program.chain
        begun = side.chain(self._tree("".join(f"{line}\n" for line in chain.lines)), file, chain)
        return begun if begun.faults else side.see(self._tree(program.measuring), file, begun.names.get(chain.table))

    def _tree(self, text: str) -> Any:
        if text not in self._trees:
            self._trees[text] = parse(Source("p.jst", text), interactive=True)
        return self._trees[text]

    def _elsewhere(self, program: Program, seen: list[Seen], other: str) -> tuple[str, tuple[str, str] | None]:
        """With what a program was compared, and what differs; a server may refuse what it cannot do."""
        one, side = (seen[self._which], self._at(other)) if other in self._servers else (seen[0], self._sides[0])
        there = self._seen(side, program, other)
        self._forget_looks()  # the neighbour has not looked at this file, nor spent of what a chain there hands out
        for each in self._sides:
            each.forget_chain(other, program.chain)
        refused = [fault.message for fault in there.faults]
        if other in self._servers and any(" cannot " in message for message in refused) and not any(there.spent):
            return f"{other} refuses", None
        mine, theirs = ([draw.values.tolist() for draw in seen.draws] for seen in (one, there))
        what = f"other integers in {other} than in {program.file}", f"{refused} {mine} {theirs}"[:600]
        return other, None if mine == theirs and not refused else what

    def _is_refused_before(self, program: Program) -> bool:
        """Whether a program is refused as it is read or checked, which is left out where nothing comes of it."""
        try:
            tree = parse(Source("p.jst", program.text), interactive=True)
            return bool(self._sides[0].session._check(tree, self._sides[0].session._scope.names))
        except Refusal:
            return True


def _compared(program: Program, one: Seen, other: Seen) -> Iterator[tuple[str, str]]:
    for mine, theirs in zip(one.draws, other.draws, strict=False):
        if mine.kind == theirs.kind == "apart" and mine.values.shape == theirs.values.shape and mine.loss(theirs) > 1:
            yield "scores part further than noise is for", f"{mine.values} {theirs.values} {mine.scale}"
    later = ADDED_LATER & set(program.features)
    names = ("diagnostics",) if later else tuple(one.visible)
    for name in names:
        if one.visible[name] != other.visible[name]:
            yield f"neighbours look different: {name}", f"{one.visible[name]} {other.visible[name]}"[:1500]
            return
    if later or program.keys_are_open:
        return
    try:
        loss = lost(one.draws, other.draws, program.budget)
    except Otherwise as other_draws:
        yield str(other_draws), f"{one.draws} {other.draws}"[:1500]
        return
    spent = as_float(one.spent[0])
    if loss > spent * (1 + 1e-9) + 1e-12:
        biggest = max((float(np.abs(draw.values.astype(float)).max(initial=0)) for draw in one.draws), default=0.0)
        yield "more is lost than is charged", f"{loss} of {spent}; largest number {biggest:g}"


class Otherwise(Exception):
    """That neighbours draw other noise, or noise that has no price."""


@dataclass
class Hidden(Draw):
    """What is drawn where it is not shown: in a run, whose amount is its scale, or in all runs, of which `parts` cost
    as much as all."""

    inside: list[Draw] = field(default_factory=list)
    parts: int = 0


def lost(some: list[Draw], others: list[Draw], budget: str) -> float:
    """Pure ε, or ρ under a budget that counts it. Of runs each is within its own amount, and all cost what is paid."""
    if [(draw.kind, draw.values.shape) for draw in some] != [(draw.kind, draw.values.shape) for draw in others]:
        raise Otherwise("neighbours draw other noise")
    loss = 0.0
    for mine, theirs in zip(some, others, strict=True):
        if mine.kind in ("walk", "apart", "sample"):
            continue
        each = _hidden(mine, theirs) if isinstance(mine, Hidden) and isinstance(theirs, Hidden) else mine.loss(theirs)
        if budget == "run" and mine.kind == "gumbel":
            each = sqrt(8 * each)
        elif mine.kind not in PURE and budget in ("epsilon", "run") and each:
            raise Otherwise(f"noise without a pure epsilon: {mine.kind}")
        if budget == "basic":  # of plain sums, those of noise that is for ε alone
            each = each if mine.kind in PURE else 0.0
        elif mine.kind in PURE and budget in ("rho", "delta"):
            each *= tanh(each / 2)  # what a pure mechanism costs in zCDP (docs/privacy/mechanisms.md)
        loss += each
    return loss


def _parts(best: BestRun) -> int:
    """Of docs/privacy/selection.md."""
    return 2 if best.stopping.good is not None or best.stopping.law == "logarithmic" else 3


def _hidden(mine: Hidden, theirs: Hidden) -> float:
    """What a run loses, or all runs of which one is shown: as much as so many of them."""
    if mine.parts:
        return mine.parts * max((_hidden(*runs) for runs in zip(mine.inside, theirs.inside, strict=True)
                                 if isinstance(runs[0], Hidden)), default=0.0)  # fmt: skip
    loss = lost(mine.inside, theirs.inside, "run")
    if loss > mine.scale * (1 + 1e-9) + 1e-12:
        raise Otherwise("a run loses more than its part")
    return loss


def _apart(call: Callable[..., Any], arena: Arena, parts: bool) -> Callable[..., Any]:
    """A run of `best_run`, or all of them, whose draws are put aside."""

    def apart(best: BestRun, *about: Any) -> Any:
        before, arena.noise.draws = arena.noise.draws, [*arena.noise.draws]
        try:
            return call(best, *about)
        finally:
            inside, arena.noise.draws = arena.noise.draws[len(before) :], before
            amount = as_float(best.each.amount.value) if best.each is not None else 0.0
            before.append(Hidden("runs", np.zeros(0), amount, inside, _parts(best) if parts else 0))

    return apart


def _noted(release: Callable[..., Any], arena: Arena) -> Callable[..., Any]:
    """The release of a choice that adds its noise itself, which notes how far apart its scores may part."""

    def noted(choice: Any, exact: Any, noise: Any) -> Any:
        if choice.exposures:
            arena.noise.draws.append(Draw("apart", np.array(exact), separation(choice.scores, choice.exposures)))
        return release(choice, exact, noise)

    return noted


class Crosses:
    """Runs crossed programs, batch after batch, in a folder of its own."""

    def __init__(self, arena: Arena, servers: Servers) -> None:
        self._arena, self._servers = arena, servers
        self._number = -1
        self._batch: Batch | None = None

    def run(self, seed: int) -> Run:
        if self._batch is None or seed // SIZE != self._number:
            self.close()
            gc.collect()
            self._number, self._batch = seed // SIZE, Batch(self._arena, seed // SIZE, self._servers)
        return self._batch.run(seed)

    def whole(self, program: Program) -> str:
        """A program of the batch at hand with its declarations."""
        assert self._batch is not None
        declared = [self._batch.declared("t", f'table("t.{program.file}")')]
        declared += self._batch.linked("u", "t", f'table("u.{program.file}")')
        return "\n".join([*modules(), 'cities = table("cities.csv")', *declared, program.text])

    def close(self) -> None:
        if self._batch is not None:
            self._batch.close()


@contextmanager
def opened(servers: Servers = MappingProxyType({})) -> Iterator[Crosses]:
    """Crosses in a fresh folder, under blind noise; of what is like a server's table all is asked of `servers` too."""
    folder = Path(tempfile.mkdtemp(prefix="jostle-crosses-"))
    patch = pytest.MonkeyPatch()
    crosses = None
    try:
        patch.setattr(propagation, "DRAWS", propagation.FEWEST)  # of what is shown beside answers, public numbers
        gc.disable()  # of what a batch leaves all is let go at its end
        arena = Arena(folder, patch)
        for choice in (LargestScores, MarginMax):
            patch.setattr(choice, "release", _noted(choice.release, arena))
        for name in ("_one", "release"):
            patch.setattr(BestRun, name, _apart(getattr(BestRun, name), arena, name == "release"))
        crosses = Crosses(arena, servers)
        yield crosses
    finally:
        gc.enable()
        if crosses is not None:
            crosses.close()
        patch.undo()
        shutil.rmtree(folder, ignore_errors=True)
