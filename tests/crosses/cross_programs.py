"""Programs of two to four features, crossed at random: declarations, transformations, expressions, measurements.

Each feature is one function of `Maker`, which adds lines to a program and says what it is called. The tables of the
language give what they can be of: aggregates, row functions, built-ins. A program that is refused before it pays is no
fault; what counts is that pairs of features run together.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

from cross_expressions import Expressions
from cross_parts import Chain, Measurement, Nest
from cross_worlds import KINDS, MEASUREMENTS, TRANSFORMATIONS, has_order, periods

from jostle.language import aggregates

AMOUNTS = {"epsilon": "epsilon 0.25", "rho": "rho 0.25", "delta": "epsilon 0.25 delta 1e-6",
           "basic": "epsilon 0.25 delta 1e-6"}  # fmt: skip
# How often each is asked, one in so many: the SQL of some is long, and a database takes as long to read it.
AGGREGATES = dict.fromkeys(aggregates.AGGREGATES, 4) | {"count": 8, "sum": 8, "bounds": 0.3}
RANKED = ("min", "max", "median", "quantile")
RECORDS = {"c": "text", "n": "number", "s": "text"}
LISTED = ("c", "b", "n")
NAMES = re.compile(r"\b[a-z]+(?:\.[a-z]+)?\b")


@dataclass
class Maker:
    """Makes chains and measurements on a table of a unit and a budget."""

    rng: random.Random
    unit: str
    budget: str
    each: str = ""
    """The periods for each of which the budget is there anew."""

    def __post_init__(self) -> None:
        self.periods = periods(self.each) if self.each else []
        self.amount = f"with {AMOUNTS[self.budget]}"
        self._begin("t", Chain())

    def _begin(self, table: str, chain: Chain) -> None:
        self.lines: list[str] = []
        self.features: list[str] = []
        self.functions: set[str] = set()
        self.table, self.number, self.join, self.keys_are_open = table, 0, chain.join, False
        self.columns, self.limit = dict(chain.columns), chain.limit

    def chain(self, ordered: bool = False) -> Chain:
        """Up to two transformations, the first of them an order where that is wished, and a join now and then."""
        columns = {**KINDS, "period": "date"} if self.each else KINDS
        self._begin("t", Chain(columns=columns, limit=" up to 2 rows" if self.unit == "id" else ""))
        if self.each and self.rng.random() < 0.5:
            self._add("part_of_a_period")
        if ordered:
            self._add("ordered")
        for _ in range(self.rng.choice((0, 0, 1) if ordered else (0, 1, 1, 1, 2))):
            self._add(self.rng.choice([f for f in TRANSFORMATIONS if self._fits(f)]))
        if {"id", "c", "n", "b"} <= set(self.columns) and self.rng.random() < 0.08:
            self._add(self.rng.choices(("joined_to_public_rows", "joined_to_itself", "joined_by_person"), (5, 2, 2))[0])
        elif {"id", "c", "n", "b"} <= set(self.columns) and not self.join:
            everyone, self.rng = self.rng, random.Random("\n".join([*self.lines, self.unit]))  # others stay as they are
            if self.rng.random() < 0.06:
                self._add("selected_columns")
            self.rng = everyone
        return Chain(tuple(self.lines), self.table, self.join, self.columns, self.limit, self._all_features())

    def nested(self, described: bool) -> Chain:
        """Tables made of tables; the column of persons is described or not."""
        self._begin("t", Chain(limit=" up to 2 rows" if self.unit == "id" else ""))
        weighted = "weighted" in self.unit
        persons = self.unit.startswith("id") and not weighted
        nest = Nest(self.rng, persons, weighted, described, lambda columns, kind: self._on(dict(columns), kind))
        table, columns = nest.named(self.rng.choice((1, 2, 2, 3, 3, 4)))
        self.features = list(dict.fromkeys(nest.forms))
        return Chain(tuple(nest.lines), table, "", columns, self.limit, self._all_features())

    def measurement(self, chain: Chain) -> Measurement:
        """One that fits a chain, and all others with the columns that it reads."""
        self._begin("x", chain)
        names, weights = zip(*MEASUREMENTS.items(), strict=True)
        feature = "aggregates" if chain.join else self.rng.choices(names, weights)[0]
        self._add(feature if self._fits(feature) else "aggregates")
        words = set(NAMES.findall("\n".join(self.lines)))
        needs = {name: kind for name, kind in chain.columns.items() if name in words}
        return Measurement(tuple(self.lines), needs, chain.limit, self._all_features(), self.keys_are_open)

    def _all_features(self) -> tuple[str, ...]:
        return (*self.features, *sorted(f"{name}()" for name in self.functions))

    def _fits(self, feature: str) -> bool:
        """Whether a feature can follow: what is refused from public facts is tried now and then all the same."""
        if self.rng.random() < 0.03:
            return True
        persons, whole = self.unit.startswith("id"), set(KINDS) <= set(self.columns)
        needs_bound = self.unit == "id" and feature not in (
            "aggregates", "joint_block", "rows_of_persons", "parts", "given_before", "public_facts", "keys_alone"
        )  # fmt: skip
        wants = {
            "rows_of_persons": persons and whole, "linked": persons, "joined_by_person": persons,
            "in_order": whole and has_order(self.unit), "best_of_runs": self.budget == "epsilon",
            "streams": self.unit != "id", "statistics": not persons or "up to" in self.unit,
            "keys_alone": self.budget in ("delta", "basic"), "steps": self.budget == "epsilon",
            "weighted_records": "weighted" not in self.unit and {"c", "n", "s"} <= set(self.columns),
            "watch": self.budget in ("epsilon", "rho"), "exploded": whole, "united": whole, "share_of_rows": whole,
            "vectors": whole and "weighted" not in self.unit, "empty_side": whole,
            "joint_block": "weighted" not in self.unit,
        }  # fmt: skip
        free = feature in TRANSFORMATIONS
        return wants.get(feature, True) and (free or not needs_bound)

    def _add(self, feature: str) -> None:
        self.features.append(feature.replace("_", " "))
        getattr(self, feature)()

    def _new(self, value: str, columns: dict[str, str] | None = None) -> None:
        self.number += 1
        self.table = f"t{self.number}"
        self.lines.append(f"{self.table} = {value}")
        self.columns = self.columns if columns is None else columns

    def _expression(self, kind: str) -> str:
        return self._on(self.columns, kind)

    def _on(self, columns: dict[str, str], kind: str) -> str:
        for _ in range(20):  # what reads no column is refused, mostly
            expressions = Expressions(self.rng, columns)
            text = expressions.of(kind)
            if expressions.reads:
                break
        self.functions.update(expressions.used)
        return text

    def _bounded(self, *, ranked: bool = False) -> str:
        """A bounded number; of what is `ranked`, which is written out dozens of times, mostly a column of few steps."""
        if ranked and self.rng.random() < 0.95:
            names = [n for n in ("n", "r", "w") if n in self.columns] or ["clamp(1, 0, 9)"]
            return self.rng.choices(names, (90, 9, 1)[: len(names)])[0]
        names = [n for n in ("n", "r", "w") if n in self.columns]
        if names and self.rng.random() < 0.75:
            return self.rng.choices(names, (8, 1, 1)[: len(names)])[0]
        low, high = self.rng.choice((("0", "9"), ("-5", "1e9"), ("0", "1e15"), ("-1e15", "1e15"), ("0.0", "0.001")))
        return f"clamp({self._expression('number')}, {low}, {high})"

    # Transformations of a table -------------------------------------------------------------------

    def filtered(self) -> None:
        self._new(f"where({self.table}, {self._expression('boolean')})")

    def empty_side(self) -> None:
        self._new(f"where({self.table}, {self.rng.choice(('n < 0 and n > 5', 'false', 'd == none and d != none'))})")

    def derived(self) -> None:
        kind = self.rng.choice(("number", "text", "boolean", "date", "time"))
        name = self.rng.choice(("z", "z", *[n for n, of in self.columns.items() if of == kind and n != "id"]))
        self._new(f"derive({self.table}, {name} = {self._expression(kind)})", {**self.columns, name: kind})

    def picked(self) -> None:
        names = [n for n in self.columns if n == "id" or self.rng.random() < 0.7]
        self._new(f"pick({self.table}, {', '.join(names)})", {n: self.columns[n] for n in names})

    def united(self) -> None:
        more = ["u"] * self.unit.startswith("id")
        other = self.rng.choice(("t", *more, self.table, f"where({self.table}, {self._expression('boolean')})"))
        names = ", ".join(n for n in KINDS if n in self.columns)
        self._new(f"union(pick({self.table}, {names}), pick({other}, {names}))")

    def exploded(self) -> None:
        items = self.rng.choice(("[n, r, w]", '[part(s, " ", 1), part(s, " ", 2), c]', "[d, date(m)]"))
        kind = {"[n": "number", "[p": "text", "[d": "date"}[items[:2]]
        self._new(f"explode({self.table}, item = {items})", {**self.columns, "item": kind})

    def part_of_a_partition(self) -> None:
        cell = self.rng.choice(('c = "Ames"', "n = 5", "b = true", *[f"period = {day}" for day in self.periods]))
        self._new(f"{self.table}[{cell}]")

    def part_of_a_period(self) -> None:
        self._new(f"{self.table}[period = {self.rng.choice(self.periods)}]")

    def share_of_rows(self) -> None:
        self._new(f"split_rows({self.table}, 3)[1]")

    def smaller_budget(self) -> None:
        self._new(f"limited({self.table}, {self.rng.choice((300, 200, 0.1))})")

    def joined_to_public_rows(self) -> None:
        """A join is asked in the select that it is in, so it stands last."""
        kind = self.rng.choice(("join", "left join"))
        self.join, own = f" {kind} cities q on c", {"q.c": "text"} if kind == "left join" else {}
        self.columns = {**self.columns, "region": "text", **own}

    def selected_columns(self) -> None:
        """A table after `from` that is a select of columns, which stands last too."""
        where = f" where {self._expression('boolean')}" if self.rng.random() < 0.5 else self._looked_up()
        columns = self.rng.choice(("*", ", ".join(self.columns)))
        self.join = f"(select {columns}, {self._expression('number')} as chosen from x{where})"
        self.columns = {**self.columns, "chosen": "number"}

    def _looked_up(self) -> str:
        """Rows with, or without, a partner in another table: a person's in one of the same persons, or a value's."""
        lists = ["c in (select c from cities)", "c not in (select c from cities where region = 'north')"]
        if self.unit.startswith("id") and "id" in self.columns:
            person = f"(select id from u where {self._on(dict(KINDS), 'boolean')})"
            lists += [f"id in {person}", f"id not in {person}", f"person in {person.replace('id', 'person', 1)}"]
        return f" where {self.rng.choice(lists)}" if self.rng.random() < 0.7 else ""

    def joined_to_itself(self) -> None:
        self.join = f" join t on {self.rng.choice(('n', 'c', 'b'))} up to 2"

    def joined_by_person(self) -> None:
        """Each person's rows with their own, of a linked table."""
        how = self.rng.choice(("join", "join", "left join"))
        self.join = f" {how} u on person{self.rng.choice(('', ', n', ', c'))}"

    def linked(self) -> None:
        """Another table of the same persons, under the same budget."""
        self._new(self.rng.choice(("u", f"where(u, {self._on(dict(KINDS), 'boolean')})")), dict(KINDS))

    def ordered(self) -> None:
        """An order whose neighbours, mostly, are what is measured."""
        self.in_order(3)
        beside = [name for name in ("before", "next", "previous", "largest") if self.columns.get(name) == "number"]
        if beside and self.rng.random() < 0.8:
            self._new(f"derive({self.table}, n = {self.rng.choice(beside)})", {**self.columns, "n": "number"})

    def in_order(self, forms: int = 4) -> None:
        """What stands before and after in the rows of each person."""
        form, by = self.rng.randrange(forms), self.rng.choice(("n", "d", "m", "r"))
        kind, apart = self.columns.get(by, "number"), random.Random("\n".join([*self.lines, self.unit, by]))
        if form < 2 and apart.random() < 0.3:
            what, sides = apart.choice(("n", "r", "d")), [""] + [f', "{c}"' for c in ("b", "c") if c in self.columns]
            most, value = f"{apart.choice((1, 2, 3))}{apart.choice(sides)}", self.columns.get(what, "number")
            call = f'"{by}", "{what}", {most}), n = earlier' if form else f'"{by}", {most}, what = "{what}"), n = place'
            of = {"at": kind, "value": value, "largest": value, "smallest": value, "n": "number"}
            self._new(f"derive({'so_far' if form else 'in_order'}({self.table}, {call})", of)
        elif form == 0:
            self._new(f'in_order({self.table}, "{by}", 2)', {"at": kind, "before": kind, "next": kind, "n": "number"})
            self.lines[-1] = self.lines[-1].replace("= in_order", "= derive(in_order") + ", n = place)"
        elif form == 1:
            what = self.rng.choice(("n", "c", "b"))
            of = {"at": kind, **dict.fromkeys((what, "previous"), self.columns.get(what, "number"))}
            self._new(f'derive(with_previous({self.table}, "{by}", "{what}", 2), {what} = value)', of)
        elif form == 2:
            self._new(f'derive(sessions({self.table}, "n", 1, 3), n = moments)', {"n": "number"})
        else:
            self._new(f'derive(ngrams({self.table}, "s", {self.rng.choice((1, 2))}, 2), s = gram)', {"s": "text"})

    def rows_of_persons(self) -> None:
        bound, self.limit = self.limit, ""  # each person has one row, or one of each key
        of = self.rng.choice(["count(*)", *[f"{name}({self._bounded()})" for name in ("sum", "max", "avg")]])
        key = self.rng.choice(("", " groupby c", " groupby n", " groupby id"))
        name = {" groupby c": {"c": "text"}, " groupby n": {"n": "number"}, " groupby id": {"id": "text"}}.get(key, {})
        first = random.Random("\n".join([*self.lines, self.unit, key])).random() < 0.3 and not self.join
        rows = f"cities q join {self.table} on c" if first else self.table  # whose `id` is that of cities
        self._new(f"{{{{ select {of} as v from {rows} per person{key}{bound} }}}}", {"v": "number", **name})

    # Measurements ---------------------------------------------------------------------------------
    def _some_aggregate(self) -> str:
        return self.rng.choices(list(AGGREGATES), AGGREGATES.values())[0]

    def _aggregate(self, name: str) -> str:
        self.functions.add(name)
        if name == "count":
            persons = ["distinct id"] if "id" in self.columns else []
            inside = self.rng.choice(("*", f"distinct {self._expression('any')}", self._expression("any"), *persons))
            return f"count({inside})"
        if name == "covariance":
            return f"covariance({self._bounded()}, {self._bounded()})"
        if name == "quantile":
            return f"quantile({self._bounded(ranked=True)}, {self.rng.choice(('0.1', '0.5', '1'))})"
        if name == "mode":
            return f"mode({self.rng.choice([n for n in ('c', 'n', 'b') if n in self.columns] or ['1 > 0'])})"
        if name == "bounds":
            return f"bounds({self._expression('number')})"
        return f"{name}({self._bounded(ranked=name in RANKED)})"

    def _keys(self) -> str:
        form = self.rng.randrange(8)
        if form < 3:
            return ""
        names = [n for n in ("c", "n", "b") if n in self.columns]
        if "period" in self.columns and self.rng.random() < 0.3:
            more = self.rng.choice(("", *[f"{n}, " for n in names]))
            return f" groupby {more}period over [{', '.join(self.periods)}]"
        if form == 3 and names:
            return f" groupby {', '.join(names[: self.rng.randrange(1, 3)])}"
        if form == 4:
            return f" groupby ({self._expression('number')}) as k over 0..3"
        if form == 5:
            return f' groupby ({self._expression("text")}) as k over {{"Ames", "", "é"}}'
        if form == 6 and {"c", "b"} <= set(self.columns):
            return ' groupby (c, b) over [("Ames", true), ("Cork", false)]'
        if form == 7 and self.budget in ("delta", "basic"):
            self.keys_are_open = True
            if names and self.rng.random() < 0.2:
                return f" groupby {self._expression('text')} as k, {names[0]}"
            return f" groupby {self._expression('text')} as k"
        return f" groupby ({self._expression('boolean')}) as k"

    def _limit(self) -> str:
        """What is read of a person, where the declaration leaves it to each query."""
        if not self.limit or self.rng.random() < 0.4:
            return self.limit
        by = self.rng.choice(("", " by n", " by r desc", f" by {self._expression('number')}"))
        return self.rng.choice((f" up to 2 rows{by}", f" up to 1 row{by}", " up to 2 groups, 1 row", " up to 2 groups"))

    def _ending(self, keys: str) -> str:
        """What follows the keys of a select."""
        if not keys or self.rng.random() < 0.8:
            return ""
        return self.rng.choice((" having a0 > 1", " order by a0 desc", " order by a0 desc limit 2"))

    def _via(self) -> str:
        ways = ("laplace", "gaussian", "selection", "smooth")
        return f" via {self.rng.choice(ways)}" if self.rng.random() < 0.06 else ""

    def _select(self, aggregates: list[str]) -> str:
        what = ", ".join(f"{self._aggregate(name)} as a{i}" for i, name in enumerate(aggregates))
        where = f" where {self._expression('boolean')}" if self.rng.random() < 0.4 else ""
        keys = self._keys()
        ending, amount = self._ending(keys), self.amount
        if self.rng.random() < 0.03:
            amount = "with error 25" + " delta 1e-6" * (self.budget in ("delta", "basic"))
        limit = self._limit()
        return f"{{{{ select {what} from {self.table}{where}{keys}{limit}{ending} {amount}{self._via()} }}}}"

    def aggregates(self) -> None:
        names = self.rng.choices(list(AGGREGATES), AGGREGATES.values(), k=self.rng.choice((1, 1, 1, 2)))
        self.features += names
        self.lines.append(f"x{len(self.lines)} = {self._select(names)}")
        self.lines.append(f"print(x{len(self.lines) - 1})")

    def joint_block(self) -> None:
        saying = self.rng.choice(("", "", "nonnegative ", "whole ", "for the least total "))
        self.lines.append(f"jointly {saying}{self.amount}:")
        for i in range(self.rng.randrange(1, 4)):
            what = self.rng.choice(("count(*)", f"sum({self._bounded()})", f"avg({self._bounded()})"))
            where = f" where {self._expression('boolean')}" if self.rng.random() < 0.4 else ""
            names = [n for n in ("c", "n", "b") if n in self.columns]
            keys = (
                f" groupby {', '.join(names[: self.rng.randrange(1, 3)])}" if names and self.rng.random() < 0.7 else ""
            )
            given = self._given(keys) if what == "count(*)" and self.features[-1] == "public facts" else ""
            self.lines.append(
                f"    j{i} = {{{{ select {what} as v from {self.table}{where}{keys}{self.limit}{given} }}}}"
            )
        self.lines.append("print(j0)")

    def _given(self, keys: str) -> str:
        """Public answers of a select in a block, mostly as many as it has groups."""
        sizes = {"": 1, " groupby c": 3, " groupby n": 10, " groupby b": 2, " groupby n, c": 30, " groupby c, n": 30}
        many = sizes.get(keys, self.rng.choice((2, 6, 60)))
        answers = [str(self.rng.randrange(9)) for _ in range(many)]
        return f" given {answers[0] if not keys else '[' + ', '.join(answers) + ']'}"

    def public_facts(self) -> None:
        """A block with answers that are public, with which all others agree."""
        self.joint_block()

    def streams(self) -> None:
        """Groups of all rows up to a step."""
        until = self.rng.choice(("", ", until = 4", ", until = 9"))
        key = self.rng.choice(("", "c, ", "b, ")) if {"b", "c"} <= set(self.columns) else ""
        what = self.rng.choice(("count(*)", f"sum({self._bounded()})", f"count({self._expression('any')})"))
        where = f" where {self._expression('boolean')}" if self.rng.random() < 0.3 else ""
        of = "n" if self.columns.get("n") == "number" else "clamp(1, 0, 9)"
        select = (
            f"select {what} as v from {self.table}{where} groupby {key}running({of}{until}){self.limit} {self.amount}"
        )
        self.lines += [f"g = {{{{ {select} }}}}", "print(g)"]

    def best_of_runs(self) -> None:
        """The best of a secret number of runs, paid once."""
        score = self.rng.choice(
            (f"laplace(histogram(d, x = {self.rng.choice(LISTED)}))[0]", "{{ select count(*) from d where n > k }}",
             f"{{{{ select sum({self._bounded()}) from d }}}}")
        )  # fmt: skip
        more = self.rng.choice(("", "", ", good = 4", ', law = "logarithmic"'))
        self.lines += [
            "def run_of(d, k) {", f"    v = {score}", "    return {score: v, seen: v}", "}",
            f"print(best_run({self.table}, run_of, 1..3, 3{more}) {self.amount})",
        ]  # fmt: skip

    def statistics(self) -> None:
        """A function of the library on columns by their names."""
        name, *arguments = self.rng.choice((
            ("crosstab", '"c"', '"b"'), ("crosstab", '"n"', '"c"'), ("independence", '"c"', '"b"'),
            ("correlation", '"n"', '"r"'), ("linear_regression", '"n"', '["r", "c"]'), ("describe_numeric", '"n"'),
            ("quantiles", '"n"', "[0.1, 0.5]"), ("compare", '"n"', '"b"'), ("compare", '"c"', '"b"'),
            ("top_k", '"c"', "2"), ("anova", '"n"', '"c"'), ("kaplan_meier", '"n"', '"b"'),
            ("log_rank", '"n"', '"b"', '"c"'), ("poisson_regression", '"n"', '["c"]'),
            ("quantile_among", '"n"', "0.5", "[1, 3, 8]"), ("weighted_quantiles", '"n"', '"r"', "[0.5]"),
        ))  # fmt: skip
        self.functions.add(name)
        self.lines.append(f"print({name}({self.table}, {', '.join(arguments)}) {self.amount})")

    def keys_alone(self) -> None:
        """Which values there are."""
        self.keys_are_open = True
        key = self.rng.choice((self._expression("text"), "s", "c", "s, n"))
        more = " up to 2 groups" * self.unit.startswith("id")
        self.lines.append(f"print({{{{ select {key} from {self.table} groupby {key}{more} {self.amount} }}}})")

    def calculated(self) -> None:
        """Numbers that are calculated of answers, with their errors."""
        asked = [self._aggregate(self._some_aggregate()) for _ in range(2)]
        self.lines += [
            f"p{i} = {{{{ select {one} as v from {self.table}{self.limit} {self.amount} }}}}"
            for i, one in enumerate(asked)
        ]
        # A divisor is tested: behind a watch neighbours draw other noise, of which one may be 0.
        ratio = "p0 / p1 if p1 != 0 else p0"
        of = self.rng.choice((ratio, "p0 + p1", "max(p0, p1)", "error(p0)", "[p0, p1]", "p0 - p0"))
        self.lines.append(f"print({of}, spent(x))")

    def _histogram(self) -> str:
        names = [n for n in ("n", "c", "b") if n in self.columns]
        axis = self.rng.choice((*names, f"clamp(floor({self._expression('number')}), 0, 15)"))
        more = f", y = {self.rng.choice(names)}" if names and self.rng.random() < 0.3 else ""
        return f"histogram({self.table}, x = {axis}{more})"

    def histogram(self) -> None:
        how = self.rng.choice(
            ("laplace(h)", "gaussian(h)", "flat(h, identity(h))", "dawa(h, prefixes(h))", "hb(h, prefixes(h))",
             "mwem(h, prefixes(h), 2)", "shrinkage(h, identity(h))", "uniform(h, prefixes(h))",
             "least_cost_partition(h)")
        )  # fmt: skip
        self.features.append(how.partition("(")[0])
        self.lines += [f"h = {self._histogram()}", f"print({how} {self.amount})"]

    def cells_of_a_cube(self) -> None:
        what = self.rng.choice(("sum(values)", "max(values)", "count(values)"))
        self.lines += [
            f"h = {self._histogram()}",
            f"print({{{{ select {what} as v from h groupby x {self.amount} }}}})",
        ]

    def score(self) -> None:
        name = self.rng.choice(("size", "nonzero", "largest_cell", "l2", "l1_to_uniform", "total_variation"))
        self.features.append(name)
        self.lines += [f"h = {self._histogram()}", f"print(laplace({name}(h)) {self.amount})"]

    def selection(self) -> None:
        names = [n for n in ("c", "n", "b") if n in self.columns] or ["1 > 0"]
        parts = f"[size(p[1]) for p in partition({self.table}, {self.rng.choice(names)})]"
        margin = [f"margin_max({parts})"] if self.budget in ("delta", "basic") else []
        how = self.rng.choice((f"noisy_max({parts})", f"largest({parts}, 2)", *margin))
        self.features.append(how.partition("(")[0])
        self.lines.append(f"print({how} {self.amount})")

    def watch(self) -> None:
        self.lines += [
            f"w = above_threshold({self.table}, 3, 2) {self.amount}", f"print(above({self.table}, w))",
            f"print(above(where({self.table}, {self._expression('boolean')}), w))",
        ]  # fmt: skip

    def vectors(self) -> None:
        columns = ", ".join(self.rng.sample(["n", "r", "w"], 2))
        self.lines += [f"v = vectors({self.table}, {columns})", f"print(noisy_moments(v) {self.amount})"]

    def weighted_records(self) -> None:
        kind = self.rng.choice(("text", "number", "date", "boolean"))
        z = "coalesce(day({}), 0)".format if kind == "date" else str  # records hold no dates
        one = f"weighted(pick(derive({self.table}, z = {z(self._expression(kind))}), c, n, s, z))"
        self.lines.append(f"a = {one}")
        for _ in range(self.rng.randrange(1, 3)):
            self.lines.append("a = " + self.rng.choice((
                f"where(a, {self._on(RECORDS, 'boolean')})", f"derive(a, z = {z(self._on(RECORDS, kind))})",
                'concat(a, where(a, c == "Ames"))', "union(a, where(a, n > 5))",
                'intersect(a, where(a, s == "nobody"))', "without(a, where(a, n == 5))", "concat(a, a)",
            )))  # fmt: skip
        self.lines.append(f"print(laplace(histogram(a, x = {'nc'[len(self.lines) % 2]})) {self.amount})")

    def steps(self) -> None:
        of = self.rng.choice((self.table, "h"))
        self.lines += [f"h = {self._histogram()}", f"g = refinable({of})", f"print(refine(g) {self.amount})"]

    def parts(self) -> None:
        key = self.rng.choice([n for n in ("c", "n", "b") if n in self.columns] or ["1 > 0"])
        if "period" in self.columns and self.rng.random() < 0.5:
            key = f"period, over = [{', '.join(self.periods)}]"
        what = self._aggregate(self._some_aggregate())
        self.lines += [
            f"for key, part in partition({self.table}, {key}):",
            f"    print(key, {{{{ select {what} as v from part{self.limit} {self.amount} }}}})",
        ]

    def given_before(self) -> None:
        """The same question twice."""
        asked = self._select([self._some_aggregate()])
        self.lines += [f"print({asked})", f"print({asked})"]
