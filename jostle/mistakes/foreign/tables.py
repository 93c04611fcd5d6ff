"""What the words of other languages do with tables, groups of them and columns.

pandas, polars, Spark, R, dplyr and Excel say in calls and pipes which rows of a table they mean, which groups, and
what is asked of them. `Verbs` makes of `Rows`, and the arguments of a call, other rows, or a call of the library.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence

from jostle.mistakes.foreign import (
    MEASURES,
    Answer,
    Nothing,
    Report,
    Rows,
    Unread,
    Value,
    alias_of,
    arguments_named,
    columns_in,
    descends,
    every_argument,
    means,
    measure,
    parse,
    parts_in,
    parts_of,
    plain,
    point,
    unparse,
    unread,
    word_of,
    words,
)  # fmt: skip
from jostle.mistakes.foreign.expressions import Known
from jostle.records import replace


class Verbs(Known):
    """The words of `foreign.toml`, each applied to rows and the arguments of a call, which are not read yet."""

    def meant(self, node: ast.expr) -> Value:
        return self.read(node) or unread()

    def under(self, aggregate: str, of: Rows, call: ast.Call) -> Value:
        """`COUNTIF(x, ">3")`, `SUMIFS(x, a, "p", b, "q")`, `AVERAGEIF(a, "p", x)`."""
        args: list[ast.expr] = [ast.Name(column) for column in of.takes]
        args += [
            ast.Name(got.takes[0]) if isinstance(got := self.read(arg), Rows) and got.takes else arg
            for arg in call.args
        ]
        several, measured = point(call.func).lower().endswith("s"), of.takes[0] if of.takes else unread()
        if aggregate != "count" and len(args) == 3 and not several:
            measured, args = unparse(args.pop()), args
        elif aggregate != "count" and several:
            args = args[1:]
        tests = []
        for column, test in zip(args[::2], args[1::2], strict=True):
            sign = re.fullmatch(r"([<>=]+)(.*)", str(getattr(test, "value", "")))
            value = sign[2] if sign and re.fullmatch(r"-?[\d.]+", sign[2]) else repr(sign[2]) if sign else unparse(test)
            value = f"{ {'=': '==', '<>': '!='}.get(sign[1], sign[1]) if sign else '==' } {value}"
            tests.append(self.term(parse(f"{unparse(column)} {value}"), replace(of, takes=())))
        text = "count(*)" if aggregate == "count" else f"{aggregate}({measured})"
        return replace(of, where=(*of.where, *tests), asks=((text, ""),), takes=())

    def aggregate(self, word: str, of: Rows, call: ast.Call) -> Rows:
        counts = means("aggregates", word) == "count"
        if of.asks and of.keys and counts and of.asks[0][0] == "count(*)":
            return replace(of, asks=((f"count(distinct {', '.join(key for key, _ in of.keys)})", ""),), keys=())
        if of.asks:
            return of if len(of.asks) == 1 and not of.keys else unread()
        columns = of.takes or tuple(w for part in parts_of(call.args) if (w := word_of(part)) in of.columns)
        if (weights := self.weights(word, call)) is not None:
            weight = self.term(weights, replace(of, takes=(), picks=False))
            text = f"sum({columns[0]} * {weight}) / sum({weight})" if len(columns) == 1 and not of.keys else unread()
            return replace(of, asks=((text, ""),), takes=())
        if arguments_named(call).keys() - {"q", "probs", "prob", "interpolation"} or not (columns or counts):
            raise Unread  # it says more than is understood
        names = self.names_of(columns, of)
        asks = [(measure(word, c, every_argument(call)), name) for c, name in zip(columns, names, strict=True)]
        return replace(of, asks=tuple(asks) or (("count(*)", "n" if of.keys else ""),), takes=(), picks=False)

    def weights(self, word: str, call: ast.Call) -> ast.expr | None:
        """The weights of a mean, which is a ratio of sums then."""
        own = {keyword.arg: keyword.value for keyword in call.keywords}
        return own.get("weights") or (call.args[0] if plain(word).startswith("weighted") else None)

    def names_of(self, columns: Sequence[str], of: Rows) -> list[str]:
        several = bool(of.keys) or len(columns) > 1
        return ["" if not several else column if column in of.columns else "x" for column in columns]

    # Tables: some rows or columns, more columns, rows of others --------------------------------

    def do_same(self, of: Rows, call: ast.Call) -> Value:
        return of

    def do_filter(self, of: Rows, call: ast.Call) -> Value:
        if of.keys and not of.asks:
            raise Nothing("filter_of_groups")
        own = arguments_named(call)
        tests = [self.condition(arg, of) for arg in call.args]
        tests += [ast.Compare(ast.Name(name), [ast.Eq()], [own[name]]) for name in own if name in of.columns]
        if of.asks:
            names = tuple(name for _, name in (*of.asks, *of.keys))
            return replace(of, having=(*of.having, *(self.term(test, Rows("", names)) for test in tests)))
        of = replace(of, where=(*of.where, *(self.term(test, replace(of, takes=())) for test in tests)))
        picked_columns = tuple(word_of(one) for one in parts_in(own["select"])) if "select" in own else ()
        return replace(of, takes=picked_columns, picks=True) if picked_columns else of

    def condition(self, node: ast.expr, of: Rows) -> ast.expr:
        if isinstance(node, ast.Constant):
            return parse(re.sub("(?<![<>=!])=(?!=)", "==", word_of(node)))
        return self.with_it(node, of)

    def with_it(self, node: ast.expr, of: Value) -> ast.expr:
        """The body of a function of rows; its parameter is the rows then."""
        self.it[node.args.args[0].arg if isinstance(node, ast.Lambda) else "_it"] = of
        return node.body if isinstance(node, ast.Lambda) else node

    def do_derive(self, of: Rows, call: ast.Call) -> Rows:
        pairs = list(arguments_named(call).items())
        if len(call.args) == 2 and isinstance(call.args[0], ast.Constant):
            pairs.append((word_of(call.args[0]), call.args[1]))
        else:
            pairs += [alias_of(arg) for arg in parts_of(call.args)]
        for name, node in pairs:
            text = self.term(self.with_it(node, of), replace(of, takes=()), measures=True)
            if of.keys or MEASURES.search(re.sub(r"\b(?:min|max)\([^()]*,[^()]*\)", "", text)):
                raise Nothing("derive_by_group")
            of = self.with_column(of, name or unread(), text) if not of.asks else unread()
        return of

    def with_column(self, of: Rows, name: str, text: str) -> Rows:
        of = replace(of, takes=(), picks=False)
        together = re.fullmatch(r"(derive\(.*)\)", of.table) if not of.where and not of.joins else None
        is_own = together and not {*re.findall(r"\w+", text)} & {*re.findall(r"(\w+) =(?!=)", together[1])}
        source = f"{together[1]}, {name} = {text})" if together and is_own else f"derive({of.table}, {name} = {text})"
        return replace(of, source=source, where=(), joins="", columns=(*of.columns, name))

    def do_rename(self, of: Rows, call: ast.Call) -> Value:
        args = parts_of(call.args)
        pairs = [
            (name, word_of(node)) for name, node in arguments_named(call).items() if not isinstance(node, ast.Dict)
        ]
        for one in [node for node in every_argument(call) if isinstance(node, ast.Dict)]:
            pairs += [(word_of(new), word_of(old)) for old, new in zip(one.keys, one.values, strict=True) if old]
        pairs += [(word_of(args[1]), word_of(args[0]))] if len(args) == 2 else []
        for new, old in pairs:
            of = self.with_column(of, new, old if old in of.columns else unread())
        return of

    def do_pick(self, of: Rows, call: ast.Call) -> Value:
        args, columns = parts_of(call.args), columns_in(call, of)
        if any(isinstance(part, ast.UnaryOp) for part in args):
            return self.do_drop(of, call)
        whole = columns and len(columns) == len(args) and not of.asks
        return replace(of, takes=columns, picks=True, columns=columns) if whole else unread()

    def do_drop(self, of: Rows, call: ast.Call) -> Value:
        columns = columns_in(call, of)
        left = tuple(column for column in of.columns if column not in columns)
        return replace(of, takes=left, picks=True) if columns and not (of.asks or of.takes) else unread()

    def do_pull(self, of: Rows, call: ast.Call) -> Value:
        return of if of.asks else replace(of, takes=columns_in(call, of)[:1] or unread())

    def do_missing(self, of: Rows, call: ast.Call) -> Value:
        tests = [f"{column} is not missing" for column in of.takes or columns_in(call, of)]
        return of if of.asks else replace(of, where=(*of.where, *tests)) if tests else unread()

    def do_union(self, of: Rows, call: ast.Call) -> Value:
        others = [other.table for arg in parts_of(call.args) if isinstance(other := self.meant(arg), Rows)]
        return replace(of, source=f"union({', '.join([of.table, *others])})", where=(), joins="")

    def do_join(self, of: Rows, call: ast.Call) -> Value:
        other, own = self.meant(call.args[0]), arguments_named(call)
        name = (point(call.func) or getattr(call.func, "attr", "")).rpartition(".")[2]
        how = (word_of(own.get("how", ast.Name(""))) or name).partition("_")[0]
        sql = {"inner": "", "join": "", "merge": "", "outer": "full "} | {k: f"{k} " for k in ("left", "right", "full")}
        on = own.get("on") or own.get("by") or (call.args[1] if len(call.args) > 1 else None)
        if not isinstance(other, Rows) or how not in sql or isinstance(on, ast.Compare):
            raise Unread
        keys = [word_of(p) for p in parts_in(on)] if on is not None else [c for c in of.columns if c in other.columns]
        if "lefton" in own and "righton" in own:
            keys = [f"{word_of(own['lefton'])} = {word_of(own['righton'])}"]
        return self.with_join(of, sql[how], other, ", ".join(keys) or unread())

    def with_join(self, of: Rows, kind: str, other: Rows, on: str) -> Rows:
        of = replace(of, source=of.table, where=(), joins="") if of.where else of
        columns = tuple(dict.fromkeys((*of.columns, *other.columns)))
        return replace(of, joins=f"{of.joins} {kind}join {other.table} on {on}", columns=columns)

    # Groups, and what is asked of rows or groups -----------------------------------------------

    def do_group(self, of: Rows, call: ast.Call) -> Value:
        keys = [self.key(part, of) for part in parts_of(call.args)]
        for name, node in arguments_named(call).items():
            keys += [self.key(part, of, "" if name == "by" else name) for part in parts_in(node)]
        return replace(of, keys=(*of.keys, *keys), takes=(), picks=False)

    def key(self, node: ast.expr, of: Rows, name: str = "") -> tuple[str, str]:
        alias, node = alias_of(node)
        word, rows = word_of(node), replace(of, takes=(), picks=False)
        text = word if word in of.columns and not isinstance(node, ast.Call) else self.term(node, rows)
        used = next((column for column in of.columns if re.search(rf"\b{re.escape(column)}\b", text)), "") or unread()
        return (f"({text})" if re.search(" if | and | or | [<>=]", text) else text), name or alias or used

    def do_by(self, of: Rows, call: ast.Call) -> Value:
        """`tapply(x, k, f)`, `split(x, k)`."""
        of = replace(of, keys=tuple(self.key(part, of) for part in parts_in(call.args[0])))
        return self.aggregate(point(call.args[1]), of, ast.Call(call.func, [], [])) if len(call.args) > 1 else of

    def do_apply(self, of: Rows, call: ast.Call) -> Value:
        if isinstance(call.args[0], ast.Lambda):
            return self.meant(self.with_it(call.args[0], of))
        return self.aggregate(
            word_of(call.args[0]), of if of.keys else unread(), ast.Call(call.func, call.args[1:], [])
        )

    def do_reduce(self, of: Rows, call: ast.Call) -> Value:
        adds = isinstance(call.args[0], ast.Lambda) and isinstance(getattr(call.args[0].body, "op", None), ast.Add)
        return self.aggregate("sum", of if adds else unread(), ast.Call(call.func, [], []))

    def do_product(self, of: Rows, call: ast.Call) -> Value:
        columns = [*of.takes, *(c for arg in call.args if isinstance(got := self.meant(arg), Rows) for c in got.takes)]
        return replace(of, asks=((f"sum({' * '.join(columns)})", ""),), takes=())

    def do_within(self, of: Rows, call: ast.Call) -> Value:
        """`with(t, mean(x))`."""
        text = self.term(call.args[0], of, measures=True)
        return replace(of, asks=((text, ""),)) if MEASURES.search(text) else replace(of, takes=(text,))

    def do_summarise(self, of: Rows, call: ast.Call) -> Value:
        own, args = arguments_named(call), parts_of(call.args)
        if args and not own and not of.takes and all(word_of(part) in of.columns for part in args):
            return self.do_pick(of, call)
        asks = [pair for arg in call.args for pair in self.asked_by("", arg, of)]
        asks += [pair for name, node in own.items() for pair in self.asked_by(name, node, of)]
        return replace(of, asks=tuple(asks) or unread(), takes=(), picks=False)

    def asked_by(self, name: str, node: ast.expr, of: Rows) -> list[tuple[str, str]]:
        """What one argument of `agg` asks for: `n = n()`, `x = ("a", "mean")`, `{"a": "mean"}`, `["mean", "std"]`."""
        alias, node = alias_of(node)
        parts, name = parts_in(node), name or alias
        if isinstance(node, ast.Dict):
            return _by_column(node)
        if len(parts) == 2 and word_of(parts[0]) in of.columns and not isinstance(node, ast.List):
            return [(measure(word_of(parts[1]), word_of(parts[0])), name)]
        if of.takes and all(means("aggregates", word_of(part)) for part in parts):
            return [(measure(word_of(part), c), name or word_of(part)) for c in of.takes for part in parts]
        if isinstance(node, ast.List):
            return [pair for part in parts for pair in self.asked_by("", part, of)]
        return [*_across(node)] or [self.asked_as(name, node, of)]

    def asked_as(self, name: str, node: ast.expr, of: Rows) -> tuple[str, str]:
        text = self.term(node, replace(of, takes=()), measures=True)
        named = (column for column in of.columns if re.search(rf"\b{re.escape(column)}\b", text))
        used = next(named, "n" if text == "count(*)" else "")
        return (text if MEASURES.search(text) else unread()), name or (used if of.keys else "")

    def do_count(self, of: Rows, call: ast.Call) -> Value:
        """`value_counts`, `count(t, k, sort = TRUE)`, `table(x, y)`, `crosstab(x, y)`."""
        if arguments_named(call):
            raise Unread  # of weights, or in bins
        args = [part for part in parts_of(call.args) if not isinstance(part, ast.Constant) or part.value in of.columns]
        tests = [self.term(part, of) for part in args if isinstance(part, ast.Compare | ast.BoolOp)]
        args = [part for part in args if not isinstance(part, ast.Compare | ast.BoolOp)]
        of = replace(of, where=(*of.where, *tests))
        keys = (*of.keys, *(self.key(part, of) for part in (*map(parse, of.takes), *args)))
        flags = {plain(k.arg or "") for k in call.keywords if "true" in unparse(k.value).lower()}
        asks, order = (("count(*)", "n" if keys else ""),), "n desc" if keys and "sort" in flags else ""
        return replace(of, keys=keys, asks=asks, takes=(), picks=False, order=order, shares="normalize" in flags)

    def do_shares(self, of: Rows, call: ast.Call) -> Value:
        return replace(of, shares=True) if of.asks and not call.args else unread()

    def do_pivot(self, of: Rows, call: ast.Call) -> Value:
        own = arguments_named(call)
        if of.keys and call.args:
            return replace(of, keys=(*of.keys, self.key(call.args[0], of)))
        if "aggfunc" not in own and "pivot_table" not in unparse(call.func):
            raise Nothing("pivot")
        keys = [(word_of(part), "") for name in ("index", "columns") if name in own for part in parts_in(own[name])]
        word, values = word_of(own.get("aggfunc", ast.Name("mean"))), own.get("values")
        asks = [(measure(word, c), c) for part in (parts_in(values) if values else ()) if (c := word_of(part))]
        return replace(of, keys=tuple(keys), asks=tuple(asks) or (("count(*)", "n"),))

    def do_sort(self, of: Rows, call: ast.Call) -> Value:
        if not of.asks:
            raise Nothing("sort")
        names = [name for _, name in (*of.asks, *of.keys)]
        words_in = [word_of(part) for part in parts_of(every_argument(call))]
        by = next((word for word in words_in if word in names), of.asks[0][1]) or unread()
        return replace(of, order=f"{by}{' desc' * descends(call)}")

    def do_head(self, of: Rows, call: ast.Call) -> Value:
        if not of.asks:
            raise Nothing("head")
        number = next((str(arg.value) for arg in every_argument(call) if isinstance(arg, ast.Constant)), "1")
        return replace(of, limit=number) if of.keys else of

    def by_formula(self, args: Sequence[ast.expr], own: Mapping[str, ast.expr]) -> Value:
        """`aggregate(x ~ a + b, data = t, FUN = mean)`."""
        formula, table, function = args[0], self.meant(args[1]), word_of(own.get("fun", args[-1]))
        if not isinstance(formula, ast.BinOp) or not isinstance(table, Rows):
            raise Unread
        asks = tuple((measure(function, word_of(c)), word_of(c)) for c in parts_in(formula.left))
        return replace(table, keys=tuple(self.key(part, table) for part in parts_in(formula.right)), asks=asks)

    # The library, and results ------------------------------------------------------------------

    def report(self, word: str, of: Rows | None, call: ast.Call) -> Value:
        """A call of the library, of the columns that stand somewhere in the arguments, a formula or `fit(X, y)`."""
        module, function, takes = (means("library", word) or word).split()
        _need_known(takes, call)
        tables, columns, rest = [of] if of else [], [*of.takes] if of else [], list[ast.expr]()
        keywords = [ast.keyword("", arg) for arg in call.args] + call.keywords
        for name, arg in [(keyword.arg or "", keyword.value) for keyword in keywords]:
            arg = parse(word_of(arg)) if "~" in word_of(arg) else arg
            if isinstance(arg, ast.BinOp) and isinstance(arg.op, ast.BitOr):
                columns = [word_of(part) for part in (arg.left, *parts_in(arg.right))]
            elif name == "family":
                function = _of_family(unparse(arg))
            elif isinstance(got := self.read(arg), Rows):
                tables.append(got)
                target = (
                    takes in ("model", "class") and _alone(got) and name in ("y", "") and len(tables) > 1 - len(name)
                )
                columns = [*_columns_of(got), *columns] if target else [*columns, *_columns_of(got)]
            else:
                rest.append(arg)
        if tables:
            return self.called(module, function, takes, tables, columns, rest)
        return Report(f"{module} {function} {takes}") if takes in ("model", "class") else unread()

    def called(
        self, module: str, function: str, takes: str, tables: list[Rows], columns: list[str], rest: list[ast.expr]
    ) -> Value:
        """The call of a function that takes a pair of columns, one by another, a model of one by others, or others."""
        table = replace(tables[0], takes=(), picks=False, keys=(), asks=())
        columns = [*columns, *(name for part in parts_of(rest) if (name := word_of(part)) in table.columns)]
        columns = list(dict.fromkeys(columns))
        if takes == "by" and len(columns) == 1:
            halves = {match[1] for one in tables for c in one.where if (match := re.match(r"(\w+) == ", c))}
            columns, table = [*columns, *halves], replace(table, where=())
        if any(one.source != table.source for one in tables) or not columns or not set(columns) <= set(table.columns):
            raise Unread
        texts, many = [f'"{column}"' for column in columns], len(columns)
        function = "correlation_matrix" if function == "correlation" and many > 2 else function
        shares = next((self.term(arg) for arg in rest if len(parts_in(arg)) > 1), "")
        least, most = {"one": (1, 1), "shares": (1, 1), "by": (2, 2), "class": (1, 99)}.get(takes, (2, 99))
        if not least <= many <= most or (takes == "shares" and not shares):
            raise Unread
        if takes == "class" and 1 < many < len(table.columns):
            table = replace(table, takes=(*columns[1:], columns[0]), picks=True)
        others = f"{texts[0]}, [{', '.join(texts[1:])}]"
        inside = {"class": texts[0], "model": others, "shares": f"{texts[0]}, {shares}"}.get(takes, ", ".join(texts))
        inside = f"[{inside}]" if function == "correlation_matrix" else inside
        return Report(module, f"{function}({table.table}, {inside})", table.amount)

    def of_answer_at(self, of: Answer, part: ast.expr, names: Sequence[str]) -> Answer:
        result = self.answers.get(of.text.partition(".")[0])
        if isinstance(part, ast.Compare) and not of.columns and result is not None:  # `g.n[g.region == "north"]`
            return replace(self.of_answer("filter", result, ast.Call(part, [part], [])), columns=()).at(of.text)
        if _OF_KEY.fullmatch(of.text) and isinstance(part, ast.Constant) and part.value in (0, 1):
            return of
        if (column := _OF_COLUMN.fullmatch(of.text)) and isinstance(part, ast.Constant) and isinstance(part.value, str):
            return Answer(f"{column[1]}[{self.term(part)}].{column[2]}")
        if len(names) == 1 and names[0] in of.columns and not isinstance(part, ast.Call):
            return Answer(f"{of.text}.{names[0]}")
        if isinstance(part, ast.Call) and point(part.func) == "order":
            return self.of_answer("arrange", of, part)
        if of.columns and not isinstance(part, ast.Constant):
            return self.of_answer("filter", of, ast.Call(part, [part], []))
        inner, at = re.fullmatch(r"reversed\((sorted\(.*\))\)", of.text), self.term(part)
        return Answer(f"{inner[1]}[-1]" if inner and at in ("0", "1") else f"{of.text}[{at}]", of.columns)

    def of_answer(self, word: str, of: Answer, call: ast.Call) -> Answer:
        """What a word does with a result, or with a value of it."""
        does, args = means("verbs", word), every_argument(call)
        if does == "same" or (does == "head" and _OF_KEY.fullmatch(of.text)):
            return of
        if does == "pull":
            return Answer(f"{of.text}.{word_of(args[0])}")
        if of.columns and does in ("filter", "sort", "head"):
            return self.of_result(does, word, of, call)
        measures = means("aggregates", word)
        if measures == "count" and not args and (not of.columns or plain(word) != "count"):
            return Answer(f"len({of.text})")
        if measures in words("of_lists") and not of.columns and not args:
            return Answer(f"{measures}({of.text})")
        if means("nothing", word) or not args:
            raise Unread
        return Answer(self.term(ast.Call(ast.Name(word), [ast.Name(of.text), *call.args], call.keywords)))

    def of_result(self, does: str, word: str, of: Answer, call: ast.Call) -> Answer:
        args = every_argument(call)
        if does == "filter":
            text = word_of(args[0]) if isinstance(args[0], ast.Constant) else ""
            test = self.with_it(parse(text) if text else args[0], of)
            match test:  # a row of the result, by its key
                case ast.Compare(left=key, ops=[ast.Eq()], comparators=[ast.Constant(value=value)]) if (
                    word_of(key) == of.columns[0] and of.text in self.answers
                ):
                    return Answer(f"{of.text}[{self.term(ast.Constant(value))}]", of.columns)
            return Answer(f"[r for r in {of.text} if {self.term(test, of)}]", of.columns)
        if does == "sort":
            by = next((w for part in parts_of(args) if (w := word_of(part)) in of.columns), "") or unread()
            text = f'sorted({of.text}, "{by}")'
            return Answer(f"reversed({text})" if descends(call) else text, of.columns)
        many = next((arg.value for arg in args if isinstance(arg, ast.Constant) and isinstance(arg.value, int)), 1)
        if plain(word) == "head" and not args:
            return of  # some of the groups, however many are shown
        if many > 1 or plain(word) == "head":
            return Answer(f"[{of.text}[i] for i in 0..{many - 1}]")
        return self.of_answer_at(of, ast.Constant(0), [])


def _need_known(takes: str, call: ast.Call) -> None:
    """`Unread` where a call says more than is understood, but for the settings of an algorithm."""
    names = (*_OF_REPORTS, *words("ignored"))
    if takes != "class" and any(k.arg and plain(k.arg) not in names for k in call.keywords):
        raise Unread


def _of_family(text: str) -> str:
    return next((function for name, function in _FAMILIES.items() if name in text), "") or unread()


def _columns_of(of: Rows) -> tuple[str, ...]:
    return of.takes or tuple(key for key, _ in of.keys)


def _alone(of: Rows) -> bool:
    """Whether one column is meant."""
    return len(of.takes) == 1 and not of.picks


_OF_COLUMN = re.compile(r"(\w+)\.(\w+)")
_OF_KEY = re.compile(r"\w+\[\"[^\"]*\"\](?:\.\w+)?")
_OF_REPORTS = frozenset({
    "formula", "data", "df", "x", "y", "a", "b", "family", "q", "probs", "by", "index", "columns", "endog", "exog",
})  # fmt: skip
"""Arguments by which columns and tables of a report are named."""
_FAMILIES = {"poisson": "poisson_regression", "binomial": "logistic_regression", "gaussian": "linear_regression"}


def _across(node: ast.expr) -> list[tuple[str, str]]:
    """What `across(c(x, y), mean)` asks for; nothing of other calls."""
    if not isinstance(node, ast.Call) or point(node.func) != "across":
        return []
    return [(measure(point(node.args[1]), word_of(column)), word_of(column)) for column in parts_in(node.args[0])]


def _by_column(node: ast.Dict) -> list[tuple[str, str]]:
    """What `{"a": "mean", "b": ["min", "max"]}` asks for."""
    pairs = []
    for column, functions in zip(node.keys, node.values, strict=True):
        several = len(parts_in(functions)) > 1
        for one in parts_in(functions):
            name = word_of(one) if several else word_of(column or node)
            pairs.append((measure(word_of(one), word_of(column or node)), name))
    return pairs
