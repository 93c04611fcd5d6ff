"""What a run gives back: released values as Python users expect them, budgets, diagnostics, events, printed lines."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from functools import partial
from importlib import import_module
from itertools import islice
from typing import TYPE_CHECKING, Any, NoReturn, cast

from jostle.accounting.amounts import as_text
from jostle.diagnostics import Diagnostic, Refusal, did_you_mean, need_package, refuse
from jostle.events import Event
from jostle.lazy import np
from jostle.privacy.ledger.ledger import Account
from jostle.source import Source
from jostle.syntax import nodes as n
from jostle.version import __version__

if TYPE_CHECKING:
    from jostle.privacy.kernel.exposures import Register
    from jostle.run.values import Grouped
    from jostle.trace.pictures import Picture


_LINES = 200  # printed lines that the event of a run holds


def balances(register: Register) -> dict[str, dict[str, dict[str, str]]]:
    """For each declared name, what it may lose and has lost, as exact decimals; of periods, one and all of them."""
    out: dict[str, dict[str, dict[str, str]]] = {}
    for name, source in list(register.names.items()):
        limit, spent = source.measure.limit, source.measure.spent_exactly(source.meter.spent)
        out[name] = {limit.unit: {"total": as_text(limit.value), "spent": as_text(spent[0])}}
        if limit.delta:
            out[name]["delta"] = {"total": as_text(limit.delta), "spent": as_text(spent[1])}
        if ever := source.measure.for_ever:
            out[name][limit.unit] |= {"for_ever": as_text(ever), "all_periods": as_text(source.meter.spent[1])}
    return out


def at_end(register: Register, printed: Sequence[str]) -> dict[str, object]:
    """What the event of a run holds at its end; `ledger` are places in the histories of registered data."""
    accounts = [account for account in register.accounts() if isinstance(account, Account)]
    receipts = {account.name: [[r.number, r.hash] for r in account.receipts] for account in accounts}
    ledger = {"ledger": receipts} if receipts else {}
    of_run = {"printed": printed[:_LINES], "version": __version__, "date": str(date.today())}
    return {"budget": balances(register), **ledger, **of_run}


def to_python(value: object) -> Any:
    """A public value of a program as Python users expect it."""
    from jostle.run.values import Grouped, Interval, JSet, is_number, is_sequence

    if isinstance(value, Grouped):
        import pandas

        from jostle.run.margins import with_ends

        columns = with_ends(dict(value.columns))
        return pandas.DataFrame({name: _column(list(values)) for name, values in columns.items()})
    if isinstance(value, dict):
        return {name: to_python(item) for name, item in value.items()}
    if isinstance(value, (JSet, Interval)) or (is_sequence(value) and isinstance(value, (list, tuple))):
        items = list(value)
        if items and all(is_number(item) for item in items):
            return np.array(items, dtype=float)
        return [to_python(item) for item in items]
    return value


def _column(values: list[Any]) -> Any:
    """A column of a frame: ints where all of its numbers are whole, as counts are, other numbers as they are; dates and
    times as NumPy has them, of any year."""
    if values and all(isinstance(value, date) for value in values):
        return np.array(values, dtype=f"datetime64[{'us' if isinstance(values[0], datetime) else 's'}]")
    whole = all(isinstance(value, float) and value.is_integer() and abs(value) < 2**53 for value in values)
    return [int(value) for value in values] if whole else values


class Unreleased(Refusal, KeyError):
    """A name that nothing was released by is asked for."""


class Released(dict[str, Any]):
    """Released values by name; a name that is none of them is refused with those that there are."""

    def __missing__(self, name: str) -> NoReturn:
        there = "there are " + ", ".join(f"`{one}`" for one in self) if self else "a program releases: `release n`"
        help = did_you_mean(str(name), self) or there
        raise Unreleased(Diagnostic("NameError", f"nothing was released as `{name}`", help=help))


@dataclass
class Result:
    """The result of a run: released values, the budget of every source, diagnostics, events, printed lines, and what
    was warned of and stopped nothing.

    `unreleased`, of a run that failed: values of names that rest on private data and were not released.
    """

    ok: bool
    values: dict[str, Any] = field(repr=False)
    budget: dict[str, dict[str, dict[str, str]]]
    diagnostics: tuple[Diagnostic, ...]
    events: list[Event] = field(repr=False)
    output: list[str] = field(repr=False)
    unreleased: dict[str, object] = field(default_factory=dict, repr=False)
    warnings: tuple[Diagnostic, ...] = ()

    @property
    def trace(self) -> list[Event]:
        return self.events

    @property
    def released(self) -> Released:
        """The released values by name: numbers, arrays for vectors and lists of numbers, pandas frames for groups."""
        return Released({name: to_python(value) for name, value in self.values.items()})

    @property
    def measured(self) -> dict[str, Any]:
        """What a run that failed had measured and not released, by name (`f.name` in a function), as `released`."""
        return {name: to_python(value) for name, value in self.unreleased.items()}

    def released_json(self, long: Callable[[Grouped], object] | None = None) -> dict[str, object]:
        """The released values as JSON has them; `long` stands in for tables of more than `ROWS_AT_ONCE` rows."""
        return _json(self.values, long)

    def measured_json(self, long: Callable[[Grouped], object] | None = None) -> dict[str, object]:
        return _json(self.unreleased, long)

    def face(self, name: str) -> str:
        """What a released classifier says of itself; nothing of other values."""
        from jostle.run.values import is_model

        value = self.values.get(name, self.unreleased.get(name))
        json = value.as_json() if is_model(value) else None
        return str(value) if isinstance(json, dict) and "model" in json else ""

    def margins(self) -> dict[str, Any]:
        """For each such value whose noise is known, its 95 % `error`, `low` and `high`, in the value's form."""
        from jostle.run.margins import margins

        by_name = {name: margins(value) for name, value in {**self.unreleased, **self.values}.items()}
        return {name: one for name, one in by_name.items() if one is not None}

    def choices(self) -> list[dict[str, object]]:
        """The outermost choices, as the trace has them: what was chosen, its features and what they mean, each option's
        prediction and how it goes along the feature that decided, and why; without the trees."""
        from jostle.trace.costs import Forest

        apart = ("v", "id", "parent", "kind", "trees")
        events = Forest.of(self.events).outermost("choice")
        return [{key: value for key, value in e.as_json().items() if key not in apart} for e in events]

    def frame(self, name: str, library: str = "pandas") -> Any:
        """A released value that `--save` can write, each noisy column with the ends of its ±: a frame of `pandas` or
        `polars`, or an `arrow` table. Raises `KeyError` for a name that was not released, `Refusal` for what is no
        table or no library."""
        if library not in ("pandas", "polars", "arrow"):
            raise refuse("ValueError", f"there are no frames of `{library}`", help="`pandas`, `polars` or `arrow`")
        from jostle.tools.export import arrow, pandas_frame, sheet

        frame = self[name]
        frame = frame.frame() if callable(getattr(frame, "frame", None)) else frame  # synthetic rows
        if library == "pandas" and hasattr(frame, "dtypes") and hasattr(frame, "columns"):
            return frame
        if library != "pandas":
            need_package("pyarrow", "arrow", "such frames are made by")
        if library == "polars":
            need_package("polars", "polars", "such frames are of")
        try:
            rows = sheet(name, self.values[name])
        except Refusal:
            raise refuse("TypeError", f"`{name}` is no table", help=f'`result["{name}"]` has its value') from None
        if library == "pandas":
            return pandas_frame(rows)
        return import_module("polars").from_arrow(arrow(rows)) if library == "polars" else arrow(rows)

    def __getitem__(self, name: str) -> Any:
        if name not in self.values:
            hint = did_you_mean(name, self.values) or f"the program says `release {name}` of what it hands out"
            raise KeyError(f"nothing was released as `{name}`: {hint}")
        return to_python(self.values[name])

    def __getattr__(self, name: str) -> NoReturn:
        """Of what a result has not: what was released has its name in brackets."""
        values = self.__dict__.get("values", {})
        own = [one for one in dir(type(self)) if one[:1] != "_"]
        help = f'write `result["{name}"]`' if name in values else did_you_mean(name, own) or f"it has {', '.join(own)}"
        raise AttributeError(f"a result has no `{name}`: {help}")

    def __iter__(self) -> Iterator[str]:
        """The names of what was released, as of a dict: `"n" in result`, `list(result)`."""
        return iter(self.values)

    @property
    def pictures(self) -> list[Picture]:
        """The pictures of the program, in order; each shows itself in a notebook, and `save`s itself as a file."""
        from jostle.trace.pictures import pictures

        return pictures(self.events)

    def document(self, simulate: int | None = None, unsaved: Sequence[Diagnostic] = ()) -> str:
        """A run as one JSON object."""
        return "".join(self.document_parts(simulate, unsaved))

    def document_parts(self, simulate: int | None = None, unsaved: Sequence[Diagnostic] = ()) -> Iterator[str]:
        """The pieces of that text, of a long table some rows each: memory holds what was paid for, whatever it is."""
        from jostle.trace.jsonl import plain

        wrong = [*self.diagnostics, *unsaved]
        document: dict[str, object] = {"ok": self.ok and not unsaved}
        if wrong:
            document["error"] = wrong[0].as_json()
            if len(wrong) > 1:
                document["errors"] = [d.as_json() for d in wrong]
        elif not self.ok:
            document["error"] = {"kind": "Stopped", "message": "the run was stopped; what was charged stays charged"}
        if simulate is not None:
            document["simulated"] = simulate
        document["released"] = self.released_json(_as_it_is)
        if self.unreleased:
            document["measured"] = self.measured_json(_as_it_is)
        document["margins"] = self.margins()
        if choices := self.choices():
            document["choices"] = choices
        warnings = [d.as_json() for d in self.warnings]
        document |= {"budget": self.budget, "output": self.output, "warnings": warnings}
        between = "{"
        for key, value in document.items():
            yield f"{between}{_dumps(key)}: "
            if key in ("released", "measured"):
                yield from _pieces(cast("dict[str, object]", value))
            else:
                yield _dumps(plain(value))
            between = ", "
        yield "}"


def _as_it_is(table: Grouped) -> Grouped:
    return table


def _pieces(values: Mapping[str, object]) -> Iterator[str]:
    """The text of an object with values by their names; that of a long table some rows at a time."""
    from jostle.run.values import Grouped
    from jostle.trace.jsonl import plain

    between = "{"
    for name, value in values.items():
        yield f"{between}{_dumps(name)}: "
        if isinstance(value, Grouped):
            columns = value.columns
            rows = (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))
            start = "["
            while some := [*islice(rows, ROWS_AT_ONCE)]:
                yield start + _dumps(_json({"": some})[""])[1:-1]
                start = ", "
            yield "]"
        else:
            yield _dumps(plain(value))
        between = ", "
    yield "}" if values else "{}"


_dumps = partial(json.dumps, ensure_ascii=False, allow_nan=False)


LOG = logging.getLogger("jostle")
LOG.addHandler(logging.NullHandler())
Budget = dict[str, dict[str, dict[str, str]]]


def log_start(source: Source, budget: Budget) -> Budget:
    """Logs at INFO that a program begins; gives the budget that stands then."""
    _log(logging.INFO, "%s begins", source.name, program=source.name, event="begin")
    return budget


def log_end(source: Source, result: Result, before: Budget | None) -> Result:
    """Logs each refusal at WARNING, what each source was charged and that the program ended at INFO: public facts, in
    words and as the fields `jostle` of the record. Nothing where there is no `before`, as of simulations."""
    if before is None:
        return result
    for fault in result.diagnostics:
        line = fault.span.line if fault.span is not None else 0
        words = (source.name, f" on line {line}" if line else "", fault.kind, fault.message)
        _log(logging.WARNING, "%s is refused%s: %s: %s", *words, program=source.name, event="refusal", line=line,
             kind=fault.kind, message=fault.message)  # fmt: skip
    for name, units in result.budget.items():
        for unit, amounts in units.items():
            spent = Decimal(amounts["spent"]) - Decimal(before.get(name, {}).get(unit, {}).get("spent", "0"))
            charged = (source.name, name, f"{unit} {spent:f}", amounts["spent"], amounts["total"])
            _log(logging.INFO, "%s: %s is charged %s, %s of %s in all", *charged, program=source.name, event="charge",
                 source=name, unit=unit, charged=f"{spent:f}", **amounts)  # fmt: skip
    _log(logging.INFO, "%s %s", source.name, "ends" if result.ok else "stops", program=source.name, event="end",
         ok=result.ok)  # fmt: skip
    return result


def _log(level: int, message: str, /, *words: object, **fields: object) -> None:
    with suppress(Exception):  # of a handler: what was paid for is handed over all the same
        LOG.log(level, message, *words, extra={"jostle": fields})


ROWS_AT_ONCE = 4096


def _json(values: dict[str, object], long: Callable[[Grouped], object] | None = None) -> dict[str, object]:
    from jostle.run.values import Grouped, plain

    return {name: long(value) if long is not None and isinstance(value, Grouped) and len(value) > ROWS_AT_ONCE
            else plain(value) for name, value in values.items()}  # fmt: skip


def need_settings(tree: n.Program, settings: Mapping[str, object]) -> None:
    """Refuses a setting of a parameter that a program does not have, and one of another kind than its default."""
    from jostle.run.declare import setting

    declared = {s.name: s.default for s in tree.body if isinstance(s, n.ParamDecl)}
    for name, value in settings.items():
        default = declared.get(name)
        if isinstance(default, n.Number | n.String | n.Constant):
            setting(value, default.value, name)
        if name not in declared:
            text = value if isinstance(value, str) else "…"
            literal = text if re.fullmatch(r"-?\d+(\.\d+)?|true|false|…", text) else f'"{text}"'
            own = f"write `param {name} = {literal}` in it"
            help = did_you_mean(name, declared) or (f"it has {', '.join(declared)}" if declared else own)
            raise refuse("NameError", f"the program has no `param {name}`", help=help)
