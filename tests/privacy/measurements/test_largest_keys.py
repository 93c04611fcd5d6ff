"""The keys of an open domain with the most rows: their law on small counts, what a person moves, what is refused."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jostle.accounting.amounts import Amount
from jostle.accounting.composition import quanta
from jostle.accounting.definitions import Measure, rho_of
from jostle.privacy.mechanisms import stability
from jostle.privacy.mechanisms.margin import largest_scale
from jostle.privacy.mechanisms.stability import LargestKeys, largest_keys
from jostle.source import Source
from jostle.tools.session import Result, Session

Law = dict[tuple[Any, ...], float]
KEYS = np.array(list("abcd"))
DELTA = 0.1


class Chosen:
    """Noise whose choices are prescribed, the first one beyond; how likely these were, and what else there was."""

    def __init__(self, choices: Sequence[int]) -> None:
        self.choices, self.many, self.chance = list(choices), list[int](), 1.0

    def gumbel_max(self, scores: np.ndarray, scale: float) -> int:
        weights = np.exp((scores - scores.max()) / scale)
        at = self.choices[len(self.many)] if len(self.many) < len(self.choices) else 0
        self.many.append(scores.size)
        self.chance *= float(weights[at] / weights.sum())
        return at


def law_of(how: LargestKeys, counts: Sequence[int]) -> Law:
    """The law of what is chosen, by running the code for each choice that it may make."""
    law: Law = {}
    there, paths = np.array(counts), [[]]
    while paths:
        noise = Chosen(path := paths.pop())
        keys = how.select((KEYS[there > 0], there[there > 0]), noise)  # type: ignore[arg-type]
        law[tuple(keys)] = law.get(tuple(keys), 0.0) + noise.chance
        for at in range(len(path), len(noise.many)):
            paths += [[*path, *[0] * (at - len(path)), other] for other in range(1, noise.many[at])]
    assert math.isclose(sum(law.values()), 1)
    return law


def among(how: LargestKeys, scores: dict[Any, int]) -> Law:
    """The law of so many choices among these keys and the threshold, by its formula."""
    law: Law = {}

    def choose(chosen: tuple[Any, ...], left: dict[Any, int], chance: float) -> None:
        if not left or len(chosen) == how.count:
            law[chosen] = law.get(chosen, 0.0) + chance
            return
        weights = {key: math.exp((score - how.threshold) / how.width) for key, score in left.items()}
        whole = 1 + sum(weights.values())
        law[chosen] = law.get(chosen, 0.0) + chance / whole
        for key, weight in weights.items():
            choose((*chosen, key), {k: s for k, s in left.items() if k != key}, chance * weight / whole)

    choose((), scores, 1.0)
    return law


def scores_of(counts: Sequence[int], candidates: int) -> dict[str, int]:
    least = sorted(counts)[-candidates - 1]
    return {key: count - least for key, count in zip("abcd", counts, strict=True) if count > least}


def pairs(most: int, each: int) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Counts without and with a person who may have any of the keys."""
    for counts in product((0, 1, most, most + 1), repeat=4):
        if list(counts) == sorted(counts):  # the keys are alike
            for more in product(range(each + 1), repeat=4):
                yield counts, tuple(a + b for a, b in zip(counts, more, strict=True))


def excess(one: Law, other: Law, epsilon: float) -> float:
    return sum(max(0.0, p - math.exp(epsilon) * other.get(o, 0.0)) for o, p in one.items())


@pytest.mark.parametrize("count, each", [(1, 1), (2, 1), (2, 2), (3, 1)])
def test_the_whole_law_over_neighbours(monkeypatch: pytest.MonkeyPatch, count: int, each: int) -> None:
    """Ties, keys of one person alone, and keys that others' come to push out: (ε, δ), and a law outside an event of δ
    that costs so many choices, in zCDP as well."""
    candidates = 2
    monkeypatch.setattr(stability, "CANDIDATES", candidates)
    how = LargestKeys(Amount("epsilon", quanta(2.0)), True, count, each, DELTA)
    epsilon, rho = how.count * each / how.width, how.count * (each / how.width) ** 2 / 8
    assert epsilon == pytest.approx(2) and rho == pytest.approx(how.price.rho / 10**12)
    laws: dict[tuple[int, ...], Law] = {}
    worst = 0.0
    for one, other in pairs(how.threshold, each):
        for counts in (one, other):
            if counts not in laws:
                laws[counts] = law_of(how, counts)
                formula = among(how, scores_of(counts, candidates))
                assert laws[counts] == pytest.approx(formula, abs=1e-12)
        p, q = laws[one], laws[other]
        worst = max(worst, excess(p, q, epsilon), excess(q, p, epsilon))
        mine, theirs = (scores_of(counts, candidates) for counts in (one, other))
        both = [among(how, {k: s for k, s in scores.items() if k in mine and k in theirs}) for scores in (mine, theirs)]
        for whole, outside in zip((p, q), both, strict=True):
            assert all(whole.get(o, 0.0) >= (1 - DELTA) * chance - 1e-12 for o, chance in outside.items())
        for a, b in (both, both[::-1]):
            assert max(math.log(chance / b[o]) for o, chance in a.items()) <= epsilon + 1e-9
            for alpha in (1.5, 4.0, 32.0):
                moment = sum(chance * (chance / b[o]) ** (alpha - 1) for o, chance in a.items())
                assert math.log(moment) / (alpha - 1) <= rho * alpha + 1e-9
    assert DELTA / 50 < worst <= DELTA


def test_a_threshold_that_is_too_low_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stability, "CANDIDATES", 2)
    how = LargestKeys(Amount("epsilon", quanta(2.0)), True, 2, 1, DELTA)
    least = how.threshold
    monkeypatch.setattr(LargestKeys, "threshold", property(lambda self: least - 3))
    assert excess(law_of(how, (1, 1, 0, 0)), law_of(how, (0, 0, 0, 0)), 2.0) > DELTA


def test_half_of_an_amount_chooses_by_what_has_the_lower_threshold() -> None:
    budget = Measure("basic", Amount("epsilon", quanta(9.0), quanta(1e-3)))
    amount = Amount("epsilon", quanta(1.0), quanta(1e-6))
    one, rest = largest_keys(amount, [budget], 1, 1)
    assert one.amount == rest == Amount("epsilon", quanta(0.5)) and one.width == 2 and one.delta == 1e-6
    many, rest = largest_keys(amount, [budget], 10, 3)
    rho = rho_of(1.0, 5e-7) / 2
    assert many.amount.unit == rest.unit == "rho" and many.delta == 5e-7
    assert many.width == pytest.approx(3 * math.sqrt(10 / (8 * rho)))
    assert many.threshold == math.ceil(3 + stability.SAFE * largest_scale(many.width) * math.log(4096 * 10 / 5e-7))


OPEN = (
    'private visits = table("visits.csv") described by {page: text, seconds: 0..9} protecting who '
    "budget epsilon 100, delta 1e-3\n"
)
TOP = "g = {{ select page, count(distinct who) as n from visits groupby page order by n desc limit 3"


def attempt(folder: Path, program: str, visits: dict[str, Sequence[str]], declared: str = OPEN) -> Result:
    rows = [f"{who},{page},{i % 10}" for who, pages in visits.items() for i, page in enumerate(pages)]
    (folder / "visits.csv").write_text("\n".join(["who,page,seconds", *rows]) + "\n")
    return Session(cwd=folder).attempt(Source("largest.jst", declared + program))


CROWD = {f"p{i}": [*"abcdefgh"[: 1 + i % 8], f"own{i}", *["again"] * 3] for i in range(800)}


def test_a_person_may_be_in_any_number_of_groups(tmp_path: Path) -> None:
    program = (
        TOP
        + """ with epsilon 40 delta 1e-5 }}
assert sorted([g.page[0], g.page[1]]) == ["a", "again"] and g.page[2] == "b", g
assert max([abs(g.n[i] - [800, 800, 700][i]) for i in [0, 1, 2]]) < 30, g
assert spent(visits).epsilon <= 40 and spent(visits).delta == 1e-5
means = {{ select page as p, count(*) as n, avg(seconds) as m from visits groupby page up to 1 row each
    order by count(*) desc, p limit 2 with epsilon 40 delta 1e-5 }}
assert sorted(means.p) == ["a", "again"]
"""
    )
    result = attempt(tmp_path, program, CROWD)
    assert result.ok, result.diagnostics


def test_where_few_persons_have_a_key_fewer_are_shown(tmp_path: Path) -> None:
    rare = {f"p{i}": ["a", f"own{i}"] for i in range(400)}
    result = attempt(tmp_path, f'{TOP} with epsilon 8 delta 1e-5 }}}}\nassert g.page == ["a"], g', rare)
    assert result.ok, result.diagnostics
    none = {f"p{i}": [f"own{i}"] for i in range(40)}
    result = attempt(tmp_path, f"{TOP} with epsilon 8 delta 1e-5 }}}}\nassert len(g) == 0 and len(g.n) == 0", none)
    assert result.ok, result.diagnostics


@pytest.mark.parametrize("clause", ["", "up to 400 groups", "up to 1 row each"])
def test_a_person_moves_each_count_by_one_and_the_numbers_by_the_keys_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clause: str
) -> None:
    tallies: list[dict[str, int]] = []

    def select(self: LargestKeys, tally: Any, noise: Any) -> list[str]:
        assert self.each == 1 and self.count == 12
        tallies.append(dict(zip(*(list(part) for part in tally), strict=True)))
        return ["b", "a", "again"]

    monkeypatch.setattr(LargestKeys, "select", select)
    asked = "count(*) as n" if clause.endswith("each") else "count(distinct who) as n"
    program = TOP.replace("count(distinct who) as n", asked).replace("order by", f"{clause} order by")
    program = program.replace("limit 3", "limit 12 with epsilon 1 delta 1e-6 }}")
    seen = []
    for crowd in (CROWD, {who: pages for who, pages in CROWD.items() if who != "p7"}):
        result = attempt(tmp_path, program, crowd)
        assert result.ok, result.diagnostics
        seen.append([e.fields for e in result.events if e.kind == "measure"])
    moved = {key: n - tallies[1].get(key, 0) for key, n in tallies[0].items() if n != tallies[1].get(key, 0)}
    assert moved == dict.fromkeys([*"abcdefgh", "own7", "again"], 1)
    keys, numbers = seen[0]
    rho = rho_of(1.0, 1e-6 / 3 / 2)
    assert seen[1] == [keys, numbers] and numbers["stability"] == 12 and numbers["mechanism"] == "gaussian"
    assert numbers["scale"] == pytest.approx(math.sqrt(12 / rho), rel=1e-8)
    assert keys["epsilon"] == numbers["epsilon"] == 0.5 and keys["delta"] == 1e-6 and "rho" not in numbers
    assert keys["scale"] == pytest.approx(math.sqrt(12 / 4 / rho), rel=1e-8) and keys["of"] == "rows"


@pytest.mark.parametrize("program, declared", [
    (TOP.replace("groupby page", "groupby page up to 2 groups"), OPEN),  # counts of all keys show more
    (TOP.replace("order by n desc", "order by n"), OPEN.replace("protecting who", "protecting who up to 9 rows")),
    (TOP.replace("order by", "having n > 3 order by"), OPEN.replace("protecting who", "protecting who up to 9 rows")),
    (TOP.replace("distinct who", "*"), OPEN.replace("protecting who", "protecting rows")),
    (TOP.replace("from visits", "from visits[seconds = 3]"), OPEN.replace("g who", "g who up to 900 rows")),
])  # fmt: skip
def test_otherwise_all_keys_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, declared: str
) -> None:
    monkeypatch.setattr(LargestKeys, "select", lambda *args: pytest.fail("chosen"))
    result = attempt(tmp_path, f"{program} with epsilon 1 delta 1e-6 }}}}", CROWD, declared)
    assert result.ok, result.diagnostics


@pytest.mark.parametrize("program, kind, words", [
    (TOP.replace(" limit 3", ""), "UnboundedSum", "order by n desc limit 10"),
    (TOP.replace("n desc", "n"), "UnboundedSum", "any number of rows"),
    (TOP.replace("from visits", "from visits[seconds = 3]"), "UnboundedSum", "any number of rows"),
    (TOP.replace("distinct who", "*"), "UnboundedSum", "any number of rows"),
])  # fmt: skip
def test_what_is_refused(tmp_path: Path, program: str, kind: str, words: str) -> None:
    result = attempt(tmp_path, f"{program} with epsilon 1 delta 1e-6 }}}}", CROWD)
    (first, *_) = result.diagnostics
    assert not result.ok and first.kind == kind and words in first.message + str(first.help), first
    assert not any(event.kind == "measure" for event in result.events)
    tiny = attempt(tmp_path, f"{TOP} with epsilon 0.000000000001 delta 1e-6 }}}}", CROWD)
    assert tiny.diagnostics[0].kind == "BadAmount"
