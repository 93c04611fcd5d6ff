"""Programs run by a server (`jostle serve`): `jostle login URL`, `jostle run --server`, `jostle repl --server`,
`%%jostle --server` and `jostle.connect(url)`.

The token of a server stands in `servers.json` of the user's configuration, readable by the user alone.
"""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from jostle.diagnostics import Diagnostic, Refusal, refuse
from jostle.resources import Json, replacing, user_folder
from jostle.source import Source
from jostle.syntax import parse
from jostle.tools.arguments import read_program
from jostle.tools.turns import arguments_fit

PATIENCE = 60.0  # seconds beyond the declared moment of an answer


class _Stay(HTTPRedirectHandler):
    """No answer sends a token elsewhere."""

    def redirect_request(self, *_: object, **__: object) -> None:
        return None


class RemoteResult:
    """What a server answered: the face of `Result` for what left it. Tables are pandas frames in `released`."""

    def __init__(self, answer: Mapping[str, Json]) -> None:
        self.answer = dict(answer)
        self.ok: bool = bool(answer.get("ok"))
        self.values: dict[str, Json] = dict(answer.get("released", {}))
        self.budget: dict[str, dict[str, dict[str, str]]] = dict(answer.get("budget", {}))
        self.output: list[str] = list(answer.get("output", []))
        faults = answer.get("errors") or ([answer["error"]] if "error" in answer else [])
        self.diagnostics = tuple(map(_diagnostic, faults))

    @property
    def released(self) -> dict[str, Json]:
        return {name: self[name] for name in self.values}

    def __getitem__(self, name: str) -> Json:
        value = self.values[name]
        if isinstance(value, list) and value and all(isinstance(row, dict) for row in value):
            import pandas

            return pandas.DataFrame(value)
        return value

    def margins(self) -> dict[str, Json]:
        return dict(self.answer.get("margins", {}))

    def document(self) -> str:
        return json.dumps(self.answer, ensure_ascii=False)


@arguments_fit
class Remote:
    """A server, as a session: `run`, `run_text` and `attempt` hand programs in and wait for their answers.

    `url` is that of `jostle serve`, empty for that of the last login; `token` one of an account there; left out, what
    `jostle login` keeps. `seconds`, as the server offers them, say when an answer leaves, whatever it is.
    """

    def __init__(self, url: str, token: str = "", seconds: float | None = None) -> None:
        self.url, self.seconds = _address(_last(url)), seconds
        self._token = token or _tokens().get(self.url, "")
        if not self._token:
            raise refuse("DataError", f"you are not logged in at {self.url}", help=f"jostle login {self.url}")

    def run(self, program: str | Path | Source, /, **params: object) -> RemoteResult:
        """Runs a program there; raises `Refusal` where it is refused."""
        result = self.attempt(program if isinstance(program, Source) else read_program(Path(program)), params)
        if not result.ok:
            raise Refusal(*result.diagnostics)
        return result

    def run_text(self, text: str, /, **params: object) -> RemoteResult:
        return self.run(Source("text", text), **params)

    def attempt(self, source: Source, settings: Mapping[str, object] | None = None) -> RemoteResult:
        """Runs a program there; its faults come back in the result. `Refusal` where it waits for a reviewer."""
        body: dict[str, object] = {
            "program": source.text,
            "settings": {k: _as_text(v) for k, v in (settings or {}).items()},
        }
        if self.seconds is not None:
            body["seconds"] = self.seconds
        run = self._call("POST", "/api/runs", body)
        while run["state"] == "running":
            run = self._call("GET", f"/api/runs/{run['id']}?wait=1", timeout=float(run["seconds"]) + PATIENCE)
        if run["state"] != "done":
            help = f"its answer will be at {self.url}/runs/{run['id']}"
            raise refuse("DataError", "this program waits for a reviewer", help=help)
        answer = run.get("answer") or self._call("GET", f"/api/runs/{run['id']}")["answer"]
        return RemoteResult(self._call("GET", f"/runs/{run['id']}/files/answer.json") if "whole" in answer else answer)

    def price(self, text: str) -> str:
        """What a program would cost each of its sources; raises `Refusal` for what the check refuses. It is free."""
        answer = self._call("POST", "/api/check", {"program": text, "settings": {}})
        if answer.get("errors"):
            raise Refusal(*map(_diagnostic, answer["errors"]))
        parts = []
        for one in answer["cost"]:
            if one["asks"] != "0":
                amount = f"{one['unit']} {one['asks']}" if one["asks"] else "all that is left"
                parts.append(f"{one['source']}: {'' if one['exact'] else 'at most '}{amount}")
        return ", ".join(parts) or "nothing"

    def datasets(self) -> list[dict[str, Json]]:
        """What you have grants on: names, columns, and what is left."""
        return list(self._call("GET", "/api/datasets")["datasets"])

    def _call(self, method: str, path: str, body: object = None, timeout: float = PATIENCE) -> dict[str, Json]:
        return call(self.url, method, path, body, self._token, timeout)


class Entries:
    """A prompt or a notebook whose entries a server runs: each is handed in behind those that went well before it.

    Selects that were answered are given again for nothing, so that names live on; selections are paid for anew.
    A bare expression is released as `it`, for this one entry.
    """

    def __init__(self, remote: Remote) -> None:
        self.remote = remote
        self.last = RemoteResult({})
        self._before = ""

    def enter(self, text: str) -> RemoteResult:
        """Runs an entry; gives what it released, printed and cost, and its faults by its own lines."""
        statement, named = self._statement(text)
        answer = dict(self.remote.attempt(Source("entries", self._before + statement)).answer)
        first = self._before.count("\n")
        for fault in [*answer.get("errors", ()), *filter(None, [answer.get("error")])]:
            if fault.get("line", 0) > first:
                fault["line"] -= first
            elif "line" in fault:
                del fault["line"]
        values = self.last.values
        fresh = {k: v for k, v in answer.get("released", {}).items() if k not in values or values[k] != v}
        whole = RemoteResult(answer)
        printed = whole.output[len(self.last.output) :]
        if whole.ok and named:
            self._before += statement
            self.last = whole
        self.last.budget = whole.budget or self.last.budget
        return RemoteResult({**answer, "released": fresh, "output": printed})

    def price(self, text: str) -> str:
        """What an entry would cost, with those before it, which are free where they were answered."""
        return self.remote.price(self._before + self._statement(text)[0])

    def _statement(self, text: str) -> tuple[str, bool]:
        """An entry as statements of a program, and whether it is to live on: an expression is not."""
        try:
            parse(Source("entry", f"it = ({text.strip()})\n"))
        except Refusal:
            return text.rstrip("\n") + "\n", True
        return f"release it = ({text.strip()})\n", False


def _as_text(value: object) -> str:
    """A setting as the command line has it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def answer_text(result: RemoteResult) -> str:
    """What was printed and released, with its ±, a line or a block each."""
    from jostle.tools.show import released

    margins = result.margins()
    values = [released(name, value, 96, margins.get(name)) for name, value in result.values.items()]
    return "".join(f"{one}\n" for one in [*result.output, *values])


def prompt_there(url: str, seconds: float | None) -> int:
    """`jostle repl --server`: entries from a terminal or a pipe, run by a server; 1 if a pipe had any refused."""
    from jostle.tools.completion import Vocabulary
    from jostle.tools.render import tell
    from jostle.tools.repl import prompt
    from jostle.tools.show import budget_text
    from jostle.tools.terminal import at_terminal, over_pipe
    from jostle.trace.text import clean

    entries, failed = Entries(Remote(url, seconds=seconds)), False
    tables = entries.remote.datasets()
    names = Vocabulary({one["name"]: "a private table" for one in tables},
                       {one["name"]: tuple(c["name"] for c in one["columns"]) for one in tables})  # fmt: skip
    interactive = sys.stdin.isatty() and sys.stdout.isatty()
    if interactive:
        lines = (f'private {one["name"]} = dataset("{one["name"]}")' for one in tables)
        print("\n".join(["`:cost ENTRY` says what an entry would cost, `:budget` what is left, `:quit` ends", *lines]))
    read = at_terminal(lambda: prompt(entries.last.budget), lambda: names) if interactive else over_pipe(sys.stdin)
    for entry in read:
        word, _, rest = entry.strip().partition(" ")
        try:
            if word == ":quit":
                break
            if word == ":cost":
                print(clean(entries.price(rest)))
            elif word == ":budget":
                print(clean(budget_text(entries.last.budget)))
            elif word.startswith(":"):
                raise refuse("SyntaxError", f"`{word}` is no command at a server's prompt", help="`:cost`, `:budget`")
            elif word:
                result = entries.enter(entry)
                print(clean(answer_text(result)), end="", flush=True)
                failed = failed or not result.ok
                tell(result.diagnostics)
        except Refusal as refusal:
            failed = True
            tell(refusal.diagnostics)
    return 1 if failed and not interactive else 0


def connect(url: str, token: str = "", seconds: float | None = None) -> Remote:
    """A server that runs programs on data which stay there; `jostle login` keeps a token for it."""
    return Remote(url, token, seconds)


def call(
    url: str, method: str, path: str, body: object = None, token: str = "", timeout: float = PATIENCE
) -> dict[str, Json]:
    """One request; raises `Refusal` with the server's words, or ours where it gave none."""
    headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})}
    data = None if body is None else json.dumps(body).encode()
    try:
        with build_opener(_Stay).open(Request(f"{url}{path}", data, headers, method=method), timeout=timeout) as answer:
            document = json.loads(answer.read())
    except HTTPError as fault:
        try:
            error = json.loads(fault.read())["error"]
            raise refuse("DataError", str(error["message"]), help=str(error.get("help", ""))) from None
        except (ValueError, KeyError, TypeError):
            raise _no_server(url) from None
    except (URLError, OSError, ValueError):
        raise refuse("DataError", f"{url} cannot be reached", help="is the server running, the URL right?") from None
    if not isinstance(document, dict):
        raise _no_server(url)
    return document


def _no_server(url: str) -> Refusal:
    return refuse("DataError", f"{url} does not answer as a server of jostle", help="is the URL right?")


def command(options: Namespace) -> int:
    """`jostle login URL`: asks for name and password, and keeps a token. `--token` reads one from standard input."""
    import getpass

    url = _address(options.url)
    if options.token:
        token = sys.stdin.readline().strip()
        name = call(url, "GET", "/api/me", token=token)["name"]
    else:
        try:
            name = options.name or input("name: ")
            password = getpass.getpass("password: ")
        except EOFError:
            raise refuse("DataError", "nobody gives a name and a password here", help="`--token`, by a pipe") from None
        answer = call(url, "POST", "/api/login", {"name": name, "password": password})
        token = answer["token"]
    path = _place()
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    tokens = {**_tokens(), url: token, "": url}
    with replacing(path) as file:  # it is made with mode 0600
        file.write(json.dumps(tokens))
    print(f"logged in at {url} as {name}: `jostle run PROGRAM --server` runs there")
    return 0


def _last(url: str) -> str:
    """A server's URL; where it is empty, that of the last login."""
    url = url or _tokens().get("", "")
    if not url:
        raise refuse("DataError", "you are logged in at no server", help="jostle login URL")
    return url


def _diagnostic(error: Mapping[str, object]) -> Diagnostic:
    line = f"line {error['line']}: " if error.get("line") else ""
    return Diagnostic(str(error.get("kind")), line + str(error.get("message")), None, "", str(error.get("help") or ""))


def _address(url: str) -> str:
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
    except ValueError:  # half a bracket
        parts = urlsplit("")
    local = parts.hostname in ("localhost", "127.0.0.1", "::1")
    if parts.scheme not in ("http", "https") or not parts.netloc or "@" in parts.netloc:
        raise refuse("DataError", f"`{url}` is no URL of a server", help="such as https://stats.example")
    if parts.scheme == "http" and not local:
        raise refuse("DataError", "a token does not leave this machine without TLS", help=f"https://{parts.netloc}")
    return f"{parts.scheme}://{parts.netloc}"


def _place() -> Path:
    return user_folder("XDG_CONFIG_HOME", ".config") / "servers.json"


def _tokens() -> dict[str, str]:
    try:
        tokens = json.loads(_place().read_text(encoding="utf-8"))
        return {str(k): str(v) for k, v in tokens.items()}
    except (OSError, ValueError, AttributeError, RuntimeError):
        return {}
