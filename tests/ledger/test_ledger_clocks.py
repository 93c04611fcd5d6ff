"""Budgets by periods where clocks are set: summer time begins and ends, a machine's clock goes back, runs are at once.

A period follows from a row's own moment, in UTC, and from no clock; grants go by the clock of their runs.
"""

from __future__ import annotations

import gc
import os
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from ledger_place import Place, kind
from test_ledger_grants import count, epsilon, run_for

from jostle.accounting.amounts import QUANTA
from jostle.privacy.ledger import store
from jostle.privacy.ledger.ledger import Ledger
from jostle.tools.data import verify

VISITS = 'private visits = dataset("visits")\n'
NIGHTS = [datetime(2026, 3, 28, tzinfo=UTC), datetime(2026, 10, 24, tzinfo=UTC)]
"""Before clocks go forward, and before they go back, which gives one hour twice."""
MOMENTS = [night + timedelta(minutes=30 * k) for night in NIGHTS for k in range(120)]


@pytest.fixture
def zone() -> Iterator[None]:
    """The process's time zone is put back."""
    before = os.environ.get("TZ")
    yield
    os.environ.pop("TZ", None)
    os.environ.update({} if before is None else {"TZ": before})
    time.tzset()


def _write(place: Place, form: str, zone: str) -> str:
    """The same moments as a zone's clock writes them: with its offset, or as a column of that zone."""
    path, local = place.folder / f"visits.{form}", [at.astimezone(ZoneInfo(zone)) for at in MOMENTS]
    if form == "parquet":
        pq.write_table(pa.table({"at": pa.array(MOMENTS, pa.timestamp("us", zone))}), path)
    else:
        path.write_text("\n".join(["at", *(at.isoformat() for at in local)]) + "\n")
    return str(path)


@pytest.mark.parametrize("unit", ["day", "week", "month"])
@pytest.mark.parametrize(("form", "written"), [("csv", "Europe/Berlin"), ("parquet", "Europe/Berlin"), ("csv", "UTC")])
def test_a_row_is_in_one_period_wherever_a_program_runs(
    place: Place, zone: None, form: str, written: str, unit: str
) -> None:
    """Else a machine that moves would have another period, with a budget of its own, for the same rows."""
    path = _write(place, form, written)
    words = ("--schema", "{at: time}", "--protecting", "rows", "--budget", f"rho 1000000 each {unit} of at")
    assert place.data("register", "visits", path, *words)[0] == 0
    days = Counter(at.date() for at in MOMENTS)
    starts = {day: day if unit == "day" else day - timedelta(day.weekday() if unit == "week" else day.day - 1)
              for day in days}  # fmt: skip
    wanted: dict[date, int] = {}
    for day, many in days.items():
        wanted[starts[day]] = wanted.get(starts[day], 0) + many
    over = ", ".join(map(str, sorted(wanted)))
    program = (
        VISITS + f"release g = {{{{ select count(*) as n from visits groupby period over [{over}] with rho 1e5 }}}}\n"
    )
    for number, here in enumerate(("Europe/Berlin", "Pacific/Auckland", "America/St_Johns")):
        os.environ["TZ"] = here
        time.tzset()
        result = place.run(program.replace("rho 1e5", f"rho {100_000 + number}"))
        assert result.ok, result.diagnostics
        columns = result.values["g"].columns
        assert {day: round(float(n)) for day, n in zip(columns["period"], columns["n"], strict=True)} == wanted
        first = min(wanted)
        assert place.run(f"{VISITS}n = {{{{ select count(*) from visits[period = {first}] with rho 1 }}}}\n").ok
    parts = {entry.content["part"][0] for entry in Ledger(place.path).history("visits") if "part" in entry.content}
    assert parts == {str(min(wanted))}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[datetime]:
    """What the machine's clock says."""
    says = [datetime(2026, 11, 30, 12, tzinfo=UTC)]

    class Clock(datetime):
        @classmethod
        def now(cls, tz: object = None) -> datetime:
            return says[0]

    monkeypatch.setattr(store, "datetime", Clock)
    return says


def _people(place: Place, budget: str) -> None:
    rows = [f"2026-01-{5 + k % 14:02},u{k % 9}" for k in range(90)]
    (place.folder / "visits.csv").write_text("\n".join(["day,user", *rows]) + "\n")
    words = ("--schema", "{day: date}", "--protecting", "user up to 3 rows", "--budget", budget)
    status, _, said = place.data("register", "visits", str(place.folder / "visits.csv"), *words)
    assert status == 0, said


COUNT = VISITS + "release n = {{{{ select count(*) from visits[period = {}] with rho {} }}}}\n"


def test_a_clock_that_goes_back_opens_no_period_again(place: Place, clock: list[datetime]) -> None:
    _people(place, "rho 1 each week of day, rho 1.5 for ever")
    assert place.run(COUNT.format("2026-01-05", 0.75)).ok
    for back in (0, 40, 4000):
        clock[0] -= timedelta(back)
        assert kind(place.run(COUNT.format("2026-01-05", 0.3))) == "BudgetExceeded"
        assert kind(place.run(COUNT.format("2026-01-12", 0.8))) == "BudgetExceeded"  # for ever
    assert place.run(COUNT.format("2026-01-12", 0.75)).ok
    assert verify(Ledger(place.path), "visits").spent == (QUANTA * 3 // 4, QUANTA * 3 // 2)


def test_a_clock_that_goes_back_gives_no_week_of_a_grant_again(owned: Place, clock: list[datetime]) -> None:
    """What was charged at a time to come counts in the seven days before any earlier one."""
    Ledger(owned.path).grant("people", "ana", epsilon(2), until="2026-12-01", per_week=epsilon(0.5))
    assert run_for(owned, "ana", count(0.4)).ok
    for back in (0, 1, 10, 400):
        clock[0] -= timedelta(back)
        assert kind(run_for(owned, "ana", count(0.2))) == "BudgetExceeded"
    clock[0] = datetime(2026, 12, 2, tzinfo=UTC)
    assert kind(run_for(owned, "ana", count(0.05))) == "LedgerError"  # it is over
    assert Ledger(owned.path).dataset("people").state.spent == (QUANTA * 2 // 5,)


@pytest.mark.parametrize("step", [timedelta(days=-3), timedelta(minutes=-1), timedelta(days=-900)])
def test_a_clock_that_goes_back_within_a_program_gives_nothing_again(
    owned: Place, clock: list[datetime], monkeypatch: pytest.MonkeyPatch, step: timedelta
) -> None:
    """Whoever asks for the time is told an earlier one than the last who did: between statements, and within one."""
    Ledger(owned.path).grant("people", "ana", epsilon(2), until="2026-12-01", per_week=epsilon(0.5))
    asked = list[datetime]()

    def earlier(*_: object) -> datetime:
        asked.append(clock[0] + step * len(asked))
        return asked[-1]

    monkeypatch.setattr(store.datetime, "now", earlier)
    many = "".join(f"n{k} = {{{{ select count(*) from t where age > {k} with epsilon 0.1 }}}}\n" for k in range(9))
    result = run_for(owned, "ana", count(0.1) + many)
    assert kind(result) == "BudgetExceeded" and len(asked) > 5
    for _ in range(3):
        assert kind(run_for(owned, "ana", count(0.11))) == "BudgetExceeded"
    ledger = Ledger(owned.path)
    assert verify(ledger, "people").spent == verify(ledger, "people@ana").spent == (QUANTA // 2,)


@pytest.mark.slow
@pytest.mark.parametrize("budget", ["rho 1 each week of day, rho 1.5 for ever", "rho 1 each week of day"])
def test_programs_at_once_share_each_period(place: Place, budget: str) -> None:
    """Four processes ask both weeks for more than there is; the ledger has no more than that, and what was shown."""
    _people(place, budget)
    children, most = [], QUANTA
    for process in range(4):
        if pid := os.fork():
            children.append(pid)
            continue
        gc.disable()  # what the parent left over is the parent's to free
        shown = 0
        for k in range(6):
            result = place.run(
                COUNT.format(("2026-01-05", "2026-01-12")[(process + k) % 2], 0.125 + (6 * process + k) / 2**20)
            )
            shown += result.ok
            if not result.ok and kind(result) != "BudgetExceeded":
                os._exit(99)
        os._exit(shown)
    shown = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]
    assert 99 not in shown
    ledger = Ledger(place.path)
    charged: dict[str, int] = {}
    entries = [entry.content for entry in ledger.history("visits") if "cost" in entry.content]
    for content in entries:
        charged[content["part"][0]] = charged.get(content["part"][0], 0) + content["cost"][0]
    assert len(entries) == sum(shown) and max(charged.values()) <= most
    total = verify(ledger, "visits").spent
    assert total[0] == max(charged.values())
    left = [QUANTA - spent for spent in charged.values()]
    if "ever" in budget:
        assert total[1] == sum(charged.values())
        left = [3 * QUANTA // 2 - total[1]]
    assert all(0 <= rest < 0.126 * QUANTA for rest in left)  # no more than each asks
