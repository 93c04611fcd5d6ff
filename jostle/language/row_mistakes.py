"""Messages about a mistake in an expression on rows, in a select, or of a value that does not fit its place.

Each takes public facts and how the program is written; where it stands is said by who asks. A check says them of kinds
that it knows before the run, and a run of the values themselves. `it` is the value as it stands in the program, if
known.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from jostle.diagnostics import Diagnostic, Note, did_you_mean
from jostle.language.aggregates import AGGREGATES
from jostle.language.facts import Parameter, text_meant
from jostle.language.forms import aggregates
from jostle.language.methods import forms, home, way
from jostle.language.moments import DAYS
from jostle.language.operations import COMPARISONS
from jostle.language.row_functions import ROW_FUNCTIONS
from jostle.noise_laws import ADDITIVE
from jostle.source import Span
from jostle.syntax import nodes as n
from jostle.syntax.walk import every, own_name

NOTHING = frozenset({"null", "nil", "nan", "na", "undefined"})
"""What other languages call a missing value."""
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d)?)?")
_MOMENTS = ("date", "time")


def listed(columns: Collection[str]) -> str:
    names = [f"`{column}`" for column in columns if "`" not in column]  # others no program can write
    return "the columns are " + ", ".join(names) if names else ""


def no_column(
    name: str, columns: Collection[str], values: Mapping[str, Collection[object]], span: Span,
    results: Collection[str] = (), where: str = "", moment: str = "",
) -> Diagnostic:  # fmt: skip
    """A name that is neither a column nor a variable; `values` are those that descriptions list, by column. `moment` is
    a column of dates or times. `results` are what a select measures, which its condition, written `where`, cannot look
    at."""
    if name in results:
        help = f"`{name}` is measured of groups: write `having {where}` after them"
        return Diagnostic(
            "TypeError", "this condition reads no column of the table", span, label="no column", help=help
        )
    if name.lower() in NOTHING:
        message = f"a missing value is not called `{name}`"
        return Diagnostic("NameError", message, span, label="no value", help="write `none`")
    of = next((column for column, texts in values.items() if name in texts), None)
    unit = f'write `{name}({moment})`; as a unit it is a text, `trunc({moment}, "{name}")`'
    clock = way(name) if name.lower().startswith("current_") else unit if name in DAYS and moment else ""
    help = clock or (f'it is a value of `{of}`: write `"{name}"`' if of else did_you_mean(name, [*columns, *results]))
    if name.lower() == "all" and name not in columns:
        help = f"name the keys: {listed(columns)}"
    if name == "person" and not help:
        help = "where persons are protected it stands in `count(distinct person)`, `per person`, `join u on person` "
        help += "and `person in (select person from u)`"
    help = help or f"{listed(columns)}; others are described first, such as `{name}: 0..100` or `{name}: text`"
    message = f"there is no column `{name}`: only described columns exist"
    return Diagnostic("NameError", message, span, label="no such column", help=help)


def reads_nothing(
    node: n.Expr, what: str, columns: Collection[str], variable: str = "", results: Collection[str] = (),
    numbers: Sequence[str] = (),
) -> Diagnostic:  # fmt: skip
    """A condition without a column; `variable`: a variable that holds the name of one; `results`: what is measured."""
    help = f"`{variable}` holds the name of a column: write `column({variable})`" if variable else listed(columns)
    if isinstance(node, n.Number):
        help = f"a range is cut by a division: `x = {[*numbers, 'age'][0]} / 10`"
    if measured := [part for part in every(node) if isinstance(part, n.Call) and aggregates(part)]:
        named = node.span.text.replace(measured[0].span.text, "n")
        named = f"name it, `{measured[0].span.text} as n`, and write `having {named}` after them"
        help = f"it is measured of groups: {named}"
    for part in every(node):
        if isinstance(part, n.String) and part.value in columns:
            plain = part.value.isidentifier() and part.value.isascii()
            repair = node.span.text.replace(part.span.text, part.value, 1)
            help = f"a text in quotes is a value; the column is written `` `{part.value}` ``"
            help = f"a column has no quotes: write `{repair}`" if plain else help
        elif isinstance(part, n.Name) and part.id in results:
            help = f"`{part.id}` is measured of groups: write `having {node.span.text}` after them"
    return Diagnostic("TypeError", f"{what} reads no column of the table", node.span, label="no column", help=help)


def other_kind(node: n.Expr, left: str | None, right: str | None, values: Collection[object] | None) -> str:
    """What to write in place of an operation that mixes the kinds of its sides, or calculates with a text.

    `values`: what the description of a text lists, where one side is such a column. Empty where nothing is known.
    """
    match node:
        case n.Logic(op="or", operands=(n.Binary(op="==", left=of, right=n.String() as first), *others)):
            if all(isinstance(other, n.String) for other in others):
                texts = [one.span.text for one in (first, *others)]
                each = " or ".join(f"{of.span.text} == {text}" for text in texts)
                return f"write `{of.span.text} in [{', '.join(texts)}]`, or `{each}`"
    if not isinstance(node, n.Binary):
        return ""
    op, one, two = node.op, node.left, node.right
    if op in COMPARISONS and isinstance(two, n.String):
        moment = re.sub(r"^(\d\d)\.(\d\d)\.(\d{4})$", r"\3-\2-\1", two.value)
        if _MOMENT.fullmatch(moment) and left in _MOMENTS:
            return f"a date has no quotes: write `{one.span.text} {op} {moment.replace(' ', 'T')}`"
        if _is_number(two.value):
            return f"write `{one.span.text} {op} {two.value}`"
    text = one if left == "text" else two if right == "text" else None
    if text is None or isinstance(text, n.String) or not {left, right}.isdisjoint(_MOMENTS):
        year = re.fullmatch("[12]\\d{3}", two.span.text)
        return f"write `year({one.span.text}) {op} {two.span.text}`" * (left in _MOMENTS and year is not None)
    if op in COMPARISONS and values:
        return text_meant(text, op, node, values)
    return f"write `number({text.span.text})` where the text spells a number"


def _is_number(text: str) -> bool:
    try:
        return bool(text.strip()) and float(text) == float(text)
    except ValueError:
        return False


# Selects -----------------------------------------------------------------------------------------


def of_groups(call: n.Call, select: n.Select) -> Diagnostic | None:
    """An aggregate of an aggregate; None where it is none."""
    inner = next((part for arg in call.args for part in aggregates(arg)), None)
    if inner is None or not isinstance(call.function, n.Name):
        return None
    one, keys = inner.span.text, ", ".join(key.span.text for key in select.keys) or "city"
    repair = f"{call.function.id}(select {one} from {select.table.span.text} groupby {keys} with epsilon 0.1)"
    message = f"`{call.function.id}` is of rows, and `{one}` is measured of groups"
    return Diagnostic("TypeError", message, inner.span, help=f"write `{{{{ {repair} }}}}`")


def hands_out_rows(select: n.Select, column: n.Expr, source: str, declared: Span | None) -> Diagnostic:
    """A result of rows of a private source that is no aggregate; `declared`: where that source is."""
    if isinstance(column, n.Star):
        help = "measure them: `count(*)`; without an amount this select is a table of them"
        return Diagnostic("PrivateValue", "`select *` would hand out rows", column.span, help=help)
    inner, help = select.table, f"measure them: `count(*)`, `avg({column.span.text})`"
    named = next((one.name for one in select.columns if one.value is column), None)
    if column.span.text.lower() in AGGREGATES and named is not None:
        message = f"`{column.span.text}` takes its column in brackets"
        of = "*" if column.span.text.lower() == "count" else named
        return Diagnostic("PrivateValue", message, column.span, help=f"write `{column.span.text.lower()}({of})`")
    if select.spend is not None:
        help += "; without an amount this select is a table of its columns"
    if isinstance(inner, n.Select) and re.search(r"(?i)\bgroup ?by\b", inner.span.text):
        answers = inner.span.text.removeprefix("(").removesuffix(")")
        help = f"the groups of the inner select are answers: write `{{{{ {answers} with epsilon 0.1 }}}}`"
    since = f"no aggregate, and private since line {declared.line}" if declared is not None else "no aggregate"
    foreign = way(column.span.text)
    function = column.function if isinstance(column, n.Call) and not foreign else None
    if isinstance(column, n.Call) and isinstance(function, n.Name) and function.id not in ROW_FUNCTIONS:
        foreign = way(function.id, column.args) or home(function.id, column.args, rows=True)
    foreign = "write `count(*)`" if column.span.text.endswith("(*)") else foreign
    message = "a select gives aggregates, and this is none" if foreign else "this select would hand out private rows"
    notes = (Note(declared, f"`{source}` is declared private here"),) if declared is not None else ()
    return Diagnostic("PrivateValue", message, column.span, label=since, help=foreign or help, notes=notes)


def same_names(select: n.Select, keys: Collection[str]) -> Diagnostic | None:
    """Two results of one name, or a result with the name of a key; None where there are none."""
    first_of: dict[str, n.Column] = {}
    for column in select.columns:
        name = column.name or own_name(column.value)
        if name in keys:
            help = f"name one of them: `{column.value.span.text} as many`"
            return Diagnostic(
                "NameError", f"a key and a result of this select are named `{name}`", column.span, help=help
            )
        if name in first_of:
            call = column.value
            of = call.args[0].id if isinstance(call, n.Call) and call.args and isinstance(call.args[0], n.Name) else "n"
            return Diagnostic(
                "NameError", f"two results of this select are named `{name}`", column.span,
                help=f"name one of them: `{call.span.text} as {of}`",
                notes=(Note(first_of[name].span, f"the first `{name}`"),),
            )  # fmt: skip
        if name is not None:
            first_of[name] = column
    return None


def open_key(key: n.GroupKey, kind: str, described: bool, of_budget: bool = False) -> Diagnostic:
    """A key whose values are not public, of this kind; `described`: it is a column; `of_budget`: what lacks a delta is
    the budget."""
    text = key.value.span.text
    such = {"text": '{"a", "b"}', "number": "0..99"}.get(kind, "2024-01-01..2024-12-31")
    match key.value:
        case n.Call(function=n.Name(id="year")):
            such = "2000..2030"
        case n.Call(function=n.Name(id="trunc"), args=[_, n.String(value=unit)]):
            such = f"from 2024-01-01 to 2024-12-31 by {unit}"
    describe = f"describe them, `{text}: {such}`" if described else "describe the column that it reads"
    message = f"the values of `{text}` are not public, so its groups are not either"
    delta = "declare a delta in the budget, `budget epsilon 1, delta 1e-6`" if of_budget else "give a delta"
    help = f"list them, `groupby {text} over {such}`, or {describe}, or {delta}"
    return Diagnostic("OpenKeys", message, key.span, label="an open domain", help=help)


def open_mode(of: n.Expr) -> Diagnostic:
    """The mode of values that are not public."""
    text = of.span.text
    message = f"the values of `{text}` are not public, so its most frequent one is not either"
    help = f'describe them: `{text}: {{"a", "b"}}`, or `{text}: 0..99`'
    return Diagnostic("OpenKeys", message, of.span, label="an open domain", help=help)


def no_bounds(call: n.Call, arg: n.Expr, kind: str, columns: Collection[str]) -> Diagnostic:
    """An aggregate of what has no bounds, of this kind; `columns` are those that are described."""
    low, high = _ENDS.get(kind, ("0", "100"))
    name, text, at = arg.span.text, call.span.text, arg.span.column - call.span.column
    bounded = f"{text[:at]}clamp({name}, {low}, {high}){text[at + len(name) :]}"
    is_described = isinstance(arg, n.Name) and arg.id in columns
    why = "is described without one" if is_described else "has none by its columns"
    row = AGGREGATES[call.function.id] if isinstance(call.function, n.Name) else None
    label = "one row could change it by any amount" if row is None or row.bounded else "no bounds to search between"
    help = f"write `{bounded}`" + (f", or describe `{name}: {low}..{high}`" if is_described else "")
    return Diagnostic("UnboundedSum", f"`{text}` has no bound: `{name}` {why}", call.span, label=label, help=help)


_ENDS = {"date": ("2024-01-01", "2024-12-31"), "time": ("2024-01-01T00:00", "2024-12-31T23:59")}
"""Bounds of a kind, as an example."""


def not_measured(call: n.Call) -> Diagnostic:
    """Of an aggregate after `having` or `order by` that the select does not measure."""
    name = "_".join(re.findall(r"\w+", call.span.text))
    help = f"`having` and `order by` look at what is released: select `{call.span.text} as {name}`, and use `{name}`"
    return Diagnostic("NameError", "this aggregate is not measured by the select", call.span, help=help)


def not_released(name: n.Name, released: Collection[str], columns: Collection[str] = (), rows: str = "") -> Diagnostic:
    """Of a name there that the select does not release; `rows`: the way out of one that reads rows, by a column."""
    help = did_you_mean(name.id, released) or f"the select releases {', '.join(released)}"
    if name.id in columns:
        help = rows or f"release it, `avg({name.id}) as {name.id}`; of each person's rows the last is "
        help += "" if rows else f"`up to 1 row by {name.id} desc`"
    return Diagnostic("NameError", f"there is no `{name.id}` in what is released", name.span, help=help)


READ = "`number(s)` reads a number from a text"
_INSTEAD = {
    "a boolean": "write `1 if b else 0` for the boolean",
    "a list": "calculate with each element: `[x {op} {other} for x in {it}]`",
    "a record": "calculate with one of its fields",
    "a grouped result": "calculate with one of its columns, `{it}.n`",
    "none": "test for `none` first: `x if x != none else 0`",
}


def misfit(op: str, left: str, right: str, texts: tuple[str, str] = ("", "")) -> Diagnostic:
    """Why `left op right` is refused, of these kinds, as they are written, `texts`; without a place."""
    kinds = {left, right}
    message = f"`{op}` takes numbers, and these are {left} and {right}"
    one, two = texts[0] or "xs", texts[1] or "2"
    other, it = (one, two) if right in _INSTEAD and left not in _INSTEAD else (two, one)
    help = next((way.format(op=op, it=it, other=other) for kind, way in _INSTEAD.items() if kind in kinds), "")
    if op == "*" and left == "a list" and right == "a number":
        help += f"; `[0 for i in 1..{two}]` is a list of so many"
    if op.endswith("in"):
        message, help = f"`in` takes a list, a set, a range or a record, not {right}", f"write `{one} in [{two}]`"
    elif op.endswith("like"):
        message, help = f"`like` takes texts, not {left} and {right}", "write `str(x)` of a number"
    elif op[0] in "<>":
        message = f"`{op}` compares numbers or texts, not {left} and {right}"
        if not kinds & {"none", "a date", "a time"}:
            help = _read(left, texts) if kinds == {"a number", "a text"} else _of_each(op, one, two)
    elif "a text" in kinds:
        joins = op == "+" or (op == "%" and left == "a text")
        help = _joined(left, texts) if joins else _read(left, texts)
        message = "`%` is the remainder of numbers, and fills no text" if op == "%" and joins else message
    return Diagnostic("TypeError", message, help=help)


def _of_each(op: str, one: str, two: str) -> str:
    """The way out of a list, or a column of a result, that is compared: the items, or the groups, that are meant."""
    column = re.fullmatch(r"(\w+)(?:\.|\[[\"'])(\w+)(?:[\"']\])?", one)
    if column is None:
        return f"compare each: `[x for x in {one} if x {op} {two}]`"
    return f"compare each: `[r for r in {column[1]} if r.{column[2]} {op} {two}]`"


def _joined(left: str, texts: tuple[str, str]) -> str:
    """The way out of a text and something else that are to be one text."""
    one, two = (side or word for side, word in zip(texts, ('"a"', "n"), strict=True))
    one = re.sub(r"%[dsif]|\{\}", "", one)
    return f"join texts with `{one} + str({two})`" if left == "a text" else f"join texts with `str({one}) + {two}`"


def _read(left: str, texts: tuple[str, str]) -> str:
    """The way out of a text that stands for a number."""
    text = texts[left != "a text"]
    return f"write `number({text})` where the text holds a number" if text else READ


def no_condition(kind: str, it: str = "") -> Diagnostic:
    """A value that cannot decide a condition."""
    help = f"compare it, as in `{it or 'n'} > 0`" if kind == "a number" else 'compare it, as in `x == "a"`'
    return Diagnostic("TypeError", f"a condition is true or false, and this is {kind}", help=help)


def no_walk(kind: str, it: str = "") -> Diagnostic:
    """A value that cannot be walked through."""
    end = it if it and "(" not in it else "n"
    ways = {"a number": f"walk through the range, `1..{end}`", "a text": "a list of one text is `[x]`"}
    help = ways.get(kind, "")
    return Diagnostic("TypeError", f"{kind} cannot be walked through", help=help)


def no_fields(kind: str, name: str) -> Diagnostic:
    """A value without fields, of which one was asked."""
    help = "records and results have fields" if kind in ("a text", "a list") else "it is the value itself"
    return Diagnostic("TypeError", f"{kind} has no fields, and `{name}` was asked", help=help)


def no_field(kind: str, name: str, fields: Iterable[str]) -> Diagnostic:
    """A field that is not among those of a value."""
    names = list(fields)
    fields_text = "it has " + ", ".join(f"`{field}`" for field in names[:8]) if names else ""
    if kind == "a grouped result" and names:
        fields_text += f'; the row of a key is `g["{name}"]`'
    words = [one for one in names if one in name.lower().split("_")]  # `median` of `median_survival`
    near = f"did you mean `{words[0]}`?" if len(words) == 1 else did_you_mean(name, names, 0.9 if "_" in name else 0.6)
    return Diagnostic("NameError", f"{kind} has no `{name}`", help=near or fields_text)


def no_categories(column: str, *, real: bool) -> Diagnostic:
    """A column whose values, which are asked, nothing lists."""
    if real:
        cut = f"cut it: `in_bins(t, {{{column}: [10, 20]}})` of `classifiers`, or `derive(t, whole = floor({column}))`"
        return Diagnostic("TypeError", f"`{column}` is real, and has no list of values", help=cut)
    help = f'describe it, `{column}: {{"a", "b"}}` or `{column}: 0..99`, or leave it out: `pick(t, …)` of the others'
    return Diagnostic("OpenKeys", f"the values of `{column}` are not public", help=help)


def no_key(text: str, many: int, names: Sequence[str], texts: Sequence[str]) -> Diagnostic:
    """Values, `many` as they are shown, that no group has of its keys `names`; `texts`: those of a single key."""
    some = ", ".join([f'"{one}"' for one in texts[:5]]) + (", …" if len(texts) > 5 else "")
    place = "a number in brackets is a place, `g[0]`"
    help = did_you_mean(text.strip('"'), texts) or (f"it has {some}" if texts else place)
    if len(names) > 1:
        help = f"a group has a value of each of its keys: `g[{', '.join(names)}]`"
    if many == 1 < len(names):
        rows = f"`[r for r in g if r.{names[-1]} == {text}]`"
        help = f"of the keys {', '.join(names)} one is not enough: {rows} are rows"
    return Diagnostic("NameError", f"a grouped result has no key {text}", help=help)


def no_elements(kind: str) -> Diagnostic:
    """A value that cannot be indexed."""
    ways = {"a set": "`list(s)[0]` is an element", "a range": "`list(s)[0]` is an element"}
    help = ways.get(kind, "only lists, texts and records have elements")
    return Diagnostic("TypeError", f"{kind} cannot be indexed", help=help)


def no_place(what: str) -> Diagnostic:
    """Something that is no index."""
    help = "places are counted from 0: `xs[0]` is the first"
    if what == "a text":
        help += '; of a grouped result the row of a key is `g["Ames"]`'
    return Diagnostic("TypeError", f"an index is a whole number, not {what}", help=help)


def outside(at: str, length: int) -> Diagnostic:
    """An index that no element has."""
    help = f"places are 0 to {length - 1}, or -1 to -{length} from the end" if length else "it is empty"
    return Diagnostic("ValueError", f"index {at} is outside a list of {length}", help=help)


def no_row_function(name: str, node: n.Call) -> Diagnostic:
    """A call on rows of what is no function of rows."""
    help = way(name, node.args) or home(name, node.args, rows=True)
    help = help or f"the functions of rows are {', '.join(ROW_FUNCTIONS)}, and `a if c else b`"
    if name in AGGREGATES:
        help = f"measure it first, `m = {{{{ select {node.span.text} from t with epsilon 0.1 }}}}`, and use `m`"
    return Diagnostic("TypeError", f"`{name or 'this function'}` cannot be called on rows", node.span, help=help)


def no_method(node: n.Attribute) -> Diagnostic:
    """A method of a column: functions of rows take columns."""
    help = f"a function takes it, as `lower({node.value.span.text})` does"
    return Diagnostic("TypeError", "a column has no methods in a query", node.span, help=help)


def no_call(kind: str) -> Diagnostic:
    """A value that is no function."""
    help = "is a function of this name given another value above?"
    if kind == "a text":
        help = "a function that is passed stands without quotes: `gini`"
    return Diagnostic("TypeError", f"{kind} cannot be called", help=help)


# Arguments that do not fit ------------------------------------------------------------------------


def other_name(keyword: n.Keyword, function: str, names: Collection[str], call: n.Call) -> str:
    """The way out of an argument under a name that no parameter has, or an empty text."""
    if function == "sorted" and keyword.name == "reverse" and call.args:
        return f"write `reversed(sorted({call.args[0].span.text}))`"
    if function in ("table", "counts") and keyword.name in ("path", "file", "filename", "name", "source"):
        return f"the path stands alone: `{function}({keyword.value.span.text})`"
    if "header" in names and keyword.name in ("skip", "skiprows", "skip_rows", "startrow"):
        return "`header = 3` says which line has the names, from 1; what stands above it is not read"
    if keyword.name in ("by", "group", "groups", "groupby", "strata") and call.args and keyword.name not in names:
        rest = ", ".join(arg.span.text for arg in call.args[1:])
        column = keyword.value.value if isinstance(keyword.value, n.String) else keyword.value.span.text
        parts = f"partition({call.args[0].span.text}, {column})"
        return f"each group is a table: write `[{function}(part, {rest}) for key, part in {parts}]`"
    right = forms("argument").get(keyword.name, "")
    if right in names:
        return f"write `{right} = {keyword.value.span.text}`"
    return did_you_mean(keyword.name, names)


_WITH_MORE = {"error": "band({0}, level = {1})", "log": "log({0}) / log({1})"}
"""Functions of one argument that other languages call with two, and what is meant."""


def other_call(function: str, call: n.Call) -> str:
    """The way out of a call that has an argument more, or its amount in brackets, or an empty text."""
    amounts = [keyword.value.span.text for keyword in call.keywords if keyword.name in ("epsilon", "eps")]
    if amounts:
        return f"the amount comes after the call: `{function}(…) with epsilon {amounts[0]}`"
    match call.args:
        case [n.Name(id=table), n.String(value=name), n.ListOf(items=items)] if items and function.startswith("best_"):
            names = ", ".join(dict.fromkeys([*(one.value for one in items if isinstance(one, n.String)), name]))
            return f'all other columns are used; for a few write `{function}(pick({table}, {names}), "{name}")`'
    form = _WITH_MORE.get(function, "") if len(call.args) == 2 else ""
    return form and "write `" + form.format(*(arg.span.text for arg in call.args)) + "`"


def arity_error(name: str, params: Sequence[Parameter], places: int, keywords: Sequence[str]) -> str:
    """Why the arguments of a call cannot fit, or an empty text."""
    kinds = {param.kind for param in params}
    by_place = [param.name for param in params if param.kind == ""]
    needed = [param.name for param in params if param.default is None and param.kind in ("", "name")]
    names = {param.name for param in params if param.kind in ("", "name")}
    least = sum(param in needed for param in by_place)
    count = f"{least} to {len(by_place)} arguments"
    if least == len(by_place):
        count = "no arguments" if not by_place else f"{least} argument" + ("s" if least > 1 else "")
    takes = f"`{name}` takes {count if '*' not in kinds else f'at least {least} argument' + 's' * (least != 1)}"
    if places > len(by_place) and "*" not in kinds:
        return f"{takes}, but {places} are given"
    bound = set(by_place[:places])
    for keyword in keywords:
        if keyword not in names and "**" not in kinds:
            return f"`{name}` has no parameter `{keyword}`"
        if keyword in bound:
            return f"the argument `{keyword}` of `{name}` is given twice"
        bound.add(keyword)
    missing = [param for param in needed if param not in bound]
    return f"{takes}: `{missing[0]}` is missing" if missing else ""


_AMOUNTS = ("rho", "delta")


def usage(name: str, params: Sequence[Parameter]) -> str:
    """How a function is called."""
    return f"{name}({', '.join(p.name if p.default is None else f'{p.name} = …' for p in params)})"


def no_fit(name: str, params: Sequence[Parameter], node: n.Call, help: str) -> Diagnostic | None:
    """Why the arguments of a call do not fit, and the way out; None where they may."""
    wrong = arity_error(name, params, len(node.args), [keyword.name for keyword in node.keywords])
    if not wrong:
        return None
    if wrong.endswith("is missing") and not node.keywords:  # the usage, with the arguments that are there
        needed = [param.name for param in params if param.default is None]
        help = f"{name}({', '.join([*(arg.span.text for arg in node.args), *needed[len(node.args) :]])})"
    names = {param.name for param in params}
    unknown = next((k for k in node.keywords if k.name not in names and f"`{k.name}`" in wrong), None)
    form = "as in" if wrong.endswith("is missing") and node.args else "write"
    way_out = _amount_after(name, params, node) or other_call(name, node) or f"{form} `{help}`"
    if unknown is not None and unknown.name not in _AMOUNTS:
        way_out = other_name(unknown, name, names, node) or way_out
    span = node.span if unknown is None else unknown.span
    return Diagnostic("TypeError", wrong, span, "does not fit", way_out)


def _amount_after(name: str, params: Sequence[Parameter], node: n.Call) -> str:
    """The way out of an amount among the arguments of a function that takes an epsilon there, or an empty text."""
    amounts = {keyword.name for keyword in node.keywords}.intersection(_AMOUNTS)
    if not amounts or all(param.name != "epsilon" for param in params):
        return ""
    tail = "; amounts in rho draw Gaussian noise" if "rho" in amounts and name in ADDITIVE else ""
    amount = "rho 0.1" if "rho" in amounts else "epsilon 0.1 delta 1e-6"
    return f"write the amount after the call, `{name}(…) with {amount}`{tail}"
