"""What an editor asks about a program, and programs on made-up rows: functions of texts and public facts alone.

A program names `dataset("people")`, of which nothing is known on its own. Where its analyst has a grant, what the owner
has published is known: columns, domains, the protected unit and the grant's limit. Here the name is replaced by a
declaration that says these facts, on the same line; it is checked, completed and simulated, and never run on rows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from jostle.events import Event
from jostle.plan.plan import Categories, Domain
from jostle.privacy.ledger.ledger import Ledger
from jostle.privacy.ledger.store import Dataset
from jostle.source import Source
from jostle.tools.editors.document import Document
from jostle.tools.result import Result
from jostle.tools.session import Session

_DECLARED = re.compile(
    r'^(private\s+[A-Za-z_]\w*\s*=\s*)dataset\(\s*"([A-Za-z_]\w*)"\s*\)(?=[ \t]*(?:#.*)?$)', re.MULTILINE
)
MADE_UP = 2000
"""Rows of each table of a simulation."""
_CANDIDATES = 60
Facts = Mapping[str, str]
"""By a dataset's name, the clauses that its owner has published."""


def clauses(dataset: Dataset, grant: Dataset) -> str:
    """What is published of a dataset, as a declaration says it, under the limit of a grant; empty of counts, whose
    shape is not published."""
    from jostle.tools.draft.columns import name_of

    terms, measure = dataset.terms, grant.terms.measure
    if not terms.schema:
        return ""
    never = [" never missing" * (name in terms.filled) for name, _ in terms.schema]
    columns = (
        f"{name_of(name)}: {_text(domain)}{end}" for (name, domain), end in zip(terms.schema, never, strict=True)
    )
    budget = f"{measure.limit}{' by basic' * (measure.kind == 'basic')}"
    return f"described by {{{', '.join(columns)}}} protecting {terms.unit} budget {budget}"


def _text(domain: Domain) -> str:
    from jostle.tools.datacheck import domain_text
    from jostle.tools.draft.columns import categories

    return categories(domain.values) if isinstance(domain, Categories) else domain_text(domain)


def with_facts(program: str, facts: Facts) -> str:
    """A program whose datasets are declared by what is published of them; lines stay where they are."""

    def declared(match: re.Match[str]) -> str:
        clauses_ = facts.get(match[2])
        return f'{match[1]}table("{match[2]}") {clauses_}' if clauses_ else match[0]

    return _DECLARED.sub(declared, program)


def session(folder: Path, **options: Any) -> Session:
    """A session that opens nothing of the server."""
    return Session(cwd=folder, ledger=Ledger(folder / "none", grantee="-"), look=False, **options)


def edited(request: Mapping[str, Any], folder: Path) -> dict[str, object]:
    """What the language says at a place (`line`, `column`, from 0): a hover, or what can be written there."""
    text, line, column = str(request["program"]), int(request["line"]), int(request["column"])
    with session(folder) as looked:
        if request["ask"] == "format":
            return {"text": _formatted(text)}
        document = Document("program.jst", _session=looked)
        whole = with_facts(text, dict(request.get("facts") or {}))
        for part in _readable(whole, line):  # what cannot be read yet is known by what can
            document.change(part)
        if request["ask"] == "completions":
            typed, candidates = document.completions(line, column)
            words = [{"word": c.word, "kind": c.kind} for c in candidates[:_CANDIDATES]]
            return {"typed": typed, "words": words}
        signature = document.signature(line, column)
        usage = "" if signature is None else f"{signature.usage}: {signature.about}"
        return {"hover": document.hover(line, column), "signature": usage}


def _readable(text: str, line: int) -> tuple[str, ...]:
    """A text's declarations alone, the text without the line that is being written, and the text."""
    lines = text.split("\n")
    declared = [one if one.startswith("private ") else "" for one in lines]
    return "\n".join(declared), "\n".join([*lines[:line], "", *lines[line + 1 :]]), text


def _formatted(text: str) -> str:
    return Document("program.jst", text).format() or text


def simulated(program: str, settings: Mapping[str, str], folder: Path, listener: Callable[[Event], None]) -> Result:
    """A run on made-up rows, drawn evenly from what is published: nothing private is opened, nothing is charged."""
    with session(folder, simulate=1, rows=MADE_UP, listeners=[listener]) as rehearsal:
        return rehearsal.attempt(Source("program.jst", program), settings)


def document(result: Result) -> str:
    """The document of a simulated run, marked as one."""
    return json.dumps({**json.loads(result.document(1)), "rows": MADE_UP})
