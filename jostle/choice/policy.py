"""A policy is the outcome of training: which features to measure with what share of epsilon, and which option to run
then.

It is a value: public, stored as JSON, read by people. Policies and the runs behind them are stored as one JSON document
each, under a digest of everything that it depends on, and with a digest of itself: one that was edited or cut short is
refused. A store that cannot be written costs the next run its time and nothing else.
"""

from __future__ import annotations

import json
import math
import re
from bisect import bisect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from dataclasses import field as data_field
from pathlib import Path
from typing import TypeVar

from msgspec import Struct, ValidationError, convert, field, to_builtins

from jostle.choice.models import Predictor, Step, TreeEnsembles
from jostle.choice.table import EPSILON, LIMIT, OTHERS, Parts, Predict, RunTable, finite
from jostle.diagnostics import refuse
from jostle.plan.digest import digest
from jostle.records import field_names, replace
from jostle.resources import KEEPS, cache_folder, loads, replacing

T = TypeVar("T")
_PLACES = 9
"""Values of a feature at which it is said what would be predicted."""
SINGLE_BEST = "single best"
"""The policy that looks at nothing: always the option that was the best on average."""
AGAIN = "look again"
"""What stands among the options of a first, cheap look: a second one, that costs more."""


class Standing(Struct, frozen=True):
    """The cross-validation of a candidate: its mean regret over data sets, and the standard error."""

    name: str = field(name="policy")
    share: float
    regret: float
    error: float


class Stored(Struct, frozen=True, omit_defaults=True):
    name: str
    model: str
    share: float
    needs: tuple[str, ...]
    columns: tuple[str, ...]
    predictor: TreeEnsembles | None
    standings: tuple[Standing, ...]
    why: str
    table: RunTable
    unsettled: int = 0
    further: Stored | None = None
    others: Mapping[str, TreeEnsembles] = {}

    def read(self, parts: Parts | None) -> Policy:
        """The policy, without the options' own `predict`: `with_predicts` gives them back. Raises `ValueError` where
        its parts do not fit."""
        self.table.sound(parts)
        fields = {name: getattr(self, name) for name in field_names(Stored)}
        policy = Policy(**fields | {"further": self.further and self.further.read(parts)})
        names = {*self.table.features, EPSILON}
        if self.predictor is None or not (0 <= self.share < 1 and {*self.needs, *self.columns} <= names):
            raise ValueError("no policy")
        for predictor in (self.predictor, *self.others.values()):
            predictor.need_sound(self.columns, len(policy.outcomes))
        return policy


class Decision(Struct, frozen=True):
    """The option of a call and the reason for it. `predictions`, `spread` and `margin` are in units of the utility.

    `path` holds the tests that led to the prediction for the chosen option (none for a forest or a user's model),
    `paths` those for each option; `margin` is how far the chosen option's prediction is above the next one's. `errors`:
    utilities are negative errors, which are compared by their ratios.
    """

    chosen: str
    index: int
    predictions: dict[str, float]
    spread: dict[str, float]
    path: tuple[Step, ...]
    paths: dict[str, tuple[Step, ...]]
    margin: float
    errors: bool = False

    def as_json(self) -> dict[str, object]:
        """Fields of a `choice` event."""
        return {
            "chosen": self.chosen, "predictions": self.predictions, "spread": self.spread,
            "path": [*map(to_builtins, self.path)],
            "paths": {o: [*map(to_builtins, steps)] for o, steps in self.paths.items()},
            "margin": self.margin, "errors": self.errors,
        }  # fmt: skip


@dataclass(frozen=True)
class Policy:
    """`share` of a call's epsilon goes to the private features among `needs`, in equal parts; 0: they cost nothing.

    `needs` are the features to hand to `choose`, `columns` those that the model reads, in its order (with the
    public `epsilon`, as log₁₀, where several were trained on). `table` is what it was trained on, `standings` the
    cross-validation, and `why` a sentence on what decided it; `unsettled`: about how many more data sets would show
    that a better one is more than chance, 0 where none is. `steady`: an option and a margin, where no other is taken
    that is not predicted to be better by as much; what ships may have one. `others`: what predicts at half and at
    twice the amount, by that word; empty where the model reads the amount.
    """

    name: str
    model: str
    share: float
    needs: tuple[str, ...]
    columns: tuple[str, ...]
    predictor: Predictor | None
    table: RunTable
    standings: tuple[Standing, ...]
    why: str
    predicts: tuple[Predict | None, ...] = data_field(default=(), compare=False, repr=False)
    unsettled: int = data_field(default=0, compare=False)
    steady: tuple[int, float] | None = data_field(default=None, compare=False, repr=False)
    further: Policy | None = None
    others: Mapping[str, Predictor] = data_field(default_factory=dict, compare=False, repr=False)

    @property
    def outcomes(self) -> tuple[str, ...]:
        """What its model predicts: the options, and a second look where there is one."""
        return self.table.options if self.further is None else (*self.table.options, AGAIN)

    @property
    def learned(self) -> bool:
        """Whether it looks at anything, rather than always taking the single best option."""
        return self.name != SINGLE_BEST

    def choose(self, features: Mapping[str, float], epsilon: float | None) -> Decision:
        """The option to run, or `AGAIN`, given the features in `needs` and the call's `epsilon` (None: public data)."""
        options = self.outcomes
        if self.predictor is None:
            return Decision(options[0], 0, {}, {}, (), {options[0]: ()}, 0.0)
        values = {name: finite(features[name]) for name in self.needs}
        logarithm = math.log10(epsilon) if epsilon else LIMIT
        x = [values.get(name, logarithm) if name == EPSILON else values[name] for name in self.columns]
        predictions = self.predictor.predict(x)
        if self.learned:
            for k, predict in enumerate(self.predicts):
                if predict is not None:
                    predictions[k] = (finite(predict(values)), 0.0)
        best = max(range(len(options)), key=lambda k: predictions[k][0])
        if self.steady is not None and predictions[best][0] - predictions[self.steady[0]][0] < self.steady[1]:
            best = self.steady[0]
        rest = max((u for k, (u, _) in enumerate(predictions) if k != best), default=predictions[best][0])
        paths = {
            o: () if self.own(k) else tuple(self._read(step) for step in self.predictor.path(k, x))
            for k, o in enumerate(options)
        }
        return Decision(
            chosen=options[best],
            index=best,
            predictions={o: u for o, (u, _) in zip(options, predictions, strict=True)},
            spread={o: s for o, (_, s) in zip(options, predictions, strict=True)},
            path=paths[options[best]],
            paths=paths,
            margin=predictions[best][0] - rest,
            errors=self.table.scale.logarithmic,
        )

    def along(self, features: Mapping[str, float], epsilon: float | None, decision: Decision) -> dict[str, object]:
        """What is predicted of each option as the feature that decided goes over the values that it had in training,
        the others staying as they are: `feature`, its `value`, `places`, and `options`, a list each.

        It is the feature of which the nearest other value, in the order of those in training, changes the option; the
        amount only where no feature does. Empty where nothing alone does.
        """
        nearest: tuple[tuple[bool, float], dict[str, object]] = ((True, math.inf), {})
        for column in self.columns if self.learned and self.storable and not any(self.predicts) else ():
            here = epsilon if column == EPSILON and EPSILON not in features else features.get(column)
            seen = self._trained_at(column)
            if here is None or len(seen) < 2:
                continue
            here = finite(here)
            places = sorted({*(seen[k * (len(seen) - 1) // (_PLACES - 1)] for k in range(_PLACES)), here})
            out = []
            for place in places:
                moved = (features, place) if column == EPSILON else ({**features, column: place}, epsilon)
                out.append(self.choose(*moved))
            ranks = [bisect(seen, place) for place, one in zip(places, out, strict=True) if one.index != decision.index]
            off = min((abs(rank - bisect(seen, here)) / len(seen) for rank in ranks), default=math.inf)
            options = {o: [one.predictions[o] for one in out] for o in self.outcomes}
            told = {"feature": column, "value": here, "places": places, "options": options}
            if math.isfinite(off):
                nearest = min(nearest, ((column == EPSILON, off), told), key=lambda pair: pair[0])
        return nearest[1]

    def at_other_amounts(self, features: Mapping[str, float], epsilon: float | None) -> dict[str, str]:
        """The option at half and at twice the amount, with the same features; empty where that is not known."""
        if epsilon is None or not self.storable:
            return {}
        if EPSILON in self.columns and EPSILON not in features:
            return {word: self.choose(features, epsilon * times).chosen for word, times in OTHERS.items()}
        return {
            word: replace(self, predictor=one).choose(features, epsilon).chosen for word, one in self.others.items()
        }

    def _trained_at(self, column: str) -> list[float]:
        """The values of a column in training, in order."""
        if column == EPSILON and EPSILON not in self.table.features:
            return sorted(self.table.epsilons)
        at = self.table.features.index(column)
        return sorted({draw[at] for run in self.table.runs for draws in run.features for draw in draws})

    def reading(self, column: str, value: float) -> float:
        """A value of a column as people read it: models have epsilon as its logarithm."""
        return 10**value if column == EPSILON and EPSILON not in self.table.features else value

    def _read(self, step: Step) -> Step:
        return replace(
            step, threshold=self.reading(step.feature, step.threshold), value=self.reading(step.feature, step.value)
        )

    def own(self, option: int) -> bool:
        """Whether an option is judged by its own `predict`."""
        return self.learned and bool(self.predicts) and self.predicts[option] is not None

    @property
    def storable(self) -> bool:
        """Whether it is data through and through: a user's model is not."""
        return self.predictor is None or isinstance(self.predictor, TreeEnsembles)

    def stored(self) -> Stored:
        fields = {name: getattr(self, name) for name in field_names(Stored)}
        return Stored(**fields | {"further": self.further and self.further.stored()})

    def with_predicts(self, predicts: tuple[Predict | None, ...]) -> Policy:
        """This policy with the options' own predictions; itself where it has them already."""
        return self if not any(predicts) or predicts == self.predicts else replace(self, predicts=predicts)


FORMAT = 1
_NUMBERS = re.compile(r"\[[^\[\]{}\"]*\]")
"""A list of numbers alone, which is written on one line."""


def default_folder() -> Path | None:
    """`models` in this user's cache folder; None for who has no home, whose models live in memory only."""
    try:
        return cache_folder() / "models"
    except RuntimeError:
        return None


@dataclass
class Store:
    """Policies by key, and the tables of runs behind them, in memory and in `folder`; None: in memory only."""

    folder: Path | None = data_field(default_factory=default_folder)
    _policies: dict[str, Policy] = data_field(default_factory=dict, repr=False)
    _runs: dict[str, RunTable] = data_field(default_factory=dict, repr=False)

    def load(self, key: str, parts: Parts) -> Policy | None:
        """The policy of this key, or None where none is stored. Raises `DataError` where it is damaged."""
        return self._load(self._policies, key, "", "policy", lambda data: convert(data, Stored).read(parts))

    def remember(self, key: str, policy: Policy) -> Policy:
        """Keeps a policy in memory, so that later calls get this very one."""
        if KEEPS.get():
            self._policies[key] = policy
        return policy

    def save(self, key: str, policy: Policy, on_disk: bool = True) -> Path | None:
        """Keeps a policy; where it was written, or None if it is in memory only."""
        self.remember(key, policy)
        if self.folder is None or not on_disk or not policy.storable or not KEEPS.get():
            return None
        return _write(self.folder / f"{key}.json", key, "policy", policy.stored())

    def load_runs(self, key: str, parts: Parts) -> RunTable | None:
        """The table of runs of this key, or None where none is stored. Raises `DataError` where it is damaged."""
        return self._load(self._runs, key, "runs", "runs", lambda data: convert(data, RunTable).sound(parts))

    def save_runs(self, key: str, table: RunTable) -> Path | None:
        """Keeps a table of runs, so that another model, or an evaluation, need not run the options again."""
        if not KEEPS.get():
            return None
        self._runs[key] = table
        path = self.folder / "runs" / f"{key}.json" if self.folder is not None else None
        return _write(path, key, "runs", table) if path is not None else None

    def _load(self, memory: dict[str, T], key: str, below: str, what: str, read: Callable[..., T]) -> T | None:
        if key not in memory and self.folder is not None:
            value = _read(self.folder / below / f"{key}.json", key, what, read)
            if value is not None:
                memory[key] = value
        return memory.get(key)


def read_policy(path: Path, key: str) -> Policy | None:
    """The policy in a file that ships; None where there is none, or it is for another key. `DataError`: damaged."""
    return _read(path, key, "policy", lambda data: convert(data, Stored).read(None), ships=True)


def write_policy(path: Path, key: str, policy: Policy, about: Mapping[str, object]) -> Path | None:
    """Writes a policy as it ships, after what is to be known `about` it; None where that fails."""
    return _write(path, key, "policy", policy.stored(), about)


def _write(path: Path, key: str, what: str, content: object, about: Mapping[str, object] | None = None) -> Path | None:
    content = to_builtins(content)
    document = {"format": FORMAT, "key": key, **(about or {}), "digest": digest([FORMAT, key, content]), what: content}
    text = json.dumps(document, indent=1 if what == "policy" else None, allow_nan=False, ensure_ascii=False)
    text = _NUMBERS.sub(lambda numbers: re.sub(r"\n *", " ", numbers[0]).replace("[ ", "[").replace(" ]", "]"), text)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path, encoding="utf-8") as file:
            file.write(text)
    except OSError:
        return None
    return path


def _read(path: Path, key: str, what: str, read: Callable[..., T], ships: bool = False) -> T | None:
    """What is `read` of the content of a document under `what`; None where there is none, or one that `ships` is for
    another key."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    try:
        document = loads(data.decode())
        if ships and document["key"] != key:
            return None
        checksum = digest([document["format"], document["key"], document[what]])
        if (document["digest"], document["key"], document["format"]) != (checksum, key, FORMAT):
            raise ValueError("another content")
        return read(document[what])
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, ValidationError, RecursionError):
        raise refuse(
            "DataError", f"the stored model `{path}` is damaged: it was edited or cut short",
            help="delete this file; the next run trains the model again",
        ) from None  # fmt: skip
