"""The figures of the house, none above its bar: what a reviewer has to read, and how hard it is.

Whoever raises a bar says in `docs/decisions` what that bought; whoever lowers a figure lowers its bar.
"""

from __future__ import annotations

import pytest
from package_code import shown
from rings import CORE, HERE, circles, closure, figures, listed, loads, reading_order

BARS = {
    "lines": 98_099,
    "files": 364,
    "lines that the kernel imports": 2634,
    "lines that privacy and engine import": 18_473,
    "lines that everyday queries import": 8651,
    "circles of files, imports for types counted": 0,
    "lines with Any": 599,
    "lines with a name for Any": 121,
    "participle names": 47,
    "functions of one name in run and check": 9,
    "complexity of a function": 20,
}


@pytest.fixture(scope="module")
def now() -> dict[str, int]:
    return figures()


@pytest.mark.parametrize("name", BARS)
def test_no_figure_is_above_its_bar(name: str, now: dict[str, int]) -> None:
    assert now.keys() == BARS.keys() and now[name] <= BARS[name]


def test_the_core_knows_no_rows() -> None:
    """The kernel imports no engine, no plan, no row program, no ledger and no handle of tables, not even for types."""
    core = closure(CORE, loads(typing=True))
    rooms = {".".join(module.split(".")[1:3]) for module in core if module.count(".") > 1}
    assert rooms <= {"privacy.kernel", "privacy.mechanisms", *(r for r in rooms if r.startswith("accounting."))}
    assert "jostle.privacy.kernel.handles" not in core


def test_the_reviewers_list_has_all_that_is_trusted() -> None:
    """Every trusted file is on the page, and no other; its lines are about what the page says.

    `python tests/walls/rings.py --write` writes the list anew.
    """
    real = {shown(HERE.path(m)): HERE.lines([m]) for _, modules in reading_order() for m in modules}
    page = listed()
    assert page.keys() == real.keys()
    assert {f: (page[f], n) for f, n in real.items() if abs(page[f] - n) > max(40, n // 4)} == {}
    assert abs(sum(page.values()) - sum(real.values())) <= 400


def test_a_closure_and_a_circle_are_seen() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": set[str]()}
    assert closure(["a"], graph) == {"a", "b", "c"}
    assert circles(graph) == [{"b", "c"}]
