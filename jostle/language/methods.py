"""Methods of Python, NumPy and pandas, with what says the same here: `xs.append(4)` is `xs = append(xs, 4)`.

A person who writes one knows what is wanted, so that the way out can be the line to write. `<it>` stands for what the
method is called on, `<0>` and `<1>` for its arguments, `<column>` for a column of a table, `<number>` and `<key>` for
columns of it that a mean and groups can be of. A form with a place that nothing fills is not told.

Words of other languages that programs do not know have their ways out in `grammar/functions.toml`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache

from msgspec import Struct

from jostle.diagnostics import Diagnostic
from jostle.language.operations import COMPARISONS
from jostle.records import replace
from jostle.resources import folder
from jostle.syntax import nodes as n

_PLACE = re.compile(r"<(\w+)>")
_COUNT = "{{ select count(*) from <it> with epsilon 0.1 }}"
_GROUPS = "{{ select count(*) as n from <it> groupby <key> with epsilon 0.1 }}"


def _named(forms: dict[str, str]) -> dict[str, str]:
    return {name: form for names, form in forms.items() for name in names.split()}


OF_VALUES = {
    "a text": _named({
        "upper lower length": "<name>(<it>)", "strip trim": "trim(<it>)", "len size": "length(<it>)",
        "replace": "replace(<it>, <0>, <1>)", "startswith": "starts_with(<it>, <0>)",
        "endswith": "ends_with(<it>, <0>)", "split": "part(<it>, <0>, 1)", "find index": "contains(<it>, <0>)",
        "format": "<filled> + str(<0>)", "match search": "matches(<it>, <0>)", "contains": "contains(<it>, <0>)",
        "join": "for x in <0>: s = x if s == \"\" else s + <it> + x",
    }),
    "a list": _named({
        "append add": "<it> = append(<it>, <0>)", "extend": "<it> = <it> + <0>", "sort": "<it> = sorted(<it>)",
        "reverse": "<it> = reversed(<it>)", "length size shape count": "len(<it>)", "sum min max": "<name>(<it>)",
        "mean": "avg(<it>)", "std": "stddev(<it>)", "pop": "<it>[-1]", "remove": "<it> - [<0>]",
        "map": "[f(x) for x in <it>]", "tolist": "list(<it>)",
    }),
    "a number": _named({
        "round": "round(<it>, <0>)", "abs sqrt floor ceil": "<name>(<it>)", "toFixed": "round(<it>, <0>)",
    }),
    "a record": _named({
        "get": "<it>[<0>]", "items": "for k in keys(<it>)", "keys values": "<name>(<it>)", "length size": "len(<it>)",
    }),
    "a grouped result": _named({
        "mean": "avg(<it>.<column>)", "sum max min": "<name>(<it>.<column>)", "head": "<it>[0]", "iloc": "<it>[0]",
        "loc at": "<it>[<0>]\n<it>[\"…\"]",
        "plot hist": "plot(\"<column>\", x = <it>.<key>, y = <it>.<column>, kind = \"bars\")",
        "to_dict to_dicts": "list(<it>)", "to_csv": "release <it>", "iterrows": "for r in <it>",
        "reset_index to_frame": "table(<it>)",
        "size length shape count": "len(<it>)", "sort_values sort": "sorted(<it>, \"<column>\")",
    }),
}  # fmt: skip
"""By kind of value, as messages call it, and name."""

_AGGREGATES = {
    "mean": "avg", "average": "avg", "avg": "avg", "median": "median", "sum": "sum", "min": "min", "max": "max",
    "std": "stddev", "stddev": "stddev", "var": "var", "count": "count", "mode": "mode",
}  # fmt: skip

OF_COLUMNS = {
    **{name: "{{ select " + of + "(<column>) from <it> with epsilon 0.1 }}" for name, of in _AGGREGATES.items()},
    **_named({
        "nunique": "{{ select count(distinct <column>) from <it> with epsilon 0.1 }}",
        "quantile percentile": "{{ select quantile(<column>, <share>) from <it> with epsilon 0.1 }}",
        "value_counts unique": "{{ select count(*) as n from <it> groupby <column> with epsilon 0.1 }}",
        "fillna": "derive(<it>, <column> = coalesce(<column>, <0>))",
        "isna isnull": "where(<it>, <column> is missing)", "notna notnull": "where(<it>, <column> is not missing)",
        "str": "derive(<it>, <column> = <method>(<column>))", "dt": "derive(<it>, <method> = <method>(<column>))",
        "crosstab table": "{{ select count(*) as n from <it> groupby <column>, <other> with epsilon 0.1 }}",
        "cut qcut": "use classifiers` and `binned(<it>, \"<column>\", <0list>)\ngroupby floor(<it>.<column> / 10)",
        "to_datetime": "derive(<it>, <column> = date(<column>))",
        "hist plot": "histogram(<it>, x = <column>)",
        "between": "where(<it>, <column> between <0> and <1>)", "isin": "where(<it>, <column> in <0>)",
        "apply map astype": "derive(<it>, <column> = f(<column>))",
        "corr": "use statistics` and `correlation(<it>, \"<column>\", \"<other>\")",
    }),
}  # fmt: skip
"""Of a column that was taken out of a table, by the method that is called on it."""

OF_TABLES = _named({
    "head tail sample iloc iterrows itertuples values to_numpy info shape": _COUNT,
    "size count rows height len nrow dim lazy collect": _COUNT,
    "unique distinct drop_duplicates": "{{ select count(distinct <0bare>) from <it> with epsilon 0.1 }}",
    "describe summary": "use statistics` and `describe_numeric(<it>, \"<number>\")",
    "mean median sum min max std var": "{{ select <aggregate>(<number>) from <it> with epsilon 0.1 }}",
    "groupby group_by": "{{ select count(*) as n from <it> groupby <0bare> with epsilon 0.1 }}",
    "value_counts": _GROUPS,
    "sort_values sort order_by nlargest":
        "{{ select count(*) as n from <it> groupby <key> order by n desc with epsilon 0.1 }}",
    "query filter loc": "where(<it>, <0row>)",
    "merge join": "{{ select count(*) from <it> join <0> on <on> with epsilon 0.1 }}",
    "dropna": "where(<it>, <number> is not missing)", "fillna": "derive(<it>, <number> = coalesce(<number>, <0>))",
    "assign mutate with_columns": "derive(<it>, <keywords>)", "rename": "derive(<it>, name = <number>)",
    "drop select": "pick(<it>, <number>)",
    "apply agg pipe": _GROUPS,
    "pivot_table pivot":
        "{{ select avg(<values>) as <values> from <it> groupby <index> with epsilon 0.1 }}\n" + _GROUPS,
    "hist plot": "histogram(<it>, x = <number>)",
    "corr": "use statistics` and `correlation(<it>, <0>, <1>)\n"
            "use statistics` and `correlation_matrix(<it>, [\"<number>\", …])",
    "t_test ttest ttest_ind wilcoxon mannwhitneyu":
        "use statistics` and `compare(<it>, <0>, <1>)\nuse statistics` and `compare(<it>, \"<number>\", \"by\")",
    "chi_squared chi2 chisq_test chi2_contingency": "use statistics` and `independence(<it>, <0>, <1>)\n"
        "use statistics` and `independence(<it>, \"<number>\", \"by\")",
    "lm ols linregress regress": "use statistics` and `linear_regression(<it>, \"<number>\", [\"z\"])",
    "glm logit": "use statistics` and `logistic_regression(<it>, \"<number>\", [\"z\"])",
})  # fmt: skip
"""Of a table itself."""


OF_FUNCTIONS = _named({
    "mean average": "avg(<0>)", "std": "stddev(<0>)", "float": "number(<0>)", "int": "floor(<0>)",
    "c array Series tuple": "[<all>]", "paste concat paste0": "<0> + str(<1>)",
    "read_csv read_parquet read_table open read_excel csv parquet excel load read": "table(<0>)",
    "category categorical enum factor levels one_of": "{<all>}", "ifelse where": "<1> if <0> else <2>",
    "argmax": "idxmax(<0>)", "argmin": "idxmin(<0>)", "nrow": "len(<0>)", "randint": "sample(<all>)",
    "sqrt exp log floor ceil abs sum median max min": "<name>(<all>)", "dict": "{<keywords>}",
    "cut qcut": "groupby floor(<0> / 10)", "to_datetime": "date(<0>)", "na null": "<0> == none",
    "seq": "[i for i in <0>..<1> if (i - <0>) % <2> == 0]\n<0>..<1>", "length": "len(<0>)",
    "input": "param answer = \"\"", "quantile percentile": "quantile(<0>, <share>)",
})  # fmt: skip
"""Of functions of Python and R, also as `np.mean(…)`; `<all>` stands for all arguments by place."""

MODULES = frozenset({
    "np", "numpy", "pd", "pandas", "math", "statistics", "plt", "pl", "polars", "random", "datetime", "re", "os", "sys",
    "json", "scipy", "sklearn", "is", "stats",
})  # fmt: skip
"""Modules of Python by the names that programs give them; and `is`, as in `is.na` of R."""


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
        words["all"] = ", ".join(self.args)
        words["filled"] = re.sub(r"%[dsif]|\{\}", "", self.it)
        words["share"] = share(next(iter(self.args[-1:]), "0.5"))
        for at, arg in enumerate(self.args):
            words |= {str(at): arg, f"{at}bare": _bare(arg), f"{at}row": _of_row(_bare(arg))}
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


def _of_row(text: str) -> str:
    """An expression of polars on columns, `pl.col("age") > 40`, as one on rows."""
    return re.sub(r"""\b(?:pl\.)?col\(["'](\w+)["']\)""", r"\1", text)


def _bare(text: str) -> str:
    """A text without its quotes."""
    return text.strip("\"'")


def of_value(kind: str, name: str, usage: Written, column: str = "", key: str = "") -> str:
    """The way out of `it.name(…)` on a public value, or an empty text."""
    return _write(usage.filled(OF_VALUES.get(kind, {}).get(name, ""), name=name, column=column, key=key))


def of_table(name: str, usage: Written, number: str, key: str) -> str:
    """The way out of `t.name(…)` on a table that has the columns `number` and `key` among others, or an empty text."""
    aggregate = _AGGREGATES.get(name, "")
    return _write(usage.filled(OF_TABLES.get(name, ""), number=number, key=key, aggregate=aggregate))


def of_column(column: str, method: str, usage: Written, *, numeric: bool, inner: str = "", other: str = "") -> str:
    """The way out of `t.column` and `t.column.method(…)`; `inner` stands after the method, as in `t.c.str.upper()`."""
    usual = OF_COLUMNS["mean" if numeric else "value_counts"]
    forms = (OF_COLUMNS.get(method, usual), usual)
    lines = (usage.filled(form, column=column, method=inner, other=other) for form in forms)
    return _write(next(filter(None, lines)))


def of_groups(usage: Written, column: str, method: str) -> str:
    """The way out of an aggregate of a column in the groups of a table, or an empty text."""
    form = "{{ select <aggregate>(<column>) as <column> from <it> groupby <0bare> with epsilon 0.1 }}"
    return _write(usage.filled(form, column=column, aggregate=_AGGREGATES.get(method, "")))


def of_function(name: str, usage: Written) -> str:
    """The way out of a function of another language, or an empty text."""
    if name in ("range", "arange", "seq_len") and 1 <= len(usage.args) <= 2:
        first, past = ("0", *usage.args)[-2:]
        last = str(int(past) - 1) if past.isdigit() else f"{past} - 1"
        return _write(f"{first}..{last}")
    if name == "int" and usage.args and usage.args[0][:1] in "\"'":
        return _write(f"floor(number({usage.args[0]}))")
    return _write(usage.filled(OF_FUNCTIONS.get(name, ""), name=name))


def _write(line: str) -> str:
    return f"write `{line}`" if line else ""


_EMPTY_CALLS = {"n": "`count(*)`", "tally": "`count(*)`", "rows": "`count(*)`"}


@cache
def _calls() -> dict[str, dict[int, tuple[list[str], str]]]:
    """The ways out of `functions.toml`, by the name of the function and how many arguments it has."""
    import tomllib

    calls: dict[str, dict[int, tuple[list[str], str]]] = {}
    for key, help in tomllib.loads((folder("grammar") / "functions.toml").read_text(encoding="utf-8")).items():
        name, _, parameters = key.partition("(")
        listed = parameters.rstrip(")").split(", ") if parameters else []
        calls.setdefault(name, {})[len(listed)] = listed, help
    return calls


def way(name: str, args: Sequence[n.Expr] = ()) -> str:
    """What to write instead of a word of another language, called with these arguments; empty where it is none.

    `n()` is the name of a function that is called without any.
    """
    if name.endswith("()"):
        return f"write {_EMPTY_CALLS[name[:-2]]}" if name[:-2] in _EMPTY_CALLS else ""
    forms = _calls().get(name.lower(), _calls().get(name))
    if name.lower() == "exists":
        return _partner(args)
    if forms is None:
        return ""
    if len(args) not in forms or not args:
        return f"write {next(iter(forms.values()))[1]}"
    parameters, help = forms[len(args)]
    texts = dict(zip(parameters, args, strict=True))
    return "write " + re.sub(r"(?<![\w%\"'])[a-z]+(?![\w(\"'])|part(?=\()", lambda m: _put(m, texts), help)


def _partner(args: Sequence[n.Expr]) -> str:
    """The join that `exists (select … from u where u.k = t.k)` means; of several rows with one k see `per person`."""
    table, key = "u", "k"
    for select in args:
        if isinstance(select, n.Select):
            table = select.table.span.text
            match select.where:
                case n.Binary(op="==" | "=", left=n.Attribute(name=key)):
                    return f"write `join {table} on {key}`"
    rows = f"`{key} in [row.{key} for row in {table}]`"
    return f"write `join {table} on {key}`, where `{key}` is a column of both, or {rows}"


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
    help = _way_of_groups(name, usage, around) or of_table(name, usage, number, key)
    if name in ("norm", "radius"):
        numbers = [one for one in columns if columns[one] == "numbers"][:3] or ["x", "y"]
        help = f"rows as vectors have it: hand over `vectors(t, {', '.join(numbers)})` in place of a table"
    help = help or f"rows are measured in a query: `{{{{ select count(*) from {it} with epsilon 0.1 }}}}`"
    return Diagnostic(kind, f"`{it}` is a table and has no `{name}`", help=help)


def _way_of_groups(name: str, usage: Written, around: Sequence[n.Node]) -> str:
    """The way out of `t.groupby("city")["hours"].mean()` and `t.groupby("city").hours.mean()`, or an empty text."""
    if name not in ("groupby", "group_by") or not usage.args:
        return ""
    match around[1:3]:
        case [n.Index(args=(n.String(value=column),)) | n.Attribute(name=column), n.Attribute(name=method)]:
            return of_groups(usage, column, method)
    return ""


def of_method(kind: str, node: n.Attribute, around: Sequence[n.Node], fields: Sequence[str] = ()) -> str:
    """The way out of `it.name(…)` on a public value of a kind, or an empty text."""
    it = node.value.span.text
    usage = next(iter(_called(around[:1], it)), None) or _indexed(around[:1], it) or Written(it)
    return of_value(kind, node.name, usage, fields[-1] if fields else "", fields[0] if fields else "")


def of_call(name: str, call: n.Call | None, columns: Mapping[str, str]) -> str:
    """The way out of a function of another language, as it is called, or an empty text.

    `columns` are those of private tables, each with the name of one that has it.
    """
    usage = next(iter(_called([call], "")), Written("")) if call is not None else Written("")
    if name in OF_TABLES or name in OF_COLUMNS:
        match call.args[:1] if call is not None else ():
            case (n.Name(id=it),) if it in columns.values():
                return of_table(name, replace(usage, it=it, args=usage.args[1:]), "x", "")
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
        case [n.Call(function=n.Name(id=name), args=[_]), *_] if name in ("avg", "sum", "min", "max", "median", "mean"):
            return of_column(column, name, Written(it), numeric=True)
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
