"""The table of runs holds all that training saw, as plain numbers; policies are fitted and judged from it alone.

*Scale.* Where every utility is at most 0 it is taken for a negative error. What is modelled is minus its logarithm, so
that a large data set weighs no more than a small one. Elsewhere the utility itself is modelled. A larger score is
better, and the difference of two is a regret.

*Exchange.* The relative error of most algorithms for counted data depends on epsilon times the number of rows (Hay et
al., DPBench, SIGMOD 2016, "scale–ε exchangeability"). So a model that asks for it (`regret_tree(exchange = true)`) is
trained at one epsilon on data of more sizes, and serves every call. It is right for features that see the product too,
or shares of the rows, and as long as counts stay well above 0.

`Bench` is the one protocol between choosing and running. Everything behind a bench is public; none of it may touch a
private source.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import takewhile
from typing import Any, Protocol, cast

from msgspec import Struct
from msgspec.structs import force_setattr

from jostle.diagnostics import did_you_mean, refuse
from jostle.privacy.kernel.exposures import Handle
from jostle.privacy.kernel.handles import Table, Vectors
from jostle.privacy.reading.public_data import PublicData
from jostle.privacy.scores import Score, Scores
from jostle.records import replace
from jostle.run.evaluator import Evaluator
from jostle.run.values import Function, JSet, Part, Record, handles_in, is_number, kind_name
from jostle.source import Span
from jostle.syntax import nodes as n
from jostle.syntax.walk import children

Features = Mapping[str, float]
Predict = Callable[[Features], float]


class Bench(Protocol):
    """The options, features and training data sets of one ChoiceMaker.

    An instance is one training data set at one scale, opaque here. All sequences over options, features and
    databases are in the order of the program. Methods may raise `Refusal`, which comes through as it is.
    """

    @property
    def option_names(self) -> tuple[str, ...]: ...

    @property
    def feature_names(self) -> tuple[str, ...]: ...

    @property
    def predicts(self) -> tuple[Predict | None, ...]:
        """For each option, its own `predict (F)` (features → utility) or None: a model is learned."""

    @property
    def database_names(self) -> tuple[str, ...]: ...

    @property
    def database_rows(self) -> tuple[float, ...]:
        """The rows of each data set as it is given; 0 where that is not known."""

    @property
    def feature_is_public(self) -> tuple[bool, ...]:
        """For each feature, whether it measures nothing (and so costs nothing)."""

    @property
    def key(self) -> str:
        """A digest of the programs, data and versions that the runs depend on."""

    def scales(self, database: int) -> tuple[float, ...]:
        """The multiples of the given data to train at, 1.0 among them."""

    def epsilons(self, database: int, grid: tuple[float, ...]) -> tuple[float, ...]:
        """Those of `grid` that the data set is run at."""

    def instance(self, database: int, scale: float, seed: int) -> object:
        """The data set resampled to `scale` times its size; 1.0 gives it as it is."""

    def features(self, instance: object, epsilon: float | None, seed: int, names: Collection[str]) -> dict[str, float]:
        """The features of these names. The private ones among them share `epsilon` equally; None: exact."""

    def answer(self, option: int, instance: object, epsilon: float | None, seed: int) -> Any:
        """Runs the option with the noise it would have at `epsilon` (None: exact) and returns its answer."""

    def utility(self, instance: object, answers: object) -> float:
        """Returns the utility of the answers on the exact instance; larger is better."""


class ChoiceParts(Struct, frozen=True):
    """The parts of a ChoiceMaker, as the program wrote them, and what its Options and Features read of the data."""

    options: tuple[Any, ...]
    option_names: tuple[str, ...]
    features: tuple[Any, ...]
    feature_names: tuple[str, ...]
    utility: object
    databases: tuple[object, ...]
    reads: Sequence[Read] = ()

    def __post_init__(self) -> None:
        force_setattr(self, "reads", fields_read([*self.options, *self.features]))


def only_record(args: Sequence[object], reads: Sequence[Read], others: Sequence[object]) -> object:
    """The one record that a choice is called with, which has the fields that its parts read."""
    if len(args) != 1:
        names = ", ".join(f"{name}: …" for name in dict.fromkeys(one.name for _, one in reads))
        message = f"a choice takes its data, one record, and {len(args)} were given"
        raise refuse("TypeError", message, help=f"its record is `{{{names}}}`" if names else "")
    need_fields(reads, args[0], others)
    return args[0]


Read = tuple[object, n.Attribute]
"""A part of a choice, and a field that it reads of its data."""


def need_fields(reads: Sequence[Read], data: object, others: Sequence[object] = ()) -> None:
    """Refuses a record without a field that a part of a choice reads whatever it is called with: there, where one part
    alone reads it and no `others` have it, else where the record stands."""
    if not isinstance(data, Record):
        _need_record(reads, data)
        return
    for part, read in reads:
        if read.name in data:
            _need_number(part, read, data[read.name])
            continue
        has = f"the record has {', '.join(f'`{name}`' for name in data) or 'no field'}"
        elsewhere = any(isinstance(other, Record) and read.name in other for other in others)
        if elsewhere or any(one.name == read.name and other is not part for other, one in reads):
            spare = did_you_mean(read.name, data.keys() - {one.name for _, one in reads}, cutoff=0.4)
            nearest = spare.removeprefix("did you mean ").rstrip("?")
            help = f"write `{read.name}:` for {nearest}" if spare else f"give it a field `{read.name}`"
            raise refuse("NameError", f"`{getattr(part, 'name', '')}` reads `{read.span.text}`, and {has}", help=help)
        message = f"`{read.span.text}` is read, and {has}"
        field = f"{read.value.span.text}.{next(iter(data), 'database')}"
        help = did_you_mean(read.name.lower(), data) or f"write `{field}`"
        raise refuse("NameError", message, read.span, help=help)


def _need_record(reads: Sequence[Read], data: object) -> None:
    """Refuses what has no fields at all, of which parts of a choice read some; a cube is its own `database`."""
    rows = isinstance(data, Table) and "database" in {one.name for _, one in reads}
    if reads and (rows or is_number(data) or isinstance(data, str | list | JSet)):
        need = f"a record with {', '.join(dict.fromkeys(f'`{one.name}`' for _, one in reads))}"
        help = f"its record is `{{{', '.join(dict.fromkeys(f'{one.name}: …' for _, one in reads))}}}`"
        help += ", whose `database` is counts of the table: `histogram(t, x = age)`" * rows
        raise refuse("TypeError", f"the parts of a choice read {need}, and this is {kind_name(data)}", help=help)


def _need_number(part: object, read: n.Attribute, value: object) -> None:
    """Refuses a Feature that gives a field of its data as it stands, where that is no number."""
    run = part.run if isinstance(part, Part) and part.kind == "Feature" else None
    gives = run.body.body[-1] if isinstance(run, Function) and isinstance(run.body, n.Block) else None
    if isinstance(gives, n.Return) and gives.value is read and not is_number(value):
        help = f"measure it: `return laplace(size({read.value.span.text}.database))`"
        raise refuse("TypeError", f"a Feature gives a number, and `{read.span.text}` is none", read.span, help=help)


def fields_read(parts: Sequence[object]) -> list[Read]:
    """The fields of its first argument that each part reads whenever it is called: not what a condition, a loop or the
    first operand of `and` decides about, and of a select the table alone."""
    reads: list[Read] = []
    for part in parts:
        run = part.run if isinstance(part, Part) else part
        data = run.params[0][0] if isinstance(run, Function) and run.params else ""
        waiting: list[n.Node] = [run.body] if isinstance(run, Function) else []
        while waiting:
            match waiting.pop(0):
                case n.Conditional() | n.Lambda() | n.Comprehension() | n.Over() | n.Def():
                    pass
                case n.Block(body=body):  # what comes after a branch may never be reached
                    waiting += takewhile(lambda one: not isinstance(one, n.If | n.For), body)
                case n.Logic(operands=(first, *_)) | n.Select(table=first):
                    waiting.append(first)
                case n.Attribute(value=n.Name(id=name)) as read if name == data:
                    reads.append((part, read))
                case node:
                    waiting += children(node)
    return reads


def number_from(value: object, what: str) -> float:
    """The number that `what` (a Feature, a Utility) gives."""
    if not is_number(value):
        raise refuse("TypeError", f"{what} gives {kind_name(value)}, and a number is needed",
                     help="return the one number that is meant, a field or an item of it")  # fmt: skip
    return float(value)


def score_from(value: object, way: str) -> Score:
    """The score that a Utility gives of private data."""
    if not isinstance(value, Score) or isinstance(value, Scores) or not value.private:
        raise refuse(
            "TypeError", f"by {way} the Utility gives a score of the private data, and this gives {kind_name(value)}",
            help="such as `closeness(data.database, data.queries, answers)` or `correct_count(data.rows, answers, c)`",
        )  # fmt: skip
    return value


def run(interp: Evaluator, option: object, data: object) -> object:
    """Runs an Option; on public data, outside every allotment."""
    if handles_in(data):
        return interp.call(option, [data])
    with interp.kernel.allot(None, None):
        return interp.call(option, [data])


def public_answers(
    interp: Evaluator, option: object, name: str, data: object, span: Span | None, help: str = ""
) -> object:
    """Runs an Option within an event of its own; refuses answers that hold private data."""
    with interp.kernel.events.within("option", name, span):
        answers = run(interp, option, data)
    for handle in handles_in(answers):
        source = handle.exposures[0].source.name
        raise refuse("PrivateValue", f"the answers of `{name}` hold private data of `{source}`", help=help)
    return answers


def all_handles(value: object) -> list[Handle]:
    """Every handle in nested containers, public ones too."""
    if isinstance(value, Handle):
        return [value]
    items: Sequence[object] = list(value.values()) if isinstance(value, dict) else ()
    if isinstance(value, (JSet, list, tuple)):
        items = list(value)
    return [handle for item in items for handle in all_handles(item)]


def workers_for(databases: Sequence[object], public: PublicData) -> int | None:
    """1 where data hold tables of an engine that answers in its own process only. None: any number."""
    handles = [handle for data in databases for handle in all_handles(data)]
    alone = not public.forks and any(isinstance(handle, (Table, Vectors)) for handle in handles)
    return 1 if alone else None


LIMIT = 1e300


class UtilityScale(Struct, frozen=True):
    """`name` is `log error` or `utility`; an error below `floor` counts as `floor`."""

    name: str
    floor: float = 0.0

    @property
    def logarithmic(self) -> bool:
        return self.name == "log error"

    def score(self, utility: float) -> float:
        return -math.log(max(-utility, self.floor)) if self.logarithmic else utility

    def utility(self, score: float) -> float:
        return -math.exp(min(-score, 690.0)) if self.logarithmic else score

    def width(self, utility: float, spread: float) -> float:
        """A standard deviation of scores as one of utilities near `utility` (to first order)."""
        return abs(utility) * spread if self.logarithmic else spread


def scale_of(utilities: Iterable[float]) -> UtilityScale:
    """The scale that fits these utilities (finite numbers).

    The floor of errors is a tenth of the smallest that is not 0, and at least a billionth of the median: one run that
    fails by far must not make all others count as the same.
    """
    values = list(utilities)
    errors = [-u for u in values if u < 0]
    if not errors or max(values) > 0:
        return UtilityScale("utility")
    return UtilityScale("log error", max(min(errors) / 10, statistics.median(errors) * 1e-9))


def finite(value: float) -> float:
    """A feature as models see it: overflow becomes ±1e300, and what is no number the lowest of all."""
    return -LIMIT if math.isnan(value) else min(max(float(value), -LIMIT), LIMIT)


HALF = 0.5
OTHERS = {"half": HALF, "twice": 2.0}
"""Times a call's amount at which options run as well, to say what would be taken there and what a look costs."""

UNIT_EPSILON = 1.0
"""The one epsilon of such a training."""

FACTORS = (0.01, 0.1, 1.0)
"""The multiples of the sizes: calls with epsilon from 0.01 to 1 then lie within the training data."""

LEAST = 10.0
"""The least number of rows of an instance."""


class _Exchanged:
    """A bench on data sets of more sizes, for one epsilon; in all else the one that it is made of."""

    def __init__(self, bench: Bench) -> None:
        self._bench, self.key = bench, f"{bench.key} for any epsilon"

    def __getattr__(self, name: str) -> object:
        return getattr(self._bench, name)

    def scales(self, database: int) -> tuple[float, ...]:
        rows, own = self._bench.database_rows[database], self._bench.scales(database)
        if not rows:
            return own
        more = {float(f"{scale * factor:.12g}") for scale in own for factor in FACTORS}
        return tuple(sorted(s for s in more if s in own or s * rows >= LEAST))


def exchanged(bench: Bench) -> Bench:
    """The bench that a model which serves every epsilon is trained on."""
    return cast(Bench, _Exchanged(bench))


EPSILON = "epsilon"


Parts = tuple[tuple[str, ...], tuple[str, ...]]
"""The names of a choice's Options and Features."""


class Setting(Struct, frozen=True):
    """A way to measure features: the private ones in `paid` share `share` of epsilon equally.

    Share 0 with nothing paid: the features are exact, because they are public or the data are.
    """

    share: float
    paid: tuple[str, ...]


class Run(Struct, frozen=True, array_like=True):
    """One training instance (a data set at a scale) at one epsilon; None: exact.

    `utilities[level][option]` is the mean utility over repeats when the option gets that level of epsilon;
    `features[setting][draw][feature]` the features as measured.
    """

    database: int
    scale: float
    epsilon: float | None
    utilities: tuple[tuple[float, ...], ...]
    features: tuple[tuple[tuple[float, ...], ...], ...]


class RunTable(Struct, frozen=True, dict=True):
    """All runs of one training. `levels` are the multiples of epsilon at which options were run: 1.0, then `OTHERS`, or
    what a look leaves in what ships."""

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

    @cached_property
    def scale(self) -> UtilityScale:
        return scale_of(u for run in self.runs for level in run.utilities for u in level)

    def scores(self, run: Run, share: float, scale: UtilityScale) -> list[float]:
        """The score of every option when it gets 1 − `share` of epsilon.

        At a level that was run these are the runs; between two levels, on the line through them over log epsilon.
        (Error goes with a power of epsilon wherever noise decides, so for errors this is a line in log space.)
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

    def at_level(self, level: float) -> RunTable:
        """The same runs of options with so many times epsilon."""
        place = self.levels.index(level)
        return replace(self, levels=(1.0,), runs=tuple(replace(r, utilities=(r.utilities[place],)) for r in self.runs))

    def without(self, database: int) -> RunTable:
        """The runs on all other data sets."""
        return replace(self, runs=tuple(r for r in self.runs if r.database != database))

    def keeping(self, setting: int) -> RunTable:
        """Returns the table with one of its feature settings."""
        runs = tuple(replace(r, features=(r.features[setting],)) for r in self.runs)
        return replace(self, settings=(self.settings[setting],), runs=runs)

    def sound(self, parts: Parts | None) -> RunTable:
        """This table. Raises `ValueError` where it is of other Options or Features, a run of no data set, or without a
        number for one of them."""
        options, features, settings = len(self.options), len(self.features), len(self.settings)
        for run in self.runs:
            good = 0 <= run.database < len(self.databases) and len(run.features) == settings
            good = good and [*map(len, run.utilities)] == [options] * len(self.levels)
            if not good or any(len(draw) != features for draws in run.features for draw in draws):
                raise ValueError("no run")
        own = (self.options, self.features)
        if parts not in (None, own) or features != len(self.public) or len(self.rows) not in (0, len(self.databases)):
            raise ValueError("no table")
        return self


def train_event(table: RunTable) -> dict[str, object]:
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
