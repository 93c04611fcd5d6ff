"""What is known of an answer before it is measured: its form, as a stand-in that has it.

A stand-in is a value of the kind, the length and the fields that the answer will have, whatever the data are. Its
numbers are all 1 and mean nothing; what is not even known by its kind is `ANY`. What a run refuses of a stand-in, a
place outside a list or a field that is not there, it refuses of every answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from inspect import isfunction, signature
from typing import Annotated, Any, NoReturn, get_args, get_origin, get_type_hints, is_typeddict

from jostle.diagnostics import Refusal
from jostle.formulas import Noised
from jostle.kernels.statistics import Report
from jostle.language.builtins import BUILTINS, DOMAINS
from jostle.language.facts import Effect, Gives
from jostle.language.row_functions import ROW_FUNCTIONS
from jostle.lazy import np
from jostle.noise_laws import Laplace
from jostle.privacy.measurements.selects import Request, key_columns
from jostle.privacy.scores import Score, Scores
from jostle.run.evaluator import Evaluator
from jostle.run.externals import KERNELS, hints_of, kernel_of, needs_of
from jostle.run.fitting import kind_of
from jostle.run.library import function_of
from jostle.run.sequences import NumberColumn
from jostle.run.values import Builtin, Grouped, Interval, JSet, Record, is_model, is_number, is_vector
from jostle.source import Span
from jostle.syntax import nodes as n

EVERYWHERE = frozenset({"NameError", "TypeError", "OpenKeys", "UnboundedSum", "PrivateValue"})
"""Kinds of refusals that are reported also where a run may never come by."""

MOST = 100_000
"""The items of a stand-in; of what is longer none is made."""


class Plain(float):
    """A number that is sure not to have an error; of other floats that is not known."""


class Anything:
    """What is inside a stand-in and not known, but perhaps its kind; an `example` is of that kind. `item`: what each
    item of a list is like, as far as it is known."""

    def __init__(self, example: object = None, item: object = None) -> None:
        self.example, self.item = example, item


class SomeText(str):
    """A text of which only the kind is known, so that it names no column."""


ANY, A_SOURCE, A_TEXT, A_TRUTH = Anything(), Anything(), Anything(SomeText("a")), Anything(True)
"""`A_SOURCE` is public data that nobody opened."""
A_SCORE, SCORES = Anything(), Anything()
"""What is measured of private rows: a number, or several."""
PLAIN = Plain(1.0)
A_LIST, A_RECORD, NUMBERS = Anything([]), Anything(Record()), Anything(NumberColumn([1.0]))
NUMBER_LIST, PLACES = Anything([1.0], 1.0), Anything([PLAIN], PLAIN)
NOISED = Noised(1.0, Laplace(1.0))
"""A number that was measured."""
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
    if value is None:
        return ANY
    if isinstance(value, bool | str):
        return A_TRUTH if isinstance(value, bool) else A_TEXT
    if isinstance(value, date):
        return Anything(value)
    if is_number(value):
        return Noised.of(1.0, value.origin) if type(value) is Noised else PLAIN if type(value) is Plain else 1.0
    if is_vector(value):
        return np.ones(value.shape)
    if isinstance(value, Grouped | Record):
        return _of_parts(value, _form)
    if isinstance(value, JSet) or (isinstance(value, Interval) and not value.real):
        return Anything(value, like_of(item(None, list(value))))
    if not isinstance(value, list) or len(value) > MOST:
        return ANY
    parts = {id(item): _form(item) for item in value}
    items = [parts[id(item)] for item in value]
    return NumberColumn(items) if isinstance(value, NumberColumn) else items


def _of_parts(value: Grouped | Record, work: Callable[[object], object]) -> object:
    """Groups or a record of what is made of each part; None where nothing is known of one."""
    parts = {name: work(part) for name, part in (value.columns if isinstance(value, Grouped) else value).items()}
    if _lacks(parts.values()):
        return None
    return Grouped(parts, value.keys) if isinstance(value, Grouped) else Record(parts)


def plain(value: object) -> object:
    """An example of which all numbers without an error are known as such."""
    if type(value) is list:
        return list(map(plain, value))
    return _of_parts(value, plain) if isinstance(value, Record) else Plain(value) if type(value) is float else value


def is_open(value: object) -> bool:
    """Whether of a list, a record, groups or a model only the kind is known, or not all that it holds."""
    like = like_of(value)
    it = like.example if isinstance(like, Anything) else like if isinstance(like, SomeGroups) else None
    partly = isinstance(like, list | Record) and _whole(like) is None
    return partly or isinstance(it, list | Record | Grouped) or is_vector(it) or is_model(it)


def is_some(value: object) -> bool:
    """Whether it is sure not to be none: a container, a model, and a number or date that was measured itself."""
    it = example(value)
    is_one = is_vector(it) or is_model(it) or isinstance(it, list | Record | Grouped | date)
    return is_one or (isinstance(it, Noised) and it.law is not None)


def are_apart(one: object, other: object) -> bool:
    """Whether one of two is none, and the other sure not to be."""
    beside = other if one is None else one if other is None else None
    return beside is not None and is_some(beside)


def has_items(value: object) -> bool:
    """Whether it is a container that is sure to hold something."""
    like = like_of(value)
    return isinstance(like, list | Record | Grouped) and not isinstance(like, SomeGroups) and bool(len(like))


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
    if isinstance(like, SomeGroups):
        return Grouped({name: [example(cell) for cell in column] for name, column in like.columns.items()}, like.keys)
    if isinstance(like, list | Record) and _whole(like) is None:
        return type(like)()
    return like.example if isinstance(like, Anything) else like


def stand_in(value: object) -> object:
    """A value, or one of its kind where only that is known."""
    like = example(value) if isinstance(value, NotKnown) else None
    return value if like is None else like


def operand(value: object) -> object:
    """The same; None also where the kind of something in it is not known."""
    return _whole(value.like if isinstance(value, NotKnown) else value)


def _whole(like: object) -> object:
    if isinstance(like, Anything | SomeGroups):
        return None if is_open(like) and not is_model(example(like)) else example(like)
    if isinstance(like, Grouped | Record):
        return _of_parts(like, _whole)
    if isinstance(like, list) and any(isinstance(item, Anything | Record | list) for item in like):
        parts = {id(item): _whole(item) for item in like}
        return None if _lacks(parts.values()) else [parts[id(item)] for item in like]
    return like


def _lacks(parts: Iterable[object]) -> bool:
    return any(part is None for part in parts)


def tried(work: Callable[..., object], *values: object, by_kind: bool = False) -> object:
    """The form of what is made of values like these, as far as it is known; refuses what is refused whatever they are.
    `by_kind`: what is refused for a kind is refused whatever a list or a record holds."""
    examples = [example(value) for value in values if is_open(value)]
    like = [example(value) if by_kind and is_open(value) else operand(value) for value in values]
    groups = [[*one.parts.values()][one.keys :] for one in examples if isinstance(one, Grouped)]
    if _lacks([*like, *(cell for columns in groups for column in columns for cell in column)]):
        return None
    try:
        result = work(*like)
    except Refusal as refusal:
        any_text = any(type(one) is str and value is not one for one, value in zip(like, values, strict=True))
        nameless = any_text or not all(map(is_model, examples))
        certain = ("TypeError", "PrivateValue") if nameless else ("TypeError", "PrivateValue", "NameError")
        if refusal.first.kind not in certain or (examples and refusal.__cause__ is not None):
            return None
        raise
    return kind_alone(result) if examples else form(result)


def measured(value: object) -> object:
    """An example of a value that is not known, whose numbers have the errors that they are known to have, or may have;
    None where its form is not known."""
    like = operand(value) if isinstance(value, NotKnown) else None
    if like is None and isinstance(value, NotKnown) and isinstance(it := example(value), list | Grouped) and len(it):
        like = _whole(it)
    return None if like is None else _with_errors(like)


def _with_errors(like: object) -> object:
    if is_number(like):
        return like if type(like) is Noised else float(like) if type(like) is Plain else NOISED
    if isinstance(like, Grouped | Record):
        return _of_parts(like, _with_errors)
    if isinstance(like, list):
        items = [_with_errors(item) for item in like]
        return None if _lacks(items) else NumberColumn(items) if isinstance(like, NumberColumn) else items
    return None if is_vector(like) else like


def column_of_groups(groups: SomeGroups, name: str) -> Anything:
    """What a column of so many groups is like."""
    (cell,) = groups.column(name)
    return Anything(NumberColumn([cell]) if is_number(cell) else [example(cell)], cell)


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
    if is_number(examples[0]):
        return 1.0
    return likes[0] if is_model(examples[0]) and len({type(one) for one in examples}) == 1 else None


def _common_fields(records: Sequence[Record]) -> object:
    if any([*one] != [*records[0]] for one in records):
        return A_RECORD
    return Record((name, inside(common([NotKnown(like=one[name]) for one in records]))) for name in records[0])


def kind(value: object) -> str | None:
    """What a person calls a value, or what is known of one; None where that is nothing."""
    it = example(value)
    return "a list" if isinstance(it, NumberColumn) or is_vector(it) else None if it is None else kind_of(it)


def is_of_numbers(like: object) -> bool:
    """Whether a stand-in, or a known value, is a number or numbers in a row."""
    return is_number(like) or is_vector(like) or (isinstance(like, list) and bool(like) and all(map(is_number, like)))


class Method(Builtin):
    """A method of a stand-in for a model."""


class SomeGroups(Grouped):
    """Stands for groups of which the names of the columns are known, and not how many there are."""


def of_select(
    node: n.Select, request: object, names: Sequence[str], columns: Mapping[str, Sequence[object]],
    measurement: object, unlisted: bool,
) -> object:  # fmt: skip
    """What a select gives that asks this, with keys of these names, of whose results, group by group, these are the
    first; `unlisted`: of keys that are not known."""
    cells, many = {name: inside(values[0]) for name, values in columns.items()}, len(names)
    cells |= dict.fromkeys(names, ANY) if unlisted else {}
    if not many:
        return form(next(iter(cells.values())) if len(cells) == 1 else Record(cells))
    is_cut = unlisted or node.having is not None or node.first is not None or node.limit is not None
    if is_cut or not isinstance(request, Request) or not request.table.private or request.open_keys:
        return SomeGroups({name: [cell] for name, cell in cells.items()}, many)
    steps = getattr(measurement, "steps", None)
    listed = _keys([list(key.values) for key in request.keys], None if steps is None else steps.until * steps.groups)
    if len(listed[0]) > MOST:
        return None
    keys = request.key_columns(listed) if steps is None else listed
    of = {name: [cell] * len(listed[0]) for name, cell in cells.items()}
    return Grouped(of | dict(zip(names, keys, strict=True)), many)


def _keys(values: list[list[object]], many: int | None) -> list[list[object]]:
    """The columns of the keys of groups; of running answers, so many unknown ones as are answered."""
    if many is None and math.prod(map(len, values)) <= MOST:
        return key_columns(values)
    return [[ANY] * (MOST + 1 if many is None else many) for _ in values]


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
    return of_hint(hints_of(function).get("return"))


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
    """A method that takes what this one does, and gives a stand-in; what is known of an argument has to fit."""
    call, needs = signature(function), needs_of(function)

    def method(self: object, *args: object, **keywords: object) -> NoReturn:
        for name, value in call.bind(self, *args, **keywords).arguments.items():
            if name in needs and value is not None:
                needs[name](value)
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

    returned = False

    def __init__(self, of: str = "", like: object = None, *, called: bool = False) -> None:
        super().__init__(of)
        self.value, self.called = NotKnown(of, like), called


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
        cells = {name: column[0] if len(column) else ANY for name, column in source.columns.items()}
        return NotKnown(like=Record(cells))
    return NotKnown(like=common(items))


def is_of_call(node: n.Stmt) -> bool:
    """Whether a statement gives a name what a call gives, or another name stands for."""
    value = node.value if isinstance(node, n.Assign) else None
    return isinstance(value.value if isinstance(value, n.Spending) else value, n.Call | n.Name)


class Names(dict[str, object]):
    """The names of a scope, some of which are not known."""

    def __getitem__(self, name: str) -> object:
        value = super().__getitem__(name)
        if isinstance(value, NotKnown):
            raise Unknown(value.of, value.like)
        return value


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
