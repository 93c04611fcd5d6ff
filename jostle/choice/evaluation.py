"""Evaluates a choice: against the single and the virtual best solver, and by validation and by margin.

By leave-one-data-set-out over the whole procedure: for each data set, policies are fitted, cross-validated and decided
on the others only, and the winner is used on the one left out, its features paid for. It reads the table of runs alone.
By validation and by margin each choice is run whole on every training instance, with seeded noise.

`bootstrap(cells, option, queries, epsilon = e)` estimates how accurate an option is whose error has no closed form: the
released cells are taken for the data, and the option runs on them again and again with the noise it had (Efron's
parametric bootstrap). It costs nothing, and does not know what the estimate has smoothed away.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from jostle.accounting.amounts import Amount
from jostle.accounting.composition import quanta
from jostle.choice.models import AnyModel, Array, Groups
from jostle.choice.policies import Candidate, Learner, Predicts, View, candidate_of, decide, view_of
from jostle.choice.policy import SINGLE_BEST
from jostle.choice.program import ProgramBench, public_only, simulated_private
from jostle.choice.table import RunTable, UtilityScale
from jostle.choice.training import REPEATS, Progress, run_all, seed
from jostle.diagnostics import did_you_mean, refuse
from jostle.kernels.linear_algebra import on_one_thread
from jostle.language.forms import DIMENSIONS
from jostle.lazy import np
from jostle.privacy.reading.minting import exposed, public_cube
from jostle.records import as_dict
from jostle.resources import Json
from jostle.run.evaluator import At, builtin
from jostle.run.faults import refuse_private
from jostle.run.values import Part, Record, is_number, is_workload, kind_name
from jostle.syntax.nodes import FEATURES, MARGIN, VALIDATION

Utilities = dict[str, list[float]]
"""For each way the mean utility of its answers in each of a table's runs."""


def utilities_by_score(
    bench: ProgramBench, table: RunTable, unit: str, delta: object, share: float | None, workers: int | None
) -> Utilities:
    """Those of each way that can be: none where the Utility gives no scores, by margin only with a `delta`."""
    if not table.runs or table.exact or not bench.scores(bench.instance(0, 1.0, 0)):
        return {}
    room = quanta(delta, "delta") if delta is not None else 0

    @on_one_thread
    def piece(number: int) -> list[float]:
        run = table.runs[number]
        place = (table.key, run.database, table.databases[run.database], repr(run.scale))
        instance = bench.instance(run.database, run.scale, seed(*place, "instance"))
        means = []
        for way in ways:
            amount = Amount(unit, quanta(run.epsilon, unit), room if way == MARGIN else 0)
            answers = (
                bench.validated(way, share, instance, amount, seed(*place, repr(run.epsilon), way, k))
                for k in range(REPEATS)
            )
            means.append(sum(bench.utility(instance, one) for one in answers) / REPEATS)
        return means

    ways = [VALIDATION, MARGIN] if room else [VALIDATION]
    rows = run_all(piece, len(table.runs), None, workers)
    return {way: [row[k] for row in rows] for k, way in enumerate(ways)}


class Line(Struct, frozen=True):
    """One scale (or whatever instances are grouped by), or all of them (`scale` None).

    For errors, regret is error ÷ the least error (1 is best); for utilities the difference to the best (0 is best).
    `choice` and `single` (the single best solver) are means over instances and draws of the features; `tail` and
    `single_tail` their 95th percentiles over instances, `options` the mean of each option taken always. `gap` =
    (single − choice) ÷ (single − virtual best), None where there is no gap. `choice_error` and `gap_error` are the
    standard errors of both over data sets, None for a single one.
    """

    scale: float | None
    rows: int
    single: float
    choice: float
    tail: float
    single_tail: float
    gap: float | None
    options: dict[str, float]
    ways: dict[str, float] = field(default_factory=dict)
    """The mean by each way of choosing, where there are several; `choice` is that by features."""
    choice_error: float | None = None
    gap_error: float | None = None


class ChoiceReport(Struct, frozen=True):
    """The lines, all scales first, and how often each policy was used on the data set left out.

    `by`: what lines are gathered by, `rows` or `scale`; `databases` were left out in turn, of `trained` in all.
    """

    relative: bool
    databases: int
    lines: tuple[Line, ...]
    policies: dict[str, int]
    by: str = "scale"
    trained: int = 0

    def as_json(self) -> dict[str, Json]:
        lines = [as_dict(line) for line in self.lines]
        return {"relative": self.relative, "databases": self.databases, "lines": lines, "policies": self.policies,
                "by": self.by, "trained": self.trained, "virtual_best": 1.0 if self.relative else 0.0}  # fmt: skip

    def text(self) -> str:
        names, ways = list(self.lines[0].options), [way for way in self.lines[0].ways if way != FEATURES]
        choice = "by features" if ways else "choice"
        heads = [self.by, choice, "±", "95 %", *(f"by {way}" for way in ways), "single best", "95 %"]
        heads += ["closed gap", "±", *names]
        cells = []
        for l in self.lines:
            mine = [_scale(l.scale), _number(l.choice), _number(l.choice_error), _number(l.tail)]
            single = [_number(l.single), _number(l.single_tail), _gap(l.gap), _gap(l.gap_error)]
            cells.append([*mine, *(_number(l.ways[way]) for way in ways), *single, *map(_number, l.options.values())])
        widths = [max(len(row[k]) for row in [heads, *cells]) for k in range(len(heads))]
        rows = ["  ".join(c.rjust(w) for c, w in zip(row, widths, strict=True)) for row in [heads, *cells]]
        what = (
            "error / least error; 1 is the virtual best" if self.relative else "best − utility; 0 is the virtual best"
        )
        used = ", ".join(f"{name} ×{n}" for name, n in self.policies.items())
        others = f" ({self.trained} in all)" if self.trained > self.databases else ""
        return "\n".join([f"mean regret ({what}), leaving out one of {self.databases} data sets{others}", *rows,
                          f"policies: {used}"]) + "\n"  # fmt: skip


def evaluate(
    table: RunTable,
    model: AnyModel,
    predicts: Predicts = (),
    *,
    group: Callable[[int, float], float] | None = None,
    only: Sequence[str] = (),
    progress: Progress | None = None,
    workers: int | None = 1,
    settled: str = "",
    ways: Mapping[str, Sequence[float]] | None = None,
) -> ChoiceReport:
    """The report on a table of runs. `predicts`: the options' own predictions, where they have some.

    `group(database, scale)`: the number under which a line gathers instances; None: their rows, where data sets share
    their sizes, else the scale. `only`: the data sets that are left out in turn and reported on, while the others are
    always trained on. `settled`: the name of the policy where it is not decided anew each time, but fitted alone, as of
    one that ships. `ways`: of other ways of choosing, the mean utility in each run of the table. Raises `ValueError`
    for fewer than two data sets, `NameError` for a name that is none of theirs.
    """
    predicts = predicts or (None,) * len(table.options)
    databases = sorted({run.database for run in table.runs})
    if len(databases) < 2:
        raise refuse("ValueError", "a choice is evaluated on data sets left out: it needs two or more to train on")
    names = _turns(table, databases, only)
    scale, learner = table.scale, Learner(model, predicts, table.scale)

    def piece(number: int) -> tuple[str, tuple[Array, Array, Array, Array]]:
        rest = table.without(names[number])
        name = settled or decide(rest, model, predicts).name
        winner = candidate_of(name, table, predicts)
        return name, _left_out(table, rest, names[number], winner, learner)

    folds = run_all(piece, len(names), progress, workers)
    wins: dict[str, int] = {}
    for name, _ in folds:
        wins[name] = wins.get(name, 0) + 1
    sizes, losses, single, each = (np.concatenate([p[k] for _, p in folds]) for k in range(4))
    mine = [k for d in names for k, run in enumerate(table.runs) if run.database == d]
    others = {
        way: np.array([_regret(table, scale, k, utilities[k]) for k in mine]) for way, utilities in (ways or {}).items()
    }
    owner = np.array([table.runs[k].database for k in mine])
    group = group or _rows(table)
    if group is not None:
        sizes = np.array([group(table.runs[k].database, table.runs[k].scale) for k in mine])
    figures = (losses, single, each, others, owner)
    lines = [_line(table, scale, None, np.ones(len(sizes), dtype=bool), *figures)]
    for size in np.unique(sizes):
        lines.append(_line(table, scale, float(size), sizes == size, *figures))
    by = "scale" if group is None else "rows"
    return ChoiceReport(scale.logarithmic, len(names), tuple(lines), wins, by, len(databases))


def _rows(table: RunTable) -> Callable[[int, float], float] | None:
    """The rows of an instance, where data sets share their sizes."""
    counted = {table.rows_of(run) for run in table.runs}
    if None in counted or len(counted) > len({run.scale for run in table.runs}):
        return None
    return lambda database, scale: float(f"{scale * table.rows[database]:.6g}")


def _turns(table: RunTable, databases: Sequence[int], only: Sequence[str]) -> list[int]:
    """The data sets that are left out in turn: those named, or all. Raises `NameError` for a name of none of them."""
    for name in only:
        if name not in table.databases:
            help = did_you_mean(name, table.databases)
            raise refuse("NameError", f"no training data set is named `{name}`", help=help)
    return [d for d in databases if not only or table.databases[d] in only]


def _left_out(
    table: RunTable, rest: RunTable, database: int, winner: Candidate, learner: Learner
) -> tuple[Array, Array, Array, Array]:
    """For each run of the data set: its scale; the regret of the choice by draw, the single best, and each option."""
    best = Candidate(SINGLE_BEST, 0.0, 0, ())

    def losses_by(candidate: Candidate) -> tuple[View, Array]:
        view = view_of(table, candidate, learner.scale)
        mine = view[view.database == database]
        return mine, learner.regrets(candidate, view_of(rest, candidate, learner.scale), mine)

    (_, losses), (plain, alone) = losses_by(winner), losses_by(best)
    draws = losses.reshape(len(plain.y), -1)
    return plain.size, np.repeat(draws, table.draws // draws.shape[1], axis=1), alone, plain.best[:, None] - plain.y


def _regret(table: RunTable, scale: UtilityScale, run: int, utility: float) -> float:
    """How far the score of a utility is behind the best option's, which has all of epsilon."""
    return max(table.scores(table.runs[run], 0.0, scale)) - scale.score(utility)


def _line(
    table: RunTable, scale: UtilityScale, size: float | None, rows: Any, losses: Array, single: Array, each: Array,
    others: Mapping[str, Array], owner: Groups,
) -> Line:  # fmt: skip
    def readable(regret: Array) -> Array:
        return np.exp(regret) if scale.logarithmic else regret

    choice, alone = float(readable(losses[rows]).mean()), float(readable(single[rows]).mean())
    room = alone - (1.0 if scale.logarithmic else 0.0)
    means = readable(each[rows]).mean(axis=0).tolist()
    gap = (alone - choice) / room if room > 1e-12 else None
    mine = readable(losses[rows]).mean(axis=1)
    saved = readable(single[rows]) - mine - (gap or 0.0) * (readable(single[rows]) - (alone - room))
    return Line(
        scale=size,
        rows=int(rows.sum()),
        single=alone,
        choice=choice,
        tail=float(np.percentile(readable(losses[rows]).mean(axis=1), 95)),
        single_tail=float(np.percentile(readable(single[rows]), 95)),
        gap=gap,
        choice_error=_error_over(owner[rows], mine),
        gap_error=_error_over(owner[rows], saved / room) if gap is not None else None,
        options=dict(zip(table.options, means, strict=True)),
        ways={FEATURES: choice, **{way: float(readable(one[rows]).mean()) for way, one in others.items()}}
        if others
        else {},
    )


def _error_over(owner: Groups, values: Array) -> float | None:
    """The standard error of the mean over data sets; `owner` (n,) is that of each value."""
    means = np.array([values[owner == d].mean() for d in np.unique(owner)])
    return float(means.std(ddof=1) / np.sqrt(len(means))) if len(means) > 1 else None


def _scale(scale: float | None) -> str:
    return "all" if scale is None else f"{scale:g}"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}" if abs(value) < 1000 else f"{value:.3g}"


def _gap(gap: float | None) -> str:
    return "–" if gap is None else f"{gap * 100:.0f} %"


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


def as_record(report: ChoiceReport) -> Record:
    """The report as a value of the language: the figures over all instances, `lines` by rows, and the whole as text."""
    data = report.as_json()
    lines = [
        Record({**line, "options": Record(line["options"]), "ways": Record(line["ways"])}) for line in data["lines"]
    ]
    names = ("choice", "choice_error", "tail", "single", "single_tail", "gap", "gap_error", "options", "ways")
    over_all = {name: lines[0][name] for name in names}
    return Record(
        {**over_all, "virtual": data["virtual_best"], "lines": lines[1:], "policies": Record(report.policies),
         "databases": float(report.databases), "text": report.text()}
    )  # fmt: skip


MOST_RUNS = 10_000


@builtin
def _bootstrap(
    cells: Any, option: Any, queries: Any, *, epsilon: Any = None, rho: Any = None, runs: Any = 100.0, seed: Any = 0.0,
    at: At,
) -> Record:  # fmt: skip
    """`standard_error` (root mean square of the error, with its bias), `error` (its 95 % quantile) and `bias`.

    Each has an element a query. `option(db, queries)` is called under an allotment of `epsilon` (or `rho`) in all.
    """
    interp, _ = at
    refuse_private([cells, queries, epsilon, rho], "cannot be rehearsed on: `bootstrap` takes released cells")
    if not is_workload(queries):
        raise refuse("TypeError", f"queries are a workload, not {kind_name(queries)}", help="such as `prefixes(ages)`")
    if (epsilon is None) == (rho is None):
        raise refuse("NoEpsilon", "`bootstrap` takes the amount that the option had", help="`epsilon = 0.5`")
    if not (is_number(runs) and 2 <= runs <= MOST_RUNS and is_number(seed)):
        raise refuse("ValueError", f"`bootstrap` makes 2 to {MOST_RUNS:,} runs")
    unit = "epsilon" if rho is None else "rho"
    amount = Amount(unit, quanta(epsilon if rho is None else rho, unit))
    counts = _counts(np.asarray(cells, dtype=float), tuple(queries.shape))
    names = tuple(DIMENSIONS[i] if i < 3 else f"d{i + 1}" for i in range(counts.ndim))
    cube = public_cube(interp.data, counts, names)
    truth = queries.answers(counts.astype(float))
    errors = np.empty((int(runs), len(truth)))
    with public_only(interp):
        for i in range(int(runs)):
            view, source = simulated_private(cube, amount, 1, int(seed) * MOST_RUNS + i)
            arguments = [Record(database=view, queries=queries)] if isinstance(option, Part) else [view, queries]
            with interp.kernel.allot(amount, None, exposed(source)):
                answers = np.asarray(interp.call(option, arguments), dtype=float).ravel()
            if answers.shape != truth.shape:
                raise refuse("ValueError", "`bootstrap` takes an option that returns an answer for each query")
            errors[i] = answers - truth
    return Record(
        standard_error=np.sqrt((errors**2).mean(axis=0)),
        error=np.quantile(np.abs(errors), 0.95, axis=0),
        bias=errors.mean(axis=0),
    )


def _counts(cells: Any, shape: tuple[int, ...]) -> Any:
    """Whole counts like the cells: every sum of cells in a row is within one of theirs."""
    if cells.size != int(np.prod(shape)) or not np.isfinite(cells).all():
        raise refuse("ValueError", f"these cells do not fit queries for shape {shape}")
    if cells.sum(where=cells > 0) > 1e15:
        raise refuse("ValueError", "these cells count more than can be counted")
    rising = np.rint(np.cumsum(np.maximum(cells.ravel(), 0.0)))
    return np.diff(rising, prepend=0.0).astype(np.int64).reshape(shape)
