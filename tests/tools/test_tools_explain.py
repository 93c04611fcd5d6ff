"""The pages of `jostle explain`: one for each kind, and each example does what its page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from jostle.diagnostics import WARNINGS
from jostle.documentation import ALL, KINDS, PAGES, WARNING_PAGES, index, page
from jostle.source import Source
from jostle.tools.session import Session

PEOPLE = ["person,age,sex,city,hours,gain", *(f"p{k // 2},{k % 90},F,Ames,40,{k % 10}" for k in range(200))]


def test_there_is_a_page_for_each_kind_and_no_other() -> None:
    assert tuple(PAGES) == KINDS
    assert tuple(WARNING_PAGES) == WARNINGS
    listed = [line.split()[0] for line in index().splitlines() if line.startswith(" ")]
    assert listed == [*KINDS, *WARNINGS]


@pytest.mark.parametrize("kind", [*KINDS, *WARNINGS])
def test_a_page_is_complete_and_fits_a_terminal(kind: str) -> None:
    text = page(kind)
    assert text.startswith(f"{kind}\n===") and "For example:" in text and text.endswith("\n")
    assert all(len(line) <= 100 for line in text.splitlines())
    assert len(ALL[kind].brief) <= 70 and ALL[kind].way_out


@pytest.mark.parametrize("kind", KINDS)
def test_the_example_meets_its_kind(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert attempt(PAGES[kind].example, tmp_path, monkeypatch) == kind


@pytest.mark.parametrize("kind", [k for k in KINDS if PAGES[k].mended])
def test_the_mended_program_runs(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert attempt(PAGES[kind].mended, tmp_path, monkeypatch) is None


@pytest.mark.parametrize("name", WARNINGS)
def test_the_example_of_a_warning_is_warned_of_by_it_and_the_mended_one_is_not(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "people.csv").write_text("score,age,city,joined\n" + "2.5,30,Ames,2024-03-01T12:30:00\n" * 2000)
    (tmp_path / "german.csv").write_text("age;score\n30;2,5\n")
    monkeypatch.chdir(tmp_path)
    for text, names in ((WARNING_PAGES[name].example, [name]), (WARNING_PAGES[name].mended, [])):
        session = Session(look=name == "unfit-cells")
        if name == "first-budget":  # of a session in which a person goes on
            for place, entry in enumerate(re.split(r"(?=private )", text)[1:]):
                session.execute(Source(f"entry {place}", entry))
        else:
            assert session.attempt(Source("page.jst", text)).ok
        assert sorted({warning.kind for warning in session.warnings}) == names


def attempt(text: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str | None:
    """The kind that a program is refused with, or None where it runs."""
    (folder / "people.csv").write_text("\n".join(PEOPLE) + "\n")
    monkeypatch.chdir(folder)
    result = Session().attempt(Source("page.jst", text))
    return None if result.ok else result.diagnostics[0].kind
