"""The grammar has no conflicts, its table is kept safely, and no text can break the parser."""

from __future__ import annotations

import pickle
import time
from pathlib import Path

import lark
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jostle.diagnostics import Refusal
from jostle.documentation import KINDS
from jostle.source import Source
from jostle.syntax import incomplete, parse, parser
from jostle.syntax.builder import Builder
from jostle.syntax.layout import Layout


@pytest.fixture(scope="module")
def strict() -> lark.Lark:
    pytest.importorskip("interegular", reason="strict grammars are checked with the package interegular")
    return lark.Lark(
        parser.grammar_text(), parser="lalr", lexer="contextual", postlex=Layout(), transformer=Builder(),
        keep_all_tokens=True, strict=True,
    )  # fmt: skip


def test_the_grammar_is_strict(strict: lark.Lark) -> None:
    assert strict.options.strict and strict.options.parser == "lalr"


def test_every_rule_has_a_method(strict: lark.Lark) -> None:
    wanted = {rule.alias or str(rule.origin.name) for rule in strict.rules}
    missing = {name for name in wanted if not name.startswith("_") and not hasattr(Builder, name)}
    inlined = {"stmt", "simple", "suite", "clause", "expr", "ternary", "disj", "conj", "neg", "comparison", "range",
               "sum", "term", "price", "unary_", "power", "postfix", "arg", "atom"}  # fmt: skip
    assert missing <= inlined


def test_the_table_is_kept_and_read(strict: lark.Lark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOSTLE_CACHE", str(tmp_path / "deep" / "cache"))
    made: list[str] = []

    def from_text(text: str, builder: Builder, layout: Layout) -> lark.Lark:
        made.append(text)
        return strict

    monkeypatch.setattr(parser, "_from_text", from_text)
    parser.load(Builder(), Layout())
    kept = list((tmp_path / "deep" / "cache").iterdir())
    assert len(made) == 1 and len(kept) == 1
    builder = Builder()
    builder.source = Source("again", "x = 1\n")
    assert len(parser.load(builder, Layout()).parse("x = 1\n").body) == 1  # type: ignore[attr-defined]
    assert len(made) == 1
    for damage in (
        b"",
        b"nonsense",
        kept[0].read_bytes()[:1000],
        pickle.dumps({"data": {}, "memo": {}}),
        pickle.dumps(3),
    ):
        kept[0].write_bytes(damage)
        assert parser.load(Builder(), Layout()) is strict


class Planted:
    """What a pickle makes by a call: a file, `at` a place."""

    def __init__(self, at: Path) -> None:
        self.at = at

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self.at,)


def test_a_planted_table_runs_no_code(strict: lark.Lark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another program of the same user may write the cache, and not the ledger, nor read what a session holds."""
    monkeypatch.setenv("JOSTLE_CACHE", str(tmp_path))
    monkeypatch.setattr(parser, "_from_text", lambda *_: strict)
    parser.load(Builder(), Layout())
    (kept,) = tmp_path.glob("grammar-*.table")
    for planted in (Planted(tmp_path / "ran"), {"data": {}, "memo": [Planted(tmp_path / "ran")]}):
        kept.write_bytes(pickle.dumps(planted))
        assert parser.load(Builder(), Layout()) is strict
        assert not (tmp_path / "ran").exists()


def test_trees_of_modules_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOSTLE_CACHE", str(tmp_path))
    source = Source("stdlib/m.jst", "def f(x): return x + 1\n")
    tree = parser.parse_module.__wrapped__(source)
    (kept,) = tmp_path.glob("module-*.table")
    monkeypatch.setattr(parser, "parse", lambda _: pytest.fail("parsed again"))
    again = parser.parse_module.__wrapped__(source)
    assert again == tree and again is not tree and str(again.body[0].span) == "stdlib/m.jst:1:1"
    monkeypatch.setattr(parser, "parse", lambda _: tree)
    for planted in (b"", kept.read_bytes()[:50], pickle.dumps(Planted(tmp_path / "ran")), pickle.dumps(again.body)):
        kept.write_bytes(planted)
        assert parser.parse_module.__wrapped__(source) is tree and not (tmp_path / "ran").exists()


def test_without_a_place_to_keep_it(strict: lark.Lark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("JOSTLE_CACHE", str(tmp_path / "file" / "cache"))
    monkeypatch.setattr(parser, "_from_text", lambda *_: strict)
    assert parser.load(Builder(), Layout()) is strict


WORDS = [
    "x",
    "y",
    "f",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "{{",
    "}}",
    ",",
    ":",
    ".",
    "..",
    "=",
    "==",
    "<",
    "+",
    "-",
    "*",
    "/",
    "^",
    ";",
    "**",
    "//",
    "1",
    "0.5",
    "1e400",
    "'a'",
    '"b"',
    "if",
    "else",
    "for",
    "in",
    "def",
    "return",
    "assert",
    "with",
    "epsilon",
    "rho",
    "delta",
    "select",
    "from",
    "where",
    "groupby",
    "group",
    "by",
    "join",
    "on",
    "up",
    "to",
    "as",
    "over",
    "count",
    "private",
    "table",
    "described",
    "protecting",
    "rows",
    "at",
    "most",
    "budget",
    "MkChoiceMaker",
    "among",
    "informed",
    "trained",
    "wrt",
    "Option",
    "predict",
    "Feature",
    "lambda",
    "not",
    "and",
    "or",
    "true",
    "none",
    "use",
    "param",
    "release",
    "external",
    "elif",
    "while",
    "having",
    "order",
    "between",
    "print",
    "é",
    "@",
    "\\",
    "'",
    '"',
]
SOUP = st.lists(st.sampled_from([*WORDS, "\n", "\n    ", "\n        ", "\t", "# c\n", "\r\n"]), max_size=60)


def only_refusals(text: str) -> None:
    incomplete(text)
    try:
        parse(Source("soup", text))
    except Refusal as refusal:
        said = refusal.first
        assert said.kind in KINDS and said.message and said.span is not None
        assert said.span.line >= 1 and said.span.column >= 1
        assert (said.span.end_line, said.span.end_column) >= (said.span.line, said.span.column)


@settings(max_examples=600, deadline=None, derandomize=True)
@given(SOUP)
def test_token_soup(words: list[str]) -> None:
    only_refusals(" ".join(words))


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.text(max_size=80))
def test_character_soup(text: str) -> None:
    only_refusals(text)


GOOD = (
    "def f(x):\n    return {{ select count(*) as n from x where a > 1 groupby b with epsilon 0.5 }}\nr = {a: [1, 2]}\n"
)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.integers(0, len(GOOD)), st.integers(0, 6), st.sampled_from([*WORDS, "\n"]))
def test_a_program_with_one_wound(place: int, cut: int, word: str) -> None:
    only_refusals(GOOD[:place] + word + GOOD[place + cut :])


@pytest.mark.parametrize(
    "text",
    ["\n" * 50_000, " " * 50_000, "#" * 50_000, "# c\n" * 20_000, "}" * 50_000, "x = 'a' + " * 50_000, "(" * 50_000,
     "\n    ".join(["if x:"] * 5_000), " \n" * 20_000 + "else", '"' * 50_000, "x = 1 # c\n" * 3_000],
    ids=range(11),
)  # fmt: skip
def test_long_texts_take_bounded_time(text: str) -> None:
    start = time.process_time()
    only_refusals(text)
    assert time.process_time() - start < 8
