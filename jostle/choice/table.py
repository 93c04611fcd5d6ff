"""The table of runs holds all that training saw, as plain numbers; policies are fitted and judged from it.

It holds no code and no data set, is written into stored models, and is the body of `train` events. The models and
the cross-validation read nothing else.
"""

from __future__ import annotations

import math
from typing import Any

from msgspec import Struct

from jostle.choice.scale import UtilityScale, scale_of
from jostle.records import replace

EPSILON = "epsilon"


class Setting(Struct, frozen=True):
    """A way to measure features: the private ones in `paid` share `share` of epsilon equally.

    Share 0 with nothing paid: the features are exact, because they are public or the data are.
    """

    share: float
    paid: tuple[str, ...]


class Run(Struct, frozen=True):
    """One training instance (a data set at a scale) at one epsilon; None: exact.

    `utilities[level][option]` is the mean utility over repeats when the option gets that level of epsilon;
    `features[setting][draw][feature]` the features as measured.
    """

    database: int
    scale: float
    epsilon: float | None
    utilities: tuple[tuple[float, ...], ...]
    features: tuple[tuple[tuple[float, ...], ...], ...]


class RunTable(Struct, frozen=True):
    """All runs of one training. `levels` are the fractions of epsilon at which options were run, 1.0 first."""

    options: tuple[str, ...]
    features: tuple[str, ...]
    public: tuple[bool, ...]
    databases: tuple[str, ...]
    epsilons: tuple[float, ...]
    levels: tuple[float, ...]
    settings: tuple[Setting, ...]
    repeats: int
    draws: int
    key: str
    runs: tuple[Run, ...]
    rows: tuple[float, ...] = ()
    """The rows of each data set as it was given; 0, or none at all, where that is not known."""

    @property
    def exact(self) -> bool:
        """Whether this table is for calls on public data, without noise."""
        return not self.epsilons

    @property
    def scale(self) -> UtilityScale:
        return scale_of(u for run in self.runs for level in run.utilities for u in level)

    def scores(self, run: Run, share: float, scale: UtilityScale) -> list[float]:
        """The score of every option when it gets 1 − `share` of epsilon.

        At a level that was run these are the runs; between two levels, on the line through them over log epsilon
        (error goes with a power of epsilon wherever noise decides, so for errors this is a line in log space).
        """
        whole = [scale.score(u) for u in run.utilities[0]]
        if share == 0 or len(self.levels) == 1:
            return whole
        less = [scale.score(u) for u in run.utilities[1]]
        way = math.log1p(-share) / math.log(self.levels[1])
        return [w + (s - w) * way for w, s in zip(whole, less, strict=True)]

    def read(self, setting: Setting) -> tuple[str, ...]:
        """The features that a model of this setting reads: what it pays for, and what costs nothing."""
        columns = zip(self.features, self.public, strict=True)
        return tuple(n for n, free in columns if free or self.exact or n in setting.paid)

    def rows_of(self, run: Run) -> float | None:
        """The number of rows of a run's instance, to six figures; None where that is not known."""
        rows = self.rows[run.database] if self.rows else 0.0
        return float(f"{run.scale * rows:.6g}") if rows else None

    def without(self, database: int) -> RunTable:
        """The runs on all other data sets."""
        return replace(self, runs=tuple(r for r in self.runs if r.database != database))

    def keeping(self, setting: int) -> RunTable:
        """Returns the table with one of its feature settings."""
        runs = tuple(replace(r, features=(r.features[setting],)) for r in self.runs)
        return replace(self, settings=(self.settings[setting],), runs=runs)

    def as_json(self) -> dict[str, Any]:
        return {
            "options": list(self.options), "features": list(self.features), "public": list(self.public),
            "databases": list(self.databases), "epsilons": list(self.epsilons), "levels": list(self.levels),
            "settings": [{"share": s.share, "paid": list(s.paid)} for s in self.settings],
            "repeats": self.repeats, "draws": self.draws, "key": self.key,
            "runs": [[r.database, r.scale, r.epsilon, r.utilities, r.features] for r in self.runs],
            "rows": list(self.rows),
        }  # fmt: skip

    @staticmethod
    def from_json(data: dict[str, Any]) -> RunTable:
        return RunTable(
            tuple(data["options"]), tuple(data["features"]), tuple(data["public"]), tuple(data["databases"]),
            tuple(data["epsilons"]), tuple(data["levels"]),
            tuple(Setting(s["share"], tuple(s["paid"])) for s in data["settings"]),
            data["repeats"], data["draws"], data["key"],
            tuple(Run(d, s, e, _tuples(u), _tuples(f)) for d, s, e, u, f in data["runs"]), tuple(data.get("rows", ())),
        )  # fmt: skip


def train_event(table: RunTable) -> dict[str, Any]:
    """The fields of a `train` event: the whole table of runs as plain JSON, a row for each run and measurement.

    A row: `database`, `scale` (a multiple of the given data), `rows` (None: not known), `epsilon` (None: exact),
    `utilities` {option: mean utility when it gets all of epsilon}, `less` (the same at the other levels, by level), and
    `features`, a list of {`share`, `draw`, `values`}.
    """
    rows = []
    for run in table.runs:
        utilities = [dict(zip(table.options, level, strict=True)) for level in run.utilities]
        measured = [
            {"share": s.share, "draw": d, "values": _values(table, s, values)}
            for s, draws in zip(table.settings, run.features, strict=True)
            for d, values in enumerate(draws)
        ]
        rows.append({
            "database": table.databases[run.database], "scale": run.scale, "rows": table.rows_of(run),
            "epsilon": run.epsilon,
            "utilities": utilities[0],
            "less": {str(l): u for l, u in zip(table.levels[1:], utilities[1:], strict=True)},
            "features": measured,
        })  # fmt: skip
    return {
        "options": list(table.options), "features": list(table.features), "databases": list(table.databases),
        "epsilons": list(table.epsilons), "repeats": table.repeats, "draws": table.draws,
        "models": table.scale.name if table.runs else "utility", "rows": rows,
    }  # fmt: skip


def _values(table: RunTable, setting: Setting, values: tuple[float, ...]) -> dict[str, float]:
    """The features that this setting measures or has for nothing, by name."""
    read = table.read(setting)
    return {n: v for n, v in zip(table.features, values, strict=True) if n in read}


def _tuples(data: object) -> Any:
    return tuple(_tuples(d) for d in data) if isinstance(data, list) else data
