"""Who gets what: every route as every role, sessions and tokens, and what an answer's headers say."""

from __future__ import annotations

import json
import random
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any
from unicodedata import category

import numpy as np
import pytest
from serve_place import NAMES, PASSWORD, change, count, shares

from jostle.accounting.amounts import QUANTA
from jostle.diagnostics import Refusal
from jostle.serve import api, store, worker
from jostle.serve.routing import ROUTES, TOO_OFTEN
from jostle.serve.runs import Runs
from jostle.serve.store import Account, Home

JUNK: list[object] = [
    None, "", "x", "x" * 70_000, "\0", "../../etc/passwd", "people", "people@ana", "ana", "frozen", "epsilon 1", 0, -1,
    1e308, True, [], {}, [[[]]], {"a": {"b": 1}}, "é\u202e", "' OR 1=1 --", "{{ 7 * 7 }}", "<script>alert(1)</script>",
    "2027-01-01", 10**400, "\ud800", float("nan"),
]  # fmt: skip
FIELDS = (
    "name", "role", "password", "link", "label", "scope", "days", "file", "schema", "protecting", "budget", "dataset",
    "analyst", "amount", "until", "review", "status", "program", "settings", "seconds", "decision", "note", "active",
    "digest", "ask", "line", "column", "shared", "per_program", "per_week",
)  # fmt: skip


def paths(row: Any, place: Any, rng: random.Random) -> str:
    there = [run.id for run in place.home.runs()]
    own = {
        "{id}": rng.choice([*there, "x", "%00", "..%2f"]),
        "{name}": rng.choice(["ana", "people", "serve.js", "%2e"]),
    }
    path = row.path.replace("{number}", rng.choice(["1", "99999999999999999999999"]))
    for hole, filling in own.items():
        path = path.replace(hole, filling)
    return path


def test_no_role_gets_what_is_not_its_own_and_nothing_is_a_fault(place: Any) -> None:
    """400 requests of each role, of arbitrary bodies: 2xx only where the row names the role, never 500."""
    rng = random.Random(38)
    place.run("ben", count(0.5))
    secret = place.run("ana", "x = 41\nrelease mine = x + 1\n")["id"]
    for name in ("", *NAMES):
        client, headers = place.client(), place.headers(name)
        for turn in range(400):
            row = ROUTES[turn % len(ROUTES)]
            if row.path in ("/login", "/api/login", "/welcome") or (row.path, name) == ("/api/accounts/{name}", "olga"):
                continue  # they end sessions, and have tests of their own
            if (row.method, row.path, name) == ("POST", "/api/runs/{id}", "ana"):
                continue  # then it is no secret
            body = {field: rng.choice(JUNK) for field in rng.sample(FIELDS, 8)}
            text = json.dumps(body) if rng.random() < 0.9 else rng.choice(["{", "[]", "null", "\xff", "[" * 5000])
            kind = {"Content-Type": rng.choice(["application/json", "text/plain", "application/x-www-form-urlencoded"])}
            path = paths(row, place, rng)
            content = text.encode() if row.method != "GET" else None
            answer = client.request(row.method, path, content=content, headers={**headers, **kind})
            assert answer.status_code < 500, (row, name, text, answer.text)
            may = not row.roles or NAMES.get(name) in row.roles
            assert may or answer.status_code in (303, 401, 403, 404), (row, name, answer.text)
            assert name == "ana" or secret not in answer.text or row.path == "/api/audit"
            assert "default-src 'none'" in answer.headers["content-security-policy"]
            assert "Traceback" not in answer.text and place.home.folder.name not in answer.text


def test_a_run_is_there_for_its_analyst_alone(place: Any) -> None:
    id = place.run("ana", count(0.5))["id"]
    for name in ("", "ben", "olga", "rita", "aldo"):
        for path in (f"/api/runs/{id}", f"/api/runs/{id}?wait=1", f"/runs/{id}", f"/runs/{id}/trace"):
            assert place.get(name, path).status_code in (303, 401, 403, 404)
    assert place.get("ben", "/api/runs").json() == {"runs": []}
    assert "spent" not in json.dumps(place.get("ben", "/api/datasets").json()["datasets"][0].get("budget", ""))
    assert place.post("ben", f"/api/reviews/{id}", decision="approved").status_code == 403


def test_a_cookie_counts_with_the_header_of_its_pages_only(place: Any) -> None:
    client, header = place.browser("ana")
    body = {"program": count(0.1)}
    assert client.post("/api/check", json=body).status_code == 403
    assert client.post("/api/check", json=body, headers={"X-CSRF": "0" * 64}).status_code == 403
    assert client.post("/api/check", json=body, headers={**header, "Origin": "http://evil.example"}).status_code == 403
    assert client.post("/api/check", json=body, headers={**header, "Sec-Fetch-Site": "cross-site"}).status_code == 403
    assert client.post("/api/check", json=body, headers={**header, "Origin": "http://testserver"}).status_code == 200
    other, _ = place.browser("ben")
    assert other.post("/api/check", json=body, headers=header).status_code == 403
    assert client.post("/api/logout", headers=header).status_code == 200
    assert client.get("/api/me").status_code == 401 and client.get("/").headers["location"] == "/login"


def test_a_session_is_new_at_each_login_and_its_cookie_is_closed(place: Any) -> None:
    client = place.client()
    client.cookies.set("jostle_session", "f" * 64)
    answer = client.post("/login", data={"name": "ana", "password": PASSWORD})
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=strict" in cookie and "f" * 64 not in cookie
    assert "Secure" not in cookie
    place.server.https = True
    safe = place.client()
    cookie = safe.post("/login", data={"name": "ana", "password": PASSWORD}).headers["set-cookie"]
    assert "Secure" in cookie and "Path=/" in cookie and "Domain" not in cookie
    name, _, secret = cookie.partition(";")[0].partition("=")
    assert name.startswith("__Host-")  # which no other host of its domain can set
    for sent, status in ((name, 200), ("jostle_session", 401)):
        assert place.client().get("/api/me", headers={"Cookie": f"{sent}={secret}"}).status_code == status


def test_logins_are_refused_in_the_same_words_and_slowed(place: Any) -> None:
    wrong = {place.post("", "/api/login", name=name, password="wrong").text for name in ("ana", "nobody")}
    assert len(wrong) == 1
    for _ in range(TOO_OFTEN):
        last = place.post("", "/api/login", name="ana", password="wrong")
    assert last.status_code == 429
    assert place.post("", "/api/login", name="ana", password=PASSWORD).status_code == 429
    assert place.post("", "/api/login", name="ben", password=PASSWORD).status_code == 200


def test_tokens_have_scopes_and_ends(place: Any) -> None:
    token = place.post("", "/api/login", name="ana", password=PASSWORD).json()
    place.tokens["machine"] = token["token"]
    assert place.get("machine", "/api/me").status_code == 200
    assert place.post("machine", "/api/tokens", scope="all").status_code == 403
    assert place.client().delete(f"/api/tokens/{token['number']}", headers=place.headers("ben")).status_code == 404
    assert place.client().delete(f"/api/tokens/{token['number']}", headers=place.headers("ana")).status_code == 200
    assert place.get("machine", "/api/me").status_code == 401
    assert place.post("ana", "/api/tokens", days=1000).status_code == 400
    assert place.client().get("/api/me", headers={"Authorization": "Basic YTpi"}).status_code == 401


def test_no_secret_is_at_rest(place: Any) -> None:
    client, _ = place.browser("ana")
    place.home.close()
    written = b"".join(path.read_bytes() for path in place.home.folder.glob("serve.db*"))
    secrets = [PASSWORD, *place.tokens.values(), client.cookies["jostle_session"]]
    assert [secret for secret in secrets if secret.encode() in written] == []
    assert (place.home.folder / "serve.db").stat().st_mode & 0o077 == 0


def test_a_link_sets_a_password_once_and_a_closed_account_is_out(place: Any) -> None:
    link = place.post("olga", "/api/accounts", name="eve", role="analyst").json()["link"].partition("#")[2]
    welcome = place.client().post("/welcome", data={"link": link, "password": "short"})
    assert welcome.status_code == 400
    assert place.client().post("/welcome", data={"link": link, "password": PASSWORD}).status_code == 303
    assert place.client().post("/welcome", data={"link": link, "password": PASSWORD}).status_code == 403
    client, _ = place.browser("eve")
    assert place.post("olga", "/api/accounts/eve", active=False).status_code == 200
    assert client.get("/api/me").status_code == 401
    assert place.post("", "/api/login", name="eve", password=PASSWORD).status_code == 401
    assert place.post("olga", "/api/accounts/olga", active=False).status_code == 400


def test_a_new_link_ends_the_password_that_was_known_to_others(place: Any) -> None:
    """Whoever knew it could make a token before the link is used, which would outlive the new password."""
    link = place.post("olga", "/api/accounts/ana").json()["link"].partition("#")[2]
    assert place.post("", "/api/login", name="ana", password=PASSWORD).status_code == 401
    assert place.get("ana", "/api/me").status_code == 401
    assert place.client().post("/welcome", data={"link": link, "password": PASSWORD + "2"}).status_code == 303
    assert place.post("", "/api/login", name="ana", password=PASSWORD + "2").status_code == 200


def test_a_ledger_in_a_file_is_its_homes_alone(place: Any, tmp_path: Path) -> None:
    """Another home over it would show when runs of this one charge."""
    with pytest.raises(Refusal, match="lies in its own home"):
        Home(tmp_path / "other", place.home.ledger)
    Home(place.home.folder, place.home.ledger).close()


def test_a_review_is_for_as_long_as_its_grant(place: Any) -> None:
    """One that could not be made, or has ended, keeps no program of other grants waiting."""
    body = {"dataset": "people", "analyst": "ana", "amount": "epsilon 99", "review": True}
    assert place.post("olga", "/api/grants", **body).status_code == 400
    assert place.run("ana", count(0.1))["answer"]["ok"]
    assert place.post("ben", "/api/runs", program="release x = 1\n").json()["state"] == "waiting"
    assert place.post("olga", "/api/status", name="people@ben", status="closed").status_code == 200
    assert place.post("ben", "/api/runs", program="release x = 1\n", seconds=0.001).json()["state"] == "running"


def test_of_two_owners_the_one_whose_grant_is_refused_takes_no_review_away(
    place: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both ask at once, one with a review: its programs ran unread, in four of four tries."""
    place.home.add_account("eve", "analyst", "olga")
    body, real, first = (
        {"dataset": "people", "analyst": "eve", "amount": "epsilon 0.1"},
        api.Ledger.datasets,
        list[Any](),
    )

    def slowly(ledger: Any) -> Any:
        rows = real(ledger)
        if not first:
            first.append(None)
            first[0] = place.post("olga", "/api/grants", **body, review=True)
        return rows

    monkeypatch.setattr(api.Ledger, "datasets", slowly)
    second = place.post("olga", "/api/grants", **body)
    assert (first[0].status_code, second.status_code) == (200, 400) and "people@eve" in place.home.reviewed()


@pytest.mark.parametrize("field, text, said", [
    ("until", "2026-01-01", "its last day is over"), ("amount", "epsilon 1_0", "no amount"),
    ("amount", "epsilon \u0660.1", "no amount"), ("per_week", "epsilon 0.0_1", "no amount"),
])  # fmt: skip
def test_a_grant_is_read_as_it_stands(place: Any, field: str, text: str, said: str) -> None:
    """A grant stays so: one that had ended when it was made kept its analyst from another."""
    place.home.add_account("eve", "analyst", "olga")
    body = {"dataset": "people", "analyst": "eve", "amount": "epsilon 0.5", field: text}
    answer = place.post("olga", "/api/grants", **body)
    assert answer.status_code == 400 and said in answer.text
    assert place.post("olga", "/api/grants", **{**body, field: "epsilon 0.1" if field != "until" else ""}).json()["ok"]


@pytest.mark.parametrize("mark", [
    "\u202e", "\u2066", "\u2028", "\x85", "\x0b", "\x1b", "\r", "\u200f", "\u061c", "\u200b", "\xad", "\u2060",
    "\ufeff", "\ufe0f", "\u3164",
])  # fmt: skip
def test_no_program_reads_otherwise_than_it_runs(place: Any, mark: str) -> None:
    """A reviewer would see code where a comment stands, or another order of words."""
    program = count(0.1).replace("release", f"# a note{mark}x\nrelease")
    answer = place.post("ana", "/api/check", program=program).json()
    assert not answer["ok"] and answer["errors"][0]["line"] == 3 and "hide" in answer["errors"][0]["message"]
    assert not place.run("ana", program)["answer"]["ok"] and not place.jobs
    escaped = program.replace(f"# a note{mark}x", f'x = "\\u{ord(mark):04x}"')
    assert place.post("ana", "/api/check", program=escaped).json()["ok"]


def test_no_sign_of_a_program_is_shown_as_nothing() -> None:
    """`"F"` with such a sign in it is another key than the one that a reviewer reads; letters of any script stay."""
    of_numbers = [*range(0x600, 0x606), *range(0x13430, 0x13440)]  # and of joined letters: they are drawn
    seen = {*"\t\n\r\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd", *map(chr, of_numbers)}
    controls = ("Cf", "Cc", "Zl", "Zp")
    unseen = [sign for sign in map(chr, range(sys.maxunicode + 1)) if category(sign) in controls and sign not in seen]
    assert len(unseen) > 190
    for sign in [*unseen, "\u115f", "\u3164", "\ufe0f"]:
        (fault,) = worker.unregistered(worker.source_of(f'x = "F{sign}"\n'))
        assert "can hide" in fault.message and (f"\\u{ord(sign):04x}" in fault.help) == (sign <= "\uffff")
    for text in ("Straße", "naïve", "日本", "שלום", "مرحبا", "क्षेत्र", "a\u0301", "👍"):
        assert worker.unregistered(worker.source_of(f'x = "{text}"\n')) == ()


def test_requests_are_read_up_to_a_size_and_for_this_host(place: Any) -> None:
    assert place.post("ana", "/api/check", program="x", more="y" * 300_000).status_code == 400
    assert place.client().get("/api/health", headers={"Host": "evil.example"}).status_code == 400
    health = place.get("", "/api/health")
    assert health.json()["ok"] and health.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("file", ["../serve.db", "/etc/passwd", "data/people.csv", "", ".hidden", "a b"])
def test_an_owner_registers_files_of_the_data_folder_only(place: Any, file: str) -> None:
    answer = place.post("olga", "/api/datasets", name="other", file=file, protecting="rows", budget="epsilon 1",
                        schema="{a: 0..1}")  # fmt: skip
    assert answer.status_code == 400 and "no file of the folder" in answer.text


def test_pages_hold_no_script_or_style_of_their_own(place: Any) -> None:
    seen = set()
    for name in NAMES:
        client, _ = place.browser(name)
        for row in ROUTES:
            if (
                row.page
                and row.method == "GET"
                and "{" not in row.path
                and NAMES[name] in (row.roles or NAMES.values())
            ):
                page = client.get(row.path).text
                seen.add(row.path)
                assert page.count("<script") == page.count('<script src="/static/') >= 1
                assert "<style" not in page and " style=" not in page and " onclick=" not in page
                assert page.count("<h1") == 1 and '<html lang="en">' in page
    assert seen >= {"/", "/history", "/people", "/reviews", "/audit", "/account"}
    assert place.get("", "/static/serve.js").status_code == 200
    assert place.get("", "/static/base.html").status_code == 404


def test_a_home_of_another_version_is_refused(place: Any) -> None:
    from jostle.diagnostics import Refusal

    change(place.home, "PRAGMA user_version = 9")
    with pytest.raises(Refusal, match="is no store of this jostle"):
        Home(place.home.folder)


def test_a_browser_says_where_its_forms_are(place: Any) -> None:
    """Without a referrer a browser sends `Origin: null` with a form, which is refused: the pages' policy keeps one."""
    page = place.client().get("/login")
    assert page.headers["referrer-policy"] == "same-origin"
    form = {"name": "ana", "password": PASSWORD}
    for origin, status in (("null", 403), ("http://testserver", 303)):
        assert place.client().post("/login", data=form, headers={"Origin": origin}).status_code == status


def test_a_proxy_says_who_somebody_is(place: Any) -> None:
    """In a header that counts with the proxy's proof alone; then passwords do not, and a session is its person's."""
    server = place.server
    server.identity, server.domain, server.proof = "x-forwarded-email", "example.org", "p" * 64
    proxy = {"X-Jostle-Proxy": "p" * 64}

    def log_in(client: Any, who: str, proof: dict[str, str] = proxy) -> int:
        return int(client.get("/login", headers={**proof, "X-Forwarded-Email": who}).status_code)

    refused = {**proxy, "X-Jostle-Proxy": "q" * 64}
    for who, proof in (
        ("ana@example.org", {}), ("ana@example.org", refused), ("ana@evil.example", proxy), ("eve@example.org", proxy),
        ("", proxy), ("ana@example.org@evil.example", proxy),
    ):  # fmt: skip
        client = place.client()
        assert log_in(client, who, proof) == 403 and not client.cookies, who
    client = place.client()
    assert log_in(client, "Ana@Example.org") == 303
    ana = {**proxy, "X-Forwarded-Email": "ana@example.org"}
    page = client.get("/", headers=ana).text
    csrf = {"X-CSRF": page.partition('name="csrf" content="')[2].partition('"')[0]}
    assert client.get("/api/me", headers=ana).json()["name"] == "ana"
    body = {"program": "release x = 1\n"}
    assert client.post("/api/check", json=body, headers=ana).status_code == 403  # other sites make such requests too
    assert client.post("/api/check", json=body, headers={**ana, **csrf}).status_code == 200
    for headers in ({}, proxy, {**ana, "X-Forwarded-Email": "ben@example.org"}, {**ana, "X-Jostle-Proxy": ""}):
        assert client.get("/api/me", headers=headers).status_code == 401  # a cookie that was stolen, or another person
    assert place.post("", "/api/login", name="ana", password=PASSWORD).status_code == 403
    assert place.client().post("/login", data={"name": "ana", "password": PASSWORD}).status_code == 403
    assert place.client().post("/welcome", data={"link": "x", "password": PASSWORD}).status_code == 403
    assert place.get("ana", "/api/me").status_code == 200  # a token of hers
    assert place.post("olga", "/api/accounts", name="new", role="analyst").json() == {"name": "new"}
    place.home.set_active("ana", False, "olga")
    assert log_in(place.client(), "ana@example.org") == 403 and client.get("/api/me", headers=ana).status_code == 401


def test_a_proxy_without_a_secret_says_nothing(place: Any, tmp_path: Path) -> None:
    """A disk that was full left an empty file, and no header would have been the right one."""
    place.server.identity = "x-user"
    assert place.client().get("/login", headers={"X-User": "olga"}).status_code == 403
    (tmp_path / "empty").write_text("")
    with pytest.raises(Refusal, match="no secret"):
        store.kept_secret(tmp_path / "empty")
    first = store.kept_secret(tmp_path / "one")
    assert len(first) == 64 and store.kept_secret(tmp_path / "one") == first
    assert (tmp_path / "one").stat().st_mode & 0o077 == 0 and not list(tmp_path.glob(".one*"))


def test_only_a_proxy_says_who_somebody_is(tmp_path: Any, capsys: Any) -> None:
    from argparse import Namespace

    from jostle.serve.command import _begin, _proof
    from jostle.tools.entry import main

    home = str(tmp_path / "home")
    assert main(["serve", "--home", home, "--identity", "X-Forwarded-User"]) == 1
    assert "--behind-proxy" in capsys.readouterr().err
    opened, given = Home(tmp_path / "home"), Namespace(identity="X-User", owner="olga", example=False, playground=False)
    secret = _proof(opened, given)
    assert len(secret) == 64 and _proof(opened, given) == secret
    assert (opened.folder / "proxy-secret").stat().st_mode & 0o077 == 0
    _begin(opened, "https://stats.example", given)
    assert secret not in capsys.readouterr().out and [one["name"] for one in opened.accounts()] == ["olga"]
    opened.close()


def test_a_run_opens_what_was_granted_when_it_was_accepted(place: Any) -> None:
    """A program that waits for a grant which is reviewed would run unread."""
    (place.home.folder / "data" / "late.csv").write_text("age\n30\n40\n")
    assert place.post("olga", "/api/datasets", name="late", file="late.csv", protecting="rows", schema="{age: 17..90}",
                      budget="epsilon 3").status_code == 200  # fmt: skip

    def late(job: worker.Job) -> None:
        given = place.post("olga", "/api/grants", dataset="late", analyst="ana", amount="epsilon 1", review=True)
        assert given.status_code == 200
        place.start(job)

    place.server.runs.start = late
    answer = place.run("ana", count(0.5, "late"))["answer"]
    assert answer["error"]["message"] == "you have no grant on `late`" and shares(place.home)["late"] == 0
    place.server.runs.start = place.start
    waiting = place.post("ana", "/api/runs", program=count(0.5, "late")).json()
    assert waiting["state"] == "waiting"
    place.server.runs.seconds = (0.001,)
    assert place.post("rita", f"/api/reviews/{waiting['id']}", decision="approved").status_code == 200
    assert shares(place.home)["late"] == QUANTA // 2


def test_a_program_of_a_closed_account_is_not_approved(place: Any) -> None:
    waiting = place.post("ben", "/api/runs", program=count(0.5)).json()
    assert place.post("olga", "/api/accounts/ben", active=False).status_code == 200
    refused = place.post("rita", f"/api/reviews/{waiting['id']}", decision="approved")
    assert refused.status_code == 400 and "closed" in refused.text and shares(place.home)["people@ben"] == 0
    assert place.post("rita", f"/api/reviews/{waiting['id']}", decision="refused").status_code == 200


def test_a_program_whose_account_is_closed_while_it_is_checked_does_not_run(place: Any) -> None:
    check = place.server.runs.check

    def slow(*texts: Any, **more: Any) -> dict[str, Any]:
        place.home.set_active("ana", False, "olga")
        return dict(check(*texts, **more))

    place.server.runs.check = slow
    refused = place.post("ana", "/api/runs", program=count(0.5), seconds=0.001)
    assert refused.status_code == 400 and "closed" in refused.text and shares(place.home)["people@ana"] == 0


def test_another_worker_notices_a_ledger_that_is_older(place: Any) -> None:
    """A process knows charges by the log, not by the answers alone that it gave itself."""
    old = str(place.home.folder / "old.db")
    with closing(sqlite3.connect(place.home.ledger)) as one, closing(sqlite3.connect(old)) as other:
        one.backup(other)
    place.run("ana", count(0.25))
    another = Runs(place.home, place.check, place.start, worker.draw, seconds=(0.001,))
    for name in ("-wal", "-shm"):
        Path(place.home.ledger + name).unlink(missing_ok=True)
    Path(old).replace(place.home.ledger)
    Path(place.home.ledger).chmod(0o600)
    with pytest.raises(Exception, match="older than it was"):
        another.submit(Account("ana", "analyst"), count(0.3), {}, 0.001)


def test_no_program_learns_whether_a_folder_has_files(place: Any, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    np.save(tmp_path / "full" / "v.npy", np.arange(3))
    said = [
        place.run("ana", f'x = vectors_in("{tmp_path / name}")\nprint(x)\n')["answer"]["error"]["message"]
        for name in ("full", "empty")
    ]
    assert said == ["a program that runs for an analyst opens registered data only"] * 2


def test_an_account_has_so_many_tokens(place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "MOST_TOKENS", 3)
    status = [place.post("ana", "/api/tokens", label="x", scope="run", days=1).status_code for _ in range(4)]
    assert status == [200, 200, 400, 400]
