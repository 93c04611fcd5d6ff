"""Typical mistakes are told with their place, their reason and the line to write, before anything is spent."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from mistakes import Mistake, Said, command, faults_of, mistakes, place, said_of

ALL = mistakes()
BELOW: dict[str, str] = {}
"""The grades of those that are not of the best, of which nobody may say that they are."""


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with place() as made:
        yield made


class All(dict[str, list[tuple[Mistake, Said]]]):
    """What is said of each mistake of a file, when it is asked for: workers share the files."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    def __missing__(self, name: str) -> list[tuple[Mistake, Said]]:
        self[name] = [(mistake, said_of(mistake, self._folder)) for mistake in ALL[name]]
        return self[name]


@pytest.fixture(scope="module")
def said(folder: Path) -> All:
    return All(folder)


@pytest.mark.parametrize("name", sorted(ALL))
def test_every_mistake_has_its_grade(name: str, said: All) -> None:
    grades = {m.title: s.grade(m) for m, s in said[name]}
    assert grades == {title: BELOW.get(title, "A") for title in grades}


def test_nearly_all_are_of_the_best_grade() -> None:
    entries = [mistake for file in ALL.values() for mistake in file]
    titles = [f"{name}: {mistake.title}" for name, file in ALL.items() for mistake in file]
    assert len(entries) >= 90 and len(titles) == len(set(titles))
    assert len(BELOW) <= 0.05 * len(entries) and set(BELOW) <= {mistake.title for mistake in entries}


@pytest.mark.parametrize("name", sorted(ALL))
def test_one_thing_is_said_and_no_traceback(name: str, said: All) -> None:
    for mistake, told in said[name]:
        assert told.status != 0 and told.many == 1, mistake.title
        assert "Traceback" not in told.text and "internal error" not in told.text, mistake.title


@pytest.mark.parametrize("name", sorted(ALL))
def test_a_program_as_it_should_be_is_right(name: str, folder: Path) -> None:
    for mistake in ALL[name]:
        if mistake.right.startswith("$ jostle "):
            assert command([*shlex.split(mistake.right)[2:]])[0] == 0, mistake.title
        else:
            assert faults_of(mistake, folder) == [], mistake.title


def test_every_line_of_another_language_is_met(said: All) -> None:
    from jostle.syntax.messages import foreign_lines

    told = {s.message for name in ALL for _, s in said[name]}
    assert {line.message for line in foreign_lines()} - told == set()
