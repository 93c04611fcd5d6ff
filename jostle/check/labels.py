"""Where a private value may not stand: printed, released, compared, branched on, iterated, taken for a number.

The rules of labels, one method each, over what `flow` knows of the value. They see tables and containers that hold
one; whatever is not certainly private passes, and the privacy kernel decides at run time.
"""

from __future__ import annotations

from jostle.check.report import Report
from jostle.check.values import Many, Parts, Table, Value, private_table
from jostle.source import Span
from jostle.syntax import nodes as n


class Labels:
    """Reports uses of private values; `sure` is false while the walk is in code that may never be reached so."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self.sure = True

    def shown_to_people(self, value: Value, expr: n.Expr | None, span: Span, done: str) -> None:
        """Printed, released or put into a message: also inside a container."""
        self._refuse(private_table(value), expr, span, f"cannot be {done}", contained=not isinstance(value, Table))

    def compared(self, value: Value, expr: n.Expr) -> None:
        self._refuse(
            private_table(value), expr, expr.span, "cannot be compared", contained=not isinstance(value, Table)
        )

    def branched(self, value: Value, expr: n.Expr) -> None:
        if isinstance(value, Table):
            self._refuse(private_table(value), expr, expr.span, "cannot be a condition")

    def iterated(self, value: Value, expr: n.Expr) -> None:
        if isinstance(value, Table):
            help = "`partition(…)` gives parts that can be iterated, under public keys"
            self._refuse(private_table(value), expr, expr.span, "cannot be iterated", help=help)

    def picked(self, value: Value, expr: n.Expr) -> None:
        """Indexed by a number."""
        self._refuse(private_table(value), expr, expr.span, "cannot be indexed by value")

    def computed(self, value: Value, expr: n.Expr, function: str) -> None:
        """Passed to a function of public values."""
        if isinstance(value, Parts) and function == "len":
            return  # how many parts there are follows from the description
        if isinstance(value, Table | Parts) and private_table(value) is not None:
            self._refuse(private_table(value), expr, expr.span, f"cannot be passed to `{function}`")

    def spent(self, value: Value, expr: n.Expr) -> bool:
        """Used as an amount; whether it was private."""
        self._refuse(private_table(value), expr, expr.span, "cannot be an amount", help="amounts are public numbers")
        return private_table(value) is not None

    def trained(self, value: Value, expr: n.Expr) -> None:
        help = "train on public or generated data; the choice is then called on private data `with epsilon`"
        contained = isinstance(value, Many)
        self._refuse(private_table(value), expr, expr.span, "cannot be trained on", help=help, contained=contained)

    def judged(self, value: Value, expr: n.Expr, name: str) -> None:
        """Given to a Utility."""
        help = "a Utility is evaluated on public data only"
        self._refuse(
            private_table(value), expr, expr.span, f"cannot be given to the Utility `{name}`", help=help, contained=True
        )

    def _refuse(
        self,
        table: Table | None,
        expr: n.Expr | None,
        span: Span,
        verb: str,
        *,
        help: str = "",
        contained: bool = False,
    ) -> None:
        if table is None or table.declared is None or not self.sure:
            return
        source = table.declared
        what = "this value"
        if isinstance(expr, n.Name):
            what = f"`{expr.id}`"
        state = f"holds private data of `{source.name}` and" if contained else "is private and"
        self._report.add(
            "PrivateValue",
            f"{what} {state} {verb}",
            span,
            label=f"private since line {source.span.line}",
            help=help or f"measure it: {_example(source)}",
            notes=table.trail,
        )


def _example(source: n.Private) -> str:
    cube = isinstance(source.source, n.Call) and source.source.function == n.Name("counts", span=source.span)
    return f"{{{{ select {'sum(values)' if cube else 'count(*)'} from {source.name} with epsilon 0.1 }}}}"
