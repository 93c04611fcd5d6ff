"""The closed list of kernels that the standard library may declare: `external hb_strategy(shape)`.

A kernel works on released numbers and public values. It is imported on its first call. Slow results of kernels on
public values alone are stored on disk, in `strategies` of this user's cache folder: one `.npz` per value, under a
digest of the kernel's name, its arguments, and the source of all kernels. A damaged file is created again; the oldest
are removed beyond `LIMIT` bytes. A wrong strategy costs accuracy and never privacy.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache, lru_cache
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin, get_type_hints

from jostle import kernels
from jostle.diagnostics import refuse
from jostle.formulas import Noised, cuts_of
from jostle.kernels import Model
from jostle.lazy import Array, np
from jostle.noise_laws import Gaussian, Laplace
from jostle.plan.digest import plan_digest
from jostle.privacy.kernel.handles import Cube, Vectors
from jostle.resources import KEEPS, cache_folder, replacing
from jostle.run.operators import bound, guarded
from jostle.run.values import REQUIRED, Builtin, Interval, Record, is_number, is_vector, kind_name
from jostle.syntax import nodes as n

if TYPE_CHECKING:
    Arrays = dict[str, Array]

LIMIT = 256 * 2**20
AT_HAND = 8
_LATEST: dict[Path, object] = {}
"""The stored values that this process used; they are read-only."""


def stored(name: str, function: Callable[..., object], args: tuple[object, ...], keywords: dict[str, object]) -> object:
    """`function(*args, **keywords)`, from disk if it was stored for the same arguments and code."""
    path = _path(name, args, keywords) if KEEPS.get() else None
    if path is None:
        return function(*args, **keywords)
    result = _LATEST.get(path)
    if result is None:
        result = _read(path)
        if result is None:
            result = function(*args, **keywords)
            _write(path, result)
        while len(_LATEST) >= AT_HAND:
            _LATEST.pop(next(iter(_LATEST)))
        _LATEST[path] = result
    return result


def _path(name: str, args: tuple[object, ...], keywords: dict[str, object]) -> Path | None:
    """The path of a stored value; None for arguments without a digest, or without a home directory."""
    digested = plan_digest([_version(), name, args, keywords], {})
    try:
        return cache_folder() / "strategies" / f"{digested.digest}.npz" if digested.closed else None
    except RuntimeError:
        return None


@lru_cache(maxsize=1)
def _version() -> str:
    """A digest of the source of all kernels."""
    hasher = hashlib.sha256()
    for path in sorted(Path(str(kernels.__file__)).parent.rglob("*.py")):
        hasher.update(path.read_bytes())
    return hasher.hexdigest()


def _read(path: Path) -> object:
    """The value in a file; None if it is missing or damaged."""
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
            return _joined(json.loads(str(arrays["value"])), arrays)
    except (OSError, ValueError, KeyError, EOFError, TypeError, zipfile.BadZipFile):
        return None


def _write(path: Path, value: object) -> None:
    """Writes a file atomically, and makes room for it."""
    arrays: Arrays = {}
    try:
        text = json.dumps(_split(value, arrays))
    except TypeError:
        return
    arrays["value"] = np.array(text)
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path, "wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]
        _make_room(path.parent)


def _make_room(folder: Path) -> None:
    """Removes the oldest files beyond `LIMIT` bytes, and files of interrupted writers."""
    total = 0
    files = [(path.stat(), path) for path in folder.iterdir() if path.suffix in (".npz", ".part")]
    for about, path in sorted(files, key=lambda pair: -pair[0].st_mtime):
        total += about.st_size
        if total > LIMIT:
            path.unlink(missing_ok=True)


def _split(value: Any, arrays: Arrays) -> object:
    """A value as JSON, with its arrays stored separately, by number."""
    if type(value).__module__ == "numpy":
        name = f"a{len(arrays)}"
        arrays[name] = value
        return {"array": name}
    if isinstance(value, Mapping):
        return {"record": {str(key): _split(item, arrays) for key, item in value.items()}}
    if isinstance(value, list):
        return [_split(item, arrays) for item in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(type(value).__name__)


def _joined(value: object, arrays: Arrays) -> object:
    if isinstance(value, list):
        return [_joined(item, arrays) for item in value]
    if isinstance(value, dict):
        if "array" in value:
            return arrays[value["array"]]
        return {key: _joined(item, arrays) for key, item in value["record"].items()}
    return value


_BY_MODULE = {
    "classifiers.shrink": "bayes_tree_model blended_model class_means_model contrast_model shrunk_bayes_model",
    "classifiers.fits": "binned_model branched_model linear_model majority_model naive_bayes_model ranked_area "
    "softmax_model",
    "classifiers.growing": "tree_counted tree_drawn tree_end tree_split tree_split_by tree_start shrunk_tree_model",
    "classifiers.treemodel": "c45_prune noisy_gain tree_leaf tree_model tree_node",
    "arrays": "whole_number",
    "graphical.adaptive": "chosen_cliques expected_counts joining_places search_begun search_continued search_plan",
    "graphical.synthetic": (
        "chain_cliques intervals joined_tables model_of_means population random_graph random_model tables_with_noise "
        "unbinned_rows"
    ),
    "graphical.learn": "cgm_fit naive_fit perturbed_model psgd_fit rows_in",
    "graphical.model": "graphical_model steady_chain steady_tables",
    "graphical.shrunken": "shrunken_fit",
    "graphs": "degrees_of fitted_graph graph_facts seeded_graph",
    "histograms.adaptive": "drawn_together equal_parts expected_cells halved_cells like_examples refined_strategy",
    "histograms.partitions": "ahp_labels axis_sums box_tree kd_labels",
    "histograms.estimates": "mwem_learn mwem_start nonnegative pooled uniform_estimate",
    "histograms.grids": (
        "agrid_first agrid_second grid_strategy group_strategy hb_strategy identity_strategy quadtree_strategy"
    ),
    "histograms.smoothing": "smoothed",
    "histograms.strategies": "bucket_strategy estimate for_few_rows hdmm_strategy",
    "histograms.greedy": "greedy_h_strategy privelet_strategy wavelet_cells",
    "graphical.ising": "ising_fit ising_independent_fit ising_model ising_of_nodes ring_with_chords",
    "graphical.pairwise": (
        "alphabets column_place fw_rounds fw_start fw_step logistic_model node_start node_step pairwise_fit "
        "pairwise_independent_fit pairwise_of_nodes pairwise_ring pairwise_room"
    ),
    "linear_algebra": "det dot eigen inverse matmul solve svd transpose",
    "mixtures.centres": (
        "cells_like centres_moved centres_of_cells centres_of_map centres_of_sums centres_seen centres_start "
        "centres_view map_begun map_counted map_moved map_places map_refined map_strength map_view round_mixture"
    ),
    "mixtures.em": (
        "gaussian_step likelihood_view mixture_frames mixture_prior mixture_start mixture_step plain_frames "
        "map_start plain_start plain_step round_step shrunk_gaussian_step shrunk_mixture_step synthetic_mixture "
        "with_background with_shares with_tails"
    ),
    "mixtures.gaussians": "factor_model",
    "mixtures.looks": (
        "centres_about centres_beside look_again look_begun look_bound look_places look_spread look_view means_about "
        "places_about spread_view"
    ),
    "rowprograms.losses": "random_weights",
    "simulated_points": "simulated_cells simulated_points",
    "regressions.fits": (
        "first_stage forked_model leaf_model mean_model next_stage pooled_shares ridge_model target_seen"
    ),
    "statistics.moments": "cross_table describe group_difference group_means weighted_values",
    "statistics.effects": "effect_of_strata independence_test log_rank_test survival_curve",
    "statistics.regression": (
        "correlation_pulls correlations linear_fit logistic_curvature_matrix logistic_fit logistic_start "
        "logistic_step regression_pulls softmax_fit descent_start descent_step"
    ),
    "statistics.weighting": "effect_of_model effect_of_scores effect_scores hazard_model rate_model",
    "workloads.boxes": "query_strategy",
}  # fmt: skip
KERNELS = {name: module for module, names in _BY_MODULE.items() for name in names.split()}
"""The module of each kernel in `jostle.kernels`."""

LEFT_OUT = object()
"""Marks an argument that uses the default of the Python function, which the declaration repeats."""

STORED = frozenset({"hdmm_strategy"})
"""Slow kernels on public values alone, whose results are stored on disk."""


def external(node: n.External) -> Builtin:
    """The kernel of a declaration, called as declared: integers arrive as int, cubes as shapes.

    The Python function is loaded on the first call, and compared with the declaration.
    """
    name = node.name
    params = tuple((p.name, REQUIRED if p.default is None else LEFT_OUT) for p in node.params)
    if name not in KERNELS:
        raise refuse("NameError", f"there is no kernel `{name}`", help=f"the kernels are {', '.join(KERNELS)}")
    builtin = _DECLARED.get((name, params))
    if builtin is not None:
        return builtin

    @cache
    def declared() -> Callable[..., object]:
        return kernel(node)

    def body(*args: object, **keywords: object) -> Any:
        function = declared()
        values = {k: v for k, v in bound(name, params, args, keywords).items() if v is not LEFT_OUT}
        for at, model in _models_of(function).items():
            if at in values and not isinstance(values[at], model):
                raise refuse("TypeError", f"`{name}` takes {model.jostle_kind}, not {kind_name(values[at])}")
        return stored(name, function, (), values) if name in STORED else function(**values)

    return _DECLARED.setdefault((name, params), of_kernel(name, body))


def parameters_of(function: Builtin) -> list[str]:
    """The names of a kernel's declared parameters."""
    return next(([name for name, _ in params] for (_, params), one in _DECLARED.items() if one is function), [])


_DECLARED: dict[tuple[str, tuple[tuple[str, object], ...]], Builtin] = {}
"""The declared kernels; two declarations of one kernel give the same object."""


def kernel(node: n.External) -> Callable[..., Any]:
    """The Python function of a declaration. Refused if its parameters differ."""
    function = kernel_of(node.name)
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


@cache
def _models_of(function: Callable[..., object]) -> dict[str, type[Model]]:
    """The parameters of a kernel that are models, with their classes."""
    hints = hints_of(function)
    return {at: hint for at, hint in hints.items() if isinstance(hint, type) and issubclass(hint, Model)}


def kernel_of(name: str) -> Callable[..., Any]:
    """The Python function of a kernel, imported on demand."""
    function: Callable[..., object] = getattr(importlib.import_module(f"jostle.kernels.{KERNELS[name]}"), name)
    return function


def of_kernel(name: str, function: Callable[..., object]) -> Builtin:
    """A function of `kernels`, or a method of a model, as a function of the language."""

    def body(*args: object, **keywords: object) -> Any:
        positional = [_to_python(a) for a in args]
        by_name = {k: _to_python(v) for k, v in keywords.items()}
        with np.errstate(all="ignore"), _read_only([*positional, *by_name.values()]):
            return to_jostle(guarded(name, function, positional, by_name))

    return Builtin(name, body, sees_handles=True)


def hints_of(function: Callable[..., object]) -> Mapping[str, object]:
    """The annotations of parameters and of the result, without names that only type checkers can resolve."""
    with suppress(NameError):
        return get_type_hints(function, include_extras=True)
    return {}


def needs_of(function: Callable[..., object]) -> Mapping[str, Callable[[object], None]]:
    """By parameter, functions that refuse an argument that does not fit."""
    return {name: get_args(hint)[1] for name, hint in hints_of(function).items() if get_origin(hint) is Annotated}


@contextmanager
def _read_only(values: list[object]) -> Iterator[None]:
    """A context in which the arrays of these values are read-only, since a program may share them."""
    arrays = [array for array in _arrays_of(values) if array.flags.writeable]
    try:
        for array in arrays:
            array.flags.writeable = False
        yield
    finally:
        for array in arrays:
            array.flags.writeable = True


def _arrays_of(value: object) -> Iterator[Array]:
    if is_vector(value):
        yield value
    elif isinstance(value, list | tuple | dict):
        for item in value.values() if isinstance(value, dict) else value:
            if not isinstance(item, float | str):
                yield from _arrays_of(item)


def vectors_facts(vectors: Vectors) -> dict[str, object]:
    """The public facts of rows as vectors."""
    return {
        "size": float(len(vectors.names)), "columns": list(vectors.names), "centres": list(vectors.centres),
        "scales": list(vectors.scales), "radius": vectors.radius, "norm": vectors.norm,
    }  # fmt: skip


def _to_python(value: object) -> Any:
    if isinstance(value, Cube):
        return value.shape
    if isinstance(value, Vectors):
        return vectors_facts(value)
    if is_number(value):
        return int(value) if float(value).is_integer() and abs(value) < 2**53 else float(value)
    if is_vector(value) and getattr(value, "origin", None) is not None and getattr(value, "noise", None) is None:
        return value.view(value.__class__.__base__)  # kernels receive plain arrays
    if isinstance(value, Interval):
        return (value.low, value.high)
    if isinstance(value, list) and value and all(map(is_number, value)):
        return _vector(value)
    if isinstance(value, list) and all(isinstance(v, list) and v and isinstance(v[0], Noised) for v in value):
        return [_to_python(v) for v in value]
    return value


def _vector(numbers: list[float]) -> object:
    """An array of numbers, with the law of their noise if all have the same."""
    from jostle.kernels.noisy_array import NoiseModel, with_noise

    array = np.array(numbers, dtype=float)
    laws = {v.law if isinstance(v, Noised) else None for v in numbers}
    law = laws.pop() if len(laws) == 1 else None
    return with_noise(array, NoiseModel(law, cut=cuts_of(*numbers))) if isinstance(law, Laplace | Gaussian) else array


def to_jostle(value: Any) -> object:
    """A kernel's result, or a field of a model, as a value of the language; dicts become records."""
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


def records_of(value: object) -> object:
    """A Python value with records in place of dicts."""
    if isinstance(value, dict):
        return Record((name, records_of(item)) for name, item in value.items())
    return [records_of(item) for item in value] if isinstance(value, list) else value
