"""What programs, the command line and the pages ask: accounts, data, grants, runs, reviews and the log, as JSON."""

from __future__ import annotations

import json
import re
import time
from argparse import Namespace
from collections.abc import Mapping, Sequence
from difflib import unified_diff
from functools import cache, partial
from pathlib import Path

from starlette.responses import Response

from jostle.accounting.amounts import Amount, as_text
from jostle.backends.remote import remote_data
from jostle.diagnostics import refuse
from jostle.plan.digest import digest
from jostle.privacy.ledger.grants import CLOSED, FROZEN, OPEN, grant_name, live
from jostle.privacy.ledger.ledger import Ledger
from jostle.privacy.ledger.store import Dataset, now
from jostle.readers.filesets import Reading
from jostle.resources import Json
from jostle.serve import routing
from jostle.serve.runs import pairs
from jostle.serve.store import Run, new_secret, verify
from jostle.tools.data import register as command
from jostle.tools.data import spent_exactly
from jostle.tools.data import verify as verify_history
from jostle.tools.datacheck import report
from jostle.tools.draft.columns import domain_text
from jostle.version import __version__

_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,59}")
_SEES_ALL = ("owner", "reviewer", "auditor")


@routing.route("GET", "/api/health", routing.ANYBODY)
def health(server: routing.Server, call: routing.Call) -> routing.Reply:
    return {"ok": True, "version": __version__}


@routing.route("GET", "/api/metrics", ("owner", "auditor"), run=True)
def metrics(server: routing.Server, call: routing.Call) -> Response:
    """For Prometheus: functions of when programs were handed in, not of what they have come to."""
    states, going = server.home.states(time.time())
    lines = [f"jostle_places {server.runs.places}", f"jostle_runs_under_way {going}"]
    lines += [f'jostle_runs{{state="{state}"}} {number}' for state, number in states]
    return Response("\n".join(lines) + "\n", media_type="text/plain; version=0.0.4")


@routing.route("POST", "/login", routing.ANYBODY, page=True)
def log_in(server: routing.Server, call: routing.Call) -> Response:
    name = call.text("name")
    server.log_in(name, call.text("password", most=400), call.client)
    return routing.session_response(server, name)


MOST_GUESTS = 1000


@routing.route("POST", "/play", routing.ANYBODY, page=True)
def play(server: routing.Server, call: routing.Call) -> Response:
    """An account for a visitor of a playground, without a password: it lasts as its session does."""
    if not server.runs.public:
        raise refuse("Missing", "there is no playground here")
    server.home.forget_guests()
    key, since = f"guest from {routing.network_of(call.client)}", time.time() - routing.WINDOW
    if server.home.failures(key, since) >= routing.PER_NAME:
        raise refuse("Busy", "too many came from your address lately", help="try again in a quarter of an hour")
    server.home.add_failure([key], since)
    if len(server.home.accounts()) >= MOST_GUESTS:
        raise refuse("Busy", "the playground is full", help="try again in some hours")
    name = f"guest-{new_secret()[:12]}"
    server.home.add_account(name, "analyst", "system")
    return routing.session_response(server, name)


@routing.route("GET", "/api/examples", ("analyst",))
def examples(server: routing.Server, call: routing.Call) -> routing.Reply:
    if not server.runs.public:
        raise refuse("Missing", "there is no playground here")
    return {"examples": [{"name": name, "program": text} for name, text in _examples(server.runs.public).items()]}


@cache
def _examples(public: str) -> dict[str, str]:
    """The programs of the documentation: whole ones, and those of the library's pages. What one needs that is not
    here, its check says."""
    from jostle.documentation.entries import programs

    whole = {path.stem: path.read_text(encoding="utf-8") for path in sorted(Path(public).glob("*.jst"))}
    return whole | {f"library: {name}": text for name, text in programs().items()}


@routing.route("POST", "/api/login", routing.ANYBODY)
def log_in_for_token(server: routing.Server, call: routing.Call) -> routing.Reply:
    """A token for a machine, in exchange for a password."""
    name = call.text("name")
    server.log_in(name, call.text("password", most=400), call.client)
    number, secret = server.home.add_token(name, call.text("label", "command line", 80), "run", 90)
    return {"token": secret, "number": number, "name": name}


@routing.route("POST", "/api/logout", routing.EVERYBODY, run=True)
def log_out(server: routing.Server, call: routing.Call) -> routing.Reply:
    server.home.log_out(call.secret)
    return {"ok": True}


@routing.route("POST", "/welcome", routing.ANYBODY, page=True)
def welcome(server: routing.Server, call: routing.Call) -> Response:
    """Sets the first password of a link's account."""
    server.need_passwords()
    name = server.home.set_password(call.text("link"), call.text("password", most=400))
    if name is None:
        raise refuse("Denied", "this link has been used or is too old", help="ask an owner for another")
    return routing.session_response(server, name)


@routing.route("GET", "/api/me", routing.EVERYBODY, run=True)
def me(server: routing.Server, call: routing.Call) -> routing.Reply:
    return {"name": call.who.name, "role": call.who.role, "seconds": list(server.runs.seconds)}


# Accounts and tokens -----------------------------------------------------------------------------------


@routing.route("GET", "/api/accounts", ("owner", "auditor"))
def accounts(server: routing.Server, call: routing.Call) -> routing.Reply:
    return {"accounts": server.home.accounts()}


@routing.route("POST", "/api/accounts", ("owner",))
def add_account(server: routing.Server, call: routing.Call) -> routing.Reply:
    name = call.text("name")
    link = server.home.add_account(name, call.text("role"), call.who.name)
    return {"name": name} if server.identity else {"link": f"/welcome#{link}", "name": name}


@routing.route("POST", "/api/accounts/{name}", ("owner",))
def change_account(server: routing.Server, call: routing.Call) -> routing.Reply:
    """`active`, or a new link."""
    name = call.path["name"]
    if "active" not in call.body:
        return {"link": f"/welcome#{server.home.renew_link(name, call.who.name)}", "name": name}
    if name == call.who.name:
        raise refuse("DataError", "an owner does not close their own account")
    server.home.set_active(name, call.flag("active"), call.who.name)
    return {"ok": True}


@routing.route("GET", "/api/tokens", routing.EVERYBODY)
def tokens(server: routing.Server, call: routing.Call) -> routing.Reply:
    return {"tokens": server.home.tokens(call.who.name)}


@routing.route("POST", "/api/tokens", routing.EVERYBODY)
def add_token(server: routing.Server, call: routing.Call) -> routing.Reply:
    days = call.number("days", 30.0) or 0.0
    number, secret = server.home.add_token(call.who.name, call.text("label", ""), call.text("scope", "run"), days)
    return {"token": secret, "number": number}


@routing.route("DELETE", "/api/tokens/{number}", routing.EVERYBODY)
def revoke(server: routing.Server, call: routing.Call) -> routing.Reply:
    number = call.path["number"]
    if not re.fullmatch("[0-9]{1,9}", number) or not server.home.revoke(call.who.name, int(number)):
        raise refuse("Missing", "there is no such token")
    return {"ok": True}


# Data and grants ---------------------------------------------------------------------------------------


def _budget(dataset: Dataset, rows: Sequence[Dataset] = ()) -> dict[str, Json]:
    measure, (value, delta) = dataset.terms.measure, spent_exactly(rows, dataset)
    budget = {"unit": measure.unit, "total": as_text(measure.limit.value), "spent": as_text(value)}
    if dataset.terms.each:
        ever = {"for_ever": as_text(measure.for_ever), "all_periods": as_text(dataset.state.spent[-1])}
        budget |= {"each": str(dataset.terms.each), **(ever if measure.for_ever else {})}
    return budget | ({"delta": as_text(measure.limit.delta), "delta_spent": as_text(delta)} if delta else {})


def _grant(server: routing.Server, grant: Dataset) -> dict[str, object]:
    state = grant.state.status or ("" if live(grant) else "expired")
    limits = {name: getattr(grant.terms, name) for name in ("per_program", "per_week")}
    persons = grant.terms.persons
    return {
        "name": grant.terms.name, "dataset": grant.terms.within, "analyst": grant.terms.name.rpartition("@")[2],
        "budget": None if persons else _budget(grant), "persons": persons, "until": grant.terms.until,
        "state": state, "review": grant.terms.name in server.home.reviewed(),
        **{name: str(Amount(grant.terms.measure.unit, most)) for name, most in limits.items() if most},
    }  # fmt: skip


def _described(dataset: Dataset) -> dict[str, object]:
    """What of a dataset its owner has published: nothing here is of rows."""
    columns = [
        {"name": name, "values": domain_text(domain), "missing": name not in dataset.terms.filled}
        for name, domain in dataset.terms.schema
    ]
    terms = dataset.terms
    return {"name": terms.name, "protects": str(terms.unit), "columns": columns, "persons": terms.persons}


@routing.route("GET", "/api/datasets", routing.EVERYBODY, run=True)
def datasets(server: routing.Server, call: routing.Call) -> routing.Reply:
    """An analyst's are those with a grant; budgets of whole datasets are not shown to them."""
    rows = server.runs.datasets(call.who)
    if call.who.role not in _SEES_ALL:
        mine = pairs(rows, call.who.name)
        return {"datasets": [{**_described(data), "grants": [_grant(server, one)]} for data, one in mine]}
    return {"datasets": [
        {**_described(data), "budget": None if data.terms.persons else _budget(data, rows), "state": data.state.status,
         "grants": [_grant(server, one) for one in rows if one.terms.within == data.terms.name]}
        for data in rows if not data.terms.within
    ]}  # fmt: skip


@routing.route("GET", "/api/files", ("owner",))
def files(server: routing.Server, call: routing.Call) -> routing.Reply:
    """The files of the folder `data`, which an owner can register."""
    place = server.home.folder / "data"
    names = (one.name for one in place.iterdir() if one.is_file() and not one.is_symlink())
    return {"files": sorted(name for name in names if _FILE.fullmatch(name))}


@routing.route("POST", "/api/datasets", ("owner",))
def register(server: routing.Server, call: routing.Call) -> routing.Reply:
    """Registers a file that lies in the server's own folder `data`, or a table of its engine, as `jostle data register`
    does; with `check` says how it fits, and does nothing."""
    name, file = call.text("name"), call.text("file")
    table = remote_data(file) is not None and bool(server.runs.engine)
    place = server.home.folder / "data" / file if _FILE.fullmatch(file) else None
    if not _NAME.fullmatch(name) or not (table or (place is not None and not place.is_symlink())):
        help = "" if server.runs.engine else "tables of a server: `jostle serve --engine URL`"
        raise refuse("DataError", "this is no name, or no file of the folder `data`", help=help)
    if re.search(r"\beach\b", budget := call.text("budget", "")):
        help = "give an amount for all time; a grant says how much it takes in seven days at most. Or register it on "
        help += "the machine, where its programs run too: `jostle data register --ledger`"
        raise refuse("DataError", "a budget for each period cannot be granted", help=help)
    decimal = "," if call.flag("decimal") else None
    if call.flag("check"):
        fit = report(file if table else place or "", call.text("schema", most=20_000), Reading(decimal=decimal),
                     server.runs.engine)  # fmt: skip
        return {"ok": True, "notes": fit.replace(str(place), file, 1) + "nothing is registered yet"}
    options = Namespace(
        name=name, file=file if table else str(place), schema=call.text("schema", most=20_000) or None,
        protecting=call.text("protecting"), budget=budget or None, ledger=server.home.ledger,
        copy=False, sheet=None, header=None, engine=server.runs.engine, decimal=decimal,
    )  # fmt: skip
    notes = command(options)
    server.home.note(call.who.name, "registered", dataset=name)
    return {"ok": True, "notes": notes.replace(f", in {server.home.ledger}", "")}


@routing.route("POST", "/api/grants", ("owner",))
def grant(server: routing.Server, call: routing.Call) -> routing.Reply:
    dataset, analyst, until = call.text("dataset"), call.text("analyst"), call.text("until", "")
    review, text = call.flag("review"), call.text("amount", "").strip()
    most = [call.text(name, "").strip() for name in ("per_program", "per_week")]
    limits = [routing.amount_of(text) if text else None for text in most]
    roles = {account["name"]: account["role"] for account in server.home.accounts()}
    if roles.get(analyst) != "analyst":
        raise refuse("DataError", "there is no such analyst", help="make an account first")
    name, ledger = grant_name(dataset, analyst), Ledger(server.home.ledger)
    amount = routing.amount_of(text, ledger.dataset(dataset).terms.measure.limit) if text else None
    if any(one.terms.name == name for one in ledger.datasets()):
        help = "one that has ended stays so: make another account"
        raise refuse("DataError", f"`{analyst}` has a grant on `{dataset}` already", help=help)
    if until and until < now()[:10]:
        raise refuse("DataError", "its last day is over", help="a grant stays as it is: give a day to come")
    keep = partial(
        server.home.set_review, name, call.who.name, needed=review, amount=str(amount or ""), until=until, most=most
    )
    if review:  # it is wanted before the grant can be used
        keep()
    ledger.grant(dataset, analyst, amount, until, *limits)
    if not review:  # another owner may have made the grant meanwhile, with a review: then this is not reached
        keep()
    return {"ok": True, "name": name}


@routing.route("POST", "/api/status", ("owner",))
def status(server: routing.Server, call: routing.Call) -> routing.Reply:
    """Freezes or opens a dataset or a grant, or closes a grant; a charge that comes later is refused."""
    name, state = call.text("name"), call.text("status")
    if state not in (OPEN, FROZEN, CLOSED):
        raise refuse("ValueError", f"a status is `{FROZEN}`, `{CLOSED}` or empty")
    Ledger(server.home.ledger).set_status(name, state, call.who.name)
    server.home.note(call.who.name, state or "opened", name=name)
    return {"ok": True}


# Runs --------------------------------------------------------------------------------------------------


def _settings(call: routing.Call) -> dict[str, str]:
    settings = call.body.get("settings", {})
    if not isinstance(settings, Mapping) or not all(isinstance(v, str) for v in settings.values()):
        raise refuse("ValueError", "`settings` are texts by name")
    return dict(settings)


class Encoded(bytes):
    """JSON as the process of a run wrote it."""


def as_json(run: Run, *, program: bool = False) -> dict[str, object]:
    """A run as its analyst or a reviewer sees it; nothing of an answer before its moment."""
    more: dict[str, object] = {"program": run.program, "settings": run.settings} if program else {}
    if run.state == "done":
        more["answer"] = Encoded(run.document.encode())
    return {
        "id": run.id, "analyst": run.account, "state": run.state, "seconds": run.seconds, "accepted": run.accepted,
        "answer_at": run.answer_at, "cost": run.price, "note": run.note, "reviewer": run.reviewer,
        "shared": run.shared, "digest": digest(run.program), **more,
    }  # fmt: skip


@routing.route("POST", "/api/check", ("analyst", "owner", "reviewer"), run=True)
def check(server: routing.Server, call: routing.Call) -> routing.Reply:
    return server.runs.checked(call.who.name, call.text("program", most=65_536), _settings(call))


@routing.route("POST", "/api/editor", ("analyst",), run=True)
def editor(server: routing.Server, call: routing.Call) -> routing.Reply:
    """What the language says at a place of a program: `completions`, a `hover`, or the text as `jostle fmt` has it."""
    ask, place = call.text("ask"), [call.number(name, 0.0) or 0.0 for name in ("line", "column")]
    if ask not in ("completions", "hover", "format") or not all(0 <= one < 1e5 and one == int(one) for one in place):
        raise refuse("ValueError", "an editor asks for `completions`, `hover` or `format` at a line and a column")
    more = {"ask": ask, "line": int(place[0]), "column": int(place[1])}
    return server.runs.checked(call.who.name, call.text("program", most=65_536), {}, **more)


@routing.route("POST", "/api/runs", ("analyst",), run=True)
def submit(server: routing.Server, call: routing.Call) -> routing.Reply:
    program = call.text("program", most=65_536)
    return as_json(server.runs.submit(call.who, program, _settings(call), call.number("seconds")))


@routing.route("GET", "/api/runs", ("analyst",), run=True)
def history(server: routing.Server, call: routing.Call) -> routing.Reply:
    runs = [server.runs.visible(run) for run in server.home.runs("account = ?", call.who.name, brief=True)]
    return {"runs": [{k: v for k, v in as_json(run).items() if k != "answer"} | _about(run) for run in runs]}


def _about(run: Run) -> dict[str, object]:
    """A run in a list: the first words of its text that do not name its data, and whether it went well."""
    lines = [text for line in run.program.split("\n") if (text := line.strip(" #\r"))]
    first = next((line for line in lines if not line.startswith("private ")), *lines[:1] or [""])
    return {"title": first[:80], "ok": json.loads(run.document)["ok"] if run.state == "done" else None}


def seen_run(server: routing.Server, call: routing.Call) -> Run:
    """A run of the caller's, or one that was shared; of another's nothing says that it is there."""
    runs = server.home.runs("id = ? AND (account = ? OR shared = 1)", call.path["id"], call.who.name)
    if not runs:
        raise refuse("Missing", "there is no such run of yours")
    return server.runs.visible(runs[0])


@routing.route("GET", "/api/runs/{id}", routing.EVERYBODY, run=True)
def run(server: routing.Server, call: routing.Call) -> routing.Reply:
    one = seen_run(server, call)
    pictures = server.runs.pictures(one)
    more = {"mine": one.account == call.who.name, "traced": pictures is not None, "pictures": pictures or []}
    return {**as_json(one, program=True), **more}


@routing.route("POST", "/api/runs/{id}", ("analyst",), run=True)
def share(server: routing.Server, call: routing.Call) -> routing.Reply:
    """`shared`: whether the other accounts of this server see a run, by its link."""
    if not server.home.share(call.path["id"], call.who.name, call.flag("shared")):
        raise refuse("Missing", "there is no such run of yours")
    return {"ok": True}


# Reviews and the log -----------------------------------------------------------------------------------


@routing.route("GET", "/api/reviews", ("reviewer",))
def reviews(server: routing.Server, call: routing.Call) -> routing.Reply:
    waiting = server.home.runs("state = 'waiting' AND account != ?", call.who.name)
    return {"runs": [
        {**as_json(one, program=True), "simulated": server.runs.simulation(one), "difference": _difference(server, one)}
        for one in waiting
    ]}  # fmt: skip


def _difference(server: routing.Server, run: Run) -> list[str] | None:
    """The lines in which a program differs from the last one of its analyst that was approved; None where none was."""
    approved = "account = ? AND reviewer != '' AND state IN ('running', 'done')"
    before = server.home.runs(approved, run.account, brief=True)
    if not before:
        return None
    old, new = before[0].program.splitlines(), run.program.splitlines()
    return list(unified_diff(old, new, "the last that was approved", "this program", lineterm=""))


@routing.route("POST", "/api/reviews/{id}", ("reviewer",))
def review(server: routing.Server, call: routing.Call) -> routing.Reply:
    """Approves, refuses or sends back the text of a digest: what runs is that text."""
    texts = (call.text("decision"), call.text("note", "", 2000), call.text("digest", ""))
    after = server.runs.review(call.who, call.path["id"], *texts)
    return {"id": after.id, "state": after.state}


@routing.route("GET", "/api/audit", ("auditor", "owner"))
def audit(server: routing.Server, call: routing.Call) -> routing.Reply:
    """The whole log, and that it was followed here; `jostle serve --verify FILE` follows it offline."""
    log = server.home.audit()
    entries, head = verify(log)
    return {"audit": log, "verified": entries, "head": head}


@routing.route("GET", "/api/ledger/{name}", ("auditor", "owner"))
def ledger_history(server: routing.Server, call: routing.Call) -> routing.Reply:
    """The history of a dataset or a grant, verified; an auditor sees what was there before the runs under way."""
    ledger, name = Ledger(server.home.ledger), call.path["name"]
    most = server.home.totals().get(name) if call.who.role != "owner" else None
    verify_history(ledger, name)
    entries = ledger.history(name)[: most[1] if most else None]
    history = [{"number": e.number, "content": dict(e.content), "hash": e.hash} for e in entries]
    return {"verified": len(history), "head": history[-1]["hash"], "history": history}
