"""What a run had measured when it failed is shown and kept: it has been paid for."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import jostle
from jostle.events import Event
from jostle.source import Source

PEOPLE = "private people = counts([300, 4000, 20, 5]) protecting rows budget epsilon 100\n"
MEASURED = "h = laplace(people) with epsilon 10\nk = 5\nrates = [x / 10 for x in h]\n"
FAILURES = {
    "a place of a list": "print(rates[k])\n", "a division": "print(k / (k - 5))\n", "a name": "print(h.nothing)\n",
    "a module": "use nothing_of_this_name\n", "an assertion": "assert 1 == 2\n",
    "a budget": "more = laplace(people) with epsilon 99.5\n", "a conversion": 'n = number("x" + "y") + 1\n',
}  # fmt: skip


@pytest.fixture(autouse=True)
def unforeseen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run fails where it does: what a check would refuse before is let through."""
    monkeypatch.setattr("jostle.tools.session.Session._affordable", lambda *_: None)
    monkeypatch.setattr("jostle.tools.session.Session._check", lambda *_: [])


@pytest.mark.parametrize("failure", FAILURES)
def test_what_was_measured_is_in_the_result(failure: str) -> None:
    session = jostle.Session()
    result = session.attempt(Source("p", PEOPLE + MEASURED + FAILURES[failure] + "release h\n"))
    assert not result.ok and set(result.measured) == {"h", "rates"}  # not `k`, which nobody paid for
    assert abs(result.measured["h"] - [300, 4000, 20, 5]).max() < 10
    assert len(result.margins()["h"]) == 4 and result.released == {}
    with pytest.raises(jostle.Refusal) as refused:
        session.run_text(PEOPLE + "release a = sum(laplace(people) with epsilon 1)\nb = a + 1\n" + FAILURES[failure])
    assert set(refused.value.result.released) == {"a"} and set(refused.value.result.measured) == {"b"}


def test_of_a_run_that_ends_well_nothing_is_unreleased() -> None:
    assert jostle.Session().run_text(PEOPLE + MEASURED).measured == {}


def test_names_of_functions_and_loops() -> None:
    """Of those that the failure ended; private tables, functions and arguments are no answers."""
    text = PEOPLE + (
        "def inner(c, eps) {\n    n = laplace(size(c)) with epsilon eps\n    return outside / (n - n)\n}\n"
        "def outer(c) {\n    first = laplace(size(c)) with epsilon 1\n    return inner(c, 2)\n}\n"
        "outside = 3\nfor i in 1..2 { last = laplace(size(people)) with epsilon i }\n"
        "other = people\nx = outer(people)\n"
    )
    result = jostle.Session().attempt(Source("p", text))
    assert set(result.measured) == {"last", "outer.first", "inner.n"}


def test_a_run_that_was_stopped() -> None:
    def stop(event: Event) -> None:
        if event.kind == "measure" and event.fields["epsilon"] == 2:
            raise KeyboardInterrupt

    session = jostle.Session(listeners=[stop])
    with pytest.raises(KeyboardInterrupt):
        session.run_text(PEOPLE + MEASURED + "second = laplace(people) with epsilon 2\n")
    assert set(session.so_far().measured) == {"h", "rates", "second"}  # what is raised waits for the name


@pytest.mark.parametrize("fault", [OSError, KeyboardInterrupt, MemoryError, ValueError])
@pytest.mark.parametrize("inside", [False, True])
def test_what_a_listener_raises_waits_for_the_answer_that_was_paid_for(
    fault: type[BaseException], inside: bool
) -> None:
    """A trace that found its disk full took the answer of the charge away of which it was to write."""

    def full(event: Event) -> None:
        if event.kind == "measure":
            raise fault

    in_function = "def f(c) {\n    y = laplace(c) with epsilon 1\n    return [y, laplace(c) with epsilon 1]\n}\n"
    text = in_function + "x = f(people)\n" if inside else "x = laplace(people) with epsilon 2\n"
    session = jostle.Session(listeners=[full])
    try:
        refused = session.attempt(Source("p", PEOPLE + text + "z = laplace(people) with epsilon 4\n")).diagnostics
        assert fault is MemoryError and refused[0].kind == "DataError"  # as any other end of memory
    except fault:
        pass
    after = session.so_far()
    assert set(after.measured) == {"x"} and after.budget["people"]["epsilon"]["spent"] == "2"
    assert not session.attempt(Source("q", "release one = 1\n")).diagnostics  # what was raised is over


@pytest.mark.parametrize("form", ["text", "json"])
def test_the_command_line_prints_and_keeps_it(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from jostle.tools.entry import main

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    Path("p.jst").write_text(PEOPLE + MEASURED + FAILURES["a division"], encoding="utf-8")
    assert main(["run", "p.jst", *(["--format", "json"] if form == "json" else [])]) == 1
    told = capsys.readouterr()
    assert "`jostle again` prints it" in told.err
    if form == "json":
        document: dict[str, Any] = json.loads(told.out)
        assert set(document["measured"]) == {"h", "rates"} and document["released"] == {}
        assert document["error"]["kind"] == "ValueError" and document["budget"]["people"]["epsilon"]["spent"] == "10"
    else:
        assert "measured, not released\n  h = [" in told.out and "± 0" in told.out
    assert main(["again"]) == 0
    again = capsys.readouterr().out
    assert "measured, not released\n  h = [" in again and "10 of 100 spent" in again and "rates = [" in again
    assert main(["again"]) == 0 and "nothing is kept" in capsys.readouterr().out


def test_a_simulation_keeps_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from jostle.tools.entry import main

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "p.jst").write_text(PEOPLE + MEASURED + FAILURES["a division"], encoding="utf-8")
    assert main(["run", str(tmp_path / "p.jst"), "--simulate"]) == 1
    assert "measured, not released" in capsys.readouterr().out and not (tmp_path / "state").exists()


def test_names_of_an_entry_that_failed_stay_in_the_shell() -> None:
    session = jostle.Session()
    session.execute(Source("entry 1", PEOPLE))
    with pytest.raises(jostle.Refusal):
        session.execute(Source("entry 2", "h = laplace(people) with epsilon 10\nassert h[0] > 1e9\n"))
    assert "h" in session.names()


def test_a_fault_of_jostle_after_a_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    def raising(*_: Any) -> None:
        raise ArithmeticError("secret")

    def plant(event: Event) -> None:
        if event.kind == "measure":
            monkeypatch.setattr("jostle.run.interpreter.Interpreter.truth", raising)

    session = jostle.Session(listeners=[plant])
    result = session.attempt(Source("p", PEOPLE + MEASURED + "if k > 1 { print(1) }\n"))
    assert result.diagnostics[0].kind == "InternalError" and set(result.measured) == {"h", "rates"}


# A stop at any line -------------------------------------------------------------------------------------

STEPS = {
    "a": "a = {{ select count(*) from people with epsilon 1 }}\n",
    "b": "release b = {{ select avg(age) as age from people group by city with epsilon 2 }}\n",
    "c": "def f(t, e) {\n    n = {{ select count(*) from t with epsilon e }}\n    return n\n}\nc = f(people, 4) + 1\n",
    "d": "d = [{{ select count(*) from people where age < k with epsilon 4 }} for k in [30, 60]]\n",
    "_": "{{ select sum(age) from people with epsilon 16 }}\n",
}
"""The name that each step gives its answer; what they cost are powers of 2, so that a sum says which were paid."""


@contextmanager
def stopped_at(line: int) -> Iterator[list[int]]:
    """Within it SIGINT comes at that line of ours; gives how many there were."""
    lines = [0]

    def trace(frame: Any, event: str, _: object) -> Any:
        if "/jostle/" not in frame.f_code.co_filename:
            return None
        lines[0] += event == "line"
        if event == "line" and lines[0] == line:
            signal.raise_signal(signal.SIGINT)
        return trace

    sys.settrace(trace)
    try:
        yield lines
    finally:
        sys.settrace(None)


def _by_session() -> tuple[jostle.Session, set[str]]:
    session = jostle.Session(look=False)
    try:
        result = session.run_text(TABLE + "".join(STEPS.values()) + "release done = 1\n")
    except KeyboardInterrupt:
        result = session.so_far()
    return session, set(STEPS) if "done" in result.values else {*result.values, *result.unreleased, "_"}


def _by_notebook() -> tuple[jostle.Session, set[str]]:
    from jostle.tools.editors.notebook import Notebook

    notebook = Notebook({})
    notebook.cell(TABLE + "".join(STEPS.values()))
    return notebook.session, set(notebook.session.names())


def _by_shell() -> tuple[jostle.Session, set[str]]:
    from jostle.tools.repl import Repl

    said: list[str] = []
    session = jostle.Session(look=False)
    shell = Repl(session, said.append, lambda refusal: said.append(str(refusal)))
    for entry in (TABLE, *STEPS.values()):
        shell.handle(entry)
    sums = {"_"} if any(line[:1].isdigit() or line[:2] == "-1" for line in said) else set()
    return session, (set(session.names()) - {"_"}) | sums


TABLE = (
    'private people = bound("people") described by {age: 0..99, city: {"a", "b"}} protecting rows budget epsilon 99\n'
)


@pytest.mark.parametrize("face", [_by_session, _by_notebook, _by_shell])
def test_a_stop_at_any_line_loses_no_answer_that_was_paid_for(
    face: Callable[[], tuple[jostle.Session, set[str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twenty-six stops of each face; the answer to what was charged has its name, or was said."""
    rows = {"age": [20.0, 40.0] * 90, "city": ["a", "b"] * 90}
    begin = jostle.Session.__init__

    def with_rows(self: jostle.Session, **more: Any) -> None:
        begin(self, **more)
        self.bind("people", rows)

    monkeypatch.setattr(jostle.Session, "__init__", with_rows)
    costs = dict(zip(STEPS, (1, 2, 4, 8, 16), strict=True))
    face()[0].close()
    with stopped_at(-1) as lines:
        face()[0].close()
    paid, many = set[str](), lines[0]
    for k in range(26):
        with stopped_at(many // 4 + many * k // 36):
            try:
                session, there = face()
            except KeyboardInterrupt:  # between two entries
                continue
        spent = session.budget().get("people", {"epsilon": {"spent": "0"}})["epsilon"]["spent"]
        lost = {name for name, cost in costs.items() if int(float(spent)) & cost} - there
        paid |= {spent}
        assert not lost, (k, spent)
        session.close()
    assert len(paid) >= 4
