"""`jostle fmt` rewrites programs in one format. A file that does not parse is left as it is."""

from __future__ import annotations

import shutil
import sys
from argparse import Namespace
from collections.abc import Iterator
from difflib import SequenceMatcher
from pathlib import Path

from jostle.diagnostics import Diagnostic, Refusal, unwritable
from jostle.resources import replacing
from jostle.source import Source
from jostle.tools.arguments import read_program
from jostle.tools.render import tell
from jostle.trace.text import clean

_MOST = 8  # places of a file that are reported


def command(options: Namespace) -> int:
    """Formats files, the programs in folders, or standard input (`-`); with `check`, only says what would change."""
    from jostle.syntax.format import format_source

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
                rewrite(path, text)
        except Refusal as refusal:
            faults += refusal.diagnostics
            continue
        status = f"would be formatted, {_lines(source.text, text)}" if options.check else "formatted"
        print(clean(f"{path}: {status}"))
    if faults:
        tell(faults)
    return 1 if faults or (options.check and changed) else 0


def _lines(before: str, after: str) -> str:
    """The lines that would change, as they are numbered now: `lines 3, 7 to 9`."""
    matcher = SequenceMatcher(None, before.splitlines(), after.splitlines(), autojunk=False)
    places = [(start + 1, max(start + 1, end)) for tag, start, end, *_ in matcher.get_opcodes() if tag != "equal"]
    ranges = [f"{first} to {last}" if last > first else str(first) for first, last in places] or ["the last"]
    more = f" and {len(ranges) - _MOST} more places" if len(ranges) > _MOST else ""
    return ("line " if len(places) == 1 and " " not in ranges[0] else "lines ") + ", ".join(ranges[:_MOST]) + more


def _programs(names: list[str]) -> Iterator[Path]:
    for name in names:
        path = Path(name)
        if path.is_dir():
            yield from sorted(path.rglob("*.jst"))
        else:
            yield path


def rewrite(path: Path, text: str) -> None:
    """All of the new text or all of the old one, whatever happens."""
    try:
        with replacing(path.resolve(), encoding="utf-8", newline="\n") as file:
            file.write(text)
            shutil.copymode(path, file.name)
    except OSError as fault:
        raise unwritable(f"`{path}`", fault, "nothing of it was changed") from fault
