"""The combined tree of Figure 4.5 beside A1 to A5, on tables that it was not learned from.

    python -m tests.experiments.figure_4_5 [--tables nursery,cmc] [--epsilons 0.1,1] [--repeats 5] [--learned 12]

Its choices are learned on made-up tables by `programs/figure_4_5.jst`, once for each ε. Lines give the mean test
accuracy in per cent over random 70/30 splits; the same splits for all.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from jostle.choice.program import ChoiceParts
from jostle.source import Source
from jostle.tools.session import Session
from tests.experiments.classification import Tables, described
from tests.experiments.classification_data import EPSILONS, FOLDER, NAMES, load, split

PROGRAM = Path(__file__).resolve().parents[2] / "programs" / "figure_4_5.jst"
THESIS = ("A1", "A2", "A3", "A4", "A5")


def combined(learned: int, rows: int) -> tuple[Session, str]:
    """A session in which the combined algorithm is defined, and the text that defined it."""
    text = PROGRAM.read_text(encoding="utf-8").split("# A table that it has not seen")[0]
    text = text.replace("param tables = 12", f"param tables = {learned}").replace(
        "param rows = 5000", f"param rows = {rows}"
    )
    session = Session()
    session.execute(Source("figure_4_5", text))
    return session, text


def bench(session: Session, name: str, repeats: int, options: tuple[str, ...]) -> Tables:
    """A table's splits as instances of one bench, in a session that knows the options."""
    columns, domains, label = load(name)
    text, databases = [], []
    for r in range(repeats):
        train, test = split(columns, r)
        text += described(session, f"{name}{r}", train, test, domains, label)
        databases.append(f"d_{name}{r}")
    session.execute(Source("experiment", "\n".join(text) + "\n"))
    known: dict[str, Any] = session.names()
    parts = ChoiceParts(
        tuple(known[o] for o in options), options, (), (), known["right_on_test"], tuple(known[d] for d in databases)
    )
    return Tables(session._interp, parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", default=",".join(NAMES))
    parser.add_argument("--epsilons", default=",".join(f"{e:g}" for e in EPSILONS))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--learned", type=int, default=12)
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--options", default=",".join((*THESIS, "Grow")))
    chosen = parser.parse_args()
    if not FOLDER.is_dir():
        print("the public tables are not here: there is nothing to run on")
        return
    options = tuple(chosen.options.split(","))
    names, epsilons = chosen.tables.split(","), [float(e) for e in chosen.epsilons.split(",")]
    session, _ = combined(chosen.learned, chosen.rows)
    found = np.zeros((len(options), len(names), len(epsilons), chosen.repeats))
    for t, name in enumerate(names):
        made = bench(session, name, chosen.repeats, options)
        for (o, option), (e, epsilon) in ((a, b) for a in enumerate(options) for b in enumerate(epsilons)):
            for r in range(chosen.repeats):
                data = made.instance(r, 1.0, 0)
                found[o, t, e, r] = 100 * made.utility(data, made.answer(o, data, epsilon, 7919 * r + e))
            print(f"{name:12} {option:5} ε {epsilon:<5g} {found[o, t, e].mean():5.1f}", flush=True)
    print(f"\nmean over {', '.join(names)} at ε = {', '.join(f'{e:g}' for e in epsilons)}")
    for o, option in enumerate(options):
        print(f"  {option:5} " + "  ".join(f"{m:5.1f}" for m in found[o].mean(axis=(0, 2))))
    known = session.names()
    if "Grow" in options:
        print(f"\nL1\n{known['L1'].jostle_explain()}\n\nL2\n{known['L2'].jostle_explain()}")


if __name__ == "__main__":
    main()
