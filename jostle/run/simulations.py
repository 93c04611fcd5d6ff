"""Public synthetic data to train choices on, each drawn by a seed, and how right classifiers and regressions are on
rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, cast

from jostle.diagnostics import refuse
from jostle.lazy import np
from jostle.plan.plan import Integer, Real
from jostle.privacy.kernel.handles import Table
from jostle.privacy.scores import Score, Scores
from jostle.privacy.transformations import transform
from jostle.run import declare
from jostle.run.arguments import class_column, need_table, score_or_number
from jostle.run.evaluator import At, Value, builtin
from jostle.run.faults import refuse_private
from jostle.run.forms import bin_number
from jostle.run.values import Interval, JSet, Record, is_model, is_number, kind_name

MOST = 1000
"""Of tables or studies in one call."""

TESTED = 2000
"""Rows of a test."""


@builtin
def _simulated_tables(
    count: object, seed: object = 1.0, *, rows: object = None, wide: object = False, at: At
) -> list[Record]:  # fmt: skip
    """`simulated_tables(40)`: public synthetic tables, each a record {database, test, class}.

    `rows`: from how many to how many a database has (`500..20000`); a test has 2,000. `wide`: every third table has
    16 to 60 attributes, of which few speak of the class.
    """
    from jostle.kernels.simulated_tables import synthetic_table

    def example(number: int, rows: int, least: int, most: int) -> Record:
        synthetic = synthetic_table(number, rows, least, most, TESTED, bool(wide))
        classes = [f"class {c + 1}" for c in range(synthetic.classes)]
        columns: dict[str, object] = {f"a{i + 1}": synthetic.cells[:, i] for i in range(len(synthetic.sizes))}
        columns["class"] = np.array(classes)[synthetic.labels]
        domains = Record({f"a{i + 1}": Interval(0.0, float(v - 1)) for i, v in enumerate(synthetic.sizes)})
        domains["class"] = JSet(classes)
        return Record({**_parts(columns, domains, at), "class": "class"})

    return _simulated("simulated_tables", count, seed, rows, Interval(500.0, 20_000.0), example)


@builtin
def _simulated_regressions(count: object, seed: object = 1.0, *, rows: object = None, at: At) -> list[Record]:
    """`simulated_regressions(40)`: public synthetic tables, each a record {database, test, target}.

    `rows`: from how many to how many a database has (`300..30000`); a test has 2,000.
    """
    from jostle.kernels.simulated_tables import TARGET, regression_table

    def example(number: int, rows: int, least: int, most: int) -> Record:
        simulated = regression_table(number, rows, least, most, TESTED)
        domains = Record(
            (name, JSet(list(domain)) if isinstance(domain[0], str) else Interval(domain[0], domain[1], not domain[2]))
            for name, domain in simulated.domains.items()
        )
        return Record({**_parts(simulated.columns, domains, at), "target": TARGET})

    return _simulated("simulated_regressions", count, seed, rows, Interval(300.0, 30_000.0), example)


@builtin
def _simulated_studies(count: object, seed: object = 1.0, *, rows: object = None, at: At) -> list[Record]:
    """`simulated_studies(40)`: public synthetic studies, each a record {database, treatment, outcome, by, effect}.

    `rows`: from how many to how many a database has (`500..100000`). `effect` is the mean effect in the population that
    the rows are a sample of.
    """
    from jostle.kernels.statistics.effects import simulated_study

    interp, span = at

    def study(number: int, rows: int, least: int, most: int) -> Record:
        simulated = simulated_study(number, rows, least, most)
        by = [f"x{i + 1}" for i in range(len(simulated.sizes))]
        domains = {name: Interval(0.0, size - 1.0) for name, size in zip(by, simulated.sizes, strict=True)}
        domains |= {"treated": Interval(0.0, 1.0), "outcome": Interval(0.0, 1.0, not simulated.binary)}
        database = declare.open_public(interp, simulated.data_set(rows, number), Record(domains), span)
        fields = {"treatment": "treated", "outcome": "outcome", "by": by, "effect": simulated.truth}
        return Record({"database": database, **fields})

    return _simulated("simulated_studies", count, seed, rows, Interval(500.0, 100_000.0), study)


def _simulated(
    name: str, count: Any, seed: Any, rows: object, usual: Interval, one: Callable[[int, int, int, int], Record]
) -> list[Record]:
    """So many of what `one` makes of a number, the seed, and the fewest and the most rows; what a program asked for is
    checked first."""
    for value, low, high in ((count, 1, MOST), (seed, 0, 2**31)):
        if not is_number(value) or not float(value).is_integer() or not low <= value <= high:
            raise refuse("ValueError", f"`{name}` takes whole numbers from {low} to {high}")
    range_ = usual if rows is None else rows
    if not isinstance(range_, Interval) or not 5 <= range_.low <= range_.high <= 10**6:
        raise refuse("ValueError", f"the rows of `{name}` are a range within 5..1000000")
    return [one(number, int(seed), int(range_.low), int(range_.high)) for number in range(int(count))]


def _parts(columns: dict[str, Value], domains: Record, at: At) -> dict[str, object]:
    """The last `TESTED` rows as a public test, the others as a public database."""
    interp, span = at
    parts = {"database": slice(None, -TESTED), "test": slice(-TESTED, None)}
    return {
        name: declare.open_public(interp, {n: column[part] for n, column in columns.items()}, domains, span)
        for name, part in parts.items()
    }


@builtin
def _accuracy(table: Value, model: Value, label: object, *, at: At) -> float:
    """`accuracy(test, model, class)`: the share of the rows of a public table whose class the model names."""
    interp, _ = at
    name = _class_of("accuracy", model, table, label)
    from jostle.kernels.classifiers.codes import coded, positions

    columns, counts = interp.data.rows(table, coded)
    truth = positions(columns[name], model.classes)
    counted = counts * (columns[name].codes >= 0)
    if not counted.sum():
        raise refuse("ValueError", "the table has no rows to be right on")
    read = {n: columns[n] for n in model.attributes if n != name} or {name: columns[name]}
    return float((counted * (model.places(read) == truth)).sum() / counted.sum())


@builtin
def _correct_count(table: object, model: object, label: object, *, at: At) -> Score | float | list[float]:
    """`correct_count(D, model, class)`: how many rows of a table a public classifier gets right, a score."""
    return score_or_number(at[0], _row_count("correct_count", table, model, label), at[1])


@builtin
def _surprise_count(table: object, model: object, label: object, *, at: At) -> Score | float | list[float]:
    """`surprise_count(D, model, class)`: how improbable a public classifier calls the classes of rows, a score."""
    return score_or_number(at[0], _row_count("surprise_count", table, model, label), at[1])


@builtin
def _ranked_counts(table: object, model: object, label: object, of: object) -> Scores:
    """`ranked_counts(D, model, class, of)`: rows by how probable `of` is called, and if it is theirs: scores."""
    return cast("Scores", _row_count("ranked_counts", table, model, label, of))


def _row_count(what: str, table: Value, model: Value, label: object, *of: object) -> Score:
    """What a row program counts by a classifier."""
    from jostle.kernels.classifiers.shrink import class_logs
    from jostle.kernels.rowprograms.decisions import ROW_COUNTS
    from jostle.privacy.scores.vectorsums import row_count

    name = _class_of(what, model, table, label)
    table, model = _in_bins(table, model, name)
    if not all(one in model.classes for one in of):
        raise refuse("ValueError", f"`{what}` takes a class of the classifier", help="one of `model.classes`")
    read = tuple(n for n in model.attributes if n != name)
    try:
        reads = model.scores if what == "correct_count" else class_logs(model)
        return row_count(table, (*read, name), lambda all_: ROW_COUNTS[what](reads, model.classes, all_, name, *of))
    except ValueError as error:
        raise refuse("ValueError", f"`{what}` cannot work with this classifier", help=str(error)) from None


def _in_bins(table: Table, model: object, label: str) -> tuple[Table, object]:
    """The table with its numbers in the bins of a classifier of raw columns, and the classifier of these bins.

    A wide or real column has more numbers than can be listed, and few bins.
    """
    from jostle.kernels.classifiers.models import Binned

    while isinstance(model, Binned):
        cuts = {n: c for n, c in model.cuts.items() if n in model.inner.attributes and n != label}
        if not all(isinstance(table.domains[n], Integer | Real) for n in cuts):
            break
        table = transform.derive(table, [(n, bin_number(n, c.edges)) for n, c in cuts.items()])
        model = model.inner
    return table, model


def _class_of(what: str, model: Value, table: Value, label: object) -> str:
    """The class column's name, where a classifier and a table fit together."""
    refuse_private(model, "is no classifier")
    if not is_model(model) or not hasattr(model, "scores") or not hasattr(model, "classes"):
        raise refuse("TypeError", f"`{what}` takes a classifier, not {kind_name(model)}")
    table = need_table(table, what)
    name = class_column(table, label, what)
    missing = [n for n in model.attributes if n != name and n not in table.domains]
    if missing:
        raise refuse("NameError", f"the table has no column `{missing[0]}`, which the classifier reads")
    return name


@builtin
def _prediction_error(table: Value, model: Value, *, at: At) -> float:
    """`prediction_error(test, model)`: √(mean (y − ŷ)²) over the rows of a public table, y the model's target.

    Rows without a target are left out.
    """
    interp, _ = at
    refuse_private(model, "is no regression")
    if not is_model(model) or not hasattr(model, "target"):
        raise refuse("TypeError", f"`prediction_error` takes a regression, not {kind_name(model)}")
    table = need_table(table, "prediction_error")
    missing = [name for name in (model.target, *model.attributes) if name not in table.domains]
    if missing:
        raise refuse("NameError", f"the table has no column `{missing[0]}`, which the regression reads")
    from jostle.kernels.classifiers.codes import coded

    columns, counts = interp.data.rows(table, coded)
    target = columns[model.target]
    values = [v if isinstance(v, float) else math.nan for v in target.values] or [math.nan]
    truth = np.array(values)[target.codes]
    off = model.predict(columns, len(counts)) - truth
    valid = ~np.isnan(off)
    if not valid.any():
        raise refuse("ValueError", f"the table has no rows with a `{model.target}`")
    return float(math.sqrt((counts[valid] * off[valid] ** 2).sum() / counts[valid].sum()))
