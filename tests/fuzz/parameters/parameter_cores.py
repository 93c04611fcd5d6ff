
"""The exact parts alone, many times faster than through the language: what a row adds, from hostile parameters.

For each set of parameters something is built (a refusal is one of the errors that the language turns into a message)
and evaluated over private rows or counts. Whatever was built

* fails on no row and no number of rows;
* gives a row the same whole numbers in any batch and any order;
* keeps each row within the norm, or moves by one row more no further than the sensitivity, that noise is scaled to.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
from parameter_calls import ATTRIBUTES, CONTRIBUTIONS, KERNELS, SLOPES, WEIGHTS, block
from parameter_oracle import Fault
from parameter_values import Values
from parameter_worlds import CUBES

from jostle.diagnostics import Refusal
from jostle.integers import fixed_width
from jostle.kernels import rowprograms
from jostle.kernels.classifiers.fits import binned_model, branched_model, majority_model, naive_bayes_model
from jostle.kernels.classifiers.treemodel import tree_leaf, tree_model, tree_node
from jostle.kernels.rowprograms.decisions import right_count
from jostle.privacy.kernel.handles import Cube
from jostle.privacy.mechanisms.linear import Strategy
from jostle.privacy.rows.factored import coded, gradient_scores
from jostle.privacy.rows.norms import BITS, GRID, clipped, whole_frames, whole_weights, within_ball
from jostle.privacy.scores import cells as cell_scores
from jostle.run.values import Record

ROWS = 24
UNIT = 2**BITS
REFUSED = (Refusal, ValueError, TypeError, ArithmeticError, LookupError, AttributeError, MemoryError)
"""What the language turns into a message where something is built of parameters."""

Floats = np.ndarray
Check = Callable[[Values, Any], list[Fault]]


class Data:
    """Private rows in units of the ball for some numbers of columns, codes of rows, and counts, from a seed."""

    def __init__(self, seed: int, cubes: dict[str, Cube]) -> None:
        rng, self.cubes = np.random.default_rng(seed), cubes
        self.units = {}
        for d in (1, 2, 3, 28):
            rows = rng.normal(0, 0.7, (ROWS, d))
            rows[::5] = rng.choice([0.0, 1.0, -1.0, 0.5, 16383 / 16384, 5.0], (len(rows[::5]), 1))  # equal coordinates
            rows[1::5] = rows[1]
            self.units[d] = {norm: within_ball(rows, 1.0, norm).astype(float) for norm in ("l2", "sup")}
        self.codes = {n: rng.integers(-1, len(v), ROWS) for n, v in ({"c": ["a", "b"]} | ATTRIBUTES).items()}
        self.cells = {}
        for name, (shape, _) in CUBES.items():
            most = rng.choice([1, 3, 20, 2**31, 2**45])
            self.cells[name] = rng.integers(0, most + 1, shape) * rng.integers(0, 2, shape)
        self.orders = [rng.permutation(ROWS) for _ in range(3)]


def batches(data: Data, v: Values) -> list[np.ndarray]:
    """Places of rows: all in another order, and some of them, one or none."""
    order = v.choice(data.orders)
    return [order, order[: v.choice((0, 1, 1, 2, 5, 11))]]


def row_alike(
    v: Values, data: Data, rows: Floats, evaluate: Callable[[Floats], list[Floats]]
) -> tuple[list[Floats], list[Fault]]:
    """What all rows together are given, and a fault where one is given something else in another batch."""
    together = evaluate(rows)
    for places in batches(data, v):
        for one, other in zip(together, evaluate(np.ascontiguousarray(rows[:, places])), strict=True):
            if not np.array_equal(one[..., places], other):
                return together, [Fault("orders or batches give other numbers", "")]
    return together, []


def moments(v: Values, data: Data) -> list[Fault]:
    d = v.choice((1, 2, 2, 3, 28))
    name = v.choice(WEIGHTS)
    try:
        built = rowprograms.WEIGHTS[name](d, **v.perhaps(KERNELS[name](v, d)))
    except REFUSED:
        return []

    def evaluate(units: Floats) -> list[Floats]:
        gamma, *frames = built.program(units)
        weights = whole_weights(gamma)
        return [weights, *([whole_frames(frames[0], frames[1], built.radius)] if frames else [])]

    (weights, *views), faults = row_alike(v, data, data.units[d][v.choice(("l2", "sup"))], evaluate)
    if (weights < 0).any() or (weights != np.rint(weights)).any() or (weights.sum(axis=0) > GRID).any():
        faults.append(Fault("weights above one", f"{weights.sum(axis=0).max()}"))
    if views and ((views[0] != np.rint(views[0])).any() or ((views[0] ** 2).sum(axis=1) > GRID**2).any()):
        faults.append(Fault("frames outside the ball", ""))
    return faults


def sums(v: Values, data: Data) -> list[Fault]:
    d = v.choice((1, 2, 2, 3))
    name, norm = v.choice(CONTRIBUTIONS), v.choice(("l1", "l2", "sup"))
    bound = v.choice((1.0, 0.3, 7.0, 1e-90, 1e90))
    try:
        built = rowprograms.CONTRIBUTIONS[name](d, **v.perhaps(KERNELS[name](v, d)))
    except REFUSED:
        return []
    if built.size > 2**12:
        return []
    scale = 2.0**-built.bits / bound
    (units,), faults = row_alike(
        v, data, data.units[d][v.choice(("l2", "sup"))], lambda rows: [clipped(built.program(rows)[0] * scale, norm)]
    )
    big = units.astype(object)
    size = {"l1": abs(big).sum(axis=0), "l2": (big * big).sum(axis=0), "sup": abs(big).max(axis=0)}[norm]
    if (size > (UNIT**2 if norm == "l2" else UNIT)).any():
        faults.append(Fault("contributions outside the norm", f"{norm} {size.max()}"))
    return faults


def slopes(v: Values, data: Data) -> list[Fault]:
    d, name = v.choice((1, 2, 3)), v.choice(SLOPES)
    bound = v.choice((1.0, 0.3, 7.0, 1e-90, 1e90))
    try:
        built = rowprograms.GRADIENTS[name](d, **v.perhaps(KERNELS[name](v, d)))
    except REFUSED:
        return []
    units = data.units[d]["sup"]
    at = v.randint(1, 9)

    def summed(places: Any) -> Floats:
        return fixed_width(gradient_scores(coded([units[:, places]], built.values), built, bound))

    order = v.choice(data.orders)
    whole, one, rest, none = (summed(p) for p in (order, order[at : at + 1], np.delete(order, at), order[:0]))
    if (whole != one + rest).any() or none.any():
        return [Fault("sums are not sums of rows", "")]
    return [Fault("a score moves by more than the bound", "")] if (np.abs(one) > UNIT).any() else []


def classifiers(v: Values, data: Data) -> list[Fault]:
    classes = v.choice((["a", "b"], ["b", "a"], ["a", "b", "other"]))
    names = v.sample(list(ATTRIBUTES), v.randint(1, 3))
    attributes = [{"name": n, "values": ATTRIBUTES[n]} for n in names]
    tables = [v.table(len(classes), len(a["values"])) for a in attributes]
    kind = v.randrange(4)
    try:
        classes, attributes, tables = (v.perhaps(x) if v.chance(0.4) else x for x in (classes, attributes, tables))
        if kind == 0:
            model: Any = naive_bayes_model(classes, attributes, tables)
        elif kind == 1:
            model = branched_model(attributes[0], [majority_model(classes, t) for t in np.transpose(tables[0])])
        elif kind == 2:
            model = binned_model(
                naive_bayes_model(classes, attributes, tables), {names[0]: v.perhaps(sorted(v.table(3)))}
            )
        else:
            leaves = [tree_leaf(column) for column in np.transpose(tables[0])]
            root = tree_node(attributes[0]["name"], attributes[0]["values"], leaves)
            model = tree_model(
                classes, [root, leaves[0]], v.choice(("leaf", "margin")), 1.0, v.choice(("votes", "shares"))
            )
        values = {n: ({"c": ["a", "b"]} | ATTRIBUTES)[n] for n in (*model.attributes, "c")}
        built = right_count(model.scores, model.classes, values, "c")
    except REFUSED:
        return []
    rows = np.stack([data.codes[n] for n in values]).astype(float)
    (numbers,), faults = row_alike(v, data, rows, lambda codes: list(built.program(*codes)))
    if not np.isin(numbers, (0.0, 1.0)).all():
        faults.append(Fault("a row counts more than once", ""))
    return faults


def _more(v: Values, cells: Floats) -> Floats:
    more = cells.copy()
    more[tuple(v.randrange(side) for side in cells.shape)] += 1
    return more


def strategies(v: Values, data: Data) -> list[Fault]:
    name = v.choice(list(CUBES))
    cells = data.cells[name]
    blocks = v.perhaps([Record(block(v, cells.shape)) for _ in range(v.randint(1, 3))])
    if not isinstance(blocks, (list, tuple)) or not all(isinstance(b, dict) for b in blocks):
        return []
    try:
        built = Strategy(blocks, cells.shape)
        l1, l2 = built.norms
    except REFUSED:
        return []
    before, after = (
        np.concatenate([np.ravel(a) for a in built.answers(x)]).astype(object) for x in (cells, _more(v, cells))
    )
    gap = after - before
    if abs(gap).sum() > l1 or (gap * gap).sum() > l2 * l2 or abs(after).max(initial=0) >= 2**62:
        return [Fault("a strategy's answers move by more than its norms", f"{abs(gap).sum()} {l1} {l2}")]
    return []


def selections(v: Values, data: Data) -> list[Fault]:
    """Scores of counts: each within its sensitivity."""
    kind, name = v.choice(("misfit", "closeness", "distance", "plain")), v.choice(list(CUBES))
    cube, cells = data.cubes[name], data.cells[name]
    try:
        one = _score(v, kind, cube, cells.shape)
    except REFUSED:
        return []
    before, after = (np.array(_exact(one, x), dtype=object) for x in (cells, _more(v, cells)))
    gap = after - before
    if abs(gap).max() > one.sensitivity:
        return [
            Fault("a score moves by more than its sensitivity", f"{one.rule.name} {abs(gap).max()} {one.sensitivity}")
        ]
    return [Fault("a score is not monotone", one.rule.name)] if one.monotone and (gap < 0).any() else []


CELL_SCORES = [name for name, value in vars(cell_scores).items() if isinstance(value, cell_scores.CellScore)]


def _score(v: Values, kind: str, cube: Cube, shape: tuple[int, ...]) -> Any:
    size = int(np.prod(shape))
    if kind == "plain":
        return getattr(cell_scores, v.choice(CELL_SCORES))(cube)
    if kind == "distance":
        return cell_scores.distance(
            cube, np.asarray(v.perhaps(v.table(size)), dtype=float), v.choice((0.0, v.number(), 1e300, np.nan))
        )
    blocks = [b for b in (block(v, shape) for _ in range(3)) if b["kind"] in ("boxes", "groups")]
    said = [{k: np.asarray(x) if isinstance(x, list) else x for k, x in b.items()} for b in blocks]
    said = [b for b in said if b["kind"] == "boxes" or (b["labels"] >= 0).all()]
    if kind == "closeness":
        many = sum(len(b["lows"]) if b["kind"] == "boxes" else int(b["size"]) for b in said)
        return cell_scores.closeness(cube, said, np.asarray(v.perhaps(v.table(many)), dtype=float))
    return cell_scores.misfit(cube, said, np.asarray(v.perhaps(v.table(size)), dtype=float))


def _exact(one: Any, cells: Floats) -> list[int]:
    reader = SimpleNamespace(cells=lambda cube: cells, units=lambda cube: cells)
    numbers: list[int] = one.rule.exact(reader, one)
    return numbers


CORES: dict[str, tuple[float, Check]] = {
    "moments": (5, moments), "sums": (5, sums), "slopes": (3, slopes), "classifiers": (3, classifiers),
    "strategies": (4, strategies), "selections": (3, selections),
}  # fmt: skip


def core(v: Values, data: Data, only: str | None = None) -> tuple[str, list[Fault]]:
    """One set of parameters of one family, and its faults."""
    name = only or v.choices(list(CORES), [weight for weight, _ in CORES.values()])[0]
    try:
        with np.errstate(all="ignore"):
            return name, CORES[name][1](v, data)
    except Exception as error:  # whatever it is: it came after something had been built
        return name, [Fault("a failure on rows", f"{type(error).__name__}: {error}")]
