"""Where attacks are run: noise that tells nothing, and everything that a person could see of a run.

`Blind` noise answers without looking at what it is given. Under it, whatever can be seen of a run is a function of
public facts, unless something flows past the measurements; so two runs on neighbouring inputs must be equal byte for
byte. It also keeps what it was given, so that what a charge really lost can be worked out without asking the program.
"""

from __future__ import annotations

import io
import json
import warnings
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from recorded_noise import Draw

from jostle.privacy.kernel import exposures
from jostle.privacy.measurements import choices
from jostle.privacy.mechanisms import least_cost
from jostle.source import Source
from jostle.tools.session import Result, Session
from jostle.trace.jsonl import plain

LEVEL = 3  # blind answers lie in 0..LEVEL: below every threshold of a selection of open keys used here


@dataclass
class Blind:
    """Noise whose answers depend on how often it was asked, and on nothing else."""

    draws: list[Draw] = field(default_factory=list)

    def laplace(self, values: np.ndarray, scale: float) -> np.ndarray:
        return self._answer("laplace", values, scale)

    def gaussian(self, values: np.ndarray, sigma: float) -> np.ndarray:
        return self._answer("gaussian", values, sigma)

    def cube(self, values: np.ndarray, scale: float) -> np.ndarray:
        return self._answer("cube", values, scale)

    def noisy_max(self, scores: np.ndarray, scale: float) -> int:
        self._answer("selection", scores, scale)
        return 7 * len(self.draws) % int(np.size(scores))

    def gumbel_max(self, scores: np.ndarray, scale: float) -> int:
        self._answer("gumbel", scores, scale)
        return 7 * len(self.draws) % int(np.size(scores))

    def sample(self, size: int, share: int) -> np.ndarray:
        """The bits of how often it was asked, whatever the share."""
        self.draws.append(Draw("sample", np.zeros(size), share))
        return (
            np.arange(size) % 16 == len(self.draws) % 16
            if size > 16
            else len(self.draws) * 2654435761 >> 12 >> np.arange(size) & 1 == 1
        )

    def _answer(self, kind: str, values: np.ndarray, scale: float) -> np.ndarray:
        assert scale > 0
        self.draws.append(Draw(kind, np.array(values), scale))
        made = np.arange(np.size(values), dtype=np.int64) + len(self.draws)
        return (made % (LEVEL + 1)).reshape(np.shape(values))

    @property
    def scales(self) -> list[tuple[str, float]]:
        return [(draw.kind, draw.scale) for draw in self.draws]


@dataclass
class Seen:
    """All that can be seen of a run, as one text, and what noise was given."""

    text: str
    result: Result
    draws: list[Draw]

    @property
    def kinds(self) -> list[str]:
        return [d.kind for d in self.result.diagnostics]

    def spent(self, name: str = "t", unit: str = "epsilon") -> float:
        return float(self.result.budget[name][unit]["spent"])


class Arena:
    """A folder with files, in which programs run under blind noise."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.folder, self._patch = folder, patch
        self.noise = Blind()
        patch.setattr(exposures, "SecureNoise", lambda: self.noise)
        patch.setattr(choices, "SecureNoise", lambda: self.noise)
        patch.setattr(least_cost, "walk", self._walk)

    def _walk(self, counts: np.ndarray, epsilon: float, draw: Any, **tuning: Any) -> np.ndarray:
        """In place of the walk of `least_cost_partition`, whose many small draws are not one release."""
        self.noise.draws.append(Draw("walk", np.array(counts), epsilon))
        return np.arange(counts.size, dtype=np.int64) // 4

    def write(self, files: Mapping[str, bytes]) -> None:
        for name, content in files.items():
            (self.folder / name).write_bytes(content)

    def see(self, program: str, *, bound: Mapping[str, Any] | None = None, session: Session | None = None) -> Seen:
        """Runs a program as an embedding Python program would, and notes everything that comes out."""
        self.noise.draws = []
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err), warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            session = session or Session(cwd=self.folder)
            for name, value in (bound or {}).items():
                session.bind(name, value)
            result = session.attempt(Source("p.jst", program))
        heard = [str(w.message) for w in warned if "jostle" in w.filename or "numpy" in w.filename]
        shown = {
            "ok": result.ok, "released": plain(result.released_json()), "printed": result.output, "said": heard,
            "diagnostics": [d.as_json() for d in result.diagnostics], "budget": result.budget,
            "events": [plain(e.as_json()) for e in result.events], "out": out.getvalue(), "err": err.getvalue(),
            "scales": self.noise.scales,
        }  # fmt: skip
        return Seen(json.dumps(shown, indent=1, ensure_ascii=False), result, self.noise.draws)


def lost(a: Seen, b: Seen) -> float:
    """What two runs on neighbouring inputs lost in all, from what noise was really given."""
    assert len(a.draws) == len(b.draws)
    return sum(one.loss(other) for one, other in zip(a.draws, b.draws, strict=True))


def table(*columns: str, rows: list[str] | list[bytes]) -> bytes:
    """The bytes of a CSV file."""
    lines = [",".join(columns).encode(), *(r if isinstance(r, bytes) else r.encode() for r in rows)]
    return b"\n".join(lines) + b"\n"
