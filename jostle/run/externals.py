"""The closed list of kernels that the standard library may name: `external hb_strategy(shape)`.

A kernel works on released numbers and public values. It is imported when it is first called.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from jostle.diagnostics import refuse
from jostle.privacy.handles import Cube
from jostle.run.operators import guarded
from jostle.run.values import Builtin, Interval, is_number, is_vector

KERNELS: dict[str, str] = {
    "agrid_first": "grids",
    "agrid_second": "grids",
    "ahp_labels": "clusters",
    "bucket_strategy": "strategies",
    "estimate": "strategies",
    "greedy_h_strategy": "greedy",
    "grid_strategy": "grids",
    "group_strategy": "clusters",
    "hb_strategy": "hierarchy",
    "hdmm_strategy": "strategies",
    "identity_strategy": "hierarchy",
    "kd_labels": "clusters",
    "mwem_start": "estimates",
    "mwem_update": "mwem",
    "nonnegative": "estimates",
    "pooled": "estimates",
    "privelet_strategy": "wavelets",
    "quadtree_strategy": "grids",
    "query_box": "workloads",
    "uniform_estimate": "mwem",
    "wavelet_cells": "wavelets",
}


def external(name: str) -> Builtin:
    """The kernel of this name, as a function of the language: whole numbers arrive as integers, cubes as shapes."""
    if name not in KERNELS:
        raise refuse("NameError", f"there is no kernel `{name}`", help=f"the kernels are {', '.join(KERNELS)}")

    def body(*args: Any, **keywords: Any) -> Any:
        return getattr(importlib.import_module(f"jostle.kernels.{KERNELS[name]}"), name)(*args, **keywords)

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
    return value
