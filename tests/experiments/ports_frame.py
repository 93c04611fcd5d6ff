"""What a port of a published analysis is: a program, the tables that it runs on, and its answers beside the truth.

The ports themselves are in `ports.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jostle.tools.session import Result, Session
from tests.experiments import ports_data

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "tests" / "programs" / "ports"
Tables = dict[str, Any]


@dataclass(frozen=True)
class Answer:
    """A number of a program, the truth, and the 95 % half-width between them: `reported` by the run, or what is known
    of the method."""

    what: str
    value: float
    truth: float
    error: float = 0.0
    reported: bool = True

    def held(self) -> bool:
        """Within six half-widths: beyond twelve deviations of Gaussian noise, and once in 10⁷ runs of Laplace's."""
        return abs(self.value - self.truth) <= 6 * self.error + 1e-9

    def __str__(self) -> str:
        margin = f" ± {_figures(float(f'{self.error:.2g}'))}" if self.reported and self.error else ""
        return f"{self.what}: {_figures(self.value)}{margin} for {_figures(self.truth)}"


def _figures(number: float) -> str:
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.5g}"


Answers = Iterator[Answer]


@dataclass(frozen=True)
class Port:
    """`of` are the analyses of the list of 158 or of that of 56 which the program answers, `was` and `now` its verdict;
    `published` is the error of the publication's method."""

    name: str
    of: str
    was: str
    now: str
    answers: Callable[[Tables, Result], Answers]
    published: Callable[[Tables], str]
    tables: str

    def run(self) -> tuple[Tables, Result]:
        """The program on its tables."""
        tables, session = getattr(ports_data, self.tables)(), Session(look=False)
        for name, table in tables.items():
            session.bind(name, table)
        return tables, session.run(PROGRAMS / f"{self.name}.jst")


PORTS: dict[str, Port] = {}


def port(of: str, was: str, published: str | Callable[[Tables], str], now: str = "direct", tables: str = "") -> Any:
    def add(answers: Callable[[Tables, Result], Answers]) -> Any:
        said = published if callable(published) else lambda _: published
        name = answers.__name__
        PORTS[name] = Port(name, of, was, now, answers, said, tables or name)
        return answers

    return add


def column(result: Result, table: Any, name: str, truth: Any) -> Answers:
    """A noisy column of a grouped result, group by group."""
    frame = result[table] if isinstance(table, str) else table
    ends = [frame[f"{name}_{end}"] for end in ("high", "low")] if f"{name}_low" in frame else [frame[name]] * 2
    for value, high, low, true in zip(frame[name], *ends, truth, strict=True):
        yield Answer(f"`{name}`", value, true, max(high - value, value - low))


def counts(table: Any, *keys: str) -> Any:
    """Rows by keys, in the order of their listed values where that is the alphabet's."""
    return table.groupby(list(keys)).size()


def one(result: Result, name: str, truth: float) -> Answer:
    margin = result.margins()[name]
    return Answer(f"`{name}`", margin["value"], truth, margin["error"])


def terms(report: Any, values: list[float], of: str = "value") -> Answers:
    for row, true in zip(report.rows, values, strict=True):
        yield Answer(str(row.get("term") or of), row["value"], true, row["error"])
