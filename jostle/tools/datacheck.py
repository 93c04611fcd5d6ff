"""`jostle data check` reports how a file fits a description.

What it prints is exact and private: it is for the owner's eyes, and says so. No program can reach it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from jostle.backends import server_at
from jostle.backends.remote import remote_data
from jostle.diagnostics import Diagnostic, Refusal, refuse
from jostle.engine.files import open_file
from jostle.language.moments import moment_of
from jostle.plan.kinds import domain_kind
from jostle.plan.plan import Categories, Domain, Integer, Moments, Real
from jostle.readers.filesets import FileSet, Reading, paths
from jostle.readers.formats import format_of
from jostle.readers.survey import FORMATS, NO_FORMS, NUMBERS, ColumnSurvey, Forms, Survey, survey, with_edits
from jostle.records import replace
from jostle.source import Source
from jostle.tools.draft.columns import categories, column_word, domain_text, name_of, quoted
from jostle.tools.headers import separator_of
from jostle.trace.text import clean, plural

if TYPE_CHECKING:
    from jostle.run.clauses import Clauses


def description(text: str, flag: str = "--schema") -> tuple[tuple[tuple[str, Domain], ...], dict[str, str]]:
    """The schema that a text says, and the formats by which columns are read. Raises `Refusal` where it says none."""
    program = f'private t = table("t")\n    described by {braced(text)}\n    protecting rows\n    budget epsilon 1\n'
    clauses = read_clauses(Source(flag, program), formats=True)
    return clauses.schema, dict(clauses.forms)


_FLAGS = {"protecting": "--protecting", "budget": "--budget"}


def read_clauses(source: Source, formats: bool = False) -> Clauses:
    """The clauses of a declaration that a command's flags make; what is wrong with one is said as its flag has it."""
    from jostle.mistakes.corrections import mend
    from jostle.tools.session import Session

    session = Session()

    def wrong(text: Source) -> Sequence[Diagnostic]:
        try:
            session.clauses(text, formats)
        except Refusal as refusal:
            return refusal.diagnostics
        return ()

    if faults := wrong(source):
        first, *others = [_of_flag(fault) for fault in mend(faults, source, wrong)]
        raise Refusal(first, *others)
    return session.clauses(source, formats)


def _of_flag(fault: Diagnostic) -> Diagnostic:
    """A fault of a clause with its way out as the flag that says it."""
    line = fault.span.source.line(fault.span.line) if fault.span is not None else ""
    flag = "--describe" if fault.span is not None and fault.span.source.name == "--describe" else "--schema"
    if '"' not in line and fault.help.startswith("categories are texts"):
        shell = "a shell takes double quotes within double quotes away, and leaves them within single ones"
        return replace(fault, help=f"{fault.help}; {shell}, `{flag} '{{…}}'`")
    way = re.fullmatch(rf"write `(described by|{'|'.join(_FLAGS)}) (.*)`", fault.help)
    return replace(fault, help=f"write `{_FLAGS.get(way[1], flag)} '{way[2]}'`") if way else fault


def braced(text: str) -> str:
    """A description as after `described by`: a command may leave its braces out."""
    if re.fullmatch(r"[\w./-]+\.(?:json|csv|sql|ya?ml|txt|toml|jst)", text):
        help = f"`jostle data draft {text}` writes one of a codebook, SQL or a Table Schema, such as `{{age: 17..90}}`"
        raise refuse("DataError", f"`{text}` is a file, and a description is a text", help=help)
    return text if text.lstrip().startswith("{") else f"{{{text}}}"


def report(path: str | Path, described: str, read_as: Reading | None = None, engine: str | None = None) -> str:
    """What does not fit, column by column, of a file, of those that a pattern matches or of data of the server at the
    URL `engine`. Raises `Refusal` for a bad schema or what cannot be read."""
    domains, forms = description(described)
    whole, decimal = fit(path, domains, read_as, engine, forms)
    lines = [f"{clean(str(path))}: {plural(whole.rows, 'record')}"]
    if whole.ragged:
        lines += [
            f"  {whole.ragged} with missing or extra cells (missing ones are `none`, extra ones are dropped)",
            _NAMES if whole.ragged == whole.rows else _LINES,
        ]
    if whole.undecodable:
        lines.append(f"  {whole.undecodable} with bytes that are none of its encoding, and replaced: {_ENCODING}")
    kinds: set[str] = set()
    for column, (_, domain) in zip(whole.columns, domains, strict=True):
        counts = _counts(column)
        kinds |= counts.keys()
        shares = ", ".join(f"{what} {n} ({_share(n / whole.rows)})" for what, n in counts.items())
        name, form = name_of(clean(column.name)), forms.get(column.name)
        line = bounded(reading(name, domain_kind(domain), form), domain) if form else domain_text(domain)
        lines += ["", f"{name}: {line}", f"  {shares or 'every cell fits'}"]
        lines += [f"  {advice}" for advice in _advice(column, domain, decimal, whole.rows, form)]
    lines += ["", *(f"{what}: {meaning}" for what, meaning in _MEANINGS.items() if what in kinds)]
    lines.append(EXACT)
    return "\n".join(lines) + "\n"


EXACT = "these counts are exact, so they are as private as the file: for its owner only"


def fit(
    path: str | Path,
    domains: Sequence[tuple[str, Domain]],
    reading: Reading | None = None,
    engine: str | None = None,
    forms: Forms = NO_FORMS,
) -> tuple[Survey, str | None]:
    """How files, or data of a server, fit a description, and the decimal point that more of their numbers have, where
    that is a comma: not where numbers are like 1,234, unless semicolons stand between cells. Raises `Refusal` for what
    cannot be read."""
    data = remote_data(str(path))
    if data is not None:
        with closing(server_at(data, engine)) as server:
            return server.survey(server.open(data, public=False).key, domains, forms), None
    places = [open_file(place) for place in paths(str(path), [Path.cwd()])]
    reading = reading or Reading()
    whole = survey(FileSet.of(places, reading), domains, forms)
    if not any(_unreadable_numbers(whole, domains)) or any(format_of(place) != "csv" for place in places):
        return whole, None
    if any(column.form in _THOUSANDS for column in whole.columns) and separator_of(Path(str(path))) != ";":
        return whole, None
    other = survey(FileSet.of(places, replace(reading, decimal=",")), domains, forms)
    better = sum(_unreadable_numbers(other, domains)) < sum(_unreadable_numbers(whole, domains))
    return (other, ",") if better else (whole, None)


_THOUSANDS = [form for form, (_, between, *_) in NUMBERS.items() if between == ","]


def _unreadable_numbers(whole: Survey, domains: Sequence[tuple[str, Domain]]) -> list[int]:
    pairs = zip(whole.columns, domains, strict=True)
    return [column.unreadable for column, (_, domain) in pairs if domain_kind(domain) == "number"]


def misfits(path: str | Path, domains: Sequence[tuple[str, Domain]], reading: Reading | None = None,
            engine: str | None = None, filled: Sequence[str] = (), forms: Forms = NO_FORMS) -> str:  # fmt: skip
    """What does not fit of described data, a line or two a column, for their owner; empty where all of it does.
    `filled` are the columns that are never missing."""
    whole, decimal = fit(path, domains, reading, engine, forms)
    lines = []
    for column, (_, domain) in zip(whole.columns, domains, strict=True):
        all_of = column.name in filled or column.empty == whole.rows > 0
        counts = {what: n for what, n in _counts(column).items() if what != "empty" or all_of}
        advice = list(_advice(column, domain, None, whole.rows, forms.get(column.name)))[:2]
        if counts:
            shares = ", ".join(f"{what} {n:,} ({_share(n / whole.rows)})" for what, n in counts.items())
            lines += [f"  {name_of(clean(column.name))}: {shares}", *(f"    {one}" for one in advice)]
    lines += _beside(whole)
    if whole.undecodable:
        lines += [f"  {whole.undecodable:,} of {whole.rows:,} lines have bytes that are none of UTF-8: {_ENCODING}"]
    if whole.ragged:
        lines += [f"  {whole.ragged:,} of {whole.rows:,} lines have missing or extra cells"]
        lines.append(_NAMES if whole.ragged == whole.rows else _LINES)
    if decimal is not None and (reading is None or reading.decimal is None):
        lines.append(f"  {_COMMAS}")
    return "\n".join(["what does not fit:", *lines, EXACT]) + "\n" if lines else ""


def _beside(whole: Survey) -> list[str]:
    """Columns that are empty in as few rows as others, as rows of totals and notes below a table leave them."""
    few: dict[int, list[str]] = {}
    for column in whole.columns:
        if 0 < column.empty <= min(_FEW, whole.rows / 20):
            few.setdefault(column.empty, []).append(name_of(clean(column.name)))
    return [
        f"  {', '.join(names)}: empty in {many} row{'s' * (many > 1)} each: if these are totals below the table, "
        f"`where {names[0]} is not missing` leaves them out"
        for many, names in few.items()
        if len(names) > 1
    ]


_LINES = """    a row is a line: if texts hold line breaks, write the file as Parquet or JSON lines, such as by
    pandas.read_csv("a.csv").to_parquet("a.parquet")"""
_NAMES = """    no line has as many cells as the header has names, as where R writes row names: write the file anew, by
    pandas.read_csv("a.csv").to_parquet("a.parquet")"""
_ENCODING = 'of Windows they are read by table(path, encoding = "cp1252"), or --encoding cp1252'
_COMMAS = 'numbers are written as 12,5, read where the source says so: table(path, decimal = ","), or --decimal ,'


_MEANINGS = {
    "empty": "such cells, and words for what is missing such as n/a, count as `none`",
    "unreadable": "no number, date or time where one is described; such cells count as `none`",
    "outside": "such cells are moved to the nearest end",
    "not whole": "such cells are taken down to whole numbers",
    "unlisted": "such cells count as `none`",
}


def _counts(column: ColumnSurvey) -> dict[str, int]:
    """What does not fit, and how often, in the order of `_MEANINGS`."""
    counts = (column.empty, column.unreadable, column.outside, column.not_whole, column.unlisted)
    return {what: count for what, count in zip(_MEANINGS, counts, strict=True) if count}


_TRUTHS = {"true", "t", "yes", "y", "false", "f", "no", "n"}


def _advice(
    column: ColumnSurvey, domain: Domain, decimal: str | None, rows: int, read_by: str | None
) -> Iterator[str]:  # fmt: skip
    """How more of a column's cells, of so many rows, would be read, a line each; some are read by a form already."""
    name, kind = column_word(clean(column.name)), domain_kind(domain)
    if column.empty == rows:
        yield "objects and lists of JSON lines are not read: `pandas.json_normalize` makes columns of what they hold;"
        yield "nor is a formula of a workbook that no spreadsheet has calculated: open it in one, and save it"
    if column.not_whole:
        yield f"describe it as {_real(domain)} to keep fractions"
    if 2 * column.standing_in >= max(column.outside, 1):
        value = f"none if number({name}) == {column.stand_in} else number({name})"
        yield f"{column.standing_in:,} of these are {column.stand_in}, as if for what is missing: describe it by"
        yield f"{bounded(value, domain)}"
    yield from _unread(column, kind, name, decimal, rows, read_by)
    if column.twin:
        yield EITHER.format(column.twin)
    if decimal is not None and kind == "number":
        yield _COMMAS
    if column.respelt and isinstance(domain, Categories):
        if {str(value).strip().lower() for value in domain.values} <= _TRUTHS:
            yield f"describe it as `{name}: {{true, false}}`, which reads them in any spelling"
            return
        spelt = "is" if column.respelt == 1 else "are"
        yield f"{column.respelt} of these {spelt} listed but for case or blanks: describe it as `text`, and query"
        plain = list(dict.fromkeys(value.strip().lower() for value in domain.values if isinstance(value, str)))
        categories_text = categories(plain) if len(plain) <= 6 else domain_text(Categories(tuple(plain)))
        yield f"groupby lower(trim({name})) over {clean(categories_text)}"


def _unread(
    column: ColumnSurvey, kind: str, name: str, decimal: str | None, rows: int, read_by: str | None
) -> Iterator[str]:
    """How cells would be read that are not."""
    if column.form:
        example = _EXAMPLE.get(column.form, column.form)
        yield f"its cells are like {example}: describe it by {reading(name, kind, column.form)}"
        yield "(registered data have it as `text`, and programs read it by `derive`)"
    elif column.unreadable and read_by:
        iso = f', and coalesce(date({name}), date({name}, "{read_by}")) reads 2024-12-31 too'
        yield f"they are not like {_EXAMPLE.get(read_by, read_by)}, as most are{iso * (kind == 'date')}"
    if column.also:
        ways = [f'{kind}({name}, "{form}")' for form in (column.form, *(form for form, _ in column.also)) if form]
        several = ", ".join(f'{many:,} by "{form}"' for form, many in column.also)
        yield f"read in other ways, {several}: describe it by coalesce({', '.join([f'{kind}({name})', *ways])})"
    elif column.unreadable and kind in ("date", "time") and not (column.form or read_by):
        form = "%d/%m/%Y" if kind == "date" else "%d/%m/%Y %H:%M"
        yield f'another form is read where it is described by it: {kind}("{form}"); months have English names'
    elif column.unreadable and kind == "boolean":
        yield 'list the values that the cells have, such as {"ja", "nein"}'
    elif 2 * column.unreadable > rows and not any((column.form, decimal, read_by)):
        yield f'take out what is no digit: `number(replace({name}, "kg", ""))`'
    if kind == "number" and 0 < column.unreadable <= min(_FEW, rows / 20):
        more = f", and the {column.empty:,} where it is empty" if column.empty else ""
        yield f"are these totals or notes below the table? `where {name} is not missing` leaves their rows out{more}"


EITHER = '01/02 may be 1 February or 2 January, and each cell is read as either: "{}" has the month first'
_FEW = 5  # unreadable cells that may be lines below a table


def reading(name: str, kind: str, form: str) -> str:
    """The description of a column, `name`, whose texts are written in one of the forms of a survey."""
    if kind != "number":
        return f'{kind}("{form}")'
    return f"number({with_edits(form, name, lambda text, old, new: f'replace({text}, {quoted(old)}, {quoted(new)})')})"


def bounded(value: str, domain: Domain) -> str:
    """The expression of a value within the ends of a domain, and whole where they are."""
    if isinstance(domain, Moments):
        low, high = (moment_of(domain.kind, end).isoformat() for end in (domain.low, domain.high))
        return f"clamp({value}, {low}, {high})"
    if isinstance(domain, Integer):
        return f"clamp(floor({value}), {domain.low}, {domain.high})"
    return f"clamp({value}, {domain.low!r}, {domain.high!r})" if isinstance(domain, Real) else value


_EXAMPLE = {
    form: datetime(2024, 12, 31, 17, 30).strftime(form) for forms in FORMATS.values() for form in forms
}  # fmt: skip


def _share(part: float) -> str:
    return "<0.1 %" if part < 0.001 else f"{100 * part:.1f} %"


def _real(domain: Domain) -> str:
    return f"`{domain.low}.0..{domain.high}.0`" if isinstance(domain, Integer) else "`real`"
