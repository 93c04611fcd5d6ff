"""A bench without a language behind it: data sets are sizes, options are formulas of size and epsilon."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

from jostle.choice.table import Predict


def gauss(seed: int) -> float:
    """A standard normal that is a function of its seed."""
    raw = hashlib.blake2b(str(seed).encode(), digest_size=16).digest()
    u, v = (int.from_bytes(raw[k : k + 8], "big") / 2**64 for k in (0, 8))
    return math.sqrt(-2 * math.log(u + 1e-18)) * math.cos(2 * math.pi * v)


Error = Callable[[float, float], float]
"""(size of the data, epsilon) → expected error."""


@dataclass
class FakeBench:
    """Data sets of the given sizes. `options` maps a name to its error; utilities are negative errors.

    The private feature `size` has noise of deviation `sensitivity`/ε (0: it is exact at any ε); each of `public`
    gives a free feature of the size.
    """

    sizes: tuple[float, ...]
    options: dict[str, Error]
    sensitivity: float = 1.0
    public: dict[str, Callable[[float], float]] = field(default_factory=dict)
    others: tuple[str, ...] = ()
    """More private features: pure noise."""
    multiples: tuple[float, ...] = (1.0,)
    own: dict[str, Predict] = field(default_factory=dict)
    positive: bool = False
    """Utilities are 2 − error instead of −error."""
    jitter: float = 0.02
    private_size: bool = True
    key: str = "fake"
    calls: list[tuple[str, float | None]] = field(default_factory=list)

    @property
    def option_names(self) -> tuple[str, ...]:
        return tuple(self.options)

    @property
    def feature_names(self) -> tuple[str, ...]:
        return (("size",) if self.private_size else ()) + self.others + tuple(self.public)

    @property
    def feature_is_public(self) -> tuple[bool, ...]:
        return tuple(name in self.public for name in self.feature_names)

    @property
    def predicts(self) -> tuple[Predict | None, ...]:
        return tuple(self.own.get(name) for name in self.options)

    @property
    def database_names(self) -> tuple[str, ...]:
        return tuple(f"data {n:g}" for n in self.sizes)

    @property
    def database_rows(self) -> tuple[float, ...]:
        return self.sizes

    def scales(self, database: int) -> tuple[float, ...]:
        return self.multiples

    def epsilons(self, database: int, grid: tuple[float, ...]) -> tuple[float, ...]:
        return grid

    def instance(self, database: int, scale: float, seed: int) -> float:
        return self.sizes[database] * scale

    def features(self, instance: Any, epsilon: float | None, seed: int, names: Collection[str]) -> dict[str, float]:
        self.calls.append(("features", epsilon))
        private = sum(name not in self.public for name in names)
        noise = 0.0 if epsilon is None else self.sensitivity * private / epsilon
        values = {name: gauss(seed + k + 1) for k, name in enumerate(self.others)}
        values["size"] = instance + noise * gauss(seed)
        values |= {name: f(instance) for name, f in self.public.items()}
        return {name: values[name] for name in names}

    def answer(self, option: int, instance: Any, epsilon: float | None, seed: int) -> float:
        self.calls.append(("answer", epsilon))
        error = list(self.options.values())[option](instance, math.inf if epsilon is None else epsilon)
        return error * math.exp(self.jitter * gauss(seed)) if epsilon is not None else error

    def utility(self, instance: Any, answers: Any) -> float:
        return 2 - answers if self.positive else -answers


SIZES = (2.0, 4.0, 8.0, 20.0, 60.0, 90.0, 150.0, 700.0, 1000.0, 2000.0, 4000.0, 9000.0, 20000.0, 50000.0)
CROSSING: dict[str, Error] = {
    "Small": lambda size, epsilon: 1.0 if size < 300 else 5.0,
    "Large": lambda size, epsilon: 5.0 if size < 300 else 1.0,
}
"""Each option is five times better than the other on one side of 300."""
