"""Answers of one measurement: what a row moves them by, over generated blocks, and what a wrong share would show."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from changed_rows import Tables
from recording import Bench, worst_losses

from jostle.accounting.amounts import QUANTA, Amount
from jostle.diagnostics import Refusal
from jostle.plan.plan import Column, Count, FixedSum, Integer, Key
from jostle.privacy.measurements.joint import Block, JointBlocks, KeyAxis

ROWS = [(5, "A", "F"), (7, "B", "M"), (12, "C", "F"), (12, "A", "M"), (19, "B", "F")]
MORE = [(5, "A", "F"), (19, "B", "M"), (12, "C", "")]
HEADER = ["v", "town", "sex"]
SCHEMA = 'v: 0..19, town: {"A", "B", "C"}, sex: {"F", "M"}'
TERMS = ["count(*)", "sum(v)", "avg(v)", "count(v)", "sum(v / 7)", "count(*), sum(v)"]
KEYS = ["", "town", "sex", "v / 5", "town, sex", "v / 5, sex", "v / 10, v / 5", 'town == "A", sex', "sex, town, v / 10"]
WHERE = ["", 'where town == "A"', "where v > 9", 'where sex == "F" and v < 15', "where v > 4 and town != sex"]


def generated(rng: random.Random) -> str:
    """The body of a block."""

    def select() -> str:
        key = rng.choice(KEYS)
        keys = ", ".join(f"{part} as k{i}" for i, part in enumerate(key.split(", "))) if key else ""
        table = rng.choice(["t", "t", "derive(t, w = v + 1)", 't[town = "B"]', "where(t, v != 3)"])
        grouped = f"groupby {keys}" if keys else ""
        return f"{{{{ select {rng.choice(TERMS)} from {table} {rng.choice(WHERE)} {grouped} }}}}"

    return "\n".join(f"    a{i} = {select()}" for i in range(rng.randrange(1, 6)))


def program(body: str, amount: str, budget: str, clause: str = "rows") -> str:
    source = f'private t = table("t.csv") described by {{{SCHEMA}}} protecting {clause} budget {budget}\n'
    return f"{source}jointly with {amount} {{\n{body}\n}}\n"


def largest_loss(bench: Bench, text: str) -> tuple[float, float]:
    """The most that a row more shows of a base, over several rows, and what was charged: for ε or ρ."""
    bench.table(ROWS, HEADER)
    base, most, charged = bench.run(text), 0.0, 0.0
    for row in MORE:
        bench.table([*ROWS, row], HEADER)
        ((_, lost, charged),) = worst_losses(base, bench.run(text))
        most = max(most, lost)
    return most, charged


@pytest.mark.slow(but=["rho 0.5-rho 0.5"])
@pytest.mark.parametrize(("amount", "budget"), [("epsilon 1", "epsilon 1"), ("rho 0.5", "rho 0.5")])
def test_a_row_shows_what_is_charged_at_most(bench: Bench, amount: str, budget: str) -> None:
    rng, seen = random.Random(3), []
    for _ in range(5):
        most, charged = largest_loss(bench, program(generated(rng), amount, budget))
        assert most <= charged * (1 + 1e-9)
        seen.append(most / charged)
    assert max(seen) > 0.99 and min(seen) > 0.5  # what is charged is used


@pytest.mark.parametrize("amount", ["epsilon 1", "rho 0.5"])
def test_a_row_shows_no_more_by_the_columns_of_public_rows(bench: Bench, amount: str) -> None:
    """A hierarchy of parts and towns, from a list that is joined; a row without a town has no partner there."""
    keys = ["part", "town", "town, sex", "part, v / 10"]
    groups = [f"groupby {', '.join(f'{key} as k{i}' for i, key in enumerate(one.split(', ')))}" for one in keys]
    body = "".join(f"    a{i} = {{{{ select count(*) from t join p on town where v > 4 or part == \"x\" {by} }}}}\n"
                   for i, by in enumerate(["", *groups]))  # fmt: skip
    public = 'p = table([{town: "A", part: "x"}, {town: "B", part: "x"}, {town: "C", part: "y"}])\n'
    most, charged = largest_loss(bench, public + program(body, amount, amount))
    assert 0.5 * charged < most <= charged * (1 + 1e-9)


def test_two_rows_of_a_person_show_no_more(bench: Bench) -> None:
    text = program("    a = {{ select count(*) from t groupby sex }}\n    b = {{ select sum(v) from t }}", "rho 0.5",
                   "rho 0.5", "town up to 2 rows")  # fmt: skip
    bench.table(ROWS[1:2], HEADER)
    base = bench.run(text)
    bench.table([*ROWS[1:2], (19, "C", "F"), (19, "C", "F")], HEADER)
    ((_, lost, charged),) = worst_losses(base, bench.run(text))
    assert 0.5 * charged < lost <= charged * (1 + 1e-9)


MUTANTS: dict[str, tuple[str, Callable[[Block, float], float]]] = {
    "every block has the whole amount": ("epsilon 1", lambda block, share: 1.0),
    "Laplace noise at the root of a share": ("epsilon 1", lambda block, share: share**0.5),
    "residuals at half their cost": ("rho 0.5", lambda block, share: share * (4 if block.residual else 1)),
}


@pytest.mark.slow(but=["residuals at half their cost"])
@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_wrong_share_is_seen(bench: Bench, monkeypatch: pytest.MonkeyPatch, mutant: str) -> None:
    """What this page tests by would tell a mechanism that is wrong."""
    (amount, wrong), vector = MUTANTS[mutant], JointBlocks.vector
    body = "    a = {{ select count(*) from t groupby town }}\n    b = {{ select count(*) from t groupby sex }}"
    monkeypatch.setattr(JointBlocks, "vector", lambda t, axes, b, how, share: vector(t, axes, b, how, wrong(b, share)))
    most, charged = largest_loss(bench, program(body, amount, amount))
    assert most > charged * 1.2


# The measurement by itself ---------------------------------------------------------------------------


def trees() -> Iterator[KeyAxis]:
    key = Key(Column("v"), tuple(range(5)))
    yield KeyAxis(key, True, ((0, 0, 1, 1, 1), (0, 1, 2, 3, 3), (0, 1, 2, 3, 4)))
    yield KeyAxis(Key(Column("v"), tuple(range(4))), False, ((0, 0, 0, 1, 1), (0, 1, 2, 3, 4)))


def test_residuals_of_uneven_trees_cost_what_is_said() -> None:
    """Against unit vectors: a row's column in units of the noise of each number, by brute force."""
    axes = tuple(trees())
    for levels in itertools.chain.from_iterable([[((0, i),), ((0, i), (1, j))] for i in (1, 2, 3) for j in (1, 2)]):
        block = Block(Count(), levels, True, 1.0)
        bare = object.__new__(JointBlocks)
        for name, value in (("axes", axes), ("blocks", (block,))):
            object.__setattr__(bare, name, value)
        shape, most = [axes[axis].cells for axis, _ in levels], 0.0
        for cell in itertools.product(*map(range, shape)):
            cells = np.zeros(shape, dtype=np.int64)
            cells[cell] = 1
            moved = bare._exact(block, cells) / bare.widths()[0]
            most = max(most, float((moved**2).sum()))
        cost = np.prod([(1 - 1 / axes[axis].families[level - 1][1]).max() for axis, level in levels])
        assert most == pytest.approx(cost)


def test_a_measurement_refuses_what_it_has_no_argument_for(tables: Tables) -> None:
    with pytest.raises(Refusal):  # levels that do not divide one another
        KeyAxis(Key(Column("v"), (0, 1, 2)), True, ((0, 0, 1), (0, 1, 1)))
    with pytest.raises(Refusal):  # too few labels
        KeyAxis(Key(Column("v"), (0, 1, 2)), False, ((0, 1, 2),))
    with pytest.raises(Refusal):  # a gap
        KeyAxis(Key(Column("v"), (0, 1)), True, ((0, 2),))
    table = tables.table([(1,)], (("v", Integer(0, 3)),), "t")
    axis = KeyAxis(Key(Column("v"), tuple(range(4))), True, ((0, 1, 2, 3),))
    amount = Amount("epsilon", QUANTA)
    for block in (
        Block(Count(), ((0, 1),), False, 0.0),
        Block(Count(), ((0, 1),), True, 1.0),  # residuals under Laplace noise
        Block(Count(Column("v"), True), ((0, 1),), False, 1.0),  # of which a row moves its group and the rest
    ):
        with pytest.raises(Refusal):
            JointBlocks.of(table, [axis], [block], amount, None)
    with pytest.raises(Refusal):  # residuals that may overflow
        wide = Block(FixedSum(Column("v"), 0.0, 2.0**40, 0), ((0, 1),), True, 1.0)
        JointBlocks.of(table, [axis], [wide], Amount("rho", QUANTA), None)
