"""What the words of other languages do with tables, groups of them and columns.

pandas, polars, Spark, R, dplyr and Excel say in calls and pipes which rows of a table they mean, which groups, and
what is asked of them. `Verbs` makes of `Rows`, and the arguments of a call, other rows, or a call of the library.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence

from jostle.records import replace
from jostle.tools.foreign import (
    MEASURES,
    Answer,
    Known,
    Nothing,
    Report,
    Rows,
    Unread,
    Value,
    alias_of,
    arguments_named,
    columns_in,
    descends,
    dotted,
    every_argument,
    means,
    measure,
    parsed,
    parts_in,
    parts_of,
    plain,
    unparsed,
    unread,
    word_of,
)  # fmt: skip


class Verbs(Known):
    """The words of `foreign.toml`, each applied to rows and the arguments of a call, which are not read yet."""

    def meant(self, node: ast.expr) -> Value:
        return self.read(node) or unread()

    def under(self, aggregate: str, of: Rows, call: ast.Call) -> Value:
        """`COUNTIF(x, ">3")`, `SUMIFS(x, a, "p", b, "q")`, `AVERAGEIF(a, "p", x)`."""
        args: list[ast.expr] = [ast.Name(column) for column in of.taken]
        args += [
            ast.Name(got.taken[0]) if isinstance(got := self.read(arg), Rows) and got.taken else arg
            for arg in call.args
        ]
        several, measured = dotted(call.func).lower().endswith("s"), of.taken[0] if of.taken else unread()
        if aggregate != "count" and len(args) == 3 and not several:
            measured, args = unparsed(args.pop()), args
        elif aggregate != "count" and several:
            args = args[1:]
        tests = []
        for column, test in zip(args[::2], args[1::2], strict=True):
            sign = re.fullmatch(r"([<>=]+)(.*)", str(getattr(test, "value", "")))
            value = (
                sign[2] if sign and re.fullmatch(r"-?[\d.]+", sign[2]) else repr(sign[2]) if sign else unparsed(test)
            )
            value = f"{ {'=': '==', '<>': '!='}.get(sign[1], sign[1]) if sign else '==' } {value}"
            tests.append(self.term(parsed(f"{unparsed(column)} {value}"), replace(of, taken=())))
        text = "count(*)" if aggregate == "count" else f"{aggregate}({measured})"
        return replace(of, where=(*of.where, *tests), asked=((text, ""),), taken=())

    def aggregated(self, word: str, of: Rows, call: ast.Call) -> Value:
        if of.asked and of.keys and of.asked[0][0] == "count(*)" and means("aggregates", word) == "count":
            return replace(of, asked=((f"count(distinct {', '.join(key for key, _ in of.keys)})", ""),), keys=())
        if of.asked:
            return of if len(of.asked) == 1 and not of.keys else unread()
        columns = [*of.taken] or [
            name for arg in call.args for part in parts_in(arg) if (name := word_of(part)) in of.columns
        ]
        if not columns and means("aggregates", word) != "count":
            raise Unread
        several = bool(of.keys) or len(columns) > 1
        if arguments_named(call).keys() - {"q", "probs", "prob", "interpolation"}:
            raise Unread  # it says more than is known
        asked = [
            (measure(word, c, every_argument(call)), (c if c in of.columns else "x") if several else "")
            for c in columns
        ]
        return replace(of, asked=tuple(asked) or (("count(*)", "n" if of.keys else ""),), taken=(), picks=False)

    def table_verb(self, does: str, of: Rows, call: ast.Call) -> Value | None:
        """What makes another table: some rows or columns, more columns, rows of others."""
        args, said, columns = parts_of(call.args), arguments_named(call), columns_in(call, of)
        match does:
            case "same":
                return of
            case "filter":
                return self.filtered(of, call)
            case "derive":
                return self.derived(of, call)
            case "rename":
                pairs = [(name, word_of(node)) for name, node in said.items() if not isinstance(node, ast.Dict)]
                for one in [node for node in every_argument(call) if isinstance(node, ast.Dict)]:
                    pairs += [
                        (word_of(new), word_of(old)) for old, new in zip(one.keys, one.values, strict=True) if old
                    ]
                pairs += [(word_of(args[1]), word_of(args[0]))] if len(args) == 2 else []
                for new, old in pairs:
                    of = self.with_column(of, new, old if old in of.columns else unread())
                return of
            case "pick" if any(isinstance(part, ast.UnaryOp) for part in args):
                return self.table_verb("drop", of, call)
            case "pick" if columns and len(columns) == len(args) and not of.asked:
                return replace(of, taken=columns, picks=True, columns=columns)
            case "drop" if columns and not of.asked and not of.taken:
                return replace(of, taken=tuple(c for c in of.columns if c not in columns), picks=True)
            case "pull":
                return of if of.asked else replace(of, taken=columns[:1] or unread())
            case "missing":
                tests = [f"{column} is not missing" for column in of.taken or columns]
                return of if of.asked else replace(of, where=(*of.where, *tests)) if tests else unread()
            case "union":
                others = [other.table for arg in args if isinstance(other := self.meant(arg), Rows)]
                return replace(of, source=f"union({', '.join([of.table, *others])})", where=(), joins="")
            case "join":
                return self.joined(of, call)
        return None

    def group_verb(self, does: str, of: Rows, call: ast.Call) -> Value | None:
        """What makes groups, and what is asked of rows or groups."""
        args, said = parts_of(call.args), arguments_named(call)
        rows = replace(of, taken=(), picks=False)
        match does:
            case "group":
                keys = [self.key(part, of) for part in args]
                for name, node in said.items():
                    keys += [self.key(part, of, "" if name == "by" else name) for part in parts_in(node)]
                return replace(rows, keys=(*of.keys, *keys))
            case "by":  # `tapply(x, k, f)`, `split(x, k)`
                of = replace(of, keys=tuple(self.key(part, rows) for part in parts_in(call.args[0])))
                return (
                    self.aggregated(dotted(call.args[1]), of, ast.Call(call.func, [], [])) if len(call.args) > 1 else of
                )
            case "apply" if of.keys and isinstance(call.args[0], ast.Lambda):
                return self.meant(self.with_it(call.args[0], of))
            case "apply" if of.keys:
                return self.aggregated(word_of(call.args[0]), of, ast.Call(call.func, call.args[1:], []))
            case "apply" if isinstance(call.args[0], ast.Lambda):
                return self.meant(self.with_it(call.args[0], of))
            case "reduce" if isinstance(call.args[0], ast.Lambda) and isinstance(call.args[0].body, ast.BinOp):
                return (
                    self.aggregated("sum", of, ast.Call(call.func, [], []))
                    if isinstance(call.args[0].body.op, ast.Add)
                    else None
                )
            case "product" if len(of.taken) == 1:
                columns = [
                    of.taken[0],
                    *(c for arg in args if isinstance(got := self.meant(arg), Rows) for c in got.taken),
                ]
                return replace(rows, asked=((f"sum({' * '.join(columns)})", ""),))
            case "within":  # `with(t, mean(x))`
                text = self.term(call.args[0], of, measures=True)
                return replace(of, asked=((text, ""),)) if MEASURES.search(text) else replace(of, taken=(text,))
            case "summarise" if (
                args and not said and not of.taken and all(word_of(part) in of.columns for part in args)
            ):
                return self.table_verb("pick", of, call)
            case "summarise":
                asked = [pair for arg in call.args for pair in self.asked_by("", arg, of)]
                asked += [pair for name, node in said.items() for pair in self.asked_by(name, node, of)]
                return replace(rows, asked=tuple(asked) or unread())
            case "count" if said:
                raise Unread  # of weights, or in bins
            case "count":  # `value_counts`, `count(t, k, sort = TRUE)`, `table(x, y)`, `crosstab(x, y)`
                taken = [parsed(column) for column in of.taken]
                counted = [part for part in args if not isinstance(part, ast.Constant) or part.value in of.columns]
                keys = [*of.keys, *(self.key(part, rows) for part in (*taken, *counted))]
                flags = {plain(k.arg or "") for k in call.keywords if "true" in unparsed(k.value).lower()}
                order = "n desc" if keys and "sort" in flags else ""
                asked = [("count(*)", "n" if keys else "")]
                return replace(rows, keys=tuple(keys), asked=tuple(asked), order=order, shares="normalize" in flags)
            case "shares":
                return replace(of, shares=True) if of.asked else unread()
            case "pivot" if of.keys and args:
                return replace(of, keys=(*of.keys, *(self.key(part, rows) for part in args[:1])))
            case "pivot" if "aggfunc" not in said and "pivot_table" not in unparsed(call.func):
                raise Nothing("pivot")
            case "pivot":
                keys = [
                    (word_of(part), "")
                    for name in ("index", "columns")
                    if name in said
                    for part in parts_in(said[name])
                ]
                word, values = word_of(said.get("aggfunc", ast.Name("mean"))), said.get("values")
                asked = [(measure(word, c), c) for part in (parts_in(values) if values else ()) if (c := word_of(part))]
                return replace(of, keys=tuple(keys), asked=tuple(asked) or (("count(*)", "n"),))
            case "sort" | "head" if not of.asked:
                raise Nothing(does)
            case "sort":
                names = [name for _, name in (*of.asked, *of.keys)]
                by = next(
                    (w for arg in every_argument(call) for p in parts_in(arg) if (w := word_of(p)) in names),
                    of.asked[0][1],
                )
                return replace(of, order=f"{by or unread()}{' desc' * descends(call)}")
            case "head":
                number = next((str(arg.value) for arg in every_argument(call) if isinstance(arg, ast.Constant)), "1")
                return replace(of, limit=number) if of.keys else of
        return None

    def filtered(self, of: Rows, call: ast.Call) -> Rows:
        if of.keys and not of.asked:
            raise Nothing("filter_of_groups")
        texts = [
            re.sub("(?<![<>=!])=(?!=)", "==", word_of(arg)) if isinstance(arg, ast.Constant) else ""
            for arg in call.args
        ]
        tests = [parsed(text) if text else self.with_it(arg, of) for text, arg in zip(texts, call.args, strict=True)]
        tests += [
            ast.Compare(ast.Name(name), [ast.Eq()], [node])
            for name, node in arguments_named(call).items()
            if name in of.columns
        ]
        if of.asked:
            names = tuple(name for _, name in (*of.asked, *of.keys))
            return replace(of, having=(*of.having, *(self.term(test, Rows("", names)) for test in tests)))
        of = replace(of, where=(*of.where, *(self.term(test, replace(of, taken=())) for test in tests)))
        picked = (
            tuple(word_of(one) for one in parts_in(arguments_named(call)["select"]))
            if "select" in arguments_named(call)
            else ()
        )
        return replace(of, taken=picked, picks=True) if picked else of

    def with_it(self, node: ast.expr, of: Value) -> ast.expr:
        """The body of a function of rows; its parameter is the rows then."""
        self.it[node.args.args[0].arg if isinstance(node, ast.Lambda) else "_it"] = of
        return node.body if isinstance(node, ast.Lambda) else node

    def derived(self, of: Rows, call: ast.Call) -> Rows:
        pairs = list(arguments_named(call).items())
        if len(call.args) == 2 and isinstance(call.args[0], ast.Constant):
            pairs.append((word_of(call.args[0]), call.args[1]))
        else:
            pairs += [alias_of(arg) for arg in parts_of(call.args)]
        for name, node in pairs:
            text = self.term(self.with_it(node, of), replace(of, taken=()), measures=True)
            if of.keys or MEASURES.search(re.sub(r"\b(?:min|max)\([^()]*,[^()]*\)", "", text)):
                raise Nothing("derive_by_group")
            of = self.with_column(of, name or unread(), text) if not of.asked else unread()
        return of

    def with_column(self, of: Rows, name: str, text: str) -> Rows:
        of = replace(of, taken=(), picks=False)
        return replace(
            of, source=f"derive({of.table}, {name} = {text})", where=(), joins="", columns=(*of.columns, name)
        )

    def key(self, node: ast.expr, of: Rows, name: str = "") -> tuple[str, str]:
        alias, node = alias_of(node)
        word = word_of(node)
        text = word if word in of.columns and not isinstance(node, ast.Call) else self.term(node, replace(of, taken=()))
        used = next((column for column in of.columns if re.search(rf"\b{column}\b", text)), "") or unread()
        return (f"({text})" if re.search(" if | and | or | [<>=]", text) else text), name or alias or used

    def asked_by(self, name: str, node: ast.expr, of: Rows) -> Iterator[tuple[str, str]]:
        """What one argument of `agg` asks for: `n = n()`, `x = ("a", "mean")`, `{"a": "mean"}`, `["mean", "std"]`."""
        alias, node = alias_of(node)
        parts, name = parts_in(node), name or alias
        if isinstance(node, ast.Dict):
            for column, of_it in zip(node.keys, node.values, strict=True):
                for one in parts_in(of_it):
                    several = isinstance(of_it, ast.List) and len(of_it.elts) > 1
                    yield (
                        measure(word_of(one), word_of(column or node)),
                        word_of(one) if several else word_of(column or node),
                    )
        elif len(parts) == 2 and word_of(parts[0]) in of.columns and not isinstance(node, ast.List):
            yield measure(word_of(parts[1]), word_of(parts[0])), name
        elif of.taken and all(means("aggregates", word_of(part)) for part in parts):
            yield from ((measure(word_of(part), c), name or word_of(part)) for c in of.taken for part in parts)
        elif isinstance(node, ast.List):
            yield from (pair for part in parts for pair in self.asked_by("", part, of))
        elif isinstance(node, ast.Call) and dotted(node.func) == "across":
            yield from ((measure(dotted(node.args[1]), word_of(c)), word_of(c)) for c in parts_in(node.args[0]))
        else:
            text = self.term(node, replace(of, taken=()), measures=True)
            used = next((c for c in of.columns if re.search(rf"\b{c}\b", text)), "n" if text == "count(*)" else "")
            yield text if MEASURES.search(text) else unread(), name or (used if of.keys else "")

    def joined(self, of: Rows, call: ast.Call) -> Rows:
        other, said = self.meant(call.args[0]), arguments_named(call)
        how = (
            word_of(said.get("how", ast.Name("")))
            or (dotted(call.func) or getattr(call.func, "attr", "")).partition("_")[0]
        )
        kinds = {"left": "left ", "right": "right ", "full": "full ", "outer": "full "}
        on = said.get("on") or said.get("by") or (call.args[1] if len(call.args) > 1 else None)
        if (
            not isinstance(other, Rows)
            or how not in (*kinds, "inner", "join", "merge", "pd.merge")
            or isinstance(on, ast.Compare)
        ):
            raise Unread
        keys = (
            [word_of(part) for part in parts_in(on)]
            if on is not None
            else [c for c in of.columns if c in other.columns]
        )
        if "lefton" in said and "righton" in said:
            keys = [f"{word_of(said['lefton'])} = {word_of(said['righton'])}"]
        return self.with_join(of, kinds.get(how, ""), other, ", ".join(keys) or unread())

    def with_join(self, of: Rows, kind: str, other: Rows, on: str) -> Rows:
        of = replace(of, source=of.table, where=(), joins="") if of.where else of
        columns = tuple(dict.fromkeys((*of.columns, *other.columns)))
        return replace(of, joins=f"{of.joins} {kind}join {other.table} on {on}", columns=columns)

    def by_formula(self, args: Sequence[ast.expr], said: Mapping[str, ast.expr]) -> Value:
        """`aggregate(x ~ a + b, data = t, FUN = mean)`."""
        formula, table, function = args[0], self.meant(args[1]), word_of(said.get("fun", args[-1]))
        if not isinstance(formula, ast.BinOp) or not isinstance(table, Rows):
            raise Unread
        asked = tuple((measure(function, word_of(c)), word_of(c)) for c in parts_in(formula.left))
        return replace(table, keys=tuple(self.key(part, table) for part in parts_in(formula.right)), asked=asked)

    def report(self, word: str, of: Rows | None, call: ast.Call) -> Value:
        """A call of the library, of the columns that stand somewhere in the arguments, a formula or `fit(X, y)`."""
        form = means("library", word) or word
        module, function, takes = form.split()
        tables, columns, target, rest = [of] if of else [], [*of.taken] if of else [], "", list[ast.expr]()
        for name, arg in [*(("", arg) for arg in call.args), *((k.arg or "", k.value) for k in call.keywords)]:
            if isinstance(arg, ast.Constant) and isinstance(arg.value, str) and "~" in arg.value:
                arg = parsed(arg.value)
            if isinstance(arg, ast.BinOp) and isinstance(arg.op, ast.BitOr):
                columns = [word_of(part) for part in (arg.left, *parts_in(arg.right))]
            elif name == "family":
                family = {"poisson": "poisson", "binomial": "logistic", "gaussian": "linear"}
                function = f"{next((family[one] for one in family if one in unparsed(arg)), '') or unread()}_regression"
            elif isinstance(got := self.read(arg), Rows):
                tables.append(got)
                target = (
                    got.taken[0]
                    if len(got.taken) == 1 and (len(tables) > 1 or name == "y") and not got.picks
                    else target
                )
                columns += got.taken or [key for key, _ in got.keys]
            else:
                rest.append(arg)
        if not tables:
            return Report(form) if not call.args or takes in ("model", "class") else unread()
        table = replace(tables[0], taken=(), picks=False, keys=(), asked=())
        columns += [name for arg in rest for part in parts_in(arg) if (name := word_of(part)) in table.columns]
        columns = list(dict.fromkeys([target, *columns] if target and takes in ("model", "class") else columns))
        if takes == "by" and len(columns) == 1:
            split = {match[1] for one in tables for c in one.where if (match := re.match(r"(\w+) == ", c))}
            columns, table = [*columns, *split], replace(table, where=())
        others = any(one.source != table.source for one in tables)
        if others or not columns or not set(columns) <= set(table.columns):
            raise Unread
        quoted = [f'"{column}"' for column in columns]
        function = "correlation_matrix" if function == "correlation" and len(columns) > 2 else function
        if takes == "class":
            whole = set(columns) == set(table.columns) or len(columns) == 1
            table, inside = table if whole else replace(table, taken=(*columns[1:], columns[0]), picks=True), quoted[0]
        elif takes == "shares":
            shares = next((self.term(arg) for arg in rest if len(parts_in(arg)) > 1), "") or unread()
            inside = f"{quoted[0]}, {shares}"
        elif takes == "model" or function == "correlation_matrix":
            inside = f"[{', '.join(quoted)}]" if takes != "model" else f"{quoted[0]}, [{', '.join(quoted[1:])}]"
        else:
            inside = ", ".join(quoted)
        if len(columns) != {"one": 1, "shares": 1, "pair": max(2, len(columns)), "by": 2}.get(
            takes, max(len(columns), 1 + (takes == "model"))
        ):
            raise Unread
        return Report(module, f"{function}({table.table}, {inside})", table.amount)

    def of_answer_at(self, of: Answer, part: ast.expr, named: Sequence[str]) -> Answer:
        if len(named) == 1 and named[0] in of.columns and not isinstance(part, ast.Call):
            return Answer(f"{of.text}.{named[0]}")
        if isinstance(part, ast.Call) and dotted(part.func) == "order":
            return self.of_answer("arrange", of, part)
        if of.columns and not isinstance(part, ast.Constant):
            return self.of_answer("filter", of, ast.Call(part, [part], []))
        inner = re.fullmatch(r"reversed\((sorted\(.*\))\)", of.text)
        at = self.term(part)
        return Answer(f"{inner[1]}[-1]" if inner and at in ("0", "1") else f"{of.text}[{at}]", of.columns)

    def of_answer(self, word: str, of: Answer, call: ast.Call) -> Answer:
        """What a word does with a result, or with a value of it."""
        does, args = means("verbs", word), every_argument(call)
        if does == "same":
            return of
        if of.columns and does == "filter":
            text = args[0].value if isinstance(args[0], ast.Constant) else ""
            test = self.with_it(parsed(str(text)) if text else args[0], of)
            return Answer(f"[r for r in {of.text} if {self.term(test, of)}]", of.columns)
        if of.columns and does == "sort":
            by = (
                next((w for arg in args for part in parts_in(arg) if (w := word_of(part)) in of.columns), "")
                or unread()
            )
            ordered = f'sorted({of.text}, "{by}")'
            return Answer(f"reversed({ordered})" if descends(call) else ordered, of.columns)
        if of.columns and does == "head":
            many = next((arg.value for arg in args if isinstance(arg, ast.Constant) and isinstance(arg.value, int)), 1)
            if many > 1 or plain(word) == "head":
                return Answer(f"[{of.text}[i] for i in 0..{many - 1}]")
            return self.of_answer_at(of, ast.Constant(0), [])
        if does == "pull":
            return Answer(f"{of.text}.{word_of(args[0])}")
        aggregate = means("aggregates", word)
        if aggregate == "count" and not args:
            return Answer(f"len({of.text})")
        if aggregate in ("sum", "min", "max", "avg", "median", "stddev") and not of.columns and not args:
            return Answer(f"{aggregate}({of.text})")
        if means("nothing", word) or not args:
            raise Unread
        return Answer(self.term(ast.Call(ast.Name(word), [ast.Name(of.text), *call.args], call.keywords)))
