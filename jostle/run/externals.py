"""The closed list of kernels that the standard library may name: `external hb_strategy(shape)`.

A kernel works on released numbers and public values. It is imported when it is first called.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from inspect import signature
from typing import Any

from jostle.diagnostics import refuse
from jostle.privacy.handles import Cube, Vectors
from jostle.run.operators import bound, guarded
from jostle.run.stored import stored
from jostle.run.values import REQUIRED, Builtin, Interval, Record, is_number, is_vector
from jostle.syntax import nodes as n

KERNELS: dict[str, str] = {
    "agrid_first": "histograms.grids",
    "agrid_second": "histograms.grids",
    "ahp_labels": "histograms.clusters",
    "alphabets": "ising.pairwise",
    "axis_sums": "histograms.marginboxes",
    "axis_tree": "histograms.axistree",
    "binned_model": "classifiers.fits",
    "box_tree": "histograms.marginboxes",
    "branched_model": "classifiers.fits",
    "bucket_strategy": "histograms.strategies",
    "c45_prune": "classifiers.treemodel",
    "cells_like": "mixtures.centres",
    "centres_moved": "mixtures.centres",
    "centres_of_cells": "mixtures.centres",
    "centres_of_sums": "mixtures.centres",
    "centres_start": "mixtures.centres",
    "centres_view": "mixtures.centres",
    "cgm_fit": "graphical.learn",
    "chain_cliques": "graphical.synthetic",
    "column_place": "ising.frankwolfe",
    "cut": "histograms.cuts",
    "cut_places": "histograms.cuts",
    "estimate": "histograms.strategies",
    "expected_counts": "graphical.selecting",
    "factor_model": "mixtures.factors",
    "fitting_pairs": "graphical.selecting",
    "fourier_basis": "histograms.fourier",
    "fourier_cells": "histograms.fourier",
    "fourier_costs": "histograms.fourier",
    "fourier_strategy": "histograms.fourier",
    "fw_rounds": "ising.frankwolfe",
    "fw_start": "ising.frankwolfe",
    "fw_step": "ising.frankwolfe",
    "gaussian_step": "mixtures.em",
    "grain_for": "histograms.cuts",
    "graphical_model": "graphical.model",
    "greedy_h_strategy": "histograms.greedy",
    "grid_strategy": "histograms.grids",
    "group_strategy": "histograms.clusters",
    "hb_strategy": "histograms.hierarchy",
    "hdmm_strategy": "histograms.strategies",
    "identity_strategy": "histograms.hierarchy",
    "intervals": "graphical.bootstrap",
    "ising_independent_fit": "ising.models",
    "ising_fit": "ising.models",
    "ising_model": "ising.models",
    "ising_of_nodes": "ising.models",
    "joined_tables": "graphical.synthetic",
    "joining_pairs": "graphical.selecting",
    "kd_labels": "histograms.clusters",
    "linear_model": "classifiers.fits",
    "logistic_model": "ising.frankwolfe",
    "synthetic_mixture": "mixtures.em",
    "majority_model": "classifiers.fits",
    "mixture_frames": "mixtures.em",
    "mixture_prior": "mixtures.em",
    "mixture_start": "mixtures.em",
    "mixture_step": "mixtures.em",
    "mwem_learn": "histograms.mwem",
    "mwem_start": "histograms.estimates",
    "mwem_update": "histograms.mwem",
    "naive_bayes_model": "classifiers.fits",
    "naive_fit": "graphical.learn",
    "node_start": "ising.pairwise",
    "node_step": "ising.pairwise",
    "noisy_gain": "classifiers.treemodel",
    "nonnegative": "histograms.estimates",
    "pairwise_independent_fit": "ising.pairfit",
    "pairwise_fit": "ising.pairfit",
    "pairwise_of_nodes": "ising.pairwise",
    "pairwise_ring": "ising.pairwise",
    "pairwise_room": "ising.pairfit",
    "plain_frames": "mixtures.em",
    "plain_start": "mixtures.em",
    "plain_step": "mixtures.em",
    "pooled": "histograms.estimates",
    "perturbed_model": "graphical.learn",
    "population": "graphical.synthetic",
    "privelet_strategy": "histograms.wavelets",
    "psgd_fit": "graphical.sgd",
    "quadtree_strategy": "histograms.grids",
    "query_box": "workloads.boxes",
    "query_strategy": "workloads.boxes",
    "random_graph": "graphical.synthetic",
    "random_model": "graphical.synthetic",
    "ring_with_chords": "ising.models",
    "round_mixture": "mixtures.centres",
    "round_step": "mixtures.em",
    "rows_in": "graphical.learn",
    "segment_labels": "histograms.cuts",
    "shrunk_attribute_model": "classifiers.shrink",
    "shrunk_bayes_model": "classifiers.shrink",
    "smoothed": "histograms.smoothing",
    "steady_chain": "graphical.model",
    "steady_tables": "graphical.model",
    "tables_with_noise": "graphical.synthetic",
    "tree_leaf": "classifiers.treemodel",
    "tree_model": "classifiers.treemodel",
    "tree_node": "classifiers.treemodel",
    "two_levels": "histograms.cuts",
    "unbinned_rows": "graphical.unbin",
    "uniform_estimate": "histograms.mwem",
    "wavelet_cells": "histograms.wavelets",
}

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

    def body(*args: Any, **keywords: Any) -> Any:
        function = kernel(node)
        values = {k: v for k, v in bound(name, params, args, keywords).items() if v is not LEFT_OUT}
        return stored(name, function, (), values) if name in STORED else function(**values)

    return of_kernel(name, body)


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

        given = [_to_python(a) for a in args]
        named = {k: _to_python(v) for k, v in keywords.items()}
        with np.errstate(all="ignore"):
            return _to_jostle(guarded(name, function, given, named))

    return Builtin(name, body, sees_handles=True)


def _to_python(value: Any) -> Any:
    if isinstance(value, Cube):
        return value.shape
    if isinstance(value, Vectors):
        return value.facts
    if is_number(value):
        return int(value) if float(value).is_integer() and abs(value) < 2**53 else float(value)
    if isinstance(value, Interval):
        return (value.low, value.high)
    if isinstance(value, list) and value and all(is_number(v) for v in value):
        import numpy as np

        return np.array(value, dtype=float)
    return value


def _to_jostle(value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if type(value).__module__ == "numpy" and not is_vector(value):
        return float(value)
    if isinstance(value, tuple):
        return [_to_jostle(v) for v in value]
    if type(value) is dict:
        return Record(value)
    return value
