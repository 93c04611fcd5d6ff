"""Averaging by asking again: loops, closures, recursion, agents, and several names of one set of data.

Each program asks for far more than its budget; each must be stopped in time, with what it was told worth no more
than the budget. A copy of a file is other data, and has its own budget: that is not promised otherwise, and shown.
"""

from __future__ import annotations

import copy
import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from jostle.diagnostics import Refusal
from jostle.source import Source
from jostle.tools.session import Result, Session

Attempt = Callable[..., Result]

ROWS = "v,c\n" + "".join(f"{k % 10},{'xy'[k % 2]}\n" for k in range(30))
CLAUSES = 'described by {v: 0..9, c: {"x", "y"}} protecting rows budget epsilon 1\n'
T = 'private t = table("t.csv") ' + CLAUSES
ASK = "{{ select count(*) from t with epsilon 0.3 }}"

STOPPED = {
    "a loop": f"for i in 1..100 {{ x = {ASK} }}",
    "a comprehension": f"xs = [{ASK} for i in 1..100]\nprint(avg(xs))",
    "a fold": f"x = sum over i in 1..100 of {ASK}",
    "a closure": f"ask = lambda: {ASK}\nprint(avg([ask() for i in 1..100]))",
    "a closure made by a closure": f"make = lambda: (lambda: {ASK})\nprint(avg([make()() for i in 1..100]))",
    "recursion": f"def more(n) {{ return 0 if n == 0 else {ASK} + more(n - 1) }}\nprint(more(100))",
    "two functions in turn": f"def a(n) {{ return {ASK} + b(n) }}\ndef b(n) {{ return a(n - 1) }}\nprint(a(9))",
    "agents of agents": (
        "def take(d, n) { return 0 if n == 0 else {{ select count(*) from d with epsilon 0.3 }}"
        " + take(limited(d, 0.9), n - 1) }\nprint(take(t, 50))"
    ),
    "many agents": "print([{{ select count(*) from limited(t, 0.3) with epsilon 0.3 }} for i in 1..50])",
    "allotments one after the other": "for i in 1..100 { with epsilon 0.3 { x = {{ select count(*) from t }} } }",
    "another way to say the same": (
        "for i in 1..100 { x = {{ select count(*) from t where v + i > v with epsilon 0.3 }} }"
    ),
    "filters that keep all": (
        "d = t\nfor i in 1..50 { d = where(d, v >= 0)\n x = {{ select count(*) from d with epsilon 0.3 }} }"
    ),
    "a redefined column in every round": (
        "for i in 1..50 { d = derive(t, v = v + i)\n x = {{ select count(*) from d with epsilon 0.3 }} }"
    ),
    "new partitions by one key": (
        "for i in 1..50 { for k, p in partition(t, v > -1) { x = {{ select count(*) from p with epsilon 0.3 }} } }"
    ),
    "parts of a new column that is the old one": (
        "for i in 1..50 { d = derive(t, c = c)\n"
        ' for k, p in partition(d, c) { x = {{ select count(*) from p with epsilon 0.3 }} } }'
    ),
    "histograms": "for i in 1..50 { x = laplace(histogram(t, v), epsilon = 0.3) }",
    "scores": "for i in 1..50 { x = laplace(size(histogram(t, v)), epsilon = 0.3) }",
    "selections": "for i in 1..50 { x = noisy_max([size(p[1]) for p in partition(t, c)], epsilon = 0.3) }",
    "one file declared many times": (
        "".join(f'private t{i} = table("t.csv") ' + CLAUSES for i in range(5))
        + "".join(f"x{i} = {{{{ select count(*) from t{i} with epsilon 0.3 }}}}\n" for i in range(5))
    ),
    "one file with a larger budget the second time": (
        'private u = table("./t.csv") ' + CLAUSES.replace("epsilon 1", "epsilon 1000")
        + "x = {{ select count(*) from u with epsilon 2 }}"
    ),
    "one file with another description": (
        'private u = table("t.csv") described by {c: text} protecting rows budget epsilon 1000\n'
        "for i in 1..9 { x = {{ select count(c) from u with epsilon 0.3 }} }"
    ),
}  # fmt: skip


@pytest.mark.attack("averaging by repeats")
@pytest.mark.parametrize("name", STOPPED)
def test_stopped_by_the_budget(attempt: Attempt, name: str) -> None:
    result = attempt(T + STOPPED[name] + "\nrelease y = 1\n", t=ROWS)
    assert [d.kind for d in result.diagnostics] == ["BudgetExceeded"], result.diagnostics
    assert result.values == {}
    assert all(float(b["epsilon"]["spent"]) <= 1 for b in result.budget.values())


TWO = 'private a = table("{}") ' + CLAUSES + 'private b = table("{}") ' + CLAUSES.replace("epsilon 1", "epsilon 5")
BOTH = "x = {{ select count(*) from a with epsilon 0.7 }}\ny = {{ select count(*) from b with epsilon 0.7 }}\n"


def names_of_one_file(folder: Path) -> dict[str, str]:
    (folder / "sub").mkdir()
    os.symlink(folder / "t.csv", folder / "soft.csv")
    os.symlink("soft.csv", folder / "softer.csv")
    os.symlink(folder, folder / "sub" / "up")
    os.link(folder / "t.csv", folder / "hard.csv")
    return {
        "a path with a dot": "./t.csv", "a path through a folder": "sub/../t.csv",
        "an absolute path": str(folder / "t.csv"),
        "a symbolic link": "soft.csv", "a link to a link": "softer.csv", "a link to the folder": "sub/up/t.csv",
        "a hard link": "hard.csv", "doubled slashes": f"{folder}//t.csv",
    }  # fmt: skip


@pytest.mark.attack("several names of one file")
def test_one_budget_by_whatever_name(attempt: Attempt, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(ROWS)
    for what, name in names_of_one_file(tmp_path).items():
        for pair in (("t.csv", name), (name, "t.csv")):
            result = attempt(TWO.replace("{}", pair[0], 1).replace("{}", pair[1], 1) + BOTH)
            assert [d.kind for d in result.diagnostics] == ["BudgetExceeded"], what


@pytest.mark.attack("several names of one file")
def test_private_and_public_by_whatever_name(attempt: Attempt, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(ROWS)
    for what, name in names_of_one_file(tmp_path).items():
        for program in (T + f'u = table("{name}")\n', f'u = table("{name}")\n' + T):
            result = attempt(program + "print({{ select count(*) from u }})\n")
            assert [d.kind for d in result.diagnostics] == ["PrivateValue"], what
            assert result.output == []


@pytest.mark.attack("several names of one file")
def test_a_file_of_counts_is_not_read_as_a_table_too(attempt: Attempt, tmp_path: Path) -> None:
    """A `.npy` file opens with a line of text, and so passes for a CSV file: one file, one budget all the same."""
    np.save(tmp_path / "c.npy", np.array([3, 4, 5, 6]))
    counts = 'private c = counts("c.npy") protecting rows budget epsilon 1\n'
    as_table = 'private d = table("c.npy") described by {"\'shape\': (4": text} protecting rows budget epsilon 1\n'
    asked = "x = laplace(c, epsilon = 0.7)\ny = {{ select count(*) from d with epsilon 0.7 }}\n"
    for program in (counts + as_table + asked, as_table + counts + asked):
        assert [d.kind for d in attempt(program).diagnostics] == ["BudgetExceeded"]


@pytest.mark.attack("several names of one file")
@pytest.mark.parametrize("cell", [1.0, 1.5, np.nan, -1.0])
def test_private_counts_are_not_read_as_public(attempt: Attempt, tmp_path: Path, cell: float) -> None:
    """Not by any road; and what stops it is told before a cell is looked at, so that no cell shows in the message."""
    array = np.array([3.0, 4.0, cell])
    np.save(tmp_path / "c.npy", array)
    session = Session(cwd=tmp_path)
    session.bind("c", array)
    for origin in ('counts("c.npy")', 'bound("c")'):
        roads = (
            ['counts("./c.npy")', 'table("c.npy")', f'vectors_in("{tmp_path}")'] if "npy" in origin else ['bound("c")']
        )
        for road in roads:
            program = f"private c = {origin} protecting rows budget epsilon 1\nprint({road})\n"
            result = attempt(program, session=session)
            assert [(d.kind, d.message) for d in result.diagnostics] == [
                ("PrivateValue", "these data are private (`c`) and cannot be read as public too")
            ], (origin, road)
            assert result.output == []


@pytest.mark.attack("several names of one file")
def test_a_folder_of_vectors_read_first_cannot_be_private_after(attempt: Attempt, tmp_path: Path) -> None:
    np.save(tmp_path / "c.npy", np.array([3, 4]))
    read = f'v = vectors_in("{tmp_path}")\n'
    result = attempt(read + 'private c = counts("c.npy") protecting rows budget epsilon 1\n')
    assert [d.kind for d in result.diagnostics] == ["PrivateValue"]


@pytest.mark.attack("several names of one file")
def test_another_unit_or_measure_for_one_file(attempt: Attempt) -> None:
    for clause in ("protecting rows, public size budget epsilon 1", "protecting v up to 2 rows budget epsilon 1",
                   "protecting rows budget rho 1", "protecting rows budget epsilon 1, delta 1e-6"):  # fmt: skip
        result = attempt(T + 'private u = table("t.csv") described by {v: 0..9} ' + clause, t=ROWS)
        assert [d.kind for d in result.diagnostics] == ["DataError"], clause


@pytest.mark.attack("several names of one file")
def test_one_object_under_two_names(tmp_path: Path) -> None:
    frame = {"v": np.arange(10.0)}
    session = Session(cwd=tmp_path)
    session.bind("a", frame)
    session.bind("b", frame)
    text = (TWO.replace('table("{}")', 'bound("a")', 1).replace('table("{}")', 'bound("b")', 1) + BOTH).replace(
        ', c: {"x", "y"}', ""
    )
    assert [d.kind for d in session.attempt(Source("p.jst", text)).diagnostics] == ["BudgetExceeded"]


@pytest.mark.attack("several names of one file")
def test_programs_of_one_session_share_a_budget(tmp_path: Path, attempt: Attempt) -> None:
    session = Session(cwd=tmp_path)
    asked = T + "x = {{ select count(*) from t with epsilon 0.7 }}\n"
    assert attempt(asked, session=session, t=ROWS).ok
    again = attempt(asked.replace("private t", "private other").replace("from t", "from other"), session=session)
    assert [d.kind for d in again.diagnostics] == ["BudgetExceeded"]


@pytest.mark.attack("several names of one file")
def test_a_file_that_is_replaced_between_two_reads(tmp_path: Path, attempt: Attempt) -> None:
    """Other rows under the same path are under the same budget, and the rows that were read stay."""
    session = Session(cwd=tmp_path)
    asked = T + "x = {{ select count(*) from t with epsilon 0.7 }}\n"
    assert attempt(asked, session=session, t=ROWS).ok
    (tmp_path / "new.csv").write_text(ROWS * 3)
    os.replace(tmp_path / "new.csv", tmp_path / "t.csv")
    again = attempt(asked, session=session)
    assert [d.kind for d in again.diagnostics] == ["BudgetExceeded"]
    public = attempt('u = table("t.csv")\nprint({{ select count(*) from u }})\n', session=session)
    assert [d.kind for d in public.diagnostics] == ["PrivateValue"] and public.output == []


@pytest.mark.attack("several names of one file")
def test_a_copy_is_other_data_and_this_is_not_promised_otherwise(attempt: Attempt, tmp_path: Path) -> None:
    """docs/privacy/threats.md says so: who can copy the file has the file. Each copy has a budget of its own."""
    (tmp_path / "t.csv").write_text(ROWS)
    shutil.copy(tmp_path / "t.csv", tmp_path / "copy.csv")
    result = attempt(TWO.replace("{}", "t.csv", 1).replace("{}", "copy.csv", 1) + BOTH)
    assert result.ok
    assert [b["epsilon"]["spent"] for b in result.budget.values()] == ["0.7", "0.7"]


@pytest.mark.attack("several names of one file")
def test_a_registered_file_is_read_through_its_dataset_only(
    tmp_path: Path, cli: Callable[..., tuple[int, str, str]]
) -> None:
    """By no path, as private or public, as table or counts; its terms stand; it is neither simulated on nor seeded."""
    (tmp_path / "t.csv").write_text(ROWS)
    (tmp_path / "v").mkdir()
    np.save(tmp_path / "v" / "c.npy", np.array([3.5, 4]))
    schema = ("--schema", '{v: 0..9, c: {"x", "y"}}')
    for name, path, more in (("t", "t.csv", schema), ("c", "v/c.npy", ())):
        words = ("data", "register", name, path, *more, "--protecting", "rows", "--budget", "epsilon 1")
        assert cli(tmp_path, *words)[0] == 0
    os.link(tmp_path / "t.csv", tmp_path / "hard.csv")
    for program, kind in (
        ('u = table("t.csv")', "PrivateValue"), ('u = table("hard.csv")', "PrivateValue"), (T, "PrivateValue"),
        ('u = counts("v/c.npy")', "PrivateValue"), (f'u = vectors_in("{tmp_path}/v")', "PrivateValue"),
        ('u = table("v/c.npy")', "PrivateValue"), ('u = dataset("t")', "PrivateValue"),
        ('private u = dataset("t") protecting rows budget epsilon 100', "DataError"),
        ('private u = dataset("t") described by {v: 0..99} protecting rows budget epsilon 1', "DataError"),
        ('private u = dataset("t")\nx = {{ select count(*) from u with epsilon 1.1 }}', "BudgetExceeded"),
    ):  # fmt: skip
        result = Session(cwd=tmp_path).attempt(Source("p.jst", program + "\n"))
        assert {d.kind for d in result.diagnostics} == {kind}, (program, result.diagnostics)
    (tmp_path / "p.jst").write_text(
        'private u = dataset("t")\nrelease n = {{ select count(*) from u with epsilon 1 }}\n'
    )
    assert cli(tmp_path, "run", "p.jst", "--simulate", "--seed", "1")[0] == 1
    assert cli(tmp_path, "run", "p.jst", "--seed", "1")[0] == 2
    assert "n =" in cli(tmp_path, "run", "p.jst")[1]
    (tmp_path / "q.jst").write_text(
        'private u = dataset("t")\nrelease m = {{ select sum(v) from u with epsilon 0.1 }}\n'
    )
    status, _, err = cli(tmp_path, "run", "q.jst")
    assert status == 1 and "BudgetExceeded" in err


FOREIGN = {
    "a private table": ("t", "{{ select count(*) from h where v > 3 with epsilon 1 }}"),
    "a function of it": ("f", "h()"),
    "a public table": ("u", "{{ select count(*) from h where v > 3 }}"),
    "a function of a public one": ("g", "h()"),
    "a list": ("l", "{{ select count(*) from h[0] where v > 3 with epsilon 1 }}"),
}


@pytest.mark.attack("several names of one file")
@pytest.mark.parametrize("name", FOREIGN)
def test_what_another_session_declared_reads_nothing_here(name: str) -> None:
    """A table of another session, with its larger budget or public there, is none of the same place in this one."""
    declared = 'private t = bound("t") described by {v: 0..9} protecting rows budget epsilon %s\nu = bound("u")\n'
    functions = (
        "f = lambda: {{ select count(*) from t where v > 3 with epsilon 1 }}\n"
        "g = lambda: {{ select count(*) from u where v > 3 }}\nl = [t]\n"
    )
    sessions = []
    for at, budget in enumerate((1000, 1)):
        session = Session()
        session.bind("t", {"v": np.array([7] * 90)})
        session.bind("u", {"v": np.array([5] * 60)})
        first, second = (declared % budget).split("\n")[:2][:: 1 if at else -1]
        session.execute(Source("entry 1", f"{first}\n{second}\n{functions}"))
        sessions.append(session)
    other, here = sessions
    value, asked = other.names()[FOREIGN[name][0]], FOREIGN[name][1]
    here.define("h", value)
    for ask in (
        lambda: here.execute(Source("entry 2", f"x = {asked}\n")),
        lambda: here.run_text(f'param h = 1\nu = bound("u")\nx = {asked}\n', h=value),
    ):
        with pytest.raises(Refusal, match=r"another session|is a number, and Python's `\w+` was given"):
            ask()


@pytest.mark.attack("several names of one file")
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda table: pickle.loads(pickle.dumps(table))])
def test_a_copy_of_a_table_has_no_budget_of_its_own(copied: Callable[[object], object]) -> None:
    session = Session()
    session.bind("t", {"v": np.array([7] * 90)})
    session.execute(
        Source("entry 1", 'private t = bound("t") described by {v: 0..9} protecting rows budget epsilon 1\n')
    )
    session.define("h", copied(session.names()["t"]))
    with pytest.raises(Refusal, match="a copy"):
        session.execute(Source("entry 2", "x = {{ select count(*) from h with epsilon 1 }}\n"))
