"""The pages of a server, and the server as an ASGI application: how a request is read, and what leaves.

A page is one template and the same two files of style and script; the script asks `api`. It carries no data but the
caller's name and role. A request is read up to a size, its caller is known by a cookie or a token. A cookie counts
only with the token of its session in a header, from a page of this server. What is refused is one sentence; so is a
fault of ours.
"""

from __future__ import annotations

import csv
import io
import json
import sys
import time
from collections.abc import Awaitable, Callable
from functools import cache
from pathlib import Path
from urllib.parse import parse_qsl

import anyio
from jinja2 import Environment, FileSystemLoader
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from jostle import resources
from jostle.diagnostics import Diagnostic, Refusal, refuse
from jostle.privacy.ledger.store import now
from jostle.serve import api  # noqa: F401 (it adds routes)
from jostle.serve.api import Encoded, seen_run
from jostle.serve.routing import (
    ANYBODY,
    EVERYBODY,
    NOBODY,
    ROUTES,
    Call,
    Row,
    Server,
    cookie_of,
    network_of,
    route,
    session_response,
)
from jostle.serve.runs import SIMULATED
from jostle.serve.store import Account
from jostle.serve.worker import MADE_UP, PAGE, PICTURES
from jostle.tools.export import Sheet
from jostle.tools.outlet import KIND, Others

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
    return _page(
        name,
        call,
        seconds=server.runs.seconds,
        usual=server.runs.usual,
        playground=bool(server.runs.public),
        engine=bool(server.runs.engine),
    )


def _fixed(path: str, roles: tuple[str, ...], name: str, **facts: str) -> None:
    """Adds a page that is the same for all who may see it, but for their names."""
    route("GET", path, roles, page=True)(lambda _, call: _page(name, call, 200, **facts))


_fixed("/history", ("analyst",), "list.html", title="History", list="history")
_fixed("/people", ("owner",), "people.html")
_fixed("/reviews", ("reviewer",), "list.html", title="Reviews", list="reviews", rows=f"{MADE_UP:,}")
_fixed("/audit", ("owner", "auditor"), "list.html", title="Log", list="audit")
_fixed("/account", EVERYBODY, "account.html")


@route("GET", "/runs/{id}", EVERYBODY, page=True)
def run_page(server: Server, call: Call) -> Response:
    run = seen_run(server, call)
    return _page("run.html", call, run=run, mine=run.account == call.who.name)


@route("GET", "/runs/{id}/trace", EVERYBODY, page=True)
def trace_page(server: Server, call: Call) -> Response:
    """The page that `jostle trace --html` writes, in a sandbox: its own script does not run."""
    return _sandboxed(server.runs.drawing(seen_run(server, call), PAGE, call.who))


@route("GET", "/reviews/{id}/trace", ("reviewer",), page=True)
def simulated_trace_page(server: Server, call: Call) -> Response:
    """The trace of a program that waits, of its run on simulated rows."""
    waiting = server.home.runs("id = ? AND state = 'waiting' AND account != ?", call.path["id"], call.who.name)
    if not waiting or server.runs.simulation(waiting[0]) is None:
        raise refuse("Missing", "there is no such trace", help="it is there when the simulation has ended")
    return _sandboxed(server.runs.drawing(waiting[0], PAGE, call.who, SIMULATED))


def _sandboxed(html: str | None) -> Response:
    if html is None:
        help = "it is there when the answer is, if it is not too large to show; where the server is busy, try again"
        raise refuse("Missing", "there is no trace of this run", help=help)
    policy = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'"
    return HTMLResponse(html, headers={"Content-Security-Policy": policy})


@route("GET", "/runs/{id}/pictures/{number}", EVERYBODY, page=True)
def picture(server: Server, call: Call) -> Response:
    """A picture that a program drew, as SVG; `?ink=light` on a dark page."""
    number, text = call.path["number"], server.runs.drawing(seen_run(server, call), PICTURES, call.who)
    images = json.loads(text or "[]")
    if not number.isascii() or not number.isdigit() or len(number) > 4 or int(number) >= len(images):
        raise refuse("Missing", "there is no such picture")
    ink = "#ececec" if call.query.get("ink") == "light" else "#1a1a1a"
    return Response(images[int(number)].replace("currentColor", ink), media_type="image/svg+xml")


@route("GET", "/runs/{id}/files/{name}", EVERYBODY, page=True, run=True)
def file(server: Server, call: Call) -> Response:
    """What a run released, to keep: `answer.json`, or a table as CSV under its name, with the ± of each number."""
    run, name = seen_run(server, call), call.path["name"]
    answer = json.loads(run.document) if run.state == "done" else {}
    if name == "answer.json" and "whole" in answer and server.runs.whole(run).exists():
        return FileResponse(server.runs.whole(run), media_type="application/json", filename=name)
    if name == "answer.json" and answer:
        text, kind = json.dumps(answer, indent=1), "application/json"
    elif is_table(rows := answer.get("released", {}).get(name.removesuffix(".csv"))) and name.endswith(".csv"):
        text, kind = as_csv(rows, answer.get("margins", {}).get(name.removesuffix(".csv"))), "text/csv"
    else:
        raise refuse("Missing", "this run released no such table")
    return Response(text.encode(errors="replace"), media_type=kind, headers={"Content-Disposition": "attachment"})


def is_table(rows: object) -> bool:
    return isinstance(rows, list) and bool(rows) and all(isinstance(row, dict) for row in rows)


def as_csv(rows: list[dict[str, resources.Json]], margins: resources.Json) -> str:
    """A table as CSV, as `--save` writes one; after each column whose noise is known, `name_error`."""
    beside = [margin or {} for margin in margins or [{}] * len(rows)]
    columns: dict[str, list[object]] = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        columns[name] = [row.get(name) for row in rows]
        if any(isinstance(margin.get(name), dict) for margin in beside):
            columns[f"{name}_error"] = [(margin.get(name) or {}).get("error") for margin in beside]
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(Sheet(columns).lines())
    return out.getvalue()


MOST_BODY = 256 * 1024  # bytes
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
    "Strict-Transport-Security": "max-age=31536000",
    "Cache-Control": "no-store", "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}  # fmt: skip
STATUS = {"Busy": 429, "Denied": 403, "Missing": 404, "Login": 401, "Away": 503, KIND: 500}
_FAULT = Diagnostic(KIND, "this is a fault of the server", None, "", "")


class Json(Response):
    """JSON in ASCII: half a surrogate pair in an answer is its escape, which no encoding of the text could write."""

    media_type = "application/json"

    def render(self, content: object) -> bytes:
        """An answer, which is JSON and may have megabytes, is put in as it is."""
        if not isinstance(content, dict) or not isinstance(content.get("answer"), Encoded):
            return json.dumps(content, separators=(",", ":")).encode()
        rest = {name: value for name, value in content.items() if name != "answer"}
        return b'%s,"answer":%s}' % (self.render(rest)[:-1], content["answer"])


def endpoint(server: Server, row: Row) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        caller = [""]
        response = await reply_to(request, caller)
        if server.log:
            _log(row, request, caller[0], response.status_code)
        return response

    async def reply_to(request: Request, caller: list[str]) -> Response:
        try:
            with Others().excepted():
                call = await _read(server, row, request)
                caller[0] = call.who.name
                if row.path == "/api/runs/{id}" and call.query.get("wait"):
                    await _moment(server, call)
                with server.turn(call.who.name or f"from {network_of(call.client)}") as turn:
                    return await anyio.to_thread.run_sync(_reply, row, server, call, limiter=turn)
        except Refusal as refusal:
            return _refused(row, refusal)

    return answer


def _reply(row: Row, server: Server, call: Call) -> Response:
    reply = row.handler(server, call)
    return reply if isinstance(reply, Response) else Json(reply)


def _log(row: Row, request: Request, who: str, status: int) -> None:
    """Which route, and no more of an address or a body than that: no secret is in a log, and no program."""
    address = request.client.host if request.client is not None else ""
    line = {"time": now(), "route": f"{row.method} {row.path}", "status": status, "who": who, "address": address}
    sys.stderr.write(json.dumps(line) + "\n")


async def _moment(server: Server, call: Call) -> None:
    """Waits until a run's answer leaves: a moment that was declared when it began."""
    runs = await run_in_threadpool(server.home.runs, "id = ? AND account = ?", call.path["id"], call.who.name)
    for run in runs:
        if run.state == "running":
            await anyio.sleep(max(0.0, run.answer_at - time.time()))


async def _read(server: Server, row: Row, request: Request) -> Call:
    secret, who = await run_in_threadpool(_caller, server, request)
    unsafe = request.method not in ("GET", "HEAD")
    if unsafe and not request.headers.get("authorization"):
        _need_same_origin(request)
    if row.roles and who is None:
        raise refuse("Login", "log in first")
    if row.roles and who is not None:
        if unsafe and who.csrf and request.headers.get("x-csrf") != who.csrf:
            raise refuse("Denied", "this was not asked from a page of this server", help="reload the page")
        if who.role not in row.roles or (who.scope == "run" and not row.run):
            raise refuse("Denied", "your account may not do that", help="ask an owner")
    body = await _body(request) if unsafe else {}
    client = request.client.host if request.client is not None else ""
    query, place = dict(request.query_params), request.url.path
    return Call(
        who or NOBODY, request.path_params, query, body, secret, client, place, server.identity_of(request.headers)
    )


def _caller(server: Server, request: Request) -> tuple[str, Account | None]:
    kind, _, token = request.headers.get("authorization", "").partition(" ")
    if kind:
        return token, server.home.who(token, "token") if kind.lower() == "bearer" and token else None
    secret = request.cookies.get(cookie_of(server), "")
    who = server.home.who(secret, "session") if secret else None
    return secret, None if who and server.identity and server.identity_of(request.headers) != who.name else who


def _need_same_origin(request: Request) -> None:
    """A browser says from where a request comes; what says nothing is no browser, or no other site."""
    origin, site, host = (request.headers.get(name) for name in ("origin", "sec-fetch-site", "host"))
    if origin not in (None, f"http://{host}", f"https://{host}") or site not in (None, "same-origin", "none"):
        raise refuse("Denied", "this was asked from another site")


async def _body(request: Request) -> dict[str, object]:
    text = b""
    with anyio.move_on_after(20) as slow:
        async for part in request.stream():
            text += part
            if len(text) > MOST_BODY:
                raise refuse("ValueError", f"a request has up to {MOST_BODY} bytes")
    if slow.cancelled_caught:
        raise refuse("ValueError", "the request came too slowly")
    try:
        if request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
            return dict(parse_qsl(text.decode(), max_num_fields=20))
        body = json.loads(text or b"{}")
        json.dumps(body, ensure_ascii=False).encode()  # half a surrogate pair is no text
    except (ValueError, RecursionError):
        raise refuse("ValueError", "the body is no JSON object") from None
    if not isinstance(body, dict):
        raise refuse("ValueError", "the body is no JSON object")
    return body


def _refused(row: Row, refusal: Refusal) -> Response:
    first = refusal.first if refusal.first.kind != KIND else _FAULT
    status = STATUS.get(first.kind, 400)
    if row.page:
        if status == 401 and row.path != "/login":
            return RedirectResponse("/login", 303)
        return _page("error.html", None, status, message=first.message, help=first.help)
    return _error(first.kind, first.message, first.help, status)


def _error(kind: str, message: str, help: str, status: int) -> Response:
    return Json({"error": {"kind": kind, "message": message, "help": help}}, status)


class Guard:
    """Adds the headers of every answer."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                mine = {name.lower() for name, _ in message["headers"]}
                more = [(k.lower().encode(), v.encode()) for k, v in HEADERS.items() if k.lower().encode() not in mine]
                message = {**message, "headers": [*message["headers"], *more]}
            await send(message)

        await self.app(scope, receive, sent)


async def _fault(request: Request, fault: Exception) -> Response:
    return _error(KIND, _FAULT.message, _FAULT.help, 500)


async def _absent(request: Request, fault: Exception) -> Response:
    return _error("Missing", "there is nothing here", "", getattr(fault, "status_code", 404))


def application(server: Server, hosts: list[str]) -> Starlette:
    """The server as an ASGI application, which answers for these `hosts` alone."""
    routes = [Route(row.path, endpoint(server, row), methods=[row.method]) for row in ROUTES]
    app = Starlette(
        routes=routes, exception_handlers={Exception: _fault, 404: _absent, 405: _absent},
        middleware=[Middleware(Guard), Middleware(TrustedHostMiddleware, allowed_hosts=hosts, www_redirect=False)],
    )  # fmt: skip
    app.router.redirect_slashes = False
    return app
