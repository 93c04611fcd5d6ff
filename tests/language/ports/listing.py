"""What the ported programs say of themselves: their system and title, and a line for each analysis with its price.

`python tests/language/ports/listing.py` writes the table of README.md anew.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
TITLE = re.compile(r"# (?P<system>[^:]+): (?P<title>.+)\n")
ANALYSIS = re.compile(
    r"^# (?P<what>.+?)\. Theirs: (?P<theirs>.+?)\. Here: (?P<rows>\d+) rows?(?P<remark>[^.]*)\."
    r"(?: Detour: (?P<detour>.+)\.)?$"
)
RELEASE = re.compile(r"^release (?P<name>\w+)")


@dataclass(frozen=True)
class Analysis:
    program: str
    system: str
    name: str
    what: str
    theirs: str
    rows: int
    remark: str
    detour: str | None
    line: int


def analyses(path: Path) -> list[Analysis]:
    """The analyses of a program: each `release` with the comment before it that says what it is and costs."""
    text = path.read_text("utf-8")
    title = TITLE.match(text)
    assert title is not None, f"{path.name} does not begin with its system and title"
    out, waiting = [], None
    for number, line in enumerate(text.splitlines(), 1):
        if (said := ANALYSIS.match(line)) is not None:
            assert waiting is None, f"{path.name}:{number}: no answer was released for the analysis before"
            waiting = said
        elif "Theirs:" in line:
            raise AssertionError(f"{path.name}:{number}: is not of the form `# What. Theirs: rule. Here: N rows.`")
        elif (release := RELEASE.match(line)) is not None:
            assert waiting is not None, f"{path.name}:{number}: nothing says what this is and costs"
            out.append(
                Analysis(
                    path.stem,
                    title["system"],
                    release["name"],
                    waiting["what"],
                    waiting["theirs"],
                    int(waiting["rows"]),
                    waiting["remark"],
                    waiting["detour"],
                    number,
                )
            )
            waiting = None
    assert waiting is None, f"{path.name}: the last analysis releases nothing"
    return out


def programs() -> list[Path]:
    return sorted(HERE.glob("*.jst"))


def table() -> str:
    """README.md: how many analyses there are, and each with its price beside the peer's rule."""
    everything = [one for path in programs() for one in analyses(path)]
    direct = sum(one.detour is None for one in everything)
    lines = [
        "# Well-known analyses of other systems, in Jostle",
        "",
        f"{len(everything)} analyses in {len(programs())} programs; {direct} are said directly,"
        f" {len(everything) - direct} with a detour, which is named.",
        "The programs are written anew after the public tutorials of each system, and run on synthetic data",
        "(`generated.py`). `test_ports.py` checks every program, runs it, and compares each answer with the exact one",
        "in pandas (`exact_*.py`), within the noise that is claimed. The table is made of comments in the programs",
        "(`python listing.py`); the test fails where it is not, and where a price here is not what was charged.",
        "",
        "*Rows* are those of one person that an answer can depend on: noise is scaled to the rows, times what one of",
        "them can add, divided by ε. Theirs is the rule by which the other system scales its noise.",
        "",
        "What these systems have and no program here can say: a threshold test of many queries at the price of one",
        "(sparse vector), elastic and smooth sensitivity of joins, sample and aggregate, answers refined later.",
        "",
    ]
    for system in dict.fromkeys(one.system for one in everything):
        lines += [f"## {system}", "", "| program | analysis | direct | theirs | here |", "|---|---|---|---|---|"]
        lines += [
            f"| `{one.program}` | {_cell(one.what)} | {'yes' if one.detour is None else _cell(one.detour)} "
            f"| {_cell(one.theirs)} | {one.rows} row{'s' * (one.rows != 1)}{_cell(one.remark)} |"
            for one in everything
            if one.system == system
        ]
        lines.append("")
    return "\n".join(lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    (HERE / "README.md").write_text(table(), "utf-8")
