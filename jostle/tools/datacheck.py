"""What does not fit between a program, or a description, and its files.

`jostle data check` reports how a file fits a description. What it prints is exact and private: it is for the owner's
eyes, and says so. No program can reach it.

A check holds what a program says of its CSV files against their headers, which are public; it reads no row. It looks
where a run would look, under paths that are written in the program. Of a private file no name is reported: one without
a header has a row in its first line. A public file without a description is described by its header.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from datetime import datetime
from pathlib import Path

from jostle.backends.choice import server_at
from jostle.backends.remote import remote_data
from jostle.diagnostics import Diagnostic, Refusal
from jostle.engine.files import Reading, open_file
from jostle.language.facts import LAST_HEADER
from jostle.language.moments import moment_of
from jostle.plan.kinds import domain_kind
from jostle.plan.plan import Categories, Domain, Integer, Moments, Open, Real
from jostle.readers.filesets import FileSet, paths
from jostle.readers.formats import format_of
from jostle.readers.survey import FORMATS, NUMBERS, ColumnSurvey, Survey, survey
from jostle.records import replace
from jostle.source import Source
from jostle.syntax import nodes as n
from jostle.syntax.walk import every_of, rebuilt
from jostle.tools.arguments import misspelt
from jostle.tools.draft.columns import categories, column_word, name_of
from jostle.tools.render import clean
from jostle.trace.text import number, plural


def schema(text: str) -> tuple[tuple[str, Domain], ...]:
    """The schema that a text says, written as after `described by`, or without its braces. Raises `Refusal` where it
    says none."""
    from jostle.tools.session import Session

    braced = text if text.lstrip().startswith("{") else f"{{{text}}}"
    program = f'private file = table("file")\n    described by {braced}\n    protecting rows\n    budget epsilon 1\n'
    return Session().clauses(Source("--schema", program)).schema


def report(path: str | Path, described: str, reading: Reading | None = None, engine: str | None = None) -> str:
    """What does not fit, column by column, of a file, of those that a pattern matches or of data of the server at the
    URL `engine`. Raises `Refusal` for a bad schema or what cannot be read."""
    domains = schema(described)
    whole, decimal = fit(path, domains, reading, engine)
    lines = [f"{clean(str(path))}: {plural(whole.rows, 'record')}"]
    if whole.ragged:
        lines.append(f"  {whole.ragged} with missing or extra cells (missing ones are `none`, extra ones are dropped)")
    if whole.undecodable:
        lines.append(f"  {whole.undecodable} with bytes that are none of its encoding (each such byte is replaced)")
    kinds: set[str] = set()
    for column, (_, domain) in zip(whole.columns, domains, strict=True):
        counts = _counts(column)
        kinds |= counts.keys()
        shares = ", ".join(f"{what} {n} ({_share(n / whole.rows)})" for what, n in counts.items())
        lines += ["", f"{name_of(clean(column.name))}: {domain_text(domain)}", f"  {shares or 'every cell fits'}"]
        lines += [f"  {advice}" for advice in _advice(column, domain, decimal)]
    lines += ["", *(f"{what}: {meaning}" for what, meaning in _MEANINGS.items() if what in kinds)]
    lines.append(EXACT)
    return "\n".join(lines) + "\n"


EXACT = "these counts are exact, so they are as private as the file: for its owner only"


def fit(
    path: str | Path, domains: Sequence[tuple[str, Domain]], reading: Reading | None = None, engine: str | None = None
) -> tuple[Survey, str | None]:
    """How files, or data of a server, fit a description, and the decimal point that more of their numbers have, where
    that is a comma. Raises `Refusal` for what cannot be read."""
    data = remote_data(str(path))
    if data is not None:
        with closing(server_at(data, engine)) as server:
            return server.survey(server.open(data, public=False).key, domains), None
    places = [open_file(place) for place in paths(str(path), [Path.cwd()])]
    reading = reading or Reading()
    whole = survey(FileSet.of(places, reading), domains)
    if not any(_unreadable_numbers(whole, domains)) or any(format_of(place) != "csv" for place in places):
        return whole, None
    other = survey(FileSet.of(places, replace(reading, decimal=",")), domains)
    better = sum(_unreadable_numbers(other, domains)) < sum(_unreadable_numbers(whole, domains))
    return (other, ",") if better else (whole, None)


def _unreadable_numbers(whole: Survey, domains: Sequence[tuple[str, Domain]]) -> list[int]:
    pairs = zip(whole.columns, domains, strict=True)
    return [column.unreadable for column, (_, domain) in pairs if domain_kind(domain) == "number"]


def misfits(path: str | Path, domains: Sequence[tuple[str, Domain]], reading: Reading | None = None,
            mark: str | None = None, engine: str | None = None, filled: Sequence[str] = ()) -> str:  # fmt: skip
    """What does not fit of described data, a line or two a column, for their owner; empty where all of it does. `mark`
    is the decimal point that their description says, and `filled` are the columns that are never missing."""
    whole, decimal = fit(path, domains, reading, engine)
    lines = []
    for column, (_, domain) in zip(whole.columns, domains, strict=True):
        counts = {what: n for what, n in _counts(column).items() if what != "empty" or column.name in filled}
        advice = list(_advice(column, domain, None))[:2]
        if counts:
            shares = ", ".join(f"{what} {n:,} ({_share(n / whole.rows)})" for what, n in counts.items())
            lines += [f"  {name_of(clean(column.name))}: {shares}", *(f"    {one}" for one in advice)]
    if decimal is not None and mark is None:
        lines.append(f"  {_COMMAS}")
    return "\n".join(["what does not fit:", *lines, EXACT]) + "\n" if lines else ""


_COMMAS = 'numbers are written as 12,5, which is read where the source says so: table(path, decimal = ",")'


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


def _advice(column: ColumnSurvey, domain: Domain, decimal: str | None) -> Iterator[str]:
    """How more of a column's cells would be read, a line each."""
    name, kind = column_word(clean(column.name)), domain_kind(domain)
    if column.not_whole:
        yield f"describe it as {_real(domain)} to keep fractions"
    if column.form:
        example = _EXAMPLE.get(column.form, column.form)
        yield f"its cells are like {example}: describe it as `text`, and use {reading(name, kind, column.form)}"
    elif column.unreadable and kind in ("date", "time"):
        yield f'another form is read where it is described as `text`: {kind}({name}, "%d/%m/%Y")'
    if decimal is not None and kind == "number":
        yield _COMMAS
    if column.respelt and isinstance(domain, Categories):
        spelt = "is" if column.respelt == 1 else "are"
        yield f"{column.respelt} of these {spelt} listed but for case or blanks: describe it as `text`, and query"
        plain = list(dict.fromkeys(value.strip().lower() for value in domain.values if isinstance(value, str)))
        categories_text = categories(plain) if len(plain) <= 6 else domain_text(Categories(tuple(plain)))
        yield f"groupby lower(trim({name})) over {clean(categories_text)}"


def reading(name: str, kind: str, form: str) -> str:
    """The expression that reads a text which is written in one of the forms of a survey; `name` is a column's."""
    if kind != "number":
        return f'{kind}({name}, "{form}")'
    sign, _, _, edits = NUMBERS[form]
    for old, new in ((sign, ""), *edits):
        name = f'replace({name}, "{old}", "{new}")' if old else name
    return f"number({name})"


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


def domain_text(domain: Domain) -> str:
    """A domain as a program writes it; of many categories, the first ones."""
    if isinstance(domain, Integer):
        return f"{domain.low}..{domain.high}"
    if isinstance(domain, Real):
        return f"{domain.low!r}..{domain.high!r}"
    if isinstance(domain, Moments):
        low, high = (moment_of(domain.kind, end).isoformat() for end in (domain.low, domain.high))
        return f"from {low} to {high} by {domain.unit}" if domain.unit else f"{low}..{high}"
    if isinstance(domain, Open):
        return "{true, false}" if domain.kind == "boolean" else domain.kind
    examples = [f'"{clean(v)}"' if isinstance(v, str) else number(v) for v in domain.values[:3]]
    more = f", … {len(domain.values)} in all" if len(domain.values) > 3 else ""
    return "{" + ", ".join(examples) + more + "}"


def header_misfits(program: n.Program, folders: Sequence[Path]) -> list[Diagnostic]:
    """The described columns that a file's header lacks, and the misspelt names of files, in source order."""
    return [fault for table in _tables(program) for fault in _misfits(*table, folders)]


def doubts(program: n.Program, folders: Sequence[Path]) -> list[Diagnostic]:
    """Warnings of described files whose header separates cells as files with decimal commas do, where the program says
    of neither how it is."""
    result = []
    for path, reading, described in _tables(program):
        there = _there(path.value, folders) if isinstance(described, n.RecordOf) and reading == Reading() else None
        separator = separator_of(there) if there is not None else ""
        numbers = isinstance(described, n.RecordOf) and any(_is_number(domain) for _, domain in described.items)
        if separator in GERMAN and numbers:
            mark, literal = GERMAN[separator]
            message = f"the header of `{path.value}` separates cells by {mark}, as files with decimal commas do"
            call = f'table("{path.value}", separator = "{literal}"'
            help = f'write `{call}, decimal = ",")` if its numbers are like 12,5, `{call})` if they are like 12.5'
            result.append(Diagnostic("csv-decimal", message, path.span, "12,5 would be unreadable", help))
    return result


GERMAN = {";": ("a semicolon", ";"), "\t": ("a tab", "\\t")}


def _is_number(domain: n.Expr) -> bool:
    match domain:
        case n.Range(low=n.Number() | n.Unary()) | n.Name(id="real" | "integer"):
            return True
        case n.SetOf(items=(n.Number(), *_)):
            return True
    return False


def separator_of(path: Path) -> str:
    """What separates the cells of a CSV file by its header; the empty text of what is no such file."""
    from jostle.engine.files import open_file
    from jostle.readers.csvfile import header
    from jostle.readers.formats import format_of

    try:
        file = open_file(path)
        return header(file, "").separator if format_of(file) == "csv" else ""
    except Refusal:
        return ""


def _tables(program: n.Program) -> Iterator[tuple[n.String, Reading, n.Expr | None]]:
    """The paths of tables and how they are read, with the descriptions of the columns of private ones."""
    described = {id(node.source): node.described for node in every_of(program, n.Private)}
    for node in every_of(program, n.Call):
        match node:
            case n.Call(function=n.Name(id="table"), args=(n.String() as path,)):
                reading = _reading(node)
                if reading is not None:
                    yield path, reading, described.get(id(node))


def _reading(call: n.Call) -> Reading | None:
    """How a file is read, where all that is said of it is written out, and right."""
    keywords = {keyword.name: keyword.value for keyword in call.keywords}
    line = keywords.pop("header", None)
    texts = {name: value.value for name, value in keywords.items() if isinstance(value, n.String)}
    if texts.keys() != keywords.keys() or not texts.keys() <= {"separator", "encoding", "decimal"}:
        return None
    header = int(line.value) if isinstance(line, n.Number) and 1 <= line.value <= LAST_HEADER else None
    if line is not None and (header is None or not isinstance(line, n.Number) or header != line.value):
        return None
    return Reading(
        header=header, separator=texts.get("separator"), encoding=texts.get("encoding"), decimal=texts.get("decimal")
    )


def on_other_lines(faults: Sequence[Diagnostic], others: Sequence[Diagnostic]) -> list[Diagnostic]:
    """Faults, and those others that are of lines on which nothing was found; of amounts, which come last, nothing is
    said where there is another."""
    before = {one.span.line for one in others if one.span is not None and one.kind != "BadAmount"}
    faults = [one for one in faults if one.kind != "BadAmount" or one.span is None or one.span.line not in before]
    lines = {fault.span.line for fault in faults if fault.span is not None}
    if any(one.kind == "ImportError" for one in faults):  # an unknown name may be one of that module
        others = [one for one in others if one.kind != "NameError"]
    both = [*faults, *(one for one in others if one.span is not None and one.span.line not in lines)]
    return sorted(both, key=lambda one: (one.span.line, one.span.column) if one.span is not None else (0, 0))


def lacking(
    program: n.Program, folders: Sequence[Path], check: Callable[[n.Program], list[Diagnostic]]
) -> list[Diagnostic]:
    """The columns of public files that their headers lack, found by the `check` of a program that has nothing else."""
    described = with_headers(program, folders)
    faults = [] if described is program else [fault for fault in check(described) if fault.label == "no such column"]
    return [replace(f, message=f.message.partition(":")[0], help=f.help.partition("; others")[0]) for f in faults]


def with_headers(program: n.Program, folders: Sequence[Path]) -> n.Program:
    """The program with public files described by their headers, of domains that are not known; itself where none is."""
    described = {id(node.source) for node in every_of(program, n.Private)}
    described |= {id(node.source) for node in every_of(program, n.Described)}
    columns: dict[int, tuple[str, ...]] = {}
    for node in every_of(program, n.Call):
        match node:
            case n.Call(function=n.Name(id="table"), args=(n.String(value=name),)):
                there = None if id(node) in described else _there(name, folders)
                reading = _reading(node)
                if there is not None and reading is not None:
                    columns[id(node)] = _header(there, reading)

    def with_header(node: n.Node) -> n.Node:
        if not isinstance(node, n.Call) or not columns.get(id(node)):
            return node
        domains = tuple((name, n.Constant(None, span=node.span)) for name in columns[id(node)])
        return n.Described(node, n.RecordOf(domains, span=node.span), span=node.span)

    return rebuilt(program, with_header) if any(columns.values()) else program


def _header(path: Path, reading: Reading) -> tuple[str, ...]:
    """The names of a file's columns; none where it has no header that can be read, which its run tells."""
    from jostle.engine.files import open_file
    from jostle.readers.csvfile import header

    try:
        return header(open_file(path), "", reading).readable
    except Refusal:
        return ()


def _there(name: str, folders: Sequence[Path]) -> Path | None:
    """The CSV file of a name that stands in a program, where it lies in one of the folders."""
    if set("*?[") & set(name) or not name.endswith(".csv"):
        return None
    return next((folder / name for folder in folders if (folder / name).exists()), None)


def _misfits(
    path: n.String, reading: Reading, described: n.Expr | None, folders: Sequence[Path]
) -> Iterator[Diagnostic]:
    from jostle.engine.base import Opened
    from jostle.engine.files import open_file
    from jostle.readers.csvfile import header
    from jostle.run.origins import check_column

    name = path.value
    if set("*?[") & set(name) or not name.endswith(".csv"):
        return
    there = _there(name, folders)
    if there is None:
        close = misspelt(name, folders, "*.csv")
        if close:
            yield Diagnostic("DataError", f"there is no file `{name}`", path.span, help=close)
        return
    if not isinstance(described, n.RecordOf):
        return
    try:
        head = header(open_file(there), f"`{name}`", reading)
    except Refusal as refusal:
        yield from refusal.at(path.span).diagnostics
        return
    data = Opened("", head.names, None, head.unread, reading.header)
    for column, domain in described.items:
        try:
            check_column(column, data, private=True)
        except Refusal as refusal:
            yield replace(refusal.at(domain.span).first, label="not in the file")
