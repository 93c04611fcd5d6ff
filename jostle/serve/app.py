"""The server's routes: who may call each, what each is given, and what leaves.

Every route is a row of `ROUTES` with the roles that may call it; what has no row is not there. A request is read up to
a size, its caller is known by a cookie or a token, and a cookie counts only with the token of its session in a header,
from a page of this server. What is refused is one sentence; a fault of ours is one fixed sentence.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import anyio
from msgspec import Struct, field
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from jostle.accounting.amounts import quanta
from jostle.diagnostics import Refusal, refuse
from jostle.serve.runs import Runs
from jostle.serve.store import ROLES, Account, Home

MOST_BODY = 256 * 1024  # bytes
COOKIE = "jostle_session"
ANYBODY: tuple[str, ...] = ()
EVERYBODY = ROLES
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store", "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}  # fmt: skip
STATUS = {"Busy": 429, "Denied": 403, "Missing": 404, "Login": 401}
TOO_OFTEN, WINDOW = 5, 15 * 60.0
PER_ADDRESS = 30


class Asked(Struct):
    """A request, read. `body` is an object; `secret` what the caller is known by, `client` its address."""

    who: Account
    path: Mapping[str, str]
    query: Mapping[str, str]
    body: dict[str, Any]
    secret: str
    client: str

    def text(self, name: str, default: str | None = None, most: int = 200) -> str:
        """A text of the body. Refused where it is another thing, absent without a `default`, or too long."""
        value = self.body.get(name, default)
        if not isinstance(value, str) or len(value) > most or "\0" in value:
            raise refuse("ValueError", f"`{name}` is a text of up to {most} characters")
        return value

    def flag(self, name: str) -> bool:
        value = self.body.get(name, False)
        if not isinstance(value, bool):
            raise refuse("ValueError", f"`{name}` is true or false")
        return value

    def number(self, name: str, default: float | None = None) -> float | None:
        value = self.body.get(name, default)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise refuse("ValueError", f"`{name}` is a number")
        return None if value is None else float(value)


class Server(Struct):
    """What the routes share. `https`: cookies are sent over TLS only."""

    home: Home
    runs: Runs
    https: bool = False
    example: bool = False
    attempts: dict[str, list[float]] = field(default_factory=dict)
    lock: Any = field(default_factory=threading.Lock)

    def log_in(self, name: str, password: str, client: str) -> None:
        """Refused where a password does not hold, or where too many did not lately, in words that say neither which
        names there are. Hashes are computed one at a time."""
        with self.lock:
            keys = {f"name {name[:40]}": TOO_OFTEN, f"from {client}": PER_ADDRESS}
            since = time.monotonic() - WINDOW
            if len(self.attempts) > 10_000:
                self.attempts = {k: times for k, times in self.attempts.items() if times[-1] > since}
            for key, most in keys.items():
                times = [one for one in self.attempts.get(key, ()) if one > since]
                if len(times) >= most:
                    raise refuse("Busy", "too many logins failed", help="try again in a quarter of an hour")
            if not self.home.password_holds(name, password):
                for key in keys:
                    self.attempts[key] = [*(t for t in self.attempts.get(key, ()) if t > since), time.monotonic()]
                raise refuse("Login", "the name or the password is wrong")
            self.attempts.pop(f"name {name[:40]}", None)


Handler = Callable[[Server, Asked], Any]


class Row(Struct, frozen=True):
    """A route. `roles` are those that may call it, none where no login is needed; `run`: a token for runs will do."""

    method: str
    path: str
    roles: tuple[str, ...]
    handler: Handler
    run: bool = False
    page: bool = False


ROUTES: list[Row] = []


def route(method: str, path: str, roles: tuple[str, ...], *, run: bool = False, page: bool = False) -> Any:
    """Decorates the handler of a route."""

    def add(handler: Handler) -> Handler:
        ROUTES.append(Row(method, path, roles, handler, run, page))
        return handler

    return add


NOBODY = Account("", "")


def endpoint(server: Server, row: Row) -> Callable[[Request], Any]:
    async def call(request: Request) -> Response:
        try:
            asked = await _read(server, row, request)
            if row.path == "/api/runs/{id}" and asked.query.get("wait"):
                await _moment(server, asked)
            given = await run_in_threadpool(row.handler, server, asked)
        except Refusal as refusal:
            return _refused(row, refusal)
        return given if isinstance(given, Response) else JSONResponse(given)

    return call


async def _moment(server: Server, asked: Asked) -> None:
    """Waits until a run's answer leaves: a moment that was declared when it began."""
    runs = await run_in_threadpool(server.home.runs, "id = ? AND account = ?", asked.path["id"], asked.who.name)
    for run in runs:
        if run.state == "running":
            await anyio.sleep(max(0.0, run.answer_at - time.time()))


async def _read(server: Server, row: Row, request: Request) -> Asked:
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
    return Asked(who or NOBODY, request.path_params, dict(request.query_params), body, secret, client)


def _caller(server: Server, request: Request) -> tuple[str, Account | None]:
    kind, _, token = request.headers.get("authorization", "").partition(" ")
    if kind:
        return token, server.home.who(token, "token") if kind.lower() == "bearer" and token else None
    secret = request.cookies.get(COOKIE, "")
    return secret, server.home.who(secret, "session") if secret else None


def _need_same_origin(request: Request) -> None:
    """A browser says from where a request comes; what says nothing is no browser, or no other site."""
    origin, site = request.headers.get("origin"), request.headers.get("sec-fetch-site")
    if (origin and urlsplit(origin).netloc != request.headers.get("host")) or site not in (None, "same-origin", "none"):
        raise refuse("Denied", "this was asked from another site")


async def _body(request: Request) -> dict[str, Any]:
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
    except (ValueError, RecursionError):
        raise refuse("ValueError", "the body is no JSON object") from None
    if not isinstance(body, dict):
        raise refuse("ValueError", "the body is no JSON object")
    return body


def _refused(row: Row, refusal: Refusal) -> Response:
    first = refusal.first
    status = STATUS.get(first.kind, 400)
    if row.page:
        if status == 401 and row.path != "/login":
            return RedirectResponse("/login", 303)
        from jostle.serve.workbench import error_page

        return error_page(status, first.message, first.help)
    return JSONResponse({"error": {"kind": first.kind, "message": first.message, "help": first.help}}, status)


def session_response(server: Server, name: str) -> Response:
    """A new session: its secret was never in another request, so that none can be planted."""
    response = RedirectResponse("/", 303)
    secret = server.home.add_session(name)
    response.set_cookie(COOKIE, secret, httponly=True, samesite="strict", secure=server.https, path="/")
    return response


def amount_of(text: str) -> Any:
    """An amount such as `epsilon 0.5` or `epsilon 1, delta 1e-6`."""
    from jostle.accounting.amounts import Amount

    value, _, delta = text.partition(",")
    words, tail = value.split(), delta.split()
    try:
        if len(words) == 2 and words[0] in ("epsilon", "rho") and (not tail or (len(tail) == 2 and tail[0] == "delta")):
            more = quanta(float(tail[1]), "delta") if tail else 0
            return Amount(words[0], quanta(float(words[1]), words[0]), more)
    except ValueError:
        pass
    raise refuse("BadAmount", "this is no amount", help="such as `epsilon 0.5`")


class Guard:
    """Adds the headers of every answer, and refuses early what announces that it is too large."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return

        async def sent(message: Any) -> None:
            if message["type"] == "http.response.start":
                mine = {name.lower() for name, _ in message["headers"]}
                more = [(k.lower().encode(), v.encode()) for k, v in HEADERS.items() if k.lower().encode() not in mine]
                message = {**message, "headers": [*message["headers"], *more]}
            await send(message)

        await self.app(scope, receive, sent)


async def _fault(request: Request, fault: Exception) -> Response:
    from jostle.tools.faults import trace

    trace(fault)
    return JSONResponse({"error": {"kind": "Fault", "message": "this is a fault of the server", "help": ""}}, 500)


async def _absent(request: Request, fault: Exception) -> Response:
    status = getattr(fault, "status_code", 404)
    return JSONResponse({"error": {"kind": "Missing", "message": "there is nothing here", "help": ""}}, status)


def application(server: Server, hosts: list[str]) -> Starlette:
    """The server as an ASGI application, which answers for these `hosts` alone."""
    import jostle.serve.api
    import jostle.serve.workbench  # noqa: F401 (they add routes)

    routes = [Route(row.path, endpoint(server, row), methods=[row.method]) for row in ROUTES]
    return Starlette(
        routes=routes, exception_handlers={Exception: _fault, 404: _absent, 405: _absent},
        middleware=[Middleware(Guard), Middleware(TrustedHostMiddleware, allowed_hosts=hosts, www_redirect=False)],
    )  # fmt: skip
