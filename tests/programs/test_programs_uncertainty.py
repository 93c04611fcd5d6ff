"""`programs/uncertainty.jst`: bands that are drawn, and hold."""

from __future__ import annotations

from pathlib import Path

from jostle.tools.session import Session
from jostle.tools.show import release_text

PROGRAM = Path(__file__).resolve().parents[2] / "programs" / "uncertainty.jst"


def test_uncertainty(tmp_path: Path) -> None:
    result = Session(cwd=tmp_path).run(PROGRAM)
    assert set(result.released) == {"women", "by_year", "asked"}
    assert result.budget["people"]["epsilon"] == {"total": "0.8", "spent": "0.8"}
    assert abs(result["women"] - 2006) < 400  # noise of scale 5: outside once in 10³⁰ runs
    drawn = {event.name: event.fields for event in result.trace if event.kind == "picture"}
    assert len(drawn) == 3
    ages, widths = drawn["people by age"], drawn["95 % half-width of the number of people up to an age"]
    gaps = [h - l for l, h in zip(ages["low"]["hdmm"], ages["high"]["hdmm"], strict=True)]
    assert max(gaps) - min(gaps) < 1e-6 and 29 < gaps[0] < 31  # 2·ln(20)/ε on every cell
    summed, fitted = widths["series"].values()
    assert summed[-1] > fitted[-1] > 0 and summed == sorted(summed)
    assert "bootstrap" in result.output[-1]


def test_elements_of_matrices_and_of_several_cubes_have_errors() -> None:
    """An element of noisy cells in two dimensions was "a number that was not measured"; so was a list of vectors."""
    result = Session().run_text("""
private seen = counts([[40, 0, 9], [3, 20, 60]]) protecting rows budget epsilon 4
v = laplace(seen) with epsilon 1
assert error(v[0][1]) == 3 and error(v[0][1] - v[0][1]) == 0 and error(v[-1][0] + v[1][0]) == 6
release totals = [sum(row) for row in v]
w = laplace([seen, seen]) with epsilon 1
assert error(w) == [error(w[0]), error(w[1])] and error(w)[1][0] == [6, 6, 6]
assert band(w).high[0][1][2] == w[0][1][2] + 6
n = {{ select count(values) as n, sum(values) as s from seen groupby x with epsilon 1 }}
print({first: v[0][0], by: n})
release cells = v
""")  # fmt: skip
    assert [margin["error"] for margin in result.margins()["totals"]] == [5, 5]
    margins, event = result.margins()["cells"], next(e for e in result.trace if e.name == "cells")
    assert [[cell["error"] for cell in row] for row in margins] == [[3, 3, 3], [3, 3, 3]]
    assert release_text(event).endswith("± 3 each")
    first, head, *lines = result.output[0].splitlines()
    assert first.startswith("first: ") and head == "by:" and lines[0].split()[0] == "x" and "± ?" not in lines[-1]
