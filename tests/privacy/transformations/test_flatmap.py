"""A row for each item of a list: which rows there are, and how many change when one does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from changed_rows import Tables, sizes, worst

from jostle.diagnostics import Refusal
from jostle.plan.domains import Categories, Integer
from jostle.plan.plan import Apply, Column, Constant
from jostle.privacy.transformations.flatmap import explode
from jostle.tools.session import Result

SCHEMA = (("a", Integer(0, 3)), ("b", Integer(2, 9)), ("c", Categories(("x", "y"))))
ROWS = [("1", "2", "x"), ("", "9", "y"), ("", "", "z")]
A, B, C = Column("a"), Column("b"), Column("c")


def test_rows_for_items(tables: Tables) -> None:
    t = tables.table(ROWS, SCHEMA, "t")
    made = explode(t, [("item", [A, B, Apply("+", (A, Constant(1.0)))])])
    assert tables.rows(made) == Counter({(1, 2, "x", 1.0): 1, (1, 2, "x", 2.0): 2, (None, 9, "y", 9.0): 1})
    assert made.domains == dict(SCHEMA) | {"item": Integer(0, 9)}
    both = explode(t, [("name", [Constant("a"), Constant("b")]), ("item", [A, B])])
    assert tables.rows(both) == Counter({(1, 2, "x", "a", 1): 1, (1, 2, "x", "b", 2): 1, (None, 9, "y", "b", 9): 1})
    assert both.domains["name"] == Categories(("a", "b")) and both.origin is None
    assert tables.rows(explode(t, [("a", [B])])) == Counter({(2, 2, "x"): 1, (9, 9, "y"): 1})


@pytest.mark.parametrize("most", [1, 2, 3])
def test_every_small_pair_of_neighbours(tables: Tables, most: int) -> None:
    contents = sizes(ROWS, 3)
    t = [tables.table(rows, SCHEMA, "t") for rows in contents]
    items = [A, B, Constant(7.0)][:most]
    assert worst(tables, [t], [contents], 0, lambda a: explode(a, [("item", items)])) == (most, most)
    twice = worst(tables, [t], [contents], 0, lambda a: explode(explode(a, [("i", items)]), [("j", items)]))
    assert twice == (most**2, most**2)


def test_lists_of_no_or_two_lengths(tables: Tables) -> None:
    t = tables.table(ROWS, SCHEMA, "t")
    for columns in ([], [("i", [])], [("i", [A]), ("j", [A, B])]):
        with pytest.raises(Refusal):
            explode(t, columns)


PEOPLE = """private t = table("t.csv") described by {who: text, a: 0..9, b: 0..9}
    protecting who up to 2 rows budget epsilon 9
n = {{ select count(*) from explode(t, item = [a, b, a + b]) with epsilon 6 }}
m = {{ select sum(item) from explode(t, item = [b + i for i in 1..5 if i % 2 == 1]) with epsilon 3 }}
release n
"""


def test_the_rows_of_a_person(attempt: Callable[..., Result]) -> None:
    """Two rows of a person are six."""
    result = attempt(PEOPLE, t="who,a,b\nann,1,2\n")
    assert result.ok, result.diagnostics
    assert [e.fields["scale"] for e in result.events if e.kind == "measure"] == pytest.approx([1.0, 28.0], rel=1e-6)
