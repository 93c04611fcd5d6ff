"""Words of other languages that programs do not know, and what to write instead.

A key is a word, or a call of it with its arguments' names; of a call with as many arguments the help is written with
those that stand there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from jostle.language.methods import share
from jostle.syntax import nodes as n

_WINDOWS = "shares are `g.n / sum(g.n)` of a result; `up to 1 row by date desc` reads one row of each person"
_CLOCK = "the day itself, such as `2024-03-01`: a program has no clock"
_TEXTS = "`groupby x` for how often each text occurs: texts of rows are not handed out"
_INSTEAD = {
    "null": "`none`", "nil": "`none`", "None": "`none`", "NULL": "`none`", "True": "`true`", "False": "`false`",
    "nan": "`none`", "na": "`none`", "undefined": "`none`", "type": "nothing: `:type NAME` tells it in `jostle repl`",
    "__name__": "the lines alone: a program runs from the top", "input": "`param answer = \"\"`, and `--set answer=…`",
    "dataframe": "`table([{a: 1}, {a: 2}])`",
    "self": "a parameter", "dict": "`{a: 1}`, or `record(pairs)`", "reduce": "`sum over x in xs of f(x)`, or a loop",
    "range": "`0..4` for the numbers from 0 to 4", "map": "`[f(x) for x in xs]`", "int": "`floor(x)`",
    "filter": "`[x for x in xs if x > 1]`", "any": "`len([x for x in xs if x > 1]) > 0`", "float": "`number(x)`",
    "all": "`len([x for x in xs if not x > 1]) == 0`", "length": "`len(x)`", "len_chars": "`length(x)`",
    "exit": "nothing more: a program ends with its text", "quit": "nothing more: a program ends with its text",
    "mean": "`avg`", "average": "`avg`", "variance": "`var`", "std": "`stddev`", "stdev": "`stddev`",
    "var_samp": "`var`", "stddev_samp": "`stddev`", "covar_samp": "`covariance`",
    "var_pop": "`var(x)`, which is the sample's", "stddev_pop": "`stddev(x)`, which is the sample's",
    "corr(x, y)": "`covariance(x, y) / (stddev(x) * stddev(y))`", "approx_count_distinct(x)": "`count(distinct x)`",
    "countif(c)": "`count(1 if c else none)`", "count_if(c)": "`count(1 if c else none)`",
    "sumif(x, c)": "`sum(x if c else 0)`", "percentile_cont": "`quantile(x, 0.5)`",
    "percentile(x, share)": "`quantile(x, share)`",
    "approx_quantiles(x, y)": "`quantile(x, 0.25) as low, median(x) as middle`, and so on",
    "safe_divide(x, y)": "`x / y`, which is none where y is 0", "div0(x, y)": "`x / y`, which is none where y is 0",
    "library": "`use statistics`, or another module of the library", "require": "`use statistics`, or another module",
    "iif(c, x, y)": "`x if c else y`", "nullif(x, y)": "`none if x == y else x`", "isnan(x)": "`x is missing`",
    "isnull(x)": "`x is missing`", "isnull(x, y)": "`coalesce(x, y)`", "isna(x)": "`x is missing`",
    "ifnull(x, y)": "`coalesce(x, y)`", "nvl(x, y)": "`coalesce(x, y)`", "fillna(x, y)": "`coalesce(x, y)`",
    "greatest(x, y)": "`max(x, y)`", "least(x, y)": "`min(x, y)`", "clip(x, y, z)": "`clamp(x, y, z)`",
    "pow(x, y)": "`x ^ y`", "power(x, y)": "`x ^ y`", "mod(x, y)": "`x % y`", "ln(x)": "`log(x)`",
    "log10(x)": "`log(x) / log(10)`", "log2(x)": "`log(x) / log(2)`", "ceiling(x)": "`ceil(x)`",
    "sign(x)": "`1 if x > 0 else -1 if x < 0 else 0`", "substr": "`substring(x, 1, 3)`",
    "concat(x, y)": "`x + y`", "concat(x, y, z)": "`x + y + z`", "concat(x, y, z, u)": "`x + y + z + u`",
    "initcap(x)": "`upper(substring(x, 1, 1)) + lower(substring(x, 2))`", "left(x, y)": "`substring(x, 1, y)`",
    "right(x, y)": "`ends_with(x, \"s\")`, or `matches(x, \"s$\")`", "char_length(x)": "`length(x)`",
    "len(x)": "`length(x)`", "ltrim(x)": "`trim(x)`", "rtrim(x)": "`trim(x)`", "strpos(x, y)": "`position(x, y)`",
    "locate(y, x)": "`position(x, y)`", "charindex(y, x)": "`position(x, y)`", "split_part": "`part(x, \";\", 1)`",
    "regexp_contains(x, y)": "`matches(x, y)`", "regexp_like(x, y)": "`matches(x, y)`",
    "regexp_matches(x, y)": "`matches(x, y)`", "string_agg": _TEXTS, "group_concat": _TEXTS, "listagg": _TEXTS,
    "array_agg": _TEXTS, "date_trunc(y, x)": "`trunc(x, y)`", "date_part(part, x)": "`part(x)`",
    "datepart(part, x)": "`part(x)`", "dateadd(z, y, x)": "`x + y`", "date_add(x, y)": "`x + y`",
    "datediff(x, y)": "`days_between(y, x)`", "datediff(z, x, y)": "`days_between(x, y)`",
    "date_diff(z, x, y)": "`days_between(x, y)`", "to_date(x)": "`date(x)`", "to_timestamp(x)": "`time(x)`",
    "to_char(x)": "`text(x)`", "strptime": "`time(x, \"%d/%m/%Y\")`", "parse_date": "`date(x, \"%d/%m/%Y\")`",
    "parse_time": "`time(x, \"%I:%M %p\")`", "dayofweek(x)": "`weekday(x)`", "dow(x)": "`weekday(x)`",
    "at_timezone(x, y)": "`in_zone(x, y)`", "current_date": _CLOCK, "current_timestamp": _CLOCK, "now": _CLOCK,
    "getdate": _CLOCK, "today": _CLOCK, "row_number": _WINDOWS, "rank": _WINDOWS,
    "lag": _WINDOWS, "lead": _WINDOWS,
    "value_counts": "`{{ select count(*) as n from people groupby city with epsilon 0.1 }}`",
    "value_counts(t, x)": "`{{ select count(*) as n from t groupby x with epsilon 0.1 }}`",
    "nrow": "`count(*)` in a query, `len(x)` of a list", "n_distinct(x)": "`count(distinct x)`",
}  # fmt: skip
_EMPTY_CALLS = {"n": "`count(*)`", "tally": "`count(*)`", "rows": "`count(*)`"}
_CALLS: dict[str, dict[int, tuple[list[str], str]]] = {}
for _key, _help in _INSTEAD.items():
    _name, _, _parameters = _key.partition("(")
    _listed = _parameters.rstrip(")").split(", ") if _parameters else []
    _CALLS.setdefault(_name, {})[len(_listed)] = _listed, _help


def way(name: str, args: Sequence[n.Expr] = ()) -> str:
    """What to write instead of a word of another language, called with these arguments; empty where it is none.

    `n()` is the name of a function that is called without any.
    """
    if name.endswith("()"):
        return f"write {_EMPTY_CALLS[name[:-2]]}" if name[:-2] in _EMPTY_CALLS else ""
    forms = _CALLS.get(name.lower(), _CALLS.get(name))
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
