"""What may be handed over to `bound("name")`: asked when it is handed over, before any program runs.

That a file is there, and of what type an object is, is public; nothing of what they hold is looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jostle.diagnostics import Refusal, refuse
from jostle.tools.files import misspelt


def need_data(name: str, value: Any, folders: Sequence[Path]) -> None:
    """Refuses with `DataError` what is neither a path at which a file lies, a table, nor an array of counts."""
    from jostle.engine.duckdb.frames import need_table
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


def _need_files(text: str, folders: Sequence[Path]) -> None:
    from jostle.engine.filesets import paths

    if paths(text, folders) != [text]:
        return
    help = misspelt(text, folders) or "give its whole path"
    raise refuse("DataError", f"there is no file `{text}`", help=help)
