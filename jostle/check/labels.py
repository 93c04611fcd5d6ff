"""What is wrong where the walk passes: above all, where a private value may not stand.

Printed, released, compared, branched on, iterated, taken for a number, given to a function of public values; and calls
and choices that evidently do not fit. What is not certain passes, and the privacy kernel decides at run time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from jostle.check import amounts
from jostle.check.abstract import kinds
from jostle.check.abstract.values import (
    MISSING,
    PUBLIC,
    TOP,
    Builtin,
    Closure,
    Handle,
    Items,
    Part,
    Set,
    Signature,
    private_handle,
)  # fmt: skip
from jostle.check.report import Report
from jostle.diagnostics import Diagnostic, Note
from jostle.language import facts
from jostle.language.facts import Gives, Parameter, Reads
from jostle.language.operations import COMPARISONS, FOLDS
from jostle.noise_laws import ADDITIVE
from jostle.source import Span
from jostle.syntax import nodes as n

LITERALS = n.Number | n.String | n.Constant | n.ListOf | n.SetOf | n.RecordOf | n.Range
MODELS = n.Number | n.String | n.Constant | n.RecordOf | n.Range | n.Part


class Labels:
    """Reports to `report`, or nothing without one. `sure`: what is passed now is certainly reached so."""

    def __init__(self, report: Report | None) -> None:
        self.report = report or Report()
        self.following = self.sure = report is not None

    # Where a private value comes from ------------------------------------------------------------

    def trail(self, private: n.Private) -> tuple[Note, ...]:
        return (Note(private.span, f"`{private.name}` is declared private here"),) if self.following else ()

    def passed(self, value: Any, span: Span, text: str) -> Any:
        """The value after it took another name at `span`."""
        return value.passed(span, text) if isinstance(value, Handle) and value.trail else value

    def derived(self, value: Any, table: Any, span: Span, text: str) -> Any:
        """The value of a transformation of `table`: a handle, or parts."""
        if not (isinstance(table, Handle) and table.trail):
            return value
        match value:
            case Handle(kind="table" | "cube" | "vectors"):
                return replace(value, trail=table.trail).passed(span, text)
            case Items(item=[key, Handle() as part]):
                part = replace(part, trail=table.trail).passed(span, text)
                return Items([key, part], value.least, value.most, value.part_of)
        return value

    # Private values ------------------------------------------------------------------------------

    def shown_to_people(self, value: Any, expr: n.Expr, verb: str) -> None:
        """Printed, released or put into a message: also inside a container."""
        self._refuse(value, expr, f"cannot be {verb}")

    def compared(self, link: n.Binary, left: Any, right: Any) -> None:
        if link.op in COMPARISONS or link.op.endswith(("between", "like")):
            self._refuse(left, link.left, "cannot be compared")
            self._refuse(right, link.right, "cannot be compared")
        self.misused(kinds.of_operator(link.op, left, right), link)

    def branched(self, value: Any, expr: n.Expr) -> None:
        if isinstance(value, Handle):
            self._refuse(value, expr, "cannot be a condition")
        self.misused(kinds.of_condition(value), expr)

    def misused(self, fault: Diagnostic | None, expr: n.Node) -> None:
        """A value whose kind does not fit."""
        if fault is not None and self.sure:
            self.report.add(fault.kind, fault.message, expr.span, help=fault.help)

    def iterated(self, value: Any, expr: n.Expr) -> None:
        if isinstance(value, Handle):
            help = "`partition(…)` gives parts that can be iterated, under public keys"
            self._refuse(value, expr, "cannot be iterated", help)
        self.misused(kinds.of_walk(value), expr)

    def indexed(self, value: Any, index: n.Index) -> None:
        """Indexed by a number."""
        by_place = len(index.args) == 1 and isinstance(index.args[0], n.Number)
        if isinstance(value, Handle) and by_place and not (index.keywords or index.trailing_comma):
            self._refuse(value, index, "cannot be indexed by value")
        self.misused(kinds.of_index(value), index)

    def amount(self, amount: n.Amount, value: Any, delta: Any) -> None:
        for part, expr in ((value, amount.value), (delta, amount.delta)):
            if expr is not None and self._refuse(part, expr, "cannot be an amount", "amounts are public numbers"):
                return
        if self.sure:
            amounts.check_amount(amount, self.report)

    def source(self, private: n.Private, value: Any) -> None:
        """What a source is declared from, where that is not written as one."""
        public = isinstance(value, Handle) and not value.exposures
        if self.sure and not (value is TOP or value is PUBLIC or public):
            message = f"the source of `{private.name}` is a value of the program"
            help = "a private source is `table(…)`, `counts(…)`, `dataset(…)` or `bound(…)`"
            self.report.add("TypeError", message, private.source.span, label="no source", help=help)

    def _trained(self, value: Any, expr: n.Expr) -> bool:
        help = "train on public or generated data; the choice is then called on private data `with epsilon`"
        return self._refuse(value, expr, "cannot be trained on", help)

    def _refuse(self, value: Any, expr: n.Expr, verb: str, help: str = "") -> bool:
        """Reports a value that is private or holds what is; whether it is."""
        table = private_handle(value) if self.following else None
        if table is None:
            return False
        if self.sure:
            source = table.declared
            name = f"`{expr.id}`" if isinstance(expr, n.Name) else "this value"
            state = "is private and" if value is table else f"holds private data of `{source.name}` and"
            self.report.add(
                "PrivateValue", f"{name} {state} {verb}", expr.span, label=f"private since line {source.span.line}",
                help=help or f"measure it: {_example(source)}", notes=table.trail,
            )  # fmt: skip
        return True

    # Calls ---------------------------------------------------------------------------------------

    def call(self, function: Any, node: n.Call, args: Sequence[Any], keywords: dict[str, Any]) -> bool:
        """What is wrong with a call; false where the arguments cannot fit."""
        if not self.following:
            return True
        bound = list(zip((*node.args, *(keyword.value for keyword in node.keywords)), (*args, *keywords.values()),
                         strict=False))  # fmt: skip
        match function:
            case Builtin(row=row):
                wrong = [self._misread(row, value, expr) for expr, value in bound]
                if any(wrong) or row.reads is Reads.SOURCE:
                    return True
                fits = self._fits(row.name, row.parameters, node, f"write `{row.usage}`")
                return fits and self._taken(row, node, bound)
            case Signature(name=name, params=params):
                usage = ", ".join(p.name if p.default is None else f"{p.name} = …" for p in params)
                return self._fits(name, params, node, f"write `{name}({usage})`")
            case Closure(params=params):
                return self._fits(function.name, [Parameter(k, None if v is MISSING else "") for k, v in params], node)
            case Part(run=Closure() as run):
                if not self.call(run, node, args, keywords):
                    return False
                if function.kind == "Utility":
                    help = "a Utility is evaluated on public data only"
                    for expr, value in bound:
                        self._refuse(value, expr, f"cannot be given to the Utility `{source_text(node)}`", help)
        return True

    def _misread(self, row: facts.Builtin, value: Any, expr: n.Expr) -> bool:
        """Whether a built-in is called with a private value that it does not take."""
        if row.reads in (Reads.PRINTS, Reads.DRAWS):
            return self._refuse(value, expr, f"cannot be {row.reads.value}")
        if row.reads is Reads.PUBLIC or (row.reads is Reads.CONTAINERS and isinstance(value, Handle)):
            return self._refuse(value, expr, f"cannot be passed to `{row.name}`")
        return row.gives is Gives.CHOICE and not isinstance(value, Handle) and self._trained(value, expr)

    def _fits(self, name: str, params: Sequence[Parameter], node: n.Call, help: str = "") -> bool:
        if not node.keywords and len(node.args) == len(params) and all(not param.kind for param in params):
            return True
        wrong = _arity_error(name, params, len(node.args), [keyword.name for keyword in node.keywords])
        if wrong and self.sure:
            other = {"rho", "delta"} & {keyword.name for keyword in node.keywords}
            if other and any(param.name == "epsilon" for param in params):
                tail = "; amounts in rho draw Gaussian noise" if "rho" in other and name in ADDITIVE else ""
                amount = "rho 0.1" if "rho" in other else "epsilon 0.1 delta 1e-6"
                help = f"write the amount after the call, `{name}(…) with {amount}`{tail}"
            self.report.add("TypeError", wrong, node.span, label="does not fit", help=help)
        return not wrong

    def _taken(self, row: facts.Builtin, node: n.Call, bound: Sequence[tuple[n.Expr, Any]]) -> bool:
        """Whether the arguments of a built-in may be of the kinds that it takes."""
        places = [param for param in row.parameters if param.kind in ("", "*")]
        named = {param.name: param for param in row.parameters}
        for at, (expr, value) in enumerate(bound):
            if at < len(node.args):
                param = places[min(at, len(places) - 1)] if places else None
            else:
                param = named.get(node.keywords[at - len(node.args)].name)
            fault = kinds.of_argument(row.name, param.takes, value) if param is not None else None
            if fault is not None:
                self.misused(fault if fault.help else replace(fault, help=f"write `{row.usage}`"), expr)
                return False
        if row.gives is Gives.SORTED and len(bound) == 1 and kinds.unordered(bound[0][1]):
            self.misused(kinds.UNORDERED, node)
            return False
        return True

    def fold(self, node: n.Over) -> None:
        if self.sure and node.fold not in FOLDS:
            help = "there are " + ", ".join(f"`{fold} over`" for fold in FOLDS)
            self.report.add("TypeError", f"there is no `{node.fold} over`", node.span, help=help)

    def choice(self, node: n.Choice, among: Any, informed: Any, trained: Any, wrt: Any, share: Any) -> None:
        """MkChoiceMaker."""
        if not self.sure:
            return
        if isinstance(node.among, n.ListOf | n.SetOf) and not node.among.items:
            help = "name at least one Option"
            self.report.add("ValueError", "a choice among nothing", node.among.span, label="no Option", help=help)
        self._members(among, node.among, "Option")
        self._members(informed, node.informed, "Feature")
        self._kind(wrt, node.wrt, "Utility")
        self._trained(trained, node.trained)
        if isinstance(node.using, MODELS):
            help = "write `using tree(depth = 3)`, `using regret_tree()` or `using forest()`"
            self.report.add("TypeError", "`using` takes a model", node.using.span, label="no model", help=help)
        if node.spending is not None and not self._refuse(
            share, node.spending, "cannot be an amount", "amounts are public numbers"
        ):
            amounts.check_share(node.spending, self.report)

    def _members(self, value: Any, expr: n.Expr, kind: str) -> None:
        members = value.items if isinstance(value, Set) else value
        if isinstance(members, list) and isinstance(expr, n.ListOf | n.SetOf) and len(members) == len(expr.items):
            for member, item in zip(members, expr.items, strict=True):
                self._kind(member, item, kind)

    def _kind(self, value: Any, expr: n.Expr, kind: str) -> None:
        """What is evidently no `kind`: a literal, or a Part of another kind."""
        other = value.kind if isinstance(value, Part) else kind
        if isinstance(expr, LITERALS) or other != kind:
            article = {"Option": "an", "Utility": "a", "Feature": "a"}
            result = f"{article[other]} {other}" if other != kind else "this value"
            message = f"{result} stands where {article[kind]} {kind} belongs"
            self.report.add("TypeError", message, expr.span, label=f"no {kind}")


def source_text(node: n.Expr) -> str:
    """The name that is called."""
    match node:
        case n.Call(function=n.Name(id=name) | n.Attribute(name=name)):
            return name
    return "f"


def _example(source: n.Private) -> str:
    cube = isinstance(source.source, n.Call) and source.source.function == n.Name("counts", span=source.span)
    return f"{{{{ select {'sum(values)' if cube else 'count(*)'} from {source.name} with epsilon 0.1 }}}}"


def _arity_error(name: str, params: Sequence[Parameter], places: int, keywords: Sequence[str]) -> str:
    """Why the arguments of a call cannot fit, or an empty text."""
    kinds = {param.kind for param in params}
    by_place = [param.name for param in params if param.kind == ""]
    needed = [param.name for param in params if param.default is None and param.kind in ("", "name")]
    named = {param.name for param in params if param.kind in ("", "name")}
    least = sum(param in needed for param in by_place)
    count = f"{least} to {len(by_place)} arguments"
    if least == len(by_place):
        count = "no arguments" if not by_place else f"{least} argument" + ("s" if least > 1 else "")
    takes = f"`{name}` takes {count if '*' not in kinds else f'at least {least} argument' + 's' * (least != 1)}"
    if places > len(by_place) and "*" not in kinds:
        return f"{takes}, but {places} are given"
    bound = set(by_place[:places])
    for keyword in keywords:
        if keyword not in named and "**" not in kinds:
            return f"`{name}` has no parameter `{keyword}`"
        if keyword in bound:
            return f"the argument `{keyword}` of `{name}` is given twice"
        bound.add(keyword)
    missing = [param for param in needed if param not in bound]
    return f"{takes}: `{missing[0]}` is missing" if missing else ""
