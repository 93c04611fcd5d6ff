"""Kills of workers and the server under load: a few of the 500 that `python -m tests.serve.kills --count 500` makes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.serve import kills
from tests.serve.herd import SERVER, WORKER, Herd


@pytest.mark.slow
def test_kills_lose_no_answer_and_no_charge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[list[str]] = []
    checked = kills.checked

    def check(herd: kills.Herd, analysts: list[kills.Analyst]) -> object:
        result = checked(herd, analysts)
        asked = Counter(run["program"] for one in analysts for run in one.answers.values())
        mine, good = next(
            (one, run) for one in analysts for run in one.answers.values()
            if run["answer"]["ok"] and asked[run["program"]] == 1  # one that was asked again may have no charge
        )  # fmt: skip
        mine.answers[good["id"]] = {**good, "answer": {**good["answer"], "released": {"n": -1}}}
        looked.append(checked(herd, analysts)[0])  # and it sees what is wrong
        mine.answers[good["id"]] = {**good, "analyst": next(a.who for a in analysts if a is not mine)}
        looked.append(checked(herd, analysts)[0])
        return result

    monkeypatch.setattr(kills, "checked", check)
    done = kills.kills(Herd(tmp_path / "herd", seconds=4.0), 18, 7)
    assert done["wrong"] == [] and done["kills"] >= 9 and done["well"] >= 1
    assert {point for point in done["killed"] if not point.startswith("not")} & {*SERVER} and WORKER
    assert len(looked[0]) == 1 and "another one than was given" in looked[0][0]
    assert len(looked[1]) == 1 and "without its charge" in looked[1][0]
