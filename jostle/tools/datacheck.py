"""`jostle data check` reports how a file fits a description.

What it prints is exact and private: it is for the owner's eyes, and says so. No program can reach it.
"""

from __future__ import annotations

from pathlib import Path

from jostle.diagnostics import refuse
from jostle.engine.duckdb.survey import ColumnSurvey, survey
from jostle.engine.files import open_file
from jostle.engine.filesets import FileSet, paths
from jostle.language.moments import moment_of
from jostle.plan.domains import Categories, Domain, Integer, Moments, Open, Real
from jostle.plan.kinds import domain_kind
from jostle.source import Source
from jostle.tools.render import clean
from jostle.trace.text import align, number, plural


def schema(text: str) -> tuple[tuple[str, Domain], ...]:
    """The schema that a text says, written as after `described by`. Raises `Refusal` where it says none."""
    from jostle.run.clauses import schema_of
    from jostle.tools.session import Session

    session = Session()
    source = Source("--schema", f"schema = {text}\n")
    faults = session.check(source)
    if faults:
        raise refuse(faults[0].kind, faults[0].message, faults[0].span, label=faults[0].label, help=faults[0].help)
    session.execute(source)
    return schema_of(session.names()["schema"], None)


def report(path: str | Path, described: str) -> str:
    """A table of what does not fit, a row a column, of a file or of those that a pattern matches. Raises `Refusal` for
    a bad schema or unreadable files."""
    domains = schema(described)
    files = FileSet.of([open_file(place) for place in paths(str(path), [Path.cwd()])])
    whole = survey(files, domains)
    lines = [f"{clean(str(path))}: {plural(whole.rows, 'record')}"]
    if whole.ragged:
        lines.append(f"  {whole.ragged} with missing or extra cells (missing ones are `none`, extra ones are dropped)")
    if whole.undecodable:
        lines.append(f"  {whole.undecodable} with bytes that are none of its encoding (each such byte is replaced)")
    rows = [["column", "described as", "empty", "unreadable", "outside", "not whole", "unlisted"]]
    rows += [_row(column, domain, whole.rows) for column, (_, domain) in zip(whole.columns, domains, strict=True)]
    lines += ["", *align(rows, [False, False, True, True, True, True, True]), ""]
    lines.append(
        "empty, unreadable (no number, date or time where one is described), unlisted: such cells count as `none`; "
        "outside: such cells are moved to the nearest end; not whole: such cells are taken down"
    )
    lines += [
        f"{clean(column.name)} has cells that are not whole: describe it as {_real(domain)} to keep their fractions"
        for column, (_, domain) in zip(whole.columns, domains, strict=True) if column.not_whole
    ]  # fmt: skip
    lines.append("these counts are exact, so they are as private as the file: for its owner only")
    return "\n".join(lines) + "\n"


def _row(column: ColumnSurvey, domain: Domain, rows: int) -> list[str]:
    def cell(count: int, told: bool) -> str:
        return (f"{count} ({_share(count / rows)})" if count else "0") if told else ""

    whole = isinstance(domain, Integer) or domain == Open("integer")
    return [
        clean(column.name),
        domain_text(domain),
        cell(column.empty, True),
        cell(column.unreadable, domain_kind(domain) != "text"),
        cell(column.outside, isinstance(domain, Integer | Real | Moments)),
        cell(column.not_whole, whole),
        cell(column.unlisted, isinstance(domain, Categories)),
    ]


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
