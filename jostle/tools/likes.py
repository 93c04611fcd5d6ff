"""What is known of an answer before it is measured: its form, as a stand-in that has it.

A stand-in is a value of the kind, the length and the fields that the answer will have, whatever the data are. Its
numbers are all 1 and mean nothing; what is not even known by its kind is `ANY`. What a run refuses of a stand-in, a
place outside a list or a field that is not there, it refuses of every answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime
from inspect import isfunction, signature
from typing import Annotated, Any, NoReturn, get_args, get_origin, get_type_hints, is_typeddict

from jostle.diagnostics import Refusal
from jostle.formulas import Noised
from jostle.kernels.statistics import Report
from jostle.language.aggregates import AGGREGATES
from jostle.language.builtins import BUILTINS, DOMAINS
from jostle.language.facts import Effect, Gives
from jostle.language.forms import aggregates, keys_by_alias
from jostle.language.row_functions import ROW_FUNCTIONS
from jostle.lazy import np
from jostle.noise_laws import Laplace
from jostle.plan.kinds import kind_of as domain_kind
from jostle.plan.plan import Apply, Domain, RowExpr
from jostle.privacy.measurements.selects import Request, key_columns
from jostle.privacy.scores import Score, Scores
from jostle.run.evaluator import Evaluator
from jostle.run.externals import KERNELS, kernel_of
from jostle.run.fitting import kind_of
from jostle.run.library import function_of
from jostle.run.sequences import NumberColumn, column_of
from jostle.run.values import Builtin, Function, Grouped, Record, is_model, is_number, is_vector
from jostle.source import Span
from jostle.syntax import nodes as n
from jostle.syntax.walk import own_name

EVERYWHERE = frozenset({"NameError", "TypeError", "OpenKeys", "UnboundedSum", "PrivateValue"})
"""Kinds of refusals that are reported also where a run may never come by."""

MOST = 100_000
"""The items of a stand-in; of what is longer none is made."""


class Anything:
    """What is inside a stand-in and not known, but perhaps its kind; an `example` is of that kind. `item`: what each
    item of a list is like, as far as it is known."""

    def __init__(self, example: object = None, item: object = None) -> None:
        self.example, self.item = example, item


class SomeText(str):
    """A text of which only the kind is known, so that it names no column."""


ANY, ONE, A_SOURCE, A_TEXT, A_TRUTH = Anything(), Anything(), Anything(), Anything(SomeText("a")), Anything(True)
"""`ONE` is a cell of an answer: a number, a text, a date or none; `A_SOURCE` is public data that nobody opened."""
A_SCORE, SCORES = Anything(), Anything()
"""What is measured of private rows: a number, or several."""
A_LIST, A_RECORD, NUMBERS = Anything([]), Anything(Record()), Anything(NumberColumn())
NUMBER_LIST = Anything([], 1.0)
CELLS = (1.0, "a", date(2000, 1, 1), datetime(2000, 1, 1))
"""What a cell may be, one of a kind."""
TEXTS = frozenset({"str", *(op.name for op in ROW_FUNCTIONS.values() if op.gives == "text" and op.name not in DOMAINS)})
"""Functions that give a text."""


QUICK = frozenset({
    "arrays", "classifiers.growing", "graphical.model", "graphical.pairwise", "linear_algebra",
    "mixtures.centres", "mixtures.em", "mixtures.gaussians", "rowprograms.losses",
})  # fmt: skip
"""Modules of kernels that take no time to speak of."""

ADAPTIVE = frozenset({
    "adaptive", "agrid", "ahp", "dawa", "dawa_boxes", "dpcube", "mwem", "mwem_star", "privtree", "shrinkage",
    "tree_shrinkage", "ugrid", "uniform",
})  # fmt: skip
"""Options of the library whose answers have no error that is known: what they measure follows from answers."""


def form(value: object) -> object:
    """The form of what an operation made of stand-ins; None where it is not known."""
    inner = _form(value)
    return None if inner is ANY else inner


def _form(value: object) -> object:
    if isinstance(value, SomeGroups | Anything):
        return value
    if isinstance(value, bool | str) or value is None:
        return A_TRUTH if isinstance(value, bool) else A_TEXT if value is not None else ANY
    if is_number(value):
        return 1.0
    if is_vector(value):
        return np.ones(value.shape)
    if isinstance(value, Grouped):
        return Grouped({name: [_form(item) for item in column] for name, column in value.columns.items()}, value.keys)
    if isinstance(value, Record):
        return Record([(name, _form(item)) for name, item in value.items()])
    if isinstance(value, NumberColumn):
        return column_of([1.0] * len(value), of_numbers=True)
    if isinstance(value, list):
        return [_form(item) for item in value] if len(value) <= MOST else ANY
    return ANY


def is_open(value: object) -> bool:
    """Whether of a list, a record or a model only the kind is known, and of a model what it has."""
    like = like_of(value)
    it = like.example if isinstance(like, Anything) else None
    return isinstance(it, list | Record) or is_vector(it) or is_model(it)


def kind_alone(value: object) -> object:
    """What is known of what was made of a list, a record or a model of which only the kind is known."""
    if is_vector(value) or isinstance(value, NumberColumn):
        return NUMBERS
    if isinstance(value, list | Record):
        return A_RECORD if isinstance(value, Record) else A_LIST
    return Anything(value) if is_model(value) else None if isinstance(value, Grouped) else form(value)


def like_of(value: object) -> object:
    """What is known of a value, as a stand-in."""
    return value.like if isinstance(value, NotKnown) else value


def example(value: object) -> object:
    """A value of the same kind; None where that is not known."""
    like = like_of(value)
    return like.example if isinstance(like, Anything) else like


def stand_in(value: object) -> object:
    """A value, or one of its kind where only that is known."""
    like = example(value) if isinstance(value, NotKnown) else None
    return value if like is None else like


def operand(value: object, cell: object = None) -> object:
    """The same; None also where the kind of something in it is not known. `cell` stands for cells of answers."""
    return _whole(value.like if isinstance(value, NotKnown) else value, cell)


def _whole(like: object, cell: object) -> object:
    if isinstance(like, Anything):
        return cell if like is ONE else None if is_open(like) and not is_model(like.example) else like.example
    if isinstance(like, Grouped) and not isinstance(like, SomeGroups):
        columns = {name: _whole(column, cell) for name, column in like.columns.items()}
        return None if _lacks(columns.values()) else Grouped(columns, like.keys)
    if isinstance(like, Record):
        fields = {name: _whole(item, cell) for name, item in like.items()}
        return None if _lacks(fields.values()) else Record(fields)
    if isinstance(like, list) and any(isinstance(item, Anything | Record | list) for item in like):
        parts = {id(item): _whole(item, cell) for item in like}
        return None if _lacks(parts.values()) else [parts[id(item)] for item in like]
    return like


def _lacks(parts: Iterable[object]) -> bool:
    return any(part is None for part in parts)


def tried(work: Callable[..., object], *values: object, by_kind: bool = False) -> object:
    """The form of what is made of values like these, as far as it is known; refuses what is refused whatever cells of
    an answer are, which are of one kind for all: so one value at most may have such. `by_kind`: what is refused for a
    kind is refused whatever a list or a record holds."""
    examples = [example(value) for value in values if is_open(value)]
    refusals, unsure = [], sum(operand(value) is None for value in values if not (by_kind and is_open(value)))
    for cell in CELLS:
        like = [example(value) if by_kind and is_open(value) else operand(value, cell) for value in values]
        if _lacks(like):
            return None
        try:
            result = work(*like)
            return None if unsure else kind_alone(result) if examples else form(result)
        except Refusal as refusal:
            any_text = any(type(one) is str and value is not one for one, value in zip(like, values, strict=True))
            nameless = any_text or not all(map(is_model, examples))
            certain = ("TypeError", "PrivateValue") if nameless else ("TypeError", "PrivateValue", "NameError")
            if unsure > 1 or refusal.first.kind not in certain or (examples and refusal.__cause__ is not None):
                return None
            refusals.append(refusal)
    raise refusals[0]


def measured(value: object) -> object:
    """An example of a value that is not known, with numbers that were measured; None where its form is not known."""
    like = like_of(value) if isinstance(value, NotKnown) else None
    if is_number(like) or like is ONE:
        return Noised(1.0, Laplace(1.0))
    if isinstance(like, list | Record):
        parts = [measured(NotKnown(like=one)) for one in (like.values() if isinstance(like, Record) else like)]
        whole = bool(parts) and all(isinstance(part, Noised) for part in parts)
        return None if not whole else Record(zip(like, parts, strict=True)) if isinstance(like, Record) else parts
    if isinstance(like, Anything):
        return None if is_open(value) and not is_model(like.example) else like.example
    return like if isinstance(like, str | Function) else None


def common(values: Sequence[object]) -> object:
    """What is known of a value that is one of these."""
    likes = [value.like if isinstance(value, NotKnown) else form(value) for value in values]
    kinds, examples = {kind(NotKnown(like=like)) for like in likes}, [example(like) for like in likes]
    if len(kinds) != 1 or None in kinds:
        return None
    if all(like is likes[0] for like in likes):
        return likes[0]
    if kinds == {"a record"}:
        return _common_fields([one for one in examples if isinstance(one, Record)])
    if kinds == {"a list"}:
        return NUMBERS if all(like is NUMBERS or is_of_numbers(like) for like in likes) else A_LIST
    simple = is_number(examples[0]) or is_model(examples[0])
    return likes[0] if simple and len({type(one) for one in examples}) == 1 else None


def _common_fields(records: Sequence[Record]) -> object:
    if any([*one] != [*records[0]] for one in records):
        return A_RECORD
    return Record((name, inside(common([NotKnown(like=one[name]) for one in records]))) for name in records[0])


def kind(value: object) -> str | None:
    """What a person calls a value, or what is known of one; None where that is nothing."""
    it = example(value)
    several = isinstance(it, NumberColumn) or (is_vector(it) and it.ndim == 1)
    return "a list" if several else None if it is None else kind_of(it)


def is_of_numbers(like: object) -> bool:
    """Whether a stand-in, or a known value, is a number or numbers in a row."""
    return is_number(like) or is_vector(like) or (isinstance(like, list) and bool(like) and all(map(is_number, like)))


class Method(Builtin):
    """A method of a stand-in for a model."""


class SomeGroups(Grouped):
    """Stands for groups of which the names of the columns are known, and not how many there are."""


def of_select(node: n.Select, measurement: object) -> object:
    """What a select gives that asks this, as far as it is known."""
    names, keys = _names(node.columns), _names(node.keys)
    all_named = all(names) and all(keys) and len({*names, *keys}) == len(names) + len(keys)
    if not all_named or keys_by_alias(node, ()).per is not None:
        return None
    request = getattr(measurement, "request", None)
    values = _of_columns(node, request)
    if not keys:
        return form(values[0] if len(names) == 1 else Record(zip(names, values, strict=True)))
    groups = request.keys if isinstance(request, Request) and not request.open_keys else ()
    if len(groups) != len(keys) or node.having is not None or node.first is not None or node.limit is not None:
        return SomeGroups({name: [] for name in (*keys, *names)}, len(keys))
    steps = getattr(measurement, "steps", None)
    listed = _keys([list(key.values) for key in groups], None if steps is None else steps.until * steps.groups)
    if len(listed[0]) > MOST:
        return None
    columns = [*listed, *([value] * len(listed[0]) for value in values)]
    return Grouped(dict(zip([*keys, *names], columns, strict=True)), len(keys))


def _keys(values: list[list[object]], many: int | None) -> list[list[object]]:
    """The columns of the keys of groups; of running answers, so many unknown ones as are answered."""
    if many is None and math.prod(map(len, values)) <= MOST:
        return key_columns(values)
    return [[ANY] * (MOST + 1 if many is None else many) for _ in values]


def _names(parts: Sequence[n.Column] | Sequence[n.GroupKey]) -> list[str]:
    """What the columns of a select are called; empty for those without a name."""
    return [part.name or own_name(part.value) or "" for part in parts]


def _of_columns(node: n.Select, request: object) -> list[object]:
    calls = [id(call) for column in node.columns for call in aggregates(column.value)]
    by_call = dict(zip(calls, getattr(request, "aggregates", ()), strict=False))
    return [_of_column(column.value, by_call, request) for column in node.columns]


def _of_column(value: n.Expr, by_call: Mapping[int, object], request: object) -> object:
    """What a column of a select gives: of aggregates alone a number, where they are, and what is calculated of them."""
    match value:
        case n.RecordOf():
            return Record({name: _of_column(part, by_call, request) for name, part in value.items})
        case n.Binary(op="+" | "-" | "*" | "/", left=left, right=right):
            sides = [_of_column(side, by_call, request) for side in (left, right)]
            return 1.0 if all(map(is_number, sides)) else ONE
        case n.Call(function=n.Name(id="bounds")):
            return Record(low=ONE, high=ONE)
    called = value.function if isinstance(value, n.Call) else None
    row = AGGREGATES.get(called.id) if isinstance(called, n.Name) else None
    if isinstance(value, n.Number) or (row and (row.name == "count" or (row.bounded and not row.gives_moments))):
        return 1.0
    domains = request.table.domains if isinstance(request, Request) else {}
    for expr in getattr(by_call.get(id(value)), "expressions", ()):
        if not _is_of_dates(expr, domains):
            return {"number": 1.0, "text": A_TEXT}.get(domain_kind(expr, domains), ONE)
    return ONE


def _is_of_dates(expr: RowExpr, domains: Mapping[str, Domain]) -> bool:
    """Whether dates are in an expression: of their mean, a number, a date is made again."""
    parts = expr.args if isinstance(expr, Apply) else ()
    return domain_kind(expr, domains) in ("date", "time") or any(_is_of_dates(part, domains) for part in parts)


def of_function(function: Builtin) -> object:
    """What a function or a kernel of the library gives, whatever its arguments are."""
    if function.name in TEXTS:
        return A_TEXT
    row = BUILTINS.get(function.name)
    if row is not None and row.gives in (Gives.CHOICE, Gives.ADVISOR):
        return A_CHOICE
    if row is not None and row.effect is Effect.SCORES:
        return given_by(function_of(row) if row.function else function.body)
    of_kernel = function.body.__module__ == kernel_of.__module__ and function.name in KERNELS
    return given_by(kernel_of(function.name) if of_kernel else function.body)


# What functions of Python say that they give ------------------------------------------------------


def given_by(function: Callable[..., object]) -> object:
    """What a function gives whatever its arguments are, as its annotation says."""
    with suppress(NameError):  # of a name that only a checker of types loads
        return of_hint(get_type_hints(function, include_extras=True).get("return"))
    return None


def of_hint(hint: object) -> object:
    """A stand-in for what an annotation tells of; None where that is too little."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return Anything(_of_class(parts[0], parts[1]))
    if origin in (list, tuple):
        items = {*parts} - {...}
        return Anything([], of_hint(items.pop()) if len(items) == 1 else None)
    if hint in _PLAIN:
        return _PLAIN[hint]
    of = Score if Score in parts else origin or hint
    if not isinstance(of, type):
        return None
    if issubclass(of, Score):
        return SCORES if issubclass(of, Scores) else A_SCORE
    if hasattr(of, "jostle_members"):
        return Anything(_of_class(of)) if of is not Report else None
    if is_typeddict(of):
        return Record({name: inside(of_hint(kind)) for name, kind in get_type_hints(of).items()})
    return A_RECORD if issubclass(of, dict) else NUMBERS if of.__name__ == "ndarray" else None


_PLAIN = {float: 1.0, int: 1.0, str: A_TEXT, bool: A_TRUTH}


_MADE: dict[object, object] = {}


def _of_class(kind: Any, facts: str = "") -> object:
    """A stand-in for a model of this class, whose members are stand-ins as their annotations say, and for a report
    with these facts. What only some of its kinds have it may have."""
    kinds = [kind]
    for one in kinds:
        kinds += one.__subclasses__()
    kinds = [one for one in kinds if one.__module__ != __name__]
    key = (facts, *kinds)
    if key not in _MADE:
        all_of_them = {name: at for one in reversed(kinds) for name, at in one.jostle_members.items()}
        stand_in: Any = type(kind.__name__, (kind,), {"__module__": __name__, "jostle_members": all_of_them})
        stand_in.__abstractmethods__ = frozenset()  # nobody calls them
        stand_in.facts = dict.fromkeys(facts.split(), ANY)
        _MADE[key] = object.__new__(stand_in)  # a tree is made of trees
        fields = get_type_hints(kind, include_extras=True)
        for at in all_of_them.values():
            own = getattr(kind, at, None)
            getter = getattr(own, "fget", None) or getattr(own, "func", None)
            like = of_hint(fields[at]) if at in fields else given_by(getter) if getter is not None else None
            setattr(stand_in, at, _method(own) if isfunction(own) else inside(like))
    return _MADE[key]


def _method(function: Callable[..., object]) -> Callable[..., NoReturn]:
    """A method that takes what this one does, and gives a stand-in."""
    call = signature(function)

    def method(self: object, *args: object, **keywords: object) -> NoReturn:
        call.bind(self, *args, **keywords)
        raise Unknown(like=given_by(function))

    return method


# Values that are not known ------------------------------------------------------------------------


class NotKnown:
    """Stands for the value of a name that is not known; `of`: the option of the library that gives it, or empty;
    `like`: a value of its form, or none."""

    def __init__(self, of: str = "", like: object = None) -> None:
        self.of, self.like = of, like


class Unknown(Exception):
    """What is looked at depends on an answer, or takes long. `returned`: it is what a function gives; `called`: what
    the call at hand gives."""

    returned = called = False

    def __init__(self, of: str = "", like: object = None) -> None:
        super().__init__(of)
        self.value = NotKnown(of, like)


def inside(value: object) -> object:
    """What stands in a list or record, as a part of a stand-in."""
    like = like_of(value)
    return ANY if like is None else like


def item(source: object, items: Sequence[object]) -> NotKnown:
    """What is known of each item of a stand-in, which has these, where they have it in common."""
    if is_vector(source) and source.ndim == 1:
        return NotKnown(like=1.0)
    if isinstance(source, Anything):
        return NotKnown(like=source.item)
    if isinstance(source, Grouped):
        cells = {name: column[0] if len(column) else ONE for name, column in source.columns.items()}
        return NotKnown(like=Record(cells))
    return NotKnown(like=common(items))


def is_of_call(node: n.Stmt) -> bool:
    """Whether a statement gives a name what a call gives, or another name stands for."""
    value = node.value if isinstance(node, n.Assign) else None
    return isinstance(value.value if isinstance(value, n.Spending) else value, n.Call | n.Name)


class TooLong(Exception):
    """The walk ends here."""


class Names(dict[str, object]):
    """The names of a scope, some of which are not known."""

    def __getitem__(self, name: str) -> object:
        value = super().__getitem__(name)
        if isinstance(value, NotKnown):
            raise Unknown(value.of, value.like)
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


def _unanswered(*args: object, **keywords: object) -> NoReturn:
    raise Unknown


class SomeChoice:
    """Stands for a ChoiceMaker of which nothing is known."""

    name, jostle_parts = "", ()

    @property
    def jostle_fields(self) -> dict[str, object]:
        own = {word: Method(word, _unanswered) for word in ("pick", "runs", "evaluate")}
        return own | {"options": [], "features": []}

    def jostle_call(
        self, interp: Evaluator, args: Sequence[object], keywords: dict[str, object], span: Span | None
    ) -> NoReturn:
        raise Unknown

    def jostle_explain(self) -> NoReturn:
        raise Unknown(like=A_TEXT)


A_CHOICE = Anything(SomeChoice())
