"""`programs/uncertainty.jst`: bands that are drawn, and hold."""

from __future__ import annotations

from pathlib import Path

from jostle.tools.session import Session

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
