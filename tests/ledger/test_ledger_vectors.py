"""Noisy vectors and weighted units of registered datasets, and a session that names its ledger."""

from __future__ import annotations

import subprocess
import sys
from decimal import Decimal

import pytest
from ledger_place import DATASET, Place

from jostle.privacy.ledger.ledger import Ledger


def spent(place: Place, name: str = "people") -> str:
    from jostle.tools.data import spent

    return spent(Ledger(place.path).dataset(name))


VECTORS = DATASET + (
    "h = histogram(people, x = age, y = sex)\na = laplace(h) with epsilon 0.25\n"
    'boxes = [{kind: "boxes", lows: [[0, 0]], highs: [[9, 1]], weight: 0.5}]\n'
    "b = laplace(h, boxes) with epsilon 0.25\nc = laplace(h[y = 0]) with epsilon 0.25\n"
    "release a\nrelease b = b.answers\nrelease c\nrelease d = error(a)\n"
)


def test_a_noisy_vector_is_given_again_free(owned: Place) -> None:
    first, second = owned.run(VECTORS), owned.run(VECTORS)
    assert first.ok and second.ok, second.diagnostics
    assert first.released_json() == second.released_json()
    assert spent(owned) == "epsilon 0.75"
    told = [e.fields.get("replayed") for e in second.events if e.name == "vector"]
    assert told == [True] * 3 and not [e for e in second.events if e.kind == "measure"]
    receipts = [[e.fields["ledger"] for e in run.events if e.kind == "run"] for run in (first, second)]
    assert receipts[0] == receipts[1]


@pytest.mark.parametrize(("what", "other"), [("0.5}", "0.25}"), ("x = age", "x = age / 2"), ("[y = 0]", "[y = 1]")])
def test_another_vector_is_paid(owned: Place, what: str, other: str) -> None:
    assert owned.run(VECTORS).ok and what in VECTORS
    assert owned.run(VECTORS.replace(what, other)).ok
    assert Decimal(spent(owned).split()[1]) > Decimal("0.75")


def test_a_vector_asked_twice_in_one_run_is_two_draws(owned: Place) -> None:
    twice = DATASET + "h = histogram(people, x = age)\nrelease v = [laplace(h) with epsilon 0.01 for i in 1..2]\n"
    first, second = owned.run(twice), owned.run(twice)
    one, other = first.released_json()["v"]
    assert one != other and second.released_json()["v"] == [one, other]
    assert spent(owned) == "epsilon 0.02"


def test_people_with_weights_are_registered_as_such(place: Place) -> None:
    place.register(protecting="sex up to 3 rows weighted")
    assert "sex up to 3 rows weighted" in place.data("show", "people")[1]
    made = place.run(DATASET + "release n = {{ select count(*) from people with epsilon 1 }}\n")
    assert made.ok and abs(float(made.values["n"]) - 2) < 30  # two sexes, of weight 1 each
    assert Ledger(place.path).history("people")[-1].content["protects"] == "sex up to 3 rows weighted"


def test_a_session_may_name_its_ledger(owned: Place) -> None:
    entries = DATASET + "n = {{ select count(*) from people with epsilon 0.5 }}\n:quit\n"
    command = [sys.executable, "-m", "jostle", "repl", "--ledger", str(owned.path)]
    done = subprocess.run(command, input=entries, text=True, capture_output=True, cwd=owned.folder, timeout=900)
    assert done.returncode == 0, done.stderr
    assert spent(owned) == "epsilon 0.5"


BLOCK = DATASET + (
    "jointly with {} {{\n    n = {{{{ select count(*) from people }}}}\n"
    "    g = {{{{ select count(*) as n from people groupby sex }}}}\n}}\nrelease n\nrelease g\n"
)


@pytest.mark.parametrize("amount", ["epsilon 0.5", "error 10"])
def test_a_joint_block_is_given_again_free(owned: Place, amount: str) -> None:
    """And another one is paid, such as one with another weight."""
    first, second = owned.run(BLOCK.format(amount)), owned.run(BLOCK.format(amount))
    assert first.ok and second.ok, second.diagnostics
    assert first.released_json() == second.released_json()
    assert [e.fields.get("replayed") for e in second.events if e.name == "jointly"] == [True]
    before = Decimal(spent(owned).split()[1])
    other = BLOCK.format("epsilon 0.1").replace("from people }}", "from people where age > 30 }}")
    assert owned.run(other).ok and Decimal(spent(owned).split()[1]) == before + Decimal("0.1")


def test_a_smooth_count_is_given_again_with_its_error(place: Place) -> None:
    place.register("epsilon 3, delta 1e-4")
    joined = "people as a join people as b on a.age = b.age"
    program = DATASET + (
        f"n = {{{{ select count(*) from {joined} with epsilon 1 delta 1e-6 via smooth }}}}\n"
        f"g = {{{{ select count(*) as n from {joined} groupby sex with epsilon 1 delta 1e-6 via smooth }}}}\n"
        "release n\nrelease g\nrelease e = error(n)\n"
    )
    first, second = place.run(program), place.run(program)
    assert first.ok and second.ok, second.diagnostics
    assert first.released_json() == second.released_json() and first.margins() == second.margins()
    assert spent(place) == "epsilon 2, delta 0.000002"
    assert not [e for e in second.events if e.kind == "measure"]
