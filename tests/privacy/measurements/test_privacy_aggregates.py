"""Brute force over every aggregate of the registry, and what their files say.

Calls are made of how the language writes an aggregate, so that one that is added is tried as it comes; a public number
that this test does not know fails it.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path

import pytest
from recording import Bench, Record, worst_losses

from docs.reference import aggregates_table
from jostle.language import aggregates as language
from jostle.language.aggregates import AggregateRow, Kinds
from jostle.plan.facts import FACTS
from jostle.plan.plan import Column, Integer, Scan
from jostle.privacy.kernel.handles import Table
from jostle.privacy.measurements.aggregates import aggregate as terms
from jostle.privacy.measurements.aggregates.aggregate import AdditiveAggregate
from jostle.records import replace
from jostle.run import select_forms

ROOT = Path(__file__).resolve().parents[3]
ROWS = {row.name: row for row in (*language.AGGREGATES.values(), *language.DISTINCT.values())}
KINDS = (("-1", "0.3", "x"), ("7", "-0.71", "neither"), ("0", "", "y"), ("1", "2.5", "x"))
"""Rows inside and outside their domains, and with a missing cell."""
OTHERS = [("Ann", "2", "0.1", "x"), ("Ann", "2", "0.1", "x"), ("Bob", "0", "", "x"), ("", "2", "1", "y")]
SCHEMA = 'table("t.csv") described by {who: text, v: -1..2, r: -0.7..2.0, c: {"x", "y"}}'
UNITS = ("rows", "rows, public size", "who up to 2 rows", "who up to 2 rows weighted")
NUMBERS = {"q": "0.3"}
"""What is tried for each public number that an aggregate takes."""

Rows = list[tuple[str, ...]]


def calls(row: AggregateRow) -> Iterator[str]:
    """Every way to call an aggregate, of a whole and of a real expression, and of any kind a text."""
    columns = "vc" if row.name == "mode" else "vrc" if row.kinds is Kinds.ANY else "vr"
    for function, listed in re.findall(r"(\w+)\(([^)]*)\)", row.usage):
        parameters = listed.split(", ")
        for i in range(len(columns)) if listed != "*" else (0,):
            expressions = itertools.cycle(columns[i:] + columns[:i])
            arguments = [
                p if p == "*" else NUMBERS[p] if p.islower() else p[:-1] + next(expressions) for p in parameters
            ]
            yield f"{function}({', '.join(arguments)})"


def program(names: Iterable[str], unit: str) -> str:
    """A select of each call, undivided, and in groups under a condition."""
    queries = [
        f"x = {{{{ select {call} from t{rest} with epsilon 1 }}}}"
        for name in names for call in calls(ROWS[name]) for rest in ("", " where r > 0 groupby c")
    ]  # fmt: skip
    return "\n".join([f"private t = {SCHEMA} protecting {unit} budget epsilon 1000", *queries])


def neighbours(unit: str) -> Iterator[tuple[Rows, Rows]]:
    """Pairs of contents that differ in one unit: a row more, a row replaced, or all rows of a person."""
    rows = [("Cem", *kind) for kind in KINDS]
    if unit.startswith("who"):
        mine = [list(c) for n in (1, 2, 3) for c in itertools.combinations(rows, n)]
        yield from ((OTHERS, [*OTHERS, *some]) for some in mine)
        yield from (([], some) for some in mine if len(some) == 2)
    elif "public size" in unit:
        yield from (([a, b], [a, c]) for a in rows for b, c in itertools.combinations(rows, 2))
    else:
        yield from ((old, [*old, new]) for old in ([], *([row] for row in rows)) for new in rows)


def worst(bench: Bench, names: Iterable[str], unit: str) -> dict[str, float]:
    """The largest part of its charge that some neighbour loses, by aggregate; never more than the charge."""
    text, records, parts = program(names, unit), {}, {}

    def run(rows: Rows) -> Record:
        if tuple(rows) not in records:
            bench.table(rows, ("who", "v", "r", "c"))
            records[tuple(rows)] = bench.run(text)
        return records[tuple(rows)]

    for one, other in neighbours(unit):
        for name, lost, charged in worst_losses(run(one), run(other)):
            assert lost <= charged * (1 + 1e-9), (name, one, other)
            parts[name] = max(parts.get(name, 0.0), lost / charged)
    return parts


@pytest.mark.slow(but=["rows"])
@pytest.mark.parametrize("unit", UNITS)
def test_no_neighbour_loses_more_than_is_charged(bench: Bench, unit: str) -> None:
    parts = worst(bench, ROWS, unit)
    assert parts.keys() == ROWS.keys()
    for name, part in parts.items():
        tight = unit == "rows" and issubclass(select_forms.CLASSES[name], AdditiveAggregate)
        assert part > (0.99 if tight else 0), f"{name} has more noise than it needs, or nothing is compared"


def test_it_would_see_half_the_noise(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    half = terms.sensitivity_of
    monkeypatch.setattr(terms, "sensitivity_of", lambda term, table: -(-half(term, table) // 2))
    with pytest.raises(AssertionError, match="covariance"):
        worst(bench, ["covariance"], "rows")


def test_a_row_without_its_class_cannot_be_imported() -> None:
    for name in ("unheard_of", "pair"):  # no class, and a class that is no aggregate
        with pytest.raises(ImportError):
            select_forms._class_of(AggregateRow(name, f"{name}(E)", ""))


@pytest.mark.parametrize("call", ["sum(c)", "avg(c)", "median(c)", "max(c)", "covariance(v, c)", "bounds(c)"])
def test_a_wrong_row_of_the_table_measures_no_text(bench: Bench, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    """The table of aggregates is for people and programs: the class refuses what cannot be added or ordered."""
    name = call.partition("(")[0]
    monkeypatch.setitem(language.AGGREGATES, name, replace(ROWS[name], kinds=Kinds.ANY, bounded=False))
    bench.table(OTHERS, ("who", "v", "r", "c"))
    query = f"x = {{{{ select {call} from t with epsilon 1 }}}}"
    result = bench.attempt(f"private t = {SCHEMA} protecting rows budget epsilon 9\n{query}")
    assert [fault.message for fault in result.diagnostics] == [f"`{name}` takes a number, and this is a text"]
    assert result.budget["t"]["epsilon"]["spent"] == "0"


def test_a_class_with_a_method_missing_cannot_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    module = import_module("jostle.privacy.measurements.aggregates.sums")
    monkeypatch.setattr(module.Sum, "__abstractmethods__", frozenset({"terms"}))
    with pytest.raises(ImportError, match="complete"):
        select_forms._class_of(ROWS["sum"])


@pytest.mark.parametrize("name", ROWS)
def test_what_needs_bounds_is_refused_without(name: str) -> None:
    """The table says so to the check before the run, and the class to the run."""
    row = ROWS[name]
    table = Table((), Scan("t", (("x", Integer(0, 9)),)), (("x", Integer(0, 9)),), facts=FACTS)
    aggregate = select_forms.CLASSES[name]((Column("x"),) * row.expressions, (0.5,) * row.numbers)
    aggregate.check(table)
    aggregate.check_private(table)
    assert aggregate.statistics() and aggregate.name == name
    assert row.bounded == (isinstance(aggregate, AdditiveAggregate) and row.kinds is not Kinds.ANY)


def test_the_page_says_what_the_files_say() -> None:
    """Line by line; the site is built with the files' own lines (`docs/reference.py`)."""
    page = (ROOT / "docs" / "privacy" / "aggregates.md").read_text(encoding="utf-8")
    table = re.search(r"^\| aggregate \| what.*?\n(?=\n)", page, re.MULTILINE | re.DOTALL)
    assert table is not None
    lines, own = table[0].splitlines(), aggregates_table().splitlines()
    assert [line for line in lines if line not in own] == []
    assert len(lines) > 10 and len(own) == len(ROWS) + 2
