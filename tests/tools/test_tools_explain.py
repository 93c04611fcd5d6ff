"""The pages of `jostle explain`: one for each kind, and each example does what its page says."""

from __future__ import annotations

from pathlib import Path

import pytest

from jostle.diagnostics import KINDS
from jostle.source import Source
from jostle.tools.explain import index, page
from jostle.tools.pages import PAGES
from jostle.tools.session import Session

PEOPLE = ["person,age,sex,city,hours,gain", *(f"p{k // 2},{k % 90},F,Ames,40,{k % 10}" for k in range(200))]


def test_there_is_a_page_for_each_kind_and_no_other() -> None:
    assert tuple(PAGES) == KINDS
    listed = [line.split()[0] for line in index().splitlines()[1:]]
    assert listed == list(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_is_complete_and_fits_a_terminal(kind: str) -> None:
    text = page(kind)
    assert text.startswith(f"{kind}\n===") and "For example:" in text and text.endswith("\n")
    assert all(len(line) <= 100 for line in text.splitlines())
    assert len(PAGES[kind].brief) <= 70 and PAGES[kind].way_out


@pytest.mark.parametrize("kind", KINDS)
def test_the_example_meets_its_kind(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert attempt(PAGES[kind].example, tmp_path, monkeypatch) == kind


@pytest.mark.parametrize("kind", [k for k in KINDS if PAGES[k].mended])
def test_the_mended_program_runs(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert attempt(PAGES[kind].mended, tmp_path, monkeypatch) is None


def attempt(text: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str | None:
    """The kind that a program is refused with, or None where it runs."""
    (folder / "people.csv").write_text("\n".join(PEOPLE) + "\n")
    monkeypatch.chdir(folder)
    result = Session().attempt(Source("page.jst", text))
    return None if result.ok else result.diagnostics[0].kind
