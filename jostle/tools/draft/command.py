"""`jostle data draft`: prints a draft, and in a terminal asks first for what is not known."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

from jostle.diagnostics import Refusal
from jostle.records import replace
from jostle.tools.draft.columns import UNKNOWN, Column, as_number, categories, clause, name_of, program
from jostle.tools.draft.sources import columns_of

Ask = Callable[[str], str]
QUESTION = """What may anybody know of each column? A range (0..99, 0.0..9.5), categories
("a", "b"), date, time, text, integer, real; an empty line leaves it out.
"""
_DATA = (".csv", ".parquet", ".pq", ".xlsx", ".xlsm")


def draft(options: Namespace) -> str:
    """The text that the command prints. Nothing is asked where it is not read and written by a person."""
    columns = columns_of(options.source, options.table, sheet_of(options))
    protecting, budget = options.protecting or UNKNOWN, options.budget or UNKNOWN
    if sys.stdin.isatty() and sys.stdout.isatty():
        columns = asked(columns, line_of)
        if options.program:
            protecting = _answer(line_of, "protecting (rows, or person up to 5 rows)", protecting)
            budget = _answer(line_of, "budget (epsilon 1, rho 0.5)", budget)
    if not options.program:
        return clause(columns)
    path = options.source if Path(options.source).suffix.lower() in _DATA else "data.csv"
    return program(columns, path, protecting, budget, sheet_of(options))


def sheet_of(options: Namespace) -> str | int | None:
    """The sheet that the command line names, or its number."""
    sheet: str | None = getattr(options, "sheet", None)
    return int(sheet) if sheet is not None and sheet.isdecimal() else sheet


def asked(columns: list[Column], ask: Ask) -> list[Column]:
    """The columns with the domains that a person gives; what is left empty stays `?`, what is none is asked again."""
    from jostle.tools.datacheck import schema

    known = []
    if any(column.domain == UNKNOWN for column in columns):
        sys.stderr.write(QUESTION)
    for column in columns:
        prompt = f"{name_of(column.name)}{f' ({column.note})' if column.note else ''}: "
        while column.domain == UNKNOWN and (answer := ask(prompt).strip()):
            domain = _listed(answer)
            try:
                schema(f"{{{name_of(column.name)}: {domain}}}")
            except Refusal as refusal:
                sys.stderr.write(f"  {refusal.first.message}\n")
                continue
            column = replace(column, domain=domain, note="")
        known.append(column)
    return known


def _listed(answer: str) -> str:
    """Words between commas as categories, also without quotes and braces; other answers as they are."""
    inside = answer.removeprefix("{").removesuffix("}")
    words = [word.strip() for word in inside.split(",")]
    if '"' in inside or set(words) == {"true", "false"}:
        return f"{{{inside}}}"
    bare = len(words) > 1 and all(words) and not any(sign in inside for sign in ("'", "..", "{", "}"))
    numbers = all(as_number(word) is not None for word in words)
    return categories(words, "real" if numbers else "") if bare else answer


def _answer(ask: Ask, what: str, known: str) -> str:
    return known if known != UNKNOWN else ask(f"{what}: ").strip() or UNKNOWN


def line_of(prompt: str) -> str:
    """Asks a person, who sees the question on standard error."""
    sys.stderr.write(prompt)
    sys.stderr.flush()
    return sys.stdin.readline()
