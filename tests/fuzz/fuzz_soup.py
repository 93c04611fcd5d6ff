# ruff: noqa: E501 (a form or a program stands on one line)
"""Texts that are hardly programs: tokens in any order, bytes, deep nesting, and programs with a piece cut or moved."""

from __future__ import annotations

import random
from collections.abc import Callable

from fuzz_programs import program

TOKENS = [
    "{{",
    "}}",
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    "..",
    ".",
    ",",
    ":",
    "=",
    "==",
    "!=",
    "<",
    "<=",
    ">",
    ">=",
    "+",
    "-",
    "*",
    "/",
    "//",
    "%",
    "^",
    "**",
    "#",
    "@",
    ";",
    "!",
    "?",
    "~",
    "$",
    "&",
    "|",
    "\\",
    "'",
    '"',
    "\n",
    "\t",
    "\r",
    "\x0c",
    "\x0b",
    "\x00",
    "\ufeff",
    "é",
    "∑",
    "𝔘",
    "def",
    "return",
    "if",
    "else",
    "elif",
    "while",
    "for",
    "in",
    "not",
    "and",
    "or",
    "lambda",
    "true",
    "false",
    "none",
    "select",
    "from",
    "where",
    "join",
    "on",
    "groupby",
    "group",
    "by",
    "as",
    "over",
    "with",
    "epsilon",
    "delta",
    "rho",
    "via",
    "release",
    "assert",
    "use",
    "param",
    "external",
    "private",
    "described",
    "protecting",
    "rows",
    "budget",
    "count",
    "sum",
    "distinct",
    "Feature",
    "Option",
    "Utility",
    "predict",
    "MkChoiceMaker",
    "among",
    "informed",
    "trained",
    "using",
    "spending",
    "wrt",
    "max",
    "of",
    "up",
    "to",
    "at",
    "most",
    "weighted",
    "public",
    "size",
    "counted",
    "having",
    "order",
    "between",
    "x",
    "y",
    "f",
    "t",
    "age",
    "1",
    "0",
    "2.5",
    "1e400",
    ".5",
    "1.",
    "1..2",
    "1e",
    "0x1",
    '"a"',
    "'b'",
    '"""',
    "*",
]


def declared(domain: str, *lines: str) -> str:
    """A program over a private table of one column."""
    source = f'private t = table("rows.csv") described by {{age: {domain}}} protecting rows budget epsilon 1'
    return "\n".join([source, *lines, ""])


DEEP: tuple[Callable[[int], str], ...] = (
    lambda k: "x = " + "- " * k + "1\n", lambda k: "x = " + "not " * k + "true\n", lambda k: "x = 1" + " + 1" * k + "\n",
    lambda k: "x = 2" + " ^ 1" * k + "\n", lambda k: "x = " + "1 if true else " * k + "2\n", lambda k: "x = [[1]]" + "[0]" * k + "\n",
    lambda k: "x = print" + "()" * k + "\n", lambda k: "x = pi" + ".a" * k + "\n", lambda k: "x = " + "lambda: " * k + "1\n",
    lambda k: "x = " + "sum over i in [1] of " * k + "1\n", lambda k: "x = " + "(" * k + "1" + ")" * k + "\n",
    lambda k: "x = " + "{{ " * k + "1" + " }}" * k + "\n", lambda k: "x = true" + " and true" * k + "\n",
    lambda k: "if true: x = 1\n" + "else if true: x = 1\n" * k, lambda k: "x = 1 < " + "1 < " * k + "2\n",
    lambda k: "".join("  " * i + "if true:\n" for i in range(k)) + "  " * k + "x = 1\n", lambda k: "x = [i" + " for i in [1]" * k + "]\n",
    lambda k: "def f(n): return [f(n + 1) for i in [1]]\nx = f(0)\n", lambda k: "def f(n): return {a: f(n + 1)}\nx = f(0)\n",
    lambda k: "def f(n): return sum over i in [1] of f(n + 1)\nx = f(0)\n", lambda k: "x = [1]\nfor i in 1..60: x = x + x\n",
    lambda k: "x = [1]\nfor i in 1..60: x = [x, x]\nrelease x\n", lambda k: "x = [1]\nfor i in 1..60: x = [x, x]\nprint(x == x)\n",
    lambda k: 'x = "a"\nfor i in 1..60: x = x + x\n', lambda k: "x = [1]\nfor i in 1..60: x = {a: x, b: x}\nprint(x, len(x))\nassert x != [x]\n",
    lambda k: "x = [i for i in 1..1e12]\n", lambda k: "x = sum(1..1e12)\n", lambda k: "x = list(0..1e9)\n", lambda k: "x = set(1..1e5)\n",
    lambda k: "x = {i for i in 1..1e5}\n", lambda k: "x = max over i in 1..1e11 of i\n", lambda k: "x = len(1..1e300)\nprint(x)\n",
    lambda k: "x = enumerate(1..1e10)\n", lambda k: "x = [1]\nfor i in 1..1500: x = [x]\nprint(x)\nrelease x\n",
    lambda k: "x = [1]\nfor i in 1..1500: x = [x]\ny = x == x\n", lambda k: "f = lambda i: i\nfor j in 1..1200: f = lambda i: f(i)\nx = f(1)\n",
    lambda k: "x = [[i] for i in 1..3000]\ny = x - x\n", lambda k: "x = {[i] for i in 1..3000}\n", lambda k: "x = {{a: i} for i in 1..3000}\n",
    lambda k: declared("0..1000000000000", "x = columns(t)[0]", "print(len(x))"),
    lambda k: declared("0..1000000000000", "x = columns(t)[0].categories"),
    lambda k: declared("0..16000000", "x = partition(t, age)"),
    lambda k: declared("0..100000", "x = {{ select count(*) from t groupby age with epsilon 0.1 }}"),
    lambda k: declared("0..1000000000000", "x = {{ select median(age) from t with epsilon 0.1 }}"),
    lambda k: declared("0..1000000000000", "x = histogram(t, x = age)"),
    lambda k: declared("0..99", "x = {{ select count(*) from t groupby age over 1..1e9 with epsilon 0.1 }}"),
    lambda k: declared("0..99", "x = {{ select count(*) from t where age in [i for i in 1..20000] with epsilon 0.1 }}"),
)  # fmt: skip


def soup(seed: int) -> str:
    """The text of this seed."""
    rng = random.Random(seed)
    kind = rng.randrange(6)
    if kind == 0:
        return " ".join(rng.choice(TOKENS) for _ in range(rng.randrange(1, 40)))
    if kind == 1:
        return bytes(rng.randrange(256) for _ in range(rng.randrange(1, 80))).decode("utf-8", "replace")
    if kind == 2:
        return rng.choice(DEEP)(rng.choice((10, 100, 190, 450, 2000)))
    text = program(rng.randrange(10**9))
    at, much = rng.randrange(len(text)), rng.randrange(1, 12)
    if kind == 3:
        return text[:at] + text[at + much :]
    if kind == 4:
        return text[:at] + rng.choice(TOKENS) + text[at:]
    other = rng.randrange(len(text))
    return text[:at] + text[other : other + 3 * much] + text[at:]


def noise(seed: int) -> str:
    """Bytes, characters of the language, or tokens, in any order: hardly ever a program."""
    rng = random.Random(seed)
    size = rng.randrange(1, 200)
    if seed % 3 == 0:
        return bytes(rng.randrange(256) for _ in range(size)).decode("utf-8", "replace")
    if seed % 3 == 1:
        return "".join(rng.choices(" \n\t\"'#,.:;()[]{}<>=+-*/^%@!?abexn019_eE", k=size))
    return rng.choice(("", " ")).join(rng.choices(TOKENS, k=size // 3 + 1))
