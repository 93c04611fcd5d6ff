"""Advisors: how they are called, what ships, where they were trained, and training them anew."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jostle import train
from jostle.choice import maker
from jostle.choice.advisors import Advisor
from jostle.choice.learning import learn, within
from jostle.choice.maker import FIRST_SETS
from jostle.choice.policy import read_policy
from jostle.choice.training import _runs
from jostle.diagnostics import Refusal
from jostle.records import replace
from jostle.source import Source
from jostle.tools.session import Session

OWN = """\
use best
use workloads

Cells = Option (data) { return answer(data.queries, laplace(data.database)) }
Even  = Option (data) {
    n = laplace(size(data.database))
    return answer(data.queries, [n / 8 for i in 1..8])
}
wide  = Feature (data) { return len(data.queries) }
many  = Feature (data) { return laplace(size(data.database)) }
near  = Utility (data, answers) { return -rmse(answers, exact(data.queries, data.database)) }
def lessons():
    cubes = [counts([n for i in 1..8]) for n in [1, 40]] + [counts([8 * n, 0, 0, 0, 0, 0, 0, 0]) for n in [1, 40]]
    return [{database: c, queries: identity(c), sizes: [20, 2000]} for c in cubes]
own = advisor(
    MkChoiceMaker among {Cells, Even} informed by {wide, many} trained on lessons using tree(depth = 2) wrt near,
    lambda choice, cube: choice({database: cube, queries: identity(cube)}), epsilons = [0.1, 1])
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where policies of advisors are looked for here; models that are trained at a call are stored beside them."""
    monkeypatch.setattr(Advisor, "path", property(lambda advisor: tmp_path / f"{advisor.name}.json"))
    monkeypatch.setenv("JOSTLE_CACHE", str(tmp_path / "cache"))
    return tmp_path


def session(text: str = OWN) -> tuple[Session, Advisor]:
    opened = Session()
    opened.execute(Source("own", text))
    return opened, opened.names()["own"]


def called(text: str) -> dict[str, Any]:
    """The `choice` event of a program after `OWN`."""
    opened = Session()
    opened.bind("people", {"who": list(range(1, 41)), "age": [3] * 40})
    opened.execute(Source("own", OWN + text))
    return next(event.fields for event in opened.events if event.kind == "choice")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The policy of `own`, as it would ship."""
    opened, own = session()
    path = own.write(own.train(opened._interp, workers=1), tmp_path_factory.mktemp("trained") / "own.json")
    assert path is not None
    return path.read_bytes()


@pytest.fixture
def shipped(folder: Path, trained: bytes) -> Path:
    """The file of that policy, where it ships."""
    path = folder / "own.json"
    path.write_bytes(trained)
    return path


PRIVATE = "private seen = counts([900, 0, 0, 0, 0, 0, 0, 0]) protecting rows budget epsilon 100\n"


def test_a_policy_is_the_same_to_the_byte_in_two_processes(shipped: Path) -> None:
    opened, own = session()
    again = own.write(own.train(opened._interp, workers=2), shipped.with_name("again.json"))
    assert again is not None and again.read_bytes() == shipped.read_bytes()
    document = json.loads(shipped.read_text())
    assert document["made"] == "python -m jostle.train own"
    assert document["explained"][0].startswith("policy: ")


def test_it_is_called_like_a_function_and_trains_nothing(shipped: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jostle.choice.maker.learn", lambda *args, **keywords: pytest.fail("it was trained"))
    event = called(PRIVATE + "answers = own(seen) with epsilon 0.5\nassert len(answers) == 8")
    assert event["policy"] != "single best" and event["chosen"] == "Cells"
    assert [feature["name"] for feature in event["features"]] == ["wide", "many"]
    assert event["spent"] == 0.5


def test_outside_of_where_it_was_trained_it_takes_the_single_best(shipped: Path) -> None:
    for text, why in (
        ("n = own(seen) with epsilon 5", "epsilon is 5 for a row, and was 0.1 to 1"),
        ("private four = counts([9, 9, 9, 9]) protecting rows budget epsilon 1\nn = own(four) with epsilon 0.5",
         "wide is 4, and was 8 to 8"),
        ("n = own(counts([1, 2, 3, 4, 5, 6, 7, 8]))", "public data have no noise"),
    ):  # fmt: skip
        event = called(PRIVATE + text)
        assert (event["policy"], event["why"]) == ("single best", f"outside of what it was trained on: {why}")
        assert all(not feature.get("epsilon") for feature in event["features"])  # and pays for no feature


def test_the_released_features_of_a_call_can_be_outside_too(shipped: Path) -> None:
    event = called(PRIVATE.replace("900", "5000000") + "n = own(seen) with epsilon 0.5")
    assert event["why"].startswith("outside of what it was trained on: many is 5e+06, and was ")
    assert event["chosen"] in ("Cells", "Even") and event["spent"] == 0.5


def test_an_amount_in_rho_is_outside(shipped: Path) -> None:
    policy = session()[1].policy()
    assert policy is not None
    assert within(policy, {}, 0.5) is policy
    assert within(policy, {}, 0.5, "rho").why.endswith("it knows amounts in epsilon, and this one is in rho")


def test_persons_with_rows_count_by_the_amount_for_a_row(shipped: Path) -> None:
    """ε 2 for persons of four rows has the noise of ε 0.5 for rows: within what was trained."""
    text = """
private people = bound("people") described by {who: 1..40, age: 0..7}
    protecting who up to 4 rows budget epsilon 9
n = own(histogram(people, x = age)) with epsilon 2
"""
    assert called(text)["policy"] != "single best"


def test_a_training_record_names_the_amounts_that_it_is_run_at() -> None:
    text = OWN.replace("sizes: [20, 2000]}", "sizes: [20, 2000], epsilons: [1]}")
    opened, own = session(text)
    assert own.choice.bench(opened._interp).epsilons(0, own.epsilons) == (1.0,)
    assert own.choice.bench(opened._interp).epsilons(0, (0.3, 3.0)) == (0.3, 3.0)  # at a call for another amount
    opened, own = session()
    assert own.choice.bench(opened._interp).epsilons(0, own.epsilons) == (0.1, 1.0)
    opened, own = session(text.replace("epsilons: [1]}", "epsilons: [-1]}"))
    with pytest.raises(Refusal, match="`epsilons` of a training record is a list of amounts"):
        own.choice.bench(opened._interp).epsilons(0, own.epsilons)


def test_explain_and_evaluate_read_what_ships(shipped: Path) -> None:
    opened, _ = session(OWN + "text = explain(own)\nhow = own.evaluate()\nruns = own.runs()\n")
    assert opened.names()["text"].splitlines() == json.loads(shipped.read_text())["explained"]
    assert opened.names()["how"]["databases"] == 4 and opened.names()["how"]["choice"] >= 1
    assert len(opened.names()["runs"]) == 4 * 2 * 2 * 2


def test_retrained_learns_from_ones_own(shipped: Path) -> None:
    cubes = "cubes = [counts([n, 0, 0, 0, 0, 0, 0, 0]) for n in [3, 90]]\n"
    mine = "mine = retrained(own, on = [{database: c, queries: identity(c)} for c in cubes])\n"
    event = called(cubes + mine + PRIVATE + "answers = mine(seen) with epsilon 0.5")
    assert "outside" not in event["why"] and event["predictions"].keys() == {"Cells", "Even"}


def test_retrained_keeps_the_option_that_stays_unless_another_is_better_by_a_margin(shipped: Path) -> None:
    cubes = "cubes = [counts([n, 0, 0, 0, 0, 0, 0, 0]) for n in [3, 90]]\n"
    mine = "mine = retrained(own, on = [{database: c, queries: identity(c)} for c in cubes])\n"
    call = PRIVATE + "answers = mine(seen) with epsilon 0.5\nagain = mine(seen) with epsilon 0.5"
    for margin, chosen in ((0, "Cells"), (10000, "Even")):
        rule = f', over = "Even", margin = {margin})'
        opened = Session()
        opened.bind("people", {"who": list(range(1, 41)), "age": [3] * 40})
        opened.execute(Source("own", OWN.replace("[0.1, 1])", "[0.1, 1]" + rule) + cubes + mine + call))
        choices = [event.fields["chosen"] for event in opened.events if event.kind == "choice"]
        assert choices == [chosen, chosen]
        assert sum(event.kind == "train" for event in opened.events) == 1


def test_what_ships_for_other_parts_is_not_used(shipped: Path) -> None:
    _, own = session(OWN.replace("tree(depth = 2)", "tree(depth = 1)"))
    assert own.policy() is None
    assert session()[1].policy() is not None


def test_an_option_may_stay_unless_another_is_better_by_a_margin(shipped: Path) -> None:
    values = {"wide": 8.0, "many": 900.0}
    for margin, chosen in ((0, "Cells"), (10000, "Even")):
        text = OWN.replace("epsilons = [0.1, 1])", f'epsilons = [0.1, 1], over = "Even", margin = {margin})')
        policy = session(text)[1].policy()
        assert policy is not None and policy.choose(values, 1.0).chosen == chosen


def test_a_damaged_policy_is_refused_by_name(shipped: Path) -> None:
    shipped.write_text(shipped.read_text().replace('"share": 0', '"share": 1', 1))
    with pytest.raises(Refusal, match=r"own\.json` is damaged"):
        read_policy(shipped, session()[1].key)


@pytest.mark.parametrize("text, message", [
    ("advisor(3, lambda choice: 1)", "takes a ChoiceMaker, not a number"),
    ("advisor(own, lambda choice: 1)", "takes a ChoiceMaker"),
    ("retrained(3, on = [])", "takes a ChoiceMaker, not a number"),
    ('advisor(own_parts, lambda choice: 1, over = "Nope")', "`over` is the name of an Option"),
    ('advisor(own_parts, lambda choice: 1, over = "Even", margin = -1)', "`margin` a number from 0"),
    ("retrained(own, on = [])", "nothing to train on"),
])  # fmt: skip
def test_what_is_no_choice_is_refused(folder: Path, text: str, message: str) -> None:
    parts = "own_parts = MkChoiceMaker among {Cells, Even} informed by {wide} trained on lessons wrt near\n"
    with pytest.raises(Refusal, match=message):
        session(OWN + parts + f"x = {text}\n")


# What ships with the library ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def library() -> tuple[Session, dict[str, Advisor]]:
    opened = Session()
    return opened, train.advisors(opened)


def test_every_advisor_ships_a_policy_for_its_parts(library: tuple[Session, dict[str, Advisor]]) -> None:
    """Where this fails, an option, a feature, a model or a version has another name: `python -m jostle.train`."""
    advisors = library[1]
    stale = [name for name, advisor in advisors.items() if advisor.policy() is None]
    assert not stale, f"train again, which takes long, and judge again: python -m jostle.train {' '.join(stale)}"
    folder = next(iter(advisors.values())).path.parent
    assert {path.stem for path in folder.glob("*.json")} == set(advisors)
    assert sum(path.stat().st_size for path in folder.glob("*.json")) <= 3_000_000


def test_the_least_domain_of_training_is_within(library: tuple[Session, dict[str, Advisor]]) -> None:
    """The logarithm of 4 has more digits than the table that ships."""
    policy = library[1]["best_histogram"].policy()
    assert policy is not None and within(policy, {"cell_count": math.log(4)}, 0.5) is policy
    assert within(policy, {"cell_count": math.log(65536)}, 0.5) is policy
    assert within(policy, {"cell_count": math.log(3)}, 0.5).why.startswith("outside of what it was trained on")


def test_a_histogram_goes_by_epsilon_times_rows_alone(library: tuple[Session, dict[str, Advisor]]) -> None:
    """No feature of the choice is epsilon or rows, so that none is unseen; its option sees their product alone."""
    policy = library[1]["best_histogram"].policy()
    assert (
        policy is not None and policy.share == 0 and set(policy.columns) <= {"dimensions", "cell_count", "query_cells"}
    )
    seen = {"dimensions": 1.0, "cell_count": math.log(1024), "query_cells": math.log(512)}
    known = [within(policy, seen, epsilon) for epsilon in (0.001, 0.01, 0.3, 1.0, 10.0)]
    assert {at.name for at in known} == {policy.name}
    assert (
        len({at.choose(seen, epsilon).index for at, epsilon in zip(known, (0.001, 0.01, 0.3, 1.0, 10.0), strict=True)})
        == 1
    )


@pytest.mark.parametrize(("rows", "budget", "signal"), [
    (100_000, "epsilon 1", 1e5), (5000, "epsilon 20", 1e5), (1_000_000, "rho 0.005", 2**0.5 * 1e5),
])  # fmt: skip
def test_the_signal_of_a_histogram_is_rows_in_units_of_noise(rows: int, budget: str, signal: float) -> None:
    """Whether rows are many or epsilon is large; Gaussian noise of the same budget is smaller by the root of two.

    Off by 200 times noise of Laplace's law, above 4,000 once in 10⁸ runs.
    """
    opened = Session()
    opened.bind("held", np.array([rows, 0]))
    opened.execute(Source("signal", f"""use best
private c = bound("held") protecting rows budget {budget}
signal = signal_of(c) with {budget}
"""))  # fmt: skip
    assert opened.names()["signal"] == pytest.approx(signal, abs=4000)


@pytest.mark.slow(only=["best_mixture"])
@pytest.mark.parametrize("name", ["best_histogram", "best_mixture"])
def test_what_was_learned_still_holds(library: tuple[Session, dict[str, Advisor]], name: str) -> None:
    """One instance is run again from its seeds. Where options have other errors by now: `python -m jostle.train`."""
    opened, advisors = library
    advisor, policy = advisors[name], advisors[name].policy()
    assert policy is not None
    stored = min(policy.table.runs, key=lambda run: (run.database % 5, run.scale))
    bench = advisor.choice.bench(opened._interp)
    again = _runs(bench, policy.table, stored.database, stored.scale)[0]
    assert again.utilities[0] == pytest.approx(stored.utilities[0], rel=0.1)


NUMBERED = """\
One    = Option (data) { return 1 }
Zero   = Option (data) { return 0 }
parity = Feature (data) { return data.number % 2 }
right  = Utility (data, answer) { return 1 if answer == data.truth else 0 }
def lesson(number): return {number: number, truth: number % 2, name: "lesson " + str(number)}
which = MkChoiceMaker among {One, Zero} informed by {parity} trained on lesson wrt right
answers = [which({number: n, truth: n % 2}) for n in [3, 4]]
"""


def test_a_function_of_a_number_makes_as_many_training_data_sets_as_settle_it(
    monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    """What is sure after the first ones needs no more of them; else there are twice as many, to the most."""
    opened, _ = session(OWN + NUMBERED)
    assert opened.names()["answers"] == [1, 0]
    choice = opened.names()["which"]
    assert choice.bench(opened._interp).database_names == tuple(f"lesson {n}" for n in range(1, FIRST_SETS + 1))

    for enough, expected in ((2 * FIRST_SETS, [FIRST_SETS, 2 * FIRST_SETS]), (10**6, [24, 48, 96])):
        seen: list[int] = []

        def unsure(bench: Any, *, enough: int = enough, seen: list[int] = seen, **settings: Any) -> Any:
            seen.append(len(bench.database_names))
            return replace(learn(bench, **settings), unsettled=7 if seen[-1] < enough else 0)

        monkeypatch.setattr(maker, "learn", unsure)
        opened, _ = session(OWN + NUMBERED.replace("for n in [3, 4]", "for n in [3]"))
        assert opened.names()["answers"] == [1] and seen == expected
        opened.execute(Source("judged", "judged = which.evaluate(epsilon = 1)"))
        assert opened.names()["judged"]["databases"] == expected[-1]
        assert opened.names()["judged"]["choice_error"] == 0.0 and opened.names()["judged"]["choice"] == 0.0


@pytest.mark.parametrize("model", ["tree", "regret_tree", "forest"])
def test_a_model_without_settings_needs_no_brackets(folder: Path, model: str) -> None:
    """`using forest` passed a check, and a run refused it at the first call."""
    plain, called = [session(OWN.replace("tree(depth = 2)", text))[1].choice for text in (model, f"{model}()")]
    assert plain.model == called.model and plain.model.kind == model
