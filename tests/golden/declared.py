"""Mistakes in declarations of private tables, in choices and in their parts, and how well `check` leads out of them.

They were written from the documentation alone, before any message was looked at. An entry has a right program, what
stands in it, and what stands there by mistake; or, where several things may be meant, words that must be said. A hash
of the wrong program halves them: `mend` was for mending, `sealed` for judging alone. Grades are those of `habits`:

    python -m tests.golden.declared sealed         # `mend -v` shows each message below the top
"""
# ruff: noqa: E501

from __future__ import annotations

import difflib
import hashlib
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from habits import measured, quoted, shows_a_line

from jostle.diagnostics import Diagnostic
from jostle.source import Source
from jostle.tools.session import Session

FOLDER = Path(__file__).resolve().parents[2] / "programs"
Entry = tuple[str, str, str]
D = """private people = table("data/people.csv")
    described by {age: 16..79, sex: {"Female", "Male"}, income: 0..200000}
    protecting rows
    budget epsilon 1.0
n = {{ select count(*) from people where age >= 65 with epsilon 0.1 }}
print(n)
"""
O = """private customers = table("data/customers.csv") described by {id: text, age: 18..79, city: {"Ames", "Bergen", "Cork"}}
    protecting id up to 1 row
    budget epsilon 3
private orders = table("data/orders.csv") described by {kind: {"bread", "fish", "wine"}, amount: 0.0..100.0}
    protecting customers.id on customer
t = {{ select sum(amount) from orders up to 3 rows with epsilon 1 }}
print(t)
"""
C = """use histograms
rows_in = Feature (data) { return log(max(1, laplace(size(data.database)))) }
Flat = Option (data) { return flat(data.database, data.queries) }
Tree = Option (data) { return hb(data.database, data.queries) }
near = Utility (data, answers) { return -rmse(answers, exact(data.queries, data.database)) }
bumps = [counts([round(300 * exp(-((x - at) / 9)^2)) for x in 0..31]) for at in [5, 20]]
choose = MkChoiceMaker among {Flat, Tree}
    informed by {rows_in}
    trained on [{database: b, queries: prefixes(b)} for b in bumps]
    spending 0.05
    wrt near
private people = table("data/people.csv") described by {age: 16..79, income: 0..200000} protecting rows budget epsilon 1.0
ages = histogram(people, x = age / 2)
below = choose({database: ages, queries: prefixes(ages)}) with epsilon 0.5
print(below[19])
"""
V = """use workloads
Even  = Option (data) {
    n = laplace(size(data.database))
    return answer(data.queries, [n / 16 for i in 1..16])
}
Cells = Option (data) { return answer(data.queries, laplace(data.database)) }
near  = Utility (data, answers) { return closeness(data.database, data.queries, answers) }
choose = MkChoiceMaker among {Even, Cells} by validation wrt near
private people = table("data/people.csv") described by {age: 16..79} protecting rows budget epsilon 1
ages = histogram(people, x = age / 4)
answers = choose({database: ages, queries: prefixes(ages)}) with epsilon 1
print(answers[3])
"""
LIST = [
    # declarations
    (D, 'table("data/people.csv")\n', 'table("data/people.csv"\n'),
    (D, "described by {age", "described {age"),
    (D, "described by {age", "described as {age"),
    (D, "described by {age", "with columns {age"),
    (D, "protecting rows", "protecting row"),
    (D, "protecting rows", "protected rows"),
    (D, "protecting rows", "protecting people"),
    (D, "protecting rows", "protecting each row"),
    (D, "protecting rows", "protects rows"),
    (D, "budget epsilon 1.0", "budget epsilon = 1.0"),
    (D, "budget epsilon 1.0", "budget = epsilon 1.0"),
    (D, "budget epsilon 1.0", "budget epsilon: 1.0"),
    (D, "budget epsilon 1.0", "budget 1.0 epsilon"),
    (D, "budget epsilon 1.0", "budget of epsilon 1.0"),
    (D, "budget epsilon 1.0", "with budget epsilon 1.0"),
    (D, "budget epsilon 1.0", "budget eps 1.0"),
    (D, "budget epsilon 1.0, delta 1e-6", "budget epsilon 1.0 and delta 1e-6"),
    (D, "budget epsilon 1.0, delta 1e-6", "budget (1.0, 1e-6)"),
    (D, "budget epsilon 1.0, delta 1e-6", "budget epsilon 1.0 budget delta 1e-6"),
    (D, "budget epsilon 1.0", 'budget epsilon "1.0"'),
    (D, "budget epsilon 1.0", "budget epsilon 1.0 per query"),
    (D, "budget epsilon 1.0", "budget epsilon 1.0\n    budget epsilon 2.0"),
    (D, "budget epsilon 1.0", "budget rho 1.0"),
    (D, "budget epsilon 1.0", "budget epsilon 0", "positive|more than 0|above 0|larger than"),
    (
        D,
        '{age: 16..79, sex: {"Female", "Male"}, income: 0..200000}',
        'age: 16..79, sex: {"Female", "Male"}, income: 0..200000',
    ),
    (
        D,
        '{age: 16..79, sex: {"Female", "Male"}, income: 0..200000}',
        '(age: 16..79, sex: {"Female", "Male"}, income: 0..200000)',
    ),
    (D, "age: 16..79", "age: 16-79"),
    (D, "age: 16..79", "age: 16 to 79"),
    (D, "age: 16..79", "age: [16, 79]"),
    (D, "age: 16..79", "age: between 16 and 79"),
    (D, "age: 16..79", "age = 16..79"),
    (D, "age: 16..79", "age in 16..79"),
    (D, "age: 16..79", "age: 79..16", "empty|order|low|below|smaller"),
    (D, "age: 16..79", "age: integer 16..79"),
    (D, "age: 16..79", "age: range(16, 79)"),
    (D, 'sex: {"Female", "Male"}', 'sex: ["Female", "Male"]'),
    (D, 'sex: {"Female", "Male"}', "sex: {Female, Male}"),
    (D, 'sex: {"Female", "Male"}', 'sex: "Female" or "Male"'),
    (D, 'sex: {"Female", "Male"}', 'sex: "Female"/"Male"'),
    (D, 'sex: {"Female", "Male"}', 'sex: category("Female", "Male")'),
    (D, "income: 0..200000", "income: 0..200,000"),
    (D, "income: 0..200000", "income: 0..200k"),
    (D, "income: 0..200000", "incomes: 0..200000"),
    (D, "income: 0..200000", "income: 0 .. max"),
    (D, "income: 0..200000", "income: numeric 0..200000"),
    (D, 'private people = table("data/people.csv")', 'private table people = "data/people.csv"'),
    (D, 'private people = table("data/people.csv")', 'private people = "data/people.csv"'),
    (D, 'private people = table("data/people.csv")', 'people = private table("data/people.csv")'),
    (D, 'private people = table("data/people.csv")', "private people = table(data/people.csv)"),
    (D, 'private people = table("data/people.csv")', 'private people from table("data/people.csv")'),
    (D, 'private people = table("data/people.csv")', 'private people: table("data/people.csv")'),
    (D, "    protecting rows\n", "", "protecting"),
    (D, "    budget epsilon 1.0\n", "", "budget"),
    (
        D,
        """private people = table("data/people.csv")
    described by {age: 16..79, sex: {"Female", "Male"}, income: 0..200000}
    protecting rows
    budget epsilon 1.0""",
        """private people = table("data/people.csv", described by {age: 16..79, sex: {"Female", "Male"}, income: 0..200000}, protecting rows, budget epsilon 1.0)""",
    ),
    (
        D,
        """private people = table("data/people.csv")
    described by {age: 16..79, sex: {"Female", "Male"}, income: 0..200000}
    protecting rows
    budget epsilon 1.0""",
        """private people = table("data/people.csv"), described by {age: 16..79, sex: {"Female", "Male"}, income: 0..200000}, protecting rows, budget epsilon 1.0""",
    ),
    (
        D,
        """private people = table("data/people.csv")
    described by {age: 16..79, sex: {"Female", "Male"}, income: 0..200000}
    protecting rows
    budget epsilon 1.0""",
        """private people = table("data/people.csv") {
    described by {age: 16..79, sex: {"Female", "Male"}, income: 0..200000}
    protecting rows
    budget epsilon 1.0
}""",
    ),
    (O, "protecting id up to 1 row", "protecting id up to 1"),
    (O, "protecting id up to 1 row", "protecting id max 1 row"),
    (O, "protecting id up to 1 row", "protecting id, up to 1 row"),
    (O, "protecting id up to 1 row", "protecting id with up to 1 row"),
    (O, "protecting id up to 1 row", "protecting up to 1 row per id"),
    (O, "protecting id up to 1 row", "protecting column id up to 1 row"),
    (O, "protecting customers.id on customer", "protecting customers on customer"),
    (O, "protecting customers.id on customer", "protecting customers.id on customers.id = customer"),
    (O, "protecting customers.id on customer", "protecting customers.id on customer\n    budget epsilon 3"),
    (O, "protecting customers.id on customer", "protecting customers.id by customer"),
    # choices
    (
        C,
        "Flat = Option (data) { return flat(data.database, data.queries) }",
        "Flat = Option (data) => flat(data.database, data.queries)",
    ),
    (
        C,
        "Flat = Option (data) { return flat(data.database, data.queries) }",
        "def Flat(data): return flat(data.database, data.queries)",
    ),
    (
        C,
        "Flat = Option (data) { return flat(data.database, data.queries) }",
        "Option Flat(data) { return flat(data.database, data.queries) }",
    ),
    (
        C,
        "Flat = Option (data) { return flat(data.database, data.queries) }",
        "Flat = Option { return flat(data.database, data.queries) }",
    ),
    (
        C,
        "Flat = Option (data) { return flat(data.database, data.queries) }",
        "Flat = Option (database, queries) { return flat(database, queries) }",
    ),
    (
        C,
        "Flat = Option (data) { return flat(data.database, data.queries) }",
        "Flat = Option (data) { flat(data.database, data.queries) }",
    ),
    (C, "return flat(data.database, data.queries)", "return flat(data)", "queries"),
    (C, "return flat(data.database, data.queries)", "return flat(data.queries, data.database)"),
    (C, "return flat(data.database, data.queries)", "return flat(database, queries)"),
    (C, "return flat(data.database, data.queries)", "return flat(data.db, data.queries)"),
    (C, "return flat(data.database, data.queries)", "return exact(data.queries, data.database)", "private"),
    (C, "near = Utility (data, answers) {", "near = Utility (answers, data) {"),
    (C, "near = Utility (data, answers) {", "near = Utility (data) {"),
    (C, "near = Utility (data, answers) {", "near = Score (data, answers) {"),
    (C, "near = Utility (data, answers) {", "near = def (data, answers) {"),
    (C, "-rmse(answers, exact(data.queries, data.database))", "-rmse(answers, exact(data.database, data.queries))"),
    (C, "return -rmse(answers, exact(data.queries, data.database))", 'return "good"', "number"),
    (
        C,
        "-rmse(answers, exact(data.queries, data.database))",
        "-rmse(answers, data.queries)",
        "workload|number|list|vector",
    ),
    (C, "MkChoiceMaker among {Flat, Tree}", "MkChoiceMaker among Flat, Tree"),
    (C, "MkChoiceMaker among {Flat, Tree}", 'MkChoiceMaker among {"Flat", "Tree"}'),
    (C, "MkChoiceMaker among {Flat, Tree}", "MkChoiceMaker among {Flat(data), Tree(data)}"),
    (C, "MkChoiceMaker among {Flat, Tree}", "MkChoiceMaker among {flat, hb}", "Option|option"),
    (C, "MkChoiceMaker among {Flat, Tree}", "ChoiceMaker among {Flat, Tree}"),
    (C, "MkChoiceMaker among {Flat, Tree}", "MkChoiceMaker from {Flat, Tree}"),
    (C, "informed by {rows_in}", "informed by rows_in"),
    (C, "informed by {rows_in}", "informed by {Flat}", "Feature|feature"),
    (C, "among {Flat, Tree}", "among {Flat, rows_in}", "Option|option"),
    (C, "informed by {rows_in}", 'informed by {"rows_in"}'),
    (C, "informed by {rows_in}", "informed by {size(ages)}", "Feature|feature|`ages`|number"),
    (C, "    wrt near\n", "", "wrt"),
    (C, "    trained on [{database: b, queries: prefixes(b)} for b in bumps]\n", "", "trained on"),
    (
        C,
        "trained on [{database: b, queries: prefixes(b)} for b in bumps]",
        "trained on {database: b, queries: prefixes(b)} for b in bumps",
    ),
    (
        C,
        "trained on [{database: b, queries: prefixes(b)} for b in bumps]",
        "trained on [{db: b, queries: prefixes(b)} for b in bumps]",
    ),
    (C, "wrt near", "with respect to near"),
    (C, "wrt near", "wrt {near}"),
    (C, "wrt near", 'wrt "near"'),
    (C, "wrt near", "wrt rmse", "Utility|utility"),
    (C, "spending 0.05", "spending 5%"),
    (C, "spending 0.05", "spending epsilon 0.05"),
    (C, "spending 0.05", "spending 5", "share|between|below 1"),
    (C, "spending 0.05", 'spending 0.05\n    using "tree"', "model|tree"),
    (C, "spending 0.05", 'spending 0.05\n    using tree(depth = "deep")', "number"),
    (C, "choose({database: ages, queries: prefixes(ages)})", "choose(ages, prefixes(ages))"),
    (C, "choose({database: ages, queries: prefixes(ages)})", "choose({database: ages})", "queries"),
    (C, "choose({database: ages, queries: prefixes(ages)})", "choose({db: ages, queries: prefixes(ages)})"),
    (C, "choose({database: ages, queries: prefixes(ages)})", "choose(database = ages, queries = prefixes(ages))"),
    (C, "choose({database: ages, queries: prefixes(ages)})", "choose({database: people, queries: prefixes(ages)})"),
    (C, " with epsilon 0.5", "", "epsilon"),
    (C, "choose({database: ages, queries: prefixes(ages)})", "choose.run({database: ages, queries: prefixes(ages)})"),
    (C, "print(below[19])", 'print(below["19"])', "position|number|text"),
    (C, "print(below[19])", "print(explain(below))", "choice"),
    (C, "print(below[19])", "print(below.answers)", "answers|field|list|vector"),
    (C, "laplace(size(data.database))", "size(data.database)", "private|score"),
    (C, "return log(max(1, laplace(size(data.database))))", "return laplace(data.database)", "number"),
    (
        C,
        "return log(max(1, laplace(size(data.database))))",
        "return laplace(size(data.database), 1)",
        "score|strategy|epsilon",
    ),
    (
        C,
        "return log(max(1, laplace(size(data.database))))",
        "return {{ select count(*) from data.database }}",
        "cube|values",
    ),
    (V, "by validation wrt near", "by cross validation wrt near"),
    (V, "by validation wrt near", "wrt near by validation"),
    (
        V,
        "return closeness(data.database, data.queries, answers)",
        "return closeness(data.queries, data.database, answers)",
    ),
    (
        V,
        "return closeness(data.database, data.queries, answers)",
        "return -rmse(answers, exact(data.queries, data.database))",
        "private|score|closeness",
    ),
    (V, "MkChoiceMaker among {Even, Cells} by validation", "MkChoiceMaker by validation among {Even, Cells}"),
    (V, "for i in 1..16]", "for i in 1..15]", "cells|16|15"),
]


def entries(half: str) -> list[Entry]:
    """The wrong program, the right one and the words of each of a half."""
    out = []
    for base, stands, wrong, *words in LIST:
        right = base if stands in base else base.replace("budget epsilon 1.0", stands)
        out.append((right.replace(stands, wrong, 1), right, "".join(words)))
    own = 0 if half == "sealed" else 1
    return [one for one in out if int(hashlib.sha256(one[0].encode()).hexdigest(), 16) % 2 == own]


def faults_of(text: str) -> list[Diagnostic]:
    return Session(cwd=FOLDER).check(Source("program.jst", text))


def _statement(lines: list[str], at: int) -> tuple[int, int]:
    """The lines of the statement that a line is one of: from the first to the one after the last."""
    begin, end = at, at + 1
    while begin > 0 and lines[begin][:1] in (" ", "}", ""):
        begin -= 1
    while end < len(lines) and lines[end][:1] in (" ", "}"):
        end += 1
    return begin, end


def _changed(wrong: str, right: str) -> set[int]:
    """The lines of the statements that differ."""
    lines, rows = wrong.split("\n"), set[int]()
    for tag, a, b, _, _ in difflib.SequenceMatcher(None, lines, right.split("\n"), autojunk=False).get_opcodes():
        for at in range(max(0, a - (a == b)), max(b, a + 1)) if tag != "equal" else ():
            rows.update(range(*_statement(lines, min(at, len(lines) - 1))))
    return rows


def _mended(text: str, fault: Diagnostic) -> Iterator[str]:
    """The program with what a help quotes in place of what is marked, of its line or of its statement."""
    if fault.span is None:
        return
    lines, pieces, at, last = text.split("\n"), quoted(fault.help), fault.span.line - 1, fault.span.end_line - 1
    line, start, (begin, end) = lines[at], fault.span.column - 1, _statement(lines, at)
    rest = lines[last][fault.span.end_column - 1 :]
    if fault.help.startswith(("leave", "without")):
        yield "\n".join([*lines[:at], line[:start] + rest, *lines[last + 1 :]])
        yield "\n".join([*lines[:at], *lines[at + 1 :]])
    for first in range(len(pieces)):
        for until in range(len(pieces), first, -1):
            new = [part for piece in pieces[first:until] for part in piece.split("\n")]
            yield "\n".join([*lines[:at], *new, *lines[at + 1 :]])
            yield "\n".join([*lines[:begin], *new, *lines[end:]])
        indent = " " * (len(line) - len(line.lstrip()))
        for new_line in (indent + pieces[first], f"{line} {pieces[first]}"):
            yield "\n".join([*lines[:at], new_line, *lines[at + 1 :]])
        yield "\n".join([*lines[:at], line[:start] + pieces[first] + rest, *lines[last + 1 :]])


def _followed(text: str, right: str, fault: Diagnostic, most: int) -> str:
    """The grade of what comes of following a message, and what is said then."""
    grades = set[str]()
    for new in _mended(text, fault):
        others = faults_of(new) if new != text else [fault]
        if not others:
            grades.add("top" if measured(new, FOLDER) == measured(right, FOLDER) else "misleads")
        elif most > 1 and others[0].span and (others[0].message, others[0].span.line) != (
            fault.message, fault.span and fault.span.line
        ):  # fmt: skip
            grades.add(_followed(new, right, others[0], most - 1))
        if "top" in grades:
            return "top"
    shown = shows_a_line(fault.help) and "middle" not in grades
    return "misleads" if "misleads" in grades or shown else "middle"


def told(entry: Entry) -> tuple[str, str]:
    """The grade of an entry, and what is said first."""
    wrong, right, words = entry
    faults = faults_of(wrong)
    if not faults:
        return ("right" if measured(wrong, FOLDER) == measured(right, FOLDER) else "passes"), ""
    first = faults[0]
    message = f"{first.message} | {first.help}"
    here = first.span is not None and first.span.line - 1 in _changed(wrong, right)
    if not words:
        grade = _followed(wrong, right, first, 3)
        return (grade if here or grade == "top" else "misleads"), message
    plain = re.search(words, message) is not None
    misled = shows_a_line(first.help) and not (plain and any(not faults_of(new) for new in _mended(wrong, first)))
    return ("misleads" if misled or not here else "top" if plain else "middle"), message


def table(half: str, *, shows: bool) -> None:
    counts: Counter[str] = Counter()
    for entry in entries(half):
        grade, message = told(entry)
        counts[grade] += 1
        if shows and grade not in ("top", "right"):
            lines = difflib.ndiff(entry[1].split("\n"), entry[0].split("\n"))
            print(f"{grade}: {message}", *(line for line in lines if line[0] in "+-"), sep="\n    ")
    many, wrong = counts.total() - counts["right"], counts["misleads"] + counts["passes"]
    print(f"{half}: {dict(counts)}; top {counts['top'] / many:.0%}, misleads or passes {wrong / many:.1%}")


if __name__ == "__main__":
    table(sys.argv[1] if len(sys.argv) > 1 else "mend", shows="-v" in sys.argv)
