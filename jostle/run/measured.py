"""Functions that measure: noisy vectors, scores, selections, the partition of DAWA; and workloads on public data.

Each takes its amount from `… with epsilon e` or `epsilon = e`, or spends all that is left of the allotment it
stands in, as a bare query does. On public handles each is exact and free.
"""

from __future__ import annotations

from typing import Any

from jostle.amounts import as_float, quanta
from jostle.diagnostics import refuse
from jostle.privacy import measure, scores, transform
from jostle.privacy.handles import Cube, Exposures, Handle, Score, Scores, Table, handles_in
from jostle.privacy.measures import Amount
from jostle.run.faults import exposures_of, private_value
from jostle.run.values import Builtin, Grouped, JSet, Record, is_number, is_sequence, kind_name


def amount_for(interp: Any, exposures: Exposures, epsilon: Any) -> Amount | None:
    """The amount of a measurement: given, or all that is left; validated also where the data are public."""
    for handle in handles_in(epsilon):
        raise refuse("PrivateValue", f"an amount is public, and this comes from `{handle.exposures[0].source.name}`")
    if epsilon is not None and not (isinstance(epsilon, float) and epsilon == float("inf") and not exposures):
        given = Amount("epsilon", quanta(epsilon))
        return given if exposures else None
    left: Amount | None = interp.kernel.bare_amount(exposures) if exposures else None
    return left


def _laplace(value: Any, strategy: Any = None, *, epsilon: Any = None, via: str | None = None, at: Any) -> Any:
    """`laplace(cube)`, `laplace(cube, strategy)`, `laplace(score)`."""
    interp, span = at
    amount = amount_for(interp, value.exposures, epsilon) if isinstance(value, Handle) else None
    if isinstance(value, Score):
        return measure.noisy_score(interp.kernel, value, amount, via, span)
    if is_number(value) and strategy is None:
        return value  # a public score: exact and free
    if not isinstance(value, Cube):
        raise refuse("TypeError", f"this measures a cube or a score, not {kind_name(value)}")
    if strategy is None:
        import numpy as np

        cells = [{"kind": "groups", "labels": np.arange(value.size), "size": value.size, "weight": 1.0}]
        (noisy,), _ = measure.noisy_answers(interp.kernel, value, cells, amount, via, span)
        return noisy.reshape(value.shape)
    blocks = strategy["blocks"] if isinstance(strategy, dict) and "blocks" in strategy else strategy
    if not isinstance(blocks, (list, tuple)) or not all(isinstance(b, dict) for b in blocks):
        raise refuse("TypeError", f"a strategy comes from a kernel, not from {kind_name(strategy)}")
    answers, scale = measure.noisy_answers(interp.kernel, value, blocks, amount, via, span)
    return Record(answers=answers, scale=scale)


def _gaussian(value: Any, strategy: Any = None, *, epsilon: Any = None, via: str | None = None, at: Any) -> Any:
    return _laplace(value, strategy, epsilon=epsilon, via=via or "gaussian", at=at)


def _exp_mech(domain: Any, utilities: Any, epsilon: Any = None, *, at: Any) -> Any:
    """The element of `domain` with (nearly) the largest utility; public utilities cost nothing."""
    interp, span = at
    items = list(domain) if isinstance(domain, JSet) or is_sequence(domain) else None
    if items is None:
        raise refuse("TypeError", f"`exp_mech` takes a set or list to choose from, not {kind_name(domain)}")
    return items[_choose(interp, utilities, len(items), epsilon, span)]


def _noisy_max(utilities: Any, epsilon: Any = None, *, at: Any) -> float:
    """The index of the largest score."""
    interp, span = at
    length = utilities.length if isinstance(utilities, Scores) else len(_listed(utilities))
    return float(_choose(interp, utilities, length, epsilon, span))


def _choose(interp: Any, utilities: Any, length: int, epsilon: Any, span: Any) -> int:
    if isinstance(utilities, Scores):
        if utilities.length != length:
            raise refuse("ValueError", f"{utilities.length} scores for {length} elements")
        amount = amount_for(interp, utilities.exposures, epsilon)
        return measure.noisy_argmax(interp.kernel, [utilities], amount, span)
    listed = _listed(utilities)
    if len(listed) != length:
        raise refuse("ValueError", f"{len(listed)} utilities for {length} elements")
    if all(is_number(u) for u in listed):
        public = None
        if epsilon is not None:
            public = as_float(quanta(epsilon)) if epsilon != float("inf") else None
        return measure.choose_publicly([float(u) for u in listed], public)
    if not all(isinstance(u, Score) for u in listed):
        raise refuse("TypeError", "utilities are all public numbers or all scores")
    amount = amount_for(interp, exposures_of(listed), epsilon)
    return measure.noisy_argmax(interp.kernel, listed, amount, span)


def _listed(value: Any) -> list[Any]:
    if isinstance(value, Grouped):
        value = value.only()
    if isinstance(value, JSet) or is_sequence(value):
        return list(value)
    raise refuse("TypeError", f"utilities are a list, not {kind_name(value)}")


def _least_cost_partition(cube: Any, *, epsilon: Any = None, at: Any, **tuning: Any) -> Any:
    interp, span = at
    need_cube(cube, "least_cost_partition")
    tuned = {k: (int(v) if float(v).is_integer() else float(v)) for k, v in tuning.items() if is_number(v)}
    return measure.partition_cells(interp.kernel, cube, amount_for(interp, cube.exposures, epsilon), span, **tuned)


def _score(name: str) -> Any:
    def body(value: Any, *, at: Any) -> Any:
        interp, span = at
        if not isinstance(value, Handle):
            raise refuse("TypeError", f"`{name}` takes a cube of counts, not {kind_name(value)}")
        made = scores.score(name, value)
        return made if made.private else measure.noisy_score(interp.kernel, made, None, None, span)

    return body


def _misfit(cube: Any, queries: Any, estimate: Any, *, at: Any) -> Any:
    import numpy as np

    need_cube(cube, "misfit")
    lows, highs = need_workload(queries, cube).bounds()
    return scores.misfit(cube, lows, highs, np.asarray(estimate, dtype=float))


def _exact(queries: Any, cube: Any, *, at: Any) -> Any:
    """The exact answers of a workload on public counts."""
    interp, _ = at
    need_cube(cube, "exact")
    if cube.private:
        raise private_value(cube, "has no exact answers")
    return need_workload(queries, cube).answers(measure.public_cells(interp.kernel, cube).astype(float))


def _answer(queries: Any, cells: Any, *, at: Any) -> Any:
    """The answers of a workload on estimated cells, which are public."""
    import numpy as np

    for handle in handles_in(cells):
        raise refuse(
            "PrivateValue", f"`answer` takes released cells, and these are of `{handle.exposures[0].source.name}`"
        )
    return queries.answers(np.asarray(cells, dtype=float))


def need_cube(value: Any, what: str) -> None:
    if isinstance(value, Table):
        raise refuse("TypeError", f"`{what}` takes a cube of counts, not a table", help="`histogram(people, x = age)`")
    if not isinstance(value, Cube):
        raise refuse("TypeError", f"`{what}` takes a cube of counts, not {kind_name(value)}")


def need_workload(queries: Any, cube: Cube) -> Any:
    if not hasattr(queries, "answers") or not hasattr(queries, "bounds"):
        raise refuse("TypeError", f"queries are a workload, not {kind_name(queries)}", help="such as `prefixes(ages)`")
    if tuple(queries.shape) != tuple(cube.shape):
        raise refuse("ValueError", f"these queries are for shape {queries.shape}, and the cube has {cube.shape}")
    return queries


def _workload(kind: str) -> Any:
    def body(cube: Any, count: Any = 2000.0, seed: Any = 0.0, *, at: Any) -> Any:
        from jostle.kernels import workloads

        shape = tuple(cube.shape) if isinstance(cube, Cube) else None
        if shape is None:
            need_cube(cube, kind)
        made = getattr(workloads, kind)
        return made(shape) if kind in ("identity", "prefixes") else made(shape, int(count), int(seed))

    return body


def _limited(handle: Any, amount: Any, *, at: Any) -> Any:
    """The same handle under a smaller budget of its own, in the unit of its source."""
    if not isinstance(handle, (Table, Cube)):
        raise refuse("TypeError", f"an agent is made of a table or a cube, not of {kind_name(handle)}")
    for other in handles_in(amount):
        raise private_value(other, "cannot be an amount")
    unit = handle.exposures[0].source.measure.unit if handle.private else "epsilon"
    return transform.limited(handle, Amount(unit, quanta(amount, unit)))


def _cells(cube: Any, *, at: Any) -> Any:
    """The counts of a public cube, in its shape."""
    interp, _ = at
    need_cube(cube, "cells")
    if cube.private:
        raise private_value(cube, "cannot be read")
    return measure.public_cells(interp.kernel, cube).astype(float)


BODIES: dict[str, Any] = {
    "laplace": _laplace,
    "gaussian": _gaussian,
    "exp_mech": _exp_mech,
    "noisy_max": _noisy_max,
    "least_cost_partition": _least_cost_partition,
    "misfit": _misfit,
    "exact": _exact,
    "answer": _answer,
    "cells": _cells,
    "limited": _limited,
    **{name: _score(name) for name in ("size", *scores.KINDS)},
    **{name: _workload(name) for name in ("identity", "prefixes", "ranges", "rectangles")},
}

MEASURED = {name: Builtin(name, body, sees_handles=True, wants_call=True) for name, body in BODIES.items()}
