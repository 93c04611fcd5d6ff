"""`Bench` is the one protocol between choosing and running: what training asks of the interpreter.

Choosing knows nothing of programs, queries or databases: it sees options, features and training data sets through
a `Bench`, and numbers. Everything behind a bench is public; none of it may touch a private source.

Steps that calls of ChoiceMakers and of choice points share: the record, its features, and the Option that runs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct

from jostle.diagnostics import refuse
from jostle.privacy.kernel.exposures import Handle
from jostle.privacy.kernel.handles import Table, Vectors
from jostle.privacy.reading.public_data import PublicData
from jostle.run.evaluator import Evaluator
from jostle.run.values import JSet, handles_in, is_number, kind_name
from jostle.source import Span

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
        ...

    @property
    def database_names(self) -> tuple[str, ...]: ...

    @property
    def database_rows(self) -> tuple[float, ...]:
        """The rows of each data set as it is given; 0 where that is not known."""
        ...

    @property
    def feature_is_public(self) -> tuple[bool, ...]:
        """For each feature, whether it measures nothing (and so costs nothing)."""
        ...

    @property
    def key(self) -> str:
        """A digest of the programs, data and versions that the runs depend on."""
        ...

    def scales(self, database: int) -> tuple[float, ...]:
        """The multiples of the given data to train at, 1.0 among them."""
        ...

    def epsilons(self, database: int, grid: tuple[float, ...]) -> tuple[float, ...]:
        """Those of `grid` that the data set is run at."""
        ...

    def instance(self, database: int, scale: float, seed: int) -> object:
        """The data set resampled to `scale` times its size; 1.0 gives it as it is."""
        ...

    def features(self, instance: object, epsilon: float | None, seed: int, names: Collection[str]) -> dict[str, float]:
        """The features of these names. The private ones among them share `epsilon` equally; None: exact."""
        ...

    def answer(self, option: int, instance: object, epsilon: float | None, seed: int) -> Any:
        """Runs the option with the noise it would have at `epsilon` (None: exact) and returns its answer."""
        ...

    def utility(self, instance: object, answers: object) -> float:
        """Returns the utility of the answers on the exact instance; larger is better."""
        ...


class ChoiceParts(Struct, frozen=True):
    """The parts of a ChoiceMaker, as the program wrote them."""

    options: tuple[Any, ...]
    option_names: tuple[str, ...]
    features: tuple[Any, ...]
    feature_names: tuple[str, ...]
    utility: object
    databases: tuple[object, ...]


def only_record(args: Sequence[object]) -> object:
    """The one record that a choice is called with."""
    if len(args) != 1:
        raise refuse("TypeError", f"a choice takes its data, one record, and {len(args)} were given")
    return args[0]


def number_from(value: object, what: str) -> float:
    """The number that `what` (a Feature, a Utility) gives."""
    if not is_number(value):
        raise refuse("TypeError", f"{what} gives {kind_name(value)}, and a number is needed")
    return float(value)


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
