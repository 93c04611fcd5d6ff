"""Lines of pandas, Spark, R, dplyr, SQL, Stata, Excel and scikit-learn lead to the line that means the same."""

from __future__ import annotations

import declared
import pytest
from habits import faults_of, habits, meaning, told

from jostle.diagnostics import Diagnostic
from jostle.mistakes.foreign import Nothing, Unread, programs
from jostle.mistakes.foreign.statements import Meanings, lines_of
from jostle.source import Source
from jostle.tools.session import Session

LEAST = {"a": (0.95, 0.02), "b": (0.86, 0.05), "c": (0.88, 0.08), "d": (0.74, 0.13)}
"""What part is told best, at least, and what part misleads or passes, at most: lists b and d were never mended by."""


def read(line: str) -> list[str]:
    reader = Meanings(
        {"people": ["age", "city", "hours", "old"], "towns": ["city", "size"]}, {"g": ["city", "n"]}, ["n"]
    )
    reader.truths = {"old"}
    return lines_of(line, reader)


@pytest.mark.parametrize("name", sorted(LEAST))
def test_a_program_as_it_should_be_is_right(name: str) -> None:
    rights = [habit.right for habit in habits(name) if habit.right]
    assert len(rights) >= 70
    assert [right for right in rights if faults_of(right) or not meaning(right)] == []


@pytest.mark.parametrize("name", sorted(LEAST))
def test_most_are_led_out_and_few_are_misled(name: str) -> None:
    grades = [told(habit).grade for habit in habits(name)]
    many = sum(grade != "right" for grade in grades)
    top, wrong = LEAST[name]
    assert grades.count("top") >= top * many
    assert grades.count("misleads") + grades.count("passes") <= wrong * many


@pytest.mark.slow
@pytest.mark.parametrize(("half", "top", "wrong"), [("mend", 0.84, 0.07), ("sealed", 0.77, 0.10)])
def test_most_declarations_and_choices_are_led_out(half: str, top: float, wrong: float) -> None:
    grades = [declared.told(entry)[0] for entry in declared.entries(half)]
    many = sum(grade != "right" for grade in grades)
    assert many > 55 and grades.count("top") >= top * many
    assert grades.count("misleads") + grades.count("passes") <= wrong * many


def query(text: str, amount: str = "0.1") -> str:
    return f"m = {{{{ select {text} with epsilon {amount} }}}}"


SAME = {
    'm = people.groupby("city").age.mean()': query("avg(age) as age from people groupby city"),
    'm = people[people["age"] > 40]["hours"].sum()': query("sum(hours) from people where age > 40"),
    'm = people.groupby("city").age.agg(["min", "max"])': query(
        "min(age) as min, max(age) as max from people groupby city"
    ),
    "m <- people %>% filter(old == TRUE) %>% summarise(n = n())": query("count(*) as n from people where old"),
    'm = people.withColumn("x", F.col("age") * 2)': "m = derive(people, x = age * 2)",
    "m = select city, count(*) n from people where age >= 18 group by city having count(*) > 3": query(
        "count(*) as n from people where age >= 18 groupby city having n > 3"
    ),
    'm = COUNTIF(people[age], ">40")': query("count(*) from people where age > 40"),
    'm = COUNTIF(people[city], "<>Ames")': query('count(*) from people where city != "Ames"'),
    'keep if age > 40 & city == "Ames"': 'people = where(people, age > 40 and city == "Ames")',
    "m = people.age.quantile(q=0.9)": query("quantile(age, 0.9) from people"),
    'm = people.merge(towns, on="city", how="left")': "m = {{ select * from people left join towns on city }}",
    'm = g.sort_values("n", ascending=False).head(2)': 'm = [reversed(sorted(g, "n"))[i] for i in 0..1]',
    "m = round(mean(people$age), 1)": "m = round({{ select avg(age) from people with epsilon 0.1 }}, 1)",
    "m = sum(1 for p in people if p.age > 40)": query("count(*) from people where age > 40"),
    "m = sum(p.age for p in people) / len(people)": query("avg(age) from people"),
    "m = the average age of people": query("avg(age) from people"),
    "m = {{ select mean age from people for each city with epsilon 0.1 }}": query("avg(age) from people groupby city"),
    "m = np.average(people.age, weights=people.hours)": query("sum(age * hours) / sum(hours) from people"),
    'print(f"{n:.1f} people")': 'print(round(n, 1), "people")',
    'print("people: %d" % n)': 'print("people:", round(n))',
    "m = g[g.city == 'Ames'].n": 'm = g["Ames"].n',
    "update people set age = age + 1 where old": "people = derive(people, age = age + 1 if old else age)",
    'private p = table("p.csv", described_by={"age": (0, 99), "city": ["A", "B"]}, protecting="rows", budget=1)': (
        'private p = table("p.csv") described by {age: 0..99, city: {"A", "B"}} protecting rows budget epsilon 1'
    ),
    "m = people.age.mean() with epsilon 0.5": query("avg(age) from people", "0.5"),
}


@pytest.mark.parametrize("line", SAME)
def test_a_line_means_the_same_in_jostle(line: str) -> None:
    assert read(line) == [SAME[line]]


@pytest.mark.parametrize(
    "line",
    [
        "m = people.age.sum(axis=1)",  # of each row
        "m = people.city.value_counts(bins=3)",
        "m = people %>% count(city, wt = hours)",
        "m = people.groupby('city').size().iloc[3]",
        "m = mean(people$age, trim = 0.1)",
        "m = {{ select count(*) from people where age > 40 and with epsilon 0.1 }}",
        "m = {{ select distinct count(city) from people with epsilon 0.1 }}",
        "m = people.frobnicate()",
        "m = 1,000",
        "release {{ select count(*) from people with epsilon 0.1 }}",
    ],
)
def test_what_says_more_than_is_understood_is_not_read(line: str) -> None:
    with pytest.raises(Unread):
        read(line)


@pytest.mark.parametrize(
    "line",
    [
        "m = people.age.shift(1)",
        "m = people %>% mutate(before = lag(age))",
        'm = people.groupby("city").filter(lambda d: len(d) > 9)',
        "a, b = train_test_split(people)",
        "m = people %>% group_by(city) %>% mutate(share = age / sum(age))",
    ],
)
def test_what_nothing_does_is_told(line: str) -> None:
    with pytest.raises(Nothing):
        read(line)


def check(line: str) -> list[Diagnostic]:
    columns = '{age: 0..99, hours: 0..80, city: {"Ames", "Cork"}}'
    before = f'private people = table("p.csv") described by {columns} protecting rows budget epsilon 1\n'
    return Session().check(Source("program.jst", f"{before}{line}\n"))


def test_a_loop_over_rows_is_a_query_of_them() -> None:
    fault, *_ = check("total = 0\nfor p in people:\n    if p.age > 40:\n        total += p.hours")
    line = query("sum(hours) from people where age > 40").replace("m =", "total =")
    assert fault.help == f"write `{line}` in place of lines 3 to 5"


def test_a_blank_line_ends() -> None:
    reader = Meanings({"people": ["age"]}, {}, [])
    assert programs.block(["n = len(people)", "", " "], reader, 0) == [
        "n = {{ select count(*) from people with epsilon 0.1 }}", "", " ",
    ]  # fmt: skip


def test_a_sign_with_nothing_behind_it_is_not_left_out() -> None:
    (fault,) = check("x = 1 +")
    assert "`" not in fault.help


def test_what_was_spent_is_asked_of_a_source_also_after_a_query() -> None:
    faults = check("n = {{ select count(*) from people with epsilon 0.1 }}\nprint(spent(0.1))")
    assert [fault.message for fault in faults] == ["`spent` takes a private source, not a number"]


def test_what_nothing_does_is_said_plainly_with_its_reason() -> None:
    (fault,) = check("m = people.age.shift(1)")
    assert fault.help.startswith("nothing here does `shift`: the rows of a table have no order")


def test_two_lines_of_a_model_are_one_call() -> None:
    fault, *_ = check('m = LinearRegression()\nm.fit(people[["age"]], people["hours"])')
    assert "linear_regression" in fault.help and fault.help.endswith("leave line 3 out")


@pytest.mark.parametrize(
    "line", ["m = people[[[", "m = people.{", "m = ((((people %>% ", "m = %>% people", "m = a.b.c[d]("]
)
def test_no_text_is_an_internal_error(line: str) -> None:
    faults = check(line)
    assert faults and all("internal error" not in fault.message for fault in faults)
