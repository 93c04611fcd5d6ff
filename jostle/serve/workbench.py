"""The pages: a person's way to what `api` offers. They carry no data of their own but the caller's name and role.

Each is one template and the same two files of style and script, all of this server; the script asks `api`.
"""

from __future__ import annotations

import csv
import io
import json
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader
from starlette.responses import HTMLResponse, Response

from jostle.diagnostics import refuse
from jostle.serve.api import seen_run
from jostle.serve.routing import ANYBODY, EVERYBODY, Call, Server, route, session_response
from jostle.serve.runs import SIMULATED
from jostle.serve.worker import MADE_UP

_PAGES = Path(__file__).parent / "pages"
_TYPES = {"serve.css": "text/css", "serve.js": "text/javascript", "work.js": "text/javascript"}
_MENU = {
    "analyst": [("/", "Work"), ("/history", "History")],
    "owner": [("/", "Data"), ("/people", "People"), ("/audit", "Log")],
    "reviewer": [("/", "Data"), ("/reviews", "Reviews")],
    "auditor": [("/", "Data"), ("/audit", "Log")],
}  # fmt: skip


@cache
def _templates() -> Environment:
    return Environment(loader=FileSystemLoader(_PAGES), autoescape=True, trim_blocks=True, lstrip_blocks=True)


def _page(name: str, call: Call | None = None, status: int = 200, **facts: object) -> Response:
    who = call.who if call is not None and call.who.name else None
    menu = [] if who is None else [*_MENU[who.role], ("/account", who.name)]
    facts["place"] = "" if call is None else call.place
    return HTMLResponse(_templates().get_template(name).render(who=who, menu=menu, **facts), status)


def error_page(status: int, message: str, help: str) -> Response:
    return _page("error.html", None, status, message=message, help=help)


@route("GET", "/static/{name}", ANYBODY)
def static(server: Server, call: Call) -> Response:
    name = call.path["name"]
    if name not in _TYPES:
        raise refuse("Missing", "there is nothing here")
    return Response((_PAGES / name).read_text(encoding="utf-8"), media_type=_TYPES[name])


@route("GET", "/login", ANYBODY, page=True)
def login_page(server: Server, call: Call) -> Response:
    """With a proxy that says who somebody is, the session of that account; else the form."""
    if server.identity:
        if not server.home.is_open(call.identity):
            raise refuse(
                "Denied", "you have no account here, or the proxy did not say who you are", help="ask an owner"
            )
        return session_response(server, call.identity)
    return _page("login.html", None, example=server.example, playground=bool(server.runs.public))


@route("GET", "/welcome", ANYBODY, page=True)
def welcome_page(server: Server, call: Call) -> Response:
    """The secret of the link stands behind its `#`, which a browser sends to nobody and a log does not hold."""
    return _page("welcome.html", None)


@route("GET", "/", EVERYBODY, page=True)
def home(server: Server, call: Call) -> Response:
    name = "work.html" if call.who.role == "analyst" else "data.html"
    return _page(name, call, seconds=server.runs.seconds, usual=server.runs.usual, playground=bool(server.runs.public))


@route("GET", "/history", ("analyst",), page=True)
def history_page(server: Server, call: Call) -> Response:
    return _page("list.html", call, title="History", list="history")


@route("GET", "/people", ("owner",), page=True)
def people_page(server: Server, call: Call) -> Response:
    return _page("people.html", call)


@route("GET", "/reviews", ("reviewer",), page=True)
def reviews_page(server: Server, call: Call) -> Response:
    return _page("list.html", call, title="Reviews", list="reviews", rows=f"{MADE_UP:,}")


@route("GET", "/audit", ("owner", "auditor"), page=True)
def audit_page(server: Server, call: Call) -> Response:
    return _page("list.html", call, title="Log", list="audit")


@route("GET", "/account", EVERYBODY, page=True)
def account_page(server: Server, call: Call) -> Response:
    return _page("account.html", call)


@route("GET", "/runs/{id}", EVERYBODY, page=True)
def run_page(server: Server, call: Call) -> Response:
    run = seen_run(server, call)
    return _page("run.html", call, run=run, mine=run.account == call.who.name)


@route("GET", "/runs/{id}/trace", EVERYBODY, page=True)
def trace_page(server: Server, call: Call) -> Response:
    """The page that `jostle trace --html` writes, in a sandbox: its own script does not run."""
    from jostle.trace.html import page

    events = server.runs.events(seen_run(server, call))
    if not events:
        raise refuse("Missing", "there is no trace of this run", help="it is there when the answer is")
    return _sandboxed(page(events))


@route("GET", "/reviews/{id}/trace", ("reviewer",), page=True)
def simulated_trace_page(server: Server, call: Call) -> Response:
    """The trace of a program that waits, of its run on simulated rows."""
    from jostle.trace.html import page

    waiting = server.home.runs("id = ? AND state = 'waiting' AND account != ?", call.path["id"], call.who.name)
    if not waiting or server.runs.simulation(waiting[0]) is None:
        raise refuse("Missing", "there is no such trace", help="it is there when the simulation has ended")
    return _sandboxed(page(server.runs.events(waiting[0], SIMULATED)))


def _sandboxed(html: str) -> Response:
    policy = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'"
    return HTMLResponse(html.encode(errors="replace"), headers={"Content-Security-Policy": policy})


@route("GET", "/runs/{id}/pictures/{number}", EVERYBODY, page=True)
def picture(server: Server, call: Call) -> Response:
    """A picture that a program drew, as SVG; `?ink=light` on a dark page."""
    from jostle.trace.pictures import pictures

    number, images = call.path["number"], pictures(server.runs.events(seen_run(server, call)))
    if not number.isascii() or not number.isdigit() or len(number) > 4 or int(number) >= len(images):
        raise refuse("Missing", "there is no such picture")
    ink = "#ececec" if call.query.get("ink") == "light" else "#1a1a1a"
    return Response(
        images[int(number)].svg().replace("currentColor", ink).encode(errors="replace"), media_type="image/svg+xml"
    )


@route("GET", "/runs/{id}/files/{name}", EVERYBODY, page=True)
def file(server: Server, call: Call) -> Response:
    """What a run released, to keep: `answer.json`, or a table as CSV under its name, with the ± of each number."""
    run, name = seen_run(server, call), call.path["name"]
    answer = json.loads(run.document) if run.state == "done" else {}
    if name == "answer.json" and answer:
        text, kind = json.dumps(answer, indent=1), "application/json"
    elif is_table(rows := answer.get("released", {}).get(name.removesuffix(".csv"))) and name.endswith(".csv"):
        text, kind = as_csv(rows, answer.get("margins", {}).get(name.removesuffix(".csv"))), "text/csv"
    else:
        raise refuse("Missing", "this run released no such table")
    return Response(text.encode(errors="replace"), media_type=kind, headers={"Content-Disposition": "attachment"})


def is_table(rows: object) -> bool:
    return isinstance(rows, list) and bool(rows) and all(isinstance(row, dict) for row in rows)


def as_csv(rows: list[dict[str, Any]], margins: Any) -> str:
    """A table as CSV; after each column whose noise is known, `name_error`. Texts that a spreadsheet would take for a
    formula have a quote before them."""
    noisy = {name for row in margins or () for name, one in (row or {}).items() if isinstance(one, dict)}
    names = [n for name in rows[0] for n in (name, *([f"{name}_error"] if name in noisy else []))]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(map(_cell, names))
    for row, margin in zip(rows, margins or [{}] * len(rows), strict=True):
        errors = {f"{name}_error": (margin or {}).get(name, {}).get("error") for name in noisy}
        writer.writerow([_cell((row | errors).get(name)) for name in names])
    return out.getvalue()


def _cell(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")) else value
