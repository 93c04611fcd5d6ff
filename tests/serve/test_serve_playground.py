"""`jostle serve --playground`: whoever opens it runs programs on public files, and on nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jostle import resources
from jostle.serve import worker

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
    '["data/people.csv"]', '[["x"]]', '[p for p in ["/etc/passwd"]]', '"data/" + "people.csv"',
    '["/etc/passwd", {a: 1}]',
])  # fmt: skip
def test_no_list_of_paths_is_opened(public: Any, data: str) -> None:
    assert worker.unregistered(worker.source_of(f"t = table({data})\n"), public.server.runs.public)


@pytest.mark.parametrize("data", ["table([{a: 1}])", "counts([[1, 2], [3, 4]])", "counts([round(i) for i in 1..3])"])
def test_rows_and_counts_that_a_program_writes_are_its_own(public: Any, data: str) -> None:
    assert not worker.unregistered(worker.source_of(f"t = {data}\n"), public.server.runs.public)


@pytest.mark.parametrize(
    "name", ["/etc/passwd", "../pyproject.toml", "data/../../README.md", "data", "none.csv", "*.csv"]
)
def test_no_other_file_is_opened(public: Any, name: str) -> None:
    client, headers, _ = guest(public)
    for program in (f'release t = size(table("{name}"))\n', f'f = "{name}"\nt = table(f)\n', "t = table\n"):
        answer = client.post("/api/check", json={"program": program}, headers=headers).json()
        assert not answer["ok"] and "opens no data" in answer["errors"][0]["message"]
    assert worker.unregistered(worker.source_of('t = table("data/people.csv")\n')) != ()


def test_examples_of_the_documentation_open(public: Any, tmp_path: Path) -> None:
    client, headers, _ = guest(public)
    examples = client.get("/api/examples").json()["examples"]
    names = {one["name"] for one in examples}
    assert {"first", "choose", "library: queries", "library: statistics"} <= names and len(names) > 15
    first = next(one["program"] for one in examples if one["name"] == "first")
    assert client.post("/api/check", json={"program": first}, headers=headers).json()["ok"]


def test_elsewhere_there_is_no_playground(place: Any) -> None:
    assert place.client().post("/play").status_code == 404
    assert place.get("ana", "/api/examples").status_code == 404
