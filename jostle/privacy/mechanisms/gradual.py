"""Noise that can be made finer later, at the price of the difference (gradual release).

Each whole number has two draws of one-sided noise, its noise the first less the second: discrete Laplace noise, of
scale b where both have scale b. A step of scale b draws both again, and each number goes on with the smaller ones.
The smaller of geometric draws of scales b and c is geometric with 1/b + 1/c, so after steps of scales b₁, …, b_i the
noise is discrete Laplace noise of scale 1/(1/b₁ + … + 1/b_i): that of one measurement for what all steps cost.

*Argument.* Numbers with more noise tell nothing more: let f move by s, Σ|s_c| ≤ Δ, and keep what was shown at every
step. Where s_c > 0 raise all second draws of number c by s_c, where s_c < 0 all first ones by |s_c|: the smallest of
them rises by as much, at every step, so that number and noise have the same sum as before. A raise of s makes a draw of
scale b less likely by e^(−s/b) and by no more. So all steps together lose at most Σ_c |s_c| Σ_i 1/b_i ≤ Σ_i Δ/b_i. What
a next step costs, and whether there is one, may depend on all that was shown. More is in docs/privacy/gradual.md.
(Koufogiannis, Han and Pappas 2015 have this for Laplace noise.)
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
