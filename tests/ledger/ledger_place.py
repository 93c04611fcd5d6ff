"""A folder with a file of people, a ledger beside it, and programs run by sessions that use that ledger."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jostle.source import Source
from jostle.tools.session import Result, Session

ROWS = ["age,sex", *(f"{17 + k % 70},{'F' if k % 2 else 'M'}" for k in range(400))]
DATASET = 'private people = dataset("people")\n'


class Place:
    """The folder. `run` is a program in a session of its own, `data` an owner's command."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self.path, self._capsys = folder, folder / "ledger.db", capsys
        self.ledger: str | Path = self.path
        (folder / "people.csv").write_text("\n".join(ROWS) + "\n", encoding="utf-8")

    def session(self, **more: Any) -> Session:
        return Session(ledger=self.ledger, cwd=self.folder, **more)

    def run(self, program: str, session: Session | None = None) -> Result:
        return (session or self.session()).attempt(Source(str(self.folder / "p.jst"), program))

    def data(self, *words: str) -> tuple[int, str, str]:
        from jostle.tools.entry import main

        at = [] if words[0] == "check" else ["--ledger", str(self.ledger)]
        status = main(["data", *words, *at])
        told = self._capsys.readouterr()
        return status, told.out, told.err

    def register(self, budget: str = "epsilon 3", protecting: str = "rows", name: str = "people") -> None:
        schema = '{age: 17..90, sex: {"F", "M"}}'
        words = ("register", name, str(self.folder / f"{name}.csv"), "--schema", schema)
        status, _, said = self.data(*words, "--protecting", protecting, "--budget", budget)
        assert status == 0, said


def kind(result: Result) -> str:
    return result.diagnostics[0].kind if result.diagnostics else "fine"
