"""`jostle serve --playground`: whoever opens it runs programs on public files, and on nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from serve_place import change

from jostle import resources
from jostle.serve import api, worker

BEGIN = 'private people = table("data/people.csv")\n    described by {age: 16..79} protecting rows budget epsilon 1\n'


@pytest.fixture
def public(place: Any) -> Any:
    place.server.runs.public = str(resources.folder("programs").resolve())
    return place


def guest(place: Any) -> Any:
    client = place.client()
    assert client.post("/play").status_code == 303
    page = client.get("/").text
    return client, {"X-CSRF": page.partition('name="csrf" content="')[2].partition('"')[0]}, page


def test_a_visitor_runs_programs_on_public_files(public: Any) -> None:
    client, headers, page = guest(public)
    assert "A program of the documentation" in page and "Your data" not in page
    program = BEGIN + "release n = {{ select count(*) from people with epsilon 0.5 }}\n"
    assert client.post("/api/check", json={"program": program}, headers=headers).json()["cost"][0]["asks"] == "0.5"
    run = client.post("/api/runs", json={"program": program, "seconds": 0.001}, headers=headers).json()
    answer = client.get(f"/api/runs/{run['id']}?wait=1").json()["answer"]
    assert answer["ok"] and answer["released"]["n"] > 100
    other = guest(public)[0]
    assert other.get(f"/api/runs/{run['id']}").status_code == 404  # visitors see their own


@pytest.mark.parametrize("data", [
    '"/etc/passwd"', '["/etc/passwd"]', '[p for p in ["../pyproject.toml"]]', '"data/" + "../../README.md"',
    '"/etc/pass*"',
])  # fmt: skip
def test_no_path_that_is_calculated_leads_elsewhere(public: Any, data: str) -> None:
    client, headers, _ = guest(public)
    for opener in ("table", "counts"):
        program = f"f = {data}\nt = {opener}(f)\nrelease n = {{{{ select count(*) from t }}}}\n"
        run = client.post("/api/runs", json={"program": program, "seconds": 0.001}, headers=headers).json()
        answer = client.get(f"/api/runs/{run['id']}?wait=1").json()["answer"]
        assert not answer["ok"] and "root:" not in str(answer)
        assert "public files that come with it only" in str(answer), answer


def test_no_visitor_learns_which_files_there_are_elsewhere(public: Any, tmp_path: Path) -> None:
    """Where the system holds no process to its files, names were told of any folder."""
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "v.npy").write_bytes(b"")
    client, headers, _ = guest(public)
    said = set()
    for name in ("full", "none"):
        for opened in (f'vectors_in("{tmp_path / name}")', f'table("{tmp_path}/" + "{name}/*")'):
            program = f"x = {opened}\nprint(1)\n"
            run = client.post("/api/runs", json={"program": program, "seconds": 0.001}, headers=headers).json()
            said.add(client.get(f"/api/runs/{run['id']}?wait=1").json()["answer"]["error"]["message"])
    assert said == {"a playground opens the public files that come with it only"}


def test_files_whose_names_are_calculated_are_opened(public: Any) -> None:
    client, headers, _ = guest(public)
    program = 'f = "data/" + "people" + ".csv"\nt = table(f)\nrelease n = {{ select count(*) from t }}\n'
    run = client.post("/api/runs", json={"program": program, "seconds": 0.001}, headers=headers).json()
    assert client.get(f"/api/runs/{run['id']}?wait=1").json()["answer"]["released"]["n"] > 100


@pytest.mark.parametrize("data", ["table([{a: 1}])", "counts([[1, 2], [3, 4]])", "counts([round(i) for i in 1..3])"])
def test_rows_and_counts_that_a_program_writes_are_its_own(public: Any, data: str) -> None:
    assert not worker.unregistered(worker.source_of(f"t = {data}\n"), public.server.runs.public)


@pytest.mark.parametrize(
    "name", ["/etc/passwd", "../pyproject.toml", "data/../../README.md", "data", "none.csv", "*.csv", "../*.toml"]
)
def test_no_other_file_is_opened(public: Any, name: str) -> None:
    client, headers, _ = guest(public)
    answer = client.post("/api/check", json={"program": f't = table("{name}")\n'}, headers=headers).json()
    assert not answer["ok"] and "which is not here" in answer["errors"][0]["message"]
    assert worker.unregistered(worker.source_of('t = table("data/people.csv")\n')) != ()


NEED = {"data/people_too.csv", "visits.csv", "bound"}
"""What examples name and that do not come with the package."""


def test_examples_of_the_documentation_open(public: Any) -> None:
    """Every one, or one sentence says which file it needs."""
    client, headers, _ = guest(public)
    examples = client.get("/api/examples").json()["examples"]
    folder, needs = Path(public.server.runs.public), set()
    assert {path.stem for path in folder.glob("*.jst")} < {one["name"] for one in examples} and len(examples) > 70
    for one in examples:
        faults = worker.unregistered(worker.source_of(one["program"]), public.server.runs.public)
        assert len(faults) <= 1 and all("this needs `" in fault.message for fault in faults), (one["name"], faults)
        needs |= {fault.message.split("`")[1] for fault in faults}
    assert {name for name in needs if not name.startswith("data/packages/")} <= NEED
    first = next(one["program"] for one in examples if one["name"] == "first")
    assert client.post("/api/check", json={"program": first}, headers=headers).json()["ok"]


@pytest.mark.slow
def test_every_example_is_checked_in_a_playground(public: Any) -> None:
    client, headers, _ = guest(public)
    for one in client.get("/api/examples").json()["examples"]:
        answer = client.post("/api/check", json={"program": one["program"]}, headers=headers).json()
        assert answer["ok"] or "needs" in answer["errors"][0]["message"], (one["name"], answer["errors"])


def test_elsewhere_there_is_no_playground(place: Any) -> None:
    assert place.client().post("/play").status_code == 404
    assert place.get("ana", "/api/examples").status_code == 404


def test_visitors_whose_sessions_ended_make_room(public: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand visitors in all would close a playground until it is started anew."""
    monkeypatch.setattr(api, "MOST_GUESTS", len(public.home.accounts()) + 2)
    for _ in range(2):
        guest(public)
    assert public.client().post("/play").status_code == 429
    change(public.home, "UPDATE secrets SET until = 0 WHERE kind = 'session'")
    guest(public)
    names = [str(one["name"]) for one in public.home.accounts()]
    assert "ana" in names and sum(name.startswith("guest-") for name in names) == 1


def test_one_address_does_not_fill_a_playground(public: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from jostle.serve import routing

    monkeypatch.setattr(routing, "PER_NAME", 2)
    assert [public.client().post("/play").status_code for _ in range(3)] == [303, 303, 429]
    assert sum(one["name"].startswith("guest-") for one in public.home.accounts()) == 2
