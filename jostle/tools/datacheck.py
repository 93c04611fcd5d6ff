"""`jostle data check` reports how a file fits a description.

What it prints is exact and private: it is for the owner's eyes, and says so. No program can reach it.
"""

from __future__ import annotations

from pathlib import Path

from jostle.diagnostics import refuse
from jostle.engine.duckdb.survey import ColumnSurvey, survey
from jostle.language.moments import moment_of
from jostle.plan.domains import Categories, Domain, Integer, Moments, Open, Real
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


def report(path: Path, described: str) -> str:
    """A table of what does not fit, a row a column. Raises `Refusal` for a bad schema or an unreadableable file."""
    domains = schema(described)
    survey_of_file = survey(path, domains)
    records = plural(survey_of_file.rows, "record")
    lines = [f"{clean(str(path))}: {records}"]
    if survey_of_file.ragged:
        lines.append(
            f"  {survey_of_file.ragged} with missing or extra cells (missing ones are `none`, extra ones are dropped)"
        )
    if survey_of_file.undecodable:
        lines.append(f"  {survey_of_file.undecodable} with bytes that are not UTF-8 (each such byte is replaced)")
    rows = [["column", "described as", "empty", "unreadable", "outside", "not whole", "unlisted"]]
    rows += [_row(column, domain) for column, (_, domain) in zip(survey_of_file.columns, domains, strict=True)]
    lines += ["", *align(rows, [False, False, True, True, True, True, True]), ""]
    lines.append(
        "empty, unreadable (no number, date or time where one is described), unlisted: such cells count as `none`; "
        "outside: such cells are moved to the nearest end; "
        "not whole: such cells are taken down, so describe them as real, `0.0..9.0`"
    )
    lines.append("these counts are exact, so they are as private as the file: for its owner only")
    return "\n".join(lines) + "\n"


def _row(column: ColumnSurvey, domain: Domain) -> list[str]:
    numeric = (
        isinstance(domain, Integer | Real)
        or (isinstance(domain, Open) and domain.kind != "text")
        or isinstance(domain, Moments)
    )
    numeric = numeric or (isinstance(domain, Categories) and not isinstance(domain.values[0], str))
    return [
        clean(column.name),
        domain_text(domain),
        str(column.empty),
        str(column.unreadable) if numeric else "",
        str(column.outside) if isinstance(domain, Integer | Real | Moments) else "",
        str(column.not_whole) if isinstance(domain, Integer) or domain == Open("integer") else "",
        str(column.unlisted) if isinstance(domain, Categories) else "",
    ]


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
