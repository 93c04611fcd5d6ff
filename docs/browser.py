"""A browser without a window, driven over a pipe by the DevTools protocol: it opens, measures, photographs pages."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-background-networking",
    "--disable-component-update", "--no-first-run", "--remote-debugging-pipe",
)  # fmt: skip


class Browser:
    """One tab. `requests` are the addresses that pages have asked for."""

    def __init__(self, commands: int, answers: int) -> None:
        self._commands, self._answers = commands, answers
        self._number, self._rest, self._session = 0, b"", ""
        self.requests: list[str] = []
        self._events: list[dict[str, Any]] = []
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime"):
            self._ask(f"{domain}.enable")
        # A page remembers a reader's colours; every page is to be a first visit.
        self._ask("Page.addScriptToEvaluateOnNewDocument", source="localStorage.clear()")

    def _ask(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return dict(answer["result"])

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            piece = os.read(self._answers, 1 << 20)
            if not piece:
                raise RuntimeError("the browser has gone")
            self._rest += piece
        first, self._rest = self._rest.split(b"\0", 1)
        message = dict(json.loads(first))
        if message.get("method") == "Network.requestWillBeSent":
            self.requests.append(message["params"]["request"]["url"])
        elif message.get("method") == "Page.loadEventFired":
            self._events.append(message)
        return message

    def open(self, address: str) -> None:
        """Goes to a page, and waits until it is loaded and laid out."""
        self._events.clear()
        self._ask("Page.navigate", url=address)
        while not self._events:
            self._read()
        self.value("new Promise(r => setTimeout(r, 60))")

    def window(self, width: int, height: int, dark: bool) -> None:
        """The size of the window in CSS pixels, and whether its user likes it dark."""
        self._ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._ask("Emulation.setEmulatedMedia", features=[scheme])

    def value(self, script: str) -> Any:
        """What a script gives in the page, as JSON; a promise is waited for."""
        got = self._ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in got:
            raise RuntimeError(got["exceptionDetails"]["exception"].get("description", "a script failed"))
        return got["result"].get("value")

    def photograph(self, path: Path) -> None:
        """The window as a PNG."""
        path.write_bytes(base64.b64decode(self._ask("Page.captureScreenshot", format="png")["data"]))


@contextmanager
def browser() -> Iterator[Browser]:
    """A browser with a profile of its own, until the block ends. Raises `FileNotFoundError` where none is installed."""
    program = next((path for name in NAMES if (path := shutil.which(name))), None)
    if program is None:
        raise FileNotFoundError("no Chromium is installed: apt-get install chromium")
    in_read, in_write = os.pipe()
    out_read, out_write = os.pipe()

    def places() -> None:  # the browser reads commands from 3 and writes answers to 4
        os.dup2(os.dup(in_read), 3)
        os.dup2(os.dup(out_write), 4)

    # Its children may outlive it by a moment, and write into the profile.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            [program, *FLAGS, f"--user-data-dir={profile}"], close_fds=False, preexec_fn=places,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(in_read)
        os.close(out_write)
        try:
            yield Browser(in_write, out_read)
        finally:
            process.kill()
            process.wait()
            os.close(in_write)
            os.close(out_read)
