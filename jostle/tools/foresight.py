"""What a run is sure to refuse: the program is walked as a run walks it, as far as nothing depends on an answer.

A run refuses from public facts, before it charges: names, kinds, columns, keys, bounds, amounts of noise. So what it
would refuse of a measurement is known by asking for it and turning back at the door. What that would have answered is
`Unknown`, and so is what depends on it: such a statement is left, and the names that it gives a value are not known any
more. Everything else is the run's own, so that no rule of it is written twice. Nothing is opened: of a private source
the description is known, of public files nothing; nor is what choices and slow kernels give, and what was spent only as
long as nothing was left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, cast

from jostle.check.scopes import bound_by
from jostle.choice.advisors import Advisor
from jostle.choice.maker import ChoiceMaker
from jostle.diagnostics import Diagnostic, Refusal
from jostle.language.builtins import BUILTINS, SLOW
from jostle.language.facts import Effect, Gives
from jostle.privacy.kernel.kernel import Kernel, check_unit
from jostle.privacy.measurements.watch import Opening
from jostle.run.accuracy import no_error
from jostle.run.externals import KERNELS
from jostle.run.faults import LIBRARY
from jostle.run.interpreter import Interpreter
from jostle.run.scope import MISSING, Scope
from jostle.run.values import Builtin, Function
from jostle.syntax import nodes as n
from jostle.syntax.walk import every

if TYPE_CHECKING:
    from jostle.accounting.amounts import Amount
    from jostle.events import Stream
    from jostle.privacy.kernel.handles import Exposures
    from jostle.privacy.kernel.measurement import Measurement
    from jostle.run.statements import Returned
    from jostle.source import Span

MOST_STEPS = 30_000
"""The expressions that are looked at; what comes after is not."""

ELSEWHERE = frozenset({"DataError", "LedgerError", "ImportError", "BudgetExceeded", "RecursionLimit"})
"""Kinds of refusals that rest on files or on what was spent, of which a run knows more."""

QUICK = frozenset({
    "checks", "classifiers.growing", "graphical.model", "ising.frankwolfe", "ising.pairfit", "ising.pairwise",
    "linear_algebra", "mixtures.centres", "mixtures.em", "mixtures.factors",
})  # fmt: skip
"""Modules of kernels that take no time to speak of."""

ADAPTIVE = frozenset({
    "agrid", "ahp", "dawa", "dawa_axes", "dawa_boxes", "dpcube", "efpa", "mwem", "mwem_star", "php", "privtree", "sf",
    "shrinkage", "ugrid", "uniform",
})  # fmt: skip
"""Options of the library whose answers have no error that is known: what they measure follows from answers."""


class NotKnown:
    """Stands for the value of a name that is not known; `of`: the option of the library that gives it, or empty."""

    def __init__(self, of: str = "") -> None:
        self.of = of


class Unknown(Exception):
    """What is looked at depends on an answer, or takes long."""

    def __init__(self, of: str = "") -> None:
        super().__init__(of)
        self.value = NotKnown(of)


class TooLong(Exception):
    """The walk ends here."""


class Names(dict[str, Any]):
    """The names of a scope, some of which are not known."""

    def __getitem__(self, name: str) -> Any:
        value = super().__getitem__(name)
        if isinstance(value, NotKnown):
            raise Unknown(value.of)
        return value


class Left(float):
    """What is left of an allotment in which something may have been spent: at least this is not more than it."""


class Nothing:
    """Whatever this is asked is not known: an engine, an open watch, a ChoiceMaker that has learned nothing."""

    name = ""

    def __getattr__(self, name: str) -> NoReturn:
        raise Unknown

    def jostle_call(self, *args: Any) -> NoReturn:
        raise Unknown


class Door(Kernel):
    """A kernel that nothing passes: what is measured is refused as ever, or not known."""

    skipped = 0  # how often something was left out, which may have spent

    def __init__(self, events: Stream) -> None:
        super().__init__(cast("Any", Nothing()), events)

    def measure(self, measurement: Measurement[Any, Any], span: Span | None = None) -> Any:
        exposures = measurement.exposures
        if exposures and measurement.paid_by() is None:
            for exposure in exposures:
                check_unit(measurement.price.amount, exposure.source, span)
        if isinstance(measurement, Opening):
            self.skipped += 1
            return Nothing()  # a watch is one whatever the data are
        raise Unknown

    def left_of_allotment(self, exposures: Exposures, what: str = "epsilon") -> float:
        left = super().left_of_allotment(exposures, what)
        return Left(left) if self.skipped else left

    def left_of(self, exposure: Any) -> tuple[int, int]:
        if self.skipped:
            raise Unknown
        return super().left_of(exposure)

    def _test_opening(self, amount: Amount, span: Span | None, opened_for: Exposures) -> None:
        for exposure in opened_for:
            check_unit(amount, exposure.source)


class Foresight(Interpreter):
    """Walks a program up to the door of its kernel, statement by statement."""

    names = Names

    def __init__(self, *args: Any, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        self.steps = self.made_up_rows = 0

    def statement(self, node: n.Stmt, scope: Scope) -> Returned | None:
        skipped = self.kernel.skipped  # type: ignore[attr-defined]
        try:
            if isinstance(node, n.Run) and skipped:
                raise Unknown  # what is left, and so whether there is a round, is not known any more
            ended = super().statement(node, scope)
            if isinstance(node, n.Run) and self.kernel.skipped > skipped:  # type: ignore[attr-defined]
                self._forget(node, scope, NotKnown())  # there may be more rounds than these
            if isinstance(node, n.Use):
                scope.names = Names(scope.names)
            return ended
        except Unknown as unknown:
            if self.joint is not None or _returns(node):
                raise  # nothing is known of what the block, or the function, gives
            self._forget(node, scope, unknown.value if _is_of_call(node) else NotKnown())
            return None
        except Refusal as refusal:
            if refusal.diagnostics[0].kind not in ELSEWHERE:
                raise
            if self.depth or self.joint is not None:
                raise Unknown from None
            self._forget(node, scope, NotKnown())
            return None

    def _forget(self, node: n.Stmt, scope: Scope, value: NotKnown) -> None:
        """The names that a statement would have given a value."""
        self.kernel.skipped += 1  # type: ignore[attr-defined]
        scope.names = scope.names if isinstance(scope.names, Names) else Names(scope.names)
        for name in _bound(node):
            scope.set(name, value)

    def eval(self, node: n.Expr, scope: Scope) -> Any:
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise TooLong
        if isinstance(node, n.Described) or (isinstance(node, n.Call) and self._opens(node, scope)):
            raise Unknown
        value = super().eval(node, scope)
        if isinstance(value, Left):
            raise Unknown
        return value

    def argument(self, node: n.Expr, scope: Scope) -> Any:
        """What is not known may be passed to a function of a program, which may refuse the other arguments."""
        try:
            return super().argument(node, scope)
        except Unknown as unknown:
            return unknown.value if isinstance(node, n.Name | n.Call | n.Spending) else NotKnown()

    def call(
        self, function: Any, args: Sequence[Any], keywords: dict[str, Any] | None = None, span: Span | None = None
    ) -> Any:
        given = [*args, *(keywords or {}).values()]
        if isinstance(function, ChoiceMaker):
            raise Unknown  # it would learn
        if isinstance(function, Builtin):
            if function.name == "advisor" and len(args) > 1:
                return Advisor(args[0], args[1], 1, (), "", False)
            if function.body.__module__ == no_error.__module__ and given and isinstance(given[0], NotKnown):
                raise no_error(given[0].of) if given[0].of else Unknown
            if _is_unknown(function.name, self.kernel):
                raise Unknown
        if not isinstance(function, Function) and any(isinstance(value, NotKnown) for value in given):
            raise Unknown
        try:
            return super().call(function, args, keywords, span)
        except Unknown:
            raise Unknown(function.name if _is_adaptive(function) else "") from None

    def _opens(self, node: n.Call, scope: Scope) -> bool:
        """Whether a call opens data; counts that are written in the program are none."""
        row = BUILTINS.get(node.function.id) if isinstance(node.function, n.Name) else None
        if row is None or row.effect is not Effect.DECLARES or scope.variable(row.name) is not MISSING:
            return False
        return row.name != "counts" or len(node.args) != 1 or isinstance(self.eval(node.args[0], scope), str)


def _is_adaptive(function: Any) -> bool:
    """Whether a function is an option of the library whose answers have no known error."""
    if not isinstance(function, Function) or function.name not in ADAPTIVE:
        return False
    return function.body.span.source.name.startswith(LIBRARY)


def _is_of_call(node: n.Stmt) -> bool:
    """Whether a statement gives a name what a call gives, or another name stands for."""
    value = node.value if isinstance(node, n.Assign) else None
    return isinstance(value.value if isinstance(value, n.Spending) else value, n.Call | n.Name)


def _is_unknown(name: str, kernel: Any) -> bool:
    """Whether what a function gives is not known, whatever it is given."""
    if name in KERNELS:
        return KERNELS[name] not in QUICK
    row = BUILTINS.get(name)
    spends = row is not None and row.gives is Gives.BALANCE and bool(kernel.skipped)
    return name in SLOW or spends or (row is not None and row.gives in (Gives.CHOICE, Gives.ADVISOR))


def _returns(node: n.Stmt) -> bool:
    """Whether a function may come to its end in a statement."""
    return not isinstance(node, n.Def) and any(isinstance(part, n.Return) for part in every(node))


def _bound(node: n.Stmt) -> set[str]:
    """The names that a statement may give a value."""
    names = set(bound_by(node, lambda use: (use.path[-1],)))
    return names | ({node.name} if isinstance(node, n.Release) else set())


def no_choice(interp: Interpreter, node: n.Choice, scope: Scope) -> Nothing:
    """In place of what makes a ChoiceMaker: what it learns takes long."""
    return Nothing()


def sure_refusals(tree: n.Program, interp: Foresight, settings: Mapping[str, Any]) -> tuple[Diagnostic, ...]:
    """What a run of a program is sure to refuse, if it comes so far; empty where nothing is known."""
    interp.settings = dict(settings)
    interp.kernel.begin(tree.span.source)
    try:
        interp.block(tree.body, Scope(interp.base, Names()))
    except Refusal as refusal:
        return refusal.diagnostics
    except (TooLong, Unknown):
        pass
    return ()
