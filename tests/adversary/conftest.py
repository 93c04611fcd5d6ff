"""The arena as a fixture, and the table of attacks that the suite prints when it ends."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from arena import Arena

from jostle.source import Source
from jostle.tools.session import Result, Session

Cli = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="session", autouse=True)
def grammar() -> None:
    """The grammar's table, read from the ordinary cache before attacks get caches of their own."""
    from jostle.syntax import parse

    parse(Source("p.jst", "x = 1"))


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache and a ledger of its own for every attack."""
    monkeypatch.setenv("JOSTLE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("JOSTLE_LEDGER", str(tmp_path / "ledger.db"))
    monkeypatch.delenv("JOSTLE_DEBUG", raising=False)


@pytest.fixture
def arena(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Arena:
    return Arena(tmp_path, monkeypatch)


@pytest.fixture
def attempt(tmp_path: Path) -> Callable[..., Result]:
    """Runs a program with real noise; keywords are CSV files to write first."""

    def call(program: str, session: Session | None = None, **files: str) -> Result:
        for name, text in files.items():
            (tmp_path / f"{name}.csv").write_text(text, encoding="utf-8")
        return (session or Session(cwd=tmp_path)).attempt(Source("p.jst", program))

    return call


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Cli:
    """The command line, in process, in a given folder: exit status, standard output, standard error."""
    from jostle.tools.entry import main

    def call(folder: Path, *words: str) -> tuple[int, str, str]:
        monkeypatch.chdir(folder)
        capfd.readouterr()
        status = main(list(words))
        told = capfd.readouterr()
        return status, told.out, told.err

    return call


# The table -----------------------------------------------------------------------------------------


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "attack(family): an attack that has to be refused or harmless")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        mark = item.get_closest_marker("attack")
        if mark is not None:
            item.user_properties.append(("attack", mark.args[0]))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    held: Counter[str] = Counter()
    tried: Counter[str] = Counter()
    for outcome, reports in terminalreporter.stats.items():
        for report in reports:
            for name, family in getattr(report, "user_properties", ()):
                if name == "attack" and outcome in ("passed", "failed", "error", "xfailed"):
                    tried[family] += 1
                    held[family] += outcome == "passed"
    if not tried:
        return
    terminalreporter.section("attacks", sep="-")
    for family in sorted(tried):
        terminalreporter.line(f"{family:<58} {held[family]:>3} of {tried[family]:>3} held")
    terminalreporter.line(f"{'all':<58} {sum(held.values()):>3} of {sum(tried.values()):>3} held")


@pytest.fixture(autouse=True)
def unpriced(monkeypatch: pytest.MonkeyPatch) -> None:
    """No program is refused for its price before it runs: it is the kernel that is under test."""
    monkeypatch.setattr("jostle.tools.session.Session._affordable", lambda *_: None)
