"""SQL that databases answer faster: the same values, by what is publicly known of expressions and plans.

A dialect names it in the place of the plain emitter (`engine.sql.rows.RowSql`). Three things are known of expressions:

* *Bounds.* Where they show that a number cannot overflow, or is far from 2^63, its test and the wide conversions are
  left out. What bounds leave out, such as rounding, does not lead so far.
* *Raw cells.* A cleaned cell is a function of the raw one that keeps order, so within the described ends both compare
  alike with a constant: the reader of a file can use that, and fewer rows are cleaned. What an operation on the text of
  a cell comes to may be known without writing the text.
* *Grids.* Doubles on a grid of a power of two, of which no sum is rounded, are added up faster than whole numbers.

What all tables of a union are made of is read once. That all of this says the same as the plain SQL is tested for
generated plans (`tests/engines`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date
from typing import Any

from msgspec import field

from jostle.engine.duckdb.engine import DUCKDB
from jostle.engine.sql import functions
from jostle.engine.sql.cells import FLOATS, WHOLE, moment, number, text
from jostle.engine.sql.dialect import PLACES, Dialect, clamped
from jostle.engine.sql.relations import Base, Relation, relation, rows_of_all
from jostle.engine.sql.rows import Piece, Raw, RowSql
from jostle.language.facts import FLIPPED
from jostle.language.moments import BARE, FIRST_TIME, LAST_TIME, number_of
from jostle.language.operations import COMPARISONS, LONGEST
from jostle.language.patterns import READERS
from jostle.plan import plan as p
from jostle.plan.facts import FACTS, bounds_of, text_values
from jostle.plan.kinds import is_integral
from jostle.records import replace

_EXACT = 2**53
_FEW = 32  # constants that are as soon compared as looked up
_MANY = 2**10  # constants that are sooner read of one text than parsed
_GRID = 1.5 * 2.0**52  # what is added to it keeps no fraction
_NEAR = 2.0**51  # doubles below it have room for a half, and for carries
_FAR = 2.0**900  # so far below the largest double that what bounds leave out, such as rounding, does not lead there
_LARGEST = 1.7976931348623157e308
_FLIPPED = FLIPPED | {"==": "=="}
_CONVERSIONS = frozenset({"number", "date of text", "time of text"})  # what reads a text as something else
_SPELLED, _DIGITS_IN = frozenset({"true", "false", "inf", "-inf"}), frozenset("0123456789")
_SAFE = {"+": "({0} + {1})", "-": "({0} - {1})", "*": "({0} * {1})", "/": "({0} / {1})"}


class QuickRows(RowSql):
    """The expressions of one relation, by what is known of their bounds and raw cells."""

    _converted: dict[p.RowExpr, Piece] = field(default_factory=dict)

    # Bounds --------------------------------------------------------------------------------------------

    def whole_floor(self, expr: p.RowExpr) -> str:
        near = self.dialect.near_whole if self._near(expr) else ""
        return self._filled(near or self.dialect.whole, self._floor(expr)).text

    def _floor(self, expr: p.RowExpr) -> Piece:
        near = self.dialect.near_floor if self._near(expr) else ""
        return self._filled(near or self.dialect.floor, self._tame(self._emit(expr, "number")))

    def _near(self, expr: p.RowExpr) -> bool:
        """Whether a number is below 2^51 in size, so far below 2^63 that what bounds leave out does not lead there."""
        bounds = bounds_of(expr, self.schema)
        return bounds is not None and max(map(abs, bounds)) < _NEAR

    def _between(self, expr: p.RowExpr, low: float, high: float) -> Piece:
        within = self._within(expr)
        if within is None or within[0] < low or within[1] > high:
            return super()._between(expr, low, high)
        return self._tame(self._emit(expr, "number"))

    def _within(self, expr: p.RowExpr) -> tuple[float, float] | None:
        """Two ends that a column was brought between, or a column less or plus a constant: doubles that are in order
        still are when the same is added to them and rounded."""
        if isinstance(expr, p.Column):
            return self.columns[expr.name].within
        if not (isinstance(expr, p.Apply) and expr.op in ("+", "-") and isinstance(expr.args[1], p.Constant)):
            return None
        ends, shift = self._within(expr.args[0]), expr.args[1].value
        if ends is None or not isinstance(shift, float | int):
            return None
        low, high = (end + float(shift) if expr.op == "+" else end - float(shift) for end in ends)
        return (low, high) if math.isfinite(low) and math.isfinite(high) else None

    def _bounded(self, expr: p.Apply, piece: Piece) -> Piece:
        bounded = piece.wild and bounds_of(expr, self.schema) is not None
        return Piece(piece.text, False, piece.stage) if bounded else piece

    def _quick(self, expr: p.Apply) -> Piece | None:
        if expr.op in COMPARISONS:
            return self._of_integers(expr)
        if expr.op == "in":
            missing = "" if p.Constant(None) in expr.args[1:] else self._in_none(expr)
            return Piece(f"CASE WHEN NOT {missing} THEN FALSE END") if missing else None
        if (direct := self._reading(expr)) is not None:
            return Piece(direct)
        if expr.op in _CONVERSIONS:  # which cost most: once for each text
            if expr not in self._converted:
                self._converted[expr] = self._alias(self._operation(expr))
            return self._converted[expr]
        if expr.op == "floor" and self.dialect.near_floor and self._near(expr):
            return self._bounded(expr, self._filled(self.dialect.near_floor, self._emit(expr.args[0], "number")))
        if expr.op in _SAFE and self._safe(expr):  # whose bounds are finite, so that it is
            args = [self._emit(arg, "number") for arg in expr.args]
            return replace(self._filled(_SAFE[expr.op], *args), wild=False)
        return None

    def _safe(self, expr: p.Apply) -> bool:
        """Whether a sum, a product or a quotient by a constant, of finite numbers, is far from overflowing, and one of
        the latter 0 of 0 alone: rounding keeps order, so none is nearer to 0 than that of the least."""
        divisor = expr.args[1]
        if expr.op == "/" and not (isinstance(divisor, p.Constant) and isinstance(divisor.value, float | int)):
            return False
        bounds = bounds_of(expr, self.schema)
        if bounds is None or max(map(abs, bounds)) >= _FAR or (expr.op == "/" and divisor == p.Constant(0.0)):
            return False
        x, y = (self._least(arg) for arg in expr.args)
        return expr.op in "+-" or (x * y if expr.op == "*" else x / y) > 0

    def _least(self, expr: p.RowExpr) -> float:
        """What no value of a number but 0 is nearer to 0 than."""
        if isinstance(expr, p.Constant) and isinstance(expr.value, float | int):
            return abs(float(expr.value)) or math.inf
        return 1.0 if is_integral(expr, self.schema) else math.ulp(0.0)

    def _of_integers(self, expr: p.Apply) -> Piece | None:
        """An integer column against whole numbers stays in integers, which the reader of a file can use."""
        texts = [self._whole_operand(arg) for arg in expr.args]
        op = {"==": "=", "!=": "<>"}.get(expr.op, expr.op)
        return Piece(f"({texts[0]} {op} {texts[1]})") if all(texts) else None

    def _whole_operand(self, expr: p.RowExpr) -> str:
        """A column of integers, or a whole number as one; empty where it is neither."""
        if not isinstance(expr, p.Constant):
            return self.whole_column(expr) or ""
        value = expr.value
        if isinstance(value, date):
            return f"({number_of(value)})"
        if isinstance(value, bool) or not isinstance(value, float | int):
            return ""
        return f"({int(value)})" if abs(value) < _EXACT and float(value).is_integer() else ""

    # Raw cells -----------------------------------------------------------------------------------------

    def _raw(self, expr: p.RowExpr) -> Raw | None:
        """The raw cell of a bare column, where the relation has it."""
        return self.columns[expr.name].raw if isinstance(expr, p.Column) and expr.name in self.columns else None

    def condition(self, expr: p.RowExpr) -> str:
        """Of parts that are tests of raw cells, where they can be."""
        if isinstance(expr, p.Apply) and expr.op in ("and", "or"):
            between = self._ends(expr) if expr.op == "and" else ""
            return between or "(" + f" {expr.op.upper()} ".join(self.condition(arg) for arg in expr.args) + ")"
        match expr:
            case p.Apply("coalesce", (p.Apply("not", (test,)), p.Constant(True))):
                return f"({self.condition(test)} IS NOT TRUE)"
            case p.Apply("==", (p.Apply("floor", (p.Apply("number", (p.Column() as column,)) as value,)), other)):
                raw = self._raw(column)
                if value == other and raw is not None and raw.kind in WHOLE and self._reading(value):
                    return f"({raw.alias} IS NOT NULL)"
        return (isinstance(expr, p.Apply) and self._test(expr)) or super().condition(expr)

    def _test(self, expr: p.Apply) -> str:
        """A test of a raw cell in place of that of a column against a constant; empty where there is none."""
        if expr.op not in COMPARISONS or len(expr.args) != 2:
            return ""
        (left, right), op = expr.args, expr.op
        if isinstance(left, p.Constant):
            left, right, op = right, left, _FLIPPED.get(op, "")
        raw = self._raw(left)
        if raw is None or not isinstance(right, p.Constant) or op not in _FLIPPED:
            return ""
        if isinstance(right.value, str):
            return _word(self.dialect, raw, right.value) if op == "==" else ""
        if isinstance(right.value, bool) or not isinstance(right.value, float | int):
            return ""
        return _number(self.dialect, raw, op, float(right.value))

    def _ends(self, expr: p.Apply) -> str:
        """Whether the number that a cell spells is from one end to another; of what is not finite none is. What is
        compared is a column of numbers, as some readers hand on places in a dictionary."""
        match [(arg.op, *arg.args) for arg in expr.args if isinstance(arg, p.Apply)]:
            case [
                (">=", p.Apply("number", (p.Column() as column,)) as value, p.Constant(float(low))),
                ("<=", other, p.Constant(float(high))),
            ] if value == other and self._reading(value) and (raw := self._raw(column)) is not None:
                if raw.kind in WHOLE and low.is_integer() and high.is_integer() and max(-low, high) < _EXACT:
                    return f"({raw.alias} BETWEEN {int(low)} AND {int(high)})"
                if raw.kind == "DOUBLE" and math.isfinite(low) and math.isfinite(high):
                    cell = f"({raw.alias} + {self.dialect.number(0.0)})"
                    cell = raw.alias if self.dialect.fence else self._alias(Piece(cell), most=0).text
                    return f"({cell} >= {self.dialect.number(low)} AND {cell} <= {self.dialect.number(high)})"
        return ""

    def _reading(self, expr: p.Apply) -> str | None:
        """What an operation on a column's text comes to, where the raw cell tells it sooner."""
        raw = self._raw(expr.args[0]) if len(expr.args) == 1 else None
        return dict(readings(self.dialect, raw)).get(expr.op) if raw and raw.domain == p.Open("text") else None

    def _in_none(self, expr: p.Apply) -> str:
        """Whether a column's text is missing, of a cell that is a number or a truth, which spells none of these words;
        empty where there is no such cell."""
        words = [arg.value if isinstance(arg, p.Constant) else "0" for arg in expr.args[1:]]
        spelled = (not isinstance(word, str) or word in _SPELLED or not _DIGITS_IN.isdisjoint(word) for word in words)
        return "" if any(spelled) else self._reading(p.Apply("missing", expr.args[:1])) or ""

    def _listed(self, expr: p.Apply, value: Piece, literals: list[str], kind: str) -> str:
        """Of what a reader has in a dictionary each different cell is looked up once."""
        raw, words = self._raw(expr.args[0]), expr.args[1:]
        if raw is not None and raw.kind == "VARCHAR" and self.dialect.among_texts:
            listed = raw.domain.values if isinstance(raw.domain, p.Categories) else None
            held = (isinstance(one, p.Constant) and isinstance(one.value, str) and 0 < len(one.value) <= LONGEST
                    and (listed is None or one.value in listed) for one in words)  # fmt: skip
            if (listed is not None or raw.domain == p.Open("text")) and all(held):
                among = self.dialect.among(raw.alias, literals, kind)
                return f"CASE WHEN {among} THEN TRUE WHEN {value.text} IS NOT NULL THEN FALSE END"
        return super()._listed(expr, value, literals, kind)

    # Sums ----------------------------------------------------------------------------------------------

    def quick_sum(self, term: p.FixedSum, factor: float, largest: int, most_rows: float) -> tuple[str, float] | None:
        """On a grid where the database adds up doubles faster, and no sum of `most_rows` of them is rounded."""
        dialect = self.dialect
        if largest >= _NEAR:
            return None
        if not (dialect.grid and largest * most_rows < _EXACT and 1 / _FAR <= factor <= _FAR):
            return (self.fixed(term, factor, (dialect.near_nearest,)), 1.0) if dialect.near_nearest else None
        cell = "" if term.square or term.weighted else self._raw_number(term.expr)
        if cell and (within := self._within(term.expr)):
            low, high = (min(max(end, term.low), term.high) for end in within)
            return self._on_grid(cell, _GRID / factor, (low, high)), factor
        # the nearest double of so fine a grid, which adding a large one leaves of it
        return self._filled(dialect.grid, self._addend(term), Piece(dialect.number(_GRID / factor))).text, factor

    def _on_grid(self, cell: str, grid: float, ends: tuple[float, float]) -> str:
        """A double on a grid, of any that is brought between two ends: NULL of what is not finite. Rounding keeps
        order, so that it may come before; and what is compared is then a column of numbers, as some readers hand on
        places in a dictionary, which are compared more slowly. How far it is from the middle is exact on the grid, or
        beyond both ends in any case, so that one comparison tells what two would."""
        (low, high), literal = ((end + grid) - grid for end in ends), self.dialect.number
        rounded = self._alias(Piece(self.dialect.grid.format(cell, literal(grid))), most=0).text
        near = f"abs({{0}} - {literal((low + high) / 2)}) <= {literal((high - low) / 2)}"
        finite = self.dialect.finite.format(rounded)
        return clamped(replace(self.dialect, between=near), rounded, literal(low), literal(high), finite)

    def _raw_number(self, expr: p.RowExpr) -> str:
        """The raw cell of a column of reals that are stored as such, less a constant or not."""
        if isinstance(expr, p.Column):
            raw = self._raw(expr)
            stored = raw is not None and raw.kind in FLOATS and not isinstance(raw.domain, p.Integer)
            return self.dialect.as_double(raw.alias) if raw is not None and stored else ""
        if not (isinstance(expr, p.Apply) and expr.op in ("+", "-") and isinstance(expr.args[1], p.Constant)):
            return ""
        inner, shift = self._raw_number(expr.args[0]), expr.args[1].value
        if not inner or not isinstance(shift, float | int) or abs(shift) > _FAR:
            return ""
        return f"({inner} {expr.op} {self.dialect.number(float(shift))})"

    def has_all(self, key: p.Key) -> bool:
        if isinstance(key.values, range):
            low, high = bounds_of(key.expr, self.schema) or (-math.inf, math.inf)
            return high - low < math.inf and math.floor(high) - math.floor(low) <= len(key.values) * 17 / 16
        return set(text_values(key.expr, self.schema) or (None,)) <= set(key.values)

    def counted_by(self, terms: tuple[p.Term, ...]) -> dict[str, int]:
        """A sum of a column, less a constant or not, is none in the rows where the column is."""
        return {
            next(iter(p.names_in([term.expr]))): place for place, term in enumerate(terms)
            if isinstance(term, p.FixedSum) and not term.weighted and self._within(term.expr) is not None
        }  # fmt: skip


def readings(d: Dialect, raw: Raw) -> tuple[tuple[str, str], ...]:
    """What operations on the text of a cell come to, by their names, found without writing the text."""
    cell, kind = raw.alias, raw.kind
    none, finite = d.number(math.nan), d.finite.format(cell)
    if kind in WHOLE:
        return ("number", number(d, cell, kind)), ("missing", f"({cell} IS NULL)")
    if kind == "DOUBLE":  # 0 and −0 have one text; an infinite one has a text, and NaN has none
        missing = f"(CASE WHEN {finite} THEN 1 WHEN {cell} < 0 THEN 1 WHEN -({cell}) < 0 THEN 1 END IS NULL)"
        return ("number", f"({number(d, cell, kind)} + {d.number(0.0)})"), ("missing", missing)
    if kind == "BOOLEAN":
        return ("number", none), ("missing", f"({cell} IS NULL)"), ("trim", text(d, cell, kind))
    if kind != "DATE" and not kind.startswith("TIMESTAMP"):
        return ()
    day, time = (moment(d, cell, kind, target) for target in ("date", "time"))
    return ("number", none), ("missing", f"({day} IS NULL)"), ("date of text", day), ("time of text", time)


def _word(d: Dialect, raw: Raw, word: str) -> str:
    """Whether a text is one of the described categories."""
    within = isinstance(raw.domain, p.Categories) and word in raw.domain.values
    return f"({d.ordered.format(raw.alias)} = {d.literal(word)})" if within and word and raw.kind == "VARCHAR" else ""


def _number(d: Dialect, raw: Raw, op: str, value: float) -> str:
    """How a number compares with one that lies between the described ends: beyond them it does as the end does.

    What is not finite is none. NaN is larger than all numbers, so of each comparison one end is left to be tested.
    """
    if not isinstance(raw.domain, p.Integer | p.Real) or not math.isfinite(value):
        return ""
    low, high = raw.domain.low, raw.domain.high
    inside = {">": low <= value < high, "<": low < value <= high}
    inside |= {"<=": inside[">"], ">=": inside["<"], "==": low < value < high}
    if not inside[op]:
        return ""
    sign = "=" if op == "==" else op
    if raw.kind in WHOLE and value.is_integer() and abs(value) < _EXACT:
        return f"({raw.alias} {sign} ({int(value)}))"
    if raw.kind not in FLOATS or isinstance(raw.domain, p.Integer):
        return ""
    test = f"{raw.alias} {sign} {d.number(value)}"
    if op == "==":
        return f"({test})"
    end = f"<= {d.number(_LARGEST)}" if op[0] == ">" else f">= {d.number(-_LARGEST)}"
    return f"({test} AND {d.known_finite.format(raw.alias) or f'{raw.alias} {end}'})"


def looked_up(d: Dialect, value: str, literals: Sequence[str], kind: str) -> str:
    """Many constants are looked up in a table of them: a database compares a list with a row one by one."""
    if kind == "text" and d.among_texts and 2 < len(literals) <= PLACES:
        return d.among_texts.format(value, ", ".join(literals))
    if len(literals) <= _FEW or (d.lists and len(literals) <= _MANY):
        return ""
    if len(literals) > _MANY and d.split and (pieces := _in_one(literals, kind)):
        return f"{value} IN (SELECT {d.split[kind].format(*pieces)})"
    return f"{value} IN (SELECT v FROM (VALUES ({'), ('.join(literals)})) AS l(v))"


def _in_one(literals: Sequence[str], kind: str) -> tuple[str, str] | None:
    """Constants, numbers or texts, as one literal, and that of what stands between them and in none; or None."""
    if kind == "number" and all(literal[0] == "(" for literal in literals):  # none is no such literal
        return "'" + ",".join([literal.strip("()") for literal in literals]) + "'", "','"
    between = "\x1f"
    if kind != "text" or any(literal[0] != "'" or between in literal for literal in literals):
        return None
    return "'" + between.join([literal[1:-1] for literal in literals]) + "'", f"'{between}'"


def united(plan: p.Union, base: Base, dialect: Dialect, depth: int) -> Relation | None:
    """A union of which what all sources are made of is read once; none where that is a data set, which is as soon read
    again."""
    shared = _shared(plan.sources)
    if shared is None or isinstance(shared, p.Scan | p.Bound):
        return None
    inner, stand_in = relation(shared, base, dialect, depth + 1), p.Scan(f"shared{depth}", ())
    again = replace(inner, sql=f"SELECT * FROM {stand_in.data}")

    def read(scan: p.Scan | p.Bound) -> Relation:
        return again if scan == stand_in else base(scan)

    sources = [over(source, shared, stand_in) for source in plan.sources]
    union = rows_of_all([relation(source, read, dialect, depth + 1) for source in sources])
    return replace(union, sql=dialect.shared.format(stand_in.data, inner.sql, union.sql))


def _shared(sources: tuple[p.Plan, ...]) -> p.Plan | None:
    """The largest plan that all of several are made of by filters and derived columns."""
    shared = None
    for step, *others in zip(*map(_steps, sources), strict=False):
        if not others or any(other != step for other in others):
            break
        shared = step
    return shared


def _steps(plan: p.Plan) -> list[p.Plan]:
    """A plan and those that it is made of by filters and derived columns, the innermost first."""
    steps = [plan]
    while isinstance(plan, p.Filter | p.Derive):
        plan = plan.source
        steps.append(plan)
    return steps[::-1]


def over(plan: p.Plan, shared: p.Plan, stand_in: p.Scan) -> p.Plan:
    """A plan made of `shared` by filters and derived columns, made of the stand-in."""
    if isinstance(plan, p.Filter | p.Derive) and plan != shared:
        return replace(plan, source=over(plan.source, shared, stand_in))
    return stand_in


QUICK: dict[str, Any] = {"facts": FACTS, "emitter": QuickRows, "looked_up": looked_up, "united": united, **READERS}
"""What a dialect names to have all of this."""


def _bare(kind: str) -> str:
    """The date or time of a text without blanks and offset, to the microsecond, which most are; else of any."""
    d, digits = DUCKDB, len("2024-03-01 12:30:00.000000")
    micros = d.micros.format("replace({0}, 'T', ' ')")
    value = functions.day_of(d, micros) if kind == "date" else functions.known_time(d, micros)
    matches = d.matches.format("{0}", functions.pattern_literal(d, functions.whole_text(BARE)))
    inside = f"{micros} BETWEEN {FIRST_TIME} AND {LAST_TIME + 999_999}"
    bare, other = f"CASE WHEN {inside} THEN {value} END", functions.of_text(kind)(d)
    return f"CASE WHEN length({{0}}) <= {digits} AND {matches} THEN {bare} ELSE {other} END"


_OF_TEXT = {f"{kind} of text": _bare(kind) for kind in ("date", "time")}
# groups of doubles take less than those of whole numbers that are made of them
QUICK_DUCKDB = replace(DUCKDB, **QUICK, near_whole="{0}", operations={**DUCKDB.operations, **_OF_TEXT})
