"""Looks at many columns by one count, and the errors of the shares that they say."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from jostle.formulas import cuts_of
from jostle.run.misfits import share_between
from jostle.source import Source
from jostle.tools.result import Result
from jostle.tools.session import Session


def ran(text: str) -> Result:
    result = Session(look=True).attempt(Source("p.jst", text))
    assert result.ok, result.diagnostics
    return result


def looks(result: Result) -> list[str]:
    return [event.name for event in result.events if event.kind == "query" and "look" in event.fields]


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("counts", [(0, 1461, 0), (1000, 400, 0), (2500, 100, 60), (30, 300, 5)])
def test_the_error_of_a_share_covers_the_noise_of_the_total(counts: tuple[int, ...]) -> None:
    """4,000 draws at 95 %: fewer than 93.5 % within have a probability below 1e-4 at 95, and the seed is fixed."""
    drawn, scale = np.random.default_rng(7), 25.0
    noise = drawn.geometric(1 - np.exp(-1 / scale), (2, 4000, len(counts)))
    noisy = np.array(counts) + noise[0] - noise[1]
    shares = [share_between(row[1], row.sum(), scale * np.log(20), len(counts)) for row in noisy]
    within = [abs(share - counts[1] / sum(counts)) <= error for share, error in shares]
    assert np.mean(within) >= 0.935


def wide(cells: Callable[[int, int], str], columns: int = 30, rows: int = 4000) -> str:
    """A file of so many columns c0, c1, … of 0 and 1 but where `cells` says something else; the head of a program."""
    lines = (",".join(cells(k, row) or str((k + row) % 2) for k in range(columns)) for row in range(rows))
    Path("t.csv").write_text(",".join(f"c{k}" for k in range(columns)) + "\n" + "\n".join(lines) + "\n")
    described = ", ".join(f"c{k}: {{0, 1}}" for k in range(columns))
    return f'private t = table("t.csv") described by {{{described}}} protecting rows budget epsilon 99\n'


SUMS = ", ".join(f"sum(c{k}) as s{k}" for k in range(30))
EACH = f"release a = {{{{ select {SUMS} from t with epsilon 9 }}}}\n"


def test_many_columns_are_looked_at_together_by_one_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """± 17 rows of 4,000 at ε 0.18, where 30 looks of their own would have ± 500."""
    monkeypatch.setattr("jostle.run.misfits.CERTAIN", 8)  # noise alone is three errors once in 8,000 times
    result = ran(wide(lambda k, row: "no" if k == 17 and row % 5 == 0 else "") + EACH)
    assert len(looks(result)) == 1 and result.budget["t"]["epsilon"]["spent"] == "9"
    (warning,) = [one for one in result.warnings if one.kind == "unfit-cells"]
    assert warning.message.startswith("`c17`: at least ") and 10 <= int(warning.message.split()[3]) <= 30
    assert cuts_of(result.values["a"]["s17"])


def test_a_look_at_forty_columns_of_six_texts_takes_no_minute() -> None:
    """Each column stands in the expression once; it stood there 729 times."""
    names, start = [f"c{i}" for i in range(40)], time.process_time()
    described = ", ".join(f'{name}: {{"a", "b", "c", "d", "e", "f"}}' for name in names)
    session = Session(look=True)
    session.bind("data", {name: [*"abcdefg"] * 300 for name in names})
    text = f'private t = bound("data") described by {{{described}}} protecting rows budget epsilon 9\n'
    result = session.attempt(
        Source("look.jst", f"{text}h = laplace([histogram(t, c) for c in columns(t)]) with epsilon 9")
    )
    assert result.ok and any("`c0`" in warning.message for warning in result.warnings)
    assert time.process_time() - start < 20


def test_of_columns_that_fit_nowhere_none_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two are seen at once. A third, between them, where rows count at others, is looked at by the next charge."""
    monkeypatch.setattr("jostle.run.misfits.CERTAIN", 8)
    head = wide(lambda k, row: "no" if k in (5, 17, 23) else "")
    result = ran(head + EACH)
    assert [w.message[:5] for w in result.warnings if w.kind == "unfit-cells"] == ["`c5`:"]
    assert all(cuts_of(result.values["a"][name]) for name in result["a"])
    result = ran(head + EACH + "release b = {{ select sum(c17) from t with epsilon 9 }}\n")
    assert looks(result)[1:] == ["look at c17"] and "`c17`" in result.warnings[-1].message


def test_of_rows_that_fit_in_two_columns_less_both_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fifth of the rows in one column and a quarter in another, which are said to be at least what is counted."""
    monkeypatch.setattr("jostle.run.misfits.CERTAIN", 8)
    result = ran(wide(lambda k, row: "no" if (k == 3 and row % 5 == 0) or (k == 9 and row % 4 == 0) else "") + EACH)
    said = {w.message[:4]: int(w.message.split()[3]) for w in result.warnings if "at least" in w.message}
    assert said.keys() == {"`c3`", "`c9`"} and 15 <= said["`c3`"] <= 25 and 15 <= said["`c9`"] <= 25


def test_what_an_earlier_look_has_shown_is_not_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second column is looked at alone, then once more behind the first, of which each row counts."""
    monkeypatch.setattr("jostle.run.misfits.CERTAIN", 8)
    head = wide(lambda k, row: "no", columns=2)
    alone = "a = {{ select sum(c1) from t with epsilon 1 }}\n"
    result = ran(head + alone + "release b = {{ select sum(c0) as x, sum(c1) as y from t with epsilon 9 }}\n")
    assert looks(result) == ["look at c1", "look at c0, c1"]
    assert len(cuts_of(result.values["b"]["y"])) == 2
