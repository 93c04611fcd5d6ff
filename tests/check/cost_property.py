"""Random small programs, their cost as `jostle check` says it, and what a run of each spends.

The run may never spend more than the bound, nor less than the least of a run that ends well; where the bound is said
to be exact, it spends just that. The same holds statement by statement, and of what is left after each. A program that
would be refused for its budget is run all the same, and must not come to its end. Programs run in a simulation, whose
noise is seeded, so that a failure can be made again from its number. What rows are there is not under test: unless
`--rows` asks for the engine, there are none and every exact count is 0, which takes a fifth of the time:

    python -m tests.check.cost_property --programs 10000
    python -m tests.check.cost_property --first 4711 --programs 1 --show
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from decimal import Decimal
from functools import lru_cache
from typing import Any

import numpy as np

from jostle import syntax
from jostle.check.costs import Cost, overspent, table
from jostle.engine.base import shape
from jostle.plan.plan import Key, Plan, Term
from jostle.run import evaluator
from jostle.source import Source
from jostle.tools.session import Session

AMOUNTS = ("0.01", "0.02", "0.05", "0.1", "1 / 3", "0.3 / 7")
LARGE = ("0.5", "1", "2 / 3", "2", "5")
TREES: dict[str, Any] = {}
CITIES = ("Ames", "Bergen", "Cork")


class Maker:
    """Writes one program. `tables` and `numbers` are what the names at hand stand for."""

    def __init__(self, seed: int) -> None:
        self.r = random.Random(seed)
        self.lines: list[str] = []
        self.names = 0
        self.functions: list[str] = []
        self.depth = 0
        self.allotted = self.delta = False
        self.size = 0

    def program(self) -> str:
        budget = self.r.choice(["0.3", "3", "100", "100", "1000", "1000"])
        size = self.r.choice(["rows", "rows", "rows", "rows, public size"])
        columns = 'age: 0..99, sex: {"Female", "Male"}, city: {"Ames", "Bergen", "Cork"}, pay: 0.0..9.5, part: 0..3'
        table = f'table("people.csv") described by {{{columns}}}'
        self.delta = self.r.random() < 0.15
        counted = ", delta 0.9 counted by basic" if self.delta else ""
        self.put(f"private people = {table} protecting {size} budget epsilon {budget}{counted}", 0)
        self.put("private cells = counts([[3, 0, 2], [1, 5, 0]]) protecting rows budget epsilon 200", 0)
        self.put("use pinq", 0)
        for _ in range(self.r.randrange(3)):
            self.function()
        tables, numbers = ["people"], ["0.02"]
        for _ in range(self.r.randint(2, 5)):
            self.statement(0, tables, numbers)
        return "\n".join(self.lines) + "\n"

    # Pieces ----------------------------------------------------------------------------------------

    def put(self, line: str, indent: int) -> None:
        self.lines.append("    " * indent + line)

    def name(self, lead: str) -> str:
        self.names += 1
        return f"{lead}{self.names}"

    def amount(self, numbers: list[str]) -> str:
        kind = self.r.random()
        if self.allotted and kind < 0.75:
            return self.r.choice(["epsilon / 3", "epsilon / 3", "0.1 * epsilon", "epsilon / 8", "0.01 + epsilon / 50"])
        if self.allotted and kind < 0.8:
            return "epsilon"
        if kind < 0.4:
            return f"clamp({self.r.choice(numbers)}, 0.01, 0.05)"
        return self.r.choice(AMOUNTS)

    def allotment(self, numbers: list[str]) -> str:
        return self.amount(numbers) if self.allotted else self.r.choice(LARGE)

    def table(self, tables: list[str]) -> str:
        kind, base = self.r.random(), self.r.choice(tables)
        if kind < 0.15:
            return f'{base}[city = "{self.r.choice(CITIES)}"]'
        if kind < 0.25:
            return f"where({base}, age > {self.r.randint(10, 90)})"
        if kind < 0.3:
            return f"where({base}, part == 2)"
        if kind < 0.33:
            return f"derive({base}, decade = age / 10)"
        if kind < 0.36:
            return f"{base}[pay = 1.5]"
        return base

    def measurement(self, tables: list[str], numbers: list[str]) -> str:
        bare = self.allotted and self.r.random() < 0.12
        spend = "" if bare else f" with epsilon {self.amount(numbers)}"
        given = "" if bare else f", epsilon = {self.amount(numbers)}"
        kind, table = self.r.random(), self.table(tables)
        if kind < 0.08:
            return f"laplace(size(cells){given})"
        if kind < 0.14:
            return f"noisy_max([size(cells), nonzero(cells)]{given})"
        if kind < 0.2:
            return f"sum(laplace(histogram({table}, x = part){given}))"
        if kind < 0.26:
            return f"noisy_max([size({table}), size({self.table(tables)})]{given})"
        if kind < 0.32:
            other = self.table(tables)
            return (
                f"{{{{ (select count(*) from {table}{spend}) + (select count(*) from {other}) }}}}"
                if bare
                else (f"{{{{ (select count(*) from {table}{spend}) + (select sum(age) from {other}{spend}) }}}}")
            )
        if kind < 0.38:
            return f"sum({{{{ select count(*) as n from {table} groupby sex{spend} }}}}.n)"
        if kind < 0.42:
            return f"{{{{ select count(*) from {table} where age > {self.r.choice(numbers)}{spend} }}}}"
        if kind < 0.46:
            return f"{{{{ select count(*) from {table} join {table} on part up to 2{spend} }}}}"
        if kind < 0.52:
            return f"noisyCount({table}, {self.amount(numbers)})"
        if kind < 0.56:
            return f"noisyCount(limited({table}, {self.r.choice(AMOUNTS)}), {self.amount(numbers)})"
        if self.functions and kind < 0.8:
            function = self.r.choice(self.functions)
            called = f"{function}({table}, {self.r.randint(0, 3)})"
            needs = function.startswith("g") or self.r.random() < 0.3
            return f"({called} with epsilon {self.allotment(numbers)})" if needs else called
        return f"{{{{ select count(*) from {table}{spend} }}}}"

    # Statements ------------------------------------------------------------------------------------

    def function(self) -> None:
        inside, self.allotted = self.allotted, self.r.random() < 0.5
        name = self.name("g" if self.allotted else "f")
        self.put(f"def {name}(t, depth):", 0)
        self.put("if depth <= 0: return 0", 1)
        tables, numbers = ["t"], ["depth"]
        for _ in range(self.r.randint(1, 2)):
            self.statement(1, tables, numbers)
        rest = self.r.random()
        if rest < 0.3:
            self.put(f"return {name}(t, depth - 1) + {self.r.choice(numbers)}", 1)
        elif rest < 0.5:
            self.put(f"return sum([{name}(p, depth - 1) for k, p in partition(t, {self.key()})])", 1)
        elif rest < 0.6 and self.allotted:
            self.put(f"if {self.r.choice(numbers)} > 20: return {name}(t, depth - 1) with epsilon epsilon / 2", 1)
            self.put("return 1", 1)
        else:
            self.put(f"return {self.r.choice(numbers)}", 1)
        self.allotted = inside
        self.functions.append(name)

    def key(self) -> str:
        return self.r.choice(["sex", "city", "part", "part", "age / 40", "pay", 'city, over = {"Ames", "Delft"}'])

    def statement(self, indent: int, tables: list[str], numbers: list[str]) -> None:
        self.size += 1
        kind = self.r.random()
        if self.size > 30 or self.depth >= 3 or kind < 0.35:
            number = self.name("n")
            self.put(f"{number} = {self.measurement(tables, numbers)}", indent)
            numbers.append(number)
        elif kind < 0.5:
            self.branch(indent, tables, numbers)
        elif kind < 0.6:
            self.put(
                f"for i in 1..{self.r.choice(['2', '3', 'clamp(round(' + self.r.choice(numbers) + '), 1, 3)'])}:",
                indent,
            )
            self.body(indent, tables, [*numbers, "i"])
        elif kind < 0.73:
            part = self.name("p")
            self.put(f"for k, {part} in partition({self.table(tables)}, {self.key()}):", indent)
            self.body(indent, [*tables, part, part], numbers)
        elif kind < 0.85:
            self.put(f"with epsilon {self.allotment(numbers)}:", indent)
            inside, self.allotted = self.allotted, True
            self.body(indent, tables, numbers)
            self.allotted = inside
        else:
            self.odd(indent, tables, numbers)

    def branch(self, indent: int, tables: list[str], numbers: list[str]) -> None:
        self.put(f"if {self.r.choice(numbers)} > {self.r.choice(['0.5', '1', '40', '1000'])}:", indent)
        self.body(indent, tables, numbers)
        if self.r.random() < 0.7:
            self.put("else:", indent)
            self.body(indent, tables, numbers)

    def body(self, indent: int, tables: list[str], numbers: list[str]) -> None:
        self.depth += 1
        tables, numbers = list(tables), list(numbers)
        for _ in range(self.r.randint(1, 2)):
            self.statement(indent + 1, tables, numbers)
        self.depth -= 1

    def odd(self, indent: int, tables: list[str], numbers: list[str]) -> None:
        kind, table, made = self.r.randrange(24), self.table(tables), self.name("x")
        if kind == 0:
            self.put(
                f"{made} = [{{{{ select count(*) from p with epsilon 0.02 }}}} for k, p in partition({table}, part)]",
                indent,
            )
            self.put(f"{made}s = sum({made})", indent)
            numbers.append(f"{made}s")
        elif kind == 1:
            self.put(f"{made} = [p for k, p in partition({table}, part)]", indent)
            self.put(f"{made}t = {made}[{self.r.randrange(4)}]", indent)
            tables.append(f"{made}t")
        elif kind == 2:
            self.put(f"{made} = {table} if {self.r.choice(numbers)} > 1 else {self.table(tables)}", indent)
            tables.append(made)
        elif kind == 3:
            self.put(f"{made} = lambda t: {{{{ select count(*) from t with epsilon 0.03 }}}}", indent)
            self.put(f"{made}n = {made}({table}) + {made}({self.table(tables)})", indent)
            numbers.append(f"{made}n")
        elif kind == 4:
            self.put(f"{made} = limited({table}, {self.r.choice(AMOUNTS)})", indent)
            tables.append(made)
        elif kind == 5:
            self.put(f'{made} = exp_mech(domain = ["sex", "city", "part"], utilities = [1, 1, 1], epsilon = 1)', indent)
            self.put(f"for k, q in partition({table}, {made}): {made}n = noisyCount(q, 0.02)", indent)
        elif kind == 6:
            self.put(f"{made} = []", indent)
            self.put(f"for k, q in partition({table}, part): {made} = append({made}, q)", indent)
            self.put(f"for q in {made}: {made}n = noisyCount(q, 0.01)", indent)
        elif kind == 7:
            self.put(f"{made} = {table}", indent)
            self.put(f"for k, q in partition({made}, {self.key()}):", indent)
            self.put(f"{made}n = noisyCount({made}, 0.01)", indent + 1)
            self.put(f"if {made}n > 30 {{ {made} = q }}", indent + 1)
        elif kind == 8:
            self.put(f"{made} = clamp(left({table}), 0.01, 0.04)", indent)
            self.put(f"{made}n = noisyCount({table}, {made})", indent)
            numbers.append(f"{made}n")
        elif kind == 9:
            self.put(f'{made} = exp_mech(domain = ["Ames", "Cork"], utilities = [1, 1], epsilon = 1)', indent)
            self.put(f"{made}t = {table}[city = {made}]", indent)
            tables.append(f"{made}t")
        elif kind == 10:
            self.put(f"{made} = exp_mech(domain = columns(people), utilities = [1, 2, 3, 4, 1], epsilon = 1)", indent)
            self.put(f"for k, q in partition({table}, {made}): {made}n = noisyCount(q, {self.amount(numbers)})", indent)
        elif kind == 11:
            key = self.r.choice(["x", "y"])
            self.put(f"for k, q in partition(cells, {key}): {made}n = laplace(size(q[y = 1]), epsilon = 0.02)", indent)
            self.put(f"{made}m = laplace(size(cells[{key} = 1]), epsilon = 0.03)", indent)
        elif kind == 12:
            self.put(f"def {made}(t):", indent)
            self.put(f"for k, q in partition(t, {self.key()}):", indent + 1)
            self.put("n = noisyCount(q, 0.01)", indent + 2)
            self.put(f"if n > {self.r.choice(['0', '300', '2000'])} {{ return n + noisyCount(t, 0.02) }}", indent + 2)
            self.put("return noisyCount(t, 0.01)", indent + 1)
            self.put(f"{made}n = {made}({table})", indent)
            numbers.append(f"{made}n")
        elif kind == 13:
            self.put(f"{made} = {{first: {table}, rest: [{table}, {self.table(tables)}]}}", indent)
            self.put(f"{made}n = noisyCount({made}.rest[{self.r.randrange(2)}], 0.02)", indent)
            self.put(f"{made}m = [noisyCount(q, 0.01) for q in {made}.rest if {self.r.choice(numbers)} > 30]", indent)
            tables.append(f"{made}.first")
        elif kind == 14:
            self.put(f"for k, q in partition({table}, {self.key()}):", indent)
            self.put(f"{made} = {{{{ select age, count(*) as times from q per age }}}}", indent + 1)
            self.put(f"{made}n = noisyCount({made}, 0.02) + noisyCount(where({made}, times > 3), 0.01)", indent + 1)
        elif kind in (15, 16):
            each = (
                self.amount(numbers)
                if self.allotted
                else self.r.choice(["0.2", "0.9", f"clamp({self.r.choice(numbers)}, 0.2, 0.7)"])
            )
            done = self.r.choice(["", f" or {self.r.choice(numbers)} > 40", f" or {made} > 2"])
            self.put(f"{made} = 0", indent)
            self.put(f"run with epsilon {each} until budget of {self.r.choice(tables)}{done}:", indent)
            self.put(f"{made} = {made} + 1", indent + 1)
            inside, self.allotted = self.allotted, True
            self.body(indent, tables, [*numbers, made])
            self.allotted = inside
        elif kind == 18:
            self.put(f'for d in 2024-02-27..2024-03-0{self.r.choice("12")}:', indent)
            self.put(f'if not (str(d) in {{"2024-02-29"}}) {{ {made} = noisyCount({table}, 0.01) }}', indent + 1)
        elif kind == 19:
            self.put(f"{made} = sorted(set([{self.r.randrange(4)}, 1, 2, 1]))", indent)
            self.put(f"for a, b in zip({made}, reversed({made})):", indent)
            self.put(f"{made}n = noisyCount({table}, clamp(a * b / 100, 0.01, 0.03))", indent + 1)
        elif kind == 20:
            self.put(f"{made} = [q for k, q in partition({table}, {self.key()})]", indent)
            self.put(f"for q in {made} - [{made}[0]]: {made}n = noisyCount(q, 0.02)", indent)
            self.put(f"for i, q in enumerate({made} + [{table}]): {made}m = noisyCount(q, 0.01 * (i + 1))", indent)
        elif kind == 21:
            self.put(f'{made} = record([["a", {table}], ["b", {self.table(tables)}]])', indent)
            self.put(f"for name in keys({{b: 1, a: {self.r.choice(numbers)}}}):", indent)
            self.put(f"{made}n = noisyCount({made}[name], 0.02) if name in {made} else 0", indent + 1)
            self.put(f"for q in values({made}): {made}m = noisyCount(q, 0.01 * len(1..(0..2).high))", indent)
        elif kind == 22:
            self.put(f"{made} = union({table}, where({table}, age > 9))", indent)
            self.put(f"for k, q in partition({made}, sex): {made}n = noisyCount(q, 0.02)", indent)
            self.put(f"{made}m = noisyCount({made}, 0.01)", indent)
        elif kind == 23:
            spend = "with epsilon 0.02 delta 1e-6" if self.delta else "with epsilon 0.02"
            self.put(f"{made} = {{{{ select sex, part, count(*) as m from {table} per sex, part }}}}", indent)
            self.put(f"for k, q in partition({made}, sex):", indent)
            self.put(f"{made}n = {{{{ select part, count(*) as n from q groupby part {spend} }}}}", indent + 1)
        else:
            function = self.r.choice(["noisyCount", "noisyCount", "noisyAvg"])
            self.put(f"{made} = {self.r.choice(numbers)} > 0.5 and noisyCount({table}, 0.02) > 1", indent)
            self.put(f"{made}n = noisyCount({table}, 0.03) if {made} else 1", indent)
            if function == "noisyAvg":
                self.put(f'{made}m = noisyAvg({table}, "age", 0.03)', indent)
            numbers.append(f"{made}n")


def quanta(text: str) -> int:
    return int(Decimal(text) * 10**12)


def zeros(plan: Plan, keys: tuple[Key, ...], terms: tuple[Term, ...]) -> list[Any]:
    """What the engine finds in a table without rows."""
    return [np.zeros(shape(keys), dtype=np.int64) for _ in terms]


def no_codes(plan: Plan, keys: tuple[Key, ...]) -> list[Any]:
    """The codes of the rows of a table without any."""
    return [np.empty(0, dtype=np.int32) for _ in keys]


Budgets = list[tuple[int, dict[str, Any]]]


def budgets_after_statements(session: Session, source: Source) -> Budgets:
    """A list that a run fills: the line of each statement of the program, and the budget where it ended well."""
    interp, body = session._interp, session._parsed(source).body
    block, budgets = interp.block, []

    def watched(statements: Any, scope: Any) -> Any:
        if statements is not body:
            return block(statements, scope)
        for statement in body:
            block((statement,), scope)
            budgets.append((statement.span.line, session.budget()))
        return None

    interp.block = watched  # type: ignore[method-assign]
    return budgets


def wrong_charges(cost: Cost, budgets: Budgets) -> list[str]:
    """Where a statement spent more than its charge, or left less or something else than was said."""
    wrong, before, given_up = [], 0, False
    charges = {charge.span.line: charge for charge in cost.charges}
    for line, budget in budgets:
        charge = charges.get(line)
        given_up = given_up or (charge is not None and charge.most == float("inf"))
        after = quanta(budget[cost.name]["epsilon"]["spent"]) if cost.name in budget else 0
        spent, before = after - before, after
        if given_up:
            continue
        if spent > (charge.most if charge else 0) or (charge and charge.exact and spent != charge.most):
            wrong.append(f"{cost.name}, line {line}: spent {spent}, and {charge} was said")
        if charge and (cost.limit - after < charge.left or (charge.left_exact and cost.limit - after != charge.left)):
            wrong.append(f"{cost.name}, line {line}: {cost.limit - after} is left, and {charge} was said")
    return wrong


def failures(seed: int, rows: bool = False) -> tuple[list[str], str]:
    """What is wrong with the cost of program number `seed`, and how its run and its cost came out."""
    source = Source(f"program {seed}", Maker(seed).program())
    session = Session(simulate=seed)
    session._modules._trees = TREES  # a module is parsed once for all programs
    if not rows:
        engine: Any = session._interp.data._engine
        engine.group, engine.rows, engine.codes = zeros, lambda plan: 0, no_codes
    session._affordable = lambda source, settings: None  # type: ignore[method-assign]
    costs = session.costs(source)
    budgets = budgets_after_statements(session, source)
    result = session.attempt(source)
    if not result.budget:
        return [f"it does not run at all: {result.diagnostics[0]}"], "unwritten"
    wrong = []
    refused = overspent(costs)
    if refused and (result.ok or result.diagnostics[0].kind not in ("BudgetExceeded", "BadAmount")):
        wrong.append(f"it ends otherwise than it is refused: {refused[0].message}, {result.diagnostics}")
    for cost in costs:
        spent = quanta(result.budget[cost.name]["epsilon"]["spent"]) if cost.name in result.budget else 0
        if spent > cost.most:
            wrong.append(f"{cost.name}: spent {spent}, and the bound is {cost.most}")
        if result.ok and spent < cost.least:
            wrong.append(f"{cost.name}: spent {spent}, and the least is {cost.least}")
        if result.ok and cost.exact and cost.fits and spent != cost.bound:
            wrong.append(f"{cost.name}: spent {spent}, and exactly {cost.bound} was said")
        wrong += wrong_charges(cost, budgets)
    ended = "well" if result.ok else result.diagnostics[0].kind
    bound = "exact" if costs[0].exact else "boundless" if costs[0].bound == float("inf") else "bounded"
    bound = "refused" if refused else bound
    return wrong, f"{ended}, {bound}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--programs", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--show", action="store_true", help="print each program and its cost")
    parser.add_argument("--rows", action="store_true", help="with the engine, on simulated rows")
    asked = parser.parse_args()
    if not asked.rows:
        evaluator.MADE_UP_ROWS = 3
    syntax.parse = lru_cache(maxsize=4)(syntax.parse)  # for its cost and for its run
    count: Counter[str] = Counter()
    bad = 0
    for seed in range(asked.first, asked.first + asked.programs):
        wrong, came = failures(seed, asked.rows)
        count[came] += 1
        bad += bool(wrong)
        if seed % 500 == 499:
            print(f"… {seed + 1 - asked.first}, {bad} wrong", flush=True)
        if wrong or asked.show:
            text = Maker(seed).program()
            costs = table(Session().costs(Source("p", text)))
            print(f"--- {seed} ({came})\n{text}{costs}\n" + "\n".join(wrong), flush=True)
    for came, many in count.most_common():
        print(f"{many:6} {came}")
    print(f"{asked.programs} programs, {bad} wrong")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
