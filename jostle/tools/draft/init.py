"""`jostle init FILE`: writes a first program for a file, and asks in a terminal for what is not known.

Of the file its header or types are read, and no row: the description comes from a codebook, from `--describe`, or from
the person who is asked. Columns that nobody describes stay out of the program.
"""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

from jostle.diagnostics import Refusal, refuse, unwritable
from jostle.plan.domains import Domain
from jostle.source import Source
from jostle.tools.datacheck import schema
from jostle.tools.draft.columns import UNKNOWN, Column, name_of, table_of
from jostle.tools.draft.command import asked, line_of, sheet_of
from jostle.tools.draft.first import budget_of, first_program
from jostle.tools.draft.sources import columns_of
from jostle.tools.render import clean

Ask = Callable[[str], str]


def command(options: Namespace) -> int:
    """Writes the program, and says how to go on."""
    place = Path(options.out or Path(options.file).name.split(".")[0] + ".jst")
    if place.exists() and not options.overwrite:
        raise refuse("DataError", f"`{place}` is there already", help="name another with --out, or add --overwrite")
    text = drafted(options, line_of if sys.stdin.isatty() and sys.stdout.isatty() else None, place.parent)
    _check(place, text)
    try:
        place.write_text(text, encoding="utf-8")
    except OSError as fault:
        raise unwritable(f"`{place}`", fault, "name another place with --out") from None
    print(clean(f"{place}: a first program, which nothing was spent for\n"))
    print(clean(f"  jostle check {place}\n  jostle run {place}\n"))
    if "MkChoiceMaker" not in text:
        print("It makes no choice: that takes a budget in epsilon, and a column with a range\nof 8 numbers or more.\n")
    print(clean(f"Its owner sees what the description loses:\n\n  jostle data check {options.file} --schema '{{…}}'"))
    return 0


def drafted(options: Namespace, ask: Ask | None, folder: Path) -> str:
    """The program's text. With `ask` a person is asked for what nobody said: for each column where none is
    described on the command line, and for unit and budget."""
    columns = _columns(options)
    told = dict(schema(options.describe)) if options.describe is not None else {}
    missing = next((name for name in told if columns and name not in {column.name for column in columns}), None)
    if missing is not None:
        raise refuse("DataError", f"`{options.file}` has no column `{missing}`", help=_names(columns))
    open_ones = [column for column in columns if column.name not in told]
    if ask is not None and not told:
        open_ones = asked(open_ones, ask)
    described = _domains([column for column in open_ones if column.domain != UNKNOWN]) | told
    ordered = [(c.name, described[c.name]) for c in columns if c.name in described] or list(described.items())
    if not ordered:
        help = """--describe '{age: 0..99, sex: {"F", "M"}}', or --codebook FILE"""
        help += f"; {_names(columns)}" if columns else ""
        raise refuse("DataError", f"no column of `{options.file}` is described", help=help)
    protecting = options.protecting or _protecting(columns, ask)
    budget = options.budget or (ask("budget (epsilon 1): ").strip() if ask is not None else "") or "epsilon 1"
    path = os.path.relpath(options.file, folder) if str(folder) != "." else options.file
    return first_program(table_of(path, sheet_of(options)), ordered, protecting, *budget_of(budget))


def _columns(options: Namespace) -> list[Column]:
    """The columns of the file, with what a codebook says of them."""
    from jostle.engine.duckdb.formats import has_names
    from jostle.engine.files import open_file

    columns = columns_of(options.file, sheet=sheet_of(options)) if has_names(open_file(options.file)) else []
    if options.codebook is None:
        return columns
    told = {column.name: column for column in columns_of(options.codebook)}
    return [told.get(column.name, column) for column in columns] or list(told.values())


def _protecting(columns: list[Column], ask: Ask | None) -> str:
    if ask is None:
        return "rows"
    names = [column.name for column in columns]
    while name := ask("whose is a row? (the column that says so; empty: each is another person's): ").strip():
        if name in names:
            most = ask("how many rows of one person count at most? (5): ").strip() or "5"
            return f"{name_of(name)} up to {most} rows"
        sys.stderr.write(f"there is no column {clean(name)}; {_names(columns)}\n")
    return "rows"


def _domains(columns: list[Column]) -> dict[str, Domain]:
    listed = ", ".join(f"{name_of(column.name)}: {column.domain}" for column in columns)
    return dict(schema(f"{{{listed}}}")) if columns else {}


def _names(columns: list[Column]) -> str:
    return "the columns are " + ", ".join(column.name for column in columns[:12]) + ", …" * (len(columns) > 12)


def _check(place: Path, text: str) -> None:
    """Refuses with what is wrong in the clauses that were given, at their place in the program."""
    from jostle.tools.session import Session

    faults = Session(cwd=place.parent).check(Source(str(place), text))
    if faults:
        raise Refusal(*faults)
