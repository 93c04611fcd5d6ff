"""Writes customers.csv and orders.csv: synthetic customers of a shop and what they ordered in a year. Nobody exists.

Run it in this folder: `python make_orders.py`. The standard library alone, so that anybody gets the same bytes.
"""

from __future__ import annotations

import csv
import random
from pathlib import Path

CUSTOMERS = 2000
KINDS = {"bread": (0.4, 4), "cheese": (0.25, 9), "fish": (0.15, 14), "wine": (0.2, 18)}  # how often, usual price


def tables(seed: int = 15) -> tuple[list[list[object]], list[list[object]]]:
    """The customers (id, age, city) and the orders (customer, month, kind, amount)."""
    draw = random.Random(seed)
    customers: list[list[object]] = []
    orders: list[list[object]] = []
    for i in range(CUSTOMERS):
        name = f"c{draw.randrange(10**6):06d}-{i}"
        city = draw.choices(["Ames", "Bergen", "Cork"], [5, 3, 2])[0]
        customers.append([name, 18 + int(62 * draw.betavariate(1.6, 2.4)), city])
        for _ in range(min(120, int(draw.lognormvariate(1.0 if city == "Ames" else 0.7, 1.1)))):
            kind = draw.choices(list(KINDS), [often for often, _ in KINDS.values()])[0]
            orders.append([name, draw.randint(1, 12), kind, round(KINDS[kind][1] * draw.lognormvariate(0, 0.4), 2)])
    draw.shuffle(orders)
    return customers, orders


def write(folder: Path) -> None:
    """Writes the two files: a header, then one record a line."""
    heads = (["id", "age", "city"], ["customer", "month", "kind", "amount"])
    for name, head, rows in zip(("customers", "orders"), heads, tables(), strict=True):
        with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            out = csv.writer(file, lineterminator="\n")
            out.writerow(head)
            out.writerows(rows)


if __name__ == "__main__":
    write(Path(__file__).parent)
