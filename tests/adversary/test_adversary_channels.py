"""State, error, loop and budget channels (Haeberlen, Pierce, Narayan: Differential Privacy Under Fire, 2011).

Their queries ran the analyst's code on each row: it could keep a global variable, loop for long on one person, fail
on one, or spend more for one. Here no user code meets a row; what comes near is refused, or answers in the dark.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from arena import Arena, table

from jostle.tools.session import Result

Attempt = Callable[..., Result]

TARGET = "name,age,sick\n" + "".join(f"p{k},{k % 90},{'yes' if k % 7 == 0 else 'no'}\n" for k in range(50))
T = (
    'private t = table("t.csv") described by {name: text, age: 0..99, sick: {"yes", "no"}}'
    " protecting rows budget epsilon 1\n"
)

REFUSED = {
    "state: a function of the program on every row": (
        "TypeError",
        "seen = []\ndef note(a) { return append(seen, a) }\n"
"x = {{ select count(*) from t where note(age) == 1 with epsilon 0.1 }}",
    ),
    "state: a closure that leaks what it is shown": (
        "TypeError",
        "f = lambda a: print(a)\nx = {{ select sum(f(age)) from t with epsilon 0.1 }}",
    ),
    "state: print within a row expression": (
        "TypeError",
        "x = {{ select count(*) from t where print(age) == none with epsilon 0.1 }}",
    ),
    "state: a handle by the back door of a list": ("PrivateValue", "print([1, {a: [t]}])"),
    "state: a handle in a message of an assertion": ("PrivateValue", "assert 1 == 2, t"),
    "state: a handle as text": ("PrivateValue", "x = str([t])"),
    "state: walking through rows": ("PrivateValue", "for row in t { print(row) }"),
    "state: a comprehension over rows": ("PrivateValue", "x = [row.age for row in t]"),
    "state: a fold over rows": ("PrivateValue", "x = max over row in t of row.age"),
    "state: a row by its number": ("PrivateValue", "x = t[0]"),
    "state: a cell of a column": ("PrivateValue", "c = columns(t)\nprint(sum(c[1]))"),
    "state: a cell of a cube": ("PrivateValue", "h = histogram(t, x = age)\nprint(h[3])"),
    "state: rows in place of aggregates": ("PrivateValue", "x = {{ select name from t with epsilon 0.1 }}"),
    "state: a private answer as an answer of a query": (
        "PrivateValue",
        "x = {{ select count(*) from t where age > size(t) with epsilon 0.1 }}",
    ),
    "state: a score in an amount": (
        "PrivateValue",
        "h = histogram(t, x = age)\nx = {{ select count(*) from t with epsilon size(h) }}",
    ),
    "state: the same handle under `private` again": (
        "TypeError",
        "private u = where(t, age > 3) protecting rows budget epsilon 9",
    ),
    "state: a new budget inside a function": (
        "TypeError",
        'def fresh() {\n private u = table("t.csv") described by {age: 0..99} protecting rows budget '
'epsilon 1\n return u }\n'
        "x = fresh()",
    ),
    "error: fail where a person is there": (
        "PrivateValue",
        'if size(t[name = "p7", ]) > 0 { assert false }',
    ),
    "error: index by a score": ("PrivateValue", 'xs = [1, 2, 3]\nprint(xs[size(t)])'),
    "error: divide by a score": ("PrivateValue", "print(1 / size(t))"),
    "loop: as often as there are rows": ("PrivateValue", "for i in 1..size(t) { x = 1 }"),
    "loop: as often as there are rows, by `len`": ("PrivateValue", "for i in 1..len(t) { x = 1 }"),
    "loop: recursion until a private condition holds": (
        "PrivateValue",
        "def dig(n) { return n if size(t) > n else dig(n + 1) }\nprint(dig(0))",
    ),
    "loop: for ever": ("RecursionLimit", "def ever(n) { return ever(n + 1) }\nprint(ever(0))"),
    "budget: an amount that is private": (
        "PrivateValue",
        "x = {{ select count(*) from t with epsilon (0.1 if size(t) > 3 else 0.2) }}",
    ),
    "budget: a choice between amounts by a row": (
        "NameError",
        "x = {{ select count(*) from t with epsilon age / 1000 }}",
    ),
    "budget: a private number of shares": (
        "PrivateValue",
        "with epsilon 0.5 / size(t) { x = {{ select count(*) from t }} }",
    ),
}  # fmt: skip


@pytest.mark.attack("state, error, loop and budget channels")
@pytest.mark.parametrize("name", REFUSED)
def test_refused(attempt: Attempt, name: str) -> None:
    kind, program = REFUSED[name]
    result = attempt(T + program + "\nrelease y = 1\n", t=TARGET)
    assert [d.kind for d in result.diagnostics][:1] == [kind], result.diagnostics
    assert result.values == {} and result.output == []
    assert not result.budget or result.budget["t"]["epsilon"]["spent"] == "0"


HARMLESS = {
    "error: no row can fail": "x = {{ select count(1 / age) as a, sum(clamp(1 / (age - 3), 0, 1)) as b "
"from t with epsilon 0.5 }}",
    "error: a private key that is in no group": 'x = {{ select count(*) from t groupby name over {"p7"} '
'with epsilon 0.5 }}',
    "loop: an expression that costs more for one person": (
        'x = {{ select sum(clamp(exp(log(age) ^ 3) if name == "p7" else 0, 0, 1)) from t with epsilon 0.5 }}'
    ),
    "budget: spending that depends on what was paid for": (
        "x = {{ select count(*) from t with epsilon 0.1 }}\n"
"if x > 0 { y = {{ select count(*) from t with epsilon 0.4 }} }"
    ),
    "budget: `left` and `spent` watch other people's rows": (
        'for k, p in partition(t, sick) { x = {{ select count(*) from p with epsilon 0.5 }}\n'
' print(left(p), spent(p)) }'
    ),
    "state: a file of the program's own making": 'print(t.columns, histogram(t, x = age).x_range)',
}  # fmt: skip


@pytest.mark.attack("state, error, loop and budget channels")
@pytest.mark.parametrize("name", HARMLESS)
def test_the_target_does_not_show(arena: Arena, name: str) -> None:
    """With and without the person who is looked for, everything but the noise is the same."""
    rows = [line for line in TARGET.split("\n")[1:] if line]
    shown = []
    for kept in (rows, [r for r in rows if not r.startswith("p7,")]):
        arena.write({"t.csv": table("name", "age", "sick", rows=kept)})
        seen = arena.see(T + HARMLESS[name])
        assert seen.result.ok and seen.spent() <= 0.5, seen.text
        shown.append(seen.text)
    assert shown[0] == shown[1]


@pytest.mark.attack("state, error, loop and budget channels")
def test_what_fails_after_a_charge_stays_charged(attempt: Attempt) -> None:
    program = T + "x = {{ select count(*) from t with epsilon 0.4 }}\ny = 1 / 0\nrelease x\n"
    result = attempt(program, t=TARGET)
    assert [d.kind for d in result.diagnostics] == ["ValueError"] and result.values == {}
    assert result.budget["t"]["epsilon"]["spent"] == "0.4"


@pytest.mark.attack("state, error, loop and budget channels")
def test_a_refused_charge_reads_nothing(arena: Arena, monkeypatch: pytest.MonkeyPatch) -> None:
    """Charge, then look: a request that does not fit never reaches the engine."""
    from jostle.readers.duckdb import LocalDuckDb

    read: list[str] = []
    for name in ("group", "tally", "exact", "rows"):
        monkeypatch.setattr(LocalDuckDb, name, lambda self, *a, name=name, **k: read.append(name))
    arena.write({"t.csv": TARGET.encode()})
    for query in (
        "{{ select count(*) from t with epsilon 1.1 }}",
        "{{ select median(age) from t with epsilon 1.000000000001 }}",
        "(laplace(histogram(t, x = age)) with epsilon 2)",
        "noisy_max([size(t)], epsilon = 1.5)",
        "(least_cost_partition(histogram(t, x = age)) with epsilon 7)",
    ):
        seen = arena.see(f"{T}x = {query}\n")
        assert (seen.kinds, seen.spent(), read, seen.draws) == (["BudgetExceeded"], 0, [], [])
