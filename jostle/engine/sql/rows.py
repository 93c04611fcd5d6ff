"""Row expressions as SQL: total, and made of no text of the user's but quoted constants.

Columns are named by us (`c0`, `c1`, …). Every operation is written so that no row can make it fail, on any version of
DuckDB: operands outside an operation's domain become NULL before it is applied, casts are TRY_CAST, and what is not
finite becomes NULL.

Most operations carry a NaN or an infinity on, so the test for it is put off to the first operation that would not
(and to the end), and left out where interval bounds show that it cannot occur. An operand that has to be mentioned
more than once and is long becomes a column of a subquery (`t0`, `t1`, …), so the text grows linearly.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date

from jostle.engine.sql.dialect import Dialect
from jostle.language.moments import number_of
from jostle.language.operations import COMPARISONS, OPERATIONS, Finite, Operands
from jostle.plan.bounds import bounds_of
from jostle.plan.kinds import Schema, domain_of, kind_of
from jostle.plan.plan import Apply, Column, Constant, RowExpr

TYPES = {"number": "DOUBLE", "text": "VARCHAR", "boolean": "BOOLEAN", "date": "DOUBLE", "time": "DOUBLE"}
_SHORT = 60  # characters that may be said twice
_EXACT = 2**53
_FEW = 32  # constants that are as soon compared as looked up


@dataclass(frozen=True, slots=True)
class Physical:
    """A column of a relation in SQL: its name there, whether it is stored as an integer, and two ends that it lies
    between, where it was brought between them."""

    alias: str
    whole: bool = False
    within: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class _Piece:
    """SQL text; `wild` when it may be NaN or infinite; `stage` is the number of subqueries it needs below it."""

    text: str
    wild: bool = False
    stage: int = 0


def number_literal(value: float) -> str:
    """A DOUBLE (a bare `0.1` would be a DECIMAL); NULL for what is not finite."""
    if not math.isfinite(value):
        return "CAST(NULL AS DOUBLE)"
    text = repr(float(value))
    return f"({text if 'e' in text else text + 'e0'})"


def text_literal(value: str) -> str:
    """A quoted VARCHAR. Standard strings know one escape, the doubled quote; NUL cannot stand in a query's text."""
    clean = value.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    parts = ["'" + part.replace("'", "''") + "'" for part in clean.split("\0")]
    return parts[0] if len(parts) == 1 else "(" + " || chr(0) || ".join(parts) + ")"


def clamped(value: str, low: str, high: str, known: str) -> str:
    """A number brought between two ends; NULL unless `known` holds. What lies between them takes the short way."""
    outside = f"greatest({low}, least({high}, {value}))"
    return f"CASE WHEN {value} BETWEEN {low} AND {high} THEN {value} WHEN {known} THEN {outside} END"


def constant_literal(value: float | str | bool | date | None, kind: str) -> str:
    if isinstance(value, date):
        return number_literal(number_of(value))
    if value is None:
        return f"CAST(NULL AS {TYPES[kind]})"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    return text_literal(value) if isinstance(value, str) else number_literal(value)


def among(value: str, literals: Sequence[str]) -> str:
    """Whether a value is one of several constants, NULL where it is missing. Many are looked up in a table of them: a
    database compares a list with a row one by one."""
    if len(literals) <= _FEW:
        return f"{value} IN ({', '.join(literals)})"
    return f"{value} IN (SELECT v FROM (VALUES ({'), ('.join(literals)})) AS l(v))"


def canonical(cells: list[str], dialect: Dialect) -> str:
    """One text for a row, from the text of its cells: for each, its length in bytes, `:`, the cell; `-` for none.

    No two different rows have the same text, and no other row has a part in it.
    """
    parts = [
        f"CASE WHEN {cell} IS NULL THEN '-' ELSE {dialect.bytes.format(cell)} || ':' || {cell} END" for cell in cells
    ]
    return "(" + " || ".join(parts) + ")" if parts else "''"


@dataclass
class RowSql:
    """Emits the expressions of one relation; `over` puts the subqueries that they came to need around it."""

    columns: Mapping[str, Physical]
    schema: Schema
    dialect: Dialect
    _stages: list[list[str]] = field(default_factory=list)
    _names: int = 0

    def value(self, expr: RowExpr) -> str:
        """A finite DOUBLE, a VARCHAR or a BOOLEAN, or NULL; of dates and times the numbers that stand for them."""
        return self._tame(self._emit(expr, kind_of(expr, self.schema))).text

    def between(self, expr: RowExpr, low: float, high: float) -> str:
        """A number brought between two ends, `low` at most `high`, or NULL; in a text that may be said again."""
        piece = self._named(self._tame(self._emit(expr, "number")))
        ends = self.columns[expr.name].within if isinstance(expr, Column) else None
        if ends is None or ends[0] < low or ends[1] > high:
            text = clamped(piece.text, number_literal(low), number_literal(high), f"{piece.text} IS NOT NULL")
            piece = self._named(_Piece(text, False, piece.stage))
        return piece.text

    def whole_column(self, expr: RowExpr) -> str | None:
        """The name of a bare column that is stored as an integer."""
        if not isinstance(expr, Column):
            return None
        domain_of(expr.name, self.schema)
        physical = self.columns[expr.name]
        return physical.alias if physical.whole else None

    def over(self, relation: str) -> str:
        for stage in self._stages:
            relation = f"SELECT *, {', '.join(stage)} FROM ({relation})"
        return relation

    # Subqueries --------------------------------------------------------------------------------------

    def _named(self, piece: _Piece) -> _Piece:
        """The same value under a name that may be said again and again."""
        if len(piece.text) <= _SHORT:
            return piece
        while len(self._stages) <= piece.stage:
            self._stages.append([])
        name = f"t{self._names}"
        self._names += 1
        self._stages[piece.stage].append(f"{piece.text} AS {name}")
        return _Piece(name, piece.wild, piece.stage + 1)

    def _tame(self, piece: _Piece) -> _Piece:
        if not piece.wild:
            return piece
        piece = self._named(piece)
        return _Piece(f"CASE WHEN {self.dialect.finite.format(piece.text)} THEN {piece.text} END", False, piece.stage)

    # Expressions -------------------------------------------------------------------------------------

    def _emit(self, expr: RowExpr, kind: str) -> _Piece:
        if isinstance(expr, Constant):
            return _Piece(constant_literal(expr.value, kind))
        if isinstance(expr, Column):
            physical = self.columns[expr.name]
            return _Piece(f"CAST({physical.alias} AS DOUBLE)" if physical.whole else physical.alias)
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
        piece = self._operation(expr)
        bounded = piece.wild and bounds_of(expr, self.schema) is not None
        return _Piece(piece.text, False, piece.stage) if bounded else piece

    def _operation(self, expr: Apply) -> _Piece:
        operation = OPERATIONS[expr.op]
        args = [
            self._tame(self._emit(arg, kind_of(arg, self.schema))) if kind == "any" else self._emit(arg, kind)
            for arg, kind in zip(expr.args, operation.kinds, strict=True)
        ]
        if expr.op == "/":
            return self._divide(args[0], args[1], expr.args[1])
        if operation.operands is Operands.FINITE:
            args = [self._tame(arg) for arg in args]
        if operation.operands is not Operands.PLAIN:
            args = [self._named(arg) for arg in args]
        if expr.op == "^":
            return self._power(*args)
        if expr.op == "%":
            return self._remainder(*args)
        wild = operation.finite is Finite.NO or any(arg.wild for arg in args)
        sql = self.dialect.operations.get(expr.op, operation.sql)
        if not isinstance(sql, str):
            constants = expr.args[len(args) - operation.constants :]
            sql = sql(*(constant.value for constant in constants if isinstance(constant, Constant)))
        return _Piece(sql.format(*[arg.text for arg in args]), wild, max(arg.stage for arg in args))

    def _coalesce(self, expr: Apply, kind: str) -> _Piece:
        args = [self._tame(self._emit(arg, kind)) for arg in expr.args]
        return _Piece(f"coalesce({', '.join(arg.text for arg in args)})", False, max(arg.stage for arg in args))

    def _divide(self, x: _Piece, y: _Piece, divisor: RowExpr) -> _Piece:
        if isinstance(divisor, Constant) and isinstance(divisor.value, float | int) and divisor.value:
            return _Piece(f"({x.text} / {y.text})", True, max(x.stage, y.stage))
        y = self._named(self._tame(y))
        return _Piece(f"({x.text} / CASE WHEN {y.text} <> 0 THEN {y.text} END)", True, max(x.stage, y.stage))

    def _remainder(self, x: _Piece, y: _Piece) -> _Piece:
        """Takes the sign of the divisor, as in Python: DuckDB's own takes the dividend's."""
        stage = max(x.stage, y.stage)
        rest = self._named(_Piece(f"({x.text} % CASE WHEN {y.text} <> 0 THEN {y.text} END)", False, stage))
        r = rest.text
        text = f"CASE WHEN {r} <> 0 AND ({r} < 0) <> ({y.text} < 0) THEN {r} + {y.text} ELSE {r} END"
        return _Piece(text, True, max(rest.stage, y.stage))

    def _power(self, x: _Piece, y: _Piece) -> _Piece:
        legal = f"{x.text} > 0 OR ({x.text} = 0 AND {y.text} >= 0) OR ({x.text} < 0 AND {y.text} = floor({y.text}))"
        return _Piece(f"pow(CASE WHEN {legal} THEN {x.text} END, {y.text})", True, max(x.stage, y.stage))

    def _compare(self, expr: Apply) -> _Piece:
        kinds = [kind_of(arg, self.schema) for arg in expr.args if arg != Constant(None)]
        kind = kinds[0] if kinds else "number"
        whole = self._whole_operands(expr)
        if whole is not None:
            left, right = whole
        else:
            left, right = (self._tame(self._emit(arg, kind)) for arg in expr.args)
        op = {"==": "=", "!=": "<>"}.get(expr.op, expr.op)
        return _Piece(f"({left.text} {op} {right.text})", False, max(left.stage, right.stage))

    def _whole_operands(self, expr: Apply) -> tuple[_Piece, _Piece] | None:
        """An integer column against whole numbers stays in integers, which the reader of a file can use."""
        texts = []
        for arg in expr.args:
            name = self.whole_column(arg)
            if name is not None:
                texts.append(name)
            elif isinstance(arg, Constant) and isinstance(arg.value, date):
                texts.append(f"({number_of(arg.value)})")
            elif isinstance(arg, Constant) and isinstance(arg.value, float | int) and not isinstance(arg.value, bool):
                if not (abs(arg.value) < _EXACT and float(arg.value).is_integer()):
                    return None
                texts.append(f"({int(arg.value)})")
            else:
                return None
        return _Piece(texts[0]), _Piece(texts[1])

    def _logic(self, expr: Apply) -> _Piece:
        args = [self._emit(arg, "boolean") for arg in expr.args]
        stage = max(arg.stage for arg in args)
        if expr.op == "not":
            return _Piece(f"(NOT {args[0].text})", False, stage)
        return _Piece("(" + f" {expr.op.upper()} ".join(arg.text for arg in args) + ")", False, stage)

    def _among(self, expr: Apply) -> _Piece:
        """A missing value is in no set and not outside it: NULL. With a `none` among the constants it is in the set."""
        if Constant(None) in expr.args[1:]:
            rest = tuple(arg for arg in expr.args[1:] if arg != Constant(None))
            test = self._operation(Apply("missing", expr.args[:1]))
            inside = self._among(Apply("in", (expr.args[0], *rest)))
            return _Piece(f"({test.text} OR coalesce({inside.text}, FALSE))", False, max(test.stage, inside.stage))
        x = expr.args[0]
        kinds = [kind_of(arg, self.schema) for arg in expr.args if arg != Constant(None)]
        kind = kinds[0] if kinds else "number"
        others = [self._tame(self._emit(arg, kind)) for arg in expr.args[1:] if not _is_missing(arg)]
        value = self._tame(self._emit(x, kind))
        stage = max([value.stage, *(other.stage for other in others)])
        if all(isinstance(arg, Constant) for arg in expr.args[1:]):
            if not others:
                return _Piece(f"CASE WHEN {value.text} IS NOT NULL THEN FALSE END", False, stage)
            return _Piece(f"({among(value.text, [other.text for other in others])})", False, stage)
        value = self._named(value)
        tests = " OR ".join(f"coalesce({value.text} = {other.text}, FALSE)" for other in others)
        stage = max(stage, value.stage)
        return _Piece(f"CASE WHEN {value.text} IS NOT NULL THEN ({tests}) END", False, stage)

    def _bucket(self, expr: Apply) -> _Piece:
        """48 bits of the SHA-256 of the salt and the values' own texts, by the remainder of the number of buckets."""
        many, salt, *values = expr.args
        cells = [self._tame(self._emit(value, kind_of(value, self.schema))) for value in values]
        texts = [self._named(_Piece(f"CAST({cell.text} AS VARCHAR)", False, cell.stage)) for cell in cells]
        stage = max((text.stage for text in texts), default=0)
        encoded = canonical([f"'{_whole(salt)}'", *(text.text for text in texts)], self.dialect)
        number = self.dialect.hexadecimal.format(f"left({self.dialect.sha256.format(encoded)}, 12)")
        return _Piece(f"CAST({number} % {_whole(many)} AS DOUBLE)", False, stage)

    def _if(self, expr: Apply, kind: str) -> _Piece:
        """A test that is NULL does not hold, as in SQL."""
        test = self._emit(expr.args[0], "boolean")
        then, other = (self._emit(arg, kind) for arg in expr.args[1:])
        text = f"CASE WHEN {test.text} THEN {then.text} ELSE {other.text} END"
        return _Piece(text, then.wild or other.wild, max(test.stage, then.stage, other.stage))


def _whole(expr: RowExpr) -> int:
    """The whole number that a constant is."""
    return int(expr.value) if isinstance(expr, Constant) and isinstance(expr.value, float | int) else 0


def _is_missing(expr: RowExpr) -> bool:
    """`none`, or a number that is not finite."""
    if not isinstance(expr, Constant):
        return False
    return expr.value is None or (isinstance(expr.value, float | int) and not math.isfinite(expr.value))
