"""Row expressions as SQL. The SQL is total, and contains user text only as quoted constants.

Column names are generated (`c0`, `c1`, …). No row can make an operation fail: operands outside its domain become NULL
before it is applied, and infinite results become NULL. Spellings that differ between databases come from the dialect.

Most operations propagate NaN and infinities, so the test is deferred to the first operation that would not (and to the
end). It is omitted if interval bounds show that it is not needed. A long operand that is used more than once becomes a
column of a subquery (`t0`, `t1`, …), so the text grows linearly.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from msgspec import Struct, field

from jostle.diagnostics import refuse
from jostle.engine.sql import functions
from jostle.engine.sql.dialect import Dialect, clamped, subquery
from jostle.language.operations import COMPARISONS, OPERATIONS
from jostle.plan.kinds import Schema, domain_of, is_integral, kind_of
from jostle.plan.plan import WEIGHT_BITS, Apply, Column, Constant, Count, Domain, FixedSum, Key, RowExpr, Term
from jostle.plan.schemas import floors
from jostle.records import replace

_SHORT = 60  # characters of an operand that may be repeated
_DIGITS = 10**15  # smaller integers have one text on every engine
_PRODUCT = "({0} * {1})"


class Raw(Struct, frozen=True):
    """The raw cell of a column: its name in the relation, its kind (`cells`), and its described domain."""

    alias: str
    kind: str
    domain: Domain


class Physical(Struct, frozen=True):
    """A column of a relation in SQL: its name, whether it is stored as an integer, the ends that it was clamped to, if
    any, and its raw cell, if the relation has it."""

    alias: str
    whole: bool = False
    within: tuple[float, float] | None = None
    raw: Raw | None = None


class Piece(Struct, frozen=True):
    """SQL text. `wild`: it may be NaN or infinite. `stage` is the number of subqueries that it needs."""

    text: str
    wild: bool = False
    stage: int = 0


def number_text(dialect: Dialect, value: str) -> str:
    """A unique text of a finite double, the same for 0 and −0: `3.0` for integers below 10^15, else its bits."""
    whole = f"{value} = {dialect.floor.format(value)} AND abs({value}) < {_DIGITS}"
    digits = f"{dialect.as_text(dialect.whole.format(value))} || '.0'"
    return f"CASE WHEN {whole} THEN {digits} ELSE '#' || {dialect.as_text(dialect.bits.format(value))} END"


class RowSql(Struct):
    """Emits expressions on one relation. `over` wraps the relation in the subqueries that they need."""

    columns: Mapping[str, Physical]
    schema: Schema
    dialect: Dialect
    _stages: list[list[str]] = field(default_factory=list)
    _names: int = 0

    def value(self, expr: RowExpr, kind: str = "") -> str:
        """A finite double, a text, a boolean or NULL; dates and times as their numbers."""
        kind = kind or kind_of(expr, self.schema)
        text = self._tame(self._emit(expr, kind)).text
        return self.dialect.ordered.format(text) if kind == "text" else text

    def floor(self, expr: RowExpr) -> str:
        """A number rounded down to an integer."""
        return self._floor(expr).text

    def whole_floor(self, expr: RowExpr) -> str:
        """The same as a BIGINT; NULL beyond 64 bits."""
        return self._filled(self.dialect.whole, self._floor(expr)).text

    def _floor(self, expr: RowExpr) -> Piece:
        return self._filled(self.dialect.floor, self._tame(self._emit(expr, "number")))

    # Hooks for a faster emitter with the same values (`speed.quicksql`) -------------------------------

    def _quick(self, expr: Apply) -> Piece | None:
        """A faster form of an operation; None without one."""
        return None

    def _bounded(self, expr: Apply, piece: Piece) -> Piece:
        """The same piece, not `wild` if bounds show that."""
        return piece

    def condition(self, expr: RowExpr) -> str:
        """A condition that is TRUE if a boolean expression is, and otherwise FALSE or NULL."""
        if (kind := kind_of(expr, self.schema)) != "boolean":
            raise refuse("TypeError", f"a condition is true or false, and this is {kind}", help="compare it: `x > 0`")
        return self.value(expr, "boolean")

    def quick_sum(self, term: FixedSum, factor: float, largest: int, most_rows: float) -> tuple[str, float] | None:
        """One row's term of a sum as an integer divided by a power of two, and that power; None for the integer."""
        return None

    def has_all(self, key: Key) -> bool:
        """Whether a key of texts or a range lists all values of its expression, or all but a few."""
        return False

    def counted_by(self, terms: tuple[Term, ...]) -> dict[str, int]:
        """For columns, the index of a term with a value in the same rows."""
        return {}

    def fixed(self, term: FixedSum, factor: float, nearest: tuple[str, ...]) -> str:
        """A row's summand times a power of two, rounded by the templates `nearest`, or NULL. The product is below 2^81
        in size."""
        product = _PRODUCT if factor >= 1 else self.dialect.multiply
        piece = self._filled(product, self._addend(term), Piece(self.dialect.number(factor)))
        for template in nearest:
            piece = self._filled(template, piece)
        return piece.text

    def _addend(self, term: FixedSum) -> Piece:
        """A number clamped to the ends of a sum, or its square, times the weight of its row; or NULL."""
        piece = self._between(term.expr, term.low, term.high)
        if term.square:
            product = _PRODUCT if is_integral(term.expr, self.schema) else self.dialect.multiply
            piece = self._filled(product, piece, piece)
        return self._filled(self.dialect.multiply, piece, Piece("w")) if term.weighted else piece

    def _between(self, expr: RowExpr, low: float, high: float) -> Piece:
        piece = self._alias(self._tame(self._emit(expr, "number")))
        ends = self.dialect.number(low), self.dialect.number(high)
        text = clamped(self.dialect, piece.text, *ends, f"{piece.text} IS NOT NULL")
        return self._alias(Piece(text, False, piece.stage))

    def whole_column(self, expr: RowExpr) -> str | None:
        """The name of a bare column that is stored as an integer."""
        if not isinstance(expr, Column):
            return None
        domain_of(expr.name, self.schema)
        physical = self.columns[expr.name]
        return physical.alias if physical.whole else None

    def over(self, relation: str) -> str:
        for stage in self._stages:
            relation = f"SELECT *, {', '.join(stage)} FROM {subquery(relation)}{self.dialect.fence}"
        return relation

    # Subqueries --------------------------------------------------------------------------------------

    def _alias(self, piece: Piece, most: int = _SHORT) -> Piece:
        """The same value under a column name, unless it is short."""
        if len(piece.text) <= most:
            return piece
        while len(self._stages) <= piece.stage:
            self._stages.append([])
        name = f"t{self._names}"
        self._names += 1
        self._stages[piece.stage].append(self.dialect.named(piece.text, name))
        return Piece(name, piece.wild, piece.stage + 1)

    def _tame(self, piece: Piece) -> Piece:
        if not piece.wild:
            return piece
        piece = self._alias(piece)
        return Piece(f"CASE WHEN {self.dialect.finite.format(piece.text)} THEN {piece.text} END", False, piece.stage)

    # Expressions -------------------------------------------------------------------------------------

    def _emit(self, expr: RowExpr, kind: str) -> Piece:
        if isinstance(expr, Constant):
            return Piece(self.dialect.constant(expr.value, kind))
        if isinstance(expr, Column):
            physical = self.columns[expr.name]
            return Piece(self.dialect.as_double(physical.alias) if physical.whole else physical.alias)
        if (quick := self._quick(expr)) is not None:
            return quick
        if expr.op in COMPARISONS:
            return self._compare(expr)
        if expr.op in ("and", "or", "not"):
            return self._logic(expr)
        if expr.op == "in":
            return self._among(expr)
        if expr.op == "if":
            return self._if(expr, kind)
        if expr.op == "coalesce":
            return self._coalesce(expr, kind)
        if expr.op == "bucket":
            return self._bucket(expr)
        return self._bounded(expr, self._operation(expr))

    def _operation(self, expr: Apply) -> Piece:
        operation = OPERATIONS[expr.op]
        args = [
            self._tame(self._emit(arg, kind_of(arg, self.schema))) if kind == "any" else self._emit(arg, kind)
            for arg, kind in zip(expr.args, operation.kinds, strict=True)
        ]
        if expr.op in functions.FINITE:
            args = [self._tame(arg) for arg in args]
        if expr.op == "/":
            return self._divide(expr, *args)
        if expr.op == "^":
            return self._power(*args)
        if expr.op == "%":
            return self._remainder(*args)
        if expr.op == "pair":
            return self._pair(*(self._text(arg, a) for arg, a in zip(expr.args, args, strict=True)))
        constants = expr.args[len(args) - len(operation.constants) :]
        literals = tuple(constant.value for constant in constants if isinstance(constant, Constant))
        piece = self._filled(functions.template(self.dialect, expr.op, literals), *args)
        return replace(piece, wild=piece.wild or expr.op in functions.WILD)

    def _filled(self, template: str, *args: Piece) -> Piece:
        """A template with its operands, as column names if it uses them more than once."""
        once = [template.count(f"{{{i}}}") <= 1 for i in range(len(args))]
        args = tuple(arg if only else self._alias(arg) for arg, only in zip(args, once, strict=True))
        text = template.format(*[arg.text for arg in args])
        return Piece(text, any(arg.wild for arg in args), max(arg.stage for arg in args))

    def _text(self, expr: RowExpr, piece: Piece) -> Piece:
        """A unique text of a value, within its kind."""
        kind = kind_of(expr, self.schema)
        if kind == "text":
            return piece
        if kind == "boolean":
            return replace(piece, text=self.dialect.as_text(piece.text))
        whole = self.whole_column(expr)
        if whole is not None:
            return Piece(f"{self.dialect.as_text(whole)} || '.0'")
        piece = self._alias(piece)
        return replace(piece, text=number_text(self.dialect, piece.text))

    def _pair(self, first: Piece, second: Piece) -> Piece:
        return self._filled(f"({self.dialect.as_text('length({0})')} || ':' || {{0}} || {{1}})", first, second)

    def _coalesce(self, expr: Apply, kind: str) -> Piece:
        args = [self._tame(self._emit(arg, kind)) for arg in expr.args]
        return Piece(f"coalesce({', '.join(arg.text for arg in args)})", False, max(arg.stage for arg in args))

    def _divide(self, expr: Apply, x: Piece, y: Piece) -> Piece:
        divisor = expr.args[1]
        if not (isinstance(divisor, Constant) and isinstance(divisor.value, float | int) and divisor.value):
            return replace(self._filled(self.dialect.divide, x, self._unless_zero(self._tame(y))), wild=True)
        return replace(self._filled(self.dialect.divide, x, y), wild=True)

    def _unless_zero(self, y: Piece) -> Piece:
        return self._filled("CASE WHEN {0} <> 0 THEN {0} END", y)

    def _remainder(self, x: Piece, y: Piece) -> Piece:
        """The remainder with the sign of the divisor, as in Python; databases use that of the dividend."""
        y = self._alias(y)
        rest = self._filled(self.dialect.remainder, x, self._unless_zero(y))
        text = "CASE WHEN {0} <> 0 AND ({0} < 0) <> ({1} < 0) THEN {0} + {1} ELSE {0} END"
        return replace(self._filled(text, rest, y), wild=True)

    def _power(self, x: Piece, y: Piece) -> Piece:
        whole = f"{{1}} = {self.dialect.floor.format('{1}')}"
        x, y = self._alias(x), self._alias(y)
        legal = f"{{0}} > 0 OR ({{0}} = 0 AND {{1}} >= 0) OR ({{0}} < 0 AND {whole})"
        base = self._filled(f"CASE WHEN {legal} THEN {{0}} END", x, y)
        return replace(self._filled(self.dialect.power, base, y), wild=True)

    def _compare(self, expr: Apply) -> Piece:
        kinds = [kind_of(arg, self.schema) for arg in expr.args if arg != Constant(None)]
        kind = kinds[0] if kinds else "number"
        left, right = (self._tame(self._emit(arg, kind)) for arg in expr.args)
        op = {"==": "=", "!=": "<>"}.get(expr.op, expr.op)
        first = self.dialect.ordered.format(left.text) if kind == "text" else left.text
        return Piece(f"({first} {op} {right.text})", False, max(left.stage, right.stage))

    def _logic(self, expr: Apply) -> Piece:
        args = [self._emit(arg, "boolean") for arg in expr.args]
        stage = max(arg.stage for arg in args)
        if expr.op == "not":
            return Piece(f"(NOT {args[0].text})", False, stage)
        return Piece("(" + f" {expr.op.upper()} ".join(arg.text for arg in args) + ")", False, stage)

    def _among(self, expr: Apply) -> Piece:
        """Membership: NULL for a missing value, or true if `none` is among the constants."""
        if Constant(None) in expr.args[1:]:
            rest = tuple(arg for arg in expr.args[1:] if arg != Constant(None))
            test = self._operation(Apply("missing", expr.args[:1]))
            inside = self._among(Apply("in", (expr.args[0], *rest)))
            return Piece(f"({test.text} OR coalesce({inside.text}, FALSE))", False, max(test.stage, inside.stage))
        x = expr.args[0]
        kinds = [kind_of(arg, self.schema) for arg in expr.args if arg != Constant(None)]
        kind = kinds[0] if kinds else "number"
        others = [self._tame(self._emit(_unsigned(arg), kind)) for arg in expr.args[1:] if not _is_missing(arg)]
        value = self._tame(self._emit(x, kind))
        stage = max([value.stage, *(other.stage for other in others)])
        if all(isinstance(arg, Constant) for arg in expr.args[1:]):
            if not others:
                return Piece(f"CASE WHEN {value.text} IS NOT NULL THEN FALSE END", False, stage)
            return Piece(f"({self._listed(expr, value, [other.text for other in others], kind)})", False, stage)
        value = self._alias(value)
        tests = " OR ".join(f"coalesce({value.text} = {other.text}, FALSE)" for other in others)
        stage = max(stage, value.stage)
        return Piece(f"CASE WHEN {value.text} IS NOT NULL THEN ({tests}) END", False, stage)

    def _listed(self, expr: Apply, value: Piece, literals: list[str], kind: str) -> str:
        """Whether a value is one of the constants; NULL if it is missing."""
        text = self.dialect.unsigned.format(value.text) if kind == "number" else value.text
        return self.dialect.among(text, literals, kind)

    def _bucket(self, expr: Apply) -> Piece:
        """48 bits of the SHA-256 of the salt and the values' unique texts, modulo the number of buckets."""
        many, salt, *values = expr.args
        cells = [self._tame(self._emit(value, kind_of(value, self.schema))) for value in values]
        texts = [self._alias(self._text(value, cell)) for value, cell in zip(values, cells, strict=True)]
        stage = max((text.stage for text in texts), default=0)
        encoded = self.dialect.canonical([f"'{_whole(salt)}'", *(text.text for text in texts)])
        number = self.dialect.digest.format(encoded)
        return Piece(self.dialect.as_double(f"{number} % {_whole(many)}"), False, stage)

    def _if(self, expr: Apply, kind: str) -> Piece:
        """`if`; a NULL test is false, as in SQL."""
        test = self._emit(expr.args[0], "boolean")
        then, other = (self._emit(arg, kind) for arg in expr.args[1:])
        text = f"CASE WHEN {test.text} THEN {then.text} ELSE {other.text} END"
        return Piece(text, then.wild or other.wild, max(test.stage, then.stage, other.stage))


def _whole(expr: RowExpr) -> int:
    """The integer value of a constant."""
    return int(expr.value) if isinstance(expr, Constant) and isinstance(expr.value, float | int) else 0


def _unsigned(expr: RowExpr) -> RowExpr:
    """The same constant, with 0 for −0, which a database may distinguish in a list."""
    return Constant(0.0) if isinstance(expr, Constant) and isinstance(expr.value, float) and not expr.value else expr


def _is_missing(expr: RowExpr) -> bool:
    """Whether it is `none`, or a number that is not finite."""
    if not isinstance(expr, Constant):
        return False
    return expr.value is None or (isinstance(expr.value, float | int) and not math.isfinite(expr.value))


def aggregate(keys: list[str], outer: list[str], inner: list[str], tests: list[str], source: str) -> str:
    where = f" WHERE {' AND '.join(tests)}" if tests else ""
    by = f" GROUP BY {', '.join(keys)}" if keys else ""
    values = subquery(f"SELECT {', '.join(inner)} FROM {subquery(source)}" if inner else source)
    return f"SELECT {', '.join(keys + outer)} FROM {values}{where}{by}"


def key_value(rows: RowSql, key: Key, schema: Schema) -> str:
    kind = kind_of(key.expr, schema)
    if kind != "number":
        return rows.value(key.expr)
    if not isinstance(key.values, range):
        return rows.dialect.unsigned.format(rows.floor(key.expr) if floors(key) else rows.value(key.expr))
    return rows.whole_column(key.expr) or rows.whole_floor(key.expr)


def key_test(rows: RowSql, name: str, key: Key, schema: Schema) -> str | None:
    """The condition for the listed values of a key; None if it has no others, since testing for NULL costs as much as a
    group for it."""
    if not key.values:
        return "FALSE"
    kind = kind_of(key.expr, schema)
    if (kind == "text" or isinstance(key.values, range)) and rows.has_all(key):
        return None
    if isinstance(key.values, range):
        return f"{name} BETWEEN {key.values[0]} AND {key.values[-1]}"
    return rows.dialect.among(name, [rows.dialect.constant(value, kind) for value in key.values], kind)


_WIDEST_SUM = 2**80  # the largest term of a row: 2^46 rows of it still fit 126 bits


def fixed_term(rows: RowSql, term: FixedSum, schema: Schema, most_rows: float = math.inf) -> tuple[str, int, float]:
    """One row's term as an integer (rounded half to even), the bound on its size, and 1; from a faster emitter, that
    integer divided by a power of two, and the power."""
    check_number("sum", term.expr, schema)
    if not (math.isfinite(term.low) and math.isfinite(term.high) and term.low <= term.high):
        raise refuse("ValueError", "a sum needs finite bounds, the lower one first")
    reach = max(abs(term.low), abs(term.high)) ** (2 if term.square else 1)
    largest = math.ceil(math.ldexp(reach, term.bits)) + 1 if reach < 2.0**120 and term.bits < 900 else _WIDEST_SUM
    if largest >= _WIDEST_SUM:
        raise refuse("ValueError", "the bounds of this sum are too wide to add exactly", help="clamp(x, low, high)")
    # a product with a weight is rounded by a factor of at most 1 + 2^-53; powers of two are exact
    factor = math.ldexp(1.0, term.bits - (WEIGHT_BITS if term.weighted else 0))
    if (quick := rows.quick_sum(term, factor, largest, most_rows)) is not None:
        return quick[0], largest, quick[1]
    nearest = (rows.dialect.nearest,) if largest < 2**62 else (rows.dialect.even, rows.dialect.whole_wide)
    return rows.fixed(term, factor, nearest), largest, 1.0


def counted(rows: RowSql, term: Count, name: str) -> tuple[str, str]:
    """The counted value of a row, empty for the row itself, and the SQL that counts the column `name` of it."""
    if term.expr is None:
        return "", "count(*)"
    whole = rows.whole_column(term.expr)
    value = whole or rows.value(term.expr)
    if term.distinct and not whole and kind_of(term.expr, rows.schema) == "number":
        value = rows.dialect.unsigned.format(value)
    return value, f"count({'DISTINCT ' if term.distinct else ''}{name})"


def check_number(what: str, expr: RowExpr, schema: Schema) -> None:
    kind = kind_of(expr, schema)
    if kind != "number":
        raise refuse("TypeError", f"`{what}` needs a number, and this is {kind}")
