"""The documentation of every name and word of the language: one table for the shell, notebooks, editors and pages.

`documentation("floor")` gives the meanings of a name: a built-in function, an aggregate of a select, a word, what a
module of the library defines, a module. Each says how it is written (`usage`), what it costs (`price`), what it is in a
sentence (`about`), a module that `use` must name (`module`, empty where none), and an `example` of a line or few. The
rows come from where they are needed anyway: `language.builtins`, `language.aggregates`, the comments of `stdlib/*.jst`;
words from `words`. Examples are programs, `examples/*.jst`, below the declarations of `given()`, which the tests run.

`jostle find WORDS` ranks entries by the words that they share with the question, rare words first; a name of pandas,
SQL, R or scikit-learn leads to what says the same here. `jostle explain` shows what each kind of error or warning
means: a section a kind in `documentation/diagnostics.md`, in the order of `KINDS` and `diagnostics.WARNINGS`. The tests
run every example there, given a file `people.csv` with the columns `person, age, sex, city, hours, gain`, and
`german.csv`, whose header is `age;score`.
"""

from __future__ import annotations

import math
import re
import sys
import textwrap
from argparse import Namespace
from collections import Counter
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path

from msgspec import Struct

from jostle.diagnostics import WARNINGS
from jostle.documentation.entries import Documentation, aggregates, builtins, given, modules, table, words
from jostle.language.methods import home, way

__all__ = ["Documentation", "documentation", "documented", "given"]


def documentation(name: str) -> tuple[Documentation, ...]:
    """The meanings of a name; a function of the language comes first, then its other meanings, by module."""
    return _by_name().get(name, ())


@cache
def documented() -> tuple[Documentation, ...]:
    """All entries: built-ins, aggregates, words, modules and what these define."""
    return (*builtins(), *aggregates(), *words(), *modules())


@cache
def _by_name() -> dict[str, tuple[Documentation, ...]]:
    groups: dict[str, list[Documentation]] = {}
    for entry in documented():
        groups.setdefault(entry.name, []).append(entry)
    return {name: tuple(entries) for name, entries in groups.items()}


NAMES, HELPERS = 4.0, 0.4
"""How much more a word counts as a name than in a sentence, and less in what the library shows no example of."""


def entries_for(question: Sequence[str], most: int = 8) -> list[Documentation]:
    """The entries that fit best, the best first; none where no word of the question occurs in any."""
    alike = table("questions")["alike"]
    named = [alike.get(_bare(one), one) if set(one) & set("._0123456789") else one for one in question]
    words = [word for one in named for word in _words(one)]
    terms = dict.fromkeys(words, 1.0)
    bare = [*map(_bare, question)]
    for word in [*words, *bare, *map("".join, pairwise(bare))]:
        for other in _words(alike.get(word, "")):
            terms.setdefault(other, 0.7)
    weights, entries = _index()
    scores = []
    for number, entry in enumerate(entries):
        shared = [weight * terms[word] * weights[word] for word, weight in entry.items() if word in terms]
        hits = sum(word in entry for word in words) or 1
        scores.append((sum(shared) * hits / max(1, len(words)), number))
    best = sorted((score for score in scores if score[0] > 0), key=lambda score: (-score[0], score[1]))[:most]
    return [documented()[number] for score, number in best if score > best[0][0] / 4]


def _bare(name: str) -> str:
    """A name of another language without what joins its words: `t.test`, `t_test` and `ttest` are one."""
    return re.sub("[._]", "", name.lower())


@cache
def _index() -> tuple[dict[str, float], list[dict[str, float]]]:
    """How telling each word is, and of each entry its words with their weights."""
    entries = []
    for entry in documented():
        counted = dict.fromkeys(_words(f"{entry.about} {entry.kind}"), 1.0)
        counted |= {word: 0.5 for word in _words(entry.more) if word not in counted}
        names = _words(entry.name)
        counted |= {word: counted.get(word, 0) + NAMES / len(names) for word in names}
        query = _words(table("questions")["entries"].get(entry.name, ""))
        counted |= {word: counted.get(word, 0) + NAMES / 2 for word in query}
        usual = not entry.module or entry.example or entry.module == "best"
        entries.append({word: weight * (1 if usual else HELPERS) for word, weight in counted.items()})
    counts = Counter(word for entry in entries for word in entry)
    return {word: math.log(len(entries) / count) for word, count in counts.items()}, entries


def _words(text: str) -> list[str]:
    """The words of a text, by their stems."""
    return [_stem(word) for word in re.findall(r"[a-z]+", text.lower()) if len(word) > 1 and word not in _IDLE]


_IDLE = frozenset({
    "the", "of", "to", "in", "is", "it", "an", "and", "or", "what", "how", "do", "my", "me", "by", "with", "for",
    "from", "that", "which", "are", "be", "at", "on", "its",
})  # fmt: skip


def _stem(word: str) -> str:
    for ending in ("ations", "ation", "ings", "ing", "ies", "es", "ed", "s", "y", "e"):
        if word.endswith(ending) and len(word) - len(ending) > 2:
            return word.removesuffix(ending)
    return word


def found_text(question: Sequence[str]) -> str:
    """What `jostle find` prints: names of other languages in the words of this one, then the entries."""
    foreign = [
        word for word in question if (len(question) == 1 or re.search(r"[_(.]", word)) and word not in _by_name()
    ]
    ways = ((word, way(word) or home(word.removesuffix("()"))) for word in foreign)
    lines = [f"`{word}` of another language: {help}\n" for word, help in ways if help]
    entries = entries_for(question)
    width = max((len(entry.name) for entry in entries), default=0)
    for entry in entries:
        module = f"  (use {entry.module})" if entry.module else ""
        lines.append(f"{entry.name:<{width}}  {entry.about}{module}\n")
    return "".join(lines) or "nothing has these words; `jostle repl` completes names, and `:help NAME` explains one\n"


def command(options: Namespace) -> int:
    """Prints what answers a question; 1 where nothing does."""
    words = [word for words in options.words for word in words.split()]
    sys.stdout.write(found_text(words))
    return 0 if entries_for(words) else 1


class Page(Struct, frozen=True):
    """`brief` is one line; `mended` is the example put right, or empty where the way out is not a program."""

    brief: str
    meaning: str
    example: str
    way_out: str
    mended: str = ""


KINDS = (
    "SyntaxError", "NameError", "TypeError", "ValueError", "ImportError", "AssertionFailed", "RecursionLimit",
    "PrivateValue", "NoEpsilon", "BadAmount", "BudgetExceeded", "UnboundedSum", "OpenKeys", "DataError", "LedgerError",
)  # fmt: skip
"""Kinds of errors."""

_PROGRAM = "```jostle\n(.+?)```\n"
_SECTION = rf"^## (\S+)\n\n\*([^\n]+)\*\n\n(.+?)\n\n{_PROGRAM}\n(.+?)\n(?:\n{_PROGRAM})?(?=\n## |\Z)"
_TEXT = Path(__file__).with_name("diagnostics.md").read_text(encoding="utf-8")
ALL = {kind: Page(*parts) for kind, *parts in re.findall(_SECTION, _TEXT, re.MULTILINE | re.DOTALL)}
PAGES, WARNING_PAGES = ({kind: page for kind, page in ALL.items() if kind in of} for of in (KINDS, WARNINGS))
_WIDTH = 88


def page(kind: str) -> str:
    """The page of a kind, as text. Raises `KeyError` for a word that is no kind."""
    this = ALL[kind]
    parts = [kind, "=" * len(kind), "", *_paragraph(this.meaning), "For example:", "", _program(this.example), ""]
    parts += _paragraph(this.way_out)
    if this.mended:
        parts += ["Mended:", "", _program(this.mended), ""]
    if kind in WARNINGS:
        parts += _paragraph(f"It stops nothing. `# jostle: allow {kind}` on a line of its own switches it off in a "
                            f"program, at the end of a line there, and `--allow {kind}` in a run.")  # fmt: skip
    return "\n".join(parts).rstrip() + "\n"


def explanation(kind: str | None) -> str | None:
    """The page of a kind, in any case, or without one the list of all; None for a word that is no kind."""
    kinds = {name.lower(): name for name in ALL}
    if kind is None:
        return index()
    return page(kinds[kind.lower()]) if kind.lower() in kinds else None


def index() -> str:
    """All kinds of errors and all warnings, a line each."""
    wide = max(map(len, ALL))
    errors, warnings = ([f"  {kind.ljust(wide)}  {ALL[kind].brief}" for kind in of] for of in (KINDS, WARNINGS))
    return "\n".join(["jostle explain KIND shows the page of one of", *errors, "and of the warnings", *warnings]) + "\n"


def _paragraph(text: str) -> list[str]:
    return [textwrap.fill(" ".join(text.split()), _WIDTH), ""]


def _program(text: str) -> str:
    return textwrap.indent(text.strip("\n"), "    ")
