"""Learning graphical models under noise: KL to the truth, as in Figure 2 of Bernstein et al. (ICML 2017).

    python -m tests.experiments.graphical [--graph chain|random] [--values 10] [--trials 5] [--cells 1e5:0.5,…]
        [--with naive,cgm,stopped,gaussian,"gaussian cgm",psgd,output,exact,random,uniform,mbi]

Ten variables, potentials drawn from Dirichlet(1), 24 cliques of pairs: a third-order chain, or a connected random
graph of as many edges. In each trial a truth, N independent rows of it, and Laplace noise of scale 24/ε on every cell
(or Gaussian at δ = 1e-6; `psgd` and `output` perturbation at that δ too). N is known. Nothing is tuned to the data.
`stopped` is `cgm` as the paper has it, from the uniform model and stopped early. `mbi` (github.com/ryan112358/mbi,
mirror descent, 1000 iterations, its default) runs in this process where it can be imported, without its own time to
compile; all times are of one process. Figures: docs/experiments/graphical.md.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jostle import optional as perturbed
from jostle.accounting.amounts import Amount
from jostle.accounting.composition import quanta, rate_for
from jostle.accounting.definitions import rho_of
from jostle.accounting.subsampled_gaussian import noise_for
from jostle.error_laws import law_named
from jostle.kernels.graphical.learn import cgm_fit, naive_fit, psgd_fit
from jostle.kernels.graphical.model import GraphicalModel, SyntheticRows, graphical_model
from jostle.kernels.graphical.synthetic import chain_cliques, population, random_graph, random_model
from jostle.kernels.noisy_array import NoiseModel, with_noise
from jostle.privacy.measurements.subsampled_batches import Rows, released
from jostle.privacy.mechanisms.additive import Additive, Linear
from jostle.simulate import SeededNoise

Floats = NDArray[np.float64]
DELTA = 1e-6
CELLS = {
    (1e3, 1.0): 5.75, (1e4, 0.1): 6.1, (1e4, 0.5): 2.25, (1e5, 0.1): 1.26, (1e5, 0.5): 0.22, (1e5, 1.0): 0.09,
    (1e6, 0.1): 0.082, (1e6, 0.5): 0.009,
}  # fmt: skip
"""N and ε, and the KL divergence to reach on chains of ten values."""


def of_graph(graph: str, values: int, seed: int, variables: int = 10, edges: int = 24) -> GraphicalModel:
    names = [f"x{i}" for i in range(variables)]
    cliques = chain_cliques(names, 3) if graph == "chain" else random_graph(names, edges, seed)
    return graphical_model(dict.fromkeys(names, values), cliques)


def tables_of(model: GraphicalModel, rows: SyntheticRows) -> list[NDArray[np.int64]]:
    return [rows.table(*model.domain.names_of(c)).astype(np.int64) for c in model.structure.cliques]


def noised(tables: list[NDArray[np.int64]], epsilon: float, seed: int, kind: str = "laplace") -> list[Floats]:
    """As `laplace([…])` measures them: one draw for all tables, each carrying its noise."""
    noise, flat = SeededNoise(10**6 + seed), np.concatenate([t.ravel() for t in tables])
    if kind == "laplace":
        scale = len(tables) / epsilon
        drawn = noise.laplace(flat, scale)
    else:
        scale = math.sqrt(len(tables) / (2 * rho_of(epsilon, DELTA)))
        drawn = noise.gaussian(flat, scale)
    parts = np.split(drawn.astype(float), np.cumsum([t.size for t in tables])[:-1])
    law = NoiseModel(law_named(kind, scale))
    return [with_noise(p.reshape(t.shape), law) for p, t in zip(parts, tables, strict=True)]


def by_mbi(model: GraphicalModel, tables: list[Floats], rows: float, iterations: int = 1000) -> GraphicalModel:
    """`mbi`'s estimate from the same tables, as a model of ours."""
    from mbi import Domain, LinearMeasurement, estimation

    names = model.domain.names
    domain = Domain(names, model.domain.sizes)
    cliques = [tuple(model.domain.names_of(c)) for c in model.structure.cliques]
    scale = tables[0].noise.deviation  # type: ignore[attr-defined]
    given = [LinearMeasurement(np.asarray(t).ravel(), c, scale) for t, c in zip(tables, cliques, strict=True)]
    found = estimation.MirrorDescent().estimate(domain, given, known_total=rows, iters=iterations)
    potentials = [np.asarray(found.potentials[c].transpose(c).values, dtype=float).ravel() for c in cliques]
    return GraphicalModel(model.structure, np.concatenate(potentials))


def by_psgd(model: GraphicalModel, rows: SyntheticRows, epsilon: float, seed: int, steps: int = 100) -> GraphicalModel:
    """`psgd` of the library on these rows: its noise, its default rate, samples and noise seeded."""
    structure = model.structure
    starts = np.cumsum([0, *structure.lengths])
    places = [
        np.ravel_multi_index(tuple(rows.codes[:, v] for v in clique), shape) + start
        for clique, shape, start in zip(structure.cliques, structure.shapes, starts[:-1], strict=True)
    ]
    kept = math.ceil(rate_for(epsilon, DELTA, steps) * 2**16)
    sigma = noise_for(epsilon, DELTA, kept / 2**16, steps) * math.sqrt(len(structure.cliques))
    private = Rows(np.stack(places, axis=1).astype(np.int32), int(starts[-1]), len(rows))
    sums = released(SeededNoise(10**7 + seed), private, kept, steps, sigma)
    return psgd_fit(model, {"sums": sums, "rate": kept / 2**16, "noise": sigma}, float(len(rows)))


def by_output(model: GraphicalModel, tables: list[NDArray[np.int64]], rows: float, epsilon: float, seed: int) -> Any:
    """`output_perturbation` of the library on these tables, its noise seeded."""
    how = Additive.of(Amount("epsilon", quanta(epsilon), quanta(DELTA)), None, [])
    ridge = perturbed.ridge_for(how, model.structure, rows, 1.0)
    sides = perturbed.sensitivities(model.structure, rows, ridge)
    theta = perturbed.descended(model.structure, np.concatenate([t.ravel() for t in tables]).astype(float), rows, ridge)
    linear = Linear.of(how, *sides, perturbed.BITS)
    return model.with_potentials(linear.release(np.ldexp(theta, perturbed.BITS), SeededNoise(10**8 + seed)))


def random_reference(model: GraphicalModel, seed: int) -> GraphicalModel:
    """The paper's random estimator: maximum likelihood on random marginals."""
    drawn = model.structure.split(random_model(model, 2 * 10**5 + seed).theta)
    return naive_fit(model, [np.exp(t) for t in drawn], 1.0, 1e-3)


def trial(graph: str, values: int, seed: int, rows: float, epsilon: float, ways: list[str]) -> dict[str, Any]:
    """KL divergences and seconds of one trial."""
    model = of_graph(graph, values, seed)
    truth = random_model(model, seed)
    people = population(truth, rows, 10**5 + seed)
    exact = tables_of(model, people)
    laplace, gaussian = noised(exact, epsilon, seed), noised(exact, epsilon, seed, "gaussian")
    how: dict[str, Callable[[], GraphicalModel]] = {
        "uniform": lambda: model,
        "random": lambda: random_reference(model, seed),
        "exact": lambda: naive_fit(model, [t.astype(float) for t in exact], rows),
        "naive": lambda: naive_fit(model, laplace, rows),
        "cgm": lambda: cgm_fit(model, laplace, rows),
        "stopped": lambda: cgm_fit(model, laplace, rows, 0),
        "psgd": lambda: by_psgd(model, people, epsilon, seed),
        "output": lambda: by_output(model, exact, rows, epsilon, seed),
        "gaussian": lambda: naive_fit(model, gaussian, rows),
        "gaussian cgm": lambda: cgm_fit(model, gaussian, rows),
        "mbi": lambda: by_mbi(model, laplace, rows),
    }
    found: dict[str, Any] = {}
    for way in ways:
        start = time.perf_counter()
        learned = how[way]()
        found[way] = (truth.kl(learned), time.perf_counter() - start)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--graph", choices=["chain", "random"], default="chain")
    parser.add_argument("--values", type=int, default=10)
    parser.add_argument("--trials", type=int, default=5)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--cells", default="")
    parser.add_argument("--with", dest="ways", default="uniform,random,exact,naive,cgm,gaussian")
    asked = parser.parse_args()
    ways = asked.ways.split(",")
    if "mbi" in ways:  # compiled once, before anything is timed
        import jax

        jax.config.update("jax_enable_x64", True)
        trial(asked.graph, asked.values, asked.first, 1e3, 1.0, ["mbi"])
    told = [tuple(map(float, cell.split(":"))) for cell in asked.cells.split(",")] if asked.cells else list(CELLS)
    print(f"{asked.graph}, {asked.values} values, {asked.trials} trials: KL (seconds)")
    for rows, epsilon in told:
        runs = [
            trial(asked.graph, asked.values, seed, rows, epsilon, ways)
            for seed in range(asked.first, asked.first + asked.trials)
        ]
        goal = CELLS.get((rows, epsilon)) if asked.graph == "chain" and asked.values == 10 else None
        shown = []
        for way in ways:
            divergence = float(np.mean([r[way][0] for r in runs]))
            seconds = float(np.median([r[way][1] for r in runs]))
            shown.append(f"{way} {divergence:.4g} ({seconds:.2f})")
        print(f"N {rows:g} ε {epsilon:g}  to reach {goal if goal else '-'}  " + "  ".join(shown), flush=True)


if __name__ == "__main__":
    main()
