"""What is wrong where the walk passes: above all, where a private value may not stand.

Printed, released, compared, branched on, iterated, taken for a number, given to a function of public values; and calls
and choices that evidently do not fit. What is not certain passes, and the privacy kernel decides at run time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from jostle.check import arguments, former
from jostle.check.abstract import kinds
from jostle.check.abstract.values import (
    Builtin,
    Closure,
    Domain,
    Handle,
    Items,
    Part,
    Set,
    Signature,
    private_handle,
)  # fmt: skip
from jostle.check.scopes import Report
from jostle.diagnostics import Diagnostic, Note
from jostle.language import facts
from jostle.language.builtins import TURNED, TURNED_IN_LIBRARY
from jostle.language.facts import Gives, Parameter, Reads
from jostle.language.operations import COMPARISONS, FOLDS
from jostle.language.row_mistakes import arity_error, usage
from jostle.records import replace
from jostle.source import Span
from jostle.syntax import nodes as n

LITERALS = n.Number | n.String | n.Constant | n.ListOf | n.SetOf | n.RecordOf | n.Range
MODELS = n.Number | n.String | n.Constant | n.RecordOf | n.Range | n.Part


class Labels:
    """Reports to `report`, or nothing without one. `sure`: what is passed now is certainly reached so."""

    def __init__(self, report: Report | None) -> None:
        self.report = Report() if report is None else report
        self.following = self.sure = report is not None

    @contextmanager
    def besides(self, wrong: bool) -> Iterator[None]:
        """What stands in something that is `wrong` as a whole is passed without a word: the way out replaces both."""
        was, self.sure = self.sure, self.sure and not wrong
        yield
        self.sure = was

    # Where a private value comes from ------------------------------------------------------------

    def trail(self, private: n.Private) -> tuple[Note, ...]:
        return (Note(private.span, f"`{private.name}` is declared private here"),) if self.following else ()

    def passed(self, value: object, span: Span, text: str) -> object:
        """The value after it took another name at `span`."""
        return value.passed(span, text) if isinstance(value, Handle) and value.trail else value

    def derived(self, value: object, table: object, span: Span, text: str) -> Any:
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

    def shown_to_people(self, value: object, expr: n.Expr, verb: str) -> None:
        """Printed, released or put into a message: also inside a container."""
        self._refuse(value, expr, f"cannot be {verb}")

    def compared(self, link: n.Binary, left: object, right: object) -> None:
        if link.op in COMPARISONS or link.op.endswith(("between", "like")):
            self._refuse(left, link.left, "cannot be compared")
            self._refuse(right, link.right, "cannot be compared")
        elif isinstance(left, Handle):
            self._refuse(left, link.left, "cannot be calculated with")
        elif isinstance(right, Handle):
            self._refuse(right, link.right, "cannot be calculated with")
        self.misused(kinds.of_operator(link, left, right), link)

    def branched(self, value: object, expr: n.Expr) -> None:
        if isinstance(value, Handle):
            self._refuse(value, expr, "cannot be a condition")
        self.misused(kinds.of_condition(value, expr.span), expr)

    def misused(self, fault: Diagnostic | None, expr: n.Node) -> None:
        """A value whose kind does not fit."""
        if fault is not None and self.sure:
            self.report.add(fault.kind, fault.message, expr.span, help=fault.help)

    def iterated(self, value: object, expr: n.Expr) -> None:
        if isinstance(value, Handle):
            table = private_handle(value)
            measured = f"measure it: {_example_query(table.declared)}; " if table is not None else ""
            help = f"{measured}`partition(…)` gives parts that can be iterated, under public keys"
            self._refuse(value, expr, "cannot be iterated", help)
        self.misused(kinds.of_walk(value, expr.span), expr)

    def indexed_rows(self, value: object, index: n.Index) -> bool:
        """Whether a table or a cube is indexed by a number."""
        by_place = len(index.args) == 1 and isinstance(index.args[0], n.Number)
        plain = by_place and not (index.keywords or index.trailing_comma)
        return isinstance(value, Handle) and plain and self._refuse(value, index, "cannot be indexed by value")

    def amount(self, amount: n.Amount, value: object, delta: object) -> None:
        for part, expr in ((value, amount.value), (delta, amount.delta)):
            if expr is not None and self._refuse(part, expr, "cannot be an amount", "amounts are public numbers"):
                return
        if self.sure:
            arguments.check_amount(amount, self.report)

    def unit(self, amount: n.Amount, owner: Handle | None) -> None:
        """An amount in ρ of a source that is counted in ε, one in ε of one in ρ, and a δ where the budget has none."""
        budget = owner.declared.budget if owner is not None else None
        if owner is None or budget is None or not self.sure or amount.unit == "share" or amount.is_wish:
            return
        source, unit = owner.declared.name, budget.amount.unit
        if amount.unit != unit:
            message = f"`{source}` is counted in {unit}, and {amount.unit} was given"
            self.report.add("TypeError", message, amount.span, help=f"write `with {unit} 0.1`", notes=owner.trail)
        elif amount.delta is not None and arguments.literal(amount.delta) != 0 and budget.amount.delta is None:
            message = f"the budget of `{source}` has no delta"
            help = "declare `budget epsilon 1, delta 1e-6`" if unit == "epsilon" else "leave the delta out"
            self.report.add("TypeError", message, amount.delta.span, help=help, notes=owner.trail)

    def open_keys(self, table: Handle, keys: Sequence[n.Expr]) -> None:
        """Dimensions of a cube whose values no description lists, and numbers in place of one, as of `bins = 10`."""
        for key in keys if table.exposures and self.sure else ():
            name = key.id if isinstance(key, n.Name) else ""
            if isinstance(key, n.Number):
                numbers = [one for one, domain in (table.schema or {}).items() if not isinstance(domain, Domain)]
                first = next((one.span.text for one in keys if isinstance(one, n.Name)), [*numbers, "age"][0])
                help = f"a range is cut by a division: `x = {first} / 10`"
                message = "this reads no column of the table"
                self.report.add("TypeError", message, key.span, label="no column", help=help)
            if isinstance((table.schema or {}).get(name), Domain):
                message = f"the values of `{name}` are not public, so it is no dimension of a cube"
                help = f'describe them: `{name}: {{"a", "b"}}`, or `{name}: 0..99`'
                self.report.add("OpenKeys", message, key.span, label="an open domain", help=help)

    def table(self, value: object, expr: n.Expr, names: Mapping[str, Any]) -> None:
        """What a select reads."""
        kind = kinds.kind_of(value)
        if kind not in (kinds.TEXT, kinds.NUMBER, kinds.BOOLEAN) or not self.sure:
            return
        help = 'write `from table("people.csv")`, or a name that a table has'
        if isinstance(value, str):
            help = f"write `from {value}`" if value in names else f"write `from table({expr.span.text})`"
        self.report.add("TypeError", f"a select reads a table or a cube, and this is {kind}", expr.span, help=help)

    def _trained(self, value: object, expr: n.Expr) -> bool:
        help = "train on public or generated data; the choice is then called on private data `with epsilon`"
        return self._refuse(value, expr, "cannot be trained on", help)

    def _refuse(self, value: object, expr: n.Expr, verb: str, help: str = "") -> bool:
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
                help=help or f"measure it: {_example_query(source, expr)}", notes=table.trail,
            )  # fmt: skip
        return True

    # Calls ---------------------------------------------------------------------------------------

    def call_fault(self, function: object, node: n.Call, args: Sequence[Any], keywords: dict[str, Any]) -> bool:
        """What is wrong with a call; false where the arguments cannot fit."""
        if not self.following:
            return True
        bound = list(zip((*node.args, *(keyword.value for keyword in node.keywords)), (*args, *keywords.values()),
                         strict=False))  # fmt: skip
        if self._turned(function, node, args):
            return True
        match function:
            case Builtin(row=row):
                return self._call_of_builtin(row, node, bound)
            case Signature(name=name, params=params):
                return self._typed(name, params, node, bound, f"write `{usage(name, params)}`")
            case Part(run=Closure() as run):
                if not self.call_fault(run, node, args, keywords):
                    return False
                help = "a Utility is evaluated on public data only"
                for expr, value in bound if function.kind == "Utility" else ():
                    self._refuse(value, expr, f"cannot be given to the Utility `{source_text(node)}`", help)
        return True

    def _call_of_builtin(self, row: facts.Builtin, node: n.Call, bound: list[tuple[n.Expr, Any]]) -> bool:
        wrong = [self._misread(row, value, expr) for expr, value in bound]
        if any(wrong) or row.reads is Reads.SOURCE:
            return True
        if not self._typed(row.name, row.parameters, node, bound, f"write `{row.usage}`"):
            return False
        if row.gives is Gives.SORTED and len(bound) == 1 and kinds.unordered(bound[0][1]):
            self.misused(kinds.unordered_items(bound[0][0].span), node)
            return False
        return True

    def _turned(self, function: Any, node: n.Call, args: Sequence[Any]) -> bool:
        """Whether the first two arguments stand in the order of the version before, as far as kinds tell."""
        built_in = isinstance(function, Builtin)
        name = function.row.name if built_in else getattr(function, "name", "")
        if name not in TURNED or len(node.args) < 2 or (built_in == (name in TURNED_IN_LIBRARY)):
            return False
        by_option = isinstance(args[0], Part) or kinds.kind_of(args[0]) == kinds.FUNCTION
        if not (by_option if name == "bootstrap" else isinstance(args[1], Handle) and args[1].kind == "table"):
            return False
        message, help = former.order(node)
        if built_in:  # for one version more it is understood
            self.report.add(former.KIND, message, node.span, label="the order of the version before", help=help)
        else:
            self.misused(kinds.fault(message, help), node)
        return True

    def _misread(self, row: facts.Builtin, value: object, expr: n.Expr) -> bool:
        """Whether a built-in is called with a private value that it does not take."""
        if row.reads in (Reads.PRINTS, Reads.DRAWS):
            return self._refuse(value, expr, f"cannot be {row.reads.value}")
        if row.reads is Reads.PUBLIC or (row.reads is Reads.CONTAINERS and isinstance(value, Handle)):
            return self._refuse(value, expr, f"cannot be passed to `{row.name}`")
        return row.gives is Gives.CHOICE and not isinstance(value, Handle) and self._trained(value, expr)

    def _typed(
        self, name: str, params: Sequence[Parameter], node: n.Call, bound: Sequence[tuple[n.Expr, Any]], usage: str
    ) -> bool:
        """Whether the arguments of a function may be of the kinds that it takes."""
        if arity_error(name, params, len(node.args), [keyword.name for keyword in node.keywords]):
            return False  # as a run says
        places = [param for param in params if param.kind in ("", "*")]
        by_name = {param.name: param for param in params}
        for at, (expr, value) in enumerate(bound):
            if at < len(node.args):
                param = places[min(at, len(places) - 1)] if places else None
            else:
                param = by_name.get(node.keywords[at - len(node.args)].name)
            fault = kinds.of_argument(name, param.takes, value, expr.span) if param is not None else None
            if param is not None and param.takes in kinds.COLUMNS and fault is None:
                fault = _of_columns(name, param.takes, value, bound[0][1])
            if fault is not None:
                self.misused(fault if fault.help else replace(fault, help=usage), expr)
                return False
        return True

    def fold(self, node: n.Over) -> None:
        if self.sure and node.fold not in FOLDS:
            help = "there are " + ", ".join(f"`{fold} over`" for fold in FOLDS)
            self.report.add("TypeError", f"there is no `{node.fold} over`", node.span, help=help)

    def choice(
        self, node: n.Choice, among: object, informed: object, trained: object, wrt: object, share: object
    ) -> None:
        """MkChoiceMaker."""
        if not self.sure:
            return
        if isinstance(node.among, n.ListOf | n.SetOf) and not node.among.items:
            help = "name at least one Option"
            self.report.add("ValueError", "a choice among nothing", node.among.span, label="no Option", help=help)
        self._members(among, node.among, "Option")
        self._part_kind(wrt, node.wrt, "Utility")
        if node.informed is not None:
            self._members(informed, node.informed, "Feature")
        if node.trained is not None:
            self._trained(trained, node.trained)
        if isinstance(node.using, MODELS):
            help = "write `using tree(depth = 3)`, `using regret_tree()` or `using forest()`"
            self.report.add("TypeError", "`using` takes a model", node.using.span, label="no model", help=help)
        if node.spending is not None and not self._refuse(
            share, node.spending, "cannot be an amount", "amounts are public numbers"
        ):
            arguments.check_share(node.spending, self.report)

    def _members(self, value: object, expr: n.Expr, kind: str) -> None:
        members = value.items if isinstance(value, Set) else value
        if isinstance(members, list) and isinstance(expr, n.ListOf | n.SetOf) and len(members) == len(expr.items):
            for member, item in zip(members, expr.items, strict=True):
                self._part_kind(member, item, kind)

    def _part_kind(self, value: object, expr: n.Expr, kind: str) -> None:
        """What is evidently no `kind`: a literal, or a Part of another kind."""
        other = value.kind if isinstance(value, Part) else kind
        if isinstance(expr, LITERALS) or other != kind:
            article = {"Option": "an", "Utility": "a", "Feature": "a"}
            result = f"{article[other]} {other}" if other != kind else "this value"
            message = f"{result} stands where {article[kind]} {kind} belongs"
            self.report.add("TypeError", message, expr.span, label=f"no {kind}")


def _of_columns(function: str, takes: str, value: object, table: object) -> Diagnostic | None:
    """Why a function of the library does not take the columns of these names."""
    names = value if isinstance(value, list) else [value]
    if not isinstance(table, Handle) or table.schema is None:
        return None
    faults = (kinds.of_column(function, takes, name, table.schema) for name in names if isinstance(name, str))
    return next(filter(None, faults), None)


def source_text(node: n.Expr) -> str:
    """The name that is called."""
    match node:
        case n.Call(function=n.Name(id=name) | n.Attribute(name=name)):
            return name
    return "f"


def _example_query(source: n.Private, rows: n.Expr | None = None) -> str:
    """A count of a source, or of its rows under a condition where it is indexed by one."""
    cube = isinstance(source.source, n.Call) and source.source.function == n.Name("counts", span=source.span)
    test = rows.args[0] if isinstance(rows, n.Index) and len(rows.args) == 1 else None
    text = test.span.text.replace(f"{source.name}.", "") if isinstance(test, n.Binary | n.Logic) else ""
    where = f" where {text}" if text else ""
    return f"{{{{ select {'sum(values)' if cube else 'count(*)'} from {source.name}{where} with epsilon 0.1 }}}}"
