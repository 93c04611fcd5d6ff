"""The shares of a join: what a pair of records has of the product of their weights, in whole numbers.

A key whose records weigh s units in all, on both sides together, has the share G(s) ≈ 2^c / s, and a pair of weights a
and b weighs a·b·G(s) units of 2^-c of the former. With H = 2^h, the height, and c = ⌈5h/2⌉:

* G(s) = ⌊2^c / s⌋ for 1 ≤ s ≤ H,
* G(s) = 2^(c − 2h)·(2H − s) for H ≤ s ≤ 2H, a line that falls from 2^c / H to 0,
* G(s) = 0 for larger s.

*Argument.* Let one side of a key weigh S units, the other T, and s = S + T; one record of the first gets a unit more.
Its pairs weigh (a + 1)·b·G(s + 1) in place of a·b·G(s), the other pairs a'·b·G(s + 1) in place of a'·b·G(s). With D =
G(s) − G(s + 1) ≥ 0 all pairs together move by at most T·(G(s + 1) + a·D) + T·(S − a)·D = T·(G(s + 1) + S·D). The join
is stable if this is at most 2^c, for then a unit of input moves no more than a unit's worth of output.

* S = 0: T·G(s + 1) ≤ s·2^c/(s + 1) < 2^c; and T = 0 moves nothing. So let S, T ≥ 1.
* s < H: G(s + 1) ≤ 2^c/(s + 1) and D < 2^c/(s(s + 1)) + 1, so that the sum is below 2^c·T(s + S)/(s(s + 1)) + S·T. With
  T(s + S) = s² − S² it is at most 2^c if S·T·s(s + 1) ≤ 2^c·(s + S²). As T(s + 1) ≤ (s − 1)(s + 1) < s², the left is
  below S·s³, and S/(s + S²) ≤ 1/(2√s): 2^c ≥ s^(5/2)/2 is enough.
* H ≤ s < 2H: T·(2H − s − 1 + S)·2^(c − 2h) = T·(2H − 1 − T)·2^(c − 2h) < H²·2^(c − 2h) = 2^c.
* s ≥ 2H: nothing weighs anything, before and after.

Any two data sets are joined by such steps, of one unit on one side each, as many as their weights differ by.
"""

from __future__ import annotations

from jostle.plan.records import share_bits


def share(total: int, height: int) -> int:
    """G(`total`) for keys up to 2^`height` units, in units of 2^-`share_bits(height)`."""
    bits = share_bits(height)
    if total <= 0 or total >> height >= 2:
        return 0
    if total <= 1 << height:
        return (1 << bits) // total
    return ((2 << height) - total) << (bits - 2 * height)
