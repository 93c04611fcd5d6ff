"""Every route, as every role, by arbitrary requests: never a fault, and nobody gets what is not theirs."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from serve_place import NAMES, PASSWORD, Place, change, count

from jostle.serve import worker
from jostle.serve.routing import ROUTES, TOO_OFTEN
from jostle.tools.data import verify

FIELDS = {
    "name": ["ana", "ben", "people", "people@ana", "eve", "olga"], "role": ["owner", "analyst"],
    "status": ["frozen", "closed", ""],
    "dataset": ["people"], "analyst": ["ana", "ben"], "amount": ["epsilon 0.1", "rho 1", "epsilon 1, delta 1e-9"],
    "until": ["2031-01-01", "2031-13-01", ""], "scope": ["run", "all"], "days": [1, 0.5, -1, 1e300], "label": ["x"],
    "program": [count(0.01), "release x = 1\n", 'release s = "\\ud800"\n', "x = [1] * 3\n", "(" * 300, "use ..\n"],
    "settings": [{}, {"x": "1"}, {"x": 1}], "seconds": [0.001, 600.0, 7, "1"], "approve": [True, False],
    "decision": ["approved", "refused", "returned"], "note": ["", "n" * 3000], "active": [False, True],
    "file": ["people.csv", "../serve.db", ".."], "protecting": ["rows", "age", "rows budget epsilon 9"],
    "schema": ["{age: 17..90}", "/etc/passwd", "{"], "budget": ["epsilon 1", "epsilon"], "review": [True, False],
    "link": ["x" * 64], "password": ["x" * 12], "shared": [True, False], "ask": ["hover", "completions", "format"],
    "line": [0, 1e9], "column": [0, 0.5], "digest": ["x"],
}  # fmt: skip
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=40)
VALUES = st.recursive(
    SCALARS, lambda v: st.lists(v, max_size=3) | st.dictionaries(st.text(max_size=5), v, max_size=3), max_leaves=6
)
NAMED = st.fixed_dictionaries({}, optional={name: st.sampled_from(of) | VALUES for name, of in FIELDS.items()})
BODIES = (
    NAMED.map(lambda body: json.dumps(body).encode())
    | st.binary(max_size=60)
    | VALUES.map(lambda v: json.dumps(v).encode())
)
TEXT = st.text(st.characters(codec="latin-1", exclude_categories=["Cc"]), max_size=30)
HEADERS = st.fixed_dictionaries({}, optional={
    "content-type": st.sampled_from(["application/json", "application/x-www-form-urlencoded", "text/plain"]) | TEXT,
    "origin": st.sampled_from(["http://testserver", "http://[x", "null", "http://evil.example"]) | TEXT,
    "sec-fetch-site": st.sampled_from(["same-origin", "cross-site", "none"]) | TEXT,
    "cookie": TEXT, "x-csrf": TEXT, "x-forwarded-for": TEXT,
    "host": st.sampled_from(["testserver", "evil", "[::1", "a:b:c"]) | TEXT,
})  # fmt: skip
HOLES = (
    st.sampled_from(["ana", "people", "people@ana", "serve.js", "1", "9" * 30, "%00", "..%2f..", "%ff", "x y", "é"])
    | TEXT
)


@pytest.fixture(scope="module")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A server that many requests change."""
    folder = tmp_path_factory.mktemp("standing")
    patch = pytest.MonkeyPatch()
    patch.chdir(folder)
    place = Place(folder / "home")
    place.secret = place.run("ana", "x = 41\nrelease mine = x + 1\n")["id"]
    yield place
    place.home.close()
    patch.undo()


def ask(place: Any, data: Any) -> None:
    name = data.draw(st.sampled_from(["", *NAMES]), "who")
    row = data.draw(
        st.sampled_from([row for row in ROUTES if row.path != "/api/accounts/{name}" or name != "olga"]), "row"
    )
    path = row.path
    for hole in ("{name}", "{id}", "{number}"):
        if hole in path:
            mine = st.just(place.secret) if hole == "{id}" else HOLES
            path = path.replace(
                hole, data.draw(HOLES | mine, hole).replace("/", "%2f").replace("?", "%3f").replace("#", "%23")
            )
    method = data.draw(
        st.sampled_from([row.method, row.method, row.method, "HEAD", "PUT", "OPTIONS", "POST"]), "method"
    )
    headers = data.draw(HEADERS, "headers") | place.headers(name)
    content = data.draw(BODIES, "body") if method != "GET" else None
    query = data.draw(st.sampled_from(["", "?wait=", "?wait=1&wait=2", "?" + "a" * 300, "?%ff=%00"]), "query")
    began = time.monotonic()
    encoded = [(key.encode(), value.encode("latin-1")) for key, value in headers.items()]
    answer = place.client().request(method, path + query, content=content, headers=encoded)
    assert answer.status_code < 500 and time.monotonic() - began < 20
    assert (
        answer.headers["x-content-type-options"] == "nosniff"
        and "default-src 'none'" in answer.headers["content-security-policy"]
    )
    assert "Traceback" not in answer.text and str(place.home.folder) not in answer.text
    if method == row.method and row.roles and NAMES.get(name) not in row.roles:
        assert answer.status_code in (303, 400, 401, 403, 404, 405, 429)
        assert place.secret not in answer.text or row.path.startswith(("/api/runs/", "/runs/"))
    if name != "ana":
        assert '"mine":42' not in answer.text


QUIET = {"deadline": None, "suppress_health_check": list(HealthCheck), "derandomize": True}


@settings(max_examples=250, **QUIET)
@given(st.data())
def test_no_request_is_a_fault_or_gets_what_is_anothers(standing: Any, data: Any) -> None:
    ask(standing, data)


@pytest.mark.slow
@settings(max_examples=5000, **QUIET)
@given(st.data())
def test_five_thousand_requests_are_no_faults(standing: Any, data: Any) -> None:
    ask(standing, data)


def test_what_was_handed_in_is_still_its_analysts(place: Any) -> None:
    """After programs of every kind: a list of runs is an analyst's own, and says nothing of documents."""
    for name, value in (("ana", 1), ("ben", 2)):
        place.run(name, f"release x = {value}\n") if name == "ana" else place.post(
            name, "/api/runs", program=count(0.1)
        )
    runs = place.get("ana", "/api/runs").json()["runs"]
    assert len(runs) == 1 and {run["analyst"] for run in runs} == {"ana"}


def test_lists_of_runs_do_not_read_answers(place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """200 answers of 8 MB would be 1.6 GB in the server, asked for again and again."""
    run = place.run("ana", "release x = 1\n")
    change(place.home, "UPDATE runs SET document = document || ?", values=(" " * 8_000_000,))
    (brief,) = place.home.runs("account = 'ana'", brief=True)
    assert brief.document == '{"ok": true}' and place.get("ana", "/api/runs").status_code == 200
    assert place.get("ana", f"/api/runs/{run['id']}").json()["answer"]["released"] == {"x": 1}


def test_an_owner_sees_how_rows_fit_before_they_are_registered(place: Any) -> None:
    """What is registered stays so: a wrong description could not be mended."""
    (place.home.folder / "data" / "g.csv").write_text("n;m\n" + "1.234,5;a\n" * 9)
    body = {"name": "g", "file": "g.csv", "schema": "{n: 0.0..9999.0}", "protecting": "rows", "budget": "epsilon 1"}
    told = place.post("olga", "/api/datasets", **body, check=True).json()["notes"]
    assert "every cell fits" in told and "decimal" in told and str(place.home.folder) not in told
    assert [one["name"] for one in place.get("olga", "/api/datasets").json()["datasets"]] == ["people"]
    assert "fit" not in place.post("olga", "/api/datasets", **body, decimal=True).json()["notes"]


def test_a_trace_that_is_too_large_is_not_read(place: Any) -> None:
    run = place.run("ana", "release x = 1\n")
    (place.home.folder / "runs" / run["id"] / "trace.jsonl").write_bytes(b"\n" * (8 * 2**20 + 1))
    answer = place.get("ana", f"/runs/{run['id']}/trace")
    assert answer.status_code == 404 and "too large" in answer.text
    given = place.get("ana", f"/api/runs/{run['id']}").json()
    assert given["answer"]["released"] == {"x": 1} and not given["traced"]


def test_a_trace_that_is_too_large_is_not_kept(place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """2,000 of 4 GB in a week would fill a disk."""
    monkeypatch.setattr(worker, "MOST_ANSWER", 500)
    run = place.run("ana", "x = 1\n" * 40 + "release x = 1\n")
    assert run["answer"]["released"] == {"x": 1} and not run["traced"]
    assert not (place.home.folder / "runs" / run["id"] / "trace.jsonl").exists()


def test_who_guesses_passwords_does_not_shut_their_owner_out(place: Any) -> None:
    """Failures count for a name from an address; only many from everywhere close the name for a while."""
    for _ in range(TOO_OFTEN + 1):
        last = place.post("", "/api/login", name="ana", password="wrong")
    assert last.status_code == 429
    place.server.log_in("ana", PASSWORD, "198.51.100.7")  # from elsewhere it is hers
    with pytest.raises(Exception, match="too many logins"):
        place.server.log_in("ana", PASSWORD, "testclient")


def test_no_name_of_a_login_is_another_ones_key(place: Any) -> None:
    """`ana from 192.0.2.7` fails often at another address: ana is not shut out at hers."""
    for _ in range(TOO_OFTEN):
        place.post("", "/api/login", name="ana from 192.0.2.7", password="wrong")
    place.server.log_in("ana", PASSWORD, "192.0.2.7")


@pytest.mark.parametrize("address", ["2001:db8::1", "2001:db8::2:1"])
def test_addresses_of_one_network_count_together(place: Any, address: str) -> None:
    from jostle.serve.routing import network_of

    assert network_of(address) == "2001:db8::" and network_of("192.0.2.1") == "192.0.2.1" and network_of("x") == "x"
    assert network_of("::ffff:192.0.2.1") == "192.0.2.1"  # or all of IPv4 were one network


def test_logs_hold_no_secret(place: Any, capfd: pytest.CaptureFixture[str]) -> None:
    place.server.log = True
    client, headers = place.browser("ana")
    place.post("", "/api/login", name="ana", password="wrong password")
    client.get("/api/me?token=" + place.tokens["ben"], headers=headers)
    place.post("ana", "/api/runs", program='private t = dataset("secret name")\n')
    lines = capfd.readouterr().err.splitlines()
    logged = [json.loads(line) for line in lines if line.startswith("{")]
    assert {"POST /login", "GET /api/me", "POST /api/runs"} <= {one["route"] for one in logged}
    assert {one["who"] for one in logged} >= {"ana", ""} and {one["status"] for one in logged} >= {200, 303, 401}
    for secret in (PASSWORD, "wrong password", *place.tokens.values(), client.cookies["jostle_session"], "secret name"):
        assert secret not in "\n".join(lines)
    assert set(logged[0]) == {"time", "route", "status", "who", "address"}


def test_metrics_are_public_facts(place: Any) -> None:
    """They are functions of when programs were handed in: not of what these have come to."""
    place.run("ana", count(0.5))
    waiting = place.get("olga", "/api/metrics").text
    place.post("ana", "/api/runs", program=count(0.25), seconds=600.0)
    text = place.get("olga", "/api/metrics").text
    assert "jostle_runs_under_way 0" in waiting and "jostle_runs_under_way 1" in text
    assert "jostle_places 4" in text and 'jostle_runs{state="done"} 1' in text
    assert place.get("ana", "/api/metrics").status_code == 403 and place.get("", "/api/metrics").status_code == 401
    assert Path(place.home.folder).name not in text


def served(place: Any, asks: Any, every: float = 0.5, **limits: Any) -> Any:
    """What `asks` gives of the address of a server whose connections are looked at each so many seconds."""
    import asyncio
    import socket

    import uvicorn

    from jostle.serve.command import protocol

    async def asked() -> Any:
        with socket.create_server(("127.0.0.1", 0)) as listening:
            config = uvicorn.Config(place.app, http=protocol(every, **limits), log_level="error", lifespan="off")
            server = uvicorn.Server(config)
            serving = asyncio.create_task(server.serve([listening]))
            given = await asks(listening.getsockname(), server)
            server.should_exit = True
            await serving
        return given

    return asyncio.run(asked())


HEALTH = b"GET /api/health HTTP/1.1\r\nHost: testserver\r\n\r\n"


@pytest.mark.parametrize("begin, more, answered", [
    (b"", b"", b""), (b"GET / HTT", b"", b""), (b"GET / HTTP/1.1\r\nX: ", b"x", b""),
    (HEALTH + b"GET /", b"", b"HTTP/1.1 200"),
    (b"POST /api/runs HTTP/1.1\r\nHost: testserver\r\nContent-Length: 90000\r\n\r\n", b"x", b"HTTP/1.1 401"),
])  # fmt: skip
def test_who_asks_slowly_is_let_go(place: Any, begin: bytes, more: bytes, answered: bytes) -> None:
    """Else a few hundred connections that never ask would keep everybody out, also where a body comes byte by byte
    after it was refused."""
    import asyncio

    async def slowly(address: Any, server: Any) -> tuple[bytes, float]:
        reader, writer = await asyncio.open_connection(*address)
        since, got = time.monotonic(), asyncio.create_task(reader.read())
        writer.write(begin)
        while not got.done() and time.monotonic() < since + 20:
            await asyncio.sleep(0.1)
            writer.write(more)
        return (got.result() if got.done() and not got.exception() else b""), time.monotonic() - since

    text, seconds = served(place, slowly)
    assert text[:12] == answered or (more and not text)  # a reset may take what was not read
    assert 0.4 < seconds < 15


def test_who_does_not_read_is_let_go_and_who_reads_is_not(place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Closing such a connection would wait for its reader."""
    import asyncio
    import socket

    from jostle.serve import workbench

    whole = "x" * 2**23
    monkeypatch.setattr(workbench.Path, "read_text", lambda *_, **__: whole)
    ask = b"GET /static/serve.js HTTP/1.1\r\nHost: testserver\r\n\r\n"

    async def reads(address: Any, server: Any) -> tuple[int, int]:
        deaf = socket.socket()
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.connect(address)
        deaf.sendall(ask)
        reader, writer = await asyncio.open_connection(*address)
        writer.write(ask.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        read = 0
        while part := await reader.read(2**18):
            read += len(part)
            await asyncio.sleep(0.1)  # slowly: over several looks
        for _ in range(100):
            if not server.server_state.connections:
                break
            await asyncio.sleep(0.1)
        deaf.close()
        return read, len(server.server_state.connections)

    read, after = served(place, reads, every=1.5)
    assert read > len(whole) and after == 0


def test_an_address_has_a_part_of_the_connections(place: Any) -> None:
    import asyncio

    async def many(address: Any, server: Any) -> list[bytes]:
        both = [await asyncio.open_connection(*address) for _ in range(5)]
        heads = []
        for reader, writer in both:
            writer.write(HEALTH)
            try:
                heads.append((await reader.read(15))[9:12])
            except ConnectionError:
                heads.append(b"")
        return heads

    assert served(place, many, every=60, of_address=3) == [b"200"] * 3 + [b""] * 2


def test_nobody_takes_every_thread(place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixty who log in waited for one another in all the threads of the server, and everybody else behind them."""
    import asyncio
    import threading

    go_on = threading.Event()
    monkeypatch.setattr(place.home, "password_holds", lambda *_: not go_on.wait(60))
    body = json.dumps({"name": "ana", "password": "x"}).encode()
    ask = b"POST /api/login HTTP/1.1\r\nHost: testserver\r\nContent-Length: %d\r\n\r\n" % len(body) + body

    async def many(address: Any, server: Any) -> tuple[bytes, list[bytes], set[bytes]]:
        both = [await asyncio.open_connection(*address) for _ in range(120)]
        for _, writer in both:
            writer.write(ask)
        heads = [asyncio.create_task(one.read(12)) for one, _ in both]
        for _ in range(300):
            if sum(head.done() for head in heads) == 120 - 104:
                break
            await asyncio.sleep(0.1)
        refused = [head.result()[9:] for head in heads if head.done()]
        reader, writer = await asyncio.open_connection(*address)
        writer.write(HEALTH.replace(b"/health", b"/me").replace(b"\r\n\r\n", token))
        first = await asyncio.wait_for(reader.read(12), 10)
        go_on.set()
        return first, refused, {(await head)[9:] for head in heads}

    token = f"\r\nAuthorization: Bearer {place.tokens['ben']}\r\n\r\n".encode()
    first, refused, all_of_them = served(place, many, every=60)  # a busy machine is slower than who asks slowly
    assert first == b"HTTP/1.1 200" and refused == [b"429"] * (120 - 104) and all_of_them == {b"429", b"401"}


def test_a_home_is_checked_and_copied_in_use(place: Any, tmp_path: Path, capsys: Any) -> None:
    from jostle.privacy.ledger.ledger import Ledger
    from jostle.serve.store import Home
    from jostle.tools.entry import main

    place.run("ana", count(0.25))
    home, copy = str(place.home.folder), tmp_path / "copy"
    old = tmp_path / "old"
    assert main(["serve", "--home", home, "--backup", str(old)]) == 0
    run = place.run("ana", count(0.5))
    assert main(["serve", "--home", home, "--backup", str(copy)]) == 0
    assert main(["serve", "--home", home, "--backup", str(copy)]) == 1  # never over another
    capsys.readouterr()
    status = main(["serve", "--home", str(copy), "--check"])
    said = capsys.readouterr().out
    assert (
        status == ("confined without" in said)
        and said.count("good") == 6 - status
        and "files are as they were registered: 1" in said
        and "all in the ledger: 2" in said
        and "histories hold: 3" in said
    )
    restored = Home(copy)
    assert [one.id for one in restored.runs("id = ?", run["id"])] == [run["id"]]
    assert verify(Ledger(restored.ledger), "people@ana").entries == 3
    restored.close()
    for file in copy.rglob("*.db"):
        assert file.stat().st_mode & 0o077 == 0
    (copy / "ledger" / "ledger.db").write_bytes((old / "ledger" / "ledger.db").read_bytes())
    assert main(["serve", "--home", str(copy), "--check"]) == 1
    assert "lacks charges on `people@ana`" in capsys.readouterr().out
    assert main(["serve", "--home", str(copy), "--port", "1"]) == 1  # nor is it served
    (place.home.folder / "data" / "people.csv").rename(tmp_path / "people.csv")
    assert main(["serve", "--home", home, "--check"]) == 1 and "where it was registered" in capsys.readouterr().out
    copy.chmod(0o755)
    assert main(["serve", "--home", str(copy), "--check"]) == 1 and "others can read" in capsys.readouterr().out


def test_what_goes_while_a_home_is_copied_is_not_missed(
    place: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs that were stopped are removed meanwhile."""
    import shutil

    from jostle.serve import command

    place.run("ana", count(0.25))
    other = place.home.folder / "runs" / "zz"
    (other / "simulated").mkdir(parents=True)
    (other / "simulated" / "answer.json").write_text("{}")
    real = shutil.copy2

    def copied(one: Any, there: Any) -> None:
        shutil.rmtree(other, ignore_errors=True)
        real(one, there)

    monkeypatch.setattr(command.shutil, "copy2", copied)
    assert command._back_up(place.home, tmp_path / "copy") == 0
    assert len(list((tmp_path / "copy" / "runs").glob("*/answer.json"))) == 1


def test_simulations_write_into_their_analysts_cache(place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache of checks is read by the process that checks for everybody."""
    from jostle.serve import runs as running

    used: list[str] = []
    launcher = running.Launcher(place.home.folder)
    monkeypatch.setattr(running, "_followed", lambda socket, job: used.append(job.cache))
    monkeypatch.setattr(running.socket, "send_fds", lambda *_: 1)
    monkeypatch.setattr(launcher, "_started", lambda: None)
    for facts in (None, {"people": ""}):
        folder = place.home.folder / "runs" / "x" / "simulated"
        launcher(running.Job("x = 1\n", {}, "ben", place.home.ledger, str(folder), time.time() + 9, facts=facts))
    while len(used) < 2:
        time.sleep(0.01)
    assert {Path(one).name for one in used} == {"ben"}


@pytest.mark.parametrize("path", ["files/t.csv", "files/answer.json", "trace", "pictures/0", "files/none.csv"])
def test_what_is_kept_of_a_run_has_any_text(place: Any, path: str) -> None:
    run = place.run("ana", 'release t = [{a: "\\ud800", b: 1}]\n')
    assert place.get("ana", f"/runs/{run['id']}/{path}").status_code in (200, 404)


BRANCHES = "".join(f"if a{k} > 0: a{k + 1} = 1\nelse: a{k + 1} = 2\n" for k in range(600))
CALLS = "".join(f"def f{k}(x) {{ return f{k - 1}(x) + f{k - 1}(x) }}\n" for k in range(1, 60))
BOMBS = {
    "deep": "x = " + "(" * 30_000, "signs": "x = " + "-" * 60_000 + "1\n", "powers": "x = 10 ^ 10 ^ 10 ^ 10\n",
    "lists": "x = " + "[" * 20_000 + "]" * 20_000, "texts": 'x = "a" * 10 ^ 12\n', "branches": BRANCHES,
    "a long list": "x = [0] * 10 ^ 12\n", "a long range": "x = [i for i in 1..10^15]\n",
    "a loop": "for i in 1..10^15: y = i\n",
    "blocks": "".join(" " * k + "if true:\n" for k in range(300)) + " " * 300 + "x = 1\n",
    "names": "x = " + "a." * 30_000 + "b\n", "functions": "def f0(x) { return x }\n" + CALLS + "y = f59(1)\n",
}  # fmt: skip


@pytest.mark.slow
def test_bombs_in_programs_end_with_their_check(place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is refused or priced within the time of a check, and the next program is checked as ever."""
    from jostle.serve import runs as running

    monkeypatch.setattr(running, "CHECK_SECONDS", 15.0)
    launcher = running.Launcher(place.home.folder)
    try:
        for what, program in BOMBS.items():
            began = time.monotonic()
            answer = launcher.check(program, {})
            assert time.monotonic() - began < 40 and set(answer) >= {"ok", "errors", "cost"}, what
        last = launcher.check("release x = 1\n", {})
        assert last["ok"], last
    finally:
        launcher.close()


def test_a_login_computes_one_hash_whoever_it_is(place: Any) -> None:
    """So that neither its words nor its time say which names there are."""
    calls: list[str] = []
    hasher = place.home._hasher

    class Counted:
        def hash(self, password: str) -> str:
            return str(hasher.hash(password))

        def verify(self, code: str, password: str) -> bool:
            calls.append(code[:20])
            return bool(hasher.verify(code, password))

    vars(place.home)["_hasher"] = Counted()
    place.home.set_active("ben", False, "system")
    answers = {place.post("", "/api/login", name=name, password="wrong").text for name in ("ana", "nobody", "ben", "é")}
    assert len(answers) == 1 and len(calls) == 4 and len(set(calls)) == 1
