"""The language server, `jostle lsp`: editors' requests to `Document`, over standard input and output.

The protocol is pygls's (`pip install pygls`); this file only translates.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlparse

from jostle.diagnostics import Diagnostic, refuse
from jostle.source import Span
from jostle.tools.completion import Completion
from jostle.tools.documentation import documentation
from jostle.tools.editors.document import Document, Fix, Units
from jostle.version import __version__

if TYPE_CHECKING:
    from lsprotocol import types as lsp
    from pygls.lsp.server import LanguageServer


# What a name is, as editors call it, and what else may be said of it.
_TOKENS = {"column": "property", "parameter": "parameter", "function": "function", "variable": "variable"}
_MODIFIERS = ("declaration", "readonly", "defaultLibrary")
_ABOUT = 60  # candidates whose documentation is sent along
# Kinds of candidates that are not offered after a blank, where nobody asked for any.
_NOT_UNASKED = ("a function", "a value", "word", "aggregate")


def command(_: object) -> int:
    """Serves one editor until it goes."""
    server().start_io()
    return 0


def server() -> LanguageServer:
    """The server, with every feature registered. Raises `Refusal` where pygls is not installed."""
    try:
        from lsprotocol import types as lsp
        from pygls.lsp.server import LanguageServer
    except ImportError:
        raise refuse(
            "ImportError", "the language server needs pygls, which is not installed", help="`pip install pygls`"
        ) from None
    language_server = LanguageServer("jostle", __version__)
    open_: dict[str, Document] = {}

    def document(uri: str) -> Document:
        if uri not in open_:
            open_[uri] = Document(str(Path(unquote(urlparse(uri).path))))
            open_[uri].change(language_server.workspace.get_text_document(uri).source)
        return open_[uri]

    def units() -> Units:
        return Units(str(getattr(encoding := language_server.workspace.position_encoding, "value", encoding)))

    def place(uri: str, at: lsp.Position) -> tuple[int, int]:
        lines = document(uri).text.split("\n")
        return at.line, units().characters(lines[at.line], at.character) if at.line < len(lines) else 0

    @language_server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    @language_server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    def _(params: lsp.DidOpenTextDocumentParams | lsp.DidChangeTextDocumentParams) -> None:
        uri = params.text_document.uri
        faults = document(uri).change(language_server.workspace.get_text_document(uri).source)
        markers = [_diagnostic(units(), fault) for fault in faults]
        language_server.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, markers))

    @language_server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def _(params: lsp.DidCloseTextDocumentParams) -> None:
        open_.pop(params.text_document.uri, None)

    @language_server.feature(lsp.TEXT_DOCUMENT_HOVER)
    def _(params: lsp.HoverParams) -> lsp.Hover | None:
        uri = params.text_document.uri
        text = document(uri).hover(*place(uri, params.position))
        return lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.Markdown, text)) if text else None

    @language_server.feature(lsp.TEXT_DOCUMENT_SIGNATURE_HELP, lsp.SignatureHelpOptions(trigger_characters=["(", ","]))
    def _(params: lsp.SignatureHelpParams) -> lsp.SignatureHelp | None:
        uri = params.text_document.uri
        signature = document(uri).signature(*place(uri, params.position))
        if signature is None:
            return None
        words = [lsp.ParameterInformation(text) for text in signature.parameters]
        one = lsp.SignatureInformation(signature.usage, signature.about, words, signature.active)
        return lsp.SignatureHelp([one], 0, signature.active)

    @language_server.feature(lsp.TEXT_DOCUMENT_DEFINITION)
    def _(params: lsp.DefinitionParams) -> lsp.Location | None:
        uri = params.text_document.uri
        span = document(uri).definition(*place(uri, params.position))
        return _location(units(), uri, span, document(uri).name) if span is not None else None

    @language_server.feature(lsp.TEXT_DOCUMENT_REFERENCES)
    def _(params: lsp.ReferenceParams) -> list[lsp.Location]:
        uri = params.text_document.uri
        spans = document(uri).references(*place(uri, params.position))
        return [lsp.Location(uri, units().range(span)) for span in spans]

    @language_server.feature(lsp.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT)
    def _(params: lsp.DocumentHighlightParams) -> list[lsp.DocumentHighlight]:
        uri = params.text_document.uri
        spans = document(uri).references(*place(uri, params.position))
        return [lsp.DocumentHighlight(units().range(span)) for span in spans]

    @language_server.feature(lsp.TEXT_DOCUMENT_RENAME)
    def _(params: lsp.RenameParams) -> lsp.WorkspaceEdit | None:
        uri = params.text_document.uri
        spans = document(uri).rename(*place(uri, params.position), params.new_name)
        edits = [lsp.TextEdit(units().range(span), params.new_name) for span in spans]
        return lsp.WorkspaceEdit({uri: edits}) if edits else None

    @language_server.feature(lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    def _(params: lsp.DocumentSymbolParams) -> list[lsp.DocumentSymbol]:
        return _outline(units(), document(params.text_document.uri))

    @language_server.feature(
        lsp.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL, lsp.SemanticTokensLegend([*_TOKENS.values()], [*_MODIFIERS])
    )
    def _(params: lsp.SemanticTokensParams) -> lsp.SemanticTokens:
        return lsp.SemanticTokens(_tokens(units(), document(params.text_document.uri)))

    @language_server.feature(lsp.TEXT_DOCUMENT_CODE_ACTION, lsp.CodeActionOptions([lsp.CodeActionKind.QuickFix]))
    def _(params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
        uri, lines = params.text_document.uri, range(params.range.start.line, params.range.end.line + 1)
        return [_action(units(), uri, document(uri), *fix) for line in lines for fix in document(uri).fixes(line)]

    @language_server.feature(
        lsp.TEXT_DOCUMENT_COMPLETION, lsp.CompletionOptions(trigger_characters=[".", "{", '"', " ", "/"])
    )
    def _(params: lsp.CompletionParams) -> list[lsp.CompletionItem]:
        at = params.position
        by_space = params.context is not None and params.context.trigger_character == " "
        uri = params.text_document.uri
        typed, candidates = document(uri).completions(*place(uri, at))
        begun = lsp.Range(lsp.Position(at.line, at.character - units().wide(typed)), at)
        return [
            _item(c, place, begun) for place, c in enumerate(candidates) if not by_space or c.kind not in _NOT_UNASKED
        ]

    @language_server.feature(lsp.TEXT_DOCUMENT_FORMATTING)
    def _(params: lsp.DocumentFormattingParams) -> list[lsp.TextEdit]:
        here = document(params.text_document.uri)
        text = here.format()
        if text is None or text == here.text:
            return []
        whole = lsp.Range(lsp.Position(0, 0), lsp.Position(here.text.count("\n") + 1, 0))
        return [lsp.TextEdit(whole, text)]

    return language_server


def _tokens(units: Units, document: Document) -> list[int]:
    """The meanings of names, as the protocol counts them: five numbers each, places relative to the one before."""
    numbers: list[int] = []
    kinds = [*_TOKENS]
    line = column = 0
    for one, kind, private in document.meanings():
        covered = units.range(one.span)
        at = covered.start.line, covered.start.character
        if at < (line, column) or (numbers and at == (line, column)):
            continue  # a name that binds and is used at one place is reported once
        flags = one.binds | (private << 1) | ((kind == "builtin") << 2)
        step = at[1] - (column if at[0] == line else 0)
        width = covered.end.character - at[1]
        numbers += [at[0] - line, step, width, kinds.index("function" if kind == "builtin" else kind), flags]
        line, column = at
    return numbers


def _outline(units: Units, document: Document) -> list[lsp.DocumentSymbol]:
    """The names of a program, with the columns of each."""
    return [
        _symbol(units, name, one.kind, one.span, [
            _symbol(units, column, entry.domain, entry.span, []) for column, entry in columns
        ])
        for name, one, columns in document.symbols()
    ]  # fmt: skip


def _symbol(units: Units, name: str, kind: str, span: Span, children: list[lsp.DocumentSymbol]) -> lsp.DocumentSymbol:
    from lsprotocol import types as lsp

    kinds = {"a private source": lsp.SymbolKind.Struct, "a public table": lsp.SymbolKind.Struct,
             "a setting of the program": lsp.SymbolKind.Constant, "a ChoiceMaker": lsp.SymbolKind.Class,
             "an Option": lsp.SymbolKind.Method, "a Feature": lsp.SymbolKind.Method,
             "a Utility": lsp.SymbolKind.Method}  # fmt: skip
    sort = lsp.SymbolKind.Function if kind.startswith("a function") else kinds.get(kind, lsp.SymbolKind.Variable)
    place = units.range(span)
    return lsp.DocumentSymbol(name, sort, place, place, kind, children=children)


def _action(units: Units, uri: str, document: Document, fault: Diagnostic, fix: Fix) -> lsp.CodeAction:
    from lsprotocol import types as lsp

    lines = document.text.split("\n")
    changed = lsp.Range(units.position(lines, *fix.start), units.position(lines, *fix.end))
    edit = lsp.WorkspaceEdit({uri: [lsp.TextEdit(changed, fix.new)]})
    return lsp.CodeAction(fix.title, lsp.CodeActionKind.QuickFix, [_diagnostic(units, fault)], edit=edit)


def _item(candidate: Completion, place: int, begun: lsp.Range) -> lsp.CompletionItem:
    """A candidate at its place in the list, for the text that is `begun`."""
    from lsprotocol import types as lsp

    kinds = {"word": lsp.CompletionItemKind.Keyword, "column": lsp.CompletionItemKind.Field,
             "field": lsp.CompletionItemKind.Field, "aggregate": lsp.CompletionItemKind.Function,
             "value": lsp.CompletionItemKind.EnumMember, "path": lsp.CompletionItemKind.File,
             "module": lsp.CompletionItemKind.Module, "argument": lsp.CompletionItemKind.Property,
             "a function": lsp.CompletionItemKind.Function}  # fmt: skip
    word, kind = candidate.word, candidate.kind
    return lsp.CompletionItem(
        word, kind=kinds.get(kind, lsp.CompletionItemKind.Variable), detail=kind, sort_text=f"{place:04}",
        text_edit=lsp.TextEdit(begun, word), documentation=_about(word) if place < _ABOUT else None,
    )  # fmt: skip


def _about(name: str) -> lsp.MarkupContent | None:
    """The documentation of a candidate, where it has one."""
    from lsprotocol import types as lsp

    entries = documentation(name)
    return lsp.MarkupContent(lsp.MarkupKind.Markdown, entries[0].markdown) if entries else None


def _location(units: Units, uri: str, span: Span, here: str) -> lsp.Location:
    """A place in this program, or in a module of the library."""
    from lsprotocol import types as lsp

    where = uri if span.source.name == here else Path(span.source.name).as_uri()
    return lsp.Location(where, units.range(span))


def _diagnostic(units: Units, fault: Diagnostic) -> lsp.Diagnostic:
    from lsprotocol import types as lsp

    text = fault.message + (f"\n{fault.help}" if fault.help else "")
    severity = lsp.DiagnosticSeverity.Warning if fault.is_warning else lsp.DiagnosticSeverity.Error
    return lsp.Diagnostic(units.range(fault.span), text, severity=severity, code=fault.kind, source="jostle")
