"""`jostle init FILE` writes a first program for a file, and `jostle data draft` a draft; both ask in a terminal first.

The description comes from a codebook, from `--describe`, or from the person who is asked, and never from rows. These
are read for one thing, unless `--no-check` says otherwise: how they are written. Decimal commas, the format of dates
and fractions where integers are described go into the program; what else does not fit is shown, exactly, to the person
who has the file. Columns that nobody describes stay out of the program.
"""

from __future__ import annotations

import os
import re
import sys
from argparse import Namespace
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from jostle.backends.remote import remote_data
from jostle.diagnostics import Refusal, refuse, unwritable
from jostle.engine.files import open_file
from jostle.plan.plan import Domain, Integer, Open, Real
from jostle.readers.filesets import Reading
from jostle.readers.formats import format_of, has_names
from jostle.readers.survey import NUMBERS, Survey
from jostle.records import replace
from jostle.resources import folder
from jostle.source import Source
from jostle.tools.datacheck import EITHER, braced, description, fit, misfits
from jostle.tools.draft.columns import UNKNOWN, Column, as_number, categories, clause, name_of, program, table_of
from jostle.tools.draft.first import budget_of, first_program
from jostle.tools.draft.sources import columns_of, columns_of_server
from jostle.tools.headers import GERMAN, separator_of
from jostle.trace.text import clean

QUESTION = """What may anybody know of each column? A range (0..99, 0.0..9.5), categories
{"a", "b"}, date, time, text, integer, real; an empty line leaves it out.
"""
_TITLES = 20  # lines that may stand above the names
Described = list[tuple[str, Domain]]
_DATA = (".csv", ".parquet", ".pq", ".xlsx", ".xlsm")


def draft(options: Namespace) -> str:
    """The text that the command prints. Nothing is asked where it is not read and written by a person."""
    columns = columns_of(options.source, options.table, reading_of(options), getattr(options, "engine", None))
    protecting, budget = options.protecting or UNKNOWN, options.budget or UNKNOWN
    if sys.stdin.isatty() and sys.stdout.isatty():
        columns = interview(columns, line_of)
        if options.program:
            protecting = _answer(line_of, "protecting (rows, or person up to 5 rows)", protecting)
            budget = _answer(line_of, "budget (epsilon 1, rho 0.5)", budget)
    if not options.program:
        return clause(columns)
    named = Path(options.source).suffix.lower() in _DATA or remote_data(options.source) is not None
    path = options.source if named else "data.csv"
    return program(columns, path, protecting, budget, reading_of(options))


def reading_of(options: object) -> Reading:
    """How a command line, or what was registered, says that a file is read."""
    sheet, *others = (getattr(options, name, None) for name in ("sheet", "header", "decimal", "encoding"))
    number = int(sheet) if isinstance(sheet, str) and sheet.isdecimal() else sheet
    return Reading(sheet=number, header=others[0], decimal=others[1], encoding=others[2])


def interview(columns: list[Column], ask: Ask) -> list[Column]:
    """The columns with the domains that a person gives; what is left empty stays `?`, what is none is asked again."""
    result = []
    if any(column.domain == UNKNOWN for column in columns):
        sys.stderr.write(QUESTION)
    for column in columns:
        prompt = f"{name_of(column.name)}{f' ({column.note})' if column.note else ''}: "
        if column.domain == UNKNOWN and (domain := _answered(ask, prompt, _domain)):
            column = replace(column, domain=domain, note="")
        result.append(column)
    return result


def _answered(ask: Ask | None, prompt: str, read: Callable[[str], str]) -> str:
    """What a person answers, as `read` takes it; empty where nothing is. What `read` refuses is asked again."""
    while ask is not None and (answer := ask(prompt).strip()):
        try:
            return read(answer)
        except Refusal as refusal:
            sys.stderr.write(f"  {refusal.first.message}{refusal.first.help and f': {refusal.first.help}'}\n")
    return ""


def _domain(answer: str) -> str:
    domain = _listed(answer)
    description(f"{{it: {domain}}}")
    return domain


def _budget(answer: str) -> str:
    budget_of(answer)
    return answer


def _listed(answer: str) -> str:
    """Words between commas as categories, also without quotes and braces; other answers as they are."""
    inside = answer.removeprefix("{").removesuffix("}")
    words = [word.strip() for word in inside.split(",")]
    if '"' in inside or set(words) == {"true", "false"}:
        return f"{{{inside}}}"
    bare = len(words) > 1 and all(words) and not any(sign in inside for sign in ("'", "..", "{", "}"))
    numbers = all(as_number(word) is not None for word in words)
    return categories(words, "real" if numbers else "") if bare else answer


def _answer(ask: Ask, what: str, domain: str) -> str:
    return domain if domain != UNKNOWN else ask(f"{what}: ").strip() or UNKNOWN


def line_of(prompt: str) -> str:
    """Asks a person, who sees the question on standard error."""
    sys.stderr.write(prompt)
    sys.stderr.flush()
    return sys.stdin.readline()


Ask = Callable[[str], str]


def command(options: Namespace) -> int:
    """Writes the program, and says how to go on."""
    if options.example:
        return example()
    data = remote_data(options.file)
    named = Path(options.file).name.split(".")[0] if data is None else data.names[0].strip("/").split("/")[-1]
    place = Path(options.out or (named if data is None else named.split(".")[-1]) + ".jst")
    if place.exists() and not options.overwrite:
        raise refuse("DataError", f"`{place}` is there already", help="name another with --out, or add --overwrite")
    text, notes = drafted(options, line_of if sys.stdin.isatty() and sys.stdout.isatty() else None, place.parent)
    _check(place, text)
    try:
        place.write_text(text, encoding="utf-8")
    except OSError as fault:
        raise unwritable(f"`{place}`", fault, "name another place with --out") from None
    print(clean(f"{place}: a first program, which nothing was spent for\n"))
    print(clean(f"  jostle check {place}\n  jostle run {place}\n"))
    if "MkChoiceMaker" not in text:
        print("It makes no choice: that takes a budget in epsilon, and a column with a range\nof 8 numbers or more.\n")
    if notes is None:
        print(clean(f"Its owner sees what is lost:\n\n  jostle data check {options.file} --schema '{{…}}'"))
    else:
        print(clean(notes or "every cell fits this description"))
    return 0


EXAMPLE = ("first.jst", "choose.jst", "data/people.csv", "data/village.csv")


def example() -> int:
    """Writes the programs that the pages begin with, and the synthetic people that they are about."""
    there = [name for name in EXAMPLE if Path(name).exists()]
    if there:
        raise refuse("DataError", f"`{there[0]}` is there already", help="go to an empty folder")
    for name in EXAMPLE:
        try:
            Path(name).parent.mkdir(exist_ok=True)
            Path(name).write_bytes((folder("programs") / name).read_bytes())
        except OSError as fault:
            raise unwritable(f"`{name}`", fault) from None
    print("first.jst, choose.jst and the synthetic people of data/ are here. Begin with:\n")
    print("  jostle run first.jst\n  jostle run choose.jst")
    return 0


def drafted(options: Namespace, ask: Ask | None, home: Path) -> tuple[str, str | None]:
    """The program's text, and what does not fit it of the file; None for that if no row is read.

    With `ask` a person is asked for what nobody said: for each column where none is described on the command line, and
    for unit and budget."""
    reading, engine = reading_of(options), getattr(options, "engine", None)
    if reading.header is None and not getattr(options, "no_check", False):
        reading = replace(reading, header=_header_line(options))
    columns = _columns(options, reading)
    ordered, forms = _described(options, columns, ask, reading)
    protecting = _bounded(options.protecting) or _protecting(columns, ask)
    budget = options.budget or _answered(ask, "budget (epsilon 1): ", _budget) or "epsilon 1"
    path = _path(options.file, home)
    skipped = getattr(options, "no_check", False)
    survey, reading = (None, reading) if skipped else _fit(options, ordered, reading, forms)
    left = [column for column in columns if column.name not in dict(ordered) and ask is None]
    if survey is None:
        text = first_program(table_of(path, reading), ordered, protecting, *budget_of(budget), forms=forms)
        return _with_left(text, left), None
    by_name = {column.name: column for column in survey.columns}
    forms |= {c.name: c.form for c in survey.columns if c.form and "`" not in c.name}
    if not NUMBERS.keys().isdisjoint(map(forms.get, by_name)):
        again, _ = _fit(options, ordered, reading, forms)
        by_name = {column.name: column for column in (again or survey).columns}
    ordered = [(name, _with_fractions(domain) if by_name[name].not_whole else domain) for name, domain in ordered]
    stated = table_of(path, _stated(options.file, reading))
    text = first_program(stated, ordered, protecting, *budget_of(budget), forms=forms)
    twins = "".join(f"{name_of(clean(c.name))}: {EITHER.format(c.twin)}\n" for c in survey.columns if c.twin)
    return _with_left(text, left), twins + misfits(options.file, ordered, reading, engine=engine, forms=forms)


def _fit(
    options: Namespace, domains: Described, reading: Reading, forms: Mapping[str, str]
) -> tuple[Survey | None, Reading]:
    """How the file fits, and how it is read, with its decimal comma; None of what cannot be read, since its types are
    enough for a draft."""
    with suppress(Refusal):
        survey, decimal = fit(options.file, domains, reading, getattr(options, "engine", None), forms)
        return survey, reading if decimal is None else replace(reading, decimal=decimal)
    return None, reading


def _stated(file: str, reading: Reading) -> Reading:
    """How the program says that a file is read: with its separator, where that would speak for a decimal comma."""
    if reading == Reading() and (separator := separator_of(Path(file))) in GERMAN:
        return Reading(separator=separator)
    return reading


def _path(file: str, home: Path) -> str:
    """How a program in a folder names a file; data of a server are named as they are."""
    return os.path.relpath(file, home) if str(home) != "." and remote_data(file) is None else file


def _with_left(text: str, columns: list[Column]) -> str:
    """The program's text with a line for each column that nobody described, or for the first of many."""
    first, _, rest = text.partition("\n")
    notes = [f"#   {name_of(clean(one.name))}{one.note and f': {clean(one.note)}'}" for one in columns]
    lines = ["# Left out, since nothing says what anybody may know of them:", *notes[:20]] if notes else []
    more = [f"#   … and {len(notes) - 20} others"] if len(notes) > 20 else []
    return "\n".join([first, *lines, *more, rest])


def _described(
    options: Namespace, columns: list[Column], ask: Ask | None, reading: Reading
) -> tuple[Described, dict[str, str]]:
    """The domains of the columns, in their order, and the formats of some; what nobody describes, a person who is asked
    says."""
    schema, forms = description(options.describe, "--describe") if options.describe is not None else ((), {})
    domains = dict(schema)
    missing = next((name for name in domains if columns and name not in {column.name for column in columns}), None)
    if missing is not None:
        if remote_data(options.file) is None:  # which also says that a name stands there more than once
            fit(options.file, [(missing, domains[missing])], reading)
        raise refuse("DataError", f"`{options.file}` has no column `{missing}`", help=_names(columns))
    open_ones = [column for column in columns if column.name not in domains]
    if ask is not None and not domains:
        open_ones = interview(open_ones, ask)
    others, more = _domains([column for column in open_ones if column.domain != UNKNOWN])
    described, forms = others | domains, more | forms
    ordered = [(c.name, described[c.name]) for c in columns if c.name in described] or list(described.items())
    if not ordered:
        help = """--describe '{age: 0..99, sex: {"F", "M"}}', or --codebook FILE"""
        help += f"; {_names(columns)}" if columns else ""
        raise refuse("DataError", f"no column of `{options.file}` is described", help=help)
    return ordered, forms


def _header_line(options: Namespace) -> int | None:
    """The line that has the names, where the first one is a title: it names less than two of several columns, or none
    of those that are described. It is the first one below that has them, or most texts and no number."""
    from jostle.readers.csvfile import header
    from jostle.readers.workbook import header as names_of_sheet

    if remote_data(options.file) is not None:
        return None
    file, label, sheet = open_file(options.file), f"`{options.file}`", reading_of(options)
    kind = format_of(file)
    schema, _ = description(options.describe, "--describe") if options.describe is not None else ((), {})
    columns = {name for name, _ in schema}

    def names(line: int) -> tuple[str, ...]:
        with suppress(Refusal):
            reading = replace(sheet, header=line)
            all_names = header(file, label, reading).names if kind == "csv" else names_of_sheet(file, label, reading)
            return tuple(filter(None, all_names))
        return ()

    first = names(1) if kind in ("csv", "excel") else tuple(columns)
    if columns & set(first) or (len(first) > 1 and not columns):
        return None
    below = {line: names(line) for line in range(2, _TITLES)}
    texts = {line: len(some) for line, some in below.items() if columns <= {*some} and not any(map(as_number, some))}
    most = max(texts, key=texts.__getitem__, default=0)
    return most if columns or texts.get(most, 0) > 1 else None


def _with_fractions(domain: Domain) -> Domain:
    """The domain of the same numbers, with fractions."""
    return Real(float(domain.low), float(domain.high)) if isinstance(domain, Integer) else Open("real")


def _columns(options: Namespace, reading: Reading) -> list[Column]:
    """The columns of the file, with what a codebook says of them."""
    from jostle.readers.databases import names_of

    data = remote_data(options.file)
    if data is not None:
        columns = columns_of_server(data, getattr(options, "engine", None))
    elif has_names(file := open_file(options.file)):
        columns = columns_of(options.file, reading=reading)
    else:  # the names of JSON lines stand in its rows
        listed = () if getattr(options, "no_check", False) else names_of(file, f"`{options.file}`")
        columns = [Column.of(name) for name in listed]
    if options.codebook is None:
        return columns
    codebook = {column.name: column for column in columns_of(options.codebook)}
    return [codebook.get(column.name, column) for column in columns] or list(codebook.values())


def _bounded(protecting: str | None) -> str | None:
    """The clause that was given; refused where a first program would have to say how many rows of a person it reads."""
    if protecting and _WHOSE.fullmatch(protecting.strip()):
        message = f"`--protecting {clean(protecting)}` does not say how many rows of one person are read"
        raise refuse("UnboundedSum", message, help=f"--protecting '{clean(protecting.strip())} up to 5 rows'")
    return protecting


def _protecting(columns: list[Column], ask: Ask | None) -> str:
    if ask is None:
        return "rows"
    names = {column.name: column.name for column in columns}
    loosely = {name.lower(): name for name in names}
    while answer := ask("whose is a row? (the column that says so; empty: each is another person's): ").strip():
        said = _UNIT.fullmatch(answer)
        word, most = (said["name"], said["most"]) if said and answer not in names else (answer, None)
        name = names.get(word) or loosely.get(word.lower())
        if name is not None:
            while not (most or "").isdecimal():
                most = ask("how many rows of one person count at most? (5): ").strip() or "5"
            return f"{name_of(name)} up to {most} rows"
        if word.lower() == "rows":
            break
        sys.stderr.write(f"there is no column {clean(word)}; {_names(columns)}\n")
    return "rows"


_UNIT = re.compile(r"(?:protecting\s+)?`?(?P<name>.+?)`?(?:\s+up\s+to\s+(?P<most>\d+)(?:\s+rows?)?)?", re.IGNORECASE)
"""A person's column as the clause has it: `user up to 5 rows`."""
_WHOSE = re.compile(r"(?!rows?$)(\w+|`[^`]+`)", re.IGNORECASE)
"""A person's column alone."""


def _domains(columns: list[Column]) -> tuple[dict[str, Domain], dict[str, str]]:
    fields_text = ", ".join(f"{name_of(column.name)}: {column.domain}" for column in columns)
    schema, forms = description(f"{{{fields_text}}}") if columns else ((), {})
    return dict(schema), forms


def _names(columns: list[Column]) -> str:
    return "the columns are " + ", ".join(column.name for column in columns[:12]) + ", …" * (len(columns) > 12)


def _check(place: Path, text: str) -> None:
    """Refuses with what is wrong in the clauses that were given, at their place in the program."""
    from jostle.tools.session import Session

    faults = Session(cwd=place.parent).check(Source(str(place), text))
    if faults:
        raise Refusal(*faults)


WITH = re.compile(r"\bwith\s+(epsilon|rho|error)\b", re.IGNORECASE)


def query_program(options: Namespace) -> str:
    """The program of `jostle ask`: the file is the table that the query names, and the query spends all of its budget.

    Raises `Refusal(DataError)` for columns without a range.
    """
    if options.file == "-":
        help = "write what the pipe gives to a file first: `… > t.csv`, and `jostle -c QUERY t.csv`"
        raise refuse("DataError", "private rows are read from a file, and not from a pipe", help=help)
    query = options.query.strip().removeprefix("{{").removesuffix("}}").strip().rstrip(";")
    if options.describe is not None:
        description(options.describe, "--describe")  # what is wrong with it is said of it, and not of a program
    named = re.search(r"(?i)\bfrom\s+(?!select\b)([a-z_]\w*)", query)
    price = "" if WITH.search(query) else f" with epsilon {options.epsilon}"
    return (
        f"private {named[1] if named else 't'} = {table_of(options.file, reading_of(options))}\n"
        f"    described by {braced(options.describe or _query_schema(options, query))}\n"
        f"    protecting {options.protecting}\n"
        f"    budget epsilon {options.epsilon}\n"
        f"{{{{ {query}{price} }}}}\n"
    )


def _query_schema(options: Namespace, query: str) -> str:
    """The description of a query that names no column of the file; of its header one is enough."""
    names = [column.name for column in columns_of(options.file, reading=reading_of(options))]
    mentions = [name for name in names if re.search(rf"(?<![\\w.]){re.escape(name)}(?!\\w)", query)]
    if mentions:
        shape = ", ".join(f"{name_of(name)}: …" for name in mentions)
        help = f'--describe \'{{{shape}}}\', with what anybody may know of it: 0..99, or {{"a", "b"}}'
        raise refuse("DataError", f"`{mentions[0]}` of `{options.file}` is not described", help=help)
    return f"{{{name_of(names[0])}: text}}" if names else "{}"
