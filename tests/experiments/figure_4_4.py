"""Figure 4.4 on the thesis's three sets: cuts them into files and runs `programs/figure_4_4.jst` on each.

    python -m tests.experiments.figure_4_4 FOLDER [--repeats 10]

Writes the files and the pictures into FOLDER. The rows are split 70/30 once; repeats draw the noise anew.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

from jostle.tools.session import Session
from tests.experiments.classification_data import FOLDER, load, split

PROGRAM = Path(__file__).resolve().parents[2] / "programs" / "figure_4_4.jst"


def write(name: str, folder: Path) -> None:
    columns, _, label = load(name)
    for part, ending in zip(split(columns, 0), ("", "_held_out"), strict=True):
        with (folder / f"{name}{ending}.csv").open("w", newline="", encoding="utf-8") as file:
            out = csv.writer(file)
            out.writerow([c if c != label else "class" for c in part])
            out.writerows(zip(*part.values(), strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--repeats", type=int, default=10)
    chosen = parser.parse_args()
    if not FOLDER.is_dir():
        print("the public tables are not here: there is nothing to draw")
        return
    chosen.folder.mkdir(parents=True, exist_ok=True)
    for name in ("nursery", "cmc", "hiv_1625"):
        write(name, chosen.folder)
        print(name, flush=True)
        Session(out=print).run(PROGRAM, folder=str(chosen.folder.resolve()), data=name, repeats=chosen.repeats)


if __name__ == "__main__":
    main()
