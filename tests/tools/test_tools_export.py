"""`jostle run --save NAME=PATH`: a release as a file, whole or not at all, and refused before anything is spent."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jostle.diagnostics import Refusal
from jostle.kernels.graphical.domain import Domain
from jostle.kernels.graphical.model import SyntheticRows
from jostle.kernels.noisy_array import NoiseModel, with_noise
from jostle.noise_laws import Laplace
from jostle.run.values import Grouped, JSet, Record
from jostle.tools.export import Export, sheet

Call = Callable[..., tuple[int, str, str]]

PRIVATE = """param stop = false
private people = table("people.csv") described by {age: 0..9, sex: {"F", "M"}} protecting rows budget epsilon 1
by_sex = {{ select count(*) as n from people groupby sex with epsilon 1 }}
release by_sex
if stop: assert sum(by_sex.n) == 0.5
release fine = {a: [1, 2], b: ["x", none]}
release none_such = [3, [4]]
"""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    from jostle.tools.entry import main

    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text("age,sex\n" + "3,F\n4,M\n" * 50)
    Path("p.jst").write_text(PRIVATE)

    def call(*words: str) -> tuple[int, str, str]:
        status = main(["run", "p.jst", *words])
        told = capsys.readouterr()
        return status, told.out, told.err

    return call


def left_over() -> list[str]:
    return sorted(p.name for p in Path().iterdir() if p.name not in ("p.jst", "people.csv"))


def test_releases_become_files(run: Call) -> None:
    Path("usual").touch()
    status, out, err = run("--save", "by_sex=a.csv", "--save", "fine=b.csv")
    assert (status, err) == (0, "") and "saved  a.csv  (2 rows, 4 columns)" in out
    rows = list(csv.DictReader(io.StringIO(Path("a.csv").read_text())))
    assert list(rows[0]) == ["sex", "n", "n_low", "n_high"]
    assert all(float(row["n_low"]) < int(row["n"]) < float(row["n_high"]) for row in rows)
    assert [row["sex"] for row in rows] == ["F", "M"] and all(abs(int(row["n"]) - 50) < 60 for row in rows)
    assert Path("b.csv").read_text() == "a,b\n1,x\n2,\n"
    assert left_over() == ["a.csv", "b.csv", "usual"]
    assert Path("a.csv").stat().st_mode == Path("usual").stat().st_mode


def spent(out: str) -> float:
    return float(json.loads(out)["budget"].get("people", {"epsilon": {"spent": "0"}})["epsilon"]["spent"])


@pytest.mark.parametrize(("words", "kind", "said"), [
    (["--save", "bysex=a.csv"], "NameError", "never releases `bysex`"),
    (["--save", "by_sex=a.txt"], "DataError", "does not say of what format"),
    (["--save", "by_sex=no/where/a.csv"], "DataError", "cannot be written: no such file or directory"),
    (["--save", "by_sex=people.csv"], "DataError", "there already"),
    (["--save", "by_sex=folder.csv"], "DataError", "is a folder"),
    (["--save", "by_sex=a.csv", "--save", "by_sex=b.csv"], "NameError", "twice"),
    (["--save", "by_sex=a.csv", "--save", "fine=./a.csv"], "DataError", "two releases"),
])  # fmt: skip
def test_what_cannot_be_saved_is_refused_before_anything_is_spent(
    run: Call, words: list[str], kind: str, said: str
) -> None:
    Path("folder.csv").mkdir()
    Path("t.jsonl").write_text("an earlier run\n")
    status, out, _ = run(*words, "--format", "json", "--trace", "t.jsonl")
    error = json.loads(out)["error"]
    assert (status, error["kind"]) == (1, kind) and said in error["message"] and error["help"]
    assert Path("t.jsonl").read_text() == "an earlier run\n"
    assert left_over() == ["folder.csv", "t.jsonl"] and Path("people.csv").read_text().startswith("age")


def test_a_folder_that_takes_no_files(run: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(**_: Any) -> Any:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.mkstemp", closed)
    status, out, err = run("--save", "by_sex=a.csv")
    assert status == 1 and "`a.csv` cannot be written: permission denied" in err and "released" not in out


def test_nothing_is_overwritten_unless_it_is_said(run: Call) -> None:
    Path("a.csv").write_text("mine\n")
    assert run("--save", "fine=a.csv")[0] == 1 and Path("a.csv").read_text() == "mine\n"
    assert run("--save", "fine=a.csv", "--overwrite")[0] == 0 and Path("a.csv").read_text().startswith("a,b\n")
    assert run("--overwrite")[0] == 2


def test_a_run_that_fails_keeps_what_it_released(run: Call) -> None:
    """It has been paid for; what was not reached leaves no file."""
    status, out, err = run("--set", "stop=true", "--save", "by_sex=a.csv", "--save", "fine=b.csv")
    assert status == 1 and "AssertionFailed" in err and "b.csv" not in out + err
    assert left_over() == ["a.csv"]


def test_what_is_no_table_is_said_after_the_run(run: Call) -> None:
    status, out, _ = run("--save", "none_such=a.csv", "--save", "fine=b.csv", "--format", "json")
    said = json.loads(out)
    assert status == 1 and not said["ok"] and said["released"]["none_such"] == [3, [4]]
    assert "is a list and no table" in said["error"]["message"] and left_over() == ["b.csv"]


def test_a_name_that_this_run_did_not_come_by(run: Call) -> None:
    Path("p.jst").write_text("if 1 > 2: release x = [1]\n")
    status, _, err = run("--save", "x=a.csv")
    assert status == 1 and "did not release `x`" in err and left_over() == []


def test_a_module_may_release(run: Call) -> None:
    Path("beside.jst").write_text("def out(v):\n    release x = v\n")
    Path("p.jst").write_text("use beside\ndone = out([1, 2])\n")
    assert run("--save", "x=a.csv")[0] == 0 and Path("a.csv").read_text() == "x\n1\n2\n"


def test_a_program_with_an_error_is_told_as_without(run: Call) -> None:
    Path("p.jst").write_text("x = = 1\n")
    status, _, err = run("--save", "x=a.csv")
    assert status == 1 and "SyntaxError" in err and left_over() == []


def test_a_simulation_saves_nothing(run: Call) -> None:
    status, out, _ = run("--simulate", "--save", "by_sex=a.csv")
    assert status == 0 and "[simulated, seed 1] a simulation saves nothing: a.csv would have 2 rows" in out
    assert left_over() == []


def test_a_file_that_came_meanwhile_is_kept(tmp_path: Path) -> None:
    saving = Export([("x", str(tmp_path / "a.csv"))], ["x"], overwrite=False)
    (tmp_path / "a.csv").write_text("another's\n")
    told, wrong = saving.save({"x": [1.0]}, ok=True)
    saving.close()
    assert told == [] and "there already" in wrong[0].message
    assert [p.name for p in tmp_path.iterdir()] == ["a.csv"] and (tmp_path / "a.csv").read_text() == "another's\n"


@pytest.mark.skipif(sys.platform == "win32", reason="a full disk is made by /dev/full")
def test_a_disk_that_is_full(tmp_path: Path) -> None:
    saving = Export([("x", str(tmp_path / "a.csv"))], ["x"], overwrite=False)
    (part,) = tmp_path.iterdir()
    part.unlink()
    part.symlink_to("/dev/full")
    told, wrong = saving.save({"x": [1.0] * 5000}, ok=True)
    saving.close()
    assert told == [] and "no space left" in wrong[0].message and not list(tmp_path.iterdir())


@pytest.mark.parametrize(("value", "text"), [
    (Grouped({"k": ["a", "b"], "n": [1.0, 2.5]}, 1), "k,n\na,1\nb,2.5\n"),
    ([Record(a=1.0, b=True), Record(a=None, b=False)], "a,b\n1,true\n,false\n"),
    (Record(a=np.array([0.5, 2.0]), b=JSet(["x", "y"])), "a,b\n0.5,x\n2,y\n"),
    (np.array([1.0, np.inf]), "v\n1\n\"\"\n"),
    ([[1.0, 2.0], [3.0, 4.0]], "v_1,v_2\n1,2\n3,4\n"),
    (['say "a,b"', "two\nlines"], 'v\n"say ""a,b"""\n"two\nlines"\n'),
    ([], "v\n"),
    (SyntheticRows(Domain.of({"s": ["F", "M"], "n": 3}), np.array([[0, 2], [1, 0]])), "s,n\nF,2\nM,0\n"),
])  # fmt: skip
def test_values_as_columns(value: Any, text: str) -> None:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(sheet("v", value).lines())
    assert out.getvalue() == text


@pytest.mark.parametrize("ending", ["tsv", "json", "jsonl", "parquet", "arrow", "feather"])
def test_other_formats_hold_the_same_table(tmp_path: Path, ending: str) -> None:
    """As pandas reads them: whole numbers, numbers, truths, texts, and none in each."""
    values = Grouped({
        "n": [1.0, None, 3.0], "x": [0.5, np.inf, 2.0], "ok": [True, False, None], "s": ["a\t,\"", None, "é"],
        "mixed": [1.0, "a", None], "day": [date(2024, 2, 29), None, date(1, 1, 1)],
    }, 1)  # fmt: skip
    path = tmp_path / f"a.{ending}"
    export = Export([("v", str(path))], ["v"], overwrite=False)
    notes, wrong = export.save({"v": values}, ok=True)
    assert not wrong and "3 rows, 6 columns" in notes[0] and [p.name for p in tmp_path.iterdir()] == [path.name]
    if ending in ("json", "jsonl"):
        text = path.read_text()
        rows = json.loads(text) if ending == "json" else [json.loads(line) for line in text.split("\n")[:-1]]
        columns = {name: [row[name] for row in rows] for name in rows[0]}
    elif ending == "tsv":
        (_, first, second, _) = csv.reader(path.open(newline=""), delimiter="\t")
        assert first == ["1", "0.5", "true", 'a\t,"', "1", "2024-02-29"] and second == ["", "", "false", "", "a", ""]
        return
    else:
        read = pq.read_table(path) if ending == "parquet" else pa.ipc.open_file(path.read_bytes()).read_all()
        columns = read.to_pydict()
        assert [str(t) for t in read.schema.types] == ["int64", "double", "bool", "string", "string", "date32[day]"]
        columns["day"] = [day and day.isoformat() for day in columns["day"]]
        columns["mixed"][0] = int(columns["mixed"][0])
    assert columns == {
        "n": [1, None, 3], "x": [0.5, None, 2], "ok": [True, False, None], "s": ["a\t,\"", None, "é"],
        "mixed": [1, "a", None], "day": ["2024-02-29", None, "0001-01-01"],
    }  # fmt: skip


@pytest.mark.parametrize("value", [
    None, Record(a=[1.0], b=[1.0, 2.0]), Record(a=[1.0], b=2.0), [Record(a=1.0), Record(b=1.0)],
    [[1.0], [1.0, 2.0]], [1.0, [2.0]], [Record(a=[1.0])], Record(),
])  # fmt: skip
def test_what_is_no_table(value: Any) -> None:
    with pytest.raises(Refusal, match="no table"):
        sheet("v", value)


@pytest.mark.parametrize(("value", "columns"), [
    (3.0, {"v": [3.0]}), ("text", {"v": ["text"]}), (date(2024, 2, 29), {"v": [date(2024, 2, 29)]}),
    (Record(n=1.0, day=date(2024, 2, 29)), {"n": [1.0], "day": [date(2024, 2, 29)]}),
    ([Record(n=1.0, day=date(2024, 2, 29))], {"n": [1.0], "day": [date(2024, 2, 29)]}),
])  # fmt: skip
def test_one_cell_and_one_record_are_a_row_and_dates_are_cells(value: Any, columns: dict[str, Any]) -> None:
    assert {name: list(column) for name, column in sheet("v", value).columns.items()} == columns


def test_a_matrix_has_the_ends_of_its_cells() -> None:
    """It was saved as if it had no noise."""
    values = with_noise(np.arange(6.0).reshape(2, 3), NoiseModel(Laplace(2.0)))
    columns = sheet("m", values).columns
    assert list(columns) == [f"m_{i}{end}" for i in (1, 2, 3) for end in ("", "_low", "_high")]
    for i in (1, 2, 3):
        values, low, high = (np.array(columns[f"m_{i}{end}"]) for end in ("", "_low", "_high"))
        for wide in (values - low, high - values):
            assert wide == pytest.approx(np.full(2, 2 * np.log(20)), rel=0.01)
    assert columns["m_2"] == (1.0, 4.0)
