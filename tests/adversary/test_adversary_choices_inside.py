"""Choices inside programs, drawn at random, on neighbours: paid Features and models that fail on some answers, choices
in parts, loops, rounds, recursion, runs of many and other choices, and choice points within algorithms.

Under blind noise whatever can be seen is the same byte for byte, training included: each run has a cache of its own.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from arena import Arena, lost, table

pytestmark = pytest.mark.attack("the choice as a channel")

OPTIONS = (
    "return {{ select count(*) from data.database }}", "return {{ select avg(x) from data.database }}",
    "return laplace(histogram(data.database, x = a))[0]", "return {{ select median(a) from data.database }}",
    "return 100 / (laplace(size(data.database)) - 3)", "return [1, 2][abs(round(laplace(size(data.database))))]",
    "g = {{ select count(*) as n from data.database groupby c }}\n    return g.n[0] - g.n[1]",
    "b = best_run(data.database, (lambda d, k: {score: {{ select count(*) from d where a > k }}}), [1, 2, 3], 4)\n"
    "    return 0 if b == none else b.score",
    "m = {{ select count(*) from data.database with 1/2 }}\n"
    "    return m + {{ select avg(a) from where(data.database, a > m) }}",
    "return sum([laplace(size(p[1])) for p in partition(data.database, c)])",
    "m = laplace(size(data.database))\n    return m if m > 1 else none", "return 4",
)  # fmt: skip
FEATURES = (
    "return laplace(size(data.database))", "return log(laplace(size(data.database)))",
    "return 1 / laplace(size(data.database))", "return {{ select avg(x) from data.database }}",
    "return [5, 6][abs(round(laplace(size(data.database))))]",
    "return sum([laplace(size(where(data.database, a > k)), epsilon = 0.01) for k in 1..3])",
    "m = laplace(size(data.database))\n    return m if m > 1 else none",
    "m = laplace(size(data.database))\n    assert m > 1\n    return m",
    "return {{ select median(a) from data.database }}",
)  # fmt: skip
MODELS = (
    "", "using tree(depth = 2)", "using forest(depth = 2)", "using (lambda pairs: (lambda F: 1 / F.f0))",
    "using (lambda pairs: (lambda F: [1, 2][abs(round(F.f0))]))",
)  # fmt: skip
UTILITIES = ("-abs(answers - 5)", "-abs(answers - {{ select count(*) from data.database }})", "1 / (answers - 3)")
PLACES = (
    "print(choose({database: t}) with epsilon 1)",
    "for p in partition(t, c): print(p[0], choose({database: p[1]}) with epsilon 0.5)",
    "b = best_run(t, (lambda d, k: {score: choose({database: where(d, a > k)})}), [1, 2], 3) with epsilon 2\nprint(b)",
    "run with epsilon 0.7 until budget of t:\n    print(choose({database: t}))",
    "y = 0\nfor i in 1..3: y = choose({database: where(t, a > y)}) with epsilon 0.2\nprint(y)",
    "print(choose.pick({database: t}) with epsilon 0.5)",
    "def f(d, k) = choose({database: d}) if k == 0 else f(where(d, a > k), k - 1) + choose({database: d})\n"
    "with epsilon 1: print(f(t, 2))",
    "Wrapped = Option (data) { return choose({database: data.database}) }\n"
    "outer = MkChoiceMaker among {Wrapped, B} informed by {} trained on learnt wrt close\n"
    "print(outer({database: t}) with epsilon 1)",
    "steps = Option (step) { return step.n > 0 }\nstays = Option (step) { return false }\n"
    "deep = Feature (step) { return log(max(1, step.n)) }\n"
    "Walk = Option (data) { return [Which({n: laplace(size(p[1])), place: 1}) for p in partition(data.database, c)] }\n"
    "right = Utility (data, answers) { return len([k for k in answers if k]) }\nruns = whole(Walk, learnt)\n"
    "Which = MkChoiceMaker among {steps, stays} informed by {deep} trained on runs wrt right\n"
    "for i in 1..2: print(Walk({database: where(t, a > i)}) with epsilon 1)",
)  # fmt: skip
ROWS = [f"p{k},{k % 10},{(k % 9) - 4},{'uv'[k % 2]}" for k in range(14)]
HOSTILE = ["q1,5,2.5,u", "q2,99,1e308,v", "q3,NaN,-inf,u", "q4,,,", "q5,3,nan,zzz", "q6,0x1f,1e-320,v"]


def program(rng: random.Random) -> str:
    options, features = rng.sample(OPTIONS, 2), rng.sample(FEATURES, rng.choice((0, 1, 1, 2)))
    unit = rng.choice(("rows", "id up to 2 rows"))
    parts = [f"{name} = Option (data):\n    {body}" for name, body in zip("AB", options, strict=True)]
    parts += [f"f{k} = Feature (data):\n    {body}" for k, body in enumerate(features)]
    informed = f"informed by {{{', '.join(f'f{k}' for k in range(len(features)))}}} trained on learnt "
    by, utility = informed + rng.choice(MODELS) * bool(features), rng.choice(UTILITIES)
    if rng.random() < 0.2:
        by, utility = "by validation", "size(data.database)"
    return "\n".join((
        "use selection", 'private t = table("t.csv") described by {id: text, a: 0..9, x: -5.0..5.0, c: {"u", "v"}} '
        f"protecting {unit} budget epsilon 6", 'learnt = { {database: table([{id: str(k), a: k % 10, x: k % 5, '
        'c: "u" if k % 2 == 0 else "v"} for k in 0..m])} for m in [3, 20, 90] }', *parts,
        f"close = Utility (data, answers) {{ return {utility} }}",
        f"choose = MkChoiceMaker among {{A, B}} {by} wrt close", rng.choice(PLACES), "",
    ))  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(4))
def test_choices_inside_programs_show_nothing(
    batch: int, arena: Arena, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = 0
    for seed in range(12 * batch, 12 * batch + 12):
        rng = random.Random(seed)
        text, rows, row, seen = program(rng), rng.choice((ROWS, ROWS[:1])), rng.choice(HOSTILE), []
        place = rng.randrange(len(rows) + 1)
        for some in (rows, [*rows[:place], row, *rows[place:]]):
            monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / f"{seed}-{len(seen)}"))
            arena.write({"t.csv": table("id", "a", "x", "c", rows=some)})
            seen.append(arena.see(text))
        one, other = seen
        assert one.text == other.text and "internal error" not in one.text, (seed, text)
        if one.result.budget and "best_run" not in text:  # runs of many hide what each of them measured
            assert lost(one, other) <= one.spent() * (1 + 1e-9), (seed, text)
        ran += one.result.ok
    assert ran > 2
