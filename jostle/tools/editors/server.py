"""The language server, `jostle lsp`: editors' requests to `Document`, over standard input and output.

The protocol is pygls's (`pip install pygls`); this file only translates.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlparse

from jostle.diagnostics import KINDS, Diagnostic, refuse
from jostle.source import Span
from jostle.tools.editors.document import Document

if TYPE_CHECKING:
    from pygls.lsp.server import LanguageServer


def serve() -> int:
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
    from jostle.version import __version__

    language_server = LanguageServer("jostle", __version__)
    open_: dict[str, Document] = {}

    def document(uri: str) -> Document:
        if uri not in open_:
            open_[uri] = Document(str(Path(unquote(urlparse(uri).path))))
            open_[uri].change(language_server.workspace.get_text_document(uri).source)
        return open_[uri]

    def looked_at(uri: str) -> None:
        faults = document(uri).change(language_server.workspace.get_text_document(uri).source)
        markers = [_diagnostic(lsp, fault) for fault in faults]
        language_server.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, markers))

    @language_server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    def _(params: lsp.DidOpenTextDocumentParams) -> None:
        looked_at(params.text_document.uri)

    @language_server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    def _(params: lsp.DidChangeTextDocumentParams) -> None:
        looked_at(params.text_document.uri)

    @language_server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def _(params: lsp.DidCloseTextDocumentParams) -> None:
        open_.pop(params.text_document.uri, None)

    @language_server.feature(lsp.TEXT_DOCUMENT_HOVER)
    def _(params: lsp.HoverParams) -> lsp.Hover | None:
        at = params.position
        text = document(params.text_document.uri).hover(at.line, at.character)
        return lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.Markdown, text)) if text else None

    @language_server.feature(lsp.TEXT_DOCUMENT_DEFINITION)
    def _(params: lsp.DefinitionParams) -> lsp.Location | None:
        at, uri = params.position, params.text_document.uri
        span = document(uri).definition(at.line, at.character)
        return lsp.Location(uri, _range(lsp, span)) if span is not None else None

    @language_server.feature(lsp.TEXT_DOCUMENT_COMPLETION, lsp.CompletionOptions(trigger_characters=[".", "{"]))
    def _(params: lsp.CompletionParams) -> list[lsp.CompletionItem]:
        at = params.position
        _, candidates = document(params.text_document.uri).completions(at.line, at.character)
        kinds = {"word": lsp.CompletionItemKind.Keyword, "column": lsp.CompletionItemKind.Field,
                 "field": lsp.CompletionItemKind.Field, "aggregate": lsp.CompletionItemKind.Function}  # fmt: skip
        default = lsp.CompletionItemKind.Variable
        return [lsp.CompletionItem(c.word, kind=kinds.get(c.kind, default), detail=c.kind) for c in candidates]

    @language_server.feature(lsp.TEXT_DOCUMENT_FORMATTING)
    def _(params: lsp.DocumentFormattingParams) -> list[lsp.TextEdit]:
        here = document(params.text_document.uri)
        text = here.format()
        if text is None or text == here.text:
            return []
        whole = lsp.Range(lsp.Position(0, 0), lsp.Position(here.text.count("\n") + 1, 0))
        return [lsp.TextEdit(whole, text)]

    return language_server


def _diagnostic(lsp: Any, fault: Diagnostic) -> Any:
    text = fault.message + (f"\n{fault.help}" if fault.help else "")
    severity = lsp.DiagnosticSeverity.Error if fault.kind in KINDS else lsp.DiagnosticSeverity.Warning
    return lsp.Diagnostic(_range(lsp, fault.span), text, severity=severity, code=fault.kind, source="jostle")


def _range(lsp: Any, span: Span | None) -> Any:
    if span is None:
        return lsp.Range(lsp.Position(0, 0), lsp.Position(0, 1))
    end = lsp.Position(span.end_line - 1, span.end_column - 1)
    return lsp.Range(lsp.Position(span.line - 1, span.column - 1), end)
