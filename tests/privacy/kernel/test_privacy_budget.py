"""The tree of spending against a recomputation from its definition, on random trees and charges."""

from __future__ import annotations

import random
from collections import defaultdict

from jostle.accounting.amounts import QUANTA, Meter, Path, as_text, rounded_up
from jostle.accounting.composition import quanta


def spent(charges: list[tuple[Path, tuple[int, ...]]], width: int) -> tuple[int, ...]:
    """Own, plus for each partition the largest of its parts, straight from the list of charges."""
    total = [0] * width
    parts: dict[object, dict[object, list[tuple[Path, tuple[int, ...]]]]] = defaultdict(lambda: defaultdict(list))
    for path, cost in charges:
        if not path:
            total = [a + b for a, b in zip(total, cost, strict=True)]
        else:
            (partition, part), rest = path[0], path[1:]
            parts[partition][part].append((rest, cost))
    for some in parts.values():
        each = [spent(part, width) for part in some.values()]
        total = [a + max(costs[place] for costs in each) for place, a in enumerate(total)]
    return tuple(total)


def random_path(rng: random.Random) -> Path:
    return tuple((rng.choice("pq"), rng.randrange(3)) for _ in range(rng.choice([0, 1, 1, 2, 2, 3, 4])))


def test_random_trees() -> None:
    for seed in range(100):
        rng = random.Random(seed)
        width = rng.choice([1, 2])
        limit = rng.randrange(20, 120)
        meter = Meter(width, lambda total, limit=limit: all(t <= limit for t in total))
        charges: list[tuple[Path, tuple[int, ...]]] = []
        for _ in range(40):
            path, cost = random_path(rng), tuple(rng.randrange(0, 15) for _ in range(width))
            would_be = spent([*charges, (path, cost)], width)
            assert meter.after(path, cost) == would_be
            assert meter.admits(path, cost) == all(t <= limit for t in would_be)
            slack = meter.slack(path)
            free = spent([*charges, (path, slack)], width)
            assert free == meter.spent  # the slack costs nothing …
            for place in range(width):  # … and one more than it costs one
                more = tuple(s + (i == place) for i, s in enumerate(slack))
                assert spent([*charges, (path, more)], width)[place] == meter.spent[place] + 1
            if meter.admits(path, cost):
                meter.add(path, cost)
                charges.append((path, cost))
            assert meter.spent == spent(charges, width)
        assert all(t <= limit for t in meter.spent)


def test_every_order_of_parts_gives_the_same_total() -> None:
    rng = random.Random(7)
    charges = [(random_path(rng), (rng.randrange(9),)) for _ in range(40)]
    totals = set()
    for _ in range(20):
        rng.shuffle(charges)
        meter = Meter(1, lambda total: True)
        for path, cost in charges:
            meter.add(path, cost)
        totals.add(meter.spent)
    assert totals == {spent(charges, 1)}


def test_amounts_are_the_shortest_decimals() -> None:
    assert quanta(0.1) * 10 == quanta(1.0) and quanta(0.1) * 11 > quanta(1.0)
    assert 3 * quanta(1.0 / 3) <= quanta(1)
    assert quanta(1e-12) == 1 and as_text(quanta(0.3)) == "0.3"
    rng = random.Random(1)
    for _ in range(2000):
        value = rng.random() * 10 ** rng.randrange(-9, 6)
        assert quanta(value) <= value * QUANTA * (1 + 2**-50)
        assert rounded_up(value) >= value * QUANTA * (1 - 2**-50)
