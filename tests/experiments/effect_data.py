"""Public tables with a treatment, by which estimators of effects are judged: nothing was trained or settled on them.

`load(name, folder)` reads `adult.csv`, `AER/STAR.csv`, `AER/ResumeNames.csv` and `MatchIt/lalonde.csv` (the last three
of the Rdatasets collection) from a folder. Tennessee's STAR and the names on applications are randomised experiments,
where the plain difference of means is a truth too; LaLonde's trained workers stand beside a survey, and have no truth
but one that others found in an experiment.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

PUBLIC = ("adult", "STAR", "names", "lalonde")


def load(name: str, folder: str) -> dict[str, Any]:
    """Strata, arms and outcomes of the rows; covariates' numbers of values; and the effect by strata without noise.

    Rows of strata without both arms are left out: nothing is known of their effect.
    """
    covariates, arm, y, binary = _READERS[name](Path(folder))
    codes = [np.unique(np.asarray(c, dtype=str), return_inverse=True) for c in covariates]
    sizes = tuple(len(values) for values, _ in codes)
    stratum = np.ravel_multi_index([places for _, places in codes], sizes)
    arm, y = np.asarray(arm, dtype=int), np.asarray(y, dtype=float)
    counts = np.stack([np.bincount(stratum[arm == a], minlength=int(np.prod(sizes))) for a in (0, 1)])
    kept = (counts > 0).all(axis=0)[stratum]
    stratum, arm, y = stratum[kept], arm[kept], y[kept]
    rows = np.bincount(2 * stratum + arm, minlength=2 * int(np.prod(sizes)))
    means = np.bincount(2 * stratum + arm, y, minlength=len(rows)) / np.maximum(rows, 1)
    effects = means[1::2] - means[::2]
    shares = (rows[::2] + rows[1::2]) / len(y)
    return {"stratum": stratum, "arm": arm, "y": y, "sizes": sizes, "binary": binary,
            "truth": float(shares @ effects), "effects": effects}  # fmt: skip


Read = tuple[list[Any], Any, Any, bool]


def _adult(folder: Path) -> Read:
    """What a bachelor's degree does to the share of incomes over 50K, by sex, age and hours."""
    t = pd.read_csv(folder / "adult.csv", skipinitialspace=True)
    t.columns = [c.replace("-", "_").replace(".", "_") for c in t.columns]
    decade = ((t["age"] - 17) // 10).clip(0, 4)
    hours = (t["hours_per_week"] // 20).clip(0, 2)
    rich = t["income"].astype(str).str.contains(">50K")
    return [t["sex"], decade, hours], t["education_num"] >= 13, rich, True


def _star(folder: Path) -> Read:
    """What a small class does to reading in kindergarten, by sex, free lunch and kind of school."""
    t = pd.read_csv(folder / "AER" / "STAR.csv").dropna(subset=["stark", "readk", "lunchk", "schoolk", "gender"])
    score = ((t["readk"] - 300) / 350).clip(0, 1)
    return [t["gender"], t["lunchk"], t["schoolk"]], t["stark"] == "small", score, False


def _names(folder: Path) -> Read:
    """What a name that is frequent among white people does to the share of calls, by sex, quality and city."""
    t = pd.read_csv(folder / "AER" / "ResumeNames.csv")
    return [t["gender"], t["quality"], t["city"]], t["ethnicity"] == "cauc", t["call"] == "yes", True


def _lalonde(folder: Path) -> Read:
    """What training does to earnings up to 30,000, by race, marriage, degree and earlier earnings."""
    t = pd.read_csv(folder / "MatchIt" / "lalonde.csv")
    earned = (t["re78"] / 30_000).clip(0, 1)
    return [t["race"], t["married"], t["nodegree"], t["re75"] > 0], t["treat"] == 1, earned, False


_READERS = {"adult": _adult, "STAR": _star, "names": _names, "lalonde": _lalonde}
