"""Where the data of a source come from: files, arrays and tables that a program names, found and opened.

A file that a program names is opened once, here, and from then on the source is the open file: whether it is private
or registered, what type it has and what stands in it are asked of that. What is read of it here is only what an owner
publishes about it: that it exists and its header. What a private source is made of is in `declare` and `clauses`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from pathlib import Path
from typing import Any

from jostle.accounting.amounts import as_text
from jostle.backends.remote import RemoteData, need_server
from jostle.diagnostics import Refusal, did_you_mean, refuse
from jostle.engine.base import Opened
from jostle.language.builtins import REMOTE
from jostle.language.facts import NO_LINE, is_header_line
from jostle.lazy import Ints, np
from jostle.privacy.kernel.exposures import Handle, Source
from jostle.privacy.ledger.registered import TableMark
from jostle.privacy.ledger.store import Dataset
from jostle.readers.filesets import FileSet, Reading, check_read, paths
from jostle.records import field_names
from jostle.run.evaluator import Evaluator, PlacedAt
from jostle.run.publictables import is_rows
from jostle.run.scope import Scope
from jostle.run.values import Record, handles_in, is_number, is_sequence, kind_name
from jostle.source import Span
from jostle.syntax import nodes as n


def announce(interp: Evaluator, source: Source, node: n.Private, columns: list[str], **more: object) -> None:
    """Tells of a source: what it protects, its budget, what of it was spent before, or whose data it has."""
    before = source.measure.spent_exactly(source.meter.spent)[0]
    if source.name != node.name:
        more["same_as"] = source.name
    elif before:
        more["before"] = as_text(before)
    fields = {"unit": str(source.unit), "budget": str(source.measure.limit), "schema": columns} | more
    interp.kernel.events.emit("source", node.name, node.span, **fields)


def origin_of(interp: Evaluator, call: n.Call, scope: Scope) -> object:
    """What a source is made of: open files, what was bound, or values of the program."""
    name = call.function.id if isinstance(call.function, n.Name) else ""
    if name in REMOTE:
        return _remote(interp, call, name, scope)
    value, reading = _source_arguments(interp, call, name, scope)
    if handles_in(value) or isinstance(value, Handle):
        raise refuse("TypeError", "a source is a file or public data, not a table of this program", call.span)
    if name == "bound":
        if value not in interp.bound:
            help = f'hand it over: `--bind {value}=FILE`, or `session.bind("{value}", frame)` in Python'
            help = did_you_mean(str(value), interp.bound) or help
            raise refuse("NameError", f"nothing is bound to `{value}`", call.span, help=help)
        label, value = value, interp.bound[value]
        if not is_paths(value):
            interp.kernel.register.need_opening(call.span)  # it may lie where others do, which then have one budget
            interp.data.objects.bind(value, label)
    elif name == "table" and not is_paths(value) and not is_rows(value):
        raise refuse("TypeError", f"`table` takes the path of a file, not {kind_name(value)}", call.span)
    if name != "dataset" and is_paths(value):
        return files_of(interp, value, call.span, reading)
    if reading is not None:
        help = "a separator, an encoding, a header, a part or a sheet is of a file"
        raise refuse("TypeError", "these data are no file, which could be read in several ways", call.span, help=help)
    return value


def _remote(interp: Evaluator, call: n.Call, name: str, scope: Scope) -> RemoteData:
    """Data that a server has, by their names there."""
    interp.kernel.register.need_opening(call.span)
    names = [interp.eval(arg, scope) for arg in call.args]
    need_files(interp, span=call.span)
    if call.keywords or not names or not all(isinstance(text, str) and text for text in names):
        help = f'`{name}("catalog.schema.table")`'
        raise refuse("TypeError", f"`{name}` takes names, as texts", call.span, help=help)
    return RemoteData(name, tuple(names))


def _need_no_record(call: n.Call, name: str) -> None:
    for arg in call.args:
        if isinstance(arg, n.RecordOf):
            message = f"columns are described after `{name}(…)`, not in it"
            raise refuse("TypeError", message, arg.span, help=f'`{name}("people.csv") described by {{age: 0..99}}`')


def _source_arguments(interp: Evaluator, call: n.Call, name: str, scope: Scope) -> tuple[object, Reading | None]:
    """The one argument of a source, and how its files are to be read where that is said."""
    options: dict[str, Any] = {keyword.name: interp.eval(keyword.value, scope) for keyword in call.keywords}
    _need_no_record(call, name)
    args = [interp.eval(arg, scope) for arg in call.args]
    readable = name in ("table", "bound")
    if len(args) == 2 and readable:
        options["part"] = args.pop()
    words = [*field_names(Reading)] if readable else []
    unknown = next((word for word in options if word not in words), None)
    if len(args) != 1 or unknown is not None:
        help = f"`{name}(PATH, {', '.join(f'{word} = …' for word in words)})`" if words else f'`{name}("people.csv")`'
        what = f"`{name}` has no argument `{unknown}`" if unknown is not None else "a source takes one argument"
        raise refuse("TypeError", what, call.span, help=help)
    for word, value in options.items():
        if word == "header":
            options[word] = _line(value, call.span)
        elif word == "sheet" and is_number(value) and float(value).is_integer():
            options[word] = int(value)
        elif not isinstance(value, str):
            raise refuse("TypeError", f"`{word}` is a text, not {kind_name(value)}", call.span)
    return args[0], Reading(**options) if options else None


def _line(value: object, span: Span) -> int:
    if not (isinstance(value, float | int) and is_header_line(value)):
        raise refuse("TypeError", NO_LINE[0], span, help=NO_LINE[1])
    return int(value)


def is_paths(value: object) -> bool:
    """Whether a value is a path, a pattern, or a list of some."""
    if isinstance(value, list | tuple):
        return bool(value) and all(isinstance(item, str) for item in value)
    return isinstance(value, str)


def files_of(interp: Evaluator, value: Any, span: Span | None, reading: Reading | None = None) -> FileSet:
    """The open files that a path, a pattern or a list of them names, relative to the program's folder, else to the
    working directory. That they are there, how many, and their names are public."""
    texts = [value] if isinstance(value, str) else list(value)
    need_files(interp, span, texts)
    with PlacedAt(span):
        places = [place for text in texts for place in paths(text, interp.folders)]
        within = interp.ledger.within if interp.ledger is not None else ""
        if within and not all(Path(place).resolve().is_relative_to(within) for place in places):
            raise _outside(span)
        return FileSet.of([interp.data.file(place) for place in places], reading)


def need_files(interp: Evaluator, span: Span | None, texts: Sequence[str] = ()) -> None:
    """Refuses files and servers in a session of an analyst, who has grants on registered data alone; and of these paths
    those that lead out of a playground, before anything is looked for there."""
    if interp.ledger is not None and interp.ledger.grantee:
        help = 'name a dataset that you have a grant on: `private people = dataset("people")`'
        raise refuse("DataError", "a program that runs for an analyst opens registered data only", span, help=help)
    leads_out = any(Path(text).is_absolute() or ".." in Path(text).parts for text in texts)
    if leads_out and interp.ledger is not None and interp.ledger.within:
        raise _outside(span)


def _outside(span: Span | None) -> Refusal:
    help = 'such as `table("data/people.csv")`'
    return refuse("DataError", "a playground opens the public files that come with it only", span, help=help)


def open_origin(
    interp: Evaluator, origin: object, span: Span | None, *, public: bool, names: Iterable[str] = ()
) -> Opened:
    """Makes data known to the engine; `names` are the columns that are described or protected."""
    not_registered(interp, origin, span)
    return opened(interp, origin, span, public=public, names=names)


def opened(interp: Evaluator, origin: object, span: Span | None, *, public: bool, names: Iterable[str] = ()) -> Opened:
    with PlacedAt(span):
        if isinstance(origin, RemoteData):
            need_server(origin, interp.data.remote)
        data = interp.data.open(origin, public=public, names=tuple(dict.fromkeys(names)))
    if not isinstance(origin, FileSet):  # a cluster on this machine reads files of this machine
        _need_others(interp, data.identity, span)
    return data


def _need_others(interp: Evaluator, identity: Hashable, span: Span | None) -> None:
    """Refuses what reads a registered file, or is a map of one."""
    with PlacedAt(span):
        name = interp.ledger.known_as(identity) if interp.ledger is not None else None
    if name is not None:
        raise registered(name, span, "these data are")


def registered_table(interp: Evaluator, dataset: Dataset, names: tuple[str, ...], span: Span | None) -> Opened:
    """The data of a registered table, which the session's server knows as those that were registered."""
    name, server, mark = dataset.terms.name, dataset.terms.server, dataset.state.mark
    try:
        if server is None or not isinstance(mark, TableMark):
            raise refuse("LedgerError", f"`{name}` is no table of a server")
        origin = RemoteData(server.source, server.names, mark.own)
        need_server(origin, interp.data.remote, f"`{name}` is registered as a table")
        return interp.data.open(origin, public=False, names=names)
    except Refusal as refusal:
        first = refusal.first
        if first.kind == "LedgerError":
            help = f"its owner looks at it, and takes what is there now: `jostle data update {name}`"
            refusal = refuse("LedgerError", first.message, help=first.help or help)
        raise refusal.at(span) from None


def need_here(interp: Evaluator, name: str, span: Span | None) -> None:
    """Refuses a registered dataset in a session on a server, and advises no way out of the ledger."""
    if interp.data.remote:
        message = f"`{name}` is a registered dataset, a file of this machine, and this session works on a server"
        help = "run the program without `--engine`: there the ledger counts what is spent"
        raise refuse("DataError", message, span, help=help)


def not_registered(interp: Evaluator, origin: object, span: Span | None) -> None:
    """A file that an owner has registered is read through its dataset only, by whatever path it is named."""
    if not isinstance(origin, FileSet) or interp.ledger is None:
        return
    with PlacedAt(span):
        name = next(filter(None, map(interp.ledger.named, origin.parts)), None)
    if name is not None:
        raise registered(name, span)


def registered(name: str, span: Span | None, what: str = "this file is") -> Refusal:
    help = f'read it as that: `private {name} = dataset("{name}")`'
    return refuse("PrivateValue", f"{what} registered as the dataset `{name}`", span, help=help)


def refuse_private(interp: Evaluator, origin: object, span: Span | None) -> None:
    """Before a public source is read: what is wrong in its cells is reported, which of private data would be a leak."""
    not_registered(interp, origin, span)
    if isinstance(origin, FileSet):
        interp.kernel.register.read_publicly(origin.identity, span)
    elif is_array(origin):
        interp.kernel.register.read_publicly(_identity(interp, origin, span), span)


def is_array(origin: Any) -> bool:
    return type(origin).__module__ == "numpy" and getattr(origin.dtype, "names", None) is None


def array_of(interp: Evaluator, origin: object, span: Span | None, *, private: bool = False) -> tuple[Ints, Hashable]:
    """Counts as an int64 array of one to three dimensions, and the identity of where they come from.

    The cells of a private array decide nothing: what is no count is made one, cell by cell.
    """
    from jostle.readers.databases import as_counts, load_counts

    not_registered(interp, origin, span)
    try:
        if isinstance(origin, FileSet):
            if len(origin.parts) > 1:
                raise refuse("DataError", "counts are in one file", help='`counts("people.npy")`')
            return load_counts(origin.parts[0], private=private), origin.identity
        if isinstance(origin, Record) or not (is_sequence(origin) or is_array(origin)):
            raise refuse("TypeError", f"`counts` takes a list of counts or a file, not {kind_name(origin)}")
        identity = _identity(interp, origin, span) if is_array(origin) else ("literal", object())
        return as_counts(np.asarray(origin), "this array", private=private), identity
    except Refusal as refusal:
        raise refusal.at(span) from None
    except (ValueError, TypeError):
        raise refuse("DataError", "counts are numbers in rows of one length", span) from None


def _identity(interp: Evaluator, array: object, span: Span | None) -> Hashable:
    objects = interp.data.objects
    objects.lies_in(array, [array])
    identity: Hashable = objects.identity(array)
    _need_others(interp, identity, span)
    return identity


def check_column(name: str, data: Opened, *, private: bool = False) -> None:
    """Refuses with `DataError` a column that a file does not have. Of a private one the names are listed where types
    have them: what stands in the line of names, also in one that the program says, may be a row."""
    check_read(name, data.unread)
    if name in data.columns:
        return
    names = [column for column in data.columns if column]
    listed = did_you_mean(name, names) or f"the columns are {', '.join(names[:12])}{', …' * (len(names) > 12)}"
    if private and data.header != 0:
        line = f"line {data.header}" if data.header else "its first line"
        listed = f"names are as in the file's header: {line}, and in its case"
        marks = [mark for mark in ",\t;|" if len(names) == 1 and mark in names[0]]
        if marks:
            listed = f'{line} is one name in all: write `separator = "{marks[0]}"`'
        elif len(names) == 1:
            listed = f"{line} has one name, as a title has; say which line has the names: `header = 3`, or `--header 3`"
        else:
            listed += "; where another line has the names, say which: `header = 3`"
    raise refuse("DataError", f"there is no column `{name}`", help=listed)


_EVERYBODY = frozenset({
    "row", "record", "records", "everyone", "everybody", "all", "people", "person", "users", "user", "individuals",
    "persons",
})  # fmt: skip


def check_private_columns(columns: Sequence[str], data: Opened, span: Span | None) -> None:
    """Refuses columns that are described, or that persons are protected by, and that the file does not have."""
    for name in columns:
        if name in _EVERYBODY and name not in data.columns:
            help = "where each row is of another person, write `protecting rows`; else the column that says whose it is"
            raise refuse("DataError", f"there is no column `{name}`", span, help=help)
    check_columns([(name, None) for name in columns], data, span, private=True)


def check_columns(schema: Any, data: Opened, span: Span | None, *, private: bool = False) -> None:
    """Refuses columns that the data do not have, or that are not read."""
    there = set(data.columns).difference(name for name, _ in data.unread)
    for name in [name for name, _ in schema if name not in there]:
        with PlacedAt(span):
            check_column(name, data, private=private)
