"""`jostle serve`: starts the server, makes the first owner, and verifies a log."""

from __future__ import annotations

import ipaddress
import json
import shutil
import sys
import tempfile
from argparse import Namespace
from pathlib import Path

from jostle.accounting.amounts import QUANTA, Amount
from jostle.diagnostics import refuse
from jostle.serve.store import Home, verify

EXAMPLE_PASSWORD = "example-password"


def command(options: Namespace) -> int:
    """Serves until it is stopped; with `--verify`, tests a log and ends."""
    if options.verify is not None:
        return _verify(options)
    try:
        import argon2  # noqa: F401
        import jinja2  # noqa: F401
        import starlette  # noqa: F401
        import uvicorn
    except ImportError:
        raise refuse("DataError", "a server needs packages", help='pip install "jostle[serve]"') from None
    from jostle.serve.app import application
    from jostle.serve.routing import Server
    from jostle.serve.runs import Checker, Runs

    https = bool(options.certificate) or options.behind_proxy
    if not (https or _loopback(options.host)):
        help = "--certificate FILE --key FILE, or --behind-proxy where something else does TLS"
        raise refuse("DataError", "passwords do not leave this machine without TLS", help=help)
    folder = Path(tempfile.mkdtemp(prefix="jostle-")) if options.example else Path(options.home)
    home = Home(folder, options.ledger or "")
    checker = Checker(home.folder)
    try:
        address = f"{'https' if options.certificate else 'http'}://{_in_url(options.host)}:{options.port}"
        _begin(home, address, example=options.example)
        server = Server(home, Runs(home, checker), https, options.example)
        hosts = ["localhost", "127.0.0.1", "[::1]", _in_url(options.host), *options.name]
        uvicorn.run(
            application(server, hosts), host=options.host, port=options.port, ssl_certfile=options.certificate,
            ssl_keyfile=options.key, proxy_headers=options.behind_proxy, server_header=False, log_level="warning",
            access_log=False, timeout_keep_alive=10, limit_concurrency=500, h11_max_incomplete_event_size=32 * 1024,
        )  # fmt: skip
    finally:
        checker.close()
        home.close()
        if options.example:
            shutil.rmtree(folder, ignore_errors=True)
    return 0


def _begin(home: Home, address: str, *, example: bool) -> None:
    """Says where the server is; without an owner, gives the link by which one becomes the first."""
    lines = [f"jostle serves {home.folder} at {address}"]
    if example:
        fill_example(home)
        lines.append(f"log in as `owner` or `analyst`, password `{EXAMPLE_PASSWORD}`")
    elif not any(account["role"] == "owner" and account["has_password"] for account in home.accounts()):
        new = not any(account["name"] == "owner" for account in home.accounts())
        link = home.add_account("owner", "owner", "system") if new else home.renew_link("owner", "system")
        lines.append(f"the first owner sets a password, once, at {address}/welcome#{link}")
    print("\n".join(lines), flush=True)


def fill_example(home: Home) -> None:
    """Public data with a budget, an owner, and an analyst with a part of it."""
    from jostle import resources
    from jostle.privacy.ledger.ledger import Ledger
    from jostle.tools.data import register

    shutil.copy(resources.folder("programs") / "data" / "people.csv", home.folder / "data" / "people.csv")
    register(Namespace(
        name="people", file=str(home.folder / "data" / "people.csv"), schema=EXAMPLE_SCHEMA, protecting="rows",
        budget="epsilon 10", ledger=home.ledger, copy=False, sheet=None, header=None, engine=None,
    ))  # fmt: skip
    for name in ("owner", "analyst"):
        home.set_password(home.add_account(name, name, "system"), EXAMPLE_PASSWORD)
    Ledger(home.ledger).grant("people", "analyst", Amount("epsilon", 5 * QUANTA))


EXAMPLE_SCHEMA = (
    '{age: 16..79, sex: {"Female", "Male"}, city: {"Ames", "Bergen", "Cork", "Delft"}, hours: 0..63, income: 0..200000}'
)


def _verify(options: Namespace) -> int:
    try:
        log = json.loads(Path(options.verify).read_text(encoding="utf-8"))
        entries = log["audit"] if isinstance(log, dict) else log
    except (OSError, ValueError, KeyError):
        raise refuse("DataError", f"`{options.verify}` is no log", help="what `/api/audit` gives") from None
    number, head = verify(entries)
    sys.stdout.write(f"the log holds: {number} entries, up to {head}\n")
    return 0


def _loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host
