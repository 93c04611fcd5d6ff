"""Methods of Python, NumPy and pandas, with what says the same here: `xs.append(4)` is `xs = append(xs, 4)`.

A person who writes one knows what is wanted, so that the way out can be the line to write. `<it>` stands for what the
method is called on; `<0>` and `<1>` for its arguments, `<column>` for a column of a table, `<number>` and `<key>` for
columns of it that a mean and groups can be of. A form with a place that nothing fills is not shown.

Words of other languages that programs do not know have their ways out in `grammar/functions.toml`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache

from msgspec import Struct

from jostle.diagnostics import Diagnostic
from jostle.language.builtins import BUILTINS
from jostle.language.operations import COMPARISONS
from jostle.records import replace
from jostle.resources import folder
from jostle.syntax import nodes as n

_PLACE = re.compile(r"<(\w+)>")
_AGGREGATES = {
    "mean": "avg", "average": "avg", "avg": "avg", "median": "median", "sum": "sum", "min": "min", "max": "max",
    "std": "stddev", "stddev": "stddev", "var": "var", "count": "count", "mode": "mode",
}  # fmt: skip


@cache
def forms(of: str) -> dict[str, str]:
    """The forms of `methods.toml`: of a kind of value, as messages call it, of a `column` taken out of a table, of a
    `table` itself, or of a `function` of Python or R, also as `np.mean(…)`; and what others call a `domain` or an
    `argument`, the `module`s of Python by the names that programs give them, and `ending`s of files."""
    import tomllib

    table = tomllib.loads((folder("grammar") / "methods.toml").read_text(encoding="utf-8")).get(of, {})
    named = {name: form for names, form in table.items() for name in names.split()}
    if of != "column":
        return named
    query = "{{{{ select {}(<column>) from <it> with epsilon 0.1 }}}}"
    return {name: query.format(aggregate) for name, aggregate in _AGGREGATES.items()} | named


class Written(Struct, frozen=True):
    """How a method stands in a program: what it is of, its arguments by place, and those by name.

    A form may have several lines, of which the first is meant that has nothing missing.
    """

    it: str
    args: Sequence[str] = ()
    keywords: Sequence[tuple[str, str]] = ()

    def filled(self, form: str, **more: str) -> str:
        """The first line of a form that has all its words, with them in it; empty where none has."""
        words = {"it": self.it, **{name: _bare(text) for name, text in self.keywords}, **more}
        words["keywords"] = ", ".join(f"{name} = {text}" for name, text in self.keywords)
        words["fields"] = ", ".join(f"{name}: {text}" for name, text in self.keywords)
        words["all"] = ", ".join(self.args)
        words["filled"] = re.sub(r"%[dsif]|\{\}", "", self.it)
        words["share"] = share(next(iter(self.args[-1:]), "0.5"))
        for at, arg in enumerate(self.args):
            words |= {str(at): arg, f"{at}bare": _bare(arg)}
            words[f"{at}list"] = arg if arg.startswith("[") else ""
        fitting = (line for line in form.split("\n") if all(map(words.get, _PLACE.findall(line))))
        return _PLACE.sub(lambda place: words[place[1]], next(fitting, ""))


def share(text: str) -> str:
    """The place of a quantile as it is written, a part of 1, also of so many hundredths; the middle of no number."""
    try:
        number = float(text)
    except ValueError:
        return text if text.isidentifier() else "0.5"
    return f"{number / 100 if number > 1 else number:g}"


def _bare(text: str) -> str:
    """A text without its quotes."""
    return text.strip("\"'")


def of_value(kind: str, name: str, usage: Written, column: str = "", key: str = "") -> str:
    """The way out of `it.name(…)` on a public value, or an empty text."""
    return _write(usage.filled(forms(kind).get(name, ""), name=name, column=column, key=key))


def of_table(name: str, usage: Written, number: str, key: str) -> str:
    """The way out of `t.name(…)` on a table that has the columns `number` and `key` among others, or an empty text."""
    aggregate = _AGGREGATES.get(name, "")
    return _write(usage.filled(forms("table").get(name, ""), number=number, key=key, aggregate=aggregate))


def of_column(column: str, method: str, usage: Written, *, numeric: bool, inner: str = "", other: str = "") -> str:
    """The way out of `t.column` and `t.column.method(…)`; `inner` stands after the method, as in `t.c.str.upper()`."""
    columns = forms("column")
    usual = columns["mean" if numeric else "value_counts"]
    line, query = (
        usage.filled(form, column=column, method=inner, other=other) for form in (columns.get(method, ""), usual)
    )
    if line or not method:
        return _write(line or query)
    return home(method, t=usage.it, x=column) or f"a column is read in a query, such as `{query}`"


def of_function(name: str, usage: Written) -> str:
    """The way out of a function of another language, or an empty text."""
    if name in ("range", "arange", "seq_len") and 1 <= len(usage.args) <= 2:
        first, past = ("0", *usage.args)[-2:]
        last = str(int(past) - 1) if past.isdigit() else f"{past} - 1"
        return _write(f"{first}..{last}")
    if name == "int" and usage.args and usage.args[0][:1] in "\"'":
        return _write(f"floor(number({usage.args[0]}))")
    line = usage.filled(forms("function").get(name, ""), name=name)
    lost = [text for _, text in usage.keywords if text.isdigit() and not re.search(rf"\b{text}\b", line)]
    return "" if lost else _write(line)


def _write(line: str) -> str:
    return f"write `{line}`" if line else ""


@cache
def _functions() -> dict[str, dict[str, str]]:
    """The two tables of `functions.toml`: the `calls`, and the `homes`."""
    import tomllib

    return tomllib.loads((folder("grammar") / "functions.toml").read_text(encoding="utf-8"))


def home(name: str, args: Sequence[n.Expr] = (), *, rows: bool = False, **words: str) -> str:
    """What does so here as a function or method of another language, or that nothing does; empty for unknown names.

    `words`: the table `t` and the column `x` that are meant, else those of the call's arguments, `rows` where a name is
    a column.
    """
    plain = re.sub(r"\W", "_", name.lower())
    help = next((help for names, help in _functions()["homes"].items() if re.fullmatch(names, plain)), "")
    match args:
        case [n.Index(value=n.Name(id=t), args=[n.String(value=x)]), *_]:
            words = {"t": t, "x": x}
        case [n.Attribute(value=n.Name(id=t), name=x), *_] | [n.Name(id=t), n.String(value=x), *_] if not rows:
            words = {"t": t, "x": x}
        case [n.Name(id=one), *_]:
            words = {"x" if rows else "t": one}
    help = re.sub(r"\b[tx]\b(?=[^`]*`[^`]*(?:`[^`]*`[^`]*)*$)", lambda m: words.get(m[0]) or m[0], help)
    return f"write {help}" if re.fullmatch("`[^`]*`", help) else help


@cache
def _calls() -> dict[str, dict[int, tuple[list[str], str]]]:
    """The ways out of `functions.toml`, by the name of the function and how many arguments it has."""
    calls: dict[str, dict[int, tuple[list[str], str]]] = {}
    for key, help in _functions()["calls"].items():
        names, _, parameters = key.partition("(")
        listed = parameters.rstrip(")").split(", ") if parameters else []
        for name in names.split():
            calls.setdefault(name, {})[len(listed)] = listed, help
    return calls


def way(name: str, args: Sequence[n.Expr] = ()) -> str:
    """What to write instead of a word of another language, called with these arguments; empty where it is none."""
    forms = _calls().get(name.lower(), _calls().get(name))
    if forms is None:
        return ""
    parameters, help = forms.get(len(args)) or next(iter(forms.values()))
    texts = dict(zip(parameters, args, strict=False))
    return "write " + re.sub(r"(?<![\w%\"'])[a-z]+(?![\w(\"'])|part(?=\()", lambda m: _put(m, texts), help)


def _put(word: re.Match[str], args: dict[str, n.Expr]) -> str:
    """An argument as it is written, in brackets where it may have to be."""
    arg = args.get(word[0])
    if arg is None:
        return word[0]
    text, span = word[0], arg.span
    if span.line == span.end_line:
        text = span.source.line(span.line)[span.column - 1 : span.end_column - 1]
    if word[0] == "part":
        return text.strip("\"'")
    if word[0] == "share":
        return share(text)
    alone = word.string[word.start() - 1] in "(`" and word.string[word.end()] in ",)`"
    compound = isinstance(arg, n.Binary | n.Logic | n.Conditional | n.Unary) and not text.startswith("(")
    return f"({text})" if compound and not alone else text


# How it stands in a program -----------------------------------------------------------------------


def of_field_of_table(
    columns: Mapping[str, str], node: n.Attribute | n.Index, around: Sequence[n.Node]
) -> Diagnostic | None:
    """Why a table has no field `t.age`, and no element `t["age"]` or `t[["age", "sex"]]`.

    `columns` are "numbers", "listed" or neither, by name. `around`: what the node stands in, the innermost first.
    """
    it, kind = node.value.span.text, "PrivateValue" if isinstance(node, n.Index) else "NameError"
    match node:
        case n.Attribute(name=name) | n.Index(args=(n.String(value=name),)):
            pass
        case n.Index(args=(n.ListOf(items=items),)) if all(isinstance(item, n.String) for item in items):
            picked = ", ".join(item.value for item in items if isinstance(item, n.String))
            message = f"columns of `{it}` are not taken out of it"
            return Diagnostic(kind, message, help=f"write `pick({it}, {picked})`")
        case _:
            return None
    if name in columns:
        message = f"`{name}` is a column of `{it}`, whose rows are read in a query alone"
        return Diagnostic(kind, message, help=_way_of_column(name, it, columns[name] != "listed", around))
    number, key = (next((one for one in columns if columns[one] == of), "") for of in ("numbers", "listed"))
    usage = next(iter(_called(around[:1], it)), None) or _indexed(around[:1], it) or Written(it)
    last = [one.name for one in around if isinstance(one, n.Attribute)][-1:]
    of_groups = last and name in ("groupby", "group_by", "groupBy") and last[0] not in _AGGREGATES
    help = (
        (home(last[0], t=it) if of_groups else "")
        or of_table(name, usage, number, key)
        or home(name, t=it)
        or f"rows are measured in a query: `{{{{ select count(*) from {it} with epsilon 0.1 }}}}`"
    )
    return Diagnostic(kind, f"`{it}` is a table and has no `{name}`", help=help)


def of_method(kind: str, node: n.Attribute, around: Sequence[n.Node], fields: Sequence[str] = ()) -> str:
    """The way out of `it.name(…)` on a public value of a kind, or an empty text."""
    it = node.value.span.text
    usage = next(iter(_called(around[:1], it)), None) or _indexed(around[:1], it) or Written(it)
    help = of_value(kind, node.name, usage, fields[-1] if fields else "", fields[0] if fields else "")
    down = {("reverse", "true"), ("descending", "true"), ("ascending", "false")} & set(usage.keywords)
    return re.sub(r"`(sorted\(.*\))`", r"`reversed(\1)`", help) if down else help


def of_call(name: str, call: n.Call | None, columns: Mapping[str, str]) -> str:
    """The way out of a function of another language, as it is called, or an empty text.

    `columns` are those of private tables, each with the name of one that has it.
    """
    usage = next(iter(_called([call], "")), Written("")) if call is not None else Written("")
    if name in forms("table") or name in forms("column"):
        match call.args[:1] if call is not None else ():
            case (n.Name(id=it),) if it in columns.values():
                number = _bare(usage.args[1]) if usage.args[1:] else "x"
                return of_table(name, replace(usage, it=it, args=usage.args[1:]), number, "")
            case (n.Attribute(value=n.Name(id=it), name=column),) if column in columns:
                return _of_argument(name, usage, it, column)
            case (n.Index(value=n.Name(id=it), args=(n.String(value=column),)),) if column in columns:
                return _of_argument(name, usage, it, column)
    return of_function(name, usage)


def _of_argument(name: str, usage: Written, it: str, column: str) -> str:
    """The way out of `mean(t.column)` and the like; `crosstab(t.column, t.other)` names another."""
    rest = replace(usage, it=it, args=usage.args[1:])
    return of_column(column, name, rest, numeric=True, other=_column_named(rest))


def _column_named(usage: Written) -> str:
    """The column that the first argument names, as `t.hours` or `hours`; empty where there is none."""
    return usage.args[0].rpartition(".")[2] if usage.args else ""


def _way_of_column(column: str, it: str, numeric: bool, around: Sequence[n.Node]) -> str:
    match around:
        case [n.Binary(op=op, right=right) as test, *_] if op in COMPARISONS and right is not None:
            bare = test.span.text.replace(f"{it}.", "").replace(f'{it}["{column}"]', column)
            return f"write `where({it}, {bare})`"
        case [n.Call(function=n.Name(id="histogram"), args=[_]), *_]:
            return f"write `histogram({it}, x = {column})`"
        case [n.Call(function=n.Name(id=name), args=[_]), *_] if name in ("avg", "sum", "min", "max", "median", "mean"):
            return of_column(column, name, Written(it), numeric=True)
        case [n.Call(function=n.Name(id=name, span=at)), *_] if not (
            name in BUILTINS
            or home(name)
            or re.search(r"\bdef N\b|\bN *=".replace("N", re.escape(name)), at.source.text)
        ):
            return f'a function takes a table, and its column by name: `{name}({it}, "{column}")`'
    method = around[0].name if around and isinstance(around[0], n.Attribute) else ""
    inner = around[1].name if len(around) > 1 and isinstance(around[1], n.Attribute) else ""
    usage = next(iter(_called(around[1:2], it)), Written(it))
    return of_column(column, method, usage, numeric=numeric, inner=inner, other=_column_named(usage))


def _called(nodes: Sequence[n.Node], it: str) -> list[Written]:
    return [
        Written(it, [arg.span.text for arg in call.args], [(k.name, k.value.span.text) for k in call.keywords])
        for call in nodes
        if isinstance(call, n.Call)
    ]


def _indexed(nodes: Sequence[n.Node], it: str) -> Written | None:
    """`t.loc[c]`, with the condition as an argument."""
    tests = [index.args[0].span.text for index in nodes if isinstance(index, n.Index) and index.args]
    return Written(it, [tests[0].replace(f"{it}.", "")]) if tests else None
