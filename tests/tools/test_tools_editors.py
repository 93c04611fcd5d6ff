"""Editors and notebooks: what a document answers, a server over its real protocol, colours, and cells in a kernel."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jostle.tools.editors.document import Document
from jostle.tools.editors.lexer import JostleLexer
from jostle.tools.editors.notebook import Notebook, from_python
from jostle.tools.editors.textmate import textmate

PEOPLE = """private people = table("people.csv")
    described by {age: 0..99, sex: {"F", "M"}}
    protecting rows
    budget epsilon 1
def twice(x): return 2 * x
n = {{ select count(*) from people with epsilon 0.1 }}
release n
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text("age,sex\n" + "".join(f"{k % 90},F\n" for k in range(100)))
    return tmp_path


# A document -------------------------------------------------------------------------------------------


def test_faults_are_all_told_and_go_when_they_are_mended(folder: Path) -> None:
    document = Document(str(folder / "p.jst"))
    assert [f.kind for f in document.change(PEOPLE + "print(people)\nx = nowhere\n")] == ["PrivateValue", "NameError"]
    assert document.change(PEOPLE) == []


def test_hovers_say_kind_columns_and_cost(folder: Path) -> None:
    document = Document(str(folder / "p.jst"))
    document.change(PEOPLE)
    said = document.hover(0, 10)
    assert "`people`: a private source" in said and "columns: age, sex" in said and "0.1" in said
    assert document.hover(4, 6) == "`twice`: a function of (x)"
    assert "public, once paid for" in document.hover(5, 0)
    assert document.hover(5, 12) == "" and document.hover(99, 0) == ""


def test_definitions_and_completions_outlive_a_broken_text(folder: Path) -> None:
    document = Document(str(folder / "p.jst"))
    document.change(PEOPLE)
    document.change(PEOPLE + "m = {{ select count(*) from peo")
    span = document.definition(5, 29)
    assert span is not None and (span.line, span.column) == (1, 1)
    assert "people" in {c.word for c in document.completions(7, 31)[1]}
    assert document.format() is None


def test_formatting(folder: Path) -> None:
    document = Document("p.jst")
    document.change("x=1\n")
    assert document.format() == "x = 1\n"


# The server, as an editor speaks to it ------------------------------------------------------------------


def message(**fields: Any) -> bytes:
    body = json.dumps({"jsonrpc": "2.0", **fields}).encode()
    return f"Content-Length: {len(body)}\r\n\r\n".encode() + body


def answers(stream: Any) -> Iterator[dict[str, Any]]:
    while True:
        length = 0
        while (line := stream.readline().strip()) != b"":
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        if not length:
            return
        yield json.loads(stream.read(length))


def test_a_server_publishes_faults_and_formats(folder: Path) -> None:
    uri = (folder / "p.jst").as_uri()
    opened = {"textDocument": {"uri": uri, "languageId": "jostle", "version": 1, "text": "x=1\nprint(y)\n"}}
    server = subprocess.Popen(
        [sys.executable, "-m", "jostle", "lsp"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert server.stdin is not None and server.stdout is not None
    try:
        server.stdin.write(
            message(id=1, method="initialize", params={"capabilities": {}, "rootUri": None, "processId": None})
        )
        server.stdin.write(message(method="initialized", params={}))
        server.stdin.write(message(method="textDocument/didOpen", params=opened))
        options = {"tabSize": 4, "insertSpaces": True}
        server.stdin.write(
            message(id=2, method="textDocument/formatting", params={"textDocument": {"uri": uri}, "options": options})
        )
        server.stdin.flush()
        faults: list[str] = []
        for said in answers(server.stdout):
            if said.get("method") == "textDocument/publishDiagnostics":
                faults = [d["code"] for d in said["params"]["diagnostics"]]
            if said.get("id") == 2:
                assert said["result"][0]["newText"] == "x = 1\nprint(y)\n"
                break
        assert faults == ["NameError"]
    finally:
        server.kill()
        server.communicate()


# Colours ------------------------------------------------------------------------------------------------


def test_pygments_knows_the_language() -> None:
    from pygments.lexers import get_lexer_by_name
    from pygments.token import Error, Keyword

    found = list(JostleLexer().get_tokens(PEOPLE))
    assert "".join(text for _, text in found) == PEOPLE
    assert (Keyword, "private") in found and not any(kind is Error for kind, _ in found)
    assert isinstance(get_lexer_by_name("jostle"), JostleLexer)


def test_the_textmate_grammar_colours_by_the_same_words() -> None:
    grammar = json.loads(textmate())
    names = {p["name"] for p in grammar["patterns"]}
    assert {"keyword.control.jostle", "comment.line.jostle", "keyword.other.jostle"} <= names
    assert any("MkChoiceMaker" in p["match"] for p in grammar["patterns"])


# Notebooks ----------------------------------------------------------------------------------------------


def test_names_go_both_ways(folder: Path) -> None:
    import pandas as pd

    names: dict[str, Any] = {"share": 0.25, "frame": pd.DataFrame({"age": [20, 30, 40]}), "odd": object()}
    notebook = Notebook(names)
    shown = notebook.cell(
        'private p = bound("frame") described by {age: 0..99} protecting rows budget epsilon 1\n'
        "n = {{ select count(*) from p with epsilon share }}\nrelease n\nprint(share)\n"
    )
    assert isinstance(names["n"], float) and shown.texts == ["0.25"] and shown.refused is None
    assert "ε 0.25 of 1 spent" in repr(shown.report)
    assert "ε 0.25" in shown.report._repr_html_() and "<h3>n" in shown.report._repr_html_()


def test_a_refusal_is_the_diagnostic_alone_and_the_session_goes_on(folder: Path) -> None:
    notebook = Notebook({"frame": object()})
    refused = notebook.cell("x = nowhere\n", 8).refused
    assert refused is not None and refused._render_traceback_()[:2] == [
        "NameError: `nowhere` is not defined", "  ┌─ cell 8:1:5"
    ]  # fmt: skip
    assert notebook.cell("x = 2\nx + 1\n").value == 3.0
    unbound = notebook.cell("n = {{ select count(*) from frame }}\n").refused
    assert unbound is not None and "`frame` is Python's" in str(unbound) and 'bound("frame")' in unbound.first.help


def test_commands_of_the_shell_are_known_to_notebooks(folder: Path) -> None:
    notebook = Notebook({})
    assert notebook.command(":help dawa").startswith("dawa(db, queries)")
    notebook.cell(PEOPLE)
    assert notebook.command(":cost {{ select count(*) from people with epsilon 0.3 }}") == "people: ε 0.3"
    assert "0.1 of 1 spent" in notebook.command(":budget")


def test_python_values_that_have_no_form_are_left_alone() -> None:
    assert from_python(object()) is None and from_python(True) is True
    assert from_python({"a": [1, "b"]}) == {"a": [1.0, "b"]}


def test_a_kernel_runs_cells_and_stops_at_a_refusal(folder: Path) -> None:
    """A real kernel, with nbclient: a cell sees what one before released, and a refused one ends the run."""
    import nbclient
    from nbformat.v4 import new_code_cell, new_notebook

    cell = (
        '%%jostle\nprivate people = table("people.csv") described by {age: 0..99} protecting rows budget epsilon 50\n'
    )
    cell += "n = {{ select count(*) from people with epsilon 50 }}\nrelease n\n"
    later = ["round(n / 10)", "two = %jostle 1 + 1\ntwo", "%jostle help(dawa)", "%%jostle\nx = nowhere", "'not run'"]
    book = new_notebook(cells=[new_code_cell(text) for text in ("%load_ext jostle", cell, *later)])
    client = nbclient.NotebookClient(book, timeout=120, kernel_name="python3", resources={"metadata": {"path": "."}})
    with pytest.raises(nbclient.exceptions.CellExecutionError, match="`nowhere` is not defined"):
        client.execute()
    assert "ε 50 of 50" in json.dumps(book.cells[1].outputs, ensure_ascii=False)
    assert [book.cells[at].outputs[0]["data"]["text/plain"] for at in (2, 3)] == ["10", "2.0"]
    assert book.cells[4].outputs[0]["text"].startswith("dawa(db, queries)")
    *_, fault = book.cells[5].outputs
    assert f"cell {book.cells[5].execution_count}:1:5" in fault["traceback"][1] and not any(
        "Traceback" in line for line in fault["traceback"]
    )
    assert book.cells[6].outputs == []
