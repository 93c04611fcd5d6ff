"""The programs of the adversary suite, sent to a server by an analyst over neighbouring data: every response, equal,
of every page and fact that there is, as every role.

Noise is blind, secrets are counted and the clock stands still, so that nothing has to be left out of what is compared:
status, headers and body of each response are the same bytes, whatever the rows are.
"""

from __future__ import annotations

import itertools
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from arena import Arena
from hostile import DESCRIBED, ROWS, people, versions
from serve_place import NAMES, Place

from jostle.serve import runs, store, worker
from jostle.serve.routing import ROUTES
from programs import PROGRAMS

BUDGETS = {
    "rows": "epsilon 50",
    "id up to 3 rows": "epsilon 50",
    "delta": "epsilon 20, delta 1e-5 counted by basic",
    "rho": "rho 5",
}
_OPENED = re.compile(
    r'table\("t\.csv"\) described by \{[^}]*\{[^}]*\}[^{}]*(?:\{[^}]*\})?[^}]*\}\s+protecting (.*?) budget (\S+) .*'
)
QUICK = ("counts of every kind", "persons", "stopped by arithmetic", "stopped by the budget")


def for_server(program: str) -> str:
    """A program whose tables are registered data."""

    def opened(match: re.Match[str]) -> str:
        kind = "rho" if match[2] == "rho" else "delta" if "delta" in match[0] else match[1]
        return f'dataset("{list(BUDGETS).index(kind) * "t" + "t"}")'

    return _OPENED.sub(opened, program)


class Conversation:
    """All responses that an analyst gets of a server with these rows, one after the other."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch, content: bytes) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        patch.setenv("XDG_STATE_HOME", str(folder / "state"))  # a machine of its own: the keys of all are equal
        numbers = itertools.count()
        for module in (store, runs):
            patch.setattr(module, "new_secret", lambda: f"{next(numbers):064x}")
        self.clock, self.seen = 1.8e9, list[tuple[int, list[tuple[str, str]], bytes]]()
        patch.setattr(time, "time", lambda: self.clock)
        patch.setattr(runs, "MOST_HANDED", 10**6)
        for place in ("jostle.serve.store", "jostle.privacy.ledger.ledger", "jostle.privacy.ledger.grants"):
            patch.setattr(f"{place}.now", lambda ago=None: "2027-01-15T08:00Z")
        patch.setattr("jostle.privacy.ledger.store.new_key", lambda: b"k" * 32)
        self.place = Place(folder)
        for k, (unit, budget) in enumerate(BUDGETS.items(), 1):
            name = "t" * k
            (folder / "data" / f"{name}.csv").write_bytes(content + b"," * k + b"\n")  # no two have the same bytes
            unit = unit if "up to" in unit else "rows"
            done = self.place.post("olga", "/api/datasets", name=name, file=f"{name}.csv", protecting=unit,
                                   schema=DESCRIBED, budget=budget)  # fmt: skip
            assert done.status_code == 200, done.text
            amount = budget.removesuffix(" counted by basic")
            given = self.place.post("olga", "/api/grants", dataset=name, analyst="ana", amount=amount)
            assert given.status_code == 200, given.text

    def ask(self, method: str, path: str, body: object = None, who: str = "ana") -> Any:
        answer = self.place.client().request(method, path, json=body, headers=self.place.headers(who))
        self.seen.append((answer.status_code, sorted(answer.headers.items()), answer.content))
        return answer

    def run(self, program: str) -> dict[str, Any]:
        """Hands it in, looks at everything while it goes on and after, as somebody would who watches."""
        self.ask("POST", "/api/check", {"program": program})
        handed = self.ask("POST", "/api/runs", {"program": program, "seconds": 600.0}).json()
        for names in (("ana", "ben"), NAMES):
            for who in names:
                self.look_at_all(who, handed["id"])
            self.ask("POST", "/api/runs", {"program": "release x = 1\n", "seconds": 600.0})
            self.clock += 600.0
        return dict(self.ask("GET", f"/api/runs/{handed['id']}").json())

    def look_at_all(self, who: str, run: str) -> None:
        """Every page and fact that a route gives, of this run, of this dataset, of a picture and a file of the run."""
        for row in ROUTES:
            if row.method == "GET" and row.path != "/api/ledger/{name}":  # codes of the data, under a secret key
                for name in ("t", "answers.json") if "{name}" in row.path else ("",):
                    self.ask("GET", row.path.format(id=run, name=name, number=0), who=who)


@pytest.fixture
def converse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    (tmp_path / "cwd").mkdir()
    monkeypatch.chdir(tmp_path / "cwd")
    arena = Arena(tmp_path, monkeypatch)
    opened: list[Conversation] = []

    def call(program: str, content: bytes) -> tuple[Conversation, dict[str, Any], list[Any]]:
        if opened:
            opened[-1].place.home.close()
        opened.append(Conversation(tmp_path / "home", monkeypatch, content))
        arena.noise.draws = []
        return opened[-1], opened[-1].run(for_server(program)), arena.noise.draws

    yield call
    opened[-1].place.home.close()


UNDRAWN = ("joins", "tables of", "learn", "a choice", "mistakes after")
"""Of programs that are refused by their text: a calculated argument of `counts` may be a path, a sum is unbounded."""


def compare(converse: Any, name: str, contents: dict[str, bytes]) -> None:
    expected, run, draws = converse(PROGRAMS[name], people())
    assert run["state"] == "done" and (draws or any(word in name for word in UNDRAWN)), run
    for what, content in contents.items():
        other, _, _ = converse(PROGRAMS[name], content)
        assert len(other.seen) == len(expected.seen)
        for one, two in zip(expected.seen, other.seen, strict=True):
            assert one == two, what


@pytest.mark.parametrize("name", QUICK[:2])
def test_responses_are_the_same_bytes_whatever_the_rows_are(converse: Any, name: str) -> None:
    compare(converse, name, dict(list(versions().items())[:1]))


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_of_the_adversary_through_a_server(converse: Any, name: str) -> None:
    some = [row for i, row in enumerate(ROWS) if i % len(PROGRAMS) == list(PROGRAMS).index(name)]
    compare(converse, name, {**versions(), **{row: people(ROWS[row]) for row in some}})


def test_the_comparison_sees_what_a_row_changes(converse: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same with a worker that adds to each answer how many rows there are."""
    leave = worker.leave

    def telling(folder: Path, document: Any) -> None:
        rows = next(folder.parents[1].glob("data/t.csv")).read_bytes().count(b"\n")
        leave(folder, {**document, "document": document["document"][:-1] + f', "rows": {rows}}}'})

    monkeypatch.setattr(worker, "leave", telling)
    with pytest.raises(AssertionError):
        compare(converse, QUICK[0], {"one more": people(b"1,2,Male,Ames,3,4,5,6")})


def test_each_program_opens_what_is_registered() -> None:
    assert all('table("t.csv")' not in for_server(program) for program in PROGRAMS.values())
