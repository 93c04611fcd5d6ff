"""The interactive session: entries are run one by one in one `Session`, and what goes wrong does not end it.

How entries are read from a terminal or a pipe stands in `terminal`. What an entry would spend is predicted without
running it: the entries that ran and the new one are taken as one program.
"""

from __future__ import annotations

import math
import re
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from jostle.accounting.amounts import as_text
from jostle.diagnostics import Refusal, did_you_mean
from jostle.events import Event
from jostle.language.builtins import EVERYWHERE
from jostle.records import replace
from jostle.source import Source
from jostle.syntax import nodes as n
from jostle.syntax import parse
from jostle.syntax.walk import every_of
from jostle.tools import show as views
from jostle.tools.completion import COMMANDS, Vocabulary, vocabulary_of
from jostle.tools.expected_errors import prices
from jostle.tools.outlet import Others, OutputFault, keep
from jostle.tools.render import progress_on, tell, width_of
from jostle.trace.text import UNITS, amount, clean, exact
from jostle.version import __version__

if TYPE_CHECKING:
    from jostle.check.costs import Charge
    from jostle.tools.session import Session


class CostPreview:
    """The entries of a session that ran, and the price of one more."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._ran: list[str] = []

    def ran(self, text: str) -> None:
        statement = _statement(text)
        if statement is not None:
            self._ran.append(statement)

    def price(self, text: str) -> list[Charge]:
        """Returns what an entry can cost each source; empty where it costs nothing, or is no program."""
        statement = _statement(text)
        if statement is None:
            return []
        ran = "".join(f"{entry}\n" for entry in self._ran)
        first = ran.count("\n") + 1
        costs = self._session.costs(Source("entries", f"{ran}{statement}\n"))
        prices = [[charge for charge in cost.charges if charge.span.end_line >= first] for cost in costs]
        return [_sum(charges) for charges in prices if charges]

    def steep(self, text: str) -> list[Charge]:
        """The prices of an entry that could take more than half of what is left of a source."""
        try:
            prices = self.price(text)
        except Refusal:
            return []
        budget = self._session.budget()
        out = []
        for price in prices:
            amounts = budget.get(price.source, {}).get(price.unit)
            if amounts is None:
                continue
            left = Decimal(amounts["total"]) - Decimal(amounts["spent"])
            if math.isinf(price.most) or Decimal(as_text(int(price.most))) * 2 > left > 0:
                out.append(price)
        return out


def _sum(charges: Sequence[Charge]) -> Charge:
    """The charges of several statements to one source as one."""
    most, exact = sum(charge.most for charge in charges), all(charge.exact for charge in charges)
    return replace(charges[-1], most=most, exact=exact)


def _statement(text: str) -> str | None:
    """An entry as the text of a program; None where it is none. The name of a bare expression is `_`."""
    try:
        tree = parse(Source("entry", text + "\n"), interactive=True)
    except Refusal:
        return None
    lines = text.split("\n")
    for span in [node.span for node in every_of(tree, n.Bare) if not isinstance(node.value, n.Call)][::-1]:
        for line, column, sign in ((span.end_line, span.end_column, ")"), (span.line, span.column, "_ = (")):
            before, after = lines[line - 1][: column - 1], lines[line - 1][column - 1 :]
            lines[line - 1] = before + sign + after
    return "\n".join(lines)


HELP = """\
An entry is a statement or an expression; an expression's value is shown. An entry goes on over several lines while a
bracket is open or its last line is indented; an empty line ends it.

  :help [NAME]   this page; what a name or a word of the language is, with its price and an example (also NAME?)
  :find WORDS    functions and words for a question, such as `compare two groups`
  :budget        what each private source has spent and has left
  :trace [NAME]  the choices made so far, each as a tree
  :names         what has been defined
  :type NAME     what a name stands for, and what is publicly known of it; for the language's, as :help
  :cost ENTRY    what an entry would spend, without running it
  :why NAME      the choice behind a value, or where it comes from
  :explain KIND  the page of a kind of error; of the last one, without a kind
  :load FILE     runs a program here, as if it were typed
  :time          shows how long each entry takes, from now on (again: no more)
  :quit          ends the session, as exit and Ctrl-D do; Ctrl-C abandons the entry

The value of the last expression is `_`.
"""
# `help`, `help(dawa)`, `dawa?`, `?dawa`, as in other shells.
_ASKED = re.compile(r"(?:help\s*(?:\(\s*([\w.]*)\s*\))?|(\w+)\s*\?{1,2}|\?{1,2}\s*(\w+))$")
_GONE = re.compile(r"(exit|quit)\s*(\(\s*\))?$")

Budget = Mapping[str, Mapping[str, Mapping[str, str]]]


class Repl:
    """One session, the events it left, and `handle`, which takes one entry and says whether to go on.

    `ask` puts a question to a person, where there is one: before more than half of what is left is spent.
    """

    def __init__(
        self, session: Session, say: Callable[[str], None], tell: Callable[[Refusal], None],
        ask: Callable[[str], bool] | None = None,
    ) -> None:  # fmt: skip

        self._session, self._say, self._tell, self._ask = session, say, tell, ask
        self._cost_preview = CostPreview(session)
        self._entries = 0
        self._timed = False
        self._last: str | None = None  # the kind of the last refusal
        self._provenance: dict[str, views.Provenance] = {}
        self.events: list[Event] = []
        self.failed = False  # whether an entry or a command was refused
        self.width: int | None = None  # of what is said, where it is not standard output that says it

    def prompt(self) -> str:
        """`adult ε 0.60/1.00 › `: what is left of each source's budget; `jostle › ` where there is none."""
        return prompt(self._session.budget())

    def vocabulary(self) -> Vocabulary:
        """The names, columns and fields that completion offers."""

        return vocabulary_of(self._session.names(), EVERYWHERE)

    def handle(self, entry: str) -> bool:
        """Runs an entry or a command; False after `:quit`."""
        text = entry.strip()
        if not text:
            return True
        if text.startswith(":"):
            return self._command(text[1:])
        names = self._session.names()
        if (word := _GONE.match(text)) and word[1] not in names:
            return False
        if (match := _ASKED.match(text)) and "help" not in names:
            return self._command(f"help {match[1] or match[2] or match[3] or ''}")
        if self._ask is not None and (steep := self._cost_preview.steep(entry.rstrip())):
            words = "; ".join(prices(steep))
            if not self._ask(f"this can spend more than half of what is left ({words}). Go on?"):
                self._say("not run; nothing was spent")
                return True
        self._entries += 1
        self.run(Source(f"entry {self._entries}", entry.rstrip() + "\n"))
        return True

    def run(self, source: Source) -> None:
        """Runs a text and shows the value of its last expression; a refusal is shown, and the session goes on."""
        began, first = time.monotonic(), len(self.events)
        try:
            # A fault of Jostle costs a person no names and no trace of a session: it is reported, and that goes on.
            with Others().excepted(), self._session.hold_stops():
                value = self._session.execute(source)
                self._cost_preview.ran(source.text.rstrip())
                if value is not None:
                    self._say(self._session.show(value))
                    self._session.define("_", value)
        except Refusal as refusal:
            self._last = refusal.diagnostics[0].kind
            self._refused(refusal)
            self.say_left()
        except KeyboardInterrupt:
            self._say("stopped; what was charged stays charged")
            self.say_left()
        if self._session.warnings:
            self._tell(Refusal(*self._session.warnings))
            self._session.warnings.clear()
        self._report(source, self.events[first:])
        if self._timed:
            self._say(f"{time.monotonic() - began:.2f} s")

    def say_left(self) -> None:
        """Says what functions had measured that did not come to their ends; what has a name keeps it."""
        for name, value in self._session.so_far().unreleased.items():
            if "." in name:
                self._say(f"{name} = {self._session.show(value)}")

    def ran(self, source: Source, events: Sequence[Event]) -> None:
        """Takes note of a text that ran elsewhere to its end, and of what happened in it: for `:cost` and `:why`."""
        self._cost_preview.ran(source.text.rstrip())
        self._report(source, events)

    def _report(self, source: Source, events: Sequence[Event]) -> None:
        self._provenance.update(dict.fromkeys(views.assigned_names(source), views.Provenance(source, events)))

    def _refused(self, refusal: Refusal) -> None:
        self.failed = True
        self._tell(refusal)

    def _command(self, words: str) -> bool:
        name, _, rest = words.strip().partition(" ")
        rest = rest.strip()
        if name in ("quit", "q", "exit"):
            return False
        if name in ("help", "h", ""):
            if rest:
                self._about("type", rest)
            else:
                self._say(HELP.rstrip())
        elif name == "find":
            from jostle.documentation import found_text

            self._say(found_text(rest.split()).rstrip() if rest else ":find takes the words of a question")
        elif name == "budget":
            self._budget()
        elif name == "trace":
            from jostle.trace.tree import choices

            self._say(choices(self.events, rest or None).rstrip())
        elif name == "names":
            names = self._session.names()  # without what the modules of the library brought
            own = sorted(name for name in names if name != "_" and not views.is_of_library(name, names))
            self._say("\n".join(own) or "nothing has been defined")
        elif name in ("type", "cost", "why"):
            self._about(name, rest)
        elif name == "explain":
            self._explain(rest or self._last)
        elif name == "load":
            self._load(rest)
        elif name == "time":
            self._timed = not self._timed
            self._say("each entry's time is shown" if self._timed else "times are no longer shown")
        else:
            self.failed = True
            hint = did_you_mean(name, COMMANDS)
            self._say(f"there is no command :{name}" + (f"; {hint}" if hint else "; :help lists them"))
        return True

    def _budget(self) -> None:
        budget = self._session.budget()
        self._say(views.budget_text(budget) if budget else "no private source was declared")

    def _about(self, what: str, rest: str) -> None:
        """`:type NAME`, `:cost ENTRY`, `:why NAME`."""
        names = self._session.names()
        if not rest:
            self._say(f":{what} takes {'an entry' if what == 'cost' else 'a name'}")
        elif what == "cost":
            try:
                charges = self._cost_preview.price(rest)
            except Refusal as refusal:
                self._refused(refusal)
                return
            self._say("\n".join(prices(charges)) or "nothing")
        elif what == "type" and (text := views.documented(rest, names, self.width or width_of(sys.stdout))):
            self._say(text)
        elif rest not in names:
            from jostle.documentation import documented as all_names

            self.failed = True
            hint = did_you_mean(rest, [*names, *(entry.name for entry in all_names())])
            self._say(f"nothing is called {rest}" + (f"; {hint}" if hint else ""))
        elif what == "type":
            self._say(views.describe(rest, names[rest]))
        else:
            self._say(views.reasons(rest, self._provenance.get(rest)))

    def _explain(self, kind: str | None) -> None:
        from jostle.documentation import explanation

        text = explanation(kind)
        self._say(f"{kind} is no kind of error and no warning; :explain lists them" if text is None else text.rstrip())

    def _load(self, path: str) -> None:
        from jostle.tools.arguments import read_program

        if not path:
            self._say(":load takes the path of a program")
            return
        try:
            source = read_program(str(Path(path).expanduser()))
        except Refusal as refusal:
            self._refused(refusal)
            return
        self.run(source)


def prompt(budget: Budget) -> str:
    """The prompt for a budget; of more than two sources, the first two and how many more."""
    parts = []
    for name, amounts in list(budget.items())[:2]:
        for measure in ("epsilon", "rho"):
            figures = amounts.get(measure, {})
            total, spent = exact(figures.get("total")), exact(figures.get("spent"))
            if total is not None:
                left = total - (spent or Decimal(0))
                parts.append(f"{clean(name)} {UNITS[measure]} {_two(left)}/{_two(total)}")
                break
    more = f" +{len(budget) - 2}" if len(budget) > 2 else ""
    return f"{'  '.join(parts) or 'jostle'}{more} › "


def _two(value: Decimal) -> str:
    """Two places where they say it all, else as many as an amount is shown with."""
    return f"{value:.2f}" if value == round(value, 2) else amount(value)


def start(
    first: Source | None = None, ledger: str | None = None, memory: str | None = None, engine: str | None = None,
    allow: Sequence[str] = (), look: bool = True,
) -> int:  # fmt: skip
    """The session at a terminal or over a pipe, where it gives 1 if anything was refused; `first` is run before.

    `ledger`, `memory`, `engine`, `allow` and `look` as in `Session`.
    """
    import warnings

    from jostle.tools.session import Session
    from jostle.tools.terminal import at_terminal, over_pipe
    from jostle.tools.turns import hearing

    warnings.simplefilter("ignore")  # as in `commands.run`: a warning may quote private values
    heard: list[Event] = []
    interactive = sys.stdin.isatty() and sys.stdout.isatty()
    say_text = page_text if interactive else _say

    def show(event: Event) -> None:
        if event.kind == "release":
            _say(views.release_text(event, width_of(sys.stdout)))
        elif event.kind == "picture" and interactive:
            views.show_picture(event)

    with progress_on(sys.stderr) as bar:

        def say(text: str) -> None:
            bar.close()
            say_text(text)

        session = Session(
            listeners=[hearing(heard), show], progress=bar, out=_say, ledger=ledger, memory=memory, engine=engine,
            allow=allow, look=look,
        )  # fmt: skip
        repl = Repl(session, say, lambda refusal: tell(refusal.diagnostics), _confirm if interactive else None)
        repl.events = heard
        try:
            if first is not None:
                repl.run(first)
            if interactive:
                _say(f"jostle {__version__}; :help for help")
            entries: Iterable[str] = at_terminal(repl.prompt, repl.vocabulary) if interactive else over_pipe(sys.stdin)
            for entry in entries:
                going_on = repl.handle(entry)
                bar.close()
                if not going_on:
                    break
        except OutputFault:
            result = session.so_far()
            if result.values or result.output:
                keep("a session", result.document_parts)
            raise
    return 1 if repl.failed and not interactive else 0


def _confirm(question: str) -> bool:
    try:
        return input(f"{question} [y/N] ").strip().lower() in ("y", "yes")
    except (EOFError, KeyboardInterrupt):
        return False


def page_text(text: str) -> None:
    """Text that is longer than the terminal goes through the pager of this system."""
    import pydoc
    import shutil

    page = clean(text)
    if page.count("\n") + 1 > shutil.get_terminal_size().lines - 1:
        pydoc.pager(page)
    else:
        print(page, flush=True)


def _say(text: str) -> None:
    print(clean(text), flush=True)
