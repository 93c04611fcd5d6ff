"""What persons that are counted in parts cost."""

from __future__ import annotations

from pathlib import Path

from jostle.source import Source
from jostle.tools.session import Session


def test_persons_of_parts_are_priced_as_they_are_charged(tmp_path: Path) -> None:
    """Who is in two parts is counted in both: what is spent on parts adds up, where each row is in one."""
    (tmp_path / "t.csv").write_text("id,page\n" + "".join(f"{i},{page}\n" for i in range(9) for page in "ab"))
    program = """private t = table("t.csv") described by {page: {"a", "b"}} protecting id up to 2 rows budget epsilon 9
n = [{{ select count(distinct %s) from part with epsilon 1 }} for page, part in partition(t, page)]
"""
    for counted in ("person", "id"):
        session, source = Session(cwd=tmp_path), Source("p.jst", program % counted)
        (cost,) = session.costs(source)
        assert cost.bound >= 2 * 10**12 and session.attempt(source).budget["t"]["epsilon"]["spent"] == "2"
