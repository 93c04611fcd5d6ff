"""Expressions of the walk before a run, one function a form: what is known of each, of what is known of its parts.

What is not known raises `Unknown`, with its form where that is known; a run's own rules are asked of stand-ins.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NoReturn

from jostle.check.dry import forms
from jostle.check.dry.forms import EVERYWHERE, Names, NotKnown, Unknown
from jostle.check.dry.stand_ins import need_amount, need_keys, need_places, need_smooth, need_tables, of_unread
from jostle.diagnostics import Refusal
from jostle.language.forms import is_smooth
from jostle.language.row_mistakes import no_call, no_condition
from jostle.privacy.kernel.exposures import Handle
from jostle.privacy.measurements.gradual import Refinable
from jostle.privacy.measurements.selects import Answer
from jostle.run.expressions import COMPARED, index, linked
from jostle.run.externals import KERNELS
from jostle.run.interpreter import Interpreter
from jostle.run.looks import Looks
from jostle.run.margins import EXAMPLES
from jostle.run.operators import fold
from jostle.run.scope import Scope
from jostle.run.values import Builtin, Grouped, Interval, Record, RowForm, is_model, is_vector, kind_name
from jostle.source import Span
from jostle.syntax import nodes as n

MOST_WALKED = 100  # items of a known list, one by one
ARITHMETIC = frozenset({"+", "-", "*", "/", "%"})


class DryExpressions(Interpreter):
    """Evaluates expressions of which parts may not be known."""

    names = Names

    def __init__(self, *args: Any, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        self.selecting = self.blurred = False  # in a select; whether its rows are read with what is not known
        self.cell: object = None  # what stands for that
        self.places = set[int]()  # where
        self.calling: n.Call | None = None
        self.unsure = False  # in what a run may leave out: a branch, a loop, a function that nothing calls
        self.unpaid = frozenset({"NoEpsilon"})  # in the program itself it is known what pays
        self.unlisted: Sequence[n.GroupKey] = ()  # keys of the select at hand of which the values are not known
        self.expected: Callable[[], object] | None = None  # what the select at hand gives
        self.wishes: dict[Span, int] = {}  # what wanted errors take, in quanta, by where they are written
        self.parts: dict[int, object] = {}  # of an expression that is looked at, the values of its parts, by node
        self.forms: dict[type, Callable[[Any, Scope], object]] = {
            n.Index: self._index, n.Attribute: self._attribute, n.Binary: self._binary, n.RecordOf: self._record,
            n.ListOf: self._list, n.Comprehension: self._comprehension, n.Select: self._select, n.Call: self._call,
            n.Spending: self._spending, n.Unary: self._unary, n.Logic: self._logic, n.Conditional: self._conditional,
            n.Range: self._range, n.Over: self._over,
        }  # fmt: skip

    @property
    def everywhere(self) -> frozenset[str]:
        """Kinds of refusals that are reported where a run may never come by."""
        return EVERYWHERE if self.depth else EVERYWHERE | self.unpaid

    def value_of(self, value: object) -> object:
        if isinstance(value, NotKnown):
            raise Unknown(value.of, value.like)
        return value

    def note_wish(self, spend: n.Spend) -> None:
        """Notes what a wanted error takes, where just that was asked for."""
        door: Any = self.kernel
        if spend.amount.is_wish and door.last is not None and door.place == spend.span:
            self.wishes[spend.amount.span] = door.last.price.amount.value

    def part(self, node: n.Expr, scope: Scope) -> object:
        """The value of a part of an expression, or that it is not known."""
        try:
            return self.eval(node, scope)
        except Unknown as unknown:
            return unknown.value

    def public_answers(self, node: n.Expr, scope: Scope, many: int) -> object:
        value = self.part(node, scope)
        if isinstance(value, NotKnown) and forms.kind(value) in (None, "a number", "a list", "a grouped result"):
            return [0.0] * many  # zeros agree with one another, and a plan is the same whatever stands there
        return self.value_of(value)

    def _evaluated(self, node: n.Expr, scope: Scope, *parts: tuple[n.Expr, object]) -> object:
        """What a run makes of an expression whose parts have these values."""
        self.parts |= {id(part): value for part, value in parts}
        try:
            return super().eval(node, scope)
        except Unknown:
            raise Unknown from None  # what is like a part of it is not like the whole
        finally:
            for part, _ in parts:
                self.parts.pop(id(part), None)

    def _tried(self, node: n.Expr, scope: Scope, *parts: tuple[n.Expr, object]) -> object:
        """The form of an expression whose parts are like these; refuses what a run refuses whatever they are."""
        exprs, values = [part for part, _ in parts], [value for _, value in parts]

        def work(*of: object) -> object:
            return self._evaluated(node, scope, *zip(exprs, of, strict=True))

        return forms.tried(work, *values, by_kind=True)

    def _index(self, node: n.Index, scope: Scope) -> object:
        value = self.part(node.value, scope)
        if isinstance(value, Handle) or len(node.args) != 1:
            return self._of_several(value, node, scope)
        at = self.part(node.args[0], scope)
        if isinstance(at, NotKnown) and forms.kind(at) not in (None, *map(kind_name, EXAMPLES.values())):
            self._evaluated(node, scope, (node.value, [1.0]), (node.args[0], forms.operand(at)))
        if isinstance(at, NotKnown) and forms.kind(at) == "a number" and isinstance(value, list):
            raise Unknown(like=forms.item(value, value).like)
        if not isinstance(value, NotKnown):
            return self._evaluated(node, scope, (node.value, value), (node.args[0], at))
        if value.like is None or isinstance(value.like, forms.Anything):
            like = self._tried(node, scope, (node.value, value), (node.args[0], at))
            raise Unknown(like=forms.item(value.like, ()).like if forms.is_open(value) else like)
        self._of_form(value.like, at, node, scope)

    def _of_form(self, like: object, at: object, node: n.Index, scope: Scope) -> NoReturn:
        """What an element of a value of this form is like."""
        if isinstance(like, forms.SomeGroups) and isinstance(at, str) and at in like.parts:
            raise Unknown(like=forms.column_of_groups(like, at))
        if isinstance(at, NotKnown) and isinstance(like, Grouped) and forms.kind(at) == "a boolean":
            keys = [] if isinstance(like, forms.SomeGroups) else like.column(next(iter(like.parts)))
            at = at if any(isinstance(key, bool) for key in keys) else False  # which is the key of no group
        if isinstance(at, NotKnown) or isinstance(like, forms.SomeGroups):
            raise Unknown
        if isinstance(at, str | bool) and isinstance(like, Grouped) and at not in like.parts:
            keys = like.column(next(iter(like.parts)))
            listed = not any(isinstance(key, forms.Anything) for key in keys)
            at = at if like.keys != 1 or listed else 0.0  # the group of a key is like the first
        raise Unknown(like=forms.form(self._evaluated(node, scope, (node.value, like), (node.args[0], at))))

    def _of_several(self, value: object, node: n.Index, scope: Scope) -> object:
        """Of a table, conditions on its columns; of a grouped result, a value for each key."""
        if isinstance(value, NotKnown) and isinstance(value.like, Grouped) and not node.keywords:
            raise Unknown(like=self._group_of(value.like, node, scope))
        if isinstance(value, NotKnown):
            forms.tried(lambda of: self._evaluated(node, scope, (node.value, of)), value)
        return self._evaluated(node, scope, (node.value, value))

    def _group_of(self, groups: Grouped, node: n.Index, scope: Scope) -> object:
        """What the group of several keys is like: that of the keys where all are listed, else the first."""
        at = [self.part(arg, scope) for arg in node.args]
        if isinstance(groups, forms.SomeGroups):
            return None
        keys = [key for name in list(groups.parts)[: groups.keys] for key in groups.column(name)]
        if len(at) == groups.keys and any(isinstance(one, forms.Anything | NotKnown) for one in (*keys, *at)):
            return forms.form(index(groups, 0.0))
        return forms.form(self._evaluated(node, scope, (node.value, groups), *zip(node.args, at, strict=True)))

    def _attribute(self, node: n.Attribute, scope: Scope) -> object:
        value = self.part(node.value, scope)
        if isinstance(value, Refinable) and node.name == "paid":
            raise Unknown(like=forms.PLAIN)  # what its answers have cost, which nothing pays for here
        if not isinstance(value, NotKnown):
            return self.value_of(self._evaluated(node, scope, (node.value, value)))
        like = value.like
        if is_model(forms.example(value)):
            like = forms.example(value)
        elif isinstance(like, forms.SomeGroups):
            self._evaluated(node, scope, (node.value, forms.example(like)))
            raise Unknown(like=forms.column_of_groups(like, node.name))
        elif like is None or isinstance(like, forms.Anything):
            raise Unknown(like=self._tried(node, scope, (node.value, value)))
        field = self._evaluated(node, scope, (node.value, like))
        if isinstance(field, Builtin):
            return forms.Method(field.name, field.body)
        raise Unknown(like=forms.form(field))

    def _binary(self, node: n.Binary, scope: Scope) -> object:
        left, right = self.part(node.left, scope), self.part(node.right, scope)
        if not isinstance(left, NotKnown) and not isinstance(right, NotKnown):
            return self._operated(node, scope, left, right)
        if node.op in ("==", "!=") and forms.are_apart(left, right):
            return node.op == "!="
        one, two = (side.like if isinstance(side, NotKnown) else side for side in (left, right))
        if forms.is_open(one) or forms.is_open(two):
            raise Unknown(like=forms.tried(partial(self._operated, node, scope), left, right, by_kind=True))
        if node.op == "+" and type(one) is list and type(two) is list:
            raise Unknown(like=forms.form(one + two))
        same = isinstance(node.left, n.Name | n.Attribute) and node.left.span.text == node.right.span.text
        if node.op == "-" and same and (isinstance(one, float) or is_vector(one)):
            return self._operated(node, scope, one, two)  # itself less itself is 0
        if node.op in ARITHMETIC and forms.is_of_numbers(one) and forms.is_of_numbers(two):
            raise Unknown(like=forms.form(self._operated(node, scope, one, two)))
        raise Unknown(like=self._by_kinds(node, left, right, scope))

    def _by_kinds(self, node: n.Binary, left: object, right: object, scope: Scope) -> object:
        """What an operation gives of values of these kinds, of which that of one may not be known."""
        one, two = forms.operand(left), forms.operand(right)
        itself = not self.unsure  # `none`, which is of a kind of its own; a loop may begin with it
        if (one is None and not (itself and left is None)) or (two is None and not (itself and right is None)):
            if not any(isinstance(side, Handle) and side.private for side in (one, two)):
                form = forms.tried(partial(self._operated, node, scope), left, right)
                return forms.A_TRUTH if node.op in COMPARED else form
            one, two = (1.0 if side is None else side for side in (one, two))
        try:
            return forms.form(self._operated(node, scope, one, two))
        except Refusal as refusal:
            if refusal.first.kind in ("TypeError", "PrivateValue"):
                raise
            return None

    def _truth(self, node: n.Expr, scope: Scope) -> bool:
        value = self.part(node, scope)
        if not isinstance(value, NotKnown):
            return self.truth(value, node)
        kind = forms.kind(value)
        if kind not in (None, "a boolean"):
            raise Refusal(no_condition(str(kind), node.span.text)).at(node.span)
        raise Unknown(like=forms.A_TRUTH)

    def _unary(self, node: n.Unary, scope: Scope) -> object:
        if node.op == "not":
            return not self._truth(node.operand, scope)
        value = self.part(node.operand, scope)
        if not isinstance(value, NotKnown):
            return self._evaluated(node, scope, (node.operand, value))
        raise Unknown(like=self._tried(node, scope, (node.operand, value)))

    def _logic(self, node: n.Logic, scope: Scope) -> bool:
        decided, unknown = node.op == "or", False
        for operand in node.operands:
            try:
                if self._truth(operand, scope) == decided and not self.trying:
                    return decided
            except Unknown:
                unknown = True
            except Refusal as refusal:
                if not unknown or refusal.first.kind in self.everywhere:
                    raise
        if unknown:
            raise Unknown(like=forms.A_TRUTH)
        return not decided

    def _conditional(self, node: n.Conditional, scope: Scope) -> object:
        try:
            holds = self._truth(node.test, scope)
            if self.trying:
                self.part(node.other if holds else node.then, scope)
            return self.eval(node.then if holds else node.other, scope)
        except Unknown as unknown:
            if unknown.value.like is not forms.A_TRUTH:
                raise
        values = []
        for branch in (node.then, node.other):
            try:
                values.append(self.part(branch, scope))
            except Refusal as refusal:
                if refusal.first.kind in self.everywhere:
                    raise
        raise Unknown(like=forms.common(values))

    def _operated(self, node: n.Binary, scope: Scope, left: object, right: object) -> object:
        """What a run makes of two values."""
        self.parts[id(node.right)] = right
        try:
            return linked(self, node, left, scope)
        finally:
            self.parts.pop(id(node.right), None)

    def _record(self, node: n.RecordOf, scope: Scope) -> object:
        parts = [(name, item, self.part(item, scope)) for name, item in node.items]
        if not any(isinstance(value, NotKnown) for _, _, value in parts):
            return self._evaluated(node, scope, *((item, value) for _, item, value in parts))
        raise Unknown(like=Record([(name, forms.inside(value)) for name, _, value in parts]))

    def _list(self, node: n.ListOf, scope: Scope) -> object:
        parts = [(item, self.part(item, scope)) for item in node.items]
        if not any(isinstance(value, NotKnown) for _, value in parts):
            return self._evaluated(node, scope, *parts)
        raise Unknown(like=[forms.inside(value) for _, value in parts])

    def _comprehension(self, node: n.Comprehension, scope: Scope) -> object:
        source = self.part(node.source, scope)
        need_places(self, node, scope)
        try:
            return self._evaluated(node, scope, (node.source, source))
        except Unknown:
            items = self._of_items(node, source, scope)
        some = forms.Anything([]) if node.flat or node.condition is not None else items
        raise Unknown(like=None if node.kind == "set" else some)

    def _of_items(self, node: n.Comprehension, source: object, scope: Scope) -> object:
        """What a comprehension makes of each item, or some list of it where it is not known how many there are."""
        items: Any = forms.like_of(source)
        span, numbers = node.source.span, isinstance(items, Interval) and not items.real
        sized = is_vector(items) or (isinstance(items, list | Grouped) and not isinstance(items, forms.SomeGroups))
        many = int(items.count) if numbers else len(items) if sized else None
        if items is source and many is not None and many <= MOST_WALKED:
            return [self._of_item(node, item, scope) for item in self.walk(items, span)]
        like = NotKnown(like=[1.0] if numbers else forms.form(items)) if items is source else source
        unread = items is source and forms.like_of(like) is None
        one = forms.ANY if unread else self._of_item(node, self.item(like, span), scope)
        return [one] * many if many is not None and many <= forms.MOST else forms.Anything([], one)

    def _range(self, node: n.Range, scope: Scope) -> object:
        ends = self.part(node.low, scope), self.part(node.high, scope)
        if not any(isinstance(end, NotKnown) for end in ends):
            return self._evaluated(node, scope, (node.low, ends[0]), (node.high, ends[1]))
        raise Unknown(like=self._tried(node, scope, (node.low, ends[0]), (node.high, ends[1])))

    def _over(self, node: n.Over, scope: Scope) -> object:
        source = self.part(node.source, scope)
        if not isinstance(source, NotKnown):
            with suppress(Unknown):
                return self._evaluated(node, scope, (node.source, source))
            source = NotKnown(like=forms.form(source))
        span, value = node.source.span, None
        names = self.item_names((node.name,), self.item(source, span), span, scope)
        try:
            value = self.part(node.body, Scope(scope, names))
        except Refusal as refusal:
            if refusal.first.kind in self.everywhere:
                raise
        if not isinstance(value, NotKnown):
            raise Unknown
        like = forms.tried(lambda one: fold(node.fold, [1.0], [one]), value, by_kind=True)
        raise Unknown(
            like=like if not node.fold.startswith("arg") else forms.like_of(dict.__getitem__(names, node.name))
        )

    def item_names(self, names: tuple[str, ...], one: object, span: Span, scope: Scope) -> Names:
        """The names of an item, with what each is or is like; refuses an item that has not so many."""
        if len(names) == 1:
            return Names({names[0]: one})
        if not isinstance(one, NotKnown):
            self.bind(names, one, inner := Scope(scope), span)
            return Names(inner.names)
        forms.tried(lambda item: self.bind(names, item, Scope(scope), span), one, by_kind=forms.kind(one) != "a list")
        parts = one.like if isinstance(one.like, list) and len(one.like) == len(names) else [None] * len(names)
        return Names({name: NotKnown(like=like) for name, like in zip(names, parts, strict=True)})

    def _of_item(self, node: n.Comprehension, one: object, scope: Scope) -> object:
        """What a comprehension makes of an item, which may not be known."""
        inner = Scope(scope, self.item_names(node.names, one, node.source.span, scope))
        try:
            if node.condition is not None:
                with suppress(Unknown):
                    if not self._truth(node.condition, inner):
                        return forms.ANY
            return forms.inside(self.part(node.item, inner))
        except Refusal as refusal:
            if refusal.first.kind in self.everywhere:
                raise
            return forms.ANY

    def item(self, source: object, span: Span) -> NotKnown:
        """What is known of the items of a value; refuses one that has none."""
        like = forms.operand(source) if isinstance(source, NotKnown) else None
        items = list(self.walk(like, span)) if like is not None else []
        return forms.item(source.like, items) if isinstance(source, NotKnown) else NotKnown()

    def _call(self, node: n.Call, scope: Scope) -> object:
        if id(node) in self.aggregates:
            value = super().eval(node, scope)
            if isinstance(value, NotKnown):
                raise Unknown(like=value.like, called=True)
            return value
        around, self.selecting, self.calling = (self.selecting, self.calling), False, node
        try:
            function = self.part(node.function, scope)
            kind = forms.kind(function)
            of_data = isinstance(function, Handle) and not hasattr(function, "jostle_call")
            if of_data or kind not in (None, "a function", "a ChoiceMaker"):
                raise Refusal(no_call(kind_name(function) if of_data else str(kind))).at(node.span)
            self.parts[id(node.function)] = function
            for first in node.args[:1] if isinstance(function, RowForm) else ():
                value = self.part(first, scope)
                groups = isinstance(forms.like_of(value), forms.SomeGroups)
                example = forms.example(value) if groups else forms.operand(value)
                example = example if forms.kind(value) is not None else None
                self.parts[id(first)] = value if example is None else example
            return super().eval(node, scope)
        finally:
            self.selecting, self.calling = around
            for part in (node.function, *node.args[:1]):
                self.parts.pop(id(part), None)

    def _spending(self, node: n.Spending, scope: Scope) -> object:
        around, self.calling = self.calling, node.value if isinstance(node.value, n.Call) else None
        need_amount(self, node.spend.amount, scope)
        try:
            return super().eval(node, scope)
        except Refusal as refusal:
            parts = [self.part(arg, scope) for arg in node.value.args] if isinstance(node.value, n.Call) else []
            if refusal.first.kind == "NoEpsilon" and any(isinstance(part, NotKnown) for part in parts):
                raise Unknown from None  # of public data, nothing has to pay
            raise
        except Unknown as unknown:
            if not unknown.called and isinstance(node.value, n.Call):
                with suppress(Refusal):  # an amount that is not known pays for what is known by its form
                    unknown.value, unknown.called = NotKnown(like=forms.common([self.part(node.value, scope)])), True
            raise
        finally:
            self.calling = around

    def _select(self, node: n.Select, scope: Scope) -> object:
        if node.spend is not None and not isinstance(node.spend.amount.value, n.Number):
            need_amount(self, node.spend.amount, scope)
        if is_smooth(node):
            need_smooth(self, node, scope)
        need_tables(self, node, scope)
        self.unlisted = need_keys(self, node, scope) if node.keys else ()
        around = self.blurred, self.selecting
        self.kernel.last, self.expected, self.blurred, self.selecting = None, None, False, True  # type: ignore[attr-defined]
        try:
            with suppress(Unknown):
                if self.unlisted:
                    self._of_unlisted(node, scope, self.unlisted)
                value = self._selected(node, scope)
                if not self.blurred:
                    return value
            like = None
            if self.joint is None:
                like = of_unread(self, node, scope) if self.expected is None else self.expected()
            if self.blurred:
                self._whatever(node, scope)
            elif node.spend is not None:
                self.note_wish(node.spend)
            raise Unknown(like=like)
        finally:
            self.blurred, self.selecting = around

    def expect(
        self, node: n.Select, request: object, keys: Sequence[str], answer: Answer,
        columns: Callable[[Answer], Mapping[str, Sequence[object]]],
    ) -> None:  # fmt: skip
        """Keeps what the results of a select are like."""
        values = [[NotKnown(like=forms.form(forms.plain(one[0])))] for one in answer.values]
        of = Answer([[NotKnown(like=forms.form(key[0]))] for key in answer.keys], values)
        door, unlisted, gives = self.kernel, bool(self.unlisted), partial(forms.of_select, node, request, keys)
        self.expected = lambda: gives(columns(of), door.last, unlisted)  # type: ignore[attr-defined]

    def _of_unlisted(self, node: n.Select, scope: Scope, keys: Sequence[n.GroupKey]) -> None:
        """Raises what is known of a select by keys that are not known: with one of a kind that fits in their place."""
        looks, bare_left, self.looks = self.looks, self.bare_left, Looks()
        try:
            for cell in EXAMPLES.values():
                self.parts |= {id(key.over): [cell] for key in keys}
                with suppress(Refusal):
                    super().eval(node, scope)
        finally:
            self.looks, self.bare_left = looks, bare_left
            for key in keys:
                self.parts.pop(id(key.over), None)

    def _selected(self, node: n.Select, scope: Scope) -> object:
        try:
            return super().eval(node, scope)
        except Refusal as refusal:
            if not self.blurred or refusal.first.kind in ("NameError", "PrivateValue"):
                raise
            raise Unknown from None

    def _whatever(self, node: n.Select, scope: Scope) -> None:
        """Refuses a select that is refused whatever it is that its rows are read with and that is not known."""
        refusals = list[Refusal]()
        self.places.clear()
        try:
            for self.cell in (*EXAMPLES.values(), [1.0], ["a"]):
                try:
                    super().eval(node, scope)
                    return
                except Refusal as refusal:
                    if refusal.first.kind not in EVERYWHERE | {"NoEpsilon"}:
                        return
                    refusals.append(refusal)
                if not self.places:
                    break  # of all the kind is known
        except Unknown:
            return
        finally:
            self.cell = None
        if len(self.places) < 2:  # of several each may be of another kind
            raise refusals[0]

    def structure(
        self, function: Builtin, args: Sequence[object], keywords: dict[str, object] | None, span: Span | None
    ) -> object:
        """What a function that looks at no numbers gives: `len` is known, where the length is."""
        whole = function.name == "answer"  # of lists of numbers alone
        values = [forms.operand(value) if whole else forms.like_of(value) for value in args]
        if function.name in KERNELS and not all(map(is_vector, values)):
            raise Unknown
        formless = any(value is None or isinstance(value, forms.Anything | forms.SomeGroups) for value in values)
        if formless or any(isinstance(v, NotKnown) for v in (keywords or {}).values()):
            raise Unknown(like=forms.of_function(function) if whole else None)
        result = super().call(function, values, keywords, span)
        if function.name == "len":
            return result
        raise Unknown(like=forms.form(result))
