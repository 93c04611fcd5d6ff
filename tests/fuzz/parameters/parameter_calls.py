# ruff: noqa: E501 (a form or a record stands on one line)
"""Calls of everything that sees rows, with parameters from a seed: by family, each of the draws and a world."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from parameter_oracle import Call
from parameter_values import Values
from parameter_worlds import CUBES, VECTORS, World

from jostle.kernels.arrays import Column
from jostle.kernels.rowprograms.derivatives import Graph
from jostle.kernels.rowprograms.losses import Loss
from jostle.run.values import Record

Family = Callable[[Values, World], Call]


# Row kernels -----------------------------------------------------------------------------------------


def _mixture(v: Values, d: int, radius: bool = False) -> dict[str, Any]:
    k = v.randint(1, 3)
    made = {"means": v.table(k, d), "factors": v.table(k, d, d), "offsets": v.table(k)}
    return made | ({"radius": abs(v.number()) + 0.1} if radius else {})


def _radii(v: Values) -> list[float]:
    found = [abs(v.number()) for _ in range(v.randint(1, 6))]
    return found if v.chance(0.5) else sorted(found)


def _loss(v: Values, d: int) -> Loss:
    """One of some shapes of a line of weights and cells."""
    graph = Graph()
    line = graph.number(v.number())
    for i in range(d):
        line = graph.add(line, graph.multiply(graph.node("weight", value=i), graph.node("cell", value=i)))
    exp, one = graph.exp(line), graph.number(1)
    shape = v.choice((
        graph.power(line, 2), exp, graph.log(graph.add(one, exp)), graph.divide(one, graph.add(one, exp)),
        graph.larger(line, one), graph.power(line, 0.5), graph.log(line), graph.divide(one, line), graph.power(line, 1.5),
    ))  # fmt: skip
    return Loss(tuple(graph.gradient(shape, d)), tuple(range(d)), [Column(name=str(i), value="") for i in range(d)], [0.0] * d)


KERNELS: dict[str, Callable[[Values, int], dict[str, Any]]] = {
    "one": lambda v, d: {},
    "responsibilities": lambda v, d: _mixture(v, d),
    "framed": lambda v, d: _mixture(v, d, True),
    "log_density": lambda v, d: _mixture(v, d) | {"low": -3.0, "high": v.number()},
    "nearest": lambda v, d: {"centres": v.table(v.randint(1, 4), d)},
    "nearest_from": lambda v, d: {"centres": v.table(v.randint(1, 4), d), "radius": abs(v.number()) + 0.1},
    "within": lambda v, d: {"radii": _radii(v)},
    "coordinates": lambda v, d: {},
    "indicators": lambda v, d: {"values": v.table(d, entry=lambda: v.whole(1, 4))} | ({"pairs": False} if v.chance(0.3) else {}),
    "logistic_gradient": lambda v, d: {"target": v.whole(0, d - 1), "weights": v.table(d)},
    "logistic_curvature": lambda v, d: {"target": v.whole(0, d - 1), "weights": v.table(d)},
    "loss_gradient": lambda v, d: {"loss": _loss(v, d), "weights": v.table(d)},
    "softmax_gradient": lambda v, d: {"weights": v.table(2, max(d - 1, 1))},
    "squared_products": lambda v, d: {"left": v.table(2, d + 1), "right": v.table(2, d + 1), "times": [1.0, 7.0]},
    "pair_products": lambda v, d: {},
    "products": lambda v, d: {},
    "ising_gradient": lambda v, d: {"target": v.whole(0, d - 1), "weights": v.table(d)},
    "sign_gradient": lambda v, d: _field(v, d),
}  # fmt: skip
WEIGHTS = ("one", "responsibilities", "framed", "nearest", "nearest_from", "within", "logistic_curvature")
CONTRIBUTIONS = ("coordinates", "indicators", "log_density", "logistic_gradient", "loss_gradient", "pair_products",
                 "products", "softmax_gradient", "squared_products")  # fmt: skip
SLOPES = ("ising_gradient", "sign_gradient")


def _field(v: Values, d: int) -> dict[str, Any]:
    values = [v.randint(2, 8) for _ in range(d)]
    target = v.randrange(d)
    weights = v.table(values[target], d, max(values))
    return {"target": float(target), "values": [float(x) for x in values], "weights": weights}


def _vectors(v: Values, world: World) -> tuple[str, int]:
    name = v.choice(world.vectors)
    return name, VECTORS[name][0]


def _with(v: Values, world: World) -> str:
    """An amount; in ρ sometimes for Laplace noise."""
    return f"with {world.amount}"


def _via(v: Values, world: World) -> str:
    return v.choice(("", "", ', via = "laplace"'))


def row_moments(v: Values, world: World) -> Call:
    handle, d = _vectors(v, world)
    name = v.choice(WEIGHTS)
    shares: Any = v.choice(([1.0], [1.0, 1.0, 9.0], [1.0, 4.0], [0.0, 1.0], [0.0, 0.0, 1.0]))
    if d > 20:
        shares = shares[:2] if any(shares[:2]) else [1.0]
    values = {"name": name if v.chance(0.97) else v.anything(), "values": v.perhaps(Record(KERNELS[name](v, d))),
              "shares": v.perhaps(shares) if v.chance(0.1) else shares}  # fmt: skip
    text = f"noisy_moments({handle}, name, values, shares = shares{_via(v, world)}) {_with(v, world)}"
    return Call(text, values, "row kernels: moments")


def row_sums(v: Values, world: World) -> Call:
    handle, d = _vectors(v, world)
    name = v.choice(CONTRIBUTIONS)
    values = {"name": name if v.chance(0.97) else v.anything(), "values": v.perhaps(Record(KERNELS[name](v, d))),
              "bound": v.perhaps(abs(v.number()) + 0.1) if v.chance(0.3) else v.choice((1.0, 0.5, 3.0)),
              "norm": v.choice(("l1", "l2", "sup")) if v.chance(0.97) else v.anything()}  # fmt: skip
    text = f"noisy_sum({handle}, name, values, bound = bound, norm = norm{_via(v, world)}) {_with(v, world)}"
    return Call(text, values, "row kernels: sums")


def row_scores(v: Values, world: World) -> Call:
    name = v.choice((*CONTRIBUTIONS, *SLOPES, *SLOPES))
    handle, d = _vectors(v, world)
    if name in SLOPES:
        handle = v.choice(("vc", "vb", "vs"))
        d = VECTORS[handle][0]
    values = {"name": name, "values": v.perhaps(Record(KERNELS[name](v, d))),
              "bound": v.perhaps(abs(v.number()) + 0.1) if v.chance(0.3) else v.choice((1.0, 0.5, 3.0))}  # fmt: skip
    function = "row_score" if name == "log_density" else "coordinate_scores"
    return Call(f"noisy_max({function}({handle}, name, values, bound = bound)) {_with(v, world)}", values,
                "slopes and scores of coordinates")  # fmt: skip


def shares_of_what_was_paid(v: Values, world: World) -> Call:
    handle, d = _vectors(v, world)
    values = {"part": v.perhaps(v.choice((1.0, 0.5, 1e-6))), "centres": v.perhaps(v.table(2, d))}
    call = v.choice((f'noisy_moments({handle}, "nearest", {{centres: centres}}, paid = p, part = part)',
                     f'noisy_sum({handle}, "coordinates", paid = p, part = part)'))  # fmt: skip
    return Call(f"p = (prepaid({handle}) {_with(v, world)})\n{call}", values, "prepaid amounts", late=True)


def declared_vectors(v: Values, world: World) -> Call:
    values = {"radius": v.perhaps(v.choice((1.0, 0.5, 3.0))), "norm": v.choice(("l2", "sup")), "scaled": v.chance(0.6),
              "factor": v.perhaps(v.number())}  # fmt: skip
    if v.chance(0.1):
        values["norm"] = v.anything()
    if v.chance(0.1):
        values["scaled"] = v.anything()
    column = v.choice(("x", "x * factor", "clamp(y, -1, factor)", "x / factor", "x + factor"))
    what = v.choice(('noisy_sum(w, "coordinates", norm = "sup")', 'noisy_moments(w, "one", shares = [1, 1, 1])',
                     'noisy_max(coordinate_scores(w, "coordinates"))', "laplace(size(w))"))  # fmt: skip
    text = f"w = vectors(t, {column}, y, radius = radius, norm = norm, scaled = scaled)\n{what} {_with(v, world)}"
    return Call(text, values, "declarations of vectors")


# Classifiers -----------------------------------------------------------------------------------------

ATTRIBUTES = {"z": [0.0, 1.0, 2.0, 3.0], "k": [float(i) for i in range(8)], "g": ["u", "v", "w"]}


def _attribute(v: Values) -> dict[str, Any]:
    name = v.choice(list(ATTRIBUTES))
    values = list(ATTRIBUTES[name])
    if v.chance(0.2):
        values = v.choice((values[:-1], values[::-1], [*values, values[0]], [*values, "none"]))
    return {"name": name, "values": values}


def classifiers(v: Values, world: World) -> Call:
    classes = v.choice((["a", "b"], ["b", "a"], ["a", "b", "other"]))
    kind = v.randrange(5)
    many = len(classes)
    values: dict[str, Any] = {"classes": classes}
    if kind == 0:
        attributes = [_attribute(v) for _ in range(v.randint(1, 3))]
        tables = [v.table(many, len(a["values"])) for a in attributes]
        values |= {"attributes": list(map(Record, attributes)), "tables": tables, "weight": 1.0}
        model = "naive_bayes_model(classes, attributes, tables, weight)"
    elif kind == 1:
        values |= {"counts": v.table(many)}
        model = "majority_model(classes, counts)"
    elif kind == 2:
        attribute = _attribute(v)
        values |= {"attribute": Record(attribute), "counts": [v.table(many) for _ in attribute["values"]]}
        model = "branched_model(attribute, [majority_model(classes, n) for n in counts])"
    elif kind == 3:
        attributes = [_attribute(v) for _ in range(2)]
        values |= {"attributes": list(map(Record, attributes)), "weight": 1.0, "edges": sorted(v.table(3)),
                   "tables": [v.table(many, len(a["values"])) for a in attributes]}  # fmt: skip
        model = "binned_model(naive_bayes_model(classes, attributes, tables, weight), {k: edges, x: edges})"
    else:
        attribute = _attribute(v)
        values |= {"name": attribute["name"], "values": attribute["values"], "answer": v.choice(("leaf", "margin", "confident")),
                   "votes": v.choice(("counts", "votes", "shares")), "noise": 1.0,
                   "leaves": [v.table(many) for _ in attribute["values"]]}  # fmt: skip
        model = "tree_model(classes, [tree_node(name, values, [tree_leaf(n) for n in leaves])], answer, noise, votes)"
    name = v.choice(list(values))
    values[name] = v.perhaps(values[name])
    values["label"] = "c" if v.chance(0.95) else v.choice(("g", "z", "x", "nowhere", None))
    text = v.choice((f"laplace(correct_count(t, {model}, label)) {_with(v, world)}",
                     f"laplace(surprise_count(t, {model}, label)) {_with(v, world)}",
                     f"laplace(ranked_counts(t, {model}, label, classes[0])) {_with(v, world)}",
                     f"noisy_max([correct_count(t, {model}, label), largest_cell(hc)]) {_with(v, world)}"))  # fmt: skip
    return Call(text, values, "classifiers")


# Cubes -----------------------------------------------------------------------------------------------


def _cube(v: Values, world: World) -> tuple[str, tuple[int, ...]]:
    name = v.choice(world.cubes)
    return name, CUBES[name][0]


def _cells(shape: tuple[int, ...]) -> int:
    made = 1
    for side in shape:
        made *= side
    return made


def block(v: Values, shape: tuple[int, ...]) -> dict[str, Any]:
    cells, kind = _cells(shape), v.choice(("groups", "matrix", "boxes", "signed"))
    weight: Any = v.choice((1.0, 1.0, abs(v.number()) + 0.1))
    if kind == "boxes":
        lows = [[v.whole(0, s - 1) for s in shape] for _ in range(v.randint(1, 4))]
        highs = [[v.whole(int(low), s - 1) for low, s in zip(row, shape, strict=True)] for row in lows]
        return {"kind": kind, "lows": lows, "highs": highs, "weight": weight}
    if kind == "signed":
        axes = [{"labels": [v.whole(-1, 1) for _ in range(s)], "signs": [v.choice((1.0, -1.0)) for _ in range(s)], "size": 2.0}
                for s in shape]  # fmt: skip
        return {"kind": kind, "axes": list(map(Record, axes)), "weight": weight}
    size = v.randint(1, 6)
    labels = [v.whole(-1, size - 1) for _ in range(cells)]
    if kind == "matrix":
        return {"kind": kind, "labels": labels, "matrix": v.table(v.randint(1, 4), size)}
    return {"kind": kind, "labels": labels, "size": float(size), "weight": v.choice((weight, v.table(size)))}


def strategies(v: Values, world: World) -> Call:
    cube, shape = _cube(v, world)
    blocks = [Record(block(v, shape)) for _ in range(v.randint(1, 3))]
    return Call(
        f"laplace({cube}, blocks) {_with(v, world)}", {"blocks": v.perhaps(blocks)}, "strategies", of_cells=True
    )


def workloads(v: Values, world: World) -> Call:
    cube, shape = _cube(v, world)
    values: dict[str, Any] = {"estimate": v.table(_cells(shape)), "count": v.whole(1, 9), "seed": 0.0, "over": 1.0, "edge": v.number(),
                              "weights": [1.0, 2.0]}  # fmt: skip
    dimension = {"h1": "k", "h2": "z", "hc": "c", "hl": "line", "h3": "c", "hn": "k"}[cube]
    queries = v.choice((f"identity({cube})", f"ranges({cube}, count, seed)", f"rectangles({cube}, count, seed)", f"marginals({cube}, over)",
                        f"predicates({cube}, {dimension} > edge, {dimension} * edge < 2)",
                        f"union([identity({cube}), marginals({cube}, over)], weights)"))  # fmt: skip
    if len(shape) == 1 and v.chance(0.3):
        queries = f"prefixes({cube})"
    name = v.choice(list(values))
    values[name] = v.perhaps(values[name])
    return Call(f"noisy_max(misfit({cube}, {queries}, estimate)) {_with(v, world)}", values, "workloads", of_cells=True)


def scores(v: Values, world: World) -> Call:
    cube, shape = _cube(v, world)
    values: dict[str, Any] = {"expected": v.table(_cells(shape)), "penalty": v.number(), "most": 100.0, "width": 2.0}
    name = v.choice(list(values))
    values[name] = v.perhaps(values[name])
    one = [
        f"{name}({cube})"
        for name in (
            "nonzero",
            "largest_cell",
            "largest_marginal",
            "l2",
            "l1_to_uniform",
            "total_variation",
            "size",
        )
    ]
    one += [f"distance({cube}, expected, penalty)", f"distance({cube}, expected)"]
    if v.chance(0.2):  # what asks the engine anew
        one += ["size(t)", "max_class(t, z, c)", "gini(t, g, c)", "entropy(t, z, c, most = most)", "max_class(t, k / width, c)",
                "gini(t, floor(x * width), g)", "size(where(t, x < width))"]  # fmt: skip
    listed = ", ".join(v.choice(one) for _ in range(v.randint(2, 4)))
    text = v.choice((f"laplace({v.choice(one)}) {_with(v, world)}", f"noisy_max([{listed}]) {_with(v, world)}",
                     f"gaussian({v.choice(one)}) {_with(v, world)}"))  # fmt: skip
    return Call(text, values, "scores")


def walks(v: Values, world: World) -> Call:
    cube, shape = _cube(v, world)
    cells = _cells(shape)
    order = [float(i) for i in v.sample(range(cells), cells)]
    values: dict[str, Any] = {"tree": [order, [v.whole(-1, 4) for _ in range(cells)]], "theta": v.number(), "splits": v.whole(0, 4),
                              "decay": 1.0, "along": float(v.randrange(len(shape)))}  # fmt: skip
    name = v.choice(list(values))
    values[name] = v.perhaps(values[name])
    call = v.choice((f"least_cost_partition({cube}, along = along)", f"least_cost_partition({cube}, tree = tree)",
                     f"count_partition({cube}, theta = theta, decay = decay, public_splits = splits)",
                     f"least_cost_partition({cube}, theta = theta, public_splits = splits)"))  # fmt: skip
    return Call(f"{call} {_with(v, world)}", values, "partition walks", walk=True)


def several(v: Values, world: World) -> Call:
    cubes = ", ".join(v.choice(world.cubes) for _ in range(v.randint(1, 3)))
    values = {"factor": v.perhaps(v.number())}
    extra = v.choice(("", ", histogram(t, k / factor)", ", histogram(t, clamp(z, 0, factor))"))
    return Call(f"laplace([{cubes}{extra}]) {_with(v, world)}", values, "several cubes")


def samples(v: Values, world: World) -> Call:
    cubes = [v.choice(world.cubes) for _ in range(v.randint(1, 2))]
    values: dict[str, Any] = {"rate": v.perhaps(0.5), "steps": v.perhaps(2.0)}
    text = f"noisy_samples([{', '.join(cubes)}], rate, steps = steps) {_with(v, world)}"
    return Call(text, values | {"cubes": float(len(cubes))}, "secret samples", sampled=True)


# Queries ---------------------------------------------------------------------------------------------


def _row(v: Values) -> str:
    return v.choice(("x", "y", "z", "k", "x * p", "y + p", "x / p", "p / x", "z ^ p", "k % p", "clamp(x, p, q)", "min(x, p)", "max(k, q)",
                     "abs(x - p)", "floor(k / p)", "ceil(x * p)", "sqrt(x + p)", "log(k - p)", "exp(x * p)", "round(x * p)", "-x * q",
                     "x if y < p else q", "z if g == p else k"))  # fmt: skip


def _condition(v: Values) -> str:
    return v.choice(("x < p", "y * p >= q", "k in p", "k in [p, q]", "g == p", "g in p", "k % p == q", "x != p", "not (x < p)", "x < p or y > q",
                     "c == p and x < q", "z ^ p > q", "x == none", f"{_row(v)} < q"))  # fmt: skip


def queries(v: Values, world: World) -> Call:
    values = {
        "p": v.perhaps(v.number()),
        "q": v.perhaps(v.number()),
        "share": v.perhaps(0.5),
        "keys": v.perhaps([1.0, 2.0, 3.0]),
    }
    bounded = f"clamp({_row(v)}, p, q)" if v.chance(0.5) else _row(v)
    aggregate = v.choice(("count(*)", "count({e})", "count(distinct {e})", "sum({e})", "avg({e})", "var({e})", "median({e})",
                          "quantile({e}, share)", "min({e})", "max({e})", "bounds({e})", "mode(k)", "sum({e}) / count(*)")).format(e=bounded)  # fmt: skip
    table = v.choice(("t", "t", f"where(t, {_condition(v)})", f"derive(t, z = {_row(v)})", 'binned(t, "x", keys)', "pick(t, x, y, z, k, g, c)",
                      f"histogram(t, k)[{_condition(v).replace('x', 'k').replace('y', 'k').replace('g', 'k').replace('c ', 'k ').replace('z', 'k')}, ]"))  # fmt: skip
    if table.startswith("histogram"):
        aggregate = v.choice(("sum(values)", "count(values)", "max(values)"))
    where = f" where {_condition(v)}" if v.chance(0.3) and not table.startswith("histogram") else ""
    key = v.choice(
        (
            "",
            "",
            " groupby g",
            " groupby k over keys",
            f" groupby {_row(v)} over keys",
            " groupby floor(k / p)",
            " groupby z, c",
        )
    )
    if table.startswith("histogram"):
        key = ""
    text = f"{{{{ select {aggregate} as n from {table}{where}{key} with {world.amount} }}}}"
    return Call(text, values, "queries", late="/ count" in aggregate)


def tables(v: Values, world: World) -> Call:
    values = {
        "p": v.perhaps(v.number()),
        "q": v.perhaps(v.number()),
        "keys": v.perhaps([1.0, 2.0, 3.0]),
        "many": v.perhaps(3.0),
    }
    measured = "[laplace(size(part)) for part in parts]"
    text = v.choice((f"parts = split_rows(t, many)\n{measured} {_with(v, world)}",
                     f"parts = [pair[1] for pair in partition(t, k + 0, over = keys)]\n{measured} {_with(v, world)}",
                     f"parts = [pair[1] for pair in partition(t, {_row(v)}, over = keys)]\n{measured} {_with(v, world)}",
                     f"parts = [pair[1] for pair in partition(t, floor(k / many))]\n{measured} {_with(v, world)}",
                     f"parts = [where(t, {_condition(v)})]\n{measured} {_with(v, world)}",
                     f"parts = [derive(t, z = {_row(v)})]\n[laplace(histogram(part, clamp(z, 0, 3))) for part in parts] {_with(v, world)}",
                     f"parts = [histogram(t, clamp({_row(v)}, p, q))]\n[laplace(part) for part in parts] {_with(v, world)}"))  # fmt: skip
    return Call(text, values, "parts, keys and derived columns", late=True)


def amounts(v: Values, world: World) -> Call:
    unit = "rho" if "rho" in world.amount else "epsilon"
    handle = v.choice(world.cubes)
    call = v.choice(
        (
            f"laplace({handle})",
            f"laplace(largest_cell({handle}))",
            f"noisy_max([largest_cell({handle}), size({handle})])",
            "laplace(size(t))",
        )
    )
    return Call(f"{call} with {unit} amount", {"amount": v.perhaps(1.0)}, "amounts")


def optima(v: Values, world: World) -> Call:
    values = {"cliques": v.perhaps([["z", "c"], ["c", "g"]]), "rows": v.perhaps(10.0), "ridge": v.perhaps(1.0)}
    model = 'graphical_model({z: 0..3, c: {"a", "b"}, g: {"u", "v", "w"}}, cliques, "exact")'
    text = f"m = {model}\nperturbed_optimum([histogram(t, z, c), histogram(t, c, g)], m, rows, ridge) {_with(v, world)}"
    return Call(text, values, "perturbed optima")


FAMILIES: dict[str, tuple[float, Family]] = {
    "moments": (5, row_moments), "sums": (5, row_sums), "slopes": (5, row_scores), "prepaid": (1, shares_of_what_was_paid),
    "vectors": (0.3, declared_vectors), "classifiers": (5, classifiers), "strategies": (4, strategies), "workloads": (2, workloads),
    "scores": (2, scores), "walks": (2, walks), "several": (0.1, several), "samples": (0.1, samples),
    "queries": (0.1, queries), "tables": (0.1, tables), "amounts": (0.5, amounts), "optima": (0.02, optima),
}  # fmt: skip
"""How often a family is drawn, by what a call costs."""

OF_VECTORS = ("moments", "sums", "slopes", "prepaid", "vectors")


def call(v: Values, world: World, only: str | None = None) -> Call:
    """A call of one family; of cubes where the world has no vectors."""
    names = [only] if only else list(FAMILIES)
    if not world.vectors:
        names = [n for n in names if n not in (*OF_VECTORS, "walks", "samples", "optima")] or ["scores"]
    if "delta" in world.amount:
        names = ["samples"] if v.chance(0.3) and not only else names
    elif only is None:
        names = [n for n in names if n != "samples" and not (n == "walks" and "rho" in world.amount)]
    name = v.choices(names, [FAMILIES[n][0] for n in names])[0]
    return FAMILIES[name][1](v, world)
