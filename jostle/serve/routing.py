"""What routes are: a row each, with the roles that may call it. What has no row is not there."""

from __future__ import annotations

import hmac
import ipaddress
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from typing import Any, TypeVar

from anyio import CapacityLimiter
from msgspec import Struct, field
from starlette.responses import RedirectResponse, Response

from jostle.accounting.amounts import Amount
from jostle.accounting.composition import quanta
from jostle.diagnostics import refuse
from jostle.resources import Json
from jostle.serve.runs import Runs
from jostle.serve.store import ROLES, Account, Home

PROOF = "x-jostle-proxy"
"""The header in which a proxy shows that it is the one."""
ANYBODY: tuple[str, ...] = ()
EVERYBODY = ROLES
AT_ONCE, MOST_WAITING = 4, 100
"""Requests of one account, or of one address that has not logged in, that are answered at once, and that wait."""
TOO_OFTEN, WINDOW = 5, 15 * 60.0
PER_ADDRESS, PER_NAME = 30, 100
"""Logins that may fail in `WINDOW` seconds: of a name from one address, from an address, and of a name from all."""


class Call(Struct):
    """A request, read. `body` is an object; `secret` what the caller is known by, `client` its address, `identity` the
    account that a proxy says."""

    who: Account
    path: Mapping[str, str]
    query: Mapping[str, str]
    body: dict[str, Json]
    secret: str
    client: str
    place: str = ""
    identity: str = ""

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
        number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e12
        if value is not None and not number:
            raise refuse("ValueError", f"`{name}` is a number")
        return None if value is None else float(value)


class Server(Struct):
    """What the routes share. `https`: cookies are sent over TLS only. `log`: a line on standard error a request.

    `identity` names the header in which a proxy says who somebody is, as NAME or NAME@`domain`; it counts in a request
    that has the proxy's `proof` too, and passwords do not count then."""

    home: Home
    runs: Runs
    https: bool = False
    example: bool = False
    log: bool = False
    identity: str = ""
    domain: str = ""
    proof: str = ""
    lock: Any = field(default_factory=threading.Lock)
    turns: dict[str, CapacityLimiter] = field(default_factory=dict)
    under_way: Counter[str] = field(default_factory=Counter)

    @contextmanager
    def turn(self, whose: str) -> Iterator[CapacityLimiter]:
        """Where requests of one account or address wait for their turn: others do not wait for these. Used in the loop
        of the server alone; refused where too many wait, those of the same moment among them."""
        if self.under_way[whose] >= AT_ONCE + MOST_WAITING:
            raise refuse("Busy", "too many requests of yours wait", help="one after the other")
        self.under_way[whose] += 1
        try:
            yield self.turns.setdefault(whose, CapacityLimiter(AT_ONCE))
        finally:
            self.under_way[whose] -= 1
            if not self.under_way[whose]:
                del self.under_way[whose], self.turns[whose]

    def log_in(self, name: str, password: str, client: str) -> None:
        """Refused where a password does not hold, or where too many did not lately, in words that say neither which
        names there are. Hashes are computed one at a time."""
        self.need_passwords()
        with self.lock:
            name, network = name[:41], network_of(client)
            mine = f"both {network} {name}"  # no name of a login makes it another's key
            keys = {mine: TOO_OFTEN, f"from {network}": PER_ADDRESS, f"name {name}": PER_NAME}
            since = time.time() - WINDOW
            if any(self.home.failures(key, since) >= most for key, most in keys.items()):
                raise refuse("Busy", "too many logins failed", help="try again in a quarter of an hour")
            if not self.home.password_holds(name, password):
                self.home.add_failure(keys, since)
                raise refuse("Login", "the name or the password is wrong")
            self.home.forget_failures(mine)

    def need_passwords(self) -> None:
        if self.identity:
            raise refuse("Denied", "this server knows people by its proxy", help="open its page; tokens are made there")

    def identity_of(self, headers: Mapping[str, str]) -> str:
        """The account that the proxy says; empty where it says none, or somebody else says it."""
        same = hmac.compare_digest(headers.get(PROOF, "").encode(), self.proof.encode())
        if not (self.identity and self.proof and same):
            return ""
        name = headers.get(self.identity, "").strip().lower()
        return name.removesuffix(f"@{self.domain}") if self.domain else name


def network_of(address: str) -> str:
    """An address, of IPv6 the network of 64 bits: whoever has one of its addresses has all of them."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    parsed = getattr(parsed, "ipv4_mapped", None) or parsed  # as some proxies write an address of IPv4
    if parsed.version == 4:
        return str(parsed)
    return str(ipaddress.ip_network((parsed, 64), strict=False).network_address)


Reply = Response | dict[str, Json]
Handler = Callable[[Server, Call], Reply]
H = TypeVar("H", bound=Callable[..., Any])


class Row(Struct, frozen=True):
    """A route. `roles` are those that may call it, none where no login is needed; `run`: a token for runs will do."""

    method: str
    path: str
    roles: tuple[str, ...]
    handler: Handler
    run: bool = False
    page: bool = False


ROUTES: list[Row] = []


def route(method: str, path: str, roles: tuple[str, ...], *, run: bool = False, page: bool = False) -> Callable[[H], H]:
    """Decorates the handler of a route."""

    def add(handler: H) -> H:
        ROUTES.append(Row(method, path, roles, handler, run, page))
        return handler

    return add


NOBODY = Account("", "")


def cookie_of(server: Server) -> str:
    """The name of a session's cookie: under TLS one that browsers take from this host alone, so that no other host of
    its domain plants a session."""
    return "__Host-jostle_session" if server.https else "jostle_session"


def session_response(server: Server, name: str) -> Response:
    """A new session: its secret was never in another request, so that none can be planted."""
    response = RedirectResponse("/", 303)
    secret = server.home.add_session(name)
    response.set_cookie(cookie_of(server), secret, httponly=True, samesite="strict", secure=server.https, path="/")
    return response


_AMOUNT = re.compile(r"(epsilon|rho) +([0-9.eE+-]+)(?: *, *delta +([0-9.eE+-]+))?")  # not `1_0`, which Python reads
_SHARE = re.compile(r"(\d{1,3}(?:\.\d{1,6})?) ?%", re.ASCII)


def amount_of(text: str, whole: Amount | None = None) -> Amount:
    """An amount such as `epsilon 0.5` or `epsilon 1, delta 1e-6`, or a share such as `30 %` of a `whole`."""
    amount, share = _AMOUNT.fullmatch(text.strip()), _SHARE.fullmatch(text)
    if whole is not None and share is not None:
        part, delta_part = (int(one * Fraction(share[1]) / 100) for one in (whole.value, whole.delta))
        if 0 < part <= whole.value:
            return Amount(whole.unit, part, delta_part)
    try:
        if amount is not None:
            unit, value, delta = amount.groups()
            return Amount(unit, quanta(float(value), unit), quanta(float(delta), "delta") if delta else 0)
    except ValueError:
        pass
    raise refuse("BadAmount", "this is no amount", help="such as `epsilon 0.5`")
