"""`refinable`, `refine` and `refined` in programs: what they charge, answer and refuse."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from jostle.diagnostics import Refusal
from jostle.formulas import Refinements
from jostle.noise_laws import Laplace
from jostle.privacy.kernel.kernel import Kernel
from jostle.privacy.measurements.gradual import Refinement
from jostle.source import Source
from jostle.tools.session import Session

KINDS = ["a,0,Ann", "b,3,Ann", "c,1,Bob"]
TABLES = [(), (0,), (1,), (0, 1), (1, 2)]


def run(folder: Path, program: str, budget: str = "epsilon 100", unit: str = "rows") -> Session:
    session = Session(cwd=folder)
    described = 'described by {k: {"a", "b", "c"}, v: 0..3, who: text}'
    clauses = f" protecting {unit} budget {budget}" if unit else ""
    declared = f'use gradual\n{"private " if unit else ""}t = table("t.csv") {described}{clauses}\n'
    session.execute(Source("p.jst", declared + program))
    return session


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, [i % 3 for i in range(300)])
    return tmp_path


def write(folder: Path, rows: list[int]) -> None:
    (folder / "t.csv").write_text("\n".join(["k,v,who", *(KINDS[i] for i in rows)]) + "\n")


def measured(session: Session) -> list[dict[str, Any]]:
    return [{"name": event.name, **event.fields} for event in session.events if event.kind == "measure"]


def test_steps_cost_their_difference_and_have_the_noise_of_all(folder: Path) -> None:
    session = run(
        folder,
        """
n = refinable(t)
at_no_cost = spent(t)
first = refine(n) with epsilon 10
with epsilon 30: second = refine(n)
h = refinable(histogram(t, x = k))
cells = [refine(h, epsilon = 20), refine(h, epsilon = 20)]
for k, part in partition(t, k):
    last = refine(refinable(part)) with epsilon 20
paid = [n.paid, h.paid, spent(t)]
errors = [error(first), error(second), error(cells[1])[0], error(cells[1][0])]
""",
    )
    names = session.names()
    assert names["at_no_cost"] == 0 and names["paid"] == [40, 40, 100]
    assert abs(names["first"] - 300) < 5 and abs(names["second"] - 300) < 2 and abs(names["last"] - 100) < 3
    assert np.abs(np.array(names["cells"][1]) - 100).max() < 2
    laws = [Laplace(1 / e, 1.0) for e in (10, 40, 40, 40)]
    assert names["errors"] == [law.half_width() for law in laws]
    assert [(e["name"], e["epsilon"], e["scale"]) for e in measured(session)[:3]] == [
        ("size", 10, 0.1), ("size, refined", 30, 0.025), ("vector", 20, 0.05)
    ]  # fmt: skip


def test_answers_of_one_question_share_their_noise(folder: Path) -> None:
    """Two answers are not two measurements: their mean is hardly better than the better one."""
    names = run(
        folder,
        """
n = refinable(t)
a = refine(n) with epsilon 0.1
alone = standard_error(a)
b = refine(n) with epsilon 0.1
both = [standard_error(a), standard_error(b), standard_error((a + b) / 2), standard_error(a - b)]
h = refinable(histogram(t, x = k))
c = refine(h) with epsilon 0.1
d = refine(h) with epsilon 0.1
cells = [standard_error((c + d) / 2)[1], standard_error((c[1] + d[1]) / 2), standard_error(c[1] + d[2])]
""",
    ).names()
    coarse, fine = Laplace(10.0, 1.0).deviation, Laplace(5.0, 1.0).deviation
    lost = np.sqrt(coarse**2 - fine**2)
    mean = np.sqrt(fine**2 + lost**2 / 4)
    assert names["alone"] == coarse and names["both"] == pytest.approx([coarse, fine, mean, lost])
    assert names["cells"] == pytest.approx([mean, mean, np.hypot(coarse, fine)], rel=0.03)


def test_a_loop_stops_at_the_first_answer_that_is_good_enough(folder: Path) -> None:
    names = run(
        folder,
        """
n = refinable(t)
def near(a) = error(a) < 0.01 * a
good = refined(n, near) with epsilon 50
price = n.paid
rough = refined(refinable(t), lambda a: false, steps = 3, growth = 2) with epsilon 1
asked = spent(t)
public = refined(refinable([4, 5][1]), lambda a: a > 5) with epsilon 1
""",
    ).names()
    assert 0.8 < names["price"] < 2 and abs(names["good"] - 300) < 30
    assert names["asked"] == pytest.approx(names["price"] + 1) and names["public"] == 5


def test_public_data_are_exact(folder: Path) -> None:
    names = run(folder, """
a = refine(refinable(t))
b = refine(refinable(histogram(t, k)))
c = refined(refinable(size(t)), lambda a: a < 0) with epsilon 1
d = [sum_of(t, v), refine(refinable(sum_of(t, v > 2)))]
""", unit="").names()  # fmt: skip
    assert names["d"] == [400, 100] and names["a"] == names["c"] == 300 and names["b"].tolist() == [100] * 3


REFUSED = {
    "rho": ("rho 1", "n = refinable(t)", "TypeError", "`t` has a budget of rho 1"),
    "delta": ("epsilon 1, delta 0.001", "n = refinable(t)", "TypeError", "a budget of epsilon 1, delta 0.001"),
    "plain sums": ("epsilon 1, delta 0.001 counted by basic", "n = refinable(t)", "TypeError", "in plain epsilon"),
    "a text": ("epsilon 1", 'n = refinable("t")', "TypeError", "not a text"),
    "no steps": ("epsilon 1", "x = refine(t) with epsilon 1", "TypeError", "`refine` takes what is refinable"),
    "a vector of scores": (
        "epsilon 1", 'use row_vectors\nn = refinable(coordinate_scores(vectors(t, v), "coordinates"))', "TypeError",
        "can only be selected from",
    ),
    "a sum of texts": ("epsilon 1", "n = sum_of(t, who)", "UnboundedSum", "no known bound"),
    "a sum of nothing": ("epsilon 1", "n = sum_of(t)", "TypeError", "what is added of each row"),
    "a sum of a cube": ("epsilon 1", "n = sum_of(histogram(t, k), v)", "TypeError", "takes a table"),
    "no amount": ("epsilon 1", "x = refine(refinable(t))", "NoEpsilon", "nothing pays"),
    "too little": (
        "epsilon 1", "use features\nx = refine(refinable(l2(histogram(t, k)))) with epsilon 0.000000000001",
        "BadAmount", "whole numbers",
    ),
    "too much": (
        "epsilon 1", "n = refinable(t)\nx = refine(n) with epsilon 0.6\ny = refine(n) with epsilon 0.6",
        "BudgetExceeded", "",
    ),
    "the handle": ("epsilon 1", "print(refinable(t))", "PrivateValue", ""),
    "a decision": ("epsilon 1", "if refinable(t) > 5: x = 1", "PrivateValue", ""),
    "a share": (
        "epsilon 1", "x = refined(refinable(t), lambda a: true, growth = 1) with epsilon 1", "AssertionFailed", "",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(folder: Path, name: str) -> None:
    budget, program, kind, message = REFUSED[name]
    with pytest.raises(Refusal) as refused:
        run(folder, program, budget)
    assert refused.value.first.kind == kind and message in refused.value.first.message


QUESTIONS = """
use features
small = refinable(where(t, v > 0))
twice = refinable(union(t, derive(t, v = 3 - v)))
uneven = refinable(l1_to_uniform(histogram(t, x = v)))
joined = refinable(histogram(union(t, t), x = k, y = v))
shown = [small, twice, uneven, joined]
"""
EVERYWHERE = """
sums = [
    sum_of(t, v), sum_of(t, 1 - v), sum_of(t, v * v / 7), sum_of(t, -sqrt(v)), sum_of(t, v > 1),
    sum_of(t, clamp(length(who) / 3, -1, 2)),
]
for q in [refinable(t), refinable(histogram(t, x = k))] + [refinable(s) for s in sums] + shown:
    x = refine(q) with epsilon 1
"""
UNITS = {"rows, public size": QUESTIONS, "who up to 2 rows": QUESTIONS, "who up to 2 rows weighted": "shown = []\n"}


@pytest.mark.slow(but=["rows, public size"])
@pytest.mark.parametrize("unit", UNITS)
def test_neighbours_differ_by_no_more_than_what_noise_is_scaled_to(tmp_path: Path, unit: str) -> None:
    """Small tables and all of their neighbours: what a step reads, and the scale of what it draws."""

    def reads(rows: tuple[int, ...]) -> list[tuple[Refinement, np.ndarray]]:
        write(tmp_path, list(rows))
        seen: list[tuple[Refinement, np.ndarray]] = []
        measure = Kernel.measure

        def catching(kernel: Kernel, measurement: Any, span: Any = None) -> Any:
            if isinstance(measurement, Refinement):
                seen.append((measurement, measurement.read(kernel._reader).exact.ravel().copy()))
            return measure(kernel, measurement, span)

        with patch.object(Kernel, "measure", catching):
            run(tmp_path, UNITS[unit] + EVERYWHERE, unit=unit)
        return seen

    found = {table: reads(table) for table in TABLES}
    tight = 0
    for one, other in itertools.combinations(TABLES, 2):
        if not neighbours(one, other, unit):
            continue
        for (step, here), (_, there) in zip(found[one], found[other], strict=True):
            moved, base = int(np.abs(here - there).sum()), step.refinable.base
            assert moved <= step._scale  # at epsilon 1
            tight += moved == step._scale
            if len(one) < len(other) and getattr(base, "monotone", False):
                assert (there - here)[0] * (-1 if base.falls else 1) >= 0
    assert tight


def neighbours(one: tuple[int, ...], other: tuple[int, ...], unit: str) -> bool:
    gone, new = (list((Counter(a) - Counter(b)).elements()) for a, b in ((one, other), (other, one)))
    if unit == "rows, public size":
        return len(gone) == len(new) == 1
    person, rest = {KINDS[i][-3:] for i in gone + new}, {KINDS[i][-3:] for i in min(one, other, key=len)}
    return not (gone and new) and len(person) == 1 and not person & rest


def test_what_a_loop_can_cost_is_known_before_it_runs(folder: Path) -> None:
    program = """
use gradual
private t = table("t.csv") described by {v: 0..3} protecting rows budget epsilon 1
n = refinable(t)
a = refine(n) with epsilon 0.1
for more in [0.1, 0.2]:
    if error(a) > 5: a = refine(n) with epsilon more
b = refined(refinable(sum_of(t, v)), lambda s: s > 9) with epsilon 0.5
"""
    (cost,) = Session(cwd=folder).costs(Source("p.jst", program))
    assert str(cost) == "at most epsilon 0.9 of 1"


def test_a_next_step_reads_nothing(folder: Path) -> None:
    session = run(folder, "n = refinable(t)\na = refine(n) with epsilon 1\n")
    (folder / "t.csv").unlink()
    session.execute(Source("q.jst", "b = refine(n) with epsilon 1\n"))
    kept = session._interp.kernel._reader.steps[session.names()["n"].state]
    assert session.names()["n"].paid == 2 and int(kept.exact[0]) == 300


def test_a_step_that_fails_is_taken_once(folder: Path) -> None:
    """What fails after its draws has no answer: the draws before it leave no finer noise behind."""
    session = run(folder, "")
    with (
        patch.object(Refinements, "append", side_effect=[MemoryError, None], autospec=True),
        pytest.raises(Refusal, match="failed after the charge"),
    ):
        session.execute(Source("q.jst", "m = refinable(histogram(t, k))\n"))
        session.execute(Source("q.jst", "a = refine(m) with epsilon 0.5\n"))
    (kept,) = session._interp.kernel._reader.steps.values()
    assert session.names()["m"].paid == 0 and kept.sealed is None


def test_a_step_is_refused_in_training_and_in_another_process(folder: Path) -> None:
    """What a first step read is kept: the door refuses a next one as it refuses any measurement."""
    session = run(folder, "use workloads\nn = refinable(t)\na = refine(n) with epsilon 1\n")
    chosen = """
Peek = Option (data) { return answer(data.queries, [refine(n, epsilon = 0.1) for i in 1..3]) }
near = Utility (data, answers) { return -rmse(answers, exact(data.queries, data.database)) }
Zero = Option (data) { return answer(data.queries, [0, 0, 0]) }
choose = MkChoiceMaker among {Peek, Zero} informed by {} trained on { counts([1, 2, 3]) } wrt near
x = choose(counts([1, 2, 3])) with epsilon 1
"""
    with pytest.raises(Refusal, match="training reaches the private source"):
        session.execute(Source("q.jst", chosen))
    session._interp.kernel.register._process += 1
    with pytest.raises(Refusal, match="in another process than its own"):
        session.execute(Source("q.jst", "b = refine(n) with epsilon 1\n"))
    assert session.names()["n"].paid == 1
