"""What tells that a person has one value of the column that tells persons apart, read of exact numbers.

Each cell stands in several rows, and the exact numbers are read by a huge ε: how many persons there are, how many rows
of theirs stay, how many different values of the column, and how many pairs of a person and a value. If a value were
no function of the person, there would be more pairs than persons, and one person would move `count(distinct id)`, or
the rows of `per person groupby id`, by more than the 1 that is paid for. As text persons and values are the same.
"""

from __future__ import annotations

from jostle.source import Source
from jostle.tools.session import Session

ROWS, MOST = 3, 2
DESCRIPTIONS = {
    "text": "text", "listed": '{"7", "07", "0", "true", "0.1", "1.5", "2024-03-01"}', "whole": "-9..99",
    "real": "-1.5..9.5", "numbers": "{0, 1, 7}", "day": "date", "moment": "time", "truth": "{true, false}",
}  # fmt: skip


def program(source: str) -> str:
    return "".join(
        f"""private {name} = {source} described by {{id: {domain}, v: 0..9}} protecting id up to {MOST} rows
    budget epsilon 1000000
release {name}_values = {{{{ select count(distinct id) from {name} with epsilon 10000 }}}}
{name}_both = {{{{ select count(*) as n from {name} per person groupby id }}}}
release {name}_pairs = {{{{ select count(*) from {name}_both with epsilon 10000 }}}}
release {name}_rows = {{{{ select count(*) from {name} with epsilon 10000 }}}}
{name}_each = {{{{ select count(*) as n from {name} per person }}}}
release {name}_persons = {{{{ select count(*) from {name}_each with epsilon 10000 }}}}
"""
        for name, domain in DESCRIPTIONS.items()
    )


def check_one_value_each(session: Session, source: str, persons: int | None = None) -> None:
    result = session.attempt(Source("p.jst", program(source)))
    assert result.ok, [d.message for d in result.diagnostics]
    seen = {name: round(float(number)) for name, number in dict(result.released).items()}
    for name in DESCRIPTIONS:
        values, pairs, rows, many = (seen[f"{name}_{what}"] for what in ("values", "pairs", "rows", "persons"))
        assert many == (persons or many) and rows == MOST * many, name
        assert values <= pairs <= many, name  # fewer where a value is none
    assert seen["text_values"] == seen["text_pairs"] == seen["text_persons"] > 0
