"""Noise that can be made finer later, at the price of the difference (gradual release).

Each whole number has two draws of one-sided noise, its noise the first less the second. A step of scale b draws both
again, and each number goes on with the smaller ones. After steps of scales b₁, …, b_i the noise is discrete Laplace
noise of scale 1/(1/b₁ + … + 1/b_i): that of one measurement for what all steps cost. What a next step costs, and
whether there is one, may depend on all that was shown (docs/privacy/gradual.md).
"""

from __future__ import annotations

from msgspec import Struct

from jostle.lazy import Ints, np
from jostle.privacy.mechanisms.margin import CLAMP, geometric
from jostle.privacy.mechanisms.noise import Noise


class Sealed(Struct, frozen=True, eq=False):
    """Exact numbers and the smallest draws of all steps up to now, which are shown to nobody.

    `paid` is the sum of the amounts of the steps, in quanta.
    """

    exact: Ints
    first: Ints
    second: Ints
    paid: int

    @property
    def noisy(self) -> Ints:
        """What is shown: the numbers with the noise of all steps."""
        return self.exact + (self.first - self.second)


def refined(before: Sealed | None, exact: Ints, noise: Noise, scale: float, amount: int) -> Sealed:
    """One step more, which costs `amount`; nothing that was there `before` is changed.

    `exact` is what was read, of which the first is kept; `scale`, in the units of the numbers, is WIDEST at most.
    """
    first, second = (geometric(noise, exact.size, scale).reshape(exact.shape) for _ in range(2))
    if before is None:
        return Sealed(np.clip(exact, -CLAMP, CLAMP), first, second, amount)
    first, second = np.minimum(before.first, first), np.minimum(before.second, second)
    return Sealed(before.exact, first, second, before.paid + amount)
