"""A run on simulated rows before the first charge: what fails there after a payment, whatever the rows are.

The walk before a run (`check.dry`) knows what is sure from forms. What hangs on the values of answers, on rounds of a
loop or on what an Option gives, a run alone shows. It is made on rows that are drawn from the described domains, in a
session of its own, where nothing private is opened. One failure says little, since simulated rows are not the
program's: it counts only where it comes again on twenty rows and on four thousand, of other seeds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from time import process_time
from typing import TYPE_CHECKING

from jostle.check.dry.interpreter import ELSEWHERE
from jostle.diagnostics import Diagnostic, Refusal
from jostle.language.aggregates import AGGREGATES
from jostle.language.builtins import BUILTINS, EVERYWHERE
from jostle.language.facts import Gives
from jostle.privacy.kernel.exposures import Handle
from jostle.records import replace
from jostle.run.faults import deep
from jostle.run.interpreter import Interpreter
from jostle.run.scope import MISSING, Scope
from jostle.run.values import Builtin
from jostle.syntax import nodes as n
from jostle.syntax.walk import every, every_of
from jostle.tools.outlet import KIND, Others

if TYPE_CHECKING:
    from jostle.run.evaluator import Returned
    from jostle.source import Span

SIZES = (1000, 20, 4000)
"""Rows of each table, run by run: the next ones are there where the first fails."""
SECONDS = 2.0
"""Of processor time in one rehearsal. What comes after it is not rehearsed."""

FAILS = (
    "20, 1,000 and 4,000 simulated rows all fail here after a payment, so nothing is charged; "
    "`jostle run --no-rehearsal` runs all the same"
)
_BALANCES = {name for name in EVERYWHERE if BUILTINS[name].gives is Gives.BALANCE}
_OUTSIDE = (ELSEWHERE | {KIND}) - {"BudgetExceeded"}


class Ended(Exception):
    """The rehearsal ends here and says nothing."""


class Rehearsing(Interpreter):
    """Runs a program for as long as it is worth."""

    until = math.inf

    def statement(self, node: n.Stmt, scope: Scope) -> Returned | None:
        self._need_time()
        try:
            return super().statement(node, scope)
        except Refusal as refusal:
            if isinstance(node, n.Assert) and refusal.first.kind == "AssertionFailed" and _of_answers(node, scope):
                raise Ended from None
            raise

    def call(
        self, function: object, args: Sequence[object], keywords: dict[str, object] | None = None,
        span: Span | None = None,
    ) -> object:  # fmt: skip
        self._need_time()
        return super().call(function, args, keywords, span)

    def _need_time(self) -> None:
        if process_time() > self.until:
            raise Ended


Begin = Callable[[int, int], AbstractContextManager[Rehearsing]]
"""A simulation by a seed and a number of rows: within it, what runs programs."""


def _of_answers(node: n.Assert, scope: Scope) -> bool:
    """Whether what is asserted reads more than budgets: simulated answers are not those of the data."""
    values = [scope.variable(one.id) for one in every(node.value) if isinstance(one, n.Name)]
    return not all(value is MISSING or isinstance(value, Handle | Builtin) for value in values)


def is_open(tree: n.Program) -> bool:
    """Whether a program does with answers what the walk before it does not follow: rounds, what is left, choices, and
    functions of the library. What it defines itself, and the language's own functions, are followed there."""
    followed = {*EVERYWHERE, *AGGREGATES, *(one.name for one in every_of(tree, n.Def))}
    followed -= _BALANCES if every_of(tree, n.Assert) else set()
    called = [one.function for one in every_of(tree, n.Call)]
    return bool(every_of(tree, n.Run)) or any(isinstance(one, n.Name) and one.id not in followed for one in called)


def sure_to_fail(begin: Begin, tree: n.Program, settings: Mapping[str, object]) -> list[Diagnostic]:
    """What a program fails on after a payment, whatever the rows are."""
    faults: list[Diagnostic] = []
    for seed, rows in enumerate(SIZES, 1):
        fault = _late(begin(seed, rows), tree, settings)
        faults = faults or fault
        if not fault or (fault[0].kind, fault[0].span) != (faults[0].kind, faults[0].span):
            return []
    help = f"{faults[0].help}; " if faults[0].help else ""
    return [replace(faults[0], help=f"{help}{FAILS}"), *faults[1:]]


def _late(
    begun: AbstractContextManager[Rehearsing], tree: n.Program, settings: Mapping[str, object]
) -> list[Diagnostic]:  # fmt: skip
    """What a program fails on once something was charged."""
    with begun as interp:
        interp.settings, interp.until = dict(settings), process_time() + SECONDS
        interp.kernel.begin(tree.span.source)
        try:
            with Others().excepted(), deep(), suppress(Ended):
                interp.block(tree.body, Scope(interp.base))
        except Refusal as fault:
            sources = interp.kernel.register.names.values()
            paid = any(source.measure.spent_exactly(source.meter.spent)[0] for source in sources)
            return list(fault.diagnostics) if paid and fault.first.kind not in _OUTSIDE else []
    return []


def as_far_as_it_goes(
    interp: Interpreter, tree: n.Program, scope: Scope, only: Callable[[n.Stmt], bool] | None
) -> None:  # fmt: skip
    """Runs a program; with `only` the statements that it takes, as far as they go without the others."""
    for statement in tree.body:
        try:
            if only is None or only(statement):
                interp.statement(statement, scope)
        except Refusal:
            if only is None:
                raise
