"""Random row expressions of a kind, made from the tables of the language: every function and operator of rows."""

from __future__ import annotations

import random
from collections.abc import Mapping

from jostle.language.row_functions import ROW_FUNCTIONS, Operation

TEXTS = ('""', '"Ames"', '"é"', '"a%b"', '" x "', '"2020-02-29"', '"-0"', '"٣"', '"1e308"')
DATES = ('date("2020-02-29")', 'date("1970-01-01")', 'date("9999-12-31")', 'date("0001-01-01")')
TIMES = ('time("2020-02-29T23:59:59")', 'time("1970-01-01T00:00:00")')
NUMBERS = ("0", "1", "-1", "2.5", "1e308", "-1e15", "9007199254740993", "0.1")
CONSTANTS = {
    "matches": ('"[a-c]+x?"', '"(ab|x)+y"', '"\\\\d{1,3}"', '"A.*s"'), "in_zone": ('"Europe/Paris"', '"UTC"'),
    "trunc": ('"month"', '"week"', '"year"'), "part": ('" ", 1', '",", 2', '"e", 1'),
    "substring": ("1", "2, 3", "0, 2"),
}  # fmt: skip
DEPTHS = (45, 50, 4, 1)  # weights of depths from 0 to 3: SQL of deep ones takes long to plan
LIKE = ('"A%"', '"%me%"', '"_m_s"', '"%"', '"%a%e_"', '"%é%"')


class Expressions:
    """Expressions on the columns of a table, given by their kinds."""

    def __init__(self, rng: random.Random, columns: Mapping[str, str]) -> None:
        self.rng, self.columns = rng, columns
        self.used: set[str] = set()
        """The names of the functions and operators of the expressions that were made."""
        self.reads = False
        """Whether one of them reads a column."""

    def of(self, kind: str, depth: int | None = None) -> str:
        depth = self.rng.choices((0, 1, 2, 3), DEPTHS)[0] if depth is None else depth
        if kind == "any":
            kind = self.rng.choice(("number", "text", "boolean", "date", "time"))
        if depth <= 0 or self.rng.random() < 0.2:
            return self._leaf(kind)
        return getattr(self, f"_{kind}")(depth - 1)

    def _leaf(self, kind: str) -> str:
        names = [name for name, of in self.columns.items() if of == kind]
        if names and self.rng.random() < 0.75:
            self.reads = True
            return self.rng.choice(names)
        if kind == "boolean":
            return self._compared(0)
        constants = {"number": NUMBERS, "text": TEXTS, "date": DATES, "time": TIMES}[kind]
        return self.rng.choice(constants)

    def _call(self, gives: str, depth: int) -> str:
        fitting = [o for o in ROW_FUNCTIONS.values() if o.gives == gives and o.name != "coalesce"]
        return self._applied(self.rng.choice(fitting), depth)

    def _applied(self, operation: Operation, depth: int) -> str:
        self.used.add(operation.name)
        variable = len(operation.kinds) - (len(operation.constants) or (operation.name in CONSTANTS))
        arguments = [self.of(kind, depth) for kind in operation.kinds[: max(1, variable)]]
        if operation.name in CONSTANTS:
            arguments.append(self.rng.choice(CONSTANTS[operation.name]))
        return f"{operation.name}({', '.join(arguments)})"

    def _either(self, kind: str, depth: int) -> str:
        form = self.rng.randrange(2)
        self.used.add(("coalesce", "if")[form])
        if form:
            return f"({self.of(kind, depth)} if {self.of('boolean', depth)} else {self.of(kind, depth)})"
        return f"coalesce({self.of(kind, depth)}, {self.of(kind, depth)})"

    def _number(self, depth: int) -> str:
        form = self.rng.randrange(8)
        if form < 3:
            sign = self.rng.choice("+-*/%^")
            self.used.add(sign)
            return f"({self.of('number', depth)} {sign} {self.of('number', depth)})"
        return self._either("number", depth) if form == 3 else self._call("number", depth)

    def _text(self, depth: int) -> str:
        form = self.rng.randrange(6)
        if form == 0:
            self.used.add("concat")
            return f"({self.of('text', depth)} + {self.of('text', depth)})"
        return self._either("text", depth) if form == 1 else self._call("text", depth)

    def _date(self, depth: int) -> str:
        if self.rng.randrange(4) == 0:
            self.used.add("shift")
            return f"({self.of('date', depth)} + {self.rng.choice(('1', '-40', '100000', 'n'))})"
        return self._either("date", depth) if self.rng.randrange(3) == 0 else self._call("date", depth)

    def _time(self, depth: int) -> str:
        return self._either("time", depth) if self.rng.randrange(3) == 0 else self._call("time", depth)

    def _boolean(self, depth: int) -> str:
        form = self.rng.randrange(6)
        if form == 0:
            word = self.rng.choice(("and", "or"))
            self.used.add(word)
            return f"({self.of('boolean', depth)} {word} {self.of('boolean', depth)})"
        if form == 1:
            self.used.add("not")
            return f"(not {self.of('boolean', depth)})"
        if form == 2:
            return self._call("boolean", depth)
        if form == 3:
            self.used.add("like")
            return f"({self.of('text', depth)} like {self.rng.choice(LIKE)})"
        return self._compared(depth)

    def _compared(self, depth: int) -> str:
        kind = self.rng.choice(("number", "text", "date", "time"))
        form = self.rng.randrange(4)
        left = self.of(kind, depth)
        if form == 0 and kind == "number":
            self.used.add("in")
            return f"{left} in {self.rng.choice(('1..40', '{1, 2.5, 7}'))}"
        if form == 1:
            self.used.add("none")
            return f"{left} {self.rng.choice(('==', '!='))} none"
        sign = self.rng.choice(("<", "<=", "==", "!=", ">", ">="))
        self.used.add(sign)
        return f"({left} {sign} {self.of(kind, depth)})"
