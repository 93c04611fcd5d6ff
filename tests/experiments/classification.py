"""Classifiers of `stdlib/` on public tables, run by the interpreter as training runs them.

Tables are `../shared/data/tables` and scikit-learn's bundled sets, given to the options as if private, with a budget
of the amount at hand and seeded noise of the same law.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from jostle.choice.program import ProgramBench
from jostle.choice.table import ChoiceParts
from jostle.source import Source
from jostle.tools.session import Session
from tests.experiments.classification_data import Columns


class Tables(ProgramBench):
    """Several (training, test) pairs, an instance each; options, features and utility are those of `classify`."""


def bench(
    pairs: Sequence[tuple[Columns, Columns, dict[str, list[str]], str]],
    options: Sequence[str],
    features: Sequence[str] = (),
    made_up: str = "",
) -> Tables:
    """`pairs`: (training, test, domains, class). `options`, `features`: names of `stdlib/classify.jst`.

    `made_up`: an expression of the language for more databases, such as `simulated_tables(40)`.
    """
    session = Session()
    text = ["use classifiers", "use classify"]
    for i, (train, test, domains, label) in enumerate(pairs):
        text += described(session, str(i), train, test, domains, label)
    text.append(f"more = {made_up or '[]'}")
    session.execute(Source("experiment", "\n".join(text) + "\n"))
    known: dict[str, Any] = session.names()
    parts = ChoiceParts(
        options=tuple(known[name] for name in options),
        option_names=tuple(options),
        features=tuple(known[name] for name in features),
        feature_names=tuple(features),
        utility=known["right_on_test"],
        databases=(*(known[f"d_{i}"] for i in range(len(pairs))), *known["more"]),
    )
    return Tables(session._interp, parts)


def described(
    session: Session, number: str, train: Columns, test: Columns, domains: dict[str, list[str]], label: str
) -> list[str]:
    """The lines that declare a pair of tables, whose record is then called `d_` and its number."""
    said = ", ".join(f"{_name(c)}: {{{', '.join(map(_quoted, v))}}}" for c, v in domains.items())
    text = []
    for what, rows in (("train", train), ("test", test)):
        session.bind(f"{what}_{number}", rows)
        text.append(f'{what}_{number} = bound("{what}_{number}") described by {{{said}}}')
    return [*text, f"d_{number} = {{database: train_{number}, test: test_{number}, class: {_quoted(label)}}}"]


def _name(column: str) -> str:
    return column if column.isidentifier() else _quoted(column)


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
