"""What people read: `explain` and the evaluation."""

from __future__ import annotations

import json

import numpy as np
import pytest
from choice_fakes import CROSSING, SIZES, FakeBench

from jostle.choice.evaluation import evaluate
from jostle.choice.explain import explain
from jostle.choice.learning import learn
from jostle.choice.models import regret_tree, tree
from jostle.choice.training import train
from jostle.diagnostics import Refusal

LEARNED = """\
policy: features at 20 %, by tree(depth = 3)
why: its error on data sets left out is 1 times the least; with the single best option it is 2.24 times the least, \
and that is more than chance
reads size (paid); features take 20 % of epsilon

trained on 14 data sets at 1 scale, epsilon 1: 14 instances, 6 runs of each option in each
best option, by instances: Small 7, Large 7

cross-validation by leaving data sets out: mean log regret ± standard error
  single best         0.8047 ± 0.2232
* features at 20 %    0.0000 ± 0.0000

predicted utility (its logarithm is modelled) ± standard deviation, and draws of training instances
Small:
  size <= 425: -1 ± 0  (21)
  size > 425: -5 ± 0  (21)
Large:
  size <= 425: -5 ± 0  (21)
  size > 425: -1 ± 0  (21)
"""

SINGLE = """\
policy: single best (A)
why: its regret is 0, and no way of looking has less
reads no feature; all of epsilon goes to the option

trained on 4 data sets at 2 scales, without noise: 8 instances, 1 run of each option in each
best option, by instances: A 8, B 0

cross-validation by leaving data sets out: mean regret ± standard error
* single best       0.0000 ± 0.0000
  exact features    0.0000 ± 0.0000

predicted utility ± standard deviation, and draws of training instances
  A 0.5 ± 0, B 0.25 ± 0  (8)
"""

REPORT = """\
mean regret (error / least error; 1 is the virtual best), leaving out one of 14 data sets
scale  choice      ±   95 %  single best   95 %  closed gap     ±  Small  Large
  all   1.143  0.143  1.000        2.571  5.000        91 %   8 %  2.571  3.429
  0.1   1.286  0.286  2.400        2.143  5.000        75 %  22 %  2.143  3.857
    1   1.000  0.000  1.000        3.000  5.000       100 %   0 %  3.000  3.000
policies: exact features ×14
"""


def test_a_learned_policy_explains_itself() -> None:
    bench = FakeBench(SIZES, CROSSING, sensitivity=0.0, jitter=0.0)
    assert explain(learn(bench, model=tree(), share=0.2, epsilon=1.0, store=None)) == LEARNED


def test_a_single_best_explains_itself() -> None:
    halves = {"A": lambda n, e: 1.5, "B": lambda n, e: 1.75}
    bench = FakeBench(SIZES[:4], halves, positive=True, multiples=(0.1, 1.0))
    assert explain(learn(bench, model=tree(), share=None, epsilon=None, store=None)) == SINGLE


def test_a_regret_tree_shows_all_options_in_one() -> None:
    bench = FakeBench(SIZES, CROSSING, sensitivity=0.0, jitter=0.0)
    text = explain(learn(bench, model=regret_tree(), share=0.2, epsilon=1.0, store=None))
    assert "  size <= 425: Small -1 ± 0, Large -5 ± 0  (21)\n  size > 425: Small -5 ± 0, Large -1 ± 0  (21)\n" in text


def test_the_report_compares_with_the_single_and_the_virtual_best() -> None:
    bench = FakeBench(SIZES, CROSSING, jitter=0.0, multiples=(0.1, 1.0))
    report = evaluate(train(bench, None), tree(depth=2))
    assert report.text() == REPORT
    assert json.loads(json.dumps(report.as_json()))["lines"][0]["gap"] == pytest.approx((18 / 7 - 8 / 7) / (11 / 7))


def test_the_report_charges_for_features_and_has_a_tail() -> None:
    costly = {name: (lambda n, e, f=f: f(n, e) / e) for name, f in CROSSING.items()}
    bench = FakeBench(SIZES, costly, sensitivity=0.0, jitter=0.0)
    report = evaluate(train(bench, 1.0, 0.2), tree())
    [everywhere, given] = report.lines
    assert everywhere.choice == given.choice == pytest.approx(1 / 0.8)
    assert everywhere.tail == pytest.approx(1 / 0.8)
    assert everywhere.single == pytest.approx(5.0)
    assert everywhere.gap == pytest.approx((5 - 1.25) / 4)
    assert everywhere.options == pytest.approx({"Small": 3.0, "Large": 3.0})


def test_pure_noise_is_never_better_than_the_single_best_by_much() -> None:
    both = {"A": lambda n, e: 1.0 / e, "B": lambda n, e: 1.1 / e}
    report = evaluate(train(FakeBench(SIZES, both, sensitivity=1e9), 0.5), tree())
    assert report.lines[0].choice == pytest.approx(report.lines[0].single, rel=0.02)
    assert np.isfinite(report.lines[0].tail)


def test_utilities_are_reported_as_differences() -> None:
    bench = FakeBench(SIZES, CROSSING, positive=True, sensitivity=0.0, jitter=0.0)
    report = evaluate(train(bench, 1.0, 0.2), tree())
    assert not report.relative
    assert report.lines[0].choice == pytest.approx(0.0) and report.lines[0].single == pytest.approx(4.0)


def test_lines_may_gather_instances_by_their_size() -> None:
    bench = FakeBench(SIZES, CROSSING, sensitivity=0.0, jitter=0.0, multiples=(0.1, 1.0))
    report = evaluate(train(bench, 1.0, 0.2), tree(), group=lambda d, scale: float(SIZES[d] * scale > 300))
    assert [(line.scale, line.rows) for line in report.lines] == [(None, 28), (0.0, 17), (1.0, 11)]
    assert report.lines[1].options == {"Small": 1.0, "Large": pytest.approx(5.0)}
    assert report.lines[2].options == {"Small": pytest.approx(5.0), "Large": 1.0}


def test_some_data_sets_may_always_be_trained_on() -> None:
    table = train(FakeBench(SIZES, CROSSING, sensitivity=0.0, jitter=0.0), 1.0, 0.2)
    alone = evaluate(table, tree(), only=["data 2", "data 50000"], workers=2)
    assert (alone.databases, alone.trained, alone.lines[0].rows) == (2, 14, 2)
    assert "leaving out one of 2 data sets (14 in all)" in alone.text()
    with pytest.raises(Refusal) as refusal:
        evaluate(table, tree(), only=["data 3"])
    assert refusal.value.first.kind == "NameError"


def test_models_are_compared_on_the_same_runs() -> None:
    one, other = (learn(FakeBench(SIZES, CROSSING), model=m, share=None, epsilon=0.5, store=None)
                  for m in (tree(), regret_tree()))  # fmt: skip
    assert one.standings[0] == other.standings[0]
    assert one.table.keeping(0).runs[0].utilities == other.table.runs[0].utilities


def test_one_data_set_cannot_be_evaluated() -> None:
    with pytest.raises(Refusal) as refusal:
        evaluate(train(FakeBench((2.0,), CROSSING), 1.0), tree())
    assert refusal.value.first.kind == "ValueError"
