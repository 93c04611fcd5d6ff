"""Public parameters of what runs over private rows: wrong shapes, orders and magnitudes, and tables that do not fit.

Nothing may fail where one row exists and not where it does not, and one row moves its own terms only.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from arena import Arena, Seen, lost, table

from jostle.kernels.classifiers.fits import branched_model, majority_model, naive_bayes_model
from jostle.kernels.rowprograms import CONTRIBUTIONS, WEIGHTS
from jostle.kernels.rowprograms.scales import LARGEST
from jostle.privacy.rows import folds
from jostle.privacy.rows.norms import GRID, whole_frames
from jostle.privacy.rows.program import RowProgram

SCHEMA = '{x: -1.0..1.0, y: -1.0..1.0, who: {"Ann", "Bob"}, c: {"a", "b"}}'
T = f'use classifiers\nprivate t = table("t.csv") described by {SCHEMA} protecting rows budget epsilon 9\n'
ROWS = [f"{k / 10},{-k / 20},Ann,{'ab'[k % 2]}" for k in range(9)]
BOB = "0.5,0.5,Bob,b"


def neighbours(arena: Arena, program: str, rows: list[str] = ROWS, row: str = BOB) -> tuple[Seen, Seen]:
    arena.write({"t.csv": table("x", "y", "who", "c", rows=rows)})
    without = arena.see(T + program)
    arena.write({"t.csv": table("x", "y", "who", "c", rows=[row, *rows])})
    return without, arena.see(T + program)


MODELS = {
    "naive Bayes": 'naive_bayes_model(["a", "b"], [{name: "hit", values: [0, 1, 2]}], [[[1], [2]]], 1)',
    "branches": 'branched_model({name: "hit", values: [0, 2]}, [majority_model(["a", "b"], [1, 2])])',
    "classes": 'branched_model({name: "hit", values: [0, 2]}, [majority_model([k], [1]) for k in ["a", "b"]])',
}  # fmt: skip


@pytest.mark.attack("parameters of what runs over rows")
@pytest.mark.parametrize("name", MODELS)
def test_a_model_fits_its_values_or_is_refused(arena: Arena, name: str) -> None:
    """A table that is one value short was looked up out of range by the one row that has this value."""
    program = (
        f'hit = derive(t, hit = 2 if who == "Bob" else 0)\nm = {MODELS[name]}\n'
        'x = laplace(correct_count(hit, m, "c"), epsilon = 1)\n'
    )
    one, other = neighbours(arena, program)
    assert one.text == other.text and not one.result.ok and not one.draws


@pytest.mark.attack("parameters of what runs over rows")
def test_tables_of_a_model_fit_its_values_and_classes() -> None:
    with pytest.raises(ValueError):
        naive_bayes_model(["a", "b"], [{"name": "h", "values": [0, 1]}], [np.ones((3, 2))])
    with pytest.raises(ValueError):
        branched_model({"name": "h", "values": [0, 1]}, [majority_model(["a", "b"], [1, 2])])


@pytest.mark.attack("parameters of what runs over rows")
def test_parameters_have_exact_shapes(arena: Arena) -> None:
    """A square table of weights passed for two rows, and failed for any other number of them."""
    program = (
        'some = vectors(where(t, who == "Bob"), x, y)\n'
        'm = noisy_sum(some, "logistic_gradient", {target: 0, weights: [[0, 0], [0, 0]]}, epsilon = 1)\n'
    )
    one, other = neighbours(arena, program)
    assert one.text == other.text and not one.result.ok and not one.draws and one.spent() == 0


HOSTILE: tuple[tuple[str, dict[str, Any]], ...] = (
    *(("logistic_gradient", {"target": 0, "weights": w}) for w in ([[0, 0], [0, 0]], 1, [0, 1e305], [0], [])),
    *(("softmax_gradient", {"weights": w}) for w in ([[0], [0]], [[0, 0]], [0, 0], [[0, 0], [0, 1e305]])),
    ("softmax_gradient", {"weights": [[0, np.nan], [0, 0]]}),
    *(("loss_gradient", {"loss": loss, "weights": [0, 0]}) for loss in (None, 1, "squares", [0, 0])),
    *(("squared_products", {"left": [[0, 0, 1]], "right": r, "times": [1]}) for r in ([[0, 1]], [[0, 0, np.nan]], [])),
    *(("squared_products", {"left": [[0, 0, 1]], "right": [[0, 0, 1]], "times": t}) for t in ([], [0], [1e9], [1, 1])),
    *(("logistic_gradient", {"target": t, "weights": [0, 0]}) for t in ([0, 1], -1, 0.5, 2, np.nan, "x")),
    *(("nearest", {"centres": c}) for c in ([[0, 0], [1e305, 0]], [[0, np.nan]], [], [[0], [1]], [[[0, 0]]])),
    ("nearest", {"centres": [[0, 0], [1]]}),
    ("nearest_from", {"centres": [[0, 0]], "radius": 0}), ("nearest_from", {"centres": [[0, 0]], "radius": [1, 1]}),
    ("responsibilities", {"means": [[0, 0]], "factors": [[[1, 0]]], "offsets": [0]}),
    ("responsibilities", {"means": [[0, 0]], "factors": [[[1, 0], [0, 1]]], "offsets": [0, 0]}),
    ("framed", {"means": [[0, 0]], "factors": [[[1, 0], [0, 1]]], "offsets": [np.nan], "radius": 1}),
    ("within", {"radii": []}), ("within", {"radii": [[1]]}), ("within", {"radii": 1}), ("within", {"radii": ["far"]}),
    ("within", {"radii": [10**400]}), ("one", {"centres": [[0, 0]]}), ("indicators", {"values": [2]}),
    ("indicators", {"values": [2, 1.5]}), ("indicators", {"values": [2, 0]}),
    ("indicators", {"values": [2, 2], "pairs": [True, False]}),
)  # fmt: skip


@pytest.mark.attack("parameters of what runs over rows")
@pytest.mark.parametrize(("name", "parameters"), HOSTILE)
def test_what_does_not_fit_is_refused_from_public_facts(name: str, parameters: dict[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError, OverflowError)):
        {**WEIGHTS, **CONTRIBUTIONS}[name](2, **parameters)


@pytest.mark.attack("parameters of what runs over rows")
def test_shells_of_radii_that_do_not_rise(arena: Arena) -> None:
    """A search among unsorted edges began for a row where it had ended for the row before."""
    program = (
        'm = noisy_moments(vectors(t, x), "within", {radii: [0.1, 0.3, 0.2, 0.4, 0.5, 0.6]}, shares = [1], '
        'via = "laplace", epsilon = 1)\n'
    )
    one, other = neighbours(arena, program, ["0.25,0,Ann,a"] * 2047, "0.15,0,Bob,b")
    assert one.result.ok and one.text == other.text
    assert len(one.draws) == 1 and lost(one, other) <= 1 + 1e-9


@pytest.mark.attack("parameters of what runs over rows")
@pytest.mark.parametrize("large", [LARGEST, 1e6, 1.0])
def test_a_large_centre_makes_no_product_round(large: float) -> None:
    """The grid of an exact product was infinite, and equal rows fell apart by their number."""
    rng = np.random.default_rng(5)
    for _ in range(40):
        c = np.round(rng.normal(size=28) * 1e-3, 6)
        centres = np.stack([np.full(28, -large), c, rng.permutation(c)])
        nearest = WEIGHTS["nearest"](28, centres=centres).program
        each = [nearest(np.full((28, n), 16383.0))[0].sum(axis=1) / n for n in (1, 2, 3, 5, 8, 16)]
        assert all(np.array_equal(each[0], other) for other in each)


@pytest.mark.attack("parameters of what runs over rows")
def test_frames_lie_within_the_ball_in_whole_numbers() -> None:
    rng = np.random.default_rng(3)
    for scale in (1, 5, 2**20):
        vectors = np.rint(rng.normal(0, scale, (2, 3, 500)))
        frames = whole_frames(vectors, (vectors * vectors).sum(axis=1), max(1, scale // 2))
        assert ((frames * frames).sum(axis=1) <= GRID * GRID).all()


@pytest.mark.attack("parameters of what runs over rows")
@pytest.mark.parametrize("fault", [IndexError, ZeroDivisionError, MemoryError, RecursionError, ValueError])
@pytest.mark.plants_faults
def test_what_fails_after_a_charge_has_no_answer_and_names_nothing(
    arena: Arena, monkeypatch: pytest.MonkeyPatch, fault: type[Exception]
) -> None:
    """Without the row all is answered; with it there is one fixed message, and nothing is read any more."""
    run = RowProgram.__call__

    def failing(program: RowProgram, *batches: Any) -> Any:
        if (batches[0][0] == 0.5 * GRID).any():
            raise fault("Bob is here")
        return run(program, *batches)

    monkeypatch.setattr(RowProgram, "__call__", failing)
    rows = [r for r in ROWS if not r.startswith("0.5")]
    one, other = neighbours(
        arena, 'v = vectors(t, x, norm = "sup")\na = noisy_sum(v, "coordinates", epsilon = 1)\n'
        "b = noisy_moments(v, epsilon = 1)\n"
        'c = exp_mech(["up", "down"], coordinate_scores(v, "coordinates")) with epsilon 1\n', rows,
    )  # fmt: skip
    answered, failed = sorted((one, other), key=lambda seen: not seen.result.ok)
    assert answered.result.ok and not failed.result.ok and not failed.draws
    (said,) = (d for d in failed.result.diagnostics)
    assert said.message == "measuring `t` failed after the charge, and there is no answer"
    assert "Bob is here" not in failed.text


@pytest.mark.attack("parameters of what runs over rows")
@pytest.mark.parametrize("call", [
    'noisy_sum(v, "coordinates", bound = 0, epsilon = 1)', 'noisy_sum(v, "coordinates", norm = "l3", epsilon = 1)',
    'noisy_sum(v, "coordinates", part = 2, epsilon = 1)', "noisy_moments(v, part = -1, epsilon = 1)",
    'noisy_sum(v, "nearest", {centres: [[0, 0]]}, epsilon = 1)', "noisy_moments(v, shares = [], epsilon = 1)",
])  # fmt: skip
def test_what_is_refused_is_refused_before_a_charge(arena: Arena, call: str) -> None:
    one, other = neighbours(arena, f"v = vectors(t, x, y)\na = {call}\n")
    assert one.text == other.text and not one.result.ok and one.spent() == 0


def test_many_numbers_a_row_need_no_more_memory_for_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Contributions of a batch are made for a few rows at a time where each has many."""
    sizes: list[int] = []
    run = RowProgram.__call__

    def watched(program: RowProgram, *batches: Any) -> Any:
        sizes.append(batches[0].shape[-1])
        return run(program, *batches)

    monkeypatch.setattr(RowProgram, "__call__", watched)
    monkeypatch.setattr(folds, "MOST_NUMBERS", 20)
    from jostle.source import Source
    from jostle.tools.session import Session

    rows = "[[0.1, 0.2], [0.3, 0.1], [0.5, 0.5], [0.1, 0.1], [0, 0.2], [1, 1]]"
    public = f'v = vectors({rows})\nrelease s = noisy_sum(v, "pair_products").sum\n'
    session = Session()
    few = session.run(Source("p.jst", public)).released["s"]
    assert max(sizes) == 5 and sum(sizes) == 6
    monkeypatch.setattr(folds, "MOST_NUMBERS", 2**24)
    assert np.array_equal(few, Session().run(Source("p.jst", public)).released["s"])


@pytest.mark.attack("parameters of what runs over rows")
@pytest.mark.parametrize("call", [
    'v = vectors(t, x, y, norm = [1, 2] * [1, 1])',
    "a = {{ select count(*) from t groupby x over [1, exp(1000)] with epsilon 1 }}",
    "a = laplace(histogram(t, c), [{kind: \"groups\", labels: [-1, -1], size: 1}]) with epsilon 1",
    "a = noisy_moments(vectors(t, x), shares = [1, exp(-740)]) with epsilon 1",
])  # fmt: skip
def test_what_the_fuzzer_found(arena: Arena, call: str) -> None:
    """A traceback of Python, or noise that cannot be drawn after a charge: refused before."""
    one, other = neighbours(arena, f"{call}\n")
    assert one.text == other.text and not one.result.ok and one.spent() == 0 and not one.draws


def test_rows_go_with_their_session() -> None:
    """A store of rows held its engine, which held the store: every session's private rows stayed in memory."""
    import gc
    import weakref

    from jostle.source import Source
    from jostle.tools.session import Session

    session = Session()
    session.run(Source("p.jst", 'release s = noisy_sum(vectors([[0.1], [0.2]]), "coordinates").sum\n'))
    engine = weakref.ref(session._interp.data._engine)
    del session
    gc.collect()
    assert engine() is None


@pytest.mark.attack("parameters of what runs over rows")
def test_a_function_of_other_rows_is_refused(arena: Arena, monkeypatch: pytest.MonkeyPatch) -> None:
    """Builders need no trust: one that builds for other columns is refused before a charge, and not on a row."""
    from jostle.kernels import rowprograms

    for table_of, name in (("WEIGHTS", "one"), ("CONTRIBUTIONS", "coordinates"), ("GRADIENTS", "ising_gradient")):
        build = getattr(rowprograms, table_of)[name]
        monkeypatch.setitem(getattr(rowprograms, table_of), name, lambda d, build=build, **more: build(d + 1, **more))
    for call in (
        "noisy_moments(v, epsilon = 1)", 'noisy_sum(v, "coordinates", epsilon = 1)',
        'noisy_max(coordinate_scores(v, "coordinates")) with epsilon 1',
        'noisy_max(coordinate_scores(v, "ising_gradient", {target: 0, weights: [0, 0, 0]})) with epsilon 1',
    ):  # fmt: skip
        one, other = neighbours(arena, f'v = vectors(t, x, y, norm = "sup")\na = {call}\n')
        assert one.text == other.text and not one.result.ok and not one.draws, call
