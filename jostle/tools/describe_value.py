"""Describes a name in the REPL: the public facts of its value, and the choice or measurement that made it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from jostle.diagnostics import Refusal
from jostle.events import Event
from jostle.source import Source


class Provenance(Struct, frozen=True):
    """The entry that gave a name its value, and what happened in it."""

    source: Source
    events: Sequence[Event]


def assigned_names(source: Source) -> list[str]:
    """The names that a text gives values at its top level."""
    from jostle.syntax import nodes as n
    from jostle.syntax import parse

    try:
        tree = parse(source, interactive=True)
    except Refusal:
        return []
    return [s.name for s in tree.body if isinstance(s, n.Assign | n.Private | n.Def | n.ParamDecl)]


def documented(name: str, names: Mapping[str, Any], width: int = 100) -> str:
    """What the documentation says of a name, unless `names`, of a session, give it another value; else nothing."""
    from jostle.run.values import Module
    from jostle.tools.documentation import documentation

    if name in names and not is_of_library(name, names):
        value = names[name]
        if not (isinstance(value, Module) and value.of_library):
            return ""
    return "\n\n".join(entry.text(width) for entry in documentation(name))


def is_of_library(name: str, names: Mapping[str, Any]) -> bool:
    """Whether a name of a session is one that a module of the library brought."""
    from jostle.run.values import Module

    modules = [value for value in names.values() if isinstance(value, Module) and value.of_library]
    return any(names[name] is module.names.get(name) for module in modules)


def describe(name: str, value: Any) -> str:
    """The kind of a value, its label, and the public facts of a handle."""
    from jostle.plan.plan import Categories, Integer, Real
    from jostle.privacy.kernel.exposures import Handle
    from jostle.privacy.kernel.handles import Cube, Table
    from jostle.run.values import Function, is_vector, kind_name

    lines = [f"{name}: {kind_name(value)}"]
    if isinstance(value, Function):
        lines = [f"{name}({', '.join(parameter for parameter, _ in value.params)}): a function"]
    if isinstance(value, Handle):
        for exposure in value.exposures:
            source = exposure.source
            steps = f", on a part of {len(exposure.path)} partitions" if exposure.path else ""
            stability = "without bound" if exposure.rows is None else exposure.rows
            lines.append(f"  private to {source.name} (protecting {exposure.unit}), stability {stability}{steps}")
        if isinstance(value, Table):
            for column, domain in value.schema:
                match domain:
                    case Integer() | Real():
                        words = f"{domain.low:g}..{domain.high:g}"
                    case Categories():
                        examples = ", ".join(str(v) for v in domain.values[:6])
                        words = "{" + examples + (", …" if len(domain.values) > 6 else "") + "}"
                    case _:
                        words = domain.kind
                lines.append(f"  {column}: {words}")
        elif isinstance(value, Cube):
            lines.append("  " + " × ".join(f"{n} ({s})" for n, s in zip(value.names, value.shape, strict=True)))
    else:
        lines.append("  public" + (f", {value.shape[0]:,} values" if is_vector(value) else ""))
        if (law := getattr(value, "law", None)) is not None:
            lines.append(f"  measured by {law.name}, noise of scale {law.scale:.4g}")
    return "\n".join(lines)


def reasons(name: str, provenance: Provenance | None) -> str:
    """The choices that were made for a value; where there were none, the entry and what it measured."""
    from jostle.trace.summary import summary
    from jostle.trace.tree import choices

    if provenance is None:
        return f"{name} came with this session"
    head = f"{name} was made by {provenance.source.name}: {provenance.source.text.strip().splitlines()[0]}"
    if any(e.kind == "choice" for e in provenance.events):
        return head + "\n" + choices(provenance.events).rstrip()
    if any(e.kind in ("measure", "query") for e in provenance.events):
        return head + "\n" + summary(provenance.events).rstrip()
    return head + "\nit was computed from what was known; nothing was measured and nothing was chosen"


def display_text(value: object) -> str:
    """A value as text, with its ± where it is a number, or a record of numbers, whose error is known."""
    from jostle.formulas import cut_text, cuts_in, cuts_of, margin_text, with_margin
    from jostle.privacy.kernel.exposures import Handle
    from jostle.run.margins import margins
    from jostle.run.values import Record, is_number, kind_name, show

    if isinstance(value, Handle) and value.private:
        return kind_name(value)
    errors = margins(value)

    def beside(item: object, margin: object) -> str:
        return with_margin(show(item), margin_text(item, margin))

    if isinstance(value, Record) and value and all(map(is_number, value.values())):
        items = [f"{name}: {beside(item, (errors or {}).get(name))}" for name, item in value.items()]
        return "\n".join(["{" + ", ".join(items) + "}", *cut_text(cuts_in(errors))])
    if not is_number(value):
        return show(value)
    return "\n".join([beside(value, errors), *cut_text(cuts_of(value))])
