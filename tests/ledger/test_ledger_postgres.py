"""A ledger in a PostgreSQL database: what holds of the file holds of it, also when connections die."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from ledger_charge import charge
from ledger_place import DATASET, Place, kind
from storm import one_round, opened, registered
from test_ledger_faults import charged, in_child
from test_ledger_streams import goes_on

from jostle.accounting.amounts import QUANTA, Amount
from jostle.accounting.definitions import pure_price
from jostle.backends.postgres.ledger import LedgerDatabase
from jostle.diagnostics import Refusal
from jostle.privacy.kernel.exposures import Exposure
from jostle.privacy.ledger.ledger import Ledger
from jostle.tools.data import verify

psycopg = pytest.importorskip("psycopg", reason="no driver: pip install 'psycopg[binary]'")

LIMIT, HALF = Amount("epsilon", 30 * QUANTA), pure_price(Amount("epsilon", QUANTA // 2))
COUNT = DATASET + "n = {{ select count(*) from people with epsilon 0.5 }}\nrelease n\n"

Sql = Callable[..., list[Any]]


@pytest.fixture
def ledger(database: tuple[str, Sql], tmp_path: Path) -> Iterator[Ledger]:
    made = registered(tmp_path, LIMIT, at=database[0])
    yield made
    made.store.close()


def refused(action: Callable[[], Any]) -> str:
    with pytest.raises(Refusal) as caught:
        action()
    assert caught.value.first.kind == "LedgerError"
    return caught.value.first.message


def test_nothing_is_lost_in_a_small_storm(database: tuple[str, Sql], tmp_path: Path) -> None:
    one = one_round(tmp_path, processes=3, spends=15, seed=1, at=database[0])
    assert 0 < one.shown <= one.charges <= 45 and one.spent <= one.limit


def test_owners_and_programs_use_it_as_they_use_a_file(place: Place, database: tuple[str, Sql]) -> None:
    url, _ = database
    place.ledger = url
    before = place.run(COUNT)
    assert kind(before) == "LedgerError" and "is not there" in before.diagnostics[0].message
    place.register()
    first, again = place.run(COUNT), place.run(COUNT)
    assert first.values["n"] == again.values["n"]  # an answer that was paid for
    _, listing, _ = place.data("list")
    _, history, _ = place.data("history", "people", "--verify")
    assert "0.5" in listing and "the chain holds" in history and history.count("count") == 1


def test_a_stream_goes_on_in_a_database(place: Place, database: tuple[str, Sql]) -> None:
    place.ledger = database[0]
    goes_on(place)


def test_a_url_of_no_server_that_keeps_a_ledger_is_refused() -> None:
    assert "no server that keeps a ledger" in refused(lambda: Ledger("mysql://ann:secret@db.example/stats"))


def test_what_is_shown_of_an_address_has_no_password() -> None:
    store = LedgerDatabase("postgresql://ann:secret@db.example:5433/stats?password=secret&user=ann")
    assert store.place == "postgresql://db.example:5433/stats"
    assert "secret" not in str(store.refusal("cannot be reached").first)
    assert LedgerDatabase("postgresql:///stats?host=/run/pg&password=x").place == "postgresql:///run/pg/stats"
    assert LedgerDatabase("postgresql://u:p@h:port/x").place == "postgresql://"


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    ledger = Ledger(f"postgresql:///stats?host={tmp_path}&password=secret", timeout=1)
    assert refused(ledger.datasets).endswith("cannot be reached")
    with pytest.raises(Refusal) as refusal:
        ledger.datasets()
    assert "it may be starting: try again" in refusal.value.first.help
    assert refused(lambda: ledger.named(None)).endswith("cannot be reached")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("GRANT SELECT ON jostle_ledger.answers TO PUBLIC", "is open to everybody"),
        ("COMMENT ON SCHEMA jostle_ledger IS 'mine'", "is no ledger of this jostle"),
        ("ALTER TABLE jostle_ledger.history SET UNLOGGED", "is no ledger of this jostle"),
        ("DROP TABLE jostle_ledger.answers", "is no ledger of this jostle"),
        ("UPDATE jostle_ledger.datasets SET state = replace(state, '\"entries\": 1', '\"entries\": 2')", "is damaged"),
    ],
)
def test_what_is_no_ledger_or_no_longer_one(
    ledger: Ledger, database: tuple[str, Sql], statement: str, why: str
) -> None:
    database[1](statement)
    ledger.store.close()
    assert why in refused(lambda: opened(ledger))


def test_a_server_that_can_forget_is_refused(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """`fsync` cannot be changed of a running server: a setting that is off stands for it."""
    monkeypatch.setattr("jostle.backends.postgres.ledger._SETTINGS", ("fsync", "zero_damaged_pages"))
    ledger.store.close()
    assert "can forget what was charged" in refused(ledger.datasets)


def test_each_charge_asks_for_a_commit_on_disk(ledger: Ledger, database: tuple[str, Sql]) -> None:
    name = database[0].partition("?")[0].rsplit("/", 1)[1]
    database[1](f"ALTER DATABASE {name} SET synchronous_commit TO off")
    ledger.store.close()
    with ledger.store.writing() as connection:
        assert connection.execute("SHOW synchronous_commit").fetchone() == ("on",)


def test_a_history_is_only_ever_added_to(ledger: Ledger, database: tuple[str, Sql]) -> None:
    for statement in ("UPDATE {} SET content = ''", "DELETE FROM {}", "TRUNCATE {}"):
        with pytest.raises(psycopg.Error, match="append-only"):
            database[1](statement.format("jostle_ledger.history"))


def test_one_writes_at_a_time(ledger: Ledger, database: tuple[str, Sql]) -> None:
    kernel, source = opened(Ledger(database[0], timeout=0.05))
    with ledger.store.writing():
        message = refused(lambda: charge(kernel, (Exposure(source),), HALF, "count"))
        assert verify(Ledger(database[0]), "people").entries == 1  # who reads does not wait
    assert "locked" in message and source.meter.spent == (0,)
    charge(kernel, (Exposure(source),), HALF, "count")
    assert verify(ledger, "people").spent == (QUANTA // 2,)


def test_charges_that_meet_wait_for_each_other(ledger: Ledger, database: tuple[str, Sql]) -> None:
    """Of 80 halves for which 30 are there, 60 are paid."""
    paid: list[int] = []

    def spend() -> None:
        kernel, source = opened(Ledger(database[0]))
        for _ in range(20):
            with suppress(Refusal):
                charge(kernel, (Exposure(source),), HALF, "count")
                paid.append(1)

    threads = [threading.Thread(target=spend) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(paid) == 60 and verify(ledger, "people").spent == (30 * QUANTA,)


def kill_others(database: tuple[str, Sql]) -> None:
    database[1](
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
        "AND pid <> pg_backend_pid()"
    )


def test_a_connection_that_dies_while_it_writes_leaves_nothing(ledger: Ledger, database: tuple[str, Sql]) -> None:
    def dies() -> None:
        with ledger.store.writing() as connection:
            connection.execute("UPDATE datasets SET state = '{}'")
            kill_others(database)

    assert refused(dies).endswith("cannot be reached")
    assert verify(ledger, "people").entries == 1  # over a new connection
    assert charged(ledger) == "5 charged"


def test_a_connection_that_dies_between_charges_is_made_anew(ledger: Ledger, database: tuple[str, Sql]) -> None:
    kernel, source = opened(ledger)
    charge(kernel, (Exposure(source),), HALF, "count")
    kill_others(database)
    charge(kernel, (Exposure(source),), HALF, "count")
    assert source.meter.spent == verify(ledger, "people").spent == (QUANTA,)
    kill_others(database)
    with suppress(Refusal), ledger.store.writing() as connection:  # once it has begun nobody knows what was written
        connection.execute("UPDATE datasets SET state = '{}'")
        kill_others(database)
        connection.execute("SELECT 1")
        pytest.fail("the transaction went on over another connection")
    assert verify(ledger, "people").spent == (QUANTA,)


def test_a_new_connection_is_looked_at_as_the_first(ledger: Ledger, database: tuple[str, Sql]) -> None:
    assert ledger.datasets()
    kill_others(database)
    database[1]("DROP TABLE jostle_ledger.answers")
    assert "is no ledger of this jostle" in refused(ledger.datasets)


def test_an_older_dump_that_is_restored_is_noticed_by_who_spent(
    ledger: Ledger, dumps: Callable[[str], Callable[[], None]]
) -> None:
    kernel, source = opened(ledger)
    charge(kernel, (Exposure(source),), HALF, "count")
    older = dumps("jostle_ledger")
    charge(kernel, (Exposure(source),), HALF, "count")
    last = dumps("jostle_ledger")
    older()
    assert "knows less" in refused(lambda: charge(kernel, (Exposure(source),), HALF, "count"))
    last()
    charge(kernel, (Exposure(source),), HALF, "count")
    assert verify(ledger, "people").spent == (3 * QUANTA // 2,) and verify(ledger, "people").entries == 4


def test_a_commit_that_did_not_happen_is_no_commit(ledger: Ledger) -> None:
    """Where a statement failed and somebody went on, the server answers COMMIT with ROLLBACK, and no error."""

    def went_on() -> None:
        with ledger.store.writing() as connection, suppress(psycopg.Error):
            connection.execute("SELECT 1 / 0")

    assert refused(went_on).endswith("cannot be written")


def test_no_connection_lives_through_a_fork(ledger: Ledger) -> None:
    assert charged(ledger) == "5 charged"
    assert in_child(lambda: charged(ledger)) == "5 charged"
    with ledger.store.writing():
        said = in_child(lambda: charged(ledger))
        assert said.startswith("0 LedgerError") and "forked" in said
    assert charged(ledger) == "5 charged"
    assert verify(ledger, "people").spent == (15 * QUANTA // 2,)
