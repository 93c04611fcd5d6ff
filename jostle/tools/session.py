"""A session: programs, names, budgets and events that live together. What the command line, the REPL and Python use."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from jostle import resources
from jostle.backends import engine_at
from jostle.check import check
from jostle.check.modules import Modules as UsedModules
from jostle.check.warnings import Report, Warned
from jostle.diagnostics import Diagnostic, Refusal, refuse
from jostle.engine.base import Engine
from jostle.events import Event, Stream
from jostle.language.builtins import BUILTINS
from jostle.privacy.kernel.kernel import Kernel
from jostle.privacy.ledger.ledger import Ledger
from jostle.privacy.reading.public_data import PublicData
from jostle.readers.limits import memory_limit
from jostle.records import replace
from jostle.run.clauses import Clauses, clauses
from jostle.run.faults import deep, with_room
from jostle.run.interpreter import Interpreter, Modules
from jostle.run.looks import Looks
from jostle.run.scope import Scope
from jostle.source import Source
from jostle.syntax import nodes as n
from jostle.syntax import parse
from jostle.syntax.querybuilder import one_declaration
from jostle.syntax.walk import every_of
from jostle.tools.arguments import read_program
from jostle.tools.outlet import Others, stops_wait
from jostle.tools.result import Result, at_end, balances, log_end, log_start, need_settings
from jostle.tools.show import display_text, measured_names
from jostle.tools.turns import Turns, arguments_fit, built_ins, exclusive, first_budget, identity, loaded, need_data

if TYPE_CHECKING:
    from jostle.check.costs import Cost
    from jostle.check.dry.interpreter import Foreseen
    from jostle.tools.expected_errors import DryRun

    Checked = tuple[list[Diagnostic], list[Cost]]

__all__ = ["Result", "Session"]

I = TypeVar("I", bound="Interpreter")
Values = Mapping[str, object]


@arguments_fit
class Session:
    """Runs programs. Sources that programs of one session declare share their budgets.

    Threads may share a session: its programs run one after the other, and a listener gets an event `wait` where one
    waits for longer than a second, from a thread of its own. `with Session() as s:` closes it at the end.

    `simulate`, a seed, puts simulated rows (or what `bind` gives under a source's name) in place of every private
    source; `rows` says how many. `ledger` is the file or database in which registered datasets are counted; left out,
    `$JOSTLE_LEDGER` or this user's own. `memory`, such as `2GB`, is what the database may take before it spills to the
    disk; left out, `$JOSTLE_MEMORY` or a quarter of the machine's. `engine` is the URL of a server that has the data;
    left out, `$JOSTLE_ENGINE` or none. `warnings` gathers what does not fit and stops nothing, without the names in
    `allow` and in comments. With `look`, the first charge on a described column has 2 % for cells that do not fit.
    With `rehearse`, what fails on simulated rows after a payment, whatever their number, is refused before it is paid.
    """

    def __init__(
        self,
        *,
        listeners: Sequence[Callable[[Event], None]] = (),
        progress: Callable[[str, int, int], None] | None = None,
        out: Callable[[str], None] | None = None,
        simulate: int | None = None,
        rows: int | None = None,
        ledger: str | Path | Ledger | None = None,
        memory: str | None = None,
        engine: str | Engine | None = None,
        cwd: str | Path | None = None,
        allow: Collection[str] = (),
        look: bool = True,
        rehearse: bool = True,
    ) -> None:
        self.events: list[Event] = []
        self._output: list[str] = []
        self.turns, self._resources = Turns(self._waits, self._rest), ExitStack()
        self._others, self._modules = Others(), Modules()
        self._listeners = [self._others.of(listener) for listener in listeners]
        self._progress, self._out = progress and self._others.of(progress), out and self._others.of(out)
        self._simulate, self._rows, self._ledger, self._engine = simulate, rows, ledger, engine
        self._bound: dict[str, object] = {}
        self.warnings, self._look, self._memory = Warned(allow), look, memory_limit(memory)
        self._rehearses = rehearse and simulate is None
        self._last: tuple[Source, n.Program] | None = None
        self._clean: Source | None = None  # the program before, if it rests on itself alone and nothing was found in it
        self._cwd = Path(cwd) if cwd is not None else Path.cwd()
        self._folders: list[Path] = [self._cwd]
        self._ran: Callable[[], dict[str, object]] = dict  # what the last program measured and did not release

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @cached_property
    def _stream(self) -> Stream:
        return Stream([self.events.append, *self._listeners])

    @cached_property
    def _interp(self) -> Interpreter:
        """Made when something first runs: a check needs neither the engine nor the kernel."""
        return self._opened(Interpreter)

    def _opened(self, kind: type[I]) -> I:
        from jostle.choice.maker import maker
        from jostle.privacy.reading.vault import kernel_over
        from jostle.speed.fast import FastAnswers

        engine = engine_at(self._engine, self._memory, environment=self._simulate is None)
        interp = self._new(kind, *kernel_over(engine, self._stream, FastAnswers(engine)), maker(self._progress))
        self._resources.enter_context(closing(engine) if engine is not self._engine else ExitStack())
        interp.looks = Looks(self.warnings.add if self._look and self._simulate is None else None, engine.check)
        return interp

    def _beside(self, simulate: int | None = None, rows: int | None = None) -> Session:
        """Another session, which finds the same files and modules."""
        other = Session(cwd=self._cwd, simulate=simulate, rows=rows, ledger=self._ledger, progress=self._progress)
        other._folders[:], other._modules = self._folders, self._modules.afresh()
        return other

    def _new(self, kind: type[I], kernel: Kernel, data: PublicData, choose: Callable[..., object]) -> I:
        """An interpreter on a kernel, with the built-ins, modules and data of this session."""
        interp = kind(
            kernel, data, built_ins(),
            load_module=lambda path, span: self._modules.load(interp, path, span), choose=choose, out=self._print,
        )  # fmt: skip
        interp.simulate, interp.bound, interp.folders = self._simulate, self._bound, self._folders
        interp.ledger, interp.progress = (ledger := self._own_ledger()), self._progress
        self._resources.enter_context(closing(ledger.store))
        interp.display, interp.made_up_rows = self.show, self._rows or interp.made_up_rows
        return interp

    def _own_ledger(self) -> Ledger:
        return self._ledger if isinstance(self._ledger, Ledger) else Ledger(self._ledger)

    def _rest(self) -> None:
        """A program ended: its engine lets go of what would keep others waiting."""
        if "_interp" in self.__dict__:
            self._interp.data.rest()

    @cached_property
    def _scope(self) -> Scope:
        return Scope(self._interp.base)

    def hold_stops(self) -> AbstractContextManager[None]:
        """Within it a stop waits for the answer that was paid for, and comes when that has its name, or at the end."""
        return stops_wait(self._interp)

    @exclusive
    def bind(self, name: str, value: object) -> None:
        """Hands data over: a program reads them with `bound("name")`. A path, a pattern or a list of paths, or a
        table or array in memory: of pandas, polars, Arrow, DuckDB or NumPy. What is none of them, and a path at which
        nothing lies, is refused. What is bound to a name later shares the budget of what was bound to it before."""
        if isinstance(value, list | tuple) and any(isinstance(item, Path) for item in value):
            value = [str(item) for item in value]
        value = str(value) if isinstance(value, Path) else value
        need_data(name, value, self._folders)
        self._bound[name] = value

    def run(self, program: str | Path | Source, /, **params: object) -> Result:
        """Runs a program; raises `Refusal` where it is refused, whose `result` has what was paid for before."""
        result = self.attempt(program if isinstance(program, Source) else read_program(Path(program)), params)
        if not result.ok:
            refusal = Refusal(*result.diagnostics)
            refusal.result = result
            raise refusal
        return result

    def run_text(self, text: str, /, **params: object) -> Result:
        """Runs a program that is given as a text; raises `Refusal` where it is refused."""
        return self.run(Source("text", text), **params)

    def attempt(self, source: Source | str, settings: Values | None = None) -> Result:
        """Runs a program, or one that is given as a text, in a scope of its own; its faults come back in the result."""
        source = Source("text", source) if isinstance(source, str) else source
        before = log_start(source, self.budget()) if self._simulate is None else None
        try:
            with self.turns.turn(program=True), self.hold_stops():
                return log_end(source, self._attempt(source, settings), before)
        except Refusal as refusal:  # before it began
            return log_end(source, Result(False, {}, self.budget(), refusal.diagnostics, [], []), before)

    @with_room
    def _attempt(self, source: Source, settings: Values | None) -> Result:
        first_event, first_line, warned = len(self.events), len(self._output), len(self.warnings)
        interp = self._interp
        interp.released, interp.settings, interp.left = {}, dict(settings or {}), []
        interp.kernel.begin(source)
        self._look_beside(source)
        interp.top, self._ran, begun = (scope := Scope(interp.base)), dict, False
        faults: tuple[Diagnostic, ...] = ()
        try:
            with self._stream.within("run", source.name, text=source.text) as fields:
                try:
                    with self._others.excepted(interp), deep():
                        tree = self._checked(source)
                        need_settings(tree, interp.settings)
                        late, begun = self._affordable(source, settings), True
                        if late:
                            raise Refusal(*late)
                        apart = settings or every_of(tree, n.Use) or len(self.warnings) > warned
                        self._clean = None if apart else source
                        self._ran = lambda: measured_names(tree, scope, interp)
                        loaded()
                        interp.block(tree.body, scope)
                finally:
                    fields.update(at_end(interp.kernel.register, self._output[first_line:]))
        except Refusal as refusal:
            faults = refusal.diagnostics if begun else tuple(self._mend(refusal.diagnostics, source, settings))
            for diagnostic in faults:
                self._stream.emit("error", diagnostic.kind, diagnostic.span, message=diagnostic.message)
        interp.kernel.owes = True  # the result, to whoever holds stops
        return Result(
            not faults, dict(interp.released), self.budget(), faults, self.events[first_event:],
            self._output[first_line:], self._ran() if faults else {}, tuple(self.warnings[warned:]),
        )  # fmt: skip

    def so_far(self) -> Result:
        """What this session released, measured and spent: of a run that was stopped, what was paid for."""
        parts = dict(self._interp.released), self.budget(), (), list(self.events), list(self._output)
        return Result(False, *parts, self._ran(), tuple(self.warnings))

    def close(self) -> None:
        """Frees the engine and its connections once no program runs; an engine that was handed over stays open.
        Nothing can be run then, and what was released and spent can still be asked. A second time does nothing."""
        if self.turns.closed:
            return
        with self.turns.turn(program=True):
            self.turns.closed = True
            self._resources.close()
            self._bound.clear()

    @exclusive
    def releases(self, source: Source) -> list[str] | None:
        """The names that a program and its modules release somewhere; None where the program cannot be read."""
        from jostle.tools.export import released_names

        self._look_beside(source)
        try:
            return released_names(self._parsed(source), self._tree)
        except Refusal:
            return None

    def dry_run(self, program: str | Path | Source, /, **params: object) -> DryRun:
        """What each statement of a program would spend, and what stays; raises `Refusal` where a check refuses it.
        Nothing is run, and of private data nothing but the headers of files is opened."""
        source = program if isinstance(program, Source) else read_program(Path(program))
        faults, costs = self.checked(source, params)
        if faults:
            raise Refusal(*faults)
        return self.foreseen(source, costs, params)

    @exclusive
    def foreseen(self, source: Source, costs: Sequence[Cost], settings: Values) -> DryRun:
        """The dry run of a program that the check passes, with its `costs`: simple lines run on simulated rows."""
        from jostle.tools.expected_errors import dry_run, simple

        rehearsal = Session(simulate=1, ledger=self._ledger)
        names, *_ = rehearsal.rehearse(source, settings, only=simple)
        return dry_run(source, costs, rehearsal.events, names)

    def check(self, source: Source | str, settings: Values | None = None) -> list[Diagnostic]:
        """Every error that is found before a run: of the program, else of headers of files, else of what it costs."""
        return self.checked(Source("text", source) if isinstance(source, str) else source, settings)[0]

    @exclusive
    def checked(self, source: Source, settings: Values | None = None, tries: bool = True) -> Checked:
        """What `check` says, and the `costs` of a program that can be run, were there enough to pay for it."""
        from jostle.check.costs import overspent
        from jostle.tools.expected_errors import with_looks
        from jostle.tools.headers import header_misfits

        costs = None
        self._look_beside(source)
        try:
            with self._others.excepted():
                tree = self._checked(source)
                need_settings(tree, settings or {})
                sure, looks, *_ = self._ahead(tree, settings, look=self._look)
                faults = header_misfits(tree, self._folders, self._own_ledger() if tries else None) or sure
                costs = None if faults or not tries else with_looks(self.costs(source, settings), looks)
                faults = faults or overspent(costs or [])
                if tries and not faults and (late := self._rehearsal(tree, settings)):
                    return late, costs or []
        except Refusal as refusal:
            faults = list(refusal.diagnostics)
        if not tries or any(fault.kind != "BudgetExceeded" for fault in faults):
            return self._mend(faults, source, settings) if tries else faults, []  # it has no costs and opens nothing
        return faults, self.costs(source, settings) if costs is None else costs

    @exclusive
    def costs(self, source: Source, settings: Values | None = None, *, charges: bool = True) -> list[Cost]:
        """Bounds what a program, and with `charges` each statement, can cost each private source; nothing is opened.
        `settings` are those of `param`; without, their defaults. Raises `Refusal` for what cannot be parsed."""
        from jostle.check.costs import costs

        self._look_beside(source)
        with deep():
            tree = self._parsed(source)
            has_wishes = any(one.is_wish for one in every_of(tree, n.Amount))
            planned = self._walked(tree, settings or {}, {}, False)[3] if has_wishes else {}
            one = partial(identity, self._bound, self._folders, lambda: self._interp.ledger)
            return costs(tree, base=built_ins(), settings=settings, planned=planned, charges=charges,
                         load_module=self._tree, identity=one)  # fmt: skip

    def execute(self, source: Source | str) -> object:
        """One entry of a REPL, or a program loaded there: keeps its names; gives a last bare expression's value."""
        source = Source("text", source) if isinstance(source, str) else source
        try:
            with self.turns.turn(program=True), self.hold_stops(), self._others.excepted(self._interp):
                return self._execute(source)
        except Refusal as refusal:
            again = type(refusal)(*refusal.diagnostics)
        raise again  # which leads to no fault before it and to no frames, which could hold private values

    @with_room
    def _execute(self, source: Source) -> object:
        self._folders[:] = [self._cwd]
        if Path(source.name).is_file():
            self._look_beside(source)
        tree, interp = parse(source, interactive=True), self._interp
        interp.kernel.begin(source)
        interp.top, interp.left, self._ran = self._scope, [], partial(measured_names, tree, self._scope, interp)
        if faults := self._check(tree, self._scope.names) or self._ahead(tree, None, self._scope.names)[0]:
            raise Refusal(*faults)
        value = None
        with deep():
            for statement in tree.body:
                value = None
                if isinstance(statement, n.Bare):
                    value = interp.eval(statement.value, self._scope)
                else:
                    interp.block([statement], self._scope)
                if isinstance(statement, n.Private):
                    self.warnings.add(source, first_budget(interp, statement, self._scope))
        return value

    @with_room
    def rehearse(
        self, source: Source, settings: Values, only: Callable[[n.Stmt], bool] | None = None
    ) -> tuple[dict[str, Any], list[Any], Interpreter]:
        """Runs a program in a simulation: its names, the calls of its ChoiceMakers, and what ran it. With `only`, the
        statements that it takes, as far as they go without the others."""
        if self._simulate is None:
            raise refuse("ValueError", "a plan is made in a simulation, where nothing private is opened")
        from jostle.tools.rehearsal import as_far_as_it_goes

        interp = self._interp
        interp.settings, interp.planned, scope = dict(settings), [], Scope(interp.base)
        interp.kernel.begin(source)
        self._look_beside(source)
        with deep():
            tree = self._checked(source)
            need_settings(tree, interp.settings)
            as_far_as_it_goes(interp, tree, scope, only)
        calls, interp.planned = interp.planned or [], None
        return dict(scope.names), calls, interp

    @exclusive
    def clauses(self, source: Source, formats: bool = False) -> Clauses:
        """Reads the clauses of one declaration; neither it nor what it is linked to is opened. Raises `Refusal`.

        With `formats` a column that one reads, as in `date("%d.%m.%Y")`, has the domain of what it is read as."""
        tree = self._parsed(source)
        protecting = [node.protecting for node in tree.body if isinstance(node, n.Private)]
        if faults := self._check(tree, {clause.linked: None for clause in protecting if clause is not None}):
            raise Refusal(*faults)
        node, forms = one_declaration(tree, formats)
        return replace(clauses(self._interp, node, self._scope), forms=forms)

    @exclusive
    def brought(self, tree: n.Program) -> list[str]:
        """The names that a program's modules bring, as far as these can be read."""
        modules = UsedModules(self._tree, (), Report())
        uses = [statement for statement in tree.body if isinstance(statement, n.Use)]
        return sorted({name for use in uses for name in modules.names(use) if not name.startswith("_")})

    @exclusive
    def names(self) -> dict[str, object]:
        return dict(self._scope.names)

    @exclusive
    def define(self, name: str, value: object) -> None:
        """Gives a name a public value, as an entry `name = …` would."""
        self._scope.names[name] = value

    def released(self) -> dict[str, Any]:
        """The values that were released so far, by name, as the language holds them."""
        return dict(self._interp.released)

    def budget(self) -> dict[str, dict[str, dict[str, str]]]:
        """For each declared name, what it may lose and has lost (`tools.result.balances`)."""
        return balances(self._interp.kernel.register) if "_interp" in vars(self) else {}

    def show(self, value: object) -> str:
        """A value as text, with its ± where it is a number, or a record of numbers, whose error is known."""
        return display_text(value)

    def _waits(self) -> None:
        """Says that a program waits for another one; of no run, and not in the list of events."""
        for listener in self._listeners:
            listener(Event(0, None, "wait", "session", None, {}))

    def _look_beside(self, source: Source) -> None:
        """Files and modules are looked for in a program's own folder first, then in the working directory."""
        self._folders[:] = [Path(source.name).resolve().parent, self._cwd]

    def _parsed(self, source: Source) -> n.Program:
        """The tree of a program; of the one parsed last, it is kept."""
        self._last = last = self._last if self._last and self._last[0] is source else (source, parse(source))
        return last[1]

    def _tree(self, path: tuple[str, ...]) -> n.Program | None:
        return self._modules.tree(path, self._folders)

    def _print(self, line: str) -> None:
        self._output.append(line)
        if self._out is not None:
            self._out(line)

    def _checked(self, source: Source) -> n.Program:
        from jostle.tools.headers import doubts, lacking, on_other_lines

        tree = self._parsed(source)
        if source != self._clean and (faults := self._check(tree)):
            raise Refusal(*on_other_lines(faults, self._ahead(tree)[0]))
        if faults := lacking(tree, self._folders, lambda tree: self._ahead(tree)[0]):
            raise Refusal(*(self._ahead(tree)[0] or faults))
        if self._simulate is None:
            self.warnings.add(source, doubts(tree, self._folders))
        return tree

    def _affordable(self, source: Source, settings: Values | None) -> list[Diagnostic]:
        """Refuses a program that asks for more than it declares; of what was declared before, the kernel knows more.
        Gives what a rehearsal fails on."""
        from jostle.check.costs import overspent

        if source == self._clean and not settings:
            return []
        faults = self._ahead(self._parsed(source), settings)[0]
        if not faults and not self._interp.kernel.register.names:
            faults = overspent(self.costs(source, settings, charges=False))
        if faults:
            raise Refusal(*faults)
        return self._rehearsal(self._parsed(source), settings)

    def _rehearsal(self, tree: n.Program, settings: Values | None) -> list[Diagnostic]:
        """What simulated rows fail on after a payment, whatever their number."""
        from jostle.tools.rehearsal import Rehearsing, is_open, sure_to_fail

        @contextmanager
        def begin(seed: int, rows: int) -> Iterator[Rehearsing]:
            with self._beside(seed, rows) as other:
                yield other._opened(Rehearsing)

        return sure_to_fail(begin, tree, settings or {}) if self._rehearses and is_open(tree) else []

    def _mend(self, faults: Sequence[Diagnostic], source: Source, settings: Values | None) -> list[Diagnostic]:
        from jostle.mistakes.corrections import mend

        other = self._beside()
        other._bound = self._bound
        return mend(faults, source, lambda text: other.checked(text, settings, tries=False)[0])

    def _ahead(
        self, tree: n.Program, settings: Values | None = None, names: Mapping[str, object] = {}, look: bool = False
    ) -> Foreseen:
        """What a run would refuse all the same and, to `look`, where it looks if data are real; `names`: of a shell."""
        if self._simulate is not None:
            return [], {}, [], {}
        ahead = self._walked(tree, settings or {}, names, look)
        self.warnings.add(tree.span.source, ahead[2])
        return ahead

    def _walked(self, tree: n.Program, settings: Values, names: Values, look: bool) -> Foreseen:
        from jostle.check.dry.interpreter import foreseen

        with self._beside(1) as other:
            return foreseen(tree, other._new, other._stream, settings, look, names)

    def _check(self, tree: n.Program, predefined: Values | None = None) -> list[Diagnostic]:
        own = bool(every_of(tree, n.External)) and Path(tree.span.source.name).resolve().is_relative_to(
            resources.folder("stdlib").resolve()
        )
        warn, names = partial(self.warnings.add, tree.span.source), list(predefined or ())
        return check(tree, builtins=BUILTINS, modules=self._modules.library(), library=own, predefined=names,
                     load_module=self._tree, warn=warn)  # fmt: skip
