"""`Bench` is the one protocol between choosing and running: what training asks of the interpreter.

Choosing knows nothing of programs, queries or databases: it sees options, features and training data sets through
a `Bench`, and numbers. Everything behind a bench is public; none of it may touch a private source.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Protocol

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

    def instance(self, database: int, scale: float, seed: int) -> Any:
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
