"""The gallery: a card and a page for each of `programs/`, with its output and its pictures.

`python -m docs.gallery FOLDER` runs the programs, a few minutes, and writes what they print and draw into a folder
(`FOLDER NAME …` only those named, beside what is there); `python -m docs.build --gallery FOLDER` takes it from there.
"""

from __future__ import annotations

import html
import json
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from docs.prose import comment, markdown, plain

ROOT = Path(__file__).resolve().parents[1]
RUNS = "runs.json"
LONGEST = 120  # lines of output that a page shows
# Smaller settings than a program's own, for pictures in a minute.
SETTINGS: dict[str, dict[str, str]] = {
    "classify": {"training_tables": "24", "most_rows": "5000"},
    "dpcomp": {"cells_in_all": "64", "many": "100"},
    "figure_1_cgm": {"largest": "10000", "variables": "6", "values": "5"},
    "figure_2_cgm": {"largest": "10000", "variables": "6", "values": "5"},
    "figure_2_dpem": {"epsilons": "two"},
    "figure_3_cgm": {"rows": "5000", "variables": "5", "values": "5"},
    "figure_4_4": {"repeats": "1", "steps": "2"},
    "figure_4_5": {"tables": "12", "rows": "2000"},
    "pythia": {"cells_in_all": "64"},
}
GROUPS: dict[str, tuple[str, ...]] = {
    "To begin with": ("first", "choose", "everyday", "survey", "orders", "synthetic_data", "uncertainty",
                      "economics", "dashboard"),
    "Public data sets": ("flights", "visits", "marriages", "tumours", "pensions", "happiness"),
    "Choices": (
        "choose_1d", "figure_1_2", "classify", "figure_4_5", "choose_model", "choose_mixture", "choose_ising", "pythia",
        "dpcomp", "valuations",
    ),
    "Models": ("regression", "effect", "skewed_column", "ising"),
}  # fmt: skip
REST = "Figures of papers"


@dataclass(frozen=True)
class Run:
    """What a program printed, how it chose, and the files of its pictures in order."""

    output: Sequence[str] = ()
    choices: str = ""
    pictures: Sequence[str] = ()
    settings: dict[str, str] = field(default_factory=dict)


def programs() -> list[Path]:
    """All programs, in the order of the gallery."""
    paths = {path.stem: path for path in sorted((ROOT / "programs").glob("*.jst"))}
    first = [name for names in GROUPS.values() for name in names]
    return [paths[name] for name in (*first, *(name for name in paths if name not in first))]


def group_of(name: str) -> str:
    """The heading that a program stands under."""
    return next((group for group, names in GROUPS.items() if name in names), REST)


def draw(folder: Path, only: Collection[str] = ()) -> None:
    """Runs the programs whose data are there, or those named; writes pictures and, into one file, what was printed."""
    from jostle.tools.session import Session
    from jostle.tools.show import choices_text
    from jostle.trace.pictures import file_names

    folder.mkdir(parents=True, exist_ok=True)
    kept = folder / RUNS
    runs = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    for path in programs():
        if only and path.stem not in only:
            continue
        if "data/packages/" in path.read_text(encoding="utf-8") and not (ROOT / "programs/data/packages").exists():
            continue  # see programs/data/README.md
        print(f"  {path.name}", file=sys.stderr, flush=True)
        settings = SETTINGS.get(path.stem, {})
        result = Session(cwd=ROOT).run(path, **settings)
        names = [f"{path.stem}_{name}" for name in file_names(result.pictures)]
        for picture, name in zip(result.pictures, names, strict=True):
            (folder / name).write_text(picture.svg(), encoding="utf-8")
        lines = [line for text in result.output for line in text.splitlines()]
        runs[path.stem] = {
            "output": lines,
            "choices": choices_text(result.events),
            "pictures": names,
            "settings": settings,
        }
        kept.write_text(json.dumps(runs, indent=1), encoding="utf-8")


def load(folder: Path | None) -> dict[str, Run]:
    """What `draw` wrote; nothing without a folder."""
    if folder is None:
        return {}
    runs = json.loads((folder / RUNS).read_text(encoding="utf-8"))
    return {name: Run(**run) for name, run in runs.items()}


def index_page(runs: dict[str, Run]) -> str:
    """The cards."""
    out = [
        "# Programs", "",
        "Each runs as it stands: `jostle run programs/NAME.jst --pictures FOLDER`. What they print and draw here was "
        "made when these pages were, for some of them with smaller settings.", "",
    ]  # fmt: skip
    paths = programs()
    for group in (*GROUPS, REST):
        out += [f"## {group}", "", '<div class="cards" markdown="0">']
        out += [_card(path, runs.get(path.stem, Run())) for path in paths if group_of(path.stem) == group]
        out += ["</div>", ""]
    return "\n".join(out)


def _card(path: Path, run: Run) -> str:
    words = html.escape(opening(path.read_text(encoding="utf-8")))
    if run.pictures:
        thumb = f'<img src="../pictures/{run.pictures[0]}" alt="" loading="lazy">'
    else:
        lines = [*run.output, *run.choices.splitlines()]
        thumb = f"<pre>{html.escape(chr(10).join(lines[:9]) or 'jostle run ' + path.name)}</pre>"
    return (
        f'<a class="card" href="{path.stem}.html"><span class="thumb">{thumb}</span>'
        f"<strong>{path.stem}</strong><span>{words}</span></a>"
    )


def opening(text: str) -> str:
    """The first paragraph of a program's comment, on one line and without marks."""
    lines = []
    for line in comment(text):
        if not line or line.startswith("    "):
            break
        lines.append(line)
    return " ".join(lines).replace("*", "").replace("`", "")


def program_page(path: Path, runs: dict[str, Run]) -> str:
    """A program: what it is about, its pictures, what it prints, its text."""
    run = runs.get(path.stem, Run())
    text = path.read_text(encoding="utf-8")
    lines = comment(text)
    body = text.split("\n", len(lines))[-1].strip()
    out = [f"# {path.stem}", "", markdown(lines), ""]
    out += [f'<div class="picture" data-search-exclude markdown="0">{mark(name)}</div>\n' for name in run.pictures]
    if run.output:
        shown = [*run.output[:LONGEST], *(["…"] if len(run.output) > LONGEST else [])]
        with_settings = "".join(f" --set {name}={value}" for name, value in run.settings.items())
        out += ["## What it prints", "", "```sh", f"jostle run programs/{path.name}{with_settings}", "```", ""]
        out += ["```text", *shown, "```", ""]
    if run.choices:
        out += ["## How it chose", "", "```text", run.choices, "```", ""]
    return "\n".join([*out, "## The program", "", "```jostle", body, "```", ""])


def mark(picture: str) -> str:
    """What stands for a picture in a page until it is laid out: Markdown need not read a drawing."""
    return f"@picture {plain(picture)}@"


def main() -> int:
    """Runs the programs."""
    if len(sys.argv) < 2:
        print("python -m docs.gallery FOLDER [NAME …]", file=sys.stderr)
        return 2
    draw(Path(sys.argv[1]), sys.argv[2:])
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
