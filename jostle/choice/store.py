"""Stores policies and the runs behind them, each as one readable JSON document.

A document's name is a digest of everything that it depends on.

A document carries a digest of itself; one that was edited or cut short is refused, not used. A store that cannot be
written costs the next run its time and nothing else.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jostle.choice.policy import Policy
from jostle.choice.table import RunTable
from jostle.diagnostics import Refusal, refuse
from jostle.jsontext import loads
from jostle.resources import cache_folder, replacing

FORMAT = 1
_NUMBERS = re.compile(r"\[[^\[\]{}\"]*\]")
"""A list of numbers alone, which is written on one line."""


def default_folder() -> Path | None:
    """`models` in this user's cache folder; None for who has no home, whose models live in memory only."""
    try:
        return cache_folder() / "models"
    except RuntimeError:
        return None


def digest(*parts: Any) -> str:
    """SHA-256 of JSON values, by their canonical text."""
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass
class Store:
    """Policies by key, in memory and in `folder`; None: in memory only."""

    folder: Path | None = field(default_factory=default_folder)
    _policies: dict[str, Policy] = field(default_factory=dict, repr=False)
    _runs: dict[str, RunTable] = field(default_factory=dict, repr=False)

    def path(self, key: str) -> Path | None:
        return self.folder / f"{key}.json" if self.folder is not None else None

    def runs_path(self, key: str) -> Path | None:
        return self.folder / "runs" / f"{key}.json" if self.folder is not None else None

    def load(self, key: str) -> Policy | None:
        """The policy of this key, or None where none is stored. Raises `DataError` where it is damaged."""
        if key in self._policies:
            return self._policies[key]
        path = self.path(key)
        if path is None:
            return None
        try:
            data = path.read_bytes()
        except OSError:
            return None
        self._policies[key] = _read(data, key, path)
        return self._policies[key]

    def remember(self, key: str, policy: Policy) -> Policy:
        """Keeps a policy in memory, so that later calls get this very one."""
        self._policies[key] = policy
        return policy

    def save(self, key: str, policy: Policy, on_disk: bool = True) -> Path | None:
        """Keeps a policy; where it was written, or None if it is in memory only."""
        self.remember(key, policy)
        path = self.path(key)
        if path is None or not on_disk or not policy.storable:
            return None
        return _write_document(path, key, "policy", policy.as_json())

    def load_runs(self, key: str) -> RunTable | None:
        """The table of runs of this key, or None where none is stored. Raises `DataError` where it is damaged."""
        if key not in self._runs:
            path = self.runs_path(key)
            try:
                data = path.read_bytes() if path is not None else None
            except OSError:
                data = None
            if path is None or data is None:
                return None
            try:
                self._runs[key] = RunTable.from_json(_content(data, key, path, "runs"))
            except (KeyError, TypeError, ValueError, IndexError, AttributeError):
                raise _damaged(path) from None
        return self._runs[key]

    def save_runs(self, key: str, table: RunTable) -> Path | None:
        """Keeps a table of runs, so that another model, or an evaluation, need not run the options again."""
        self._runs[key] = table
        path = self.runs_path(key)
        return _write_document(path, key, "runs", table.as_json()) if path is not None else None


def read_policy(path: Path, key: str) -> Policy | None:
    """The policy in a file that ships; None where there is none, or it is for another key. `DataError`: damaged."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    try:
        return _read(data, key, path) if loads(data.decode())["key"] == key else None
    except (ValueError, KeyError, TypeError):
        raise _damaged(path) from None


def write_policy(path: Path, key: str, policy: Policy, about: dict[str, Any]) -> Path | None:
    """Writes a policy as it ships, after what is to be known `about` it; None where that fails."""
    return _write_document(path, key, "policy", policy.as_json(), about)


def _write_document(
    path: Path, key: str, what: str, content: object, about: dict[str, Any] | None = None
) -> Path | None:
    document = {"format": FORMAT, "key": key, **(about or {}), "digest": digest(FORMAT, key, content), what: content}
    text = json.dumps(document, indent=1 if what == "policy" else None, allow_nan=False, ensure_ascii=False)
    text = _NUMBERS.sub(lambda numbers: re.sub(r"\n *", " ", numbers[0]).replace("[ ", "[").replace(" ]", "]"), text)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path, encoding="utf-8") as file:
            file.write(text)
    except OSError:
        return None
    return path


def _content(data: bytes, key: str, path: Path, what: str) -> Any:
    """Returns the content of a document under `what`, after its digest is checked."""
    try:
        document = loads(data.decode())
    except ValueError:
        raise _damaged(path) from None
    if not isinstance(document, dict) or not {"format", "key", "digest", what} <= document.keys():
        raise _damaged(path)
    try:
        checksum = digest(document["format"], document["key"], document[what])
    except ValueError:
        raise _damaged(path) from None
    if checksum != document["digest"] or document["key"] != key or document["format"] != FORMAT:
        raise _damaged(path)
    return document[what]


def _read(data: bytes, key: str, path: Path) -> Policy:
    content = _content(data, key, path, "policy")
    try:
        policy = Policy.from_json(content)
        sound = 0 <= policy.share < 1 and set(policy.needs) <= set(policy.table.features)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError):
        raise _damaged(path) from None
    if not sound:
        raise _damaged(path)
    return policy


def _damaged(path: Path) -> Refusal:
    return refuse(
        "DataError",
        f"the stored model `{path}` is damaged: it was edited or cut short",
        help="delete this file; the next run trains the model again",
    )
