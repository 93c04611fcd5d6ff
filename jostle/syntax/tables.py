"""Loads the parser: Lark's table for `grammar/jostle.lark`, cached on disk between runs.

Reading the grammar from its text costs about half a second, reading the finished table a tenth of that. The table is
kept in the user's own cache folder (`JOSTLE_CACHE`, else `XDG_CACHE_HOME/jostle`, else `~/.cache/jostle`) under a name
that holds a hash of the grammar and of the versions it was made with. It is a pickle, so it may never be kept in a
folder that others can write to; where it cannot be read or written, the parser does without.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import sys
from contextlib import suppress
from pathlib import Path

import lark

from jostle.resources import cache_folder, folder, replacing
from jostle.syntax.builder import Builder
from jostle.syntax.layout import Layout

DAMAGED = (OSError, pickle.UnpicklingError, EOFError, AttributeError, ImportError, IndexError, KeyError, TypeError,
           ValueError, AssertionError)  # fmt: skip


def grammar_text() -> str:
    """The text of the grammar."""
    return (folder("grammar") / "jostle.lark").read_text(encoding="utf-8")


def load(builder: Builder, layout: Layout) -> lark.Lark:
    """A parser that lays out with `layout` and calls `builder` bottom-up while it reads."""
    text = grammar_text()
    try:
        path = cache_folder() / f"grammar-{_key(text)}.table"
    except RuntimeError:  # no home folder
        return _from_text(text, builder, layout)
    table = _read(path, builder, layout)
    if table is not None:
        return table
    fresh = _from_text(text, builder, layout)
    _write(path, fresh)
    return fresh


def _from_text(text: str, builder: Builder, layout: Layout) -> lark.Lark:
    """The parser of a grammar whose terminals the tests have compared, which Lark does again with `interegular`."""
    compares = lark.lexer.has_interegular
    lark.lexer.has_interegular = False
    try:
        return lark.Lark(
            text, parser="lalr", lexer="contextual", postlex=layout, transformer=builder, keep_all_tokens=True
        )
    finally:
        lark.lexer.has_interegular = compares


def _key(text: str) -> str:
    versions = f"{lark.__version__} {sys.version_info[:3]} {sys.implementation.name}"
    return hashlib.sha256(f"{versions}\n{text}".encode()).hexdigest()[:32]


def _read(path: Path, builder: Builder, layout: Layout) -> lark.Lark | None:
    try:
        with path.open("rb") as file:
            if os.name == "posix" and os.fstat(file.fileno()).st_uid != os.getuid():
                return None
            table = pickle.load(file)
        parser: lark.Lark = lark.Lark._load_from_dict(  # type: ignore[no-untyped-call]
            **table, postlex=layout, transformer=builder
        )
    except DAMAGED:
        return None
    return parser


def _write(path: Path, parser: lark.Lark) -> None:
    with suppress(OSError, pickle.PicklingError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with replacing(path, "wb") as file:
            parser.save(file, exclude_options=("postlex", "transformer"))
