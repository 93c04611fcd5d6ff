"""Registered datasets in programs: the owner's word stands, the file has no other name, a repeated request is free."""

from __future__ import annotations

import gzip
import os
from datetime import date, datetime
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from ledger_place import DATASET, Place, kind

from jostle.privacy.ledger.ledger import Ledger
from jostle.tools.data import verify

COUNT = DATASET + "n = {{ select count(*) from people with epsilon 0.5 }}\nrelease n\n"


def spent(place: Place, name: str = "people") -> str:
    from jostle.tools.data import spent

    return spent(Ledger(place.path).dataset(name))


def said(place: Place, program: str) -> tuple[str, str]:
    made = place.run(program)
    assert not made.ok
    return made.diagnostics[0].kind, made.diagnostics[0].message


def test_schema_unit_budget_and_file_come_from_the_ledger(owned: Place) -> None:
    made = owned.run(
        DATASET + "by = {{ select count(*) as n, avg(age) as a from people groupby sex with epsilon 1.5 }}\n"
        "release by\nrelease gone = spent(people)\nrelease rest = left(people)\n"
    )
    assert made.ok, made.diagnostics
    assert list(made.values["by"].columns["sex"]) == ["F", "M"]
    assert (made.values["gone"], made.values["rest"]) == (1.5, 1.5)
    assert made.budget == {"people": {"epsilon": {"total": "3", "spent": "1.5"}}}
    again = owned.run(DATASET + "release gone = spent(people)\n")
    assert again.values["gone"] == 1.5


def test_groups_by_dates_are_given_again(owned: Place) -> None:
    program = (
        DATASET
        + """
by = {{ select count(*) as n from people groupby trunc(2024-01-01 + age, "month") as month with epsilon 1 }}
times = {{ select count(*) as n from people groupby trunc(time(2024-01-01 + age), "year") as year with epsilon 1 }}
release by
release times
"""
    )
    first, again = owned.run(program), owned.run(program)
    assert first.ok and again.ok and spent(owned) == "epsilon 2"
    assert first.values["by"].columns == again.values["by"].columns
    assert first.values["times"].columns == again.values["times"].columns
    assert type(again.values["by"].columns["month"][0]) is date
    assert again.values["times"].columns["year"] == [datetime(2024, 1, 1)]


def test_runs_cannot_overspend_together(owned: Place) -> None:
    program = DATASET + "h = laplace(histogram(people, x = age + %d)) with epsilon 1\nrelease h\n"
    assert [kind(owned.run(program % i)) for i in range(4)] == ["fine"] * 3 + ["BudgetExceeded"]
    assert spent(owned) == "epsilon 3"
    assert verify(Ledger(owned.path), "people").entries == 4


@pytest.mark.parametrize("clause", ["described by {age: 0..9}", "protecting rows", "budget epsilon 9"])
def test_a_program_adds_no_clause(owned: Place, clause: str) -> None:
    made, message = said(owned, f'private people = dataset("people")\n    {clause}\n')
    assert made == "DataError" and "its owner has said" in message


def test_a_name_that_nobody_registered(owned: Place) -> None:
    made = owned.run('private p = dataset("poeple")\n')
    assert kind(made) == "LedgerError" and "did you mean `people`" in made.diagnostics[0].help


TABLE = "{source} described by {{age: 0..99}} protecting rows budget epsilon 9\n"


def test_the_file_has_no_other_name(owned: Place) -> None:
    os.symlink(owned.folder / "people.csv", owned.folder / "soft.csv")
    os.link(owned.folder / "people.csv", owned.folder / "hard.csv")
    (owned.folder / "sub").mkdir()
    for path in (
        "people.csv",
        "soft.csv",
        "hard.csv",
        "./people.csv",
        "sub/../people.csv",
        str(owned.folder / "people.csv"),
    ):
        for source in (
            f'private p = table("{path}") ' + TABLE.format(source=""),
            f'p = table("{path}")\nprint(len(columns(p)))\n',
        ):
            made, message = said(owned, source)
            assert made == "PrivateValue" and "dataset `people`" in message, path
    session = owned.session()
    session.bind("p", owned.folder / "hard.csv")
    made = owned.run('private p = bound("p") ' + TABLE.format(source=""), session)
    assert kind(made) == "PrivateValue"
    assert kind(owned.run('p = bound("p")\n', session)) == "PrivateValue"


def test_a_compressed_copy_is_the_file(owned: Place) -> None:
    """As `gzip people.csv` and `gzip -k people.csv` leave them, and beside a link."""
    plain, copy = owned.folder / "people.csv", owned.folder / "people.csv.gz"
    copy.write_bytes(gzip.compress(plain.read_bytes()))
    (owned.folder / "hard").mkdir()
    os.link(plain, owned.folder / "hard" / "people.csv")
    (owned.folder / "hard" / "people.csv.gz").write_bytes(copy.read_bytes())
    words = ("register", "more", str(copy), "--schema", "{age: 0..99}", "--protecting", "rows", "--budget", "epsilon 9")
    status, _, told = owned.data(*words)
    assert status == 1 and "registered already, as `people`" in told
    for path in ("people.csv.gz", "hard/people.csv.gz"):
        for source in (f'private p = table("{path}") ' + TABLE.format(source=""), f'p = table("{path}")\n'):
            made, message = said(owned, source)
            assert made == "PrivateValue" and "dataset `people`" in message, path
    plain.unlink()
    assert kind(owned.run('p = table("people.csv.gz")\n')) == "PrivateValue"


def test_a_file_that_took_the_place_of_the_registered_one_is_no_way_in(owned: Place) -> None:
    (owned.folder / "new.csv").write_text("age,sex\n20,F\n")
    os.replace(owned.folder / "new.csv", owned.folder / "people.csv")
    assert kind(owned.run('p = table("people.csv")\n')) == "PrivateValue"


def test_a_registered_dataset_is_never_public(owned: Place) -> None:
    assert said(owned, 'p = dataset("people")\nprint(len(columns(p)))\n')[0] == "PrivateValue"


def test_no_program_reads_the_ledger_itself(owned: Place) -> None:
    os.symlink(owned.path, owned.folder / "soft.csv")
    for name in ("ledger.db", "soft.csv"):
        made, message = said(owned, f'p = table("{name}")\n')
        assert made == "DataError" and "the ledger itself" in message


def test_a_simulation_opens_nothing_registered(owned: Place) -> None:
    """It knows what the ledger says, and draws the rows; the file is no stand-in for itself."""
    (owned.folder / "people.csv").rename(owned.folder / "elsewhere.csv")
    made = owned.run(COUNT, owned.session(simulate=1))
    assert made.ok and spent(owned) == "epsilon 0"
    (owned.folder / "elsewhere.csv").rename(owned.folder / "people.csv")
    session = owned.session(simulate=1)
    session.bind("people", owned.folder / "people.csv")
    assert kind(owned.run(COUNT, session)) == "PrivateValue"
    session = owned.session(simulate=1)
    session.bind("people", owned.folder / "people.csv")
    assert kind(owned.run("private people = " + TABLE.format(source='table("x.csv")'), session)) == "PrivateValue"


def test_counts_are_registered_without_a_schema(place: Place) -> None:
    np.save(place.folder / "cells.npy", np.arange(12).reshape(3, 4))
    words = ("register", "cells", str(place.folder / "cells.npy"), "--protecting", "rows", "--budget", "rho 1")
    assert place.data(*words)[0] == 0
    made = place.run(
        'private cells = dataset("cells")\nn = {{ select sum(values) from cells with rho 0.5 }}\nrelease n\n'
    )
    assert made.ok, made.diagnostics
    assert abs(made.values["n"] - 66) < 60 and spent(place, "cells") == "rho 0.5"
    for source in ('counts("cells.npy")', f'vectors_in("{place.folder}")'):
        assert kind(place.run(f"c = {source}\nprint(len(c))\n")) == "PrivateValue"


def test_an_update_does_not_tell_whether_a_row_came(owned: Place) -> None:
    """Where the data were the same, an answer was given again for nothing, and where one row was new it was not."""
    assert owned.run(COUNT).ok and owned.run(COUNT).ok and spent(owned) == "epsilon 0.5"
    assert owned.data("update", "people")[0] == 0
    assert owned.run(COUNT).ok and spent(owned) == "epsilon 1"


def test_a_file_that_changed_waits_for_its_owner(owned: Place) -> None:
    path = owned.folder / "people.csv"
    text = path.read_text()
    os.utime(path, (1, 1))
    assert owned.run(COUNT).ok  # touched, not changed
    path.write_text(text + "44,F\n")
    made, message = said(owned, COUNT)
    assert made == "LedgerError" and "has changed" in message
    assert owned.data("update", "people")[0] == 0
    assert owned.run(COUNT).ok
    assert spent(owned) == "epsilon 1"  # the data are new, so the repeated request was no repeat
    assert Ledger(owned.path).dataset("people").state.version == 2
    path.unlink()
    assert said(owned, COUNT)[0] == "LedgerError"


def test_protected_columns_are_bounded_as_registered(place: Place) -> None:
    place.register(protecting="age up to 2 rows", budget="epsilon 1000000")
    made = place.run(DATASET + "n = {{ select count(*) from people with epsilon 100000 }}\nrelease n\n")
    assert made.ok and abs(made.values["n"] - 140) < 5  # 70 ages of 400 rows, two rows each


# Repeated requests -------------------------------------------------------------------------------

ASKS = """n = {{ select count(*) from people where age > 40 with epsilon 0.25 }}
m = {{ select median(age) from people with epsilon 0.25 }}
g = {{ select count(*) as n, avg(age) as s from people groupby sex with epsilon 0.5 }}
release n
release m
release g
release e = [error(n), band(g.s)]
"""


def test_a_program_that_is_run_again_costs_nothing_and_says_so(owned: Place) -> None:
    first, second = owned.run(DATASET + ASKS), owned.run(DATASET + ASKS)
    assert first.ok and second.ok, second.diagnostics
    assert first.released_json() == second.released_json()
    assert spent(owned) == "epsilon 1" and verify(Ledger(owned.path), "people").entries == 4
    assert [e.fields.get("replayed") for e in first.events if e.kind == "query"] == [None] * 3
    assert [e.fields.get("replayed") for e in second.events if e.kind == "query"] == [True] * 3
    assert [e.fields["ledger"] for e in first.events if e.kind == "run"] == [
        e.fields["ledger"] for e in second.events if e.kind == "run"
    ]


def test_the_largest_groups_are_given_again(place: Place) -> None:
    """Of persons without a bound on their groups: the keys that were chosen, and their counts."""
    rows = [f"p{who},{word}" for who in range(400) for word in ("a", "b", f"own{who}")]
    (place.folder / "people.csv").write_text("\n".join(["who,word", *rows]) + "\n", encoding="utf-8")
    words = ("register", "people", str(place.folder / "people.csv"), "--schema", "{word: text}")
    assert place.data(*words, "--protecting", "who", "--budget", "epsilon 30, delta 1e-4")[0] == 0
    asks = "g = {{ select word, count(distinct who) as n from people groupby word order by n desc limit 4"
    asks = f"{DATASET}{asks} with epsilon 20 delta 1e-5 }}}}\nrelease g\nrelease e = error(g.n)\n"
    first, second = place.run(asks), place.run(asks)
    assert first.ok and second.ok, (first.diagnostics, second.diagnostics)
    assert sorted(first.values["g"].columns["word"]) == ["a", "b"] and first.released_json() == second.released_json()
    assert [e.fields.get("replayed") for e in second.events if e.kind == "query"] == [True]
    assert verify(Ledger(place.path), "people").entries == 2


def test_asking_twice_in_one_run_is_two_draws(owned: Place) -> None:
    twice = DATASET + "ns = [{{ select count(*) from people with epsilon 0.001 }} for i in 1..5]\nrelease ns\n"
    first = owned.run(twice)
    assert len(set(first.values["ns"])) > 1  # five of scale 1000 agree with a probability below 1e-12
    assert spent(owned) == "epsilon 0.005"
    assert list(owned.run(twice).values["ns"]) == list(first.values["ns"])
    once_more = owned.run(twice.replace("1..5", "1..6"))
    assert list(once_more.values["ns"])[:5] == list(first.values["ns"])
    assert spent(owned) == "epsilon 0.006"


@pytest.mark.parametrize(
    ("what", "other"),
    [
        ("> 40", "> 41"),
        ("0.25 }}\nm", "0.26 }}\nm"),
        ("select count(*) from people where", "select count(age) from people where"),
    ],
)
def test_another_request_is_paid(owned: Place, what: str, other: str) -> None:
    first = owned.run(DATASET + ASKS)
    assert what in ASKS and first.ok
    second = owned.run(DATASET + ASKS.replace(what, other))
    assert second.ok and [e.fields.get("replayed") for e in second.events if e.kind == "query"] == [None, True, True]
    assert verify(Ledger(owned.path), "people").entries == 5


def test_allotments_are_spent_the_same_way_again(owned: Place) -> None:
    program = DATASET + (
        "with epsilon 1 {\n    a = {{ select count(*) from people with epsilon 0.75 }}\n"
        "    b = {{ select count(*) from people where age > 30 }}\n}\nrelease a\nrelease b\n"
    )
    first, second = owned.run(program), owned.run(program)
    assert first.ok and second.ok and first.released_json() == second.released_json()
    assert spent(owned) == "epsilon 1"


def test_a_repeat_does_not_overdraw_an_allotment(owned: Place) -> None:
    ask = "{{ select count(*) from people with epsilon 0.75 }}"
    assert owned.run(DATASET + f"a = {ask}\nb = {ask}\n").ok
    made = owned.run(DATASET + f"with epsilon 1 {{\n    a = {ask}\n    b = {ask}\n}}\n")
    assert kind(made) == "BudgetExceeded"


def test_training_never_touches_a_registered_dataset(owned: Place) -> None:
    """Not even for an answer that is stored: what a run may do does not depend on what others asked before."""
    ask = "{{ select count(*) from people with epsilon 0.1 }}"
    assert owned.run(DATASET + f"n = {ask}\n").ok
    session = owned.session()
    assert owned.run(DATASET, session).ok
    from jostle.diagnostics import Refusal
    from jostle.source import Source

    session.execute(Source("entry 1", DATASET.replace("people =", "mine =")))
    with session._interp.kernel.training(), pytest.raises(Refusal) as caught:
        session.execute(Source("entry 2", ask.replace("from people", "from mine") + "\n"))
    assert caught.value.first.kind == "PrivateValue"


def test_two_names_of_one_dataset_are_one_account(owned: Place) -> None:
    made = owned.run(
        DATASET + 'private again = dataset("people")\n'
        "a = laplace(histogram(people, x = age)) with epsilon 2\n"
        "b = laplace(histogram(again, x = age)) with epsilon 2\n"
    )
    assert kind(made) == "BudgetExceeded" and spent(owned) == "epsilon 2"


def test_what_is_registered_while_a_session_runs_is_not_its_own_any_more(place: Place) -> None:
    session = place.session()
    table = 'private people = table("people.csv") described by {age: 17..90} protecting rows budget epsilon 9\n'
    count = "n = {{ select count(*) from people with epsilon 1 }}\n"
    assert place.run(table + count, session).ok
    place.register()
    assert kind(place.run(table + count, session)) == "PrivateValue"
    made = place.run(DATASET + count, session)
    assert kind(made) in ("DataError", "PrivateValue") and spent(place) == "epsilon 0"


@pytest.mark.parametrize("how", ["a map of it", "a table of maps", "a query of it"])
def test_a_registered_file_is_not_read_from_memory_under_another_budget(owned: Place, how: str) -> None:
    file = str(owned.folder / "people.csv")
    bound: Any = np.memmap(file, dtype=np.uint8, mode="r")
    described = ""
    if how != "a map of it":
        bound, described = {"age": bound}, "described by {age: 17..90} "
    if how == "a query of it":
        bound = duckdb.connect().sql(f"FROM read_csv('{file}')")
    session = owned.session()
    session.bind("b", bound)
    for declared in (f'private c = bound("b") {described}protecting rows budget epsilon 9\n', 'c = bound("b")\n'):
        assert kind(owned.run(declared, session)) == "PrivateValue"
    assert spent(owned) == "epsilon 0"


def test_names_of_paths_are_relative_to_nothing(owned: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The registered path is the real one: the folder a program stands in does not matter."""
    (owned.folder / "deep").mkdir()
    monkeypatch.chdir(owned.folder / "deep")
    assert owned.run(COUNT).ok
    assert Path(Ledger(owned.path).dataset("people").terms.path).is_absolute()


def test_runs_of_which_one_is_shown_are_one_charge_and_leave_no_answer(owned: Place) -> None:
    """The ledger has the whole amount once; what a run asked is not given again, nor does it count as asked."""
    asks = "{{ select count(*) from d with epsilon 0.25 }}"
    best = f"def f(d, c): return {asks}\nbest = best_run(people, f, [0, 1], 20) with epsilon 1\n"
    count = "n = {{ select count(*) from people with epsilon 0.25 }}\nrelease n\n"
    first = owned.run(DATASET + count)
    both = owned.run("use selection\n" + DATASET + best + count)
    assert first.ok and both.ok and spent(owned) == "epsilon 1.25"
    assert first.values["n"] == both.values["n"]  # the first of its kind still, and free
    assert verify(Ledger(owned.path), "people").entries == 3
