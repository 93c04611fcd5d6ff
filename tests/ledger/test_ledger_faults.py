"""A ledger that cannot be used: one diagnostic, nothing read, nothing charged."""

from __future__ import annotations

import gc
import os
import resource
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from ledger_charge import charge
from ledger_place import DATASET, Place, kind
from storm import opened, registered

from jostle.accounting.amounts import QUANTA, Amount
from jostle.accounting.definitions import pure_price
from jostle.diagnostics import Refusal
from jostle.privacy.kernel.exposures import Exposure
from jostle.privacy.ledger.ledger import Ledger
from jostle.tools.data import verify

COUNT = DATASET + "n = {{ select count(*) from people with epsilon 0.5 }}\nrelease n\n"
PRICE = pure_price(Amount("epsilon", QUANTA // 2))
LIMIT = Amount("epsilon", 30 * QUANTA)


def test_a_ledger_that_is_not_there(place: Place) -> None:
    made = place.run(COUNT)
    assert kind(made) == "LedgerError" and "is not there" in made.diagnostics[0].message
    assert not place.path.exists()


@pytest.mark.parametrize("text", ["", "no ledger at all\n" * 200])
def test_a_file_that_is_no_ledger(place: Place, text: str) -> None:
    place.path.write_text(text)
    assert kind(place.run(COUNT)) == "LedgerError"


def test_a_database_of_something_else(place: Place) -> None:
    with sqlite3.connect(place.path) as connection:
        connection.execute("CREATE TABLE datasets (name TEXT)")
    connection.close()
    os.chmod(place.path, 0o600)
    made = place.run(COUNT)
    assert kind(made) == "LedgerError" and "no ledger of this jostle" in made.diagnostics[0].message


def test_a_ledger_that_all_may_read_is_not_used(owned: Place) -> None:
    os.chmod(owned.path, 0o644)
    made = owned.run(COUNT)
    assert kind(made) == "LedgerError" and "open to everybody" in made.diagnostics[0].message


def test_a_damaged_ledger(owned: Place, never_read: Callable[[], None]) -> None:
    Ledger(owned.path).store.close()
    size = owned.path.stat().st_size
    with owned.path.open("r+b") as file:
        file.seek(1024)
        file.write(b"\xff" * (size - 1024))
    made = owned.run(COUNT)
    assert kind(made) == "LedgerError" and not made.values
    never_read()


def test_a_locked_ledger(tmp_path: Path) -> None:
    ledger = registered(tmp_path, LIMIT)
    kernel, source = opened(Ledger(ledger.store.path, timeout=0.05))
    with ledger.store.writing(), pytest.raises(Refusal) as caught:
        charge(kernel, (Exposure(source),), PRICE, "count")
    assert caught.value.first.kind == "LedgerError" and "locked" in caught.value.first.message
    assert source.meter.spent == (0,) and verify(ledger, "people").entries == 1
    charge(kernel, (Exposure(source),), PRICE, "count")
    assert verify(ledger, "people").spent == (QUANTA // 2,)


def test_a_program_that_meets_a_locked_ledger_reads_nothing(
    owned: Place, never_read: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Ledger.__init__, "__defaults__", (None, 0.05, *Ledger.__init__.__defaults__[2:]))
    with Ledger(owned.path).store.writing():
        made = owned.run(COUNT)
    assert kind(made) == "LedgerError" and not made.values
    assert made.budget == {"people": {"epsilon": {"total": "3", "spent": "0"}}}
    assert (made.diagnostics[0].span.line if made.diagnostics[0].span else 0) == 2
    never_read()


def in_child(action: Callable[[], str]) -> str:
    """What an action says in a process of its own, which leaves the engines of other tests to its parent."""
    gc.collect()
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        gc.disable()
        try:
            os.write(write, action().encode())
        finally:
            os._exit(0)
    os.close(write)
    _, status = os.waitpid(pid, 0)
    assert status == 0, f"the process ended with {status}"
    with os.fdopen(read) as file:
        return file.read()


def charged(ledger: Ledger, meanwhile: Callable[[], None] = lambda: None) -> str:
    """How many of five charges came back, and the refusal that ended them."""
    done = 0
    try:
        kernel, source = opened(ledger)
        before = source.meter.spent[0]
        meanwhile()
        for _ in range(5):
            charge(kernel, (Exposure(source),), PRICE, "count")
            done += 1
            if source.meter.spent != (before + done * QUANTA // 2,):
                return "the meter is wrong"
    except Refusal as refusal:
        return f"{done} {refusal.first.kind}: {refusal.first.message}"
    return f"{done} charged"


@pytest.mark.slow(but=["0", "3", "13"])
@pytest.mark.parametrize("room", [0, 1, 2, 3, 5, 8, 13, 21, 34])
def test_a_full_disk(tmp_path: Path, room: int) -> None:
    """Files of this process may not grow beyond some pages: what SQLite sees of a disk that fills up."""
    ledger = registered(tmp_path, LIMIT)
    ledger.store.close()

    def fill() -> None:
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        resource.setrlimit(resource.RLIMIT_FSIZE, (room * 4096 + 100, hard))

    said = in_child(lambda: charged(ledger, fill))
    assert "LedgerError" in said or said == "5 charged", said
    assert "LedgerError" in said or room > 8
    # What came back was counted; a commit that failed may not have been.
    assert verify(ledger, "people").spent == (int(said.split()[0]) * QUANTA // 2,)
    assert in_child(lambda: charged(Ledger(ledger.store.path))) == "5 charged"


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that another user can reach."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs to become another user, which only root can")
def test_a_ledger_that_may_only_be_read(open_folder: Path) -> None:
    ledger = registered(open_folder, LIMIT)
    ledger.store.close()
    ledger.store.path.chmod(0o440)
    os.chown(ledger.store.path, 0, 65534)

    def as_nobody() -> str:
        os.setgid(65534)
        os.setuid(65534)
        return charged(ledger)

    said = in_child(as_nobody)
    assert said.startswith("0 LedgerError"), said
    assert verify(ledger, "people").entries == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes read-only files; the test above is for root")
def test_ones_own_ledger_that_may_only_be_read(tmp_path: Path) -> None:
    ledger = registered(tmp_path, LIMIT)
    ledger.store.close()
    ledger.store.path.chmod(0o400)
    tmp_path.chmod(0o500)
    try:
        assert charged(ledger).startswith("0 LedgerError")
    finally:
        tmp_path.chmod(0o700)
    assert verify(ledger, "people").entries == 1


def test_a_killed_commit_leaves_all_or_nothing(tmp_path: Path) -> None:
    """A process that dies inside its transaction has charged nothing, and the ledger goes on."""
    ledger = registered(tmp_path, LIMIT)
    ledger.store.close()

    def dies() -> str:
        with Ledger(ledger.store.path).store.writing() as connection:
            connection.execute("UPDATE datasets SET state = '{}'")
            os._exit(9)

    with pytest.raises(AssertionError, match="ended with"):
        in_child(dies)
    assert verify(ledger, "people").entries == 1
    assert charged(ledger) == "5 charged"


def test_no_connection_lives_through_a_fork(tmp_path: Path) -> None:
    """Else the parent, closing, could delete the log into which its child commits."""
    ledger = registered(tmp_path, LIMIT)
    read, write = os.pipe()
    done_read, done_write = os.pipe()
    assert charged(ledger) == "5 charged"  # the parent's connection is open now
    pid = os.fork()
    if pid == 0:
        gc.disable()
        said = charged(ledger)
        os.write(done_write, b"1")
        os.read(read, 1)  # until the parent has closed
        os._exit(0 if said == charged(ledger) == "5 charged" else 1)
    os.read(done_read, 1)
    assert charged(ledger) == "5 charged"
    ledger.store.close()
    os.write(write, b"1")
    assert os.waitpid(pid, 0)[1] == 0
    for end in (read, write, done_read, done_write):
        os.close(end)
    assert verify(ledger, "people").spent == (20 * QUANTA // 2,)


def test_a_fork_within_a_transaction_is_refused_in_the_child(tmp_path: Path) -> None:
    ledger = registered(tmp_path, LIMIT)
    with ledger.store.writing():
        said = in_child(lambda: charged(ledger))
    assert said.startswith("0 LedgerError") and "forked" in said
    assert charged(ledger) == "5 charged"
