"""What a crossed program is made of: what is done to a table, and what is measured after it."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from cross_worlds import KINDS

MODULES = ("classifiers", "features", "gradual", "histograms", "row_vectors", "selection", "sequences", "statistics",
           "trees", "weighted", "workloads")  # fmt: skip


@dataclass(frozen=True)
class Chain:
    """What is done to a table `t` before it is measured: lines, and the name that they give the table at their end."""

    lines: tuple[str, ...] = ()
    table: str = "t"
    join: str = ""
    """What follows the table in a select that reads it."""
    columns: Mapping[str, str] = field(default_factory=lambda: KINDS)
    limit: str = ""
    features: tuple[str, ...] = ()


@dataclass(frozen=True)
class Measurement:
    """Lines that measure a table `x`, and the columns that they may read, with their kinds."""

    lines: tuple[str, ...]
    needs: Mapping[str, str]
    limit: str
    features: tuple[str, ...]
    keys_are_open: bool

    def fits(self, chain: Chain) -> bool:
        selects = self.features[0] in ("aggregates",) or not chain.join
        return selects and self.limit == chain.limit and self.needs.items() <= chain.columns.items()


@dataclass(frozen=True)
class Program:
    """A chain and what is measured after it."""

    chain: Chain
    measurements: tuple[Measurement, ...]
    file: str
    unit: str
    budget: str

    @property
    def text(self) -> str:
        return "\n".join([*self.chain.lines, f"x = {self.chain.table}", self.measuring])

    @property
    def measuring(self) -> str:
        lines = [line for one in self.measurements for line in one.lines]
        rows = self.chain.join if self.chain.join.startswith("(") else f"x{self.chain.join}"
        return "".join(f"{line.replace('from x', f'from {rows}')}\n" for line in lines)

    @property
    def features(self) -> tuple[str, ...]:
        own = [f"file {self.file}", f"unit {self.unit}", f"budget {self.budget}"]
        return tuple(dict.fromkeys([*self.chain.features, *(f for m in self.measurements for f in m.features), *own]))

    @property
    def keys_are_open(self) -> bool:
        """Whether how many keys there are may follow from rows: also of a column that is calculated anew."""
        anew = self.budget in ("delta", "basic") and any(
            re.search(r"derive\(.+, [cnb] = ", line) for line in self.chain.lines
        )
        return anew or any(one.keys_are_open for one in self.measurements)


def modules() -> list[str]:
    """The lines that bring what programs call."""
    return [f"use {name}" for name in MODULES]


@dataclass
class Nest:
    """Tables made of tables, several deep: selects after `from`, in lists and in functions, joins, groups, unions.

    Each has the columns `n` and `c`, and `id` where it is described and was not left out; and `person`, which is none,
    while it is known whose rows are. Rows come from `t`, and of persons from `u` too; `expression` makes one of a kind
    of columns. Rows of a `weighted` table are not grouped.
    """

    rng: random.Random
    persons: bool
    weighted: bool
    described: bool
    expression: Callable[[Mapping[str, str], str], str]
    lines: list[str] = field(default_factory=list)
    forms: list[str] = field(default_factory=list)

    def named(self, depth: int) -> tuple[str, dict[str, str]]:
        """The name of a table, and its columns."""
        if depth <= 0:
            return self.rng.choice(("t", "t", "u") if self.persons else ("t",)), self._columns(KINDS)
        forms = PERSONS_ALONE + BOTH + MIXED if self.persons else BOTH + MIXED * (not self.weighted)
        form = self.rng.choice(forms)
        rows, columns = getattr(self, f"_{form}")(depth - 1)
        self.forms.append(f"nested {form.replace('_', ' ')}")
        name = f"m{len(self.lines)}"
        self.lines.append(f"{name} = {rows}")
        return name, columns

    def _columns(self, columns: Mapping[str, str]) -> dict[str, str]:
        own = {"person": "person"} if self.persons else {}
        return {name: kind for name, kind in columns.items() if name != "id" or self.described} | own

    def _after_from(self, depth: int) -> tuple[str, dict[str, str]]:
        """A table by its name, or written where it is read."""
        name, columns = self.named(depth)
        last = self.lines[-1].partition(" = ") if self.lines else ("", "", "")
        if last[0] == name and last[2].startswith("{{ select ") and self.rng.random() < 0.5:
            del self.lines[-1]
            return f"({last[2][3:-3]})", columns
        return name, columns

    def _where(self, columns: Mapping[str, str], least: float = 0.5) -> str:
        return f" where {self.expression(columns, 'boolean')}" if self.rng.random() > least else ""

    def _chosen(self, depth: int) -> tuple[str, dict[str, str]]:
        rows, columns = self._after_from(depth)
        z = f"z{len(self.lines)}"
        more = self.rng.choice(("", f", {self.expression(columns, 'number')} as {z}")) if z not in columns else ""
        kinds = columns | ({z: "number"} if more else {})
        return f"{{{{ select *{more} from {rows}{self._where(columns, 0.3)} }}}}", kinds

    def _renamed(self, depth: int) -> tuple[str, dict[str, str]]:
        """Columns under other names: that of persons under another, and another under theirs."""
        rows, columns = self._after_from(depth)
        swaps = ("id as id, c as c", "c as id, c as c") if "id" in columns else ("c as c",)
        return f"{{{{ select n as n, {self.rng.choice(swaps)} from {rows} }}}}", _kinds("id" in columns, columns)

    def _looked_up(self, depth: int) -> tuple[str, dict[str, str]]:
        rows, columns = self._after_from(depth)
        word = self.rng.choice(("in", "in", "not in"))
        some = self.rng.choice(("", " where id = 'p1'", " group by c having count(*) > 1"))
        test = public = f"c {word} (select c from cities{some})"
        theirs, other = self._after_from(0 if self.rng.random() < 0.6 else depth - 1)
        if {"person"} <= columns.keys() & other.keys() and self.rng.random() < 0.8:
            one = "id" if {"id"} <= columns.keys() & other.keys() and self.rng.random() < 0.7 else "person"
            having = " group by id having count(*) > 1" if one == "id" and self.rng.random() < 0.2 else ""
            test = f"{one} {'in' if one == 'person' else word} (select {one} from {theirs}{self._where(other)}{having})"
            test += f" and {public}" * (self.rng.random() < 0.2)
        return f"{{{{ select * from {rows} where {test} }}}}", columns

    def _joined_to_public(self, depth: int) -> tuple[str, dict[str, str]]:
        """In each position, and with each side's rows kept; the columns are of either side."""
        (rows, columns), first = self._after_from(depth), self.rng.random() < 0.5
        cities = self.rng.choice(("cities", "cities", "(select c, id, region from cities where c != 'Cork')"))
        kind = self.rng.choice(("join", "join", "left join", "right join", "full join"))
        on = self.rng.choice(("c", "c", "id")) if "id" in columns else "c"
        sides = f"{cities} q {kind} {rows} r" if first else f"{rows} r {kind} {cities} q"
        mine = self.rng.choice(("id", "r.id", "q.id", "q.region")) if "id" in columns else "q.id"
        c, theirs = self.rng.choice(("r.c", "q.c")), ("right join" if first else "left join", "join")
        kinds = _kinds(True, columns if kind in theirs else {})
        return f"{{{{ select r.n as n, {c} as c, {mine} as id from {sides} on {on} }}}}", kinds

    def _united(self, depth: int) -> tuple[str, dict[str, str]]:
        """Tables that overlap."""
        (one, mine), (other, theirs) = self.named(depth), self.named(max(0, depth - 1))
        names = [name for name in ("id", "n", "c") if {name} <= mine.keys() & theirs.keys()]
        pick = ", ".join(names)
        other = self.rng.choice((other, one, f"where({one}, {self.expression(mine, 'boolean')})"))
        own = {"person": "person"} if {"person"} <= mine.keys() & theirs.keys() else {}
        return f"union(pick({one}, {pick}), pick({other}, {pick}))", {name: mine[name] for name in names} | own

    def _exploded(self, depth: int) -> tuple[str, dict[str, str]]:
        name, columns = self.named(depth)
        return f"explode({name}, n = {self.rng.choice(('[n, n + 1]', '[n, n, 3]', '[n]'))})", columns

    def _part(self, depth: int) -> tuple[str, dict[str, str]]:
        name, columns = self.named(depth)
        cell = self.rng.choice(('c = "Ames"', "n = 5"))
        return f"{name}[{cell}]", columns

    def _in_a_function(self, depth: int) -> tuple[str, dict[str, str]]:
        """Applied twice, so that what a select in it hides stands in it again."""
        (name, columns), f = self.named(depth), f"f{len(self.lines)}"
        word = self.rng.choice(("c not in (select c from cities)", "c in (select c from cities)"))
        if "person" in columns:
            own = self.rng.choice(("a where n > 2", "u", "u where c = 'Ames'"))
            word = self.rng.choice((word, f"person in (select person from {own})"))
        self.lines.append(f"def {f}(a) = {{{{ select * from a where {word} }}}}")
        return f"{f}({f}({name}))", columns

    def _in_with(self, depth: int) -> tuple[str, dict[str, str]]:
        rows, columns = self._after_from(depth)
        big = f"with big as (select * from {rows}{self._where(columns)})"
        again, own = "big join (select c as k, count(*) as many from big group by c) s on c = k up to 2", False
        if "person" in columns and (own := self.rng.random() < 0.5):
            again = "big where person in (select person from big where n > 3)"
        return f"{{{{ {big} select n as n, c as c from {again} }}}}", _kinds(False, columns if own else {})

    def _grouped(self, depth: int) -> tuple[str, dict[str, str]]:
        """A row for each group of several persons."""
        rows, columns = self._after_from(depth)
        key = self.rng.choice(("c", f"({self.expression(columns, 'boolean')}) as k, c"))
        made = f"select count(*) as many from {rows}{self._where(columns)} per {key}"
        return f"{{{{ select clamp(many, 0, 9) as n, c as c from ({made}) }}}}", _kinds(False, {})

    # Of persons ------------------------------------------------------------------------------------

    def _limited(self, depth: int) -> tuple[str, dict[str, str]]:
        rows, columns = self._after_from(depth)
        if "person" not in columns:
            return f"{{{{ select * from {rows} }}}}", columns
        by, most = self.rng.choice(("", " by n", " by n desc", f" by {self.expression(columns, 'number')}")), "123"
        return f"{{{{ select * from {rows}{self._where(columns)} up to {self.rng.choice(most)} rows{by} }}}}", columns

    def _each_person(self, depth: int) -> tuple[str, dict[str, str]]:
        """A row for each person and key, of listed keys too: of none, of others than there are, twice."""
        rows, columns = self._after_from(depth)
        if "person" not in columns:
            return f"{{{{ select * from {rows} }}}}", columns
        key = self.rng.choice(("", "c", "c", "n", "id") if "id" in columns else ("", "c", "c", "n"))
        lists = {"c": ('["Ames", "Cork", "Cork"]', "[]", '{"x"}'), "n": ("[]", "3..2", "0..4", "[1, 1.5]")}
        over = f" over {self.rng.choice(lists[key])}" if key in lists and self.rng.random() < 0.5 else ""
        few = self.rng.choice(("", "", " up to 2 groups", " up to 1 group, 2 rows each")) if key in ("c", "n") else ""
        names = "" if not key else f" groupby {key}{over}"
        what = self.rng.choice(("count(*)", "max(n)", "sum(clamp(n, 0, 9))", "min(n)"))
        made = f"select {what} as many from {rows}{self._where(columns)} per person{names}{few}"
        n, c = "n" if key == "n" else "many", "c" if key == "c" else "'Ames'"
        columns = _kinds(key == "id", columns)
        return f"{{{{ select {n} as n, {c} as c{', id as id' * (key == 'id')} from ({made}) }}}}", columns

    def _own_rows(self, depth: int) -> tuple[str, dict[str, str]]:
        """Each person's rows with their own."""
        (one, mine), (other, theirs) = self._after_from(depth), self._after_from(max(0, depth - 1))
        if not {"person"} <= mine.keys() & theirs.keys():
            return f"{{{{ select * from {one} }}}}", mine
        both = {"id"} <= mine.keys() & theirs.keys()
        on = self.rng.choice(("person", "person", "person, c", "person, n", "id" if both else "person"))
        side = {name: self.rng.choice(("a", "z")) for name in ("n", "c", "id")}
        kind = self.rng.choice(("join", "left join"))
        mine_too = ", a.id as id" if "id" in mine and self.rng.random() < 0.7 else ""
        columns = f"{side['n']}.n as n, {side['c']}.c as c{mine_too}"
        return f"{{{{ select {columns} from {one} a {kind} {other} z on {on} }}}}", _kinds(bool(mine_too), mine)


def _kinds(id: bool, of: Mapping[str, str]) -> dict[str, str]:
    """The columns of a table that was made of one with the columns `of`."""
    own = {"person": "person"} if "person" in of else {}
    return {"n": "number", "c": "text"} | ({"id": "text"} if id else {}) | own


BOTH = ("chosen", "renamed", "looked_up", "looked_up", "joined_to_public", "united", "exploded", "part",
        "in_a_function")  # fmt: skip
MIXED = ("in_with", "grouped")
PERSONS_ALONE = ("limited", "each_person", "each_person", "own_rows", "own_rows")


# What is measured of tables that are made of tables ------------------------------------------------


PLACE = "coalesce(clamp(floor(n), 0, 3), 0)"
TWO_ROWS = "{{ select * from %s up to 2 rows }}"


@dataclass
class Asked:
    """Measurements that read the columns `n` and `c` alone, which every table of `Nest` has, and other tables beside
    `x`: blocks with public answers, steps, weighted records that are joined, grouped and shaved, scores and cubes."""

    rng: random.Random
    unit: str
    budget: str
    amount: str
    rows: str = "x"
    more: tuple[str, ...] = ()

    def measurement(self, limit: str) -> Measurement:
        forms = [self.cubes, self.groups, self.scores, self.steps, self.weighted_records, self.weighted_records]
        form = self.rng.choice(forms if "weighted" in self.unit else [*forms, self.public_facts])
        form = self.cubes if form == self.steps and self.budget != "epsilon" else form
        if form == self.weighted_records and "weighted" in self.unit:
            form = self.scores
        self.rows, self.more = TWO_ROWS % "x" if self.unit == "id" else "x", ()
        return Measurement(tuple(form()), {}, limit, (form.__name__.replace("_", " "), *self.more), False)

    def _other(self) -> str:
        """Another table of the same source, or a part of one."""
        name = self.rng.choice(("x", "t", "u") if self.unit.startswith("id") and "weighted" not in self.unit else "xt")
        rows = TWO_ROWS % name if self.unit == "id" else name
        return self.rng.choice((rows, f"where({rows}, n > 1)", f"where({rows}, n < 0)", f"where({rows}, c == 'Ames')"))

    def _cube(self, rows: str) -> str:
        return f"histogram({rows}, x = {PLACE}{self.rng.choice(('', ', y = c'))})"

    def cubes(self) -> list[str]:
        h = self._cube(self.rows)
        return self.rng.choice((
            [f"print(laplace([{h}, {self._cube(self._other())}]) {self.amount})"],
            [f"h = {h}", *(f"print(laplace(h[x = {at}]) {self.amount})" for at in (1, 2))],
            [f"print(laplace(histogram({self.rows}, x = (n > 2))) {self.amount})"],
        ))  # fmt: skip

    def groups(self) -> list[str]:
        test = self.rng.choice(("> 1", "== 1", "< 3"))
        y = f"(select c, count(*) as m from {self.rows} group by c having count(*) {test})"
        what = self.rng.choice(("count(*)", "sum(clamp(m, 0, 5))", "count(distinct c)"))
        return [f"print({{{{ select {what} as v from {y}{self.rng.choice(('', ' groupby c'))} {self.amount} }}}})"]

    def scores(self) -> list[str]:
        """Of several tables, of which one row may come to one and take another out of the next."""
        of = ("size({0})", "size({0})", "largest_cell({1})", "l2({1})", "nonzero({1})", "sum_of({0}, clamp(n, -3, 5))")
        some = (self.rng.choice(of) for _ in range(self.rng.randrange(1, 4)))
        rows = ((self.rng.choice((self.rows, self._other())), score) for score in some)
        each = [score.format(one, self._cube(one)) for one, score in rows]
        each = [one for one in each if "weighted" not in self.unit or not one.startswith("nonzero")] or [
            f"size({self.rows})"
        ]
        ways = ("noisy_max([{}])", "largest([{}], 2)", "margin_max([{}])")
        way = self.rng.choice(ways if self.budget in ("delta", "basic") else ways[:2])
        self.more = (way.partition("(")[0].replace("_", " "),)
        each.append(f"size({self._other()})")
        return [f"print({way.format(', '.join(each))} {self.amount})"]

    def steps(self) -> list[str]:
        of = self.rng.choice((f"size({self.rows})", self._cube(self.rows)))
        return [f"g = refinable({of})", *[f"print(refine(g) {self.amount})"] * 2]

    def weighted_records(self) -> list[str]:
        lines = [f"a = weighted(pick({self.rows}, c, n))", f"b = weighted(pick({self._other()}, c, n))"]
        grouped = self.rng.choice(('"size", 2), n = size', '"v", 9, reducer = "sum", of = "z"), n = v',
                                   '"v", 9, reducer = "max", of = "z"), n = v'))  # fmt: skip
        for _ in range(self.rng.randrange(1, 4)):
            lines.append("a = " + self.rng.choice((
                'where(a, c == "Ames")', "concat(a, b)", "union(a, b)", "intersect(a, b)", "without(b, a)",
                f'pick(joined(a, derive(pick(b, c), k = 1), "c"{self.rng.choice(("", ", 2"))}), c, n)',
                f'pick(derive(grouped(derive(a, z = {PLACE}), "c", {grouped}), c, n)',
                f"pick(derive(shave(a, {self.rng.choice((0.3, 1))}, 4), n = place), c, n)", "derive(a, n = 2 * n)",
            )))  # fmt: skip
        axes = self.rng.choice(("c", PLACE, f"{PLACE}, y = c"))
        return [*lines, f"print(laplace(histogram(a, x = {axes})) {self.amount})"]

    def public_facts(self) -> list[str]:
        """Of groups that every row is in, so that answers can be given."""
        saying = self.rng.choice(("", "", "nonnegative ", "whole "))
        lines = [f"y = {self.rows}", f"jointly {saying}{self.amount}:"]
        for i in range(self.rng.randrange(2, 4)):
            key, many = self.rng.choice(
                (("", 1), (f" groupby {PLACE} as k", 4), (" groupby coalesce(n > 2, false) as k", 2))
            )
            answers = ", ".join(str(self.rng.randrange(9)) for _ in range(many))
            given = f" given {f'[{answers}]' if key else answers}" if i == 0 else ""
            what = "count(*)" if given else self.rng.choice(("count(*)", "sum(clamp(n, 0, 9))", "avg(clamp(n, 0, 9))"))
            where = "" if given or self.rng.random() < 0.5 else " where n != 1"
            lines.append(f"    j{i} = {{{{ select {what} as v from y{where}{key}{given} }}}}")
        return [*lines, "print(j0)"]


class Scored(Asked):
    """What is measured by row programs, trees, models and workloads, of the columns `n` and `c` alone."""

    def measurement(self, limit: str) -> Measurement:
        forms = [self.splits, self.levels, self.fits, self.models, self.moved_by_rows]
        if self.budget in ("delta", "basic"):
            forms.append(self.in_rho)
        form = self.rng.choice([one for one in forms if "weighted" not in self.unit or one != self.moved_by_rows])
        self.rows = self._other()
        lines = [f"y = derive({self.rows}, a = {PLACE}, e = 3 - {PLACE}, c = c)", *form()]
        return Measurement(tuple(lines), {}, limit, (form.__name__.replace("_", " "),), False)

    def _any(self, *lines: str) -> list[str]:
        return [f"print({self.rng.choice(lines)} {self.amount})"]

    def splits(self) -> list[str]:
        some = [rule.format(*self.rng.choices(("a", "e", "c", "a > 1"), k=2), self.rng.choice(("y", "where(y, a > 0)")))
                for rule in self.rng.choices(("gini({2}, {0}, {1})", "max_class({2}, {0}, {1})",
                                              "entropy({2}, {0}, {1}, most = 3)"), k=3)]  # fmt: skip
        return self._any(f"laplace({some[0]})", f"noisy_max([{', '.join(some)}])", f"noisy_max([{some[0]}, {some[0]}])")

    def levels(self) -> list[str]:
        named = "[{name: o.name, values: o.categories, edges: o.edges} for o in columns(pick(y, a, e))]"
        rule = self.rng.choice(("gini", "max_class"))
        lines = [f"grown = tree_start({named})", 'k = [o for o in columns(y) if o.name == "c"][0]']
        if self.rng.random() < 0.7:
            lines.append(f"grown = tree_split(grown, noisy_max({rule}(y, grown, c)) {self.amount})")
        return [*lines, *self._any(f"noisy_max({rule}(y, grown, c))", "laplace(leaf_counts(y, grown, k))",
                                   "laplace(level_sizes(y, grown))", "noisy_max(subtrees(y, grown, k))")]  # fmt: skip

    def fits(self) -> list[str]:
        axes, cells = self.rng.choice((("x = a", 4), ("x = a, y = e", 16)))
        of, guess = self.rng.choice(("identity", "prefixes", "marginals", "rectangles")), f"[1.5 for i in 1..{cells}]"
        lines = [f"h = histogram(y, {axes})", f"q = {of}(h)"]
        return [*lines, *self._any(f"noisy_max(misfit(h, q, {guess}))", f"laplace(distance(h, {guess}))",
                                   "laplace(closeness(h, q, [2 for i in 1..len(q)]))", "laplace(largest_marginal(h))",
                                   f"noisy_max([distance(h, {guess}), l2(h)])", "hdmm(h, q)")]  # fmt: skip

    def models(self) -> list[str]:
        lines = ["z = pick(y, a, e, c)", f'm = naive_bayes(z, "c") {self.amount}']
        of = self.rng.choice(('correct_count(z, m, "c")', 'surprise_count(z, m, "c")'))
        return [*lines, *self._any(f"laplace({of})", f"noisy_max([{of}, size(z)])",
                                   'laplace(ranked_counts(z, m, "c", m.classes[0]))')]  # fmt: skip

    def moved_by_rows(self) -> list[str]:
        of = self.rng.choice(('"products"', '"cell_shares", {cells: 4, squares: true}', '"pair_products"'))
        how = f'{of}, norm = "{self.rng.choice(("l1", "l2", "sup"))}", bound = {self.rng.choice((1, 0.3, 7))}'
        v, parts = 'v = vectors(y, a, e, norm = "sup")', "b = [vectors(s, a, e) for s in split_rows(y, 2)]"
        paid = (f"noisy_sum(v, {how}, paid = p, part = 1/2)", "noisy_moments(v, paid = p, part = 1/2)")
        scores = f"noisy_max(coordinate_scores(v, {of}))"
        return self.rng.choice((
            [v, *self._any(f"noisy_sum(v, {how})", scores, "noisy_moments(v)", "laplace(size(v))")],
            [v, f"p = prepaid(v) {self.amount}", *(f"print({self.rng.choice(paid)})" for _ in range(2))],
            [parts, f"p = prepaid(b, steps = 4) {self.amount}", *[f"print(noisy_sum(b, {of}, paid = p))"] * 4],
        ))  # fmt: skip

    def in_rho(self) -> list[str]:
        asked = ("laplace(histogram(d, x = a)) with 1/2", "{{ select avg(a) as v from d groupby c with 1/3 }}",
                 "noisy_max([size(d), size(where(d, a > 1))]) with 1/4")  # fmt: skip
        both = ", ".join(f"({one})" for one in self.rng.choices(asked, k=2))
        return self._any(f"in_rho(y, lambda d: [{both}])")


class Retried(Scored):
    """Runs of which one is shown, and rounds until a budget or an answer: in parts, functions, allotments and in each
    other, by answers before them, with what is refused inside."""

    def measurement(self, limit: str) -> Measurement:
        self.rows, self.more = self._other(), ()
        # of a run that is shown, an epsilon alone has a price
        self.amount = self.amount.partition(" delta")[0]
        lines = [f"y = derive({self.rows}, a = {PLACE}, e = 3 - {PLACE}, c = c)", "seen = 1", *self._run()]
        lines += [self._inside(line) for line in self._asked()]
        watched = ("watch",) * any("above_threshold(" in line for line in lines)  # which compares beside its noise
        return Measurement(tuple(lines), {}, limit, ("retried", *self.more, *watched), False)

    def _score(self, deep: int) -> list[str]:
        """The lines of a run that come to its score `v`."""
        of = self.rng.choice(("d", "d", "where(d, a > 0)", "where(d, a <= k)"))
        forms = [
            [f"v = laplace(size({of}))"],
            [f"v = laplace(histogram({of}, x = a))[0]"],
            [f"v = {{{{ select avg(a) from {of} }}}}"],
            [f"v = noisy_max([size({of}), size(d), size(where(d, e > 1))])"],
            [f"w = above_threshold({of}, 2, 1) with 1/2", "v = 1 if above(d, w) else (laplace(size(d)) with 1/2)"],
            [f"v = laplace(size({of})) with 1/2", "if v > 2: v = v + (laplace(size(d)) with 1/2)"],
            [f"v = laplace(size({of})) with 1/2", "assert v > 2", "v = laplace(size(where(d, a == v))) with 1/2"],
            [f"v = laplace(size({of}))", "if k > 1: v = v + laplace(size(d))"],
            ["v = sum([laplace(size(s)) for key, s in partition(d, a > 1)])"],
            ["v = laplace(size(y)) with 1/3", f"v = v + (laplace(size({of})) with 2/3)"],
            ["v = laplace(size(t))"],
            [f"v = laplace(size({of})) with epsilon 0.2"],
            [f"v = laplace(size({of}), epsilon = 0.01) / (k - 1)"],
        ]  # fmt: skip
        if "weighted" not in self.unit:
            forms.append(["p = prepaid(vectors(d, a, e))",
                          "v = noisy_sum(vectors(d, a, e), \"products\", paid = p, part = 1/2)[0]",
                          "v = v + noisy_sum(vectors(d, a, e), \"products\", paid = p, part = 1/2)[1]"])  # fmt: skip
        if deep:
            forms.append([f"b = best_run({of}, other_run, [1, k], 2)", "v = 0 if b == none else b.score"])
            forms.append(["i = 0", "run with 1/3 until budget of d or i > 2:", "    i = i + laplace(size(d))", "v = i"])
        form = self.rng.choice(forms)
        return form

    def _run(self) -> list[str]:
        told = self.rng.choice(("v", "{score: v, seen: k}", "{score: v, seen: [v, k]}", "0 / 0 if k > 2 else v"))
        inner = [f"    {line}" for line in self._score(0)]
        own = [f"    {line}" for line in self._score(1)]
        return ["def other_run(d, k):", *inner, "    return v", "def run_of(d, k):", *own, f"    return {told}"]

    def _asked(self) -> list[str]:
        how = self.rng.choice(("", ", good = 2", ", good = seen", ', law = "logarithmic"'))
        these = self.rng.choice(("1..3", "[seen, 1]", "[k for k in 1..4 if k > seen or k == 2]", "[2]"))
        best = f"best_run({self.rng.choice(('y', 'y', 'part'))}, run_of, {these}, {self.rng.choice((1, 2, 3))}{how})"
        self.more = ("first good",) if "good" in how else ("best run",)
        if self.budget == "rho":
            best = "laplace(size(y))"
        before = self.rng.choice((f"seen = laplace(size(y)) {self.amount}", "seen = 2", "part = where(y, a > 0)"))
        return ["part = y", before, f"print({best} {self.amount})"]

    def _inside(self, line: str) -> str:
        if not line.startswith("print"):
            return line
        unit = "rho" if self.budget == "rho" else "epsilon"
        plain = line.replace(f" {self.amount}", "")
        return self.rng.choice((
            line, line,
            f"for key, part in partition(y, c):\n    {line}",
            f"for key, part in partition(y, a):\n    if seen < 3: {line}\n    seen = seen + 1",
            f"def all_of(y, part):\n    {plain}\nall_of(y, part) {self.amount}",
            f"with {unit} 0.3:\n    print(laplace(size(part)) with 1/4)\n    {plain}",
            f"run with {unit} 0.1 until budget of y or seen > 3:\n    seen = seen + 1\n    {plain}",
            f"run with {unit} 0.1 until budget of y or seen > 9:\n    more = laplace(size(y)) with 1/2\n"
            f"    seen = 1 + seen + abs(more)\n    {plain}",
            f"with {unit} 0.3:\n    run with 1/2 until budget of part or seen > 3:\n        seen = seen + 1\n"
            f"        {plain}",
            f"jointly {self.amount}:\n    j = {{{{ select count(*) from y }}}}\n{line}",
        ))  # fmt: skip
