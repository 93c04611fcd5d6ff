"""The closed list of kernels that the standard library may name: `external hb_strategy(shape)`.

A kernel works on released numbers and public values. It is imported when it is first called.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from jostle.diagnostics import refuse
from jostle.privacy.handles import Cube, Vectors
from jostle.run.operators import guarded
from jostle.run.stored import stored
from jostle.run.values import Builtin, Interval, Record, is_number, is_vector

KERNELS: dict[str, str] = {
    "agrid_first": "grids",
    "agrid_second": "grids",
    "ahp_labels": "clusters",
    "alphabets": "pairwise",
    "axis_tree": "axistree",
    "binned_model": "classifierfits",
    "branched_model": "classifierfits",
    "bucket_strategy": "strategies",
    "c45_prune": "treemodel",
    "careful_model": "classifierfits",
    "cells_like": "centres",
    "centres_moved": "centres",
    "centres_of_cells": "centres",
    "centres_of_sums": "centres",
    "centres_start": "centres",
    "centres_view": "centres",
    "cgm_fit": "graphical.learn",
    "chain_cliques": "graphical.made",
    "column_place": "frankwolfe",
    "cut": "cuts",
    "cut_places": "cuts",
    "estimate": "strategies",
    "expected_counts": "graphical.selecting",
    "factor_model": "factors",
    "fitting_pairs": "graphical.selecting",
    "fourier_basis": "fourier",
    "fourier_cells": "fourier",
    "fourier_costs": "fourier",
    "fourier_strategy": "fourier",
    "fw_rounds": "frankwolfe",
    "fw_start": "frankwolfe",
    "fw_step": "frankwolfe",
    "gaussian_step": "mixtures",
    "grain_for": "cuts",
    "graphical_model": "graphical.model",
    "greedy_h_strategy": "greedy",
    "grid_strategy": "grids",
    "group_strategy": "clusters",
    "hb_strategy": "hierarchy",
    "hdmm_strategy": "strategies",
    "identity_strategy": "hierarchy",
    "ising_fit": "ising",
    "ising_model": "ising",
    "ising_of_nodes": "ising",
    "joined_tables": "graphical.made",
    "joining_pairs": "graphical.selecting",
    "kd_labels": "clusters",
    "linear_model": "classifierfits",
    "logistic_model": "frankwolfe",
    "made_mixture": "mixtures",
    "majority_model": "classifierfits",
    "mixture_frames": "mixtures",
    "mixture_prior": "mixtures",
    "mixture_start": "mixtures",
    "mixture_step": "mixtures",
    "mwem_learn": "mwem",
    "mwem_start": "estimates",
    "mwem_update": "mwem",
    "naive_bayes_model": "classifierfits",
    "naive_fit": "graphical.learn",
    "node_start": "pairwise",
    "node_step": "pairwise",
    "noisy_gain": "treemodel",
    "nonnegative": "estimates",
    "pairwise_of_nodes": "pairwise",
    "pairwise_ring": "pairwise",
    "plain_frames": "mixtures",
    "plain_start": "mixtures",
    "plain_step": "mixtures",
    "pooled": "estimates",
    "population": "graphical.made",
    "privelet_strategy": "wavelets",
    "quadtree_strategy": "grids",
    "query_box": "workloads",
    "query_strategy": "workloads",
    "random_graph": "graphical.made",
    "random_model": "graphical.made",
    "ring_with_chords": "ising",
    "round_mixture": "centres",
    "round_step": "mixtures",
    "rows_in": "graphical.learn",
    "segment_labels": "cuts",
    "tables_with_noise": "graphical.made",
    "tree_leaf": "treemodel",
    "tree_model": "treemodel",
    "tree_node": "treemodel",
    "two_levels": "cuts",
    "uniform_estimate": "mwem",
    "wavelet_cells": "wavelets",
}

STORED = frozenset({"fourier_basis", "hdmm_strategy"})
"""Those that take long and depend on public things alone: their values are kept on disk."""


def external(name: str) -> Builtin:
    """The kernel of this name, as a function of the language: whole numbers arrive as integers, cubes as shapes."""
    if name not in KERNELS:
        raise refuse("NameError", f"there is no kernel `{name}`", help=f"the kernels are {', '.join(KERNELS)}")

    def body(*args: Any, **keywords: Any) -> Any:
        function = getattr(importlib.import_module(f"jostle.kernels.{KERNELS[name]}"), name)
        return stored(name, function, args, keywords) if name in STORED else function(*args, **keywords)

    return of_kernel(name, body)


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
