"""What the documents tell an owner of data: registering a file, and a budget that outlives the run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jostle.tools.entry import main

ROOT = Path(__file__).resolve().parents[2]


def said(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    status = main([str(word) for word in words])
    captured = capsys.readouterr()
    assert status == 0, captured.err
    return captured.out


def test_a_registered_file_is_counted_across_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("JOSTLE_LEDGER", str(tmp_path / "ledger"))
    data = ROOT / "programs" / "data" / "people.csv"
    said(capsys, "data", "register", "people", data, "--schema", "{age: 16..79}", "--protecting", "rows",
         "--budget", "epsilon 3")  # fmt: skip
    program = tmp_path / "p.jst"
    for turn in (1, 2):
        program.write_text(
            'private people = dataset("people")\n'
            f"release n = {{{{ select count(*) from people where age > {turn} with epsilon 1 }}}}\n",
            encoding="utf-8",
        )
        result = json.loads(said(capsys, "run", program, "--format", "json"))
        assert result["budget"]["people"]["epsilon"] == {"total": "3", "spent": str(turn)}


def test_a_simulation_opens_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "p.jst"
    program.write_text(
        'private people = table("nowhere.csv") described by {age: 16..79} protecting rows budget epsilon 3\n'
        "print({{ select count(*) from people with epsilon 1 }})\n",
        encoding="utf-8",
    )
    lines = said(capsys, "run", program, "--simulate").splitlines()
    assert all(line.startswith("[simulated, seed 1]") for line in lines)
