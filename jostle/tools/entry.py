"""The `jostle` command. `--version` is answered before anything is imported; nothing may be imported at the top here.

Exit status: 0 fine, 1 the program was refused or failed, 2 wrong usage, 130 stopped from the keyboard (143 by SIGTERM).
"""

from __future__ import annotations

import sys

from jostle.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from jostle.diagnostics import Diagnostic


def main(argv: list[str] | None = None) -> int:
    """Runs one command line and returns its exit status; nothing that goes wrong leaves as an exception."""
    words = sys.argv[1:] if argv is None else list(argv)
    if words in (["--version"], ["-V"]):
        try:
            print(f"jostle {__version__}", flush=True)
            if sys.stdout:
                return 0
        except OSError:
            pass  # reported below, as of every command
    if argv is None and words[:1] in (["run"], ["check"]):
        import gc

        # modules and grammars hold no garbage: until a program's first statement (`loaded`)
        gc.set_threshold(1_000_000)
    from jostle.tools.outlet import guarded

    return guarded(lambda: _dispatch(words), json_wanted=_json_wanted(words))


def _dispatch(words: list[str]) -> int:
    from jostle.tools.arguments import COMMANDS, fits, parse

    options = parse(words)
    if isinstance(options, int):
        if options != 2 or not words:
            return options
        from shlex import join

        from jostle.tools.terminal import mend_words

        words = ["ask", *words[1:]] if words[:1] == ["-c"] else words
        if way := mend_words(words, COMMANDS, fits):
            print(f"  = help: write `jostle {join(way)}`", file=sys.stderr)
        return options
    from jostle.diagnostics import Refusal
    from jostle.tools.commands import command_of

    try:
        return command_of(options.command)(options)
    except Refusal as refusal:
        raise Refusal(*_as_checked(refusal.diagnostics)) from None


def _as_checked(faults: Sequence[Diagnostic]) -> Sequence[Diagnostic]:
    """The faults of one program in the words of `jostle check`, whichever command came upon them."""
    kind, place = faults[0].kind, faults[0].span
    if place is None or kind not in ("SyntaxError", "NameError") or not place.source.name.endswith(".jst"):
        return faults
    if any(fault.span is None or fault.span.source != place.source for fault in faults):
        return faults
    from jostle.tools.session import Session

    return Session().check(place.source) or faults


def _json_wanted(words: list[str]) -> bool:
    """Whether standard output is promised to be one JSON object, known before the words are understood."""
    return "--format=json" in words or any(words[k : k + 2] == ["--format", "json"] for k in range(len(words)))
