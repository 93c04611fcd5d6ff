"""Each page of `docs/contributing` that adds something does so: its change is applied to a copy of the checkout."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from package_code import ROOT

SIGN = """
private people = table("people.csv") described by {x: -5..5} protecting rows budget epsilon 10
t = table("public.csv") described by {x: -5..5}
assert {{ select sum(sign(x)) from t }} == 1 and {{ select count(*) from t where sign(x) == 0 }} == 1
assert sign(-2) == -1 and sign([3, 0])[1] == 0
c = histogram(t, x)
assert exact(predicates(c, sign(x - 5) < 0), c)[0] == 1
n = {{ select sum(sign(x)) from people with epsilon clamp(sign(5), 0.5, 2) }}
assert spent(people) == 1
"""
REPEAT = """
private people = counts([3, 4]) protecting rows budget epsilon 1
def f(n):
    repeat 3 { n = n + 1 }
    return n
repeat 2:
    x = laplace(size(people)) with epsilon 0.1
assert f(1) == 4 and spent(people) == 0.2
repeat = 5
assert repeat + 1 == 6
"""
TROUGH = """
private people = counts([300, 4000]) protecting rows budget epsilon 5
c = counts([30, 4])
assert trough(c) == 4
n = laplace(trough(people)) with epsilon 1
assert abs(n - 300) < 100
best = noisy_max([trough(people), largest_cell(people)]) with epsilon 1
assert best == 1
assert spent(people) == 2
"""
AXIS_SUMS = """
private people = counts([[1000, 2000], [3000, 4000]]) protecting rows budget epsilon 5
c = counts([[1, 2], [3, 4]])
assert axis_sums(c)[1] == 7 and axis_sums(c, 1)[1] == 6
s = axis_sums(people, 1) with epsilon 2
assert len(s) == 2 and abs(s[0] - 4000) < 100 and abs(s[1] - 6000) < 100
assert spent(people) == 2
"""
ABSOLUTE = """
private people = table("people.csv") described by {x: -5..5} protecting rows budget epsilon 5
t = table("public.csv") described by {x: -5..5}
s = noisy_sum(vectors(t, x, norm = "sup"), "absolute", norm = "sup")
assert abs(s.sum[0] - 9 / 5) < 0.001
n = noisy_sum(vectors(people, x, norm = "sup"), "absolute", norm = "sup") with epsilon 2
assert spent(people) == 2 and abs(n.sum[0] - 9 / 5) < 50
"""
SUM_OF_SQUARES = """
private people = table("people.csv") described by {x: -5..5} protecting rows budget epsilon 5
t = table("public.csv") described by {x: -5..5}
assert {{ select sum_of_squares(x) from t }} == 29
g = {{ select sum_of_squares(x - 1) as s, count(*) as n from t groupby x / 3 }}
assert g.s[-1] == 9 and sum(g.s) == 27
n = {{ select sum_of_squares(x) from people with epsilon 2 }}
assert abs(n - 29) < 500 and abs(error(n) - log(20) * 25 / 1.96) < 0.1
assert spent(people) == 2
"""
DAWA_HALF = """
use histograms
private people = table("people.csv") described by {x: -5..5} protecting rows budget epsilon 5
c = histogram(people, x = x)
cells = dawa_half_cells(c, prefixes(c)) with epsilon 1
answers = dawa_half(c, prefixes(c)) with epsilon 1
assert len(cells) == 11 and abs(answers[10] - 4) < 200
assert spent(people) == 2
"""
PAGES = {
    "add-a-row-function": (4, SIGN, "exactly epsilon 1 of 10"),
    "add-a-statement": (6, REPEAT, "exactly epsilon 0.2 of 1"),
    "add-a-score": (2, TROUGH, "exactly epsilon 2 of 5"),
    "add-a-measurement": (2, AXIS_SUMS, "exactly epsilon 2 of 5"),
    "add-an-aggregate": (2, SUM_OF_SQUARES, "exactly epsilon 2 of 5"),
    "add-an-option": (2, DAWA_HALF, "exactly epsilon 2 of 5"),
    "add-a-row-program": (3, ABSOLUTE, "exactly epsilon 2 of 5"),
}


def jostle(tree: Path, *words: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    command = [sys.executable, "-m", "jostle", *words]
    done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, encoding="utf-8", timeout=1800)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("page", PAGES)
def test_the_page_adds_what_it_says(page: str, tmp_path: Path) -> None:
    files, program, cost = PAGES[page]
    text = (ROOT / "docs" / "contributing" / f"{page}.md").read_text(encoding="utf-8")
    (change,) = re.findall(r"^```diff\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert len(re.findall(r"^diff --git", change, re.MULTILINE)) == files
    for folder in ("jostle", "grammar", "stdlib", "docs"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    subprocess.run(["git", "apply", "-C1", "-"], cwd=tmp_path, input=change, encoding="utf-8", check=True)
    (tmp_path / "program.jst").write_text(program.lstrip(), encoding="utf-8")
    for name in ("people", "public"):
        (tmp_path / f"{name}.csv").write_text(f"x,{name}\n-3,1\n2,1\n4,1\n0,1\n", encoding="utf-8")
    assert cost in jostle(tmp_path, "check", "program.jst")
    jostle(tmp_path, "run", "program.jst")
