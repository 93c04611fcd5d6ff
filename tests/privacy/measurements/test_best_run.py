"""`best_run`: its stopping laws, what it costs, and that no run but the shown one leaves a trace."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from jostle.accounting.amounts import Amount
from jostle.accounting.definitions import Measure
from jostle.diagnostics import refuse
from jostle.privacy.kernel.exposures import Exposure
from jostle.privacy.kernel.exposures import Source as Private
from jostle.privacy.measurements.watch import BestRun
from jostle.privacy.mechanisms.margin import Stopping, below
from jostle.privacy.mechanisms.noise import SecureNoise
from jostle.simulate import SeededNoise
from jostle.source import Source
from jostle.tools.result import Result
from jostle.tools.session import Session
from jostle.trace.tree import one_line

LAWS = ("geometric", "logarithmic")


def share(stopping: Stopping, many: int) -> float:
    """P(k) by its formula."""
    stop, law = 1 / stopping.odds, stopping.law
    if law == "geometric":
        return (1 - stop) ** (many - 1) * stop
    return (1 - stop) ** many / many / math.log(stopping.odds)


# The law of how many runs there are ------------------------------------------------------------------


class Scripted:
    """Bits that are given, one after the other."""

    def __init__(self, bits: tuple[int, ...]) -> None:
        self.bits = list(bits)

    def sample(self, size: int, share: int) -> np.ndarray:
        assert share == 2**15
        out, self.bits = self.bits[:size], self.bits[size:]
        if len(out) < size:
            raise EOFError
        return np.array(out, dtype=bool)


def exactly(draw: Callable[[Any], int], bits: int) -> Counter[int]:
    """How many of all strings of so many bits lead to each outcome; those that do not end are left out."""
    ways: Counter[int] = Counter()
    for script in itertools.product((0, 1), repeat=bits):
        with suppress(EOFError):
            ways[draw(Scripted(script))] += 1
    return ways


def test_integers_are_uniform_bit_by_bit() -> None:
    for bound in (1, 2, 3, 5, 7, 8):
        ways = exactly(lambda noise, bound=bound: below(noise, bound), 9)
        assert set(ways) == set(range(bound)) and len(set(ways.values())) == 1


@pytest.mark.parametrize("law", LAWS)
def test_numbers_of_runs_have_their_exact_law(law: str) -> None:
    """With odds of 2 a run stops by one bit: all strings of 14 bits bound each probability from below."""
    stopping = Stopping(1.0, law, None, 2)
    ways, left = exactly(stopping.draw, 14), 1.0
    for many in ways:
        assert ways[many] / 2**14 <= share(stopping, many)
        left -= ways[many] / 2**14
    assert left < (0.001 if law == "geometric" else 0.2)
    assert all(share(stopping, many) - ways[many] / 2**14 <= left for many in ways)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.slow
def test_a_hundred_thousand_draws_follow_the_law(law: str) -> None:
    """Each count within 6 standard errors, and the mean; by secure noise."""
    stopping, many, noise = Stopping.of(8, law, None), 100_000, SecureNoise()
    counts = Counter(stopping.draw(noise) for _ in range(many))
    for k in range(1, 60):
        expected = many * share(stopping, k)
        assert abs(counts[k] - expected) < 6 * math.sqrt(expected + 1)
    mean = sum(k * c for k, c in counts.items()) / many
    spread = math.sqrt(sum(c * (k - mean) ** 2 for k, c in counts.items())) / many
    assert abs(mean - stopping.runs) < 6 * spread


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("runs", [1, 2, 30, 100, 5_000])
def test_there_are_as_many_in_the_mean(law: str, runs: int) -> None:
    stopping = Stopping.of(runs, law, None)
    assert runs <= stopping.runs < runs * 1.1 + 1
    if 1 < runs <= 100:
        tail = sum(k * share(stopping, k) for k in range(1, 60 * stopping.odds))
        assert tail == pytest.approx(stopping.runs, rel=1e-6)


# Its price -------------------------------------------------------------------------------------------


def best_law(scores: np.ndarray, stopping: Stopping) -> np.ndarray:
    """The probability of each outcome, rising in score; the last is that none was good (from the middle on)."""
    many = np.arange(1, 4000)
    weights = np.array([share(stopping, int(k)) for k in many])
    upto = np.cumsum(scores)
    if stopping.good is None:
        powers = np.array([(weights * u**many).sum() for u in np.minimum(upto, 1)])
        return np.append(np.diff(powers, prepend=0.0), 1e-300)
    middle = len(scores) // 2
    bad = scores[:middle].sum()
    reached = np.cumsum(weights[::-1])[::-1]  # that there is a run k + 1
    shown = (reached * bad ** np.arange(len(weights))).sum()
    return np.append(np.where(np.arange(len(scores)) < middle, 1e-300, scores * shown), (weights * bad**many).sum())


@pytest.mark.parametrize(("law", "good"), [("geometric", None), ("logarithmic", None), ("geometric", 0.0)])
def test_no_outcome_loses_more_than_the_price(law: str, good: float | None) -> None:
    """Over runs with ε-DP scores, many of them made to lose the most: below the parts of ε, and near them."""
    rng, worst = np.random.default_rng(3), 0.0
    for runs, epsilon in itertools.product((2, 20, 400), (0.1, 1.0)):
        stopping = Stopping.of(runs, law, good)
        if runs == 400 and law == "logarithmic":
            continue
        for _ in range(60):
            cells = int(rng.integers(2, 7))
            one = rng.dirichlet(np.full(cells, 0.3)) + 1e-12
            # the law of randomised response on a set of outcomes is the extreme one of all that are ε-DP
            side = rng.random(cells) < 0.5
            side[0], side[-1] = rng.random() < 0.5, not side[0]
            low, high = one[~side].sum(), one[side].sum()
            other = np.where(side, one / max(high, 1e-300), one / max(low, 1e-300))
            p, q = math.exp(epsilon) / (1 + math.exp(epsilon)), 1 / (1 + math.exp(epsilon))
            first, second = np.where(side, other * p, other * q), np.where(side, other * q, other * p)
            a, b = best_law(first, stopping), best_law(second, stopping)
            real = (a > 1e-200) & (b > 1e-200)
            loss = np.abs(np.log(a[real] / b[real])).max() / epsilon
            assert loss <= stopping.parts + 1e-6
            worst = max(worst, loss / stopping.parts)
    assert worst > 0.6


def best_of(noise: Any, run: Callable[[int], tuple[float, object]], stopping: Stopping, candidates: int = 3) -> Any:
    source = Private.declared("t", Measure("pure", Amount("epsilon", 10**13)), None, None, noise)  # type: ignore[arg-type]
    best = BestRun.of((Exposure(source),), Amount("epsilon", 10**12), stopping, candidates, run)
    return best.release(nullcontext, noise).value


def test_the_best_run_is_shown() -> None:
    """Brute force: the outcomes of many releases have the law of the formula."""
    noise, stopping = SeededNoise(5), Stopping.of(3, "geometric", None)
    scores = np.array([0.5, 0.3, 0.2])

    def run(place: int) -> tuple[float, object]:
        at = below(noise, 10)
        score = 0 if at < 5 else 1 if at < 8 else 2
        if score == 0:
            raise refuse("ValueError", "this run fails")
        return float(score), score

    many = 6_000
    shown = Counter(-1 if one is None else one[1] for one in (best_of(noise, run, stopping) for _ in range(many)))
    for score, probability in zip((-1, 1, 2), best_law(scores, stopping), strict=False):
        assert abs(shown[score] - many * probability) < 6 * math.sqrt(many * probability)


def test_a_score_that_is_no_number_is_of_no_run() -> None:
    noise, stopping = SeededNoise(1), Stopping.of(4, "geometric", None)
    assert best_of(noise, lambda place: (math.nan, place), stopping) is None
    assert best_of(noise, lambda place: (-math.inf, place), stopping) is not None


# In programs -----------------------------------------------------------------------------------------

OPENING = """use selection
use gradual
use row_vectors
private t = bound("t") described by {v: 0..7, k: {"a", "b"}} protecting rows budget BUDGET
private u = bound("u") described by {v: 0..7} protecting rows budget epsilon 9
def f(d, c):
    n = {{ select count(*) as n from d where v >= c }}
    print("hidden")
    release n
    return {score: n, twice: n * 2}
"""


def session(program: str, budget: str = "epsilon 9", opening: str = OPENING) -> tuple[Session, Result]:
    rows = {"v": np.arange(80) % 8, "k": np.array(["a", "b"] * 40)}
    one = Session()
    one.bind("t", rows)
    one.bind("u", {"v": np.arange(8)})
    return one, one.attempt(Source("p.jst", opening.replace("BUDGET", budget) + program))


def run(program: str, budget: str = "epsilon 9") -> Result:
    return session(program, budget)[1]


def test_it_costs_its_amount_and_shows_the_winner_alone() -> None:
    result = run("best = best_run(t, f, [0, 3, 9], 40, epsilon = 9)\nrelease best\nprint(spent(t), spent(u))\n")
    assert result.ok and result.output == ["9 0"] and set(result.values) == {"best"}
    best = result.values["best"]
    truth = {0.0: 80, 3.0: 50, 9.0: 0}[best["candidate"]]  # there may be one run alone, of any of them
    assert abs(best["score"] - truth) < 20 and best["twice"] == 2 * best["score"]
    assert "lucky" in best["score"].cut[0]
    events = [e for e in result.events if e.kind not in ("source", "run", "release", "allotment")]
    assert [e.name for e in events] == ["best_run"] and not [e for e in result.events if e.name == "n"]
    fields = events[0].fields
    assert "best_run  40 runs in the mean" in one_line(events[0])
    assert (fields["epsilon"], fields["scale"], fields["parts"]) == (9.0, 40.0, 3)


def test_ids_of_events_do_not_count_the_runs() -> None:
    """What comes after has the same place in the trace, however many runs there were."""
    program = "best = best_run(t, f, [0, 3, 9], 40, epsilon = 1)\nn = {{ select count(*) from t with epsilon 1 }}\n"
    assert len({max(e.id for e in run(program).events) for _ in range(4)}) == 1


def test_a_run_keeps_no_strategy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The name of a file in the cache told which strategy a hidden run had called for, by a number that it measured."""
    monkeypatch.setenv("JOSTLE_CACHE", str(tmp_path))
    answers = "sum(hdmm(histogram(t, x = v), prefixes(histogram(t, x = v))) with epsilon 0.5)"
    inside = f"def g(d, c):\n    return {{score: {answers.replace('t, x', 'd, x')}}}\n"
    for program, many in (
        (f"{inside}b = best_run(t, g, [0], 5) with epsilon 6\nassert b.candidate == 0\n", 0),
        (f"b = {answers}\n", 1),
    ):
        result = run(f"use histograms\nuse workloads\n{program}")
        assert result.ok, result.diagnostics
        assert len([*tmp_path.glob("strategies/*")]) == many


@pytest.mark.parametrize("least", [-9, 999])
def test_a_module_that_a_run_uses_prints_at_its_next_use(least: int, tmp_path: Path) -> None:
    """It had been loaded, silently: so a program saw which modules the hidden runs took, by what they had measured."""
    (tmp_path / "seen.jst").write_text('print("loaded")\nmany = 7\n')
    program = f"""
def g(d, c):
    n = {{{{ select count(*) from d }}}}
    if n > {least}:
        use seen
        return {{score: n, many: many}}
    return {{score: n, many: 0}}
b = best_run(t, g, [0], 5) with epsilon 6
use seen
print(b.many, many)
"""
    one = Session(cwd=tmp_path)
    one.bind("t", {"v": np.arange(8), "k": np.array(["a", "b"] * 4)})
    result = one.attempt(Source("p.jst", OPENING.replace("BUDGET", "epsilon 9").split("private u")[0] + program))
    assert result.ok and result.output == ["loaded", f"{0 if least == 999 else 7} 7"], result


def test_a_module_of_the_library_tells_of_its_progress_at_its_next_use() -> None:
    """It had been loaded in a hidden run, which is silent."""
    told: dict[int, list[object]] = {-9: [], 999: []}
    for least, progress in told.items():
        one = Session(progress=lambda *of, progress=progress: progress.append(of))
        one.bind("t", {"v": np.arange(8), "k": np.array(["a", "b"] * 4)})
        program = f"""
def g(d, c):
    n = {{{{ select count(*) from d }}}}
    if n > {least}:
        use best
    return {{score: n}}
b = best_run(t, g, [0], 2) with epsilon 6
use best
"""
        opening = OPENING.replace("BUDGET", "epsilon 9").split("private u")[0]
        assert one.attempt(Source("p.jst", opening + program)).ok
    assert told[-9] == told[999] != []


CHOICES = """use best
use workloads
Cells = Option (data) { return answer(data.queries, laplace(data.database)) }
Even = Option (data) {
    n = laplace(size(data.database))
    return [n / 8 for i in 1..len(data.queries)]
}
wide = Feature (data) { return len(data.queries) }
near = Utility (data, answers) { return -rmse(answers, exact(data.queries, data.database)) }
cubes = [counts([n for i in 1..8]) for n in [1, 40]] + [counts([8 * n, 0, 0, 0, 0, 0, 0, 0]) for n in [1, 40]]
lessons = [{database: c, queries: identity(c)} for c in cubes]
def choice(d) = MkChoiceMaker among {Cells, Even} informed by {wide} trained on lessons using tree(depth = d) wrt near
one = choice(1)
again = choice(1)
two = choice(2)
def asked(cube) = {database: cube, queries: identity(cube)}
h = histogram(t, v = v)
x = one(asked(h)) with epsilon 1
"""
IN_A_RUN = {
    "a name of data": "use named",
    "a choice that was learned": "y = again(asked(d))",
    "a choice of the library": "y = best_histogram(d)",
    "a model for runs that were kept": "y = two(asked(d))",
    "progress": "y = best_histogram.evaluate(1)",
}


@pytest.mark.parametrize("what", IN_A_RUN)
def test_what_a_run_calls_is_not_seen(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a number that it measured a hidden run gave data a second name, which has a line in the budget, or asked a
    choice, which showed no training later, said what it knows, wrote a model, and told of its progress."""
    named = f"{OPENING.splitlines()[2]}\n".replace("private t", "private named").replace("BUDGET", "epsilon 9")
    (tmp_path / "named.jst").write_text(named)
    seen = []
    for least in (-999, 999):
        monkeypatch.setenv("JOSTLE_CACHE", str(tmp_path / f"cache{least}"))
        program = f"""{CHOICES}
def g(d, c):
    n = sum(laplace(d) with 1/4)
    if n > {least}:
        {IN_A_RUN[what]}
    return {{score: n}}
b = best_run(h, g, [0], 5) with epsilon 3
print(explain(again), explain(best_histogram), explain(two))
"""
        if what != "progress":
            program += "x = again(asked(h)) with epsilon 1\nx = best_histogram(h) with epsilon 1\n"
        told: list[str] = []
        opened = Session(cwd=tmp_path, progress=lambda label, *_, told=told: told.append(label))
        opened.bind("t", {"v": np.arange(80) % 8, "k": np.array(["a", "b"] * 40)})
        opening = OPENING.replace("BUDGET", "epsilon 9").split("private u")[0]
        result = opened.attempt(Source("p.jst", opening + program))
        assert result.ok, result.diagnostics
        files = sorted(path.name for path in (tmp_path / f"cache{least}").rglob("*.json"))
        seen.append((set(told), len(told), files, result.budget, result.output,
                     [(e.kind, e.name) for e in result.events if e.kind != "option"]))  # fmt: skip
    assert seen[0] == seen[1]


@pytest.mark.parametrize(
    ("call", "each"),
    [("best_run(t, g, [0], 5)", 3), ('best_run(t, g, [0], 5, law = "logarithmic")', 2),
     ("best_run(t, g, [0], 5, good = -99)", 2)],
)  # fmt: skip
def test_a_run_has_its_part(call: str, each: int) -> None:
    program = "def g(d, c):\n    e = epsilon\n    n = {{ select count(*) from d }}\n    return {score: n, e: e}\n"
    result = run(f"{program}best = {call} with epsilon 6\nassert best.e == {6 / each}\nassert spent(t) == 6\n")
    assert result.ok, result.diagnostics


FAILING = {
    "more than its part": "{{ select count(*) from d with epsilon 3.5 }}",
    "a delta": "{{ select count(*) from d with epsilon 1 delta 1e-6 }}",
    "other data": "{{ select count(*) from [u][0] with epsilon 1 }}",
    "a watch from before": "above(d, w)",
    "a public watch": "above(3, open)",
    "what is refined": "refine(r, epsilon = 1)",
    "public batches": 'noisy_sum(few, "coordinates", bound = 1, paid = turns)',
    "a point of an algorithm": "MkChoiceMaker among {part} informed by {seen} trained on w2 wrt near",
    "an agent from before": "{{ select count(*) from agent with epsilon 1 }}",
}


BUDGETS = {"a delta": "epsilon 9, delta 1e-5"}


@pytest.mark.parametrize("what", FAILING)
def test_a_run_may_not(what: str) -> None:
    """Whatever a run would do beyond its own amount and data fails it, and leaves no trace."""
    raw = "t" if what not in BUDGETS else "u"  # what is refined is counted in plain epsilon
    program = f"""
w = above_threshold(t, 1, most = 9) with epsilon 1
open = above_threshold(5, 1, most = 9)
r = refinable(size({raw}))
agent = limited(t, 4)
u2 = [u]
few = [vectors(table([{{v: i, w: 0}}]), v, w, radius = 1, scaled = false) for i in 0..1]
turns = prepaid(few, steps = 9)
part = Option (data) {{ return 1 }}
seen = Feature (data) {{ return 1 }}
near = Utility (data, answers) {{ return 1 }}
w2 = whole(part, [{{a: 1}}])
def g(d, c):
    x = {FAILING[what].replace("[u]", "u2")}
    return 1
before = [left(agent), w.left, open.left, r.paid]
best = best_run(t, g, [0], 30) with epsilon 3
assert best == none
assert [left(agent), w.left, open.left, r.paid] == before
assert spent(u) == 0
"""
    unforeseen = patch.object(Session, "_affordable", lambda *_: None)
    with unforeseen:
        result = run(program, BUDGETS.get(what, "epsilon 9"))
    assert result.ok, result.diagnostics
    assert result.budget["t"]["epsilon"]["spent"] == "4"  # the watch, and the runs


REFUSED = {
    "best_run(t, f, [], 5) with epsilon 1": ("ValueError", "1 to 100,000 candidates"),
    "best_run(t, f, [0], 0) with epsilon 1": ("ValueError", "whole number from 1"),
    "best_run(t, f, [0], 2.5) with epsilon 1": ("ValueError", "whole number from 1"),
    'best_run(t, f, [0], 5, law = "poisson") with epsilon 1': ("ValueError", "called `poisson`"),
    'best_run(t, f, [0], 5, good = 1, law = "logarithmic") with epsilon 1': ("ValueError", "geometric in number"),
    "best_run(t, f, [0], 5)": ("NoEpsilon", "nothing pays"),
    "best_run(t, f, [0], 5) with epsilon 0.000000000002": ("BadAmount", "too little"),
    "best_run(t, f, [t], 5) with epsilon 1": ("PrivateValue", "what to run"),
    "best_run(t, lambda d, c: nothing, [0], 5) with epsilon 1": ("NameError", "nothing"),
    'best_run(t, lambda d, c: "a", [0], 5) with epsilon 1': ("TypeError", "`score`, a number"),
    "best_run(t, lambda d, c: {{ select count(*) from u }}, [0], 5) with epsilon 1": ("TypeError", "not its own"),
}


@pytest.mark.parametrize("call", REFUSED)
def test_it_is_refused_before_the_charge(call: str) -> None:
    kind, words = REFUSED[call]
    one, _ = session("")
    found = [*one.check(Source("p.jst", OPENING.replace("BUDGET", "epsilon 9") + f"x = {call}\n"))]
    result = session(f"x = {call}\n")[1]
    refusals = [*found, *result.diagnostics]
    assert any(d.kind == kind and words in d.message for d in refusals), refusals


@pytest.mark.parametrize(
    ("budget", "amount"), [("rho 1", "rho 0.5"), ("epsilon 2, delta 1e-6", "epsilon 1 delta 1e-7")]
)
def test_units_without_a_proof_are_refused(budget: str, amount: str) -> None:
    result = run(f"x = best_run(t, f, [0], 5) with {amount}\n", budget)
    assert result.diagnostics[0].kind == "BadAmount" and "pure epsilon" in (result.diagnostics[0].help or "")
    assert not any(result.budget["t"][unit].get("spent", 0) not in (0, "0") for unit in result.budget["t"])


def test_a_budget_with_a_delta_takes_pure_runs() -> None:
    result = run("x = best_run(t, f, [0], 5) with epsilon 1\nassert spent(t).delta == 0\n", "epsilon 2, delta 1e-6")
    assert result.ok, result.diagnostics


def test_parts_count_as_the_largest_and_several_sources_each() -> None:
    result = run("""
for k, part in partition(t, k):
    best = best_run(part, f, [0, 4], 5) with epsilon 1
assert spent(t) == 1
def both(d, c):
    a = {{ select count(*) from d.one with epsilon 0.5 }}
    b = {{ select count(*) from d.two with epsilon 0.5 }}
    return {score: a + b}
best = best_run({one: t, two: u}, both, [0], 3, epsilon = 3)
assert spent(t) == 4 and spent(u) == 3
def within(d, c): return best_run(d, f, [0, 4], 3)
best = best_run(t, within, [0], 3) with epsilon 3
assert spent(t) == 7 and best.score > 0
""")
    assert result.ok, result.diagnostics


def test_public_data_are_exact() -> None:
    one = Session()
    one.bind("t", {"v": np.arange(80) % 8})
    program = """use selection
t = bound("t") described by {v: 0..7}
def f(d, c): return {{ select count(*) from d where v == c or c == 9 }}
best = best_run(t, f, [0, 9], 5)
assert best.score == 80 and best.candidate == 9
assert best_run(t, f, [0], 5, good = 11) == none
"""
    assert one.attempt(Source("p.jst", program)).ok


def test_a_fault_in_a_run_closes_the_source() -> None:
    """What breaks after the charge, and is no refusal, may depend on a row: one fixed message."""
    from jostle.privacy.kernel.exposures import Counter as Faults

    before = Faults.faults
    with patch("jostle.run.selection.score_and_record", side_effect=ZeroDivisionError):
        result = run("x = best_run(t, f, [0], 5) with epsilon 1\n")
    Faults.faults, faults = before, Faults.faults
    assert faults == before + 1 and "failed after the charge" in result.diagnostics[0].message


def test_nothing_is_opened_in_a_run(tmp_path: Any) -> None:
    (tmp_path / "p.csv").write_text("a\n1\n")
    one = Session(cwd=tmp_path)
    one.bind("t", {"v": np.arange(80) % 8, "k": np.array(["a", "b"] * 40)})
    one.bind("u", {"v": np.arange(8)})
    program = """
def g(d, c):
    p = table("p.csv")
    return {{ select count(*) from p }}
assert best_run(t, g, [0], 5, epsilon = 1) == none
"""
    later = 'private p = table("p.csv") described by {a: 0..9} protecting rows budget epsilon 1\n'
    for text in (OPENING.replace("BUDGET", "epsilon 9") + program, later):
        result = one.attempt(Source("p.jst", text))
        assert result.ok, result.diagnostics
