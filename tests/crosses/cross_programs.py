"""Programs of two to four features, crossed at random: declarations, transformations, expressions, measurements.

Each feature is one function of `Maker`, which adds lines to a program and says what it is called. The tables of the
language give what they can be of: aggregates, row functions, built-ins. A program that is refused before it pays is no
fault; what counts is that pairs of features run together.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from cross_expressions import Expressions
from cross_worlds import BUDGETS, DESCRIPTION, KINDS, UNITS, WRITERS

from jostle.language import aggregates

AMOUNTS = {"epsilon": "epsilon 0.25", "rho": "rho 0.25", "delta": "epsilon 0.25 delta 1e-6"}
AGGREGATES = tuple(aggregates.AGGREGATES)
RECORDS = {"c": "text", "n": "number", "s": "text"}


@dataclass
class Program:
    text: str
    file: str
    unit: str
    budget: str
    features: tuple[str, ...]


@dataclass
class Maker:
    rng: random.Random
    lines: list[str] = field(default_factory=list)
    uses: set[str] = field(default_factory=set)
    features: list[str] = field(default_factory=list)
    last: str = ""
    _functions: set[str] = field(default_factory=set)

    def program(self) -> Program:
        pick = self.rng.choice
        self.lines, self.uses, self.features, self._functions = [], set(), [], set()
        self.file, self.unit, self.budget = pick(list(WRITERS)), pick(UNITS), pick(list(BUDGETS))
        self.amount = f"with {AMOUNTS[self.budget]}"
        self.columns, self.table, self.number = dict(KINDS), "t", 0
        self.limit = " up to 2 rows" if self.unit == "id" else ""
        self.last = ""
        for _ in range(pick((0, 1, 1, 2, 2))):
            self._add(pick([f for f in TRANSFORMATIONS if self._fits(f)]))
        if {"id", "c", "n", "b"} <= set(self.columns) and self.rng.random() < 0.15:
            self._add(pick(("joined_to_public_rows", "joined_to_itself")))
        measurements = MEASUREMENTS[:5] if self.last else MEASUREMENTS
        for _ in range(pick((1, 1, 2))):
            self._add(pick([f for f in measurements if self._fits(f)]))
        declared = (f'private t = table("t.{self.file}") described by {DESCRIPTION}\n    protecting {self.unit} '
                    f"budget {BUDGETS[self.budget]}")  # fmt: skip
        text = "\n".join([*(f"use {name}" for name in sorted(self.uses)), declared, *self.lines]) + "\n"
        functions = sorted({f"{name}()" for name in self._functions})
        self.features += [f"file {self.file}", f"unit {self.unit}", f"budget {self.budget}", *functions]
        return Program(text, self.file, self.unit, self.budget, tuple(dict.fromkeys(self.features)))

    def _fits(self, feature: str) -> bool:
        """Whether a feature can follow: what is refused from public facts is tried now and then all the same."""
        if self.rng.random() < 0.03:
            return True
        persons, whole = self.unit.startswith("id"), set(KINDS) <= set(self.columns)
        needs_bound = self.unit == "id" and feature not in (
            "aggregates",
            "joint_block",
            "rows_of_persons",
            "parts",
            "given_before",
        )
        wants = {
            "rows_of_persons": persons and whole, "steps": self.budget == "epsilon",
            "weighted_records": "weighted" not in self.unit and {"c", "n", "s"} <= set(self.columns),
            "watch": self.budget != "delta", "exploded": whole, "united": whole, "share_of_rows": whole,
            "vectors": whole and "weighted" not in self.unit, "empty_side": whole,
            "joint_block": "weighted" not in self.unit and not self.last,
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
        self._functions.update(expressions.used)
        return text

    def _bounded(self) -> str:
        low, high = self.rng.choice((("0", "9"), ("-5", "1e9"), ("0", "1e15"), ("-1e15", "1e15"), ("0.0", "0.001")))
        if self.rng.random() < 0.4:
            return self.rng.choice([n for n in ("n", "r", "w") if n in self.columns] or [f"clamp(1, {low}, {high})"])
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
        other = self.rng.choice(("t", self.table, f"where({self.table}, {self._expression('boolean')})"))
        names = ", ".join(n for n in KINDS if n in self.columns)
        self._new(f"union(pick({self.table}, {names}), pick({other}, {names}))")

    def exploded(self) -> None:
        items = self.rng.choice(("[n, r, w]", '[part(s, " ", 1), part(s, " ", 2), c]', "[d, date(m)]"))
        kind = {"[n": "number", "[p": "text", "[d": "date"}[items[:2]]
        self._new(f"explode({self.table}, item = {items})", {**self.columns, "item": kind})

    def part_of_a_partition(self) -> None:
        cell = self.rng.choice(('c = "Ames"', "n = 5", "b = true"))
        self._new(f"{self.table}[{cell}]")

    def share_of_rows(self) -> None:
        self._new(f"split_rows({self.table}, 3)[1]")

    def smaller_budget(self) -> None:
        self._new(f"limited({self.table}, {'2' if self.budget != 'rho' else '1'})")

    def joined_to_public_rows(self) -> None:
        """A join is asked in the select that it is in, so it stands last."""
        self.last = f"{self.table} {self.rng.choice(('join', 'left join'))} cities on c"
        self.columns = {**self.columns, "region": "text"}

    def joined_to_itself(self) -> None:
        self.last = f"{self.table} join t on {self.rng.choice(('n', 'c', 'b'))} up to 2"

    def rows_of_persons(self) -> None:
        bound, self.limit = self.limit, ""  # each person has one row, or one of each key
        of = self.rng.choice(
            ("count(*)", f"sum({self._bounded()})", f"max({self._bounded()})", f"avg({self._bounded()})")
        )
        key = self.rng.choice(("", " groupby c", " groupby n"))
        name = {" groupby c": {"c": "text"}, " groupby n": {"n": "number"}}.get(key, {})
        self._new(f"{{{{ select {of} as v from {self.table}{bound} per person{key} }}}}", {"v": "number", **name})

    # Measurements ---------------------------------------------------------------------------------

    def _aggregate(self, name: str) -> str:
        self._functions.add(name)
        if name == "count":
            inside = self.rng.choice(("*", f"distinct {self._expression('any')}", self._expression("any")))
            return f"count({inside})"
        if name == "covariance":
            return f"covariance({self._bounded()}, {self._bounded()})"
        if name == "quantile":
            return f"quantile({self._bounded()}, {self.rng.choice(('0.1', '0.5', '1'))})"
        if name == "mode":
            return f"mode({self.rng.choice([n for n in ('c', 'n', 'b') if n in self.columns] or ['1 > 0'])})"
        if name == "bounds":
            return f"bounds({self._expression('number')})"
        return f"{name}({self._bounded()})"

    def _keys(self) -> str:
        form = self.rng.randrange(8)
        if form < 3:
            return ""
        names = [n for n in ("c", "n", "b") if n in self.columns]
        if form == 3 and names:
            return f" groupby {', '.join(names[: self.rng.randrange(1, 3)])}"
        if form == 4:
            return f" groupby ({self._expression('number')}) as k over 0..3"
        if form == 5:
            return f' groupby ({self._expression("text")}) as k over {{"Ames", "", "é"}}'
        if form == 6 and {"c", "b"} <= set(self.columns):
            return ' groupby (c, b) over [("Ames", true), ("Cork", false)]'
        if form == 7 and self.budget == "delta":
            return f" groupby {self._expression('text')} as k"
        return f" groupby ({self._expression('boolean')}) as k"

    def _select(self, aggregates: list[str]) -> str:
        what = ", ".join(f"{self._aggregate(name)} as a{i}" for i, name in enumerate(aggregates))
        where = f" where {self._expression('boolean')}" if self.rng.random() < 0.4 else ""
        return f"{{{{ select {what} from {self.last or self.table}{where}{self._keys()}{self.limit} {self.amount} }}}}"

    def aggregates(self) -> None:
        names = [self.rng.choice(AGGREGATES) for _ in range(self.rng.randrange(1, 4))]
        self.features += names
        self.lines.append(f"x{len(self.lines)} = {self._select(names)}")
        self.lines.append(f"print(x{len(self.lines) - 1})")

    def joint_block(self) -> None:
        saying = self.rng.choice(("", "", "nonnegative ", "for the least total "))
        self.lines.append(f"jointly {saying}{self.amount}:")
        for i in range(self.rng.randrange(1, 4)):
            what = self.rng.choice(("count(*)", f"sum({self._bounded()})", f"avg({self._bounded()})"))
            where = f" where {self._expression('boolean')}" if self.rng.random() < 0.4 else ""
            names = [n for n in ("c", "n", "b") if n in self.columns]
            keys = (
                f" groupby {', '.join(names[: self.rng.randrange(1, 3)])}" if names and self.rng.random() < 0.7 else ""
            )
            self.lines.append(
                f"    j{i} = {{{{ select {what} as v from {self.last or self.table}{where}{keys}{self.limit} }}}}"
            )
        self.lines.append("print(j0)")

    def _histogram(self) -> str:
        names = [n for n in ("n", "c", "b") if n in self.columns]
        axis = self.rng.choice((*names, f"clamp(floor({self._expression('number')}), 0, 15)"))
        more = f", y = {self.rng.choice(names)}" if names and self.rng.random() < 0.3 else ""
        return f"histogram({self.table}, x = {axis}{more})"

    def histogram(self) -> None:
        self.uses.add("histograms")
        how = self.rng.choice(
            ("laplace(h)", "gaussian(h)", "flat(h, identity(h))", "dawa(h, prefixes(h))", "hb(h, prefixes(h))",
             "mwem(h, prefixes(h), 2)", "shrinkage(h, identity(h))", "uniform(h, prefixes(h))",
             "least_cost_partition(h)")
        )  # fmt: skip
        self.features.append(how.partition("(")[0])
        self.uses.add("workloads")
        self.lines += [f"h = {self._histogram()}", f"print({how} {self.amount})"]

    def cells_of_a_cube(self) -> None:
        what = self.rng.choice(("sum(values)", "max(values)", "count(values)"))
        self.lines += [
            f"h = {self._histogram()}",
            f"print({{{{ select {what} as v from h groupby x {self.amount} }}}})",
        ]

    def score(self) -> None:
        self.uses.add("features")
        name = self.rng.choice(("size", "nonzero", "largest_cell", "l2", "l1_to_uniform", "total_variation"))
        self.features.append(name)
        self.lines += [f"h = {self._histogram()}", f"print(laplace({name}(h)) {self.amount})"]

    def selection(self) -> None:
        self.uses.add("selection")
        names = [n for n in ("c", "n", "b") if n in self.columns] or ["1 > 0"]
        parts = f"[size(p[1]) for p in partition({self.table}, {self.rng.choice(names)})]"
        margin = [f"margin_max({parts})"] if self.budget == "delta" else []
        how = self.rng.choice((f"noisy_max({parts})", f"largest({parts}, 2)", *margin))
        self.features.append(how.partition("(")[0])
        self.lines.append(f"print({how} {self.amount})")

    def watch(self) -> None:
        self.uses.add("selection")
        self.lines += [
            f"w = above_threshold({self.table}, 3, 2) {self.amount}", f"print(above({self.table}, w))",
            f"print(above(where({self.table}, {self._expression('boolean')}), w))",
        ]  # fmt: skip

    def vectors(self) -> None:
        self.uses.add("row_vectors")
        columns = ", ".join(self.rng.sample(["n", "r", "w"], 2))
        self.lines += [f"v = vectors({self.table}, {columns})", f"print(noisy_moments(v) {self.amount})"]

    def weighted_records(self) -> None:
        self.uses |= {"weighted", "workloads"}
        kind = self.rng.choice(("text", "number", "date", "boolean"))
        one = f"weighted(derive(pick({self.table}, c, n, s), z = {self._expression(kind)}))"
        self.lines.append(f"a = {one}")
        for _ in range(self.rng.randrange(1, 3)):
            self.lines.append("a = " + self.rng.choice((
                f"where(a, {self._on(RECORDS, 'boolean')})", f"derive(a, z = {self._on(RECORDS, kind)})",
                'concat(a, where(a, c == "Ames"))', "union(a, where(a, n > 5))", "intersect(a, where(a, n > 100))",
                "without(a, where(a, n == 5))", "concat(a, a)",
            )))  # fmt: skip
        self.lines.append(f"print(laplace(histogram(a, x = c)) {self.amount})")

    def steps(self) -> None:
        self.uses.add("gradual")
        of = self.rng.choice((self.table, "h"))
        self.lines += [f"h = {self._histogram()}", f"g = refinable({of})", f"print(refine(g) {self.amount})"]

    def parts(self) -> None:
        key = self.rng.choice([n for n in ("c", "n", "b") if n in self.columns] or ["1 > 0"])
        what = self._aggregate(self.rng.choice(AGGREGATES))
        self.lines += [
            f"for key, part in partition({self.table}, {key}):",
            f"    print(key, {{{{ select {what} as v from part{self.limit} {self.amount} }}}})",
        ]

    def given_before(self) -> None:
        """The same question twice."""
        asked = self._select([self.rng.choice(AGGREGATES)])
        self.lines += [f"print({asked})", f"print({asked})"]


TRANSFORMATIONS = (
    "filtered", "filtered", "empty_side", "derived", "derived", "picked", "united", "exploded", "part_of_a_partition",
    "share_of_rows", "smaller_budget", "joined_to_public_rows", "joined_to_itself", "rows_of_persons",
)  # fmt: skip
MEASUREMENTS = (
    "aggregates", "aggregates", "aggregates", "joint_block", "joint_block", "histogram", "cells_of_a_cube", "score",
    "selection", "watch", "vectors",
    "weighted_records", "weighted_records", "steps", "parts", "given_before",
)  # fmt: skip
