"""The entries of what is built in: rows of `language.builtins` and `language.aggregates`, with prices and examples."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jostle.language.aggregates import AGGREGATES, DISTINCT
from jostle.language.builtins import BUILTINS
from jostle.language.facts import Builtin, Effect, Gives
from jostle.language.operations import ROW_FUNCTIONS
from jostle.tools.documentation.entry import Documentation
from jostle.tools.documentation.examples import examples

_PRICES = {
    Effect.PURE: "free",
    Effect.MEASURES: "costs its `epsilon`, else what is left of the allotment; free on public data",
    Effect.TRANSFORMS: "free; what is measured of it is charged to its source",
    Effect.SCORES: "free until `laplace`, `noisy_max` or `exp_mech` measures it",
    Effect.DECLARES: "free; opens a source",
}
_OF_ITS_OWN = {
    Gives.EXPLODED: "free; what is measured of it costs as many times as the lists are long",
    Gives.UNION: "free; what is measured of it costs as often as its source is in it",
    Gives.CHOICE: "free; a call costs what its allotment says, features included",
    Gives.ADVISOR: "free; a call costs what its allotment says, features included",
}


def builtins() -> Iterator[Documentation]:
    """An entry for each built-in name."""
    for name, row in BUILTINS.items():
        example = examples(row.module or "language").get(name, "")
        rows = " Rows have it too." if name in ROW_FUNCTIONS else ""
        within = row.usage[len(name) + 1 : -1]
        parameters = tuple(p for p in re.split(r", (?![^\[]*\])", within) if p not in ("", "*"))
        yield Documentation(
            name, _kind(row), row.usage, row.about + rows, _price(row), example, row.module, parameters=parameters
        )  # fmt: skip


def aggregates() -> Iterator[Documentation]:
    """An entry for each aggregate of a select."""
    for row in (*AGGREGATES.values(), *DISTINCT.values()):
        bounded = " What it is of needs public bounds." if row.bounded else ""
        parameters = tuple(re.sub(r"^.*\(|\)$", "", row.usage).split(", "))
        yield Documentation(
            row.name, "aggregate", row.usage, row.about + bounded, "costs an equal part of its select's amount",
            examples("queries").get(row.name, ""), parameters=parameters,
        )  # fmt: skip


def _kind(row: Builtin) -> str:
    if row.signature is None:
        return "constant" if row.gives is Gives.CONSTANT else "domain"
    return {Effect.MEASURES: "measurement", Effect.TRANSFORMS: "transformation", Effect.SCORES: "score"}.get(
        row.effect, "function"
    )


def _price(row: Builtin) -> str:
    return "" if row.signature is None else _OF_ITS_OWN.get(row.gives, _PRICES[row.effect])
