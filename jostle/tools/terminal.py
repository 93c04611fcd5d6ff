"""Reads entries of the REPL: from a terminal with editing, colours, history and completion, or line by line from a
pipe.
"""

from __future__ import annotations

import contextlib
import difflib
import os
import re
from argparse import ArgumentParser
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from shlex import join, split
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import Completer
    from prompt_toolkit.history import History
    from prompt_toolkit.lexers import Lexer
    from prompt_toolkit.styles import Style

    from jostle.tools.completion import Vocabulary

Commands = Mapping[str, ArgumentParser]

# A line that cannot begin an entry: indented, empty, closing, or opening with a clause of the one before.
_GOES_ON = re.compile(
    r"\s|$|[)\]}.]|else\b(?!\s*=)|predict\s*\(|described by\b|protecting\b(?!\s*=)|budget (epsilon|rho)\b"
    r"|(informed by|by (?:validation|margin|features)|trained on)\b|wrt\b(?!\s*=)"
)


def unfinished(text: str) -> bool:
    """Whether what was typed so far needs another line; an empty last line ends a block, and a command needs none."""
    from jostle.syntax import incomplete

    return not text.lstrip().startswith(":") and incomplete(text.rstrip(" \t"))


def over_pipe(lines: Iterable[str]) -> Iterator[str]:
    """Entries from lines without a person behind them: an indented line, or one that closes a block, belongs to the
    entry before it."""
    from jostle.syntax import incomplete

    entry: list[str] = []
    for raw in lines:
        line = raw.rstrip("\r\n")
        text = "\n".join(entry)
        goes_on = _GOES_ON.match(line)
        if entry and (entry[0].lstrip().startswith(":") or not (goes_on or incomplete(text + "\n"))):
            yield text
            entry = []
        if entry or line.strip():
            entry.append(line)
    if entry:
        yield "\n".join(entry)


def at_terminal(prompt: Callable[[], str], vocabulary: Callable[[], Vocabulary]) -> Iterator[str]:
    """Entries typed by a person, until Ctrl-D; Ctrl-C abandons the one that is being typed."""
    session = _prompt_session(vocabulary)
    while True:
        try:
            yield session.prompt(prompt())
        except KeyboardInterrupt:
            continue
        except EOFError:
            return


def _prompt_session(vocabulary: Callable[[], Vocabulary]) -> PromptSession[str]:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
    from prompt_toolkit.key_binding import KeyBindings
    from prompt_toolkit.key_binding.key_processor import KeyPressEvent

    keys = KeyBindings()

    @keys.add("enter")
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.document.is_cursor_at_the_end and unfinished(buffer.text):
            buffer.insert_text("\n" + indent_after(buffer.document.current_line))
        elif buffer.document.text_after_cursor.strip():
            buffer.insert_text("\n")
        else:
            buffer.validate_and_handle()

    @keys.add("escape", "enter")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    options: dict[str, Any] = {"enable_history_search": True, "complete_while_typing": False}
    return PromptSession(
        history=_history(),
        multiline=True,
        key_bindings=keys,
        completer=completer(vocabulary),
        lexer=highlighter(),
        style=style(),
        auto_suggest=AutoSuggestFromHistory(),
        prompt_continuation=lambda width, line, wrapped: "· ".rjust(width),
        **options,
    )


def indent_after(line: str) -> str:
    """The indentation that the next line starts with: deeper after `:` and `{`, otherwise the same."""
    deeper = line.rstrip().endswith((":", "{")) and not line.rstrip().endswith("{{")
    blank = line[: len(line) - len(line.lstrip())] if line.strip() else ""
    return blank + ("    " if deeper else "")


def _history() -> History:
    """The history in this user's cache folder; in memory where that cannot be written."""
    from prompt_toolkit.history import FileHistory, InMemoryHistory

    path = history_path()
    if path is None:
        return InMemoryHistory()
    return FileHistory(str(path))


def history_path() -> Path | None:
    """The file of the history, made where it is missing, for this user's eyes only."""
    from jostle.resources import cache_folder

    with contextlib.suppress(OSError, RuntimeError):
        folder = cache_folder()
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "history"
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        return path
    return None


_COLOURS = {
    "comment": "ansibrightblack italic", "string": "ansigreen", "number": "ansiyellow", "constant": "ansiyellow",
    "declaration": "ansimagenta bold", "keyword": "ansiblue bold", "clause": "ansicyan", "function": "ansiblue",
}  # fmt: skip


def style() -> Style:
    from prompt_toolkit.styles import Style

    return Style.from_dict({f"jst.{colour}": look for colour, look in _COLOURS.items()})


def highlighter() -> Lexer:
    """Colours what is typed, by shape."""
    from prompt_toolkit.document import Document
    from prompt_toolkit.formatted_text import StyleAndTextTuples
    from prompt_toolkit.lexers import Lexer

    from jostle.syntax.parser import colour_tokens

    class Highlighter(Lexer):
        def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
            lines = document.lines

            def line(number: int) -> StyleAndTextTuples:
                text = lines[number] if number < len(lines) else ""
                return [(f"class:jst.{c}" if c in _COLOURS else "", piece) for c, piece in colour_tokens(text)]

            return line

    return Highlighter()


def completer(vocabulary: Callable[[], Vocabulary]) -> Completer:
    """Completes names, columns, fields and the words that may come next; commands after a colon."""
    from prompt_toolkit.completion import CompleteEvent, Completer, Completion
    from prompt_toolkit.document import Document

    from jostle.tools.completion import command, complete

    class Words(Completer):
        def get_completions(self, document: Document, _event: CompleteEvent) -> Iterable[Completion]:
            text = document.text_before_cursor
            is_command = text.lstrip().startswith(":")
            typed, candidates = command(text.lstrip(), vocabulary()) if is_command else complete(text, vocabulary())
            for one in candidates:
                yield Completion(one.word, start_position=-len(typed), display_meta=one.kind)

    return Words()


def mend_words(words: list[str], commands: Commands, fits: Callable[[Sequence[str]], bool]) -> list[str]:
    """The words with the fewest changes, up to three, that are a right command; none where no such is found."""
    waiting, past = [words], [words]
    for _ in range(3):
        waiting = [new for old in waiting for new in _changes(old, commands) if new not in past]
        past += waiting
        if (right := next(filter(fits, waiting), None)) is not None:
            return _of_program(right)
    return []


_NAMES = {"--bind": r"\bbound\(\"(\w+)\"\)", "--save": r"(?m)^[ \t]*release (\w+)", "--set": r"(?m)^param (\w+)"}


def _of_program(words: list[str]) -> list[str]:
    """The words with the names that their program has in their pairs; none where several may be meant."""
    files = [Path(word) for word in words if word.endswith(".jst") and Path(word).is_file()]
    text = files[0].read_text(encoding="utf-8", errors="replace") if files else ""
    for at, (flag, pair) in enumerate(pairwise(words)):
        name, _, value = pair.partition("=")
        names = dict.fromkeys(re.findall(_NAMES[flag], text)) if flag in _NAMES else {}
        if names and name not in names:
            near = [one for one in names if one in value] or [*names]
            if len(near) > 1 and flag != "--save":
                return []
            words = [*words[: at + 1], f"{near[0]}={value}", *words[at + 2 :]]
    return words


def _changes(words: list[str], commands: Commands) -> Iterator[list[str]]:
    """The words of a command with one thing as it should be that another command, or another tool, has so."""
    from jostle.mistakes.foreign import meanings

    command, flags = words[0], {name: [*parser._option_string_actions] for name, parser in commands.items()}
    line = join(words)
    yield from (split(new) for rule, write in meanings("commands") if (new := rule.sub(write, line)) != line)
    if "-c" in words[1:]:
        yield ["ask", *words[words.index("-c") + 1 :], *words[: words.index("-c")]]
    if command not in commands:
        yield from ([near, *words[1:]] for near in difflib.get_close_matches(command, commands, n=2))
        yield from (["run", *words[1:], flag] for flag in (f"--{command}",) if flag in flags["run"])
        yield ["run", *words] if command.endswith(".jst") else ["run", *words[1:]]
    elif command == "data":
        verbs = re.findall(r"[a-z]+", commands[command].format_help().partition("\n\n")[2])
        yield from (["data", near, *words[2:]] for near in difflib.get_close_matches("".join(words[1:2]), verbs, n=1))
        file = next((word for word in words[2:] if "." in word and not word.startswith("-")), "")
        if words[1:2] == ["register"] and file:
            yield [*words[:2], re.sub(r"\W", "_", Path(file).stem), *words[2:]]
            yield [*words, "--protecting", "rows"]
    else:
        for at in range(1, len(words)):
            yield from _at_word(words, at, flags)


def _at_word(words: list[str], at: int, flags: Mapping[str, Sequence[str]]) -> Iterator[list[str]]:
    """The words of a command with one of them changed: a flag, a pair, or a number."""
    word, before, after, command = words[at], words[:at], words[at + 1 :], words[0]
    flag, _, value = word.partition("=")
    pair = words[at - 1] in ("--set", "--bind", "--save")
    if word.startswith("-") and value and flag in flags[command]:
        yield [*before, flag, *after]
    elif word.startswith("-") and flag not in flags[command]:
        for near in difflib.get_close_matches(flag, flags[command], n=2, cutoff=0.7):
            yield [*before, near, *([value] if value else []), *after]
        yield from ([name, *words[1:]] for name in flags if flag in flags[name])
        yield [*before, *after]
        yield [*before, *after[1:]]
    elif "=" in word and not pair and word[0] != "-":
        yield [*before, "--set", *words[at:]]
    elif pair and "=" not in word:
        yield [*before, "=".join(words[at : at + 2]), *after[1:]]
        yield [*before, word.replace(":", "=", 1), *after]
    elif number := re.fullmatch(r"[^\d-]*(-?\d[\d.]*)\D*", word):
        yield [*before, number[1], *after]
