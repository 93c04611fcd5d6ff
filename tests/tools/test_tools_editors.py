"""Editors and notebooks: what a document answers, a server over its real protocol, colours, and cells in a kernel."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bounded import ending

from jostle.events import Event
from jostle.source import Source, Span
from jostle.syntax.parser import colour_tokens
from jostle.tools.editors.document import Document, changed
from jostle.tools.editors.lexer import JostleLexer
from jostle.tools.editors.lexer import command as textmate
from jostle.tools.editors.notebook import Notebook, from_python
from jostle.tools.editors.server import character_of, range_of, server
from jostle.tools.session import Session

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
    assert document.hover(5, 2) == "" and document.hover(99, 0) == ""


def test_definitions_and_completions_outlive_a_broken_text(folder: Path) -> None:
    document = Document(str(folder / "p.jst"))
    document.change(PEOPLE)
    document.change(PEOPLE + "m = {{ select count(*) from peo")
    span = document.definition(5, 29)
    assert span is not None and (span.line, span.column) == (1, 1)
    assert "people" in {c.word for c in document.completions(7, 31)[1]}
    assert document.format() is None


PROGRAM = (
    "use histograms\n"
    + PEOPLE.replace("(x): return 2 * x", "(x, times = 2): return times * x")
    + """rows = [x + n for x in 1..3]
for row in rows: print(row, twice(row, times = 3))
ages = histogram(people, x = age)
below = dawa(ages, prefixes(ages)) with epsilon 0.2
old = {{ select count(*) from people where age > 60 and sex == "F" with epsilon 0.1 }}
"""
)


def spot(text: str, nth: int = 0) -> tuple[int, int]:
    """The line and the column at which a text begins in `PROGRAM`, for the n-th time."""
    at = -1
    for _ in range(nth + 1):
        at = PROGRAM.index(text, at + 1)
    return PROGRAM.count("\n", 0, at), at - PROGRAM.rfind("\n", 0, at) - 1


@pytest.fixture
def program(folder: Path) -> Document:
    document = Document(str(folder / "p.jst"))
    assert document.change(PROGRAM) == []
    return document


def test_the_library_columns_and_words_are_documented(program: Document) -> None:
    said = program.hover(*spot("dawa("))
    assert "dawa(db, queries)" in said and "a quarter of epsilon" in said and "allotment" in said
    assert program.hover(*spot("age > 60")) == "`age`: a column of `people`, described as `0..99`"
    assert "public description" in program.hover(*spot("described")) and "{{ select" in program.hover(*spot("select"))
    span = program.definition(*spot("dawa("))
    assert span is not None and span.source.name.endswith("histograms.jst")
    assert span.source.line(span.line).startswith("def dawa(")
    column = program.definition(*spot("age > 60"))
    assert column is not None and (column.line - 1, column.column - 1) == spot("age: 0")


def test_signatures_know_the_argument(program: Document) -> None:
    line, column = spot("prefixes(ages))")
    library = program.signature(line, column)
    assert library is not None and (library.usage, library.active) == ("dawa(db, queries)", 1)
    own = program.signature(spot("3))")[0], spot("3))")[1])
    assert own is not None and own.parameters == ("x", "times") and own.active == 1
    assert program.signature(*spot("old =")) is None


def test_references_and_renames_keep_to_their_scope(program: Document) -> None:
    assert len(program.references(*spot("rows = ["))) == 2
    assert len(program.references(*spot("age > 60"))) == 3  # the description, the histogram and the condition
    places = program.rename(*spot("times = 2"), "factor")
    assert [(p.line - 1, p.column - 1) for p in places] == [spot("times", n) for n in range(3)]
    assert program.rename(*spot("rows = ["), "if") == [] and program.rename(*spot("rows = ["), "ages") == []
    assert program.rename(*spot("age > 60"), "years") == []  # a column is called as in its file


def test_a_column_that_is_read_by_a_format_stands_where_it_is_written() -> None:
    """The description means the column as text and a `derive`, of which nothing stands in the program."""
    text = 'private p = table("a.csv") described by {day: date("%d.%m.%Y")} protecting rows budget epsilon 1\n'
    document = Document("a.jst")
    document.change(text + "n = {{ select count(*) from p where day > 2024-01-01 with epsilon 0.1 }}\n")
    where = document.text.split("\n")[1].index("day")
    assert [(s.line, s.column) for s in document.references(1, where)] == [(1, text.index("day") + 1), (2, where + 1)]
    assert len(document.rename(0, text.index("p ="), "people")) == 2


def test_symbols_and_meanings(program: Document) -> None:
    told = {name: (one.kind, [c for c, _ in columns]) for name, one, columns in program.symbols()}
    assert told["people"] == ("a private source", ["age", "sex"]) and told["twice"][0] == "a function of (x, times)"
    meant = {(o.span.line - 1, o.span.column - 1): (kind, private) for o, kind, private in program.meanings()}
    assert meant[spot("row in")] == ("variable", False) and meant[spot("people,")] == ("variable", True)
    assert meant[spot("age > 60")] == ("column", False) and meant[spot("dawa(")] == ("builtin", False)


def test_listed_values_and_tables_are_offered(program: Document) -> None:
    line, column = spot('F" with')
    assert [c.word for c in program.completions(line, column)[1]] == ["F", "M"]
    line, column = spot("people where")
    offered = [c.word for c in program.completions(line, column)[1]]
    assert "people" in offered and "ages" in offered and not {"count", "age", "twice"} & set(offered)


@pytest.mark.parametrize(
    ("bad", "title", "mended"),
    [
        ("total = 1\nprint(totl)\n", "change to `print(total)`", "total = 1\nprint(total)\n"),
        ("x = 2 ** 3\n", "change to `x = 2^3`", "x = 2^3\n"),
        (
            "def f(c, q): return flat(c, q)\n",
            "add `use histograms`",
            "use histograms\ndef f(c, q): return flat(c, q)\n",
        ),
        (
            PEOPLE + "m = {{ select count(*) from people }}\n",
            "change to `m = {{ select count(*) from people with epsilon 0.1 }}`",
            "",
        ),
    ],
)
def test_what_a_help_says_is_a_quick_fix_where_it_mends(bad: str, title: str, mended: str, folder: Path) -> None:
    document = Document(str(folder / "p.jst"))
    (fault,) = document.change(bad)
    assert fault.span is not None
    (fix,) = [fix for _, fix in document.fixes(fault.span.line - 1)]
    text = changed(bad, fix)
    assert fix.title == title and (text == mended or not mended) and document.change(text) == []


def test_words_that_name_something_are_no_fix(folder: Path) -> None:
    document = Document(str(folder / "p.jst"))
    above = PEOPLE.partition("n = ")[0]  # where nothing measures the table
    assert document.change(above + "print(people)\n") != [] and document.fixes(above.count("\n")) == []


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


def asked(
    uri: str, texts: list[str], requests: dict[str, dict[str, Any]]
) -> tuple[dict[Any, Any], list[dict[str, Any]]]:
    """What a server answers, and the faults of the last text, which comes before `signatureHelp`."""
    server = subprocess.Popen(
        [sys.executable, "-m", "jostle", "lsp"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert server.stdin is not None and server.stdout is not None
    opened = {"textDocument": {"uri": uri, "languageId": "jostle", "version": 1, "text": texts[0]}}
    changes = {"textDocument": {"uri": uri, "version": 2}, "contentChanges": [{"text": texts[-1]}]}
    said: dict[Any, Any] = {}
    faults: list[dict[str, Any]] = []
    version = 0
    try:
        start = {"capabilities": {}, "rootUri": None, "processId": None}
        server.stdin.write(message(id="start", method="initialize", params=start))
        server.stdin.write(message(method="initialized", params={}))
        server.stdin.write(message(method="textDocument/didOpen", params=opened))
        for name, params in requests.items():
            if name == "signatureHelp" and len(texts) > 1:  # while a call is open, the text does not parse
                server.stdin.write(message(method="textDocument/didChange", params=changes))
            params = {"textDocument": {"uri": uri}, **params}
            server.stdin.write(message(id=name, method=f"textDocument/{name}", params=params))
        server.stdin.flush()
        with ending(server):
            for answer in answers(server.stdout):
                if answer.get("method") == "textDocument/publishDiagnostics":
                    faults, version = answer["params"]["diagnostics"], answer["params"]["version"]
                said[answer.get("id")] = answer.get("result", answer.get("error"))
                if [*requests][-1] in said and version == len(texts):
                    break
    finally:
        server.kill()
        server.communicate()
    return said, faults


def test_a_server_answers_an_editor(folder: Path) -> None:
    uri = (folder / "p.jst").as_uri()
    text = "use histograms\nxs=[1, 2]\nprint(ys)\nc = flat("
    options = {"tabSize": 4, "insertSpaces": True}
    whole = {"start": {"line": 0, "character": 0}, "end": {"line": 3, "character": 0}}
    requests: dict[str, dict[str, Any]] = {
        "formatting": {"options": options},
        "hover": {"position": {"line": 0, "character": 6}},
        "signatureHelp": {"position": {"line": 3, "character": 9}},
        "definition": {"position": {"line": 3, "character": 5}},
        "references": {"position": {"line": 1, "character": 0}, "context": {"includeDeclaration": True}},
        "rename": {"position": {"line": 1, "character": 0}, "newName": "numbers"},
        "documentSymbol": {},
        "semanticTokens/full": {},
        "codeAction": {"range": whole, "context": {"diagnostics": []}},
        "completion": {"position": {"line": 0, "character": 6}},
    }
    good = text.removesuffix("c = flat(") + "c = flat\n"
    said, faults = asked(uri, [good, text], requests)
    assert [fault["code"] for fault in faults] == ["SyntaxError"]
    assert said["formatting"][0]["newText"] == "use histograms\nxs = [1, 2]\nprint(ys)\nc = flat\n"
    assert "use histograms" in said["hover"]["contents"]["value"]
    assert said["signatureHelp"]["signatures"][0]["label"] == "flat(db, queries)"
    assert said["definition"]["uri"].endswith("histograms.jst")
    assert len(said["references"]) == 1 and list(said["rename"]["changes"]) == [uri]
    assert [symbol["name"] for symbol in said["documentSymbol"]] == ["xs", "c"]
    assert len(said["semanticTokens/full"]["data"]) % 5 == 0 and said["semanticTokens/full"]["data"][:3] == [1, 0, 2]
    assert isinstance(said["codeAction"], list)
    assert {item["label"] for item in said["completion"]} == {"hierarchies", "histograms"}


def test_what_is_typed_at_once_is_checked_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from lsprotocol import types as lsp
    from pygls.workspace import Workspace

    checked: list[str] = []
    monkeypatch.setattr(Document, "faults", lambda self: checked.append(self.text) or [])
    monkeypatch.setattr("jostle.tools.editors.server.PAUSE", 0.05)
    editor, uri = server(), (folder / "p.jst").as_uri()
    editor.protocol._workspace = Workspace(None)
    monkeypatch.setattr(type(editor), "text_document_publish_diagnostics", lambda self, params: None)
    editor.workspace.put_text_document(lsp.TextDocumentItem(uri, "jostle", 1, "x = 1\n"))
    change = editor.protocol.fm.features[lsp.TEXT_DOCUMENT_DID_CHANGE]

    async def typed() -> None:
        waiting = []
        for version in range(2, 6):
            at = lsp.VersionedTextDocumentIdentifier(version, uri)
            whole = lsp.TextDocumentContentChangeWholeDocument(f"x = {version}\n")
            editor.workspace.update_text_document(at, whole)
            waiting.append(change(lsp.DidChangeTextDocumentParams(at, [whole])))
        await asyncio.gather(*waiting)

    asyncio.run(typed())
    assert checked == ["x = 5\n"]


def test_columns_are_counted_in_units_of_utf_16(folder: Path) -> None:
    """An emoji before a name is two units of UTF-16, which is meant where nothing else was agreed on."""
    uri = (folder / "p.jst").as_uri()
    text = 'xs = [1, 2]\nprint("😋é", xs, xss)\n'

    def at(word: str) -> int:
        return len(text.split("\n")[1].partition(word)[0].encode("utf-16-le")) // 2

    requests: dict[str, dict[str, Any]] = {
        "hover": {"position": {"line": 1, "character": at("xs") + 1}},
        "rename": {"position": {"line": 1, "character": at("xs")}, "newName": "ys"},
        "semanticTokens/full": {},
        "codeAction": {"range": {"start": {"line": 1, "character": 0}, "end": {"line": 1, "character": 1}},
                       "context": {"diagnostics": []}},
        "completion": {"position": {"line": 1, "character": at("xss") + 1}},
    }  # fmt: skip
    said, (fault,) = asked(uri, [text], requests)
    assert said["start"]["capabilities"]["positionEncoding"] == "utf-16" and at("xs") == 13
    assert [fault["range"][end]["character"] for end in ("start", "end")] == [at("xss"), at("xss") + 3]
    assert "xs" in said["hover"]["contents"]["value"]
    assert [edit["range"]["start"]["character"] for edit in said["rename"]["changes"][uri]] == [0, at("xs")]
    tokens = said["semanticTokens/full"]["data"]
    assert [tokens[i] for i in (5, 6, 10, 11)] == [1, 0, 0, at("xs")]
    (action,) = said["codeAction"]
    (edit,) = action["edit"]["changes"][uri]  # of the whole line, which has a sign of two units
    assert edit["newText"] == 'print("😋é", xs, xs)' and len(text.split("\n")[1]) == 20
    assert edit["range"] == {"start": {"line": 1, "character": 0}, "end": {"line": 1, "character": 21}}
    begun = {item["textEdit"]["range"]["start"]["character"] for item in said["completion"]}
    assert begun == {at("xss")}


@pytest.mark.parametrize(("encoding", "columns"), [
    ("utf-8", [0, 1, 5, 7]), ("utf-16", [0, 1, 3, 4]), ("utf-32", [0, 1, 2, 3]),
])  # fmt: skip
def test_units_are_those_that_were_agreed_on(encoding: str, columns: list[int]) -> None:
    from lsprotocol.types import Position
    from pygls.workspace import PositionCodec

    codec, source = PositionCodec(encoding), Source("a.jst", "a😋é")
    assert [range_of(codec, Span(source, 1, 1, 1, at + 1)).end.character for at in range(4)] == columns
    assert [character_of(codec, [source.text], Position(0, column)) for column in columns] == [0, 1, 2, 3]
    assert character_of(codec, [source.text], Position(0, 99)) == 3
    assert character_of(codec, [], Position(5, 2)) == 0


# Colours ------------------------------------------------------------------------------------------------


def test_pygments_knows_the_language() -> None:
    from pygments.lexers import get_lexer_by_name
    from pygments.token import Error, Keyword

    found = list(JostleLexer().get_tokens(PEOPLE))
    assert "".join(text for _, text in found) == PEOPLE
    assert (Keyword, "private") in found and not any(kind is Error for kind, _ in found)
    assert isinstance(get_lexer_by_name("jostle"), JostleLexer)


def test_the_textmate_grammar_colours_by_the_same_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert textmate(None) == 0
    grammar = json.loads(capsys.readouterr().out)
    names = {p["name"] for p in grammar["patterns"]}
    assert {"keyword.control.jostle", "comment.line.jostle", "keyword.other.jostle"} <= names
    assert any("MkChoiceMaker" in p["match"] for p in grammar["patterns"])


@pytest.mark.parametrize(
    ("text", "word", "clause"),
    [
        ("for row in g: print(row, row.n)", "row", False), ("rows = [x for x in rows]", "rows", False),
        ("protecting rows, public size", "rows", True), ("from t up to k rows by x", "rows", True),
        ("up to 1 row", "row", True), ("x = size * 2", "size", False), ("{rows: 3}", "rows", False),
        ("from t left join u on k order by n limit 2", "order", True),
    ],
)  # fmt: skip
def test_clause_words_that_are_names_are_coloured_as_names(text: str, word: str, clause: bool) -> None:
    colours = {colour for colour, piece in colour_tokens(text) if piece == word}
    assert colours == {"clause" if clause else ""}


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
    assert "ε 0.25 of 1 spent" in repr(shown.report) and " ± " in repr(shown.report)
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


def test_what_a_stopped_cell_paid_for_is_shown_and_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopped after two releases: they are Python's, what had no release is the session's, and all is paid once."""

    def stop(event: Event) -> None:
        if event.name == "two":
            raise KeyboardInterrupt

    monkeypatch.setattr(
        "jostle.tools.editors.notebook.Session",
        lambda listeners, **more: Session(listeners=[*listeners, stop], **more),
    )
    names: dict[str, Any] = {}
    notebook = Notebook(names)
    query = "{{ select count(*) from people with epsilon 0.1 }}"
    shown = notebook.cell(
        f"{PEOPLE}\nrelease first = {query}\nquiet = {query}\nprint(first)\nrelease two = {query}\nlast = {query}\n"
    )
    assert isinstance(shown.stopped, KeyboardInterrupt) and shown.refused is None
    (told,) = shown.stopped._render_traceback_()  # as IPython shows it, without lines of Python
    assert shown.texts == [f"{names['first']:g}"] and "what was charged stays charged" in told
    assert "first = " in repr(shown.report) and "ε 0.4 of 1 spent" in repr(shown.report) and "last" not in names
    again = notebook.cell("print(first, two)\nquiet\n")
    assert again.texts == [f"{names['first']:g} {names['two']:g}"] and isinstance(again.value, float)
    assert "ε 0.4 of 1 spent" in repr(again.report)


def test_no_text_of_a_cell_steers_a_terminal() -> None:
    """IPython prints what a cell prints, releases and is refused for, so all of it shows controls as pictures."""
    sign = "\x1b]0;title\x07\u202e\u200f\x9b"
    notebook = Notebook({"sign": sign})
    for text in ("print(sign)\n", "release x = sign\n", "release y = {a: sign}\n", f'z = "{sign}" + unknown\n'):
        shown = notebook.cell(text)
        told = shown.refused._render_traceback_() if shown.refused else []
        assert not any(c in (shown.report._repr_html_() or "") for c in "\x1b\u202e\u200f\x9b")
        whole = "".join([*shown.texts, repr(shown.report), *told])
        assert "title" in whole and not [c for c in whole if not c.isprintable() and c != "\n"], repr(whole)
    assert notebook.cell("sign\n").value == sign  # Python's own to show
    assert notebook.command(f":help {sign}").replace("\n", "").isprintable()


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
    later = [
        "round(n / 10)",
        "two = %jostle {{ select count(*) from table([{a: 1}, {a: 2}]) }}\ntwo",
        "%jostle help(dawa)",
        "%%jostle\nx = nowhere",
        "'not run'",
    ]
    book = new_notebook(cells=[new_code_cell(text) for text in ("%load_ext jostle", cell, *later)])
    client = nbclient.NotebookClient(book, timeout=900, kernel_name="python3", resources={"metadata": {"path": "."}})
    with pytest.raises(nbclient.exceptions.CellExecutionError, match="`nowhere` is not defined"):
        client.execute()
    assert "ε 50 of 50" in json.dumps(book.cells[1].outputs, ensure_ascii=False)
    assert [book.cells[at].outputs[-1]["data"]["text/plain"] for at in (2, 3)] == ["10", "2.0"]
    assert book.cells[4].outputs[0]["text"].startswith("dawa(db, queries)")
    *_, fault = book.cells[5].outputs
    assert f"cell {book.cells[5].execution_count}:1:5" in fault["traceback"][1] and not any(
        "Traceback" in line for line in fault["traceback"]
    )
    assert book.cells[6].outputs == []
