"""Programs that broke earlier versions through modules that have moved, against what stands in their place.

The third of them, what was seen deciding between ρ and δ, is in `tests/privacy/kernel/test_adaptive_budgets.py`.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jostle.accounting.amounts import QUANTA, Amount
from jostle.plan.plan import Apply, Column, Constant
from jostle.privacy.kernel import exposures
from jostle.privacy.measurements.choices import NoisyArgmax
from jostle.privacy.scores.cells import size
from jostle.privacy.transformations import transform
from jostle.privacy.transformations.joins import join
from jostle.source import Source
from jostle.tools.session import Session


def centres_that_tie(size: int, seed: int) -> list[list[float]]:
    """A centre of 1e305, and two that are equally far from a row of equal numbers."""
    rng = np.random.default_rng(seed)
    one = np.round(rng.normal(size=size) * 1e-3, 6)
    return [[-1e305] * size, one.tolist(), rng.permutation(one).tolist()]


@pytest.mark.parametrize("columns", [28, 128])
def test_a_centre_beyond_doubles_cannot_tell_how_many_rows_there_are(columns: int, tmp_path: Path) -> None:
    """It made a product of rows inexact, so that n equal rows changed their cell with n: refused before a charge."""
    names = [f"c{i}" for i in range(columns)]
    described = ", ".join(f"{name}: -1.0..1.0" for name in names)
    said = set()
    for rows in (5, 6, 9):
        row = ",".join(["0.99993896484375"] * columns)
        (tmp_path / "people.csv").write_text(",".join(names) + "\n" + (row + "\n") * rows)
        session = Session(cwd=tmp_path)
        result = session.attempt(Source("p.jst", f"""
private people = table("people.csv") described by {{{described}}} protecting rows budget epsilon 1
view = {{centres: {centres_that_tie(columns, 5)}}}
m = noisy_moments(vectors(people, norm = "sup"), "nearest", view, shares = [1], via = "laplace") with epsilon 1
""".replace("e+305", "e305")))  # fmt: skip
        assert not result.ok and result.budget["people"]["epsilon"]["spent"] == "0"
        said.add(result.diagnostics[0].message)
    assert len(said) == 1


def hashed(row: tuple[str, ...]) -> str:
    return hashlib.sha256("".join(f"{len(cell.encode())}:{cell}" for cell in row).encode()).hexdigest()


class Recorder:
    """What a selection chooses from, and the scale of its noise."""

    def noisy_max(self, values: Any, scale: float) -> int:
        self.seen = (np.asarray(values), scale)
        return 0


def test_scores_of_two_joins_that_move_in_opposite_directions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that comes raises the one by 12 and pushes a row out of the other: both are in the range of the noise."""
    old = [("k", "no", f"old{i}") for i in range(6)]
    news = (("k", "x", f"new{i}") for i in range(1000))
    new = next(row for row in news if hashed(row) < max(map(hashed, old)))
    recorder = Recorder()
    monkeypatch.setattr(exposures, "SecureNoise", lambda: recorder)
    (tmp_path / "p.csv").write_text("b,c\n" + "".join(f"x,{i}\n" for i in range(12)))
    (tmp_path / "q.csv").write_text("a,d\n" + "".join(f"k,{i}\n" for i in range(6)))
    seen = []
    for rows in (old, [*old, new]):
        (tmp_path / "people.csv").write_text("a,b,tag\n" + "".join(",".join(row) + "\n" for row in rows))
        session = Session(cwd=tmp_path)
        session.execute(Source("p.jst", """
private people = table("people.csv") described by {a: text, b: text, tag: text} protecting rows budget epsilon 10
p = table("p.csv")
q = table("q.csv")
"""))  # fmt: skip
        names, kernel, data = session.names(), session._interp.kernel, session._interp.data
        one = join(data, names["people"], names["p"], [("b", "b")], None)
        kept = Apply("in", (Column("tag"), *(Constant(row[2]) for row in old)))
        two = transform.where(join(data, names["people"], names["q"], [("a", "a")], 6), kept)
        kernel.measure(NoisyArgmax.of([size(one), size(two)], Amount("epsilon", QUANTA)))
        seen.append(recorder.seen)
    (before, scale), (after, other) = seen
    moved = after - before
    assert scale == other and moved.max() > 0
    assert moved.max() - moved.min() <= scale
