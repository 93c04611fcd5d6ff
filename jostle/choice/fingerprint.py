"""Fingerprints values of a program: texts that change when their meaning does, for the keys of stored models.

A function is its tree without places, and what its free names mean; public data are their contents.
"""

from __future__ import annotations

import hashlib
from datetime import date
from typing import Any

from jostle.privacy.kernel.exposures import Handle
from jostle.privacy.kernel.handles import Cube, Table, Vectors
from jostle.privacy.reading.public_data import PublicData
from jostle.run.periods import Period
from jostle.run.scope import MISSING
from jostle.run.values import (
    REQUIRED,
    Builtin,
    Function,
    Grouped,
    Interval,
    JSet,
    Module,
    Part,
    RowForm,
    is_sequence,
    is_vector,
)  # fmt: skip
from jostle.syntax import nodes as n
from jostle.syntax.walk import every


def fingerprint(value: object, public: PublicData) -> str:
    return _FingerprintReader(public).read(value)


class _FingerprintReader:
    def __init__(self, public: PublicData) -> None:
        self._public = public
        self._visited: set[int] = set()

    def read(self, value: Any) -> str:
        if value is REQUIRED or value is None or isinstance(value, (bool, int, float, str, date, Period, Interval)):
            return f"{type(value).__name__}:{value if value is not REQUIRED else ''}"
        if isinstance(value, (Builtin, RowForm, Module)):
            return f"{type(value).__name__}:{value.name}"
        if is_vector(value):
            return hashlib.sha256(value.tobytes()).hexdigest()
        if isinstance(value, Handle):
            return self._handle(value)
        if id(value) in self._visited:
            return "again"
        self._visited.add(id(value))
        if isinstance(value, Function):
            return self._function(value)
        if isinstance(value, Part):
            return f"{value.kind}({self.read(value.run)},{self.read(value.predict)})"
        if isinstance(value, dict):
            return "{" + ",".join(f"{k}:{self.read(v)}" for k, v in value.items()) + "}"
        if isinstance(value, Grouped):
            return self.read(value.columns)
        if isinstance(value, JSet) or is_sequence(value):
            return "[" + ",".join(self.read(v) for v in value) + "]"
        parts = getattr(value, "jostle_parts", None)
        if parts is not None:
            return f"{type(value).__name__}({self.read(parts)})"
        fields = getattr(value, "__dataclass_fields__", {})
        return f"{type(value).__name__}({','.join(self.read(getattr(value, f)) for f in fields)})"

    def _function(self, function: Function) -> str:
        own = {name for name, _ in function.params}
        tree = hashlib.sha256(repr(function.body).encode()).hexdigest()
        defaults = ",".join(self.read(default) for _, default in function.params)
        free = []
        for name in sorted(self._names(function.body) - own):
            meant = function.scope.find(name)
            if meant is not MISSING:
                free.append(f"{name}={self.read(meant)}")
        return f"function({tree};{defaults};{';'.join(free)})"

    def _names(self, body: Any) -> set[str]:
        return {node.id for node in every(body) if isinstance(node, n.Name)}

    def _handle(self, handle: Handle) -> str:
        if handle.private:
            return f"private:{handle.exposures[0].source.name}"
        if isinstance(handle, Cube):
            cells = self._public.cells(handle)
            return f"cube{handle.shape}:{hashlib.sha256(cells.tobytes()).hexdigest()}"
        if isinstance(handle, Table):
            stamps = self._public.stamps(handle)
            return f"table:{handle.plan!r}:{stamps}"
        if isinstance(handle, Vectors):
            stamps = self._public.stamps(handle)
            return f"vectors:{handle.exprs!r}:{handle.radius}:{handle.norm}:{stamps}"
        return type(handle).__name__
