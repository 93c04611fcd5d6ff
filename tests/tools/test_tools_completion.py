"""What may be typed next: words that the parser would take, names, columns and fields; and what an entry would cost."""

from __future__ import annotations

from pathlib import Path

import pytest

from jostle.diagnostics import Refusal
from jostle.events import Event
from jostle.language.builtins import EVERYWHERE
from jostle.source import Source
from jostle.syntax.parser import colour_tokens, expected, last_statement, lexicon
from jostle.tools.completion import Vocabulary, argument, command, complete, vocabulary_of
from jostle.tools.expected_errors import prices
from jostle.tools.repl import CostPreview
from jostle.tools.session import Session
from jostle.tools.show import Provenance, describe, documented, escape_sequence, is_of_library, protocol, reasons

ROOT = Path(__file__).resolve().parents[2]
PEOPLE = """private people = table("people.csv") described by {age: 0..99, sex: {"F", "M"}}
    protecting rows budget epsilon 1
"""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('private p = table("x") ', {"described", "protecting", "budget"}),
        ('private p = table("x")\n    ', {"described", "protecting", "budget"}),
        ("c = MkChoiceMaker among {a} ", {"informed"}),
        ("c = MkChoiceMaker among {a} informed by {f} ", {"trained"}),
        ("x = {{ select count(*) ", {"from", "as"}),
        ("x = {{ select count(*) from p ", {"where", "groupby", "join", "with"}),
        ("x = f(1) with ", {"epsilon", "rho"}),
        ("private p = t protecting rows, ", {"public", "at"}),
        ("x = 1 if y ", {"else"}),
        ("for x ", {"in"}),
    ],
)
def test_clause_words_that_may_come_next(text: str, words: set[str]) -> None:
    assert words <= set(expected(text).words)


@pytest.mark.parametrize("text", ["# wh", 'x = "ab', "x = 'ab"])
def test_nothing_is_offered_in_comments_and_texts(text: str) -> None:
    asked = expected(text)
    assert not asked.words and not asked.name


def test_columns_come_first_in_a_query_and_fields_after_a_dot() -> None:
    known = Vocabulary({"people": "a private table"}, {"people": ("age", "sex")}, {"d": ("database", "queries")})
    typed, found = complete("x = {{ select count(*) from people where a", known)
    assert typed == "a" and found[0].word == "age" and found[0].kind == "column"
    assert [c.word for c in complete("x = d.da", known)[1]] == ["database"]
    assert "select" not in {c.word for c in complete("x = se", known)[1]}
    assert "people" in {c.word for c in complete("x = peo", known)[1]}


KNOWN = Vocabulary(
    {"people": "a private table", "ages": "a private cube of counts", "n": "a number", "abs": "a function",
     "histogram": "a function", "plot": "a function", "twice": "a function"},
    {"people": ("age", "city")}, {"g": ("city", "n")}, {"city": ("Ames", "Cork")}, {"g": ("city", "n")},
    {"twice": ("x", "times")}, ROOT / "programs",
)  # fmt: skip
ROWS = ["age", "city", "n", "abs", "twice"]


@pytest.mark.parametrize(
    ("text", "offered"),
    [
        ("use his", ["histograms"]),
        ('private p = table("data/villa', ["data/village.csv"]),
        ("x = {{ select count(*) from ", ["people", "ages"]),
        ("x = {{ select count(*) from people where ", ROWS),
        ("x = {{ select count(*) from people groupby ", ROWS),
        ("x = {{ select count(*) from people where age > 3 and ci", ["city"]),
        ('x = {{ select count(*) from people where city == "', ["Ames", "Cork"]),
        ('x = {{ select count(*) from people where city in {"Ames", "', ["Ames", "Cork"]),
        ("x = {{ select count(*) from people where city == ", ['"Ames"', '"Cork"', *ROWS]),
        ('x = {{ select count(*) from people groupby city over {"C', ["Cork"]),
        ("x = {{ select count(*) as many from people groupby city having ma", ["many"]),
        ("old = where(people, ci", ["city"]),
        ("g[0].", ["city", "n"]),
        ("twice(x = 3, ti", ["times = "]),
        ('plot("a", log', ["log_x = ", "log_y = "]),
        ('x = "from ', []),
        ("# from ", []),
    ],
)
def test_what_fits_the_place_is_offered(text: str, offered: list[str]) -> None:
    assert [c.word for c in complete(text, KNOWN)[1]] == offered


def test_an_aggregate_is_offered_where_one_may_stand() -> None:
    columns = {c.word for c in complete("x = {{ select ", KNOWN)[1]}
    assert {"count", "age"} <= columns and "people" not in columns
    inside = {c.word for c in complete("x = {{ select avg(", KNOWN)[1]}
    assert "age" in inside and "count" not in inside


@pytest.mark.parametrize(
    ("text", "offered"),
    [
        (":lo", ["load"]), (":load choose_1", ["choose_1d.jst"]), (":type peo", ["people"]), (":time x", []),
        (":explain Budg", ["BudgetExceeded"]), (":help friedman", ["friedman_schuster"]),
        (":cost {{ select count(*) from ", ["people", "ages"]),
    ],
)  # fmt: skip
def test_commands_are_completed(text: str, offered: list[str]) -> None:
    assert [c.word for c in command(text, KNOWN)[1]] == offered


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("x = hb(ages, pre", ("hb", 1, "")), ('plot("a, b", x = [1, 2], y = ', ("plot", 2, "y")),
        ("x = {{ select quantile(age, ", ("quantile", 1, "")), ("x = 1", None), ("x = (1 + ", None),
    ],
)  # fmt: skip
def test_the_argument_that_is_being_typed(text: str, found: object) -> None:
    assert argument(text) == found


def test_a_completion_does_not_parse_the_whole_program() -> None:
    many = "\n".join(f"def f{k}(x):\n    return x + {k}" for k in range(250)) + "\ny = {{ select count(*) from p wh"
    assert last_statement(many).count("\n") == 0
    assert "where" in {c.word for c in complete(many, Vocabulary())[1]}


@pytest.mark.parametrize("path", sorted(ROOT.glob("programs/*.jst")), ids=lambda p: p.name)
def test_colours_leave_the_text_as_it_is(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert "".join(piece for _, piece in colour_tokens(text)) == text


def test_the_words_are_those_of_the_grammar() -> None:
    known = lexicon()
    assert {"def", "select", "MkChoiceMaker", "true"} <= set(known.reserved)
    assert {"private", "release", "with"} <= set(known.opening)
    assert {"described", "groupby", "wrt", "row", "rows", "epsilon"} <= set(known.clause)


# Sessions -------------------------------------------------------------------------------------------


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text("age,sex\n" + "".join(f"{k % 90},F\n" for k in range(100)))
    return Session()


def enter(session: Session, preview: CostPreview, text: str) -> None:
    session.execute(Source("entry", text + "\n"))
    preview.ran(text)


def test_the_price_of_an_entry_is_known_before_it_runs(session: Session) -> None:
    preview = CostPreview(session)
    enter(session, preview, PEOPLE)
    count = "{{ select count(*) from people with epsilon 0.3 }}"
    assert prices(preview.price(count)) == ["people: ε 0.3"]
    assert preview.steep(count) == []
    enter(session, preview, f"n = {count}")
    enter(
        session,
        preview,
        f"def twice():\n    return [{count} for i in 1..2]".replace("0.3", "0.2"),
    )
    assert prices(preview.steep("twice()")) == ["people: ε 0.4"]
    assert preview.price("n + 1") == [] and preview.price("x = (1") == []


def test_the_price_is_known_after_cells_that_show_a_value(session: Session) -> None:
    """A value in a cell of several statements hid its declarations, and what came later was said to cost nothing."""
    preview = CostPreview(session)
    count = "{{ select count(*) from people with epsilon 0.3 }}"
    enter(session, preview, PEOPLE + f"n = {count}\nn + 1  # shown\nif n > 0:\n    n\nn")
    assert prices(preview.price(count)) == ["people: ε 0.3"] and preview.price("n\n2 * n") == []
    assert prices(preview.price(f"[\n{count} for i in 1..2\n]\nn")) == ["people: ε 0.6"]


def test_types_say_what_is_public(session: Session) -> None:
    enter(session, CostPreview(session), PEOPLE + "h = histogram(people, x = age / 10)\nn = 3")
    names = session.names()
    assert describe("people", names["people"]).splitlines() == [
        "people: a private table", "  private to people (protecting rows), stability 1", "  age: 0..99",
        '  sex: {"F", "M"}',
    ]  # fmt: skip
    assert describe("h", names["h"]).endswith("  x (10)") and describe("n", names["n"]) == "n: a number\n  public"
    known = vocabulary_of(names, EVERYWHERE)
    assert known.columns["people"] == ("age", "sex") and "x_range" in known.fields["h"]


def test_names_of_the_session_are_apart_from_those_of_the_library(session: Session) -> None:
    enter(session, CostPreview(session), PEOPLE + "use histograms\nn = 3\ndef twice(x): return 2 * x")
    names = session.names()
    assert [name for name in sorted(names) if not is_of_library(name, names)] == ["histograms", "n", "people", "twice"]
    assert documented("dawa", names).startswith("dawa(db, queries)") and documented("n", names) == ""
    assert describe("twice", names["twice"]).startswith("twice(x): a function")


def test_a_second_budget_for_the_same_data_is_told(session: Session) -> None:
    enter(session, CostPreview(session), PEOPLE)
    enter(session, CostPreview(session), PEOPLE)
    assert session.warnings == []
    enter(session, CostPreview(session), PEOPLE.replace("epsilon 1", "epsilon 5"))
    assert "with a budget of epsilon 1: it stands" in session.warnings[0].message


def test_reasons_name_the_entry() -> None:
    made = Provenance(Source("entry 2", "n = 1 + 1\n"), [])
    assert "entry 2: n = 1 + 1" in reasons("n", made) and "nothing was chosen" in reasons("n", made)
    paid = Event(1, None, "measure", "count", None, {"epsilon": 0.1, "sources": ["people"], "mechanism": "laplace"})
    assert "laplace" in reasons("n", Provenance(made.source, [paid]))


def test_a_refusal_leaves_the_foresight_as_it_was(session: Session) -> None:
    preview = CostPreview(session)
    enter(session, preview, PEOPLE)
    with pytest.raises(Refusal):
        session.execute(Source("entry", "print(people)\n"))
    assert prices(preview.price("{{ select count(*) from people with epsilon 1 }}")) == ["people: ε 1"]


# Pictures in a terminal -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("environment", "how"),
    [
        ({"TERM": "xterm-kitty"}, "kitty"),
        ({"TERM_PROGRAM": "iTerm.app"}, "iterm"),
        ({"TERM": "xterm-256color"}, None),
        ({"TERM": "xterm-kitty", "TMUX": "/tmp/x"}, None),
    ],
)
def test_terminals_that_show_pictures(environment: dict[str, str], how: str | None) -> None:
    assert protocol(environment) == how


def test_pictures_are_sent_in_pieces() -> None:
    sent = escape_sequence(b"x" * 10_000, "kitty")
    assert sent.count("\x1b_G") == 4 and sent.count("m=1;") == 3 and sent.count("m=0;") == 1
    assert escape_sequence(b"abc", "iterm") == "\x1b]1337;File=inline=1;size=3:YWJj\x07\n"
