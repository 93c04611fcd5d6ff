"""Everything that a person can see is an output: messages, progress bars, faults, files left behind, what Python gets.

`test_adversary_neighbours` compares whole runs; here are the channels that need a hand of their own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FunctionType, ModuleType

import numpy as np
import pytest
from arena import Arena
from hostile import people, versions
from test_adversary_choice import CALL, CHOICE, HEAD, model_file, planted, run

from jostle.diagnostics import Refusal
from jostle.engine.duckdb.engine import DuckDb
from jostle.privacy.kernel.kernel import Kernel
from jostle.privacy.measurements.gradual import Memory, Sealed
from jostle.privacy.measurements.watch import Threshold
from jostle.privacy.reading.vault import Reader
from jostle.source import Source
from jostle.tools.session import Session
from programs import PROGRAMS, ROWS

pytestmark = pytest.mark.attack("messages, traces, bars, exit codes")
Cli = Callable[..., tuple[int, str, str]]


def test_the_progress_bar_counts_public_work(arena: Arena) -> None:
    """What a bar is told, and when, in between the other events."""

    def told(content: bytes) -> list[object]:
        heard: list[object] = []
        for path in (arena.folder / "cache").rglob("*.json"):
            path.unlink()
        arena.write({"t.csv": content})
        session = Session(
            cwd=arena.folder, progress=lambda *step: heard.append(step), listeners=[lambda e: heard.append(e.kind)]
        )
        seen = arena.see(PROGRAMS["a choice"], session=session)
        assert seen.result.ok, seen.text
        return heard

    expected = told(people())
    assert any(isinstance(step, tuple) for step in expected)
    for content in versions().values():
        assert told(content) == expected


@pytest.mark.plants_faults
def test_a_fault_of_the_runtime_names_nothing(
    arena: Arena, cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Were there a mistake in the kernel that quotes a cell, its words would show nowhere."""
    from jostle.readers.duckdb import LocalDuckDb

    def broken(self: object, *rest: object) -> None:
        raise ValueError("the cell is 'Ann Xaver, 42'")

    monkeypatch.setattr(LocalDuckDb, "group", broken)
    arena.write({"t.csv": people(), "p.jst": (ROWS + "x = {{ select count(*) from t with epsilon 1 }}\n").encode()})
    status, out, err = cli(tmp_path, "run", "p.jst", "--trace", "r.jsonl")
    assert status == 1 and "failed after the charge, and there is no answer" in err
    assert "Xaver" not in out + err + (tmp_path / "r.jsonl").read_text()


def test_what_the_engine_says_is_not_passed_on(arena: Arena, monkeypatch: pytest.MonkeyPatch) -> None:
    """DuckDB's messages may quote cells; ours are fixed texts."""
    from jostle.engine.sql import relations

    whole = relations.group

    def wrong(*given: object) -> relations.Grouped:
        made = whole(*given)  # type: ignore[arg-type]
        return relations.Grouped(f"SELECT error(note) FROM ({made.sql}), (SELECT 'Ann Xaver' AS note)", made.as_text)

    monkeypatch.setattr(relations, "group", wrong)
    arena.write({"t.csv": people()})
    seen = arena.see(ROWS + "x = {{ select count(*) from t with epsilon 1 }}\n")
    assert seen.kinds == ["DataError"] and "Xaver" not in seen.text


def test_a_run_leaves_no_rows_behind(arena: Arena) -> None:
    """In no file of the working folder or the cache is there a cell of a private file, nor a temporary copy of it."""
    arena.write({"t.csv": people(b"1,2,Male,Ames,3,4,5,Ann Xaver")})
    seen = arena.see(PROGRAMS["a choice"])
    assert seen.result.ok
    for path in arena.folder.rglob("*"):
        if path.is_file() and path.name != "t.csv":
            assert b"Xaver" not in path.read_bytes(), path


def test_what_python_is_given_holds_no_rows(tmp_path: Path) -> None:
    """Results, names and the values of a session's entries: the texts and documents made of them are public."""
    (tmp_path / "t.csv").write_bytes(people(b"1,2,Male,Ames,3,4,5,Ann Xaver"))
    session = Session(cwd=tmp_path)
    session.execute(Source("repl", ROWS))
    for entry in (
        "t",
        "histogram(t, x = age)",
        "columns(t)",
        "size(histogram(t, x = age))",
        "[t, {a: t}]",
        "partition(t, sex)",
    ):
        value = session.execute(Source("repl", entry))
        assert "Xaver" not in session.show(value) + repr(value) + str(session.names())
    result = session.attempt(Source("p.jst", ROWS + "release n = {{ select count(*) from t with epsilon 1 }}\n"))
    assert "Xaver" not in repr(result) + json.dumps(result.released_json()) + repr(result.events)


def test_a_simulation_opens_nothing_private(arena: Arena, cli: Cli) -> None:
    """The same seed gives the same bytes with other rows, and with no file at all."""
    arena.write({"p.jst": PROGRAMS["groups"].encode(), "t.csv": people()})
    expected = cli(arena.folder, "run", "p.jst", "--simulate", "--seed", "4")
    assert expected[0] == 0, expected
    for content in versions().values():
        arena.write({"t.csv": content})
        assert cli(arena.folder, "run", "p.jst", "--simulate", "--seed", "4") == expected
    (arena.folder / "t.csv").unlink()
    assert cli(arena.folder, "run", "p.jst", "--simulate", "--seed", "4") == expected


OTHERWISE = """private t = table("t.csv") described by {age: 0..99} protecting rows budget epsilon 1
x = table("t." + "csv")
y = {{ select max(age) from x }}
n = {{ select count(*) from t with epsilon y / 1000 }}
"""


def test_what_is_private_is_not_read_as_public_before_a_run(arena: Arena, cli: Cli) -> None:
    """A path that is calculated: plans, simulations and shown SQL took a price from the rows that a run refuses."""
    shown = []
    for age in (17, 42):
        arena.write({"p.jst": OTHERWISE.encode(), "t.csv": f"age\n{age}\n".encode()})
        asked = ("plan",), ("run", "--simulate", "--seed", "4"), ("run", "--explain"), ("run", "--dry"), ("check",)
        shown.append([cli(arena.folder, *words[:1], "p.jst", *words[1:]) for words in asked])
    assert shown[0] == shown[1] and all("cannot be read as public too" in seen[2] for seen in shown[0][:2])
    terms = ("--schema", "{age: 0..99}", "--protecting", "rows", "--budget", "epsilon 3", "--ledger", "l.db")
    assert cli(arena.folder, "data", "register", "people", "t.csv", *terms)[0] == 0
    arena.write({"q.csv": b"age\n1\n", "q.jst": OTHERWISE.replace('"t.csv"', '"q.csv"').encode()})
    for way in ("--explain", "--dry"):
        assert "0.042" not in "".join(map(str, cli(arena.folder, "run", "q.jst", way, "--ledger", "l.db")))


def test_real_noise_cannot_be_seeded(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(people())
    (tmp_path / "p.jst").write_text(ROWS + "print({{ select count(*) from t with epsilon 1e-6 }})\n")
    assert cli(tmp_path, "run", "p.jst", "--seed", "1")[0] == 2
    assert len({cli(tmp_path, "run", "p.jst")[1] for _ in range(4)}) == 4


@pytest.mark.parametrize("policy", [{}, {"share": "a"}, {"needs": ["nobody"]}, {"predictor": 0}, {"needs": 5}])
def test_a_planted_model_that_is_no_model(tmp_path: Path, cli: Cli, policy: dict[str, object]) -> None:
    """With a digest that fits: the run may end in a fault, and then nothing of it is shown."""
    assert run(tmp_path, HEAD + CHOICE + CALL).ok
    path = model_file(tmp_path)
    document = json.loads(path.read_text())
    document["policy"] = {**document["policy"], "share": 0.5, "needs": ["many"], **policy} if policy else {}
    path.write_text(planted(document))
    (tmp_path / "q.jst").write_text(HEAD + CHOICE + CALL)
    status, out, err = cli(tmp_path, "run", "q.jst")
    assert status not in (0, 2) and "Traceback" not in err
    assert not [line for line in out.split("\n") if line.strip().isdigit()], out


def test_check_opens_no_private_file(arena: Arena, cli: Cli) -> None:
    """Errors and costs of a program are the same whatever the file holds, and where there is none."""
    for name in ("a choice", "joins", "mistakes after looking"):
        arena.write({"p.jst": PROGRAMS[name].encode(), "t.csv": people()})
        expected = cli(arena.folder, "check", "p.jst")
        for content in versions().values():
            arena.write({"t.csv": content})
            assert cli(arena.folder, "check", "p.jst") == expected


HELD = """use gradual
use selection
use row_vectors
private k = bound("k") protecting rows budget epsilon 9
private t = bound("t") described by {v: 0..9, c: {"a", "b"}} protecting rows budget epsilon 9
n = refinable(k)
x = refine(n, epsilon = 0.00000001)
y = refine(n, epsilon = 0.00000001)
w = above_threshold(k, 5, most = 2) with epsilon 0.00000001
z = above(k, w)
s = sum_of(t, v)
u = laplace(s, epsilon = 0.00000001)
m = noisy_moments(vectors(t, v, radius = 1), epsilon = 0.00000001)
g = {{ select count(*), avg(v) from limited(t, 1) group by c with epsilon 0.00000001 }}
p = [part for part in partition(t, c)]
"""


def test_nothing_that_a_caller_gets_holds_exact_numbers() -> None:
    """No attribute of a handle, a watch, an answer or a result leads to one, nor to what rows are read by."""
    secret = 987_654_321
    session = Session()
    session.bind("k", np.array([secret]))
    session.bind("t", {"v": np.array([7] * 9), "c": np.array(["a"] * 9)})
    result = session.attempt(HELD)
    assert result.ok, result.diagnostics
    session.execute(Source("entry 1", HELD))
    waiting: list[tuple[str, object]] = [("result", result), *session.names().items()]
    seen: dict[int, object] = {}
    while waiting:
        name, value = waiting.pop()
        if id(value) in seen or isinstance(value, (type, ModuleType, FunctionType)):
            continue
        seen[id(value)] = value
        assert not isinstance(value, (Reader, DuckDb, Kernel, Memory, Threshold, Sealed)), name
        if isinstance(value, np.ndarray):
            assert not (value.astype(object) == secret).any(), name
        elif isinstance(value, Mapping):
            waiting += [(f"{name}[{key!r}]", one) for key, one in value.items()]
        elif isinstance(value, (list, tuple, set, frozenset)):
            waiting += [(f"{name}[…]", one) for one in value]
        elif isinstance(value, (int, float, str)):
            assert str(secret) not in str(value), name
        elif type(value).__module__.startswith("jostle.") and name.count(".") < 8 and ".law" not in name:
            fields = [field for field in dir(value) if not field.startswith("_")]
            waiting += [(f"{name}.{field}", getattr(value, field, None)) for field in fields]
    assert len(seen) > 300


@pytest.mark.plants_faults
@pytest.mark.parametrize("fault", [ValueError, MemoryError, OSError])
def test_a_refusal_leads_to_no_fault_before_it(monkeypatch: pytest.MonkeyPatch, fault: type[Exception]) -> None:
    """Neither its context nor a frame of its traceback, of what was calculated of rows."""

    def broken(self: object, *rest: object) -> None:
        raise fault("the cell is 'Ann Xaver, 42'")

    monkeypatch.setattr(Reader, "units", broken)
    session = Session()
    session.bind("k", np.array([42]))
    declared = 'private k = bound("k") protecting rows budget epsilon 9\n'
    for asked in (session.run_text, lambda text: session.execute(Source("entry 1", text))):
        with pytest.raises(Refusal) as caught:
            asked(declared + "x = laplace(k, epsilon = 1)\n")
        assert caught.value.__context__ is None and caught.value.__cause__ is None
        at, files = caught.value.__traceback__, set[str]()
        while at is not None:
            files.add(at.tb_frame.f_globals["__name__"])
            at = at.tb_next
        assert not [name for name in files if name.startswith(("jostle.privacy", "jostle.run", "jostle.engine"))]
