"""One slip of a hand in a statement: the line without it is what is offered, and it checks clean."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

import pytest

import jostle
from jostle.diagnostics import Diagnostic, Refusal
from jostle.mistakes import typos
from jostle.source import Source, Span
from jostle.syntax.parser import parses
from jostle.tools.session import Session

BEFORE = (
    'private people = table("people.csv") described by {age: 0..99, city: {"Ames", "Cork"}, hours: 0..63} '
    "protecting rows budget epsilon 9\n"
    "g = {{ select count(*) as n, avg(hours) as hours from people groupby city with epsilon 1 }}\n"
    "xs = [3, 1, 2]\n"
)
RIGHT = "a = {{ select avg(hours) from people with epsilon 1 }}"
SLIPS = [
    ("a = {{ select avghours) from people with epsilon 1 }}", RIGHT),
    ("a = {{ select avg(hours from people with epsilon 1 }}", RIGHT),
    ("a = { select avg(hours) from people with epsilon 1 }}", RIGHT),
    ("a = {{ select avg(hours) in people with epsilon 1 }}", RIGHT),
    ("a = {{ select avg(hours) people with epsilon 1 }}", RIGHT),
    ("a = {{ selcet avg(hours) from people with epsilon 1 }}", RIGHT),
    ("a = {{ select avg(hours) from people with 1 epsilon }}", RIGHT),
    ('a = {{ select avg(hours) from people with epsilon "1" }}', RIGHT),
    ("a = {{ select avg(hours) from people with epsilon 50% }}", RIGHT.replace("1", "0.5")),
    ("a = {{ select avg(hours) from the people with epsilon 1 }}", RIGHT),
    ("a = {{ select avg(hours) form people with epsilon -1 }}", ""),  # two slips
    ("print(legt(people))", "print(left(people))"),
    ("print(xs0])", "print(xs[0])"),
    ("print(gn)", "print(g.n)"),
    ("print(xs[0]) )", "print(xs[0])"),
    ("  print(xs)", "begin the line at the margin, without spaces"),
    ("ys  [1, 2]", "ys = [1, 2]"),
    ("ys = 1, 2]", "ys = [1, 2]"),
    ("Xs = round(3.14, digts = 1)", "Xs = round(3.14, digits = 1)"),
    ("ys = append(Xs, 4)", "ys = append(xs, 4)"),
    ("a = {{ select avg(hours) from people with epsilon of 1 }}", RIGHT),
    ("a = {{ select count(*) from people where age is between 3 and 5 with epsilon 1 }}",
     "a = {{ select count(*) from people where age between 3 and 5 with epsilon 1 }}"),
    ("a = laplace(histogram(people, x = age), 0.5)", "a = laplace(histogram(people, x = age)) with epsilon 0.5"),
    ("a = where(age >= 18)", "a = where(people, age >= 18)"),
    ("print(g.Ames.n)", 'print(g["Ames"].n)'),
    ("print(round(xs[0], decimals = 1))", "print(round(xs[0], 1))"),
    ("print(g.n[0..1])", "print([g.n[i] for i in 0..1])"),
    ("for a in 1, 2: print(a)", "for a in [1, 2]: print(a)"),
    ("print(1 if xs[0] > 1)", "print(1 if xs[0] > 1 else none)"),
]  # fmt: skip


@pytest.fixture
def session(tmp_path: Path) -> Session:
    (tmp_path / "people.csv").write_text("age,city,hours\n30,Ames,40\n", encoding="utf-8")
    return Session(cwd=tmp_path)


@pytest.mark.parametrize(("wrong", "right"), SLIPS)
def test_the_line_without_the_slip_is_shown(wrong: str, right: str, session: Session) -> None:
    source = Source("text", BEFORE + wrong + "\n")
    faults = session.check(source)
    assert len(faults) == 1 and faults[0].span is not None and faults[0].span.line == 4
    shown = re.sub(r"^write `(.*)`$", r"\1", faults[0].help)
    assert shown == right if right else shown != wrong
    if right and faults[0].help.startswith("write"):
        assert session.check(Source("text", BEFORE + right + "\n")) == []


def test_clauses_of_a_select_of_persons_are_put_in_their_order(session: Session) -> None:
    """The line that was shown left `per person` out, so that it counted rows."""
    text = BEFORE.replace("protecting rows", "protecting city")
    (fault,) = session.check(
        Source("text", text + "a = {{ select count(*) as n from people up to 6 rows per person }}\n")
    )
    assert fault.help == "write `a = {{ select count(*) as n from people per person up to 6 rows }}`"


def test_a_slip_above_the_fault_is_shown_where_it_is(session: Session) -> None:
    text = 'private people = table(("people.csv")\n  described by {age: 0..99}\n  protecting rows budget epsilon 1\n'
    (fault,) = session.check(Source("text", text))
    assert fault.span is not None and (fault.span.line, fault.span.column) == (1, 23)
    assert fault.help == 'write `private people = table("people.csv")`'


def test_a_private_name_is_not_put_into_quotes_to_be_printed(session: Session) -> None:
    (fault,) = session.check(Source("text", BEFORE + "print(people)\n"))
    assert "select count(*) from people" in fault.help


@pytest.mark.parametrize(
    ("one", "other", "far"), [("from", "form", 1), ("rows", "rowws", 1), ("age", "AGE", 0), ("age", "income", 3)]
)
def test_distance(one: str, other: str, far: int) -> None:
    assert typos.distance(one, other) == typos.distance(other, one) == far


def test_likely_slips_differ_in_one_place_and_the_likeliest_come_first() -> None:
    text = "n = {{ select count* from people with epsilon 1 }}"
    fault = Diagnostic("SyntaxError", "`from` cannot stand here", Span(Source("text", text), 1, 22, 1, 26))
    every = typos.likely(text, 21, typos.names_of(text, fault), fault)
    assert every[0].cost < every[-1].cost and all(0 <= one.start <= one.end <= len(text) for one in every)


def test_tokens_tell_the_braces_of_a_description_from_those_of_a_query() -> None:
    assert [token.text for token in typos.tokens('{a: {"x"}} {{ n }} # }')] == [
        "{", "a", ":", "{", '"x"', "}", "}", "{{", "n", "}}",
    ]  # fmt: skip


@pytest.mark.parametrize(("text", "right"), [("x = 1", True), ("x = (1", False), ("x = = 1", False), ("", True)])
def test_parses(text: str, right: bool) -> None:
    assert parses(text) is right


@pytest.mark.parametrize(
    ("line", "message", "help"),
    [
        ("t = table()", "`table` opens something", 'as in `table("people.csv")`'),
        ('t = table("people.csv", 5)', "named by a text", 'as in `table("people.csv")`'),
        ("assert len(xs) > 2, xs[0] == 3", "is its message", "write `assert len(xs) > 2 and xs[0] == 3`"),
        ('q = "select count(*) from people"', "is a text", "write `q = {{ select count(*) from people with"),
        ("print(g.prod())", "has no `prod`", "it has `city`, `n`, `hours`"),
        ("people |> foo", "no pipes", "where `foo` is not defined"),
        ('x = released["n"]', "is not defined", "is read by its name"),
        ("m = {{ select count as n from people with epsilon 1 }}", "in brackets", "count(*) as n"),
        ("m = {{ select len(*) from people with epsilon 1 }}", "is none", "count(*)"),
        ("m = {{ select count(*) from people groupby zip with epsilon 1 }}", "no column `zip`", "the columns are"),
        ("m = {{ select count(*) from people groupby 1 with epsilon 1 }}", "none of their keys", "the column by which"),
    ],
)
def test_what_passed_or_misled_is_told(line: str, message: str, help: str, session: Session) -> None:
    fault = session.check(Source("text", BEFORE + line + "\n"))[0]
    assert message in fault.message and help in fault.help


def test_columns_described_in_brackets(session: Session) -> None:
    text = 'private p = table("people.csv") described (age in 0..99, hours: 0..63) protecting rows budget epsilon 1\n'
    (fault,) = session.check(Source("text", text))
    assert "described by {age: 0..99, hours: 0..63} protecting" in fault.help


def test_a_feature_that_gives_a_field_which_is_no_number_is_refused(session: Session) -> None:
    text = (
        "rows_in = Feature (data) { return data.rows }\nOne = Option (data) { return [1] }\n"
        "near = Utility (data, answers) { return 0 - len(answers) }\n"
        "choose = MkChoiceMaker among {One} informed by {rows_in} trained on [{rows: [1, 2, 3]}] wrt near\n"
    )
    (fault,) = session.check(Source("text", text))
    assert fault.message == "a Feature gives a number, and `data.rows` is none"


def test_a_clamp_with_its_ends_swapped_is_warned_of(session: Session) -> None:
    line = "m = {{ select avg(clamp(age, 65, 18)) from people with epsilon 1 }}\n"
    assert session.check(Source("text", BEFORE + line)) == []
    assert [one.help for one in session.warnings] == ["write `clamp(age, 18, 65)`"]


def test_arguments_of_python_that_are_none_are_refused() -> None:
    with pytest.raises(Refusal, match="`Session` has no argument `ledgr`") as error:
        jostle.Session(ledgr="x")  # type: ignore[call-arg]
    assert error.value.first.help == "did you mean `ledger`?"
    with pytest.raises(Refusal, match=r"`Session.bind` has no argument `protectng`"):
        jostle.Session().bind("a", {"x": [1]}, protectng="rows")  # type: ignore[call-arg]
    with pytest.raises(Refusal, match="missing a required argument"):
        jostle.Session().bind("a")  # type: ignore[call-arg]


def test_a_name_that_nothing_was_released_by_is_refused_with_those_that_there_are() -> None:
    released = jostle.Session().run_text("release total = 3").released
    assert released["total"] == 3 and released.get("totl") is None
    with pytest.raises(KeyError) as error:
        released["totl"]
    assert isinstance(error.value, Refusal) and error.value.first.help == "did you mean `total`?"


def test_a_comment_does_not_move_what_is_after_it() -> None:
    text = "with epsilon 1:  # of the ages\n    a = {{ selct avg(hours) from people }}"
    (fault,) = Session().check(Source("text", f"{BEFORE}{text}\n"))
    assert fault.help == "write `a = {{ select avg(hours) from people }}`"
    assert [text[one.start : one.end] for one in typos.tokens(text)][:4] == ["with", "epsilon", "1", ":"]
    assert text[(one := typos.tokens(text)[-1]).start : one.end] == "}}"


RANGES = 'age: 0..99, city: {"Ames", "Cork"}, hours: 0..63'
DOMAINS = [
    'age: integer from 0 to 99, city: one of ["Ames", "Cork"], hours: between 0 and 63',
    'age: int(0, 99), city: category("Ames", "Cork"), hours: 0 to 63',
]
CLAUSES = "protecting city up to 2 rows budget epsilon 4, delta 1e-6 counted by basic"


@pytest.mark.parametrize("domains", DOMAINS)
@pytest.mark.parametrize("clauses", [CLAUSES, "protecting rows, public size budget rho 1"])
def test_all_columns_of_a_description_are_written_anew(domains: str, clauses: str, session: Session) -> None:
    """Whatever else the declaration says, and however long it is."""
    many = ", ".join(f"a_column_with_a_long_name_{i}: number" for i in range(8))
    for wrong, right in ((domains, RANGES), (f"{domains}, {many}", f"{RANGES}, {many.replace('number', 'real')}")):
        lines = [f'private t = table("people.csv") described by {{{text}}} {clauses}' for text in (wrong, right)]
        (fault, *_) = session.check(Source("text", f"{lines[0]}\n"))
        assert f"`{lines[1]}`" in fault.help
    assert "there is no column" in fault.help  # the long names are none of the file


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("protecting hours (2 rows)", "protecting hours up to 2 rows budget epsilon 1"),
        ("protecting hours one row each", "protecting hours up to 1 row budget epsilon 1"),
        ("protecting row level", "protecting rows budget epsilon 1"),
        ("protecting rows up to 2", ""),  # a promise, or persons
        ("max budget 2 protecting rows", "protecting rows budget epsilon 2"),
        ("protecting rows budget epsilon = 2 per run", "protecting rows budget epsilon 2"),
        ("protecting rows budget epsilon = 2 per query", ""),  # it is for all
    ],
)
def test_a_declaration_is_read_by_what_stands_in_it(wrong: str, right: str, session: Session) -> None:
    before = f'private t = table("people.csv") described by {{{RANGES}}} '
    more = "" if "budget" in wrong else " budget epsilon 1"
    (fault, *_) = session.check(Source("text", f"{before}{wrong}{more}\n"))
    assert f"write `{before}{right}`" in fault.help if right else "private t" not in fault.help


def test_a_choice_is_read_by_what_stands_in_it(session: Session) -> None:
    text = (
        "Flat = Option (data) { return laplace(data.database) }\n"
        "near = Utility (data, answers) { return -rmse(answers, cells(data.database)) }\n"
        "many = Feature (data) { return laplace(size(data.database)) }\n"
        "c = MkChoiceMaker {words} {{Flat}} looking at {{many}} training data [counts([1, 2])] {wrt} near\n"
    )
    right = "`c = MkChoiceMaker among {Flat} informed by {many} trained on [counts([1, 2])] wrt near`"
    for words, wrt, told in (("with", "utility", True), ("over", "judged by", True), ("with", "minimising", False)):
        program = text.replace("{words}", words).replace("{wrt}", wrt).replace("{{", "{").replace("}}", "}")
        assert (right in session.check(Source("text", program))[0].help) is told


def test_examples_have_the_names_of_the_program(session: Session) -> None:
    text = BEFORE.replace("g =", "towns =")
    line = "n = {{ select count(*) from people where age > avg(age) with epsilon 1 }}"
    assert "select avg(age) from people" in session.check(Source("text", f"{text}{line}\n"))[0].help
    assert '`print(towns["Ames"].n)`' in session.check(Source("text", f'{text}print(towns.n["Ames"])\n'))[0].help
    assert '`g["Ames"]`' in session.check(Source("text", f'{text}g = 1\nprint(towns.n["Oslo"])\n'))[0].help


@pytest.mark.parametrize("line", [
    "x = (nobody)", "release x = (nobody)", "x = [(nobody), 1]", "print((nobody) + 1)",
    "`no[body`(1)", "x = `no(body`(1) + 1", "print(`no*body`)", "x = `no(body`.n(3)",
])  # fmt: skip
def test_an_unknown_name_is_no_pattern(line: str) -> None:
    (fault,) = Session().check(Source("p.jst", line + "\n"))
    assert fault.kind == "NameError" and fault.message.endswith(" is not defined")


ODD = [*'()[]{*+?\\|.^$"`', "}}", "==", "(nobody)", "`a (b`", "`x[y`", "`c*`"]


@pytest.mark.slow
def test_lines_with_odd_signs_and_names_are_no_internal_error() -> None:
    """Names and signs of a program stand in the patterns by which its messages are found."""
    random, session = Random(7), Session()
    lines = [line for name in ("first", "choose", "everyday") for line in program_lines(name)]
    for _ in range(300):
        pieces = re.findall(r"\w+|\s+|[^\w\s]", random.choice(lines))
        pieces[random.randrange(len(pieces))] = random.choice(ODD)
        text = DESCRIBED + "".join(pieces) + "\n"
        assert not [one for one in session.check(Source("p.jst", text)) if one.kind == "InternalError"], text


DESCRIBED = (
    'private t = table("t.csv") described by {age: 0..99, `a (b`: 0..9, `x[y`: text, `c*`: 0..3} protecting rows '
    "budget epsilon 9\ng = {{ select count(*) as n from t groupby age with epsilon 0.1 }}\n"
)


def program_lines(name: str) -> list[str]:
    text = (Path(__file__).parents[2] / "programs" / f"{name}.jst").read_text(encoding="utf-8")
    return [line for line in text.split("\n") if line.strip() and not line.startswith("#")]
