"""Numbers that have been paid for.

A `Noised` number knows the law of its noise, which is public. Any arithmetic on it gives a plain number, since what
`error` says would no longer hold.
"""

from __future__ import annotations

from jostle.noise_laws import NoiseLaw


class Noised(float):
    """A number straight from one mechanism."""

    __slots__ = ("law",)
    law: NoiseLaw

    def __new__(cls, value: float, law: NoiseLaw) -> Noised:
        number = super().__new__(cls, value)
        number.law = law
        return number

    def __reduce__(self) -> tuple[object, ...]:
        return (Noised, (float(self), self.law))
