"""What a hidden run of `best_run` does changes nothing that can be reached from a session.

Everything that hangs on a session, and on the modules of the package, is walked in two sessions that run one program
over other rows, so that a hidden run does something silent in one and nothing in the other. Their shapes (which
objects, how long containers are, which keys and texts they have) must be the same, but for the winner and for what
engines keep to be faster, by names of `FASTER`. A change that keeps something new
fails here until a reason is written down.
"""

from __future__ import annotations

import functools
import re
import sys
import types
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from jostle.accounting.amounts import Amount
from jostle.events import Stream
from jostle.privacy.kernel.kernel import Kernel
from jostle.privacy.measurements.watch import OneRun
from jostle.privacy.reading.vault import kernel_over
from jostle.readers.duckdb import LocalDuckDb
from jostle.run import selection
from jostle.source import Source
from jostle.tools.session import Session

PROGRAM = """
use selection
use histograms
use row_vectors
use gradual
use weighted
use trees
private t = bound("t") described by {v: 0..7, k: {"a", "b"}} protecting rows budget epsilon 90
private u = bound("u") described by {v: 0..7} protecting rows budget epsilon 9
pub = table("pub.csv") described by {a: 0..99, b: {"x", "y"}}
def grow(i) = 1 if i == 0 else i * grow(i - 1)
def inner(d, c) = sum(laplace(d) with 1/8)
Cells = Option (data) { return answer(data.queries, laplace(data.database)) }
Even = Option (data) { return [(laplace(size(data.database)) with 1/8) / 8 for i in 1..len(data.queries)] }
wide = Feature (data) { return len(data.queries) }
near = Utility (data, answers) { return -rmse(answers, exact(data.queries, data.database)) }
cubes = [counts([n for i in 1..8]) for n in [1, 40]] + [counts([8 * n, 0, 0, 0, 0, 0, 0, 0]) for n in [1, 40]]
lessons = [{database: c, queries: identity(c)} for c in cubes]
one = MkChoiceMaker among {Cells, Even} informed by {wide} trained on lessons using tree(depth = 1) wrt near
def lesson(i) = lessons[(i - 1) % len(lessons)]
many = MkChoiceMaker among {Cells, Even} informed by {wide} trained on lesson using tree(depth = 1) wrt near
h = histogram(t, v = v)
opened = above_threshold(t, 100, most = 3) with epsilon 1
compared = above_threshold(5, 1, most = 3)
agent = limited(t, 5)
rows = vectors(t, v, radius = 2)
ahead = prepaid(rows) with epsilon 1
steps = refinable(histogram(t, v = v)) with epsilon 1
groups = {{ select count(*) from t groupby v with epsilon 1 }}
def g(d, c):
    n = sum(laplace(d) with 1/4)
    if n > 400:
        ACTION
    return {score: n}
b = best_run(h, g, [0], 3) with epsilon 3
"""
ACTIONS = {
    "a module": "use mod",
    "the library's choices": "use best\n        y = best_histogram(d)",
    "a strategy": "y = dawa(d, identity(d))",
    "rounds": "y = mwem(d, identity(d), rounds = 2) with 1/2",
    "workloads": "y = answer(prefixes(d), laplace(d))",
    "public rows": "y = {{ select count(*) as n from pub groupby b }}",
    "a public histogram": "y = histogram(pub, a = a)",
    "public parts": "y = pub[a = 3]",
    "a picture": 'plot("x", x = [1, 2], y = [1, 2], kind = "bars")',
    "a line and a release": 'print("hidden")\n        release n',
    "an error": "y = error(n)",
    "texts": "y = str(n) + str(groups)",
    "what is left": "y = left(d)",
    "a function": "y = grow(3)",
    "a public table": "y = table([{a: 1}])",
    "synthetic tables": "y = simulated_tables(3)",
    "an option": "y = Cells({database: d, queries: identity(d)})",
    "a choice": "y = one({database: d, queries: identity(d)})",
    "a choice whose lessons are made": "y = many({database: d, queries: identity(d)})",
    "how good a choice is": "y = one.evaluate(epsilon = 1)",
    "why": "y = explain(one)",
    "an advisor": 'use best\n        y = advisor(one, lambda choice, cube: choice(cube), over = "Even", margin = 9999)',
    "other data": "y = {{ select count(*) from u }}",
    "a fault": "y = 1 / 0",
    "runs in a run": "y = best_run(d, inner, [0], 2)",
    "another cube": "y = histogram(t, v = v)",
    "parts": "y = partition(t, k)",
    "rows of part of a table": "y = size(where(t, v > 3))",
    "a look at cells": "y = {{ select avg(v) from t where v > 1.5 }}",
    "a watch": "w = above_threshold(d, 100, most = 2) with 1/8\n        y = above(d, w)",
    "a watch of before": "y = above(d, opened)",
    "a watch for public numbers": "y = above(7, compared)",
    "an agent": "y = laplace(size(agent)) with 1/8",
    "a new agent": "y = laplace(size(limited(d, 1))) with 1/8",
    "what was paid ahead": 'y = noisy_sum(rows, "coordinates", {}, paid = ahead, part = 1/8)',
    "a purchase": "p = prepaid(rows) with 1/8\n        y = noisy_moments(rows, paid = p)",
    "a step": "y = refine(steps) with 1/8",
    "first steps": "y = refine(refinable(d)) with 1/8",
    "a joint block": "jointly with epsilon 1/8 {\n            y = {{ select count(*) from t groupby v }}\n        }",
    "rounds of a budget": "run with epsilon 1/8 until budget of d {\n            y = laplace(size(d))\n        }",
    "items": "y = {{ select count(*) from explode(t, item = [v, v + 1]) groupby item over [1, 2] with 1/8 }}",
    "weighted records": "y = laplace(histogram(weighted(t), x = v)) with 1/8",
    "parts by a hash": "y = split_rows(t, 3)",
    "what is shown of values": "y = str(groups) + str(compared) + str(ahead)",
    "what is left of values": "y = ahead.left + compared.left + opened.left",
    "a setting": "param setting = 5",
    "in rho": "y = in_rho(d, lambda e: laplace(e)) with 1/8",
    "an order": "y = sorted([3, 1, 2])",
}
FASTER = {
    r"names\['b'\]": "what the winner gave",
    r"\._kept": "statements of plans, which are public",
    r"(\.form|\['form'\])\[\]\[\]": "the schema and the plan, which are public, that a select was bound for last",
    r"answers\.(parts|_store)": "exact numbers that a later question would count again",
    r"(check\.__self__|_engine)\._(opened|raw|sources|batches)": "data by the keys of a process, which nothing shows",
    r"(check\.__self__|_engine)\.objects\._(groups|known)": "tables of it in memory",
    r"names\['pub'\]": "how a public table is described, worked out when it is first read",
    r"cached_hash": "hashes",
}
IS_FASTER = re.compile("|".join(FASTER))
LEAVES = (int, float, str, bytes, bool, type(None), complex)
OPAQUE = {"numpy", "duckdb", "pyarrow", "_thread", "threading", "lark", "re", "pandas", "weakref"}


def members(value: Any) -> Iterator[tuple[str, Any]]:
    """What hangs on a value, with how it is reached."""
    kind = type(value)
    if isinstance(value, types.FunctionType):
        yield from ((f"<cell {i}>", cell.cell_contents) for i, cell in enumerate(value.__closure__ or ()))
    elif isinstance(value, types.MethodType):
        yield ".__self__", value.__self__
    elif isinstance(value, dict):
        yield from ((f"[{key!r}]" if isinstance(key, str) else "[]", one) for key, one in list(value.items()))
    elif isinstance(value, list | tuple | set | frozenset):
        yield from (("[]", one) for one in value)
    elif isinstance(value, types.GeneratorType):
        yield from (value.gi_frame.f_locals.items() if value.gi_frame is not None else ())
    if not isinstance(value, type | types.ModuleType | types.FunctionType | types.MethodType):
        slots = [name for one in kind.__mro__ for name in np.atleast_1d(one.__dict__.get("__slots__", ())).tolist()]
        fields = getattr(kind, "__struct_fields__", ())
        for name in sorted({*getattr(value, "__dict__", {}), *slots, *(fields if isinstance(fields, tuple) else ())}):
            if hasattr(value, name):
                yield f".{name}", getattr(value, name)


def shape(session: Session) -> Counter[tuple[str, str]]:
    """How often there is what, at which place: a place has no numbers, and a text none of its digits.

    What hangs on several places is at the first of them, and at one that `FASTER` names only where there is no other.
    """
    last = list[tuple[str, Any]]()
    waiting: list[tuple[str, Any]] = [("session", session)]
    for name, module in sorted(sys.modules.items()):
        if name.partition(".")[0] == "jostle":
            waiting += [(f"{name}:{key}", one) for key, one in vars(module).items() if not key.startswith("__")]
    seen: dict[int, Any] = {}
    shapes: Counter[tuple[str, str]] = Counter()
    while waiting or last:
        is_last = not waiting
        place, value = waiting.pop() if waiting else last.pop()
        if "_STORES" in place:  # of all sessions
            continue
        if not is_last and IS_FASTER.search(place):
            last.append((place, value))
            continue
        text = ""
        if isinstance(value, LEAVES):
            text = re.sub(r"\d+", "N", value)[:60] if isinstance(value, str) else ""
        elif id(value) in seen or isinstance(value, type | types.ModuleType | functools._lru_cache_wrapper):
            continue
        else:
            seen[id(value)] = value
            if isinstance(value, dict | list | tuple | set | frozenset):
                text = str(len(value))
            if type(value).__module__.partition(".")[0] not in OPAQUE:
                waiting += [(place + step, one) for step, one in members(value)]
        shapes[re.sub(r"'d\d+'", "d", place), f"{type(value).__name__} {text}"] += 1
    return shapes


def difference(action: str, folder: Path) -> set[str]:
    """The places that differ by what a hidden run did."""
    shapes = []
    for rows in (800, 80, 800, 80):
        session = Session(cwd=folder)
        session.bind("t", {"v": np.arange(rows) % 8, "k": np.array(["a", "b"] * (rows // 2))})
        session.bind("u", {"v": np.arange(8)})
        result = session.attempt(Source("p.jst", PROGRAM.replace("ACTION", action)))
        assert result.ok, result.diagnostics
        shapes.append(shape(session))
        session.close()
    busy, calm = (shapes[i] | shapes[i + 2] for i in (0, 1))  # what comes and goes by chance is in one of two
    chance = {key for i in (0, 1) for key in shapes[i] | shapes[i + 2] if shapes[i][key] != shapes[i + 2][key]}
    return {key[0] for key in busy | calm if busy[key] != calm[key] and key not in chance}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("JOSTLE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "pub.csv").write_text("a,b\n1,x\n3,y\n3,x\n")
    (tmp_path / "mod.jst").write_text("many = [1]\ndef z(i) = i\n")
    return tmp_path


@pytest.mark.slow
def test_each_action_does_something_where_it_is_not_hidden(folder: Path) -> None:
    """A run that is refused for another reason than that it is one leaves nothing either."""
    in_the_open, refused = PROGRAM.replace("best_run(h, g, [0], 3)", "g(h, 0)"), []
    for what, action in ACTIONS.items():
        with Session(cwd=folder) as session:
            session.bind("t", {"v": np.arange(800) % 8, "k": np.array(["a", "b"] * 400)})
            session.bind("u", {"v": np.arange(8)})
            result = session.attempt(Source("p.jst", in_the_open.replace("ACTION", action)))
        refused += [] if result.ok else [what]
    assert refused == ["a fault"]


@pytest.mark.slow(but=["a choice"])
@pytest.mark.parametrize("what", ACTIONS)
def test_a_hidden_run_leaves_nothing(what: str, folder: Path) -> None:
    places = {place for place in difference(ACTIONS[what], folder) if not IS_FASTER.search(place)}
    assert not places, sorted(places)[:9]


@pytest.mark.parametrize(
    ("broken", "what"),
    [(patch.object(selection, "_unseen", lambda interp: nullcontext()), "a line and a release"),
     (patch.object(Kernel, "in_a_run", property(lambda kernel: False)), "a module")],
)  # fmt: skip
def test_it_would_be_seen(broken: Any, what: str, folder: Path) -> None:
    """Specimens: runs that are not hidden, and a module that is loaded for good in one."""
    with broken, pytest.raises(AssertionError, match="session"):
        test_a_hidden_run_leaves_nothing(what, folder)


def test_a_hidden_run_is_one_whatever_pays_for_it() -> None:
    """It was known by the unit of what pays: what is paid ahead in one, in rho, would have ended it."""
    kernel, _ = kernel_over(LocalDuckDb(), Stream())
    run, inner = (OneRun((), Amount(unit, 1)) for unit in ("epsilon", "rho"))
    with kernel._unseen(run):
        with kernel._inside(inner, kernel.register.opens):
            assert kernel.in_a_run
        assert kernel.in_a_run
    with kernel._unseen(inner):
        assert kernel.in_a_run
    with kernel._inside(run, True):
        assert not kernel.in_a_run
    assert not kernel.in_a_run
