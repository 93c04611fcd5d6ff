"""`jostle ask QUERY FILE`, also written `jostle -c QUERY FILE`: one query of a file, without a program.

The program is the shortest there is: the file is the table `t`, and the query spends all of its budget. As of every
file that is not registered, the budget is that of this run alone.
"""

from __future__ import annotations

import re
from argparse import Namespace

from jostle.diagnostics import refuse
from jostle.source import Source
from jostle.tools.arguments import parse
from jostle.tools.draft.columns import name_of, table_of
from jostle.tools.draft.init import reading_of
from jostle.tools.draft.sources import columns_of

WITH = re.compile(r"\bwith\s+(epsilon|rho|error)\b", re.IGNORECASE)


def program(options: Namespace) -> str:
    """The text of the program that the command line says. Raises `Refusal(DataError)` for columns without a range."""
    query = options.query.strip().removeprefix("{{").removesuffix("}}").strip().rstrip(";")
    price = "" if WITH.search(query) else f" with epsilon {options.epsilon}"
    return (
        f"private t = {table_of(options.file, reading_of(options))}\n"
        f"    described by {options.describe or _described(options, query)}\n"
        f"    protecting {options.protecting}\n"
        f"    budget epsilon {options.epsilon}\n"
        f"print({{{{ {query}{price} }}}})\n"
    )


def _described(options: Namespace, query: str) -> str:
    """The description of a query that names no column of the file; of its header one is enough."""
    names = [column.name for column in columns_of(options.file, reading=reading_of(options))]
    mentions = [name for name in names if re.search(rf"(?<![\\w.]){re.escape(name)}(?!\\w)", query)]
    if mentions:
        shape = ", ".join(f"{name_of(name)}: …" for name in mentions)
        help = f'--describe \'{{{shape}}}\', with what anybody may know of it: 0..99, or {{"a", "b"}}'
        raise refuse("DataError", f"`{mentions[0]}` of `{options.file}` is not described", help=help)
    return f"{{{name_of(names[0])}: text}}" if names else "{}"


def command(options: Namespace) -> int:
    """Runs the program as `jostle run` runs one."""
    from jostle.tools.commands import run

    words = ["run", "-", "--format", options.format, *["--simulate"] * options.simulate]
    as_run = parse(words)
    if isinstance(as_run, int):
        return as_run
    as_run.file, as_run.source = "-c", Source("-c", program(options))
    return run(as_run)
