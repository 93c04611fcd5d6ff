"""The closed list of kernels that the standard library may name: `external hb_strategy(shape)`.

A kernel works on released numbers and public values. It is imported when it is first called.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cache
from inspect import signature
from typing import Any

from jostle.diagnostics import refuse
from jostle.formulas import Noised
from jostle.noise_laws import Gaussian, Laplace
from jostle.privacy.kernel.handles import Cube, Vectors
from jostle.run.operators import bound, guarded
from jostle.run.stored import stored
from jostle.run.values import REQUIRED, Builtin, Interval, Record, is_number, is_vector
from jostle.syntax import nodes as n

_BY_MODULE = {
    "checks": "whole_number",
    "classifiers.blended": "blended_model",
    "classifiers.fits": "binned_model branched_model linear_model majority_model naive_bayes_model",
    "classifiers.growing": "tree_counted tree_end tree_split tree_split_by tree_start",
    "classifiers.shrink": "bayes_tree_model shrunk_bayes_model",
    "classifiers.shrunktree": "shrunk_tree_model",
    "classifiers.treemodel": "c45_prune noisy_gain tree_leaf tree_model tree_node",
    "graphical.adaptive": "chosen_cliques search_begun search_continued search_plan",
    "graphical.bootstrap": "intervals",
    "graphical.learn": "cgm_fit naive_fit perturbed_model rows_in",
    "graphical.model": "graphical_model steady_chain steady_tables",
    "graphical.selecting": "expected_counts joining_pairs joining_places",
    "graphical.sgd": "psgd_fit",
    "graphical.shrunken": "shrunken_fit",
    "graphical.synthetic": "chain_cliques joined_tables population random_graph random_model tables_with_noise",
    "graphical.unbin": "model_of_means unbinned_rows",
    "graphs.degrees": "degrees_of",
    "graphs.swaps": "fitted_graph graph_facts seeded_graph",
    "histograms.adaptive": "block_counts drawn_together expected_cells refined_strategy",
    "histograms.clusters": "ahp_labels group_strategy kd_labels",
    "histograms.cuts": "cut cut_places grain_for segment_labels two_levels",
    "histograms.estimates": "mwem_start nonnegative pooled",
    "histograms.fourier": "fourier_basis fourier_cells fourier_costs fourier_strategy",
    "histograms.greedy": "greedy_h_strategy",
    "histograms.grids": "agrid_first agrid_second grid_strategy quadtree_strategy",
    "histograms.hierarchy": "hb_strategy identity_strategy",
    "histograms.marginboxes": "axis_sums box_tree",
    "histograms.mwem": "mwem_learn mwem_update uniform_estimate",
    "histograms.simulated": "simulated_cells",
    "histograms.smoothing": "smoothed",
    "histograms.strategies": "bucket_strategy estimate hdmm_strategy",
    "histograms.wavelets": "privelet_strategy wavelet_cells",
    "ising.frankwolfe": "column_place fw_rounds fw_start fw_step logistic_model",
    "ising.models": "ising_fit ising_independent_fit ising_model ising_of_nodes ring_with_chords",
    "ising.pairfit": "pairwise_fit pairwise_independent_fit pairwise_room",
    "ising.pairwise": "alphabets node_start node_step pairwise_of_nodes pairwise_ring",
    "linear_algebra": "det dot eigen inverse matmul solve svd transpose",
    "mixtures.centres": (
        "cells_like centres_moved centres_of_cells centres_of_map centres_of_sums centres_seen centres_start "
        "centres_view map_begun map_counted map_moved map_places map_refined map_strength map_view round_mixture"
    ),
    "mixtures.em": (
        "gaussian_step likelihood_view mixture_frames mixture_prior mixture_start mixture_step plain_frames "
        "plain_start plain_step round_step synthetic_mixture with_background"
    ),
    "mixtures.factors": "factor_model",
    "mixtures.shrunken": "map_start shrunk_gaussian_step shrunk_mixture_step with_shares with_tails",
    "mixtures.simulated": "simulated_points",
    "regressions.fits": "forked_model leaf_model mean_model pooled_shares ridge_model target_seen",
    "regressions.rounds": "first_stage next_stage",
    "statistics.comparison": "group_difference",
    "statistics.effects": "effect_of_strata",
    "statistics.regression": (
        "correlations linear_fit logistic_curvature_matrix logistic_fit logistic_start logistic_step"
    ),
    "statistics.tables": "cross_table describe",
    "statistics.weighting": "effect_of_model effect_of_scores effect_scores",
    "workloads.boxes": "query_box query_strategy",
}  # fmt: skip
KERNELS = {name: module for module, names in _BY_MODULE.items() for name in names.split()}
"""The module of `jostle.kernels` that each is in."""

LEFT_OUT = object()
"""Stands for an argument that is left to the default of the function of Python, which the declaration repeats."""

STORED = frozenset({"fourier_basis", "hdmm_strategy"})
"""Those that take long and depend on public things alone: their values are kept on disk."""


def external(node: n.External) -> Builtin:
    """The kernel that a declaration names, called as it is declared: whole numbers arrive as integers, cubes as shapes.

    The declaration is held against the function of Python when that is first called, and loaded for it.
    """
    name = node.name
    params = tuple((p.name, REQUIRED if p.default is None else LEFT_OUT) for p in node.params)
    if name not in KERNELS:
        raise refuse("NameError", f"there is no kernel `{name}`", help=f"the kernels are {', '.join(KERNELS)}")
    made = _DECLARED.get((name, params))
    if made is not None:
        return made

    @cache
    def declared() -> Callable[..., Any]:
        return kernel(node)

    def body(*args: Any, **keywords: Any) -> Any:
        function = declared()
        values = {k: v for k, v in bound(name, params, args, keywords).items() if v is not LEFT_OUT}
        return stored(name, function, (), values) if name in STORED else function(**values)

    return _DECLARED.setdefault((name, params), of_kernel(name, body))


_DECLARED: dict[tuple[str, Any], Builtin] = {}
"""Two modules that declare one kernel have one thing."""


def kernel(node: n.External) -> Callable[..., Any]:
    """The function of Python that a declaration names; refused where it has other parameters."""
    function: Callable[..., Any] = getattr(importlib.import_module(f"jostle.kernels.{KERNELS[node.name]}"), node.name)
    takes = list(signature(function).parameters.values())
    declared = takes[: len(node.params)]
    as_declared = all(p.name == q.name and (p.default is None or q.default is not q.empty)
                      for p, q in zip(node.params, declared, strict=False))  # fmt: skip
    if not as_declared or len(node.params) > len(takes) or any(q.default is q.empty for q in takes[len(declared) :]):
        raise refuse(
            "ImportError", f"the kernel `{node.name}` is not as it is declared", node.span,
            help=f"write `external {node.name}({', '.join(q.name for q in takes)})`",
        )  # fmt: skip
    return function


def of_kernel(name: str, function: Callable[..., Any]) -> Builtin:
    """A function of `kernels`, or a method of a model made there, as a function of the language."""

    def body(*args: Any, **keywords: Any) -> Any:
        import numpy as np

        positional = [_to_python(a) for a in args]
        named = {k: _to_python(v) for k, v in keywords.items()}
        with np.errstate(all="ignore"):
            return to_jostle(guarded(name, function, positional, named))

    return Builtin(name, body, sees_handles=True)


def vectors_facts(vectors: Vectors) -> dict[str, object]:
    """What is public of rows as vectors."""
    return {
        "size": float(len(vectors.names)), "columns": list(vectors.names), "centres": list(vectors.centres),
        "scales": list(vectors.scales), "radius": vectors.radius, "norm": vectors.norm,
    }  # fmt: skip


def _to_python(value: Any) -> Any:
    if isinstance(value, Cube):
        return value.shape
    if isinstance(value, Vectors):
        return vectors_facts(value)
    if is_number(value):
        return int(value) if float(value).is_integer() and abs(value) < 2**53 else float(value)
    if is_vector(value) and getattr(value, "origin", None) is not None and getattr(value, "noise", None) is None:
        return value.view(value.__class__.__base__)  # kernels take what was calculated as an array like any other
    if isinstance(value, Interval):
        return (value.low, value.high)
    if isinstance(value, list) and value and all(map(is_number, value)):
        return _vector(value)
    if isinstance(value, list) and all(isinstance(v, list) and v and isinstance(v[0], Noised) for v in value):
        return [_to_python(v) for v in value]
    return value


def _vector(numbers: list[float]) -> object:
    """An array of numbers, which carries the law of their noise where all have one and the same."""
    import numpy as np

    from jostle.kernels.noisy_array import NoiseModel, with_noise

    array = np.array(numbers, dtype=float)
    laws = {v.law if isinstance(v, Noised) else None for v in numbers}
    law = laws.pop() if len(laws) == 1 else None
    return with_noise(array, NoiseModel(law)) if isinstance(law, Laplace | Gaussian) else array


def to_jostle(value: Any) -> Any:
    """What a kernel gave, or a field of a model, as a value of the language: dicts become records."""
    if isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if type(value).__module__ == "numpy" and not is_vector(value):
        return float(value)
    if isinstance(value, tuple):
        return [to_jostle(v) for v in value]
    if type(value) is list and value and all(type(v) is dict for v in value):
        return [to_jostle(v) for v in value]
    if type(value) is dict:
        return Record(value)
    return value
