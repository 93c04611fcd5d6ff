"""Lasting budgets of a server's tables: known by what PostgreSQL says of them, whatever they are called.

A registered file is refused in a session on a server, and never with the advice to leave the ledger.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ledger_place import DATASET, Place, kind

from jostle.privacy.ledger.ledger import Ledger
from jostle.source import Source
from jostle.tools.data import spent
from jostle.tools.entry import main

psycopg = pytest.importorskip("psycopg", reason="no driver: pip install 'psycopg[binary]'")

AT_SERVER = ("register", "update", "check")
Sql = Callable[..., list[Any]]
CLAUSES = ("--schema", '{delay: 0..99, carrier: {"A", "B"}}', "--protecting", "rows", "--budget", "epsilon 3")
COUNT = 'private f = dataset("flights")\nrelease n = {{ select count(*) from f where delay < %d with epsilon 0.5 }}\n'
TABLE = 'private f = postgres("%s") described by {delay: 0..99} protecting rows budget epsilon 9\n'
ROWS = """SELECT i % 100 AS delay, CASE WHEN i % 2 = 0 THEN 'A' ELSE 'B' END AS carrier, i / 3 AS id, NULL::json AS more
FROM generate_series(1, 300) i"""


class Airport:
    """A database of its own with the table `ny.flights`, and programs in sessions on it that end with the program."""

    def __init__(self, place: Place, url: str, sql: Sql) -> None:
        self.place, self.url, self.sql = place, url, sql

    def data(self, *words: str) -> tuple[int, str, str]:
        return self.place.data(*words, *(["--engine", self.url] if words[0] in AT_SERVER else []))

    def register(self, name: str = "flights", table: str = "ny.flights", *more: str) -> str:
        """What was said; nothing where it was registered."""
        status, _, said = self.data("register", name, f'postgres("{table}")', *CLAUSES, *more)
        assert (status == 1) == bool(said)
        return said

    def run(self, program: str, url: str = "") -> Any:
        with self.place.session(engine=url or self.url) as session:
            return self.place.run(program, session)

    def said(self, program: str, url: str = "") -> str:
        result = self.run(program, url)
        assert not result.ok and not result.values
        return f"{result.diagnostics[0].message}; {result.diagnostics[0].help}"

    def spent(self, name: str = "flights") -> str:
        return spent(Ledger(self.place.ledger).dataset(name))


def at_database(url: str, name: str) -> str:
    head, _, query = url.partition("?")
    return f"{head.rsplit('/', 1)[0]}/{name}{'?' if query else ''}{query}"


@pytest.fixture
def airport(place: Place, database: tuple[str, Callable[..., list[Any]]]) -> Airport:
    url, sql = database
    sql(f"CREATE SCHEMA ny; CREATE TABLE ny.flights AS {ROWS}")
    return Airport(place, url, sql)


WEEKS = """private v = dataset("visits")
w = v[period = 2026-01-05]
release n = {{ select count(*) from w with rho 1000000 }}
release both = {{ select count(*) from v with rho 900000 }}
release other = {{ select count(*) from v[period = 2026-01-12] with rho 1000000 }}
"""


@pytest.mark.slow(only=["timestamp", "text"])
@pytest.mark.parametrize("kind_of_day", ["date", "timestamp", "text"])
def test_each_week_of_a_servers_table_has_its_budget(airport: Airport, kind_of_day: str) -> None:
    """Persons keep two rows in each week, rows without a day are left out, and later rows belong to their own week."""
    rows = f"(date '2026-01-05' + i % 14)::{kind_of_day} AS day, 'u' || i % 5 AS who FROM generate_series(0, 139) i"
    airport.sql(f"CREATE TABLE ny.visits AS SELECT {rows}; INSERT INTO ny.visits VALUES (NULL, 'u1')")
    clauses = (
        "--schema", "{day: time}" if kind_of_day == "timestamp" else "{day: date}", "--protecting", "who up to 2 rows",
        "--budget", "rho 2000000 each week of day",
    )  # fmt: skip
    assert airport.data("register", "visits", 'postgres("ny.visits")', *clauses)[0] == 0
    program = WEEKS
    made = airport.run(program)
    assert made.ok, made.diagnostics
    assert [round(float(made.values[name])) for name in ("n", "both", "other")] == [10, 20, 10]
    airport.sql("INSERT INTO ny.visits VALUES ('2026-01-19', 'u9')")
    assert airport.data("update", "visits")[0] == 0
    assert kind(airport.run(program)) == "BudgetExceeded"
    late = airport.run(program.replace("2026-01-12", "2026-01-19").replace("1000000", "9000").replace("900000", "9000"))
    assert late.ok and round(float(late.values["other"])) == 1, late.diagnostics


@pytest.mark.slow
def test_a_row_is_in_the_day_of_utc_whatever_zone_a_server_has(airport: Airport) -> None:
    """The night in which clocks go back, by a role that lives in the zone: else a day had rows of two budgets."""
    airport.sql("CREATE TABLE ny.visits AS SELECT generate_series(timestamptz '2026-10-24 00:00+00',"
                " timestamptz '2026-10-26 23:30+00', interval '30 minutes') AS day")  # fmt: skip
    words = ("--schema", "{day: time}", "--protecting", "rows", "--budget", "rho 3000000 each day of day")
    assert airport.data("register", "visits", 'postgres("ny.visits")', *words)[0] == 0
    asked = "select count(*) as n from v groupby period over [2026-10-24, 2026-10-25, 2026-10-26] with rho {}"
    for number, zone in enumerate(("Europe/Berlin", "Pacific/Auckland")):
        airport.sql(f"ALTER ROLE CURRENT_USER SET timezone = '{zone}'")
        program = f'private v = dataset("visits")\nrelease g = {{{{ {asked.format(900_000 + number)} }}}}\n'
        result = airport.run(program)
        assert result.ok, result.diagnostics
        assert [round(float(n)) for n in result.values["g"].columns["n"]] == [48, 48, 48]
    airport.sql("ALTER ROLE CURRENT_USER RESET timezone")


STREAM = """param today = 1
private v = dataset("visits")
g = {{ select count(*) as n, sum(delay) as late from v groupby running(day, until = today), carrier with rho 1 }}
release n = g.n
release gone = spent(v)
"""


def test_a_stream_of_a_servers_table_goes_on(airport: Airport) -> None:
    """Rows arrive in the table, and what was shown of a day is shown of it ever after, for one charge."""
    rows = "SELECT {} AS day, * FROM ny.flights"
    airport.sql(f"CREATE TABLE ny.visits AS {rows.format(1)}")
    clauses = (
        "--schema", '{day: 1..40, delay: 0..99, carrier: {"A", "B"}}', "--protecting", "rows", "--budget", "rho 2",
    )  # fmt: skip
    assert airport.data("register", "visits", 'postgres("ny.visits")', *clauses)[0] == 0
    shown: list[float] = []
    for day in (1, 2, 3, 3):
        if shown and len(shown) < 2 * day:
            airport.sql(f"INSERT INTO ny.visits {rows.format(day)}")
            assert airport.data("update", "visits")[0] == 0
        with airport.place.session(engine=airport.url) as session:
            made = session.attempt(Source("p.jst", STREAM), {"today": str(day)})
        assert made.ok, made.diagnostics
        n = list(map(float, made.values["n"]))
        assert len(n) == 2 * day and n[: len(shown)] == shown and made.values["gone"] == 1
        assert abs(sum(n[-2:]) - 300 * day) < 100  # more than ten deviations
        shown = n


@pytest.mark.parametrize("kept", ["file", "database"])
def test_what_is_spent_on_a_table_stays_spent(airport: Airport, kept: str) -> None:
    if kept == "database":
        airport.place.ledger = airport.url
    assert airport.register() == ""
    first, again = airport.run(COUNT % 50), airport.run(COUNT % 50)
    assert first.ok and abs(first.values["n"] - 150) < 60, first.diagnostics
    assert again.values == first.values and airport.spent() == "epsilon 0.5"  # an answer that was paid for
    assert airport.run((COUNT % 45).replace("0.5", "2.5")).ok
    assert kind(airport.run(COUNT % 46)) == "BudgetExceeded" and airport.spent() == "epsilon 3"
    assert "the chain holds" in airport.data("history", "flights", "--verify")[1]
    shown = airport.data("show", "flights")[1]
    assert 'postgres("ny.flights")' in shown and airport.url not in shown and "epsilon 3" in shown


def test_a_table_has_no_other_way_in(airport: Airport) -> None:
    airport.register()
    assert "these data are registered as the dataset `flights`" in airport.said(TABLE % "ny.flights")
    assert "registered" in airport.said('p = postgres("ny.flights")\n')
    assert "is registered as a table of a PostgreSQL server" in str(airport.place.run(COUNT % 50).diagnostics[0])
    assert "registered already" in airport.register("flights", "ny.flights", "--copy")
    assert "registered already, as `flights`" in airport.register("others", "ny.flights", "--copy")
    airport.sql("ALTER TABLE ny.flights RENAME TO journeys; ALTER TABLE ny.journeys SET SCHEMA public")
    assert "registered as the dataset `flights`" in airport.said(TABLE % "journeys")
    assert "registered already, as `flights`" in airport.register("others", "journeys", "--copy")
    assert airport.run(COUNT % 50).ok  # by its number, whatever it is called


def test_a_table_that_took_the_name_of_the_registered_one_waits_for_its_owner(airport: Airport) -> None:
    airport.register()
    assert airport.run(COUNT % 50).ok
    airport.sql("ALTER TABLE ny.flights RENAME TO old; CREATE TABLE ny.flights AS SELECT * FROM ny.old WHERE id < 50")
    said = airport.said(COUNT % 50)
    assert "the name `ny.flights` is that of another table" in said and "jostle data update flights" in said
    assert airport.spent() == "epsilon 0.5"
    assert airport.data("update", "flights")[0] == 0
    assert airport.run(COUNT % 50).ok and airport.spent() == "epsilon 1"  # other data, so no answer of before
    for way in ("ny.old", "ny.flights"):  # what it was stays known
        assert "registered as the dataset `flights`" in airport.said(TABLE % way)
        assert "registered already, as `flights`" in airport.register("others", way, "--copy")
    airport.sql("DROP TABLE ny.flights")
    assert "the table `ny.flights` that was registered is no more" in airport.said(COUNT % 50)
    status, _, said = airport.data("update", "flights")
    assert status == 1 and "the database has no table `ny.flights`" in said
    assert "the chain holds" in airport.data("history", "flights", "--verify")[1] and airport.spent() == "epsilon 1"


def test_the_rows_of_a_registered_table_are_not_registered_again_unless_that_is_meant(airport: Airport) -> None:
    airport.register()
    airport.sql("CREATE TABLE copy AS SELECT * FROM ny.flights ORDER BY random()")
    said = airport.register("copied", "copy")
    assert "this table has the rows of the table of `flights`" in said and "--copy" in said
    airport.sql("INSERT INTO ny.flights VALUES (1, 'A', 1000)")
    assert "has the rows of" in airport.register("copied", "copy")
    assert airport.register("copied", "copy", "--copy") == ""
    airport.sql("CREATE TABLE more AS SELECT * FROM ny.flights")
    assert airport.register("more", "more") == ""  # it has never been seen: no copy by what can be known


def test_a_restored_dump_is_taken_by_its_owner_and_what_was_spent_stays(airport: Airport, postgres_server: str) -> None:
    airport.register()
    assert airport.run(COUNT % 50).ok
    name = f"restored_{os.urandom(4).hex()}"
    airport.sql(f"CREATE DATABASE {name} TEMPLATE {airport.sql('SELECT current_database()')[0][0]}", postgres_server)
    there = at_database(airport.url, name)
    try:
        said = airport.said(COUNT % 50, there)
        assert "was registered in another database" in said and "jostle data update flights" in said
        elsewhere = Airport(airport.place, there, airport.sql)
        assert "has the rows of the table of `flights`" in elsewhere.register("restored")
        assert elsewhere.data("update", "flights")[0] == 0
        assert elsewhere.run(COUNT % 50).ok and airport.spent() == "epsilon 0.5"  # the same rows: answered as before
        assert elsewhere.run(COUNT % 51).ok and airport.spent() == "epsilon 1"
        assert "registered as the dataset" in airport.said(TABLE % "ny.flights")  # where it was, too
    finally:
        airport.sql(f"DROP DATABASE {name} WITH (FORCE)", postgres_server)


def test_a_part_that_was_ever_read_with_a_table_stays_known(airport: Airport) -> None:
    airport.sql("CREATE TABLE parts (delay int, carrier text) PARTITION BY LIST (carrier)")
    airport.sql("CREATE TABLE part_a PARTITION OF parts FOR VALUES IN ('A')")
    assert airport.register("flights", "parts") == ""
    airport.sql("CREATE TABLE part_b PARTITION OF parts FOR VALUES IN ('B')")
    assert airport.run(COUNT % 50).ok
    airport.sql("ALTER TABLE parts DETACH PARTITION part_a; ALTER TABLE parts DETACH PARTITION part_b")
    for part in ("part_a", "part_b", "parts"):
        assert "registered as the dataset `flights`" in airport.said(TABLE % part)
    assert "the chain holds" in airport.data("history", "flights", "--verify")[1]


def test_a_promise_of_rows_is_tested(airport: Airport) -> None:
    for unit, told in (("rows, at most 299 rows", "there are 300 rows"), ("id, at most 2 rows", "a person has 3 rows")):
        words = ("--schema", "{delay: 0..99}", "--protecting", unit, "--budget", "epsilon 1")
        status, _, said = airport.data("register", "flights", 'postgres("ny.flights")', *words)
        assert status == 1 and told in said


def test_an_owner_sees_what_does_not_fit(airport: Airport) -> None:
    airport.sql("UPDATE ny.flights SET delay = 200, carrier = ' a' WHERE id = 1")
    words = ("--schema", '{delay: 0..99, carrier: {"A", "B"}}', "--protecting", "rows", "--budget", "epsilon 1")
    status, told, _ = airport.data("register", "flights", 'postgres("ny.flights")', *words)
    assert status == 0 and "delay: outside 3 (1.0 %)" in told and "carrier: unlisted 3 (1.0 %)" in told
    status, _, said = airport.data("check", 'postgres("ny.flights")', "--schema", "{more: text}")
    assert status == 1 and "of the type `json`" in said
    status, told, _ = airport.data("check", 'postgres("ny.flights")', "--schema", '{carrier: {"A", "B"}}')
    assert status == 0 and "unlisted 3 (1.0 %)" in told and "listed but for case or blanks" in told


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ("{late: 0..99}", "has no column `late`"),
        ("{more: text}", "of the type `json`, which is not read"),
        ("{delay: 9..0}", "`delay` has no values"),
    ],
)
def test_what_is_not_as_described_is_not_registered(airport: Airport, schema: str, message: str) -> None:
    words = ("--schema", schema, "--protecting", "rows", "--budget", "epsilon 1")
    status, _, said = airport.data("register", "flights", 'postgres("ny.flights")', *words)
    assert status == 1 and message in said
    assert not airport.place.path.exists()


def test_tables_of_the_same_persons_have_one_budget(airport: Airport) -> None:
    words = ("--schema", "{id: 0..100, delay: 0..99}", "--protecting", "id up to 3 rows", "--budget", "epsilon 3")
    assert airport.data("register", "flights", 'postgres("ny.flights")', *words)[0] == 0
    airport.sql(
        "CREATE TABLE bags (owner int, weight int); INSERT INTO bags SELECT i, i % 30 FROM generate_series(1, 90) i"
    )
    linked = ("--schema", "{weight: 0..30}", "--protecting", "flights.id on owner up to 3 rows")
    assert airport.data("register", "bags", 'postgres("bags")', *linked)[0] == 0
    made = airport.run(
        'private b = dataset("bags")\nrelease n = {{ select count(*) from b where weight > 3 with epsilon 1 }}\n'
    )
    assert made.ok and airport.spent() == "epsilon 1", made.diagnostics


def test_a_password_is_in_no_ledger_and_no_message(airport: Airport) -> None:
    head, _, query = airport.url.partition("?")
    secret = f"{head.replace('postgres:@', 'postgres:hunter2@')}?{query}&application_name=hunter2"
    known = Airport(airport.place, secret, airport.sql)
    assert known.register() == "" and known.run(COUNT % 50).ok
    airport.sql("DROP TABLE ny.flights")
    told: list[Any] = [known.data(verb, "flights") for verb in ("show", "history", "update")]
    told += [known.said(COUNT % 50), known.said(TABLE % "ny.none"), known.register("more", "ny.none")]
    told += [known.said(COUNT % 50, secret.replace("postgresql", "nothing"))]
    kept = b"".join(file.read_bytes() for file in airport.place.folder.glob("ledger.db*"))
    assert b"ny.flights" in kept and b"hunter2" not in kept and "hunter2" not in "".join(map(str, told))


@pytest.mark.parametrize("url", ["postgresql://nobody@127.0.0.1:9/none", "sc://127.0.0.1:9"])
def test_a_registered_dataset_is_a_file_of_this_machine(place: Place, url: str) -> None:
    pytest.importorskip("psycopg" if url.startswith("postgresql") else "pyspark")
    place.register()
    result = place.run(
        DATASET + "release n = {{ select count(*) from people with epsilon 1 }}\n", place.session(engine=url)
    )
    (fault,) = result.diagnostics
    assert fault.message.startswith("`people` is a registered dataset, a file of this machine")
    assert "the ledger counts" in (fault.help or "") and "postgres(" not in str(fault) and "spark(" not in str(fault)
    assert place.run(DATASET + "release n = {{ select count(*) from people with epsilon 1 }}\n").ok


def test_a_description_is_drafted_from_the_catalog(
    airport: Airport, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Types, enums, constraints and comments, which are public; no row is read."""
    airport.sql("""CREATE TYPE ny.class AS ENUM ('first', 'it''s [last]'); CREATE TABLE ny.seats (
        delay int CHECK (delay BETWEEN -60 AND 600), carrier varchar(9) CHECK (carrier IN ('AA', 'U(a)')),
        "key" ny.class,
        paid numeric(5, 2), day date, gone boolean, name text, low int CHECK (low > 0), more json);
        COMMENT ON COLUMN ny.seats.name IS 'of the passenger'; ALTER TABLE ny.seats ADD CHECK (low < 10) NOT VALID""")
    words = ("data", "draft", 'postgres("ny.seats")', "--engine", airport.url)
    assert main([*words]) == 0
    told = capsys.readouterr().out
    for line in (
        "delay: -60..600", 'carrier: {"AA", "U(a)"}', 'key: {"first", "it\'s [last]"}', "paid: -999.99..999.99",
        "day: date", "gone: {true, false}", "name: text", "low: ?", "more: ?",
    ):  # fmt: skip
        assert line in told, (line, told)
    assert "of the passenger" in told and "from 1" in told and "up to" not in told
    monkeypatch.chdir(tmp_path)
    words = ("init", 'postgres("ny.seats")', "--engine", airport.url)
    assert main([*words, "--describe", '{delay: 0..99, carrier: {"AA"}}']) == 0
    assert 'postgres("ny.seats")' in (tmp_path / "seats.jst").read_text()
