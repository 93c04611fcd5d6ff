"""Training as a way to private data: whatever a program holds, and whoever paid for it, measures nothing there.

A training worker is a fork of the whole session, with every handle, balance and cached row in it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jostle.accounting.amounts import Amount
from jostle.diagnostics import Refusal
from jostle.kernels.rowprograms import CONTRIBUTIONS
from jostle.privacy.kernel.prepaid import Prepayment
from jostle.privacy.measurements.choices import NoisyArgmax, NoisyScore
from jostle.privacy.measurements.vectors import VectorSum
from jostle.privacy.scores import cells
from jostle.source import Source
from jostle.tools.session import Session

HELD = """
private t = bound("t") described by {age: 0..9, sex: {"F", "M"}, city: text} protecting rows budget epsilon 9, delta 0.1
private c = counts([5, 6, 7]) protecting rows budget epsilon 9
private f = bound("f") described by {age: 0..9} protecting rows, public size budget epsilon 9
h = histogram(t, age)
v = vectors(t, age)
p = prepaid(v) with epsilon 1
parts = partition(t, sex)
agent = limited(t, 0.5)
s = size(h)
warm = noisy_sum(v, "coordinates", {}, paid = p, part = 0.001)
cells = laplace(h) with epsilon 0.1
inner = lambda data: laplace(size(data), epsilon = 0.1)
"""

EXPRESSIONS = (
    'noisy_sum(v, "coordinates", {}, paid = p, part = 0.1).sum[0]',
    'noisy_sum(v, "coordinates", {}, paid = p, part = p.left).sum[0]',
    'noisy_moments(v, paid = p, part = 0.1).count[0]',
    'noisy_sum(v, "coordinates", {}, epsilon = 0.1).sum[0]',
    'noisy_moments(v, epsilon = 0.1).count[0]',
    '(prepaid(v) with epsilon 0.1).left',
    '{{ select count(*) from t with epsilon 0.1 }}',
    '{{ select median(age) from t with epsilon 0.1 }}',
    '{{ select count(*) from agent with epsilon 0.1 }}',
    '{{ select count(*) from parts[0][1] with epsilon 0.1 }}',
    '{{ select max(age) from t with epsilon 0.1 }}',
    '{{ select count(*) from f }}',
    'len({{ select count(*) as n from t groupby city with epsilon 0.1 delta 0.0001 }})',
    'laplace(h, epsilon = 0.1)[0]',
    'laplace([h], epsilon = 0.1)[0][0]',
    'laplace(s, epsilon = 0.1)',
    'laplace(size(c), epsilon = 0.1)',
    'exp_mech({1, 2}, [s, s], epsilon = 0.1)',
    'noisy_max([size(h), largest_cell(h)], epsilon = 0.1)',
    'noisy_max(coordinate_scores(v, "coordinates"), epsilon = 0.1)',
    'least_cost_partition(h, epsilon = 0.1)[0]',
    'count_partition(h, epsilon = 0.1)[0]',
    'noisy_samples([h], steps = 2, epsilon = 0.1, delta = 0.0001).rate',
    'inner(c)',
)  # fmt: skip


def opened(folder: Path) -> tuple[Session, object]:
    """A session that has declared, paid and measured, and its budgets."""
    n = np.arange(60)
    session = Session(cwd=folder)
    session.bind("t", {"age": n % 10, "sex": np.where(n % 2, "F", "M"), "city": np.full(60, "Ames")})
    session.bind("f", {"age": n % 10})
    session.execute(Source("before.jst", HELD))
    return session, session.budget()


PLACES = {
    "an Option": ("return {} + 0 * laplace(size(data.database))", "return 1", "return 1"),
    "a Feature": ("return 1", "return {}", "return 1"),
    "a Utility": ("return 1", "return 1", "return {}"),
}


@pytest.mark.attack("training as a way to private data")
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_nothing_private_is_measured_while_training(tmp_path: Path, place: str, expression: str) -> None:
    session, before = opened(tmp_path)
    option, feature, utility = (body.replace("{}", expression) for body in PLACES[place])
    program = f"""
A = Option (data) {{ {option} }}
B = Option (data) {{ return 2 }}
many = Feature (data) {{ {feature} }}
close = Utility (data, answers) {{ {utility} }}
learnt = {{ {{database: counts([k, 2 * k, 5])}} for k in [1, 4, 20] }}
choose = MkChoiceMaker among {{A, B}} informed by {{many}} trained on learnt spending 0.3 wrt close
runs = choose.runs(epsilon = 0.5)
print(runs[0].utility)
"""
    with pytest.raises(Refusal) as refused:
        session.execute(Source("p.jst", program))
    assert refused.value.diagnostics[0].kind == "PrivateValue", str(refused.value)
    assert session.budget() == before
    session.execute(Source("p.jst", f"def measured():\n    return {expression}\nx = measured()\n"))  # outside it may


def in_a_fork(action: Callable[[], object]) -> str:
    """What kind of refusal an action ends with in a forked process; "went through" where it does not."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        end = "failed"
        try:
            action()
            end = "went through"
        except Refusal as refusal:
            end = refusal.diagnostics[0].kind
        finally:
            os.write(write, end.encode())
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        end = pipe.read()
    os.waitpid(child, 0)
    return end


@pytest.mark.attack("training as a way to private data")
def test_a_forked_kernel_spends_nothing(tmp_path: Path) -> None:
    session, _ = opened(tmp_path)
    names, kernel = session.names(), session._interp.kernel
    rows, cube, source = names["v"], names["h"], names["c"].exposures[0].source
    amount = Amount("epsilon", 10**11)
    given = CONTRIBUTIONS["coordinates"](len(rows.names))
    paid = kernel.measure(Prepayment.of(rows, amount, "laplace"))

    def noisy_sum(part: float) -> Any:
        return kernel.measure(VectorSum.of(rows, given, 1.0, "l2", paid, part))

    actions: dict[str, Callable[[], object]] = {
        "a charge": lambda: kernel.measure(Prepayment.of(rows, amount, "laplace")),
        "a prepaid sum": lambda: noisy_sum(0.5),
        "a selection": lambda: kernel.measure(NoisyArgmax.of([cells.size(cube), cells.largest_cell(cube)], amount)),
        "an answer given before": lambda: kernel.charge_again(cube.exposures, amount, "select", None),
        "exact cells": lambda: kernel._reader.cells(cube),
        "exact cells of several": lambda: kernel._reader.all_units([cube, cube]),
        "a count of rows": lambda: kernel.measure(NoisyScore.of(cells.size(rows), amount, None)),
    }
    for name, action in actions.items():
        assert in_a_fork(action) == "PrivateValue", name
    assert source.measure.spent(source.meter.spent)["epsilon"] == 0
    assert kernel.share_left(paid) == 1 and names["p"].jostle_fields["left"] == pytest.approx(0.999, abs=1e-9)
    told = noisy_sum(1.0)  # here it may, and once
    assert told["noise"] > 0 and np.isfinite(told["sum"]).all() and kernel.share_left(paid) == 0
    with pytest.raises(Refusal, match="is left of what was paid"):
        noisy_sum(1e-6)


def test_exact_sums_are_of_public_rows_only(tmp_path: Path) -> None:
    session, _ = opened(tmp_path)
    rows = session.names()["v"]
    with pytest.raises(Refusal, match="says no epsilon"):
        VectorSum.of(rows, CONTRIBUTIONS["coordinates"](len(rows.names)), 1.0, "l2", None, 1.0)
