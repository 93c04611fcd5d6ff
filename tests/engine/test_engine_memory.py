"""How much memory the database may take: told, or from the environment, or a quarter of the machine's."""

from __future__ import annotations

import pytest

from jostle.__main__ import main
from jostle.diagnostics import Refusal
from jostle.readers.duckdb import LocalDuckDb
from jostle.readers.limits import memory_limit
from jostle.tools.session import Session


def test_the_limit_is_what_is_told_before_the_environment_before_a_quarter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JOSTLE_MEMORY", raising=False)
    assert memory_limit(None) == "25%"
    monkeypatch.setenv("JOSTLE_MEMORY", "1.5 GiB")
    assert memory_limit(None) == "1.5GiB" and memory_limit(" 300mb ") == "300mb"
    engine = LocalDuckDb()
    assert engine.fetch("SELECT current_setting('memory_limit')") == [("1.5 GiB",)]
    engine.close()


@pytest.mark.parametrize("size", ["2", "0GB", "-1GB", "101%", "lots", "1e9 B", "nan%"])
def test_what_is_no_size_is_refused(
    size: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(Refusal, match="no size of memory"):
        Session(memory=size)
    assert main(["run", "p.jst", f"--memory={size}"]) == 2
    assert "no size of memory" in capsys.readouterr().err
    monkeypatch.setenv("JOSTLE_MEMORY", size)
    with pytest.raises(Refusal):
        Session()
