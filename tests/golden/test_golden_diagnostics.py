"""Every kept diagnostic is what Jostle says today; there are enough of them, of every kind and every known slip."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from diagnostics import Entry, all_entries, place, rendered

from jostle.documentation import KINDS
from jostle.syntax.messages import entries as slips

KEPT = all_entries()


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with place() as made:
        yield made


@pytest.mark.parametrize("kind", sorted(KEPT))
def test_diagnostics_of_a_kind(kind: str, folder: Path) -> None:
    for entry in KEPT[kind]:
        assert rendered(entry, folder) == (kind, entry.said), (
            f"`{entry.title}`: python -m tests.golden.diagnostics --write"
        )


def test_every_kind_is_there() -> None:
    assert sorted(KEPT) == sorted(KINDS)
    assert sum(len(entries) for entries in KEPT.values()) >= 150


def test_every_word_and_sign_of_another_language_is_there() -> None:
    """By its message; its help may be a line that was tried in its place."""
    said = "".join(entry.said for entry in KEPT["SyntaxError"])
    missing = [
        (section, word)
        for section, words in slips().items()
        for word, entry in words.items()
        if entry["message"] not in said
    ]
    assert missing == []


def test_every_diagnostic_says_what_to_do() -> None:
    """Of most kinds all do; of the others the message alone may say all there is to say."""
    may_be = {"TypeError", "ValueError", "DataError", "ImportError", "NameError", "AssertionFailed"}
    silent = {kind: [entry.title for entry in entries if _silent(entry)] for kind, entries in KEPT.items()}
    assert {kind: titles for kind, titles in silent.items() if titles and kind not in may_be} == {}


def _silent(entry: Entry) -> bool:
    return "= help: " not in entry.said and '"help": "' not in entry.said
