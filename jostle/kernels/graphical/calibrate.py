"""Exact inference on a junction tree: the log-partition function and the marginals of every clique.

Upwards each bag becomes a conditional table (its own variables given those it shares with its parent), with one
`exp` a cell and messages kept as logarithms; downwards conditionals times marginals give the joint tables. Nothing
underflows but probabilities that are 0 in doubles. Potentials may be −∞ (evidence).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jostle.kernels.arrays import Floats
from jostle.kernels.graphical.junction import Home, JunctionTree


@dataclass(frozen=True, eq=False)
class Calibrated:
    """`log_partition` A(θ); a conditional table for each bag, (own states, shared states)."""

    plan: JunctionTree
    log_partition: float
    conditionals: tuple[Floats, ...]

    def joints(self) -> list[Floats]:
        """The probability table of every bag, in its shape; each sums to 1."""
        tables: list[Floats] = [np.empty(0)] * len(self.plan.bags)
        for i in reversed(range(len(tables))):
            bag, conditional = self.plan.bags[i], self.conditionals[i]
            if bag.above is not None:
                conditional = conditional * bag_sum(tables[bag.above.bag], bag.above).reshape(1, -1)
            tables[i] = conditional.reshape(bag.shape)
        return tables

    def marginals(self) -> list[Floats]:
        """The probability table of every clique, in the clique's order."""
        tables = self.joints()
        return [bag_sum(tables[home.bag], home) for home in self.plan.homes]


def calibrate(plan: JunctionTree, potentials: Sequence[Floats]) -> Calibrated:
    """`potentials`: log-potentials, one array a clique, in the clique's order."""
    log_partition = 0.0
    conditionals: list[Floats] = []
    messages: list[Floats] = []
    for bag in plan.bags:
        table: Floats | float = 0.0
        for part in bag.adding:
            table = table + (_spread(potentials[part], plan.homes[part]) if part >= 0 else messages[-1 - part])
        logs = np.broadcast_to(np.asarray(table, dtype=np.float64), bag.shape).reshape(bag.rows, -1)
        top = logs.max(axis=0)
        top = np.where(np.isfinite(top), top, 0.0)
        conditional = np.exp(logs - top)
        mass = conditional.sum(axis=0)
        conditional /= np.where(mass > 0, mass, 1.0)
        conditionals.append(conditional)
        with np.errstate(divide="ignore"):
            message = top + np.log(mass)
        if bag.above is None:
            log_partition += float(message[0])
            messages.append(message)
        else:
            messages.append(_spread(message.reshape(bag.shape[bag.own :]), bag.above))
    return Calibrated(plan, log_partition, tuple(conditionals))


def bag_sum(table: Floats, home: Home) -> Floats:
    """A clique's table out of its bag's."""
    out: Floats = np.einsum(table, home.axes, home.remaining)  # type: ignore[arg-type]
    return out


def _spread(table: Floats, home: Home) -> Floats:
    return table.transpose(home.order).reshape(home.spread)
