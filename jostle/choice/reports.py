"""Reports of a ChoiceMaker: the runs it was trained on, and its evaluation on data sets that are left out.

Both are fields of the value in programs (`choice.runs(epsilon = 0.1)`, `choice.evaluate(epsilon = 0.1)`) and what
`jostle evaluate` prints. Everything is public: training data, seeded noise, no private source.
"""

from __future__ import annotations

from collections.abc import Sequence

from jostle.choice.evaluation import ChoiceReport, evaluate
from jostle.choice.models import AnyModel
from jostle.choice.policies import Predicts
from jostle.choice.table import RunTable
from jostle.choice.ways import Utilities
from jostle.choice.workers import Progress
from jostle.run.values import Record


def runs(table: RunTable) -> list[Record]:
    """A record for each option in each run: `data`, `rows` (none where unknown), `epsilon`, `option`, `utility`."""
    return [
        Record({
            "data": table.databases[run.database], "rows": table.rows_of(run), "scale": run.scale,
            "epsilon": run.epsilon, "option": option, "utility": utility,
        })
        for run in table.runs
        for option, utility in zip(table.options, run.utilities[0], strict=True)
    ]  # fmt: skip


def report(
    predicts: Predicts, table: RunTable, model: AnyModel, only: Sequence[str], progress: Progress | None,
    workers: int | None, settled: str = "", ways: Utilities | None = None,
) -> ChoiceReport:  # fmt: skip
    """Leaving one data set out, over the whole procedure, or with a policy that is `settled`, by its name.

    By rows where data sets share their sizes, else by scale.
    """
    counted = {table.rows_of(run) for run in table.runs}
    shared = None not in counted and len(counted) <= len({run.scale for run in table.runs})

    def rows(database: int, scale: float) -> float:
        return float(f"{scale * table.rows[database]:.6g}")

    return evaluate(
        table,
        model,
        predicts,
        group=rows if shared else None,
        only=only,
        progress=progress,
        workers=workers,
        settled=settled,
        ways=ways or {},
    )


def as_record(report: ChoiceReport) -> Record:
    """The report as a value of the language: the figures over all instances, `lines` by rows, and the whole as text."""
    data = report.as_json()
    lines = [
        Record({**line, "options": Record(line["options"]), "ways": Record(line["ways"])}) for line in data["lines"]
    ]
    names = ("choice", "tail", "single", "single_tail", "gap", "options", "ways")
    over_all = {name: lines[0][name] for name in names}
    return Record(
        {**over_all, "virtual": data["virtual_best"], "lines": lines[1:], "policies": Record(report.policies),
         "databases": float(report.databases), "text": report.text()}
    )  # fmt: skip
