"""Plans as JSON that is the same in every session, for histories and repeated requests.

The engine's keys of data sets are replaced by the names of registered datasets. Other data (a public table in a join)
have no name, and the plan is then not `closed`: its digest can be used in a history, but not to identify equal
requests. Everything in a plan is public.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import date
from typing import Any

from msgspec import Struct

from jostle.plan.plan import Scan
from jostle.records import field_names, is_record


def canonical(value: object) -> bytes:
    """JSON with sorted names and no spaces: one text for one value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def digest(value: object) -> str:
    """SHA-256 of a value as canonical JSON, in hexadecimal digits."""
    return hashlib.sha256(canonical(value)).hexdigest()


class PlanDigest(Struct, frozen=True):
    """A digest. `closed`: it determines the answer, except for the data."""

    digest: str
    closed: bool


def plan_digest(plan: object, names: Mapping[str, str]) -> PlanDigest:
    """The digest of a plan. `names` are the registered names of data sets by the engine's key."""
    reader = _Reader(names)
    content = reader.plain(plan)
    return PlanDigest(digest(content), reader.closed)


class _Reader:
    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names
        self.closed = True

    def plain(self, value: Any) -> Any:
        if value is None or isinstance(value, (bool, int, str)):
            return value
        if isinstance(value, float):
            return ["float", float(value).hex()]
        if isinstance(value, date):
            return ["moment", value.isoformat()]
        if isinstance(value, Scan):
            self.closed &= value.data in self._names
            return ["Scan", self._names.get(value.data, ""), self.plain(value.columns)]
        if hasattr(value, "digest_facts"):
            return self.plain(value.digest_facts)
        if isinstance(value, (tuple, list)):
            return [self.plain(item) for item in value]
        if isinstance(value, Mapping):
            return {str(name): self.plain(item) for name, item in value.items()}
        if isinstance(value, range):
            return ["range", value.start, value.stop, value.step]
        if is_record(value):
            parts = [name for name in field_names(type(value)) if name not in ("origin", "facts")]
            self.closed &= bool(parts)
            return [type(value).__name__, *(self.plain(getattr(value, name)) for name in parts)]
        tobytes = getattr(value, "tobytes", None)
        if callable(tobytes) and hasattr(value, "dtype"):
            return ["array", str(value.dtype), list(value.shape), hashlib.sha256(tobytes()).hexdigest()]
        self.closed = False
        return type(value).__name__
