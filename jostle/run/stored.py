"""What kernels took long to make of public things alone, kept on disk: strategies that are fitted to a workload.

A file a value, an `.npz` without pickled objects, in `strategies` of this user's cache folder, under a digest of the
kernel's name, its arguments, and the source of all kernels. A file that is damaged is made anew; a folder that cannot
be written costs the next run its time; the oldest files go when there are more than `LIMIT` bytes. A wrong strategy
costs accuracy and never privacy, since the trusted core computes what a strategy can reveal itself.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.records import field_names, is_record
from jostle.resources import cache_folder

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Arrays = dict[str, NDArray[Any]]

LIMIT = 256 * 2**20
AT_HAND = 8
_LATEST: dict[Path, Any] = {}
"""Those that this process used; nobody writes to a strategy."""


def stored(name: str, function: Callable[..., Any], args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """`function(*args, **keywords)`, from disk where it was made before with the same arguments by the same code."""
    path = _path(name, args, keywords)
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


def _path(name: str, args: tuple[Any, ...], keywords: dict[str, Any]) -> Path | None:
    """Where a value is kept; None for arguments that have no digest, and for who has no home."""
    hasher = hashlib.sha256(_version())
    try:
        _digest(hasher.update, [name, list(args), keywords])
        return cache_folder() / "strategies" / f"{hasher.hexdigest()}.npz"
    except (TypeError, RuntimeError):
        return None


@lru_cache(maxsize=1)
def _version() -> bytes:
    """A digest of the source of all kernels."""
    from jostle import kernels

    hasher = hashlib.sha256()
    for path in sorted(Path(str(kernels.__file__)).parent.rglob("*.py")):
        hasher.update(path.read_bytes())
    return hasher.digest()


def _digest(tell: Callable[[bytes], object], value: Any) -> None:
    """Tells a hasher of a value, with lengths and kinds, so that no two values are told alike."""
    if value is None or isinstance(value, (bool, int, float, str)):
        text = f"{type(value).__name__} {value!r}".encode()
        tell(f"{len(text)} ".encode() + text)
    elif isinstance(value, (list, tuple)):
        tell(f"list {len(value)} ".encode())
        for item in value:
            _digest(tell, item)
    elif isinstance(value, Mapping):
        _digest(tell, sorted(value))
        _digest(tell, [value[key] for key in sorted(value)])
    elif is_record(value):
        _digest(tell, [type(value).__name__, {name: getattr(value, name) for name in field_names(type(value))}])
    elif type(value).__module__ == "numpy" and hasattr(value, "dtype") and value.dtype != object:
        _digest(tell, [str(value.dtype), [int(side) for side in value.shape]])
        tell(value.tobytes())
    else:
        raise TypeError(type(value).__name__)


def _read(path: Path) -> Any:
    """The value in a file; None where there is none, or a damaged one."""
    import numpy as np

    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
            return _joined(json.loads(str(arrays["value"])), arrays)
    except (OSError, ValueError, KeyError, EOFError, TypeError, zipfile.BadZipFile):
        return None


def _write(path: Path, value: object) -> None:
    """Writes a file at once or not at all, and makes room for it."""
    import numpy as np

    arrays: Arrays = {}
    try:
        text = json.dumps(_split(value, arrays))
    except TypeError:
        return
    arrays["value"] = np.array(text)
    temporary = ""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".part")
        with os.fdopen(handle, "wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]
        os.replace(temporary, path)
        _make_room(path.parent)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(temporary)


def _make_room(folder: Path) -> None:
    """Removes the oldest files beyond `LIMIT` bytes, and what interrupted writers left."""
    total = 0
    files = [(path.stat(), path) for path in folder.iterdir() if path.suffix in (".npz", ".part")]
    for about, path in sorted(files, key=lambda pair: -pair[0].st_mtime):
        total += about.st_size
        if total > LIMIT:
            path.unlink(missing_ok=True)


def _split(value: Any, arrays: Arrays) -> Any:
    """A value as JSON; its arrays stand apart, by number."""
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


def _joined(value: object, arrays: Arrays) -> Any:
    if isinstance(value, list):
        return [_joined(item, arrays) for item in value]
    if isinstance(value, dict):
        if "array" in value:
            return arrays[value["array"]]
        return {key: _joined(item, arrays) for key, item in value["record"].items()}
    return value
