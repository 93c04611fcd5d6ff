"""What may be handed over to `bound("name")`: asked when it is handed over, before any program runs.

That a file is there, and of what type an object is, is public; nothing of what they hold is looked at.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

from jostle.diagnostics import Refusal, refuse
from jostle.tools.files import misspelt


def need_data(name: str, value: Any, folders: Sequence[Path]) -> None:
    """Refuses with `DataError` what is neither a path at which a file lies, a table, nor an array of counts."""
    from jostle.readers.frames import need_table
    from jostle.run.origins import is_array, is_paths

    try:
        if is_paths(value):
            for text in [value] if isinstance(value, str) else value:
                _need_files(text, folders)
        elif not is_array(value):
            need_table(value)
    except Refusal as refusal:
        first = refusal.first
        raise refuse(first.kind, f"`{name}` cannot be bound: {first.message}", help=first.help) from None


def beside(program: str, path: str) -> Path:
    """A path as a run of the program finds it: in the program's own folder, else in the working directory."""
    from jostle.engine.filesets import paths

    own = Path(program).parent
    try:
        return own / path if paths(path, [own]) != [path] else Path(path)
    except Refusal:  # a pattern that matches nothing there
        return Path(path)


def identity(bound: Mapping[str, Any], folders: Sequence[Path], kind: str, args: list[Any]) -> Hashable:
    """Names of one file or one bound object have parts in common; None is not known. Looks up names only."""
    from jostle.check.cost import literal_identity
    from jostle.engine.filesets import identities, paths
    from jostle.language.builtins import REMOTE

    target: Any = args[0] if args else None
    if kind in ("dataset", *REMOTE) or (kind == "bound" and target not in list(bound)):
        return literal_identity(kind, args)
    if kind == "bound":
        target = bound[target]
    texts = [target] if isinstance(target, str) else target
    if not (isinstance(texts, list | tuple) and texts and all(isinstance(text, str) for text in texts)):
        return literal_identity(kind, args) if kind != "bound" else ("object", id(target))
    part = tuple(args[1:])
    try:
        places = [place for text in texts for place in paths(text, folders)]
    except Refusal:
        return literal_identity(kind, args)
    names = [name for place in places for name in identities(place) or [("path", str(Path(place).resolve()))]]
    return frozenset((*name, *part) for name in names)


def _need_files(text: str, folders: Sequence[Path]) -> None:
    from jostle.engine.filesets import paths

    if paths(text, folders) != [text]:
        return
    help = misspelt(text, folders) or "give its whole path"
    raise refuse("DataError", f"there is no file `{text}`", help=help)
