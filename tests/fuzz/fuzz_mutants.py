"""Programs with one mistake in them: what `check` lets pass may not be refused by a run after something was paid.

The programs are those of `programs/`, of the language's tests and ports, and of the documentation. Each is cut down to
a statement and what it needs, one thing in it is changed, or a line is added that uses what it gives in a wrong way,
and the rest is left to `check` and to a run on simulated rows under a huge budget:

    python tests/fuzz/fuzz_mutants.py --mutants 3000 --seed 1 --out late.jsonl

It prints the refusals that came late, in clusters of one message, and those of `check` that no run has.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "language")]

from chunks import chunks_of  # noqa: E402
from fuzz_oracle import TooSlow, alarm  # noqa: E402

from jostle.diagnostics import Refusal  # noqa: E402
from jostle.documentation.entries import programs  # noqa: E402
from jostle.source import Source, Span  # noqa: E402
from jostle.syntax import nodes as n  # noqa: E402
from jostle.syntax import parse  # noqa: E402
from jostle.syntax.walk import bound_in, every  # noqa: E402
from jostle.tools.session import Session  # noqa: E402

FROM_ANSWERS = {"BudgetExceeded", "AssertionFailed", "DataError", "LedgerError", "ImportError", "RecursionLimit"}
"""Kinds of refusals that may follow from what was answered."""
VALUES = ("3", "0.5", '"zz"', "[1, 2]", "none", "{a: 1}", "true", "(1..3)", "[[1, 2], [3, 4]]", "(lambda x: x)")
USES = (
    "print({x}.zz)", "print({x}.p_value)", "print({x}.predict_proba({{a: 1}}))", 'print({x} + "a")', "print({x} + 1)",
    "print({x}[0])", 'print({x}["zz"])', "print(error({x}))", "print(band({x}, level = 90))", "print({x}(1))",
    "print(interval({x}, 90))", 'plot({x}, kind = "scatter")', "plot({x})", "print(where({x}, n > 10))",
    "print({{{{ select count(*) as m from {x} }}}})", "print(len({x}))", "print(sum({x}))", "print(round({x}))",
    "print(sorted({x}))", "if {x} > 1: print(1)", "print({x} / 2)", "print(-{x})", "for one in {x}: print(one.zz)",
    "release r9 = {x}.zz", "print([k.zz for k in {x}])", "print({x}.predict(3))", "print(upper({x}))",
    "def f9(d) = d.zz\nprint(f9({x}))", "print({x} and true)", "print(keys({x}))", "print(max({x}, 1))",
    "print(laplace({x}) with epsilon 0.1)", "print(histogram({x}, a))", "print(table({x}))", "print({x}.count.zz)",
    "print({x}.rows)", "print({x}.column(1))", "print({x}.predict())", "print({x}.sample())",
    "print([{x}][0].zz)", "print({{a: {x}}}.a.zz)", "print((lambda y: y.zz)({x}))", "print(date({x}))",
    "for i in 1..2:\n    print({x}.zz)", "if 1 < 2:\n    print({x}[\"zz\"] + none)",
)  # fmt: skip
BASELINE, LONGEST = 4.0, 12.0


@dataclass(frozen=True)
class Base:
    """A program that is changed, and where it stands."""

    title: str
    text: str


@dataclass(frozen=True)
class Mutant:
    title: str
    how: str
    before: str  # the program without the mistake
    text: str
    line: str  # what was changed, as it stands now


def bases() -> list[Base]:
    found = [Base(path.name, path.read_text(encoding="utf-8")) for path in sorted(ROOT.glob("programs/*.jst"))]
    found += [Base(f"examples/{name}", text) for name, text in sorted(programs().items())]
    for folder in ("language", "language/ports", "language/paper", "trace/programs"):
        for path in sorted((ROOT / "tests" / folder).glob("*.jst")):
            found += [Base(one.title, one.text) for one in chunks_of(path) if one.expected is None]
    block = re.compile(r"^```jostle\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    for page in sorted([ROOT / "README.md", *ROOT.glob("docs/*.md"), *ROOT.glob("docs/howto/*.md")]):
        text = page.read_text(encoding="utf-8")
        found += [
            Base(f"{page.name}:{text.count(chr(10), 0, it.start()) + 2}", it[1])
            for it in block.finditer(text) if "###" not in it[1]
        ]  # fmt: skip
    return [Base(base.title, rich(base.text)) for base in found]


def rich(text: str) -> str:
    """The program with a budget that is not spent."""
    text = re.sub(r"\b(budget\s+epsilon)\s+[\d./]+", r"\1 100000", text)
    return re.sub(r"\b(budget\s+rho)\s+[\d./]+", r"\1 100000", text)


# Places of a text ---------------------------------------------------------------------------------


class Text:
    """A program and its statements at the top, as pieces of text."""

    def __init__(self, base: Base) -> None:
        self.base, self.source = base, Source("p.jst", base.text)
        self.tree = parse(self.source)
        self.lines = [0]
        for line in base.text.split("\n"):
            self.lines.append(self.lines[-1] + len(line) + 1)

    def ends(self, span: Span) -> tuple[int, int]:
        return self.lines[span.line - 1] + span.column - 1, self.lines[span.end_line - 1] + span.end_column - 1

    def of(self, node: n.Node) -> str:
        start, end = self.ends(node.span)
        return self.base.text[start:end]

    @cache  # noqa: B019
    def _reads(self, at: int) -> frozenset[str]:
        statement = self.tree.body[at]
        names = {node.id for node in every(statement) if isinstance(node, n.Name)}
        names |= {node.name for node in every(statement) if isinstance(node, n.Release) and node.value is None}
        for node in every(statement):
            if isinstance(node, n.Protecting) and node.linked:
                names.add(node.linked)
        return frozenset(names)

    @cache  # noqa: B019
    def _binds(self, at: int) -> frozenset[str]:
        return frozenset(bound_in([self.tree.body[at]], lambda use: (use.path[-1],)))

    def needed(self, at: int) -> list[int]:
        """The statements before one that it needs, by their names."""
        wanted, kept = set(self._reads(at)), []
        for one in range(at - 1, -1, -1):
            if isinstance(self.tree.body[one], n.Use) or wanted & self._binds(one):
                kept.append(one)
                wanted |= self._reads(one)
        return kept[::-1]

    def after(self, at: int, most: int = 2) -> list[int]:
        """The next statements that read what this one gives."""
        mine = self._binds(at)
        return [one for one in range(at + 1, len(self.tree.body)) if mine & self._reads(one)][:most]

    def piece(self, at: int) -> str:
        return self.of(self.tree.body[at])


# What is changed -----------------------------------------------------------------------------------


def edits(text: Text, at: int, random: random.Random) -> Iterator[tuple[str, int, int, str]]:
    """Ways to make one mistake in a statement: what it is, from where to where, and what stands there then."""
    statement = text.tree.body[at]
    names = [name for one in text.needed(at) for name in text._binds(one) if isinstance(
        text.tree.body[one], n.Assign | n.Private | n.Release)]  # fmt: skip
    for node in every(statement):
        start, end = text.ends(node.span)
        if isinstance(node, n.Attribute):
            for name in ("zz", node.name + "x", "count", "p_value"):
                yield "member", end - len(node.name), end, name
            yield "member called", end, end, "(1)"
        if isinstance(node, n.Call):
            for arg in node.args:
                a, b = text.ends(arg.span)
                for value in (*VALUES, *random.sample(names, min(2, len(names)))):
                    yield "argument", a, b, value
            if node.args:
                a, b = text.ends(node.args[-1].span)
                first = text.ends(node.args[-2].span)[1] if len(node.args) > 1 else a
                yield "argument dropped", first, b, ""
                yield "argument added", b, b, ", 7"
                yield "keyword added", b, b, ", zz = 1"
            for word in node.keywords:
                a, b = text.ends(word.span)
                yield "keyword renamed", a, a + len(word.name), word.name + "x"
                a, b = text.ends(word.value.span)
                for value in VALUES:
                    yield "keyword", a, b, value
        elif isinstance(node, n.Index):
            for arg in node.args:
                a, b = text.ends(arg.span)
                for value in ("100000", '"zz"', "none", "[0]", "0.5"):
                    yield "index", a, b, value
        elif isinstance(node, n.Binary):
            for side in (node.left, node.right):
                a, b = text.ends(side.span)
                for value in ('"zz"', "none", "[1, 2]", "{a: 1}", *random.sample(names, min(2, len(names)))):
                    yield "operand", a, b, value
        elif isinstance(node, n.ListOf | n.RecordOf):
            items = node.items if isinstance(node, n.ListOf) else [value for _, value in node.items]
            for item in items:
                a, b = text.ends(item.span)
                for value in VALUES:
                    yield "item", a, b, value
            for value in ("3", '"zz"', "[]", "{}"):
                yield "whole", start, end, value
            if isinstance(node, n.RecordOf):
                for name, value in node.items:
                    a = text.ends(value.span)[0]
                    back = text.base.text.rfind(name, start, a)
                    if back >= 0:
                        yield "field renamed", back, back + len(name), name + "x"
        elif isinstance(node, n.Number | n.String | n.Constant):
            for value in ("-3", "0", '"zz"', "[1, 2]", "none", "1e9", "2.5", '""'):
                yield "literal", start, end, value
        elif isinstance(node, n.Name) and names:
            yield "name", start, end, random.choice(names)
        elif isinstance(node, n.Choice):
            for part in (node.among, node.informed, node.trained, node.wrt):
                if part is not None:
                    a, b = text.ends(part.span)
                    for value in ("3", "[1, 2]", *names[:1]):
                        yield "clause", a, b, value


def mutants(base: Base, random: random.Random) -> list[Mutant]:
    """One way for each statement and kind of mistake, and some uses of what it gives."""
    try:
        text = Text(base)
    except Refusal:
        return []
    made = []
    for at, statement in enumerate(text.tree.body):
        if isinstance(statement, n.Use | n.ParamDecl):
            continue
        before = [text.piece(one) for one in text.needed(at)]
        after = [text.piece(one) for one in text.after(at)]
        piece, first = text.piece(at), text.ends(statement.span)[0]
        whole = "\n".join([*before, piece, *after]) + "\n"
        kinds: dict[str, list[tuple[str, int, int, str]]] = {}
        for edit in edits(text, at, random):
            kinds.setdefault(edit[0], []).append(edit)
        for how, ways in kinds.items():
            for _, a, b, new in random.sample(ways, min(len(ways), 3)):
                changed = piece[: a - first] + new + piece[b - first :]
                if changed != piece:
                    made.append(Mutant(base.title, how, whole, "\n".join([*before, changed, *after]) + "\n", changed))
        for name in text._binds(at) if isinstance(statement, n.Assign | n.Release | n.Private) else ():
            alone = "\n".join([*before, piece]) + "\n"
            for use in random.sample(USES, 8):
                line = use.format(x=name)
                made.append(Mutant(base.title, "use", alone, f"{alone}{line}\n", line))
    return made


# Judging -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Judged:
    verdict: str  # crash, late, alarm, early, runs, answers, slow, unfit
    kind: str = ""
    message: str = ""
    line: str = ""


class Judge:
    """Holds `check` against a run on simulated rows, in a folder with the data of all programs."""

    def __init__(self, folder: Path) -> None:
        shutil.copytree(ROOT / "programs" / "data", folder / "data")
        for file in (ROOT / "tests" / "language" / "data").iterdir():
            shutil.copy(file, folder)
        for file in (ROOT / "programs").glob("*.jst"):
            shutil.copy(file, folder)
        self.folder, self.fine = folder, dict[str, bool]()

    def check(self, text: str) -> list[object]:
        session = Session(cwd=self.folder, ledger=self.folder / "l.db")
        return list(session.checked(Source("p.jst", text), tries=False)[0])

    def run(self, text: str) -> tuple[bool, bool, object]:
        with Session(simulate=1, rows=200, cwd=self.folder, ledger=self.folder / "l.db") as session:
            session._check = lambda *_: []  # type: ignore[method-assign]
            session._affordable = lambda *_: None  # type: ignore[method-assign]
            result = session.attempt(Source("p.jst", text))
        amounts = [amount for units in result.budget.values() for amount in units.values()]
        paid = any(float(amount["spent"]) > 0 for amount in amounts if isinstance(amount, dict))
        return result.ok, paid, result.diagnostics[0] if result.diagnostics else None

    def sound(self, text: str) -> bool:
        """Whether a program passes and runs, in time, as it stands."""
        if text not in self.fine:
            try:
                with alarm(BASELINE):
                    self.fine[text] = not self.check(text) and self.run(text)[0]
            except TooSlow:
                self.fine[text] = False
        return self.fine[text]

    def judge(self, mutant: Mutant) -> Judged:
        if not self.sound(mutant.before):
            return Judged("unfit")
        try:
            with alarm(LONGEST):
                faults = self.check(mutant.text)
                ok, paid, said = self.run(mutant.text)
        except TooSlow:
            return Judged("slow")
        except (RecursionError, KeyboardInterrupt):
            raise
        except Exception as error:
            return Judged("crash", type(error).__name__, str(error))
        if faults:
            fault = faults[0]
            verdict = "alarm" if ok else "early"
            return Judged(verdict, fault.kind, fault.message, fault.span.text if fault.span else "")  # type: ignore[attr-defined]
        if ok:
            return Judged("runs")
        verdict = "unpaid" if not paid else "answers" if said.kind in FROM_ANSWERS else "late"  # type: ignore[attr-defined]
        return Judged(verdict, said.kind, said.message, said.span.text if said.span else "")  # type: ignore[attr-defined]


def cluster(message: str) -> str:
    return re.sub(r"\d[\d,.]*", "N", re.sub(r"`[^`]*`|\"[^\"]*\"", "`…`", message))


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mutants", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=8.0)
    parser.add_argument("--part", default="0/1", help="`1/2` is the second half of the programs' mutants")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--replay", type=Path, help="judge the mutants of this file again")
    asked = parser.parse_args(argv)
    if asked.replay:
        rows = [json.loads(line) for line in asked.replay.read_text(encoding="utf-8").splitlines()]
        chosen = [Mutant(r["title"], r["how"], r["before"], r["text"], r["changed"]) for r in rows]
    else:
        draw = random.Random(asked.seed)
        chosen = [mutant for base in bases() for mutant in mutants(base, draw)]
        draw.shuffle(chosen)
        print(f"{len(chosen)} mutants of {len({m.title for m in chosen})} programs")
        chosen = chosen[: asked.mutants]
    part, parts = map(int, asked.part.split("/"))
    chosen = chosen[part::parts]
    verdicts, clusters = Counter[str](), dict[tuple[str, str, str], list[tuple[Mutant, Judged]]]()
    end = time.monotonic() + asked.minutes * 60
    out = asked.out.open("w", encoding="utf-8") if asked.out else None
    with tempfile.TemporaryDirectory() as folder:
        judge = Judge(Path(folder))
        for mutant in chosen:
            if time.monotonic() > end:
                break
            with suppress(RecursionError):
                judged = judge.judge(mutant)
            verdicts[judged.verdict] += 1
            if judged.verdict in ("crash", "late", "alarm", "answers"):
                key = judged.verdict, judged.kind, cluster(judged.message)
                clusters.setdefault(key, []).append((mutant, judged))
            if out and judged.verdict in ("crash", "late", "alarm", "answers", "slow", "early", "unpaid"):
                row = {"verdict": judged.verdict, "kind": judged.kind, "message": judged.message, "at": judged.line,
                       "title": mutant.title, "how": mutant.how, "changed": mutant.line, "text": mutant.text,
                       "before": mutant.before}  # fmt: skip
                out.write(json.dumps(row) + "\n")
                out.flush()
    for key, found in sorted(clusters.items(), key=lambda it: (it[0][0], -len(it[1]))):
        print(f"{len(found):4} {' '.join(key)}    e.g. {found[0][0].title}: {found[0][1].line[:80]}")
    print(dict(verdicts))
    return 1 if verdicts["late"] or verdicts["crash"] else 0


if __name__ == "__main__":
    sys.exit(main())
