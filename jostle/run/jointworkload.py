"""What the selects of a joint block ask of one table: axes, and a query for each sum of each select.

Filters and derived columns are seen through: each select becomes sums over rows of the table below, by keys and under
conditions that are expressions of its columns. `a == v` of a listed column is one of its groups; any other condition is
an axis of its own, true or not. Keys and conditions of one listed column are one axis, whose cells are distinguished
only as far as they ask: so towns that follow from a code, and regions that follow from it too, agree with each other.
Only public facts are looked at.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from jostle.diagnostics import refuse
from jostle.kernels.workloads.joint_axes import Axis, Factor
from jostle.language.moments import number_of
from jostle.lazy import Ints, np
from jostle.plan import plan as p
from jostle.plan.cuts import expression
from jostle.plan.facts import conjuncts, key_values, schema_of
from jostle.plan.kinds import check_depth
from jostle.plan.schemas import floors
from jostle.privacy.kernel.handles import Table
from jostle.privacy.measurements.aggregates.aggregate import AdditiveAggregate
from jostle.privacy.measurements.aggregates.sums import Count
from jostle.privacy.measurements.joint import KeyAxis
from jostle.privacy.measurements.selects import GroupKey, Request, prepare
from jostle.privacy.reading.public_data import as_read, sizes_are_public
from jostle.privacy.transformations.joins import common_table
from jostle.records import replace
from jostle.run.positions import evaluate

if TYPE_CHECKING:
    Labels = Mapping[p.Key, Ints]

MOST_VALUES = 2**17
"""Values of a column whose keys and conditions are one axis."""
MOST_ANSWERS = 2**25


class Sums(Struct, frozen=True, eq=False):
    """Sums of one term in the groups of a select: `factors` by axis, and how their answers become the select's.

    `shape` has the sizes of the select's keys by axis, and `order` puts them into the order in which it names them.
    """

    term: p.Term
    factors: Mapping[int, Factor]
    shape: tuple[int, ...]
    order: tuple[int, ...]

    def in_order(self, answers: Any) -> Any:
        """Answers of the factors, flat, in the order of the select's groups."""
        return answers.reshape(self.shape).transpose(self.order).ravel()


class JointWorkload(Struct, frozen=True, eq=False):
    """All selects of a block over one table: `selects` has the sums of each, an entry for every term."""

    table: Table
    axes: tuple[KeyAxis, ...]
    trees: tuple[Axis, ...]
    names: tuple[tuple[str, ...], ...]  # of each axis what its levels group by
    selects: tuple[tuple[Sums, ...], ...]


class _Asked(Struct, frozen=True):
    """A select over the columns of the table below: keys, groups that it is about, and its terms."""

    keys: tuple[p.Key, ...]
    only: tuple[tuple[p.Key, int], ...]
    terms: tuple[p.Term, ...]


def joint_workload(requests: Sequence[Request]) -> JointWorkload:
    """The workload of these selects. Refuses what is not linear, and selects of different tables."""
    table, queries = _common(requests), list[_Asked]()
    domains = dict(table.schema)
    never_missing = set(table.plan.on) if isinstance(table.plan, p.Join) and table.plan.kind == "inner" else set()
    below = {name: p.Column(name) for name in domains} | _complete_columns(table.plan) | joined_columns(table.plan)
    for request in requests:
        columns, conditions = seen_through(request.table.plan, table.plan)[1:]
        conditions = [replaced(condition, below) for condition in conditions]
        keys = tuple(p.Key(replaced(replaced(key.expr, columns), below), key.values) for key in request.keys)
        only = tuple(_one_group(part, domains) for condition in conditions for part in conjuncts(condition))
        queries.append(_Asked(keys, only, tuple(_term(term, columns) for term in terms_of(request))))
    every = dict.fromkeys(key for one in queries for key in (*one.keys, *(key for key, _ in one.only)))
    groups: dict[object, list[p.Key]] = {}
    for key in every:
        groups.setdefault(_home(key, domains), []).append(key)
    axes: list[KeyAxis] = []
    trees: list[Axis] = []
    names: list[tuple[str, ...]] = []
    places: dict[p.Key, tuple[int, Ints]] = {}
    for home, keys_of_axis in groups.items():
        axis, tree, labels = _tree(home, keys_of_axis, domains, home in never_missing)
        places |= {key: (len(axes), labels[key]) for key in keys_of_axis}
        axes.append(axis)
        trees.append(tree)
        names.append(tuple(_level_name(home, labels, level) for level in tree.labels[1:]))
    selects = tuple(tuple(_sums(one, term, trees, places) for term in one.terms) for one in queries)
    return JointWorkload(table, tuple(axes), tuple(trees), tuple(names), selects)


def check_together(requests: Sequence[Request]) -> None:
    """Refuses what is not linear, and selects of different tables."""
    terms_of(requests[-1])
    _common(requests)


def public_sizes(requests: Sequence[Request]) -> list[Request]:
    """The numbers of rows that are public of the table below these selects (`PublicData.group_sizes`), as selects of
    them by all columns that one of these groups by, whose groups are public and in which no cell is missing; none where
    all that is asked follows from them. Refuses what is not linear."""
    table = as_read(requests[0].table)
    if not sizes_are_public(table, []):
        return []
    check_together(requests)
    if any(exposure.path for exposure in _common(requests).exposures):  # of a part they are not known
        return []
    groups = set[str].intersection(*({*exposure.unit.groups} for exposure in table.exposures))
    names = {expr: name for name, expr in _filled(table.plan).items() if name in groups}
    sets, follows = dict[frozenset[str], None](), True
    for request in requests:
        terms, exprs, conditions = _below(request)
        own = frozenset(names[expr] for expr in exprs if expr in names)
        sets[own] = None
        follows = follows and terms == {p.Count()} and p.names_in([*exprs, *conditions]) <= own
    if follows:
        return []
    largest = [own for own in sets if not any(own < other for other in sets)]
    keys = [[GroupKey(name, p.Column(name)) for name in names.values() if name in own] for own in largest]
    return [prepare(table, one, [Count()]) for one in keys]


def adds_up(request: Request, sizes: Request) -> bool:
    """Whether a select by itself has all rows in groups that add up to public sizes, and measures rows alone, or sums
    in groups of which these sizes are known."""
    terms, exprs, conditions = _below(request)
    names, sums = p.names_in(exprs), terms - {p.Count()}
    if conditions or not names or not names <= _filled(sizes.table.plan).keys():
        return False
    if any(key.over is not None for key in request.group_keys):
        return False
    return not sums or (
        names <= {key.name for key in sizes.group_keys} and not any(isinstance(term, p.Count) for term in sums)
    )


def _below(request: Request) -> tuple[set[p.Term], list[p.RowExpr], list[p.RowExpr]]:
    """The terms, the keys and the conditions of a select, as those of the table below."""
    _, columns, conditions = seen_through(request.table.plan)
    terms = {_term(term, columns) for term in terms_of(request)}
    return terms, [replaced(key.expr, columns) for key in request.keys], conditions


def _filled(plan: p.Plan) -> dict[str, p.RowExpr]:
    """The columns of a source in which no cell is missing, as they are read."""
    columns = plan.columns if isinstance(plan, p.Derive) else ()
    return {name: expr for name, expr in columns if expr != p.Column(name)}


def terms_of(request: Request) -> list[p.Term]:
    """The sums that a select is made of; refused where it is made of something else."""
    terms: list[p.Term] = []
    for aggregate in request.aggregates:
        own = aggregate.terms(request.table) if isinstance(aggregate, AdditiveAggregate) else ()
        if not own or any(isinstance(term, p.Count) and term.distinct for term in own):
            raise refuse(
                "TypeError", f"`{aggregate.name}` is no sum over rows, and cannot be answered together with others",
                help="give it a select of its own, outside of `jointly`, with an amount: `with epsilon 0.1`",
            )  # fmt: skip
        terms += own
    return terms


def _common(requests: Sequence[Request]) -> Table:
    """The table below all selects, whose keys are public."""
    if any(request.open_keys for request in requests):
        raise refuse(
            "OpenKeys", "a `jointly` block answers groups whose keys are public",
            help="list the keys, `over {…}`, or put the select before the block, with an amount and a delta",
        )  # fmt: skip
    return common_table([request.table for request in requests])


def _term(term: p.Term, columns: Mapping[str, p.RowExpr]) -> p.Term:
    expr = None if term.expr is None else replaced(term.expr, columns)
    match expr:
        case p.Apply("coalesce", (*_, p.Constant(value))) if value is not None and isinstance(term, p.Count):
            expr = None  # all rows have a value
    return term if expr == term.expr else replace(term, expr=expr)


def _one_group(condition: p.RowExpr, domains: Mapping[str, Any]) -> tuple[p.Key, int]:
    """A condition as one group of a key: of a listed column, or of the condition itself."""
    match condition:
        case p.Apply("==", (p.Column(name), p.Constant(value))) if isinstance(domains[name], p.Integer | p.Categories):
            values = p.listed(domains[name]) if _countable(domains[name]) else None
            whole = all(isinstance(one, str) or float(one).is_integer() for one in values or ())
            if values is not None and value in values and whole:
                key = p.Key(p.Column(name), key_values(p.Column(name), domains, MOST_VALUES) or ())
                return key, list(key.values).index(value)
    return p.Key(condition, (True,)), 0


def _countable(domain: object) -> bool:
    if isinstance(domain, p.Integer):
        return domain.high - domain.low < MOST_VALUES
    return isinstance(domain, p.Categories) and len(domain.values) <= MOST_VALUES


def _home(key: p.Key, domains: Mapping[str, object]) -> str | p.Key:
    """The listed column that a key follows from; the key itself where there is none."""
    names = p.names_in([key.expr])
    (name,) = names if len(names) == 1 else ("",)
    return name if name and _countable(domains[name]) else key


def _tree(
    home: Any, keys: list[p.Key], domains: Mapping[str, Any], never_missing: bool
) -> tuple[KeyAxis, Axis, Labels]:
    """An axis for keys of one home, its tree, and for each key the group of every cell of the tree, −1 for none.

    Where the home is `never_missing` the cell of such rows is one with the first.
    """
    if len(keys) == 1:
        (key,) = keys
        size, complete = len(key.values), _never_missing(key, domains) or _has_every_row(key, home, domains)
        cells = size + (not complete)
        groups = np.where(np.arange(cells) < size, np.arange(cells), -1)
        levels = [np.arange(cells)] if cells > 1 else []
        whole = [np.zeros(1, dtype=np.int64)]
        return KeyAxis(key, complete, _tuples(levels)), Axis(levels or whole), {key: groups}
    values, column = _cells(home, domains, never_missing)
    by_key = {key: _group_codes(key, {home: column}) for key in keys}
    _, first, cell_of = np.unique(np.stack(list(by_key.values())), axis=1, return_index=True, return_inverse=True)
    cell_of = cell_of.ravel()
    chain, ranges = [np.arange(len(first))], False  # whether some keys do not divide one another
    for places in sorted(by_key.values(), key=lambda labels: -len(np.unique(labels))):
        groups = np.unique(places[first], return_inverse=True)[1].ravel()
        pairs = {*zip(chain[0].tolist(), groups.tolist(), strict=True)}
        many = int(groups.max()) + 1
        ranges = ranges or len(pairs) > int(chain[0].max()) + 1
        if len(pairs) == int(chain[0].max()) + 1 and 1 < many < len(pairs):
            chain.insert(0, groups)
    whole_key = p.Key(p.Column(home), key_values(p.Column(home), domains, MOST_VALUES) or ())
    if ranges and not isinstance(values[0], str):
        above = chain[-2] if len(chain) > 1 else np.zeros(len(first), dtype=np.int64)
        chain[-1:] = [*_runs(above, first), chain[-1]]
    chain = chain if len(first) > 1 else []
    axis = KeyAxis(whole_key, False, _tuples([labels[cell_of] for labels in chain]))
    tree = Axis(chain or [np.zeros(1, dtype=np.int64)])
    return axis, tree, {key: places[first] for key, places in by_key.items()}


def _cells(home: str, domains: Mapping[str, Any], never_missing: bool = False) -> tuple[Sequence[Any], Any]:
    """The values of a listed column, and with a last one for all rows that have none of them."""
    values = p.listed(domains[home]) or ()
    kind = object if isinstance(values[0], str) else float
    return values, np.array([*values, values[0] if never_missing else None], dtype=kind)


def _has_every_row(key: p.Key, home: object, domains: Mapping[str, object]) -> bool:
    """Whether each value of a listed column, and a missing one, is in a group of a key that follows from it."""
    return isinstance(home, str) and bool((_group_codes(key, {home: _cells(home, domains)[1]}) >= 0).all())


RUN = 4


def _runs(above: Ints, places: Ints) -> list[Ints]:
    """Levels between the groups `above` and the cells, for ranges of numbers: runs of 4, 16, … cells, coarse to fine.

    `places` are those of the cells among the numbers.
    """
    rank, size = np.zeros(len(above), dtype=np.int64), RUN
    levels: list[Ints] = []
    for group in range(int(above.max()) + 1):
        cells = np.flatnonzero(above == group)
        rank[cells[np.argsort(places[cells])]] = np.arange(len(cells))
    while size <= int(rank.max()):
        pairs = np.stack([above, rank // size])
        levels.insert(0, np.unique(pairs, axis=1, return_inverse=True)[1].ravel())
        size *= RUN
    return levels


def _level_name(home: object, labels: Labels, level: Ints) -> str:
    """The key that has just the groups of a level; of cells that several keys tell apart, the column."""
    many = int(level.max()) + 1
    for key, groups in labels.items():
        if len(np.unique(groups)) == many == len({*zip(groups.tolist(), level.tolist(), strict=True)}):
            return expression(_plain(key.expr))
    return f"{home} ({many} groups)"


def _plain(expr: p.RowExpr) -> p.RowExpr:
    """An expression without what it says of missing values."""
    match expr:
        case p.Apply("coalesce", (value, p.Constant())):
            return _plain(value)
        case p.Apply(op, args):
            return p.Apply(op, tuple(map(_plain, args)))
    return expr


def _tuples(levels: Iterable[Ints]) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(labels.tolist()) for labels in levels)


def _never_missing(key: p.Key, domains: Mapping[str, Any]) -> bool:
    """Whether every row has one of its values: `coalesce(…, constant)` of a listed expression."""
    match key.expr:
        case p.Apply("coalesce", (*_, p.Constant(value))) if value is not None:
            return key.values == key_values(key.expr, domains, len(key.values))
    return False


def _group_codes(key: p.Key, columns: Mapping[str, Any]) -> Ints:
    """Which of a key's values each row of these columns has, −1 for none."""
    values, valid = evaluate(key.expr, columns)
    if values.dtype.kind == "f" and floors(key):
        values = np.floor(values)
    at = {number_of(v) if isinstance(v, date) else v: place for place, v in enumerate(key.values)}
    pairs = zip(values.tolist(), valid.tolist(), strict=True)
    return np.array([at.get(value, -1) if valid else -1 for value, valid in pairs], dtype=np.int64)


def _sums(one: _Asked, term: p.Term, trees: Sequence[Axis], places: Mapping[p.Key, tuple[int, Ints]]) -> Sums:
    """The factors of a select: on each of its axes the combinations of its keys there, within its conditions."""
    axes = sorted({places[key][0] for key in (*one.keys, *(key for key, _ in one.only))})
    factors, shape, at = {}, [], []
    for axis in axes:
        groups, size = np.zeros(len(trees[axis].labels[0]), dtype=np.int64), 1
        for i, key in enumerate(one.keys):
            if places[key][0] != axis:
                continue
            labels, many = places[key][1], len(key.values)
            groups = np.where((groups >= 0) & (labels >= 0), groups * many + labels, -1)
            size *= many
            shape.append(many)
            at.append(i)
        for key, group in one.only:
            if places[key][0] == axis:
                groups = np.where(places[key][1] == group, groups, -1)
        if size > MOST_ANSWERS:
            raise refuse("ValueError", "groups by these keys are too many", help="group more coarsely")
        factors[axis] = Factor(trees[axis], groups, size)
    if math.prod(shape) > MOST_ANSWERS:
        raise refuse("ValueError", "groups by these keys are too many", help="group more coarsely")
    return Sums(term, factors, tuple(shape), tuple(int(i) for i in np.argsort(at)))


FINE = 22
"""Bits of a sum whose residuals are measured: what its summands are rounded to, and how many rows there is room for."""


def coarser(term: p.Term) -> p.Term:
    """A sum on the grid that leaves room for residuals."""
    if not isinstance(term, p.FixedSum) or term.bits <= 0:
        return term
    most = max(abs(term.low), abs(term.high))
    return replace(term, bits=min(term.bits, FINE - math.frexp(most)[1])) if most else term


def seen_through(plan: p.Plan, below: p.Plan | None = None) -> tuple[p.Plan, dict[str, p.RowExpr], list[p.RowExpr]]:
    """The plan below filters and derived columns, or that one of them, these columns by name, and the conditions, as
    expressions of it."""
    steps: list[p.Filter | p.Derive] = []
    while isinstance(plan, p.Filter | p.Derive) and plan != below:
        steps.append(plan)
        plan = plan.source
    columns: dict[str, p.RowExpr] = {name: p.Column(name) for name in schema_of(plan)}
    conditions: list[p.RowExpr] = []
    for step in reversed(steps):
        if isinstance(step, p.Filter):
            conditions.append(replaced(step.condition, columns))
        else:
            columns = {name: replaced(expr, columns) for name, expr in step.columns}
    return plan, columns, conditions


MOST_JOINED = 100  # of a column of public rows, for it to be written as an expression


def joined_columns(plan: p.Plan) -> dict[str, p.RowExpr]:
    """Of a join with public rows that stand in the plan: their columns, as functions of the key that is joined on.

    Where no two of these rows have one key, a row's partner follows from its key, and so does what it has there.
    """
    if not isinstance(plan, p.Join) or plan.kind not in ("inner", "left") or plan.person or plan.most is not None:
        return {}
    table = plan.right.source if isinstance(plan.right, p.Known) else plan.right
    if not isinstance(table, p.Listed) or len(plan.on) != 1:
        return {}
    ((mine, theirs),) = plan.keys
    names = [name for name, _ in table.columns]
    keys = [row[names.index(theirs)] for row in table.rows]
    if len(set(keys)) < len(keys) or None in keys:
        return {}
    result: dict[str, p.RowExpr] = {}
    for at, name in enumerate(names):
        values = list(dict.fromkeys(row[at] for row in table.rows if row[at] is not None))
        if name in schema_of(plan.left) or len(values) > MOST_JOINED:
            continue
        expr: p.RowExpr = p.Constant(None)
        for value in values:
            those = tuple(p.Constant(key) for key, row in zip(keys, table.rows, strict=True) if row[at] == value)
            expr = p.Apply("if", (p.Apply("in", (p.Column(mine), *those)), p.Constant(value), expr))
        result[name] = expr
    return result


def _complete_columns(plan: p.Plan) -> dict[str, p.RowExpr]:
    """Of a join that keeps all rows of its first side alone, and of a union, the columns that are never missing in the
    tables that it is made from."""
    match plan:
        case p.Join(kind="inner" | "left", left=left):
            sources: tuple[p.Plan, ...] = (left,)
        case p.Union(sources=sources):
            pass
        case p.Filter():
            sources = (plan,)
        case _:
            return {}
    first, *others = map(_constants, sources)
    names = [name for name in first if all(name in other for other in others)]
    return {name: p.Apply("coalesce", (p.Column(name), first[name])) for name in names}


def _constants(plan: p.Plan) -> dict[str, p.Constant]:
    """What stands in a missing cell of each column that is never missing, through filters and derived columns."""
    below, columns, _ = seen_through(plan)
    inner, result = {name: p.Column(name) for name in schema_of(below)} | _complete_columns(below), {}
    for name, expr in columns.items():
        match replaced(expr, inner):
            case p.Apply("coalesce", (*_, p.Constant(value) as last)) if value is not None:
                result[name] = last
    return result


def replaced(expr: p.RowExpr, columns: Mapping[str, p.RowExpr]) -> p.RowExpr:
    """An expression with each column replaced by what it is computed from."""
    if isinstance(expr, p.Column):
        return columns[expr.name]
    if isinstance(expr, p.Constant):
        return expr
    result = p.Apply(expr.op, tuple(replaced(arg, columns) for arg in expr.args))
    check_depth(result)
    return result
