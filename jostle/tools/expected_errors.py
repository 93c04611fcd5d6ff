"""What is known of the errors of a program's numbers before it is paid for, and `jostle run FILE --dry`.

Noise is public, so the error of what is measured directly, and of sums and differences of it, is known as soon as the
program says its amounts. A mean, a variance or a covariance is a noisy sum over a number of rows, and its error is
reported over that number. All other errors depend on the data; reported are those of so many simulated rows.

`--dry` shows what each statement would spend, of which source, what is left, and the error that it buys. It runs
simple statements alone, on simulated rows: declarations, queries and built-in functions, without loops, conditions and
functions of the program or the library. The errors of others are left to `jostle plan`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from jostle.accounting.amounts import QUANTA, as_text
from jostle.check.costs import Charge, Cost, near_text
from jostle.error_laws import sum_of_two, widest
from jostle.events import Event
from jostle.formulas import NOISE_ONLY, Formula, Noised, cuts_of, rounded_up
from jostle.language.aggregates import AGGREGATES
from jostle.language.builtins import BUILTINS
from jostle.language.row_functions import ROW_FUNCTIONS
from jostle.noise_laws import ADDITIVE, AdditiveLaw, Bracketed, Gaussian, Laplace, Selected
from jostle.plan.plan import Integer, Real
from jostle.privacy.kernel.handles import Table
from jostle.records import replace
from jostle.run.propagation import additive, of_numbers
from jostle.run.values import Grouped
from jostle.source import Source, Span
from jostle.syntax import nodes as n
from jostle.syntax import parse
from jostle.syntax.walk import every
from jostle.trace.text import UNITS, align, number

if TYPE_CHECKING:
    from jostle.run.looks import Planned


_Place = tuple[int, str]  # the line of a term, and its name there
_OVER = {"": "", "rows": " / rows", "stddev": " / rows / stddev", "ranks": " ranks", "rows fewer": " rows fewer"}


class Direct(Struct, frozen=True):
    """One released number or vector: `error` at `amount` of `unit`, which goes with amount^-`power`.

    The error of a number is its 95 % half-width; of a workload's answers, the root mean square of their standard
    errors. `of` says what it is in: the number itself where empty; `rows`, that it is to be divided by how many rows
    there are, `stddev` by the answer too; `ranks`; of a mode, how many `rows fewer` it has than the
    most frequent value.
    """

    name: str
    line: int
    unit: str
    amount: float
    error: float
    power: float
    of: str = ""
    vector: bool = False
    law: AdditiveLaw | None = None  # of a number itself, whose noise may be whole
    cut: tuple[str, ...] = ()
    """What the error does not cover."""
    width: float = 0.0
    """Of a sum or a mean the width of the range of what is added up, with which its error goes, and of a variance or
    deviation, whose error goes with its square; else 0."""
    groups: int = 1

    def text(self, error: float) -> str:
        return number(error) + (NOISE_ONLY if self.cut else "") + _OVER[self.of]

    def on(self, rows: int) -> float:
        """The error where there are so many rows, which are divided evenly among its groups."""
        return self.error / (rows / self.groups) if self.of in ("rows", "stddev") else self.error

    def plain(self, rows: int) -> str:
        """The error on so many rows, in words."""
        if self.of == "ranks":
            return f"{number(100 * min(1.0, self.error * self.groups / rows), 2)} % of the rows"
        over = " / stddev" if self.of == "stddev" else _OVER[self.of] if self.of != "rows" else ""
        return number(self.on(rows)) + (NOISE_ONLY if self.cut else "") + over

    def at(self, amount: float) -> float:
        """The error at another amount."""
        finer = (self.amount / amount) ** self.power
        if self.law is None:
            return float(self.error * finer)
        return replace(self.law, scale=self.law.scale * finer).half_width()

    def needed(self, error: float) -> float:
        """The least amount that has no larger error."""
        finer = self.error / error if self.law is None else self.law.scale / widest(self.law, error).scale
        return float(self.amount * finer ** (1 / self.power))


class Ranged(Struct, frozen=True):
    """A described column whose range `low`..`high` decides the error of a line's `answer`; `half` is a range that
    halves it, None where there is none. A protected unit has `rows` in it."""

    answer: str
    line: int
    source: str
    column: str
    low: float
    high: float
    half: tuple[float, float] | None
    of: Direct
    amount: float  # of the whole line
    rows: int


class Calculated(Struct, frozen=True):
    """A variable that is calculated from what was measured; of several numbers, the one with the largest error.

    `error` is None where it depends on the data and nobody said how many rows there are. `value` is what simulated rows
    gave, and None where the error is the same for all data.
    """

    name: str
    line: int
    error: float | None
    value: float | None = None
    cut: tuple[str, ...] = ()
    """What the error does not cover."""


def direct_errors(events: Sequence[Event], source: Source, names: Mapping[str, object]) -> list[Direct]:
    """The program's measurements whose error is known: the numbers of its own lines, each once, and its vectors."""
    lines = lines_of(source)
    return [*_measured(events, source, names), *_vectors({name: names[name] for name in lines if name in names}, lines)]


def lines_of(source: Source) -> dict[str, int]:
    """The lines on which a program's variables are last assigned or released, at its top or inside an allotment."""
    bindings = [node for node in every(parse(source)) if isinstance(node, n.Assign | n.Release)]
    return {node.name: node.span.line for node in sorted(bindings, key=lambda node: node.span.line)}


def _measured(events: Sequence[Event], source: Source, names: Mapping[str, object]) -> Iterator[Direct]:
    """Measured numbers: as they are, estimates over the rows, and what was selected."""
    terms, cuts = _terms_and_cuts(events, source)
    groups = _groups(source, names)
    for (line, name), group in terms.items():
        which, parts, of = _term_of(name)
        if of is None and group[0].fields.get("direct"):
            which, parts, of = 0, 1, ""
        fields = group[which].fields
        law: AdditiveLaw | None = None
        unit = next((u for u in ("epsilon", "rho") if u in fields), None)
        if unit is not None and name in AGGREGATES and fields["mechanism"] == Selected.name:
            error, of = fields["within"], "rows fewer" if fields["of"] == "rows" else "ranks"
        elif unit is None or of is None or (fields["mechanism"] == Gaussian.name and unit == "epsilon"):
            continue  # a Gaussian's σ is no power of epsilon
        else:
            law = ADDITIVE[fields["mechanism"]](fields["scale"], fields.get("step", 0.0))
            error = (sum_of_two(law, 0.5) if name == "avg" else law).half_width() / (2 if of == "stddev" else 1)
        power = 0.5 if unit == "rho" else 1.0
        cut = cuts.get((line, name), ())
        amount = fields.get("uses", {}).get(name, fields[unit] * parts)
        many = max(1, groups.get(line, 1))
        yield Direct(name, line, unit, amount, error, power, of, law=None if of else law, cut=cut,
                     width=_width(name, fields), groups=many)  # fmt: skip


def _width(name: str, fields: Mapping[str, float]) -> float:
    """The width of the range that the error of an aggregate goes with, or 0."""
    if "stability" not in fields or not (name in ("sum", "avg") or _is_square(name)):
        return 0.0
    moved = fields["sensitivity"]
    return 2 * math.sqrt(moved) if _is_square(name) else moved  # squares are from the middle of the range


def ranged(direct: Sequence[Direct], source: Source, names: Mapping[str, object]) -> Iterator[Ranged]:
    """The columns in sums, means, variances and deviations of a program's own selects of tables that it names."""
    for select in every(parse(source)):
        if not (isinstance(select, n.Select) and isinstance(select.table, n.Name)):
            continue
        table = names.get(select.table.id)
        if not isinstance(table, Table):
            continue
        lines = range(select.span.line, select.span.end_line + 1)
        within = {one.name: one for one in direct if one.line in lines}
        calls = [node for column in select.columns for node in every(column) if isinstance(node, n.Call)]
        functions = [call.function.id for call in calls if isinstance(call.function, n.Name)]
        paid = math.fsum(within[name].amount for name in functions if name in within)
        for call in calls:
            match call:
                case n.Call(function=n.Name(id=name), args=(n.Name(id=column),)):
                    domain = table.domains.get(column)
                    of = within.get(name)
                    if of is not None and of.width and isinstance(domain, Integer | Real):
                        low, high = float(domain.low), float(domain.high)
                        width = max(abs(low), abs(high)) if name == "sum" else high - low
                        larger = (width / of.width) ** (1 + _is_square(name))
                        error = replace(of, error=of.error * larger, law=None, width=width)
                        rows = max(e.stability for e in table.exposures)
                        yield Ranged(f"{name}({column})", call.span.line, select.table.id, column, low, high,
                                     _half(name, low, high), error, paid, rows)  # fmt: skip


def _is_square(name: str) -> bool:
    """Whether the error of an aggregate goes with the square of a range."""
    return name in ("var", "stddev")


def _half(name: str, low: float, high: float) -> tuple[float, float] | None:
    part = math.sqrt(0.5) if _is_square(name) else 0.5
    if name != "sum" and low >= 0:
        return low, low + (high - low) * part
    if low < 0 < high:
        return low * part, high * part
    ends = (low, high * part) if high > 0 else (low * part, high)
    return ends if ends[0] < ends[1] else None


def one_by_one(direct: Sequence[Direct], ranges: Sequence[Ranged]) -> tuple[Direct, ...]:
    """The numbers of each line, those of several columns apart where their ranges are what parts them."""
    every_one: list[Direct] = []
    for one in direct:
        own = [r for r in ranges if r.of.line == one.line and r.of.name == one.name]
        every_one += [replace(r.of, name=r.answer) for r in own] if len(own) > 1 else [one]
    return tuple(every_one)


def read_ranges(source: Source, names: Mapping[str, object]) -> list[tuple[int, str, str]]:
    """The calls of functions that are given a table and names of columns with a range: line, function and ranges."""
    read = []
    for call in every(parse(source)):
        match call:
            case n.Call(function=n.Name(id=function), args=(n.Name(id=data), *rest)) if function not in BUILTINS:
                table = names.get(data)
                texts = [node.value for arg in rest for node in every(arg) if isinstance(node, n.String)]
                described = list(table.domains.items()) if isinstance(table, Table) else []
                ends = [f"{name} {number(domain.low)}..{number(domain.high)}" for name, domain in described
                        if name in texts and isinstance(domain, Integer | Real)]  # fmt: skip
                read += [(call.span.line, function, ", ".join(ends))] if ends else []
    return read


def _groups(source: Source, names: Mapping[str, object]) -> dict[int, int]:
    """How many groups the selects have that variables are assigned, by their lines."""
    groups: dict[int, int] = {}
    for node in every(parse(source)):
        value = names.get(node.name) if isinstance(node, n.Assign) else None
        if isinstance(value, Grouped):
            lines = range(node.span.line, node.span.end_line + 1)
            groups |= dict.fromkeys(lines, len(next(iter(value.columns.values()), ())))
    return groups


def _terms_and_cuts(
    events: Sequence[Event], source: Source
) -> tuple[dict[_Place, list[Event]], dict[_Place, tuple[str, ...]]]:
    """For each term of a program, the events in which it was measured, and how its values were cut before."""
    terms: dict[_Place, list[Event]] = {}
    cuts: dict[_Place, tuple[str, ...]] = {}
    for event in events:
        if event.kind == "query" and event.span is not None and "cut" in event.fields:
            cuts.update({(event.span.line, name): tuple(cut) for name, cut in event.fields["cut"].items()})
        if event.kind == "measure" and event.span is not None and event.span.source.name == source.name:
            for name in event.fields.get("uses") or (event.name,):  # one number may serve several aggregates
                terms.setdefault((event.span.line, name), []).append(event)
    return terms, cuts


def _term_of(estimate: str) -> tuple[int, int, str | None]:
    """Which of its noisy sums has the noise that counts, of how many, and what its error is over."""
    match estimate:
        case "avg":
            return 0, 1, "rows"  # the sum is half the difference of the two numbers of its pair
        case "var" | "stddev":
            return -1, 3, "rows" if estimate == "var" else "stddev"
        case "covariance":
            return -1, 4, "rows"
    return 0, 1, None


def _vectors(names: Mapping[str, object], lines: Mapping[str, int]) -> Iterator[Direct]:
    """The program's variables that hold noisy cells, or a workload's answers, by a strategy whose error is known."""
    from jostle.kernels.accuracy import root_mean_square
    from jostle.kernels.noisy_array import noise_of
    from jostle.kernels.workloads.boxes import identity

    for name, value in names.items():
        noise = noise_of(value)
        if noise is None or noise.strategy is None or noise.epsilon <= 0 or not isinstance(noise.law, Laplace):
            continue
        workload = noise.workload if noise.workload is not None else identity(noise.shape)
        error = root_mean_square(noise.strategy, workload, noise.law.smooth.deviation)  # goes with a power of ε
        yield Direct(name, lines[name], "epsilon", noise.epsilon, error, 1.0, vector=True, cut=noise.cut)


def calculated_errors(source: Source, names: Mapping[str, object], on_made_up_rows: bool) -> list[Calculated]:
    """The program's variables that are calculated from noisy numbers; of a mean alone over its rows."""
    return [
        one
        for name, line in lines_of(source).items() if name in names
        for path, numbers in _numbers(name, names[name])
        for one in [_calculated(path, line, numbers, on_made_up_rows)] if one is not None
    ]  # fmt: skip


def _numbers(path: str, value: object) -> Iterator[tuple[str, list[Noised]]]:
    if isinstance(value, Grouped):
        for name, column in list(value.columns.items())[value.keys :]:
            yield from _numbers(f"{path}.{name}", column)
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from _numbers(f"{path}.{name}", item)
    else:
        numbers = [item for item in (value if isinstance(value, list) else [value]) if type(item) is Noised]
        if any(isinstance(item.origin, Formula) or isinstance(item.law, Bracketed) for item in numbers):
            yield path, numbers


def _calculated(path: str, line: int, numbers: Collection[Noised], on_made_up_rows: bool) -> Calculated | None:
    pairs = [(one.error, float(value)) for value, one in zip(numbers, of_numbers(list(numbers)), strict=True) if one]
    if len(pairs) < len(numbers):
        return None  # of what is calculated from selected numbers, ranks say nothing
    (error, value), cut = max(pairs), cuts_of(*numbers)
    if all(additive(item) for item in numbers):
        return Calculated(path, line, error, cut=cut)
    if on_made_up_rows:
        return Calculated(path, line, error, value, cut)
    return None if all(_is_mean(item) for item in numbers) else Calculated(path, line, None, cut=cut)


def _is_mean(value: Noised) -> bool:
    """Whether it is the estimate of a select from a sum and a count, of which the select's own line tells."""
    origin = value.origin
    return isinstance(origin, Formula) and callable(origin.function) and len(origin.inputs) == 2


_CUT = 60  # characters of a line that a table shows
_QUICK = {name for name, row in BUILTINS.items() if not row.module} | set(AGGREGATES) | set(ROW_FUNCTIONS)


class DryRun(Struct, frozen=True):
    """What a program can cost, before it runs: of each source in all (`costs`), and statement by statement.

    `str` of it is a table. Of a source that an earlier program of the session spent from, less is left than it says.
    `errors` has what is known of what a statement measures, by its place.
    """

    source: Source
    costs: tuple[Cost, ...]
    errors: Mapping[Span, Sequence[Direct]]

    @property
    def charges(self) -> list[Charge]:
        """The charges in the order of the program; a statement that costs two sources something has two."""
        charges = [charge for cost in self.costs for charge in cost.charges]
        return sorted(charges, key=lambda charge: (charge.span.line, charge.span.column))

    def __str__(self) -> str:
        charges = self.charges
        if not charges:
            return "nothing is spent"
        rows = [["line", "", "source", "amount", "looks", "left", "error"]]
        place = None
        for charge in charges:
            again, place = place == charge.span, charge.span
            looks, errors = f"{charge.looked / QUANTA:.4g}" if charge.looked else "", self.errors.get(charge.span, ())
            rows.append([*(("", "") if again else (_lines(charge), self._text(charge))), charge.source, amount(charge),
                         looks, left(charge), "" if again else ", ".join(_errors(errors))])  # fmt: skip
        columns = [at for at in range(len(rows[0])) if at == 1 or any(row[at] for row in rows[1:])]
        return "\n".join(align([[row[at] for at in columns] for row in rows], [True, *[False] * (len(columns) - 1)]))

    def as_json(self) -> list[dict[str, object]]:
        """Amounts as exact decimals, null where there is no bound or, of what is left, where it is not known."""
        return [
            {
                "line": charge.span.line, "end_line": charge.span.end_line, "source": charge.source,
                "unit": charge.unit, "most": None if math.isinf(charge.most) else as_text(int(charge.most)),
                "exact": charge.exact, "looks": as_text(charge.looked),
                "left": None if charge.left is None else as_text(charge.left),
                "left_exact": charge.left_exact,
                "errors": [
                    {"name": d.name, "error": d.error} | ({"of": d.of} if d.of else {})
                    for d in self.errors.get(charge.span, ())
                ],
            }
            for charge in self.charges
        ]  # fmt: skip

    def _text(self, charge: Charge) -> str:
        """The first line of a statement, cut where it is long."""
        line = self.source.line(charge.span.line).strip()
        return line if len(line) <= _CUT else f"{line[: _CUT - 1].rstrip()}…"


def dry_run(source: Source, costs: Sequence[Cost], events: Sequence[Event], names: Mapping[str, object]) -> DryRun:
    """What is known of a program; `costs` are its own, `events` and `names` what a rehearsal of simple lines left."""
    charges = [charge for cost in costs for charge in cost.charges]
    errors: dict[Span, list[Direct]] = {}
    for direct in direct_errors(events, source, names):
        for place in {charge.span for charge in charges}:
            if place.line <= direct.line <= place.end_line:
                errors.setdefault(place, []).append(direct)
    paid = {place: each for place, each in errors.items() if _paid(place, each, charges)}
    return DryRun(source, tuple(costs), {place: _beside_looks(each, place, charges) for place, each in paid.items()})


def with_looks(costs: Sequence[Cost], looks: Mapping[Span, Sequence[Planned]]) -> list[Cost]:
    """The costs with what of each statement's charge is for looks, by the statements' places."""

    def looked(charge: Charge) -> Charge:
        own = [look for look in looks.get(charge.span, ()) if look.source == charge.source]
        columns = dict.fromkeys(column for look in own for column in look.columns)
        return replace(charge, looked=sum(look.amount.value for look in own), columns=tuple(columns))

    return [replace(cost, charges=tuple(map(looked, cost.charges))) for cost in costs]


def simple(statement: n.Stmt) -> bool:
    """Whether a statement takes no time to speak of: it calls built-in functions alone, and nothing again and again."""
    for node in every(statement):
        match node:
            case n.Use() | n.Def() | n.If() | n.For() | n.Run() | n.Choice() | n.Comprehension():
                return False
            case n.Call(function=n.Name(id=name)):
                if name not in _QUICK:
                    return False
            case n.Call():
                return False
    return True


def _paid(place: Span, errors: Sequence[Direct], charges: Sequence[Charge]) -> bool:
    """Whether the measurements of the rehearsal asked for what the statement will: others may have been left out."""
    amount = math.fsum(direct.amount for direct in errors)
    return any(
        charge.exact and charge.span == place and math.isclose(amount, charge.most / QUANTA, rel_tol=1e-9)
        for charge in charges
    )


def _beside_looks(errors: Sequence[Direct], place: Span, charges: Sequence[Charge]) -> list[Direct]:
    """The errors of what is left of a statement's amount where a part of it pays for looks."""
    left = min((1 - c.looked / c.most for c in charges if c.span == place and c.looked), default=1.0)
    return [replace(direct, error=direct.error * left**-direct.power) for direct in errors]


def _errors(errors: Sequence[Direct]) -> Iterator[str]:
    """`± 10`, to two digits; of several, with their names; of vectors the root mean square."""
    for direct in errors:
        text = direct.text(rounded_up(direct.error))
        name = f"{direct.name} " if len(errors) > 1 or direct.vector else ""
        yield f"{name}off by {text}" if direct.vector else f"{name}± {text}"


def amount(charge: Charge) -> str:
    """`ε 0.3`, `at most ε 0.3`."""
    if math.isinf(charge.most):
        return "no bound but its budget"
    unit = UNITS.get(charge.unit, charge.unit)
    return f"{'' if charge.exact else 'at most '}{unit} {near_text(int(charge.most))}".replace("  ", " ")


def left(charge: Charge) -> str:
    """`0.7`, `at least 0.7`; what only the owner of a dataset knows is not said."""
    if charge.left is None:
        return "its owner knows"
    return f"{'' if charge.left_exact else 'at least '}{near_text(charge.left)}"


def prices(charges: Sequence[Charge]) -> list[str]:
    """A text for each charge: `people: ε 0.3`."""
    return [f"{charge.source}: {amount(charge)}" for charge in charges]


def _lines(charge: Charge) -> str:
    first, last = charge.span.line, charge.span.end_line
    return str(first) if first == last else f"{first}–{last}"
