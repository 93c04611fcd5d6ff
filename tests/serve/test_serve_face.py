"""What the pages ask: reviews with their simulations, the editor, limits of grants, shared runs and exports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from serve_place import change, count, shares

from jostle.accounting.amounts import QUANTA, Amount
from jostle.diagnostics import Refusal
from jostle.plan.digest import digest
from jostle.privacy.ledger.ledger import Ledger
from jostle.records import replace
from jostle.serve import runs as running
from jostle.serve import worker
from jostle.serve.runs import MOST_WAITING
from jostle.serve.workbench import as_csv
from jostle.tools.data import verify

BY_SEX = (
    'private t = dataset("people")\n'
    "release by_sex = {{ select count(*), avg(age) from t group by sex with epsilon 0.5 }}\n"
    "release n = {{ select count(*) from t with epsilon 0.1 }}\n"
)


def waiting(place: Any) -> dict[str, Any]:
    (run,) = place.get("rita", "/api/reviews").json()["runs"]
    return dict(run)


def decide(place: Any, id: str, decision: str, **more: str) -> Any:
    return place.post("rita", f"/api/reviews/{id}", decision=decision, **more)


# Reviews ---------------------------------------------------------------------------------------------


def test_a_reviewer_sees_a_simulated_answer_and_its_trace_before_anything_is_read(place: Any) -> None:
    id = place.run("ben", BY_SEX)["id"]
    run = waiting(place)
    answer = run["simulated"]
    assert answer["ok"] and answer["simulated"] == 1 and answer["rows"] == worker.MADE_UP
    assert {row["sex"] for row in answer["released"]["by_sex"]} == {"F", "M"}
    assert sum(row["count"] for row in answer["released"]["by_sex"]) > 1000  # of 2,000 simulated rows, not of 400
    assert answer["budget"] == {"t": {"epsilon": {"total": "1", "spent": "0.6"}}}
    page = place.get("rita", f"/reviews/{id}/trace")
    assert page.status_code == 200 and "nothing private was opened" in page.text
    assert page.headers["content-security-policy"].startswith("sandbox; default-src 'none'")
    assert [place.get(name, f"/reviews/{id}/trace").status_code for name in ("ben", "olga", "aldo")] == [403] * 3
    assert not place.jobs and shares(place.home)["people"] == 0


def test_a_simulation_is_the_same_whatever_the_rows_are(place: Any) -> None:
    first = place.run("ben", BY_SEX)["id"]
    before = waiting(place)["simulated"]
    decide(place, first, "refused")
    (place.home.folder / "data" / "people.csv").write_text("age,sex\n17,F\n")
    place.run("ben", BY_SEX)
    assert waiting(place)["simulated"] == before


def test_the_difference_is_to_the_last_that_was_approved(place: Any) -> None:
    first = place.run("ben", count(0.25))["id"]
    assert waiting(place)["difference"] is None
    decide(place, first, "approved")
    second = place.run("ben", count(0.5))["id"]
    lines = waiting(place)["difference"]
    assert [one[0] for one in lines if one[:3] not in ("---", "+++") and one[0] in "+-"] == ["-", "+"]
    decide(place, second, "refused")
    place.run("ben", count(0.25))
    assert waiting(place)["difference"] == []


def test_a_decision_is_on_the_text_that_was_read(place: Any) -> None:
    id = place.run("ben", count(0.5))["id"]
    assert decide(place, id, "approved", digest=digest("another text")).status_code == 400
    assert decide(place, id, "perhaps").status_code == 400 and not place.jobs
    assert decide(place, id, "approved", digest=waiting(place)["digest"]).status_code == 200
    assert [job.program for job in place.jobs] == [count(0.5)]
    entries = [one["content"] for one in place.home.audit() if one["content"].get("review") == "approved"]
    assert [one["program"] for one in entries] == [digest(count(0.5))]


def test_a_program_that_is_sent_back_can_be_changed_and_handed_in_again(place: Any) -> None:
    id = place.run("ben", count(0.5))["id"]
    assert decide(place, id, "returned", note="ask for less").json()["state"] == "returned"
    run = place.get("ben", f"/api/runs/{id}").json()
    assert (run["state"], run["note"], run["program"]) == ("returned", "ask for less", count(0.5))
    assert decide(place, id, "approved").status_code == 400 and not place.jobs


def test_programs_that_wait_are_bounded(place: Any) -> None:
    for k in range(MOST_WAITING):
        assert place.post("ben", "/api/runs", program=f"release x = {k}\n").status_code == 200
    assert place.post("ben", "/api/runs", program="release x = 1\n").status_code == 429


def test_simulations_have_places_as_runs_have(place: Any) -> None:
    """Else one analyst's, twenty at once, would take the time that others' runs need."""
    place.server.runs.start = lambda job: None  # it goes on
    first = place.post("ben", "/api/runs", program="release x = 1\n")
    assert first.json()["state"] == "waiting"
    busy = place.post("ben", "/api/runs", program="release x = 2\n")
    assert busy.status_code == 429 and "simulation is under way" in busy.text
    assert len(place.get("rita", "/api/reviews").json()["runs"]) == 1
    place.server.runs.places = 1
    assert place.post("olga", "/api/accounts", name="cyd", role="analyst").status_code == 200
    grant = {"dataset": "people", "analyst": "cyd", "amount": "epsilon 0.5", "review": True}
    assert place.post("olga", "/api/grants", **grant).status_code == 200
    place.tokens["cyd"] = place.home.add_token("cyd", "", "all", 1.0)[1]
    assert "all places" in place.post("cyd", "/api/runs", program="release x = 1\n").text
    change(place.home, "UPDATE runs SET accepted = accepted - 61")
    assert place.post("cyd", "/api/runs", program="release x = 1\n").json()["state"] == "waiting"


# The editor ------------------------------------------------------------------------------------------


def test_columns_of_a_grant_are_checked_before_a_run(place: Any) -> None:
    wrong = BY_SEX.replace("avg(age)", "avg(agee)")
    answer = place.post("ana", "/api/check", program=wrong).json()
    (fault,) = answer["errors"]
    assert (fault["line"], fault["column"]) == (2, 42) and "avg(age)" in fault["help"] and "agee" not in fault["help"]
    run = place.run("ana", wrong)
    assert run["state"] == "done" and not run["answer"]["ok"] and not place.jobs
    # Without a grant nothing is known of the data.
    Ledger(place.home.ledger).set_status("people@ana", "closed", "olga")
    assert place.post("rita", "/api/check", program=wrong).json()["ok"]


def test_ends_of_lines_of_windows_change_nothing(place: Any) -> None:
    here, there = (
        place.post("ana", "/api/check", program=text).json()["cost"]
        for text in (count(0.5), count(0.5).replace("\n", "\r\n"))
    )
    assert here == there and there[0]["unit"] == "epsilon" and there[0]["budget"] == "1"


def test_the_price_is_of_the_grant_and_what_is_too_much_is_left_to_its_meter(place: Any) -> None:
    cost = place.post("ana", "/api/check", program=BY_SEX).json()["cost"][0]
    assert (cost["asks"], cost["budget"], cost["exact"]) == ("0.6", "1", True)
    assert place.post("ana", "/api/check", program=count(7)).json()["ok"]
    assert place.run("ana", count(7))["answer"]["error"]["kind"] == "BudgetExceeded"


def ask(place: Any, name: str, what: str, program: str, line: int = 0, column: int = 0) -> dict[str, Any]:
    answer = place.post(name, "/api/editor", program=program, ask=what, line=line, column=column)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def test_the_editor_offers_published_columns_and_values(place: Any) -> None:
    begun = 'private t = dataset("people")\nn = {{ select avg(a'
    given = ask(place, "ana", "completions", begun, 1, len(begun.splitlines()[1]))
    assert given["typed"] == "a" and {"word": "age", "kind": "column"} in given["words"]
    whole = BY_SEX + 'x = {{ select count(*) from t where sex == "" with epsilon 0.1 }}\n'
    given = ask(place, "ana", "completions", whole, 3, whole.splitlines()[3].index('""') + 1)
    assert [one["word"] for one in given["words"]] == ["F", "M"]


def test_the_editor_lists_no_files_of_the_server(place: Any) -> None:
    for begun in ('t = table("/', 't = table("/proc/self/', 't = table("../'):
        assert ask(place, "ana", "completions", begun, 0, len(begun))["words"] == []


def test_the_editor_explains_and_tidies(place: Any) -> None:
    assert "columns: age, sex" in ask(place, "ana", "hover", BY_SEX, 0, 9)["hover"]
    assert "described as `17..90`" in ask(place, "ana", "hover", BY_SEX, 1, 43)["hover"]
    assert ask(place, "ana", "format", "release   x=1\n")["text"] == "release x = 1\n"
    assert ask(place, "ana", "format", "release x = (\n")["text"] == "release x = (\n"
    for body in ({"ask": "run"}, {"ask": "hover", "line": -1}, {"ask": "hover", "column": 0.5}):
        assert place.post("ana", "/api/editor", program="x", **body).status_code == 400


def test_a_declaration_says_all_that_is_published_and_nothing_else() -> None:
    facts = {"people": "described by {age: 0..9} protecting rows budget epsilon 1"}
    program = 'private p = dataset("people")  # mine\nprivate q = dataset("others")\nx = "private p = dataset("\n'
    stated = worker.with_facts(program, facts)
    assert stated.splitlines()[0] == f'private p = table("people") {facts["people"]}  # mine'
    assert stated.splitlines()[1:] == program.splitlines()[1:]


# Grants ----------------------------------------------------------------------------------------------


@pytest.fixture
def limited(place: Any) -> Any:
    Ledger(place.home.ledger).set_status("people@ana", "closed", "olga")
    place.home.add_account("cleo", "analyst", "system")
    place.tokens["cleo"] = place.home.add_token("cleo", "", "all", 1.0)[1]
    made = place.post("olga", "/api/grants", dataset="people", analyst="cleo", amount="epsilon 1",
                      per_program="epsilon 0.3", per_week="epsilon 0.5")  # fmt: skip
    assert made.status_code == 200, made.text
    return place


def test_one_program_takes_at_most_its_share(limited: Any) -> None:
    two = count(0.25) + "release m = {{ select count(*) from t where age > 30 with epsilon 0.1 }}\n"
    answer = limited.run("cleo", two)["answer"]
    assert answer["error"]["message"] == (
        "your grant on `people` gives at most epsilon 0.3 in one program, and this would be more"
    )
    assert "n" in answer["released"] and shares(limited.home)["people@cleo"] == QUANTA // 4
    (grant,) = limited.get("cleo", "/api/datasets").json()["datasets"][0]["grants"]
    assert (grant["per_program"], grant["per_week"]) == ("epsilon 0.3", "epsilon 0.5")


def test_seven_days_take_at_most_their_share(limited: Any) -> None:
    limited.server.runs.start = lambda job: limited.start(replace(job, began="2026-01-01T00:00Z"))
    assert limited.run("cleo", count(0.3))["answer"]["ok"]  # long ago
    limited.server.runs.start = limited.start
    assert limited.run("cleo", count(0.29))["answer"]["ok"]
    late = limited.run("cleo", count(0.28))["answer"]
    assert "at most epsilon 0.5 in seven days" in late["error"]["message"]
    assert shares(limited.home)["people@cleo"] == QUANTA * 59 // 100
    assert limited.run("cleo", count(0.2))["answer"]["ok"]  # refused, it was not charged
    assert verify(Ledger(limited.home.ledger), "people@cleo").entries == 4


@pytest.mark.parametrize("limit", ["epsilon 2", "rho 0.1", "epsilon 0.1, delta 1e-6", "much"])
def test_a_limit_is_a_part_of_its_grant(place: Any, limit: str) -> None:
    place.home.add_account("cleo", "analyst", "system")
    body = {"dataset": "people", "analyst": "cleo", "amount": "epsilon 0.5"}
    assert place.post("olga", "/api/grants", **body, per_program=limit).status_code == 400
    with pytest.raises(Refusal):
        Ledger(place.home.ledger).grant("people", "cleo", Amount("epsilon", QUANTA // 2), "", None, Amount("rho", 1))
    assert "people@cleo" not in shares(place.home)


def test_an_analyst_is_no_worse_off_than_alone(place: Any) -> None:
    """What one has been granted is there in full, whatever the other asks and is refused."""
    for _ in range(3):
        place.run("ana", count(0.9))
    place.run("ana", count(0.5))
    (grant,) = place.get("ben", "/api/datasets").json()["datasets"][0]["grants"]
    assert (grant["budget"]["spent"], grant["budget"]["total"]) == ("0", "1")
    id = place.run("ben", count(1.0))["id"]
    decide(place, id, "approved")
    assert place.get("ben", f"/api/runs/{id}?wait=1").json()["answer"]["ok"]


# Results ---------------------------------------------------------------------------------------------


def test_a_run_is_shared_by_its_link_and_closed_again(place: Any) -> None:
    id = place.run("ana", BY_SEX)["id"]
    assert place.get("ben", f"/api/runs/{id}").status_code == 404
    assert place.post("ben", f"/api/runs/{id}", shared=True).status_code == 404
    assert place.post("ana", f"/api/runs/{id}", shared=True).status_code == 200
    for name in ("ben", "rita", "aldo", "olga"):
        seen = place.get(name, f"/api/runs/{id}").json()
        assert seen["answer"]["ok"] and not seen["mine"]
        assert place.get(name, f"/runs/{id}/trace").status_code == place.get(name, f"/runs/{id}").status_code == 200
    assert place.get("", f"/api/runs/{id}").status_code == 401
    assert place.get("ben", "/api/runs").json() == {"runs": []}
    place.post("ana", f"/api/runs/{id}", shared=False)
    assert place.get("ben", f"/api/runs/{id}").status_code == 404
    assert {"shared", "closed"} <= {one["content"]["did"] for one in place.home.audit()}


def test_answers_are_kept_as_files(place: Any) -> None:
    id = place.run("ana", BY_SEX)["id"]
    table = place.get("ana", f"/runs/{id}/files/by_sex.csv")
    lines = table.text.splitlines()
    assert lines[0] == "sex,count,count_error,avg,avg_error" and len(lines) == 3
    assert table.headers["content-disposition"] == "attachment" and table.headers["content-type"].startswith("text/csv")
    answer = place.get("ana", f"/runs/{id}/files/answer.json").json()
    assert answer == place.get("ana", f"/api/runs/{id}").json()["answer"]
    for name in ("n.csv", "by_sex", "other.csv", "answer.csv", "..%2fserve.db"):
        assert place.get("ana", f"/runs/{id}/files/{name}").status_code == 404
    assert place.get("ben", f"/runs/{id}/files/by_sex.csv").status_code == 404


def test_a_column_that_the_first_row_has_not_is_kept_too() -> None:
    assert as_csv([{"a": 1}, {"a": 2, "b": 3}], None) == "a,b\n1,\n2,3\n"


def test_a_spreadsheet_takes_no_text_for_a_formula() -> None:
    rows = [{"=1+1": "=HYPERLINK(1)", "n": -2.5}, {"=1+1": "a", "n": 1.0}]
    assert as_csv(rows, [{"n": {"error": 0.5}}, {"n": {"error": 0.5}}]) == (
        "'=1+1,n,n_error\n'=HYPERLINK(1),-2.5,0.5\na,1,0.5\n"
    )


def test_pictures_of_a_program_are_drawn(place: Any) -> None:
    pytest.importorskip("matplotlib")
    id = place.run("ana", 'plot("a line", [1, 2, 3], [3, 1, 2])\nrelease x = 1\n')["id"]
    run = place.get("ana", f"/api/runs/{id}").json()
    assert run["answer"]["ok"], run["answer"]
    assert len(run["pictures"]) == 1
    image = place.get("ana", f"/runs/{id}/pictures/0?ink=light")
    assert image.headers["content-type"] == "image/svg+xml" and "#ececec" in image.text
    assert place.get("ana", f"/runs/{id}/pictures/1").status_code == 404
    assert place.get("ben", f"/runs/{id}/pictures/0").status_code == 404


def test_history_says_what_was_handed_in_and_how_it_went(place: Any) -> None:
    place.run("ana", "# How many are there?\n" + count(0.1))
    place.run("ana", count(5))
    runs = place.get("ana", "/api/runs").json()["runs"]
    assert {(run["title"][:9], run["ok"]) for run in runs} == {("How many ", True), ("n = {{ se", False)}


def test_what_a_trace_shows_is_drawn_in_a_process_once(
    place: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page and a picture take as long as a program wants: the server itself draws none, and what is drawn is kept."""
    pytest.importorskip("matplotlib")
    monkeypatch.setattr("jostle.trace.html.page", lambda _: 1 / 0)  # in this process
    monkeypatch.setattr("jostle.trace.pictures.Picture.svg", lambda _: 1 / 0)
    runs = place.server.runs
    launcher = running.Launcher(place.home.folder)
    runs._draw = launcher.draw
    id = place.run("ana", 'plot("a line", [1, 2, 3], [3, 1, 2])\nrelease x = 1\n')["id"]
    for path in (f"/runs/{id}/trace", f"/runs/{id}/pictures/0"):
        assert [place.get("ana", path).status_code for _ in range(2)] == [200, 200]
    assert "a line" in place.get("ana", f"/runs/{id}/pictures/0").text
    (run,) = runs.home.runs("id = ?", id)
    (runs.folder(run) / worker.PAGE).unlink()
    monkeypatch.setattr(worker, "DRAWS_WITHIN", 0.001)  # it takes too long
    refused = place.get("ana", f"/runs/{id}/trace")
    assert refused.status_code == 404 and "try again" in refused.text and not runs._checking
    launcher.close()
