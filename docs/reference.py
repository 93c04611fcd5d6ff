"""The pages of the reference that are made from the code: built-ins, library, commands, Python, messages."""

from __future__ import annotations

import argparse
import inspect
import itertools
import re
import textwrap
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docs.prose import comment, markdown, plain

if TYPE_CHECKING:
    from jostle.documentation import Documentation

ROOT = Path(__file__).resolve().parents[1]
ROWS_TOO = "Functions that rows have too"


def library_page(path: Path) -> str:
    """The reference of one module: what it is, the built-ins that it brings, what it defines."""
    from jostle.documentation import documented

    opening = markdown(comment(path.read_text(encoding="utf-8")))
    out = [f"# `use {path.stem}`", "", opening, "", _below(f"use {path.stem}\n"), ""]
    entries = [entry for entry in documented() if entry.module == path.stem]
    brought = [entry for entry in entries if entry.span is None]
    defined = [entry for entry in entries if entry.span is not None]
    for heading, some in (("What it defines", defined), ("Built-ins that `use` brings", brought)):
        out += [f"## {heading}", "", *_entries(some)] if some else []
    return "\n".join(out)


def builtins_page() -> str:
    """Each built-in that needs no `use`, in the groups and the order of its table."""
    from jostle.documentation import documentation
    from jostle.documentation.entries import builtins

    opening = "Known everywhere; what serves one module alone stands with [the library](../stdlib.md)."
    out = ["# Built-in functions", "", opening, "", _below(""), ""]
    groups = _groups()
    sections = [*_sections("language.md"), *_sections("rows.md"), *_sections("accuracy.md"), *_sections("budgets.md")]
    group = ""
    rows = [row for row in builtins() if not row.module]
    for row, following in itertools.zip_longest(rows, rows[1:]):
        if groups.get(row.name, ROWS_TOO) != group:
            group = groups.get(row.name, ROWS_TOO)
            out += [f"## {group}", ""]
        aggregate = any(entry.kind == "aggregate" for entry in documentation(row.name))
        links = [f"as [an aggregate of a select](aggregates.md#{row.name})"] if aggregate else []
        said = next(((p, h) for p, h, text in sections if re.search(rf"`[^`\n]*\b{row.name}\b", text)), None)
        links += [f"[{said[1]}](../{said[0]}#{anchor(said[1])})"] if said else []
        out += _entry(row, following, f"See {', '.join(links)}." if links else "")
    return "\n".join(out)


def aggregates_page() -> str:
    """Each aggregate of a select."""
    opening = (
        "What a select may ask: `{{ select AGG from T with epsilon e }}`. Several share their select's amount. What "
        "each adds for one row more or less, and why, is in [the proofs](../privacy/aggregates.md)."
    )
    return _kind_page("Aggregates", opening, "aggregate")


def words_page() -> str:
    """Each word of the language."""
    return _kind_page("Words of the language", "What is no function: statements, clauses, parts of queries.", "word")


def _kind_page(title: str, opening: str, kind: str) -> str:
    from jostle.documentation import documented

    out = [f"# {title}", "", opening, "", _below(""), ""]
    return "\n".join([*out, *_entries([entry for entry in documented() if entry.kind == kind])])


def _below(use: str) -> str:
    """The declarations that examples stand below, folded."""
    from jostle.documentation import given

    lines = "\n".join(f"    {line}" for line in (given() + use).rstrip().splitlines())
    return f'??? note "Every example stands below these lines, and runs"\n\n    ```jostle\n{lines}\n    ```'


def _entries(entries: Sequence[Documentation]) -> list[str]:
    return [line for pair in itertools.zip_longest(entries, entries[1:]) for line in _entry(*pair)]


def _entry(entry: Documentation, following: Documentation | None, links: str = "") -> list[str]:
    """A name: how it is written, what it is, what it costs, an example, unless the name that follows has the same."""
    out = [f"### `{entry.usage}` {{ #{entry.name} data-toc-label='{entry.name}' }}", ""]
    out += [" ".join(filter(None, (plain(entry.about), plain(entry.more), links))), ""]
    out += [f"Price: {entry.price}.", "{ .price }", ""] if entry.price else []
    shown = entry.example and (following is None or following.example != entry.example)
    return [*out, "```jostle", entry.program, "```", ""] if shown else out


@cache
def _groups() -> dict[str, str]:
    """The heading in `language/builtins.py` that each built-in stands under."""
    text = (ROOT / "jostle" / "language" / "builtins.py").read_text(encoding="utf-8")
    groups, group = {}, ""
    for match in re.finditer(r'^# (.+?) -{5,}$|^ *row\(\s*"(\w+)"', text, re.MULTILINE):
        group = match[1] or group
        if match[2]:
            groups[match[2]] = group
    return groups


def aggregates_table() -> str:
    """A line an aggregate: what it measures and why its sensitivity is what it is, from the words of its class."""
    from jostle.language.aggregates import AGGREGATES, DISTINCT
    from jostle.run.select_forms import CLASSES

    out = ["| aggregate | what is measured | sensitivity | mechanism | why |", "|---|---|---|---|---|"]
    for row in (*AGGREGATES.values(), *DISTINCT.values()):
        words = inspect.getdoc(CLASSES[row.name]) or ""
        cells = dict(re.findall(r"^\*(\w+)\* (.+?)\.$", words, re.MULTILINE))
        argument = " | ".join(cells[name] for name in ("Measures", "Sensitivity", "Mechanism", "Why"))
        out.append(f"| `{row.usage}` | {argument} |")
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
    """Every command with its options, as `--help` shows them."""
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
        form = " or ".join(map(str, action.choices))
    if not action.option_strings:
        shown = form or action.dest
    else:
        shown = action.option_strings[-1] + (f" {form or action.dest.upper()}" if action.nargs != 0 else "")
    return f"| `{shown}` | {plain(action.help or '').replace('|', chr(92) + '|')} |"


def python_page() -> str:
    """What `import jostle` offers, by signature and docstring."""
    import jostle
    from jostle.tools.session import Result

    out = ["# From Python", "", PYTHON, ""]
    names = ("Session", "describe", "evaluate", "improve", "PrivateClassifier", "Refusal")
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
    lines = textwrap.fill(shown.removesuffix(" -> None"), 84, subsequent_indent="    ", break_long_words=False)
    return ["```python", lines, "```", "", _paragraphs(_words(value)), ""]


def _paragraphs(words: str) -> str:
    """A docstring as Markdown: an indented list of parameters keeps its lines."""
    lines = [f"- {line}" if re.match(r"\w+ : ", line) else line.strip() for line in plain(words).splitlines()]
    return re.sub(r"\n(- )", r"\n\n\1", "\n".join(lines))


def messages_page() -> str:
    """Each kind of refusal, as `jostle explain` shows it."""
    from jostle.documentation import PAGES

    opening = "Every refusal has a kind, a place, what is wrong and a way out. `jostle explain KIND` prints these."
    out = ["# Messages", "", opening, ""]
    for kind, page in PAGES.items():
        out += [f"## {kind}", "", plain(page.meaning), "", "```jostle", page.example.strip(), "```", ""]
        out += [plain(page.way_out), ""]
        if page.mended:
            out += ["Mended:", "", "```jostle", page.mended.strip(), "```", ""]
    return "\n".join(out)
