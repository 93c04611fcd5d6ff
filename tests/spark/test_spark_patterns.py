"""Patterns as Java runs them in place: what they mean, on texts as long as texts are, and which are refused."""

from __future__ import annotations

import random
import re
import sys
import time

import pyarrow as pa
import pytest
from engines_spark import Filed

from jostle.backends.spark.patterns import spelling
from jostle.diagnostics import Refusal
from jostle.language import patterns
from jostle.plan.plan import Apply, Column, Constant, Count, Derive, Key, Open, Scan
from jostle.readers.duckdb import LocalDuckDb

LONGEST = 2**16
KNOWN = [
    "a|b", "^a", "[^a-z]", "a{2,3}$", ".", "^$", "(ab)*c", "[é-ü]", "^.$", "(ab|x)+y", "^(.|\\n)*q(.|\\n)*$",
    "^a(.|\\n)*b(.|\\n)*c$", "^(\\d{3},)*\\d{3}$", "aaaaaaaaab", "abababac", "(a|b)*abb", "^[A-Z]{2}[0-9]{6}[A-D]$",
    "^[^@]+@[^@]+\\.[a-z]{2,}$", "(foo|bar)+", "((a*)*)*b", "(a?){20}a{20}", "a.*b.*c.*d", "^(a|b|ab)*$", "a^b",
    "(a|b)*a(a|b){3}", "(.*x){6}", "^(.|\\n)*%_(.|\\n)(.|\\n)*$", "^\\s*$", "(ab|cd)*(ef|g)+h?", "^.*(red|green).*$",
    "^.*(ab|ba).*(ba|aa)$", "^.*a[ab]*b$", "Error: .* failed", "the quick brown fox", "(ab)*", "^(.{2}|a)*$",
]  # fmt: skip


def in_python(spelled: str) -> re.Pattern[str]:
    """Python has possessive loops as Java has."""
    codes = re.sub(r"\\x\{([0-9A-F]+)\}", lambda code: f"\\U{int(code[1], 16):08X}", spelled)
    return re.compile(codes.replace("\\z", "\\Z"))


def drawn(rng: random.Random, depth: int) -> str:
    turn = rng.random()
    if depth == 0 or turn < 0.3:
        return rng.choice(["a", "b", ".", "[ab]", "[^a]", "x", "(.|\\n)*", ".*"])
    if turn < 0.55:
        return drawn(rng, depth - 1) + drawn(rng, depth - 1)
    if turn < 0.7:
        return f"({drawn(rng, depth - 1)}|{drawn(rng, depth - 1)})"
    return f"({drawn(rng, depth - 1)}){rng.choice(['*', '+', '?', '{2}', '{1,3}', '{2,}'])}"


@pytest.mark.skipif(sys.version_info < (3, 11, 5), reason="its possessive loops of groups are wrong")
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_an_expression_means_what_its_pattern_means(seed: int) -> None:
    rng = random.Random(seed)
    many = 1_000 if seed else 120
    made = [rng.choice(["", "^"]) + drawn(rng, 3) + rng.choice(["", "$"]) for _ in range(many)]
    refused = 0
    for pattern in [*KNOWN, *made]:
        try:
            expression = in_python(spelling(pattern))
        except Refusal:
            refused += 1
            continue
        for _ in range(40):
            letters = rng.choice(["ab", "ab\n", "abx", "abcdefg 01@.\n", "0,1"])
            text = "".join(rng.choice(letters) for _ in range(rng.randrange(14)))
            found = expression.search(text) is not None
            assert found == patterns.matches(text, pattern), (pattern, text)
    assert refused <= many // 20


def test_a_pattern_that_cannot_be_made_total_is_refused_at_once() -> None:
    for pattern in ("(a|b)*a(a|b){20}", "([a-c]{1,3}[b-d]{1,3}){5}z"):
        start = time.process_time()
        with pytest.raises(Refusal, match="Spark cannot search for this pattern"):
            spelling(pattern)
        assert time.process_time() - start < 20


def test_long_texts_are_searched_where_java_comes_back_to_nothing(url: str) -> None:
    units = ["a", "ab", "x", "\U0001f600", "a\U0001f600", "a\nb", "e\u0301", "0", " ", "foo", "red large ", "123,"]
    texts: list[str | None] = [None, "", "q", "x" * 1_500, "x" * 1_500 + "q", "ab" * 7 + "c", "q" * (LONGEST + 1)]
    texts += [(unit * LONGEST)[:LONGEST] for unit in units]
    texts += [f"{text[:-1]}{last}" for text in texts[-4:] if text for last in "yx"]
    table = pa.table({"s": pa.array(texts, pa.string())})
    reference, engine = LocalDuckDb(), Filed(url)
    try:
        answers: list[list[list[int]]] = []
        for one in (reference, engine):
            scan = Scan(one.open(table, public=True).key, (("s", Open("text")),))
            known = [*KNOWN[::2], "(ab|x)+y"]
            tests = [Apply("matches", (Column("s"), Constant(pattern))) for pattern in known]
            plan = Derive(scan, tuple((f"m{i}", test) for i, test in enumerate(tests)))
            keys = [Key(Column(f"m{i}"), (False, True)) for i in range(len(tests))]
            answers.append([one.group(plan, (key,), (Count(),))[0].tolist() for key in keys])
        assert answers[0] == answers[1]
    finally:
        engine.close()
        reference.close()
