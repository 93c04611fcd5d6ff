"""An owner's commands, as typed."""

from __future__ import annotations

import gzip
import json
import stat
from pathlib import Path

import pytest
from ledger_place import DATASET, Place

from jostle.accounting.amounts import QUANTA, Amount
from jostle.privacy.ledger.ledger import Ledger
from jostle.tools.data import verify
from jostle.tools.entry import main

COUNT = DATASET + "n = {{ select count(*) from people where age > 30 with epsilon 0.5 }}\nrelease n\n"


def test_registration_makes_a_ledger_for_its_owner_alone(owned: Place) -> None:
    assert stat.S_IMODE(owned.path.stat().st_mode) == 0o600
    terms = Ledger(owned.path).dataset("people").terms
    assert terms.measure.limit == Amount("epsilon", 3 * QUANTA) and terms.measure.kind == "pure"
    assert str(terms.unit) == "rows" and [name for name, _ in terms.schema] == ["age", "sex"]


@pytest.mark.parametrize(
    ("budget", "kind", "limit"),
    [
        ("rho 0.5", "zcdp", Amount("rho", QUANTA // 2)),
        ("epsilon 1, delta 1e-6", "approximate", Amount("epsilon", QUANTA, QUANTA // 10**6)),
        ("epsilon 1, delta 1e-6 counted by basic", "basic", Amount("epsilon", QUANTA, QUANTA // 10**6)),
    ],
)
def test_budgets_are_read_as_in_a_program(place: Place, budget: str, kind: str, limit: Amount) -> None:
    place.register(budget)
    measure = Ledger(place.path).dataset("people").terms.measure
    assert (measure.kind, measure.limit) == (kind, limit)


REFUSED = [
    ("{age: 17..90}", "rows", "epsilon 0", "BadAmount"),
    ("{age: 17..90}", "rows", "epsilon", "SyntaxError"),
    ("{age: 17..90}", "persons", "epsilon 1", "DataError"),
    ("{age: 17..90}", "person up to 3 rows", "epsilon 1", "DataError"),
    ("{age: 17..90}", "rows, at most 399 rows", "epsilon 1", "DataError"),
    ("{sex: text}", "age, at most 5 rows", "epsilon 1", "DataError"),
    ("{height: 17..90}", "rows", "epsilon 1", "DataError"),
    ("{age: 90..17}", "rows", "epsilon 1", "DataError"),
    ("[1, 2]", "rows", "epsilon 1", "DataError"),
    ("{age: 17..90}", 'rows\nprivate q = table("x") protecting rows', "epsilon 1", "SyntaxError"),
    ("{age: 17..90}", "rows", "epsilon 1\nprint(1)", "SyntaxError"),
]


@pytest.mark.parametrize(("schema", "protecting", "budget", "kind"), REFUSED)
def test_what_cannot_be_registered(place: Place, schema: str, protecting: str, budget: str, kind: str) -> None:
    words = ("register", "people", str(place.folder / "people.csv"), "--schema", schema)
    status, _, said = place.data(*words, "--protecting", protecting, "--budget", budget)
    assert status == 1 and said.startswith(kind), said
    assert not place.path.exists()


def test_a_promise_of_rows_is_tested_again_at_an_update(place: Place) -> None:
    place.register(protecting="rows, at most 400 rows")
    with (place.folder / "people.csv").open("a") as file:
        file.write("20,F\n")
    status, _, said = place.data("update", "people")
    assert status == 1 and "at most 400" in said
    assert Ledger(place.path).dataset("people").state.version == 1


def test_a_promise_of_rows_of_a_person_is_tested_again_at_an_update_and_leaves_no_mark(place: Place) -> None:
    place.register(protecting="age, at most 6 rows")
    unit = Ledger(place.path).dataset("people").terms.unit
    assert (unit.columns, unit.rows, unit.at_most) == (("age",), 6, 6) and str(unit) == "age, at most 6 rows"
    program = 'private t = dataset("people")\nrelease n = {{ select count(*) from t with epsilon 1 }}\n'
    assert "cut" not in place.run(program).margins()["n"]
    with (place.folder / "people.csv").open("a") as file:
        file.write("17,F\n")
    status, _, said = place.data("update", "people")
    assert status == 1 and "7 rows, and at most 6" in said


def test_one_name_and_one_file_are_registered_once(owned: Place) -> None:
    (owned.folder / "copy.csv").hardlink_to(owned.folder / "people.csv")
    clauses = ("--schema", "{age: 0..99}", "--protecting", "rows", "--budget", "epsilon 9")
    for name, file in (("people", "people.csv"), ("others", "people.csv"), ("others", "copy.csv")):
        status, _, said = owned.data("register", name, str(owned.folder / file), *clauses)
        assert status == 1 and "registered already" in said
    assert [d.terms.name for d in Ledger(owned.path).datasets()] == ["people"]


def test_the_bytes_of_a_registered_file_are_not_registered_again_unless_that_is_meant(owned: Place) -> None:
    """Also those that it had before an update; and a file that gets them later is not taken for the data then."""
    clauses = ("--schema", "{age: 0..99}", "--protecting", "rows", "--budget", "epsilon 9")
    first, copy = (owned.folder / f"{name}.csv" for name in ("people", "copy"))
    before = first.read_bytes()
    copy.write_bytes(before)
    first.write_bytes(before + b"20,F\n")
    for content in (before, before + b"20,F\n"):
        copy.write_bytes(content)
        status, _, said = owned.data("register", "others", str(copy), *clauses)
        assert status == 1 and "the bytes of the file of `people`" in said
        if content == before:
            assert owned.data("update", "people")[0] == 0
    assert [d.terms.name for d in Ledger(owned.path).datasets()] == ["people"]
    copy.write_bytes(before + b"21,F\n")
    assert owned.data("register", "others", str(copy), *clauses)[0] == 0
    copy.write_bytes(before)
    status, _, said = owned.data("update", "others")
    assert status == 1 and "the bytes of the file of `people`" in said and "--copy" in said
    assert owned.data("update", "others", "--copy")[0] == 0
    copy.with_name("third.csv").write_bytes(before)
    status, _, said = owned.data("register", "third", str(copy.with_name("third.csv")), *clauses, "--copy")
    assert status == 0, said


def test_a_gzip_of_a_registered_file_is_that_file(owned: Place) -> None:
    """By what it holds, wherever it lies, in several streams too; and a compressed file that is registered likewise."""
    clauses = ("--schema", "{age: 0..99}", "--protecting", "rows", "--budget", "epsilon 9")
    content = (owned.folder / "people.csv").read_bytes()
    packed = owned.folder / "other.csv.gz"
    for streams in ((content,), (content[:9], content[9:]), (content, b"")):
        packed.write_bytes(b"".join(map(gzip.compress, streams)))
        status, _, said = owned.data("register", "others", str(packed), *clauses)
        assert status == 1 and "the bytes of the file of `people`" in said
    packed.write_bytes(gzip.compress(content + b"21,F\n"))
    assert owned.data("register", "others", str(packed), *clauses)[0] == 0
    (owned.folder / "plain.csv").write_bytes(content + b"21,F\n")
    status, _, said = owned.data("register", "plain", str(owned.folder / "plain.csv"), *clauses)
    assert status == 1 and "the bytes of the file of `others`" in said
    packed.write_bytes(gzip.compress(content + b"21,F\n", 1))
    assert owned.run('private a = dataset("others")\n').ok


def test_an_encoding_is_said_when_a_file_is_checked_and_registered(place: Place) -> None:
    """Of rows in cp1252 below a plain header, which UTF-8 was read of: no city had its name."""
    path = place.folder / "a.csv"
    path.write_bytes("city\nZürich\nZürich\n".encode("cp1252"))
    words, encoding = ("--schema", '{city: {"Zürich"}}'), ("--encoding", "cp1252")
    assert "unlisted 2" in place.data("check", str(path), *words)[1]
    assert "every cell fits" in place.data("check", str(path), *words, *encoding)[1]
    clauses = (*words, "--protecting", "rows", "--budget", "epsilon 90")
    assert place.data("register", "a", str(path), *clauses, *encoding)[0] == 0
    query = "release n = {{ select count(*) as n from a groupby city with epsilon 90 }}.n\n"
    assert place.run('private a = dataset("a")\n' + query)["n"] == [2]


def test_columns_that_are_never_missing_stay_with_a_dataset(place: Place) -> None:
    (place.folder / "a.csv").write_text("age\n20\n\n" + ",\n" * 40)
    clauses = ("--schema", "{age: 17..90 never missing}", "--protecting", "rows", "--budget", "epsilon 90")
    status, told, _ = place.data("register", "a", str(place.folder / "a.csv"), *clauses)
    assert status == 0 and "age: empty 40" in told
    assert "17..90, never missing" in place.data("show", "a")[1]
    result = place.run('private a = dataset("a")\nrelease n = {{ select count(age) from a with epsilon 90 }}\n')
    assert result.ok and result["n"] == 41
    assert place.data("update", "a")[0] == 0 and place.data("history", "a", "--verify")[0] == 0


def test_list_show_and_history_say_what_was_spent(owned: Place) -> None:
    assert owned.run(COUNT).ok
    assert "epsilon 0.5" in owned.data("list")[1]
    shown = owned.data("show", "people")[1]
    assert "epsilon 3" in shown and "epsilon 0.5" in shown and "17..90" in shown
    status, told, _ = owned.data("history", "people", "--verify")
    assert status == 0 and "the chain holds: 2 entries" in told
    assert [word for word in ("registered", "count", "laplace", "p.jst") if word in told] == [
        "registered", "count", "laplace", "p.jst",
    ]  # fmt: skip
    key = Ledger(owned.path).dataset("people").key.hex()
    assert key not in shown + told


def test_unknown_datasets_and_ledgers(owned: Place) -> None:
    status, _, said = owned.data("show", "peple")
    assert status == 1 and "did you mean `people`" in said
    status = main(["data", "list", "--ledger", str(owned.folder / "none.db")])
    assert status == 1 and not (owned.folder / "none.db").exists()


def test_run_and_certificate_from_the_command_line(owned: Place, capsys: pytest.CaptureFixture[str]) -> None:
    program, trace, out = (owned.folder / name for name in ("p.jst", "run.jsonl", "c.json"))
    program.write_text(COUNT, encoding="utf-8")
    assert main(["run", str(program), "--ledger", str(owned.path), "--trace", str(trace)]) == 0
    assert "0.5 of 3" in capsys.readouterr().out
    status, told, said = owned.data("certificate", "people", "--run", str(trace), "-o", str(out))
    assert status == 0 and "1 charge on" in told, said
    document = json.loads(out.read_text(encoding="utf-8"))
    assert document["charges"][0]["amount"] == "epsilon 0.5"
    status, told, _ = owned.data("certificate", "people", "--check", str(out))
    assert status == 0 and "made by this ledger" in told
    out.write_text(out.read_text().replace("epsilon 0.5", "epsilon 0.4"))
    assert owned.data("certificate", "people", "--check", str(out))[0] == 1
    assert owned.data("certificate", "people")[0] == 1


def test_the_ledger_of_the_environment_is_used(owned: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    from jostle.tools.session import Session

    monkeypatch.setenv("JOSTLE_LEDGER", str(owned.path))
    from jostle.source import Source

    assert Session(cwd=owned.folder).attempt(Source(str(Path(owned.folder) / "p.jst"), COUNT)).ok
    assert verify(Ledger(owned.path), "people").entries == 2


def test_a_check_refuses_a_registered_file_as_a_run_does(owned: Place) -> None:
    text = 'private p = table("people.csv") described by {age: 0..99} protecting rows budget epsilon 1\n'
    session = owned.session()
    (fault,) = session.check(text)
    (late,) = session.attempt(text).diagnostics
    assert "registered as the dataset `people`" in fault.message and (late.message, late.span) == (
        fault.message, fault.span)  # fmt: skip
