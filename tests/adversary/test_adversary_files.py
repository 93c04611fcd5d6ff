"""What is asked of a file is asked of the open file: links that move, files that are written to, what is no file."""

from __future__ import annotations

import fcntl
import gzip
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from arena import Arena
from bounded import ending

from jostle.diagnostics import Refusal
from jostle.engine import files
from jostle.engine.files import open_file, spill_root
from jostle.plan.plan import Column, Open, Scan
from jostle.readers.csvfile import Header
from jostle.readers.duckdb import LocalDuckDb
from jostle.readers.filesets import reader_of
from jostle.readers.limits import SpillFolder
from jostle.source import Source
from jostle.tools.result import LOG
from jostle.tools.session import Session

PRIVATE = 'private people = table("owner.{}") described by {{income: 0..100}} protecting rows budget epsilon 1\n'
ASKED = "for r in {{ select count(*) as n from t groupby name }} { print(r.name) }\n"


def write(path: Path, names: list[str]) -> None:
    if path.suffix == ".csv":
        path.write_text("name,income\n" + "".join(f"{name},{i}\n" for i, name in enumerate(names)))
    else:
        pq.write_table(pa.table({"name": names, "income": [float(i) for i in range(len(names))]}), path)


@pytest.mark.attack("files that change between two looks")
@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("step", range(12))
def test_a_link_that_moves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, step: int) -> None:
    """Before each look at a file that the engine or a session makes, the analyst's link is turned to the owner's."""
    write(tmp_path / f"owner.{kind}", ["secret"] * 3)
    write(tmp_path / f"mine.{kind}", ["mine"] * 2)
    link = tmp_path / f"t.{kind}"
    link.symlink_to(f"mine.{kind}")
    looks = iter(range(10**6))

    def turning(look: Callable[..., object]) -> Callable[..., object]:
        def call(*args: object, **more: object) -> object:
            if next(looks) == step:
                (tmp_path / "new").symlink_to(f"owner.{kind}")
                os.replace(tmp_path / "new", link)
            return look(*args, **more)

        return call

    for name in ("open", "fstat", "stat", "pread"):
        monkeypatch.setattr(files.os, name, turning(getattr(os, name)))
    result = Session(cwd=tmp_path).attempt(Source("p.jst", PRIVATE.format(kind) + f't = table("t.{kind}")\n' + ASKED))
    assert "secret" not in str(result.output) and "secret" not in str(result.diagnostics)
    assert [d.kind for d in result.diagnostics] in ([], ["PrivateValue"])


@pytest.mark.attack("files that change between two looks")
@pytest.mark.parametrize("later", ["replace", "rewrite", "rewrite and set the clock back"])
def test_a_public_file_stays_what_it_was_opened_as(tmp_path: Path, later: str) -> None:
    """Or it is refused: a fan-out that was counted is that of the rows that are joined."""
    path = tmp_path / "p.parquet"
    write(path, ["a"] * 2)
    write(tmp_path / "new.parquet", ["b"] * 2)
    engine = LocalDuckDb()
    scan = Scan(engine.open(path, public=True).key, (("name", Open("text")),))
    assert engine.tally(scan, Column("name"))[0].tolist() == ["a"]
    before = path.stat()
    if later == "replace":
        os.replace(tmp_path / "new.parquet", path)
    else:
        path.write_bytes((tmp_path / "new.parquet").read_bytes())
        if "clock" in later:
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(Refusal) as caught:
        engine.tally(scan, Column("name"))
    assert "changed while" in caught.value.first.message
    engine.close()


@pytest.mark.attack("files that change between two looks")
def test_a_private_file_that_is_written_to_before_it_is_read(arena: Arena) -> None:
    arena.write({"t.csv": b"a\n1\n"})
    session = Session(cwd=arena.folder)
    head = 'private t = table("t.csv") described by {a: 0..9} protecting rows budget epsilon 9\n'
    assert session.attempt(Source("p.jst", head)).ok
    arena.write({"t.csv": b"a\n1\n2\n"})
    seen = arena.see(head + "x = {{ select count(*) from t with epsilon 1 }}\n", session=session)
    assert seen.kinds == ["DataError"] and seen.draws == []


@pytest.mark.attack("files that are no tables")
@pytest.mark.parametrize(
    "name", ["/proc/self/io", "/proc/thread-self/stat", "/proc/self/environ", "/proc/meminfo", "/sys/kernel/mm/ksm/run",
             "/dev/null", "/dev/zero", "/dev/stdin", "/proc/self/mem", "/proc/self/fd/0"]
)  # fmt: skip
def test_the_system_is_no_table(tmp_path: Path, name: str) -> None:
    (tmp_path / "soft.csv").symlink_to(name)
    (tmp_path / "softer.csv").symlink_to("soft.csv")
    for path in (name, "soft.csv", "softer.csv"):
        for call in (f'table("{path}")', f'counts("{path}")'):
            result = Session(cwd=tmp_path).attempt(Source("p.jst", f"t = {call}\n"))
            assert [d.kind for d in result.diagnostics] == ["DataError"], path


@pytest.mark.attack("files that are no tables")
def test_pipes_and_files_without_a_name_are_no_tables(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    reading, writing = os.pipe()
    nameless = os.memfd_create("x")
    os.write(nameless, b"a\n1\n")
    with (tmp_path / "gone.csv").open("w+b") as gone:
        gone.write(b"a\n1\n")
        gone.flush()
        (tmp_path / "gone.csv").unlink()
        for name in ("pipe.csv", *(f"/proc/self/fd/{n}" for n in (reading, nameless, gone.fileno()))):
            result = Session(cwd=tmp_path).attempt(Source("p.jst", f't = table("{name}")\n'))
            assert [d.kind for d in result.diagnostics] == ["DataError"], name
    for number in (reading, writing, nameless):
        os.close(number)


@pytest.mark.attack("files that are no tables")
def test_a_private_file_has_no_other_name(tmp_path: Path) -> None:
    """A hard link, a link, and the descriptors by which it is open."""
    write(tmp_path / "owner.csv", ["secret"])
    os.link(tmp_path / "owner.csv", tmp_path / "hard.csv")
    (tmp_path / "soft.csv").symlink_to("owner.csv")
    session = Session(cwd=tmp_path)
    assert session.attempt(Source("p.jst", PRIVATE.format("csv"))).ok
    owner = str(tmp_path / "owner.csv")
    numbers = [n for n in os.listdir("/proc/self/fd") if os.path.realpath(f"/proc/self/fd/{n}") == owner]
    assert numbers
    for name in ("hard.csv", "soft.csv", *(f"/proc/self/fd/{n}" for n in numbers), f"/dev/fd/{numbers[0]}"):
        result = session.attempt(Source("p.jst", f't = table("{name}")\n'))
        assert [d.kind for d in result.diagnostics] == ["DataError" if "fd" in name else "PrivateValue"], name


@pytest.mark.attack("files that are no tables")
def test_whether_the_system_has_a_file_is_not_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A carriage return in one row, and the copy of a private file had no descriptor; rows that do not fit in memory
    are in a file of the spill folder."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    spilled = spill_root() / "tmp" / "30347.1"
    names = [f"/proc/self/fd/{n}" for n in range(3, 30)] + [f"/proc/self/fd/{n}/../{n}" for n in range(3, 9)]
    names += ["/dev/fd/3", "/dev/fd/299", *(str(spilled / name) for name in ("0.tmp", "1.tmp", "../30347.1/0.tmp"))]
    names += ["/proc/self/fd/*", "/proc/[0-9]*/stat", f"{spilled}/*", f"{spilled}/../../../t.*", "/pro[c]/self/fd/*",
              f"{str(spilled)[:-1]}[1]/*", f"{str(spilled)[:-1]}[1]/../../../t.*"]  # fmt: skip
    told: dict[str, set[str]] = {}
    for row in (b"c,3\n", b"c\r,3\n"):
        (tmp_path / "t.csv").write_bytes(b"id,x\na,1\n" + row)
        session = Session(cwd=tmp_path)
        head = 'private t = table("t.csv") described by {id: text, x: 0..9} protecting rows budget epsilon 1\n'
        assert session.attempt(Source("p.jst", head + "a = {{ select sum(x) from t with epsilon 1e-9 }}\n")).ok
        for name in names:
            (fault,) = session.attempt(Source("p.jst", f't = table("{name}")\n')).diagnostics
            told.setdefault(name, set()).add(fault.message.replace(f"`{name}`", "it"))
        session.close()
        spilled.mkdir(parents=True)
        (spilled / "0.tmp").write_bytes(b"a\n1\n")
    system = {"it is no file of a disk, but a part of the running system"}
    (other,) = [name for name in names if told[name] != system]
    assert other == "/pro[c]/self/fd/*" and told[other] == {"no file matches it"}


CLAUSES = "described by {income: 0..100} protecting rows budget epsilon 1"
SPEND = "x = {{{{ select count(*) from {} with epsilon 0.6 }}}}\n"
MEETINGS = {
    "a glob that holds it": ('"a.csv"', '"*.csv"'), "a list that holds it": ('"a.csv"', '["b.csv", "a.csv"]'),
    "lists that overlap": ('["a.csv", "b.csv"]', '["b.csv", "c.csv"]'), "one of a list": ('"[ab].csv"', '"b.csv"'),
    "another order": ('["a.csv", "b.csv"]', '["b.csv", "a.csv"]'),
    "links": ('["a.csv", "b.csv"]', '["soft", "c.csv"]'),
    "a hard link": ('"[ab].csv"', '"hard"'), "a compressed copy": ('"a.csv"', '"a.csv.gz"'),
    "what it was compressed from": ('"a.csv.gz"', '["a.csv", "c.csv"]'),
    "two tables of one list": ('"a.csv"', '"b.csv"'),
    "another encoding": ('"a.csv"', '"a.csv", encoding = "latin-1"'),
}  # fmt: skip


@pytest.mark.attack("one file by several names")
@pytest.mark.parametrize("name", MEETINGS)
@pytest.mark.parametrize("turned", [False, True])
def test_a_file_has_one_budget_whatever_list_it_stands_in(tmp_path: Path, name: str, turned: bool) -> None:
    """Two sources that have a file in common share what is left, or the second is refused; neither is public too."""
    for file in ("a.csv", "b.csv", "c.csv"):
        write(tmp_path / file, [file] * 3)
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress((tmp_path / "a.csv").read_bytes()))
    (tmp_path / "soft").symlink_to("b.csv")
    os.link(tmp_path / "b.csv", tmp_path / "hard")
    first, second = MEETINGS[name][::-1] if turned else MEETINGS[name]
    head = f"private p = table({first}) {CLAUSES}\n" + SPEND.format("p")
    apart = name == "two tables of one list"
    again = Session(cwd=tmp_path).attempt(
        Source("p.jst", head + f"private q = table({second}) {CLAUSES}\n" + SPEND.format("q"))
    )
    assert again.ok == apart
    if not apart:
        assert again.diagnostics[0].kind in ("BudgetExceeded", "DataError")
        total = {source["epsilon"]["spent"] for source in again.budget.values()}
        assert total <= {"0.6", "0"}
    session = Session(cwd=tmp_path)
    assert session.attempt(Source("p.jst", head)).ok
    public = session.attempt(Source("p.jst", f"t = table({second})\nprint({{{{ select count(*) from t }}}})\n"))
    assert public.ok == apart and (apart or [d.kind for d in public.diagnostics] == ["PrivateValue"])


@pytest.mark.attack("one file by several names")
def test_a_table_has_each_file_once(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", ["x"])
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress((tmp_path / "a.csv").read_bytes()))
    (tmp_path / "soft.csv").symlink_to("a.csv")
    for listed in ('["a.csv", "a.csv"]', '["a.csv", "soft.csv"]', '"*.csv"', '["a.csv.gz", "a.csv"]', '"a.csv*"'):
        result = Session(cwd=tmp_path).attempt(Source("p.jst", f"t = table({listed})\n"))
        assert "are one file" in result.diagnostics[0].message, listed


@pytest.mark.attack("one file by several names")
def test_a_table_of_a_database_is_private_in_any_case(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "a.db") as connection:
        connection.execute("CREATE TABLE People (income INT)")
        connection.execute("CREATE TABLE towns (income INT)")
    connection.close()
    session = Session(cwd=tmp_path)
    assert session.attempt(Source("p.jst", f'private p = table("a.db", "people") {CLAUSES}\n')).ok
    for part, kinds in (('"PEOPLE"', ["PrivateValue"]), ('"towns"', []), ('part = "People"', ["PrivateValue"])):
        result = session.attempt(Source("p.jst", f'print(len(table("a.db", {part})))\n'))
        assert [d.kind for d in result.diagnostics] == kinds, part


@pytest.mark.attack("files that are no tables")
def test_a_broken_stream_is_refused_before_a_charge(arena: Arena) -> None:
    """Whatever row stands last in it, and of many files too: it is no file of rows."""
    whole = gzip.compress(b"a\n" + b"1\n" * 50_000)
    for data in (whole[:-8], whole[:-4] + b"\0\0\0\0", whole[: len(whole) // 2], whole + b"junk"):
        arena.write({"t.csv.gz": data, "u.csv": b"a\n1\n"})
        for listed in ('"t.csv.gz"', '["u.csv", "t.csv.gz"]'):
            head = f"private t = table({listed}) described by {{a: 0..9}} protecting rows budget epsilon 9\n"
            seen = arena.see(head + "x = {{ select count(*) from t with epsilon 1 }}\n")
            assert seen.kinds == ["DataError"] and seen.draws == [] and not seen.result.budget


@pytest.mark.attack("files that are no tables")
def test_spilled_rows_are_for_nobody_and_no_table() -> None:
    engine = LocalDuckDb()
    engine.connection.execute("SET memory_limit = '80MB'")
    rows = "SELECT 'secret person ' || range || repeat('x', 99) AS name FROM range(1000000)"
    engine.connection.execute(f"CREATE TABLE x AS {rows}")
    folder = Path(engine._spill)
    spilled = [path for path in folder.rglob("*") if path.is_file() and path.name != "lock"]
    assert spilled and folder.stat().st_mode & 0o777 == folder.parent.stat().st_mode & 0o777 == 0o700
    for path in [*spilled, folder / "lock"]:
        with pytest.raises(Refusal):
            open_file(path)
    engine.close()
    assert not folder.exists()


def test_what_dead_processes_spilled_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files.tempfile, "gettempdir", lambda: str(tmp_path))
    living = SpillFolder()
    dead = Path(living.path).parent / "dead"
    dead.mkdir()
    (dead / "lock").touch()
    (dead / "rows").write_text("secret")
    other = SpillFolder()
    assert not dead.exists() and Path(living.path).exists()
    living.close()
    other.close()
    assert list(dead.parent.iterdir()) == []
    dead.parent.chmod(0o755)
    with pytest.raises(Refusal):
        SpillFolder()


_SPILLING = """
import sys, time
from jostle.readers.duckdb import LocalDuckDb
engine = LocalDuckDb("40MB")
rows = "SELECT 'secret person ' || range || repeat('x', 99) AS name FROM range(900000)"
engine.connection.execute(f"CREATE TABLE x AS {rows}")
print(engine._spill, flush=True)
time.sleep(600)
"""


def test_what_a_killed_process_spilled_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _SPILLING], env=os.environ | {"TMPDIR": str(tmp_path)}, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        with ending(process):
            folder = Path(process.stdout.readline().decode().strip())
        process.kill()
    left = [path for path in folder.rglob("*") if path.is_file() and path.name != "lock"]
    assert any(b"secret person" in path.read_bytes() for path in left)
    monkeypatch.setattr(files.tempfile, "gettempdir", lambda: str(tmp_path))
    SpillFolder().close()
    assert list(folder.parent.iterdir()) == []


def test_a_spill_folder_is_not_removed_while_a_child_uses_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files.tempfile, "gettempdir", lambda: str(tmp_path))
    folder = SpillFolder()
    with (Path(folder.path) / "lock").open() as lock, pytest.raises(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    made: list[SpillFolder] = []
    threads = [threading.Thread(target=lambda: made.append(SpillFolder())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=900)
    assert all(Path(one.path).exists() for one in [folder, *made])
    for one in [folder, *made]:
        one.close()


def test_readers_of_one_file_do_not_disturb_each_other(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(bytes(range(256)) * 9000)
    file = open_file(tmp_path / "x")
    with reader_of(file) as one, reader_of(file, b"tail") as other:
        assert one.read(3) == other.read(3) == b"\0\1\2"
        assert other.seek(-6, os.SEEK_END) and other.read() == b"\xfa\xfbtail" and other.read() == b""
        assert one.read(2) == b"\3\4" and len(one.read()) == 256 * 9000 - 5


def test_a_header_of_very_many_names_is_read_once() -> None:
    """The names that stand once were sought anew for each name: of 1,000 columns that took 9 s, of 20,000 days."""
    header = Header((*[f"v{i}" for i in range(20_000)], "twice", "", "twice"), ",", "utf-8")
    assert len(header.readable) == 20_000 and [name for name, _ in header.unread] == ["twice", ""]


@pytest.mark.attack("files and links")
@pytest.mark.parametrize("source", ['table("{}.csv")', 'counts("{}.npy")', 'table("*{}*.csv")', 'table(["{}.csv"])'])
@pytest.mark.parametrize("name", ["\\ud800", "a\\u0000b", "a" * 5000])
@pytest.mark.parametrize("private", [True, False])
def test_what_the_system_takes_for_no_path_is_refused(
    source: str, name: str, private: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a surrogate pair, NUL and 5,000 letters were internal errors."""
    monkeypatch.setattr(LOG, "disabled", True)  # a worker of pytest hands on no line with such a sign
    clauses = " described by {a: 0..9}" * ("table" in source) + " protecting rows budget epsilon 1"
    program = f"{'private ' * private}p = {source.format(name)}{clauses * private}\nrelease x = 1\n"
    result = Session().attempt(Source("p", program))
    assert result.diagnostics[0].kind == "DataError" and result.budget == {}
