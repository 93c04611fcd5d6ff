"""Workloads of the language beyond ranges: marginals, predicates, and unions with weights.

They are public: they depend on a cube's shape and on what the program says, never on counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jostle.diagnostics import did_you_mean, refuse
from jostle.lazy import np
from jostle.plan.kinds import kind_of
from jostle.privacy.kernel.handles import Cube
from jostle.run.arguments import shape_text
from jostle.run.evaluator import At, Evaluator, builtin
from jostle.run.positions import evaluate
from jostle.run.rows import RowCompiler
from jostle.run.scope import Qualifiers, Scope
from jostle.run.values import Interval, is_number, is_sequence, is_workload, kind_name, show
from jostle.syntax import nodes as n

MOST_HELD = 2**31
"""The most cells times predicates that are looked at."""
MOST_QUERIES = 2**20
"""The most queries that a program asks for by a number, or writes as predicates."""


@builtin
def _marginals(cube: Any, over: Any = 1.0, *, at: At) -> object:
    """`marginals(cube, k)`: all over k dimensions; `marginals(cube, [["age", "sex"], ["city"], []])`: those named."""
    from jostle.kernels.workloads import marginals

    if not isinstance(cube, Cube):
        raise refuse("TypeError", f"`marginals` takes a cube of counts, not {kind_name(cube)}")
    if is_number(over) and float(over).is_integer():
        if not 0 <= over <= len(cube.names):
            raise refuse(
                "ValueError", f"a cube of {len(cube.names)} dimensions has no marginals over {over:g} of them",
                help=f"it has {', '.join(cube.names)}: `marginals(cube, 1)` is over each of them",
            )  # fmt: skip
        return marginals.marginals(cube.shape, int(over))
    if not is_sequence(over):
        raise refuse(
            "TypeError", f"`marginals` takes how many dimensions, or lists of names, not {kind_name(over)}",
            help='`marginals(cube, 2)` or `marginals(cube, [["x", "y"], ["z"]])`',
        )  # fmt: skip
    sets = [[_axis(cube, name) for name in _named(one)] for one in over]
    once = len({frozenset(one) for one in sets}) == len(sets) > 0
    if not once or any(len(set(one)) < len(one) for one in sets):
        message = "`marginals` takes different lists, each of which names a dimension once"
        raise refuse("ValueError", message, help='`marginals(cube, [["x", "y"], ["z"], []])`')
    return marginals.marginals(cube.shape, sets)


def _named(one: Any) -> list[object]:
    return list(one) if is_sequence(one) else [one]


def _axis(cube: Cube, name: object) -> int:
    if name not in cube.names:
        hint = did_you_mean(name, cube.names) if isinstance(name, str) else ""
        available = f"it has {', '.join(cube.names)}"
        raise refuse("NameError", f"the cube has no dimension `{show(name)}`", help=hint or available)
    return cube.names.index(name)


def union_of_workloads(parts: Any, weights: Any = None) -> object:
    """`union([w1, w2], [2, 1])`: the answers of all, an error in the first counting twice one in the second."""
    from jostle.kernels.workloads import marginals

    if not is_sequence(parts) or not all(is_workload(part) for part in parts):
        raise refuse("TypeError", "`union` takes a list of workloads", help="`union([prefixes(c), marginals(c, 1)])`")
    if not parts or any(part.shape != parts[0].shape for part in parts):
        shapes = ", ".join(dict.fromkeys(shape_text(part.shape) for part in parts))
        raise refuse(
            "ValueError", f"a union is of workloads over one cube, and these are for {shapes or 'none'}",
            help="answer each by itself, or make them from the same cube",
        )  # fmt: skip
    if weights is not None and not (is_sequence(weights) and all(is_number(w) for w in weights)):
        raise refuse("TypeError", "the weights of a union are a list of numbers")
    if weights is not None and len(weights) != len(parts):
        raise refuse("ValueError", f"a union of {len(parts)} workloads takes {len(parts)} weights, not {len(weights)}")
    if weights is not None and not all(0 < w < float("inf") for w in weights):
        raise refuse("ValueError", "the weights of a union are above 0")
    return marginals.union(list(parts), None if weights is None else [float(w) for w in weights])


@builtin
def _predicates(interp: Evaluator, node: n.Call, scope: Scope) -> object:
    """`predicates(cube, x > 3, y == 2 and x < 9)`, with a list or a comprehension of conditions too. A condition is a
    row expression over the cube's dimensions, which are positions from 0."""
    from jostle.kernels.workloads import marginals

    cube = interp.eval(node.args[0], scope) if node.args else None
    if not isinstance(cube, Cube):
        raise refuse("TypeError", f"`predicates` takes a cube of counts first, not {kind_name(cube)}", node.span)
    if len(node.args) < 2 or node.keywords:
        raise refuse(
            "TypeError", "`predicates` takes a cube and conditions", node.span, help="`predicates(c, x > 3, y == 2)`"
        )
    schema = dict(cube.schema)
    places = np.indices(cube.shape, dtype=float).reshape(len(cube.shape), -1)
    columns = dict(zip(cube.names, places, strict=True))
    conditions: list[object] = []
    for expr, inner in (pair for arg in node.args[1:] for pair in _conditions(interp, arg, scope)):
        condition = RowCompiler(schema, interp, inner, Qualifiers(node.args[0], schema)).condition(expr)
        if kind_of(condition, schema) != "boolean":
            raise refuse("TypeError", "a condition must be true or false", expr.span, help="compare: `x > 3`")
        if (len(conditions) + 1) * cube.size > MOST_HELD:
            size = f"{len(conditions) + 1} predicates over {cube.size:,} cells"
            raise refuse("ValueError", f"{size} are too many", expr.span)
        holds, valid = evaluate(condition, columns)
        conditions.append(holds & valid)
    if not conditions:
        raise refuse("ValueError", "a workload needs at least one query", node.span)
    return marginals.predicates(cube.shape, conditions)


def _conditions(interp: Evaluator, node: n.Expr, scope: Scope) -> Iterator[tuple[n.Expr, Scope]]:
    """Each condition with the scope of its variables: of a list its items, of a comprehension one for each item."""
    if isinstance(node, n.ListOf):
        for item in node.items:
            yield from _conditions(interp, item, scope)
    elif isinstance(node, n.Comprehension):
        source = interp.eval(node.source, scope)
        if isinstance(source, Interval) and source.count > MOST_QUERIES:
            message = f"{source.count:,.0f} predicates are too many"
            raise refuse("ValueError", message, node.span, help=f"at most {MOST_QUERIES:,}")
        for item in interp.walk(source, node.source.span):
            inner = Scope(scope)
            interp.bind(node.names, item, inner, node.source.span)
            if node.condition is None or interp.truth(interp.eval(node.condition, inner), node.condition):
                yield from _conditions(interp, node.item, inner)
    else:
        yield node, scope
