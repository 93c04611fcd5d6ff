"""Where the data of a source come from: files, arrays and tables that a program names, found and opened.

A path that a program names is opened once, here, and from then on the source is the open file: whether it is private
or registered, what type it has and what stands in it are asked of that. What is read of it here is only what an owner
publishes about it: that it exists and its header. What a private source is made of is in `declare` and `clauses`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jostle.accounting.amounts import as_text
from jostle.diagnostics import Refusal, did_you_mean, refuse
from jostle.engine.files import OpenFile
from jostle.privacy.kernel.handles import Handle, handles_in
from jostle.privacy.kernel.sources import Source
from jostle.run.publictables import is_rows
from jostle.run.scope import Scope
from jostle.run.values import Record, is_sequence, kind_name
from jostle.source import Span
from jostle.syntax import nodes as n


def announce(interp: Any, source: Source, node: n.Private, columns: list[str], **more: Any) -> None:
    """Tells of a source: what it protects, its budget, what of it was spent before, or whose data it has."""
    before = source.measure.spent_exactly(source.meter.spent)[0]
    if source.name != node.name:
        more["same_as"] = source.name
    elif before:
        more["before"] = as_text(before)
    fields = {"unit": str(source.unit), "budget": str(source.measure.limit), "schema": columns} | more
    interp.kernel.events.emit("source", node.name, node.span, **fields)


def origin_of(interp: Any, call: n.Call, scope: Scope) -> Any:
    if len(call.args) != 1 or call.keywords:
        raise refuse("TypeError", "a source takes one argument", call.span, help='`table("people.csv")`')
    value = interp.eval(call.args[0], scope)
    name = call.function.id if isinstance(call.function, n.Name) else ""
    if handles_in(value) or isinstance(value, Handle):
        raise refuse("TypeError", "a source is a file or public data, not a table of this program", call.span)
    if name == "bound":
        if value not in interp.bound:
            raise refuse(
                "NameError",
                f"nothing is bound to `{value}`",
                call.span,
                help=did_you_mean(str(value), interp.bound)
                or f'hand it over: `--bind {value}=FILE`, or `session.bind("{value}", frame)` in Python',
            )
        value = interp.bound[value]
        return file_of(interp, value, call.span) if isinstance(value, str) else value
    if name == "table" and not isinstance(value, str) and not is_rows(value):
        raise refuse("TypeError", f"`table` takes the path of a file, not {kind_name(value)}", call.span)
    return file_of(interp, value, call.span) if isinstance(value, str) and name != "dataset" else value


def file_of(interp: Any, text: str, span: Span | None) -> Any:
    """The open file at a path, which is relative to the program's folder, else to the working directory."""
    place = next((Path(folder) / text for folder in interp.folders if _exists(Path(folder) / text)), text)
    try:
        return interp.kernel.engine.file(place)
    except Refusal as refusal:
        raise refusal.at(span) from None


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except ValueError:
        return False


def open_origin(interp: Any, origin: Any, span: Span | None, *, public: bool) -> Any:
    not_registered(interp, origin, span)
    return opened(interp, origin, span, public=public)


def opened(interp: Any, origin: Any, span: Span | None, *, public: bool) -> Any:
    try:
        return interp.kernel.engine.open(origin, public=public)
    except Refusal as refusal:
        raise refusal.at(span) from None


def not_registered(interp: Any, origin: Any, span: Span | None) -> None:
    """A file that an owner has registered is read through its dataset only, by whatever path it is named."""
    if not isinstance(origin, OpenFile) or interp.kernel.ledger is None:
        return
    try:
        name = interp.kernel.ledger.named(origin)
    except Refusal as refusal:
        raise refusal.at(span) from None
    if name is not None:
        raise refuse(
            "PrivateValue", f"this file is registered as the dataset `{name}`", span,
            help=f'read it as that: `private {name} = dataset("{name}")`',
        )  # fmt: skip


def refuse_private(interp: Any, origin: Any, span: Span | None) -> None:
    """Before a public source is read: what is wrong in its cells is told, and of private data would be a leak."""
    not_registered(interp, origin, span)
    if isinstance(origin, OpenFile):
        interp.kernel.register.read_publicly(origin.identity, span)
    elif is_array(origin):
        interp.kernel.register.read_publicly(("array", id(origin)), span)


def is_array(origin: Any) -> bool:
    return type(origin).__module__ == "numpy" and getattr(origin.dtype, "names", None) is None


def array_of(interp: Any, origin: Any, span: Span | None, *, private: bool = False) -> tuple[Any, Any]:
    """Counts as an int64 array of one to three dimensions, and the identity of where they come from.

    The cells of a private array decide nothing: what is no count is made one, cell by cell.
    """
    import numpy as np

    from jostle.engine.counts import as_counts, load_counts

    not_registered(interp, origin, span)
    try:
        if isinstance(origin, OpenFile):
            return load_counts(origin, private=private), origin.identity
        if isinstance(origin, Record) or not (is_sequence(origin) or is_array(origin)):
            raise refuse("TypeError", f"`counts` takes a list of counts or a file, not {kind_name(origin)}")
        identity = ("array", id(origin)) if is_array(origin) else ("literal", object())
        return as_counts(np.asarray(origin), "this array", private=private), identity
    except Refusal as refusal:
        raise refusal.at(span) from None
    except (ValueError, TypeError):
        raise refuse("DataError", "counts are numbers in rows of one length", span) from None


def check_columns(schema: Any, columns: Any, span: Span | None, *, private: bool = False) -> None:
    """Of a private file nothing is listed: without a header, its first line would be a row."""
    for name, _ in schema:
        if name not in columns:
            names = f"the columns are {', '.join(list(columns)[:12])}"
            listed = "" if private else did_you_mean(name, columns) or names
            hint = "names are as in the file's header: its first line, cells separated by commas"
            raise refuse("DataError", f"there is no column `{name}`", span, help=listed or hint)
