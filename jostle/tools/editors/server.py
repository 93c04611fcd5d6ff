"""The language server, `jostle lsp`: editors' requests to `Document`, over standard input and output.

The protocol is pygls's (`pip install pygls`); this file only translates. Documents and spans count characters, editors
the units that they agreed on with the server, of which some characters have two or more: pygls's `codec` knows them.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlparse

from jostle.diagnostics import Diagnostic, refuse
from jostle.documentation import documentation
from jostle.source import Span
from jostle.tools.completion import Completion
from jostle.tools.editors.document import Document, Fix
from jostle.version import __version__

if TYPE_CHECKING:
    from lsprotocol import types as lsp
    from pygls.lsp.server import LanguageServer
    from pygls.workspace import PositionCodec


# What a name is, as editors call it, and what else may be said of it.
_TOKENS = {"column": "property", "parameter": "parameter", "function": "function", "variable": "variable"}
_MODIFIERS = ("declaration", "readonly", "defaultLibrary")
_ABOUT = 60  # candidates whose documentation is sent along
PAUSE = 0.2  # seconds without another change after which a program is checked
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
            open_[uri].take(language_server.workspace.get_text_document(uri).source)
        return open_[uri]

    def codec() -> PositionCodec:
        return language_server.workspace.position_codec

    def place(of: lsp.TextDocumentIdentifier, at: lsp.Position) -> tuple[Document, tuple[int, int]]:
        """A document, and a place in it as its line and character."""
        here = document(of.uri)
        return here, (at.line, character_of(codec(), here.text.split("\n"), at))

    @language_server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    @language_server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    async def _(params: lsp.DidOpenTextDocumentParams | lsp.DidChangeTextDocumentParams) -> None:
        uri = params.text_document.uri
        here, version = document(uri), params.text_document.version
        here.take(language_server.workspace.get_text_document(uri).source)
        await asyncio.sleep(PAUSE)
        now = language_server.workspace.get_text_document(uri)
        if now.version == version:  # else it was closed, or a later change looks for its own
            markers = [_diagnostic(codec(), fault) for fault in here.change(now.source)]
            language_server.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, markers, version))

    @language_server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def _(params: lsp.DidCloseTextDocumentParams) -> None:
        open_.pop(params.text_document.uri, None)

    @language_server.feature(lsp.TEXT_DOCUMENT_HOVER)
    def _(params: lsp.HoverParams) -> lsp.Hover | None:
        here, at = place(params.text_document, params.position)
        text = here.hover(*at)
        return lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.Markdown, text)) if text else None

    @language_server.feature(lsp.TEXT_DOCUMENT_SIGNATURE_HELP, lsp.SignatureHelpOptions(trigger_characters=["(", ","]))
    def _(params: lsp.SignatureHelpParams) -> lsp.SignatureHelp | None:
        here, at = place(params.text_document, params.position)
        signature = here.signature(*at)
        if signature is None:
            return None
        words = [lsp.ParameterInformation(text) for text in signature.parameters]
        one = lsp.SignatureInformation(signature.usage, signature.about, words, signature.active)
        return lsp.SignatureHelp([one], 0, signature.active)

    @language_server.feature(lsp.TEXT_DOCUMENT_DEFINITION)
    def _(params: lsp.DefinitionParams) -> lsp.Location | None:
        here, at = place(params.text_document, params.position)
        span = here.definition(*at)
        return _location(codec(), params.text_document.uri, span, here.name) if span is not None else None

    @language_server.feature(lsp.TEXT_DOCUMENT_REFERENCES)
    def _(params: lsp.ReferenceParams) -> list[lsp.Location]:
        here, at = place(params.text_document, params.position)
        return [lsp.Location(params.text_document.uri, range_of(codec(), span)) for span in here.references(*at)]

    @language_server.feature(lsp.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT)
    def _(params: lsp.DocumentHighlightParams) -> list[lsp.DocumentHighlight]:
        here, at = place(params.text_document, params.position)
        return [lsp.DocumentHighlight(range_of(codec(), span)) for span in here.references(*at)]

    @language_server.feature(lsp.TEXT_DOCUMENT_RENAME)
    def _(params: lsp.RenameParams) -> lsp.WorkspaceEdit | None:
        here, at = place(params.text_document, params.position)
        edits = [lsp.TextEdit(range_of(codec(), span), params.new_name) for span in here.rename(*at, params.new_name)]
        return lsp.WorkspaceEdit({params.text_document.uri: edits}) if edits else None

    @language_server.feature(lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    def _(params: lsp.DocumentSymbolParams) -> list[lsp.DocumentSymbol]:
        return _outline(codec(), document(params.text_document.uri))

    @language_server.feature(
        lsp.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL, lsp.SemanticTokensLegend([*_TOKENS.values()], [*_MODIFIERS])
    )
    def _(params: lsp.SemanticTokensParams) -> lsp.SemanticTokens:
        return lsp.SemanticTokens(_tokens(codec(), document(params.text_document.uri)))

    @language_server.feature(lsp.TEXT_DOCUMENT_CODE_ACTION, lsp.CodeActionOptions([lsp.CodeActionKind.QuickFix]))
    def _(params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
        uri, lines = params.text_document.uri, range(params.range.start.line, params.range.end.line + 1)
        return [_action(codec(), uri, document(uri), *fix) for line in lines for fix in document(uri).fixes(line)]

    @language_server.feature(
        lsp.TEXT_DOCUMENT_COMPLETION, lsp.CompletionOptions(trigger_characters=[".", "{", '"', " ", "/"])
    )
    def _(params: lsp.CompletionParams) -> list[lsp.CompletionItem]:
        at, (here, begin) = params.position, place(params.text_document, params.position)
        by_space = params.context is not None and params.context.trigger_character == " "
        typed, candidates = here.completions(*begin)
        begun = lsp.Range(lsp.Position(at.line, at.character - codec().client_num_units(typed)), at)
        return [
            _item(c, rank, begun) for rank, c in enumerate(candidates) if not by_space or c.kind not in _NOT_UNASKED
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


def character_of(codec: PositionCodec, lines: list[str], at: lsp.Position) -> int:
    """How many characters of a line begin before a place in it; all of them where it is beyond the line."""
    line = lines[at.line] if at.line < len(lines) else ""
    if at.character >= codec.client_num_units(line):
        return len(line)
    return codec.position_from_client_units(lines, at).character


def range_of(codec: PositionCodec, span: Span | None) -> lsp.Range:
    """What a span covers; without one, the first character of the text."""
    from lsprotocol import types as lsp

    if span is None:
        return lsp.Range(lsp.Position(0, 0), lsp.Position(0, 1))
    start, end = lsp.Position(span.line - 1, span.column - 1), lsp.Position(span.end_line - 1, span.end_column - 1)
    return codec.range_to_client_units(span.source.text.split("\n"), lsp.Range(start, end))


def _tokens(codec: PositionCodec, document: Document) -> list[int]:
    """The meanings of names, as the protocol counts them: five numbers each, places relative to the one before."""
    numbers: list[int] = []
    kinds = [*_TOKENS]
    line = column = 0
    for one, kind, private in document.meanings():
        covered = range_of(codec, one.span)
        at = covered.start.line, covered.start.character
        if at < (line, column) or (numbers and at == (line, column)):
            continue  # a name that binds and is used at one place is reported once
        flags = one.binds | (private << 1) | ((kind == "builtin") << 2)
        step = at[1] - (column if at[0] == line else 0)
        width = covered.end.character - at[1]
        numbers += [at[0] - line, step, width, kinds.index("function" if kind == "builtin" else kind), flags]
        line, column = at
    return numbers


def _outline(codec: PositionCodec, document: Document) -> list[lsp.DocumentSymbol]:
    """The names of a program, with the columns of each."""
    return [
        _symbol(codec, name, one.kind, one.span, [
            _symbol(codec, column, entry.domain, entry.span, []) for column, entry in columns
        ])
        for name, one, columns in document.symbols()
    ]  # fmt: skip


def _symbol(
    codec: PositionCodec, name: str, kind: str, span: Span, children: list[lsp.DocumentSymbol]
) -> lsp.DocumentSymbol:
    from lsprotocol import types as lsp

    kinds = {"a private source": lsp.SymbolKind.Struct, "a public table": lsp.SymbolKind.Struct,
             "a setting of the program": lsp.SymbolKind.Constant, "a ChoiceMaker": lsp.SymbolKind.Class,
             "an Option": lsp.SymbolKind.Method, "a Feature": lsp.SymbolKind.Method,
             "a Utility": lsp.SymbolKind.Method}  # fmt: skip
    sort = lsp.SymbolKind.Function if kind.startswith("a function") else kinds.get(kind, lsp.SymbolKind.Variable)
    place = range_of(codec, span)
    return lsp.DocumentSymbol(name, sort, place, place, kind, children=children)


def _action(codec: PositionCodec, uri: str, document: Document, fault: Diagnostic, fix: Fix) -> lsp.CodeAction:
    from lsprotocol import types as lsp

    lines, places = document.text.split("\n"), (lsp.Position(*fix.start), lsp.Position(*fix.end))
    changed = codec.range_to_client_units(lines, lsp.Range(*places))
    edit = lsp.WorkspaceEdit({uri: [lsp.TextEdit(changed, fix.new)]})
    return lsp.CodeAction(fix.title, lsp.CodeActionKind.QuickFix, [_diagnostic(codec, fault)], edit=edit)


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


def _location(codec: PositionCodec, uri: str, span: Span, here: str) -> lsp.Location:
    """A place in this program, or in a module of the library."""
    from lsprotocol import types as lsp

    where = uri if span.source.name == here else Path(span.source.name).as_uri()
    return lsp.Location(where, range_of(codec, span))


def _diagnostic(codec: PositionCodec, fault: Diagnostic) -> lsp.Diagnostic:
    from lsprotocol import types as lsp

    text = fault.message + (f"\n{fault.help}" if fault.help else "")
    severity = lsp.DiagnosticSeverity.Warning if fault.is_warning else lsp.DiagnosticSeverity.Error
    return lsp.Diagnostic(range_of(codec, fault.span), text, severity=severity, code=fault.kind, source="jostle")
