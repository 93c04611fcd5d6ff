"""A select is bound once: programs in which what was bound before means something else the next time."""

from __future__ import annotations

from pathlib import Path

import pytest

from jostle.diagnostics import Refusal
from jostle.events import Event
from jostle.tools.session import Session

PEOPLE = "who,age,city\n" + "".join(f"{i // 4},{i % 100},{'Ames' if i % 4 else 'Cork'}\n" for i in range(400))
CITY, BUDGET = 'city: {{"Ames", "Cork"}}', "budget epsilon 1e9"
ROWS = f'private people = table("{{0}}") described by {{{{age: 0..99, {CITY}}}}} protecting rows {BUDGET}\n'
OLD = f'private old = table("{{1}}") described by {{{{age: 0..50, {CITY}}}}} protecting rows {BUDGET}\n'
PERSONS = f'private old = table("{{1}}") described by {{{{age: 0..99, {CITY}}}}} protecting who up to 4 rows {BUDGET}\n'


@pytest.fixture
def run(tmp_path: Path):  # type: ignore[no-untyped-def]
    """Runs a program after its declarations; gives its names and the measurements that a trace has of it."""
    one, two = tmp_path / "people.csv", tmp_path / "old.csv"
    one.write_text(PEOPLE)
    two.write_text(PEOPLE.replace("Cork", "Ames"))

    def go(text: str, declarations: str = ROWS) -> tuple[list[float], list[Event]]:
        session = Session(look=False)
        result = session.run_text(declarations.format(one, two) + text)
        answers = [round(float(answer)) for answer in result.released["answers"]]
        return answers, [event for event in result.events if event.kind == "measure"]

    return go


def test_a_variable_in_a_condition_has_the_value_of_the_time(run) -> None:  # type: ignore[no-untyped-def]
    asked = "{{ select count(*) from people where age >= cut with epsilon 1e6 }}"
    answers, _ = run(f"release answers = [{asked} for cut in [0, 20, 99]]\n")
    assert answers == [400, 320, 4]


def test_a_column_that_becomes_a_variable_is_refused_as_before(run) -> None:  # type: ignore[no-untyped-def]
    text = "def f() = {{ select count(*) from people where age > 40 with epsilon 1e6 }}\na = f()\n"
    assert run(text + "release answers = [a, f()]\n")[0] == [236, 236]
    with pytest.raises(Refusal, match="`age` is a column and a variable"):
        run(text + "age = 3\nrelease answers = [a, f()]\n")


def test_a_parameter_that_is_called_like_a_column_is_no_column(run) -> None:  # type: ignore[no-untyped-def]
    text = 'def f(t) = {{ select count(*) from t where city == "Cork" with epsilon 1e6 }}\n'
    assert run(text + "release answers = [f(people), f(people)]\n")[0] == [100, 100]
    with pytest.raises(Refusal, match="`city` is a column and a variable"):
        run(text.replace("f(t)", "f(t, city)") + 'release answers = [f(people, "Cork")]\n')


def test_a_function_of_rows_that_the_program_redefines(run) -> None:  # type: ignore[no-untyped-def]
    text = "def f() = {{ select count(*) from people where floor(age / 50) == 1 with epsilon 1e6 }}\na = f()\n"
    assert run(text + "release answers = [a, f()]\n")[0] == [200, 200]
    assert run(text + "def floor(x) = x\nrelease answers = [a, f()]\n")[0] == [200, 4]


def test_another_table_with_the_same_columns_is_read_and_charged(run) -> None:  # type: ignore[no-untyped-def]
    text = 'def f(t) = {{ select count(*) from t where city == "Cork" with epsilon 1e6 }}\n'
    answers, events = run(text + "release answers = [f(people), f(old), f(people)]\n", ROWS + PERSONS)
    assert answers == [100, 0, 100]
    assert [event.fields["sources"] for event in events] == [["people"], ["old"], ["people"]]
    assert [event.fields["stability"] for event in events] == [1, 4, 1]
    assert events[1].fields["scale"] == pytest.approx(4e-6)


def test_other_bounds_of_a_column_give_other_noise(run) -> None:  # type: ignore[no-untyped-def]
    text = "def f(t) = {{ select sum(age) from t with epsilon 1e6 }}\n"
    answers, events = run(text + "release answers = [f(people), f(old), f(people)]\n", ROWS + OLD)
    assert answers == [19800, 4 * sum(min(age, 50) for age in range(100)), 19800]
    assert [event.fields["sensitivity"] for event in events] == [99, 50, 99]


def test_a_part_is_charged_on_its_path_and_has_its_rows(run) -> None:  # type: ignore[no-untyped-def]
    answers, events = run(
        "release answers = [{{ select count(*) from part where age >= 0 with epsilon 1e6 }}"
        " for city, part in partition(people, city)]\n"
    )
    assert answers == [300, 100]
    assert len(events) == 2


def test_amounts_and_shares_are_those_of_the_time(run) -> None:  # type: ignore[no-untyped-def]
    text = "def f(e) = {{ select count(*) from people where age >= 0 with epsilon e }}\n"
    _, events = run(text + "release answers = [f(e) for e in [10, 1000, 10]]\n")
    assert [event.fields["epsilon"] for event in events] == [10, 1000, 10]
    text = "def f() = {{ select count(*) from people where age >= 0 with 1/2 }}\n"
    _, events = run(
        text + "answers = []\nwith epsilon 8:\n    answers = answers + [f()]\n"
        "with epsilon 80:\n    answers = answers + [f()]\nrelease answers = answers\n"
    )
    assert [event.fields["epsilon"] for event in events] == [4, 40]


def test_keys_are_those_that_the_condition_and_the_list_leave(run) -> None:  # type: ignore[no-untyped-def]
    text = "def f(t, keys) = {{ select count(*) as n from t groupby age over keys with epsilon 1e6 }}\n"
    answers, _ = run(text + "release answers = [len(f(people, {1, 2})), len(f(people, {3})), len(f(people, {1, 2}))]\n")
    assert answers == [2, 1, 2]
    text = "def f(t) = {{ select count(*) as n from t where age < 10 groupby age with epsilon 1e6 }}\n"
    answers, _ = run(text + "release answers = [len(f(people)), len(f(where(people, age < 5)))]\n")
    assert answers == [10, 10]


def test_keys_in_steps_are_those_of_the_table_that_is_read(run) -> None:  # type: ignore[no-untyped-def]
    """A table whose column is calculated otherwise has other keys, between the same bounds."""
    text = "def f(t) = sum({{ select count(*) as n from t groupby z with epsilon 1e6 }}.n)\n"
    tables = "steps = derive(people, z = 20 * floor(age / 25))\nevery = derive(people, z = clamp(age, 0, 60))\n"
    assert run(text + tables + "release answers = [f(steps), f(every), f(steps)]\n")[0] == [400, 400, 400]
    assert run(text + tables + "release answers = [f(every), f(steps)]\n")[0] == [400, 400]


def test_one_session_runs_a_text_again_on_another_file(tmp_path: Path) -> None:
    session, path = Session(look=False), tmp_path / "people.csv"
    program = (
        'private t = table("{}") described by {{age: {}}} protecting rows budget epsilon 1e9\n'
        "release n = {{{{ select sum(age) from t where age >= 0 with epsilon 1e6 }}}}\n"
    )
    path.write_text(PEOPLE)
    other = tmp_path / "other.csv"
    other.write_text("age\n7\n")
    first = session.run_text(program.format(path, "0..99"))
    second = session.run_text(program.format(other, "0..99"))
    third = session.run_text(program.format(other, "0..9"))
    assert [round(float(one.released["n"])) for one in (first, second, third)] == [19800, 7, 7]
    events = [event for one in (first, second, third) for event in one.events if event.kind == "measure"]
    assert [event.fields["sensitivity"] for event in events] == [99, 99, 9]


def test_a_condition_that_another_description_rules_out_is_refused(run) -> None:  # type: ignore[no-untyped-def]
    text = "def f(t) = {{ select count(*) from t where age >= 60 with epsilon 1e6 }}\n"
    assert run(text + "release answers = [f(people), f(people)]\n", ROWS + OLD)[0] == [160, 160]
    with pytest.raises(Refusal, match="60"):
        run(text + "release answers = [f(people), f(old)]\n", ROWS + OLD)


def test_columns_are_calculated_of_what_the_last_step_has_for_them(run) -> None:  # type: ignore[no-untyped-def]
    answers, _ = run("""
one = derive(people, x = age + 1)
two = derive(one, y = age * 2)
three = derive(two, x = x + y, age = x)
four = derive(three, age = age + x)
few = derive(pick(two, x, y), x = y)
release answers = [
    {{ select sum(x) from four with epsilon 1e7 }}, {{ select sum(age) from four with epsilon 1e7 }},
    {{ select sum(x) from few with epsilon 1e7 }}, {{ select sum(y) from few with epsilon 1e7 }}
]
""")
    ages = [i % 100 for i in range(400)]
    x, y = sum(3 * age + 1 for age in ages), sum(2 * age for age in ages)
    assert answers == [x, sum(age + 1 for age in ages) + x, y, y]
