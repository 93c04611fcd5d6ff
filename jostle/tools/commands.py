"""What each command does, once its words are understood: `run`, `check`, `repl`, `trace`, `data …`, `explain`.

Each takes the parsed words and returns an exit status; faults of a program are rendered here or by the caller.
Results go to standard output, diagnostics and progress to standard error.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.diagnostics import Diagnostic, did_you_mean, refuse
from jostle.tools.files import read_program
from jostle.tools.render import clean, render_all, wants_colour, width_of

if TYPE_CHECKING:
    from jostle.events import Event
    from jostle.tools.session import Result

_WHOLE = 2  # choices that are shown as whole trees after a run
_SHOWN = 5  # calls of one choice whose trace is printed after a run


def run(asked: Namespace) -> int:
    """Runs a program, with its results as text or as one JSON object."""
    import warnings

    from jostle.tools.progress import progress_on
    from jostle.tools.session import Session
    from jostle.trace.jsonl import Writer

    # A warning of a numerical library may quote or depend on private values.
    warnings.simplefilter("ignore")
    as_json = asked.format == "json"
    simulate = (1 if asked.seed is None else asked.seed) if asked.simulate else None
    source = read_program(asked.file)
    writer: Writer | None = None

    def write(event: Event) -> None:
        if writer is not None:
            writer(event)

    say = _sayer(simulate)
    bar = progress_on(sys.stderr)
    session = Session(
        listeners=[write],
        progress=bar,
        out=None if as_json else say,
        simulate=simulate,
        ledger=asked.ledger,
    )
    saving = None
    try:
        if asked.save:
            from jostle.tools.saving import Saving

            saving = Saving(asked.save, session.releases(source), overwrite=asked.overwrite)
        if simulate is not None and not as_json:
            say("nothing private is opened; rows are made up from the described domains")
        for name, path in asked.bind:
            session.bind(name, Path(path))
        if asked.trace is not None:  # last: what is refused before the run leaves an earlier trace as it was
            writer = Writer(Path(asked.trace), **({} if simulate is None else {"simulated": simulate}))
        result = session.attempt(source, dict(asked.set))
        told, unsaved = (
            ([], []) if saving is None else saving.save(result.values, ok=result.ok, simulated=asked.simulate)
        )
    finally:
        if bar is not None:
            bar.close()
        if writer is not None:
            writer.close()
        if saving is not None:
            saving.close()
    if as_json:
        print(_as_json(result, simulate, unsaved))
    else:
        _as_text(result, say)
        for line in told:
            say(line)
        tell(unsaved)
    _pictures(result, asked.pictures, say if not as_json else None)
    return 0 if result.ok and not unsaved else 1


def _pictures(result: Result, folder: str | None, say: Callable[[str], None] | None) -> None:
    """Draws the pictures of a run into a folder; where none was named, says that there are some."""
    from jostle.trace.pictures import file_names, pictures

    drawn = pictures(result.events)
    if not drawn:
        return
    if folder is None:
        if say is not None:
            say(f"\npictures: {', '.join(p.title for p in drawn)}\n  `--pictures FOLDER` draws them")
        return
    for picture, name in zip(drawn, file_names(drawn), strict=True):
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


def _as_json(result: Result, simulate: int | None, unsaved: Sequence[Diagnostic] = ()) -> str:
    import json

    from jostle.trace.jsonl import plain

    wrong = [*result.diagnostics, *unsaved]
    said: dict[str, Any] = {"ok": result.ok and not unsaved}
    if wrong:
        said["error"] = wrong[0].as_json()
        if len(wrong) > 1:
            said["errors"] = [d.as_json() for d in wrong]
    if simulate is not None:
        said["simulated"] = simulate
    said |= {"released": result.released_json(), "budget": result.budget, "output": result.output}
    return json.dumps(plain(said), ensure_ascii=False, allow_nan=False)


def _as_text(result: Result, say: Callable[[str], None]) -> None:
    from jostle.tools.show import released

    width = width_of(sys.stdout)
    values = result.released_json()
    if values:
        say("\nreleased")
        for name, value in values.items():
            say(_indented(released(name, value, width - 2)))
    if not result.ok:
        tell(result.diagnostics)
    if result.budget:
        say("\nbudget")
        say(_indented(budget_text(result.budget)))
    made = choices_text(result.events)
    if made:
        say("\nchoices")
        say(_indented(made))


def tell(diagnostics: Sequence[Diagnostic]) -> None:
    """Diagnostics on standard error, after what went to standard output before them."""
    if not diagnostics:
        return
    sys.stdout.flush()
    err = sys.stderr
    err.write(render_all(diagnostics, colour=wants_colour(err), width=width_of(err)))
    err.flush()


def budget_text(budget: Mapping[str, Mapping[str, Mapping[str, str]]]) -> str:
    """One line a source: a bar, what was spent, what is left."""
    from jostle.trace.budget import line

    indent = max((len(name) for name in budget), default=0)
    return "\n".join(line(name, amounts, indent) for name, amounts in budget.items())


def choices_text(events: Sequence[Event]) -> str:
    """The choices of a run: one or two as whole trees, more in a few lines each; of one made often, the first calls."""
    from jostle.trace import grown
    from jostle.trace.costs import Costs
    from jostle.trace.forest import Forest
    from jostle.trace.tree import brief, choices

    calls: dict[str, int] = {}
    lines: list[str] = []
    forest = Forest.of(events)
    costs = Costs.of(forest)
    made = forest.outermost("choice")
    inside = grown.text(events)
    if inside:
        return inside
    if 0 < len(made) <= _WHOLE:
        return choices(events).rstrip()
    for event in made:
        calls[event.name] = calls.get(event.name, 0) + 1
        if calls[event.name] <= _SHOWN:
            lines += brief(event, costs.spent[event.id])
    lines += [f"… {name} was called {n - _SHOWN} times more" for name, n in calls.items() if n > _SHOWN]
    return "\n".join(lines)


def _indented(text: str) -> str:
    return "\n".join("  " + line for line in text.split("\n"))


def check(asked: Namespace) -> int:
    """Every error of a program at once, and what it can cost where that is known."""
    from jostle.tools.session import Session

    source = read_program(asked.file)
    session = Session()
    found = session.check(source)
    costs = session.costs(source) if not found else []
    if asked.format == "json":
        import json

        said: dict[str, Any] = {"ok": not found, "errors": [d.as_json() for d in found]}
        if found:
            said["error"] = found[0].as_json()
        else:
            said["cost"] = [cost.as_json() for cost in costs]
        print(json.dumps(said, ensure_ascii=False))
    elif found:
        tell(found)
    else:
        print(f"{clean(asked.file)}: no errors")
        if costs:
            from jostle.check.cost import table

            given = ", its parameters as they are written" if "param " in source.text else ""
            print(f"cost of a run that comes to its end{given}\n{clean(table(costs))}")
    return 1 if found else 0


def repl(asked: Namespace) -> int:
    """An interactive session."""
    from jostle.tools.repl import start

    return start(None if asked.file is None else read_program(asked.file), asked.ledger)


def trace(asked: Namespace) -> int:
    """What a run did, from its event stream."""
    from jostle.trace import budget, jsonl, summary, tree

    events = jsonl.read(Path(asked.file))
    if asked.html is not None:
        from jostle.trace.html import page

        return _written(page(events), Path(asked.html))
    if asked.otlp is not None:
        from jostle.trace.otlp import otlp

        return _written(otlp(events), Path(asked.otlp))
    if asked.diff is not None:
        from jostle.trace.difference import difference

        sys.stdout.write(clean(difference(events, jsonl.read(Path(asked.diff)))))
        return 0
    if asked.budget:
        text = budget.spending(events)
    elif asked.choice is not None:
        made = {e.name for e in events if e.kind == "choice"}
        if asked.choice not in made:
            known = did_you_mean(asked.choice, made) or (f"there are: {', '.join(sorted(made))}" if made else "")
            raise refuse("NameError", f"no choice named `{asked.choice}` was made in this run", help=known)
        text = tree.choices(events, asked.choice)
    else:
        text = summary.page(events)
    sys.stdout.write(clean(text))
    return 0


def _written(text: str, path: Path) -> int:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as fault:
        reason = (fault.strerror or "the system refused").lower()
        raise refuse("DataError", f"`{path}` cannot be written: {reason}") from fault
    print(clean(f"{path}: {len(text) // 1000:,} kB"))
    return 0


def explain(asked: Namespace) -> int:
    """The page of a kind of error, or the list of kinds."""
    from jostle.diagnostics import KINDS
    from jostle.tools.explain import index, page

    if asked.kind is None:
        sys.stdout.write(index())
        return 0
    kinds = {kind.lower(): kind for kind in KINDS}
    kind = kinds.get(asked.kind.lower())
    if kind is None:
        hint = did_you_mean(asked.kind, KINDS)
        sys.stderr.write(clean(f"jostle: `{asked.kind}` is no kind of error{'; ' + hint if hint else ''}\n"))
        sys.stderr.write("`jostle explain` lists them all\n")
        return 2
    sys.stdout.write(page(kind))
    return 0


def data(asked: Namespace) -> int:
    """For owners: how a file fits a schema (exact, and so private), and what stands in the ledger."""
    if asked.verb == "check":
        from jostle.tools.datacheck import report

        sys.stdout.write(report(Path(asked.file), asked.schema))
        return 0
    from jostle.tools.data import VERBS

    sys.stdout.write(VERBS[asked.verb](asked))
    return 0


def fmt(asked: Namespace) -> int:
    """Programs in the one way to write them."""
    from jostle.tools import fmt

    return fmt.fmt(asked)


def plan(asked: Namespace) -> int:
    """What to expect of a program at any epsilon, or what a wanted error costs."""
    from jostle.tools import plan

    return plan.command(asked)


def evaluate(asked: Namespace) -> int:
    """How good the choices of a program are on data sets that they were not trained on."""
    from jostle.tools import evaluating

    return evaluating.command(asked)


def lsp(_: Namespace) -> int:
    """Serves an editor."""
    from jostle.tools.editors.server import serve

    return serve()


def textmate(_: Namespace) -> int:
    """A grammar for editors."""
    from jostle.tools.editors.textmate import textmate

    sys.stdout.write(textmate())
    return 0


COMMANDS: dict[str, Callable[[Namespace], int]] = {
    "run": run,
    "plan": plan,
    "evaluate": evaluate,
    "check": check,
    "repl": repl,
    "trace": trace,
    "fmt": fmt,
    "lsp": lsp,
    "textmate": textmate,
    "data": data,
    "explain": explain,
}
