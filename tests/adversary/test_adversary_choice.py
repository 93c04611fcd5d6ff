"""The choice as a channel: what picks an algorithm is paid for, and what it was trained on is public.

A Feature looks at private data, a model decides by what it saw, and which Option ran can be seen: all of it is
within the amount of the call. A model file that somebody else wrote can change what runs, and nothing that is spent.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from arena import Arena, table

from jostle.source import Source
from jostle.tools.session import Result, Session

HEAD = """
A = Option (data) { return laplace(size(data.database)) }
B = Option (data) { return {{ select sum(values) from data.database }} - 1 }
close = Utility (data, answers) { return -abs(answers - {{ select sum(values) from data.database }}) }
many = Feature (data) { return laplace(size(data.database)) }
learnt = { {database: counts([k, 2 * k, 5])} for k in [1, 4, 20, 100, 500] }
private c = counts([900, 100, 7]) protecting rows budget epsilon 2
"""
CHOICE = "choose = MkChoiceMaker among {A, B} informed by {many} trained on learnt spending 0.3 wrt close\n"
CALL = "x = choose({database: c}) with epsilon 1\nprint(x)\n"


def run(folder: Path, program: str, session: Session | None = None) -> Result:
    return (session or Session(cwd=folder)).attempt(Source("p.jst", program))


def spent(result: Result) -> float:
    return float(result.budget["c"]["epsilon"]["spent"])


@pytest.mark.attack("the choice as a channel")
def test_the_call_pays_for_all(tmp_path: Path) -> None:
    result = run(tmp_path, HEAD + CHOICE + CALL)
    assert result.ok and 0 < spent(result) <= 1
    no = run(tmp_path, HEAD + CHOICE + CALL.replace(" with epsilon 1", ""))
    assert [d.kind for d in no.diagnostics] == ["NoEpsilon"]
    assert [d.kind for d in run(tmp_path, HEAD + CHOICE + CALL * 3).diagnostics] == ["BudgetExceeded"]


GREEDY = {
    "a Feature that asks for more than its share": (
        "many = Feature (data) { return laplace(size(data.database), epsilon = 0.9) }"
    ),
    "a Feature that asks again and again": (
        "many = Feature (data) { return max over i in 1..9 of laplace(size(data.database), epsilon = 0.2) }"
    ),
    "a Feature that opens an allotment of its own": (
        "many = Feature (data) { with epsilon 0.9 { return laplace(size(data.database)) } }"
    ),
    "an Option that asks for more than is left": (
        "A = Option (data) { return laplace(size(data.database), epsilon = 1.5) }\nB = A"
    ),
}


@pytest.mark.attack("the choice as a channel")
@pytest.mark.parametrize("name", GREEDY)
def test_greedy_parts(tmp_path: Path, name: str) -> None:
    """Refused in training or at the call; and never more charged than the call was given."""
    part = GREEDY[name]
    result = run(tmp_path, HEAD.replace("learnt =", part + "\nlearnt =") + CHOICE + CALL)
    assert [d.kind for d in result.diagnostics] == ["BudgetExceeded"] and result.output == []
    assert spent(result) <= 1


UNPAID = {
    "a Feature that gives a score": ("many = Feature (data) { return size(data.database) }", "TypeError"),
    "a Feature that gives the data": ("many = Feature (data) { return data.database }", "TypeError"),
    "a Feature that branches on a score": (
        "many = Feature (data) { return 1 if size(data.database) > 5 else 0 }", "PrivateValue",
    ),
    "a Feature that looks at other private data": (
        'private e = counts([5, 5]) protecting rows budget epsilon 9\n'
        "many = Feature (data) { return laplace(size(e), epsilon = 0.1) }", "PrivateValue",
    ),
    "a Feature by a closure over the private data": (
        "many = Feature (data) { return laplace(size(c), epsilon = 0.1) }", "PrivateValue",
    ),
    "an Option by a closure over the private data": (
        "A = Option (data) { return laplace(size(c), epsilon = 0.1) }", "PrivateValue",
    ),
    "a Utility by a closure over the private data": (
        "close = Utility (data, answers) { return laplace(size(c), epsilon = 0.1) }", "PrivateValue",
    ),
    "a Utility that compares with the private total": (
        "close = Utility (data, answers) { return -abs(answers - size(c)) }", "PrivateValue",
    ),
    "training data that are private": ("learnt = { {database: c} }", "PrivateValue"),
    "training data that are private, deep inside": ("learnt = { {database: [[[[[[[[[[c]]]]]]]]]]} }", None),
    "an Option that hands out the data": ("A = Option (data) { return data.database }\nB = A", None),
    "an Option that hands out the data in a record": ("A = Option (data) { return {x: [data.database]} }\nB = A", None),
    "a `predict` that looks at the data": (
        "A = Option (data) { return laplace(size(data.database)) } predict (F) { return "
"laplace(size(c), epsilon = 0.1) }",
        "PrivateValue",
    ),
    "a model that looks at the data, and pays for it": (None, None),
}  # fmt: skip


@pytest.mark.attack("the choice as a channel")
@pytest.mark.parametrize("name", UNPAID)
def test_unpaid_looks(tmp_path: Path, name: str) -> None:
    part, kind = UNPAID[name]
    choice = CHOICE
    if part is None:
        choice = CHOICE.replace(
            " spending", " using (lambda pairs: (lambda F: laplace(size(c), epsilon = 0.1))) spending"
        )
        part = "unused = 1"
    result = run(tmp_path, HEAD + part + "\n" + choice + CALL)
    assert not result.ok and result.output == []
    if kind is not None:
        assert result.diagnostics[0].kind == kind, result.diagnostics
    assert not result.budget or spent(result) <= 1


@pytest.mark.attack("the choice as a channel")
def test_training_spends_and_shows_nothing(tmp_path: Path) -> None:
    loud = HEAD.replace(
        "learnt =",
        'A = Option (data) { print("seen")\n release r = 1\n return laplace(size(data.database)) }\nB = A\nlearnt =',
    )
    result = run(tmp_path, loud + CHOICE + CALL)
    assert result.ok and result.output[:-1] == ["seen"] and spent(result) <= 1


@pytest.mark.attack("the choice as a channel")
def test_a_choice_within_a_choice_is_shown_as_trained_whoever_trained_it_before(tmp_path: Path) -> None:
    """It was not where the outer one had trained it in the same process, and was where both lay in the cache."""
    nested = "Inner = Option (data) { return choose({database: data.database}) }\n"
    nested += "Far = Option (data) { return -100000 }\n"
    nested += "outer = MkChoiceMaker among {Inner, Far} informed by {} trained on learnt wrt close\n"
    program = HEAD + CHOICE + nested + CALL.replace("choose", "outer").replace("epsilon 1", "epsilon 0.9")
    runs = [run(tmp_path, program) for _ in range(2)]
    first, again = [[(e.kind, e.name) for e in result.events if e.kind != "run"] for result in runs]
    assert runs[0].ok and [event for event in first if event[0] == "train"] == [("train", "outer"), ("train", "choose")]
    assert [event for event in again if event[0] == "train"] == [("train", "outer"), ("train", "choose")]


def model_file(folder: Path) -> Path:
    (found,) = (folder / "cache" / "models").glob("*.json")
    return found


def planted(document: dict[str, Any]) -> str:
    """A model with a digest that fits: anybody can compute one."""
    text = json.dumps([document["format"], document["key"], document["policy"]], sort_keys=True, separators=(",", ":"))
    return json.dumps({**document, "digest": hashlib.sha256(text.encode()).hexdigest()})


EDITS: dict[str, Callable[[dict[str, Any]], object]] = {
    "all of it for the features": lambda p: p.update(share=1.0, needs=["many"], name="tree"),
    "more than all for the features": lambda p: p.update(share=7.5, needs=["many"], name="tree"),
    "a negative share": lambda p: p.update(share=-1.0, needs=["many"], name="tree"),
    "a feature asked for many times": lambda p: p.update(needs=["many"] * 50, share=0.9, name="tree"),
    "no features, and a share": lambda p: p.update(needs=[], share=0.9),
    "another name for the policy": lambda p: p.update(name="x" * 1000, why="y" * 1000),
}


@pytest.mark.attack("the choice as a channel")
@pytest.mark.parametrize("name", EDITS)
def test_a_planted_model_spends_no_more(tmp_path: Path, name: str) -> None:
    """It may change which Option runs, and what the features get of the call's amount; never the amount."""
    assert run(tmp_path, HEAD + CHOICE + CALL).ok
    path = model_file(tmp_path)
    document = json.loads(path.read_text())
    EDITS[name](document["policy"])
    path.write_text(planted(document))
    result = run(tmp_path, HEAD + CHOICE + CALL)
    assert spent(result) <= 1
    assert result.ok or result.diagnostics[0].kind in ("BudgetExceeded", "BadAmount", "DataError")


def _predictor(policy: dict[str, Any]) -> dict[str, Any]:
    return policy["predictor"]["ensembles"][0][0]  # type: ignore[no-any-return]


def _trees(policy: dict[str, Any]) -> list[list[Any]]:
    return policy["predictor"]["ensembles"]  # type: ignore[no-any-return]


UNSOUND: dict[str, Callable[[dict[str, Any]], object]] = {
    "a tree that goes round": lambda p: _predictor(p).update(left=[0, -1, -1]),
    "a tree that goes nowhere": lambda p: _predictor(p).update(right=[9, -1, -1]),
    "a tree that asks what no row has": lambda p: _predictor(p).update(feature=[7, -1, -1]),
    "a tree of texts": lambda p: _predictor(p).update(threshold=["5", 0.0, 0.0]),
    "a tree without a node": lambda p: _predictor(p).update({key: [] for key in _predictor(p)}),
    "a leaf that says nothing of an option": lambda p: _predictor(p).update(value=[[0.0]] * 3),
    "a tree that is deeper than any": lambda p: _predictor(p).update(
        feature=[0] * 99 + [-1] * 100, left=[*range(1, 100), *[-1] * 100], right=[*range(100, 199), *[-1] * 100],
        **{name: [_predictor(p)[name][0]] * 199 for name in ("threshold", "value", "n", "spread")},
    ),
    "no tree": lambda p: _trees(p).clear(),
    "no predictor": lambda p: p.update(predictor=None),
    "columns that are no features": lambda p: p.update(columns=["salary"]),
    "options of another choice": lambda p: p["table"].update(options=["A", "C"]),
    "a run of no data set": lambda p: p["table"]["runs"][0].__setitem__(0, 99),
    "a run without utilities": lambda p: p["table"]["runs"][0].__setitem__(3, []),
    "a run whose features are texts": lambda p: p["table"]["runs"][0].__setitem__(4, [[["5"]]]),
    "standings without a name": lambda p: p["standings"][0].pop("policy"),
}  # fmt: skip
WITH_MANY = HEAD.replace(
    "return laplace(size(data.database)) }\nB", "return laplace(size(data.database), epsilon = 0.02) }\nB"
).replace("return {{ select sum(values) from data.database }} - 1", "return 12").replace(
    "[1, 4, 20, 100, 500]", "[1, 2, 3, 4, 5, 6, 200, 300, 400, 500, 600, 700, 800]"
) + CHOICE.replace("learnt spending", "learnt using regret_tree(min_leaf = 1) spending")


@pytest.fixture(scope="module")
def learnt(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A stored model of which a tree of one test decides."""
    folder = tmp_path_factory.mktemp("learnt")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JOSTLE_CACHE", str(folder / "cache"))
        assert run(folder, WITH_MANY + CALL).ok
    document: dict[str, Any] = json.loads(model_file(folder).read_text())
    assert _predictor(document["policy"])["feature"] == [0, -1, -1]
    return document


@pytest.mark.attack("the choice as a channel")
@pytest.mark.parametrize("name", UNSOUND)
def test_a_model_whose_parts_do_not_fit_is_refused(tmp_path: Path, learnt: dict[str, Any], name: str) -> None:
    """Before anything is paid for it: no walk without an end, and no fault after a Feature was charged."""
    document = copy.deepcopy(learnt)
    path = tmp_path / "cache" / "models" / f"{document['key']}.json"
    path.parent.mkdir(parents=True)
    path.write_text(planted(document))
    assert run(tmp_path, WITH_MANY + CALL).ok
    UNSOUND[name](document["policy"])
    path.write_text(planted(document))
    result = run(tmp_path, WITH_MANY + CALL)
    assert [d.kind for d in result.diagnostics] == ["DataError"] and result.output == [] and spent(result) == 0


@pytest.mark.attack("the choice as a channel")
@pytest.mark.parametrize("how", ["cut", "edited", "empty", "another key", "no JSON", "deep"])
def test_a_damaged_model_is_refused(tmp_path: Path, how: str) -> None:
    assert run(tmp_path, HEAD + CHOICE + CALL).ok
    path = model_file(tmp_path)
    text = path.read_text()
    document = json.loads(text)
    path.write_text({
        "cut": text[: len(text) // 2], "edited": text.replace('"share"', '"shares"'), "empty": "",
        "another key": planted({**document, "key": "0" * 64}), "no JSON": "\x00" * 99, "deep": "[" * 100_000,
    }[how])  # fmt: skip
    result = run(tmp_path, HEAD + CHOICE + CALL)
    assert [d.kind for d in result.diagnostics] == ["DataError"] and result.output == []
    assert spent(result) == 0


@pytest.mark.attack("the choice as a channel")
def test_what_is_stored_does_not_depend_on_private_data(arena: Arena) -> None:
    """Names and bytes of everything in the cache, after runs on two sets of private rows."""
    program = HEAD.replace(
        "private c = counts([900, 100, 7]) protecting rows budget epsilon 2",
        'private t = table("t.csv") described by {v: 0..2} protecting rows budget epsilon 2\nc = histogram(t, x = v)',
    )
    kept = []
    for rows in (["1"] * 9, ["2"] * 900 + ["nan", '"']):
        arena.write({"t.csv": table("v", rows=rows)})
        seen = arena.see(program + CHOICE + CALL)
        assert seen.result.ok, seen.text
        kept.append({p.name: p.read_bytes() for p in (arena.folder / "cache").rglob("*.json")})
        for path in (arena.folder / "cache").rglob("*.json"):
            path.unlink()
    assert kept[0] == kept[1] and kept[0]


@pytest.mark.attack("the choice as a channel")
def test_a_choice_inside_another_pays_from_the_same_amount(tmp_path: Path) -> None:
    nested = CHOICE + (
        "O = Option (data) { return choose(data) }\nP = Option (data) { return 0 }\n"
        "outer = MkChoiceMaker among {O, P} informed by {many} trained on learnt spending 0.3 wrt close\n"
        "x = outer({database: c}) with epsilon 1\nprint(x)\n"
    )
    result = run(tmp_path, HEAD + nested)
    assert result.ok, result.diagnostics
    assert spent(result) <= 1
