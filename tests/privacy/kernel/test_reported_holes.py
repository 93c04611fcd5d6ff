"""Holes and crashes that reviews found, each kept shut by the program that showed it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from jostle.choice.policy import FORMAT, Store, digest
from jostle.diagnostics import Refusal
from jostle.source import Source
from jostle.tools.session import Session

PRIVATE = "private c = counts([5, 6]) protecting rows budget epsilon 10\n"
CHOICE = """
f = Feature (data) { return {{ select sum(values) from data.database }} }
A = Option (data) { return 1 }
B = Option (data) { return {{ select sum(values) from data.database }} }
u = Utility (data, answers) { return answers }
dbs = [{database: counts([n])} for n in [1, 5, 9, 20]]
"""


def kinds(program: str) -> list[str]:
    return [d.kind for d in Session().attempt(Source("p.jst", program)).diagnostics]


def test_a_users_model_cannot_reach_private_data_while_it_is_fitted_or_predicts() -> None:
    fitted = "using (lambda pairs: (lambda F: laplace(size(c), epsilon = 0.1)))"
    program = PRIVATE + CHOICE + f"ch = MkChoiceMaker among {{A, B}} informed by {{f}} trained on dbs {fitted} wrt u\n"
    assert kinds(program + "x = ch({database: c}) with epsilon 1\n") == ["PrivateValue"]
    public = program.replace("laplace(size(c), epsilon = 0.1)", "1")
    assert kinds(public + "x = ch({database: c}) with epsilon 1\n") == []


@pytest.mark.parametrize("use", ["xs[size(c)]", "[i for i in 1..size(c)]", "limited(c, size(c))"])
def test_a_score_is_private_wherever_it_stands(use: str) -> None:
    assert kinds(PRIVATE + f"xs = [1, 2]\ny = {use}\n") == ["PrivateValue"]


def test_a_device_is_no_file() -> None:
    if not Path("/dev/zero").exists():
        pytest.skip("no /dev/zero here")
    assert kinds('x = table("/dev/zero")\n') == ["DataError"]


@pytest.mark.parametrize("content", [{}, {"share": "a"}, {"needs": 5}, {"needs": ["nobody"]}, {"predictor": 0}, []])
def test_a_stored_model_with_a_right_digest_and_wrong_content_is_damaged(content: object, tmp_path: Path) -> None:
    import json

    key = "k" * 64
    document = {"format": FORMAT, "key": key, "digest": digest([FORMAT, key, content]), "policy": content}
    (tmp_path / f"{key}.json").write_text(json.dumps(document))
    with pytest.raises(Refusal) as refused:
        Store(tmp_path).load(key, ((), ()))
    assert refused.value.first.kind == "DataError" and "damaged" in refused.value.first.message


def test_a_part_of_an_infinite_epsilon_is_infinite_on_public_data() -> None:
    halves = "H = Option (data) { n = laplace(size(data.database)) with epsilon epsilon / 4\n  return n }\n"
    program = CHOICE + halves + "ch = MkChoiceMaker among {H, A} informed by {} trained on dbs wrt u\n"
    assert kinds(program + "assert ch({database: counts([7])}) in {7, 1}\n") == []


def test_groups_of_a_selection_are_bounded_before_anything_is_read() -> None:
    program = (
        'private t = bound("t") described by {g: 0..99999} protecting rows budget epsilon 1\n'
        "x = {{ select max(g) from t groupby g with epsilon 0.1 }}\n"
    )
    session = Session()
    session.bind("t", {"g": np.array([1, 2])})
    result = session.attempt(Source("p.jst", program))
    assert [d.kind for d in result.diagnostics] == ["ValueError"] and result.budget["t"]["epsilon"]["spent"] == "0"


PEOPLE = 'private t = table("t.csv") described by {age: 0..99, sex: {"F", "M"}} protecting rows budget epsilon 10\n'


@pytest.mark.parametrize(
    "use",
    [
        '{{ select count(*) from t groupby age over ["a", "b"] with epsilon 1 }}',
        '{{ select count(*) from t where age > 50 groupby sex, age over ["a"] with epsilon 1 }}',
        "{{ select count(*) from t groupby sex over [1, 2] with epsilon 1 }}",
        "{{ select count(*) from t groupby age > 3 over [1] with epsilon 1 }}",
        'partition(t, age, over = ["a", "b"])',
    ],
)
def test_listed_keys_of_another_kind_are_refused_whatever_the_rows_hold(use: str, tmp_path: Path) -> None:
    """The engine would fail to compare them, but only where a row is left to be compared: the fuzzer saw it."""
    shown = set()
    for rows in ("", "60,F\n70,M\n", "1,M\n"):
        (tmp_path / "t.csv").write_text("age,sex\n" + rows)
        result = Session(cwd=tmp_path).attempt(Source("p.jst", f"{PEOPLE}x = {use}\n"))
        shown.add(tuple((d.kind, d.message) for d in result.diagnostics))
        assert not any(float(b["spent"]) for b in result.budget["t"].values())
    assert len(shown) == 1
    assert {kind for found in shown for kind, _ in found} == {"TypeError"}
