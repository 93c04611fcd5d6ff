"""What the ledger counts: runs add, parts count as their maximum within one run, and nothing fits twice."""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest
from ledger_charge import charge
from ledger_place import DATASET, Place
from storm import opened, registered

from jostle.accounting.amounts import QUANTA, Amount
from jostle.accounting.definitions import Measure, gaussian_price, pure_price
from jostle.diagnostics import Refusal
from jostle.engine.files import OpenFile
from jostle.privacy.kernel.exposures import Exposure, Source
from jostle.privacy.kernel.kernel import Kernel
from jostle.privacy.ledger.ledger import Account, Growth, Ledger
from jostle.privacy.ledger.registered import Terms
from jostle.privacy.ledger.store import completed, seen_file
from jostle.privacy.mechanisms.margin import stability_price
from jostle.readers.filesets import reader_of
from jostle.tools.data import verify

ONE = Amount("epsilon", QUANTA)


def spend(kernel: Kernel, source: Source, epsilon: float, *path: tuple[str, str]) -> None:
    amount = Amount("epsilon", round(epsilon * QUANTA))
    charge(kernel, (Exposure(source, path),), pure_price(amount), "count")


def total(ledger: Ledger) -> tuple[float, ...]:
    return tuple(place / QUANTA for place in ledger.dataset("people").state.spent)


def refused(kind: str, *args: object) -> str:
    with pytest.raises(Refusal) as caught:
        spend(*args)  # type: ignore[arg-type]
    assert caught.value.first.kind == kind
    return caught.value.first.message


def test_runs_add_and_parts_count_as_their_maximum(tmp_path: Path) -> None:
    ledger = registered(tmp_path, Amount("epsilon", 3 * QUANTA))
    for run in (1, 2):
        mine = opened(Ledger(ledger.store.path))
        spend(*mine, 0.25)
        spend(*mine, 0.5, ("sex", "F"))
        spend(*mine, 0.75, ("sex", "M"))
        spend(*mine, 0.25, ("sex", "F"))
        assert total(ledger) == (run * 1.0,)
    entries = ledger.history("people")
    assert [e.growth[0] / QUANTA for e in entries[1:]] == [0.25, 0.5, 0.25, 0.0] * 2
    assert verify(ledger, "people").spent == (2 * QUANTA,)


def test_a_source_that_a_measurement_names_twice_is_refused(tmp_path: Path) -> None:
    """Each exposure is tested by itself against what is left: two of one source would both fit in half of it."""
    ledger = registered(tmp_path, ONE)
    kernel, source = opened(ledger)
    twice = (Exposure(source, (("sex", "F"),)), Exposure(source))
    with pytest.raises(Refusal, match="each of its sources once"):
        charge(kernel, twice, pure_price(Amount("epsilon", round(0.75 * QUANTA))), "count")
    assert total(ledger) == (0.0,) and not source.charges


def test_what_does_not_fit_leaves_nothing(tmp_path: Path) -> None:
    ledger = registered(tmp_path, ONE)
    first, second = opened(ledger), opened(Ledger(ledger.store.path))
    spend(*first, 0.75)
    before = ledger.dataset("people").state
    message = refused("BudgetExceeded", *second, 0.5)  # the second session knew of nothing spent
    assert "0.25 is left of the budget of `people`" in message
    assert ledger.dataset("people").state == before
    spend(*second, 0.25)
    assert total(ledger) == (1.0,)
    refused("BudgetExceeded", *first, 0.000001)


def test_what_others_spend_is_known_after_the_next_charge(tmp_path: Path) -> None:
    ledger = registered(tmp_path, Amount("epsilon", 3 * QUANTA))
    first, second = opened(ledger), opened(Ledger(ledger.store.path))
    spend(*first, 1.0)
    spend(*second, 0.5, ("sex", "F"))
    kernel, source = second
    assert source.meter.spent == (1.5 * QUANTA,)
    assert kernel.left_of(Exposure(source))[0] == 1.5 * QUANTA
    assert kernel.left_of(Exposure(source, (("sex", "M"),)))[0] == 2 * QUANTA  # slack beside its own part only


def test_two_datasets_in_one_measurement_are_charged_both_or_not(tmp_path: Path) -> None:
    ledger = registered(tmp_path, ONE)
    registered(tmp_path, Amount("epsilon", 2 * QUANTA), name="others")
    kernel, people = opened(ledger)
    dataset, _ = ledger.open("others")
    others = kernel.register.declare("others", "others", dataset.terms.measure, dataset.terms.unit, None)
    others.join(Account(ledger, dataset), None)
    both = (Exposure(others), Exposure(people))
    charge(kernel, both, pure_price(ONE), "join")
    with pytest.raises(Refusal) as caught:
        charge(kernel, both, pure_price(Amount("epsilon", QUANTA // 2)), "join")
    assert "`people`" in caught.value.first.message
    assert ledger.dataset("others").state.spent == (QUANTA,)
    assert len(ledger.history("others")) == 2
    growths = [Growth("others", 1, (QUANTA // 2,), {}), Growth("people", 1, (QUANTA // 2,), {})]
    assert ledger.charge(growths).refused == 1 and len(ledger.history("others")) == 2


@pytest.mark.parametrize("kind", ["zcdp", "approximate", "basic"])
def test_other_measures_hold_over_runs(tmp_path: Path, kind: str) -> None:
    limit = Amount("rho", QUANTA) if kind == "zcdp" else Amount("epsilon", 2 * QUANTA, QUANTA // 10**6)
    asked = Amount("rho", QUANTA // 4) if kind == "zcdp" else Amount("epsilon", QUANTA // 4, QUANTA // 10**7)
    price = gaussian_price(asked, 0.0) if kind == "zcdp" else stability_price(asked)
    ledger = registered(tmp_path, limit, kind)
    charged = 0
    while charged < 20:
        kernel, source = opened(Ledger(ledger.store.path))
        try:
            charge(kernel, (Exposure(source),), price, "keys")
        except Refusal as refusal:
            assert refusal.first.kind == "BudgetExceeded"
            break
        charged += 1
    held = verify(ledger, "people")
    measure = ledger.dataset("people").terms.measure
    assert held.entries == charged + 1 and measure.admits(held.spent)
    assert not measure.admits(tuple(s + c for s, c in zip(held.spent, measure.cost(price), strict=True)))
    assert charged == (4 if kind == "zcdp" else 8)


def test_threads_with_one_ledger_cannot_overspend(tmp_path: Path) -> None:
    ledger = registered(tmp_path, Amount("epsilon", 10 * QUANTA))
    done: list[int] = []

    def spender() -> None:
        kernel, source = opened(ledger)
        for _ in range(8):
            try:
                spend(kernel, source, 0.5)
            except Refusal:
                return
            done.append(1)

    threads = [threading.Thread(target=spender) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=900)
    assert not any(thread.is_alive() for thread in threads)
    assert len(done) == 20 and total(ledger) == (10.0,)


def test_a_charge_on_data_that_were_updated_meanwhile_is_refused(tmp_path: Path) -> None:
    ledger = registered(tmp_path, ONE)
    mine = opened(ledger)
    spend(*mine, 0.25)
    (tmp_path / "people.csv").write_text("age\n50\n", encoding="utf-8")
    ledger.update("people")
    assert "changed while" in refused("LedgerError", *mine, 0.25)
    with pytest.raises(Refusal) as caught:  # as if the file had kept its size and times
        ledger.charge([Growth("people", 1, (QUANTA // 4,), {})])
    assert "updated while" in caught.value.first.message
    assert total(ledger) == (0.25,)
    spend(*opened(ledger), 0.25)
    assert [e.content["version"] for e in ledger.history("people")] == [1, 1, 2, 2]


def test_what_is_registered_is_the_file_that_was_looked_at(tmp_path: Path) -> None:
    """Another file moves to its path while it is looked at: the dataset is not that other one."""
    ledger = registered(tmp_path, ONE)
    path, other = tmp_path / "people.csv", tmp_path / "other.csv"
    path.write_text("age\n30\n31\n", encoding="utf-8")
    other.write_text("age\n50\n", encoding="utf-8")

    def swap(terms: Terms, file: OpenFile) -> None:
        assert reader_of(file).read() == b"age\n30\n31\n"
        os.replace(other, path)

    with pytest.raises(Refusal, match="changed while"):
        ledger.update("people", swap)
    assert ledger.dataset("people").state.version == 1
    with pytest.raises(Refusal, match="has changed since it was registered"):
        ledger.open("people")


def test_an_older_copy_put_in_the_ledgers_place_is_noticed_by_who_spent(tmp_path: Path) -> None:
    ledger = registered(tmp_path, ONE)
    ledger.store.close()
    shutil.copy(ledger.store.path, tmp_path / "old.db")
    mine = opened(ledger)
    spend(*mine, 0.5)
    ledger.store.close()
    for name in ("ledger.db-wal", "ledger.db-shm"):
        (tmp_path / name).unlink(missing_ok=True)
    shutil.copy(tmp_path / "old.db", ledger.store.path)
    assert "knows less" in refused("LedgerError", *mine, 0.5)


def test_an_older_copy_is_noticed_by_who_comes_later(owned: Place) -> None:
    """By every session of a user who has spent since, before anything is read; also where two copies are charged."""
    asks = DATASET + "n = {{ select count(*) from people where age > %d with epsilon 1 }}\nrelease n\n"
    older, copy = owned.folder / "old.db", owned.folder / "copy.db"

    def put(there: Path, into: Path) -> None:
        with closing(sqlite3.connect(there)) as one, closing(sqlite3.connect(into)) as other:
            one.backup(other)
        into.chmod(0o600)

    assert owned.run(asks % 20).ok
    for one in (older, copy):
        put(owned.path, one)
    assert owned.run(asks % 30).ok and owned.run(asks % 40).ok
    assert "is left of the budget" in str(owned.run(asks % 50).diagnostics)
    put(owned.path, last := owned.folder / "last.db")
    put(older, owned.path)
    said = owned.run(asks % 50)
    assert [d.kind for d in said.diagnostics] == ["LedgerError"] and "lacks a charge" in said.diagnostics[0].message
    assert verify(Ledger(owned.path), "people").entries == 2
    put(last, owned.path)
    assert owned.run(asks % 20).ok  # given again, by the history that was seen
    owned.ledger = copy
    assert "lacks a charge" in str(owned.run(asks % 60).diagnostics)
    seen = seen_file(Ledger(copy).dataset("people").key)
    for other in ("", "x y", "-1 x", f"{10**30} x", "1"):
        seen.write_text(other)
        assert owned.run(asks % 20).ok == (len(other.split()) < 2 or other == "x y"), other
        seen.unlink(missing_ok=True)
    assert owned.run(asks % 60).ok  # its owner says that nothing was lost


def test_who_can_keep_no_note_is_answered_all_the_same(owned: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", os.devnull)
    asks = DATASET + "n = {{ select count(*) from people with epsilon 1 }}\nrelease n\n"
    assert owned.run(asks).ok and owned.run(asks).ok


def test_a_ledger_that_counted_in_fewer_places_is_read_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A charge under (ε, δ) had two places, then three with a plain sum, of budgets whose ρ was that of ¾·δ."""
    limit = Amount("epsilon", 2 * QUANTA, QUANTA // 10**6)
    price = pure_price(Amount("epsilon", QUANTA // 100))
    ledger = None
    for places in (2, 3):
        with monkeypatch.context() as before:
            cost = (price.rho, 0, price.amount.value)[:places]
            before.setattr(Measure, "width", property(lambda self, places=places: places))
            before.setattr(Measure, "cost", lambda self, price, part=False, cost=cost: cost)
            before.setattr(Measure, "admits", lambda self, total: total[0] <= self.rho_limit)
            ledger = ledger or registered(tmp_path, limit, "approximate")
            kernel, source = opened(Ledger(ledger.store.path))
            for _ in range(3):
                charge(kernel, (Exposure(source),), price, "count")
    kernel, source = opened(Ledger(ledger.store.path))
    quarter = limit.delta // 4
    older = (6 * price.rho, quarter, limit.value + 1 + 3 * price.amount.value, limit.delta)
    assert source.meter.spent == older  # plain sums of it are not known: in ρ alone
    charge(kernel, (Exposure(source),), price, "count")
    held = verify(ledger, "people")
    assert held.older and held.entries == 8
    assert held.spent == (7 * price.rho, quarter, older[2] + price.amount.value, limit.delta)
    with pytest.raises(Refusal, match="is left of the budget"):
        charge(kernel, (Exposure(source),), pure_price(Amount("epsilon", QUANTA)), "count")


def test_what_is_left_of_an_older_total_keeps_within_the_older_shares() -> None:
    """ρ to that of ¾·δ and a quarter for failures: what is used of the rest goes up to that quarter."""
    limit = Amount("epsilon", 2 * QUANTA, QUANTA // 10**6)
    measure = Measure("approximate", limit)
    assert completed(measure, (0, 0, 0), 4) == (0, 0, 0, 0)
    used = limit.delta // 16
    total = completed(measure, (5, used, QUANTA), 4)
    assert total[0] == 5 and total[2] == QUANTA and measure.admits(total)
    assert used + (limit.delta - total[1]) / 3 <= limit.delta / 4
    some = measure.cost(gaussian_price(Amount("epsilon", QUANTA, 1), 1e-13))
    assert total[3] + some[3] > limit.delta  # no Gaussian noise in its plain sum
