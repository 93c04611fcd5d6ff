"""Scale–epsilon exchange: one training serves calls with any epsilon.

The relative error of most algorithms for counted data depends on epsilon times the number of rows (Hay et al., DPBench,
SIGMOD 2016, "scale–ε exchangeability"). So a model that asks for it (`regret_tree(exchange = true)`) is trained at one
epsilon on data of more sizes, and serves every call. It is right for features that see the product too, such as
`strength`, or shares of the rows; and as long as counts stay well above 0, since resampled small data are rougher
than large ones at a small epsilon. A model that does not ask is trained at the epsilon of its calls.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from jostle.choice.bench import Bench, Predict

EPSILON = 1.0
"""The one epsilon of such a training."""

FACTORS = (0.01, 0.1, 1.0)
"""The multiples of the sizes: calls with epsilon from 0.01 to 1 then lie within the training data."""

LEAST = 10.0
"""The least number of rows of an instance."""


class ExchangedBench:
    """A bench on data sets of more sizes, for one epsilon."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self.option_names, self.feature_names = bench.option_names, bench.feature_names
        self.predicts: tuple[Predict | None, ...] = bench.predicts
        self.database_names, self.database_rows = bench.database_names, bench.database_rows
        self.feature_is_public = bench.feature_is_public
        self.key = f"{bench.key} for any epsilon"

    def scales(self, database: int) -> tuple[float, ...]:
        rows, own = self.database_rows[database], self._bench.scales(database)
        if not rows:
            return own
        more = {float(f"{scale * factor:.12g}") for scale in own for factor in FACTORS}
        return tuple(sorted(s for s in more if s in own or s * rows >= LEAST))

    def epsilons(self, database: int, grid: tuple[float, ...]) -> tuple[float, ...]:
        return self._bench.epsilons(database, grid)

    def instance(self, database: int, scale: float, seed: int) -> Any:
        return self._bench.instance(database, scale, seed)

    def features(self, instance: object, epsilon: float | None, seed: int, names: Collection[str]) -> dict[str, float]:
        return self._bench.features(instance, epsilon, seed, names)

    def answer(self, option: int, instance: object, epsilon: float | None, seed: int) -> Any:
        return self._bench.answer(option, instance, epsilon, seed)

    def utility(self, instance: object, answers: object) -> float:
        return self._bench.utility(instance, answers)
