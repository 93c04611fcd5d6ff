"""Gives a bench its policy: a stored one, or one that is trained on training data, selected and stored.

What training saw of each feature, and of epsilon, are public ranges in the policy's table; a call beyond them gets the
single best option, and the trace says so.
"""

from __future__ import annotations

from collections.abc import Mapping

from jostle.choice.models import AnyModel, UserModel
from jostle.choice.policy import SINGLE_BEST, Policy, Store
from jostle.choice.table import EPSILON, UNIT_EPSILON, Bench, RunTable, exchanged
from jostle.choice.training import DRAWS, REPEATS, SHARES, Progress, settings_of, tenth_of_a_decade, train
from jostle.diagnostics import refuse
from jostle.plan.digest import digest
from jostle.records import replace
from jostle.version import __version__


def within(policy: Policy, values: Mapping[str, float], epsilon: float | None, unit: str = EPSILON) -> Policy:
    """`policy` where it was trained for a call with these `values` of features and this amount, else `single_best`.
    `epsilon`: the amount for a row, None on public data. What decides is public or was released."""
    why = _outside(policy.table, values, epsilon, unit)
    return policy if not why else single_best(policy, f"outside of what it was trained on: {why}")


def single_best(policy: Policy, why: str) -> Policy:
    """The policy that takes the option with the best mean over all training data, for the reason `why`."""
    from jostle.choice.policies import Candidate, best_on_average, view_of

    scale = policy.table.scale
    predictor = best_on_average(view_of(policy.table, Candidate(SINGLE_BEST, 0.0, 0, ()), scale), scale)
    return replace(
        policy, name=SINGLE_BEST, model=SINGLE_BEST, needs=(), columns=(), predictor=predictor, why=why, others={}
    )  # fmt: skip


def rounded(value: float) -> float:
    """Five digits, which a policy that ships has of each number: more than six runs of an option tell."""
    return float(f"{value:.5g}")


def _outside(table: RunTable, values: Mapping[str, float], epsilon: float | None, unit: str) -> str:
    if epsilon is None:
        return "public data have no noise"
    if unit != EPSILON:
        return f"it knows amounts in epsilon, and this one is in {unit}"
    if len(table.epsilons) > 1 and not min(table.epsilons) <= epsilon <= max(table.epsilons):
        return f"epsilon is {epsilon:.4g} for a row, and was {min(table.epsilons):g} to {max(table.epsilons):g}"
    for name, value in values.items():
        place = table.features.index(name)
        draws = [draw[place] for run in table.runs for draw in run.features[0]]
        if not min(draws) <= rounded(value) <= max(draws):
            return f"{name} is {value:.4g}, and was {min(draws):.4g} to {max(draws):.4g}"
    return ""


VERSION = 7
"""The version of what training computes: a change makes stored models be trained anew."""

SCALE = 3
"""The version of what is fitted to the runs: a change makes stored models be fitted anew, to the runs that are kept."""


def key_of(bench: Bench, model: AnyModel, share: float | None, epsilon: float | None) -> str:
    """The content key of a policy: those that are nearly equal have the same."""
    return digest([runs_key(bench, share, epsilon), str(model), SCALE])


def runs_key(bench: Bench, share: float | None, epsilon: float | None) -> str:
    """The part of the key that the runs depend on, and are seeded from: models are compared on the same runs."""
    grid = [tenth_of_a_decade(epsilon)] if epsilon is not None else []
    shares = [share] if share is not None else list(SHARES)
    return digest([VERSION, __version__, bench.key, grid, shares, REPEATS, DRAWS])


def learn(
    bench: Bench,
    *,
    model: AnyModel,
    share: float | None,
    epsilon: float | None,
    store: Store | None,
    progress: Progress | None = None,
    workers: int | None = None,
) -> Policy:
    """The policy for calls with about `epsilon` (None: on public data, exact and free).

    `share`: of epsilon for the private features, in (0, 1); None: cross-validation finds it, and may find none. With
    a `store` a policy is trained once. Raises `ValueError` without options or training data, `BadAmount` for a share
    outside (0, 1), `DataError` for a damaged stored model, and what the program's own features and options raise.
    """
    _check(bench, share)
    if len(bench.option_names) == 1:
        return _only(bench)
    bench, epsilon = training_setting(bench, model, epsilon)
    key = key_of(bench, model, share, epsilon)
    entry = f"{key} {model.serial}" if isinstance(model, UserModel) else key
    stored = store.load(entry, (bench.option_names, bench.feature_names)) if store is not None else None
    if store is not None and stored is not None:
        return store.remember(entry, stored.with_predicts(bench.predicts))
    table = runs_of(bench, share, epsilon, store, progress, workers)
    from jostle.choice.policies import decide

    policy = decide(table, model, bench.predicts)
    if store is not None:
        store.save(entry, policy, on_disk=not isinstance(model, UserModel))
    return policy


def training_setting(bench: Bench, model: AnyModel, epsilon: float | None) -> tuple[Bench, float | None]:
    """The bench and epsilon that a model is trained at, for calls with this epsilon."""
    if isinstance(model, UserModel) or not model.exchange or epsilon is None:
        return bench, epsilon
    return exchanged(bench), UNIT_EPSILON


def runs_of(
    bench: Bench,
    share: float | None,
    epsilon: float | None,
    store: Store | None,
    progress: Progress | None = None,
    workers: int | None = None,
) -> RunTable:
    """The whole table of runs that policies for about `epsilon` are learned and judged from; kept in the `store`."""
    key = runs_key(bench, share, epsilon)
    stored = store.load_runs(key, (bench.option_names, bench.feature_names)) if store is not None else None
    if stored is not None:
        return stored
    table = train(bench, epsilon, share, progress, key=key, workers=workers)
    if store is not None:
        store.save_runs(key, table)
    return table


def _check(bench: Bench, share: float | None) -> None:
    if share is not None and not 0 < share < 1:
        raise refuse(
            "BadAmount",
            f"the share for features is a number between 0 and 1, not {share:g}",
            help="`spending 0.05` gives the features a twentieth of a call's epsilon",
        )
    if not bench.option_names:
        raise refuse("ValueError", "there is nothing to choose from", help="name at least one Option in `among {…}`")
    if not bench.database_names:
        raise refuse("ValueError", "there is nothing to train on", help="name public data sets in `trained on {…}`")


def _only(bench: Bench) -> Policy:
    """With one option there is nothing to learn, and nothing is run."""
    table = RunTable(
        bench.option_names, bench.feature_names, bench.feature_is_public, bench.database_names,
        (), (1.0,), settings_of(bench, None, True), 0, 0, bench.key, (),
    )  # fmt: skip
    return Policy(SINGLE_BEST, SINGLE_BEST, 0.0, (), (), None, table, (), "there is only one option")
