"""The pages: a person's way to what `api` offers. They carry no data of their own but the caller's name and role.

Each is one template and the same two files of style and script, all of this server; the script asks `api`.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader
from starlette.responses import HTMLResponse, Response

from jostle.diagnostics import refuse
from jostle.serve.api import own_run
from jostle.serve.routing import ANYBODY, EVERYBODY, Call, Server, route
from jostle.serve.worker import MOST_ANSWER, TRACE

_PAGES = Path(__file__).parent / "pages"
_TYPES = {"serve.css": "text/css", "serve.js": "text/javascript"}
_MENU = {
    "analyst": [("/", "Work"), ("/history", "History")],
    "owner": [("/", "Data"), ("/people", "People"), ("/audit", "Log")],
    "reviewer": [("/", "Data"), ("/reviews", "Reviews")],
    "auditor": [("/", "Data"), ("/audit", "Log")],
}  # fmt: skip


@cache
def _templates() -> Environment:
    return Environment(loader=FileSystemLoader(_PAGES), autoescape=True, trim_blocks=True, lstrip_blocks=True)


def _page(name: str, call: Call | None = None, status: int = 200, **facts: Any) -> Response:
    who = call.who if call is not None and call.who.name else None
    menu = [] if who is None else [*_MENU[who.role], ("/account", who.name)]
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
    return _page("login.html", None, example=server.example)


@route("GET", "/welcome", ANYBODY, page=True)
def welcome_page(server: Server, call: Call) -> Response:
    """The secret of the link stands behind its `#`, which a browser sends to nobody and a log does not hold."""
    return _page("welcome.html", None)


@route("GET", "/", EVERYBODY, page=True)
def home(server: Server, call: Call) -> Response:
    name = "work.html" if call.who.role == "analyst" else "data.html"
    return _page(name, call, seconds=server.runs.seconds)


@route("GET", "/history", ("analyst",), page=True)
def history_page(server: Server, call: Call) -> Response:
    return _page("list.html", call, title="History", list="history")


@route("GET", "/people", ("owner",), page=True)
def people_page(server: Server, call: Call) -> Response:
    return _page("people.html", call)


@route("GET", "/reviews", ("reviewer",), page=True)
def reviews_page(server: Server, call: Call) -> Response:
    return _page("list.html", call, title="Reviews", list="reviews")


@route("GET", "/audit", ("owner", "auditor"), page=True)
def audit_page(server: Server, call: Call) -> Response:
    return _page("list.html", call, title="Log", list="audit")


@route("GET", "/account", EVERYBODY, page=True)
def account_page(server: Server, call: Call) -> Response:
    return _page("account.html", call)


@route("GET", "/runs/{id}", ("analyst",), page=True)
def run_page(server: Server, call: Call) -> Response:
    return _page("run.html", call, id=own_run(server, call).id)


@route("GET", "/runs/{id}/trace", ("analyst",), page=True)
def trace_page(server: Server, call: Call) -> Response:
    """The page that `jostle trace --html` writes, in a sandbox: its own script does not run."""
    from jostle.trace import jsonl
    from jostle.trace.html import page

    run = own_run(server, call)
    path = server.runs.folder(run) / TRACE
    if run.state != "done" or not path.exists():
        raise refuse("Missing", "there is no trace of this run", help="it is there when the answer is")
    if path.stat().st_size > MOST_ANSWER:
        raise refuse("Missing", "the trace is too large to show", help="print and measure less")
    policy = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'"
    text = page(jsonl.read(path)).encode(errors="replace")
    return HTMLResponse(text, headers={"Content-Security-Policy": policy})
