"""What is said of a name.

The examples: programs in the folder `examples`, a comment of names above the lines that show them.

The files `language`, `queries` and `words` show the built-in functions, the aggregates and the words; the others what
the module of their name brings. Each stands below the file `given`, and runs as a whole.

The entries of what is built in: rows of `language.builtins` and `language.aggregates`, with prices and examples.

The entries of the words of the language: statements, clauses, parts of queries and of choices.

The entries of the library: its modules, and what they define, from their comments and their trees.

A function costs something where it measures, or calls what measures: that is read off the tree, not stated.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import takewhile
from pathlib import Path

from msgspec import Struct

from jostle import resources
from jostle.language.aggregates import AGGREGATES, DISTINCT
from jostle.language.builtins import BUILTINS
from jostle.language.facts import Builtin, Effect, Gives
from jostle.language.operations import ROW_FUNCTIONS
from jostle.source import Source, Span
from jostle.syntax import nodes as n
from jostle.syntax import parse
from jostle.syntax.walk import every


class Documentation(Struct, frozen=True):
    """One meaning of a name.

    `kind`: "function", "constant", "domain", "aggregate", "word", "module", or what a module defines ("function",
    "Option", "value"); `usage`: how it is written; `parameters`: those of a function, as they are written; `price`:
    what it costs, in words; `about`: one sentence; `more`: the rest of what its author says; `example`: lines of a
    program, below `given()` and, for a name of a module, below its `use`; `module`: the module that brings it; `span`:
    where a module defines it.
    """

    name: str
    kind: str
    usage: str
    about: str
    price: str = ""
    example: str = ""
    module: str = ""
    more: str = ""
    parameters: tuple[str, ...] = ()
    span: Span | None = None

    @property
    def program(self) -> str:
        """The example for people: `assert f(x) == y` is written as `f(x)  # y`."""
        return re.sub(r"^assert (.+) == (.+)$", r"\1  # \2", self.example, flags=re.MULTILINE)

    def text(self, width: int = 100) -> str:
        """The entry for a terminal: usage, sentence, what kind it is, price, example."""
        from textwrap import fill

        home = f", of `use {self.module}`" if self.module else ""
        kind = f"{self.kind}{home}" + (f"; {self.price}" if self.price else "")
        lines = [fill(self.usage, width, subsequent_indent="    ")]
        parts = filter(None, (self.about, kind))
        lines += [fill(words, width, initial_indent="  ", subsequent_indent="  ") for words in parts]
        return "\n".join([*lines, *(f"    {line}" for line in self.program.splitlines())])

    @property
    def markdown(self) -> str:
        """The entry as Markdown, for editors and notebooks."""
        home = f", of `use {self.module}`" if self.module else ""
        parts = [f"```jostle\n{self.usage}\n```", f"{self.about}", f"*{self.kind}{home}*" + f"; {self.price}"]
        parts[2] = parts[2] if self.price else parts[2].removesuffix("; ")
        parts += [f"```jostle\n{self.program}\n```"] if self.example else []
        return "\n\n".join(filter(None, parts))


_FOLDER = Path(__file__).with_name("examples")
_BLOCK = re.compile(r"# ([\w ]+)\n((?:.+\n)+)")


def given() -> str:
    """The declarations that every example stands below."""
    return (_FOLDER / "given.jst").read_text(encoding="utf-8")


def programs() -> dict[str, str]:
    """The programs of all examples, whole, by the names of their files."""
    files = sorted(path for path in _FOLDER.glob("*.jst") if path.stem != "given")
    return {path.stem: given() + path.read_text(encoding="utf-8") for path in files}


@cache
def examples(file: str) -> dict[str, str]:
    """The examples of one file by name; none where there is no such file."""
    path = _FOLDER / f"{file}.jst"
    blocks = _BLOCK.findall(path.read_text(encoding="utf-8")) if path.is_file() else []
    return {name: lines.rstrip("\n") for names, lines in blocks for name in names.split()}


_PRICES = {
    Effect.PURE: "free",
    Effect.MEASURES: "costs its `epsilon`, else what is left of the allotment; free on public data",
    Effect.TRANSFORMS: "free; what is measured of it is charged to its source",
    Effect.SCORES: "free until `laplace`, `noisy_max` or `exp_mech` measures it",
    Effect.DECLARES: "free; opens a source",
}
_OF_ITS_OWN = {
    Gives.EXPLODED: "free; what is measured of it costs as many times as the lists are long",
    Gives.UNION: "free; what is measured of it costs as often as its source is in it",
    Gives.CHOICE: "free; a call costs what its allotment says, features included",
    Gives.ADVISOR: "free; a call costs what its allotment says, features included",
}


def builtins() -> Iterator[Documentation]:
    """An entry for each built-in name."""
    for name, row in BUILTINS.items():
        example = examples(row.module or "language").get(name, "")
        rows = " Rows have it too." if name in ROW_FUNCTIONS else ""
        within = row.usage[len(name) + 1 : -1]
        parameters = tuple(p for p in re.split(r", (?![^\[]*\])", within) if p not in ("", "*"))
        yield Documentation(
            name, _kind(row), row.usage, row.about + rows, _price(row), example, row.module, parameters=parameters
        )  # fmt: skip


def aggregates() -> Iterator[Documentation]:
    """An entry for each aggregate of a select."""
    for row in (*AGGREGATES.values(), *DISTINCT.values()):
        bounded = " What it is of needs public bounds." if row.bounded else ""
        parameters = tuple(re.sub(r"^.*\(|\)$", "", row.usage).split(", "))
        yield Documentation(
            row.name, "aggregate", row.usage, row.about + bounded, "costs an equal part of its select's amount",
            examples("queries").get(row.name, ""), parameters=parameters,
        )  # fmt: skip


def _kind(row: Builtin) -> str:
    if row.signature is None:
        return "constant" if row.gives is Gives.CONSTANT else "domain"
    return {Effect.MEASURES: "measurement", Effect.TRANSFORMS: "transformation", Effect.SCORES: "score"}.get(
        row.effect, "function"
    )


def _price(row: Builtin) -> str:
    return "" if row.signature is None else _OF_ITS_OWN.get(row.gives, _PRICES[row.effect])


_PAYS = "costs its amount, before anything is read"

# Words, how they are written, what they mean, and a price where there is one.
_ROWS: tuple[tuple[str, str, str, str], ...] = (
    ("select", "{{ select AGG [as NAME], … from T … with epsilon e }}",
     "Asks a table; rows are read nowhere else.", _PAYS),
    ("from", "select … from T [as t]", "The table, cube or part that is asked.", ""),
    ("where", "from T where C", "The rows for which a condition holds.", "free"),
    ("groupby", "groupby E [as NAME] [over KEYS], …",
     "An answer for each public key; the groups together cost what one does.",
     "free"),
    ("over", "groupby E over {…}, max over x in xs of E",
     "The keys that answer; or what a fold walks through.", "free"),
    ("of", "max over x in xs of E", "What is compared, or added, for each item.", "free"),
    ("join", "from T [left | right | full] join U on k [up to m]",
     "Rows of two tables with the same key, side by side.",
     "widens the noise by the rows that one key may have"),
    ("on", "join U on k, join U on a.x = b.y", "The columns in which the rows of a join agree.", ""),
    ("left", "from T left join U on k", "Keeps the rows of the left table that have no partner.", ""),
    ("right", "from T right join U on k", "Keeps the rows of the right table that have no partner.", ""),
    ("full", "from T full join U on k", "Keeps the rows of both tables that have no partner.", ""),
    ("inner", "from T inner join U on k", "Keeps the rows that have a partner, as `join` alone does.", ""),
    ("outer", "left outer join", "Means nothing more than `left join`.", ""),
    ("per", "per person, per E, …", "A row for each person, with what the select says of their rows.", "free"),
    ("up", "up to r rows [by E], up to g groups[, r rows each], join … up to m",
     "How many rows or groups of one person, or rows of one key, are read.", "widens the noise as many times"),
    ("to", "up to r rows", "See `up`.", ""),
    ("rows", "protecting rows, up to r rows",
     "What neighbours differ by; or how many rows of one person are read.", ""),
    ("groups", "up to g groups, r rows each", "How many groups the rows of one person may be in.", ""),
    ("each", "up to g groups, r rows each, budget rho r each week of E",
     "How many rows of one person each group may have, or the weeks, months or days that have a budget each.", ""),
    ("ever", "budget rho r each week of E, rho s for ever", "What a person may lose in all periods together.", ""),
    ("having", "having C", "The released groups for which a condition on their answers holds.", "free"),
    ("order", "order by E [desc]", "The order of the released groups.", "free"),
    ("asc", "order by E asc", "The smallest first, as without a word.", ""),
    ("desc", "order by E desc", "The largest first.", ""),
    ("limit", "limit n", "So many of the released groups.", "free"),
    ("filter", "sum(E) filter (where C)", "SQL's form of `sum(E if C else none)`.", ""),
    ("distinct", "count(distinct E, …)", "Different values, or combinations of several, instead of rows.", ""),
    ("as", "E as NAME", "The name of a column, a key or a table.", ""),
    ("is", "x is missing, x is not missing", "Whether a cell has no value.", ""),
    ("missing", "x is missing", "No value: an empty cell, or one that the description does not allow.", ""),
    ("never", "described by {a: 0..9 never missing}",
     "A column of which every row has a value: a cell without one has the low end, or the first listed value.", ""),
    ("null", "x is null", "SQL's word for `missing`.", ""),
    ("like", "x like \"A%\"", "Whether a text has a form; % is any text, _ any letter.", ""),
    ("between", "x between a and b", "Whether a value lies between two, or is one of them.", ""),
    ("case", "case when C then A else B end", "SQL's form of `A if C else B`.", ""),
    ("when", "case when C then A end", "A condition of a `case`.", ""),
    ("then", "case when C then A end", "What a `case` gives where its condition holds.", ""),
    ("end", "case when C then A end", "The end of a `case`.", ""),
    ("with", "with epsilon e [delta d], with rho r, with 1/4",
     "Opens an allotment, for a query, a call or a block: the most that may be spent there.",
     "charges what is really spent, and never gives it back"),
    ("run", "run with epsilon e until budget of t [or C] { … }",
     "Repeats a block, each round in an allotment, as long as a whole one fits what is left of the budget of t.",
     "charges what its rounds really spend, and is not refused for it"),
    ("until", "run with epsilon e until budget of t [or C]", "What ends a run.", ""),
    ("jointly", "jointly [nonnegative] [whole] [for the least total] with epsilon e { … }",
     "Answers all selects of a block by one measurement, so that they agree; `nonnegative`: none below 0; `whole`: "
     "counts are integers.",
     "charges its amount, whatever stands in it"),
    ("error", "jointly with error e { … }, with error e",
     "The 95 % half-width that every answer of a block may have, or those of one select in it.",
     "the least amount that reaches it is charged"),
    ("given", "given v", "The answers of a select in a `jointly` block that are public: they hold exactly.", ""),
    ("weight", "with weight w", "How many parts of a block's amount a select in it counts for.", ""),
    ("running", "groupby running(E), groupby running(E, until = STEP)",
     "Groups with all rows up to each value of E, up to the step that is over: counts and sums that go on day by day.",
     "the amount pays for all steps; of a registered dataset also for those of later runs"),
    ("epsilon", "with epsilon e, budget epsilon e",
     "An amount of privacy loss; inside an allotment, what is left of it.", ""),
    ("delta", "with epsilon e delta d", "The chance of a loss beyond ε, of Gaussian noise and open group keys.", ""),
    ("rho", "with rho r, budget rho r", "An amount of privacy loss in zero-concentrated differential privacy.", ""),
    ("via", "with epsilon e delta d via gaussian", "The mechanism of a measurement, where it may be another.", ""),
    ("private", "private NAME = SOURCE described by {…} protecting … budget …",
     "Declares private data: from there on they can be transformed and measured, and nothing else.", "free"),
    ("described", "described by {column: domain, …}", "The public description: only these columns exist.", ""),
    ("by", "described by, informed by, among {…} by validation, order by, up to r rows by E",
     "Belongs to the word before it.", ""),
    ("protecting", "protecting rows, protecting COL up to k rows",
     "What the guarantee covers: a row, or a person.", ""),
    ("budget", "budget epsilon e [, delta d], budget rho r", "The most that a source may lose.", ""),
    ("counted", "budget … counted by basic", "Adds ε and δ plainly, in place of zCDP.", ""),
    ("public", "protecting rows, public size", "How many rows there are is public; neighbours differ in one row.",
     "doubles the noise"),
    ("size", "protecting rows, public size", "See `public`.", ""),
    ("at", "protecting rows, at most N rows", "The number of rows that the owner promises.", ""),
    ("most", "protecting rows, at most N rows", "See `at`.", ""),
    ("weighted", "protecting COL up to k rows weighted", "The rows of one person weigh 1 in all.", ""),
    ("use", "use MODULE", "Brings a module: its name, and the names that it defines.", "free"),
    ("param", "param NAME = E", "A setting of the program: `--set NAME=VALUE` changes it.", "free"),
    ("release", "release NAME, release NAME = E", "Hands a public value out under a name.", "free"),
    ("class", "class NAME(Option): …",
     "An Option by its methods: `answer(db, queries)`, and `predict(F)` if it values itself.", "free"),
    ("def", "def f(a, b = 1): …, def f(a) = E", "A function.", "free"),
    ("return", "return E", "What a function, Feature, Option or Utility gives.", ""),
    ("if", "if C: … else if D: … else: …, A if C else B",
     "Does one thing or another; C is public, and true or false.", "free"),
    ("else", "if C: … else: …", "What is done where the condition does not hold.", ""),
    ("for", "for x in xs: …, [E for x in xs if C]", "Does something for each item.", "free"),
    ("in", "for x in xs, x in xs", "What is walked through; or whether an item is in it.", ""),
    ("and", "C and D", "Both hold.", ""),
    ("or", "C or D", "One of them holds.", ""),
    ("not", "not C", "It does not hold.", ""),
    ("lambda", "lambda x: E", "A function of one expression.", "free"),
    ("assert", "assert C, assert C, \"why\"", "Ends the program where a public condition does not hold.", "free"),
    ("true", "true", "The truth value of what holds.", ""),
    ("false", "false", "The truth value of what does not hold.", ""),
    ("none", "none", "No value.", ""),
    ("Option", "NAME = Option (data) { return E }", "An algorithm that a choice may run.",
     "costs what is left of the allotment of the choice's call"),
    ("Feature", "NAME = Feature (data) { return E }", "A number that a choice may look at before it chooses.",
     "costs a part of what `spending` says, where the choice looks at it"),
    ("Utility", "NAME = Utility (data, answers) { return E }", "How good answers are; larger is better.", "free"),
    ("MkChoiceMaker",
     "MkChoiceMaker among {…} [by WAY] informed by {…} trained on {…} [using MODEL] [spending S] wrt UTILITY",
     "A choice: run by a call, it looks at features and runs the option it expects to be best; by validation, all.",
     "free; a call costs what its allotment says, features included"),
    ("among", "MkChoiceMaker among {A, B}", "The Options of a choice.", ""),
    ("informed", "informed by {F, G}", "The Features of a choice; {} looks at nothing.", ""),
    ("trained", "trained on {data, …}", "The public data that a choice learns from.", ""),
    ("using", "using tree(depth = 3)", "The model of a choice.", ""),
    ("spending", "spending 0.05", "The share of a call's amount for the features.", ""),
    ("wrt", "wrt UTILITY", "What a choice is to make large.", ""),
    ("predict", "Option (data) { … } predict (F, …) { return E }",
     "Values an Option by features, in place of a learned model.",
     "free"),
    ("group", "group by E", "SQL's form of `groupby`.", ""),
    ("row", "up to 1 row", "See `rows`.", ""),
    ("external", "external f(x)", "A function of a kernel; for the library alone.", ""),
)  # fmt: skip


def words() -> Iterator[Documentation]:
    """An entry for each word."""
    programs = examples("words")
    for name, usage, about, price in _ROWS:
        yield Documentation(name, "word", usage, about, price, programs.get(name, ""))


# The end of the first sentence: a point before a capital, or before nothing.
_SENTENCE = re.compile(r"\.(?=\s+[A-Z`0-9]|\s*$)")
_RULE = re.compile(r" -{5,}$")  # a comment that heads a section of its file


def modules() -> Iterator[Documentation]:
    """An entry for each module, and for each name that it defines and a program may use."""
    for name in names():
        tree = _tree(name)
        source = tree.span.source
        about, more = _about(source.text, 0)
        start = Span(source, 1, 1, 1, 1)
        yield Documentation(name, "module", f"use {name}", about, "free", f"use {name}", more=more, span=start)
        for definition in tree.body:
            if isinstance(definition, n.Def | n.Assign) and not definition.name.startswith("_"):
                yield _entry(name, definition)


@cache
def names() -> tuple[str, ...]:
    """The modules of the library."""
    return tuple(sorted(path.stem for path in resources.folder("stdlib").glob("*.jst")))


def _entry(module: str, definition: n.Def | n.Assign) -> Documentation:
    source = definition.span.source
    about, more = _about(source.text, definition.span.line - 1)
    parameters: tuple[str, ...] = ()
    kind = "value"
    if isinstance(definition, n.Def):
        kind = "function"
        parameters = tuple(
            param.name if param.default is None else f"{param.name} = {_source_text(param.default)}"
            for param in definition.params
        )
    elif isinstance(definition.value, n.Part):
        kind = definition.value.kind
    usage = f"{definition.name}({', '.join(parameters)})" if kind == "function" else definition.name
    price = "free"
    if (module, definition.name) in _charging():
        own = "epsilon" in parameters
        price = "costs its `epsilon`" if own else "costs what is left of the allotment that it is called in"
        price += "; free on public data"
    return Documentation(
        definition.name, kind, usage, about, price if kind != "value" else "",
        examples(module).get(definition.name, ""), module, more, parameters, definition.span,
    )  # fmt: skip


@cache
def _tree(module: str) -> n.Program:
    path = resources.folder("stdlib") / f"{module}.jst"
    return parse(Source(str(path), path.read_text(encoding="utf-8")))


def _about(text: str, line: int) -> tuple[str, str]:
    """The first sentence, and the rest, of the comment on the block in which a line stands.

    A block without one belongs to the last comment before it that heads no definitions of its own.
    """
    *_, block = (block for block in _blocks(text) if block.line <= line)
    words = block.words if block.commented else block.heading
    end = _SENTENCE.search(words)
    return (words[: end.end()], words[end.end() :].strip()) if end else (words, "")


class _Block(Struct, frozen=True):
    """Lines between empty ones: the first of them, the words of the comment that they open with, what heads them."""

    line: int
    commented: bool
    words: str
    heading: str


@cache
def _blocks(text: str) -> tuple[_Block, ...]:
    blocks: list[_Block] = []
    heading = ""
    for block in re.finditer(r"(?:.*\S.*\n?)+", text):
        lines = block[0].rstrip("\n").split("\n")
        comment = list(takewhile(lambda line: line.startswith("#"), lines))
        words = " ".join(_RULE.sub("", line.lstrip("# ")) for line in comment if ":" in line or not _RULE.search(line))
        blocks.append(_Block(text.count("\n", 0, block.start()), bool(comment), words.strip(), heading))
        if comment and blocks[1:]:
            defines = any(not line.startswith("external ") for line in lines[len(comment) :])
            heading = "" if defines else words.strip()
    return tuple(blocks)


def _source_text(node: n.Expr) -> str:
    return node.span.source.line(node.span.line)[node.span.column - 1 : node.span.end_column - 1]


@cache
def _charging() -> frozenset[tuple[str, str]]:
    """The definitions of the library, by module and name, in which something is measured."""
    bodies = {(m, d.name): d for m in names() for d in _tree(m).body if isinstance(d, n.Def | n.Assign)}
    homes = {m: _homes(m) for m in names()}
    calls: dict[tuple[str, str], set[tuple[str, str]]] = {}
    charging: set[tuple[str, str]] = set()
    for key, body in bodies.items():
        used = [node.id for node in every(body) if isinstance(node, n.Name)]
        calls[key] = {homes[key[0]][name] for name in used if name in homes[key[0]]}
        own = {name for name in used if name in BUILTINS and name not in homes[key[0]]}
        if any(isinstance(node, n.Query) for node in every(body)) or any(
            BUILTINS[name].effect is Effect.MEASURES for name in own
        ):
            charging.add(key)
    while more := {key for key, called in calls.items() if key not in charging and called & charging}:
        charging |= more
    return frozenset(charging)


def _homes(module: str, around: tuple[str, ...] = ()) -> dict[str, tuple[str, str]]:
    """The definitions that names mean in a module: its own, and those of the modules that it uses."""
    homes: dict[str, tuple[str, str]] = {}
    body = _tree(module).body if module not in around else ()
    for statement in body:
        if isinstance(statement, n.Use) and ".".join(statement.path) in names():
            homes = _homes(".".join(statement.path), (*around, module)) | homes
    for statement in body:
        if isinstance(statement, n.Def | n.Assign):
            homes[statement.name] = (module, statement.name)
    return homes
