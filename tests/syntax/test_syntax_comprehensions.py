"""Several `for` in one comprehension: as Python reads them, the first one outermost."""

from jostle.source import Source
from jostle.tools.session import Session

PROGRAM = """
assert [a * 10 + b for a in 1..2 for b in 1..3 if b != 2] == [11, 13, 21, 23]
assert [a + b + c for a in 0..1 if a > 0 for b in 0..1 for c in 0..1] == [1, 2, 2, 3]
assert len({a * b for a in 1..3 for b in 1..3}) == 6
assert sum(a * b for a in 1..2 for b in 1..2) == 9
"""


def test_several_for_in_one_comprehension() -> None:
    assert Session().attempt(Source("several.jst", PROGRAM)).diagnostics == ()


def test_an_inner_source_may_use_an_outer_name_and_not_the_other_way_round() -> None:
    good = Session().attempt(Source("inner.jst", "assert [b for a in 1..3 for b in 1..a] == [1, 1, 2, 1, 2, 3]\n"))
    assert good.ok
    bad = Session().attempt(Source("outer.jst", "x = [b for b in 1..a for a in 1..3]\n"))
    assert [d.kind for d in bad.diagnostics] == ["NameError"]
