"""`jostle fmt` rewrites programs in one format. A file that does not parse is left as it is."""

from __future__ import annotations

import shutil
import sys
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

from jostle.diagnostics import Diagnostic, Refusal, unwritable
from jostle.resources import replacing
from jostle.source import Source
from jostle.tools.files import read_program
from jostle.tools.render import clean


def command(options: Namespace) -> int:
    """Formats files, the programs in folders, or standard input (`-`); with `check`, only says what would change."""
    from jostle.syntax.format import format_source
    from jostle.tools.render import tell

    if options.files == ["-"]:
        sys.stdout.write(format_source(Source("-", sys.stdin.read())))
        return 0
    changed, faults = 0, list[Diagnostic]()
    for path in _programs(options.files):
        try:
            source = read_program(path)
            text = format_source(source)
            if text == source.text:
                continue
            changed += 1
            if not options.check:
                _replace(path, text)
        except Refusal as refusal:
            faults += refusal.diagnostics
            continue
        print(clean(f"{path}: {'would be formatted' if options.check else 'formatted'}"))
    if faults:
        tell(faults)
    return 1 if faults or (options.check and changed) else 0


def _programs(names: list[str]) -> Iterator[Path]:
    for name in names:
        path = Path(name)
        if path.is_dir():
            yield from sorted(path.rglob("*.jst"))
        else:
            yield path


def _replace(path: Path, text: str) -> None:
    """All of the new text or all of the old one, whatever happens."""
    try:
        with replacing(path.resolve(), encoding="utf-8", newline="\n") as file:
            file.write(text)
            shutil.copymode(path, file.name)
    except OSError as fault:
        raise unwritable(f"`{path}`", fault, "nothing of it was changed") from fault
