"""Released values in the terminal: exact small outputs, and that large ones are summarised."""

from __future__ import annotations

import math

from jostle.tools.show import ROWS, released, show


def test_simple_values() -> None:
    assert released("n", 1234567.0) == "n = 1234567"
    assert released("x", 3.14159265) == "x = 3.14159"
    assert released("s", "a\x1bb") == 's = "a␛b"'
    assert [show(v)[0] for v in (True, None, math.inf, [], {})] == ["true", "none", "inf", "[]", "{}"]
    assert released("r", {"a": 1, "b": [1, 2.5], "c": "x"}) == 'r = {a: 1, b: [1, 2.5], c: "x"}'


def test_a_grouped_result_is_a_table() -> None:
    rows = [{"sex": "Female", "n": 123.0, "hours": 40.12345}, {"sex": "Male", "n": 1223.0, "hours": None}]
    assert released("by_sex", rows) == (
        "by_sex\n  sex        n    hours\n  Female   123  40.1234\n  Male    1223     none"
    )


def test_long_tables_are_cut_and_say_so() -> None:
    lines = show([{"k": k, "n": 1} for k in range(ROWS + 5)])
    assert len(lines) == ROWS + 2 and lines[-1] == "… 5 more rows"
    wide = show([{f"column{k}": k for k in range(40)}], 60)
    assert all(len(line) <= 60 for line in wide) and wide[0].endswith("…")


def test_long_records_are_cut_and_a_model_speaks_for_itself() -> None:
    tree = {f"branch {k}": {"counts": [1, 2], "below": [[1, 2], [3]]} for k in range(90)}
    lines = released("c", tree).splitlines()
    assert lines[-1].strip().endswith("more lines; `--save c=c.json` writes all") and len(lines) == 62
    assert released("c", tree, face="a tree\nof two leaves") == "c\n  a tree\n  of two leaves"


def test_vectors() -> None:
    assert show([1, 2, 3.25]) == ["[1, 2, 3.25]"]
    lines = show([float(k) for k in range(1000)])
    assert lines[0] == "1000 values, 0 to 999" and lines[2] == "[0, 1, 2, 3, 4, 5, …]"
    assert lines[1] == "".join(sorted(lines[1])) and lines[1][0] == "▁" and lines[1][-1] == "█" and len(lines[1]) == 64
    assert show([5.0] * 1000)[1] == "▁" * 64


def test_matrices() -> None:
    assert show([[1, 2], [3, 4.5]]) == ["1    2", "3  4.5"]
    lines = show([[float(i) for _ in range(64)] for i in range(64)])
    assert lines[0].startswith("64 × 64 values") and lines[-1] == "█" * 48 and len(lines) == 17


def test_nested_values_are_shown_in_blocks() -> None:
    lines = show({"a": [1] * 200, "b": 2})
    assert lines[0] == "a:" and lines[-1] == "b: 2" and lines[1].startswith("  200 values")
    assert show([[1, "x"], {"k": 1}]) == ['[[1, "x"], {k: 1}]']
