"""The event stream on disk: what is written is read again, and what is damaged is refused with its place."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from jostle.diagnostics import Refusal
from jostle.events import Stream
from jostle.tools.entry import main
from jostle.trace.jsonl import Writer, plain, read

sys.path.insert(0, str(Path(__file__).parent))
import real_runs

LINE = '{"v": 1, "id": 1, "parent": null, "kind": "run", "name": "x", "span": null}'


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    events, path = real_runs.events(), tmp_path / "run.jsonl"
    writer = Writer(path)
    for event in events:
        writer(event)
    writer.close()
    assert [e.as_json() for e in read(path)] == [plain(e.as_json()) for e in events]
    assert len(path.read_text(encoding="utf-8").splitlines()) == len(events)


def test_a_line_is_on_disk_as_soon_as_it_happened(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "run.jsonl", simulated=7)
    stream = Stream(listeners=[writer])
    with stream.within("run", "x"):
        stream.emit("release", "n", value=1)
        before = read(tmp_path / "run.jsonl")
    assert [e.kind for e in before] == ["release"] and before[0].fields == {"value": 1, "simulated": 7}
    writer.close()


def test_plain_values() -> None:
    odd = {
        1: np.float64(0.5),
        "a": np.arange(3),
        "b": (float("inf"), float("nan"), -0.0),
        "c": np.bool_(True),
        "d": {2},
    }
    said = plain(odd)
    assert said == {"1": 0.5, "a": [0, 1, 2], "b": ["inf", "nan", 0.0], "c": True, "d": [2]}
    assert json.loads(json.dumps(said, allow_nan=False)) == said
    assert plain(np.array([[1.5, -np.inf]])) == [[1.5, "-inf"]] and plain(Path("x")) == "x"


@pytest.mark.parametrize(
    ("text", "said", "line"),
    [
        ("", "holds no events", None),
        ("\n\n", "holds no events", None),
        (LINE + "\nnot json\n" + LINE, "is not JSON", 2),
        (LINE + "\n" + LINE[:30], "cut short", 2),
        (LINE + "\n[1]\n", "no event of a trace", 2),
        (LINE.replace('"id": 1, ', "") + "\n", "no event of a trace", 1),
        (LINE.replace('"v": 1', '"v": 99') + "\n", "version 99", 1),
        (LINE.replace('"id": 1', '"id": "1"') + "\n", "wrong type", 1),
        (LINE.replace('"id": 1', '"id": true') + "\n", "wrong type", 1),
        (LINE.replace('"span": null', '"span": ["a", 1]') + "\n", "no place", 1),
        (LINE.replace('"span": null', '"span": ["a", 1, 2, 3, null]') + "\n", "no place", 1),
        (LINE + "\n" + LINE + "\n", "on a second line", 2),
        ("[" * 100_000 + "\n", "is not JSON", 1),
        (LINE[:-1] + ', "x": "' + "[" * 9000 + '"}\n[]', "no event of a trace", 2),
    ],
)
def test_damage_is_refused_with_its_line(tmp_path: Path, text: str, said: str, line: int | None) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(Refusal) as caught:
        read(path)
    first = caught.value.first
    assert first.kind == "DataError" and said in first.message and first.help
    assert (first.span.line if first.span else None) == line


def test_files_that_are_no_trace(tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    for path, said in [
        (tmp_path / "bytes", "not UTF-8"),
        (tmp_path, "cannot be read"),
        (tmp_path / "no", "there is no"),
    ]:
        with pytest.raises(Refusal, match=said):
            read(path)
    with pytest.raises(Refusal, match="cannot be written"):
        Writer(tmp_path / "no" / "run.jsonl")


@pytest.mark.parametrize("held", [b"age,dep\n31,a\n", b"SQLite format 3\0", b'{"v": 2}\n', b"\xff"])
def test_a_trace_is_not_written_over_data_or_a_ledger(tmp_path: Path, held: bytes) -> None:
    place = tmp_path / "people.csv"
    place.write_bytes(held)
    with pytest.raises(Refusal, match="is there already, and is something else"):
        Writer(place)
    assert place.read_bytes() == held


def test_a_trace_is_written_over_another_and_over_an_empty_file(tmp_path: Path) -> None:
    place = tmp_path / "run.jsonl"
    for held in ("", '{"v": 1, "id": 1, "parent": null}\n'):
        place.write_text(held)
        Writer(place).close()
        assert not place.read_text()


@pytest.mark.parametrize("option", ["--html", "--otlp"])
def test_what_is_made_of_a_trace_is_not_written_over_data(tmp_path: Path, option: str) -> None:
    run, place = tmp_path / "run.jsonl", tmp_path / "people.csv"
    (tmp_path / "p.jst").write_text("print(1)\n")
    assert main(["run", str(tmp_path / "p.jst"), "--trace", str(run)]) == 0
    place.write_text("age,dep\n31,a\n")
    assert main(["trace", str(run), option, str(place)]) != 0
    assert place.read_text() == "age,dep\n31,a\n"
    place.unlink()
    assert main(["trace", str(run), option, str(place)]) == main(["trace", str(run), option, str(place)]) == 0
