"""The bench of a program: its Options, Features and Utility run by the interpreter on public training data.

For a noised run the handles of a training database are given a simulated source. It has a budget of the amount at hand,
the stability of the data the choice will be called on, and seeded noise of the same law. The Utility sees the database
itself. The kernel refuses any charge on a private source meanwhile. Values of a program have *fingerprints*, texts that
change when their meaning does: a function is its tree without places, and what its free names mean.

Choices by validation and by margin: every Option runs with an equal part of the amount, and the Utility gives a score,
a private number whose sensitivity the kernel knows, by which one answer is selected. Each is a measurement through the
one door, so that a call loses at most its amount, by adding up (docs/privacy/selection.md).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import date
from functools import lru_cache
from pathlib import Path
from typing import Any

from msgspec import Struct

from jostle.accounting.amounts import Amount
from jostle.accounting.composition import quanta
from jostle.choice.table import ChoiceParts, all_handles, number_from, public_answers, score_from
from jostle.diagnostics import Refusal, refuse
from jostle.formulas import error_text
from jostle.privacy.kernel.exposures import Handle, Source
from jostle.privacy.kernel.handles import Cube, Table, Vectors
from jostle.privacy.measurements.choices import LargestScores, MarginMax
from jostle.privacy.mechanisms.selection import COUNTED_IN_ZCDP
from jostle.privacy.reading.minting import exposed, simulated, simulated_source
from jostle.privacy.reading.public_data import PublicData
from jostle.privacy.scores import Score
from jostle.privacy.transformations.joins import join_exposures
from jostle.records import replace
from jostle.run import values as val
from jostle.run.arguments import bare_amount
from jostle.run.evaluator import Evaluator
from jostle.run.faults import exposures_of
from jostle.run.scope import MISSING
from jostle.run.sequences import Period
from jostle.simulate import SeededNoise, resample
from jostle.source import Span
from jostle.syntax import nodes as n
from jostle.syntax.nodes import MARGIN
from jostle.syntax.walk import every


def fingerprint(value: object, public: PublicData) -> str:
    return _FingerprintReader(public).read(value)


class _FingerprintReader:
    def __init__(self, public: PublicData) -> None:
        self._public = public
        self._visited: set[int] = set()

    def read(self, value: Any) -> str:
        if (
            value is val.REQUIRED
            or value is None
            or isinstance(value, (bool, int, float, str, date, Period, val.Interval))
        ):
            return f"{type(value).__name__}:{value if value is not val.REQUIRED else ''}"
        if isinstance(value, (val.Builtin, val.RowForm, val.Module)):
            return f"{type(value).__name__}:{value.name}"
        if val.is_vector(value):
            return hashlib.sha256(value.tobytes()).hexdigest()
        if isinstance(value, Handle):
            return self._handle(value)
        if id(value) in self._visited:
            return "again"
        self._visited.add(id(value))
        if isinstance(value, val.Function):
            return self._function(value)
        if isinstance(value, val.Part):
            return f"{value.kind}({self.read(value.run)},{self.read(value.predict)})"
        if isinstance(value, dict):
            return "{" + ",".join(f"{k}:{self.read(v)}" for k, v in value.items()) + "}"
        if isinstance(value, val.Grouped):
            return self.read(value.columns)
        if isinstance(value, val.JSet) or val.is_sequence(value):
            return "[" + ",".join(self.read(v) for v in value) + "]"
        parts = getattr(value, "jostle_parts", None)
        if parts is not None:
            return f"{type(value).__name__}({self.read(parts)})"
        fields = getattr(value, "__dataclass_fields__", {})
        return f"{type(value).__name__}({','.join(self.read(getattr(value, f)) for f in fields)})"

    def _function(self, function: val.Function) -> str:
        own = {name for name, _ in function.params}
        tree = hashlib.sha256(repr(function.body).encode()).hexdigest()
        defaults = ",".join(self.read(default) for _, default in function.params)
        free = []
        for name in sorted({node.id for node in every(function.body) if isinstance(node, n.Name)} - own):
            meant = function.scope.find(name)
            if meant is not MISSING:
                free.append(f"{name}={self.read(meant)}")
        return f"function({tree};{defaults};{';'.join(free)})"

    def _handle(self, handle: Handle) -> str:
        if handle.private:
            return f"private:{handle.exposures[0].source.name}"
        if isinstance(handle, Cube):
            cells = self._public.cells(handle)
            return f"cube{handle.shape}:{hashlib.sha256(cells.tobytes()).hexdigest()}"
        if isinstance(handle, Table):
            stamps, places = self._public.stamps(handle), dict[str, int]()
            plan = re.sub(r"data='(\w+)'", lambda of: f"{places.setdefault(of[1], len(places))}", repr(handle.plan))
            return f"table:{plan}:{stamps}"  # data are called as they were opened, of which a model knows nothing
        if isinstance(handle, Vectors):
            stamps = self._public.stamps(handle)
            return f"vectors:{handle.exprs!r}:{handle.radius}:{handle.norm}:{stamps}"
        return type(handle).__name__


SCALES = (0.1, 1.0, 10.0)
"""The multiples of its own size at which counted data are trained on."""

SIZES = "sizes"
"""The field of a training record that names numbers of rows to train at instead; `AMOUNTS` names which of
several amounts it is run at, `NAME` what reports call it."""
AMOUNTS = "epsilons"
NAME = "name"


class ProgramBench:
    """Implements `choice.bench.Bench` for one program, one unit of amount and one stability."""

    def __init__(self, interp: Evaluator, parts: ChoiceParts, unit: str = "epsilon", stability: int = 1) -> None:
        self._interp = interp
        self._parts = parts
        self._unit = unit
        self._stability = stability
        self.option_names = parts.option_names
        self.feature_names = parts.feature_names
        self.database_names = _names_of(parts.databases)
        self.database_rows = tuple(self._rows(data) for data in parts.databases)
        self.predicts = tuple(self._predict(option) for option in parts.options)
        self.feature_is_public = tuple(self._costs_nothing(f) for f in parts.features)
        self.key = self._key()

    def scales(self, database: int) -> tuple[float, ...]:
        """`SCALES`, or what a training record's field `sizes` asks for: numbers of rows."""
        rows, data = self.database_rows[database], self._parts.databases[database]
        if not rows:
            return (1.0,)
        sizes = data.get(SIZES) if isinstance(data, dict) else None
        return SCALES if sizes is None else tuple(size / rows for size in _numbers(SIZES, sizes, "numbers of rows", 1))

    def epsilons(self, database: int, grid: tuple[float, ...]) -> tuple[float, ...]:
        """Those of `grid` that a training record's field `epsilons` names, or all where it names none of them."""
        data = self._parts.databases[database]
        entry = data.get(AMOUNTS) if isinstance(data, dict) else None
        amounts = () if entry is None else _numbers(AMOUNTS, entry, "amounts", 0)
        return tuple(e for e in grid if e in amounts) or grid

    def _rows(self, data: object) -> float:
        """The rows of the first cube in a training record; 0 where there is none or it is empty."""
        for handle in all_handles(data):
            if isinstance(handle, Cube):
                return float(self._interp.data.cells(handle).sum())
        return 0.0

    def instance(self, database: int, scale: float, seed: int) -> object:
        data = self._parts.databases[database]
        if scale == 1.0:
            return data
        public = self._interp.data

        def resized(handle: Handle) -> Handle:
            if not isinstance(handle, Cube):
                return handle
            cells = public.cells(handle)
            rows = max(1, round(scale * int(cells.sum())))
            return replace(handle, cells=public.keep(resample(cells, rows, seed)))

        return map_handles(data, resized)

    def features(self, instance: object, epsilon: float | None, seed: int, names: Collection[str]) -> dict[str, float]:
        free = dict(zip(self.feature_names, self.feature_is_public, strict=True))
        paying = max(1, sum(not free[name] for name in names))
        each = epsilon / paying if epsilon is not None else None
        with self._training():
            return {
                name: number_from(self._run(feature, instance, each, seed + i), f"the Feature `{name}`")
                for i, (name, feature) in enumerate(zip(self.feature_names, self._parts.features, strict=True))
                if name in names
            }

    def answer(self, option: int, instance: object, epsilon: float | None, seed: int) -> object:
        with self._training():
            answers = self._run(self._parts.options[option], instance, epsilon, seed)
        if val.handles_in(answers):
            raise refuse("PrivateValue", f"the answers of `{self.option_names[option]}` hold private data")
        return answers

    def validated(self, way: str, share: float | None, instance: object, amount: Amount, seed: int) -> object:
        """The answers of a call by validation or by margin for this amount."""
        view, source = simulated_private(instance, amount, self._stability, seed)
        with self._training(), self._interp.kernel.allot(amount, None, exposed(source)):
            return validated(self._interp, self._parts, way, share, view, None).answers

    def scores(self, instance: object) -> bool:
        """Whether the Utility gives a score of private data, so that a choice by validation could be made."""
        amount = Amount(self._unit, quanta(1.0, self._unit))
        view, source = simulated_private(instance, amount, self._stability, 0)
        with self._training(), self._interp.kernel.allot(amount, None, exposed(source)):
            return scores(self._interp, self._parts, view)

    def utility(self, instance: object, answers: object) -> float:
        with self._training(), self._interp.kernel.allot(None, None):
            return number_from(self._interp.call(self._parts.utility, [instance, answers]), "the Utility")

    def _training(self) -> AbstractContextManager[None]:
        return public_only(self._interp)

    def _run(self, part: object, instance: object, epsilon: float | None, seed: int) -> object:
        if epsilon is None:
            with self._interp.kernel.allot(None, None):
                return self._interp.call(part, [instance])
        amount = Amount(self._unit, quanta(epsilon, self._unit))
        view, source = simulated_private(instance, amount, self._stability, seed)
        with self._interp.kernel.allot(amount, None, exposed(source)):
            return self._interp.call(part, [view])

    def _costs_nothing(self, feature: object) -> bool:
        amount = Amount(self._unit, quanta(1.0))
        view, source = simulated_private(self._parts.databases[0], amount, self._stability, 0)
        with self._training(), self._interp.kernel.allot(amount, None, exposed(source)):
            name = self.feature_names[self._parts.features.index(feature)]
            number_from(self._interp.call(feature, [view]), f"the Feature `{name}`")
        return not source.meter.spent[0]

    def _predict(self, option: object) -> Callable[[object], float] | None:
        if not isinstance(option, val.Part) or option.predict is None:
            return None
        body = option.predict

        def predict(features: Any) -> float:
            with self._training():
                return number_from(self._interp.call(body, [val.Record(features)]), "this `predict`")

        return predict

    def _key(self) -> str:
        parts = self._parts
        digests = [fingerprint(v, self._interp.data) for v in (*parts.options, *parts.features, parts.utility)]
        data = [fingerprint(v, self._interp.data) for v in parts.databases]
        whole = "\n".join(
            [*parts.option_names, *parts.feature_names, *digests, *data, self._unit, str(self._stability)]
        )
        return hashlib.sha256((whole + library_digest()).encode()).hexdigest()


def _names_of(databases: Sequence[object]) -> tuple[str, ...]:
    """A distinct name for each training record: its field `name`, else its number."""
    names: list[str] = []
    for i, data in enumerate(databases):
        name = data.get(NAME) if isinstance(data, dict) else None
        unusable = not isinstance(name, str) or not name or name in names
        names.append(f"database {i + 1}" if unusable else str(name))
    return tuple(names)


def _numbers(field: str, value: Any, what: str, least: float) -> list[float]:
    numbers = list(value) if val.is_sequence(value) or isinstance(value, val.JSet) else []
    if not numbers or not all(val.is_number(number) and least <= number <= 1e12 for number in numbers):
        raise refuse(
            "ValueError", f"`{field}` of a training record is a list of {what}",
            help=f"such as `{{database: d, queries: q, {field}: [1, 1000]}}`",
        )  # fmt: skip
    return sorted({float(number) for number in numbers})


@contextmanager
def public_only(interp: Evaluator) -> Iterator[None]:
    """While this is open no private source can be charged, and nothing is printed or released."""
    interp.quiet += 1
    try:
        with interp.kernel.training():
            yield
    finally:
        interp.quiet -= 1


def simulated_private(data: object, amount: Amount, stability: int, seed: int) -> tuple[object, Source]:
    """Gives data a simulated private source, with a budget of `amount` and seeded noise."""
    source = simulated_source(amount, SeededNoise(seed))
    return map_handles(data, lambda handle: simulated(handle, source, stability)), source


def map_handles(value: object, change: Callable[[Handle], Handle]) -> object:
    """Applies `change` to every public handle in nested containers."""
    if isinstance(value, Handle):
        return value if value.private else change(value)
    if isinstance(value, dict):
        return val.Record((k, map_handles(v, change)) for k, v in value.items())
    if isinstance(value, val.JSet):
        return val.JSet(map_handles(v, change) for v in value)
    if isinstance(value, (list, tuple)):
        return [map_handles(v, change) for v in value]
    return value


@lru_cache(maxsize=1)
def library_digest() -> str:
    """The digest of the code that runs depend on, which stored models are keyed by."""
    package = Path(__file__).resolve().parent.parent
    digest = hashlib.sha256()
    for part in ("accounting", "choice", "kernels", "privacy", "run"):
        for path in sorted((package / part).rglob("*.py")):
            digest.update(path.read_bytes())
    digest.update((package / "simulate.py").read_bytes())
    return digest.hexdigest()


class Validated(Struct, frozen=True):
    """The Option whose answers a score picked, and what is reported of it; `share` of the amount went to the
    selection."""

    index: int
    answers: object
    share: float
    why: str


def validated(
    interp: Evaluator, parts: ChoiceParts, way: str, share: float | None, data: object, span: Span | None
) -> Validated:
    """Runs every Option of `parts` on `data`, and picks by the score that the Utility gives of its answers.

    Each Option has an equal part of what is left of the allotment, but for `share` of it, an equal part too where it is
    None; the selection has what they leave. On public data everything is exact and free. Raises `TypeError` where the
    Utility gives no score, `BudgetExceeded`, and what the program's own parts raise.
    """
    exposures = exposures_of([data])
    many = len(parts.options)
    if share is None:
        share = 1 / (many + 1)
    if many == 1:
        share = 0.0
    whole = bare_amount(interp.kernel, exposures)
    if way == MARGIN and whole is not None and not whole.delta and many > 1:
        help = (
            "call it `with epsilon 1 delta 1e-6`, on a source with `budget epsilon e, delta d`; or choose by validation"
        )
        raise refuse("BadAmount", "a choice by margin needs a delta", help=help)
    parts_of_delta = many + (way == MARGIN)
    each = None
    if whole is not None:
        each = Amount(whole.unit, int(whole.value * (1 - share)) // many, whole.delta // parts_of_delta)
    answers, values = [], []
    for option, name in zip(parts.options, parts.option_names, strict=True):
        with interp.kernel.allot(each, span, exposures):
            answers.append(public_answers(interp, option, name, data, span))
        if many > 1:
            values.append(_score(interp, parts.utility, data, answers[-1], bool(exposures), way))
    if many == 1:
        return Validated(0, answers[0], share, "there is only one option")
    index, why = _best(interp, values, way, span) if exposures else _best_publicly(values)
    return Validated(index, answers[index], share, why)


def scores(interp: Evaluator, parts: ChoiceParts, data: object) -> bool:
    """Whether the Utility gives a score of what the first Option answers on these data, which are private."""
    answers = interp.call(parts.options[0], [data])
    try:
        _score(interp, parts.utility, data, answers, True, "")
    except Refusal:
        return False
    return True


def _score(interp: Evaluator, utility: object, data: object, answers: object, private: bool, way: str) -> Any:
    """The score that the Utility gives: a private one of private data, else a number."""
    function = utility.run if isinstance(utility, val.Part) else utility  # a Utility itself takes public data alone
    with interp.kernel.allot(None, None):
        value = interp.call(function, [data, answers])
    if not private:
        return number_from(value, "the Utility")
    return score_from(value, way)


def _best_publicly(utilities: list[float]) -> tuple[int, str]:
    return utilities.index(max(utilities)), "its utility is the largest"


def _best(interp: Evaluator, scores: Sequence[Score], way: str, span: Span | None) -> tuple[int, str]:
    """The place of the (nearly) largest score, for what is left; its lead is reported where that costs nothing more."""
    measured = join_exposures([score.exposures for score in scores], [1] * len(scores))
    amount = bare_amount(interp.kernel, measured)
    if way == MARGIN:
        picked = interp.kernel.measure(MarginMax.of(scores, amount), span)
        return picked.place, _clear(picked.among, len(scores))
    leads = any(e.source.measure.kind not in COUNTED_IN_ZCDP for e in measured)
    ranking = interp.kernel.measure(LargestScores.of(scores, 1, leads, amount), span)
    why = "its noisy score is the largest"
    if ranking.leads:
        lead = ranking.leads[0]
        why += f", {lead:.4g} ± {error_text(lead, ranking.within)} more than the next one's"
    return ranking.places[0], why


def _clear(among: int, many: int) -> str:
    if among == many:
        return "none stands clear of the others, and its noisy score is the largest"
    return "no other score is near" if among == 1 else f"it is one of {among} that stand clear of the others"
