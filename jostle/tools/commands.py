"""The commands `run`, `check`, `repl`, `trace`, `data …`, `explain` and their kin, after the command line is parsed.

Each takes the parsed words and returns an exit status; faults of a program are rendered here or by the caller.
Results go to standard output, diagnostics and progress to standard error.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from jostle.accounting.amounts import as_text
from jostle.diagnostics import Diagnostic, Refusal, did_you_mean, refuse, unwritable
from jostle.events import Event
from jostle.source import Source
from jostle.syntax import nodes as n
from jostle.syntax import parse
from jostle.tools.arguments import read_program
from jostle.tools.outlet import keep, stops
from jostle.tools.render import progress_on, tell, width_of
from jostle.tools.turns import beside
from jostle.trace.text import clean, folded

if TYPE_CHECKING:
    from jostle.check.costs import Cost
    from jostle.run.values import Grouped
    from jostle.tools.expected_errors import DryRun
    from jostle.tools.session import Result, Session


def run(options: Namespace) -> int:
    """Runs a program here or, with `--server`, where the data are, with its results as text or as one JSON object.

    What was released is printed, or kept, also where the run was stopped or its output cannot be written. Of a run
    that failed, what was measured and not released is printed and kept.
    """
    import warnings

    from jostle.tools.session import Session
    from jostle.trace.jsonl import Writer

    if options.server is not None:
        return _run_there(options)
    if options.dry:
        session = Session(ledger=options.ledger, allow=options.allow, look=not options.no_look)
        return _foreseen(options, session, options.bind, dict(options.set))
    if options.explain:
        return _explained(options, Session(ledger=options.ledger, allow=options.allow))

    _need_to_draw(options.pictures)
    # A warning of a numerical library may quote or depend on private values.
    warnings.simplefilter("ignore")
    as_json = options.format == "json"
    simulate = (1 if options.seed is None else options.seed) if options.simulate else None
    source, say = _source(options), _sayer(simulate)
    writers: list[Writer] = []

    def write(event: Event) -> None:
        for writer in writers:
            writer(event)

    notes: list[str] = []
    unsaved: list[Diagnostic] = []
    with ExitStack() as outer, ExitStack() as stack:
        session = Session(
            listeners=[write], progress=stack.enter_context(progress_on(sys.stderr)),
            out=None if as_json else lambda line: _print(say, line),
            simulate=simulate, ledger=options.ledger, memory=options.memory, engine=options.engine, allow=options.allow,
            look=not options.no_look, rehearse=not options.no_rehearsal,
        )  # fmt: skip
        export = None
        if options.save:
            from jostle.tools.export import Export

            export = Export(options.save, session.releases(source), overwrite=options.overwrite)
            stack.callback(export.close)
        if simulate is not None and not as_json:
            say("nothing private is opened; rows are drawn from the described domains")
        _bind(session, options.file, options.bind)
        if options.trace is not None:  # last: what is refused before the run leaves an earlier trace as it was
            writers.append(Writer(Path(options.trace), **({} if simulate is None else {"simulated": simulate})))
            stack.callback(writers[0].close)
        stopped: KeyboardInterrupt | None = None
        outer.enter_context(stops())
        outer.enter_context(session.hold_stops())
        try:
            result = session.attempt(source, dict(options.set))
        except KeyboardInterrupt as stop:
            result, stopped = session.so_far(), stop
        if export is not None:
            notes, unsaved = export.save(result.values, ok=result.ok, simulated=options.simulate)
        stack.close()
        document = partial(result.document_parts, simulate, unsaved)
        _report(options, result, document, notes, [*unsaved, *(session.warnings if result.ok else ())], say)
    if stopped is not None:
        raise stopped
    return 0 if result.ok and not unsaved else 1


def ask(options: Namespace) -> int:
    """One query of a file, without a program: runs the shortest one as `jostle run` would, with a budget of its own."""
    from jostle.tools.arguments import parse as words_of
    from jostle.tools.draft.init import query_program

    as_run = words_of(["run", "-", "--format", options.format, *["--simulate"] * options.simulate])
    if isinstance(as_run, int):
        return as_run
    as_run.file, as_run.source = "-c", Source("-c", query_program(options))
    return run(as_run)


def _run_there(options: Namespace) -> int:
    """Runs a program by a server; prints what it answered as a run here would."""
    from jostle.tools.remote import Remote
    from jostle.tools.show import document_lines

    result = Remote(options.server, seconds=options.seconds).attempt(_source(options), dict(options.set))
    if options.format == "json":
        print(result.document(), flush=True)
        return 0 if result.ok else 1
    for line in document_lines(result.answer, width_of(sys.stdout)):
        print(clean(line))
    tell(result.diagnostics)
    return 0 if result.ok else 1


def _source(options: Namespace) -> Source:
    """The program: a file's text, or that which a command made."""
    source: Source | None = getattr(options, "source", None)
    return read_program(options.file) if source is None else source


def _bind(session: Session, file: str, bound: Sequence[tuple[str, str]]) -> None:
    for name, path in bound:
        session.bind(name, beside(file, path))


def _report(
    options: Namespace, result: Result, document: Callable[[], Iterator[str]], notes: Sequence[str],
    warnings: Sequence[Diagnostic], say: Callable[[str], None],
) -> None:  # fmt: skip
    """Prints what a run gave, and draws its pictures; what cannot be printed, or was not released, is kept."""
    try:
        if options.format == "json":
            sys.stdout.writelines(document())
            print(flush=True)
        else:
            _as_text(result, say)
            for line in notes:
                say(line)
            tell(warnings)
        sys.stdout.flush()
    except (OSError, KeyboardInterrupt):
        if not options.simulate and (result.values or result.unreleased or result.output):
            keep(options.file, document)
        raise
    if not options.simulate and result.unreleased:
        keep(options.file, document)
    _pictures(result, options.pictures, say if options.format == "text" else None)


def _print(say: Callable[[str], None], line: str) -> None:
    """A line of the program; where it cannot be written, the program ends there, before it spends more."""
    try:
        say(line)
    except OSError as fault:
        raise unwritable("what the program prints", fault) from fault


def _need_to_draw(folder: str | None) -> None:
    """Refuses, before anything is spent, to draw where nothing can be drawn."""
    from jostle.trace.pictures import need_to_draw

    if folder is not None:
        need_to_draw()


def _pictures(result: Result, folder: str | None, say: Callable[[str], None] | None) -> None:
    """Draws the pictures of a run into a folder; where none was named, says that there are some."""
    from jostle.trace.pictures import file_names, pictures

    images = pictures(result.events)
    if not images:
        return
    if folder is None:
        if say is not None:
            say(f"\npictures: {', '.join(p.title for p in images)}\n  `--pictures FOLDER` draws them")
        return
    for picture, name in zip(images, file_names(images), strict=True):
        path = Path(folder) / name
        picture.save(path)
        if say is not None:
            say(f"picture  {path}")


def _sayer(simulate: int | None) -> Callable[[str], None]:
    """Prints lines at once; in a simulation every line says that it is one."""
    lead = "" if simulate is None else f"[simulated, seed {simulate}] "

    def say(text: str) -> None:
        for line in text.split("\n"):
            print((lead + clean(line)).rstrip(), flush=True)

    return say


def _as_text(result: Result, say: Callable[[str], None]) -> None:
    from jostle.run.values import plain
    from jostle.tools.show import ROWS, Head, answer_lines, budget_text, choices_text

    def head(table: Grouped) -> Head:
        return Head(plain([*islice(table, ROWS)]), len(table))

    width = width_of(sys.stdout)
    titled = {"released": result.released_json(head), "measured, not released": result.measured_json(head)}
    for line in answer_lines(titled, result.margins(), width, result.face):
        say(line)
    if not result.ok:
        tell(result.diagnostics)
    if result.budget:
        say("\nbudget")
        say(_indented(budget_text(result.budget)))
    choices = choices_text(result.events)
    if choices:
        say("\nchoices")
        say(_indented(folded(choices, width - 2) if sys.stdout.isatty() else choices))


def _indented(text: str) -> str:
    return "\n".join("  " + line for line in text.split("\n"))


def check(options: Namespace) -> int:
    """Every error of a program at once, and what it can cost where that is known."""
    from jostle.tools.session import Session

    return _foreseen(options, Session(allow=options.allow), (), None)


def _explained(options: Namespace, session: Session) -> int:
    """The plan, the price and the form of the SQL of each statement, of a program that the check passes."""
    import json

    from jostle.tools.statements import explained

    source, settings = read_program(options.file), dict(options.set)
    _bind(session, options.file, options.bind)
    faults = session.check(source, settings)
    explanation = None if faults else explained(source, settings, options.engine, options.ledger)
    if options.format == "json":
        document: dict[str, object] = {"ok": not faults, "errors": [d.as_json() for d in faults]}
        print(json.dumps(document | ({} if explanation is None else explanation.as_json()), ensure_ascii=False))
    elif explanation is not None:
        print(clean(str(explanation)))
    else:
        tell(faults)
    return 1 if faults else 0


def _foreseen(
    options: Namespace, session: Session, bound: Sequence[tuple[str, str]], settings: dict[str, object] | None
) -> int:
    """What is known of a program before it runs: its errors, else what it can cost; with settings, line by line."""
    from jostle.check.costs import table

    source = read_program(options.file)
    _bind(session, options.file, bound)
    faults, costs = session.checked(source, settings)
    lines = session.foreseen(source, costs, settings) if settings is not None and not faults else None
    if options.format == "json":
        import json

        print(json.dumps(_foreseen_as_json(faults, costs, lines, session.warnings), ensure_ascii=False))
        return 1 if faults else 0
    tell(faults or session.warnings)
    if lines is not None:
        print(f"nothing is run and nothing private is opened\n\n{clean(str(lines))}\n")
    elif not faults:
        print(f"{clean(options.file)}: no errors")
    if costs:
        condition = ", its parameters as they are written" if settings is None and "param " in source.text else ""
        print(f"cost of a run that comes to its end{condition}\n{clean(table(costs))}")
        print(clean("".join(_left(source, costs, getattr(options, "ledger", None)))), end="")
    return 1 if faults else 0


def _left(source: Source, costs: Sequence[Cost], place: str | None) -> Iterator[str]:
    """What is left of the registered datasets of a program, where there is a ledger that knows them."""
    from jostle.privacy.ledger.file import default_place
    from jostle.privacy.ledger.ledger import Ledger
    from jostle.syntax.walk import every_of

    where = str(place or default_place())
    asked = {cost.name: cost.bound for cost in costs if not cost.unit}
    for node in every_of(parse(source), n.Private) if asked and ("://" in where or Path(where).exists()) else ():
        match node.source:
            case n.Call(function=n.Name(id="dataset"), args=(n.String(value=name),)) if node.name in asked:
                with suppress(Refusal):
                    dataset = Ledger(where).dataset(name)
                    left = dataset.terms.measure.left_exactly(dataset.state.spent, (0,) * len(dataset.state.spent))[0]
                    tail = ": what was not answered before is refused where that ends; ask its owner for more"
                    tail = f" on all of it, and more on parts by {dataset.terms.each}" if dataset.terms.each else tail
                    tail = tail if asked[node.name] > left else ""
                    whole = (
                        f"{node.name}: {dataset.terms.measure.unit} {as_text(left)} of {dataset.terms.measure.limit}"
                    )
                    yield f"  {whole} is left{tail}\n"


def _foreseen_as_json(
    faults: Sequence[Diagnostic], costs: Sequence[Cost], lines: DryRun | None, warnings: Sequence[Diagnostic]
) -> dict[str, object]:
    document: dict[str, object] = {"ok": not faults, "errors": [d.as_json() for d in faults]}
    if faults:
        document["error"] = faults[0].as_json()
    if costs or not faults:
        document["cost"] = [cost.as_json() for cost in costs]
    if lines is not None:
        document["lines"] = lines.as_json()
    return document | {"warnings": [d.as_json() for d in warnings]}


def repl(options: Namespace) -> int:
    """An interactive session, on this machine or at a server."""
    from jostle.tools.remote import prompt_there
    from jostle.tools.repl import start

    if options.server is not None:
        return prompt_there(options.server, options.seconds)
    first = None if options.file is None else read_program(options.file)
    return start(first, options.ledger, options.memory, options.engine, options.allow, not options.no_look)


def trace(options: Namespace) -> int:
    from jostle.trace import budget, jsonl, tree

    events = jsonl.read(Path(options.file))
    other = None if options.diff is None else jsonl.read(Path(options.diff))
    if options.html is not None:
        from jostle.trace.html import difference_page, page

        return _write_text(page(events) if other is None else difference_page(events, other), Path(options.html))
    if options.otlp is not None:
        from jostle.trace.jsonl import otlp

        return _write_text(otlp(events), Path(options.otlp))
    if other is not None:
        from jostle.trace.difference import difference

        sys.stdout.write(clean(difference(events, other)))
        return 0
    if options.budget:
        text = budget.spending(events)
    elif options.choice is not None:
        names = {e.name for e in events if e.kind == "choice"}
        if options.choice not in names:
            hint = did_you_mean(options.choice, names) or (f"there are: {', '.join(sorted(names))}" if names else "")
            raise refuse("NameError", f"no choice named `{options.choice}` was made in this run", help=hint)
        text = tree.choices(events, options.choice)
    else:
        text = budget.page(events)
    sys.stdout.write(clean(text))
    return 0


def _write_text(text: str, path: Path) -> int:
    from jostle.trace.jsonl import write_own

    write_own(path, text)
    print(clean(f"{path}: {len(text) // 1000:,} kB"))
    return 0


def explain(options: Namespace) -> int:
    """The page of a kind of error or of a warning, or the list of both."""
    from jostle.documentation import ALL, explanation

    if (text := explanation(options.kind)) is not None:
        sys.stdout.write(text)
        return 0
    hint = did_you_mean(options.kind, ALL)
    message = f"`{options.kind}` is no kind of error and no warning{'; ' + hint if hint else ''}"
    sys.stderr.write(f"jostle: {clean(message)}\n`jostle explain` lists them all\n")
    return 2


def data(options: Namespace) -> int:
    """For owners: how a file fits a schema (exact, and so private), a draft of one, and what stands in the ledger."""
    if options.verb == "check":
        from jostle.tools.datacheck import report
        from jostle.tools.draft.init import reading_of

        sys.stdout.write(report(options.file, options.schema, reading_of(options), options.engine))
        return 0
    if options.verb == "draft":
        from jostle.tools.draft.init import draft

        sys.stdout.write(draft(options))
        return 0
    from jostle.tools.data import VERBS

    sys.stdout.write(VERBS[options.verb](options))
    return 0


def command_of(name: str) -> Callable[[Namespace], int]:
    """The function of a command; those of `_MODULES` have modules of their own, and `serve` and `find` rooms."""
    if name == "serve":
        from jostle.serve.command import command as serve

        return serve
    if name == "find":
        from jostle.documentation import command as find

        return find
    if name in _MODULES:
        module, _, function = _MODULES[name].partition(" ")
        command: Callable[[Namespace], int] = getattr(import_module(f"jostle.tools.{module}"), function or "command")
        return command
    return _COMMANDS[name]


_MODULES = {
    "again": "show again_command", "plan": "plan", "evaluate": "evaluation", "improve": "evaluation improve_command",
    "fmt": "export format_command", "init": "draft.init",
    "login": "remote", "completion": "arguments completion", "lsp": "editors.server", "textmate": "editors.lexer",
}  # fmt: skip


_COMMANDS: dict[str, Callable[[Namespace], int]] = {
    "run": run, "check": check, "repl": repl, "trace": trace, "data": data, "explain": explain,
    "ask": ask,
}  # fmt: skip
