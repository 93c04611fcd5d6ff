"""Two runs side by side: released numbers with their noise, choices with what parted them, and the page of both."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jostle.events import Event
from jostle.tools.entry import main
from jostle.trace.difference import Pair, compared, difference, verdict
from jostle.trace.html import difference_page
from jostle.trace.released import Figure, columns, pictures_of, plot

sys.path.insert(0, str(Path(__file__).parent))
import real_runs
from test_trace_html import Reader


def release(name: str, value: Any, margins: Any = None, **fields: Any) -> Event:
    told = {} if margins is None else {"margins": margins}
    return Event(1, None, "release", name, None, {"value": value, **told, **fields})


def around(value: float, error: float) -> dict[str, float]:
    return {"value": value, "error": error, "low": value - error, "high": value + error}


def cities(**counts: float) -> Event:
    rows = [{"city": city, "n": n} for city, n in counts.items()]
    return release("by_city", rows, [{"n": around(n, 30)} for n in counts.values()], keys=["city"])


def chose(option: str, went: str, rows: float, **fields: Any) -> Event:
    step = {"feature": "rows", "threshold": 700.0, "value": rows, "went": went}
    looked = [{"name": "rows", "value": rows, "epsilon": 0.1, "error": 40.0}]
    scores = {"predictions": {"Each": -4.0 if went == ">" else -9.0, "Even": -7.0}, "errors": True}
    return Event(2, None, "choice", "choose", None,
                 {"chosen": option, "path": [step], "features": looked, **scores, **fields})  # fmt: skip


def test_groups_are_compared_by_their_keys() -> None:
    told = difference([cities(Ames=1700, Cork=600, Delft=400)], [cities(Cork=610, Ames=1800, Eger=90)])
    assert told.splitlines() == [
        "released      this run      the other     difference",
        "  by_city: n",
        "    Ames      1700 ± 30     1800 ± 30     +100 ± 42   more than noise",
        "    Cork      600 ± 30      610 ± 30      +10 ± 42",
        "    Delft     400 ± 30      not released",
        "    Eger      not released  90 ± 30",
        "  1 of 2 numbers differs by more than noise explains; at 95 % one in 20 does by chance",
    ]


def test_the_noise_of_a_difference_is_made_of_the_ends_that_face_each_other() -> None:
    pair = Pair(Figure(10.0, 5.0, 7.0, 13.0), Figure(20.0, 5.0, 16.0, 90.0))
    assert (pair.difference, pair.noise, pair.beyond) == (10.0, 5.0, True)
    turned = Pair(pair.theirs, pair.mine)
    assert (turned.difference, turned.noise, turned.beyond) == (-10.0, 5.0, True)
    unknown = Pair(Figure(10.0), Figure(20.0, 5.0, 16.0, 90.0))
    assert unknown.noise is None and not unknown.beyond and verdict([]) == ""


def test_runs_that_differ_by_noise_alone_are_called_so_nineteen_times_in_twenty() -> None:
    draws = np.random.default_rng(5).laplace(scale=10, size=(2, 4000))
    pairs = [Pair(*(Figure(x, 29.96, x - 29.96, x + 29.96) for x in both)) for both in draws.T]
    assert 0.03 < np.mean([pair.beyond for pair in pairs]) < 0.06


def test_many_numbers_show_those_that_differ_most() -> None:
    one, other = (release("ages", [float(i * k) for i in range(50)], [around(0, 30)] * 50) for k in (1, 2))
    told = difference([one], [other])
    assert "49 of 50 differ" in told and "    49" in told and "    20 " not in told
    assert [p.fields["shape"] for p in pictures_of(one)] == ["steps"]


def test_a_sample_of_rows_is_compared_by_its_means() -> None:
    one, other = (release("rows", [{"age": k + i % 3, "sex": "F"} for i in range(60)]) for k in (20, 30))
    told = difference([one], [other])
    assert "rows: mean" in told and "21" in told and "+10" in told and len(told.splitlines()) == 3
    assert pictures_of(one) == []


def test_a_number_that_was_chosen_has_its_error_in_ranks() -> None:
    one, other = (release("m", value, {"value": value, "ranks": 36.2}) for value in (38, 41))
    assert "38 ± 37 ranks  41 ± 37 ranks  +3" in difference([one], [other])
    damaged = release("m", 38, {"value": 38, "ranks": "many"})
    assert "  38 " in difference([damaged], [other])


def test_values_of_other_forms_are_named_by_their_place() -> None:
    nested = columns(release("m", {"n": 3, "cells": [[1, 2], [3, 4]], "rows": [{"a": "x"}]}))
    assert {(c, r): f.value for c, labels in nested.items() for r, f in labels.items()} == {
        ("", "n"): 3, ("cells", "0, 0"): 1, ("cells", "0, 1"): 2, ("cells", "1, 0"): 3, ("cells", "1, 1"): 4,
        ("rows.a", "1"): "x",
    }  # fmt: skip
    assert compared([release("n", 3)], [release("n", 3)]) == []
    assert "  n       3         not released" in difference([release("n", 3)], [])
    assert plot("n", {"n": {"a": Figure(1.0), "b": Figure("x")}}) is None


def test_choices_that_went_apart_come_first_with_the_test_that_parted_them() -> None:
    alike = Event(1, None, "choice", "before", None, {"chosen": "One"})
    told = difference([alike, chose("Each", ">", 4071)], [alike, chose("Even", "<=", 133)])
    assert told.splitlines() == [
        "chosen        this run               the other",
        "  choose (1)  Each (rows 4071 ± 40)  Even (rows 133 ± 40)",
        "    rows is 4071 here and 133 there, and 700 lies between",
        "    predicted error: Each 4 here and 9 there; Even 7 here and 7 there",
    ]
    other_way = difference([chose("Each", ">", 4071, policy="features at 5 %")], [chose("Even", ">", 4071, path=[])])
    assert "chosen by features at 5 % here and by no policy there" in other_way


def test_real_runs_side_by_side() -> None:
    events = real_runs.events()
    assert difference(events, events) == "the two runs spent, chose and released the same\n"
    told = difference(real_runs.events("registered"), real_runs.events("again"))
    assert [line.split() for line in told.splitlines()] == [
        ["spent", "this", "run", "the", "other"],
        ["query", "count,", "line", "5", "ε", "0.5", "nothing"],
        ["allotment", "epsilon", "0.25,", "line", "6", "ε", "0.25", "nothing"],
    ]
    told = difference(events, real_runs.events(seed=2))
    assert "everyone" in told and "506" in told and "chosen" in told and "rows 517 ± 60" in told
    assert "more than noise explains" in told and "not released" not in told
    told = difference(events, real_runs.events("nodes"))
    assert "BudgetExceeded" in told and "ran to its end" in told and "no choice" in told and "program" in told


def test_the_page_of_two_runs() -> None:
    one, other = [cities(Ames=1700, Cork=600), chose("Each", ">", 4071)], [cities(Ames=1800), chose("Even", "<=", 133)]
    text = difference_page(one, other)
    seen = Reader(text)
    said = " ".join(seen.words)
    assert not seen.crossed and not seen.outside
    assert "Rows is 4071 here and 133 there, and 700 lies between." in said
    assert "1700 ± 30" in said and "+100 ± 42" in said and "not released" in said and text.count("<svg") == 0
    assert difference_page([cities(Ames=1700, Cork=600)], [cities(Ames=1800, Cork=600)]).count("<svg") == 1
    assert "the same" in difference_page(one, one)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from jostle.trace.jsonl import Writer

    for name, event in (("a", cities(Ames=1700)), ("b", cities(Ames=1800))):
        writer = Writer(tmp_path / name)
        writer(event)
        writer.close()
    paths = [str(tmp_path / name) for name in "ab"]
    assert main(["trace", paths[0], "--diff", paths[1]]) == 0
    assert "+100 ± 42" in capsys.readouterr().out
    assert main(["trace", paths[0], "--diff", paths[1], "--html", str(tmp_path / "page.html")]) == 0
    assert "+100 ± 42" in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert main(["trace", paths[0], "--diff", paths[1], "--budget"]) == 2
