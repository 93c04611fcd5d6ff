"""Programs over tables of a cluster measure the same whole numbers as over files of this machine, and fetch no row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import engines_spark
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jostle.backends.spark import dialect
from jostle.backends.spark.engine import Spark
from jostle.diagnostics import refuse
from jostle.privacy.kernel import exposures
from jostle.simulate import SeededNoise
from jostle.source import Source
from jostle.tools.session import Session

DECLARED = """private D = {source}("{file}")
    described by {{a: 0..2, b: 0..1, c: {{"red", "green"}}, d: 0..1, x: -1.0..1.0, y: -1.0..1.0}}
    protecting rows
    budget {budget}
R = vectors(D, x, y)
"""
BUDGET = "epsilon 1000, delta 0.1"
PROGRAMS = {
    "trees": """use trees
release r = t_plus(pick(D, a, b, c), "c", depth = 2) with epsilon 8""",
    "naive maximum likelihood": """use graphical
m = model(domain_of(pick(D, a, b, c)), [["a", "b"], ["b", "c"]])
release r = naive_mle(D, m) with epsilon 8""",
    "collective": """use graphical
m = model(domain_of(pick(D, a, b, c)), [["a", "b"], ["b", "c"]])
release r = cgm(D, m, steps = 3) with epsilon 8""",
    "keys in rounds": """private P = {source}("{file}") described by {c: text, y: real} protecting a
    budget epsilon 1000, delta 0.1
release r = {{ select c, y from P groupby c, y up to 40 groups with epsilon 40 delta 0.01 }}""",
    "mixtures": """use mixtures
release r = mixture(R, 2, 2) with epsilon 8 delta 0.01""",
    "k-means": """use mixtures
release r = kmeans(R, 2, 2) with epsilon 8 delta 0.01""",
    "Ising by moments": """use ising
release r = ising_moments(vectors(D, b, d, norm = "sup")) with epsilon 8 delta 0.01""",
    "Ising by Frank and Wolfe": """use ising
release r = ising_fw(vectors(D, b, d, norm = "sup"), 1, 100, rounds = 2) with rho 1""",
    "scores of classifiers": """use classifiers
P = pick(D, a, b, c)
models = [naive_bayes(P, "c") with epsilon 4, shrunk_bayes(P, "c") with epsilon 3.76]
release r = most_accurate(P, "c", models) with epsilon 0.24""",
}


class Recording(SeededNoise):
    """Noise of a seed that writes down the whole numbers that it is added to, or chooses by."""

    def __init__(self) -> None:
        super().__init__(7)
        self.exact: list[Any] = []

    def laplace(self, values: Any, scale: float) -> Any:
        self.exact.append(np.asarray(values).tolist())
        return super().laplace(values, scale)

    def gaussian(self, values: Any, sigma: float) -> Any:
        self.exact.append(np.asarray(values).tolist())
        return super().gaussian(values, sigma)

    def cube(self, values: Any, scale: float) -> Any:
        self.exact.append(np.asarray(values).tolist())
        return super().cube(values, scale)

    def gumbel_max(self, scores: Any, scale: float) -> int:
        self.exact.append(np.asarray(scores).tolist())
        return super().gumbel_max(scores, scale)

    def noisy_max(self, scores: Any, scale: float) -> int:
        self.exact.append(np.asarray(scores).tolist())
        return super().noisy_max(scores, scale)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    draw, many = np.random.default_rng(2), 300
    a, b = draw.integers(0, 3, many), draw.integers(0, 2, many)
    x, y = draw.normal(0, 0.4, (2, many))
    c = np.where(draw.random(many) < (a + b) / 4, "red", "green")
    place = tmp_path_factory.mktemp("programs") / "rows.parquet"
    pq.write_table(pa.table({"a": a, "b": b, "c": c.tolist(), "d": 1 - b * (a > 0), "x": x, "y": y}), place)
    return place


def measured(program: str, engine: str, source: str, monkeypatch: Any) -> list[Any]:
    """The whole numbers that a program measures, in order."""
    noise = Recording()
    monkeypatch.setattr(exposures, "SecureNoise", lambda: noise)
    session = Session(engine=engine)
    session.run_text(program.replace("{source}", source))
    session._interp.data._engine.close()
    return noise.exact


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_measure_the_same_and_fetch_no_row(name: str, url: str, file: Path, monkeypatch: Any) -> None:
    def fetched(*_: Any) -> Any:
        raise refuse("DataError", "rows come here")

    monkeypatch.setattr(Spark, "batches", fetched)
    monkeypatch.setattr(Spark, "codes", fetched)
    budget = "rho 100" if "rho" in PROGRAMS[name] else BUDGET
    declared = DECLARED.format(source="{source}", file=file, budget=budget)
    program = PROGRAMS[name].replace("{file}", str(file)) if "private" in PROGRAMS[name] else declared + PROGRAMS[name]
    here = measured(program, "", "table", monkeypatch)
    assert here and any(map(np.any, here))
    assert measured(program, url, "spark", monkeypatch) == here


UNABLE = {
    PROGRAMS["k-means"]: "cannot run row programs",
    "release n = laplace(size(R), epsilon = 1)": "cannot run row programs",
    PROGRAMS["scores of classifiers"]: "cannot run row programs",
    """use graphical
release m = psgd(D, model({a: 3, b: 2}, [["a", "b"]]), 100, 2) with epsilon 1 delta 0.01""": "not sampled one by one",
}


def test_what_a_cluster_cannot_do_with_its_rows_is_refused_before_the_charge(file: Path, monkeypatch: Any) -> None:
    pytest.importorskip("pysail.spark", reason="pysail, a server of Spark Connect, is not installed")

    def mapped(*_: Any) -> Any:
        raise refuse("DataError", "the workers have no Python")

    monkeypatch.setattr(dialect, "mapped", mapped)
    declared = DECLARED.format(source="spark", file=file, budget=BUDGET)
    for program, word in UNABLE.items():
        session = Session(engine=engines_spark.sail_url())
        result = session.attempt(Source("a program", declared + program))
        assert word in result.diagnostics[0].message
        tables = "7.76" if "most_accurate" in program else "0"  # which are measured before
        assert result.budget["D"]["epsilon"]["spent"] == tables
        session._interp.data._engine.close()


@pytest.mark.looks
def test_cells_of_a_cluster_are_looked_at(url: str, tmp_path: Path) -> None:
    """Also where a column of floats stands beside, which Spark does not write as texts: it is read as numbers."""
    file = tmp_path / "rows.parquet"
    columns = {"n": [1, 2, 5, 30], "r": [0.5, 1e300, None, -0.0], "s": ["5", "x", "7", None], "v": [1.5, 2.5, 2.5, 9.0]}
    pq.write_table(pa.table(columns), file)
    said = {}
    for engine, source in (("", "table"), (url, "spark")):
        session = Session(engine=engine or None, cwd=tmp_path)
        result = session.run_text(f"""
private t = {source}("{file}") described by {{n: 0..9, r: 0.0..80.0, s: text, v: {{1.5, 2.5}}}}
    protecting rows budget epsilon 40000
print({{{{ select count(*) from t where n == 1 or r > 1 with epsilon 20000 }}}})
print({{{{ select count(*) from t where v == 2.5 and number(s) > 1 with epsilon 20000 }}}})
""")
        spent = result.budget["t"]["epsilon"]["spent"]
        said[source] = spent, [str(w) for w in session.warnings if w.kind == "unfit-cells"], result.output
    assert said["spark"] == said["table"] and len(said["table"][1]) == 4
