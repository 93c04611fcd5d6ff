"""The server as an ASGI application: how a request is read, and what leaves.

A request is read up to a size, its caller is known by a cookie or a token, and a cookie counts only with the token of
its session in a header, from a page of this server. What is refused is one sentence; so is a fault of ours.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Awaitable, Callable
from urllib.parse import parse_qsl

import anyio
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from jostle.diagnostics import Diagnostic, Refusal, refuse
from jostle.privacy.ledger.store import now
from jostle.serve import (
    api,  # noqa: F401 (it adds routes)
    workbench,
)
from jostle.serve.routing import COOKIE, NOBODY, ROUTES, Call, Row, Server
from jostle.serve.store import Account
from jostle.tools.outlet import KIND, Others

MOST_BODY = 256 * 1024  # bytes
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
    "Strict-Transport-Security": "max-age=31536000",
    "Cache-Control": "no-store", "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}  # fmt: skip
STATUS = {"Busy": 429, "Denied": 403, "Missing": 404, "Login": 401, KIND: 500}
_FAULT = Diagnostic(KIND, "this is a fault of the server", None, "", "")


class Json(Response):
    """JSON in ASCII: half a surrogate pair in an answer is its escape, which no encoding of the text could write."""

    media_type = "application/json"

    def render(self, content: object) -> bytes:
        return json.dumps(content, separators=(",", ":")).encode()


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
                reply = await run_in_threadpool(row.handler, server, call)
                return reply if isinstance(reply, Response) else Json(reply)
        except Refusal as refusal:
            return _refused(row, refusal)

    return answer


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
    secret = request.cookies.get(COOKIE, "")
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
        return workbench.error_page(status, first.message, first.help)
    return Json({"error": {"kind": first.kind, "message": first.message, "help": first.help}}, status)


class Guard:
    """Adds the headers of every answer, and refuses early what announces that it is too large."""

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
    return Json({"error": {"kind": KIND, "message": _FAULT.message, "help": _FAULT.help}}, 500)


async def _absent(request: Request, fault: Exception) -> Response:
    status = getattr(fault, "status_code", 404)
    return Json({"error": {"kind": "Missing", "message": "there is nothing here", "help": ""}}, status)


def application(server: Server, hosts: list[str]) -> Starlette:
    """The server as an ASGI application, which answers for these `hosts` alone."""
    routes = [Route(row.path, endpoint(server, row), methods=[row.method]) for row in ROUTES]
    app = Starlette(
        routes=routes, exception_handlers={Exception: _fault, 404: _absent, 405: _absent},
        middleware=[Middleware(Guard), Middleware(TrustedHostMiddleware, allowed_hosts=hosts, www_redirect=False)],
    )  # fmt: skip
    app.router.redirect_slashes = False
    return app
