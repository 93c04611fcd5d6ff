"""Functions that select: `largest`, `margin_max`, watches (`above_threshold`, `above`), `best_run`, and splits of
trees.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import chain, islice, pairwise
from typing import TYPE_CHECKING, cast

from jostle.accounting.amounts import Amount
from jostle.accounting.composition import quanta
from jostle.diagnostics import Refusal, refuse
from jostle.formulas import UNKNOWN, Noised, cut_text
from jostle.kernels import Model, members
from jostle.kernels.statistics import Report
from jostle.language.builtins import BUILTINS
from jostle.language.facts import Gives
from jostle.lazy import np
from jostle.plan.plan import Column, Key, RowExpr
from jostle.privacy.kernel.handles import ColumnHandle, Cube, Table, Vectors
from jostle.privacy.scores import Score, Scores
from jostle.privacy.transformations import transform
from jostle.records import replace
from jostle.resources import KEEPS
from jostle.run.arguments import (
    amount_for,
    array,
    bare_amount,
    class_column,
    items,
    need_table,
    numbers,
    public,
    score_or_number,
)
from jostle.run.evaluator import At, Evaluator, Value, builtin, implement
from jostle.run.faults import exposures_of, refuse_private
from jostle.run.forms import bin_number
from jostle.run.groups import own_keys
from jostle.run.looks import Looks
from jostle.run.margins import cut_of
from jostle.run.rows import RowCompiler
from jostle.run.scope import Qualifiers, Scope
from jostle.run.values import Function, Grouped, Interval, Record, is_number, is_sequence, is_vector, kind_name
from jostle.source import Span
from jostle.syntax import nodes as n

if TYPE_CHECKING:
    from jostle.privacy.measurements.choices import Ranking
    from jostle.privacy.measurements.watch import Watch
    from jostle.privacy.rows.folds import PublicTree


@builtin
def _largest(utilities: object, count: Value = 1.0, leads: Value = False, *, epsilon: Value = None, at: At) -> Value:
    """The places of the largest scores, in order; with `leads` a record of them and of what each leads the next by."""
    from jostle.privacy.measurements.choices import LargestScores

    interp, span = at
    refuse_private([count, leads], "cannot say what to select")
    if not is_number(count) or not float(count).is_integer() or not isinstance(leads, bool):
        raise refuse("TypeError", "`count` is a whole number, and `leads` is true or false")
    scores: list[Value] = [utilities] if isinstance(utilities, Scores) else items(utilities)
    if not scores:
        raise refuse("ValueError", "there is nothing to choose from")
    if all(is_number(u) for u in scores):
        ranking = _public(scores, int(count))
    elif all(isinstance(u, Score) for u in scores):
        with amount_for(interp, scores, span, epsilon) as amount:
            ranking = interp.kernel.measure(LargestScores.of(scores, int(count), leads, amount), span)
    else:
        raise refuse("TypeError", "utilities are all public numbers or all scores")
    places = [float(place) for place in ranking.places]
    return Record(places=places, leads=ranking.leads, within=ranking.within) if leads else places


@builtin
def _margin_max(utilities: Value, *, epsilon: Value = None, delta: Value = None, at: At) -> float:
    """The place of one score, by the large margin mechanism; of public numbers that of the largest."""
    from jostle.privacy.measurements.choices import MarginMax

    interp, span = at
    scores: list[Value] = [utilities] if isinstance(utilities, Scores) else items(utilities)
    if scores and all(is_number(u) for u in scores):
        return float(scores.index(max(scores)))
    if not all(isinstance(u, Score) for u in scores):
        raise refuse("TypeError", "utilities are all public numbers or all scores")
    with amount_for(interp, scores, span, epsilon, delta) as amount:
        return float(interp.kernel.measure(MarginMax.of(scores, amount), span).place)


def _public(utilities: list[float], count: int) -> Ranking:
    """Of public numbers, exactly and for nothing."""
    from jostle.privacy.measurements.choices import Ranking

    if not 1 <= count <= len(utilities):
        raise refuse("ValueError", f"of {len(utilities)} numbers the largest {count} were asked")
    order = sorted(range(len(utilities)), key=lambda i: -utilities[i])
    leads = [utilities[a] - utilities[b] for a, b in pairwise(order)]
    return Ranking(order[:count], leads[:count], 0.0)


class OpenWatch(Model):
    """What a program holds of a watch; without a `watch`, of public data, it compares exactly."""

    jostle_kind = "a watch for a threshold"
    jostle_members = members("threshold most left tells within")

    def __init__(self, watch: Watch | None, threshold: float, most: int, tells: str) -> None:
        self.watch, self.threshold, self.most, self.tells = watch, threshold, most, tells
        self._publicly_left = most

    @property
    def left(self) -> int:
        """Answers above that it still gives."""
        return self._publicly_left if self.watch is None else self.watch.left

    @property
    def within(self) -> float:
        """How far from the threshold 95 % of answers are right."""
        return 0.0 if self.watch is None else self.watch.law.half_width()

    def as_json(self) -> object:
        return self.jostle_fields

    def __str__(self) -> str:
        return f"a watch for {self.threshold:g}, {self.left} of {self.most} answers above left"

    def publicly(self, number: float) -> object:
        """The answer on a public number."""
        from jostle.privacy.measurements.watch import used_up

        if self.watch is not None:
            raise refuse("TypeError", "a public number needs no watch", help=f"compare it: `x >= {self.threshold:g}`")
        if not self.left:
            raise used_up(self.most)
        if number < self.threshold:
            return False if self.tells == "answer" else None
        self._publicly_left -= 1
        return {"answer": True, "gap": number - self.threshold, "number": number}[self.tells]


@builtin
def _above_threshold(
    value: object, threshold: object, most: object = 1.0, *, tells: object = "answer", epsilon: object = None, at: At
) -> OpenWatch:
    """A watch that is asked scores like `value`, or counts of its rows, until `most` of them were above `threshold`."""
    from jostle.privacy.measurements.watch import Opening, check_watch

    interp, span = at
    refuse_private([threshold, most, tells], "cannot say what to watch for")
    if not is_number(threshold) or not is_number(most) or not isinstance(tells, str):
        raise refuse("TypeError", "a watch takes a threshold and `most`, numbers, and what it `tells`, a text")
    check_watch(threshold, most, tells)
    score = _score_of(interp, value, span)
    facts = (float(threshold), int(most), tells)
    with amount_for(interp, [score] if isinstance(score, Score) else (), span, epsilon) as amount:
        opening = Opening.of(score, *facts, amount) if isinstance(score, Score) else None
        return OpenWatch(None if opening is None else interp.kernel.measure(opening, span), *facts)


@builtin
def _above(value: object, watch: object, *, at: At) -> object:
    """Whether a score, or the number of rows, is above the watch's threshold: paid for when it was opened."""
    from jostle.privacy.measurements.watch import Question

    interp, span = at
    if not isinstance(watch, OpenWatch):
        help = "`watch = above_threshold(people, 500)`"
        raise refuse("TypeError", f"`above` asks a watch, not {kind_name(watch)}", help=help)
    score = _score_of(interp, value, span)
    if not isinstance(score, Score):
        if interp.kernel.in_a_run:
            raise refuse(
                "TypeError", "a run of `best_run` asks no watch for public numbers", help="compare them by `>`"
            )
        return watch.publicly(score)
    if watch.watch is None:
        raise refuse("TypeError", "this watch was opened for public data, and pays for nothing private")
    answer = interp.kernel.measure(Question.of(watch.watch, score), span)
    if watch.watch.tells == "number" and answer is not None:
        cut = (*cut_of(score), *interp.looks.cut_of(score, score.exposures))
        return Noised(float(answer), watch.watch.number_law).without(cut)
    return answer


def _score_of(interp: Evaluator, value: object, span: Span | None) -> Score | float:
    """A private score, that of counting rows among them; or a public number."""
    from jostle.privacy.scores.cells import size

    score = size(value) if isinstance(value, (Table, Cube, Vectors)) else value
    if isinstance(score, Score):
        return cast("Score | float", score_or_number(interp, score, span))
    if not is_number(score):
        help = "`size(where(people, …))`"
        raise refuse("TypeError", f"a watch is asked a score or a table, not {kind_name(score)}", help=help)
    return float(score)


MOST_CANDIDATES = 100_000


@builtin
def _best_run(
    data: object, run: object, candidates: object, runs: object, *, good: object = None, law: object = "geometric",
    epsilon: object = None, at: At,
) -> object:  # fmt: skip
    """What `run(data, candidate)` gave in the best of many runs, a record, with the `candidate`; or none."""
    from jostle.privacy.measurements.watch import BestRun
    from jostle.privacy.mechanisms.margin import Stopping

    interp, span = at
    refuse_private([candidates, runs, good, law], "cannot say what to run")
    listed = list(islice(interp.walk(candidates, span), MOST_CANDIDATES + 1))
    if not 0 < len(listed) <= MOST_CANDIDATES:
        raise refuse("ValueError", f"there are 1 to {MOST_CANDIDATES:,} candidates", help="`[1, 10, 100]`")
    if not is_number(runs) or not (good is None or is_number(good)) or not isinstance(law, str):
        raise refuse("TypeError", "`runs` and `good` are numbers, and `law` is a text")
    stopping = Stopping.of(runs, law, good)

    def once(place: int) -> tuple[float, Record]:
        with _unseen(interp):
            return score_and_record(interp.call(run, [data, listed[place]], {}, span), listed[place])

    exposures = exposures_of([data])
    if not exposures:  # exact answers are the same in each run
        with interp.kernel.allot(None, None):
            tried = [once(place) for place in range(len(listed))]
        score, best = max(tried, key=lambda one: one[0])
        return best if good is None or score >= good else None
    amount = bare_amount(interp.kernel, exposures) if epsilon is None else Amount("epsilon", quanta(epsilon))
    try:
        answer = interp.kernel.measure(BestRun.of(exposures, amount, stopping, len(listed), once), span)
    except Refusal as refusal:
        raise _at_its_score(refusal, run) from None
    return None if answer is None else _marked(answer[1])


@builtin
def _in_rho(data: object, f: object, *, epsilon: object = None, delta: object = None, at: At) -> object:
    """What `f(data)` gives. Of an amount of epsilon and delta all is charged at once, as Gaussian noise of it would be,
    and what `f` measures is counted in the rho of that. Of an amount without a delta `f` is called as it is."""
    from jostle.privacy.kernel.prepaid import Prepayment

    interp, span = at
    if not isinstance(data, Table | Cube):
        raise refuse("TypeError", f"`in_rho` takes a table or a cube, not {kind_name(data)}")
    with amount_for(interp, data, span, epsilon, delta) as amount:
        paid: AbstractContextManager[object] = interp.kernel.allot(amount, span)
        if amount is not None and amount.delta:
            paid = interp.kernel.pay_ahead(Prepayment.of(data, amount, "gaussian"), span)
        with paid:
            return interp.call(f, [data], {}, span)


A_SCORE = "a run gives a record with a `score`, a number"


def score_and_record(value: object, candidate: object) -> tuple[float, Record]:
    score: object = value.get("score") if isinstance(value, Record) else value
    if not is_number(score):
        message = f"{A_SCORE}, and this is {kind_name(value if score is None else score)}"
        raise refuse("TypeError", message, help="`return {score: accuracy, model: m}`")
    fields = value if isinstance(value, Record) else {"score": score}
    return float(score), Record({"candidate": candidate, **fields})


def _at_its_score(refusal: Refusal, run: object) -> Refusal:
    """The refusal of a score at its place in what a run returns, with the way out in the program's own words."""
    match run.body.body[-1] if isinstance(run, Function) and isinstance(run.body, n.Block) else None:
        case n.Return(value=n.RecordOf(items=items)) if "a private score" in refusal.first.message:
            for score in (value.span for name, value in items if name == "score"):
                help = f"measure it, of what the run pays: write `laplace({score.text})`"
                return Refusal(replace(refusal.first, span=score, help=help))
    return refusal


LUCK = "that the best of many runs was lucky in its noise"


def _marked(value: object) -> object:
    """What the best run gave: the errors of its numbers do not cover that it was picked for one of them."""
    if isinstance(value, Noised):
        return value.without([LUCK])
    if isinstance(value, Report):
        return value if value.mark else value.without_errors(UNKNOWN, cut_text([LUCK]))
    if is_vector(value):
        return np.array(value)
    if isinstance(value, Record):
        return Record((name, _marked(item)) for name, item in value.items())
    if isinstance(value, Grouped):
        return Grouped({name: [*map(_marked, column)] for name, column in value.columns.items()}, value.keys)
    return [*map(_marked, value)] if isinstance(value, list) else value


@contextmanager
def _unseen(interp: Evaluator) -> Iterator[None]:
    """A run may leave no trace: it prints, releases and keeps nothing, and looks at no cells."""
    looks, interp.looks = interp.looks, Looks()
    interp.quiet, before = interp.quiet + 1, KEEPS.set(False)
    try:
        yield
    finally:
        interp.quiet -= 1
        KEEPS.reset(before)
        interp.looks = looks


MOST_EDGES = 100


def _split_score(name: str) -> Callable[[Evaluator, n.Call, Scope], object]:
    def body(interp: Evaluator, node: n.Call, scope: Scope) -> object:
        from jostle.privacy.scores import splits

        allowed = {"prices", "most"} if name == "entropy" else {"prices"}
        if len(node.args) != 3 or any(k.name not in allowed for k in node.keywords):
            raise refuse(
                "TypeError", f"`{name}` takes a table, the column to split by and that of the classes", node.span,
                help=f"`{name}(people, age / 10, sex)`",
            )  # fmt: skip
        table = need_table(interp.eval(node.args[0], scope), name, node.args[0].span)
        compiler = RowCompiler(table.domains, interp, scope, Qualifiers(node.args[0], table.domains))
        options = {k.name: interp.eval(k.value, scope) for k in node.keywords}
        most = _bound(options["most"]) if "most" in options else None
        label, tree = _column(compiler, table, node.args[2]), _tree(table, node.args[1], scope)
        if tree is not None:
            prices = _prices(options["prices"]) if "prices" in options else None
            return splits.level_splits(interp.data, name, table, tree, splits.split_key(*label, table), most, prices)
        if "prices" in options:
            raise refuse("TypeError", "splits by a column have no prices", node.span, help="a tree's next splits have")
        score = splits.split_score(interp.data, name, table, _column(compiler, table, node.args[1]), label, most)
        return score_or_number(interp, score, node.span)

    return body


def _column(compiler: RowCompiler, table: Table, node: n.Expr) -> tuple[str, RowExpr]:
    """A column by its name, its handle or a text, or an expression on rows."""
    expr, name = compiler.column_position(node)
    return (name or (expr.name if isinstance(expr, Column) else "this split")), expr


def _tree(table: Table, node: n.Expr, scope: Scope) -> PublicTree | None:
    """The growing tree that a variable holds, which stands where a column does for all that may be asked next."""
    from jostle.privacy.rows.folds import PublicTree

    if not isinstance(node, n.Name | n.Variable) or (isinstance(node, n.Name) and node.id in table.domains):
        return None
    tree = getattr(scope.find(node.id), "tree", None)
    return tree if isinstance(tree, PublicTree) else None


def _prices(value: Value) -> Value:
    """Public numbers, a list of them for each leaf of the level, one after the other."""
    refuse_private(value, "cannot be a price")
    is_table = is_sequence(value) and all(is_sequence(some) and all(map(is_number, some)) for some in value)
    if not is_table:
        raise refuse("TypeError", "prices are a list for each leaf of the level, of a number for each of its splits")
    return [np.array(list(some), dtype=float) for some in value]


def _growing(what: str, table: object, tree: object) -> tuple[Table, PublicTree]:
    from jostle.privacy.rows.folds import PublicTree

    refuse_private(tree, "is no tree")
    public = getattr(tree, "tree", None)
    if not isinstance(table, Table) or not isinstance(public, PublicTree):
        kinds = f"{kind_name(table)} and {kind_name(tree)}"
        raise refuse("TypeError", f"`{what}` takes a table and a tree that grows, not {kinds}", help="`tree_start(…)`")
    return table, public


@builtin
def _level_sizes(table: object, tree: object) -> Scores:
    """`level_sizes(D, tree)`: how many rows are at each leaf that a growing tree may split."""
    from jostle.privacy.scores import splits

    return splits.level_sizes(*_growing("level_sizes", table, tree))


@builtin
def _leaf_counts(table: object, tree: object, label: object) -> Scores:
    """`leaf_counts(D, tree, class)`: how many rows of each class are at each leaf of a growing tree."""
    from jostle.privacy.scores import splits

    return splits.leaf_counts(*_of_classes("leaf_counts", table, tree, label))


@builtin
def _distances(table: object, names: object, expected: object, penalties: object) -> Scores:
    """`distances(D, [["age", "sex"], …], expected, penalties)`: how far public counts over some columns each are from
    the true ones, as `distance` says it of one."""
    from jostle.privacy.scores.cells import distances

    table, cliques = need_table(table, "distances"), [items(one) for one in items(public(names))]
    counts, less, axes = [array(one) for one in items(expected)], numbers(penalties), dict[str, Key]()
    if not all(isinstance(name, str) for clique in cliques for name in clique):
        raise refuse("TypeError", "the columns of a table of counts are given by their names")
    for name in dict.fromkeys(chain.from_iterable(cliques)):
        transform.need_column(table.domains, name)
        axes[name] = transform.axis(table, Column(name), own_keys(table, Column(name)))
    return distances(table, [tuple([axes[name] for name in clique]) for clique in cliques], counts, less)


@builtin
def _subtrees(table: object, tree: object, label: object) -> Scores:
    """`subtrees(D, tree, class)`: how many rows each tree of at most two tests gets right, for `noisy_max`."""
    from jostle.privacy.scores import splits

    return splits.subtrees(*_of_classes("subtrees", table, tree, label))


def _of_classes(what: str, table: object, tree: object, label: object) -> tuple[Table, PublicTree, str]:
    known, public = _growing(what, table, tree)
    return known, public, class_column(known, label, what)


def _bound(value: object) -> int:
    from jostle.privacy.scores.splits import MOST

    refuse_private(value, "cannot be a bound on rows")
    if not is_number(value) or not value >= 1:
        raise refuse("ValueError", "a bound on rows is a number, at least 1")
    return int(min(value, MOST))


MOST_PARTS = 1000


@builtin
def _split_rows(table: Value, parts: Value, seed: Value = 0.0) -> list[Table]:
    """`split_rows(D, 10)`: disjoint parts by a hash of the protected unit, of which none looks at another's rows.

    The parts are those of a partition, by a key that each row decides for itself: their charges count as their maximum,
    whatever the hash is (docs/privacy/transformations.md). All rows of a person go to one part, and so do rows that are
    equal in all values that are described. SHA-256 makes the parts as even as the values are many, and the same on
    every machine. Where a person has one row, and what is protected is no column of the table, the hash is of the row.
    """
    table = need_table(table, "split_rows")
    for value in (parts, seed):
        if not is_number(value) or not float(value).is_integer() or not 0 <= value < 2**53:
            raise refuse("ValueError", "`split_rows` takes a whole number of parts", help="2 for halves, 10 for tenths")
    if not 1 <= parts <= MOST_PARTS:
        raise refuse("ValueError", f"rows are split into 1 to {MOST_PARTS:,} parts")
    columns = list(dict.fromkeys(c for e in table.exposures for c in e.unit.columns))
    if all(e.rows == 1 for e in table.exposures) and not table.domains.keys() >= set(columns):
        columns = []
    for name in columns:
        if name not in table.domains:
            raise refuse(
                "NameError", f"rows are split by what is protected, and `{name}` is no column of this table",
                help=f"describe it: `described by {{{name}: text, …}}`",
            )  # fmt: skip
    return transform.split(table, int(parts), int(seed), columns)


@builtin
def _binned(table: object, column: object, edges: Value, *, at: At) -> Table:
    """`binned(D, a, [20, 40])`: the table with a numeric column as its bin, the number of edges that it reaches."""
    table = need_table(table, "binned")
    name = column.name if isinstance(column, ColumnHandle) else column
    if not isinstance(name, str):
        raise refuse("TypeError", f"`binned` takes a column or its name, not {kind_name(column)}")
    refuse_private(edges, "cannot be the edge of a bin")
    has_edges = isinstance(edges, Interval) or is_sequence(edges) or is_vector(edges)
    places = sorted({float(e) for e in edges if is_number(e) or type(e).__module__ == "numpy"}) if has_edges else []
    if not places or len(places) > MOST_EDGES:
        raise refuse("ValueError", f"the edges of bins are a list of 1 to {MOST_EDGES} numbers")
    transform.need_column(table.domains, name)
    return transform.derive(table, [(name, bin_number(name, places))])


for _row in BUILTINS.values():
    if _row.module == "trees" and _row.over_rows and _row.gives is Gives.SCORE:
        implement(_row.name, _split_score(_row.name))
