"""Numbers that have been paid for.

A `Noised` number knows the mechanism and scale of its noise, which are public. Any arithmetic on it gives a plain
number, since what `error` says would no longer hold.
"""

from __future__ import annotations

import math

from jostle.diagnostics import refuse


class Noised(float):
    """A number straight from one mechanism. `scale` is Laplace's b, Gaussian's σ, or a selection's scale in ranks."""

    __slots__ = ("candidates", "mechanism", "scale")
    mechanism: str
    scale: float
    candidates: int

    def __new__(cls, value: float, mechanism: str, scale: float, candidates: int = 1) -> Noised:
        made = super().__new__(cls, value)
        made.mechanism, made.scale, made.candidates = mechanism, scale, candidates
        return made

    def __reduce__(self) -> tuple[object, ...]:
        return (Noised, (float(self), self.mechanism, self.scale, self.candidates))


def half_width(value: object) -> float:
    """The 95 % half-width of a noised number; for a selection, a bound on its error in ranks."""
    if not isinstance(value, Noised):
        raise refuse(
            "TypeError", "`error` takes a number straight from one measurement",
            help="call it on the name that the query was assigned to, before any arithmetic",
        )  # fmt: skip
    if value.mechanism == "laplace":
        return value.scale * math.log(20)
    if value.mechanism == "gaussian":
        return 1.959963984540054 * value.scale
    if value.mechanism == "selection":
        return value.scale * math.log(value.candidates * 20)
    return 0.0
