"""Groups by listed combinations of keys, and open keys of several columns."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from typing import Any

import numpy as np
import pytest
from changed_rows import Tables, sizes, worst
from recording import Bench

from jostle.accounting.definitions import rho_of
from jostle.diagnostics import Refusal
from jostle.plan.plan import Apply, Categories, Column, Constant, Filter, Integer, Open
from jostle.privacy.transformations.transform import PLACE, where, with_place
from jostle.tools.session import Result

SCHEMA = (("a", Integer(0, 3)), ("c", Categories(("x", "y"))))
ROWS = [("1", "x"), ("1", "y"), ("", "x"), ("3", "y")]
A, C = Column("a"), Column("c")


def test_places_of_combinations(tables: Tables) -> None:
    t = tables.table(ROWS * 2, SCHEMA, "t")
    placed = with_place(t, [A, C], [(3.0, "y"), (1.0, "x"), (1.0, "z")])
    places = tables.engine.group(placed.plan, (), ())
    assert places == [] and placed.domains[PLACE] == Integer(0, 2) and list(placed.domains)[:2] == ["a", "c"]
    values, counts = tables.engine.tally(placed.plan, Column(PLACE))
    assert dict(zip(values.tolist(), counts.tolist(), strict=True)) == {0.0: 2, 1.0: 2}
    over = with_place(t, [Apply(">", (A, Constant(1.0)))], [(True,), (False,)])
    assert dict(zip(*(v.tolist() for v in tables.engine.tally(over.plan, Column(PLACE))), strict=True)) == {
        0.0: 2,
        1.0: 4,
    }
    assert tables.engine.rows(with_place(t, [A], []).plan) == 0


@pytest.mark.parametrize(
    "rows",
    [
        [(1.0, "x"), (1.0, "y"), (1, "x")], [(0.0, "x"), (-0.0, "x")],
        [(datetime(9999, 1, 1, 0, 0, 0, 1),), (datetime(9999, 1, 1, 0, 0, 0, 2),)],
    ],
)  # fmt: skip
def test_a_combination_that_stands_twice_is_refused(tables: Tables, rows: list[tuple[Any, ...]]) -> None:
    """A row would meet both, and count twice at the price of one. Times beyond what doubles hold are equal."""
    t, keys = tables.table(ROWS, SCHEMA, "t"), [A, C]
    if isinstance(rows[0][0], datetime):
        t, keys = tables.table([("9999-01-01 00:00:00",)], (("m", Open("time")),), "m"), [Column("m")]
    with pytest.raises(Refusal, match="twice"):
        with_place(t, keys, rows)


def test_every_small_pair_of_neighbours(tables: Tables) -> None:
    contents = sizes(ROWS, 3)
    t = [tables.table(rows, SCHEMA, "t") for rows in contents]
    listed = [(1.0, "x"), (1.0, "y"), (2.0, "x")]
    assert worst(tables, [t], [contents], 0, lambda a: with_place(a, [A, C], listed)) == (1, 1)
    part = Apply("==", (Column(PLACE), Constant(1.0)))

    def second(a):  # type: ignore[no-untyped-def]
        rows = where(with_place(a, [A, C], listed), part)
        assert isinstance(rows.plan, Filter)
        return rows

    assert worst(tables, [t], [contents], 0, second) == (1, 1)


def test_combinations_with_their_counts(tables: Tables) -> None:
    open_schema = (("a", Open("real")), ("c", Open("text")))
    t = tables.table([*ROWS, ("1", "x"), ("0.5", ""), ("-0", "x"), ("0", "x"), ("nan", "x")], open_schema, "t")
    keys, counts = tables.engine.tuples(t.plan, (A, C))
    assert Counter(dict(zip(keys, counts.tolist(), strict=True))) == {
        (1.0, "x"): 2, (1.0, "y"): 1, (3.0, "y"): 1, (0.0, "x"): 2,
    }  # fmt: skip
    assert keys == sorted(keys)


def test_the_columns_of_an_answer(attempt: Callable[..., Result]) -> None:
    people = "sex,city,age\n" + "F,Cork,31\nM,Ames,32\nM,Cork,33\n" * 50
    result = attempt(
        """
private t = table("t.csv") described by {sex: {"F", "M"}, city: text, age: 0..99} protecting rows budget epsilon 9000
g = {{ select count(*) as n, median(age) as m from t
    groupby (sex, city) over [("M", "Ames"), ("F", "Cork"), ("F", "Ames"), ("M", "Ames")] with epsilon 2000 }}
release crossed = {{ select count(*) as n from t groupby age / 32 as old over {0, 1}, (sex, city) over g
    with epsilon 2000 }}
release g
keys = table([{city: "Cork", sex: "F"}, {city: none, sex: "F"}])
release h = {{ select count(*) as n from t groupby (city, sex) over keys with epsilon 2000 }}
release one = {{ select count(*) as n from t groupby city over keys with epsilon 2000 }}
""",
        t=people,
    )
    assert result.ok, result.diagnostics
    g, crossed, h, one = ({k: list(v) for k, v in result[name].items()} for name in ("g", "crossed", "h", "one"))
    assert (g["sex"], g["city"], [round(n) for n in g["n"]]) == (["M", "F", "F"], ["Ames", "Cork", "Ames"], [50, 50, 0])
    assert g["m"][:2] == [32, 31]
    assert crossed["old"] == [0, 0, 0, 1, 1, 1] and crossed["city"] == ["Ames", "Cork", "Ames"] * 2
    assert [round(n) for n in crossed["n"]] == [0, 50, 0, 50, 0, 0]
    assert (h["city"], [round(n) for n in h["n"]]) == (["Cork"], [50])
    assert (one["city"], [round(n) for n in one["n"]]) == (["Cork"], [100])


@pytest.mark.parametrize(("key", "kind"), [
    ('(sex, city)', "TypeError"),
    ('(sex, city) over [("M", 1)]', "TypeError"),
    ('(sex, city) over [("M",)]', "ValueError"),
    ('(sex, city) over [["M"]]', "ValueError"),
    ('(sex, city) over [("M", "Cork"), (1, "Cork")]', "TypeError"),
    ('(sex, city) over 1..3', "TypeError"),
    ('(sex, city) over t', "PrivateValue"),
    ('(sex, city) over [("M", "Cork")], (sex, age) over [("M", 3)]', "TypeError"),
    ('(sex, nothing) over [("M", "Cork")]', "NameError"),
    ('(sex, city) over table([{sex: "M"}])', "NameError"),
])  # fmt: skip
def test_lists_that_do_not_fit(attempt: Callable[..., Result], key: str, kind: str) -> None:
    result = attempt(
        'private t = table("t.csv") described by {sex: {"F", "M"}, city: text, age: 0..99} protecting rows'
        " budget epsilon 9\n"
        f"g = {{{{ select count(*) as n from t groupby {key} with epsilon 1 }}}}",
        t="sex,city,age\nM,Cork,3\n",
    )
    assert [d.kind for d in result.diagnostics][:1] == [kind] and not any(e.kind == "measure" for e in result.events)


OPEN = """private t = table("t.csv") described by {who: text, a: text, b: integer}
    protecting %s budget epsilon 900, delta 0.1
x = {{ select count(*) as n from t groupby a, b with epsilon 1 delta 0.01 }}
y = {{ select sum(clamp(b, 0, 3)) as s from t groupby a, b with epsilon 1 delta 0.01 }}
"""


@pytest.mark.parametrize("unit", ["rows", "who up to 2 rows"])
def test_keys_that_only_one_neighbour_has_stay_below_the_threshold(bench: Bench, unit: str) -> None:
    """What the noise is given: combinations that both have move by no more than is paid for, in all; one that only one
    of them has holds at most the rows of one person, and is shown only if the noise is beyond what δ allows."""
    rows = [("ann", "p", 1), ("bob", "p", 1), ("bob", "q", 2)]
    most = 1 if unit == "rows" else 2
    for more in ([("cem", "p", 1)], [("cem", "z", 9)], [("cem", "p", 1), ("cem", "z", 9)], [("cem", "z", 9)] * 2):
        seen = []
        for some in (rows, [*rows, *more[:most]]):
            bench.table(some, ("who", "a", "b"))
            seen.append(bench.run(OPEN % unit))
        one, other = seen
        for before, after in zip(one.charges, other.charges, strict=True):
            a, b = before.draws[0], after.draws[0]
            new = len(b.values) - len(a.values)
            moved = int(np.sum(b.values)) - int(np.sum(a.values))
            reach, groups = len(more[:most]), len({row[1:] for row in more[:most]})
            if before is one.charges[1] and unit != "rows":  # in rounds: weights of one person, in steps of 2^-20
                reach = groups * math.isqrt(2**40 // groups)
                assert a.kind == "gaussian" and groups * (reach / groups / a.scale) ** 2 / 2 <= rho_of(1.0, 0.005)
            else:
                assert most / a.scale <= before.value * (1 + 1e-9)
            assert 0 <= new <= most and moved == reach and a.scale == b.scale


OPEN_GROUPS = """private t = table("t.csv") described by {who: text, a: text, b: integer}
    protecting who budget epsilon 900, delta 0.1
x = {{ select count(distinct who) as n from t groupby a up to 8 groups with epsilon 1 delta 0.01 }}
"""


def test_keys_of_a_person_in_many_groups_have_gaussian_noise_for_their_root(bench: Bench) -> None:
    """A person with a row in each of eight groups, or of twelve, moves eight counts by 1, and as many keys are new."""
    rows = [(who, key, 1) for who in ("ann", "bob") for key in "abcde"]
    for many in (3, 8, 12):
        seen = []
        for some in (rows, [*rows, *(("cem", key, 1) for key in "abcdefghijkl"[:many] for _ in range(2))]):
            bench.table(some, ("who", "a", "b"))
            (charge,) = bench.run(OPEN_GROUPS).charges
            seen.append(charge)
        before, after = (charge.draws[0] for charge in seen)
        assert int(np.sum(after.values)) - int(np.sum(before.values)) == min(many, 8)
        assert set(np.asarray(after.values).tolist()) <= {1, 2, 3}
        assert before.scale == after.scale == pytest.approx((8 / (2 * rho_of(1.0, 0.01 / 3 / 2))) ** 0.5, rel=1e-6)
