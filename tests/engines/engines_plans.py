"""Plans and row expressions drawn from a seed: every operation, keys of all sorts, every kind of relation."""

from __future__ import annotations

import random
from datetime import date, datetime

from engines_table import DOMAINS

from jostle.language.row_functions import OPERATIONS
from jostle.plan.facts import schema_of
from jostle.plan.kinds import Schema, kind_of
from jostle.plan.plan import (
    Apply,
    Beside,
    Bound,
    Categories,
    Column,
    Constant,
    Count,
    Derive,
    Extreme,
    Filter,
    FixedSum,
    GroupRows,
    Integer,
    Join,
    Key,
    Plan,
    RowExpr,
    Scan,
    Term,
    Truncate,
    Union,
    filled,
)  # fmt: skip

NUMBERS = [0.0, 1.0, -1.0, 2.0, 3.0, 0.5, -0.1, 10.0, 1e308, 1e-308, 7.25, 60.0, 1e15]
TEXTS = ["", "a", "A", "é", "e\u0301", "it's", " ", "aa", "b", "\U0001f600", "\\", "%", ","]
MOMENTS = {"date": [date(2024, 2, 29), date(1969, 12, 31), date(9999, 12, 31), date(1, 1, 1)],
           "time": [datetime(2024, 2, 29, 12, 30), datetime(1969, 12, 31, 23, 59, 59), datetime(1, 1, 1)]}  # fmt: skip
PATTERNS = ["a|b", "^a", "[^a-z]", "a{2,3}$", ".", "\\d+", "^$", "(ab)*c", "[é-ü]", "\\s", "^.$", "\\\\"]
FORMATS = {
    "date": ["%d/%m/%Y", "%Y-%m-%d", "%d %b %Y", "%d%m%Y"],
    "time": ["%Y-%m-%d %H:%M", "%I:%M %p", "%H:%M:%S.%f", "%H%M%S"],
}
CONSTANTS = {
    "matches": [(p,) for p in PATTERNS], "part": [(s, n) for s in (" ", "a", ",", "é") for n in (1.0, 2.0, 3.0)],
    "substring": [(1.0,), (2.0,), (9.0,)], "substring of count": [(1.0, 1.0), (2.0, 3.0), (1.0, 0.0)],
    "in_zone": [("Europe/Berlin",), ("America/New_York",), ("Asia/Kolkata",)],
    "trunc": [(u,) for u in ("year", "quarter", "month", "week", "day")],
    "trunc time": [(u,) for u in ("year", "month", "week", "day", "hour", "minute", "second")],
    "date by format": [(f,) for f in FORMATS["date"]], "time by format": [(f,) for f in FORMATS["time"]],
}  # fmt: skip
SMOOTH = frozenset({"log", "exp", "^"})
"""Operations of a mathematics library, of which engines may round the last bit otherwise: the outermost ones only."""
BY_KIND = {
    kind: [op for op in OPERATIONS.values() if op.gives == kind and op.name not in SMOOTH | {"coalesce", "pair"}]
    for kind in ("number", "text", "boolean", "date", "time")
}  # fmt: skip


class Draw:
    """Draws of one seed over the data set `key`; shallow ones have a level less of relations and of expressions."""

    def __init__(self, key: str, seed: int, *, shallow: bool = False) -> None:
        self.random = random.Random(seed)
        self._key = key
        self._least = int(shallow)

    def scan(self, *always: str) -> Scan:
        names = sorted({*always, *self.random.sample(sorted(DOMAINS), self.random.randint(3, 7))})
        return Scan(self._key, tuple((name, self.random.choice(DOMAINS[name])) for name in names))

    # Expressions

    def of(self, kind: str, schema: Schema, depth: int) -> RowExpr:
        """An expression of a kind."""
        columns = [name for name in schema if kind_of(Column(name), schema) == kind]
        if depth <= self._least or self.random.random() < 0.2:
            if columns and self.random.random() < 0.8:
                return Column(self.random.choice(columns))
            return self.constant(kind)
        turn = self.random.random()
        if turn < 0.1:
            test = self.of("boolean", schema, depth - 1)
            return Apply("if", (test, self.of(kind, schema, depth - 1), self.of(kind, schema, depth - 1)))
        if turn < 0.17:
            return Apply("coalesce", (self.of(kind, schema, depth - 1), self.of(kind, schema, depth - 1)))
        if kind == "boolean" and turn < 0.7:
            return self.test(schema, depth)
        operation = self.random.choice(BY_KIND[kind])
        known = self.random.choice(CONSTANTS[operation.name]) if operation.constants else ()
        kinds = operation.kinds[: len(operation.kinds) - len(operation.constants)]
        args = [self.of(self.any() if k == "any" else k, schema, depth - 1) for k in kinds]
        return Apply(operation.name, (*args, *map(Constant, known)))

    def test(self, schema: Schema, depth: int) -> RowExpr:
        kind, op = self.any(), self.random.choice(["==", "!=", "<", "<=", ">", ">=", "in", "and", "or", "not"])
        if op in ("and", "or", "not"):
            parts = (self.of("boolean", schema, depth - 1) for _ in range(1 if op == "not" else 2))
            return Apply(op, tuple(parts))
        if kind == "boolean":
            op = self.random.choice(["==", "!="])
        if op == "in":
            some = [self.constant(kind) for _ in range(self.random.randint(1, 4))]
            return Apply("in", (self.of(kind, schema, depth - 1), *some, *[Constant(None)] * self.random.randint(0, 1)))
        return Apply(op, (self.of(kind, schema, depth - 1), self.of(kind, schema, depth - 1)))

    def any(self) -> str:
        return self.random.choice(["number", "number", "text", "text", "boolean", "date", "time"])

    def constant(self, kind: str) -> Constant:
        if kind == "boolean":
            return Constant(self.random.random() < 0.5)
        return Constant(self.random.choice({"number": NUMBERS, "text": TEXTS}.get(kind) or MOMENTS[kind]))

    def number(self, schema: Schema) -> RowExpr:
        """A number, of a mathematics library now and then."""
        if self.random.random() < 0.15:
            op = self.random.choice(sorted(SMOOTH))
            return Apply(op, tuple(self.of("number", schema, 1) for _ in range(2 if op == "^" else 1)))
        return self.of("number", schema, 3)

    # Relations

    def plan(self) -> Plan:
        """A relation of any sort."""
        return self.persons() if self.random.random() < 0.2 else self.relation(3)

    def relation(self, depth: int) -> Plan:
        if depth <= self._least:
            return self.scan()
        inner = self.relation(depth - 1)
        schema = dict(schema_of(inner))
        match self.random.choice(["filter", "filter", "derive", "derive", "fill", "union", "join"]):
            case "filter":
                return Filter(inner, self.of("boolean", schema, 2))
            case "derive":
                return self.derived(inner, schema)
            case "fill":
                return filled(inner, [*schema.items()], [name for name in schema if self.random.random() < 0.5])
            case "union":
                low, high = (Filter(inner, self.of("boolean", schema, 1)) for _ in range(2))
                return Union((low, high, inner) if self.random.random() < 0.3 else (low, high))
        return self.join()

    def derived(self, inner: Plan, schema: Schema) -> Plan:
        kept = [(name, Column(name)) for name in self.random.sample(sorted(schema), min(3, len(schema)))]
        made = [(f"x{i}", self.of(self.any(), schema, 2)) for i in range(2)]
        return Derive(inner, (*kept, *((name, expr) for name, expr in made if name not in dict(kept))))

    def join(self) -> Plan:
        left: Plan = self.scan("k", "w")
        right: Plan = self.scan("k", "w")
        low = Apply("<", (Column("k"), Constant(50.0)))
        left = Derive(Filter(left, low), (("k", Column("k")), ("w", Column("w"))))
        right = Derive(Filter(right, low), (("k", Column("k")), ("v", Column("w"))))
        return Join(left, right, ("k",), kind=self.random.choice(["inner", "left", "right", "full"]))

    def persons(self) -> Plan:
        """Rows of persons, and what may be asked of these alone."""
        scan, few = self.scan("who", "h"), self.random.randint(1, 5)
        rows: Plan = Bound(scan, self.random.choice([("who",), ("w",), ("who", "b"), ("f",), ("n",)]), few)
        schema = dict(scan.columns)
        match self.random.choice(["rows", "filter", "truncate", "groups", "order", "few"]):
            case "filter":
                return Filter(rows, self.of("boolean", schema, 2))
            case "truncate":
                keys = (self.random.choice([Column("h"), self.of("text", schema, 1), self.of("boolean", schema, 1)]),)
                order = Column("h") if self.random.random() < 0.5 else None
                return Truncate(rows, keys, self.random.choice([None, 2]), 2, order, self.random.random() < 0.5)
            case "groups":
                total, most = FixedSum(Column("h"), -10.0, 10.0, 4), Extreme(Column("h"), True)
                terms = (("n", Count()), ("s", total), ("m", most))
                return GroupRows(rows, True, (("a", self.of("text", schema, 1)),), terms)
            case "order":
                words = ("previous", "next", "largest", "smallest")
                beside = tuple((word, Beside(Column("h"), word)) for word in words)
                last = self.random.choice([Column("h"), self.of("number", schema, 1), self.of("text", schema, 1)])
                keys = (("a", self.of("text", schema, 1)), ("o", last))[self.random.randrange(2) :]
                return GroupRows(rows, True, keys, (("n", Count()), ("place", Beside(None)), *beside))
            case "few":
                other = Scan(self._key, (("i", Integer(-128, 127)), ("q", DOMAINS["q"][0])))
                return Join(Scan(self._key, (("i", Integer(-128, 127)), ("s", DOMAINS["s"][0]))), other, ("i",), 2)
        return rows

    # Questions

    def keys(self, schema: Schema) -> tuple[Key, ...]:
        return tuple(self.key(schema) for _ in range(self.random.choice([0, 1, 1, 2])))

    def key(self, schema: Schema) -> Key:
        kind = self.any()
        expr = self.of(kind, schema, 2)
        if kind == "number":
            values = self.random.choice([range(-3, 8), (0.0, 2.0, 5.0), (0.5, 1.5, -0.1), range(-128, 128)])
            return Key(expr, values)
        if kind == "boolean":
            return Key(expr, (False, True))
        if kind == "text":
            lists = [domain.values for domain in schema.values() if isinstance(domain, Categories)]
            known = [word for values in lists for word in values if isinstance(word, str)]
            return Key(expr, tuple(dict.fromkeys([*known, "a", "A", "é", "red", "b"])))
        return Key(expr, tuple(MOMENTS[kind]))

    def terms(self, schema: Schema) -> tuple[Term, ...]:
        some = [self.of(self.any(), schema, 2) for _ in range(2)]
        chosen: list[Term] = [Count(), Count(some[0]), Count(some[1], True)]
        for low, high, bits, square in ((-5.0, 5.0, 20, False), (0.0, 1e6, 30, True), (-1e18, 1e18, 4, False)):
            chosen.append(FixedSum(self.number(schema), low, high, bits, square))
        return tuple(self.random.sample(chosen, 3))
