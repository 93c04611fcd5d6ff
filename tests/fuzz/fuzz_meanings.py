"""Right programs with one thing meant otherwise: what parses and is wrong, or another program.

Two arguments are swapped, another column or function stands there, a keyword of another call, a clause is left out, a
part of a choice returns something else, a choice has other members and training data, a declaration another unit,
budget or domain. Judging and printing are those of `fuzz_mutants`, whose options these are:

    python tests/fuzz/fuzz_meanings.py --mutants 1500 --seed 11 --minutes 9 --out late.jsonl
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from itertools import pairwise

import fuzz_mutants
from fuzz_mutants import Text

from jostle.syntax import nodes as n
from jostle.syntax.walk import every

Edit = tuple[str, int, int, str]
FUNCTIONS = (
    "sum", "len", "histogram", "laplace", "size", "prefixes", "exact", "answer", "rmse", "median", "sorted", "round",
    "str", "counts", "table", "error",
)  # fmt: skip
AMOUNTS = ("with rho 0.1", "with epsilon 0.1 delta 1e-6", 'with epsilon "a"', "with 1/2", "with error 5")
INDEXES = ("-1", "1000000", '"a"', "1.5", "true")
BODIES = ('"a"', "[1, 2]", "none", "{a: 1}", "true", "3", "print")
HEADS = (
    "Option (data) ", "Feature (data) ", "Utility (data, answers) ", "Option (data, queries) ", "Utility (data) ",
    "lambda x: ",
)  # fmt: skip
MEMBERS = ("{{{0}, 3}}", '{{{0}, "a"}}', "{{}}", "{{[{0}]}}", "{{{0}, print}}")
TRAINED = (
    "[1, 2]", "[{}]", '[{database: "a", queries: 1}]', "[{database: counts([1, 2])}]", "3", '"data"',
    "[{database: [1, 2], queries: [1]}]",
)  # fmt: skip
CLAUSES = {
    "using": ("tree", '"tree"', "3", "tree(depth = -1)", 'tree(depth = "a")', "none", "lambda x: 1"),
    "spending": ("0", "1", "2", "-0.1", '"a"', "none"),
    "wrt": ("rmse", "sum", "3", "none", "lambda x: 1", 'lambda d, a: "x"'),
    "budget": ("budget rho 1", "budget epsilon 9, delta 1e-6", "budget epsilon -1", 'budget epsilon "1"', ""),
    "protecting": (
        "protecting rows", "protecting rows, public size", "protecting rows, at most 10 rows", "protecting zz",
        "protecting age up to 2 rows", "protecting age", "protecting age up to 0 rows", "",
    ),
}  # fmt: skip
DOMAINS = (
    "3", '"a"', "[1, 2]", "text", "real", "date", "9..1", '{1, "a"}', "{}", "none", "true", "boolean", '{"a": 1}',
)  # fmt: skip
AGGREGATES = ("avg", "sum", "median", "mode", "count", "max", "stddev", "covariance")


def edits(text: Text, at: int, draw: random.Random) -> Iterator[Edit]:
    """Ways to mean something else in a statement: what it is, from where to where, and what stands there then."""
    columns = sorted({name for one in text.tree.body for name, _ in _described(one)})
    nodes = list(every(text.tree))
    keywords = sorted({word.name for node in nodes if isinstance(node, n.Call) for word in node.keywords})
    fields = sorted({node.name for node in nodes if isinstance(node, n.Attribute)})
    for node in every(text.tree.body[at]):
        yield from _of_calls(text, node, keywords, draw)
        yield from _of_names(text, node, columns, fields, draw)
        yield from _of_queries(text, node, columns, draw)
        yield from _of_choices(text, node)
        yield from _of_declarations(text, node)


def _described(node: n.Node) -> tuple[tuple[str, n.Expr], ...]:
    described = node.described if isinstance(node, n.Private) else None
    return tuple(described.items) if isinstance(described, n.RecordOf) else ()


def _of_calls(text: Text, node: n.Node, keywords: list[str], draw: random.Random) -> Iterator[Edit]:
    if not isinstance(node, n.Call):
        return
    whole, end = text.base.text, text.ends(node.span)[1]
    for one, two in pairwise(node.args):
        (a, b), (c, d) = text.ends(one.span), text.ends(two.span)
        yield "arguments swapped", a, d, whole[c:d] + whole[b:c] + whole[a:b]
    if isinstance(node.function, n.Name):
        a, b = text.ends(node.function.span)
        yield "not called", a, end, whole[a:b]
        yield "another function", a, b, draw.choice(FUNCTIONS)
        yield "called twice", end, end, "(1)"
    for word in node.keywords:
        a, value = text.ends(word.span)[0], text.ends(word.value.span)[0]
        yield "another keyword", a, a + len(word.name), draw.choice(keywords)
        yield "without its keyword", a, value, ""
    if node.args and keywords:
        a = text.ends(node.args[-1].span)[0]
        yield "with a keyword", a, a, draw.choice(keywords) + " = "
    if len(node.args) == 1:
        a, b = text.ends(node.args[0].span)
        yield "in a list", a, b, f"[{whole[a:b]}]"


def _of_names(
    text: Text, node: n.Node, columns: list[str], fields: list[str], draw: random.Random
) -> Iterator[Edit]:  # fmt: skip
    if isinstance(node, n.Name) and node.id in columns and len(columns) > 1:
        yield "another column", *text.ends(node.span), draw.choice([one for one in columns if one != node.id])
    elif isinstance(node, n.String) and node.value in columns and len(columns) > 1:
        other = draw.choice([one for one in columns if one != node.value])
        yield "another column", *text.ends(node.span), f'"{other}"'
    elif isinstance(node, n.Attribute):
        end = text.ends(node.span)[1]
        yield "another field", end - len(node.name), end, draw.choice(fields)
        yield "no field", text.ends(node.value.span)[1], end, ""
    elif isinstance(node, n.Index):
        yield from (("index", *text.ends(arg.span), index) for arg in node.args for index in INDEXES)
    elif isinstance(node, n.Return) and node.value is not None:
        a, b = text.ends(node.value.span)
        yield from (("returns", a, b, value) for value in (*BODIES, f"[{text.base.text[a:b]}]"))
        yield "returns nothing", text.ends(node.span)[0], a, ""


def _of_queries(text: Text, node: n.Node, columns: list[str], draw: random.Random) -> Iterator[Edit]:
    if isinstance(node, n.Spending | n.Select) and node.spend is not None:
        a, b = text.ends(node.spend.span)
        yield "no amount", a, b, ""
        yield "another amount", a, b, draw.choice(AMOUNTS)
    if not isinstance(node, n.Select):
        return
    if node.where is not None:
        yield "condition", *text.ends(node.where.span), draw.choice(['"a"', "1", "age", "none"])
    for key in node.keys if columns else ():
        yield "another key", *text.ends(key.span), draw.choice(columns)
    for column in node.columns if columns else ():
        call = f"{draw.choice(AGGREGATES)}({draw.choice(columns)})"
        yield "another aggregate", *text.ends(column.span), call
    yield "another table", *text.ends(node.table.span), draw.choice(["3", "[1, 2]", '"people"', "{a: 1}"])


def _of_choices(text: Text, node: n.Node) -> Iterator[Edit]:
    if isinstance(node, n.Part):
        start, (a, b) = text.ends(node.span)[0], text.ends(node.body.span)
        yield from (("part", a, b, f"{{ return {body} }}") for body in BODIES)
        yield from (("part", start, a, head) for head in HEADS)
    if not isinstance(node, n.Choice):
        return
    for part in (node.among, node.informed):
        if part is not None:
            a, b = text.ends(part.span)
            inner = text.base.text[a:b].strip("{}[] ")
            yield from (("members", a, b, form.format(inner)) for form in MEMBERS)
    if node.trained is not None:
        yield from (("training data", *text.ends(node.trained.span), data) for data in TRAINED)
    for word in ("using", "spending", "wrt"):
        expr = getattr(node, word)
        if expr is not None:
            yield from ((word, *text.ends(expr.span), value) for value in CLAUSES[word])


def _of_declarations(text: Text, node: n.Node) -> Iterator[Edit]:
    for word in ("budget", "protecting") if isinstance(node, n.Private) else ():
        clause = getattr(node, word)
        if clause is not None:
            yield from ((word, *text.ends(clause.span), new) for new in CLAUSES[word])
    for _, domain in _described(node):
        yield from (("domain", *text.ends(domain.span), new) for new in DOMAINS)


if __name__ == "__main__":
    fuzz_mutants.edits = edits
    fuzz_mutants.USES = fuzz_mutants.USES[:8]
    sys.exit(fuzz_mutants.main())
