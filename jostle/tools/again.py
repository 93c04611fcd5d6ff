"""`jostle again`: prints what earlier runs released and could not hand over, or measured before they failed.

What a run that failed has paid for and not released: public values of names that rest on private data.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Collection
from datetime import date
from typing import TYPE_CHECKING, Any

from jostle.diagnostics import Refusal
from jostle.syntax import nodes as n
from jostle.syntax.walk import every
from jostle.tools.outlet import stored
from jostle.tools.render import clean, width_of
from jostle.tools.show import budget_text, released

if TYPE_CHECKING:
    from jostle.run.interpreter import Interpreter
    from jostle.run.scope import Scope


def measured(tree: n.Program, scope: Scope, interp: Interpreter) -> dict[str, Any]:
    """The names of a program and, as `f.name`, of its functions that a failure left, with their values."""
    resting = _resting_on_private(tree)
    values = {name: value for name, value in scope.names.items() if name in resting}
    for function, local in reversed(interp.left):
        inside = {name for node in every(function.body) for name in _bound(node)}
        values |= {f"{function.name}.{name}": local.names[name] for name in local.names if name in inside}
    return {name: value for name, value in values.items() if name not in interp.released and _is_answer(value)}


def _resting_on_private(tree: n.Program) -> Collection[str]:
    """The names whose statements mention a private source, or another name that rests on one."""
    statements = [(set(_bound(node)), _mentioned(node)) for node in every(tree) if _bound(node)]
    names = {node.name for node in every(tree) if isinstance(node, n.Private)}
    size = -1
    while len(names) > size:
        size = len(names)
        for bound, mentioned in statements:
            if not mentioned.isdisjoint(names):
                names |= bound
    return names


def _bound(node: n.Node) -> tuple[str, ...]:
    """The names that a statement gives values; those of its blocks have statements of their own."""
    if isinstance(node, n.Release) and node.value is not None:
        return (node.name,)
    if not isinstance(node, n.Assign | n.For | n.Private | n.Def):
        return ()
    names: str | tuple[str, ...] = getattr(node, node.binds[0])
    return (names,) if isinstance(names, str) else names


def _mentioned(node: n.Node) -> set[str]:
    parts = every(node.source) if isinstance(node, n.For) else every(node)
    return {part.id for part in parts if isinstance(part, n.Name)}


def _is_answer(value: object) -> bool:
    """Whether a value can be shown as a released one is."""
    from jostle.privacy.kernel.exposures import handles_in
    from jostle.run.values import Grouped, is_model, is_number, is_sequence, plain

    if handles_in(value) or not (
        isinstance(value, bool | str | date | dict | Grouped)
        or is_number(value)
        or is_sequence(value)
        or is_model(value)
    ):
        return False
    try:
        plain(value)
    except Refusal:  # it is too large to be shown
        return False
    return True


def command(_: Namespace) -> int:
    """Each kept run in turn; it is removed when it was written to its end."""
    runs = 0
    for path, document in stored():
        sys.stdout.write(_text(document))
        sys.stdout.flush()
        path.unlink(missing_ok=True)
        runs += 1
    if not runs:
        print("nothing is kept: every run handed over what it released")
    return 0


def _text(document: dict[str, Any]) -> str:
    lines = [f"{document.get('program', '')}, {document.get('time', '')}", *document.get("output", ())]
    margins = document.get("margins") or {}
    for title in ("released", "measured"):
        values = document.get(title) or {}
        lines += ["", title if title == "released" else "measured, not released"] if values else []
        for name, value in values.items():
            text = released(name, value, width_of(sys.stdout) - 2, margins.get(name))
            lines += ["  " + line for line in text.split("\n")]
    if document.get("budget"):
        lines += ["", "budget", *("  " + line for line in budget_text(document["budget"]).split("\n"))]
    return "".join(clean(line).rstrip() + "\n" for line in [*lines, ""])
