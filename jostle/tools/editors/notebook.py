"""Notebooks: `%load_ext jostle`, then cells that begin with `%%jostle` are Jostle, and so is a line after `%jostle`.

One session lives as long as the kernel. Names go both ways: a cell sees numbers, texts, lists, arrays and records of
Python under their names, and `bound("frame")` a table; what it releases becomes a Python variable. A restarted kernel
has forgotten what was spent on sources that are not registered. A cell that is refused raises, so that whoever runs a
whole notebook stops there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from jostle.diagnostics import Diagnostic, Refusal
from jostle.events import Event
from jostle.language.builtins import EVERYWHERE
from jostle.privacy.kernel.exposures import Handle
from jostle.records import replace
from jostle.run.values import Record, is_model, is_vector
from jostle.source import Source
from jostle.syntax import nodes as n
from jostle.syntax import parse
from jostle.syntax.walk import every
from jostle.tools.remote import Entries, Remote, answer_text
from jostle.tools.render import render_all
from jostle.tools.repl import Repl
from jostle.tools.result import to_python
from jostle.tools.session import Session
from jostle.tools.show import budget_text, choices_text, release_text
from jostle.tools.turns import hearing
from jostle.trace.text import clean


class NotebookRefusal(Refusal):
    """A refusal that a notebook shows as the terminal does: the diagnostics alone, without lines of Python."""

    def _render_traceback_(self) -> list[str]:
        return _text_of(self).split("\n")


class NotebookStop(KeyboardInterrupt):
    """A cell that somebody stopped, or the time limit of its notebook: shown without lines of Python too."""

    def _render_traceback_(self) -> list[str]:
        return ["stopped; what was charged stays charged, and what was measured has its name in the next cell, or `_`"]


class Shown(Struct, frozen=True):
    """What a cell gave: printed texts, the value of its last expression, a report, and what ended it before its time, a
    refusal or somebody who stopped it."""

    texts: list[str]
    value: object
    report: CellReport
    refused: NotebookRefusal | None
    stopped: NotebookStop | None = None


class Notebook:
    """The session of a notebook and the number of its cell. `names`: the kernel's variables, read and written."""

    def __init__(self, names: dict[str, object]) -> None:
        self._names = names
        self._events: list[Event] = []
        self._printed: list[str] = []
        self.session = Session(listeners=[hearing(self._events)], out=self._printed.append, look=True)
        self._said: list[str] = []
        self._shell = Repl(self.session, self._said.append, lambda refusal: self._said.append(_text_of(refusal)))
        self._shell.width = 90
        self._cells = 0

    def cell(self, text: str, number: int | None = None) -> Shown:
        """Runs a cell; `number` is the notebook's own of it, and without one cells are counted."""
        self._cells = number if number is not None else self._cells + 1
        self._events.clear()
        self._printed.clear()
        source = Source(f"cell {self._cells}", text if text.endswith("\n") else text + "\n")
        value: object = None
        refused: NotebookRefusal | None = None
        stopped: NotebookStop | None = None
        try:
            self._hand_over(source)
            with self.session.hold_stops():
                value = self.session.execute(source)
                self.session.define("_", value)
            self._shell.ran(source, list(self._events))
        except Refusal as refusal:
            refused = NotebookRefusal(*map(self._of_python, refusal.diagnostics))
        except KeyboardInterrupt:
            stopped = NotebookStop()
        finally:
            released = [e.name for e in self._events if e.kind == "release"]
            values = {**self.session.names(), **self.session.released()}
            self._names.update({name: to_python(values[name]) for name in released if name in values})
        texts = [clean("\n".join(self._printed))] if self._printed else []
        if refused or stopped:
            self._said.clear()
            self._shell.say_left()
            texts += self._said
        if self.session.warnings:
            texts.append(_text_of(Refusal(*self.session.warnings)))
            self.session.warnings.clear()
        if isinstance(value, Handle):
            value = _Text(self.session.show(value))
        report = CellReport(list(self._events), self.session.budget())
        return Shown(texts, to_python(value), report, refused, stopped)

    def command(self, text: str) -> str:
        """What a command of the shell says, `:help dawa`, `:cost ENTRY` or `:budget`, or `help(dawa)`."""
        self._said.clear()
        self._shell.handle(text)
        return clean("\n".join(self._said))

    def _of_python(self, fault: Diagnostic) -> Diagnostic:
        """Of a name that Python knows and Jostle does not: what it is, and how a table is handed over."""
        name = fault.span.text if fault.span is not None else ""
        if fault.kind != "NameError" or name not in self._names:
            return fault
        help = (
            f'a table of Python is `bound("{name}")`: `private {name} = bound("{name}") described by {{…}} protecting '
        )
        help += f'rows budget epsilon 1`, or `{name} = bound("{name}")` where it is public'
        kind = type(self._names[name]).__name__
        return replace(fault, message=f"`{name}` is Python's, a {kind}, and no value of Jostle", help=help)

    def _hand_over(self, source: Source) -> None:
        """Python's values under the names that the cell uses and Jostle does not know; tables by `bound`."""
        names = self.session.names()
        for node in every(parse(source, interactive=True)):
            match node:
                case n.Call(function=n.Name(id="bound"), args=(n.String(value=name),)) if name in self._names:
                    self.session.bind(name, self._names[name])
                case n.Name(id=name) if name in self._names and name not in EVERYWHERE and name not in names:
                    value = from_python(self._names[name])
                    if value is not None:
                        self.session.define(name, value)


def from_python(value: object) -> object:
    """A Python value as Jostle has it; None for what it has no form for."""
    if isinstance(value, bool | str) or is_vector(value) or is_model(value):
        return value
    if isinstance(value, int | float):
        return float(value)
    if isinstance(value, Mapping) and all(isinstance(k, str) for k in value):
        return Record({k: from_python(v) for k, v in value.items()})
    if isinstance(value, list | tuple):
        return [from_python(v) for v in value]
    return None


class _Text:
    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def _text_of(refusal: Refusal) -> str:
    """A refusal, as the terminal shows it."""
    return render_all(refusal.diagnostics, colour=False, width=100).rstrip()


class CellReport:
    """The results of a cell: releases, pictures, choices and the budget, as text or as HTML."""

    def __init__(self, events: list[Event], budget: Mapping[str, Any]) -> None:
        self.events, self.budget = events, budget

    def __repr__(self) -> str:
        lines = [release_text(e) for e in self.events if e.kind == "release"]
        summary = choices_text(self.events)
        spent = budget_text(self.budget) if self.budget else ""
        return clean("\n".join(filter(None, [*lines, summary, spent])))

    def _repr_html_(self) -> str:
        from jostle.trace.costs import Costs, Forest
        from jostle.trace.html import style
        from jostle.trace.html.choices import choices
        from jostle.trace.html.event_tree import pictures_section, releases_section, tag, undrawn

        forest = Forest.of(self.events)
        section = choices(self.events, forest, Costs.of(forest))
        drawer = tag("details", tag("summary", "choices"), section) if section is not None else None
        spent = tag("pre", budget_text(self.budget)) if self.budget else None
        sections = releases_section(self.events), pictures_section(self.events), drawer
        return tag("div", style(".jostle"), *sections, undrawn(*sections), spent, class_="jostle")


def there(entries: Entries, cell: str, names: dict[str, object]) -> None:
    """Runs a cell by a server; what it releases goes into `names`, and is printed. Raises what is refused."""
    result = entries.enter(cell)
    names.update(result.released)
    print(clean(answer_text(result)), end="")
    if not result.ok:
        raise NotebookRefusal(*result.diagnostics)


def load(shell: Any) -> None:
    """Registers `%%jostle` and `%jostle` with an IPython shell."""
    from IPython.core.magic import no_var_expand
    from IPython.display import display

    notebook, servers = Notebook(shell.user_ns), dict[str, Entries]()

    @no_var_expand  # which would take the braces of a query for Python's
    def jostle(line: str, cell: str | None = None) -> Any:
        """Runs Jostle, in one session for the notebook.

        A cell that begins with `%%jostle` is a piece of a program. It knows numbers, texts, lists, arrays and records
        of Python by their names, and a table as `bound("frame")`; what it releases becomes a variable of Python:

            %%jostle
            private people = bound("frame") described by {age: 0..99} protecting rows budget epsilon 1
            release n = {{ select count(*) from people with epsilon 0.1 }}

        A line is one entry, and gives its value: `mean = %jostle {{ select avg(age) from people with epsilon 0.1 }}`.
        Or it is a command of the shell: `%jostle :help dawa`, `%jostle :cost {{ … }}`, `%jostle :budget`.
        What is refused raises. `%%jostle --server` lets the server of the last login run a cell, `--server URL` that.
        """
        if cell is not None and line.startswith("--server"):
            url = line.removeprefix("--server").strip()
            return there(servers.setdefault(url, Entries(Remote(url))), cell, shell.user_ns)
        if cell is None and line.lstrip().startswith((":", "help")):
            print(notebook.command(line))
            return None
        number = len(shell.history_manager.input_hist_parsed) - 1  # the N of `In[N]`, which is this cell
        output = notebook.cell(line if cell is None else cell, number)
        for text in output.texts:
            print(text)
        if cell is not None and output.value is not None:
            display(output.value)  # type: ignore[no-untyped-call]
        if output.report.events or (cell is not None and output.report.budget):
            display(output.report)  # type: ignore[no-untyped-call]
        if output.refused is not None:
            raise output.refused
        if output.stopped is not None:
            raise output.stopped
        return output.value if cell is None else None

    shell.register_magic_function(jostle, magic_kind="line_cell", magic_name="jostle")
    shell.user_ns["_jostle"] = notebook.session
