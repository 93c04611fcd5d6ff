"""Whether the arguments of a call are of the kinds that its function takes.

A row of the table of built-ins has a word for what each parameter takes. What a function of the library takes follows
from what it passes on, on every way through its body. A run asks when a call is refused, and says it in place of what
was refused inside; the walk before a run asks before each call, also of arguments of which only the kind is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice, permutations

from jostle.diagnostics import Diagnostic, did_you_mean
from jostle.language.builtins import BUILTINS
from jostle.language.facts import Builtin as Row
from jostle.language.facts import Effect, Parameter, Reads
from jostle.language.row_mistakes import usage
from jostle.plan.plan import Categories, Domain, Open, Real, listed
from jostle.privacy.kernel.handles import Table
from jostle.records import replace
from jostle.run.externals import of_kernel, parameters_of
from jostle.run.faults import LIBRARY
from jostle.run.sequences import NumberColumn
from jostle.run.values import REQUIRED, Builtin, Function, JSet, Part, is_model, is_vector, kind_name
from jostle.source import Span
from jostle.syntax import nodes as n
from jostle.syntax.walk import bound_in, children, every

NUMBER, TEXT, BOOLEAN, LIST, SET = "a number", "a text", "a boolean", "a list", "a set"
RECORD, RANGE, FUNCTION, GROUPED = "a record", "a range", "a function", "a grouped result"
CHOICE, DATE, TIME, WATCH = "a ChoiceMaker", "a date", "a time", "a watch for a threshold"
TABLE, RECORDS, CUBE, VECTORS, COLUMN, SCORE, WORKLOAD = (
    "a table", "weighted records", "a cube of counts", "vectors", "a column", "a score", "a workload"
)  # fmt: skip
PUBLIC = frozenset({NUMBER, TEXT, BOOLEAN, LIST, SET, RECORD, RANGE, FUNCTION, GROUPED, CHOICE, DATE, TIME})
OF_HANDLES = frozenset({TABLE, RECORDS, CUBE, VECTORS, COLUMN, SCORE, WORKLOAD})
_MANY = frozenset({LIST, SET, RANGE, GROUPED})

TAKEN = {
    "table": frozenset({TABLE}),
    "tabular": frozenset({TABLE, RECORDS}),
    "filtered": frozenset({TABLE, RECORDS, CUBE, VECTORS}),
    "records": frozenset({RECORDS}),
    "cube": frozenset({CUBE}),
    "rows": frozenset({TABLE, CUBE, VECTORS}),
    "queries": frozenset({WORKLOAD}),
    "shape": frozenset({CUBE, LIST}),
    "points": frozenset({TABLE, LIST}),
    "strategy": frozenset({LIST}),
    "number": frozenset({NUMBER}),
    "choice": frozenset({CHOICE}),
    "function": frozenset({FUNCTION}),
    "classifier": frozenset({"a classifier", "a tree model"}),
    "regression": frozenset({"a regression"}),
    "text": frozenset({TEXT}),
    "numbers": _MANY,
    "each": _MANY | {NUMBER},
    "items": _MANY | {RECORD},
    "options": frozenset({LIST, SET, RANGE}),
    "pairs": frozenset({LIST, SET}),
    "utilities": frozenset({LIST, SET, GROUPED, SCORE}),
    "edges": frozenset({LIST, RANGE}),
    "dimensions": frozenset({NUMBER, LIST}),
    "list": frozenset({LIST}),
    "matrix": frozenset({LIST}),
    "component": frozenset({LIST}),
    "record": frozenset({RECORD}),
    "watch": frozenset({WATCH}),
    "truth": frozenset({BOOLEAN}),
    "source": OF_HANDLES,
    "sized": _MANY | {RECORD, TEXT},
    "measured": frozenset({NUMBER, LIST, SET, CUBE, SCORE}),
    "number column": frozenset({TEXT, LIST}),
    "column of values": frozenset({TEXT, LIST}),
    "column": frozenset({TEXT, LIST}),
    "any column": frozenset({TEXT, LIST}),
    "number columns": frozenset({LIST}),
    "columns": frozenset({LIST}),
}
"""The kinds that a word of a signature allows."""
WORDS = {
    "choice": "a ChoiceMaker", "function": "a function", "classifier": "a classifier", "regression": "a regression",
    "number": "a number", "text": "a text", "numbers": "a list of numbers", "each": "a number or a list of numbers",
    "items": "a list", "sized": "a list or a text", "measured": "private counts or scores",
    "table": "a table", "cube": "a cube of counts", "rows": "a table or a cube",
    "tabular": "a table", "filtered": "a table or a cube", "records": "weighted records",
    "points": "a table, or a list of points", "queries": "a workload",
    "options": "a set or list to choose from", "pairs": "pairs of a name and a value",
    "utilities": "a list of utilities", "edges": "a list of edges",
    "dimensions": "how many dimensions, or lists of names", "list": "a list", "matrix": "a list of rows",
    "component": "a list of numbers or of rows", "record": "a record", "source": "a private source",
    "watch": "a watch", "truth": "true or false", "shape": "a cube of counts", "strategy": "a strategy of the library",
    **dict.fromkeys(("number column", "column of values", "column", "any column"), "the name of a column"),
    **dict.fromkeys(("number columns", "columns"), "a list of columns"),
}  # fmt: skip
COLUMNS = ("number column", "column of values", "column", "number columns", "columns", "any column")
"""The words for the name of a column of the table that stands first, or a list of such names; the narrowest first."""
_NO_NUMBERS = frozenset({TEXT, BOOLEAN, RECORD, FUNCTION, GROUPED})
UNFIT = {
    **dict.fromkeys(("numbers", "each", "component"), _NO_NUMBERS),
    **dict.fromkeys(COLUMNS, frozenset({NUMBER})),
    "matrix": _NO_NUMBERS | {NUMBER}, "pairs": PUBLIC - {LIST}, "utilities": _NO_NUMBERS,
}  # fmt: skip
"""The kinds that no item of a list has, by the word that allows the list."""
OF_DATA = frozenset({
    "table", "tabular", "filtered", "records", "cube", "rows", "points", "queries", "shape", "strategy", "measured",
    "source",
})  # fmt: skip
"""The words of a signature that tell tables, cubes and workloads apart."""

OF_KERNELS = {
    "shape": "shape", "workload": "queries", "seed": "number", "ridge": "number",
    "matrix": "matrix", **dict.fromkeys(("right", "a", "b"), "component"),
}  # fmt: skip
"""What a kernel of the library takes, by the names that the parameters of all kernels have."""
OF_COLUMNS = {
    "_number_column": "number column", "_number_columns": "number column", "_values": "column of values",
    "_column": "column", "_columns": "column", "the_class": "any column",
}  # fmt: skip
"""What helpers of the library take in their second place: names of columns of the table in the first."""

Kind = Callable[[object], str | None]
"""What a person calls a value; None where it is not known."""


def kind_of(value: object) -> str | None:
    """The kind of a value of a run; of a vector, which stands for a list or a number, none."""
    if is_vector(value) or isinstance(value, NumberColumn):
        return None
    name = kind_name(value).replace("private ", "")
    return name if name in PUBLIC or name in OF_HANDLES or (is_model(value) and not hasattr(value, "__len__")) else None


def no_argument(
    function: object, node: n.Call, args: Sequence[object], keywords: Mapping[str, object], kind: Kind = kind_of
) -> Diagnostic | None:
    """The argument of a call that its function does not take, and the way out; None where all may fit."""
    name, params, usage_text = _signature(function)
    if params is None or node.span.source.name.startswith(LIBRARY):
        return None
    places = [param for param in params if param.kind in ("", "*")]
    skip = max(len(args) - len(node.args), 0)  # the choice of an advisor, whose call has the rest
    if skip:
        name, places, args = node.function.span.text, places[skip:], args[skip:]
    takes = _takes(node, places, params)

    def unfit(at: int, value: object, span: Span) -> Diagnostic | None:
        fault = _of_argument(name, takes[at], value, span, kind) if takes[at] else None
        if fault is None and takes[at] in COLUMNS and args and isinstance(args[0], Table):
            fault = _of_columns(name, takes[at], value, args[0].domains)
        return fault

    def fits(one: int, place: int) -> bool:
        stays = one == place or kind(args[one]) in TAKEN.get(takes[place], ())
        return stays and unfit(place, args[one], exprs[one].span) is None

    exprs = [*node.args, *(keyword.value for keyword in node.keywords)]
    for at, (expr, value) in enumerate(zip(exprs, (*args, *keywords.values()), strict=False)):
        fault = unfit(at, value, expr.span)
        if fault is not None:
            help = _ordered(node, fits, usage_text) or fault.help or f"as in `{_filled(usage_text, node, expr)}`"
            return replace(fault, span=expr.span, help=help)
    return None


MOST_ORDERED = 6  # arguments of which every order is tried


def _takes(node: n.Call, places: Sequence[Parameter], params: Sequence[Parameter]) -> list[str]:
    """What a function takes at the place of each argument of a call; nothing where that is not known."""
    by_name = {param.name: param for param in params}
    every = [places[min(at, len(places) - 1)] if places else None for at in range(len(node.args))]
    return [param.takes if param else "" for param in (*every, *(by_name.get(one.name) for one in node.keywords))]


def _ordered(node: n.Call, fits: Callable[[int, int], bool], usage_text: str) -> str:
    """The call with its arguments in the one order in which each `fits` its place; how it is used where there are
    several, of which one alone is meant."""
    places = range(len(node.args) if len(node.args) <= MOST_ORDERED else 0)
    orders = islice(permutations(places), 1, None)  # the first one is that which stands there
    fitting = [*islice((order for order in orders if all(map(fits, order, places))), 2)]
    if len(fitting) != 1:
        return f"in another order, as in `{usage_text}`" * bool(fitting)
    texts = [node.args[one].span.text for one in fitting[0]]
    texts += [f"{keyword.name} = {keyword.value.span.text}" for keyword in node.keywords]
    return f"write `{node.function.span.text}({', '.join(texts)})`"


def _filled(usage_text: str, node: n.Call, wrong: n.Expr) -> str:
    """The usage of a function with what a call has by place, but for the wrong one."""
    name, _, inside = usage_text.removesuffix(")").partition("(")
    params = [param for param in inside.split(", ") if param != "*"]
    own = [param if arg is wrong else arg.span.text for param, arg in zip(params, node.args, strict=False)]
    return f"{name}({', '.join([*own, *(param for param in params[len(own) :] if ' = ' not in param)])})"


def row_of(function: object) -> Row | None:
    """The row of a built-in; none of a method of a model, which may be called as one is."""
    if not isinstance(function, Builtin) or function.body.__module__ == of_kernel.__module__:
        return None
    return BUILTINS.get(function.name)


def _signature(function: object) -> tuple[str, Sequence[Parameter] | None, str]:
    """The name, the parameters and the usage of what is called, where what these take is known."""
    if isinstance(function, Part):
        return _signature(function.run)
    row = row_of(function)
    if row is not None:
        return row.name, None if row.reads in (Reads.SOURCE, Reads.ROWS) else row.parameters, row.usage
    if isinstance(function, Function) and not function.body.span.source.name.startswith(LIBRARY):
        return "", None, ""
    if isinstance(function, Builtin | Function):
        params = _parameters(function)
        return function.name, params, usage(function.name, params)
    return "", None, ""


# What a function of the library takes ------------------------------------------------------------

_memo: dict[int, tuple[object, Sequence[Parameter]]] = {}


def _parameters(function: object) -> Sequence[Parameter]:
    """The parameters of a function, with what each takes."""
    if isinstance(function, Builtin):
        if function.name in BUILTINS:
            return BUILTINS[function.name].parameters
        return [Parameter(name, takes=OF_KERNELS.get(name, "")) for name in parameters_of(function)]
    if not isinstance(function, Function):
        return ()
    key = id(function.body)
    if key not in _memo:
        _memo[key] = function.body, ()  # of itself nothing is known yet
        takes = _passed_on(function)
        params = [Parameter(p, None if d is REQUIRED else "", takes=takes.get(p, "")) for p, d in function.params]
        _memo[key] = function.body, params
    return _memo[key][1]


_PERHAPS = (n.Conditional, n.Logic, n.Lambda, n.Comprehension, n.Over, n.Part, n.Query, n.Select)
"""What may leave a call in it out, or make it of rows."""


def _passed_on(function: Function) -> dict[str, str]:
    """What each parameter of a function takes, by the calls that are made on every way through its body."""
    body = function.body.body if isinstance(function.body, n.Block) else (n.Return(function.body, span=None),)  # type: ignore[arg-type]
    mine = {name for name, _ in function.params} - set(bound_in(body, lambda use: ()))
    takes = _used_as(body, mine)
    for call in _always(body):
        if not isinstance(call, n.Call) or not isinstance(call.function, n.Name) or call.function.id in mine:
            continue
        for arg, param in _pairs(call, _parameters(function.scope.find(call.function.id))):
            items = arg.items if isinstance(arg, n.ListOf) and param.takes in COLUMNS else [arg]
            for part in items if param.takes else ():
                if isinstance(part, n.Name) and part.id in mine:
                    takes.setdefault(part.id, []).append(_word(call, param, part is arg))
    if function.name in OF_COLUMNS:
        takes[function.params[1][0]] = [OF_COLUMNS[function.name]]
    for words in takes.values():
        if not {"items", "list"}.isdisjoint(words) and not {*words}.isdisjoint(COLUMNS):
            words[:] = ["number columns" if "number column" in words else "columns"]
    order = [*TAKEN]
    return {name: min(words, key=lambda word: (len(TAKEN[word]), order.index(word))) for name, words in takes.items()}


def _used_as(body: Sequence[n.Stmt], mine: set[str]) -> dict[str, list[str]]:
    """The parameters that decide what a name of a body is, which are true or false, those that lists join, and those
    that are called somewhere."""
    parts = [part for one in body for part in every(one)]
    values = [getattr(statement, "value", None) for statement in body]
    uses = [(one.test, "truth") for one in values if isinstance(one, n.Conditional)]
    uses += [(part.function, "function") for part in parts if isinstance(part, n.Call)]
    of_table = [part for part in parts if isinstance(part, n.Attribute) and part.name == "columns"]
    uses += [(part.value, "rows") for part in of_table]
    uses += [(part.left, "any column") for part in parts if isinstance(part, n.Binary) and part.right in of_table]
    joined = [one for one in _always(body) if isinstance(one, n.Binary) and one.op == "+"]
    uses += [(one.left, "list") for one in joined if isinstance(one.right, n.ListOf)]
    uses += [(one.right, "list") for one in joined if isinstance(one.left, n.ListOf)]
    return {name.id: [word] for name, word in uses if isinstance(name, n.Name) and name.id in mine}


def _word(call: n.Call, param: Parameter, whole: bool) -> str:
    """With a strategy, noise is on the cells of a cube; what stands in a list of columns, not `whole`, is a column."""
    row = BUILTINS.get(call.function.id) if isinstance(call.function, n.Name) else None
    by_strategy = row is not None and row.effect is Effect.MEASURES and len(call.args) > 1
    word = param.takes if whole or param.takes not in ("number columns", "columns") else param.takes[:-1]
    return "cube" if by_strategy and word == "measured" else word


def _pairs(call: n.Call, params: Sequence[Parameter]) -> Iterator[tuple[n.Expr, Parameter]]:
    yield from zip(call.args, (param for param in params if param.kind == ""), strict=False)
    by_name = {param.name: param for param in params}
    yield from ((keyword.value, by_name[keyword.name]) for keyword in call.keywords if keyword.name in by_name)


def _always(body: Sequence[n.Stmt]) -> Iterator[n.Call | n.Binary]:
    """The calls and operations that are made on every way through a body."""
    for statement in body:
        if isinstance(statement, n.If):
            return  # it may return
        waiting = [] if isinstance(statement, n.For | n.Run | n.Def) else children(statement)
        while waiting:
            node = waiting.pop()
            if isinstance(node, n.Call | n.Binary):
                yield node
            if isinstance(node, n.Block):
                yield from _always(node.body)
            elif isinstance(node, n.Comprehension):
                waiting.append(node.source)
            elif not isinstance(node, _PERHAPS):
                waiting += children(node)
        if isinstance(statement, n.Return):
            return


# What does not fit -------------------------------------------------------------------------------


def _fault(message: str, help: str = "", kind: str = "TypeError") -> Diagnostic:
    return Diagnostic(kind, message, help=help)


def _of_argument(name: str, takes: str, value: object, span: Span, kind_of_value: Kind) -> Diagnostic | None:
    """Why a function does not take a value that stands at `span`; `takes`: a word of its signature."""
    kind = LIST if takes in COLUMNS and is_vector(value) else kind_of_value(value)
    sized = takes == "sized" and hasattr(type(value), "size")  # a model that has so many parts
    if kind is None or sized or (kind in OF_HANDLES and takes not in OF_DATA):
        return None
    if kind not in TAKEN[takes]:
        it = span.text
        of_groups = f"those groups: `[r for r in {it} if r.n > 10]`, or `having n > 10` in the query"
        ways = {
            ("function", TEXT): f"a function stands without quotes: write `{it[1:-1]}`",
            ("rows", LIST): f"it takes one of them, such as `{it}[0]`",
            ("text", NUMBER): f"write `{name}(str({it}))`",
            ("text", LIST): f"write `len({it})`" if name == "length" else f"write `[{name}(x) for x in {it}]`",
            ("numbers", NUMBER): f"write `{name}([{it}])`", ("sized", NUMBER): f"its digits are `{name}(str({it}))`",
            ("records", TABLE): f"make them of a table: `weighted({it})`",
            ("table", RECORDS): f"that is for tables: `histogram({it}, x = a)` adds up weights",
            ("cube", TABLE): f"write `histogram({it}, x = age)` of one of its columns",
            ("measured", TABLE): f"write `size({it})` for all rows, `histogram({it}, x = age)` for those of each value",
            ("strategy", NUMBER): f"the amount comes after the call: `{name}(…) with epsilon {it}`",
            ("queries", CUBE): f"write `prefixes({it})`", ("shape", TABLE): f"write `histogram({it}, x = age)`",
            ("queries", TABLE): "write `prefixes(cells)` of a histogram `cells`",
            **{("choice", one): "it is asked of what `MkChoiceMaker` made, not of answers" for one in PUBLIC},
            **{("source", one): f"name a private table, or counts: `{name}(people)`" for one in PUBLIC},
            **dict.fromkeys((("rows", GROUPED), ("filtered", GROUPED)), of_groups),
            **dict.fromkeys((("number columns", TEXT), ("columns", TEXT), ("list", TEXT)), f"write `[{it}]`"),
            ("each", TEXT): f"write `{name}(number({it}))`", ("number", TEXT): f"write `number({it})`",
        }  # fmt: skip
        return _fault(f"`{name}` takes {WORDS[takes]}, not {kind}", ways.get((takes, kind), ""))
    return _of_items(name, takes, value, kind_of_value)


def _of_items(name: str, takes: str, value: object, kind_of_value: Kind) -> Diagnostic | None:
    """Why a function does not take a list of such items."""
    inside = list(map(kind_of_value, value)) if type(value) is list or isinstance(value, JSet) else []
    inside = [NUMBER] if takes != "matrix" and (isinstance(value, NumberColumn) or is_vector(value)) else inside
    if takes == "measured" and inside and all(item == NUMBER for item in inside):
        message = f"`{name}` takes {WORDS[takes]}, and these are public numbers"
        return _fault(message, "`laplace(histogram(t, x = age))` has noise for private counts")
    wrong = next((item for item in inside if item in UNFIT.get(takes, ())), None)
    return None if wrong is None else _fault(f"`{name}` takes {WORDS[takes]}, and this list holds {wrong}")


def _of_columns(function: str, takes: str, value: object, schema: Mapping[str, Domain]) -> Diagnostic | None:
    """Why a function of the library does not take the columns of these names of a table with this schema."""
    names = value if isinstance(value, list) else [value]
    faults = (_of_one_column(function, takes, name, schema) for name in names if type(name) is str)
    return next(filter(None, faults), None)


def _of_one_column(function: str, takes: str, name: str, schema: Mapping[str, Domain]) -> Diagnostic | None:
    if name not in schema:
        available = "the columns are " + ", ".join(schema)
        return _fault(f"there is no column `{name}`", did_you_mean(name, schema) or available, "NameError")
    domain = schema[name]
    if takes == "any column":
        return None
    if isinstance(domain, Open) and listed(domain) is None:
        message = f"`{function}` needs the values or the range of `{name}`, which the description leaves open"
        help = f'describe them: `{name}: {{"a", "b"}}`, or `{name}: 0..99`; of a derived column clamp the number'
        return _fault(message, f"{help}, `{name} = clamp(…, 0, 99)`", "OpenKeys")
    if takes.startswith("number column") and isinstance(domain, Categories | Open):
        help = "`top_k` and `crosstab` are for listed values, `compare` and `anova` for a number by them; "
        help += "`logistic_regression` is for two of them"
        return _fault(f"`{function}` takes a column of numbers, and `{name}` has listed values", help)
    if takes == "column of values" and isinstance(domain, Real):
        help = f"make it whole: `derive(t, whole = floor({name}))`"
        return _fault(f"`{function}` takes a column of listed values or whole numbers, and `{name}` is real", help)
    return None
