"""The pages of the reference that are made from the code: built-ins, library, commands, Python, messages."""

from __future__ import annotations

import argparse
import inspect
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docs.prose import comment, markdown, plain

ROOT = Path(__file__).resolve().parents[1]

# A definition at the start of a line, with what stands between its parentheses; or a name that is given a value.
DEFINED = re.compile(r"^def (\w+)\(((?:[^()]|\([^()]*\))*)\)|^([A-Za-z_]\w*) = ", re.MULTILINE)


@dataclass(frozen=True)
class Part:
    """Definitions of a module that one comment is about: `signatures` as written, `words` the comment as a text."""

    signatures: tuple[str, ...]
    words: str


def module_parts(text: str) -> tuple[str, list[Part]]:
    """The opening comment of a module, and its definitions; those right below one another share their comment."""
    blocks = [block for block in re.split(r"\n{2,}", text.strip()) if not block.startswith("external ")]
    opening = markdown(comment(blocks[0])) if blocks else ""
    parts = []
    for block in blocks[1:] if opening else blocks:
        found = [_signature(match) for match in DEFINED.finditer(block)]
        if found:
            parts.append(Part(tuple(found), markdown(comment(block))))
    return opening, parts


def _signature(match: re.Match[str]) -> str:
    return match[3] or f"{match[1]}({re.sub(chr(92) + 's+', ' ', match[2])})"


def library_page(path: Path) -> str:
    """The reference of one module."""
    from jostle.language.builtins import BUILTINS, brought

    opening, parts = module_parts(path.read_text(encoding="utf-8"))
    out = [f"# `use {path.stem}`", "", opening, ""]
    for part in parts:
        out += ["```jostle", *part.signatures, "```", "", part.words, ""]
    of_language = [BUILTINS[name] for name in brought((path.stem,))]
    if of_language:
        out += ["## Built-ins that `use` brings", "", "| | |", "|---|---|"]
        out += [f"| `{row.usage}` | {row.about} |" for row in of_language]
    return "\n".join(out)


def builtins_page() -> str:
    """Each built-in by its row of the table, with the section of the guides that tells of it."""
    from jostle.language.aggregates import AGGREGATES, DISTINCT
    from jostle.language.builtins import BUILTINS

    opening = "Known without `use`, but for those of a module; the last column is where they are explained."
    out = ["# Built-in functions", "", opening, "", "| | | effect | `use` | |", "|---|---|---|---|---|"]
    sections = [*_sections("language.md"), *_sections("stdlib.md")]
    for name in sorted(BUILTINS, key=str.lower):
        row = BUILTINS[name]
        said = next(((page, head) for page, head, text in sections if re.search(rf"`[^`\n]*\b{name}\b", text)), None)
        where = f"[{said[1]}](../{said[0]}#{anchor(said[1])})" if said else f"`jostle/privacy/{row.file}`"
        module = f"`{row.module}`" if row.module else ""
        out.append(f"| `{row.usage}` | {row.about} | {row.effect.value} | {module} | {where} |")
    out += ["", "## Aggregates of a select", "", "| | | |", "|---|---|---|"]
    for entry in (*AGGREGATES.values(), *DISTINCT.values()):
        out.append(f"| `{entry.usage}` | {entry.about} | [measured](../privacy/aggregates.md) |")
    return "\n".join([*out, ""])


def aggregates_table() -> str:
    """A line an aggregate: what it measures and why its sensitivity is what it is, from the words of its file."""
    from jostle.privacy.measurements.aggregates.registry import AGGREGATES

    out = ["| aggregate | what is measured | sensitivity | mechanism | why |", "|---|---|---|---|---|"]
    for aggregate in AGGREGATES.values():
        words = sys.modules[aggregate.__module__].__doc__ or ""
        cells = dict(re.findall(r"^\*(\w+)\* (.+?)\.$", words, re.MULTILINE))
        argument = " | ".join(cells[name] for name in ("Measures", "Sensitivity", "Mechanism", "Why"))
        out.append(f"| `{aggregate.row.usage}` | {argument} |")
    return "\n".join(out) + "\n"


def _sections(page: str) -> Iterator[tuple[str, str, str]]:
    """Page, heading and text of each section."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    for section in re.split(r"^#{2,3} ", text, flags=re.MULTILINE)[1:]:
        head, _, rest = section.partition("\n")
        yield page, head.strip(), rest


def anchor(heading: str) -> str:
    from markdown.extensions.toc import slugify

    return slugify(re.sub(r"[`*]", "", heading), "-")


def commands_page() -> str:
    """Every command with its options, as `--help` tells them."""
    from jostle.tools.arguments import command_parser

    opening = "What `jostle COMMAND --help` says. [Tools](../tools.md) says what they are for."
    out = ["# Every command and option", "", opening, ""]
    for name, words, command in _commands(command_parser(), "jostle"):
        out += [f"## `{name}`", "", f"{words[:1].upper()}{words[1:]}.", ""]
        rows = [_option(action) for action in command._actions if not isinstance(action, argparse._HelpAction)]
        if rows:
            out += ["| | |", "|---|---|", *rows, ""]
    return "\n".join(out)


def _commands(parser: argparse.ArgumentParser, name: str) -> Iterator[tuple[str, str, argparse.ArgumentParser]]:
    """The commands without commands of their own, with their line of help."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            words = {choice.dest: choice.help or "" for choice in action._choices_actions}
            for verb, inner in action.choices.items():
                below = list(_commands(inner, f"{name} {verb}"))
                yield from below or [(f"{name} {verb}", words[verb], inner)]


def _option(action: argparse.Action) -> str:
    form = action.metavar if isinstance(action.metavar, str) else None
    if form is None and action.choices:
        form = "|".join(map(str, action.choices))
    if not action.option_strings:
        shown = form or action.dest
    else:
        shown = action.option_strings[-1] + (f" {form or action.dest.upper()}" if action.nargs != 0 else "")
    escaped = shown.replace("|", "\\|")
    return f"| `{escaped}` | {plain(action.help or '').replace('|', chr(92) + '|')} |"


def python_page() -> str:
    """What `import jostle` offers, by signature and docstring."""
    import jostle
    from jostle.tools.session import Result

    out = ["# From Python", "", PYTHON, ""]
    names = ("Session", "describe", "evaluate", "PrivateClassifier", "Refusal")
    for name, value in {**{name: getattr(jostle, name) for name in names}, "Result": Result}.items():
        out += [f"## `{'' if name == 'Result' else 'jostle.'}{name}`", "", *_documented(name, value)]
        if inspect.isclass(value):
            members = [(k, v) for k, v in vars(value).items() if not k.startswith("_") and _words(v)]
            for member, what in members:
                out += [f"### `{name}.{member}`", "", *_documented(member, what)]
    return "\n".join(out)


PYTHON = """
```python
import jostle

session = jostle.Session()
session.bind("survey", frame)  # a pandas, polars or Arrow table, a DuckDB relation, arrays, a path
result = session.run("count.jst", share=0.5)  # sets `param share`; raises jostle.Refusal
result.released["by_city"]  # a frame, an array or a number
```

where `count.jst` says `private survey = bound("survey") described by … protecting rows budget epsilon 1`. Programs of
one session share the budgets of their sources.
""".strip()


def _words(value: Any) -> str:
    """The docstring of what a person calls or reads; nothing for other members."""
    inner = value.fget if isinstance(value, property) else getattr(value, "func", value)
    return (inspect.getdoc(inner) or "") if callable(inner) else ""


def _documented(name: str, value: Any) -> list[str]:
    if isinstance(value, property) or hasattr(value, "func"):
        return [_paragraphs(_words(value)), ""]
    try:
        signature = str(inspect.signature(value))
    except ValueError:
        signature = "(…)"
    shown = re.sub(r"'([^']*)'", r"\1", f"{name}{signature}".replace("self, ", "").replace("(self)", "()"))
    return ["```python", shown.removesuffix(" -> None"), "```", "", _paragraphs(_words(value)), ""]


def _paragraphs(words: str) -> str:
    """A docstring as Markdown: an indented list of parameters keeps its lines."""
    lines = [f"- {line}" if re.match(r"\w+ : ", line) else line.strip() for line in plain(words).splitlines()]
    return re.sub(r"\n(- )", r"\n\n\1", "\n".join(lines))


def messages_page() -> str:
    """Each kind of refusal, as `jostle explain` tells it."""
    from jostle.tools.pages import PAGES

    opening = "Every refusal has a kind, a place, what is wrong and a way out. `jostle explain KIND` prints these."
    out = ["# Messages", "", opening, ""]
    for kind, page in PAGES.items():
        out += [f"## {kind}", "", plain(page.meaning), "", "```jostle", page.example.strip(), "```", ""]
        out += [plain(page.way_out), ""]
        if page.mended:
            out += ["Mended:", "", "```jostle", page.mended.strip(), "```", ""]
    return "\n".join(out)
