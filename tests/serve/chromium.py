"""Chromium without a window, spoken to by its DevTools protocol over a pipe: keys as a person presses them."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

PROGRAM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome") or ""
_KEYS = {
    "Tab": 9, "Enter": 13, "Escape": 27, " ": 32, "PageDown": 34, "End": 35, "Home": 36, "ArrowUp": 38, "ArrowDown": 40,
    "Backspace": 8, "Delete": 46, "F1": 112, "F8": 119,
}  # fmt: skip
_MODIFIERS = {"Alt": 1, "Control": 2, "Shift": 8}


class Chromium:
    """One browser; each `page` has cookies of its own."""

    def __init__(self, folder: Path) -> None:
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()
        words = [PROGRAM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                 "--remote-debugging-pipe", "--disable-background-networking", f"--user-data-dir={folder}"]  # fmt: skip

        def pipes() -> None:
            copies = os.dup(to_read), os.dup(to_write)
            os.dup2(copies[0], 3)
            os.dup2(copies[1], 4)

        self.process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=pipes,
            close_fds=False,
        )  # fmt: skip
        os.close(to_read)
        os.close(to_write)
        self._number, self._rest = 0, b""

    def call(self, method: str, session: str = "", **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        os.write(self._write, json.dumps(message | ({"sessionId": session} if session else {})).encode() + b"\0")
        while True:
            while b"\0" not in self._rest:
                part = os.read(self._read, 1 << 20)
                if not part:
                    raise RuntimeError("Chromium has ended")
                self._rest += part
            line, _, self._rest = self._rest.partition(b"\0")
            answer = json.loads(line)
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return dict(answer["result"])

    def page(self, width: int = 1280, height: int = 900, *, dark: bool = False) -> Page:
        context = self.call("Target.createBrowserContext")["browserContextId"]
        target = self.call("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session)
        page.call("Page.enable")
        page.size(width, height)
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        page.call("Emulation.setEmulatedMedia", features=scheme)
        return page

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._write)
        os.close(self._read)


class Page:
    def __init__(self, browser: Chromium, session: str) -> None:
        self.browser, self.session = browser, session

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self.browser.call(method, self.session, **parameters)

    def size(self, width: int, height: int) -> None:
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                  mobile=width < 500)  # fmt: skip

    def go(self, url: str) -> None:
        self.ask("window.left = true")  # the page that is there, which may answer for a while
        self.call("Page.navigate", url=url)
        self.until("!window.left && document.readyState === 'complete'")

    def ask(self, expression: str) -> Any:
        """The value of an expression in the page; promises are waited for."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(str(answer["exceptionDetails"])[:500])
        return answer["result"].get("value")

    def until(self, expression: str, seconds: float = 30.0) -> Any:
        """Waits until an expression holds, and gives its value; fails with the text of the page."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                if value := self.ask(f"(v => v instanceof Node ? true : v)({expression})"):
                    return value
            except RuntimeError:
                pass  # the page is being left
            time.sleep(0.05)
        raise AssertionError(f"never: {expression}\n{self.ask('document.body.innerText')}")

    def shows(self, text: str, seconds: float = 30.0) -> None:
        self.until(f"document.body.innerText.includes({json.dumps(text)})", seconds)

    def key(self, key: str) -> None:
        """Presses a key, `Control+Enter` with another one held."""
        *held, name = key.split("+") if len(key) > 1 else [key]
        modifiers = sum(_MODIFIERS[one] for one in held)
        text = {"Enter": "\r", " ": " "}.get(name, name if len(name) == 1 else "")
        facts: dict[str, Any] = {"key": name, "modifiers": modifiers, "windowsVirtualKeyCode": _KEYS.get(name, 0)}
        if name in _KEYS:
            facts["code"] = "Space" if name == " " else name
        more = {"text": text} if text and not modifiers & 3 else {}
        self.call("Input.dispatchKeyEvent", type="keyDown" if more else "rawKeyDown", **facts, **more)
        self.call("Input.dispatchKeyEvent", type="keyUp", **facts)

    def type(self, text: str) -> None:
        """Types, a key at a time; a line's end is Enter."""
        for character in text:
            if character == "\n":
                self.key("Enter")
            else:
                self.call("Input.dispatchKeyEvent", type="keyDown", key=character, text=character)
                self.call("Input.dispatchKeyEvent", type="keyUp", key=character)

    def focused(self) -> str:
        """The accessible name, as far as it is written, of what has the focus."""
        return str(self.ask(
            "(e => e.getAttribute('aria-label') || (e.labels && e.labels[0] ? e.labels[0].innerText : e.innerText)"
            " || e.name || e.tagName)(document.activeElement).trim()"
        ))  # fmt: skip

    def tab_to(self, name: str, most: int = 80) -> None:
        """Moves the focus with Tab until it is on what begins with this name."""
        self.until("document.readyState === 'complete'")  # what keys do is in its scripts
        for _ in range(most):
            self.key("Tab")
            if self.focused().startswith(name):
                return
        raise AssertionError(f"Tab does not reach `{name}`; the last was `{self.focused()}`")

    def choose(self, option: str) -> None:
        """Chooses in the list that has the focus, by the first letters of an option."""
        for _ in range(40):
            if str(self.ask("document.activeElement.selectedOptions[0].innerText")).startswith(option):
                return
            self.key("ArrowDown")
        raise AssertionError(f"no option `{option}`")

    def picture(self, path: Path, *, whole: bool = True) -> None:
        image = self.call(
            "Page.captureScreenshot", format="png", captureBeyondViewport=whole, **(self._clip() if whole else {})
        )
        path.write_bytes(base64.b64decode(image["data"]))

    def _clip(self) -> dict[str, Any]:
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        return {"clip": {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 4000), "scale": 1}}
