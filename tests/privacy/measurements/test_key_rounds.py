"""Keys of an open domain in rounds: what a person moves, what is left out, what is refused, and what is shown."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jostle.accounting.amounts import Amount
from jostle.accounting.composition import quanta
from jostle.accounting.definitions import Measure
from jostle.noise_laws import Gaussian, Laplace
from jostle.privacy.mechanisms.stability import BUCKETS, LOOK, SHARES, KeyLook, KeyRound, key_rounds
from jostle.source import Source
from jostle.tools.session import Session

BASIC = Measure("basic", Amount("epsilon", quanta(10.0), quanta(1e-3)))
OPEN = (
    'private visits = table("visits.csv") described by {page: text, day: date, seconds: 0..9} protecting who '
    "budget epsilon 100, delta 1e-3\n"
)
VISITS = {  # page, day and seconds of each person
    "ann": [("a", 1, 3), ("b", 1, 3), ("c", 2, 4), ("c", 3, 4)], "bob": [("a", 1, 3)],
    "cyd": [("a", 2, 5), ("d", 2, 5), ("e", 3, 5), ("f", 1, 0), ("g", 4, 9)], "dan": [("c", 1, 1), ("g", 1, 1)],
    "eve": [("", 1, 1), ("z", 5, 2), ("z", 5, 2)],
}  # fmt: skip
KEYS = {(page, day) for rows in VISITS.values() for page, day, _ in rows if page}


def shown(folder: Path, program: str, visits: dict[str, list[tuple[str, int, int]]], declared: str = OPEN) -> Any:
    rows = [f"{who},{page},2024-01-0{day},{n}" for who, rows in visits.items() for page, day, n in rows]
    (folder / "visits.csv").write_text("\n".join(["who,page,day,seconds", *rows]) + "\n")
    return Session(cwd=folder).attempt(Source("keys.jst", declared + program))


@pytest.mark.parametrize("most, epsilon, kind", [(1, 8.0, Laplace), (2, 1.0, Gaussian), (40, 1.0, Gaussian)])
def test_keys_of_one_person_are_shown_with_less_than_delta_in_each_round(
    most: int, epsilon: float, kind: type
) -> None:  # fmt: skip
    """The probability that any of her t keys passes, from the discrete law itself, for each t."""
    delta = 1e-6
    look, rounds, price = key_rounds(Amount("epsilon", quanta(epsilon), quanta(delta)), [BASIC], most)
    assert price.delta0 == quanta(delta) and price.pure == (kind is Laplace)
    assert [one.share for one in rounds] == list(SHARES) and math.isclose(LOOK + sum(SHARES), 1)
    for one in rounds:
        assert one.how.kind is kind
        scale = one.linear.scale
        for t in range(1, most + 1):
            weight = one.weight(t)
            assert weight * (t if kind is Laplace else math.sqrt(t)) <= 2**20
            gap = one.threshold * 2**20 - weight  # noise in steps has to exceed it
            tail = math.exp(-gap / scale) if kind is Laplace else math.erfc((gap - 1) / scale / math.sqrt(2)) / 2
            assert 0 < t * tail <= delta * one.share / sum(SHARES) / (2 if kind is Gaussian else 1)
    ratios = [(one.linear.strength / rounds[-1].linear.strength) for one in (look, *rounds)]
    power = 1 if kind is Laplace else 0.5
    assert look.how == rounds[0].how and ratios == pytest.approx([(s / 0.7) ** power for s in (LOOK, *SHARES)])


def test_a_threshold_of_very_many_groups_is_no_lower_than_of_some() -> None:
    amount = Amount("epsilon", quanta(1.0), quanta(1e-6))
    least = [key_rounds(amount, [BASIC], most)[1][-1].threshold for most in (4096, 5000, 10**9)]
    assert least[0] <= least[1] < least[2] < 2 * least[0]


@pytest.mark.parametrize("clause", [
    "up to 2 groups", "up to 4 groups", "up to 3 groups, 2 rows each by day desc", "up to 3 rows",
    "up to 1 row by seconds desc",
])  # fmt: skip
@pytest.mark.parametrize("keys, likely", [("page", 1), ("page", 0.6), ("page, day", 1)])
def test_a_person_moves_the_weights_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clause: str, keys: str, likely: float
) -> None:
    """In the look and in every round, with the exact weights of the engine, whoever is left out, whatever was shown
    before, and whichever buckets are likely."""
    rounds: list[tuple[KeyLook, dict[tuple[Any, ...], int]]] = []

    def scores(self: KeyLook, tally: Any, noise: Any) -> Any:
        rounds.append((self, self.weights(tally)))
        return np.where(np.random.default_rng(7).random(BUCKETS) < likely, 9, 0)

    def select(self: KeyRound, tally: Any, noise: Any, known: Any) -> list[Any]:
        weights = self.weights(tally)
        assert not set(known) & set(weights)
        rounds.append((self, weights))
        first = {0: "ac", 1: "g"}.get(len(rounds) - 2, "")
        return sorted(key for key in (("a",), ("c",), ("g",)) if key[0] in first) if keys == "page" else []

    monkeypatch.setattr(KeyRound, "select", select)
    monkeypatch.setattr(KeyLook, "scores", scores)
    program = f"g = {{{{ select {keys} from visits groupby {keys} {clause} with epsilon 1 delta 1e-6 }}}}"

    def weights(visits: dict[str, list[tuple[str, int, int]]]) -> list[tuple[KeyLook, dict[tuple[Any, ...], int]]]:
        rounds.clear()
        assert shown(tmp_path, program, visits).ok
        return list(rounds)

    whole = weights(VISITS)
    assert len(whole) == 4 and all(isinstance(one, KeyRound) for one, _ in whole[1:])
    assert len(whole[0][1]) == len({page if keys == "page" else (page, day) for page, day in KEYS}) and whole[1][1]
    for who in ("ann", "cyd", "eve"):
        some = weights({other: rows for other, rows in VISITS.items() if other != who})
        for (one, there), (_, gone) in zip(whole, some, strict=True):
            moved = np.array([there.get(key, 0) - gone.get(key, 0) for key in {*there, *gone}], dtype=float)
            assert np.linalg.norm(moved, 1 if one.how.kind is Laplace else 2) <= 2**20
            assert (moved >= 0).all() and (moved > 0).sum() <= (one.groups if isinstance(one, KeyRound) else 7)


def test_what_is_known_makes_room_for_other_keys(tmp_path: Path) -> None:
    """Each person has four pages that all have, and one that a third has, and one group counts."""
    everyone = {
        f"p{i}": [(f"all{(i + j) % 4}", 1, 1) for j in range(4)] + [(f"some{i % 3}", 2, 2)] for i in range(1500)
    }
    program = """
rounds = {{ select page from visits groupby page up to 1 group with epsilon 8 delta 1e-5 }}
assert rounds.page == ["all0", "all1", "all2", "all3", "some0", "some1", "some2"], rounds
assert spent(visits) == {epsilon: 8, delta: 1e-5}
"""
    result = shown(tmp_path, program, everyone)
    assert result.ok, result.diagnostics


@pytest.mark.parametrize("program, kind, words", [
    ("g = {{ select page from visits groupby page with epsilon 1 delta 1e-6 }}", "UnboundedSum", "any number of rows"),
    ("g = {{ select page from visits groupby page up to 3 groups with epsilon 1 }}", "OpenKeys", "not public"),
    ("g = {{ select seconds from visits groupby seconds up to 3 rows with epsilon 1 }}", "TypeError", "public"),
    ("g = {{ select page, day from visits groupby page up to 3 rows with epsilon 1 delta 1e-6 }}", "PrivateValue", ""),
    ("g = {{ select page from visits up to 3 rows with epsilon 1 delta 1e-6 }}", "PrivateValue", "hand out"),
])  # fmt: skip
def test_what_is_refused(tmp_path: Path, program: str, kind: str, words: str) -> None:
    result = shown(tmp_path, program, VISITS)
    assert not result.ok and result.diagnostics[0].kind == kind and words in result.diagnostics[0].message


@pytest.mark.parametrize("select", [
    "page from u groupby {} as page up to 3 groups", "page, day from u groupby {} as page, day up to 3 groups",
    "page, sum(seconds) as s from u groupby {} as page, day up to 3 groups, 1 row each by seconds",
    "page, count(*) as n from u groupby {} as page up to 3 groups order by n desc limit 2",
])  # fmt: skip
@pytest.mark.parametrize("steps, nested, fits", [
    (176, 0, False), (0, 199, False),
    pytest.param(169, 0, True, marks=pytest.mark.slow), pytest.param(0, 192, True, marks=pytest.mark.slow),
])  # fmt: skip
def test_what_comes_around_a_table_and_its_keys_is_refused_before_the_charge(
    tmp_path: Path, select: str, steps: int, nested: int, fits: bool
) -> None:
    """The rounds leave out what is known, and aggregates are of what is shown: of steps and keys that just fit, these
    could not be asked for."""
    many = {f"p{i}": [("a", 1, 1), ("b", 2, 2)] for i in range(40)}
    deep = "def deep(u, n): return u if n == 0 else deep(derive(u, seconds = clamp(seconds + 1, 0, 9)), n - 1)\n"
    key = "lower(" * nested + "page" + ")" * nested
    program = f"{deep}u = deep(visits, {steps})\ng = {{{{ select {select.format(key)} with epsilon 90 delta 1e-4 }}}}"
    result = shown(tmp_path, program, many, OPEN.replace(" budget", " up to 5 rows budget"))
    assert result.ok == (float(result.budget["visits"]["epsilon"]["spent"]) > 0) == fits
    assert fits or result.diagnostics[0].kind == "RecursionLimit"


def test_keys_of_a_part_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A person with rows in several parts would weigh 1 in each."""
    monkeypatch.setattr(KeyRound, "select", lambda *args: pytest.fail("in rounds"))
    part = "g = {{ select page from visits[seconds = 3] groupby page with epsilon 1 delta 1e-6 }}\nassert len(g) == 0"
    result = shown(tmp_path, part, VISITS, OPEN.replace("protecting who", "protecting who up to 3 rows"))
    assert result.ok, result.diagnostics


def test_means_by_keys_find_them_in_rounds(tmp_path: Path, attempt: Callable[..., Any]) -> None:
    """Half of the amount finds keys, dates among them, and the other half measures; a public table lists its values."""
    people = {f"p{i}": [(f"page{i % 3}", 1 + i % 2, i % 10), ("page0", 1, 3)] for i in range(900)}
    program = """
g = {{ select page as p, day, avg(seconds) as mean from visits groupby page, day up to 2 groups, 1 row each
    with epsilon 16 delta 1e-5 }}
days = ["2024-01-01", "2024-01-02"]
assert [[r.p, str(r.day)] for r in g] == [[p, d] for p in ["page0", "page1", "page2"] for d in days], g
assert min(g.mean) >= 0 and max(g.mean) <= 9 and spent(visits).epsilon <= 16
"""
    result = shown(tmp_path, program, people)
    assert result.ok, result.diagnostics
    program = (
        't = table([{a: "x"}, {a: "y"}, {a: "x"}])\ng = {{ select a as b from t groupby a }}\nassert g.b == ["x", "y"]'
    )
    assert attempt(program).ok


@pytest.mark.parametrize("unit", ["rows", "who up to 1 row"])
def test_a_key_that_was_found_has_the_rows_of_this_value_alone(tmp_path: Path, unit: str) -> None:
    """Where all that are found are whole: 1.25 is not in the group of 1, whatever is asked beside the count."""
    cells = [(1.0, 1)] * 300 + [(2.0, 1)] * 300 + [(1 + i / 5001, 9) for i in range(1, 4000)]
    (tmp_path / "t.csv").write_text("who,x,y\n" + "".join(f"{at},{x},{y}\n" for at, (x, y) in enumerate(cells)))
    declared = f'private t = table("t.csv") described by {{x: real, y: 0..9}} protecting {unit} '
    asked = "release g = {{ select count(*) as n, avg(y) as m from t groupby x with epsilon 40 delta 1e-6 }}\n"
    result = Session(cwd=tmp_path).attempt(Source("t.jst", declared + f"budget epsilon 100, delta 1e-3\n{asked}"))
    columns = dict(result.released)["g"]
    assert list(columns["x"]) == [1.0, 2.0]
    assert all(abs(n - 300) < 20 for n in columns["n"]) and all(abs(m - 1) < 1 for m in columns["m"])
