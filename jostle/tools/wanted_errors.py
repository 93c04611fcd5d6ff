"""What `with error e` of a select or a `jointly` block spends, before anything runs: found by planning on made-up rows.

The amount follows from public facts alone. It is known of blocks and selects at the top level of a program which depend
on nothing that is measured: declarations, tables made of them, public values and functions. Of others it is not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from jostle.accounting.amounts import quanta
from jostle.diagnostics import Refusal
from jostle.events import Event
from jostle.language.aggregates import AGGREGATES
from jostle.language.builtins import BUILTINS
from jostle.language.facts import Effect
from jostle.language.operations import ROW_FUNCTIONS
from jostle.source import Source, Span
from jostle.syntax import nodes as n
from jostle.syntax.walk import every


class Rehearsal(Protocol):
    """A session of made-up rows (`tools.session`)."""

    @property
    def events(self) -> Sequence[Event]: ...

    def bind(self, name: str, value: object) -> None: ...

    def rehearse(
        self, source: Source, settings: Mapping[str, Any], only: Callable[[n.Stmt], bool],
        fails: Callable[[n.Stmt, Refusal], bool],
    ) -> object: ...  # fmt: skip


def wanted_errors(
    tree: n.Program, settings: Mapping[str, Any], bound: Mapping[str, Any], rehearsal: Callable[[], Rehearsal]
) -> dict[Span, int]:
    """In quanta, by the place of the error as it is written; `rehearsal` makes a session of made-up rows.

    Raises `Refusal` for a select that such a block cannot answer.
    """
    wishes = {spend.span: spend.amount.span for statement in tree.body for spend in _wishes(statement)}
    if not wishes:
        return {}
    session = rehearsal()
    for name, value in bound.items():
        session.bind(name, value)
    only = PublicStatements(tree)
    try:
        session.rehearse(tree.span.source, settings, only=only, fails=only.fails)
    except Refusal:
        if only.failed:
            raise
        return {}  # no program that runs
    found = {}
    for event in session.events:
        if event.kind == "query" and event.span in wishes and "apart" in event.fields:
            amount = event.fields.get("epsilon", event.fields.get("rho"))
            found[wishes[event.span]] = quanta(amount)
    return found


def _wishes(statement: n.Stmt) -> list[n.Spend]:
    """The errors that a block, or the selects of a statement without a block, are wanted with."""
    if isinstance(statement, n.With):
        return [statement.spend] if statement.jointly and statement.spend.amount.is_wish else []
    nodes = every(statement)
    if not {n.Block, n.Lambda, n.Comprehension}.isdisjoint(map(type, nodes)):
        return []
    spends = [node.spend for node in nodes if isinstance(node, n.Select) and node.spend is not None]
    return [spend for spend in spends if spend.amount.is_wish]


def _only_wishes(query: n.Query) -> bool:
    spends = [node.spend for node in every(query) if isinstance(node, n.Select) and node.spend is not None]
    return bool(spends) and all(spend.amount.is_wish for spend in spends)


class PublicStatements:
    """Tells which statements measure nothing and depend on nothing that does, in the order of the program."""

    def __init__(self, tree: n.Program) -> None:
        self._lost: set[str] = set()  # names that what is measured may have given
        self.failed = False
        self._functions = {one.name: one for one in tree.body if isinstance(one, n.Def)}

    def __call__(self, statement: n.Stmt) -> bool:
        nodes = every(statement)
        depends = any(isinstance(node, n.Name) and node.id in self._lost for node in nodes)
        wanted = bool(_wishes(statement))
        public = not depends and ((isinstance(statement, n.With) and wanted) or self._measures_nothing(statement))
        if not public or wanted:
            self._lost |= {name for node in nodes for name in _given(node)}
        return public

    def fails(self, statement: n.Stmt, refusal: Refusal) -> bool:
        """Whether a statement that was refused here is refused whatever is measured before it."""
        self.failed = bool(_wishes(statement)) and refusal.first.kind == "TypeError"
        return self.failed

    def _measures_nothing(self, statement: n.Stmt) -> bool:
        if isinstance(statement, n.Use | n.Def | n.ParamDecl | n.Private):
            return True
        if _wishes(statement):
            return isinstance(statement, n.Assign | n.Release | n.Bare) and self._free(statement, set(), wishes=True)
        return isinstance(statement, n.Assign) and self._free(statement, set())

    def _free(self, part: n.Node, open_: set[str], wishes: bool = False) -> bool:
        """Whether nothing in it measures, nor calls a function that might; with `wishes`, but for wanted errors."""
        for node in every(part):
            match node:
                case n.Query() if wishes and _only_wishes(node):
                    pass
                case n.Query() | n.Spending() | n.With() | n.Run() | n.Choice() | n.Part():
                    return False
                case n.Call(function=n.Name(id=name)) if name in self._functions:
                    if name not in open_ and not self._free(self._functions[name].body, open_ | {name}):
                        return False
                case n.Call(function=n.Name(id=name)) if not (wishes and name in AGGREGATES):
                    row = BUILTINS.get(name)
                    if name not in ROW_FUNCTIONS and (row is None or row.module or row.effect is Effect.MEASURES):
                        return False
                case n.Call(function=function) if not isinstance(function, n.Name):
                    return False
        return True


def _given(node: n.Node) -> set[str]:
    """The names that a statement binds."""
    names = [getattr(node, field) for field in node.binds] if isinstance(node, n.Statement) else []
    return {name for one in names for name in ((one,) if isinstance(one, str) else one)}
