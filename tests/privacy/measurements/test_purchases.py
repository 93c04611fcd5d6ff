"""Aggregates of one select that are made of the same sums buy them once: what that costs, what it shows, and that they
agree."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from recording import Bench, worst_losses
from test_privacy_aggregates import SCHEMA, UNITS, neighbours

from jostle.accounting.amounts import QUANTA, Amount
from jostle.accounting.definitions import Measure
from jostle.error_laws import sum_of_two
from jostle.formulas import Noised, OfTwo, calculated
from jostle.noise_laws import Laplace
from jostle.plan.plan import Term
from jostle.privacy.kernel.handles import Table
from jostle.privacy.measurements import selects as purchases
from jostle.privacy.measurements.aggregates import aggregate as kinds
from jostle.privacy.measurements.aggregates.aggregate import Pair, grid_of, reach_of, sensitivity_of
from jostle.privacy.measurements.selects import Layout, Purchase, Purchases, Request, prepare
from jostle.privacy.mechanisms.additive import Additive, share
from jostle.records import replace
from jostle.run import answers, selects
from jostle.run.propagation import uncertainties
from jostle.source import Source
from jostle.tools.session import Result, Session

COMBINATIONS = (
    "count(r), sum(r), avg(r), var(r), stddev(r)",
    "count(*), count(v) as n, sum(v), avg(v)",
    "sum(v), stddev(v)",
    "var(r) as w, covariance(r, v), covariance(r, v) as again, covariance(r, r) as own",
    "avg(r), median(r), sum(r), mode(c)",
)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("spend", ["epsilon 1", "rho 0.5"])
def test_no_neighbour_loses_more_than_is_charged(bench: Bench, unit: str, spend: str) -> None:
    budget = spend.replace("1", "1000").replace("0.5", "1000")
    queries = [
        f"{{{{ select {some} from t{rest} with {spend} }}}}"
        for some in COMBINATIONS[: 2 if spend != "epsilon 1" else None] for rest in ("", " where r > 0 groupby c")
    ]  # fmt: skip
    text = "\n".join([f"private t = {SCHEMA} protecting {unit} budget {budget}", *(f"x = {q}" for q in queries)])
    records = {}
    most = dict.fromkeys(range(len(queries)), 0.0)
    for pair in itertools.islice(neighbours(unit), 0, None, 5 if "who" in unit else 3):
        for rows in pair:
            if tuple(rows) not in records:
                bench.table(rows, ("who", "v", "r", "c"))
                records[tuple(rows)] = bench.run(text)
        losses = worst_losses(*(records[tuple(rows)] for rows in pair))
        for place, (name, lost, charged) in enumerate(losses):
            assert lost <= charged * (1 + 1e-9), (name, pair)
            most[place] = max(most[place], lost / charged)
    assert min(most.values()) > 0.1
    if unit == "rows":
        assert most[0] > 0.95  # what is charged is used


def test_a_term_bought_twice_over_is_seen(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """What this page tests by would tell a purchase with twice the amount that fell to it."""
    merged = purchases.merged
    monkeypatch.setattr(purchases, "merged", lambda hows, *rest: merged([*hows, *hows], *rest))
    with pytest.raises(AssertionError, match="count"):
        test_no_neighbour_loses_more_than_is_charged(bench, "rows", "epsilon 1")


def test_a_pair_with_the_sensitivity_of_its_sum_is_seen(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """So would it tell noise for what a row adds to one of the two numbers, in place of both."""
    of_both = kinds.sensitivity_of
    monkeypatch.setattr(kinds, "sensitivity_of", lambda t, table: of_both(t.total if isinstance(t, Pair) else t, table))
    with pytest.raises(AssertionError, match="avg"):
        test_no_neighbour_loses_more_than_is_charged(bench, "rows", "epsilon 1")


MEASURES = {
    "pure": (Measure("pure", Amount("epsilon", 100 * QUANTA)), Amount("epsilon", QUANTA)),
    "rho": (Measure("zcdp", Amount("rho", 100 * QUANTA)), Amount("rho", QUANTA // 10)),
    "approximate": (Measure("approximate", Amount("epsilon", 9 * QUANTA, QUANTA // 10**6)),
                    Amount("epsilon", QUANTA, QUANTA // 10**7)),
    "approximate, large": (Measure("approximate", Amount("epsilon", 90 * QUANTA, QUANTA // 10**6)),
                           Amount("epsilon", 30 * QUANTA, QUANTA // 10**7)),
    "basic": (Measure("basic", Amount("epsilon", 9 * QUANTA, QUANTA // 10**6)),
              Amount("epsilon", QUANTA, QUANTA // 10**7)),
}  # fmt: skip


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("via", [None, "laplace"])
@pytest.mark.parametrize("some", [COMBINATIONS[0], COMBINATIONS[1], COMBINATIONS[3]])
def test_a_select_costs_no_more_and_no_sum_has_more_noise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, measure: str, via: str | None, some: str
) -> None:
    table, aggregates = _prepared(tmp_path, monkeypatch, f"select {some} from t", *MEASURES[measure])
    part = Amount(MEASURES[measure][1].unit, MEASURES[measure][1].value // len(aggregates),
                  MEASURES[measure][1].delta // len(aggregates))  # fmt: skip
    alone = [Purchases.of([aggregate], table, part, [via], True) for aggregate in aggregates]
    together = Purchases.of(aggregates, table, part, [via] * len(aggregates), True)
    assert len(together.bought) < sum(len(one.bought) for one in alone)
    for place in ("rho", "delta0") if MEASURES[measure][0].kind in ("zcdp", "approximate") else ():
        bought = sum(getattr(price, place) for price in together.prices)
        assert bought <= sum(getattr(price, place) for one in alone for price in one.prices)
    of_parts = sum(purchase.how.amount.value for one in alone for purchase in one.bought)
    assert sum(purchase.how.amount.value for purchase in together.bought) <= of_parts <= MEASURES[measure][1].value
    if MEASURES[measure][0].kind != "approximate":
        assert sum(purchase.how.amount.value for purchase in together.bought) >= of_parts - 9  # roundings of the shares
    before = _deviations(table, [purchase for one in alone for purchase in one.bought])
    after = _deviations(table, together.bought)
    for term, deviation in after.items():
        assert term not in before or deviation <= before[term] * (1 + 1e-9)
    for aggregate, one, places in zip(together.layout.aggregates, alone, together.layout.places, strict=True):
        pairs = [purchase for purchase in (together.bought[i] for i, _ in places) if isinstance(purchase.term, Pair)]
        if aggregate.name in ("sum", "count") and pairs:  # of the pair of a mean
            (direct,) = _deviations(table, one.bought).values()
            middle = abs(aggregate.estimator(table).answers(0.0, 1.0)) if aggregate.name == "sum" else 0.0  # type: ignore[attr-defined]
            total, count = _of_pair(table, pairs[0])
            assert (math.hypot(total, middle * count) if middle else count) <= direct * (1 + 1e-9)


def _of_pair(table: Table, purchase: Purchase) -> tuple[float, float]:
    """The deviations of the sum and of the count, which has not been rounded."""
    assert isinstance(purchase.term, Pair)
    each = _deviations(table, [purchase])[purchase.term] / math.sqrt(2)
    return each, each * 2.0 ** (grid_of(purchase.term) - grid_of(purchase.term.count)) / purchase.term.step(table)


@pytest.mark.parametrize("unit", ["pure", "rho"])
def test_a_pair_has_half_the_variance_of_two_halves_by_laplace_noise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unit: str
) -> None:
    table, (mean,) = _prepared(tmp_path, monkeypatch, "select avg(r) from t", *MEASURES[unit])
    amount = MEASURES[unit][1]
    (purchase,) = Purchases.of([mean], table, amount, [None], True).bought
    assert isinstance(purchase.term, Pair)
    total, count = _of_pair(table, purchase)
    for term, deviation in ((purchase.term.total, total), (purchase.term.count, count)):
        half = Additive.fitted(share(amount, 2), None, table.measures).law(*reach_of(term, table, undivided=True))
        alone = half.smooth.deviation * 2.0 ** -grid_of(term)
        assert deviation == pytest.approx(alone * (math.sqrt(0.5) if unit == "pure" else 1.0), rel=1e-6)


def test_a_pair_moves_by_its_sensitivity_at_most_also_at_the_limits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, (mean,) = _prepared(tmp_path, monkeypatch, "select avg(r) from t", *MEASURES["pure"])
    (pair,) = mean.measured(table)  # type: ignore[attr-defined]
    most, bound = sensitivity_of(pair, table), sensitivity_of(pair.total, table)
    moves = []
    for total in (0, 5, -(2**40), 2**61 - 1, 2**62, -(2**62), 2**63 - 1):
        for count in (0, 1, 2**33, 2**40, 2**62):
            before = pair.mixed(np.array([total]), np.array([count]), table)
            for row in {0, 1, -1, bound // 3, bound, -bound}:
                after = pair.mixed(np.array([max(-(2**63), min(2**63 - 1, total + row))]), np.array([count + 1]), table)
                moves.append(sum(abs(int(b[0]) - int(a[0])) for a, b in zip(before, after, strict=True)))
                assert moves[-1] <= most
    assert max(moves) == most
    counts = np.array([2**33 - 1])
    a, b = pair.mixed(np.array([bound]), counts, table)
    assert (int(a[0]) + int(b[0])) // (2 * pair.step(table)) == 2**33 - 1  # so many rows fit


def test_a_person_in_several_groups_moves_their_counts_by_the_root_of_how_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rounded up, but not to a whole row."""
    table, (count,) = _prepared(tmp_path, monkeypatch, "select count(*) from t", *MEASURES["rho"])
    (term,) = count.measured(table)  # type: ignore[attr-defined]
    for rows, each, square in ((12, 1, 12), (12, 5, 54), (9, 4, 33), (16, 1, 16), (12, 12, 144), (2**53, 1, 2**53)):
        persons = replace(table, exposures=tuple(replace(e, rows=rows, each=each) for e in table.exposures))
        first, second = reach_of(term, persons, undivided=False)
        assert first == rows and square <= Fraction(second) ** 2 <= square * (1 + Fraction(1, 2**28))


def _deviations(table: Table, bought: tuple[Purchase, ...] | list[Purchase]) -> dict[Term | Pair, float]:
    """The least deviation that each term is bought with, in the units of what is asked."""
    found: dict[Term | Pair, float] = {}
    for purchase in bought:
        law = purchase.how.law(*reach_of(purchase.term, table, undivided=True))
        deviation = law.smooth.deviation * 2.0 ** -grid_of(purchase.term)
        found[purchase.term] = min(found.get(purchase.term, deviation), deviation)
    return found


def _prepared(
    folder: Path, monkeypatch: pytest.MonkeyPatch, query: str, measure: Measure, amount: Amount
) -> tuple[Table, tuple[purchases.Aggregate, ...]]:
    """The table and the aggregates of a select."""
    kept: list[Table] = []
    monkeypatch.setattr(selects, "prepare", lambda table, *rest: (kept.append(table), prepare(table, *rest))[1])
    requests: list[tuple[purchases.Aggregate, ...]] = []
    of = Purchases.of

    def recorded(found: tuple[purchases.Aggregate, ...], *rest: object) -> Purchases:
        requests.append(tuple(found))
        return of(found, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(Purchases, "of", recorded)
    (folder / "t.csv").write_text("who,v,r,c\nAnn,2,0.1,x\n")
    budget = f"budget {measure.limit}{' counted by basic' if measure.kind == 'basic' else ''}"
    spend = str(amount).replace(",", "")
    result = _run(folder, f"private t = {SCHEMA} protecting rows {budget}\nx = {{{{ {query} with {spend} }}}}\n")
    assert result.ok, result.diagnostics
    return kept[-1], requests[-1]


def _run(folder: Path, program: str) -> Result:
    return Session(cwd=folder).attempt(Source(str(folder / "p.jst"), program))


def test_answers_that_an_earlier_version_stored_are_read_as_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its sums and counts were measured by themselves; they are no two sides of a pair."""
    text = "select avg(r) as m, var(r) as v, covariance(r, v) as k, sum(r) as s from t"
    table, aggregates = _prepared(tmp_path, monkeypatch, text, *MEASURES["pure"])
    layout = Layout.of(aggregates, table)
    terms = {
        "avg": (50.0, 100.0),
        "var": (50.0, 100.0, 60.0),
        "covariance": (50.0, -20.0, 100.0, 8.0),
        "sum": (50.0, 100.0),
    }
    sources = [[value, "laplace", 3.0, 1, 0.0] for some in terms.values() for value in some]
    places = iter(range(len(sources)))
    values = [[{"terms": [next(places) for _ in some]}] for some in terms.values()]
    said = {"keys": [], "values": values, "sources": sources}
    answer = answers._from_json(said, Request(table, (), (), (), aggregates))
    for aggregate, column in zip(layout.aggregates, answer.values, strict=True):
        (value,) = column
        estimator = aggregate.estimator(table)  # type: ignore[attr-defined]
        expected = np.clip(estimator.answers(*terms[aggregate.name]), estimator.low, estimator.high)
        assert value == pytest.approx(float(expected))
    assert "pairs" in answers._document(answer)


@pytest.mark.parametrize(("name", "of_others", "extremes"), [
    ("avg", (100.0,), (-4000.0, 4000.0)), ("var", (5.0, 100.0), (-4000.0, 40000.0)),
    ("stddev", (5.0, 100.0), (-4000.0, 40000.0)), ("covariance", (5.0, 2.0, 100.0), (-40000.0, 40000.0)),
])  # fmt: skip
def test_an_answer_that_noise_drove_beyond_the_bounds_is_not_said_to_be_exact(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, of_others: tuple[float, ...],
    extremes: tuple[float, float],
) -> None:  # fmt: skip
    """Its interval is as wide as one that lies half within the bounds: no interval of [0, 0], which never is right."""
    of = "r, v" if name == "covariance" else "r"
    table, (aggregate,) = _prepared(tmp_path, monkeypatch, f"select {name}({of}) as m from t", *MEASURES["pure"])
    estimator = aggregate.estimator(table)  # type: ignore[attr-defined]
    for extreme, end in zip(extremes, (estimator.low, estimator.high), strict=True):
        numbers = (extreme, *of_others) if name == "avg" else (*of_others, extreme)
        columns = [[Noised(number, Laplace(3.0))] for number in numbers]
        (value,) = answers.of_terms(aggregate, table, columns)
        (known,) = uncertainties([value])
        assert value == end and (known.low if end == estimator.low else known.high) == end
        assert known.high - known.low > 0 and known.error > 0


def test_what_is_calculated_of_a_rounded_count_knows_that_it_was_rounded() -> None:
    """Its interval is around what was measured, and its error holds both ends."""
    law = Laplace(0.5)
    a, b = Noised(7.3, law), Noised(5.1, law)
    count = Noised.of(6.0, OfTwo(6.0, sum_of_two(law, 0.5, rounded=True), ((a.origin, 0.5), (b.origin, 0.5))))
    (own, many) = uncertainties([count, calculated(50 * count, "*", (50.0, count))])  # type: ignore[list-item]
    assert (own.low + own.high) / 2 == 6 and own.error == int(own.error)
    assert (many.low + many.high) / 2 == pytest.approx(50 * 6.2)
    assert many.error == pytest.approx((many.high - many.low) / 2 + 50 * 0.2)


AGREE = """g = {{ select count(x) as n, sum(x) as s, avg(x) as m, var(x) as v, stddev(x) as d from t%s with epsilon 1 }}
root = max(abs(g.d * g.d - g.v))
total = max(abs(g.m * g.n - g.s))
errors = [max(error(g.d * g.d - g.v)), max(error(g.m * g.n - g.s))]
release root
release total
release errors
release g
"""


def _agrees(result: Result) -> None:
    assert result.ok, result.diagnostics
    assert result.values["root"] < 1e-9 and result.values["total"] < 1e-6
    assert max(result.values["errors"]) < 1e-6  # what they have in common cancels
    (margin, *_) = result.margins()["g"]
    assert all(margin[name]["error"] > 0 for name in "nsmvd")


def test_answers_of_one_column_agree(attempt: Callable[..., Result]) -> None:
    rows = "k,x\n" + "".join(f"{'ab'[i % 2]},{i % 11 / 2 + 20}\n" for i in range(4000))
    source = 'private t = table("u.csv") described by {k: {"a", "b"}, x: 18.0..27.0} protecting rows budget %s\n'
    for budget in ("epsilon 9", "epsilon 9, delta 1e-6"):
        amount = "epsilon 1 delta 1e-7" if "delta" in budget else "epsilon 1"
        _agrees(attempt((source % budget + AGREE % " groupby k").replace("epsilon 1 ", f"{amount} "), u=rows))
    joint = AGREE.replace(" with epsilon 1 }}", " }}").replace("g = ", "    g = ") % " groupby k"
    _agrees(attempt(source % "epsilon 9" + "jointly with epsilon 1:\n" + joint, u=rows))


def test_one_answer_given_again_agrees(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from jostle.tools.entry import main

    (tmp_path / "t.csv").write_text("k,x\n" + "".join(f"{'ab'[i % 2]},{i % 9 + 18}\n" for i in range(4000)))
    words = ["register", "t", str(tmp_path / "t.csv"), "--schema", '{k: {"a", "b"}, x: 18..27}', "--protecting", "rows"]
    assert main(["data", *words, "--budget", "epsilon 3", "--ledger", str(tmp_path / "ledger.db")]) == 0
    program = 'private t = dataset("t")\n' + AGREE % " groupby k"
    told = []
    for _ in range(2):
        session = Session(ledger=tmp_path / "ledger.db", cwd=tmp_path)
        result = session.attempt(Source(str(tmp_path / "p.jst"), program))
        _agrees(result)
        told.append((result.released_json(), result.margins(), result.budget["t"]["epsilon"]["spent"]))
    assert told[0] == told[1] and told[0][2] == "1"
    capsys.readouterr()
