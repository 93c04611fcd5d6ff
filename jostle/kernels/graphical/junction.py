"""Exact inference on junction trees: the log-partition function and the marginals of every clique; and loopy
propagation.

Variables are eliminated greedily (by least fill-in and by least table; the cheaper order wins); the maximal tables met
on the way are the bags of a tree. A plan is public, found from sizes and cliques alone, and kept. Koller and Friedman,
*Probabilistic Graphical Models*, 2009, chapters 9 and 10. Upwards each bag becomes a conditional table (its own
variables given those it shares with its parent), with messages kept as logarithms; downwards conditionals times
marginals give the joint tables. Nothing underflows but probabilities that are 0 in doubles. Potentials may be −∞
(evidence).

Where exact tables cannot be held: messages between cliques and variables, damped by half; exact on a tree of cliques
that share single variables, an approximation elsewhere (on a third-order chain with strong potentials edges are off by
0.4 in ℓ₁). Yedidia, Freeman and Weiss, *Constructing free-energy approximations and generalized belief propagation*,
2005.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import Any

import numpy as np

from jostle.kernels import KernelError
from jostle.kernels.arrays import Floats, along

MOST_CELLS = 2**25
"""The most cells of all bags together: three arrays of doubles of that size are 800 MB."""

MOST_AXES = 32
"""The most axes of one table; only variables of a single value reach so many within `MOST_CELLS`."""

Clique = tuple[int, ...]


@dataclass(frozen=True)
class Home:
    """The place of a clique's table: its bag, and the maps from and to it.

    A table in the clique's order is transposed by `order` and reshaped to `spread` to broadcast over the bag; of the
    bag's table, of `axes` axes, those at `remaining` stay, in the clique's order.
    """

    bag: int
    order: tuple[int, ...]
    spread: tuple[int, ...]
    axes: tuple[int, ...]
    remaining: tuple[int, ...]


@dataclass(frozen=True)
class Bag:
    """Variables of a table: `own` of them first, then those shared with the parent, which comes later.

    `adding`: what its table is the sum of, cliques by their index and children as −1 − index, small sums first.
    """

    variables: Clique
    shape: tuple[int, ...]
    own: int
    above: Home | None  # where the shared variables stand in the parent
    adding: tuple[int, ...]

    @property
    def rows(self) -> int:
        """The number of states of its own variables."""
        return math.prod(self.shape[: self.own])


@dataclass(frozen=True)
class JunctionTree:
    """A junction tree of `bags`, children before parents, with a home for every clique."""

    sizes: tuple[int, ...]
    cliques: tuple[Clique, ...]
    bags: tuple[Bag, ...]
    homes: tuple[Home, ...]

    @cached_property
    def cells(self) -> int:
        return sum(math.prod(bag.shape) for bag in self.bags)

    @property
    def treewidth(self) -> int:
        return max(len(bag.variables) for bag in self.bags) - 1


def cells_needed(sizes: Sequence[int], cliques: Sequence[Clique]) -> float:
    """The cells of all tables that exact inference would hold, a double: they may be more than can be counted."""
    return sum(_cells(sizes, bag) for bag in _bags(tuple(sizes), tuple(cliques)))


def _cells(sizes: Sequence[int], bag: Clique) -> float:
    return math.prod(float(sizes[v]) for v in bag)


@lru_cache(maxsize=256)
def plan(sizes: tuple[int, ...], cliques: tuple[Clique, ...], most: int = MOST_CELLS) -> JunctionTree:
    """The junction tree of `cliques` over variables of `sizes`; ValueError where it holds more than `most` cells."""
    bags = _bags(sizes, cliques)
    need = sum(_cells(sizes, bag) for bag in bags)
    if need > most:
        widest = max(bags, key=lambda bag: _cells(sizes, bag))
        raise KernelError(
            f"exact inference over these cliques needs tables of {need:,.0f} cells, the largest over {len(widest)} "
            f"variables, and {most:,} can be held; use fewer cliques or coarser values, or loopy inference"
        )
    if any(len(bag) > MOST_AXES for bag in bags):
        raise KernelError(f"exact inference over these cliques needs a table over more than {MOST_AXES} variables")
    tree = _tree(bags)
    variables: list[Clique] = []
    owned: list[int] = []
    for bag, parent in tree:
        shared = set(tree[parent][0]) if parent is not None else set()
        own = tuple(v for v in bag if v not in shared)
        variables.append(own + tuple(v for v in bag if v in shared))
        owned.append(len(own))
    above = [
        _home(parent, members[many:], variables[parent], sizes) if parent is not None else None
        for (_, parent), members, many in zip(tree, variables, owned, strict=True)
    ]
    homes = []
    for clique in cliques:
        fitting = [i for i, v in enumerate(variables) if set(clique) <= set(v)]
        best = min(fitting, key=lambda i: math.prod(sizes[x] for x in variables[i]))
        homes.append(_home(best, clique, variables[best], sizes))
    full = []
    for i, members in enumerate(variables):
        parts = {c: home.spread for c, home in enumerate(homes) if home.bag == i}
        parts |= {-1 - j: home.spread for j, home in enumerate(above) if home is not None and home.bag == i}
        full.append(Bag(members, tuple(sizes[x] for x in members), owned[i], above[i], _adding(parts)))
    return JunctionTree(sizes, cliques, tuple(full), tuple(homes))


def _adding(parts: dict[int, tuple[int, ...]]) -> tuple[int, ...]:
    """An order in which the sum of broadcast tables grows slowly."""
    left, order = dict(parts), []
    reach: tuple[int, ...] | None = None
    while left:

        def size(at: int, reach: tuple[int, ...] | None = reach) -> int:
            return math.prod(max(a, b) for a, b in zip(reach or left[at], left[at], strict=True))

        at = min(left, key=lambda i: (size(i), i))
        spread = left.pop(at)
        reach = tuple(max(a, b) for a, b in zip(reach or spread, spread, strict=True))
        order.append(at)
    return tuple(order)


def _home(at: int, clique: Clique, bag: Clique, sizes: tuple[int, ...]) -> Home:
    order = tuple(sorted(range(len(clique)), key=lambda i: bag.index(clique[i])))
    spread = tuple(sizes[v] if v in clique else 1 for v in bag)
    return Home(at, order, spread, tuple(range(len(bag))), tuple(bag.index(v) for v in clique))


# Elimination ---------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def _bags(sizes: tuple[int, ...], cliques: tuple[Clique, ...]) -> tuple[Clique, ...]:
    """The maximal elimination tables, in order of elimination, by the cheaper of the two greedy orders."""
    graph: list[set[int]] = [set() for _ in sizes]
    for clique in cliques:
        for v in clique:
            graph[v] |= set(clique) - {v}

    def fill(g: list[set[int]], v: int) -> float:
        around = list(g[v])
        return sum(1 for i, a in enumerate(around) for b in around[i + 1 :] if b not in g[a])

    def table(g: list[set[int]], v: int) -> float:
        return math.prod(float(sizes[x]) for x in g[v]) * sizes[v]

    def cost(bags: tuple[Clique, ...]) -> float:
        return sum(_cells(sizes, bag) for bag in bags)

    return min((_eliminated(graph, first, table) for first in (fill, table)), key=cost)


def _eliminated(
    graph: list[set[int]], first: Callable[[list[set[int]], int], float], then: Callable[[list[set[int]], int], float]
) -> tuple[Clique, ...]:
    g = [set(n) for n in graph]
    left = set(range(len(g)))
    tables: list[frozenset[int]] = []
    costs = {x: (first(g, x), then(g, x), x) for x in left}
    while left:
        v = min(left, key=costs.__getitem__)
        around = g[v]
        tables.append(frozenset(around | {v}))
        for a in around:
            g[a] |= around - {a}
            g[a].discard(v)
        left.discard(v)
        for x in around.union(*(g[a] for a in around)):  # those whose neighbours, or edges among these, are others now
            costs[x] = (first(g, x), then(g, x), x)
    # A table within another is no bag of its own. An earlier one can only hold a later one, never lie within it.
    maximal: list[frozenset[int]] = []
    for one in tables:
        if not any(one <= other for other in maximal):
            maximal.append(one)
    return tuple(tuple(sorted(one)) for one in maximal)


def _tree(bags: tuple[Clique, ...]) -> list[tuple[Clique, int | None]]:
    """The bags with their parents, children before parents: a spanning forest of largest separators (Prim).

    Over the maximal cliques of a chordal graph such a tree has the running intersection property (Jensen and Jensen
    1994).
    """
    sets = [set(bag) for bag in bags]
    waiting = dict.fromkeys(range(len(bags)), (0, -1))  # how much is shared with the tree so far, and with which bag
    tree: list[tuple[int, int]] = []
    while waiting:
        at = max(waiting, key=lambda i: (waiting[i][0], -i))
        shared, parent = waiting.pop(at)
        tree.append((at, parent if shared else -1))
        for i, link in waiting.items():
            waiting[i] = max(link, (len(sets[i] & sets[at]), at))
    place = {at: len(tree) - 1 - i for i, (at, _) in enumerate(tree)}
    return [(bags[at], place[parent] if parent >= 0 else None) for at, parent in reversed(tree)]


@dataclass(frozen=True, eq=False)
class Calibrated:
    """`log_partition` A(θ); a conditional table for each bag, (own states, shared states)."""

    plan: JunctionTree
    log_partition: float
    conditionals: tuple[Floats, ...]

    def joints(self) -> list[Floats]:
        """The probability table of every bag, in its shape; each sums to 1."""
        tables: list[Floats] = [np.empty(0)] * len(self.plan.bags)
        for i in reversed(range(len(tables))):
            bag, conditional = self.plan.bags[i], self.conditionals[i]
            if bag.above is not None:
                conditional = conditional * bag_sum(tables[bag.above.bag], bag.above).reshape(1, -1)
            tables[i] = conditional.reshape(bag.shape)
        return tables

    def marginals(self) -> list[Floats]:
        """The probability table of every clique, in the clique's order."""
        tables = self.joints()
        return [bag_sum(tables[home.bag], home) for home in self.plan.homes]


def calibrate(plan: JunctionTree, potentials: Sequence[Floats]) -> Calibrated:
    """`potentials`: log-potentials, one array a clique, in the clique's order."""
    log_partition = 0.0
    conditionals: list[Floats] = []
    messages: list[Floats] = []
    for bag in plan.bags:
        table: Floats | float = 0.0
        for part in bag.adding:
            table = table + (_spread(potentials[part], plan.homes[part]) if part >= 0 else messages[-1 - part])
        logs = np.broadcast_to(np.asarray(table, dtype=np.float64), bag.shape).reshape(bag.rows, -1)
        top = logs.max(axis=0)
        top = np.where(np.isfinite(top), top, 0.0)
        conditional = np.exp(logs - top)
        mass = conditional.sum(axis=0)
        conditional /= np.where(mass > 0, mass, 1.0)
        conditionals.append(conditional)
        with np.errstate(divide="ignore"):
            message = top + np.log(mass)
        if bag.above is None:
            log_partition += float(message[0])
            messages.append(message)
        else:
            messages.append(_spread(message.reshape(bag.shape[bag.own :]), bag.above))
    return Calibrated(plan, log_partition, tuple(conditionals))


def bag_sum(table: Floats, home: Home) -> Floats:
    """A clique's table out of its bag's."""
    out: Floats = np.einsum(table, home.axes, home.remaining)  # type: ignore[arg-type]
    return out


def _spread(table: Floats, home: Home) -> Floats:
    return table.transpose(home.order).reshape(home.spread)


def propagate(
    sizes: Sequence[int], cliques: Sequence[Clique], potentials: Sequence[Floats], rounds: int = 200,
    tolerance: float = 1e-8,
) -> tuple[float, list[Floats]]:  # fmt: skip
    """(log-partition, a table a clique), after at most `rounds` rounds or when no message moves by `tolerance`."""
    to_variable = [[np.zeros(sizes[v]) for v in clique] for clique in cliques]
    into: list[Floats] = [np.zeros(size) for size in sizes]
    for _ in range(rounds):
        change = 0.0
        for clique, potential, messages in zip(cliques, potentials, to_variable, strict=True):
            whole = potential
            for axis, v in enumerate(clique):
                whole = whole + along(into[v] - messages[axis], axis, len(clique))
            for axis, v in enumerate(clique):
                new = _normal(_sum_but(whole, axis) - (into[v] - messages[axis]))
                step = 0.5 * (new - messages[axis])
                change = max(change, float(np.abs(step).max()))
                messages[axis] = messages[axis] + step
                into[v] = into[v] + step
        if change < tolerance:
            break
    return _bethe(sizes, cliques, potentials, to_variable, into)


def _bethe(
    sizes: Sequence[int], cliques: Sequence[Clique], potentials: Sequence[Floats], to_variable: list[list[Floats]],
    into: list[Floats],
) -> tuple[float, list[Floats]]:  # fmt: skip
    beliefs = []
    log_partition = 0.0
    degree = [0] * len(sizes)
    for clique, potential, messages in zip(cliques, potentials, to_variable, strict=True):
        whole = potential
        for axis, v in enumerate(clique):
            whole = whole + along(into[v] - messages[axis], axis, len(clique))
            degree[v] += 1
        belief = np.exp(whole - whole.max())
        belief /= belief.sum()
        beliefs.append(belief)
        log_partition += float((belief * potential).sum()) + _entropy(belief)
    for v, times in enumerate(degree):
        single = np.exp(into[v] - into[v].max())
        log_partition -= (times - 1) * _entropy(single / single.sum())
    return log_partition, beliefs


def _entropy(p: Floats) -> float:
    positive = p[p > 0]
    return -float((positive * np.log(positive)).sum())


def _sum_but(logs: Floats, axis: int) -> Floats:
    rows = np.moveaxis(logs, axis, 0).reshape(logs.shape[axis], -1)
    top = rows.max(axis=1)
    out: Floats = top + np.log(np.exp(rows - top[:, None]).sum(axis=1))
    return out


def _normal(message: Floats) -> Floats:
    out: Floats = message - message.max()
    return out


class PairTables:
    """`table(clique)`: the probabilities over a few variables, exactly; all pairs are known beforehand.

    Within a bag a pair's table is a margin of the bag's. From there the joint table of a variable and a separator goes
    on to every other bag: P(a, U) = Σ_S P(a, S)·P(U | S), once for each variable and edge.
    """

    def __init__(self, calibrated: Calibrated) -> None:
        self._bags = [bag.variables for bag in calibrated.plan.bags]
        self._joints = calibrated.joints()
        self._edges: list[list[tuple[int, Clique]]] = [[] for _ in self._bags]
        for i, bag in enumerate(calibrated.plan.bags):
            if bag.above is not None:
                shared = bag.variables[bag.own :]
                self._edges[i].append((bag.above.bag, shared))
                self._edges[bag.above.bag].append((i, shared))
        self._within: dict[int, list[int]] = {}
        for i in sorted(range(len(self._bags)), key=lambda i: self._joints[i].size):
            for v in self._bags[i]:
                self._within.setdefault(v, []).append(i)
        self._margins: dict[tuple[int, Clique], Floats] = {}
        self._conditionals: dict[tuple[int, Clique, Clique], tuple[Clique, Floats]] = {}
        self._pairs: dict[Clique, Floats] = {}
        for v in sorted(self._within):
            self._spread(v)

    def table(self, clique: Clique) -> Floats:
        """Of a clique in the order of its variables."""
        if clique in self._pairs:
            return self._pairs[clique]
        for i in self._within[clique[0]]:
            if set(clique) <= set(self._bags[i]):
                return self._margin(i, clique)
        for at, v in enumerate(clique):
            if not any((min(v, u), max(v, u)) in self._pairs for u in clique):
                rest, alone = self.table(clique[:at] + clique[at + 1 :]), self.table((v,))
                return np.moveaxis(np.multiply.outer(rest, alone), -1, at)
        members, table = self._beyond(self._within[clique[0]][0], -1, (), clique)
        return table.transpose([members.index(v) for v in clique])

    def _beyond(self, bag: int, above: int, shared: Clique, of: Clique) -> tuple[Clique, Floats]:
        """(those of `of` from this bag on, away from `above`; P(`shared`, those) / P(`shared`) in this order)."""
        ways = ((self._beyond(j, bag, s, of), s) for j, s in self._edges[bag] if j != above)
        parts = [(s, far, table) for (far, table), s in ways if far]
        here = tuple(v for v in self._bags[bag] if v in of and v not in shared)
        if not here and not parts:
            return (), np.ones(())
        needed = tuple(dict.fromkeys((*here, *(v for s, _, _ in parts for v in s))))
        both, conditional = self._conditional(bag, shared, needed)
        beyond = (*here, *(v for _, far, _ in parts for v in far))
        place = {v: i for i, v in enumerate(dict.fromkeys((*both, *beyond)))}
        tables, axes = [conditional, *(t for _, _, t in parts)], [both, *((*s, *far) for s, far, _ in parts)]
        return beyond, _einsum(tables, [[place[v] for v in c] for c in axes], [place[v] for v in (*shared, *beyond)])

    def _margin(self, bag: int, clique: Clique) -> Floats:
        at = (bag, clique)
        if at not in self._margins:
            axes = [self._bags[bag].index(v) for v in clique]
            self._margins[at] = _einsum([self._joints[bag]], [list(range(len(self._bags[bag])))], axes)
        return self._margins[at]

    def _conditional(self, bag: int, condition: Clique, of: Clique) -> tuple[Clique, Floats]:
        """(its variables, `condition` first; P(of | given))."""
        at = (bag, condition, of)
        if at not in self._conditionals:
            both = condition + tuple(v for v in of if v not in condition)
            joint, below = self._margin(bag, both), self._margin(bag, condition)
            self._conditionals[at] = (
                both, joint / np.maximum(below, 1e-300).reshape(below.shape + (1,) * (joint.ndim - below.ndim))
            )  # fmt: skip
        return self._conditionals[at]

    def _spread(self, a: int) -> None:
        """The tables of `a` with every later variable that it is connected with."""
        visited, paired = set(self._within[a]), {a}
        waiting: list[tuple[int, Clique, Floats]] = []

        def visit(bag: int, with_a: Callable[[Clique], Floats]) -> None:
            for b in self._bags[bag]:
                if b not in paired:
                    paired.add(b)
                    if a < b:
                        self._pairs[a, b] = with_a((b,))
            for j, shared in self._edges[bag]:
                if j not in visited:
                    visited.add(j)
                    waiting.append((j, shared, with_a(shared)))

        for i in self._within[a]:
            visit(i, partial(self._joint, i, a))
        while waiting:
            i, condition, joint = waiting.pop()
            visit(i, partial(self._carried, i, condition, joint))

    def _joint(self, bag: int, a: int, of: Clique) -> Floats:
        return self._margin(bag, (a, *of))

    def _carried(self, bag: int, condition: Clique, joint: Floats, of: Clique) -> Floats:
        """P(a, of) of P(a, given), `a` being outside of the bag and first."""
        both, conditional = self._conditional(bag, condition, of)
        place = {v: i + 1 for i, v in enumerate(both)}
        return _einsum(
            [joint, conditional], [[0, *(place[v] for v in condition)], [place[v] for v in both]],
            [0, *(place[v] for v in of)],
        )  # fmt: skip


def _einsum(tables: list[Floats], axes: list[list[int]], out: list[int]) -> Floats:
    operands: list[Any] = [part for pair in zip(tables, axes, strict=True) for part in pair]
    result: Floats = np.einsum(*operands, out)
    return result
