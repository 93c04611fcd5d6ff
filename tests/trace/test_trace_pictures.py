"""Pictures: what is drawn is what was plotted, the same bytes each time, in the colour of its page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jostle.diagnostics import Refusal
from jostle.events import Event
from jostle.source import Source
from jostle.tools.session import Session
from jostle.trace.pictures import Picture, file_names
from jostle.trace.released import pictures_of

PROGRAM = """
plot("Squares & cubes", x = 0..3, y = {square: [0, 1, 4, 9], cube: [0, 1, 8, 27]}, low = {square: [0, 0, 3, 8]})
plot("bars", x = ["left", "right"], y = {n: [1, 2]}, low = {n: [0.5, 1]}, high = {n: [2, 3]}, kind = "bars")
plot("scatter", x = {a: [1, 2], b: [3]}, y = {a: [1, 2], b: [none]}, kind = "points", log_x = true)
plot("steps", y = [3, 1, 2], kind = "steps")
plot("bars", x = ["p", "q"], y = {r: [1, 2], s: [3, 4]}, kind = "heat")
"""


def drawn() -> list[Picture]:
    result = Session().attempt(Source("pictures", PROGRAM))
    assert result.ok, result.diagnostics
    return result.pictures


def test_every_kind_is_drawn_with_its_names() -> None:
    first, bars, scatter, steps, heat = [p.svg() for p in drawn()]
    assert all(svg.startswith("<svg") and svg.endswith("</svg>") for svg in (first, bars, scatter, steps, heat))
    assert "Squares &amp; cubes" in first and ">square<" in first and ">cube<" in first
    assert ">left<" in bars and ">right<" in bars
    assert ">q<" in heat and ">r<" in heat and ">s<" in heat


def test_long_names_below_points_stand_aslant() -> None:
    program = 'plot("ages", x = ["years " + str(8 * i) for i in 2..9], y = [i for i in 2..9], kind = "points")\n'
    (picture,) = Session().attempt(Source("pictures", program)).pictures
    svg = picture.svg()
    assert all(f">years {8 * i}<" in svg for i in range(2, 10)) and svg.count("rotate(-30)") == 8


def test_ink_is_the_pages_own_and_bytes_are_the_same_each_time(tmp_path: Path) -> None:
    svg = drawn()[0].svg()
    assert "currentColor" in svg and "#010203" not in svg and svg == drawn()[0].svg()
    for path in (tmp_path / "a.svg", tmp_path / "b.svg"):
        drawn()[0].save(path)
    drawn()[0].save(str(tmp_path / "b.svg"))  # a text names a file as well
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_files_are_named_by_titles_and_never_overwrite_each_other() -> None:
    assert file_names(drawn()) == ["squares_cubes.svg", "bars.svg", "scatter.svg", "steps.svg", "bars_2.svg"]


def test_an_unknown_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="svg, png, pdf"):
        drawn()[0].save(tmp_path / "picture.bmp")


@pytest.mark.parametrize(("call", "title", "along"), [
    ("plot(h)", "n by city", ["Ames", "Boone"]), ('plot("people", h)', "people", ["Ames", "Boone"]),
    ('plot("people", y = h)', "people", ["Ames", "Boone"]), ("plot([3, 4], [1, 2])", "values", [3.0, 4.0]),
    ("plot([1, 2])", "values", [0.0, 1.0]), ('plot("two", [1, 2])', "two", [0.0, 1.0]),
])  # fmt: skip
def test_a_title_and_the_places_may_be_left_out(call: str, title: str, along: list[object]) -> None:
    text = 't = table([{city: "Ames", n: 2}, {city: "Boone", n: 3}])\n'
    text += "h = {{ select sum(n) as n from t groupby city }}\n"
    (picture,) = [e for e in Session().run_text(text + call + "\n").events if e.kind == "picture"]
    assert picture.name == title and picture.fields["x"] == along
    assert picture.fields["shape"] == ("bars" if "h" in call.split("(")[1] else "line")


def test_dollars_are_no_formula_and_long_texts_are_cut() -> None:
    fields: dict[str, Any] = {
        "shape": "bars",
        "x": ["in $ of 2020", "and $ now"],
        "series": {"$n^2$": [1.0, 2.0], "m": [1.0, 2.0]},
    }
    image = Picture("$" + r"\frac{a}{" * 2000 + "$", fields).svg()  # it ran out of room for calls
    assert "in $ of 2020" in image and "$n^2$" in image and "…" in image and len(image) < 30_000


def test_bars_that_are_too_many_to_be_seen_are_drawn_as_one() -> None:
    """20,000 of them took 15 s."""
    values = [float(k % 7) for k in range(20_000)]
    band = {"n": [v - 1 for v in values]}
    fields: dict[str, Any] = {
        "shape": "bars",
        "x": [float(k) for k in range(20_000)],
        "series": {"n": values},
        "low": band,
    }
    assert Picture("many", fields).svg().count("<path") < 100


def test_dates_are_an_axis_of_their_own_and_names_below_bars() -> None:
    program = """
days = [2024-01-01 + 31 * i for i in 0..11]
plot("line", x = days, y = [i for i in 0..11])
plot("bars", x = 2024-03-01..2024-03-04, y = [1, 2, 3, 4], kind = "bars")
plot("truths", x = [false, true], y = [1, 2], kind = "points")
"""
    line, bars, truths = Session().run_text(program).pictures
    assert ">Mar<" in line.svg() and ">2024-02-01<" not in line.svg()
    assert ">2024-03-04<" in bars.svg() and ">true<" in truths.svg()


def test_long_names_leave_room_for_what_is_drawn_and_many_do_not_overlap() -> None:
    names = [f"Department of Agriculture and {what} Affairs" for what in ("Rural", "Urban", "Public", "Other")]
    long = Picture("long", {"shape": "bars", "x": names, "series": {"n": [1.0, 2.0, 3.0, 4.0]}}).svg()
    assert ">Department of<" in long and long.count("rotate(-90)") == 3 * len(names)
    codes = [f"C{i:03d}" for i in range(60)]
    many = Picture("many", {"shape": "bars", "x": codes, "series": {"n": [1.0] * 60}}).svg()
    assert 8 <= sum(f">{code}<" in many for code in codes) <= 12


def test_numbers_of_a_logarithmic_axis_are_no_formulas() -> None:
    fields: dict[str, Any] = {"shape": "line", "x": [1.0, 10.0], "series": {"n": [220.0, 290.0]}, "log_y": True}
    image = Picture("log", fields).svg()
    assert "mathdefault" not in image and ">220<" in image


def test_released_groups_stand_at_their_keys() -> None:
    """They stood at 0, 1, 2, … "cells"."""
    rows = [{"age": 20 + i, "n": i} for i in range(60)]
    event = Event(1, None, "release", "g", None, {"value": rows, "keys": ["age"]})
    (picture,) = pictures_of(event)
    assert picture.fields["x"][0] == 20.0 and picture.fields["x_label"] == "age"


def test_a_matrix_of_noisy_cells_is_drawn_with_its_ends() -> None:
    """`low` had no name that it knew: the run was refused after it had paid."""
    session = Session()
    session.bind("t", {"a": [0, 1, 2] * 30, "b": [0, 1] * 45})
    declared = 'private t = bound("t") described by {a: 0..2, b: 0..1} protecting rows budget epsilon 1\n'
    asked = "plot(laplace(histogram(t, a = a, b = b)) with epsilon 1)\n"
    result = session.attempt(Source("p.jst", declared + asked))
    assert result.ok, result.diagnostics
    (picture,) = result.pictures
    assert [*picture.fields["low"]] == ["0", "1", "2"] and len(picture.fields["high"]["2"]) == 2
