"""Jostle's own side of the bench beside other libraries, on 1,000 rows, and what the bench makes of answers."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.bench.peer_sides import KEYS, QUESTIONS, jostle
from tests.bench.peers import exact, importable, off, persons, shown, write


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("peers"), 1000)


@pytest.mark.parametrize("question", QUESTIONS)
def test_jostle_answers_every_question(table: Path, question: str) -> None:
    right = exact(table, question)
    answer = jostle({"path": str(table), "question": question, "persons": persons(1000), "runs": 2})
    first, second = list(answer()), list(answer())
    key = QUESTIONS[question][1]
    assert len(first) == len(second) == len(right) == (len(KEYS[key]) if key else 1)
    if question in ("count", "text"):  # of 50 answers with noise of scale 1, none is off by 40 but once in 10^15
        assert max(abs(one - true) for one, true in zip(first, right, strict=True)) < 40
    if question == "persons":
        assert sum(right) == pytest.approx(min(1, 4 / 10) * 1000, rel=0.1)


def test_a_library_that_is_missing_is_told_and_errors_are_of_the_answers_that_are_there() -> None:
    assert importable(sys.executable, "jostle") and not importable(sys.executable, "no_such_library")
    assert not importable("no-such-python", "jostle")
    assert off({"answers": [[1.0, None], [5.0, 2.0]]}, [2.0, 2.0]) == "1.83, 1 missing"
    assert shown({"first": 1.5, "again": None, "peak": 90.2}) == "1.50 + – s, 90 MB"
    assert shown({"reason": "more than 9 s"}) == "more than 9 s" and off({"reason": "more than 9 s"}, []) == "–"
