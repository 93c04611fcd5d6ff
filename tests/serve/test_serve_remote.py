"""The command line, the prompt, notebooks and Python at a server: each is an analyst through HTTP."""

from __future__ import annotations

import hashlib
import io
import json
import os
from typing import Any

import pytest
from serve_place import shares

from jostle.accounting.amounts import QUANTA
from jostle.diagnostics import Refusal
from jostle.privacy.ledger.ledger import Ledger
from jostle.serve import runs, worker
from jostle.source import Source
from jostle.tools import remote
from jostle.tools.editors import notebook
from jostle.tools.entry import main

URL = "http://127.0.0.1:1"
DECLARED = 'private t = dataset("people")\n'


@pytest.fixture
def there(place: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """`place` behind the client's one request, and `ana` logged in there."""

    def call(url: str, method: str, path: str, body: object = None, token: str = "", timeout: float = 0) -> Any:
        answer = place.client().request(method, path, json=body, headers={"Authorization": f"Bearer {token}"})
        document = answer.json()
        if answer.status_code >= 400:
            error = document["error"]
            raise remote.refuse("DataError", error["message"], help=error["help"])
        return document

    monkeypatch.setattr(remote, "call", call)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "config" / "jostle").mkdir(parents=True)
    (tmp_path / "config" / "jostle" / "servers.json").write_text(json.dumps({"": URL, URL: place.tokens["ana"]}))
    return place


def test_entries_live_on_and_are_charged_once(there: Any) -> None:
    entries = remote.Entries(remote.connect(""))
    assert entries.enter(DECLARED).ok
    first = entries.enter("release n = {{ select count(*) from t with epsilon 0.25 }}")
    assert list(first.values) == ["n"] and shares(there.home)["people@ana"] == QUANTA // 4
    assert entries.enter("n + 1").values == {"it": first["n"] + 1}
    assert entries.enter("print(n)\nm = n * 2").output == [f"{first['n']:g}"]
    again = entries.enter("release twice = m")
    assert again.values == {"twice": 2 * first["n"]} and again.output == []
    assert shares(there.home)["people@ana"] == QUANTA // 4
    assert entries.last.budget == {"t": {"epsilon": {"total": "1", "spent": "0.25"}}}


def test_an_entry_that_is_refused_is_left_out_and_names_its_own_line(there: Any) -> None:
    entries = remote.Entries(remote.connect(""))
    entries.enter(DECLARED)
    wrong = entries.enter("x = 1\nrelease n = {{ select avg(agee) from t with epsilon 0.1 }}")
    assert not wrong.ok and wrong.diagnostics[0].message.startswith("line 2: there is no column")
    assert entries.enter("release x = 3").values == {"x": 3} and shares(there.home)["people@ana"] == 0
    assert entries.price("{{ select count(*) from t with epsilon 0.5 }}") == "t: epsilon 0.5"
    assert entries.price("y = 1") == "nothing"
    with pytest.raises(Refusal, match="no column"):
        entries.price("{{ select avg(agee) from t with epsilon 0.1 }}")


def test_a_prompt_at_a_server(there: Any, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    lines = [DECLARED.strip()]
    lines += [
        ":cost {{ select count(*) from t with epsilon 0.5 }}",
        "release n = {{ select count(*) from t with epsilon 0.5 }}",
        ":budget",
        ":names",
        "nobody",
        ":quit",
        "1",
    ]
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(lines) + "\n"))
    assert main(["repl", "--server"]) == 1
    out, err = capsys.readouterr()
    assert "t: epsilon 0.5\n" in out and "n = " in out and "±" in out and "0.5" in out
    assert "`:names` is no command at a server's prompt" in err and "nobody" in err
    assert main(["repl", "--server", "--ledger", "x"]) == 2


def test_a_cell_at_a_server(there: Any, capsys: Any) -> None:
    names: dict[str, Any] = {}
    entries = remote.Entries(remote.connect(URL))
    cell = DECLARED + "release by_sex = {{ select count(*) from t group by sex with epsilon 0.5 }}\n"
    notebook.there(entries, cell, names)
    assert list(names["by_sex"].columns) == ["sex", "count"] and "by_sex" in capsys.readouterr().out
    with pytest.raises(notebook.NotebookRefusal, match="no column"):
        notebook.there(entries, "release n = {{ select avg(agee) from t with epsilon 0.1 }}\n", names)
    assert list(names) == ["by_sex"]


def test_python_at_a_server(there: Any) -> None:
    server = remote.connect(URL)
    result = server.run_text(DECLARED + "release n = {{ select count(*) from t with epsilon 0.1 }}\n")
    assert result.ok and result.margins()["n"]["error"] > 0
    assert [one["name"] for one in server.datasets()] == ["people"]
    with pytest.raises(Refusal, match="no column"):
        server.run(Source("p", DECLARED + "release n = {{ select avg(x) from t with epsilon 0.1 }}\n"))
    there.home.set_review("people@ana", "olga", needed=True)
    with pytest.raises(Refusal, match="waits for a reviewer"):
        server.run_text("release x = 1\n")


def test_an_answer_that_is_too_large_to_be_shown_is_handed_over_whole(
    there: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It had been charged, and "the answer is too large" was all that came of it."""
    monkeypatch.setattr(worker, "MOST_ANSWER", 20_000)
    asked = "n = {{ select count(*) from t with epsilon 0.25 }}\nrelease n\nrelease many = [n + i for i in 1..5000]\n"
    result = remote.connect("").run_text(DECLARED + asked)
    assert list(result.values) == ["n", "many"] and result["many"][-1] == result["n"] + 5000
    assert result.budget == {"t": {"epsilon": {"total": "1", "spent": "0.25"}}}
    (run, *_) = there.get("ana", "/api/runs").json()["runs"]
    shown = there.get("ana", f"/api/runs/{run['id']}").json()["answer"]
    assert shown["ok"] and shown["released"] == {} and "`answer.json`" in shown["output"][0]
    whole = there.get("ana", f"/runs/{run['id']}/files/answer.json")
    assert hashlib.sha256(whole.content).hexdigest() == shown["whole"] and len(whole.content) > 20_000
    assert there.get("ben", f"/runs/{run['id']}/files/answer.json").status_code == 404
    assert there.get("", f"/runs/{run['id']}/files/answer.json").status_code in (303, 401)


def test_an_answer_of_very_many_charges_is_shown(there: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The list of some 100,000 charges took more room than an answer has, and nothing came of what was paid for."""
    monkeypatch.setattr(worker, "MOST_ANSWER", 8000)
    result = remote.connect("").run_text(
        DECLARED + "n = [{{ select count(*) from t with epsilon 0.001 }} for i in 1..150]\nrelease last = n[149]\n"
    )
    assert list(result.values) == ["last"] and result.budget["t"]["epsilon"]["spent"] == "0.15"
    (done,) = [one["content"] for one in there.home.audit() if one["content"]["did"] == "done"]
    entry = Ledger(there.home.ledger).history("people@ana")[-1]
    assert done["charges"] == {"people@ana": [[entry.number, entry.hash]]}


def test_large_answers_are_kept_for_a_week_and_no_disk_is_filled(there: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "MOST_ANSWER", 2000)
    monkeypatch.setattr(runs, "MOST_LARGE", 2500)
    large = there.run("ana", "release x = [i for i in 1..500]\n")
    place = f"/runs/{large['id']}/files/answer.json"
    assert len(there.get("ana", place).json()["released"]["x"]) == 500
    assert there.run("ana", "release x = [i for i in 1..450]\n")["answer"]["released"] == {}
    refused = there.post("ana", "/api/runs", program=DECLARED, seconds=0.001)
    assert refused.status_code == 429 and "large answers" in refused.text and shares(there.home)["people@ana"] == 0
    assert there.run("ben", "release x = 1\n")["state"] == "waiting"
    for one in there.home.folder.glob("answers/ana/*.json"):
        os.utime(one, (0, 0))
    assert there.run("ana", "release x = 1\n")["answer"]["released"] == {"x": 1}
    assert there.get("ana", place).json()["released"] == {}
