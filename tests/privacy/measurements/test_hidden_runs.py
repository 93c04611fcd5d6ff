"""What a run of `best_run` does and is not shown: nothing that comes later may tell that it was done."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from jostle.source import Source
from jostle.tools.session import Session
from tests.privacy.measurements.test_best_run import CHOICES, OPENING, run


@pytest.mark.parametrize("there", [True, False])
def test_a_module_that_a_run_finds_is_looked_for_anew(there: bool, tmp_path: Path) -> None:
    """What its file held in a hidden run was kept, that there was none too: so a later program saw who had asked."""
    (tmp_path / "asks.jst").write_text("def asked(n):\n    if n:\n        use seen\n        return 1\n    return 0\n")
    outputs = []
    for least in (-999, 999):
        (tmp_path / "seen.jst").write_text("many = 1\n") if there else (tmp_path / "seen.jst").unlink(missing_ok=True)
        program = f"""use asks
def g(d, c):
    n = {{{{ select count(*) from d }}}}
    return {{score: n, asked: asked(n > {least})}}
b = best_run(t, g, [0], 2) with epsilon 6
"""
        one = Session(cwd=tmp_path)
        one.bind("t", {"v": np.arange(8), "k": np.array(["a", "b"] * 4)})
        opening = OPENING.replace("BUDGET", "epsilon 9").split("private u")[0]
        assert one.attempt(Source("p.jst", opening + program)).ok
        (tmp_path / "seen.jst").write_text("many = 2\n")
        outputs.append(one.attempt(Source("q.jst", "use seen\nprint(many)\n")).output)
    assert outputs == [["2"], ["2"]]


def test_an_advisor_of_a_run_leaves_the_choice_as_it_was() -> None:
    """It set by which rule the choice decides, which an answer on public data told later, for every hidden run."""
    seen = []
    for least in (-999, 999):
        program = f"""{CHOICES.split("again =")[0]}
h = histogram(t, v = v)
def asked(cube) = {{database: cube, queries: identity(cube)}}
def g(d, c):
    n = sum(laplace(d) with 1/4)
    if n > {least}:
        steady = advisor(one, lambda choice, cube: choice(asked(cube)), over = "Even", margin = 9999)
    return {{score: n}}
b = best_run(h, g, [0], 5) with epsilon 3
print(one(asked(counts([800, 0, 0, 0, 0, 0, 0, 0]))))
"""
        result = run(program)
        assert result.ok, result.diagnostics
        seen.append(result.output)
    assert seen[0] == seen[1] == ["[800, 0, 0, 0, 0, 0, 0, 0]"]
