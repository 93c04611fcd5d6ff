"""Notebooks: `%load_ext jostle`, then cells that begin with `%%jostle` are Jostle.

One session lives as long as the kernel. Names go both ways: a cell sees numbers, texts, lists, arrays and records of
Python under their names, and `bound("frame")` a table; what it releases becomes a Python variable. A restarted kernel
has forgotten what was spent on sources that are not registered.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jostle.diagnostics import Refusal
from jostle.events import Event
from jostle.source import Source
from jostle.tools.session import Session, to_python


class Notebook:
    """The session of a notebook and its count of cells. `names`: the kernel's variables, read and written."""

    def __init__(self, names: dict[str, Any]) -> None:
        self._names = names
        self._events: list[Event] = []
        self._printed: list[str] = []
        self.session = Session(listeners=[self._events.append], out=self._printed.append)
        self._cells = 0

    def cell(self, text: str) -> list[Any]:
        """Runs a cell; gives what is to be shown: printed text, a value, releases, pictures, the budget."""
        self._cells += 1
        self._events.clear()
        self._printed.clear()
        source = Source(f"cell {self._cells}", text if text.endswith("\n") else text + "\n")
        items: list[Any] = []
        value = None
        try:
            self._hand_over(source)
            value = self.session.execute(source)
        except Refusal as refusal:
            items.append(_Fault(refusal))
        finally:
            if self.session.hints:
                items.append(_Fault(Refusal(*self.session.hints)))
                self.session.hints.clear()
            released = [e.name for e in self._events if e.kind == "release"]
            values = {**self.session.names(), **self.session.released()}
            self._names.update({name: to_python(values[name]) for name in released if name in values})
        if self._printed:
            items.insert(0, _Text("\n".join(self._printed)))
        if value is not None:
            from jostle.privacy.kernel.handles import Handle

            items.append(_Text(self.session.show(value)) if isinstance(value, Handle) else to_python(value))
        return [*items, CellReport(list(self._events), self.session.budget())]

    def _hand_over(self, source: Source) -> None:
        """Python's values under the names that the cell uses and Jostle does not know; tables by `bound`."""
        from jostle.language.builtins import EVERYWHERE
        from jostle.syntax import nodes as n
        from jostle.syntax import parse
        from jostle.syntax.walk import every

        names = self.session.names()
        for node in every(parse(source, interactive=True)):
            match node:
                case n.Call(function=n.Name(id="bound"), args=(n.String(value=name),)) if name in self._names:
                    self.session.bind(name, self._names[name])
                case n.Name(id=name) if name in self._names and name not in EVERYWHERE and name not in names:
                    value = from_python(self._names[name])
                    if value is not None:
                        self.session.define(name, value)


def from_python(value: Any) -> Any:
    """A Python value as Jostle has it; None for what it has no form for."""
    from jostle.run.values import Record, is_model, is_vector

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


class _Fault:
    """A refusal, as the terminal shows it."""

    def __init__(self, refusal: Refusal) -> None:
        self._refusal = refusal

    def __repr__(self) -> str:
        from jostle.tools.render import render_all

        return render_all(self._refusal.diagnostics, colour=False, width=100).rstrip()


class CellReport:
    """The results of a cell: releases, pictures, choices and the budget, as text or as HTML."""

    def __init__(self, events: list[Event], budget: Mapping[str, Any]) -> None:
        self.events, self.budget = events, budget

    def __repr__(self) -> str:
        from jostle.tools.show import budget_text, choices_text
        from jostle.trace.summary import short

        lines = [f"{e.name} = {short(e.fields.get('value'))}" for e in self.events if e.kind == "release"]
        summary = choices_text(self.events)
        return "\n".join(
            [*lines, *([summary] if summary else []), *([budget_text(self.budget)] if self.budget else [])]
        )

    def _repr_html_(self) -> str:
        from jostle.tools.show import budget_text
        from jostle.trace.costs import Costs
        from jostle.trace.forest import Forest
        from jostle.trace.html.choices import choices
        from jostle.trace.html.markup import tag
        from jostle.trace.html.page import style
        from jostle.trace.html.values import pictures_section, releases_section

        forest = Forest.of(self.events)
        section = choices(self.events, forest, Costs.of(forest))
        drawer = tag("details", tag("summary", "choices"), section) if section is not None else None
        spent = tag("pre", budget_text(self.budget)) if self.budget else None
        return tag(
            "div",
            style(".jostle"),
            releases_section(self.events),
            pictures_section(self.events),
            drawer,
            spent,
            class_="jostle",
        )


def load(shell: Any) -> None:
    """Registers `%%jostle` with an IPython shell."""
    from IPython.display import display

    notebook = Notebook(shell.user_ns)

    def jostle(line: str, cell: str) -> None:
        """Runs a Jostle cell."""
        for item in notebook.cell(cell):
            if not isinstance(item, CellReport) or item.events or item.budget:
                display(item)  # type: ignore[no-untyped-call]

    shell.register_magic_function(jostle, magic_kind="cell", magic_name="jostle")
    shell.user_ns["_jostle"] = notebook.session
