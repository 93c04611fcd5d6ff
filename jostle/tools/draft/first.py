"""The first program for somebody's own file: it counts the rows, a group of them, and lets a choice pick an algorithm.

Which of these it has follows from the description alone. It runs as it stands, and is short enough to be changed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from msgspec import Struct

from jostle.check.warnings import NARROW
from jostle.diagnostics import refuse
from jostle.plan.kinds import domain_kind
from jostle.plan.plan import Categories, Domain, Integer, Open, Real
from jostle.tools.datacheck import bounded, reading
from jostle.tools.draft.columns import column_word, domain_text, name_of, number, quoted

_WORDS = frozenset({
    "mine", "all_rows", "by_group", "row", "cells", "in_all", "Each", "Even", "Parts", "near", "bell",
    "shapes", "public", "choose", "counted", "data", "answers", "middle", "width", "a", "s", "x", "n", "mean",
})  # fmt: skip
_FEW, _MANY = 8, 1024  # cells of a histogram that a choice is worth its training for
_WIDE = 100  # where they are not single values
_GROUPS = 24

_PER_CELL = (0.3, 1, 3, 10, 30, 100)  # of epsilon times rows, in the data to learn from: from too few to plenty

CHOICE = """
# {question} A choice of three algorithms: noise on every value, the same number at
# every value, or DAWA, which puts values that are alike together. Which is best depends on how many rows there are, so
# it may buy a rough count of them; what that is worth it learns from shapes that are synthetic.
cells = histogram(mine, x = {cell})
in_all = Feature (data) {{ return max(0, laplace(size(data.database))) }}
Each  = Option (data) {{ return flat(data.database, data.queries) }}
Even  = Option (data) {{ return uniform(data.database, data.queries) }}
Parts = Option (data) {{ return dawa(data.database, data.queries) }}
near  = Utility (data, answers) {{ return -rmse(answers, exact(data.queries, data.database)) }}

bell = lambda x, middle, width: exp(-((x - middle) / width)^2)
shapes = {{
    hill: lambda x: bell(x, 0.5, 0.4), two_hills: lambda x: bell(x, 0.2, 0.3) + bell(x, 0.8, 0.1), even: lambda x: 1,
    slope: lambda x: 1 - x, step: lambda x: 3 if x < 0.5 else 1, peak: lambda x: 1 + 9 * bell(x, 0.4, 0.03)
}}
public = {{ {{name: s, cube: counts([round(1000 * shapes[s](x / {many})) for x in 0..{last}])}} for s in keys(shapes) }}
choose = MkChoiceMaker among {{Each, Even, Parts}} informed by {{in_all}}
    trained on {{ {{name: a.name, database: a.cube, queries: identity(a.cube), sizes: {sizes}}} for a in public }}
    using regret_tree(depth = 2) wrt near

counted = choose({{database: cells, queries: identity(cells)}}) with epsilon {amount}
release counted
plot({title}, x = {places}, y = counted, kind = "bars")
"""


def first_program(table: str, schema: Sequence[tuple[str, Domain]], protecting: str, unit: str, budget: float,
                  delta: str = "", *, forms: Mapping[str, str] = MappingProxyType({})) -> str:  # fmt: skip
    """The text of the program for a `table`, as a program names it.

    `unit` and `budget` are those of the budget, `epsilon` and 1.0, of which it spends nine
    tenths at most; `delta` is what the budget says of δ. `forms` are those of dates, times and numbers that are
    written otherwise than as 2024-12-31 or 1234.5, by which such columns are read, within the described ends."""
    domains = {name: _described(column_word(name), domain, forms.get(name)) for name, domain in schema}
    described = ",\n".join(f"        {name_of(name)}: {domain}" for name, domain in domains.items())
    group, choice = _group(schema), _choice(schema) if unit == "epsilon" else None
    lines = [f"# A first look at {table}. `jostle check` says what a run costs, `--simulate` opens nothing."]
    lines += ["", "use histograms"] if choice else []
    lines += [
        "", f"private mine = {table}", f"    described by {{\n{described}\n    }}",
        f"    protecting {protecting}", f"    budget {unit} {_amount(budget)}{delta}", "",
        f"all_rows = {{{{ select count(*) from mine with {unit} {_amount(budget / 10)} }}}}",
        'print("rows:", all_rows, "± " + str(round(error(all_rows))))',
    ]  # fmt: skip
    if group is not None:
        key, mean = group
        more = f", avg({column_word(mean)}) as mean" if mean is not None else ""
        lines += ["", f"by_group = {{{{ select count(*) as n{more} from mine groupby {column_word(key)} "
                      f"with {unit} {_amount(budget * 0.3)} }}}}", "release by_group"]  # fmt: skip
    text = "\n".join(lines) + "\n"
    if choice is None:
        return text
    amount = _amount(budget / 2)
    sizes = [_amount(max(1.0, float(f"{choice.many * least / float(amount):.1g}"))) for least in _PER_CELL]
    return text + CHOICE.format(
        question=choice.question, cell=choice.cell, many=choice.many, last=choice.many - 1, amount=amount,
        sizes=f"[{', '.join(sizes)}]", places=choice.places, title=quoted(choice.title),
    )  # fmt: skip


def _described(word: str, domain: Domain, form: str | None) -> str:
    return bounded(reading(word, domain_kind(domain), form), domain) if form else domain_text(domain, whole=True)


class Cells(Struct, frozen=True):
    """The histogram that a choice is about: a column of numbers, cut into `many` cells of the width `width` from the
    multiple `first` of it on."""

    column: str
    width: int
    first: int
    many: int
    floored: bool = False
    """Whether its cells have fractions, which are taken down."""

    @classmethod
    def of(cls, column: str, low: float, high: float, floored: bool = False) -> Cells | None:
        """As narrow as there are few enough of them, in whole numbers with one digit; None where there are too few."""
        for width in (step * 10**power for power in range(13) for step in (1, 2, 5)):
            first, last = math.floor(low / width), math.floor(high / width)
            if last - first < (_MANY if width == 1 else _WIDE):
                return cls(column, width, first, last - first + 1, floored) if last - first + 1 >= _FEW else None
        return None

    @property
    def cell(self) -> str:
        """What the histogram is by."""
        name = column_word(self.column)
        return f"{name} / {self.width}" if self.width > 1 else f"floor({name})" if self.floored else name

    @property
    def places(self) -> str:
        last = self.first + self.many - 1
        plain = f"{self.first}..{last}"
        return plain if self.width == 1 else f"[{self.width} * i for i in {plain}]"

    @property
    def title(self) -> str:
        return f"rows of each {self.column}" if self.width == 1 else f"rows of each {self.width:,} of {self.column}"

    @property
    def question(self) -> str:
        return f"How many {self.title[:4]} are there{self.title[4:]}?"


def _amount(value: float) -> str:
    return number(float(f"{value:.6g}"), True)


def _group(schema: Sequence[tuple[str, Domain]]) -> tuple[str, str | None] | None:
    """The first column with few public values, and a column of numbers to average."""
    key = next((name for name, domain in schema if _usable(name) and _values(domain)), None)
    means = (name for name, domain in schema if _averaged(domain) and _usable(name) and name != key)
    return None if key is None else (key, next(means, None))


def _averaged(domain: Domain) -> bool:
    """Whether an average of it is likely meant: of so few integers it may be one of shares (`check.warnings`)."""
    return isinstance(domain, Real) or (isinstance(domain, Integer) and domain.high - domain.low >= NARROW)


def _values(domain: Domain) -> bool:
    if isinstance(domain, Categories):
        return 0 < len(domain.values) <= _GROUPS
    if isinstance(domain, Integer):
        return domain.high - domain.low < _FEW - 1
    return isinstance(domain, Open) and domain.kind == "boolean"


def _choice(schema: Sequence[tuple[str, Domain]]) -> Cells | None:
    """The first column of numbers which a histogram has a cell for each value of, else the first that it can be cut."""
    candidates = [
        Cells.of(name, domain.low, domain.high, isinstance(domain, Real))
        for name, domain in schema if isinstance(domain, Integer | Real) and _usable(name)
    ]  # fmt: skip
    usable = [cells for cells in candidates if cells is not None]
    return next((cells for cells in usable if cells.width == 1), usable[0] if usable else None)


def _usable(name: str) -> bool:
    return name not in _WORDS and "`" not in name and name.isprintable()


def budget_of(text: str) -> tuple[str, float, str]:
    """The unit and amount of a budget, `epsilon 1`, `rho 0.5` or `epsilon 1, delta 1e-6`, and what follows it."""
    amount, comma, rest = re.sub(r"(\d)\s+delta\b", r"\1, delta", text).partition(",")
    words = amount.split()
    try:
        value = float(words[1]) if len(words) == 2 else math.nan
    except ValueError:
        value = math.nan
    if not (len(words) == 2 and words[0] in ("epsilon", "rho") and 0 < value < math.inf):
        raise refuse("BadAmount", f"`{text}` is no budget", help="`epsilon 1`, `epsilon 1, delta 1e-6` or `rho 0.5`")
    return words[0], value, comma + rest
