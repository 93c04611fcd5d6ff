"""Private counts that a program makes itself can be simulated: of them the shape is taken and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from jostle.source import Source
from jostle.tools.session import Session

HILL = 'def hill(x): return round(1000 * exp(-((x - 20) / 5)^2))\ngrid = [hill(x) for x in 0..40]\npath = "x.npy"\n'


def simulated(expression: str, seed: int = 3) -> Session:
    session = Session(simulate=seed)
    session.execute(Source("p", f"{HILL}private a = counts({expression}) protecting rows budget epsilon 1e9\n"))
    return session


@pytest.mark.parametrize(
    ("expression", "shape"),
    [("grid", (41,)), ("[hill(x) + 1 for x in 0..9]", (10,)), ("[[i * j for i in 0..3] for j in 0..4]", (5, 4))],
)
def test_what_a_program_makes_gives_its_shape_alone(expression: str, shape: tuple[int, ...]) -> None:
    session = simulated(expression)
    session.execute(Source("m", "x = laplace(a, epsilon = 1e6)\n"))
    cells = np.asarray(session.names()["x"])
    assert cells.shape == shape and round(cells.sum()) == 1000  # rows are made up, not those of the hill


@pytest.mark.parametrize("expression", ["path", '"x.npy"', 'vectors_in(".")[0]', 'counts("x.npy")'])
def test_a_file_is_not_opened_for_its_shape(expression: str) -> None:
    session = Session(simulate=3)
    text = f"{HILL}private a = counts({expression}) protecting rows budget epsilon 1\n"
    (found,) = session.attempt(Source("p", text)).diagnostics
    assert found.kind == "DataError" and "is not opened in a simulation" in found.message
