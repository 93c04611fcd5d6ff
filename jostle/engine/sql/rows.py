"""Row expressions as SQL: total, and made of no text of the user's but quoted constants.

Columns are named by us (`c0`, `c1`, …). Every operation is written so that no row can make it fail: operands outside
its domain become NULL before it is applied, and what is not finite becomes NULL. What a database spells in its own way
comes from its dialect.

Most operations carry a NaN or an infinity on, so the test for it is put off to the first operation that would not
(and to the end), and left out where interval bounds show that it cannot occur. An operand that is mentioned
more than once and is long becomes a column of a subquery (`t0`, `t1`, …), so the text grows linearly.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date

from msgspec import Struct, field

from jostle.engine.sql import functions
from jostle.engine.sql.dialect import Dialect, clamped, subquery
from jostle.language.moments import number_of
from jostle.language.operations import COMPARISONS, OPERATIONS
from jostle.language.operations.operation import LONGEST
from jostle.plan.kinds import Schema, bounds_of, domain_of, is_integral, kind_of
from jostle.plan.plan import Apply, Categories, Column, Constant, Domain, Open, RowExpr
from jostle.records import replace

_SHORT = 60  # characters that may be said twice
_EXACT = 2**53
GRID = 1.5 * 2.0**52  # what is added to it keeps no fraction
NEAR = 2.0**51  # doubles below it have room for a half, and for carries
_DIGITS = 10**15  # whole numbers below it have one text on every engine
_FAR = 2.0**900  # so far below the largest double that what bounds leave out, such as rounding, does not lead there
_PRODUCT = "({0} * {1})"
_QUOTIENT = "({0} / {1})"
CONVERSIONS = frozenset({"number", "date of text", "time of text"})  # what reads a text as something else
_SPELLED, _DIGITS_IN = frozenset({"true", "false", "inf", "-inf"}), frozenset("0123456789")
_SAFE = {"+": "({0} + {1})", "-": "({0} - {1})", "*": _PRODUCT}


class Raw(Struct, frozen=True):
    """The cell that a column was cleaned of: its name in the relation, its kind (`cells`), and what describes it; of a
    column of texts also what operations on the text come to (`cells.readings`)."""

    alias: str
    kind: str
    domain: Domain
    readings: tuple[tuple[str, str], ...] = ()


class Physical(Struct, frozen=True):
    """A column of a relation in SQL: its name there, whether it is stored as an integer, two ends that it lies
    between, where it was brought between them, and the raw cell, where the relation has it too."""

    alias: str
    whole: bool = False
    within: tuple[float, float] | None = None
    raw: Raw | None = None


class _Piece(Struct, frozen=True):
    """SQL text; `wild` when it may be NaN or infinite; `stage` is the number of subqueries it needs below it."""

    text: str
    wild: bool = False
    stage: int = 0


def number_text(dialect: Dialect, value: str) -> str:
    """A text for a finite double, which only 0 and −0 share: of whole ones below 10^15 `3.0`, else of the bits."""
    whole = f"{value} = {dialect.floor.format(value)} AND abs({value}) < {_DIGITS}"
    digits = f"{dialect.as_text(dialect.whole.format(value))} || '.0'"
    return f"CASE WHEN {whole} THEN {digits} ELSE '#' || {dialect.as_text(dialect.bits.format(value))} END"


class RowSql(Struct):
    """Emits the expressions of one relation; `over` puts the subqueries that they came to need around it."""

    columns: Mapping[str, Physical]
    schema: Schema
    dialect: Dialect
    _stages: list[list[str]] = field(default_factory=list)
    _converted: dict[RowExpr, _Piece] = field(default_factory=dict)
    _names: int = 0

    def value(self, expr: RowExpr, kind: str = "") -> str:
        """A finite double, a text or a boolean, or NULL; of dates and times the numbers that stand for them."""
        kind = kind or kind_of(expr, self.schema)
        text = self._tame(self._emit(expr, kind)).text
        return self.dialect.ordered.format(text) if kind == "text" else text

    def floor(self, expr: RowExpr) -> str:
        """A number taken down to a whole one."""
        return self._floor(expr).text

    def whole_floor(self, expr: RowExpr) -> str:
        """The same as a BIGINT; NULL beyond 64 bits."""
        near = self.dialect.near_whole if self._near(expr) else ""
        return self._filled(near or self.dialect.whole, self._floor(expr)).text

    def _floor(self, expr: RowExpr) -> _Piece:
        near = self.dialect.near_floor if self._near(expr) else ""
        return self._filled(near or self.dialect.floor, self._tame(self._emit(expr, "number")))

    def _near(self, expr: RowExpr) -> bool:
        """Whether a number is below 2^51 in size, so far below 2^63 that what bounds leave out does not lead there."""
        bounds = bounds_of(expr, self.schema)
        return bounds is not None and max(map(abs, bounds)) < NEAR

    def fixed(
        self,
        expr: RowExpr,
        ends: tuple[float, float],
        factor: float,
        *,
        square: bool,
        weighted: bool,
        nearest: tuple[str, ...],
    ) -> str:
        """A number brought between two ends, the lower one first, or its square, times its row's weight and a factor,
        a power of two, which the templates `nearest` make an integer; or NULL. The product is below 2^81 in size.

        Without templates that integer over the factor, of a product below 2^51: the nearest double of so fine a grid,
        which adding a large one leaves of it.
        """
        multiply, piece = self.dialect.multiply, self._between(expr, *ends)
        if square:
            piece = self._filled(_PRODUCT if is_integral(expr, self.schema) else multiply, piece, piece)
        piece = self._filled(multiply, piece, _Piece("w")) if weighted else piece
        if not nearest:
            return self._filled(self.dialect.grid, piece, _Piece(self.dialect.number(GRID / factor))).text
        piece = self._filled(_PRODUCT if factor >= 1 else multiply, piece, _Piece(self.dialect.number(factor)))
        for template in nearest:
            piece = self._filled(template, piece)
        return piece.text

    def on_grid(self, cell: str, grid: float, ends: tuple[float, float]) -> str:
        """What `fixed` gives without templates of a number that is brought between two ends, of any double that is not:
        NULL of what is not finite. Rounding keeps order, so that it may come before; and what is compared is then
        a column of numbers, as some readers hand on places in a dictionary, which are compared more slowly."""
        low, high = (self.dialect.number((end + grid) - grid) for end in ends)
        rounded = self._alias(_Piece(self.dialect.grid.format(cell, self.dialect.number(grid))), most=0).text
        return clamped(self.dialect, rounded, low, high, self.dialect.finite.format(rounded))

    def _between(self, expr: RowExpr, low: float, high: float) -> _Piece:
        piece = self._tame(self._emit(expr, "number"))
        within = self.within(expr)
        if within is None or within[0] < low or within[1] > high:
            piece = self._alias(piece)
            ends = self.dialect.number(low), self.dialect.number(high)
            text = clamped(self.dialect, piece.text, *ends, f"{piece.text} IS NOT NULL")
            piece = self._alias(_Piece(text, False, piece.stage))
        return piece

    def within(self, expr: RowExpr) -> tuple[float, float] | None:
        """Two ends that a column was brought between, or a column less or plus a constant: doubles that are in order
        still are when the same is added to them and rounded."""
        if isinstance(expr, Column):
            return self.columns[expr.name].within
        if not (isinstance(expr, Apply) and expr.op in ("+", "-") and isinstance(expr.args[1], Constant)):
            return None
        ends, shift = self.within(expr.args[0]), expr.args[1].value
        if ends is None or not isinstance(shift, float | int):
            return None
        low, high = (end + float(shift) if expr.op == "+" else end - float(shift) for end in ends)
        return (low, high) if math.isfinite(low) and math.isfinite(high) else None

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

    def _alias(self, piece: _Piece, most: int = _SHORT) -> _Piece:
        """The same value under a name that may be said again and again, unless it is short."""
        if len(piece.text) <= most:
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
        piece = self._alias(piece)
        return _Piece(f"CASE WHEN {self.dialect.finite.format(piece.text)} THEN {piece.text} END", False, piece.stage)

    # Expressions -------------------------------------------------------------------------------------

    def _emit(self, expr: RowExpr, kind: str) -> _Piece:
        if isinstance(expr, Constant):
            return _Piece(self.dialect.constant(expr.value, kind))
        if isinstance(expr, Column):
            physical = self.columns[expr.name]
            return _Piece(self.dialect.as_double(physical.alias) if physical.whole else physical.alias)
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
        if expr.op in CONVERSIONS:  # which cost more than what is done with the value: once for each text
            if expr not in self._converted:
                self._converted[expr] = self._alias(self._operation(expr))
            return self._converted[expr]
        piece = self._operation(expr)
        bounded = piece.wild and bounds_of(expr, self.schema) is not None
        return _Piece(piece.text, False, piece.stage) if bounded else piece

    def _operation(self, expr: Apply) -> _Piece:
        if (direct := self._reading(expr)) is not None:
            return _Piece(direct)
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
        if expr.op == "floor" and self.dialect.near_floor and self._near(expr):
            return self._filled(self.dialect.near_floor, *args)
        constants = expr.args[len(args) - operation.constants :]
        literals = tuple(constant.value for constant in constants if isinstance(constant, Constant))
        safe = expr.op in _SAFE and self._safe(expr)
        piece = self._filled(_SAFE[expr.op] if safe else functions.template(self.dialect, expr.op, literals), *args)
        return replace(piece, wild=piece.wild or expr.op in functions.WILD)

    def _reading(self, expr: Apply) -> str | None:
        """What an operation on a column's text comes to, where the raw cell tells it sooner."""
        column = expr.args[0] if len(expr.args) == 1 else None
        raw = self.columns[column.name].raw if isinstance(column, Column) else None
        return None if raw is None else dict(raw.readings).get(expr.op)

    def _filled(self, template: str, *args: _Piece) -> _Piece:
        """A template with its operands, which are under names where it says them more than once."""
        once = [template.count(f"{{{i}}}") <= 1 for i in range(len(args))]
        args = tuple(arg if only else self._alias(arg) for arg, only in zip(args, once, strict=True))
        text = template.format(*[arg.text for arg in args])
        return _Piece(text, any(arg.wild for arg in args), max(arg.stage for arg in args))

    def _text(self, expr: RowExpr, piece: _Piece) -> _Piece:
        """A text for a value of any kind, which no other value of the kind has."""
        kind = kind_of(expr, self.schema)
        if kind == "text":
            return piece
        if kind == "boolean":
            return replace(piece, text=self.dialect.as_text(piece.text))
        whole = self.whole_column(expr)
        if whole is not None:
            return _Piece(f"{self.dialect.as_text(whole)} || '.0'")
        piece = self._alias(piece)
        return replace(piece, text=number_text(self.dialect, piece.text))

    def _pair(self, first: _Piece, second: _Piece) -> _Piece:
        return self._filled(f"({self.dialect.as_text('length({0})')} || ':' || {{0}} || {{1}})", first, second)

    def _coalesce(self, expr: Apply, kind: str) -> _Piece:
        args = [self._tame(self._emit(arg, kind)) for arg in expr.args]
        return _Piece(f"coalesce({', '.join(arg.text for arg in args)})", False, max(arg.stage for arg in args))

    def _safe(self, expr: Apply) -> bool:
        """Whether a sum, a product or a quotient by a constant, of finite numbers, is far from overflowing, and one of
        the latter 0 of 0 alone: rounding keeps order, so none is nearer to 0 than that of the least."""
        bounds = bounds_of(expr, self.schema)
        if bounds is None or max(map(abs, bounds)) >= _FAR:
            return False
        x, y = (self._least(arg) for arg in expr.args)
        return expr.op in "+-" or (x * y if expr.op == "*" else x / y) > 0

    def _least(self, expr: RowExpr) -> float:
        """What no value of a number but 0 is nearer to 0 than."""
        if isinstance(expr, Constant) and isinstance(expr.value, float | int):
            return abs(float(expr.value)) or math.inf
        return 1.0 if is_integral(expr, self.schema) else math.ulp(0.0)

    def _divide(self, expr: Apply, x: _Piece, y: _Piece) -> _Piece:
        divisor = expr.args[1]
        if not (isinstance(divisor, Constant) and isinstance(divisor.value, float | int) and divisor.value):
            return replace(self._filled(self.dialect.divide, x, self._unless_zero(self._tame(y))), wild=True)
        return replace(self._filled(_QUOTIENT if self._safe(expr) else self.dialect.divide, x, y), wild=True)

    def _unless_zero(self, y: _Piece) -> _Piece:
        return self._filled("CASE WHEN {0} <> 0 THEN {0} END", y)

    def _remainder(self, x: _Piece, y: _Piece) -> _Piece:
        """Takes the sign of the divisor, as in Python: a database's takes the dividend's."""
        y = self._alias(y)
        rest = self._filled(self.dialect.remainder, x, self._unless_zero(y))
        text = "CASE WHEN {0} <> 0 AND ({0} < 0) <> ({1} < 0) THEN {0} + {1} ELSE {0} END"
        return replace(self._filled(text, rest, y), wild=True)

    def _power(self, x: _Piece, y: _Piece) -> _Piece:
        whole = f"{{1}} = {self.dialect.floor.format('{1}')}"
        x, y = self._alias(x), self._alias(y)
        legal = f"{{0}} > 0 OR ({{0}} = 0 AND {{1}} >= 0) OR ({{0}} < 0 AND {whole})"
        base = self._filled(f"CASE WHEN {legal} THEN {{0}} END", x, y)
        return replace(self._filled(self.dialect.power, base, y), wild=True)

    def _compare(self, expr: Apply) -> _Piece:
        kinds = [kind_of(arg, self.schema) for arg in expr.args if arg != Constant(None)]
        kind = kinds[0] if kinds else "number"
        whole = self._whole_operands(expr)
        if whole is not None:
            left, right = whole
        else:
            left, right = (self._tame(self._emit(arg, kind)) for arg in expr.args)
        op = {"==": "=", "!=": "<>"}.get(expr.op, expr.op)
        first = self.dialect.ordered.format(left.text) if kind == "text" else left.text
        return _Piece(f"({first} {op} {right.text})", False, max(left.stage, right.stage))

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
        if missing := self._in_none(expr):
            return _Piece(f"CASE WHEN NOT {missing} THEN FALSE END")
        x = expr.args[0]
        kinds = [kind_of(arg, self.schema) for arg in expr.args if arg != Constant(None)]
        kind = kinds[0] if kinds else "number"
        others = [self._tame(self._emit(arg, kind)) for arg in expr.args[1:] if not _is_missing(arg)]
        value = self._tame(self._emit(x, kind))
        stage = max([value.stage, *(other.stage for other in others)])
        if all(isinstance(arg, Constant) for arg in expr.args[1:]):
            if not others:
                return _Piece(f"CASE WHEN {value.text} IS NOT NULL THEN FALSE END", False, stage)
            among = self.dialect.among(self._listed(expr) or value.text, [other.text for other in others], kind)
            if self._listed(expr):
                among = f"CASE WHEN {among} THEN TRUE WHEN {value.text} IS NOT NULL THEN FALSE END"
            return _Piece(f"({among})", False, stage)
        value = self._alias(value)
        tests = " OR ".join(f"coalesce({value.text} = {other.text}, FALSE)" for other in others)
        stage = max(stage, value.stage)
        return _Piece(f"CASE WHEN {value.text} IS NOT NULL THEN ({tests}) END", False, stage)

    def _in_none(self, expr: Apply) -> str:
        """Whether a column's text is missing, of a cell that is a number or a truth, which spells none of these words;
        empty where there is no such cell."""
        words = [arg.value if isinstance(arg, Constant) else "0" for arg in expr.args[1:]]
        spelled = (not isinstance(word, str) or word in _SPELLED or not _DIGITS_IN.isdisjoint(word) for word in words)
        return "" if any(spelled) else self._reading(Apply("missing", expr.args[:1])) or ""

    def _listed(self, expr: Apply) -> str:
        """The raw cell of a column of texts that is among constants where the text is; empty where there is none. Of
        what a reader has in a dictionary each different cell is looked up once."""
        x, *words = expr.args
        raw = self.columns[x.name].raw if isinstance(x, Column) else None
        if raw is None or raw.kind != "VARCHAR" or not self.dialect.among_texts:
            return ""
        listed = raw.domain.values if isinstance(raw.domain, Categories) else None
        held = (isinstance(one, Constant) and isinstance(one.value, str) and 0 < len(one.value) <= LONGEST
                and (listed is None or one.value in listed) for one in words)  # fmt: skip
        return raw.alias if (listed is not None or raw.domain == Open("text")) and all(held) else ""

    def _bucket(self, expr: Apply) -> _Piece:
        """48 bits of the SHA-256 of the salt and the values' own texts, by the remainder of the number of buckets."""
        many, salt, *values = expr.args
        cells = [self._tame(self._emit(value, kind_of(value, self.schema))) for value in values]
        texts = [self._alias(self._text(value, cell)) for value, cell in zip(values, cells, strict=True)]
        stage = max((text.stage for text in texts), default=0)
        encoded = self.dialect.canonical([f"'{_whole(salt)}'", *(text.text for text in texts)])
        number = self.dialect.digest.format(encoded)
        return _Piece(self.dialect.as_double(f"{number} % {_whole(many)}"), False, stage)

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
