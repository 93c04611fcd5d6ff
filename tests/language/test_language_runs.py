"""Runs until a budget: no round is refused for its price, whatever rounds ask, and none is left out that would fit."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from jostle.source import Source
from jostle.tools.session import Session

DATA = Path(__file__).parent / "data"
BUDGETS = {
    "pure": ("epsilon 1", "epsilon", ""),
    "rho": ("rho 1", "rho", ""),
    "approximate": ("epsilon 1, delta 1e-5", "epsilon", " delta 2e-7"),
    "basic": ("epsilon 1, delta 1e-5 counted by basic", "epsilon", " delta 2e-7"),
}


def asked(rng: random.Random, unit: str, delta: str) -> str:
    """A block that spends all of its allotment or a part, by measurements of several kinds, on parts or the whole."""
    lines, parts = [], rng.randrange(1, 4)
    for i in range(parts):
        with_delta = rng.random() < 0.5
        amount = f"{unit} {unit} / {parts - i}" if rng.random() < 0.7 else f"{unit} {unit} / 3"
        spend = f"with {amount}{' delta 2e-8' if delta and with_delta else ''}"
        select = rng.choice(["count(*) from t", "sum(age) from t", "count(*) from t where age > 40"])
        if rng.random() < 0.3:
            lines.append(f"for k, p in partition(t, city): a = {{{{ select count(*) from p {spend} }}}}")
        else:
            lines.append(f"a = {{{{ select {select} {spend} }}}}")
    return "\n".join(f"    {line}" for line in lines)


@pytest.mark.parametrize("kind", BUDGETS)
def test_no_round_is_refused_and_none_is_left_out(kind: str) -> None:
    budget, unit, delta = BUDGETS[kind]
    rng = random.Random(5)
    for _ in range(4):
        each = rng.choice([0.22, 0.4])
        protecting = rng.choice(["rows", "person up to 3 rows"])
        text = "\n".join([
            'private t = table("people.csv") described by {person: text, age: 0..99, city: {"Ames", "Bergen", "Cork"}}',
            f"    protecting {protecting} budget {budget}",
            "rounds = 0",
            f"run with {unit} {each}{delta} until budget of t:",
            "    rounds = rounds + 1",
            asked(rng, unit, delta),
        ])  # fmt: skip
        session = Session(cwd=DATA)
        session.execute(Source("run", text))
        closed = kind == "approximate" and protecting != "rows"  # Gaussian noise on parts of persons has no plain sum
        assert session.names()["rounds"] >= (1 if closed else 1 // each)
        told = session.budget()["t"][unit]
        if kind in ("pure", "rho"):
            assert float(told["total"]) - float(told["spent"]) < each
