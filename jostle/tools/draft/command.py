"""`jostle data draft`: prints a draft, and in a terminal asks first for what is not known."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from jostle.diagnostics import Refusal
from jostle.tools.draft.columns import UNKNOWN, Column, clause, name_of, program
from jostle.tools.draft.sources import columns_of

Ask = Callable[[str], str]
ANYTHING = 'a range such as 0..99, categories such as {"a", "b"}, text, integer or real'
_DATA = (".csv", ".parquet", ".pq")


def draft(options: Namespace) -> str:
    """The text that the command prints. Nothing is asked where it is not read and written by a person."""
    columns = columns_of(options.source, options.table)
    protecting, budget = options.protecting or UNKNOWN, options.budget or UNKNOWN
    if sys.stdin.isatty() and sys.stdout.isatty():
        columns = asked(columns, line_of)
        if options.program:
            protecting = _answer(line_of, "protecting (rows, or person up to 5 rows)", protecting)
            budget = _answer(line_of, "budget (epsilon 1, rho 0.5)", budget)
    if not options.program:
        return clause(columns)
    path = options.source if Path(options.source).suffix.lower() in _DATA else "data.csv"
    return program(columns, path, protecting, budget)


def asked(columns: list[Column], ask: Ask) -> list[Column]:
    """The columns with the domains that a person gives; what is left empty stays `?`, what is none is asked again."""
    from jostle.tools.datacheck import schema

    known = []
    for column in columns:
        prompt = f"{name_of(column.name)}: {column.note or ANYTHING}? "
        while column.domain == UNKNOWN and (answer := ask(prompt).strip()):
            try:
                schema(f"{{{name_of(column.name)}: {answer}}}")
            except Refusal as refusal:
                sys.stderr.write(f"{refusal.first.message}\n")
                continue
            column = replace(column, domain=answer, note="")
        known.append(column)
    return known


def _answer(ask: Ask, what: str, known: str) -> str:
    return known if known != UNKNOWN else ask(f"{what}: ").strip() or UNKNOWN


def line_of(prompt: str) -> str:
    """Asks a person, who sees the question on standard error."""
    sys.stderr.write(prompt)
    sys.stderr.flush()
    return sys.stdin.readline()
